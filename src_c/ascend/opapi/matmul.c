/* Matrix products: src_c/kernels/matmul. */
#include "ascend/opapi/matmul.h"

#include "ascend/common/op_memory.h"
#include "ascend/opapi/packed_integers.h"
#include "kernels/matmul/lora.h"
#include "kernels/matmul/matmul.h"
#include "kernels/quantize/sums.h"

#include <string.h>

/* Shapes of a product as torch.matmul has them: a vector on the left is a row, one on the right a column. */
static void as_matrix(View *view, bool left)
{
    if (view->rank == 1) {
        const int32_t kept = left ? 1 : 0;
        const int64_t size = view->shape[0], stride = view->strides[0];
        view->rank = 2;
        view->shape[kept] = size;
        view->strides[kept] = stride;
        view->shape[1 - kept] = 1;
        view->strides[1 - kept] = size * stride;
    }
}

bool op_joint_batch(const Operand *a, const Operand *b, Shape *shape)
{
    View batches[] = {a->view, b->view};
    const View *const pointers[] = {&batches[0], &batches[1]};
    batches[0].rank -= 2;
    batches[1].rank -= 2;
    return us_broadcast_shape(pointers, 2, &shape->rank, shape->sizes, NULL);
}

Shape op_shape_in_batch(const OpCall *op, const Operand *a, const Operand *b, int64_t rows, int64_t columns)
{
    Shape shape = {0};
    if (op_refused(op) || !op_joint_batch(a, b, &shape)) {
        return (Shape){0};
    }
    shape.sizes[shape.rank++] = rows;
    shape.sizes[shape.rank++] = columns;
    return shape;
}

View op_with_batch(const View *view, int32_t rank, const int64_t *shape)
{
    View own = *view;
    own.rank -= 2;
    View result = us_view_broadcast(&own, rank, shape);
    for (int32_t axis = 0; axis < 2; axis++) {
        result.shape[rank + axis] = view->shape[view->rank - 2 + axis];
        result.strides[rank + axis] = view->strides[view->rank - 2 + axis];
    }
    result.rank = rank + 2;
    return result;
}

const Operand *op_turned(OpCall *op, const Operand *matrix, bool turned)
{
    const View *view = &matrix->view;
    return turned && !op_refused(op) ? op_shown_as(op, matrix, op_swap_axes(*view, view->rank - 2, view->rank - 1)) : matrix;
}

Shape op_shape_turned_product(OpCall *op, const Operand *a, const Operand *b, bool turned_a, bool turned_b)
{
    return op_shape_product(op, op_turned(op, a, turned_a), op_turned(op, b, turned_b));
}

/* A matrix of one row or one column without the axis of it. */
static const Operand *vector_of(OpCall *op, const Operand *matrix, int32_t kept)
{
    return op_shown_as(op, matrix, us_view_remove_axis(matrix->view, 1 - kept));
}

void op_take_vectors(OpCall *op, const Operand **a, const Operand **b, const Operand *out)
{
    if (op_refused(op)) {
        return;
    }
    int32_t missing = op_shape_product(op, *a, *b).rank - out->view.rank;
    if (missing > 0 && (*a)->view.rank == 2 && op_size(*a, 0) == 1) {
        *a = vector_of(op, *a, 1);
        missing--;
    }
    if (missing > 0 && (*b)->view.rank == 2 && op_size(*b, 1) == 1) {
        *b = vector_of(op, *b, 0);
    }
}

DType op_product_type(DType dtype)
{
    return dtype == DTYPE_FLOAT64 || dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128 ? dtype
           : us_dtype_is_float(dtype) ? DTYPE_FLOAT32 : DTYPE_INT64;
}

/* The result as a matrix of a batch; axes that vectors do not have are of size 1. */
static View result_matrix(const View *view, int32_t batch, bool has_row, bool has_column)
{
    View result = *view;
    int32_t axis = batch;
    for (int32_t i = 0; i < 2; i++) {
        const bool given = i == 0 ? has_row : has_column;
        result.shape[batch + i] = given ? view->shape[axis] : 1;
        result.strides[batch + i] = given ? view->strides[axis] : 0;
        axis += given;
    }
    result.rank = batch + 2;
    return result;
}

aclnnStatus op_matmul(OpCall *op, const Operand *a, const Operand *b, const Operand *addend, Number beta, Number alpha,
                      const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    ViewProduct product = {.compute = op_product_type(dtype_of_acl(op_promote(op, OPERANDS(a, b)))),
                       .alpha = {alpha.real}, .beta = {beta.real}};
    View left = a->view, right = b->view;
    as_matrix(&left, true);
    as_matrix(&right, false);
    const int32_t batch = out->view.rank - (a->view.rank > 1) - (b->view.rank > 1);
    left = op_with_batch(&left, batch, out->view.shape);
    right = op_with_batch(&right, batch, out->view.shape);
    const View result = result_matrix(&out->view, batch, a->view.rank > 1, b->view.rank > 1);
    View added = us_view_absent();
    if (addend != NULL) {
        const View joint = us_view_broadcast(&addend->view, out->view.rank, out->view.shape);
        added = result_matrix(&joint, batch, a->view.rank > 1, b->view.rank > 1);
    }
    const PlannedView views[] = {{a, VIEW_READ, &left},     {b, VIEW_READ, &right}, {addend, VIEW_READ, &added},
                                 {out, VIEW_WRITE, &result}, {NULL, VIEW_READ, NULL}, {NULL, VIEW_READ, NULL}};
    return op_plan_views(op, us_product, &product, sizeof product, 6, views);
}

/* ---- turned batches ---- */

bool op_is_order(IntArguments order, int64_t a, int64_t b, int64_t c)
{
    return order.count == 3 && order.values[0] == a && order.values[1] == b && order.values[2] == c;
}

ReorderedSizes op_reordered_sizes(const Operand *x1, const Operand *x2, IntArguments order1, IntArguments order2)
{
    const int64_t *a = x1->view.shape, *b = x2->view.shape;
    return (ReorderedSizes){a[order1.values[0]], b[order2.values[0]], a[order1.values[1]],
                         a[order1.values[2]], b[order2.values[1]], b[order2.values[2]]};
}

Shape op_shape_reordered_product(OpCall *op, const Operand *x1, const Operand *x2, IntArguments order1, IntArguments order2,
                              const Operand *scale, int64_t pieces)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    const ReorderedSizes of = op_reordered_sizes(x1, x2, order1, order2);
    return op_given(scale) ? op_shape_of(3, (const int64_t[]){of.m, 1, of.batch * of.n})
           : pieces > 1    ? op_shape_of(3, (const int64_t[]){pieces, of.m, of.batch / pieces * of.n})
                           : op_shape_of(3, (const int64_t[]){of.m, of.batch, of.n});
}

/* [pieces, batch / pieces, rows, columns] by the strides of batch, rows and columns. */
static View pieces_of(View view, int64_t pieces, const int64_t *shape, const int64_t *strides)
{
    view.rank = 4;
    for (int axis = 0; axis < 4; axis++) {
        view.shape[axis] = axis == 0 ? pieces : axis == 1 ? shape[0] / pieces : shape[axis - 1];
        view.strides[axis] = axis == 0 ? shape[0] / pieces * strides[0] : strides[axis - 1];
    }
    return view;
}

static View turned_pieces(const Operand *x, IntArguments order, int64_t pieces)
{
    int64_t shape[3], strides[3];
    for (int axis = 0; axis < 3; axis++) {
        shape[axis] = x->view.shape[order.values[axis]];
        strides[axis] = x->view.strides[order.values[axis]];
    }
    return pieces_of(x->view, pieces, shape, strides);
}

aclnnStatus op_reordered_product(OpCall *op, const ReorderedProduct *all)
{
    if (op_refused(op) || op_empty(all->out)) {
        return op_plan_nothing(op);
    }
    const ReorderedSizes of = op_reordered_sizes(all->x1, all->x2, all->order1, all->order2);
    const int64_t pieces = all->pieces, *steps = all->out->view.strides, shape[] = {of.batch, of.m, of.n};
    const bool scaled = op_given(all->scale), apart = !scaled && pieces == 1;
    const int64_t strides[] = {apart ? steps[1] : of.n * steps[2], apart || scaled ? steps[0] : steps[1], steps[2]};
    const View left = turned_pieces(all->x1, all->order1, pieces), right = turned_pieces(all->x2, all->order2, pieces);
    View result = pieces_of(all->out->view, pieces, shape, strides);
    if (pieces > 1) {
        result.strides[0] = steps[0];
    }
    if (!scaled) {
        const ViewProduct product = {.compute = DTYPE_FLOAT32, .alpha = {1}};
        const PlannedView views[] = {{all->x1, VIEW_READ, &left},        {all->x2, VIEW_READ, &right}, {NULL, VIEW_READ, NULL},
                                     {all->out, VIEW_WRITE, &result}, {NULL, VIEW_READ, NULL},      {NULL, VIEW_READ, NULL}};
        return op_plan_views(op, us_product, &product, sizeof product, 6, views);
    }
    View factors = op_scale_view(all->scale);
    factors = pieces_of(factors, 1, shape, (const int64_t[]){of.n * factors.strides[0], 0, factors.strides[0]});
    const PlannedView views[] = {{all->x1, VIEW_READ, &left}, {all->x2, VIEW_READ, &right}, {all->scale, VIEW_READ, &factors},
                                 {all->out, VIEW_WRITE, &result}, {NULL, VIEW_READ, NULL}, {NULL, VIEW_READ, NULL}};
    return op_plan_views(op, us_quantize_product, NULL, 0, sizeof views / sizeof *views, views);
}

aclnnStatus op_quantized_matmul(OpCall *op, const Operand *a, const Operand *b, const Operand *bias,
                                const Operand *parameters, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const View *c = &out->view, absent = us_view_absent();
    View scale = op_scale_view(parameters), offsets = parameters->view;
    if (op_elements(parameters) == 1) {
        scale.strides[0] = offsets.strides[0] = 0;
    }
    scale.shape[0] = offsets.shape[0] = c->shape[1];
    scale = us_view_broadcast(&scale, c->rank, c->shape);
    const View summand = op_given(bias) ? us_view_broadcast(&bias->view, c->rank, c->shape) : absent;
    const PlannedView views[] = {{a, VIEW_READ, NULL}, {b, VIEW_READ, NULL}, {parameters, VIEW_READ, &scale},
                                 {out, VIEW_WRITE, NULL}, {bias, VIEW_READ, &summand},
                                 {parameters, VIEW_READ, &offsets}};
    return op_plan_views(op, us_quantize_product, NULL, 0, sizeof views / sizeof *views, views);
}

/* Those of one layer: [adapters, …]. */
static View of_layer(const Operand *weights, int64_t layer)
{
    if (!op_given(weights)) {
        return us_view_absent();
    }
    View view = us_view_remove_axis(weights->view, 1);
    view.data = (char *)view.data + layer * weights->view.strides[1] * (int64_t)us_dtype_size(view.dtype);
    return view;
}

aclnnStatus op_add_lora(OpCall *op, const LoraCall *call)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    const AddLora how = {call->begin, (float)call->scale};
    const View b = of_layer(call->b, call->layer), a = of_layer(call->a, call->layer);
    const PlannedView views[] = {{call->y, VIEW_READ, NULL},       {call->x, VIEW_READ, NULL},    {call->b, VIEW_READ, &b},
                                 {call->indices, VIEW_READ, NULL}, {call->out, VIEW_WRITE, NULL}, {call->a, VIEW_READ, &a}};
    return op_plan_views(op, us_add_lora, &how, sizeof how, sizeof views / sizeof *views, views);
}
