"""Allocations, copies and fills of the Ascend runtime (cann-runtime 8)."""

import threading

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    Out, address_of, device, download, freed_memory, host_memory, memory, ok, pointer, upload,
)
from tests.conformance.harness import last_text, run_python


@pytest.fixture(autouse=True)
def device_0():
    with device():
        yield


SMALL, HUGE, GIANT = 4096, 2 << 20, 1 << 30


@pytest.mark.parametrize("policy, size, pages", [
    *[("HUGE_FIRST", size, SMALL) for size in (1, 32, 4064, 4065, (1 << 20) - 32)],
    *[("HUGE_FIRST", size, HUGE) for size in ((1 << 20) - 31, (2 << 20) - 32, (2 << 20) - 31)],
    ("HUGE_FIRST_P2P", 1 << 20, HUGE), ("HUGE_ONLY", 1, HUGE), ("HUGE_ONLY_P2P", 1, HUGE),
    ("NORMAL_ONLY", 2 << 20, SMALL), ("NORMAL_ONLY_P2P", 1, SMALL), ("HUGE1G_ONLY", 1, GIANT),
])  # fmt: skip
def test_whole_pages_can_be_reached(policy, size, pages):
    made = Out()
    ok(lib.aclrtMalloc(made.cell, size, getattr(lib, f"ACL_MEM_MALLOC_{policy}")))
    assert address_of(made.value) % 64 == 0
    mapped = (size + 32 + pages - 1) // pages * pages
    assert lib.aclrtMemFlush(made.value, mapped) == 0
    assert lib.aclrtMemFlush(made.value, mapped + 1) == 107000
    ok(lib.aclrtFree(made.value))


def test_what_was_not_asked_for_is_refused_on_request():
    source = """
from understudy.ascend import ffi, lib
cell, pinned, data = ffi.new("char **"), ffi.new("char **"), ffi.new("char[200]")
print([lib.aclrtSetDevice(0), lib.aclrtMalloc(ffi.cast("void **", cell), 100, 0),
       lib.aclrtMallocHost(ffi.cast("void **", pinned), 100)])
print([lib.aclrtMemcpy(cell[0], n, data, n, 1) for n in (100, 101)], lib.aclrtMemset(cell[0] + 90, 11, 0, 11))
print([lib.aclrtMemcpyAsync(pinned[0], n, cell[0], n, 2, ffi.NULL) for n in (100, 101)])
text = lib.aclGetRecentErrMsg()
print(ffi.string(text).decode() if text else "nothing")
"""
    whole_pages = run_python(source, {}).splitlines()
    assert whole_pages == ["[0, 0, 0]", "[0, 0] 0", "[0, 0]", "nothing"]
    asked_for = run_python(source, {"UNDERSTUDY_CHECK": "memory", "UNDERSTUDY_LOG": "off"}).splitlines()
    assert asked_for[:3] == ["[0, 0, 0]", "[0, 107000] 107000", "[0, 107000]"]
    assert "101 bytes from there leave what was asked for" in asked_for[3]


@pytest.mark.parametrize("policy", [0, 1, 2, 3, 4, 5, 6, 7, 0x100, 0x1000, 0x100000, 77])
def test_every_policy_allocates(policy):
    made = Out()
    assert lib.aclrtMalloc(made.cell, 100, policy) == 0
    assert lib.aclrtFree(made.value) == 0


@pytest.mark.parametrize("size, status", [
    (2**64 - 1, 100000), (2**64 - 63, 100000), (2**64 - 64, 207001), (2**63, 207001), (2**63 - 1, 207001),
    (2**62, 207001), (2**48, 207001),
])  # fmt: skip
def test_absurd_sizes(size, status):
    made = Out()
    assert lib.aclrtMalloc(made.cell, size, 0) == status
    assert lib.aclrtMallocHost(made.cell, size) == 207001
    assert made.bytes() == made.before


def test_the_device_can_be_filled_and_emptied_again():
    free, total = ffi.new("size_t *"), ffi.new("size_t *")
    ok(lib.aclrtGetMemInfo(lib.ACL_HBM_MEM, free, total))
    made = Out()
    assert lib.aclrtMalloc(made.cell, free[0], 0) == 207001
    assert "free" in last_text()
    for _ in range(3):
        assert lib.aclrtMalloc(made.cell, free[0] - 64, 0) == 0
        assert lib.aclrtFree(made.value) == 0


@pytest.mark.parametrize("free", ["aclrtFree", "aclrtFreeHost"])
def test_frees_of_what_is_not_theirs(free):
    function = getattr(lib, free)
    data = ffi.new("char[64]")
    with memory() as block, host_memory() as pinned:
        mine, other = (block, pinned) if free == "aclrtFree" else (pinned, block)
        for address in (data, other, pointer(address_of(mine) + 32), pointer(8), pointer(2**64 - 8)):
            assert function(address) == 107000
            assert "0x" in last_text()
        upload(block, b"still there")
        assert download(block, 11) == b"still there"
    assert function(freed_memory()) == 107000


def test_a_second_free_names_the_block():
    assert lib.aclrtFree(freed_memory(1000)) == 107000
    assert "freed already" in last_text() and "aclrtMalloc" in last_text()


def test_freed_addresses_rest_before_they_come_back():
    seen = {address_of(freed_memory(size)) for size in (64, 64, 1 << 22, 1 << 22)}
    assert len(seen) == 4


SIZES = [1, 2, 3, 31, 32, 1021, 1024, 1025, 4097, (1 << 20) + 7]


@pytest.mark.parametrize("size", SIZES)
def test_copies_in_every_direction(size):
    data = numpy.random.default_rng(size).integers(0, 256, size, dtype=numpy.uint8).tobytes()
    with memory(size) as first, memory(size) as second, host_memory(size) as pinned:
        upload(first, data)
        ok(lib.aclrtMemcpy(second, size, first, size, lib.ACL_MEMCPY_DEVICE_TO_DEVICE))
        assert download(second, size) == data
        ok(lib.aclrtMemcpy(pinned, size, second, size, lib.ACL_MEMCPY_DEFAULT))
        assert bytes(ffi.buffer(pinned, size)) == data
        back = bytearray(size)
        ok(lib.aclrtMemcpy(ffi.from_buffer(back), size, pinned, size, lib.ACL_MEMCPY_HOST_TO_HOST))
        assert bytes(back) == data


def test_a_copy_onto_itself_is_allowed():
    with memory() as block:
        upload(block, b"abc")
        assert lib.aclrtMemcpy(block, 3, block, 3, lib.ACL_MEMCPY_DEVICE_TO_DEVICE) == 0
        assert download(block, 3) == b"abc"


@given(st.data())
def test_copies_between_places_inside_blocks(data):
    size = 256
    offset, to = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, size - 1))
    count = data.draw(st.integers(1, size - max(offset, to)))
    with memory(size) as source, memory(size) as target:
        content = numpy.arange(size, dtype=numpy.uint8)
        upload(source, content.tobytes())
        upload(target, bytes(size))
        ok(lib.aclrtMemcpy(pointer(address_of(target) + to), size, pointer(address_of(source) + offset), count, 3))
        expected = numpy.zeros(size, numpy.uint8)
        expected[to : to + count] = content[offset : offset + count]
        assert download(target, size) == expected.tobytes()


@pytest.mark.parametrize("kind", range(6))
@pytest.mark.parametrize("to_device", [False, True])
@pytest.mark.parametrize("from_device", [False, True])
def test_direction_must_fit_the_pointers(kind, to_device, from_device):
    fits = {0: (False, False), 1: (True, False), 2: (False, True), 3: (True, True), 5: (True, False)}
    host = ffi.new("char[128]")
    with memory(128) as block:
        target = block if to_device else host
        source = block if from_device else ffi.cast("char *", host) + 64
        if to_device and from_device:
            source = pointer(address_of(block) + 64)
        expected = 0 if kind == 4 or fits[kind] == (to_device, from_device) else 107000
        assert lib.aclrtMemcpy(target, 64, source, 64, kind) == expected


@pytest.mark.parametrize("edge", ["source", "destination"])
def test_both_ends_of_a_copy_stay_in_their_block(edge):
    with memory(64) as block:  # a page
        data = ffi.new("char[4097]")
        for count, expected in ((4096, 0), (4097, 107000)):
            if edge == "source":
                status = lib.aclrtMemcpy(data, count, block, count, lib.ACL_MEMCPY_DEVICE_TO_HOST)
            else:
                status = lib.aclrtMemcpy(block, count, data, count, lib.ACL_MEMCPY_HOST_TO_DEVICE)
            assert status == expected
        before = pointer(address_of(block) - 1)
        assert lib.aclrtMemcpy(data, 2, before, 2, lib.ACL_MEMCPY_DEFAULT) == 107000
        assert lib.aclrtMemcpy(data, 2**64 - 1, block, 2**64 - 1, lib.ACL_MEMCPY_DEVICE_TO_HOST) == 107000
        assert lib.aclrtMemcpy(data, 2**63, block, 2**63, lib.ACL_MEMCPY_DEVICE_TO_HOST) == 107000


@pytest.mark.parametrize("value, byte", [(0, 0), (0xAB, 0xAB), (0x1234, 0x34), (-1, 0xFF), (-2, 0xFE)])
def test_fill_uses_the_low_byte(value, byte):
    with memory(64) as block, host_memory(64) as pinned:
        for target, read in ((block, download), (pinned, lambda at, n: bytes(ffi.buffer(at, n)))):
            ok(lib.aclrtMemset(target, 64, 0x55, 64))
            ok(lib.aclrtMemset(target, 64, value, 33))
            assert read(target, 64) == bytes([byte] * 33 + [0x55] * 31)


def test_threads_allocate_copy_and_free_at_once():
    failures = []

    def work(number):
        try:
            ok(lib.aclrtSetDevice(0))
            for round_number in range(50):
                data = bytes([number, round_number]) * 500
                with memory(1000) as block:
                    upload(block, data)
                    assert download(block, 1000) == data
            ok(lib.aclrtResetDevice(0))
        except AssertionError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


DIRECT_ACCESS = """
import ctypes
from understudy.ascend import ffi, lib
cell = ffi.new("void **")
assert lib.aclrtSetDevice(0) == 0 and lib.aclrtMalloc(cell, 64, 0) == 0
print(ctypes.string_at(int(ffi.cast("uintptr_t", cell[0])), 1))
"""


def test_the_host_cannot_touch_device_memory():
    with pytest.raises(AssertionError, match="host code touched"):
        run_python(DIRECT_ACCESS, {"PYTHONFAULTHANDLER": ""})
    assert run_python(DIRECT_ACCESS, {"UNDERSTUDY_DEVICE_ACCESS": "host"})
