#include "ascend/opapi/blocked_weight.h"

#include "ascend/common/op_memory.h"
#include "ascend/opapi/blocked_formats.h"
#include "kernels/quantize/packing.h"
#include "kernels/sizes.h"

enum { NUMBERS_OF_BYTE = 2, NUMBERS_OF_INT32 = 8 };

static int64_t block_columns(const Operand *weight)
{
    return op_block_columns(weight->dtype);
}

/* The shape of the blocks of matrices with the sizes of the weight in front. */
static Shape blocks_of(const Operand *weight, int32_t axes, int64_t rows, int64_t columns)
{
    Shape shape = {.rank = axes + 4};
    memcpy(shape.sizes, weight->view.shape, (size_t)axes * sizeof *shape.sizes);
    shape.sizes[axes] = ceiling(columns, block_columns(weight));
    shape.sizes[axes + 1] = ceiling(rows, BLOCK_ROWS);
    shape.sizes[axes + 2] = BLOCK_ROWS;
    shape.sizes[axes + 3] = block_columns(weight);
    return shape;
}

static bool is_shape(const Shape *shape, int32_t rank, const int64_t *sizes)
{
    return shape->rank == rank && memcmp(shape->sizes, sizes, (size_t)rank * sizeof *sizes) == 0;
}

/* Rows of 16, column after column of blocks: the first of them as [batch, rows, columns / c, c]; of ACL_INT4, c / 2 bytes. */
static View rows_of_blocks(const Operand *weight, const Shape *blocks, int64_t used)
{
    const int32_t batch = blocks->rank - 4;
    const bool bytes = weight->dtype == ACL_INT4;
    const int64_t *of = blocks->sizes + batch, rows = of[1] * of[2], wide = bytes ? of[3] / NUMBERS_OF_BYTE : of[3];
    View result = {.data = weight->view.data, .dtype = bytes ? DTYPE_UINT8 : weight->view.dtype, .rank = batch + 3};
    memcpy(result.shape, blocks->sizes, (size_t)batch * sizeof *result.shape);
    result.shape[batch] = used;
    result.shape[batch + 1] = of[0];
    result.shape[batch + 2] = wide;
    result.strides[batch] = wide;
    result.strides[batch + 1] = rows * wide;
    result.strides[batch + 2] = 1;
    int64_t matrix = of[0] * rows * wide;
    for (int32_t axis = batch - 1; axis >= 0; axis--) {
        result.strides[axis] = matrix;
        matrix *= result.shape[axis];
    }
    return result;
}

/* The columns of the copy, whose lines are as long as the blocks are wide. */
static View matrices_in(const View *copied, int64_t columns)
{
    const int32_t batch = copied->rank - 3;
    const int64_t line = copied->shape[batch + 1] * copied->shape[batch + 2];
    int64_t sizes[VIEW_RANK_LIMIT];
    memcpy(sizes, copied->shape, (size_t)(batch + 1) * sizeof *sizes);
    sizes[batch + 1] = line;
    View view = us_view_contiguous(copied->data, copied->dtype, batch + 2, sizes);
    view.shape[batch + 1] = columns;
    return view;
}

/* A view of bytes that hold two elements each. */
static View as_numbers(View view)
{
    view.dtype = DTYPE_NONE;
    for (int32_t axis = 0; axis < view.rank - 1; axis++) {
        view.strides[axis] *= NUMBERS_OF_BYTE;
    }
    return view;
}

static View transposed(View view)
{
    return op_swap_axes(view, view.rank - 2, view.rank - 1);
}

const Operand *op_with_copy(OpCall *op, const Operand *operand, View copied, View shown)
{
    Operand *result = op_take(op, sizeof *result);
    View *view = op_take(op, sizeof *view);
    if (op_refused(op)) {
        return operand;
    }
    *view = copied;
    *result = *operand;
    result->blocks = view;
    result->given = operand->given != NULL ? operand->given : operand;
    result->view = shown;
    return result;
}

static const Operand *copied(OpCall *op, const Operand *weight, const Shape *blocks, int64_t rows, int64_t columns,
                             bool turned)
{
    const View rows_of = rows_of_blocks(weight, blocks, rows);
    View shown = matrices_in(&rows_of, columns);
    shown = weight->dtype == ACL_INT4 ? as_numbers(shown) : shown;
    return op_with_copy(op, weight, rows_of, turned ? transposed(shown) : shown);
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
    if (!us_view_is_contiguous(view) || weight->offset != 0 || block_columns(weight) == 0) {
        return false;
    }
    *blocks = blocks_of(weight, view->rank - 2, view->shape[view->rank - 2], view->shape[view->rank - 1]);
    return op_is_stored_as(weight, blocks);
}

/* A single row or column would fit either way: its strides tell. */
static bool has_turned_strides(const View *view)
{
    const int32_t row = view->rank - 2, column = view->rank - 1;
    return view->strides[row] == 1 && view->strides[column] == view->shape[row] &&
           !(view->strides[column] == 1 && view->strides[row] == view->shape[column]);
}

const Operand *op_weight(OpCall *op, const Operand *weight)
{
    if (!require_format(op, weight) || !is_in_blocks(weight)) {
        return weight;
    }
    Shape blocks = {0};
    const View *view = &weight->view;
    const View other = transposed(*view);
    const bool straight = !has_turned_strides(view) && has_blocks(weight, view, &blocks);
    char text[SHAPE_TEXT_SIZE];
    op_require(op, straight || has_blocks(weight, &other, &blocks), weight->name, "format", op->invalid,
               "%s is %s of %s in blocks, but its storage, %s, is not of them", weight->name,
               op_shape_text(op, weight), acl_dtype_name(weight->dtype),
               us_shape_text(weight->storage->rank, weight->storage->sizes, text, sizeof text));
    const View *base = straight ? view : &other;
    return op_refused(op) ? weight : copied(op, weight, &blocks, base->shape[view->rank - 2],
                                            base->shape[view->rank - 1], !straight);
}

const Operand *op_as_blocked(OpCall *op, const Operand *weight)
{
    if (op_refused(op) || !op_given(weight) || acl_format_is_private(weight->format)) {
        return weight;
    }
    Operand *result = op_take(op, sizeof *result);
    if (op_refused(op)) {
        return weight;
    }
    *result = *weight;
    result->format = ACL_FORMAT_FRACTAL_NZ;
    result->given = weight;
    return result;
}

const Operand *op_prepared_weight(OpCall *op, const Operand *weight)
{
    const bool prepared = !acl_format_is_private(weight->format) && op_given(weight) && weight->storage->rank == 1;
    op_require(op, prepared || weight->format == ACL_FORMAT_FRACTAL_NZ, weight->name, "private", op->invalid,
               "%s is not of ACL_FORMAT_FRACTAL_NZ", weight->name);
    return op_as_blocked(op, weight);
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
    columns = weight->dtype == ACL_INT32 ? ceiling(columns, NUMBERS_OF_INT32) : columns;
    if (batch >= 0 && block_columns(weight) > 0 && us_view_is_contiguous(view) && weight->offset == 0 &&
        (view->rank == rank + 2 || !(view->shape[view->rank - 2] == rows && view->shape[view->rank - 1] == columns))) {
        const Shape blocks = blocks_of(weight, batch, rows, columns);
        if (is_shape(&blocks, view->rank, view->shape)) {
            return copied(op, weight, &blocks, rows, columns, false);
        }
    }
    return op_weight(op, weight);
}

enum { OF_N, CHANNELS, DEPTH, ROWS, COLUMNS, CONVOLUTION_RANK };

/* [n, channels / c, c, depth, rows, columns] of the blocks, which its copy has in this order. */
static View convolution_in_blocks(const Operand *weight)
{
    const int64_t *of = weight->view.shape, c = block_columns(weight), channels = ceiling(of[CHANNELS], c);
    const int64_t piece = ceiling(of[OF_N], BLOCK_ROWS) * BLOCK_ROWS * c, plane = of[ROWS] * of[COLUMNS] * piece;
    return (View){.data = weight->view.data, .dtype = weight->view.dtype, .rank = CONVOLUTION_RANK + 1,
                  .shape = {of[OF_N], channels, c, of[DEPTH], of[ROWS], of[COLUMNS]},
                  .strides = {c, plane, 1, channels * plane, of[COLUMNS] * piece, piece}};
}

const Operand *op_convolution_weight(OpCall *op, const Operand *weight)
{
    op_require(op, weight->format == ACL_FRACTAL_Z_3D, weight->name, "private", op->invalid,
               "%s is not of ACL_FRACTAL_Z_3D", weight->name);
    if (op_refused(op) || weight->storage->rank != 4 || weight->view.rank != CONVOLUTION_RANK) {
        return weight;
    }
    const Shape plain = op_shape(weight);
    BlockedFormat blocks;
    const bool fits = us_view_is_contiguous(&weight->view) && weight->offset == 0 &&
                      op_blocked_format(ACL_FORMAT_NCDHW, ACL_FRACTAL_Z_3D, &plain, block_columns(weight), &blocks);
    char text[SHAPE_TEXT_SIZE];
    op_require(op, fits && op_is_stored_as(weight, &blocks.storage), weight->name, "format", op->invalid,
               "%s is %s in blocks, but its storage, %s, is not of them", weight->name, op_shape_text(op, weight),
               us_shape_text(weight->storage->rank, weight->storage->sizes, text, sizeof text));
    if (op_refused(op)) {
        return weight;
    }
    const View copied = convolution_in_blocks(weight);
    const int64_t *of = weight->view.shape;
    View shown = us_view_contiguous(copied.data, copied.dtype, CONVOLUTION_RANK,
                                    (const int64_t[]){of[OF_N], copied.shape[1] * copied.shape[2], of[DEPTH], of[ROWS],
                                                      of[COLUMNS]});
    shown.shape[CHANNELS] = of[CHANNELS];
    return op_with_copy(op, weight, copied, shown);
}

bool op_is_turned(const View *view)
{
    const int32_t last = view->rank - 1;
    return view->strides[last - 1] == 1 && view->shape[last - 1] > 1 && view->strides[last] != 1;
}

void op_require_packed_weight(OpCall *op, const Operand *to)
{
    Shape blocks;
    if (require_format(op, to)) {
        char text[SHAPE_TEXT_SIZE];
        op_require(op, has_blocks(to, &to->view, &blocks), to->name, "format", op->invalid,
                   "%s is %s, its storage, %s, is not of its blocks", to->name, op_shape_text(op, to),
                   us_shape_text(to->storage->rank, to->storage->sizes, text, sizeof text));
    } else if (!op_refused(op)) {
        op_require_packed_rows(op, to);
    }
}

/* [batch, rows, parts, bytes]: all rows of the blocks, or those of the matrices, in one part. */
static View packed_bytes(const Operand *to)
{
    Shape blocks;
    if (to->format != ACL_FORMAT_FRACTAL_NZ) {
        View view = op_integers_of(to).view;
        return us_view_insert_axis(view.rank == 3 ? view : us_view_insert_axis(view, 0, 1, 0), 2, 1, 0);
    }
    has_blocks(to, &to->view, &blocks);
    View lines = rows_of_blocks(to, &blocks, blocks.sizes[blocks.rank - 3] * BLOCK_ROWS);
    for (int32_t axis = 0; axis < lines.rank - 1 && to->dtype == ACL_INT32; axis++) {
        lines.strides[axis] *= (int64_t)sizeof(int32_t);
    }
    lines.dtype = DTYPE_UINT8;
    lines.shape[lines.rank - 1] = BLOCK_BYTES;
    return lines.rank == 4 ? lines : us_view_insert_axis(lines, 0, 1, 0);
}

aclnnStatus op_pack_weight(OpCall *op, const Operand *weight, const Operand *to)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View bytes = packed_bytes(to);
    const View numbers = weight->view.rank == 3 ? weight->view : us_view_insert_axis(weight->view, 0, 1, 0);
    const PlannedView views[] = {{weight, VIEW_READ, &numbers}, {to, VIEW_WRITE, &bytes}};
    return op_plan_views(op, us_pack_integers, NULL, 0, sizeof views / sizeof *views, views);
}

const Operand *op_blocked_pages(OpCall *op, const Operand *keys)
{
    enum { PAGE, HEAD, BLOCK, ROW, IN_BLOCK, AXES };
    if (op_refused(op) || !op_given(keys) || keys->view.rank != AXES || us_dtype_size(keys->view.dtype) == 0 ||
        keys->view.shape[IN_BLOCK] != block_columns(keys)) {
        return keys;
    }
    const int64_t *sizes = keys->view.shape;
    const View shown = us_view_contiguous(keys->view.data, keys->view.dtype, 4,
                                          (const int64_t[]){sizes[PAGE], sizes[HEAD], sizes[ROW],
                                                            sizes[BLOCK] * sizes[IN_BLOCK]});
    return op_with_copy(op, keys, op_swap_axes(keys->view, BLOCK, ROW), shown);
}
