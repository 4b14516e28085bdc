"""Memory, events and notifies of two processes with two devices (cann-runtime-3 2 to 5)."""

import os
import threading

import numpy
import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import Out, device, download, memory, ok, stream, upload
from tests.conformance.ascend.other_process import other_process
from tests.conformance.ascend.test_acl_virtual_memory import PAGE, PIECE, physical, reserved
from tests.conformance.harness import run_python

SIZE = 1 << 20
DEVICES = {"UNDERSTUDY_DEVICES": "2"}


def export_key(address, size: int, flags: int = 0) -> bytes:
    key = ffi.new("char[65]")
    ok(lib.aclrtIpcMemGetExportKey(address, size, key, 65, flags))
    return ffi.string(key)


def import_in(other, key: bytes, flags: int = 0, name: str = "block"):
    """The status there."""
    return other.ask(f"{name} = ffi.new('void **'); status = lib.aclrtIpcMemImportByKey({name}, {key!r}, {flags})") or \
        other.ask("status")


def admit(key: bytes, pid: int) -> None:
    ok(lib.aclrtIpcMemSetImportPid(key, ffi.new("int32_t[1]", [pid]), 1))


@pytest.mark.parametrize("size", [PAGE, SIZE, 3 * SIZE + 1])
@pytest.mark.parametrize("their_device", [0, 1])
def test_what_one_process_writes_the_other_reads(size, their_device):
    pages = -(-size // PAGE) * PAGE if size < 2 * SIZE else 4 * SIZE
    with device(), memory(size) as mine, other_process(their_device, DEVICES) as other:
        upload(mine, b"before the export")
        key = export_key(mine, pages)
        assert len(key) <= 64 and key.decode().isprintable()
        assert import_in(other, key) == 507899  # nobody has named it yet
        admit(key, other.pid)
        assert import_in(other, key) == 0
        assert other.ask("download(block[0], 17)") == b"before the export"
        upload(mine, b"after  the export")
        assert other.ask("download(block[0], 17)") == b"after  the export"
        other.ask("upload(block[0], b'from there')")
        assert download(mine, 10) == b"from there"
        other.ask(f"ok(lib.aclrtMemset(block[0], {size}, 7, {size}))")
        assert download(mine, size) == b"\x07" * size
        # Closing and then freeing, as the vendor's programs do: the second is refused.
        assert other.ask(f"lib.aclrtIpcMemClose({key!r}), lib.aclrtFree(block[0])")[0] == 0
        assert other.ask(f"lib.aclrtIpcMemClose({key!r})") == 507899
        ok(lib.aclrtIpcMemClose(key))
        assert import_in(other, key) == 507899
        assert download(mine, 1) == b"\x07"


def test_kernels_use_memory_of_another_process_where_access_is_enabled():
    fill = "lib.aclrtMemsetAsync(block[0], 64, 5, 64, ffi.NULL) or lib.aclrtSynchronizeStream(ffi.NULL)"
    reduce = "lib.aclrtValueWrite(block[0], 9, 0, ffi.NULL) or lib.aclrtSynchronizeStream(ffi.NULL)"
    with device(), memory(SIZE) as mine, other_process(1, DEVICES) as other:
        key = export_key(mine, SIZE, 1)
        assert import_in(other, key, 1) == 0
        assert (other.ask(fill), other.ask(reduce)) == (0, 0)
        assert download(mine, 8) == b"\x09" + bytes(7)
        # The same memory again is at the same place, and is there until each import is closed.
        assert import_in(other, key, 1, "again") == 0
        assert other.ask("again[0] == block[0]")
        assert other.ask(f"lib.aclrtIpcMemClose({key!r}), lib.aclrtMemset(block[0], 8, 0, 8)") == (0, 0)
        assert other.ask(f"lib.aclrtIpcMemClose({key!r}), lib.aclrtMemset(block[0], 8, 0, 8) != 0") == (0, True)
        assert import_in(other, key, 0) == 0
        assert other.ask(reduce) != 0  # device 1 has no access to device 0's memory


def test_a_process_may_end_at_any_time():
    with device(), memory(SIZE) as mine:
        upload(mine, b"stays")
        key = export_key(mine, SIZE, 1)
        with other_process() as other:
            assert import_in(other, key) == 0
            other.kill()
        assert download(mine, 5) == b"stays"
    with device(), other_process() as other:
        other.ask("from tests.ascend.test_acl_ipc import *; block = ffi.new('void **'); ok(lib.aclrtMalloc(block, SIZE, 0))")
        other.ask("upload(block[0], b'theirs'); key = export_key(block[0], SIZE, 1)")
        key, made = other.ask("key"), Out()
        ok(lib.aclrtIpcMemImportByKey(made.cell, key, 0))
        other.kill()
        assert download(made.value, 6) == b"theirs"
        ok(lib.aclrtIpcMemClose(key))
        assert lib.aclrtIpcMemImportByKey(made.cell, key, 0) == 507899


def test_nothing_is_left_behind():
    files = set(os.listdir("/proc/self/fd"))
    mapped = len(open("/proc/self/maps").readlines())
    for _ in range(50):
        with device(), memory(SIZE) as mine:
            export_key(mine, SIZE, 1)  # taken back with the memory
    assert len(set(os.listdir("/proc/self/fd")) - files) <= 1, "the socket"
    assert len(open("/proc/self/maps").readlines()) < mapped + 50


def test_memory_moves_while_a_kernel_writes_to_it():
    """What is written during the export is not lost."""
    block = 64 * SIZE
    with device(), memory(block) as mine, stream() as busy:
        for value in range(1, 5):
            ok(lib.aclrtMemset(mine, block, 0, block))
            ok(lib.aclrtMemsetAsync(mine, block, value, block, busy))
            key = export_key(mine, block, 1)
            ok(lib.aclrtSynchronizeStream(busy))
            assert (numpy.frombuffer(download(mine, block), numpy.uint8) == value).all()
            ok(lib.aclrtIpcMemClose(key))


def test_exports_and_imports_of_many_threads():
    failures = []

    def share(number: int):
        with device(), memory(SIZE) as mine:
            for turn in range(5):
                upload(mine, b"%03d%03d" % (number, turn))
                key = export_key(mine, SIZE, 1)
                made = Out()
                if lib.aclrtIpcMemImportByKey(made.cell, key, 0) != 507899:  # its own
                    failures.append(number)
                ok(lib.aclrtIpcMemClose(key))

    with device(), other_process() as other:
        other.ask("from tests.ascend.test_acl_ipc import *; block = ffi.new('void **'); ok(lib.aclrtMalloc(block, SIZE, 0))")
        keys = [other.ask("export_key(block[0], SIZE, 1)") for _ in range(4)]

        def take(key):
            ok(lib.aclrtSetDevice(0))
            made = Out()
            for _ in range(20):
                failures.extend(filter(None, [lib.aclrtIpcMemImportByKey(made.cell, key, 0),
                                              lib.aclrtMemset(made.value, 8, 1, 8), lib.aclrtIpcMemClose(key)]))
            ok(lib.aclrtResetDevice(0))

        threads = [threading.Thread(target=share, args=(number,)) for number in range(4)]
        threads += [threading.Thread(target=take, args=(key,)) for key in keys * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_physical_memory_of_two_processes():
    number = ffi.new("uint64_t *")
    with device(), reserved() as first, physical() as mine, other_process(1, DEVICES) as other:
        ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
        upload(first, b"physical")
        ok(lib.aclrtMemExportToShareableHandleV2(mine, 0, 1, number))
        take = "handle = ffi.new('aclrtDrvMemHandle *')", f"number = ffi.new('uint64_t *', {number[0]})"
        for line in take:
            other.ask(line)
        assert other.ask("lib.aclrtMemImportFromShareableHandleV2(number, 1, 0, handle)") == 507899
        ok(lib.aclrtMemSetPidToShareableHandleV2(number, 1, ffi.new("int32_t[1]", [other.pid]), 1))
        assert other.ask("lib.aclrtMemImportFromShareableHandleV2(number, 1, 0, handle)") == 0
        other.ask("from tests.conformance.ascend.test_acl_virtual_memory import PIECE; place = ffi.new('void **')")
        assert other.ask("lib.aclrtReserveMemAddress(place, PIECE, 0, ffi.NULL, 0)") == 0
        assert other.ask("lib.aclrtMapMem(place[0], PIECE, 0, handle[0], 0)") == 0
        assert other.ask("download(place[0], 8)") == b"physical"
        other.ask("upload(place[0], b'answered')")
        assert download(first, 8) == b"answered"
        ok(lib.aclrtUnmapMem(first))


# ---- events and notifies ----

CONSUMER = """
from tests.conformance.ascend.test_acl_ipc_event import event
made = ffi.new("aclrtEvent *"); state = ffi.new("aclrtEventRecordedStatus *"); one = ffi.new("aclrtStream *")
ok(lib.aclrtCreateStream(one))
held = ffi.from_buffer("aclrtIpcEventHandle *", {handle!r})
handle = held[0]  # which does not keep what it lies in
ok(lib.aclrtIpcOpenEventHandle(handle, made))
"""


def shared_event():
    made, handle = Out(), ffi.new("aclrtIpcEventHandle *")
    ok(lib.aclrtCreateEventExWithFlag(made.cell, lib.ACL_EVENT_IPC))
    ok(lib.aclrtIpcGetEventHandle(made.value, handle))
    return made.value, bytes(ffi.buffer(handle))


def new_notify():
    made, key = Out(), ffi.new("char[65]")
    ok(lib.aclrtCreateNotify(made.cell, 0))
    ok(lib.aclrtNotifyGetExportKey(made.value, key, 65, lib.ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION))
    return made.value, ffi.string(key)


@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
def test_events_of_two_processes(mode):
    with device(), stream() as mine, other_process(1, {**DEVICES, "UNDERSTUDY_STREAM": mode}) as other:
        made, handle = shared_event()
        ok(lib.aclrtRecordEvent(made, mine))  # before they have it
        other.ask(CONSUMER.format(handle=handle))
        wait = "lib.aclrtStreamWaitEvent(one[0], made[0]) or lib.aclrtSynchronizeStream(one[0])"
        assert other.ask(wait) == 0
        assert other.ask("lib.aclrtQueryEventStatus(made[0], state), state[0]") == (0, 1)
        # A record that has not run: they wait until it has.
        gate = Out()
        ok(lib.aclrtCreateNotify(gate.cell, 0))
        ok(lib.aclrtWaitAndResetNotify(gate.value, mine, 0))
        ok(lib.aclrtRecordEvent(made, mine))
        assert other.ask("lib.aclrtQueryEventStatus(made[0], state), state[0]") == (0, 0)
        other.begin(wait)
        with stream() as second:
            ok(lib.aclrtRecordNotify(gate.value, second))
            assert other.answer() == 0
        # They record, we wait.
        assert other.ask("lib.aclrtRecordEvent(made[0], one[0])") == 0
        ok(lib.aclrtStreamWaitEvent(mine, made))
        ok(lib.aclrtSynchronizeStream(mine))
        ok(lib.aclrtSynchronizeEvent(made))
        ok(lib.aclrtDestroyEvent(made))
        assert other.ask("lib.aclrtIpcOpenEventHandle(handle, made)") == 507899  # it is gone
        ok(lib.aclrtDestroyNotify(gate.value))


def test_the_record_of_a_killed_process_keeps_nobody_waiting():
    with device(), stream() as mine, other_process(0) as other:
        made, handle = shared_event()
        other.ask(CONSUMER.format(handle=handle))
        other.ask("gate = ffi.new('aclrtNotify *'); ok(lib.aclrtCreateNotify(gate, 0))")
        assert other.ask("lib.aclrtWaitAndResetNotify(gate[0], one[0], 0) or lib.aclrtRecordEvent(made[0], one[0])") == 0
        ok(lib.aclrtStreamWaitEvent(mine, made))
        state = ffi.new("aclrtStreamStatus *")
        ok(lib.aclrtStreamQuery(mine, state))
        assert state[0] == lib.ACL_STREAM_STATUS_NOT_READY
        other.process.kill()  # its parent, this process, has not asked for its status when it waits
        ok(lib.aclrtSynchronizeStream(mine))
        other.kill()
        ok(lib.aclrtDestroyEvent(made))


def test_events_outlive_the_context_they_were_made_in():
    """Events belong to a device; the memory of a context that has ended is used for other things."""
    with device(), other_process(0) as other:
        own, context = Out(), Out()
        ok(lib.aclrtGetCurrentContext(own.cell))
        events = []
        for _ in range(20):
            ok(lib.aclrtCreateContext(context.cell, 0))
            made = Out()
            ok(lib.aclrtCreateEventExWithFlag(made.cell, lib.ACL_EVENT_IPC))
            events.append(made.value)
            ok(lib.aclrtSetCurrentContext(own.value))
            ok(lib.aclrtDestroyContext(context.value))
        handle = ffi.new("aclrtIpcEventHandle *")
        for made in events:
            ok(lib.aclrtIpcGetEventHandle(made, handle))
        other.ask(CONSUMER.format(handle=bytes(ffi.buffer(handle))))
        assert other.ask("lib.aclrtStreamWaitEvent(one[0], made[0]) or lib.aclrtSynchronizeStream(one[0])") == 0
        for made in events:
            ok(lib.aclrtDestroyEvent(made))


@pytest.mark.parametrize("mode", ["async", "deferred"])
def test_notifies_of_two_processes(mode):
    """The maker waits, the others record, each as often as the other."""
    with device(), stream() as mine, other_process(1, {**DEVICES, "UNDERSTUDY_STREAM": mode}) as other:
        there, here = new_notify(), None
        other.ask("from tests.ascend.test_acl_ipc import new_notify; mine, key = new_notify()")
        here = Out()
        ok(lib.aclrtNotifyImportByKey(here.cell, other.ask("key"), 0))
        other.ask(f"theirs = Out(); ok(lib.aclrtNotifyImportByKey(theirs.cell, {there[1]!r}, 2))")
        other.ask("""
def play(turns):
    for _ in range(turns):
        ok(lib.aclrtWaitAndResetNotify(mine, ffi.NULL, 0)); ok(lib.aclrtRecordNotify(theirs.value, ffi.NULL))
    return lib.aclrtSynchronizeStream(ffi.NULL)""")
        other.begin("play(30)")
        for _ in range(30):
            ok(lib.aclrtRecordNotify(here.value, mine))
            ok(lib.aclrtWaitAndResetNotify(there[0], mine, 0))
        ok(lib.aclrtSynchronizeStream(mine))
        assert other.answer() == 0
        ok(lib.aclrtDestroyNotify(here.value))
        other.kill()
        ok(lib.aclrtWaitAndResetNotify(there[0], mine, 1))
        assert lib.aclrtSynchronizeStream(mine) != 0  # nobody records any more
        ok(lib.aclrtDestroyNotify(there[0]))


def test_a_wait_for_a_number_lets_deferred_streams_run():
    source = """
from tests.ascend.test_acl_ipc import *
with device(), memory(8) as cell, stream() as waits, stream() as writes:
    ok(lib.aclrtMemset(cell, 8, 0, 8))
    ok(lib.aclrtValueWait(cell, 7, 1, waits))
    ok(lib.aclrtValueWrite(cell, 7, 0, writes))
    print(lib.aclrtSynchronizeStreamWithTimeout(waits, 20000))
"""
    assert run_python(source, {"UNDERSTUDY_STREAM": "deferred"}).split() == ["0"]
