"""Streams, events and the legacy default stream: what waits for what (maca-runtime 5.1 to 5.4).

test_runtime_modes.py runs this file in every stream mode."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.maca import ffi, lib

from tests.maca import runtime_support as rt

NULL = ffi.NULL
BLOCKING, NON_BLOCKING = lib.mcStreamDefault, lib.mcStreamNonBlocking


def fill(memory, value, stream, size=256):
    rt.ok(lib.mcMemsetAsync(memory, value, size, stream))


def copy(to, source, stream, size=256):
    rt.ok(lib.mcMemcpyAsync(to, source, size, rt.D2D, stream))


def first_byte(memory):
    """Read without waiting for any other stream."""
    target, own = rt.pinned_memory(), rt.stream(NON_BLOCKING)
    rt.ok(lib.mcMemcpyAsync(target, memory, 1, rt.D2H, own))
    rt.ok(lib.mcStreamSynchronize(own))
    return ffi.buffer(target, 1)[0][0]


def open_soon(gate):
    timer = threading.Timer(0.05, gate.open)
    timer.start()
    return timer


@rt.needs_a_gate
def test_the_default_stream_waits_for_a_blocking_stream():
    a, b, own = rt.device_memory(), rt.device_memory(), rt.stream(BLOCKING)
    gate = rt.Gate(own)
    fill(a, 7, own)
    copy(b, a, NULL)
    time.sleep(0.02)  # a copy that does not wait would run now
    gate.open()
    rt.ok(lib.mcStreamSynchronize(NULL))
    assert first_byte(b) == 7


@rt.needs_a_gate
@pytest.mark.parametrize("default", [NULL, rt.LEGACY])
def test_a_blocking_stream_waits_for_the_default_stream(default):
    a, b, own = rt.device_memory(), rt.device_memory(), rt.stream(BLOCKING)
    gate = rt.Gate(default)
    fill(a, 9, default)
    copy(b, a, own)
    time.sleep(0.02)
    gate.open()
    rt.ok(lib.mcStreamSynchronize(own))
    assert first_byte(b) == 9


@rt.needs_a_gate
def test_a_non_blocking_stream_does_not_wait_for_the_default_stream():
    a, own = rt.device_memory(), rt.stream(NON_BLOCKING)
    gate = rt.Gate(NULL)
    fill(a, 5, own)
    rt.ok(lib.mcStreamSynchronize(own))  # returns although the gate is shut
    assert first_byte(a) == 5
    gate.open()
    rt.ok(lib.mcDeviceSynchronize())


@rt.needs_a_gate
def test_the_default_stream_does_not_wait_for_a_non_blocking_stream():
    a, own = rt.device_memory(), rt.stream(NON_BLOCKING)
    gate = rt.Gate(own)
    fill(a, 6, NULL)
    rt.ok(lib.mcStreamSynchronize(NULL))
    assert first_byte(a) == 6
    gate.open()
    rt.ok(lib.mcDeviceSynchronize())


@rt.needs_a_gate
@pytest.mark.parametrize("use_default_before", [False, True])
def test_blocking_streams_do_not_wait_for_each_other(use_default_before):
    a, one, two = rt.device_memory(), rt.stream(BLOCKING), rt.stream(BLOCKING)
    if use_default_before:
        fill(a, 1, NULL)
        fill(a, 2, two)
    gate = rt.Gate(one)
    fill(a, 3, two)
    rt.ok(lib.mcStreamSynchronize(two))
    assert first_byte(a) == 3
    gate.open()
    rt.ok(lib.mcDeviceSynchronize())


@rt.needs_a_gate
def test_waiting_for_a_blocking_stream_is_not_waiting_for_later_default_work():
    own, a = rt.stream(BLOCKING), rt.device_memory()
    fill(a, 1, own)
    gate = rt.Gate(NULL)
    rt.ok(lib.mcStreamSynchronize(own))
    gate.open()
    rt.ok(lib.mcDeviceSynchronize())


@rt.needs_a_gate
@pytest.mark.parametrize("wait", [
    lambda: lib.mcStreamSynchronize(NULL), lambda: lib.mcStreamSynchronize(rt.LEGACY), lib.mcDeviceSynchronize,
    lambda: lib.mcMemset(rt.device_memory(), 0, 1),
    lambda: lib.mcMemcpy(rt.host_memory(), rt.device_memory(), 1, rt.D2H),
])  # fmt: skip
def test_what_waits_for_blocking_streams(wait):
    a, own = rt.device_memory(), rt.stream(BLOCKING)
    fill(a, 0, own)
    gate = rt.Gate(own)
    fill(a, 8, own)
    timer = open_soon(gate)
    rt.ok(wait())
    assert first_byte(a) == 8
    timer.join()


@rt.needs_a_gate
def test_a_synchronous_copy_sees_the_work_of_a_blocking_stream():
    a, own = rt.device_memory(), rt.stream(BLOCKING)
    gate = rt.Gate(own)
    fill(a, 4, own)
    timer = open_soon(gate)
    assert rt.read(a, 256) == b"\4" * 256
    timer.join()


@rt.needs_a_gate
def test_an_event_orders_two_streams():
    a, b, event = rt.device_memory(), rt.device_memory(), rt.event()
    one, two = rt.stream(NON_BLOCKING), rt.stream(NON_BLOCKING)
    gate = rt.Gate(one)
    fill(a, 3, one)
    rt.ok(lib.mcEventRecord(event, one))
    rt.ok(lib.mcStreamWaitEvent(two, event, 0))
    copy(b, a, two)
    assert lib.mcEventQuery(event) == lib.mcStreamQuery(two) == lib.mcErrorNotReady
    gate.open()
    rt.ok(lib.mcStreamSynchronize(two))
    assert first_byte(b) == 3
    assert lib.mcEventQuery(event) == lib.mcStreamQuery(two) == 0


def test_an_event_that_was_never_recorded_holds_nothing_up():
    event, own = rt.event(), rt.stream()
    assert lib.mcEventQuery(event) == lib.mcEventSynchronize(event) == 0
    rt.ok(lib.mcStreamWaitEvent(own, event, 0))
    rt.ok(lib.mcStreamSynchronize(own))


@rt.needs_a_gate
def test_a_wait_is_for_the_record_before_it():
    event, one, two = rt.event(), *(rt.stream(NON_BLOCKING) for _ in range(2))
    rt.ok(lib.mcEventRecord(event, one))
    rt.ok(lib.mcStreamWaitEvent(two, event, 0))
    gate = rt.Gate(one)
    rt.ok(lib.mcEventRecord(event, one))  # a second record, which the wait does not know
    rt.ok(lib.mcStreamSynchronize(two))
    assert lib.mcEventQuery(event) == lib.mcErrorNotReady
    gate.open()
    rt.ok(lib.mcEventSynchronize(event))


def test_an_event_may_be_destroyed_while_it_is_awaited():
    event, one, two, a = rt.event(), rt.stream(NON_BLOCKING), rt.stream(NON_BLOCKING), rt.device_memory()
    fill(a, 1, one)
    rt.ok(lib.mcEventRecord(event, one))
    rt.ok(lib.mcStreamWaitEvent(two, event, 0))
    rt.ok(lib.mcEventDestroy(event))
    rt.ok(lib.mcStreamSynchronize(two))


@pytest.mark.parametrize("query", ["stream", "event", "default"])
def test_polling_comes_to_an_end(query):
    own, event, a = rt.stream(), rt.event(), rt.device_memory()
    fill(a, 1, own)
    rt.ok(lib.mcEventRecord(event, own))
    ask = {"stream": lambda: lib.mcStreamQuery(own), "event": lambda: lib.mcEventQuery(event),
           "default": lambda: lib.mcStreamQuery(NULL)}[query]
    deadline = time.monotonic() + 30
    while (status := ask()) == lib.mcErrorNotReady and time.monotonic() < deadline:
        time.sleep(0.001)
    assert status == 0
    assert first_byte(a) == 1


def test_elapsed_time_is_the_time_between_the_records():
    start, stop, own = rt.event(), rt.event(), rt.stream()
    rt.ok(lib.mcEventRecord(start, own))
    rt.host_function(own, lambda: time.sleep(0.03))
    rt.ok(lib.mcEventRecord(stop, own))
    rt.ok(lib.mcStreamSynchronize(own))
    forward = rt.made("float", lib.mcEventElapsedTime, start, stop)
    back = rt.made("float", lib.mcEventElapsedTime, stop, start)
    assert 30 <= forward < 20000
    assert back == -forward


@rt.needs_a_gate
def test_elapsed_time_is_not_ready_before_the_second_record_ran():
    start, stop, own = rt.event(), rt.event(), rt.stream()
    rt.ok(lib.mcEventRecord(start, own))
    gate = rt.Gate(own)
    rt.ok(lib.mcEventRecord(stop, own))
    assert lib.mcEventElapsedTime(ffi.new("float *"), start, stop) == lib.mcErrorNotReady
    gate.open()
    rt.ok(lib.mcEventSynchronize(stop))
    rt.made("float", lib.mcEventElapsedTime, start, stop)


def test_host_functions_run_once_and_in_order():
    own, seen = rt.stream(), []
    for i in range(50):
        rt.host_function(own, lambda i=i: seen.append(i))
    rt.ok(lib.mcStreamSynchronize(own))
    assert seen == list(range(50))


def test_a_host_function_that_calls_the_runtime_is_refused_and_the_stream_goes_on():
    own, seen, a = rt.stream(), [], rt.device_memory()
    rt.host_function(own, lambda: seen.extend([lib.mcStreamSynchronize(own), lib.mcDeviceSynchronize(),
                                               lib.mcFree(a), lib.mcMemset(a, 1, 1)]))
    fill(a, 2, own)
    rt.ok(lib.mcStreamSynchronize(own))
    assert seen == [lib.mcErrorNotPermitted] * 4
    assert first_byte(a) == 2


def test_a_host_function_may_destroy_what_waits_for_the_device():
    own, handle, seen = rt.stream(), ffi.new("mcblasHandle_t *"), []
    rt.ok(lib.mcblasCreate(handle))
    rt.host_function(own, lambda: seen.append(lib.mcblasDestroy(handle[0])))
    rt.ok(lib.mcStreamSynchronize(own))
    assert seen == [0] and lib.mcblasDestroy(handle[0]) != 0


@rt.needs_a_gate
def test_ordinary_memory_may_be_reused_after_an_asynchronous_copy_from_it():
    a, own, source = rt.device_memory(), rt.stream(), rt.host_memory()
    ffi.memmove(source, b"x" * 256, 256)
    gate = rt.Gate(own)
    rt.ok(lib.mcMemcpyAsync(a, source, 256, rt.H2D, own))
    ffi.memmove(source, b"y" * 256, 256)
    gate.open()
    rt.ok(lib.mcStreamSynchronize(own))
    assert rt.read(a, 256) == b"x" * 256


@rt.needs_a_gate
def test_page_locked_memory_is_read_when_the_copy_runs():
    a, own, source = rt.device_memory(), rt.stream(), rt.pinned_memory()
    ffi.memmove(source, b"x" * 256, 256)
    gate = rt.Gate(own)
    rt.ok(lib.mcMemcpyAsync(a, source, 256, rt.H2D, own))
    ffi.memmove(source, b"y" * 256, 256)
    gate.open()
    rt.ok(lib.mcStreamSynchronize(own))
    assert rt.read(a, 256) == b"y" * 256


@rt.needs_a_gate
def test_destroying_a_stream_lets_its_work_finish():
    a, own = rt.device_memory(), rt.stream()
    gate = rt.Gate(own)
    fill(a, 9, own)
    timer = open_soon(gate)
    rt.ok(lib.mcStreamDestroy(own))
    rt.ok(lib.mcDeviceSynchronize())
    timer.join()
    assert first_byte(a) == 9


def check_that_the_default_stream_waits_for(end, own):
    """While another thread, which gives work to a stream, is at the stream's end."""
    a, b, work_is_there = rt.device_memory(), rt.device_memory(), threading.Event()
    gates = []

    def work():
        gates.append(rt.Gate(own))
        fill(a, 7, own)
        work_is_there.set()
        end()

    rt.ok(lib.mcMemset(a, 0, 256))
    threading.Thread(target=work).start()
    work_is_there.wait()
    time.sleep(0.02)  # the thread gets to the end
    copy(b, a, NULL)
    time.sleep(0.02)  # a copy that does not wait would run now
    gates[0].open()
    rt.ok(lib.mcStreamSynchronize(NULL))
    assert first_byte(b) == 7


@rt.needs_a_gate
def test_the_default_stream_waits_for_a_stream_that_another_thread_destroys():
    own = rt.stream(BLOCKING)
    check_that_the_default_stream_waits_for(lambda: rt.ok(lib.mcStreamDestroy(own)), own)


@rt.needs_a_gate
def test_the_default_stream_waits_for_the_stream_of_a_thread_that_ends():
    check_that_the_default_stream_waits_for(lambda: None, rt.PER_THREAD)


# ---- each thread's own stream ----


@rt.needs_a_gate
def test_each_thread_has_its_own_stream():
    a, b = rt.device_memory(), rt.device_memory()
    gate = rt.Gate(rt.PER_THREAD)
    fill(a, 1, rt.PER_THREAD)

    def other():
        fill(b, 2, rt.PER_THREAD)
        rt.ok(lib.mcStreamSynchronize(rt.PER_THREAD))  # not held up by the first thread's gate

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert first_byte(b) == 2
    assert lib.mcStreamQuery(rt.PER_THREAD) == lib.mcErrorNotReady
    gate.open()
    rt.ok(lib.mcStreamSynchronize(rt.PER_THREAD))
    assert first_byte(a) == 1


def test_a_threads_stream_is_ordered_with_the_default_stream():
    a, b = rt.device_memory(), rt.device_memory()
    fill(a, 3, rt.PER_THREAD)
    copy(b, a, NULL)
    rt.ok(lib.mcStreamSynchronize(NULL))
    assert first_byte(b) == 3


def test_the_stream_of_a_thread_that_ends_finishes_its_work():
    memories = [rt.device_memory() for _ in range(20)]
    threads = [threading.Thread(target=fill, args=(memory, i + 1, rt.PER_THREAD)) for i, memory in enumerate(memories)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rt.ok(lib.mcDeviceSynchronize())
    assert [first_byte(memory) for memory in memories] == list(range(1, 21))


# ---- any program whose order is fixed by the default stream gives what it gives in program order ----

SLOTS, SLOT = 4, 64


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["fill", "copy"]), st.integers(0, SLOTS - 1),
                          st.integers(0, SLOTS - 1), st.integers(0, 255)), max_size=30))
def test_random_programs_keep_their_order(program):
    streams = [NULL, *(rt.stream(BLOCKING) for _ in range(3))]
    memory, marker = rt.device_memory(SLOTS * SLOT), rt.device_memory(1)
    rt.ok(lib.mcMemset(memory, 0, SLOTS * SLOT))
    expected, previous = [0] * SLOTS, None
    for which, operation, to, source, value in program:
        if operation == "copy" and to == source:
            continue
        if previous not in (None, which) and 0 not in (previous, which):
            fill(marker, 1, NULL, 1)  # work on the default stream is what orders the two
        if operation == "fill":
            fill(memory + to * SLOT, value, streams[which], SLOT)
            expected[to] = value
        else:
            copy(memory + to * SLOT, memory + source * SLOT, streams[which], SLOT)
            expected[to] = expected[source]
        previous = which
    assert rt.read(memory, SLOTS * SLOT) == b"".join(bytes([value]) * SLOT for value in expected)
    for stream in streams[1:]:
        rt.ok(lib.mcStreamDestroy(stream))
    rt.ok(lib.mcFree(memory))


def test_threads_use_one_device_in_parallel():
    failures = []

    def work(seed):
        try:
            own, a, b, other = rt.stream(seed % 2), *(rt.device_memory() for _ in range(3))
            for i in range(100):
                fill(a, (seed + i) % 256, own)
                copy(b, a, own)
                rt.ok(lib.mcStreamSynchronize(own))
                assert first_byte_of(b, own) == (seed + i) % 256
                if i % 10 == 0:
                    fill(other, 0, NULL)
            rt.ok(lib.mcStreamDestroy(own))
            rt.ok(lib.mcFree(a))
        except BaseException as error:  # noqa: BLE001  (a thread's failure must reach the test)
            failures.append(error)

    def first_byte_of(memory, stream):
        target = rt.host_memory(1)
        rt.ok(lib.mcMemcpyAsync(target, memory, 1, rt.D2H, stream))
        rt.ok(lib.mcStreamSynchronize(stream))
        return ffi.buffer(target)[0][0]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def filling_graph(memory, value, stream):
    rt.ok(lib.mcStreamBeginCapture(stream, lib.mcStreamCaptureModeRelaxed))
    fill(memory, value, stream)
    return rt.made("mcGraph_t", lambda graph: lib.mcStreamEndCapture(stream, graph))


@rt.needs_a_gate
def test_an_update_changes_no_launch_that_is_queued():
    a, own, recorder = rt.device_memory(), rt.stream(NON_BLOCKING), rt.stream(NON_BLOCKING)
    seen = [rt.device_memory() for _ in range(3)]
    executable = rt.made("mcGraphExec_t", lib.mcGraphInstantiate, filling_graph(a, 1, recorder), NULL, NULL, 0)
    result = ffi.new("mcGraphExecUpdateResult *")
    gate = rt.Gate(own)
    for value, target in enumerate(seen, start=1):
        source = filling_graph(a, value, recorder)
        rt.ok(lib.mcGraphExecUpdate(executable, source, NULL, result))
        rt.ok(lib.mcGraphDestroy(source))
        rt.ok(lib.mcGraphLaunch(executable, own))
        copy(target, a, own)
    rt.ok(lib.mcGraphExecDestroy(executable))
    gate.open()
    rt.ok(lib.mcStreamSynchronize(own))
    assert [first_byte(target) for target in seen] == [1, 2, 3]
