"""Device memory and page-locked memory (cann-runtime 8 and 9)."""

from __future__ import annotations

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    ALONE, Out, address_of, case, device, inside, memory, named, no_context, ok, pointer, with_out,
)
from tests.conformance.harness import Result, check_rule

HUGE = 1 << 62

# Allocators of device memory with the bytes they add to a request before rounding it up to 32.
DEVICE_ALLOCATORS = {
    "aclrtMalloc": (32, lambda cell, size, cfg: lib.aclrtMalloc(cell, size, 0)),
    "aclrtMallocAlign32": (0, lambda cell, size, cfg: lib.aclrtMallocAlign32(cell, size, 0)),
    "aclrtMallocCached": (32, lambda cell, size, cfg: lib.aclrtMallocCached(cell, size, 0)),
    "aclrtMallocWithCfg": (32, lambda cell, size, cfg: lib.aclrtMallocWithCfg(cell, size, 0, cfg)),
    "aclrtMallocForTaskScheduler": (32, lambda cell, size, cfg: lib.aclrtMallocForTaskScheduler(cell, size, 0, cfg)),
}
HOST_ALLOCATORS = {
    "aclrtMallocHost": ("hostPtr", lambda cell, size: lib.aclrtMallocHost(cell, size)),
    "aclrtMallocHostWithCfg": ("ptr", lambda cell, size: lib.aclrtMallocHostWithCfg(cell, size, ffi.NULL)),
}


def configuration(attribute: int, value: int = 0, attributes: bool = True):
    attrs = ffi.new("aclrtMallocAttribute[1]")
    attrs[0].attr = attribute
    attrs[0].value.deviceId = value
    return ffi.new("aclrtMallocConfig *", {"attrs": attrs if attributes else ffi.NULL, "numAttrs": 1}), attrs


def allocation_cases(name: str):
    spare, function = DEVICE_ALLOCATORS[name]

    def allocate(size: int = 64, cfg=lambda: (ffi.NULL,)):
        def call(cell):
            held = cfg()  # keeps what the configuration points to
            with device():
                status = function(cell, size, held[0])
                return lib.aclrtFree(cell[0]) if status == 0 else status

        return with_out("void *", call)

    def without_context(cell):
        with no_context():
            return function(cell, 64, ffi.NULL)

    # The smallest size whose rounding overflows: size + spare + 31 > 2**64 - 1.
    overflowing = 2**64 - spare - 31
    yield case(f"{name}/devPtr/null", inside(device)(lambda: function(ffi.NULL, 64, ffi.NULL)), allocate())
    yield case(f"{name}/size/zero", allocate(0), allocate(1))
    yield case(f"{name}/size/overflow", allocate(overflowing), allocate(1 << 20))
    yield case(f"{name}/size/memory", allocate(HUGE), allocate(1 << 20))
    yield case(f"{name}/context/none", with_out("void *", without_context), allocate())
    if name in ("aclrtMallocWithCfg", "aclrtMallocForTaskScheduler"):
        yield case(f"{name}/cfg/null", allocate(cfg=lambda: configuration(1, attributes=False)),
                   allocate(cfg=lambda: configuration(1)))
        yield case(f"{name}/cfg/attribute", allocate(cfg=lambda: configuration(4)),
                   allocate(cfg=lambda: configuration(3)))
        yield case(f"{name}/cfg/device", allocate(cfg=lambda: configuration(2, 2)),
                   allocate(cfg=lambda: configuration(2, 1)), ALONE)


def host_allocation_cases(name: str):
    parameter, function = HOST_ALLOCATORS[name]

    def allocate(size: int):
        def call(cell):
            with device():
                status = function(cell, size)
                return lib.aclrtFreeHost(cell[0]) if status == 0 else status

        return with_out("void *", call)

    def without_context(cell):
        with no_context():
            return function(cell, 64)

    yield case(f"{name}/{parameter}/null", inside(device)(lambda: function(ffi.NULL, 64)), allocate(64))
    yield case(f"{name}/size/zero", allocate(0), allocate(1))
    yield case(f"{name}/size/memory", allocate(HUGE), allocate(1 << 20))
    yield case(f"{name}/context/none", with_out("void *", without_context), allocate(64))


# ---- free ----


def free_cases(free: str, parameter: str, allocate):
    function = named(free)

    @inside(device)
    def free_a_live_block():
        made = Out()
        ok(allocate(made.cell))
        return function(made.value)

    @inside(device)
    def free_inside_a_block():
        made = Out()
        ok(allocate(made.cell))
        status = function(pointer(address_of(made.value) + 32))
        ok(function(made.value))
        return status

    yield case(f"{free}/{parameter}/null", inside(device)(lambda: function(ffi.NULL)), free_a_live_block)
    yield case(f"{free}/{parameter}/unknown", free_inside_a_block, free_a_live_block)
    if free.endswith("WithDevSync"):

        @inside(device)
        def free_without_context():
            made = Out()
            ok(allocate(made.cell))
            with no_context():
                status = function(made.value)
            ok(function(made.value))
            return status

        yield case(f"{free}/context/none", free_without_context, free_a_live_block)


def device_block(cell):
    return lib.aclrtMalloc(cell, 64, 0)


def host_block(cell):
    return lib.aclrtMallocHost(cell, 64)


# ---- caches ----


def cache_cases(name: str):
    function = named(name)

    @inside(device, memory)
    def whole(address):
        return function(address, 4096)

    @inside(device, memory)
    def too_much(address):
        return function(address, 4097)

    yield case(f"{name}/devPtr/null", lambda: function(ffi.NULL, 64), whole)
    yield case(f"{name}/size/zero", inside(device, memory)(lambda address: function(address, 0)), whole)
    yield case(f"{name}/devPtr/bounds", too_much, whole)


# ---- information ----


def memory_info(attribute: int = 1, skip: str | None = None, context: bool = True):
    def run():
        with device():
            free, total = Out("size_t"), Out("size_t")
            arguments = [attribute, ffi.NULL if skip == "free" else free.cell,
                         ffi.NULL if skip == "total" else total.cell]
            if context:
                status = lib.aclrtGetMemInfo(*arguments)
            else:
                with no_context():
                    status = lib.aclrtGetMemInfo(*arguments)
            return Result(status, free.bytes() == free.before and total.bytes() == total.before)

    run.__module__ = __name__
    return run


def usage_info(ordinal: int = 0, room: int = 1, skip: str | None = None):
    info, count = Out("aclrtMemUsageInfo"), Out("size_t")
    status = lib.aclrtGetMemUsageInfo(ordinal, ffi.NULL if skip == "memUsageInfo" else info.cell, room,
                                      ffi.NULL if skip == "outputNum" else count.cell)
    return Result(status, info.bytes() == info.before and count.bytes() == count.before)


def pointer_attributes(skip: str | None = None):
    attributes, data = Out("aclrtPtrAttributes"), ffi.new("int *")
    return attributes.result(lib.aclrtPointerGetAttributes(ffi.NULL if skip == "ptr" else data,
                                                           ffi.NULL if skip == "attributes" else attributes.cell))


# ---- registration ----

PAGES = ffi.new("char[]", 5 * 4096)
NO_MEMORY = pointer(1 << 16)  # no program is that low
PAGE = ffi.cast("char *", (address_of(PAGES) + 4095) // 4096 * 4096)


def register(function, size: int = 8192, at=None, **changes):
    """Registers two pages and undoes it; `changes` are passed on."""
    start = PAGE if at is None else at
    status = function(start, size, **changes)
    if status == 0:
        ok(lib.aclrtHostUnregister(start))
    return status


def register_v1(start, size, kind=0, out=True):
    cell = Out()
    status = lib.aclrtHostRegister(start, size, kind, cell.cell if out else ffi.NULL)
    assert status == 0 or cell.bytes() == cell.before
    return status


def register_v2(start, size, flag=2):
    return lib.aclrtHostRegisterV2(start, size, flag)


def register_twice(function):
    ok(function(PAGE, 8192))
    status = function(ffi.cast("char *", PAGE) + 4096, 8192)
    ok(lib.aclrtHostUnregister(PAGE))
    return status


def register_neighbours(function):
    ok(function(PAGE, 4096))
    status = register(function, 4096, at=ffi.cast("char *", PAGE) + 4096)
    ok(lib.aclrtHostUnregister(PAGE))
    return status


def register_device_memory(function):
    with device(), memory(8192) as block:
        return function(block, 4096)


def registration_cases(name: str, function):
    def legal():
        return register(function)

    yield case(f"{name}/ptr/null", lambda: function(ffi.NULL, 4096), legal)
    yield case(f"{name}/size/zero", lambda: function(PAGE, 0), legal)
    yield case(f"{name}/ptr/alignment", lambda: function(PAGE + 1, 4096), legal)
    yield case(f"{name}/size/overflow", lambda: function(PAGE, 2**64 - 4096), legal)
    yield case(f"{name}/ptr/unmapped", lambda: function(NO_MEMORY, 4096), legal)
    yield case(f"{name}/ptr/device", lambda: register_device_memory(function), legal)
    yield case(f"{name}/ptr/registered", lambda: register_twice(function), lambda: register_neighbours(function))


def device_pointer(host=None, flag: int = 0, out: bool = True):
    ok(register_v2(PAGE, 4096))
    cell = Out()
    status = lib.aclrtHostGetDevicePointer(PAGE if host is None else host, cell.cell if out else ffi.NULL, flag)
    ok(lib.aclrtHostUnregister(PAGE))
    return cell.result(status)


RULES = [
    *[entry for name in DEVICE_ALLOCATORS for entry in allocation_cases(name)],
    *[entry for name in HOST_ALLOCATORS for entry in host_allocation_cases(name)],
    *free_cases("aclrtFree", "devPtr", device_block),
    *free_cases("aclrtFreeWithDevSync", "devPtr", device_block),
    *free_cases("aclrtFreeHost", "hostPtr", host_block),
    *free_cases("aclrtFreeHostWithDevSync", "hostPtr", host_block),
    *cache_cases("aclrtMemFlush"),
    *cache_cases("aclrtMemInvalidate"),
    case("aclrtGetMemInfo/free/null", memory_info(skip="free"), memory_info()),
    case("aclrtGetMemInfo/total/null", memory_info(skip="total"), memory_info()),
    case("aclrtGetMemInfo/attr/range", memory_info(18), memory_info(17)),
    case("aclrtGetMemInfo/context/none", memory_info(context=False), memory_info()),
    case("aclrtGetMemUsageInfo/memUsageInfo/null", lambda: usage_info(skip="memUsageInfo"), usage_info),
    case("aclrtGetMemUsageInfo/outputNum/null", lambda: usage_info(skip="outputNum"), usage_info),
    case("aclrtGetMemUsageInfo/inputNum/zero", lambda: usage_info(room=0), usage_info),
    case("aclrtGetMemUsageInfo/deviceId/range", lambda: usage_info(2), lambda: usage_info(1), ALONE),
    case("aclrtPointerGetAttributes/ptr/null", lambda: pointer_attributes("ptr"), pointer_attributes),
    case("aclrtPointerGetAttributes/attributes/null", lambda: pointer_attributes("attributes"), pointer_attributes),
    *registration_cases("aclrtHostRegister", register_v1),
    case("aclrtHostRegister/devPtr/null", lambda: register_v1(PAGE, 4096, out=False), lambda: register(register_v1)),
    case("aclrtHostRegister/type/range", lambda: register_v1(PAGE, 4096, kind=1), lambda: register(register_v1)),
    *registration_cases("aclrtHostRegisterV2", register_v2),
    case("aclrtHostRegisterV2/flag/range", lambda: register_v2(PAGE, 4096, flag=6),
         lambda: register(register_v2, flag=0x10000002)),
    case("aclrtHostGetDevicePointer/pHost/null", lambda: device_pointer(ffi.NULL), device_pointer),
    case("aclrtHostGetDevicePointer/pDevice/null", lambda: device_pointer(out=False), device_pointer),
    case("aclrtHostGetDevicePointer/flag/range", lambda: device_pointer(flag=1), device_pointer),
    case("aclrtHostGetDevicePointer/pHost/unregistered", lambda: device_pointer(PAGE + 8192), device_pointer),
    case("aclrtHostUnregister/ptr/null", lambda: lib.aclrtHostUnregister(ffi.NULL), device_pointer),
    case("aclrtHostUnregister/ptr/unregistered", lambda: lib.aclrtHostUnregister(PAGE), device_pointer),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
