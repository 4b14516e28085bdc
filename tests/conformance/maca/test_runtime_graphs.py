"""Rules of captured graphs, and what a capture forbids other functions (maca-runtime 7.5)."""

import contextlib
import threading

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import Result, RuleCase, check_rule
from tests.maca import runtime_support as rt

NULL = ffi.NULL


class Scene:
    """What a call needs; its streams, and so its captures, end with the scene."""

    def __init__(self, stack):
        self.stack = stack

    def stream(self, flags=0):
        made = rt.stream(flags)
        self.stack.callback(lib.mcStreamDestroy, made)
        return made

    def recording(self, mode=0, flags=0):
        made = self.stream(flags)
        rt.ok(lib.mcStreamBeginCapture(made, mode))
        return made

    def spoiled(self):
        made = self.recording()
        assert lib.mcStreamSynchronize(made) != 0
        return made

    def graph(self, fills=1):
        stream = self.recording()
        for _ in range(fills):
            rt.ok(lib.mcMemsetAsync(self.memory, 0, 16, stream))
        return rt.made("mcGraph_t", lambda cell: lib.mcStreamEndCapture(stream, cell))

    def executable(self):
        return rt.made("mcGraphExec_t", lib.mcGraphInstantiate, self.graph(), NULL, NULL, 0)

    _memory = None

    @property
    def memory(self):
        """One block for all scenes, made when it is first needed: who imports this has used no device, and may fork."""
        if Scene._memory is None:
            mode = out("mcStreamCaptureMode", lib.mcStreamCaptureModeRelaxed)  # a capture may be going on
            rt.ok(lib.mcThreadExchangeStreamCaptureMode(mode))
            Scene._memory = rt.device_memory()
            rt.ok(lib.mcThreadExchangeStreamCaptureMode(mode))
        return Scene._memory

    def joined(self, returns=True):
        """The stream a capture began on, and one that joined it."""
        origin, other, fork, join = self.recording(), self.stream(), rt.event(), rt.event()
        rt.ok(lib.mcEventRecord(fork, origin))
        rt.ok(lib.mcStreamWaitEvent(other, fork, 0))
        if returns:
            rt.ok(lib.mcEventRecord(join, other))
            rt.ok(lib.mcStreamWaitEvent(origin, join, 0))
        return origin, other

    def captured_event(self, spoiled=False):
        event, stream = rt.event(), self.recording(mode=1)
        rt.ok(lib.mcEventRecord(event, stream))
        if spoiled:
            assert lib.mcStreamSynchronize(stream) != 0
        return event

    def of_another_thread(self):
        made = []
        thread = threading.Thread(target=lambda: made.append(self.recording(mode=1)))
        thread.start()
        thread.join()
        return made[0]


def out(kind, *value):
    return ffi.new(f"{kind} *", *value)


@ffi.callback("void(void *)")
def nothing(_):
    pass


LEGAL = {
    "mcStreamBeginCapture": lambda s: [s.stream(), 2],
    "mcStreamEndCapture": lambda s: [s.recording(), out("mcGraph_t")],
    "mcStreamIsCapturing": lambda s: [s.recording(), out("mcStreamCaptureStatus")],
    "mcThreadExchangeStreamCaptureMode": lambda s: [out("mcStreamCaptureMode")],
    "mcGraphDestroy": lambda s: [s.graph()],
    "mcGraphClone": lambda s: [out("mcGraph_t"), s.graph()],
    "mcGraphGetNodes": lambda s: [s.graph(), NULL, out("size_t")],
    "mcGraphInstantiate": lambda s: [out("mcGraphExec_t"), s.graph(), NULL, NULL, 0],
    "mcGraphExecDestroy": lambda s: [s.executable()],
    "mcGraphLaunch": lambda s: [s.executable(), s.stream()],
    "mcGraphExecUpdate": lambda s: [s.executable(), s.graph(), NULL, out("mcGraphExecUpdateResult")],
    "mcStreamSynchronize": lambda s: [s.stream()],
    "mcStreamQuery": lambda s: [s.stream()],
    "mcStreamWaitEvent": lambda s: [s.stream(), rt.recorded_event(), 0],
    "mcLaunchHostFunc": lambda s: [NULL, nothing, NULL],
    "mcEventRecord": lambda s: [rt.event(), s.stream()],
    "mcEventRecordWithFlags": lambda s: [rt.event(), s.stream(), 0],
    "mcEventSynchronize": lambda s: [rt.event()],
    "mcEventQuery": lambda s: [rt.event()],
    "mcDeviceSynchronize": lambda s: [],
    "mcMalloc": lambda s: [out("void *"), 64],
    "mcMallocManaged": lambda s: [out("void *"), 64, lib.mcMemAttachGlobal],
    "mcFree": lambda s: [rt.device_memory()],
    "mcMallocAsync": lambda s: [out("void *"), 64, s.stream()],
    "mcFreeAsync": lambda s: [rt.device_memory(), s.stream()],
    "mcMallocFromPoolAsync": lambda s: [out("void *"), 64, rt.pool(), s.stream()],
    "mcMemcpy": lambda s: [s.memory, s.memory, 0 + 16, rt.D2D],
    "mcMemcpy2D": lambda s: [s.memory, 16, s.memory, 16, 16, 1, rt.D2D],
    "mcMemset": lambda s: [s.memory, 0, 16],
    "mcMemcpyAsync": lambda s: [s.memory, s.memory, 16, rt.D2D, NULL],
    "mcMemcpy2DAsync": lambda s: [s.memory, 16, s.memory, 16, 16, 1, rt.D2D, NULL],
    "mcMemcpyPeerAsync": lambda s: [s.memory, 0, s.memory, 0, 16, NULL],
    "mcMemsetAsync": lambda s: [s.memory, 0, 16, NULL],
}
_kept = []


def run(function, changes=None, before=None, call=None):
    with contextlib.ExitStack() as stack:
        scene = Scene(stack)
        arguments = LEGAL[function](scene)
        for position, change in (changes or {}).items():
            plain = isinstance(change, (ffi.CData, int))
            arguments[position] = change if plain else change(scene)
        _kept.append(arguments)
        if before is not None:
            before(scene)
        return (call or (lambda f, a: Result(f(*a))))(getattr(lib, function), arguments)


def case(rule, refused=None, accepted=None, before=None, env=None, call=None):
    function = rule.split("/")[0]
    return RuleCase(rule, refused=lambda: run(function, refused, before, call), accepted=lambda: run(function, accepted),
                    env=env or {})


def in_host_function(function, arguments):
    results = []
    callback = ffi.callback("void(void *)", lambda _: results.append(function(*arguments)))
    stream = rt.stream()
    rt.ok(lib.mcLaunchHostFunc(stream, callback, NULL))
    lib.mcStreamSynchronize(stream)
    return Result(results[0])


def broken(scene):
    """Breaks the device until the end of the scene; what the scene made ends with the device."""
    scene.stack.pop_all()
    mode = out("mcStreamCaptureMode", lib.mcStreamCaptureModeRelaxed)  # so that a capture does not forbid what follows
    rt.ok(lib.mcThreadExchangeStreamCaptureMode(mode))
    rt.break_device()

    def renew():
        rt.ok(lib.mcDeviceReset())
        Scene._memory = None
        rt.ok(lib.mcThreadExchangeStreamCaptureMode(mode))

    scene.stack.callback(renew)


def capture_all(scene):
    scene.recording(mode=2)


def capture_global(scene):
    scene.recording(mode=0, flags=lib.mcStreamNonBlocking)


def dead_graph(scene):
    made = scene.graph()
    rt.ok(lib.mcGraphDestroy(made))
    return made


INLINE = {"UNDERSTUDY_STREAM": "inline"}
STREAMS = {"mcStreamBeginCapture": 0, "mcStreamEndCapture": 0, "mcStreamIsCapturing": 0, "mcGraphLaunch": 1}
GRAPHS = {"mcGraphDestroy": 0, "mcGraphClone": 1, "mcGraphGetNodes": 0, "mcGraphInstantiate": 1, "mcGraphExecUpdate": 1}
EXECUTABLES = {"mcGraphExecDestroy": 0, "mcGraphLaunch": 0, "mcGraphExecUpdate": 0}
NULLS = [("mcStreamEndCapture", "graph", 1), ("mcStreamIsCapturing", "status", 1),
         ("mcThreadExchangeStreamCaptureMode", "mode", 0), ("mcGraphClone", "clone", 0), ("mcGraphGetNodes", "numNodes", 2),
         ("mcGraphInstantiate", "graphExec", 0), ("mcGraphExecUpdate", "result", 3)]
IMPLICIT = ["mcLaunchHostFunc", "mcMemcpy", "mcMemcpy2D", "mcMemset", "mcMemcpyAsync", "mcMemcpy2DAsync",
            "mcMemcpyPeerAsync", "mcMemsetAsync"]  # on the default stream in the legal call already
ON_STREAMS = {"mcStreamIsCapturing": 0, "mcGraphLaunch": 1, "mcStreamSynchronize": 0, "mcStreamQuery": 0,
              "mcStreamWaitEvent": 0, "mcEventRecord": 1, "mcEventRecordWithFlags": 1, "mcMallocAsync": 2,
              "mcFreeAsync": 1, "mcMallocFromPoolAsync": 3}

RULES = [
    *[case(f"{f}/call/host-function", env=INLINE, call=in_host_function) for f in {**STREAMS, **GRAPHS, **EXECUTABLES}],
    *[case(f"{f}/device/fault", {place: lambda s: s.stream()}, before=broken) for f, place in STREAMS.items()],
    *[case(f"{f}/stream/alive", {place: lambda _: rt.dead_stream()}) for f, place in STREAMS.items()],
    *[case(f"{f}/stream/default", {0: rt.LEGACY}) for f in ("mcStreamBeginCapture", "mcStreamEndCapture")],
    *[case(f"{f}/graph/alive", {place: dead_graph}) for f, place in GRAPHS.items()],
    *[case(f"{f}/graphExec/alive", {place: ffi.cast("mcGraphExec_t", 16)}) for f, place in EXECUTABLES.items()],
    *[case(f"{f}/{name}/null", {place: NULL}) for f, name, place in NULLS],
    case("mcStreamBeginCapture/mode/range", {1: 3}),
    case("mcThreadExchangeStreamCaptureMode/mode/range", {0: lambda _: out("mcStreamCaptureMode", 3)}),
    case("mcStreamBeginCapture/stream/capturing", {0: lambda s: s.recording()}),
    case("mcStreamEndCapture/stream/idle", {0: lambda s: s.stream()}),
    case("mcStreamEndCapture/stream/origin", {0: lambda s: s.joined()[1]}),
    case("mcStreamEndCapture/stream/unjoined", {0: lambda s: s.joined(returns=False)[0]}, {0: lambda s: s.joined()[0]}),
    case("mcStreamEndCapture/thread/other", {0: lambda s: s.of_another_thread()}),
    case("mcStreamEndCapture/capture/invalidated", {0: lambda s: s.spoiled()}),
    case("mcGraphExecUpdate/graph/topology", {1: lambda s: s.graph(fills=2)}),
    case("mcStreamSynchronize/stream/capture", {0: lambda s: s.recording()}),
    case("mcStreamQuery/stream/capture", {0: lambda s: s.recording()}),
    case("mcMallocAsync/stream/capture", {2: lambda s: s.recording()}),
    case("mcMallocFromPoolAsync/stream/capture", {3: lambda s: s.recording()}),
    case("mcFreeAsync/stream/capture", {1: lambda s: s.recording()}),
    case("mcEventSynchronize/event/captured", {0: lambda s: s.captured_event()}),
    case("mcEventQuery/event/captured", {0: lambda s: s.captured_event()}),
    case("mcStreamWaitEvent/event/isolation", {0: lambda s: s.recording()}),
    case("mcStreamWaitEvent/event/merge", {0: lambda s: s.recording(mode=1), 1: lambda s: s.captured_event()},
         {1: lambda s: s.captured_event()}),
    case("mcStreamWaitEvent/capture/invalidated", {1: lambda s: s.captured_event(spoiled=True)},
         {1: lambda s: s.captured_event()}),
    *[case(f"{f}/capture/invalidated", {1: lambda s: s.spoiled()}, {1: lambda s: s.recording()})
      for f in ("mcEventRecord", "mcEventRecordWithFlags")],
    case("mcDeviceSynchronize/device/capture", before=capture_all),
    *[case(f"{f}/stream/implicit", before=capture_all) for f in IMPLICIT],
    *[case(f"{f}/stream/implicit", {place: NULL}, before=capture_all) for f, place in ON_STREAMS.items()],
    *[case(f"{f}/thread/capture", before=capture_global) for f in ("mcMalloc", "mcMallocManaged", "mcFree")],
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
