"""Rules of filter descriptors (mcdnn 7.2) and of the query for run-time errors (mcdnn 7.1)."""

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, descriptor_rules, fresh
from tests.maca.mcdnn_support import FLOAT, handle


def new():
    return fresh("mcdnnFilterDescriptor_t", "Filter")


SET_4D = Subject("mcdnnSetFilter4dDescriptor", lambda: dict(filterDesc=new(), dataType=FLOAT, format=0, k=2, c=3, h=4,
                                                            w=5))
SET_ND = Subject("mcdnnSetFilterNdDescriptor", lambda: dict(filterDesc=new(), dataType=FLOAT, format=0, nbDims=4,
                                                            filterDimA=[2, 3, 4, 5]))
SIZE = Subject("mcdnnGetFilterSizeInBytes", lambda: dict(filterDesc=new(), size=ffi.new("size_t *")))
QUERY = Subject("mcdnnQueryRuntimeError", lambda: dict(handle=handle(), rstatus=ffi.new("mcdnnStatus_t *"), mode=0,
                                                       tag=None))

RULES = [
    *descriptor_rules("Filter", "mcdnnFilterDescriptor_t", "filterDesc", {
        "mcdnnGetFilter4dDescriptor": lambda it: lib.mcdnnGetFilter4dDescriptor(it, *[ffi.NULL] * 6),
        "mcdnnGetFilterNdDescriptor": lambda it: lib.mcdnnGetFilterNdDescriptor(it, 4, *[ffi.NULL] * 4)}),
    *[case for subject in (SET_4D, SET_ND) for case in (
        *subject.operands(),
        subject.case("dataType/range", {"dataType": 11}, {"dataType": 10}),
        subject.case("format/range", {"format": 3}, {"format": 1}),
        subject.case("format/vector-type", {"format": 2, "dataType": lib.MCDNN_DATA_INT8},
                     {"format": 1, "dataType": lib.MCDNN_DATA_INT8}))],
    *[SET_4D.case(f"{name}/positive", {name: 0}, {name: 1}) for name in "kchw"],
    SET_4D.case("filterDesc/elements", {"k": 1 << 16, "c": 1 << 15, "h": 2, "w": 1}, {"k": 1 << 16, "c": 1 << 15,
                                                                                      "h": 1, "w": 1}),
    SET_ND.case("filterDimA/positive", {"filterDimA": [2, 3, -1, 5]}, {"filterDimA": [2, 3, 1, 5]}),
    SET_ND.case("filterDesc/elements", {"filterDimA": [2**31 - 1] * 4}, {"filterDimA": [2**31 - 1, 1, 1, 1]}),
    SET_ND.case("nbDims/positive", {"nbDims": 0}, {"nbDims": 1}),
    SET_ND.case("nbDims/limit", {"nbDims": 9, "filterDimA": [1] * 9}, {"nbDims": 8, "filterDimA": [1] * 8}),
    SET_4D.case("filterDesc/vectors", {"format": 2, "dataType": lib.MCDNN_DATA_INT8x4, "c": 6},
                {"format": 2, "dataType": lib.MCDNN_DATA_INT8x4, "c": 8}),
    SET_ND.case("filterDesc/vectors", {"format": 2, "dataType": lib.MCDNN_DATA_INT8x4, "filterDimA": [2, 6, 4, 5]},
                {"format": 2, "dataType": lib.MCDNN_DATA_INT8x4, "filterDimA": [2, 8, 4, 5]}),
    *SIZE.operands(),
    *QUERY.operands(optional=("tag",)),
    QUERY.case("mode/range", {"mode": 3}, {"mode": 2}),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
