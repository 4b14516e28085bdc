"""Sorting: order, stability, NaN and zeros, in every type and layout, against NumPy."""

import itertools

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, rounded, tensor

RANDOM = np.random.default_rng(5)
TYPES = ["F32", "F16", "BF16", "F64", "I8", "U8", "I16", "I32", "I64", "B"]


def order(values, dim, descending):
    """Stable; NaN is the greatest value."""
    ranks = np.unique(values, return_inverse=True)[1].reshape(values.shape)  # of floats too: NaN last, zeros alike
    return np.argsort(-ranks if descending else ranks, dim, kind="stable")


def drawn(shape, kind):
    if kind == "B":
        return RANDOM.integers(0, 2, shape)
    low = 0 if kind[0] == "U" else -100
    values = RANDOM.integers(low, 100, shape).astype(np.float64)
    if kind[0] in "FB":
        values[RANDOM.random(shape) < 0.1] = np.nan
        values[RANDOM.random(shape) < 0.1] = -0.0
        values[RANDOM.random(shape) < 0.1] = np.inf
    return values


@pytest.mark.parametrize("kind", TYPES)
def test_sort(kind):
    for shape, dim in (((3, 40), -1), ((40, 3), 0), ((2, 30, 3), 1), ((7,), 0), ((1, 300), 1), ((3, 0), 1), ((), 0)):
        for layout, descending in itertools.product(LAYOUTS, (False, True)):
            values = rounded(drawn(shape, kind), kind)
            expected = order(values, dim, descending) if values.ndim and values.size else np.zeros(shape, int)
            sorted_, places = call("Sort", self=tensor(values, kind, layout), stable=True, dim=dim, descending=descending,
                                   valuesOut=empty(shape, kind, layout), indicesOut=empty(shape, "I64", layout))  # fmt: skip
            np.testing.assert_array_equal(places, expected)
            np.testing.assert_array_equal(sorted_, np.take_along_axis(values, expected, dim) if values.ndim else values)


@pytest.mark.parametrize("kind", ["F32", "F16", "I64", "U8"])
def test_topk(kind):
    for shape, dim, k in (((3, 40), -1, 5), ((40, 3), 0, 40), ((7,), 0, 0), ((2, 9000), 1, 11), ((9000, 2), 0, 2100), ((), 0, 1)):
        for layout, largest in itertools.product(LAYOUTS, (False, True)):
            values = rounded(drawn(shape, kind), kind)
            kept = (*shape[: dim % len(shape)], k, *shape[dim % len(shape) + 1 :]) if shape else ()
            expected = order(values, dim, largest) if shape else np.zeros((), int)
            expected = np.take(expected, range(k), dim) if shape else expected
            found, places = call("Topk", self=tensor(values, kind, layout), k=k, dim=dim, largest=largest, sorted=True,
                                 valuesOut=empty(kept, kind, layout), indicesOut=empty(kept, "I64", layout))  # fmt: skip
            np.testing.assert_array_equal(places, expected)
            np.testing.assert_array_equal(found, np.take_along_axis(values, expected, dim) if shape else values)


@pytest.mark.parametrize("kind", ["F32", "I64"])
def test_long_line(kind):
    values = rounded(RANDOM.normal(0, 1e4, 300_001), kind)
    expected = order(values, 0, False)
    found, places = call("Sort", self=tensor(values, kind), stable=False, dim=0, descending=False,
                         valuesOut=empty(values.shape, kind), indicesOut=empty(values.shape, "I64"))  # fmt: skip
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(found, values[expected])
    expected = order(values, 0, True)[:50]
    found, places = call("Topk", self=tensor(values, kind), k=50, dim=0, largest=True, sorted=True,
                         valuesOut=empty((50,), kind), indicesOut=empty((50,), "I64"))  # fmt: skip
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(found, values[expected])
