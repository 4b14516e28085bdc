"""Rules of the runtime's devices (maca-runtime 4, 5.10), and what every function refuses."""

import os
import subprocess
import sys

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import Result, RuleCase, check_rule
from tests.conformance.maca.runtime_calls import LEGAL, NULL, case, null_cases, run
from tests.maca import runtime_support as rt

TWO_DEVICES = {"UNDERSTUDY_DEVICES": "2"}

WITHOUT_DEVICE = {
    "mcInit", "mcGetDeviceCount", "mcSetDevice", "mcGetDevice", "mcGetDeviceProperties", "mcDeviceGetAttribute",
    "mcDeviceGetName", "mcDeviceGetPCIBusId", "mcDeviceGetByPCIBusId", "mcDeviceCanAccessPeer", "mcRuntimeGetVersion",
    "mcDriverGetVersion",
}
ON_DEVICE = [function for function in LEGAL if function not in WITHOUT_DEVICE]


def in_host_function(function):
    """The call from a function that a stream runs: on this thread, because the mode is inline."""
    arguments, results = LEGAL[function](), []
    callback = ffi.callback("void(void *)", lambda _: results.append(getattr(lib, function)(*arguments)))
    status = lib.mcLaunchHostFunc(NULL, callback, NULL)
    assert status == 0 and len(results) == 1
    return Result(results[0])


def on_broken_device(function):
    arguments = LEGAL[function]()
    rt.break_device()
    status = getattr(lib, function)(*arguments)
    rt.ok(lib.mcDeviceReset())
    return Result(status)


def text(content):
    return ffi.new("char[]", content.encode())


def no_device():
    return Result(lib.mcGetDeviceCount(ffi.new("int *")))


def one_device():
    code = ("from understudy.maca import ffi, lib\n"
            "n = ffi.new('int *')\nassert lib.mcGetDeviceCount(n) == 0 and n[0] == 1")
    return Result(subprocess.run([sys.executable, "-c", code], env={**os.environ, "UNDERSTUDY_DEVICES": "1"}).returncode)


def enable_twice():
    rt.ok(lib.mcDeviceEnablePeerAccess(1, 0))
    return Result(lib.mcDeviceEnablePeerAccess(1, 0))


def enable_the_other_way():
    with rt.on_device(1):
        return Result(lib.mcDeviceEnablePeerAccess(0, 0))


# Rule, and the changes to the legal call that are refused and accepted.
WITH_TWO_DEVICES = [
    ("mcSetDevice/device/range", {0: 2}, {0: 1}),
    ("mcDeviceGetAttribute/device/range", {2: 2}, {2: 1}),
    ("mcDeviceCanAccessPeer/peer/range", {2: 2}, {2: 1}),
    ("mcDeviceGetByPCIBusId/busId/found", {1: text("0000:03:00.0")}, {1: text("0000:02:00.0")}),
    ("mcDeviceEnablePeerAccess/flags/range", {1: 1}, {}),
    ("mcDeviceEnablePeerAccess/peer/range", {0: 2}, {}),
    ("mcDeviceEnablePeerAccess/peer/self", {0: 0}, {}),
    ("mcMemcpyPeerAsync/device/range", {1: 2}, {}),
    ("mcMemcpyPeerAsync/dst/device", {1: 1}, {}),
    ("mcMemcpyPeerAsync/src/device", {3: 1}, {}),
    ("mcMemPoolCreate/device/range", lambda _: {1: rt.pool_props(id=2)}, lambda _: {1: rt.pool_props(id=1)}),
]  # fmt: skip

RULES = [
    *[RuleCase(f"{f}/call/host-function", refused=lambda f=f: in_host_function(f), accepted=lambda f=f: run(f),
               env={"UNDERSTUDY_STREAM": "inline", **TWO_DEVICES}) for f in ON_DEVICE],
    *[RuleCase(f"{f}/device/fault", refused=lambda f=f: on_broken_device(f), accepted=lambda f=f: run(f),
               env=TWO_DEVICES) for f in ON_DEVICE if f != "mcDeviceReset"],
    RuleCase("mcGetDeviceCount/device/none", refused=no_device, accepted=one_device, env={"UNDERSTUDY_DEVICES": "0"}),
    case("mcInit/flags/range", {0: 1}),
    *null_cases("mcGetDeviceCount", count=0),
    *null_cases("mcGetDevice", device=0),
    *null_cases("mcGetDeviceProperties", prop=0),
    *null_cases("mcDeviceGetAttribute", value=0),
    *null_cases("mcDeviceGetName", name=0),
    *null_cases("mcDeviceGetPCIBusId", busId=0),
    *null_cases("mcDeviceGetByPCIBusId", device=0, busId=1),
    *null_cases("mcDeviceCanAccessPeer", can=0),
    *null_cases("mcRuntimeGetVersion", version=0),
    *null_cases("mcDriverGetVersion", version=0),
    *[RuleCase(rule, refused=lambda r=rule, c=refused: run(r.split("/")[0], c),
               accepted=lambda r=rule, c=accepted: run(r.split("/")[0], c), env=TWO_DEVICES)
      for rule, refused, accepted in WITH_TWO_DEVICES],
    case("mcGetDeviceProperties/device/range", {1: -1}, {1: 0}),
    case("mcDeviceGetName/device/range", {2: -1}),
    case("mcDeviceGetPCIBusId/device/range", {2: 2**31 - 1}),
    case("mcDeviceCanAccessPeer/device/range", {1: 64}),
    case("mcDeviceGetAttribute/attr/range", {1: lib.mcDeviceAttributeUnknow}, {1: lib.mcDeviceAttributeTccDriver}),
    case("mcDeviceGetName/len/range", {1: 0}, {1: 1}),
    case("mcDeviceGetPCIBusId/len/range", {1: 12}, {1: 13}),
    case("mcDeviceGetByPCIBusId/busId/format", {1: text("0000:01:00.0z")}, {1: text("1:0")}),
    case("mcDeviceSetLimit/limit/range", {0: lib.mcLimitMax}, {0: lib.mcLimitPersistingL2CacheSize}),
    RuleCase("mcDeviceEnablePeerAccess/peer/enabled", refused=enable_twice, accepted=enable_the_other_way,
             env=TWO_DEVICES),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


@pytest.mark.parametrize("text, device", [
    ("0000:01:00.0", 0), ("1:0", 0), ("01:00.0", 0), ("0:1:0", 0), ("0000:02:00.0", None), ("1:0:0", None),
    ("0000:01:01.0", None), ("0000:01:00.1", None),
])  # fmt: skip
def test_places_on_the_bus(text, device):
    found = ffi.new("int *", -1)
    status = lib.mcDeviceGetByPCIBusId(found, text.encode())
    assert (status, found[0]) == ((0, device) if device is not None else (lib.mcErrorInvalidDevice, -1))


@pytest.mark.parametrize("text", ["", "1", ":", "1:", ":1", "1:2:3:4", "1:0.", "1:0.0.0", " 1:0", "1:0 ", "0x1:0",
                                  "-1:0", "00001:0", "g:0", "9" * 5000])
def test_texts_that_name_no_place(text):
    assert lib.mcDeviceGetByPCIBusId(ffi.new("int *"), text.encode()) == lib.mcErrorInvalidValue
