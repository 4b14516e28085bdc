#include "device/ranges.h"

#include "report/descriptor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

size_t us_page_size(void)
{
    static size_t known;
    size_t size = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (size == 0) {
        long asked = sysconf(_SC_PAGESIZE);
        size = asked > 0 ? (size_t)asked : 4096;
        __atomic_store_n(&known, size, __ATOMIC_RELAXED);
    }
    return size;
}

size_t us_large_page_size(void)
{
    return (size_t)2 << 20;
}

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

/* Bytes of address space this process may use; SIZE_MAX: no limit. */
static size_t address_space_limit(void)
{
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? limit.rlim_cur : SIZE_MAX;
}

void us_ranges_init(Ranges *ranges, const RangeProfile *profile)
{
    memset(ranges, 0, sizeof *ranges);
    ranges->profile = *profile;
    size_t most = address_space_limit() / 8;
    ranges->profile.comfortable = profile->comfortable < most ? profile->comfortable : most;
    ranges->granule = profile->large_pages ? us_large_page_size() : us_page_size();
}

/* ---- lists ---- */

static void append(RangeList *list, Range *range)
{
    range->previous = list->last;
    range->next = NULL;
    if (list->last != NULL) {
        list->last->next = range;
    } else {
        list->first = range;
    }
    list->last = range;
    list->count++;
    list->bytes += range->length;
}

static void unlink_range(RangeList *list, Range *range)
{
    *(range->previous != NULL ? &range->previous->next : &list->first) = range->next;
    *(range->next != NULL ? &range->next->previous : &list->last) = range->previous;
    list->count--;
    list->bytes -= range->length;
}

static int size_class(const Ranges *ranges, size_t length)
{
    return 63 - __builtin_clzll(length / ranges->granule);
}

static RangeList *list_of_free(Ranges *ranges, const Range *range)
{
    return &ranges->free[size_class(ranges, range->length)];
}

/* ---- owners ---- */

static Range **owner_of(const Ranges *ranges, const Region *region, uintptr_t address)
{
    return &region->owners[(address - region->base) / ranges->granule];
}

static void set_owners(const Ranges *ranges, const Range *range, Range *owner)
{
    Range **owners = owner_of(ranges, range->region, range->start);
    for (size_t i = 0; i < range->length / ranges->granule; i++) {
        owners[i] = owner;
    }
}

static void set_ends(const Ranges *ranges, const Range *range, Range *owner)
{
    *owner_of(ranges, range->region, range->start) = owner;
    *owner_of(ranges, range->region, range->start + range->length - 1) = owner;
}

static void add_free(Ranges *ranges, Range *range)
{
    range->state = RANGE_FREE;
    append(list_of_free(ranges, range), range);
    set_ends(ranges, range, range);
}

static void remove_free(Ranges *ranges, Range *range)
{
    unlink_range(list_of_free(ranges, range), range);
    set_ends(ranges, range, NULL);
}

/* ---- regions ---- */

/* Bytes that may still be mapped; SIZE_MAX: no limit. */
static size_t address_space_left(void)
{
    size_t limit = address_space_limit();
    if (limit == SIZE_MAX) {
        return SIZE_MAX;
    }
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%zu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    size_t used = pages * us_page_size();
    return limit > used ? limit - used : 0;
}

static void *reserve(size_t span, int protection)
{
    void *base = mmap(NULL, span, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return base != MAP_FAILED ? base : NULL;
}

/* Gives back what lies outside the `span` bytes from the first large page on. */
static uintptr_t trim(void *base, size_t reserved, size_t span)
{
    uintptr_t first = round_up((uintptr_t)base, us_large_page_size());
    if (first > (uintptr_t)base) {
        munmap(base, first - (uintptr_t)base);
    }
    uintptr_t end = (uintptr_t)base + reserved;
    if (end > first + span) {
        munmap((void *)(first + span), end - first - span);
    }
    return first;
}

/* Neighbours are one mapping for the kernel only when they are alike. */
static void advise(uintptr_t first, size_t span, bool large_memory)
{
    madvise((void *)first, span, MADV_DONTDUMP);
    if (large_memory) {
        madvise((void *)first, span, MADV_HUGEPAGE);
    }
}

static uintptr_t reserve_aligned(size_t span, bool memory, bool large_pages)
{
    size_t reserved = span + us_large_page_size();
    void *base = reserve(reserved, memory ? PROT_READ | PROT_WRITE : PROT_NONE);
    if (base == NULL) {
        return 0;
    }
    uintptr_t first = trim(base, reserved, span);
    advise(first, span, memory && large_pages);
    return first;
}

/* Puts shared memory at the region's addresses and at others. */
static void view_twice(Region *region)
{
    int file = us_descriptor(memfd_create("understudy", MFD_CLOEXEC));
    if (file < 0) {
        return;
    }
    enum { PROTECTION = PROT_READ | PROT_WRITE, FLAGS = MAP_SHARED | MAP_NORESERVE };
    const size_t span = region->span;
    void *first = (void *)region->base;
    void *second = ftruncate(file, (off_t)span) == 0 ? mmap(NULL, span, PROTECTION, FLAGS, file, 0) : MAP_FAILED;
    if (second != MAP_FAILED && mmap(first, span, PROTECTION, FLAGS | MAP_FIXED, file, 0) != MAP_FAILED) {
        region->alias = (ptrdiff_t)((uintptr_t)second - region->base);
        madvise(first, span, MADV_DONTDUMP);
        madvise(second, span, MADV_DONTDUMP);
    }
    close(file);
}

static bool reserve_region(const Ranges *ranges, size_t span, Region *region)
{
    const RangeProfile *profile = &ranges->profile;
    *region = (Region){.span = span};
    /* Most of them are never looked at; calloc would clear megabytes wherever the heap has room for them. */
    const size_t owners = span / ranges->granule * sizeof *region->owners;
    region->owners = reserve(owners, PROT_READ | PROT_WRITE);
    if (region->owners != NULL) {
        bool memory = profile->view == REGION_MEMORY || profile->view == REGION_TWICE;
        region->base = reserve_aligned(span, memory, profile->large_pages);
    }
    if (region->base != 0 && profile->view == REGION_TWICE) {
        view_twice(region);
    }
    if (region->base != 0 && profile->view == REGION_BOTH) {
        uintptr_t memory = reserve_aligned(span, true, profile->large_pages);
        if (memory != 0) {
            region->alias = (ptrdiff_t)(memory - region->base);
        } else {
            munmap((void *)region->base, span);
            region->base = 0;
        }
    }
    if (region->base == 0 && region->owners != NULL) {
        munmap(region->owners, owners);
    }
    return region->base != 0;
}

/* Reserves a region with room for a range of `wanted` bytes, larger if it may be. */
static bool grow(Ranges *ranges, size_t wanted)
{
    enum { DOUBLINGS = 4, SHARES = 256 }; /* 64 devices have four kinds of ranges */
    size_t large = us_large_page_size();
    if (ranges->region_count == REGION_LIMIT || wanted > (size_t)1 << 46) {
        return false;
    }
    /* A granule at each end stays free, so that just outside a block is still inside the region. */
    size_t least = round_up(wanted + 2 * ranges->granule, large);
    size_t share = address_space_left() / SHARES / large * large;
    size_t span = ranges->profile.first_span < share ? ranges->profile.first_span : share;
    span <<= ranges->region_count < DOUBLINGS ? ranges->region_count : DOUBLINGS;
    span = span > least ? span : least;
    Region *region = &ranges->regions[ranges->region_count];
    Range *inside = calloc(1, sizeof *inside);
    bool reserved = inside != NULL && reserve_region(ranges, span, region);
    while (inside != NULL && !reserved && span > least) {
        span = span / 2 > least ? round_up(span / 2, large) : least;
        reserved = reserve_region(ranges, span, region);
    }
    if (!reserved) {
        free(inside);
        return false;
    }
    ranges->reserved += span;
    *inside = (Range){.start = region->base + ranges->granule, .length = span - 2 * ranges->granule, .region = region};
    add_free(ranges, inside);
    __atomic_store_n(&ranges->region_count, ranges->region_count + 1, __ATOMIC_RELEASE);
    return true;
}

/* ---- rest ---- */

/* Joins a range that nobody uses with its free neighbours. */
static void make_free(Ranges *ranges, Range *range)
{
    set_owners(ranges, range, NULL);
    Range *before = *owner_of(ranges, range->region, range->start - 1);
    if (before != NULL && before->state == RANGE_FREE) {
        remove_free(ranges, before);
        range->start = before->start;
        range->length += before->length;
        free(before);
    }
    uintptr_t end = range->start + range->length;
    Range *behind = *owner_of(ranges, range->region, end);
    if (behind != NULL && behind->state == RANGE_FREE) {
        remove_free(ranges, behind);
        range->length += behind->length;
        free(behind);
    }
    add_free(ranges, range);
}

/* Ends the rest of the range that has rested longest. */
static void wake_oldest(Ranges *ranges)
{
    Range *range = ranges->resting.first;
    unlink_range(&ranges->resting, range);
    make_free(ranges, range);
}

void us_ranges_give(Ranges *ranges, Range *range)
{
    unlink_range(&ranges->taken, range);
    range->state = RANGE_RESTING;
    append(&ranges->resting, range);
    size_t ours = ranges->reserved > ranges->profile.comfortable ? ranges->reserved : ranges->profile.comfortable;
    while (ranges->resting.count > ranges->profile.rest_limit ||
           (ranges->resting.count > 1 && ranges->resting.bytes > ours / 4)) {
        wake_oldest(ranges);
    }
}

/* ---- take ---- */

static Range *find_free(const Ranges *ranges, size_t wanted)
{
    enum { LOOK_AT = 32 }; /* of the ranges that may be too small */
    int class = size_class(ranges, wanted);
    int looked = 0;
    for (Range *range = ranges->free[class].first; range != NULL && looked < LOOK_AT; range = range->next, looked++) {
        if (range->length >= wanted) {
            return range;
        }
    }
    for (class++; class < RANGE_SIZES; class++) {
        if (ranges->free[class].first != NULL) {
            return ranges->free[class].first;
        }
    }
    return NULL;
}

static bool fits_a_region(const Ranges *ranges, size_t wanted)
{
    bool fits = false;
    for (size_t i = 0; i < ranges->region_count && !fits; i++) {
        fits = wanted <= ranges->regions[i].span - 2 * ranges->granule;
    }
    return fits;
}

/* A free range of that size, whatever has to be done for it; NULL: impossible. */
static Range *provide(Ranges *ranges, size_t wanted)
{
    Range *found = find_free(ranges, wanted);
    if (found == NULL && ranges->reserved < ranges->profile.comfortable && grow(ranges, wanted)) {
        found = find_free(ranges, wanted);
    }
    while (found == NULL && ranges->resting.first != NULL && fits_a_region(ranges, wanted)) {
        wake_oldest(ranges);
        found = find_free(ranges, wanted);
    }
    if (found == NULL && grow(ranges, wanted)) {
        found = find_free(ranges, wanted);
    }
    return found;
}

/* Makes the part [start, end) of a free range one of its own, in no list; NULL: no memory. */
static Range *cut_out(Ranges *ranges, Range *range, uintptr_t start, uintptr_t end)
{
    uintptr_t range_end = range->start + range->length;
    Range *front = start > range->start ? calloc(1, sizeof *front) : NULL;
    Range *back = end < range_end ? calloc(1, sizeof *back) : NULL;
    if ((front == NULL && start > range->start) || (back == NULL && end < range_end)) {
        free(front);
        free(back);
        return NULL;
    }
    remove_free(ranges, range);
    if (front != NULL) {
        *front = (Range){.start = range->start, .length = start - range->start, .region = range->region};
        add_free(ranges, front);
    }
    if (back != NULL) {
        *back = (Range){.start = end, .length = range_end - end, .region = range->region};
        add_free(ranges, back);
    }
    *range = (Range){.start = start, .length = end - start, .region = range->region};
    return range;
}

Range *us_ranges_take(Ranges *ranges, size_t length, size_t alignment)
{
    size_t unit = alignment > ranges->granule ? alignment : ranges->granule;
    if (length > SIZE_MAX / 4 || unit > SIZE_MAX / 4) {
        return NULL;
    }
    length = round_up(length, ranges->granule);
    Range *free_range = provide(ranges, length + unit - ranges->granule);
    if (free_range == NULL) {
        return NULL;
    }
    uintptr_t start = round_up(free_range->start, unit);
    Range *range = cut_out(ranges, free_range, start, start + length);
    if (range != NULL) {
        range->state = RANGE_TAKEN;
        append(&ranges->taken, range);
        set_owners(ranges, range, range);
    }
    return range;
}

/* ---- look up ---- */

const Region *us_ranges_hold(const Ranges *ranges, uintptr_t address, size_t size)
{
    size_t count = __atomic_load_n(&ranges->region_count, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < count; i++) {
        const Region *region = &ranges->regions[i];
        bool begins_before = address < region->base && size > region->base - address;
        if (address - region->base < region->span || begins_before) {
            return region;
        }
    }
    return NULL;
}

void us_ranges_empty(const Ranges *ranges, uintptr_t address, size_t size)
{
    uintptr_t memory = address + (uintptr_t)us_ranges_hold(ranges, address, 0)->alias;
    mmap((void *)memory, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    advise(memory, size, ranges->profile.large_pages);
}

Range *us_ranges_find(const Ranges *ranges, uintptr_t address)
{
    const Region *region = us_ranges_hold(ranges, address, 0);
    Range *range = region != NULL ? *owner_of(ranges, region, address) : NULL;
    return range != NULL && range->state != RANGE_FREE ? range : NULL;
}
