/* Instruction-set levels chosen at run time, where a loop needs more than clones.h gives: conversions of 16-bit types by
 * instructions, and a level that tests can choose. A file with loops is instantiated for all types and levels by
 *     #define LOOPS "kernels/some.inc"
 *     #include "tensor/instantiate.inc"
 * which makes NAME(function) = function_<type>_<level>. Results are the same on every level. */
#ifndef UNDERSTUDY_LEVELS_H
#define UNDERSTUDY_LEVELS_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(UNDERSTUDY_NO_CLONES)
#define US_HAS_LEVELS 1
#endif

typedef enum Level { LEVEL_BASE, LEVEL_V3, LEVEL_V4, LEVEL_COUNT } Level;

/* The entries of a table by level: OF(level), or OF(name, level), names what was instantiated for one. */
#ifdef US_HAS_LEVELS
#define US_EACH_LEVEL(OF) [LEVEL_BASE] = OF(base), [LEVEL_V3] = OF(v3), [LEVEL_V4] = OF(v4)
#define US_EACH_LEVEL_OF(OF, name) [LEVEL_BASE] = OF(name, base), [LEVEL_V3] = OF(name, v3), [LEVEL_V4] = OF(name, v4)
#else
#define US_EACH_LEVEL(OF) [LEVEL_BASE] = OF(base)
#define US_EACH_LEVEL_OF(OF, name) [LEVEL_BASE] = OF(name, base)
#endif

/* The best level of this machine, or less by UNDERSTUDY_ISA=base|v3|v4. */
Level us_level(void);

/* How many bytes after those that it reads a loop along rows asks for memory: `bytes`, or 0 on processors that find rows by
 * themselves. AMD's (Zen 4) read sums of float32 1.6 times, gradients of softmax 1.2 times as fast when nobody asks beside
 * them; servers of Intel gain as much by it. */
int64_t us_fetch_ahead(int64_t bytes);

/* Elements handled at a time where types are converted: one vector of the widest level. */
enum { LANES = 16 };

/* One core by itself does not ask far memory for enough at a time: loops over arrays of `count` elements fetch the LANES that
 * they read so many bytes after those at `at`. Not behind the array: where no memory is, each request costs as much as a
 * dozen that find some. */
enum { READ_AHEAD_BYTES = 1024, CACHE_LINE_BYTES = 64 };
#define READ_AHEAD(from, at, count) \
    { \
        const int64_t ahead = (at) + READ_AHEAD_BYTES / (int64_t)sizeof *(from), next = ahead + LANES <= (count) ? ahead : (at); \
        _Pragma("GCC unroll 4") for (int byte = 0; byte < LANES * (int)sizeof *(from); byte += CACHE_LINE_BYTES) \
        { \
            __builtin_prefetch((const char *)((from) + next) + byte); \
        } \
    }

#endif
