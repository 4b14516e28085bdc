/* Normalizations: src_c/kernels/norm/normalize and src_c/kernels/batch_norm. */
#ifndef ASCEND_OPAPI_NORM_H
#define ASCEND_OPAPI_NORM_H

#include "ascend/opapi/packed_integers.h"
#include "ascend/opapi/shapes.h"

/* Whether an output mask asks for its output number `at`. */
bool op_masked(BoolArguments mask, int64_t at);
const Operand *op_asked(const Operand *output, BoolArguments mask, int64_t at); /* NULL: it does not */

/* ---- lines: trailing dimensions, or groups of channels ---- */

/* The last dimensions of x are `sizes` (sizes/rank: too many; x/normalized: others). */
void op_require_trailing(OpCall *op, const Operand *x, IntArguments sizes);
/* Whether the last dimensions of x are those of gamma. */
bool op_ends_with(const Operand *x, const Operand *gamma);

/* Elements of x before its last `count` dimensions; of the last ones. */
int64_t op_leading_elements(const Operand *x, int64_t count);
int64_t op_trailing_elements(const Operand *x, int64_t count);
/* One element for every line of x; or the shape of x, row-major, of which the first ones are written. */
bool op_has_room_for_lines(const Operand *room, const Operand *x, int32_t dims);

typedef struct LayerNorm {
    const Operand *x, *added, *bias, *scale, *offset, *sum, *y, *mean, *inverse;
    int64_t dims; /* trailing ones that are normalized */
    double epsilon, factor;
    bool root_mean_square, scale_from_one;
} LayerNorm;
aclnnStatus op_layer_norm(OpCall *op, const LayerNorm *norm);
/* y, and a copy of what it holds in another type. */
aclnnStatus op_layer_norm_twice(OpCall *op, const LayerNorm *norm, const Operand *copy);

/* What becomes of the norm where it is asked for: integers, by given scales and zero points, or by rows that find their own
 * scale, `step`. */
typedef struct QuantizedOutput {
    bool asked;
    const Operand *scale, *zero, *y, *step;
} QuantizedOutput;
typedef struct LayerNormQuantized {
    LayerNorm norm; /* its y: without the offset, unless it is `whole`; neither mean nor inverse */
    bool by_rows, divides, whole; /* whole: its y has the offset */
    QuantizedOutput outputs[2];
} LayerNormQuantized;
/* Whether output number `at` is asked for: without a mask the first, and the second with both smooth scales. */
bool op_quantized_asked(BoolArguments mask, int64_t at, const Operand *smooth1, const Operand *smooth2);
aclnnStatus op_layer_norm_quantized(OpCall *op, const LayerNormQuantized *norm);

/* x's, with a last dimension of size 1. */
Shape op_shape_row_ends(OpCall *op, const Operand *x);
/* Whether there is one line of x's last size for every sample, all dimensions of x but the last two: [B…, H] or [B…, 1, H]. */
bool op_is_of_samples(const Operand *x, const Operand *lines);
/* y times 1 + scale, plus shift, which are of samples. */
aclnnStatus op_layer_norm_modulated(OpCall *op, const LayerNorm *norm, const Operand *scale, const Operand *shift);
typedef struct ModulatedBackward {
    const Operand *dy, *x, *weight, *bias, *scale, *mean, *inverse;
    const Operand *dx, *scale_gradient, *shift_gradient, *weight_gradient, *bias_gradient;
} ModulatedBackward;
aclnnStatus op_layer_norm_modulated_backward(OpCall *op, const ModulatedBackward *norm);
/* norm->y: of integers, by rows that find their own scale, `step`, after they are multiplied with smooth. */
aclnnStatus op_layer_norm_modulated_by_rows(OpCall *op, const LayerNorm *norm, const Operand *scale, const Operand *shift,
                                            const Operand *smooth, const Operand *step);

typedef struct LayerNormBackward {
    const Operand *dy, *x, *added, *passed, *scale, *mean, *inverse, *first, *second, *scale_gradient, *offset_gradient;
    int64_t dims;
    double factor;
    bool root_mean_square;
} LayerNormBackward;
aclnnStatus op_layer_norm_backward(OpCall *op, const LayerNormBackward *norm);

/* Channels in dimension 1, in `groups` of equal size. */
typedef struct GroupNorm {
    const Operand *x, *scale, *offset, *y, *mean, *inverse;
    int64_t channels, groups, space; /* elements of a channel */
    double epsilon, swish;
    bool activated;
} GroupNorm;
aclnnStatus op_group_norm(OpCall *op, const GroupNorm *norm);
/* y: of integers, over a step of one element or for each channel. */
aclnnStatus op_group_norm_quantized(OpCall *op, const GroupNorm *norm, const Operand *step);

typedef struct GroupNormBackward {
    const Operand *dy, *x, *mean, *inverse, *scale, *offset, *dx, *scale_gradient, *offset_gradient;
    int64_t channels, groups, space;
    double swish;
    bool activated;
} GroupNormBackward;
aclnnStatus op_group_norm_backward(OpCall *op, const GroupNormBackward *norm);

/* ---- batches: all dimensions but number 1 ---- */

/* Each that is given is a vector of the channels of x (channels). */
void op_require_channels(OpCall *op, const Operand *x, Operands vectors);

typedef struct ChannelNorm {
    const Operand *x, *scale, *offset, *running_mean, *running_variance, *y, *mean, *inverse;
    bool training;
    double momentum, epsilon;
} ChannelNorm;
aclnnStatus op_batch_norm(OpCall *op, const ChannelNorm *norm);

/* Parts of a batch norm over several devices. */
aclnnStatus op_batch_statistics(OpCall *op, const Operand *x, double epsilon, const Operand *mean,
                                const Operand *inverse);
aclnnStatus op_batch_totals(OpCall *op, const Operand *x, const Operand *sum, const Operand *squares);
aclnnStatus op_batch_elements(OpCall *op, const ChannelNorm *norm); /* with given mean and 1/std */
typedef struct ChannelSlopes {
    const Operand *dy, *x, *scale, *mean, *inverse, *sum, *product, *count, *dx, *scale_gradient, *offset_gradient;
} ChannelSlopes;
aclnnStatus op_batch_slopes(OpCall *op, const ChannelSlopes *slopes);
aclnnStatus op_batch_from_sums(OpCall *op, const ChannelSlopes *slopes);
typedef struct GatheredStatistics {
    const Operand *first, *second, *counts, *running_mean, *running_variance, *mean, *inverse;
    double momentum, epsilon;
    bool sums; /* first and second are sums of x and x^2, not mean and 1/std */
} GatheredStatistics;
aclnnStatus op_gather_statistics(OpCall *op, const GatheredStatistics *gathered);

typedef struct ChannelNormBackward {
    const Operand *dy, *x, *scale, *running_mean, *running_variance, *mean, *inverse, *dx, *scale_gradient,
        *offset_gradient;
    bool training;
    double epsilon;
} ChannelNormBackward;
aclnnStatus op_batch_norm_backward(OpCall *op, const ChannelNormBackward *norm);

/* Slices along an axis, made no longer than the limit. */
aclnnStatus op_renorm(OpCall *op, const Operand *x, double p, int32_t axis, double limit, const Operand *y);
/* In place, the rows of a matrix that indices name. */
aclnnStatus op_renorm_rows(OpCall *op, const Operand *x, const Operand *indices, double p, double limit);

#endif
