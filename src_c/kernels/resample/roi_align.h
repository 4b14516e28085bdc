/* Means or maxima of regions of images, sampled between pixels. */
#ifndef UNDERSTUDY_RESAMPLE_ROI_ALIGN_H
#define UNDERSTUDY_RESAMPLE_ROI_ALIGN_H

#include "kernels/kernels.h"

/* views: images [n, c, h, w], regions [r, 4] (x1, y1, x2, y2), images of the regions [r] (numbers, cut to integers),
 * out [r, c, p, q]. Region coordinates times `scale` are pixels, at least one wide and high; or, `centred`, less half a pixel,
 * and a region may be empty. Each of its p x q bins has `samples` x `samples` points, or, for 0, as many as it has pixels along
 * the axis, rounded up; a point is interpolated linearly between four pixels, the border's are repeated up to one pixel
 * outside, and it is 0 farther away. Computed in float64. A region of no image gives 0, as a bin without points does. */
typedef struct RoiAlign {
    bool maximum;
    int64_t samples;
    double scale;
    bool centred;
} RoiAlign;
Kernel us_roi_align;

/* The gradient of the means. views: slopes [r, c, p, q], regions, images of the regions, image slopes [n, c, h, w]. */
Kernel us_roi_align_gradient;

#endif
