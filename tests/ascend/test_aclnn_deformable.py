"""Operators that look between pixels at points of the call: the formula point by point in float64, gradients against finite
differences and PyTorch."""

import itertools
import math

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, rounded, tensor

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
        found = call("MultiScaleDeformableAttnFunction", value=tensor(value, kind, layout), spatialShape=tensor(SIZES, index, layout),
                     levelStartIndex=tensor(STARTS, index, layout), location=tensor(places, kind, layout),
                     attnWeight=tensor(weights, kind, layout), output=empty(expected.shape, kind, layout))
        np.testing.assert_allclose(found, expected, rtol=UNITS[kind], atol=2.0**-18)


def gradients(value, places, weights, slopes, kind="F32", layout="row-major"):
    return call("MultiScaleDeformableAttentionGrad", value=tensor(value, kind, layout), spatialShape=tensor(SIZES, "I64", layout),
                levelStartIndex=tensor(STARTS, "I32", layout), location=tensor(places, kind, layout),
                attnWeight=tensor(weights, kind, layout), gradOutput=tensor(slopes, kind, layout),
                gradValue=empty(value.shape, kind, layout), gradLocation=empty(places.shape, kind, layout),
                gradAttnWeight=empty(weights.shape, kind, layout))


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
    np.testing.assert_allclose(attention(*(x.detach().numpy() for x in (value, places, weights))), out.detach().numpy(), atol=1e-12)
    (out * slopes).sum().backward()
    found = gradients(*(x.detach().numpy() for x in (value, places, weights)), slopes.numpy())
    for actual, x in zip(found, (value, places, weights)):
        np.testing.assert_allclose(actual, x.grad.numpy(), rtol=1e-5, atol=1e-5)


def test_levels_that_are_not_there():
    value, places, weights = (tensor(x) for x in drawn_attention(32, 8))
    for sizes, starts in (([[3, 4], [2, 2]], [0, 12]), ([[3, 4], [2, 1]], [0, -1])):
        said = fault("MultiScaleDeformableAttnFunction", value, tensor(np.array(sizes), "I64"), tensor(np.array(starts), "I64"),
                     places, weights, empty((BATCH, 32, HEADS * 8)))
        assert "level 1 has" in said and "of 15 keys" in said
