/* The 16-bit float of the hp_ functions: IEEE binary16.
 *
 * Where the compiler has _Float16, half is that type and can be used in arithmetic; elsewhere it holds the 16 bits.
 * Pointers to half are the same thing for both. A half passed by value is not: x86-64 passes _Float16 in a vector
 * register and a 16-bit integer in a general one, so a caller of such a function needs a compiler with _Float16
 * (GCC 12, Clang 15 or newer); others refuse the call. */
#ifndef FTDSP_HALF_H
#define FTDSP_HALF_H

#ifdef __FLT16_MANT_DIG__
__extension__ typedef _Float16 half;
#define FTDSP_HALF_BY_VALUE
#else
typedef unsigned short half;
#ifdef __clang__
#define FTDSP_HALF_BY_VALUE __attribute__((unavailable("a half by value needs _Float16: GCC 12, Clang 15 or newer")))
#else
#define FTDSP_HALF_BY_VALUE __attribute__((error("a half by value needs _Float16: GCC 12, Clang 15 or newer")))
#endif
#endif
typedef half float16; /* some pages of the manual call it so */

#endif
