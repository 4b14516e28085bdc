/* Signs as bits: gradients of one bit. */
#ifndef UNDERSTUDY_SIGNS_H
#define UNDERSTUDY_SIGNS_H

#include "kernels/kernels.h"

/* Elements count in row-major order: bit i % 8 of byte i / 8 is whether x[i] >= 0; bits behind the last element are 0.
 * Views: x (float16 or float32), bytes (uint8). */
Kernel us_pack_signs;
/* x[i] = 1 where that bit is 1, else -1. Views: bytes, x with 8 elements for each. */
Kernel us_unpack_signs;

#endif
