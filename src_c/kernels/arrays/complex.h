/* Complex operators on arrays: complex64 and complex128, real and imaginary part in turn. complex64 is
 * computed in float64 and rounded once, except in the Fourier transform. */
#ifndef UNDERSTUDY_ARRAYS_COMPLEX_H
#define UNDERSTUDY_ARRAYS_COMPLEX_H

#include "kernels/arrays/arrays.h"

static inline bool us_array_is_complex(DType dtype)
{
    return dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128;
}

/* out = x / y, elements begin … end-1; out may be x or y. An operand whose step is 0 is one number for all. */
typedef struct ArrayComplexQuotient {
    const void *x, *y;
    int64_t x_step, y_step; /* 0 or 1 */
    void *out;
    DType dtype;
} ArrayComplexQuotient;
void us_array_complex_quotient(const ArrayComplexQuotient *work, int64_t begin, int64_t end);

/* out = out_scale * e^(in_scale * x); out may be x. */
typedef struct ArrayComplexExponential {
    const void *x;
    void *out;
    DType dtype;
    double in_scale, out_scale;
} ArrayComplexExponential;
void us_array_complex_exponential(const ArrayComplexExponential *work, int64_t begin, int64_t end);

#endif
