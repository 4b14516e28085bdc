/* Element-wise kernels: a formula over single values becomes the tile bodies of every type and level.
 *     #define LOOPS "kernels/some_formulas.inc"     (a file that includes kernels/map/tile_map.inc and lists its kernels by MAP)
 *     #include "tensor/instantiate.inc"
 *     static const TileKernel kernel = TILE_KERNEL(some);
 * The attributes of such a kernel are MAP_NUMBERS doubles. */
#ifndef UNDERSTUDY_MAP_H
#define UNDERSTUDY_MAP_H

#include "tensor/levels.h"
#include "tensor/tile.h"

#include <string.h>

enum { MAP_INPUTS = 4, MAP_OUTPUTS = 3, MAP_NUMBERS = 5, MAP_POWER = MAP_INPUTS };

/* A loop over the lanes that stays a loop until it is vectorised. */
#define EACH_LANE(k) _Pragma("GCC unroll 1") for (int k = 0; k < LANES; k++)

/* A formula: s are the kernel's numbers, in[0 …] one element of each input, in[MAP_POWER] is e^exponent in kernels that
 * have an exponent, itself a VALUE of s and in; out[0 …] gets one element of each output. */
#define FORMULA(name) US_ALWAYS_INLINE void NAME(name)(const COMPUTE *s, const COMPUTE *in, COMPUTE *out)
#define VALUE(name) US_ALWAYS_INLINE COMPUTE NAME(name)(const COMPUTE *s, const COMPUTE *in)

/* The tile body NAME(name##_body) of the formula `name`, without or with the exponent name##_exponent. */
#define MAP_BODY(body) \
    static void NAME(body)(const void *attributes, int64_t count, const ELEMENT *const *from, ELEMENT *const *to)
#define MAP(name, inputs, outputs) \
    MAP_BODY(name##_body) { NAME(map)(inputs, outputs, NULL, NAME(name), attributes, count, from, to); }
#define MAP_OF_POWER(name, inputs, outputs) \
    MAP_BODY(name##_body) \
    { \
        NAME(map)(inputs, outputs, NAME(name##_exponent), NAME(name), attributes, count, from, to); \
    }

#endif
