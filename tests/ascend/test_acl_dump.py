"""Dumps: an operator's tensors in files, for a callback, its types and shapes, and tensors of failures (cann-runtime-3 16)."""

import json

import numpy

from tests.conformance.harness import run_python

START = """
import ctypes, os, numpy
from understudy import paths
from understudy.ascend import ffi, lib
from tests.ascend.calling import call, tensor, empty
from tests.conformance.ascend.acl_support import ok, device, memory, upload
dumps = ctypes.CDLL(str(paths.STACKS["ascend"].library_path / "libascend_dump.so"))
dumps.acldumpGetPath.restype = ctypes.c_char_p
empty((1,)); ok(lib.aclFinalize())  # what the tests share initialises once
values = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
def add(layout="row-major"):
    return call("Add", self=tensor(values, layout=layout), other=tensor(10 * values), alpha=1, out=empty((2, 3)))
"""


def run(folder, source, dump, **environment):
    configuration = folder / "acl.json"
    configuration.write_text(json.dumps({"dump": {"dump_path": str(folder), **dump}}))
    return run_python(START + source.replace("CONFIGURATION", repr(str(configuration).encode())), environment).split("\n")


DATA = {"dump_list": [], "dump_op_switch": "on", "dump_data": "tensor"}
VALUES = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)


def test_tensors_of_operators_are_files_that_numpy_reads(tmp_path):
    out = run(tmp_path, """
ok(lib.aclInit(CONFIGURATION))
print(dumps.acldumpGetPath(4), dumps.acldumpGetPath(1))
add(); add("gaps")
ok(lib.aclFinalize())
print(dumps.acldumpGetPath(4))
add()
""", {**DATA, "dump_mode": "all"})
    assert out[:2] == [f"{str(tmp_path).encode() + b'/'} None", "None"]
    found = {file.name: numpy.load(file) for file in (tmp_path / "0").iterdir()}
    for number in range(2):
        for name, expected in (("input.0", VALUES), ("input.1", 10 * VALUES), ("output.0", 11 * VALUES)):
            read = found.pop(f"aclnnAdd.{number}.{name}.npy")
            assert read.dtype == numpy.float32 and (read == expected).all()
    assert not found


def test_what_is_updated_is_an_input_and_an_output(tmp_path):
    run(tmp_path, f"""
ok(lib.aclInit(CONFIGURATION))
ok(dumps.aclopStartDumpArgs(1, {str(tmp_path / "a").encode()!r}))
call("InplaceAdd", selfRef=tensor(values), other=tensor(10 * values), alpha=1)
ok(dumps.aclopStopDumpArgs(1)); ok(lib.aclFinalize())
""", {**DATA, "dump_mode": "all"})
    found = {file.name: numpy.load(file) for file in (tmp_path / "0").iterdir()}
    for name, expected in (("input.0", VALUES), ("input.1", 10 * VALUES), ("output.0", 11 * VALUES)):
        assert (found.pop(f"aclnnInplaceAdd.0.{name}.npy") == expected).all()
    assert not found
    written = json.loads((tmp_path / "a" / "aclnnInplaceAdd.0.json").read_text())
    assert [(t["name"], t["kind"]) for t in written["tensors"]] == [
        ("selfRef", "input"), ("other", "input"), ("selfRef", "output")]  # fmt: skip


def test_a_callback_gets_the_data_instead(tmp_path):
    out = run(tmp_path, """
ok(lib.aclInit(ffi.NULL)); ok(lib.aclmdlInitDump()); ok(lib.aclmdlSetDump(CONFIGURATION))
parts, ends = {}, []
@ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32)
def take(address, length):
    chunk = ffi.cast("acldumpChunk *", address)
    assert length == 4120 + chunk.bufLen and chunk.offset == -1 and chunk.flag == 0
    name = os.path.basename(ffi.string(chunk.fileName)).decode()
    parts[name] = parts.get(name, b"") + bytes(ffi.buffer(ffi.cast("char *", address) + 4116, chunk.bufLen))
    ends.append(chunk.isLastChunk)
    return 0
ok(dumps.acldumpRegCallback(take, 0))
add()
dumps.acldumpUnregCallback(); ok(lib.aclmdlFinalizeDump())
add()
import io
print({name: numpy.load(io.BytesIO(data)).tolist() for name, data in parts.items()}, ends)
""", DATA)
    assert out[0] == f"{ {'aclnnAdd.0.output.0.npy': (11 * VALUES).tolist()} } [1]"
    assert not (tmp_path / "0").exists()


def test_types_and_shapes_of_calls_are_written_once(tmp_path):
    run(tmp_path, f"""
ok(dumps.aclopStartDumpArgs(1, {str(tmp_path / "a" / "b").encode()!r}))
add(); add()
ok(dumps.aclopStopDumpArgs(1))
add()
""", {})
    (file,) = (tmp_path / "a" / "b").iterdir()
    written = json.loads(file.read_text())
    assert file.name == "aclnnAdd.0.json" and written["operator"] == "aclnnAdd"
    assert [(t["name"], t["kind"], t["type"], t["shape"]) for t in written["tensors"]] == [
        ("self", "input", "ACL_FLOAT", [2, 3]), ("other", "input", "ACL_FLOAT", [2, 3]),
        ("out", "output", "ACL_FLOAT", [2, 3])]  # fmt: skip


def test_tensors_of_a_failure_are_saved(tmp_path):
    out = run(tmp_path, """
ok(lib.aclInit(CONFIGURATION))
path = ctypes.create_string_buffer(4096)
with device(), memory(8) as block:
    ok(dumps.acldumpGetExceptionInfoPath(path, ctypes.c_size_t(4096)))
    upload(block, b"12345678")
    info = ffi.new("acldumpTensorInfo[2]", [{"tensorSize": 8, "addrType": 2, "tensorAddr": ffi.cast("int64_t *", block)}] * 2)
    ok(dumps.acldumpSaveExceptionInfo(b"deep/er", b"tag", ctypes.c_void_p(int(ffi.cast("intptr_t", info))), ctypes.c_size_t(2)))
print(path.value.decode(), dumps.acldumpGetPath(1) is not None, dumps.acldumpGetPath(4))
""", {"dump_scene": "aic_err_brief_dump"})
    folder = tmp_path / "extra-info" / "data-dump" / "0"
    assert out[0] == f"{folder}/ True None"
    (file,) = (folder / "deep").iterdir()
    assert file.name.startswith("er.custom.") and file.read_bytes() == b"12345678" * 2
