/* The gradient of average pooling where the channels of a pixel follow each other: rows of pixels are vectors. */
#ifndef UNDERSTUDY_AVERAGE_GRADIENT_H
#define UNDERSTUDY_AVERAGE_GRADIENT_H

#include "kernels/pool/pooling.h"

/* Whether dy and dx are tensors that us_average_gradient takes: rank 4, channels behind the space, without gaps. */
bool us_has_pixels(const View *dy, const View *dx);

/* As us_pooling_backward by any of the averages, with the same bits. Views: dy, dx */
KernelStatus us_average_gradient(const View *dy, const View *dx, const Pooling *pooling);

#endif
