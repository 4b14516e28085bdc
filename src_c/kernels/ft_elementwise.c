#include "kernels/ft_elementwise.h"

#include "kernels/maths/maths.h"
#include "kernels/map.h"
#include "tensor/convert.h"

#define LOOPS_WITHOUT_BFLOAT
#define LOOPS "kernels/ft_formulas.inc"
#include "tensor/instantiate.inc"

#define FT_BODIES(name, level) \
    {name##_body_float_##level, name##_body_double_##level, name##_body_half_##level, NULL}
#define FT_KERNEL(name) const TileKernel us_ft_##name = {{US_EACH_LEVEL_OF(FT_BODIES, name)}}

FT_KERNEL(add);
FT_KERNEL(sub);
FT_KERNEL(mul);
FT_KERNEL(div);
FT_KERNEL(div_by_one);
FT_KERNEL(div_of_one);
FT_KERNEL(glu);
FT_KERNEL(subext);
FT_KERNEL(exponential);
FT_KERNEL(subrelu);
FT_KERNEL(subrelu6);
FT_KERNEL(pow);
FT_KERNEL(pow_one);
FT_KERNEL(binary_cross_entropy);
FT_KERNEL(binary_cross_entropy_weighted);
FT_KERNEL(sigmoid_cross_entropy);
FT_KERNEL(sigmoid_cross_entropy_grad);
FT_KERNEL(smooth_l1_grad);
FT_KERNEL(log_grad);
FT_KERNEL(power_grad);
FT_KERNEL(power_grad_1);
FT_KERNEL(power_grad_2);
FT_KERNEL(power_grad_3);
FT_KERNEL(power_grad_3_halves);
FT_KERNEL(power_grad_half);
FT_KERNEL(power_grad_minus_1);
FT_KERNEL(relu_grad);
FT_KERNEL(relu6_grad);
FT_KERNEL(l_relu_grad);
FT_KERNEL(sigmoid_grad);
FT_KERNEL(tanh_grad);
FT_KERNEL(hsigmoid);
FT_KERNEL(hswish);
FT_KERNEL(gelu);
FT_KERNEL(softplus);
FT_KERNEL(elu);
FT_KERNEL(shrink);
FT_KERNEL(maximum_grad);
FT_KERNEL(minimum_grad);
FT_KERNEL(momentum);
FT_KERNEL(sgd);
FT_KERNEL(adam);
FT_KERNEL(adam_weight_decay);
FT_KERNEL(fake_quantise);
FT_KERNEL(dequantise);
FT_KERNEL(scaled_product);
