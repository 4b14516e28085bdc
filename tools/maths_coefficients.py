"""Derives the polynomials of src_c/kernels/maths: python tools/maths_coefficients.py [NAME … | constants |
turns]   (needs mpmath)

Each is the minimax polynomial of a function on an interval, found by the exchange algorithm of Remez in 60 digits: the
error, relative to a scale, has the same size at one more place than there are coefficients. It prints the coefficients,
lowest first, rounded to the type that computes with them, and the greatest error of the rounded polynomial in bits.
"""

import sys

import mpmath
from mpmath import mp, mpf

mp.dps = 60


def solve(function, scale, nodes, count):
    """Coefficients and the error that alternates in sign over the nodes, in units of the scale."""
    matrix, values = mpmath.matrix(count + 1, count + 1), mpmath.matrix(count + 1, 1)
    for i, x in enumerate(nodes):
        for k in range(count):
            matrix[i, k] = x**k
        matrix[i, count] = (-1) ** i * scale(x)
        values[i] = function(x)
    solution = mpmath.lu_solve(matrix, values)
    return list(solution[:count])


def evaluate(coefficients, x):
    result = mpf(0)
    for c in reversed(coefficients):
        result = result * x + c
    return result


def remez(function, scale, low, high, count):
    low, high = mpf(low), mpf(high)
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle - half * mpmath.cos(mp.pi * k / (24 * count)) for k in range(24 * count + 1)]
    exact, scales = [function(x) for x in points], [scale(x) for x in points]
    nodes = [middle - half * mpmath.cos(mp.pi * k / count) for k in range(count + 1)]
    for _ in range(12):
        coefficients = solve(function, scale, nodes, count)
        errors = [(evaluate(coefficients, x) - y) / s for x, y, s in zip(points, exact, scales)]
        # The greatest error of each stretch of one sign.
        best = []
        for x, error in zip(points, errors):
            if best and (error > 0) == (best[-1][1] > 0):
                if abs(error) > abs(best[-1][1]):
                    best[-1] = (x, error)
            else:
                best.append((x, error))
        while len(best) > count + 1:
            best.pop(0 if abs(best[0][1]) < abs(best[-1][1]) else -1)
        if len(best) < count + 1:
            break
        nodes = [x for x, _ in best]
        sizes = [abs(error) for _, error in best]
        if max(sizes) < min(sizes) * mpf("1.001"):
            break
    return coefficients, points, exact, scales


def rounded(value, bits):
    mp_prec, mp.prec = mp.prec, bits
    try:
        return +value
    finally:
        mp.prec = mp_prec


def hexadecimal(value, bits):
    """As C writes it; a value of so many bits."""
    text = float(value).hex()
    mantissa, exponent = text.split("p")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}p{exponent}{'f' if bits == 24 else ''}"


def quotient_series(function, order, first_terms):
    """(function(x) - its first terms) / x^order: near 0 from the Taylor series, where the difference cancels."""
    series = mpmath.taylor(function, 0, 40)

    def value(x):
        if abs(x) < mpf("0.02"):
            return sum((c * x ** (k - order) for k, c in enumerate(series) if k >= order), mpf(0))
        return (function(x) - first_terms(x)) / x**order

    return value


def of_square(function):
    """The same function of z = x^2."""
    return lambda z: function(mpmath.sqrt(z))


one = lambda x: mpf(1)  # noqa: E731
sin_rest = of_square(quotient_series(mpmath.sin, 3, lambda x: x))
cos_rest = of_square(quotient_series(mpmath.cos, 4, lambda x: 1 - x * x / 2))
asin_rest = of_square(quotient_series(mpmath.asin, 3, lambda x: x))
atan_rest = of_square(quotient_series(mpmath.atan, 3, lambda x: x))
atanh_rest = of_square(quotient_series(lambda x: 2 * mpmath.atanh(x), 3, lambda x: 2 * x))
atanh_rest5 = of_square(quotient_series(lambda x: 2 * mpmath.atanh(x), 5, lambda x: 2 * x + 2 * x**3 / 3))


def erf_quotient(z):
    return mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z) if z else 2 / mpmath.sqrt(mp.pi)


def erfinv_quotient(w):
    """erfinv(x) / x at w = -ln(1 - x^2)"""
    if w == 0:
        return mpmath.sqrt(mp.pi) / 2
    x = mpmath.sqrt(-mpmath.expm1(-w))
    return mpmath.erfinv(x) / x


def erfinv_tail(s):
    """The same at w = s^2 for x near 1, where erfinv is found from erfc: by Newton's steps on ln erfc."""
    rest = mpmath.exp(-s * s)
    distance = rest / (1 + mpmath.sqrt(1 - rest))  # 1 - x
    y = mpmath.sqrt(-mpmath.log(distance))
    for _ in range(12):
        tail = mpmath.erfc(y)
        y += mpmath.log(tail / distance) * tail * mpmath.sqrt(mp.pi) / 2 * mpmath.exp(y * y)
    return y / (1 - distance)


TAIL_CENTRE = 4


def scaled_tail(u):
    """(1 + 2x) e^(x^2) erfc x at x = c (1 + u) / (1 - u)"""
    if u == 1:
        return 2 / mpmath.sqrt(mp.pi)
    x = TAIL_CENTRE * (1 + u) / (1 - u)
    if x > 1000:
        w = 1 / (2 * x * x)
        return (1 + 2 * x) / (x * mpmath.sqrt(mp.pi)) * (1 - w + 3 * w * w - 15 * w**3 + 105 * w**4)
    return (1 + 2 * x) * mpmath.exp(x * x) * mpmath.erfc(x)


def lgamma_rest(w):
    """(lgamma y - (y - 1/2) ln y + y - ln(2 pi) / 2) y at w = 1/y^2"""
    if w < mpf("1e-6"):
        return mpf(1) / 12 - w / 360 + w * w / 1260 - w**3 / 1680
    y = 1 / mpmath.sqrt(w)
    return (mpmath.loggamma(y) - (y - 0.5) * mpmath.log(y) + y - mpmath.log(2 * mp.pi) / 2) * y


def digamma_rest(w):
    """(ln y - 1/(2y) - digamma y) y^2 at w = 1/y^2"""
    if w < mpf("1e-6"):
        return mpf(1) / 12 - w / 120 + w * w / 252 - w**3 / 240
    y = 1 / mpmath.sqrt(w)
    return (mpmath.log(y) - 1 / (2 * y) - mpmath.digamma(y)) * y * y


def bessel_small(z):
    """(I0(x) - 1) / z at z = x^2/4"""
    return sum((z**k / mpmath.factorial(k + 1) ** 2 for k in range(80)), mpf(0))


def bessel_large(v):
    """I0(x) e^-x sqrt(x) at v = 16/x - 1"""
    u = (v + 1) / 16
    if u == 0:
        return 1 / mpmath.sqrt(2 * mp.pi)
    x = 1 / u
    if x > 500:
        total, term = mpf(0), mpf(1)
        for k in range(1, 30):
            total += term
            term *= (2 * k - 1) ** 2 * u / (8 * k)
        return total / mpmath.sqrt(2 * mp.pi)
    return mpmath.besseli(0, x) * mpmath.exp(-x) * mpmath.sqrt(x)


QUARTER = float(mp.pi / 4) * 1.0001
TAN_EIGHTH = float(mp.tan(mp.pi / 8)) * 1.0001
SQRT2_S = float((mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)) * 1.0001
# name: function, what the error is relative to, interval, number of coefficients of float and of double
FITS = {
    "sin": (sin_rest, lambda z: 1 if not z else mpmath.sin(mpmath.sqrt(z)) / mpmath.sqrt(z) / z, (0, QUARTER**2), 3, 6),
    "cos": (cos_rest, lambda z: 1 if not z else mpmath.cos(mpmath.sqrt(z)) / z**2, (0, QUARTER**2), 3, 6),
    "asin": (asin_rest, lambda z: 1 if not z else 1 / z, (0, 0.25), 5, 12),
    "atan": (atan_rest, lambda z: 1 if not z else 1 / z, (0, TAN_EIGHTH**2), 5, 11),
    "log": (atanh_rest, lambda z: 1 if not z else 1 / z, (0, SQRT2_S**2), 4, 7),
    "log_rest": (atanh_rest5, one, (0, SQRT2_S**2), None, 8),
    "erf": (lambda z: erf_quotient(z) - 1, erf_quotient, (0, 1), 7, 13),
    "tail": (scaled_tail, scaled_tail, (-0.7778, 1), 11, 22),
    "erfinv": (lambda v: erfinv_quotient(v + 3), lambda v: erfinv_quotient(v + 3), (-3, 3), 11, 9),
    "erfinv_tail": (lambda v: erfinv_tail(v + 4), lambda v: erfinv_tail(v + 4), (-1.56, 2.2), None, 9),
    "erfinv_tail_of_float": (lambda v: erfinv_tail(v + 3.25), lambda v: erfinv_tail(v + 3.25), (-0.81, 0.83), 9, None),
    "lgamma": (lgamma_rest, one, (0, 1 / 64), None, 8),
    "digamma": (digamma_rest, one, (0, 1 / 64), None, 8),
    "bessel_small": (bessel_small, lambda z: (1 + z * bessel_small(z)) / (z + 1), (0, 16), None, 18),
    "bessel_large": (bessel_large, bessel_large, (-1, 1), None, 24),
}
# (the scales that grow towards 0 stay finite: nothing is lost where the first terms are exact)


def fit(name):
    function, scale, (low, high), *counts = FITS[name]
    floor = mpf(high) / 10**6
    safe = lambda x: scale(max(mpf(x), floor)) if low == 0 else scale(x)  # noqa: E731
    for count, bits in zip(counts, (24, 53)):
        if count is None:
            continue
        coefficients, points, exact, scales = remez(function, safe, low, high, count)
        coefficients = [rounded(c, bits) for c in coefficients]
        error = max(abs((evaluate(coefficients, x) - y) / s) for x, y, s in zip(points, exact, scales))
        print(f"{name} {'float' if bits == 24 else 'double'}: error 2^{float(mpmath.log(error, 2)):.1f}")
        print("    " + ", ".join(hexadecimal(c, bits) for c in coefficients))


def parts(value, count):
    """As a sum of doubles."""
    found = []
    for _ in range(count):
        found.append(rounded(value, 53))
        value -= found[-1]
    return found


def print_constants():
    constants = {
        "pi/2": mp.pi / 2, "2/pi": 2 / mp.pi, "pi": +mp.pi, "ln 2": mpmath.log(2), "1/ln 2": 1 / mpmath.log(2),
        "log10 e": 1 / mpmath.log(10), "log10 2": mpmath.log(2) / mpmath.log(10),
        "ln(2 pi)/2": mpmath.log(2 * mp.pi) / 2, "ln pi": mpmath.log(mp.pi), "sqrt(1/2)": mpmath.sqrt(mpf(1) / 2),
        "1/sqrt(2 pi)": 1 / mpmath.sqrt(2 * mp.pi),
        "2/3": mpf(2) / 3,
    }  # fmt: skip
    for name, value in constants.items():
        print(f"{name}: " + ", ".join(hexadecimal(p, 53) for p in parts(value, 4)))


def turns(s):
    """2^s * 2/pi modulo 4: what a multiple of 2^s adds to an angle, in quarter turns."""
    value = mpf(2) ** s * 2 / mp.pi
    return value - 4 * mpmath.nint(value / 4)


def print_quarter_turns():
    """For the reduction of great arguments: of doubles as sums of four, of floats divided by 2^s as sums of two."""
    mp.dps = 500
    for s in range(-44, 32 * 31 - 43, 32):
        print("    {" + ", ".join(hexadecimal(p, 53) for p in parts(turns(s), 4)) + "},")
    for s in (25, 45, 65, 85):
        print(s + 23, ", ".join(hexadecimal(p, 53) for p in parts(turns(s) / mpf(2) ** s, 2)))


if __name__ == "__main__":
    if "constants" in sys.argv:
        print_constants()
    elif "turns" in sys.argv:
        print_quarter_turns()
    else:
        for requested in sys.argv[1:] or FITS:
            fit(requested)
