"""Rules of the library handle and of the functions about the library as a whole (mcdnn 7.1)."""

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import Result, RuleCase, check_rule
from tests.maca.mcdnn_support import handle, ok


def create(*, to_null=False):
    made = ffi.new("mcdnnHandle_t *")
    status = lib.mcdnnCreate(ffi.NULL if to_null else made)
    return Result(status, made[0] == ffi.NULL if status else None)


def destroy_twice():
    made = ffi.new("mcdnnHandle_t *")
    ok(lib.mcdnnCreate(made))
    ok(lib.mcdnnDestroy(made[0]))
    return Result(lib.mcdnnDestroy(made[0]))


def destroy_once():
    made = ffi.new("mcdnnHandle_t *")
    ok(lib.mcdnnCreate(made))
    return Result(lib.mcdnnDestroy(made[0]))


def stream(*, destroyed=False):
    made = ffi.new("mcStream_t *")
    ok(lib.mcStreamCreate(made))
    if destroyed:
        ok(lib.mcStreamDestroy(made[0]))
    return made[0]


def set_stream(target, wanted):
    status = lib.mcdnnSetStream(target, wanted)
    if target == ffi.NULL:
        return Result(status)
    now = ffi.new("mcStream_t *")
    ok(lib.mcdnnGetStream(target, now))
    kept = now[0] == ffi.NULL
    ok(lib.mcdnnSetStream(target, ffi.NULL))
    return Result(status, kept if status else None)


def stream_of_another_device(*, other):
    ok(lib.mcSetDevice(1 if other else 0))
    made = stream()
    ok(lib.mcSetDevice(0))
    return set_stream(handle(), made)


def get_stream(target, *, to_null=False):
    found = ffi.new("mcStream_t *", ffi.cast("mcStream_t", 77))
    status = lib.mcdnnGetStream(target, ffi.NULL if to_null else found)
    return Result(status, found[0] == ffi.cast("mcStream_t", 77) if status else None)


def get_property(kind, *, to_null=False):
    value = ffi.new("int *", -9)
    status = lib.mcdnnGetProperty(kind, ffi.NULL if to_null else value)
    return Result(status, value[0] == -9 if status else None)


RULES = [
    RuleCase("mcdnnCreate/handle/null", lambda: create(to_null=True), create),
    RuleCase("mcdnnDestroy/handle/alive", destroy_twice, destroy_once),
    RuleCase("mcdnnSetStream/handle/alive", lambda: set_stream(ffi.NULL, ffi.NULL),
             lambda: set_stream(handle(), ffi.NULL)),
    RuleCase("mcdnnSetStream/streamId/alive", lambda: set_stream(handle(), stream(destroyed=True)),
             lambda: set_stream(handle(), stream())),
    RuleCase("mcdnnSetStream/streamId/device", lambda: stream_of_another_device(other=True),
             lambda: stream_of_another_device(other=False), env={"UNDERSTUDY_DEVICES": "2"}),
    RuleCase("mcdnnGetStream/handle/alive", lambda: get_stream(ffi.NULL), lambda: get_stream(handle())),
    RuleCase("mcdnnGetStream/streamId/null", lambda: get_stream(handle(), to_null=True), lambda: get_stream(handle())),
    RuleCase("mcdnnGetProperty/value/null", lambda: get_property(0, to_null=True), lambda: get_property(0)),
    RuleCase("mcdnnGetProperty/type/range", lambda: get_property(3), lambda: get_property(2)),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
