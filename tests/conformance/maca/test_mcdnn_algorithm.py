"""Rules of algorithm descriptors and of the callback (mcdnn 3, 5.1)."""

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import Result, RuleCase, check_rule
from tests.conformance.maca.mcdnn_cases import Subject, descriptor_rules, fresh
from tests.maca.mcdnn_support import handle, ok
from tests.maca.test_mcdnn_algorithm import set_algorithm


def new(*, filled=True):
    made = fresh("mcdnnAlgorithmDescriptor_t", "Algorithm")
    if filled:
        ok(set_algorithm(made, 6))
    return made


def space_size():
    size = ffi.new("size_t *")
    ok(lib.mcdnnGetAlgorithmSpaceSize(handle(), new(), size))
    return size[0]


def saved(mark=None):
    space = ffi.new("char[]", space_size())
    ok(lib.mcdnnSaveAlgorithm(handle(), new(), space, space_size()))
    if mark is not None:
        space[0] = mark
    return space


def measurements(number=2):
    made = ffi.new("mcdnnAlgorithmPerformance_t[]", number)
    ok(lib.mcdnnCreateAlgorithmPerformance(made, number))
    return made


def destroy_measurements(times):
    made = measurements()
    return Result([int(lib.mcdnnDestroyAlgorithmPerformance(made, 2)) for _ in range(times)][-1])


GET = Subject("mcdnnGetAlgorithmDescriptor", lambda: dict(algoDesc=new(), algorithm=ffi.new("mcdnnAlgorithm_t *")))
SET_PERFORMANCE = Subject("mcdnnSetAlgorithmPerformance", lambda: dict(
    algoPerf=measurements()[0], algoDesc=new(), status=0, time=1.0, memory=2))
SIZE = Subject("mcdnnGetAlgorithmSpaceSize", lambda: dict(handle=handle(), algoDesc=new(),
                                                          algoSpaceSizeInBytes=ffi.new("size_t *")))
SAVE = Subject("mcdnnSaveAlgorithm", lambda: dict(handle=handle(), algoDesc=new(), algoSpace=saved(),
                                                  algoSpaceSizeInBytes=space_size()))
RESTORE = Subject("mcdnnRestoreAlgorithm", lambda: dict(handle=handle(), algoDesc=new(filled=False), algoSpace=saved(),
                                                        algoSpaceSizeInBytes=space_size()))
COPY = Subject("mcdnnCopyAlgorithmDescriptor", lambda: dict(src=new(), dest=new(filled=False)))
CREATE = Subject("mcdnnCreateAlgorithmPerformance", lambda: dict(
    algoPerf=ffi.new("mcdnnAlgorithmPerformance_t[]", 2), numberToCreate=2))
DESTROY = Subject("mcdnnDestroyAlgorithmPerformance", lambda: dict(algoPerf=measurements(), numberToDestroy=2))
CALLBACK = Subject("mcdnnGetCallback", lambda: dict(mask=ffi.new("unsigned *"), udata=ffi.new("void **"),
                                                    fptr=ffi.new("mcdnnCallback_t *")))

RULES = [
    *descriptor_rules("Algorithm", "mcdnnAlgorithmDescriptor_t", "algoDesc", {
        "mcdnnSetAlgorithmDescriptor": lambda it: set_algorithm(it, 1)}),
    GET.case("algoDesc/alive", {"algoDesc": None}),
    GET.case("algorithm/null", {"algorithm": None}),
    *COPY.operands(),
    CREATE.case("algoPerf/null", {"algoPerf": None}),
    CREATE.case("numberToCreate/positive", {"numberToCreate": 0}, {"numberToCreate": 1}),
    DESTROY.case("algoPerf/null", {"algoPerf": None}),
    DESTROY.case("numberToDestroy/positive", {"numberToDestroy": 0}, {"numberToDestroy": 1}),
    RuleCase("mcdnnDestroyAlgorithmPerformance/algoPerf/alive", lambda: destroy_measurements(2),
             lambda: destroy_measurements(1)),
    *SET_PERFORMANCE.operands(),
    RuleCase("mcdnnGetAlgorithmPerformance/algoPerf/alive",
             lambda: Result(lib.mcdnnGetAlgorithmPerformance(ffi.NULL, *[ffi.NULL] * 4)),
             lambda: Result(lib.mcdnnGetAlgorithmPerformance(measurements()[0], *[ffi.NULL] * 4))),
    *SIZE.operands(),
    *SAVE.operands(),
    SAVE.case("algoDesc/set", lambda _: {"algoDesc": new(filled=False)}),
    SAVE.case("algoSpaceSizeInBytes/minimum", lambda _: {"algoSpaceSizeInBytes": space_size() - 1}),
    *RESTORE.operands(),
    RESTORE.case("algoSpaceSizeInBytes/minimum", lambda _: {"algoSpaceSizeInBytes": space_size() - 1}),
    RESTORE.case("algoSpace/version", lambda _: {"algoSpace": saved(b"x")}),
    *CALLBACK.operands(),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
