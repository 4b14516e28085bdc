"""Rules of batch normalization (mcdnn 6.2 to 6.7, 7.3)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, fresh, unset_tensor
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, Buffer, Tensor, activation, descriptor, handle,
                                      nhwc_strides, scale)

SPATIAL, PER_ACTIVATION = lib.MCDNN_BATCHNORM_SPATIAL, lib.MCDNN_BATCHNORM_PER_ACTIVATION
BN, BN_ACTIVATION, BN_ADD = (lib.MCDNN_BATCHNORM_OPS_BN, lib.MCDNN_BATCHNORM_OPS_BN_ACTIVATION,
                             lib.MCDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
SIZES = (2, 4, 3, 5)
VALUES = np.linspace(-1, 1, 120).reshape(SIZES)
RELU = lib.MCDNN_ACTIVATION_RELU
RESERVE = 30  # rows of images and positions, one byte for four channels


def data(data_type=FLOAT, strides=None):
    return Tensor(VALUES, data_type, strides)


def channels(data_type=FLOAT):
    return Tensor(np.ones((1, 4, 1, 1)), data_type)


def training():
    x, y, one = data(), data(), channels()
    return dict(handle=handle(), mode=SPATIAL, alpha=scale(1), beta=scale(0), xDesc=x, x=x, yDesc=y, y=y,
                bnScaleBiasMeanVarDesc=one, bnScale=one, bnBias=one, exponentialAverageFactor=1.0,
                resultRunningMean=channels(), resultRunningVariance=channels(), epsilon=1e-5, resultSaveMean=channels(),
                resultSaveInvVariance=channels())


def inference():
    x, y, one = data(), data(), channels()
    return dict(handle=handle(), mode=SPATIAL, alpha=scale(1), beta=scale(0), xDesc=x, x=x, yDesc=y, y=y,
                bnScaleBiasMeanVarDesc=one, bnScale=one, bnBias=one, estimatedMean=one, estimatedVariance=one,
                epsilon=1e-5)


def backward():
    x, dy, dx, one = data(), data(), data(), channels()
    return dict(handle=handle(), mode=SPATIAL, alphaDataDiff=scale(1), betaDataDiff=scale(0), alphaParamDiff=scale(1),
                betaParamDiff=scale(0), xDesc=x, x=x, dyDesc=dy, dy=dy, dxDesc=dx, dx=dx, bnScaleBiasDiffDesc=one,
                bnScale=one, resultBnScaleDiff=channels(), resultBnBiasDiff=channels(), epsilon=1e-5,
                savedMean=channels(), savedInvVariance=channels())


def fused_tensors(names):
    """HALF, channels last: what every fused form takes."""
    return {name: tensor for pair in names for tensor in [data(HALF, nhwc_strides(SIZES))] for name in pair}


def training_fused():
    one = channels()
    return dict(handle=handle(), mode=SPATIAL, bnOps=BN_ADD, alpha=scale(1), beta=scale(0),
                **fused_tensors([("xDesc", "xData"), ("zDesc", "zData"), ("yDesc", "yData")]),
                bnScaleBiasMeanVarDesc=one, bnScaleData=one, bnBiasData=one, exponentialAverageFactor=1.0,
                resultRunningMeanData=channels(), resultRunningVarianceData=channels(), epsilon=1e-5,
                saveMean=channels(),
                saveInvVariance=channels(), activationDesc=activation(RELU, 0.0), workspace=None,
                workSpaceSizeInBytes=0,
                reserveSpace=Buffer(np.zeros(RESERVE, np.uint8)), reserveSpaceSizeInBytes=RESERVE)


def backward_fused():
    one = channels()
    return dict(handle=handle(), mode=SPATIAL, bnOps=BN_ADD, alphaDataDiff=scale(1), betaDataDiff=scale(0),
                alphaParamDiff=scale(1), betaParamDiff=scale(0),
                **fused_tensors([("xDesc", "xData"), ("yDesc", "yData"), ("dyDesc", "dyData"), ("dzDesc", "dzData"),
                                 ("dxDesc", "dxData")]),
                dBnScaleBiasDesc=one, bnScaleData=one, bnBiasData=one, dBnScaleData=channels(), dBnBiasData=channels(),
                epsilon=1e-5, savedMean=channels(), savedInvVariance=channels(), activationDesc=activation(RELU, 0.0),
                workspace=None, workSpaceSizeInBytes=0, reserveSpace=Buffer(np.zeros(RESERVE, np.uint8)),
                reserveSpaceSizeInBytes=RESERVE)


def only(make, *names, **more):
    """The arguments of a size query, from those of the call it serves."""
    def arguments():
        legal = make()
        return {**{name: legal[name] for name in names}, "sizeInBytes": ffi.new("size_t *"), **more}
    return arguments


TRAINING = Subject("mcdnnBatchNormalizationForwardTraining", training,
                   ("y", "resultRunningMean", "resultRunningVariance", "resultSaveMean", "resultSaveInvVariance"))
INFERENCE = Subject("mcdnnBatchNormalizationForwardInference", inference, ("y",))
BACKWARD = Subject("mcdnnBatchNormalizationBackward", backward, ("dx", "resultBnScaleDiff", "resultBnBiasDiff"))
TRAINING_EX = Subject("mcdnnBatchNormalizationForwardTrainingEx", training_fused, ("yData", "saveMean"))
BACKWARD_EX = Subject("mcdnnBatchNormalizationBackwardEx", backward_fused, ("dxData", "dzData", "dBnScaleData"))
TRAINING_SIZE = Subject("mcdnnGetBatchNormalizationForwardTrainingExWorkspaceSize", only(
    training_fused, "handle", "mode", "bnOps", "xDesc", "zDesc", "yDesc", "bnScaleBiasMeanVarDesc", "activationDesc"))
BACKWARD_SIZE = Subject("mcdnnGetBatchNormalizationBackwardExWorkspaceSize", only(
    backward_fused, "handle", "mode", "bnOps", "xDesc", "yDesc", "dyDesc", "dzDesc", "dxDesc", "dBnScaleBiasDesc",
    "activationDesc"))
RESERVE_SIZE = Subject("mcdnnGetBatchNormalizationTrainingExReserveSpaceSize", only(
    training_fused, "handle", "mode", "bnOps", "activationDesc", "xDesc"))
DERIVE = Subject("mcdnnDeriveBNTensorDescriptor", lambda: dict(derivedBnDesc=unset_tensor(), xDesc=data(),
                                                               mode=SPATIAL))

SIX = (2, 4, 3, 5, 1, 1)


def shaped(name, sizes, data_type=FLOAT):
    return {name: descriptor(sizes, data_type)}


def typed(data_type, *names, **more):
    """Every named tensor in another type; scaling factors follow when they are doubles."""
    def changes(_):
        tensors = {name: tensor for pair in names for tensor in [data(data_type)] for name in pair}
        factors = {name: scale(value, data_type) for name, value in more.items()}
        return {**tensors, **factors}
    return changes


def unset_activation(_):
    return {"activationDesc": fresh("mcdnnActivationDescriptor_t", "Activation")}


def mode_rules(subject):
    return [subject.case("mode/range", {"mode": 3}, {"mode": lib.MCDNN_BATCHNORM_SPATIAL_PERSISTENT})]


def ops_rules(subject):
    return [*mode_rules(subject), subject.case("bnOps/range", {"bnOps": 3}, {"bnOps": BN})]


def rank_rules(subject, *names, data_type=FLOAT):
    return [subject.case(f"{name}/rank", shaped(name, SIX, data_type)) for name in names]


def like_rules(subject, *names, data_type=FLOAT):
    other = BFLOAT16
    return [case for name in names for case in (
        subject.case(f"{name}/sizes", shaped(name, (2, 4, 5, 3), data_type)),
        subject.case(f"{name}/type", shaped(name, SIZES, other)))]


def pair_rules(subject, *pairs):
    return [subject.case(f"{first}/pair", {first: None}, {first: None, second: None}) for first, second in pairs]


def layout_rules(subject, tensors, forward):
    """What the fused calls and the queries of their sizes refuse alike."""
    mode = activation(lib.MCDNN_ACTIVATION_TANH if forward else lib.MCDNN_ACTIVATION_SWISH, 0.0)
    legal = activation(lib.MCDNN_ACTIVATION_SWISH if forward else RELU, 0.0)
    return [
        subject.case("activationDesc/set", unset_activation),
        subject.case("activationDesc/fused-mode", {"activationDesc": mode}, {"activationDesc": legal}),
        *[subject.case(f"{name}/channels-last", shaped(name, SIZES, HALF)) for name in tensors],
    ]


def sum_rules(subject):
    return [subject.case("zDesc/rank", shaped("zDesc", SIX, HALF)),
            subject.case("zDesc/sum-type",
                         lambda it: {name: descriptor(SIZES, FLOAT, nhwc_strides(SIZES)) for name in it
                                     if name.endswith("Desc") and isinstance(it[name], Tensor)
                                     and it[name].sizes == SIZES})]


def reserve_rules(subject):
    return [subject.case("reserveSpaceSizeInBytes/minimum", {"reserveSpaceSizeInBytes": RESERVE - 1})]


def query_type_rules(subject, parameters, tensors):
    """BFLOAT16 data, without an activation, and parameters in HALF."""
    def kind(data_type):
        return lambda _: {"bnOps": BN, **{name: descriptor(SIZES, data_type) for name in tensors}}
    return [subject.case("xDesc/unsupported-type", kind(BFLOAT16), kind(FLOAT)),
            *[subject.case(f"{name}/parameter-type", shaped(name, (1, 4, 1, 1), HALF)) for name in parameters]]


RULES = [
    *DERIVE.operands(optional=("derivedBnDesc",)),
    DERIVE.case("derivedBnDesc/alive", {"derivedBnDesc": None}),
    *mode_rules(DERIVE),
    *rank_rules(DERIVE, "xDesc"),

    *TRAINING.operands(optional=("resultRunningMean", "resultRunningVariance", "resultSaveMean",
                                 "resultSaveInvVariance")),
    *mode_rules(TRAINING),
    *rank_rules(TRAINING, "xDesc", "yDesc"),
    TRAINING.case("bnScaleBiasMeanVarDesc/shape", shaped("bnScaleBiasMeanVarDesc", (1, 4, 3, 5)),
                  lambda _: {"mode": PER_ACTIVATION, **{name: Tensor(np.ones((1, 4, 3, 5))) for name in (
                      "bnScaleBiasMeanVarDesc", "bnScale", "bnBias", "resultRunningMean", "resultRunningVariance",
                      "resultSaveMean", "resultSaveInvVariance")}}),
    *pair_rules(TRAINING, ("resultSaveMean", "resultSaveInvVariance"), ("resultRunningMean", "resultRunningVariance")),
    TRAINING.case("epsilon/minimum", {"epsilon": -1e-300}, {"epsilon": 0.0}),
    *like_rules(TRAINING, "yDesc"),
    TRAINING.case("xDesc/unsupported-type", typed(lib.MCDNN_DATA_INT32, ("xDesc", "x"), ("yDesc", "y")),
                  typed(BFLOAT16, ("xDesc", "x"), ("yDesc", "y"))),
    TRAINING.case("bnScaleBiasMeanVarDesc/parameter-type", shaped("bnScaleBiasMeanVarDesc", (1, 4, 1, 1), DOUBLE)),
    TRAINING.launch(),

    *INFERENCE.operands(),
    *mode_rules(INFERENCE),
    *rank_rules(INFERENCE, "xDesc", "yDesc"),
    INFERENCE.case("bnScaleBiasMeanVarDesc/shape", shaped("bnScaleBiasMeanVarDesc", (1, 5, 1, 1))),
    INFERENCE.case("epsilon/minimum", {"epsilon": -1e-300}, {"epsilon": 0.0}),
    *like_rules(INFERENCE, "yDesc"),
    INFERENCE.case("xDesc/unsupported-type", typed(lib.MCDNN_DATA_INT8, ("xDesc", "x"), ("yDesc", "y")),
                   typed(HALF, ("xDesc", "x"), ("yDesc", "y"))),
    INFERENCE.case("bnScaleBiasMeanVarDesc/parameter-type", shaped("bnScaleBiasMeanVarDesc", (1, 4, 1, 1), HALF)),
    INFERENCE.launch(),

    *BACKWARD.operands(optional=("savedMean", "savedInvVariance")),
    *mode_rules(BACKWARD),
    *rank_rules(BACKWARD, "xDesc", "dxDesc"),
    BACKWARD.case("bnScaleBiasDiffDesc/shape", shaped("bnScaleBiasDiffDesc", (4, 1, 1, 1))),
    *pair_rules(BACKWARD, ("savedMean", "savedInvVariance")),
    BACKWARD.case("epsilon/minimum", {"epsilon": -1.0}, {"epsilon": 0.0}),
    *like_rules(BACKWARD, "dyDesc", "dxDesc"),
    BACKWARD.case("xDesc/unsupported-type", typed(BFLOAT16, ("xDesc", "x"), ("dyDesc", "dy"), ("dxDesc", "dx")),
                  typed(HALF, ("xDesc", "x"), ("dyDesc", "dy"), ("dxDesc", "dx"))),
    BACKWARD.case("bnScaleBiasDiffDesc/parameter-type", shaped("bnScaleBiasDiffDesc", (1, 4, 1, 1), HALF)),
    BACKWARD.launch(),

    *TRAINING_EX.operands(optional=("resultRunningMeanData", "resultRunningVarianceData", "saveMean", "saveInvVariance",
                                    "workspace")),
    *ops_rules(TRAINING_EX),
    *rank_rules(TRAINING_EX, "xDesc", "yDesc", data_type=HALF),
    TRAINING_EX.case("bnScaleBiasMeanVarDesc/shape", shaped("bnScaleBiasMeanVarDesc", (1, 4, 1, 1, 1))),
    *pair_rules(TRAINING_EX, ("saveMean", "saveInvVariance"), ("resultRunningMeanData", "resultRunningVarianceData")),
    TRAINING_EX.case("epsilon/minimum", {"epsilon": -1.0}, {"epsilon": 0.0}),
    *like_rules(TRAINING_EX, "yDesc", "zDesc", data_type=HALF),
    TRAINING_EX.case("xDesc/unsupported-type",
                     lambda it: {"bnOps": BN, **typed(BFLOAT16, ("xDesc", "xData"), ("yDesc", "yData"))(it)},
                     lambda it: {"bnOps": BN, **typed(FLOAT, ("xDesc", "xData"), ("yDesc", "yData"))(it)}),
    TRAINING_EX.case("bnScaleBiasMeanVarDesc/parameter-type", shaped("bnScaleBiasMeanVarDesc", (1, 4, 1, 1), HALF)),
    *layout_rules(TRAINING_EX, ("xDesc", "yDesc", "zDesc"), forward=True),
    *sum_rules(TRAINING_EX),
    *reserve_rules(TRAINING_EX),
    TRAINING_EX.launch(),

    *BACKWARD_EX.operands(optional=("savedMean", "savedInvVariance", "workspace", "bnBiasData")),
    *ops_rules(BACKWARD_EX),
    *rank_rules(BACKWARD_EX, "xDesc", "yDesc", "dxDesc", data_type=HALF),
    BACKWARD_EX.case("dBnScaleBiasDesc/shape", shaped("dBnScaleBiasDesc", (1, 3, 1, 1))),
    *pair_rules(BACKWARD_EX, ("savedMean", "savedInvVariance")),
    BACKWARD_EX.case("epsilon/minimum", {"epsilon": -1.0}, {"epsilon": 0.0}),
    *like_rules(BACKWARD_EX, "yDesc", "dyDesc", "dxDesc", "dzDesc", data_type=HALF),
    BACKWARD_EX.case("xDesc/unsupported-type",
                     lambda it: {"bnOps": BN, "yDesc": None, "yData": None, **typed(
                         BFLOAT16, ("xDesc", "xData"), ("dyDesc", "dyData"), ("dxDesc", "dxData"))(it)},
                     lambda it: {"bnOps": BN, "yDesc": None, "yData": None, **typed(
                         FLOAT, ("xDesc", "xData"), ("dyDesc", "dyData"), ("dxDesc", "dxData"))(it)}),
    BACKWARD_EX.case("dBnScaleBiasDesc/parameter-type", shaped("dBnScaleBiasDesc", (1, 4, 1, 1), HALF)),
    *layout_rules(BACKWARD_EX, ("xDesc", "dyDesc", "dxDesc", "dzDesc"), forward=False),
    *reserve_rules(BACKWARD_EX),
    BACKWARD_EX.launch(),

    *TRAINING_SIZE.operands(),
    *layout_rules(TRAINING_SIZE, ("xDesc", "yDesc", "zDesc"), forward=True),
    *sum_rules(TRAINING_SIZE),
    *query_type_rules(TRAINING_SIZE, ["bnScaleBiasMeanVarDesc"], ["xDesc", "yDesc"]),
    *ops_rules(TRAINING_SIZE),
    *rank_rules(TRAINING_SIZE, "xDesc", "yDesc", data_type=HALF),
    TRAINING_SIZE.case("bnScaleBiasMeanVarDesc/shape", shaped("bnScaleBiasMeanVarDesc", (1, 4, 3, 5))),
    *like_rules(TRAINING_SIZE, "yDesc", "zDesc", data_type=HALF),
    *BACKWARD_SIZE.operands(),
    *layout_rules(BACKWARD_SIZE, ("xDesc", "dyDesc", "dxDesc", "dzDesc"), forward=False),
    *query_type_rules(BACKWARD_SIZE, ["dBnScaleBiasDesc"], ["xDesc", "yDesc", "dyDesc", "dxDesc"]),
    *ops_rules(BACKWARD_SIZE),
    *rank_rules(BACKWARD_SIZE, "xDesc", "yDesc", "dxDesc", data_type=HALF),
    BACKWARD_SIZE.case("dBnScaleBiasDesc/shape", shaped("dBnScaleBiasDesc", (1, 4, 3, 5))),
    *like_rules(BACKWARD_SIZE, "yDesc", "dyDesc", "dxDesc", "dzDesc", data_type=HALF),
    *RESERVE_SIZE.operands(),
    *layout_rules(RESERVE_SIZE, ["xDesc"], forward=True),
    *query_type_rules(RESERVE_SIZE, [], ["xDesc"]),
    *ops_rules(RESERVE_SIZE),
    *rank_rules(RESERVE_SIZE, "xDesc", data_type=HALF),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
