"""Rules of the Normalization functions (mcdnn 6.11 to 6.13, 7.2, 7.3)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, fresh, unset_tensor
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, Buffer, Tensor, activation, descriptor, handle,
                                      nhwc_strides, scale)

NORM_ADD = lib.MCDNN_NORM_OPS_NORM_ADD_ACTIVATION
SIZES = (2, 4, 3, 5)
LAST = nhwc_strides(SIZES)
RESERVE = 30
RELU = lib.MCDNN_ACTIVATION_RELU


def channels():
    return Tensor(np.ones((1, 4, 1, 1)))


def data(*pairs):
    return {name: tensor for pair in pairs for tensor in [Tensor(np.ones(SIZES), FLOAT, LAST)] for name in pair}


def common(**more):
    return dict(handle=handle(), mode=lib.MCDNN_NORM_PER_CHANNEL, normOps=NORM_ADD, algo=0, epsilon=1e-5, groupCnt=1,
                activationDesc=activation(RELU, 0.0), **more)


def reserve():
    return dict(reserveSpace=Buffer(np.zeros(RESERVE, np.uint8)), reserveSpaceSizeInBytes=RESERVE,
                workSpaceSizeInBytes=0)


def training():
    one, mean = channels(), channels()
    return common(alpha=scale(1), beta=scale(0), **data(("xDesc", "xData"), ("zDesc", "zData"), ("yDesc", "yData")),
                  normScaleBiasDesc=one, normScale=one, normBias=one, exponentialAverageFactor=1.0,
                  normMeanVarDesc=mean,
                  resultRunningMean=channels(), resultRunningVariance=channels(), resultSaveMean=mean,
                  resultSaveInvVariance=channels(), workspace=None, **reserve())


def inference():
    one, mean = channels(), channels()
    return common(alpha=scale(1), beta=scale(0), **data(("xDesc", "x"), ("zDesc", "z"), ("yDesc", "y")),
                  normScaleBiasDesc=one, normScale=one, normBias=one, normMeanVarDesc=mean, estimatedMean=mean,
                  estimatedVariance=one)


def backward():
    one, mean = channels(), channels()
    return common(alphaDataDiff=scale(1), betaDataDiff=scale(0), alphaParamDiff=scale(1), betaParamDiff=scale(0),
                  **data(("xDesc", "xData"), ("yDesc", "yData"), ("dyDesc", "dyData"), ("dzDesc", "dzData"),
                         ("dxDesc", "dxData")),
                  dNormScaleBiasDesc=one, normScaleData=one, normBiasData=None, dNormScaleData=channels(),
                  dNormBiasData=channels(), normMeanVarDesc=mean, savedMean=mean, savedInvVariance=channels(),
                  workSpace=None, **reserve())


def only(make, *names):
    def arguments():
        legal = make()
        return {**{name: legal[name] for name in names}, "sizeInBytes": ffi.new("size_t *")}
    return arguments


MODES = ("handle", "mode", "normOps", "algo", "groupCnt", "activationDesc")
TRAINING = Subject("mcdnnNormalizationForwardTraining", training, ("yData", "resultSaveMean"))
INFERENCE = Subject("mcdnnNormalizationForwardInference", inference, ("y",))
BACKWARD = Subject("mcdnnNormalizationBackward", backward, ("dxData", "dzData", "dNormScaleData"))
TRAINING_SIZE = Subject("mcdnnGetNormalizationForwardTrainingWorkspaceSize", only(
    training, *MODES, "xDesc", "zDesc", "yDesc", "normScaleBiasDesc", "normMeanVarDesc"))
BACKWARD_SIZE = Subject("mcdnnGetNormalizationBackwardWorkspaceSize", only(
    backward, *MODES, "xDesc", "yDesc", "dyDesc", "dzDesc", "dxDesc", "dNormScaleBiasDesc", "normMeanVarDesc"))
RESERVE_SIZE = Subject("mcdnnGetNormalizationTrainingReserveSpaceSize", only(training, *MODES, "xDesc"))
DERIVE = Subject("mcdnnDeriveNormTensorDescriptor", lambda: dict(
    derivedNormScaleBiasDesc=unset_tensor(), derivedNormMeanVarDesc=unset_tensor(), xDesc=Tensor(np.ones(SIZES)),
    mode=1,
    groupCnt=1))


def shaped(name, sizes, data_type=FLOAT, strides=None):
    return {name: descriptor(sizes, data_type, strides)}


def unset_activation(_):
    return {"activationDesc": fresh("mcdnnActivationDescriptor_t", "Activation")}


def mode_rules(subject):
    return [*[subject.case(f"{name}/range", {name: last + 1}, {name: last})
              for name, last in (("normOps", 2), ("algo", 1))],
            subject.case("mode/range", {"mode": 2}),
            subject.case("groupCnt/one", {"groupCnt": 2})]


def rank_rules(subject, *names):
    return [subject.case(f"{name}/rank", shaped(name, (2, 4, 3, 5, 1, 1))) for name in names]


def like_rules(subject, *names):
    return [case for name in names for case in (
        subject.case(f"{name}/sizes", shaped(name, (2, 4, 5, 3))),
        subject.case(f"{name}/type", shaped(name, SIZES, BFLOAT16)))]


def typed(data_type):
    """Every data tensor in another type."""
    def changes(arguments):
        old = {id(value): value for value in arguments.values() if isinstance(value, Tensor) and value.sizes == SIZES}
        new = {key: Tensor(np.ones(SIZES), data_type, LAST) for key in old}
        return {name: new[id(value)] for name, value in arguments.items() if id(value) in new}
    return changes


def layout_rules(subject, tensors, forward):
    """What the calls and the queries of their sizes refuse alike."""
    wrong = activation(lib.MCDNN_ACTIVATION_TANH if forward else lib.MCDNN_ACTIVATION_SWISH, 0.0)
    return [
        *mode_rules(subject),
        subject.case("activationDesc/set", unset_activation),
        subject.case("activationDesc/fused-mode", {"activationDesc": wrong}),
        subject.case("xDesc/unsupported-type", typed(lib.MCDNN_DATA_INT32), typed(HALF)),
        *[subject.case(f"{name}/channels-last", shaped(name, SIZES)) for name in tensors],
    ]


def parameter_rules(subject, parameters):
    return [
        subject.case(f"{parameters}/shape", shaped(parameters, (1, 4, 3, 5))),
        subject.case(f"{parameters}/parameter-type", {**shaped(parameters, (1, 4, 1, 1), HALF),
                                                      **shaped("normMeanVarDesc", (1, 4, 1, 1), HALF)}),
        subject.case("normMeanVarDesc/sizes", shaped("normMeanVarDesc", (1, 4, 1, 2))),
        subject.case("normMeanVarDesc/type", shaped("normMeanVarDesc", (1, 4, 1, 1), DOUBLE)),
    ]


def compute_rules(subject, parameters, tensors, forward):
    return [
        *layout_rules(subject, tensors, forward),
        *parameter_rules(subject, parameters),
        subject.case("epsilon/minimum", {"epsilon": -1e-300}, {"epsilon": 0.0}),
        subject.launch(),
    ]


RULES = [
    *DERIVE.operands(optional=("derivedNormScaleBiasDesc", "derivedNormMeanVarDesc")),
    *[DERIVE.case(f"{name}/alive", {name: None}) for name in ("derivedNormScaleBiasDesc", "derivedNormMeanVarDesc")],
    DERIVE.case("mode/range", {"mode": 2}, {"mode": 0}),
    *rank_rules(DERIVE, "xDesc"),
    DERIVE.case("groupCnt/one", {"groupCnt": 0}),

    *TRAINING.operands(optional=("resultRunningMean", "resultRunningVariance", "resultSaveMean",
                                 "resultSaveInvVariance",
                                 "workspace")),
    *compute_rules(TRAINING, "normScaleBiasDesc", ("xDesc", "zDesc", "yDesc"), forward=True),
    *rank_rules(TRAINING, "xDesc", "yDesc", "zDesc"),
    *like_rules(TRAINING, "yDesc", "zDesc"),
    TRAINING.case("resultSaveMean/pair", {"resultSaveMean": None}, {"resultSaveMean": None,
                                                                    "resultSaveInvVariance": None}),
    TRAINING.case("resultRunningMean/pair", {"resultRunningMean": None},
                  {"resultRunningMean": None, "resultRunningVariance": None}),
    TRAINING.case("reserveSpaceSizeInBytes/minimum", {"reserveSpaceSizeInBytes": RESERVE - 1}),

    *INFERENCE.operands(),
    *compute_rules(INFERENCE, "normScaleBiasDesc", ("xDesc", "zDesc", "yDesc"), forward=True),
    *rank_rules(INFERENCE, "xDesc", "yDesc"),
    *like_rules(INFERENCE, "yDesc", "zDesc"),

    *BACKWARD.operands(optional=("savedMean", "savedInvVariance", "workSpace", "normBiasData")),
    *compute_rules(BACKWARD, "dNormScaleBiasDesc", ("xDesc", "dyDesc", "dzDesc", "dxDesc"), forward=False),
    *rank_rules(BACKWARD, "xDesc", "yDesc", "dxDesc"),
    *like_rules(BACKWARD, "yDesc", "dyDesc", "dzDesc", "dxDesc"),
    BACKWARD.case("savedMean/pair", {"savedMean": None}, {"savedMean": None, "savedInvVariance": None}),
    BACKWARD.case("reserveSpaceSizeInBytes/minimum", {"reserveSpaceSizeInBytes": RESERVE - 1}),

    *TRAINING_SIZE.operands(),
    *layout_rules(TRAINING_SIZE, ("xDesc", "zDesc", "yDesc"), forward=True),
    *parameter_rules(TRAINING_SIZE, "normScaleBiasDesc"),
    *rank_rules(TRAINING_SIZE, "xDesc", "yDesc", "zDesc"),
    *like_rules(TRAINING_SIZE, "yDesc", "zDesc"),
    *BACKWARD_SIZE.operands(),
    *layout_rules(BACKWARD_SIZE, ("xDesc", "dyDesc", "dzDesc", "dxDesc"), forward=False),
    *parameter_rules(BACKWARD_SIZE, "dNormScaleBiasDesc"),
    *rank_rules(BACKWARD_SIZE, "xDesc", "yDesc", "dxDesc"),
    *like_rules(BACKWARD_SIZE, "yDesc", "dyDesc", "dzDesc", "dxDesc"),
    *RESERVE_SIZE.operands(),
    *layout_rules(RESERVE_SIZE, ("xDesc",), forward=True),
    *rank_rules(RESERVE_SIZE, "xDesc"),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
