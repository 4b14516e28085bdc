"""Models: capture, building, running, looking inside; labels; numbers in memory (cann-runtime-3 9, 11, 13)."""

import contextlib
import os
import tempfile

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import case, device, foreign_stream, in_thread, no_context, ok
from tests.conformance.harness import Result, check_rule

ON_910 = {"UNDERSTUDY_SOC": "Ascend910"}
ON_A3 = {"UNDERSTUDY_SOC": "Ascend910_93"}
NULL = ffi.NULL
STRANGE = ffi.cast("void *", 0x1000)


OTHER_THREAD = 4711  # any number will do for a subscription nobody serves


@ffi.callback("void(void *)")
def nothing(_):
    pass


class Scene:
    """A device, and whatever a call needs; everything ends with the scene."""

    def __init__(self, stack):
        stack.enter_context(device())
        self.stack = stack

    def made(self, kind, function, *arguments, end=None):
        cell = ffi.new(f"{kind} *")
        ok(function(cell, *arguments))
        if end is not None:
            self.stack.callback(end, cell[0])
        return cell[0]

    def stream(self, flags=0):
        return self.made("aclrtStream", lib.aclrtCreateStreamWithConfig, 0, flags, end=lib.aclrtDestroyStreamForce)

    def memory(self):
        return self.made("void *", lib.aclrtMalloc, 64, 0, end=lib.aclrtFree)

    def notify(self, recorded=False):
        made = self.made("aclrtNotify", lib.aclrtCreateNotify, 0, end=lib.aclrtDestroyNotify)
        if recorded:
            ok(lib.aclrtRecordNotify(made, self.stream()))
        return made

    def served(self):
        """A stream whose callbacks a thread runs."""
        stream = self.stream()
        ok(lib.aclrtSubscribeReport(OTHER_THREAD, stream))
        self.stack.callback(lib.aclrtUnSubscribeReport, OTHER_THREAD, stream)
        return stream

    def event(self, flag=lib.ACL_EVENT_SYNC):
        return self.made("aclrtEvent", lib.aclrtCreateEventExWithFlag, flag, end=lib.aclrtDestroyEvent)

    def recording(self, mode=0, flags=0):
        stream = self.stream(flags)
        ok(lib.aclmdlRICaptureBegin(stream, mode))
        return stream

    def grouping(self):
        stream = self.recording()
        ok(lib.aclmdlRICaptureTaskGrpBegin(stream))
        return stream

    def beside_group(self):
        """A stream of a capture, while another stream of it records a group."""
        origin, stream, fork = self.recording(), self.stream(), self.event()
        ok(lib.aclrtRecordEvent(fork, origin))
        ok(lib.aclrtStreamWaitEvent(stream, fork))
        ok(lib.aclmdlRICaptureTaskGrpBegin(origin))
        return stream

    def spoiled(self):
        stream = self.recording()
        assert lib.aclrtSynchronizeStream(stream) != 0
        return stream

    def model_of(self, stream):
        model = ffi.new("aclmdlRI *")
        ok(lib.aclmdlRICaptureGetInfo(stream, ffi.new("aclmdlRICaptureStatus *"), model))
        return model[0]

    def ended(self, stream):
        return self.made("aclmdlRI", lambda cell: lib.aclmdlRICaptureEnd(stream, cell), end=lib.aclmdlRIDestroy)

    def model(self, steps=None):
        stream = self.recording()
        (steps or self.fill)(stream)
        return self.ended(stream)

    def fill(self, stream):
        ok(lib.aclrtMemsetAsync(self.memory(), 64, 0, 64, stream))

    def values(self, stream):
        ok(lib.aclrtValueWrite(self.memory(), 1, 0, stream))

    def task(self, steps=None):
        model = self.model(steps)
        streams, tasks = ffi.new("aclrtStream[1]"), ffi.new("aclmdlRITask[4]")
        ok(lib.aclmdlRIGetStreams(model, streams, ffi.new("uint32_t *", 1)))
        ok(lib.aclmdlRIGetTasksByStream(streams[0], tasks, ffi.new("uint32_t *", 4)))
        return tasks[0]

    def branch(self):
        streams = ffi.new("aclrtStream[1]")
        ok(lib.aclmdlRIGetStreams(self.model(), streams, ffi.new("uint32_t *", 1)))
        return streams[0]

    def open_model(self):
        return self.made("aclmdlRI", lib.aclmdlRIBuildBegin, 0, end=lib.aclmdlRIDestroy)

    def persistent(self):
        return self.stream(lib.ACL_STREAM_PERSISTENT)

    def foreign(self):
        """A persistent stream of another context."""
        return self.stack.enter_context(foreign_stream(lib.ACL_STREAM_PERSISTENT))

    def bound(self, model=None):
        stream = self.persistent()
        ok(lib.aclmdlRIBindStream(model or self.open_model(), stream, 0))
        return stream

    def built(self, empty=False):
        model = self.open_model()
        stream = self.bound(model)
        if not empty:
            self.fill(stream)
        ok(lib.aclmdlRIBuildEnd(model, NULL))
        ok(lib.aclmdlRIUnbindStream(model, stream))
        return model

    def closed(self):
        """A stream that is bound to a built model."""
        model = self.open_model()
        stream = self.bound(model)
        ok(lib.aclmdlRIBuildEnd(model, NULL))
        return stream

    def running(self):
        """A captured model that waits in a stream for an event that never comes."""
        news = self.made("aclrtEvent", lib.aclrtCreateEventWithFlag, lib.ACL_EVENT_SYNC | lib.ACL_EVENT_EXTERNAL,
                         end=lib.aclrtDestroyEvent)
        model = self.model(lambda stream: ok(lib.aclrtStreamWaitEvent(stream, news)))
        ok(lib.aclmdlRIExecuteAsync(model, self.stream()))
        return model

    def operator(self, stream):
        """A number becomes 0."""
        shape = ffi.new("int64_t[1]", [1])
        tensor = lib.aclCreateTensor(shape, 1, lib.ACL_FLOAT, NULL, 0, lib.ACL_FORMAT_ND, shape, 1, self.memory())
        executor = ffi.new("aclOpExecutor **")
        ok(lib.aclnnInplaceZeroGetWorkspaceSize(tensor, ffi.new("uint64_t *"), executor))
        ok(lib.aclnnInplaceZero(NULL, 0, executor[0], stream))
        ok(lib.aclDestroyTensor(tensor))

    def group(self, steps=lambda stream: None):
        stream = self.recording()
        ok(lib.aclmdlRICaptureTaskGrpBegin(stream))
        steps(stream)
        handle = self.made("aclrtTaskGrp", lambda cell: lib.aclmdlRICaptureTaskGrpEnd(stream, cell))
        self.ended(stream)
        return handle

    def updating(self):
        stream = self.stream()
        ok(lib.aclmdlRICaptureTaskUpdateBegin(stream, self.group()))
        return stream

    def condition(self, stream):
        return self.made("aclmdlRICondHandle",
                         lambda cell: lib.aclmdlRICondHandleCreate(self.model_of(stream), 0, 0, cell))

    def choice(self, stream=None, **changes):
        stream = stream or self.recording()
        fields = {"handle": None, "type": 0, "size": 1, "modelRIArray": ffi.new("aclmdlRI[2]"), **changes}
        fields["handle"] = self.condition(stream) if fields["handle"] is None else fields["handle"]
        made = ffi.new("aclmdlRICondTaskParams *", fields)
        self.kept = [made, fields]
        return [made[0], stream, 0]

    def child(self):
        arguments = self.choice()
        ok(lib.aclmdlRIAddCondTask(*arguments))
        return arguments[0].modelRIArray[0]

    def label(self):
        return self.made("aclrtLabel", lib.aclrtCreateLabel, end=lib.aclrtDestroyLabel)

    def labels(self):
        return self.made("aclrtLabelList", lambda cell: lib.aclrtCreateLabelList(
            ffi.new("aclrtLabel[1]", [self.label()]), 1, cell), end=lib.aclrtDestroyLabelList)

    def switch(self):
        model = self.open_model()
        return [self.memory(), 0, self.memory(), 0, self.bound(model), NULL, self.bound(model)]

    def path(self):
        return os.path.join(self.stack.enter_context(tempfile.TemporaryDirectory()), "model.json").encode()


def out(kind, *more):
    return ffi.new(f"{kind} *", *more)


PAGEABLE = ffi.new("char[4]")


def batch(s, source, *more):
    """The arguments of one copy of four bytes to the device as a batch."""
    attributes = ffi.new("aclrtMemcpyBatchAttr *")
    attributes.dstLoc.type = lib.ACL_MEM_LOCATION_TYPE_DEVICE
    return [ffi.new("void *[1]", [s.memory()]), ffi.new("size_t[1]", [4]), ffi.new("void *[1]", [source]),
            ffi.new("size_t[1]", [4]), 1, attributes, ffi.new("size_t[1]"), 1, *more]


# A legal call of every function.
LEGAL = {
    "aclmdlRICaptureBegin": lambda s: [s.stream(), 0],
    "aclmdlRICaptureEnd": lambda s: [s.recording(), out("aclmdlRI")],
    "aclmdlRICaptureThreadExchangeMode": lambda s: [out("aclmdlRICaptureMode")],
    "aclmdlRICaptureTaskGrpBegin": lambda s: [s.recording()],
    "aclmdlRICaptureTaskGrpEnd": lambda s: [s.grouping(), out("aclrtTaskGrp")],
    "aclmdlRICaptureTaskUpdateBegin": lambda s: [s.stream(), s.group()],
    "aclmdlRICaptureTaskUpdateEnd": lambda s: [s.updating()],
    "aclmdlRICaptureToModelRIBegin": lambda s: [s.stream(), s.child(), 2],
    "aclmdlRICondHandleCreate": lambda s: [s.model_of(s.recording()), 0, 0, out("aclmdlRICondHandle")],
    "aclmdlRICondHandleGetCondPtr": lambda s: [s.condition(s.recording()), out("uint64_t *")],
    "aclmdlRIAddCondTask": lambda s: s.choice(),
    "aclmdlRIBuildBegin": lambda s: [out("aclmdlRI"), 0],
    "aclmdlRIBindStream": lambda s: [s.open_model(), s.persistent(), 0],
    "aclmdlRIEndTask": lambda s: s.with_bound(),
    "aclmdlRIBuildEnd": lambda s: [s.open_model(), NULL],
    "aclmdlRIUnbindStream": lambda s: s.with_bound(),
    "aclmdlRIExecute": lambda s: [s.built(), -1],
    "aclmdlRIExecuteAsync": lambda s: [s.model(), s.stream()],
    "aclmdlRIDestroy": lambda s: [s.own_model()],
    "aclmdlRIDestroyRegisterCallback": lambda s: [s.model(), nothing, NULL],
    "aclmdlRIDestroyUnregisterCallback": lambda s: [s.with_callback(), nothing],
    "aclmdlRISetName": lambda s: [s.model(), ffi.new("char[]", b"x" * 511)],
    "aclmdlRIGetName": lambda s: [s.model(), 1, ffi.new("char[8]")],
    "aclmdlRIGetId": lambda s: [s.model(), out("uint32_t")],
    "aclmdlRIGetStreams": lambda s: [s.model(), ffi.new("aclrtStream[1]"), out("uint32_t", 1)],
    "aclmdlRIGetTasksByStream": lambda s: [s.branch(), ffi.new("aclmdlRITask[1]"), out("uint32_t", 1)],
    "aclmdlRITaskGetType": lambda s: [s.task(), out("aclmdlRITaskType")],
    "aclmdlRITaskGetSeqId": lambda s: [s.task(), out("uint32_t")],
    "aclmdlRITaskGetParams": lambda s: [s.task(), out("aclmdlRITaskParams")],
    "aclmdlRITaskSetParams": lambda s: [s.task(s.values), s.parameters()],
    "aclmdlRITaskDisable": lambda s: [s.task()],
    "aclmdlRIUpdate": lambda s: [s.model()],
    "aclmdlRIDebugJsonPrint": lambda s: [s.model(), ffi.new("char[]", s.path()), 1],
    "aclmdlRIDebugPrint": lambda s: [s.model()],
    "aclrtRecordEventWithFlag": lambda s: [s.event(), s.recording(), 1],
    "aclrtStreamWaitEventWithFlag": lambda s: [s.recording(), s.event(), 0, 1],
    "aclrtCreateLabel": lambda s: [out("aclrtLabel")],
    "aclrtDestroyLabel": lambda s: [s.made("aclrtLabel", lib.aclrtCreateLabel)],
    "aclrtSetLabel": lambda s: [s.label(), s.bound()],
    "aclrtCreateLabelList": lambda s: [ffi.new("aclrtLabel[1]", [s.label()]), 1, out("aclrtLabelList")],
    "aclrtDestroyLabelList": lambda s: [s.own_labels()],
    "aclrtSwitchLabelByIndex": lambda s: [s.memory(), 1, s.labels(), s.bound()],
    "aclrtSwitchStream": lambda s: s.switch(),
    "aclrtActiveStream": lambda s: s.switch()[4::2],
    "aclrtValueWrite": lambda s: [s.memory(), 1, 0, s.stream()],
    "aclrtValueWait": lambda s: [s.memory(), 0, 0, s.stream()],
    # Others, for what a capture forbids.
    "aclrtSynchronizeStream": lambda s: [s.stream()],
    "aclrtSynchronizeStreamWithTimeout": lambda s: [s.stream(), 1000],
    "aclrtStreamQuery": lambda s: [s.stream(), out("aclrtStreamStatus")],
    "aclrtSetStreamFailureMode": lambda s: [s.stream(), 0],
    "aclrtSynchronizeDevice": lambda s: [],
    "aclrtSynchronizeDeviceWithTimeout": lambda s: [1000],
    "aclrtRecordEvent": lambda s: [s.event(), s.stream()],
    "aclrtResetEvent": lambda s: [s.timed_event(), s.stream()],
    "aclrtStreamWaitEvent": lambda s: [s.stream(), s.recorded_event()],
    "aclrtStreamWaitEventWithTimeout": lambda s: [s.stream(), s.recorded_event(), 1],
    "aclrtQueryEvent": lambda s: [s.timed_event(), out("aclrtEventStatus")],
    "aclrtQueryEventStatus": lambda s: [s.event(), out("aclrtEventRecordedStatus")],
    "aclrtQueryEventWaitStatus": lambda s: [s.timed_event(), out("aclrtEventWaitStatus")],
    "aclrtEventGetTimestamp": lambda s: [s.timed_event(), out("uint64_t")],
    "aclrtEventElapsedTime": lambda s: [out("float"), s.timed_event(), s.timed_event()],
    "aclrtSynchronizeEvent": lambda s: [s.event()],
    "aclrtSynchronizeEventWithTimeout": lambda s: [s.event(), 1000],
    "aclrtMemcpy": lambda s: [s.memory(), 4, ffi.new("char[4]"), 4, 1],
    "aclrtMemset": lambda s: [s.memory(), 4, 0, 4],
    "aclrtMemsetD32": lambda s: [s.memory(), 4, 0, 1],
    "aclrtMemcpy2d": lambda s: [s.memory(), 4, ffi.new("char[4]"), 4, 4, 1, 1],
    "aclrtMemcpyBatch": lambda s: batch(s, PAGEABLE, out("size_t")),
    "aclrtMemcpyBatchV2": lambda s: batch(s, PAGEABLE),
    "aclrtMemcpyBatchAsync": lambda s: batch(s, PAGEABLE, out("size_t"), s.stream()),
    "aclrtMemcpyBatchAsyncV2": lambda s: batch(s, PAGEABLE, s.stream()),
    "aclrtMemcpyAsync": lambda s: [s.memory(), 4, s.memory(), 4, 3, s.stream()],
    "aclrtMemcpyAsyncWithCondition": lambda s: [s.memory(), 4, s.memory(), 4, 3, s.stream()],
    "aclrtMemcpy2dAsync": lambda s: [s.memory(), 4, s.host(), 4, 4, 1, 1, s.stream()],
    "aclrtMemsetAsync": lambda s: [s.memory(), 4, 0, 4, s.stream()],
    "aclrtMemsetD32Async": lambda s: [s.memory(), 4, 0, 1, s.stream()],
    "aclrtLaunchHostFunc": lambda s: [s.stream(), nothing, NULL],
    "aclrtLaunchCallback": lambda s: [nothing, NULL, 0, s.served()],
    "aclrtRecordNotify": lambda s: [s.notify(), s.stream()],
    "aclrtWaitAndResetNotify": lambda s: [s.notify(recorded=True), s.stream(), 10],
    "aclrtGetOverflowStatus": lambda s: [s.memory(), 64, s.stream()],
    "aclrtResetOverflowStatus": lambda s: [s.stream()],
}


def helper(function):
    setattr(Scene, function.__name__, function)


@helper
def with_bound(self):
    model = self.open_model()
    return [model, self.bound(model)]


@helper
def own_model(self):
    stream = self.recording()
    self.fill(stream)
    return self.made("aclmdlRI", lambda cell: lib.aclmdlRICaptureEnd(stream, cell))


@helper
def own_labels(self):
    return self.made("aclrtLabelList", lambda cell: lib.aclrtCreateLabelList(
        ffi.new("aclrtLabel[1]", [self.label()]), 1, cell))


@helper
def with_callback(self, count=1):
    model = self.model()
    for _ in range(count):
        ok(lib.aclmdlRIDestroyRegisterCallback(model, nothing, NULL))
    return model


@helper
def parameters(self, kind=5, address=None, flag=0):
    made = out("aclmdlRITaskParams")
    made.type = kind
    made.valueWaitTaskParams.devAddr = self.memory() if address is None else address
    made.valueWaitTaskParams.flag = flag
    return made


@helper
def plain_event(self):
    return self.made("aclrtEvent", lib.aclrtCreateEvent, end=lib.aclrtDestroyEvent)


@helper
def timed_event(self):
    made = self.made("aclrtEvent", lib.aclrtCreateEvent, end=lib.aclrtDestroyEvent)
    ok(lib.aclrtRecordEvent(made, self.stream()))
    ok(lib.aclrtSynchronizeEvent(made))
    return made


@helper
def recorded_event(self):
    made = self.event()
    ok(lib.aclrtRecordEvent(made, self.stream()))
    return made


@helper
def captured_event(self, timed=False):
    made = self.timed_event() if timed else self.event()
    ok(lib.aclrtRecordEvent(made, self.recording(mode=2)))
    return made


@helper
def spoiled_event(self):
    made = self.event()
    stream = self.recording()
    ok(lib.aclrtRecordEvent(made, stream))
    assert lib.aclrtSynchronizeStream(stream) != 0
    return made


@helper
def host(self):
    return self.made("void *", lib.aclrtMallocHost, 64, end=lib.aclrtFreeHost)


@helper
def joined(self):
    """A stream that joined a capture, whose origin waits for it."""
    origin, stream, fork, join = self.recording(), self.stream(), self.event(), self.event()
    ok(lib.aclrtRecordEvent(fork, origin))
    ok(lib.aclrtStreamWaitEvent(stream, fork))
    ok(lib.aclrtRecordEvent(join, stream))
    ok(lib.aclrtStreamWaitEvent(origin, join))
    return stream


@helper
def forked(self):
    origin, stream, fork = self.recording(), self.stream(), self.event()
    ok(lib.aclrtRecordEvent(fork, origin))
    ok(lib.aclrtStreamWaitEvent(stream, fork))
    return origin


@helper
def with_child(self):
    arguments = self.choice()
    ok(lib.aclmdlRIAddCondTask(*arguments))
    part = self.stream()
    ok(lib.aclmdlRICaptureToModelRIBegin(part, arguments[0].modelRIArray[0], 2))
    return arguments[1]


@helper
def wrong_update(self):
    """Nothing in place of an operator."""
    stream = self.stream()
    ok(lib.aclmdlRICaptureTaskUpdateBegin(stream, self.group(self.operator)))
    return stream


@helper
def filled_child(self):
    child = self.child()
    part = self.stream()
    ok(lib.aclmdlRICaptureToModelRIBegin(part, child, 2))
    self.fill(part)
    ok(lib.aclmdlRICaptureEnd(part, out("aclmdlRI")))
    return child


@helper
def spoiled_group(self):
    stream = self.grouping()
    assert lib.aclrtSynchronizeStream(stream) != 0
    return stream


@helper
def blocked(self):
    """A built model that waits for a number that never comes."""
    model = self.open_model()
    stream = self.bound(model)
    cell = self.memory()
    ok(lib.aclrtMemset(cell, 64, 0, 64))
    ok(lib.aclrtValueWait(cell, 1, 1, stream))
    ok(lib.aclmdlRIBuildEnd(model, NULL))
    return model


@helper
def faulty(self, fill=False):
    """A built model that uses memory that was freed after it was built."""
    model = self.open_model()
    stream = self.bound(model)
    cell = self.made("void *", lib.aclrtMalloc, 64, 0)
    ok(lib.aclrtMemsetAsync(cell, 64, 0, 64, stream) if fill else lib.aclrtValueWrite(cell, 1, 0, stream))
    ok(lib.aclmdlRIBuildEnd(model, NULL))
    ok(lib.aclrtFree(cell))
    return model


@helper
def impatient(self, recorded):
    """A built model that waits a second for a notify."""
    model = self.open_model()
    ok(lib.aclrtWaitAndResetNotify(self.notify(recorded), self.bound(model), 1))
    ok(lib.aclmdlRIBuildEnd(model, NULL))
    return model


@helper
def stale_labels(self):
    label = self.made("aclrtLabel", lib.aclrtCreateLabel)
    made = self.made("aclrtLabelList", lambda cell: lib.aclrtCreateLabelList(ffi.new("aclrtLabel[1]", [label]), 1, cell),
                     end=lib.aclrtDestroyLabelList)
    ok(lib.aclrtDestroyLabel(label))
    return made


def bytes_of(arguments):
    plain = [item for item in arguments if isinstance(item, ffi.CData) and ffi.typeof(item).kind in ("pointer", "array")
             and ffi.typeof(item).item.kind in ("primitive", "enum")]
    return [bytes(ffi.buffer(item)) for item in plain]


def run(function, changes=None, call=None):
    """The legal call with some arguments changed, by position: values, or functions of the scene."""
    with contextlib.ExitStack() as stack:
        scene = Scene(stack)
        arguments = LEGAL[function](scene)
        for position, change in (changes or {}).items():
            arguments[position] = change(scene) if callable(change) and not isinstance(change, ffi.CData) else change
        before = bytes_of(arguments)
        status = (call or (lambda f, a: f(*a)))(getattr(lib, function), arguments)
        return Result(status, bytes_of(arguments) == before if before else None)


def rule(name, refused, accepted=None):
    function = name.split("/")[0]
    return case(name, lambda: run(function, refused), lambda: run(function, accepted))


def without_context(function, arguments):
    with no_context():
        return function(*arguments)


def on_product(name):
    with device():
        kept = [ffi.new("char[512]") for _ in range(8)]
        function = getattr(lib, name)
        arguments = []
        for kind in ffi.typeof(function).args:
            if kind.kind == "pointer" and kind.item.kind in ("void", "function"):
                arguments.append(ffi.cast(kind, 0x1000))
            elif kind.kind == "pointer":
                arguments.append(ffi.cast(kind, kept[len(arguments)]))
            elif kind.kind == "struct":
                models = ffi.cast("aclmdlRI *", kept[-1])
                arguments.append(ffi.new(f"{kind.cname} *", {"handle": STRANGE, "size": 1, "modelRIArray": models})[0])
            else:
                arguments.append(0)
        return function(*arguments)


def memset_on_product():
    with device():
        return run("aclrtMemset").status


RECORDS = ["aclmdlRICaptureBegin", "aclmdlRICaptureEnd", "aclmdlRICaptureThreadExchangeMode",
           "aclmdlRICaptureTaskGrpBegin", "aclmdlRICaptureTaskGrpEnd", "aclmdlRICaptureTaskUpdateBegin",
           "aclmdlRICaptureTaskUpdateEnd", "aclmdlRICaptureToModelRIBegin", "aclmdlRIAddCondTask",
           "aclmdlRIExecuteAsync", "aclmdlRIGetId", "aclmdlRIGetStreams", "aclmdlRIGetTasksByStream",
           "aclmdlRITaskGetType", "aclmdlRITaskGetSeqId", "aclmdlRITaskGetParams", "aclmdlRITaskSetParams",
           "aclmdlRITaskDisable", "aclmdlRIUpdate", "aclmdlRIDebugJsonPrint", "aclmdlRIDebugPrint",
           "aclrtRecordEventWithFlag", "aclrtStreamWaitEventWithFlag"]  # fmt: skip
VALUES = ["aclrtValueWrite", "aclrtValueWait"]
CONDITIONS = ["aclmdlRICondHandleCreate", "aclmdlRICondHandleGetCondPtr"]
NEED_CONTEXT = [*RECORDS, *VALUES, "aclmdlRIBuildBegin", "aclmdlRIBindStream", "aclmdlRIEndTask", "aclmdlRIUnbindStream",
                "aclmdlRIExecute", "aclrtCreateLabel", "aclrtSetLabel", "aclrtCreateLabelList", "aclrtSwitchLabelByIndex",
                "aclrtSwitchStream", "aclrtActiveStream"]  # fmt: skip
MODELS = {"aclmdlRICaptureToModelRIBegin": 1, **{name: 0 for name in (
    "aclmdlRIBindStream", "aclmdlRIEndTask", "aclmdlRIBuildEnd", "aclmdlRIUnbindStream", "aclmdlRIExecute",
    "aclmdlRIExecuteAsync", "aclmdlRIDestroy", "aclmdlRIDestroyRegisterCallback", "aclmdlRIDestroyUnregisterCallback",
    "aclmdlRISetName", "aclmdlRIGetName", "aclmdlRIGetId", "aclmdlRIGetStreams", "aclmdlRIUpdate",
    "aclmdlRIDebugJsonPrint", "aclmdlRIDebugPrint", "aclmdlRICondHandleCreate")}}  # fmt: skip
# Functions that take no default stream, and where their stream stands.
STREAMS = {"aclmdlRICaptureBegin": 0, "aclmdlRICaptureEnd": 0, "aclmdlRICaptureTaskGrpBegin": 0,
           "aclmdlRICaptureTaskGrpEnd": 0, "aclmdlRICaptureTaskUpdateBegin": 0, "aclmdlRICaptureTaskUpdateEnd": 0,
           "aclmdlRICaptureToModelRIBegin": 0, "aclmdlRIAddCondTask": 1, "aclmdlRIBindStream": 1, "aclmdlRIEndTask": 1,
           "aclmdlRIUnbindStream": 1}  # fmt: skip
# Functions whose stream may be the default one, unless something is captured.
WORK = {"aclmdlRIExecuteAsync": 1, "aclrtValueWrite": 3, "aclrtValueWait": 3, "aclrtSynchronizeStream": 0,
        "aclrtSynchronizeStreamWithTimeout": 0, "aclrtStreamQuery": 0, "aclrtRecordEvent": 1, "aclrtResetEvent": 1,
        "aclrtStreamWaitEvent": 0, "aclrtStreamWaitEventWithTimeout": 0, "aclrtMemcpyAsync": 5,
        "aclrtMemcpyAsyncWithCondition": 5, "aclrtMemcpy2dAsync": 7, "aclrtMemsetAsync": 4, "aclrtMemsetD32Async": 4,
        "aclrtLaunchHostFunc": 0, "aclrtRecordEventWithFlag": 1, "aclrtStreamWaitEventWithFlag": 0,
        "aclrtMemcpyBatchAsync": 9, "aclrtLaunchCallback": 3, "aclrtRecordNotify": 1, "aclrtWaitAndResetNotify": 1,
        "aclrtGetOverflowStatus": 2, "aclrtResetOverflowStatus": 0}  # fmt: skip
# Streams that get no tasks, or none which are no operators.
GROUPS = [("group", lambda s: s.grouping()), ("other-group", lambda s: s.beside_group()), ("closed", lambda s: s.closed())]
# Functions that put tasks into a stream that are no operators.
TASKS = {**{name: position for name, position in WORK.items()
            if name not in ("aclmdlRIExecuteAsync", "aclrtSynchronizeStream", "aclrtSynchronizeStreamWithTimeout",
                            "aclrtStreamQuery")}, "aclrtMemcpyBatchAsyncV2": 8}  # fmt: skip
DEAD = {"aclmdlRIExecuteAsync": 1, "aclrtValueWrite": 3, "aclrtValueWait": 3, "aclrtRecordEventWithFlag": 1,
        "aclrtStreamWaitEventWithFlag": 0, **STREAMS}  # fmt: skip
OUTPUTS = [("aclmdlRICaptureEnd", "modelRI", 1), ("aclmdlRICaptureThreadExchangeMode", "mode", 0),
           ("aclmdlRICaptureTaskGrpEnd", "handle", 1), ("aclmdlRICaptureTaskUpdateBegin", "handle", 1),
           ("aclmdlRICondHandleCreate", "handle", 3), ("aclmdlRICondHandleGetCondPtr", "handle", 0),
           ("aclmdlRICondHandleGetCondPtr", "ptr", 1), ("aclmdlRIBuildBegin", "modelRI", 0),
           ("aclmdlRIDestroyRegisterCallback", "func", 1), ("aclmdlRIDestroyUnregisterCallback", "func", 1),
           ("aclmdlRISetName", "name", 1), ("aclmdlRIGetName", "name", 2), ("aclmdlRIGetId", "modelRIId", 1),
           ("aclmdlRIGetStreams", "numStreams", 2), ("aclmdlRIGetTasksByStream", "numTasks", 2),
           ("aclmdlRITaskGetType", "type", 1), ("aclmdlRITaskGetType", "task", 0), ("aclmdlRITaskGetSeqId", "id", 1),
           ("aclmdlRITaskGetSeqId", "task", 0), ("aclmdlRITaskGetParams", "params", 1),
           ("aclmdlRITaskGetParams", "task", 0), ("aclmdlRITaskSetParams", "params", 1),
           ("aclmdlRITaskSetParams", "task", 0), ("aclmdlRITaskDisable", "task", 0),
           ("aclmdlRIDebugJsonPrint", "path", 1), ("aclrtRecordEventWithFlag", "event", 0),
           ("aclrtStreamWaitEventWithFlag", "event", 1), ("aclrtCreateLabel", "label", 0), ("aclrtDestroyLabel", "label", 0),
           ("aclrtSetLabel", "label", 0), ("aclrtSetLabel", "stream", 1), ("aclrtCreateLabelList", "labels", 0),
           ("aclrtCreateLabelList", "labelList", 2), ("aclrtDestroyLabelList", "labelList", 0),
           ("aclrtSwitchLabelByIndex", "ptr", 0), ("aclrtSwitchLabelByIndex", "labelList", 2),
           ("aclrtSwitchLabelByIndex", "stream", 3), ("aclrtSwitchStream", "leftValue", 0),
           ("aclrtSwitchStream", "rightValue", 2), ("aclrtSwitchStream", "trueStream", 4),
           ("aclrtSwitchStream", "stream", 6), ("aclrtActiveStream", "activeStream", 0), ("aclrtActiveStream", "stream", 1),
           ("aclrtValueWrite", "devAddr", 0), ("aclrtValueWait", "devAddr", 0)]  # fmt: skip
GONE = [("aclmdlRICaptureTaskUpdateBegin", "handle", 1), ("aclmdlRICondHandleGetCondPtr", "handle", 0),
        ("aclmdlRIGetTasksByStream", "stream", 0), ("aclmdlRITaskGetType", "task", 0), ("aclmdlRITaskGetSeqId", "task", 0),
        ("aclmdlRITaskGetParams", "task", 0), ("aclmdlRITaskSetParams", "task", 0), ("aclmdlRITaskDisable", "task", 0),
        ("aclrtRecordEventWithFlag", "event", 0), ("aclrtStreamWaitEventWithFlag", "event", 1),
        ("aclrtDestroyLabel", "label", 0), ("aclrtSetLabel", "label", 0), ("aclrtSetLabel", "stream", 1),
        ("aclrtDestroyLabelList", "labelList", 0), ("aclrtSwitchLabelByIndex", "labelList", 2),
        ("aclrtSwitchLabelByIndex", "stream", 3), ("aclrtSwitchStream", "trueStream", 4),
        ("aclrtSwitchStream", "stream", 6), ("aclrtActiveStream", "activeStream", 0),
        ("aclrtActiveStream", "stream", 1)]  # fmt: skip


def destroyed_model(scene):
    model = scene.own_model()
    ok(lib.aclmdlRIDestroy(model))
    return model


def gone(scene):
    made = scene.made("aclrtStream", lib.aclrtCreateStream)
    ok(lib.aclrtDestroyStream(made))
    return made


def default_stream(scene):
    """The default stream by its own handle."""
    made = out("aclrtStream")
    ok(lib.aclrtCtxGetCurrentDefaultStream(made))
    return made[0]


def implicit(scene):
    scene.recording(mode=2)
    return NULL


def choice_with(**changes):
    return lambda scene: scene.choice(**changes)[0]


def used_condition(scene):
    stream = scene.recording()
    handle = scene.condition(stream)
    ok(lib.aclmdlRIAddCondTask(*scene.choice(stream, handle=handle)))
    return scene.choice(stream, handle=handle)[0]


def repeated(scene):
    event = scene.event()
    stream = scene.recording()
    ok(lib.aclrtRecordEventWithFlag(event, stream, 1))
    return event, stream


def sub_stream(scene):
    part = scene.stream()
    ok(lib.aclmdlRICaptureToModelRIBegin(part, scene.child(), 2))
    return part


def set_label(scene):
    label = scene.label()
    ok(lib.aclrtSetLabel(label, scene.bound()))
    return label


def many_names(scene):
    return ffi.new("char[]", b"x" * 512)


def repeated_pair(function):
    """Both arguments come from one place: an event that the captured stream records already."""

    def call():
        with contextlib.ExitStack() as stack:
            event, stream = repeated(Scene(stack))
            order = (event, stream, 1) if function == "aclrtRecordEventWithFlag" else (stream, event, 0, 1)
            return getattr(lib, function)(*order)

    return case(f"{function}/event/repeated", call, lambda: run(function))


def updating_group(scene):
    handle = scene.group()
    ok(lib.aclmdlRICaptureTaskUpdateBegin(scene.stream(), handle))
    return handle


def end_in_this_thread():
    with contextlib.ExitStack() as stack:
        scene = Scene(stack)
        made = []

        def begin():
            ok(lib.aclrtSetDevice(0))
            made.append(scene.recording(mode=1))
            ok(lib.aclrtResetDevice(0))

        in_thread(begin)
        cell = out("aclmdlRI")
        return Result(lib.aclmdlRICaptureEnd(made[0], cell), cell[0] == NULL)


def under_capture(function, changes=None):
    """A call that a GLOBAL capture forbids its thread; legal when the thread's own mode is RELAXED."""

    def call(mode):
        with contextlib.ExitStack() as stack:
            scene = Scene(stack)
            arguments = LEGAL[function](scene)
            for index, value in (changes or {}).items():
                arguments[index] = value
            scene.recording()
            old = out("aclmdlRICaptureMode", mode)
            ok(lib.aclmdlRICaptureThreadExchangeMode(old))
            status = getattr(lib, function)(*arguments)
            ok(lib.aclmdlRICaptureThreadExchangeMode(old))
            return status

    return case(f"{function}/thread/capture", lambda: call(0), lambda: call(2))


def in_context(function):
    def call():
        with contextlib.ExitStack() as stack:
            Scene(stack).recording(mode=2)
            return getattr(lib, function)(*LEGAL[function](None))

    return case(f"{function}/context/capture", call, lambda: run(function))


def a_stream(scene):
    return scene.stream()


R = rule
RULES = [
    *[case(f"{name}/device/unsupported", lambda name=name: on_product(name), memset_on_product, ON_910)
      for name in [*RECORDS, *VALUES, *CONDITIONS]],
    case("aclrtSwitchStream/device/unsupported", lambda: on_product("aclrtSwitchStream"), memset_on_product, ON_A3),
    *[case(f"{name}/context/none", lambda name=name: run(name, call=without_context), lambda name=name: run(name))
      for name in NEED_CONTEXT],
    *[R(f"{name}/modelRI/null", {place: NULL}) for name, place in MODELS.items()],
    *[R(f"{name}/modelRI/dead", {place: destroyed_model}) for name, place in MODELS.items()],
    *[R(f"{name}/stream/null", {place: NULL}) for name, place in STREAMS.items()],
    *[R(f"{name}/stream/default", {place: default_stream}) for name, place in STREAMS.items()],
    *[R(f"{name}/stream/dead", {place: gone}) for name, place in DEAD.items()],
    *[R(f"{name}/stream/implicit", {place: implicit}) for name, place in WORK.items()],
    *[R(f"{name}/{parameter}/null", {place: NULL}) for name, parameter, place in OUTPUTS],
    *[R(f"{name}/{parameter}/dead", {place: STRANGE}) for name, parameter, place in GONE],
    R("aclrtCreateLabelList/label/dead", {0: lambda s: ffi.new("aclrtLabel[1]", [STRANGE])}),
    R("aclrtCreateLabelList/label/null", {0: lambda s: ffi.new("aclrtLabel[1]", [NULL])}),
    R("aclmdlRIAddCondTask/handle/dead", {0: choice_with(handle=STRANGE)}),
    R("aclmdlRIAddCondTask/handle/null", {0: choice_with(handle=NULL)}),
    R("aclmdlRIAddCondTask/modelRIArray/null", {0: choice_with(modelRIArray=NULL)}),
    R("aclmdlRIAddCondTask/type/range", {0: choice_with(type=3)}),
    R("aclmdlRIAddCondTask/size/range", {0: choice_with(size=3)}, {0: choice_with(size=2)}),
    R("aclmdlRIAddCondTask/flags/range", {2: 1}),
    R("aclmdlRIAddCondTask/handle/used", {0: used_condition}),
    R("aclmdlRIAddCondTask/stream/idle", {1: lambda s: s.stream()}),
    R("aclmdlRIAddCondTask/capture/invalidated", {1: lambda s: s.spoiled()}),
    R("aclmdlRICaptureBegin/mode/range", {1: 3}, {1: 2}),
    R("aclmdlRICaptureBegin/stream/capturing", {0: lambda s: s.recording()}),
    R("aclmdlRICaptureToModelRIBegin/mode/range", {2: 3}),
    R("aclmdlRICaptureToModelRIBegin/stream/capturing", {0: lambda s: s.recording()}),
    R("aclmdlRICaptureToModelRIBegin/modelRI/parent", {1: lambda s: s.model()}),
    R("aclmdlRICaptureToModelRIBegin/modelRI/filled", {1: lambda s: s.filled_child()}),
    R("aclmdlRICaptureThreadExchangeMode/mode/range", {0: lambda s: out("aclmdlRICaptureMode", 3)}),
    R("aclmdlRICaptureEnd/stream/idle", {0: lambda s: s.stream()}),
    R("aclmdlRICaptureEnd/stream/origin", {0: lambda s: s.joined()}),
    R("aclmdlRICaptureEnd/stream/unjoined", {0: lambda s: s.forked()}),
    R("aclmdlRICaptureEnd/stream/group", {0: lambda s: s.grouping()}),
    R("aclmdlRICaptureEnd/stream/child", {0: lambda s: s.with_child()}),
    R("aclmdlRICaptureEnd/capture/invalidated", {0: lambda s: s.spoiled()}),
    case("aclmdlRICaptureEnd/thread/other", end_in_this_thread, lambda: run("aclmdlRICaptureEnd")),
    R("aclmdlRICaptureTaskGrpBegin/stream/idle", {0: lambda s: s.stream()}),
    R("aclmdlRICaptureTaskGrpBegin/stream/group", {0: lambda s: s.grouping()}),
    R("aclmdlRICaptureTaskGrpBegin/capture/invalidated", {0: lambda s: s.spoiled()}),
    R("aclmdlRICaptureTaskGrpEnd/stream/idle", {0: lambda s: s.stream()}),
    R("aclmdlRICaptureTaskGrpEnd/stream/group", {0: lambda s: s.recording()}),
    R("aclmdlRICaptureTaskGrpEnd/capture/invalidated", {0: lambda s: s.spoiled_group()}),
    R("aclmdlRICaptureTaskUpdateBegin/stream/capturing", {0: lambda s: s.recording()}),
    R("aclmdlRICaptureTaskUpdateBegin/stream/group", {1: updating_group}),
    R("aclmdlRICaptureTaskUpdateEnd/stream/group", {0: lambda s: s.stream()}),
    R("aclmdlRICaptureTaskUpdateEnd/stream/tasks", {0: lambda s: s.wrong_update()}),
    R("aclmdlRICondHandleCreate/flag/range", {2: 2}, {2: 1}),
    R("aclmdlRICondHandleCreate/modelRI/kind", {0: lambda s: s.open_model()}),
    R("aclmdlRICondHandleCreate/modelRI/idle", {0: lambda s: s.model()}),
    R("aclmdlRIBuildBegin/flag/range", {1: 1}),
    R("aclmdlRIBindStream/flag/range", {2: 1}, {2: lib.ACL_MODEL_STREAM_FLAG_DEFAULT}),
    *[R(f"{name}/modelRI/closed", {0: lambda s: s.built()})
      for name in ("aclmdlRIBindStream", "aclmdlRIEndTask", "aclmdlRIBuildEnd")],
    R("aclmdlRIBindStream/stream/persistent", {1: lambda s: s.stream()}),
    R("aclmdlRIBindStream/stream/context", {1: lambda s: s.foreign()}),
    R("aclmdlRIBindStream/stream/bound", {1: lambda s: s.bound()}),
    R("aclmdlRIBindStream/stream/capturing", {1: lambda s: s.recording(flags=lib.ACL_STREAM_PERSISTENT)}),
    R("aclrtSetStreamFailureMode/stream/bound", {0: lambda s: s.bound()}, {0: lambda s: s.persistent()}),
    R("aclmdlRIEndTask/stream/unbound", {1: lambda s: s.persistent()}),
    R("aclmdlRIUnbindStream/stream/unbound", {1: lambda s: s.persistent()}),
    R("aclmdlRIUnbindStream/modelRI/running", {0: lambda s: s.running()}),
    R("aclmdlRIBuildEnd/reserve/range", {1: STRANGE}),
    R("aclmdlRIExecute/timeout/range", {1: 0}, {1: 10000}),
    R("aclmdlRIExecute/timeout/expired", {0: lambda s: s.blocked(), 1: 1}),
    R("aclmdlRIExecute/modelRI/kernel-fault", {0: lambda s: s.faulty()}),
    R("aclmdlRIExecute/modelRI/copy-fault", {0: lambda s: s.faulty(fill=True)}),
    R("aclmdlRIExecute/modelRI/wait-timeout", {0: lambda s: s.impatient(recorded=False)},
      {0: lambda s: s.impatient(recorded=True)}),
    R("aclmdlRIExecute/modelRI/kind", {0: lambda s: s.model()}),
    R("aclmdlRIExecute/modelRI/unfinished", {0: lambda s: s.open_model()}),
    R("aclmdlRIExecute/modelRI/empty", {0: lambda s: s.built(empty=True)}),
    R("aclmdlRIExecuteAsync/modelRI/unfinished", {0: lambda s: s.open_model()}),
    R("aclmdlRIExecuteAsync/modelRI/empty", {0: lambda s: s.built(empty=True)}),
    R("aclmdlRIExecuteAsync/modelRI/captured", {0: lambda s: s.model_of(s.recording())}),
    R("aclmdlRIExecuteAsync/stream/capturing", {1: lambda s: s.recording()}),
    R("aclmdlRIDestroy/modelRI/child", {0: lambda s: s.child()}),
    R("aclmdlRIDestroy/modelRI/captured", {0: lambda s: s.model_of(s.recording())}),
    R("aclmdlRIDestroy/modelRI/running", {0: lambda s: s.running()}),
    R("aclmdlRIDestroyRegisterCallback/func/limit", {0: lambda s: s.with_callback(64)}, {0: lambda s: s.with_callback(63)}),
    R("aclmdlRIDestroyUnregisterCallback/func/unregistered", {0: lambda s: s.model()}),
    R("aclmdlRISetName/name/length", {1: many_names}),
    R("aclmdlRIGetName/maxLen/zero", {1: 0}),
    R("aclmdlRIGetStreams/modelRI/kind", {0: lambda s: s.built()}),
    R("aclmdlRIGetStreams/count/small", {2: out("uint32_t", 0)}),
    R("aclmdlRIGetTasksByStream/count/small", {2: out("uint32_t", 0)}),
    R("aclmdlRITaskSetParams/task/type", {0: lambda s: s.task()}),
    R("aclmdlRITaskSetParams/params/type", {1: lambda s: s.parameters(kind=6)}),
    R("aclmdlRITaskSetParams/params/value", {1: lambda s: s.parameters(address=NULL)}),
    R("aclmdlRIUpdate/modelRI/kind", {0: lambda s: s.built()}),
    R("aclmdlRIUpdate/modelRI/running", {0: lambda s: s.running()}),
    R("aclmdlRIDebugJsonPrint/flags/range", {2: 2}),
    R("aclmdlRIDebugJsonPrint/path/unwritable", {1: lambda s: ffi.new("char[]", s.path() + b"/x")}),
    *[R(f"{name}/flag/range", {place: 2}) for name, place in
      (("aclrtRecordEventWithFlag", 2), ("aclrtStreamWaitEventWithFlag", 3))],
    R("aclrtStreamWaitEventWithFlag/timeout/range", {2: 1}),
    *[R(f"aclrtStreamWaitEventWithFlag/event/{kind}", {3: 0, **broken}, {3: 0, **legal}) for kind, broken, legal in (
        ("unrecorded", {0: a_stream, 1: lambda s: s.plain_event()}, {0: a_stream, 1: lambda s: s.timed_event()}),
        ("sync", {0: a_stream, 1: lambda s: s.event(lib.ACL_EVENT_TIME_LINE)}, {0: a_stream, 1: lambda s: s.event()}),
        ("uncaptured", {1: lambda s: s.recorded_event()}, {0: a_stream, 1: lambda s: s.recorded_event()}),
        ("other-capture", {0: lambda s: s.recording(mode=2), 1: lambda s: s.captured_event()},
         {0: a_stream, 1: lambda s: s.captured_event()}))],
    R("aclrtRecordEventWithFlag/event/kind", {0: lambda s: s.timed_event()}),
    R("aclrtStreamWaitEventWithFlag/event/kind", {1: lambda s: s.timed_event()}),
    R("aclrtRecordEventWithFlag/stream/idle", {1: lambda s: s.stream()}),
    R("aclrtStreamWaitEventWithFlag/stream/idle", {0: lambda s: s.stream()}),
    R("aclrtRecordEventWithFlag/stream/child", {1: sub_stream}),
    R("aclrtStreamWaitEventWithFlag/stream/child", {0: sub_stream}),
    R("aclrtRecordEventWithFlag/capture/invalidated", {1: lambda s: s.spoiled()}),
    R("aclrtStreamWaitEventWithFlag/capture/invalidated", {0: lambda s: s.spoiled()}),
    repeated_pair("aclrtRecordEventWithFlag"),
    repeated_pair("aclrtStreamWaitEventWithFlag"),
    R("aclrtSetLabel/label/set", {0: set_label}),
    *[R(f"{name}/stream/closed", {position: lambda s: s.closed()}) for name, position in
      (("aclrtSetLabel", 1), ("aclrtSwitchLabelByIndex", 3), ("aclrtSwitchStream", 6), ("aclrtActiveStream", 1))],
    R("aclrtSetLabel/stream/unbound", {1: lambda s: s.persistent()}),
    R("aclrtCreateLabelList/num/range", {1: 0}),
    R("aclrtSwitchLabelByIndex/maxValue/range", {1: 2}),
    R("aclrtSwitchLabelByIndex/stream/unbound", {3: lambda s: s.persistent()}),
    R("aclrtSwitchLabelByIndex/label/dead", {2: lambda s: s.stale_labels()}),
    R("aclrtSwitchStream/cond/range", {1: 6}, {1: 5}),
    R("aclrtSwitchStream/dataType/range", {3: 2}, {3: 1}),
    R("aclrtSwitchStream/falseStream/range", {5: STRANGE}),
    R("aclrtSwitchStream/trueStream/unbound", {4: lambda s: s.persistent()}),
    R("aclrtSwitchStream/stream/unbound", {6: lambda s: s.persistent()}),
    R("aclrtSwitchStream/stream/idle", {6: lambda s: s.bound()}),
    R("aclrtActiveStream/activeStream/unbound", {0: lambda s: s.persistent()}),
    R("aclrtActiveStream/stream/unbound", {1: lambda s: s.persistent()}),
    R("aclrtActiveStream/stream/idle", {1: lambda s: s.bound()}),
    *[R(f"{name}/devAddr/alignment", {0: lambda s: ffi.cast("void *",
                                                            int(ffi.cast("uintptr_t", s.memory())) + 4)})
      for name in VALUES],
    R("aclrtValueWrite/flag/range", {2: 1}),
    R("aclrtValueWait/flag/range", {2: 4}, {2: 3}),
    *[R(f"{name}/stream/capture", {0: lambda s: s.recording()})
      for name in ("aclrtSynchronizeStream", "aclrtSynchronizeStreamWithTimeout", "aclrtStreamQuery")],
    *[R(f"{name}/event/captured", {0: lambda s, timed=timed: s.captured_event(timed)}) for name, timed in
      (("aclrtQueryEvent", True), ("aclrtQueryEventStatus", False), ("aclrtSynchronizeEvent", False),
       ("aclrtSynchronizeEventWithTimeout", False), ("aclrtQueryEventWaitStatus", True), ("aclrtEventGetTimestamp", True))],
    *[R(f"aclrtEventElapsedTime/{parameter}/captured", {position: lambda s: s.captured_event(True)})
      for position, parameter in ((1, "startEvent"), (2, "endEvent"))],
    *[in_context(name) for name in ("aclrtSynchronizeDevice", "aclrtSynchronizeDeviceWithTimeout")],
    *[under_capture(name) for name in ("aclrtMemcpy", "aclrtMemset", "aclrtMemsetD32", "aclrtMemcpy2d", "aclrtMemcpyBatch",
                                      "aclrtMemcpyBatchV2", "aclrtMemcpyBatchAsync", "aclrtMemcpyBatchAsyncV2")],
    *[under_capture(name, {2: PAGEABLE, 4: 1}) for name in ("aclrtMemcpyAsync", "aclrtMemcpyAsyncWithCondition")],
    under_capture("aclrtMemcpy2dAsync", {2: PAGEABLE}),
    *[R(f"{name}/stream/pageable", {2: ffi.new("char[4]"), 4: 1, 5: lambda s: s.recording()},
        {2: lambda s: s.host(), 4: 1, 5: lambda s: s.recording()})
      for name in ("aclrtMemcpyAsync", "aclrtMemcpyAsyncWithCondition")],
    R("aclrtMemcpy2dAsync/stream/pageable", {2: ffi.new("char[4]"), 7: lambda s: s.recording()},
      {7: lambda s: s.recording()}),
    R("aclrtMemcpyBatchAsync/stream/pageable", {9: lambda s: s.recording()}),
    R("aclrtMemcpyBatchAsyncV2/stream/pageable", {8: lambda s: s.recording()}),
    *[R(f"{name}/stream/{rule}", {index: place})
      for name, index in {**TASKS, "aclmdlRIAddCondTask": 1}.items() for rule, place in GROUPS],
    R("aclrtRecordEvent/capture/invalidated", {1: lambda s: s.spoiled()}, {1: lambda s: s.recording()}),
    R("aclrtResetEvent/capture/invalidated", {1: lambda s: s.spoiled()}, {1: lambda s: s.recording()}),
    *[R(f"{name}/event/uncaptured", {0: lambda s: s.recording()}, {0: lambda s: s.stream()})
      for name in ("aclrtStreamWaitEvent", "aclrtStreamWaitEventWithTimeout")],
    *[R(f"{name}/event/other-capture", {0: lambda s: s.recording(mode=2), 1: lambda s: s.captured_event()},
        {1: lambda s: s.captured_event()}) for name in ("aclrtStreamWaitEvent", "aclrtStreamWaitEventWithTimeout")],
    *[R(f"{name}/capture/invalidated", {1: lambda s: s.spoiled_event()}, {1: lambda s: s.captured_event()})
      for name in ("aclrtStreamWaitEvent", "aclrtStreamWaitEventWithTimeout")],
]  # fmt: skip


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
