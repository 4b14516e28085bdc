"""Rules of pooling (mcdnn 6.15, 7.2, 7.3)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, both, descriptor_rules, fresh, operands
from tests.maca.mcdnn_support import BFLOAT16, DOUBLE, FLOAT, Tensor, descriptor, handle, nhwc_strides, pooling, scale

SIZES, OUTPUTS = (2, 3, 4, 6), (2, 3, 2, 3)
X, Y = ("xDesc", "x"), ("yDesc", "y")
NHWC = nhwc_strides(SIZES)


def doubled(strides):
    return tuple(2 * stride for stride in strides)


def window(mode=lib.MCDNN_POOLING_MAX):
    return pooling(mode, (2, 2), (0, 0), (2, 2))


def deep_window(_=None):
    return pooling(lib.MCDNN_POOLING_MAX, (1, 1, 1), (0, 0, 0), (1, 1, 1))


def forward_arguments():
    x, y = Tensor(np.zeros(SIZES)), Tensor(np.ones(OUTPUTS))
    return dict(handle=handle(), poolingDesc=window(), alpha=scale(1), xDesc=x, x=x, beta=scale(0), yDesc=y, y=y)


def backward_arguments():
    x, dx, y, dy = Tensor(np.zeros(SIZES)), Tensor(np.ones(SIZES)), Tensor(np.zeros(OUTPUTS)), Tensor(np.ones(OUTPUTS))
    return dict(handle=handle(), poolingDesc=window(), alpha=scale(1), yDesc=y, y=y, dyDesc=dy, dy=dy, xDesc=x, xData=x,
                beta=scale(0), dxDesc=dx, dx=dx)


def set_2d():
    return dict(poolingDesc=fresh("mcdnnPoolingDescriptor_t", "Pooling"), mode=0, maxpoolingNanOpt=0, windowHeight=1,
                windowWidth=1, verticalPadding=0, horizontalPadding=0, verticalStride=1, horizontalStride=1)


def set_nd():
    return dict(poolingDesc=fresh("mcdnnPoolingDescriptor_t", "Pooling"), mode=0, maxpoolingNanOpt=0, nbDims=2,
                windowDimA=[1, 1], paddingA=[0, 0], strideA=[1, 1])


FORWARD = Subject("mcdnnPoolingForward", forward_arguments, ("y",))
BACKWARD = Subject("mcdnnPoolingBackward", backward_arguments, ("dx",))
SET_2D, SET_ND = Subject("mcdnnSetPooling2dDescriptor", set_2d), Subject("mcdnnSetPoolingNdDescriptor", set_nd)
GET_2D = Subject("mcdnnGetPooling2dDescriptor", lambda: dict(
    poolingDesc=window(), mode=None, maxpoolingNanOpt=None, windowHeight=None, windowWidth=None, verticalPadding=None,
    horizontalPadding=None, verticalStride=None, horizontalStride=None))
OUTPUT_2D = Subject("mcdnnGetPooling2dForwardOutputDim", lambda: dict(
    poolingDesc=window(), inputTensorDesc=Tensor(np.zeros(SIZES)), n=None, c=None, h=None, w=None))
OUTPUT_ND = Subject("mcdnnGetPoolingNdForwardOutputDim", lambda: dict(
    poolingDesc=window(), inputTensorDesc=Tensor(np.zeros(SIZES)), nbDims=4, outputTensorDimA=ffi.new("int[8]")))


def unset(_):
    return {"poolingDesc": fresh("mcdnnPoolingDescriptor_t", "Pooling")}


def shaped(sizes, *names, data_type=FLOAT, strides=None):
    return {name: descriptor(sizes, data_type, strides) for name in names}


def all_types(subject, data_type):
    inputs = [X] if subject is FORWARD else [("xDesc", "xData"), ("dxDesc", "dx")]
    outputs = [Y] if subject is FORWARD else [Y, ("dyDesc", "dy")]
    return both(operands(inputs, lambda: Tensor(np.zeros(SIZES), data_type)),
                operands(outputs, lambda: Tensor(np.zeros(OUTPUTS), data_type)),
                lambda _: {"alpha": scale(1, data_type), "beta": scale(0, data_type)})


def least(subject, parameter, refused, accepted):
    return subject.case(f"{parameter}/range", {parameter: refused}, {parameter: accepted})


RULES = [
    *descriptor_rules("Pooling", "mcdnnPoolingDescriptor_t", "poolingDesc", {
        "mcdnnGetPoolingNdDescriptor": lambda it: lib.mcdnnGetPoolingNdDescriptor(it, 3, *[ffi.NULL] * 6)}),
    *SET_2D.operands(),
    least(SET_2D, "mode", 4, 3),
    least(SET_2D, "maxpoolingNanOpt", 2, 1),
    *[least(SET_2D, name, 0, 1) for name in ("windowHeight", "windowWidth", "verticalStride", "horizontalStride")],
    *[least(SET_2D, name, -1, 0) for name in ("verticalPadding", "horizontalPadding")],
    *SET_ND.operands(),
    least(SET_ND, "mode", 4, 3),
    least(SET_ND, "maxpoolingNanOpt", 2, 1),
    least(SET_ND, "windowDimA", [1, 0], [1, 1]),
    least(SET_ND, "paddingA", [-1, 0], [0, 0]),
    least(SET_ND, "strideA", [0, 1], [1, 1]),
    SET_ND.case("nbDims/supported", {"nbDims": 4, "windowDimA": [1] * 4, "paddingA": [0] * 4, "strideA": [1] * 4},
                {"nbDims": 3, "windowDimA": [1] * 3, "paddingA": [0] * 3, "strideA": [1] * 3}),
    GET_2D.case("poolingDesc/alive", {"poolingDesc": None}),
    GET_2D.case("poolingDesc/dimensions", lambda _: {"poolingDesc": deep_window()}),
    *OUTPUT_2D.operands(optional=("n", "c", "h", "w")),
    OUTPUT_2D.case("poolingDesc/set", unset),
    OUTPUT_2D.case("poolingDesc/dimensions",
                   lambda _: {"poolingDesc": deep_window(), **shaped((2, 3, 4, 4, 4), "inputTensorDesc")}),
    OUTPUT_2D.case("inputTensorDesc/rank", shaped((2, 3, 4, 4, 4), "inputTensorDesc")),
    OUTPUT_2D.case("inputTensorDesc/window", shaped((2, 3, 1, 4), "inputTensorDesc"),
                   shaped((2, 3, 2, 4), "inputTensorDesc")),
    *OUTPUT_ND.operands(),
    OUTPUT_ND.case("poolingDesc/set", unset),
    OUTPUT_ND.case("nbDims/rank", {"nbDims": 5}),
    OUTPUT_ND.case("inputTensorDesc/rank", {"nbDims": 5, **shaped((2, 3, 4, 4, 4), "inputTensorDesc")}),
    OUTPUT_ND.case("inputTensorDesc/window", shaped((2, 3, 4, 1), "inputTensorDesc"),
                   shaped((2, 3, 4, 2), "inputTensorDesc")),

    *FORWARD.operands(),
    FORWARD.case("poolingDesc/set", unset),
    FORWARD.case("xDesc/rank", {"poolingDesc": deep_window()}),
    FORWARD.case("yDesc/output-sizes", shaped((2, 3, 3, 2), "yDesc")),
    FORWARD.case("yDesc/type", shaped(OUTPUTS, "yDesc", data_type=BFLOAT16)),
    FORWARD.case("xDesc/unsupported-type", all_types(FORWARD, lib.MCDNN_DATA_INT32), all_types(FORWARD, DOUBLE)),
    FORWARD.case("xDesc/innermost-stride", shaped(SIZES, "xDesc", strides=doubled(NHWC)),
                 shaped(SIZES, "xDesc", strides=NHWC)),
    FORWARD.case("yDesc/innermost-stride", shaped(OUTPUTS, "yDesc", strides=doubled(nhwc_strides(OUTPUTS))),
                 shaped(OUTPUTS, "yDesc", strides=nhwc_strides(OUTPUTS))),
    FORWARD.launch(),

    *BACKWARD.operands(),
    BACKWARD.case("poolingDesc/set", unset),
    BACKWARD.case("dyDesc/sizes", shaped((2, 3, 3, 2), "dyDesc")),
    BACKWARD.case("dyDesc/strides", shaped(OUTPUTS, "dyDesc", strides=(20, 6, 3, 1))),
    BACKWARD.case("dxDesc/sizes", shaped((2, 3, 6, 4), "dxDesc")),
    BACKWARD.case("dxDesc/strides", shaped(SIZES, "dxDesc", strides=(80, 24, 6, 1))),
    BACKWARD.case("xDesc/type", shaped(SIZES, "xDesc", data_type=BFLOAT16)),
    BACKWARD.case("yDesc/type", shaped(OUTPUTS, "yDesc", data_type=BFLOAT16)),
    BACKWARD.case("dxDesc/type",
                  lambda _: {"poolingDesc": window(lib.MCDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING), "xDesc": None,
                             "xData": None,
                             **shaped(SIZES, "dxDesc", data_type=BFLOAT16)},
                  lambda _: {"poolingDesc": window(lib.MCDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING), "xDesc": None,
                             "xData": None}),
    BACKWARD.case("dxDesc/rank", {"poolingDesc": deep_window()}),
    BACKWARD.case("dyDesc/output-sizes", operands([Y, ("dyDesc", "dy")], lambda: Tensor(np.zeros((2, 3, 2, 2))))),
    BACKWARD.case("dyDesc/unsupported-type", all_types(BACKWARD, lib.MCDNN_DATA_INT32), all_types(BACKWARD, BFLOAT16)),
    BACKWARD.case("dyDesc/innermost-stride", shaped(OUTPUTS, "dyDesc", "yDesc", strides=nhwc_strides(OUTPUTS))),
    BACKWARD.case("dxDesc/innermost-stride", shaped(SIZES, "dxDesc", "xDesc", strides=NHWC)),
    BACKWARD.launch(),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
