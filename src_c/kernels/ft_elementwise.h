/* The element-wise operators of the FT DSP library, and how they walk arrays of any element type.
 *
 * Attributes of every kernel: FT_NUMBERS doubles; which ones it uses, and the order of its inputs and outputs, is said
 * at its formula (ft_formulas.inc). */
#ifndef UNDERSTUDY_FT_ELEMENTWISE_H
#define UNDERSTUDY_FT_ELEMENTWISE_H

#include "kernels/map.h"

enum { FT_NUMBERS = MAP_NUMBERS, FT_INPUTS = MAP_INPUTS, FT_OUTPUTS = MAP_OUTPUTS };

extern const TileKernel us_ft_add, us_ft_sub, us_ft_mul, us_ft_div, us_ft_div_by_one, us_ft_div_of_one,
    us_ft_glu, us_ft_subext, us_ft_exponential, us_ft_subrelu, us_ft_subrelu6,
    us_ft_pow, us_ft_pow_one, us_ft_binary_cross_entropy, us_ft_binary_cross_entropy_weighted,
    us_ft_sigmoid_cross_entropy, us_ft_sigmoid_cross_entropy_grad, us_ft_smooth_l1_grad,
    us_ft_log_grad, us_ft_power_grad, us_ft_power_grad_1, us_ft_power_grad_2, us_ft_power_grad_3,
    us_ft_power_grad_3_halves, us_ft_power_grad_half, us_ft_power_grad_minus_1, us_ft_relu_grad, us_ft_relu6_grad, us_ft_l_relu_grad,
    us_ft_sigmoid_grad, us_ft_tanh_grad, us_ft_hsigmoid, us_ft_hswish, us_ft_gelu,
    us_ft_softplus, us_ft_elu, us_ft_shrink, us_ft_maximum_grad, us_ft_minimum_grad,
    us_ft_momentum, us_ft_sgd, us_ft_adam, us_ft_adam_weight_decay, us_ft_fake_quantise,
    us_ft_dequantise, us_ft_scaled_product;

/* Contiguous arrays of one element type; the outputs may be of another one. */
typedef struct FtMap {
    const TileKernel *kernel;
    double numbers[FT_NUMBERS];
    DType dtype, output_dtype;
    int inputs, outputs;
    const void *input[FT_INPUTS];
    void *output[FT_OUTPUTS];
} FtMap;

/* Elements begin … end-1. float32 and float16 compute in float32, everything else in float64, so that integer results
 * are exact; they are truncated and saturate when stored. Complex types are not handled. */
void us_ft_map(const FtMap *map, int64_t begin, int64_t end);

/* The sum of the (first) output over elements begin … end-1, in an order of its own, in float64; nothing is stored. */
double us_ft_map_sum(const FtMap *map, int64_t begin, int64_t end);

/* Complex x * y, the same array in place included; only dtype, inputs and output of the map are used. */
void us_ft_complex_product(const FtMap *map, int64_t begin, int64_t end);

/* out[i] = start + i * step for i = begin … end-1, in float64, rounded (integers: truncated, saturated) when stored. */
void us_ft_sequence(double start, double step, void *out, DType dtype, int64_t begin, int64_t end);

#endif
