/* The instructions of the level that is compiled. Included by what uses them only: they take a quarter of a second to read. */
#ifndef UNDERSTUDY_INTRINSICS_H
#define UNDERSTUDY_INTRINSICS_H

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h> /* every such processor has it: there the base level is the only one */
#endif

#endif
