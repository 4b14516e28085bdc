/* Element-wise arithmetic (ft-dsp 4, 5.1). */
#include "ftdsp/elementwise.h"
#include "ftdsp/operators.h"
#include "kernels/arrays/complex.h"
#include "tensor/convert.h"

#include <string.h>

static void combine(FtCall *call, const MapFormula *formula, const void *x, const void *y, void *out, int n)
{
    ft_length(call, "n", n);
    const Elementwise work = {
        .formula = formula,
        .inputs = {{"x", x}, {"y", y}},
        .outputs = {{"out", out}},
    };
    ft_elementwise(call, &work, n);
}

void ft_add(FtCall *call, const void *x, const void *y, void *out, int n)
{
    combine(call, &us_map_sum, x, y, out, n);
}

void ft_sub(FtCall *call, const void *x, const void *y, void *out, int n)
{
    combine(call, &us_map_difference, x, y, out, n);
}

void ft_mul(FtCall *call, const void *x, const void *y, void *out, int n)
{
    combine(call, &us_map_mul, x, y, out, n);
}

static void run_complex_quotient(void *context, int64_t begin, int64_t end)
{
    us_array_complex_quotient(context, begin, end);
}

/* The operand that is one number for all has been checked; it is copied, because out may lie over it. */
static void divide_complex(FtCall *call, ArrayComplexQuotient work, int n)
{
    double number[2];
    if (work.x_step != 0) {
        ft_operand(call, "x", work.x, n, call->dtype);
        ft_same_or_apart(call, "out", work.out, "x", work.x, n, call->dtype);
    }
    if (work.y_step != 0) {
        ft_operand(call, "y", work.y, n, call->dtype);
        ft_same_or_apart(call, "out", work.out, "y", work.y, n, call->dtype);
    }
    ft_operand(call, "out", work.out, n, call->dtype);
    if (!ft_ok(call)) {
        return;
    }
    const void **one = work.x_step == 0 ? &work.x : work.y_step == 0 ? &work.y : NULL;
    if (one) {
        memcpy(number, *one, us_dtype_size(call->dtype));
        *one = number;
    }
    ft_split(call, n, FT_GRAIN, run_complex_quotient, &work);
}

void ft_div(FtCall *call, const void *x, const void *y, void *out, int n, int optimize, int first_scalar)
{
    ft_length(call, "n", n);
    const bool x_is_one = optimize && first_scalar, y_is_one = optimize && !first_scalar;
    if (optimize && n > 0) {
        ft_operand(call, x_is_one ? "x" : "y", x_is_one ? x : y, 1, call->dtype);
    }
    if (!ft_ok(call) || n == 0) {
        return;
    }
    if (us_array_is_complex(call->dtype)) {
        divide_complex(call, (ArrayComplexQuotient){x, y, !x_is_one, !y_is_one, out, call->dtype}, n);
        return;
    }
    Elementwise work = {
        .formula = x_is_one ? &us_map_divisor : y_is_one ? &us_map_divided : &us_map_div,
        .inputs = {x_is_one ? (Operand){"y", y} : (Operand){"x", x}, {"y", y}},
        .outputs = {{"out", out}},
    };
    if (optimize) {
        us_load_double(&work.numbers[0], x_is_one ? x : y, call->dtype, 1, 1);
    }
    ft_elementwise(call, &work, n);
}

static void run_complex_exponential(void *context, int64_t begin, int64_t end)
{
    us_array_complex_exponential(context, begin, end);
}

static void raise_complex(FtCall *call, ArrayComplexExponential work, int n)
{
    ft_operand(call, "x", work.x, n, call->dtype);
    ft_operand(call, "out", work.out, n, call->dtype);
    ft_same_or_apart(call, "out", work.out, "x", work.x, n, call->dtype);
    if (ft_ok(call)) {
        ft_split(call, n, FT_GRAIN, run_complex_exponential, &work);
    }
}

/* in_scale already contains `scale`, a power of the base, and out_scale the shift (ft-dsp 5.1). */
void ft_exp(FtCall *call, const void *x, void *out, int n, double in_scale, double out_scale, int scale)
{
    (void)scale;
    ft_length(call, "n", n);
    if (us_array_is_complex(call->dtype)) {
        raise_complex(call, (ArrayComplexExponential){x, out, call->dtype, in_scale, out_scale}, n);
        return;
    }
    const Elementwise work = {
        .formula = &us_map_scaled_exp,
        .numbers = {in_scale, out_scale},
        .inputs = {{"x", x}},
        .outputs = {{"out", out}},
        .output_dtype = call->dtype == DTYPE_INT32 ? DTYPE_FLOAT32 : call->dtype,
    };
    ft_elementwise(call, &work, n);
}

void ft_subext(FtCall *call, const void *input0, const void *input1, double alpha, void *output, int size)
{
    ft_length(call, "size", size);
    const Elementwise work = {
        .formula = &us_map_sub,
        .numbers = {alpha},
        .inputs = {{"input0", input0}, {"input1", input1}},
        .outputs = {{"output", output}},
    };
    ft_elementwise(call, &work, size);
}

void ft_subrelu(FtCall *call, const void *input0, const void *input1, void *output, int size)
{
    ft_length(call, "size", size);
    const Elementwise work = {
        .formula = &us_map_relu_of_difference,
        .inputs = {{"input0", input0}, {"input1", input1}},
        .outputs = {{"output", output}},
    };
    ft_elementwise(call, &work, size);
}

void ft_subrelu6(FtCall *call, const void *input0, const void *input1, void *output, int size)
{
    ft_length(call, "size", size);
    const Elementwise work = {
        .formula = &us_map_relu6_of_difference,
        .inputs = {{"input0", input0}, {"input1", input1}},
        .outputs = {{"output", output}},
    };
    ft_elementwise(call, &work, size);
}

/* Of the powers that are one number, those that need no logarithm. */
static const MapFormula *power_formula(double power)
{
    return power == 2 ? &us_map_square_of_line : power == 0.5 ? &us_map_root_of_line : &us_map_power_of_line;
}

void ft_pow_fusion(FtCall *call, const void *Input, const void *exponent, void *output, int length_in, double scale,
                   double shift, bool broadcast)
{
    ft_length(call, "length_in", length_in);
    Elementwise work = {
        .formula = &us_map_power_of_line,
        .numbers = {scale, shift},
        .inputs = {{"Input", Input}, {"exponent", exponent}},
        .outputs = {{"output", output}},
    };
    if (broadcast && ft_ok(call) && length_in > 0) {
        ft_operand(call, "exponent", exponent, 1, call->dtype);
        if (!ft_ok(call)) {
            return;
        }
        us_load_double(&work.numbers[2], exponent, call->dtype, 1, 1);
        work.formula = power_formula(work.numbers[2]);
        work.inputs[1].name = NULL;
    }
    ft_elementwise(call, &work, length_in);
}

typedef struct Sequence {
    double start, step;
    void *out;
    DType dtype;
} Sequence;

static void run_sequence(void *context, int64_t begin, int64_t end)
{
    const Sequence *work = context;
    us_array_sequence(work->start, work->step, work->out, work->dtype, begin, end);
}

void ft_range(FtCall *call, void *out, double start, double delta, int n)
{
    ft_length(call, "n", n);
    ft_operand(call, "out", out, n, call->dtype);
    if (ft_ok(call)) {
        Sequence work = {start, delta, out, call->dtype};
        ft_split(call, n, FT_GRAIN, run_sequence, &work);
    }
}

void ft_linspace(FtCall *call, void *out, double start, double end, int n)
{
    ft_length(call, "n", n);
    ft_operand(call, "out", out, n, call->dtype);
    if (!ft_ok(call) || n == 0) {
        return;
    }
    Sequence work = {start, n == 1 ? 0 : (end - start) / (n - 1), out, call->dtype};
    ft_split(call, n, FT_GRAIN, run_sequence, &work);
    if (n > 1) { /* the end is meant exactly; the product above may miss it by a rounding */
        us_array_sequence(end, 0, (char *)out + (n - 1) * (int64_t)us_dtype_size(call->dtype), call->dtype, 0, 1);
    }
}
