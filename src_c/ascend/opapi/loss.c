/* Losses: src_c/kernels/loss, and formulas of src_c/kernels/map/loss.inc. */
#include "ascend/opapi/loss.h"

#include "kernels/map/formulas.h"
#include "kernels/loss/ctc.h"
#include "kernels/loss/mapped_sum.h"
#include "kernels/loss/multilabel_margin.h"
#include "kernels/loss/negative_log_likelihood.h"
#include "kernels/loss/softmax_cross_entropy.h"

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

static aclnnStatus plan_sum(OpCall *op, const MapFormula *formula, aclDataType compute, Operands inputs,
                            const Operand *out, double divisor, int32_t number_count, const Number *numbers)
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

aclnnStatus op_nll_loss(OpCall *op, const Operand *self, const Operand *target, const Operand *weight,
                        int64_t reduction, int64_t ignore_index, const Operand *out, const Operand *total_weight)
{
    const NegativeLogLikelihood call = {reduction_of(reduction), ignore_index, 0};
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
    const NegativeLogLikelihood call = {reduction_of(reduction), ignore_index, 0};
    return op_plan_operands(op, us_negative_log_likelihood_backward, &call, sizeof call,
                            OPERANDS(gradient, target, weight, total_weight), OPERANDS(out));
}

int64_t op_reduction_named(const char *text)
{
    static const char *const names[] = {"none", "mean", "sum", NULL};
    for (int64_t i = 0; names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
    }
    return text[0] == '\0' ? 1 : -1;
}

aclnnStatus op_cross_entropy(OpCall *op, const Operand *self, const Operand *target, const Operand *weight,
                             int64_t reduction, int64_t ignore_index, double smoothing, const Operand *loss,
                             const Operand *logarithms)
{
    const NegativeLogLikelihood call = {reduction_of(reduction), ignore_index, smoothing};
    return op_plan_operands(op, us_cross_entropy, &call, sizeof call, OPERANDS(self, target, weight),
                            OPERANDS(loss, NULL, logarithms));
}

aclnnStatus op_cross_entropy_backward(OpCall *op, const Operand *gradient, const Operand *logarithms,
                                      const Operand *target, const Operand *weight, int64_t reduction,
                                      int64_t ignore_index, double smoothing, const Operand *out)
{
    if (!op_refused(op) && op_empty(out)) {
        return op_plan_nothing(op);
    }
    const NegativeLogLikelihood call = {reduction_of(reduction), ignore_index, smoothing};
    return op_plan_operands(op, us_cross_entropy_backward, &call, sizeof call,
                            OPERANDS(gradient, logarithms, target, weight), OPERANDS(out));
}

aclnnStatus op_softmax_cross_entropy(OpCall *op, const Operand *features, const Operand *labels, const Operand *loss,
                                     const Operand *gradient)
{
    if (op_empty(features)) { /* a sum over no classes is 0 */
        return op_fill_all(op, OPERANDS(loss, gradient), ZERO);
    }
    return op_plan_operands(op, us_softmax_cross_entropy, NULL, 0, OPERANDS(features, labels),
                            OPERANDS(loss, gradient));
}

Shape op_shape_sample_losses(OpCall *op, int64_t reduction, const Operand *self)
{
    (void)op;
    return reduction == 0 && self->view.rank == 2 ? op_shape_of(1, self->view.shape) : (Shape){0};
}

/* With an axis in front where there is only one. */
static View as_samples(const Operand *operand)
{
    return operand->view.rank == 1 ? us_view_insert_axis(operand->view, 0, 1, 0) : operand->view;
}

aclnnStatus op_multilabel_margin(OpCall *op, const Operand *self, const Operand *target, int64_t reduction,
                                 const Operand *out, const Operand *is_target)
{
    const MultilabelMargin call = {reduction_of(reduction)};
    const View x = as_samples(self), labels = as_samples(target), marks = as_samples(is_target);
    const PlannedView views[] = {
        {self, VIEW_READ, &x}, {target, VIEW_READ, &labels}, {out, VIEW_WRITE, NULL}, {is_target, VIEW_WRITE, &marks}};
    return op_plan_views(op, us_multilabel_margin, &call, sizeof call, 4, views);
}

/* ---- sequences of labels ---- */

static int64_t largest(IntArguments counts)
{
    int64_t most = 0;
    for (int64_t i = 0; i < counts.count; i++) {
        most = counts.values[i] > most ? counts.values[i] : most;
    }
    return most;
}

void op_require_sizes(OpCall *op, const Operand *operand, Shape shape)
{
    op_require_shape(op, operand, &shape);
}

CtcSizes op_require_ctc(OpCall *op, const Operand *log_probabilities, const Operand *targets, IntArguments step_counts,
                        IntArguments label_counts, int64_t blank)
{
    CtcSizes sizes = {.step_counts = step_counts, .label_counts = label_counts};
    op_require_rank(op, log_probabilities, 2, 3);
    op_require_rank(op, targets, 1, 2);
    if (op_refused(op)) {
        return sizes;
    }
    sizes.steps = op_size(log_probabilities, 0);
    sizes.batch = log_probabilities->view.rank == 3 ? op_size(log_probabilities, 1) : 1;
    sizes.classes = op_size(log_probabilities, -1);
    op_require_length(op, step_counts.name, step_counts.count, sizes.batch, sizes.batch);
    op_require_length(op, label_counts.name, label_counts.count, sizes.batch, sizes.batch);
    op_require_each(op, step_counts, 0, sizes.steps);
    op_require_each(op, label_counts, 0, targets->view.rank == 2 ? op_size(targets, 1) : op_size(targets, 0));
    int64_t labels = 0;
    for (int64_t i = 0; i < label_counts.count && !op_refused(op); i++) {
        labels = __builtin_add_overflow(labels, label_counts.values[i], &labels) ? INT64_MAX : labels;
    }
    sizes.most = op_refused(op) ? 0 : largest(label_counts);
    const int64_t first = targets->view.rank == 2 ? sizes.batch : labels;
    op_require(op, op_size(targets, 0) == first, targets->name, "shape", op->invalid,
               "%s is %s: its first size must be %lld", targets->name, op_shape_text(op, targets), (long long)first);
    op_require_range(op, "blank", blank, 0, sizes.classes - 1);
    return sizes;
}

static View as_batch(const Operand *log_probabilities)
{
    const View *view = &log_probabilities->view;
    return view->rank == 2 ? us_view_insert_axis(*view, 1, 1, 0) : *view;
}

static View as_line(const Operand *operand)
{
    return operand->view.rank == 0 ? us_view_insert_axis(operand->view, 0, 1, 1) : operand->view;
}

static aclnnStatus plan_ctc(OpCall *op, Kernel *kernel, CtcSizes sizes, int64_t blank, bool zero_infinity,
                            const PlannedView *views)
{
    const size_t size = sizeof(Ctc) + 2 * (size_t)sizes.batch * sizeof(int64_t);
    Ctc *call = op_refused(op) ? NULL : executor_take(op->executor, size);
    op_require(op, call != NULL, "executor", "exhausted", ACLNN_ERR_INNER_CREATE_EXECUTOR,
               "no host memory for the executor");
    if (op_refused(op)) {
        return op_plan_nothing(op);
    }
    call->blank = blank;
    call->batch = sizes.batch;
    call->zero_infinity = zero_infinity;
    for (int64_t i = 0; i < sizes.batch; i++) {
        call->lengths[i] = sizes.step_counts.values[i];
        call->lengths[sizes.batch + i] = sizes.label_counts.values[i];
    }
    return op_plan_views(op, kernel, call, size, 4, views);
}

aclnnStatus op_ctc_loss(OpCall *op, CtcSizes sizes, const Operand *log_probabilities, const Operand *targets,
                        int64_t blank, bool zero_infinity, const Operand *out, const Operand *alphas)
{
    const View batch = as_batch(log_probabilities), losses = as_line(out);
    return plan_ctc(op, us_ctc_loss, sizes, blank, zero_infinity,
                    (const PlannedView[]){{log_probabilities, VIEW_READ, &batch},
                                          {targets, VIEW_READ, NULL},
                                          {out, VIEW_WRITE, &losses},
                                          {alphas, VIEW_WRITE, NULL}});
}

aclnnStatus op_ctc_loss_backward(OpCall *op, CtcSizes sizes, const Operand *gradient, const Operand *log_probabilities,
                                 const Operand *targets, int64_t blank, bool zero_infinity, const Operand *out)
{
    return plan_ctc(op, us_ctc_loss_backward, sizes, blank, zero_infinity,
                    (const PlannedView[]){{gradient, VIEW_READ, NULL},
                                          {log_probabilities, VIEW_READ, NULL},
                                          {targets, VIEW_READ, NULL},
                                          {out, VIEW_WRITE, NULL}});
}
