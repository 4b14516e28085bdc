#include "kernels/sort/keys.h"


#define LOAD_KEYS(type) \
    case sizeof(type): \
        for (int64_t i = 0; i < count; i++) { \
            keys[i] = us_key_of(((const type *)from)[i * stride], rule); \
        } \
        break;

void us_load_keys(uint64_t *keys, const void *from, DType dtype, int64_t stride, int64_t count, KeyRule rule)
{
    switch (us_dtype_size(dtype)) {
        LOAD_KEYS(uint8_t)
        LOAD_KEYS(uint16_t)
        LOAD_KEYS(uint32_t)
        LOAD_KEYS(uint64_t)
    }
}
