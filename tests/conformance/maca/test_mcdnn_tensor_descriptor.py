"""Rules of tensor descriptors (mcdnn 7.2), each on a descriptor that must keep its old contents."""

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import Result, RuleCase, check_rule
from tests.maca.mcdnn_support import FLOAT, call, ok

NCHW, NHWC, VECT_C = lib.MCDNN_TENSOR_NCHW, lib.MCDNN_TENSOR_NHWC, lib.MCDNN_TENSOR_NCHW_VECT_C
INT8X4, INT8X32, INT64, BOOLEAN = (lib.MCDNN_DATA_INT8x4, lib.MCDNN_DATA_INT8x32, lib.MCDNN_DATA_INT64,
                                   lib.MCDNN_DATA_BOOLEAN)


def new():
    made = ffi.new("mcdnnTensorDescriptor_t *")
    ok(lib.mcdnnCreateTensorDescriptor(made))
    return made[0]


def contents(descriptor):
    kind, rank = ffi.new("mcdnnDataType_t *"), ffi.new("int *")
    sizes, strides = ffi.new("int[8]"), ffi.new("int[8]")
    ok(lib.mcdnnGetTensorNdDescriptor(descriptor, 8, kind, rank, sizes, strides))
    return kind[0], rank[0], list(sizes), list(strides)


DEFAULTS = {
    "mcdnnSetTensor4dDescriptor": dict(format=NCHW, dataType=FLOAT, n=2, c=3, h=4, w=5),
    "mcdnnSetTensor4dDescriptorEx": dict(dataType=FLOAT, n=2, c=3, h=4, w=5, nStride=60, cStride=20, hStride=5,
                                         wStride=1),
    "mcdnnSetTensorNdDescriptor": dict(dataType=FLOAT, nbDims=4, dimA=[2, 3, 4, 5], strideA=None),
    "mcdnnSetTensorNdDescriptorEx": dict(format=NCHW, dataType=FLOAT, nbDims=4, dimA=[2, 3, 4, 5]),
}


def set_and_compare(function, changes):
    descriptor = new()
    ok(lib.mcdnnSetTensor4dDescriptor(descriptor, NHWC, INT64, 1, 2, 3, 4))
    before = contents(descriptor)
    status = call(function, **{"tensorDesc": descriptor, **DEFAULTS[function], **changes})
    untouched = contents(descriptor) == before
    ok(lib.mcdnnDestroyTensorDescriptor(descriptor))
    return Result(status, untouched if status else None)


def setter(rule, refused, accepted=None):
    function = rule.split("/")[0]
    return RuleCase(rule, lambda: set_and_compare(function, refused),
                    lambda: set_and_compare(function, accepted or {}))


def setters(functions, tail, refused, accepted=None):
    return [setter(f"{function}/{tail}", refused, accepted) for function in functions]


FOUR, FOUR_EX, ND, ND_EX = DEFAULTS
ALL = tuple(DEFAULTS)


def getter(rule, call_with):
    """`call_with(descriptor)` is refused for NULL and accepted for a live one."""
    return RuleCase(rule, lambda: Result(call_with(ffi.NULL)), lambda: Result(call_with(new())))


def size_in_bytes(*, to_null=False):
    size = ffi.new("size_t *", 99)
    status = lib.mcdnnGetTensorSizeInBytes(new(), ffi.NULL if to_null else size)
    return Result(status, size[0] == 99 if status else None)


def destroy(times):
    descriptor = new()
    statuses = [lib.mcdnnDestroyTensorDescriptor(descriptor) for _ in range(times)]
    return Result(statuses[-1])


def create(pointer):
    return Result(lib.mcdnnCreateTensorDescriptor(pointer))


RULES = [
    RuleCase("mcdnnCreateTensorDescriptor/tensorDesc/null", lambda: create(ffi.NULL),
             lambda: create(ffi.new("mcdnnTensorDescriptor_t *"))),
    RuleCase("mcdnnDestroyTensorDescriptor/tensorDesc/alive", lambda: destroy(2), lambda: destroy(1)),
    *setters(ALL, "tensorDesc/alive", {"tensorDesc": None}),
    *setters(ALL, "dataType/range", {"dataType": BOOLEAN}, {"dataType": INT64}),
    *setters([FOUR, ND_EX], "format/range", {"format": 3}, {"format": NHWC}),
    *setters([FOUR, ND_EX], "format/vector-type", {"format": NHWC, "dataType": INT8X4},
             {"format": NCHW, "dataType": INT8X4}),
    *[case for size in "nchw" for case in setters([FOUR, FOUR_EX], f"{size}/positive", {size: 0}, {size: 1})],
    *[setter(f"{FOUR_EX}/{stride}/positive", {stride: 0}, {stride: 1})
      for stride in ("nStride", "cStride", "hStride", "wStride")],
    setter(f"{FOUR}/c/vectors", {"format": VECT_C, "dataType": INT8X4, "c": 6},
           {"format": VECT_C, "dataType": INT8X4, "c": 8}),
    setter(f"{FOUR_EX}/c/vectors", {"dataType": INT8X32, "c": 48}, {"dataType": INT8X32, "c": 64}),
    setter(f"{ND}/dimA/vectors", {"dataType": INT8X4, "dimA": [1, 2, 4, 4]},
           {"dataType": INT8X4, "dimA": [1, 4, 2, 2]}),
    setter(f"{ND_EX}/dimA/vectors", {"format": VECT_C, "dataType": INT8X4, "nbDims": 1, "dimA": [4]},
           {"format": VECT_C, "dataType": INT8X4, "nbDims": 2, "dimA": [1, 4]}),
    *setters([ND, ND_EX], "dimA/null", {"dimA": None}),
    *setters([ND, ND_EX], "dimA/positive", {"dimA": [2, 3, 0, 5]}, {"dimA": [2, 3, 1, 5]}),
    *setters([ND, ND_EX], "nbDims/positive", {"nbDims": 0}, {"nbDims": 1}),
    *setters([ND, ND_EX], "nbDims/limit", {"nbDims": 9, "dimA": [1] * 9}, {"nbDims": 8, "dimA": [1] * 8}),
    setter(f"{FOUR}/tensorDesc/elements", {"n": 3, "c": 1, "h": 1 << 16, "w": 1 << 14},
           {"n": 2, "c": 1, "h": 1 << 16, "w": 1 << 14}),
    setter(f"{FOUR_EX}/tensorDesc/elements", {"n": 2, "nStride": (1 << 31) - 59},
           {"n": 2, "nStride": (1 << 31) - 60}),
    setter(f"{ND}/tensorDesc/elements", {"dimA": [2, 3, 4, 5], "strideA": [-(1 << 31) + 59, 20, 5, 1]},
           {"dimA": [2, 3, 4, 5], "strideA": [-(1 << 31) + 60, 20, 5, 1]}),
    setter(f"{ND_EX}/tensorDesc/elements", {"dimA": [(1 << 31) - 1] * 4}, {"dimA": [(1 << 31) - 1, 1, 1, 1]}),
    getter("mcdnnGetTensor4dDescriptor/tensorDesc/alive",
           lambda it: lib.mcdnnGetTensor4dDescriptor(it, *[ffi.NULL] * 9)),
    getter("mcdnnGetTensorNdDescriptor/tensorDesc/alive",
           lambda it: lib.mcdnnGetTensorNdDescriptor(it, 4, *[ffi.NULL] * 4)),
    getter("mcdnnGetTensorSizeInBytes/tensorDesc/alive",
           lambda it: lib.mcdnnGetTensorSizeInBytes(it, ffi.new("size_t *"))),
    RuleCase("mcdnnGetTensorSizeInBytes/size/null", lambda: size_in_bytes(to_null=True), size_in_bytes),
]


# Elements of which many are one: counted, not measured.
REPEATED = [
    setter(f"{ND}/tensorDesc/elements", {"dimA": [1 << 16, 1 << 15, 2, 1], "strideA": [0] * 4},
           {"dimA": [1 << 16, 1 << 15, 1, 1], "strideA": [0] * 4}),
    setter(f"{ND}/tensorDesc/elements", {"dimA": [(1 << 31) - 1] * 4, "strideA": [0] * 4}),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


@pytest.mark.parametrize("case", REPEATED, ids=range(len(REPEATED)))
def test_repeated_elements(case):
    check_rule(case)
