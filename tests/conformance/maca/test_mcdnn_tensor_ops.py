"""Rules of whole-tensor arithmetic and reductions (mcdnn 7.3)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, both, descriptor_rules, fresh, operands
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, Buffer, Tensor, descriptor, handle, op_tensor,
                                      reduction, scale)

INT32 = lib.MCDNN_DATA_INT32
SIZES, REDUCED = (2, 3, 4, 5), (1, 3, 1, 1)
MAX_TENSOR, MAX_REDUCE = lib.MCDNN_OP_TENSOR_MAX, lib.MCDNN_REDUCE_TENSOR_MAX


def pair(prefix, sizes=SIZES):
    tensor = Tensor(np.ones(sizes))
    return {f"{prefix.lower()}Desc": tensor, prefix: tensor}


SET = Subject("mcdnnSetTensor", lambda: dict(handle=handle(), **pair("y"), valuePtr=scale(1)), ("y",))
SCALE = Subject("mcdnnScaleTensor", lambda: dict(handle=handle(), **pair("y"), alpha=scale(2)), ("y",))
TRANSFORM = Subject("mcdnnTransformTensor", lambda: dict(handle=handle(), alpha=scale(2), **pair("x"), beta=scale(0),
                                                         **pair("y")), ("y",))
ADD = Subject("mcdnnAddTensor", lambda: dict(handle=handle(), alpha=scale(2), **pair("A"), beta=scale(0),
                                             **pair("C")), ("C",))
OP = Subject("mcdnnOpTensor", lambda: dict(handle=handle(), opTensorDesc=op_tensor(MAX_TENSOR), alpha1=scale(2),
                                           **pair("A"),
                                           alpha2=scale(2), **pair("B"), beta=scale(0), **pair("C")), ("C",))


def reducing():
    return dict(handle=handle(), reduceTensorDesc=reduction(MAX_REDUCE, indices=True), **pair("A"), **pair("C",
                                                                                                           REDUCED))


REDUCE = Subject("mcdnnReduceTensor", lambda: dict(**reducing(), indices=Buffer(np.zeros(3, np.uint32)),
                                                   indicesSizeInBytes=12,
                                                   workspace=None, workspaceSizeInBytes=0, alpha=scale(2),
                                                   beta=scale(0)), ("C",))


def query():
    legal = reducing()
    return dict(**{name: legal[name] for name in ("handle", "reduceTensorDesc", "aDesc", "cDesc")},
                sizeInBytes=ffi.new("size_t *"))


INDICES, WORKSPACE = Subject("mcdnnGetReductionIndicesSize", query), Subject("mcdnnGetReductionWorkspaceSize", query)
SET_OP = Subject("mcdnnSetOpTensorDescriptor", lambda: dict(opTensorDesc=fresh("mcdnnOpTensorDescriptor_t", "OpTensor"),
                                                            opTensorOp=0, opTensorCompType=FLOAT, opTensorNanOpt=0))
SET_REDUCE = Subject("mcdnnSetReduceTensorDescriptor", lambda: dict(
    reduceTensorDesc=fresh("mcdnnReduceTensorDescriptor_t", "ReduceTensor"), reduceTensorOp=0,
    reduceTensorCompType=FLOAT,
    reduceTensorNanOpt=0, reduceTensorIndices=0, reduceTensorIndicesType=0))


def typed(data_type, *names, sizes=SIZES):
    return operands([(f"{name.lower()}Desc", name) for name in names], lambda: Tensor(np.ones(sizes), data_type))


def shaped(name, sizes, data_type=FLOAT):
    return {name: descriptor(sizes, data_type)}


def ranges(subject, **lasts):
    return [subject.case(f"{name}/range", {name: last + 1}, {name: last}) for name, last in lasts.items()]


def unset(name, kind, parameter):
    return lambda _: {parameter: fresh(kind, name)}


def reduce_rules(subject):
    return [
        subject.case("reduceTensorDesc/set", unset("ReduceTensor", "mcdnnReduceTensorDescriptor_t",
                                                   "reduceTensorDesc")),
        subject.case("cDesc/reduced", shaped("cDesc", SIZES)),
    ]


def wide_indices(width):
    return lambda _: {"reduceTensorDesc": reduction(MAX_REDUCE, indices=True, indices_type=width)}


RULES = [
    *SET.operands(), SET.case("yDesc/unsupported-type", typed(INT32, "y"), typed(HALF, "y")), SET.launch(),
    *SCALE.operands(), SCALE.case("yDesc/unsupported-type", typed(INT32, "y"), typed(HALF, "y")), SCALE.launch(),
    *TRANSFORM.operands(),
    TRANSFORM.case("yDesc/sizes", shaped("yDesc", (2, 3, 5, 4))),
    TRANSFORM.case("xDesc/unsupported-type", typed(INT32, "x"), typed(HALF, "x")),
    TRANSFORM.case("yDesc/unsupported-type", typed(INT32, "y"), typed(HALF, "y")),
    TRANSFORM.launch(),
    *ADD.operands(),
    ADD.case("aDesc/broadcast", shaped("aDesc", (2, 3, 4, 2)), shaped("aDesc", (2, 3, 4, 1))),
    ADD.case("aDesc/type", shaped("aDesc", SIZES, BFLOAT16)),
    ADD.case("cDesc/rank", {**shaped("aDesc", (2, 3, 4, 5, 1, 1)), **shaped("cDesc", (2, 3, 4, 5, 1, 1))},
             {**shaped("aDesc", (2, 3, 4, 5, 1)), **shaped("cDesc", (2, 3, 4, 5, 1))}),
    ADD.case("cDesc/unsupported-type", typed(INT32, "A", "C"), typed(HALF, "A", "C")),
    ADD.launch(),
    *descriptor_rules("OpTensor", "mcdnnOpTensorDescriptor_t", "opTensorDesc", {
        "mcdnnGetOpTensorDescriptor": lambda it: lib.mcdnnGetOpTensorDescriptor(it, *[ffi.NULL] * 3)}),
    *SET_OP.operands(),
    *ranges(SET_OP, opTensorOp=5, opTensorNanOpt=1),
    *OP.operands(),
    OP.case("opTensorDesc/set", unset("OpTensor", "mcdnnOpTensorDescriptor_t", "opTensorDesc")),
    OP.case("aDesc/sizes", shaped("aDesc", REDUCED)),
    OP.case("aDesc/type", shaped("aDesc", SIZES, BFLOAT16)),
    OP.case("bDesc/broadcast", shaped("bDesc", (2, 3, 2, 5)), shaped("bDesc", REDUCED)),
    OP.case("bDesc/type", shaped("bDesc", SIZES, BFLOAT16)),
    OP.case("cDesc/unsupported-type", typed(INT32, "A", "B", "C"), typed(HALF, "A", "B", "C")),
    OP.case("opTensorDesc/compute-type", lambda _: {"opTensorDesc": op_tensor(MAX_TENSOR, DOUBLE)}),
    OP.launch(),
    *descriptor_rules("ReduceTensor", "mcdnnReduceTensorDescriptor_t", "reduceTensorDesc", {
        "mcdnnGetReduceTensorDescriptor": lambda it: lib.mcdnnGetReduceTensorDescriptor(it, *[ffi.NULL] * 5)}),
    *SET_REDUCE.operands(),
    *ranges(SET_REDUCE, reduceTensorOp=8, reduceTensorNanOpt=1, reduceTensorIndices=1, reduceTensorIndicesType=3),
    *INDICES.operands(), *reduce_rules(INDICES),
    INDICES.case("reduceTensorDesc/indices-type", wide_indices(1), wide_indices(0)),
    *WORKSPACE.operands(), *reduce_rules(WORKSPACE),
    *REDUCE.operands(optional=("workspace",)), *reduce_rules(REDUCE),
    REDUCE.case("indicesSizeInBytes/minimum", {"indicesSizeInBytes": 11}),
    REDUCE.case("aDesc/type", shaped("aDesc", SIZES, BFLOAT16)),
    REDUCE.case("cDesc/unsupported-type", both(typed(INT32, "A"), typed(INT32, "C", sizes=REDUCED)),
                both(typed(HALF, "A"), typed(HALF, "C", sizes=REDUCED))),
    REDUCE.case("reduceTensorDesc/compute-type", lambda _: {"reduceTensorDesc": reduction(MAX_REDUCE, HALF,
                                                                                          indices=True)}),
    REDUCE.case("reduceTensorDesc/indices-type", wide_indices(3), wide_indices(0)),
    REDUCE.launch(),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
