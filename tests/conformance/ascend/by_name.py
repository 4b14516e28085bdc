"""Operators by name: descriptions, buffers and attributes from NumPy arrays and Python values, and what the outputs hold then."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from types import SimpleNamespace

import numpy
from understudy.ascend import ffi, lib

from tests.conformance.ascend import aclnn_support as support
from tests.conformance.harness import Result
from tests.conformance.verdicts import require_status as ok

TYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int64": 9, "float64": 11, "bool": 12}
POISON = 0x5A


@dataclasses.dataclass(frozen=True)
class Constant:
    """A value that the operator's compiler sees; `placed`: in a buffer of the host, else in the description."""

    values: numpy.ndarray
    placed: bool = False


def constant(*values: int, dtype: str = "int64") -> Constant:
    return Constant(numpy.array(values, dtype))


class Raw(SimpleNamespace):
    """The call's arguments, for who wants to change them."""


def _set(attr, name: bytes, value) -> None:
    if isinstance(value, bool):
        ok(lib.aclopSetAttrBool(attr, name, value))
    elif isinstance(value, int):
        ok(lib.aclopSetAttrInt(attr, name, value))
    elif isinstance(value, float):
        ok(lib.aclopSetAttrFloat(attr, name, value))
    elif isinstance(value, str):
        ok(lib.aclopSetAttrString(attr, name, value.encode()))
    elif any(isinstance(one, float) for one in value):
        ok(lib.aclopSetAttrListFloat(attr, name, len(value), ffi.new("float[]", list(value))))
    else:
        ok(lib.aclopSetAttrListInt(attr, name, len(value), ffi.new("int64_t[]", list(value) or [0])))


@contextlib.contextmanager
def _memory(contents: bytes, on_host: bool = False):
    address = ffi.new("void **")
    size = len(contents) + 1
    ok(lib.aclrtMallocHost(address, size) if on_host else lib.aclrtMalloc(address, size, 0))
    if on_host:
        ffi.memmove(address[0], contents, len(contents))
    else:
        ok(lib.aclrtMemcpy(address[0], size, contents + b"\0", size, 1))
    try:
        yield address[0]
    finally:
        ok(lib.aclrtFreeHost(address[0]) if on_host else lib.aclrtFree(address[0]))


def _described(stack: contextlib.ExitStack, array: numpy.ndarray):
    made = lib.aclCreateTensorDesc(TYPES[array.dtype.name], array.ndim, ffi.new("int64_t[]", list(array.shape) or [0]), 2)
    stack.callback(lib.aclDestroyTensorDesc, made)
    return made


def _buffer(stack: contextlib.ExitStack, address, size: int):
    made = lib.aclCreateDataBuffer(address, size)
    stack.callback(lib.aclDestroyDataBuffer, made)
    return made


def _operand(stack: contextlib.ExitStack, given):
    """Description and buffer; None is an input that is left out."""
    if given is None:
        made = lib.aclCreateTensorDesc(-1, 0, ffi.NULL, -1)
        stack.callback(lib.aclDestroyTensorDesc, made)
        return made, _buffer(stack, ffi.NULL, 0)
    array = numpy.ascontiguousarray(given.values if isinstance(given, Constant) else given)
    desc = _described(stack, array.reshape(numpy.shape(given.values if isinstance(given, Constant) else given)))
    if isinstance(given, Constant) and not given.placed:
        ok(lib.aclSetTensorConst(desc, ffi.from_buffer(array.tobytes() or b"\0"), max(array.nbytes, 1)))
        return desc, _buffer(stack, ffi.NULL, 0)
    on_host = isinstance(given, Constant)
    if on_host:
        ok(lib.aclSetTensorPlaceMent(desc, lib.ACL_MEMTYPE_HOST))
    return desc, _buffer(stack, stack.enter_context(_memory(array.tobytes(), on_host)), array.nbytes)


def call(kind: str, inputs, outputs, attributes=None, *, function: str = "aclopCompileAndExecute",
         change: Callable[[Raw], None] | None = None, in_place: bool = False) -> tuple[Result, list[numpy.ndarray]]:
    """outputs: arrays like those that are made. in_place: the first output is the first input. The status is that of the call
    or, where it was accepted, of the stream afterwards."""
    support.start()
    with contextlib.ExitStack() as stack:
        stream = ffi.new("aclrtStream *")
        ok(lib.aclrtCreateStream(stream))
        stack.callback(lib.aclrtDestroyStream, stream[0])
        attr = lib.aclopCreateAttr()
        stack.callback(lib.aclopDestroyAttr, attr)
        for name, value in (attributes or {}).items():
            _set(attr, name.encode(), value)
        read = [_operand(stack, given) for given in inputs]
        written = [_operand(stack, numpy.frombuffer(bytes([POISON]) * like.nbytes, like.dtype).reshape(like.shape)) for like in outputs]
        if in_place:
            written[0] = read[0]
        raw = Raw(kind=kind.encode(), stream=stream[0], attr=attr, input_count=len(read), output_count=len(written),
                  input_descriptions=ffi.new("aclTensorDesc *[]", [desc for desc, _ in read] or [ffi.NULL]),
                  output_descriptions=ffi.new("aclTensorDesc *[]", [desc for desc, _ in written] or [ffi.NULL]),
                  inputs=ffi.new("aclDataBuffer *[]", [buffer for _, buffer in read] or [ffi.NULL]),
                  outputs=ffi.new("aclDataBuffer *[]", [buffer for _, buffer in written] or [ffi.NULL]))  # fmt: skip
        if change is not None:
            change(raw)
        status = _call(function, raw)
        fault = status or lib.aclrtSynchronizeStream(stream[0])
        found = [_contents(buffer, like) for (_, buffer), like in zip(written, outputs)]
    untouched = all((one.view(numpy.uint8) == POISON).all() for one in found if one.nbytes and one.ndim)
    return Result(fault, untouched), found


def _call(function: str, raw: Raw) -> int:
    tensors = (raw.input_count, raw.input_descriptions, raw.inputs, raw.output_count, raw.output_descriptions, raw.outputs)
    if function == "aclopCompile":
        return lib.aclopCompile(raw.kind, raw.input_count, raw.input_descriptions, raw.output_count, raw.output_descriptions,
                                raw.attr, 0, 0, ffi.NULL)  # fmt: skip
    return getattr(lib, function)(raw.kind, *tensors, raw.attr, 0, 0, ffi.NULL, raw.stream)


def _contents(buffer, like: numpy.ndarray) -> numpy.ndarray:
    host, address = numpy.empty(like.shape, like.dtype), lib.aclGetDataBufferAddr(buffer)
    host.fill(0)
    if host.nbytes and address != ffi.NULL:
        ok(lib.aclrtMemcpy(ffi.from_buffer(host), host.nbytes, address, host.nbytes, 2))
    return host


def results(kind: str, inputs, outputs, attributes=None, **how) -> list[numpy.ndarray]:
    """What the outputs hold; the call succeeds."""
    result, found = call(kind, inputs, outputs, attributes, **how)
    ok(result.status)
    return found
