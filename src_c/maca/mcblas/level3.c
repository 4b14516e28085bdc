/* Level 3: symmetric, Hermitian and triangular matrices (mcblas 7). Products of general matrices are in gemm.c. */
#include "arguments.h"
#include "copy.h"
#include "kernels/matmul/lines.h"

enum { NO_OPERATION = -1 };

/* Products that give one triangle of C. Complex ones with a conjugate transpose know no plain one, and the others no
 * conjugate one: `refused`. */
static mcblasStatus_t blas_rank_update(const char *function, mcblasHandle_t handle, const char *routine, DType dtype,
                                       mcblasOperation_t trans, int refused, int count, const Argument *arguments)
{
    BlasCall call = blas_begin(function, handle);
    blas_check_arguments(&call, count, arguments);
    us_require(&call.call, (int)trans != refused, "trans", "form", MCBLAS_STATUS_INVALID_VALUE,
               "trans is %d, which this function does not know", (int)trans);
    blas_call_within(&call, routine, dtype, count, arguments);
    return blas_end(&call);
}

/* C = B, then C = alpha * op(A) C; with alpha 0 neither A nor B is read. */
static void blas_triangular_product(BlasCall *call, const char *routine, DType dtype, int m, int n, const void *alpha,
                                    const void *A, const void *B, int ldb, void *C, int ldc, int count,
                                    const Argument *arguments)
{
    const BlasScalar factor = blas_scalar(call, "alpha", alpha, dtype, 1);
    if (blas_ok(call) && m > 0 && n > 0 && !blas_is_zero(&factor)) {
        check_pointer(&call->call, "A", A);
        check_pointer(&call->call, "B", B);
        check_pointer(&call->call, "C", C);
        blas_copy_matrix(call, dtype, m, n, B, ldb, C, ldc, &factor);
    }
    blas_call_within(call, routine, dtype, count, arguments);
}

#define LIST_LENGTH(list) ((int)(sizeof(list) / sizeof((list)[0])))

#define FUNCTIONS "level3.inc"
#include "types.h"
