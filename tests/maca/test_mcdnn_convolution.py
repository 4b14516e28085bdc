"""Convolutions against sums over every tap in float64, the worked numbers of the sheet, and finite differences
(mcdnn-cnn 5 to 12)."""

import os
import subprocess
import sys

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.convolution import data_model, forward_model, out_sizes, slope_model
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, LAYOUTS, ROUNDING, Buffer, Tensor, activation,
                                      call, descriptor, differences, from_storage, handle, nhwc_strides, ok, random,
                                      run, scale, synchronize, to_storage)  # fmt: skip
from tests.maca.test_mcdnn_tensor_transform import filter_descriptor

CONVOLUTION, CROSS = lib.MCDNN_CONVOLUTION, lib.MCDNN_CROSS_CORRELATION
INT8, INT32, UINT8 = lib.MCDNN_DATA_INT8, lib.MCDNN_DATA_INT32, lib.MCDNN_DATA_UINT8
TYPES = [FLOAT, DOUBLE, HALF, BFLOAT16]
TERMS = 600  # roundings of a sum, at most


def convolution(padding, stride, dilation, groups=1, mode=CROSS, compute=FLOAT):
    """A convolution descriptor that lives as long as the object that is returned."""
    made = ffi.new("mcdnnConvolutionDescriptor_t *")
    ok(lib.mcdnnCreateConvolutionDescriptor(made))
    ok(lib.mcdnnSetConvolutionGroupCount(made[0], groups))  # the setters keep it
    if len(padding) == 2:
        numbers = [number for pair in (padding, stride, dilation) for number in pair]
        ok(lib.mcdnnSetConvolution2dDescriptor(made[0], *numbers, mode, compute))
    else:
        ok(lib.mcdnnSetConvolutionNdDescriptor(made[0], len(padding), padding, stride, dilation, mode, compute))
    return ffi.gc(made[0], lib.mcdnnDestroyConvolutionDescriptor)


class Filter:
    """A packed filter in device memory with its descriptor, in the format NCHW or NHWC."""

    def __init__(self, values, data_type=FLOAT, last=False):
        self.sizes, self.data_type, self.last = values.shape, data_type, last
        stored = to_storage(np.asarray(values), data_type)
        self.buffer = Buffer(np.moveaxis(stored, 1, -1) if last else stored)
        self.descriptor = filter_descriptor(self.sizes, data_type, int(last))
        self.address = self.buffer.address

    def values(self):
        stored = from_storage(self.buffer.read(), self.data_type)
        return np.moveaxis(stored, -1, 1) if self.last else stored


def forward(conv, x, w, y, alpha=1.0, beta=0.0, algo=0):
    return call("mcdnnConvolutionForward", handle=handle(), alpha=scale(alpha, y.data_type), xDesc=x, x=x,
                wDesc=w.descriptor, w=w.address, convDesc=conv, algo=algo, workSpace=None, workSpaceSizeInBytes=0,
                beta=scale(beta, y.data_type), yDesc=y, y=y)


def backward_data(conv, w, dy, dx, alpha=1.0, beta=0.0, algo=1):
    return call("mcdnnConvolutionBackwardData", handle=handle(), alpha=scale(alpha, dx.data_type), wDesc=w.descriptor,
                w=w.address, dyDesc=dy, dy=dy, convDesc=conv, algo=algo, workSpace=None, workSpaceSizeInBytes=0,
                beta=scale(beta, dx.data_type), dxDesc=dx, dx=dx)


def backward_filter(conv, x, dy, dw, alpha=1.0, beta=0.0, algo=1):
    return call("mcdnnConvolutionBackwardFilter", handle=handle(), alpha=scale(alpha, x.data_type), xDesc=x, x=x,
                dyDesc=dy, dy=dy, convDesc=conv, algo=algo, workSpace=None, workSpaceSizeInBytes=0,
                beta=scale(beta, x.data_type), dwDesc=dw.descriptor, dw=dw.address)


def near(actual, expected, magnitude, data_type):
    """One rounding of the result, and those of a sum of at most TERMS terms in float (double)."""
    compute = ROUNDING[DOUBLE if data_type == DOUBLE else FLOAT]
    smallest = 2.0**-14 if data_type == HALF else 2.0**-126
    tolerance = ROUNDING[data_type] * np.maximum(np.abs(expected), smallest) + compute * magnitude * TERMS**0.5
    assert (np.abs(actual - expected) <= tolerance).all(), (np.abs(actual - expected) / tolerance).max()


# sizes of x and w, padding, stride, dilation, groups
PROBLEMS = [
    ((2, 6, 7, 9), (4, 3, 3, 2), (1, 0), (2, 1), (1, 2), 2),
    ((1, 3, 16, 17), (8, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4, 12, 11), (8, 1, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    ((2, 6, 40, 45), (6, 2, 8, 9), (3, 4), (3, 4), (3, 4), 3),
    ((2, 3, 12), (5, 3, 4), (2,), (3,), (2,), 1),
    ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), (1, 1, 0), (2, 1, 2), (1, 2, 1), 1),
]


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("mode", [CROSS, CONVOLUTION])
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_forward_and_both_gradients_follow_the_definition(problem, mode, data_type):
    x_sizes, w_sizes, padding, stride, dilation, groups = problem
    y_sizes = (x_sizes[0], w_sizes[0], *out_sizes(x_sizes[2:], w_sizes[2:], stride, padding, dilation))
    geometry = (stride, padding, dilation, groups, mode == CONVOLUTION)
    conv = convolution(padding, stride, dilation, groups, mode, DOUBLE if data_type == DOUBLE else FLOAT)
    x, dy = Tensor(random(x_sizes, data_type, 1), data_type), Tensor(random(y_sizes, data_type, 2), data_type)
    w = Filter(random(w_sizes, data_type, 3), data_type)
    y, dx = Tensor(random(y_sizes, data_type, 4), data_type), Tensor(random(x_sizes, data_type, 5), data_type)
    dw = Filter(random(w_sizes, data_type, 6), data_type)
    before = y.values(), dx.values(), dw.values()
    for algo in (0, 1):
        ok(forward(conv, x, w, y, 1.5, -0.5, algo))
        ok(backward_data(conv, w, dy, dx, 1.5, -0.5, algo))
        ok(backward_filter(conv, x, dy, dw, 1.5, -0.5, algo))
        models = (lambda a, b, c: forward_model(a, b, y_sizes[2:], *geometry),
                  lambda a, b, c: data_model(c, b, x_sizes, *geometry),
                  lambda a, b, c: slope_model(a, c, w_sizes, *geometry))
        arrays = x.values(), w.values(), dy.values()
        for actual, model, prior in zip((y, dx, dw), models, before):
            magnitude = 1.5 * model(*map(np.abs, arrays)) + np.abs(prior)
            near(actual.values(), 1.5 * model(*arrays) - 0.5 * prior, magnitude, data_type)
        before = y.values(), dx.values(), dw.values()


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("output", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_layouts_agree_gaps_stay_and_the_old_value_is_not_read(source, output, last):
    x_sizes, w_sizes, padding, stride, dilation, groups = PROBLEMS[0]
    y_sizes = (2, 4, *out_sizes(x_sizes[2:], w_sizes[2:], stride, padding, dilation))
    conv, geometry = convolution(padding, stride, dilation, groups), (stride, padding, dilation, groups)
    x = Tensor(random(x_sizes, FLOAT, 1), strides=LAYOUTS[source](x_sizes))
    dy = Tensor(random(y_sizes, FLOAT, 2), strides=LAYOUTS[output](y_sizes))
    w, dw = Filter(random(w_sizes, FLOAT, 3), last=last), Filter(np.full(w_sizes, np.nan), last=last)
    y = Tensor(np.full(y_sizes, np.nan), strides=LAYOUTS[output](y_sizes))
    dx = Tensor(np.full(x_sizes, np.nan), strides=LAYOUTS[source](x_sizes))
    ok(forward(conv, x, w, y))
    ok(backward_data(conv, w, dy, dx))
    ok(backward_filter(conv, x, dy, dw))
    near(y.values(), forward_model(x.values(), w.values(), y_sizes[2:], *geometry), 4.0, FLOAT)
    near(dx.values(), data_model(dy.values(), w.values(), x_sizes, *geometry), 4.0, FLOAT)
    near(dw.values(), slope_model(x.values(), dy.values(), w_sizes, *geometry), 4.0, FLOAT)
    assert y.gaps_untouched() and dx.gaps_untouched()


WORKED = {
    CROSS: ([[37, 47], [67, 77]], [[1, 12, 20], [103, 1234, 2040], [300, 3400, 4000]], [[5421, 6532], [8754, 9865]]),
    CONVOLUTION: ([[23, 33], [53, 63]], [[4, 43, 30], [402, 4321, 3010], [200, 2100, 1000]],
                  [[9865, 8754], [6532, 5421]]),
}


@pytest.mark.parametrize("mode", WORKED)
def test_worked_example_of_both_modes(mode):
    conv = convolution((0, 0), (1, 1), (1, 1), mode=mode)
    x, w = Tensor(np.arange(1, 10).reshape(1, 1, 3, 3)), Filter(np.arange(1, 5).reshape(1, 1, 2, 2))
    dy, y, dx = Tensor(np.array([[[[1, 10], [100, 1000]]]])), Tensor(np.zeros((1, 1, 2, 2))), Tensor(np.zeros((1, 1, 3, 3)))
    dw = Filter(np.zeros((1, 1, 2, 2)))
    ok(forward(conv, x, w, y))
    ok(backward_data(conv, w, dy, dx))
    ok(backward_filter(conv, x, dy, dw))
    for actual, expected in zip((y, dx, dw), WORKED[mode]):
        assert actual.values()[0, 0].tolist() == expected


ONE_DIMENSION = """
import numpy as np
from tests.maca.test_mcdnn_convolution import *
x, w, y = (Tensor(np.arange(1, 5).reshape(1, 1, 4)), Filter(np.arange(1, 6).reshape(1, 1, 5)), Tensor(np.zeros((1, 1, 2))))
for _ in range(2):
    ok(forward(convolution((1,), (1,), (1,), mode=CONVOLUTION), x, w, y))
print(y.values().ravel().tolist())
"""


@pytest.mark.parametrize("setting, expected, said", [("", "[20.0, 30.0]", 1), ("mirrored", "[20.0, 30.0]", 1),
                                                     ("plain", "[40.0, 30.0]", 0)])
def test_a_setting_takes_filters_as_they_are(setting, expected, said):
    environment = {**os.environ, "UNDERSTUDY_MCDNN_CONVOLUTION": setting, "UNDERSTUDY_LOG": "warn"}
    done = subprocess.run([sys.executable, "-c", ONE_DIMENSION], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == expected
    assert done.stderr.count("MCDNN_CROSS_CORRELATION") == said


@pytest.mark.parametrize("padding, stride, dilation, mode, expected", [
    ((1, 1), (2, 2), (1, 1), CROSS, [[128, 241, 184], [441, 681, 453], [320, 457, 280]]),
    ((1, 1), (2, 2), (1, 1), CONVOLUTION, [[32, 89, 96], [249, 489, 417], [440, 773, 600]]),
    ((1, 1), (1, 1), (2, 2), CROSS, [[396, 560, 344], [552, 777, 474], [240, 326, 188]]),
    ((1, 1), (1, 1), (2, 2), CONVOLUTION, [[124, 220, 176], [228, 393, 306], [280, 454, 332]]),
    ((1, 0), (2, 1), (1, 2), CROSS, [[245], [687], [461]]),
])  # fmt: skip
def test_worked_examples_of_stride_dilation_and_padding(padding, stride, dilation, mode, expected):
    conv = convolution(padding, stride, dilation, mode=mode)
    x, w = Tensor(np.arange(1, 26).reshape(1, 1, 5, 5)), Filter(np.arange(1, 10).reshape(1, 1, 3, 3))
    y = Tensor(np.zeros((1, 1, *np.shape(expected))))
    ok(forward(conv, x, w, y))
    assert y.values()[0, 0].tolist() == expected


def test_worked_examples_of_groups_and_of_one_dimension():
    x, w, y = Tensor(np.arange(1, 5).reshape(1, 4, 1, 1)), Filter(np.arange(1, 9).reshape(4, 2, 1, 1)), Tensor(np.zeros((1, 4, 1, 1)))
    ok(forward(convolution((0, 0), (1, 1), (1, 1), 2), x, w, y))
    assert y.values().ravel().tolist() == [5, 11, 39, 53]
    x, w = Tensor(np.array([2, 3]).reshape(1, 2, 1, 1)), Filter(np.array([1, 10, 100, 1000]).reshape(4, 1, 1, 1))
    ok(forward(convolution((0, 0), (1, 1), (1, 1), 2), x, w, y))
    assert y.values().ravel().tolist() == [2, 20, 300, 3000]
    x, w, y = Tensor(np.arange(1, 5).reshape(1, 1, 4)), Filter(np.arange(1, 6).reshape(1, 1, 5)), Tensor(np.zeros((1, 1, 2)))
    for mode, expected in ((CROSS, [40, 30]), (CONVOLUTION, [20, 30])):
        ok(forward(convolution((1,), (1,), (1,), mode=mode), x, w, y))
        assert y.values().ravel().tolist() == expected


@pytest.mark.parametrize("size", [3, 4])
def test_several_sizes_of_dx_belong_to_one_of_dy(size):
    expected = np.array([[5, 14, 10, 12], [14, 36, 24, 30], [15, 34, 20, 24], [24, 55, 32, 36]])
    dy, w = Tensor(np.arange(1, 5).reshape(1, 1, 2, 2)), Filter(np.arange(1, 10).reshape(1, 1, 3, 3))
    dx = Tensor(np.full((1, 1, size, size), np.nan))
    ok(backward_data(convolution((1, 1), (2, 2), (1, 1)), w, dy, dx))
    np.testing.assert_array_equal(dx.values()[0, 0], expected[:size, :size])


@pytest.mark.parametrize("mode", [CROSS, CONVOLUTION])
def test_gradients_are_those_of_the_forward_function(mode):
    x_sizes, w_sizes, padding, stride, dilation, groups = (1, 4, 5, 6), (2, 2, 3, 2), (1, 1), (2, 1), (1, 2), 2
    y_sizes = (1, 2, *out_sizes(x_sizes[2:], w_sizes[2:], stride, padding, dilation))
    conv = convolution(padding, stride, dilation, groups, mode, DOUBLE)
    x_values, w_values, slopes = random(x_sizes, DOUBLE, 1), random(w_sizes, DOUBLE, 2), random(y_sizes, DOUBLE, 3)

    def function(x, w):
        y = Tensor(np.zeros(y_sizes), DOUBLE)
        ok(forward(conv, Tensor(x, DOUBLE), Filter(w, DOUBLE), y))
        return y.values()

    dx, dw, dy = Tensor(np.zeros(x_sizes), DOUBLE), Filter(np.zeros(w_sizes), DOUBLE), Tensor(slopes, DOUBLE)
    ok(backward_data(conv, Filter(w_values, DOUBLE), dy, dx))
    ok(backward_filter(conv, Tensor(x_values, DOUBLE), dy, dw))
    np.testing.assert_allclose(dx.values(), differences(lambda it: function(it, w_values), x_values, slopes), atol=1e-7)
    np.testing.assert_allclose(dw.values(), differences(lambda it: function(x_values, it), w_values, slopes), atol=1e-7)


# ---- integers ----


def vectors(values, lanes=4):
    """NCHW_VECT_C: lanes of channels innermost."""
    n, c, h, w = values.shape
    return np.ascontiguousarray(values.reshape(n, c // lanes, lanes, h, w).transpose(0, 1, 3, 4, 2)).astype(np.int8)


class Vectors:
    """A tensor or filter of vectors of channels."""

    def __init__(self, values, data_type, lanes, is_filter=False):
        self.shape, self.lanes, self.data_type = values.shape, lanes, data_type
        self.buffer = Buffer(vectors(values, lanes))
        self.address = self.buffer.address
        if is_filter:
            made = ffi.new("mcdnnFilterDescriptor_t *")
            ok(lib.mcdnnCreateFilterDescriptor(made))
            ok(lib.mcdnnSetFilter4dDescriptor(made[0], data_type, lib.MCDNN_TENSOR_NCHW_VECT_C, *values.shape))
        else:
            made = ffi.new("mcdnnTensorDescriptor_t *")
            ok(lib.mcdnnCreateTensorDescriptor(made))
            ok(lib.mcdnnSetTensor4dDescriptor(made[0], lib.MCDNN_TENSOR_NCHW_VECT_C, data_type, *values.shape))
        self.descriptor = made[0]

    def values(self):
        n, c, h, w = self.shape
        return self.buffer.read().reshape(n, c // self.lanes, h, w, self.lanes).transpose(0, 1, 4, 2, 3).reshape(self.shape)


def integers(shape, seed, low=-128, high=128):
    return np.random.default_rng(seed).integers(low, high, shape)


@pytest.mark.parametrize("x_type, y_type", [(INT8, INT8), (INT8, FLOAT), (UINT8, INT8), (UINT8, FLOAT)])
def test_integers_are_summed_exactly(x_type, y_type):
    conv = convolution((1, 1), (2, 1), (1, 1), compute=INT32)
    values, weights = integers((2, 8, 7, 6), 1, *((0, 256) if x_type == UINT8 else (-128, 128))), integers((12, 8, 3, 3), 2)
    sums = forward_model(values.astype(float), weights.astype(float), (4, 6), (2, 1), (1, 1), (1, 1), 1)
    x = Tensor(values, x_type, nhwc_strides(values.shape))
    w, y = Filter(weights, INT8, last=True), Tensor(np.zeros(sums.shape), y_type, nhwc_strides(sums.shape))
    for algo in (0, 1):
        ok(forward(conv, x, w, y, 0.0009765625, algo=algo))
        scaled = sums * 0.0009765625
        expected = np.clip(np.rint(scaled), -128, 127) if y_type == INT8 else scaled
        np.testing.assert_array_equal(y.values(), expected)


@pytest.mark.parametrize("mode", [CROSS, CONVOLUTION])
@pytest.mark.parametrize("data_type, lanes", [(lib.MCDNN_DATA_INT8x4, 4), (lib.MCDNN_DATA_INT8x32, 32)])
def test_vectors_of_channels(data_type, lanes, mode):
    conv = convolution((1, 0), (1, 2), (1, 1), mode=mode, compute=INT32)
    values, weights = integers((2, 2 * lanes, 5, 6), 1), integers((lanes * 2, 2 * lanes, 3, 2), 2)
    sums = forward_model(values.astype(float), weights.astype(float), (5, 3), (1, 2), (1, 0), (1, 1), 1, mode == CONVOLUTION)
    x, w = Vectors(values, data_type, lanes), Vectors(weights, data_type, lanes, True)
    y = Vectors(np.zeros(sums.shape, np.int8), data_type, lanes)
    arguments = dict(handle=handle(), alpha=scale(0.00048828125), xDesc=x.descriptor, x=x.address, wDesc=w.descriptor,
                     w=w.address, convDesc=conv, algo=1, workSpace=None, workSpaceSizeInBytes=0, beta=scale(0))
    run("mcdnnConvolutionForward", **arguments, yDesc=y.descriptor, y=y.address)
    np.testing.assert_array_equal(y.values(), np.clip(np.rint(sums * 0.00048828125), -128, 127))
    if lanes == 4:
        wide = Tensor(np.zeros(sums.shape))
        run("mcdnnConvolutionForward", **arguments, yDesc=wide, y=wide)
        np.testing.assert_array_equal(wide.values(), sums * 0.00048828125)


# ---- bias and activation ----


def fused(conv, x, w, z, bias, mode, y, alpha1=1.0, alpha2=0.0, algo=1):
    run("mcdnnConvolutionBiasActivationForward", handle=handle(), alpha1=scale(alpha1, y.data_type), xDesc=x, x=x,
        wDesc=w.descriptor, w=w.address, convDesc=conv, algo=algo, workSpace=None, workSpaceSizeInBytes=0,
        alpha2=scale(alpha2, y.data_type), zDesc=z, z=z, biasDesc=bias, bias=bias, activationDesc=activation(mode, 1.0),
        yDesc=y, y=y)


@pytest.mark.parametrize("mode", [lib.MCDNN_ACTIVATION_RELU, lib.MCDNN_ACTIVATION_IDENTITY])
@pytest.mark.parametrize("data_type", TYPES)
def test_bias_addend_and_activation(data_type, mode):
    x_sizes, w_sizes, padding, stride, dilation, groups = PROBLEMS[1]
    y_sizes = (1, 8, 16, 17)
    conv = convolution(padding, stride, dilation, compute=DOUBLE if data_type == DOUBLE else FLOAT)
    x, w = Tensor(random(x_sizes, data_type, 1), data_type), Filter(random(w_sizes, data_type, 2), data_type)
    z, bias = Tensor(random(y_sizes, data_type, 3), data_type), Tensor(random((1, 8, 1, 1), data_type, 4), data_type)
    y = Tensor(np.full(y_sizes, np.nan), data_type)
    fused(conv, x, w, z, bias, mode, y, 0.5, 0.25)
    sums = forward_model(x.values(), w.values(), y_sizes[2:], stride, padding, dilation, groups)
    expected = 0.5 * sums + 0.25 * z.values() + bias.values()
    if mode == lib.MCDNN_ACTIVATION_RELU:
        expected = np.maximum(expected, 0)
    near(y.values(), expected, 16.0, data_type)
    unread = Tensor(np.full(y_sizes, np.nan), data_type)
    fused(conv, x, w, unread, bias, lib.MCDNN_ACTIVATION_IDENTITY, y)
    near(y.values(), sums + bias.values(), 16.0, data_type)
    old = y.values()
    fused(conv, x, w, y, bias, lib.MCDNN_ACTIVATION_IDENTITY, y, 0.0, 1.0)  # z is y itself
    near(y.values(), old + bias.values(), 16.0, data_type)


@pytest.mark.parametrize("mode, expected", [(lib.MCDNN_ACTIVATION_RELU, [0, 2, 12, 4]),
                                            (lib.MCDNN_ACTIVATION_IDENTITY, [-3, 2, 12, 4])])
def test_worked_example_of_integers_with_bias(mode, expected):
    sums = np.array([-7, 3, 21, 5])
    x = Tensor(np.eye(4)[:1].reshape(1, 4, 1, 1), INT8, nhwc_strides((1, 4, 1, 1)))
    w = Filter(np.concatenate([sums.reshape(4, 1), np.zeros((4, 3))], 1).reshape(4, 4, 1, 1), INT8, last=True)
    z = Tensor(np.array([1, 2, 3, 4]).reshape(1, 4, 1, 1), INT8, nhwc_strides((1, 4, 1, 1)))
    y = Tensor(np.zeros((1, 4, 1, 1)), INT8, nhwc_strides((1, 4, 1, 1)))
    bias = Tensor(np.full((1, 4, 1, 1), 0.5))
    fused(convolution((0, 0), (1, 1), (1, 1), compute=INT32), x, w, z, bias, mode, y, 0.5, 0.25)
    assert y.values().ravel().tolist() == expected


@pytest.mark.parametrize("data_type", TYPES)
def test_bias_gradient(data_type):
    dy, db = Tensor(np.arange(1, 9).reshape(2, 2, 1, 2), data_type), Tensor(np.array([[[[1]], [[2]]]]), data_type)
    run("mcdnnConvolutionBackwardBias", handle=handle(), alpha=scale(2, data_type), dyDesc=dy, dy=dy,
        beta=scale(-1, data_type), dbDesc=db, db=db)
    assert db.values().ravel().tolist() == [27, 42]


# ---- algorithms ----


def entries(kind, count):
    return ffi.new(f"mcdnnConvolution{kind}AlgoPerf_t[{count}]")


def searches(find):
    """The three directions of one search, for a small problem."""
    conv = convolution((1, 1), (1, 1), (1, 1))
    x, y, w = descriptor((1, 4, 8, 8)), descriptor((1, 8, 8, 8)), filter_descriptor((8, 4, 3, 3))
    names = (("Forward", "Fwd", 8, (x, w, conv, y)), ("BackwardData", "BwdData", 6, (w, y, conv, x)),
             ("BackwardFilter", "BwdFilter", 7, (x, y, conv, w)))
    for name, kind, count, operands in names:
        results, returned = entries(kind, count), ffi.new("int *")
        function = f"mcdnnFindConvolution{name}Algorithm" if find else f"mcdnnGetConvolution{name}Algorithm_v7"
        ok(getattr(lib, function)(handle(), *operands, count, returned, results))
        assert returned[0] == count
        most = ffi.new("int *")
        ok(getattr(lib, f"mcdnnGetConvolution{name}AlgorithmMaxCount")(handle(), most))
        assert most[0] == count
        yield name, [results[i] for i in range(count)], operands


@pytest.mark.parametrize("find", [False, True])
def test_searches_list_methods_of_their_own_first(find):
    own = {"Forward": {0, 1, 3, 6}, "BackwardData": {0, 1, 4}, "BackwardFilter": {0, 1, 4}}
    for name, results, operands in searches(find):
        runs = [it for it in results if it.status == 0]
        assert {it.algo for it in runs} == own[name] and runs == results[:len(runs)]
        assert sorted(it.algo for it in results) == list(range(len(results)))
        assert all(it.status == lib.MCDNN_STATUS_NOT_SUPPORTED and it.time == -1 for it in results[len(runs):])
        assert all(it.determinism == lib.MCDNN_DETERMINISTIC and it.memory == 0 for it in results)
        times = [it.time for it in runs]
        assert times == sorted(times) and (min(times) > 0 if find else set(times) == {-1})
        for it in runs:
            size = ffi.new("size_t *", 99)
            ok(getattr(lib, f"mcdnnGetConvolution{name}WorkspaceSize")(handle(), *operands, it.algo, size))
            assert size[0] == it.memory


def test_the_structures_have_the_sizes_of_the_sheet():
    for kind in ("Fwd", "BwdData", "BwdFilter"):
        assert ffi.sizeof(f"mcdnnConvolution{kind}AlgoPerf_t") == 48


def test_fewer_results_than_there_are_can_be_asked_for():
    conv, results, returned = convolution((0, 0), (1, 1), (1, 1)), entries("Fwd", 2), ffi.new("int *")
    operands = descriptor((1, 2, 4, 4)), filter_descriptor((3, 2, 1, 1)), conv, descriptor((1, 3, 4, 4))
    results[1].algo = 7
    ok(lib.mcdnnGetConvolutionForwardAlgorithm_v7(handle(), *operands, 1, returned, results))
    assert (returned[0], results[0].algo, results[0].status, results[1].algo) == (1, 1, 0, 7)


def test_the_extended_searches_leave_the_data_alone():
    conv = convolution((1, 1), (1, 1), (1, 1))
    x, y, w = Tensor(random((1, 4, 8, 8), FLOAT, 1)), Tensor(random((1, 8, 8, 8), FLOAT, 2)), Filter(random((8, 4, 3, 3), FLOAT, 3))
    before = [x.bytes(), y.bytes(), w.buffer.read().tobytes()]
    returned = ffi.new("int *")
    ok(lib.mcdnnFindConvolutionForwardAlgorithmEx(handle(), x.descriptor, x.address, w.descriptor, w.address, conv,
                                                  y.descriptor, y.address, 8, returned, entries("Fwd", 8), ffi.NULL, 0))
    ok(lib.mcdnnFindConvolutionBackwardDataAlgorithmEx(handle(), w.descriptor, w.address, y.descriptor, y.address, conv,
                                                       x.descriptor, x.address, 6, returned, entries("BwdData", 6),
                                                       ffi.NULL, 0))
    ok(lib.mcdnnFindConvolutionBackwardFilterAlgorithmEx(handle(), x.descriptor, x.address, y.descriptor, y.address,
                                                         conv, w.descriptor, w.address, 7, returned,
                                                         entries("BwdFilter", 7), ffi.NULL, 0))
    synchronize()
    assert [x.bytes(), y.bytes(), w.buffer.read().tobytes()] == before


@pytest.mark.parametrize("algo", range(8))
def test_every_number_gives_the_same_result_or_refuses(algo):
    conv = convolution((2, 2), (1, 1), (1, 1))
    x, w, y = Tensor(random((1, 3, 12, 13), FLOAT, 1)), Filter(random((4, 3, 5, 5), FLOAT, 2)), Tensor(np.zeros((1, 4, 12, 13)))
    status = forward(conv, x, w, y, 2.0, 5.0, algo)
    assert status == (lib.MCDNN_STATUS_NOT_SUPPORTED if algo == lib.MCDNN_CONVOLUTION_FWD_ALGO_WINOGRAD else 0)
    if status == 0:
        near(y.values(), 2 * forward_model(x.values(), w.values(), (12, 13), (1, 1), (2, 2), (1, 1), 1), 64.0, FLOAT)


@pytest.mark.parametrize("data_type", TYPES)
def test_winograds_numbers(data_type):
    """3 x 3 taps of stride 1, not in double: every other type, with both factors."""
    x_sizes, w_sizes, y_sizes, geometry = (2, 18, 9, 10), (20, 18, 3, 3), (2, 20, 9, 10), ((1, 1), (1, 1), (1, 1), 1)
    conv = convolution((1, 1), (1, 1), (1, 1), compute=DOUBLE if data_type == DOUBLE else FLOAT)
    x, dy, y, dx = (Tensor(random(sizes, data_type, seed), data_type)
                    for seed, sizes in enumerate((x_sizes, y_sizes, y_sizes, x_sizes)))
    w, dw = (Filter(random(w_sizes, data_type, seed), data_type) for seed in (5, 6))
    before = y.values(), dx.values(), dw.values()
    statuses = (forward(conv, x, w, y, 1.5, -0.5, lib.MCDNN_CONVOLUTION_FWD_ALGO_WINOGRAD),
                backward_data(conv, w, dy, dx, 1.5, -0.5, lib.MCDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD),
                backward_filter(conv, x, dy, dw, 1.5, -0.5, lib.MCDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD))
    assert set(statuses) == {lib.MCDNN_STATUS_NOT_SUPPORTED if data_type == DOUBLE else 0}
    if data_type != DOUBLE:
        sums = (forward_model(x.values(), w.values(), (9, 10), *geometry),
                data_model(dy.values(), w.values(), x_sizes, *geometry),
                slope_model(x.values(), dy.values(), w_sizes, *geometry))
        for actual, model, prior in zip((y, dx, dw), sums, before):
            near(actual.values(), 1.5 * model - 0.5 * prior, 64.0, data_type)


def test_the_expected_order_is_that_of_the_channels():
    """Winograd's filtering comes first where its products are large, and last where they are small."""
    conv = convolution((1, 1), (1, 1), (1, 1))
    for channels, place in ((64, 0), (4, 3)):
        operands = (descriptor((4, channels, 14, 14)), filter_descriptor((channels, channels, 3, 3)), conv,
                    descriptor((4, channels, 14, 14)))
        results, returned = entries("Fwd", 8), ffi.new("int *")
        ok(lib.mcdnnGetConvolutionForwardAlgorithm_v7(handle(), *operands, 8, returned, results))
        assert results[place].algo == lib.MCDNN_CONVOLUTION_FWD_ALGO_WINOGRAD


# ---- descriptors and layouts ----


def test_descriptors_report_what_they_hold():
    made = convolution((1, 2), (3, 4), (5, 6), 7, CONVOLUTION, HALF)
    numbers, mode, compute = ffi.new("int[6]"), ffi.new("mcdnnConvolutionMode_t *"), ffi.new("mcdnnDataType_t *")
    ok(lib.mcdnnGetConvolution2dDescriptor(made, *[numbers + i for i in range(6)], mode, compute))
    assert (list(numbers), mode[0], compute[0]) == ([1, 2, 3, 4, 5, 6], CONVOLUTION, HALF)
    length, padding, stride, dilation = ffi.new("int *"), ffi.new("int[2]", [9, 9]), ffi.new("int[2]"), ffi.new("int[2]")
    ok(lib.mcdnnGetConvolutionNdDescriptor(made, 1, length, padding, stride, dilation, mode, compute))
    assert (length[0], list(padding), stride[0], dilation[0]) == (2, [1, 9], 3, 5)
    groups, math, reorder = ffi.new("int *"), ffi.new("mcdnnMathType_t *"), ffi.new("mcdnnReorderType_t *")
    ok(lib.mcdnnSetConvolutionMathType(made, lib.MCDNN_TENSOR_OP_MATH))
    ok(lib.mcdnnSetConvolutionReorderType(made, lib.MCDNN_NO_REORDER))
    ok(lib.mcdnnSetConvolutionNdDescriptor(made, 3, [1, 1, 1], [1, 1, 1], [1, 1, 1], CROSS, FLOAT))
    ok(lib.mcdnnGetConvolutionGroupCount(made, groups))
    ok(lib.mcdnnGetConvolutionMathType(made, math))
    ok(lib.mcdnnGetConvolutionReorderType(made, reorder))
    assert (groups[0], math[0], reorder[0]) == (7, lib.MCDNN_TENSOR_OP_MATH, lib.MCDNN_NO_REORDER)


def test_output_sizes():
    conv = convolution((1, 2), (3, 4), (2, 1), 2)
    sizes = ffi.new("int[4]")
    ok(lib.mcdnnGetConvolution2dForwardOutputDim(conv, descriptor((5, 6, 20, 30)), filter_descriptor((8, 3, 4, 5)),
                                                 *[sizes + i for i in range(4)]))
    assert list(sizes) == [5, 8, *out_sizes((20, 30), (4, 5), (3, 4), (1, 2), (2, 1))]
    conv, found = convolution((1, 0, 2), (1, 2, 3), (1, 1, 2)), ffi.new("int[5]", [7] * 5)
    ok(lib.mcdnnGetConvolutionNdForwardOutputDim(conv, descriptor((2, 3, 7, 8, 9)), filter_descriptor((4, 3, 2, 3, 4)), 4,
                                                 found))
    assert list(found) == [2, 4, *out_sizes((7, 8), (2, 3), (1, 2), (1, 0), (1, 1)), 7]


@pytest.mark.parametrize("mode, order", [(CROSS, [0, 1, 2, 3]), (CONVOLUTION, [3, 2, 1, 0])])
def test_column_matrix(mode, order):
    x, columns = Tensor(np.arange(1, 10).reshape(1, 1, 3, 3), HALF), Tensor(np.zeros((4, 4)), HALF)
    run("mcdnnIm2Col", handle=handle(), xDesc=x, x=x, wDesc=filter_descriptor((1, 1, 2, 2), HALF),
        convDesc=convolution((0, 0), (1, 1), (1, 1), mode=mode), colBuffer=columns)
    rows = np.array([[1, 2, 4, 5], [2, 3, 5, 6], [4, 5, 7, 8], [5, 6, 8, 9]])
    np.testing.assert_array_equal(columns.values(), rows[order])


def reordered_filter(rows):
    """mcdnn-cnn 12: byte d of the result, by the number of its row and column; 0 where there is no such row."""
    count, length = rows.shape
    groups, moved = -(-count // 8), np.zeros(count * length, np.int8)
    for d in range(moved.size):
        lane, tile = d % 32, d // 32
        j, group, block = tile % 8, tile // 8 % groups, tile // 8 // groups
        row = 8 * group + j // 4 + 2 * (lane % 16 // 4)
        if row < count:
            moved[d] = rows[row, 32 * block + 8 * (j % 4) + 4 * (lane // 16) + lane % 4]
    return moved


def reordered_bias(values):
    places = [32 * (j // 32) + 8 * (j % 32 // 4 % 4) + 4 * (j % 32 // 4 // 4) + j % 4 for j in range(len(values))]
    return np.array([values[place] if place < len(values) else 0 for place in places], np.float32)


def reorder(w, target, bias, moved, kind):
    run("mcdnnReorderFilterAndBias", handle=handle(), filterDesc=w.descriptor, reorderType=kind, filterData=w.address,
        reorderedFilterData=target.address, reorderBias=1, biasData=bias, reorderedBiasData=moved)


@pytest.mark.parametrize("sizes", [(32, 32, 1, 1), (64, 96, 2, 3), (12, 32, 3, 1)])
def test_filters_and_biases_are_reordered(sizes):
    weights = integers(sizes, 3)
    w, again = Vectors(weights, lib.MCDNN_DATA_INT8x32, 32, True), Vectors(weights * 0 + 1, lib.MCDNN_DATA_INT8x32, 32, True)
    bias, moved = Buffer(np.arange(1, sizes[0] + 1, dtype=np.float32)), Buffer(np.full(sizes[0], 7, np.float32))
    plain = w.buffer.content
    for kind, expected in ((lib.MCDNN_NO_REORDER, (plain.ravel(), bias.content)),
                           (lib.MCDNN_DEFAULT_REORDER, (reordered_filter(plain.reshape(sizes[0], -1)),
                                                        reordered_bias(bias.content)))):  # fmt: skip
        reorder(w, again, bias, moved, kind)
        np.testing.assert_array_equal(again.buffer.read().ravel(), expected[0])
        np.testing.assert_array_equal(moved.read(), expected[1])


@pytest.mark.parametrize("mode", [CROSS, CONVOLUTION])
def test_a_reordered_filter_belongs_to_a_descriptor_that_does_not_reorder(mode):
    values, weights = integers((2, 64, 5, 4), 1, -8, 8), integers((64, 64, 3, 2), 2, -8, 8)
    kind = lib.MCDNN_DATA_INT8x32
    w, again = Vectors(weights, kind, 32, True), Vectors(weights * 0, kind, 32, True)
    bias, new_bias = Buffer(np.arange(64, dtype=np.float32)), Buffer(np.zeros(64, np.float32))
    reorder(w, again, bias, new_bias, lib.MCDNN_DEFAULT_REORDER)
    sums = forward_model(values.astype(float), weights.astype(float), (5, 3), (1, 1), (1, 0), (1, 1), 1, mode == CONVOLUTION)
    of_bias, identity = descriptor((1, 64, 1, 1)), activation(lib.MCDNN_ACTIVATION_IDENTITY, 0)
    x, y = Vectors(values, kind, 32), Vectors(np.zeros(sums.shape, np.int8), kind, 32)
    for reorder_type, used, offset in ((lib.MCDNN_NO_REORDER, again, new_bias), (lib.MCDNN_DEFAULT_REORDER, w, bias)):
        conv = convolution((1, 0), (1, 1), (1, 1), mode=mode, compute=INT32)
        ok(lib.mcdnnSetConvolutionReorderType(conv, reorder_type))
        common = dict(handle=handle(), xDesc=x.descriptor, x=x.address, wDesc=used.descriptor, w=used.address, convDesc=conv,
                      algo=1, workSpace=None, workSpaceSizeInBytes=0, yDesc=y.descriptor, y=y.address)
        run("mcdnnConvolutionForward", alpha=scale(0.03125), beta=scale(0), **common)
        np.testing.assert_array_equal(y.values(), np.clip(np.rint(sums * 0.03125), -128, 127))
        run("mcdnnConvolutionBiasActivationForward", alpha1=scale(0.03125), alpha2=scale(0), zDesc=y.descriptor, z=y.address,
            biasDesc=of_bias, bias=offset, activationDesc=identity, **common)
        expected = sums * 0.03125 + np.arange(64).reshape(1, 64, 1, 1)
        np.testing.assert_array_equal(y.values(), np.clip(np.rint(expected), -128, 127))


def test_packs_hold_what_they_are_given():
    made, is_null, value = ffi.new("mcdnnFusedOpsConstParamPack_t *"), ffi.new("int *", 5), ffi.new("int *", 77)
    ok(lib.mcdnnCreateFusedOpsConstParamPack(made, 0))
    ok(lib.mcdnnGetFusedOpsConstParamPackAttribute(made[0], lib.MCDNN_PARAM_BN_MODE, value, is_null))
    assert (is_null[0], value[0]) == (1, 77)
    ok(lib.mcdnnSetFusedOpsConstParamPackAttribute(made[0], lib.MCDNN_PARAM_BN_MODE, ffi.new("int *", 1)))
    ok(lib.mcdnnGetFusedOpsConstParamPackAttribute(made[0], lib.MCDNN_PARAM_BN_MODE, value, is_null))
    assert (is_null[0], value[0]) == (0, 1)
    ok(lib.mcdnnDestroyFusedOpsConstParamPack(made[0]))
    variants, number = ffi.new("mcdnnFusedOpsVariantParamPack_t *"), ffi.new("double *")
    ok(lib.mcdnnCreateFusedOpsVariantParamPack(variants, 6))
    ok(lib.mcdnnSetFusedOpsVariantParamPackAttribute(variants[0], lib.MCDNN_SCALAR_DOUBLE_BN_EPSILON,
                                                     ffi.new("double *", 0.25)))  # fmt: skip
    ok(lib.mcdnnGetFusedOpsVariantParamPackAttribute(variants[0], lib.MCDNN_SCALAR_DOUBLE_BN_EPSILON, number))
    pointer, found = ffi.cast("void *", 4096), ffi.new("void **")
    ok(lib.mcdnnSetFusedOpsVariantParamPackAttribute(variants[0], lib.MCDNN_PTR_YDATA, pointer))
    ok(lib.mcdnnGetFusedOpsVariantParamPackAttribute(variants[0], lib.MCDNN_PTR_YDATA, found))
    assert (number[0], found[0]) == (0.25, pointer)
    ok(lib.mcdnnDestroyFusedOpsVariantParamPack(variants[0]))


def pack(kind, ops):
    made = ffi.new(f"mcdnnFusedOps{kind}ParamPack_t *")
    ok(getattr(lib, f"mcdnnCreateFusedOps{kind}ParamPack")(made, ops))
    return ffi.gc(made[0], getattr(lib, f"mcdnnDestroyFusedOps{kind}ParamPack"))


def empty(kind):
    made = ffi.new(f"mcdnn{kind}Descriptor_t *")
    ok(getattr(lib, f"mcdnnCreate{kind}Descriptor")(made))
    return ffi.gc(made[0], getattr(lib, f"mcdnnDestroy{kind}Descriptor"))


def facts(getter, subject, *kinds):
    """What a getter of a descriptor says."""
    places = [ffi.new(f"{kind} *") for kind in kinds]
    ok(getattr(lib, getter)(subject, *places))
    return [place[0] for place in places]


FACTS = {
    "Tensor": lambda it: facts("mcdnnGetTensor4dDescriptor", it, "mcdnnDataType_t", *["int"] * 8),
    "Filter": lambda it: facts("mcdnnGetFilter4dDescriptor", it, "mcdnnDataType_t", "mcdnnTensorFormat_t", *["int"] * 4),
    "Activation": lambda it: facts("mcdnnGetActivationDescriptor", it, "mcdnnActivationMode_t", "mcdnnNanPropagation_t",
                                   "double"),
    "Convolution": lambda it: facts("mcdnnGetConvolution2dDescriptor", it, *["int"] * 6, "mcdnnConvolutionMode_t",
                                    "mcdnnDataType_t"),
}  # fmt: skip


@pytest.mark.parametrize("kind, label, make, expected", [
    ("Tensor", "YSTATS_DESC", lambda: descriptor((2, 3, 4, 5), HALF), [HALF, 2, 3, 4, 5, 60, 20, 5, 1]),
    ("Filter", "WDESC", lambda: filter_descriptor((6, 3, 2, 1), HALF, 1), [HALF, 1, 6, 3, 2, 1]),
    ("Activation", "ACTIVATION_DESC", lambda: activation(lib.MCDNN_ACTIVATION_CLIPPED_RELU, 6.5),
     [lib.MCDNN_ACTIVATION_CLIPPED_RELU, lib.MCDNN_NOT_PROPAGATE_NAN, 6.5]),
    ("Convolution", "CONV_DESC", lambda: convolution((1, 2), (3, 4), (5, 6)), [1, 2, 3, 4, 5, 6, CROSS, FLOAT]),
])  # fmt: skip
def test_a_descriptor_is_passed_itself(kind, label, make, expected):
    """The pack has what it held when it was given, even once it is destroyed."""
    constants, label, is_null = pack("Const", 0), getattr(lib, f"MCDNN_PARAM_{label}"), ffi.new("int *", 5)
    given, found = make(), empty(kind)
    before = FACTS[kind](given)
    assert before == expected
    ok(lib.mcdnnGetFusedOpsConstParamPackAttribute(constants, label, found, is_null))
    assert is_null[0] == 1
    ok(lib.mcdnnSetFusedOpsConstParamPackAttribute(constants, label, given))
    ffi.release(given)
    ok(lib.mcdnnGetFusedOpsConstParamPackAttribute(constants, label, found, is_null))
    assert (is_null[0], FACTS[kind](found)) == (0, expected)
    ok(lib.mcdnnSetFusedOpsConstParamPackAttribute(constants, label, ffi.NULL))
    ok(lib.mcdnnGetFusedOpsConstParamPackAttribute(constants, label, found, is_null))
    assert (is_null[0], FACTS[kind](found)) == (1, expected)


EQUIVALENT = "BN_EQSCALEBIAS_DESC BN_EQSCALE_PLACEHOLDER BN_EQBIAS_PLACEHOLDER BN_MODE"
LEARNED = ("BN_SCALEBIAS_MEANVAR_DESC BN_SCALE_PLACEHOLDER BN_BIAS_PLACEHOLDER BN_RUNNING_MEAN_PLACEHOLDER "
           "BN_RUNNING_VAR_PLACEHOLDER")
SUMS = "YSTATS_DESC YSUM_PLACEHOLDER YSQSUM_PLACEHOLDER"
CONVOLVED = f"{EQUIVALENT} XDESC XDATA_PLACEHOLDER ACTIVATION_DESC CONV_DESC"
POINTERS = "PTR_BN_EQSCALE PTR_BN_EQBIAS PTR_WORKSPACE SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES"
LEARNED_POINTERS = ("PTR_BN_SCALE PTR_BN_BIAS PTR_BN_RUNNING_MEAN PTR_BN_RUNNING_VAR "
                    "SCALAR_DOUBLE_BN_EPSILON")
# What programs of the mirrored interface give for each operation: constants, variants.
LABELS = [
    (f"{CONVOLVED} {SUMS} WDESC WDATA_PLACEHOLDER YDESC YDATA_PLACEHOLDER",
     f"{POINTERS} PTR_XDATA PTR_WDATA PTR_YDATA PTR_YSUM PTR_YSQSUM"),
    (f"{CONVOLVED} DWDESC DWDATA_PLACEHOLDER DYDESC DYDATA_PLACEHOLDER",
     f"{POINTERS} PTR_XDATA PTR_DWDATA PTR_DYDATA"),
    (f"{EQUIVALENT} {LEARNED} {SUMS} BN_SAVED_MEAN_PLACEHOLDER BN_SAVED_INVSTD_PLACEHOLDER",
     f"{POINTERS} {LEARNED_POINTERS} PTR_YSUM PTR_YSQSUM PTR_BN_SAVED_MEAN PTR_BN_SAVED_INVSTD "
     "SCALAR_INT64_T_BN_ACCUMULATION_COUNT SCALAR_DOUBLE_BN_EXP_AVG_FACTOR"),
    (f"{EQUIVALENT} {LEARNED}", f"{POINTERS} {LEARNED_POINTERS}"),
]  # fmt: skip


@pytest.mark.parametrize("ops, constants, variants", [(ops, *names) for ops, names in enumerate(LABELS)])
def test_labels_of_an_operation(ops, constants, variants):
    for kind, prefix, names, labels in (("Const", "MCDNN_PARAM_", constants, range(39)),
                                        ("Variant", "MCDNN_", variants, [*range(24), *range(100, 104)])):  # fmt: skip
        it, set_attribute = pack(kind, ops), getattr(lib, f"mcdnnSetFusedOps{kind}ParamPackAttribute")
        taken = {label for label in labels if set_attribute(it, label, ffi.NULL) == 0}
        assert taken == {getattr(lib, prefix + name) for name in names.split()}
        reserved = pack(kind, lib.MCDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK)
        assert all(set_attribute(reserved, label, ffi.NULL) == 0 for label in labels)
