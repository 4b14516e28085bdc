#include "kernels/linear_algebra/factors.h"

#include "kernels/matmul/blas.h"
#include "kernels/matmul/lines.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"

#include <limits.h>

/* Weak: see matmul.c. */
#pragma weak us_blas_gemm
#pragma weak us_lapack_routine

/* Columns of the LAPACK's blocks, and what it keeps beside them when it applies reflectors. */
enum { LAPACK_BLOCK = 64, REFLECTOR_BLOCKS = (LAPACK_BLOCK + 1) * LAPACK_BLOCK };

typedef void Getrf(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);
typedef void Getri(const int *n, void *a, const int *lda, const int *pivots, void *work, const int *size, int *info);
typedef void Getrs(const char *operation, const int *n, const int *count, const void *a, const int *lda, const int *pivots,
                   void *b, const int *ldb, int *info);
typedef void Geqrf(const int *m, const int *n, void *a, const int *lda, void *tau, void *work, const int *size, int *info);
typedef void Ormqr(const char *side, const char *operation, const int *m, const int *n, const int *k, const void *a,
                   const int *lda, const void *tau, void *c, const int *ldc, void *work, const int *size, int *info);
typedef void Trsm(const char *side, const char *half, const char *operation, const char *diagonal, const int *m, const int *n,
                  const void *alpha, const void *a, const int *lda, void *b, const int *ldb);

static const double ONE[2] = {1, 0}, MINUS_ONE[2] = {-1, 0};

static char *element_of(DType dtype, const Columns *a, int row, int column)
{
    return (char *)a->data + ((int64_t)column * a->leading + row) * (int64_t)us_dtype_size(dtype);
}

static Columns part_of(DType dtype, const Columns *a, int row, int column, int rows, int columns)
{
    return (Columns){element_of(dtype, a, row, column), rows, columns, a->leading};
}

/* The first zero on the diagonal, from 1 on; 0: there is none. */
static int zero_on_diagonal(DType dtype, const Columns *a)
{
    const int count = a->rows < a->columns ? a->rows : a->columns;
    for (int i = 0; i < count; i++) {
        double element[2];
        us_lane_load(LANE_COMPLEX128, element, element_of(dtype, a, i, i), dtype, 1, 1);
        if (element[0] == 0 && element[1] == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* b = inverse(triangle) b from the left, b inverse(triangle) from the right. */
static void solve_triangle(DType dtype, const char *side, const char *half, const char *diagonal, const Columns *triangle,
                           const Columns *b)
{
    Trsm *trsm;
    double alpha[2]; /* as the routine reads it */
    us_convert(alpha, dtype, ONE, DTYPE_FLOAT64, 1);
    *(void **)&trsm = us_lapack_routine(dtype, "trsm");
    trsm(side, half, "N", diagonal, &b->rows, &b->columns, alpha, triangle->data, &triangle->leading, b->data, &b->leading);
}

/* ---- L U ---- */

/* By halves: the factors of the left one give the right one's, up to the rest, which is factorised in turn. */
static void factorize_in_order(DType dtype, const Columns *a)
{
    const int first = a->rows / 2, rest = a->rows - first;
    if (a->rows < 2) {
        return;
    }
    const Columns corner = part_of(dtype, a, 0, 0, first, first), right = part_of(dtype, a, 0, first, first, rest);
    const Columns below = part_of(dtype, a, first, 0, rest, first), end = part_of(dtype, a, first, first, rest, rest);
    factorize_in_order(dtype, &corner);
    solve_triangle(dtype, "R", "U", "N", &corner, &below);
    solve_triangle(dtype, "L", "L", "U", &corner, &right);
    us_blas_gemm(&(BlasProduct){
        .dtype = dtype, .order = BLAS_COLUMN_MAJOR, .form_a = BLAS_AS_IS, .form_b = BLAS_AS_IS, .m = rest, .n = rest,
        .k = first, .alpha = MINUS_ONE, .beta = ONE, .a = below.data, .lda = a->leading, .b = right.data, .ldb = a->leading,
        .c = end.data, .ldc = a->leading,
    });
    factorize_in_order(dtype, &end);
}

int us_lu(DType dtype, const Columns *a, int *pivots)
{
    if (pivots == NULL) {
        factorize_in_order(dtype, a);
        return zero_on_diagonal(dtype, a);
    }
    Getrf *getrf;
    int info = 0;
    *(void **)&getrf = us_lapack_routine(dtype, "getrf");
    getrf(&a->rows, &a->columns, a->data, &a->leading, pivots, &info);
    return info;
}

bool us_are_pivots(const int *pivots, int n)
{
    for (int i = 0; i < n; i++) {
        if (pivots[i] < 1 || pivots[i] > n) {
            return false;
        }
    }
    return true;
}

/* Elements of working memory: so many blocks of columns, as far as an int counts them. */
static int work_length(int64_t rows, int64_t more)
{
    const int64_t wanted = rows * LAPACK_BLOCK + more;
    return (int)(wanted < INT_MAX ? wanted : rows + 1);
}

KernelStatus us_lu_invert(DType dtype, const Columns *lu, const int *pivots, int *zero)
{
    const int length = work_length(lu->rows, 0);
    *zero = zero_on_diagonal(dtype, lu);
    if (*zero != 0) {
        return KERNEL_OK;
    }
    void *work = us_scratch_array(length, us_dtype_size(dtype));
    if (work == NULL) {
        return KERNEL_NO_MEMORY;
    }
    Getri *getri;
    int info = 0;
    *(void **)&getri = us_lapack_routine(dtype, "getri");
    getri(&lu->rows, lu->data, &lu->leading, pivots, work, &length, &info);
    us_scratch_give_back(work);
    return KERNEL_OK;
}

void us_lu_solve(DType dtype, char operation, const Columns *lu, const int *pivots, const Columns *b)
{
    Getrs *getrs;
    int info = 0;
    *(void **)&getrs = us_lapack_routine(dtype, "getrs");
    getrs(&operation, &lu->rows, &b->columns, lu->data, &lu->leading, pivots, b->data, &b->leading, &info);
}

/* ---- Q R ---- */

KernelStatus us_qr_factors(DType dtype, const Columns *a, void *tau)
{
    const int length = work_length(a->columns, 0);
    void *work = us_scratch_array(length, us_dtype_size(dtype));
    if (work == NULL) {
        return KERNEL_NO_MEMORY;
    }
    Geqrf *geqrf;
    int info = 0;
    *(void **)&geqrf = us_lapack_routine(dtype, "geqrf");
    geqrf(&a->rows, &a->columns, a->data, &a->leading, tau, work, &length, &info);
    us_scratch_give_back(work);
    return KERNEL_OK;
}

/* b = Q^H b. */
static KernelStatus apply_reflectors(DType dtype, const Columns *factors, const void *tau, const Columns *b)
{
    const int length = work_length(b->columns, REFLECTOR_BLOCKS);
    void *work = us_scratch_array(length, us_dtype_size(dtype));
    if (work == NULL) {
        return KERNEL_NO_MEMORY;
    }
    Ormqr *ormqr;
    int info = 0;
    *(void **)&ormqr = us_lapack_routine(dtype, is_complex(dtype) ? "unmqr" : "ormqr");
    ormqr("L", is_complex(dtype) ? "C" : "T", &b->rows, &b->columns, &factors->columns, factors->data, &factors->leading, tau,
          b->data, &b->leading, work, &length, &info);
    us_scratch_give_back(work);
    return KERNEL_OK;
}

KernelStatus us_least_squares(DType dtype, const Columns *a, const Columns *b, int *zero)
{
    void *tau = us_scratch_array(a->columns, us_dtype_size(dtype));
    KernelStatus status = tau != NULL ? us_qr_factors(dtype, a, tau) : KERNEL_NO_MEMORY;
    if (status == KERNEL_OK) {
        status = apply_reflectors(dtype, a, tau, b);
    }
    us_scratch_give_back(tau);
    if (status != KERNEL_OK) {
        return status;
    }
    *zero = zero_on_diagonal(dtype, a);
    if (*zero == 0) {
        const Columns solution = part_of(dtype, b, 0, 0, a->columns, b->columns);
        solve_triangle(dtype, "L", "U", "N", a, &solution);
    }
    return KERNEL_OK;
}
