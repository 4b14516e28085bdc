"""Memory and events of two processes (maca-runtime 7.5)."""

from understudy import ascend
from understudy.maca import ffi, lib

from tests.conformance.other_process import OtherProcess
from tests.maca import runtime_support as rt

PRELUDE = """
from understudy.maca import ffi, lib
from tests.maca import runtime_support as rt
from tests.maca.test_runtime_ipc import event_handle, event_status, handle_of, memory_handle, memory_of, open_status, opened
"""
SIZE = 6000  # no whole pages
INTERPROCESS = lib.mcEventDisableTiming | lib.mcEventInterprocess
INVALID = lib.mcErrorInvalidValue


def memory_of(text: bytes):
    """Device memory that holds a text."""
    memory = rt.device_memory(SIZE)
    rt.write(memory, text)
    return memory


def tell(handle) -> str:
    """A handle's bytes, as programs send them."""
    return ffi.buffer(ffi.addressof(handle))[:].hex()


def memory_handle(memory) -> str:
    return tell(rt.made("mcIpcMemHandle_t", lib.mcIpcGetMemHandle, memory))


def event_handle(event) -> str:
    return tell(rt.made("mcIpcEventHandle_t", lib.mcIpcGetEventHandle, event))


def handle_of(kind: str, told: str):
    made = ffi.new(f"{kind} *")
    ffi.buffer(made)[:] = bytes.fromhex(told)
    return made[0]


def opened(told: str):
    return rt.made("void *", lib.mcIpcOpenMemHandle, handle_of("mcIpcMemHandle_t", told), 1)


def open_status(told: str) -> int:
    return lib.mcIpcOpenMemHandle(ffi.new("void **"), handle_of("mcIpcMemHandle_t", told), 1)


@rt.needs_a_gate
def test_memory_and_events():
    mine, event = memory_of(b"from here"), rt.event(INTERPROCESS)
    told, told_event = memory_handle(mine), event_handle(event)
    with OtherProcess(PRELUDE) as other:
        other.ask(f"there = opened({told!r})")
        assert other.ask("rt.read(there, 9)") == b"from here"
        other.ask("rt.ok(lib.mcMemset(there, 7, 6000))")
        assert rt.read(mine, SIZE) == b"\x07" * SIZE
        # A second opening gives the same address; each is closed by itself, and work is done before.
        assert other.ask(f"opened({told!r}) == there")
        assert other.ask("lib.mcIpcCloseMemHandle(there), rt.read(there, 1)") == (0, b"\x07")
        assert other.ask("lib.mcFree(there)") == INVALID
        assert other.ask("lib.mcIpcGetMemHandle(ffi.new('mcIpcMemHandle_t *'), there)") == INVALID
        assert other.ask("lib.mcIpcCloseMemHandle(there)") == 0
        assert other.ask("lib.mcIpcCloseMemHandle(there)") == INVALID

        # What one process records, the other waits for.
        other.ask("e = rt.made('mcEvent_t', lib.mcIpcOpenEventHandle, "
                  f"handle_of('mcIpcEventHandle_t', {told_event!r}))")
        stream = rt.stream()
        gate = rt.Gate(stream)
        rt.ok(lib.mcEventRecord(event, stream))
        assert other.ask("lib.mcEventQuery(e)") == lib.mcErrorNotReady
        other.begin("lib.mcEventSynchronize(e)")
        gate.open()
        assert other.answer() == 0
        assert other.ask("lib.mcEventQuery(e)") == 0
        assert other.ask("lib.mcEventElapsedTime(ffi.new('float *'), e, e)") == lib.mcErrorInvalidResourceHandle
        other.ask("rt.ok(lib.mcEventRecord(e, ffi.NULL)); rt.ok(lib.mcEventDestroy(e))")
        rt.ok(lib.mcEventSynchronize(event))

        # Memory that has been freed here is another process's no longer to open.
        rt.ok(lib.mcFree(mine))
        assert other.ask(f"open_status({told!r})") == INVALID

        # Nothing works on a device that has a fault.
        other.ask("rt.break_device()")
        assert other.ask(f"open_status({told!r}), lib.mcIpcCloseMemHandle(there), event_status({told_event!r})") == \
            (lib.mcErrorIllegalAddress,) * 3


def test_what_an_ended_process_has_shared():
    other = OtherProcess(PRELUDE)
    told = other.ask("there = memory_of(b'from there'); handle = memory_handle(there)") or other.ask("handle")
    event = other.ask("e = rt.event(6); shared = event_handle(e)") or other.ask("shared")
    mine = opened(told)
    assert rt.read(mine, 10) == b"from there"
    other.kill()
    other.close()
    assert rt.read(mine, 10) == b"from there"  # as long as one process has it
    rt.write(mine, b"still used")
    assert rt.read(mine, 10) == b"still used"
    assert open_status(told) == 0, "what is open already is opened again"
    for _ in range(2):
        rt.ok(lib.mcIpcCloseMemHandle(mine))
    assert open_status(told) == INVALID
    assert event_status(event) == INVALID


def event_status(told: str) -> int:
    return lib.mcIpcOpenEventHandle(ffi.new("mcEvent_t *"), handle_of("mcIpcEventHandle_t", told))


def test_host_functions_may_not_open_anything():
    stream, found, nothing = rt.stream(), [], "00" * 64
    rt.host_function(stream, lambda: found.extend([open_status(nothing), lib.mcIpcCloseMemHandle(ffi.NULL),
                                                   event_status(nothing)]))
    rt.ok(lib.mcStreamSynchronize(stream))
    assert found == [lib.mcErrorNotPermitted] * 3


def test_places_and_flags():
    handles = handle_of("mcIpcMemHandle_t", "00" * 64), handle_of("mcIpcEventHandle_t", "00" * 64)
    assert lib.mcIpcOpenMemHandle(ffi.NULL, handles[0], 1) == INVALID
    assert lib.mcIpcOpenMemHandle(ffi.new("void **"), handles[0], 0) == INVALID
    assert lib.mcIpcOpenEventHandle(ffi.NULL, handles[1]) == INVALID


def test_a_block_and_an_event_have_one_handle():
    for share, thing, other in ((memory_handle, rt.device_memory(), rt.device_memory()),
                                (event_handle, rt.event(INTERPROCESS), rt.event(INTERPROCESS))):
        assert share(thing) == share(thing) != share(other)


def test_bytes_that_are_no_handle():
    event, memory = event_handle(rt.event(INTERPROCESS)), memory_handle(rt.device_memory())
    for told in ("00" * 64, "ff" * 64, event, memory):  # its own memory a process has already
        assert open_status(told) == INVALID
    for told in ("00" * 64, memory):
        assert event_status(told) == INVALID
    assert lib.mcIpcCloseMemHandle(rt.device_memory()) == INVALID
    assert lib.mcIpcCloseMemHandle(ffi.NULL) == INVALID


def test_an_event_is_not_taken_for_what_had_its_file_before():
    """A root of ranks is offered by a file that is closed then: the next file has its number."""
    ascend.call("aclrtSetDevice", 0)
    ascend.call("HcclGetRootInfo", ascend.ffi.new("HcclRootInfo *"))
    told = event_handle(rt.event(INTERPROCESS))
    with OtherProcess(PRELUDE) as other:
        assert other.ask(f"event_status({told!r})") == 0
