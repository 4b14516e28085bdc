"""Dumps of operators and failures (cann-runtime-3 16). They are the process's: the cases run alone."""

import ctypes
import os
import tempfile

import pytest
from understudy import paths
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import case, device, host_memory, memory, ok
from tests.conformance.harness import check_rule

ALONE = {"UNDERSTUDY_LOG": "off"}
NULL = ffi.NULL
FAILURES = '{"dump": {"dump_path": "%s", "dump_scene": "aic_err_brief_dump"}}'
LARGEST = b'{"a": "' + b"x" * (10 * 1024 * 1024 - 9) + b'"}'


def dumps():
    """The library beside the runtime's."""
    return ctypes.CDLL(str(paths.STACKS["ascend"].library_path / "libascend_dump.so"))


def files(text, function):
    """Calls with a file of this content in a folder of its own, whose name replaces %s."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "acl.json")
        with open(name, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.replace("%s", folder).encode())
        return function(os.fsencode(name))


def initialise(text):
    return lambda: files(text, lib.aclInit)


def configure(text=None, path=None, begun=True):
    def run():
        ok(lib.aclInit(NULL))
        if begun:
            ok(lib.aclmdlInitDump())
        return files(text, lib.aclmdlSetDump) if path is None else lib.aclmdlSetDump(path)

    return run


def begin(text="{}", repeat=False, init=True):
    def run():
        if init:
            files(text, lambda name: ok(lib.aclInit(name)))
        return lib.aclmdlInitDump() or (lib.aclmdlInitDump() if repeat else 0)

    return run


def end(begun):
    def run():
        ok(lib.aclInit(NULL))
        if begun:
            ok(lib.aclmdlInitDump())
        return lib.aclmdlFinalizeDump()

    return run


CONTENT = '{"dump": {"dump_path": "%s", "dump_list": [], "dump_op_switch": "on"}}'
BROKEN = {
    "dump-switch": CONTENT.replace('"on"', '"maybe"'), "dump-path": '{"dump": {"dump_op_switch": "on"}}',
    "dump-unwritable": CONTENT.replace("%s", "%s/none"), "dump-mode": CONTENT.replace("}}", ', "dump_mode": "x"}}'),
    "dump-scene": '{"dump": {"dump_scene": "x"}}',
}  # fmt: skip


# ---- the other library ----

@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)
def callback(_chunk, _length):
    return 0


def register(function=callback, flag=0):
    return lambda: dumps().acldumpRegCallback(function, flag)


def start(kind=1, path=b"."):
    return lambda: dumps().aclopStartDumpArgs(kind, path)


def start_below_a_file():
    with tempfile.NamedTemporaryFile() as file:
        return dumps().aclopStartDumpArgs(1, os.fsencode(file.name))


def stop(kind=1, started=True):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            if started:
                ok(dumps().aclopStartDumpArgs(1, os.fsencode(folder)))
            return dumps().aclopStopDumpArgs(kind)

    return run


def stop_without_folder():
    from tests.conformance.ascend.test_aclnn_soft_margin_loss import SUBJECT

    with tempfile.TemporaryDirectory() as folder:
        ok(dumps().aclopStartDumpArgs(1, os.fsencode(folder)))
        SUBJECT.result({})
    return dumps().aclopStopDumpArgs(1)


def exception_path(room=4096, path=True, scene=True):
    def run():
        files(FAILURES if scene else "{}", lambda name: ok(lib.aclInit(name)))
        return dumps().acldumpGetExceptionInfoPath(ctypes.create_string_buffer(4096) if path else None,
                                                   ctypes.c_size_t(room))

    return run


def save(name=b"x", scene=True, count=1, host=False, read_only=False, **changes):
    def run():
        def call(configuration):
            ok(lib.aclInit(configuration))
            library = dumps()
            manager = host_memory() if host else memory()
            with device(), manager as block:
                info = ffi.new("acldumpTensorInfo *",
                               {"tensorSize": 64, "addrType": 2,
                                "tensorAddr": ffi.cast("int64_t *", block)})  # fmt: skip
                for field, value in changes.items():
                    setattr(info, field, value)
                address = int(ffi.cast("intptr_t", info))
                if read_only:
                    os.environ["NPU_COLLECT_PATH"] = "/dev/null"
                    ctypes.CDLL(None).setenv(b"NPU_COLLECT_PATH", b"/dev/null", 1)
                return library.acldumpSaveExceptionInfo(name, None, ctypes.c_void_p(address if count >= 0 else 0),
                                                        ctypes.c_size_t(abs(count)))

        return files(FAILURES if scene else "{}", call)

    return run


def alone(rule, refused, accepted):
    def named(function):
        def run():
            return function()

        run.__module__ = __name__
        return run

    return case(rule, named(refused), named(accepted), ALONE)


RULES = [
    *[alone(f"aclInit/configPath/{name}", initialise(text), initialise(CONTENT)) for name, text in BROKEN.items()],
    *[alone(f"aclmdlSetDump/configPath/{name}", configure(text), lambda: files(CONTENT, lib.aclmdlSetDump))
      for name, text in BROKEN.items()],
    alone("aclmdlInitDump/runtime/uninitialised", begin(init=False), begin()),
    alone("aclmdlInitDump/dump/running", begin(FAILURES), lambda: lib.aclFinalize()),
    alone("aclmdlSetDump/dump/idle", configure(CONTENT, begun=False), lambda: lib.aclmdlInitDump()),
    alone("aclmdlFinalizeDump/dump/idle", end(False), lambda: lib.aclmdlInitDump() or lib.aclmdlFinalizeDump()),
    alone("aclmdlSetDump/dumpCfgPath/null", configure(path=NULL), lambda: files(CONTENT, lib.aclmdlSetDump)),
    alone("aclmdlSetDump/configPath/missing", configure(path=b"/no/such/file"), lambda: files(CONTENT, lib.aclmdlSetDump)),
    alone("aclmdlSetDump/configPath/size", configure(b""), lambda: files(LARGEST, lib.aclmdlSetDump)),
    alone("aclmdlSetDump/configPath/json", configure("{"), lambda: files(CONTENT, lib.aclmdlSetDump)),
    alone("acldumpRegCallback/messageCallback/null", register(None), register()),
    alone("acldumpRegCallback/flag/range", register(flag=1), register()),
    alone("aclopStartDumpArgs/dumpType/range", start(2), start()),
    alone("aclopStopDumpArgs/dumpType/range", stop(0), stop()),
    alone("aclopStartDumpArgs/path/null", start(path=None), start()),
    alone("aclopStartDumpArgs/path/unusable", start_below_a_file, start()),
    alone("aclopStopDumpArgs/dumpType/idle", stop(started=False), stop()),
    alone("aclopStopDumpArgs/path/unwritable", stop_without_folder, stop()),
    alone("acldumpGetExceptionInfoPath/path/null", exception_path(path=False), lambda: lib.aclFinalize()),
    alone("acldumpGetExceptionInfoPath/maxLen/range", exception_path(room=8), lambda: lib.aclFinalize()),
    alone("acldumpGetExceptionInfoPath/dump/off", exception_path(scene=False),
          lambda: lib.aclFinalize() or exception_path()()),
    alone("acldumpSaveExceptionInfo/dump/off", save(scene=False), lambda: lib.aclFinalize() or save()()),
    *[alone(f"acldumpSaveExceptionInfo/{rule}", save(**changes), lambda: lib.aclFinalize() or save()())
      for rule, changes in {
          "fileName/null": {"name": None}, "fileName/range": {"name": b"../x"}, "tensors/null": {"count": -1},
          "tensors/address-type": {"addrType": 0}, "tensors/placement": {"placement": 1},
          "tensors/memory": {"host": True}}.items()],
    alone("acldumpSaveExceptionInfo/fileName/unwritable", save(read_only=True), lambda: lib.aclFinalize()),
]  # fmt: skip


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
