"""Rules of activations (mcdnn 6.1, 7.2, 7.3)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, both, descriptor_rules, fresh, operands
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, Tensor, activation, descriptor, handle, nhwc_strides, scale)

INT32 = lib.MCDNN_DATA_INT32
SIZES = (2, 3, 2, 5)
VALUES = np.linspace(-1, 1, 60).reshape(SIZES)
NHWC = nhwc_strides(SIZES)


def forward_arguments():
    x, y = Tensor(VALUES), Tensor(VALUES)
    return dict(handle=handle(), activationDesc=activation(lib.MCDNN_ACTIVATION_TANH, 0.0), alpha=scale(1), xDesc=x,
                x=x,
                beta=scale(0), yDesc=y, y=y)


def backward_arguments():
    y, dy, x, dx = (Tensor(VALUES) for _ in range(4))
    return dict(handle=handle(), activationDesc=activation(lib.MCDNN_ACTIVATION_TANH, 0.0), alpha=scale(1), yDesc=y,
                y=y,
                dyDesc=dy, dy=dy, xDesc=x, x=x, beta=scale(0), dxDesc=dx, dx=dx)


def unset(_):
    return {"activationDesc": fresh("mcdnnActivationDescriptor_t", "Activation")}


FORWARD = Subject("mcdnnActivationForward", forward_arguments, outputs=("y",))
BACKWARD = Subject("mcdnnActivationBackward", backward_arguments, outputs=("dx",))
X, Y = ("xDesc", "x"), ("yDesc", "y")
DY, DX = ("dyDesc", "dy"), ("dxDesc", "dx")


def six_dimensions(strides=None):
    return Tensor(np.zeros((2, 3, 2, 2, 2, 2)), strides=strides)


def gapped_space():
    return six_dimensions((72, 24, 12, 4, 2, 1))


def other_mode(mode):
    return lambda _: {"activationDesc": activation(mode, 0.0)}


def sizes(*names):
    return {name: descriptor((2, 3, 5, 2)) for name in names}


def types(*names):
    return {name: descriptor(SIZES, BFLOAT16) for name in names}


def layouts(*names):
    return {name: descriptor(SIZES, FLOAT, NHWC) for name in names}


RULES = [
    *descriptor_rules("Activation", "mcdnnActivationDescriptor_t", "activationDesc", {
        "mcdnnSetActivationDescriptor": lambda it: lib.mcdnnSetActivationDescriptor(it, 1, 0, 0.0),
        "mcdnnGetActivationDescriptor": lambda it: lib.mcdnnGetActivationDescriptor(it, *[ffi.NULL] * 3),
        "mcdnnSetActivationDescriptorSwishBeta": lambda it: lib.mcdnnSetActivationDescriptorSwishBeta(it, 1.0),
        "mcdnnGetActivationDescriptorSwishBeta":
            lambda it: lib.mcdnnGetActivationDescriptorSwishBeta(it, ffi.new("double *")),
    }),
    Subject("mcdnnGetActivationDescriptorSwishBeta",
            lambda: dict(activationDesc=activation(0, 0.0), swish_beta=ffi.new("double *"))
            ).case("swish_beta/null", {"swish_beta": None}),
    *FORWARD.operands(),
    FORWARD.case("activationDesc/set", unset),
    FORWARD.case("activationDesc/mode", other_mode(lib.MCDNN_ACTIVATION_IDENTITY),
                 other_mode(lib.MCDNN_ACTIVATION_SWISH)),
    FORWARD.case("yDesc/sizes", sizes("yDesc")),
    FORWARD.case("yDesc/type", types("yDesc")),
    FORWARD.case("y/in-place", lambda it: {"y": it["x"], **layouts("yDesc")},
                 lambda it: {"y": it["x"], "yDesc": it["xDesc"]}),
    FORWARD.case("xDesc/unsupported-type", operands([X, Y], lambda: Tensor(VALUES, INT32)),
                 both(operands([X, Y], lambda: Tensor(VALUES, DOUBLE)),
                      lambda _: {"alpha": scale(1, DOUBLE), "beta": scale(0, DOUBLE)})),
    FORWARD.case("xDesc/packed-space", both(operands([X], gapped_space), operands([Y], six_dimensions)),
                 operands([X, Y], six_dimensions)),
    FORWARD.case("yDesc/packed-space", both(operands([X], six_dimensions), operands([Y], gapped_space)),
                 operands([X, Y], six_dimensions)),
    FORWARD.launch(),
    *BACKWARD.operands(),
    BACKWARD.case("activationDesc/set", unset),
    BACKWARD.case("activationDesc/mode", other_mode(7), other_mode(lib.MCDNN_ACTIVATION_SWISH)),
    BACKWARD.case("dx/in-place", lambda it: {"dx": it["dy"], **layouts("dxDesc", "xDesc")},
                  lambda it: {"dx": it["dy"], "dxDesc": it["dyDesc"]}),
    BACKWARD.case("xDesc/sizes", sizes("xDesc", "dxDesc")),
    BACKWARD.case("xDesc/type", types("xDesc", "dxDesc")),
    BACKWARD.case("dyDesc/sizes", sizes("dyDesc")),
    BACKWARD.case("dxDesc/sizes", sizes("dxDesc")),
    BACKWARD.case("dyDesc/type", types("dyDesc")),
    BACKWARD.case("dxDesc/type", types("dxDesc")),
    BACKWARD.case("dyDesc/strides", layouts("dyDesc"), layouts("yDesc", "dyDesc")),
    BACKWARD.case("dxDesc/strides", layouts("dxDesc"), layouts("xDesc", "dxDesc")),
    BACKWARD.case("yDesc/unsupported-type", operands([X, Y, DX, DY], lambda: Tensor(VALUES, INT32)),
                  operands([X, Y, DX, DY], lambda: Tensor(VALUES, BFLOAT16))),
    BACKWARD.case("yDesc/packed-space", both(operands([Y, DY], gapped_space), operands([X, DX], six_dimensions)),
                  operands([X, Y, DX, DY], six_dimensions)),
    BACKWARD.case("xDesc/packed-space", both(operands([X, DX], gapped_space), operands([Y, DY], six_dimensions)),
                  operands([X, Y, DX, DY], six_dimensions)),
    BACKWARD.launch(),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
