#include "kernels/ft_complex.h"

#include "tensor/clones.h"
#include "tensor/convert.h"

#include <complex.h>
#include <string.h>

typedef float _Complex Single;
typedef double _Complex Double;

/* C's division scales its operands and gives the infinities and zeros that one expects (C11 annex G). */
void us_ft_complex_quotient(const FtComplexQuotient *work, int64_t begin, int64_t end)
{
    if (work->dtype == DTYPE_COMPLEX64) {
        const Single *x = work->x, *y = work->y;
        Single *out = work->out;
        for (int64_t i = begin; i < end; i++) {
            out[i] = (Single)((Double)x[i * work->x_step] / (Double)y[i * work->y_step]);
        }
        return;
    }
    const Double *x = work->x, *y = work->y;
    Double *out = work->out;
    for (int64_t i = begin; i < end; i++) {
        out[i] = x[i * work->x_step] / y[i * work->y_step];
    }
}

static void exponential(const FtComplexExponential *work, double real, double imaginary, double *out)
{
    double scaled[2] = {work->in_scale * real, work->in_scale * imaginary};
    Double x;
    memcpy(&x, scaled, sizeof x); /* built from its parts: a sum would turn infinities into NaN */
    const Double power = cexp(x);
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
    for (int64_t i = 0; i < 2 * count; i += 2) {
        sums[i] += factor[0] * row[i] - factor[1] * row[i + 1];
        sums[i + 1] += factor[0] * row[i + 1] + factor[1] * row[i];
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
