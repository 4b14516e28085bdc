/* Gradients of activation functions: dst = src0 * f'(src1) (ft-dsp 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"

/* Two inputs, one output, and up to one number. */
static void gradient(FtCall *call, const MapFormula *formula, double number, const void *src0, const void *src1,
                     void *dst, int length)
{
    ft_length(call, "length", length);
    const Elementwise work = {
        .formula = formula,
        .numbers = {number},
        .inputs = {{"src0", src0}, {"src1", src1}},
        .outputs = {{"dst", dst}},
    };
    ft_elementwise(call, &work, length);
}

void ft_relu_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length)
{
    gradient(call, &us_map_threshold_backward, 0, src0, src1, dst, length);
}

void ft_relu6_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length)
{
    gradient(call, &us_map_relu6_backward, 0, src0, src1, dst, length);
}

void ft_sigmoid_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length)
{
    gradient(call, &us_map_sigmoid_slope, 0, src0, src1, dst, length);
}

void ft_tanh_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length)
{
    gradient(call, &us_map_tanh_slope, 0, src0, src1, dst, length);
}

void ft_hsigmoid(FtCall *call, const void *src0, const void *src1, void *dst, int length)
{
    gradient(call, &us_map_hardsigmoid_backward, 0, src0, src1, dst, length);
}

void ft_hswish(FtCall *call, const void *src0, const void *src1, void *dst, int length)
{
    gradient(call, &us_map_hardswish_slope, 0, src0, src1, dst, length);
}

void ft_gelu(FtCall *call, const void *src0, const void *src1, void *dst, int length)
{
    gradient(call, &us_map_gelu_slope, 0, src0, src1, dst, length);
}

void ft_softplus(FtCall *call, const void *src0, const void *src1, void *dst, int length)
{
    gradient(call, &us_map_glu, 0, src0, src1, dst, length);
}

void ft_l_relu_grad(FtCall *call, const void *src0, const void *src1, void *dst, int length, double alpha)
{
    gradient(call, &us_map_leaky_relu_backward, alpha, src0, src1, dst, length);
}

void ft_elu(FtCall *call, const void *src0, const void *src1, void *dst, int length, double alpha)
{
    gradient(call, &us_map_elu_slope, alpha, src0, src1, dst, length);
}

void ft_hardshrink(FtCall *call, const void *src0, const void *src1, void *dst, int length, double lambd)
{
    gradient(call, &us_map_shrink_slope, lambd, src0, src1, dst, length);
}

void ft_softshrink(FtCall *call, const void *src0, const void *src1, void *dst, int length, double lambd)
{
    gradient(call, &us_map_shrink_slope, lambd, src0, src1, dst, length);
}
