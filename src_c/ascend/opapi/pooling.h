/* Pooling: src_c/kernels/pool/pooling.h, src_c/kernels/pool. Tensors are [N, C, space…] or [C, space…]. */
#ifndef ASCEND_OPAPI_POOLING_H
#define ASCEND_OPAPI_POOLING_H

#include "ascend/opapi/shapes.h"

/* Of so many spatial axes. Arrays have one entry for all axes or one for each; no stride is the kernel's size. */
typedef struct PoolSettings {
    int32_t axes;
    IntArguments kernel, stride, padding;
    bool ceil;
} PoolSettings;
#define POOL_SETTINGS(...) ((PoolSettings){__VA_ARGS__})

/* Lengths (kernelSize/length …) and values (kernelSize/range …) of the arrays. A padding is at most the kernel's size
 * divided by `part`. */
void require_pool_settings(OpCall *op, PoolSettings settings, int64_t part);
/* The kernel is not larger than what it goes over (kernelSize/size). */
void require_pool_kernel(OpCall *op, const Operand *self, PoolSettings settings);
/* MaxPool has arrays of its own: no stride is 1; pads are of top and left, or of top, left, bottom, right. */
void require_max_pool(OpCall *op, IntArguments kernel, IntArguments strides, IntArguments pads, IntArguments dilations);
/* Windows have no gaps: every entry is 1 (dilation/range). */
void require_pool_dilation(OpCall *op, IntArguments dilation, int32_t axes);
/* No size but the first is 0 (self/empty). */
void require_image(OpCall *op, const Operand *self);
/* Indices of 32 bits can count a plane of the last axes (self/plane). */
void require_pool_plane(OpCall *op, const Operand *self, int32_t axes);
/* Shapes have all axes but the last ones in common (operand/shape). */
void require_pool_planes(OpCall *op, const Operand *operand, const Operand *self, int32_t axes);

/* floor or ceil of (size + 2 padding - kernel) / stride, plus 1; a window that begins behind the data does not
 * count. */
Shape op_shape_pooled2d(OpCall *op, const Operand *self, IntArguments kernel, IntArguments stride, IntArguments padding,
                        bool ceil);
Shape op_shape_pooled3d(OpCall *op, const Operand *self, IntArguments kernel, IntArguments stride, IntArguments padding,
                        bool ceil);
Shape op_shape_max_pooled(OpCall *op, const Operand *self, IntArguments kernel, IntArguments strides, IntArguments pads,
                          bool ceil);
/* [N, C, kernel elements, (ceil(Hout * Wout / 16) + 1) * 32] for out [N, C, Hout, Wout]. */
Shape op_shape_pool_mask(OpCall *op, const Operand *out, IntArguments kernel);

aclnnStatus op_average_pool(OpCall *op, const Operand *self, PoolSettings settings, bool count_padding,
                            int64_t divide_by, const Operand *out);
aclnnStatus op_average_pool_backward(OpCall *op, const Operand *slopes, PoolSettings settings, bool count_padding,
                                     int64_t divide_by, const Operand *result);
/* Indices count the plane of the input, or are a mask, which is told by its type, int8. */
aclnnStatus op_maximum_pool(OpCall *op, const Operand *self, PoolSettings settings, const Operand *out,
                            const Operand *indices);
aclnnStatus op_max_pool(OpCall *op, const Operand *self, IntArguments kernel, IntArguments strides, IntArguments pads,
                        const Operand *out);
aclnnStatus op_masked_pool_backward(OpCall *op, const Operand *slopes, const Operand *mask, PoolSettings settings,
                                    const Operand *result);
aclnnStatus op_indexed_pool_backward(OpCall *op, const Operand *slopes, const Operand *indices, int32_t axes,
                                     const Operand *result);
aclnnStatus op_adaptive_average_pool(OpCall *op, const Operand *self, int32_t axes, const Operand *out);
aclnnStatus op_adaptive_average_pool_backward(OpCall *op, const Operand *slopes, int32_t axes, const Operand *result);
aclnnStatus op_adaptive_maximum_pool(OpCall *op, const Operand *self, int32_t axes, const Operand *out,
                                     const Operand *indices);

#endif
