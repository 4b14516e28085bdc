#include "layout.h"

#include "kernels/matmul/lines.h"
#include "maca/common/platform.h"
#include "maca/mcblas/gemm_types.h"

void lt_check_handle(Call *call, mcblasLtHandle_t handle)
{
    us_require(call, us_handle_object(handle, HANDLE_BLAS_LT) != NULL || us_handle_object(handle, HANDLE_BLAS) != NULL,
               "lightHandle", "alive", MCBLAS_STATUS_NOT_INITIALIZED,
               "lightHandle is %p, which is no live handle (destroyed before, or another thing)", (void *)handle);
}

const Layout *lt_layout(Call *call, const char *parameter, mcblasLtMatrixLayout_t handle)
{
    const Layout *layout = lt_object(call, parameter, handle, HANDLE_LT_LAYOUT);
    if (call->status != 0) {
        return NULL;
    }
    us_require(call, layout->rows <= INT32_MAX && layout->cols <= INT32_MAX && layout->batch >= 0, parameter, "size",
               MCBLAS_STATUS_INVALID_VALUE, "%s is %llu x %llu, %d of them: too large, or less than none", parameter,
               (unsigned long long)layout->rows, (unsigned long long)layout->cols, layout->batch);
    us_require(call, layout->order == MCBLASLT_ORDER_COL || layout->order == MCBLASLT_ORDER_ROW, parameter, "order",
               MCBLAS_STATUS_NOT_SUPPORTED, "%s has order %d; supported are 0 (COL), 1 (ROW)", parameter,
               layout->order);
    const int64_t shortest = (int64_t)(layout->order == MCBLASLT_ORDER_COL ? layout->rows : layout->cols);
    us_require(call, layout->ld >= (shortest > 1 ? shortest : 1), parameter, "leading", MCBLAS_STATUS_INVALID_VALUE,
               "%s has leading dimension %lld; at least %lld is needed", parameter, (long long)layout->ld,
               (long long)shortest);
    return layout;
}

void lt_check_operation(Call *call, const char *parameter, int32_t operation)
{
    us_require(call, operation >= MCBLAS_OP_N && operation <= MCBLAS_OP_C, parameter, "range",
               MCBLAS_STATUS_INVALID_VALUE, "%s is %d; allowed are 0 (N), 1 (T), 2 (C)", parameter, operation);
}

void lt_check_pointer_mode(Call *call, const char *parameter, int32_t mode)
{
    us_require(call, mode == MCBLASLT_POINTER_MODE_HOST || mode == MCBLASLT_POINTER_MODE_DEVICE, parameter,
               "pointer-mode", MCBLAS_STATUS_NOT_SUPPORTED, "POINTER_MODE is %d; supported are 0 (HOST), 1 (DEVICE)",
               mode);
}

void lt_check_pointer(Call *call, const char *parameter, const void *pointer, bool needed)
{
    us_require(call, !needed || pointer != NULL, parameter, "null", MCBLAS_STATUS_INVALID_VALUE,
               "%s is NULL: a pointer is required", parameter);
}

void lt_check_factor(Call *call, const char *parameter, const void *pointer, int32_t pointer_mode)
{
    us_require(call, pointer_mode == MCBLASLT_POINTER_MODE_DEVICE || !maca_is_device_memory(pointer), parameter, "device",
               MCBLAS_STATUS_INVALID_VALUE, "%s is device memory, and POINTER_MODE is 0 (HOST)", parameter);
}

int64_t lt_rows(const Layout *layout, int32_t operation)
{
    return (int64_t)(operation == MCBLAS_OP_N ? layout->rows : layout->cols);
}

int64_t lt_columns(const Layout *layout, int32_t operation)
{
    return lt_rows(layout, operation == MCBLAS_OP_N ? MCBLAS_OP_T : MCBLAS_OP_N);
}

/* 8-bit floating-point numbers are bytes to all but the kernel of products. */
static DType dtype_of(uint32_t type)
{
    return type == MACA_R_8F_E4M3 ? DTYPE_UINT8 : blas_dtype((macaDataType_t)type);
}

View lt_view(const Layout *layout, const void *data, int32_t operation)
{
    const bool by_columns = (layout->order == MCBLASLT_ORDER_COL) == (operation == MCBLAS_OP_N);
    View view = {.data = (void *)(uintptr_t)data, .dtype = dtype_of(layout->type), .rank = 3};
    const int64_t shape[] = {layout->batch, lt_rows(layout, operation), lt_columns(layout, operation)};
    const int64_t strides[] = {layout->stride, by_columns ? 1 : layout->ld, by_columns ? layout->ld : 1};
    memcpy(view.shape, shape, sizeof shape);
    memcpy(view.strides, strides, sizeof strides);
    return view;
}

bool lt_same_place(const Layout *layout, const Layout *other)
{
    return layout->order == other->order && layout->ld == other->ld &&
           (layout->batch <= 1 || layout->stride == other->stride);
}

View lt_factor(int32_t pointer_mode, int32_t type, const void *pointer, double *value)
{
    const DType dtype = blas_dtype((macaDataType_t)type);
    if (pointer_mode == MCBLASLT_POINTER_MODE_DEVICE) {
        return (View){.data = (void *)(uintptr_t)pointer, .dtype = dtype};
    }
    us_line_load(is_complex(dtype) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64, value, pointer, dtype, 1, 1, false);
    return us_view_absent();
}

void lt_submit(Call *call, const Launch *launch, mcStream_t handle)
{
    Stream *stream = call->status == 0 ? maca_stream(handle) : NULL;
    us_require(call, stream != NULL, "stream", "alive", MCBLAS_STATUS_INVALID_VALUE,
               "stream is %p, which is not a stream (destroyed before, or another thing)", (void *)handle);
    maca_check_stream(call, "stream", MCBLAS_STATUS_EXECUTION_FAILED, stream);
    us_require(call, maca_launch(launch, stream), "stream", "launch", MCBLAS_STATUS_EXECUTION_FAILED,
               "no host memory to queue the call");
}
