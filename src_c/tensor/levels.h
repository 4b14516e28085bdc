/* Instruction-set levels. Sources with loops (src_c/kernels/FAMILY and some of this folder) are ordinary C and are compiled
 * once for each level; a call of one of their functions from outside goes to the best level of this machine, or of
 * UNDERSTUDY_ISA=base|v3|v4; their calls among each other stay in the level. What a level's instructions allow is known to
 * the compiler: __AVX512F__, __AVX2__.
 * Loops for several types are written once, too, in a file that is included for each of them:
 *     #define LOOPS "kernels/some.inc"
 *     #include "tensor/instantiate.inc"
 * which makes NAME(function) = function_<type>. Results are the same on every level. Such a source has no variables and no
 * global data: there would be one for each level (src_c/generate/levels.py checks it). */
#ifndef UNDERSTUDY_LEVELS_H
#define UNDERSTUDY_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#define US_JOIN_NAMES(function, type) function##_##type
#define US_NAME(function, type) US_JOIN_NAMES(function, type)

/* Bytes of a vector that fits a register of the level that is compiled: GCC takes longer ones apart, or keeps them in
 * memory. */
#if defined(__AVX512F__)
#define REGISTER_BYTES 64
#elif defined(__AVX2__)
#define REGISTER_BYTES 32
#else
#define REGISTER_BYTES 16
#endif

/* Where GCC vectorises complex products, and similar sums beside differences, it fuses them with their products, although told
 * not to (-ffp-contract=off; src_c/generate/levels.py finds such instructions). Functions that have some stay scalar there. */
#ifdef __FMA__
#define US_SCALAR __attribute__((optimize("no-tree-vectorize")))
#else
#define US_SCALAR
#endif

/* Whether the processor finds rows, and neighbours along them, by itself: AMD's Zen 4 reads sums of float32 1.6 times, gradients
 * of softmax 1.2 times as fast when nobody asks beside it; servers of Intel gain as much by it, Zen 5 reads maxima of short rows
 * 1.3 to 1.5 times, Zen 3 sums of float16 1.5 times as fast. */
bool us_finds_rows(void);

/* How many bytes after those that it reads a loop along rows asks for memory: `bytes`, or 0 where the processor finds rows. */
int64_t us_fetch_ahead(int64_t bytes);

/* Whether a loop down columns asks for the long parts of rows that it reads next: AMD's processors take longer without, Zen 3 up
 * to 1.2 times and Zen 4 up to 1.4 times as long, those of Intel with it. */
bool us_fetches_columns(void);

/* Whether vectors are divided faster than multiplied with an inverse that is corrected twice: Zen 5 divides 16 floats in 2.5
 * cycles and quantises 1.5 times as fast so; Zen 3 takes 7 and quantises 1.3 times as fast; those of Intel take 8 to 16. */
bool us_divides_fast(void);

/* Whether the processor has AVX-512's 32 registers of 64 bytes, whichever level is in use: for a choice of ways whose sums are
 * rounded in different orders, as those of a BLAS are on different processors. */
bool us_has_long_registers(void);

/* Whether it has all of x86-64-v3, and of x86-64-v4. */
bool us_is_v3(void);
bool us_is_v4(void);

/* Elements handled at a time where types are converted: one vector of the widest level. */
enum { LANES = 16 };

/* One core by itself does not ask far memory for enough at a time: loops over arrays of `count` elements fetch the LANES that
 * they read `bytes` after those at `at`. Not behind the array: where no memory is, each request costs as much as a
 * dozen that find some. `bytes` is READ_AHEAD_BYTES, but in maps. */
enum { READ_AHEAD_BYTES = 1024, CACHE_LINE_BYTES = 64 };
#define READ_AHEAD(from, at, count, bytes) \
    { \
        const int64_t later = (at) + (bytes) / (int64_t)sizeof *(from), next = later + LANES <= (count) ? later : (at); \
        _Pragma("GCC unroll 4") for (int byte = 0; byte < LANES * (int)sizeof *(from); byte += CACHE_LINE_BYTES) \
        { \
            __builtin_prefetch((const char *)((from) + next) + byte); \
        } \
    }

#endif
