/* Convolutions: src_c/kernels/conv. */
#ifndef ASCEND_OPAPI_CONVOLUTION_H
#define ASCEND_OPAPI_CONVOLUTION_H

#include "ascend/opapi/blocked_weight.h"

/* What the vendor's functions are given beside tensors. Arrays have an entry per spatial axis; padding may have two: of
 * the side before the data and of that behind it. */
typedef struct ConvSettings {
    IntArguments stride, padding, dilation;
    bool transposed;
    IntArguments output_padding;
    int64_t groups;
} ConvSettings;
#define CONV_SETTINGS \
    ((ConvSettings){stride, padding, dilation, transposed, outputPadding, groups})

/* The same where outputPadding is ignored. */
#define QUANTIZED_CONV_SETTINGS \
    ((void)outputPadding, (ConvSettings){stride, padding, dilation, false, NO_INTS, groups})

/* A group for each channel of self. */
#define DEPTHWISE_SETTINGS \
    ((ConvSettings){stride, padding, dilation, false, (IntArguments){.name = ""}, op_size(self, 1)})

/* Lengths of the arrays (stride/length …) and their values (stride/range …); what the hardware is known not to do
 * (…/limit, 561103); channels (groups/channels); that the padded input holds the weight (input/size). */
void require_conv_lengths(OpCall *op, int32_t rank, ConvSettings settings);
void require_conv_values(OpCall *op, ConvSettings settings);
void require_conv_channels(OpCall *op, const Operand *input, const Operand *weight, ConvSettings settings);
void require_conv_input(OpCall *op, const Operand *input, const Operand *weight, ConvSettings settings);
void require_conv_limits(OpCall *op, const Operand *input, const Operand *weight, ConvSettings settings);
/* Three entries, and a gradient for each that is wanted (gradInput/null …). */
void require_conv_wanted(OpCall *op, BoolArguments mask, IntArguments bias_sizes, Operands gradients);
/* The channels of the output, where the bias' gradient is wanted (biasSizes/length). */
void require_conv_bias_sizes(OpCall *op, IntArguments sizes, const Operand *weight, ConvSettings settings,
                             BoolArguments mask);
/* The shapes of the gradients that are wanted (gradInput/same-shape, gradWeight/same-shape, gradBias/shape). */
void require_conv_gradients(OpCall *op, const Operand *input, const Operand *weight, ConvSettings settings,
                            BoolArguments mask, Operands gradients);

/* The output of a convolution, and its channels. */
Shape op_shape_convolved(OpCall *op, const Operand *input, const Operand *weight, IntArguments stride,
                         IntArguments padding, IntArguments dilation, bool transposed, IntArguments output_padding,
                         int64_t groups);
Shape op_shape_conv_channels(OpCall *op, const Operand *weight, bool transposed, int64_t groups);

aclnnStatus op_convolution(OpCall *op, const Operand *input, const Operand *weight, const Operand *bias,
                           ConvSettings settings, const Operand *output);

/* Of ACL_INT8 over three axes: sizes and numbers that the hardware does (…/limit, 561103). */
void require_quantized_conv_limits(OpCall *op, Operands operands, ConvSettings settings);
aclnnStatus op_quantized_convolution(OpCall *op, const Operand *input, const Operand *weight, const Operand *bias,
                                     const Operand *scale, ConvSettings settings, const Operand *output);

/* Time, batch, channels: data [T, N, C], weight [taps, C, K]. The padded data hold the weight (data/size), which has taps
 * and channels (weight/empty). */
void require_conv_tbc(OpCall *op, const Operand *data, const Operand *weight, int64_t pad);
Shape op_shape_conv_tbc(OpCall *op, const Operand *data, const Operand *weight, int64_t pad);
aclnnStatus op_conv_tbc(OpCall *op, const Operand *self, const Operand *weight, const Operand *bias, int64_t pad,
                        const Operand *output);
aclnnStatus op_conv_tbc_backward(OpCall *op, const Operand *slopes, const Operand *input, const Operand *weight, int64_t pad,
                                 Operands gradients);
Shape op_shape_depthwise(OpCall *op, const Operand *self, const Operand *weight, IntArguments stride, IntArguments padding,
                         IntArguments dilation);

aclnnStatus op_convolution_backward(OpCall *op, const Operand *slopes, const Operand *input, const Operand *weight,
                                    ConvSettings settings, BoolArguments mask, Operands gradients);

#endif
