"""Events and notifies between processes (cann-runtime-3 4 and 5)."""

import functools

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import Out, case, device, no_context, ok, stream
from tests.conformance.ascend.other_process import OtherProcess
from tests.conformance.ascend.test_acl_notify import dead_notify, notify
from tests.conformance.harness import Result, check_rule

TRAINING_SERIES = {"UNDERSTUDY_SOC": "Ascend910"}


def event(flags: int, create=None):
    made = Out()
    ok((create or lib.aclrtCreateEventExWithFlag)(made.cell, flags))
    return made.value


def dead_event():
    made = event(lib.ACL_EVENT_IPC)
    ok(lib.aclrtDestroyEvent(made))
    return made


def with_event(function, flags: int = lib.ACL_EVENT_IPC, create=None):
    def run():
        with device():
            made = event(flags, create)
            result = function(made)
            ok(lib.aclrtDestroyEvent(made))
            return result

    return run


def get_handle(made, null: bool = False):
    handle = Out("aclrtIpcEventHandle")
    return handle.result(lib.aclrtIpcGetEventHandle(made, ffi.NULL if null else handle.cell))


def on_dead_event():
    with device():
        return get_handle(dead_event())


EXPORTER = """
from tests.conformance.ascend.test_acl_ipc_event import event
made = event(lib.ACL_EVENT_IPC); handle = ffi.new("aclrtIpcEventHandle *")
ok(lib.aclrtIpcGetEventHandle(made, handle))
notify = ffi.new("aclrtNotify *"); ok(lib.aclrtCreateNotify(notify, 0))
keys = [ffi.new("char[65]") for _ in range(2)]
other = ffi.new("aclrtNotify *"); ok(lib.aclrtCreateNotify(other, 0))
ok(lib.aclrtNotifyGetExportKey(notify[0], keys[0], 65, 2)); ok(lib.aclrtNotifyGetExportKey(other[0], keys[1], 65, 0))
"""


@functools.cache
def exporter():
    """It ends with the tests."""
    other = OtherProcess()
    other.ask(EXPORTER)
    return other


def their_handle():
    made = ffi.new("aclrtIpcEventHandle *")
    ffi.buffer(made)[:] = exporter().ask("bytes(ffi.buffer(handle))")
    return made[0]


def open_handle(known: bool = True, null: bool = False, context: bool = True):
    handle = their_handle() if known else ffi.new("aclrtIpcEventHandle *")[0]
    with device() if context else no_context():
        made = Out()
        status = lib.aclrtIpcOpenEventHandle(handle, ffi.NULL if null else made.cell)
        result = made.result(status)
        if status == 0:
            ok(lib.aclrtDestroyEvent(made.value))
        return result


def capturing(function):
    """The status of a call while a stream is captured."""
    def run(made):
        graph = Out()
        with stream() as captured:
            ok(lib.aclmdlRICaptureBegin(captured, lib.ACL_MODEL_RI_CAPTURE_MODE_RELAXED))
            status = function(made, captured)
            lib.aclmdlRICaptureEnd(captured, graph.cell)
            return status

    return run


def running(function):
    def run(made):
        with stream() as one:
            return function(made, one)

    return run


IN_CAPTURES = {
    "aclrtRecordEvent": lambda made, on: lib.aclrtRecordEvent(made, on),
    "aclrtRecordEventWithFlag": lambda made, on: lib.aclrtRecordEventWithFlag(made, on, 0),
    "aclrtStreamWaitEvent": lambda made, on: lib.aclrtStreamWaitEvent(on, made),
    "aclrtStreamWaitEventWithTimeout": lambda made, on: lib.aclrtStreamWaitEventWithTimeout(on, made, 1),
    "aclrtStreamWaitEventWithFlag": lambda made, on: lib.aclrtStreamWaitEventWithFlag(on, made, 1, 0),
}


def event_id(made):
    cell = Out("uint32_t")
    return cell.result(lib.aclrtGetEventId(made, cell.cell))


# ---- notifies ----


def export_notify(made=None, length: int = 65, flags: int = 2, null: bool = False):
    with notify() as mine:
        key = ffi.new("char[]", b"Z" * 65)
        status = lib.aclrtNotifyGetExportKey(mine if made is None else made, ffi.NULL if null else key, length, flags)
        return Result(status, ffi.buffer(key)[:] == b"Z" * 65 + b"\0")


def on_imported(function):
    def run():
        with device():
            made = Out()
            ok(lib.aclrtNotifyImportByKey(made.cell, exporter().ask("ffi.string(keys[0])"), 0))
            status = function(made.value)
            ok(lib.aclrtSynchronizeDevice())
            ok(lib.aclrtDestroyNotify(made.value))
            return status

    return run


def admit_to_notify(made=None, exported: bool = True, count: int = 1, pids: bool = True):
    with notify() as mine:
        if exported:
            ok(lib.aclrtNotifyGetExportKey(mine, ffi.new("char[65]"), 65, 0))
        return lib.aclrtNotifySetImportPid(mine if made is None else made,
                                           ffi.new("int32_t[1]", [1]) if pids else ffi.NULL, count)


def import_notify(which: int = 0, key=None, flags: int = 0, null: bool = False, context: bool = True):
    given = exporter().ask(f"ffi.string(keys[{which}])") if key is None else key
    with device() if context else no_context():
        made = Out()
        status = lib.aclrtNotifyImportByKey(ffi.NULL if null else made.cell, given, flags)
        result = made.result(status)
        if status == 0:
            ok(lib.aclrtDestroyNotify(made.value))
        return result


def share(made):
    return lib.aclrtNotifyGetExportKey(made, ffi.new("char[65]"), 65, 0)


def wait_here():
    with notify() as made:
        return lib.aclrtRecordNotify(made, ffi.NULL) or lib.aclrtWaitAndResetNotify(made, ffi.NULL, 1)


RULES = [
    case("aclrtIpcGetEventHandle/event/null", lambda: get_handle(ffi.NULL), with_event(get_handle)),
    case("aclrtIpcGetEventHandle/handle/null", with_event(lambda made: get_handle(made, null=True)),
         with_event(get_handle)),
    case("aclrtIpcGetEventHandle/event/dead", on_dead_event, with_event(get_handle)),
    case("aclrtIpcGetEventHandle/event/kind", with_event(get_handle, lib.ACL_EVENT_SYNC), with_event(get_handle)),
    case("aclrtIpcGetEventHandle/device/unsupported", with_event(get_handle), with_event(lambda made: 0), TRAINING_SERIES),
    case("aclrtIpcOpenEventHandle/event/null", lambda: open_handle(null=True), open_handle),
    case("aclrtIpcOpenEventHandle/handle/unknown", lambda: open_handle(known=False), open_handle),
    case("aclrtIpcOpenEventHandle/context/none", lambda: open_handle(context=False), open_handle),
    case("aclrtIpcOpenEventHandle/device/unsupported", lambda: open_handle(known=False), with_event(lambda made: 0),
         TRAINING_SERIES),
    *[case(f"{name}/event/ipc", with_event(capturing(call)), with_event(running(call)))
      for name, call in IN_CAPTURES.items()],
    case("aclrtGetEventId/event/ipc", with_event(event_id), with_event(event_id, 1, lib.aclrtCreateEventWithFlag)),
    case("aclrtNotifyGetExportKey/notify/null", lambda: export_notify(ffi.NULL), export_notify),
    case("aclrtNotifyGetExportKey/notify/dead", lambda: export_notify(dead_notify()), export_notify),
    case("aclrtNotifyGetExportKey/notify/imported", on_imported(share), export_notify),
    case("aclrtNotifyGetExportKey/key/null", lambda: export_notify(null=True), export_notify),
    case("aclrtNotifyGetExportKey/len/range", lambda: export_notify(length=64), export_notify),
    case("aclrtNotifyGetExportKey/flags/range", lambda: export_notify(flags=1), lambda: export_notify(flags=0)),
    case("aclrtNotifySetImportPid/notify/null", lambda: admit_to_notify(ffi.NULL), admit_to_notify),
    case("aclrtNotifySetImportPid/notify/dead", lambda: admit_to_notify(dead_notify()), admit_to_notify),
    case("aclrtNotifySetImportPid/notify/private", lambda: admit_to_notify(exported=False), admit_to_notify),
    case("aclrtNotifySetImportPid/pid/null", lambda: admit_to_notify(pids=False), admit_to_notify),
    case("aclrtNotifySetImportPid/num/zero", lambda: admit_to_notify(count=0), admit_to_notify),
    case("aclrtNotifyImportByKey/notify/null", lambda: import_notify(null=True), import_notify),
    case("aclrtNotifyImportByKey/key/null", lambda: import_notify(key=ffi.NULL), import_notify),
    case("aclrtNotifyImportByKey/key/unknown", lambda: import_notify(key=b"understudy-notify-1"), import_notify),
    case("aclrtNotifyImportByKey/key/forbidden", lambda: import_notify(1), import_notify),
    case("aclrtNotifyImportByKey/flags/range", lambda: import_notify(flags=1), lambda: import_notify(flags=2)),
    case("aclrtNotifyImportByKey/context/none", lambda: import_notify(context=False), import_notify),
    case("aclrtWaitAndResetNotify/notify/imported",
         on_imported(lambda made: lib.aclrtWaitAndResetNotify(made, ffi.NULL, 1)), wait_here),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
