/* The bridge between strided views of any type and kernels that see unit-stride arrays.
 *
 * The elements of a shape, in row-major order, are walked in tiles of TILE_ELEMENTS. A contiguous operand of the compute
 * type is used in place; anything else is gathered and converted into a tile and, for outputs, rounded once and scattered
 * back. Broadcast is stride 0. Tiles are independent, so results do not depend on the number of threads. */
#ifndef UNDERSTUDY_TILE_H
#define UNDERSTUDY_TILE_H

#include "tensor/levels.h"
#include "tensor/view.h"

enum { TILE_ELEMENTS = 1024, TILE_OPERAND_LIMIT = 12 };

/* Bodies: inputs[i] and outputs[o] are unit-stride arrays of `count` elements (outputs never overlap inputs unless they
 * are the same array). */
typedef void TileBodyFloat(const void *attributes, int64_t count, const float *const *inputs, float *const *outputs);
typedef void TileBodyDouble(const void *attributes, int64_t count, const double *const *inputs, double *const *outputs);
/* Fused: every operand is contiguous and of one 16-bit type; conversion happens in registers. */
typedef void TileBodyFused(const void *attributes, int64_t count, const uint16_t *const *inputs,
                           uint16_t *const *outputs);

typedef struct TileBodies {
    TileBodyFloat *body_float;     /* required */
    TileBodyDouble *body_double;   /* used when any operand is float64; NULL: no float64 support */
    TileBodyFused *body_half;      /* optional: all operands contiguous float16 */
    TileBodyFused *body_bfloat;    /* optional: all operands contiguous bfloat16 */
} TileBodies;

typedef struct TileKernel {
    TileBodies levels[LEVEL_COUNT];
} TileKernel;

/* The kernel of bodies that tensor/instantiate.inc made: static const TileKernel kernel = TILE_KERNEL(body); or of one
 * set of bodies, where clones.h chooses the level. */
#define TILE_BODIES(body, level) {body##_float_##level, body##_double_##level, body##_half_##level, \
                                  body##_bfloat_##level}
#define TILE_KERNEL(body) {{US_EACH_LEVEL_OF(TILE_BODIES, body)}}
#define TILE_KERNEL_OF_CLONES(...) {{{__VA_ARGS__}, {__VA_ARGS__}, {__VA_ARGS__}}}

/* Runs the kernel over `shape`. Inputs must already be broadcast to it (us_view_broadcast); outputs have it. A tile's
 * outputs are written after all its inputs were read, so an output may be the same view as an input. When `via` is not
 * DTYPE_NONE, results are rounded to that type first and then to the output's (aclnn promotion).
 * `previous`: outputs[o] is also readable through inputs given by the caller (alpha/beta forms pass the output view as
 * one more input). */
void us_tile_run(const TileKernel *kernel, const void *attributes, int input_count, const View *inputs, int output_count,
                 const View *outputs, DType via);

#endif
