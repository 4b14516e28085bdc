/* Element-wise operators whose operands are parts of tensors, whose scalars may be missing, or whose formula depends
 * on the type. */
#ifndef ASCEND_OPAPI_GATES_H
#define ASCEND_OPAPI_GATES_H

#include "ascend/opapi/families.h"

/* out = formula(first half, second half) of self along the axis. */
aclnnStatus op_glu(OpCall *op, const MapFormula *formula, const Operand *self, int32_t axis, const Operand *out);
aclnnStatus op_glu_backward(OpCall *op, const MapFormula *formula, const Operand *gradient, const Operand *self,
                            int32_t axis, const Operand *out);
/* The same with the halves in the other order if `swapped`, with numbers, and a second result of the formula unless gate is
 * NULL. */
aclnnStatus op_gate(OpCall *op, const MapFormula *formula, const Operand *self, int32_t axis, bool swapped, size_t count,
                    const Number *numbers, const Operand *out, const Operand *gate);
/* The gradients of both halves: formula(gradient, activated half, other half, gate if it is given; numbers). */
aclnnStatus op_gate_backward(OpCall *op, const MapFormula *formula, const Operand *gradient, const Operand *self,
                             const Operand *gate, int32_t axis, bool swapped, size_t count, const Number *numbers,
                             const Operand *out);
/* Along the last axis: out = (first half, but 0 below the threshold, a tensor of one element) * second half. */
aclnnStatus op_fatrelu_mul(OpCall *op, const Operand *self, const Operand *threshold, const Operand *out);
/* The size of the axis is even (even); also where there is no such axis. */
void op_require_even(OpCall *op, const Operand *x, int64_t axis);
/* Queries, keys and values [b, heads, t, d] of qkv [b, t, 3 heads d] with its bias; queries over sqrt(d). */
Shape op_shape_heads_of(OpCall *op, const Operand *qkv, int64_t heads);
aclnnStatus op_split_heads(OpCall *op, const Operand *qkv, const Operand *bias, int64_t heads, Operands outputs);
/* scale has the sizes of x from the axis on: of `count` axes if from_blob (-1: all that follow, 0: one element), else of as
 * many as it has itself. y = x * scale + bias, which may be absent. */
bool op_scales(const Operand *x, int32_t axis, int64_t count, bool from_blob, const Operand *scale);
aclnnStatus op_scale(OpCall *op, const Operand *x, int32_t axis, const Operand *scale, const Operand *bias, const Operand *y);
/* part is [b, d] or [b, 1, d] of self [b, l, d]. out = self * (1 + scale) + shift, each of which may be absent. */
bool op_modulates(const Operand *self, const Operand *part);
aclnnStatus op_modulate(OpCall *op, const Operand *self, const Operand *scale, const Operand *shift, const Operand *out);
/* Results that are not given are not wanted. */
aclnnStatus op_modulate_backward(OpCall *op, const Operand *slopes, const Operand *input, const Operand *scale,
                                 const Operand *input_slopes, const Operand *scale_slopes, const Operand *shift_slopes);
/* The nearest integers of a normalized input in another step; of [n, c, h, w], the parts are [c], and the last two may be
 * absent: 1 and 0. Whether the scalar is a number that the type has. */
typedef struct QuantizedNorm {
    const Operand *input, *mean, *variance, *weight, *bias;
    double input_scale, input_zero, output_scale, output_zero, epsilon;
} QuantizedNorm;
aclnnStatus op_quantized_norm(OpCall *op, const QuantizedNorm *norm, const Operand *output);
bool op_holds(aclDataType dtype, double number);
/* "none", "tanh", or "" for the former. */
bool is_gelu_name(const char *name);
const MapFormula *gelu_formula(const char *name);

/* One element, or as many as self has along axis 1 (weight/elements). */
void require_channels(OpCall *op, const Operand *weight, const Operand *self);
aclnnStatus op_prelu(OpCall *op, const Operand *self, const Operand *weight, aclDataType compute, const Operand *out);
aclnnStatus op_prelu_backward(OpCall *op, const Operand *gradient, const Operand *self, const Operand *weight,
                              const Operand *input_gradient, const Operand *weight_gradient);

/* beta is 1 where it is not given. */
aclnnStatus op_swish(OpCall *op, const MapFormula *formula, Operands inputs, const ScalarArgument *beta,
                     const Operand *out);

/* The type of a complex type's parts; other types are their own. */
aclDataType real_type(aclDataType dtype);
aclnnStatus op_real_part(OpCall *op, const Operand *self, const Operand *out);

/* Ties to even; negative decimals round before the point. */
aclnnStatus op_round(OpCall *op, const Operand *self, int64_t decimals, const Operand *out);

/* A bool scalar goes with bool tensors only, a floating one not with integers; those not given go with all. */
bool scalars_fit_bool(aclDataType promoted, const ScalarArgument *beta, const ScalarArgument *alpha);
bool scalars_fit_integer(aclDataType promoted, const ScalarArgument *beta, const ScalarArgument *alpha);
/* out = beta * self + alpha * outer(row, column); scalars that are not given are 1. */
aclnnStatus op_addr(OpCall *op, const Operand *self, const Operand *row, const Operand *column,
                    const ScalarArgument *beta, const ScalarArgument *alpha, aclDataType compute, const Operand *out);

#endif
