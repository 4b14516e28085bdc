"""A legal call of every function of libmcruntime, and the rule cases made from it by changing one argument."""

from __future__ import annotations

from collections.abc import Callable

from understudy.maca import ffi, lib

from tests.conformance.harness import Result, RuleCase
from tests.maca import runtime_support as rt

NULL = ffi.NULL

# Function -> legal arguments, made anew for each call.
LEGAL: dict[str, Callable[[], list]] = {
    "mcInit": lambda: [0],
    "mcGetDeviceCount": lambda: [ffi.new("int *")],
    "mcSetDevice": lambda: [0],
    "mcGetDevice": lambda: [ffi.new("int *")],
    "mcGetDeviceProperties": lambda: [ffi.new("mcDeviceProp_t *"), 0],
    "mcDeviceGetAttribute": lambda: [ffi.new("int *"), lib.mcDeviceAttributeWarpSize, 0],
    "mcDeviceGetName": lambda: [ffi.new("char[]", 64), 64, 0],
    "mcDeviceGetPCIBusId": lambda: [ffi.new("char[]", 64), 64, 0],
    "mcDeviceGetByPCIBusId": lambda: [ffi.new("int *"), ffi.new("char[]", b"0000:01:00.0")],
    "mcDeviceSynchronize": lambda: [],
    "mcDeviceReset": lambda: [],
    "mcDeviceSetLimit": lambda: [lib.mcLimitStackSize, 4096],
    "mcDeviceCanAccessPeer": lambda: [ffi.new("int *"), 0, 0],
    "mcDeviceEnablePeerAccess": lambda: [1, 0],  # needs two devices, once per process
    "mcRuntimeGetVersion": lambda: [ffi.new("int *")],
    "mcDriverGetVersion": lambda: [ffi.new("int *")],
    "mcMalloc": lambda: [ffi.new("void **"), 64],
    "mcFree": lambda: [rt.device_memory()],
    "mcMallocHost": lambda: [ffi.new("void **"), 64, 0],
    "mcFreeHost": lambda: [rt.pinned_memory()],
    "mcMallocManaged": lambda: [ffi.new("void **"), 64, lib.mcMemAttachGlobal],
    "mcMemcpy": lambda: [rt.device_memory(), rt.host_memory(), 256, rt.H2D],
    "mcMemcpyAsync": lambda: [rt.device_memory(), rt.host_memory(), 256, rt.H2D, NULL],
    "mcMemcpyPeerAsync": lambda: [rt.device_memory(), 0, rt.device_memory(), 0, 256, NULL],
    "mcMemcpy2D": lambda: [rt.device_memory(), 32, rt.host_memory(), 16, 16, 8, rt.H2D],
    "mcMemcpy2DAsync": lambda: [rt.device_memory(), 32, rt.host_memory(), 16, 16, 8, rt.H2D, NULL],
    "mcMemset": lambda: [rt.device_memory(), 1, 256],
    "mcMemsetAsync": lambda: [rt.device_memory(), 1, 256, NULL],
    "mcMemGetInfo": lambda: [ffi.new("size_t *"), ffi.new("size_t *")],
    "mcHostRegister": lambda: [rt.host_memory(), 256, 0],
    "mcHostUnregister": lambda: [registered()],
    "mcHostGetDevicePointer": lambda: [ffi.new("void **"), rt.pinned_memory(), 0],
    "mcPointerGetAttributes": lambda: [ffi.new("mcPointerAttribute_t *"), rt.device_memory()],
    "mcMallocAsync": lambda: [ffi.new("void **"), 64, NULL],
    "mcFreeAsync": lambda: [rt.device_memory(), NULL],
    "mcMemPoolCreate": lambda: [ffi.new("mcMemPool_t *"), rt.pool_props()],
    "mcMemPoolDestroy": lambda: [rt.pool()],
    "mcMallocFromPoolAsync": lambda: [ffi.new("void **"), 64, rt.pool(), NULL],
    "mcStreamCreate": lambda: [ffi.new("mcStream_t *")],
    "mcStreamCreateWithFlags": lambda: [ffi.new("mcStream_t *"), lib.mcStreamNonBlocking],
    "mcStreamCreateWithPriority": lambda: [ffi.new("mcStream_t *"), 0, -1],
    "mcDeviceGetStreamPriorityRange": lambda: [ffi.new("int *"), ffi.new("int *")],
    "mcStreamDestroy": lambda: [rt.stream()],
    "mcStreamSynchronize": lambda: [rt.stream()],
    "mcStreamQuery": lambda: [rt.stream()],
    "mcStreamWaitEvent": lambda: [rt.stream(), rt.event(), 0],
    "mcLaunchHostFunc": lambda: [NULL, nothing, NULL],
    "mcEventCreate": lambda: [ffi.new("mcEvent_t *")],
    "mcEventCreateWithFlags": lambda: [ffi.new("mcEvent_t *"), lib.mcEventDisableTiming],
    "mcEventRecord": lambda: [rt.event(), NULL],
    "mcEventRecordWithFlags": lambda: [rt.event(), NULL, 0],
    "mcEventSynchronize": lambda: [rt.event()],
    "mcEventQuery": lambda: [rt.event()],
    "mcEventElapsedTime": lambda: [ffi.new("float *"), rt.recorded_event(), rt.recorded_event()],
    "mcEventDestroy": lambda: [rt.event()],
    "mcIpcGetMemHandle": lambda: [ffi.new("mcIpcMemHandle_t *"), rt.device_memory()],
    "mcIpcGetEventHandle": lambda: [ffi.new("mcIpcEventHandle_t *"),
                                    rt.event(lib.mcEventDisableTiming | lib.mcEventInterprocess)],
}

_kept = []


def registered():
    memory = rt.host_memory()
    _kept.append(memory)
    rt.ok(lib.mcHostRegister(memory, 256, 0))
    return memory


@ffi.callback("void(void *)")
def nothing(_):
    pass


def _bytes_of(arguments) -> list[bytes]:
    """The content of the plain structures and numbers that arguments point to."""
    return [ffi.buffer(item)[:] for item in arguments
            if isinstance(item, ffi.CData) and ffi.typeof(item).kind in ("pointer", "array")
            and ffi.typeof(item).item.kind not in ("void", "function") and ffi.typeof(item) not in OPAQUE]


OPAQUE = {ffi.typeof(name) for name in ("mcStream_t", "mcEvent_t", "mcMemPool_t")}


def run(function: str, changes: dict[int, object] | Callable[[list], dict] = {}) -> Result:
    """Calls with some arguments changed: a dictionary by position, or a function of the legal arguments."""
    arguments = LEGAL[function]()
    changes = changes(arguments) if callable(changes) else changes
    _kept.append(list(arguments))
    for position, value in changes.items():
        arguments[position] = value
    _kept.append(arguments)
    before = _bytes_of(arguments)
    status = getattr(lib, function)(*arguments)
    return Result(status, _bytes_of(arguments) == before if status != 0 and before else None)


def case(rule: str, refused, accepted=None) -> RuleCase:
    """`refused` and `accepted`: changes to the legal call of the rule's function."""
    function = rule.split("/")[0]
    return RuleCase(rule, refused=lambda: run(function, refused), accepted=lambda: run(function, accepted or {}))


def null_cases(function: str, **positions: int) -> list[RuleCase]:
    return [case(f"{function}/{name}/null", {position: NULL}) for name, position in positions.items()]
