"""Views are described exactly: storage and strides give back the array."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy import arrays


def rebuilt(view: arrays.Storage) -> numpy.ndarray:
    """The array a library would read from the storage."""
    assert view.elements.ndim == 1
    out = numpy.empty(view.shape, view.elements.dtype)
    copy = numpy.array(view.elements)  # only what a device copy would hold
    for index in numpy.ndindex(*view.shape):
        out[index] = copy[sum(i * stride for i, stride in zip(index, view.strides))]
    return out


@st.composite
def views(draw):
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    array = numpy.arange(numpy.prod(shape, dtype=int), dtype=draw(st.sampled_from(["f2", "f4", ">f4", "i8"])))
    array = array.reshape(shape).transpose(draw(st.permutations(range(len(shape)))))
    steps = [slice(draw(st.integers(0, 2)), None, draw(st.sampled_from([1, 2, -1, -3]))) for _ in shape]
    array = array[tuple(steps)]
    if draw(st.booleans()):
        array = numpy.broadcast_to(array, (draw(st.integers(1, 3)), *array.shape))
    return array


@given(views())
@settings(max_examples=300, deadline=None)
def test_storage_gives_back_the_view(array):
    view = arrays.storage_of(array)
    assert view.shape == array.shape
    assert all(stride >= 0 for stride in view.strides)
    numpy.testing.assert_array_equal(rebuilt(view), array)


def test_a_positive_view_is_not_copied():
    base = numpy.arange(60.0).reshape(3, 4, 5)
    view = arrays.storage_of(base.transpose(2, 0, 1)[1:, :, ::2])
    assert numpy.shares_memory(view.elements, base)
    assert view.strides == (1, 20, 10)


def test_an_expanded_view_keeps_one_element():
    view = arrays.storage_of(numpy.broadcast_to(numpy.float32(3), (1000, 1000)))
    assert view.elements.size == 1 and view.strides == (0, 0)


def test_a_field_of_a_record_is_copied():
    records = numpy.array([(1, 2.5), (2, 3.5)], dtype=[("tag", "u1"), ("value", "f4")])
    view = arrays.storage_of(records["value"])
    assert view.strides == (1,)
    numpy.testing.assert_array_equal(view.elements, [2.5, 3.5])


@pytest.mark.parametrize("shape, strides", [((), ()), ((3,), (1,)), ((2, 3, 4), (12, 4, 1)), ((2, 0, 4), (4, 4, 1))])
def test_contiguous_strides(shape, strides):
    assert arrays.contiguous_strides(shape) == strides


def test_option_names():
    assert arrays.code_of("sum", {"none": 0, "sum": 2}, "reduction") == 2
    assert arrays.code_of(7, {"none": 0}, "reduction") == 7
    with pytest.raises(ValueError, match="reduction is 'average', not one of 'none'"):
        arrays.code_of("average", {"none": 0}, "reduction")
