#include "call.h"

#include "device/graph.h"
#include "kernels/matmul/lines.h"
#include "maca/common/platform.h"

Blas *blas_of(Call *call, mcblasHandle_t handle)
{
    Blas *blas = us_handle_object(handle, HANDLE_BLAS);
    us_require(call, blas != NULL, "handle", "alive", MCBLAS_STATUS_NOT_INITIALIZED,
               "handle is %p, which is no live handle of this library (destroyed before, or another thing)",
               (void *)handle);
    return blas;
}

BlasCall blas_begin(const char *function, mcblasHandle_t handle)
{
    BlasCall call = {.call = us_call_begin(function)};
    call.blas = blas_of(&call.call, handle);
    us_launch_begin(&call.launch, function);
    return call;
}

mcblasStatus_t blas_end(BlasCall *call)
{
    return us_call_end(&call->call);
}

void check_pointer(Call *call, const char *parameter, const void *pointer)
{
    us_require(call, pointer != NULL, parameter, "null", MCBLAS_STATUS_INVALID_VALUE,
               "%s is NULL: a pointer is required", parameter);
}

void check_size(Call *call, const char *parameter, int64_t size)
{
    us_require(call, size >= 0, parameter, "negative", MCBLAS_STATUS_INVALID_VALUE,
               "%s is %lld: it may not be negative", parameter, (long long)size);
}

void check_operation(Call *call, const char *parameter, mcblasOperation_t operation)
{
    us_require(call, (unsigned)operation <= MCBLAS_OP_C, parameter, "range", MCBLAS_STATUS_INVALID_VALUE,
               "%s is %d; allowed are 0 (N), 1 (T), 2 (C)", parameter, (int)operation);
}

void check_fill(Call *call, mcblasFillMode_t uplo)
{
    us_require(call, (unsigned)uplo <= MCBLAS_FILL_MODE_UPPER, "uplo", "range", MCBLAS_STATUS_INVALID_VALUE,
               "uplo is %d; allowed are 0 (LOWER), 1 (UPPER)", (int)uplo);
}

void check_diagonal(Call *call, mcblasDiagType_t diag)
{
    us_require(call, (unsigned)diag <= MCBLAS_DIAG_UNIT, "diag", "range", MCBLAS_STATUS_INVALID_VALUE,
               "diag is %d; allowed are 0 (NON_UNIT), 1 (UNIT)", (int)diag);
}

void check_side(Call *call, const char *parameter, mcblasSideMode_t side)
{
    us_require(call, (unsigned)side <= MCBLAS_SIDE_RIGHT, parameter, "range", MCBLAS_STATUS_INVALID_VALUE,
               "%s is %d; allowed are 0 (LEFT), 1 (RIGHT)", parameter, (int)side);
}

void check_leading(Call *call, const char *parameter, int leading, int64_t rows)
{
    const int64_t lowest = rows > 1 ? rows : 1;
    us_require(call, leading >= lowest, parameter, "small", MCBLAS_STATUS_INVALID_VALUE,
               "%s is %d; at least %lld is needed", parameter, leading, (long long)lowest);
}

void check_step(Call *call, const char *parameter, int step)
{
    us_require(call, step != 0, parameter, "zero", MCBLAS_STATUS_INVALID_VALUE, "%s is 0: elements need a step",
               parameter);
}

View blas_matrix(const void *data, DType dtype, int64_t rows, int64_t columns, int64_t leading)
{
    View view = {.data = (void *)(uintptr_t)data, .dtype = dtype, .rank = 2};
    view.shape[0] = columns;
    view.shape[1] = rows;
    view.strides[0] = leading;
    view.strides[1] = 1;
    return view;
}

View blas_vector(const void *data, DType dtype, int64_t count, int64_t step)
{
    View view = blas_array(data, dtype, count);
    const uintptr_t behind = step < 0 && count > 0 ? (uintptr_t)((count - 1) * -step) * us_dtype_size(dtype) : 0;
    view.data = (void *)((uintptr_t)data + behind);
    view.strides[0] = step;
    return view;
}

View blas_array(const void *data, DType dtype, int64_t count)
{
    return us_view_contiguous((void *)(uintptr_t)data, dtype, 1, &count);
}

ViewPart blas_triangle(mcblasFillMode_t uplo, mcblasDiagType_t diag)
{
    const int64_t nearest = diag == MCBLAS_DIAG_UNIT ? 1 : 0; /* to the diagonal, in rows */
    return uplo == MCBLAS_FILL_MODE_LOWER ? (ViewPart){.factor = -1, .slope = -1, .least = nearest, .most = INT32_MAX}
                                          : (ViewPart){.factor = -1, .slope = -1, .least = INT32_MIN, .most = -nearest};
}

/* Element (r, j) of the triangle is in row r - j, or r - j + k of the upper one. */
ViewPart blas_band(mcblasFillMode_t uplo, int64_t n, int64_t k, mcblasDiagType_t diag)
{
    const int32_t unread = diag == MCBLAS_DIAG_UNIT ? 1 : 0;
    return uplo == MCBLAS_FILL_MODE_LOWER
               ? (ViewPart){.factor = -1, .slope = 1, .above = unread, .least = 0, .most = n - 1}
               : (ViewPart){.factor = -1, .slope = 1, .below = unread, .least = k, .most = n - 1 + k};
}

/* In host mode the library itself reads or writes the scalar. */
static void check_host(BlasCall *call, const char *parameter, const void *pointer)
{
    check_pointer(&call->call, parameter, pointer);
    us_require(&call->call, call->blas->pointer_mode == MCBLAS_POINTER_MODE_DEVICE || !maca_is_device_memory(pointer),
               parameter, "device", MCBLAS_STATUS_INVALID_VALUE, "%s is device memory, and the pointer mode is HOST",
               parameter);
}

BlasScalar blas_scalar(BlasCall *call, const char *parameter, const void *pointer, DType dtype, int64_t count)
{
    BlasScalar scalar = {.dtype = dtype, .view = us_view_absent()};
    check_host(call, parameter, pointer);
    if (!blas_ok(call)) {
        return scalar;
    }
    if (call->blas->pointer_mode == MCBLAS_POINTER_MODE_DEVICE && maca_is_device_memory(pointer)) {
        scalar.on_device = true;
        scalar.view = blas_array(pointer, dtype, count);
    } else if (is_complex(dtype)) {
        us_line_load(DTYPE_COMPLEX128, scalar.values, pointer, dtype, 1, count, false);
    } else {
        double reals[5];
        us_line_load(DTYPE_FLOAT64, reals, pointer, dtype, 1, count, false);
        for (int64_t i = 0; i < count; i++) {
            scalar.values[i][0] = reals[i];
        }
    }
    return scalar;
}

bool blas_is_zero(const BlasScalar *scalar)
{
    return !scalar->on_device && scalar->values[0][0] == 0 && scalar->values[0][1] == 0;
}

BlasResult blas_result(BlasCall *call, const char *parameter, void *pointer, DType dtype, int64_t count)
{
    BlasResult result = {.view = us_view_absent(), .host = pointer};
    check_host(call, parameter, pointer);
    if (blas_ok(call) && call->blas->pointer_mode == MCBLAS_POINTER_MODE_DEVICE) {
        result.view = blas_array(pointer, dtype, count);
        result.host = NULL;
    }
    return result;
}

Stream *blas_stream(Call *call, const Blas *blas)
{
    if (call->status != 0) {
        return NULL;
    }
    Context *context = us_context_primary(blas->device);
    Stream *stream = blas->stream != NULL && blas->stream != mcStreamLegacy ? maca_stream(blas->stream)
                     : context != NULL ? context->default_stream : NULL;
    us_require(call, stream != NULL, "handle", "launch", MCBLAS_STATUS_EXECUTION_FAILED,
               "the stream of the handle, %p, has been destroyed", (void *)blas->stream);
    maca_check_stream(call, "handle", MCBLAS_STATUS_EXECUTION_FAILED, stream);
    return call->status == 0 ? stream : NULL;
}

void blas_submit(BlasCall *call, Kernel *kernel, const void *attributes, size_t size, bool waits)
{
    Stream *stream = blas_stream(&call->call, call->blas);
    if (stream == NULL) {
        return;
    }
    us_require(&call->call, !waits || !us_stream_is_recorded(stream), "handle", "launch", MCBLAS_STATUS_EXECUTION_FAILED,
               "the stream is being captured: a result in host memory, which the call would wait for, does not come now");
    us_launch_kernel(&call->launch, kernel, attributes, size);
    call->launch.unrecorded = waits;
    us_require(&call->call, maca_launch(&call->launch, stream), "handle", "launch", MCBLAS_STATUS_EXECUTION_FAILED,
               "no host memory to queue the call");
    if (blas_ok(call) && waits) {
        us_require(&call->call, us_stream_synchronize(stream, -1) == WAIT_DONE, "handle", "launch",
                   MCBLAS_STATUS_EXECUTION_FAILED, "the call left a device fault; see what synchronizing returns");
    }
}
