"""Pooling against NumPy models that visit every tap of the window (mcdnn 6.15, 7.3)."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.maca import ffi, lib

from tests.conformance.harness import run_python
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, LAYOUTS, Buffer, Tensor, assert_close, descriptor,
                                      digest_of, handle, nhwc_strides, ok, packed_strides, pooling, random, run, scale)

MAX, INCLUDE, EXCLUDE, DETERMINISTIC = (
    lib.MCDNN_POOLING_MAX, lib.MCDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
    lib.MCDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, lib.MCDNN_POOLING_MAX_DETERMINISTIC)
MODES = [MAX, INCLUDE, EXCLUDE, DETERMINISTIC]
TYPES = [FLOAT, DOUBLE, HALF, BFLOAT16]
ULPS = {FLOAT: 8, DOUBLE: 8, HALF: 1, BFLOAT16: 1}
# sizes of the input, window, padding, stride
SHAPES = [
    ((2, 3, 7, 9), (2, 2), (0, 0), (2, 2)),
    ((1, 2, 5, 6), (3, 3), (1, 1), (1, 1)),
    ((1, 1, 1, 1), (1, 1), (0, 0), (1, 1)),
    ((2, 2, 11, 13), (3, 5), (2, 1), (3, 2)),
    ((1, 1, 4, 3), (7, 6), (4, 4), (2, 3)),
    ((1, 2, 3, 1031), (2, 4), (1, 3), (1, 3)),
    ((1, 1, 3, 4), (2, 140), (1, 139), (1, 1)),
    ((2, 2, 4, 5, 6), (2, 3, 2), (1, 0, 1), (2, 1, 2)),
    ((1, 3, 2, 2, 5), (2, 2, 5), (0, 0, 2), (1, 1, 1)),
]


def output_sizes(sizes, window, padding, stride):
    return sizes[:2] + tuple(1 + (n + 2 * p - w) // s for n, w, p, s in zip(sizes[2:], window, padding, stride))


@functools.lru_cache(maxsize=8)
def taps(sizes, window, padding, stride):
    """For every tap of the window, in row-major order: the outputs whose tap lies in the plane, and where it lies."""
    axes = zip(output_sizes(sizes, window, padding, stride)[2:], sizes[2:], window, padding, stride)
    of_axes = [[taps_of_axis(count, n, offset - p, s) for offset in range(w)] for count, n, w, p, s in axes]
    return [tuple((..., *slices) for slices in zip(*pairs)) for pairs in itertools.product(*of_axes)]


def taps_of_axis(count, n, begin, stride):
    """Of windows that begin at 0, their tap `begin`: the outputs where it is one of n elements, and these."""
    places = [(output, place) for output in range(count) if 0 <= (place := output * stride + begin) < n]
    if not places:
        return slice(0), slice(0)
    (first, low), (last, high) = places[0], places[-1]
    return slice(first, last + 1), slice(low, high + 1, stride)


def tap_counts(sizes, window, padding, stride):
    """How many taps of each output lie inside the plane."""
    counts = np.zeros(output_sizes(sizes, window, padding, stride), int)
    for outputs, _ in taps(sizes, window, padding, stride):
        counts[outputs] += 1
    return counts


def divisors(sizes, mode, window, padding, stride):
    """Of averages."""
    return np.prod(window) if mode == INCLUDE else np.maximum(tap_counts(sizes, window, padding, stride), 1)


def forward_model(x, mode, window, padding, stride):
    extremes = mode in (MAX, DETERMINISTIC)
    y = np.full(output_sizes(x.shape, window, padding, stride), -np.inf if extremes else 0.0)
    for outputs, inputs in taps(x.shape, window, padding, stride):
        y[outputs] = np.maximum(y[outputs], x[inputs]) if extremes else y[outputs] + x[inputs]
    return y if extremes else y / divisors(x.shape, mode, window, padding, stride)


def backward_model(x, y, dy, mode, window, padding, stride):
    """The slope of a maximum goes to its first tap (MAX), or to the first tap that is equal to y."""
    dx, extremes = np.zeros(x.shape), mode in (MAX, DETERMINISTIC)
    wanted = forward_model(x, mode, window, padding, stride) if mode == MAX else y
    slopes = dy if extremes else dy / divisors(x.shape, mode, window, padding, stride)
    left = np.ones(dy.shape, bool)  # outputs whose slope has not gone anywhere yet
    for outputs, inputs in taps(x.shape, window, padding, stride):
        mine = left[outputs] & (x[inputs] == wanted[outputs]) if extremes else True
        dx[inputs] += np.where(mine, slopes[outputs], 0)
        if extremes:
            left[outputs] &= ~mine
    return dx


def forward(descriptor, x, y, alpha=1.0, beta=0.0):
    run("mcdnnPoolingForward", handle=handle(), poolingDesc=descriptor, alpha=scale(alpha, x.data_type), xDesc=x, x=x,
        beta=scale(beta, x.data_type), yDesc=y, y=y)


def backward(descriptor, y, dy, x, dx, alpha=1.0, beta=0.0):
    run("mcdnnPoolingBackward", handle=handle(), poolingDesc=descriptor, alpha=scale(alpha, dx.data_type), yDesc=y, y=y,
        dyDesc=dy, dy=dy, xDesc=x, xData=x, beta=scale(beta, dx.data_type), dxDesc=dx, dx=dx)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", SHAPES)
def test_forward_and_backward_follow_the_definition(shape, mode, data_type):
    sizes, *window = shape
    descriptor = pooling(mode, *window)
    outputs = output_sizes(*shape)
    if mode in (MAX, DETERMINISTIC) and not tap_counts(*shape).all():
        pytest.skip("a maximum over nothing has its own test")
    x_values = random(sizes, data_type, 1).round(0 if mode == MAX else 4)  # ties
    x, y = Tensor(x_values, data_type), Tensor(random(outputs, data_type, 2), data_type)
    x_values, prior = x.values(), y.values()
    forward(descriptor, x, y, 1.5, -0.5)
    model = forward_model(x_values, mode, *window)
    assert_close(y.values(), 1.5 * model - 0.5 * prior, data_type, ULPS[data_type],
                 floor=np.abs(1.5 * model) + np.abs(0.5 * prior) + 1)
    forward(descriptor, x, y)
    dy, dx = Tensor(random(outputs, data_type, 3), data_type), Tensor(random(sizes, data_type, 4), data_type)
    prior = dx.values()
    backward(descriptor, y, dy, x, dx, 0.75, 2.0)
    model = backward_model(x_values, y.values(), dy.values(), mode, *window)
    assert_close(dx.values(), 0.75 * model + 2.0 * prior, data_type, ULPS[data_type] * 2, floor=np.abs(2 * prior) + 4)


def test_average_backward_needs_neither_x_nor_y():
    dy = Tensor(random((2, 3, 3, 3), FLOAT))
    expected, dx = Tensor(np.zeros((2, 3, 6, 6))), Tensor(np.full((2, 3, 6, 6), np.nan))
    for mode in (INCLUDE, EXCLUDE):
        descriptor = pooling(mode, (2, 2), (0, 0), (2, 2))
        backward(descriptor, dy, dy, expected, expected)
        run("mcdnnPoolingBackward", handle=handle(), poolingDesc=descriptor, alpha=scale(1), yDesc=None, y=None,
            dyDesc=dy,
            dy=dy, xDesc=None, xData=None, beta=scale(0), dxDesc=dx, dx=dx)
        assert dx.bytes() == expected.bytes()


def test_maximum_backward_does_not_read_y_and_the_deterministic_form_does():
    x = Tensor(np.array([1.0, 5.0, 5.0, 2.0]).reshape(1, 1, 1, 4))
    y, dy, dx = Tensor(np.full((1, 1, 1, 1), 2.0)), Tensor(np.ones((1, 1, 1, 1))), Tensor(np.full((1, 1, 1, 4), np.nan))
    backward(pooling(MAX, (1, 4), (0, 0), (1, 1)), y, dy, x, dx)
    assert dx.values().ravel().tolist() == [0, 1, 0, 0]
    backward(pooling(DETERMINISTIC, (1, 4), (0, 0), (1, 1)), y, dy, x, dx)
    assert dx.values().ravel().tolist() == [0, 0, 0, 1]
    backward(pooling(DETERMINISTIC, (1, 4), (0, 0), (1, 1)), Tensor(np.full((1, 1, 1, 1), 9.0)), dy, x, dx)
    assert dx.values().ravel().tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("data_type, lowest", [(FLOAT, -float(np.finfo(np.float32).max)), (HALF, -65504.0),
                                               (BFLOAT16, -3.3895313892515355e38), (DOUBLE, -np.finfo(float).max)])
@pytest.mark.parametrize("mode", [MAX, DETERMINISTIC])
def test_nan_option_of_the_maximum(mode, data_type, lowest):
    values = np.array([np.nan, 1, np.nan, np.nan, -np.inf, np.nan, 3, 7]).reshape(1, 1, 1, 8)
    x, y = Tensor(values, data_type), Tensor(np.zeros((1, 1, 1, 4)), data_type)
    dy, dx = Tensor(np.array([1, 2, 3, 4]).reshape(1, 1, 1, 4), data_type), Tensor(np.zeros((1, 1, 1, 8)), data_type)
    dropped, kept = (pooling(mode, (1, 2), (0, 0), (1, 2), propagate_nan=option) for option in (False, True))
    forward(dropped, x, y)
    assert y.values().ravel().tolist() == [1, lowest, -np.inf, 7]
    backward(dropped, y, dy, x, dx)
    assert dx.values().ravel().tolist() == [0, 1, 0, 0, 3, 0, 0, 4]
    forward(kept, x, y)
    np.testing.assert_array_equal(y.values().ravel(), [np.nan, np.nan, np.nan, 7])
    backward(kept, y, dy, x, dx)
    assert dx.values().ravel().tolist() == [1, 0, 2, 0, 0, 3, 0, 4]


@pytest.mark.parametrize("strides", [packed_strides, nhwc_strides])
@pytest.mark.parametrize("mode", MODES)
def test_int8_runs_forward(mode, strides):
    """Averages are rounded to nearest, ties to even."""
    sizes, window = (2, 3, 5, 7), ((2, 3), (1, 1), (2, 1))
    values = random(sizes, lib.MCDNN_DATA_INT8, 1, 127.0)
    model = forward_model(values, mode, *window)
    x = Tensor(values, lib.MCDNN_DATA_INT8, strides(sizes))
    y = Tensor(np.zeros(model.shape), lib.MCDNN_DATA_INT8, strides(model.shape))
    forward(pooling(mode, *window), x, y)
    np.testing.assert_array_equal(y.values(), np.rint(model))
    assert y.gaps_untouched()


@pytest.mark.parametrize("strides", [packed_strides, nhwc_strides])
@pytest.mark.parametrize("mode", [MAX, DETERMINISTIC])
def test_a_maximum_over_padding_alone_is_the_lowest_int8(mode, strides):
    """Before the factors: 0.5 * -128 + 20."""
    x = Tensor(np.full((2, 3, 1, 1), 10), lib.MCDNN_DATA_INT8, strides((2, 3, 1, 1)))
    y = Tensor(np.full((2, 3, 3, 3), 20), lib.MCDNN_DATA_INT8, strides((2, 3, 3, 3)))
    forward(pooling(mode, (1, 1), (1, 1), (1, 1)), x, y, 0.5, 1.0)
    wanted = np.full((2, 3, 3, 3), -44)
    wanted[:, :, 1, 1] = 25
    np.testing.assert_array_equal(y.values(), wanted)


@pytest.mark.parametrize("mode", MODES)
def test_vectors_of_four_channels_run_forward(mode):
    sizes, window = (2, 12, 5, 7), ((2, 3), (1, 1), (2, 1))
    values = random(sizes, lib.MCDNN_DATA_INT8, 1, 127.0)
    model = forward_model(values, mode, *window)

    def vectors(array):
        n, c, h, w = array.shape
        return array.reshape(n, c // 4, 4, h, w).transpose(0, 1, 3, 4, 2).astype(np.int8)

    def described(array):
        made = descriptor((1,))
        ok(lib.mcdnnSetTensor4dDescriptor(made, lib.MCDNN_TENSOR_NCHW_VECT_C, lib.MCDNN_DATA_INT8x4, *array.shape))
        return made, Buffer(vectors(array))

    (x_desc, x), (y_desc, y) = described(values), described(np.zeros(model.shape))
    run("mcdnnPoolingForward", handle=handle(), poolingDesc=pooling(mode, *window), alpha=scale(1), xDesc=x_desc, x=x,
        beta=scale(0), yDesc=y_desc, y=y)
    np.testing.assert_array_equal(y.read(), vectors(np.rint(model)))


def test_windows_without_a_tap_inside():
    x = Tensor(np.ones((1, 1, 1, 1)))
    for mode, expected in ((MAX, -float(np.finfo(np.float32).max)), (INCLUDE, 0.0), (EXCLUDE, 0.0)):
        y = Tensor(np.zeros((1, 1, 5, 5)))
        forward(pooling(mode, (1, 1), (2, 2), (1, 1)), x, y)
        assert y.values()[0, 0, 0].tolist() == [expected] * 5
        assert y.values()[0, 0, 2, 2] == 1


def test_gaps_stay_and_the_old_value_is_not_read():
    sizes, strides = (2, 3, 6, 7), (400, 120, 11, 1)
    x = Tensor(random(sizes, FLOAT), strides=strides)
    y, dx = Tensor(np.full((2, 3, 3, 3), np.nan), strides=(90, 23, 5, 1)), Tensor(np.full(sizes, np.nan),
                                                                                  strides=strides)
    dy = Tensor(random((2, 3, 3, 3), FLOAT), strides=(90, 23, 5, 1))
    for mode in MODES:
        descriptor = pooling(mode, (2, 2), (0, 0), (2, 2))
        forward(descriptor, x, y)
        assert_close(y.values(), forward_model(x.values(), mode, (2, 2), (0, 0), (2, 2)), FLOAT, 4)
        backward(descriptor, y, dy, x, dx)
        expected = backward_model(x.values(), y.values(), dy.values(), mode, (2, 2), (0, 0), (2, 2))
        assert_close(dx.values(), expected, FLOAT, 4)
        assert y.gaps_untouched() and dx.gaps_untouched()


def test_gradients_of_narrow_images_end_where_they_end():
    """Rows are narrower than what the loops write at once; what lies behind each image is the caller's."""
    ways = [((3, 3), (1, 1), (2, 2)), ((2, 2), (0, 0), (2, 2)), ((3, 3), (1, 1), (1, 1))]
    for (height, width), (window, padding, stride), data_type, gap in itertools.product(
            itertools.product((3, 5, 8), (3, 7, 17, 31, 33)), ways, (FLOAT, HALF), (0, 5)):
        sizes, plane = (3, 1, height, width), height * (width + gap)
        strides = plane + 96, plane, width + gap, 1
        x = Tensor(random(sizes, data_type), data_type, strides)
        dx = Tensor(np.full(sizes, np.nan), data_type, strides)
        outputs = output_sizes(sizes, window, padding, stride)
        y, dy = Tensor(np.zeros(outputs), data_type), Tensor(random(outputs, data_type), data_type)
        descriptor = pooling(MAX, window, padding, stride)
        forward(descriptor, x, y)
        backward(descriptor, y, dy, x, dx)
        expected = backward_model(x.values(), y.values(), dy.values(), MAX, window, padding, stride)
        assert_close(dx.values(), expected, data_type, 9)
        assert dx.gaps_untouched()


def gapped_pixels(sizes):
    """Channels innermost, and a gap behind each pixel."""
    return tuple(stride if axis == 1 else stride // sizes[1] * (sizes[1] + 2)
                 for axis, stride in enumerate(nhwc_strides(sizes)))


FORWARD_LAYOUTS = {**LAYOUTS, "gapped pixels": gapped_pixels}


@pytest.mark.parametrize("target", FORWARD_LAYOUTS)
@pytest.mark.parametrize("source", FORWARD_LAYOUTS)
@pytest.mark.parametrize("mode", MODES)
def test_forward_runs_channels_last(mode, source, target):
    x_strides, y_strides = FORWARD_LAYOUTS[source], FORWARD_LAYOUTS[target]
    for channels, (space, *window) in itertools.product((1, 3, 37), [
            ((7, 9), (2, 2), (0, 0), (2, 2)), ((6, 11), (3, 3), (1, 1), (1, 1)), ((9, 8), (3, 2), (1, 0), (2, 3)),
            ((4, 3, 5), (2, 3, 2), (1, 0, 1), (2, 1, 2))]):
        sizes = (2, channels, *space)
        outputs = output_sizes(sizes, *window)
        x = Tensor(random(sizes, HALF, 1), HALF, x_strides(sizes))
        y = Tensor(random(outputs, HALF, 2), HALF, y_strides(outputs))
        prior = y.values()
        forward(pooling(mode, *window), x, y, 1.5, -0.5)
        model = forward_model(x.values(), mode, *window)
        assert_close(y.values(), 1.5 * model - 0.5 * prior, HALF, 1, floor=np.abs(1.5 * model) + np.abs(prior) + 1)
        forward(pooling(mode, *window), x, y)
        assert_close(y.values(), model, HALF, 1)
        assert y.gaps_untouched()


@pytest.mark.parametrize("data_type", TYPES)
def test_channels_last_gives_the_same_bits(data_type):
    for mode, (window, padding, stride) in itertools.product(MODES, [((2, 2), (0, 0), (2, 2)), ((3, 3), (1, 1), (2, 2)),
                                                                     ((3, 3), (1, 1), (1, 1))]):
        sizes = (2, 19, 37, 43)
        outputs = output_sizes(sizes, window, padding, stride)
        values = random(sizes, data_type, 1)
        values[:, ::3, ::5, ::4] = np.nan
        results = []
        for strides in (packed_strides, nhwc_strides):
            y = Tensor(np.zeros(outputs), data_type, strides(outputs))
            forward(pooling(mode, window, padding, stride), Tensor(values, data_type, strides(sizes)), y)
            results.append(y.stored().tobytes())
        assert results[0] == results[1]


@pytest.mark.parametrize("mode", [MAX, INCLUDE])
def test_a_result_may_take_the_place_of_its_input(mode):
    values, descriptor = random((2, 3, 33, 35), FLOAT, 1), pooling(mode, (3, 3), (1, 1), (1, 1))
    x = Tensor(values)
    forward(descriptor, x, x)
    assert_close(x.values(), forward_model(values, mode, (3, 3), (1, 1), (1, 1)), FLOAT, 4)
    y, slopes = Tensor(values), random((2, 3, 33, 35), FLOAT, 2)
    dx = Tensor(slopes)
    backward(descriptor, y, dx, y, dx)
    assert_close(dx.values(), backward_model(values, values, slopes, mode, (3, 3), (1, 1), (1, 1)), FLOAT, 8, floor=4)


def test_descriptors_report_what_they_were_given():
    mode, nan, numbers = ffi.new("mcdnnPoolingMode_t *"), ffi.new("mcdnnNanPropagation_t *"), ffi.new("int[6]")
    made = pooling(EXCLUDE, (3, 5), (1, 2), (4, 6), propagate_nan=True)
    ok(lib.mcdnnGetPooling2dDescriptor(made, mode, nan, *[numbers + i for i in range(6)]))
    assert (mode[0], nan[0], list(numbers)) == (EXCLUDE, 1, [3, 5, 1, 2, 4, 6])
    made = pooling(MAX, (3, 5, 7), (1, 2, 3), (4, 6, 8))
    rank, arrays = ffi.new("int *"), [ffi.new("int[3]", [-1] * 3) for _ in range(3)]
    ok(lib.mcdnnGetPoolingNdDescriptor(made, 2, mode, nan, rank, *arrays))
    assert (mode[0], nan[0], rank[0], [list(array) for array in arrays]) == (
        MAX, 0, 3, [[3, 5, -1], [1, 2, -1], [4, 6, -1]])


def test_output_sizes_beyond_int_are_the_largest():
    most, found = 2**31 - 1, ffi.new("int[4]")
    x, windows = Tensor(np.zeros((2, 3, 4, 5))), pooling(lib.MCDNN_POOLING_MAX, (1, 2), (most, most), (1, most))
    ok(lib.mcdnnGetPooling2dForwardOutputDim(windows, x.descriptor, *[found + axis for axis in range(4)]))
    assert list(found) == [2, 3, most, 3]  # 2 * most + 4 rows; 1 + (2 * most + 3) // most columns
    ok(lib.mcdnnGetPoolingNdForwardOutputDim(windows, x.descriptor, 4, found))
    assert list(found) == [2, 3, most, 3]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes, window, padding, stride", [
    ((1, 2, 700, 67), (3, 3), (1, 1), (2, 2)), ((1, 1, 531, 129), (5, 2), (2, 0), (1, 1)),
    ((1, 1, 37, 30, 41), (3, 2, 3), (1, 1, 0), (1, 2, 2)), ((2, 1, 60, 50), (60, 50), (0, 0), (1, 1)),
    ((1, 2, 3, 4), (9, 1000), (8, 999), (1, 7))])
def test_planes_that_are_cut_and_windows_as_large_as_planes(sizes, window, padding, stride, mode):
    outputs, descriptor = output_sizes(sizes, window, padding, stride), pooling(mode, window, padding, stride)
    if mode in (MAX, DETERMINISTIC) and not tap_counts(sizes, window, padding, stride).all():
        return
    x, y = Tensor(random(sizes, FLOAT, 1).round(1)), Tensor(np.full(outputs, np.nan))
    forward(descriptor, x, y)
    exact = mode in (MAX, DETERMINISTIC)
    assert_close(y.values(), forward_model(x.values(), mode, window, padding, stride), FLOAT, 0 if exact else 8)
    dy, dx = Tensor(random(outputs, FLOAT, 2)), Tensor(np.full(sizes, np.nan))
    backward(descriptor, y, dy, x, dx)
    expected = backward_model(x.values(), y.values(), dy.values(), mode, window, padding, stride)
    terms = backward_model(x.values(), y.values(), np.abs(dy.values()), mode, window, padding, stride)
    assert_close(dx.values(), expected, FLOAT, 8, floor=terms + 1)


@pytest.mark.parametrize("data_type", TYPES)
def test_maximum_of_windows_side_by_side(data_type):
    """2 x 2 in rows of more windows than a vector has: ties, signs of 0, NaN, infinities, and elements of no window."""
    for sizes, mode, propagate in itertools.product(((1, 2, 5, 43), (2, 1, 6, 32)), (MAX, DETERMINISTIC), (False, True)):
        height, width = (size // 2 for size in sizes[2:])
        values = random(sizes, data_type, 1).round()
        values[..., ::3, 1::5], values[..., :2, 6:8], values[..., 1:3, 9::4] = np.nan, np.nan, -np.inf
        descriptor = pooling(mode, (2, 2), (0, 0), (2, 2), propagate_nan=propagate)
        x, y = Tensor(values, data_type), Tensor(np.zeros((*sizes[:2], height, width)), data_type)
        forward(descriptor, x, y)
        dy, dx = Tensor(random(y.sizes, data_type, 2), data_type), Tensor(np.full(sizes, 7.0), data_type)
        backward(descriptor, y, dy, x, dx)
        taps = values[..., : 2 * height, : 2 * width].reshape(*sizes[:2], height, 2, width, 2).swapaxes(3, 4)
        taps = taps.reshape(*y.sizes, 4)
        order = np.where(np.isnan(taps), np.inf if propagate else -np.inf, taps)
        wins = (np.arange(4) == np.where(propagate & np.isnan(taps).any(-1, keepdims=True), np.isnan(taps),
                                         (order == order.max(-1, keepdims=True)) & ~np.isnan(taps)
                                         ).argmax(-1)[..., None]) & (propagate | ~np.isnan(taps).all(-1, keepdims=True))
        expected = np.zeros(sizes)
        expected[..., : 2 * height, : 2 * width] = np.where(wins, dy.values()[..., None], 0).reshape(
            *sizes[:2], height, width, 2, 2).swapaxes(3, 4).reshape(*sizes[:2], 2 * height, 2 * width)
        np.testing.assert_array_equal(dx.values(), expected)


def winner_of(window, propagate):
    """Where the maximum of a window is, or None."""
    nans = np.flatnonzero(np.isnan(window))
    if propagate and nans.size:
        return nans[0]
    return None if nans.size == window.size else np.flatnonzero(window == np.nanmax(window))[0]


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("window, padding, stride", [
    ((3, 3), (1, 1), (2, 2)), ((3, 3), (0, 0), (2, 2)), ((3, 3), (0, 1), (2, 2)), ((3, 3), (1, 0), (2, 2)),
    ((3, 3), (1, 2), (1, 1)), ((2, 5), (0, 3), (3, 3)), ((3, 4), (2, 0), (2, 2))])
def test_winners_among_nans_and_infinities(window, padding, stride, data_type):
    """Windows that overlap and reach over the edges, whose neighbours there are no taps."""
    images = (1, 3, 9, 37), (1, 2, 8, 64), (1, 2, 9, 66)
    for mode, propagate, sizes in itertools.product((MAX, DETERMINISTIC), (False, True), images):
        values = random(sizes, data_type, 1).round()
        values[:, 0, ::3, 1::5], values[:, 0, :4, :6], values[:, 0, 4:7, 9:14] = -0.0, np.nan, -np.inf
        values[:, 1, 5, 20], values[:, 1, -3:, -6:], values[:, 1, :3, -5:] = np.nan, -np.inf, np.inf
        made = pooling(mode, window, padding, stride, propagate_nan=propagate)
        x, y = Tensor(values, data_type), Tensor(np.zeros(output_sizes(sizes, window, padding, stride)), data_type)
        forward(made, x, y)
        dy, dx = Tensor(random(y.sizes, data_type, 2).round(), data_type), Tensor(np.full(sizes, 7.0), data_type)
        backward(made, y, dy, x, dx)
        given, expected = dy.values(), np.zeros(sizes)
        for at in np.ndindex(*y.sizes):
            rows, columns = (slice(max(o * s - p, 0), min(o * s - p + w, n))
                             for o, s, p, w, n in zip(at[2:], stride, padding, window, sizes[2:]))  # fmt: skip
            seen, slopes = values[at[0], at[1], rows, columns], expected[at[0], at[1], rows, columns]
            winner = winner_of(seen.ravel(), propagate)
            if winner is not None:
                slopes[np.unravel_index(winner, seen.shape)] += given[at]
        np.testing.assert_array_equal(dx.values(), expected)


@pytest.mark.parametrize("mode", [MAX, DETERMINISTIC])
def test_windows_of_more_taps_than_16_bits_can_number(mode):
    sizes = (1, 2, 200, 210)
    values = np.zeros(sizes)
    values[0, 0, 190, 3], values[0, 1, 17, 209] = 2, 3
    x, y, dy = (Tensor(v, HALF) for v in (values, values.max((2, 3), keepdims=True), np.full((1, 2, 1, 1), 5.0)))
    dx = Tensor(np.full(sizes, 2.0), HALF)
    backward(pooling(mode, sizes[2:], (0, 0), (1, 1)), y, dy, x, dx, 2.0, 0.25)
    np.testing.assert_array_equal(dx.values(), np.where(values > 0, 10.5, 0.5))


@settings(max_examples=60, deadline=None)
@given(mode=st.sampled_from(MODES), data=st.data())
def test_any_window(mode, data):
    axes = data.draw(st.integers(2, 3))
    numbers = lambda low, high: tuple(data.draw(st.integers(low, high)) for _ in range(axes))  # noqa: E731
    window, stride = numbers(1, 4), numbers(1, 4)
    padding = tuple(data.draw(st.integers(0, size - 1)) for size in window)
    sizes = (1, 2, *(data.draw(st.integers(max(1, w - 2 * p), 7)) for w, p in zip(window, padding)))
    if not tap_counts(sizes, window, padding, stride).all():
        return
    x, descriptor = Tensor(random(sizes, FLOAT, 1).round()), pooling(mode, window, padding, stride)
    y = Tensor(np.full(output_sizes(sizes, window, padding, stride), np.nan))
    found = ffi.new("int[5]")
    ok(lib.mcdnnGetPoolingNdForwardOutputDim(descriptor, x.descriptor, axes + 2, found))
    assert tuple(found)[: axes + 2] == y.sizes
    forward(descriptor, x, y)
    assert_close(y.values(), forward_model(x.values(), mode, window, padding, stride), FLOAT, 4)
    dy, dx = Tensor(random(y.sizes, FLOAT, 2)), Tensor(np.full(sizes, np.nan))
    backward(descriptor, y, dy, x, dx)
    assert_close(dx.values(), backward_model(x.values(), y.values(), dy.values(), mode, window, padding, stride),
                 FLOAT, 8,
                 floor=4)


def digest() -> str:
    outputs = []
    shapes = [((3, 3), (1, 1), (stride, stride)) for stride in (2, 1, 3)] + [((2, 2), (0, 0), (2, 2))]
    for mode, data_type, nan, shape in itertools.product(MODES, TYPES, (False, True), shapes):
        if shape == shapes[-1] and mode in (INCLUDE, EXCLUDE):
            continue  # loops of the maximum alone
        descriptor = pooling(mode, *shape, propagate_nan=nan)
        values = random((3, 5, 65, 63), data_type, 1)
        values[:, :, ::7, ::11] = np.nan if mode in (MAX, DETERMINISTIC) else 0.5
        values[:, 0, 5:12, 5:12] = -np.inf
        x = Tensor(values, data_type)
        y = Tensor(np.zeros(output_sizes(x.sizes, *shape)), data_type)
        dx, dy = Tensor(np.zeros(x.sizes), data_type), Tensor(random(y.sizes, data_type, 2), data_type)
        forward(descriptor, x, y)
        backward(descriptor, y, dy, x, dx)
        outputs += [y, dx]
    return digest_of(outputs)


def test_results_do_not_depend_on_threads_or_instruction_set():
    source = "from tests.maca.test_mcdnn_pooling import digest; print(digest())"
    settings = [{"UNDERSTUDY_THREADS": threads} for threads in ("1", "2", "5")]
    settings += [{"UNDERSTUDY_ISA": level} for level in ("base", "v3", "v4")]
    assert len({run_python(source, setting) for setting in settings}) == 1
