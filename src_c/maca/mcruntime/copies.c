/* Copies and fills (maca-runtime 5.3, 5.7, 5.8). What a queued copy touches is checked at the call and again when it
 * runs: the first gives mcErrorInvalidValue, the second mcErrorIllegalAddress at the next synchronise. */
#include "device/graph.h"
#include "maca/mcruntime/runtime.h"
#include "maca/mcruntime/staging.h"
#include "report/trace.h"

#include <stdio.h>

static bool kind_exists(mcMemcpyKind kind)
{
    return (unsigned int)kind <= mcMemcpyDefault;
}

static void set_sides(Copy *copy, mcMemcpyKind kind)
{
    static const Side sides[][2] = {
        [mcMemcpyHostToHost] = {SIDE_HOST, SIDE_HOST},
        [mcMemcpyHostToDevice] = {SIDE_DEVICE, SIDE_HOST},
        [mcMemcpyDeviceToHost] = {SIDE_HOST, SIDE_DEVICE},
        [mcMemcpyDeviceToDevice] = {SIDE_DEVICE, SIDE_DEVICE},
        [mcMemcpyDefault] = {SIDE_ANY, SIDE_ANY},
    };
    copy->destination_side = sides[kind][0];
    copy->source_side = sides[kind][1];
}

static bool is_pageable(Platform *platform, const void *address)
{
    Allocation block;
    return !us_memory_find(platform, address, &block);
}

static void require_copied(Call *call, CopyFault fault, const Explanation *why)
{
    us_require(call, fault != COPY_WRONG_SIDE, "kind", "direction", mcErrorInvalidValue, "%s", why->text);
    us_require(call, fault != COPY_FREED, "range", "freed", mcErrorInvalidValue, "%s", why->text);
    us_require(call, fault == COPY_OK, "range", "bounds", mcErrorInvalidValue, "%s", why->text);
}

/* Waits for what the default stream's next work would wait for. */
static void settle(Call *call, Stream *default_stream)
{
    require_queued(call, maca_stream_join(default_stream));
    runtime_synchronize(call, default_stream);
}

/* ---- copies that are queued -------------------------------------------------------------------------------------- */

/* The source is ordinary memory, which the program may reuse at once: it is read at the call. */
static bool queue_staged(Stream *stream, const Copy *copy, const char *name)
{
    StagedCopy *staged = runtime_stage(copy);
    if (staged == NULL) {
        return false;
    }
    Work work = {name, "copy", (uint64_t)copy->width * copy->height};
    Use use = us_use_of_rows(copy->destination, copy->destination_pitch, copy, true);
    if (!us_stream_submit_unrecorded(stream, work, (Uses){&use, 1}, runtime_run_staged, runtime_release_staged, staged)) {
        runtime_release_staged(staged);
        return false;
    }
    return true;
}

static void queue_copy(Call *call, Stream *stream, const Copy *copy)
{
    if (call->status != 0) {
        return;
    }
    bool queued = maca_stream_enter(stream);
    const bool pageable = is_pageable(stream->context->device->platform, copy->source);
    const bool staged = pageable && !us_stream_is_recorded(stream);
    if (queued) {
        queued = staged
                     ? queue_staged(stream, copy, call->function)
                     : us_stream_copy(stream, copy, call->function);
    }
    maca_stream_leave(stream);
    require_queued(call, queued);
    if (pageable && !staged && !us_stream_is_recorded(stream)) { /* another thread has ended the recording: maybe too early */
        runtime_synchronize(call, stream);
    }
}

/* ---- copies that are waited for: made by the calling thread once the default stream has come to rest ------------- */

/* On the timeline the work stands in the stream it belongs to, as queued copies do. */
static void trace_work(const Call *call, const Stream *stream, uint64_t start, uint64_t bytes)
{
    char arguments[96];
    snprintf(arguments, sizeof arguments, "\"stream\":%d,\"device\":%d,\"bytes\":%llu", (int)stream->id,
             (int)stream->context->device->ordinal, (unsigned long long)bytes);
    us_trace_event("copy", call->function, 1 + (int64_t)stream->id, start, us_now(), arguments);
}

static void copy_now(Call *call, Stream *default_stream, const Copy *copy)
{
    settle(call, default_stream);
    if (call->status == 0) {
        uint64_t start = us_tracing ? us_now() : 0;
        Explanation why = {{0}};
        CopyFault fault = us_copy_run(default_stream->context->device->platform, copy, &why);
        require_copied(call, fault, &why);
        if (us_tracing) {
            trace_work(call, default_stream, start, (uint64_t)copy->width * copy->height);
        }
    }
}

/* ---- the public forms -------------------------------------------------------------------------------------------- */

static mcError_t run_copy(Call call, Copy copy, mcMemcpyKind kind, mcStream_t handle, bool wait)
{
    us_require(&call, kind_exists(kind), "kind", "range", mcErrorInvalidMemcpyDirection,
               "kind is %d; kinds are 0 to 4", (int)kind);
    bool empty = copy.width == 0 || copy.height == 0;
    us_require(&call, copy.destination != NULL || empty, "dst", "null", mcErrorInvalidValue, "dst must not be NULL");
    us_require(&call, copy.source != NULL || empty, "src", "null", mcErrorInvalidValue, "src must not be NULL");
    Stream *stream = require_stream(&call, handle);
    if (call.status != 0 || empty) {
        return runtime_end(&call);
    }
    Platform *platform = stream->context->device->platform;
    set_sides(&copy, kind);
    maca_relax_pinned_side(copy.destination, &copy.destination_side);
    maca_relax_pinned_side(copy.source, &copy.source_side);
    Explanation why = {{0}};
    CopyFault fault = us_copy_check(platform, &copy, &why);
    require_copied(&call, fault, &why);
    if (wait) {
        copy_now(&call, stream, &copy);
    } else {
        queue_copy(&call, stream, &copy);
    }
    return runtime_end(&call);
}

static Copy plain(void *dst, const void *src, size_t n)
{
    return (Copy){.destination = dst, .source = src, .width = n, .height = 1};
}

mcError_t mcMemcpy(void *dst, const void *src, size_t n, mcMemcpyKind kind)
{
    return run_copy(us_call_begin("mcMemcpy"), plain(dst, src, n), kind, mcStreamLegacy, true);
}

mcError_t mcMemcpyAsync(void *dst, const void *src, size_t n, mcMemcpyKind kind, mcStream_t s)
{
    return run_copy(us_call_begin("mcMemcpyAsync"), plain(dst, src, n), kind, s, false);
}

static Copy rectangle(Call *call, void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height)
{
    us_require(call, width <= dpitch, "dpitch", "range", mcErrorInvalidPitchValue, "dpitch is %zu, width %zu", dpitch,
               width);
    us_require(call, width <= spitch, "spitch", "range", mcErrorInvalidPitchValue, "spitch is %zu, width %zu", spitch,
               width);
    return (Copy){.destination = dst, .source = src, .width = width, .height = height, .destination_pitch = dpitch,
                  .source_pitch = spitch};
}

mcError_t mcMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                     mcMemcpyKind kind)
{
    Call call = us_call_begin("mcMemcpy2D");
    Copy copy = rectangle(&call, dst, dpitch, src, spitch, width, height);
    return run_copy(call, copy, kind, mcStreamLegacy, true);
}

mcError_t mcMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                          mcMemcpyKind kind, mcStream_t s)
{
    Call call = us_call_begin("mcMemcpy2DAsync");
    Copy copy = rectangle(&call, dst, dpitch, src, spitch, width, height);
    return run_copy(call, copy, kind, s, false);
}

/* Whether `address` lies in a block of that device. */
static bool belongs_to(const void *address, int device)
{
    Allocation block;
    return us_memory_find(maca_platform(), address, &block) && block.device != NULL && block.device->ordinal == device;
}

mcError_t mcMemcpyPeerAsync(void *dst, int dstDev, const void *src, int srcDev, size_t n, mcStream_t s)
{
    Call call = us_call_begin("mcMemcpyPeerAsync");
    require_ordinal(&call, dstDev);
    require_ordinal(&call, srcDev);
    us_require(&call, dst == NULL || n == 0 || belongs_to(dst, dstDev), "dst", "device", mcErrorInvalidValue,
               "dst %p is not memory of device %d", dst, dstDev);
    us_require(&call, src == NULL || n == 0 || belongs_to(src, srcDev), "src", "device", mcErrorInvalidValue,
               "src %p is not memory of device %d", src, srcDev);
    return run_copy(call, plain(dst, src, n), mcMemcpyDeviceToDevice, s, false);
}

/* ---- fills ------------------------------------------------------------------------------------------------------- */

static void require_filled(Call *call, CopyFault fault, const Explanation *why)
{
    us_require(call, fault != COPY_FREED, "range", "freed", mcErrorInvalidValue, "%s", why->text);
    us_require(call, fault == COPY_OK, "range", "bounds", mcErrorInvalidValue, "%s", why->text);
}

static void fill_now(Call *call, Stream *default_stream, const Fill *fill)
{
    settle(call, default_stream);
    if (call->status == 0) {
        uint64_t start = us_tracing ? us_now() : 0;
        Explanation why = {{0}};
        CopyFault fault = us_fill_run(default_stream->context->device->platform, fill, &why);
        require_filled(call, fault, &why);
        if (us_tracing) {
            trace_work(call, default_stream, start, fill->count);
        }
    }
}

static void queue_fill(Call *call, Stream *stream, const Fill *fill)
{
    if (call->status == 0) {
        bool queued = maca_stream_enter(stream) && us_stream_fill(stream, fill, call->function);
        maca_stream_leave(stream);
        require_queued(call, queued);
    }
}

static mcError_t run_fill(Call call, void *p, int value, size_t n, mcStream_t handle, bool wait)
{
    us_require(&call, p != NULL || n == 0, "p", "null", mcErrorInvalidValue, "p must not be NULL");
    Stream *stream = require_stream(&call, handle);
    if (call.status != 0 || n == 0) {
        return runtime_end(&call);
    }
    Platform *platform = stream->context->device->platform;
    us_require(&call, !is_pageable(platform, p), "p", "device", mcErrorInvalidValue,
               "%p is ordinary host memory, which the device cannot reach", p);
    Fill fill = {.destination = p, .count = n, .element_size = 1, .value = (uint32_t)value & 0xff};
    Explanation why = {{0}};
    CopyFault fault = us_fill_check(platform, &fill, &why);
    require_filled(&call, fault, &why);
    if (wait) {
        fill_now(&call, stream, &fill);
    } else {
        queue_fill(&call, stream, &fill);
    }
    return runtime_end(&call);
}

mcError_t mcMemset(void *p, int value, size_t n)
{
    return run_fill(us_call_begin("mcMemset"), p, value, n, mcStreamLegacy, true);
}

mcError_t mcMemsetAsync(void *p, int value, size_t n, mcStream_t s)
{
    return run_fill(us_call_begin("mcMemsetAsync"), p, value, n, s, false);
}
