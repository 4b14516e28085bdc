"""Callbacks of states, exceptions and starts; work that is stopped; notes to recorded tasks (cann-runtime-3 6, 13.4)."""

import contextlib
import json
import os
import threading

import pytest
from understudy.ascend import ffi, lib

from tests.ascend.test_acl_stream import gate, stream, value_of
from tests.conformance.ascend.acl_support import Out, context, device, download, in_thread, memory, ok
from tests.conformance.harness import run_python

NULL = ffi.NULL
TIMED_OUT, SHORT_MS, LONG_MS = 507046, 20, 60_000


@pytest.fixture(autouse=True)
def device_0():
    with device():
        yield


def fail(block, made):
    """A task that writes beside its memory."""
    ok(lib.aclrtValueWrite(ffi.cast("char *", block) + 4096, 1, 0, made))


# ---- states ----

def test_streams_are_told_from_begin_to_end():
    seen = []

    @ffi.callback("aclrtStreamStateCallback")
    def note(handle, state, argument):
        seen.append((handle, state, int(ffi.cast("intptr_t", argument))))

    ok(lib.aclrtRegStreamStateCallback(b"here", note, ffi.cast("void *", 7)))
    try:
        with stream() as made:
            pass
        with context():
            own = value_of("aclrtStream", lib.aclrtCtxGetCurrentDefaultStream)
            left = value_of("aclrtStream", lambda cell: lib.aclrtCreateStream(cell))
    finally:
        ok(lib.aclrtRegStreamStateCallback(b"here", NULL, NULL))
    with stream():
        pass
    assert seen[:4] == [(made, 1, 7), (made, 2, 7), (own, 1, 7), (left, 1, 7)]
    assert sorted(map(str, seen[4:])) == sorted(map(str, [(own, 2, 7), (left, 2, 7)]))


def test_each_set_and_reset_of_a_device_is_told():
    seen = []

    @ffi.callback("aclrtDeviceStateCallback")
    def note(ordinal, state, _):
        seen.append((ordinal, state))
        lib.aclrtGetLastError(0)  # may call the runtime

    ok(lib.aclrtRegDeviceStateCallback(b"here", note, NULL))
    try:
        with device():
            assert lib.aclrtSetDevice(1000) == 107001
        in_thread(lambda: (ok(lib.aclrtSetDevice(0)), ok(lib.aclrtResetDevice(0))))
    finally:
        ok(lib.aclrtRegDeviceStateCallback(b"here", NULL, NULL))
    assert seen == [(0, state) for state in (0, 1, 2, 3)] * 2


# ---- exceptions ----

def test_a_failed_task_can_be_asked_for():
    seen = []

    @ffi.callback("aclrtExceptionInfoCallback")
    def ask(info):
        arguments, size = Out(), Out("uint32_t")
        ok(lib.aclrtGetArgsFromExceptionInfo(info, arguments.cell, size.cell))
        seen.append((lib.aclrtGetTaskIdFromExceptionInfo(info), lib.aclrtGetStreamIdFromExceptionInfo(info),
                     lib.aclrtGetThreadIdFromExceptionInfo(info), lib.aclrtGetDeviceIdFromExceptionInfo(info),
                     lib.aclrtGetErrorCodeFromExceptionInfo(info), arguments.value, size.value))

    for _ in range(2):  # kept once
        ok(lib.aclrtExceptionInfoCallbackRegister(ask))
    ok(lib.aclrtSetExceptionInfoCallback(ask))
    with stream() as made, stream() as other, memory() as block, contextlib.ExitStack() as told:
        told.callback(lib.aclrtExceptionInfoCallbackUnregister, ask)
        told.callback(lib.aclrtSetExceptionInfoCallback, NULL)
        ok(lib.aclrtMemsetAsync(block, 64, 0, 64, made))
        fail(block, made)
        last = value_of("uint32_t", lib.aclrtGetThreadLastTaskId)
        ok(lib.aclrtMemsetAsync(block, 64, 0, 64, NULL))  # of a default stream: not counted
        assert value_of("uint32_t", lib.aclrtGetThreadLastTaskId) == last
        ok(lib.aclrtSynchronizeStream(NULL))  # before the block ends
        status = lib.aclrtSynchronizeStream(made)
        assert lib.aclrtSynchronizeStream(made) == status != 0  # told once
        ok(lib.aclrtExceptionInfoCallbackUnregister(ask))
        ok(lib.aclrtExceptionInfoCallbackUnregister(ask))
        fail(block, other)  # the other registration is independent
        assert lib.aclrtSynchronizeStream(other) == status
        numbers = [value_of("int32_t", lib.aclrtStreamGetId, handle) for handle in (made, other)]
    about = (threading.get_native_id(), 0, status, NULL, 0)
    assert seen == [(last, numbers[0], *about)] * 2 + [(1, numbers[1], *about)]
    assert last == 2


def test_nothing_is_known_without_an_exception():
    for name in ("TaskId", "StreamId", "ThreadId", "DeviceId", "ErrorCode"):
        assert getattr(lib, f"aclrtGet{name}FromExceptionInfo")(NULL) == 0xFFFFFFFF


# ---- start and end ----

def test_start_and_end_are_told(tmp_path):
    file = tmp_path / "acl.json"
    file.write_text('{"dump": {}}')
    source = f"""
from understudy.ascend import ffi, lib
seen = []
@ffi.callback("aclInitCallbackFunc")
def begin(text, size, data):
    seen.append((ffi.string(text), size, int(ffi.cast("intptr_t", data)))); return 0
@ffi.callback("aclFinalizeCallbackFunc")
def end(data):
    seen.append(int(ffi.cast("intptr_t", data))); return 0
number = lambda value: ffi.cast("void *", value)
statuses = [lib.aclInitCallbackRegister(0, begin, number(1)), lib.aclInitCallbackRegister(0, begin, number(2)),
            lib.aclFinalizeCallbackRegister(0, end, number(3)), lib.aclFinalizeCallbackRegister(65535, end, number(4)),
            lib.aclInit({os.fsencode(file)!r}), lib.aclInitCallbackRegister(7, begin, number(5)),
            lib.aclInitCallbackUnRegister(7, begin), lib.aclFinalizeCallbackUnRegister(65535, end), lib.aclFinalize(),
            lib.aclInit(ffi.NULL)]
print(statuses, seen)
"""
    text = (b'{"dump": {}}', 12)
    seen = [(*text, 2), (*text, 5), 3, (b"", 0, 2)]
    assert run_python(source, {}).strip() == f"{[0] * 10} {seen}"


# ---- host functions on a thread of the program ----

def test_host_functions_and_callbacks_run_on_their_threads_in_order():
    seen, stopping = [], threading.Event()

    def serve(process):
        ok(lib.aclrtSetDevice(0))
        while not stopping.is_set():
            assert process(1000) in (0, 507012, 107012)
        ok(lib.aclrtResetDevice(0))

    @ffi.callback("void(void *)")
    def note(number):
        seen.append((int(ffi.cast("intptr_t", number)), threading.get_ident()))

    reports, functions = [threading.Thread(target=serve, args=(process,))
                          for process in (lib.aclrtProcessReport, lib.aclrtProcessHostFunc)]
    with gate() as closed, stream() as made, stream() as other:
        reports.start()
        functions.start()
        ok(lib.aclrtSubscribeReport(reports.ident, made))
        for handle in (made, other):
            ok(lib.aclrtSubscribeHostFunc(functions.ident, handle))
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        for number in range(0, 6, 2):
            ok(lib.aclrtLaunchHostFunc(made, note, ffi.cast("void *", number)))
            ok(lib.aclrtLaunchCallback(note, ffi.cast("void *", number + 1), 1, made))
        ok(lib.aclrtLaunchHostFunc(other, note, ffi.cast("void *", 100)))
        ok(lib.aclrtSynchronizeStream(other))
        closed.open()
        ok(lib.aclrtSynchronizeStream(made))
        stopping.set()
        ok(lib.aclrtUnSubscribeReport(reports.ident, made))
        for handle in (made, other):
            ok(lib.aclrtUnSubscribeHostFunc(functions.ident, handle))
        reports.join()
        functions.join()
    assert seen == [(100, functions.ident), *[(n, (functions, reports)[n % 2].ident) for n in range(6)]]


# ---- stopping ----

def test_aborting_a_device_drops_all_its_work_and_tells():
    seen = []

    @ffi.callback("aclrtDeviceTaskAbortCallback")
    def note(ordinal, stage, timeout, argument):
        seen.append((ordinal, stage, timeout, int(ffi.cast("intptr_t", argument))))
        return 1  # changes nothing

    ok(lib.aclrtSetDeviceTaskAbortCallback(b"here", note, ffi.cast("void *", 7)))
    with stream() as first, stream() as second, memory() as block, gate() as closed:
        ok(lib.aclrtMemset(block, 64, 1, 64))
        notify = value_of("aclrtNotify", lambda cell: lib.aclrtCreateNotify(cell, 0))
        ok(lib.aclrtStreamWaitEvent(first, closed.handle))
        ok(lib.aclrtWaitAndResetNotify(notify, second, 0))
        ok(lib.aclrtValueWait(block, 2, 1, NULL))
        for handle in (first, second, NULL):
            ok(lib.aclrtMemsetAsync(block, 64, 3, 64, handle))
        ok(lib.aclrtDeviceTaskAbort(0, 5000))
        for handle in (first, second, NULL):
            ok(lib.aclrtSynchronizeStream(handle))
        assert download(block, 64) == bytes([1] * 64)
        ok(lib.aclrtMemsetAsync(block, 64, 4, 64, first))  # the streams live on
        ok(lib.aclrtSynchronizeStream(first))
        assert download(block, 64) == bytes([4] * 64)
        ok(lib.aclrtDestroyNotify(notify))
    ok(lib.aclrtSetDeviceTaskAbortCallback(b"here", NULL, NULL))
    assert seen == [(0, 0, 5000, 7), (0, 1, 5000, 7)]


WAITS_FOR_A_RANK = """
import time
from understudy.ascend import ffi, lib
from tests.ascend.test_acl_stream import stream
from tests.ascend.test_hccl_operations import all_of_this_thread
from tests.conformance.ascend.acl_support import device, download, memory, ok

with device(), memory() as block, stream() as made:
    for abort in (lambda: lib.aclrtDeviceTaskAbort(0, 5000), lambda: lib.aclrtStreamAbort(made)):
        first, second = all_of_this_thread(2)
        ok(lib.HcclAllReduce(block, block, 1, lib.HCCL_DATA_TYPE_FP32, lib.HCCL_REDUCE_SUM, first, made))
        time.sleep(0.05)  # mostly it waits for the other rank by then; before that it is dropped
        ok(abort())
        status = lib.aclrtSynchronizeStream(made)
        ok(lib.HcclCommDestroy(first))
        ok(lib.HcclCommDestroy(second))
        if status == 0:  # of an aborted device; an aborted stream takes no work
            ok(lib.aclrtMemsetAsync(block, 64, 4, 64, made))
            ok(lib.aclrtSynchronizeStream(made))
            assert download(block, 64) == bytes([4] * 64)
        print(status)
"""


@pytest.mark.parametrize("mode", ["async", "deferred"])
def test_aborting_a_collective_that_waits_for_a_rank_is_no_fault(mode):
    assert run_python(WAITS_FOR_A_RANK, {"UNDERSTUDY_STREAM": mode}).split() == ["0", "107023"]


# Held-back work begins when somebody waits for it: the host function tells that the wait has begun.
ABORTED_WAITS = """
import threading
from understudy.ascend import ffi, lib
from tests.conformance.ascend.acl_support import device, memory, ok
from tests.ascend.test_acl_aborts import built_model, persistent
from tests.ascend.test_acl_stream import stream, value_of

waits = threading.Event()

@ffi.callback("void(void *)")
def begun(_):
    waits.set()

with device(), memory() as block, stream() as made:
    ok(lib.aclrtMemset(block, 64, 0, 64))
    host = ffi.new("char[64]")
    event = value_of("aclrtEvent", lambda cell: lib.aclrtCreateEvent(cell))
    recorder = persistent()
    model = built_model(recorder, lambda: (ok(lib.aclrtLaunchHostFunc(recorder, begun, ffi.NULL)),
                                           ok(lib.aclrtValueWait(block, 9, 1, recorder))))
    for wait in (lambda: lib.aclrtSynchronizeStream(made), lambda: lib.aclrtSynchronizeStreamWithTimeout(made, 60000),
                 lambda: lib.aclrtMemcpyAsync(host, 64, block, 64, 2, made), lib.aclrtSynchronizeDevice,
                 lambda: lib.aclrtSynchronizeEvent(event), lambda: lib.aclmdlRIExecute(model, -1)):
        waits.clear()
        ok(lib.aclrtLaunchHostFunc(made, begun, ffi.NULL))
        ok(lib.aclrtValueWait(block, 9, 1, made))
        ok(lib.aclrtRecordEvent(event, made))
        found = []
        def run():
            ok(lib.aclrtSetDevice(0))
            found.append(wait())
        thread = threading.Thread(target=run)
        thread.start()
        assert waits.wait(60)
        ok(lib.aclrtDeviceTaskAbort(0, 0))
        thread.join()
        assert found == [107022], found
        ok(lib.aclrtSynchronizeStream(made))
print("told")
"""


def test_a_wait_that_an_abort_ends_says_so():
    assert run_python(ABORTED_WAITS, {"UNDERSTUDY_STREAM": "deferred"}).split() == ["told"]


def test_stopping_a_stream_ends_its_wait_and_keeps_its_queue():
    with stream() as made, memory() as block, gate() as closed:
        ok(lib.aclrtMemset(block, 64, 1, 64))
        ok(lib.aclrtStreamStop(made))  # nothing runs: nothing stops
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        ok(lib.aclrtMemsetAsync(block, 64, 2, 64, made))
        ok(lib.aclrtStreamStop(made))  # whether or not the wait has been begun
        ok(lib.aclrtSynchronizeStreamWithTimeout(made, LONG_MS))
        assert download(block, 64) == bytes([2] * 64)


def test_stops_and_aborts_are_not_lost_before_a_task_has_begun():
    """Again and again: a worker takes a task a little before or after it is stopped."""
    made = persistent()
    with stream() as runs, memory() as block:
        ok(lib.aclrtMemset(block, 64, 0, 64))
        model = built_model(made, lambda: ok(lib.aclrtValueWait(block, 9, 1, made)))
        for _ in range(20):
            ok(lib.aclrtValueWait(block, 9, 1, runs))
            ok(lib.aclrtStreamStop(runs))
            ok(lib.aclrtSynchronizeStreamWithTimeout(runs, LONG_MS))
            for _ in range(2):
                ok(lib.aclmdlRIExecuteAsync(model, runs))
            ok(lib.aclmdlRIAbort(model))
            assert lib.aclrtSynchronizeStreamWithTimeout(runs, SHORT_MS) == TIMED_OUT  # for the second run
            ok(lib.aclmdlRIAbort(model))
            ok(lib.aclrtSynchronizeStreamWithTimeout(runs, LONG_MS))
        ok(lib.aclmdlRIUnbindStream(model, made))
        ok(lib.aclmdlRIDestroy(model))
    ok(lib.aclrtDestroyStream(made))


def built_model(made, fill):
    model = value_of("aclmdlRI", lambda cell: lib.aclmdlRIBuildBegin(cell, 0))
    ok(lib.aclmdlRIBindStream(model, made, 0))
    fill()
    ok(lib.aclmdlRIBuildEnd(model, NULL))
    return model


def persistent():
    return value_of("aclrtStream", lambda cell: lib.aclrtCreateStreamWithConfig(cell, 0, lib.ACL_STREAM_PERSISTENT))


def test_aborting_a_model_ends_its_run_only():
    made = persistent()
    with stream() as runs, memory() as block:
        ok(lib.aclrtMemset(block, 64, 1, 64))

        def fill():
            ok(lib.aclrtValueWait(block, 9, 1, made))
            ok(lib.aclrtMemsetAsync(block, 64, 2, 64, made))

        model = built_model(made, fill)
        ok(lib.aclmdlRIAbort(model))  # nothing runs
        ok(lib.aclmdlRIExecuteAsync(model, runs))
        ok(lib.aclrtLaunchHostFunc(runs, nothing, NULL))
        ok(lib.aclmdlRIAbort(model))
        ok(lib.aclrtSynchronizeStreamWithTimeout(runs, LONG_MS))
        assert download(block, 64) == bytes([1] * 64)
        ok(lib.aclmdlRIUnbindStream(model, made))
        ok(lib.aclmdlRIDestroy(model))
    ok(lib.aclrtDestroyStream(made))


@ffi.callback("void(void *)")
def nothing(_):
    pass


def test_a_cleaned_stream_is_filled_again():
    made = persistent()
    with stream() as runs, memory() as block:
        model = built_model(made, lambda: ok(lib.aclrtMemsetAsync(block, 64, 2, 64, made)))
        ok(lib.aclrtPersistentTaskClean(made))
        assert lib.aclmdlRIExecuteAsync(model, runs) == 507011  # unfinished again
        ok(lib.aclrtMemsetAsync(block, 32, 3, 32, made))
        ok(lib.aclmdlRIBuildEnd(model, NULL))
        ok(lib.aclrtMemset(block, 64, 1, 64))
        ok(lib.aclmdlRIExecuteAsync(model, runs))
        ok(lib.aclrtSynchronizeStream(runs))
        assert download(block, 64) == bytes([3] * 32 + [1] * 32)
        ok(lib.aclmdlRIUnbindStream(model, made))
        ok(lib.aclmdlRIDestroy(model))
    ok(lib.aclrtDestroyStream(made))


# ---- notes ----

def test_notes_of_tasks_are_printed_with_the_model(tmp_path):
    path = tmp_path / "model.json"
    said = '{"name": "é\\n", "shape": [1]}'.encode()
    cut = ("x" * 4095 + "é").encode()
    with stream() as made, memory() as block:
        value = ffi.new("aclrtStreamAttrValue *")
        value.cacheOpInfoSwitch = 1
        ok(lib.aclrtSetStreamAttribute(made, lib.ACL_STREAM_ATTR_CACHE_OP_INFO, value))
        ok(lib.aclmdlRICaptureBegin(made, 2))
        for text in (said, cut):
            ok(lib.aclrtMemsetAsync(block, 64, 2, 64, made))
            ok(lib.aclrtCacheLastTaskOpInfo(b"anything\0", 9))
            ok(lib.aclrtCacheLastTaskExtendInfo(b"replaced", 8))
            ok(lib.aclrtCacheLastTaskExtendInfo(text, len(text)))
        model = value_of("aclmdlRI", lib.aclmdlRICaptureEnd, made)
        assert lib.aclrtCacheLastTaskExtendInfo(said, len(said)) == 107029
        ok(lib.aclmdlRIDebugJsonPrint(model, os.fsencode(path), 0))
        ok(lib.aclmdlRIDestroy(model))
    shown = [event["args"]["Extend Info"] for event in json.loads(path.read_text())]
    assert shown == [said.decode(), "x" * 4095]
