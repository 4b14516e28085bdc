/* Copies that memory describes, which a stream reads when it comes to them; prefetching (cann-runtime-3 10, doc 11-03 and
 * 11-06). */
#include "ascend/ascendcl/transfer.h"

#include <stdlib.h>
#include <string.h>

static void require_product(Call *call)
{
    us_require(call, ascend_product()->product != PRODUCT_910A, "device", "unsupported",
               ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "devices of the %s do not do this", ascend_product()->series);
}

static void require_kind(Call *call, aclrtMemcpyKind kind)
{
    us_require(call, kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, "kind", "range", ACL_ERROR_INVALID_PARAM,
               "kind is %d; it must be 6, a copy inside a device", (int)kind);
}

/* ---- what lies in the device's memory ---- */

typedef struct Description {
    uint64_t mark; /* what DESCRIPTION_MARK says: other bytes are no description */
    uint64_t source, destination, count;
} Description;

static const uint64_t DESCRIPTION_MARK = UINT64_C(0x6370795f64657363);

/* Writes to memory of the device, now: rule <parameter>/memory. */
static void write_device(Call *call, const char *parameter, void *address, const void *bytes, size_t size)
{
    Platform *platform = acl_require_platform(call);
    Explanation why = {""};
    void *opened = platform != NULL
                       ? us_memory_open(platform, NULL, address, size, MEMORY_USER_COPY, &why)
                       : NULL;
    Allocation block;
    bool device = opened != NULL && us_memory_find(platform, address, &block) && block.kind != MEMORY_PINNED;
    us_require(call, device, parameter, "memory", ACL_ERROR_RT_PARAM_INVALID,
               "%s needs %zu bytes of device memory at %p%s%s", parameter, size, address, why.text[0] ? ": " : "",
               why.text);
    if (call->status == 0) {
        memcpy(opened, bytes, size);
    }
}

aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t *descSize)
{
    Call call = us_call_begin("aclrtGetMemcpyDescSize");
    us_require(&call, descSize != NULL, "descSize", "null", ACL_ERROR_INVALID_PARAM, "descSize is NULL");
    require_kind(&call, kind);
    require_product(&call);
    if (call.status == 0) {
        *descSize = sizeof(Description);
    }
    return acl_end(&call);
}

aclError aclrtSetMemcpyDesc(void *desc, aclrtMemcpyKind kind, void *srcAddr, void *dstAddr, size_t count, void *config)
{
    Call call = us_call_begin("aclrtSetMemcpyDesc");
    us_require(&call, desc != NULL, "desc", "null", ACL_ERROR_INVALID_PARAM, "desc is NULL");
    us_require(&call, srcAddr != NULL, "srcAddr", "null", ACL_ERROR_INVALID_PARAM, "srcAddr is NULL");
    us_require(&call, dstAddr != NULL, "dstAddr", "null", ACL_ERROR_INVALID_PARAM, "dstAddr is NULL");
    us_require(&call, count > 0, "count", "zero", ACL_ERROR_INVALID_PARAM, "count is 0; it must be at least 1");
    us_require(&call, config == NULL, "config", "reserved", ACL_ERROR_RT_PARAM_INVALID, "config is %p; it must be NULL",
               config);
    require_kind(&call, kind);
    require_product(&call);
    Description description = {DESCRIPTION_MARK, (uintptr_t)srcAddr, (uintptr_t)dstAddr, count};
    write_device(&call, "desc", desc, &description, sizeof description);
    return acl_end(&call);
}

/* ---- tasks ---- */

typedef struct IndirectCopy {
    Device *device;
    const void *description; /* NULL: the cells below */
    void *const *destination;
    const void *const *source;
    size_t destination_offset, source_offset, count;
} IndirectCopy;

static bool read_device(const IndirectCopy *task, const void *address, void *bytes, size_t size, Explanation *why)
{
    const void *opened = us_memory_open(task->device->platform, NULL, address, size, MEMORY_USER_COPY, why);
    if (opened != NULL) {
        memcpy(bytes, opened, size);
    }
    return opened != NULL;
}

static bool describe(const IndirectCopy *task, Copy *copy, Explanation *why)
{
    *copy = (Copy){.height = 1, .destination_side = SIDE_DEVICE, .source_side = SIDE_DEVICE};
    if (task->description == NULL) {
        char *destination = NULL;
        const char *source = NULL;
        bool read = read_device(task, task->destination, &destination, sizeof destination, why) &&
                    read_device(task, task->source, &source, sizeof source, why);
        copy->destination = (void *)((uintptr_t)destination + task->destination_offset);
        copy->source = (const void *)((uintptr_t)source + task->source_offset);
        copy->width = task->count;
        return read;
    }
    Description description = {0};
    if (!read_device(task, task->description, &description, sizeof description, why)) {
        return false;
    }
    if (description.mark != DESCRIPTION_MARK) {
        us_explain(why, "the memory at %p holds no description of a copy", task->description);
        return false;
    }
    copy->destination = (void *)(uintptr_t)description.destination;
    copy->source = (const void *)(uintptr_t)description.source;
    copy->width = description.count;
    return true;
}

static DeviceFault run_copy(void *argument, Explanation *why)
{
    const IndirectCopy *task = argument;
    Copy copy;
    bool done = describe(task, &copy, why) && us_copy_perform(task->device->platform, &copy, why) == COPY_OK;
    return done ? DEVICE_FAULT_NONE : DEVICE_FAULT_COPY;
}

static void queue(Call *call, const IndirectCopy *task, Stream *stream)
{
    IndirectCopy *kept = call->status == 0 ? malloc(sizeof *kept) : NULL;
    bool queued = kept != NULL;
    if (queued) {
        *kept = *task;
        kept->device = stream->context->device;
        queued = us_stream_submit_work(stream, (Work){call->function, "copy", task->count}, run_copy, free, kept);
    }
    us_require(call, queued, "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the copy");
    if (!queued) {
        free(kept);
    }
}

aclError aclrtMemcpyAsyncWithDesc(void *desc, aclrtMemcpyKind kind, aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemcpyAsyncWithDesc");
    us_require(&call, desc != NULL, "desc", "null", ACL_ERROR_INVALID_PARAM, "desc is NULL");
    require_kind(&call, kind);
    require_product(&call);
    Stream *on = acl_require_task_stream(&call, stream);
    queue(&call, &(IndirectCopy){.description = desc}, on);
    return acl_end(&call);
}

aclError aclrtMemcpyAsyncWithOffset(void **dst, size_t destMax, size_t dstDataOffset, const void **src, size_t count,
                                    size_t srcDataOffset, aclrtMemcpyKind kind, aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemcpyAsyncWithOffset");
    us_require(&call, dst != NULL, "dst", "null", ACL_ERROR_INVALID_PARAM, "dst is NULL");
    us_require(&call, src != NULL, "src", "null", ACL_ERROR_INVALID_PARAM, "src is NULL");
    us_require(&call, count > 0, "count", "zero", ACL_ERROR_INVALID_PARAM, "count is 0; it must be at least 1");
    us_require(&call, count <= destMax, "count", "limit", ACL_ERROR_RT_PARAM_INVALID,
               "count is %zu, but there is room for %zu bytes only", count, destMax);
    require_kind(&call, kind);
    Stream *on = acl_require_task_stream(&call, stream);
    IndirectCopy task = {.destination = dst, .source = src, .destination_offset = dstDataOffset,
                         .source_offset = srcDataOffset, .count = count};
    queue(&call, &task, on);
    return acl_end(&call);
}

/* ---- prefetching: nothing is cached between a device and its memory ---- */

static void require_prefetch(Call *call, aclrtCmoType type)
{
    us_require(call, type == ACL_RT_CMO_TYPE_PREFETCH, "cmoType", "unsupported", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "cmoType is %d; only 0, prefetching, exists on this product", (int)type);
    require_product(call);
}

aclError aclrtCmoAsync(void *src, size_t size, aclrtCmoType cmoType, aclrtStream stream)
{
    Call call = us_call_begin("aclrtCmoAsync");
    us_require(&call, src != NULL, "src", "null", ACL_ERROR_INVALID_PARAM, "src is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    require_prefetch(&call, cmoType);
    acl_require_task_stream(&call, stream);
    return acl_end(&call);
}

aclError aclrtCmoGetDescSize(size_t *size)
{
    Call call = us_call_begin("aclrtCmoGetDescSize");
    us_require(&call, size != NULL, "size", "null", ACL_ERROR_INVALID_PARAM, "size is NULL");
    require_product(&call);
    if (call.status == 0) {
        *size = sizeof(Description);
    }
    return acl_end(&call);
}

aclError aclrtCmoSetDesc(void *cmoDesc, void *src, size_t size)
{
    Call call = us_call_begin("aclrtCmoSetDesc");
    us_require(&call, cmoDesc != NULL, "cmoDesc", "null", ACL_ERROR_INVALID_PARAM, "cmoDesc is NULL");
    us_require(&call, src != NULL, "src", "null", ACL_ERROR_INVALID_PARAM, "src is NULL");
    us_require(&call, size > 0, "size", "zero", ACL_ERROR_INVALID_PARAM, "size is 0; it must be at least 1");
    require_product(&call);
    Description description = {DESCRIPTION_MARK, (uintptr_t)src, 0, size};
    write_device(&call, "cmoDesc", cmoDesc, &description, sizeof description);
    return acl_end(&call);
}

aclError aclrtCmoAsyncWithDesc(void *cmoDesc, aclrtCmoType cmoType, aclrtStream stream, const void *reserve)
{
    Call call = us_call_begin("aclrtCmoAsyncWithDesc");
    us_require(&call, cmoDesc != NULL, "cmoDesc", "null", ACL_ERROR_INVALID_PARAM, "cmoDesc is NULL");
    us_require(&call, reserve == NULL, "reserve", "reserved", ACL_ERROR_RT_PARAM_INVALID, "reserve is %p; it must be NULL",
               reserve);
    require_prefetch(&call, cmoType);
    acl_require_task_stream(&call, stream);
    return acl_end(&call);
}
