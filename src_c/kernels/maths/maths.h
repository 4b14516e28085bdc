/* The mathematical functions of all kernels: one include for every group.
 *
 * Names. Every function is there for float and double: sin_float(x), sin_double(x). Code that is instantiated for both
 * writes MATHS(sin)(x) (tensor/instantiate_types.inc). The names after which the suffix comes:
 *     exp exp2 expm1 log log2 log10 log1p pow sqrt rsqrt
 *     sin cos tan asin acos atan atan2 sinc sin_pi cos_pi
 *     sinh cosh tanh asinh acosh atanh
 *     erf erfc erfinv normal_cdf lgamma digamma bessel_i0
 *     sigmoid log_sigmoid softplus gelu gelu_tanh silu mish, and gelu_slope gelu_tanh_slope silu_slope mish_slope
 *     fmod (sign of the dividend) floor_mod (sign of the divisor)
 *     floor ceil trunc rint fma fabs copysign
 * Complex numbers are pairs, ComplexFloat and ComplexDouble {re, im}; their functions are complex_exp_float(z), …:
 *     complex_abs complex_mul complex_div complex_exp complex_log complex_sqrt complex_pow
 *     complex_sin complex_cos complex_tan complex_asin complex_acos complex_atan complex_sinh complex_cosh complex_tanh
 *
 * (This header grows into that list; what is not there yet does not compile.)
 *
 * All are scalar, always inlined and (but for fmod and floor_mod of doubles) without branches, so that the loops of a
 * map over LANES elements vectorise. Arguments of any size are right; special arguments give what C's functions give.
 * The bits are the same on every processor: nothing of libm is called but what is rounded exactly by definition (sqrt,
 * floor, fma, …). The error bound of each function, in units of the last place (ULP), stands at its definition;
 * tests/kernels/test_maths.py measures it.
 *
 * Fused multiply-add is written out, a * b + c never contracted: measured on 16-bit activations the functions are 1.2 to
 * 1.5 times as fast with it (sigmoid 1.2-1.35, swish 1.4-1.5, tanh 1.2), and products in twice the precision cost two
 * instructions. The level without such an instruction calls libm's fma, which gives the same bits and is slow. */
#ifndef UNDERSTUDY_MATHS_H
#define UNDERSTUDY_MATHS_H

#include "kernels/expm1.h"
#include "kernels/exponential.h"
#include "kernels/logarithm.h"

#endif
