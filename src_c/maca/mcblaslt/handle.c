/* Handles and version (mcblas 11). */
#include "attributes.h"

#include "maca/common/platform.h"
#include "maca/mcblas/status_texts.h"

mcblasStatus_t mcblasLtCreate(mcblasLtHandle_t *lightHandle)
{
    Call call = us_call_begin("mcblasLtCreate");
    us_require(&call, lightHandle != NULL, "lightHandle", "null", MCBLAS_STATUS_INVALID_VALUE,
               "lightHandle is NULL: a place is required");
    void *made = call.status == 0 ? us_handle_new(HANDLE_BLAS_LT, "", 1) : NULL;
    us_require(&call, made != NULL, "lightHandle", "memory", MCBLAS_STATUS_ALLOC_FAILED, "no host memory for a handle");
    if (call.status == 0) {
        *lightHandle = made;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasLtDestroy(mcblasLtHandle_t lightHandle)
{
    Call call = us_call_begin("mcblasLtDestroy");
    us_require(&call, us_handle_release(lightHandle, HANDLE_BLAS_LT), "lightHandle", "alive",
               MCBLAS_STATUS_NOT_INITIALIZED,
               "lightHandle is %p, which is no live handle of this library (destroyed before, or another thing)",
               (void *)lightHandle);
    return us_call_end(&call);
}

size_t mcblasLtGetVersion(void)
{
    return MCBLAS_VER_MAJOR * 10000 + MCBLAS_VER_MINOR * 100;
}

mcblasStatus_t mcblasLtGetProperty(libraryPropertyType type, int *value)
{
    Call call = us_call_begin("mcblasLtGetProperty");
    us_require(&call, (unsigned)type <= PATCH_LEVEL, "type", "range", MCBLAS_STATUS_INVALID_VALUE,
               "type is %d; allowed are 0 (MAJOR_VERSION), 1 (MINOR_VERSION), 2 (PATCH_LEVEL)", (int)type);
    us_require(&call, value != NULL, "value", "null", MCBLAS_STATUS_INVALID_VALUE,
               "value is NULL: a pointer is required");
    if (call.status == 0) {
        *value = type == MAJOR_VERSION ? MCBLAS_VER_MAJOR : type == MINOR_VERSION ? MCBLAS_VER_MINOR : 0;
    }
    return us_call_end(&call);
}

const char *mcblasLtGetStatusName(mcblasStatus_t status)
{
    return blas_status_name(status);
}

const char *mcblasLtGetStatusString(mcblasStatus_t status)
{
    return blas_status_text(status);
}
