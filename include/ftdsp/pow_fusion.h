/* Power with a linear function of the base.
 *
 * output = (scale * Input + shift)^e; e = exponent[0] when broadcast, else one exponent per element. Integer results
 * are truncated and saturate.
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no i8_, dp_. */
#ifndef POW_FUSION_H
#define POW_FUSION_H

#include "ftdsp_half.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void i8_pow_fusion_s(int8_t *Input, int8_t *exponent, int8_t *output, int length_in, int8_t scale, int8_t shift,
                     bool broadcast, int core_mask);
void i8_pow_fusion_p(int8_t *Input, int8_t *exponent, int8_t *output, int length_in, int8_t scale, int8_t shift,
                     bool broadcast);
void i16_pow_fusion_s(int16_t *Input, int16_t *exponent, int16_t *output, int length_in, int scale, int shift,
                      bool broadcast, int core_mask);
void i16_pow_fusion_p(int16_t *Input, int16_t *exponent, int16_t *output, int length_in, int scale, int shift,
                      bool broadcast);
void i32_pow_fusion_s(int32_t *Input, int32_t *exponent, int32_t *output, int length_in, int scale, int shift,
                      bool broadcast, int core_mask);
void i32_pow_fusion_p(int32_t *Input, int32_t *exponent, int32_t *output, int length_in, int scale, int shift,
                      bool broadcast);
void hp_pow_fusion_s(half *Input, half *exponent, half *output, int length_in, float scale, float shift,
                     bool broadcast, int core_mask);
void hp_pow_fusion_p(half *Input, half *exponent, half *output, int length_in, float scale, float shift,
                     bool broadcast);
void fp_pow_fusion_s(float *Input, float *exponent, float *output, int length_in, float scale, float shift,
                     bool broadcast, int core_mask);
void fp_pow_fusion_p(float *Input, float *exponent, float *output, int length_in, float scale, float shift,
                     bool broadcast);
void dp_pow_fusion_s(double *Input, double *exponent, double *output, int length_in, double scale, double shift,
                     bool broadcast, int core_mask);
void dp_pow_fusion_p(double *Input, double *exponent, double *output, int length_in, double scale, double shift,
                     bool broadcast);

#ifdef __cplusplus
}
#endif

#endif
