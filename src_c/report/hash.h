/* FNV-1a of 64 bits (the FNV draft, section 2): a number for some bytes, the same in every process. */
#ifndef UNDERSTUDY_HASH_H
#define UNDERSTUDY_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t us_hash(const void *bytes, size_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const unsigned char *byte = bytes; count > 0; byte++, count--) {
        hash = (hash ^ *byte) * UINT64_C(0x100000001b3);
    }
    return hash;
}

#endif
