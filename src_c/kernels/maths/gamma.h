/* The logarithm of the gamma function and its derivative. Arguments below 8 are moved up by 8: what that adds is the
 * logarithm of x (x + 1) … (x + 7). Floats compute in double. */

/* ln |gamma x|. At most 4 ULP for x > 0; below 0 at most 2^-50 of the greatest term, which cancels near the roots. */
US_ALWAYS_INLINE double lgamma_double(double x)
{
    const double size = fabs_double(x);
    const bool is_small = size < 8;
    TwofoldDouble product = {size, 0};
#pragma GCC unroll 7
    for (int k = 1; k < 8; k++) {
        product = twofold_product_double(product, two_sum_double(size, k));
    }
    product.high = is_small ? product.high : 1;
    product.low = is_small ? product.low : 0;
    TwofoldDouble of_product = log_twofold_double(product.high);
    of_product.low += product.low / product.high;

    /* Stirling's series at y >= 8: (y - 1/2) ln y - y + ln(2 pi) / 2 + P(1 / y^2) / y */
    const TwofoldDouble moved = two_sum_double(size, is_small ? 8 : 0);
    const double y = moved.high, inverse = 1 / y;
    const double series = polynomial_double(
        inverse * inverse, 8, (const double[]){0x1.5555555555555p-4, -0x1.6c16c16c16b32p-9, 0x1.a01a019ee9ce3p-11,
                                               -0x1.38137ecdcb07p-11, 0x1.b94f76e6536b7p-11, -0x1.f600ec7a2e31dp-10,
                                               0x1.96ef68aea92e5p-8, -0x1.560f99898418fp-6});
    const TwofoldDouble of_y = log_twofold_double(y);
    const double factor = y - 0.5;
    TwofoldDouble sum = two_product_double(factor, of_y.high);
    sum.low += fma_double(factor, of_y.low, fma_double(moved.low, of_y.high, series * inverse));
    sum = twofold_sum_double(sum, (TwofoldDouble){-y, 0});
    sum = twofold_sum_double(sum, (TwofoldDouble){0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55});
    sum = twofold_sum_double(sum, (TwofoldDouble){-of_product.high, -of_product.low});
    double positive = sum.high + sum.low;
    positive = size > 0x1p1000 ? size * (of_y.high - 1) : positive;
    positive = size == 0 ? INFINITY : positive;
    positive = (size == 1) | (size == 2) ? 0 : positive;

    /* gamma(-x) gamma(x) = -pi / (x sin(pi x)) */
    const double sine = fabs_double(sin_pi_double(size));
    const double reflected = 0x1.250d048e7a1bdp+0 - log_double(size * sine) - positive;
    const double result = (x < 0) & (size > 0x1p-60) ? reflected : positive;
    return x != x ? x : size < INFINITY ? (sine == 0) & (x < 0) ? INFINITY : result : INFINITY;
}

/* The derivative of ln gamma x: ln y - 1 / (2y) - P(1 / y^2) / y^2 less the sum of 1 / (x + k). NaN at negative
 * integers, infinite at 0. At most 2^-50 of the greatest term. */
US_ALWAYS_INLINE double digamma_double(double x)
{
    /* digamma(x) = digamma(1 - x) - pi / tan(pi x) */
    const bool is_negative = x < 0;
    const double size = is_negative ? 1 - x : x;
    double product = size, slope = 1;
#pragma GCC unroll 7
    for (int k = 1; k < 8; k++) {
        const double next = size + k;
        slope = fma_double(slope, next, product);
        product *= next;
    }
    const bool is_small = size < 8;
    const double y = is_small ? size + 8 : size, inverse = 1 / y, square = inverse * inverse;
    const double series = polynomial_double(
        square, 8, (const double[]){0x1.5555555555555p-4, -0x1.1111111110d77p-7, 0x1.04104101a9b1cp-8,
                                    -0x1.11110c2dc0e78p-8, 0x1.f07735cb61135p-8, -0x1.58e87bf76c109p-6,
                                    0x1.47dd0bc087ce8p-4, -0x1.3302f971cbf6ap-2});
    const double large = log_double(y) - fma_double(square, series, 0.5 * inverse);
    const double positive = large - (is_small ? slope / product : 0);
    const Angle angle = angle_of_half_turns(x);
    const double reflected = positive - 0x1.921fb54442d18p+1 / tan_of_angle(angle);
    const bool is_pole = is_negative & (rint_double(x) == x);
    const double result = is_pole ? NAN : is_negative ? reflected : positive;
    return x == 0 ? -copysign_double(INFINITY, x) : x == -INFINITY ? NAN : result;
}

/* The same without sums of two. At most 3 ULP for x > 0; below 0 at most 2^-22 of the greatest term. */
US_ALWAYS_INLINE float lgamma_float(float x)
{
    const double wide = (double)x, size = fabs_double(wide);
    const bool is_small = size < 8;
    double product = size;
#pragma GCC unroll 7
    for (int k = 1; k < 8; k++) {
        product *= size + k;
    }
    const double y = is_small ? size + 8 : size, inverse = 1 / y, square = inverse * inverse;
    const double series = fma_double(fma_double(0x1.a01a019ee9ce3p-11, square, -0x1.6c16c16c16b32p-9), square,
                                     0x1.5555555555555p-4);
    const double stirling = fma_double(y - 0.5, log_double(y), fma_double(series, inverse, 0x1.d67f1c864beb5p-1 - y));
    /* Below 0 as in lgamma_double, with one logarithm for both. */
    const double moved = is_small ? product : 1, sine = fabs_double(sin_pi_double(size));
    const bool is_reflected = (wide < 0) & (size > 0x1p-60);
    const double logarithm = log_double(is_reflected ? moved / (size * sine) : moved);
    double result = is_reflected ? 0x1.250d048e7a1bdp+0 - stirling + logarithm : stirling - logarithm;
    result = (size == 1) | (size == 2) ? (wide > 0 ? 0 : INFINITY) : result;
    return x != x ? x : size < INFINITY ? (sine == 0) & (wide < 0) ? INFINITY : (float)result : INFINITY;
}

US_ALWAYS_INLINE float digamma_float(float x) { return (float)digamma_double((double)x); }
