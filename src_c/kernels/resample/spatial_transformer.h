/* Affine grids and bilinear sampling of images (mcdnn 6.17, 6.18). */
#ifndef UNDERSTUDY_SPATIAL_TRANSFORMER_H
#define UNDERSTUDY_SPATIAL_TRANSFORMER_H

#include "kernels/kernels.h"

typedef struct Sampling {
    double alpha, beta;           /* y or dx = alpha * result + beta * prior */
    double alpha_grid, beta_grid; /* the same for dgrid */
} Sampling;

/* Coordinates are -1 and 1 at the centres of the first and last pixel, or, without aligned corners, at their outer
 * edges. theta is [n, 2, 3] and grid [n, h, w, 2], or [n, 3, 4] and [n, d, h, w, 3]; computed in float64. */
typedef struct AffineGrid {
    bool align_corners;
} AffineGrid;
Kernel us_grid_forward;    /* theta, grid */

/* Coordinates run from -1 at the centre of the first pixel to 1 at that of the last. Corners outside the image count as
 * 0. theta and dtheta are [n, 2, 3], grid and dgrid [n, h, w, 2] with x before y, images [n, c, h, w]. */
Kernel us_grid_backward;   /* dgrid, dtheta */
Kernel us_sample_forward;  /* x, grid, y */
Kernel us_sample_backward; /* x, dy, grid, dx, dgrid */

#endif
