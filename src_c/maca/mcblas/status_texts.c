/* Compiled into both libraries. */
#include "status_texts.h"

#include <stddef.h>

typedef struct StatusText {
    mcblasStatus_t status;
    const char *name, *text;
} StatusText;

static const StatusText statuses[] = {
    {MCBLAS_STATUS_SUCCESS, "MCBLAS_STATUS_SUCCESS", "success"},
    {MCBLAS_STATUS_NOT_INITIALIZED, "MCBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {MCBLAS_STATUS_ALLOC_FAILED, "MCBLAS_STATUS_ALLOC_FAILED", "memory allocation failed"},
    {MCBLAS_STATUS_INVALID_VALUE, "MCBLAS_STATUS_INVALID_VALUE", "a parameter has an invalid value"},
    {MCBLAS_STATUS_ARCH_MISMATCH, "MCBLAS_STATUS_ARCH_MISMATCH", "the device lacks a feature"},
    {MCBLAS_STATUS_MAPPING_ERROR, "MCBLAS_STATUS_MAPPING_ERROR", "an access to device memory failed"},
    {MCBLAS_STATUS_EXECUTION_FAILED, "MCBLAS_STATUS_EXECUTION_FAILED", "the work could not be executed"},
    {MCBLAS_STATUS_INTERNAL_ERROR, "MCBLAS_STATUS_INTERNAL_ERROR", "an operation inside the library failed"},
    {MCBLAS_STATUS_NOT_SUPPORTED, "MCBLAS_STATUS_NOT_SUPPORTED", "this is not supported"},
    {MCBLAS_STATUS_LICENSE_ERROR, "MCBLAS_STATUS_LICENSE_ERROR", "the license was not accepted"},
};

static const StatusText *text_of(mcblasStatus_t status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i].status == status) {
            return &statuses[i];
        }
    }
    return NULL;
}

const char *blas_status_name(mcblasStatus_t status)
{
    const StatusText *text = text_of(status);
    return text != NULL ? text->name : "unknown status";
}

const char *blas_status_text(mcblasStatus_t status)
{
    const StatusText *text = text_of(status);
    return text != NULL ? text->text : "unknown status";
}
