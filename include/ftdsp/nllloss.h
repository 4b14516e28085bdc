/* Negative log likelihood loss.
 *
 * For sample i with class c = labels[i], 0 <= c < class_num: l = -weight[c] * log_probs[i * class_num + c].
 * reduction_type 0 (none): loss has batch_size elements; 1 (sum), 2 (mean: sum of l / sum of weight[c]): one.
 * total_weight: one element, the sum of weight[c]. Note the numbering: binarycrossentropy has another.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no i8_. */
#ifndef NLLLOSS_H
#define NLLLOSS_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void i8_nllloss_s(const int8_t *log_probs, const int *labels, const int8_t *weight, int32_t *loss,
                  int32_t *total_weight, int batch_size, int class_num, int reduction_type, int core_mask);
void i8_nllloss_p(const int8_t *log_probs, const int *labels, const int8_t *weight, int32_t *loss,
                  int32_t *total_weight, int batch_size, int class_num, int reduction_type);
void hp_nllloss_s(const half *log_probs, const int *labels, const half *weight, half *loss, half *total_weight,
                  int batch_size, int class_num, int reduction_type, int core_mask);
void hp_nllloss_p(const half *log_probs, const int *labels, const half *weight, half *loss, half *total_weight,
                  int batch_size, int class_num, int reduction_type);
void fp_nllloss_s(const float *log_probs, const int *labels, const float *weight, float *loss, float *total_weight,
                  int batch_size, int class_num, int reduction_type, int core_mask);
void fp_nllloss_p(const float *log_probs, const int *labels, const float *weight, float *loss, float *total_weight,
                  int batch_size, int class_num, int reduction_type);

#ifdef __cplusplus
}
#endif

#endif
