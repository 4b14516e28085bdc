/* Images of another size: nearest element, linear and cubic interpolation, with or without a filter that widens where
 * images shrink, and their gradients. For every vendor: views have rank 5, images, channels and three spatial axes;
 * fewer are written as sizes of 1, and strides say the layout. float64 is computed in float64, other types in float32;
 * integers are only moved.
 *
 * Each axis is resized by itself: y[o] = sum over taps t of weight[o, t] * x[place[o, t]], the innermost axis first.
 * `step`, the number of elements of x for one of y, is 1 / scale if that is above 0, else in / out; with aligned corners
 * (in - 1) / (out - 1).
 *   nearest   place floor(o / scale) or o * in / out, at most the last; a quotient that lies below an integer by no more
 *             than the rounding of scale is that integer, so that a scale of 1/3 takes every third element
 *   exact     the same with o + 0.5
 *   linear    at max((o + 0.5) * step - 0.5, 0), or o * step with aligned corners, between two neighbours
 *   cubic     at (o + 0.5) * step - 0.5, or o * step: four neighbours by Keys' kernel, a = -0.75; the border repeats
 *   filter    linear and cubic (a = -0.5) as kernels around (o + 0.5) * step, widened by step where that is above 1;
 *             weights outside are left out and the sum is scaled to 1
 * An element whose weight is 0 does not count, whatever it is.
 * This is what torch.nn.functional.interpolate computes; weights are made in float64 and rounded once. */
#ifndef UNDERSTUDY_RESAMPLE_INTERPOLATE_H
#define UNDERSTUDY_RESAMPLE_INTERPOLATE_H

#include "kernels/kernels.h"

typedef enum InterpolationMode {
    INTERPOLATE_NEAREST,
    INTERPOLATE_NEAREST_EXACT,
    INTERPOLATE_LINEAR,
    INTERPOLATE_CUBIC,
} InterpolationMode;

typedef struct Interpolation {
    InterpolationMode mode;
    bool align_corners, filter;
    double scale[3]; /* elements of y for one of x */
    bool single;     /* the scales were rounded to float32 */
} Interpolation;

Kernel us_interpolate;          /* x, y */
Kernel us_interpolate_gradient; /* dy, dx */

#endif
