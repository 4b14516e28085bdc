#include "tensor/convert_arrays.h"

#include "tensor/convert.h"
#include "tensor/levels.h"

#define TYPES "tensor/bytes.inc"
#include "tensor/instantiate.inc"

void us_store_bytes(int8_t *to, const float *from, int64_t count)
{
    static void (*const levels[LEVEL_COUNT])(int8_t *, const float *, int64_t) = {
        [LEVEL_BASE] = store_bytes_base,
#ifdef US_HAS_LEVELS
        [LEVEL_V3] = store_bytes_v3, [LEVEL_V4] = store_bytes_v4,
#endif
    };
    levels[us_level()](to, from, count);
}
