"""Convolutions and their gradients against sums over every tap in float64: layouts, types, methods, numbers of axes."""

import ctypes
import itertools
import mmap
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.conformance.convolution import data_model, forward_model, out_sizes, slope_model
from tests.conformance.harness import run_tests
from tests.tensor.internals import library, view

ANY, PRODUCT, DIRECT, PLAIN, WINOGRAD = 0, 1, 2, 3, 4


class Convolution(ctypes.Structure):
    _fields_ = [("axes", ctypes.c_int32), ("stride", ctypes.c_int64 * 3), ("padding", ctypes.c_int64 * 3),
                ("dilation", ctypes.c_int64 * 3), ("groups", ctypes.c_int64), ("mirrored", ctypes.c_bool),
                ("method", ctypes.c_int), ("relu", ctypes.c_bool), ("alpha", ctypes.c_double),
                ("beta", ctypes.c_double), ("addend_scale", ctypes.c_double)]


class Columns(ctypes.Structure):
    _fields_ = [("conv", Convolution), ("taps", ctypes.c_int64 * 3), ("positions", ctypes.c_int64 * 3)]


def attributes(stride, padding, dilation, groups=1, mirrored=False, method=ANY, relu=False, alpha=1.0, beta=0.0,
               addend_scale=0.0):
    triple = ctypes.c_int64 * 3
    return Convolution(len(stride), triple(*stride), triple(*padding), triple(*dilation), groups, mirrored, method,
                       relu, alpha, beta, addend_scale)


def call(kernel, operands, attribute):
    seen = [view(it.array, it.dtype) if it is not None else view(None) for it in operands]
    views = (type(seen[0]) * len(seen))(*seen)
    assert getattr(library(), kernel)(views, ctypes.byref(attribute)) == 0


def stored(values, dtype, layout="first"):
    """The array in a layout: channels first, channels last, or with gaps between all elements of a row."""
    values = np.asarray(values)
    kind = {"bfloat16": np.uint16}.get(dtype, dtype)
    if dtype == "bfloat16":
        bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        values = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    values = values.astype(kind)
    if layout == "last":
        result = np.moveaxis(np.empty(np.moveaxis(values, 1, -1).shape, kind), -1, 1)
    elif layout == "gaps":
        result = np.zeros((*values.shape[:-1], 2 * values.shape[-1] + 3), kind)[..., 1:2 * values.shape[-1]:2]
    else:
        result = np.empty(values.shape, kind)
    result[...] = values
    return result


def exact(array, dtype):
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


class Operand:
    """What the kernel sees, with the name of its type."""

    def __init__(self, values, dtype="float32", layout="first"):
        self.array, self.dtype = stored(values, dtype, layout), dtype

    def values(self):
        return exact(self.array, self.dtype)


ROUNDING = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SUBNORMAL_ROUNDING = {"float16": 2.0**-25}  # half a step of the smallest numbers, where it matters


def assert_near(operand, expected, magnitude, terms):
    """Within one rounding of the result, and sqrt-like growth of those of the sums (twice, to be safe from luck)."""
    compute = ROUNDING["float64" if operand.dtype == "float64" else "float32"]
    tolerance = ROUNDING.get(operand.dtype, 0.5) * np.abs(expected) + compute * magnitude * (8 + 2 * np.sqrt(terms))
    tolerance = tolerance + SUBNORMAL_ROUNDING.get(operand.dtype, 0)
    error = np.abs(operand.values() - expected)
    assert (error <= tolerance).all(), (error / tolerance).max()


# x sizes with N and C, K, taps, stride, padding, dilation, groups
PROBLEMS = [
    ((2, 3, 5, 7), 4, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 6, 9, 8), 4, (3, 2), (2, 3), (1, 0), (1, 2), 2),
    ((1, 5, 6, 6), 7, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((3, 4, 7, 5), 6, (1, 1), (2, 2), (0, 0), (1, 1), 2),
    ((2, 6, 11, 13), 6, (3, 3), (1, 1), (1, 1), (1, 1), 6),
    ((2, 4, 11, 13), 8, (5, 3), (2, 1), (2, 1), (1, 1), 4),
    ((1, 2, 40, 37), 3, (4, 5), (3, 2), (5, 4), (2, 3), 1),
    ((2, 17, 16, 15), 19, (3, 3), (1, 1), (0, 2), (1, 1), 1),
    ((2, 3, 20), 5, (4,), (3,), (2,), (2,), 1),
    ((1, 1, 4), 1, (5,), (1,), (1,), (1,), 1),
    ((2, 4, 4, 5, 6), 6, (3, 2, 3), (2, 1, 2), (1, 1, 1), (1, 2, 1), 2),
    ((1, 2, 3, 4, 5), 2, (1, 1, 1), (1, 1, 1), (1, 2, 0), (1, 1, 1), 1),
    ((1, 2, 6, 6), 3, (2, 2), (4, 3), (0, 1), (1, 1), 1),
    ((1, 30, 20, 21), 33, (3, 3), (1, 1), (1, 1), (2, 2), 1),
    ((2, 3, 23, 30), 6, (7, 7), (2, 2), (3, 3), (1, 1), 1),
    ((2, 14, 9, 12), 5, (6, 5), (1, 3), (2, 6), (2, 1), 1),
]
LAYOUTS = ["first", "last", "gaps"]


def random(shape, seed, integers=False):
    generator = np.random.default_rng(seed)
    return generator.integers(-9, 10, shape) if integers else generator.uniform(-1, 1, shape)


def settings(problem):
    sizes, results, taps, stride, padding, dilation, groups = problem
    out = out_sizes(sizes[2:], taps, stride, padding, dilation)
    return (sizes, (results, sizes[1] // groups, *taps), (sizes[0], results, *out), (stride, padding, dilation, groups))


def check_all(problem, method, dtype="float32", layouts=("first", "first", "first"), mirrored=False, alpha=1.0,
              beta=0.0):
    x_shape, w_shape, y_shape, geometry = settings(problem)
    x, w, dy = (Operand(random(shape, seed), dtype, layout)
                for seed, (shape, layout) in enumerate(zip((x_shape, w_shape, y_shape), layouts)))
    attribute = attributes(*geometry, mirrored, method, False, alpha, beta)
    prior = [np.full(shape, np.nan) if beta == 0 else random(shape, 9) for shape in (y_shape, x_shape, w_shape)]
    y, dx, dw = (Operand(values, dtype, layout) for values, layout in zip(prior, (layouts[2], layouts[0], layouts[1])))
    before = [operand.values() if beta != 0 else 0 for operand in (y, dx, dw)]
    absent = None
    call("us_conv_forward", [x, w, absent, absent, y], attribute)
    call("us_conv_backward_data", [dy, w, absent, absent, dx], attribute)
    call("us_conv_backward_filter", [x, dy, dw], attribute)
    out = y_shape[2:]
    model = [lambda x_, w_, dy_: forward_model(x_, w_, out, *geometry, mirrored),
             lambda x_, w_, dy_: data_model(dy_, w_, x_shape, *geometry, mirrored),
             lambda x_, w_, dy_: slope_model(x_, dy_, w_shape, *geometry, mirrored)]
    arrays = [operand.values() for operand in (x, w, dy)]
    terms = [np.prod(w_shape[1:]), w_shape[0] / geometry[3] * np.prod(w_shape[2:]), y_shape[0] * np.prod(out)]
    for result, function, old, count in zip((y, dx, dw), model, before, terms):
        magnitude = abs(alpha) * function(*map(np.abs, arrays)) + np.abs(beta * old)
        assert_near(result, alpha * function(*arrays) + beta * old, magnitude, count)


@pytest.mark.parametrize("method", [ANY, PRODUCT, DIRECT])
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_all_three_follow_the_definition(problem, method):
    check_all(problem, method)


# Planes of few channels that are taller than the strip of rows that is summed at a time, and one as tall.
TALL = [((2, 3, rows, width), 3, taps, (1, 1), padding, dilation, 3)
        for rows, width, taps, padding, dilation in (
            (132, 25, (3, 3), (1, 1), (1, 1)), (131, 25, (3, 3), (0, 2), (1, 1)), (129, 23, (3, 3), (3, 3), (3, 3)),
            (70, 61, (5, 3), (2, 1), (1, 1)), (100, 100, (2, 2), (1, 0), (1, 1)), (31, 128, (3, 3), (1, 1), (1, 1)))]


@pytest.mark.parametrize("mirrored", [False, True], ids=["crossed", "mirrored"])
@pytest.mark.parametrize("problem", [*TALL, ((1, 4, 140, 23), 4, (3, 3), (1, 1), (1, 1), (1, 1), 2)], ids=str)
def test_tall_planes_of_few_channels(problem, mirrored):
    check_all(problem, ANY, mirrored=mirrored)
    check_all(problem, ANY, dtype="float64", mirrored=mirrored)


# Positions of few results that are handled in several parts: a long row, many rows, many small images, a volume.
PARTS = [
    ((2, 3, 5000), 5, (5,), (1,), (2,), (1,), 1),
    ((2, 24, 600), 24, (31,), (2,), (15,), (1,), 24),
    ((3, 4, 70, 60), 18, (3, 3), (2, 1), (1, 1), (1, 1), 2),
    ((40, 8, 7, 7), 16, (3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((1, 6, 5, 40, 30), 5, (3, 3, 3), (1, 2, 1), (1, 1, 1), (1, 1, 2), 1),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("problem", PARTS, ids=str)
def test_parts_of_the_positions(problem, dtype):
    check_all(problem, DIRECT, dtype)
    check_all(problem, DIRECT, dtype, alpha=1.5, beta=-0.5)


# 3 x 3 neighbours that are read where the planes lie: rows shorter than a vector, as long, a little longer and cut in several;
# planes of one element; paddings wider than the filter, and than a vector; the first and the last plane of the memory.
SQUARES = [((images, groups * channels, rows, width), groups * results, (3, 3), (1, 1), padding, (1, 1), groups)
           for images, groups, channels, results, rows, width, padding in (
               (1, 2, 1, 1, 1, 1, (1, 1)), (2, 3, 1, 1, 2, 3, (1, 1)), (1, 4, 1, 1, 5, 7, (1, 1)),
               (2, 3, 1, 2, 14, 14, (1, 1)),
               (2, 2, 3, 2, 9, 15, (1, 1)), (1, 2, 1, 1, 6, 16, (1, 1)), (1, 2, 1, 1, 7, 17, (1, 1)),
               (1, 3, 2, 1, 3, 33, (0, 0)),
               (1, 2, 1, 1, 4, 18, (2, 0)), (1, 2, 2, 2, 5, 6, (5, 3)), (1, 2, 1, 1, 3, 4, (0, 21)),
               (1, 2, 1, 1, 3, 200, (1, 1)))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("problem", SQUARES, ids=str)
def test_neighbours_are_read_in_place(problem, dtype):
    for mirrored in (False, True):
        check_all(problem, ANY, dtype, mirrored=mirrored)


# Results in the lanes of vectors: each number of columns that are summed together, of one vector and of two, rows that
# are left over, lanes without a result, one tap and many; depthwise channels with taps side by side, far apart and with
# steps; several parts of the positions.
LANES = [
    *[((2, 6, rows, width), 32, (3, 3), (1, 1), (1, 1), (1, 1), 2)
      for rows, width in enumerate([*range(1, 13), 17], 1)],
    *[((2, 15, rows, width), 48, (3, 3), (1, 1), (1, 1), (1, 1), 1)
      for rows, width in enumerate([*range(1, 13), 17], 1)],
    ((2, 30, 9, 10), 180, (3, 3), (2, 1), (1, 1), (1, 2), 2), ((3, 16, 13, 7), 60, (3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((1, 20, 70, 60), 64, (2, 4), (1, 1), (1, 1), (1, 1), 1),
    ((2, 10, 9, 12), 26, (3, 2), (2, 1), (1, 3), (1, 2), 1), ((3, 6, 4, 5), 80, (1, 1), (1, 1), (0, 0), (1, 1), 2),
    ((1, 34, 9, 10), 36, (1, 3), (2, 3), (0, 2), (1, 1), 2), ((2, 4, 70, 60), 32, (3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((40, 16, 7, 7), 16, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 4, 5, 8, 9), 32, (3, 2, 3), (1, 2, 2), (1, 0, 1), (1, 1, 2), 2),
    ((2, 27, 9, 10), 27, (5, 5), (1, 1), (2, 2), (1, 1), 27), ((2, 16, 11, 12), 16, (3, 5), (2, 2), (1, 4), (2, 1), 16),
    ((1, 16, 70, 60), 16, (5, 5), (1, 1), (2, 2), (1, 1), 16), ((20, 32, 7, 7), 32, (7, 7), (1, 1), (3, 3), (1, 1), 32),
    ((2, 32, 50), 32, (9,), (3,), (20,), (1,), 32),
    ((1, 16, 4, 5, 6), 16, (2, 2, 2), (2, 1, 2), (1, 1, 0), (1, 2, 1), 16),
    ((5, 32, 9, 10), 32, (3, 3), (2, 2), (1, 1), (1, 1), 2), ((8, 27, 7, 9), 30, (3, 2), (2, 2), (1, 0), (1, 1), 1),
    # Steps, whose gradients to the data are made of several gathers: some with one tap only, one for each of many residues,
    # more residues than are summed together, planes smaller than the step.
    ((2, 27, 9, 10), 27, (5, 5), (2, 2), (2, 2), (1, 1), 27), ((3, 16, 13, 7), 16, (3, 3), (2, 2), (1, 1), (1, 1), 16),
    ((2, 16, 9, 7), 16, (3, 3), (1, 2), (1, 1), (1, 1), 16), ((2, 16, 8, 9), 16, (3, 3), (3, 3), (0, 1), (1, 1), 16),
    ((1, 20, 9, 11), 20, (4, 5), (4, 4), (1, 2), (1, 1), 20), ((1, 16, 11, 10), 16, (5, 6), (5, 5), (1, 2), (1, 1), 16),
    ((2, 16, 2, 3), 16, (5, 5), (3, 4), (4, 4), (1, 1), 16),
    ((1, 16, 4, 5, 6), 16, (3, 3, 1), (2, 2, 1), (1, 1, 0), (1, 1, 1), 16),
]  # fmt: skip


@pytest.mark.parametrize("method", [ANY, DIRECT])
@pytest.mark.parametrize("problem", LANES, ids=str)
def test_results_in_the_lanes_of_vectors(problem, method):
    check_all(problem, method, mirrored=method == DIRECT)
    check_all(problem, method, alpha=1.5, beta=-0.5, layouts=("first", "gaps", "first"))
    check_all(problem, method, "float16")


def test_vectors_of_results_meet_no_zeros_outside_with_what_is_infinite():
    x_shape, w_shape, y_shape, geometry = settings(((2, 3, 5, 5), 16, (3, 3), (1, 1), (1, 1), (1, 1), 1))
    weights, slopes = np.ones(w_shape), np.ones(y_shape)
    weights[0, :, 0, 0] = np.inf
    slopes[:, 1, 0, :] = np.inf
    y, dw = Operand(np.zeros(y_shape)), Operand(np.zeros(w_shape))
    call("us_conv_forward", [Operand(np.ones(x_shape)), Operand(weights), None, None, y], attributes(*geometry))
    call("us_conv_backward_filter", [Operand(np.ones(x_shape)), Operand(slopes), dw], attributes(*geometry))
    assert not np.isnan(y.values()).any() and not np.isnan(dw.values()).any()
    assert np.isinf(y.values()[:, 0, 1:, 1:]).all() and np.isfinite(y.values()[:, 0, 0]).all()
    assert np.isfinite(dw.values()[1, :, 0]).all() and np.isinf(dw.values()[1, :, 1:]).all()


# Gradients to the data by products over the positions of several images, not all of them in the last one, of one image,
# and of several parts of the channels; planes too large for that; windows that leave elements out, or lie outside.
FOLDED = [
    ((11, 20, 8, 9), 14, (3, 3), (1, 1), (1, 1), (1, 1), 2), ((3, 40, 31, 30), 33, (3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((2, 150, 7, 6), 40, (2, 3), (1, 1), (0, 1), (1, 1), 1), ((1, 34, 70, 60), 36, (3, 3), (2, 1), (1, 1), (1, 1), 1),
    ((5, 36, 11, 10), 40, (2, 2), (3, 4), (1, 0), (1, 1), 1), ((3, 17, 5, 6), 35, (5, 7), (1, 2), (4, 6), (2, 1), 1),
    ((2, 18, 4, 6, 5), 34, (2, 3, 2), (1, 2, 1), (1, 1, 0), (2, 1, 1), 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("problem", FOLDED, ids=str)
def test_gradients_to_the_data_by_products_over_images(problem, dtype):
    check_all(problem, PRODUCT, dtype)
    check_all(problem, PRODUCT, dtype, ("gaps", "first", "gaps"), mirrored=True)
    check_all(problem, PRODUCT, dtype, ("last", "first", "first"), alpha=-1.5, beta=0.5)


# Of so many elements that rows are made of copies of two images at a time; the last copy is of one.
COPIED = [((3, 3, 350, 401), 2, (3, 3), (2, 2), (1, 1), (1, 1), 1), ((3, 3, 350, 401), 3, (3, 3), (1, 1), (1, 1), (1, 1), 3),
          ((3, 1, 420000), 7, (5,), (1,), (2,), (1,), 1)]  # fmt: skip


@pytest.mark.parametrize("layout, dtype", [("first", "float16"), ("first", "bfloat16"), ("gaps", "float32"), ("last", "float16")])
@pytest.mark.parametrize("problem", COPIED, ids=str)
def test_some_images_are_copied_at_a_time(problem, layout, dtype):
    x_shape, w_shape, y_shape, geometry = settings(problem)
    x, w, dy, addend, bias = (random(shape, seed, integers=True)
                              for seed, shape in enumerate((x_shape, w_shape, y_shape, y_shape, y_shape[1])))
    of_x, of_dy, of_addend = (Operand(values, dtype, layout) for values in (x, dy, addend))
    of_w, of_bias = Operand(w, dtype), Operand(bias, dtype)
    y, dx = Operand(np.full(y_shape, np.nan), dtype, layout), Operand(np.full(x_shape, np.nan), dtype, layout)
    attribute = attributes(*geometry, addend_scale=1.0)
    call("us_conv_forward", [of_x, of_w, of_bias, of_addend, y], attribute)
    call("us_conv_backward_data", [of_dy, of_w, None, None, dx], attributes(*geometry))
    expected = forward_model(x, w, y_shape[2:], *geometry) + bias.reshape(-1, *[1] * len(y_shape[2:])) + addend
    np.testing.assert_array_equal(y.values(), Operand(expected, dtype).values())
    np.testing.assert_array_equal(dx.values(), Operand(data_model(dy, w, x_shape, *geometry), dtype).values())


@pytest.mark.parametrize("method", [ANY, PRODUCT, WINOGRAD])
def test_images_of_several_copies_are_those_of_one(method):
    """Of so many elements that a copy is of one image, whatever the way."""
    x = Operand(random((3, 18, 300, 400), 0, integers=True), "float16")
    w, y = Operand(random((33, 18, 3, 3), 1, integers=True), "float16"), Operand(np.full((3, 33, 300, 400), np.nan), "float16")
    attribute = attributes((1, 1), (1, 1), (1, 1), method=method)
    call("us_conv_forward", [x, w, None, None, y], attribute)
    for image in range(3):
        one, of_one = Operand(x.values()[image:image + 1], "float16"), Operand(np.full((1, 33, 300, 400), np.nan), "float16")
        call("us_conv_forward", [one, w, None, None, of_one], attribute)
        np.testing.assert_array_equal(y.array[image], of_one.array[0])
    rows = forward_model(x.values()[:, :, :6], w.values(), (5, 400), (1, 1), (1, 1), (1, 1), 1)[:, :, :4]
    np.testing.assert_allclose(y.values()[:, :, :4], rows, rtol=2**-10, atol=0.1)  # tiles are not exact: 2^-17 of sums of 81 * 162


# Filters that are one element wide slide along planes as along rows, those that are one plane deep along volumes.
NARROW = [
    ((2, 4, 9, 5), 6, (3, 1), (1, 1), (1, 0), (1, 1), 1), ((2, 4, 9, 5), 6, (4, 1), (1, 1), (5, 0), (2, 1), 2),
    ((2, 4, 9, 5), 6, (3, 1), (2, 1), (1, 0), (1, 1), 1), ((2, 4, 9, 5), 6, (3, 1), (1, 2), (1, 0), (1, 1), 1),
    ((2, 4, 9, 5), 6, (3, 1), (1, 1), (1, 1), (1, 1), 1), ((2, 4, 9, 1), 6, (5, 1), (1, 1), (2, 0), (1, 1), 1),
    ((2, 4, 9, 5), 6, (1, 3), (1, 1), (0, 1), (1, 1), 1),
    ((1, 3, 6, 4, 5), 4, (3, 1, 1), (1, 1, 1), (1, 0, 0), (1, 1, 1), 1),
    ((1, 3, 6, 4, 5), 4, (1, 3, 1), (1, 1, 1), (0, 1, 0), (1, 2, 1), 1),
    ((1, 3, 6, 4, 5), 4, (3, 3, 1), (1, 1, 1), (1, 1, 0), (1, 1, 1), 1),
    ((1, 3, 6, 4, 5), 4, (3, 1, 1), (2, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ((1, 16, 9, 5), 16, (9, 1), (1, 1), (4, 0), (1, 1), 16),
]  # fmt: skip


@pytest.mark.parametrize("method", [ANY, PRODUCT, DIRECT])
@pytest.mark.parametrize("problem", NARROW, ids=str)
def test_narrow_filters(problem, method):
    check_all(problem, method)
    check_all(problem, method, layouts=("last", "last", "last"), mirrored=True)
    check_all(problem, method, "float64", layouts=("gaps", "first", "last"), beta=0.5)
    check_all(problem, method, "bfloat16")


def test_narrow_filters_whose_taps_are_farther_apart_than_can_be_counted():
    far = 1 << 61
    x, w, y = Operand(random((1, 2, 3, 4), 0)), Operand(random((3, 2, 2, 1), 1)), Operand(np.zeros((1, 3, 3, 4)))
    call("us_conv_forward", [x, w, None, None, y], attributes((1, 1), (0, 0), (far, 1)))
    expected = np.einsum("nchw,kc->nkhw", x.values(), w.values()[:, :, 0, 0])
    np.testing.assert_allclose(y.values(), expected, rtol=1e-5, atol=1e-6)


def before_nothing(values):
    """The array at the end of its memory: to read or write behind it would end the process."""
    page, size = mmap.PAGESIZE, -(-values.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for place in (start, start + page + size):
        assert protect(ctypes.c_void_p(place), ctypes.c_size_t(page), 0) == 0
    array = np.frombuffer(memory, values.dtype, values.size, page + size - values.nbytes).reshape(values.shape)
    array[...] = values
    KEPT.append(memory)  # the pages cannot be given back while something points at them
    return array


KEPT = []


@pytest.mark.parametrize("groups, channels, each, side", [(2, 1, 1, 3), (2, 2, 1, 3), (2, 3, 16, 3), (27, 1, 1, 5)])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (14, 14), (32, 32), (32, 33)])
def test_nothing_is_read_outside_the_arrays(groups, channels, each, side, size):
    shape, w_shape = (2, groups * channels, *size), (groups * each, channels, side, side)
    arrays = {"x": random(shape, 0), "w": random(w_shape, 1), "dy": random((2, groups * each, *size), 2)}
    operands = {name: Operand(values) for name, values in arrays.items()}
    results = {name: Operand(np.zeros(values.shape)) for name, values in zip(("dx", "dw", "y"), arrays.values())}
    for operand in [*operands.values(), *results.values()]:
        operand.array = before_nothing(operand.array)
    x, w, dy = operands.values()
    geometry = ((1, 1), (side // 2, side // 2), (1, 1), groups)
    attribute = attributes(*geometry)
    call("us_conv_forward", [x, w, None, None, results["y"]], attribute)
    call("us_conv_backward_data", [dy, w, None, None, results["dx"]], attribute)
    call("us_conv_backward_filter", [x, dy, results["dw"]], attribute)
    assert_near(results["y"], forward_model(x.values(), w.values(), size, *geometry),
                forward_model(abs(x.values()), abs(w.values()), size, *geometry), side * side * channels)


def test_a_plane_does_not_see_what_lies_beside_it():
    geometry, shape = ((1, 1), (1, 1), (1, 1), 3), (1, 3, 4, 5)
    x, w, dy = (random(size, seed) for seed, size in enumerate((shape, (3, 1, 3, 3), shape)))
    for broken in (x, dy):
        broken[:, [0, 2]] = np.nan
    y, dx, dw = (Operand(np.zeros(values.shape)) for values in (x, x, w))
    call("us_conv_forward", [Operand(x), Operand(w), None, None, y], attributes(*geometry))
    call("us_conv_backward_data", [Operand(dy), Operand(w), None, None, dx], attributes(*geometry))
    call("us_conv_backward_filter", [Operand(x), Operand(dy), dw], attributes(*geometry))
    for values in (y.values(), dx.values(), dw.values().reshape(1, 3, 3, 3)):
        assert np.isfinite(values[:, 1]).all() and np.isnan(values[:, [0, 2]]).all()


@pytest.mark.parametrize("layouts", list(itertools.product(LAYOUTS, LAYOUTS, LAYOUTS)), ids="-".join)
@pytest.mark.parametrize("problem", [PROBLEMS[1], PROBLEMS[2], PROBLEMS[4], PROBLEMS[8]], ids=str)
def test_layouts_may_differ(problem, layouts):
    for method in (ANY, PRODUCT, DIRECT):
        check_all(problem, method, layouts=layouts)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("problem", [*PROBLEMS[:6], ((3, 18, 15, 14), 20, (1, 1), (1, 1), (0, 0), (1, 1), 2),
                                     ((2, 5, 23, 24), 7, (1, 1), (1, 1), (0, 0), (1, 1), 1)], ids=str)
def test_types(problem, dtype):
    for method in (PRODUCT, DIRECT):
        check_all(problem, method, dtype, ("last", "first", "gaps"))
        check_all(problem, method, dtype, ("last", "last", "last"))
        check_all(problem, method, dtype, alpha=1.5, beta=-0.5)


@pytest.mark.parametrize("problem", [PROBLEMS[0], PROBLEMS[6], PROBLEMS[10]], ids=str)
def test_mirrored_filters_and_blending(problem):
    for method in (PRODUCT, DIRECT):
        check_all(problem, method, mirrored=True)
        check_all(problem, method, alpha=-0.75, beta=2.0)


@pytest.mark.parametrize("layout", ["first", "last"])
@pytest.mark.parametrize("method", [PRODUCT, DIRECT])
def test_bias_addend_and_relu(layout, method):
    x_shape, w_shape, y_shape, geometry = settings(PROBLEMS[1])
    x, w = Operand(random(x_shape, 0), layout=layout), Operand(random(w_shape, 1))
    bias, addend = Operand(random((y_shape[1],), 2)), Operand(random(y_shape, 3), layout="gaps")
    y = Operand(np.full(y_shape, np.nan), layout=layout)
    call("us_conv_forward", [x, w, bias, addend, y],
         attributes(*geometry, method=method, relu=True, alpha=0.5, addend_scale=-2.0))
    sums = 0.5 * forward_model(x.values(), w.values(), y_shape[2:], *geometry)
    expected = sums - 2 * addend.values() + bias.values().reshape(1, -1, 1, 1)
    assert_near(y, np.maximum(expected, 0), np.full(y_shape, 8.0), 20)
    dx_bias, dx = Operand(random((x_shape[1],), 4)), Operand(np.full(x_shape, np.nan), layout=layout)
    dy = Operand(random(y_shape, 5), layout=layout)
    call("us_conv_backward_data", [dy, w, dx_bias, None, dx], attributes(*geometry, method=method))
    expected = data_model(dy.values(), w.values(), x_shape, *geometry) + dx_bias.values().reshape(1, -1, 1, 1)
    assert_near(dx, expected, np.full(x_shape, 8.0), 20)


@pytest.mark.parametrize("method", [PRODUCT, DIRECT])
def test_integers_are_exact_and_saturate(method):
    x_shape, w_shape, y_shape, geometry = settings(PROBLEMS[7])
    x, w = Operand(random(x_shape, 0) * 127, "int8"), Operand(random(w_shape, 1) * 127, "int8", "last")
    sums = forward_model(x.values(), w.values(), y_shape[2:], *geometry)
    wide, narrow = Operand(np.zeros(y_shape), "float32"), Operand(np.zeros(y_shape), "int8", "last")
    call("us_conv_forward", [x, w, None, None, wide], attributes(*geometry, method=method))
    np.testing.assert_array_equal(wide.values(), sums)
    call("us_conv_forward", [x, w, None, None, narrow], attributes(*geometry, method=method, alpha=0.0078125))
    np.testing.assert_array_equal(narrow.values(), np.clip(np.rint(sums * 0.0078125), -128, 127))


@pytest.mark.parametrize("method", [ANY, PRODUCT, DIRECT])
def test_padding_meets_no_weight(method):
    """Infinite weights and slopes at the border: what lies outside x does not count."""
    x_shape, w_shape, y_shape, geometry = settings(PROBLEMS[0])
    weights, slopes = np.ones(w_shape), np.ones(y_shape)
    weights[0, :, 0, 0] = np.inf
    slopes[:, 1, 0, :] = np.inf
    x, w, dy = Operand(np.ones(x_shape)), Operand(weights), Operand(slopes)
    y, dw = Operand(np.zeros(y_shape)), Operand(np.zeros(w_shape))
    call("us_conv_forward", [x, w, None, None, y], attributes(*geometry, method=method))
    call("us_conv_backward_filter", [x, dy, dw], attributes(*geometry, method=method))
    assert not np.isnan(y.values()).any() and not np.isnan(dw.values()).any()
    assert np.isinf(y.values()[:, 0, 1:, 1:]).all() and np.isfinite(y.values()[:, 0, 0]).all()
    assert np.isfinite(dw.values()[1, :, 0]).all() and np.isinf(dw.values()[1, :, 1:]).all()


def test_the_size_of_dx_is_the_callers():
    """Output padding of a transposed convolution: dy of 2 x 2 with stride 2 belongs to dx of 3 x 3 and of 4 x 4."""
    dy, w = Operand(np.array([[1, 2], [3, 4]]).reshape(1, 1, 2, 2)), Operand(np.arange(1, 10).reshape(1, 1, 3, 3))
    expected = np.array([[5, 14, 10, 12], [14, 36, 24, 30], [15, 34, 20, 24], [24, 55, 32, 36]])
    for size in (3, 4):
        dx = Operand(np.full((1, 1, size, size), np.nan))
        call("us_conv_backward_data", [dy, w, None, None, dx], attributes((2, 2), (1, 1), (1, 1)))
        np.testing.assert_array_equal(dx.values()[0, 0], expected[:size, :size])


def test_columns():
    x = Operand(np.arange(1, 10).reshape(1, 1, 3, 3), "float16")
    for mirrored, order in ((False, [0, 1, 2, 3]), (True, [3, 2, 1, 0])):
        columns = Operand(np.zeros((4, 4)), "float16")
        conv = attributes((1, 1), (0, 0), (1, 1), mirrored=mirrored)
        call("us_conv_columns", [x, columns], Columns(conv, (ctypes.c_int64 * 3)(2, 2), (ctypes.c_int64 * 3)(2, 2)))
        rows = np.array([[1, 2, 4, 5], [2, 3, 5, 6], [4, 5, 7, 8], [5, 6, 8, 9]])
        np.testing.assert_array_equal(columns.values(), rows[order])


# ---- Winograd's filtering ----

# The maps of winograd_maps.c by the size of a tile: patch, filter, result.
MAPS = {
    2: ([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
        [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
        [[1, 1, 1, 0], [0, 1, -1, -1]]),
    4: ([[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0], [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0],
         [0, 4, 0, -5, 0, 1]],
        [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6],
         [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]],
        [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]),
}  # fmt: skip


def magnitudes(tile, x, w, dy, padding):
    """What roundings of the three results are proportional to: the same maps with all terms positive."""
    patch, taps, result = (np.abs(np.array(it)) for it in MAPS[tile])
    rows, columns = (-(-size // tile) for size in dy.shape[2:])
    space = np.zeros((*x.shape[:2], rows * tile + 2, columns * tile + 2))
    space[:, :, padding[0]:padding[0] + x.shape[2], padding[1]:padding[1] + x.shape[3]] = np.abs(x)
    slopes = np.zeros((*dy.shape[:2], rows * tile, columns * tile))
    slopes[:, :, :dy.shape[2], :dy.shape[3]] = np.abs(dy)
    patches = np.lib.stride_tricks.sliding_window_view(space, (tile + 2, tile + 2), (2, 3))[:, :, ::tile, ::tile]
    tiles = slopes.reshape(*dy.shape[:2], rows, tile, columns, tile).swapaxes(3, 4)
    of_x = np.einsum("pi,qj,ncrsij->ncrspq", patch, patch, patches, optimize=True)
    of_w = np.einsum("pi,qj,kcij->kcpq", taps, taps, np.abs(w), optimize=True)
    of_dy = np.einsum("ip,jq,nkrsij->nkrspq", result, result, tiles, optimize=True)
    y = np.einsum("ip,jq,kcpq,ncrspq->nkrisj", result, result, of_w, of_x, optimize=True)
    dw = np.einsum("pi,qj,nkrspq,ncrspq->kcij", taps, taps, of_dy, of_x, optimize=True)
    return y.reshape(*dy.shape[:2], rows * tile, -1)[:, :, :dy.shape[2], :dy.shape[3]], dw


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("problem", [((2, 17, 16, 15), 19, (3, 3), (1, 1), (0, 2), (1, 1), 1),
                                     ((3, 8, 9, 31), 24, (3, 3), (1, 1), (1, 1), (1, 1), 1),
                                     ((4, 20, 15, 15), 17, (3, 3), (1, 1), (2, 2), (1, 1), 1),
                                     ((1, 33, 1, 2), 35, (3, 3), (1, 1), (2, 1), (1, 1), 1)], ids=str)
def test_error_of_tiles_is_bounded(problem, dtype):
    """Each map and product rounds a few times more than there are terms; an outlier disturbs its own tiles only."""
    x_shape, w_shape, y_shape, geometry = settings(problem)
    outlying = random(x_shape, 1)
    outlying[0, 0, 0, 0] = 1000
    for layout in ("first", "last"):
        x, w, dy = (Operand(values, dtype, layout)
                    for values in (outlying, random(w_shape, 2), random(y_shape, 3)))
        y, dx, dw = (Operand(np.full(shape, np.nan), dtype, layout) for shape in (y_shape, x_shape, w_shape))
        attribute = attributes(*geometry, method=WINOGRAD)
        call("us_conv_forward", [x, w, None, None, y], attribute)
        call("us_conv_backward_data", [dy, w, None, None, dx], attribute)
        call("us_conv_backward_filter", [x, dy, dw], attribute)
        arrays, padding = [it.values() for it in (x, w, dy)], geometry[1]
        tile = 4 if dtype != "float32" and y_shape[0] * -(-y_shape[2] // 4) * -(-y_shape[3] // 4) >= 64 else 2
        of_y, of_dw = magnitudes(tile, *arrays, padding)
        turned = np.abs(arrays[1][:, :, ::-1, ::-1]).swapaxes(0, 1)
        of_dx, _ = magnitudes(tile, arrays[2], turned, arrays[0], (2 - padding[0], 2 - padding[1]))
        models = (forward_model(arrays[0], arrays[1], y_shape[2:], *geometry),
                  data_model(arrays[2], arrays[1], x_shape, *geometry),
                  slope_model(arrays[0], arrays[2], w_shape, *geometry))
        terms = w_shape[1], w_shape[0], np.prod(y_shape) / y_shape[1] / tile**2
        for actual, model, magnitude, count in zip((y, dx, dw), models, (of_y, of_dx, of_dw), terms):
            rounding = ROUNDING[dtype] * np.abs(model) if dtype != "float32" else 0
            error = np.abs(actual.values() - model)
            assert (error <= rounding + 2.0**-24 * (16 + count) * magnitude).all()
            assert np.abs(error).max() > 0


def test_small_integers_stay_exact_in_tiles_of_two():
    x_shape, w_shape, y_shape, geometry = settings(PROBLEMS[7])
    x, w, dy = (Operand(random(shape, seed, integers=True)) for seed, shape in enumerate((x_shape, w_shape, y_shape)))
    y, dx, dw = (Operand(np.full(shape, np.nan)) for shape in (y_shape, x_shape, w_shape))
    attribute = attributes(*geometry, method=WINOGRAD)
    call("us_conv_forward", [x, w, None, None, y], attribute)
    call("us_conv_backward_data", [dy, w, None, None, dx], attribute)
    call("us_conv_backward_filter", [x, dy, dw], attribute)
    np.testing.assert_array_equal(y.values(), forward_model(x.values(), w.values(), y_shape[2:], *geometry))
    np.testing.assert_array_equal(dx.values(), data_model(dy.values(), w.values(), x_shape, *geometry))
    np.testing.assert_array_equal(dw.values(), slope_model(x.values(), dy.values(), w_shape, *geometry))


@pytest.mark.parametrize("value", [np.inf, np.nan, 3e38])
def test_what_tiles_would_spread_goes_without_them(value):
    """Bit for bit the plain sums, where only the windows over the value see it; without it they differ."""
    x_shape, w_shape, y_shape, geometry = settings(PROBLEMS[7])
    with_it = random(x_shape, 1)
    with_it[1, 2, 7, 7] = value
    found = []
    for values, method in itertools.product((with_it, random(x_shape, 1)), (WINOGRAD, PLAIN)):
        x, w = Operand(values), Operand(random(w_shape, 2))
        y, dw = Operand(np.zeros(y_shape)), Operand(np.zeros(w_shape))
        call("us_conv_forward", [x, w, None, None, y], attributes(*geometry, method=method))
        call("us_conv_backward_filter", [x, Operand(random(y_shape, 3)), dw], attributes(*geometry, method=method))
        found.append(y.array.tobytes() + dw.array.tobytes())
    assert found[0] == found[1] and found[2] != found[3]


def test_very_long_rows_go_without_tiles():
    """A row of tiles would take much memory: the same bits as without them; other bits where rows are short."""
    for width, same in ((20000, True), (20, False)):
        x, w = Operand(random((1, 16, 2, width), 1)), Operand(random((16, 16, 3, 3), 2))
        found = [Operand(np.zeros((1, 16, 2, width))) for _ in range(2)]
        for y, method in zip(found, (WINOGRAD, PLAIN)):
            call("us_conv_forward", [x, w, None, None, y], attributes((1, 1), (1, 1), (1, 1), method=method))
        assert (found[0].array == found[1].array).all() == same


def test_three_taps_of_one_plane_of_a_volume():
    """Tiles in the last two axes of three."""
    x_shape, w_shape, y_shape, geometry = settings(((2, 5, 4, 9, 10), 6, (1, 3, 3), (2, 1, 1), (1, 1, 0), (1, 1, 1), 1))
    x, w = Operand(random(x_shape, 1, integers=True)), Operand(random(w_shape, 2, integers=True))
    for layout in ("first", "last"):
        y = Operand(np.full(y_shape, np.nan), layout=layout)
        call("us_conv_forward", [x, w, None, None, y], attributes(*geometry, method=WINOGRAD))
        np.testing.assert_array_equal(y.values(), forward_model(x.values(), w.values(), y_shape[2:], *geometry))


# ---- 16-bit types ----

# Enough channels that processors that multiply 16-bit numbers take them as they are.
CELLS = [
    ((2, 20, 9, 14), 35, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 66, 12, 11), 50, (3, 2), (2, 3), (1, 0), (1, 2), 2),
    ((5, 33, 7, 7), 17, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((3, 32, 9, 9), 40, (1, 1), (2, 2), (0, 0), (1, 1), 1),
    ((2, 18, 70), 3, (4,), (3,), (2,), (2,), 1),
    ((1, 16, 4, 9, 10), 33, (3, 2, 3), (2, 1, 2), (1, 1, 1), (1, 2, 1), 1),
    ((1, 16, 60, 50), 33, (3, 3), (1, 1), (1, 1), (1, 1), 1),
]


def results_of(operands, shapes, geometry, layouts, dtype="float32", method=PRODUCT):
    """y, dx and dw, where the filter's layout is the second."""
    x, w, dy = operands
    y, dx, dw = (Operand(np.full(shape, np.nan), dtype, layout)
                 for shape, layout in zip(shapes, (layouts[0], layouts[0], layouts[1])))
    attribute = attributes(*geometry, method=method)
    call("us_conv_forward", [x, w, None, None, y], attribute)
    call("us_conv_backward_data", [dy, w, None, None, dx], attribute)
    call("us_conv_backward_filter", [x, dy, dw], attribute)
    return y, dx, dw


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("layouts", [("first", "first"), ("last", "last"), ("first", "last"), ("last", "gaps")],
                         ids="-".join)  # fmt: skip
@pytest.mark.parametrize("problem", CELLS, ids=str)
def test_16_bit_integers_stay_exact(problem, layouts, dtype):
    x_shape, w_shape, y_shape, geometry = settings(problem)
    x, w, dy = (random(shape, seed, integers=True) for seed, shape in enumerate((x_shape, w_shape, y_shape)))
    operands = [Operand(values, dtype, layouts[which]) for values, which in ((x, 0), (w, 1), (dy, 0))]
    y, dx, dw = results_of(operands, (y_shape, x_shape, w_shape), geometry, layouts)
    np.testing.assert_array_equal(y.values(), forward_model(x, w, y_shape[2:], *geometry))
    np.testing.assert_array_equal(dx.values(), data_model(dy, w, x_shape, *geometry))
    np.testing.assert_array_equal(dw.values(), slope_model(x, dy, w_shape, *geometry))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("which", [0, 1, 2], ids=["x", "w", "dy"])
@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("problem", [CELLS[0], PROBLEMS[4]], ids=["many channels", "depthwise"])
def test_16_bit_infinities_reach_what_sees_them(problem, value, which, dtype):
    """As by loops over rows, in float32."""
    x_shape, w_shape, y_shape, geometry = settings(problem)
    arrays = [random(shape, seed, integers=True).astype(float) for seed, shape in enumerate((x_shape, w_shape, y_shape))]
    arrays[which].flat[[1, -20]] = value, -value
    found = [results_of([Operand(values, kind) for values in arrays], (y_shape, x_shape, w_shape), geometry,
                        ("first", "first"), method=method)
             for kind, method in ((dtype, PLAIN), ("float32", DIRECT))]  # fmt: skip
    for ours, expected in zip(*found):
        np.testing.assert_array_equal(ours.values(), expected.values())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_taps_may_be_too_far_apart_to_count_what_lies_between(dtype):
    """2^64 places between the first and the last tap: all taps but padding are outside."""
    away = 2**32 - 4
    x, w, dy = (Operand(np.ones(shape), dtype) for shape in ((1, 32, 4, 4), (32, 32, 2, 2), (1, 32, 4, 4)))
    geometry = ((1, 1), (away // 2, away // 2), (away, away), 1)
    for found in results_of([x, w, dy], [operand.array.shape for operand in (dy, x, w)], geometry, ("first", "first"),
                            dtype):  # fmt: skip
        assert not found.values().any()


def test_small_numbers_of_bfloat16_are_not_lost():
    """Sums below the least normal number of float32, and numbers below that of bfloat16."""
    x_shape, w_shape, y_shape, geometry = settings(CELLS[0])
    arrays = [random(shape, seed, integers=True) for seed, shape in enumerate((x_shape, w_shape, y_shape))]
    for scales in ((2.0**-70, 2.0**-70, 2.0**-70), (2.0**-132, 1.0, 1.0)):
        operands = [[Operand(values * scale,
                             kind) for values, scale in zip(arrays,
                                                            scales)] for kind in ("bfloat16", "float32")]  # fmt: skip
        found = [results_of(those, (y_shape, x_shape, w_shape), geometry, ("first", "first"), method=method)
                 for those, method in zip(operands, (PRODUCT, DIRECT))]
        for ours, expected in zip(*found):
            np.testing.assert_array_equal(ours.values(), expected.values())
            assert expected.values().any()


def digest():
    import hashlib

    found = hashlib.sha256()
    for problem in (((3, 20, 30, 31), 24, (3, 3), (1, 1), (1, 1), (1, 1), 1), PROBLEMS[4], PROBLEMS[1], *LANES[13:]):
        x_shape, w_shape, y_shape, geometry = settings(problem)
        methods = (ANY, DIRECT) if problem in LANES else (PRODUCT, DIRECT, WINOGRAD)
        for method, layout, dtype in itertools.product(methods, ("first", "last"), ("float32", "float16", "bfloat16")):
            x, w, dy = (Operand(random(shape, 1), dtype, layout) for shape in (x_shape, w_shape, y_shape))
            y, dx, dw = (Operand(np.zeros(shape), dtype, layout) for shape in (y_shape, x_shape, w_shape))
            call("us_conv_forward", [x, w, None, None, y], attributes(*geometry, method=method))
            call("us_conv_backward_data", [dy, w, None, None, dx], attributes(*geometry, method=method))
            call("us_conv_backward_filter", [x, dy, dw], attributes(*geometry, method=method))
            for operand in (y, dx, dw):
                found.update(np.ascontiguousarray(operand.array).tobytes())
    return found.hexdigest()


def test_results_do_not_depend_on_the_number_of_threads_or_the_level():
    source = "from tests.kernels.test_conv import digest; print(digest())"
    settings = [{"UNDERSTUDY_THREADS": threads} for threads in ("1", "2", "5")]
    settings += [{"UNDERSTUDY_ISA": level} for level in ("base", "v3")]
    digests = {subprocess.run([sys.executable, "-c", source], env=os.environ | setting, check=True, capture_output=True,
                              text=True).stdout for setting in settings}  # fmt: skip
    assert len(digests) == 1


@pytest.mark.parametrize("most", ["off", "avx512"])
def test_16_bit_types_without_amx(most):
    """Where the processor has AMX or multiplies bfloat16, 16-bit products go another way than elsewhere."""
    names = ["test_types", "test_error_of_tiles_is_bounded", "test_16_bit_integers_stay_exact",
             "test_16_bit_infinities_reach_what_sees_them"]  # fmt: skip
    run_tests([f"{__file__}::{name}" for name in names], {"UNDERSTUDY_BF16": most})
