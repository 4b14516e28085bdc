"""Rules of the runtime's memory: allocation, page-locking, pools (maca-runtime 4, 5.5, 5.6)."""

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import Result, RuleCase, check_rule
from tests.conformance.maca.runtime_calls import NULL, case, null_cases, run
from tests.maca import runtime_support as rt

HUGE = 2**63 - 1
DEFERRED = {"UNDERSTUDY_STREAM": "deferred"}


def free_after_queued_free(function, *more):
    memory = rt.device_memory()
    rt.ok(lib.mcFreeAsync(memory, NULL))
    return Result(getattr(lib, function)(memory, *more))


def second_byte(arguments):
    return {0: arguments[0] + 1}


def registered_twice(arguments):
    rt.ok(lib.mcHostRegister(arguments[0], 256, 0))
    return {0: arguments[0] + 255, 1: 1}


def registered_beside(arguments):
    rt.ok(lib.mcHostRegister(arguments[0], 128, 0))
    return {0: arguments[0] + 129, 1: 100}


def unregistered(arguments):
    rt.ok(lib.mcHostUnregister(arguments[0]))
    return {}


RULES = [
    *null_cases("mcIpcGetMemHandle", handle=0, devPtr=1),
    case("mcIpcGetMemHandle/devPtr/allocated", lambda it: {1: it[1] + 1}),
    *null_cases("mcMalloc", p=0),
    *null_cases("mcMallocManaged", p=0),
    *null_cases("mcMallocHost", p=0),
    *null_cases("mcMallocAsync", p=0),
    *null_cases("mcMallocFromPoolAsync", p=0),
    *null_cases("mcMemGetInfo", freeBytes=0, totalBytes=1),
    *null_cases("mcPointerGetAttributes", attr=0, p=1),
    *null_cases("mcHostRegister", p=0),
    *null_cases("mcHostUnregister", p=0),
    *null_cases("mcHostGetDevicePointer", dev=0, host=1),
    *null_cases("mcMemPoolCreate", pool=0, props=1),
    *[case(f"{f}/size/memory", {1: HUGE}, {1: 1})
      for f in ("mcMalloc", "mcMallocManaged", "mcMallocHost", "mcMallocAsync", "mcMallocFromPoolAsync")],
    case("mcMallocManaged/size/range", {1: 0}, {1: 1}),
    case("mcMallocManaged/flags/range", {2: lib.mcMemAttachSingle}, {2: lib.mcMemAttachHost}),
    case("mcMallocHost/flags/range", {2: 8}, {2: 7}),
    case("mcFree/p/allocated", second_byte),
    case("mcFreeHost/p/allocated", second_byte),
    case("mcFreeAsync/p/allocated", second_byte),
    RuleCase("mcFree/p/queued", refused=lambda: free_after_queued_free("mcFree"), accepted=lambda: run("mcFree"),
             env=DEFERRED),
    RuleCase("mcFreeAsync/p/queued", refused=lambda: free_after_queued_free("mcFreeAsync", NULL),
             accepted=lambda: run("mcFreeAsync"), env=DEFERRED),
    case("mcHostRegister/n/range", {1: 0}, {1: 1}),
    case("mcHostRegister/p/unmapped", {0: ffi.cast("void *", 1 << 16)}),
    case("mcHostRegister/n/overflow", {1: 2**64 - 1}),
    case("mcHostRegister/flags/range", {2: 8}, {2: 3}),
    case("mcHostRegister/flags/io-memory", {2: lib.mcHostRegisterIoMemory}, {2: lib.mcHostRegisterMapped}),
    case("mcHostRegister/p/host", lambda _: {0: rt.device_memory()}),
    case("mcHostRegister/p/registered", registered_twice, registered_beside),
    case("mcHostUnregister/p/registered", unregistered),
    case("mcHostGetDevicePointer/flags/range", {2: 1}),
    case("mcHostGetDevicePointer/host/page-locked", lambda _: {1: rt.host_memory()}),
    case("mcMemPoolDestroy/pool/alive", lambda _: {0: rt.dead_pool()}),
    case("mcMallocFromPoolAsync/pool/alive", lambda _: {2: rt.dead_pool()}),
    case("mcMemPoolCreate/allocType/range", lambda _: {1: rt.pool_props(allocType=lib.mcMemAllocationTypeInvalid)}),
    case("mcMemPoolCreate/location/type", lambda _: {1: rt.pool_props(type=lib.mcMemLocationTypeInvalid)}),
    case("mcMemPoolCreate/handleTypes/supported",
         lambda _: {1: rt.pool_props(handleTypes=lib.mcMemHandleTypePosixFileDescriptor)}),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


@pytest.mark.parametrize("function, memory", [
    ("mcFree", rt.pinned_memory), ("mcFree", rt.freed_memory), ("mcFree", lambda: ffi.cast("void *", 0x1000)),
    ("mcFree", rt.host_memory), ("mcFree", lambda: ffi.cast("void *", 2**64 - 1)),
    ("mcFreeHost", rt.device_memory), ("mcFreeHost", rt.host_memory), ("mcFreeHost", rt.managed_memory),
])  # fmt: skip
def test_free_of_what_it_does_not_own(function, memory):
    assert getattr(lib, function)(memory()) == lib.mcErrorInvalidValue


@pytest.mark.parametrize("size", [2**63, 2**63 - 1, 2**64 - 1, 2**62, 2**48])
@pytest.mark.parametrize("function, more", [("mcMalloc", []), ("mcMallocHost", [0]), ("mcMallocManaged", [1]),
                                            ("mcMallocAsync", [NULL])])
def test_absurd_sizes_are_out_of_memory(function, more, size):
    place = ffi.new("void **", ffi.cast("void *", 0x55))
    assert getattr(lib, function)(place, size, *more) == lib.mcErrorMemoryAllocation
    assert int(ffi.cast("size_t", place[0])) == 0x55
