"""Diagonals, expansion, and slices along several axes, against NumPy."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, refusal, tensor
from tests.conformance.ascend import pages

KINDS = ["F32", "F16", "I8", "C64"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_diagonals(layout):
    for kind in KINDS:
        line, matrix = np.arange(1.0, 5), np.arange(12.0).reshape(3, 4)
        for diagonal in (0, 2, -1):
            expected = np.diag(line, diagonal)
            found = call("Diag", self=tensor(line, kind, layout), diagonal=diagonal, out=empty(expected.shape, kind, layout))
            np.testing.assert_array_equal(found, expected)
            expected = np.diag(matrix, diagonal)
            found = call("Diag", self=tensor(matrix, kind, layout), diagonal=diagonal,
                         out=empty(expected.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, expected)
            expected = np.diagflat(matrix, diagonal)
            found = call("DiagFlat", self=tensor(matrix, kind, layout), diagonal=diagonal,
                         out=empty(expected.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fill_diagonal(layout):
    for shape in ((3, 4), (9, 2), (8, 3), (3, 3, 3), (0, 2)):
        for wrap in (False, True):
            expected = np.ones(shape)
            if 0 not in shape:
                np.fill_diagonal(expected, 5, wrap)
            found = call("InplaceFillDiagonal", selfRef=tensor(np.ones(shape), "F32", layout), fillValue=5.0, wrap=wrap)
            np.testing.assert_array_equal(found, expected)


def test_fill_diagonal_of_rows_without_elements():
    call("InplaceFillDiagonal", selfRef=empty((2**50, 0)), fillValue=5.0, wrap=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_expand_and_slice(layout):
    values = np.arange(60.0).reshape(3, 4, 5)
    found = call("Expand", self=tensor(values[:, :1], "F32", layout), size=[2, 3, 6, 5],
                 out=empty((2, 3, 6, 5), "F32", layout))  # fmt: skip
    np.testing.assert_array_equal(found, np.broadcast_to(values[:, :1], (2, 3, 6, 5)))
    for starts, ends, axes, steps in (([1, -4], [3, 100], [0, 2], [1, 2]), ([0], [0], [1], [1]), ([-100], [-1], [-1], [3])):
        at = [slice(None)] * 3
        for start, end, axis, step in zip(starts, ends, axes, steps):
            at[axis] = slice(start, end, step)
        expected = values[tuple(at)]
        found = call("SliceV2", self=tensor(values, "F32", layout), starts=starts, ends=ends, axes=axes, steps=steps,
                     out=empty(expected.shape, "F32", layout))  # fmt: skip
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind, layout", list(zip(["F32", "F16", "I64", "I8", "F64", "BF16"], LAYOUTS * 2)))
def test_slices_assigned(kind, layout):
    for begin, end, strides, axes in (([1, 0], [4, 2], [2, 1], [0, 1]), ([-3], [100], [1], [-1]),
                                      ([0, -5, 2], [9, -1, 3], [3, 2, 1], None),
                                      ([2], [2], [1], [1]), ([4], [1], [2], [0])):  # fmt: skip
        values = np.arange(5 * 6 * 4.0).reshape(5, 6, 4)
        at = [slice(None)] * 3
        for axis, cut in zip(axes or range(3), map(slice, begin, end, strides)):
            at[axis] = cut
        given = -1 - np.arange(values[tuple(at)].size).reshape(values[tuple(at)].shape)
        expected = values.copy()
        expected[tuple(at)] = given
        found = call("StridedSliceAssignV2", varRef=tensor(values, kind, layout),
                     inputValue=tensor(given, kind, layout), begin=begin, end=end, strides=strides,
                     axesOptional=axes)  # fmt: skip
        np.testing.assert_array_equal(found, expected)


def test_more_slices_than_axes():
    """Without axes they are of the first ones, of which a tensor has eight."""
    whole, part = tensor(np.zeros([1] * 8)), tensor(np.zeros([1] * 8))
    for count, expected in ((8, (0, "")), (9, (161002, "aclnnStridedSliceAssignV2/axesOptional/length"))):
        begin, end = pages.made({"kind": "IA"}, [0] * count), pages.made({"kind": "IA"}, [1] * count)
        status, rule = refusal("StridedSliceAssignV2", whole, part, begin, end, end, None)
        assert (status, rule if status else "") == expected
