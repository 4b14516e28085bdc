#include "kernels/ft_complex.h"

#include "tensor/clones.h"
#include "tensor/convert.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/* 1 with the sign of x for an infinity, 0 with it for other numbers. */
static double direction(double x)
{
    return copysign(isinf(x) ? 1 : 0, x);
}

/* (a + bi) / (c + di) where c^2 + d^2 neither overflows nor vanishes, with the infinities and zeros that one expects:
 * C11 annex G.5.1. */
static void divide(double a, double b, double c, double d, double *out)
{
    const double size = c * c + d * d;
    out[0] = (a * c + b * d) / size;
    out[1] = (b * c - a * d) / size;
    if (!isnan(out[0]) || !isnan(out[1])) {
        return;
    }
    if (size == 0) {
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

/* The power of two that makes the larger part a number between 1/2 and 1. */
static int exponent(const double *x)
{
    const double larger = fmax(fabs(x[0]), fabs(x[1]));
    int exponent = 0;
    if (isfinite(larger)) {
        frexp(larger, &exponent);
    }
    return exponent;
}

void us_ft_complex_quotient(const FtComplexQuotient *work, int64_t begin, int64_t end)
{
    double result[2];
    for (int64_t i = begin; i < end; i++) {
        if (work->dtype == DTYPE_COMPLEX64) { /* no square of a float leaves the range of doubles */
            const float *x = (const float *)work->x + 2 * i * work->x_step;
            const float *y = (const float *)work->y + 2 * i * work->y_step;
            float *out = (float *)work->out + 2 * i;
            divide(x[0], x[1], y[0], y[1], result);
            out[0] = (float)result[0];
            out[1] = (float)result[1];
        } else {
            const double *x = (const double *)work->x + 2 * i * work->x_step;
            const double *y = (const double *)work->y + 2 * i * work->y_step;
            double *out = (double *)work->out + 2 * i;
            const int up = exponent(x), down = exponent(y);
            divide(ldexp(x[0], -up), ldexp(x[1], -up), ldexp(y[0], -down), ldexp(y[1], -down), result);
            out[0] = ldexp(result[0], up - down);
            out[1] = ldexp(result[1], up - down);
        }
    }
}

static void exponential(const FtComplexExponential *work, double real, double imaginary, double *out)
{
    double scaled[2] = {work->in_scale * real, work->in_scale * imaginary};
    double _Complex x;
    memcpy(&x, scaled, sizeof x); /* built from its parts: a sum would turn infinities into NaN */
    const double _Complex power = cexp(x);
    out[0] = work->out_scale * creal(power);
    out[1] = work->out_scale * cimag(power);
}

void us_ft_complex_exponential(const FtComplexExponential *work, int64_t begin, int64_t end)
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

/* ---- matrix product ---- */

enum { TILE = 512 }; /* complex numbers */

KERNEL_CLONES static void add_scaled_row(double *sums, const double *factor, const double *row, int64_t count)
{
    const double real = factor[0], imaginary = factor[1], negative = -imaginary;
    for (int64_t i = 0; i < 2 * count; i += 2) { /* sums on both sides, as in ft_fourier.c */
        sums[i] += real * row[i] + negative * row[i + 1];
        sums[i + 1] += real * row[i + 1] + imaginary * row[i];
    }
}

KERNEL_CLONES static void add_row(double *sums, const double *row, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        sums[i] += row[i];
    }
}

void us_ft_complex_matrix_product(const FtMatrixProduct *work, int64_t begin, int64_t end)
{
    const DType part = work->dtype == DTYPE_COMPLEX64 ? DTYPE_FLOAT32 : DTYPE_FLOAT64;
    const int64_t size = (int64_t)us_dtype_size(work->dtype);
    const char *a = work->a, *b = work->b, *bias = work->bias;
    double sums[2 * TILE], row[2 * TILE], factor[2];
    for (int64_t m = begin; m < end; m++) {
        for (int64_t n = 0; n < work->n; n += TILE) {
            const int64_t width = work->n - n < TILE ? work->n - n : TILE;
            memset(sums, 0, sizeof sums);
            for (int64_t k = 0; k < work->k; k++) {
                us_load_double(factor, a + (m * work->k + k) * size, part, 1, 2);
                us_load_double(row, b + (k * work->n + n) * size, part, 1, 2 * width);
                add_scaled_row(sums, factor, row, width);
            }
            if (bias) {
                us_load_double(row, bias + (m * work->n + n) * size, part, 1, 2 * width);
                add_row(sums, row, 2 * width);
            }
            us_store_double((char *)work->c + (m * work->n + n) * size, part, 1, sums, 2 * width);
        }
    }
}
