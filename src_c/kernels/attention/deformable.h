/* Deformable attention: each query looks at some points of images of several sizes, between their pixels. */
#ifndef UNDERSTUDY_DEFORMABLE_H
#define UNDERSTUDY_DEFORMABLE_H

#include "kernels/kernels.h"

/* views: values [b, keys, heads, channels], sizes [levels, 2] (rows, columns of a level's image), starts [levels] (the key of
 * its first pixel; rows follow), places [b, queries, heads, levels, points, 2] (across, down; 0 … 1 over the image), weights
 * [b, queries, heads, levels, points], out [b, queries, heads * channels].
 * out = sum over levels and points of weight * the values at the place, in linear interpolation between the four pixels about
 * (across * columns - 0.5, down * rows - 0.5); pixels outside the image are 0. Sums in float32, in that order.
 * A level whose keys are not among the values is a fault. */
Kernel us_deformable_attention;

/* views: values, sizes, starts, places, weights, slopes of out, then those of values, places and weights. Sums in float64. */
Kernel us_deformable_attention_gradient;

enum { DEFORMABLE_LEVELS = 16, DEFORMABLE_CHANNELS = 256 };

#endif
