#include "ascend/opapi/blocked_weight.h"

#include "ascend/common/op_memory.h"
#include "kernels/sizes.h"

enum { BLOCK_ROWS = 16, BLOCK_BYTES = 32 };

static int64_t block_columns(const View *view)
{
    return BLOCK_BYTES / (int64_t)us_dtype_size(view->dtype);
}

/* The shape of the blocks of matrices with the sizes of a view in front. */
static Shape blocks_of(const View *batch, int32_t axes, int64_t rows, int64_t columns)
{
    Shape shape = {.rank = axes + 4};
    memcpy(shape.sizes, batch->shape, (size_t)axes * sizeof *shape.sizes);
    shape.sizes[axes] = ceiling(columns, block_columns(batch));
    shape.sizes[axes + 1] = ceiling(rows, BLOCK_ROWS);
    shape.sizes[axes + 2] = BLOCK_ROWS;
    shape.sizes[axes + 3] = block_columns(batch);
    return shape;
}

static bool is_shape(const Shape *shape, int32_t rank, const int64_t *sizes)
{
    return shape->rank == rank && memcmp(shape->sizes, sizes, (size_t)rank * sizeof *sizes) == 0;
}

/* Rows of 16, column after column of blocks: [batch, rows, columns / c, c]. */
static View rows_of_blocks(const View *view, const Shape *blocks)
{
    const int32_t batch = blocks->rank - 4;
    const int64_t *of = blocks->sizes + batch, rows = of[1] * of[2];
    View result = {.data = view->data, .dtype = view->dtype, .rank = batch + 3};
    memcpy(result.shape, blocks->sizes, (size_t)batch * sizeof *result.shape);
    result.shape[batch] = rows;
    result.shape[batch + 1] = of[0];
    result.shape[batch + 2] = of[3];
    result.strides[batch] = of[3];
    result.strides[batch + 1] = rows * of[3];
    result.strides[batch + 2] = 1;
    int64_t matrix = of[0] * rows * of[3];
    for (int32_t axis = batch - 1; axis >= 0; axis--) {
        result.strides[axis] = matrix;
        matrix *= result.shape[axis];
    }
    return result;
}

/* rows x columns of the copy, whose lines are as long as the blocks are wide. */
static View matrices_in(const View *copied, int64_t rows, int64_t columns)
{
    const int32_t batch = copied->rank - 3;
    const int64_t line = copied->shape[batch + 1] * copied->shape[batch + 2];
    View view = {.data = copied->data, .dtype = copied->dtype, .rank = batch + 2};
    memcpy(view.shape, copied->shape, (size_t)batch * sizeof *view.shape);
    memcpy(view.strides, copied->strides, (size_t)batch * sizeof *view.strides);
    view.shape[batch] = rows;
    view.shape[batch + 1] = columns;
    view.strides[batch] = line;
    view.strides[batch + 1] = 1;
    return view;
}

static View transposed(View view)
{
    return op_swap_axes(view, view.rank - 2, view.rank - 1);
}

/* The operand as `shown` of a copy of `copied`. */
static const Operand *with_copy(OpCall *op, const Operand *operand, View copied, View shown)
{
    Operand *result = op_take(op, sizeof *result);
    View *view = op_take(op, sizeof *view);
    if (op_refused(op)) {
        return operand;
    }
    *view = copied;
    *result = *operand;
    result->blocks = view;
    result->given = operand;
    result->view = shown;
    return result;
}

static const Operand *copied(OpCall *op, const Operand *weight, const Shape *blocks, int64_t rows, int64_t columns,
                             bool turned)
{
    const View rows_of = rows_of_blocks(&weight->view, blocks), shown = matrices_in(&rows_of, rows, columns);
    return with_copy(op, weight, rows_of, turned ? transposed(shown) : shown);
}

static bool require_format(OpCall *op, const Operand *weight)
{
    const bool known = !acl_format_is_private(weight->format) || weight->format == ACL_FORMAT_FRACTAL_NZ;
    op_require(op, known, weight->name, "format", op->invalid, "%s has private format %d", weight->name,
               (int)weight->format);
    return !op_refused(op) && op_given(weight) && weight->format == ACL_FORMAT_FRACTAL_NZ;
}

/* Whether it says that its data lies in blocks: those have two dimensions more. */
static bool is_in_blocks(const Operand *weight)
{
    return weight->view.rank >= 2 && weight->storage->rank == weight->view.rank + 2;
}

/* Whether the storage shape is that of the blocks of this view, which shows all of them. */
static bool has_blocks(const Operand *weight, const View *view, Shape *blocks)
{
    if (!us_view_is_contiguous(view) || weight->offset != 0 || us_dtype_size(view->dtype) == 0) {
        return false;
    }
    *blocks = blocks_of(view, view->rank - 2, view->shape[view->rank - 2], view->shape[view->rank - 1]);
    return is_shape(blocks, weight->storage->rank, weight->storage->sizes);
}

const Operand *op_weight(OpCall *op, const Operand *weight)
{
    if (!require_format(op, weight) || !is_in_blocks(weight)) {
        return weight;
    }
    Shape blocks = {0};
    const View *view = &weight->view;
    const View other = transposed(*view);
    const bool straight = has_blocks(weight, view, &blocks);
    char text[SHAPE_TEXT_SIZE];
    op_require(op, straight || has_blocks(weight, &other, &blocks), weight->name, "format", op->invalid,
               "%s is %s of %s in blocks, but its storage, %s, is not of them", weight->name,
               op_shape_text(op, weight), acl_dtype_name(weight->dtype),
               us_shape_text(weight->storage->rank, weight->storage->sizes, text, sizeof text));
    const View *base = straight ? view : &other;
    return op_refused(op) ? weight : copied(op, weight, &blocks, base->shape[view->rank - 2],
                                            base->shape[view->rank - 1], !straight);
}

Operands op_weights(OpCall *op, Operands weights)
{
    const Operand **items = op_take(op, (size_t)(weights.count > 0 ? weights.count : 1) * sizeof *items);
    for (int32_t i = 0; i < weights.count && !op_refused(op); i++) {
        items[i] = op_weight(op, weights.items[i]);
    }
    if (!op_refused(op)) {
        weights.items = items;
    }
    return weights;
}

const Operand *op_weight_of(OpCall *op, const Operand *weight, int32_t rank, int64_t rows, int64_t columns)
{
    if (!require_format(op, weight)) {
        return weight;
    }
    const View *view = &weight->view;
    const int32_t batch = view->rank - 4;
    if (batch >= 0 && us_dtype_size(view->dtype) > 0 && us_view_is_contiguous(view) && weight->offset == 0 &&
        (view->rank == rank + 2 || !(view->shape[view->rank - 2] == rows && view->shape[view->rank - 1] == columns))) {
        const Shape blocks = blocks_of(view, batch, rows, columns);
        if (is_shape(&blocks, view->rank, view->shape)) {
            return copied(op, weight, &blocks, rows, columns, false);
        }
    }
    return op_weight(op, weight);
}

bool op_is_turned(const View *view)
{
    const int32_t last = view->rank - 1;
    return view->strides[last - 1] == 1 && view->shape[last - 1] > 1 && view->strides[last] != 1;
}

const Operand *op_blocked_pages(OpCall *op, const Operand *keys)
{
    enum { PAGE, HEAD, BLOCK, ROW, IN_BLOCK, AXES };
    if (op_refused(op) || !op_given(keys) || keys->view.rank != AXES || us_dtype_size(keys->view.dtype) == 0 ||
        keys->view.shape[IN_BLOCK] != block_columns(&keys->view)) {
        return keys;
    }
    const int64_t *sizes = keys->view.shape;
    const View shown = us_view_contiguous(keys->view.data, keys->view.dtype, 4,
                                          (const int64_t[]){sizes[PAGE], sizes[HEAD], sizes[ROW],
                                                            sizes[BLOCK] * sizes[IN_BLOCK]});
    return with_copy(op, keys, op_swap_axes(keys->view, BLOCK, ROW), shown);
}
