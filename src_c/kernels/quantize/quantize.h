/* Between numbers and small integers. Computed in float32; results beyond the integer type become its nearest value. */
#ifndef UNDERSTUDY_QUANTIZE_H
#define UNDERSTUDY_QUANTIZE_H

#include "kernels/kernels.h"

typedef enum Rounding { ROUND_EVEN, ROUND_UP, ROUND_TO_ZERO, ROUND_DOWN, ROUND_AWAY } Rounding; /* AWAY: halves */

/* y = rounded(x * scale + offset), the scale twice if asked, or rounded(x / scale + offset). Views of one shape: x, scale,
 * offset?, y. Packed integers are those of nibbles.h: their view has a byte for two neighbours along the last axis. */
typedef struct Quantize {
    Rounding rounding;
    bool twice, packed, divides;
} Quantize;
Kernel us_quantize;
/* y = (x + offset) * scale, the scale twice if asked. The same views, x may be packed; `rounding` and `divides` have
 * no meaning. */
Kernel us_dequantize;

/* Row by row, along the last axis; v = x * smooth. Symmetric: scale = max |v| / 127, y = round(v / scale), ties to
 * even. With an offset: scale = (max v - min v) / 255, offset = 127 - max v / scale, y = round(v / scale + offset).
 * With packed integers 7 and 15 stand for 127 and 255. A row without any extent, or without numbers, gives 0. With ends, rows
 * of x, all but its last axis, belong to the first group g that ends behind them and v = x * smooth[g]; ends that fall back or
 * pass the last row are held, rows behind the last group give 0.
 * Views: x, smooth? [last size], or [G, last size] with ends, y, scale, offset? (one for each row), ends? [G] (int32
 * or int64). */
typedef struct QuantizeRows {
    bool packed;
    float most; /* a scale that is larger becomes this; 0: none does */
    float clip; /* so much of a row is not cut off: without an offset scale = max |v| / (127 / clip); 0: all */
    Rounding rounding;
} QuantizeRows;
Kernel us_quantize_rows;
/* The same for every run of `block` neighbours along the last axis, the last one shorter.
 * Views: x, y (not packed), scale, with as many numbers along the last axis as there are runs. */
typedef struct QuantizeBlocks {
    int64_t block;
    float most;
} QuantizeBlocks;
Kernel us_quantize_blocks;

/* us_quantize of the rows of a matrix with the scale of their group, the first one that ends behind them. Ends that fall back
 * or pass the last row are held; rows behind the last group give 0. packed as there.
 * Views: x [rows, width], scale [groups, width], offset? (one element), ends [groups] (int32 or int64), y. */
typedef struct QuantizeGroups {
    bool packed;
} QuantizeGroups;
Kernel us_quantize_groups;

#endif
