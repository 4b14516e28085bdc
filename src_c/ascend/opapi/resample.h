/* Images of another size: src_c/kernels/resample/interpolate.h. */
#ifndef ASCEND_OPAPI_RESAMPLE_H
#define ASCEND_OPAPI_RESAMPLE_H

#include "ascend/opapi/pooling.h"
#include "ascend/opapi/shapes.h"
#include "kernels/resample/grid_sample.h"
#include "kernels/resample/interpolate.h"
#include "kernels/resample/roi_align.h"
#include "kernels/resample/roi_pool.h"

/* Sizes of a tensor of which only the first `free` ones may be 0 (sizes/range). */
void require_sizes(OpCall *op, IntArguments sizes, int64_t free);

/* MODE is NEAREST, NEAREST_EXACT, LINEAR or CUBIC; scales are of depth, height, width, 0 or less where none is given. */
#define INTERPOLATION(MODE, align, filter, ...) ((Interpolation){INTERPOLATE_##MODE, align, filter, {__VA_ARGS__}, false})
/* The same by scales of type float, without corners aligned and without a filter. */
#define SINGLE_INTERPOLATION(MODE, ...) ((Interpolation){INTERPOLATE_##MODE, false, false, {__VA_ARGS__}, true})

aclnnStatus op_interpolate(OpCall *op, const Operand *self, Interpolation settings, const Operand *out);
/* out's shape is floor(size * scale) of self [N, C, H, W]; the first two scales are 1. */
Shape op_shape_rescaled(OpCall *op, const Operand *self, FloatArguments scales);
aclnnStatus op_resize(OpCall *op, const Operand *self, FloatArguments scales, bool bilinear, const Operand *out);
aclnnStatus op_interpolate_backward(OpCall *op, const Operand *slopes, Interpolation settings, const Operand *result);

/* ---- grids ---- */

/* Modes that are known: 0 linear, 1 nearest, with two axes 2 cubic (interpolationMode/range); 0 zeros, 1 border,
 * 2 reflection (paddingMode/range). Sizes that fit: input [N, C, space…], in the format NDHWC [N, space…, C], and grid
 * [N, places…, axes] (grid/size, grid/batch). */
void require_grid_sample(OpCall *op, const Operand *input, const Operand *grid, int64_t mode, int64_t padding);
/* No size of the space is 0 (input/empty). */
void require_sampled_space(OpCall *op, const Operand *input);
Shape op_shape_sampled(OpCall *op, const Operand *input, const Operand *grid);
aclnnStatus op_grid_sample(OpCall *op, const Operand *input, const Operand *grid, int64_t mode, int64_t padding,
                           bool align_corners, const Operand *out);
/* mask: which of the two results are wanted (outputMask/length: two entries). */
void require_grid_mask(OpCall *op, BoolArguments mask);
aclnnStatus op_grid_sample_backward(OpCall *op, const Operand *slopes, const Operand *input, const Operand *grid,
                                    int64_t mode, int64_t padding, bool align_corners, BoolArguments mask,
                                    const Operand *input_result, const Operand *grid_result);

/* size is [N, C, H, W] or [N, C, D, H, W]: theta [N, 2, 3] or [N, 3, 4], out [N, H, W, 2] or [N, D, H, W, 3]. */
Shape op_shape_affine_theta(OpCall *op, IntArguments size);
Shape op_shape_affine_grid(OpCall *op, IntArguments size);
aclnnStatus op_affine_grid(OpCall *op, const Operand *theta, bool align_corners, const Operand *out);

/* images of regions and their boxes in one tensor: [image, x1, y1, x2, y2]. */
aclnnStatus op_roi_align_boxes(OpCall *op, const Operand *self, const Operand *boxes, RoiAlign settings,
                               const Operand *out);
aclnnStatus op_roi_align_boxes_backward(OpCall *op, const Operand *slopes, const Operand *boxes, RoiAlign settings,
                                        const Operand *result);
aclnnStatus op_roi_pool(OpCall *op, const Operand *x, const Operand *rois, RoiPool settings, const Operand *y,
                        const Operand *places);
aclnnStatus op_roi_align(OpCall *op, const Operand *self, const Operand *rois, const Operand *images, RoiAlign settings,
                         const Operand *out);

#endif
