/* Memory that host and devices reach (cann-runtime-3 18). It never moves: where it had better be, and where it was last wanted,
 * is kept for each of its pages and told. */
#include "ascend/ascendcl/runtime.h"

#include <sched.h>
#include <stdlib.h>

enum { ON_HOST = -1, NOWHERE = -2 }; /* in place of a device's number */
static const size_t PAGE = (size_t)2 << 20;

/* A page's wishes. Zeros are those of a new page. */
typedef struct ManagedPage {
    bool read_mostly;
    bool host_accesses;
    uint64_t devices_access; /* a bit for each */
    aclrtMemManagedLocation preferred, prefetched;
} ManagedPage;

static void require_product(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "devices of the %s have no managed memory", ascend_product()->series);
}

aclError aclrtMemAllocManaged(void **ptr, uint64_t size, uint32_t flag)
{
    Call call = us_call_begin("aclrtMemAllocManaged");
    require_product(&call);
    us_require(&call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    us_require(&call, flag == ACL_RT_MEM_ATTACH_GLOBAL, "flag", "range", ACL_ERROR_RT_PARAM_INVALID,
               "flag is %u; it must be 1, ACL_RT_MEM_ATTACH_GLOBAL", (unsigned)flag);
    Context *context = acl_require_context(&call, "context", "none");
    bool allocated = false;
    if (call.status == 0 && size <= SIZE_MAX / 4) {
        size_t whole = ((size_t)size + PAGE - 1) / PAGE * PAGE;
        allocated = us_memory_allocate(context->device, MEMORY_MANAGED, us_exactly(whole), call.function, ptr) == MEMORY_OK;
    }
    us_require(&call, allocated, "size", "memory", ACL_ERROR_RT_MEMORY_ALLOCATION,
               "%llu bytes do not fit into the memory of device %d", (unsigned long long)size,
               (int)context->device->ordinal);
    if (allocated) {
        acl_keep_peak(context->device);
    }
    return acl_end(&call);
}

/* ---- the pages of a range ---- */

typedef struct PageRange {
    uintptr_t address;
    size_t size;
    void (*each)(ManagedPage *page, void *argument); /* NULL: only look whether there is such a range */
    void *argument;
    const char *complaint; /* NULL: done */
} PageRange;

/* With the registry's lock held, as us_memory_visit calls it. */
static void visit_pages(Allocation *block, void *context)
{
    PageRange *range = context;
    size_t first = range->address - block->address;
    if (block->kind != MEMORY_MANAGED) {
        range->complaint = "is not managed memory";
        return;
    }
    if (first >= block->size || range->size > block->size - first) {
        range->complaint = "begins in managed memory, and the range leaves it";
        return;
    }
    range->complaint = NULL;
    if (range->each == NULL) {
        return;
    }
    if (block->notes == NULL) {
        block->notes = calloc(block->size / PAGE, sizeof(ManagedPage));
    }
    ManagedPage *pages = block->notes;
    for (size_t page = first / PAGE; pages != NULL && page * PAGE < first + range->size; page++) {
        range->each(&pages[page], range->argument);
    }
    range->complaint = pages != NULL ? NULL : "has no host memory for its attributes";
}

/* Does something for each page, or refuses: rules ptr/null, size/zero, ptr/unknown. */
static void for_pages(Call *call, const void *ptr, size_t size, void (*each)(ManagedPage *page, void *argument), void *argument)
{
    us_require(call, ptr != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    us_require(call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    Platform *platform = acl_require_platform(call);
    if (platform != NULL) {
        PageRange range = {(uintptr_t)ptr, size, each, argument, "is no memory of this library"};
        us_memory_visit(platform, ptr, visit_pages, &range);
        us_require(call, range.complaint == NULL, "ptr", "unknown", ACL_ERROR_RT_PARAM_INVALID, "%p %s", ptr,
                   range.complaint);
    }
}

static void require_whole_pages(Call *call, size_t size)
{
    us_require(call, size % PAGE == 0, "size", "pages", ACL_ERROR_RT_PARAM_INVALID,
               "size is %zu; it must be a multiple of 2 MiB", size);
}

/* Rules location/range, location/node, location/device. */
static void require_location(Call *call, const aclrtMemManagedLocation *location)
{
    us_require(call, location->type >= ACL_MEM_LOCATIONTYPE_DEVICE && location->type <= ACL_MEM_LOCATIONTYPE_HOST_NUMA_CURRENT,
               "location", "range", ACL_ERROR_RT_PARAM_INVALID, "location.type is %d; it must be 1 to 4",
               (int)location->type);
    us_require(call, location->type != ACL_MEM_LOCATIONTYPE_HOST_NUMA || location->id >= 0, "location", "node",
               ACL_ERROR_RT_PARAM_INVALID, "location.id is %d; nodes of the host are numbered from 0", (int)location->id);
    if (call->status == 0 && location->type == ACL_MEM_LOCATIONTYPE_DEVICE) {
        acl_require_device(call, "location", "device", location->id);
    }
}

/* As it is kept: the node of the calling thread by its number. */
static aclrtMemManagedLocation resolved(aclrtMemManagedLocation location)
{
    if (location.type == ACL_MEM_LOCATIONTYPE_HOST_NUMA_CURRENT) {
        unsigned processor = 0;
        unsigned node = 0;
        getcpu(&processor, &node);
        return (aclrtMemManagedLocation){ACL_MEM_LOCATIONTYPE_HOST_NUMA, (int32_t)node};
    }
    return location.type == ACL_MEM_LOCATIONTYPE_HOST ? (aclrtMemManagedLocation){location.type, ON_HOST} : location;
}

/* ---- advice ---- */

typedef struct Advice {
    aclrtMemManagedAdviseType advise;
    aclrtMemManagedLocation location;
} Advice;

static void set_access(ManagedPage *page, const aclrtMemManagedLocation *location, bool accesses)
{
    if (location->type != ACL_MEM_LOCATIONTYPE_DEVICE) {
        page->host_accesses = accesses;
        return;
    }
    uint64_t bit = (uint64_t)1 << location->id;
    page->devices_access = accesses ? page->devices_access | bit : page->devices_access & ~bit;
}

static void advise_page(ManagedPage *page, void *argument)
{
    const Advice *advice = argument;
    switch (advice->advise) {
    case ACL_MEM_ADVISE_SET_READ_MOSTLY:
    case ACL_MEM_ADVISE_UNSET_READ_MOSTLY:
        page->read_mostly = advice->advise == ACL_MEM_ADVISE_SET_READ_MOSTLY;
        break;
    case ACL_MEM_ADVISE_SET_PREFERRED_LOCATION:
        page->preferred = advice->location;
        break;
    case ACL_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        page->preferred = (aclrtMemManagedLocation){0};
        break;
    case ACL_MEM_ADVISE_SET_ACCESSED_BY:
    case ACL_MEM_ADVISE_UNSET_ACCESSED_BY:
        set_access(page, &advice->location, advice->advise == ACL_MEM_ADVISE_SET_ACCESSED_BY);
        break;
    }
}

aclError aclrtMemManagedAdvise(const void *const ptr, uint64_t size, aclrtMemManagedAdviseType advise,
                               aclrtMemManagedLocation location)
{
    Call call = us_call_begin("aclrtMemManagedAdvise");
    require_product(&call);
    us_require(&call, (int)advise >= ACL_MEM_ADVISE_SET_READ_MOSTLY && (int)advise <= ACL_MEM_ADVISE_UNSET_ACCESSED_BY,
               "advise", "range", ACL_ERROR_RT_PARAM_INVALID, "advise is %d; it must be 0 to 5", (int)advise);
    require_whole_pages(&call, (size_t)size);
    bool somewhere = advise == ACL_MEM_ADVISE_SET_PREFERRED_LOCATION || advise >= ACL_MEM_ADVISE_SET_ACCESSED_BY;
    if (somewhere) {
        require_location(&call, &location);
    }
    Advice advice = {advise, call.status == 0 && somewhere ? resolved(location) : location};
    for_pages(&call, ptr, (size_t)size, advise_page, &advice);
    return acl_end(&call);
}

/* ---- prefetching ---- */

static void prefetch_page(ManagedPage *page, void *argument)
{
    page->prefetched = *(const aclrtMemManagedLocation *)argument;
}

static void require_no_flags(Call *call, uint64_t flags)
{
    us_require(call, flags == 0, "flags", "range", ACL_ERROR_RT_PARAM_INVALID, "flags is %llu; it must be 0",
               (unsigned long long)flags);
}

static void check_prefetch(Call *call, const void *ptr, size_t size, const aclrtMemManagedLocation *location)
{
    require_whole_pages(call, size);
    require_location(call, location);
    for_pages(call, ptr, size, NULL, NULL);
}

static void prefetch(Call *call, const void *ptr, size_t size, const aclrtMemManagedLocation *location)
{
    aclrtMemManagedLocation there = call->status == 0 ? resolved(*location) : *location;
    for_pages(call, ptr, size, prefetch_page, &there);
}

aclError aclrtMemManagedPrefetchAsync(const void *ptr, size_t size, aclrtMemManagedLocation location, uint32_t flags,
                                      aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemManagedPrefetchAsync");
    require_product(&call);
    require_no_flags(&call, flags);
    check_prefetch(&call, ptr, size, &location);
    acl_require_task_stream(&call, stream);
    prefetch(&call, ptr, size, &location);
    return acl_end(&call);
}

/* Whether the first ranges of the locations start at 0, rise, and exist. */
static bool is_in_order(const size_t *first_ranges, size_t count, size_t ranges)
{
    bool ordered = first_ranges[0] == 0 && first_ranges[count - 1] < ranges;
    for (size_t i = 1; i < count && ordered; i++) {
        ordered = first_ranges[i] > first_ranges[i - 1];
    }
    return ordered;
}

aclError aclrtMemManagedPrefetchBatchAsync(const void **ptrs, size_t *sizes, size_t count,
                                           aclrtMemManagedLocation *prefetchLocs, size_t *prefetchLocIdxs,
                                           size_t numPrefetchLocs, uint64_t flags, aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemManagedPrefetchBatchAsync");
    require_product(&call);
    us_require(&call, ptrs != NULL, "ptrs", "null", ACL_ERROR_INVALID_PARAM, "ptrs is NULL");
    us_require(&call, sizes != NULL, "sizes", "null", ACL_ERROR_INVALID_PARAM, "sizes is NULL");
    us_require(&call, count > 0, "count", "zero", ACL_ERROR_INVALID_PARAM, "count is 0; it must be at least 1");
    us_require(&call, prefetchLocs != NULL, "prefetchLocs", "null", ACL_ERROR_INVALID_PARAM, "prefetchLocs is NULL");
    us_require(&call, prefetchLocIdxs != NULL, "prefetchLocIdxs", "null", ACL_ERROR_INVALID_PARAM,
               "prefetchLocIdxs is NULL");
    us_require(&call, numPrefetchLocs > 0 && numPrefetchLocs <= count, "numPrefetchLocs", "range",
               ACL_ERROR_RT_PARAM_INVALID, "numPrefetchLocs is %zu for %zu ranges", numPrefetchLocs, count);
    us_require(&call, is_in_order(prefetchLocIdxs, numPrefetchLocs, count), "prefetchLocIdxs", "order",
               ACL_ERROR_RT_PARAM_INVALID, "prefetchLocIdxs must start at 0, grow, and stay below %zu", count);
    require_no_flags(&call, flags);
    acl_require_task_stream(&call, stream);
    void (*const steps[])(Call *, const void *, size_t, const aclrtMemManagedLocation *) = {check_prefetch, prefetch};
    for (size_t step = 0; step < 2; step++) { /* what is refused changes nothing */
        for (size_t i = 0, place = 0; i < count && call.status == 0; i++) {
            place += place + 1 < numPrefetchLocs && prefetchLocIdxs[place + 1] == i;
            steps[step](&call, ptrs[i], sizes[i], &prefetchLocs[place]);
        }
    }
    return acl_end(&call);
}

/* ---- what is known of a range ---- */

/* What all pages have in common. */
typedef struct Common {
    ManagedPage page;
    bool any, one_preferred, one_prefetched;
} Common;

static bool is_same(const aclrtMemManagedLocation *a, const aclrtMemManagedLocation *b)
{
    return a->type == b->type && a->id == b->id;
}

static void add_page(ManagedPage *page, void *argument)
{
    Common *common = argument;
    if (!common->any) {
        *common = (Common){*page, true, true, true};
        return;
    }
    common->page.read_mostly &= page->read_mostly;
    common->page.host_accesses &= page->host_accesses;
    common->page.devices_access &= page->devices_access;
    common->one_preferred &= is_same(&common->page.preferred, &page->preferred);
    common->one_prefetched &= is_same(&common->page.prefetched, &page->prefetched);
}

/* A device's number, ON_HOST, or NOWHERE. */
static int32_t place_of(const aclrtMemManagedLocation *location)
{
    return location->type == ACL_MEM_LOCATIONTYPE_DEVICE ? location->id
           : location->type == ACL_MEM_LOCATIONTYPE_INVALID ? NOWHERE
                                                            : ON_HOST;
}

static int32_t id_of(const aclrtMemManagedLocation *location)
{
    return location->type == ACL_MEM_LOCATIONTYPE_INVALID ? NOWHERE : location->id;
}

static void tell_who_accesses(const ManagedPage *page, int32_t *list, size_t room)
{
    size_t count = 0;
    if (page->host_accesses) {
        list[count++] = ON_HOST;
    }
    for (int32_t device = 0; device < DEVICE_LIMIT && count < room; device++) {
        if ((page->devices_access >> device & 1) != 0) {
            list[count++] = device;
        }
    }
    while (count < room) {
        list[count++] = NOWHERE;
    }
}

static void tell(const Common *common, aclrtMemManagedRangeAttribute attribute, int32_t *data, size_t room)
{
    const aclrtMemManagedLocation nowhere = {0};
    const aclrtMemManagedLocation preferred = common->one_preferred ? common->page.preferred : nowhere;
    const aclrtMemManagedLocation prefetched = common->one_prefetched ? common->page.prefetched : nowhere;
    switch (attribute) {
    case ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *data = common->page.read_mostly; break;
    case ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *data = place_of(&preferred); break;
    case ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: tell_who_accesses(&common->page, data, room); break;
    case ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: *data = (int32_t)preferred.type; break;
    case ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: *data = id_of(&preferred); break;
    case ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: *data = place_of(&prefetched); break;
    case ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: *data = (int32_t)prefetched.type; break;
    case ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: *data = id_of(&prefetched); break;
    }
}

static void require_question(Call *call, aclrtMemManagedRangeAttribute attribute, const void *data, size_t dataSize)
{
    us_require(call, (int)attribute >= ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY &&
               (int)attribute <= ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, "attribute", "range",
               ACL_ERROR_RT_PARAM_INVALID, "attribute is %d; it must be 1 to 8", (int)attribute);
    us_require(call, data != NULL, "data", "null", ACL_ERROR_INVALID_PARAM, "data is NULL");
    bool list = attribute == ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
    us_require(call, dataSize == sizeof(int32_t) || (list && dataSize > 0 && dataSize % sizeof(int32_t) == 0), "dataSize",
               "size", ACL_ERROR_RT_PARAM_INVALID, "dataSize is %zu; it must be %s", dataSize,
               list ? "a multiple of 4" : "4");
}

aclError aclrtMemManagedGetAttr(aclrtMemManagedRangeAttribute attribute, const void *ptr, size_t size, void *data,
                                size_t dataSize)
{
    Call call = us_call_begin("aclrtMemManagedGetAttr");
    require_product(&call);
    require_question(&call, attribute, data, dataSize);
    Common common = {0};
    for_pages(&call, ptr, size, add_page, &common);
    if (call.status == 0) {
        tell(&common, attribute, data, dataSize / sizeof(int32_t));
    }
    return acl_end(&call);
}

aclError aclrtMemManagedGetAttrs(aclrtMemManagedRangeAttribute *attributes, size_t numAttributes, const void *ptr,
                                 size_t size, void **data, size_t *dataSizes)
{
    Call call = us_call_begin("aclrtMemManagedGetAttrs");
    require_product(&call);
    us_require(&call, attributes != NULL, "attributes", "null", ACL_ERROR_INVALID_PARAM, "attributes is NULL");
    us_require(&call, numAttributes > 0, "numAttributes", "zero", ACL_ERROR_INVALID_PARAM,
               "numAttributes is 0; it must be at least 1");
    us_require(&call, data != NULL, "data", "null", ACL_ERROR_INVALID_PARAM, "data is NULL");
    us_require(&call, dataSizes != NULL, "dataSizes", "null", ACL_ERROR_INVALID_PARAM, "dataSizes is NULL");
    for (size_t i = 0; i < numAttributes && call.status == 0; i++) {
        require_question(&call, attributes[i], data[i], dataSizes[i]);
    }
    Common common = {0};
    for_pages(&call, ptr, size, add_page, &common);
    for (size_t i = 0; i < numAttributes && call.status == 0; i++) {
        tell(&common, attributes[i], data[i], dataSizes[i] / sizeof(int32_t));
    }
    return acl_end(&call);
}
