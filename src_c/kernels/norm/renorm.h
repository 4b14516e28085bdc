/* Slices along an axis, made no longer than a limit. */
#ifndef UNDERSTUDY_RENORM_H
#define UNDERSTUDY_RENORM_H

#include "kernels/kernels.h"

/* y = x * limit / (norm + 1e-7) of every slice x[.., i, ..] along the axis whose p-norm exceeds the limit, x of the
 * others. Norms are rounded to float32. Views: x, y, which may be x. */
typedef struct Renorm {
    int32_t axis;
    double p, limit;
} Renorm;
Kernel us_renorm;

/* The same of the rows of a matrix that indices name, each once. Indices outside are a fault, before anything is written.
 * Views: x, indices (int32 or int64) of any shape. `axis` has no meaning. */
Kernel us_renorm_rows;

#endif
