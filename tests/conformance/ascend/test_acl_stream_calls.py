"""What every function that takes a stream refuses: a thread without context, a dead stream, one of another context."""

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    Out, case, dead_stream, device, download, foreign_stream, no_context, ok, stream, upload,
)
from tests.conformance.harness import Result, check_rule

H2D = 1
KEEP = b"\x33" * 64
THREAD = 4711  # any number will do for a subscription nobody serves


@ffi.callback("void(void *)")
def nothing(_):
    pass


class Work:
    """Operands for one call of any of the functions."""

    def __enter__(self):
        made = Out()
        ok(lib.aclrtMalloc(made.cell, 64, 0))
        self.block = made.value
        upload(self.block, KEEP)
        ok(lib.aclrtMallocHost(made.cell, 64))
        self.pinned = made.value
        ffi.memmove(self.pinned, KEEP, 64)
        ok(lib.aclrtCreateEvent(made.cell))
        self.event = made.value
        ok(lib.aclrtRecordEvent(self.event, ffi.NULL))
        ok(lib.aclrtCreateNotify(made.cell, 0))
        self.notify = made.value
        ok(lib.aclrtRecordNotify(self.notify, ffi.NULL))
        self.out = Out("int64_t")
        self.batch = [ffi.new("void *[1]", [self.block]), ffi.new("size_t[1]", [64]),
                      ffi.new("void *[1]", [self.pinned]), ffi.new("size_t[1]", [64]), 1,
                      ffi.new("aclrtMemcpyBatchAttr[1]"), ffi.new("size_t[1]", [0]), 1, ffi.new("size_t *")]
        self.batch[5][0].dstLoc.type = lib.ACL_MEM_LOCATION_TYPE_DEVICE
        return self

    def __exit__(self, *_):
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        ok(lib.aclrtDestroyEvent(self.event))
        ok(lib.aclrtDestroyNotify(self.notify))
        ok(lib.aclrtFreeHost(self.pinned))
        ok(lib.aclrtFree(self.block))

    def cell(self, kind: str):
        return ffi.cast(f"{kind} *", self.out.cell)

    def result(self, status: int) -> Result:
        return Result(status, self.out.bytes() == self.out.before and download(self.block, 64) == KEEP)


CALLS = {
    "aclrtSynchronizeStream": lambda w, s: lib.aclrtSynchronizeStream(s),
    "aclrtSynchronizeStreamWithTimeout": lambda w, s: lib.aclrtSynchronizeStreamWithTimeout(s, 10000),
    "aclrtStreamQuery": lambda w, s: lib.aclrtStreamQuery(s, w.cell("aclrtStreamStatus")),
    "aclrtStreamAbort": lambda w, s: lib.aclrtStreamAbort(s),
    "aclrtStreamGetPriority": lambda w, s: lib.aclrtStreamGetPriority(s, w.cell("uint32_t")),
    "aclrtStreamGetFlags": lambda w, s: lib.aclrtStreamGetFlags(s, w.cell("uint32_t")),
    "aclrtStreamGetId": lambda w, s: lib.aclrtStreamGetId(s, w.cell("int32_t")),
    "aclrtSetStreamAttribute": lambda w, s: lib.aclrtSetStreamAttribute(s, 3, ffi.new("aclrtStreamAttrValue *")),
    "aclrtGetStreamAttribute": lambda w, s: lib.aclrtGetStreamAttribute(s, 3, w.cell("aclrtStreamAttrValue")),
    "aclrtSetStreamFailureMode": lambda w, s: lib.aclrtSetStreamFailureMode(s, 0),  # 1 would stay with the context
    "aclrtSetStreamOverflowSwitch": lambda w, s: lib.aclrtSetStreamOverflowSwitch(s, 1),
    "aclrtGetStreamOverflowSwitch": lambda w, s: lib.aclrtGetStreamOverflowSwitch(s, w.cell("uint32_t")),
    "aclrtGetOverflowStatus": lambda w, s: lib.aclrtGetOverflowStatus(w.block, 64, s),
    "aclrtResetOverflowStatus": lambda w, s: lib.aclrtResetOverflowStatus(s),
    "aclrtRecordEvent": lambda w, s: lib.aclrtRecordEvent(w.event, s),
    "aclrtResetEvent": lambda w, s: lib.aclrtResetEvent(w.event, s),
    "aclrtStreamWaitEvent": lambda w, s: lib.aclrtStreamWaitEvent(s, w.event),
    "aclrtStreamWaitEventWithTimeout": lambda w, s: lib.aclrtStreamWaitEventWithTimeout(s, w.event, 10),
    "aclrtMemcpyAsync": lambda w, s: lib.aclrtMemcpyAsync(w.block, 64, w.pinned, 64, H2D, s),
    "aclrtMemcpyAsyncWithCondition": lambda w, s: lib.aclrtMemcpyAsyncWithCondition(w.block, 64, w.pinned, 64, H2D, s),
    "aclrtMemsetAsync": lambda w, s: lib.aclrtMemsetAsync(w.block, 64, 1, 64, s),
    "aclrtMemsetD32Async": lambda w, s: lib.aclrtMemsetD32Async(w.block, 64, 1, 16, s),
    "aclmdlRICaptureGetInfo": lambda w, s: lib.aclmdlRICaptureGetInfo(s, w.cell("aclmdlRICaptureStatus"), ffi.new("aclmdlRI *")),
    "aclrtRecordNotify": lambda w, s: lib.aclrtRecordNotify(w.notify, s),
    "aclrtWaitAndResetNotify": lambda w, s: lib.aclrtWaitAndResetNotify(w.notify, s, 10),
    "aclrtGetStreamResLimit": lambda w, s: lib.aclrtGetStreamResLimit(s, 0, w.cell("uint32_t")),
    "aclrtSetStreamResLimit": lambda w, s: lib.aclrtSetStreamResLimit(s, 0, 8),
    "aclrtResetStreamResLimit": lambda w, s: lib.aclrtResetStreamResLimit(s),
    "aclrtUseStreamResInCurrentThread": lambda w, s: lib.aclrtUseStreamResInCurrentThread(s),
    "aclrtUnuseStreamResInCurrentThread": lambda w, s: lib.aclrtUnuseStreamResInCurrentThread(s),
    "aclrtMemcpy2dAsync": lambda w, s: lib.aclrtMemcpy2dAsync(w.block, 8, w.pinned, 8, 8, 8, H2D, s),
    "aclrtMemcpyBatchAsync": lambda w, s: lib.aclrtMemcpyBatchAsync(*w.batch, s),
    "aclrtLaunchHostFunc": lambda w, s: lib.aclrtLaunchHostFunc(s, nothing, ffi.NULL),
    "aclrtLaunchCallback": lambda w, s: lib.aclrtLaunchCallback(nothing, ffi.NULL, 0, s),
    "aclrtSubscribeReport": lambda w, s: lib.aclrtSubscribeReport(THREAD, s),
    "aclrtUnSubscribeReport": lambda w, s: lib.aclrtUnSubscribeReport(THREAD, s),
    "aclrtDestroyStream": lambda w, s: lib.aclrtDestroyStream(s),
    "aclrtDestroyStreamForce": lambda w, s: lib.aclrtDestroyStreamForce(s),
}

# What else takes streams of its own context only; test_acl_model.py has its other cases.
MORE_CALLS = {
    "aclrtValueWrite": lambda w, s: lib.aclrtValueWrite(w.block, 1, 0, s),
    "aclrtValueWait": lambda w, s: lib.aclrtValueWait(w.block, 0, 0, s),
    "aclrtRecordEventWithFlag": lambda w, s: lib.aclrtRecordEventWithFlag(w.event, s, 0),
    "aclrtStreamWaitEventWithFlag": lambda w, s: lib.aclrtStreamWaitEventWithFlag(s, w.event, 0, 0),
}

OWN_CONTEXT_ONLY = [
    *MORE_CALLS,
    "aclrtRecordEvent", "aclrtResetEvent", "aclrtStreamWaitEvent", "aclrtStreamWaitEventWithTimeout",
    "aclrtMemcpyAsync", "aclrtMemcpyAsyncWithCondition", "aclrtMemsetAsync", "aclrtMemsetD32Async", "aclrtMemcpy2dAsync",
    "aclrtRecordNotify", "aclrtWaitAndResetNotify", "aclrtMemcpyBatchAsync", "aclrtDestroyStream", "aclrtDestroyStreamForce",
]  # fmt: skip


def on_a_fresh_stream(name: str) -> int:
    """The legal call."""
    with device(), Work() as work:
        made = Out()
        ok(lib.aclrtCreateStream(made.cell))
        if name in ("aclrtLaunchCallback", "aclrtUnSubscribeReport"):
            ok(lib.aclrtSubscribeReport(THREAD, made.value))
        status = {**CALLS, **MORE_CALLS}[name](work, made.value)
        if name in ("aclrtLaunchCallback", "aclrtSubscribeReport"):
            ok(lib.aclrtUnSubscribeReport(THREAD, made.value))
        if not name.startswith("aclrtDestroyStream"):
            ok(lib.aclrtDestroyStream(made.value))
        return status


def without_context(name: str) -> Result:
    with device(), Work() as work, stream() as made:
        with no_context():
            status = CALLS[name](work, made)
        return work.result(status)


def on_a_dead_stream(name: str) -> Result:
    with device(), Work() as work:
        return work.result(CALLS[name](work, dead_stream()))


def on_a_foreign_stream(name: str) -> Result:
    with foreign_stream() as other, Work() as work:
        return work.result({**CALLS, **MORE_CALLS}[name](work, other))


def cases(rule: str, names, refused):
    return [case(f"{name}/{rule}", lambda name=name: refused(name), lambda name=name: on_a_fresh_stream(name))
            for name in names]


RULES = [
    *cases("context/none", CALLS, without_context),
    *cases("stream/dead", CALLS, on_a_dead_stream),
    *cases("stream/context", OWN_CONTEXT_ONLY, on_a_foreign_stream),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
