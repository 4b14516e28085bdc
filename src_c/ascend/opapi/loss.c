/* Losses: src_c/kernels/loss, and formulas of src_c/kernels/map/loss.inc. */
#include "ascend/opapi/loss.h"

#include "kernels/map/formulas.h"
#include "kernels/loss/mapped_sum.h"
#include "kernels/loss/negative_log_likelihood.h"

#include <string.h>

static bool reduces(int64_t reduction)
{
    return reduction >= 1 && reduction <= 3;
}

Shape op_loss_shape(OpCall *op, int64_t reduction, Operands operands)
{
    return reduces(reduction) ? (Shape){0} : op_broadcast(op, operands);
}

/* What a sum is divided by. */
static double divisor_of(Shape shape, int64_t reduction)
{
    const int64_t first = shape.rank > 0 ? shape.sizes[0] : 1;
    return (double)(reduction == 1 ? us_shape_elements(shape.rank, shape.sizes) : reduction == 3 ? first : 1);
}

Number op_loss_factor(Shape shape, int64_t reduction, double times)
{
    return op_real(times / divisor_of(shape, reduction), ACL_DOUBLE);
}

/* Numbers of a formula, then a 1 for each input that was not given. */
static int32_t with_ones(Operands inputs, int32_t count, const Number *numbers, Number *all)
{
    for (int32_t i = 0; i < count; i++) {
        all[i] = numbers[i];
    }
    for (int32_t i = 0; i < inputs.count; i++) {
        if (!op_given(inputs.items[i])) {
            all[count++] = ONE;
        }
    }
    return count;
}

static aclnnStatus plan_sum(OpCall *op, const MapFormula *formula, aclDataType compute, Operands inputs, const Operand *out,
                            double divisor, int32_t number_count, const Number *numbers)
{
    MappedSum sum = {.map = {.formula = formula, .compute = dtype_of_acl(compute), .result = dtype_of_acl(compute),
                             .inputs = inputs.count, .outputs = 1, .items = 1},
                     .divisor = divisor};
    op_require(op, us_map_has_lane(formula, sum.map.compute), "kernel", "missing", ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
               "%s is not computed in %s", formula->name, us_dtype_name(sum.map.compute));
    for (int32_t i = 0; i < number_count; i++) {
        sum.map.numbers[i] = numbers[i];
    }
    return op_plan_operands(op, us_mapped_sum, &sum, sizeof sum, inputs, OPERANDS(out));
}

aclnnStatus op_loss(OpCall *op, const MapFormula *formula, aclDataType compute, Operands inputs, const Operand *out,
                    int64_t reduction, int32_t number_count, const Number *numbers)
{
    Number all[MAP_CALL_NUMBERS];
    const int32_t count = with_ones(inputs, number_count, numbers, all);
    if (!reduces(reduction)) {
        return op_map(op, formula, compute, inputs, OPERANDS(out), count, all);
    }
    const Shape joint = op_broadcast(op, inputs);
    op_require(op, us_shape_elements(joint.rank, joint.sizes) >= 0, out->name, "size", op->invalid,
               "the inputs broadcast to more than 2^63 - 1 elements");
    return plan_sum(op, formula, compute, inputs, out, divisor_of(joint, reduction), count, all);
}

aclnnStatus op_loss_gradient(OpCall *op, const MapFormula *formula, aclDataType compute, Operands inputs,
                             const Operand *out, int32_t number_count, const Number *numbers)
{
    Number all[MAP_CALL_NUMBERS];
    const int32_t count = with_ones(inputs, number_count, numbers, all);
    return op_map(op, formula, compute, inputs, OPERANDS(out), count, all);
}

/* ---- classes ---- */

static Shape row_shape(const Operand *self)
{
    Shape rows = op_shape(self);
    if (rows.rank > 0) {
        const int32_t axis = rows.rank > 1 ? 1 : 0;
        rows.rank--;
        memmove(&rows.sizes[axis], &rows.sizes[axis + 1], (size_t)(rows.rank - axis) * sizeof *rows.sizes);
    }
    return rows;
}

void op_require_classes(OpCall *op, const Operand *self, const Operand *target, const Operand *weight)
{
    const int64_t classes = op_size(self, self->view.rank > 1 ? 1 : 0);
    op_require_elements(op, weight, classes);
    const Shape rows = row_shape(self);
    op_require_shape(op, target, &rows);
}

void op_require_row_losses(OpCall *op, const Operand *operand, const Operand *target, int64_t reduction)
{
    const Shape shape = op_shape_or_one(operand, op_shape_loss(op, reduction, target));
    op_require_shape(op, operand, &shape);
}

static LossReduction reduction_of(int64_t reduction)
{
    return reduction == 0 ? LOSS_NONE : reduction == 1 ? LOSS_MEAN : LOSS_SUM;
}

aclnnStatus op_nll_loss(OpCall *op, const Operand *self, const Operand *target, const Operand *weight, int64_t reduction,
                        int64_t ignore_index, const Operand *out, const Operand *total_weight)
{
    const NegativeLogLikelihood call = {reduction_of(reduction), ignore_index};
    return op_plan_operands(op, us_negative_log_likelihood, &call, sizeof call, OPERANDS(self, target, weight),
                            OPERANDS(out, total_weight));
}

aclnnStatus op_nll_loss_backward(OpCall *op, const Operand *gradient, const Operand *target, const Operand *weight,
                                 int64_t reduction, int64_t ignore_index, const Operand *total_weight,
                                 const Operand *out)
{
    if (!op_refused(op) && op_empty(out)) {
        return op_plan_nothing(op);
    }
    const NegativeLogLikelihood call = {reduction_of(reduction), ignore_index};
    return op_plan_operands(op, us_negative_log_likelihood_backward, &call, sizeof call,
                            OPERANDS(gradient, target, weight, total_weight), OPERANDS(out));
}
