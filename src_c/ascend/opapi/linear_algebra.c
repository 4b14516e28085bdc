#include "ascend/opapi/linear_algebra.h"

#include "kernels/linear_algebra/sinkhorn.h"
#include "kernels/map/formulas.h"
#include "kernels/matmul/summed.h"
#include "kernels/reduce/reductions.h"

/* ---- products ---- */

/* views: a, b, addend, c. */
static aclnnStatus plan_product(OpCall *op, Kernel *kernel, DType compute, Number beta, Number alpha,
                                const PlannedView *four)
{
    const ViewProduct product = {.compute = compute, .alpha = {alpha.real}, .beta = {beta.real}};
    const PlannedView views[] = {four[0], four[1], four[2], four[3], {NULL, VIEW_READ, NULL}, {NULL, VIEW_READ, NULL}};
    return op_plan_views(op, kernel, &product, sizeof product, kernel == us_product ? 6 : 4, views);
}

Shape op_shape_outer(OpCall *op, const Operand *a, const Operand *b)
{
    (void)op;
    return op_shape_of(2, (const int64_t[]){op_size(a, 0), op_size(b, 0)});
}

aclnnStatus op_outer(OpCall *op, const Operand *a, const Operand *b, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const View column = us_view_insert_axis(a->view, 1, 1, 0), row = us_view_insert_axis(b->view, 0, 1, 0);
    const PlannedView views[] = {{a, VIEW_READ, &column}, {b, VIEW_READ, &row}, {out, VIEW_WRITE, NULL}};
    const DType promoted = dtype_of_acl(op_promote(op, OPERANDS(a, b))); /* a complex and a real type do not meet in us_product */
    const MapCall call = {.formula = &us_map_mul, .compute = promoted, .result = promoted, .inputs = 2, .outputs = 1, .items = 1};
    return op_plan_views(op, us_map, &call, sizeof call, 3, views);
}

Shape op_shape_summed_product(OpCall *op, const Operand *a, const Operand *b)
{
    const int64_t batch = op_size(a, 0), other = op_size(b, 0);
    op_require(op, batch == other || batch == 1 || other == 1, b->name, "batch", op->invalid,
               "%s is %s, %s is %s: their batches differ", a->name, op_shape_text(op, a), b->name, op_shape_text(op,
                   b));
    op_require(op, op_size(a, 2) == op_size(b, 1), b->name, "shape", op->invalid,
               "%s is %s, %s is %s: they cannot be multiplied", a->name, op_shape_text(op, a), b->name,
               op_shape_text(op, b));
    return op_shape_of(2, (const int64_t[]){op_size(a, 1), op_size(b, 2)});
}

/* A batch of 1 stands for any batch. */
static View with_first(const View *view, int64_t batch)
{
    View result = *view;
    result.strides[0] = view->shape[0] == batch ? view->strides[0] : 0;
    result.shape[0] = batch;
    return result;
}

aclnnStatus op_addbmm(OpCall *op, const Operand *self, const Operand *a, const Operand *b, Number beta, Number alpha,
                      const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const int64_t batch = op_size(a, 0) == 1 ? op_size(b, 0) : op_size(a, 0);
    const View left = with_first(&a->view, batch), right = with_first(&b->view, batch);
    const View added = us_view_broadcast(&self->view, 2, out->view.shape);
    const PlannedView views[] = {{a, VIEW_READ, &left}, {b, VIEW_READ, &right}, {self, VIEW_READ, &added},
                                 {out, VIEW_WRITE, NULL}};
    return plan_product(op, us_product_summed, DTYPE_FLOAT32, beta, alpha, views);
}

/* ---- Einstein sums ---- */

static const char outer_equation[] = "a,b->ab", inner_equation[] = "abcd,abced->abce";

void require_einsum(OpCall *op, Operands tensors, const char *equation)
{
    const bool outer = strcmp(equation, outer_equation) == 0, inner = strcmp(equation, inner_equation) == 0;
    op_require(op, outer || inner, "equation", "known", op->invalid, "equation is \"%s\"; it needs \"%s\" or \"%s\"",
               equation, outer_equation, inner_equation);
    op_require_length(op, tensors.name, tensors.count, 2, 2);
    if (op_refused(op)) {
        return;
    }
    const Operand *a = tensors.items[0], *b = tensors.items[1];
    bool fits = a->view.rank == (outer ? 1 : 4) && b->view.rank == (outer ? 1 : 5);
    for (int32_t axis = 0; fits && inner && axis < 4; axis++) {
        fits = op_size(a, axis) == op_size(b, axis < 3 ? axis : 4);
    }
    op_require(op, fits, tensors.name, "shape", op->invalid, "%s are %s and %s, which do not fit \"%s\"", tensors.name,
               op_shape_text(op, a), op_shape_text(op, b), equation);
}

Shape op_shape_einsum(OpCall *op, Operands tensors, const char *equation)
{
    if (op_refused(op)) {
        return (Shape){0};
    }
    const Operand *a = tensors.items[0], *b = tensors.items[1];
    if (strcmp(equation, outer_equation) == 0) {
        return op_shape_of(2, (const int64_t[]){op_size(a, 0), op_size(b, 0)});
    }
    Shape shape = op_shape(b);
    shape.rank = 4;
    return shape;
}

aclnnStatus op_einsum(OpCall *op, Operands tensors, const Operand *output)
{
    if (op_refused(op) || op_empty(output)) {
        return op_plan_nothing(op);
    }
    const Operand *a = tensors.items[0], *b = tensors.items[1];
    if (a->view.rank == 1) {
        return op_outer(op, a, b, output);
    }
    View column = a->view, result = output->view;
    column.rank = result.rank = 5;
    column.shape[4] = result.shape[4] = 1;
    column.strides[4] = result.strides[4] = 0;
    const PlannedView views[] = {{b, VIEW_READ, NULL}, {a, VIEW_READ, &column}, {NULL, VIEW_READ, NULL},
                                 {output, VIEW_WRITE, &result}};
    return plan_product(op, us_product, op_product_type(dtype_of_acl(a->dtype)), ZERO, ONE, views);
}

/* ---- elements ---- */

aclnnStatus op_trace(OpCall *op, const Operand *self, const Operand *out)
{
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    /* Modulo 2^64: of an empty tensor they may be any. */
    const int64_t stride = (int64_t)((uint64_t)self->view.strides[0] + (uint64_t)self->view.strides[1]);
    View diagonal = self->view, sum = out->view;
    diagonal.rank = sum.rank = 1;
    diagonal.shape[0] = self->view.shape[0] < self->view.shape[1] ? self->view.shape[0] : self->view.shape[1];
    diagonal.strides[0] = stride;
    sum.shape[0] = 1;
    sum.strides[0] = 0;
    const DType compute = dtype_of_acl(op_is_integer(self->dtype) ? ACL_INT64 : self->dtype);
    const ReduceCall call = {.reduction = &us_reduce_sum, .compute = compute, .result = compute, .axes = 1,
        .outputs = 1};
    const PlannedView views[] = {{self, VIEW_READ, &diagonal}, {out, VIEW_WRITE, &sum}};
    return op_plan_views(op, us_reduce, &call, sizeof call, 2, views);
}

/* One place of an axis. */
static View place_of(View view, int32_t axis, int64_t place)
{
    const int64_t bytes = (int64_t)us_dtype_size(view.dtype);
    view.data = (void *)((uintptr_t)view.data + (uintptr_t)(place * view.strides[axis] * bytes));
    view.shape[axis] = 1;
    return view;
}

aclnnStatus op_cross(OpCall *op, const Operand *self, const Operand *other, int32_t axis, const Operand *out)
{
    if (op_refused(op) || op_empty(out)) {
        return op_plan_nothing(op);
    }
    const DType dtype = dtype_of_acl(self->dtype);
    const MapCall call = {.formula = &us_map_difference_of_products, .compute = dtype, .result = dtype, .inputs = 4,
                          .outputs = 1, .items = 3};
    const View a = us_view_broadcast(&self->view, out->view.rank, out->view.shape);
    const View b = us_view_broadcast(&other->view, out->view.rank, out->view.shape);
    View views[15];
    PlannedView planned[15];
    for (int32_t i = 0; i < 3; i++) {
        const int64_t next = (i + 1) % 3, last = (i + 2) % 3;
        const View item[] = {place_of(a, axis, next), place_of(b, axis, last), place_of(a, axis, last),
                             place_of(b, axis, next), place_of(out->view, axis, i)};
        const Operand *const operands[] = {self, other, self, other, out};
        for (int32_t k = 0; k < 5; k++) {
            views[5 * i + k] = item[k];
            planned[5 * i + k] = (PlannedView){operands[k], k == 4 ? VIEW_WRITE : VIEW_READ, &views[5 * i + k]};
        }
    }
    return op_plan_views(op, us_map, &call, sizeof call, 15, planned);
}

aclnnStatus op_sinkhorn(OpCall *op, const Operand *cost, double tolerance, const Operand *p)
{
    if (op_refused(op) || op_empty(cost)) {
        return op_plan_nothing(op);
    }
    const Sinkhorn attributes = {tolerance};
    return op_plan_operands(op, us_sinkhorn, &attributes, sizeof attributes, OPERANDS(cost), OPERANDS(p));
}
