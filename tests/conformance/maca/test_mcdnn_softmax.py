"""Rules of softmax (mcdnn 6.16, 7.3)."""

import numpy as np
import pytest

from understudy.maca import lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, both, operands
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, Tensor, descriptor, handle, nhwc_strides,
                                      scale)

INT32 = lib.MCDNN_DATA_INT32
VALUES = np.linspace(-1, 1, 2 * 3 * 2 * 5).reshape(2, 3, 2, 5)


def forward_arguments():
    x, y = Tensor(VALUES), Tensor(VALUES)
    return dict(handle=handle(), algo=lib.MCDNN_SOFTMAX_ACCURATE, mode=lib.MCDNN_SOFTMAX_MODE_CHANNEL, alpha=scale(1),
                xDesc=x, x=x, beta=scale(0), yDesc=y, y=y)


def backward_arguments():
    y, dy, dx = Tensor(VALUES), Tensor(VALUES), Tensor(VALUES)
    return dict(handle=handle(), algorithm=lib.MCDNN_SOFTMAX_ACCURATE, mode=lib.MCDNN_SOFTMAX_MODE_CHANNEL,
                alpha=scale(1), yDesc=y, yData=y, dyDesc=dy, dy=dy, beta=scale(0), dxDesc=dx, dx=dx)


FORWARD = Subject("mcdnnSoftmaxForward", forward_arguments, outputs=("y",))
BACKWARD = Subject("mcdnnSoftmaxBackward", backward_arguments, outputs=("dx",))


def six_dimensions(strides=None):
    return Tensor(np.zeros((2, 3, 2, 2, 2, 2)), strides=strides)


def gapped_space():
    return six_dimensions((72, 24, 12, 4, 2, 1))


X, Y = ("xDesc", "x"), ("yDesc", "y")
BACKWARD_PAIRS = [("yDesc", "yData"), ("dyDesc", "dy"), ("dxDesc", "dx")]

RULES = [
    *FORWARD.operands(),
    FORWARD.case("algo/range", {"algo": 3}, {"algo": 2}),
    FORWARD.case("mode/range", {"mode": 2}, {"mode": 1}),
    FORWARD.case("yDesc/sizes", {"yDesc": descriptor((2, 3, 5, 2))}, {"yDesc": descriptor((2, 3, 2, 5))}),
    FORWARD.case("yDesc/type", {"yDesc": descriptor((2, 3, 2, 5), BFLOAT16)}),
    FORWARD.case("y/in-place",
                 lambda it: {"y": it["x"], "yDesc": descriptor((2, 3, 2, 5), FLOAT, nhwc_strides((2, 3, 2, 5)))},
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
    BACKWARD.case("algorithm/range", {"algorithm": 2**32 - 1}, {"algorithm": 0}),
    BACKWARD.case("mode/range", {"mode": 2**32 - 1}, {"mode": 0}),
    *[BACKWARD.case(f"{name}/sizes", {name: descriptor((2, 3, 10))}) for name in ("dyDesc", "dxDesc")],
    BACKWARD.case("dyDesc/strides", lambda _: {"dyDesc": descriptor((2, 3, 2, 5), FLOAT, nhwc_strides((2, 3, 2, 5)))}),
    *[BACKWARD.case(f"{name}/type", {name: descriptor((2, 3, 2, 5), BFLOAT16)}) for name in ("dyDesc", "dxDesc")],
    BACKWARD.case("dx/in-place",
                  lambda it: {"dx": it["dy"], "dxDesc": descriptor((2, 3, 2, 5), FLOAT, nhwc_strides((2, 3, 2, 5)))},
                  lambda it: {"dx": it["dy"], "dxDesc": it["dyDesc"]}),
    BACKWARD.case("yDesc/unsupported-type", operands(BACKWARD_PAIRS, lambda: Tensor(VALUES, INT32)),
                  operands(BACKWARD_PAIRS, lambda: Tensor(VALUES, BFLOAT16))),
    BACKWARD.case("yDesc/packed-space", operands(BACKWARD_PAIRS, gapped_space),
                  operands(BACKWARD_PAIRS, six_dimensions)),
    BACKWARD.case("dxDesc/packed-space",
                  both(operands(BACKWARD_PAIRS[:2], six_dimensions), operands(BACKWARD_PAIRS[2:], gapped_space)),
                  operands(BACKWARD_PAIRS, six_dimensions)),
    BACKWARD.launch(),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
