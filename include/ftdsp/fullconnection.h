/* Fully connected layer.
 *
 * C[M,N] = act(A[M,K] * B[K,N] + bias[M,N]), all row-major; bias may be NULL. Integers saturate.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no i8_. */
#ifndef FULLCONNECTION_H
#define FULLCONNECTION_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* activation_type */
enum { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_RELU6 };

void i8_fullconnection_s(int8_t *A, int8_t *B, int8_t *C, int8_t *bias, int M, int N, int K, int activation_type,
                         int core_mask);
void i8_fullconnection_p(int8_t *A, int8_t *B, int8_t *C, int8_t *bias, int M, int N, int K, int activation_type);
void fp_fullconnection_s(float *A, float *B, float *C, float *bias, int M, int N, int K, int activation_type,
                         int core_mask);
void fp_fullconnection_p(float *A, float *B, float *C, float *bias, int M, int N, int K, int activation_type);
void hp_fullconnection_s(half *A, half *B, half *C, half *bias, int M, int N, int K, int activation_type,
                         int core_mask);
void hp_fullconnection_p(half *A, half *B, half *C, half *bias, int M, int N, int K, int activation_type);

#ifdef __cplusplus
}
#endif

#endif
