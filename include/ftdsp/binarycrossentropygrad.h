/* Gradient of the binary cross entropy with respect to the prediction, over input_size elements:
 *
 *     dx = dloss * weight * (x - y) / (x * (1 - x) + eps)          eps = 1e-12
 *
 * input_x         prediction of the forward pass
 * input_y         target
 * weight          one factor per element; read only when weight_defined is not 0, may be NULL otherwise
 * dloss           upstream gradient: input_size elements when reduction is 0, else one
 * dx              result; may be exactly one of the inputs, but not overlap one in part
 * reduction       the one used forward: 0 none, 1 mean (dloss is divided by input_size), 2 sum
 * core_mask       bit i: DSP core i takes part; the result does not depend on it
 *
 * _s: operands in space all cores see (DDR, SMC); _p: the calling core's L2. hp_ exists on MT7004 only.
 * A call that is refused changes nothing; the message tells why. */
#ifndef BINARYCROSSENTROPYGRAD_H
#define BINARYCROSSENTROPYGRAD_H

#include "ftdsp_half.h"

#ifdef __cplusplus
extern "C" {
#endif

void fp_binarycrossentropygrad_s(int input_size, int reduction, float *input_x, float *input_y, float *weight,
                                 float *dloss, float *dx, int weight_defined, int core_mask);
void hp_binarycrossentropygrad_s(int input_size, int reduction, half *input_x, half *input_y, half *weight,
                                 half *dloss, half *dx, int weight_defined, int core_mask);
void fp_binarycrossentropygrad_p(int input_size, int reduction, float *input_x, float *input_y, float *weight,
                                 float *dloss, float *dx, int weight_defined);
void hp_binarycrossentropygrad_p(int input_size, int reduction, half *input_x, half *input_y, half *weight,
                                 half *dloss, half *dx, int weight_defined);

#ifdef __cplusplus
}
#endif

#endif
