/* Discrete Fourier transforms of rows: complex64, real and imaginary part in turn, in float32. */
#ifndef UNDERSTUDY_ARRAYS_FOURIER_H
#define UNDERSTUDY_ARRAYS_FOURIER_H

#include <stdbool.h>
#include <stdint.h>

/* w[k] = exp(-2 pi i k / n), inverse: exp(2 pi i k / n), for k = begin … end-1: each rounded once. */
void us_array_fourier_factors(float *w, int64_t n, bool inverse, int64_t begin, int64_t end);

/* Rows of n = 2^stages numbers. A row is transformed in stages of n / 2 butterflies each, which do not depend on each
 * other; stages do. The last stage multiplies by `scale` and writes to out, those before to tmp and out in turn. */
typedef struct ArrayFourier {
    const float *in, *w;
    float *out, *tmp;
    int64_t n;
    int stages;
    float scale;
} ArrayFourier;
int us_array_fourier_stages(int64_t n);
void us_array_fourier_rows(const ArrayFourier *work, int64_t begin, int64_t end);
void us_array_fourier_butterflies(const ArrayFourier *work, int64_t row, int stage, int64_t begin, int64_t end);

#endif
