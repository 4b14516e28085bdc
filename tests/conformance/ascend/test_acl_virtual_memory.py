"""Physical memory and reserved addresses (cann-runtime 9, doc 11-04)."""

from __future__ import annotations

import contextlib
import mmap

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, Out, address_of, case, ok, pointer
from tests.conformance.harness import check_rule

PIECE = 2 << 20  # granularity of huge pages
PAGE = max(4096, mmap.PAGESIZE)  # of normal ones
HUGE = 1 << 62


def properties(**changes):
    """Huge pages of device 0."""
    prop = ffi.new("aclrtPhysicalMemProp *")
    prop.memAttr = lib.ACL_HBM_MEM_HUGE
    prop.location.type = lib.ACL_MEM_LOCATION_TYPE_DEVICE
    for name, value in changes.items():
        target = prop.location if name in ("id", "type") else prop
        setattr(target, name, value)
    return prop


@contextlib.contextmanager
def reserved(size: int = 4 * PIECE):
    made = Out()
    ok(lib.aclrtReserveMemAddress(made.cell, size, 0, ffi.NULL, 0))
    yield made.value
    ok(lib.aclrtReleaseMemAddress(made.value))


@contextlib.contextmanager
def physical(size: int = PIECE):
    made = Out()
    ok(lib.aclrtMallocPhysical(made.cell, size, properties(), 0))
    yield made.value
    ok(lib.aclrtFreePhysical(made.value))


def freed_handle():
    with physical() as made:
        pass
    return made


def offset(address, count: int):
    return pointer(address_of(address) + count)


# ---- addresses ----


def reserve(size: int = PIECE, alignment: int = 0, flags: int = 0, out: bool = True):
    made = Out()
    status = lib.aclrtReserveMemAddress(made.cell if out else ffi.NULL, size, alignment, ffi.NULL, flags)
    result = made.result(status)
    if status == 0:
        ok(lib.aclrtReleaseMemAddress(made.value))
    return result


def release_inside():
    with reserved() as first:
        return lib.aclrtReleaseMemAddress(offset(first, 4096))


# ---- memory ----


def allocate(size: int = PIECE, prop=None, flags: int = 0, out: bool = True):
    made = Out()
    wanted = properties() if prop is None else prop
    status = lib.aclrtMallocPhysical(made.cell if out else ffi.NULL, size, wanted, flags)
    result = made.result(status)
    if status == 0:
        ok(lib.aclrtFreePhysical(made.value))
    return result


def granularity(prop=None, option: int = 0, out: bool = True):
    made = Out("size_t")
    return made.result(lib.aclrtMemGetAllocationGranularity(properties() if prop is None else prop, option,
                                                            made.cell if out else ffi.NULL))


def property_cases(name: str, function):
    def of(**changes):
        return lambda: function(prop=properties(**changes))

    legal = of()
    yield case(f"{name}/prop/null", lambda: function(prop=ffi.NULL), legal)
    yield case(f"{name}/prop/handle-type", of(handleType=1), legal)
    yield case(f"{name}/prop/allocation-type", of(allocationType=1), legal)
    yield case(f"{name}/prop/attribute", of(memAttr=18), of(memAttr=16))
    yield case(f"{name}/prop/location", of(type=2), legal)
    yield case(f"{name}/prop/host", of(type=0), legal)
    yield case(f"{name}/prop/device", of(id=2), of(id=1), ALONE)


# ---- both ----


def map_memory(at: int = 0, size: int = PIECE, skip: int = 0, handle=None, flags: int = 0, address=None,
               name: str = "aclrtMapMem"):
    with reserved() as first, physical() as mine:
        start = offset(first, at) if address is None else address
        status = getattr(lib, name)(start, size, skip, mine if handle is None else handle, flags)
        if status == 0:
            ok(lib.aclrtUnmapMem(start))
        return status


def mapping_cases(name: str):
    def of(**changes):
        return lambda: map_memory(name=name, **changes)

    yield case(f"{name}/virPtr/null", of(address=ffi.NULL), of())
    yield case(f"{name}/handle/null", of(handle=ffi.NULL), of())
    yield case(f"{name}/size/zero", of(size=0), of())
    yield case(f"{name}/flags/range", of(flags=1), of())
    yield case(f"{name}/offset/range", of(skip=4096), of())
    yield case(f"{name}/handle/dead", lambda: map_memory(handle=freed_handle(), name=name), of())
    yield case(f"{name}/size/whole", of(size=PIECE - 4096), of())
    yield case(f"{name}/virPtr/unknown", of(at=3 * PIECE + 4096), of(at=3 * PIECE))


def unmap_inside():
    with reserved() as first, physical() as mine:
        ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
        status = lib.aclrtUnmapMem(offset(first, 4096))
        ok(lib.aclrtUnmapMem(first))
        return status


# ---- sharing ----


def export(handle=None, kind: int = 0, flags: int = 0, out: bool = True):
    with physical() as mine:
        number = Out("uint64_t")
        return number.result(lib.aclrtMemExportToShareableHandle(mine if handle is None else handle, kind, flags,
                                                                 number.cell if out else ffi.NULL))


def exported(function):
    """Calls with a number that is known."""
    with physical() as mine:
        number = ffi.new("uint64_t *")
        ok(lib.aclrtMemExportToShareableHandle(mine, 0, 0, number))
        return function(number[0])


def import_memory(number: int | None = None, ordinal: int = 0, out: bool = True):
    def run(known: int):
        made = Out()
        status = lib.aclrtMemImportFromShareableHandle(known if number is None else number, ordinal,
                                                       made.cell if out else ffi.NULL)
        result = made.result(status)
        if status == 0:
            ok(lib.aclrtFreePhysical(made.value))
        return result

    return exported(run)


def allow(number: int | None = None, count: int = 1, pids: bool = True):
    pid = ffi.new("int32_t[1]", [1])
    return exported(lambda known: lib.aclrtMemSetPidToShareableHandle(known if number is None else number,
                                                                      pid if pids else ffi.NULL, count))


UNKNOWN = 1 << 60

RULES = [
    case("aclrtReserveMemAddress/virPtr/null", lambda: reserve(out=False), reserve),
    case("aclrtReserveMemAddress/size/zero", lambda: reserve(0), lambda: reserve(1)),
    case("aclrtReserveMemAddress/alignment/range", lambda: reserve(alignment=3), lambda: reserve(alignment=4)),
    case("aclrtReserveMemAddress/flags/range", lambda: reserve(flags=2), lambda: reserve(flags=1)),
    case("aclrtReserveMemAddress/size/memory", lambda: reserve(HUGE), reserve),
    case("aclrtReleaseMemAddress/virPtr/null", lambda: lib.aclrtReleaseMemAddress(ffi.NULL), reserve),
    case("aclrtReleaseMemAddress/virPtr/unknown", release_inside, reserve),
    case("aclrtMallocPhysical/handle/null", lambda: allocate(out=False), allocate),
    case("aclrtMallocPhysical/size/zero", lambda: allocate(0), allocate),
    case("aclrtMallocPhysical/flags/range", lambda: allocate(flags=1), allocate),
    case("aclrtMallocPhysical/size/granularity", lambda: allocate(PIECE + 4096), lambda: allocate(2 * PIECE)),
    case("aclrtMallocPhysical/size/memory", lambda: allocate(HUGE), allocate),
    *property_cases("aclrtMallocPhysical", allocate),
    case("aclrtFreePhysical/handle/null", lambda: lib.aclrtFreePhysical(ffi.NULL), allocate),
    case("aclrtFreePhysical/handle/dead", lambda: lib.aclrtFreePhysical(freed_handle()), allocate),
    *[entry for name in ("aclrtMapMem", "aclrtMemMapNoAccess") for entry in mapping_cases(name)],
    case("aclrtUnmapMem/virPtr/null", lambda: lib.aclrtUnmapMem(ffi.NULL), map_memory),
    case("aclrtUnmapMem/virPtr/unknown", unmap_inside, map_memory),
    case("aclrtMemGetAllocationGranularity/granularity/null", lambda: granularity(out=False), granularity),
    case("aclrtMemGetAllocationGranularity/option/range", lambda: granularity(option=2), lambda: granularity(option=1)),
    *property_cases("aclrtMemGetAllocationGranularity", granularity),
    case("aclrtMemExportToShareableHandle/handle/null", lambda: export(ffi.NULL), export),
    case("aclrtMemExportToShareableHandle/shareableHandle/null", lambda: export(out=False), export),
    case("aclrtMemExportToShareableHandle/handleType/range", lambda: export(kind=1), export),
    case("aclrtMemExportToShareableHandle/flags/range", lambda: export(flags=2), lambda: export(flags=1)),
    case("aclrtMemExportToShareableHandle/handle/dead", lambda: export(freed_handle()), export),
    case("aclrtMemImportFromShareableHandle/handle/null", lambda: import_memory(out=False), import_memory),
    case("aclrtMemImportFromShareableHandle/deviceId/range", lambda: import_memory(ordinal=2),
         lambda: import_memory(ordinal=1), ALONE),
    case("aclrtMemImportFromShareableHandle/shareableHandle/unknown", lambda: import_memory(UNKNOWN), import_memory),
    case("aclrtMemSetPidToShareableHandle/pid/null", lambda: allow(pids=False), allow),
    case("aclrtMemSetPidToShareableHandle/pidNum/zero", lambda: allow(count=0), allow),
    case("aclrtMemSetPidToShareableHandle/shareableHandle/unknown", lambda: allow(UNKNOWN), allow),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
