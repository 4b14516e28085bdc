"""Physical memory mapped at reserved addresses behaves as any device memory (cann-runtime 9, doc 11-04)."""

import numpy
import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    Out, address_of, device, download, freed_memory, memory, ok, pointer, upload,
)
from tests.conformance.ascend.test_acl_virtual_memory import PAGE, PIECE, offset, physical, properties, reserved
from tests.conformance.harness import last_text, run_python


@pytest.fixture(autouse=True)
def device_0():
    with device():
        yield


def free_bytes() -> int:
    free, total = ffi.new("size_t *"), ffi.new("size_t *")
    ok(lib.aclrtGetMemInfo(lib.ACL_HBM_MEM, free, total))
    return free[0]


def test_memory_is_charged_when_it_is_allocated_not_when_it_is_mapped():
    before = free_bytes()
    with reserved(8 * PIECE) as first:
        assert free_bytes() == before
        with physical(2 * PIECE) as mine:
            assert free_bytes() == before - 2 * PIECE
            ok(lib.aclrtMapMem(first, 2 * PIECE, 0, mine, 0))
            assert free_bytes() == before - 2 * PIECE
        assert free_bytes() == before - 2 * PIECE  # the mapping still needs it
        ok(lib.aclrtUnmapMem(first))
        assert free_bytes() == before


def test_content_survives_being_mapped_elsewhere():
    with reserved() as first, physical() as mine:
        ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
        upload(first, b"remember")
        ok(lib.aclrtUnmapMem(first))
        elsewhere = offset(first, 2 * PIECE)
        ok(lib.aclrtMapMem(elsewhere, PIECE, 0, mine, 0))
        assert download(elsewhere, 8) == b"remember"
        ok(lib.aclrtUnmapMem(elsewhere))


def test_one_memory_at_two_places():
    with reserved() as first, physical() as mine:
        second = offset(first, PIECE)
        for place in (first, second):
            ok(lib.aclrtMapMem(place, PIECE, 0, mine, 0))
        upload(first, b"here")
        assert download(second, 4) == b"here"
        for place in (first, second):
            ok(lib.aclrtUnmapMem(place))


def test_copies_and_fills_cross_adjacent_mappings():
    with reserved() as first, physical() as one, physical() as two:
        ok(lib.aclrtMapMem(offset(first, PIECE), PIECE, 0, two, 0))
        ok(lib.aclrtMapMem(first, PIECE, 0, one, 0))
        data = numpy.random.default_rng(1).integers(0, 256, 2 * PIECE, dtype=numpy.uint8).tobytes()
        upload(first, data)
        assert download(first, 2 * PIECE) == data
        middle = offset(first, PIECE - 10)
        ok(lib.aclrtMemset(middle, 20, 7, 20))
        assert download(middle, 20) == bytes([7] * 20)
        assert lib.aclrtMemset(offset(first, 1), 2 * PIECE, 0, 2 * PIECE) == 107000
        ok(lib.aclrtUnmapMem(first))
        assert lib.aclrtMemset(middle, 20, 0, 20) == 107000
        assert download(offset(first, PIECE), 10) == bytes([7] * 10)
        ok(lib.aclrtUnmapMem(offset(first, PIECE)))


def soft_margin(address, count: int) -> int:
    """An operator that works in place on `count` floats; the status of the wait for it."""
    stream = Out()
    ok(lib.aclrtCreateStream(stream.cell))
    shape = ffi.new("int64_t[1]", [count])
    tensor = lib.aclCreateTensor(shape, 1, lib.ACL_FLOAT, ffi.NULL, 0, lib.ACL_FORMAT_ND, shape, 1, address)
    size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
    ok(lib.aclnnSoftMarginLossBackwardGetWorkspaceSize(tensor, tensor, tensor, 0, tensor, size, executor))
    ok(lib.aclnnSoftMarginLossBackward(ffi.NULL, 0, executor[0], stream.value))
    status = lib.aclrtSynchronizeStream(stream.value)
    ok(lib.aclDestroyTensor(tensor))
    ok(lib.aclrtDestroyStream(stream.value))
    return status


def test_kernels_cross_adjacent_mappings():
    count = 64
    with reserved() as first, physical() as one, physical() as two:
        ok(lib.aclrtMapMem(first, PIECE, 0, one, 0))
        ok(lib.aclrtMapMem(offset(first, PIECE), PIECE, 0, two, 0))
        place = offset(first, PIECE - count * 2)
        x = numpy.linspace(-2, 2, count, dtype=numpy.float32)
        upload(place, x.tobytes())
        assert soft_margin(place, count) == 0
        # g * -y * e^(-xy) / (1 + e^(-xy)) with g = x = y
        wide = x.astype(numpy.float64)
        expected = wide * -wide * numpy.exp(-wide * wide) / (1 + numpy.exp(-wide * wide))
        numpy.testing.assert_allclose(numpy.frombuffer(download(place, count * 4), numpy.float32), expected, rtol=1e-5,
                                      atol=1e-7)
        ok(lib.aclrtUnmapMem(offset(first, PIECE)))
        assert soft_margin(place, count) == 507015
        ok(lib.aclrtUnmapMem(first))


def test_reserved_addresses_without_memory_cannot_be_used():
    with reserved() as first:
        target = ffi.new("char[8]")
        for refuse in (lambda: lib.aclrtMemset(first, 8, 0, 8),
                       lambda: lib.aclrtMemcpy(target, 8, first, 8, lib.ACL_MEMCPY_DEVICE_TO_HOST),
                       lambda: lib.aclrtMemcpy(first, 8, target, 8, lib.ACL_MEMCPY_HOST_TO_DEVICE)):
            assert refuse() == 107000
            assert "is a reserved address, and no memory is mapped there" in last_text()


def test_a_mapping_is_not_freed_and_an_allocation_not_unmapped():
    with reserved() as first, physical() as mine, memory() as block:
        ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
        assert lib.aclrtFree(first) == 107000
        assert lib.aclrtUnmapMem(block) == 107000
        assert lib.aclrtUnmapMem(freed_memory()) == 107000
        assert lib.aclrtReleaseMemAddress(first) == 107000  # still mapped
        assert "still mapped" in last_text()
        ok(lib.aclrtUnmapMem(first))


@pytest.mark.parametrize("alignment", [0, 1, 4096, PIECE, 1 << 30])
@pytest.mark.parametrize("size", [1, 4096, PIECE + 1, 1 << 28])
def test_reserved_addresses_are_aligned_and_do_not_overlap(size, alignment):
    taken = []
    for _ in range(3):
        made = Out()
        ok(lib.aclrtReserveMemAddress(made.cell, size, alignment, ffi.NULL, 0))
        start = address_of(made.value)
        assert start % max(alignment, PIECE) == 0
        assert all(start + size <= other or other + size <= start for other in taken)
        taken.append(start)
        ok(lib.aclrtReleaseMemAddress(made.value))  # rests, so that the next one lies elsewhere


@pytest.mark.parametrize("attribute, expected", [
    ("ACL_HBM_MEM", PIECE), ("ACL_HBM_MEM_HUGE", PIECE), ("ACL_HBM_MEM_NORMAL", PAGE), ("ACL_MEM_NORMAL", PAGE),
    ("ACL_HBM_MEM_HUGE1G", 1 << 30), ("ACL_MEM_P2P_HUGE1G", 1 << 30), ("ACL_MEM_HUGE", PIECE),
])  # fmt: skip
def test_granularity(attribute, expected):
    answer = ffi.new("size_t *")
    ok(lib.aclrtMemGetAllocationGranularity(properties(memAttr=getattr(lib, attribute)), 0, answer))
    assert answer[0] == expected


def test_shared_memory_lives_as_long_as_any_handle():
    before = free_bytes()
    number, imported = ffi.new("uint64_t *"), Out()
    with reserved() as first:
        with physical() as mine:
            ok(lib.aclrtMemExportToShareableHandle(mine, 0, 0, number))
            ok(lib.aclrtMemImportFromShareableHandle(number[0], 0, imported.cell))
            ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
            upload(first, b"shared")
            ok(lib.aclrtUnmapMem(first))
        ok(lib.aclrtMapMem(first, PIECE, 0, imported.value, 0))
        assert download(first, 6) == b"shared"
        ok(lib.aclrtUnmapMem(first))
        ok(lib.aclrtFreePhysical(imported.value))
    assert free_bytes() == before
    assert lib.aclrtMemImportFromShareableHandle(number[0], 0, imported.cell) == 107000


def test_attributes_of_mapped_addresses():
    attributes = ffi.new("aclrtPtrAttributes *")
    with reserved() as first, physical() as mine:
        ok(lib.aclrtPointerGetAttributes(first, attributes))
        assert attributes.location.type == lib.ACL_MEM_LOCATION_TYPE_UNREGISTERED
        ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
        ok(lib.aclrtPointerGetAttributes(offset(first, 8), attributes))
        assert (attributes.location.type, attributes.location.id) == (lib.ACL_MEM_LOCATION_TYPE_DEVICE, 0)
        ok(lib.aclrtUnmapMem(first))


def test_reset_of_the_device_undoes_mappings():
    source = """
from tests.conformance.ascend.test_acl_virtual_memory import *
from understudy.ascend import ffi, lib
ok(lib.aclrtSetDevice(0))
with reserved() as first, physical() as mine:
    ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
    ok(lib.aclrtResetDevice(0)); ok(lib.aclrtSetDevice(0))
    print(lib.aclrtMemset(first, 8, 0, 8), lib.aclrtUnmapMem(first))
"""
    assert run_python(source, {}).split() == ["107000", "107000"]


def test_pieces_of_an_expandable_segment():
    """As an allocator does that grows its segment: map piece by piece, unmap from the end, map again."""
    with reserved(64 * PIECE) as first:
        handles = []
        for round_number in range(2):
            for index in range(8):
                made = Out()
                ok(lib.aclrtMallocPhysical(made.cell, PIECE, properties(), 0))
                ok(lib.aclrtMapMem(offset(first, index * PIECE), PIECE, 0, made.value, 0))
                handles.append(made.value)
                ok(lib.aclrtMemset(first, (index + 1) * PIECE, index + round_number, (index + 1) * PIECE))
            assert download(pointer(address_of(first) + 7 * PIECE), 4) == bytes([7 + round_number] * 4)
            for index in reversed(range(8)):
                ok(lib.aclrtUnmapMem(offset(first, index * PIECE)))
                ok(lib.aclrtFreePhysical(handles.pop()))


def test_other_devices_use_a_mapping_that_they_were_let_into():
    source = """
from tests.conformance.ascend.test_acl_memory_access import *
def write():
    with device(1):
        return lib.aclrtValueWrite(first, 7, 0, NULL) or lib.aclrtSynchronizeStream(NULL)
def access(number):
    flag = ffi.new("uint64_t *")
    ok(lib.aclrtMemGetAccess(first, ffi.new("aclrtMemLocation *", {"type": 1, "id": number}), flag))
    return flag[0]
with mapped() as first:
    print(access(0), access(1), write() != 0)
    ok(lib.aclrtMemSetAccess(first, PIECE, description(number=1), 1))
    print(access(1), write())
"""
    assert run_python(source, {"UNDERSTUDY_DEVICES": "2"}).split() == ["3", "0", "True", "3", "0"]


def test_a_handle_that_was_kept_holds_the_memory():
    kept = Out()
    with reserved() as first:
        with physical() as mine:
            ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
            upload(first, b"kept")
            ok(lib.aclrtMemRetainAllocationHandle(first, kept.cell))
            ok(lib.aclrtUnmapMem(first))
        ok(lib.aclrtMapMem(first, PIECE, 0, kept.value, 0))
        assert download(first, 4) == b"kept"
        ok(lib.aclrtUnmapMem(first))
        ok(lib.aclrtFreePhysical(kept.value))


def test_what_addresses_belong_to():
    base, size, answer = ffi.new("void **"), ffi.new("size_t *"), ffi.new("uint32_t *")

    def is_all(kind: int, *addresses) -> bool:
        ok(lib.aclrtCheckMemType(ffi.new("void *[]", addresses), len(addresses), kind, answer, 0))
        return bool(answer[0])

    with memory(100) as block, reserved() as first, physical() as mine:
        ok(lib.aclrtMemGetAddressRange(offset(block, 99), base, size))
        assert (base[0], size[0]) == (block, 100)
        ok(lib.aclrtMapMem(first, PIECE, 0, mine, 0))
        ok(lib.aclrtMemGetAddressRange(offset(first, 5), base, ffi.NULL))
        assert base[0] == first
        assert is_all(2, block) and is_all(0x10, first) and is_all(0x12, block, first)
        assert not is_all(2, block, first) and not is_all(0x1A, ffi.new("char *"))
        ok(lib.aclrtUnmapMem(first))


def test_memory_mapped_without_access_opens_to_the_devices_that_are_named():
    source = """
from tests.conformance.ascend.acl_support import *
from tests.conformance.ascend.test_acl_memory_access import description
from tests.conformance.ascend.test_acl_virtual_memory import *
def touch(ordinal):
    with device(ordinal), stream() as made:
        status = lib.aclrtValueWrite(first, 7, 0, made) or lib.aclrtSynchronizeStream(made)
        lib.aclrtStreamAbort(made)
        return status
def access(ordinal):
    flag = ffi.new("uint64_t *")
    ok(lib.aclrtMemGetAccess(first, ffi.new("aclrtMemLocation *", {"type": 1, "id": ordinal}), flag))
    return flag[0]
def look():
    return [access(0), access(1), touch(0), touch(1), lib.aclrtMemset(first, 64, 0, 64)]
with device(0), device(1), device(0), reserved() as first, physical() as mine:
    ok(lib.aclrtMemMapNoAccess(first, PIECE, 0, mine, 0))
    before = look()
    ok(lib.aclrtMemSetAccess(first, PIECE, description(number=1), 1))
    one = look()
    ok(lib.aclrtMemSetAccess(first, PIECE, description(number=0), 1))
    both = look()
    ok(lib.aclrtUnmapMem(first))
print([before, one, both])
"""
    kernel, copy = 507015, 107000
    assert run_python(source, {"UNDERSTUDY_DEVICES": "2"}).strip() == str(
        [[0, 0, kernel, kernel, copy], [0, 3, kernel, 0, 0], [3, 3, 0, 0, 0]])


def test_the_properties_of_a_handle_are_those_it_was_made_with():
    made, found = Out(), ffi.new("aclrtPhysicalMemProp *")
    ok(lib.aclrtMallocPhysical(made.cell, 4096, properties(memAttr=lib.ACL_HBM_MEM_NORMAL), 0))
    ok(lib.aclrtMemGetAllocationPropertiesFromHandle(made.value, found))
    assert (found.handleType, found.allocationType, found.memAttr) == (0, 0, lib.ACL_HBM_MEM_NORMAL)
    assert (found.location.type, found.location.id) == (lib.ACL_MEM_LOCATION_TYPE_DEVICE, 0)
    ok(lib.aclrtFreePhysical(made.value))
