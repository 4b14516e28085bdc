"""Batch normalization against NumPy models written from the formulas, in extended precision (mcdnn 6.2)."""

import itertools

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import run_python
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, LAYOUTS, Buffer, Tensor, activation, assert_close,
                                      digest_of, handle, nhwc_strides, ok, packed_strides, random, run, scale)

PER_ACTIVATION, SPATIAL, PERSISTENT = (lib.MCDNN_BATCHNORM_PER_ACTIVATION, lib.MCDNN_BATCHNORM_SPATIAL,
                                       lib.MCDNN_BATCHNORM_SPATIAL_PERSISTENT)
BN, BN_ACTIVATION, BN_ADD = (lib.MCDNN_BATCHNORM_OPS_BN, lib.MCDNN_BATCHNORM_OPS_BN_ACTIVATION,
                             lib.MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
RELU, SWISH = lib.MCDNN_ACTIVATION_RELU, lib.MCDNN_ACTIVATION_SWISH
ULPS = {FLOAT: 16, DOUBLE: 64, HALF: 2, BFLOAT16: 2}
EPSILON = 1e-3
SIZES = [(2, 3, 4, 5), (1, 1, 1, 1), (5, 1, 1, 1), (3, 2, 37, 41), (2, 5, 3, 2, 7), (4, 1031, 1, 1), (33, 20, 31, 33),
         # small planes: blocks and a rest, one image, more lines than are summed at once, a plane as a row, cut images
         (3, 70, 7, 7), (1, 40, 13, 13), (37, 21, 3, 3), (5, 3, 28, 28), (2100, 9, 2, 2)]


def parameter_sizes(sizes, mode):
    return (1, *sizes[1:]) if mode == PER_ACTIVATION else (1, sizes[1], *[1] * (len(sizes) - 2))


def parameter_type(data_type):
    return DOUBLE if data_type == DOUBLE else FLOAT


def axes_of(mode, rank):
    return (0,) if mode == PER_ACTIVATION else (0, *range(2, rank))


def statistics(x, mode):
    x, axes = x.astype(np.longdouble), axes_of(mode, x.ndim)
    mean = x.mean(axes, keepdims=True)
    return mean, ((x - mean) ** 2).mean(axes, keepdims=True), x.size // mean.size


def forward_model(x, gain, bias, mode, epsilon=EPSILON):
    mean, variance, _ = statistics(x, mode)
    return gain * (x - mean) / np.sqrt(variance + epsilon) + bias


def backward_model(x, g, gain, mode, epsilon=EPSILON):
    mean, variance, m = statistics(x, mode)
    axes, inverse, g = axes_of(mode, x.ndim), 1 / np.sqrt(variance + epsilon), g.astype(np.longdouble)
    normal = (x - mean) * inverse
    bias_gradient, gain_gradient = g.sum(axes, keepdims=True), (g * normal).sum(axes, keepdims=True)
    return gain * inverse * (g - bias_gradient / m - normal * gain_gradient / m), gain_gradient, bias_gradient


class Case:
    """Operands of one call, made from a seed."""

    def __init__(self, sizes, mode, data_type=FLOAT, layout=packed_strides, seed=0, offset=0.0):
        kept, kind = parameter_sizes(sizes, mode), parameter_type(data_type)
        tensor = lambda salt: Tensor(random(sizes, data_type, seed + salt), data_type, layout(sizes))  # noqa: E731
        parameter = lambda salt: Tensor(random(kept, kind, seed + salt) + 2.5, kind)  # noqa: E731
        self.sizes, self.mode, self.data_type, self.kind = sizes, mode, data_type, kind
        self.x = Tensor(random(sizes, data_type, seed + 1) + offset, data_type, layout(sizes))
        self.y, self.dy, self.z, self.dx, self.dz = (tensor(salt) for salt in (2, 3, 4, 5, 6))
        self.gain, self.bias, self.running_mean, self.running_variance = (parameter(salt) for salt in (7, 8, 9, 10))
        self.mean, self.inverse, self.gain_gradient, self.bias_gradient = (parameter(salt) for salt in (11, 12, 13, 14))

    def scale(self, value):
        return scale(value, self.data_type)

    def train(self, alpha=1.0, beta=0.0, factor=0.25, running=True, saved=True):
        run("mcdnnBatchNormalizationForwardTraining", handle=handle(), mode=self.mode, alpha=self.scale(alpha),
            beta=self.scale(beta), xDesc=self.x, x=self.x, yDesc=self.y, y=self.y, bnScaleBiasMeanVarDesc=self.gain,
            bnScale=self.gain, bnBias=self.bias, exponentialAverageFactor=factor,
            resultRunningMean=self.running_mean if running else None,
            resultRunningVariance=self.running_variance if running else None, epsilon=EPSILON,
            resultSaveMean=self.mean if saved else None, resultSaveInvVariance=self.inverse if saved else None)

    def differentiate(self, factors=(1.0, 0.0, 1.0, 0.0), saved=True):
        a, b, c, d = (self.scale(value) for value in factors)
        run("mcdnnBatchNormalizationBackward", handle=handle(), mode=self.mode, alphaDataDiff=a, betaDataDiff=b,
            alphaParamDiff=c, betaParamDiff=d, xDesc=self.x, x=self.x, dyDesc=self.dy, dy=self.dy, dxDesc=self.dx,
            dx=self.dx, bnScaleBiasDiffDesc=self.gain, bnScale=self.gain, resultBnScaleDiff=self.gain_gradient,
            resultBnBiasDiff=self.bias_gradient, epsilon=EPSILON, savedMean=self.mean if saved else None,
            savedInvVariance=self.inverse if saved else None)

    def fused(self, ops, descriptor, reserve, alpha=1.0, beta=0.0):
        adds = ops == BN_ADD
        run("mcdnnBatchNormalizationForwardTrainingEx", handle=handle(), mode=self.mode, bnOps=ops,
            alpha=self.scale(alpha), beta=self.scale(beta), xDesc=self.x, xData=self.x, zDesc=self.z if adds else None,
            zData=self.z if adds else None, yDesc=self.y, yData=self.y, bnScaleBiasMeanVarDesc=self.gain,
            bnScaleData=self.gain, bnBiasData=self.bias, exponentialAverageFactor=1.0, resultRunningMeanData=None,
            resultRunningVarianceData=None, epsilon=EPSILON, saveMean=self.mean, saveInvVariance=self.inverse,
            activationDesc=descriptor, workspace=None, workSpaceSizeInBytes=0, reserveSpace=reserve,
            reserveSpaceSizeInBytes=reserve.content.nbytes if reserve else 0)

    def differentiate_fused(self, ops, descriptor, reserve, alpha=1.0, beta=0.0):
        adds, one, zero = ops == BN_ADD, self.scale(1), self.scale(0)
        run("mcdnnBatchNormalizationBackwardEx", handle=handle(), mode=self.mode, bnOps=ops,
            alphaDataDiff=self.scale(alpha), betaDataDiff=self.scale(beta), alphaParamDiff=one, betaParamDiff=zero,
            xDesc=self.x, xData=self.x, yDesc=self.y if ops else None, yData=self.y if ops else None, dyDesc=self.dy,
            dyData=self.dy, dzDesc=self.dz if adds else None, dzData=self.dz if adds else None, dxDesc=self.dx,
            dxData=self.dx, dBnScaleBiasDesc=self.gain, bnScaleData=self.gain, bnBiasData=self.bias if ops else None,
            dBnScaleData=self.gain_gradient, dBnBiasData=self.bias_gradient, epsilon=EPSILON, savedMean=self.mean,
            savedInvVariance=self.inverse, activationDesc=descriptor, workspace=None, workSpaceSizeInBytes=0,
            reserveSpace=reserve, reserveSpaceSizeInBytes=reserve.content.nbytes if reserve else 0)

    def reserve(self, ops, descriptor):
        size = ffi.new("size_t *")
        ok(lib.mcdnnGetBatchNormalizationTrainingExReserveSpaceSize(
            handle(), self.mode, ops, descriptor if descriptor else ffi.NULL, self.x.descriptor, size))
        return Buffer(np.full(size[0], 0x5A, np.uint8)) if size[0] else None

    def assert_gradient(self, dx, expected, prior=0.0):
        magnitude = np.abs(self.gain.values() * self.inverse.values()) * (np.abs(self.dy.values()).max() + 1) * 2
        assert_close(dx, expected, self.data_type, ULPS[self.data_type], floor=magnitude + np.abs(prior))

    def assert_parameters(self, pairs):
        """The saved mean is rounded to its type: that error is multiplied with the inverse deviation."""
        m = self.x.values().size // self.gain.values().size
        floor = m**0.5 * 4 * (1 + self.inverse.values())
        for actual, expected in pairs:
            assert_close(actual, expected, self.kind, 8 if self.kind == FLOAT else 64, floor=floor)


@pytest.mark.parametrize("data_type", [FLOAT, DOUBLE, HALF, BFLOAT16])
@pytest.mark.parametrize("mode", [PER_ACTIVATION, SPATIAL, PERSISTENT])
@pytest.mark.parametrize("sizes", SIZES)
def test_training_follows_the_formulas(sizes, mode, data_type):
    case = Case(sizes, mode, data_type)
    x, prior, gain, bias = case.x.values(), case.y.values(), case.gain.values(), case.bias.values()
    old_mean, old_variance = case.running_mean.values(), case.running_variance.values()
    case.train(1.5, -0.5)
    model = forward_model(x, gain, bias, mode)
    floor = np.abs(1.5 * model) + np.abs(0.5 * prior) + np.abs(1.5 * gain) * (1 + np.abs(x)) + np.abs(1.5 * bias)
    assert_close(case.y.values(), 1.5 * model - 0.5 * prior, data_type, ULPS[data_type], floor=floor)
    mean, variance, m = statistics(x, mode)
    sample = variance * m / (m - 1) if m > 1 else variance
    for actual, expected in ((case.mean.values(), mean), (case.inverse.values(), 1 / np.sqrt(variance + EPSILON)),
                             (case.running_mean.values(), old_mean * 0.75 + mean * 0.25),
                             (case.running_variance.values(), old_variance * 0.75 + sample * 0.25)):
        assert_close(actual, expected, case.kind, 4 if case.kind == FLOAT else 32)


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("data_type", [FLOAT, DOUBLE, HALF])
@pytest.mark.parametrize("mode", [PER_ACTIVATION, SPATIAL])
@pytest.mark.parametrize("sizes", SIZES)
def test_backward_follows_the_formulas(sizes, mode, data_type, saved):
    case = Case(sizes, mode, data_type)
    case.train()
    prior, old_gain, old_bias = case.dx.values(), case.gain_gradient.values(), case.bias_gradient.values()
    case.differentiate((1.25, 0.5, 0.75, -2.0), saved)
    dx, gain_gradient, bias_gradient = backward_model(case.x.values(), case.dy.values(), case.gain.values(), mode)
    case.assert_gradient(case.dx.values(), 1.25 * dx + 0.5 * prior, prior)
    case.assert_parameters([(case.gain_gradient.values(), 0.75 * gain_gradient - 2.0 * old_gain),
                            (case.bias_gradient.values(), 0.75 * bias_gradient - 2.0 * old_bias)])


def test_results_larger_than_caches():
    """These are written past the caches where they lie on whole vectors, and otherwise not."""
    test_backward_follows_the_formulas((28, 48, 56, 56), SPATIAL, FLOAT, True)
    test_training_follows_the_formulas((25, 48, 59, 61), SPATIAL, FLOAT)


@pytest.mark.parametrize("mode", [PER_ACTIVATION, SPATIAL])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [(3, 5, 4, 7), (2, 3, 2, 3, 2), (2, 1030, 2, 2), (7, 3, 61, 63)])
def test_layouts_agree_and_gaps_stay(sizes, layout, mode):
    case = Case(sizes, mode, layout=LAYOUTS[layout])
    case.y = Tensor(np.full(sizes, np.nan), strides=LAYOUTS["nhwc"](sizes))
    case.dx = Tensor(np.full(sizes, np.nan), strides=LAYOUTS["gapped"](sizes))
    case.gain_gradient, case.bias_gradient = (Tensor(np.full(case.gain.sizes, np.nan)) for _ in range(2))
    case.train()
    expected = forward_model(case.x.values(), case.gain.values(), case.bias.values(), mode)
    assert_close(case.y.values(), expected, FLOAT, 16, floor=np.abs(case.gain.values()) * 3 + 4)
    case.differentiate()
    dx, gain_gradient, bias_gradient = backward_model(case.x.values(), case.dy.values(), case.gain.values(), mode)
    case.assert_gradient(case.dx.values(), dx)
    case.assert_parameters([(case.gain_gradient.values(), gain_gradient), (case.bias_gradient.values(), bias_gradient)])
    assert case.y.gaps_untouched() and case.dx.gaps_untouched()


@pytest.mark.parametrize("saved", [True, False])
def test_gaps_behind_images_of_small_planes(saved):
    sizes = 3, 70, 7, 7
    case = Case(sizes, SPATIAL, layout=lambda sizes: (70 * 49 + 5, *packed_strides(sizes)[1:]))
    case.train()
    expected = forward_model(case.x.values(), case.gain.values(), case.bias.values(), SPATIAL)
    assert_close(case.y.values(), expected, FLOAT, 16, floor=np.abs(case.gain.values()) * 3 + 4)
    case.differentiate(saved=saved)
    dx, *_ = backward_model(case.x.values(), case.dy.values(), case.gain.values(), SPATIAL)
    case.assert_gradient(case.dx.values(), dx)


@pytest.mark.parametrize("sizes", [(4, 3, 40, 41), (4, 60, 7, 7)])
def test_statistics_of_data_far_from_zero(sizes):
    """Mean 10000 times the deviation: the variance must not cancel."""
    case = Case(sizes, SPATIAL, offset=10000.0)
    case.train()
    mean, variance, _ = statistics(case.x.values(), SPATIAL)
    np.testing.assert_allclose(case.mean.values(), mean.astype(float), rtol=1e-7)
    np.testing.assert_allclose(case.inverse.values(), (1 / np.sqrt(variance + EPSILON)).astype(float), rtol=1e-6)


@pytest.mark.parametrize("mode", [SPATIAL, PER_ACTIVATION])
@pytest.mark.parametrize("size", [1e-25, 1e20, 1e30])
def test_squares_may_leave_the_range_of_float(size, mode):
    """Of one channel of three. Without epsilon, small ones count too."""
    sizes = (6, 3, 4, 5)
    x = random(sizes, FLOAT, 1)
    x[:, 1] *= size
    x = Tensor(x)
    exact = x.values()
    mean, variance, m = statistics(exact, mode)
    shape = mean.shape
    y, one, zero = Tensor(np.zeros(sizes)), Tensor(np.ones(shape)), Tensor(np.zeros(shape))
    running, saved = [Tensor(np.zeros(shape)) for _ in range(2)], [Tensor(np.zeros(shape)) for _ in range(2)]
    run("mcdnnBatchNormalizationForwardTraining", handle=handle(), mode=mode, alpha=scale(1), beta=scale(0), xDesc=x,
        x=x, yDesc=y, y=y, bnScaleBiasMeanVarDesc=one, bnScale=one, bnBias=zero, exponentialAverageFactor=1.0,
        resultRunningMean=running[0], resultRunningVariance=running[1], epsilon=0.0, resultSaveMean=saved[0],
        resultSaveInvVariance=saved[1])
    inverse = 1 / np.sqrt(variance.astype(float))
    np.testing.assert_allclose(saved[1].values(), inverse, rtol=1e-5)
    np.testing.assert_allclose(y.values(), (exact - mean.astype(float)) * inverse, atol=1e-5)


def test_factor_one_does_not_read_the_old_statistics():
    case = Case((2, 3, 4, 5), SPATIAL)
    case.running_mean, case.running_variance = (Tensor(np.full((1, 3, 1, 1), np.nan)) for _ in range(2))
    case.train(factor=1.0)
    mean, variance, m = statistics(case.x.values(), SPATIAL)
    assert_close(case.running_mean.values(), mean, FLOAT, 4)
    assert_close(case.running_variance.values(), variance * m / (m - 1), FLOAT, 4)


def test_factors_one_over_n_give_the_average_of_the_calls():
    case = Case((2, 3, 4, 5), SPATIAL)
    means, variances = [], []
    for n in range(4):
        case.x = Tensor(random((2, 3, 4, 5), FLOAT, 50 + n))
        case.train(factor=1 / (1 + n))
        mean, variance, m = statistics(case.x.values(), SPATIAL)
        means.append(mean)
        variances.append(variance * m / (m - 1))
    assert_close(case.running_mean.values(), np.mean(means, 0), FLOAT, 8)
    assert_close(case.running_variance.values(), np.mean(variances, 0), FLOAT, 8)


def test_statistics_need_not_be_asked_for():
    case, bare = Case((2, 3, 4, 5), SPATIAL), Case((2, 3, 4, 5), SPATIAL)
    kept = bare.mean.bytes(), bare.running_mean.bytes()
    case.train()
    bare.train(running=False, saved=False)
    assert case.y.bytes() == bare.y.bytes()
    assert (bare.mean.bytes(), bare.running_mean.bytes()) == kept


@pytest.mark.parametrize("mode", [PER_ACTIVATION, SPATIAL])
@pytest.mark.parametrize("data_type", [FLOAT, DOUBLE, HALF, BFLOAT16])
def test_inference_uses_the_statistics_it_is_given(data_type, mode):
    case = Case((3, 5, 7, 11), mode, data_type)
    prior = case.y.values()
    run("mcdnnBatchNormalizationForwardInference", handle=handle(), mode=mode, alpha=case.scale(1.5),
        beta=case.scale(0.5),
        xDesc=case.x, x=case.x, yDesc=case.y, y=case.y, bnScaleBiasMeanVarDesc=case.gain, bnScale=case.gain,
        bnBias=case.bias, estimatedMean=case.running_mean, estimatedVariance=case.running_variance, epsilon=EPSILON)
    scaled = case.gain.values() / np.sqrt(case.running_variance.values() + EPSILON)
    expected = scaled * (case.x.values() - case.running_mean.values()) + case.bias.values()
    assert_close(case.y.values(), 1.5 * expected + 0.5 * prior, data_type, ULPS[data_type],
                 floor=np.abs(scaled) * 8 + 8)


@pytest.mark.parametrize("mode", [PER_ACTIVATION, SPATIAL])
@pytest.mark.parametrize("ops", [BN_ACTIVATION, BN_ADD])
@pytest.mark.parametrize("sizes", [(3, 5, 4, 7), (2, 3, 2, 3, 2), (2, 1031, 2, 2), (7, 8, 33, 35), (2, 1, 3, 3), (4,
    9, 1, 1)])
def test_fused_activation_with_and_without_sum(sizes, ops, mode):
    case, descriptor = Case(sizes, mode, HALF, nhwc_strides), activation(RELU, 0.0)
    case.bias = Tensor(random(case.gain.sizes, FLOAT, 99))
    reserve = case.reserve(ops, descriptor)
    prior, dy = case.y.values(), case.dy.values()
    case.fused(ops, descriptor, reserve, 1.5, 0.5)
    t = forward_model(case.x.values(), case.gain.values(), case.bias.values(), mode)
    t = t + (case.z.values() if ops == BN_ADD else 0)
    assert_close(case.y.values(), 1.5 * np.maximum(t, 0) + 0.5 * prior, HALF, 2, floor=16)
    clear = np.abs(t) > 1e-4  # elsewhere rounding decides on which side of the corner an element is
    case.y = Tensor(np.full(sizes, np.nan), HALF, nhwc_strides(sizes))  # the reserve space alone carries the mask
    prior_dx, prior_dz = case.dx.values(), case.dz.values()
    case.differentiate_fused(ops, descriptor, reserve, 1.25, 0.5)
    g = dy * (t > 0)
    assert clear.mean() > 0.99
    dx, gain_gradient, bias_gradient = backward_model(case.x.values(), g, case.gain.values(), mode)
    if clear.all():
        case.assert_gradient(case.dx.values(), 1.25 * dx + 0.5 * prior_dx, prior_dx)
        case.assert_parameters([(case.gain_gradient.values(), gain_gradient),
                                (case.bias_gradient.values(), bias_gradient)])
    if ops == BN_ADD:
        assert_close(case.dz.values()[clear], (1.25 * g + 0.5 * prior_dz)[clear], HALF, 1)


def test_fused_swish_and_nan_option():
    for mode, propagate in itertools.product([RELU, SWISH], [False, True]):
        case = Case((2, 4, 3, 3), SPATIAL, FLOAT, nhwc_strides)
        gain = case.gain.values()
        gain[0, 1] = np.nan
        case.gain = Tensor(gain)
        descriptor = activation(mode, 0.0, propagate_nan=propagate, swish_beta=0.75)
        case.fused(BN_ACTIVATION, descriptor, case.reserve(BN_ACTIVATION, descriptor))
        t = forward_model(case.x.values(), gain, case.bias.values(), SPATIAL)
        expected = t / (1 + np.exp(-0.75 * t)) if mode == SWISH else np.maximum(t, 0)
        if mode == RELU and not propagate:
            expected = np.where(np.isnan(t), 0, expected)
        assert_close(case.y.values(), expected, FLOAT, 16, floor=8)


def test_the_plain_form_of_the_fused_calls_equals_the_plain_calls():
    plain, fused = Case((3, 5, 7, 9), SPATIAL), Case((3, 5, 7, 9), SPATIAL)
    plain.train(running=False)
    plain.differentiate()
    fused.fused(BN, None, fused.reserve(BN, None))
    fused.differentiate_fused(BN, None, None)
    for name in ("y", "mean", "inverse", "dx", "gain_gradient", "bias_gradient"):
        assert getattr(plain, name).bytes() == getattr(fused, name).bytes(), name


@pytest.mark.parametrize("mode", [PER_ACTIVATION, SPATIAL])
def test_outputs_may_be_inputs(mode):
    """In place, and over an input of another layout."""
    sizes = (3, 5, 7, 9)
    for layout in (packed_strides, nhwc_strides):
        apart, alike = Case(sizes, mode), Case(sizes, mode)
        apart.y, apart.dx = (Tensor(np.zeros(sizes), strides=layout(sizes)) for _ in range(2))
        apart.train()
        apart.differentiate()
        over_x, over_dy = (Tensor(np.zeros(sizes), strides=layout(sizes)) for _ in range(2))
        x = alike.x
        over_x.buffer = x.buffer
        alike.y = over_x
        alike.train()
        assert alike.y.values().tobytes() == apart.y.values().tobytes()
        alike.x = Case(sizes, mode).x
        over_dy.buffer = alike.dy.buffer
        alike.dx = over_dy
        alike.differentiate()
        assert alike.dx.values().tobytes() == apart.dx.values().tobytes()


@pytest.mark.parametrize("per_activation", [False, True])
@pytest.mark.parametrize("data_type", [FLOAT, DOUBLE, HALF, BFLOAT16])
def test_derived_descriptors(data_type, per_activation):
    sizes, mode = (2, 3, 4, 5, 6), PER_ACTIVATION if per_activation else SPATIAL
    x, derived = Tensor(np.zeros(sizes), data_type, nhwc_strides(sizes)), Tensor(np.zeros((1,)))
    ok(lib.mcdnnDeriveBNTensorDescriptor(derived.descriptor, x.descriptor, mode))
    kind, rank, found, strides = ffi.new("mcdnnDataType_t *"), ffi.new("int *"), ffi.new("int[5]"), ffi.new("int[5]")
    ok(lib.mcdnnGetTensorNdDescriptor(derived.descriptor, 5, kind, rank, found, strides))
    expected = parameter_sizes(sizes, mode)
    assert (kind[0], rank[0], tuple(found), tuple(strides)) == (parameter_type(data_type), 5, expected,
                                                                packed_strides(expected))


def digest() -> str:
    """A hash over results of calls large enough to be split: many groups, few groups, channels last, small planes of
    few and of many images."""
    of_all = [(8, 40, 33, 31), (9, 3, 67, 71), (6, 90, 7, 7), (400, 12, 3, 3)]
    outputs = []
    for sizes, layout, mode, data_type in itertools.product(of_all, [packed_strides, nhwc_strides],
                                                            [PER_ACTIVATION, SPATIAL], [FLOAT, HALF]):
        case = Case(sizes, mode, data_type, layout)
        case.train()
        case.differentiate()
        outputs += [case.y, case.mean, case.inverse, case.running_variance, case.dx, case.gain_gradient]
    return digest_of(outputs)


def test_results_do_not_depend_on_the_number_of_threads():
    source = "from tests.maca.test_mcdnn_batch_norm import digest; print(digest())"
    assert len({run_python(source, {"UNDERSTUDY_THREADS": threads}) for threads in ("1", "2", "5")}) == 1


def test_results_do_not_depend_on_the_instruction_set():
    source = "from tests.maca.test_mcdnn_batch_norm import digest; print(digest())"
    assert len({run_python(source, {"UNDERSTUDY_ISA": level}) for level in ("base", "v3", "v4")}) == 1
