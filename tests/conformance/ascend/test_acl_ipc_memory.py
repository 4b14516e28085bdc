"""Memory between processes: keys (cann-runtime-3 3) and handles of the second version (2)."""

import functools

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import Out, case, device, freed_memory, memory, no_context, ok
from tests.conformance.ascend.other_process import OtherProcess
from tests.conformance.ascend.test_acl_virtual_memory import PAGE, PIECE, freed_handle, offset, physical
from tests.conformance.harness import Result, check_rule, run_python

SIZE = 1 << 20
KEY = 65


def key_of(address, size: int = SIZE, flags: int = 1, length: int = KEY):
    """Status, and the cell that gets the key."""
    cell = ffi.new("char[]", b"Z" * KEY)
    return lib.aclrtIpcMemGetExportKey(address, size, cell, length, flags), cell


def export(size: int = SIZE, flags: int = 1, length: int = KEY, shift: int = 0, block: int = SIZE, address=None, key=True):
    with device(), memory(block) as mine:
        where = offset(mine, shift) if address is None else address
        if not key:
            return lib.aclrtIpcMemGetExportKey(where, size, ffi.NULL, length, flags)
        status, cell = key_of(where, size, flags, length)
        if status == 0:
            ok(lib.aclrtIpcMemClose(cell))
        return Result(status, ffi.buffer(cell)[:] == b"Z" * KEY + b"\0")


def with_key(function):
    def run():
        with device(), memory(SIZE) as mine:
            status, key = key_of(mine)
            ok(status)
            result = function(key)
            if function is not lib.aclrtIpcMemClose:
                ok(lib.aclrtIpcMemClose(key))
            return result

    return run


def admit(key=None, count: int = 1, pids: bool = True):
    pid = ffi.new("int32_t[1]", [1])
    return with_key(lambda known: lib.aclrtIpcMemSetImportPid(known if key is None else key, pid if pids else ffi.NULL,
                                                              count))


EXPORTER = """
block = ffi.new("void **"); key = ffi.new("char[65]")
ok(lib.aclrtMalloc(block, 1 << 20, 0)); ok(lib.aclrtIpcMemGetExportKey(block[0], 1 << 20, key, 65, {flags}))
"""


@functools.cache
def exporter(source: str):
    """A process that has run this; it ends with the tests."""
    other = OtherProcess()
    other.ask(source)
    return other


def import_key(key=None, flags: int = 0, out: bool = True, named: bool = True, context: bool = True):
    """What another process exported; `named`: to everybody."""
    other = exporter(EXPORTER.format(flags=int(named)))
    theirs = ffi.new("char[]", other.ask("ffi.string(key)")) if key is None else key
    made = Out()
    with device() if context else no_context():
        status = lib.aclrtIpcMemImportByKey(made.cell if out else ffi.NULL, theirs, flags)
        if status == 0:
            ok(lib.aclrtIpcMemClose(theirs))
    return made.result(status)


# ---- handles of the second version ----

HANDLE_EXPORTER = """
from tests.conformance.ascend.test_acl_virtual_memory import PIECE, properties
handle = ffi.new("aclrtDrvMemHandle *"); number = ffi.new("uint64_t *")
ok(lib.aclrtMallocPhysical(handle, PIECE, properties(), 0))
ok(lib.aclrtMemExportToShareableHandleV2(handle[0], {flags}, 1, number))
"""


def export_handle(handle=None, flags: int = 0, kind: int = 1, out: bool = True):
    with device(), physical() as mine:
        number = Out("uint64_t")
        return number.result(lib.aclrtMemExportToShareableHandleV2(
            mine if handle is None else handle, flags, kind, number.cell if out else ffi.NULL))


def export_fabric():
    with device(), physical() as mine:
        return lib.aclrtMemExportToShareableHandleV2(mine, 0, 2, ffi.new("aclrtMemFabricHandle *"))


def export_twice():
    with device(), physical() as mine:
        number = Out("uint64_t")
        ok(lib.aclrtMemExportToShareableHandleV2(mine, 0, 1, ffi.new("uint64_t *")))
        return number.result(lib.aclrtMemExportToShareableHandleV2(mine, 0, 1, number.cell))


def exported_here(function):
    def run():
        with device(), physical() as mine:
            number = ffi.new("uint64_t *")
            ok(lib.aclrtMemExportToShareableHandleV2(mine, 0, 1, number))
            return function(number)

    return run


def import_handle(number=None, kind: int = 1, flags: int = 0, out: bool = True, named: bool = True, context: bool = True,
                  first_version: bool = False):
    other = exporter(HANDLE_EXPORTER.format(flags=int(named)))
    theirs = ffi.new("uint64_t *", other.ask("number[0]"))
    made = Out()
    with device() if context else no_context():
        given = theirs if number is None else number
        if first_version:
            status = lib.aclrtMemImportFromShareableHandle(given[0], 0, made.cell)
        else:
            status = lib.aclrtMemImportFromShareableHandleV2(given, kind, flags, made.cell if out else ffi.NULL)
        if status == 0:
            ok(lib.aclrtFreePhysical(made.value))
    return made.result(status)


def import_own(number):
    made = Out()
    return made.result(lib.aclrtMemImportFromShareableHandleV2(number, 1, 0, made.cell))


def admit_handle(number=None, kind: int = 1, count: int = 1, pids: bool = True):
    pid = ffi.new("int32_t[1]", [1])
    return exported_here(lambda known: lib.aclrtMemSetPidToShareableHandleV2(
        known if number is None else number, kind, pid if pids else ffi.NULL, count))


UNKNOWN = ffi.new("uint64_t *", 1 << 60)
NO_KEY = ffi.new("char[]", b"understudy-memory-0000000000000001")
A3 = {"UNDERSTUDY_SOC": "Ascend910_93"}

RULES = [
    case("aclrtIpcMemGetExportKey/devPtr/null", lambda: export(address=ffi.NULL), export),
    case("aclrtIpcMemGetExportKey/key/null", lambda: export(key=False), export),
    case("aclrtIpcMemGetExportKey/size/zero", lambda: export(0), export),
    case("aclrtIpcMemGetExportKey/len/range", lambda: export(length=64), export),
    case("aclrtIpcMemGetExportKey/flags/range", lambda: export(flags=2), lambda: export(flags=0)),
    case("aclrtIpcMemGetExportKey/size/pages", lambda: export(PAGE, block=PIECE), lambda: export(PAGE, shift=PAGE)),
    case("aclrtIpcMemGetExportKey/devPtr/unknown", lambda: export(address=freed_memory_of_a_device()), export),
    case("aclrtIpcMemSetImportPid/key/null", admit(ffi.NULL), admit()),
    case("aclrtIpcMemSetImportPid/pid/null", admit(pids=False), admit()),
    case("aclrtIpcMemSetImportPid/num/zero", admit(count=0), admit()),
    case("aclrtIpcMemSetImportPid/key/unknown", admit(NO_KEY), admit()),
    case("aclrtIpcMemImportByKey/devPtr/null", lambda: import_key(out=False), import_key),
    case("aclrtIpcMemImportByKey/key/null", lambda: import_key(ffi.NULL), import_key),
    case("aclrtIpcMemImportByKey/flags/range", lambda: import_key(flags=2), lambda: import_key(flags=1)),
    case("aclrtIpcMemImportByKey/context/none", lambda: import_key(context=False), import_key),
    case("aclrtIpcMemImportByKey/key/unknown", lambda: import_key(NO_KEY), import_key),
    case("aclrtIpcMemImportByKey/key/forbidden", lambda: import_key(named=False), import_key),
    case("aclrtIpcMemClose/key/null", with_key(lambda key: lib.aclrtIpcMemClose(ffi.NULL)),
         with_key(lib.aclrtIpcMemClose)),
    case("aclrtIpcMemClose/key/unknown", with_key(lambda key: lib.aclrtIpcMemClose(NO_KEY)),
         with_key(lib.aclrtIpcMemClose)),
    case("aclrtMemExportToShareableHandleV2/handle/null", lambda: export_handle(ffi.NULL), export_handle),
    case("aclrtMemExportToShareableHandleV2/handle/dead", lambda: export_handle(freed_handle_of_a_device()), export_handle),
    case("aclrtMemExportToShareableHandleV2/handle/exported", export_twice, export_handle),
    case("aclrtMemExportToShareableHandleV2/shareableHandle/null", lambda: export_handle(out=False), export_handle),
    case("aclrtMemExportToShareableHandleV2/flags/range", lambda: export_handle(flags=2), lambda: export_handle(flags=1)),
    case("aclrtMemExportToShareableHandleV2/shareType/range", lambda: export_handle(kind=3), export_handle),
    case("aclrtMemExportToShareableHandleV2/shareType/unsupported", export_fabric, export_handle),
    case("aclrtMemImportFromShareableHandleV2/handle/null", lambda: import_handle(out=False), import_handle),
    case("aclrtMemImportFromShareableHandleV2/shareableHandle/null", lambda: import_handle(ffi.NULL), import_handle),
    case("aclrtMemImportFromShareableHandleV2/shareableHandle/unknown", lambda: import_handle(UNKNOWN), import_handle),
    case("aclrtMemImportFromShareableHandleV2/shareableHandle/own", exported_here(import_own), import_handle),
    case("aclrtMemImportFromShareableHandleV2/shareableHandle/forbidden", lambda: import_handle(named=False),
         import_handle),
    case("aclrtMemImportFromShareableHandleV2/shareType/range", lambda: import_handle(kind=0), import_handle),
    case("aclrtMemImportFromShareableHandleV2/shareType/unsupported", lambda: import_handle(kind=2), import_handle),
    case("aclrtMemImportFromShareableHandleV2/flags/range", lambda: import_handle(flags=1), import_handle),
    case("aclrtMemImportFromShareableHandleV2/context/none", lambda: import_handle(context=False), import_handle),
    case("aclrtMemImportFromShareableHandle/shareableHandle/forbidden",
         lambda: import_handle(named=False, first_version=True), lambda: import_handle(first_version=True)),
    case("aclrtMemSetPidToShareableHandleV2/shareableHandle/null", admit_handle(ffi.NULL), admit_handle()),
    case("aclrtMemSetPidToShareableHandleV2/shareableHandle/unknown", admit_handle(UNKNOWN), admit_handle()),
    case("aclrtMemSetPidToShareableHandleV2/shareType/range", admit_handle(kind=0), admit_handle()),
    case("aclrtMemSetPidToShareableHandleV2/shareType/unsupported", admit_handle(kind=2), admit_handle()),
    case("aclrtMemSetPidToShareableHandleV2/pid/null", admit_handle(pids=False), admit_handle()),
    case("aclrtMemSetPidToShareableHandleV2/pidNum/zero", admit_handle(count=0), admit_handle()),
]


def freed_memory_of_a_device():
    with device():
        return freed_memory(SIZE)


def freed_handle_of_a_device():
    with device():
        return freed_handle()


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)


def test_handles_for_other_servers_exist_on_one_product():
    source = "from tests.conformance.ascend.test_acl_ipc_memory import *\nprint(export_fabric())"
    assert run_python(source, A3).split() == ["0"]
