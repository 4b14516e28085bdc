/* Cross entropy of the sigmoid of logits.
 *
 * output = -(y * log(s) + (1 - y) * log(1 - s)), s = 1 / (1 + e^-x); input0: logits x, input1: labels y.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no i8_. */
#ifndef SIGMOIDCROSSENTROPYWITHLOGITS_H
#define SIGMOIDCROSSENTROPYWITHLOGITS_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void i8_sigmoidcrossentropywithlogits_s(int8_t *input0, int8_t *input1, int8_t *output, int length, int core_mask);
void i8_sigmoidcrossentropywithlogits_p(int8_t *input0, int8_t *input1, int8_t *output, int length);
void fp_sigmoidcrossentropywithlogits_s(float *input0, float *input1, float *output, int length, int core_mask);
void fp_sigmoidcrossentropywithlogits_p(float *input0, float *input1, float *output, int length);
void hp_sigmoidcrossentropywithlogits_s(half *input0, half *input1, half *output, int length, int core_mask);
void hp_sigmoidcrossentropywithlogits_p(half *input0, half *input1, half *output, int length);

#ifdef __cplusplus
}
#endif

#endif
