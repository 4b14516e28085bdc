"""Rules of tensor and filter transforms (mcdnn 5.1, 7.2, 7.3)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, descriptor_rules, fresh, unset_tensor
from tests.maca.mcdnn_support import HALF, Tensor, descriptor, handle, scale
from tests.maca.test_mcdnn_tensor_transform import filter_descriptor, transform

INT32 = lib.MCDNN_DATA_INT32
SOURCE, FOLDED = (2, 4, 4, 6), (2, 16, 2, 3)
HUGE = (2**31 - 1, 1, 1, 1)


def new():
    return fresh("mcdnnTensorTransformDescriptor_t", "TensorTransform")


SET = Subject("mcdnnSetTensorTransformDescriptor", lambda: dict(
    transformDesc=new(), nbDims=4, destFormat=0, padBeforeA=[0] * 8, padAfterA=[0] * 8, foldA=[1] * 6, direction=0))
INIT = Subject("mcdnnInitTransformDest", lambda: dict(
    transformDesc=transform(4, fold=(2, 2)), srcDesc=descriptor(SOURCE), destDesc=unset_tensor(),
    destSizeInBytes=ffi.new("size_t *")))
TENSOR = Subject("mcdnnTransformTensorEx", lambda: dict(
    handle=handle(), transDesc=transform(4, fold=(2, 2)), alpha=scale(1), beta=scale(0), srcDesc=descriptor(SOURCE),
    srcData=Tensor(np.ones(SOURCE)), destDesc=descriptor(FOLDED), destData=Tensor(np.ones(FOLDED))), ("destData",))
FILTER = Subject("mcdnnTransformFilter", lambda: dict(
    handle=handle(), transDesc=transform(4, fold=(2, 2)), alpha=scale(1), beta=scale(0),
    srcDesc=filter_descriptor(SOURCE), srcData=Tensor(np.ones(SOURCE)), destDesc=filter_descriptor(FOLDED),
    destData=Tensor(np.ones(FOLDED))), ("destData",))


def unset_transform(parameter):
    return lambda _: {parameter: new()}


def shape_rules(subject, parameter, describe):
    """The rules of a source's shape; the unfolded one has a block less, or one more, of channels."""
    return [
        subject.case("srcDesc/rank", {"srcDesc": describe((2, 4, 24))}),
        subject.case("srcDesc/fold", lambda _: {parameter: transform(4, fold=(3, 1), unfold=True)}),
        subject.case("srcDesc/elements", lambda _: {parameter: transform(4, (1, 1, 0, 0)), "srcDesc": describe(HUGE)}),
    ]


def data_rules(subject, describe):
    return [
        *shape_rules(subject, "transDesc", describe),
        subject.case("transDesc/set", unset_transform("transDesc")),
        subject.case("destDesc/sizes", {"destDesc": describe((2, 16, 3, 2))}),
        subject.case("srcDesc/unsupported-type", {"srcDesc": describe(SOURCE, INT32)},
                     {"srcDesc": describe(SOURCE, HALF)}),
        subject.case("destDesc/unsupported-type", {"destDesc": describe(FOLDED, INT32)},
                     {"destDesc": describe(FOLDED, HALF)}),
        subject.case("beta/zero", {"beta": scale(1)}, lambda _: {
            "beta": scale(1), "transDesc": transform(4, fold=(2, 2), unfold=True), "srcDesc": describe(FOLDED),
            "destDesc": describe(SOURCE)}),
        subject.launch(),
    ]


RULES = [
    *descriptor_rules("TensorTransform", "mcdnnTensorTransformDescriptor_t", "transformDesc", {
        "mcdnnGetTensorTransformDescriptor": lambda it: lib.mcdnnGetTensorTransformDescriptor(it, 4, *[ffi.NULL] * 5)}),
    SET.case("transformDesc/alive", {"transformDesc": None}),
    SET.case("destFormat/range", {"destFormat": 3}, {"destFormat": 1}),
    SET.case("destFormat/supported", {"destFormat": 2}, {"destFormat": 1}),
    SET.case("direction/range", {"direction": 2}, {"direction": 1}),
    SET.case("nbDims/minimum", {"nbDims": 2}, {"nbDims": 3}),
    SET.case("nbDims/limit", {"nbDims": 9}, {"nbDims": 8}),
    *[SET.case(f"{name}/negative", {name: [0, 0, 0, -1]}, {name: [0, 0, 0, 1]})
      for name in ("padBeforeA", "padAfterA")],
    SET.case("foldA/positive", {"foldA": [1, 0]}, {"foldA": [1, 2**31 - 1]}),
    *[case for case in INIT.operands() if not case.rule.endswith("destDesc/set")],
    INIT.case("transformDesc/set", unset_transform("transformDesc")),
    *shape_rules(INIT, "transformDesc", descriptor),
    INIT.case("srcDesc/unsupported-type", {"srcDesc": descriptor(SOURCE, INT32)},
              {"srcDesc": descriptor(SOURCE, HALF)}),
    *TENSOR.operands(),
    *data_rules(TENSOR, descriptor),
    *FILTER.operands(),
    *[FILTER.case(f"{name}/set", lambda _, name=name: {name: fresh("mcdnnFilterDescriptor_t", "Filter")})
      for name in ("srcDesc", "destDesc")],
    *data_rules(FILTER, filter_descriptor),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
