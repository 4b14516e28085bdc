"""What the cases of the Ascend runtime share: a device, memory, a thread without context, and pairs of calls."""

from __future__ import annotations

import contextlib
import threading

from understudy.ascend import ffi, lib

from tests.conformance.harness import Result, RuleCase
from tests.conformance.verdicts import require_status as ok

# Cases that change what the whole process shares run in a child of their own.
ALONE = {"UNDERSTUDY_DEVICES": "2"}


def named(name: str):
    """A function by name, looked up when it is called: a library that lacks it fails the case, not the module."""
    return lambda *arguments: getattr(lib, name)(*arguments)


@contextlib.contextmanager
def device(ordinal: int = 0):
    ok(lib.aclrtSetDevice(ordinal))
    try:
        yield
    finally:
        ok(lib.aclrtResetDevice(ordinal))


def in_thread(function, *arguments):
    """Runs a function on a new thread, which has no context, and returns its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*arguments)))
    thread.start()
    thread.join()
    return results[0]


@contextlib.contextmanager
def no_context():
    """This thread without a context, whatever it had: the current one is destroyed by another thread."""
    previous = ffi.new("aclrtContext *")
    had_context = lib.aclrtGetCurrentContext(previous) == 0
    made = ffi.new("aclrtContext *")
    ok(lib.aclrtCreateContext(made, 0))
    ok(in_thread(lib.aclrtDestroyContext, made[0]))
    try:
        yield
    finally:
        if had_context:  # unless what ran inside has ended it, by resetting its device
            lib.aclrtSetCurrentContext(previous[0])


@contextlib.contextmanager
def context(ordinal: int = 0):
    """An explicit context, current inside the block."""
    made = ffi.new("aclrtContext *")
    ok(lib.aclrtCreateContext(made, ordinal))
    try:
        yield made[0]
    finally:
        ok(lib.aclrtDestroyContext(made[0]))


@contextlib.contextmanager
def stream(flags: int = 0):
    made = ffi.new("aclrtStream *")
    ok(lib.aclrtCreateStreamWithConfig(made, 0, flags) if flags else lib.aclrtCreateStream(made))
    try:
        yield made[0]
    finally:
        ok(lib.aclrtDestroyStream(made[0]))


@contextlib.contextmanager
def foreign_stream(flags: int = 0):
    """A stream of a context that is not current."""
    with device(), context(), stream(flags) as other:
        mine = ffi.new("aclrtContext *")
        ok(lib.aclrtGetCurrentContext(mine))
        with context():
            yield other
        ok(lib.aclrtSetCurrentContext(mine[0]))


def dead_stream():
    with stream() as handle:
        pass
    return handle


@contextlib.contextmanager
def memory(size: int = 64):
    """Device memory."""
    made = ffi.new("void **")
    ok(lib.aclrtMalloc(made, size, lib.ACL_MEM_MALLOC_HUGE_FIRST))
    try:
        yield made[0]
    finally:
        ok(lib.aclrtFree(made[0]))


@contextlib.contextmanager
def host_memory(size: int = 64):
    """Page-locked memory."""
    made = ffi.new("void **")
    ok(lib.aclrtMallocHost(made, size))
    try:
        yield made[0]
    finally:
        ok(lib.aclrtFreeHost(made[0]))


def freed_memory(size: int = 64):
    with memory(size) as address:
        pass
    return address


def address_of(value) -> int:
    return int(ffi.cast("uintptr_t", value))


def pointer(address: int):
    return ffi.cast("void *", address)


def upload(address, data: bytes) -> None:
    ok(lib.aclrtMemcpy(address, len(data), ffi.from_buffer(data), len(data), lib.ACL_MEMCPY_HOST_TO_DEVICE))


def download(address, size: int) -> bytes:
    data = bytearray(size)
    ok(lib.aclrtMemcpy(ffi.from_buffer(data), size, address, size, lib.ACL_MEMCPY_DEVICE_TO_HOST))
    return bytes(data)


class Out:
    """An output parameter with a known content, to see whether a refused call wrote to it."""

    def __init__(self, kind: str = "void *"):
        self.cell = ffi.new(f"{kind} *")
        ffi.memmove(self.cell, b"\x5a" * ffi.sizeof(kind), ffi.sizeof(kind))
        self.before = self.bytes()

    def bytes(self) -> bytes:
        return bytes(ffi.buffer(self.cell))

    @property
    def value(self):
        return self.cell[0]

    def result(self, status: int) -> Result:
        return Result(status, self.bytes() == self.before)


def with_out(kind: str, call):
    """A case's function: `call` gets an output cell; the result tells whether it kept its bytes."""

    def run() -> Result:
        out = Out(kind)
        return out.result(call(out.cell))

    run.__module__ = call.__module__
    return run


def inside(*managers):
    """Decorates a case's function: it runs inside these context managers and gets what they give."""

    def decorate(function):
        def run():
            with contextlib.ExitStack() as stack:
                given = [stack.enter_context(manager()) for manager in managers]
                return function(*[item for item in given if item is not None])

        run.__module__ = function.__module__
        return run

    return decorate


def case(rule: str, refused, accepted, env=None, status=None) -> RuleCase:
    """A pair of functions that return a status or a Result."""

    def as_result(function):
        def run() -> Result:
            result = function()
            return result if isinstance(result, Result) else Result(int(result))

        run.__module__ = function.__module__
        return run

    return RuleCase(rule, as_result(refused), as_result(accepted), env or {}, status)
