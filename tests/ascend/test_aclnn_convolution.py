"""Convolutions and their gradients against loops over the taps in float64."""

import itertools
import math

import numpy as np
import pytest

from tests.ascend.blocks import convolution_blocked
from tests.ascend.calling import LAYOUTS, OF_IMAGES, call, empty, refusal, rounded, tensor
from tests.conformance.ascend import pages

KINDS = ["F32", "F16", "BF16"]


def drawn(shape, seed):
    return np.random.default_rng(seed).integers(-4, 5, shape) / 4


def taps_of(weight):
    return itertools.product(*map(range, weight.shape[2:]))


def convolved(x, w, stride, sides, dilation, groups):
    """The formula: for each tap the sum over the channels of its group."""
    x = np.pad(x, [(0, 0), (0, 0), *sides])
    axes = range(x.ndim - 2)
    sizes = [(x.shape[2 + a] - dilation[a] * (w.shape[2 + a] - 1) - 1) // stride[a] + 1 for a in axes]
    y = np.zeros((x.shape[0], w.shape[0], *sizes))
    for group in range(groups):
        ins, outs = (slice(group * n // groups, (group + 1) * n // groups) for n in (x.shape[1], w.shape[0]))
        for tap in taps_of(w):
            places = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilation, sizes, stride))
            y[:, outs] += np.einsum("nc...,kc->nk...", x[(slice(None), ins, *places)], w[(outs, slice(None), *tap)])
    return y


def gradients(dy, x, w, stride, sides, dilation, groups):
    """Of the sum of dy * y by x and w: y is linear in both, so each tap gives its share."""
    padded = np.zeros([n + sum(s) for n, s in zip(x.shape, [(0, 0), (0, 0), *sides])])
    inner = (slice(None), slice(None), *(slice(b, b + n) for (b, _), n in zip(sides, x.shape[2:])))
    full, dw = padded.copy(), np.zeros(w.shape)
    full[inner] = x
    for group in range(groups):
        ins, outs = (slice(group * n // groups, (group + 1) * n // groups) for n in (x.shape[1], w.shape[0]))
        for tap in taps_of(w):
            places = tuple(slice(t * d, t * d + (n - 1) * s + 1, s)
                           for t, d, n, s in zip(tap, dilation, dy.shape[2:], stride))
            at = (slice(None), ins, *places)
            padded[at] += np.einsum("nk...,kc->nc...", dy[:, outs], w[(outs, slice(None), *tap)])
            flat = [part.reshape(*part.shape[:2], math.prod(dy.shape[2:])) for part in (dy[:, outs], full[at])]
            dw[(outs, slice(None), *tap)] += np.einsum("nkp,ncp->kc", *flat)
    return padded[inner], dw


CASES = [  # x, w, stride, padding, dilation, groups, output padding (of the transposed one)
    ((2, 3, 11), (4, 3, 3), [2], [1], [2], 1, [1]),
    ((1, 2, 9), (2, 2, 4), [1], [1, 2], [1], 1, [0]),
    ((2, 4, 9, 7), (6, 4, 3, 2), [1, 1], [1, 0], [1, 1], 1, [0, 0]),
    ((2, 4, 9, 8), (6, 2, 3, 3), [2, 3], [1, 2], [2, 1], 2, [1, 0]),
    ((1, 6, 8, 8), (6, 1, 3, 3), [1, 1], [1, 1], [1, 1], 6, [0, 0]),
    ((1, 2, 5, 6), (3, 2, 2, 3), [1, 2], [1, 0, 2, 1], [1, 1], 1, [0, 1]),
    ((2, 2, 5, 6, 4), (4, 1, 2, 3, 2), [2, 1, 1], [1, 1, 0], [1, 2, 1], 2, [1, 0, 0]),
]  # fmt: skip


def sides_of(padding, axes):
    return list(zip(padding[::2], padding[1::2])) if len(padding) == 2 * axes else [(p, p) for p in padding]


def close(actual, expected, kind):
    """Products of quarters are exact, and float32 sums of few of them: only the last rounding remains."""
    np.testing.assert_array_equal(actual, rounded(expected, kind))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward(case):
    x_shape, w_shape, stride, padding, dilation, groups, _ = case
    sides = sides_of(padding, len(stride))
    x, w, b = drawn(x_shape, 1), drawn(w_shape, 2), drawn(w_shape[:1], 3)
    plain = convolved(x, w, stride, sides, dilation, groups)
    for number, (kind, layout) in enumerate(itertools.product(KINDS, LAYOUTS)):
        biased = number % 2 == 0
        out = call("Convolution", input=tensor(x, kind, layout), weight=tensor(w, kind, layout),
                   bias=tensor(b, kind) if biased else None, stride=stride, padding=padding, dilation=dilation,
                   transposed=False, outputPadding=[0] * len(stride), groups=groups,
                   output=empty(plain.shape, kind, LAYOUTS[-number % 3]), cubeMathType=3)
        close(out, plain + (b.reshape(-1, *[1] * len(stride)) if biased else 0), kind)


@pytest.mark.parametrize("layouts", OF_IMAGES, ids=str)
@pytest.mark.parametrize("case", [
    ((2, 20, 23, 17), (33, 20, 3, 3), [1, 1], [1, 1], [1, 1], 1), ((3, 20, 23, 17), (20, 20, 1, 1), [1, 1], [0, 0], [1, 1], 1),
    ((2, 20, 23, 17), (20, 1, 3, 3), [2, 1], [1, 1], [1, 1], 20), ((2, 20, 23, 17), (24, 5, 3, 2), [2, 2], [1, 0], [1, 2], 4),
    ((2, 17, 29, 31), (2, 17, 3, 3), [1, 1], [1, 1], [1, 1], 1), ((2, 2, 29, 31), (19, 2, 3, 3), [1, 1], [1, 1], [1, 1], 1)],
    ids=str)  # fmt: skip
def test_channels_side_by_side(case, layouts):
    """In one of the tensors, or in both."""
    x_shape, w_shape, stride, padding, dilation, groups = case
    sides = sides_of(padding, 2)
    x, w = drawn(x_shape, 1), drawn(w_shape, 2)
    y = convolved(x, w, stride, sides, dilation, groups)
    dy = drawn(y.shape, 3)
    dx, dw = gradients(dy, x, w, stride, sides, dilation, groups)
    settings = {"stride": stride, "padding": padding, "dilation": dilation, "outputPadding": [0, 0], "groups": groups,
                "cubeMathType": 0}  # fmt: skip
    for kind in KINDS:
        weight = tensor(w, kind)
        out = call("Convolution", input=tensor(x, kind, layouts[0]), weight=weight, bias=None, transposed=False,
                   output=empty(y.shape, kind, layouts[1]), **settings)
        close(out, y, kind)
        results = call("ConvolutionBackward", gradOutput=tensor(dy, kind, layouts[0]), input=tensor(x, kind, layouts[1]),
                       weight=weight, biasSizes=[len(w)], transposed=False, outputMask=[True, True, False],
                       gradInput=empty(dx.shape, kind, layouts[1]), gradWeight=empty(dw.shape, kind), gradBias=None,
                       **settings)
        for actual, expected in zip(results, (dx, dw)):
            close(actual, expected, kind)


QUANTIZED = [  # x, w, stride, padding, dilation
    ((2, 3, 4, 5, 6), (5, 3, 2, 3, 2), [1, 2, 1], [1, 0, 1], [2, 1, 1]),
    ((1, 16, 3, 9, 9), (8, 16, 3, 3, 3), [1, 1, 1], [1, 1, 1], [1, 1, 1]),
    ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1), [3, 1, 1], [0, 0, 0], [1, 1, 1]),
    ((2, 70, 2, 3, 40), (33, 70, 1, 1, 1), [1, 1, 2], [0, 0, 0], [1, 1, 1]),
]


@pytest.mark.parametrize("case", QUANTIZED, ids=str)
def test_integers_that_stand_for_real_numbers(case):
    """The sums are exact, and float64 is far finer than the last rounding."""
    x_shape, w_shape, stride, padding, dilation = case
    random = np.random.default_rng(w_shape)
    x, w = random.integers(-128, 128, x_shape), random.integers(-128, 128, w_shape)
    scale = random.uniform(-0.001, 0.001, w_shape[0]).astype(np.float32)
    plain = convolved(x, w, stride, sides_of(padding, 3), dilation, 1) * scale.reshape(-1, 1, 1, 1).astype(float)
    for number, (kind, layout) in enumerate(itertools.product(["F16", "BF16"], LAYOUTS)):
        of_bias = ["F32", "F16", "BF16", None][number % 4]
        bias = None if of_bias is None else rounded(random.normal(0, 1, w_shape[0]), of_bias)
        for name, weight in (("", tensor(w, "I8", LAYOUTS[-number % 3])), ("WeightNz", convolution_blocked(w))):
            out = call(f"QuantConvolution{name}", input=tensor(x, "I8", layout), weight=weight,
                       bias=None if bias is None else tensor(bias, of_bias, "gaps"), scale=tensor(scale, "F32", "gaps"),
                       offset=None, stride=stride, padding=padding, dilation=dilation, transposed=False, outputPadding=None,
                       groups=1, offsetx=0, roundMode=None, output=empty(plain.shape, kind, layout))  # fmt: skip
            close(out, plain + (0 if bias is None else bias.reshape(-1, 1, 1, 1)), kind)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_transposed(case):
    """The gradient by x of the convolution whose y is the input."""
    x_shape, w_shape, stride, padding, dilation, groups, extra = case
    axes = len(stride)
    if axes == 1 and len(padding) == 2:
        padding = padding[:1]
    sides = sides_of(padding, axes)
    w = drawn(w_shape, 2)
    sizes = [(n - 1) * s - sum(p) + d * (t - 1) + e + 1
             for n, s, p, d, t, e in zip(x_shape[2:], stride, sides, dilation, w_shape[2:], extra)]
    x = drawn((x_shape[0], w_shape[0], *x_shape[2:]), 1)
    out_shape = (x_shape[0], w_shape[1] * groups, *sizes)
    b = drawn(out_shape[1:2], 3)
    expected, _ = gradients(x, np.zeros(out_shape), w, stride, sides, dilation, groups)
    expected += b.reshape(-1, *[1] * axes)
    for kind, layout in zip(KINDS, LAYOUTS):
        out = call("Convolution", input=tensor(x, kind, layout), weight=tensor(w, kind, layout), bias=tensor(b, kind),
                   stride=stride, padding=padding, dilation=dilation, transposed=True, outputPadding=extra,
                   groups=groups, output=empty(out_shape, kind, layout), cubeMathType=0)
        close(out, expected, kind)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_backward(case):
    x_shape, w_shape, stride, padding, dilation, groups, _ = case
    sides = sides_of(padding, len(stride))
    x, w = drawn(x_shape, 1), drawn(w_shape, 2)
    dy = drawn(convolved(x, w, stride, sides, dilation, groups).shape, 3)
    dx, dw = gradients(dy, x, w, stride, sides, dilation, groups)
    db = dy.sum((0, *range(2, dy.ndim)))
    masks = [[True, True, True], [True, False, False], [False, True, False], [False, False, True]]
    for number, (kind, mask) in enumerate(itertools.product(KINDS, masks)):
        layout = LAYOUTS[number % 3]
        outs = [empty(v.shape, kind, LAYOUTS[-number % 3]) if wanted else None for v, wanted in zip((dx, dw, db), mask)]
        results = call("ConvolutionBackward", gradOutput=tensor(dy, kind, layout), input=tensor(x, kind, layout),
                       weight=tensor(w, kind, layout), biasSizes=[len(db)], stride=stride, padding=padding,
                       dilation=dilation, transposed=False, outputPadding=[0] * len(stride), groups=groups,
                       outputMask=mask, cubeMathType=3, gradInput=outs[0], gradWeight=outs[1], gradBias=outs[2])
        results = results if sum(mask) > 1 else (results,)
        for actual, expected in zip(results, itertools.compress((dx, dw, db), mask)):
            close(actual, expected, kind)


def test_strides_beyond_all_sizes():
    """Of one place along an axis, the stride may be any number."""
    x, w, dy = drawn((2, 4, 16, 6), 1), drawn((6, 4, 3, 2), 2), drawn((2, 6, 1, 6), 3)
    expected = gradients(dy, x, w, [99, 1], [(0, 0), (1, 0)], [1, 1], 1)
    found = call("ConvolutionBackward", gradOutput=tensor(dy), input=tensor(x), weight=tensor(w), biasSizes=[6],
                 stride=[2**62, 1], padding=[0, 0, 1, 0], dilation=[1, 1], transposed=False, outputPadding=[0, 0], groups=1,
                 outputMask=[True, True, False], cubeMathType=3, gradInput=empty(x.shape), gradWeight=empty(w.shape),
                 gradBias=None)  # fmt: skip
    for actual, one in zip(found, expected):
        close(actual, one, "F32")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_backward_of_transposed(case):
    """x of the transposed one is y of the plain one: its gradient is a convolution, the weight's has both exchanged."""
    x_shape, w_shape, stride, padding, dilation, groups, extra = case
    axes = len(stride)
    if axes == 1 and len(padding) == 2:
        padding = padding[:1]
    sides = sides_of(padding, axes)
    w = drawn(w_shape, 2)
    x = drawn((x_shape[0], w_shape[0], *x_shape[2:]), 1)
    sizes = [(n - 1) * s - sum(p) + d * (t - 1) + e + 1
             for n, s, p, d, t, e in zip(x_shape[2:], stride, sides, dilation, w_shape[2:], extra)]
    dy = drawn((x_shape[0], w_shape[1] * groups, *sizes), 3)
    dx = convolved(dy, w, stride, sides, dilation, groups)[(slice(None), slice(None), *map(slice, x.shape[2:]))]
    _, dw = gradients(x, dy, w, stride, sides, dilation, groups)
    db = dy.sum((0, *range(2, dy.ndim)))
    for kind, layout in zip(KINDS, LAYOUTS):
        results = call("ConvolutionBackward", gradOutput=tensor(dy, kind, layout), input=tensor(x, kind, layout),
                       weight=tensor(w, kind, layout), biasSizes=[len(db)], stride=stride, padding=padding,
                       dilation=dilation, transposed=True, outputPadding=extra, groups=groups,
                       outputMask=[True] * 3, cubeMathType=3, gradInput=empty(dx.shape, kind, layout),
                       gradWeight=empty(dw.shape, kind, layout), gradBias=empty(db.shape, kind, layout))
        for actual, expected in zip(results, (dx, dw, db)):
            close(actual, expected, kind)


@pytest.mark.parametrize("mask", [[True, True, False], [True, False, False], [False, True, False]], ids=str)
def test_gradients_that_are_not_asked_for_have_any_shape(mask):
    """As programs of frameworks call it: a tensor for each gradient, those that nobody wants shaped as comes handy."""
    x, w = drawn((2, 4, 7, 6), 1), drawn((6, 2, 3, 3), 2)
    dy = drawn((2, 6, 4, 3), 3)
    dx, dw = gradients(dy, x, w, (2, 2), [(1, 1), (1, 1)], (1, 1), 2)
    outs = [empty(shape) for shape in (x.shape, w.shape if mask[1] else x.shape, x.shape[:1])]
    before = [out.bytes() for out in outs]
    results = call("ConvolutionBackward", gradOutput=tensor(dy), input=tensor(x), weight=tensor(w), biasSizes=[6],
                   stride=[2, 2], padding=[1, 1], dilation=[1, 1], transposed=False, outputPadding=[0, 0], groups=2,
                   outputMask=mask, cubeMathType=0, gradInput=outs[0], gradWeight=outs[1], gradBias=outs[2])
    for wanted, actual, expected in zip(mask, results, (dx, dw)):
        if wanted:
            close(actual, expected, "F32")
    assert [out.bytes() == old for out, old in zip(outs, before)] == [not wanted for wanted in mask]


@pytest.mark.parametrize("bias", [(1,), (3,), (2, 3)])
def test_backward_without_a_bias(bias):
    """The tensor of a gradient that nobody asks for may have any shape and stays as it is; nothing pads the output."""
    x, w, dy = drawn((2, 2, 5, 4), 1), drawn((3, 2, 3, 3), 2), drawn((2, 3, 3, 2), 3)
    dx, dw = gradients(dy, x, w, [2, 2], [(1, 1)] * 2, [1, 1], 1)
    unwanted = empty(bias)
    before = unwanted.bytes()
    results = call("ConvolutionBackward", gradOutput=tensor(dy), input=tensor(x), weight=tensor(w), biasSizes=[1],
                   stride=[2, 2], padding=[1, 1], dilation=[1, 1], transposed=False, outputPadding=[1, 1], groups=1,
                   outputMask=[True, True, False], cubeMathType=0, gradInput=empty(dx.shape), gradWeight=empty(dw.shape),
                   gradBias=unwanted)
    close(results[0], dx, "F32")
    close(results[1], dw, "F32")
    assert unwanted.bytes() == before


@pytest.mark.parametrize("mask", [[True, True, False], [True, False, False], [False, True, False]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_of_a_bias_that_nobody_asks_for_may_be_null(kind, mask):
    """As frameworks call it for a batch of gradients."""
    x, w, dy = drawn((2, 2, 5, 4), 1), drawn((3, 2, 3, 3), 2), drawn((2, 3, 3, 2), 3)
    expected = gradients(dy, x, w, [2, 2], [(1, 1)] * 2, [1, 1], 1)
    outs = [empty(one.shape, kind) if wanted else None for one, wanted in zip(expected, mask)]
    found = call("ConvolutionBackward", gradOutput=tensor(dy, kind), input=tensor(x, kind), weight=tensor(w, kind),
                 biasSizes=None, stride=[2, 2], padding=[1, 1], dilation=[1, 1], transposed=False, outputPadding=[0, 0],
                 groups=1, outputMask=mask, cubeMathType=0, gradInput=outs[0], gradWeight=outs[1], gradBias=None)
    for actual, one in zip(found if sum(mask) > 1 else (found,), itertools.compress(expected, mask)):
        close(actual, one, kind)


def test_no_images():
    """Of an empty batch the output is empty, and the gradients of weight and bias are 0."""
    x, w = np.zeros((0, 2, 4, 4)), drawn((3, 2, 3, 3), 1)
    settings = dict(stride=[1, 1], padding=[1, 1], dilation=[1, 1], transposed=False, outputPadding=[0, 0], groups=1,
                    cubeMathType=0)
    call("Convolution", input=tensor(x), weight=tensor(w), bias=None, output=empty((0, 3, 4, 4)), **settings)
    _, dw, db = call("ConvolutionBackward", gradOutput=tensor(np.zeros((0, 3, 4, 4))), input=tensor(x), weight=tensor(w),
                     biasSizes=[3], outputMask=[True] * 3, gradInput=empty(x.shape), gradWeight=empty(w.shape),
                     gradBias=empty((3,)), **settings)
    assert not dw.any() and not db.any()


def test_no_groups_are_refused():
    x, w = tensor(np.zeros((1, 2, 4, 4))), tensor(np.zeros((3, 2, 3, 3)))
    ones, zeros = (pages.made({"kind": "IA"}, [value, value]) for value in (1, 0))
    given = x, w, None, ones, zeros, ones, False, zeros
    assert refusal("Convolution", *given, 0, empty((1, 3, 2, 2)), 0) == (161002, "aclnnConvolution/groups/range")
    assert refusal("Convolution", *given, 1, empty((1, 3, 2, 2)), 0)[0] == 0


def test_mixed_types():
    """Computed in the common type; the bias keeps its own."""
    x, w, b = drawn((1, 2, 5, 5), 1), drawn((3, 2, 2, 2), 2), drawn((3,), 3) + 2.0**-12
    plain = convolved(x, w, [1, 1], [(0, 0)] * 2, [1, 1], 1)
    out = call("Convolution", input=tensor(x, "F16"), weight=tensor(w, "F32"), bias=tensor(b, "F32"), stride=[1, 1],
               padding=[0, 0], dilation=[1, 1], transposed=False, outputPadding=[0, 0], groups=1,
               output=empty(plain.shape, "F32"), cubeMathType=3)
    np.testing.assert_array_equal(out, plain + b.reshape(3, 1, 1))


@pytest.mark.parametrize("x_shape, w_shape, stride, padding, dilation", [
    ((2, 3, 9, 7), (6, 1, 3, 2), [1, 2], [1, 0], [2, 1]),
    ((1, 5, 8, 8), (5, 1, 3, 3), [1, 1], [1, 1], [1, 1]),
    ((2, 1, 4, 4), (3, 1, 4, 4), [1, 1], [0, 0], [1, 1]),
    ((0, 2, 5, 5), (2, 1, 2, 2), [1, 1], [0, 0], [1, 1]),
])  # fmt: skip
def test_depthwise(x_shape, w_shape, stride, padding, dilation):
    x, w, b = drawn(x_shape, 1), drawn(w_shape, 2), drawn(w_shape[:1], 3)
    plain = convolved(x, w, stride, [(p, p) for p in padding], dilation, x_shape[1])
    for number, (kind, layout) in enumerate(itertools.product(KINDS, LAYOUTS)):
        biased = number % 2 == 0
        out = call("ConvDepthwise2d", self=tensor(x, kind, layout), weight=tensor(w, kind, layout), kernelSize=w_shape[2:],
                   bias=tensor(b, kind) if biased else None, stride=stride, padding=padding, dilation=dilation,
                   out=empty(plain.shape, kind, LAYOUTS[-number % 3]), cubeMathType=0)
        close(out, plain + (b.reshape(-1, 1, 1) if biased else 0), kind)


@pytest.mark.parametrize("x_shape, w_shape, pad",
                         [((7, 2, 3), (3, 3, 4), 1), ((5, 1, 2), (5, 2, 1), 0), ((1, 3, 1), (4, 1, 2), 3),
                          ((4, 0, 3), (2, 3, 5), 0)])  # fmt: skip
def test_time_batch_channels(x_shape, w_shape, pad):
    """As convolutions of the exchanged axes."""
    x, w, b = drawn(x_shape, 1), drawn(w_shape, 2), drawn(w_shape[2:], 3)
    data, taps = x.transpose(1, 2, 0), w.transpose(2, 1, 0)
    plain = convolved(data, taps, [1], [(pad, pad)], [1], 1).transpose(2, 0, 1)
    dy = drawn(plain.shape, 4)
    dx, dw = gradients(dy.transpose(1, 2, 0), data, taps, [1], [(pad, pad)], [1], 1)
    for number, (kind, layout) in enumerate(itertools.product(KINDS, LAYOUTS)):
        given = {"weight": tensor(w, kind, layout), "bias": tensor(b, kind), "pad": pad, "cubeMathType": 1}
        other = LAYOUTS[-number % 3]
        close(call("ConvTbc", self=tensor(x, kind, layout), output=empty(plain.shape, kind, other), **given), plain + b,
              kind)  # fmt: skip
        results = call("ConvTbcBackward", self=tensor(dy, kind, other), input=tensor(x, kind, layout), **given,
                       gradInput=empty(x_shape, kind, other), gradWeight=empty(w_shape, kind, layout),
                       gradBias=empty(b.shape, kind))
        for actual, expected in zip(results, (dx.transpose(2, 0, 1), dw.transpose(2, 1, 0), dy.sum((0, 1)))):
            close(actual, expected, kind)
