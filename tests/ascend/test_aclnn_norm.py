"""Normalizations and their gradients: types, layouts and shapes, against the formulas in float64."""

import itertools
import math

import numpy as np
import pytest
from understudy.ascend import ops

from tests.ascend.calling import LAYOUTS, OF_IMAGES, call, empty, empty_packed, fault, refusal, rounded, steps_apart, tensor, unpacked
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend.aclnn_support import ffi, lib

KINDS = ["F32", "F16", "BF16"]
# Half a unit of the type, for one rounding of the result, and what float32 loses before it.
ROUNDING = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}


def drawn(shape, seed, kind="F32", centre=0.0, spread=1.0):
    return rounded(np.random.default_rng(seed).normal(centre, spread, shape), kind)


def near(actual, expected, kind, terms=8.0, parts=()):
    """Within one rounding of the type and `terms` roundings of float32, of the size of the largest value or of the largest
    part that may cancel."""
    scale = max(1.0, np.abs(expected).max(initial=0), np.abs(parts).max(initial=0))
    np.testing.assert_allclose(actual, expected, rtol=1.01 * ROUNDING[kind], atol=terms * 2.0**-24 * scale + 2.0**-25)


def unit(x, axes, epsilon):
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axes, keepdims=True) + epsilon)
    return (x - mean) * rstd, mean, rstd


def unit_gradient(g, u, rstd, axes, centred=True):
    """Of what unit() makes."""
    mean = g.mean(axes, keepdims=True) if centred else 0
    return (g - mean - u * (g * u).mean(axes, keepdims=True)) * rstd


@pytest.mark.parametrize("kind", ["F32", "F16"])
@pytest.mark.parametrize("layout", ["row-major", "gaps"])
def test_statistics_of_lines_without_elements(kind, layout):
    """Those of PyTorch: a mean of 0, a reciprocal deviation of NaN."""
    x, line, nothing = tensor(np.zeros((2, 3, 0)), kind), tensor(np.zeros(0), kind), empty((2, 3, 0), kind)
    lines = lambda of=kind: empty((2, 3, 1), of, layout)
    found = [
        call("LayerNorm", input=x, normalizedShape=[0], weightOptional=None, biasOptional=line, eps=1e-5, out=nothing,
             meanOutOptional=lines(), rstdOutOptional=lines())[1:],
        call("DeepNorm", x=x, gx=x, beta=line, gamma=line, alpha=0.3, epsilon=1e-6, meanOut=lines("F32"),
             rstdOut=lines("F32"), yOut=nothing)[:2],
        call("GroupNorm", self=x, gamma=tensor(np.ones(3), kind), beta=tensor(np.ones(3), kind), N=2, C=3, HxW=0, group=3,
             eps=1e-5, out=nothing, meanOut=empty((2, 3), kind, layout), rstdOut=empty((2, 3), kind, layout))[1:],
    ]  # fmt: skip
    for means, rstds in found:
        np.testing.assert_array_equal(means.ravel(), np.zeros(6))
        np.testing.assert_array_equal(rstds.ravel(), np.full(6, np.nan))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape, dims", [((3, 5, 7), 1), ((2, 3, 4), 2), ((4, 1500), 1), ((6,), 1), ((300, 8), 1),
                                         ((50, 3), 1), ((70, 33), 1), ((5, 9, 100), 1)], ids=str)  # fmt: skip
def test_layer_norm(kind, shape, dims):
    axes = tuple(range(-dims, 0))
    normal = list(shape[-dims:])
    x, dy = drawn(shape, 1, kind, 2), drawn(shape, 2, kind)
    weight, bias = drawn(normal, 3, kind, 1), drawn(normal, 4, kind)
    u, mean, rstd = unit(x, axes, 1e-5)
    for layout, other in zip(LAYOUTS[:1] + LAYOUTS, LAYOUTS + LAYOUTS[:1]):
        out, means, rstds = call(
            "LayerNorm", input=tensor(x, kind, layout), normalizedShape=normal, weightOptional=tensor(weight, kind, other),
            biasOptional=tensor(bias, kind), eps=1e-5, out=empty(shape, kind, other),
            meanOutOptional=empty(mean.shape, layout=other), rstdOutOptional=empty(mean.shape))  # fmt: skip
        near(out, u * weight + bias, kind)
        near(means, mean, "F32")
        near(rstds, rstd, "F32")
        dx, dweight, dbias = call(
            "LayerNormBackward", gradOut=tensor(dy, kind, other), input=tensor(x, kind, layout), normalizedShape=normal,
            mean=tensor(mean), rstd=tensor(rstd), weightOptional=tensor(weight, kind), biasOptional=tensor(bias, kind),
            outputMask=[True] * 3, gradInputOut=empty(shape, kind, layout), gradWeightOut=empty(normal, "F32", other),
            gradBiasOut=empty(normal, "F32"))  # fmt: skip
        near(dx, unit_gradient(dy * weight, u, rstd, axes), kind, 16, parts=dy * weight * rstd)
        rest = tuple(range(len(shape) - dims))
        near(dweight, (dy * u).sum(rest), "F32", 16)
        near(dbias, dy.sum(rest), "F32")


@pytest.mark.parametrize("lines", [4, 40])
def test_layer_norm_without_parameters_and_of_large_means(lines):
    x = drawn((lines, 33), 1, centre=1e4)
    out = call("LayerNorm", input=tensor(x), normalizedShape=[33], weightOptional=None, biasOptional=None, eps=0.0,
               out=empty(x.shape), meanOutOptional=None, rstdOutOptional=None)  # fmt: skip
    near(out, unit(x, -1, 0)[0], "F32")
    for mode in range(3):
        half = call("LayerNormWithImplMode", input=tensor(x / 1e4, "F16"), normalizedShape=[33], weightOptional=None,
                    eps=1e-5, biasOptional=None, out=empty(x.shape, "F16"), meanOutOptional=None, rstdOutOptional=None,
                    implMode=mode)  # fmt: skip
        near(half, unit(rounded(x / 1e4, "F16"), -1, 1e-5)[0], "F16")
    np.testing.assert_array_equal(out, call("FastLayerNorm", input=tensor(x), normalizedShape=[33], weightOptional=None,
        biasOptional=None, eps=0.0, out=empty(x.shape), meanOutOptional=None, rstdOutOptional=None))  # fmt: skip


def test_what_is_not_asked_for_is_not_written():
    x, pattern = drawn((4, 6), 1), empty((6,)).values()
    dx, dweight, dbias = call(
        "LayerNormBackward", gradOut=tensor(x), input=tensor(x), normalizedShape=[6], mean=tensor(np.zeros((4, 1))),
        rstd=tensor(np.ones((4, 1))), weightOptional=None, biasOptional=None, outputMask=[False, True, False],
        gradInputOut=empty((4, 6)), gradWeightOut=empty((6,)), gradBiasOut=empty((6,)))  # fmt: skip
    near(dweight, (x * x).sum(0), "F32")
    np.testing.assert_array_equal(dbias, pattern)
    np.testing.assert_array_equal(dx, empty((4, 6)).values())


def test_no_lines_at_all():
    none = np.zeros((0, 3))
    _, dweight, dbias = call(
        "LayerNormBackward", gradOut=tensor(none), input=tensor(none), normalizedShape=[3], mean=tensor(np.zeros((0, 1))),
        rstd=tensor(np.zeros((0, 1))), weightOptional=None, biasOptional=None, outputMask=[True] * 3,
        gradInputOut=empty((0, 3)), gradWeightOut=empty((3,)), gradBiasOut=empty((3,)))  # fmt: skip
    np.testing.assert_array_equal([dweight, dbias], np.zeros((2, 3)))


def test_lines_without_elements():
    """Their gradients are empty."""
    lines, line, numbers = tensor(np.zeros((2, 3, 0))), tensor(np.zeros(0)), tensor(np.ones((2, 3, 1)))
    call("RmsNormGrad", dy=lines, x=lines, rstd=tensor(np.ones((2, 3))), gamma=line, dxOut=empty((2, 3, 0)),
         dgammaOut=empty((0,)))  # fmt: skip
    call("DeepNormGrad", dy=lines, x=lines, gx=lines, gamma=line, mean=numbers, rstd=numbers, alpha=0.3,
         dxOut=empty((2, 3, 0)), dgxOut=empty((2, 3, 0)), dbetaOut=empty((0,)), dgammaOut=empty((0,)))  # fmt: skip
    none = tensor(np.zeros((2, 0, 3)))
    call("GroupNormSwishGrad", dy=none, mean=tensor(np.ones((2, 2))), rstd=tensor(np.ones((2, 2))), x=none, gamma=line,
         beta=line, numGroups=2, dataFormatOptional="NCHW", swishScale=1.0, dgammaIsRequire=True, dbetaIsRequire=True,
         dxOut=empty((2, 0, 3)), dgammaOut=empty((0,)), dbetaOut=empty((0,)))  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape, groups", [((2, 6, 5), 3), ((3, 4), 2), ((1, 4, 3, 700), 4), ((2, 3, 2, 2, 2), 1),
                                           ((3, 12, 7, 7), 4), ((2, 40, 4, 4), 5), ((2, 4, 16, 16), 2)], ids=str)
def test_group_norm(kind, shape, groups):
    n, c, space = shape[0], shape[1], int(np.prod(shape[2:]))
    x, dy = drawn(shape, 1, kind, 2), drawn(shape, 2, kind)
    gamma, beta = drawn(c, 3, kind, 1), drawn(c, 4, kind)
    u, mean, rstd = unit(x.reshape(n, groups, -1), -1, 1e-5)
    mean, rstd = rounded(mean, kind), rounded(rstd, kind)
    per_channel = (1, c) + (1,) * (len(shape) - 2)
    sizes = {"N": n, "C": c, "HxW": space, "group": groups}
    for layout in LAYOUTS:
        out, means, rstds = call(
            "GroupNorm", self=tensor(x, kind, layout), gamma=tensor(gamma, kind, layout), beta=tensor(beta, kind), eps=1e-5,
            out=empty(shape, kind, layout), meanOut=empty((n, groups), kind), rstdOut=empty((n, groups), kind), **sizes)  # fmt: skip
        near(out, u.reshape(shape) * gamma.reshape(per_channel) + beta.reshape(per_channel), kind)
        near(means, mean[..., 0], kind)
        near(rstds, rstd[..., 0], kind)
        dx, dgamma, dbeta = call(
            "GroupNormBackward", gradOut=tensor(dy, kind, layout), input=tensor(x, kind), mean=tensor(mean[..., 0], kind),
            rstd=tensor(rstd[..., 0], kind), gamma=tensor(gamma, kind), outputMask=[True] * 3,
            gradInput=empty(shape, kind, layout), gradGammaOut=empty((c,), kind), gradBetaOut=empty((c,), kind), **sizes)  # fmt: skip
        given = (x.reshape(n, groups, -1) - mean) * rstd
        g = (dy * gamma.reshape(per_channel)).reshape(given.shape)
        near(dx, unit_gradient(g, given, rstd, -1).reshape(shape), kind, 16, parts=g * rstd)
        rest = (0, *range(2, len(shape)))
        near(dgamma, (dy * given.reshape(shape)).sum(rest), kind, 64)
        near(dbeta, dy.sum(rest), kind, 16)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape, dims", [((3, 5, 7), 1), ((2, 3, 4), 2), ((4, 1500), 1), ((300, 8), 1), ((70, 3, 11), 2)],
                         ids=str)  # fmt: skip
def test_rms_norm(kind, shape, dims):
    axes, normal = tuple(range(-dims, 0)), shape[-dims:]
    x, dy, gamma = drawn(shape, 1, kind, 1), drawn(shape, 2, kind), drawn(normal, 3, kind, 1)
    rstd = 1 / np.sqrt((x * x).mean(axes, keepdims=True) + 1e-6)
    for layout, of_gamma in zip(LAYOUTS, [kind, "F32", kind]):
        y, rstds = call("RmsNorm", x=tensor(x, kind, layout), gamma=tensor(gamma, of_gamma, layout), epsilon=1e-6,
                        yOut=empty(shape, kind, layout), rstdOut=empty(rstd.shape))  # fmt: skip
        near(y, x * rstd * gamma, kind)
        near(rstds, rstd, "F32")
        y, own = call("GemmaRmsNorm", x=tensor(x, kind, layout), gamma=tensor(gamma, kind, layout), epsilon=1e-6,
                      yOut=empty(shape, kind, layout), rstdOut=empty(rstd.shape))  # fmt: skip
        near(y, x * rstd * (1 + gamma), kind)
        np.testing.assert_array_equal(own, rstds)
        dx, dgamma = call("RmsNormGrad", dy=tensor(dy, kind, layout), x=tensor(x, kind),
                          rstd=tensor(rstd.reshape(shape[:-dims])), gamma=tensor(gamma, of_gamma),
                          dxOut=empty(shape, kind, layout), dgammaOut=empty(normal))  # fmt: skip
        near(dx, unit_gradient(dy * gamma, x * rstd, rstd, axes, centred=False), kind, 16, parts=dy * gamma * rstd)
        near(dgamma, (dy * x * rstd).sum(tuple(range(len(shape) - dims))), "F32", 16)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("line", [4, 300])
def test_root_mean_square_of_what_is_infinite(line, layout):
    x = np.ones((600, line))
    x[5, 1] = np.inf
    y, rstd = call("RmsNorm", x=tensor(x, "F32", layout), gamma=tensor(np.ones(line)), epsilon=0.0, yOut=empty(x.shape),
                   rstdOut=empty((600, 1)))  # fmt: skip
    expected = x.copy()
    expected[5] = np.where(np.isinf(x[5]), np.nan, 0)  # divided by infinity
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(rstd.ravel(), np.arange(600) != 5)


def test_gemma_rms_norm_of_no_elements():
    y, rstd = call("GemmaRmsNorm", x=empty((2, 0)), gamma=empty((0,)), epsilon=1e-6, yOut=empty((2, 0)),
                   rstdOut=empty((2, 1)))  # fmt: skip
    assert y.shape == (2, 0)
    np.testing.assert_array_equal(rstd, [[np.nan]] * 2)


def vectors(channels, seed, kind):
    return [drawn(channels, seed + i, kind, 1, 0.2) for i in range(4)]


@pytest.mark.parametrize("kind, of_parameters", [("F32", "F32"), ("F16", "F32"), ("BF16", "BF16")])
@pytest.mark.parametrize("shape", [(8, 3), (4, 3, 5, 5), (2, 40, 3), (3, 35, 7, 7), (2, 2, 2, 1, 2, 2, 1, 3)], ids=str)
def test_batch_norm(kind, of_parameters, shape):
    c, rest = shape[1], (0, *range(2, len(shape)))
    along = (1, c) + (1,) * (len(shape) - 2)
    x, dy = drawn(shape, 1, kind, 2), drawn(shape, 2, kind)
    weight, bias, mean0, var0 = vectors(c, 3, of_parameters)
    u, mean, rstd = unit(x, rest, 1e-5)
    count = x.size // c
    w, b = weight.reshape(along), bias.reshape(along)
    for layout, training in itertools.product(LAYOUTS, [True, False]):
        running_mean, running_var, out, means, rstds = call(
            "BatchNorm", input=tensor(x, kind, layout), weight=tensor(weight, of_parameters, layout),
            bias=tensor(bias, of_parameters), runningMean=tensor(mean0, of_parameters),
            runningVar=tensor(var0, of_parameters, layout), training=training, momentum=0.25, eps=1e-5,
            output=empty(shape, kind, layout), saveMean=empty((c,)), saveInvstd=empty((c,)))  # fmt: skip
        if training:
            near(out, u * w + b, kind)
            near(running_mean, 0.75 * mean0 + 0.25 * mean.ravel(), of_parameters)
            near(running_var, 0.75 * var0 + 0.25 * x.var(rest) * count / (count - 1), of_parameters)
            near(means, mean.ravel(), "F32")
            near(rstds, rstd.ravel(), "F32")
        else:
            r = 1 / np.sqrt(var0 + 1e-5)
            near(out, (x - mean0.reshape(along)) * r.reshape(along) * w + b, kind)
            np.testing.assert_array_equal(running_mean, mean0)
        dx, dweight, dbias = call(
            "BatchNormBackward", gradOut=tensor(dy, kind, layout), input=tensor(x, kind),
            weight=tensor(weight, of_parameters), runningMean=tensor(mean0, of_parameters),
            runningVar=tensor(var0, of_parameters), saveMean=tensor(mean.ravel()), saveInvstd=tensor(rstd.ravel()),
            training=training, eps=1e-5, outputMask=[True] * 3, gradInput=empty(shape, kind, layout),
            gradWeight=empty((c,)), gradBias=empty((c,), layout=layout))  # fmt: skip
        if kind == of_parameters:
            fast = call(
                "FastBatchNormBackward", gradOut=tensor(dy, kind, layout), input=tensor(x, kind),
                weight=tensor(weight, kind), runningMean=tensor(mean0, kind), runningVar=tensor(var0, kind),
                saveMean=tensor(mean.ravel(), kind), saveInvstd=tensor(rstd.ravel(), kind), training=training, eps=1e-5,
                outputMask=[True] * 3, version=int(training), gradInput=empty(shape, kind, layout),
                gradWeight=empty((c,), kind), gradBias=empty((c,), kind, layout))  # fmt: skip
            own = tuple(rounded(v, kind).reshape(along) for v in (mean, rstd))
            own_u = (x - own[0]) * own[1] if training else (x - mean0.reshape(along)) / np.sqrt(var0.reshape(along) + 1e-5)
            own_dx = unit_gradient(dy * w, own_u, own[1], rest) if training else dy * w / np.sqrt(var0.reshape(along) + 1e-5)
            near(fast[0], own_dx, kind, 32, parts=dy * w * own[1])
            near(fast[1], (dy * own_u).sum(rest), kind, 64)
            near(fast[2], dy.sum(rest), kind, 16)
        if training:
            near(dx, unit_gradient(dy * w, u, rstd, rest), kind, 16, parts=dy * w * rstd)
            near(dweight, (dy * u).sum(rest), "F32", 16)
        else:
            near(dx, dy * w * r.reshape(along), kind)
            near(dweight, (dy * (x - mean0.reshape(along)) * r.reshape(along)).sum(rest), "F32", 32)
        near(dbias, dy.sum(rest), "F32", 16)


@pytest.mark.parametrize("layouts", OF_IMAGES, ids=str)
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_batch_norm_of_channels_side_by_side(kind, layouts):
    """In one of the tensors, or in both."""
    shape, rest, along = (3, 35, 17, 13), (0, 2, 3), (1, 35, 1, 1)
    x, dy = drawn(shape, 1, kind, 2), drawn(shape, 2, kind)
    weight, bias, mean0, var0 = vectors(35, 3, "F32")
    w, b = weight.reshape(along), bias.reshape(along)
    numbers = {"weight": tensor(weight), "runningMean": tensor(mean0), "runningVar": tensor(var0), "eps": 1e-5}
    for training in (True, False):
        u, mean, rstd = unit(x, rest, 1e-5)
        if not training:
            mean, rstd = mean0.reshape(along), 1 / np.sqrt(var0.reshape(along) + 1e-5)
            u = (x - mean) * rstd
        numbers |= {"training": training, "runningMean": tensor(mean0), "runningVar": tensor(var0)}
        *_, out, _, _ = call("BatchNorm", input=tensor(x, kind, layouts[0]), bias=tensor(bias), momentum=0.25,
                             output=empty(shape, kind, layouts[1]), saveMean=empty((35,)), saveInvstd=empty((35,)), **numbers)
        near(out, u * w + b, kind)
        dx, dweight, dbias = call(
            "BatchNormBackward", gradOut=tensor(dy, kind, layouts[1]), input=tensor(x, kind, layouts[0]),
            saveMean=tensor(mean.ravel()), saveInvstd=tensor(rstd.ravel()), outputMask=[True] * 3,
            gradInput=empty(shape, kind, layouts[1]), gradWeight=empty((35,)), gradBias=empty((35,)), **numbers)  # fmt: skip
        expected = unit_gradient(dy * w, u, rstd, rest) if training else dy * w * rstd
        near(dx, expected, kind, 16, parts=dy * w * rstd)
        near(dweight, (dy * u).sum(rest), "F32", 64)
        near(dbias, dy.sum(rest), "F32", 16)


def test_batch_norm_without_parameters():
    """As instance normalization calls it, and its gradient for the parameters alone."""
    x = drawn((4, 3, 6), 1)
    u, mean, rstd = unit(x, (0, 2), 1e-5)
    out, *_ = call("BatchNorm", input=tensor(x), weight=None, bias=None, runningMean=None, runningVar=None, training=True,
                   momentum=0.1, eps=1e-5, output=empty(x.shape), saveMean=empty((3,)), saveInvstd=empty((3,)))  # fmt: skip
    near(out, u, "F32")
    dweight = call("BatchNormBackward", gradOut=tensor(x), input=tensor(x), weight=None, runningMean=None, runningVar=None,
                   saveMean=tensor(mean.ravel()), saveInvstd=tensor(rstd.ravel()), training=True, eps=1e-5,
                   outputMask=[False, True, False], gradInput=None, gradWeight=empty((3,)), gradBias=None)  # fmt: skip
    near(dweight, (x * u).sum((0, 2)), "F32", 16)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_without_elements(training):
    none, ones = np.zeros((0, 3, 4)), np.ones(3)
    for mask in ([True, True, True], [True, False, True], [False, True, False], [True, False, False]):
        _, dweight, dbias = call(
            "BatchNormBackward", gradOut=tensor(none), input=tensor(none), weight=tensor(ones), runningMean=tensor(ones),
            runningVar=tensor(ones), saveMean=tensor(ones), saveInvstd=tensor(ones), training=training, eps=1e-5,
            outputMask=mask, gradInput=empty(none.shape), gradWeight=empty((3,)), gradBias=empty((3,), "F16"))  # fmt: skip
        for asked, sums, kind in zip(mask[1:], (dweight, dbias), ("F32", "F16")):
            np.testing.assert_array_equal(sums, np.zeros(3) if asked else empty((3,), kind).values())


@pytest.mark.parametrize("training", [True, False])
def test_statistics_of_batches_without_elements(training):
    """None, and running ones as they were; without training nothing is written."""
    none, vector = np.zeros((0, 3, 4)), tensor([1.5, 2.5, 3.5])
    running = [tensor([1.0, 2.0, 3.0]), tensor([4.0, 5.0, 6.0])]
    *kept, _, mean, inverse = call(
        "BatchNorm", input=tensor(none), weight=vector, bias=vector, runningMean=running[0], runningVar=running[1],
        training=training, momentum=0.1, eps=1e-5, output=empty(none.shape), saveMean=empty((3,)),
        saveInvstd=empty((3,), layout="gaps"))  # fmt: skip
    np.testing.assert_array_equal(kept, [[1, 2, 3], [4, 5, 6]])
    for own, layout in ((mean, "row-major"), (inverse, "gaps")):
        np.testing.assert_array_equal(own, [np.nan] * 3 if training else empty((3,), layout=layout).values())


def test_gradients_are_those_of_torch():
    torch = pytest.importorskip("torch")
    x, dy, gamma = drawn((2, 6, 5), 1), drawn((2, 6, 5), 2), drawn(6, 3)
    own, weight = torch.tensor(x, requires_grad=True), torch.tensor(gamma, requires_grad=True)
    torch.nn.functional.group_norm(own, 3, weight, eps=1e-5).backward(torch.tensor(dy))
    _, mean, rstd = unit(x.reshape(2, 3, -1), -1, 1e-5)
    dx, dgamma, _ = call(
        "GroupNormBackward", gradOut=tensor(dy), input=tensor(x), mean=tensor(mean[..., 0]), rstd=tensor(rstd[..., 0]),
        gamma=tensor(gamma), N=2, C=6, HxW=5, group=3, outputMask=[True] * 3, gradInput=empty(x.shape),
        gradGammaOut=empty((6,)), gradBetaOut=empty((6,)))  # fmt: skip
    near(dx, own.grad.numpy(), "F32", 32)
    near(dgamma, weight.grad.numpy(), "F32", 32)


@pytest.mark.parametrize("kind", KINDS)
def test_norms_of_sums(kind):
    shape, normal = (3, 5, 7), (5, 7)
    x1, x2, dy = (drawn(shape, seed, kind, 1) for seed in (1, 2, 5))
    gamma, beta = drawn(normal, 3, kind, 1), drawn(normal, 4, kind)
    for layout in LAYOUTS:
        put = lambda x: tensor(x, kind, layout)
        for bias in (drawn(normal, 6, kind), drawn(shape, 7, kind)):
            x = x1 + x2 + bias
            u, mean, rstd = unit(x, (1, 2), 1e-5)
            y, means, rstds, sums = call(
                "AddLayerNorm", x1=put(x1), x2=put(x2), gamma=put(gamma), beta=put(beta), biasOptional=put(bias),
                epsilon=1e-5, additionalOutput=True, yOut=empty(shape, kind, layout), meanOut=empty(mean.shape),
                rstdOut=empty(mean.shape), xOut=empty(shape, kind, layout))  # fmt: skip
            for own, expected, of in ((y, u * gamma + beta, kind), (means, mean, "F32"), (rstds, rstd, "F32"),
                                      (sums, x, kind)):  # fmt: skip
                near(own, expected, of, 16)
        x, last = x1 + x2, gamma[0]
        r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        y, rstds, sums = call("AddRmsNorm", x1=put(x1), x2=put(x2), gamma=tensor(last, kind), epsilon=1e-6,
                              yOut=empty(shape, kind, layout), rstdOut=empty(r.shape), xOut=empty(shape, kind, layout))  # fmt: skip
        for own, expected, of in ((y, x * r * last, kind), (rstds, r, "F32"), (sums, x, kind)):
            near(own, expected, of, 16)
        own, sums, _ = call("InplaceAddRmsNorm", x1Ref=put(x1), x2Ref=put(x2), gamma=tensor(last, kind), epsilon=1e-6,
                            rstdOut=empty(r.shape))  # fmt: skip
        np.testing.assert_array_equal(own, y)
        near(sums, x, kind)
        x = 0.3 * x1 + x2
        u, mean, rstd = unit(x, (1, 2), 1e-5)
        *_, y = call("DeepNorm", x=put(x1), gx=put(x2), beta=put(beta), gamma=put(gamma), alpha=0.3, epsilon=1e-5,
                     meanOut=empty(mean.shape), rstdOut=empty(mean.shape), yOut=empty(shape, kind, layout))  # fmt: skip
        near(y, u * gamma + beta, kind, 16)
        dx, dgx, dbeta, dgamma = call(
            "DeepNormGrad", dy=put(dy), x=put(x1), gx=put(x2), gamma=put(gamma), mean=tensor(mean), rstd=tensor(rstd),
            alpha=0.3, dxOut=empty(shape, kind, layout), dgxOut=empty(shape, kind), dbetaOut=empty(normal),
            dgammaOut=empty(normal))  # fmt: skip
        expected = unit_gradient(dy * gamma, u, rstd, (1, 2))
        near(dgx, expected, kind, 32, parts=dy * gamma * rstd)
        near(dx, 0.3 * expected, kind, 32, parts=dy * gamma * rstd)
        near(dbeta, dy.sum(0), "F32")
        near(dgamma, (dy * u).sum(0), "F32", 32)


@pytest.mark.parametrize("kind", KINDS)
def test_group_norms_with_activation(kind):
    shape, groups = (2, 6, 5), 3
    x, dy, gamma, beta = drawn(shape, 1, kind), drawn(shape, 2, kind), drawn(6, 3, kind, 1), drawn(6, 4, kind)
    u, mean, rstd = unit(x.reshape(2, groups, -1), -1, 1e-5)
    mean, rstd = rounded(mean, kind), rounded(rstd, kind)
    v = u.reshape(shape) * gamma[:, None] + beta[:, None]
    statistics = {"meanOut": empty((2, groups), kind), "rstdOut": empty((2, groups), kind)}
    swish = lambda v, scale: v / (1 + np.exp(-scale * v))
    for layout in LAYOUTS:
        put = lambda x: tensor(x, kind, layout)
        out, *_ = call("GroupNormSilu", self=put(x), gamma=put(gamma), beta=put(beta), group=groups, eps=1e-5,
                       out=empty(shape, kind, layout), **statistics)  # fmt: skip
        near(out, swish(v, 1), kind, 16)
        for activates in (True, False):
            own, *_ = call("GroupNormSiluV2", self=put(x), gamma=put(gamma), beta=tensor(beta), group=groups, eps=1e-5,
                           activateSilu=activates, out=empty(shape, kind, layout), **statistics)  # fmt: skip
            near(own, swish(v, 1) if activates else v, kind, 16)
            out, *_ = call("GroupNormSwish", x=put(x), gamma=put(gamma), beta=put(beta), numGroups=groups,
                           dataFormatOptional="NCHW", eps=1e-5, activateSwish=activates, swishScale=0.7,
                           yOut=empty(shape, kind, layout), **statistics)  # fmt: skip
            near(out, swish(v, 0.7) if activates else v, kind, 16)
        given = (x.reshape(2, groups, -1) - mean) * rstd
        t = given.reshape(shape) * gamma[:, None] + beta[:, None]
        sigmoid = 1 / (1 + np.exp(-0.7 * t))
        d = dy * sigmoid * (1 + 0.7 * t * (1 - sigmoid))
        dx, dgamma, dbeta = call(
            "GroupNormSwishGrad", dy=put(dy), mean=tensor(mean[..., 0], kind), rstd=tensor(rstd[..., 0], kind),
            x=put(x), gamma=put(gamma), beta=put(beta), numGroups=groups, dataFormatOptional=None, swishScale=0.7,
            dgammaIsRequire=True, dbetaIsRequire=True, dxOut=empty(shape, kind, layout), dgammaOut=empty((6,), kind),
            dbetaOut=empty((6,), kind))  # fmt: skip
        near(dx, unit_gradient((d * gamma[:, None]).reshape(given.shape), given, rstd, -1).reshape(shape), kind, 64)
        near(dgamma, (d * given.reshape(shape)).sum((0, 2)), kind, 64)
        near(dbeta, d.sum((0, 2)), kind, 64)


def test_batch_norm_over_devices():
    """The parts, put together, are the norm of the whole batch and its gradient."""
    shape, c = (6, 3, 4), 3
    x, dy, weight, bias = drawn(shape, 1, centre=2), drawn(shape, 2), drawn(c, 3), drawn(c, 4)
    parts = [slice(0, 2), slice(2, 6)]
    u, mean, rstd = unit(x, (0, 2), 1e-5)
    local = [call("BatchNormStats", input=tensor(x[at], layout="reversed"), eps=1e-5, mean=empty((c,)),
                  invstd=empty((c,))) for at in parts]  # fmt: skip
    counts = [x[at].size // c for at in parts]
    running_mean, running_var, all_mean, all_rstd = call(
        "BatchNormGatherStatsWithCounts", input=tensor(x), mean=tensor(np.stack([m for m, _ in local])),
        invstd=tensor(np.stack([r for _, r in local])), runningMean=tensor(np.ones(c)), runningVar=tensor(np.ones(c)),
        momentum=0.25, eps=1e-5, counts=tensor(counts), meanAll=empty((c,)), invstdAll=empty((c,)))  # fmt: skip
    near(all_mean, mean.ravel(), "F32")
    near(all_rstd, rstd.ravel(), "F32", 32)
    near(running_mean, 0.75 + 0.25 * mean.ravel(), "F32")
    near(running_var, 0.75 + 0.25 * x.var((0, 2), ddof=1), "F32", 32)
    totals = [call("BatchNormReduce", x=tensor(x[at, :, :, None]), sum=empty((c,)), squareSum=empty((c,))) for at in parts]
    near(totals[0][0], x[parts[0]].sum((0, 2)), "F32", 16)
    near(totals[1][1], (x[parts[1]] ** 2).sum((0, 2)), "F32", 16)
    sync = call("SyncBatchNormGatherStats", totalSum=tensor(np.stack([s for s, _ in totals])),
                totalSquareSum=tensor(np.stack([q for _, q in totals])), sampleCount=tensor(counts, "I32"),
                mean=tensor(np.ones(c)), variance=tensor(np.ones(c)), momentum=0.25, eps=1e-5, batchMean=empty((c,)),
                batchInvstd=empty((c,)))  # fmt: skip
    for own, expected in zip(sync, (running_mean, running_var, all_mean, all_rstd)):
        near(own, expected, "F32", 128)
    own = [call("BatchNormElemt", input=tensor(x[at]), weight=tensor(weight), bias=tensor(bias), mean=tensor(all_mean),
                invstd=tensor(all_rstd), eps=1e-5, output=empty(x[at].shape, layout="gaps")) for at in parts]  # fmt: skip
    near(np.concatenate(own), u * weight[:, None] + bias[:, None], "F32", 16)
    slopes = [call("BatchNormReduceBackward", gradOut=tensor(dy[at]), input=tensor(x[at]), mean=tensor(all_mean),
                   invstd=tensor(all_rstd), weight=tensor(weight), inputG=True, weightG=True, biasG=True,
                   sumDy=empty((c,)), sumDyXmu=empty((c,)), gradWeight=empty((c,)),
                   gradBias=empty((c,))) for at in parts]  # fmt: skip
    sum_dy, sum_product, dweight, dbias = (sum(part[i] for part in slopes) for i in range(4))
    near(dweight, (dy * u).sum((0, 2)), "F32", 32)
    near(dbias, dy.sum((0, 2)), "F32", 16)
    dx = [call("BatchNormElemtBackward", gradOut=tensor(dy[at]), input=tensor(x[at], layout="gaps"), mean=tensor(all_mean),
               invstd=tensor(all_rstd), weight=tensor(weight), sumDy=tensor(sum_dy), sumDyXmu=tensor(sum_product),
               counter=tensor(counts, "I32"), gradInput=empty(x[at].shape)) for at in parts]  # fmt: skip
    near(np.concatenate(dx), unit_gradient(dy * weight[:, None], u, rstd, (0, 2)), "F32", 32)


def test_renorm():
    x = drawn((3, 4, 5), 1)
    for p, dim, kind, layout in [(2, 0, "F32", "gaps"), (1, -1, "F16", "reversed"), (np.inf, 1, "F32", "row-major"),
                                 (0, 1, "F32", "gaps"),
                                 (2.5, 0, "BF16", "row-major")]:  # fmt: skip
        values = rounded(x, kind)
        rows = np.moveaxis(values, dim, 0)
        norms = np.array([np.linalg.norm(row.ravel(), p) for row in rows])
        limit = float(np.sort(norms)[1])
        factors = np.where(norms > limit, limit / (norms + 1e-7), 1).reshape(-1, *[1] * (x.ndim - 1))
        expected = np.moveaxis(rows * factors, 0, dim)
        near(call("Renorm", self=tensor(values, kind, layout), p=float(p), dim=dim, maxNorm=limit,
                  out=empty(x.shape, kind, layout)), expected, kind)  # fmt: skip
        near(call("InplaceRenorm", selfRef=tensor(values, kind, layout), p=float(p), dim=dim, maxNorm=limit), expected, kind)


@pytest.mark.parametrize("p", [2, 1, 3, math.inf, 0])
def test_rows_renormed(p):
    torch = pytest.importorskip("torch")
    for kind, layout in zip(KINDS, LAYOUTS):
        for shape, indices in (((7, 5), [[1, 3], [3, 6]]), ((40, 300), [0, 39, 17, 17]), ((3, 4), 2), ((3, 4), []),
                               ((5, 0), [1])):  # fmt: skip
            x = rounded(np.random.default_rng(9).normal(0, 2, shape), kind)
            expected = torch.tensor(x, dtype=torch.float64)
            for row in sorted({*np.ravel(indices).astype(int)}):
                norm = torch.linalg.vector_norm(expected[row], p) if shape[1] else torch.tensor(0.0)
                expected[row] *= 1.5 / (norm + 1e-7) if norm > 1.5 else 1
            own = call("EmbeddingRenorm", selfRef=tensor(x, kind, layout),
                       indices=tensor(indices, "I32" if p == 1 else "I64", layout), maxNorm=1.5,
                       normType=float(p))  # fmt: skip
            near(own, expected.numpy(), kind)
    for outside in (-1, 3):
        assert "outside" in fault("EmbeddingRenorm", tensor(np.ones((3, 2))), tensor([0, outside], "I64"), 1.0, 2.0)


def test_renorm_of_the_page():
    x = np.repeat([[1.0], [2.0], [3.0]], 3, 1)
    own = call("Renorm", self=tensor(x), p=1.0, dim=0, maxNorm=5.0, out=empty(x.shape))
    np.testing.assert_allclose(own, np.repeat([[1], [5 / 3], [5 / 3]], 3, 1), rtol=1e-6)


def test_an_operator_of_another_product():
    """InstanceNorm is for one product alone; its page has the platform behind pointers, types, ranks and lengths."""
    legal = {"x": ((2, 3, 4, 16), "F32"), "gamma": ((3,), "F32"), "beta": ((3,), "F32"), "y": ((2, 3, 4, 16), "F32"),
             "mean": ((2, 3, 1, 1), "F32"), "variance": ((2, 3, 1, 1), "F32")}  # fmt: skip

    def refused(layout=b"NCHW", **changes):
        values = {name: None if given is None else empty(*given) for name, given in {**legal, **changes}.items()}
        before = [value and value.bytes() for value in values.values()]
        status, rule = refusal("InstanceNorm", values["x"], values["gamma"], values["beta"], layout, 1e-5, values["y"],
                               values["mean"], values["variance"])  # fmt: skip
        assert [value and value.bytes() for value in values.values()] == before
        return status, rule.partition("/")[2]

    assert refused() == (161002, "x/platform")
    assert refused(b"other") == (161002, "x/platform")
    assert refused(b"NHWC", gamma=((16,), "F32"), beta=((16,), "F32")) == (161002, "x/platform")
    assert refused(b"NHWC") == (161002, "gamma/length")
    assert refused(beta=((4,), "F32")) == (161002, "beta/length")
    assert refused(x=((3, 4, 16), "F32")) == (161002, "x/rank")
    assert refused(gamma=((3, 1), "F32")) == (161002, "gamma/rank")
    assert refused(x=((2, 3, 4, 16), "I32")) == (161002, "x/dtype")
    assert refused(mean=((2, 3, 1, 1), "F16")) == (161002, "mean/same-dtype")
    for name in legal:
        assert refused(**{name: None}) == (161001, f"{name}/null")
    assert refused(None) == (161001, "dataFormat/null")


# ---- norms, quantized -----------------------------------------------------------------------------------------------------


def of_rms(x, axes, gamma, beta=0.0):
    return x / np.sqrt((x * x).mean(axes, keepdims=True) + 1e-6) * gamma + beta


def levels(v, scale, zero, divides, limits=(-128, 127)):
    return np.clip(v / scale + zero if divides else v * scale + zero, *limits)


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("shape, dims", [((3, 5, 7), 1), ((2, 3, 4), 2), ((4, 1500), 1), ((5,), 1), ((0, 4), 1)], ids=str)
def test_rms_norm_of_sums_in_two_types_and_quantized(kind, shape, dims):
    axes, normal = tuple(range(-dims, 0)), shape[-dims:]
    x1, x2, gamma, beta = drawn(shape, 1, kind, 1), drawn(shape, 2, kind), drawn(normal, 3, kind, 1), drawn(normal, 4, kind)
    x = x1 + x2
    of_scales, of_zeros = ("F32", "I32") if kind == "F16" else ("BF16", "BF16")
    scales = [rounded(np.abs(drawn(normal, seed)) * 0.02 + 0.02, of_scales) for seed in (5, 6)]
    zeros = [np.rint(drawn(normal, seed, spread=9)) for seed in (7, 8)]
    v = of_rms(x, axes, gamma)
    for layout in LAYOUTS:
        put = lambda x, kind=kind: tensor(x, kind, layout)
        given = {"x1": put(x1), "x2": put(x2), "gamma": put(gamma), "epsilon": 1e-6}
        rstd_shape = (*shape[:-dims], *[1] * dims)
        wide, y, rstd, sums = call("AddRmsNormCast", y1Out=empty(shape, "F32", layout), y2Out=empty(shape, kind, layout),
                                   rstdOut=empty(rstd_shape), xOut=empty(shape, kind, layout), **given)  # fmt: skip
        np.testing.assert_array_equal(wide, y)
        for own, expected, of in ((y, v, kind), (rstd, 1 / np.sqrt((x * x).mean(axes, keepdims=True) + 1e-6), "F32"),
                                  (sums, x, kind)):  # fmt: skip
            near(own, expected, of, 16)
        given |= {"scales1": put(scales[0], of_scales), "axis": -1}
        outputs = lambda: {"y1Out": empty(shape, "I8", layout), "y2Out": empty(shape, "I8"),
                           "xOut": empty(shape, kind, layout)}  # fmt: skip
        for shifts, divides in itertools.product((True, False), repeat=2):
            z = zeros if shifts else [0, 0]
            more = {"scales2Optional": put(scales[1], of_scales), "divMode": divides,
                    **{f"zeroPoints{i + 1}Optional": put(zeros[i], of_zeros) if shifts else None for i in range(2)}}  # fmt: skip
            *ys, sums = call("AddRmsNormQuant", **given, **more, **outputs())
            near(sums, x, kind, 16)
            for own, scale, zero in zip(ys, scales, z):
                steps_apart(own, levels(v, scale, zero, divides))
            for with_beta, with_plain in itertools.product((True, False), (True, False) if divides else (False,)):
                found = call("AddRmsNormQuantV2", betaOptional=put(beta) if with_beta else None, **given, **more,
                             **outputs(), rmsNormOut=empty(shape, kind, layout) if with_plain else None)  # fmt: skip
                for own, scale, zero in zip(found, scales, z):
                    steps_apart(own, levels(v + (beta if with_beta else 0), scale, zero, divides))
                near(found[2], x, kind, 16)
                if with_plain:
                    near(found[3], v, kind, 16)
    y1, pattern, _ = call("AddRmsNormQuant", **given, scales2Optional=None, zeroPoints1Optional=None,
                          zeroPoints2Optional=None, divMode=True, y1Out=empty(shape, "I8"), y2Out=empty((3,), "I8"),
                          xOut=empty(shape, kind))  # fmt: skip
    steps_apart(y1, levels(v, scales[0], 0, True))
    np.testing.assert_array_equal(pattern, empty((3,), "I8").values())


def check_rows(found, v, step, highest):
    """Numbers and scales of rows that found their own scale."""
    expected = np.abs(v).max(-1, initial=0) / highest
    np.testing.assert_allclose(np.ravel(step), np.ravel(expected), rtol=1e-5)
    steps_apart(found, v / np.where(expected == 0, 1, expected)[..., None])


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("shape", [(3, 5, 8), (4, 1500), (2, 3, 1, 6), (0, 4)], ids=str)
def test_rms_norm_of_sums_quantized_by_rows(kind, shape):
    last = shape[-1:]
    x1, x2, gamma, beta = drawn(shape, 1, kind, 1), drawn(shape, 2, kind), drawn(last, 3, kind, 1), drawn(last, 4, kind)
    smooth = [rounded(np.abs(drawn(last, seed)) + 0.5, kind) for seed in (5, 6)]
    if x1.size:
        x1[0], x2[0] = 0, 0
    x = x1 + x2
    for layout in LAYOUTS:
        put = lambda x: tensor(x, kind, layout)
        given = {"x1": put(x1), "x2": put(x2), "gamma": put(gamma), "epsilon": 1e-6}
        rows = lambda: {"xOut": empty(shape, kind, layout), "scale1Out": empty(shape[:-1], layout=layout),
                        "scale2Out": empty((*shape[:-1], 1))}  # fmt: skip
        smooths = lambda a, b: {"smoothScale1Optional": put(smooth[0]) if a else None,
                                "smoothScale2Optional": put(smooth[1]) if b else None}  # fmt: skip
        v = of_rms(x, -1, gamma)
        for a, b in ((True, True), (True, False), (False, False)):
            flat = (int(np.prod(shape[:-1])), shape[-1])
            y1, y2, sums, step1, step2 = call("AddRmsNormDynamicQuant", **given, **smooths(a, b), **rows(),
                                              y1Out=empty(flat, "I8", layout), y2Out=empty(flat, "I8"))  # fmt: skip
            near(sums, x, kind, 16)
            check_rows(y1.reshape(shape), v * smooth[0] if a else v, step1, 127)
            if b:
                check_rows(y2.reshape(shape), v * smooth[1], step2, 127)
            else:
                np.testing.assert_array_equal(y2, empty(flat, "I8").values())
                np.testing.assert_array_equal(step2, empty((*shape[:-1], 1)).values())
        forms = [(None, True, True), (None, True, False), ([True, True], False, True), ([True, True], False, False),
                 ([True, False], True, False), ([False, True], False, False)]  # fmt: skip
        for (mask, a, b), with_beta, of_y in itertools.product(forms, (True, False), ("I8", "I4")):
            asked = mask or [True, a and b]
            make = lambda of: empty(of, "I8") if of_y == "I8" else empty_packed(of, "I4")
            y = [make(shape if ask else (2,)) for ask in asked]
            _, _, sums, *steps = call("AddRmsNormDynamicQuantV2", **given, **smooths(a, b), **rows(), outputMask=mask,
                                      betaOptional=put(beta) if with_beta else None, y1Out=y[0], y2Out=y[1])  # fmt: skip
            near(sums, x, kind, 16)
            for ask, own, given_smooth, factor, step in zip(asked, y, (a, b), smooth, steps):
                if not ask:
                    assert own.bytes() == make((2,)).bytes()
                    continue
                w = (v + (beta if with_beta else 0)) * (factor if given_smooth else 1)
                check_rows(own.values() if of_y == "I8" else unpacked(own, shape), w, step, 127 if of_y == "I8" else 7)


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("shape", [(3, 5, 8), (4, 1500), (6,), (0, 4)], ids=str)
def test_rms_norm_quantized(kind, shape):
    last = shape[-1]
    x, gamma, beta = drawn(shape, 1, kind, 1), drawn(last, 2, kind, 1), drawn(last, 3, kind)
    v = of_rms(x, -1, gamma, beta)
    for layout, line in itertools.product(LAYOUTS, ((last,), (1, last))):
        for scale, zero, of_y in ((0.0625, -3, "I8"), (0.75, 2, "I4"), (-0.5, 0, "I4")):
            y = empty(shape, "I8", layout) if of_y == "I8" else empty_packed(shape, "I4")
            call("RmsNormQuant", x=tensor(x, kind, layout), gamma=tensor(gamma.reshape(line), kind, layout),
                 beta=tensor(beta.reshape(line), kind), scale=tensor([scale], kind), offset=tensor([zero], "I8"),
                 epsilon=1e-6, y=y)  # fmt: skip
            own = y.values() if of_y == "I8" else unpacked(y, shape)
            steps_apart(own, levels(v, scale, zero, True, (-128, 127) if of_y == "I8" else (-8, 7)))
    nothing = {"gamma": tensor([1.0], kind), "beta": tensor([0.0], kind), "offset": tensor([5], "I8"), "epsilon": 1e-6}
    for x, scale in ((np.nan, 1.0), (1.0, np.nan)):
        assert call("RmsNormQuant", x=tensor([x], kind), scale=tensor([scale], kind), y=empty((1,), "I8"), **nothing) == [0]


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("shape", [(3, 5, 8), (4, 1500), (2, 3, 1, 6), (0, 4)], ids=str)
def test_norms_quantized_by_rows(kind, shape):
    last, samples = shape[-1:], shape[:-2]
    x, gamma, beta = drawn(shape, 1, kind, 1), drawn(last, 2, kind, 1), drawn(last, 3, kind)
    scale, shift = (drawn((*samples, 1, *last), seed, kind) for seed in (4, 5))
    smooth = rounded(np.abs(drawn(last, 6)) + 0.5, kind)
    if x.size:
        x[0] = 0
    for layout, smooths, shifts in itertools.product(LAYOUTS, (True, False), (True, False)):
        put = lambda x, given=True: tensor(x, kind, layout) if given else None
        found, step = call(
            "RmsNormDynamicQuant", x=put(x), gamma=put(gamma), smoothScalesOptional=put(smooth, smooths),
            betaOptional=put(beta, shifts), epsilon=1e-6, dstType=2, yOut=empty(shape, "I8", layout),
            scaleOut=empty(shape[:-1], layout=layout))  # fmt: skip
        factor = smooth if smooths else 1
        check_rows(found, of_rms(x, -1, gamma, beta if shifts else 0) * factor, step, 127)
        found, step = call(
            "AdaLayerNormQuant", x=put(x), scale=put(scale), shift=put(shift.reshape((*samples, *last))),
            weightOptional=put(gamma, shifts), biasOptional=put(beta, shifts),
            smoothScalesOptional=put(smooth, smooths), epsilon=1e-5, quantMode="dynamic",
            out=empty(shape, "I8", layout), quantScale=empty(shape[:-1], layout=layout),
            quantOffsetOptional=None)  # fmt: skip
        normal = unit(x, -1, 1e-5)[0] if x.size else x
        check_rows(found, ((normal * gamma + beta if shifts else normal) * (1 + scale) + shift) * factor, step, 127)


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("shape", [(3, 5, 8), (4, 1500), (6,), (0, 4)], ids=str)
def test_layer_norm_quantized(kind, shape):
    last = shape[-1]
    x, gamma, beta = drawn(shape, 1, kind, 1), drawn((1, last), 2, kind, 1), drawn((1, last), 3, kind)
    for layout, (scale, zero) in itertools.product(LAYOUTS, ((0.0625, -3), (-0.5, None))):
        res, step = call(
            "LayerNormQuant", x=tensor(x, kind, layout), gammma=tensor(gamma, kind, layout), beta=tensor(beta, kind),
            scale=tensor([scale], kind), zeroPointsOptional=None if zero is None else tensor([zero], "I8"), quantMode=0,
            epsilon=1e-5, res=empty(shape, "I8", layout), scaleOut=empty((2,)))  # fmt: skip
        expected = (unit(x, -1, 1e-5)[0] if x.size else x) * gamma + beta
        steps_apart(res, levels(expected.reshape(shape), scale, zero or 0, True))
        np.testing.assert_array_equal(step, empty((2,)).values())


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("shape, groups", [((2, 6, 5), 3), ((3, 4), 2), ((2, 4, 3, 700), 4), ((1, 8, 2, 2, 3), 1)], ids=str)
def test_group_norm_with_swish_quantized(kind, shape, groups):
    x, gamma, beta = drawn(shape, 1, kind, 1), drawn(shape[1], 2, kind, 1), drawn(shape[1], 3, kind)
    lines = x.reshape(shape[0], groups, -1)
    normal, mean, rstd = unit(lines, -1, 1e-5)
    along = (-1, *[1] * (len(shape) - 2))
    v = normal.reshape(shape) * gamma.reshape(along) + beta.reshape(along)
    v = v / (1 + np.exp(-v))
    steps = np.float32(np.abs(drawn(shape[1], 4)) * 0.01 + 0.01)
    for layout, step in itertools.product(LAYOUTS, (steps, steps[:1])):
        out, means, rstds = call(
            "GroupNormSiluQuant", self=tensor(x, kind, layout), gamma=tensor(gamma, kind, layout), beta=tensor(beta, kind),
            quantScale=tensor(step, layout=layout), group=groups, eps=1e-5, activateSilu=True,
            out=empty(shape, "I8", layout), meanOut=empty((shape[0], groups), kind, layout),
            rstdOut=empty((shape[0], groups), kind))  # fmt: skip
        steps_apart(out, levels(v, step.astype(float).reshape(along) if step.size > 1 else float(step[0]), 0, True))
        near(means, mean[..., 0], kind)
        near(rstds, rstd[..., 0], kind)


def test_group_norm_of_no_elements_quantized():
    out, means, rstds = call(
        "GroupNormSiluQuant", self=empty((2, 4, 0), "F16"), gamma=tensor(np.ones(4), "F16"), beta=tensor(np.ones(4), "F16"),
        quantScale=tensor([1.0]), group=2, eps=1e-5, activateSilu=True, out=empty((2, 4, 0), "I8"),
        meanOut=empty((2, 2), "F16"), rstdOut=empty((2, 2), "F16"))  # fmt: skip
    assert out.size == 0
    np.testing.assert_array_equal(means, np.zeros((2, 2)))
    assert np.isnan(rstds).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 5, 8), (4, 1500), (6,), (0, 4)], ids=str)
def test_layer_norm_of_sums_quantized(kind, shape):
    last = shape[-1]
    x1, x2, bias = (drawn(shape, seed, kind, 1) for seed in (1, 2, 3))
    gamma, beta = drawn((1, last), 4, kind, 1), drawn((1, last), 5, kind)
    for layout, biased, shifts in itertools.product(LAYOUTS, (True, False), (True, False)):
        put = lambda x: tensor(x, kind, layout)
        scale, zero = 12.5, -3.0 if shifts else 0.0
        *found, left, result, step1, step2 = call(
            "AddLayerNormQuantV2", x1=put(x1), x2=put(x2), gamma=put(gamma), beta=put(beta),
            biasOptional=put(bias) if biased else None, scales1Optional=tensor([scale], kind), scales2Optional=None,
            zeroPoints1Optional=tensor([zero], kind) if shifts else None, zeroPoints2Optional=None, quantMode="static",
            epsilon=1e-5, additionalOutput=False, divMode=False, y1Out=empty(shape, "I8", layout),
            y2Out=empty((2,), "I8"), xOut=empty(shape, kind), layernormRes=empty(shape, kind, layout),
            outScales1Out=empty((2,)), outScales2Out=empty((2,)))  # fmt: skip
        y = unit(x1 + x2 + (bias if biased else 0), -1, 1e-5)[0] * gamma + beta
        y = y.reshape(shape)
        near(result, y, kind, 32)
        steps_apart(found[0], levels(y, scale, zero, False))
        for own, blank in ((found[1], empty((2,), "I8")), (left, empty(shape, kind)), (step1, empty((2,))),
                           (step2, empty((2,)))):  # fmt: skip
            np.testing.assert_array_equal(own, blank.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape, dims", [((3, 5, 7), 1), ((2, 3, 4), 2), ((4, 1500), 1), ((6,), 1)], ids=str)
def test_gradient_of_layer_norm_of_sums(kind, shape, dims):
    torch = pytest.importorskip("torch")
    axes, normal = tuple(range(-dims, 0)), shape[-dims:]
    x1, x2, dy, passed = (drawn(shape, seed, kind, 1) for seed in (1, 2, 3, 4))
    gamma = drawn(normal, 5, kind, 1)
    u, mean, rstd = unit(x1 + x2, axes, 1e-5)
    own, weight, shift = torch.tensor(x1 + x2, requires_grad=True), torch.tensor(gamma, requires_grad=True), torch.zeros(normal, dtype=torch.float64, requires_grad=True)
    torch.nn.functional.layer_norm(own, normal, weight, shift, eps=1e-5).backward(torch.tensor(dy))
    for layout, more in itertools.product(LAYOUTS, (True, False)):
        put = lambda x: tensor(x, kind, layout)
        dx, dgamma, dbeta = call(
            "AddLayerNormGrad", dy=put(dy), x1=put(x1), x2=put(x2), rstd=tensor(rstd), mean=tensor(mean), gamma=put(gamma),
            dsumOptional=put(passed) if more else None, dxOut=empty(shape, kind, layout),
            dgammaOut=empty(normal, "F32", layout), dbetaOut=empty(normal))  # fmt: skip
        near(dx, own.grad.numpy() + (passed if more else 0), kind, 32, parts=dy * gamma * rstd)
        near(dgamma, weight.grad.numpy(), "F32", 32)
        near(dbeta, shift.grad.numpy(), "F32", 16)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 5, 8), (4, 1500), (2, 3, 2, 6), (0, 2, 4)], ids=str)
def test_adaptive_layer_norm(kind, shape):
    samples, last = shape[:-2], shape[-1]
    x = drawn(shape, 1, kind, 2)
    scale, shift = drawn((*samples, 1, last), 2, kind), drawn((*samples, 1, last), 3, kind)
    weight, bias = drawn(last, 4, kind, 1), drawn(last, 5, kind)
    u, mean, rstd = unit(x, -1, 1e-5)
    for layout, (weighted, biased) in itertools.product(LAYOUTS,
                                                        [(True, True), (True, False), (False, True),
                                                         (False, False)]):  # fmt: skip
        put = lambda x: tensor(x, kind, layout)
        given = {"x": put(x), "scale": put(scale), "shift": put(shift.reshape(*samples, last)), "epsilon": 1e-5}
        v = (u * weight if weighted else u) + (bias if biased else 0)
        expected = v * (1 + scale) + shift
        optional = lambda of: {"weightOptional": tensor(weight, of) if weighted else None,
                               "biasOptional": tensor(bias, of) if biased else None}  # fmt: skip
        out = call("AdaLayerNorm", **given, **optional(kind), out=empty(shape, kind, layout))
        near(out, expected, kind, 32, parts=v * (1 + np.abs(scale)))
        again, means, rstds = call("AdaLayerNormV2", **given, **optional("F32"), out=empty(shape, kind, layout),
                                   meanOutOptional=empty(mean.shape, kind), rstdOutOptional=empty(mean.shape, kind, layout))  # fmt: skip
        np.testing.assert_array_equal(again, out)
        near(means, mean, kind)
        near(rstds, rstd, kind)
    again = call("AdaLayerNormV2", **given, **optional("F32"), out=empty(shape, kind), meanOutOptional=None,
                 rstdOutOptional=None)  # fmt: skip
    np.testing.assert_array_equal(again, out)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 5, 8), (4, 600), (2, 3, 7, 6), (1, 300, 4)], ids=str)
def test_gradient_of_modulated_layer_norm(kind, shape):
    """Against autograd, with the statistics that the operator reads."""
    torch = pytest.importorskip("torch")
    samples, last = shape[:-2], shape[-1]
    x, dy = drawn(shape, 1, kind, 1), drawn(shape, 2, kind)
    weight, bias = drawn(last, 3, kind, 1), drawn(last, 4, kind)
    scale, shift = drawn((*samples, 1, last), 5, kind), drawn((*samples, 1, last), 6, kind)
    _, mean, rstd = unit(x, -1, 1e-5)
    mean, rstd = rounded(mean, kind), rounded(rstd, kind)
    u = (x - mean) * rstd
    for layout, weighted, biased, of in zip((*LAYOUTS, "row-major"), (True, False, True, False),
                                            (True, False, False, True), (kind, kind, "F32", "F32")):  # fmt: skip
        a, b = weight if weighted else np.ones(last), bias if biased else np.zeros(last)
        g = dy * (1 + scale)
        expected = [unit_gradient(g * a, u, rstd, -1), (dy * (u * a + b)).sum(-2, keepdims=True), dy.sum(-2, keepdims=True),
                    (g * u).reshape(-1, last).sum(0), g.reshape(-1, last).sum(0)]  # fmt: skip
        own = torch.tensor(scale, requires_grad=True)
        move, factor, summand = torch.zeros(shift.shape, dtype=torch.float64, requires_grad=True), torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
        ((torch.tensor(u) * factor + summand) * (1 + own) + move).backward(torch.tensor(dy))
        for one, wanted in zip(expected[1:], (own, move, factor, summand)):
            np.testing.assert_allclose(one, wanted.grad.numpy(), rtol=1e-9, atol=1e-9)
        put = lambda x, k=kind: tensor(x, k, layout)
        found = call(
            "AdaLayerNormBackward", gradOut=put(dy), input=put(x), normalizedShape=[last], rstd=put(rstd),
            mean=put(mean), scale=put(scale), shift=put(shift.reshape(*samples, last)),
            weightOptional=put(weight, of) if weighted else None, biasOptional=put(bias, of) if biased else None,
            gradInputOut=empty(shape, kind, layout), gradScaleOut=empty(scale.shape, kind, layout),
            gradShiftOut=empty((*samples, last), kind), gradWeightOut=empty((last,), of, layout),
            gradBiasOut=empty((last,), of))  # fmt: skip
        lines = int(np.prod(shape[:-1]))
        for one, wanted, as_kind, parts in zip(found, expected, (kind, kind, kind, of, of),
                                               (g * a * rstd, dy * (np.abs(u * a) + np.abs(b)), dy, g * u,
                                                g)):  # fmt: skip
            near(one, wanted.reshape(one.shape), as_kind, 32,
                 parts=np.abs(parts).max() * (1 if one.shape == shape else np.sqrt(lines)))  # fmt: skip
    alone = dict.fromkeys(("gradInputOut", "gradScaleOut", "gradWeightOut", "gradBiasOut"))
    shifts = call("AdaLayerNormBackward", gradOut=put(dy), input=put(x), normalizedShape=[last], rstd=put(rstd),
                  mean=put(mean), scale=put(scale), shift=put(shift), weightOptional=None, biasOptional=None,
                  gradShiftOut=empty(shift.shape, kind), **alone)  # fmt: skip
    np.testing.assert_array_equal(shifts, found[2].reshape(shift.shape))


def test_gradient_of_modulated_layer_norm_by_its_input():
    """Against autograd of the whole, mean and deviation with it."""
    torch = pytest.importorskip("torch")
    x, dy, scale, weight = drawn((2, 5, 9), 1), drawn((2, 5, 9), 2), drawn((2, 1, 9), 3), drawn(9, 4)
    _, mean, rstd = unit(x, -1, 1e-5)
    own = torch.tensor(x, requires_grad=True)
    (torch.nn.functional.layer_norm(own, [9], torch.tensor(weight), eps=1e-5) * (1 + torch.tensor(scale))).backward(torch.tensor(dy))
    rest = dict.fromkeys(("biasOptional", "gradScaleOut", "gradShiftOut", "gradWeightOut", "gradBiasOut"))
    dx = call("AdaLayerNormBackward", gradOut=tensor(dy), input=tensor(x), normalizedShape=[9], rstd=tensor(rstd),
              mean=tensor(mean), scale=tensor(scale), shift=tensor(scale), weightOptional=tensor(weight),
              gradInputOut=empty(x.shape), **rest)  # fmt: skip
    near(dx, own.grad.numpy(), "F32", 32, parts=dy * (1 + scale) * weight * rstd)


@pytest.mark.parametrize("place", ["gradOut", "input"])
def test_gradient_of_modulated_layer_norm_in_the_place_of_what_it_is_made_of(place):
    x, dy, scale, weight = drawn((2, 5, 9), 1), drawn((2, 5, 9), 2), drawn((2, 1, 9), 3), drawn(9, 4)
    _, mean, rstd = unit(x, -1, 1e-5)
    found = []
    for own in (False, True):
        given = {"gradOut": tensor(dy), "input": tensor(x), "normalizedShape": [9], "rstd": tensor(rstd), "mean": tensor(mean),
                 "scale": tensor(scale), "shift": tensor(scale), "weightOptional": tensor(weight),
                 "biasOptional": tensor(weight)}  # fmt: skip
        found.append(call("AdaLayerNormBackward", **given, gradInputOut=given[place] if own else empty(x.shape),
                          gradScaleOut=empty(scale.shape), gradShiftOut=empty(scale.shape), gradWeightOut=empty((9,)),
                          gradBiasOut=empty((9,))))  # fmt: skip
    for apart, own in zip(*found):
        np.testing.assert_array_equal(own, apart)


def test_sums_over_no_samples():
    """Sums are 0, means NaN."""
    empty_x, vector = tensor(np.zeros((0, 3, 2, 2))), tensor([1.5, 2.5, 3.5])
    for own in call("BatchNormReduce", x=empty_x, sum=empty((3,), layout="gaps"), squareSum=empty((3,))):
        np.testing.assert_array_equal(own, [0, 0, 0])
    sums = call("BatchNormReduceBackward", gradOut=empty_x, input=empty_x, mean=vector, invstd=vector, weight=None, inputG=True, weightG=True,
                biasG=False, sumDy=empty((3,)), sumDyXmu=empty((3,), layout="gaps"), gradWeight=empty((3,)), gradBias=None)  # fmt: skip
    for own in sums:
        np.testing.assert_array_equal(own, [0, 0, 0])
    for own in call("BatchNormStats", input=empty_x, eps=1e-5, mean=empty((3,)), invstd=empty((3,))):
        np.testing.assert_array_equal(own, [np.nan] * 3)


def test_gradients_of_lines_that_no_memory_holds():
    """2^62 elements, of which four times as many are none in 64 bits."""
    line = support.expanded(support.F32, (1, 2**62))
    said = fault("RmsNormGrad", line, line, tensor([1.0]), support.expanded(support.F32, (2**62,)), line,
                 support.expanded(support.F32, (2**62,)), status=207001)  # fmt: skip
    assert "no host memory for scratch space" in said


def test_tensors_that_no_memory_holds():
    """2^62 elements, one in memory: what a float32 of each takes is 2^64 bytes."""
    whole, lines = (support.expanded(support.F32, shape) for shape in ((2**55, 1, 128), (2**55, 128)))
    weight, out = support.blank(support.F32, (128,)), support.expanded(support.F32, (2**55, 1, 128))
    given = [part.handle for part in (whole, lines, lines, weight, weight)]
    status, size, executor = support.plan("aclnnAdaLayerNorm", *given, 1e-5, out.handle)
    stream = ffi.new("aclrtStream *")
    assert status == 0 and lib.aclrtCreateStream(stream) == 0
    assert lib.aclnnAdaLayerNorm(ffi.NULL, size, executor, stream[0]) == 0
    assert lib.aclrtSynchronizeStream(stream[0]) == 207001
    assert "aclnnAdaLayerNorm: no host memory for scratch space" in ffi.string(lib.aclGetRecentErrMsg()).decode()
    assert lib.aclrtDestroyStream(stream[0]) == 0


@pytest.mark.parametrize("kind, shape", [(np.float32, (4100, 2048)), (np.float32, (5000, 1680)), (np.float32, (4133, 2043)),
                                         (np.float16, (8300, 2048))])  # fmt: skip
def test_results_that_no_cache_keeps(kind, shape):
    """They are written past the caches where lines of memory are whole, the same as in two halves that are not."""
    rng = np.random.default_rng(3)
    x, dy = (rng.normal(0, 1, shape).astype(kind) for _ in range(2))
    scale, offset = (rng.normal(0, 1, shape[1]).astype(kind) for _ in range(2))
    halves = slice(None, shape[0] // 2), slice(shape[0] // 2, None)
    assert x.nbytes >= 32 << 20 > x[halves[1]].nbytes

    def layer_norm(x):
        return ops.layer_norm(x, [shape[1]], 1e-5, scale, offset)

    def gradient(x, dy):
        _, mean, rstd = layer_norm(x)
        return ops.layer_norm_backward(dy, x, [shape[1]], mean, rstd, [True, False, False], scale, offset)[0]

    np.testing.assert_array_equal(layer_norm(x)[0], np.concatenate([layer_norm(x[half])[0] for half in halves]))
    np.testing.assert_array_equal(gradient(x, dy), np.concatenate([gradient(x[half], dy[half]) for half in halves]))
    rows = ops.rms_norm(x, scale, 1e-5)[0]
    np.testing.assert_array_equal(rows, np.concatenate([ops.rms_norm(x[half], scale, 1e-5)[0] for half in halves]))
    near(rows[:9].astype(float), x[:9] / np.sqrt((x[:9].astype(float) ** 2).mean(1, keepdims=True) + 1e-5) * scale,
         "F32" if kind == np.float32 else "F16")  # fmt: skip


@pytest.mark.parametrize("plane", [1024, 1020])
def test_groups_that_no_cache_keeps(plane):
    """Runs of channels that end with lines of memory, and others."""
    x = np.random.default_rng(4).normal(0, 1, (33, 256, plane)).astype(np.float32)
    scale, offset = np.arange(1, 257, dtype=np.float32), np.arange(256, dtype=np.float32)

    def group_norm(x):
        return ops.group_norm(x, len(x), 256, plane, 8, 1e-5, scale, offset)[0]

    np.testing.assert_array_equal(group_norm(x), np.concatenate([group_norm(x[:16]), group_norm(x[16:])]))
