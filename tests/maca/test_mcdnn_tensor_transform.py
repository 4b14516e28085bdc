"""Padding, folding and unfolding against an element-by-element model (mcdnn 5.1, 7.3)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, LAYOUTS, Buffer, Tensor, assert_close, call,
                                      descriptor, handle, ok, random, run, scale)

TYPES = [FLOAT, DOUBLE, HALF, BFLOAT16]


def transform(rank, before=None, after=None, fold=None, *, unfold=False, layout=0):
    """A transform descriptor that lives as long as the object that is returned."""
    made = ffi.new("mcdnnTensorTransformDescriptor_t *")
    ok(lib.mcdnnCreateTensorTransformDescriptor(made))
    ok(lib.mcdnnSetTensorTransformDescriptor(made[0], rank, layout, *[ffi.NULL if it is None else it for it in (
        before, after, fold)], int(unfold)))
    return ffi.gc(made[0], lib.mcdnnDestroyTensorTransformDescriptor)


def filter_descriptor(sizes, data_type=FLOAT, layout=0):
    made = ffi.new("mcdnnFilterDescriptor_t *")
    ok(lib.mcdnnCreateFilterDescriptor(made))
    ok(lib.mcdnnSetFilterNdDescriptor(made[0], data_type, layout, len(sizes), list(sizes)))
    return ffi.gc(made[0], lib.mcdnnDestroyFilterDescriptor)


def model(x, before, after, fold, unfold):
    """Every element's place, one by one."""
    n, c, *space = x.shape
    blocks = int(np.prod(fold))
    if unfold:
        sizes = [n, c // blocks, *[size * f for size, f in zip(space, fold)]]
        sizes = [size + b + a for size, b, a in zip(sizes, before, after)]
    else:
        padded_channels = before[1] + c + after[1]
        sizes = [n + before[0] + after[0], padded_channels * blocks]
        sizes += [-(-(size + b + a) // f) for size, b, a, f in zip(space, before[2:], after[2:], fold)]
    y = np.zeros(sizes)
    for image, channel, *place in np.ndindex(x.shape):
        if unfold:
            offsets = np.unravel_index(channel // (c // blocks), fold)
            target = [b + p * f + o for b, p, f, o in zip(before[2:], place, fold, offsets)]
            target = [image + before[0], channel % (c // blocks) + before[1], *target]
        else:
            padded = [p + b for p, b in zip(place, before[2:])]
            block = int(np.ravel_multi_index([p % f for p, f in zip(padded, fold)], fold))
            target = [image + before[0], block * padded_channels + before[1] + channel]
            target += [p // f for p, f in zip(padded, fold)]
        y[tuple(target)] = x[(image, channel, *place)]
    return y


def transform_tensor(descriptor_, x, y, alpha=1.0, beta=0.0):
    run("mcdnnTransformTensorEx", handle=handle(), transDesc=descriptor_, alpha=scale(alpha, y.data_type), srcDesc=x,
        srcData=x, beta=scale(beta, y.data_type), destDesc=y, destData=y)


CASES = [((2, 3, 5, 7), (0, 0, 0, 0), (0, 0, 0, 0), (2, 3), False),
         ((2, 3, 5, 7), (1, 2, 3, 4), (2, 1, 0, 3), (2, 3), False),
         ((1, 1, 1, 1), (0, 0, 5, 0), (0, 0, 0, 0), (3, 2), False),
         ((2, 3, 4, 6), (1, 1, 1, 1), (0, 2, 1, 0), (1, 1), False),
         ((2, 12, 3, 4), (0, 0, 0, 0), (0, 0, 0, 0), (2, 3), True),
         ((2, 12, 3, 4), (1, 2, 3, 4), (2, 1, 0, 3), (3, 2), True),
         ((2, 3, 17), (0, 1, 1), (0, 0, 0), (4,), False),
         ((2, 3, 3, 4, 5), (0, 1, 1, 0, 1), (0, 0, 0, 1, 1), (2, 1, 3), False),
         ((1, 16, 2, 3, 2), (0, 0, 1, 0, 1), (1, 0, 0, 1, 1), (2, 2, 2), True)]


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_elements_land_where_the_model_puts_them(case, data_type):
    sizes, before, after, fold, unfold = case
    x = Tensor(random(sizes, data_type, 1), data_type)
    expected = model(x.values(), before, after, fold, unfold)
    y = Tensor(np.full(expected.shape, np.nan), data_type)
    transform_tensor(transform(len(sizes), before, after, fold, unfold=unfold), x, y, 1.5)
    assert_close(y.values(), 1.5 * expected, data_type, 1)


@pytest.mark.parametrize("output", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_layouts_agree_and_gaps_stay(source, output):
    sizes, before, after, fold = (2, 3, 5, 7), (0, 1, 1, 0), (0, 0, 2, 1), (2, 2)
    x = Tensor(random(sizes, FLOAT, 1), strides=LAYOUTS[source](sizes))
    expected = model(x.values(), before, after, fold, False)
    y = Tensor(np.full(expected.shape, np.nan), strides=LAYOUTS[output](expected.shape))
    transform_tensor(transform(4, before, after, fold), x, y)
    np.testing.assert_array_equal(y.values(), expected)
    assert y.gaps_untouched()


@pytest.mark.parametrize("types", [(FLOAT, HALF), (BFLOAT16, DOUBLE), (DOUBLE, FLOAT)])
def test_without_padding_and_folding_it_is_a_scaled_copy_onto_the_old_values(types):
    x, y = Tensor(random((2, 3, 5), types[0], 1), types[0]), Tensor(random((2, 3, 5), types[1], 2), types[1])
    prior = y.values()
    transform_tensor(transform(3), x, y, 0.5, 2.0)
    assert_close(y.values(), 0.5 * x.values() + 2 * prior, types[1], 2, floor=6)


@pytest.mark.parametrize("padding", [((0,) * 4, (0,) * 4), ((1, 2, 3, 4), (2, 1, 0, 3))])
def test_unfolding_adds_to_the_old_values_everywhere(padding):
    x = Tensor(random((2, 12, 3, 4), HALF, 1), HALF)
    moved = model(x.values(), *padding, (3, 2), True)
    y = Tensor(random(moved.shape, HALF, 2), HALF)
    prior = y.values()
    transform_tensor(transform(4, *padding, (3, 2), unfold=True), x, y, 0.5, 2.0)
    assert_close(y.values(), 0.5 * moved + 2 * prior, HALF, 1, floor=np.abs(prior))


def test_unfolding_undoes_folding():
    x, back = Tensor(random((2, 3, 6, 8), FLOAT, 1)), Tensor(np.zeros((2, 3, 6, 8)))
    folded = Tensor(np.zeros((2, 12, 3, 4)))
    transform_tensor(transform(4, fold=(2, 2)), x, folded)
    transform_tensor(transform(4, fold=(2, 2), unfold=True), folded, back)
    assert back.bytes() == x.bytes()


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_result_is_described(case, layout):
    sizes, before, after, fold, unfold = case
    expected = model(np.zeros(sizes), before, after, fold, unfold).shape
    made, size, rank = descriptor((1,)), ffi.new("size_t *"), ffi.new("int *")
    found, strides = ffi.new("int[8]"), ffi.new("int[8]")
    wanted = transform(len(sizes), before, after, fold, unfold=unfold, layout=layout)
    ok(call("mcdnnInitTransformDest", transformDesc=wanted, srcDesc=descriptor(sizes, HALF), destDesc=made,
            destSizeInBytes=size))
    kind = ffi.new("mcdnnDataType_t *")
    ok(lib.mcdnnGetTensorNdDescriptor(made, 8, kind, rank, found, strides))
    assert (kind[0], tuple(found[0:rank[0]]), size[0]) == (HALF, expected, 2 * int(np.prod(expected)))
    assert tuple(strides[0:rank[0]]) == LAYOUTS["nhwc" if layout else "nchw"](expected)


def test_filters_fold_in_their_format():
    sizes, fold = (2, 3, 4, 6), (2, 2)
    values = random(sizes, FLOAT, 1)
    expected = model(values, (0,) * 4, (0,) * 4, fold, False)
    source, target = Buffer(values.astype(np.float32)), Buffer(np.full(expected.size, np.nan, np.float32))
    run("mcdnnTransformFilter", handle=handle(), transDesc=transform(4, fold=fold, layout=1), alpha=scale(1),
        srcDesc=filter_descriptor(sizes), srcData=source, beta=scale(0),
        destDesc=filter_descriptor(expected.shape, layout=1), destData=target)
    n, c, h, w = expected.shape
    np.testing.assert_array_equal(target.read().reshape(n, h, w, c).transpose(0, 3, 1, 2), expected)


def test_descriptors_report_what_they_hold():
    made = transform(4, (1, 2, 3, 4), (5, 6, 7, 8), (9, 10), unfold=True, layout=1)
    layout, direction = ffi.new("mcdnnTensorFormat_t *"), ffi.new("mcdnnFoldingDirection_t *")
    before, after, fold = ffi.new("int32_t[4]"), ffi.new("int32_t[4]"), ffi.new("uint32_t[3]", [0, 0, 77])
    ok(lib.mcdnnGetTensorTransformDescriptor(made, 4, layout, before, after, fold, direction))
    assert (layout[0], direction[0]) == (lib.MCDNN_TENSOR_NHWC, lib.MCDNN_TRANSFORM_UNFOLD)
    assert (list(before), list(after), list(fold)) == ([1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 77])
    ok(lib.mcdnnGetTensorTransformDescriptor(made, 4, *[ffi.NULL] * 5))
