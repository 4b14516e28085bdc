"""Calls of operators with tensors that no memory holds: one size is as large as the number of elements allows, and one element
of it is stored. What becomes of each call is told by a process of its own.

Run as a program, it is given operators and prints JSON: how many calls were accepted, and which ended their process.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import resource
import signal
import sys
import traceback

from understudy.ascend import ffi, lib

from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages

ELEMENTS = 2**62  # of the largest tensor: the bytes of any type of four bytes and more, in 64 bits, are none
MEMORY = 2**31  # bytes that a process may take
SECONDS = 0.05  # of the processor: what is counted and taken at the beginning of a kernel is long past; the loops never end
ACCEPTED, REFUSED = 0, 3


@dataclasses.dataclass
class Expanded(pages.Shaped):
    """A tensor whose dimensions of the size `huge` have stride 0."""

    huge: int = 0

    def make(self, output: bool) -> support.Tensor:
        stored = tuple(1 if size == self.huge else size for size in self.shape)
        strides = [0 if size == self.huge else stride for size, stride in zip(self.shape, support.row_major(stored))]
        values = dataclasses.replace(self, shape=stored).values()
        kind, format = pages.KINDS.get(self.dtype, support.I8), getattr(lib, f"ACL_FORMAT_{self.format or 'ND'}")
        return support.Tensor(kind, values, shape=self.shape, strides=strides, storage=[max(1, values.size)],
                              code=pages.DTYPE_CODES.get(self.dtype), format=format)  # fmt: skip


def tensors(arguments: dict) -> list[pages.Shaped]:
    every = [item for value in arguments.values() for item in (value if isinstance(value, list) else [value])]
    return [item for item in every if isinstance(item, pages.Shaped) and item.storage is None]


def sizes(entry: dict) -> list[int]:
    return sorted({size for tensor in tensors(pages.legal(entry)) for size in tensor.shape if size > 0})


def with_size(arguments: dict, size: int, attributes: bool) -> dict:
    """The call with something huge in place of a size, in all tensors that have it, and in attributes."""

    def count(tensor: pages.Shaped) -> tuple[int, int]:
        return tensor.shape.count(size), math.prod(other for other in tensor.shape if other not in (0, size))

    huge = min(int((ELEMENTS // rest) ** (1 / power)) for power, rest in map(count, tensors(arguments)) if power > 0)
    huge = 2 ** (huge.bit_length() - 1)

    def changed(value):
        if isinstance(value, pages.Shaped) and value.storage is None:
            shape = tuple(huge if other == size else other for other in value.shape)
            return Expanded(**{**vars(value), "shape": shape, "huge": huge})
        if isinstance(value, list):
            return [changed(item) for item in value]
        return huge if attributes and type(value) is int and value == size else value

    return {name: changed(value) for name, value in arguments.items()}


def call(entry: dict, size: int) -> int:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for attributes in (False, True):
        try:
            values = pages.values_of(entry, with_size(pages.legal(entry), size, attributes))
        except OverflowError:  # an attribute of fewer than 64 bits
            continue
        status, workspace, executor = support.plan(entry["function"], *map(pages.handle_of, values.values()))
        if status == 0:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            getattr(lib, entry["function"])(ffi.NULL, workspace, executor, ffi.NULL)
            lib.aclrtSynchronizeStream(ffi.NULL)
            return ACCEPTED
    return REFUSED


def outcome(entry: dict, size: int) -> int:
    """Forks, as a process may that has not used a device yet."""
    child = os.fork()
    if child == 0:
        try:
            status = call(entry, size)
        except BaseException:
            traceback.print_exc()
            status = 1
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(*names: str) -> None:
    calls = [(pages.operators()[name], size) for name in names for size in sizes(pages.operators()[name])]
    ended = [(entry["function"], size, outcome(entry, size)) for entry, size in calls]
    failures = [f"{function} with a huge {size}: the process ended with {code}" for function, size, code in ended
                if code not in (ACCEPTED, REFUSED, -signal.SIGPROF)]  # fmt: skip
    print(json.dumps({"accepted": sum(code in (ACCEPTED, -signal.SIGPROF) for *_, code in ended), "failures": failures}))


if __name__ == "__main__":
    main(*sys.argv[1:])
