"""Notifies between streams: one record lets one wait pass, in every stream mode (cann-runtime-3 5)."""

import pytest

from tests.conformance.harness import run_python

PROGRAM = """
import threading, time
from understudy.ascend import ffi, lib

def ok(status):
    assert status == 0, status

def new(function, kind, *arguments):
    cell = ffi.new(kind + " *")
    ok(function(cell, *arguments))
    return cell[0]

ok(lib.aclrtSetDevice(0))
first, second = (new(lib.aclrtCreateStream, "aclrtStream") for _ in range(2))
notify = new(lib.aclrtCreateNotify, "aclrtNotify", 0)
block = new(lib.aclrtMalloc, "void *", 4, 0)
host = new(lib.aclrtMallocHost, "void *", 4)

def set_and_read(value, wait_first):
    ok(lib.aclrtMemset(block, 4, 0, 4))
    if wait_first:
        ok(lib.aclrtWaitAndResetNotify(notify, second, 0))
        ok(lib.aclrtMemcpyAsync(host, 4, block, 4, 2, second))
    ok(lib.aclrtMemsetAsync(block, 4, value, 4, first))
    ok(lib.aclrtRecordNotify(notify, first))
    if not wait_first:
        ok(lib.aclrtWaitAndResetNotify(notify, second, 0))
        ok(lib.aclrtMemcpyAsync(host, 4, block, 4, 2, second))
    ok(lib.aclrtSynchronizeStream(second))
    return ffi.cast("unsigned char *", host)[0]

for round in range(1, 40):
    assert set_and_read(round, round % 2 == 0) == round, round

# Two records before a wait are one; a record that nobody waited for can be taken back.
for _ in range(2):
    ok(lib.aclrtRecordNotify(notify, first))
ok(lib.aclrtSynchronizeStream(first))
ok(lib.aclrtWaitAndResetNotify(notify, second, 0))
ok(lib.aclrtSynchronizeStream(second))
ok(lib.aclrtWaitAndResetNotify(notify, second, 1))
assert lib.aclrtSynchronizeStream(second) != 0, "the flag was gone"
third = new(lib.aclrtCreateStream, "aclrtStream")
ok(lib.aclrtRecordNotify(notify, first))
ok(lib.aclrtSynchronizeStream(first))
ok(lib.aclrtNotifyBatchReset(ffi.new("aclrtNotify[1]", [notify]), 1))
ok(lib.aclrtWaitAndResetNotify(notify, third, 0))
state = ffi.new("aclrtStreamStatus *")
ok(lib.aclrtStreamQuery(third, state))
assert state[0] == lib.ACL_STREAM_STATUS_NOT_READY

# A notify that is destroyed while work waits for it lives on in that work; dropping the work ends it.
ok(lib.aclrtDestroyNotify(notify))
ok(lib.aclrtStreamAbort(third))
ok(lib.aclrtDestroyStreamForce(third))

# Many threads, one notify each way: a game of ping and pong.
ping, pong = (new(lib.aclrtCreateNotify, "aclrtNotify", 0) for _ in range(2))
assert new(lambda cell, n: lib.aclrtGetNotifyId(n, cell), "uint32_t", ping) != \\
       new(lambda cell, n: lib.aclrtGetNotifyId(n, cell), "uint32_t", pong)

def play(mine, theirs, begins):
    ok(lib.aclrtSetDevice(0))
    stream = new(lib.aclrtCreateStream, "aclrtStream")
    for _ in range(50):
        if begins:
            ok(lib.aclrtRecordNotify(mine, stream))
        ok(lib.aclrtWaitAndResetNotify(theirs, stream, 0))
        if not begins:
            ok(lib.aclrtRecordNotify(mine, stream))
    ok(lib.aclrtSynchronizeStream(stream))
    ok(lib.aclrtDestroyStream(stream))

players = [threading.Thread(target=play, args=arguments) for arguments in ((ping, pong, True), (pong, ping, False))]
for player in players: player.start()
for player in players: player.join()
ok(lib.aclrtDestroyNotify(ping))
ok(lib.aclrtDestroyNotify(pong))
print("played")
"""


@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
def test_one_record_lets_one_wait_pass(mode):
    assert run_python(PROGRAM, {"UNDERSTUDY_STREAM": mode, "UNDERSTUDY_CHECK": "leak"}).split() == ["played"]
