"""Rules of dropout (mcdnn 6.9, 7.4)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, broken_handle, descriptor_rules, fresh, operands
from tests.maca.mcdnn_support import BFLOAT16, FLOAT, Buffer, Tensor, descriptor, handle, nhwc_strides, ok

SIZES = (2, 3, 4, 5)
MASK = 16  # bytes for 120 elements
X, Y, DY, DX = ("xdesc", "x"), ("ydesc", "y"), ("dydesc", "dy"), ("dxdesc", "dx")
NHWC = nhwc_strides(SIZES)
KEEP = []  # state buffers outlive the descriptors that are bound to them


def states_size():
    size = ffi.new("size_t *")
    ok(lib.mcdnnDropoutGetStatesSize(handle(), size))
    return size[0]


def states():
    KEEP.append(Buffer(np.zeros(states_size(), np.uint8)))
    return KEEP[-1]


def unbound(_=None):
    return fresh("mcdnnDropoutDescriptor_t", "Dropout")


def bound():
    made = unbound()
    ok(lib.mcdnnSetDropoutDescriptor(made, handle(), 0.5, states().address, states_size(), 1))
    return made


def call_arguments(first, second):
    a, b = Tensor(np.ones(SIZES)), Tensor(np.ones(SIZES))
    return dict(handle=handle(), dropoutDesc=bound(), **{name: a for name in first}, **{name: b for name in second},
                reserveSpace=Buffer(np.zeros(MASK, np.uint8)), reserveSpaceSizeInBytes=MASK)


def binding():
    return dict(dropoutDesc=unbound(), handle=handle(), dropout=0.5, states=states(), stateSizeInBytes=states_size(),
                seed=1)


FORWARD = Subject("mcdnnDropoutForward", lambda: call_arguments(X, Y), ("y",))
BACKWARD = Subject("mcdnnDropoutBackward", lambda: call_arguments(DY, DX), ("dx",))
SET, RESTORE = Subject("mcdnnSetDropoutDescriptor", binding), Subject("mcdnnRestoreDropoutDescriptor", binding)
GET = Subject("mcdnnGetDropoutDescriptor", lambda: dict(dropoutDesc=bound(), handle=handle(), dropout=None, states=None,
                                                        seed=None))
STATES_SIZE = Subject("mcdnnDropoutGetStatesSize", lambda: dict(handle=handle(), sizeInBytes=ffi.new("size_t *")))
RESERVE_SIZE = Subject("mcdnnDropoutGetReserveSpaceSize", lambda: dict(xdesc=Tensor(np.ones(SIZES)),
                                                                       sizeInBytes=ffi.new("size_t *")))


def direction_rules(subject, first, second):
    source, target = first[0], second[0]
    return [
        *subject.operands(),
        subject.case(f"{target}/elements", {target: descriptor((2, 3, 4, 4))}, {target: descriptor((6, 20))}),
        subject.case(f"{target}/type", {target: descriptor(SIZES, BFLOAT16)}),
        subject.case(f"{second[1]}/in-place", lambda it: {second[1]: it[first[1]], target: descriptor(SIZES, FLOAT,
                                                                                                      NHWC)},
                     lambda it: {second[1]: it[first[1]], target: it[source]}),
        subject.case("reserveSpaceSizeInBytes/minimum", {"reserveSpaceSizeInBytes": MASK - 1}),
        subject.case("dropoutDesc/states", lambda _: {"dropoutDesc": unbound()}),
        subject.case(f"{source}/unsupported-type", operands([first, second], lambda: Tensor(np.ones(SIZES),
                                                                                            lib.MCDNN_DATA_INT8)),
                     operands([first, second], lambda: Tensor(np.ones(SIZES), BFLOAT16))),
        subject.launch(),
    ]


def too_small(_):
    return {"stateSizeInBytes": states_size() - 1}


RULES = [
    *descriptor_rules("Dropout", "mcdnnDropoutDescriptor_t", "dropoutDesc", {}),
    *STATES_SIZE.operands(),
    *RESERVE_SIZE.operands(),
    *SET.operands(optional=("states",)),
    SET.case("stateSizeInBytes/minimum", too_small, lambda _: {"states": None, "stateSizeInBytes": 0}),
    SET.case("handle/launch", lambda _: {"handle": broken_handle()}),
    *RESTORE.operands(),
    RESTORE.case("stateSizeInBytes/minimum", too_small),
    *GET.operands(optional=("dropout", "states", "seed")),
    *direction_rules(FORWARD, X, Y),
    *direction_rules(BACKWARD, DY, DX),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
