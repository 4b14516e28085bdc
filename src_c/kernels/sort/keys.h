/* Unsigned keys whose order is that of elements: NaN is the greatest, all NaNs have one key, and both zeros. */
#ifndef UNDERSTUDY_SORT_KEYS_H
#define UNDERSTUDY_SORT_KEYS_H

#include "kernels/sort/radix.h"
#include "tensor/view.h"

#include <string.h>

typedef struct KeyRule {
    uint64_t sign;     /* the sign's bit; 0: none */
    uint64_t infinity; /* bits of infinity; 0: no floating type */
    uint64_t mask;     /* all bits of the type */
    uint64_t turn;     /* what descending order turns round */
} KeyRule;

static inline KeyRule us_key_rule(DType dtype, bool descending)
{
    const int bits = 8 * (int)us_dtype_size(dtype);
    KeyRule rule = {.mask = UINT64_MAX >> (64 - bits), .sign = UINT64_C(1) << (bits - 1)};
    switch (dtype) {
    case DTYPE_UINT8: case DTYPE_UINT16: case DTYPE_UINT32: case DTYPE_UINT64: case DTYPE_BOOL:
        rule.sign = 0;
        break;
    case DTYPE_FLOAT16: rule.infinity = 0x7c00; break;
    case DTYPE_BFLOAT16: rule.infinity = 0x7f80; break;
    case DTYPE_FLOAT32: rule.infinity = 0x7f800000; break;
    case DTYPE_FLOAT64: rule.infinity = UINT64_C(0x7ff) << 52; break;
    default: break;
    }
    rule.turn = descending ? rule.mask : 0;
    return rule;
}

static inline uint64_t us_key_of(uint64_t bits, KeyRule rule)
{
    if (rule.infinity == 0) {
        return bits ^ rule.sign ^ rule.turn;
    }
    const uint64_t magnitude = bits & (rule.sign - 1);
    const bool negative = (bits & rule.sign) != 0 && magnitude != 0;
    uint64_t key = negative ? rule.sign - 1 - magnitude : magnitude | rule.sign;
    key = magnitude > rule.infinity ? rule.mask : key;
    return key ^ rule.turn;
}

static inline bool us_key_is_nan(uint64_t key, KeyRule rule)
{
    return rule.infinity != 0 && (key ^ rule.turn) == rule.mask;
}

/* Keys of `count` elements `stride` apart. */
void us_load_keys(uint64_t *keys, const void *from, DType dtype, int64_t stride, int64_t count, KeyRule rule);

#endif
