/* Gradients of the normalization of lines, of float32 computed in float64, of 16 bits in float32, and rounded once
 * (normalize.h computes all in float32, and takes any views). */
#ifndef UNDERSTUDY_LINE_GRADIENT_H
#define UNDERSTUDY_LINE_GRADIENT_H

#include "kernels/kernels.h"

/* x, dy and dx have `lines` lines of `length` elements that follow each other; element j belongs to parameter
 * j % parameters, which divides their number. u = (x - mean) * inverse of the line, g = dy * scale:
 * dx = (g - mean(g) - u * mean(g * u)) * inverse, dscale = sum dy * u, doffset = sum dy. */
typedef struct LineGradient {
    const void *x, *dy;
    void *dx, *dscale, *doffset;
    DType dtype; /* of these: float32 or a float of 16 bits */
    const double *mean, *inverse, *scale;
    int64_t lines, length, parameters;
} LineGradient;

KernelStatus us_line_gradient(const LineGradient *work);

#endif
