/* Maxima of regions of images, pixel by pixel. */
#ifndef UNDERSTUDY_RESAMPLE_ROI_POOL_H
#define UNDERSTUDY_RESAMPLE_ROI_POOL_H

#include "kernels/kernels.h"

/* views: images [n, c, h, w], regions [r, 5] (image, x1, y1, x2, y2), maxima [r, c, p, q], their places [r, c, p, q] (row * w +
 * column in the image, int32). A region goes from x1 * across to (x2 + 1) * across, and so do the rows; bin q of it from
 * floor(q * its width / count + x1 * across) to ceil of that of q + 1, inside the image. All in float32, in this order. The
 * first of equal maxima counts, and NaN is larger than numbers. A bin without pixels, or of no image, gives 0 at -1. */
typedef struct RoiPool {
    float down, across;
} RoiPool;
Kernel us_roi_pool;

#endif
