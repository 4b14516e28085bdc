/* Fewer than LANES elements, without a call. */
#ifndef UNDERSTUDY_NORM_COPY_SOME_H
#define UNDERSTUDY_NORM_COPY_SOME_H

#include "tensor/convert.h"
#include "tensor/levels.h"

#include <string.h>

US_ALWAYS_INLINE void copy_some(void *to, const void *from, int64_t count, size_t size)
{
    char *target = to;
    const char *source = from;
#pragma GCC unroll 4
    for (int part = LANES / 2; part > 0; part /= 2) {
        if (count & part) {
            memcpy(target, source, (size_t)part * size);
            target += (size_t)part * size;
            source += (size_t)part * size;
        }
    }
}

#endif
