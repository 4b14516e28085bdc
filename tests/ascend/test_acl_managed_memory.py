"""Managed memory: one address for host and devices, and what is wished of its pages (cann-runtime-3 18)."""

import contextlib

import pytest
from understudy.ascend import ffi, lib

from tests.ascend.test_acl_virtual_memory import free_bytes
from tests.conformance.ascend.acl_support import freed_memory, ok
from tests.conformance.ascend.test_acl_managed_memory import (
    ACCESSED_BY, DEVICE, HOST, INVALID, NODE, PAGE, PREFERRED, READ_MOSTLY, THIS_NODE, kinds, managed, place, places,
    pointers,
)  # fmt: skip
from tests.conformance.ascend.test_acl_model import NULL, Scene
from tests.conformance.harness import last_text, run_python

TYPE, ID, PREFETCHED, PREFETCHED_TYPE, PREFETCHED_ID = 4, 5, 6, 7, 8


@pytest.fixture
def scene():
    with contextlib.ExitStack() as stack:
        yield Scene(stack)


def told(block, attribute, size=PAGE, count=1, first=0):
    data = ffi.new("int32_t[]", count)
    ok(lib.aclrtMemManagedGetAttr(attribute, ffi.cast("char *", block) + first, size, data, 4 * count))
    return list(data) if count > 1 else data[0]


def advise(block, what, where=(INVALID, 0), size=PAGE, first=0):
    ok(lib.aclrtMemManagedAdvise(ffi.cast("char *", block) + first, size, what, place(*where)))


def test_host_and_device_use_the_same_bytes(scene):
    block, stream = managed(scene), scene.stream()
    host = ffi.buffer(block, 8)
    ok(lib.aclrtMemsetAsync(block, 8, 5, 4, stream))
    ok(lib.aclrtSynchronizeStream(stream))
    host[4:8] = b"host"
    other = ffi.new("char[8]")
    ok(lib.aclrtMemcpy(other, 8, block, 8, lib.ACL_MEMCPY_DEVICE_TO_HOST))
    assert bytes(ffi.buffer(other)) == b"\5\5\5\5host" == bytes(host)


def test_an_operator_computes_on_it(scene):
    block, stream = managed(scene), scene.stream()
    numbers = ffi.cast("float *", block)
    numbers[0], numbers[1] = 1.5, -2.0
    ok(lib.aclrtReduceAsync(block, block, 8, 10, lib.ACL_FLOAT, stream, NULL))
    ok(lib.aclrtSynchronizeStream(stream))
    assert list(numbers[0:2]) == [3.0, -4.0]


def test_whole_pages_are_taken_and_given_back(scene):
    before = free_bytes()
    block = ffi.new("void **")
    ok(lib.aclrtMemAllocManaged(block, PAGE + 1, 1))
    assert int(ffi.cast("uintptr_t", block[0])) % PAGE == 0
    assert free_bytes() == before - 2 * PAGE
    ffi.buffer(block[0], 2 * PAGE)[2 * PAGE - 1 :] = b"x"
    ok(lib.aclrtFree(block[0]))
    assert free_bytes() == before
    assert lib.aclrtFree(block[0]) == 107000
    assert "freed already" in last_text()


def test_what_is_said_of_new_memory(scene):
    block = managed(scene)
    assert [told(block, attribute) for attribute in (READ_MOSTLY, PREFERRED, TYPE, ID, PREFETCHED, PREFETCHED_TYPE,
                                                     PREFETCHED_ID)] == [0, -2, 0, -2, -2, 0, -2]  # fmt: skip
    assert told(block, ACCESSED_BY, count=3) == [-2, -2, -2]


def test_wishes_are_kept_for_each_page(scene):
    block = managed(scene, 2 * PAGE)
    advise(block, lib.ACL_MEM_ADVISE_SET_READ_MOSTLY)
    assert [told(block, READ_MOSTLY), told(block, READ_MOSTLY, first=PAGE), told(block, READ_MOSTLY, 2 * PAGE)] == [1, 0, 0]
    advise(block, lib.ACL_MEM_ADVISE_SET_READ_MOSTLY, first=PAGE)
    assert told(block, READ_MOSTLY, 2 * PAGE) == 1
    advise(block, lib.ACL_MEM_ADVISE_UNSET_READ_MOSTLY, size=2 * PAGE)
    assert told(block, READ_MOSTLY, 1) == 0
    for where, expected in (((DEVICE, 0), (0, DEVICE, 0)), ((HOST, 5), (-1, HOST, -1)), ((NODE, 3), (-1, NODE, 3))):
        advise(block, lib.ACL_MEM_ADVISE_SET_PREFERRED_LOCATION, where)
        assert tuple(told(block, attribute) for attribute in (PREFERRED, TYPE, ID)) == expected
    assert tuple(told(block, attribute, 2 * PAGE) for attribute in (PREFERRED, TYPE, ID)) == (-2, INVALID, -2)
    advise(block, lib.ACL_MEM_ADVISE_SET_PREFERRED_LOCATION, (THIS_NODE, 0))
    assert told(block, TYPE) == NODE and told(block, ID) >= 0
    advise(block, lib.ACL_MEM_ADVISE_UNSET_PREFERRED_LOCATION)
    assert told(block, PREFERRED) == -2


def test_who_accesses(scene):
    block = managed(scene, 2 * PAGE)
    advise(block, lib.ACL_MEM_ADVISE_SET_ACCESSED_BY, (DEVICE, 0), 2 * PAGE)
    advise(block, lib.ACL_MEM_ADVISE_SET_ACCESSED_BY, (HOST, 0))
    assert told(block, ACCESSED_BY, count=3) == [-1, 0, -2]
    assert told(block, ACCESSED_BY) == -1  # as far as there is room
    assert told(block, ACCESSED_BY, 2 * PAGE, count=2) == [0, -2]
    advise(block, lib.ACL_MEM_ADVISE_UNSET_ACCESSED_BY, (DEVICE, 0))
    assert told(block, ACCESSED_BY, count=2) == [-1, -2]


def test_where_it_was_last_prefetched_to(scene):
    first, second, stream = managed(scene), managed(scene, 2 * PAGE), scene.stream()
    ok(lib.aclrtMemManagedPrefetchAsync(first, PAGE, place(HOST), 0, stream))
    assert [told(first, attribute) for attribute in (PREFETCHED, PREFETCHED_TYPE, PREFETCHED_ID)] == [-1, HOST, -1]
    ranges = ffi.new("void *[]", [second, first, ffi.cast("char *", second) + PAGE])
    ok(lib.aclrtMemManagedPrefetchBatchAsync(
        pointers(ranges), ffi.new("size_t[]", [PAGE] * 3), 3,
        places((NODE, 1), (DEVICE, 0)), ffi.new("size_t[]", [0, 2]), 2, 0, stream))  # fmt: skip
    assert [told(block, PREFETCHED_TYPE, first=at) for block, at in ((second, 0), (first, 0), (second, PAGE))] == [
        NODE, NODE, DEVICE]  # fmt: skip
    attributes = kinds(PREFETCHED_ID, READ_MOSTLY, ACCESSED_BY)
    data = [ffi.new("int32_t *"), ffi.new("int32_t *"), ffi.new("int32_t[2]")]
    ok(lib.aclrtMemManagedGetAttrs(attributes, 3, first, 1, ffi.new("void *[]", data), ffi.new("size_t[]", [4, 4, 8])))
    assert [data[0][0], data[1][0], *data[2]] == [1, 0, -2, -2]


def test_what_is_refused_changes_nothing(scene):
    block, stream = managed(scene), scene.stream()
    ranges = ffi.new("void *[]", [block, freed_memory()])
    status = lib.aclrtMemManagedPrefetchBatchAsync(pointers(ranges), ffi.new("size_t[]", [PAGE, PAGE]), 2, places((HOST, 0)),
                                                   ffi.new("size_t[]", [0]), 1, 0, stream)  # fmt: skip
    assert status == 107000 and told(block, PREFETCHED) == -2


def test_the_host_must_wait_for_the_stream_that_uses_it():
    source = """
import ctypes
from understudy import paths
from understudy.ascend import ffi, lib
lib.aclrtSetDevice(0)
block = ffi.new("void **")
assert lib.aclrtMemAllocManaged(block, 64, 1) == 0
assert lib.aclrtMemsetAsync(block[0], 64, 1, 64, ffi.NULL) == 0
assert bytes(ffi.buffer(block[0], 1)) in (b"\\0", b"\\1")
print(ctypes.CDLL(str(paths.sdk() / "lib" / "libunderstudy.so")).understudy_findings())
"""
    assert run_python(source, {"UNDERSTUDY_CHECK": "sync", "UNDERSTUDY_LOG": "off"}).split() == ["1"]
