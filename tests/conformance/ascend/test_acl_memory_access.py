"""Who may use mapped memory, and what an address belongs to (cann-runtime-3 2)."""

import contextlib

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, Out, case, device, freed_memory, memory, ok
from tests.conformance.ascend.test_acl_ipc_memory import HANDLE_EXPORTER, exporter
from tests.conformance.ascend.test_acl_virtual_memory import PIECE, freed_handle, offset, physical, reserved
from tests.conformance.harness import check_rule

NULL = ffi.NULL


@contextlib.contextmanager
def mapped():
    with device(), reserved() as first, physical() as mine:
        ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
        try:
            yield first
        finally:
            ok(lib.aclrtUnmapMem(first))


def description(flags: int = 3, kind: int = 1, number: int = 0):
    made = ffi.new("aclrtMemAccessDesc[1]")
    made[0].flags, made[0].location.type, made[0].location.id = flags, kind, number
    return made


def set_access(size: int = PIECE, desc=None, count: int = 1, shift: int = 0, address=None):
    with mapped() as first:
        where = offset(first, shift) if address is None else address
        return lib.aclrtMemSetAccess(where, size, description() if desc is None else desc, count)


def get_access(kind: int = 1, number: int = 0, shift: int = 0, address=None, location: bool = True, out: bool = True):
    with mapped() as first:
        where = ffi.new("aclrtMemLocation *", {"type": kind, "id": number})
        flag = Out("uint64_t")
        return flag.result(lib.aclrtMemGetAccess(offset(first, shift) if address is None else address,
                                                 where if location else NULL, flag.cell if out else NULL))


def retain(shift: int = 0, address=None, out: bool = True):
    with mapped() as first:
        handle = Out()
        status = lib.aclrtMemRetainAllocationHandle(offset(first, shift) if address is None else address,
                                                    handle.cell if out else NULL)
        result = handle.result(status)
        if status == 0:
            ok(lib.aclrtFreePhysical(handle.value))
        return result


def address_range(address=None, base: bool = True, size: bool = True):
    with device(), memory() as block:
        first, length = Out(), ffi.new("size_t *")
        return first.result(lib.aclrtMemGetAddressRange(block if address is None else address(),
                                                        first.cell if base else NULL, length if size else NULL))


def properties_of(handle=None, out: bool = True):
    with device(), physical() as mine:
        found = Out("aclrtPhysicalMemProp")
        return found.result(lib.aclrtMemGetAllocationPropertiesFromHandle(mine if handle is None else handle(),
                                                                          found.cell if out else NULL))


def properties_of_imported():
    other = exporter(HANDLE_EXPORTER.format(flags=1))
    with device():
        made, found = Out(), Out("aclrtPhysicalMemProp")
        ok(lib.aclrtMemImportFromShareableHandleV2(ffi.new("uint64_t *", other.ask("number[0]")), 1, 0, made.cell))
        result = found.result(lib.aclrtMemGetAllocationPropertiesFromHandle(made.value, found.cell))
        ok(lib.aclrtFreePhysical(made.value))
        return result


def check_type(count: int = 1, kind: int = 2, reserve: int = 0, addresses: bool = True, out: bool = True):
    with device(), memory() as block:
        result = Out("uint32_t")
        return result.result(lib.aclrtCheckMemType(ffi.new("void *[1]", [block]) if addresses else NULL, count, kind,
                                                   result.cell if out else NULL, reserve))


def map_for_another(number: int = 0, flags: int = 0, size: int = 64, null: bool = False):
    with device(), memory() as block:
        return lib.aclrtMemP2PMap(NULL if null else block, size, number, flags)


RULES = [
    case("aclrtMemSetAccess/virPtr/null", lambda: set_access(address=NULL), set_access),
    case("aclrtMemSetAccess/virPtr/unknown", lambda: set_access(shift=4096), set_access),
    case("aclrtMemSetAccess/desc/null", lambda: set_access(desc=NULL), set_access),
    case("aclrtMemSetAccess/size/zero", lambda: set_access(0), set_access),
    case("aclrtMemSetAccess/size/whole", lambda: set_access(PIECE - 4096), set_access),
    case("aclrtMemSetAccess/count/zero", lambda: set_access(count=0), set_access),
    case("aclrtMemSetAccess/desc/flags", lambda: set_access(desc=description(1)), set_access),
    case("aclrtMemSetAccess/desc/location", lambda: set_access(desc=description(kind=2)), set_access),
    case("aclrtMemSetAccess/desc/host", lambda: set_access(desc=description(kind=0)), set_access),
    case("aclrtMemSetAccess/desc/device", lambda: set_access(desc=description(number=64)), set_access),
    case("aclrtMemGetAccess/virPtr/null", lambda: get_access(address=NULL), get_access),
    case("aclrtMemGetAccess/virPtr/unknown", lambda: get_access(shift=4096), get_access),
    case("aclrtMemGetAccess/location/null", lambda: get_access(location=False), get_access),
    case("aclrtMemGetAccess/flag/null", lambda: get_access(out=False), get_access),
    case("aclrtMemGetAccess/location/location", lambda: get_access(kind=2), get_access),
    case("aclrtMemGetAccess/location/host", lambda: get_access(kind=0), get_access),
    case("aclrtMemGetAccess/location/device", lambda: get_access(number=64), get_access),
    case("aclrtMemRetainAllocationHandle/virPtr/null", lambda: retain(address=NULL), retain),
    case("aclrtMemRetainAllocationHandle/virPtr/unknown", lambda: retain(shift=4096), retain),
    case("aclrtMemRetainAllocationHandle/handle/null", lambda: retain(out=False), retain),
    case("aclrtMemGetAllocationPropertiesFromHandle/handle/null", lambda: properties_of(lambda: NULL), properties_of),
    case("aclrtMemGetAllocationPropertiesFromHandle/handle/dead", lambda: properties_of(freed_handle), properties_of),
    case("aclrtMemGetAllocationPropertiesFromHandle/prop/null", lambda: properties_of(out=False), properties_of),
    case("aclrtMemGetAllocationPropertiesFromHandle/handle/imported", properties_of_imported, properties_of),
    case("aclrtMemGetAddressRange/ptr/null", lambda: address_range(lambda: NULL), address_range),
    case("aclrtMemGetAddressRange/ptr/unknown", lambda: address_range(freed_memory), address_range),
    case("aclrtMemGetAddressRange/pbase/null", lambda: address_range(base=False, size=False),
         lambda: address_range(size=False)),
    case("aclrtCheckMemType/addrList/null", lambda: check_type(addresses=False), check_type),
    case("aclrtCheckMemType/checkResult/null", lambda: check_type(out=False), check_type),
    case("aclrtCheckMemType/size/zero", lambda: check_type(0), check_type),
    case("aclrtCheckMemType/memType/range", lambda: check_type(kind=1), lambda: check_type(kind=0x1A)),
    case("aclrtCheckMemType/reserve/reserved", lambda: check_type(reserve=1), check_type),
    case("aclrtMemP2PMap/devPtr/null", lambda: map_for_another(null=True), map_for_another),
    case("aclrtMemP2PMap/size/zero", lambda: map_for_another(size=0), map_for_another),
    case("aclrtMemP2PMap/flags/range", lambda: map_for_another(flags=1), map_for_another),
    case("aclrtMemP2PMap/dstDevId/range", lambda: map_for_another(64), map_for_another),
    case("aclrtMemP2PMap/devPtr/unreachable", lambda: map_for_another(1), map_for_another, ALONE),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
