#include "tensor/convert_arrays.h"

#include "tensor/convert.h"
#include "tensor/levels.h"

#include "tensor/lanes.inc"

/* Truncated and saturated, NaN gives 0 (see lane.h). */
void us_store_bytes(int8_t *to, const float *from, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        store_int8(to + i, from + i);
    }
    if (i < count) {
        float padded[LANES] = {0};
        int8_t stored[LANES];
        memcpy(padded, from + i, (size_t)(count - i) * sizeof *from);
        store_int8(stored, padded);
        memcpy(to + i, stored, (size_t)(count - i));
    }
}
