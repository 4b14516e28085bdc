/* Element-wise operators on contiguous arrays, and how they walk arrays of any element type.
 *
 * Attributes of every kernel: ARRAY_NUMBERS doubles; which ones it uses, and the order of its inputs and outputs, is said
 * at its formula (formulas.inc). */
#ifndef UNDERSTUDY_ARRAYS_ELEMENTWISE_H
#define UNDERSTUDY_ARRAYS_ELEMENTWISE_H

#include "kernels/map/tile_map.h"

enum { ARRAY_NUMBERS = MAP_NUMBERS, ARRAY_INPUTS = MAP_INPUTS, ARRAY_OUTPUTS = MAP_OUTPUTS };

extern const TileKernel us_array_add, us_array_sub, us_array_mul, us_array_div, us_array_div_by_one,
    us_array_div_of_one, us_array_glu, us_array_subext, us_array_exponential, us_array_subrelu, us_array_subrelu6,
    us_array_pow, us_array_pow_one, us_array_binary_cross_entropy, us_array_binary_cross_entropy_weighted,
    us_array_sigmoid_cross_entropy, us_array_sigmoid_cross_entropy_grad, us_array_smooth_l1_grad, us_array_log_grad,
    us_array_power_grad, us_array_power_grad_1, us_array_power_grad_2, us_array_power_grad_3,
    us_array_power_grad_3_halves, us_array_power_grad_half, us_array_power_grad_minus_1, us_array_relu_grad,
    us_array_relu6_grad, us_array_l_relu_grad, us_array_sigmoid_grad, us_array_tanh_grad, us_array_hsigmoid,
    us_array_hswish, us_array_gelu, us_array_softplus, us_array_elu, us_array_shrink, us_array_maximum_grad,
    us_array_minimum_grad, us_array_momentum, us_array_sgd, us_array_adam, us_array_adam_weight_decay,
    us_array_fake_quantise, us_array_dequantise, us_array_scaled_product;

/* Contiguous arrays of one element type; the outputs may be of another one. */
typedef struct ArrayMap {
    const TileKernel *kernel;
    double numbers[ARRAY_NUMBERS];
    DType dtype, output_dtype;
    int inputs, outputs;
    const void *input[ARRAY_INPUTS];
    void *output[ARRAY_OUTPUTS];
} ArrayMap;

/* Elements begin … end-1. float32 and float16 compute in float32, everything else in float64, so that integer results
 * are exact; they are truncated and saturate when stored. Complex types are not handled. */
void us_array_map(const ArrayMap *map, int64_t begin, int64_t end);

/* The sum of the (first) output over elements begin … end-1, in an order of its own, in float64; nothing is stored. */
double us_array_map_sum(const ArrayMap *map, int64_t begin, int64_t end);

/* Complex x * y, the same array in place included; only dtype, inputs and output of the map are used. */
void us_array_complex_product(const ArrayMap *map, int64_t begin, int64_t end);

/* out[i] = start + i * step for i = begin … end-1, in float64, rounded (integers: truncated, saturated) when stored. */
void us_array_sequence(double start, double step, void *out, DType dtype, int64_t begin, int64_t end);

#endif
