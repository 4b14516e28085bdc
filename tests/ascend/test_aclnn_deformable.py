"""Operators that look between pixels at points of the call: the formula point by point in float64, gradients against finite
differences and PyTorch."""

import itertools
import math

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, refusal, rounded, tensor
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages

UNITS = {"F32": 2.0**-22, "F16": 2.0**-10, "BF16": 2.0**-7}
SIZES = np.array([[3, 4], [2, 1]])
STARTS = np.array([0, 12])
BATCH, HEADS, POINTS, KEYS = 2, 2, 3, 15  # a key more than the levels have


def drawn_attention(queries, channels, kind="F32"):
    """Places inside, at the border and outside the images."""
    places = rounded(np.random.default_rng(5).uniform(-0.4, 1.4, (BATCH, queries, HEADS, 2, POINTS, 2)), kind)
    return (drawn((BATCH, KEYS, HEADS, channels), 1, kind), places, drawn((BATCH, queries, HEADS, 2, POINTS), 2, kind))


def pixel(value, b, head, level, y, x):
    rows, columns = SIZES[level]
    return value[b, STARTS[level] + y * columns + x, head] if 0 <= y < rows and 0 <= x < columns else 0


def attention(value, places, weights):
    queries = places.shape[1]
    out = np.zeros((BATCH, queries, HEADS, value.shape[3]))
    for b, q, head, level, point in np.ndindex(*weights.shape):
        x, y = places[b, q, head, level, point] * SIZES[level][::-1] - 0.5
        for i, j in itertools.product(range(2), repeat=2):
            row, column = math.floor(y) + i, math.floor(x) + j
            share = (1 - abs(y - row)) * (1 - abs(x - column))
            out[b, q, head] += weights[b, q, head, level, point] * share * pixel(value, b, head, level, row, column)
    return out.reshape(BATCH, queries, -1)


@pytest.mark.parametrize("kind", UNITS)
def test_attention(kind):
    for layout, (channels, index) in itertools.product(LAYOUTS, [(8, "I32"), (16, "I64")]):
        value, places, weights = drawn_attention(33, channels, kind)
        expected = attention(value, places, weights)
        found = call("MultiScaleDeformableAttnFunction", value=tensor(value, kind, layout),
                     spatialShape=tensor(SIZES, index, layout), levelStartIndex=tensor(STARTS, index, layout),
                     location=tensor(places, kind, layout), attnWeight=tensor(weights, kind, layout),
                     output=empty(expected.shape, kind, layout))  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=UNITS[kind], atol=2.0**-18)


def test_more_points_than_are_loaded_at_once():
    """Sums over levels, of 16 points each."""
    sizes, starts, random = np.array([[3, 4], [2, 1], [1, 1]]), np.array([0, 12, 14]), np.random.default_rng(6)
    value, weights = drawn((BATCH, KEYS, HEADS, 8), 1), drawn((BATCH, 32, HEADS, 3, 16), 2)
    places = rounded(random.uniform(-0.4, 1.4, (*weights.shape, 2)), "F32")

    def attended(first, last):
        return call("MultiScaleDeformableAttnFunction", value=tensor(value), spatialShape=tensor(sizes[first:last], "I64"),
                    levelStartIndex=tensor(starts[first:last], "I64"), location=tensor(places[:, :, :, first:last]),
                    attnWeight=tensor(weights[:, :, :, first:last]), output=empty((BATCH, 32, HEADS * 8)))  # fmt: skip

    expected = sum(attended(level, level + 1) for level in range(3))
    np.testing.assert_allclose(attended(0, 3), expected, rtol=2.0**-22, atol=2.0**-18)


def gradients(value, places, weights, slopes, kind="F32", layout="row-major"):
    return call("MultiScaleDeformableAttentionGrad", value=tensor(value, kind, layout),
                spatialShape=tensor(SIZES, "I64", layout), levelStartIndex=tensor(STARTS, "I32", layout),
                location=tensor(places, kind, layout), attnWeight=tensor(weights, kind, layout),
                gradOutput=tensor(slopes, kind, layout), gradValue=empty(value.shape, kind, layout),
                gradLocation=empty(places.shape, kind, layout),
                gradAttnWeight=empty(weights.shape, kind, layout))  # fmt: skip


def difference(function, x, at, step):
    """The slope of a scalar function by x[at]."""
    values = []
    for side in (1, -1):
        moved = x.copy()
        moved[at] += side * step
        values.append(function(moved))
    return (values[0] - values[1]) / (2 * step)


@pytest.mark.parametrize("kind", UNITS)
def test_attention_gradients(kind):
    for layout in LAYOUTS:
        value, places, weights = drawn_attention(3, 8, kind)
        slopes = drawn((BATCH, 3, HEADS * 8), 4, kind)
        found = gradients(value, places, weights, slopes, kind, layout)
        loss = lambda value=value, places=places, weights=weights: (attention(value, places, weights) * slopes).sum()
        rng = np.random.default_rng(9)
        for x, result, name in zip((value, places, weights), found, ("value", "places", "weights")):
            for _ in range(24):
                at = tuple(rng.integers(0, size) for size in x.shape)
                expected = difference(lambda moved: loss(**{name: moved}), x, at, 1e-6)
                np.testing.assert_allclose(result[at], expected, rtol=UNITS[kind] + 1e-5, atol=1e-5, err_msg=f"{name} {at}")
        assert not found[0][:, 14].any()  # the key of no level


def test_attention_gradients_as_torch():
    torch = pytest.importorskip("torch")
    value, places, weights = (torch.tensor(x, requires_grad=True) for x in drawn_attention(5, 8))
    slopes = torch.tensor(drawn((BATCH, 5, HEADS * 8), 4))
    out = 0
    for level, (rows, columns) in enumerate(SIZES):
        image = value[:, STARTS[level] : STARTS[level] + rows * columns].permute(0, 2, 3, 1).reshape(BATCH * HEADS, 8, rows, columns)
        grid = (2 * places[:, :, :, level] - 1).permute(0, 2, 1, 3, 4).reshape(BATCH * HEADS, 5, POINTS, 2)
        sampled = torch.nn.functional.grid_sample(image, grid, align_corners=False).reshape(BATCH, HEADS, 8, 5, POINTS)
        out = out + (sampled * weights[:, :, :, level].permute(0, 2, 1, 3)[:, :, None]).sum(-1)
    out = out.permute(0, 3, 1, 2).reshape(BATCH, 5, HEADS * 8)
    np.testing.assert_allclose(attention(*(x.detach().numpy() for x in (value, places, weights))), out.detach().numpy(),
                               atol=1e-12)  # fmt: skip
    (out * slopes).sum().backward()
    found = gradients(*(x.detach().numpy() for x in (value, places, weights)), slopes.numpy())
    for actual, x in zip(found, (value, places, weights)):
        np.testing.assert_allclose(actual, x.grad.numpy(), rtol=1e-5, atol=1e-5)


def test_levels_that_are_not_there():
    value, places, weights = (tensor(x) for x in drawn_attention(32, 8))
    for sizes, starts in (([[3, 4], [2, 2]], [0, 12]), ([[3, 4], [2, 1]], [0, -1])):
        said = fault("MultiScaleDeformableAttnFunction", value, tensor(np.array(sizes), "I64"),
                     tensor(np.array(starts), "I64"), places, weights, empty((BATCH, 32, HEADS * 8)))  # fmt: skip
        assert "level 1 has" in said and "of 15 keys" in said


# ---- convolution ----------------------------------------------------------------------------------------------------------


def samples(x, moves, taps, stride, padding, dilation, parts, places):
    out = np.zeros((x.shape[0], x.shape[1], places[0] * taps[0], places[1] * taps[1]))
    across, down, factors = np.split(moves, 3, 1)
    for n, c, p, q, i, j in np.ndindex(*x.shape[:2], *places, *taps):
        at = n, c // (x.shape[1] // parts) * taps[0] * taps[1] + i * taps[1] + j, p, q
        y = p * stride[0] - padding[0] + i * dilation[0] + down[at]
        z = q * stride[1] - padding[1] + j * dilation[1] + across[at]
        for row, column in itertools.product((math.floor(y), math.floor(y) + 1), (math.floor(z), math.floor(z) + 1)):
            if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]:
                out[n, c, p * taps[0] + i, q * taps[1] + j] += (1 - abs(y - row)) * (1 - abs(z - column)) * x[n, c, row, column]
        out[n, c, p * taps[0] + i, q * taps[1] + j] *= factors[at]
    return out


def convolved(sampled, weight, bias, groups, places):
    """A convolution whose windows lie side by side."""
    results, channels, rows, columns = weight.shape
    out = np.zeros((sampled.shape[0], results, *places))
    for k in range(results):
        first = k // (results // groups) * channels
        windows = sampled[:, first : first + channels].reshape(-1, channels, places[0], rows, places[1], columns)
        out[:, k] = np.einsum("ncpiqj,cij->npq", windows, weight[k]) + bias[k]
    return out


@pytest.mark.parametrize("kind", UNITS)
def test_convolution(kind):
    settings = [((2, 4, 5, 6), (6, 2, 3, 2), (2, 2), (1, 1, 0, 1), (1, 1), 2, 2),
                ((1, 2, 4, 7), (3, 2, 1, 3), (1, 1), (0, 0, 2, 1), (1, 2), 1, 1),
                ((1, 2, 2, 300), (2, 1, 1, 2), (1, 1), (0, 0, 0, 0), (1, 1), 2, 1)]  # fmt: skip
    for number, ((shape, filters, stride, padding, dilation, groups, parts), layout) in enumerate(itertools.product(settings, LAYOUTS)):
        taps = filters[2:]
        places = [(shape[2 + axis] + sum(padding[2 * axis : 2 * axis + 2]) - (taps[axis] - 1) * dilation[axis] - 1) // stride[axis] + 1
                  for axis in range(2)]
        x, weight, bias = drawn(shape, number, kind), drawn(filters, 50 + number, kind), drawn(filters[:1], 90 + number, kind)
        moves = rounded(np.random.default_rng(number).uniform(-3, 3, (shape[0], 3 * parts * taps[0] * taps[1], *places)), kind)
        sampled = samples(x, moves, taps, stride, (padding[0], padding[2]), dilation, parts, places)
        for biased, kept in ((True, True), (False, False)):
            found = call("DeformableConv2d", x=tensor(x, kind, layout), weight=tensor(weight, kind, layout),
                         offset=tensor(moves, kind, layout),
                         biasOptional=tensor(bias, kind, layout) if biased else None, kernelSize=list(taps),
                         stride=[1, 1, *stride], padding=list(padding), dilation=[1, 1, *dilation], groups=groups,
                         deformableGroups=parts, modulated=True,
                         out=empty((shape[0], filters[0], *places), kind, layout),
                         deformOutOptional=empty(sampled.shape, kind, layout) if kept else None)  # fmt: skip
            if kept:
                found, of_samples = found
                np.testing.assert_allclose(of_samples, sampled, rtol=UNITS[kind], atol=2.0**-18)
            expected = convolved(rounded(sampled, kind), weight, bias if biased else 0 * bias, groups, places)
            np.testing.assert_allclose(found, expected, rtol=UNITS[kind], atol=128 * UNITS[kind] if kind != "F32" else 1e-4)


def test_convolution_of_what_does_not_move():
    torch = pytest.importorskip("torch")
    x, weight, bias = drawn((2, 4, 6, 5), 1), drawn((6, 2, 3, 3), 2), drawn((6,), 3)
    moves = np.zeros((2, 27, 3, 3))
    moves[:, 18:] = 1
    expected = torch.nn.functional.conv2d(*(torch.tensor(one) for one in (x, weight, bias)), stride=2, padding=1, groups=2)
    found = call("DeformableConv2d", x=tensor(x), weight=tensor(weight), offset=tensor(moves),
                 biasOptional=tensor(bias), kernelSize=[3, 3], stride=[1, 1, 2, 2], padding=[1, 1, 1, 1],
                 dilation=[1, 1, 1, 1], groups=2, deformableGroups=1, modulated=True, out=empty(expected.shape),
                 deformOutOptional=None)  # fmt: skip
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-5)


def test_convolution_of_more_samples_than_can_be_counted():
    """2^64 of them, of tensors that each have fewer than 2^63 elements, one in memory."""
    places = [2**31, 2**30]
    x, weight, moves, out = (support.expanded(support.F32, shape) for shape in
                             ((1, 8, 1, 1), (1, 8, 1, 1), (1, 3, *places), (1, 1, *places)))  # fmt: skip
    arrays = [pages.made({"kind": "IA"}, values) for values in
              ([1, 1], [1, 1, 1, 1], [2**30, 2**30 - 1, 2**29, 2**29 - 1], [1, 1, 1, 1])]
    said = fault("DeformableConv2d", x, weight, moves, None, *arrays, 1, 1, True, out, None, status=207001)
    assert "no host memory for scratch space" in said


def test_products_of_sizes_in_shapes():
    """2^64 columns, which were taken for none, and 2^63; 2^62 fit into a size, and only the rule of the channels refuses them."""
    for heads, channels, columns, tail in ((16, 2**60, 0, "output/shape"), (16, 2**59, 2**63 - 1, "output/shape"),
                                           (8, 2**59, 2**62, "value/channels")):  # fmt: skip
        value, location, weights, out = (support.expanded(support.F32, shape) for shape in
                                         ((0, 6, heads, channels), (0, 32, heads, 1, 3, 2), (0, 32, heads, 1, 3),
                                          (0, 32, columns)))  # fmt: skip
        told = refusal("MultiScaleDeformableAttnFunction", value, tensor([[2, 3]], "I64"), tensor([0], "I64"), location, weights, out)
        assert told == (161002, f"aclnnMultiScaleDeformableAttnFunction/{tail}"), (heads, channels)
