#include "tensor/convert_arrays.h"

#include "tensor/convert.h"
#include "tensor/levels.h"

#define TYPES "tensor/bytes.inc"
#include "tensor/instantiate.inc"

#define LOOP_OF(level) store_bytes_##level

void us_store_bytes(int8_t *to, const float *from, int64_t count)
{
    static void (*const levels[LEVEL_COUNT])(int8_t *, const float *, int64_t) = {US_EACH_LEVEL(LOOP_OF)};
    levels[us_level()](to, from, count);
}
