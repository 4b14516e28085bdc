/* Complex operators of the FT DSP library: complex64 and complex128, real and imaginary part in turn. complex64 is
 * computed in float64 and rounded once, except in the Fourier transform. */
#ifndef UNDERSTUDY_FT_COMPLEX_H
#define UNDERSTUDY_FT_COMPLEX_H

#include "kernels/ft_arrays.h"

static inline bool us_ft_is_complex(DType dtype)
{
    return dtype == DTYPE_COMPLEX64 || dtype == DTYPE_COMPLEX128;
}

/* out = x / y, elements begin … end-1; out may be x or y. An operand whose step is 0 is one number for all. */
typedef struct FtComplexQuotient {
    const void *x, *y;
    int64_t x_step, y_step; /* 0 or 1 */
    void *out;
    DType dtype;
} FtComplexQuotient;
void us_ft_complex_quotient(const FtComplexQuotient *work, int64_t begin, int64_t end);

/* out = out_scale * e^(in_scale * x); out may be x. */
typedef struct FtComplexExponential {
    const void *x;
    void *out;
    DType dtype;
    double in_scale, out_scale;
} FtComplexExponential;
void us_ft_complex_exponential(const FtComplexExponential *work, int64_t begin, int64_t end);

#endif
