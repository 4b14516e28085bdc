#include "kernels/ft_elementwise.h"

#include "kernels/exponential.h"
#include "tensor/clones.h"
#include "tensor/convert.h"

#include <math.h>

#define FT_JOIN_(a, b) a##b
#define FT_JOIN(a, b) FT_JOIN_(a, b)

#define REAL float
#define F(name) name##_float
#define EXP exp_float
#define POW powf
#define LOG logf
#define LOG1P log1pf
#define ERF erff
#define SQRT sqrtf
#define FLOOR floorf
#define ABS fabsf
#include "kernels/ft_formulas.inc"

#define REAL double
#define F(name) name##_double
#define EXP exp_double
#define POW pow
#define LOG log
#define LOG1P log1p
#define ERF erf
#define SQRT sqrt
#define FLOOR floor
#define ABS fabs
#include "kernels/ft_formulas.inc"

#define NAME add
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME sub
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME mul
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME div
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME div_by_one
#define INPUTS 1
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME div_of_one
#define INPUTS 1
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME glu
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME subext
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME exponential
#define INPUTS 1
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME subrelu
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME subrelu6
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME pow
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME pow_one
#define INPUTS 1
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME binary_cross_entropy
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME binary_cross_entropy_weighted
#define INPUTS 3
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME sigmoid_cross_entropy
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME sigmoid_cross_entropy_grad
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME smooth_l1_grad
#define INPUTS 3
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME log_grad
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME power_grad
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME relu_grad
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME relu6_grad
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME l_relu_grad
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME sigmoid_grad
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME tanh_grad
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME hsigmoid
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME hswish
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME gelu
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME softplus
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME elu
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME shrink
#define INPUTS 2
#define OUTPUTS 1
#include "kernels/ft_loop.inc"

#define NAME maximum_grad
#define INPUTS 3
#define OUTPUTS 2
#include "kernels/ft_loop.inc"

#define NAME minimum_grad
#define INPUTS 3
#define OUTPUTS 2
#include "kernels/ft_loop.inc"

#define NAME momentum
#define INPUTS 3
#define OUTPUTS 2
#include "kernels/ft_loop.inc"

#define NAME sgd
#define INPUTS 3
#define OUTPUTS 2
#include "kernels/ft_loop.inc"

#define NAME adam
#define INPUTS 4
#define OUTPUTS 3
#include "kernels/ft_loop.inc"

#define NAME adam_weight_decay
#define INPUTS 4
#define OUTPUTS 3
#include "kernels/ft_loop.inc"

#define NAME fake_quantise
#define INPUTS 1
#define OUTPUTS 1
#include "kernels/ft_loop.inc"
