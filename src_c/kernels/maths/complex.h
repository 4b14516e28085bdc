/* Functions of complex numbers, of C's complex types, without a call of C's functions. No result overflows or vanishes
 * that is representable. Those of float complex compute in double complex and round once. Errors are per part, except
 * where sums cancel: there they are relative to the absolute value. Infinite arguments give what C11 annex G lists. */

typedef _Complex double ComplexDouble;
typedef _Complex float ComplexFloat;

US_ALWAYS_INLINE ComplexDouble complex_of(double re, double im)
{
    return __builtin_complex(re, im);
}

/* a b + c d, at most 1.5 ULP also where the products cancel */
US_ALWAYS_INLINE double sum_of_products(double a, double b, double c, double d)
{
    const double product = c * d, sum = fma_double(a, b, product) + fma_double(c, d, -product);
    return sum - sum == 0 ? sum : a * b + product; /* an infinite product has no error */
}

US_ALWAYS_INLINE double larger_part(ComplexDouble z)
{
    const double x = fabs_double(__real__ z), y = fabs_double(__imag__ z);
    return x > y ? x : y;
}

/* A power of two that brings a number near 1 where its square would overflow or lose bits; 1 elsewhere. */
US_ALWAYS_INLINE double taming_power(double size)
{
    const double of_small = size < 0x1p-450 ? 0x1p600 : 1;
    return size > 0x1p500 ? 0x1p-600 : of_small;
}

/* |z / 2^k|: 2^-k is `power`. */
US_ALWAYS_INLINE double scaled_abs(ComplexDouble z, double power)
{
    const double x = __real__ z * power, y = __imag__ z * power;
    return sqrt_double(fma_double(x, x, y * y));
}

/* At most 1.5 ULP. */
US_ALWAYS_INLINE double complex_abs_double(ComplexDouble z)
{
    const double power = taming_power(larger_part(z));
    const bool is_infinite = (fabs_double(__real__ z) == INFINITY) | (fabs_double(__imag__ z) == INFINITY);
    return is_infinite ? INFINITY : scaled_abs(z, power) / power;
}

US_ALWAYS_INLINE ComplexDouble complex_mul_double(ComplexDouble a, ComplexDouble b)
{
    return complex_of(sum_of_products(__real__ a, __real__ b, -__imag__ a, __imag__ b),
                      sum_of_products(__real__ a, __imag__ b, __imag__ a, __real__ b));
}

/* The exponent field of a number, so that its power of two and the inverse are normal. */
US_ALWAYS_INLINE uint64_t tame_exponent(double size)
{
    const uint64_t exponent = double_bits(size) >> 52;
    return exponent < 1 ? 1 : exponent > 2045 ? 2045 : exponent;
}

/* 1 with the sign of x for an infinity, 0 with it for other numbers. */
US_ALWAYS_INLINE double infinite_direction(double x)
{
    return copysign_double(fabs_double(x) == INFINITY ? 1 : 0, x);
}

/* At most 4 ULP. Quotients by 0 and of or by infinities as in C11 annex G.5.1. */
US_ALWAYS_INLINE ComplexDouble complex_div_double(ComplexDouble z, ComplexDouble w)
{
    const uint64_t up = tame_exponent(larger_part(z)), down = tame_exponent(larger_part(w));
    const double z_power = bits_double((2046 - up) << 52), w_power = bits_double((2046 - down) << 52);
    const double a = __real__ z * z_power, b = __imag__ z * z_power;
    const double c = __real__ w * w_power, d = __imag__ w * w_power;
    const double size = fma_double(c, c, d * d);
    const uint64_t exponent = up + 2046 - down, half = exponent >> 1;
    const double first = bits_double(half << 52), second = bits_double((exponent - half) << 52);
    double re = sum_of_products(a, c, b, d) / size * first * second;
    double im = sum_of_products(b, c, -a, d) / size * first * second;

    const double p = infinite_direction(__real__ z), q = infinite_direction(__imag__ z);
    const double r = infinite_direction(__real__ w), s = infinite_direction(__imag__ w);
    const bool z_infinite = (p != 0) | (q != 0), w_infinite = (r != 0) | (s != 0);
    const bool z_finite = (__real__ z - __real__ z == 0) & (__imag__ z - __imag__ z == 0);
    const bool w_finite = (__real__ w - __real__ w == 0) & (__imag__ w - __imag__ w == 0);
    const bool by_zero = (__real__ w == 0) & (__imag__ w == 0);
    const double endless = copysign_double(INFINITY, __real__ w);
    re = by_zero ? endless * __real__ z : re;
    im = by_zero ? endless * __imag__ z : im;
    const bool large = z_infinite & w_finite & !by_zero, small = z_finite & w_infinite;
    re = large ? (double)INFINITY * (p * __real__ w + q * __imag__ w) : re;
    im = large ? (double)INFINITY * (q * __real__ w - p * __imag__ w) : im;
    re = small ? 0 * (__real__ z * r + __imag__ z * s) : re;
    im = small ? 0 * (__imag__ z * r - __real__ z * s) : im;
    return complex_of(re, im);
}

/* e^x = power * 2^n, so that a product with e^x overflows only where its value does (exp_scale_double). */
typedef struct ScaledPower {
    double power;
    uint64_t n;
} ScaledPower;

US_ALWAYS_INLINE ScaledPower scaled_power(double x)
{
    x = x > 800 ? 800 : x;
    x = x < -800 ? -800 : x;
    double r;
    const uint64_t n = exp_reduce_double(x, &r);
    return (ScaledPower){1 + exp_polynomial_double(r), n};
}

/* At most 3 ULP. */
US_ALWAYS_INLINE ComplexDouble complex_exp_double(ComplexDouble z)
{
    const double x = __real__ z, y = __imag__ z;
    const ScaledPower e = scaled_power(x);
    const double re = exp_scale_double(cos_double(y) * e.power, e.n);
    const double im = exp_scale_double(sin_double(y) * e.power, e.n);
    /* The direction of an infinite y is unknown. */
    const bool is_limit = (fabs_double(x) == INFINITY) & (y - y != 0);
    const double limit = x > 0 ? INFINITY : 0;
    return complex_of(is_limit ? limit : re, y == 0 ? y : is_limit & (x < 0) ? 0 : im);
}

/* ln |z|: near |z| = 1 from |z|^2 - 1, which is summed in twice the precision. */
US_ALWAYS_INLINE double log_of_abs(ComplexDouble z)
{
    const double power = taming_power(larger_part(z));
    const double shift = power == 1 ? 0 : power < 1 ? 600 : -600;
    const double far = log_double(scaled_abs(z, power)) + shift * 0x1.62e42fefa39efp-1;
    const double x = __real__ z, y = __imag__ z;
    const TwofoldDouble x2 = two_product_double(x, x), y2 = two_product_double(y, y);
    const bool is_wide = x2.high > y2.high;
    const TwofoldDouble most = two_sum_double(is_wide ? x2.high : y2.high, -1);
    const TwofoldDouble sum = two_sum_double(most.high, is_wide ? y2.high : x2.high);
    const double excess = sum.high + (sum.low + most.low + (x2.low + y2.low));
    const double result = (excess > -0.75) & (excess < 2) & (power == 1) ? 0.5 * log1p_double(excess) : far;
    const bool is_infinite = (fabs_double(x) == INFINITY) | (fabs_double(y) == INFINITY);
    return is_infinite ? INFINITY : result;
}

/* At most 4 ULP. */
US_ALWAYS_INLINE ComplexDouble complex_log_double(ComplexDouble z)
{
    return complex_of(log_of_abs(z), atan2_double(__imag__ z, __real__ z));
}

US_ALWAYS_INLINE ComplexDouble complex_log2_double(ComplexDouble z)
{
    const ComplexDouble l = complex_log_double(z);
    return complex_of(__real__ l * 0x1.71547652b82fep+0, __imag__ l * 0x1.71547652b82fep+0);
}

US_ALWAYS_INLINE ComplexDouble complex_log10_double(ComplexDouble z)
{
    const ComplexDouble l = complex_log_double(z);
    return complex_of(__real__ l * 0x1.bcb7b1526e50ep-2, __imag__ l * 0x1.bcb7b1526e50ep-2);
}

/* ln(1 + z): |1 + z|^2 - 1 = x (2 + x) + y^2 for small z */
US_ALWAYS_INLINE ComplexDouble complex_log1p_double(ComplexDouble z)
{
    const double x = __real__ z, y = __imag__ z;
    const double excess = sum_of_products(x, x + 2, y, y);
    const bool is_small = (fabs_double(x) < 0.5) & (fabs_double(y) < 0.5);
    const double far = log_of_abs(complex_of(1 + x, y));
    return complex_of(is_small ? 0.5 * log1p_double(excess) : far, atan2_double(y, 1 + x));
}

/* At most 3 ULP. */
US_ALWAYS_INLINE ComplexDouble complex_sqrt_double(ComplexDouble z)
{
    const double size = larger_part(z);
    const double of_small = size < 0x1p-900 ? 0x1p200 : 1, power = size > 0x1p1000 ? 0x1p-200 : of_small;
    const double root_of_small = size < 0x1p-900 ? 0x1p-100 : 1, root = size > 0x1p1000 ? 0x1p100 : root_of_small;
    const double x = __real__ z * power, y = __imag__ z * power;
    const double t = sqrt_double(0.5 * (fabs_double(x) + complex_abs_double(complex_of(x, y))));
    const double other = t == 0 ? 0 : fabs_double(y) / (2 * t);
    double re = (x < 0 ? other : t) * root, im = (x < 0 ? t : other) * root;
    im = y != y ? y : im;
    const bool on_axis = fabs_double(__real__ z) == INFINITY;
    re = on_axis ? (__real__ z > 0 ? INFINITY : y == y ? 0 : y) : re;
    im = on_axis ? (__real__ z < 0 ? INFINITY : y == y ? 0 : y) : im;
    const bool endless = fabs_double(__imag__ z) == INFINITY;
    return complex_of(endless ? INFINITY : re, copysign_double(endless ? INFINITY : im, __imag__ z));
}

/* e^(w ln z). At most (3 + |w ln z|) ULP of the absolute value. 0^w is 0 where w has a positive real part, 1 where w is
 * 0, and NaN otherwise. */
US_ALWAYS_INLINE ComplexDouble complex_pow_double(ComplexDouble z, ComplexDouble w)
{
    const ComplexDouble l = complex_log_double(z);
    const double re = sum_of_products(__real__ w, __real__ l, -__imag__ w, __imag__ l);
    const double im = sum_of_products(__real__ w, __imag__ l, __imag__ w, __real__ l);
    const ComplexDouble power = complex_exp_double(complex_of(re, im));
    const bool of_zero = (__real__ z == 0) & (__imag__ z == 0), to_zero = (__real__ w == 0) & (__imag__ w == 0);
    const double at_zero = __real__ w > 0 ? 0 : NAN;
    const double result_re = of_zero ? at_zero : __real__ power, result_im = of_zero ? at_zero : __imag__ power;
    return complex_of(to_zero ? 1 : result_re, to_zero ? 0 : result_im);
}

/* a sinh x and b cosh x */
US_ALWAYS_INLINE ComplexDouble times_sinh_cosh(double x, double a, double b)
{
    const double size = fabs_double(x), bounded = size > 22 ? 22 : size;
    const ScaledPower e = scaled_power(size);
    const double large_a = exp_scale_double(copysign_double(e.power, x) * a, e.n - 1);
    const double large_b = exp_scale_double(b * e.power, e.n - 1);
    const double sinh = copysign_double(sinh_double(bounded), x), cosh = cosh_double(bounded);
    const double re = size > 22 ? large_a : a * sinh, im = size > 22 ? large_b : b * cosh;
    /* At infinity 0 stays 0, and of unknown directions one part is infinite. */
    const double first = (a != a) & (size == INFINITY) ? INFINITY : re;
    return complex_of((a == 0) & (x == x) ? a * sinh : first, (b == 0) & (x == x) ? b * cosh : im);
}

/* At most 5 ULP, as cosh, sin and cos. */
US_ALWAYS_INLINE ComplexDouble complex_sinh_double(ComplexDouble z)
{
    const double x = __real__ z, y = __imag__ z;
    const ComplexDouble parts = times_sinh_cosh(x, cos_double(y), sin_double(y));
    return complex_of(x == 0 ? x : __real__ parts, y == 0 ? y : __imag__ parts);
}

US_ALWAYS_INLINE ComplexDouble complex_cosh_double(ComplexDouble z)
{
    const double x = __real__ z, y = __imag__ z;
    const ComplexDouble parts = times_sinh_cosh(x, sin_double(y), cos_double(y));
    const double zero = copysign_double(0, x) * copysign_double(1, y);
    return complex_of(__imag__ parts, (x == 0) | (y == 0) ? zero : __real__ parts);
}

/* sin z = -i sinh(i z), cos z = cosh(i z) */
US_ALWAYS_INLINE ComplexDouble complex_sin_double(ComplexDouble z)
{
    const ComplexDouble w = complex_sinh_double(complex_of(-__imag__ z, __real__ z));
    return complex_of(__imag__ w, -__real__ w);
}

US_ALWAYS_INLINE ComplexDouble complex_cos_double(ComplexDouble z)
{
    return complex_cosh_double(complex_of(-__imag__ z, __real__ z));
}

/* With t = tan y, s = sinh x: (s cosh x (1 + t^2) + i t) / (1 + (1 + t^2) s^2). At most 8 ULP. */
US_ALWAYS_INLINE ComplexDouble complex_tanh_double(ComplexDouble z)
{
    const double x = __real__ z, y = __imag__ z, size = fabs_double(x), bounded = size > 22 ? 22 : size;
    const double t = tan_double(y), slope = fma_double(t, t, 1), s = copysign_double(sinh_double(bounded), x);
    const double divisor = fma_double(slope * s, s, 1);
    const double re = slope * s * cosh_double(bounded) / divisor, im = t / divisor;
    /* sin(2y) as 2 t / (1 + t^2) */
    const double far = 4 * (t / slope) * exp_double(-2 * size);
    const double axis = copysign_double(0, y);
    const bool is_far = size > 22;
    return complex_of(x == 0 ? x : is_far ? copysign_double(1, x) : re,
                      y == 0 ? y : is_far ? (size == INFINITY) & (y - y != 0) ? axis : far : im);
}

US_ALWAYS_INLINE ComplexDouble complex_tan_double(ComplexDouble z)
{
    const ComplexDouble w = complex_tanh_double(complex_of(-__imag__ z, __real__ z));
    return complex_of(__imag__ w, -__real__ w);
}

/* ---- inverse functions, by Kahan's formulas, in which no sum cancels. At most 8 ULP. ---- */

US_ALWAYS_INLINE bool has_infinity(ComplexDouble z)
{
    return (fabs_double(__real__ z) == INFINITY) | (fabs_double(__imag__ z) == INFINITY);
}

US_ALWAYS_INLINE ComplexDouble complex_asin_double(ComplexDouble z)
{
    const double x = __real__ z, y = __imag__ z;
    const ComplexDouble minus = complex_sqrt_double(complex_of(1 - x, -y));
    const ComplexDouble plus = complex_sqrt_double(complex_of(1 + x, y));
    const double re = __real__ minus * __real__ plus - __imag__ minus * __imag__ plus;
    const double im = __real__ minus * __imag__ plus - __imag__ minus * __real__ plus;
    const bool endless = has_infinity(z);
    const double angle = atan2_double(x, endless ? fabs_double(y) : re);
    return complex_of(angle, endless ? copysign_double(INFINITY, y) : copysign_double(asinh_double(im), y));
}

US_ALWAYS_INLINE ComplexDouble complex_acos_double(ComplexDouble z)
{
    const double x = __real__ z, y = __imag__ z;
    const ComplexDouble minus = complex_sqrt_double(complex_of(1 - x, -y));
    const ComplexDouble plus = complex_sqrt_double(complex_of(1 + x, y));
    const double im = __real__ plus * __imag__ minus - __imag__ plus * __real__ minus;
    const bool endless = has_infinity(z);
    const double angle = 2 * atan2_double(__real__ minus, __real__ plus);
    return complex_of(endless ? atan2_double(fabs_double(y), x) : angle,
                      endless ? -copysign_double(INFINITY, y) : copysign_double(asinh_double(im), -y));
}

US_ALWAYS_INLINE ComplexDouble complex_asinh_double(ComplexDouble z)
{
    const ComplexDouble w = complex_asin_double(complex_of(-__imag__ z, __real__ z));
    return complex_of(__imag__ w, -__real__ w);
}

US_ALWAYS_INLINE ComplexDouble complex_acosh_double(ComplexDouble z)
{
    const ComplexDouble w = complex_acos_double(z);
    const bool is_below = double_bits(__imag__ w) >> 63;
    return complex_of(is_below ? -__imag__ w : __imag__ w, is_below ? __real__ w : -__real__ w);
}

US_ALWAYS_INLINE ComplexDouble complex_atanh_double(ComplexDouble z)
{
    const double x = fabs_double(__real__ z), y = fabs_double(__imag__ z);
    const double size = larger_part(z);
    const bool is_large = size > 0x1p400, is_pole = (x == 1) & (y < 0x1p-400);
    const double near = 1 - x, square = fma_double(near, near, y * y);
    const double moderate = 0.25 * log1p_double(4 * x / square);
    const double pole = 0.5 * (0x1.62e42fefa39efp-1 - log_double(y)); /* ln(2 / y) / 2 */
    /* x / |z|^2 */
    const double ratio = x > y ? y / x : x / y, cut = fma_double(ratio, ratio, 1);
    const double large = x > y ? 1 / (x * cut) : ratio / (y * cut);
    const double re = is_pole ? pole : is_large ? (size == INFINITY ? 0 : large) : moderate;
    const double angle = 0.5 * atan2_double(2 * y, sum_of_products(near, 1 + x, -y, y));
    const double im = is_large ? 0x1.921fb54442d18p+0 : angle;
    const bool on_axis = (x == 0) & !is_large;
    return complex_of(on_axis ? __real__ z : copysign_double(re, __real__ z),
                      copysign_double(__imag__ z == 0 && x < 1 ? 0 : im, __imag__ z));
}

US_ALWAYS_INLINE ComplexDouble complex_atan_double(ComplexDouble z)
{
    const ComplexDouble w = complex_atanh_double(complex_of(-__imag__ z, __real__ z));
    return complex_of(__imag__ w, -__real__ w);
}

/* ---- float complex ---- */

US_ALWAYS_INLINE ComplexDouble complex_wide(ComplexFloat z)
{
    return complex_of((double)__real__ z, (double)__imag__ z);
}

US_ALWAYS_INLINE ComplexFloat complex_narrow(ComplexDouble z)
{
    return __builtin_complex((float)__real__ z, (float)__imag__ z);
}

#define OF_ONE(name)                                                                                                \
    US_ALWAYS_INLINE ComplexFloat complex_##name##_float(ComplexFloat z)                                            \
    {                                                                                                               \
        return complex_narrow(complex_##name##_double(complex_wide(z)));                                            \
    }
#define OF_TWO(name)                                                                                                \
    US_ALWAYS_INLINE ComplexFloat complex_##name##_float(ComplexFloat z, ComplexFloat w)                            \
    {                                                                                                               \
        return complex_narrow(complex_##name##_double(complex_wide(z), complex_wide(w)));                           \
    }
OF_TWO(mul)
OF_TWO(div)
OF_TWO(pow)
OF_ONE(exp)
OF_ONE(log)
OF_ONE(log2)
OF_ONE(log10)
OF_ONE(log1p)
OF_ONE(sqrt)
OF_ONE(sin)
OF_ONE(cos)
OF_ONE(tan)
OF_ONE(sinh)
OF_ONE(cosh)
OF_ONE(tanh)
OF_ONE(asin)
OF_ONE(acos)
OF_ONE(atan)
OF_ONE(asinh)
OF_ONE(acosh)
OF_ONE(atanh)
#undef OF_ONE
#undef OF_TWO

US_ALWAYS_INLINE float complex_abs_float(ComplexFloat z)
{
    return (float)complex_abs_double(complex_wide(z));
}
