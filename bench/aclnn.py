"""What the rows of Ascend operators share."""

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import numpy
from cases import DTYPES, Case, peer

from understudy import ascend
from understudy.ascend.runtime import Operation

TYPES = {**DTYPES, "int32": numpy.int32, "int8": numpy.int8, "bool": numpy.bool_}
ELEMENTS = 16 << 20


def values(dtype: str, shape: tuple[int, ...], seed: int) -> numpy.ndarray:
    return numpy.random.default_rng(seed).uniform(-4, 4, shape).astype(numpy.float32).astype(TYPES[dtype])


def whole(op: Operation, number: int):
    scalar = ascend.lib.aclCreateScalar(ascend.ffi.new("int64_t *", number), ascend.lib.ACL_INT64)
    op.callback(ascend.lib.aclDestroyScalar, scalar)
    return scalar


def one(op: Operation):
    return whole(op, 1)


def axes_array(op: Operation, axes: list[int]):
    made = ascend.lib.aclCreateIntArray(ascend.ffi.new("int64_t[]", axes), len(axes))
    op.callback(ascend.lib.aclDestroyIntArray, made)
    return made


def dtype_code(x) -> int:
    names = {"float32": "ACL_FLOAT", "float16": "ACL_FLOAT16", "int32": "ACL_INT32", "int8": "ACL_INT8", "bool": "ACL_BOOL"}
    return getattr(ascend.lib, names[numpy.dtype(x.dtype).name])


def two_phases(op: Operation, name: str, arguments: list) -> Callable[[], None]:
    """Both phases and the wait, with a workspace that is there already."""
    ffi, lib = ascend.ffi, ascend.lib
    size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
    first, second = getattr(lib, f"{name}GetWorkspaceSize"), getattr(lib, name)
    wait, stream = lib.aclrtSynchronizeStream, op.stream
    ascend.call(f"{name}GetWorkspaceSize", *arguments, size, executor)
    lib.aclDestroyAclOpExecutor(executor[0])
    workspace = ffi.cast("void *", op.memory(size[0]).address)

    def run():
        first(*arguments, size, executor)
        second(workspace, size[0], executor[0], stream)
        wait(stream)

    return run


def running(op: Operation, name: str, arguments: list):
    """Both phases and the wait."""
    op.run(name, *arguments)  # fails loudly, once
    return two_phases(op, name, arguments)


class Out(NamedTuple):
    """A tensor that is written."""

    shape: tuple[int, ...]
    dtype: object

    @property
    def nbytes(self) -> int:
        return int(numpy.prod(self.shape)) * numpy.dtype(self.dtype).itemsize


def _array(op: Operation, numbers: list):
    if isinstance(numbers[0], int):
        return axes_array(op, numbers)
    made = ascend.lib.aclCreateFloatArray(ascend.ffi.new("float[]", numbers), len(numbers))
    op.callback(ascend.lib.aclDestroyFloatArray, made)
    return made


def _argument(op: Operation, argument):
    if isinstance(argument, numpy.ndarray):
        return op.input(argument)
    if isinstance(argument, Out):
        return op.output(argument.shape, argument.dtype).tensor
    if isinstance(argument, list) and isinstance(argument[0], numpy.ndarray):
        return op.inputs(argument)
    if isinstance(argument, list) and isinstance(argument[0], Out):
        return op.outputs(*zip(*argument)).tensor
    if isinstance(argument, list):
        return _array(op, argument)
    if isinstance(argument, bytes):
        return ascend.ffi.new("char[]", argument)
    return ascend.ffi.NULL if argument is None else argument


@contextlib.contextmanager
def called(name: str, arguments: list, with_torch: Callable | None = None):
    """A case: arrays are read, Outs are written, both alone or in lists; other lists are arrays of numbers, None is NULL."""
    with Operation() as op:
        run = running(op, name, [_argument(op, argument) for argument in arguments])
        tensors = [item for argument in arguments for item in (argument if isinstance(argument, list) else [argument])]
        read, written = (sum(item.nbytes for item in tensors if isinstance(item, kind)) for kind in (numpy.ndarray, Out))
        yield Case(run, with_torch and peer(with_torch), read, written)
