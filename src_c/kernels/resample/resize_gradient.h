/* Gradients of resizing: images [batch, height, width, channels] or, planar, [batch, channels, height, width]. Types of 16
 * bits are computed in float32, others in float64, and rounded once. */
#ifndef UNDERSTUDY_RESIZE_GRADIENT_H
#define UNDERSTUDY_RESIZE_GRADIENT_H

#include "kernels/kernels.h"

typedef enum ResizeKind { RESIZE_NEAREST, RESIZE_NEAREST_ROUNDED, RESIZE_BILINEAR } ResizeKind;

/* image += for each element of `slopes` its value, at the place index * scale that the kind says. */
typedef struct ResizeGradient {
    const void *slopes;
    void *image;
    DType dtype;
    ResizeKind kind;
    bool planar;
    int64_t batch, channels, slopes_size[2], image_size[2]; /* height, width */
    float scale[2];
} ResizeGradient;
KernelStatus us_resize_gradient(const ResizeGradient *work);

#endif
