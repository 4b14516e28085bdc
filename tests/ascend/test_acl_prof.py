"""What a program's profiler writes, and the end of a subscription (cann-runtime-3 15)."""

import json
import os

from understudy.ascend import ffi, lib

from tests.conformance.harness import run_python

PROGRAM = """
import threading
from tests.conformance.ascend.test_acl_prof import *
from tests.conformance.ascend.acl_support import memory

def work(name):
    with memory(64) as block:
        one = stamp(name)
        ok(lib.aclprofPush(one)); ok(lib.aclrtMemsetAsync(block, 64, 0, 64, NULL)); ok(lib.aclrtSynchronizeStream(NULL))
        ok(lib.aclprofPop())

path = {path!r}
with device(), stream() as on:
    work(b"too early")
    ok(lib.aclprofInit(path, len(path)))
    chosen = configuration()
    ok(lib.aclprofStart(chosen))
    work(b"say \\"this\\" and \\\\ that")
    ok(lib.aclprofMark(stamp(b"an instant")))
    ok(lib.aclprofMarkEx(b"in the stream", 13, on)); ok(lib.aclrtSynchronizeStream(on))
    ok(lib.aclrtProfTrace(ffi.new("char[]", b"data"), 4, on)); ok(lib.aclrtSynchronizeStream(on))
    number = ffi.new("uint32_t *")
    ok(lib.aclprofRangeStart(stamp(b"across threads"), number))
    other = threading.Thread(target=lambda: ok(lib.aclprofRangeStop(number[0]))); other.start(); other.join()
    one = lib.aclprofCreateStepInfo()
    ok(lib.aclprofGetStepTimestamp(one, 0, on)); ok(lib.aclprofGetStepTimestamp(one, 1, on))
    ok(lib.aclprofStop(chosen))
    work(b"too late")
    ok(lib.aclprofStart(chosen)); work(b"again"); ok(lib.aclprofStop(chosen))
    ok(lib.aclprofDestroyConfig(chosen)); ok(lib.aclprofFinalize())
"""


def events_of(file) -> list[dict]:
    """The array has no end, so that a process may end at any time."""
    return json.loads(file.read_text().rstrip().rstrip(",") + "]")


def test_the_timeline_of_a_program(tmp_path):
    folder = tmp_path / "a" / "b"
    run_python(PROGRAM.format(path=os.fsencode(folder)), {})
    (file,) = folder.iterdir()
    events = events_of(file)
    names = {(event["cat"], event["name"]) for event in events}
    assert {("range", 'say "this" and \\ that'), ("mark", "an instant"), ("mark", "in the stream"), ("range", "step"),
            ("range", "across threads"), ("range", "again")} <= names  # fmt: skip
    assert not {name for _, name in names} & {"too early", "too late"}
    (mark,) = [event for event in events if (event["cat"], event["name"]) == ("mark", "aclrtProfTrace")]
    assert mark["args"]["data"] == b"data".hex() + 14 * "00"
    assert sum(event["name"] == "in the stream" for event in events) == 2, "here, and when the stream came to it"
    assert any("aclrtMemsetAsync" in event["name"] for event in events), "what ran"
    assert all(event["ts"] > 0 and event["dur"] < 60e6 for event in events)


def test_the_environment_s_file_goes_on(tmp_path):
    """One timeline: that of the whole process."""
    trace = tmp_path / "all.json"
    run_python(PROGRAM.format(path=os.fsencode(tmp_path / "other")), {"UNDERSTUDY_TRACE": str(trace)})
    assert {"too early", "too late", "again"} <= {event["name"] for event in events_of(trace)}


def test_the_end_of_a_subscription_ends_the_pipe():
    source = """
from tests.conformance.ascend.test_acl_prof import *
reading, writing = os.pipe()
chosen = lib.aclprofCreateSubscribeConfig(1, lib.ACL_AICORE_NONE, ffi.new("int *", writing))
ok(lib.aclprofModelSubscribe(1, chosen)); ok(lib.aclprofModelUnSubscribe(1)); ok(lib.aclprofDestroySubscribeConfig(chosen))
print(len(os.read(reading, 10)))
"""
    assert run_python(source, {}).split() == ["0"]


def test_numbers_of_texts():
    one, other = (lib.aclprofStr2Id(text) for text in (b"one", b"other"))
    assert one != other and one == lib.aclprofStr2Id(b"one")
    assert lib.aclprofStr2Id(ffi.NULL) == 2**64 - 1
