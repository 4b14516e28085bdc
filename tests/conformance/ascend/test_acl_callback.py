"""Host functions in streams, and the threads that run them (cann-runtime 9, doc 12)."""

from __future__ import annotations

import contextlib
import threading

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, case, device, ok, stream
from tests.conformance.harness import check_rule

OTHER_THREAD = 4711  # any number will do for a subscription nobody serves


@ffi.callback("void(void *)")
def nothing(_):
    pass


def this_thread() -> int:
    return threading.get_ident()


@contextlib.contextmanager
def subscribed(thread: int | None = None):
    """A stream that a thread (this one) serves."""
    with device(), stream() as made:
        ok(lib.aclrtSubscribeReport(this_thread() if thread is None else thread, made))
        yield made
        ok(lib.aclrtUnSubscribeReport(this_thread() if thread is None else thread, made))


def subscribe_twice() -> int:
    with subscribed(OTHER_THREAD) as made:
        return lib.aclrtSubscribeReport(this_thread(), made)


def subscribe_and_back(thread: int = OTHER_THREAD) -> int:
    with device(), stream() as made:
        return lib.aclrtSubscribeReport(thread, made) or lib.aclrtUnSubscribeReport(thread, made)


def subscribe_on_another_device(ordinal: int) -> int:
    with subscribed(OTHER_THREAD):
        with device(ordinal), stream() as made:
            status = lib.aclrtSubscribeReport(OTHER_THREAD, made)
            if status == 0:
                ok(lib.aclrtUnSubscribeReport(OTHER_THREAD, made))
        ok(lib.aclrtSetDevice(0))  # current again, for the end of the subscription
        ok(lib.aclrtResetDevice(0))
        return status


def unsubscribe(stream_is_served: bool) -> int:
    with subscribed(OTHER_THREAD), device(), stream() as made:
        if stream_is_served:
            ok(lib.aclrtSubscribeReport(OTHER_THREAD, made))
        return lib.aclrtUnSubscribeReport(OTHER_THREAD, made)


def unsubscribe_another_thread() -> int:
    with subscribed(OTHER_THREAD) as made:
        return lib.aclrtUnSubscribeReport(OTHER_THREAD + 1, made)


def launch(function=nothing, block: int = 0, served: bool = True) -> int:
    with subscribed() as mine, stream() as other:
        return lib.aclrtLaunchCallback(function, ffi.NULL, block, mine if served else other)


def launch_after_host_function() -> int:
    with device(), stream() as made:
        ok(lib.aclrtLaunchHostFunc(made, nothing, ffi.NULL))
        ok(lib.aclrtSubscribeReport(OTHER_THREAD, made))
        status = lib.aclrtLaunchCallback(nothing, ffi.NULL, 0, made)
        ok(lib.aclrtUnSubscribeReport(OTHER_THREAD, made))
        return status


def host_function(function=nothing) -> int:
    with device(), stream() as made:
        return lib.aclrtLaunchHostFunc(made, function, ffi.NULL)


def host_function_on_a_served_stream() -> int:
    with subscribed(OTHER_THREAD) as made:
        return lib.aclrtLaunchHostFunc(made, nothing, ffi.NULL)


def process(timeout: int, launches: bool = True) -> int:
    with subscribed() as made:
        if launches:
            ok(lib.aclrtLaunchCallback(nothing, ffi.NULL, 0, made))
        return lib.aclrtProcessReport(timeout)


RULES = [
    case("aclrtSubscribeReport/stream/subscribed", subscribe_twice, subscribe_and_back),
    case("aclrtSubscribeReport/threadId/device", lambda: subscribe_on_another_device(1),
         lambda: subscribe_on_another_device(0), ALONE),
    case("aclrtUnSubscribeReport/stream/unsubscribed", lambda: unsubscribe(False), lambda: unsubscribe(True)),
    case("aclrtUnSubscribeReport/threadId/unsubscribed", unsubscribe_another_thread, subscribe_and_back),
    case("aclrtLaunchCallback/blockType/range", lambda: launch(block=2), lambda: launch(block=0)),
    case("aclrtLaunchCallback/fn/null", lambda: launch(ffi.NULL), launch),
    case("aclrtLaunchCallback/stream/unsubscribed", lambda: launch(served=False), launch),
    case("aclrtLaunchCallback/stream/host-function", launch_after_host_function, launch),
    case("aclrtLaunchHostFunc/fn/null", lambda: host_function(ffi.NULL), host_function),
    case("aclrtLaunchHostFunc/stream/subscribed", host_function_on_a_served_stream, host_function),
    case("aclrtProcessReport/timeout/range", lambda: process(0), lambda: process(-1)),
    case("aclrtProcessReport/thread/unsubscribed", lambda: lib.aclrtProcessReport(10), lambda: process(10000)),
    case("aclrtProcessReport/timeout/expired", lambda: process(20, launches=False), lambda: process(10000)),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
