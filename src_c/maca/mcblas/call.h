/* A call of the library: the checks that its functions share, its operands as views, and its way to the stream.
 *
 * Checks are sticky: after the first refusal the later ones do nothing. They come in one order (mcblas 10): handle,
 * sizes, enumerators, leading dimensions and steps, pointers, combinations. */
#ifndef MCBLAS_CALL_H
#define MCBLAS_CALL_H

#include "device/device.h"
#include "launch/launch.h"
#include "maca/common/handle_kinds.h"
#include "report/report.h"

#include <mcblas/mcblas.h>

/* What stands behind a handle. */
typedef struct Blas {
    Device *device;
    mcStream_t stream; /* as the program gave it */
    mcblasPointerMode_t pointer_mode;
    mcblasAtomicsMode_t atomics_mode;
    mcblasMath_t math_mode;
    int sm_count;
} Blas;

typedef struct BlasCall {
    Call call;
    Blas *blas;
    Launch launch;
} BlasCall;

/* handle/alive */
Blas *blas_of(Call *call, mcblasHandle_t handle);
BlasCall blas_begin(const char *function, mcblasHandle_t handle);
mcblasStatus_t blas_end(BlasCall *call);
static inline bool blas_ok(const BlasCall *call)
{
    return call->call.status == 0;
}

/* parameter/{null,negative,range,small,zero} */
void check_pointer(Call *call, const char *parameter, const void *pointer);
void check_size(Call *call, const char *parameter, int64_t size);
void check_operation(Call *call, const char *parameter, mcblasOperation_t operation);
void check_fill(Call *call, mcblasFillMode_t uplo);
void check_diagonal(Call *call, mcblasDiagType_t diag);
void check_side(Call *call, const char *parameter, mcblasSideMode_t side);
void check_leading(Call *call, const char *parameter, int leading, int64_t rows); /* leading >= max(1, rows) */
void check_step(Call *call, const char *parameter, int step);                     /* not 0 */

/* A column-major matrix [columns, rows] of a batch, a vector of n elements with a step of any sign, an array. */
View blas_matrix(const void *data, DType dtype, int64_t rows, int64_t columns, int64_t leading);
View blas_vector(const void *data, DType dtype, int64_t count, int64_t step);
View blas_array(const void *data, DType dtype, int64_t count);

/* The elements of a matrix [columns, rows] that stand for a triangle, and, in diagonals, for a triangle of n columns with k
 * diagonals besides the main one. Where that is of ones, it is not read. */
ViewPart blas_triangle(mcblasFillMode_t uplo, mcblasDiagType_t diag);
ViewPart blas_band(mcblasFillMode_t uplo, int64_t n, int64_t k, mcblasDiagType_t diag);

/* A scalar of `count` elements: read now, or a view of device memory. In device mode host memory that the device
 * does not know is read now as well: a pooled handle that another part of a program left in that mode (mcblas 9.4). */
typedef struct BlasScalar {
    DType dtype;
    bool on_device;
    View view;          /* absent unless on_device */
    double values[5][2]; /* otherwise */
} BlasScalar;
/* parameter/{null,device} */
BlasScalar blas_scalar(BlasCall *call, const char *parameter, const void *pointer, DType dtype, int64_t count);
bool blas_is_zero(const BlasScalar *scalar); /* it is known to be 0 */

/* Where a scalar result goes: a view of device memory in device mode, otherwise the host pointer.
 * result/{null,device} */
typedef struct BlasResult {
    View view;
    void *host;
} BlasResult;
BlasResult blas_result(BlasCall *call, const char *parameter, void *pointer, DType dtype, int64_t count);

/* Queues the launch: handle/launch. `waits`: until the work is done, because it writes to host memory. */
void blas_submit(BlasCall *call, Kernel *kernel, const void *attributes, size_t size, bool waits);

/* The stream of the handle; NULL after a refusal: handle/launch. */
Stream *blas_stream(Call *call, const Blas *blas);

#endif
