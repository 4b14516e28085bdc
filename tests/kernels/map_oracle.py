"""What the formulas of the map family compute, from their definitions, in NumPy: float64 (complex128) for floating types,
integers exactly."""

from __future__ import annotations

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


def sum_of(x, y):
    return x + y, np.abs(x) + np.abs(y)


def scaled_sum(x, y, a):
    if is_integer(x):
        return fields(x) + fields(a) * fields(y)
    if np.iscomplexobj(x):  # a real number multiplies both parts
        product = join(np.real(a) * np.real(y), np.real(a) * np.imag(y))
        return join(np.real(x) + np.real(product), np.imag(x) + np.imag(product)), np.abs(x) + np.abs(product)
    product = a * y
    return x + product, np.abs(x) + np.abs(product)


def difference_of_products(x, y, z, w):
    if is_integer(x):
        return fields(x) * fields(y) - fields(z) * fields(w)
    return x * y - z * w, np.abs(x * y) + np.abs(z * w)


def box_overlap(left, low, right, high, left2, low2, right2, high2, margin, of_second):
    width = np.maximum(np.minimum(right, right2) - np.maximum(left, left2), 0)
    shared = width * np.maximum(np.minimum(high, high2) - np.maximum(low, low2), 0)
    first, second = (right - left + margin) * (high - low + margin), (right2 - left2 + margin) * (high2 - low2 + margin)
    return shared / (second if np.all(of_second) else first + second - shared)


def larger_by_parts(x, y):
    """Of complex numbers by their real parts; of equal ones the mean, so that a step of either counts half."""
    return np.where(x.real > y.real, x, np.where(x.real < y.real, y, (x + y) / 2))


def boxes_score(box, other, of_distance):
    """The overlap that is less for boxes apart, of corners that may be complex; and the sizes of its two terms."""
    shared = [-larger_by_parts(-box[k + 2], -other[k + 2]) - larger_by_parts(box[k], other[k]) for k in (0, 1)]
    around = [larger_by_parts(box[k + 2], other[k + 2]) + larger_by_parts(-box[k], -other[k]) for k in (0, 1)]
    common = np.prod([np.where(one.real >= 0, one, 0) for one in shared], axis=0)
    every = sum((one[2] - one[0]) * (one[3] - one[1]) for one in (box, other)) - common
    if not of_distance:
        hull = around[0] * around[1]
        return common / every, (hull - every) / hull
    apart = [(box[k] + box[k + 2] - other[k] - other[k + 2]) / 2 for k in (0, 1)]
    return common / every, (apart[0] ** 2 + apart[1] ** 2) / (around[0] ** 2 + around[1] ** 2)


def generalized_overlap(of_distance):
    def function(*given):
        corners = [np.asarray(one, np.complex128) for one in given[:8]]
        overlap, rest = boxes_score(corners[:4], corners[4:], of_distance)
        return (overlap - rest).real, 2 + 0 * overlap.real  # of each term a few roundings of numbers up to 1

    return function


def generalized_overlap_backward(of_distance):
    """A step along the imaginary axis gives slopes without a difference of near numbers."""

    def function(*given):
        corners, slope = [np.asarray(one, np.complex128) for one in given[:8]], given[8]
        results = []
        for place in (1, 3):  # down
            box = [one + 1e-100j * (k == place) for k, one in enumerate(corners[:4])]
            exact = sum(sign * term.imag / 1e-100 for sign, term in zip((1, -1), boxes_score(box, corners[4:], of_distance)))
            results.append((slope * exact, 16 * np.abs(slope) + 0 * exact))  # sides are 0.5 to 8 long: terms up to 2 * 8
        return tuple(results)

    return function


def box_encode(*given):
    box, other, means, deviations = given[:4], given[4:8], given[8:12], given[12:]
    results = []
    for k in range(4):
        size, target = (one[k % 2 + 2] - one[k % 2] + 1 for one in (box, other))
        move = (other[k % 2] + other[k % 2 + 2] - box[k % 2] - box[k % 2 + 2]) / 2
        delta = move / size if k < 2 else np.log(target / size)
        results.append(((delta - means[k]) / deviations[k], (8 / size + np.abs(delta) + 3 + np.abs(means[k])) / deviations[k]))
    return tuple(results)


def box_decode(*given):
    box, deltas, means, deviations, limits, clip = given[:4], given[4:8], given[8:12], given[12:16], given[16:18], given[18]
    corners, most = [], np.abs(np.log(clip))
    deltas = [delta * deviation + mean for delta, mean, deviation in zip(deltas, means, deviations)]
    for k in range(4):
        size, middle = box[k % 2 + 2] - box[k % 2] + 1, (box[k % 2] + box[k % 2 + 2]) / 2 + (box[k % 2 + 2] - box[k % 2] + 1) * deltas[k % 2]
        half = (size * np.exp(np.clip(deltas[k % 2 + 2], -most, most)) - 1) / 2
        scale = 8 + size * (np.abs(deltas[k % 2]) + 2 + 4 * np.exp(most))
        corners.append((np.clip(middle + (half if k > 1 else -half), 0, limits[k % 2]), scale))
    return tuple(corners)


def join(real, imaginary):
    result = np.empty(np.broadcast(real, imaginary).shape, np.complex128)
    result.real, result.imag = real, imaginary
    return result


def negative(x):
    return -fields(x) if is_integer(x) else -x


def positive_sum(x, y, a):
    if is_integer(x):  # sums of narrow types are not yet cut to them
        lane = np.int64 if x.dtype.itemsize < 4 else x.dtype
        return np.maximum(scaled_sum(*(np.asarray(v).astype(lane) for v in (x, y, a))), 0)
    total, scale = scaled_sum(x, y, a)
    return np.maximum(total, 0), scale


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
    return integers_by(lambda a, b: 0 if b == 0 else a // b)(x, y) if is_integer(x) else np.floor_divide(x, y)


def fmod(x, y):
    return integers_by(lambda a, b: a - truncated(a, b) * b)(x, y) if is_integer(x) else np.fmod(x, y)


def remainder(x, y):
    """Of y's sign; exact but for the one addition that may be needed."""
    if is_integer(x):
        return integers_by(lambda a, b: a if b == 0 else a % b)(x, y)
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


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


def addr(x, y, z, a, b):
    kept = 0 * fields(x) if np.all(b == 0) else fields(b) * fields(x) if is_integer(x) else scale_by(b, x)
    if is_integer(x):
        return kept + fields(a) * fields(y) * fields(z)
    first = scale_by(a, y)
    second, size = product(first, z) if np.iscomplexobj(x) else (first * z, np.abs(first * z))
    return plus(kept, second), np.abs(kept) + size


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
    return {1: even, 2: np.floor(x), 3: np.ceil(x), 4: away, 5: np.trunc(x), 6: odd, 7: x - np.trunc(x)}.get(int(mode), x)


def clamp(x, low, high):
    return np.maximum(np.minimum(x, high), low)


def magnitude(x):
    return np.abs(fields(x))


def integer_power(a, b):
    if b >= 0:
        return pow(a, b, 2**64) if abs(b) > 64 else a**b
    return 1 if a == 1 else (1 if b % 2 == 0 else -1) if a == -1 else 0


def power(x, y):
    if np.iscomplexobj(x):  # the exponent is off by a few units of its size
        exponent = np.log(x) * y
        return np.power(x, y), np.abs(np.power(x, y)) * (4 + 4 * np.abs(exponent))
    if is_integer(x):
        return integers_by(integer_power)(x, y)
    return np.power(x, y)


def elementwise(function):
    """A function of Python floats."""
    return np.vectorize(function, otypes=[np.float64])


def log_of_gamma(value):
    if math.isnan(value):
        return math.nan
    if math.isinf(value) or value <= 0 and value == math.floor(value):
        return math.inf
    return math.lgamma(value)


def digamma(x):
    """Recurrence up to 20, then the asymptotic series; reflection below 0."""
    x = np.asarray(x, np.float64)
    mirrored = np.where(x < 0, 1 - x, x)
    shift = np.zeros_like(mirrored)
    for _ in range(20):
        small = mirrored < 20
        shift = shift - np.where(small, 1 / mirrored, 0)
        mirrored = np.where(small, mirrored + 1, mirrored)
    square = 1 / (mirrored * mirrored)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    value = shift + np.log(mirrored) - 0.5 / mirrored - series
    fraction = x - np.rint(x)
    value = np.where(x < 0, value - math.pi / np.tan(math.pi * fraction), value)
    value = np.where((x < 0) & (fraction == 0), np.nan, value)
    return np.where(x == 0, -np.copysign(np.inf, x), np.where(x == -np.inf, np.nan, value))


def inverse_error(x):
    """By Newton's method from both sides."""
    return elementwise(inverse_error_of)(x)


def inverse_error_of(value):
    if math.isnan(value) or abs(value) > 1:
        return math.nan
    if abs(value) == 1:
        return math.copysign(math.inf, value)
    low, high, size = 0.0, 6.0, abs(value)
    for _ in range(1100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if math.erf(middle) < size if size < 0.5 else math.erfc(middle) > 1 - size:
            low = middle
        else:
            high = middle
    return math.copysign(low, value)


erf, erfc = elementwise(math.erf), elementwise(math.erfc)


def sinc(x):
    whole = np.rint(x)
    sine = np.where(whole % 2 == 0, 1, -1) * np.sin(math.pi * (x - whole))
    return np.where(x == 0, 1, sine / (math.pi * x))


def sigmoid(x):
    if np.iscomplexobj(x):
        return 1 / (1 + np.exp(-x))
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1) / (1 + power)


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def normal(x):
    """erfc(t) / 2 at t = -x / sqrt(2), with what rounding t leaves out."""
    wide = -np.asarray(x, np.longdouble) / np.sqrt(np.longdouble(2))
    t = wide.astype(np.float64)
    left = np.where(np.isfinite(t), (wide - t).astype(np.float64), 0)
    return 0.5 * (erfc(t) - 2 / math.sqrt(math.pi) * np.where(np.isfinite(t), np.exp(-t * t), 0) * left)


def density(x):
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu(x):
    return x * normal(x)


def gelu_exponent(x):
    return math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)


def gelu_tanh(x):
    exact = x * sigmoid(gelu_exponent(x))
    return exact, np.abs(exact) * (1 + np.minimum(np.abs(gelu_exponent(x)), 200))


def mish(x):
    return x * np.tanh(softplus(x))


def below(x):
    return np.expm1(np.minimum(x, 0))


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def triple(x, y, z):
    if np.iscomplexobj(x):
        first = product(x, y)[0]
        return product(first, z)
    return x * y * z


def slope_and_scale(g, x, slope, exponent):
    """The derivative, whose terms are of size 1 + |x| on their way, by as many places as the exponent has."""
    slope = np.where(np.isneginf(x), 0, np.where(np.isposinf(x), 1, slope))
    terms = np.where(np.isinf(exponent), 0, sigmoid(-np.abs(exponent)) * (1 + np.abs(exponent)))
    return g * slope, np.abs(g) * np.maximum(np.abs(slope), terms)


def bounded(x, a):
    return a * np.tanh(x / a)


def bounded_slope(x, a):
    return 1 / np.cosh(np.minimum(np.abs(x / a), 400)) ** 2


def situ_gradients(g, x, y, a, b):
    """The slopes' exponents are off by as many places as they have; the two terms of the first one may cancel."""
    slopes, other = (bounded_slope(x, a), bounded(x, a) * sigmoid(-x)), bounded(y, b) if b > 0 else y
    size = lambda v, of: 1 + np.minimum(np.abs(v / of), 400)
    terms = np.abs(slopes[0]) * size(x, a) + np.abs(slopes[1])
    second = g * bounded(x, a) * sigmoid(x) * (bounded_slope(y, b) if b > 0 else 1)
    return ((g * other * sigmoid(x) * sum(slopes), np.abs(g * other) * sigmoid(x) * terms),
            (second, np.abs(second) * (size(y, b) if b > 0 else 1)))  # fmt: skip


def mish_slope(x):
    gate = np.tanh(softplus(x))
    return gate + x * (1 - gate * gate) * sigmoid(x)


def gelu_tanh_slope(x):
    exponent = gelu_exponent(x)
    inner = math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return sigmoid(exponent) + x * inner * sigmoid(exponent) * sigmoid(-exponent)


def gelu_tanh_gradient(g, x):
    """The exponent e is off by a few units of its size, which is the relative error of s(e) and of x e'(x) <= 3 e."""
    size = np.abs(gelu_exponent(x))
    exact = slope_and_scale(g, x, gelu_tanh_slope(x), size)[0]
    return exact, np.abs(exact) + np.abs(g) * sigmoid(-size) * (1 + 3 * size) * (1 + size)


def geglu_tanh_gradients(g, x, y, e):
    """Where the exponent overflows, the slope is 0 or 1 exactly."""
    exact, scale = gelu_tanh_gradient(g * y, x)
    return (exact, np.where(np.isnan(scale), np.abs(exact), scale)), (g * e, np.abs(g * e))


def rounded_gelu_gradient(g, x):
    """Its power's argument has a rounding of its own, which counts x^2 / 2 times; infinities times 0 are NaN."""
    exact = g * (normal(x) + x * density(x))
    return exact, np.abs(g) * (1 + x * x) * (normal(x) + np.abs(x) * density(x))


def log_sum(x, y):
    top = np.maximum(x, y)
    distance = np.where(x == y, 0, np.abs(x - y))
    return top + np.log1p(np.exp(-distance)), np.abs(top) + 1


def log_sum_2(x, y):
    top = np.maximum(x, y)
    distance = np.where(x == y, 0, np.abs(x - y))
    return top + np.log1p(np.exp2(-distance)) / math.log(2), np.abs(top) + 1


def xlogy(x, y):
    return np.where(np.isnan(y), np.nan, np.where(x == 0, 0, x * np.log(y)))


def logit(x, eps):
    z = x if eps < 0 else np.clip(x, eps, 1 - eps)
    return np.log(z / (1 - z)), np.abs(np.log(z / (1 - z))) + 1


def logit_gradient(x, dy, eps):
    low = max(float(eps), 0)
    outside = (x < low) | (x > 1 - low)
    return np.where(outside, np.nan if eps < 0 else 0, dy / (x * (1 - x)))


def nan_to_num(x, nan, high, low):
    return np.where(np.isnan(x), nan, np.where(x == np.inf, high, np.where(x == -np.inf, low, x)))


def bits_of(function):
    return lambda x, y: function(fields(x), fields(y))


ADAM = ((-4, 4), (-4, 4), (-4, 4), (0.0625, 4), (0.0625, 4))


def loss_scale(scale, steps, overflow, growth, backoff, interval, limit):
    steps = np.round(steps)
    grows = steps + 1 == interval
    kept = np.where(grows & (np.abs(scale * growth) < limit), scale * growth, scale)
    return (np.where(overflow != 0, scale * backoff, kept), np.abs(scale) * growth), np.where((overflow != 0) | grows, 0, steps + 1)


def glu_gradients(g, x, gate):
    opens = sigmoid(gate)
    return g * opens, (g * opens * (x - x * opens), np.abs(g * opens * x))


def moments(m, v, g, beta1, beta2):
    return (beta1 * m + (1 - beta1) * g, np.abs(m) + np.abs(g)), (beta2 * v + (1 - beta2) * g * g, v + g * g)


def adam_w(w, g, m, v, *rest):
    *bound, power1, power2, rate, decay, beta1, beta2, eps, maximise = rest
    g = -g if maximise else g
    (m, m_scale), (v, v_scale) = moments(m, v, g, beta1, beta2)
    v = np.maximum(v, bound[0]) if bound else v
    change = m_scale / (1 - power1 * beta1) / (np.sqrt(v / (1 - power2 * beta2)) + eps)
    new = w - rate * (m / m_scale) * change - rate * decay * w
    return (new, np.abs(w) + rate * change * 8), (m, m_scale), (v, v_scale)


def adam_w_v2(w, g, m, v, *rest):
    """The count is of the steps before this one."""
    *largest, before, rate, beta1, beta2, decay, eps, maximise = rest
    step = before + 1
    g = -g if maximise else g
    (m, m_scale), (v, v_scale) = moments(m, v, g, beta1, beta2)
    top = np.maximum(v, largest[0]) if largest else v
    change = m_scale / (1 - beta1**step) / (np.sqrt(top / (1 - beta2**step)) + eps)
    new = w - rate * (m / m_scale) * change - rate * decay * w
    return (new, np.abs(w) + rate * change * 8), (m, m_scale), (v, v_scale)


def adam_w_v2_largest(w, g, m, v, largest, *rest):
    new, m, v = adam_w_v2(w, g, m, v, largest, *rest)
    return new, m, v, (np.maximum(v[0], largest), v[1] + largest)


def ema_adam(w, g, m, v, s, step, rate, s_decay, beta1, beta2, eps, mode, corrects, decay):
    g = g + decay * w if mode == 0 else g
    (m, m_scale), (v, v_scale) = moments(m, v, g, beta1, beta2)
    bias1, bias2 = (1 - beta1**step, 1 - beta2**step) if corrects else (1, 1)
    change = m_scale / bias1 / (np.sqrt(v / bias2) + eps)
    new = w - rate * ((m / m_scale) * change + (decay * w if mode == 1 else 0))
    scale = np.abs(w) + rate * change * 8
    return (new, scale), (m, m_scale), (v, v_scale), (s_decay * s + (1 - s_decay) * new, scale + np.abs(s))


def cross_entropy(p, target, weight):
    of_true, of_false = np.maximum(np.log(p), -100), np.maximum(np.log1p(-p), -100)
    scale = np.abs(weight) * (np.abs(target - 1) * np.abs(of_false) + np.abs(target * of_true))
    return weight * ((target - 1) * of_false - target * of_true), scale


def cross_entropy_gradient(g, p, target, weight, a):
    inner = np.maximum((1 - p) * p, 1e-12)
    return a * weight * (p - target) / inner * g, np.abs(a * weight * g / inner) * (np.abs(p) + np.abs(target))


def logits_cross_entropy(x, target, weight, positive):
    first, second = (1 - target) * x, (1 + (positive - 1) * target) * softplus(-x)
    size = (1 + np.abs(target)) * np.abs(x) + (1 + (np.abs(positive) + 1) * np.abs(target)) * softplus(-x)
    return weight * (first + second), np.abs(weight) * size


def logits_gradient(g, x, target, weight, positive, a):
    of_true = positive * target
    size = 1 + 3 * np.abs(of_true) + np.abs(target)
    return a * weight * ((of_true + 1 - target) * sigmoid(x) - of_true) * g, np.abs(a * weight * g) * size


def logits_target_gradient(g, x, weight, positive, a):
    size = (np.abs(positive) + 1) * softplus(-x) + np.abs(x)
    return a * weight * ((positive - 1) * softplus(-x) - x) * g, np.abs(a * weight * g) * size


def distance(x, y):
    """Small integers do not wrap before the result is stored."""
    if is_integer(x):
        wide = np.int32 if x.dtype == np.int32 else np.int64
        return np.abs(x.astype(wide) - y.astype(wide))
    return np.abs(x - y), np.abs(x) + np.abs(y)


def smooth_l1(x, y, beta):
    size = np.abs(x - y)
    scale = np.maximum(np.abs(x) + np.abs(y) + beta, (np.abs(x) + np.abs(y)) * size / beta)
    return np.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta), scale


def smooth_l1_slope(g, x, y, beta):
    """The first condition that holds decides, whatever beta is."""
    difference = x - y
    return np.where(difference > beta, g, np.where(difference < -beta, -g, difference / beta * g)), (
        np.abs(g) * (1 + (np.abs(x) + np.abs(y)) / beta))  # fmt: skip


def smooth_l1_gradient(g, x, y, a, beta):
    distance = x - y
    return a * np.where(np.abs(distance) < beta, distance / beta, np.sign(distance)) * g, (
        np.abs(a * g) * (1 + (np.abs(x) + np.abs(y)) / beta))  # fmt: skip


def soft_margin(x, y):
    """Roundings of the exponent, up to |x * y|, stay in the logarithm."""
    loss = np.log1p(np.exp(-x * y))
    return loss, 1 + np.abs(x * y) + loss


def soft_margin_gradient(g, x, y, a):
    """As soft_margin; a quotient of infinities is NaN."""
    power = np.exp(x * -y)
    slope = -y * (power / (power + 1)) * g * a
    return slope, np.abs(slope) * (1 + np.abs(x * y))


def finite_cross_entropy(p, target, weight):
    of_true, of_false = np.log(p + 1e-12), np.log(1 - p + 1e-12)
    scale = np.abs(weight) * (np.abs(target) * (1 + np.abs(of_true)) + np.abs(1 - target) * (1 + np.abs(of_false)))
    return -weight * (target * of_true + (1 - target) * of_false), scale


def finite_cross_entropy_gradient(p, target, weight, g):
    inner = p * (1 - p) + 1e-12
    return weight * (p - target) / inner * g, np.abs(weight * g / inner) * (np.abs(p) + np.abs(target))


def sigmoid_cross_entropy(x, y):
    return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x))), 1 + np.abs(x) + np.abs(x * y)


def momentum(w, accumulated, g, rate, moment, ahead):
    grown, size = moment * accumulated + g, np.abs(moment * accumulated) + np.abs(g)
    step = grown * moment + g if ahead else grown
    return (w - rate * step, np.abs(w) + rate * (size + np.abs(g))), (grown, size)


def sgd(w, accumulated, g, rate, dampening, moment, ahead, decay):
    whole, size = g + decay * w, np.abs(g) + np.abs(decay * w)
    grown, grown_size = moment * accumulated + (1 - dampening) * whole, np.abs(moment * accumulated) + size
    step = grown * moment + whole if ahead else grown
    return (w - rate * step, np.abs(w) + rate * (grown_size + size)), (grown, grown_size)


def nearest_of_levels(x, step, zero, least, most):
    level = np.rint(x / step) + zero
    held = np.where(level < least, least, np.where(level > most, most, level))
    return (held - zero) * step, (np.abs(held) + np.abs(zero)) * np.abs(step)


def in_levels(x, step, zero, least, most):
    level = np.rint(x / step) + zero
    return (level >= least) & (level <= most)


def fused_sgd(w, g, accumulated, scale, decay, moment, rate, dampening, ahead, maximise, first):
    own = g / scale
    whole, size = (-own if maximise else own) + decay * w, np.abs(own) + np.abs(decay * w)
    grown = whole if first else moment * accumulated + (1 - dampening) * whole
    grown_size = size if first else np.abs(moment * accumulated) + size
    step = whole + moment * grown if ahead else grown
    return (w - rate * step, np.abs(w) + rate * (grown_size + size)), own, (grown, grown_size)


def fused_sgd_plain(w, g, scale, decay, moment, rate, dampening, ahead, maximise, first):
    own = g / scale
    step, size = (-own if maximise else own) + decay * w, np.abs(own) + np.abs(decay * w)
    return (w - rate * step, np.abs(w) + rate * size), own


def adam(m, v, g, w, beta1, beta2, eps, rate, ahead):
    first, second = m + (g - m) * (1 - beta1), v + (g * g - v) * (1 - beta2)
    direction = first * beta1 + (1 - beta1) * g if ahead else first
    size, divisor = np.abs(m) + np.abs(g), np.sqrt(second) + eps
    return (first, size), (second, v + g * g), (w - rate * direction / divisor, np.abs(w) + rate * size / divisor)


def adam_decay(w, m, v, g, rate, beta1, beta2, eps, decay):
    first, second = m * beta1 + g * (1 - beta1), v * beta2 + g * g * (1 - beta2)
    size, divisor = np.abs(m) + np.abs(g), np.sqrt(second) + eps
    new = w - rate * (first / divisor + decay * w)
    return (new, np.abs(w) * (1 + rate * decay) + rate * size / divisor), (first, size), (second, v + g * g)


def quantised_norm(x, mean, variance, weight, addend, zero, step, to_step, to_zero, epsilon):
    return np.rint((((x - zero) * step - mean) / np.sqrt(variance + epsilon) * weight + addend) / to_step + to_zero)


def nearest_level(x, low, high, step):
    inside = np.where(x < low, low, np.where(x > high, high, x))
    return np.floor((inside - low) / step + 0.5) * step + low, np.abs(inside) + np.abs(low)


def power_gradient(power):
    """The slope of (b y + c)^a times x, where the base to the power a - 1 is what `power` says."""
    def gradient(x, y, a, b, c):
        base, size = b * y + c, np.abs(b * y) + np.abs(c)
        raised = base**power if power is not None else base ** (a - 1)
        return a * b * x * raised, np.abs(a * b * x * raised) * size / np.abs(base)
    return Oracle(gradient, 12, domains=((-4, 4), (-2, 4)))


PROBABILITIES = ((0.01, 0.99), (0, 1), (0.5, 2), (0.5, 2))
LOGITS = ((-8, 8), (0, 1), (0.5, 2), (0.5, 2))

BOXES = ((-4, 0), (-4, 0), (0.5, 4), (0.5, 4)) * 2
ORACLE = {
    "rrelu_slope": Oracle(lambda x, y: np.where(x > 0, 1, y), 0),
    # loss
    "l1_loss": Oracle(distance, 1, without=("uint64",)),
    "l1_loss_backward": Oracle(lambda g, x, y, a: a * np.sign(x - y) * g, 1),
    "mse_loss": Oracle(lambda x, y: ((x - y) ** 2, (np.abs(x) + np.abs(y)) ** 2), 3),
    "mse_loss_backward": Oracle(lambda g, x, y, a: (a * (x - y) * g, np.abs(a * g) * (np.abs(x) + np.abs(y))), 3),
    "smooth_l1_loss": Oracle(smooth_l1, 5),
    "soft_margin_loss": Oracle(soft_margin, 4, domains=((-8, 8),) * 2),
    "soft_margin_loss_backward": Oracle(soft_margin_gradient, 6, domains=((-4, 4), (-8, 8), (-8, 8))),
    "finite_cross_entropy": Oracle(lambda p, target: finite_cross_entropy(p, target, 1), 8, domains=PROBABILITIES),
    "finite_cross_entropy_weighted": Oracle(finite_cross_entropy, 8, domains=PROBABILITIES),
    "finite_cross_entropy_slope": Oracle(
        lambda p, target, a: finite_cross_entropy_gradient(p, target, 1, a), 8, domains=PROBABILITIES),
    "finite_cross_entropy_slope_weighted": Oracle(finite_cross_entropy_gradient, 8, domains=PROBABILITIES),
    "finite_cross_entropy_backward": Oracle(
        lambda p, target, g: finite_cross_entropy_gradient(p, target, 1, g), 8, domains=(*PROBABILITIES[:2], (-4, 4))),
    "finite_cross_entropy_backward_weighted": Oracle(
        finite_cross_entropy_gradient, 8, domains=(*PROBABILITIES[:3], (-4, 4))),
    "sigmoid_cross_entropy": Oracle(sigmoid_cross_entropy, 20),  # of float16 the logarithm is computed to 2^-20
    "sigmoid_cross_entropy_slope": Oracle(lambda x, y: (sigmoid(x) - y, 1 + np.abs(y)), 6),
    "smooth_l1_loss_backward": Oracle(smooth_l1_gradient, 4, domains=((-2, 2),) * 3, numbers=(0.25, 1)),
    "smooth_l1_slope": Oracle(smooth_l1_slope, 4, domains=((-2, 2),) * 3, numbers=(0.75,)),
    "binary_cross_entropy": Oracle(cross_entropy, 8, domains=PROBABILITIES),
    "binary_cross_entropy_backward": Oracle(cross_entropy_gradient, 8, domains=((-4, 4), *PROBABILITIES)),
    "logits_cross_entropy": Oracle(logits_cross_entropy, 9, domains=LOGITS),
    "logits_cross_entropy_backward": Oracle(logits_gradient, 9, domains=((-4, 4), *LOGITS)),
    "logits_cross_entropy_target_backward": Oracle(logits_target_gradient, 9, domains=((-4, 4), (-8, 8), (0.5, 2), (0.5, 2))),
    "kl_div": Oracle(lambda x, y: (y * (np.log(y) - x), np.abs(y) * (np.abs(np.log(y)) + np.abs(x))), 4),
    "kl_div_log": Oracle(lambda x, y: (np.exp(y) * (y - x), np.exp(y) * (np.abs(y) + np.abs(x))), 4, domains=((-8, 8),) * 2),
    "kl_div_backward": Oracle(lambda g, y, a: -a * y * g, 2),
    "kl_div_log_backward": Oracle(lambda g, y, a: -a * np.exp(y) * g, 4, domains=((-8, 8),) * 2),
    "kl_div_target_backward": Oracle(lambda g, x, y, a: (a * (np.log(y) - x + 1) * g, np.abs(a * g) * (
        np.abs(np.log(y)) + np.abs(x) + 1)), 6, domains=((-4, 4), (-8, 8), (0.1, 4))),  # fmt: skip
    "kl_div_log_target_backward": Oracle(lambda g, x, y, a: (a * np.exp(y) * (y - x + 1) * g, np.abs(a * g) * np.exp(y) * (
        np.abs(y) + np.abs(x) + 1)), 8, domains=((-4, 4), (-8, 8), (-4, 4))),  # fmt: skip
    # arithmetic
    "copy": Oracle(lambda x: x, 0),
    "fill": Oracle(lambda x, a: np.full(x.shape, a), 0),
    "sum_times": Oracle(lambda x, y, a: ((x + y) * a, (np.abs(x) + np.abs(y)) * np.abs(a)), 2),
    "scaled_unless": Oracle(lambda x, y, a, b: np.where(y != 0, b, a * x), 1),
    "where": Oracle(lambda x, y, z: np.where(x != 0, y, z), 0),
    "sum": Oracle(sum_of, 1),
    "difference": Oracle(lambda x, y: sum_of(x, -y), 1),
    "add": Oracle(scaled_sum, 2),
    "sub": Oracle(scaled_difference, 2),
    "rsub": Oracle(lambda x, y, a: scaled_difference(y, x, a), 2),
    "mul": Oracle(product, 3),
    "difference_of_products": Oracle(difference_of_products, 8),
    "scale": Oracle(lambda x, a: a * x, 1),
    "scaled_product": Oracle(lambda x, y, a: x * y * a, 2),
    "weighted_sum": Oracle(lambda x, y, a, b: sum_of(a * x, b * y), 3),
    "weighted_product": Oracle(lambda x, y, a, b: a * x * (b * y), 3),
    "weighted_minimum": Oracle(lambda x, y, a, b: np.minimum(a * x, b * y), 1),
    "weighted_maximum": Oracle(lambda x, y, a, b: np.maximum(a * x, b * y), 1),
    "weighted_minimum_number": Oracle(lambda x, y, a, b: np.fmin(a * x, b * y), 1),
    "weighted_maximum_number": Oracle(lambda x, y, a, b: np.fmax(a * x, b * y), 1),
    "scaled_root": Oracle(lambda x, a: np.sqrt(a * x), 2),
    "rest_of_one": Oracle(lambda x, a: (1 - a * x, 1 + np.abs(a * x)), 2),
    "div": Oracle(quotient, 9),
    "divided": Oracle(lambda x, a: x / a, 1),
    "divisor": Oracle(lambda x, a: a / x, 1),
    "neg": Oracle(negative, 0),
    "square": Oracle(lambda x: product(x, x), 3),
    "reciprocal": Oracle(lambda x: quotient(np.ones_like(x), x), 9),
    "addcmul": Oracle(addcmul, 5),
    "modulate": Oracle(lambda x, y, z: (x * (1 + y) + z, np.abs(x) * (1 + np.abs(y)) + np.abs(z)), 3),
    "addr": Oracle(addr, 6),
    "addcdiv": Oracle(addcdiv, 11),
    "lerp": Oracle(lerp, 4),
    "box_generalized_overlap": Oracle(generalized_overlap(False), 40, numbers=(0,), domains=BOXES),
    "box_distance_overlap": Oracle(generalized_overlap(True), 40, numbers=(0,), domains=BOXES),
    "box_generalized_overlap_backward": Oracle(generalized_overlap_backward(False), 40, (0, 1), BOXES, many=True),
    "box_distance_overlap_backward": Oracle(generalized_overlap_backward(True), 40, (0, 1), BOXES, many=True),
    "box_encode": Oracle(box_encode, 8, (0.25, -0.5, 0.125, 0, 0.5, 0.25, 2, 1), BOXES, many=True),
    "box_decode": Oracle(box_decode, 8, (0.25, -0.5, 0.125, 0, 0.5, 0.25, 2, 1, 9, 5, 0.25), (*BOXES[:4], *[(-2, 2)] * 4), many=True),
    "box_overlap": Oracle(box_overlap, 20, numbers=(0.25, 0), domains=BOXES),
    "abs": Oracle(magnitude, 0),
    "maximum": Oracle(lambda x, y: np.maximum(x, y), 0),
    "minimum": Oracle(lambda x, y: np.minimum(x, y), 0),
    "clamp": Oracle(clamp, 0),
    "sign": Oracle(sign, 7),
    "fmod": Oracle(fmod, 0),
    "remainder": Oracle(remainder, 1),
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
    "frac": Oracle(lambda x: x - np.trunc(x), 0),
    "round": Oracle(np.rint, 0),
    "fake_quantise": Oracle(nearest_level, 4, numbers=(-2, 2.5, 0.25)),
    "dequantise": Oracle(lambda x, a, b: ((x - b) * a, (np.abs(x) + np.abs(b)) * a), 2),
    "quantised_norm": Oracle(quantised_norm, 0, numbers=(-1, 0.5, 0.25, 3, 0.5), domains=((-4, 4), (-4, 4), (0.5, 4), (-4, 4), (-4, 4))),
    "rounded_quotient": Oracle(lambda x, y, z: np.rint(x / y + z), 0, domains=((-4, 4), (0.25, 4), (-100, 100))),
    "nearest_level": Oracle(nearest_of_levels, 4, numbers=(-2, 3), domains=((-4, 4), (0.25, 4), (-4, 4))),
    "in_levels": Oracle(in_levels, 0, numbers=(-2, 3), domains=((-4, 4), (0.25, 4), (-4, 4))),
    "round_decimals": Oracle(lambda x, a, b: np.rint(x * a) / a, 1, numbers=(8, 0)),
    "round_mode": Oracle(whole_by, 0, numbers=(6,)),
    # exponential
    "exp": Oracle(np.exp, 4),
    "exp2": Oracle(np.exp2, 2),
    "expm1": Oracle(np.expm1, 4),
    "log": Oracle(np.log, 4),
    "log2": Oracle(np.log2, 4),
    "log10": Oracle(np.log10, 4),
    "log1p": Oracle(np.log1p, 4),
    "sqrt": Oracle(np.sqrt, 3),
    "rsqrt": Oracle(lambda x: 1 / np.sqrt(x), 3),
    "pow": Oracle(power, 4),
    "scaled_exp": Oracle(lambda x, a, b: (b * np.exp(a * x), b * np.exp(a * x) * (1 + np.minimum(np.abs(a * x), 200))), 6),
    "power_of_line": Oracle(lambda x, y, a, b: ((a * x + b) ** y, (a * x + b) ** y * (1 + np.abs(y))), 6,
                            domains=((0, 4), (-3, 3))),
    "square_of_line": Oracle(lambda x, a, b: ((a * x + b) ** 2, (np.abs(a * x) + np.abs(b)) ** 2), 4),
    "root_of_line": Oracle(lambda x, a, b: np.sqrt(a * x + b), 4, domains=((0, 4),)),
    "power_backward": power_gradient(None),
    "power_1_backward": power_gradient(0),
    "power_2_backward": power_gradient(1),
    "power_3_backward": power_gradient(2),
    "power_3_halves_backward": power_gradient(0.5),
    "power_half_backward": power_gradient(-0.5),
    "power_minus_1_backward": power_gradient(-2),
    "logaddexp": Oracle(log_sum, 6),
    "logaddexp2": Oracle(log_sum_2, 8),
    "xlogy": Oracle(xlogy, 6),
    # trigonometric
    "sin": Oracle(np.sin, 4),
    "cos": Oracle(np.cos, 4),
    "polar": Oracle(lambda r, angle: ((r * np.cos(angle), np.abs(r)), (r * np.sin(angle), np.abs(r))), 6, many=True),
    "tan": Oracle(np.tan, 6),
    "asin": Oracle(np.arcsin, 4),
    "acos": Oracle(np.arccos, 4),
    "atan": Oracle(np.arctan, 4),
    "atan2": Oracle(np.arctan2, 6),
    "sinc": Oracle(sinc, 8),
    "angle": Oracle(lambda x: np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0.0)), 1),
    "sinh": Oracle(np.sinh, 5),
    "cosh": Oracle(np.cosh, 5),
    "tanh": Oracle(np.tanh, 6),
    "asinh": Oracle(np.arcsinh, 6),
    "acosh": Oracle(np.arccosh, 6),
    "atanh": Oracle(np.arctanh, 6),
    # special
    "erf": Oracle(erf, 6),
    "erfc": Oracle(erfc, 8),
    "erfinv": Oracle(inverse_error, 8, domains=((-1, 1),)),
    "lgamma": Oracle(lambda x: (elementwise(log_of_gamma)(x), np.abs(elementwise(log_of_gamma)(x)) + 4), 12),
    "digamma": Oracle(lambda x: (digamma(x), np.abs(digamma(x)) + np.abs(math.pi / np.tan(math.pi * x)) + 8), 12),
    "heaviside": Oracle(lambda x, y: np.where(x == 0, y, x > 0), 0),
    "nan_to_num": Oracle(nan_to_num, 0),
    "logit": Oracle(logit, 8, numbers=(0.125,)),
    "logit_backward": Oracle(logit_gradient, 6, numbers=(0.125,)),
    # activation
    "relu": Oracle(lambda x: np.maximum(x, 0), 0),
    "squared_relu": Oracle(lambda x: np.maximum(x, 0) ** 2, 1),
    "add_relu": Oracle(positive_sum, 2),
    "clipped_relu": Oracle(lambda x, a, b: np.clip(x, 0, a), 0),
    "relu_of_difference": Oracle(lambda x, y: np.maximum(x - y, 0), 1),
    "relu6_of_difference": Oracle(lambda x, y: np.clip(x - y, 0, 6), 1),
    "leaky_relu": Oracle(lambda x, a: np.where(x > 0, x, a * x), 1),
    "prelu": Oracle(lambda x, y: np.where(x > 0, x, y * x), 1),
    "threshold": Oracle(lambda x, a, b: np.where(x <= a, b, x), 0),
    "hardshrink": Oracle(lambda x, a: np.where((x >= -a) & (x <= a), 0, x), 0),
    "softshrink": Oracle(lambda x, a: np.where(x > a, x - a, np.where(x < -a, x + a, x * 0)), 1),
    "shrink": Oracle(lambda x, a, b: np.where(x > a, x - b, np.where(x < -a, x + b, np.where(x != x, x, 0))), 1),
    "hardsigmoid": Oracle(lambda x: (np.clip(x / 6 + 0.5, 0, 1), np.abs(x / 6) + 0.5), 2),
    "hardswish": Oracle(lambda x: (np.where(x >= 3, x, np.where(x <= -3, 0, x * (x + 3) / 6)), np.abs(x) + x * x), 3),
    "sigmoid": Oracle(sigmoid, 4),
    "log_sigmoid": Oracle(lambda x: -softplus(-x), 6),
    "silu": Oracle(lambda x: x * sigmoid(x), 6),
    "swish": Oracle(lambda x, a: (x * sigmoid(a * x), np.abs(x * sigmoid(a * x)) * (1 + np.minimum(np.abs(a * x), 200))), 6),
    "mish": Oracle(mish, 8),
    "gelu": Oracle(gelu, 12),
    "gelu_tanh": Oracle(gelu_tanh, 8),
    "fast_gelu": Oracle(lambda x: (x * sigmoid(1.702 * x), np.abs(x * sigmoid(1.702 * x)) * (1 + 2 * np.abs(x))), 6),
    "softplus": Oracle(lambda x, a, b: np.where(a * x > b, x, softplus(a * x) / a), 8, numbers=(2, 3)),
    "elu_of_alpha": Oracle(lambda x, a: np.where(x > 0, x, a * below(x)), 5),
    "elu": Oracle(lambda x, a, b, c: np.where(x > 0, b * x, a * b * below(c * x)), 8),
    "celu": Oracle(lambda x, a: np.where(x > 0, x, a * below(x / a)), 8),
    "selu": Oracle(lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * below(x)), 9),
    "glu": Oracle(lambda x, y: x * sigmoid(y), 6),
    "swiglu": Oracle(lambda x, y: x * sigmoid(x) * y, 8),
    "situ_glu": Oracle(lambda x, y, a, b: bounded(x, a) * sigmoid(x) * (bounded(y, b) if b > 0 else y), 16),
    "situ_glu_backward": Oracle(situ_gradients, 20, many=True),
    "fatrelu_mul": Oracle(lambda x, y, a: np.where(x < a, 0, x) * y, 1),
    "gelu_mul": Oracle(lambda x, y: gelu(x) * y, 14),
    "gelu_tanh_mul": Oracle(lambda x, y: (gelu_tanh(x)[0] * y, gelu_tanh(x)[1] * np.abs(y)), 10),
    "gelu_gate": Oracle(lambda x, y: ((gelu(x) * y, np.abs(gelu(x) * y)), (gelu(x), np.abs(gelu(x)))), 14, many=True),
    "gelu_tanh_gate": Oracle(lambda x, y: ((gelu_tanh(x)[0] * y, gelu_tanh(x)[1] * np.abs(y)), gelu_tanh(x)), 10, many=True),
    "swiglu_backward": Oracle(lambda g, x, y: (
        slope_and_scale(g * y, x, sigmoid(x) * (1 + x * sigmoid(-x)), x), (g * x * sigmoid(x), np.abs(g * x * sigmoid(x)))), 12, many=True),
    "geglu_backward": Oracle(lambda g, x, y, e: (slope_and_scale(g * y, x, normal(x) + x * density(x), x), (g * e, np.abs(g * e))), 16,
                             many=True),
    "geglu_tanh_backward": Oracle(geglu_tanh_gradients, 9, many=True),
    "rotate": Oracle(lambda x, y, c, d, s, t: (sum_of(x * c, -y * s), sum_of(y * d, x * t)), 4, many=True),
    "rotate_back": Oracle(lambda x, y, c, d, s, t: (sum_of(x * c, y * t), sum_of(y * d, -x * s)), 4, many=True),
    # activation gradients
    "threshold_backward": Oracle(lambda g, x, a: np.where(x > a, g, 0), 0),
    "clipped_relu_backward": Oracle(lambda g, x, a, b: np.where(np.isnan(x), x, np.where((x > 0) & (x <= a), g, 0)), 0),
    "relu6_backward": Oracle(lambda g, x: np.where((x > 0) & (x <= 6), g, 0), 0),
    "leaky_relu_backward": Oracle(lambda g, x, a: np.where(x > 0, g, a * g), 1),
    "prelu_backward": Oracle(lambda g, x, w: np.where(x > 0, g, w * g), 1),
    "prelu_weight_backward": Oracle(lambda g, x: np.where(x > 0, 0, g * x), 1),
    "shrink_backward": Oracle(lambda g, x, a: np.where((x > a) | (x < -a), g, 0), 0),
    "shrink_slope": Oracle(lambda g, x, a: np.where(np.abs(x) <= a, 0, g), 0),
    "hardtanh_backward": Oracle(lambda g, x, a, b: np.where((x < a) | (x > b), 0, g), 0, numbers=(-0.5, 1.5)),
    "hardsigmoid_backward": Oracle(lambda g, x: np.where((x > -3) & (x < 3), g / 6, 0), 1),
    "hardswish_backward": Oracle(lambda g, x: (g * np.where(x < -3, 0, np.where(x <= 3, x / 3 + 0.5, 1)),
                                                    np.abs(g) * (np.abs(x) + 1)), 3),
    "hardswish_backward_v2": Oracle(lambda g, x: (g * np.where(x <= -3, 0, np.where(x < 3, x / 3 + 0.5, 1)),
                                                       np.abs(g) * (np.abs(x) + 1)), 3),
    "hardswish_slope": Oracle(lambda g, x: g * np.where(x > 3, 1, np.where(x < -3, 0, (2 * x + 3) / 6)), 3),
    "sigmoid_slope": Oracle(lambda g, y: g * (y * (1 - y)), 3),
    "sigmoid_backward": Oracle(lambda g, y: triple(g, y, 1 - y), 8),
    "tanh_slope": Oracle(lambda g, y: (g * (1 - y * y), np.abs(g) * (1 + y * y)), 4),
    "tanh_backward": Oracle(lambda g, y: g * ((1 - y) * (1 + y)), 5),
    "log_sigmoid_backward": Oracle(lambda g, x: g * sigmoid(-x), 6),
    "glu_backward": Oracle(glu_gradients, 10, many=True),
    # 1 - s is rounded for itself, which counts as often as the exponent is large: up to 10
    "swish_slope": Oracle(lambda g, x, a: slope_and_scale(g, x, sigmoid(a * x) * (1 + a * x * sigmoid(-a * x)), a * x), 20),
    "silu_backward": Oracle(lambda g, x: slope_and_scale(g, x, sigmoid(x) * (1 + x * sigmoid(-x)), x), 10),
    "swish_backward": Oracle(lambda g, x, a: slope_and_scale(g, x, sigmoid(a * x) * (1 + a * x * sigmoid(-a * x)), a * x), 12),
    "mish_backward": Oracle(lambda g, x: slope_and_scale(g, x, mish_slope(x), x), 14),
    "gelu_backward": Oracle(lambda g, x: slope_and_scale(g, x, normal(x) + x * density(x), x), 16),
    "gelu_slope": Oracle(rounded_gelu_gradient, 10),
    "gelu_tanh_backward": Oracle(gelu_tanh_gradient, 8),
    "softplus_backward": Oracle(lambda g, x, a, b: np.where(a * x > b, g, g * sigmoid(a * x)), 7, numbers=(2, 3)),
    "elu_backward": Oracle(lambda g, x, a, b, c: g * np.where(x > 0, b, a * b * c * np.exp(np.minimum(c * x, 0))), 8),
    "elu_result_backward": Oracle(lambda g, y, a, b, c: (g * np.where(y > 0, b, c * (y + a * b)),
                                                         np.abs(g) * (b + c * (np.abs(y) + a * b))), 6),
    "elu_result_slope": Oracle(lambda g, y, a: (g * np.where(y >= 0, 1, y + a), np.abs(g) * (np.abs(y) + np.abs(a) + 1)), 2),
    "elu_slope": Oracle(lambda g, x, a: np.where(x > 0, g, g * a * np.exp(x)), 5),
    "maximum_backward": Oracle(lambda x, y, g: (np.where(x > y, g, 0), np.where(x > y, 0, g)), 0, many=True),
    "minimum_backward": Oracle(lambda x, y, g: (np.where(x < y, g, 0), np.where(x < y, 0, g)), 0, many=True),
    "selu_backward": Oracle(lambda g, y: (g * np.where(y < 0, y + SELU_SCALE * SELU_ALPHA, SELU_SCALE),
                                          np.abs(g) * (np.abs(np.nan_to_num(y)) + 2)), 5),
    # optimizer: positive second moments, as they are in use
    "momentum": Oracle(momentum, 6, (0.1, 0.9, 1), many=True),
    "sgd": Oracle(sgd, 8, (0.1, 0.25, 0.9, 1, 0.01), many=True),
    "fused_sgd": Oracle(fused_sgd, 8, (4, 0.01, 0.75, 0.1, 0.25, 1, 1, 0), many=True),
    "fused_sgd_plain": Oracle(fused_sgd_plain, 8, (4, 0.01, 0.75, 0.1, 0.25, 1, 1, 0), many=True),
    "adam": Oracle(adam, 12, (0.875, 0.96875, 1e-3, 0.1, 1), ((-4, 4), (0.0625, 4), (-4, 4), (-4, 4)), many=True),
    "adam_decay": Oracle(adam_decay, 12, (0.1, 0.875, 0.96875, 1e-3, 0.1), ((-4, 4), (-4, 4), (0.0625, 4), (-4, 4)), many=True),
    "loss_scale": Oracle(loss_scale, 2, (2, 0.5, 3, 6), ((0, 4), (-4, 4), (-1, 1)), many=True),
    "adam_w": Oracle(adam_w, 12, (0.9, 0.99, 0.01, 0.1, 0.75, 0.875, 1e-3, 1), ADAM, many=True),
    "adam_w_amsgrad": Oracle(adam_w, 12, (0.9, 0.99, 0.01, 0.1, 0.75, 0.875, 1e-3, 0), ADAM, many=True),
    "adam_w_v2": Oracle(adam_w_v2, 16, (3, 0.01, 0.875, 0.96875, 0.1, 1e-3, 1), ADAM, many=True),
    "adam_w_v2_amsgrad": Oracle(adam_w_v2_largest, 16, (3, 0.01, 0.875, 0.96875, 0.1, 1e-3, 0), ADAM, many=True),
    # Their count is that of this step.
    "fused_adam_w": Oracle(lambda w, g, m, v, t, *n: adam_w_v2(w, g / n[6], m, v, t - 1, *n[:6]), 18,
                           (3, 0.01, 0.875, 0.96875, 0.1, 1e-3, 1, 4), ADAM, many=True),
    "fused_adam_w_amsgrad": Oracle(lambda w, g, m, v, large, t, *n: adam_w_v2_largest(w, g / n[6], m, v, large, t - 1, *n[:6]), 18,
                                   (3, 0.01, 0.875, 0.96875, 0.1, 1e-3, 0, 0.5), ADAM, many=True),
    "ema_adam": Oracle(ema_adam, 16, (2, 0.01, 0.75, 0.875, 0.96875, 1e-3, 1, 1, 0.1), ADAM, many=True),
    # complex
    "modulus": Oracle(np.abs, 6),
    "real": Oracle(np.real, 0),
}
