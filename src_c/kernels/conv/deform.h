/* Convolution whose taps are moved: each looks between the pixels, at a place of the call, and is multiplied by a factor. */
#ifndef UNDERSTUDY_CONV_DEFORM_H
#define UNDERSTUDY_CONV_DEFORM_H

#include "kernels/kernels.h"

/* views: x [n, c, h, w], moves [n, 3 * parts * taps, p, q] (across for each part of the channels and tap, then down, then the
 * factors), w [k, c / groups, rows, columns], bias [k]?, samples [n, c, p * rows, q * columns]?, y [n, k, p, q].
 * A sample is factor * x in linear interpolation at (o * stride - padding + t * dilation + move), pixels outside being 0, in
 * float64, rounded to x's type; y is the convolution of the samples. */
typedef struct DeformableConvolution {
    int64_t stride[2], padding[2], dilation[2]; /* down, across; padding above and on the left */
    int64_t groups, parts;
} DeformableConvolution;
Kernel us_conv_deformable;

/* The samples alone. views: x, moves, samples. */
Kernel us_deformed_samples;

/* Their gradient, summed in float64. views: slopes of the samples, x, moves, slopes of x, slopes of the moves. On the
 * border between pixels a move's slope is that of the way to the right, or down. */
Kernel us_deformed_samples_gradient;

#endif
