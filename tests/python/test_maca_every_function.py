"""Every mcDNN function that computes, called through `maca.run` by the header's names, against float64 NumPy."""

import numpy as np
import pytest

from understudy import maca
from understudy.kit.prototypes import SCALING_FACTORS, prototypes
from understudy.maca import lib

SHAPE = 2, 3, 4, 5
EPSILON = 1e-3
# Functions that take device memory and compute nothing from it, and those of host memory.
OTHERS = {"mcdnnGetDropoutDescriptor", "mcdnnRestoreDropoutDescriptor", "mcdnnSetDropoutDescriptor",
          "mcdnnSaveAlgorithm", "mcdnnRestoreAlgorithm"}  # fmt: skip

CASES = {}


def case(*functions):
    """A check that must call all the functions it is named for."""

    def add(check):
        CASES.update(dict.fromkeys(functions, check))
        return check

    return add


def random(*shape, seed=0, low=-1.0, dtype=np.float64):
    return np.random.default_rng(seed).uniform(low, 1, shape).astype(dtype)


def close(got, expected, tolerance=1e-12):
    np.testing.assert_allclose(got.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def space(size):
    return np.zeros(max(size, 1), np.uint8)


@case("mcdnnActivationForward", "mcdnnActivationBackward")
def activation(run):
    x, dy, y, dx = (random(*SHAPE, seed=seed) for seed in range(4))
    old_y, old_dx = y.copy(), dx.copy()
    with maca.ActivationDescriptor("elu", coef=0.75) as elu:
        run("mcdnnActivationForward", activationDesc=elu, x=x, y=y, alpha=2, beta=0.5)
        close(y, 2 * np.where(x > 0, x, 0.75 * np.expm1(x)) + 0.5 * old_y)
        y[...] = np.where(x > 0, x, 0.75 * np.expm1(x))
        run("mcdnnActivationBackward", activationDesc=elu, y=y, dy=dy, x=x, dx=dx, alpha=3, beta=-1)
    close(dx, 3 * dy * np.where(x > 0, 1, 0.75 * np.exp(x)) - old_dx)


@case("mcdnnSoftmaxForward", "mcdnnSoftmaxBackward")
def softmax(run):
    x, dy, y, dx = (random(*SHAPE, seed=seed) for seed in range(4))
    old = dx.copy()
    codes = {"mode": "MCDNN_SOFTMAX_MODE_CHANNEL"}
    run("mcdnnSoftmaxForward", algo="MCDNN_SOFTMAX_ACCURATE", x=x, y=y, **codes)
    close(y, np.exp(x) / np.exp(x).sum(1, keepdims=True))
    run("mcdnnSoftmaxBackward", algorithm="MCDNN_SOFTMAX_ACCURATE", yData=y, dy=dy, dx=dx, alpha=2, beta=1, **codes)
    close(dx, 2 * y * (dy - (y * dy).sum(1, keepdims=True)) + old)


@case("mcdnnPoolingForward", "mcdnnPoolingBackward")
def pooling(run):
    x, y, dy, dx = random(*SHAPE), random(2, 3, 2, 5, seed=1), random(2, 3, 2, 5, seed=2), random(*SHAPE, seed=3)
    with maca.PoolingDescriptor("max", (2, 1)) as windows:
        sizes = np.zeros(4, np.int32)
        run("mcdnnGetPoolingNdForwardOutputDim", poolingDesc=windows, inputTensorDesc=x, nbDims=4,
            outputTensorDimA=sizes)  # fmt: skip
        assert tuple(sizes) == y.shape
        run("mcdnnPoolingForward", poolingDesc=windows, x=x, y=y)
        pairs = x.reshape(2, 3, 2, 2, 5)
        close(y, pairs.max(3), 0)
        run("mcdnnPoolingBackward", poolingDesc=windows, y=y, dy=dy, xData=x, dx=dx)
    close(dx, ((pairs == y[:, :, :, None]) * dy[:, :, :, None]).reshape(SHAPE), 0)


@case("mcdnnLRNCrossChannelForward", "mcdnnLRNCrossChannelBackward")
def local_response(run):
    x, dy, y, dx = (random(*SHAPE, seed=seed) for seed in range(4))
    sums = lambda values: np.stack([values[:, max(c - 1, 0):c + 2].sum(1) for c in range(3)], 1)  # noqa: E731
    scale = 1.5 + 0.25 / 3 * sums(x**2)
    with maca.LRNDescriptor(3, 0.25, 0.75, 1.5) as lrn:
        run("mcdnnLRNCrossChannelForward", normDesc=lrn, x=x, y=y)
        close(y, x * scale**-0.75)
        run("mcdnnLRNCrossChannelBackward", normDesc=lrn, y=y, dy=dy, x=x, dx=dx)
    close(dx, dy * scale**-0.75 - 2 * 0.25 * 0.75 / 3 * x * sums(dy * y / scale))


@case("mcdnnDivisiveNormalizationForward", "mcdnnDivisiveNormalizationBackward")
def divisive(run):
    x, means, dy, y, dx, mean_gradient = (random(*SHAPE, seed=seed) for seed in range(6))
    scratch = {"temp": np.zeros(SHAPE), "temp2": np.zeros(SHAPE)}

    def around(n, c, i, j):
        return [(n, c, p, q) for p in range(max(i - 1, 0), min(i + 2, 4)) for q in range(max(j - 1, 0), min(j + 2, 5))]

    expected, gradient, expected_means = np.zeros(SHAPE), np.zeros(SHAPE), np.zeros(SHAPE)
    for place in np.ndindex(SHAPE):
        differences = {other: x[other] - means[place] for other in around(*place)}
        scale = 1.5 + 0.25 / 9 * sum(value**2 for value in differences.values())
        expected[place] = x[place] * scale**-0.75
        g = -0.75 * dy[place] * x[place] * scale**-1.75 * 0.25 / 9
        gradient[place] += dy[place] * scale**-0.75
        for other, value in differences.items():
            gradient[other] += 2 * g * value
        expected_means[place] = -2 * g * sum(differences.values())
    with maca.LRNDescriptor(3, 0.25, 0.75, 1.5) as lrn:
        run("mcdnnDivisiveNormalizationForward", normDesc=lrn, x=x, means=means, y=y, **scratch)
        close(y, expected)
        run("mcdnnDivisiveNormalizationBackward", normDesc=lrn, x=x, means=means, dy=dy, dx=dx, dMeans=mean_gradient,
            **scratch)  # fmt: skip
    close(dx, gradient)
    close(mean_gradient, expected_means)


class Statistics:
    """The normalization of x over batch and space, and its gradients, in float64."""

    def __init__(self, x, scale, bias):
        self.x, self.scale, self.bias = (array.astype(np.float64) for array in (x, scale, bias))
        self.mean, self.variance = self.over(np.mean), self.over(np.var)
        self.inverse = 1 / np.sqrt(self.variance + EPSILON)
        self.normalized = (self.x - self.mean) * self.inverse
        self.y = self.scale * self.normalized + self.bias

    def over(self, function, values=None):
        return function(self.x if values is None else values, axis=(0, 2, 3), keepdims=True)

    def gradients(self, dy):
        """Of x, scale and bias."""
        dy = dy.astype(np.float64)
        scale, bias = self.over(np.sum, dy * self.normalized), self.over(np.sum, dy)
        count = self.x.size / self.mean.size
        return self.scale * self.inverse * (dy - (bias + self.normalized * scale) / count), scale, bias


def parameters(count, dtype=np.float64):
    return [random(1, 3, 1, 1, seed=9 + k, low=0.5, dtype=dtype) for k in range(count)]


@case("mcdnnBatchNormalizationForwardTraining", "mcdnnBatchNormalizationBackward")
def batch_norm(run):
    x, dy, y, dx = (random(*SHAPE, seed=seed) for seed in range(4))
    scale, bias, mean, variance, saved, inverse, scale_gradient, bias_gradient = parameters(8)
    old_variance, expected = variance.copy(), Statistics(x, scale, bias)
    run("mcdnnBatchNormalizationForwardTraining", mode="MCDNN_BATCHNORM_SPATIAL", x=x, y=y, bnScale=scale, bnBias=bias,
        exponentialAverageFactor=0.25, resultRunningMean=mean, resultRunningVariance=variance, epsilon=EPSILON,
        resultSaveMean=saved, resultSaveInvVariance=inverse)  # fmt: skip
    close(y, expected.y)
    close(variance, 0.75 * old_variance + 0.25 * expected.variance * 40 / 39)
    close(inverse, expected.inverse)
    run("mcdnnBatchNormalizationBackward", mode="MCDNN_BATCHNORM_SPATIAL", x=x, dy=dy, dx=dx, bnScale=scale,
        resultBnScaleDiff=scale_gradient, resultBnBiasDiff=bias_gradient, epsilon=EPSILON, savedMean=saved,
        savedInvVariance=inverse)  # fmt: skip
    for got, wanted in zip((dx, scale_gradient, bias_gradient), expected.gradients(dy)):
        close(got, wanted, 1e-11)


@case("mcdnnBatchNormalizationForwardInference", "mcdnnNormalizationForwardInference")
def inference(run):
    x, y = random(*SHAPE), random(*SHAPE, seed=1)
    scale, bias, mean, variance = parameters(4)
    expected = scale * (x - mean) / np.sqrt(variance + EPSILON) + bias
    given = {"x": x, "y": y, "estimatedMean": mean, "estimatedVariance": variance, "epsilon": EPSILON}
    run("mcdnnBatchNormalizationForwardInference", mode="MCDNN_BATCHNORM_SPATIAL", bnScale=scale, bnBias=bias, **given)
    close(y, expected)
    y[...] = np.nan
    run("mcdnnNormalizationForwardInference", mode="MCDNN_NORM_PER_CHANNEL", normScale=scale, normBias=bias, groupCnt=1,
        **given)  # fmt: skip
    close(y, expected)


def fused_arrays():
    """x, z, dy and places for y, dx, dz: half precision, channels last; eight parameters."""
    arrays = [random(2, 4, 5, 3, seed=seed, dtype=np.float16).transpose(0, 3, 1, 2) for seed in range(6)]
    return arrays, parameters(8, np.float32)


def check_fused(arrays, values, train, differentiate):
    """relu(normalized x + z), its gradients, and what is saved; halves are rounded once."""
    x, z, dy, y, dx, dz = arrays
    scale, bias, *_, saved, inverse, scale_gradient, bias_gradient = values
    expected = Statistics(x, scale, bias)
    train()
    total = expected.y + z
    close(y, np.maximum(total, 0), 2**-10)
    close(saved, expected.mean, 1e-6)
    close(inverse, expected.inverse, 1e-5)
    differentiate()
    masked = np.where(total > 0, dy, 0)
    close(dz, masked, 0)
    for got, wanted, tolerance in zip((dx, scale_gradient, bias_gradient), expected.gradients(masked),
                                      (2**-9, 1e-4, 1e-4)):  # fmt: skip
        close(got, wanted, tolerance)


@case("mcdnnBatchNormalizationForwardTrainingEx", "mcdnnBatchNormalizationBackwardEx",
      "mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize", "mcdnnGetBatchNormalizationBackwardExWorkspaceSize",
      "mcdnnGetBatchNormalizationTrainingExReserveSpaceSize")  # fmt: skip
def fused_batch_norm(run):
    (x, z, dy, y, dx, dz), (scale, bias, mean, variance, saved, inverse, *gradients) = arrays, values = fused_arrays()
    with maca.ActivationDescriptor("relu") as relu:
        common = {"mode": "MCDNN_BATCHNORM_SPATIAL", "bnOps": "MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION",
                  "activationDesc": relu}  # fmt: skip
        reserve = space(run("mcdnnGetBatchNormalizationTrainingExReserveSpaceSize", xDesc=x, **common))
        works = [
            space(run("mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize", xDesc=x, zDesc=z, yDesc=y,
                      bnScaleBiasMeanVarDesc=scale, **common)),
            space(run("mcdnnGetBatchNormalizationBackwardExWorkspaceSize", xDesc=x, yDesc=y, dyDesc=dy, dzDesc=dz,
                      dxDesc=dx, dBnScaleBiasDesc=scale, **common)),
        ]  # fmt: skip
        common |= {"xData": x, "yData": y, "bnScaleData": scale, "bnBiasData": bias, "epsilon": EPSILON,
                   "reserveSpace": reserve, "reserveSpaceSizeInBytes": reserve.size}  # fmt: skip

        def train():
            run("mcdnnBatchNormalizationForwardTrainingEx", zData=z, exponentialAverageFactor=0.5,
                resultRunningMeanData=mean, resultRunningVarianceData=variance, saveMean=saved, saveInvVariance=inverse,
                workspace=works[0], workSpaceSizeInBytes=works[0].size, **common)  # fmt: skip

        def differentiate():
            run("mcdnnBatchNormalizationBackwardEx", dyData=dy, dzData=dz, dxData=dx, dBnScaleData=gradients[0],
                dBnBiasData=gradients[1], savedMean=saved, savedInvVariance=inverse, workspace=works[1],
                workSpaceSizeInBytes=works[1].size, **common)  # fmt: skip

        check_fused(arrays, values, train, differentiate)


@case("mcdnnNormalizationForwardTraining", "mcdnnNormalizationBackward",
      "mcdnnGetNormalizationForwardTrainingWorkspaceSize", "mcdnnGetNormalizationBackwardWorkspaceSize",
      "mcdnnGetNormalizationTrainingReserveSpaceSize")  # fmt: skip
def fused_normalization(run):
    (x, z, dy, y, dx, dz), (scale, bias, mean, variance, saved, inverse, *gradients) = arrays, values = fused_arrays()
    with maca.ActivationDescriptor("relu") as relu:
        common = {"mode": "MCDNN_NORM_PER_CHANNEL", "normOps": "MCDNN_NORM_OPS_NORM_ADD_ACTIVATION",
                  "activationDesc": relu, "groupCnt": 1}  # fmt: skip
        reserve = space(run("mcdnnGetNormalizationTrainingReserveSpaceSize", xDesc=x, **common))
        works = [
            space(run("mcdnnGetNormalizationForwardTrainingWorkspaceSize", xDesc=x, zDesc=z, yDesc=y,
                      normScaleBiasDesc=scale, normMeanVarDesc=saved, **common)),
            space(run("mcdnnGetNormalizationBackwardWorkspaceSize", xDesc=x, yDesc=y, dyDesc=dy, dzDesc=dz, dxDesc=dx,
                      dNormScaleBiasDesc=scale, normMeanVarDesc=saved, **common)),
        ]  # fmt: skip
        common |= {"xData": x, "yData": y, "epsilon": EPSILON, "reserveSpace": reserve,
                   "reserveSpaceSizeInBytes": reserve.size}  # fmt: skip

        def train():
            run("mcdnnNormalizationForwardTraining", normScale=scale, normBias=bias, exponentialAverageFactor=0.5,
                resultRunningMean=mean, resultRunningVariance=variance, resultSaveMean=saved,
                resultSaveInvVariance=inverse, zData=z, workspace=works[0], workSpaceSizeInBytes=works[0].size,
                **common)  # fmt: skip

        def differentiate():
            run("mcdnnNormalizationBackward", dyData=dy, dzData=dz, dxData=dx, normScaleData=scale, normBiasData=bias,
                dNormScaleData=gradients[0], dNormBiasData=gradients[1], savedMean=saved, savedInvVariance=inverse,
                workSpace=works[1], workSpaceSizeInBytes=works[1].size, **common)  # fmt: skip

        check_fused(arrays, values, train, differentiate)


@case("mcdnnDropoutForward", "mcdnnDropoutBackward", "mcdnnDropoutGetStatesSize")
def dropout(run):
    x, dy, y, dx = (random(*SHAPE, seed=seed, low=0.5) for seed in range(4))
    reserve = space(run("mcdnnDropoutGetReserveSpaceSize", xdesc=x))
    with maca.DropoutDescriptor(0.25, seed=3) as made:
        assert made.states().size == run("mcdnnDropoutGetStatesSize")
        common = {"dropoutDesc": made, "reserveSpace": reserve, "reserveSpaceSizeInBytes": reserve.size}
        run("mcdnnDropoutForward", x=x, y=y, **common)
        run("mcdnnDropoutBackward", dy=dy, dx=dx, **common)
    kept = y != 0
    assert 0 < kept.sum() < kept.size
    close(y, np.where(kept, x / 0.75, 0), 1e-7)  # 1 / (1 - p) is a float
    close(dx, np.where(kept, dy / 0.75, 0), 1e-7)


@case("mcdnnSpatialTfGridGeneratorForward", "mcdnnSpatialTfGridGeneratorBackward")
def grid(run):
    theta, made, upstream, theta_gradient = (random(*shape, seed=seed) for seed, shape in enumerate(
        [(2, 2, 3), (2, 4, 5, 2), (2, 4, 5, 2), (2, 2, 3)]))  # fmt: skip
    rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
    points = np.stack([columns, rows, np.ones((4, 5))], -1)
    with maca.SpatialTransformerDescriptor(SHAPE, np.float64) as transformer:
        run("mcdnnSpatialTfGridGeneratorForward", stDesc=transformer, theta=theta, grid=made)
        close(made, np.einsum("hwk,nok->nhwo", points, theta))
        run("mcdnnSpatialTfGridGeneratorBackward", stDesc=transformer, dgrid=upstream, dtheta=theta_gradient)
    close(theta_gradient, np.einsum("nhwo,hwk->nok", upstream, points))


@case("mcdnnSpatialTfSamplerForward", "mcdnnSpatialTfSamplerBackward")
def sampler(run):
    """At points between four pixels, where the sum is plain to write down."""
    x, dy, y, dx = (random(*SHAPE, seed=seed) for seed in range(4))
    points, point_gradient = random(2, 4, 5, 2, seed=5) * 0.9, random(2, 4, 5, 2, seed=6)
    expected, gradient, wanted = np.zeros(SHAPE), np.zeros(SHAPE), np.zeros(points.shape)
    for n, i, j in np.ndindex(2, 4, 5):
        column, row = (points[n, i, j] + 1) * [2, 1.5]
        left, top = int(column), int(row)
        for q, p in ((left, top), (left + 1, top), (left, top + 1), (left + 1, top + 1)):
            across, down = 1 - abs(column - q), 1 - abs(row - p)
            expected[n, :, i, j] += across * down * x[n, :, p, q]
            gradient[n, :, p, q] += across * down * dy[n, :, i, j]
            share = (dy[n, :, i, j] * x[n, :, p, q]).sum()
            signs = 1 if q > left else -1, 1 if p > top else -1
            wanted[n, i, j] += [2 * signs[0] * down * share, 1.5 * signs[1] * across * share]
    with maca.SpatialTransformerDescriptor(SHAPE, np.float64) as transformer:
        run("mcdnnSpatialTfSamplerForward", stDesc=transformer, x=x, grid=points, y=y)
        close(y, expected)
        run("mcdnnSpatialTfSamplerBackward", stDesc=transformer, x=x, dx=dx, dy=dy, grid=points, dgrid=point_gradient)
    close(dx, gradient)
    close(point_gradient, wanted)


@case("mcdnnAddTensor", "mcdnnSetTensor", "mcdnnScaleTensor", "mcdnnTransformTensor", "mcdnnOpTensor")
def arithmetic(run):
    a, b, c = random(*SHAPE), random(1, 3, 1, 1, seed=1), random(*SHAPE, seed=2)
    expected = 2 * b - 3 * c
    run("mcdnnAddTensor", A=b, C=c, alpha=2, beta=-3)
    close(c, expected)
    with maca.OpTensorDescriptor(lib.MCDNN_OP_TENSOR_MAX, lib.MCDNN_DATA_DOUBLE) as larger:
        run("mcdnnOpTensor", opTensorDesc=larger, A=a, B=b, C=c, alpha1=2, alpha2=3, beta=1)
    close(c, np.maximum(2 * a, 3 * b) + expected)
    last = np.zeros((2, 4, 5, 3)).transpose(0, 3, 1, 2)
    run("mcdnnTransformTensor", x=a, y=last, alpha=4)
    close(last, 4 * a)
    run("mcdnnScaleTensor", y=last, alpha=0.25)
    close(last, a)
    run("mcdnnSetTensor", y=last, valuePtr=7.5)
    close(last, np.full(SHAPE, 7.5))


def correlation(x, w):
    """Without padding, with stride 1."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=tuple(range(2, x.ndim)))
    taps = [1, *range(x.ndim, windows.ndim)], [1, *range(2, w.ndim)]
    return np.moveaxis(np.tensordot(windows, w, taps), -1, 1)


@case("mcdnnConvolutionForward", "mcdnnConvolutionBackwardData", "mcdnnConvolutionBackwardFilter",
      "mcdnnConvolutionBackwardBias", "mcdnnConvolutionBiasActivationForward", "mcdnnIm2Col",
      "mcdnnFindConvolutionForwardAlgorithmEx", "mcdnnFindConvolutionBackwardDataAlgorithmEx",
      "mcdnnFindConvolutionBackwardFilterAlgorithmEx")  # fmt: skip
def convolution(run):
    for space, last in (((6,), False), ((6, 5), False), ((6, 5), True)):
        x, w, dy, dx = random(2, 3, *space), random(4, 3, *[3] * len(space), seed=1), None, random(2, 3, *space, seed=2)
        if last:
            w = np.ascontiguousarray(np.moveaxis(w, 1, -1)).transpose(0, 3, 1, 2)
        expected = correlation(x, w)
        y, dy, dw = np.full(expected.shape, np.nan), random(*expected.shape, seed=3), random(*w.shape, seed=4)
        axes, old_dx, old_dw = len(space), dx.copy(), dw.copy()
        with maca.ConvolutionDescriptor([0] * axes, [1] * axes, compute_type=lib.MCDNN_DATA_DOUBLE) as conv:
            run("mcdnnConvolutionForward", x=x, w=w, convDesc=conv, y=y)
            close(y, expected)
            run("mcdnnConvolutionBackwardData", w=w, dy=dy, convDesc=conv, dx=dx, alpha=2, beta=1)
            run("mcdnnConvolutionBackwardFilter", x=x, dy=dy, convDesc=conv, dw=dw, alpha=2, beta=1)
            spread = np.pad(dy, [(0, 0), (0, 0)] + [(2, 2)] * axes)
            flipped = np.flip(w, tuple(range(2, w.ndim))).swapaxes(0, 1)
            close(dx, 2 * correlation(spread, flipped) + old_dx)
            close(dw, 2 * correlation(x.swapaxes(0, 1), dy.swapaxes(0, 1)).swapaxes(0, 1) + old_dw)
            bias, z = random(1, 4, *[1] * axes, seed=5), random(*expected.shape, seed=6)
            with maca.ActivationDescriptor("relu", propagate_nan=False) as relu:
                run("mcdnnConvolutionBiasActivationForward", x=x, w=w, convDesc=conv, algo=1, z=z, bias=bias, y=y,
                    activationDesc=relu, alpha2=0.5)  # fmt: skip
            close(y, np.maximum(expected + 0.5 * z + bias, 0))
            columns = np.zeros((w[0].size, y[:, 0].size))
            run("mcdnnIm2Col", x=x, wDesc=w, convDesc=conv, colBuffer=columns)
            close(np.moveaxis((np.ascontiguousarray(w).reshape(4, -1) @ columns).reshape(4, 2, *y.shape[2:]), 0, 1),
                  expected)  # fmt: skip
            for direction, kind, operands in (("Forward", "Fwd", {"x": x, "w": w, "y": y}),
                                              ("BackwardData", "BwdData", {"w": w, "dy": dy, "dx": dx}),
                                              ("BackwardFilter", "BwdFilter", {"x": x, "y": y, "dyDesc": dy, "dw": dw})):
                found = maca.ffi.new(f"mcdnnConvolution{kind}AlgoPerf_t[9]")
                count = run(f"mcdnnFindConvolution{direction}AlgorithmEx", convDesc=conv, requestedAlgoCount=9,
                            perfResults=found, **operands)  # fmt: skip
                assert count > 1 and found[0].status == 0 and found[0].time > 0
            size = maca.run("mcdnnGetConvolutionForwardWorkspaceSize", xDesc=x, wDesc=w, convDesc=conv, yDesc=y)
            assert size == found[0].memory
        gradient = np.zeros_like(bias)
        run("mcdnnConvolutionBackwardBias", dy=dy, db=gradient)
        close(gradient, dy.sum((0, *range(2, dy.ndim)), keepdims=True))


def test_filters_are_packed():
    x, y = random(1, 3, 4, 4), np.zeros((1, 2, 4, 4))
    with maca.ConvolutionDescriptor((0, 0), (1, 1), compute_type=lib.MCDNN_DATA_DOUBLE) as conv:
        with pytest.raises(TypeError, match="filters are packed"):
            maca.run("mcdnnConvolutionForward", x=x, w=random(2, 6, 1, 1)[:, ::2], convDesc=conv, y=y)


@case("mcdnnReorderFilterAndBias")
def reordering(run):
    values = np.random.default_rng(0).integers(-128, 128, (32, 32), np.int8)
    bias, places = random(32, dtype=np.float32), [np.zeros((32, 32), np.int8), np.zeros(32, np.float32)]
    with maca.FilterDescriptor((32, 32, 1, 1), lib.MCDNN_DATA_INT8x32, lib.MCDNN_TENSOR_NCHW_VECT_C) as of_filter:
        run("mcdnnReorderFilterAndBias", filterDesc=of_filter, reorderType="MCDNN_NO_REORDER", filterData=values,
            biasData=bias, reorderedFilterData=places[0], reorderBias=1, reorderedBiasData=places[1])  # fmt: skip
    np.testing.assert_array_equal(places[0], values)
    np.testing.assert_array_equal(places[1], bias)


@case("mcdnnCTCLoss", "mcdnnCTCLoss_v8")
def ctc_loss(run):
    """Two labels in two steps have one way; one label in two steps has three."""
    probabilities = np.float32([[[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]], [[0.25, 0.5, 0.25], [0.125, 0.5, 0.375]]])
    labels, lengths, steps = np.int32([1, 2, 1]), np.int32([2, 1]), np.int32([2, 2])
    expected = -np.log([0.25 * 0.25, 0.5 * 0.5 + 0.5 * 0.125 + 0.25 * 0.5])
    with maca.CTCLossDescriptor() as loss:
        activations = np.log(probabilities)
        common = {"probs": activations, "ctcLossDesc": loss}
        size = maca.run("mcdnnGetCTCLossWorkspaceSize", probsDesc=activations, gradientsDesc=activations, labels=labels,
                        labelLengths=lengths, inputLengths=steps, ctcLossDesc=loss)  # fmt: skip
        common |= {"workspace": space(size), "workSpaceSizeInBytes": size}
        for function, names in (("mcdnnCTCLoss", ("hostLabels", "hostLabelLengths", "hostInputLengths")),
                                ("mcdnnCTCLoss_v8", ("labels", "labelLengths", "inputLengths"))):
            costs, gradients = np.zeros(2, np.float32), np.zeros_like(activations)
            run(function, costs=costs, gradients=gradients, **dict(zip(names, (labels, lengths, steps))), **common)
            close(costs, expected, 1e-6)
            close(gradients[:, 0], probabilities[:, 0] - np.eye(3)[[1, 2]], 1e-6)


@case("mcdnnRNNForward", "mcdnnRNNBackwardData_v8", "mcdnnRNNBackwardWeights_v8", "mcdnnGetRNNWeightParams")
def recurrent(run):
    """One tanh layer, two steps: everything is plain to write down."""
    x, h, dy = random(2, 3, 4, seed=1), random(1, 3, 5, seed=2), random(2, 3, 5, seed=3)
    double = {"data_type": lib.MCDNN_DATA_DOUBLE}
    with maca.RNNDescriptor(lib.MCDNN_RNN_TANH, 4, 5, **double) as net, maca.RNNDataDescriptor([2] * 3, 4, **double) as of_x, \
            maca.RNNDataDescriptor([2] * 3, 5, **double) as of_y:
        weights = net.weights()
        weights[...] = random(weights.size, seed=4)
        (of_input, first), (of_state, second) = (net.parameter(weights, 0, matrix) for matrix in range(2))
        assert of_input.shape == (5, 4) and of_state.shape == (5, 5) and first.size == second.size == 5
        sizes = maca.run("mcdnnGetRNNTempSpaceSizes", rnnDesc=net, fMode="MCDNN_FWD_MODE_TRAINING", xDesc=of_x)
        spaces = {"workSpace": space(sizes["workSpaceSize"]), "workSpaceSize": sizes["workSpaceSize"],
                  "reserveSpace": space(sizes["reserveSpaceSize"]), "reserveSpaceSize": sizes["reserveSpaceSize"],
                  "weightSpaceSize": weights.nbytes, "rnnDesc": net, "xDesc": of_x, "yDesc": of_y, "hx": h}  # fmt: skip
        y, hy = np.zeros_like(dy), np.zeros_like(h)
        run("mcdnnRNNForward", fwdMode="MCDNN_FWD_MODE_TRAINING", x=x, y=y, hy=hy, weightSpace=weights, **spaces)
        states, slopes, above = [h[0]], [], np.zeros((3, 5))
        for step in range(2):
            states.append(np.tanh(x[step] @ of_input.T + states[-1] @ of_state.T + first.ravel() + second.ravel()))
        close(y, np.stack(states[1:]))
        close(hy[0], states[2])
        for step in (1, 0):
            slopes.insert(0, (dy[step] + above) * (1 - states[step + 1] ** 2))
            above = slopes[0] @ of_state
        dx, dhx, gradients = np.zeros_like(x), np.zeros_like(h), np.zeros_like(weights)
        run("mcdnnRNNBackwardData_v8", y=y, dy=dy, dx=dx, dhx=dhx, weightSpace=weights, **spaces)
        close(dx, np.stack(slopes) @ of_input)
        close(dhx[0], above)
        run("mcdnnRNNBackwardWeights_v8", addGrad="MCDNN_WGRAD_MODE_ADD", x=x, y=y, dweightSpace=gradients, **spaces)
        close(net.parameter(gradients, 0, 0)[0], sum(slope.T @ given for slope, given in zip(slopes, x)))
        close(net.parameter(gradients, 0, 1)[0], sum(slope.T @ state for slope, state in zip(slopes, states)))
        close(net.parameter(gradients, 0, 1)[1].ravel(), sum(slopes).sum(0))
        run("mcdnnGetRNNWeightParams", pseudoLayer=0, weightSpace=weights, weightSpaceSize=weights.nbytes, rnnDesc=net,
            mDesc=maca.TensorDescriptor((1,), np.float64), mAddr=maca.ffi.new("void **"),
            bDesc=maca.TensorDescriptor((1,), np.float64), bAddr=maca.ffi.new("void **"))  # fmt: skip


@case("mcdnnReduceTensor", "mcdnnGetReductionWorkspaceSize", "mcdnnGetReductionIndicesSize")
def reduction(run):
    a, c = random(*SHAPE), np.zeros((1, 3, 1, 1))
    with maca.ReduceTensorDescriptor(lib.MCDNN_REDUCE_TENSOR_MAX, lib.MCDNN_DATA_DOUBLE, indices=True) as largest:
        common = {"reduceTensorDesc": largest, "aDesc": a, "cDesc": c}
        work = space(run("mcdnnGetReductionWorkspaceSize", **common))
        places = np.zeros(run("mcdnnGetReductionIndicesSize", **common) // 4, np.uint32)
        run("mcdnnReduceTensor", reduceTensorDesc=largest, indices=places, indicesSizeInBytes=places.nbytes,
            workspace=work, workspaceSizeInBytes=work.size, A=a, C=c)  # fmt: skip
    channels = a.transpose(1, 0, 2, 3).reshape(3, -1)
    close(c.ravel(), channels.max(1), 0)
    np.testing.assert_array_equal(places, channels.argmax(1))


@case("mcdnnTransformTensorEx", "mcdnnTransformFilter")
def folding(run):
    x = random(2, 3, 4, 6)
    folded = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3)
    with maca.TensorTransformDescriptor([0] * 4, [0] * 4, [2, 2]) as fold:
        y = np.zeros(folded.shape)
        run("mcdnnTransformTensorEx", transDesc=fold, srcData=x, destData=y)
        close(y, folded, 0)
        y[...] = 0
        filters = [maca.FilterDescriptor(array.shape, lib.MCDNN_DATA_DOUBLE) for array in (x, folded)]
        run("mcdnnTransformFilter", transDesc=fold, srcDesc=filters[0], srcData=x, destDesc=filters[1], destData=y)
        close(y, folded, 0)


@pytest.mark.parametrize("check", dict.fromkeys(CASES.values()), ids=lambda check: check.__name__)
def test_function(check):
    called = set()

    def run(function, **arguments):
        called.add(function)
        return maca.run(function, **arguments)

    check(run)
    assert {function for function, known in CASES.items() if known is check} <= called


def test_no_function_is_left_out():
    def computes(prototype):
        memory = [p for p in prototype.parameters if "void *" in p.text and p.name not in SCALING_FACTORS]
        return bool(memory) and any(p.name == "handle" for p in prototype.parameters)

    found = {name for name, known in prototypes().items() if name.startswith("mcdnn") and computes(known)}
    assert found - set(CASES) == OTHERS
    assert len(found & set(CASES)) == 48


# ---- what goes with them ----


def test_getters_give_what_was_set():
    with maca.PoolingDescriptor("average_exclude_padding", (3, 2), (1, 0), (2, 5)) as pooling:
        got = maca.run("mcdnnGetPooling2dDescriptor", poolingDesc=pooling)
        assert got == {"mode": 2, "maxpoolingNanOpt": 1, "windowHeight": 3, "windowWidth": 2, "verticalPadding": 1,
                       "horizontalPadding": 0, "verticalStride": 2, "horizontalStride": 5}  # fmt: skip
    with maca.TensorDescriptor((2, 3, 4, 5), np.float16, (60, 1, 15, 3)) as tensor:
        sizes, strides = np.zeros(4, np.int32), np.zeros(4, np.int32)
        got = maca.run("mcdnnGetTensorNdDescriptor", tensorDesc=tensor, nbDimsRequested=4, dimA=sizes, strideA=strides)
        assert got == {"dataType": lib.MCDNN_DATA_HALF, "nbDims": 4}
        assert (*sizes, *strides) == (2, 3, 4, 5, 60, 1, 15, 3)
        assert maca.run("mcdnnGetTensorNdDescriptor", tensorDesc=tensor, nbDimsRequested=4)["nbDims"] == 4
        with pytest.raises(TypeError, match="dimA is int64, needed are elements of 4 bytes"):
            maca.run("mcdnnGetTensorNdDescriptor", tensorDesc=tensor, nbDimsRequested=4, dimA=sizes.astype(np.int64))


def test_dropout_goes_on_from_a_saved_state():
    def drawn(descriptor):
        y, reserve = np.zeros((1, 1, 40, 50)), space(maca.run("mcdnnDropoutGetReserveSpaceSize", xdesc=ones))
        maca.run("mcdnnDropoutForward", dropoutDesc=descriptor, x=ones, y=y, reserveSpace=reserve,
                 reserveSpaceSizeInBytes=reserve.size)  # fmt: skip
        return y

    ones = np.ones((1, 1, 40, 50))
    with maca.DropoutDescriptor(0.5, seed=9) as first, maca.DropoutDescriptor(0.5, seed=9) as again:
        one, states, two = drawn(first), first.states(), drawn(first)
        np.testing.assert_array_equal(drawn(again), one)
    with maca.DropoutDescriptor(0.5, seed=9, states=states) as restored:
        np.testing.assert_array_equal(drawn(restored), two)
    assert (one != two).any()


def test_algorithms_are_saved_and_restored():
    with maca.AlgorithmDescriptor(5) as saved, maca.AlgorithmDescriptor() as restored:
        assert saved.number == 5
        memory = np.zeros(maca.run("mcdnnGetAlgorithmSpaceSize", algoDesc=saved), np.uint8)
        common = {"algoSpace": memory, "algoSpaceSizeInBytes": memory.size}
        maca.run("mcdnnSaveAlgorithm", algoDesc=saved, **common)
        maca.run("mcdnnRestoreAlgorithm", algoDesc=restored, **common)
        assert restored.number == 5


def test_layers_blend_with_the_old_result():
    x = random(2, 3, 4, 6, dtype=np.float32)
    with maca.PoolingDescriptor("average_include_padding", (2, 2)) as pooling, maca.LRNDescriptor() as lrn:
        for forward, backward, descriptor in (
            (maca.pooling_forward, maca.pooling_backward, pooling),
            (maca.lrn_cross_channel_forward, maca.lrn_cross_channel_backward, lrn),
        ):
            y = forward(x, descriptor)
            dy, old_y, old_dx = random(*y.shape, seed=1), random(*y.shape, seed=2), random(*x.shape, seed=3)
            dy, old_y, old_dx = (array.astype(np.float32) for array in (dy, old_y, old_dx))
            copies = old_y.copy(), old_dx.copy()
            close(forward(x, descriptor, 2, -0.5, old_y), 2 * y - 0.5 * old_y, 1e-6)
            dx = backward(y, dy, x, descriptor)
            close(backward(y, dy, x, descriptor, 2, -0.5, old_dx), 2 * dx - 0.5 * old_dx, 1e-6)
            np.testing.assert_array_equal((*map(np.sum, copies),), (old_y.sum(), old_dx.sum()))
            with pytest.raises(ValueError, match="so the old y is needed"):
                forward(x, descriptor, beta=1.0)


def test_a_prepared_call_is_made_many_times():
    total, step = np.zeros(SHAPE), random(*SHAPE)
    with maca.PreparedCall("mcdnnAddTensor", A=step, C=total, beta=1.0) as add:
        for _ in range(3):
            add()
        add.fetch()
    close(total, 3 * step)


def test_an_array_given_twice_is_in_place():
    x, y = random(*SHAPE), random(*SHAPE, seed=1)
    with maca.ActivationDescriptor("relu") as relu:
        with maca.PreparedCall("mcdnnActivationForward", activationDesc=relu, x=x, y=x) as call:
            assert call.values[4] == call.values[7]
        with maca.PreparedCall("mcdnnActivationForward", activationDesc=relu, x=x, y=y) as call:
            assert call.values[4] != call.values[7]
