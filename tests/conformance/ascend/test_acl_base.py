"""Data buffers and capabilities (cann-runtime 9)."""

from __future__ import annotations

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, Out, case, ok, with_out
from tests.conformance.harness import check_rule


def destroyed_buffer():
    buffer = lib.aclCreateDataBuffer(ffi.NULL, 0)
    ok(lib.aclDestroyDataBuffer(buffer))
    return buffer


def update_and_destroy() -> int:
    buffer = lib.aclCreateDataBuffer(ffi.NULL, 0)
    return lib.aclUpdateDataBuffer(buffer, buffer, 8) or lib.aclDestroyDataBuffer(buffer)


def attribute_list(skip: str | None):
    names, count = Out(), Out("size_t")
    cell = ffi.cast("const aclCannAttr **", names.cell)
    status = lib.aclGetCannAttributeList(ffi.NULL if skip == "cannAttrList" else cell,
                                         ffi.NULL if skip == "num" else count.cell)
    return (names if skip == "num" else count).result(status)


RULES = [
    case("aclDestroyDataBuffer/dataBuffer/null", lambda: lib.aclDestroyDataBuffer(ffi.NULL), update_and_destroy),
    case("aclDestroyDataBuffer/dataBuffer/dead", lambda: lib.aclDestroyDataBuffer(destroyed_buffer()),
         update_and_destroy),
    case("aclUpdateDataBuffer/dataBuffer/null", lambda: lib.aclUpdateDataBuffer(ffi.NULL, ffi.NULL, 0),
         update_and_destroy),
    case("aclUpdateDataBuffer/dataBuffer/dead", lambda: lib.aclUpdateDataBuffer(destroyed_buffer(), ffi.NULL, 0),
         update_and_destroy),
    case("aclGetCannAttributeList/cannAttrList/null", lambda: attribute_list("cannAttrList"),
         lambda: attribute_list(None).status),
    case("aclGetCannAttributeList/num/null", lambda: attribute_list("num"), lambda: attribute_list(None).status),
    case("aclGetCannAttribute/value/null", lambda: lib.aclGetCannAttribute(0, ffi.NULL),
         with_out("int32_t", lambda cell: lib.aclGetCannAttribute(0, cell))),
    case("aclGetCannAttribute/cannAttr/range", with_out("int32_t", lambda cell: lib.aclGetCannAttribute(3, cell)),
         with_out("int32_t", lambda cell: lib.aclGetCannAttribute(2, cell))),
    case("aclGetDeviceCapability/value/null", lambda: lib.aclGetDeviceCapability(0, 0, ffi.NULL),
         with_out("int64_t", lambda cell: lib.aclGetDeviceCapability(0, 0, cell))),
    # Not 107001, although the device does not exist.
    case("aclGetDeviceCapability/deviceId/range",
         with_out("int64_t", lambda cell: lib.aclGetDeviceCapability(2, 0, cell)),
         with_out("int64_t", lambda cell: lib.aclGetDeviceCapability(1, 0, cell)), ALONE),
    case("aclGetDeviceCapability/deviceInfo/range",
         with_out("int64_t", lambda cell: lib.aclGetDeviceCapability(0, 3, cell)),
         with_out("int64_t", lambda cell: lib.aclGetDeviceCapability(0, 2, cell))),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
