/* Windows of images as columns, and back. */
#ifndef ASCEND_OPAPI_COLUMNS_H
#define ASCEND_OPAPI_COLUMNS_H

#include "ascend/opapi/families.h"

/* Windows of images as columns: two entries each, in the order of the axes. */
typedef struct UnfoldSettings {
    IntArguments kernel, dilation, padding, stride;
} UnfoldSettings;
#define UNFOLD_SETTINGS ((UnfoldSettings){kernelSize, dilation, padding, stride})
/* Lengths (kernelSize/length …) and values (kernelSize/range …). */
void require_unfold_settings(OpCall *op, UnfoldSettings settings);
Shape op_shape_unfolded(OpCall *op, const Operand *self, IntArguments kernel, IntArguments dilation,
                        IntArguments padding, IntArguments stride);
aclnnStatus op_im2col(OpCall *op, const Operand *self, UnfoldSettings settings, const Operand *out);
/* The shape of an image that has such columns; rows that are not a multiple of the window's taps are refused
 * (columns/taps). */
Shape op_shape_folded(OpCall *op, const Operand *columns, IntArguments size, IntArguments kernel);
aclnnStatus op_col2im(OpCall *op, const Operand *columns, UnfoldSettings settings, const Operand *out);

#endif
