"""What the formulas of the map family compute, from their definitions, in NumPy: float64 (complex128) for floating types,
integers exactly."""

import math
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np


@dataclass(frozen=True)
class Oracle:
    """`function` gets inputs and numbers. It returns the exact result, or (result, scale): the largest number that is
    rounded on the way; of formulas with several outputs (`many`) one of these for each. `roundings`: how many half
    units of the last place of the scale the result may be off."""

    function: Callable
    roundings: float = 1
    numbers: tuple | None = None
    domains: tuple | None = None
    without: tuple = ()
    many: bool = False
    extra: dict[str, Any] = field(default_factory=dict)


def is_integer(x):
    return np.asarray(x).dtype.kind in "iub"


def fields(x):
    """Integers that wrap instead of bool."""
    return x.astype(np.int32) if np.asarray(x).dtype == bool else x


def modulo(x):
    return x


def sum_of(x, y):
    return x + y, np.abs(x) + np.abs(y)


def scaled_sum(x, y, a):
    if is_integer(x):
        return fields(x) + fields(a) * fields(y)
    # A real number multiplies both parts.
    product = np.real(a) * y if np.iscomplexobj(x) else a * y
    if np.iscomplexobj(x):
        product = np.real(a) * np.real(y) + 1j * (np.real(a) * np.imag(y))
        product = join(np.real(a) * np.real(y), np.real(a) * np.imag(y))
        return join(np.real(x) + np.real(product), np.imag(x) + np.imag(product)), np.abs(x) + np.abs(product)
    return x + product, np.abs(x) + np.abs(product)


def join(real, imaginary):
    result = np.empty(np.broadcast(real, imaginary).shape, np.complex128)
    result.real, result.imag = real, imaginary
    return result


def negative(x):
    return -fields(x) if is_integer(x) else -x


def scaled_difference(x, y, a):
    return scaled_sum(x, negative(y), a)


def product(x, y):
    if np.iscomplexobj(x):
        a, b, c, d = np.real(x), np.imag(x), np.real(y), np.imag(y)
        return join(a * c - b * d, a * d + b * c), np.abs(x) * np.abs(y)
    return fields(x) * fields(y)


def quotient(x, y):
    if np.iscomplexobj(x):
        scale = np.abs(x) / np.abs(y)
        return x / y, scale
    return x / y


def integers_by(function):
    """An integer function of Python numbers, element by element."""
    def apply(x, y):
        dtype = np.int32 if x.dtype == bool else x.dtype
        info = np.iinfo(dtype)
        values = [function(int(a), int(b)) for a, b in zip(x.ravel(), y.ravel())]
        span = 2 ** info.bits
        wrapped = [(value - info.min) % span + info.min for value in values]
        return np.array(wrapped, dtype).reshape(x.shape)
    return apply


def truncated(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def trunc_divide(x, y):
    return integers_by(truncated)(x, y) if is_integer(x) else near_whole(np.trunc, x, y)


def floor_divide(x, y):
    return integers_by(lambda a, b: 0 if b == 0 else a // b)(x, y) if is_integer(x) else near_whole(np.floor, x, y)


def near_whole(function, x, y):
    return function(x / y)


def sign(x):
    if np.iscomplexobj(x):
        return np.where(x == 0, x, x / np.abs(x))
    return np.sign(fields(x))


def addcmul(x, y, z, a):
    if is_integer(x):
        return fields(x) + fields(a) * fields(y) * fields(z)
    first = scale_by(a, y)
    second, size = product(first, z) if np.iscomplexobj(x) else (first * z, np.abs(first * z))
    return plus(x, second), np.abs(x) + size


def scale_by(a, y):
    return join(np.real(a) * np.real(y), np.real(a) * np.imag(y)) if np.iscomplexobj(y) else a * y


def plus(x, y):
    return join(np.real(x) + np.real(y), np.imag(x) + np.imag(y)) if np.iscomplexobj(x) else x + y


def addcdiv(x, y, z, a):
    second = y / z
    second = scale_by(a, second)
    return plus(x, second), np.abs(x) + np.abs(second)


def lerp(x, y, z):
    return x + z * (y - x), np.abs(x) + np.abs(z) * (np.abs(x) + np.abs(y))


def close(x, y, rtol, atol, equal_nan):
    return np.isclose(x, y, rtol=float(rtol), atol=float(atol), equal_nan=bool(equal_nan))


def shifted_left(x, y):
    bits = 32 if x.dtype == bool else x.dtype.itemsize * 8
    return integers_by(lambda a, b: a << b if 0 <= b < bits else 0)(x, y)


def shifted_right(x, y):
    return integers_by(lambda a, b: a >> (0 if b < 0 else min(b, 64)))(x, y)


def whole_by(x, mode):
    away = np.copysign(np.floor(np.abs(x) + 0.5), x)
    even = np.rint(x)
    odd = np.where(np.abs(x - np.trunc(x)) == 0.5, 2 * np.trunc(x) + np.copysign(1, x) - even, even)
    return {1: even, 2: np.floor(x), 3: np.ceil(x), 4: away, 5: np.trunc(x), 6: odd}.get(int(mode), x)


def clamp(x, low, high):
    return np.maximum(np.minimum(x, high), low)


def magnitude(x):
    return np.abs(fields(x))


def bits_of(function):
    return lambda x, y: function(fields(x), fields(y))


ORACLE = {
    # arithmetic
    "copy": Oracle(lambda x: x, 0),
    "fill": Oracle(lambda x, a: np.full(x.shape, a), 0),
    "where": Oracle(lambda x, y, z: np.where(x != 0, y, z), 0),
    "add": Oracle(scaled_sum, 2),
    "sub": Oracle(scaled_difference, 2),
    "rsub": Oracle(lambda x, y, a: scaled_difference(y, x, a), 2),
    "mul": Oracle(product, 3),
    "div": Oracle(quotient, 9),
    "neg": Oracle(negative, 0),
    "square": Oracle(lambda x: product(x, x), 3),
    "reciprocal": Oracle(lambda x: quotient(np.ones_like(x), x), 9),
    "addcmul": Oracle(addcmul, 5),
    "addcdiv": Oracle(addcdiv, 11),
    "lerp": Oracle(lerp, 4),
    "abs": Oracle(magnitude, 0),
    "maximum": Oracle(lambda x, y: np.maximum(x, y), 0),
    "minimum": Oracle(lambda x, y: np.minimum(x, y), 0),
    "clamp": Oracle(clamp, 0),
    "sign": Oracle(sign, 7),
    "trunc_divide": Oracle(trunc_divide, 0),
    "floor_divide": Oracle(floor_divide, 0),
    "gcd": Oracle(integers_by(math.gcd), 0),
    # comparison
    "eq": Oracle(lambda x, y: x == y),
    "ne": Oracle(lambda x, y: x != y),
    "lt": Oracle(lambda x, y: x < y),
    "le": Oracle(lambda x, y: x <= y),
    "gt": Oracle(lambda x, y: x > y),
    "ge": Oracle(lambda x, y: x >= y),
    "is_close": Oracle(close, numbers=(0.25, 0.125, 1)),
    "is_nan": Oracle(np.isnan),
    "is_finite": Oracle(np.isfinite),
    "is_inf": Oracle(np.isinf),
    "is_pos_inf": Oracle(np.isposinf),
    "is_neg_inf": Oracle(np.isneginf),
    "signbit": Oracle(lambda x: x < 0 if is_integer(x) else np.signbit(x)),
    # logic
    "logical_and": Oracle(lambda x, y: (x != 0) & (y != 0)),
    "logical_or": Oracle(lambda x, y: (x != 0) | (y != 0)),
    "logical_xor": Oracle(lambda x, y: (x != 0) ^ (y != 0)),
    "logical_not": Oracle(lambda x: x == 0),
    "bitwise_and": Oracle(bits_of(np.bitwise_and)),
    "bitwise_or": Oracle(bits_of(np.bitwise_or)),
    "bitwise_xor": Oracle(bits_of(np.bitwise_xor)),
    "bitwise_not": Oracle(lambda x: ~fields(x)),
    "left_shift": Oracle(shifted_left),
    "right_shift": Oracle(shifted_right),
    # rounding
    "floor": Oracle(np.floor, 0),
    "ceil": Oracle(np.ceil, 0),
    "trunc": Oracle(np.trunc, 0),
    "round": Oracle(np.rint, 0),
    "round_decimals": Oracle(lambda x, a, b: np.rint(x * a) / a, 1, numbers=(8, 0)),
    "round_mode": Oracle(whole_by, 0, numbers=(6,)),
}
