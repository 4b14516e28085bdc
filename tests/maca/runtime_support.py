"""Memory, streams and events for the tests of the MACA runtime; only the public ABI."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest

from understudy.maca import ffi, lib

from tests.conformance.verdicts import require_status as ok

H2H, H2D, D2H, D2D, ANY = (lib.mcMemcpyHostToHost, lib.mcMemcpyHostToDevice, lib.mcMemcpyDeviceToHost,
                           lib.mcMemcpyDeviceToDevice, lib.mcMemcpyDefault)
LEGACY, PER_THREAD = ffi.cast("mcStream_t", 1), ffi.cast("mcStream_t", 2)


def made(kind: str, function, *arguments):
    """What a function with an output pointer makes."""
    place = ffi.new(f"{kind} *")
    ok(function(place, *arguments))
    return place[0]


def device_memory(size: int = 256):
    return made("void *", lib.mcMalloc, size)


def pinned_memory(size: int = 256, flags: int = 0):
    return made("void *", lib.mcMallocHost, size, flags)


def managed_memory(size: int = 256):
    return made("void *", lib.mcMallocManaged, size, lib.mcMemAttachGlobal)


def host_memory(size: int = 256):
    return ffi.new("char[]", size)


def freed_memory(size: int = 256):
    memory = device_memory(size)
    ok(lib.mcFree(memory))
    return memory


def stream(flags: int = 0):
    return made("mcStream_t", lib.mcStreamCreateWithFlags, flags)


def dead_stream():
    ended = stream()
    ok(lib.mcStreamDestroy(ended))
    return ended


def event(flags: int = 0):
    return made("mcEvent_t", lib.mcEventCreateWithFlags, flags)


def recorded_event(flags: int = 0):
    recorded = event(flags)
    ok(lib.mcEventRecord(recorded, ffi.NULL))
    ok(lib.mcEventSynchronize(recorded))
    return recorded


def dead_event():
    ended = event()
    ok(lib.mcEventDestroy(ended))
    return ended


def pool_props(**changes):
    props = ffi.new("mcMemPoolProps *")
    props.allocType = lib.mcMemAllocationTypePinned
    props.location.type = lib.mcMemLocationTypeDevice
    for name, value in changes.items():
        target = props.location if name in ("type", "id") else props
        setattr(target, name, value)
    return props


def pool():
    return made("mcMemPool_t", lib.mcMemPoolCreate, pool_props())


def dead_pool():
    ended = pool()
    ok(lib.mcMemPoolDestroy(ended))
    return ended


@contextlib.contextmanager
def on_device(ordinal: int):
    before = made("int", lib.mcGetDevice)
    ok(lib.mcSetDevice(ordinal))
    try:
        yield
    finally:
        ok(lib.mcSetDevice(before))


def write(memory, content: bytes) -> None:
    ok(lib.mcMemcpy(memory, content, len(content), H2D))


def read(memory, size: int) -> bytes:
    buffer = host_memory(size)
    ok(lib.mcMemcpy(buffer, memory, size, D2H))
    return ffi.buffer(buffer)[:]


_functions = []  # callbacks must outlive the calls


def host_function(stream_handle, function) -> None:
    """Queues a Python function."""
    @ffi.callback("void(void *)")
    def callback(_):
        function()

    _functions.append(callback)
    ok(lib.mcLaunchHostFunc(stream_handle, callback, ffi.NULL))


needs_a_gate = pytest.mark.skipif(os.environ.get("UNDERSTUDY_STREAM") == "inline",
                                  reason="inline: work is done when it is queued, so nothing can be held back")


class Gate:
    """Work queued behind a gate does not run until it opens. Not for UNDERSTUDY_STREAM=inline."""

    def __init__(self, stream_handle):
        self._open = threading.Event()
        host_function(stream_handle, lambda: self._open.wait(60))

    def open(self) -> None:
        self._open.set()


def break_device() -> None:
    """Leaves a fault on the current device: a fill whose memory is freed before it, in the same stream."""
    own, memory = stream(), device_memory()
    gate = Gate(own)
    ok(lib.mcFreeAsync(memory, own))
    ok(lib.mcMemsetAsync(memory, 1, 16, own))
    gate.open()
    assert lib.mcStreamSynchronize(own) == lib.mcErrorIllegalAddress
