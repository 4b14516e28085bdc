"""Device memory, page-locked memory, copies and fills (cann-runtime 8 and 9)."""

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    Out, address_of, case, device, download, freed_memory, host_memory, inside, memory, no_context, ok, pointer,
    upload, with_out,
)
from tests.conformance.harness import Result, check_rule

HUGE = 1 << 62
OVERFLOW = 2**64 - 62  # the largest size whose rounding fits is 2**64 - 64


def allocate(size: int, free: bool = True):
    """aclrtMalloc with a device set, as a case's function."""

    def call(cell):
        with device():
            status = lib.aclrtMalloc(cell, size, lib.ACL_MEM_MALLOC_HUGE_FIRST)
            return lib.aclrtFree(cell[0]) if status == 0 and free else status

    return with_out("void *", call)


def allocate_host(size: int):
    def call(cell):
        with device():
            status = lib.aclrtMallocHost(cell, size)
            return lib.aclrtFreeHost(cell[0]) if status == 0 else status

    return with_out("void *", call)


def without_context(function):
    def call(cell):
        with no_context():
            return function(cell)

    return with_out("void *", call)


@inside(device, memory)
def free_inside(address) -> int:
    return lib.aclrtFree(pointer(address_of(address) + 32))


@inside(device)
def free_host_pointer_of_malloc() -> int:
    data = ffi.new("char[64]")
    return lib.aclrtFreeHost(data)


KEEP = b"\x11" * 64


def copy(destination=None, limit=64, source=None, count=64, kind=None):
    """A copy from host memory to device memory with one thing changed; tells whether the device memory changed."""
    with device(), memory() as mine:
        upload(mine, KEEP)
        data = ffi.new("char[64]", b"\x22" * 64)
        to = mine if destination is None else destination
        came_from = data if source is None else source
        status = lib.aclrtMemcpy(to, limit, came_from, count, lib.ACL_MEMCPY_HOST_TO_DEVICE if kind is None else kind)
        return Result(status, download(mine, 64) == KEEP)


def copy_to_freed() -> Result:
    with device():
        gone = freed_memory()
    return copy(destination=gone)


def copy_from_pinned() -> Result:
    with device(), host_memory() as pinned:
        return copy(source=pinned)


def fill(destination=None, limit=64, count=64):
    with device(), memory() as mine:
        upload(mine, KEEP)
        status = lib.aclrtMemset(mine if destination is None else destination, limit, 7, count)
        return Result(status, download(mine, 64) == KEEP)


def fill_freed() -> Result:
    with device():
        gone = freed_memory()
    return fill(destination=gone)


def fill_host() -> Result:
    data = ffi.new("char[64]")
    return fill(destination=data)


# aclrtMalloc(&p, 64) gives 96 bytes: 64 rounded up to 32, and 32 spare.
USABLE = 96

RULES = [
    case("aclrtMalloc/devPtr/null", inside(device)(lambda: lib.aclrtMalloc(ffi.NULL, 64, 0)), allocate(64)),
    case("aclrtMalloc/size/zero", allocate(0), allocate(1)),
    case("aclrtMalloc/size/overflow", allocate(OVERFLOW), allocate(64)),
    case("aclrtMalloc/size/memory", allocate(HUGE), allocate(1 << 20)),
    case("aclrtMalloc/context/none", without_context(lambda cell: lib.aclrtMalloc(cell, 64, 0)), allocate(64)),
    case("aclrtFree/devPtr/null", lambda: lib.aclrtFree(ffi.NULL), allocate(64)),
    case("aclrtFree/devPtr/unknown", free_inside, allocate(64)),
    case("aclrtMallocHost/hostPtr/null", inside(device)(lambda: lib.aclrtMallocHost(ffi.NULL, 64)), allocate_host(64)),
    case("aclrtMallocHost/size/zero", allocate_host(0), allocate_host(1)),
    case("aclrtMallocHost/size/memory", allocate_host(HUGE), allocate_host(1 << 20)),
    case("aclrtMallocHost/context/none", without_context(lambda cell: lib.aclrtMallocHost(cell, 64)),
         allocate_host(64)),
    case("aclrtFreeHost/hostPtr/null", lambda: lib.aclrtFreeHost(ffi.NULL), allocate_host(64)),
    case("aclrtFreeHost/hostPtr/unknown", free_host_pointer_of_malloc, allocate_host(64)),

    case("aclrtMemcpy/dst/null", lambda: copy(destination=ffi.NULL), copy),
    case("aclrtMemcpy/src/null", lambda: copy(source=ffi.NULL), copy),
    case("aclrtMemcpy/kind/range", lambda: copy(kind=6), lambda: copy(kind=5)),
    case("aclrtMemcpy/destMax/zero", lambda: copy(limit=0), lambda: copy(limit=1, count=1)),
    case("aclrtMemcpy/count/limit", lambda: copy(limit=63), copy),
    case("aclrtMemcpy/count/zero", lambda: copy(count=0), lambda: copy(count=1)),
    case("aclrtMemcpy/kind/direction", lambda: copy(kind=lib.ACL_MEMCPY_DEVICE_TO_HOST), copy_from_pinned),
    case("aclrtMemcpy/count/bounds",
         lambda: copy(source=ffi.new("char[]", USABLE + 1), limit=USABLE + 1, count=USABLE + 1),
         lambda: copy(source=ffi.new("char[]", USABLE), limit=USABLE, count=USABLE)),
    case("aclrtMemcpy/memory/freed", copy_to_freed, copy),

    case("aclrtMemset/devPtr/null", lambda: fill(destination=ffi.NULL), fill),
    case("aclrtMemset/count/limit", lambda: fill(limit=63), fill),
    case("aclrtMemset/count/zero", lambda: fill(count=0), lambda: fill(count=1)),
    case("aclrtMemset/count/bounds", lambda: fill(limit=USABLE + 1, count=USABLE + 1),
         lambda: fill(limit=USABLE, count=USABLE)),
    case("aclrtMemset/memory/freed", fill_freed, fill_host),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
