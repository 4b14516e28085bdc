"""Padding from the inside, and its gradient, against NumPy."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, tensor

MODES = {"Reflection": "reflect", "Replication": "edge", "Circular": "wrap"}
SHAPES = {1: [((2, 3, 7), (2, 1)), ((3, 4), (0, 3))], 2: [((2, 3, 5, 6), (2, 1, 4, 0)), ((1, 4, 3), (1, 2, 3, 1))],
          3: [((2, 2, 3, 5, 4), (1, 2, 0, 4, 2, 1)), ((1, 4, 3, 3), (0, 1, 2, 2, 3, 0))]}  # fmt: skip
CASES = [(kind, n) for kind in MODES for n in SHAPES if kind != "Circular" or n > 1]


def widths(shape, padding):
    pairs = [padding[i : i + 2] for i in range(0, len(padding), 2)][::-1]
    return [(0, 0)] * (len(shape) - len(pairs)) + [tuple(pair) for pair in pairs]


@pytest.mark.parametrize("kind, n", CASES)
def test_pad(kind, n):
    for shape, padding in SHAPES[n]:
        for dtype in ("F32", "F16", "I8"):
            for layout in LAYOUTS if dtype == "F32" else LAYOUTS[:1]:
                values = np.arange(np.prod(shape)).reshape(shape) % 100
                expected = np.pad(values, widths(shape, padding), MODES[kind])
                found = call(f"{kind}Pad{n}d", self=tensor(values, dtype, layout), padding=list(padding),
                             out=empty(expected.shape, dtype, layout))  # fmt: skip
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind, n", CASES)
def test_gradient(kind, n):
    for shape, padding in SHAPES[n]:
        for dtype in ("F32", "BF16"):
            for layout in LAYOUTS if dtype == "F32" else LAYOUTS[:1]:
                places = np.pad(np.arange(np.prod(shape)).reshape(shape), widths(shape, padding), MODES[kind])
                gradient = np.arange(places.size).reshape(places.shape) % 4
                expected = np.bincount(places.ravel(), gradient.ravel()).reshape(shape)
                found = call(f"{kind}Pad{n}dBackward", gradOutput=tensor(gradient, dtype, layout),
                             self=tensor(np.zeros(shape), dtype, layout), padding=list(padding),
                             gradInput=empty(shape, dtype, layout))  # fmt: skip
                np.testing.assert_array_equal(found, expected)


def test_cut_and_empty_batch():
    values = np.arange(12.0).reshape(1, 2, 6)
    found = call("ReplicationPad1d", self=tensor(values), padding=[-1, 2], out=empty((1, 2, 7)))
    np.testing.assert_array_equal(found, np.pad(values[..., 1:], [(0, 0), (0, 0), (0, 2)], "edge"))
    found = call("ReplicationPad1dBackward", gradOutput=tensor(np.ones((1, 2, 7))), self=tensor(values), padding=[-1, 2],
                 gradInput=empty((1, 2, 6)))  # fmt: skip
    np.testing.assert_array_equal(found, [[[0, 1, 1, 1, 1, 3]] * 2])
    none = np.zeros((0, 2, 6))
    assert call("ReflectionPad1d", self=tensor(none), padding=[1, 1], out=empty((0, 2, 8))).size == 0
