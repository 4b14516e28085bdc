/* Extensions of BLAS (mcblas 8): sums and scalings of matrices, packed triangles, batches of triangular systems. */
#include "arguments.h"
#include "batch.h"
#include "kernels/linear_algebra/matrices.h"
#include "kernels/matmul/blas.h"
#include "kernels/matmul/lines.h"

/* ---- C = alpha * op(A) + beta * op(B) ---------------------------------------------------------------------------- */

typedef struct SumOperand {
    const char *name;
    const void *data;
    int leading;
    const char *leading_name;
    mcblasOperation_t operation;
} SumOperand;

static void check_sum_operand(BlasCall *call, const SumOperand *operand, int m, int n)
{
    check_leading(&call->call, operand->leading_name, operand->leading, operand->operation == MCBLAS_OP_N ? m : n);
}

static void check_in_place(BlasCall *call, const SumOperand *operand, const void *C, int ldc)
{
    us_require(&call->call, operand->data != C || (operand->operation == MCBLAS_OP_N && operand->leading == ldc), "C",
               "in-place", MCBLAS_STATUS_INVALID_VALUE,
               "C is %s: then it may not be transposed, and %s %d has to be ldc %d", operand->name,
               operand->leading_name, operand->leading, ldc);
}

static View operand_view(const SumOperand *operand, DType dtype, int m, int n)
{
    View view = blas_matrix(operand->data, dtype, m, n, operand->leading);
    if (operand->operation != MCBLAS_OP_N) {
        view.strides[0] = 1;
        view.strides[1] = operand->leading;
    }
    return view;
}

static mcblasStatus_t add_matrices(const char *function, mcblasHandle_t handle, DType dtype, int m, int n,
                                   const void *alpha, const SumOperand *a, const void *beta, const SumOperand *b,
                                   void *C, int ldc)
{
    BlasCall call = blas_begin(function, handle);
    check_size(&call.call, "m", m);
    check_size(&call.call, "n", n);
    check_operation(&call.call, "transa", a->operation);
    check_operation(&call.call, "transb", b->operation);
    check_sum_operand(&call, a, m, n);
    check_sum_operand(&call, b, m, n);
    check_leading(&call.call, "ldc", ldc, m);
    const BlasScalar first = blas_scalar(&call, "alpha", alpha, dtype, 1);
    const BlasScalar second = blas_scalar(&call, "beta", beta, dtype, 1);
    if (!blas_ok(&call) || m == 0 || n == 0) {
        return blas_end(&call);
    }
    const bool reads_a = !blas_is_zero(&first), reads_b = !blas_is_zero(&second);
    const View absent = us_view_absent(), c = blas_matrix(C, dtype, m, n, ldc);
    View views[2] = {absent, absent};
    if (reads_a) {
        check_pointer(&call.call, "A", a->data);
        views[0] = operand_view(a, dtype, m, n);
    }
    if (reads_b) {
        check_pointer(&call.call, "B", b->data);
        views[1] = operand_view(b, dtype, m, n);
    }
    check_pointer(&call.call, "C", C);
    check_in_place(&call, a, C, ldc);
    check_in_place(&call, b, C, ldc);
    us_launch_view(&call.launch, "A", &views[0]);
    us_launch_view(&call.launch, "B", &views[1]);
    us_launch_access(&call.launch, "C", &c, VIEW_WRITE);
    us_launch_view(&call.launch, "alpha", &first.view);
    us_launch_view(&call.launch, "beta", &second.view);
    enum { A_VIEW, B_VIEW, C_VIEW, ALPHA_VIEW, BETA_VIEW };
    us_launch_factor(&call.launch, A_VIEW, ALPHA_VIEW);
    us_launch_factor(&call.launch, B_VIEW, BETA_VIEW);
    const MatrixSum sum = {
        .conjugated_a = a->operation == MCBLAS_OP_C, .conjugated_b = b->operation == MCBLAS_OP_C,
        .alpha = {first.values[0][0], first.values[0][1]}, .beta = {second.values[0][0], second.values[0][1]},
    };
    blas_submit(&call, us_matrix_sum, &sum, sizeof sum, false);
    return blas_end(&call);
}

/* ---- C = A diag(x) ----------------------------------------------------------------------------------------------- */

/* x may step by 0, which is one factor for all. */
static mcblasStatus_t scale_matrix(const char *function, mcblasHandle_t handle, DType dtype, mcblasSideMode_t mode,
                                   int m, int n, const void *A, int lda, const void *x, int incx, void *C, int ldc)
{
    BlasCall call = blas_begin(function, handle);
    check_size(&call.call, "m", m);
    check_size(&call.call, "n", n);
    check_side(&call.call, "mode", mode);
    check_leading(&call.call, "lda", lda, m);
    check_leading(&call.call, "ldc", ldc, m);
    if (!blas_ok(&call) || m == 0 || n == 0) {
        return blas_end(&call);
    }
    check_pointer(&call.call, "A", A);
    check_pointer(&call.call, "x", x);
    check_pointer(&call.call, "C", C);
    us_require(&call.call, A != C || lda == ldc, "ldc", "in-place", MCBLAS_STATUS_INVALID_VALUE,
               "C is A, and ldc is %d, lda %d: in place they must be equal", ldc, lda);
    const bool right = mode == MCBLAS_SIDE_RIGHT;
    const View a = blas_matrix(A, dtype, m, n, lda), c = blas_matrix(C, dtype, m, n, ldc);
    View factors = blas_vector(x, dtype, right ? n : m, incx);
    factors.rank = 2;
    factors.shape[0] = n;
    factors.shape[1] = m;
    factors.strides[0] = right ? incx : 0;
    factors.strides[1] = right ? 0 : incx;
    us_launch_view(&call.launch, "A", &a);
    us_launch_view(&call.launch, "x", &factors);
    us_launch_access(&call.launch, "C", &c, VIEW_WRITE);
    blas_submit(&call, us_matrix_scale, NULL, 0, false);
    return blas_end(&call);
}

/* ---- packed triangles -------------------------------------------------------------------------------------------- */

static mcblasStatus_t copy_triangle(const char *function, mcblasHandle_t handle, DType dtype, mcblasFillMode_t uplo,
                                    int n, const void *packed, const void *A, int lda, bool to_matrix)
{
    BlasCall call = blas_begin(function, handle);
    check_size(&call.call, "n", n);
    check_fill(&call.call, uplo);
    check_leading(&call.call, "lda", lda, n);
    if (!blas_ok(&call) || n == 0) {
        return blas_end(&call);
    }
    check_pointer(&call.call, "AP", packed);
    check_pointer(&call.call, "A", A);
    const View from = blas_array(packed, dtype, ((int64_t)n + 1) * n / 2), matrix = blas_matrix(A, dtype, n, n, lda);
    us_launch_access(&call.launch, "AP", &from, to_matrix ? VIEW_READ : VIEW_WRITE);
    us_launch_access(&call.launch, "A", &matrix, to_matrix ? VIEW_WRITE : VIEW_READ);
    ViewPart triangle = blas_triangle(uplo, MCBLAS_DIAG_NON_UNIT);
    triangle.view = 1;
    us_launch_part(&call.launch, &triangle);
    const TriangleCopy copy = {.upper = uplo == MCBLAS_FILL_MODE_UPPER, .to_matrix = to_matrix};
    blas_submit(&call, us_triangle_copy, &copy, sizeof copy, false);
    return blas_end(&call);
}

/* ---- trsm of a batch --------------------------------------------------------------------------------------------- */

typedef void Solve(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
                   const void *alpha, const void *a, const int *lda, void *b, const int *ldb);

typedef struct Solution {
    void *function;
    DType dtype;
    char side, uplo, trans, diag;
    int m, n, lda, ldb;
} Solution;

static KernelStatus solve_one(const void *attributes, char *const *addresses, const double (*scalars)[2])
{
    const Solution *solution = attributes;
    Solve *solve;
    char alpha[LARGEST_ELEMENT];
    *(void **)&solve = solution->function;
    us_line_store(is_complex(solution->dtype) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64, alpha, solution->dtype, 1,
                  scalars[0], 1);
    solve(&solution->side, &solution->uplo, &solution->trans, &solution->diag, &solution->m, &solution->n, alpha,
          addresses[0], &solution->lda, addresses[1], &solution->ldb);
    return KERNEL_OK;
}

static mcblasStatus_t solve_batch(const char *function, mcblasHandle_t handle, const char *routine, DType dtype,
                                  mcblasSideMode_t side, mcblasFillMode_t uplo, mcblasOperation_t trans,
                                  mcblasDiagType_t diag, int m, int n, const void *alpha, const void *A, int lda,
                                  const void *B, int ldb, int batchCount)
{
    const int order = side == MCBLAS_SIDE_LEFT ? m : n;
    BlasCall call = blas_begin(function, handle);
    check_size(&call.call, "m", m);
    check_size(&call.call, "n", n);
    check_size(&call.call, "batchCount", batchCount);
    check_side(&call.call, "side", side);
    check_fill(&call.call, uplo);
    check_operation(&call.call, "trans", trans);
    check_diagonal(&call.call, diag);
    check_leading(&call.call, "lda", lda, order);
    check_leading(&call.call, "ldb", ldb, m);
    const BlasScalar factor = blas_scalar(&call, "alpha", alpha, dtype, 1);
    if (!blas_ok(&call) || m == 0 || n == 0 || batchCount == 0) {
        return blas_end(&call);
    }
    const bool reads = !blas_is_zero(&factor);
    if (reads) {
        check_pointer(&call.call, "A", A);
    }
    check_pointer(&call.call, "B", B);
    const Solution solution = {us_lapack_function(routine), dtype, "LR"[side], "LU"[uplo], "NTC"[trans], "NU"[diag], m,
                               n, lda, ldb};
    us_require(&call.call, solution.function != NULL, "handle", "library", MCBLAS_STATUS_NOT_SUPPORTED,
               "no library with the BLAS function %s was found; UNDERSTUDY_BLAS may name one", routine);
    Batch batch = {
        .tables = {{.name = "A", .table = reads ? A : NULL, .dtype = dtype, .rows = order, .columns = order, .leading = lda,
                    .access = VIEW_READ, .factor = BATCH_FACTOR_ALPHA, .part = blas_triangle(uplo, diag)},
                   {.name = "B", .table = B, .dtype = dtype, .rows = m, .columns = n, .leading = ldb,
                    .access = VIEW_READ_WRITE, .factor = BATCH_FACTOR_ALPHA}},
        .count = batchCount, .scalars = {factor, factor}, .scale = dtype, .body = solve_one,
    };
    memcpy(batch.attributes, &solution, sizeof solution);
    if (blas_ok(&call)) {
        blas_batch_submit(&call, &batch);
    }
    return blas_end(&call);
}

#define FUNCTIONS "extensions.inc"
#include "types.h"
