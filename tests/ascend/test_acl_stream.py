"""Order, query, abort and settings of streams (cann-runtime 7 and 9)."""

import contextlib
import threading
import time

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    Out, context, device, download, host_memory, in_thread, memory, ok, upload,
)

COMPLETE, NOT_READY = 0, 1


@pytest.fixture(autouse=True)
def device_0():
    with device():
        yield


@contextlib.contextmanager
def stream():
    """A stream that ends even when what it waits for never comes, so that a test that fails does not hang."""
    made = Out()
    ok(lib.aclrtCreateStream(made.cell))
    try:
        yield made.value
    finally:
        ok(lib.aclrtDestroyStreamForce(made.value))


@contextlib.contextmanager
def gate():
    """An event that streams wait for until it is opened."""
    made = Out()
    ok(lib.aclrtCreateEventWithFlag(made.cell, 1))

    class Gate:
        handle = made.value
        is_open = False

        def open(self):
            ok(lib.aclrtRecordEvent(self.handle, ffi.NULL))
            # 507053: what the gate lets pass may stop the context of the stream that opened it
            assert lib.aclrtSynchronizeStream(ffi.NULL) in (0, 507053)
            self.is_open = True

    opened = Gate()
    try:
        yield opened
    finally:
        if not opened.is_open:
            opened.open()
        ok(lib.aclrtDestroyEvent(made.value))


def value_of(kind: str, function, *arguments):
    cell = ffi.new(f"{kind} *")
    ok(function(*arguments, cell))
    return cell[0]


def query(handle) -> int:
    return value_of("aclrtStreamStatus", lib.aclrtStreamQuery, handle)


def wait_until(condition) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_work_runs_in_order():
    with stream() as made, memory(64) as first, memory(64) as second, host_memory(64) as pinned:
        for value in range(1, 100):
            ok(lib.aclrtMemsetAsync(first, 64, value, 64, made))
            ok(lib.aclrtMemcpyAsync(second, 64, first, 64, 3, made))
        ok(lib.aclrtMemcpyAsync(pinned, 64, second, 64, 2, made))
        ok(lib.aclrtSynchronizeStream(made))
        assert bytes(ffi.buffer(pinned, 64)) == bytes([99] * 64)


def test_query():
    with gate() as closed, stream() as made:
        assert query(made) == COMPLETE
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        assert query(made) == NOT_READY
        closed.open()
        wait_until(lambda: query(made) == COMPLETE)


def test_streams_do_not_wait_for_each_other():
    with gate() as closed, stream() as blocked, stream() as free, memory(64) as block:
        ok(lib.aclrtStreamWaitEvent(blocked, closed.handle))
        ok(lib.aclrtMemsetAsync(block, 64, 5, 64, free))
        ok(lib.aclrtSynchronizeStream(free))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        assert download(block, 64) == bytes([5] * 64)
        assert query(blocked) == NOT_READY


def test_synchronous_copies_do_not_wait_for_streams():
    with gate() as closed, stream() as made, memory(64) as block:
        upload(block, bytes([1] * 64))
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        ok(lib.aclrtMemsetAsync(block, 64, 2, 64, made))
        assert download(block, 64) == bytes([1] * 64)
        closed.open()
        ok(lib.aclrtSynchronizeStream(made))
        assert download(block, 64) == bytes([2] * 64)


def test_abort_drops_what_has_not_started():
    with gate() as closed, stream() as made, memory(64) as block:
        upload(block, bytes([1] * 64))
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        ok(lib.aclrtMemsetAsync(block, 64, 2, 64, made))
        ok(lib.aclrtStreamAbort(made))
        assert query(made) == COMPLETE
        assert lib.aclrtSynchronizeStream(made) == 107023
        assert download(block, 64) == bytes([1] * 64)
        ok(lib.aclrtMemsetAsync(block, 64, 3, 64, made))  # the stream can be used again, and still says that it was aborted
        assert lib.aclrtSynchronizeStream(made) == 107023
        assert download(block, 64) == bytes([3] * 64)


def test_destroy_runs_what_is_queued_and_force_does_not():
    with memory(64) as block:
        for function, expected in (("aclrtDestroyStream", 2), ("aclrtDestroyStreamForce", 1)):
            with gate() as closed:
                made = Out()
                upload(block, bytes([1] * 64))
                ok(lib.aclrtCreateStream(made.cell))
                ok(lib.aclrtStreamWaitEvent(made.value, closed.handle))
                ok(lib.aclrtMemsetAsync(block, 64, 2, 64, made.value))
                if function == "aclrtDestroyStream":
                    closed.open()
                ok(getattr(lib, function)(made.value))
            assert download(block, 64) == bytes([expected] * 64)


def test_synchronize_with_timeout_waits_as_long_as_it_says():
    with gate() as closed, stream() as made:
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        start = time.monotonic()
        assert lib.aclrtSynchronizeStreamWithTimeout(made, 50) == 507046
        assert 0.045 < time.monotonic() - start < 5
        assert lib.aclrtSynchronizeDeviceWithTimeout(10) == 507046
        closed.open()
        assert lib.aclrtSynchronizeStreamWithTimeout(made, -1) == 0
        assert lib.aclrtSynchronizeDevice() == 0


def test_pageable_copies_are_finished_on_return_and_keep_the_order():
    with stream() as made, memory(64) as block:
        ok(lib.aclrtMemsetAsync(block, 64, 7, 64, made))
        data = ffi.new("unsigned char[64]")
        ok(lib.aclrtMemcpyAsync(data, 64, block, 64, lib.ACL_MEMCPY_DEVICE_TO_HOST, made))
        assert set(data) == {7}


def test_a_fault_stays_on_its_stream_only():
    with stream() as healthy:
        faulty, target = Out(), Out()
        ok(lib.aclrtCreateStream(faulty.cell))
        with gate() as closed, memory(64) as source:
            ok(lib.aclrtMalloc(target.cell, 64, 0))
            ok(lib.aclrtStreamWaitEvent(faulty.value, closed.handle))
            ok(lib.aclrtMemcpyAsync(target.value, 64, source, 64, 3, faulty.value))
            ok(lib.aclrtFree(target.value))
            closed.open()
            assert lib.aclrtSynchronizeStream(faulty.value) == 507053
            assert lib.aclrtSynchronizeStream(faulty.value) == 507053
            assert lib.aclrtSynchronizeStream(healthy) == 0
        ok(lib.aclrtDestroyStream(faulty.value))


@contextlib.contextmanager
def failed_task(made, closed):
    """Queues on `made` a copy that fails once the gate opens."""
    target = Out()
    with memory(64) as source:
        ok(lib.aclrtMalloc(target.cell, 64, 0))
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        ok(lib.aclrtMemcpyAsync(target.value, 64, source, 64, 3, made))
        ok(lib.aclrtFree(target.value))
        yield


def test_the_last_error_of_a_thread_is_a_fault_it_has_found():
    lib.aclrtGetLastError(lib.ACL_RT_THREAD_LEVEL)
    with stream() as made, gate() as closed, failed_task(made, closed):
        closed.open()
        assert lib.aclrtSynchronizeStream(made) == 507053
        assert lib.aclrtSynchronizeStream(ffi.NULL) == 0  # calls that succeed leave it alone
        assert lib.aclrtFree(ffi.NULL) == 100000  # and so do refusals
        assert in_thread(lib.aclrtPeekAtLastError, 0) == 0
        assert [lib.aclrtPeekAtLastError(0) for _ in range(2)] == [507053, 507053]
        assert [lib.aclrtGetLastError(0) for _ in range(2)] == [507053, 0]


def test_an_event_tells_the_fault_of_its_own_stream():
    with gate() as closed, stream() as late, stream() as failing, stream() as sound:
        ok(lib.aclrtSetOpWaitTimeout(1))
        ok(lib.aclrtStreamWaitEvent(late, closed.handle))
        ok(lib.aclrtSetOpWaitTimeout(0))
        with failed_task(failing, closed):
            assert lib.aclrtSynchronizeStream(late) == 107020
            closed.open()
            for made, status in ((failing, 507053), (late, 107020), (sound, 0)):
                event = Out()
                ok(lib.aclrtCreateEvent(event.cell))
                ok(lib.aclrtRecordEvent(event.value, made))
                assert lib.aclrtSynchronizeEvent(event.value) == status
                ok(lib.aclrtDestroyEvent(event.value))


@pytest.mark.parametrize("set_through", ["failing", "other", "default", "attribute"])
def test_stop_on_failure_drops_later_work_of_the_whole_context(set_through):
    with context() as mine, gate() as closed, stream() as failing, stream() as other, memory(64) as block:
        upload(block, bytes([1] * 64))
        if set_through == "attribute":
            value = ffi.new("aclrtStreamAttrValue *", {"failureMode": lib.ACL_STOP_ON_FAILURE})
            ok(lib.aclrtSetStreamAttribute(failing, lib.ACL_STREAM_ATTR_FAILURE_MODE, value))
        else:
            streams = {"failing": failing, "other": other, "default": ffi.NULL}
            ok(lib.aclrtSetStreamFailureMode(streams[set_through], lib.ACL_STOP_ON_FAILURE))
        event = Out()
        ok(lib.aclrtCreateEvent(event.cell))
        with failed_task(failing, closed):
            ok(lib.aclrtMemsetAsync(block, 64, 2, 64, failing))
            ok(lib.aclrtRecordEvent(event.value, failing))
            ok(lib.aclrtStreamWaitEvent(other, event.value))
            closed.open()
            assert lib.aclrtSynchronizeStream(failing) == 507053
        assert lib.aclrtSynchronizeEvent(event.value) == 507053
        assert lib.aclrtEventGetTimestamp(event.value, ffi.new("uint64_t *")) == 107006
        ok(lib.aclrtMemsetAsync(block, 64, 3, 64, other))
        assert lib.aclrtSynchronizeStream(other) == 507053
        with stream() as later:
            ok(lib.aclrtMemsetAsync(block, 64, 4, 64, later))
            assert lib.aclrtSynchronizeStream(later) == 507053
        assert download(block, 64) == bytes([1] * 64)
        ok(lib.aclrtDestroyEvent(event.value))
        with context(), stream() as unconcerned:  # the mode and the failure are the context's
            ok(lib.aclrtMemsetAsync(block, 64, 5, 64, unconcerned))
            ok(lib.aclrtSynchronizeStream(unconcerned))
            assert download(block, 64) == bytes([5] * 64)
        ok(lib.aclrtSetCurrentContext(mine))


@pytest.mark.parametrize("modes", [[], [0], [1, 0], [1, 1, 2]])
def test_continue_on_failure_runs_later_work(modes):
    with context(), gate() as closed, stream() as failing, memory(64) as block:
        for mode in modes:
            ok(lib.aclrtSetStreamFailureMode(failing, mode))
        with failed_task(failing, closed):
            ok(lib.aclrtMemsetAsync(block, 64, 2, 64, failing))
            closed.open()
            assert lib.aclrtSynchronizeStream(failing) == 507053
        assert download(block, 64) == bytes([2] * 64)


def test_events_whose_record_was_dropped_keep_nobody_waiting():
    with gate() as closed, stream() as made, stream() as other:
        event = Out()
        ok(lib.aclrtCreateEvent(event.cell))
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        ok(lib.aclrtRecordEvent(event.value, made))
        ok(lib.aclrtStreamWaitEvent(other, event.value))
        assert lib.aclrtSynchronizeEventWithTimeout(event.value, 20) == 507047
        ok(lib.aclrtStreamAbort(made))
        assert lib.aclrtSynchronizeEventWithTimeout(event.value, 10000) == 0
        assert lib.aclrtSynchronizeStreamWithTimeout(other, 10000) == 0
        assert value_of("aclrtEventWaitStatus", lib.aclrtQueryEventWaitStatus, closed.handle) == 0
        assert lib.aclrtEventElapsedTime(ffi.new("float *"), event.value, event.value) == 107006
        ok(lib.aclrtDestroyEvent(event.value))


CALLS = []


@ffi.callback("void(aclrtExceptionInfo *)")
def note_exception(info):
    CALLS.append(info != ffi.NULL)


def test_exception_callback_is_called_once_per_stream():
    CALLS.clear()
    ok(lib.aclrtSetExceptionInfoCallback(note_exception))
    test_a_fault_stays_on_its_stream_only()
    assert CALLS == [True]
    ok(lib.aclrtSetExceptionInfoCallback(ffi.NULL))
    test_a_fault_stays_on_its_stream_only()
    assert CALLS == [True]


@pytest.mark.parametrize("priority, flags, kept_priority, kept_flags", [
    (0, 0, 0, 0), (3, 3, 3, 3), (7, 0x3F, 7, 0x3F), (8, 0x40, 7, 0), (2**32 - 1, 2**32 - 1, 7, 0x3F),
])  # fmt: skip
def test_priority_and_flags_are_remembered(priority, flags, kept_priority, kept_flags):
    made = Out()
    ok(lib.aclrtCreateStreamWithConfig(made.cell, priority, flags))
    assert value_of("uint32_t", lib.aclrtStreamGetPriority, made.value) == kept_priority
    assert value_of("uint32_t", lib.aclrtStreamGetFlags, made.value) == kept_flags
    ok(lib.aclrtDestroyStream(made.value))


@pytest.mark.parametrize("flag", [4, 0x20])
def test_streams_the_host_does_not_wait_for(flag):
    with gate() as closed:
        made = Out()
        ok(lib.aclrtCreateStreamWithConfig(made.cell, 0, flag))
        ok(lib.aclrtStreamWaitEvent(made.value, closed.handle))
        assert lib.aclrtSynchronizeStream(made.value) == 0
        closed.open()
        ok(lib.aclrtDestroyStream(made.value))


def test_ids_differ():
    with stream() as first, stream() as second:
        ids = {value_of("int32_t", lib.aclrtStreamGetId, handle) for handle in (first, second, ffi.NULL)}
        assert len(ids) == 3


def test_available_streams_count_down_and_up():
    before = value_of("uint32_t", lib.aclrtGetStreamAvailableNum)
    with stream(), stream():
        assert value_of("uint32_t", lib.aclrtGetStreamAvailableNum) == before - 2
    assert value_of("uint32_t", lib.aclrtGetStreamAvailableNum) == before


def test_attributes():
    with stream() as made:
        value = ffi.new("aclrtStreamAttrValue *")
        fields = {1: "failureMode", 2: "overflowSwitch", 3: "userCustomTag", 4: "cacheOpInfoSwitch"}
        for number, field in fields.items():
            ok(lib.aclrtGetStreamAttribute(made, number, value))
            assert getattr(value, field) == 0
        for number, field in fields.items():
            setattr(value, field, 1)
            ok(lib.aclrtSetStreamAttribute(made, number, value))
        for number, field in fields.items():
            ok(lib.aclrtGetStreamAttribute(made, number, value))
            assert getattr(value, field) == 1
        ok(lib.aclrtSetStreamFailureMode(made, 0xFE))  # only bit 0 is looked at
        ok(lib.aclrtGetStreamAttribute(made, 1, value))
        assert value.failureMode == 0
        assert value_of("uint32_t", lib.aclrtGetStreamOverflowSwitch, made) == 1
        ok(lib.aclrtSetStreamOverflowSwitch(made, 0))
        assert value_of("uint32_t", lib.aclrtGetStreamOverflowSwitch, made) == 0


def test_threads_use_one_stream_at_once():
    with stream() as made, memory(64) as block:

        def work():
            ok(lib.aclrtSetDevice(0))
            for _ in range(200):
                ok(lib.aclrtMemsetAsync(block, 64, 1, 64, made))
            ok(lib.aclrtSynchronizeStream(made))
            ok(lib.aclrtResetDevice(0))
            return True

        results = []
        threads = [threading.Thread(target=lambda: results.append(work())) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [True] * 6
        assert in_thread(lambda: lib.aclrtSynchronizeStream(made)) == 107002
