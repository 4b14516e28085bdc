/* Optimiser steps on elements start … end-1, in place (ft-dsp 4). */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"

#include <math.h>

static void check_range(FtCall *call, int start, int end)
{
    ft_require(call, start >= 0, "start", "negative", FT_BAD_SIZE, "start is %d", start);
    ft_require(call, end >= start, "end", "range", FT_BAD_SIZE, "end is %d, before start %d", end, start);
}

static void step(FtCall *call, Elementwise *work, int start, int end)
{
    work->first = start;
    ft_elementwise(call, work, ft_ok(call) ? end - start : 0);
}

static void momentum(FtCall *call, void *weight, void *accumulate, const void *gradient, double learning_rate,
                     double moment, bool nesterov, int start, int end)
{
    Elementwise work = {
        .formula = &us_map_momentum,
        .numbers = {learning_rate, moment, nesterov},
        .inputs = {{"weight", weight}, {"accumulate", accumulate}, {"gradient", gradient}},
        .outputs = {{"weight", weight}, {"accumulate", accumulate}},
    };
    step(call, &work, start, end);
}

void ft_applymomentum(FtCall *call, void *weight, void *accumulate, const void *gradient, double learning_rate,
                      double moment, bool nesterov, int start, int end)
{
    check_range(call, start, end);
    momentum(call, weight, accumulate, gradient, learning_rate, moment, nesterov, start, end);
}

void ft_apply_momentum(FtCall *call, void *weight, void *accumulate, const void *gradient, bool nesterov,
                       const float *float_addr, const int *int_addr)
{
    ft_operand(call, "float_addr", float_addr, 2, DTYPE_FLOAT32);
    ft_operand(call, "int_addr", int_addr, 2, DTYPE_INT32);
    if (!ft_ok(call)) {
        return;
    }
    const int start = int_addr[0], end = int_addr[1];
    ft_require(call, start >= 0 && end >= start, "int_addr", "range", FT_BAD_SIZE,
               "int_addr is {%d, %d}: start and end",
               start, end);
    momentum(call, weight, accumulate, gradient, float_addr[0], float_addr[1], nesterov, start, end);
}

void ft_sgd(FtCall *call, void *weight, void *accumulate, const void *gradient, double learning_rate, double dampening,
            double moment, bool nesterov, double weight_decay, int start, int end)
{
    check_range(call, start, end);
    Elementwise work = {
        .formula = &us_map_sgd,
        .numbers = {learning_rate, dampening, moment, nesterov, weight_decay},
        .inputs = {{"weight", weight}, {"accumulate", accumulate}, {"gradient", gradient}},
        .outputs = {{"weight", weight}, {"accumulate", accumulate}},
    };
    step(call, &work, start, end);
}

void ft_adam(FtCall *call, void *m, void *v, const void *gradient, void *weight, double beta1, double beta2,
             const float *beta1_power, const float *beta2_power, double eps, double learning_rate, int nesterov,
             int start, int end)
{
    check_range(call, start, end);
    ft_operand(call, "beta1_power", beta1_power, 1, DTYPE_FLOAT32);
    ft_operand(call, "beta2_power", beta2_power, 1, DTYPE_FLOAT32);
    if (!ft_ok(call)) {
        return;
    }
    const float corrected = (float)learning_rate * sqrtf(1 - *beta2_power) / (1 - *beta1_power);
    Elementwise work = {
        .formula = &us_map_adam,
        .numbers = {beta1, beta2, eps, corrected, nesterov},
        .inputs = {{"m", m}, {"v", v}, {"gradient", gradient}, {"weight", weight}},
        .outputs = {{"m", m}, {"v", v}, {"weight", weight}},
    };
    step(call, &work, start, end);
}

void ft_adamweightdecay(FtCall *call, void *var, void *m, void *v, const void *gradient, double lr, double beta1,
                        double beta2, double epsilon, double decay, int start, int end)
{
    check_range(call, start, end);
    Elementwise work = {
        .formula = &us_map_adam_decay,
        .numbers = {lr, beta1, beta2, epsilon, decay},
        .inputs = {{"var", var}, {"m", m}, {"v", v}, {"gradient", gradient}},
        .outputs = {{"var", var}, {"m", m}, {"v", v}},
    };
    step(call, &work, start, end);
}
