"""Locking a process, saving the memory of its devices, putting it back (cann-runtime-3 18)."""

import contextlib
import threading
import time

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import device, download, in_thread, memory, ok, stream, upload
from tests.conformance.ascend.test_acl_model import NULL, Scene
from tests.conformance.ascend.test_acl_snapshot import step
from tests.conformance.ascend.test_acl_virtual_memory import PIECE, physical, reserved

PAGE = 2 << 20


@pytest.fixture(autouse=True)
def device_0():
    with device():
        yield


@contextlib.contextmanager
def locked():
    ok(step("Lock"))
    try:
        yield
    finally:
        ok(step("Unlock"))


def test_what_was_saved_comes_back():
    with memory(PAGE + 64) as block, memory() as other:
        ok(lib.aclrtMemset(block, PAGE + 64, 0, PAGE + 64))
        upload(block, b"first")
        upload(ffi.cast("char *", block) + PAGE, b"last")
        upload(other, b"other")
        with locked():
            ok(step("Backup"))
            ok(lib.aclrtMemset(block, PAGE + 64, 7, PAGE + 64))
            upload(other, b"OTHER")
            ok(step("Restore"))
            assert download(block, 6) == b"first\0"
            assert download(ffi.cast("char *", block) + PAGE - 1, 6) == b"\0last\0"
            upload(block, b"FIRST")
            ok(step("Backup"))
            upload(block, b"third")
        assert download(block, 5) == b"third" and download(other, 5) == b"other"  # unlocked, not restored


def test_mapped_memory_too():
    with reserved() as first, physical() as mine:
        ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
        upload(first, b"mapped")
        with locked():
            ok(step("Backup"))
            upload(first, b"######")
            ok(step("Restore"))
        assert download(first, 6) == b"mapped"
        ok(lib.aclrtUnmapMem(first))


def test_memory_that_ended_meanwhile_is_left_alone():
    with memory() as kept:
        upload(kept, b"kept")
        with locked():
            with memory():
                ok(step("Backup"))
            with memory() as later:
                upload(later, b"later")
                upload(kept, b"####")
                ok(step("Restore"))
                assert download(later, 5) == b"later"
        assert download(kept, 4) == b"kept"


def test_queued_work_is_over_when_the_process_is_locked():
    with memory() as block, stream() as queue:
        ok(lib.aclrtMemsetAsync(block, 64, 9, 64, queue))
        with locked():
            status = ffi.new("aclrtStreamStatus *", 1)
            ok(lib.aclrtStreamQuery(queue, status))
            assert status[0] == lib.ACL_STREAM_STATUS_COMPLETE


def test_calls_of_other_threads_wait_until_the_process_is_unlocked():
    began, over = threading.Event(), threading.Event()

    def count():
        began.set()
        ok(lib.aclrtGetDeviceCount(ffi.new("uint32_t *")))
        over.set()

    with locked():
        thread = threading.Thread(target=count)
        thread.start()
        began.wait()
        ok(lib.aclrtGetDeviceCount(ffi.new("uint32_t *")))  # this thread goes on
        assert not over.wait(0.02)
        assert in_thread(step, "Lock") == 507906  # a step of another thread is no such call
    thread.join()
    assert over.is_set()


def test_any_thread_unlocks():
    ok(step("Lock"))
    ok(in_thread(step, "Unlock"))
    assert step("Unlock") == 507907


def test_host_functions_that_call_the_runtime_come_to_their_end():
    seen = []

    @ffi.callback("void(void *)")
    def call(_):
        seen.append(lib.aclrtGetDeviceCount(ffi.new("uint32_t *")))
        seen.append(lib.aclrtGetDeviceCount(ffi.new("uint32_t *")))

    with contextlib.ExitStack() as stack:
        queue = Scene(stack).stream()
        ok(lib.aclrtLaunchHostFunc(queue, call, NULL))
        with locked():
            assert seen == [0, 0]


def test_callbacks_on_a_thread_of_the_program_come_to_their_end():
    seen, stopping = [], threading.Event()

    def serve():
        while not stopping.is_set():
            lib.aclrtProcessReport(20)

    @ffi.callback("void(void *)")
    def take_time(_):
        time.sleep(0.05)  # the process is being locked

    @ffi.callback("void(void *)")
    def call(_):
        seen.append(lib.aclrtGetDeviceCount(ffi.new("uint32_t *")))

    thread = threading.Thread(target=serve)
    with contextlib.ExitStack() as stack:
        busy, served = (Scene(stack).stream() for _ in range(2))
        event = Scene(stack).event()
        thread.start()
        ok(lib.aclrtSubscribeReport(thread.ident, served))
        ok(lib.aclrtLaunchHostFunc(busy, take_time, NULL))
        ok(lib.aclrtRecordEvent(event, busy))
        ok(lib.aclrtStreamWaitEvent(served, event))
        ok(lib.aclrtLaunchCallback(call, NULL, lib.ACL_CALLBACK_BLOCK, served))
        with locked():
            assert seen == [0]
        stopping.set()
        thread.join()
        ok(lib.aclrtUnSubscribeReport(thread.ident, served))


def test_callbacks_at_every_stage_and_what_they_may_not_do():
    seen = []

    @ffi.callback("aclrtSnapShotCallBack")
    def note(number, stage):
        seen.append((number, int(ffi.cast("intptr_t", stage)), step("Unlock")))
        return 0

    for stage in range(6):
        ok(lib.aclrtSnapShotCallbackRegister(stage, note, ffi.cast("void *", stage)))
    for name in ("Lock", "Backup", "Restore", "Unlock"):
        ok(step(name))
    assert seen == [(0, stage, 507907) for stage in range(6)]
    for stage in range(6):
        ok(lib.aclrtSnapShotCallbackUnregister(stage, note))


def test_a_failing_callback_stops_the_step():
    calls = []

    @ffi.callback("aclrtSnapShotCallBack")
    def fail(_number, _arguments):
        calls.append("fail")
        return 3

    ok(lib.aclrtSnapShotCallbackRegister(lib.ACL_RT_SNAPSHOT_BACKUP_PRE, fail, NULL))
    with locked():
        assert step("Backup") == 507912
        assert step("Restore") == 507909
        ok(lib.aclrtSnapShotCallbackUnregister(lib.ACL_RT_SNAPSHOT_BACKUP_PRE, fail))
        ok(step("Backup"))
    assert calls == ["fail"]
