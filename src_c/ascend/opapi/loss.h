/* Losses and their gradients. Reductions are 1 (mean), 2 (sum), 3 (the sum / the first size); any other is none. */
#ifndef ASCEND_OPAPI_LOSS_H
#define ASCEND_OPAPI_LOSS_H

#include "ascend/opapi/families.h"

/* The shape of a loss: the joint one of these operands without reduction, else no dimensions. */
Shape op_loss_shape(OpCall *op, int64_t reduction, Operands operands);
#define op_shape_loss(op, reduction, ...) op_loss_shape(op, reduction, OPERANDS(__VA_ARGS__))
/* What gradients are multiplied by: `times` / the number of elements for a mean, / the first size for reduction 3. */
Number op_loss_factor(Shape shape, int64_t reduction, double times);

/* The formula's results, their mean or their sum, over the shape that the inputs broadcast to. Inputs that were not
 * given are 1. */
aclnnStatus op_loss(OpCall *op, const MapFormula *formula, aclDataType compute, Operands inputs, const Operand *out,
                    int64_t reduction, int32_t number_count, const Number *numbers);
/* A gradient: as op_map, where inputs that were not given are 1. */
aclnnStatus op_loss_gradient(OpCall *op, const MapFormula *formula, aclDataType compute, Operands inputs,
                             const Operand *out, int32_t number_count, const Number *numbers);

/* Shapes of class losses (aclnn-ops NLLLoss, NLLLoss2d): weight has as many elements as there are classes
 * (weight/elements), target the shape of the rows (target/shape). */
void op_require_classes(OpCall *op, const Operand *self, const Operand *target, const Operand *weight);
aclnnStatus op_nll_loss(OpCall *op, const Operand *self, const Operand *target, const Operand *weight,
                        int64_t reduction, int64_t ignore_index, const Operand *out, const Operand *total_weight);
aclnnStatus op_nll_loss_backward(OpCall *op, const Operand *gradient, const Operand *target, const Operand *weight,
                                 int64_t reduction, int64_t ignore_index, const Operand *total_weight,
                                 const Operand *out);
/* Of the operand `name` of a class loss: target's shape for reduction 0, else one element, [] or [1] (name/shape). */
void op_require_row_losses(OpCall *op, const Operand *operand, const Operand *target, int64_t reduction);


/* "none", "mean" and "sum" as a reduction; no text is a mean; -1: anything else. */
int64_t op_reduction_named(const char *text);
/* weight may be absent; it may be of another type than self. */
aclnnStatus op_cross_entropy(OpCall *op, const Operand *self, const Operand *target, const Operand *weight,
                             int64_t reduction, int64_t ignore_index, double smoothing, const Operand *loss,
                             const Operand *logarithms);
aclnnStatus op_cross_entropy_backward(OpCall *op, const Operand *gradient, const Operand *logarithms,
                                      const Operand *target, const Operand *weight, int64_t reduction,
                                      int64_t ignore_index, double smoothing, const Operand *out);
aclnnStatus op_softmax_cross_entropy(OpCall *op, const Operand *features, const Operand *labels, const Operand *loss,
                                     const Operand *gradient);

Shape op_shape_sample_losses(OpCall *op, int64_t reduction, const Operand *self);
aclnnStatus op_multilabel_margin(OpCall *op, const Operand *self, const Operand *target, int64_t reduction,
                                 const Operand *out, const Operand *is_target);

/* Of a batch of label sequences. */
typedef struct CtcSizes {
    int64_t steps, batch, classes, most; /* most: labels of an entry */
    IntArguments step_counts, label_counts;
} CtcSizes;
/* logProbs/rank, targets/rank, LENGTHS/length, LENGTHS/range, targets/shape, blank/range. */
CtcSizes op_require_ctc(OpCall *op, const Operand *log_probabilities, const Operand *targets, IntArguments step_counts,
                        IntArguments label_counts, int64_t blank);
void op_require_sizes(OpCall *op, const Operand *operand, Shape shape); /* shape */
aclnnStatus op_ctc_loss(OpCall *op, CtcSizes sizes, const Operand *log_probabilities, const Operand *targets,
                        int64_t blank, bool zero_infinity, const Operand *out, const Operand *alphas);
aclnnStatus op_ctc_loss_backward(OpCall *op, CtcSizes sizes, const Operand *gradient, const Operand *log_probabilities,
                                 const Operand *targets, int64_t blank, bool zero_infinity, const Operand *out);

#endif
