"""Softmax, its logarithm and their gradients, against the formulas in float64."""

import numpy
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, rounded, tensor

EPSILON = {"F32": 2.0**-23, "F16": 2.0**-10, "BF16": 2.0**-7, "F64": 2.0**-50}
SHAPES = [((3, 5, 7), 1), ((3, 5, 7), -1), ((9, 40), 0), ((4, 1031), 1), ((), 0), ((6,), -1), ((2, 0), 1), ((0, 3), 1)]


def log_softmax(x, axis):
    x = x - x.max(axis, keepdims=True, initial=-numpy.inf)
    return x - numpy.log(numpy.exp(x).sum(axis, keepdims=True))


def softmax(x, axis):
    e = numpy.exp(x - x.max(axis, keepdims=True, initial=-numpy.inf))
    return e / e.sum(axis, keepdims=True)


def calls():
    for number, kind in enumerate(["F32", "F16", "BF16", "F64"]):
        for index, (shape, dim) in enumerate(SHAPES):
            values = numpy.random.default_rng([number, index]).uniform(-6, 6, shape)
            out = kind if index % 3 else ["F16", "F32"][number % 2]
            yield rounded(values, kind), kind, dim, out, LAYOUTS[(index + number) % 3]


def line(values):
    """A scalar is a line of one element."""
    return values.reshape(values.shape or (1,))


def close(actual, expected, kinds, scale, message):
    epsilon = max(EPSILON[kind] for kind in kinds)
    numpy.testing.assert_allclose(numpy.asarray(actual).reshape(expected.shape), expected, 4 * epsilon, scale * epsilon,
                                  True, message)


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
def test_forward(name):
    for values, kind, dim, out, layout in calls():
        expected = (softmax if name == "Softmax" else log_softmax)(line(values), dim)
        actual = call(name, self=tensor(values, kind, layout), dim=dim, out=empty(values.shape, out, layout))
        computed = "F32" if kind != "F64" else kind
        close(actual, expected, (computed, out), 2**-14 if name == "Softmax" else 4,
              f"{name} {kind} {out} {values.shape} {dim} {layout}")  # fmt: skip


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
def test_backward(name):
    for values, kind, dim, out, layout in calls():
        if kind == "F64":
            continue
        result = rounded((softmax if name == "Softmax" else log_softmax)(line(values), dim), kind)
        gradient = rounded(numpy.random.default_rng(5).uniform(-2, 2, result.shape), kind)
        if name == "Softmax":
            expected = result * (gradient - (gradient * result).sum(dim, keepdims=True))
        else:
            expected = gradient - gradient.sum(dim, keepdims=True) * numpy.exp(result)
        shape = values.shape
        actual = call(name + "Backward", gradOutput=tensor(gradient.reshape(shape), kind, layout),
                      output=tensor(result.reshape(shape), kind, layout), dim=dim, out=empty(shape, out, layout))
        scale = 1 + abs(gradient).sum() * 2.0**-10
        close(actual, expected, ("F32", out), scale, f"{name} {kind} {out} {shape} {dim} {layout}")


def test_special_numbers():
    inf, nan = numpy.inf, numpy.nan
    rows = [[0.0, -inf, 0.0], [1e10, 0.0, 1e10], [-inf, -inf, -inf], [0.0, nan, 0.0], [inf, 0.0, 0.0],
            [1000.0, 0.0, -1000.0]]  # fmt: skip
    half = numpy.full(3, nan)
    expected = [[0.5, 0, 0.5], [0.5, 0, 0.5], half, half, half, [1, 0, 0]]
    for kind in ("F32", "F64"):
        actual = call("Softmax", self=tensor(rows, kind), dim=-1, out=empty((6, 3), kind))
        numpy.testing.assert_array_equal(numpy.asarray(actual), expected)
        actual = call("LogSoftmax", self=tensor(rows[:1], kind), dim=-1, out=empty((1, 3), kind))
        numpy.testing.assert_allclose(numpy.asarray(actual), [[-numpy.log(2), -inf, -numpy.log(2)]], 1e-6)


def test_double_gradients():
    rng = numpy.random.default_rng(4)
    x, gradient = rng.normal(0, 1, (5, 7)), rng.normal(0, 1, (5, 7))
    result = numpy.exp(x) / numpy.exp(x).sum(1, keepdims=True)
    plain = result * (gradient - (gradient * result).sum(1, keepdims=True))
    of_log = gradient - gradient.sum(1, keepdims=True) * result
    for name, given, expected in (("Softmax", result, plain), ("LogSoftmax", numpy.log(result), of_log)):
        actual = call(name + "Backward", gradOutput=tensor(gradient, "F64"), output=tensor(given, "F64"), dim=1,
                      out=empty((5, 7), "F64"))  # fmt: skip
        numpy.testing.assert_allclose(actual, expected, atol=1e-14)


@pytest.mark.parametrize("shape, of_mask",
                         [((2, 3, 4, 5), (2, 1, 4, 5)), ((1, 2, 3, 1031), (1, 2, 3, 1031)),
                          ((2, 2, 1, 1), (1, 1, 1, 1)),
                          ((0, 2, 3, 4), (1, 1, 3, 4)), ((2, 2, 300, 64), (1, 2, 300, 64))])  # fmt: skip
def test_scaled_and_masked(shape, of_mask):
    random = numpy.random.default_rng(7)
    for kind, layout, scale in zip(["F32", "F16", "BF16"], LAYOUTS, [0.125, 1.0, -2.0]):
        x, dy = (rounded(random.uniform(-6, 6, shape), kind) for _ in range(2))
        mask = random.random(of_mask) < 0.4
        mask[..., :1, :] = mask.shape[-2] > 2  # a row without anything
        expected = softmax(numpy.where(mask, -10000.0, scale * x), -1)
        given = {"mask": tensor(mask, "B", layout), "scale": scale}
        y = call("ScaledMaskedSoftmax", x=tensor(x, kind, layout), fixedTriuMask=False, y=empty(shape, kind, layout),
                 **given)  # fmt: skip
        close(y, expected, ("F32", kind), 2**-14, f"{kind} {shape}")
        result = rounded(expected, kind)
        slopes = numpy.where(mask, 0, scale * (dy - (dy * result).sum(-1, keepdims=True)) * result)
        own = call("ScaledMaskedSoftmaxBackward", gradOutput=tensor(dy, kind, layout), y=tensor(result, kind, layout),
                   fixTriuMask=False, out=empty(shape, kind, layout), **given)  # fmt: skip
        close(own, slopes, ("F32", kind), 4, f"{kind} {shape}")


@pytest.mark.parametrize("shape, of_mask, of_bias", [
    ((6, 3, 4, 5), (2, 4, 5), (3, 4, 5)), ((2, 3, 2, 4, 5), (3, 1, 4, 5), (1, 2, 4, 5)),
    ((3, 2, 7, 49), (1, 3, 1, 7, 49), (1, 1, 2, 7, 49)),
    ((4, 2, 3, 1031), None, (2, 3, 1031)), ((2, 4, 3, 49, 49), None, (1, 3, 49, 49)),
    ((8, 4, 49, 49), (4, 49, 49), (4, 49, 49)),
    ((2, 4, 3, 4, 5), (4, 4, 5), (3, 4, 5)), ((0, 2, 3, 4), (1, 3, 4), (2, 3, 4)), ((0, 2, 3, 4), None, (2, 3, 4))])  # fmt: skip
def test_windows(shape, of_mask, of_bias):
    """x's windows come in order of the mask's, so that window i of x [B * W, …] has plane i % W."""
    random = numpy.random.default_rng(8)
    for kind, layout, scale in zip(["F32", "F16", "BF16"], LAYOUTS, [0.125, 1.0, -2.0]):
        x, bias = (random.integers(-64, 65, sizes) / 16 for sizes in (shape, of_bias))  # their sum is exact
        shifted = scale * x + bias.reshape(of_bias[-3:])
        mask = None
        if of_mask is not None:
            planes = numpy.where(random.random(of_mask) < 0.3, -100.0, 0.25)
            mask = tensor(planes, kind, layout)
            rows, columns = shape[-2:]
            windows = planes.size // (rows * columns)
            shifted = (shifted.reshape(-1, windows, *shape[-3:]) + planes.reshape(windows, 1, rows, columns)).reshape(shape)
        out = call("MaskedSoftmaxWithRelPosBias", x=tensor(x, kind, layout), attenMaskOptional=mask,
                   relativePosBias=tensor(bias, kind, layout), scaleValue=scale, innerPrecisionMode=0,
                   out=empty(shape, kind, layout))  # fmt: skip
        close(out, softmax(shifted, -1), ("F32", kind), 2**-14, f"{kind} {shape}")
