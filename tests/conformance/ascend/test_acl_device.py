"""Devices and contexts (cann-runtime 8 and 9)."""

from __future__ import annotations

import threading

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    ALONE, Out, address_of, case, context, device, memory, named, no_context, ok, pointer, stream, with_out,
)
from tests.conformance.harness import Result, check_rule


def set_and_reset(ordinal: int) -> int:
    status = lib.aclrtSetDevice(ordinal)
    ok(lib.aclrtResetDevice(ordinal))
    return status


def create_and_destroy(ordinal: int) -> int:
    made = Out()
    status = lib.aclrtCreateContext(made.cell, ordinal)
    ok(lib.aclrtDestroyContext(made.value))
    return status


def reset_once_too_often() -> int:
    ok(lib.aclrtSetDevice(1))
    ok(lib.aclrtResetDevice(1))
    return lib.aclrtResetDevice(1)


def destroyed_context():
    with device(), context() as made:
        pass
    return made


def default_context():
    current = Out()
    ok(lib.aclrtGetCurrentContext(current.cell))
    return current.value


def destroy_default_context() -> int:
    with device():
        return lib.aclrtDestroyContext(default_context())


def set_default_context_again() -> int:
    with device():
        return lib.aclrtSetCurrentContext(default_context())


def destroy_what_ends() -> int:
    """While another thread destroys the context, which waits for a function of its stream."""
    over = threading.Event()

    @ffi.callback("void(void *)")
    def wait(_):
        over.wait(20)

    with device(), context() as current:
        made, queued = Out(), Out()
        ok(lib.aclrtCreateContext(made.cell, 0))
        ok(lib.aclrtCreateStream(queued.cell))
        ok(lib.aclrtLaunchHostFunc(queued.value, wait, ffi.NULL))
        other = threading.Thread(target=lib.aclrtDestroyContext, args=[made.value])
        other.start()
        while lib.aclrtSetCurrentContext(made.value) == 0:
            pass
        status = lib.aclrtDestroyContext(made.value)
        over.set()
        other.join()
        ok(lib.aclrtSetCurrentContext(current))
        return status


def without_context(function):
    def call(cell):
        with no_context():
            return function(cell)

    return with_out("void *", call)


def with_device(function):
    def call(cell):
        with device():
            return function(cell)

    return with_out("void *", call)


def reset_by_force_once_too_often() -> int:
    ok(lib.aclrtSetDevice(1))
    ok(lib.aclrtSetDevice(1))
    ok(lib.aclrtResetDeviceForce(1))
    return lib.aclrtResetDeviceForce(1)


def set_and_reset_by_force(ordinal: int) -> int:
    ok(lib.aclrtSetDevice(ordinal))
    return lib.aclrtResetDeviceForce(ordinal)


# ---- what can be asked ----

SINGLE_OUTPUTS = {
    "aclrtGetDevice/deviceId": ("int32_t", named("aclrtGetDevice")),
    "aclrtGetDeviceCount/count": ("uint32_t", named("aclrtGetDeviceCount")),
    "aclrtGetRunMode/runMode": ("aclrtRunMode", named("aclrtGetRunMode")),
    "aclrtQueryDeviceStatus/deviceStatus": ("aclrtDeviceStatus", lambda cell: lib.aclrtQueryDeviceStatus(0, cell)),
    "aclrtGetDeviceInfo/value": ("int64_t", lambda cell: lib.aclrtGetDeviceInfo(0, 101, cell)),
    "aclrtGetDeviceSatMode/mode": ("aclrtFloatOverflowMode", named("aclrtGetDeviceSatMode")),
    "aclrtGetSysParamOpt/value": ("int64_t", lambda cell: lib.aclrtGetSysParamOpt(0, cell)),
    "aclrtDeviceGetUuid/uuid": ("aclrtUuid", lambda cell: lib.aclrtDeviceGetUuid(0, cell)),
    "aclrtDeviceGetBareTgid/pid": ("int32_t", named("aclrtDeviceGetBareTgid")),
    "aclrtSetOpExecuteTimeOutV2/actualTimeout": ("uint64_t", lambda cell: lib.aclrtSetOpExecuteTimeOutV2(0, cell)),
    "aclrtGetOpTimeOutInterval/interval": ("uint64_t", named("aclrtGetOpTimeOutInterval")),
    "aclrtGetOpExecuteTimeout/timeoutMs": ("uint32_t", named("aclrtGetOpExecuteTimeout")),
    "aclrtGetDevicesTopo/value": ("uint64_t", lambda cell: lib.aclrtGetDevicesTopo(0, 0, cell)),
    "aclrtDevicePeerAccessStatus/status": ("int32_t", lambda cell: lib.aclrtDevicePeerAccessStatus(0, 0, cell)),
    "aclrtGetDeviceCapability/value": ("int32_t", lambda cell: lib.aclrtGetDeviceCapability(0, 1, cell)),
    "aclrtCheckArchCompatibility/canCompatible":
        ("int32_t", lambda cell: lib.aclrtCheckArchCompatibility(b"Ascend910B1", cell)),
    "aclrtDeviceGetByPCIBusId/deviceId": ("int32_t", lambda cell: lib.aclrtDeviceGetByPCIBusId(b"0000:01:00.0", cell)),
    "aclrtDeviceGetPCIBusId/pciBusId":
        ("aclrtUuid", lambda cell: lib.aclrtDeviceGetPCIBusId(0, ffi.cast("char *", cell), 13)),
    "aclrtGetDeviceResLimit/value": ("uint32_t", lambda cell: lib.aclrtGetDeviceResLimit(0, 0, cell)),
    "aclrtGetStreamResLimit/value": ("uint32_t", lambda cell: lib.aclrtGetStreamResLimit(ffi.NULL, 0, cell)),
    "aclrtGetResInCurrentThread/value": ("uint32_t", lambda cell: lib.aclrtGetResInCurrentThread(0, cell)),
}  # fmt: skip

# Functions that give one number for another, and the name of the output.
NUMBERS = {
    "aclrtGetLogicDevIdByUserDevId": "logicDevId", "aclrtGetPhyDevIdByUserDevId": "phyDevId",
    "aclrtGetPhyDevIdByLogicDevId": "phyDevId", "aclrtGetUserDevIdByLogicDevId": "userDevid",
    "aclrtGetUserDevIdByPhyDevId": "userDevId", "aclrtGetLogicDevIdByPhyDevId": "logicDevId",
}  # fmt: skip


def number_cases(name: str, output: str):
    def number(device: int, null: bool = False):
        return with_out("int32_t", lambda cell: getattr(lib, name)(device, ffi.NULL if null else cell))()

    yield case(f"{name}/{output}/null", lambda: number(0, null=True), lambda: number(0))
    yield case(f"{name}/device/range", lambda: number(2), lambda: number(1), ALONE)


# ---- what stands on the bus, and what it can do ----


def bus_id(ordinal: int = 0, room: int = 13):
    return with_out("aclrtUuid", lambda cell: lib.aclrtDeviceGetPCIBusId(ordinal, ffi.cast("char *", cell), room))()


def device_of_bus_id(text=b"0000:01:00.0"):
    return with_out("int32_t", lambda cell: lib.aclrtDeviceGetByPCIBusId(text, cell))()


def topology(first: int = 0, second: int = 1):
    return with_out("uint64_t", lambda cell: lib.aclrtGetDevicesTopo(first, second, cell))()


def topology_of_one():
    return topology(0, 0)


def peer_status(first: int = 0, second: int = 1):
    return with_out("int32_t", lambda cell: lib.aclrtDevicePeerAccessStatus(first, second, cell))()


def capability(ordinal: int = 0, feature: int = 21):
    return with_out("int32_t", lambda cell: lib.aclrtGetDeviceCapability(ordinal, feature, cell))()


def compatible(name=b"Ascend910B1"):
    return with_out("int32_t", lambda cell: lib.aclrtCheckArchCompatibility(name, cell))()


def priority_range(skip: str | None = None):
    least, greatest = Out("int32_t"), Out("int32_t")
    status = lib.aclrtDeviceGetStreamPriorityRange(ffi.NULL if skip == "least" else least.cell,
                                                   ffi.NULL if skip == "greatest" else greatest.cell)
    return Result(status, least.bytes() == least.before and greatest.bytes() == greatest.before)


def flush(reserved=ffi.NULL):
    with device():
        return lib.aclrtDeviceL2CacheFlush(reserved)


def flush_without_context():
    with no_context():
        return lib.aclrtDeviceL2CacheFlush(ffi.NULL)


ON_910 = {"UNDERSTUDY_SOC": "Ascend910"}
BUS_CASES = [
    case("aclrtDeviceGetPCIBusId/deviceId/range", lambda: bus_id(2), lambda: bus_id(1), ALONE),
    case("aclrtDeviceGetPCIBusId/len/range", lambda: bus_id(room=12), bus_id),
    case("aclrtDeviceGetPCIBusId/device/unsupported", bus_id, topology_of_one, ON_910),
    case("aclrtDeviceGetByPCIBusId/device/unsupported", device_of_bus_id, topology_of_one, ON_910),
    case("aclrtDeviceGetByPCIBusId/pciBusId/null", lambda: device_of_bus_id(ffi.NULL), device_of_bus_id),
    case("aclrtDeviceGetByPCIBusId/pciBusId/unknown", lambda: device_of_bus_id(b"0000:00:00.0"), device_of_bus_id),
    case("aclrtGetDevicesTopo/deviceId/range", lambda: topology(2, 0), topology, ALONE),
    case("aclrtGetDevicesTopo/otherDeviceId/range", lambda: topology(0, 2), topology, ALONE),
    case("aclrtDevicePeerAccessStatus/deviceId/range", lambda: peer_status(2, 0), peer_status, ALONE),
    case("aclrtDevicePeerAccessStatus/peerDeviceId/range", lambda: peer_status(0, -1), peer_status, ALONE),
    case("aclrtGetDeviceCapability/deviceId/range", lambda: capability(2), lambda: capability(1), ALONE),
    case("aclrtGetDeviceCapability/devFeatureType/range", lambda: capability(feature=2), capability),
    case("aclrtCheckArchCompatibility/socVersion/null", lambda: compatible(ffi.NULL), compatible),
    case("aclrtDeviceGetStreamPriorityRange/leastPriority/null", lambda: priority_range("least"), priority_range),
    case("aclrtDeviceGetStreamPriorityRange/greatestPriority/null", lambda: priority_range("greatest"), priority_range),
    case("aclrtDeviceL2CacheFlush/rsv/reserved", lambda: flush(pointer(8)), flush),
    case("aclrtDeviceL2CacheFlush/context/none", flush_without_context, flush),
]

# ---- limits of cores ----


def device_limit(ordinal: int = 0, kind: int = 0):
    return with_out("uint32_t", lambda cell: lib.aclrtGetDeviceResLimit(ordinal, kind, cell))()


def set_device_limit(ordinal: int = 0, kind: int = 1, value: int = 48):
    return lib.aclrtSetDeviceResLimit(ordinal, kind, value) or lib.aclrtResetDeviceResLimit(ordinal)


def stream_limit(function: str, kind: int = 0, value: int = 24):
    with device(), stream() as made:
        if function == "get":
            return with_out("uint32_t", lambda cell: lib.aclrtGetStreamResLimit(made, kind, cell))()
        return lib.aclrtSetStreamResLimit(made, kind, value)


def thread_limit(kind: int = 0):
    with device():
        return with_out("uint32_t", lambda cell: lib.aclrtGetResInCurrentThread(kind, cell))()


def capture_info(skip: str | None = None):
    with device():
        status, model = Out("aclmdlRICaptureStatus"), Out("aclmdlRI")
        result = lib.aclmdlRICaptureGetInfo(ffi.NULL, ffi.NULL if skip == "status" else status.cell,
                                            ffi.NULL if skip == "modelRI" else model.cell)
        return Result(result, status.bytes() == status.before and model.bytes() == model.before)


LIMIT_CASES = [
    *[case(f"aclmdlRICaptureGetInfo/{name}/null", lambda name=name: capture_info(name), capture_info)
      for name in ("status", "modelRI")],
    case("aclmdlRICaptureGetInfo/device/unsupported", capture_info, thread_limit, ON_910),
    case("aclrtGetDeviceResLimit/deviceId/range", lambda: device_limit(2), lambda: device_limit(1), ALONE),
    case("aclrtGetDeviceResLimit/type/range", lambda: device_limit(kind=2), lambda: device_limit(kind=1)),
    case("aclrtSetDeviceResLimit/deviceId/range", lambda: set_device_limit(2), lambda: set_device_limit(1), ALONE),
    case("aclrtSetDeviceResLimit/type/range", lambda: set_device_limit(kind=2), set_device_limit),
    case("aclrtSetDeviceResLimit/value/range", lambda: set_device_limit(value=49), set_device_limit),
    case("aclrtResetDeviceResLimit/deviceId/range", lambda: lib.aclrtResetDeviceResLimit(-1),
         lambda: lib.aclrtResetDeviceResLimit(0)),
    case("aclrtGetStreamResLimit/type/range", lambda: stream_limit("get", 2), lambda: stream_limit("get", 1)),
    case("aclrtSetStreamResLimit/type/range", lambda: stream_limit("set", 2), lambda: stream_limit("set")),
    case("aclrtSetStreamResLimit/value/range", lambda: stream_limit("set", value=0), lambda: stream_limit("set", value=1)),
    case("aclrtGetResInCurrentThread/type/range", lambda: thread_limit(2), thread_limit),
    case("aclrtGetResInCurrentThread/context/none", without_context(lambda cell: lib.aclrtGetResInCurrentThread(
        0, ffi.cast("uint32_t *", cell))), thread_limit),
]


def single_output_case(name: str):
    kind, function = SINGLE_OUTPUTS[name]

    def legal():
        with device():
            return function(Out(kind).cell)

    return case(f"{name}/null", lambda: function(ffi.NULL), legal)


def utilization(ordinal: int = 0, extend=ffi.NULL, out: bool = True):
    info = Out("aclrtUtilizationInfo")
    info.cell.utilizationExtend = ffi.cast("aclrtUtilizationExtendInfo *", extend)
    info.before = info.bytes()
    return info.result(lib.aclrtGetDeviceUtilizationRate(ordinal, info.cell if out else ffi.NULL))


def device_info(ordinal: int = 0, attribute: int = 101):
    return with_out("int64_t", lambda cell: lib.aclrtGetDeviceInfo(ordinal, attribute, cell))()


def uuid(ordinal: int = 0):
    return with_out("aclrtUuid", lambda cell: lib.aclrtDeviceGetUuid(ordinal, cell))()


def device_status(ordinal: int):
    return with_out("aclrtDeviceStatus", lambda cell: lib.aclrtQueryDeviceStatus(ordinal, cell))()


def primary_state(ordinal: int = 0, skip: str | None = None):
    flags, active = Out("uint32_t"), Out("int32_t")
    status = lib.aclrtGetPrimaryCtxState(ordinal, ffi.NULL if skip == "flags" else flags.cell,
                                         ffi.NULL if skip == "active" else active.cell)
    return Result(status, flags.bytes() == flags.before and active.bytes() == active.before)


# ---- peers ----


def can_access(first: int = 0, second: int = 1, out: bool = True):
    answer = Out("int32_t")
    return answer.result(lib.aclrtDeviceCanAccessPeer(answer.cell if out else ffi.NULL, first, second))


PEERS = {
    "aclrtDeviceEnablePeerAccess": lambda peer, flags=0: lib.aclrtDeviceEnablePeerAccess(peer, flags),
    "aclrtDeviceDisablePeerAccess": lambda peer: lib.aclrtDeviceDisablePeerAccess(peer),
}


def peer_cases(name: str):
    function = PEERS[name]

    def access(peer: int, *flags: int):
        with device():
            return function(peer, *flags)

    def without_context_():
        with no_context():
            return function(1)

    yield case(f"{name}/peerDeviceId/same", lambda: access(0), lambda: access(1), ALONE)
    yield case(f"{name}/peerDeviceId/range", lambda: access(2), lambda: access(1), ALONE)
    yield case(f"{name}/context/none", without_context_, lambda: access(1), ALONE)
    if name == "aclrtDeviceEnablePeerAccess":
        yield case(f"{name}/flags/range", lambda: access(1, 1), lambda: access(1, 0), ALONE)


# ---- modes and options ----


def saturation(mode: int) -> int:
    """The mode is the device's: it is set back."""
    with device():
        before = Out("aclrtFloatOverflowMode")
        ok(lib.aclrtGetDeviceSatMode(before.cell))
        status = lib.aclrtSetDeviceSatMode(mode)
        ok(lib.aclrtSetDeviceSatMode(before.value))
        return status


def saturation_without_context() -> int:
    with no_context():
        return lib.aclrtSetDeviceSatMode(1)


def overflow_status(size: int = 64, out: bool = True, short_by: int = 0):
    with device(), memory(64) as block:
        place = pointer(address_of(block) + 4096 - 64 + short_by)  # 64 bytes of the page are left without `short_by`
        status = lib.aclrtGetOverflowStatus(place if out else ffi.NULL, size, ffi.NULL)
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        return status


OPTIONS = {
    "aclrtSetSysParamOpt": lambda option, cell: lib.aclrtSetSysParamOpt(option, 0),
    "aclrtGetSysParamOpt": lambda option, cell: lib.aclrtGetSysParamOpt(option, cell),
    "aclrtCtxSetSysParamOpt": lambda option, cell: lib.aclrtCtxSetSysParamOpt(option, 0),
    "aclrtCtxGetSysParamOpt": lambda option, cell: lib.aclrtCtxGetSysParamOpt(option, cell),
}


def option_case(name: str):
    def call(option: int):
        value = Out("int64_t")
        with device(), context():
            if option < 3:
                ok(lib.aclrtCtxSetSysParamOpt(option, 0))
            return value.result(OPTIONS[name](option, value.cell))

    return case(f"{name}/opt/range", lambda: call(3), lambda: call(2))


def set_option(function, value: int) -> int:
    with device(), context():
        status = function(0, value)
        ok(lib.aclrtSetSysParamOpt(0, 0))
        return status


def context_option(set_before: bool):
    value = Out("int64_t")
    with device(), context():
        if set_before:
            ok(lib.aclrtCtxSetSysParamOpt(1, 0))
        return value.result(lib.aclrtCtxGetSysParamOpt(1, value.cell))


def context_option_to_null():
    with device(), context():
        ok(lib.aclrtCtxSetSysParamOpt(1, 0))
        return lib.aclrtCtxGetSysParamOpt(1, ffi.NULL)


# ---- waiting for the device ----


def wait(function, with_context: bool = True) -> int:
    with device():
        if with_context:
            return function()
        with no_context():
            return function()


COUNT = 2  # devices of a child that runs with ALONE

RULES = [
    case("aclrtSetDevice/deviceId/range", lambda: lib.aclrtSetDevice(COUNT), lambda: set_and_reset(COUNT - 1), ALONE),
    case("aclrtResetDevice/deviceId/range", lambda: lib.aclrtResetDevice(-1), lambda: set_and_reset(0), ALONE),
    case("aclrtResetDevice/deviceId/not-set", reset_once_too_often, lambda: set_and_reset(1), ALONE),
    case("aclrtCreateContext/context/null", lambda: lib.aclrtCreateContext(ffi.NULL, 0), lambda: create_and_destroy(0)),
    case("aclrtCreateContext/deviceId/range", with_out("void *", lambda cell: lib.aclrtCreateContext(cell, COUNT)),
         lambda: create_and_destroy(COUNT - 1), ALONE),
    case("aclrtDestroyContext/context/null", lambda: lib.aclrtDestroyContext(ffi.NULL), lambda: create_and_destroy(0)),
    case("aclrtDestroyContext/context/dead", lambda: lib.aclrtDestroyContext(destroyed_context()),
         lambda: create_and_destroy(0)),
    case("aclrtDestroyContext/context/default", destroy_default_context, lambda: create_and_destroy(0)),
    case("aclrtDestroyContext/context/ending", destroy_what_ends, lambda: create_and_destroy(0)),
    case("aclrtSetCurrentContext/context/null", lambda: lib.aclrtSetCurrentContext(ffi.NULL),
         set_default_context_again),
    case("aclrtSetCurrentContext/context/dead", lambda: lib.aclrtSetCurrentContext(destroyed_context()),
         set_default_context_again),
    case("aclrtGetCurrentContext/context/null", lambda: lib.aclrtGetCurrentContext(ffi.NULL),
         with_device(named("aclrtGetCurrentContext"))),
    case("aclrtGetCurrentContext/context/none", without_context(named("aclrtGetCurrentContext")),
         with_device(named("aclrtGetCurrentContext"))),
    case("aclrtCtxGetCurrentDefaultStream/stream/null", lambda: lib.aclrtCtxGetCurrentDefaultStream(ffi.NULL),
         with_device(named("aclrtCtxGetCurrentDefaultStream"))),
    case("aclrtCtxGetCurrentDefaultStream/context/none", without_context(named("aclrtCtxGetCurrentDefaultStream")),
         with_device(named("aclrtCtxGetCurrentDefaultStream"))),

    case("aclrtResetDeviceForce/deviceId/range", lambda: lib.aclrtResetDeviceForce(COUNT),
         lambda: set_and_reset_by_force(0), ALONE),
    case("aclrtResetDeviceForce/deviceId/not-set", reset_by_force_once_too_often, lambda: set_and_reset_by_force(1),
         ALONE),
    *[single_output_case(name) for name in SINGLE_OUTPUTS],
    *[entry for name, output in NUMBERS.items() for entry in number_cases(name, output)],
    *BUS_CASES,
    *LIMIT_CASES,
    case("aclrtDeviceGetUuid/deviceId/range", lambda: uuid(2), lambda: uuid(1), ALONE),
    case("aclrtDeviceGetUuid/device/unsupported", uuid, device_info, {"UNDERSTUDY_SOC": "Ascend910"}),
    case("aclrtGetDevice/context/none", without_context(lambda cell: lib.aclrtGetDevice(ffi.cast("int32_t *", cell))),
         with_device(lambda cell: lib.aclrtGetDevice(ffi.cast("int32_t *", cell)))),
    case("aclrtSetTsDevice/tsId/range", lambda: lib.aclrtSetTsDevice(2), lambda: lib.aclrtSetTsDevice(1)),
    case("aclrtQueryDeviceStatus/deviceId/range", lambda: device_status(COUNT), lambda: device_status(1), ALONE),
    case("aclrtGetDeviceUtilizationRate/utilizationInfo/null", lambda: utilization(out=False), utilization),
    case("aclrtGetDeviceUtilizationRate/utilizationInfo/extend", lambda: utilization(extend=8), utilization),
    case("aclrtGetDeviceUtilizationRate/deviceId/range", lambda: utilization(COUNT), lambda: utilization(1), ALONE),
    case("aclrtGetDeviceInfo/deviceId/range", lambda: device_info(COUNT), lambda: device_info(1), ALONE),
    case("aclrtGetDeviceInfo/attr/unsupported", lambda: device_info(attribute=103), lambda: device_info(attribute=102)),
    case("aclrtGetPrimaryCtxState/flags/null", lambda: primary_state(skip="flags"), primary_state),
    case("aclrtGetPrimaryCtxState/active/null", lambda: primary_state(skip="active"), primary_state),
    case("aclrtGetPrimaryCtxState/deviceId/range", lambda: primary_state(COUNT), lambda: primary_state(1), ALONE),
    case("aclrtDeviceCanAccessPeer/canAccessPeer/null", lambda: can_access(out=False), can_access, ALONE),
    case("aclrtDeviceCanAccessPeer/peerDeviceId/same", lambda: can_access(1, 1), can_access, ALONE),
    case("aclrtDeviceCanAccessPeer/deviceId/range", lambda: can_access(COUNT, 1), can_access, ALONE),
    case("aclrtDeviceCanAccessPeer/peerDeviceId/range", lambda: can_access(0, COUNT), can_access, ALONE),
    *[entry for name in PEERS for entry in peer_cases(name)],
    case("aclrtSetDeviceSatMode/mode/range", lambda: saturation(2), lambda: saturation(1)),
    case("aclrtSetDeviceSatMode/context/none", saturation_without_context, lambda: saturation(0)),
    case("aclrtGetDeviceSatMode/context/none",
         without_context(lambda cell: lib.aclrtGetDeviceSatMode(ffi.cast("aclrtFloatOverflowMode *", cell))),
         with_device(lambda cell: lib.aclrtGetDeviceSatMode(ffi.cast("aclrtFloatOverflowMode *", cell)))),
    case("aclrtGetOverflowStatus/outputAddr/null", lambda: overflow_status(out=False), overflow_status),
    case("aclrtGetOverflowStatus/outputSize/range", lambda: overflow_status(size=63), overflow_status),
    case("aclrtGetOverflowStatus/outputAddr/bounds", lambda: overflow_status(short_by=1), overflow_status),
    *[option_case(name) for name in OPTIONS],
    case("aclrtSetSysParamOpt/value/range", lambda: set_option(lib.aclrtSetSysParamOpt, 2),
         lambda: set_option(lib.aclrtSetSysParamOpt, 1)),
    case("aclrtCtxSetSysParamOpt/value/range", lambda: set_option(lib.aclrtCtxSetSysParamOpt, -1),
         lambda: set_option(lib.aclrtCtxSetSysParamOpt, 1)),
    case("aclrtCtxSetSysParamOpt/context/none", without_context(lambda cell: lib.aclrtCtxSetSysParamOpt(0, 0)),
         lambda: set_option(lib.aclrtCtxSetSysParamOpt, 0)),
    case("aclrtCtxGetSysParamOpt/context/none",
         without_context(lambda cell: lib.aclrtCtxGetSysParamOpt(0, ffi.cast("int64_t *", cell))),
         lambda: context_option(True)),
    case("aclrtCtxGetSysParamOpt/value/null", context_option_to_null, lambda: context_option(True)),
    case("aclrtCtxGetSysParamOpt/opt/not-set", lambda: context_option(False), lambda: context_option(True)),
    case("aclrtSynchronizeDevice/context/none", lambda: wait(lib.aclrtSynchronizeDevice, False),
         lambda: wait(lib.aclrtSynchronizeDevice)),
    case("aclrtSynchronizeDeviceWithTimeout/context/none",
         lambda: wait(lambda: lib.aclrtSynchronizeDeviceWithTimeout(10), False),
         lambda: wait(lambda: lib.aclrtSynchronizeDeviceWithTimeout(10))),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
