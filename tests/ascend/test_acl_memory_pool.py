"""What pools do: whose memory it is, when it comes back, what is counted (cann-runtime-3 18)."""

import contextlib

import pytest
from understudy.ascend import ffi, lib

from tests.ascend.test_acl_virtual_memory import free_bytes
from tests.conformance.ascend.acl_support import download, ok, upload
from tests.conformance.ascend.test_acl_memory_pool import pool as make_pool
from tests.conformance.ascend.test_acl_model import Scene
from tests.conformance.harness import last_text, run_python

MIB = 1 << 20
FOLLOW, OPPORTUNISTIC, INTERNAL, THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = range(1, 9)


@pytest.fixture
def scene():
    with contextlib.ExitStack() as stack:
        yield Scene(stack)


def get(pool, attribute):
    value = ffi.new("uint64_t *")
    ok(lib.aclrtMemPoolGetAttr(pool, attribute, value))
    return value[0]


def put(pool, attribute, value):
    ok(lib.aclrtMemPoolSetAttr(pool, attribute, ffi.new("uint64_t *", value)))


def numbers(pool):
    return [get(pool, attribute) for attribute in (RESERVED, RESERVED_HIGH, USED, USED_HIGH)]


def take(pool, size, stream):
    made = ffi.new("void **")
    ok(lib.aclrtMemPoolMallocAsync(made, size, pool, stream))
    return made[0]


def give(block, stream):
    ok(lib.aclrtMemPoolFreeAsync(block, stream))


def held(scene, stream):
    """Makes the stream wait until the event that it gives is recorded."""
    event = scene.made("aclrtEvent", lib.aclrtCreateEventWithFlag, 1, end=lib.aclrtDestroyEvent)
    ok(lib.aclrtStreamWaitEvent(stream, event))
    return event


def let_go(scene, event):
    ok(lib.aclrtRecordEvent(event, scene.stream()))


def test_what_a_pool_says_at_first(scene):
    pool = make_pool(scene)
    assert [get(pool, attribute) for attribute in range(1, 9)] == [1, 1, 1, 0, 0, 0, 0, 0]


def test_numbers_follow_what_is_taken_and_given_back(scene):
    pool, stream, before = make_pool(scene), scene.stream(), free_bytes()
    first = take(pool, 33, stream)
    assert numbers(pool) == [2 * MIB, 2 * MIB, 64, 64]
    second = take(pool, 3 * MIB, stream)
    assert numbers(pool) == [4 * MIB, 4 * MIB, 3 * MIB + 64, 3 * MIB + 64]
    assert free_bytes() == before - 4 * MIB
    give(first, stream)
    give(second, stream)
    assert numbers(pool) == [4 * MIB, 4 * MIB, 0, 3 * MIB + 64]
    ok(lib.aclrtSynchronizeStream(stream))
    assert numbers(pool) == [0, 4 * MIB, 0, 3 * MIB + 64]
    assert free_bytes() == before
    for peak in (RESERVED_HIGH, USED_HIGH):
        put(pool, peak, 0)
    assert numbers(pool) == [0, 0, 0, 0]


def test_memory_holds_what_the_stream_puts_there(scene):
    pool, stream = make_pool(scene), scene.stream()
    block = take(pool, 4, stream)
    ok(lib.aclrtMemsetAsync(block, 4, 7, 4, stream))
    ok(lib.aclrtSynchronizeStream(stream))
    assert download(block, 4) == b"\7\7\7\7"


def test_a_pool_keeps_what_its_threshold_says(scene):
    pool, stream = make_pool(scene), scene.stream()
    put(pool, THRESHOLD, 4 * MIB)
    give(take(pool, 10 * MIB, stream), stream)
    ok(lib.aclrtSynchronizeStream(stream))
    assert numbers(pool) == [4 * MIB, 10 * MIB, 0, 10 * MIB]
    ok(lib.aclrtMemPoolTrimTo(pool, 2 * MIB + 1))
    assert get(pool, RESERVED) == 4 * MIB
    ok(lib.aclrtMemPoolTrimTo(pool, 2 * MIB))
    assert get(pool, RESERVED) == 2 * MIB
    ok(lib.aclrtMemPoolTrimTo(pool, 0))
    assert get(pool, RESERVED) == 0


def test_trimming_leaves_what_is_used_and_what_has_not_come_back(scene):
    pool, stream = make_pool(scene), scene.stream()
    kept = take(pool, 2 * MIB, stream)
    gate = held(scene, stream)
    give(take(pool, 2 * MIB, stream), stream)
    ok(lib.aclrtMemPoolTrimTo(pool, 0))
    assert numbers(pool)[0] == 4 * MIB
    let_go(scene, gate)
    ok(lib.aclrtSynchronizeStream(stream))
    assert numbers(pool)[0] == 2 * MIB
    give(kept, stream)


def test_a_stream_uses_at_once_what_it_gave_back_and_others_later(scene):
    pool, stream, other = make_pool(scene, limit=4 * MIB), scene.stream(), scene.stream()
    put(pool, INTERNAL, 0)
    gate = held(scene, stream)
    give(take(pool, 3 * MIB, stream), stream)
    cell = ffi.new("void **")
    assert lib.aclrtMemPoolMallocAsync(cell, 3 * MIB, pool, other) == 207001
    assert "3145728 bytes do not fit into the pool" in last_text()
    again = take(pool, 3 * MIB, stream)
    assert numbers(pool) == [4 * MIB, 4 * MIB, 3 * MIB, 3 * MIB]
    give(again, stream)
    let_go(scene, gate)
    ok(lib.aclrtSynchronizeStream(stream))
    give(take(pool, 3 * MIB, other), other)


def test_a_stream_waits_for_what_another_one_gives_back(scene):
    pool, stream, other = make_pool(scene, limit=2 * MIB), scene.stream(), scene.stream()
    gate = held(scene, stream)
    give(take(pool, 2 * MIB, stream), stream)
    block = take(pool, 2 * MIB, other)
    status = ffi.new("aclrtStreamStatus *")
    ok(lib.aclrtStreamQuery(other, status))
    assert status[0] == lib.ACL_STREAM_STATUS_NOT_READY
    let_go(scene, gate)
    ok(lib.aclrtSynchronizeStream(other))
    give(block, other)


@pytest.mark.parametrize("at_once", [1, 0])
def test_what_is_over_may_be_used_at_once_or_after_the_host_has_waited(scene, at_once):
    pool, stream, other = make_pool(scene, limit=2 * MIB), scene.stream(), scene.stream()
    put(pool, INTERNAL, 0)
    put(pool, OPPORTUNISTIC, at_once)
    give(take(pool, 2 * MIB, stream), stream)
    status = ffi.new("aclrtStreamStatus *", lib.ACL_STREAM_STATUS_NOT_READY)
    while status[0] != lib.ACL_STREAM_STATUS_COMPLETE:
        ok(lib.aclrtStreamQuery(stream, status))
    cell = ffi.new("void **")
    assert lib.aclrtMemPoolMallocAsync(cell, 2 * MIB, pool, other) == (0 if at_once else 207001)
    if not at_once:
        ok(lib.aclrtSynchronizeDevice())
        cell[0] = take(pool, 2 * MIB, other)
    give(cell[0], other)


def test_work_after_the_return_is_a_fault(scene):
    pool, stream = make_pool(scene), scene.stream()
    gate = held(scene, stream)
    block = take(pool, 64, stream)
    give(block, stream)
    take(pool, 64, stream)
    ok(lib.aclrtMemsetAsync(block, 64, 0, 64, stream))  # after the stream has come to the return it is refused at once
    let_go(scene, gate)
    assert lib.aclrtSynchronizeStream(stream) == 507053
    assert "which has been freed" in last_text()


def test_other_functions_do_not_free_a_block(scene):
    pool, stream = make_pool(scene), scene.stream()
    block = take(pool, 64, stream)
    assert lib.aclrtFree(block) == 107000
    assert "which another function frees" in last_text()
    give(block, stream)
    ok(lib.aclrtSynchronizeStream(stream))
    assert lib.aclrtMemPoolFreeAsync(block, stream) == 107000


def test_a_return_that_is_dropped_never_happened(scene):
    pool, stream, other = make_pool(scene), scene.stream(), scene.stream()
    gate = held(scene, stream)
    block = take(pool, 64, stream)
    give(block, stream)
    ok(lib.aclrtStreamAbort(stream))
    assert numbers(pool) == [2 * MIB, 2 * MIB, 64, 64]
    upload(block, b"lives")
    give(block, other)
    let_go(scene, gate)
    ok(lib.aclrtSynchronizeStream(other))
    assert get(pool, USED) == 0


def test_a_pool_that_a_dropped_return_has_taken_beyond_its_limit_gives_nothing_more(scene):
    pool, stream, other = make_pool(scene, limit=2 * MIB), scene.stream(), scene.stream()
    gate = held(scene, stream)
    block = take(pool, 2 * MIB, stream)
    give(block, stream)
    second = take(pool, 2 * MIB, stream)  # where the stream will have given the first one back
    ok(lib.aclrtStreamAbort(stream))
    assert numbers(pool) == [4 * MIB] * 4
    assert lib.aclrtMemPoolMallocAsync(ffi.new("void **"), 1, pool, stream) == 207001
    let_go(scene, gate)
    for made in (block, second):
        give(made, other)
    ok(lib.aclrtSynchronizeStream(other))
    give(take(pool, 2 * MIB, other), other)
    assert lib.aclrtMemPoolMallocAsync(ffi.new("void **"), 2 * MIB + 1, pool, other) == 207001


def test_a_device_that_a_dropped_return_has_taken_beyond_its_memory_has_nothing_left(scene):
    """What the device has is said as 0, not as a number near 2^64, which would let anything be allocated."""
    pool, stream, other = make_pool(scene), scene.stream(), scene.stream()
    before = free_bytes()
    half = (before // 2 // MIB + 1) * MIB
    gate = held(scene, stream)
    block = take(pool, half, stream)
    give(block, stream)
    second = take(pool, half, stream)  # where the stream will have given the first one back
    assert free_bytes() > 0
    ok(lib.aclrtStreamAbort(stream))
    assert free_bytes() == 0
    assert lib.aclrtMalloc(ffi.new("void **"), 64, 0) == 207001
    assert lib.aclrtMemPoolMallocAsync(ffi.new("void **"), 4 * MIB, pool, stream) == 207001
    let_go(scene, gate)
    for made in (block, second):
        give(made, other)
    ok(lib.aclrtSynchronizeStream(other))
    ok(lib.aclrtMemPoolTrimTo(pool, 0))
    assert free_bytes() == before


def test_blocks_outlive_their_pool(scene):
    before, stream = free_bytes(), scene.stream()
    with contextlib.ExitStack() as inner:
        block = take(make_pool(Scene(inner)), 64, stream)
    upload(block, b"lives")
    assert free_bytes() == before - 2 * MIB
    give(block, stream)
    ok(lib.aclrtSynchronizeStream(stream))
    assert free_bytes() == before


PROGRAM = """
import ctypes
from understudy import paths
from understudy.ascend import ffi, lib
def ok(status): assert status == 0, status
ok(lib.aclrtSetDevice(0))
pool, block, streams = ffi.new("aclrtMemPool *"), ffi.new("void **"), [ffi.new("aclrtStream *") for _ in "ab"]
for stream in streams: ok(lib.aclrtCreateStream(stream))
ok(lib.aclrtMemPoolCreate(pool, ffi.new("aclrtMemPoolProps *", {{"location": {{"type": 1}}}})))
ok(lib.aclrtMemPoolMallocAsync(block, 64, pool[0], streams[0][0]))
ok(lib.aclrtMemsetAsync(block[0], 64, 0, 64, streams[{user}][0]))
ok(lib.aclrtSynchronizeStream(streams[{user}][0]))
ok(lib.aclrtMemPoolFreeAsync(block[0], streams[{end}][0]))
ok(lib.aclrtSynchronizeDevice())
for stream in streams: ok(lib.aclrtDestroyStream(stream[0]))
if not {leak}:
    ok(lib.aclrtMemPoolDestroy(pool[0]))
ok(lib.aclFinalize() if {leak} else lib.aclrtResetDevice(0))
print(ctypes.CDLL(str(paths.sdk() / "lib" / "libunderstudy.so")).understudy_findings())
"""


def findings(user: int = 0, end: int = 0, leak: int = 0) -> int:
    source = PROGRAM.format(user=user, end=end, leak=leak)
    return int(run_python(source, {"UNDERSTUDY_CHECK": "race,memory,leak", "UNDERSTUDY_LOG": "off"}).split()[-1])


def test_checks_find_a_stream_that_does_not_wait_for_the_memory_and_a_pool_that_stays():
    assert findings() == 0
    assert findings(end=1) == 0  # the host has waited
    assert findings(user=1) == 1
    assert findings(leak=1) == 1
