/* Gradient of the cross entropy of the sigmoid of logits.
 *
 * output = 1 / (1 + e^-x) - y; Input0: logits x, Input1: labels y.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_. */
#ifndef SIGMOID_CROSS_ENTROPY_H
#define SIGMOID_CROSS_ENTROPY_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_sigmoidcrossentropywithlogitsgrad_s(float *Input0, float *Input1, float *output, int length, int core_mask);
void fp_sigmoidcrossentropywithlogitsgrad_p(float *Input0, float *Input1, float *output, int length);
void hp_sigmoidcrossentropywithlogitsgrad_s(half *Input0, half *Input1, half *output, int length, int core_mask);
void hp_sigmoidcrossentropywithlogitsgrad_p(half *Input0, half *Input1, half *output, int length);

#ifdef __cplusplus
}
#endif

#endif
