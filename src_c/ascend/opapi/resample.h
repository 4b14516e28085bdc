/* Images of another size: src_c/kernels/resample/interpolate.h. */
#ifndef ASCEND_OPAPI_RESAMPLE_H
#define ASCEND_OPAPI_RESAMPLE_H

#include "ascend/opapi/pooling.h"
#include "ascend/opapi/shapes.h"
#include "kernels/resample/interpolate.h"

/* Sizes of a tensor of which only the first may be 0 (sizes/range). */
void require_sizes(OpCall *op, IntArguments sizes);

/* The spatial axes replaced: the last ones, or, in the formats NHWC and NDHWC, those before the last. */
Shape op_shape_upsampled(OpCall *op, const Operand *self, IntArguments size);

/* MODE is NEAREST, NEAREST_EXACT, LINEAR or CUBIC; scales are of depth, height, width, 0 or less where none is given. */
#define INTERPOLATION(MODE, align, filter, ...) ((Interpolation){INTERPOLATE_##MODE, align, filter, {__VA_ARGS__}})

aclnnStatus op_interpolate(OpCall *op, const Operand *self, Interpolation settings, const Operand *out);
aclnnStatus op_interpolate_backward(OpCall *op, const Operand *slopes, Interpolation settings, const Operand *result);

#endif
