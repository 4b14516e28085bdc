"""Shapes and strides: contiguity, reach, broadcasting (aclnn-ops 0.4)."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tensor.internals import RANK_LIMIT, View, library, shape_view


def elements(*shape):
    return library().us_shape_elements(len(shape), (ctypes.c_int64 * max(len(shape), 1))(*shape))


def test_elements():
    assert elements() == 1
    assert elements(2, 3) == 6
    assert elements(2**32, 2**30) == 2**62
    assert elements(2**32, 2**31) == -1  # 2^63
    assert elements(2**40, 2**40, 0) == 0
    assert elements(-1, 3) == -1
    assert elements(-1, 0) == -1


@pytest.mark.parametrize("shape, strides, contiguous", [
    ((2, 3), (3, 1), True),
    ((2, 3), (4, 1), False),
    ((2, 3), (1, 2), False),
    ((2, 1, 3), (3, 99, 1), True),  # the stride of a size 1 does not matter
    ((1,), (7,), True),
    ((0, 5), (1, 9), True),
    ((), (), True),
    ((3,), (0,), False),
    ((3,), (-1,), False),
])
def test_contiguous(shape, strides, contiguous):
    assert library().us_view_is_contiguous(ctypes.byref(shape_view(shape, strides))) is contiguous


def extent(shape, strides):
    low, high = ctypes.c_int64(), ctypes.c_int64()
    fits = library().us_view_extent(ctypes.byref(shape_view(shape, strides)), ctypes.byref(low), ctypes.byref(high))
    return (low.value, high.value) if fits else None


def test_extent():
    assert extent((2, 3), (3, 1)) == (0, 5)
    assert extent((2, 3), (-3, 1)) == (-3, 2)
    assert extent((), ()) == (0, 0)
    assert extent((0, 3), (3, 1)) == (0, -1)
    assert extent((5,), (0,)) == (0, 0)
    assert extent((2**32 + 1,), (2**31,)) is None
    assert extent((2**32 + 1,), (2**30,)) == (0, 2**62)
    assert extent((2, 2), (2**63 - 1, 1)) is None
    assert extent((2, 2), (2**63 - 1, 0)) == (0, 2**63 - 1)


def broadcast(*shapes):
    views = [shape_view(shape) for shape in shapes]
    pointers = (ctypes.POINTER(View) * len(views))(*[ctypes.pointer(view) for view in views])
    rank, shape, culprit = ctypes.c_int32(), (ctypes.c_int64 * RANK_LIMIT)(), ctypes.c_int(-1)
    fits = library().us_broadcast_shape(pointers, len(views), ctypes.byref(rank), shape, ctypes.byref(culprit))
    return tuple(shape[: rank.value]) if fits else culprit.value


shapes = st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=4).map(tuple)


@given(st.lists(shapes, min_size=1, max_size=4))
def test_broadcast_is_numpys(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        first = next(i for i in range(len(shapes)) if not broadcasts(shapes[: i + 1]))
        assert broadcast(*shapes) == first
    else:
        assert broadcast(*shapes) == expected


def broadcasts(shapes):
    try:
        np.broadcast_shapes(*shapes)
        return True
    except ValueError:
        return False


def test_broadcast_view_repeats_with_stride_0():
    seen = library().us_view_broadcast(ctypes.byref(shape_view((3, 1), (5, 2))), 3, (ctypes.c_int64 * 3)(4, 3, 7))
    assert list(seen.shape[:3]) == [4, 3, 7]
    assert list(seen.strides[:3]) == [0, 5, 0]
