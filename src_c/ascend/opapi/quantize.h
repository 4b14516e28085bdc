/* Quantization: src_c/kernels/quantize. */
#ifndef ASCEND_OPAPI_QUANTIZE_H
#define ASCEND_OPAPI_QUANTIZE_H

#include "ascend/opapi/packed_integers.h"
#include "ascend/opapi/shapes.h"

#include "kernels/quantize/flat.h"
#include "kernels/quantize/gated.h"
#include "kernels/quantize/quantize.h"

/* `round`, `ceil`, `trunc`, `floor`; -1: none of them. */
int64_t op_rounding(const char *name);

/* The scale is a vector of the axis, or of one element; or has x's rank and size 1 but along the axis (axis). */
void op_require_along(OpCall *op, const Operand *x, const Operand *scale, int64_t axis);

aclnnStatus op_quantize(OpCall *op, const Operand *x, const Operand *scale, const Operand *offset, int64_t axis,
                        bool twice, int64_t rounding, const Operand *y);
aclnnStatus op_dequantize(OpCall *op, const Operand *x, const Operand *scale, const Operand *offset, bool twice,
                          const Operand *y);
/* One for each row of x. */
bool op_has_number_of_row(const Operand *numbers, const Operand *x);
/* [groups, x's last dimension] where groups end, else x's last dimension (shape). */
void op_require_smooth(OpCall *op, const Operand *x, const Operand *smooth, const Operand *ends);
aclnnStatus op_quantize_rows(OpCall *op, const Operand *x, const Operand *smooth, const Operand *ends,
                             const Operand *y, const Operand *scale, const Operand *offset);

/* Runs of `block` along the last axis; a scale above 1 / least becomes that. */
Shape op_shape_blocks(OpCall *op, const Operand *x, int64_t rows, int64_t columns);
aclnnStatus op_quantize_blocks(OpCall *op, const Operand *x, int64_t block, double least, const Operand *y, const Operand *scale);
/* Each matrix of x between left and right, over a scale of its own; of groups, which may be NULL, as many as they are
 * together. */
typedef struct FlatCall {
    const Operand *x, *left, *right, *groups, *y, *scale;
    FlatGroups kind;
    double clip;
} FlatCall;
aclnnStatus op_quantize_flat(OpCall *op, const FlatCall *call);
/* `rint`, `round` (halves away from 0), `floor`; -1: none of them. */
int64_t op_row_rounding(const char *name);
aclnnStatus op_quantize_rotated(OpCall *op, const Operand *x, const Operand *rotation, int64_t rounding, const Operand *y,
                                const Operand *scale);
/* y = round(x * scale[group] + offset), of rows in groups that end there. */
aclnnStatus op_quantize_groups(OpCall *op, const Operand *x, const Operand *scale, const Operand *ends, const Operand *offset,
                               const Operand *y);

/* y = round(x / scale + zero), ties to even, what y cannot hold becomes the nearest that it can. scale and zero, if given, are
 * vectors along the axis or of one element. */
aclnnStatus op_quantize_by(OpCall *op, const Operand *x, const Operand *scale, const Operand *zero, int64_t axis,
                           const Operand *y);
/* One element, or one for each place on the axis. */
bool op_has_steps_of(const Operand *scale, const Operand *x, int64_t axis);
/* Quantized and back, and whether the level was one of those; not `enabled`: x, and true. */
aclnnStatus op_fake_quantize(OpCall *op, const Operand *x, const Operand *scale, const Operand *zero, int64_t axis,
                             bool enabled, int64_t least, int64_t most, const Operand *out, const Operand *mask);

/* out = x * column * row + bias of matrices: src_c/kernels/quantize/sums.h. */
aclnnStatus op_dequantize_sums(OpCall *op, const Operand *x, const Operand *column, const Operand *row, const Operand *bias,
                               const Operand *out);

/* Signs as bits: `rows` rows of bytes for all elements of a vector, and back. */
Shape op_shape_packed_signs(OpCall *op, const Operand *self, int64_t rows);
Shape op_shape_unpacked_signs(OpCall *op, const Operand *self, int64_t rows);
aclnnStatus op_pack_signs(OpCall *op, const Operand *self, const Operand *out);
aclnnStatus op_unpack_signs(OpCall *op, const Operand *self, const Operand *out);

aclnnStatus op_quantize_parameters(OpCall *op, const Operand *scale, const Operand *offset, bool rounded,
                                   const Operand *out);

/* [groups] or [groups, half of x's last dimension] (shape); there is one group without ends. */
void op_require_group_numbers(OpCall *op, const Operand *x, const Operand *numbers, const Operand *ends);
/* x's last dimension, or that for each group (shape). */
void op_require_group_lines(OpCall *op, const Operand *x, const Operand *numbers, const Operand *ends);
/* What a page does not have is NULL. Numbers may be lines, of one or all groups, or one for each group. */
typedef struct GatedCall {
    const Operand *x, *smooth, *offset, *ends, *y, *scale;
    const Operand *row, *weight, *bias; /* of integers in x; one number of a row may be for all */
    bool left;                          /* the first half, or the even places, is activated */
    bool pairs;                         /* a and b are even and odd places */
    QuantizeGated how;
} GatedCall;
aclnnStatus op_quantize_gated(OpCall *op, const GatedCall *call);
/* Of y, where `kind` is one of the vendor's swiglu modes: 0 and, with pairs, 1, then 2 and 3. */
GateForm op_gate_form(int64_t mode, double limit, double alpha, double bias);
/* Bytes of a tensor, which may be more than 2^63; 0 if it is not given. */
double op_bytes(const Operand *operand);
/* One number, or as many as the last dimension of x, or half of it (shape). */
void op_require_line(OpCall *op, const Operand *x, const Operand *numbers, bool half);
aclnnStatus op_clipped_gate(OpCall *op, const Operand *x, const Operand *sizes, int64_t axis, const GateForm *form,
                            bool interleaved, const Operand *out);
aclnnStatus op_clipped_gate_backward(OpCall *op, const Operand *slopes, const Operand *x, const Operand *sizes, int64_t axis,
                                     const GateForm *form, bool interleaved, const Operand *x_gradient);

#endif
