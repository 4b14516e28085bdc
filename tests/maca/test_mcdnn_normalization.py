"""The Normalization functions against the models of batch normalization (mcdnn 6.2, 6.11, 6.12)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, Buffer, Tensor, activation, assert_close, handle,
                                      nhwc_strides, ok, packed_strides, random, run, scale)
from tests.maca.test_mcdnn_batch_norm import (EPSILON, PER_ACTIVATION, SPATIAL, ULPS, Case, backward_model,
                                              forward_model,
                                              statistics)

NORM, NORM_ACTIVATION, NORM_ADD = (lib.MCDNN_NORM_OPS_NORM, lib.MCDNN_NORM_OPS_NORM_ACTIVATION,
                                   lib.MCDNN_NORM_OPS_NORM_ADD_ACTIVATION)
MODES = {lib.MCDNN_NORM_PER_ACTIVATION: PER_ACTIVATION, lib.MCDNN_NORM_PER_CHANNEL: SPATIAL}


def reserve_for(case, mode, ops, descriptor):
    size = ffi.new("size_t *")
    ok(lib.mcdnnGetNormalizationTrainingReserveSpaceSize(handle(), mode, ops, 0, descriptor or ffi.NULL,
                                                         case.x.descriptor, size, 1))
    return Buffer(np.zeros(size[0], np.uint8)) if size[0] else None


def train(case, mode, ops=NORM, descriptor=None, reserve=None, alpha=1.0, beta=0.0, algo=0):
    adds = ops == NORM_ADD
    run("mcdnnNormalizationForwardTraining", handle=handle(), mode=mode, normOps=ops, algo=algo,
        alpha=case.scale(alpha),
        beta=case.scale(beta), xDesc=case.x, xData=case.x, normScaleBiasDesc=case.gain, normScale=case.gain,
        normBias=case.bias, exponentialAverageFactor=0.25, normMeanVarDesc=case.mean,
        resultRunningMean=case.running_mean,
        resultRunningVariance=case.running_variance, epsilon=EPSILON, resultSaveMean=case.mean,
        resultSaveInvVariance=case.inverse, activationDesc=descriptor, zDesc=case.z if adds else None,
        zData=case.z if adds else None, yDesc=case.y, yData=case.y, workspace=None, workSpaceSizeInBytes=0,
        reserveSpace=reserve, reserveSpaceSizeInBytes=reserve.content.nbytes if reserve else 0, groupCnt=1)


def differentiate(case, mode, ops=NORM, descriptor=None, reserve=None, saved=True):
    adds, one, zero = ops == NORM_ADD, case.scale(1), case.scale(0)
    run("mcdnnNormalizationBackward", handle=handle(), mode=mode, normOps=ops, algo=0, alphaDataDiff=one,
        betaDataDiff=zero,
        alphaParamDiff=one, betaParamDiff=zero, xDesc=case.x, xData=case.x, yDesc=case.y if ops else None,
        yData=case.y if ops else None, dyDesc=case.dy, dyData=case.dy, dzDesc=case.dz if adds else None,
        dzData=case.dz if adds else None, dxDesc=case.dx, dxData=case.dx, dNormScaleBiasDesc=case.gain,
        normScaleData=case.gain, normBiasData=None, dNormScaleData=case.gain_gradient, dNormBiasData=case.bias_gradient,
        epsilon=EPSILON, normMeanVarDesc=case.mean, savedMean=case.mean if saved else None,
        savedInvVariance=case.inverse if saved else None, activationDesc=descriptor, workSpace=None,
        workSpaceSizeInBytes=0,
        reserveSpace=reserve, reserveSpaceSizeInBytes=reserve.content.nbytes if reserve else 0, groupCnt=1)


@pytest.mark.parametrize("layout", [packed_strides, nhwc_strides])
@pytest.mark.parametrize("data_type", [FLOAT, DOUBLE, HALF, BFLOAT16])
@pytest.mark.parametrize("mode", MODES)
def test_training_and_backward_follow_the_formulas(mode, data_type, layout):
    for sizes in ((3, 5, 7, 9), (2, 3, 2, 3, 2)):
        case = Case(sizes, MODES[mode], data_type, layout)
        old = case.running_mean.values()
        train(case, mode)
        model = forward_model(case.x.values(), case.gain.values(), case.bias.values(), MODES[mode])
        assert_close(case.y.values(), model, data_type, ULPS[data_type], floor=np.abs(case.gain.values()) * 4 + 4)
        mean, variance, _ = statistics(case.x.values(), MODES[mode])
        assert_close(case.mean.values(), mean, case.kind, 4)
        assert_close(case.inverse.values(), 1 / np.sqrt(variance + EPSILON), case.kind, 32)
        assert_close(case.running_mean.values(), old * 0.75 + mean * 0.25, case.kind, 4)
        for saved in (True, False):
            differentiate(case, mode, saved=saved)
            dx, gain_gradient, bias_gradient = backward_model(case.x.values(), case.dy.values(), case.gain.values(),
                                                              MODES[mode])
            case.assert_gradient(case.dx.values(), dx)
            case.assert_parameters([(case.gain_gradient.values(), gain_gradient),
                                    (case.bias_gradient.values(), bias_gradient)])


def test_the_persistent_algorithm_gives_the_same_result():
    standard, persistent = Case((3, 5, 7, 9), SPATIAL), Case((3, 5, 7, 9), SPATIAL)
    train(standard, lib.MCDNN_NORM_PER_CHANNEL)
    train(persistent, lib.MCDNN_NORM_PER_CHANNEL, algo=lib.MCDNN_NORM_ALGO_PERSIST)
    assert standard.y.bytes() == persistent.y.bytes()


@pytest.mark.parametrize("data_type", [FLOAT, DOUBLE, HALF])
@pytest.mark.parametrize("ops", [NORM_ACTIVATION, NORM_ADD])
@pytest.mark.parametrize("mode", MODES)
def test_fused_activation_with_and_without_sum(mode, ops, data_type):
    case = Case((3, 5, 4, 7), MODES[mode], data_type, nhwc_strides)
    case.bias = Tensor(random(case.gain.sizes, case.kind, 99), case.kind)
    descriptor = activation(lib.MCDNN_ACTIVATION_RELU, 0.0)
    reserve = reserve_for(case, mode, ops, descriptor)
    train(case, mode, ops, descriptor, reserve)
    t = forward_model(case.x.values(), case.gain.values(), case.bias.values(), MODES[mode])
    t = t + (case.z.values() if ops == NORM_ADD else 0)
    assert_close(case.y.values(), np.maximum(t, 0), data_type, ULPS[data_type], floor=16)
    assert (np.abs(t) > 1e-5).all(), "an element lies on the corner: choose another seed"
    differentiate(case, mode, ops, descriptor, reserve)
    g = case.dy.values() * (t > 0)
    case.assert_gradient(case.dx.values(), backward_model(case.x.values(), g, case.gain.values(), MODES[mode])[0])
    if ops == NORM_ADD:
        np.testing.assert_array_equal(case.dz.values(), g.astype(float))


@pytest.mark.parametrize("ops", [NORM, NORM_ACTIVATION, NORM_ADD])
def test_inference_with_sum_and_activation(ops):
    case, mode = Case((3, 5, 4, 7), SPATIAL, FLOAT, nhwc_strides), lib.MCDNN_NORM_PER_CHANNEL
    adds = ops == NORM_ADD
    run("mcdnnNormalizationForwardInference", handle=handle(), mode=mode, normOps=ops, algo=0, alpha=scale(1.5),
        beta=scale(0), xDesc=case.x, x=case.x, normScaleBiasDesc=case.gain, normScale=case.gain, normBias=case.bias,
        normMeanVarDesc=case.running_mean, estimatedMean=case.running_mean, estimatedVariance=case.running_variance,
        zDesc=case.z if adds else None, z=case.z if adds else None,
        activationDesc=activation(lib.MCDNN_ACTIVATION_RELU, 0.0) if ops else None, yDesc=case.y, y=case.y,
        epsilon=EPSILON, groupCnt=1)
    t = case.gain.values() * (case.x.values() - case.running_mean.values()) / np.sqrt(
        case.running_variance.values() + EPSILON) + case.bias.values() + (case.z.values() if adds else 0)
    assert_close(case.y.values(), 1.5 * (np.maximum(t, 0) if ops else t), FLOAT, 16, floor=16)


def test_derived_descriptors():
    x = Tensor(np.zeros((2, 3, 4, 5)), HALF)
    first, second = Tensor(np.zeros(1)), Tensor(np.zeros(1))
    ok(lib.mcdnnDeriveNormTensorDescriptor(first.descriptor, second.descriptor, x.descriptor,
                                           lib.MCDNN_NORM_PER_CHANNEL, 1))
    for derived in (first, second):
        kind, rank, sizes = ffi.new("mcdnnDataType_t *"), ffi.new("int *"), ffi.new("int[4]")
        ok(lib.mcdnnGetTensorNdDescriptor(derived.descriptor, 4, kind, rank, sizes, ffi.NULL))
        assert (kind[0], rank[0], list(sizes)) == (FLOAT, 4, [1, 3, 1, 1])
