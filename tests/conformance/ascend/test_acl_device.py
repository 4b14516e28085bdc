"""Devices and contexts (cann-runtime 8 and 9)."""

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, Out, case, context, device, no_context, ok, with_out
from tests.conformance.harness import check_rule


def set_and_reset(ordinal: int) -> int:
    status = lib.aclrtSetDevice(ordinal)
    ok(lib.aclrtResetDevice(ordinal))
    return status


def create_and_destroy(ordinal: int) -> int:
    made = Out()
    status = lib.aclrtCreateContext(made.cell, ordinal)
    ok(lib.aclrtDestroyContext(made.value))
    return status


def reset_once_too_often() -> int:
    ok(lib.aclrtSetDevice(1))
    ok(lib.aclrtResetDevice(1))
    return lib.aclrtResetDevice(1)


def destroyed_context():
    with device(), context() as made:
        pass
    return made


def default_context():
    current = Out()
    ok(lib.aclrtGetCurrentContext(current.cell))
    return current.value


def destroy_default_context() -> int:
    with device():
        return lib.aclrtDestroyContext(default_context())


def set_default_context_again() -> int:
    with device():
        return lib.aclrtSetCurrentContext(default_context())


def without_context(function):
    def call(cell):
        with no_context():
            return function(cell)

    return with_out("void *", call)


def with_device(function):
    def call(cell):
        with device():
            return function(cell)

    return with_out("void *", call)


COUNT = 2  # devices of a child that runs with ALONE

RULES = [
    case("aclrtSetDevice/deviceId/range", lambda: lib.aclrtSetDevice(COUNT), lambda: set_and_reset(COUNT - 1), ALONE),
    case("aclrtResetDevice/deviceId/range", lambda: lib.aclrtResetDevice(-1), lambda: set_and_reset(0), ALONE),
    case("aclrtResetDevice/deviceId/not-set", reset_once_too_often, lambda: set_and_reset(1), ALONE),
    case("aclrtCreateContext/context/null", lambda: lib.aclrtCreateContext(ffi.NULL, 0), lambda: create_and_destroy(0)),
    case("aclrtCreateContext/deviceId/range", with_out("void *", lambda cell: lib.aclrtCreateContext(cell, COUNT)),
         lambda: create_and_destroy(COUNT - 1), ALONE),
    case("aclrtDestroyContext/context/null", lambda: lib.aclrtDestroyContext(ffi.NULL), lambda: create_and_destroy(0)),
    case("aclrtDestroyContext/context/dead", lambda: lib.aclrtDestroyContext(destroyed_context()),
         lambda: create_and_destroy(0)),
    case("aclrtDestroyContext/context/default", destroy_default_context, lambda: create_and_destroy(0)),
    case("aclrtSetCurrentContext/context/null", lambda: lib.aclrtSetCurrentContext(ffi.NULL),
         set_default_context_again),
    case("aclrtSetCurrentContext/context/dead", lambda: lib.aclrtSetCurrentContext(destroyed_context()),
         set_default_context_again),
    case("aclrtGetCurrentContext/context/null", lambda: lib.aclrtGetCurrentContext(ffi.NULL),
         with_device(lib.aclrtGetCurrentContext)),
    case("aclrtGetCurrentContext/context/none", without_context(lib.aclrtGetCurrentContext),
         with_device(lib.aclrtGetCurrentContext)),
    case("aclrtCtxGetCurrentDefaultStream/stream/null", lambda: lib.aclrtCtxGetCurrentDefaultStream(ffi.NULL),
         with_device(lib.aclrtCtxGetCurrentDefaultStream)),
    case("aclrtCtxGetCurrentDefaultStream/context/none", without_context(lib.aclrtCtxGetCurrentDefaultStream),
         with_device(lib.aclrtCtxGetCurrentDefaultStream)),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
