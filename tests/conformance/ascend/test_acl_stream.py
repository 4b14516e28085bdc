"""Streams: making, ending, asking (cann-runtime 8 and 9)."""

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, Out, case, device, inside, named, no_context, ok, with_out
from tests.conformance.harness import check_rule


LIMIT = 2048


def create_many(function, count: int) -> int:
    """The default stream of the device counts too."""
    with device():
        cells = ffi.new("aclrtStream[]", count)
        status = 0
        for index in range(count):
            status = status or function(cells + index)
        for made in cells:
            if made != ffi.NULL:
                ok(lib.aclrtDestroyStream(made))
        return status


CREATE = {
    "aclrtCreateStream": lambda cell: lib.aclrtCreateStream(cell),
    "aclrtCreateStreamWithConfig": lambda cell: lib.aclrtCreateStreamWithConfig(cell, 0, 3),
}


def create_cases(name: str):
    function = CREATE[name]

    def legal() -> int:
        return create_many(function, 1)

    def without_context(cell) -> int:
        with no_context():
            return function(cell)

    yield case(f"{name}/stream/null", lambda: function(ffi.NULL), legal)
    yield case(f"{name}/context/none", with_out("void *", without_context), legal)
    yield case(f"{name}/stream/resources", lambda: create_many(function, LIMIT),
               lambda: create_many(function, LIMIT - 1), ALONE)


def destroy_cases(name: str):
    function = named(name)

    def default_stream() -> int:
        with device():
            default = Out()
            ok(lib.aclrtCtxGetCurrentDefaultStream(default.cell))
            return function(default.value)

    def legal() -> int:
        with device():
            made = Out()
            ok(lib.aclrtCreateStream(made.cell))
            return function(made.value)

    yield case(f"{name}/stream/null", lambda: function(ffi.NULL), legal)
    yield case(f"{name}/stream/default", default_stream, legal)


# ---- outputs and values ----

QUERIES = {
    "aclrtStreamQuery/status": ("aclrtStreamStatus", lambda cell: lib.aclrtStreamQuery(ffi.NULL, cell)),
    "aclrtStreamGetPriority/priority": ("uint32_t", lambda cell: lib.aclrtStreamGetPriority(ffi.NULL, cell)),
    "aclrtStreamGetFlags/flags": ("uint32_t", lambda cell: lib.aclrtStreamGetFlags(ffi.NULL, cell)),
    "aclrtStreamGetId/streamId": ("int32_t", lambda cell: lib.aclrtStreamGetId(ffi.NULL, cell)),
    "aclrtGetStreamAvailableNum/streamCount": ("uint32_t", lambda cell: lib.aclrtGetStreamAvailableNum(cell)),
    "aclrtGetStreamOverflowSwitch/flag": ("uint32_t", lambda cell: lib.aclrtGetStreamOverflowSwitch(ffi.NULL, cell)),
    "aclrtGetStreamAttribute/value": (
        "aclrtStreamAttrValue", lambda cell: lib.aclrtGetStreamAttribute(ffi.NULL, 1, cell)),
    "aclrtSetStreamAttribute/value": (
        "aclrtStreamAttrValue", lambda cell: lib.aclrtSetStreamAttribute(ffi.NULL, 3, cell)),
}  # fmt: skip


def query_case(name: str):
    kind, function = QUERIES[name]
    return case(f"{name}/null", inside(device)(lambda: function(ffi.NULL)),
                inside(device)(lambda: function(Out(kind).cell)))


def attribute(function, number: int):
    with device():
        value = Out("aclrtStreamAttrValue")
        return value.result(function(ffi.NULL, number, value.cell))


def switch(flag: int) -> int:
    with device():
        return lib.aclrtSetStreamOverflowSwitch(ffi.NULL, flag)


RULES = [
    *[entry for name in CREATE for entry in create_cases(name)],
    *destroy_cases("aclrtDestroyStream"),
    *destroy_cases("aclrtDestroyStreamForce"),
    *[query_case(name) for name in QUERIES],
    case("aclrtSetStreamAttribute/stmAttrType/range", lambda: attribute(lib.aclrtSetStreamAttribute, 5),
         lambda: attribute(lib.aclrtSetStreamAttribute, 4)),
    case("aclrtGetStreamAttribute/stmAttrType/range", lambda: attribute(lib.aclrtGetStreamAttribute, 0),
         lambda: attribute(lib.aclrtGetStreamAttribute, 1)),
    case("aclrtSetStreamOverflowSwitch/flag/range", lambda: switch(2), lambda: switch(1)),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
