"""Devices, contexts and streams of processes and threads (cann-runtime 7 and 8)."""

import threading

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    Out, context, device, download, foreign_stream, in_thread, memory, no_context, ok, stream,
)
from tests.conformance.harness import run_python

NO_CONTEXT = 107002


def current_context():
    cell = ffi.new("aclrtContext *")
    status = lib.aclrtGetCurrentContext(cell)
    return cell[0] if status == 0 else status


def test_a_new_thread_has_no_device():
    with device():
        assert in_thread(current_context) == NO_CONTEXT
        assert in_thread(lib.aclrtSynchronizeStream, ffi.NULL) == NO_CONTEXT


def test_threads_of_one_device_share_its_default_context():
    def other():
        with device():
            return current_context()

    with device():
        assert in_thread(other) == current_context()


def test_the_device_stays_until_it_is_reset_as_often_as_it_was_set():
    source = """
from understudy.ascend import ffi, lib
cell = ffi.new("aclrtContext *")
print([lib.aclrtSetDevice(0) for _ in range(3)], [lib.aclrtResetDevice(0) for _ in range(2)],
      lib.aclrtGetCurrentContext(cell), lib.aclrtResetDevice(0), lib.aclrtGetCurrentContext(cell),
      lib.aclrtResetDevice(0), lib.aclrtSetDevice(0), lib.aclrtGetCurrentContext(cell))
"""
    assert run_python(source, {}).strip() == "[0, 0, 0] [0, 0] 0 0 107002 507007 0 0"


def test_the_last_reset_frees_the_memory_of_the_device():
    source = """
from understudy.ascend import ffi, lib
cell, free, total = ffi.new("void **"), ffi.new("size_t *"), ffi.new("size_t *")
assert lib.aclrtSetDevice(0) == 0 and lib.aclrtMalloc(cell, 1 << 20, 0) == 0
assert lib.aclrtResetDevice(0) == 0 and lib.aclrtSetDevice(0) == 0
assert lib.aclrtGetMemInfo(lib.ACL_HBM_MEM, free, total) == 0
print(free[0] == total[0], lib.aclrtFree(cell[0]))
"""
    assert run_python(source, {}).split() == ["True", "107000"]


def test_a_created_context_is_current_and_its_end_brings_the_default_one_back():
    with device():
        default = current_context()
        with context() as made:
            assert current_context() == made != default
        assert current_context() == default


def test_set_device_drops_an_explicit_context():
    with device(), context() as made:
        ok(lib.aclrtSetDevice(0))
        assert current_context() != made
        ok(lib.aclrtResetDevice(0))


def test_a_context_destroyed_by_another_thread_is_no_longer_current():
    with device():
        default, made = current_context(), Out()
        ok(lib.aclrtCreateContext(made.cell, 0))
        ok(in_thread(lib.aclrtDestroyContext, made.value))
        assert current_context() == NO_CONTEXT
        assert lib.aclrtDestroyContext(made.value) == NO_CONTEXT
        ok(lib.aclrtSetCurrentContext(default))
        assert current_context() == default


def test_contexts_have_their_own_default_streams():
    def default_stream():
        cell = Out()
        ok(lib.aclrtCtxGetCurrentDefaultStream(cell.cell))
        return cell.value

    with device():
        first = default_stream()
        with context():
            assert default_stream() != first


def test_a_destroyed_context_takes_its_streams_along():
    with device():
        with context():
            made = Out()
            ok(lib.aclrtCreateStream(made.cell))
        assert lib.aclrtSynchronizeStream(made.value) == 107017


RESET = """
import threading, time
from understudy.ascend import ffi, lib
from tests.conformance.ascend.acl_support import Out, ok, pointer
ran = []
@ffi.callback("void(void *)")
def note(argument):
    ran.append(threading.get_ident())
ok(lib.aclrtSetDevice(0)); ok(lib.aclrtSetDevice(0))
block, host, stream, other, event, explicit = Out(), Out(), Out(), Out(), Out(), Out()
ok(lib.aclrtCreateStream(stream.cell)); ok(lib.aclrtCreateStream(other.cell))
ok(lib.aclrtMalloc(block.cell, 64, 0)); ok(lib.aclrtMallocHost(host.cell, 64))
ffi.memmove(host.value, bytes([1] * 64), 64)
ok(lib.aclrtCreateEventWithFlag(event.cell, 1))
"""


def test_a_forced_reset_drops_queued_work_whatever_it_waits_for():
    source = RESET + """
ok(lib.aclrtStreamWaitEvent(stream.value, event.value))  # nobody will record it
ok(lib.aclrtMemcpyAsync(host.value, 64, block.value, 64, 2, stream.value))
ok(lib.aclrtLaunchHostFunc(stream.value, note, ffi.NULL))
ok(lib.aclrtSubscribeReport(7, other.value))  # nobody processes its reports
ok(lib.aclrtLaunchCallback(note, ffi.NULL, lib.ACL_CALLBACK_BLOCK, other.value))
ok(lib.aclrtMemcpyAsync(host.value, 64, block.value, 64, 2, other.value))
ok(lib.aclrtCreateContext(explicit.cell, 0))
third = Out(); ok(lib.aclrtCreateStream(third.cell))
ok(lib.aclrtStreamWaitEvent(third.value, event.value))
ok(lib.aclrtResetDeviceForce(0))  # whatever the count is
print(ran, set(bytes(ffi.buffer(host.value, 64))), lib.aclrtResetDevice(0))
print([lib.aclrtSynchronizeStream(each.value) for each in (stream, other, third)])
ok(lib.aclrtSetDevice(0))
print([lib.aclrtSynchronizeStream(each.value) for each in (stream, other, third)], lib.aclrtFree(block.value))
ok(lib.aclrtSynchronizeStream(ffi.NULL))
ok(lib.aclrtDestroyEvent(event.value)); ok(lib.aclrtFreeHost(host.value))
"""
    for mode in ("async", "deferred"):
        assert run_python(source, {"UNDERSTUDY_STREAM": mode}).split("\n")[:-1] == [
            "[] {1} 507007", "[107002, 107002, 107002]", "[107017, 107017, 107017] 107000"]  # fmt: skip


def test_the_last_ordinary_reset_waits_for_queued_work():
    source = RESET + """
for _ in range(2):
    ok(lib.aclrtMemsetAsync(block.value, 64, 3, 64, stream.value))
    ok(lib.aclrtMemcpyAsync(host.value, 64, block.value, 64, 2, stream.value))
    ok(lib.aclrtLaunchHostFunc(stream.value, note, ffi.NULL))
    ok(lib.aclrtResetDevice(0))
    print(lib.aclrtSynchronizeStream(stream.value), set(bytes(ffi.buffer(host.value, 64))), len(ran))
    if lib.aclrtSynchronizeStream(stream.value):
        break
print(len(ran) == 2 and threading.get_ident() not in ran)
"""
    for mode in ("async", "deferred"):
        assert run_python(source, {"UNDERSTUDY_STREAM": mode}).split("\n")[:-1] == [
            "0 {3} 1", "107002 {3} 2", "True"]  # fmt: skip


def test_null_stream_is_the_default_stream():
    with device(), memory(64) as block:
        ok(lib.aclrtMemsetAsync(block, 64, 3, 64, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        assert download(block, 64) == bytes([3] * 64)


def test_a_stream_of_another_context_can_be_waited_for_but_not_used():
    with foreign_stream() as other, memory(64) as block:
        assert lib.aclrtMemsetAsync(block, 64, 3, 64, other) == 107003
        assert lib.aclrtSynchronizeStream(other) == 0


@pytest.mark.parametrize("value", [1, 8, 0x1000, 2**63, 2**64 - 16])
def test_made_up_handles(value):
    handle = ffi.cast("void *", value)
    with device():
        assert lib.aclrtSynchronizeStream(handle) == 107017
        assert lib.aclrtDestroyStream(handle) == 107017
        assert lib.aclrtDestroyContext(handle) == NO_CONTEXT
        assert lib.aclrtSetCurrentContext(handle) == 107000


def test_a_handle_of_another_kind_is_not_accepted():
    with device(), stream() as made:
        assert lib.aclrtDestroyContext(made) == NO_CONTEXT
        assert lib.aclrtDestroyStream(current_context()) == 107017


def test_without_a_context_nothing_is_implicit():
    with no_context():
        cell = Out()
        assert lib.aclrtMalloc(cell.cell, 64, 0) == NO_CONTEXT
        assert lib.aclrtMallocHost(cell.cell, 64) == NO_CONTEXT
        assert lib.aclrtCreateStream(cell.cell) == NO_CONTEXT


def test_many_threads_set_and_reset():
    failures = []

    def work():
        for _ in range(100):
            if lib.aclrtSetDevice(0) or lib.aclrtSynchronizeStream(ffi.NULL) or lib.aclrtResetDevice(0):
                failures.append(lib.aclrtPeekAtLastError(0))

    with device():  # held here, so that no thread takes the device away from another
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


TWO_DEVICES = """
from understudy.ascend import ffi, lib
def ok(status): assert status == 0, status
def block(): cell = ffi.new("void **"); ok(lib.aclrtMalloc(cell, 64, 0)); return cell[0]
ok(lib.aclrtSetDevice(1)); far = block(); far_stream = ffi.new("void **"); ok(lib.aclrtCreateStream(far_stream))
ok(lib.aclrtSetDevice(0)); near = block()
number = ffi.new("int32_t *"); ok(lib.aclrtGetDevice(number)); print(number[0])
count = ffi.new("uint32_t *"); ok(lib.aclrtGetDeviceCount(count)); print(count[0])
ok(lib.aclrtMemset(far, 64, 7, 64)); ok(lib.aclrtMemcpy(near, 64, far, 64, lib.ACL_MEMCPY_DEVICE_TO_DEVICE))
back = ffi.new("unsigned char[64]"); ok(lib.aclrtMemcpy(back, 64, near, 64, lib.ACL_MEMCPY_DEVICE_TO_HOST))
print(set(back))
print(lib.aclrtMemsetAsync(near, 64, 1, 64, far_stream[0]), lib.aclrtSynchronizeStream(far_stream[0]))
ok(lib.aclrtFree(far)); ok(lib.aclrtResetDevice(1)); ok(lib.aclrtGetDevice(number)); print(number[0])
print(lib.aclrtSetDevice(2))
"""


def test_two_devices():
    assert run_python(TWO_DEVICES, {"UNDERSTUDY_DEVICES": "2"}).split("\n")[:-1] == [
        "0", "2", "{7}", "107003 0", "0", "107001"]  # fmt: skip


MODES = """
from understudy.ascend import ffi, lib
def ok(status): assert status == 0, status
ok(lib.aclrtSetDevice(0))
cells = [ffi.new("void **") for _ in range(3)]
first, second, stream = cells
ok(lib.aclrtMallocHost(first, 64)); ok(lib.aclrtMallocHost(second, 64)); ok(lib.aclrtCreateStream(stream))
ffi.memmove(first[0], bytes(64), 64)
ok(lib.aclrtMemsetAsync(first[0], 64, 9, 64, stream[0]))
ok(lib.aclrtMemcpyAsync(second[0], 64, first[0], 64, lib.ACL_MEMCPY_DEFAULT, stream[0]))
print(ffi.buffer(first[0], 1)[0] == b"\\x09" if %r != "async" else "any")
ok(lib.aclrtSynchronizeStream(stream[0]))
print(set(bytes(ffi.buffer(second[0], 64))))
ok(lib.aclrtDestroyStream(stream[0]))
"""


@pytest.mark.parametrize("mode, visible", [("async", "any"), ("inline", "True"), ("deferred", "False")])
def test_when_queued_work_becomes_visible(mode, visible):
    assert run_python(MODES % mode, {"UNDERSTUDY_STREAM": mode}).split() == [visible, "{9}"]
