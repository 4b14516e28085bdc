/* The library as a whole: versions and error strings (mcdnn 2, 4.1, 7.1). */
#include "check.h"

size_t mcdnnGetVersion(void)
{
    return MCDNN_VERSION;
}

/* The vendor's number is unknown; the compiler guide names the device generation xcore1000. */
size_t mcdnnGetMaxDeviceVersion(void)
{
    return 1000;
}

size_t mcdnnGetCudartVersion(void)
{
    int version = 0;
    return mcRuntimeGetVersion(&version) == mcSuccess ? (size_t)version : 0;
}

const char *mcdnnGetErrorString(mcdnnStatus_t status)
{
    switch (status) {
    case MCDNN_STATUS_SUCCESS: return "MCDNN_STATUS_SUCCESS";
    case MCDNN_STATUS_NOT_INITIALIZED: return "MCDNN_STATUS_NOT_INITIALIZED";
    case MCDNN_STATUS_ALLOC_FAILED: return "MCDNN_STATUS_ALLOC_FAILED";
    case MCDNN_STATUS_BAD_PARAM: return "MCDNN_STATUS_BAD_PARAM";
    case MCDNN_STATUS_INTERNAL_ERROR: return "MCDNN_STATUS_INTERNAL_ERROR";
    case MCDNN_STATUS_INVALID_VALUE: return "MCDNN_STATUS_INVALID_VALUE";
    case MCDNN_STATUS_ARCH_MISMATCH: return "MCDNN_STATUS_ARCH_MISMATCH";
    case MCDNN_STATUS_MAPPING_ERROR: return "MCDNN_STATUS_MAPPING_ERROR";
    case MCDNN_STATUS_EXECUTION_FAILED: return "MCDNN_STATUS_EXECUTION_FAILED";
    case MCDNN_STATUS_NOT_SUPPORTED: return "MCDNN_STATUS_NOT_SUPPORTED";
    case MCDNN_STATUS_LICENSE_ERROR: return "MCDNN_STATUS_LICENSE_ERROR";
    case MCDNN_STATUS_RUNTIME_PREREQUISITE_MISSING: return "MCDNN_STATUS_RUNTIME_PREREQUISITE_MISSING";
    case MCDNN_STATUS_RUNTIME_IN_PROGRESS: return "MCDNN_STATUS_RUNTIME_IN_PROGRESS";
    case MCDNN_STATUS_RUNTIME_FP_OVERFLOW: return "MCDNN_STATUS_RUNTIME_FP_OVERFLOW";
    case MCDNN_STATUS_VERSION_MISMATCH: return "MCDNN_STATUS_VERSION_MISMATCH";
    }
    return "unknown mcDNN status";
}

mcdnnStatus_t mcdnnGetProperty(libraryPropertyType type, int *value)
{
    Call call = us_call_begin("mcdnnGetProperty");
    check_given(&call, "value", value);
    check_range(&call, "type", type, MAJOR_VERSION, PATCH_LEVEL);
    if (call.status == 0)
        *value = type == MAJOR_VERSION ? MCDNN_MAJOR : type == MINOR_VERSION ? MCDNN_MINOR : MCDNN_PATCHLEVEL;
    return us_call_end(&call);
}

/* All parts are in this one library, so they cannot differ from each other: what can differ is the header's triple. */
static mcdnnStatus_t check_version(const char *function, const char *part, int major, int minor, int patch)
{
    Call call = us_call_begin(function);
    us_require(&call, major == MCDNN_MAJOR && minor == MCDNN_MINOR && patch == MCDNN_PATCHLEVEL, "library", "version",
               MCDNN_STATUS_VERSION_MISMATCH, "%s has another version than the library", part);
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnOpsInferVersionCheck(void)
{
    return check_version("mcdnnOpsInferVersionCheck", "ops_infer", MCDNN_OPS_INFER_MAJOR, MCDNN_OPS_INFER_MINOR,
                         MCDNN_OPS_INFER_PATCH);
}

mcdnnStatus_t mcdnnOpsTrainVersionCheck(void)
{
    return check_version("mcdnnOpsTrainVersionCheck", "ops_train", MCDNN_OPS_TRAIN_MAJOR, MCDNN_OPS_TRAIN_MINOR,
                         MCDNN_OPS_TRAIN_PATCH);
}

mcdnnStatus_t mcdnnCnnInferVersionCheck(void)
{
    return check_version("mcdnnCnnInferVersionCheck", "cnn_infer", MCDNN_CNN_INFER_MAJOR, MCDNN_CNN_INFER_MINOR,
                         MCDNN_CNN_INFER_PATCH);
}

mcdnnStatus_t mcdnnCnnTrainVersionCheck(void)
{
    return check_version("mcdnnCnnTrainVersionCheck", "cnn_train", MCDNN_CNN_TRAIN_MAJOR, MCDNN_CNN_TRAIN_MINOR,
                         MCDNN_CNN_TRAIN_PATCH);
}

/* Kernels report what goes wrong through the stream, never later through the handle (mcdnn 7.1). */
mcdnnStatus_t mcdnnQueryRuntimeError(
    mcdnnHandle_t handle, mcdnnStatus_t *rstatus, mcdnnErrQueryMode_t mode,
    mcdnnRuntimeTag_t *tag)
{
    (void)tag;
    Call call = us_call_begin("mcdnnQueryRuntimeError");
    check_handle(&call, handle);
    check_given(&call, "rstatus", rstatus);
    check_range(&call, "mode", mode, MCDNN_ERRQUERY_RAWCODE, MCDNN_ERRQUERY_BLOCKING);
    if (call.status == 0)
        *rstatus = MCDNN_STATUS_SUCCESS;
    return us_call_end(&call);
}
