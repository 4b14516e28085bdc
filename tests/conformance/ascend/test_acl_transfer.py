"""Copies and fills: plain, queued, rectangular, batched (cann-runtime 8 and 9)."""

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    address_of, case, device, download, freed_memory, host_memory, memory, ok, pointer, upload,
)
from tests.conformance.harness import Result, check_rule

H2H, H2D, D2H, D2D, DEFAULT = range(5)
KEEP = b"\x11" * 64
USABLE = 4096  # of a block made by aclrtMalloc(64): its page
STREAM = ffi.NULL


def on_block(function, destination):
    """Calls with a device block of known content; whether it keeps it."""
    with device(), memory() as mine:
        upload(mine, KEEP)
        status = function(mine if destination is None else destination)
        ok(lib.aclrtSynchronizeStream(STREAM))
        return Result(status, download(mine, 64) == KEEP)


# ---- plain copies ----

PLAIN = {
    "aclrtMemcpy": lambda *arguments: lib.aclrtMemcpy(*arguments),
    "aclrtMemcpyAsync": lambda *arguments: lib.aclrtMemcpyAsync(*arguments, STREAM),
    "aclrtMemcpyAsyncWithCondition": lambda *arguments: lib.aclrtMemcpyAsyncWithCondition(*arguments, STREAM),
}


def plain_cases(name: str):
    def copy(destination=None, limit=64, source=None, count=64, kind=H2D):
        data = ffi.new("char[]", b"\x22" * (USABLE + 8))
        return on_block(lambda to: PLAIN[name](to, limit, data if source is None else source, count, kind), destination)

    def with_freed():
        with device():
            return copy(freed_memory())

    def from_pinned():
        with device(), host_memory() as pinned:
            return copy(source=pinned)

    yield case(f"{name}/dst/null", lambda: copy(ffi.NULL), copy)
    yield case(f"{name}/src/null", lambda: copy(source=ffi.NULL), copy)
    yield case(f"{name}/kind/range", lambda: copy(kind=6), lambda: copy(kind=5))
    yield case(f"{name}/destMax/zero", lambda: copy(limit=0), lambda: copy(limit=1, count=1))
    yield case(f"{name}/count/limit", lambda: copy(limit=63), copy)
    yield case(f"{name}/count/zero", lambda: copy(count=0), lambda: copy(count=1))
    yield case(f"{name}/kind/direction", lambda: copy(kind=D2H), from_pinned)
    yield case(f"{name}/count/bounds", lambda: copy(limit=USABLE + 1, count=USABLE + 1),
               lambda: copy(limit=USABLE, count=USABLE))
    yield case(f"{name}/memory/freed", with_freed, copy)
    if name != "aclrtMemcpy":
        data = ffi.new("char[64]")
        yield case(f"{name}/kind/host-to-host", lambda: copy(data, kind=H2H), copy)


# ---- fills ----

FILLS = {
    "aclrtMemset": lambda *arguments: lib.aclrtMemset(*arguments),
    "aclrtMemsetAsync": lambda *arguments: lib.aclrtMemsetAsync(*arguments, STREAM),
}


def fill_cases(name: str):
    def fill(destination=None, limit=64, count=64):
        return on_block(lambda to: FILLS[name](to, limit, 7, count), destination)

    def with_freed():
        with device():
            return fill(freed_memory())

    yield case(f"{name}/devPtr/null", lambda: fill(ffi.NULL), fill)
    yield case(f"{name}/count/limit", lambda: fill(limit=63), fill)
    yield case(f"{name}/count/zero", lambda: fill(count=0), lambda: fill(count=1))
    yield case(f"{name}/count/bounds", lambda: fill(limit=USABLE + 1, count=USABLE + 1),
               lambda: fill(limit=USABLE, count=USABLE))
    yield case(f"{name}/memory/freed", with_freed, fill)


WORDS = {
    "aclrtMemsetD32": lambda *arguments: lib.aclrtMemsetD32(*arguments),
    "aclrtMemsetD32Async": lambda *arguments: lib.aclrtMemsetD32Async(*arguments, STREAM),
}


def word_cases(name: str):
    def fill(destination=None, size=64, count=16, shift=0):
        return on_block(lambda to: WORDS[name](pointer(address_of(to) + shift), size, 7, count), destination)

    def with_freed():
        with device():
            return fill(freed_memory())

    words = USABLE // 4
    yield case(f"{name}/ptr/null", lambda: fill(ffi.NULL), fill)
    yield case(f"{name}/ptr/alignment", lambda: fill(shift=2, count=8), lambda: fill(shift=4, count=8))
    yield case(f"{name}/N/limit", lambda: fill(size=63), fill)
    yield case(f"{name}/count/bounds", lambda: fill(size=4 * words + 4, count=words + 1),
               lambda: fill(size=4 * words, count=words))
    yield case(f"{name}/memory/freed", with_freed, fill)


# ---- rectangles ----

RECTANGLES = {
    "aclrtMemcpy2d": lambda *arguments: lib.aclrtMemcpy2d(*arguments),
    "aclrtMemcpy2dAsync": lambda *arguments: lib.aclrtMemcpy2dAsync(*arguments, STREAM),
}


def rectangle_cases(name: str):
    def copy(destination=None, dpitch=8, source=None, spitch=8, width=8, height=8, kind=H2D):
        data = ffi.new("char[]", b"\x22" * (USABLE + 8))
        return on_block(lambda to: RECTANGLES[name](to, dpitch, data if source is None else source, spitch, width,
                                                    height, kind), destination)

    def large(width: int, height: int, pitch: int):
        data = ffi.new("char[]", pitch * height)
        with device(), memory(pitch * height) as block:
            return RECTANGLES[name](block, pitch, data, pitch, width, height, H2D)

    def with_freed():
        with device():
            return copy(freed_memory())

    yield case(f"{name}/dst/null", lambda: copy(ffi.NULL), copy)
    yield case(f"{name}/src/null", lambda: copy(source=ffi.NULL), copy)
    yield case(f"{name}/width/zero", lambda: copy(width=0), lambda: copy(width=1))
    yield case(f"{name}/height/zero", lambda: copy(height=0), lambda: copy(height=1))
    yield case(f"{name}/width/dpitch", lambda: copy(dpitch=7), copy)
    yield case(f"{name}/width/spitch", lambda: copy(spitch=7), copy)
    yield case(f"{name}/width/range", lambda: large(5000001, 1, 5000001), lambda: large(5000000, 1, 5000001))
    yield case(f"{name}/height/range", lambda: large(1, 5 * 1024 * 1024 + 1, 1), lambda: large(1, 5 * 1024 * 1024, 1))
    yield case(f"{name}/kind/range", lambda: copy(kind=D2D), lambda: copy(kind=DEFAULT))
    yield case(f"{name}/kind/direction", lambda: copy(kind=D2H), copy)
    rows = USABLE // 8
    yield case(f"{name}/count/bounds", lambda: copy(height=rows + 1), lambda: copy(height=rows))
    yield case(f"{name}/memory/freed", with_freed, copy)


# ---- batches ----

BATCHES = {
    "aclrtMemcpyBatch": lambda *arguments: lib.aclrtMemcpyBatch(*arguments),
    "aclrtMemcpyBatchAsync": lambda *arguments: lib.aclrtMemcpyBatchAsync(*arguments, STREAM),
    "aclrtMemcpyBatchV2": lambda *arguments: lib.aclrtMemcpyBatchV2(*arguments[:-1]),
    "aclrtMemcpyBatchAsyncV2": lambda *arguments: lib.aclrtMemcpyBatchAsyncV2(*arguments[:-1], STREAM),
}


def batch_cases(name: str):
    def copy(destination=None, source=None, size=32, limit=32, skip=None, batches=2, attributes=1, indexes=(0,),
             destination_type="DEVICE"):
        """Two copies of 32 bytes to a block; the changes concern the first."""
        data = ffi.new("char[]", b"\x22" * (USABLE + 200))

        def call(to):
            second = ffi.cast("char *", to) + 32 if to != ffi.NULL else data + 100
            locations = ffi.new("aclrtMemcpyBatchAttr[2]")
            for location in locations:
                location.dstLoc.type = getattr(lib, f"ACL_MEM_LOCATION_TYPE_{destination_type}")
                location.srcLoc.type = lib.ACL_MEM_LOCATION_TYPE_HOST
            arguments = {
                "dsts": ffi.new("void *[2]", [to, second]),
                "destMaxs": ffi.new("size_t[2]", [limit, 32]),
                "srcs": ffi.new("void *[2]", [data if source is None else source, data]),
                "sizes": ffi.new("size_t[2]", [size, 32]),
                "numBatches": batches,
                "attrs": locations,
                "attrsIndexes": ffi.new("size_t[2]", [*indexes, 0][:2]),
                "numAttrs": attributes,
                "failIndex": ffi.new("size_t *"),
            }
            if skip is not None:
                arguments[skip] = ffi.NULL
            return BATCHES[name](*arguments.values())

        return on_block(call, destination)

    def with_freed():
        with device():
            return copy(freed_memory())

    yield case(f"{name}/dst/null", lambda: copy(ffi.NULL), copy)
    yield case(f"{name}/src/null", lambda: copy(source=ffi.NULL), copy)
    only_first = [] if name.endswith("V2") else ["failIndex"]
    for parameter in ("sizes", *only_first, "dsts", "destMaxs", "srcs", "attrs", "attrsIndexes"):
        yield case(f"{name}/{parameter}/null", lambda parameter=parameter: copy(skip=parameter), copy)
    yield case(f"{name}/numBatches/zero", lambda: copy(batches=0), lambda: copy(batches=1))
    yield case(f"{name}/numAttrs/range", lambda: copy(attributes=3), lambda: copy(attributes=2, indexes=(0, 1)))
    yield case(f"{name}/attrsIndexes/order", lambda: copy(attributes=2, indexes=(0, 0)),
               lambda: copy(attributes=2, indexes=(0, 1)))
    yield case(f"{name}/destMax/zero", lambda: copy(limit=0), copy)
    yield case(f"{name}/count/limit", lambda: copy(limit=31), copy)
    yield case(f"{name}/kind/direction", lambda: copy(destination_type="HOST"), copy)
    yield case(f"{name}/count/bounds", lambda: copy(size=USABLE + 1, limit=USABLE + 1),
               lambda: copy(size=USABLE, limit=USABLE))
    yield case(f"{name}/memory/freed", with_freed, copy)


RULES = [
    *[entry for name in PLAIN for entry in plain_cases(name)],
    *[entry for name in FILLS for entry in fill_cases(name)],
    *[entry for name in WORDS for entry in word_cases(name)],
    *[entry for name in RECTANGLES for entry in rectangle_cases(name)],
    *[entry for name in BATCHES for entry in batch_cases(name)],
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
