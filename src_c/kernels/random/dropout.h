/* Dropout with its mask in device memory; of mcdnn (6.9, 7.4) the generator's state too. */
#ifndef UNDERSTUDY_DROPOUT_H
#define UNDERSTUDY_DROPOUT_H

#include "kernels/kernels.h"

enum { DROPOUT_STATE_BYTES = 64 };

/* The mask: bit i % 8 of byte i / 8 is 1 where element i, in row-major order, is kept. */
int64_t us_dropout_mask_bytes(int64_t elements);

typedef struct Dropout {
    float probability; /* of dropping */
    uint64_t seed;     /* of us_dropout_seed */
} Dropout;

Kernel us_dropout_seed;     /* state: the sequence of masks begins anew */
Kernel us_dropout_forward;  /* x, y, mask, state: draws the next mask; x and y need the same number of elements only */
Kernel us_dropout_backward; /* dy, dx, mask */

/* views: x, y, mask: kept elements times a scale, the others 0. The mask may have any strides. */
typedef struct DropoutScale {
    double scale;
} DropoutScale;
Kernel us_dropout_masked;

#endif
