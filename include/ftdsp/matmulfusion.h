/* Matrix product with bias and activation.
 *
 * C[M,N] = act(A[M,K] * B[K,N] + bias[M,N]), all row-major; bias may be NULL. act: 0 none, 1 ReLU, 2 ReLU6. Integers
 * saturate.
 *
 * c64_, c128_: complex elements, real and imaginary part in turn; they have no ReLU.
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no dp_, i8_, c128_. */
#ifndef MATMULFUSION_H
#define MATMULFUSION_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_matmulfusion_s(float *A, float *B, float *C, float *bias, int M, int N, int K, int act, int core_mask);
void fp_matmulfusion_p(float *A, float *B, float *C, float *bias, int M, int N, int K, int act);
void hp_matmulfusion_s(half *A, half *B, half *C, half *bias, int M, int N, int K, int act, int core_mask);
void hp_matmulfusion_p(half *A, half *B, half *C, half *bias, int M, int N, int K, int act);
void dp_matmulfusion_s(double *A, double *B, double *C, double *bias, int M, int N, int K, int act, int core_mask);
void dp_matmulfusion_p(double *A, double *B, double *C, double *bias, int M, int N, int K, int act);
void i8_matmulfusion_s(int8_t *A, int8_t *B, int8_t *C, int8_t *bias, int M, int N, int K, int act, int core_mask);
void i8_matmulfusion_p(int8_t *A, int8_t *B, int8_t *C, int8_t *bias, int M, int N, int K, int act);
void i16_matmulfusion_s(int16_t *A, int16_t *B, int16_t *C, int16_t *bias, int M, int N, int K, int act,
                        int core_mask);
void i16_matmulfusion_p(int16_t *A, int16_t *B, int16_t *C, int16_t *bias, int M, int N, int K, int act);
void i32_matmulfusion_s(int32_t *A, int32_t *B, int32_t *C, int32_t *bias, int M, int N, int K, int act,
                        int core_mask);
void i32_matmulfusion_p(int32_t *A, int32_t *B, int32_t *C, int32_t *bias, int M, int N, int K, int act);
void c64_matmulfusion_s(float *A, float *B, float *C, float *bias, int M, int N, int K, int act, int core_mask);
void c64_matmulfusion_p(float *A, float *B, float *C, float *bias, int M, int N, int K, int act);
void c128_matmulfusion_s(double *A, double *B, double *C, double *bias, int M, int N, int K, int act, int core_mask);
void c128_matmulfusion_p(double *A, double *B, double *C, double *bias, int M, int N, int K, int act);

#ifdef __cplusplus
}
#endif

#endif
