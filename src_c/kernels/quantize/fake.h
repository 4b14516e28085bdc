/* Numbers as they come back from quantization, for training that is to know it. */
#ifndef UNDERSTUDY_FAKE_H
#define UNDERSTUDY_FAKE_H

#include "kernels/kernels.h"

/* In float32: q = round(x / scale) + zero, ties to even; out = (q, at least least and at most most, - zero) * scale;
 * inside = whether q is between least and most. Of NaN NaN and false. Views of one shape: x, scale, zero, out, inside. */
typedef struct FakeQuantize {
    bool off; /* out = x, inside = true */
    double least, most;
} FakeQuantize;
Kernel us_fake_quantize;

#endif
