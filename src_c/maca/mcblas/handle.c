/* Handles, their settings, statuses as text (mcblas 4). */
#include "call.h"
#include "status_texts.h"

#include "maca/common/platform.h"

#include <string.h>

/* ---- handles ----------------------------------------------------------------------------------------------------- */

mcblasStatus_t mcblasCreate(mcblasHandle_t *handle)
{
    Call call = us_call_begin("mcblasCreate");
    check_pointer(&call, "handle", handle);
    Device *device = call.status == 0 ? maca_device() : NULL;
    us_require(&call, device != NULL, "handle", "device", MCBLAS_STATUS_NOT_INITIALIZED,
               "device %d does not exist or cannot be started", maca_device_ordinal());
    Blas initial = {.device = device};
    void *made = call.status == 0 ? us_handle_new(HANDLE_BLAS, &initial, sizeof initial) : NULL;
    us_require(&call, made != NULL, "handle", "memory", MCBLAS_STATUS_ALLOC_FAILED, "no host memory for a handle");
    if (call.status == 0) {
        *handle = made;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasDestroy(mcblasHandle_t handle)
{
    Call call = us_call_begin("mcblasDestroy");
    const Blas *blas = blas_of(&call, handle);
    if (call.status == 0) {
        if (!maca_in_host_function()) { /* which would wait for itself */
            us_device_synchronize(blas->device, -1);
        }
        us_handle_release(handle, HANDLE_BLAS);
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasSetStream(mcblasHandle_t handle, mcStream_t streamId)
{
    Call call = us_call_begin("mcblasSetStream");
    Blas *blas = blas_of(&call, handle);
    if (call.status == 0 && streamId != NULL && streamId != mcStreamLegacy) {
        const Stream *stream = maca_stream(streamId);
        us_require(&call, stream != NULL, "streamId", "alive", MCBLAS_STATUS_INVALID_VALUE,
                   "streamId is %p, which is not a stream (destroyed before, or another thing)", (void *)streamId);
        us_require(&call, stream->context->device == blas->device, "streamId", "device", MCBLAS_STATUS_INVALID_VALUE,
                   "the stream belongs to device %d, the handle to device %d", stream->context->device->ordinal,
                   blas->device->ordinal);
    }
    if (call.status == 0) {
        blas->stream = streamId;
    }
    return us_call_end(&call);
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

/* Copies a member of the handle, of the type that the pointer has. */
static mcblasStatus_t give_setting(const char *function, mcblasHandle_t handle, const char *parameter, void *to,
                                   size_t member, size_t size)
{
    Call call = us_call_begin(function);
    const Blas *blas = blas_of(&call, handle);
    check_pointer(&call, parameter, to);
    if (call.status == 0) {
        memcpy(to, (const char *)blas + member, size);
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasGetStream(mcblasHandle_t handle, mcStream_t *streamId)
{
    return give_setting("mcblasGetStream", handle, "streamId", streamId, offsetof(Blas, stream), sizeof *streamId);
}

mcblasStatus_t mcblasSetWorkspace(mcblasHandle_t handle, void *workspace, size_t workspaceSizeInBytes)
{
    Call call = us_call_begin("mcblasSetWorkspace");
    blas_of(&call, handle);
    us_require(&call, (uintptr_t)workspace % 256 == 0, "workspace", "alignment", MCBLAS_STATUS_INVALID_VALUE,
               "workspace is %p (%zu bytes), not aligned to 256 bytes", workspace, workspaceSizeInBytes);
    return us_call_end(&call);
}

mcblasStatus_t mcblasGetPointerMode(mcblasHandle_t handle, mcblasPointerMode_t *mode)
{
    return give_setting("mcblasGetPointerMode", handle, "mode", mode, offsetof(Blas, pointer_mode), sizeof *mode);
}

mcblasStatus_t mcblasSetPointerMode(mcblasHandle_t handle, mcblasPointerMode_t mode)
{
    Call call = us_call_begin("mcblasSetPointerMode");
    Blas *blas = blas_of(&call, handle);
    us_require(&call, (unsigned)mode <= MCBLAS_POINTER_MODE_DEVICE, "mode", "range", MCBLAS_STATUS_INVALID_VALUE,
               "mode is %d; allowed are 0 (HOST), 1 (DEVICE)", (int)mode);
    if (call.status == 0) {
        blas->pointer_mode = mode;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasGetAtomicsMode(mcblasHandle_t handle, mcblasAtomicsMode_t *mode)
{
    return give_setting("mcblasGetAtomicsMode", handle, "mode", mode, offsetof(Blas, atomics_mode), sizeof *mode);
}

mcblasStatus_t mcblasSetAtomicsMode(mcblasHandle_t handle, mcblasAtomicsMode_t mode)
{
    Call call = us_call_begin("mcblasSetAtomicsMode");
    Blas *blas = blas_of(&call, handle);
    us_require(&call, (unsigned)mode <= MCBLAS_ATOMICS_ALLOWED, "mode", "range", MCBLAS_STATUS_INVALID_VALUE,
               "mode is %d; allowed are 0 (NOT_ALLOWED), 1 (ALLOWED)", (int)mode);
    if (call.status == 0) {
        blas->atomics_mode = mode;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasGetMathMode(mcblasHandle_t handle, mcblasMath_t *mode)
{
    return give_setting("mcblasGetMathMode", handle, "mode", mode, offsetof(Blas, math_mode), sizeof *mode);
}

/* 18, pedantic without reduced precision, is what the vendor's library refuses (mcblas 12 #10). */
mcblasStatus_t mcblasSetMathMode(mcblasHandle_t handle, mcblasMath_t mode)
{
    const unsigned flag = MCBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, base = (unsigned)mode & ~flag;
    Call call = us_call_begin("mcblasSetMathMode");
    Blas *blas = blas_of(&call, handle);
    us_require(&call, base <= MCBLAS_TF32_TENSOR_OP_MATH && (unsigned)mode != (MCBLAS_PEDANTIC_MATH | flag), "mode",
               "range", MCBLAS_STATUS_INVALID_VALUE, "mode is %d; allowed are 0, 1, 2, 3, 16, 17, 19", (int)mode);
    if (call.status == 0) {
        blas->math_mode = mode;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasGetSmCountTarget(mcblasHandle_t handle, int *smCountTarget)
{
    return give_setting("mcblasGetSmCountTarget", handle, "smCountTarget", smCountTarget, offsetof(Blas, sm_count),
                        sizeof *smCountTarget);
}

mcblasStatus_t mcblasSetSmCountTarget(mcblasHandle_t handle, int smCountTarget)
{
    Call call = us_call_begin("mcblasSetSmCountTarget");
    Blas *blas = blas_of(&call, handle);
    check_size(&call, "smCountTarget", smCountTarget);
    if (call.status == 0) {
        blas->sm_count = smCountTarget;
    }
    return us_call_end(&call);
}

/* ---- the library ------------------------------------------------------------------------------------------------- */

mcblasStatus_t mcblasGetVersion(mcblasHandle_t handle, int *version)
{
    Call call = us_call_begin("mcblasGetVersion");
    blas_of(&call, handle);
    check_pointer(&call, "version", version);
    if (call.status == 0) {
        *version = MCBLAS_VER_MAJOR * 10000 + MCBLAS_VER_MINOR * 100;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasGetProperty(libraryPropertyType type, int *value)
{
    Call call = us_call_begin("mcblasGetProperty");
    us_require(&call, (unsigned)type <= PATCH_LEVEL, "type", "range", MCBLAS_STATUS_INVALID_VALUE,
               "type is %d; allowed are 0 (MAJOR_VERSION), 1 (MINOR_VERSION), 2 (PATCH_LEVEL)", (int)type);
    check_pointer(&call, "value", value);
    if (call.status == 0) {
        *value = type == MAJOR_VERSION ? MCBLAS_VER_MAJOR : type == MINOR_VERSION ? MCBLAS_VER_MINOR : 0;
    }
    return us_call_end(&call);
}

const char *mcblasGetStatusName(mcblasStatus_t status)
{
    return blas_status_name(status);
}

const char *mcblasGetStatusString(mcblasStatus_t status)
{
    return blas_status_text(status);
}

/* ---- the vendor's log: kept, never written ----------------------------------------------------------------------- */

static _Atomic mcblasLogCallback log_callback;

mcblasStatus_t mcblasLoggerConfigure(int logIsOn, int logToStdOut, int logToStdErr, const char *logFileName)
{
    (void)logIsOn, (void)logToStdOut, (void)logToStdErr, (void)logFileName;
    return MCBLAS_STATUS_SUCCESS;
}

mcblasStatus_t mcblasSetLoggerCallback(mcblasLogCallback userCallback)
{
    log_callback = userCallback;
    return MCBLAS_STATUS_SUCCESS;
}

mcblasStatus_t mcblasGetLoggerCallback(mcblasLogCallback *userCallback)
{
    Call call = us_call_begin("mcblasGetLoggerCallback");
    check_pointer(&call, "userCallback", userCallback);
    if (call.status == 0) {
        *userCallback = log_callback;
    }
    return us_call_end(&call);
}
