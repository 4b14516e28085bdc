/* Gradients of the normalization of lines, computed in float64 throughout, rounded once (normalize.h computes in float32,
 * and takes any views). */
#ifndef UNDERSTUDY_LINE_GRADIENT_H
#define UNDERSTUDY_LINE_GRADIENT_H

#include "tensor/view.h"

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

void us_line_gradient(const LineGradient *work);

#endif
