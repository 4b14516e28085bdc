/* Binary cross entropy of predictions input_x and targets input_y, in all input_size elements.
 *
 * L = -weight * (y * log(x + eps) + (1 - y) * log(1 - x + eps)), eps = 1e-12. reduction 0: loss has input_size
 * elements; 1 (mean over input_size), 2 (sum): one. weight: read only when weight_defined is not 0. tmp_loss: scratch
 * of input_size elements, unused when reduction is 0.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no i8_. */
#ifndef BINARYCROSSENTROPY_H
#define BINARYCROSSENTROPY_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void fp_binarycrossentropy_s(int input_size, int reduction, float *input_x, float *input_y, float *weight,
                             float *loss, float *tmp_loss, int weight_defined, int core_mask);
void fp_binarycrossentropy_p(int input_size, int reduction, float *input_x, float *input_y, float *weight,
                             float *loss, float *tmp_loss, int weight_defined);
void hp_binarycrossentropy_s(int input_size, int reduction, half *input_x, half *input_y, half *weight, half *loss,
                             half *tmp_loss, int weight_defined, int core_mask);
void hp_binarycrossentropy_p(int input_size, int reduction, half *input_x, half *input_y, half *weight, half *loss,
                             half *tmp_loss, int weight_defined);
void i8_binarycrossentropy_s(int input_size, int reduction, int8_t *input_x, int8_t *input_y, int8_t *weight,
                             int8_t *loss, int8_t *tmp_loss, int weight_defined, int core_mask);
void i8_binarycrossentropy_p(int input_size, int reduction, int8_t *input_x, int8_t *input_y, int8_t *weight,
                             int8_t *loss, int8_t *tmp_loss, int weight_defined);

#ifdef __cplusplus
}
#endif

#endif
