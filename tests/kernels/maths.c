/* The functions of kernels/maths over arrays, and their errors against the C library's long double functions (64 bits
 * of precision on x86, 113 elsewhere), for test_maths.py. */
#include "kernels/maths/maths.h"

#include <complex.h>

typedef long double Wide;

/* The distance in units of the last place of the nearest value; 0 where both are the same infinity or NaN. */
#define DEFINE_ULPS(type, largest, smallest_exponent, digits)                                                          \
    static double ulps_##type(type actual, Wide exact)                                                                 \
    {                                                                                                                  \
        const type nearest = (type)exact;                                                                              \
        if (isnan(actual) || isnan(nearest)) {                                                                         \
            return isnan(actual) && isnan(nearest) ? 0 : INFINITY;                                                     \
        }                                                                                                              \
        if (isinf(actual) && isinf(nearest)) {                                                                         \
            return actual == nearest ? 0 : INFINITY;                                                                   \
        }                                                                                                              \
        if (nearest == 0 && actual == 0 && exact == 0 && signbit(nearest) != signbit(actual)) {                        \
            return INFINITY;                                                                                           \
        }                                                                                                              \
        int exponent = 0;                                                                                              \
        frexpl(fabsl(exact) > largest ? (Wide)largest : exact, &exponent);                                             \
        exponent = exponent < smallest_exponent ? smallest_exponent : exponent;                                        \
        const Wide value = isinf(actual) ? copysignl(ldexpl(1, -smallest_exponent + 3), actual) : (Wide)actual;        \
        return (double)ldexpl(fabsl(value - exact), digits - exponent);                                                \
    }
DEFINE_ULPS(float, 3.402823466e38f, -125, 24)
DEFINE_ULPS(double, 1.7976931348623157e308, -1021, 53)

#define VALUES(name, type, arguments)                                                                                  \
    void name##_##type##_values(const type *x, const type *y, type *out, long count)                                   \
    {                                                                                                                  \
        (void)y;                                                                                                       \
        for (long i = 0; i < count; i++) {                                                                             \
            out[i] = name##_##type arguments;                                                                          \
        }                                                                                                              \
    }
#ifdef VALUES_ONLY
#define ERRORS(name, type, arguments, wide_arguments, reference)
#else
#define ERRORS(name, type, arguments, wide_arguments, reference)                                                       \
    void name##_##type##_errors(const type *x, const type *y, double *out, long count)                                 \
    {                                                                                                                  \
        (void)y;                                                                                                       \
        for (long i = 0; i < count; i++) {                                                                             \
            out[i] = ulps_##type(name##_##type arguments, reference wide_arguments);                                   \
        }                                                                                                              \
    }
#endif
#define OF_TYPE(name, type, arguments, wide_arguments, reference)                                                      \
    VALUES(name, type, arguments) ERRORS(name, type, arguments, wide_arguments, reference)
#define OF_ONE(name, reference)                                                                                        \
    OF_TYPE(name, float, (x[i]), ((Wide)x[i]), reference)                                                              \
    OF_TYPE(name, double, (x[i]), ((Wide)x[i]), reference)
#define OF_TWO(name, reference)                                                                                        \
    OF_TYPE(name, float, (x[i], y[i]), ((Wide)x[i], (Wide)y[i]), reference)                                            \
    OF_TYPE(name, double, (x[i], y[i]), ((Wide)x[i], (Wide)y[i]), reference)

static const Wide pi = 3.14159265358979323846264338327950288L;
static const Wide half_root = 0.70710678118654752440084436210484903928L;

/* sin(pi x), cos(pi x): reduced exactly first. */
static Wide reference_sin_pi(Wide x)
{
    const Wide n = rintl(2 * x), r = x - n / 2;
    const Wide quadrant = n - 4 * floorl(n / 4);
    const Wide value = quadrant == 0 || quadrant == 2 ? sinl(r * pi) : cosl(r * pi);
    return x == 0 ? x : quadrant >= 2 ? -value : value;
}

static Wide reference_cos_pi(Wide x)
{
    const Wide n = rintl(2 * x), r = x - n / 2;
    const Wide quadrant = n - 4 * floorl(n / 4);
    const Wide value = quadrant == 0 || quadrant == 2 ? cosl(r * pi) : sinl(r * pi);
    return quadrant == 1 || quadrant == 2 ? -value : value;
}

static Wide reference_sinc(Wide x)
{
    return x == 0 ? 1 : isinf(x) ? NAN : reference_sin_pi(x) / (pi * x);
}

/* x / sqrt 2 = a + rest, and erfc(a + rest) by its derivative. */
static Wide reference_normal_cdf(Wide x)
{
    const Wide a = -x * half_root, rest = isinf(a) ? 0 : fmal(-x, half_root, -a);
    return erfcl(a) / 2 - rest * expl(-a * a) / sqrtl(pi);
}

static Wide reference_erfinv(Wide x)
{
    const Wide size = fabsl(x);
    if (!(size < 1) || x == 0) {
        return x == 0 ? x : size == 1 ? copysignl(INFINITY, x) : NAN;
    }
    Wide y = size < 0.5L ? size : sqrtl(-logl(1 - size));
    for (int k = 0; k < 60; k++) {
        const Wide excess = size < 0.5L ? erfl(y) - size : (1 - size) - erfcl(y);
        const Wide newton = excess * sqrtl(pi) / 2 * expl(y * y);
        const Wide step = newton / (1 + y * newton);
        y -= step;
        if (fabsl(step) < 1e-19L * y) {
            break;
        }
    }
    return copysignl(y, x);
}

static Wide reference_lgamma(Wide x)
{
    int sign;
    return lgammal_r(x, &sign);
}

static Wide reference_digamma(Wide x)
{
    if (x == 0 || isnan(x) || isinf(x)) {
        return x == 0 ? -copysignl(INFINITY, x) : x > 0 ? x : NAN;
    }
    if (x < 0) {
        return x == floorl(x) ? NAN : reference_digamma(1 - x) - pi * reference_cos_pi(x) / reference_sin_pi(x);
    }
    Wide sum = 0;
    for (; x < 40; x++) {
        sum -= 1 / x;
    }
    const Wide w = 1 / (x * x);
    const Wide end = 1 / 252.L - w * (1 / 240.L - w * (1 / 132.L - w * 691 / 32760.L));
    const Wide series = w * (1 / 12.L - w * (1 / 120.L - w * end));
    return sum + logl(x) - 1 / (2 * x) - series;
}

static Wide reference_bessel_i0(Wide x)
{
    const Wide z = x * x / 4;
    Wide sum = 1, term = 1;
    if (isinf(x)) {
        return fabsl(x);
    }
    for (int k = 1; k < 2000 && term > sum * 1e-22L; k++) {
        term *= z / ((Wide)k * k);
        sum += term;
    }
    return sum;
}

static Wide reference_sigmoid(Wide x) { return 1 / (1 + expl(-x)); }
static Wide reference_log_sigmoid(Wide x) { return x < 0 ? x - log1pl(expl(x)) : -log1pl(expl(-x)); }
static Wide reference_softplus(Wide x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }
static Wide reference_silu(Wide x) { return x * reference_sigmoid(x); }
static Wide reference_gelu(Wide x) { return x * reference_normal_cdf(x); }
static Wide reference_mish_gate(Wide x) { return tanhl(reference_softplus(x)); }
static Wide reference_mish(Wide x) { return x * reference_mish_gate(x); }
static Wide reference_gelu_exponent(Wide x) { return sqrtl(8 / pi) * (x + 0.044715L * x * x * x); }
static Wide reference_gelu_tanh(Wide x) { return x * reference_sigmoid(reference_gelu_exponent(x)); }

static Wide reference_silu_slope(Wide x)
{
    const Wide s = reference_sigmoid(x);
    return isinf(x) ? x > 0 : s * (1 + x * reference_sigmoid(-x));
}

static Wide reference_gelu_slope(Wide x)
{
    return isinf(x) ? x > 0 : reference_normal_cdf(x) + x * expl(-x * x / 2) / sqrtl(2 * pi);
}

static Wide reference_gelu_tanh_slope(Wide x)
{
    const Wide e = reference_gelu_exponent(x), s = reference_sigmoid(e);
    const Wide slope = sqrtl(8 / pi) * (1 + 3 * 0.044715L * x * x);
    return fabsl(x) > 100 ? x > 0 : s * (1 + x * slope * reference_sigmoid(-e));
}

static Wide reference_mish_slope(Wide x)
{
    const Wide gate = reference_mish_gate(x), c = coshl(reference_softplus(x));
    return fabsl(x) > 5000 ? x > 0 : gate + x * reference_sigmoid(x) / (c * c);
}

static Wide reference_floor_mod(Wide x, Wide y)
{
    const Wide rest = fmodl(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

static Wide reference_rsqrt(Wide x) { return 1 / sqrtl(x); }

OF_ONE(exp, expl)
OF_ONE(exp2, exp2l)
OF_ONE(expm1, expm1l)
OF_ONE(log, logl)
OF_ONE(log2, log2l)
OF_ONE(log10, log10l)
OF_ONE(log1p, log1pl)
OF_ONE(log1p_of_fraction, log1pl)
OF_ONE(rsqrt, reference_rsqrt)
OF_TWO(pow, powl)
OF_ONE(sin, sinl)
OF_ONE(cos, cosl)
OF_ONE(tan, tanl)
OF_ONE(sin_pi, reference_sin_pi)
OF_ONE(cos_pi, reference_cos_pi)
OF_ONE(sinc, reference_sinc)
OF_ONE(asin, asinl)
OF_ONE(acos, acosl)
OF_ONE(atan, atanl)
OF_TWO(atan2, atan2l)
OF_ONE(sinh, sinhl)
OF_ONE(cosh, coshl)
OF_ONE(tanh, tanhl)
OF_ONE(asinh, asinhl)
OF_ONE(acosh, acoshl)
OF_ONE(atanh, atanhl)
OF_ONE(erf, erfl)
OF_ONE(erfc, erfcl)
OF_ONE(erfinv, reference_erfinv)
OF_ONE(normal_cdf, reference_normal_cdf)
OF_ONE(lgamma, reference_lgamma)
OF_ONE(digamma, reference_digamma)
OF_ONE(bessel_i0, reference_bessel_i0)
OF_TWO(fmod, fmodl)
OF_TWO(floor_mod, reference_floor_mod)
OF_ONE(sigmoid, reference_sigmoid)
OF_ONE(log_sigmoid, reference_log_sigmoid)
OF_ONE(softplus, reference_softplus)
OF_ONE(silu, reference_silu)
OF_ONE(silu_slope, reference_silu_slope)
OF_ONE(gelu, reference_gelu)
OF_ONE(gelu_slope, reference_gelu_slope)
OF_ONE(gelu_tanh, reference_gelu_tanh)
OF_ONE(gelu_tanh_slope, reference_gelu_tanh_slope)
OF_ONE(mish, reference_mish)
OF_ONE(mish_slope, reference_mish_slope)

/* ---- complex: errors of both parts in units of the last place of the absolute value ---- */

static double complex_ulps(Wide re, Wide im, long double _Complex exact, int digits, Wide smallest)
{
    Wide size = cabsl(exact);
    if (!(size < 1.0e4000L) || re - re != 0 || im - im != 0) {
        /* With an infinite part the other may be anything; otherwise the same part is NaN. */
        const bool is_infinite = isinf(re) || isinf(im);
        if (is_infinite || isinf(creall(exact)) || isinf(cimagl(exact))) {
            return is_infinite && (isinf(creall(exact)) || isinf(cimagl(exact))) ? 0 : INFINITY;
        }
        return (isnan(re) || isnan(im)) == (isnan(creall(exact)) || isnan(cimagl(exact))) ? 0 : INFINITY;
    }
    size = size < smallest ? smallest : size;
    int exponent;
    frexpl(size, &exponent);
    return (double)ldexpl(fmaxl(fabsl(re - creall(exact)), fabsl(im - cimagl(exact))), digits - exponent);
}

static long double _Complex reference_complex_log1p(long double _Complex z)
{
    const Wide x = creall(z), y = cimagl(z);
    const long double _Complex far = clogl(1 + z);
    const Wide re = fabsl(x) < 0.5L && fabsl(y) < 0.5L ? log1pl(x * (2 + x) + y * y) / 2 : creall(far);
    return __builtin_complex(re, cimagl(far));
}

#define COMPLEX_VALUES(name, type, result)                                                                             \
    void complex_##name##_##type##_values(const _Complex type *x, const _Complex type *y, _Complex type *out,          \
                                          long count)                                                                  \
    {                                                                                                                  \
        (void)y;                                                                                                       \
        for (long i = 0; i < count; i++) {                                                                             \
            out[i] = complex_##name##_##type result;                                                                   \
        }                                                                                                              \
    }
#ifdef VALUES_ONLY
#define COMPLEX_ERRORS(name, type, digits, smallest, largest, result, exact)
#else
#define COMPLEX_ERRORS(name, type, digits, smallest, largest, result, exact)                                           \
    void complex_##name##_##type##_errors(const _Complex type *x, const _Complex type *y, double *out, long count)     \
    {                                                                                                                  \
        (void)y;                                                                                                       \
        for (long i = 0; i < count; i++) {                                                                             \
            const long double _Complex z = x[i], w = y[i];                                                             \
            (void)w;                                                                                                   \
            const _Complex type ours = complex_##name##_##type result;                                                 \
            long double _Complex reference = exact;                                                                    \
            if (fabsl(creall(reference)) > largest || fabsl(cimagl(reference)) > largest) {                            \
                reference = (_Complex type)reference;                                                                  \
            }                                                                                                          \
            out[i] = complex_ulps(__real__ ours, __imag__ ours, reference, digits, smallest);                          \
        }                                                                                                              \
    }
#endif
#define COMPLEX(name, type, digits, smallest, largest, result, exact)                                                  \
    COMPLEX_VALUES(name, type, result) COMPLEX_ERRORS(name, type, digits, smallest, largest, result, exact)
#define COMPLEX_OF(name, result, exact)                                                                                \
    COMPLEX(name, float, 24, 0x1p-126L, 3.402823466e38L, result, exact)                                                \
    COMPLEX(name, double, 53, 0x1p-1022L, 1.7976931348623157e308L, result, exact)
#define COMPLEX_OF_ONE(name, exact) COMPLEX_OF(name, (x[i]), exact)

COMPLEX_OF(mul, (x[i], y[i]), z * w)
COMPLEX_OF(div, (x[i], y[i]), z / w)
COMPLEX_OF(pow, (x[i], y[i]), cexpl(w * clogl(z)))
COMPLEX_OF_ONE(abs, cabsl(z))
COMPLEX_OF_ONE(sqrt, csqrtl(z))
COMPLEX_OF_ONE(exp, cexpl(z))
COMPLEX_OF_ONE(log, clogl(z))
COMPLEX_OF_ONE(log2, clogl(z) * 1.442695040888963407359924681001892137L)
COMPLEX_OF_ONE(log10, clogl(z) * 0.4342944819032518276511289189166050823L)
COMPLEX_OF_ONE(log1p, reference_complex_log1p(z))
COMPLEX_OF_ONE(sin, csinl(z))
COMPLEX_OF_ONE(cos, ccosl(z))
COMPLEX_OF_ONE(tan, ctanl(z))
COMPLEX_OF_ONE(asin, casinl(z))
COMPLEX_OF_ONE(acos, cacosl(z))
COMPLEX_OF_ONE(atan, catanl(z))
COMPLEX_OF_ONE(sinh, csinhl(z))
COMPLEX_OF_ONE(cosh, ccoshl(z))
COMPLEX_OF_ONE(tanh, ctanhl(z))
COMPLEX_OF_ONE(asinh, casinhl(z))
COMPLEX_OF_ONE(acosh, cacoshl(z))
COMPLEX_OF_ONE(atanh, catanhl(z))

int has_level(int level)
{
#if defined(__x86_64__)
    return level == 3 ? __builtin_cpu_supports("x86-64-v3") : __builtin_cpu_supports("x86-64-v4");
#else
    (void)level;
    return 0;
#endif
}
