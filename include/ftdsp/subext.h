/* Subtraction with a factor.
 *
 * output = input0 - input1 * alpha; alpha is real for complex elements too.
 *
 * c64_, c128_: complex elements, real and imaginary part in turn; lengths count complex numbers.
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no dp_, c128_. */
#ifndef SUBEXT_H
#define SUBEXT_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

FTDSP_HALF_BY_VALUE
void hp_subext_s(half *input0, half *input1, half alpha, half *output, int size, int core_mask);
FTDSP_HALF_BY_VALUE
void hp_subext_p(half *input0, half *input1, half alpha, half *output, int size);
void fp_subext_s(float *input0, float *input1, float alpha, float *output, int size, int core_mask);
void fp_subext_p(float *input0, float *input1, float alpha, float *output, int size);
void dp_subext_s(double *input0, double *input1, double alpha, double *output, int size, int core_mask);
void dp_subext_p(double *input0, double *input1, double alpha, double *output, int size);
void c64_subext_s(float *input0, float *input1, float alpha, float *output, int size, int core_mask);
void c64_subext_p(float *input0, float *input1, float alpha, float *output, int size);
void c128_subext_s(double *input0, double *input1, double alpha, double *output, int size, int core_mask);
void c128_subext_p(double *input0, double *input1, double alpha, double *output, int size);

#ifdef __cplusplus
}
#endif

#endif
