"""Captured graphs: a launch does again what the streams were given, in the original order, in every stream mode."""

import pytest

from tests.conformance.harness import run_python

PROGRAM = """
import ctypes
import numpy as np
from understudy.maca import ffi, lib
from tests.maca import runtime_support as rt
from tests.maca.runtime_support import ok, made

COUNT = 64
NULL = ffi.NULL
def array(value):
    memory = rt.device_memory(4 * COUNT)
    put(memory, value)
    return memory
def put(memory, value):
    host = np.full(COUNT, value, np.float32)
    ok(lib.mcMemcpy(memory, ffi.from_buffer(host), 4 * COUNT, rt.H2D))
def get(memory):
    host = np.empty(COUNT, np.float32)
    ok(lib.mcMemcpy(ffi.from_buffer(host), memory, 4 * COUNT, rt.D2H))
    assert (host == host[0]).all()
    return float(host[0])
def end(on):
    return made("mcGraph_t", lambda cell: lib.mcStreamEndCapture(on, cell))
def executable(graph):
    return made("mcGraphExec_t", lib.mcGraphInstantiate, graph, NULL, NULL, 0)
def launch(graph, on):
    ok(lib.mcGraphLaunch(graph, on))
    ok(lib.mcStreamSynchronize(on))

blas = made("mcblasHandle_t", lib.mcblasCreate)
def axpy(factor, x, y, on):
    ok(lib.mcblasSetStream(blas, on))
    ok(lib.mcblasSaxpy(blas, COUNT, ffi.new("float *", factor), x, 1, y, 1))

dnn = made("mcdnnHandle_t", lib.mcdnnCreate)
relu = made("mcdnnActivationDescriptor_t", lib.mcdnnCreateActivationDescriptor)
ok(lib.mcdnnSetActivationDescriptor(relu, lib.MCDNN_ACTIVATION_RELU, lib.MCDNN_NOT_PROPAGATE_NAN, 0.0))
shape = made("mcdnnTensorDescriptor_t", lib.mcdnnCreateTensorDescriptor)
ok(lib.mcdnnSetTensor4dDescriptor(shape, lib.MCDNN_TENSOR_NCHW, lib.MCDNN_DATA_FLOAT, 1, 1, 1, COUNT))
def activate(x, y, on):
    one, zero = ffi.new("float *", 1.0), ffi.new("float *", 0.0)
    ok(lib.mcdnnSetStream(dnn, on))
    ok(lib.mcdnnActivationForward(dnn, relu, one, shape, x, zero, shape, y))

s, t = rt.stream(), rt.stream(lib.mcStreamNonBlocking)
x, y, z = array(1), array(2), array(0)
fork, join = rt.event(), rt.event()
notes = []
@ffi.callback("void(void *)")
def note(argument):
    notes.append(1)

def record(factor):
    ok(lib.mcStreamBeginCapture(s, lib.mcStreamCaptureModeGlobal))
    ok(lib.mcMemsetAsync(z, 0, 4 * COUNT, s))
    axpy(factor, x, z, s)                     # z = factor x
    ok(lib.mcEventRecord(fork, s))
    ok(lib.mcStreamWaitEvent(t, fork, 0))
    activate(z, z, t)                         # z = max(z, 0)
    ok(lib.mcLaunchHostFunc(t, note, NULL))
    ok(lib.mcEventRecord(join, t))
    ok(lib.mcStreamWaitEvent(s, join, 0))
    axpy(1.0, y, z, s)                        # z += y
    assert made("mcStreamCaptureStatus", lambda cell: lib.mcStreamIsCapturing(t, cell)) == 1
    return end(s)

graph = record(3.0)
assert get(z) == 0 and not notes
run = executable(graph)
nodes = ffi.new("size_t *")
ok(lib.mcGraphGetNodes(graph, NULL, nodes))
assert nodes[0] == 5
few = ffi.new("mcGraphNode_t[3]")
nodes[0] = 2
ok(lib.mcGraphGetNodes(graph, few, nodes))
assert nodes[0] == 2 and few[0] and few[1] and not few[2]
for value in (1, 2, -4):
    put(x, value)
    for on in (s, t, NULL):
        launch(run, on)
        assert get(z) == max(3 * value, 0) + 2
assert len(notes) == 9
# Another factor, in the same graph; a graph of another shape is refused and changes nothing.
put(x, 5)
other = record(10.0)
result = ffi.new("mcGraphExecUpdateResult *")
ok(lib.mcGraphExecUpdate(run, other, NULL, result))
ok(lib.mcGraphDestroy(other))
launch(run, s)
assert get(z) == 52
ok(lib.mcStreamBeginCapture(s, 0))
axpy(1.0, x, z, s)
small = end(s)
assert lib.mcGraphExecUpdate(run, small, NULL, result) == lib.mcErrorGraphExecUpdateFailure
assert result[0] == lib.mcGraphExecUpdateErrorTopologyChanged
copy = made("mcGraph_t", lib.mcGraphClone, graph)
ok(lib.mcGraphDestroy(graph))
first = executable(copy)
launch(first, s)
assert get(z) == 17
launch(run, s)
assert get(z) == 52
# A graph is a task: work before and after it keeps its place; a captured launch becomes part of the other graph.
ok(lib.mcStreamBeginCapture(s, lib.mcStreamCaptureModeRelaxed))
ok(lib.mcGraphLaunch(run, s))
axpy(1.0, y, z, s)
outer = executable(end(s))
for _ in range(20):
    put(z, 0)
    launch(outer, s)
    assert get(z) == 54
# Page-able memory is read when the graph runs.
host = np.full(COUNT, 7, np.float32)
ok(lib.mcStreamBeginCapture(s, 0))
ok(lib.mcMemcpyAsync(z, ffi.from_buffer(host), 4 * COUNT, rt.H2D, s))
upload = executable(end(s))
host[:] = 8
launch(upload, s)
assert get(z) == 8
# A queued launch outlives the handle.
ok(lib.mcGraphLaunch(run, s))
ok(lib.mcGraphExecDestroy(run))
ok(lib.mcStreamSynchronize(s))
assert get(z) == 52
# A scalar result that the library would have to wait for is refused.
ok(lib.mcStreamBeginCapture(s, 0))
assert lib.mcblasSdot(blas, COUNT, x, 1, y, 1, ffi.new("float *")) == lib.MCBLAS_STATUS_EXECUTION_FAILED
axpy(1.0, x, z, s)
ok(lib.mcGraphDestroy(end(s)))
# The default stream waits for s, so it takes no work while s is captured: the attempt ends the capture.
ok(lib.mcblasSetStream(blas, NULL))
ok(lib.mcdnnSetStream(dnn, NULL))
host = np.full(COUNT, 3, np.float32)
put(z, 9)
for attempt, status in (
    (lambda: lib.mcblasSaxpy(blas, COUNT, ffi.new("float *", 1), x, 1, z, 1), lib.MCBLAS_STATUS_EXECUTION_FAILED),
    (lambda: lib.mcdnnSetTensor(dnn, shape, z, ffi.new("float *", 1)), lib.MCDNN_STATUS_EXECUTION_FAILED),
    (lambda: lib.mcblasSetVector(COUNT, 4, ffi.from_buffer(host), 1, z, 1), lib.MCBLAS_STATUS_MAPPING_ERROR),
):
    for flags, outcome in ((0, status), (lib.mcStreamNonBlocking, 0)):
        captured = rt.stream(flags)
        ok(lib.mcStreamBeginCapture(captured, lib.mcStreamCaptureModeRelaxed))
        assert attempt() == outcome
        ended = ffi.new("mcGraph_t *", ffi.cast("mcGraph_t", 16))
        assert lib.mcStreamEndCapture(captured, ended) == (lib.mcErrorStreamCaptureInvalidated if outcome else 0)
        assert bool(ended[0]) == (outcome == 0)
        assert get(z) == 9 or not outcome
        put(z, 9)
# The device is more than its default stream: waiting for it would wait for a stream of any kind.
for flags in (0, lib.mcStreamNonBlocking):
    captured = rt.stream(flags)
    ok(lib.mcStreamBeginCapture(captured, lib.mcStreamCaptureModeRelaxed))
    assert lib.mcDeviceSynchronize() == lib.mcErrorStreamCaptureUnsupported
    assert lib.mcStreamEndCapture(captured, ffi.new("mcGraph_t *")) == lib.mcErrorStreamCaptureInvalidated
    ok(lib.mcDeviceSynchronize())
print("replayed")
"""


@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
def test_a_launch_does_it_again(mode):
    assert run_python(PROGRAM, {"UNDERSTUDY_STREAM": mode}).split() == ["replayed"]


# Two streams joined by events: the graph and its events know each other, and both end.
FREED = """
from tests.memory import resident
from tests.maca import runtime_support as rt
from tests.maca.runtime_support import ffi, lib, made, ok
def record_often(count):
    for number in range(count):
        fork, join = (made("mcEvent_t", lib.mcEventCreate) for _ in range(2))
        ok(lib.mcStreamBeginCapture(s, lib.mcStreamCaptureModeRelaxed))
        ok(lib.mcEventRecord(fork, s))
        ok(lib.mcStreamWaitEvent(t, fork, 0))
        ok(lib.mcMemsetAsync(memory, 1, 64, t))
        ok(lib.mcEventRecord(join, t))
        ok(lib.mcStreamWaitEvent(s, join, 0))
        graph = made("mcGraph_t", lambda cell: lib.mcStreamEndCapture(s, cell))
        ends = [(lib.mcGraphDestroy, graph), (lib.mcEventDestroy, fork), (lib.mcEventDestroy, join)]
        for function, object in ends if number % 2 else reversed(ends):
            ok(function(object))
s, t = (made("mcStream_t", lib.mcStreamCreate) for _ in range(2))
memory = rt.device_memory(64)
record_often(1000)
before = resident()
record_often(6000)  # kilobytes each
assert resident() - before < 4 << 20, resident() - before
print("freed")
"""


def test_graphs_and_events_that_they_record_leave_no_memory_behind():
    assert run_python(FREED, {}).split() == ["freed"]
