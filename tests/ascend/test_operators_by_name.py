"""Operators by name beside NumPy in float64: what the PyTorch adapter runs so, and the plain ones."""

import pathlib
import re

import numpy as np
import pytest
from understudy.ascend import ffi, lib

from tests.ascend.test_aclnn_deformable import samples
from tests.conformance.ascend.by_name import Constant, call, constant, results

ROOT = pathlib.Path(__file__).parents[2]
RANDOM = np.random.default_rng(7)


def drawn(*shape, dtype="float32"):
    return RANDOM.normal(size=shape).astype(dtype)


def like(*shape, dtype="float32"):
    return np.empty(shape, dtype)


def close(actual, expected, dtype="float32"):
    step = {"float32": 2.0**-23, "float16": 2.0**-10}[dtype]
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=16 * step, atol=16 * step * np.abs(expected).max(initial=0))


# ---- one tensor, or two ----

POSITIVE = {"Log", "Log1p", "Reciprocal", "Rsqrt", "Sqrt"}
UNARY = {
    "Abs": np.abs, "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin, "Asinh": np.arcsinh, "Atan": np.arctan,
    "Atanh": np.arctanh, "Ceil": np.ceil, "Cos": np.cos, "Cosh": np.cosh, "Exp": np.exp, "Expm1": np.expm1, "Floor": np.floor,
    "Log": np.log, "Log1p": np.log1p, "Neg": np.negative, "Reciprocal": np.reciprocal, "Relu": lambda x: np.maximum(x, 0),
    "Rsqrt": lambda x: 1 / np.sqrt(x), "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Sign": np.sign, "Sin": np.sin,
    "Sinh": np.sinh, "Sqrt": np.sqrt, "Tan": np.tan, "Tanh": np.tanh,
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))), "Swish": lambda x: x / (1 + np.exp(-x)),
}  # fmt: skip
BINARY = {
    "Add": np.add, "Atan2": np.arctan2, "Maximum": np.maximum, "Minimum": np.minimum, "Mul": np.multiply, "RealDiv": np.divide,
    "Sub": np.subtract, "Pow": np.power,
    "Equal": np.equal, "Greater": np.greater, "GreaterEqual": np.greater_equal, "Less": np.less, "LessEqual": np.less_equal,
    "NotEqual": np.not_equal, "LogicalAnd": np.logical_and, "LogicalOr": np.logical_or,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_one_tensor(name):
    x = drawn(3, 7)
    if name in POSITIVE:
        x = np.abs(x) + 0.5
    elif name == "Acosh":
        x = np.abs(x) + 1.5
    elif name in ("Acos", "Asin", "Atanh"):
        x = np.tanh(x) * np.float32(0.9)
    close(results(name, [x], [like(3, 7)])[0], UNARY[name](x.astype(np.float64)))


def test_the_error_function_and_its_complement():
    x = np.array([-1.0, 0.0, 0.5, 2.0], np.float32)
    erf = [-0.8427007929497149, 0.0, 0.5204998778130465, 0.9953222650189527]  # tables of the function
    np.testing.assert_allclose(results("Erf", [x], [x])[0], erf, rtol=2e-7)
    np.testing.assert_allclose(results("Erfc", [x], [x])[0], [1.8427007929497149, 1, 0.4795001221869535, 0.004677734981047266], rtol=1e-6)


def test_a_truth_value_is_turned():
    np.testing.assert_array_equal(results("LogicalNot", [np.array([True, False])], [like(2, dtype="bool")])[0], [False, True])


@pytest.mark.parametrize("name", BINARY)
def test_two_tensors(name):
    a, b = np.abs(drawn(3, 1)) + 0.25, np.abs(drawn(4)) + 0.25
    b[1] = a[1, 0]
    if name.startswith("Logical"):
        a, b = a > 0.8, b > 0.8
    expected = BINARY[name](a.astype(np.float64), b.astype(np.float64))
    kind = "bool" if expected.dtype == bool else "float32"
    found = results(name, [a, b], [like(3, 4, dtype=kind)])[0]
    np.testing.assert_allclose(found, expected, rtol=2e-6)


# ---- what moves elements ----


@pytest.mark.parametrize("kind", ("float16", "int32", "float32"))
def test_cast(kind):
    x = np.array([[1.5, -2.25], [300.0, 0.0]], np.float32)
    code = {"float16": 1, "int32": 3, "float32": 0}[kind]
    np.testing.assert_array_equal(results("Cast", [x], [like(2, 2, dtype=kind)], {"dst_type": code})[0], x.astype(kind))


def test_view_copy():
    """Every second column of a matrix from a transposed one, from element 1 on; what lies between stays."""
    to, source = drawn(3, 8), drawn(4, 3)
    view = lambda shape, strides, offset: [constant(*shape), constant(*strides), constant(offset)]  # noqa: E731
    found = results("ViewCopy", [to, *view((3, 4), (8, 2), 1), source, *view((3, 4), (1, 3), 0)], [to], in_place=True)[0]
    expected = to.copy()
    expected[:, 1::2] = source.T
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("placed", (False, True))
@pytest.mark.parametrize("dtype", ("int32", "int64"))
def test_transpose(placed, dtype):
    x = drawn(2, 3, 5)
    order = Constant(np.array([2, 0, 1], dtype), placed)
    np.testing.assert_array_equal(results("Transpose", [x, order], [like(5, 2, 3)])[0], x.transpose(2, 0, 1))


@pytest.mark.parametrize("first", (True, False))
def test_confusion_transpose(first):
    x = drawn(2, 3, 4)
    expected = x.transpose(1, 0, 2).reshape(6, 4) if first else x.reshape(6, 4).transpose(1, 0)
    attributes = {"perm": (1, 0, 2) if first else (1, 0), "shape": (6, 4), "transpose_first": first}
    np.testing.assert_array_equal(results("ConfusionTransposeD", [x], [like(*expected.shape)], attributes)[0], expected)


def test_slices():
    x = drawn(5, 7)
    np.testing.assert_array_equal(results("Slice", [x, constant(1, 2), constant(3, -1)], [like(3, 5)])[0], x[1:4, 2:])
    np.testing.assert_array_equal(results("Slice", [x, constant(5, 0), constant(0, 7)], [like(0, 7)])[0], x[5:])
    for rows, columns in ((slice(1, 5, 2), slice(0, 7, 3)), (slice(-1, -6, -1), slice(-2, 100, 1)), (slice(3, 1, 1), slice(0, 7, 1))):
        expected = x[rows, columns]
        ends = [constant(*(getattr(part, end) for part in (rows, columns))) for end in ("start", "stop", "step")]
        np.testing.assert_array_equal(results("StridedSlice", [x, *ends], [like(*expected.shape)], {"begin_mask": 0})[0], expected)


@pytest.mark.parametrize("dtype", ("float16", "int64", "bool"))
@pytest.mark.parametrize("shape", ((), (0, 3), (5, 7)))
def test_identity(shape, dtype):
    x = drawn(*shape).astype(dtype)
    np.testing.assert_array_equal(results("Identity", [x], [np.zeros_like(x)])[0], x)


def test_as_strided():
    x = drawn(12)
    found = results("AsStrided", [x, constant(3, 2), constant(4, 0), constant(3)], [like(3, 2)])[0]
    np.testing.assert_array_equal(found, np.stack([x[[3, 7, 11]]] * 2, 1))


def test_broadcast_to():
    x = drawn(3, 1)
    np.testing.assert_array_equal(results("BroadcastTo", [x, constant(2, 3, 4)], [like(2, 3, 4)])[0], np.broadcast_to(x, (2, 3, 4)))


def test_pad():
    x = drawn(2, 3)
    np.testing.assert_array_equal(results("Pad", [x, constant(1, 0, 2, 3)], [like(3, 8)])[0], np.pad(x, ((1, 0), (2, 3))))


@pytest.mark.parametrize("value", (np.array(2.5, np.float32), Constant(np.array(2.5, np.float32)), Constant(np.array([2.5], np.float32), True)))
def test_fill(value):
    np.testing.assert_array_equal(results("Fill", [constant(2, 3), value], [like(2, 3)])[0], np.full((2, 3), 2.5, np.float32))


def test_fill_of_no_dimensions():
    assert results("Fill", [constant(1), np.array(2.5, np.float32)], [like()])[0] == np.float32(2.5)


@pytest.mark.parametrize("dtype", ("float32", "float16", "int32", "int8"))
def test_ranges_of_rows_are_filled(dtype):
    """As the adapter's example, whose one range is of one element of each of the first three rows; then ranges that meet or are empty."""
    x = (100 * drawn(4, 5)).astype(dtype)
    for starts, ends, values in (([[0, 1, 2, 0]], [[1, 2, 3, 0]], [1]), ([[0, 2, 4, 5], [3, 1, 0, 0]], [[5, 1, 5, 5], [4, 3, 0, 5]], [7, 9]),
                                 (np.empty((0, 4)), np.empty((0, 4)), [])):  # fmt: skip
        expected = x.copy()
        for start, end, value in zip(starts, ends, values):
            for row in range(4):
                expected[row, start[row] : end[row]] = value
        given = [np.array(starts, np.int32), np.array(ends, np.int32), np.array(values, dtype)]
        np.testing.assert_array_equal(results("MaskedFillRange", [x, *given], [x], {"axis": 1})[0], expected)
    row = results("MaskedFillRange", [x[0], np.array([[1]], np.int32), np.array([[3]], np.int32), np.array([5], dtype)], [x[0]], {"axis": -1})
    np.testing.assert_array_equal(row[0], np.concatenate([x[0, :1], np.full(2, 5, dtype), x[0, 3:]]))


def test_a_range_that_leaves_its_row_is_a_fault():
    x, value = drawn(2, 3), np.array([1], np.float32)
    for starts, ends, status in (([0, 0], [3, 3], 0), ([0, -1], [3, 3], 507015), ([0, 0], [3, 4], 507015)):
        given = [x, np.array([starts], np.int32), np.array([ends], np.int32), value]
        assert call("MaskedFillRange", given, [x])[0].status == status


@pytest.mark.parametrize("axis", (-1, 0))
def test_one_hot(axis):
    x, on, off = np.array([2, 0, 3], np.int32), np.array([5.0], np.float32), np.array([-1.0], np.float32)
    expected = np.where(x[:, None] == np.arange(4), 5.0, -1.0)
    expected = expected if axis == -1 else expected.T
    for name, given, attributes in (("OneHotD", [], {"depth": 4}), ("OneHot", [constant(4)], {})):
        found = results(name, [x, *given, on, off], [like(*expected.shape)], {"axis": axis, **attributes})[0]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name, inputs, outputs", (
    ("NPUAllocFloatStatus", [], [like(8)]), ("NPUGetFloatStatus", [like(8)], [like(8)]), ("NPUClearFloatStatus", [like(8)], [like(8)]),
    ("NPUGetFloatStatusV2", [], [like(8, dtype="int32")]), ("NPUClearFloatStatusV2", [], []),
))  # fmt: skip
def test_no_overflow_is_ever_told(name, inputs, outputs):
    for found in results(name, inputs, outputs):
        np.testing.assert_array_equal(found, np.zeros(8))


# ---- what computes ----


@pytest.mark.parametrize("name, function", (("ArgMaxWithValue", np.argmax), ("ArgMinWithValue", np.argmin)))
@pytest.mark.parametrize("keeps", (True, False))
def test_extrema_with_their_places(name, function, keeps):
    x = drawn(3, 5)
    shape = (3, 1) if keeps else (3,)
    places, values = results(name, [x], [like(*shape, dtype="int32"), like(*shape)], {"dimension": 1, "keep_dims": keeps})
    np.testing.assert_array_equal(places.ravel(), function(x, 1))
    np.testing.assert_array_equal(values.ravel(), np.take_along_axis(x, function(x, 1)[:, None], 1).ravel())
    slope = drawn(*shape)
    expected = np.zeros_like(x)
    np.put_along_axis(expected, function(x, 1)[:, None], slope.reshape(3, 1), 1)
    np.testing.assert_array_equal(results("ArgMaxGrad", [x, places, slope], [like(3, 5)], {"dimension": 1})[0], expected)


def test_gradients_of_activations():
    x, slope = drawn(4, 3), drawn(4, 3)
    z, step = x.astype(np.float64), 1e-6
    for name, function, inputs in (("SwishGrad", UNARY["Swish"], [slope, x, x]), ("MishGrad", UNARY["Mish"], [slope, x])):
        expected = slope * (function(z + step) - function(z - step)) / (2 * step)
        np.testing.assert_allclose(results(name, inputs, [like(4, 3)])[0], expected, rtol=1e-5, atol=1e-7)


def test_swish_of_another_scale():
    x = drawn(4, 3)
    close(results("Swish", [x], [like(4, 3)], {"scale": 1.702})[0], x / (1 + np.exp(-np.float64(np.float32(1.702)) * x)))


def test_layer_norm():
    x, gamma, beta = drawn(3, 2, 4), drawn(2, 4), drawn(2, 4)
    y, mean, deviation = results("LayerNormV3", [x, gamma, beta], [like(3, 2, 4), like(3, 1, 1), like(3, 1, 1)],
                                 {"begin_norm_axis": 1, "begin_params_axis": -2, "epsilon": 0.125})  # fmt: skip
    z = x.astype(np.float64)
    center = z.mean((1, 2), keepdims=True)
    scale = 1 / np.sqrt(z.var((1, 2), keepdims=True) + 0.125)
    close(y, (z - center) * scale * gamma + beta)
    close(mean, center)
    close(deviation, scale)


@pytest.mark.parametrize("axis", (-1, 1))
def test_softmax(axis):
    x = drawn(2, 3, 5)
    powers = np.exp(x.astype(np.float64))
    close(results("SoftmaxV2", [x], [like(2, 3, 5)], {"axes": [axis]})[0], powers / powers.sum(axis, keepdims=True))


def test_scaled_masked_softmax_and_its_gradient():
    x, slope, mask = drawn(1, 2, 32, 32, dtype="float16"), drawn(1, 2, 32, 32, dtype="float16"), RANDOM.random((1, 1, 32, 32)) < 0.3
    attributes = {"scale": 0.5, "fixed_triu_mask": False}
    scores = np.where(mask, -10000.0, x.astype(np.float64) * 0.5)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    expected = powers / powers.sum(-1, keepdims=True)
    y = results("ScaledMaskedSoftmax", [x, mask], [x], attributes)[0]
    close(y, expected, "float16")
    z = y.astype(np.float64)
    by_x = np.where(mask, 0, 0.5 * (z * slope - z * (z * slope).sum(-1, keepdims=True)))
    close(results("ScaledMaskedSoftmaxGrad", [slope, y, mask], [x], attributes)[0], by_x, "float16")


@pytest.mark.parametrize("axes, keeps", (((0,), False), ((1, -1), True), ((0, 1, 2), False)))
def test_sums_along_axes(axes, keeps):
    x = drawn(3, 5, 7)
    expected = x.astype(np.float64).sum(axes, keepdims=keeps)
    scale = np.abs(x).sum(axes, keepdims=keeps).max()
    found = results("ReduceSum", [x, constant(*axes)], [like(*expected.shape)], {"keep_dims": keeps})[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=scale * 2.0**-20)


@pytest.mark.parametrize("shape, axis", (((3, 9), -1), ((3, 9), 0), ((7,), 0), ((), -1), ((0, 4), 1), ((4, 0), 1)))
@pytest.mark.parametrize("dtype", ("float32", "float16", "int32"))
def test_sorted_values(shape, axis, dtype):
    x = (8 * drawn(*shape)).astype(dtype)
    expected = np.sort(x, axis) if shape else x
    for descending in (False, True):
        wanted = np.flip(expected, axis) if descending and shape else expected
        np.testing.assert_array_equal(results("SortV2", [x], [x], {"axis": axis, "descending": descending})[0], wanted)


@pytest.mark.parametrize("ahead", (False, True))
@pytest.mark.parametrize("shape", ((3, 17), (), (0, 2)))
def test_a_step_of_adam(ahead, shape):
    w, m, gradient = drawn(*shape), drawn(*shape), drawn(*shape)
    v = np.square(drawn(*shape))
    numbers = (0.9**3, 0.99**3, 0.01, 0.9, 0.99, 1e-3)
    power1, power2, rate, beta1, beta2, epsilon = (float(np.float32(one)) for one in numbers)
    new_m, new_v = (kept + (fresh - kept) * (1 - beta) for kept, fresh, beta in (
        (m.astype(np.float64), gradient, beta1), (v.astype(np.float64), gradient.astype(np.float64) ** 2, beta2)))  # fmt: skip
    direction = beta1 * new_m + (1 - beta1) * gradient if ahead else new_m
    expected = w - rate * np.sqrt(1 - power2) / (1 - power1) * direction / (np.sqrt(new_v) + epsilon)
    given = [w, m, v, *(host(one) for one in numbers), gradient]
    for one, wanted in zip(results("ApplyAdamD", given, [w, m, v], {"use_locking": False, "use_nesterov": ahead}), (expected, new_m, new_v)):
        close(one, wanted)


# ---- dropout ----


def host(value, dtype="float32"):
    return Constant(np.array(value, dtype), True)


@pytest.mark.parametrize("shape", ((64, 63), (4032,)))
def test_masks_of_bytes(shape):
    """Of as many as these, the share of ones is within 5 standard deviations of the probability; another seed gives others."""
    size, masks = Constant(np.array([64, 63]), True), []
    for seed in (1, 2, 1):
        masks += results("DropOutGenMaskV3", [size, host(0.75)], [like(*shape, dtype="uint8")], {"seed": seed, "seed2": 0})
        assert set(masks[-1].ravel().tolist()) == {0, 1}
        assert abs(masks[-1].mean() - 0.75) < 5 * (0.75 * 0.25 / 4032) ** 0.5
    assert (masks[0] != masks[1]).any() and (masks[0] == masks[2]).all()
    for chance in (0, 1):
        found = results("DropOutGenMaskV3", [size, host(chance, "float16")], [like(*shape, dtype="uint8")], {"seed": 3})[0]
        np.testing.assert_array_equal(found, np.full(shape, chance))


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_masked_elements(dtype):
    for count in (0, 1, 131):
        x, mask = drawn(count, dtype=dtype), RANDOM.integers(0, 2, count).astype(np.uint8)
        for stays in (0.75, 1):
            expected = x.astype(np.float64) * mask / stays
            close(results("DropOutDoMaskV3", [x, mask, host(stays)], [like(count, dtype=dtype)])[0], expected, dtype)
            bits = np.zeros((count + 127) // 128 * 16, np.uint8)
            bits[: (count + 7) // 8] = np.packbits(mask | (stays == 1), bitorder="little")  # as such masks are made
            expected = expected if stays < 1 else x.astype(np.float64)
            close(results("DropOutDoMask", [x, bits, host(stays)], [like(count, dtype=dtype)])[0], expected, dtype)
        np.testing.assert_array_equal(results("DropOutDoMaskV3", [x, mask, host(0)], [like(count, dtype=dtype)])[0], 0 * x)


def test_softmax_cross_entropy():
    logits, labels = drawn(3, 5), np.eye(5, dtype=np.float32)[[1, 4, 2]]
    powers = np.exp(logits.astype(np.float64))
    chances = powers / powers.sum(1, keepdims=True)
    loss, slope = results("SoftmaxCrossEntropyWithLogits", [logits, labels], [like(3), like(3, 5)])
    close(loss, -(labels * np.log(chances)).sum(1))
    close(slope, chances - labels)


@pytest.mark.parametrize("first", (True, False))
@pytest.mark.parametrize("second", (True, False))
def test_products(first, second):
    a, b = drawn(2, 3, 4), drawn(2, 4, 5)
    given = [np.swapaxes(a, 1, 2) if first else a, np.swapaxes(b, 1, 2) if second else b]
    expected = a.astype(np.float64) @ b
    batches, attributes = {"adj_x1": first, "adj_x2": second}, {"transpose_x1": first, "transpose_x2": second}
    for version in ("", "V2"):
        close(results(f"BatchMatMul{version}", given, [like(2, 3, 5)], batches)[0], expected)
        close(results(f"MatMul{version}", [one[0] for one in given] + [None], [like(3, 5)], attributes)[0], expected[0])


@pytest.mark.parametrize("p", (2.0, -1.0))
def test_gradient_of_distances(p):
    """-1 is the maximum norm."""
    a, b, slope = drawn(3, 4), drawn(5, 4), drawn(3, 5)
    apart = a[:, None].astype(np.float64) - b[None]
    distances = np.sqrt((apart**2).sum(-1)) if p == 2 else np.abs(apart).max(-1)
    repeated = [np.broadcast_to(one, (3, 5, 4)).astype(np.float32) for one in (slope[..., None], a[:, None], b[None], distances[..., None])]
    by_distance = apart / distances[..., None] if p == 2 else np.sign(apart) * (np.abs(apart) == distances[..., None])
    close(results("CdistGrad", repeated, [like(3, 4)], {"p": p})[0], (slope[..., None] * by_distance).sum(1))


def test_gradient_of_no_distances():
    for shape, out in (((0, 5, 4), (0, 4)), ((3, 0, 4), (3, 4)), ((3, 5, 0), (3, 0))):
        found = results("CdistGrad", [like(*shape)] * 4, [like(*out)], {"p": 2.0})[0]
        np.testing.assert_array_equal(found, np.zeros(out))


def test_overlaps_of_boxes():
    boxes = np.array([[0, 0, 2, 2], [1, 1, 3, 4]], np.float32)
    others = np.array([[1, 0, 2, 2], [5, 5, 6, 6], [0, 0, 3, 3]], np.float32)
    for mode in ("iou", "iof"):
        expected = np.empty((3, 2))
        for i, other in enumerate(others):
            for j, box in enumerate(boxes):
                width, height = np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2])
                shared = max(width, 0) * max(height, 0)
                areas = [np.prod(one[2:] - one[:2]) for one in (box, other)]
                expected[i, j] = shared / (sum(areas) - shared if mode == "iou" else areas[1])
        np.testing.assert_allclose(results("Iou", [boxes, others], [like(3, 2)], {"mode": mode, "eps": 0.0})[0], expected, rtol=1e-6)


def test_signs_as_bits():
    x = drawn(16)
    bits = results("SignBitsPack", [x], [like(1, 2, dtype="uint8")], {"size": 1})[0]
    np.testing.assert_array_equal(bits, np.packbits(x >= 0, bitorder="little").reshape(1, 2))
    found = results("SignBitsUnpack", [bits.ravel()], [like(1, 16)], {"size": 1, "dtype": 0})[0]
    np.testing.assert_array_equal(found.ravel(), np.where(x >= 0, 1.0, -1.0))


# ---- convolutions ----


def convolved(x, weights, stride, pad, dilation, groups):
    """Cross-correlation over the axes behind the channels, in float64, tap by tap."""
    axes = x.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + [(one, one) for one in pad])
    lengths = [(x.shape[2 + i] - dilation[i] * (weights.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(axes)]
    out = np.zeros((x.shape[0], weights.shape[0], *lengths))
    each, made = weights.shape[1], weights.shape[0] // groups
    for tap in np.ndindex(*weights.shape[2:]):
        part = x[(..., *(slice(tap[i] * dilation[i], tap[i] * dilation[i] + stride[i] * (lengths[i] - 1) + 1, stride[i]) for i in range(axes)))]
        for group in range(groups):
            rows = slice(group * made, (group + 1) * made)
            out[:, rows] += np.einsum("nc...,kc->nk...", part[:, group * each : (group + 1) * each], weights[(rows, slice(None), *tap)])
    return out


@pytest.mark.parametrize("axes", (2, 3))
def test_convolutions(axes):
    """Gradients are those of the sum of y times a slope, which is linear in x and in the weights."""
    stride, pad, dilation, groups = (2, 1, 1)[:axes], (1, 0, 1)[:axes], (1, 2, 1)[:axes], 2
    x, weights, bias = drawn(2, 4, *(5, 7, 4)[:axes]), drawn(6, 2, *(3, 2, 2)[:axes]), drawn(6)
    expected = convolved(x, weights, stride, pad, dilation, groups)
    attributes = {"strides": (1, 1, *stride), "pads": [one for both in pad for one in (both, both)], "dilations": (1, 1, *dilation),
                  "groups": groups, "data_format": "NCHW" if axes == 2 else "NCDHW"}  # fmt: skip
    close(results(f"Conv{axes}D", [x, weights], [expected.astype(np.float32)], attributes)[0], expected)
    with_bias = expected + bias.reshape(-1, *[1] * axes)
    close(results(f"Conv{axes}D", [x, weights, bias], [with_bias.astype(np.float32)], attributes)[0], with_bias)
    slope = drawn(*expected.shape)
    by_x = results(f"Conv{axes}DBackpropInput", [constant(*x.shape), weights, slope], [x], attributes)[0]
    by_weights = results(f"Conv{axes}DBackpropFilter", [x, constant(*weights.shape), slope], [weights], attributes)[0]
    for found, one, make in ((by_x, x, lambda one: convolved(one, weights, stride, pad, dilation, groups)),
                             (by_weights, weights, lambda one: convolved(x, one, stride, pad, dilation, groups))):
        moved = drawn(*one.shape)
        np.testing.assert_allclose((found.astype(np.float64) * moved).sum(), (make(moved) * slope).sum(), rtol=1e-5)
    spare = tuple((x.shape[2 + i] + 2 * pad[i] - dilation[i] * (weights.shape[2 + i] - 1) - 1) % stride[i] for i in range(axes))
    turned = {**attributes, "output_padding": (0, 0, *spare)}
    found = results(f"Conv{axes}DTranspose", [constant(*x.shape, dtype="int32"), slope, weights], [x], turned)[0]
    np.testing.assert_allclose(found, by_x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape, taps, strides, pads, dilations, parts", (
    ((2, 5, 6, 4), (3, 2), (2, 2), (1, 1, 0, 1), (1, 1), 2), ((1, 4, 7, 2), (1, 3), (1, 3), (0, 2, 2, 1), (1, 2), 1),
    ((0, 4, 4, 2), (2, 2), (1, 1), (0, 0, 0, 0), (1, 1), 1),
))  # fmt: skip
def test_samples_between_pixels(shape, taps, strides, pads, dilations, parts):
    places = [(shape[1 + axis] + sum(pads[2 * axis : 2 * axis + 2]) - (taps[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1
              for axis in range(2)]
    x, moves = drawn(*shape), drawn(shape[0], *places, 3 * parts * taps[0] * taps[1])
    turned = [np.moveaxis(one.astype(np.float64), 3, 1) for one in (x, moves)]
    expected = np.moveaxis(samples(*turned, taps, strides, (pads[0], pads[2]), dilations, parts, places), 1, 3)
    attributes = {"ksize": taps, "strides": (1, *strides, 1), "pads": pads, "dilations": (1, *dilations, 1), "deformable_groups": parts,
                  "data_format": "NHWC", "modulated": True}  # fmt: skip
    close(results("DeformableOffsets", [x, moves], [like(*expected.shape)], attributes)[0], expected)
    slopes = drawn(*expected.shape)
    gradients = results("DeformableOffsetsGrad", [slopes, x, moves], [x, moves], attributes)

    def loss(x, moves):
        turned = [np.moveaxis(one, 3, 1) for one in (x, moves)]
        made = samples(*turned, taps, strides, (pads[0], pads[2]), dilations, parts, places)
        return (np.moveaxis(made, 1, 3) * slopes).sum()

    differences_agree(loss, (x, moves), gradients)


# ---- LSTM ----


def lstm(x, w, b, h, c, there=None, backwards=False):
    """All that DynamicRNN gives, in float64: y, h, c, i, g, f, o, tanh(c) of each step. there [steps, batch, 1]: which sequences have
    the step; of the others the states stay, and y is 0."""
    steps = []
    there = np.ones((*x.shape[:2], 1)) if there is None else there
    for one, has in list(zip(x.astype(np.float64), there))[:: -1 if backwards else 1]:
        sums = np.concatenate([one, h], 1) @ w + b
        i, f, g, o = np.split(sums, 4, 1)
        i, f, o, g = 1 / (1 + np.exp(-i)), 1 / (1 + np.exp(-f)), 1 / (1 + np.exp(-o)), np.tanh(g)
        c = np.where(has, f * c + i * g, c)
        h = np.where(has, o * np.tanh(c), h)
        steps.append((has * h, h, c, i, g, f, o, np.tanh(c)))
    return [np.stack(parts) for parts in zip(*steps[:: -1 if backwards else 1])]


LSTM = {"cell_type": "LSTM", "direction": "UNIDIRECTIONAL", "cell_depth": 1, "use_peephole": False, "keep_prob": 1.0,
        "cell_clip": -1.0, "num_proj": 0, "time_major": True, "activation": "tanh", "forget_bias": 0.0, "gate_order": "ifjo"}  # fmt: skip


@pytest.mark.parametrize("apart", (False, True))
@pytest.mark.parametrize("steps, batch, inputs, cells", ((1, 1, 1, 1), (3, 2, 4, 5), (7, 5, 3, 17)))
def test_lstm(apart, steps, batch, inputs, cells):
    x, w, b = drawn(steps, batch, inputs), drawn(inputs + cells, 4 * cells), drawn(4 * cells)
    h, c = drawn(1, batch, cells), drawn(1, batch, cells)
    weights = [w[:inputs], w[inputs:]] if apart else [w]
    name = "DynamicRNNV2" if apart else "DynamicRNN"
    expected = lstm(x, w, b, h[0], c[0])
    made = [like(steps, batch, cells) for _ in range(8)]
    found = results(name, [x, *weights, b, None, h, c], made, LSTM)
    for one, wanted in zip(found, expected):
        close(one, wanted)
    for one, wanted in zip(results(name, [x, *weights, b], made, LSTM), lstm(x, w, b, 0 * h[0], 0 * c[0])):
        close(one, wanted)
    y, all_h, all_c, i, g, f, o, tanh_c = found
    slopes = [drawn(steps, batch, cells), drawn(1, batch, cells), drawn(1, batch, cells)]
    nothing = np.zeros((), np.float32)
    given = [x, *weights, *([] if apart else [b]), y, h[0], c, all_h, all_c, *slopes, i, g, f, o, tanh_c, nothing, nothing]
    outputs = [*weights, b, x, h[0], c[0]]
    by = results(f"{name}Grad", given, outputs, {**LSTM, "cell_depth": 0, "keep_prob": -1.0})

    def loss(x, w, b, h, c):
        run = lstm(x, w, b, h, c)
        return (run[0] * slopes[0]).sum() + (run[1][-1] * slopes[1]).sum() + (run[2][-1] * slopes[2]).sum()

    gradients = [by[-3], np.concatenate(by[:2]) if apart else by[0], by[-4], by[-2], by[-1]]
    differences_agree(loss, (x, w, b, h[0], c[0]), gradients)


def differences_agree(loss, point, gradients):
    """Along a drawn direction of each operand."""
    point = [one.astype(np.float64) for one in point]
    for place, slope in enumerate(gradients):
        step = 1e-5 * drawn(*slope.shape).astype(np.float64)
        ends = [loss(*point[:place], point[place] + sign * step, *point[place + 1 :]) for sign in (1, -1)]
        np.testing.assert_allclose((slope * step).sum(), (ends[0] - ends[1]) / 2, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("backwards", (False, True))
@pytest.mark.parametrize("lengths", ((3, 3), (1, 4, 0, 2), (5,)))
def test_lstm_of_sequences_of_their_own_lengths(backwards, lengths):
    """Every cell is told which sequences have a step; the last states, whose slopes are given, are at the end of the way."""
    steps, batch, inputs, cells = 5, len(lengths), 4, 3
    x, w, b, h, c = drawn(steps, batch, inputs), drawn(inputs + cells, 4 * cells), drawn(4 * cells), drawn(batch, cells), drawn(batch, cells)
    there = (np.arange(steps)[:, None] < np.array(lengths))[..., None]
    mask = np.repeat(there, cells, 2).astype(np.float16)
    attributes = {**LSTM, "direction": "REDIRECTIONAL" if backwards else "UNIDIRECTIONAL"}
    found = results("DynamicRNN", [x, w, b, mask, h, c], [like(steps, batch, cells)] * 8, attributes)
    for place, (one, wanted) in enumerate(zip(found, lstm(x, w, b, h, c, there, backwards))):
        close(one if place < 3 else one * there, wanted if place < 3 else wanted * there)
    slopes = [drawn(steps, batch, cells), drawn(batch, cells), drawn(batch, cells)]
    y, all_h, all_c, *gates = found
    given = [x, w, b, y, h, c, all_h, all_c, *slopes, *gates, mask]
    by = results("DynamicRNNGrad", given, [w, b, x, h, c], attributes)

    def loss(x, w, b, h, c):
        run = lstm(x, w, b, h, c, there, backwards)
        end = 0 if backwards else -1
        return (run[0] * slopes[0]).sum() + (run[1][end] * slopes[1]).sum() + (run[2][end] * slopes[2]).sum()

    differences_agree(loss, (x, w, b, h, c), [by[2], by[0], by[1], by[3], by[4]])


def test_a_mask_tells_one_length_of_each_sequence():
    x, w, b = drawn(3, 1, 2), drawn(4, 8), drawn(8)
    for mask, status in (([1, 1, 0], 0), ([1, 0, 1], 507015), ([0, 1, 1], 507015), ([0, 0, 0], 0)):
        for cells in (([1, 1],) if status else ([1, 1], [1, 0])):
            given = np.array(mask, np.float16)[:, None, None] * np.array(cells, np.float16)
            fault = status if cells == [1, 1] or not any(mask) else 507015
            assert call("DynamicRNN", [x, w, b, given], [like(3, 1, 2)] * 8, LSTM)[0].status == fault, (mask, cells)


def test_a_result_of_one_step_may_lack_the_axis_of_steps():
    """As the PyTorch adapter has them of an LSTMCell."""
    x, w, b, h, c = drawn(2, 4), drawn(9, 20), drawn(20), drawn(2, 5), drawn(2, 5)
    expected = lstm(x[None], w, b, h, c)
    found = results("DynamicRNN", [x, w, b, None, h, c], [like(2, 5)] * 8, LSTM)
    for one, wanted in zip(found, expected):
        close(one, wanted[0])


# ---- GRU ----


def gru(x, w, u, b, d, h, backwards=False):
    """All that DynamicGRUV2 gives, in float64: y, h, z, r, n and what n has of the state."""
    steps = []
    for one in x.astype(np.float64)[:: -1 if backwards else 1]:
        (xr, xz, xn), (hr, hz, hn) = np.split(one @ w + b, 3, 1), np.split(h @ u + d, 3, 1)
        r, z = 1 / (1 + np.exp(-xr - hr)), 1 / (1 + np.exp(-xz - hz))
        n = np.tanh(xn + r * hn)
        h = (1 - z) * n + z * h
        steps.append((h, h, z, r, n, hn))
    return [np.stack(parts) for parts in zip(*steps[:: -1 if backwards else 1])]


GRU = {"direction": "UNIDIRECTIONAL", "cell_depth": 1, "keep_prob": 1.0, "cell_clip": -1.0, "num_proj": 0, "time_major": True,
       "activation": "tanh", "gate_order": "rzh", "reset_after": True}  # fmt: skip


@pytest.mark.parametrize("backwards", (False, True))
@pytest.mark.parametrize("steps, batch, inputs, cells", ((1, 1, 1, 1), (3, 2, 4, 5), (6, 5, 3, 17)))
def test_gru(backwards, steps, batch, inputs, cells):
    x, h = drawn(steps, batch, inputs), drawn(1, batch, cells)
    parameters = drawn(inputs, 3 * cells), drawn(cells, 3 * cells), drawn(3 * cells), drawn(3 * cells)
    attributes = {**GRU, "direction": "REDIRECTIONAL" if backwards else "UNIDIRECTIONAL"}
    made = [like(steps, batch, cells) for _ in range(6)]
    found = results("DynamicGRUV2", [x, *parameters, None, h], made, attributes)
    for one, wanted in zip(found, gru(x, *parameters, h[0], backwards)):
        close(one, wanted)
    for one, wanted in zip(results("DynamicGRUV2", [x, *parameters, None, h[0]], made, attributes), found):  # as the adapter has it
        np.testing.assert_array_equal(one, wanted)
    nothing = [0 * one for one in parameters[2:]]
    for one, wanted in zip(results("DynamicGRUV2", [x, *parameters[:2]], made, attributes), gru(x, *parameters[:2], *nothing, 0 * h[0], backwards)):
        close(one, wanted)
    slopes, absent = [drawn(steps, batch, cells), drawn(1, batch, cells)], np.zeros((), np.float32)
    given = [x, *parameters[:2], found[0], h, found[1], *slopes, *found[2:], absent, absent]
    by = results("DynamicGRUV2Grad", given, [*parameters, x, h], attributes)
    flat = [*given[:4], h[0], *given[5:7], slopes[1][0], *given[8:]]
    for one, wanted in zip(results("DynamicGRUV2Grad", flat, [*parameters, x, h[0]], attributes), by):
        np.testing.assert_array_equal(one, wanted.reshape(one.shape))

    def loss(x, w, u, b, d, h):
        run = gru(x, w, u, b, d, h[0], backwards)
        return (run[0] * slopes[0]).sum() + (run[1][0 if backwards else -1] * slopes[1]).sum()

    differences_agree(loss, (x, *parameters, h), [by[4], *by[:4], by[5]])


# ---- the call ----


def test_the_names_are_documented():
    table = (ROOT / "src_c/ascend/op_compiler/operators.c").read_text()
    names = [name for names in re.findall(r'\.type = "(\w+)"|(?:UNARY|BINARY)\("(\w+)"', table) for name in names if name]
    listed = (ROOT / "docs/programs.md").read_text().split("## Operators by name")[1].split("\n\n")[2]
    assert sorted(names) == re.findall(r"`(\w+)`", listed)


def test_a_name_is_compiled_without_memory():
    x = drawn(2, 3)
    for kind, status in (("Relu", 0), ("FloorMod", 207000)):
        assert call(kind, [x], [x], function="aclopCompile")[0].status == status


def test_the_second_version_runs_too():
    x = drawn(5)
    np.testing.assert_array_equal(results("Neg", [x], [x], function="aclopCompileAndExecuteV2")[0], -x)


def test_numbers_of_attributes_are_those_that_were_set():
    """A text keeps them; what was set last counts, and a name in a text is no name."""
    x = np.array([1.0], np.float32)
    scale = float(np.float32(0.1) + np.float32(1e-8))
    attributes = {"mode": "a=1, scale=5, [", "scale": scale}
    close(results("Swish", [x], [x], attributes)[0], 1 / (1 + np.exp(-np.float64(np.float32(scale)))))


def test_memory_that_is_not_the_devices_is_a_fault():
    x, host = drawn(3), ffi.new("float[3]")
    result, _ = call("Relu", [x], [x], change=lambda raw: lib.aclUpdateDataBuffer(raw.inputs[0], host, 12))
    assert result.status == 507015
