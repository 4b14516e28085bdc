/* Plain copies and fills, synchronous and queued (cann-runtime 8 and 9, doc 11-03). */
#include "ascend/ascendcl/transfer.h"

#include "device/graph.h"

bool acl_sides_of_kind(aclrtMemcpyKind kind, Side *destination, Side *source)
{
    switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
        *source = SIDE_HOST, *destination = SIDE_HOST;
        return true;
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
        *source = SIDE_HOST, *destination = SIDE_DEVICE;
        return true;
    case ACL_MEMCPY_DEVICE_TO_HOST:
        *source = SIDE_DEVICE, *destination = SIDE_HOST;
        return true;
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
        *source = SIDE_DEVICE, *destination = SIDE_DEVICE;
        return true;
    case ACL_MEMCPY_DEFAULT:
        *source = SIDE_ANY, *destination = SIDE_ANY;
        return true;
    default:
        return false;
    }
}

static void refuse_transfer(Call *call, CopyFault fault, const Explanation *why)
{
    switch (fault) {
    case COPY_OK:
        break;
    case COPY_WRONG_SIDE:
        us_refuse(call, "kind", "direction", ACL_ERROR_RT_PARAM_INVALID, "%s", why->text);
        break;
    case COPY_OUT_OF_BOUNDS:
        us_refuse(call, "count", "bounds", ACL_ERROR_RT_PARAM_INVALID, "%s", why->text);
        break;
    case COPY_FREED:
        us_refuse(call, "memory", "freed", ACL_ERROR_RT_PARAM_INVALID, "%s", why->text);
        break;
    }
}

void acl_run_copy(Call *call, const Copy *copy)
{
    Platform *platform = acl_require_platform(call);
    acl_require_safe(call);
    if (call->status == 0) {
        Explanation why = {""};
        refuse_transfer(call, us_copy_run(platform, copy, &why), &why);
    }
}

void acl_run_fill(Call *call, const Fill *fill)
{
    Platform *platform = acl_require_platform(call);
    acl_require_safe(call);
    if (call->status == 0) {
        Explanation why = {""};
        refuse_transfer(call, us_fill_run(platform, fill, &why), &why);
    }
}

/* ---- queued ---- */

static bool is_pageable(Platform *platform, const void *address)
{
    Allocation block;
    return !us_memory_find(platform, address, &block);
}

/* Such a copy is finished when its call returns: no capture can record it, and while another stream is captured it is as
 * unsafe as a synchronous one (cann-runtime-3 13.1). */
static void require_pageable(Call *call, const Stream *stream)
{
    if (call->status == 0 && us_capture_status(stream, NULL) != CAPTURE_NONE) {
        us_capture_invalidate(stream);
        us_refuse(call, "stream", "pageable", ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                  "a copy with pageable host memory is finished when the call returns, which a capture cannot do");
    }
    acl_require_safe(call);
}

void acl_queue_copy(Call *call, const Copy *copy, aclrtStream handle)
{
    Stream *stream = acl_require_task_stream(call, handle);
    if (call->status != 0) {
        return;
    }
    Platform *platform = stream->context->device->platform;
    Explanation why = {""};
    refuse_transfer(call, us_copy_check(platform, copy, &why), &why);
    bool pageable = is_pageable(platform, copy->destination) || is_pageable(platform, copy->source);
    if (pageable) {
        require_pageable(call, stream);
    }
    if (call->status != 0) {
        return;
    }
    const uint32_t past_aborts = acl_past_aborts(stream->context->device);
    const bool queued = pageable ? us_stream_copy_unrecorded(stream, copy, call->function)
                                 : us_stream_copy(stream, copy, call->function);
    us_require(call, queued, "stream", "resources", ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the copy");
    if (call->status == 0 && pageable) {
        us_stream_synchronize(stream, -1); /* a fault stays on the stream for the next synchronise */
        acl_require_no_abort_since(call, stream->context->device, past_aborts);
    }
}

void acl_queue_fill(Call *call, const Fill *fill, aclrtStream handle)
{
    Stream *stream = acl_require_task_stream(call, handle);
    if (call->status != 0) {
        return;
    }
    Explanation why = {""};
    refuse_transfer(call, us_fill_check(stream->context->device->platform, fill, &why), &why);
    if (call->status == 0) {
        us_require(call, us_stream_fill(stream, fill, call->function), "stream", "resources",
                   ACL_ERROR_RT_MEMORY_ALLOCATION, "no host memory to queue the fill");
    }
}

/* ---- plain copies ---- */

void acl_prepare_copy(Call *call, Copy *copy, void *dst, size_t destMax, const void *src, size_t count,
                      aclrtMemcpyKind kind)
{
    us_require(call, dst != NULL, "dst", "null", ACL_ERROR_INVALID_PARAM, "dst is NULL");
    us_require(call, src != NULL, "src", "null", ACL_ERROR_INVALID_PARAM, "src is NULL");
    *copy = (Copy){.destination = dst, .source = src, .width = count, .height = 1};
    us_require(call, acl_sides_of_kind(kind, &copy->destination_side, &copy->source_side), "kind", "range",
               ACL_ERROR_INVALID_PARAM, "kind is %d; it must be 0 to 5", (int)kind);
    us_require(call, destMax > 0, "destMax", "zero", ACL_ERROR_RT_PARAM_INVALID,
               "destMax is 0; dst must have room for count bytes");
    us_require(call, count <= destMax, "count", "limit", ACL_ERROR_RT_PARAM_INVALID,
               "count is %zu, but dst may take only %zu bytes", count, destMax);
    us_require(call, count > 0, "count", "zero", ACL_ERROR_RT_PARAM_INVALID, "count is 0; it must be at least 1");
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
    Call call = us_call_begin("aclrtMemcpy");
    Copy copy;
    acl_prepare_copy(&call, &copy, dst, destMax, src, count, kind);
    if (acl_require_platform(&call) != NULL && dst != src) { /* onto itself: 0, whatever lies there (cann-runtime 8) */
        acl_run_copy(&call, &copy);
    }
    return acl_end(&call);
}

static void copy_async(Call *call, void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                       aclrtStream stream)
{
    Copy copy;
    acl_prepare_copy(call, &copy, dst, destMax, src, count, kind);
    us_require(call, kind != ACL_MEMCPY_HOST_TO_HOST, "kind", "host-to-host", ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               "a stream does not copy from host to host");
    acl_queue_copy(call, &copy, stream);
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemcpyAsync");
    copy_async(&call, dst, destMax, src, count, kind, stream);
    return acl_end(&call);
}

aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                                       aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemcpyAsyncWithCondition");
    copy_async(&call, dst, destMax, src, count, kind, stream);
    return acl_end(&call);
}

/* ---- fills ---- */

static void prepare_fill(Call *call, Fill *fill, void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    us_require(call, devPtr != NULL, "devPtr", "null", ACL_ERROR_INVALID_PARAM, "devPtr is NULL");
    us_require(call, count <= maxCount, "count", "limit", ACL_ERROR_RT_PARAM_INVALID,
               "count is %zu, but devPtr may take only %zu bytes", count, maxCount);
    us_require(call, count > 0, "count", "zero", ACL_ERROR_RT_PARAM_INVALID, "count is 0; it must be at least 1");
    *fill = (Fill){.destination = devPtr, .count = count, .element_size = 1, .value = (uint32_t)value & 0xff};
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    Call call = us_call_begin("aclrtMemset");
    Fill fill;
    prepare_fill(&call, &fill, devPtr, maxCount, value, count);
    acl_run_fill(&call, &fill);
    return acl_end(&call);
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemsetAsync");
    Fill fill;
    prepare_fill(&call, &fill, devPtr, maxCount, value, count);
    acl_queue_fill(&call, &fill, stream);
    return acl_end(&call);
}

/* ---- fills with 32-bit words ---- */

static void prepare_words(Call *call, Fill *fill, void *address, size_t size, uint32_t value, size_t count)
{
    us_require(call, address != NULL, "ptr", "null", ACL_ERROR_INVALID_PARAM, "ptr is NULL");
    us_require(call, (uintptr_t)address % sizeof value == 0, "ptr", "alignment", ACL_ERROR_INVALID_PARAM,
               "ptr is %p; it must be a multiple of 4", address);
    us_require(call, count <= size / sizeof value, "N", "limit", ACL_ERROR_INVALID_PARAM,
               "N is %zu words, but ptr may take only %zu bytes", count, size);
    *fill = (Fill){.destination = address, .count = count, .element_size = sizeof value, .value = value};
}

aclError aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t N)
{
    Call call = us_call_begin("aclrtMemsetD32");
    Fill fill;
    prepare_words(&call, &fill, ptr, memSize, value, N);
    if (N > 0) {
        acl_run_fill(&call, &fill);
    }
    return acl_end(&call);
}

aclError aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value, size_t N, aclrtStream stream)
{
    Call call = us_call_begin("aclrtMemsetD32Async");
    Fill fill;
    prepare_words(&call, &fill, ptr, memSize, value, N);
    if (N > 0) {
        acl_queue_fill(&call, &fill, stream);
    }
    return acl_end(&call);
}
