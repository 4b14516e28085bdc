/* Products with a weight whose scale and offset come in two parts. */
#include "ascend/opapi/packed_integers.h"
#include "ascend/opapi/quant_matmul.h"
#include "kernels/quantize/factored.h"
#include "kernels/quantize/product.h"

enum { LARGE = 64, DIAGONAL = 32 };

static View turned(const Operand *operand, bool turns)
{
    View view = operand->view;
    if (turns) {
        view.shape[0] = operand->view.shape[1];
        view.shape[1] = operand->view.shape[0];
        view.strides[0] = operand->view.strides[1];
        view.strides[1] = operand->view.strides[0];
    }
    return view;
}

bool op_is_large_product(const Operand *x, bool transposed)
{
    return op_size(x, transposed ? 1 : 0) >= LARGE;
}

static bool is_of_columns(const Operand *operand, int64_t n)
{
    const View *view = &operand->view;
    const int64_t count = us_view_elements(view);
    return (view->rank == 1 && (count == 1 || count == n)) ||
           (view->rank == 2 && (view->shape[0] == 1 || view->shape[1] == 1) && (count == 1 || count == n));
}

void op_require_factored_weight(OpCall *op, const FactoredWeightCall *call)
{
    if (op_refused(op)) {
        return;
    }
    const View x = turned(call->x, call->transpose1), weight = turned(call->weight, call->transpose2);
    const int64_t n = weight.shape[1];
    op_require(op, x.shape[1] == weight.shape[0], "x2", "shape", op->invalid,
               "x1 is %s, x2 is %s: they sum over %lld and %lld", op_shape_text(op, call->x),
               op_shape_text(op, call->weight), (long long)x.shape[1], (long long)weight.shape[0]);
    const View *diagonal = &call->diagonal->view;
    op_require(op, !op_given(call->diagonal) || (diagonal->rank == 2 && diagonal->shape[0] == DIAGONAL &&
                                                 diagonal->shape[1] == DIAGONAL),
               "diagonalMatrix", "shape", op->invalid, "diagonalMatrix is %s: it must be [32,32]",
               op_shape_text(op, call->diagonal));
    const Operand *const of_columns[] = {call->deq_offset, call->deq_scale, call->added, call->factor};
    for (int i = 0; i < 4; i++) {
        const Operand *operand = of_columns[i];
        op_require(op, !op_given(operand) || is_of_columns(operand, n), operand->name, "shape", op->invalid,
                   "%s is %s: it must have one number, or one for each of %lld columns", operand->name,
                   op_shape_text(op, operand), (long long)n);
    }
    op_require(op, !op_given(call->bias) || (call->bias->view.rank == 1 && call->bias->view.shape[0] == n), "bias",
               "shape", op->invalid, "bias is %s: it must be [%lld]", op_shape_text(op, call->bias), (long long)n);
    op_require(op, call->scale != 0 || !op_is_large_product(call->x, call->transpose1), "antiquantScale", "zero",
               op->invalid, "antiquantScale is 0, which the weight cannot be scaled by");
}

/* [1, n]; one number stands for all. */
static View row_of(const Operand *operand, int64_t n)
{
    View view = op_scale_view(operand);
    if (us_view_is_absent(&view)) {
        return view;
    }
    const int32_t along = view.rank == 2 && view.shape[0] == 1 ? 1 : 0;
    const int64_t stride = us_view_elements(&view) == 1 ? 0 : view.strides[along];
    view.rank = 2;
    view.shape[0] = 1;
    view.shape[1] = n;
    view.strides[0] = 0;
    view.strides[1] = stride;
    return view;
}

aclnnStatus op_factored_weight_matmul(OpCall *op, const FactoredWeightCall *call)
{
    if (op_refused(op) || op_empty(call->out)) {
        return op_plan_nothing(op);
    }
    const bool large = op_is_large_product(call->x, call->transpose1);
    const View x = turned(call->x, call->transpose1), weight = turned(call->weight, call->transpose2);
    const Operand *scale = large ? call->factor : call->deq_scale, *offset = large ? call->added : call->deq_offset;
    const View scales = row_of(scale, weight.shape[1]), offsets = row_of(offset, weight.shape[1]);
    const View bias = row_of(call->bias, weight.shape[1]);
    const PlannedView views[] = {
        {call->x, VIEW_READ, &x},        {call->weight, VIEW_READ, &weight}, {scale, VIEW_READ, &scales},
        {call->out, VIEW_WRITE, NULL},   {offset, VIEW_READ, &offsets},      {call->bias, VIEW_READ, &bias},
        {NULL, VIEW_READ, NULL},         {NULL, VIEW_READ, NULL},
    };
    const FactoredWeight factored = {call->scale, call->offset};
    const WeightProduct ready = {.group = INT64_MAX, .packed = NOT_PACKED};
    return large ? op_plan_views(op, us_factored_weight_product, &factored, sizeof factored, 6, views)
                 : op_plan_views(op, us_quantized_weight_product, &ready, sizeof ready, 8, views);
}
