/* Numbers written as levels from positions on: caches of quantized keys and values. */
#ifndef UNDERSTUDY_QUANTIZE_PUT_LEVELS_H
#define UNDERSTUDY_QUANTIZE_PUT_LEVELS_H

#include "kernels/kernels.h"

/* us_put_spans of the nearest integers, ties to even, of from / step + zero in float32, saturated.
 * views: places [entries], from, step, zero?, target (int8); step and zero: any sizes, in all one for each column of from.
 * attributes: PutSpans. */
Kernel us_put_levels;

#endif
