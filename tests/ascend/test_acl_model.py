"""Models: what a capture records, a replay does again with the same results, in every stream mode (cann-runtime-3 13)."""

import pytest

from tests.conformance.harness import run_python

BEGIN = """
import json, threading
import numpy as np
from understudy.ascend import ffi, lib

def ok(status):
    assert status == 0, (status, ffi.string(lib.aclGetRecentErrMsg() or ffi.new("char *")))

def new(function, kind, *arguments):
    cell = ffi.new(kind + " *")
    ok(function(cell, *arguments))
    return cell[0]

ok(lib.aclInit(ffi.NULL))
ok(lib.aclrtSetDevice(0))
COUNT = 64
BYTES = 4 * COUNT

class Array:
    def __init__(self, value=0.0):
        self.address = new(lib.aclrtMalloc, "void *", BYTES, 0)
        self.set(value)
        shape, stride = ffi.new("int64_t[1]", [COUNT]), ffi.new("int64_t[1]", [1])
        self.tensor = lib.aclCreateTensor(shape, 1, lib.ACL_FLOAT, stride, 0, lib.ACL_FORMAT_ND, shape, 1, self.address)
    def set(self, value):
        host = np.full(COUNT, value, np.float32)
        ok(lib.aclrtMemcpy(self.address, BYTES, ffi.from_buffer(host), BYTES, 1))
    def get(self):
        host = np.empty(COUNT, np.float32)
        ok(lib.aclrtMemcpy(ffi.from_buffer(host), BYTES, self.address, BYTES, 2))
        assert (host == host[0]).all()
        return float(host[0])

def stream(persistent=False):
    return new(lib.aclrtCreateStreamWithConfig, "aclrtStream", 0, lib.ACL_STREAM_PERSISTENT if persistent else 0)

def event(flag=None):
    return new(lib.aclrtCreateEventExWithFlag, "aclrtEvent", lib.ACL_EVENT_SYNC if flag is None else flag)

ONE = ffi.new("float *", 1.0)
one = lib.aclCreateScalar(ONE, lib.ACL_FLOAT)

def add(a, b, out, on):
    size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
    ok(lib.aclnnAddGetWorkspaceSize(a.tensor, b.tensor, one, out.tensor, size, executor))
    ok(lib.aclnnAdd(ffi.NULL, 0, executor[0], on))

def mul(a, b, out, on):
    size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
    ok(lib.aclnnMulGetWorkspaceSize(a.tensor, b.tensor, out.tensor, size, executor))
    ok(lib.aclnnMul(ffi.NULL, 0, executor[0], on))

def run(model, on):
    ok(lib.aclmdlRIExecuteAsync(model, on))
    ok(lib.aclrtSynchronizeStream(on))

def begin(on, mode=0):
    ok(lib.aclmdlRICaptureBegin(on, mode))

def end(on):
    return new(lambda cell: lib.aclmdlRICaptureEnd(on, cell), "aclmdlRI")

def info(on):
    status, model = ffi.new("aclmdlRICaptureStatus *"), ffi.new("aclmdlRI *")
    ok(lib.aclmdlRICaptureGetInfo(on, status, model))
    return status[0], model[0]
"""

CAPTURE = """
# One stream: nothing runs while it is recorded; a replay reads what the arrays hold then.
s, t = stream(), stream()
a, b, c = Array(1), Array(2), Array(0)
begin(s)
assert info(s)[0] == 1 and info(t)[0] == 0
add(a, b, c, s)
mul(c, b, c, s)
model = end(s)
assert info(s)[0] == 0
assert c.get() == 0
run(model, s)
assert c.get() == 6
for round in range(5):
    a.set(round)
    run(model, t if round % 2 else s)
    assert c.get() == (round + 2) * 2
ok(lib.aclmdlRIDestroy(model))

# Three streams, joined through events both ways; copies, fills and host functions between the kernels.
u = stream()
fork, join, other, back = event(), event(), event(), event()
seen = []
@ffi.callback("void(void *)")
def note(argument):
    seen.append(int(ffi.cast("intptr_t", argument)))
x, y, z = Array(), Array(), Array()
begin(s)
ok(lib.aclrtMemsetAsync(x.address, BYTES, 0, BYTES, s))
add(x, a, x, s)
ok(lib.aclrtRecordEvent(fork, s))
ok(lib.aclrtStreamWaitEvent(t, fork))
ok(lib.aclrtStreamWaitEvent(u, fork))
ok(lib.aclrtMemcpyAsync(y.address, BYTES, x.address, BYTES, 3, t))
mul(x, b, z, u)
ok(lib.aclrtRecordEvent(other, u))
ok(lib.aclrtStreamWaitEvent(t, other))
add(y, z, y, t)
ok(lib.aclrtLaunchHostFunc(t, note, ffi.cast("void *", 7)))
ok(lib.aclrtRecordEvent(join, t))
ok(lib.aclrtStreamWaitEvent(s, join))
add(y, b, c, s)
model = end(s)
for round in (3, 4):
    a.set(round)
    run(model, s)
    assert c.get() == round + round * 2 + 2
assert seen == [7, 7]
count = ffi.new("uint32_t *")
ok(lib.aclmdlRIGetStreams(model, ffi.NULL, count))
assert count[0] == 3
streams = ffi.new("aclrtStream[]", 3)
assert lib.aclmdlRIGetStreams(model, streams, ffi.new("uint32_t *", 2)) == 107039
ok(lib.aclmdlRIGetStreams(model, streams, count))
kinds = []
for one_stream in streams:
    ok(lib.aclmdlRIGetTasksByStream(one_stream, ffi.NULL, count))
    tasks = ffi.new("aclmdlRITask[]", count[0])
    ok(lib.aclmdlRIGetTasksByStream(one_stream, tasks, count))
    kinds.append([new(lambda cell: lib.aclmdlRITaskGetType(task, cell), "aclmdlRITaskType") for task in tasks])
assert kinds == [[0, 1, 2, 3, 1], [3, 0, 3, 1, 0, 2], [3, 1, 2]], kinds
import os, tempfile
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.json")
    for flags in (0, 1):
        ok(lib.aclmdlRIDebugJsonPrint(model, path.encode(), flags))
        steps = json.load(open(path))
        assert len(steps) == 14 and sum(step["name"].startswith("aclnn") for step in steps) == 4
ended = []
@ffi.callback("void(void *)")
def on_end(argument):
    ended.append(1)
ok(lib.aclmdlRIDestroyRegisterCallback(model, on_end, ffi.NULL))
ok(lib.aclmdlRISetName(model, b"three streams"))
name = ffi.new("char[]", 6)
ok(lib.aclmdlRIGetName(model, 6, name))
assert ffi.string(name) == b"three"
ok(lib.aclmdlRIDestroy(model))
assert ended == [1]

# Numbers in memory: a task that waits in one branch for what another branch, recorded later, writes.
cell = new(lib.aclrtMalloc, "void *", 64, 0)
ok(lib.aclrtMemset(cell, 64, 0, 64))
begin(s)
ok(lib.aclrtRecordEvent(fork, s))
ok(lib.aclrtStreamWaitEvent(t, fork))
ok(lib.aclrtValueWait(cell, 5, 1, s))
add(a, b, c, s)
ok(lib.aclrtValueWrite(cell, 5, 0, t))
ok(lib.aclrtRecordEvent(join, t))
ok(lib.aclrtStreamWaitEvent(s, join))
ok(lib.aclrtValueWrite(cell, 0, 0, s))
model = end(s)
c.set(0)
for _ in range(3):
    run(model, s)
assert c.get() == 6
# The last write gets another number.
ok(lib.aclmdlRIGetStreams(model, streams, ffi.new("uint32_t *", 3)))
tasks = ffi.new("aclmdlRITask[]", 8)
ok(lib.aclmdlRIGetTasksByStream(streams[0], tasks, ffi.new("uint32_t *", 8)))
parameters = ffi.new("aclmdlRITaskParams *")
ok(lib.aclmdlRITaskGetParams(tasks[4], parameters))
assert parameters.type == 5 and parameters.valueWriteTaskParams.devAddr == cell
parameters.valueWriteTaskParams.value = 9
ok(lib.aclmdlRITaskSetParams(tasks[4], parameters))
ok(lib.aclmdlRITaskDisable(tasks[2]))
ok(lib.aclmdlRIUpdate(model))
c.set(0)
run(model, s)
host = ffi.new("uint64_t *")
ok(lib.aclrtMemcpy(host, 8, cell, 8, 2))
assert host[0] == 9 and c.get() == 0
ok(lib.aclmdlRIDestroy(model))

# What a capture does not allow makes it invalid, and its end says so.
begin(s)
assert lib.aclrtSynchronizeStream(s) == 107041
assert info(s)[0] == 2
assert lib.aclmdlRICaptureEnd(s, ffi.new("aclmdlRI *")) == 507903
begin(s)
assert lib.aclrtMemcpy(a.address, 4, ffi.new("char[4]"), 4, 1) == 107041
assert lib.aclmdlRICaptureEnd(s, ffi.new("aclmdlRI *")) == 507903
begin(s, 2)
ok(lib.aclrtMemcpy(a.address, 4, ffi.new("char[4]"), 4, 1))
add(a, b, c, s)
ok(lib.aclmdlRIDestroy(end(s)))
mode = ffi.new("aclmdlRICaptureMode *", 2)
begin(s)
ok(lib.aclmdlRICaptureThreadExchangeMode(mode))
assert mode[0] == 0
ok(lib.aclrtMemcpy(a.address, 4, ffi.new("char[4]"), 4, 1))
ok(lib.aclmdlRICaptureThreadExchangeMode(mode))
assert mode[0] == 2
add(a, b, c, s)
ok(lib.aclmdlRIDestroy(end(s)))
# A stream that does not come back, one that ends meanwhile, an event that was recorded elsewhere.
begin(s)
ok(lib.aclrtRecordEvent(fork, s))
ok(lib.aclrtStreamWaitEvent(t, fork))
assert lib.aclmdlRICaptureEnd(s, ffi.new("aclmdlRI *")) == 107025
begin(s)
ok(lib.aclrtRecordEvent(fork, s))
v = stream()
ok(lib.aclrtStreamWaitEvent(v, fork))
ok(lib.aclrtDestroyStream(v))
assert lib.aclmdlRICaptureEnd(s, ffi.new("aclmdlRI *")) == 507903
v = stream()
begin(v)
add(a, b, c, v)
ok(lib.aclrtDestroyStream(v))
print("captured")
"""

EXTERNAL = """
s, t = stream(), stream()
a, b, c = Array(1), Array(2), Array(0)
# A plain stream records, a model waits; a model records, a plain stream waits; a model records, another waits.
e = event()
begin(t)
ok(lib.aclrtStreamWaitEventWithFlag(t, e, 0, 1))
add(c, a, c, t)
waits = end(t)
add(a, b, c, s)
ok(lib.aclrtRecordEvent(e, s))
run(waits, t)
assert c.get() == 4
f = event()
begin(s)
add(a, b, c, s)
ok(lib.aclrtRecordEventWithFlag(f, s, 1))
records = end(s)
begin(t)
ok(lib.aclrtStreamWaitEventWithFlag(t, f, 0, 1))
mul(c, b, c, t)
follows = end(t)
for _ in range(10):
    c.set(0)
    ok(lib.aclmdlRIExecuteAsync(records, s))
    ok(lib.aclrtStreamWaitEvent(t, f))
    mul(c, b, c, t)
    ok(lib.aclrtSynchronizeStream(t))
    assert c.get() == 6
    ok(lib.aclmdlRIExecuteAsync(records, s))
    ok(lib.aclmdlRIExecuteAsync(follows, t))
    ok(lib.aclrtSynchronizeStream(t))
    assert c.get() == 6

# A group's operator is replaced while the model, already started, waits for the news.
news = new(lib.aclrtCreateEventWithFlag, "aclrtEvent", lib.ACL_EVENT_EXTERNAL)
u = stream()
begin(s)
ok(lib.aclrtStreamWaitEvent(s, news))
ok(lib.aclrtResetEvent(news, s))
ok(lib.aclmdlRICaptureTaskGrpBegin(s))
add(a, b, c, s)
group = new(lambda cell: lib.aclmdlRICaptureTaskGrpEnd(s, cell), "aclrtTaskGrp")
model = end(s)
d = Array(10)
for operand, expected in ((d, 11), (b, 3), (d, 11)):
    ok(lib.aclmdlRIExecuteAsync(model, s))
    ok(lib.aclmdlRICaptureTaskUpdateBegin(u, group))
    add(a, operand, c, u)
    ok(lib.aclmdlRICaptureTaskUpdateEnd(u))
    ok(lib.aclrtRecordEvent(news, u))
    ok(lib.aclrtSynchronizeStream(u))
    ok(lib.aclrtSynchronizeStream(s))
    assert c.get() == expected
# What is no operator is refused, and the update goes on.
ok(lib.aclmdlRICaptureTaskUpdateBegin(u, group))
assert lib.aclrtRecordEvent(news, u) == lib.aclrtResetEvent(news, u) == lib.aclrtStreamWaitEvent(u, news) == 507009
assert lib.aclrtMemsetAsync(c.address, 4, 0, 4, u) == 507009
add(a, d, c, u)
ok(lib.aclmdlRICaptureTaskUpdateEnd(u))
ok(lib.aclmdlRICaptureTaskUpdateBegin(u, group))
mul(a, b, c, u)
assert lib.aclmdlRICaptureTaskUpdateEnd(u) == 107040
assert lib.aclmdlRICaptureTaskUpdateEnd(u) == 107033
# A stream that ends takes its update with it; another one can begin.
for finish in lib.aclrtDestroyStream, lib.aclrtDestroyStreamForce:
    gone = stream()
    ok(lib.aclmdlRICaptureTaskUpdateBegin(gone, group))
    assert lib.aclmdlRICaptureTaskUpdateBegin(u, group) == 107033
    add(a, b, c, gone)
    ok(finish(gone))
ok(lib.aclmdlRICaptureTaskUpdateBegin(u, group))
add(a, d, c, u)
ok(lib.aclmdlRICaptureTaskUpdateEnd(u))
# A run that waits for ever ends with its stream.
ok(lib.aclmdlRIExecuteAsync(model, s))
assert lib.aclmdlRIDestroy(model) == 107037
ok(lib.aclrtDestroyStreamForce(s))
ok(lib.aclmdlRIDestroy(model))
print("external")
"""

BUILT = """
heads = [stream(True) for _ in range(2)]
s = stream()
a, b, c, d = Array(1), Array(2), Array(0), Array(0)
index = new(lib.aclrtMalloc, "void *", 64, 0)
def put(value):
    ok(lib.aclrtMemcpy(index, 8, ffi.new("int64_t *", value), 8, 1))

# Labels on one stream: index 0 runs both parts, 1 and everything above only the second.
model = new(lib.aclmdlRIBuildBegin, "aclmdlRI", 0)
ok(lib.aclmdlRIBindStream(model, heads[0], 0))
labels = ffi.new("aclrtLabel[2]")
for i in range(2):
    ok(lib.aclrtCreateLabel(labels + i))
chosen = new(lambda cell: lib.aclrtCreateLabelList(labels, 2, cell), "aclrtLabelList")
ok(lib.aclrtSwitchLabelByIndex(index, 2, chosen, heads[0]))
ok(lib.aclrtSetLabel(labels[0], heads[0]))
add(c, a, c, heads[0])
ok(lib.aclrtSetLabel(labels[1], heads[0]))
add(c, b, c, heads[0])
ok(lib.aclmdlRIEndTask(model, heads[0]))
assert lib.aclmdlRIExecuteAsync(model, s) == 507011
ok(lib.aclmdlRIBuildEnd(model, ffi.NULL))
total = 0
for value, more in ((0, 3), (1, 2), (7, 2), (0, 3)):
    put(value)
    run(model, s)
    total += more
    assert c.get() == total
ok(lib.aclmdlRIExecute(model, -1))
assert c.get() == total + 3
ok(lib.aclmdlRIUnbindStream(model, heads[0]))
ok(lib.aclmdlRIDestroy(model))

# A stream that another one starts, on a condition that is read when the task runs; events inside the model.
limit = new(lib.aclrtMalloc, "void *", 64, 0)
ok(lib.aclrtMemcpy(limit, 8, ffi.new("int64_t *", 5), 8, 1))
model = new(lib.aclmdlRIBuildBegin, "aclmdlRI", 0)
ok(lib.aclmdlRIBindStream(model, heads[0], lib.ACL_MODEL_STREAM_FLAG_HEAD))
ok(lib.aclmdlRIBindStream(model, heads[1], lib.ACL_MODEL_STREAM_FLAG_DEFAULT))
ok(lib.aclrtSwitchStream(index, lib.ACL_RT_GREATER, limit, lib.ACL_RT_SWITCH_INT64, heads[1], ffi.NULL, heads[0]))
add(a, b, d, heads[0])
ok(lib.aclmdlRIEndTask(model, heads[0]))
mul(b, b, d, heads[1])
ok(lib.aclmdlRIEndTask(model, heads[1]))
ok(lib.aclmdlRIBuildEnd(model, ffi.NULL))
for value, expected in ((5, 3), (6, 4), (-1, 3)):
    put(value)
    run(model, s)
    assert d.get() == expected
for one_head in heads:
    ok(lib.aclmdlRIUnbindStream(model, one_head))
ok(lib.aclmdlRIDestroy(model))
model = new(lib.aclmdlRIBuildBegin, "aclmdlRI", 0)
for one_head, flag in zip(heads, (0, lib.ACL_MODEL_STREAM_FLAG_DEFAULT)):
    ok(lib.aclmdlRIBindStream(model, one_head, flag))
e = event()
ok(lib.aclrtActiveStream(heads[1], heads[0]))
add(a, a, c, heads[1])
ok(lib.aclrtRecordEvent(e, heads[1]))
ok(lib.aclrtStreamWaitEvent(heads[0], e))
mul(c, b, c, heads[0])
ok(lib.aclmdlRIEndTask(model, heads[0]))
ok(lib.aclmdlRIBuildEnd(model, ffi.NULL))
for _ in range(3):
    c.set(0)
    run(model, s)
    assert c.get() == 4
for one_head in heads:
    ok(lib.aclrtDestroyStream(one_head))
ok(lib.aclmdlRIDestroy(model))

# Conditions of a captured model.
parts = [stream() for _ in range(3)]
def conditional(kind, count, bodies, flag=0):
    begin(s)
    parent = info(s)[1]
    handle = new(lambda cell: lib.aclmdlRICondHandleCreate(parent, 1, flag, cell), "aclmdlRICondHandle")
    number = new(lambda cell: lib.aclmdlRICondHandleGetCondPtr(handle, cell), "uint64_t *")
    children = ffi.new("aclmdlRI[]", count)
    add(a, b, c, s)
    ok(lib.aclmdlRIAddCondTask({"handle": handle, "type": kind, "size": count, "modelRIArray": children}, s, 0))
    mul(c, b, c, s)
    for child, part, body in zip(children, parts, bodies):
        ok(lib.aclmdlRICaptureToModelRIBegin(part, child, 2))
        assert lib.aclmdlRICaptureEnd(s, ffi.new("aclmdlRI *")) == 107045
        body(part, number)
        assert end(part) == child
    return end(s), number
def write(number, value):
    ok(lib.aclrtMemcpy(number, 8, ffi.new("uint64_t *", value), 8, 1))
double = lambda on, number: mul(c, b, c, on)
plus = lambda on, number: add(c, a, c, on)
def once(on, number):
    add(c, a, c, on)
    ok(lib.aclrtValueWrite(number, 0, 0, on))
for kind, bodies, flag, results in ((0, (double, plus), 0, ((1, 12), (0, 8), (9, 12))), (0, (double,), 0, ((0, 6),)),
                                    (2, (plus, double, once), 0, ((0, 8), (1, 12), (2, 8))),
                                    (1, (once,), 0, ((1, 8), (0, 6))), (0, (double, plus), 1, ((0, 12), (5, 12)))):
    model, number = conditional(kind, len(bodies), bodies, flag)
    for value, expected in results:
        write(number, value)
        run(model, s)
        assert c.get() == expected, (kind, value, c.get())
    ok(lib.aclmdlRIDestroy(model))
print("built")
"""

# What belongs to a model ends with it, and not when something else ends: conditions, their memory and task groups.
ENDED = """
s, other = stream(), stream()
a, b, c = Array(1), Array(2), Array()
begin(s)
handle = new(lambda cell: lib.aclmdlRICondHandleCreate(info(s)[1], 1, 0, cell), "aclmdlRICondHandle")
number = new(lambda cell: lib.aclmdlRICondHandleGetCondPtr(handle, cell), "uint64_t *")
ok(lib.aclmdlRICaptureTaskGrpBegin(s))
add(a, b, c, s)
group = new(lambda cell: lib.aclmdlRICaptureTaskGrpEnd(s, cell), "aclrtTaskGrp")
model = end(s)
ok(lib.aclrtMemcpy(number, 8, ffi.new("uint64_t *", 1), 8, 1))
ok(lib.aclmdlRICaptureTaskUpdateBegin(other, group))
add(a, b, c, other)
ok(lib.aclmdlRICaptureTaskUpdateEnd(other))
run(model, s)
ok(lib.aclmdlRIDestroy(model))
cell = ffi.new("uint64_t **")
assert lib.aclmdlRICondHandleGetCondPtr(handle, cell) == 107017
assert lib.aclmdlRICaptureTaskUpdateBegin(other, group) == 107017
for one_stream in s, other:  # the run or the update may still be on them
    ok(lib.aclrtDestroyStream(one_stream))
assert lib.aclrtMemcpy(number, 8, ffi.new("uint64_t *", 1), 8, 1) == 107000
print("ended")
"""

# Runs of one model come one after the other, in the order of the launches, whatever their streams have before them. A run
# that waits for its turn can be stopped like any other.
LINE = """
LONG_MS, SHORT_MS, TIMED_OUT, NOT_READY = 60_000, 20, 507046, 1
number = new(lib.aclrtMalloc, "void *", 64, 0)
def write(value):
    ok(lib.aclrtMemcpy(number, 8, ffi.new("uint64_t *", value), 8, 1))
def wait_for(value, on):
    ok(lib.aclrtValueWait(number, value, 1, on))
s, t, u = stream(), stream(), stream()
a, b, c = Array(1), Array(2), Array(1)
begin(s)
mul(c, b, c, s)
model = end(s)
write(0)
wait_for(1, s)
for on in s, t:
    ok(lib.aclmdlRIExecuteAsync(model, on))
assert lib.aclrtSynchronizeStreamWithTimeout(t, SHORT_MS) == TIMED_OUT  # behind the run in s
add(c, a, c, u)
ok(lib.aclrtSynchronizeStream(u))
assert c.get() == 2
write(1)
ok(lib.aclrtSynchronizeStreamWithTimeout(t, LONG_MS))
assert c.get() == 8
ok(lib.aclrtSynchronizeStream(s))
# A run that its stream drops keeps nobody waiting.
write(0)
wait_for(1, s)
for on in s, t:
    ok(lib.aclmdlRIExecuteAsync(model, on))
ok(lib.aclrtDestroyStreamForce(s))
ok(lib.aclrtSynchronizeStreamWithTimeout(t, LONG_MS))
assert c.get() == 16

bound, first = stream(True), stream()
built = new(lib.aclmdlRIBuildBegin, "aclmdlRI", 0)
ok(lib.aclmdlRIBindStream(built, bound, 0))
wait_for(9, bound)
mul(c, b, c, bound)
ok(lib.aclmdlRIBuildEnd(built, ffi.NULL))
status = ffi.new("aclrtStreamStatus *")
def first_waits():
    ok(lib.aclrtStreamQuery(first, status))
    return status[0] == NOT_READY
ok(lib.aclmdlRIExecuteAsync(built, first))
assert lib.aclmdlRIExecute(built, SHORT_MS) == TIMED_OUT and first_waits()
def stop(on):
    ok(lib.aclrtStreamStop(on))
    ok(lib.aclrtSynchronizeStreamWithTimeout(on, LONG_MS))
for end_run in stop, lib.aclrtStreamAbort, lib.aclrtDestroyStreamForce:
    behind = stream()
    ok(lib.aclmdlRIExecuteAsync(built, behind))
    assert lib.aclrtSynchronizeStreamWithTimeout(behind, SHORT_MS) == TIMED_OUT
    ok(end_run(behind) or 0)
    assert first_waits()
ok(lib.aclmdlRIExecuteAsync(built, t))
write(9)
ok(lib.aclrtSynchronizeStreamWithTimeout(t, LONG_MS))
assert c.get() == 64  # the first run and the last one
print("line")
"""


@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
@pytest.mark.parametrize("program, word", [(CAPTURE, "captured"), (EXTERNAL, "external"), (BUILT, "built"),
                                           (ENDED, "ended"), (LINE, "line")])
def test_replay(program, word, mode):
    assert run_python(BEGIN + program, {"UNDERSTUDY_STREAM": mode}).split() == [word]


# A model and an event that it records know each other; both end, whichever is destroyed first.
FREED = """
from tests.memory import resident
def record_often(count):
    for number in range(count):
        passed = event()
        begin(s)
        ok(lib.aclrtMemsetAsync(a.address, BYTES, 1, BYTES, s))
        ok(lib.aclrtRecordEvent(passed, s))
        model = end(s)
        ends = [(lib.aclmdlRIDestroy, model), (lib.aclrtDestroyEvent, passed)]
        for function, object in ends if number % 2 else reversed(ends):
            ok(function(object))
s, a = stream(), Array()
record_often(1000)
before = resident()
record_often(6000)  # kilobytes each
assert resident() - before < 4 << 20, resident() - before
print("freed")
"""


def test_models_and_events_that_they_record_leave_no_memory_behind():
    assert run_python(BEGIN + FREED, {}).split() == ["freed"]
