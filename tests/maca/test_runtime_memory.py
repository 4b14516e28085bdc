"""Memory of the runtime: what is allocated, copied, freed, and who may touch it (maca-runtime 5.5 to 5.8, 5.14)."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.maca import ffi, lib

from tests.conformance.harness import last_text
from tests.maca import runtime_support as rt

NULL = ffi.NULL


def address(pointer):
    return int(ffi.cast("uintptr_t", pointer))


def free_bytes():
    free, total = ffi.new("size_t *"), ffi.new("size_t *")
    rt.ok(lib.mcMemGetInfo(free, total))
    assert free[0] <= total[0] <= 64 << 30
    return free[0]


def attributes(pointer):
    return rt.made("mcPointerAttribute_t", lib.mcPointerGetAttributes, ffi.cast("void *", pointer))


def pattern(size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8).tobytes()


# ---- allocation ----


@pytest.mark.parametrize("make", [rt.device_memory, rt.pinned_memory, rt.managed_memory])
def test_blocks_are_aligned_and_apart(make):
    sizes = [1, 255, 256, 257, 1000, 4097, 1 << 20]
    blocks = sorted((address(make(size)), size) for size in sizes)
    assert all(start % 256 == 0 for start, _ in blocks)
    assert all(start + size <= following for (start, size), (following, _) in zip(blocks, blocks[1:]))


def test_empty_memory_is_null_and_null_may_be_freed():
    assert rt.device_memory(0) == rt.pinned_memory(0) == NULL
    assert rt.made("void *", lib.mcMallocAsync, 0, NULL) == NULL
    assert lib.mcFree(NULL) == lib.mcFreeHost(NULL) == lib.mcFreeAsync(NULL, NULL) == 0


def test_memory_info_counts_device_memory():
    before = free_bytes()
    memory = rt.device_memory(1 << 20)
    assert before - free_bytes() == 1 << 20
    rt.ok(lib.mcFree(memory))
    assert free_bytes() == before
    pinned = rt.pinned_memory(1 << 20)
    assert free_bytes() == before
    rt.ok(lib.mcFreeHost(pinned))


def test_a_full_device_has_room_again_after_a_free():
    size = free_bytes() // 2 + 1
    first = rt.device_memory(size)
    assert lib.mcMalloc(ffi.new("void **"), size) == lib.mcErrorMemoryAllocation
    rt.ok(lib.mcFree(first))
    rt.ok(lib.mcFree(rt.device_memory(size)))


def test_many_blocks_come_and_go():
    before = free_bytes()
    for _ in range(5):
        blocks = [rt.device_memory(1 + 37 * i) for i in range(200)]
        assert len({address(block) for block in blocks}) == 200
        for block in blocks[::2] + blocks[1::2]:
            rt.ok(lib.mcFree(block))
    assert free_bytes() == before


# ---- copies ----


@pytest.mark.parametrize("size", [1, 2, 3, 255, 256, 257, 1009, 4096, 4097, (1 << 20) + 3])
@pytest.mark.parametrize("offset", [0, 1])
def test_bytes_survive_the_way_there_and_back(size, offset):
    content, memory, other = pattern(size, size), rt.device_memory(size + offset), rt.device_memory(size + offset)
    rt.write(memory + offset, content)
    rt.ok(lib.mcMemcpy(other + offset, memory + offset, size, rt.D2D))
    assert rt.read(other + offset, size) == content
    rt.ok(lib.mcFree(memory))
    rt.ok(lib.mcFree(other))


@pytest.mark.parametrize("value", [0, 1, 0x7F, 0xFF, 0x1FF, -1, -256, 2**31 - 1])
def test_memset_takes_the_low_byte(value):
    memory = rt.device_memory(100)
    rt.write(memory, bytes(range(100)))
    rt.ok(lib.mcMemset(memory + 1, value, 98))
    assert rt.read(memory, 100) == b"\0" + bytes([value & 0xFF]) * 98 + bytes([99])


@settings(max_examples=60, deadline=None)
@given(width=st.integers(1, 40), height=st.integers(1, 20), gap_to=st.integers(0, 9), gap_from=st.integers(0, 9),
       asynchronous=st.booleans())
def test_rectangles_copy_rows_and_leave_the_gaps(width, height, gap_to, gap_from, asynchronous):
    to_pitch, from_pitch = width + gap_to, width + gap_from
    source = np.frombuffer(pattern(from_pitch * height), np.uint8).reshape(height, from_pitch)
    expected = np.full((height, to_pitch), 0xEE, np.uint8)
    memory = rt.device_memory(to_pitch * height)
    rt.write(memory, expected.tobytes())
    arguments = [memory, to_pitch, ffi.from_buffer(source), from_pitch, width, height, rt.H2D]
    if asynchronous:
        rt.ok(lib.mcMemcpy2DAsync(*arguments, NULL))
    else:
        rt.ok(lib.mcMemcpy2D(*arguments))
    expected[:, :width] = source[:, :width]
    assert rt.read(memory, to_pitch * height) == expected.tobytes()
    rt.ok(lib.mcFree(memory))


def test_a_refused_copy_touches_nothing():
    memory, target = rt.device_memory(64), rt.host_memory(100)
    rt.write(memory, b"a" * 64)
    assert lib.mcMemcpy(target, memory, 65, rt.D2H) == lib.mcErrorInvalidValue
    assert ffi.buffer(target)[:] == bytes(100)
    assert lib.mcMemcpy(memory + 1, pattern(64), 64, rt.H2D) == lib.mcErrorInvalidValue
    assert lib.mcMemset(memory + 1, 0, 64) == lib.mcErrorInvalidValue
    assert rt.read(memory, 64) == b"a" * 64


def test_a_refusal_names_the_allocation():
    memory = rt.device_memory(64)
    assert lib.mcMemcpy(rt.host_memory(100), memory + 60, 5, rt.D2H) == lib.mcErrorInvalidValue
    text = last_text()
    assert "64 bytes" in text and "mcMalloc" in text and f"{address(memory + 60):#x}" in text


# ---- memory that both sides reach ----


def test_page_locked_memory_is_the_hosts():
    memory = rt.pinned_memory(64)
    ffi.memmove(memory, b"q" * 64, 64)
    device = rt.device_memory(64)
    rt.ok(lib.mcMemcpyAsync(device, memory, 64, rt.H2D, NULL))
    rt.ok(lib.mcMemsetAsync(memory, 1, 32, NULL))
    rt.ok(lib.mcDeviceSynchronize())
    assert rt.read(device, 64) == b"q" * 64
    assert ffi.buffer(memory, 64)[:] == b"\1" * 32 + b"q" * 32
    seen = rt.made("void *", lib.mcHostGetDevicePointer, memory + 5, 0)
    assert seen == memory + 5


def test_managed_memory_is_everybodys():
    memory = rt.managed_memory(64)
    ffi.memmove(memory, b"m" * 64, 64)
    rt.ok(lib.mcMemset(memory + 10, 2, 10))
    assert ffi.buffer(memory, 64)[:] == b"m" * 10 + b"\2" * 10 + b"m" * 44
    rt.ok(lib.mcFree(memory))


def test_registered_memory_is_page_locked_until_it_is_unregistered():
    memory = rt.host_memory(1000)
    assert attributes(memory).type == lib.mcMemoryTypeUnregistered
    rt.ok(lib.mcHostRegister(memory + 100, 200, lib.mcHostRegisterPortable))
    assert [attributes(memory + at).type for at in (99, 100, 299, 300)] == [0, 1, 1, 0]
    rt.ok(lib.mcMemset(memory + 100, 3, 200))
    assert ffi.buffer(memory)[:] == bytes(100) + b"\3" * 200 + bytes(700)
    rt.ok(lib.mcHostUnregister(memory + 100))
    assert lib.mcHostUnregister(memory + 100) == lib.mcErrorHostMemoryNotRegistered
    assert attributes(memory + 100).type == lib.mcMemoryTypeUnregistered


def test_memory_beside_a_registered_range_is_ordinary():
    memory, device = rt.host_memory(256), rt.device_memory(256)
    ffi.memmove(memory, bytes(range(256)), 256)
    rt.ok(lib.mcHostRegister(memory + 64, 64, 0))
    for start, end in [(0, 64), (64, 128), (128, 256)]:
        rt.ok(lib.mcMemcpy(device, memory + start, end - start, rt.H2D))
        assert rt.read(device, end - start) == bytes(range(start, end))
    rt.ok(lib.mcHostUnregister(memory + 64))


def test_pointer_attributes():
    size = 100
    for make, kind, host_sees in [(rt.device_memory, lib.mcMemoryTypeDevice, False),
                                  (rt.pinned_memory, lib.mcMemoryTypeHost, True),
                                  (rt.managed_memory, lib.mcMemoryTypeManaged, True)]:
        memory = make(size)
        for at in (0, 1, size - 1):
            seen = attributes(memory + at)
            assert (seen.type, seen.memoryType, seen.device) == (kind, kind, 0)
            assert seen.devicePointer == memory + at
            assert seen.hostPointer == (memory + at if host_sees else NULL)
            assert seen.isManaged == (kind == lib.mcMemoryTypeManaged)
    for pointer in (rt.host_memory(), rt.freed_memory(), ffi.cast("void *", 8)):
        seen = attributes(pointer)
        assert (seen.type, seen.device, seen.devicePointer, seen.hostPointer, seen.isManaged) == (0, -2, NULL, NULL, 0)


# ---- frees wait ----


@rt.needs_a_gate
@pytest.mark.parametrize("flags", [lib.mcStreamDefault, lib.mcStreamNonBlocking])
def test_free_waits_for_the_work_of_the_device(flags):
    memory, target, own = rt.device_memory(64), rt.pinned_memory(64), rt.stream(flags)
    rt.write(memory, b"w" * 64)
    gate = rt.Gate(own)
    rt.ok(lib.mcMemcpyAsync(target, memory, 64, rt.D2H, own))
    timer = threading.Timer(0.05, gate.open)
    timer.start()
    rt.ok(lib.mcFree(memory))
    assert ffi.buffer(target, 64)[:] == b"w" * 64
    rt.ok(lib.mcStreamSynchronize(own))


@rt.needs_a_gate
def test_freeing_page_locked_memory_waits_too():
    memory, source, own = rt.device_memory(64), rt.pinned_memory(64), rt.stream()
    ffi.memmove(source, b"w" * 64, 64)
    gate = rt.Gate(own)
    rt.ok(lib.mcMemcpyAsync(memory, source, 64, rt.H2D, own))
    timer = threading.Timer(0.05, gate.open)
    timer.start()
    rt.ok(lib.mcFreeHost(source))
    assert rt.read(memory, 64) == b"w" * 64


# ---- stream-ordered memory ----


@rt.needs_a_gate
def test_memory_is_freed_in_the_order_of_the_stream():
    own, target = rt.stream(), rt.pinned_memory(64)
    memory = rt.made("void *", lib.mcMallocAsync, 64, own)
    gate = rt.Gate(own)
    rt.ok(lib.mcMemsetAsync(memory, 5, 64, own))
    rt.ok(lib.mcMemcpyAsync(target, memory, 64, rt.D2H, own))
    rt.ok(lib.mcFreeAsync(memory, own))
    assert attributes(memory).type == lib.mcMemoryTypeDevice
    gate.open()
    rt.ok(lib.mcStreamSynchronize(own))
    assert ffi.buffer(target, 64)[:] == b"\5" * 64
    assert attributes(memory).type == lib.mcMemoryTypeUnregistered


@rt.needs_a_gate
def test_memory_may_be_freed_once_only():
    own, memory = rt.stream(), rt.device_memory()
    gate = rt.Gate(own)
    rt.ok(lib.mcFreeAsync(memory, own))
    assert lib.mcFreeAsync(memory, own) == lib.mcFree(memory) == lib.mcErrorInvalidValue
    gate.open()
    rt.ok(lib.mcStreamSynchronize(own))
    assert lib.mcFreeAsync(memory, own) == lib.mcFree(memory) == lib.mcErrorInvalidValue


def test_a_stream_may_allocate_what_it_is_about_to_free():
    own, size = rt.stream(), free_bytes() // 2 + 1
    for _ in range(4):
        memory = rt.made("void *", lib.mcMallocAsync, size, own)
        rt.ok(lib.mcMemsetAsync(memory + size - 1, 1, 1, own))
        rt.ok(lib.mcFreeAsync(memory, own))
    rt.ok(lib.mcStreamSynchronize(own))


def test_memory_of_a_pool_outlives_it():
    own, pool, before = rt.stream(), rt.pool(), free_bytes()
    memory = rt.made("void *", lib.mcMallocFromPoolAsync, 64, pool, own)
    rt.ok(lib.mcMemPoolDestroy(pool))
    rt.ok(lib.mcMemsetAsync(memory, 7, 64, own))
    assert rt.read(memory, 64) == b"\7" * 64
    rt.ok(lib.mcFreeAsync(memory, own))
    rt.ok(lib.mcStreamSynchronize(own))
    assert free_bytes() == before


# ---- what the host may not do ----


def test_a_host_that_touches_device_memory_is_stopped_with_a_message():
    source = ("from understudy.maca import ffi, lib\np = ffi.new('void **')\nlib.mcMalloc(p, 64)\n"
              "ffi.cast('char *', p[0])[3] = b'x'")
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert done.returncode == -signal.SIGSEGV
    assert "mcMalloc" in done.stderr and "64 bytes" in done.stderr
