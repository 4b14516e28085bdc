/* Batches of factorisations, solutions and inverses (mcblas 8): the LAPACK's, one matrix at a time. */
#include "batch.h"
#include "kernels/linear_algebra/factors.h"
#include "kernels/matmul/blas.h"
#include "kernels/scratch.h"
#include "maca/common/platform.h"

#include <string.h>

enum { LARGEST_INVERSE = 32, SIZE_LIMIT = 3, ARRAY_LIMIT = BATCH_TABLE_LIMIT };

/* Parameters have their position in the list, from 1 on behind the handle: what *info names where it is on the host. */
typedef struct SizeParameter {
    const char *name;
    int value, position;
} SizeParameter;

/* An array of pointers to matrices, or, without columns and a leading dimension, `rows` elements of an array of its own for
 * each matrix of the batch: integers, unless there are pointers to them. */
typedef struct ArrayParameter {
    const char *name;
    const void *data;
    int position;
    const char *leading_name;
    int leading, rows, columns;
    ViewAccess access;
    bool pointers, optional;
} ArrayParameter;

typedef struct Factorisation {
    DType dtype;
    mcblasOperation_t trans;
    int m, n, nrhs, lda, ldb;
    bool factorised; /* the matrix is given by its factors */
} Factorisation;

typedef struct FactorisationCall {
    const char *function;
    const char *routine; /* which the library has to have */
    mcblasHandle_t handle;
    Factorisation what;
    SizeParameter sizes[SIZE_LIMIT];
    ArrayParameter arrays[ARRAY_LIMIT];
    int batch, batch_position;
    BatchBody *body;
    bool host_info, only_plain; /* trans N, and not fewer rows than columns */
    int *info;
} FactorisationCall;

/* ---- one matrix: addresses in the order of the arrays ---- */

static Columns columns_of(void *data, int rows, int columns, int leading)
{
    return (Columns){data, rows, columns, leading};
}

static void fill_identity(int *pivots, int n)
{
    for (int i = 0; i < n; i++) {
        pivots[i] = i + 1;
    }
}

/* A, P, info */
static KernelStatus lu_of(const void *attributes, char *const *addresses, const double (*scalars)[2])
{
    const Factorisation *what = attributes;
    const Columns a = columns_of(addresses[0], what->n, what->n, what->lda);
    (void)scalars;
    *(int *)(void *)addresses[2] = us_lu(what->dtype, &a, (int *)(void *)addresses[1]);
    return KERNEL_OK;
}

static void copy_columns(DType dtype, const Columns *from, const Columns *to)
{
    const size_t size = us_dtype_size(dtype);
    for (int64_t column = 0; column < from->columns; column++) {
        memcpy((char *)to->data + (size_t)(column * to->leading) * size,
               (const char *)from->data + (size_t)(column * from->leading) * size, (size_t)from->rows * size);
    }
}

/* The pivots that were given, or those of no exchange. */
static bool take_pivots(const char *given, int *pivots, int n)
{
    if (given == NULL) {
        fill_identity(pivots, n);
        return true;
    }
    memcpy(pivots, given, (size_t)n * sizeof *pivots);
    return us_are_pivots(pivots, n);
}

/* A, P, C, info. C is written when the inverse is there. */
static KernelStatus inverse_of(const void *attributes, char *const *addresses, const double (*scalars)[2])
{
    const Factorisation *what = attributes;
    const int n = what->n;
    const size_t sizes[] = {us_scratch_bytes(us_scratch_count(n, n), us_dtype_size(what->dtype)),
                            us_scratch_bytes(n, sizeof(int))};
    char *memory = us_scratch_take(us_scratch_sum(sizes, 2));
    (void)scalars;
    if (memory == NULL) {
        return KERNEL_NO_MEMORY;
    }
    char *cursor = memory;
    const Columns given = columns_of(addresses[0], n, n, what->lda), result = columns_of(addresses[2], n, n, what->ldb);
    const Columns work = columns_of(us_scratch_part(&cursor, sizes[0]), n, n, n);
    int *pivots = us_scratch_part(&cursor, sizes[1]);
    int *info = (int *)(void *)addresses[3];
    KernelStatus status = KERNEL_OK;
    copy_columns(what->dtype, &given, &work);
    if (!what->factorised) {
        *info = us_lu(what->dtype, &work, pivots);
    } else if (!take_pivots(addresses[1], pivots, n)) {
        status = KERNEL_FAULT;
    }
    if (status == KERNEL_OK) {
        status = us_lu_invert(what->dtype, &work, pivots, info);
    }
    if (status == KERNEL_OK && *info == 0) {
        copy_columns(what->dtype, &work, &result);
    }
    us_scratch_give_back(memory);
    return status;
}

/* Aarray, devIpiv, Barray */
static KernelStatus solution_of(const void *attributes, char *const *addresses, const double (*scalars)[2])
{
    const Factorisation *what = attributes;
    int *pivots = us_scratch_array(what->n, sizeof *pivots);
    (void)scalars;
    if (pivots == NULL) {
        return KERNEL_NO_MEMORY;
    }
    const Columns lu = columns_of(addresses[0], what->n, what->n, what->lda);
    const Columns b = columns_of(addresses[2], what->n, what->nrhs, what->ldb);
    const bool known = take_pivots(addresses[1], pivots, what->n);
    if (known) {
        us_lu_solve(what->dtype, "NTC"[what->trans], &lu, pivots, &b);
    }
    us_scratch_give_back(pivots);
    return known ? KERNEL_OK : KERNEL_FAULT;
}

/* Aarray, TauArray */
static KernelStatus qr_of(const void *attributes, char *const *addresses, const double (*scalars)[2])
{
    const Factorisation *what = attributes;
    const Columns a = columns_of(addresses[0], what->m, what->n, what->lda);
    (void)scalars;
    return us_qr_factors(what->dtype, &a, addresses[1]);
}

/* Aarray, Carray, devInfoArray, which may be NULL */
static KernelStatus least_squares_of(const void *attributes, char *const *addresses, const double (*scalars)[2])
{
    const Factorisation *what = attributes;
    const Columns a = columns_of(addresses[0], what->m, what->n, what->lda);
    const Columns c = columns_of(addresses[1], what->m, what->nrhs, what->ldb);
    int zero = 0;
    (void)scalars;
    const KernelStatus status = us_least_squares(what->dtype, &a, &c, &zero);
    if (status == KERNEL_OK && addresses[2] != NULL) {
        *(int *)(void *)addresses[2] = zero;
    }
    return status;
}

/* ---- the call ---- */

/* Where info is on the host: the position of the parameter that was refused just now. */
static void blame(BlasCall *call, const FactorisationCall *given, bool was_fine, int position)
{
    if (was_fine && !blas_ok(call) && given->host_info && given->info != NULL && !maca_is_device_memory(given->info)) {
        *given->info = -position;
    }
}

static void check_parameters(BlasCall *call, const FactorisationCall *given)
{
    Call *checks = &call->call;
    for (const SizeParameter *size = given->sizes; size < given->sizes + SIZE_LIMIT && size->name != NULL; size++) {
        const bool fine = blas_ok(call);
        check_size(checks, size->name, size->value);
        blame(call, given, fine, size->position);
    }
    bool fine = blas_ok(call);
    check_size(checks, "batchSize", given->batch);
    blame(call, given, fine, given->batch_position);
    fine = blas_ok(call);
    check_operation(checks, "trans", given->what.trans);
    blame(call, given, fine, 1);
    for (const ArrayParameter *array = given->arrays; array < given->arrays + ARRAY_LIMIT; array++) {
        fine = blas_ok(call);
        if (array->leading_name != NULL) {
            check_leading(checks, array->leading_name, array->leading, array->rows);
        }
        blame(call, given, fine, array->position + 1);
    }
    if (given->host_info) {
        check_pointer(checks, "info", given->info);
        us_require(checks, !maca_is_device_memory(given->info), "info", "device", MCBLAS_STATUS_INVALID_VALUE,
                   "info is device memory: it is one int in host memory");
    }
}

/* What the library solves of all that the parameters can say. */
static void check_form(BlasCall *call, const FactorisationCall *given)
{
    const Factorisation *what = &given->what;
    bool fine = blas_ok(call);
    us_require(&call->call, !given->only_plain || what->trans == MCBLAS_OP_N, "trans", "form", MCBLAS_STATUS_NOT_SUPPORTED,
               "trans is %d: only 0 (N) is solved", (int)what->trans);
    blame(call, given, fine, 1);
    fine = blas_ok(call);
    us_require(&call->call, !given->only_plain || what->m >= what->n, "m", "combination", MCBLAS_STATUS_NOT_SUPPORTED,
               "m is %d, n %d: only systems with at least as many rows as columns are solved", what->m, what->n);
    blame(call, given, fine, 2);
}

static bool has_work(const FactorisationCall *given)
{
    for (const SizeParameter *size = given->sizes; size < given->sizes + SIZE_LIMIT && size->name != NULL; size++) {
        if (size->value == 0) {
            return false;
        }
    }
    return given->batch > 0;
}

static void check_arrays(BlasCall *call, const FactorisationCall *given)
{
    for (const ArrayParameter *array = given->arrays; array < given->arrays + ARRAY_LIMIT && array->name != NULL; array++) {
        const bool fine = blas_ok(call);
        if (!array->optional) {
            check_pointer(&call->call, array->name, array->data);
        }
        blame(call, given, fine, array->position);
    }
    us_require(&call->call, us_lapack_routine(given->what.dtype, given->routine) != NULL, "handle", "library",
               MCBLAS_STATUS_NOT_SUPPORTED, "no library with the LAPACK's %s was found; UNDERSTUDY_BLAS may name one",
               given->routine);
}

static BatchTable table_of(const ArrayParameter *array, DType dtype)
{
    BatchTable table = {.name = array->name, .dtype = array->pointers ? dtype : DTYPE_INT32, .rows = array->rows,
                        .columns = array->leading_name == NULL ? 1 : array->columns, .leading = array->leading,
                        .access = array->access};
    if (array->pointers) {
        table.table = array->data;
    } else {
        table.first = array->data;
        table.stride = (int64_t)array->rows * (int64_t)sizeof(int);
    }
    return table;
}

static mcblasStatus_t run_batch(BlasCall *call, const FactorisationCall *given)
{
    if (blas_ok(call) && has_work(given)) {
        check_arrays(call, given);
        Batch batch = {.count = given->batch, .body = given->body,
                       .fault = "pivots have to be numbers of rows, from 1 to n: these are not what getrf gave"};
        for (int i = 0; i < ARRAY_LIMIT; i++) {
            batch.tables[i] = table_of(&given->arrays[i], given->what.dtype);
        }
        memcpy(batch.attributes, &given->what, sizeof given->what);
        if (blas_ok(call)) {
            blas_batch_submit(call, &batch);
        }
    }
    if (blas_ok(call) && given->host_info) {
        *given->info = 0;
    }
    return blas_end(call);
}

static mcblasStatus_t factorise(const FactorisationCall *given)
{
    BlasCall call = blas_begin(given->function, given->handle);
    check_parameters(&call, given);
    check_form(&call, given);
    return run_batch(&call, given);
}

static mcblasStatus_t invert(const FactorisationCall *given)
{
    BlasCall call = blas_begin(given->function, given->handle);
    us_require(&call.call, given->what.n <= LARGEST_INVERSE, "n", "range", MCBLAS_STATUS_INVALID_VALUE,
               "n is %d; at most %d are inverted: getrfBatched and getriBatched do more", given->what.n, LARGEST_INVERSE);
    check_parameters(&call, given);
    return run_batch(&call, given);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

#define MATRICES(x, at, ld, r, c, how) \
    {.name = #x, .data = (const void *)x, .position = at, .leading_name = #ld, .leading = ld, .rows = r, .columns = c, \
     .access = how, .pointers = true}
#define INTEGERS_WRITTEN(x, at, each) {.name = #x, .data = x, .position = at, .rows = each, .access = VIEW_WRITE}
#define OPTIONAL_INTEGERS(x, at, each, how) \
    {.name = #x, .data = x, .position = at, .rows = each, .access = how, .optional = true}

#define FUNCTIONS "factorisations.inc"
#include "types.h"
