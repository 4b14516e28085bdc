"""Rectangular and batched copies, page-locked and registered memory, memory information (cann-runtime 9)."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from understudy.ascend import ffi, lib

from tests import in_step
from tests.conformance.ascend.acl_support import (
    Out, address_of, device, download, freed_memory, host_memory, memory, ok, pointer, upload,
)
from tests.conformance.ascend.test_acl_memory import PAGE, configuration

H2D, D2H, D2D, DEFAULT = 1, 2, 3, 4


@pytest.fixture(autouse=True)
def device_0():
    with device():
        yield


def buffer_of(array):
    return ffi.cast("void *", array.ctypes.data)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_rectangles_there_and_back(width, height, extra_source, extra_target, queued):
    source_pitch, target_pitch = width + extra_source, width + extra_target
    source = numpy.random.default_rng(width * height).integers(0, 256, (height, source_pitch), dtype=numpy.uint8)
    back = numpy.full((height, source_pitch), 0xEE, numpy.uint8)
    with memory(target_pitch * height) as block:
        ok(lib.aclrtMemset(block, target_pitch * height, 0xCC, target_pitch * height))
        if queued:
            copy, stream = lib.aclrtMemcpy2dAsync, ffi.NULL
            ok(copy(block, target_pitch, buffer_of(source), source_pitch, width, height, H2D, stream))
            ok(copy(buffer_of(back), source_pitch, block, target_pitch, width, height, D2H, stream))
            ok(lib.aclrtSynchronizeStream(ffi.NULL))
        else:
            ok(lib.aclrtMemcpy2d(block, target_pitch, buffer_of(source), source_pitch, width, height, DEFAULT))
            ok(lib.aclrtMemcpy2d(buffer_of(back), source_pitch, block, target_pitch, width, height, DEFAULT))
        device_side = numpy.frombuffer(download(block, target_pitch * height), numpy.uint8).reshape(height, -1)
    assert (device_side[:, :width] == source[:, :width]).all() and (device_side[:, width:] == 0xCC).all()
    assert (back[:, :width] == source[:, :width]).all() and (back[:, width:] == 0xEE).all()


def test_a_copy_onto_itself_does_nothing():
    """cann-runtime 8, aclrtMemcpy: dst == src gives 0."""
    with memory(64) as block:
        ok(lib.aclrtMemcpy(block, 64, block, 64, D2D))


@pytest.mark.parametrize("pitch", [2**63, 2**64 - 1])
def test_absurd_pitches(pitch):
    data = ffi.new("char[64]")
    with memory(64) as block:
        assert lib.aclrtMemcpy2d(block, pitch, data, 8, 8, 8, H2D) == 107000
        assert lib.aclrtMemcpy2d(block, 8, data, pitch, 8, 8, H2D) == 107000
        assert lib.aclrtMemcpy2d(block, pitch, data, 8, 8, 1, H2D) == 0


def batch(copies, attribute_starts=(0,), types=(("DEVICE", "HOST"),)):
    """Runs copies given as (destination, limit, source, size); gives status and failIndex."""
    count = len(copies)
    attributes = ffi.new("aclrtMemcpyBatchAttr[]", len(types))
    for attribute, (to, came_from) in in_step(attributes, types):
        attribute.dstLoc.type = getattr(lib, f"ACL_MEM_LOCATION_TYPE_{to}")
        attribute.srcLoc.type = getattr(lib, f"ACL_MEM_LOCATION_TYPE_{came_from}")
    fail = ffi.new("size_t *", 77)
    status = lib.aclrtMemcpyBatch(
        ffi.new("void *[]", [copy[0] for copy in copies]), ffi.new("size_t[]", [copy[1] for copy in copies]),
        ffi.new("void *[]", [copy[2] for copy in copies]), ffi.new("size_t[]", [copy[3] for copy in copies]), count,
        attributes, ffi.new("size_t[]", attribute_starts), len(types), fail)  # fmt: skip
    return status, fail[0]


def test_batches_copy_both_ways():
    data, back = ffi.new("char[64]", b"up" * 32), ffi.new("char[64]")
    with memory(64) as first, memory(64) as second:
        upload(second, b"down" * 16)
        locations = (("DEVICE", "HOST"), ("HOST", "DEVICE"))
        assert batch([(first, 64, data, 64), (back, 64, second, 64)], (0, 1), locations) == (0, 77)
        assert download(first, 64) == b"up" * 32 and bytes(ffi.buffer(back)) == b"down" * 16


def test_batches_stop_at_the_first_copy_that_does_not_fit():
    data = ffi.new("char[200]", b"x" * 199)
    with memory(64) as first, memory(64) as second:
        upload(second, bytes(64))
        gone = freed_memory()
        assert batch([(first, 64, data, 64), (gone, 64, data, 64), (second, 64, data, 64)]) == (107000, 1)
        assert download(first, 4) == b"xxxx" and download(second, 4) == bytes(4)
        assert batch([(first, 64, data, 0), (second, 8, data, 8)]) == (0, 77)  # sizes of 0 are skipped
        assert batch([(ffi.NULL, 0, ffi.NULL, 0)]) == (0, 77)
        assert batch([(first, 64, data, 64)], (1,)) == (100000, 2**64 - 1)


def test_page_locked_memory_is_copied_asynchronously_and_read_by_the_host():
    with memory(1 << 20) as block, host_memory(1 << 20) as pinned:
        ffi.memmove(pinned, b"\x05" * (1 << 20), 1 << 20)
        ok(lib.aclrtMemcpyAsync(block, 1 << 20, pinned, 1 << 20, H2D, ffi.NULL))
        ok(lib.aclrtMemsetAsync(pinned, 1 << 20, 6, 1 << 20, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        assert download(block, 1 << 20) == b"\x05" * (1 << 20)
        assert bytes(ffi.buffer(pinned, 1 << 20)) == b"\x06" * (1 << 20)


def test_registered_memory():
    attributes, device_pointer = ffi.new("aclrtPtrAttributes *"), ffi.new("void **")
    ok(lib.aclrtPointerGetAttributes(PAGE, attributes))
    assert attributes.location.type == lib.ACL_MEM_LOCATION_TYPE_UNREGISTERED
    ok(lib.aclrtHostRegister(PAGE, 4096, 0, device_pointer))
    assert device_pointer[0] == ffi.cast("void *", PAGE)
    ok(lib.aclrtPointerGetAttributes(PAGE + 4095, attributes))
    assert (attributes.location.type, attributes.location.id) == (lib.ACL_MEM_LOCATION_TYPE_HOST, 0)
    ok(lib.aclrtHostGetDevicePointer(PAGE, device_pointer, 0))
    assert device_pointer[0] == ffi.cast("void *", PAGE)
    with memory(64) as block:
        ffi.memmove(PAGE, b"registered", 10)
        ok(lib.aclrtMemcpyAsync(block, 64, PAGE, 10, H2D, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        assert download(block, 10) == b"registered"
    assert lib.aclrtHostUnregister(PAGE + 1) == 507911
    ok(lib.aclrtHostUnregister(PAGE))
    assert lib.aclrtHostGetDevicePointer(PAGE, device_pointer, 0) == 507911


def ones(address) -> int:
    """An operator writes 1 into a page of floats; the status of the wait for it."""
    stream, shape = Out(), ffi.new("int64_t[1]", [1024])
    ok(lib.aclrtCreateStream(stream.cell))
    tensor = lib.aclCreateTensor(shape, 1, lib.ACL_FLOAT, ffi.NULL, 0, lib.ACL_FORMAT_ND, shape, 1, address)
    size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
    ok(lib.aclnnInplaceOneGetWorkspaceSize(tensor, size, executor))
    ok(lib.aclnnInplaceOne(ffi.NULL, 0, executor[0], stream.value))
    status = lib.aclrtSynchronizeStream(stream.value)
    ok(lib.aclDestroyTensor(tensor))
    ok(lib.aclrtDestroyStream(stream.value))
    return status


def test_kernels_see_mapped_host_memory():
    device_pointer = ffi.new("void **")
    with host_memory(8192) as pinned:
        for start in (PAGE, ffi.cast("char *", pinned)):
            ffi.memmove(start, bytes(8192), 8192)
            assert ones(start) == 507015
            ok(lib.aclrtHostRegister(start, 4096, 0, device_pointer))
            assert ones(device_pointer[0]) == 0
            assert ones(start + 4096) == ones(start + 4) == 507015  # not registered, and not all of it
            ok(lib.aclrtHostUnregister(start))
            assert ones(start) == 507015
            written = numpy.frombuffer(bytes(ffi.buffer(start, 8192)), numpy.float32)
            assert (written == numpy.repeat([1, 0], 1024)).all()
            for flag, expected in ((lib.ACL_HOST_REG_MAPPED, 0), (lib.ACL_HOST_REG_PINNED, 507015)):
                ok(lib.aclrtHostRegisterV2(start, 4096, flag))
                assert ones(start) == expected
                ok(lib.aclrtHostUnregister(start))


def test_memory_with_its_address_on_both_sides():
    device_pointer, made, found = ffi.new("void **"), Out(), ffi.new("char[4096]")
    for flag, registered in ((0, 107000), (1, 0)):
        cfg = configuration(3, flag)
        ok(lib.aclrtMallocHostWithCfg(made.cell, 4096, cfg[0]))
        ffi.memmove(made.value, b"\x07" * 4096, 4096)
        assert lib.aclrtMemcpy(found, 4096, made.value, 4096, D2H) == 107000
        ok(lib.aclrtHostRegister(made.value, 4096, 0, device_pointer))
        assert lib.aclrtMemcpy(found, 4096, device_pointer[0], 4096, D2H) == registered
        with memory(4096) as block:
            ok(lib.aclrtMemcpy(block, 4096, made.value, 4096, H2D))
            assert lib.aclrtMemcpy(block, 4096, made.value, 4096, D2D) == registered
            assert download(block, 4096) == b"\x07" * 4096
        ok(lib.aclrtHostUnregister(made.value))
        assert lib.aclrtMemcpy(found, 4096, made.value, 4096, D2H) == 107000
        ok(lib.aclrtFreeHost(made.value))
    assert bytes(ffi.buffer(found)) == b"\x07" * 4096


def test_attributes_of_pointers():
    attributes = ffi.new("aclrtPtrAttributes *")

    def kind(address):
        ok(lib.aclrtPointerGetAttributes(address, attributes))
        return attributes.location.type

    with memory(100) as block, host_memory(100) as pinned:
        assert kind(block) == kind(pointer(address_of(block) + 99)) == lib.ACL_MEM_LOCATION_TYPE_DEVICE
        assert kind(pinned) == lib.ACL_MEM_LOCATION_TYPE_HOST
    assert kind(freed_memory()) == lib.ACL_MEM_LOCATION_TYPE_UNREGISTERED


def memory_info():
    free, total = ffi.new("size_t *"), ffi.new("size_t *")
    ok(lib.aclrtGetMemInfo(lib.ACL_HBM_MEM, free, total))
    return free[0], total[0]


def test_memory_information_follows_allocations():
    free, total = memory_info()
    info, count = ffi.new("aclrtMemUsageInfo *"), ffi.new("size_t *")
    with memory((1 << 20) - 32):
        assert memory_info() == (free - (1 << 20), total)
        ok(lib.aclrtGetMemUsageInfo(0, info, 1, count))
        assert count[0] == 1 and ffi.string(info.name) == b"APP"
        assert info.curMemSize == total - free + (1 << 20) <= info.memPeakSize
    assert memory_info() == (free, total)


@pytest.mark.parametrize("name, spare", [("aclrtMallocAlign32", 0), ("aclrtMallocCached", 32)])
@pytest.mark.parametrize("size", [1, 31, 32, 33, 4096])
def test_rounding_of_the_other_allocators(name, spare, size):
    made, free = Out(), memory_info()[0]
    ok(getattr(lib, name)(made.cell, size, 0))
    usable = (size + spare + 31) // 32 * 32
    assert memory_info()[0] == free - usable
    mapped = (usable + 4095) // 4096 * 4096
    assert lib.aclrtMemset(made.value, mapped, 0, mapped) == 0
    assert lib.aclrtMemset(made.value, mapped + 1, 0, mapped + 1) == 107000
    ok(lib.aclrtFree(made.value))


def test_configurations_of_allocations():
    for function in (lib.aclrtMallocWithCfg, lib.aclrtMallocForTaskScheduler):
        for cfg in ((ffi.NULL,), configuration(0), configuration(1, 33), configuration(2, 0), configuration(3, 1)):
            made = Out()
            ok(function(made.cell, 64, 0, cfg[0]))
            ok(lib.aclrtFreeWithDevSync(made.value))
    made = Out()
    ok(lib.aclrtMallocHostWithCfg(made.cell, 64, ffi.NULL))
    ok(lib.aclrtFreeHostWithDevSync(made.value))


def test_free_with_device_synchronisation_lets_queued_work_finish():
    made = Out()
    with memory(64) as block:
        ok(lib.aclrtMalloc(made.cell, 64, 0))
        ok(lib.aclrtMemsetAsync(made.value, 64, 8, 64, ffi.NULL))
        ok(lib.aclrtMemcpyAsync(block, 64, made.value, 64, 3, ffi.NULL))
        ok(lib.aclrtFreeWithDevSync(made.value))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        assert download(block, 64) == bytes([8] * 64)
