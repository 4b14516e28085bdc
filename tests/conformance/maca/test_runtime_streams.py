"""Rules of streams and events (maca-runtime 5.11, 5.13)."""

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import Result, RuleCase, check_rule
from tests.conformance.maca.runtime_calls import NULL, case, null_cases
from tests.maca import runtime_support as rt

TWO_DEVICES = {"UNDERSTUDY_DEVICES": "2"}


def record_elsewhere(function, *more, other: int):
    """An event of device 0 in a stream of the other device."""
    event = rt.event()
    with rt.on_device(other):
        return Result(getattr(lib, function)(event, rt.stream(), *more))


def elapsed(other: int):
    start = rt.recorded_event()
    with rt.on_device(other):
        return Result(lib.mcEventElapsedTime(ffi.new("float *"), start, rt.recorded_event()))


RULES = [
    *null_cases("mcStreamCreate", s=0),
    *null_cases("mcStreamCreateWithFlags", s=0),
    *null_cases("mcStreamCreateWithPriority", s=0),
    *null_cases("mcLaunchHostFunc", fn=1),
    *null_cases("mcEventCreate", e=0),
    *null_cases("mcEventCreateWithFlags", e=0),
    *null_cases("mcEventElapsedTime", ms=0),
    *null_cases("mcIpcGetEventHandle", handle=0),
    case("mcIpcGetEventHandle/event/interprocess", lambda _: {1: rt.event(lib.mcEventDisableTiming)}),
    case("mcStreamCreateWithFlags/flags/range", {1: 2}, {1: 1}),
    case("mcStreamCreateWithPriority/flags/range", {1: 2}, {1: 1}),
    case("mcEventCreateWithFlags/flags/range", {1: 8}, {1: 7}),
    case("mcEventCreateWithFlags/flags/interprocess", {1: 4}, {1: 6}),
    case("mcStreamWaitEvent/flags/range", {2: 1}),
    case("mcEventRecordWithFlags/flags/range", {2: 1}),
    case("mcStreamDestroy/stream/default", {0: NULL}),
    *[case(f"{f}/stream/alive", lambda _: {0: rt.dead_stream()})
      for f in ("mcStreamDestroy", "mcStreamSynchronize", "mcStreamQuery", "mcStreamWaitEvent", "mcLaunchHostFunc")],
    *[case(f"{f}/stream/alive", lambda _: {1: rt.dead_stream()}) for f in ("mcEventRecord", "mcEventRecordWithFlags")],
    *[case(f"{f}/event/alive", lambda _: {0: rt.dead_event()})
      for f in ("mcEventRecord", "mcEventRecordWithFlags", "mcEventSynchronize", "mcEventQuery", "mcEventDestroy")],
    *[case(f"{f}/event/alive", lambda _: {1: rt.dead_event()})
      for f in ("mcStreamWaitEvent", "mcEventElapsedTime", "mcIpcGetEventHandle")],
    case("mcEventElapsedTime/event/recorded", lambda _: {2: rt.event()}),
    case("mcEventElapsedTime/event/timing", lambda _: {1: rt.recorded_event(lib.mcEventDisableTiming)}),
    RuleCase("mcEventRecord/event/device", refused=lambda: record_elsewhere("mcEventRecord", other=1),
             accepted=lambda: record_elsewhere("mcEventRecord", other=0), env=TWO_DEVICES),
    RuleCase("mcEventRecordWithFlags/event/device",
             refused=lambda: record_elsewhere("mcEventRecordWithFlags", 0, other=1),
             accepted=lambda: record_elsewhere("mcEventRecordWithFlags", 0, other=0), env=TWO_DEVICES),
    RuleCase("mcEventElapsedTime/event/device", refused=lambda: elapsed(1), accepted=lambda: elapsed(0),
             env=TWO_DEVICES),
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


# Made up, misaligned, non-canonical, of another kind.
STRANGE = [lambda: ffi.cast("void *", 3), lambda: ffi.cast("void *", 0xDEADBEEF), lambda: ffi.cast("void *", 2**64 - 1),
           rt.device_memory, rt.host_memory, rt.event, rt.stream, rt.pool]


@pytest.mark.parametrize("strange", STRANGE)
def test_strange_streams_are_refused(strange):
    handle = strange()
    if ffi.typeof(handle) is ffi.typeof("mcStream_t"):
        return
    stream = ffi.cast("mcStream_t", handle)
    for status in (lib.mcStreamSynchronize(stream), lib.mcStreamQuery(stream), lib.mcStreamDestroy(stream),
                   lib.mcMemsetAsync(rt.device_memory(), 0, 1, stream), lib.mcEventRecord(rt.event(), stream)):
        assert status == lib.mcErrorInvalidResourceHandle


@pytest.mark.parametrize("strange", [lambda: NULL, *STRANGE])
def test_strange_events_are_refused(strange):
    handle = strange()
    if ffi.typeof(handle) is ffi.typeof("mcEvent_t"):
        return
    event = ffi.cast("mcEvent_t", handle)
    for status in (lib.mcEventRecord(event, NULL), lib.mcEventQuery(event), lib.mcEventSynchronize(event),
                   lib.mcEventDestroy(event), lib.mcStreamWaitEvent(NULL, event, 0)):
        assert status == lib.mcErrorInvalidResourceHandle


@pytest.mark.parametrize("handle", [rt.LEGACY, rt.PER_THREAD])
def test_special_streams_cannot_be_destroyed(handle):
    assert lib.mcStreamDestroy(handle) == lib.mcErrorInvalidResourceHandle
