"""Events: what they say, what they order, which time they keep (cann-runtime 9, doc 07)."""

import time

import pytest
from understudy.ascend import ffi, lib

from tests.ascend.test_acl_stream import gate, query, stream, value_of, wait_until
from tests.conformance.ascend.acl_support import Out, context, device, download, foreign_stream, memory, ok

SYNC, TIME_LINE = 1, 8


@pytest.fixture(autouse=True)
def device_0():
    with device():
        yield


FORMS = {
    "plain": lambda cell: lib.aclrtCreateEvent(cell),
    "flag": lambda cell: lib.aclrtCreateEventWithFlag(cell, SYNC | TIME_LINE),
    "ex": lambda cell: lib.aclrtCreateEventExWithFlag(cell, SYNC | TIME_LINE),
}


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def create(form: str):
    made = Out()
    ok(FORMS[form](made.cell))
    return made.value


def recorded(event) -> int:
    return value_of("aclrtEventRecordedStatus", lib.aclrtQueryEventStatus, event)


def test_life_of_an_event(form):
    event = create(form)
    assert recorded(event) == (1 if form == "ex" else 0)
    assert lib.aclrtSynchronizeEvent(event) == 0  # never recorded: nothing to wait for
    with gate() as closed, stream() as made:
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        ok(lib.aclrtRecordEvent(event, made))
        assert recorded(event) == 0
        assert lib.aclrtSynchronizeEventWithTimeout(event, 20) == 507047
        if form != "ex":
            assert value_of("aclrtEventStatus", lib.aclrtQueryEvent, event) == 1
        closed.open()
        ok(lib.aclrtSynchronizeEvent(event))
        assert recorded(event) == 1
        if form != "ex":
            assert value_of("aclrtEventStatus", lib.aclrtQueryEvent, event) == 0
    ok(lib.aclrtDestroyEvent(event))
    assert lib.aclrtSynchronizeEvent(event) == 107017


def test_a_stream_waits_for_another(form):
    event = create(form)
    with gate() as closed, stream() as first, stream() as second, memory(64) as block:
        ok(lib.aclrtStreamWaitEvent(first, closed.handle))
        ok(lib.aclrtMemsetAsync(block, 64, 1, 64, first))
        ok(lib.aclrtRecordEvent(event, first))
        ok(lib.aclrtStreamWaitEvent(second, event))
        ok(lib.aclrtMemsetAsync(block, 64, 2, 64, second))
        assert query(second) == 1
        closed.open()
        ok(lib.aclrtSynchronizeStream(second))
        assert download(block, 64) == bytes([2] * 64)
        ok(lib.aclrtSynchronizeStream(first))  # its record may have been seen before it counts as done
        assert query(first) == 0
    ok(lib.aclrtDestroyEvent(event))


def test_a_wait_is_for_the_record_before_it_whatever_another_stream_records_first(form):
    event = create(form)
    with gate() as closed, stream() as slow, stream() as fast, stream() as waiting, memory(64) as block:
        ok(lib.aclrtStreamWaitEvent(slow, closed.handle))
        ok(lib.aclrtMemsetAsync(block, 64, 1, 64, slow))
        ok(lib.aclrtRecordEvent(event, slow))
        ok(lib.aclrtStreamWaitEvent(waiting, event))
        ok(lib.aclrtMemsetAsync(block, 64, 2, 64, waiting))
        ok(lib.aclrtRecordEvent(event, fast))
        ok(lib.aclrtSynchronizeEvent(event))  # the latest record
        assert recorded(event) == 1
        assert lib.aclrtSynchronizeStreamWithTimeout(waiting, 20) == 507046
        closed.open()
        ok(lib.aclrtSynchronizeStream(waiting))
        assert download(block, 64) == bytes([2] * 64)
    ok(lib.aclrtDestroyEvent(event))


def test_waiting_before_the_first_record():
    plain, flag, ex = (create(form) for form in ("plain", "flag", "ex"))
    with stream() as made:
        assert lib.aclrtStreamWaitEvent(made, plain) == 107000
        ok(lib.aclrtStreamWaitEvent(made, ex))
        ok(lib.aclrtSynchronizeStream(made))
        ok(lib.aclrtStreamWaitEvent(made, flag))
        assert lib.aclrtSynchronizeStreamWithTimeout(made, 20) == 507046
        ok(lib.aclrtRecordEvent(flag, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(made))
    for event in (plain, flag, ex):
        ok(lib.aclrtDestroyEvent(event))


def test_the_stream_of_a_wait_is_looked_at_before_the_record():
    with foreign_stream() as other:
        event = create("plain")
        assert lib.aclrtStreamWaitEvent(other, event) == 107003
        ok(lib.aclrtDestroyEvent(event))


@pytest.mark.parametrize("recorded_first", [False, True])
def test_a_reset_undoes_the_record_that_its_stream_waits_for(recorded_first):
    """Whether the other stream is faster or slower than who queues the wait and the reset."""
    event = create("flag")
    with stream() as producer, stream() as consumer:
        for _ in range(3):
            if recorded_first:
                ok(lib.aclrtRecordEvent(event, producer))
            ok(lib.aclrtStreamWaitEvent(consumer, event))
            ok(lib.aclrtResetEvent(event, consumer))
            if not recorded_first:
                assert lib.aclrtSynchronizeStreamWithTimeout(consumer, 20) == 507046
                ok(lib.aclrtRecordEvent(event, producer))
            ok(lib.aclrtSynchronizeStreamWithTimeout(consumer, 60_000))
    ok(lib.aclrtDestroyEvent(event))


def test_reset_makes_an_event_as_never_recorded():
    event = create("plain")
    ok(lib.aclrtRecordEvent(event, ffi.NULL))
    ok(lib.aclrtSynchronizeEvent(event))
    assert recorded(event) == 1
    ok(lib.aclrtResetEvent(event, ffi.NULL))
    ok(lib.aclrtSynchronizeStream(ffi.NULL))
    assert recorded(event) == 0
    assert lib.aclrtStreamWaitEvent(ffi.NULL, event) == 107000
    ok(lib.aclrtRecordEvent(event, ffi.NULL))
    ok(lib.aclrtSynchronizeEvent(event))
    assert recorded(event) == 1
    ok(lib.aclrtDestroyEvent(event))


def test_wait_status():
    event = create("plain")
    with gate() as closed, stream() as first, stream() as second:
        ok(lib.aclrtStreamWaitEvent(first, closed.handle))
        ok(lib.aclrtRecordEvent(event, first))
        ok(lib.aclrtStreamWaitEvent(second, event))
        assert value_of("aclrtEventWaitStatus", lib.aclrtQueryEventWaitStatus, event) == 1
        closed.open()
        ok(lib.aclrtSynchronizeStream(second))
        assert value_of("aclrtEventWaitStatus", lib.aclrtQueryEventWaitStatus, event) == 0
    ok(lib.aclrtDestroyEvent(event))


def test_a_stream_may_wait_for_the_record_of_an_event_that_has_just_been_destroyed():
    """PyTorch's adapter has a queue for each device: that of one may destroy the event before that of the other waits."""
    event = create("ex")
    with gate() as closed, stream() as first, stream() as second, memory(64) as block:
        ok(lib.aclrtStreamWaitEvent(first, closed.handle))
        ok(lib.aclrtMemsetAsync(block, 64, 1, 64, first))
        ok(lib.aclrtRecordEvent(event, first))
        ok(lib.aclrtDestroyEvent(event))
        ok(lib.aclrtStreamWaitEvent(second, event))
        ok(lib.aclrtMemsetAsync(block, 64, 2, 64, second))
        assert query(second) == 1
        assert lib.aclrtRecordEvent(event, second) == lib.aclrtSynchronizeEvent(event) == 107017
        closed.open()
        ok(lib.aclrtSynchronizeStream(second))
        assert download(block, 64) == bytes([2] * 64)
        ok(lib.aclrtStreamWaitEvent(second, event))
        ok(lib.aclrtSynchronizeStream(second))


def test_other_destroyed_events_are_not_waited_for(form):
    event = create(form)
    with stream() as made:
        if form != "ex":  # of that form, only one that was never recorded
            ok(lib.aclrtRecordEvent(event, made))
        ok(lib.aclrtDestroyEvent(event))
        assert lib.aclrtStreamWaitEvent(made, event) == 107017


def test_an_event_destroyed_long_ago_is_not_waited_for():
    with stream() as made:
        events = [create("ex") for _ in range(257)]
        for event in events:
            ok(lib.aclrtRecordEvent(event, made))
            ok(lib.aclrtDestroyEvent(event))
        ok(lib.aclrtSynchronizeStream(made))
        assert [lib.aclrtStreamWaitEvent(made, event) for event in events] == [107017] + [0] * 256


def test_a_destroyed_event_still_orders_what_was_queued():
    event = create("plain")
    with gate() as closed, stream() as first, stream() as second, memory(64) as block:
        ok(lib.aclrtStreamWaitEvent(first, closed.handle))
        ok(lib.aclrtMemsetAsync(block, 64, 1, 64, first))
        ok(lib.aclrtRecordEvent(event, first))
        ok(lib.aclrtStreamWaitEvent(second, event))
        ok(lib.aclrtMemsetAsync(block, 64, 2, 64, second))
        ok(lib.aclrtDestroyEvent(event))
        closed.open()
        ok(lib.aclrtSynchronizeStream(second))
        assert download(block, 64) == bytes([2] * 64)


def test_elapsed_time_is_real_time(form):
    start, end = create(form), create(form)
    ok(lib.aclrtRecordEvent(start, ffi.NULL))
    ok(lib.aclrtSynchronizeStream(ffi.NULL))
    before = time.monotonic()
    time.sleep(0.03)
    ok(lib.aclrtRecordEvent(end, ffi.NULL))
    ok(lib.aclrtSynchronizeStream(ffi.NULL))
    limit = (time.monotonic() - before) * 1000
    there, back = ffi.new("float *"), ffi.new("float *")
    ok(lib.aclrtEventElapsedTime(there, start, end))
    ok(lib.aclrtEventElapsedTime(back, end, start))
    assert 29 < there[0] < limit + 30
    assert back[0] == -there[0]
    first, last = (value_of("uint64_t", lib.aclrtEventGetTimestamp, event) for event in (start, end))
    assert abs((last - first) / 1000 - there[0]) < 0.01
    for event in (start, end):
        ok(lib.aclrtDestroyEvent(event))


def test_a_wait_that_takes_too_long_is_a_fault():
    with gate() as closed:
        made = Out()
        ok(lib.aclrtCreateStream(made.cell))
        ok(lib.aclrtSetOpWaitTimeout(1))
        ok(lib.aclrtStreamWaitEvent(made.value, closed.handle))
        ok(lib.aclrtSetOpWaitTimeout(0))
        assert lib.aclrtSynchronizeStream(made.value) == 107020
        ok(lib.aclrtDestroyStream(made.value))


@pytest.mark.parametrize("function", ["aclrtSetOpExecuteTimeOut", "aclrtSetOpExecuteTimeOutWithMs"])
@pytest.mark.parametrize("limit", [0, 1, 547, 2**32 - 1])
def test_limits_of_operators_are_accepted(function, limit):
    assert getattr(lib, function)(limit) == 0


def test_ids_and_available_events():
    before = value_of("uint32_t", lib.aclrtGetEventAvailNum)
    first, second = create("plain"), create("ex")
    assert value_of("uint32_t", lib.aclrtGetEventAvailNum) == before - 2
    assert len({value_of("uint32_t", lib.aclrtGetEventId, event) for event in (first, second)}) == 2
    for event in (first, second):
        ok(lib.aclrtDestroyEvent(event))
    assert value_of("uint32_t", lib.aclrtGetEventAvailNum) == before


def test_record_again_moves_the_event():
    event = create("plain")
    with gate() as closed, stream() as made:
        ok(lib.aclrtRecordEvent(event, ffi.NULL))
        ok(lib.aclrtSynchronizeEvent(event))
        ok(lib.aclrtStreamWaitEvent(made, closed.handle))
        ok(lib.aclrtRecordEvent(event, made))
        assert recorded(event) == 0
        closed.open()
        wait_until(lambda: recorded(event) == 1)
    ok(lib.aclrtDestroyEvent(event))


def test_an_event_outlives_its_context():
    with stream() as made:
        with context():
            event = create("plain")
            ok(lib.aclrtRecordEvent(event, ffi.NULL))
        ok(lib.aclrtSynchronizeEvent(event))
        assert recorded(event) == 1
        ok(lib.aclrtStreamWaitEvent(made, event))
        ok(lib.aclrtRecordEvent(event, made))
        ok(lib.aclrtSynchronizeStream(made))
        ok(lib.aclrtDestroyEvent(event))
