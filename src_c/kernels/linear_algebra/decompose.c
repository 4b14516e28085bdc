#include "kernels/linear_algebra/decompose.h"

#include "kernels/matmul/blas.h"
#include "kernels/matmul/lines.h"
#include "kernels/maths/maths.h"
#include "kernels/pieces.h"
#include "kernels/scratch.h"
#include "tensor/lane.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* Weak: see matmul.c. */
#pragma weak us_lapack_routine

enum { LAPACK_BLOCK = 64, WORKSPACE_COLUMNS = LAPACK_BLOCK, VIEWS = 4 };

/* One call: what is done for each matrix of the batch, whose views have rank 2, 1 or 0. */
typedef struct Batch Batch;
typedef KernelStatus MatrixBody(const Batch *batch, const View *matrices);
struct Batch {
    const View *views;
    int count;
    const void *attributes;
    DType compute;
    MatrixBody *body;
    atomic_bool no_memory;
};

/* Routines that make a unitary matrix have names of their own in complex types. */
static const char *unitary(DType compute)
{
    return is_complex(compute) ? "ungqr" : "orgqr";
}

bool us_has_routine(DType compute, const char *routine)
{
    const char *name = strcmp(routine, "orgqr") == 0 ? unitary(compute) : routine;
    return us_lapack_routine != NULL && us_lapack_routine(compute, name) != NULL;
}

/* ---- batches ---- */

/* The matrix of a view that belongs to number `index` of the batch, whose shape the first view has. */
static View matrix_of(const View *view, const View *model, int64_t index, int32_t axes)
{
    View matrix = *view;
    const int32_t batch = model->rank - 2;
    if (us_view_is_absent(view)) {
        return matrix;
    }
    for (int32_t axis = batch - 1; axis >= 0; axis--) {
        const int64_t at = index % model->shape[axis] * view->strides[axis];
        matrix.data = (char *)matrix.data + at * (int64_t)us_dtype_size(view->dtype);
        index /= model->shape[axis];
    }
    matrix.rank = axes;
    for (int32_t axis = 0; axis < axes; axis++) {
        matrix.shape[axis] = view->shape[batch + axis];
        matrix.strides[axis] = view->strides[batch + axis];
    }
    return matrix;
}

static void run_matrix(void *context, int64_t index)
{
    Batch *batch = context;
    View matrices[VIEWS];
    for (int i = 0; i < batch->count; i++) {
        const int32_t axes = batch->views[i].rank - (batch->views[0].rank - 2);
        matrices[i] = matrix_of(&batch->views[i], &batch->views[0], index, axes);
    }
    if (batch->body(batch, matrices) != KERNEL_OK) {
        atomic_store(&batch->no_memory, true);
    }
}

static KernelStatus run(const View *views, int count, DType compute, const void *attributes, MatrixBody *body)
{
    Batch batch = {.views = views, .count = count, .attributes = attributes, .compute = compute, .body = body};
    const View *first = &views[0];
    if (first->shape[first->rank - 1] > INT_MAX || first->shape[first->rank - 2] > INT_MAX) {
        return KERNEL_NO_MEMORY;
    }
    atomic_init(&batch.no_memory, false);
    run_pieces(us_shape_elements(first->rank - 2, first->shape), us_view_elements(first), run_matrix, &batch);
    return atomic_load(&batch.no_memory) ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* ---- matrices in the LAPACK's order: column after column ---- */

static int as_int(int64_t value)
{
    return (int)value;
}

static char *element_of(const View *view, int64_t row, int64_t column)
{
    return (char *)view->data +
           (row * view->strides[0] + column * view->strides[1]) * (int64_t)us_dtype_size(view->dtype);
}

static void load_columns(DType compute, const View *view, void *to, int64_t pitch)
{
    for (int64_t column = 0; column < view->shape[1]; column++) {
        us_lane_load(us_lane_of(compute), (char *)to + column * pitch * (int64_t)us_dtype_size(compute),
                     element_of(view, 0, column), view->dtype, view->strides[0], view->shape[0]);
    }
}

static void store_columns(DType compute, const View *view, const void *from, int64_t pitch)
{
    for (int64_t column = 0; column < view->shape[1]; column++) {
        us_lane_store(us_lane_of(compute), element_of(view, 0, column), view->dtype, view->strides[0],
                      (const char *)from + column * pitch * (int64_t)us_dtype_size(compute), view->shape[0]);
    }
}

typedef struct Pair {
    double real, imaginary;
} Pair;

static Pair read_pair(DType compute, const void *elements, int64_t index)
{
    Pair pair;
    us_lane_load(LANE_COMPLEX128, &pair, (const char *)elements + index * (int64_t)us_dtype_size(compute), compute, 1,
        1);
    return pair;
}

static void clear(DType compute, void *elements, int64_t first, int64_t count)
{
    const size_t size = us_dtype_size(compute);
    memset((char *)elements + (size_t)first * size, 0, (size_t)count * size);
}

static void fill_nan(DType compute, void *elements, int64_t count)
{
    const double nan = NAN;
    for (int64_t i = 0; i < count; i++) {
        us_convert((char *)elements + (size_t)i * us_dtype_size(compute), compute, &nan, DTYPE_FLOAT64, 1);
    }
}

/* ---- by triangles ---- */

typedef void Getrf(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);

static int factorize(DType compute, int n, void *a, int *pivots)
{
    Getrf *getrf;
    int info = 0;
    *(void **)&getrf = us_lapack_routine(compute, "getrf");
    getrf(&n, &n, a, &n, pivots, &info);
    return info;
}

static KernelStatus inverse_body(const Batch *batch, const View *matrices)
{
    typedef void Getri(const int *n, void *a, const int *lda, const int *pivots, void *work, const int *size,
        int *info);
    const int64_t order = matrices[0].shape[0];
    const size_t size = us_dtype_size(batch->compute), a_size = us_scratch_bytes(us_scratch_count(order, order), size);
    const size_t work_size = us_scratch_bytes(order, WORKSPACE_COLUMNS * size);
    char *memory = us_scratch_take(a_size + work_size + us_scratch_bytes(order, sizeof(int)));
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    char *cursor = memory;
    char *a = us_scratch_part(&cursor, a_size);
    void *work = us_scratch_part(&cursor, work_size);
    int *pivots = (int *)(void *)cursor;
    load_columns(batch->compute, &matrices[0], a, order);
    const int n = as_int(order),
        length = as_int(order * WORKSPACE_COLUMNS < INT_MAX ? order * WORKSPACE_COLUMNS : order);
    int info = factorize(batch->compute, n, a, pivots);
    if (info == 0) {
        Getri *getri;
        *(void **)&getri = us_lapack_routine(batch->compute, "getri");
        getri(&n, a, &n, pivots, work, &length, &info);
    }
    if (info != 0) {
        fill_nan(batch->compute, a, order * order);
    }
    store_columns(batch->compute, &matrices[1], a, order);
    us_scratch_give_back(memory);
    return KERNEL_OK;
}

KernelStatus us_inverse(const View *views, const void *attributes)
{
    return run(views, 2, ((const Decomposition *)attributes)->compute, attributes, inverse_body);
}

static double size_of(Pair pair)
{
    const double x = fabs(pair.real), y = fabs(pair.imaginary), most = x > y ? x : y, least = x > y ? y : x;
    const double rest = most > 0 ? least / most : 0;
    return x != x || y != y ? NAN : most > 0 ? most * sqrt(1 + rest * rest) : most;
}

/* A number by its size. Real ones by their sign: infinity has one too. */
static Pair direction_of(DType compute, Pair pair, double size)
{
    if (is_complex(compute)) {
        return (Pair){pair.real / size, pair.imaginary / size};
    }
    return (Pair){pair.real > 0 ? 1 : pair.real < 0 ? -1 : pair.real, 0};
}

static Pair multiply(Pair a, Pair b)
{
    return (Pair){a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

static void store_pair(const View *to, Pair pair)
{
    us_lane_store(LANE_COMPLEX128, to->data, to->dtype, 1, &pair, 1);
}

static KernelStatus log_determinant_body(const Batch *batch, const View *matrices)
{
    const int64_t order = matrices[0].shape[0];
    const size_t elements = us_scratch_bytes(us_scratch_count(order, order), us_dtype_size(batch->compute));
    char *memory = us_scratch_take(elements + us_scratch_bytes(order, sizeof(int)));
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    int *pivots = (int *)(void *)(memory + elements);
    load_columns(batch->compute, &matrices[0], memory, order);
    if (order > 0) {
        factorize(batch->compute, as_int(order), memory, pivots);
    }
    Pair sign = {1, 0};
    double sum = 0;
    for (int64_t i = 0; i < order; i++) {
        const Pair element = read_pair(batch->compute, memory, i * order + i);
        const double size = size_of(element);
        const double turn = pivots[i] == i + 1 ? 1 : -1;
        const Pair unit = direction_of(batch->compute, element, size), turned = {turn * unit.real, turn * unit.imaginary};
        sign = size == 0 && sign.real == sign.real ? (Pair){0, 0} : multiply(sign, turned);
        sum += log_double(size);
    }
    if (us_view_is_absent(&matrices[1])) {
        const double argument = is_complex(batch->compute) ? atan2_double(sign.imaginary, sign.real) : 0;
        const bool below = !is_complex(batch->compute) && sign.real < 0;
        store_pair(&matrices[2], (Pair){below ? NAN : sum, argument});
    } else {
        store_pair(&matrices[1], sign);
        store_pair(&matrices[2], (Pair){sum, 0});
    }
    us_scratch_give_back(memory);
    return KERNEL_OK;
}

KernelStatus us_log_determinant(const View *views, const void *attributes)
{
    return run(views, 3, ((const Decomposition *)attributes)->compute, attributes, log_determinant_body);
}

/* ---- orthogonal and triangular ---- */

static KernelStatus qr_body(const Batch *batch, const View *matrices)
{
    typedef void Geqrf(const int *m, const int *n, void *a, const int *lda, void *tau, void *work, const int *size,
                       int *info);
    typedef void Orgqr(const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau, void *work,
                       const int *size, int *info);
    const View *q_view = &matrices[1], *r_view = &matrices[2];
    const int64_t rows = matrices[0].shape[0], columns = matrices[0].shape[1];
    const int64_t kept = rows < columns ? rows : columns, q_columns = us_view_is_absent(q_view) ? 0 : q_view->shape[1];
    const int64_t held = columns > q_columns ? columns : q_columns;
    const size_t size = us_dtype_size(batch->compute), a_size = us_scratch_bytes(us_scratch_count(rows, held), size);
    const int64_t work_elements = (held + 1) * WORKSPACE_COLUMNS;
    const size_t work_size = us_scratch_bytes(work_elements, size);
    char *memory = us_scratch_take(a_size + work_size + us_scratch_bytes(kept + 1, size));
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    char *cursor = memory;
    char *a = us_scratch_part(&cursor, a_size);
    void *work = us_scratch_part(&cursor, work_size), *tau = cursor;
    load_columns(batch->compute, &matrices[0], a, rows);
    const int m = as_int(rows), n = as_int(columns), k = as_int(kept), leading = m > 0 ? m : 1,
        wanted = as_int(q_columns);
    const int length = as_int(work_elements < INT_MAX ? work_elements : held + 1);
    int info = 0;
    Geqrf *geqrf;
    Orgqr *orgqr;
    *(void **)&geqrf = us_lapack_routine(batch->compute, "geqrf");
    *(void **)&orgqr = us_lapack_routine(batch->compute, unitary(batch->compute));
    geqrf(&m, &n, a, &leading, tau, work, &length, &info);
    for (int64_t column = 0; column < r_view->shape[1]; column++) { /* what is below the diagonal is not r's */
        const int64_t count = column + 1 < r_view->shape[0] ? column + 1 : r_view->shape[0];
        us_lane_store(us_lane_of(batch->compute), element_of(r_view, 0, column), r_view->dtype, r_view->strides[0],
                      a + (size_t)(column * rows) * size, count);
        const Pair zero = {0, 0};
        for (int64_t row = count; row < r_view->shape[0]; row++) {
            us_lane_store(LANE_COMPLEX128, element_of(r_view, row, column), r_view->dtype, 1, &zero, 1);
        }
    }
    if (q_columns > 0) {
        clear(batch->compute, a, rows * kept, rows * (held - kept));
        orgqr(&m, &wanted, &k, a, &leading, tau, work, &length, &info);
        store_columns(batch->compute, q_view, a, rows);
    }
    us_scratch_give_back(memory);
    return KERNEL_OK;
}

KernelStatus us_qr(const View *views, const void *attributes)
{
    return run(views, 3, ((const Decomposition *)attributes)->compute, attributes, qr_body);
}

/* ---- of positive definite matrices ---- */

static KernelStatus cholesky_body(const Batch *batch, const View *matrices)
{
    typedef void Potrf(const char *half, const int *n, void *a, const int *lda, int *info);
    const Cholesky *call = batch->attributes;
    const int64_t order = matrices[0].shape[0];
    char *a = us_scratch_array(us_scratch_count(order, order), us_dtype_size(batch->compute));
    if (a == NULL) {
        return KERNEL_NO_MEMORY;
    }
    load_columns(batch->compute, &matrices[0], a, order);
    const int n = as_int(order);
    int info = 0;
    Potrf *potrf;
    *(void **)&potrf = us_lapack_routine(batch->compute, "potrf");
    potrf(call->upper ? "U" : "L", &n, a, &n, &info);
    if (info != 0) {
        fill_nan(batch->compute, a, order * order);
    }
    for (int64_t column = 0; column < order; column++) {
        if (call->upper) {
            clear(batch->compute, a, column * order + column + 1, order - column - 1);
        } else {
            clear(batch->compute, a, column * order, column);
        }
    }
    store_columns(batch->compute, &matrices[1], a, order);
    us_scratch_give_back(a);
    return KERNEL_OK;
}

KernelStatus us_cholesky(const View *views, const void *attributes)
{
    return run(views, 2, ((const Cholesky *)attributes)->compute, attributes, cholesky_body);
}

/* ---- singular values ---- */

typedef struct Svd {
    DType compute, real; /* of the matrices, and of the values */
    int m, n, count;     /* count: of the values */
    char job;            /* the LAPACK's: 'A' all vectors, 'S' as many as values, 'N' none */
    int u_columns, v_columns;
    char *a, *values, *u, *vh;
    void *real_work;
    int *integers;
} Svd;

/* Of a matrix with an infinite element gesdd may never find the values. */
static bool are_finite(DType compute, const void *elements, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const Pair pair = read_pair(compute, elements, i);
        if (!isfinite(pair.real) || !isfinite(pair.imaginary)) {
            return false;
        }
    }
    return true;
}

static void fill_identity(DType compute, void *elements, int64_t order)
{
    const double one = 1;
    clear(compute, elements, 0, order * order);
    for (int64_t i = 0; i < order; i++) {
        us_convert((char *)elements + (size_t)(i * (order + 1)) * us_dtype_size(compute), compute, &one, DTYPE_FLOAT64, 1);
    }
}

/* Without `work`: *length, the elements that it needs. */
static int decompose_singular(const Svd *svd, void *work, int *length)
{
    typedef void RealGesdd(const char *job, const int *m, const int *n, void *a, const int *lda, void *s, void *u,
                           const int *ldu, void *vt, const int *ldvt, void *work, const int *size, int *integers,
                           int *info);
    typedef void ComplexGesdd(const char *job, const int *m, const int *n, void *a, const int *lda, void *s, void *u,
                              const int *ldu, void *vt, const int *ldvt, void *work, const int *size, void *reals,
                              int *integers, int *info);
    const int lda = svd->m > 0 ? svd->m : 1, ldvt = svd->v_columns > 0 ? svd->v_columns : 1, asks = -1;
    double answer[2] = {0};
    void *memory = work != NULL ? work : answer;
    const int *size = work != NULL ? length : &asks;
    int info = 0;
    if (is_complex(svd->compute)) {
        ComplexGesdd *gesdd;
        *(void **)&gesdd = us_lapack_routine(svd->compute, "gesdd");
        gesdd(&svd->job, &svd->m, &svd->n, svd->a, &lda, svd->values, svd->u, &lda, svd->vh, &ldvt, memory, size,
              svd->real_work, svd->integers, &info);
    } else {
        RealGesdd *gesdd;
        *(void **)&gesdd = us_lapack_routine(svd->compute, "gesdd");
        gesdd(&svd->job, &svd->m, &svd->n, svd->a, &lda, svd->values, svd->u, &lda, svd->vh, &ldvt, memory, size,
              svd->integers, &info);
    }
    if (work == NULL) {
        const double wanted = read_pair(svd->compute, answer, 0).real * (1 + 1e-6); /* a float may have lost some */
        *length = wanted < INT_MAX ? (int)wanted + 1 : INT_MAX;
    }
    return info;
}

/* v from its conjugate transpose. */
static void store_v(const Svd *svd, const View *v)
{
    const size_t size = us_dtype_size(svd->compute);
    for (int64_t row = 0; row < v->shape[0]; row++) {
        for (int64_t column = 0; column < v->shape[1]; column++) {
            Pair pair = read_pair(svd->compute, svd->vh + (size_t)row * (size_t)svd->v_columns * size, column);
            pair.imaginary = -pair.imaginary;
            us_lane_store(LANE_COMPLEX128, element_of(v, row, column), v->dtype, 1, &pair, 1);
        }
    }
}

static KernelStatus svd_in(const Batch *batch, const View *matrices, Svd *svd)
{
    const int64_t rows = svd->m, columns = svd->n;
    load_columns(svd->compute, &matrices[0], svd->a, rows);
    int length = 0, info = !are_finite(svd->compute, svd->a, rows * columns);
    if (info == 0 && svd->count > 0) {
        info = decompose_singular(svd, NULL, &length);
    }
    if (svd->count == 0) {
        fill_identity(svd->compute, svd->u, svd->u_columns);
        fill_identity(svd->compute, svd->vh, svd->v_columns);
    } else if (info == 0) {
        void *work = us_scratch_array(length, us_dtype_size(batch->compute));
        if (work == NULL) {
            return KERNEL_NO_MEMORY;
        }
        info = decompose_singular(svd, work, &length);
        us_scratch_give_back(work);
    }
    if (info != 0) {
        fill_nan(svd->real, svd->values, svd->count);
        fill_nan(svd->compute, svd->u, rows * svd->u_columns);
        fill_nan(svd->compute, svd->vh, columns * svd->v_columns);
    }
    const View *values = &matrices[1];
    us_lane_store(us_lane_of(svd->real), values->data, values->dtype, values->strides[0], svd->values, svd->count);
    if (svd->job != 'N') {
        store_columns(svd->compute, &matrices[2], svd->u, rows);
        store_v(svd, &matrices[3]);
    }
    return KERNEL_OK;
}

static KernelStatus svd_body(const Batch *batch, const View *matrices)
{
    const int64_t rows = matrices[0].shape[0], columns = matrices[0].shape[1];
    const int64_t count = rows < columns ? rows : columns, most = rows < columns ? columns : rows;
    const bool vectors = !us_view_is_absent(&matrices[2]);
    const int64_t u_columns = vectors ? matrices[2].shape[1] : 0, v_columns = vectors ? matrices[3].shape[1] : 0;
    const bool full = u_columns > count || v_columns > count;
    const size_t size = us_dtype_size(batch->compute);
    const DType real = batch->compute == DTYPE_COMPLEX64    ? DTYPE_FLOAT32
                       : batch->compute == DTYPE_COMPLEX128 ? DTYPE_FLOAT64
                                                            : batch->compute;
    /* the LAPACK's bound for gesdd */
    const int64_t reals = is_complex(batch->compute) ? us_scratch_count(count, 7 * count + 2 * most + 8) : 0;
    const size_t sizes[] = {us_scratch_bytes(us_scratch_count(rows, columns), size), us_scratch_bytes(count, size),
                            us_scratch_bytes(us_scratch_count(rows, u_columns), size),
                            us_scratch_bytes(us_scratch_count(columns, v_columns), size),
                            us_scratch_bytes(reals, us_dtype_size(real))};
    char *memory = us_scratch_take(sizes[0] + sizes[1] + sizes[2] + sizes[3] + sizes[4] +
                                   us_scratch_bytes(count, 8 * sizeof(int)) + 1);
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    char *cursor = memory;
    Svd svd = {.compute = batch->compute, .real = real, .m = as_int(rows), .n = as_int(columns), .count = as_int(count),
               .job = !vectors ? 'N' : full ? 'A' : 'S', .u_columns = as_int(u_columns), .v_columns = as_int(v_columns)};
    svd.a = us_scratch_part(&cursor, sizes[0]);
    svd.values = us_scratch_part(&cursor, sizes[1]);
    svd.u = us_scratch_part(&cursor, sizes[2]);
    svd.vh = us_scratch_part(&cursor, sizes[3]);
    svd.real_work = us_scratch_part(&cursor, sizes[4]);
    svd.integers = (int *)(void *)cursor;
    const KernelStatus status = svd_in(batch, matrices, &svd);
    us_scratch_give_back(memory);
    return status;
}

KernelStatus us_svd(const View *views, const void *attributes)
{
    return run(views, 4, ((const Decomposition *)attributes)->compute, attributes, svd_body);
}

/* ---- triangles ---- */

static KernelStatus triangular_body(const Batch *batch, const View *matrices)
{
    typedef void Trsm(const char *side, const char *half, const char *form, const char *diagonal, const int *m,
                      const int *n, const void *alpha, const void *a, const int *lda, void *b, const int *ldb);
    const TriangularSolve *solve = batch->attributes;
    const int64_t order = matrices[1].shape[0], columns = matrices[0].shape[1];
    const size_t size = us_dtype_size(batch->compute), a_size = us_scratch_bytes(us_scratch_count(order, order), size);
    char *memory = us_scratch_take(a_size + us_scratch_bytes(us_scratch_count(order, columns), size));
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    char *a = memory, *b = memory + a_size;
    load_columns(batch->compute, &matrices[1], a, order);
    load_columns(batch->compute, &matrices[0], b, order);
    for (int64_t column = 0; column < order; column++) {
        const int64_t diagonal = column * order + column;
        if (solve->upper) {
            clear(batch->compute, a, diagonal + 1, order - column - 1);
        } else {
            clear(batch->compute, a, column * order, column);
        }
    }
    const int m = as_int(order), n = as_int(columns);
    const double one[2] = {1, 0};
    double alpha[2]; /* in the computed type */
    us_convert(alpha, batch->compute, one, DTYPE_FLOAT64, 1);
    Trsm *trsm;
    *(void **)&trsm = us_lapack_routine(batch->compute, "trsm");
    if (order > 0 && columns > 0) {
        trsm("L", solve->upper ? "U" : "L", solve->transposed ? "T" : "N", solve->unit ? "U" : "N", &m, &n, alpha, a,
            &m,
             b, &m);
    }
    store_columns(batch->compute, &matrices[2], b, order);
    store_columns(batch->compute, &matrices[3], a, order);
    us_scratch_give_back(memory);
    return KERNEL_OK;
}

KernelStatus us_triangular_solve(const View *views, const void *attributes)
{
    return run(views, 4, ((const TriangularSolve *)attributes)->compute, attributes, triangular_body);
}
