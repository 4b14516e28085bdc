#include "kernels/matmul/panels.h"

#include "kernels/matmul/bf16.h"
#include "kernels/matmul/blas.h"
#include "kernels/matmul/bytes.h"
#include "kernels/matmul/few_rows.h"
#include "kernels/scratch.h"

/* Weak: see matmul.c. */
#pragma weak us_blas_gemm
#pragma weak us_blas_gemv

/* Elements of the panels of a block together, and their depth. Sums of 256 products of 8-bit integers are exact in
 * float. */
enum { PANEL_ELEMENTS = 1 << 19, LEAST_DEPTH = 256, MOST_DEPTH = 1 << 30, EXACT_DEPTH = 256, ACROSS = 8 };

static const double one[2] = {1, 0};

/* Bytes of an operand's panel. One of tiles also holds half of the depth in float32. */
static size_t panel_bytes(const Run *run, const Matrix *operand, int64_t lines, int64_t depth)
{
    return run->bytes      ? us_bytes_panel(lines, depth)
           : run->few_rows ? us_scratch_bytes(us_scratch_count(lines, us_few_rows_stride(depth)), sizeof(float))
           : run->bf16     ? us_bf16_panel(operand->dtype, lines, depth)
                           : us_scratch_bytes(us_scratch_count(lines, depth), us_dtype_size(run->panel));
}

/* How the operand of a product goes to the BLAS; 0: not at all. */
static int form_of(const Matrix *operand, int64_t rows, int64_t columns, bool by_columns, int64_t *stride)
{
    const bool as_is = by_columns ? matrix_has_columns(operand, rows, columns, stride)
                                  : matrix_has_rows(operand, rows, columns, stride);
    if (as_is && !operand->conjugated) {
        return BLAS_AS_IS;
    }
    const bool turned = by_columns ? matrix_has_rows(operand, rows, columns, stride)
                                   : matrix_has_columns(operand, rows, columns, stride);
    return !turned ? 0 : operand->conjugated ? BLAS_ADJOINT : BLAS_TRANSPOSED;
}

/* y = alpha * A x + beta * y. */
static void multiply_vector(DType dtype, int64_t rows, int64_t columns, const Matrix *a, const void *x, int64_t x_step,
                            const double *alpha, const double *beta, void *y, int64_t y_step)
{
    int64_t stride;
    const bool by_rows = matrix_has_rows(a, rows, columns, &stride);
    if (!by_rows) {
        matrix_has_columns(a, rows, columns, &stride);
    }
    if (is_zero(beta)) { /* BLAS may multiply what is there by 0 */
        us_elements_clear(y, dtype, y_step, rows);
        beta = one;
    }
    const BlasProduct product = {
        .dtype = dtype,
        .order = by_rows ? BLAS_COLUMN_MAJOR : BLAS_ROW_MAJOR,
        .form_a = a->conjugated ? BLAS_ADJOINT : BLAS_TRANSPOSED,
        .m = (int)columns, .n = (int)rows,
        .alpha = alpha, .beta = beta,
        .a = a->data, .lda = (int)stride,
        .b = x, .ldb = (int)x_step,
        .c = y, .ldc = (int)y_step,
    };
    us_blas_gemv(&product);
}

/* c = alpha * a b + beta * c, all in one type and in forms that form_of and has_rows or has_columns accept. */
static void multiply_by_blas(DType dtype, const Sizes *sizes, const Matrix *a, const Matrix *b, const double *alpha,
                             const double *beta, const Matrix *c)
{
    int64_t lda = 0, ldb = 0, ldc = 0;
    const bool by_columns = !matrix_has_rows(c, sizes->m, sizes->n, &ldc);
    if (by_columns) {
        matrix_has_columns(c, sizes->m, sizes->n, &ldc);
    }
    if (sizes->n == 1 && !b->conjugated) {
        multiply_vector(dtype, sizes->m, sizes->k, a, b->data, sizes->k == 1 ? 1 : b->row, alpha, beta, (void *)c->data,
                        sizes->m == 1 ? 1 : c->row);
        return;
    }
    if (sizes->m == 1 && !a->conjugated) {
        const Matrix turned = {.data = b->data, .row = b->column, .column = b->row, .conjugated = b->conjugated};
        multiply_vector(dtype, sizes->n, sizes->k, &turned, a->data, sizes->k == 1 ? 1 : a->column, alpha, beta,
                        (void *)c->data, c->column);
        return;
    }
    const BlasProduct product = {
        .dtype = dtype,
        .order = by_columns ? BLAS_COLUMN_MAJOR : BLAS_ROW_MAJOR,
        .form_a = form_of(a, sizes->m, sizes->k, by_columns, &lda),
        .form_b = form_of(b, sizes->k, sizes->n, by_columns, &ldb),
        .m = (int)sizes->m, .n = (int)sizes->n, .k = (int)sizes->k,
        .alpha = alpha, .beta = beta,
        .a = a->data, .lda = (int)lda,
        .b = b->data, .ldb = (int)ldb,
        .c = (void *)c->data, .ldc = (int)ldc,
    };
    us_blas_gemm(&product);
}

/* Copies a panel in the panels' type: along the lines that lie closer together, or along rows for our own loops; of rows that
 * go across what lies together a part at a time, so that the next row finds its elements in the nearest cache. */
static Matrix packed(const Run *run, const Matrix *matrix, int64_t rows, int64_t columns, char *memory)
{
    const int64_t row_step = matrix->row < 0 ? -matrix->row : matrix->row;
    const int64_t column_step = matrix->column < 0 ? -matrix->column : matrix->column;
    const bool along_columns = run->through_blas && row_step < column_step;
    const int64_t lines = along_columns ? columns : rows, length = along_columns ? rows : columns;
    const int64_t line_stride = along_columns ? matrix->column : matrix->row;
    const int64_t stride = along_columns ? matrix->row : matrix->column;
    const int64_t size = element_size(run->panel, matrix->dtype);
    const int64_t part = !along_columns && row_step < column_step ? ACROSS : length;
    for (int64_t first = 0; first < length; first += part) {
        for (int64_t line = 0; line < lines; line++) {
            us_line_load(run->panel, memory + (line * length + first) * (int64_t)us_dtype_size(run->panel),
                      (const char *)matrix->data + (line * line_stride + first * stride) * size, matrix->dtype, stride,
                      smaller(part, length - first), matrix->conjugated);
        }
    }
    return along_columns ? matrix_transposed(memory, run->panel, rows) : matrix_of_rows(memory, run->panel, columns);
}

/* Whether an operand can be used where it is, in a product whose result lies by rows or by columns. */
static bool is_direct(const Run *run, const Matrix *operand, int64_t rows, int64_t columns, bool by_columns)
{
    int64_t stride;
    if (operand->dtype != run->panel) {
        return false;
    }
    return run->through_blas ? form_of(operand, rows, columns, by_columns, &stride) != 0
                             : !operand->conjugated && (columns == 1 || operand->column == 1);
}

bool us_panels_take_workspace(const Run *run, const Block *block, bool direct, bool by_columns, Workspace *space)
{
    const Matmul *product = run->product;
    const int64_t rows = block->tile.rows, columns = block->tile.columns, k = run->parts != NULL ? 0 : product->k;
    space->a_direct = k == 0 || (!run->few_rows && is_direct(run, &block->a, rows, k, by_columns));
    space->b_direct = k == 0 || run->few_rows || is_direct(run, &block->b, k, columns, by_columns);
    const int64_t fitting = PANEL_ELEMENTS / (rows + columns) / LEAST_DEPTH * LEAST_DEPTH;
    space->depth = run->exact && !run->bytes ? EXACT_DEPTH
                   : run->few_rows || (space->a_direct && space->b_direct) ? MOST_DEPTH
                   : fitting > LEAST_DEPTH ? fitting : LEAST_DEPTH;
    space->depth = smaller(space->depth, run->bytes ? smaller(k, BYTES_DEPTH) : k);
    const int64_t elements = us_scratch_count(rows, columns);
    const size_t tile = direct ? 0 : us_scratch_bytes(elements, us_dtype_size(product->compute));
    const size_t exact = run->exact ? us_scratch_bytes(elements, sizeof(int32_t)) : 0; /* or float */
    const size_t a = space->a_direct ? 0 : panel_bytes(run, &block->a, rows, space->depth);
    const size_t b = space->b_direct ? 0 : panel_bytes(run, &block->b, columns, space->depth);
    space->memory = NULL;
    space->bf16 = run->bf16;
    const size_t offsets = run->bytes ? us_scratch_bytes(columns, sizeof *space->offsets) : 0;
    if (tile + exact + a + b + offsets == 0) {
        return true;
    }
    space->memory = us_scratch_take(tile + exact + a + b + offsets);
    char *cursor = space->memory;
    if (cursor != NULL) {
        space->tile = us_scratch_part(&cursor, tile);
        space->exact = us_scratch_part(&cursor, exact);
        space->a = us_scratch_part(&cursor, a);
        space->b = us_scratch_part(&cursor, b);
        space->offsets = us_scratch_part(&cursor, offsets);
    }
    return cursor != NULL;
}

static Matrix from_column(const Run *run, Matrix a, int64_t first)
{
    a.data = (const char *)a.data + first * a.column * element_size(run->panel, a.dtype);
    return a;
}

static Matrix from_row(const Run *run, Matrix b, int64_t first)
{
    b.data = (const char *)b.data + first * b.row * element_size(run->panel, b.dtype);
    return b;
}

/* Of one type. */
static void multiply_packed(const Run *run, const Block *block, const Workspace *space, int64_t first, int64_t depth,
                            const double *alpha, const double *beta, const Matrix *c)
{
    const Sizes sizes = {block->tile.rows, block->tile.columns, depth};
    Matrix a = from_column(run, block->a, first), b = from_row(run, block->b, first);
    if (!space->a_direct) {
        a = packed(run, &a, sizes.m, depth, space->a);
    }
    if (!space->b_direct) {
        b = packed(run, &b, depth, sizes.n, space->b);
    }
    if (run->through_blas) {
        multiply_by_blas(run->panel, &sizes, &a, &b, alpha, beta, c);
    } else {
        us_multiply_by_loops(run->panel, &sizes, &a, &b, alpha, beta, (void *)c->data, c->row);
    }
}

static void multiply_few_rows(const Sizes *sizes, const Matrix *a, const Matrix *b, float *rows, const double *alpha,
                              const double *beta, const Matrix *c)
{
    const int64_t stride = us_few_rows_stride(sizes->k), size = (int64_t)us_dtype_size(a->dtype);
    for (int64_t i = 0; i < sizes->m; i++) {
        float *row = rows + i * stride;
        us_line_load(DTYPE_FLOAT32, row, (const char *)a->data + i * a->row * size, a->dtype, a->column, sizes->k, false);
        memset(row + sizes->k, 0, (size_t)(stride - sizes->k) * sizeof *row);
    }
    us_few_rows_multiply(sizes, rows, b, alpha, beta, (float *)c->data, c->row);
}

void us_multiply_panels(const Run *run, const Block *block, Workspace *space, int64_t first, int64_t depth,
                        const double *alpha, const double *beta, const Matrix *c)
{
    const Sizes sizes = {block->tile.rows, block->tile.columns, depth};
    const Matrix a = from_column(run, block->a, first), b = from_row(run, block->b, first);
    int64_t stride;
    if (run->bytes) {
        us_bytes_multiply(&sizes, &a, &b, space->a, space->b, !is_zero(beta), (int32_t *)c->data, space->offsets);
        return;
    }
    if (run->few_rows) {
        multiply_few_rows(&sizes, &a, &b, (float *)space->a, alpha, beta, c);
        return;
    }
    if (space->bf16 && matrix_has_rows(c, sizes.m, sizes.n, &stride)) {
        const Bf16Result sums = {.sums = (float *)c->data, .stride = stride, .adds = !is_zero(beta)};
        const bool adds_to_others = sums.adds && first == 0;
        if ((!adds_to_others || us_bf16_adds_to(sums.sums, sizes.m, sizes.n, stride)) &&
            us_bf16_multiply(&sizes, &a, &b, space->a, space->b, &sums)) {
            return;
        }
    }
    space->bf16 = false; /* sums may be denormal from here on */
    const int64_t half = run->bf16 ? (depth + 1) / 2 : depth;
    multiply_packed(run, block, space, first, half, alpha, beta, c);
    if (half < depth) {
        multiply_packed(run, block, space, first + half, depth - half, alpha, one, c);
    }
}

bool us_panels_multiply_rounded(const Run *run, const Block *block, const Workspace *space)
{
    const Sizes sizes = {block->tile.rows, block->tile.columns, run->product->k};
    const Bf16Result rows = {.rounded = (uint16_t *)block->c.data, .stride = block->c.row};
    return us_bf16_multiply(&sizes, &block->a, &block->b, space->a, space->b, &rows);
}
