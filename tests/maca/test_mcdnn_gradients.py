"""Every backward function against central differences of our own forward function, in float64.

Local response and divisive normalization and the spatial transformer have theirs beside their other tests."""

import numpy as np
import pytest
from understudy import maca
from understudy.maca import lib
from understudy.maca.dnn import ActivationDescriptor, PoolingDescriptor
from understudy.maca.uniform import DropoutDescriptor

from tests.maca.mcdnn_support import DOUBLE, differences, random

SIZES = (2, 3, 4, 5)
EPSILON = 1e-3


def drawn(sizes, seed):
    return random(sizes, DOUBLE, seed)


def assert_slope(gradient, forward, values, slopes):
    np.testing.assert_allclose(gradient, differences(forward, values, slopes), rtol=1e-6, atol=1e-7)


def away_from(values, *kinks):
    """No value so near to a kink that a difference would step over it."""
    for kink in kinks:
        values = np.where(np.abs(values - kink) < 1e-3, kink + 1e-2, values)
    return values


@pytest.mark.parametrize("mode, coefficient, kinks", [
    ("sigmoid", 0, ()), ("relu", 0, (0,)), ("tanh", 0, ()), ("clipped_relu", 1.25, (0, 1.25)), ("elu", 0.75, (0,)),
    ("swish", 0, ()),
])  # fmt: skip
def test_activation(mode, coefficient, kinks):
    x, dy, dx = away_from(drawn(SIZES, 1), *kinks), drawn(SIZES, 2), np.zeros(SIZES)
    with ActivationDescriptor(mode, coef=coefficient) as activation:

        def forward(values):
            y = np.zeros(SIZES)
            maca.run("mcdnnActivationForward", activationDesc=activation, x=values, y=y)
            return y

        maca.run("mcdnnActivationBackward", activationDesc=activation, y=forward(x), dy=dy, x=x, dx=dx)
        assert_slope(dx, forward, x, dy)


@pytest.mark.parametrize("mode", ["MCDNN_SOFTMAX_MODE_INSTANCE", "MCDNN_SOFTMAX_MODE_CHANNEL"])
@pytest.mark.parametrize("algo", ["MCDNN_SOFTMAX_FAST", "MCDNN_SOFTMAX_ACCURATE", "MCDNN_SOFTMAX_LOG"])
def test_softmax(algo, mode):
    x, dy, dx = drawn(SIZES, 1), drawn(SIZES, 2), np.zeros(SIZES)

    def forward(values):
        y = np.zeros(SIZES)
        maca.run("mcdnnSoftmaxForward", algo=algo, mode=mode, x=values, y=y)
        return y

    maca.run("mcdnnSoftmaxBackward", algorithm=algo, mode=mode, yData=forward(x), dy=dy, dx=dx)
    assert_slope(dx, forward, x, dy)


@pytest.mark.parametrize("mode", [
    "MCDNN_POOLING_MAX", "MCDNN_POOLING_MAX_DETERMINISTIC", "MCDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING",
    "MCDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING",
])  # fmt: skip
def test_pooling(mode):
    x = np.random.default_rng(1).permutation(np.prod(SIZES)).reshape(SIZES) / 8  # no two are near each other
    y_sizes = (2, 3, 2, 3)
    dy, dx = drawn(y_sizes, 2), np.zeros(SIZES)
    with PoolingDescriptor(getattr(lib, mode), (3, 3), (1, 1), (2, 2)) as pooling:

        def forward(values):
            y = np.zeros(y_sizes)
            maca.run("mcdnnPoolingForward", poolingDesc=pooling, x=values, y=y)
            return y

        maca.run("mcdnnPoolingBackward", poolingDesc=pooling, y=forward(x), dy=dy, xData=x, dx=dx)
        assert_slope(dx, forward, x, dy)


MODES = {"MCDNN_BATCHNORM_SPATIAL": (1, 3, 1, 1), "MCDNN_BATCHNORM_PER_ACTIVATION": (1, 3, 4, 5)}


@pytest.mark.parametrize("mode", MODES)
def test_batch_normalization(mode):
    x, dy, gain, bias = drawn(SIZES, 1), drawn(SIZES, 2), drawn(MODES[mode], 3), drawn(MODES[mode], 4)
    # Two values of one element never are so near that the differences lose their digits.
    x[1] += np.where(np.abs(x[0] - x[1]) < 0.3, 0.5, 0)
    dx, gain_gradient, bias_gradient = np.zeros(SIZES), np.zeros(MODES[mode]), np.zeros(MODES[mode])

    def forward(x, gain, bias):
        y = np.zeros(SIZES)
        maca.run("mcdnnBatchNormalizationForwardTraining", mode=mode, x=x, y=y, bnScale=gain, bnBias=bias,
                 exponentialAverageFactor=1.0, epsilon=EPSILON)  # fmt: skip
        return y

    maca.run("mcdnnBatchNormalizationBackward", mode=mode, x=x, dy=dy, dx=dx, bnScale=gain, epsilon=EPSILON,
             resultBnScaleDiff=gain_gradient, resultBnBiasDiff=bias_gradient)  # fmt: skip
    assert_slope(dx, lambda values: forward(values, gain, bias), x, dy)
    assert_slope(gain_gradient, lambda values: forward(x, values, bias), gain, dy)
    assert_slope(bias_gradient, lambda values: forward(x, gain, values), bias, dy)


def test_dropout():
    x, dy, dx = drawn(SIZES, 1), drawn(SIZES, 2), np.zeros(SIZES)
    reserve = np.zeros(maca.run("mcdnnDropoutGetReserveSpaceSize", xdesc=x), np.uint8)

    def forward(values):
        y = np.zeros(SIZES)
        with DropoutDescriptor(0.4, seed=7) as dropout:  # the same seed: the same mask
            maca.run("mcdnnDropoutForward", dropoutDesc=dropout, x=values, y=y, reserveSpace=reserve,
                     reserveSpaceSizeInBytes=reserve.size)  # fmt: skip
        return y

    forward(x)
    with DropoutDescriptor(0.4, seed=7) as dropout:
        maca.run("mcdnnDropoutBackward", dropoutDesc=dropout, dy=dy, dx=dx, reserveSpace=reserve,
                 reserveSpaceSizeInBytes=reserve.size)  # fmt: skip
    assert_slope(dx, forward, x, dy)
