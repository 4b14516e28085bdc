/* Products of general matrices (mcblas 6, 7, 8.1), as descriptions of one product. */
#include "gemm.h"

#include "batch.h"
#include "kernels/matmul/lines.h"

/* ---- the product ------------------------------------------------------------------------------------------------- */

/* op of a stored matrix; a vector is a matrix of one column. */
static Matrix matrix_of(const GemmOperand *operand, mcblasOperation_t operation, bool vector)
{
    Matrix matrix = {.data = operand->data, .dtype = operand->dtype, .row = 1, .column = operand->leading,
                     .conjugated = operation == MCBLAS_OP_C};
    if (vector || operation != MCBLAS_OP_N) {
        matrix.row = operand->leading;
        matrix.column = 1;
    }
    return matrix;
}

/* A vector lies in memory from its first byte on, whatever its step: where its first element is. That may be beyond all
 * memory, where no operand is opened. */
static uintptr_t first_element(const GemmOperand *operand, int64_t count, bool vector, DType compute)
{
    const int64_t elements = vector && operand->leading < 0 && count > 0 ? (count - 1) * -(int64_t)operand->leading : 0;
    return (uintptr_t)elements * (uintptr_t)element_size(compute, operand->dtype);
}

static Matmul product_of(const Gemm *gemm)
{
    Matmul product = {
        .m = gemm->m, .n = gemm->n, .k = gemm->k,
        .a = matrix_of(&gemm->a, gemm->transa, false),
        .b = matrix_of(&gemm->b, gemm->transb, gemm->vectors),
        .c = matrix_of(&gemm->c, MCBLAS_OP_N, gemm->vectors),
        .compute = gemm->compute,
    };
    return product;
}

static char *moved(char *data, const GemmOperand *operand, int64_t count, bool vector, DType compute)
{
    return data == NULL ? NULL : data + first_element(operand, count, vector, compute);
}

static KernelStatus multiply_one(const void *attributes, char *const *addresses, const double (*scalars)[2])
{
    const Gemm *gemm = attributes;
    Matmul product = product_of(gemm);
    product.a.data = addresses[0];
    product.b.data = moved(addresses[1], &gemm->b, gemm->k, gemm->vectors, gemm->compute);
    product.c.data = moved(addresses[2], &gemm->c, gemm->m, gemm->vectors, gemm->compute);
    product.addend = product.c;
    memcpy(product.alpha, scalars[0], sizeof product.alpha);
    memcpy(product.beta, scalars[1], sizeof product.beta);
    return us_matmul(&product);
}

/* What the matrices reach, as they are stored. */
typedef struct Extent {
    int64_t rows, columns;
} Extent;

static Extent stored(mcblasOperation_t operation, int64_t rows, int64_t columns)
{
    return operation == MCBLAS_OP_N ? (Extent){rows, columns} : (Extent){columns, rows};
}

static BatchTable table_of(const Gemm *gemm, const GemmOperand *operand, int64_t stride, Extent extent, bool vector,
                           bool used, ViewAccess access, BatchFactor factor)
{
    const int64_t element = element_size(gemm->compute, operand->dtype), step = operand->leading;
    const int64_t parts = element / (int64_t)us_dtype_size(operand->dtype); /* 2 of pairs */
    BatchTable table = {.name = operand->name, .entry = gemm->entry, .dtype = operand->dtype,
                        .rows = (vector ? extent.columns : extent.rows) * parts,
                        .columns = vector ? extent.rows : extent.columns,
                        .leading = (vector && step < 0 ? -step : step) * parts, .access = access, .factor = factor};
    if (used && gemm->table) {
        table.table = operand->data;
    } else if (used) {
        table.first = operand->data;
        if (__builtin_mul_overflow(stride, element, &table.stride)) {
            table.stride = INT64_MAX; /* as far from any memory as the product would be */
        }
    }
    return table;
}

static void submit_batch(BlasCall *call, const Gemm *gemm, const BlasScalar *alpha, const BlasScalar *beta, bool reads)
{
    const Extent a = stored(gemm->transa, gemm->m, gemm->k), b = stored(gemm->transb, gemm->k, gemm->n);
    Batch batch = {
        .tables = {table_of(gemm, &gemm->a, gemm->strides[0], a, false, reads, VIEW_READ, BATCH_FACTOR_ALPHA),
                   table_of(gemm, &gemm->b, gemm->strides[1], b, gemm->vectors, reads, VIEW_READ, BATCH_FACTOR_ALPHA),
                   table_of(gemm, &gemm->c, gemm->strides[2], (Extent){gemm->m, gemm->n}, gemm->vectors, true,
                            VIEW_READ_WRITE, BATCH_FACTOR_BETA)},
        .count = gemm->batch, .scalars = {*alpha, *beta}, .scale = gemm->scale, .body = multiply_one,
    };
    _Static_assert(sizeof *gemm <= BATCH_ATTRIBUTE_LIMIT, "a product fits a batch");
    memcpy(batch.attributes, gemm, sizeof *gemm);
    if (!reads) {
        ((Gemm *)batch.attributes)->k = 0;
    }
    blas_batch_submit(call, &batch);
}

/* [batch, rows, columns] of op(matrix). */
static View view_of(const Gemm *gemm, const GemmOperand *operand, int64_t stride, mcblasOperation_t operation,
                    int64_t rows, int64_t columns, bool vector)
{
    const Matrix matrix = matrix_of(operand, operation, vector);
    View view = {.dtype = operand->dtype, .rank = 3};
    const int64_t shape[] = {gemm->batch, rows, columns}, strides[] = {stride, matrix.row, matrix.column};
    memcpy(view.shape, shape, sizeof shape);
    memcpy(view.strides, strides, sizeof strides);
    view.data = (void *)((uintptr_t)operand->data + first_element(operand, rows, vector, gemm->compute));
    return view;
}

static void submit_views(BlasCall *call, const Gemm *gemm, const BlasScalar *alpha, const BlasScalar *beta, bool reads)
{
    const View absent = us_view_absent();
    View a = view_of(gemm, &gemm->a, gemm->strides[0], gemm->transa, gemm->m, gemm->k, false);
    View b = view_of(gemm, &gemm->b, gemm->strides[1], gemm->transb, gemm->k, gemm->n, gemm->vectors);
    const View c = view_of(gemm, &gemm->c, gemm->strides[2], MCBLAS_OP_N, gemm->m, gemm->n, gemm->vectors);
    ViewProduct product = {
        .compute = gemm->compute,
        .conjugated_a = gemm->transa == MCBLAS_OP_C, .conjugated_b = gemm->transb == MCBLAS_OP_C,
        .alpha = {alpha->values[0][0], alpha->values[0][1]}, .beta = {beta->values[0][0], beta->values[0][1]},
    };
    if (!reads) { /* the sizes count, the contents do not */
        a.shape[2] = b.shape[1] = 0;
    }
    us_launch_view(&call->launch, gemm->a.name, &a);
    us_launch_view(&call->launch, gemm->b.name, &b);
    us_launch_access(&call->launch, gemm->c.name, blas_is_zero(beta) ? &absent : &c, VIEW_READ);
    us_launch_access(&call->launch, gemm->c.name, &c, VIEW_WRITE);
    us_launch_view(&call->launch, "alpha", &alpha->view);
    us_launch_view(&call->launch, "beta", &beta->view);
    enum { A_VIEW, B_VIEW, ADDEND_VIEW, C_VIEW, ALPHA_VIEW, BETA_VIEW };
    us_launch_factor(&call->launch, A_VIEW, ALPHA_VIEW);
    us_launch_factor(&call->launch, B_VIEW, ALPHA_VIEW);
    us_launch_factor(&call->launch, ADDEND_VIEW, BETA_VIEW);
    blas_submit(call, us_product, &product, sizeof product, false);
}

static void check_operand(BlasCall *call, const GemmOperand *operand, int64_t stored_rows, bool vector)
{
    if (vector) {
        check_step(&call->call, operand->leading_name, operand->leading);
    } else {
        check_leading(&call->call, operand->leading_name, operand->leading, stored_rows);
    }
}

void blas_gemm(BlasCall *call, const Gemm *gemm)
{
    check_operand(call, &gemm->a, stored(gemm->transa, gemm->m, gemm->k).rows, false);
    check_operand(call, &gemm->b, stored(gemm->transb, gemm->k, gemm->n).rows, gemm->vectors);
    check_operand(call, &gemm->c, gemm->m, gemm->vectors);
    const char *alpha_name = gemm->alpha_name != NULL ? gemm->alpha_name : "alpha";
    const char *beta_name = gemm->beta_name != NULL ? gemm->beta_name : "beta";
    const BlasScalar alpha = blas_scalar(call, alpha_name, gemm->alpha, gemm->scale, 1);
    const BlasScalar beta = blas_scalar(call, beta_name, gemm->beta, gemm->scale, 1);
    if (gemm->m == 0 || gemm->n == 0 || gemm->batch == 0 || (gemm->vectors && gemm->k == 0)) {
        return;
    }
    const bool reads = gemm->k > 0 && !blas_is_zero(&alpha);
    if (reads) {
        check_pointer(&call->call, gemm->a.name, gemm->a.data);
        check_pointer(&call->call, gemm->b.name, gemm->b.data);
    }
    check_pointer(&call->call, gemm->c.name, gemm->c.data);
    if (!blas_ok(call) || gemm->only_checks) {
        return;
    }
    const bool pairs = is_complex(gemm->compute) && !is_complex(gemm->a.dtype); /* no view has them */
    if (gemm->table || pairs) {
        submit_batch(call, gemm, &alpha, &beta, reads);
    } else {
        submit_views(call, gemm, &alpha, &beta, reads);
    }
}
