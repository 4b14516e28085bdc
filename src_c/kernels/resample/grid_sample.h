/* Samples of images at the points of a grid, as torch.nn.functional.grid_sample. Computed in float64, rounded once.
 * (mcDNN's bilinear sampler of kernels/resample/spatial_transformer.h is the case of two axes, zeros and aligned corners.)
 *
 * x is [n, c, d, h, w], grid [n, d', h', w', k], y [n, c, d', h', w']; k is 2 (d = d' = 1) or 3. The first number of a
 * point is along w. A coordinate g of -1 … 1 is (g + 1) / 2 * (size - 1) with aligned corners, else ((g + 1) * size - 1) / 2.
 * Outside the image there are zeros, or the nearest element of the border, or the image's reflection. Nearest rounds ties
 * to even; cubic is Keys' kernel, a = -0.75, of two axes only. */
#ifndef UNDERSTUDY_RESAMPLE_GRID_SAMPLE_H
#define UNDERSTUDY_RESAMPLE_GRID_SAMPLE_H

#include "kernels/kernels.h"

typedef enum SampleMode { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC } SampleMode;
typedef enum SamplePadding { SAMPLE_ZEROS, SAMPLE_BORDER, SAMPLE_REFLECTION } SamplePadding;

typedef struct GridSample {
    SampleMode mode;
    SamplePadding padding;
    bool align_corners;
} GridSample;

Kernel us_grid_sample;          /* x, grid, y */
Kernel us_grid_sample_gradient; /* dy, x, grid, dx, dgrid; either of the last two may be absent */

#endif
