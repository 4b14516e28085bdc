"""What the rows of Ascend operators share."""

from collections.abc import Callable

import numpy

from understudy import ascend
from understudy.ascend.runtime import Operation

TYPES = {"float32": numpy.float32, "float16": numpy.float16, "int32": numpy.int32}
ELEMENTS = 16 << 20


def values(dtype: str, shape: tuple[int, ...], seed: int) -> numpy.ndarray:
    return numpy.random.default_rng(seed).uniform(-4, 4, shape).astype(numpy.float32).astype(TYPES[dtype])


def one(op: Operation):
    scalar = ascend.lib.aclCreateScalar(ascend.ffi.new("int64_t *", 1), ascend.lib.ACL_INT64)
    op.callback(ascend.lib.aclDestroyScalar, scalar)
    return scalar


def axes_array(op: Operation, axes: list[int]):
    made = ascend.lib.aclCreateIntArray(ascend.ffi.new("int64_t[]", axes), len(axes))
    op.callback(ascend.lib.aclDestroyIntArray, made)
    return made


def dtype_code(x) -> int:
    return {"float32": ascend.lib.ACL_FLOAT, "float16": ascend.lib.ACL_FLOAT16, "int32": ascend.lib.ACL_INT32}[x.dtype.name]


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
