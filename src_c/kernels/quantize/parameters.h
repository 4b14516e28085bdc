/* Scales in the 64 bits that the units for products read. */
#ifndef UNDERSTUDY_QUANTIZE_PARAMETERS_H
#define UNDERSTUDY_QUANTIZE_PARAMETERS_H

#include "kernels/kernels.h"

/* The float32 of the scale without its last 13 bits in bits 0 … 31, 1 in bit 46; with an offset, its nearest integer of
 * -256 … 255 (ties away from zero, NaN 0) in bits 37 … 45. A rounded scale is the nearest number without these 13 bits,
 * ties away from zero, instead of the next one towards zero. Views of one shape: scale, offset?, out (64 bits). */
typedef struct QuantizeParameters {
    bool rounded;
} QuantizeParameters;
Kernel us_quantize_parameters;
uint64_t us_quantize_parameter(float scale, float offset); /* of one; offset 0 is as none */
int64_t us_parameter_offset(uint64_t parameter);           /* the integer in bits 37 … 45 */

#endif
