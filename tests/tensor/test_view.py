"""Shapes and strides: contiguity, reach, broadcasting (aclnn-ops 0.4)."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tensor.internals import RANK_LIMIT, View, library, shape_view, view


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


@pytest.mark.parametrize("array", [
    np.arange(24, dtype=np.int32).reshape(2, 6, 2),
    np.arange(24, dtype=np.float16).reshape(2, 6, 2)[::-1, ::-1],
    np.arange(12, dtype=np.int8).reshape(6, 2).T,
    np.broadcast_to(np.arange(4.0), (2, 4, 4)),
], ids=["contiguous", "backwards", "turned", "repeated"])
def test_halves_are_numpys(array):
    for axis in range(array.ndim):
        middle = array.shape[axis] // 2
        for pairs, slices in [(False, [slice(middle), slice(middle, None)]), (True, [slice(0, None, 2), slice(1, None, 2)])]:
            for second, part in enumerate(slices):
                half = library().us_view_half(view(array), axis, second, pairs)
                expected = view(array[(slice(None),) * axis + (part,)])
                assert bytes(half) == bytes(expected), (axis, second, pairs)


def test_half_of_no_places():
    assert list(library().us_view_half(shape_view((3, 0), (2**62, 2**62)), 1, True, True).shape[:2]) == [3, 0]
