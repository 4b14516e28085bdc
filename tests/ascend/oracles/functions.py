"""Functions of one input: exponentials, circular and special functions. Python's math module in float64, element by element."""

import cmath
import math

import numpy

from tests.ascend.oracles import oracle


def elementwise(function, of_complex=None):
    def whole(x):
        chosen = of_complex if numpy.iscomplexobj(x) else function
        return numpy.vectorize(chosen, otypes=[numpy.complex128 if numpy.iscomplexobj(x) else numpy.float64])(x)

    return whole


def digamma(x: float) -> float:
    """By the recurrence to x > 40, then the asymptotic series."""
    total = 0.0
    while x < 40:
        total -= 1 / x
        x += 1
    inverse = 1 / (x * x)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse * (1 / 132)))))
    return total + math.log(x) - 0.5 / x - series


def erfinv(y: float) -> float:
    """Newton's method on erf."""
    x = 0.0
    for _ in range(80):
        x -= (math.erf(x) - y) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


UNARY = {
    # name: (function, complex function, low, high, ulp)
    "Exp": (math.exp, cmath.exp, -4, 4, 4), "Exp2": (lambda x: 2.0**x, lambda x: 2.0**x, -4, 4, 4), "Expm1": (math.expm1, lambda x: cmath.exp(x) - 1, -2, 2, 4),
    "Log": (math.log, cmath.log, 0.1, 8, 4), "Log2": (math.log2, lambda x: cmath.log(x) / math.log(2), 0.1, 8, 4), "Log10": (math.log10, cmath.log10, 0.1, 8, 4),
    "Log1p": (math.log1p, lambda x: cmath.log(1 + x), -0.5, 4, 4), "Sqrt": (math.sqrt, cmath.sqrt, 0, 8, 2),
    "Rsqrt": (lambda x: 1 / math.sqrt(x), lambda x: 1 / cmath.sqrt(x), 0.1, 8, 4),
    "Sin": (math.sin, cmath.sin, -8, 8, 4), "Cos": (math.cos, cmath.cos, -8, 8, 4), "Tan": (math.tan, cmath.tan, -1, 1, 4),
    "Asin": (math.asin, cmath.asin, -1, 1, 4), "Acos": (math.acos, cmath.acos, -1, 1, 4), "Atan": (math.atan, cmath.atan, -4, 4, 4),
    "Sinh": (math.sinh, cmath.sinh, -3, 3, 4), "Cosh": (math.cosh, cmath.cosh, -3, 3, 4), "Tanh": (math.tanh, cmath.tanh, -3, 3, 4),
    "Asinh": (math.asinh, cmath.asinh, -4, 4, 4), "Acosh": (math.acosh, cmath.acosh, 1.1, 6, 6), "Atanh": (math.atanh, cmath.atanh, -0.9, 0.9, 6),
    "Erf": (math.erf, None, -3, 3, 4), "Erfc": (math.erfc, None, -2, 3, 8), "Erfinv": (erfinv, None, -0.9, 0.9, 8),
    # bounds of kernels/maths: 5 and 20 ULP, of two epsilons each
    "Lgamma": (math.lgamma, None, 2.5, 9, 11), "Digamma": (digamma, None, 2, 9, 41),
    "Sinc": (lambda x: 1.0 if x == 0 else math.sin(math.pi * x) / (math.pi * x), lambda x: cmath.sin(math.pi * x) / (math.pi * x), -0.9, 0.9, 8),
    "Sigmoid": (lambda x: 1 / (1 + math.exp(-x)), lambda x: 1 / (1 + cmath.exp(-x)), -4, 4, 6),
}  # fmt: skip
NAMES = {"Acos": "input", "Asinh": "input", "Atan": "input", "Atanh": "input", "Cos": "input"}


def _make(name, function, of_complex):
    whole = elementwise(function, of_complex)
    if NAMES.get(name) == "input":
        return lambda input: whole(input)
    return lambda self: whole(self)


# Types whose few values lie outside of the functions' domains.
INTEGERS = ("I8", "I16", "I32", "I64", "U8", "B")
REFUSED = {"Atanh": INTEGERS, "Erfinv": INTEGERS, "Acosh": ("B",), **{name: ("B",) for name in ("Log", "Log2", "Log10", "Rsqrt", "Lgamma", "Digamma")}}

for _name, (_function, _complex, _low, _high, _ulp) in UNARY.items():
    oracle(_name, low=_low, high=_high, ulp=_ulp, scale=1 if _name in ("Lgamma", "Digamma") else 1e-3, refused=REFUSED.get(_name, ()))(_make(_name, _function, _complex))


@oracle("Abs", ulp=4)
def absolute(self):
    return self if numpy.asarray(self).dtype == bool else numpy.abs(self)


@oracle("Atan2", ulp=4)
def atan2(self, other):
    return numpy.arctan2(self, other)


@oracle("LogAddExp", ulp=6, scale=4)
def log_add_exp(self, other):
    return numpy.logaddexp(self, other)


@oracle("LogAddExp2", ulp=6, scale=4)
def log_add_exp2(self, other):
    return numpy.logaddexp2(self, other)


@oracle("XLogYTensor", "XLogYScalarOther", "XLogYScalarSelf", ulp=6, attributes={"other": 3, "self": 2}, ranges={"other": (1, 4)})
def xlogy(self, other):
    return numpy.where(self == 0, 0, self * numpy.log(numpy.where(self == 0, 1, other)))


@oracle("Heaviside")
def heaviside(input, values):
    return numpy.heaviside(input, values)


@oracle("PowTensorTensor", "PowTensorScalar", "PowScalarTensor", ulp=16, refused=("B",), low=1, high=3, attributes={"exponent": 2, "self": 2})
def power(self, exponent):
    return numpy.asarray(self) ** exponent


@oracle("RoundDecimals", ulp=4, attributes={"decimals": 1})
def round_decimals(self, decimals):
    return numpy.rint(self * 10.0**decimals) / 10.0**decimals


@oracle("NanToNum", attributes={"nan": 1.0, "posinf": 2.0, "neginf": -2.0})
def nan_to_num(self, nan, posinf, neginf):
    return self if numpy.asarray(self).dtype.kind in "iub" else numpy.nan_to_num(self, nan=nan, posinf=posinf, neginf=neginf)


@oracle("Logit", ulp=16, low=0.1, high=0.9, scale=1, attributes={"eps": 0.25})
def logit(input, eps):
    clipped = numpy.clip(input, eps, 1 - eps)
    return numpy.log(clipped / (1 - clipped))


@oracle("LogitGrad", ulp=16, low=0.1, high=0.9, attributes={"eps": 0.25})
def logit_grad(x, dy, eps):
    return numpy.where((x < eps) | (x > 1 - eps), 0, dy / (x * (1 - x)))
