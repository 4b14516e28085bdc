/* Maxima of regions and crops of images [batch, height, width, channels]. Computed in float64, rounded once (integers
 * truncated). */
#ifndef UNDERSTUDY_RESAMPLE_IMAGE_H
#define UNDERSTUDY_RESAMPLE_IMAGE_H

#include "kernels/kernels.h"

/* out[r, p, q, c] = maximum of the image in bin (p, q) of region r; 0 of an empty bin. Channels last. */
typedef struct RegionMaximum {
    const void *image, *regions; /* regions: [count, 5], image, first row, first column, last row, last column */
    void *out;
    DType dtype, region_dtype;
    int64_t size[2], channels, count, pooled[2];
    float scale;  /* of the regions' coordinates, which are rounded then */
} RegionMaximum;
void us_region_maximum(const RegionMaximum *work);

/* out[b, i, j, c]: box b of image box_image[b], from y1, x1 to y2, x2 in units of the last row and column, sampled at
 * crop[0] x crop[1] points with bilinear weights; `outside` where a point is outside the image. Channels last. */
typedef struct BoxCrop {
    const void *images;
    const int *box_image;
    const float *boxes;
    void *out;
    DType dtype;
    int64_t size[2], channels, count, crop[2];
    double outside;
} BoxCrop;
void us_box_crop(const BoxCrop *work);

#endif
