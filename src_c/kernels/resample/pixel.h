/* Single elements of images [n, c, h, w], read here and there. */
#ifndef UNDERSTUDY_RESAMPLE_PIXEL_H
#define UNDERSTUDY_RESAMPLE_PIXEL_H

#include "tensor/convert.h"

static inline const char *us_plane_of(const View *images, int64_t n, int64_t c)
{
    const int64_t at = n * images->strides[0] + c * images->strides[1];
    return (const char *)images->data + at * (int64_t)us_dtype_size(images->dtype);
}

/* Element `at` of an array. */
US_ALWAYS_INLINE double us_pixel(const char *plane, DType dtype, int64_t at)
{
    if (dtype == DTYPE_FLOAT32) {
        return (double)((const float *)(const void *)plane)[at];
    }
    if (dtype == DTYPE_FLOAT16) {
        return (double)half_to_float(((const uint16_t *)(const void *)plane)[at]);
    }
    double value;
    us_load_double(&value, plane + at * (int64_t)us_dtype_size(dtype), dtype, 1, 1);
    return value;
}

#endif
