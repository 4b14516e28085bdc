#include "kernels/matmul/matmul.h"

#include "kernels/matmul/bf16.h"
#include "kernels/matmul/blas.h"
#include "kernels/matmul/bytes.h"
#include "kernels/matmul/few_rows.h"
#include "kernels/matmul/panels.h"
#include "kernels/move/transpose.h"
#include "kernels/scratch.h"
#include "kernels/sizes.h"
#include "tensor/parallel.h"
#include "tensor/processors.h"

/* Weak: a statically linked program has no BLAS, because it cannot load one, and must not pull in the loader. */
#pragma weak us_blas_available

/* Blocks of C are long where its elements lie side by side, which is what BLAS packs least often. They are made smaller
 * while there are few of them, unless one is less work than it is worth: fewer than the machine has processors, or than
 * FEW. */
enum { LONG = 1024, SHORT = 512, LEAST_LONG = 256, LEAST_SHORT = 64, FEW = 4, LEAST_WORK = 1 << 21,
       LEAST_WORK_OF_BF16 = 1 << 23, LEAST_WORK_OF_FEW_ROWS = 1 << 20 };

/* Reading a line takes as long as multiplying it by so many others. */
enum { READING = 4 };

/* A small result of a deep product is summed in parts. */
enum { PART_DEPTH = 2048, PART_LIMIT = 8 };

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

static bool is_given(const Matrix *matrix)
{
    return matrix->dtype != DTYPE_NONE;
}

static Matrix moved(const Run *run, Matrix matrix, const int64_t *index, int64_t row, int64_t column)
{
    int64_t offset = row * matrix.row + column * matrix.column;
    for (int32_t axis = 0; axis < run->product->batch_rank; axis++) {
        offset += index[axis] * matrix.batch[axis];
    }
    if (is_given(&matrix)) {
        matrix.data = (const char *)matrix.data + offset * element_size(run->product->compute, matrix.dtype);
    }
    return matrix;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* The size of equal blocks of at most `limit`, which is a multiple of 16. */
static int64_t even(int64_t size, int64_t limit)
{
    return size <= limit ? size : ceiling(ceiling(size, ceiling(size, limit)), 16) * 16;
}

/* Not the number of threads: BLAS forms the sums of smaller blocks in another order, and they must not depend on that. */
static int64_t least_blocks(void)
{
    return smaller(FEW, us_installed_processors());
}

static double work_of(int64_t length, int64_t breadth, int64_t depth)
{
    return (double)larger(length, READING) * (double)larger(breadth, READING) * ((double)depth + 1);
}

static double least_work(const Run *run)
{
    return run->few_rows ? LEAST_WORK_OF_FEW_ROWS : run->bf16 ? LEAST_WORK_OF_BF16 : LEAST_WORK;
}

static void choose_blocks(Run *run)
{
    const Matmul *product = run->product;
    const bool by_columns = product->c.row == 1 && product->c.column != 1;
    const int64_t length = by_columns ? product->m : product->n, breadth = by_columns ? product->n : product->m;
    int64_t longer = run->bf16 || run->bytes ? SHORT : LONG, shorter = SHORT;
    while (run->batch * ceiling(length, even(length, longer)) * ceiling(breadth, even(breadth, shorter)) < least_blocks() &&
           work_of(even(length, longer), even(breadth, shorter), product->k) > least_work(run)) {
        if (shorter > LEAST_LONG || (longer == LEAST_LONG && shorter > LEAST_SHORT)) {
            shorter /= 2;
        } else if (longer > LEAST_LONG) {
            longer /= 2;
        } else {
            break;
        }
    }
    longer = product->undivided ? length : even(length, longer);
    shorter = product->undivided ? breadth : even(breadth, shorter);
    run->block_rows = by_columns ? longer : shorter;
    run->block_columns = by_columns ? shorter : longer;
    run->blocks_down = ceiling(product->m, run->block_rows);
    run->blocks_across = ceiling(product->n, run->block_columns);
}

static Block block_of(const Run *run, int64_t piece)
{
    const Matmul *product = run->product;
    Block block = {.tile = {.column = piece % run->blocks_across * run->block_columns}};
    piece /= run->blocks_across;
    block.tile.row = piece % run->blocks_down * run->block_rows;
    block.tile.batch = piece / run->blocks_down;
    block.tile.rows = smaller(run->block_rows, product->m - block.tile.row);
    block.tile.columns = smaller(run->block_columns, product->n - block.tile.column);
    int64_t index[MATMUL_BATCH_LIMIT];
    int64_t rest = block.tile.batch;
    for (int32_t axis = product->batch_rank - 1; axis >= 0; axis--) {
        index[axis] = rest % product->batch_shape[axis];
        rest /= product->batch_shape[axis];
    }
    block.a = moved(run, product->a, index, block.tile.row, 0);
    block.b = moved(run, product->b, index, 0, block.tile.column);
    block.addend = moved(run, product->addend, index, block.tile.row, block.tile.column);
    block.c = moved(run, product->c, index, block.tile.row, block.tile.column);
    return block;
}

/* ---- blocks with their sums -------------------------------------------------------------------------------------- */

static const double one[2] = {1, 0}, zero[2] = {0, 0};

static void multiply_in_place(const Run *run, const Block *block, Workspace *space, const double *beta)
{
    for (int64_t first = 0; first < run->product->k; first += space->depth) {
        const int64_t depth = smaller(space->depth, run->product->k - first);
        us_multiply_panels(run, block, space, first, depth, run->product->alpha, first == 0 ? beta : one, &block->c);
    }
}

static void add_products(const Run *run, const Block *block, const Workspace *space)
{
    const int64_t rows = block->tile.rows, columns = block->tile.columns;
    int64_t *const sums = (int64_t *)space->tile;
    if (run->bytes) {
        us_bytes_add(rows, columns, (const int32_t *)space->exact, space->offsets, sums);
    } else {
        us_add_exact(sums, (const float *)space->exact, rows * columns);
    }
}

/* The tile gets the sums of products, not yet multiplied by alpha. */
static void multiply_into_tile(const Run *run, const Block *block, Workspace *space)
{
    const int64_t count = block->tile.rows * block->tile.columns;
    const Matrix tile = matrix_of_rows(run->exact ? space->exact : space->tile, run->panel, block->tile.columns);
    if (run->product->k == 0 || is_zero(run->product->alpha) || run->exact) {
        memset(space->tile, 0, (size_t)count * us_dtype_size(run->product->compute));
    }
    if (run->product->k == 0 || is_zero(run->product->alpha)) {
        return;
    }
    const int64_t k = run->product->k, exact_depth = run->bytes ? BYTES_DEPTH / space->depth * space->depth : space->depth;
    for (int64_t first = 0; first < k; first += space->depth) {
        const int64_t depth = smaller(space->depth, k - first);
        const bool begins = first == 0 || (run->exact && first % exact_depth == 0);
        us_multiply_panels(run, block, space, first, depth, one, begins ? zero : one, &tile);
        if (run->exact && (first + depth == k || (first + depth) % exact_depth == 0)) {
            add_products(run, block, space);
        }
    }
}

/* Whether sums are only added to what is there, which is all that kernels/matmul/bf16.h does. */
static bool is_plain_sum(const Matmul *product, bool adds)
{
    return product->alpha[0] == 1 && (!adds || product->beta[0] == 1);
}

/* Whether the block became C at once, without a tile of sums. */
static bool multiply_rounded(const Run *run, const Block *block, const Workspace *space)
{
    const Matmul *product = run->product;
    const bool is_sum = is_plain_sum(product, false) && (!is_given(&block->addend) || is_zero(product->beta)) &&
                        product->finish == NULL && product->finished == DTYPE_NONE && run->parts == NULL;
    return run->bf16 && is_sum && product->k > 0 && product->k <= BF16_SHALLOW && block->c.dtype == block->a.dtype &&
           block->c.column == 1 && us_panels_multiply_rounded(run, block, space);
}

/* The tile gets the sums of the parts. */
static void add_parts(const Run *run, const Block *block, const Workspace *space)
{
    const Matmul *product = run->product;
    const int64_t size = (int64_t)us_dtype_size(product->compute);
    for (int64_t part = 0; part < run->part_count; part++) {
        for (int64_t row = 0; row < block->tile.rows; row++) {
            const int64_t matrix = part * run->batch + block->tile.batch;
            const char *from = run->parts + ((matrix * product->m + block->tile.row + row) * product->n +
                                             block->tile.column) * size;
            char *to = space->tile + row * block->tile.columns * size;
            if (part == 0) {
                memcpy(to, from, (size_t)(block->tile.columns * size));
            } else {
                us_line_blend(product->compute, to, one, from, one, block->tile.columns);
            }
        }
    }
}

/* Rows of a tile, `row_size` bytes apart, to C. Those of few columns, which are rows of the transposed product, lie across. */
static void store_tile(const Run *run, const Block *block, DType finished, const char *tile, int64_t row_size)
{
    const Matrix *c = &block->c;
    const int64_t rows = block->tile.rows, columns = block->tile.columns, size = (int64_t)sizeof(float);
    if (c->row == 1 && c->column != 1 && c->dtype == DTYPE_FLOAT32 && finished == DTYPE_FLOAT32) {
        us_transpose((char *)c->data, c->column * size, tile, row_size, rows, columns, size);
        return;
    }
    for (int64_t row = 0; row < rows; row++) {
        us_line_store(finished, element_at(run->product->compute, c, row, 0), c->dtype, c->column, tile + row * row_size, columns);
    }
}

/* C = finish(alpha * tile + beta * addend), rounded. */
static void finish_tile(const Run *run, Block *block, const Workspace *space)
{
    const Matmul *product = run->product;
    const DType compute = product->compute;
    const bool adds = is_given(&block->addend) && !is_zero(product->beta);
    const int64_t row_size = block->tile.columns * (int64_t)us_dtype_size(compute);
    char line[LINE_ELEMENTS * LARGEST_ELEMENT];
    for (int64_t row = 0; row < block->tile.rows; row++) {
        for (int64_t column = 0; column < block->tile.columns; column += LINE_ELEMENTS) {
            const int64_t count = smaller(LINE_ELEMENTS, block->tile.columns - column);
            char *values = space->tile + row * row_size + column * (int64_t)us_dtype_size(compute);
            if (adds) {
                us_line_load(compute, line, element_at(compute, &block->addend, row, column), block->addend.dtype,
                          block->addend.column, count, false);
            }
            us_line_blend(compute, values, product->alpha, adds ? line : NULL, product->beta, count);
        }
    }
    block->tile.values = space->tile;
    block->tile.row_stride = block->tile.columns;
    block->tile.column_stride = 1;
    if (product->finish != NULL) {
        product->finish(product->finish_context, &block->tile);
    }
    const DType finished = product->finished != DTYPE_NONE ? product->finished : compute;
    store_tile(run, block, finished, space->tile, row_size);
}

/* C = addend, in the computed type. */
static void copy_addend(const Run *run, const Block *block, bool by_columns)
{
    const DType compute = run->product->compute;
    const int64_t lines = by_columns ? block->tile.columns : block->tile.rows;
    const int64_t length = by_columns ? block->tile.rows : block->tile.columns;
    for (int64_t line = 0; line < lines; line++) {
        const int64_t row = by_columns ? 0 : line, column = by_columns ? line : 0;
        char *to = element_at(compute, &block->c, row, column);
        const char *from = element_at(compute, &block->addend, row, column);
        const int64_t step = by_columns ? block->addend.row : block->addend.column;
        const int64_t to_step = by_columns ? block->c.row : block->c.column;
        if (length == 1 || to_step == 1) {
            us_line_load(compute, to, from, block->addend.dtype, step, length, false);
        } else { /* a vector with gaps */
            for (int64_t i = 0; i < length; i++) {
                us_line_load(compute, to + i * to_step * (int64_t)us_dtype_size(compute),
                             from + i * step * element_size(compute, block->addend.dtype), block->addend.dtype, 1, 1,
                             false);
            }
        }
    }
}

static bool is_same(const Matrix *a, const Matrix *b)
{
    return a->data == b->data && a->dtype == b->dtype && a->row == b->row && a->column == b->column;
}

static void run_piece(void *context, int64_t piece)
{
    Run *run = context;
    const Matmul *product = run->product;
    Block block = block_of(run, piece);
    int64_t stride;
    const bool by_rows = matrix_has_rows(&block.c, block.tile.rows, block.tile.columns, &stride) &&
                         (run->through_blas || block.c.column == 1);
    const bool by_columns = !by_rows && run->through_blas &&
                            matrix_has_columns(&block.c, block.tile.rows, block.tile.columns, &stride);
    const bool adds = is_given(&block.addend) && !is_zero(product->beta);
    const bool direct = (by_rows || by_columns) && block.c.dtype == product->compute && !run->exact &&
                        product->finished == DTYPE_NONE && run->parts == NULL && product->k > 0 &&
                        !is_zero(product->alpha) && (by_rows || !run->few_rows) &&
                        (!run->bf16 || is_plain_sum(product, adds));
    Workspace space;
    if (!us_panels_take_workspace(run, &block, direct, direct && by_columns, &space)) {
        run->no_memory = true;
        return;
    }
    if (direct) {
        if (adds && !is_same(&block.addend, &block.c)) {
            copy_addend(run, &block, by_columns);
        }
        multiply_in_place(run, &block, &space, adds ? product->beta : zero);
        block.tile.values = (void *)block.c.data;
        block.tile.row_stride = by_columns ? 1 : block.c.row;
        block.tile.column_stride = by_columns ? block.c.column : 1;
        if (product->finish != NULL) {
            product->finish(product->finish_context, &block.tile);
        }
    } else if (!multiply_rounded(run, &block, &space)) {
        if (run->parts != NULL) {
            add_parts(run, &block, &space);
        } else {
            multiply_into_tile(run, &block, &space);
        }
        finish_tile(run, &block, &space);
    }
    us_scratch_give_back(space.memory);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static bool is_byte(DType dtype)
{
    return dtype == DTYPE_INT8 || dtype == DTYPE_UINT8;
}

static Run run_of(const Matmul *product)
{
    Run run = {.product = product, .panel = product->compute, .batch = 1};
    const bool has_blas = us_blas_available != NULL && us_blas_available();
    const bool are_bytes = product->compute == DTYPE_INT64 && is_byte(product->a.dtype) && is_byte(product->b.dtype);
    run.bytes = are_bytes && us_bytes_takes(product->b.dtype);
    run.exact = run.bytes || (are_bytes && has_blas);
    run.through_blas = has_blas && (run.exact || product->compute != DTYPE_INT64);
    run.few_rows = us_few_rows_take(product);
    run.bf16 = !run.few_rows && product->compute == DTYPE_FLOAT32 && us_bf16_takes(product->a.dtype, product->b.dtype);
    if (run.exact) {
        run.panel = DTYPE_FLOAT32;
    }
    for (int32_t axis = 0; axis < product->batch_rank; axis++) {
        run.batch *= product->batch_shape[axis];
    }
    choose_blocks(&run);
    return run;
}

static KernelStatus run_blocks(Run *run)
{
    us_parallel(run->batch * run->blocks_down * run->blocks_across, run_piece, run);
    return run->no_memory ? KERNEL_NO_MEMORY : KERNEL_OK;
}

/* Products of equal parts of the depth, as one more axis of the batch; what is left over is added to the first. */
static KernelStatus multiply_parts(const Run *run, int64_t count, void *parts)
{
    const int64_t total = run->batch * run->product->m * run->product->n, depth = run->product->k / count;
    const int32_t last = run->product->batch_rank;
    Matmul products = *run->product;
    products.addend = (Matrix){0};
    products.finish = NULL;
    products.finished = DTYPE_NONE;
    products.alpha[0] = 1;
    products.alpha[1] = 0;
    products.beta[0] = 1;
    products.beta[1] = 0;
    products.c = matrix_of_rows(parts, products.compute, products.n);
    int64_t stride = products.m * products.n;
    for (int32_t axis = last - 1; axis >= 0; axis--) {
        products.c.batch[axis] = stride;
        stride *= products.batch_shape[axis];
    }
    Matmul rest = products;
    products.k = depth;
    products.batch_rank = last + 1;
    products.batch_shape[last] = count;
    products.a.batch[last] = depth * products.a.column;
    products.b.batch[last] = depth * products.b.row;
    products.c.batch[last] = total;
    KernelStatus status = us_matmul(&products);
    rest.k -= count * depth;
    if (status != KERNEL_OK || rest.k == 0) {
        return status;
    }
    const int64_t done = count * depth;
    rest.a.data = (const char *)rest.a.data + done * rest.a.column * element_size(rest.compute, rest.a.dtype);
    rest.b.data = (const char *)rest.b.data + done * rest.b.row * element_size(rest.compute, rest.b.dtype);
    rest.addend = rest.c;
    return us_matmul(&rest);
}

static KernelStatus sum_parts(Run *run, int64_t count)
{
    const int64_t total = run->batch * run->product->m * run->product->n;
    void *parts = us_scratch_array(us_scratch_count(count, total), us_dtype_size(run->product->compute));
    if (parts == NULL) {
        return KERNEL_NO_MEMORY;
    }
    KernelStatus status = multiply_parts(run, count, parts);
    if (status == KERNEL_OK) {
        run->parts = parts;
        run->part_count = count;
        status = run_blocks(run);
    }
    us_scratch_give_back(parts);
    return status;
}

/* Matrices of a batch that share B and lie below each other are one. */
static Matmul merged(const Matmul *product)
{
    Matmul whole = *product;
    whole.a.conjugated &= is_complex(whole.compute);
    whole.b.conjugated &= is_complex(whole.compute);
    while (whole.batch_rank > 0 && whole.finish == NULL) {
        const int32_t last = whole.batch_rank - 1;
        const bool adds = is_given(&whole.addend);
        if (whole.b.batch[last] != 0 || whole.a.batch[last] != whole.m * whole.a.row ||
            whole.c.batch[last] != whole.m * whole.c.row ||
            (adds && whole.addend.batch[last] != whole.m * whole.addend.row)) {
            break;
        }
        whole.m *= whole.batch_shape[last];
        whole.batch_rank = last;
    }
    return whole;
}

static Matrix turned(Matrix matrix)
{
    const int64_t row = matrix.row;
    matrix.row = matrix.column;
    matrix.column = row;
    return matrix;
}

/* Few columns are the few rows of the transposed product. */
static Matmul with_few_rows(const Matmul *product)
{
    Matmul other = *product;
    other.m = product->n;
    other.n = product->m;
    other.a = turned(product->b);
    other.b = turned(product->a);
    other.addend = turned(product->addend);
    other.c = turned(product->c);
    return product->finish == NULL && product->n < product->m && us_few_rows_take(&other) ? other : *product;
}

KernelStatus us_matmul(const Matmul *product)
{
    Matmul whole = merged(product);
    whole = with_few_rows(&whole);
    if (whole.m == 0 || whole.n == 0) {
        return KERNEL_OK;
    }
    Run run = run_of(&whole);
    if (run.batch == 0) {
        return KERNEL_OK;
    }
    const int64_t parts = smaller(whole.k / PART_DEPTH, PART_LIMIT);
    if (run.batch * run.blocks_down * run.blocks_across < least_blocks() && parts > 1 && !whole.undivided &&
        whole.batch_rank < MATMUL_BATCH_LIMIT && !is_zero(whole.alpha)) {
        return sum_parts(&run, parts);
    }
    return run_blocks(&run);
}

/* ---- on views ---------------------------------------------------------------------------------------------------- */

Matrix us_matrix_of_view(const View *view)
{
    Matrix matrix = {.data = view->data, .dtype = view->dtype};
    const int32_t batch = view->rank - 2;
    if (!us_view_is_absent(view)) {
        matrix.row = view->strides[batch];
        matrix.column = view->strides[batch + 1];
        memcpy(matrix.batch, view->strides, (size_t)batch * sizeof *view->strides);
    }
    return matrix;
}

static void read_factor(DType compute, const View *view, double *factor)
{
    if (!us_view_is_absent(view)) {
        us_line_load(is_complex(compute) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64, factor, view->data, view->dtype, 1, 1,
                     false);
    }
}

Matmul us_matmul_of_views(const View *views, const ViewProduct *given)
{
    enum { A, B, ADDEND, C, ALPHA, BETA };
    const int32_t batch = views[C].rank - 2;
    Matmul product = {
        .m = views[C].shape[batch], .n = views[C].shape[batch + 1], .k = views[A].shape[batch + 1],
        .batch_rank = batch,
        .a = us_matrix_of_view(&views[A]), .b = us_matrix_of_view(&views[B]),
        .addend = us_matrix_of_view(&views[ADDEND]), .c = us_matrix_of_view(&views[C]),
        .compute = given->compute,
        .alpha = {given->alpha[0], given->alpha[1]}, .beta = {given->beta[0], given->beta[1]},
    };
    product.a.conjugated = given->conjugated_a;
    product.b.conjugated = given->conjugated_b;
    memcpy(product.batch_shape, views[C].shape, (size_t)batch * sizeof *product.batch_shape);
    read_factor(product.compute, &views[ALPHA], product.alpha);
    read_factor(product.compute, &views[BETA], product.beta);
    return product;
}

KernelStatus us_product(const View *views, const void *attributes)
{
    const Matmul product = us_matmul_of_views(views, attributes);
    return us_matmul(&product);
}
