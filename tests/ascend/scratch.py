"""Calls whose kernels do not get the scratch memory that they need. They are made in child processes, which they may end.

Run as a program, it is given "expanded", "failing" or "apart" and operators, and prints JSON: how many calls were made, and what
is wrong with others.
"""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import hashlib
import json
import math
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import NoReturn

from understudy.ascend import ffi, lib

from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages

NO_MEMORY = 207001


def work_and_end(works: list[Callable[[], object]], told: int) -> NoReturn:
    """Tells what each returns in a line of JSON."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        for work in works:
            os.write(told, json.dumps(work()).encode() + b"\n")
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def in_children(works: list[Callable[[], object]]) -> Iterator[tuple[int, object]]:
    """Forks, as a process may that has not used a device yet, and again behind one that ends the child. Of each: 0 and what it
    returned, or how the child ended and None."""
    while works:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            work_and_end(works, writing)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = [json.loads(line) for line in pipe]
        end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        yield from ((0, value) for value in said)
        if end != 0:
            yield end, None
        works = works[len(said) + (end != 0) :]


def in_a_child(work: Callable[[], object]) -> tuple[int, object]:
    (outcome,) = in_children([work])
    return outcome


def submit(entry: dict, values: dict) -> bool:
    """Both phases, as far as they come. False: the first refused."""
    status, size, executor = support.plan(entry["function"], *map(pages.handle_of, values.values()))
    if status == 0:
        workspace = support.Memory(size)
        support.ok(getattr(lib, entry["function"])(workspace.address, size, executor, ffi.NULL))
    return status == 0


# ---- tensors that no memory holds ----------------------------------------------------------------------------------------

ELEMENTS = 2**62  # of the largest tensor: the bytes of any type of four bytes and more, in 64 bits, are none
MEMORY = 2**31  # bytes that a process may take
SECONDS = 0.02  # of the processor: memory is taken at the beginning of a kernel; the loops behind it never end


@dataclasses.dataclass
class Expanded(pages.Shaped):
    """A tensor whose dimensions of the size `huge` have stride 0."""

    huge: int = 0

    def make(self, output: bool) -> support.Tensor:
        shape = tuple(1 if size == self.huge else size for size in self.shape)
        strides = [0 if size == self.huge else stride for size, stride in zip(self.shape, support.row_major(shape))]
        stored = dataclasses.replace(self, shape=shape).stored()
        format = getattr(lib, f"ACL_FORMAT_{self.format or 'ND'}")
        return support.Tensor(pages.kind_of(self.dtype), stored=stored, shape=self.shape, strides=strides,
                              storage=[max(1, stored.size)], code=pages.DTYPE_CODES.get(self.dtype), format=format)  # fmt: skip


def tensors(arguments: dict) -> list[pages.Shaped]:
    every = [item for value in arguments.values() for item in (value if isinstance(value, list) else [value])]
    return [item for item in every if isinstance(item, pages.Shaped) and item.storage is None]


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


def call_expanded(entry: dict, size: int) -> bool:
    """Whether there is such a call."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    for attributes in (False, True):
        values = pages.values_of(entry, with_size(pages.legal(entry), size, attributes))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            if submit(entry, values):
                lib.aclrtSynchronizeStream(ffi.NULL)
                return True
        except OverflowError:  # an attribute of fewer than 64 bits
            pass
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return False


def expanded(entry: dict) -> Iterator[str | None]:
    """Of each call: None, or what is wrong."""
    sizes = sorted({size for tensor in tensors(pages.legal(entry)) for size in tensor.shape if size > 0})
    outcomes = in_children([lambda size=size: call_expanded(entry, size) for size in sizes])
    for size, (end, made) in zip(sizes, outcomes):
        if made or end == -signal.SIGPROF:
            yield None
        elif end != 0:
            yield f"with a huge {size} the process ended with {end}"


# ---- allocations that fail -----------------------------------------------------------------------------------------------


def call_failing(entry: dict, arguments: dict, number: int) -> tuple[bool, int, str]:
    """Whether an allocation failed, the status, and what stands in the outputs."""
    preloaded = ctypes.CDLL(None)
    values = pages.values_of(entry, arguments)
    preloaded.fail_allocation(number)
    assert submit(entry, values)
    status = lib.aclrtSynchronizeStream(ffi.NULL)
    failed = bool(preloaded.allocation_has_failed())
    preloaded.fail_allocation(0)
    written = b"".join(tensor.bytes() for tensor in pages.watched(entry, values)) if status == 0 else b""
    return failed, status, hashlib.sha1(written).hexdigest()


def failing(entry: dict, arguments: dict | None = None) -> Iterator[str | None]:
    """Of each call, in which one allocation more succeeds than in the one before: None, or what is wrong."""
    arguments = arguments or pages.legal(entry)
    end, plain = in_a_child(lambda: call_failing(entry, arguments, 0))
    if end != 0 or plain[1] != 0:
        return  # no product has it
    failed, number = True, 0
    while failed:
        number += 1
        end, said = in_a_child(lambda number=number: call_failing(entry, arguments, number))
        if end != 0:
            yield f"where allocation {number} fails, the process ends with {end}"
            return
        failed, status, _ = said
        if failed:
            yield None if status == NO_MEMORY or said[1:] == plain[1:] else f"allocation {number} fails, and the status is {status}"


def apart(entry: dict) -> Iterator[str | None]:
    """As `failing`, of many images whose rows have neighbours that lie apart, which kernels copy; and without memory for copies
    the results are the same."""
    written = {parameter["name"] for parameter in entry["parameters"] if parameter["written"]}
    arguments = {name: dataclasses.replace(value, shape=(500, *value.shape[1:]), turned=name not in written)
                 if isinstance(value, pages.Shaped) else value for name, value in pages.legal(entry).items()}  # fmt: skip
    yield from failing(entry, arguments)
    statuses = [in_a_child(lambda number=number: call_failing(entry, arguments, number))[1][:2] for number in range(1, 9)]
    yield None if [True, 0] in statuses else "no call goes on without the memory for its copies"


def main(kind: str, *names: str) -> None:
    gc.disable()  # which would write to all objects, and so copy them into every child
    made = [(name, wrong) for name in names
            for wrong in {"expanded": expanded, "failing": failing, "apart": apart}[kind](pages.operators()[name])]  # fmt: skip
    print(json.dumps({"calls": len(made), "wrong": [f"{name}: {wrong}" for name, wrong in made if wrong]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
