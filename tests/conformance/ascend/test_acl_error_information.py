"""Faults of the hardware: none are reported (cann-runtime-3 6)."""

from __future__ import annotations

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, Out, case
from tests.conformance.harness import Result, check_rule


def verbose(ordinal: int = 0, null: bool = False):
    info = Out("aclrtErrorInfo")
    return info.result(lib.aclrtGetErrorVerbose(ordinal, ffi.NULL if null else info.cell))


def repair(ordinal: int = 0, null: bool = False, kind: int = 0):
    info = ffi.new("aclrtErrorInfo *", {"errorType": kind})
    return lib.aclrtRepairError(ordinal, ffi.NULL if null else info)


def faults(ordinal: int = 0, skip: str | None = None, room: int = 1):
    entries, count = Out("aclrtMemUceInfo"), Out("size_t")
    status = lib.aclrtGetMemUceInfo(ordinal, ffi.NULL if skip == "memUceInfoArray" else entries.cell, room,
                                    ffi.NULL if skip == "retSize" else count.cell)
    return Result(status, entries.bytes() == entries.before and count.bytes() == count.before)


def repair_memory(ordinal: int = 0, null: bool = False, count: int = 0):
    entries = ffi.new("aclrtMemUceInfo[1]")
    return lib.aclrtMemUceRepair(ordinal, ffi.NULL if null else entries, count)


def stack_that_works():
    cell = Out("int64_t")
    return cell.result(lib.aclrtGetDeviceInfo(0, 101, cell.cell))


CALLS = {"aclrtGetErrorVerbose": verbose, "aclrtRepairError": repair, "aclrtGetMemUceInfo": faults,
         "aclrtMemUceRepair": repair_memory}  # fmt: skip
RULES = [
    *[case(f"{name}/deviceId/range", lambda call=call: call(2), lambda call=call: call(1), ALONE)
      for name, call in CALLS.items()],
    *[case(f"{name}/device/unsupported", call, stack_that_works, {"UNDERSTUDY_SOC": "Ascend910"})
      for name, call in CALLS.items()],
    case("aclrtGetErrorVerbose/errorInfo/null", lambda: verbose(null=True), verbose),
    case("aclrtRepairError/errorInfo/null", lambda: repair(null=True), repair),
    case("aclrtRepairError/errorInfo/foreign", lambda: repair(kind=1), repair),
    *[case(f"aclrtGetMemUceInfo/{name}/null", lambda name=name: faults(skip=name), faults)
      for name in ("memUceInfoArray", "retSize")],
    case("aclrtGetMemUceInfo/arraySize/range", lambda: faults(room=0), faults),
    case("aclrtMemUceRepair/memUceInfoArray/null", lambda: repair_memory(null=True), repair_memory),
    case("aclrtMemUceRepair/arraySize/foreign", lambda: repair_memory(count=1), repair_memory),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)


def test_a_device_is_healthy():
    info, count = ffi.new("aclrtErrorInfo *", {"tryRepair": 7, "hasDetail": 7, "errorType": 3}), ffi.new("size_t *", 9)
    assert lib.aclrtGetErrorVerbose(0, info) == 0
    assert (info.tryRepair, info.hasDetail, info.errorType) == (0, 0, lib.ACL_RT_NO_ERROR)
    assert lib.aclrtGetMemUceInfo(0, ffi.new("aclrtMemUceInfo[2]"), 2, count) == 0 and count[0] == 0
