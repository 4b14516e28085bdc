#include "kernels/arrays/elementwise.h"

#include "kernels/map/tile_map.h"
#include "kernels/maths/maths.h"
#include "tensor/convert.h"

#define LOOPS_WITHOUT_BFLOAT
#define LOOPS "kernels/arrays/formulas.inc"
#include "tensor/instantiate.inc"

#define ARRAY_BODIES(name, level) \
    {name##_body_float_##level, name##_body_double_##level, name##_body_half_##level, NULL}
#define ARRAY_KERNEL(name) const TileKernel us_array_##name = {{US_EACH_LEVEL_OF(ARRAY_BODIES, name)}}

ARRAY_KERNEL(add);
ARRAY_KERNEL(sub);
ARRAY_KERNEL(mul);
ARRAY_KERNEL(div);
ARRAY_KERNEL(div_by_one);
ARRAY_KERNEL(div_of_one);
ARRAY_KERNEL(glu);
ARRAY_KERNEL(subext);
ARRAY_KERNEL(exponential);
ARRAY_KERNEL(subrelu);
ARRAY_KERNEL(subrelu6);
ARRAY_KERNEL(pow);
ARRAY_KERNEL(pow_one);
ARRAY_KERNEL(binary_cross_entropy);
ARRAY_KERNEL(binary_cross_entropy_weighted);
ARRAY_KERNEL(sigmoid_cross_entropy);
ARRAY_KERNEL(sigmoid_cross_entropy_grad);
ARRAY_KERNEL(smooth_l1_grad);
ARRAY_KERNEL(log_grad);
ARRAY_KERNEL(power_grad);
ARRAY_KERNEL(power_grad_1);
ARRAY_KERNEL(power_grad_2);
ARRAY_KERNEL(power_grad_3);
ARRAY_KERNEL(power_grad_3_halves);
ARRAY_KERNEL(power_grad_half);
ARRAY_KERNEL(power_grad_minus_1);
ARRAY_KERNEL(relu_grad);
ARRAY_KERNEL(relu6_grad);
ARRAY_KERNEL(l_relu_grad);
ARRAY_KERNEL(sigmoid_grad);
ARRAY_KERNEL(tanh_grad);
ARRAY_KERNEL(hsigmoid);
ARRAY_KERNEL(hswish);
ARRAY_KERNEL(gelu);
ARRAY_KERNEL(softplus);
ARRAY_KERNEL(elu);
ARRAY_KERNEL(shrink);
ARRAY_KERNEL(maximum_grad);
ARRAY_KERNEL(minimum_grad);
ARRAY_KERNEL(momentum);
ARRAY_KERNEL(sgd);
ARRAY_KERNEL(adam);
ARRAY_KERNEL(adam_weight_decay);
ARRAY_KERNEL(fake_quantise);
ARRAY_KERNEL(dequantise);
ARRAY_KERNEL(scaled_product);
