/* Copies of vectors and matrices between host and device (mcblas 4): rectangles of elements or columns. */
#include "call.h"

#include "maca/common/platform.h"

static bool is_pageable(const void *address)
{
    Allocation block;
    return !us_memory_find(maca_platform(), address, &block);
}

/* Copies on the current device's stream; one with memory that the program may reuse or read at once is waited for. */
static void copy_rectangle(Call *call, const Copy *copy, mcStream_t handle, bool waits)
{
    Explanation why = {{0}};
    if (call->status != 0 || copy->width == 0 || copy->height == 0) {
        return;
    }
    us_require(call, us_copy_check(maca_platform(), copy, &why) == COPY_OK, "range", "mapping",
               MCBLAS_STATUS_MAPPING_ERROR, "%s", why.text);
    Stream *stream = call->status == 0 ? maca_stream(handle) : NULL;
    us_require(call, stream != NULL, "stream", "alive", MCBLAS_STATUS_INVALID_VALUE,
               "stream is %p, which is not a stream (destroyed before, or another thing)", (void *)handle);
    us_require(call, maca_stream_takes_work(stream), "range", "mapping", MCBLAS_STATUS_MAPPING_ERROR,
               "the default stream waits for blocking streams, and one of them is being captured");
    if (call->status != 0) {
        return;
    }
    const bool queued = maca_stream_enter(stream) && us_stream_copy(stream, copy, call->function);
    maca_stream_leave(stream);
    us_require(call, queued, "stream", "memory", MCBLAS_STATUS_MAPPING_ERROR, "no host memory to queue the copy");
    if (call->status == 0 && waits) {
        us_require(call, us_stream_synchronize(stream, -1) == WAIT_DONE, "range", "mapping",
                   MCBLAS_STATUS_MAPPING_ERROR, "an earlier call left a device fault; see what synchronizing returns");
    }
}

static void check_positive(Call *call, const char *parameter, int value)
{
    us_require(call, value > 0, parameter, "positive", MCBLAS_STATUS_INVALID_VALUE, "%s is %d: it has to be positive",
               parameter, value);
}

typedef struct Transfer {
    const char *function;
    const void *from;
    void *to;
    mcStream_t stream;
    bool to_device, asynchronous;
} Transfer;

static mcblasStatus_t transfer(Call *call, const Transfer *transfer, int64_t width, int64_t height, int64_t from_pitch,
                               int64_t to_pitch)
{
    Copy copy = {
        .destination = transfer->to, .source = transfer->from, .width = (size_t)width, .height = (size_t)height,
        .destination_pitch = (size_t)to_pitch, .source_pitch = (size_t)from_pitch,
        .destination_side = transfer->to_device ? SIDE_DEVICE : SIDE_HOST,
        .source_side = transfer->to_device ? SIDE_HOST : SIDE_DEVICE,
    };
    maca_relax_pinned_side(copy.destination, &copy.destination_side);
    maca_relax_pinned_side(copy.source, &copy.source_side);
    const void *host = transfer->to_device ? transfer->from : transfer->to;
    copy_rectangle(call, &copy, transfer->stream, !transfer->asynchronous || is_pageable(host));
    return us_call_end(call);
}

static mcblasStatus_t copy_vector(const Transfer *vectors, int n, int elemSize, int incx, int incy)
{
    Call call = us_call_begin(vectors->function);
    check_positive(&call, "elemSize", elemSize);
    check_positive(&call, "incx", incx);
    check_positive(&call, "incy", incy);
    const bool packed = incx == 1 && incy == 1;
    const int64_t size = elemSize, count = n > 0 ? n : 0;
    return transfer(&call, vectors, packed ? count * size : size, packed ? 1 : count, incx * size, incy * size);
}

static mcblasStatus_t copy_matrix(const Transfer *matrices, int rows, int cols, int elemSize, int lda, int ldb)
{
    Call call = us_call_begin(matrices->function);
    check_size(&call, "rows", rows);
    check_size(&call, "cols", cols);
    check_positive(&call, "elemSize", elemSize);
    check_positive(&call, "lda", lda);
    check_positive(&call, "ldb", ldb);
    const int64_t size = elemSize;
    return transfer(&call, matrices, rows * size, cols, lda * size, ldb * size);
}

mcblasStatus_t mcblasSetVector(int n, int elemSize, const void *x, int incx, void *y, int incy)
{
    return copy_vector(&(Transfer){"mcblasSetVector", x, y, NULL, true, false}, n, elemSize, incx, incy);
}

mcblasStatus_t mcblasGetVector(int n, int elemSize, const void *x, int incx, void *y, int incy)
{
    return copy_vector(&(Transfer){"mcblasGetVector", x, y, NULL, false, false}, n, elemSize, incx, incy);
}

mcblasStatus_t mcblasSetMatrix(int rows, int cols, int elemSize, const void *A, int lda, void *B, int ldb)
{
    return copy_matrix(&(Transfer){"mcblasSetMatrix", A, B, NULL, true, false}, rows, cols, elemSize, lda, ldb);
}

mcblasStatus_t mcblasGetMatrix(int rows, int cols, int elemSize, const void *A, int lda, void *B, int ldb)
{
    return copy_matrix(&(Transfer){"mcblasGetMatrix", A, B, NULL, false, false}, rows, cols, elemSize, lda, ldb);
}

mcblasStatus_t mcblasSetVectorAsync(int n, int elemSize, const void *hostPtr, int incx, void *devicePtr, int incy,
                                    mcStream_t stream)
{
    return copy_vector(&(Transfer){"mcblasSetVectorAsync", hostPtr, devicePtr, stream, true, true}, n, elemSize, incx,
                       incy);
}

mcblasStatus_t mcblasGetVectorAsync(int n, int elemSize, const void *devicePtr, int incx, void *hostPtr, int incy,
                                    mcStream_t stream)
{
    return copy_vector(&(Transfer){"mcblasGetVectorAsync", devicePtr, hostPtr, stream, false, true}, n, elemSize, incx,
                       incy);
}

mcblasStatus_t mcblasSetMatrixAsync(int rows, int cols, int elemSize, const void *A, int lda, void *B, int ldb,
                                    mcStream_t stream)
{
    return copy_matrix(&(Transfer){"mcblasSetMatrixAsync", A, B, stream, true, true}, rows, cols, elemSize, lda, ldb);
}

mcblasStatus_t mcblasGetMatrixAsync(int rows, int cols, int elemSize, const void *A, int lda, void *B, int ldb,
                                    mcStream_t stream)
{
    return copy_matrix(&(Transfer){"mcblasGetMatrixAsync", A, B, stream, false, true}, rows, cols, elemSize, lda, ldb);
}
