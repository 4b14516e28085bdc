"""Events and limits of waits (cann-runtime 9, doc 07)."""

from __future__ import annotations

import contextlib

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, Out, case, device, memory, no_context, ok, stream, with_out
from tests.conformance.harness import Result, check_rule

SYNC, PROGRESS, TIME_LINE, EXTERNAL, IPC = 1, 2, 8, 0x20, 0x40
NULL_STREAM = ffi.NULL


@contextlib.contextmanager
def event(flags: int | None = None, ex: bool = False, record: bool = True):
    """An event of the wanted form on device 0, recorded and reached unless told otherwise."""
    with device():
        made = Out()
        if flags is None:
            ok(lib.aclrtCreateEvent(made.cell))
        elif ex:
            ok(lib.aclrtCreateEventExWithFlag(made.cell, flags))
        else:
            ok(lib.aclrtCreateEventWithFlag(made.cell, flags))
        if record:
            ok(lib.aclrtRecordEvent(made.value, NULL_STREAM))
            ok(lib.aclrtSynchronizeStream(NULL_STREAM))
        try:
            yield made.value
        finally:
            ok(lib.aclrtDestroyEvent(made.value))


def dead_event():
    with event() as made:
        pass
    return made


# ---- create ----

CREATE = {
    "aclrtCreateEvent": lambda cell, flag: lib.aclrtCreateEvent(cell),
    "aclrtCreateEventWithFlag": lambda cell, flag: lib.aclrtCreateEventWithFlag(cell, flag),
    "aclrtCreateEventExWithFlag": lambda cell, flag: lib.aclrtCreateEventExWithFlag(cell, flag),
}
LIMIT = 65536


def create_cases(name: str):
    function = CREATE[name]

    def create(flag: int = SYNC):
        def call(cell):
            with device():
                status = function(cell, flag)
                return lib.aclrtDestroyEvent(cell[0]) if status == 0 else status

        return with_out("void *", call)

    def without_context(cell):
        with no_context():
            return function(cell, SYNC)

    def create_many(count: int):
        with device():
            cells = ffi.new("aclrtEvent[]", count)
            status = 0
            for index in range(count):
                status = status or function(cells + index, SYNC)
            for made in cells:
                if made != ffi.NULL:
                    ok(lib.aclrtDestroyEvent(made))
            return status

    yield case(f"{name}/event/null", lambda: function(ffi.NULL, SYNC), create())
    yield case(f"{name}/context/none", with_out("void *", without_context), create())
    yield case(f"{name}/event/resources", lambda: create_many(LIMIT + 1), lambda: create_many(LIMIT), ALONE)
    if name != "aclrtCreateEvent":
        yield case(f"{name}/flag/range", create(0x4), create(0x7B))


# ---- functions of one event ----

CALLS = {
    "aclrtRecordEvent": lambda e, out: lib.aclrtRecordEvent(e, NULL_STREAM),
    "aclrtResetEvent": lambda e, out: lib.aclrtResetEvent(e, NULL_STREAM),
    "aclrtStreamWaitEvent": lambda e, out: lib.aclrtStreamWaitEvent(NULL_STREAM, e),
    "aclrtStreamWaitEventWithTimeout": lambda e, out: lib.aclrtStreamWaitEventWithTimeout(NULL_STREAM, e, 10),
    "aclrtQueryEvent": lambda e, out: lib.aclrtQueryEvent(e, ffi.cast("aclrtEventStatus *", out)),
    "aclrtQueryEventStatus": lambda e, out: lib.aclrtQueryEventStatus(e, ffi.cast("aclrtEventRecordedStatus *", out)),
    "aclrtQueryEventWaitStatus": lambda e, out: lib.aclrtQueryEventWaitStatus(
        e, ffi.cast("aclrtEventWaitStatus *", out)),
    "aclrtSynchronizeEvent": lambda e, out: lib.aclrtSynchronizeEvent(e),
    "aclrtSynchronizeEventWithTimeout": lambda e, out: lib.aclrtSynchronizeEventWithTimeout(e, 10000),
    "aclrtEventGetTimestamp": lambda e, out: lib.aclrtEventGetTimestamp(e, ffi.cast("uint64_t *", out)),
    "aclrtGetEventId": lambda e, out: lib.aclrtGetEventId(e, ffi.cast("uint32_t *", out)),
}


def with_event(name: str, handle=None, **form):
    """One of the calls, on an event of a form or on another handle."""

    def run():
        out = Out("uint64_t")
        with event(**form) as made:
            given = made if handle is None else handle()
            return out.result(CALLS[name](given, out.cell))

    run.__module__ = __name__
    return run


def event_cases(name: str):
    yield case(f"{name}/event/null", with_event(name, lambda: ffi.NULL), with_event(name))
    yield case(f"{name}/event/dead", with_event(name, dead_event), with_event(name))


def destroy(handle):
    with event():
        return lib.aclrtDestroyEvent(handle)


def create_and_destroy():
    with device():
        made = Out()
        ok(lib.aclrtCreateEvent(made.cell))
        return lib.aclrtDestroyEvent(made.value)


OUTPUTS = {"aclrtQueryEvent": "status", "aclrtQueryEventStatus": "status", "aclrtQueryEventWaitStatus": "status",
           "aclrtEventGetTimestamp": "timestamp", "aclrtGetEventId": "eventId"}  # fmt: skip


def without_output(name: str):
    with event() as made:
        return CALLS[name](made, ffi.NULL)


# ---- waiting ----


def wait_with(timeout: int):
    with event() as made:
        return lib.aclrtStreamWaitEventWithTimeout(NULL_STREAM, made, timeout)


def synchronize_with(timeout: int):
    with event() as made:
        return lib.aclrtSynchronizeEventWithTimeout(made, timeout)


@contextlib.contextmanager
def blocked_stream():
    """A stream that stands still until the block ends."""
    with event(SYNC, record=False) as gate, stream() as made:
        ok(lib.aclrtStreamWaitEvent(made, gate))
        try:
            yield made
        finally:
            ok(lib.aclrtRecordEvent(gate, NULL_STREAM))
            ok(lib.aclrtSynchronizeStream(NULL_STREAM))


def synchronize_event_behind(blocked: bool):
    with blocked_stream() as standing, event(record=False) as made:
        ok(lib.aclrtRecordEvent(made, standing if blocked else NULL_STREAM))
        return lib.aclrtSynchronizeEventWithTimeout(made, 20)


def synchronize_stream_with(timeout: int):
    with device():
        return lib.aclrtSynchronizeStreamWithTimeout(NULL_STREAM, timeout)


def synchronize_aborted(name: str, aborted: bool):
    with device(), stream() as made:
        if aborted:
            ok(lib.aclrtStreamAbort(made))
        return WAITS[f"{name}/stream"](made, None)


def synchronize_blocked_stream(blocked: bool):
    with blocked_stream() as standing:
        return lib.aclrtSynchronizeStreamWithTimeout(standing if blocked else NULL_STREAM, 20)


def synchronize_device_with(timeout: int):
    with device():
        return lib.aclrtSynchronizeDeviceWithTimeout(timeout)


def synchronize_blocked_device():
    with blocked_stream():
        return lib.aclrtSynchronizeDeviceWithTimeout(20)


# ---- faults that a wait reports ----


def copy_fault(wait, happens: bool):
    """A queued copy whose destination is freed before it runs (deferred mode); what `wait` reports."""
    with event(record=False) as made, stream() as working, memory() as source:
        target = Out()
        ok(lib.aclrtMalloc(target.cell, 64, 0))
        ok(lib.aclrtMemcpyAsync(target.value, 64, source, 64, lib.ACL_MEMCPY_DEVICE_TO_DEVICE, working))
        ok(lib.aclrtRecordEvent(made, working))
        if happens:
            ok(lib.aclrtFree(target.value))
        status = wait(working, made)
        if not happens:
            ok(lib.aclrtFree(target.value))
        return status


def kernel_fault(wait, happens: bool):
    """An operator on host memory."""
    data = ffi.new("float *", 1.5)
    with event(record=False) as made, stream() as working, memory() as block:
        shape = ffi.new("int64_t[1]", [1])
        address = data if happens else block
        tensor = lib.aclCreateTensor(shape, 1, lib.ACL_FLOAT, ffi.NULL, 0, lib.ACL_FORMAT_ND, shape, 1, address)
        size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
        ok(lib.aclnnSoftMarginLossBackwardGetWorkspaceSize(tensor, tensor, tensor, 0, tensor, size, executor))
        ok(lib.aclnnSoftMarginLossBackward(ffi.NULL, 0, executor[0], working))
        ok(lib.aclrtRecordEvent(made, working))
        status = wait(working, made)
        ok(lib.aclDestroyTensor(tensor))
        return Result(status, data[0] == 1.5)


def wait_timeout(wait, happens: bool):
    """A queued wait of one second for an event that is recorded later, or before."""
    with event(record=False) as made, event(SYNC, record=not happens) as gate, stream() as working:
        ok(lib.aclrtStreamWaitEventWithTimeout(working, gate, 1))
        ok(lib.aclrtRecordEvent(made, working))
        return wait(working, made)


WAITS = {
    "aclrtSynchronizeStream/stream": lambda s, e: lib.aclrtSynchronizeStream(s),
    "aclrtSynchronizeStreamWithTimeout/stream": lambda s, e: lib.aclrtSynchronizeStreamWithTimeout(s, 10000),
    "aclrtSynchronizeEvent/event": lambda s, e: lib.aclrtSynchronizeEvent(e),
    "aclrtSynchronizeEventWithTimeout/event": lambda s, e: lib.aclrtSynchronizeEventWithTimeout(e, 10000),
    "aclrtSynchronizeDevice/device": lambda s, e: lib.aclrtSynchronizeDevice(),
    "aclrtSynchronizeDeviceWithTimeout/device": lambda s, e: lib.aclrtSynchronizeDeviceWithTimeout(10000),
}
# The copy runs after the free for certain, and no fault of one case is left for another.
DEFERRED = {"UNDERSTUDY_STREAM": "deferred"}


def fault_cases(name: str):
    for rule, make, env in (("copy-fault", copy_fault, DEFERRED), ("kernel-fault", kernel_fault, ALONE),
                            ("wait-timeout", wait_timeout, ALONE)):  # fmt: skip
        # The legal neighbour comes second, on a device that has been reset.
        yield case(f"{name}/{rule}", lambda make=make: make(WAITS[name], True),
                   lambda make=make: make(WAITS[name], False), env)


# ---- time ----


def elapsed(start=None, end=None, unfinished: str | None = None, out: bool = True):
    """Elapsed time between two events made as the keywords say; None: a plain recorded one."""
    start_form, end_form = start or {}, end or {}
    with contextlib.ExitStack() as stack:
        standing = stack.enter_context(blocked_stream()) if unfinished else None
        first = ffi.NULL if start == "null" else stack.enter_context(event(**({} if start == "dead" else start_form)))
        last = ffi.NULL if end == "null" else stack.enter_context(event(**({} if end == "dead" else end_form)))
        if unfinished:
            ok(lib.aclrtRecordEvent(first if unfinished == "start" else last, standing))
        ms = Out("float")
        status = lib.aclrtEventElapsedTime(ms.cell if out else ffi.NULL, dead_event() if start == "dead" else first,
                                           dead_event() if end == "dead" else last)
        return ms.result(status)


def time_cases():
    for parameter in ("start", "end"):
        name = f"aclrtEventElapsedTime/{parameter}Event"
        yield case(f"{name}/null", lambda p=parameter: elapsed(**{p: "null"}), elapsed)
        yield case(f"{name}/dead", lambda p=parameter: elapsed(**{p: "dead"}), elapsed)
        yield case(f"{name}/external", lambda p=parameter: elapsed(**{p: {"flags": TIME_LINE | EXTERNAL}}),
                   lambda p=parameter: elapsed(**{p: {"flags": TIME_LINE | SYNC}}))
        yield case(f"{name}/unrecorded", lambda p=parameter: elapsed(**{p: {"record": False}}), elapsed)
        yield case(f"{name}/time-line", lambda p=parameter: elapsed(**{p: {"flags": SYNC}}), elapsed)
        yield case(f"{name}/unfinished", lambda p=parameter: elapsed(unfinished=p), elapsed)


def timestamp_of(**form):
    return with_event("aclrtEventGetTimestamp", **form)


RULES = [
    *[entry for name in CREATE for entry in create_cases(name)],
    *[entry for name in CALLS for entry in event_cases(name)],
    case("aclrtDestroyEvent/event/null", lambda: destroy(ffi.NULL), create_and_destroy),
    case("aclrtDestroyEvent/event/dead", lambda: destroy(dead_event()), create_and_destroy),
    *[case(f"{name}/{parameter}/null", lambda name=name: without_output(name), with_event(name))
      for name, parameter in OUTPUTS.items()],
    *[case(f"{name}/event/ex", with_event(name, flags=SYNC, ex=True), with_event(name, flags=SYNC))
      for name in ("aclrtResetEvent", "aclrtQueryEvent", "aclrtQueryEventWaitStatus")],
    *[case(f"{name}/event/sync", with_event(name, flags=TIME_LINE), with_event(name, flags=TIME_LINE | SYNC))
      for name in ("aclrtStreamWaitEvent", "aclrtStreamWaitEventWithTimeout")],
    *[case(f"{name}/event/unrecorded", with_event(name, record=False),
           with_event(name, flags=SYNC, ex=True, record=False))
      for name in ("aclrtStreamWaitEvent", "aclrtStreamWaitEventWithTimeout")],
    case("aclrtStreamWaitEventWithTimeout/timeout/range", lambda: wait_with(-1), lambda: wait_with(0)),
    case("aclrtSynchronizeEventWithTimeout/timeout/range", lambda: synchronize_with(0), lambda: synchronize_with(-1)),
    case("aclrtSynchronizeEventWithTimeout/timeout/expired", lambda: synchronize_event_behind(True),
         lambda: synchronize_event_behind(False)),
    *[case(f"{name}/stream/aborted", lambda name=name: synchronize_aborted(name, True),
           lambda name=name: synchronize_aborted(name, False))
      for name in ("aclrtSynchronizeStream", "aclrtSynchronizeStreamWithTimeout")],
    case("aclrtSynchronizeStreamWithTimeout/timeout/range", lambda: synchronize_stream_with(-2),
         lambda: synchronize_stream_with(-1)),
    case("aclrtSynchronizeStreamWithTimeout/timeout/expired", lambda: synchronize_blocked_stream(True),
         lambda: synchronize_blocked_stream(False)),
    case("aclrtSynchronizeDeviceWithTimeout/timeout/range", lambda: synchronize_device_with(0),
         lambda: synchronize_device_with(1)),
    case("aclrtSynchronizeDeviceWithTimeout/timeout/expired", synchronize_blocked_device,
         lambda: synchronize_device_with(20)),
    *[entry for name in WAITS for entry in fault_cases(name)],
    case("aclrtEventElapsedTime/ms/null", lambda: elapsed(out=False), elapsed),
    *time_cases(),
    case("aclrtEventGetTimestamp/event/time-line", timestamp_of(flags=SYNC), timestamp_of(flags=TIME_LINE)),
    case("aclrtEventGetTimestamp/event/unfinished", timestamp_of(record=False), timestamp_of()),
    case("aclrtGetEventAvailNum/eventCount/null", lambda: lib.aclrtGetEventAvailNum(ffi.NULL),
         with_out("uint32_t", lambda cell: lib.aclrtGetEventAvailNum(cell))),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
