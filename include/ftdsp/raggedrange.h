/* Several arithmetic sequences, one behind the other.
 *
 * Range i is starts[i], starts[i] + deltas[i], … before limits[i]: ceil((limit - start) / delta) values, none when the
 * direction is wrong. splits has range_count + 1 entries: values of range i are values[splits[i]] …
 * values[splits[i+1]-1].
 *
 * _s: operands in space all cores see (DDR, SMC), core_mask bit i: core i takes part; _p: the calling core's L2.
 * FT78NE has no hp_; MT7004 has no i8_, dp_. */
#ifndef RAGGEDRANGE_H
#define RAGGEDRANGE_H

#include "ftdsp_half.h"
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void i8_raggedrange_s(int8_t *starts, int8_t *limits, int8_t *deltas, int range_count, int8_t *values, int *splits,
                      int core_mask);
void i8_raggedrange_p(int8_t *starts, int8_t *limits, int8_t *deltas, int range_count, int8_t *values, int *splits);
void i16_raggedrange_s(int16_t *starts, int16_t *limits, int16_t *deltas, int range_count, int16_t *values,
                       int *splits, int core_mask);
void i16_raggedrange_p(int16_t *starts, int16_t *limits, int16_t *deltas, int range_count, int16_t *values,
                       int *splits);
void i32_raggedrange_s(int32_t *starts, int32_t *limits, int32_t *deltas, int range_count, int32_t *values,
                       int *splits, int core_mask);
void i32_raggedrange_p(int32_t *starts, int32_t *limits, int32_t *deltas, int range_count, int32_t *values,
                       int *splits);
void fp_raggedrange_s(float *starts, float *limits, float *deltas, int range_count, float *values, int *splits,
                      int core_mask);
void fp_raggedrange_p(float *starts, float *limits, float *deltas, int range_count, float *values, int *splits);
void dp_raggedrange_s(double *starts, double *limits, double *deltas, int range_count, double *values, int *splits,
                      int core_mask);
void dp_raggedrange_p(double *starts, double *limits, double *deltas, int range_count, double *values, int *splits);
void hp_raggedrange_s(half *starts, half *limits, half *deltas, int range_count, half *values, int *splits,
                      int core_mask);
void hp_raggedrange_p(half *starts, half *limits, half *deltas, int range_count, half *values, int *splits);

#ifdef __cplusplus
}
#endif

#endif
