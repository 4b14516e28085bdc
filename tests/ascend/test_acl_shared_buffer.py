"""Buffers with a private area, and chains of them; limits of devices; groups (cann-runtime-3 11, 12, 14)."""

import pytest
from understudy.ascend import ffi, lib

from tests.ascend.test_acl_stream import value_of
from tests.conformance.ascend.acl_support import device, download, ok, upload
from tests.conformance.ascend.test_acl_shared_buffer import get_limit


@pytest.fixture(autouse=True)
def device_0():
    with device():
        yield


def allocate(size: int):
    return value_of("aclrtMbuf", lambda cell: lib.aclrtAllocBuf(cell, size))


def data_of(buffer):
    address, size = ffi.new("void **"), ffi.new("size_t *")
    ok(lib.aclrtGetBufData(buffer, address, size))
    return address[0], size[0]


def test_copies_share_the_data_and_nothing_else():
    free = lambda: value_of("size_t", lambda cell: lib.aclrtGetMemInfo(1, cell, ffi.new("size_t *")))  # noqa: E731
    before = free()
    mine = allocate(8192)
    address, size = data_of(mine)
    assert size == 8192 and value_of("size_t", lib.aclrtGetBufDataLen, mine) == 0
    upload(address, b"data")
    ok(lib.aclrtSetBufDataLen(mine, 4))
    ok(lib.aclrtSetBufUserData(mine, b"private", 7, 89))
    copy = value_of("aclrtMbuf", lib.aclrtCopyBufRef, mine)
    ok(lib.aclrtSetBufUserData(mine, b"P", 1, 89))
    ok(lib.aclrtFreeBuf(mine))
    assert data_of(copy) == (address, 8192) and download(address, 4) == b"data"
    assert value_of("size_t", lib.aclrtGetBufDataLen, copy) == 4
    kept = ffi.new("char[8]")
    ok(lib.aclrtGetBufUserData(copy, kept, 7, 89))
    assert ffi.string(kept) == b"private"
    ok(lib.aclrtFreeBuf(copy))
    assert free() == before


def test_a_chain_is_found_by_its_head_and_ends_with_it():
    made = [allocate(64) for _ in range(4)]
    for other in made[1:]:
        ok(lib.aclrtAppendBufChain(made[0], other))
    assert value_of("uint32_t", lib.aclrtGetBufChainNum, made[0]) == 4
    assert [value_of("aclrtMbuf", lib.aclrtGetBufFromChain, made[0], i) for i in range(4)] == made
    ok(lib.aclrtFreeBuf(made[0]))
    assert [lib.aclrtFreeBuf(one) for one in made] == [107017] * 4


def test_limits_are_kept_in_their_steps():
    def limit(which):
        return value_of("size_t", lib.aclrtDeviceGetLimit, which)

    assert get_limit().status == 0
    for which, given, kept in ((2, 0, 32768), (2, 32769, 49152), (2, 196608, 196608), (3, 1024, 1024), (3, 1025, 1032)):
        ok(lib.aclrtDeviceSetLimit(which, given))
        assert limit(which) == kept
    assert lib.aclrtDeviceSetLimit(3, 1023) == 107000
    for which in (2, 3):
        ok(lib.aclrtDeviceSetLimit(which, 32768))


def test_there_are_no_groups():
    assert value_of("uint32_t", lib.aclrtGetGroupCount) == 0 and lib.aclrtCreateGroupInfo() == ffi.NULL
