"""Pooling and its gradients: windows element by element in float64, for every type and layout."""

import itertools
import math

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, OF_IMAGES, call, empty, fault, refusal, rounded, tensor
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor

KINDS = ["F32", "F16", "BF16"]


def drawn(shape, seed):
    """Quarters, many of them equal: every type holds them, and which of equal ones wins shows."""
    return np.random.default_rng(seed).integers(-6, 7, shape) / 4


def full(values, axes):
    return list(values) * (axes if len(values) == 1 else 1)


def regular(sizes, kernel, stride, padding, ceil):
    """Of each axis the windows as they are, with what lies in the padding: (begin, end) pairs."""
    axes = len(sizes)
    result = []
    for size, k, s, p in zip(sizes, full(kernel, axes), full(stride or kernel, axes), full(padding, axes)):
        count = (math.ceil if ceil else math.floor)((size + 2 * p - k) / s) + 1
        if ceil and (count - 1) * s >= size + p:
            count -= 1
        result.append([(o * s - p, min(o * s - p + k, size + p)) for o in range(count)])
    return result


def adaptive(sizes, outputs):
    return [[(o * size // out, -(-(o + 1) * size // out)) for o in range(out)] for size, out in zip(sizes, outputs)]


def places(window, sizes):
    """The elements of a window that lie inside, as indices, row-major."""
    return list(itertools.product(*(range(max(b, 0), min(e, size)) for (b, e), size in zip(window, sizes))))


def every_window(windows):
    for place in itertools.product(*(range(len(axis)) for axis in windows)):
        yield place, [axis[o] for axis, o in zip(windows, place)]


def means(x, windows, count_padding=True, divisor=0):
    """The output, and the function from its slopes to those of x."""
    axes = len(windows)
    sizes = x.shape[-axes:]
    out = np.zeros((*x.shape[:-axes], *map(len, windows)))
    shares = []
    for place, window in every_window(windows):
        inside = places(window, sizes)
        counted = math.prod(e - b for b, e in window) if count_padding else len(inside)
        by = divisor or counted
        out[(..., *place)] = sum(x[(..., *i)] for i in inside) / by
        shares += [(place, i, by) for i in inside]

    def gradient(dy):
        dx = np.zeros_like(x)
        for place, i, by in shares:
            dx[(..., *i)] += dy[(..., *place)] / by
        return dx

    return out, gradient


def maxima(x, windows):
    axes = len(windows)
    sizes = x.shape[-axes:]
    out = np.zeros((*x.shape[:-axes], *map(len, windows)))
    indices = np.zeros(out.shape, np.int64)
    for place, window in every_window(windows):
        inside = places(window, sizes)
        values = np.stack([x[(..., *i)] for i in inside])
        flat = np.array([np.ravel_multi_index(i, sizes) for i in inside])
        best = values.argmax(0)  # the first of equal ones
        out[(..., *place)] = np.take_along_axis(values, best[None], 0)[0]
        indices[(..., *place)] = flat[best]
    return out, indices


def scattered(dy, indices, shape, axes):
    dx = np.zeros((*shape[:-axes], math.prod(shape[-axes:])))
    leading = np.indices(dy.shape)[: dy.ndim - axes]
    np.add.at(dx, (*leading, indices), dy)
    return dx.reshape(shape)


def close(actual, expected, kind, terms):
    """Sums of quarters are exact: what is rounded are shares, a few of them together, and the result once."""
    unit = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}[kind]
    np.testing.assert_allclose(actual, expected, rtol=unit + (terms + 2) * 2.0**-23, atol=(terms + 2) * 2.0**-22 + 2.0**-24)


CASES_2D = [  # x, kernel, stride, padding, ceil
    ((2, 3, 6, 5), [3, 2], [2, 1], [1, 0], False),
    ((2, 3, 7, 8), [3], [2], [1], True),
    ((3, 9, 9), [2], [], [0], True),
    ((1, 2, 5, 40), [5, 3], [1, 3], [2, 1], True),
    ((2, 1, 4, 4), [1], [2], [0], False),
    ((1, 1, 33, 70), [4, 4], [3, 2], [0, 2], True),
    ((2, 2, 3, 1), [4, 2], [2], [0], True),  # no window fits: its only one reaches behind the data
    ((1, 2, 4, 300), [2], [2], [0], False), ((1, 2, 5, 300), [3], [2], [0], False),  # long rows: where they lie, and not
    ((2, 1, 9, 65), [3, 5], [2], [1, 2], True),
    # planes side by side: some more than a vector has, fewer, of one element, all of a plane, a piece and a bit
    ((2, 9, 7, 7), [3], [2], [1], False),
    ((1, 9, 5, 6), [2, 3], [1], [1, 0], True),
    ((3, 11, 1, 1), [2], [1], [1], True),
    ((2, 13, 5, 3), [5, 3], [1], [0], False),
    ((31, 11, 7, 7), [2], [], [0], True),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES_2D, ids=str)
def test_average(case):
    shape, kernel, stride, padding, ceil = case
    x = drawn(shape, 1)
    windows = regular(shape[-2:], kernel, stride, padding, ceil)
    for number, (kind, (count, divisor)) in enumerate(
            itertools.product(KINDS, [(True, 0), (False, 0), (True, 3), (False, -4)])):
        layout, other = LAYOUTS[number % 3], LAYOUTS[(number + number // 3) % 3]
        expected, gradient = means(x, windows, count, divisor)
        settings = dict(kernelSize=kernel, ceilMode=ceil, countIncludePad=count, divisorOverride=divisor, cubeMathType=0)
        out = call("AvgPool2d", self=tensor(x, kind, layout), strides=stride, paddings=padding,
                   out=empty(expected.shape, kind, other), **settings)
        close(out, expected, kind, 0)
        dy = drawn(expected.shape, 2)
        dx = call("AvgPool2dBackward", gradOutput=tensor(dy, kind, layout), self=tensor(x, kind, other), stride=stride,
                  padding=padding, gradInput=empty(shape, kind, other), **settings)
        close(dx, gradient(dy), kind, 20)


@pytest.mark.parametrize("case", CASES_2D, ids=str)
def test_maximum_with_mask(case):
    shape, kernel, stride, padding, ceil = case
    x = drawn(shape, 1)
    expected, indices = maxima(x, regular(shape[-2:], kernel, stride, padding, ceil))
    dy = drawn(expected.shape, 2)
    dx = scattered(dy, indices, shape, 2)
    taps, pixels = math.prod(full(kernel, 2)), math.prod(expected.shape[-2:])
    mask_shape = (*shape[:-2], taps, (-(-pixels // 16) + 1) * 32)
    for number, (kind, layout) in enumerate(itertools.product(KINDS, LAYOUTS)):
        mask = empty(mask_shape, "I8", LAYOUTS[-number % 3])
        settings = dict(kernelSize=kernel, padding=padding, dilation=[1], ceilMode=ceil)
        out, _ = call("MaxPool2dWithMask", self=tensor(x, kind, layout), out=empty(expected.shape, kind, layout),
                      indices=mask, stride=stride, **settings)
        np.testing.assert_array_equal(out, expected)
        given = None if (stride or kernel) == kernel else stride  # no stride is the kernel's size
        result = call("MaxPool2dWithMaskBackward", gradOutput=tensor(dy, kind, layout), self=tensor(x, kind),
                      indices=mask, gradInput=empty(shape, kind, layout), stride=given, **settings)
        np.testing.assert_array_equal(result, dx)


@pytest.mark.parametrize("case", [((2, 3, 6, 5), [3, 2]), ((2, 2, 9, 12), [3, 4]), ((3, 7, 7), [1, 1]),
                                  ((1, 2, 5, 3), [8, 3]), ((1, 1, 40, 33), [7, 32]), ((2, 9, 7, 7), [3, 2]),
                                  ((3, 11, 5, 4), [1, 1]), ((17, 5, 3), [7, 3])], ids=str)
def test_adaptive_average(case):
    shape, size = case
    x = drawn(shape, 1)
    expected, gradient = means(x, adaptive(shape[-2:], size))
    dy = drawn(expected.shape, 2)
    for kind, layout in itertools.product(KINDS, LAYOUTS):
        out = call("AdaptiveAvgPool2d", self=tensor(x, kind, layout), outputSize=size,
                   out=empty(expected.shape, kind, layout))
        close(out, expected, kind, 2)
        dx = call("AdaptiveAvgPool2dBackward", gradOutput=tensor(dy, kind, layout), self=tensor(x, kind),
                  out=empty(shape, kind, layout))
        close(dx, gradient(dy), kind, 20)


CASES_3D = [  # x, kernel, stride, padding, ceil
    ((2, 2, 4, 5, 6), [2, 3, 2], [2, 1, 3], [1, 1, 0], False),
    ((2, 5, 4, 5), [3], [2], [1], True),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES_3D, ids=str)
def test_three_axes(case):
    shape, kernel, stride, padding, ceil = case
    x = drawn(shape, 1)
    windows = regular(shape[-3:], kernel, stride, padding, ceil)
    largest, indices = maxima(x, windows)
    dy = drawn(largest.shape, 2)
    arrays = dict(kernelSize=kernel, stride=stride, padding=padding, ceilMode=ceil)
    for number, (kind, layout) in enumerate(zip(KINDS, LAYOUTS)):
        average = dict(countIncludePad=number % 2 == 0, divisorOverride=5 if number == 2 else 0, **arrays)
        expected, gradient = means(x, windows, number % 2 == 0, average["divisorOverride"])
        out = call("AvgPool3d", self=tensor(x, kind, layout), out=empty(expected.shape, kind, layout), **average)
        close(out, expected, kind, 0)
        dx = call("AvgPool3dBackward", gradOutput=tensor(dy, kind, layout), self=tensor(x, kind),
                  output=empty(shape, kind, layout), **average)
        close(dx, gradient(dy), kind, 20)
        out, found = call("MaxPool3dWithArgmax", self=tensor(x, kind, layout), out=empty(dy.shape, kind, layout),
                          indices=empty(dy.shape, "I32", layout), dilation=[1], **arrays)
        np.testing.assert_array_equal(out, largest)
        np.testing.assert_array_equal(found, indices)
        dx = call("MaxPool3dWithArgmaxBackward", gradOutput=tensor(dy, kind, layout), self=tensor(x, kind),
                  indices=tensor(indices, "I32", layout), gradInput=empty(shape, kind, layout), dilation=[1], **arrays)
        np.testing.assert_array_equal(dx, scattered(dy, indices, shape, 3))


@pytest.mark.parametrize("case", [*CASES_2D[:4], *CASES_2D[6:]], ids=str)
def test_maximum_with_indices(case):
    shape, kernel, stride, padding, ceil = case
    x = drawn(shape, 1)
    expected, indices = maxima(x, regular(shape[-2:], kernel, stride, padding, ceil))
    dy = drawn(expected.shape, 2)
    settings = dict(kernelSize=kernel, stride=stride, padding=padding, dilation=[1], ceilMode=ceil)
    for (kind, layout), index in zip(zip(KINDS, LAYOUTS), ["I64", "I32", "I32"]):
        out, found = call("MaxPool2dWithIndices", self=tensor(x, kind, layout), out=empty(dy.shape, kind, layout),
                          indices=empty(dy.shape, index, layout), **settings)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(found, indices)
    dx = call("MaxPool2dWithIndicesBackward", gradOutput=tensor(dy), self=tensor(x), indices=tensor(indices, "I32"),
              gradInput=empty(shape), **settings)
    np.testing.assert_array_equal(dx, scattered(dy, indices, shape, 2))
    strange = np.where(indices % 3 == 0, indices + 10**6, -1 - indices)
    dx = call("MaxPool2dWithIndicesBackward", gradOutput=tensor(dy), self=tensor(x), indices=tensor(strange, "I32"),
              gradInput=empty(shape), **settings)
    assert not dx.any()  # places outside the plane get nothing, and nothing else is written


@pytest.mark.parametrize("case", [((2, 3, 6, 5), [3, 2]), ((2, 9, 12), [4, 5]), ((1, 2, 5, 3), [8, 3]),
                                  ((2, 9, 5, 7), [3, 2]), ((17, 5, 3), [7, 3]),
                                  ((2, 2, 5, 4, 7), [2, 4, 3]), ((2, 4, 4, 6), [3, 2, 2])], ids=str)
def test_adaptive_maximum(case):
    shape, size = case
    axes = len(size)
    x = drawn(shape, 1)
    windows = adaptive(shape[-axes:], size)
    expected, indices = maxima(x, windows)
    dy = drawn(expected.shape, 2)
    index = "I64" if axes == 2 else "I32"
    for kind, layout in zip([*KINDS, "F64"][: 4 if axes == 2 else 3], [*LAYOUTS, "row-major"]):
        out, found = call(f"AdaptiveMaxPool{axes}d", self=tensor(x, kind, layout), outputSize=size,
                          outputOut=empty(dy.shape, kind, layout), indicesOut=empty(dy.shape, index, layout))
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(found, indices)
    for kind, layout in zip(KINDS, LAYOUTS):
        dx = call(f"AdaptiveMaxPool{axes}dBackward", gradOutput=tensor(dy, kind, layout), self=tensor(x, kind),
                  indices=tensor(indices, index, layout), gradInput=empty(shape, kind, layout))
        np.testing.assert_array_equal(dx, scattered(dy, indices, shape, axes))
    if axes == 3:
        expected, gradient = means(x, windows)
        out = call("AdaptiveAvgPool3d", self=tensor(x), outputSize=size, out=empty(expected.shape))
        close(out, expected, "F32", 2)
        dx = call("AdaptiveAvgPool3dBackward", gradOutput=tensor(dy), self=tensor(x), out=empty(shape))
        close(dx, gradient(dy), "F32", 20)


@pytest.mark.parametrize("layouts", OF_IMAGES, ids=str)
@pytest.mark.parametrize("kind, index", [("F32", "I32"), ("F16", "I64"), ("BF16", "I32")])
def test_channels_side_by_side(kind, index, layouts):
    """In one of the tensors, or in both."""
    shape = (2, 20, 19, 23)
    x = drawn(shape, 1)
    settings = dict(kernelSize=[3], stride=[2], padding=[1], dilation=[1], ceilMode=True)
    windows = regular(shape[2:], [3], [2], [1], True)
    expected, indices = maxima(x, windows)
    dy = drawn(expected.shape, 2)
    own, other = ((kind, layout) for layout in layouts)
    places = empty(dy.shape, index, layouts[1])
    out, found = call("MaxPool2dWithIndices", self=tensor(x, *own), out=empty(dy.shape, *other), indices=places, **settings)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(found, indices)
    mask = empty((2, 20, 9, (-(-math.prod(dy.shape[2:]) // 16) + 1) * 32), "I8", "gaps")
    out, _ = call("MaxPool2dWithMask", self=tensor(x, *own), out=empty(dy.shape, *other), indices=mask, **settings)
    np.testing.assert_array_equal(out, expected)
    for name, found in [("MaxPool2dWithMask", mask), ("MaxPool2dWithIndices", places)][: 2 if kind == "F32" else 1]:
        dx = call(f"{name}Backward", gradOutput=tensor(dy, *own), self=tensor(x, *other), indices=found,
                  gradInput=empty(shape, *other), **settings)
        close(dx, scattered(dy, indices, shape, 2), kind, 20)
    expected, gradient = means(x, windows)
    settings = dict(kernelSize=[3], ceilMode=True, countIncludePad=True, divisorOverride=0, cubeMathType=0)
    close(call("AvgPool2d", self=tensor(x, *own), strides=[2], paddings=[1], out=empty(dy.shape, *other), **settings),
          expected, kind, 2)
    close(call("AvgPool2dBackward", gradOutput=tensor(dy, *own), self=tensor(x, *other), stride=[2], padding=[1],
               gradInput=empty(shape, *other), **settings), gradient(dy), kind, 20)
    expected, gradient = means(x, adaptive(shape[2:], [7, 5]))
    dy = drawn(expected.shape, 2)
    close(call("AdaptiveAvgPool2d", self=tensor(x, *own), outputSize=[7, 5], out=empty(dy.shape, *other)), expected, kind, 2)
    close(call("AdaptiveAvgPool2dBackward", gradOutput=tensor(dy, *own), self=tensor(x, *other), out=empty(shape, *other)),
          gradient(dy), kind, 20)


def test_rows_in_descending_order():
    """The row that lies first in memory is the last one of its plane, and no row lies before it."""
    for kind in ("F16", "F32"):
        x = rounded(np.random.default_rng(5).normal(size=(2, 3, 4, 6, 5)), kind)
        settings = dict(kernelSize=[2, 3, 2], stride=[2], padding=[1, 1, 0], ceilMode=False, countIncludePad=True,
                        divisorOverride=0)  # fmt: skip
        stored = np.ascontiguousarray(x[:, :, :, ::-1])
        turned = Tensor(pages.KINDS[kind], stored, shape=x.shape, strides=[360, 120, 30, -5, 1], offset=25)
        found = [call("AvgPool3d", self=one, out=empty((2, 3, 3, 3, 2), kind),
                      **settings) for one in (tensor(x, kind), turned)]  # fmt: skip
        np.testing.assert_array_equal(*found)


def test_maximum_with_pads_of_each_side():
    x = drawn((2, 3, 7, 8), 1)
    for pads, strides, ceil in [([], [], 0), ([1], [2], 1), ([1, 0], [2, 3], 0), ([0, 1, 2, 0], [2], 1),
                                ([2, 0, 1, 2], [], 0)]:  # fmt: skip
        before, behind = (pads[:2], pads[2:]) if len(pads) == 4 else (full(pads or [0], 2),) * 2
        padded = np.pad(x, [(0, 0), (0, 0), *zip(before, behind)], constant_values=-np.inf)
        windows = []
        for size, k, s, b, e in zip(x.shape[2:], [3, 2], full(strides or [1], 2), before, behind):
            count = (math.ceil if ceil else math.floor)((size + b + e - k) / s) + 1
            count -= (count - 1) * s >= size + b
            windows.append([(o * s, min(o * s + k, size + b + e)) for o in range(count)])
        expected, _ = maxima(padded, windows)
        for kind, layout in itertools.product(["F32", "F16"], LAYOUTS):
            out = call("MaxPool", self=tensor(x, kind, layout), kernelShape=[3, 2], strides=strides, autoPad=0, pads=pads,
                       dilations=[], ceilMode=ceil, out=empty(expected.shape, kind, layout))
            np.testing.assert_array_equal(out, expected)


def test_special_values():
    """NaN wins, the last of several; a window of nothing but -inf has its first element."""
    x = np.array([[[[np.nan, 1, 2, np.nan], [3, 4, np.nan, 5], [-np.inf] * 4, [-np.inf] * 4]]])
    mask = empty((1, 1, 4, 64), "I8")
    settings = dict(kernelSize=[2], stride=[2], padding=[0], dilation=[1], ceilMode=False)
    out, _ = call("MaxPool2dWithMask", self=tensor(x), out=empty((1, 1, 2, 2)), indices=mask, **settings)
    np.testing.assert_array_equal(out, [[[[np.nan, np.nan], [-np.inf, -np.inf]]]])
    dx = call("MaxPool2dWithMaskBackward", gradOutput=tensor([[[[1.0, 2], [3, 4]]]]), self=tensor(x), indices=mask,
              gradInput=empty(x.shape), **settings)
    np.testing.assert_array_equal(dx[0, 0], [[1, 0, 0, 0], [0, 0, 2, 0], [3, 0, 4, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_special_values_of_planes_side_by_side(kind):
    x = drawn((2, 9, 6, 5), 1)
    x[np.random.default_rng(2).random(x.shape) < 0.1] = np.nan
    x[:, ::2, :3] = -np.inf
    expected, indices = maxima(x, regular((6, 5), [3], [2], [1], False))
    for place, window in every_window(regular((6, 5), [3], [2], [1], False)):
        for row, column in places(window, (6, 5)):
            indices[(..., *place)] = np.where(np.isnan(x[..., row, column]), row * 5 + column, indices[(..., *place)])
    out, found = call("MaxPool2dWithIndices", self=tensor(x, kind), out=empty(expected.shape, kind), kernelSize=[3],
                      indices=empty(expected.shape, "I32"), stride=[2], padding=[1], dilation=[1], ceilMode=False)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(found, indices)


@pytest.mark.parametrize("shape, index", [((2, 130, 33, 32), "I32"), ((2, 130, 33, 32), "I64"),
                                          ((1, 70, 91, 91), "I32")])
def test_many_planes(shape, index):
    """In several pieces; of so many that large ones are side by side, too, and places are scattered into several."""
    x = drawn(shape, 1)
    expected, indices = maxima(x, regular(shape[2:], [3], [2], [1], False))
    settings = dict(kernelSize=[3], stride=[2], padding=[1], dilation=[1], ceilMode=False)
    out, found = call("MaxPool2dWithIndices", self=tensor(x), out=empty(expected.shape),
                      indices=empty(expected.shape, index), **settings)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(found, indices)
    dx = call("AdaptiveMaxPool2dBackward", gradOutput=tensor(expected), self=tensor(x), gradInput=empty(shape),
              indices=tensor(indices, "I64"))
    np.testing.assert_array_equal(dx, scattered(expected, indices, shape, 2))
    expected, gradient = means(x, regular(shape[2:], [3], [2], [1], False))
    dx = call("AvgPool2dBackward", gradOutput=tensor(expected), self=tensor(x), kernelSize=[3], stride=[2], padding=[1],
              ceilMode=False, countIncludePad=True, divisorOverride=0, cubeMathType=0, gradInput=empty(shape))
    close(dx, gradient(expected), "F32", 20)


def test_many_elements():
    """Planes cut in pieces, on several threads."""
    x = np.random.default_rng(1).standard_normal((1, 2, 300, 260)).astype(np.float32).astype(np.float64)
    expected, indices = maxima(x, regular((300, 260), [3], [2], [1], False))
    mask = empty((1, 2, 9, (-(-expected[0, 0].size // 16) + 1) * 32), "I8")
    settings = dict(kernelSize=[3], stride=[2], padding=[1], dilation=[1], ceilMode=False)
    out, _ = call("MaxPool2dWithMask", self=tensor(x), out=empty(expected.shape), indices=mask, **settings)
    np.testing.assert_array_equal(out, expected)
    dx = call("MaxPool2dWithMaskBackward", gradOutput=tensor(np.ones(expected.shape)), self=tensor(x), indices=mask,
              gradInput=empty(x.shape), **settings)
    np.testing.assert_array_equal(dx, scattered(np.ones(expected.shape), indices, x.shape, 2))


@pytest.mark.parametrize("kind", ["F32", "F16"])
def test_maximum_in_place(kind):
    """Windows of neighbours, of a plane in pieces."""
    x = rounded(np.random.default_rng(1).standard_normal((1, 2, 300, 260)), kind)
    expected, indices = maxima(x, regular((300, 260), [3], [1], [1], False))
    settings = dict(kernelSize=[3], stride=[1], padding=[1], dilation=[1], ceilMode=False)
    given = tensor(x, kind)
    out, found = call("MaxPool2dWithIndices", self=given, out=given, indices=empty(x.shape, "I32"), **settings)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(found, indices)
    slopes = tensor(x, kind)
    dx = call("AdaptiveMaxPool2dBackward", gradOutput=slopes, self=tensor(x, kind), indices=tensor(indices, "I64"),
              gradInput=slopes)  # fmt: skip
    np.testing.assert_allclose(dx, scattered(x, indices, x.shape, 2), rtol=2.0**-11, atol=2.0**-20)


NO_CHANNELS = {"kernelSize": [2], "stride": [2], "padding": [0], "ceilMode": False}
AVERAGE = {"countIncludePad": True, "divisorOverride": 0}
NOTHING = {  # tensors without channels: sizes of x and y, and what else the operator takes
    "AvgPool2d": {"self": 4, "out": 2, **AVERAGE, "cubeMathType": 0},
    "AvgPool2dBackward": {"gradOutput": 2, "self": 4, "gradInput": 4, **AVERAGE, "cubeMathType": 0},
    "AvgPool3d": {"self": 4, "out": 2, **AVERAGE},
    "AvgPool3dBackward": {"gradOutput": 2, "self": 4, "output": 4, **AVERAGE},
    "MaxPool": {"self": 4, "out": 2, "kernelShape": [2], "strides": [2], "autoPad": 0, "pads": [0], "dilations": [1]},
    "MaxPool2dWithIndicesBackward": {"gradOutput": 2, "self": 4, "indices": 2, "gradInput": 4, "dilation": [1]},
    "MaxPool3dWithArgmaxBackward": {"gradOutput": 2, "self": 4, "indices": 2, "gradInput": 4, "dilation": [1]},
    "AdaptiveAvgPool2dBackward": {"gradOutput": 2, "self": 4, "out": 4},
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
def test_images_of_nothing(name):
    """They are taken where no check of the page is about them."""
    axes = 3 if "3d" in name else 2
    names = [parameter["name"] for parameter in pages.operators()[name]["parameters"]]
    arguments = {key: value for key, value in NO_CHANNELS.items() if key in names} | NOTHING[name]
    if name == "AvgPool2d":
        arguments |= {"strides": [2], "paddings": [0]}
    for key, size in NOTHING[name].items():
        if key in ("self", "out", "output", "gradOutput", "gradInput", "indices"):
            arguments[key] = empty((2, 0) + (size,) * axes, "I32" if key == "indices" else "F32")
    assert call(name, **arguments).size == 0


@pytest.mark.parametrize("count", [True, False])
def test_windows_of_padding_alone(count):
    """An image without rows between two rows of padding."""
    settings = dict(kernelSize=[2, 1], strides=[1], paddings=[1, 0], ceilMode=False, countIncludePad=count)
    out = call("AvgPool2d", self=empty((2, 3, 0, 4)), divisorOverride=0, cubeMathType=0, out=empty((2, 3, 1, 4)), **settings)
    np.testing.assert_array_equal(out, np.zeros((2, 3, 1, 4)))
    for channels in (3, 9):
        out = call("MaxPool", self=empty((2, channels, 0, 4)), kernelShape=[2, 1], strides=[], autoPad=0, pads=[1, 0],
                   dilations=[], ceilMode=0, out=empty((2, channels, 1, 4)))
        np.testing.assert_array_equal(out, np.full((2, channels, 1, 4), -np.inf))


def test_windows_of_more_elements_than_can_be_counted():
    """Of 2^32 x 2^32, padding among them, but for the last ones, which are cut off."""
    x, dy = drawn((1, 2, 4, 4), 1), drawn((1, 2, 3, 3), 2)
    settings = dict(kernelSize=[2**32], ceilMode=True, countIncludePad=True, divisorOverride=0, cubeMathType=0)
    sizes = np.array([2.0**32, 2.0**32, 2.0**32 - 2])
    counts = np.multiply.outer(sizes, sizes)
    out = call("AvgPool2d", self=tensor(x), strides=[3], paddings=[2**31], out=empty((1, 2, 3, 3)), **settings)
    np.testing.assert_allclose(out, x.sum((2, 3), keepdims=True) / counts, rtol=2.0**-23)
    dx = call("AvgPool2dBackward", gradOutput=tensor(dy), self=tensor(x), stride=[3], padding=[2**31],
              gradInput=empty(x.shape), **settings)  # fmt: skip
    np.testing.assert_allclose(dx, np.broadcast_to((dy / counts).sum((2, 3), keepdims=True), x.shape), rtol=2.0**-20)


@pytest.mark.parametrize("windows, rule", [(3, "aclnnAvgPool2d/out/shape"), (2, "")])
def test_more_elements_than_a_stride_can_cross(windows, rule):
    """The third window would begin at 2^63, behind the data."""
    line = support.expanded(support.F32, (1, 1, 1, 2**63 - 1))
    arrays = [pages.made({"kind": "IA", "name": name}, values) for name, values in
              (("kernelSize", [1, 1]), ("strides", [1, 2**62]), ("paddings", [0]))]  # fmt: skip
    status, found = refusal("AvgPool2d", line, *arrays, True, True, 0, 0, empty((1, 1, 1, windows)))
    assert (status, found if status else "") == (161002 if rule else 0, rule)


def test_rows_that_no_memory_holds():
    """2^60 elements of a row, 2^64 with those that loops handle too many; 2^60 rows, 3 * 2^64 with them."""
    arrays = lambda *values: [pages.made({"kind": "IA"}, list(one)) for one in values]
    line, out = support.expanded(support.F32, (1, 1, 1, 2**60)), empty((1, 1, 1, 2))
    assert "no host memory for scratch space" in fault("AvgPool2d", line, *arrays([1, 1], [1, 2**60 - 2**56], [0]), False,
                                                       True, 0, 0, out, status=207001)  # fmt: skip
    volume = support.expanded(support.F32, (1, 1, 2, 2**60, 1))
    assert "no host memory for scratch space" in fault("AvgPool3dBackward", volume, volume, *arrays([1], [1], [0]), False,
                                                       True, 0, volume, status=207001)  # fmt: skip


def test_windows_that_share_out_what_no_memory_holds():
    """2^63 - 1 elements twice, and two more."""
    line, two = support.expanded(support.F32, (1, 1, 1, 2**63 - 1)), empty((1, 1, 1, 2))
    said = fault("AdaptiveAvgPool2d", line, pages.made({"kind": "IA"}, [1, 2]), two, status=207001)
    assert "no host memory for scratch space" in said
    assert "no host memory for scratch space" in fault("AdaptiveAvgPool2dBackward", two, line, line, status=207001)


def test_adaptive_average_of_no_windows():
    dx = call("AdaptiveAvgPool2dBackward", gradOutput=empty((2, 3, 0, 2)), self=empty((2, 3, 4, 4)), out=empty((2, 3, 4, 4)))
    np.testing.assert_array_equal(dx, np.zeros((2, 3, 4, 4)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_adaptive_maximum_with_channels_last(layout):
    x = drawn((2, 6, 5, 3), 1)
    expected, indices = maxima(np.moveaxis(x, 3, 1), adaptive((6, 5), (2, 3)))
    out, found = call("AdaptiveMaxPool2d", self=tensor(x, "F32", layout, "NHWC"), outputSize=[2, 3],
                      outputOut=empty((2, 2, 3, 3), "F32", layout, "NHWC"),
                      indicesOut=empty((2, 2, 3, 3), "I64", layout, "NHWC"))
    np.testing.assert_array_equal(out, np.moveaxis(expected, 1, 3))
    np.testing.assert_array_equal(found, np.moveaxis(indices, 1, 3))


@pytest.mark.parametrize("kernel, size", [([5, 2], [-1, 1]), ([5, 5], [-1, -1]), ([4, 2], [0, 1])])
def test_windows_that_do_not_fit(kernel, size):
    """A result of the sizes that the formula gives then, which are not above 0, is none; nor is any other."""
    arrays = [pages.made({"kind": "IA", "name": name}, values) for name, values in
              (("kernelSize", kernel), ("strides", [2]), ("paddings", [0]))]  # fmt: skip
    for sizes, rule in (size, "sizes" if min(size) < 0 else "shape"), ([1, 1], "shape"):
        out = Tensor(pages.KINDS["F32"], np.zeros(4), shape=[1, 1, *sizes], strides=[1, 1, 1, 1], storage=[4])
        assert refusal("AvgPool2d", tensor(np.zeros((1, 1, 2, 2))), *arrays, False, True, 0, 0, out) == (
            161002, f"aclnnAvgPool2d/out/{rule}")  # fmt: skip


def test_a_stride_beyond_all_sizes():
    """Of one window along an axis, the stride may be any number."""
    x = drawn((2, 3, 96, 5), 1)
    found = call("AvgPool2d", self=tensor(x), kernelSize=[3, 2], strides=[2**63 - 2], paddings=[1, 0], ceilMode=False,
                 countIncludePad=False, divisorOverride=0, cubeMathType=0, out=empty((2, 3, 1, 1)))  # fmt: skip
    np.testing.assert_array_equal(found[..., 0, 0], x[:, :, :2, :2].mean((2, 3)))
