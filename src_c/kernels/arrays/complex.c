#include "kernels/arrays/complex.h"

#include "kernels/maths/maths.h"
#include "tensor/convert.h"
#include "tensor/levels.h"

#include <math.h>
#include <string.h>

enum { TILE = 512 }; /* complex numbers */

static DType part_of(DType dtype)
{
    return dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
}

/* ---- quotient ---- */

/* 1 with the sign of x for an infinity, 0 with it for other numbers. */
static double direction(double x)
{
    return copysign(isinf(x) ? 1 : 0, x);
}

/* A quotient that the formula made NaN, with the infinities and zeros that one expects: C11 annex G.5.1. */
US_SCALAR static void recover(double a, double b, double c, double d, double *out)
{
    if (c == 0 && d == 0) {
        out[0] = copysign(INFINITY, c) * a;
        out[1] = copysign(INFINITY, c) * b;
    } else if ((isinf(a) || isinf(b)) && isfinite(c) && isfinite(d)) {
        out[0] = INFINITY * (direction(a) * c + direction(b) * d);
        out[1] = INFINITY * (direction(b) * c - direction(a) * d);
    } else if ((isinf(c) || isinf(d)) && isfinite(a) && isfinite(b)) {
        out[0] = 0 * (a * direction(c) + b * direction(d));
        out[1] = 0 * (b * direction(c) - a * direction(d));
    }
}

/* out = x / y where no |y|^2 overflows or vanishes. Sums on both sides, as in fourier.c. */
static void divide(const double *x, const double *y, double *out, int64_t count)
{
    int64_t undefined = 0;
    for (int64_t i = 0; i < 2 * count; i += 2) {
        const double c = y[i], d = y[i + 1], negative = -d, size = c * c + d * d;
        const double real = (x[i] * c + x[i + 1] * d) / size, imaginary = (x[i + 1] * c + x[i] * negative) / size;
        undefined += real != real && imaginary != imaginary;
        out[i] = real;
        out[i + 1] = imaginary;
    }
    for (int64_t i = 0; undefined != 0 && i < 2 * count; i += 2) {
        if (isnan(out[i]) && isnan(out[i + 1])) {
            recover(x[i], x[i + 1], y[i], y[i + 1], out + i);
        }
    }
}

/* Multiplies each number by a power of two, 2^(1023 - exponents[k]), so that its larger part is about 1. */
static void scale(double *x, uint64_t *exponents, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        const double real = fabs(x[2 * k]), imaginary = fabs(x[2 * k + 1]);
        uint64_t exponent = double_bits(real > imaginary ? real : imaginary) >> 52;
        exponent = exponent < 1 ? 1 : exponent > 2045 ? 2045 : exponent; /* the power is a normal number */
        const double power = bits_double((2046 - exponent) << 52);
        x[2 * k] *= power;
        x[2 * k + 1] *= power;
        exponents[k] = exponent;
    }
}

/* Quotients of scaled numbers: in two steps, because the power of two alone may be out of range. */
static void scale_back(double *out, const uint64_t *up, const uint64_t *down, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        const uint64_t exponent = up[k] + 2046 - down[k], half = exponent >> 1;
        const double first = bits_double(half << 52), second = bits_double((exponent - half) << 52);
        out[2 * k] = out[2 * k] * first * second;
        out[2 * k + 1] = out[2 * k + 1] * first * second;
    }
}

typedef struct Tile {
    double parts[2 * TILE];
    uint64_t exponents[TILE];
} Tile;

/* `count` numbers from `first` on, or one number as often. */
static void load(Tile *tile, const void *numbers, int64_t step, DType dtype, int64_t first, int64_t count)
{
    const DType part = part_of(dtype);
    const char *data = (const char *)numbers + first * step * (int64_t)us_dtype_size(dtype);
    us_load_double(tile->parts, data, part, 1, 2 * (step == 0 ? 1 : count));
    for (int64_t k = 2; step == 0 && k < 2 * count; k++) {
        tile->parts[k] = tile->parts[k - 2];
    }
    if (dtype == DTYPE_COMPLEX128) { /* no square of a float leaves the range of doubles */
        scale(tile->parts, tile->exponents, count);
    }
}

void us_array_complex_quotient(const ArrayComplexQuotient *work, int64_t begin, int64_t end)
{
    Tile x, y;
    double out[2 * TILE];
    for (; begin < end; begin += TILE) {
        const int64_t count = end - begin < TILE ? end - begin : TILE;
        load(&x, work->x, work->x_step, work->dtype, begin, count);
        load(&y, work->y, work->y_step, work->dtype, begin, count);
        divide(x.parts, y.parts, out, count);
        if (work->dtype == DTYPE_COMPLEX128) {
            scale_back(out, x.exponents, y.exponents, count);
        }
        char *to = (char *)work->out + begin * (int64_t)us_dtype_size(work->dtype);
        us_store_double(to, part_of(work->dtype), 1, out, 2 * count);
    }
}

/* ---- exponential ---- */

static void exponential(const ArrayComplexExponential *work, double real, double imaginary, double *out)
{
    const ComplexDouble x = complex_of(work->in_scale * real, work->in_scale * imaginary);
    const ComplexDouble power = complex_exp_double(x);
    out[0] = work->out_scale * __real__ power;
    out[1] = work->out_scale * __imag__ power;
}

void us_array_complex_exponential(const ArrayComplexExponential *work, int64_t begin, int64_t end)
{
    double result[2];
    for (int64_t i = 2 * begin; i < 2 * end; i += 2) {
        if (work->dtype == DTYPE_COMPLEX64) {
            const float *x = work->x;
            float *out = work->out;
            exponential(work, x[i], x[i + 1], result);
            out[i] = (float)result[0];
            out[i + 1] = (float)result[1];
        } else {
            const double *x = work->x;
            exponential(work, x[i], x[i + 1], result);
            memcpy((double *)work->out + i, result, sizeof result);
        }
    }
}
