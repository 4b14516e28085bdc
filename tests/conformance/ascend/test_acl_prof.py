"""The profiler (cann-runtime-3 15). What concerns the whole process runs in a child of its own."""

import contextlib
import os
import tempfile

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, case, dead_stream, device, no_context, ok, stream
from tests.conformance.ascend.test_acl_model import Scene
from tests.conformance.harness import Result, check_rule

NULL = ffi.NULL
STORAGE = 1


FOLDERS = tempfile.TemporaryDirectory(prefix="understudy-profiles-")


def folder() -> bytes:
    return os.fsencode(tempfile.mkdtemp(dir=FOLDERS.name))


def init(path=None, length=None):
    given = folder() if path is None else path
    return lib.aclprofInit(given, len(given) if length is None else length)


def init_and_end(*arguments):
    status = init(*arguments)
    if status == 0:
        ok(lib.aclprofFinalize())
    return status


@contextlib.contextmanager
def initialised():
    ok(init())
    try:
        yield
    finally:
        lib.aclprofFinalize()


def configuration(mask: int = 1):
    made = lib.aclprofCreateConfig(NULL, 0, lib.ACL_AICORE_NONE, NULL, mask)
    assert made != NULL
    return made


def dead_configuration():
    made = configuration()
    ok(lib.aclprofDestroyConfig(made))
    return made


def create_configuration(devices=NULL, count: int = 0, events=NULL, status: int = 100000):
    made = lib.aclprofCreateConfig(devices, count, lib.ACL_AICORE_NONE, events, 1)
    return Result(0 if made != NULL else status)


def start_second(device: int):
    """With device 0 profiled already."""
    with initialised():
        for number in (0, device):
            made = lib.aclprofCreateConfig(ffi.new("uint32_t *", number), 1, lib.ACL_AICORE_NONE, NULL, 1)
            status = lib.aclprofStart(made)
        return status


def init_after(configuration: bytes):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(configuration)
        file.flush()
        ok(lib.aclInit(os.fsencode(file.name)))
    status = init_and_end()
    ok(lib.aclFinalize())
    return status


def start(make=configuration, ready: bool = True, twice: bool = False):
    with initialised() if ready else contextlib.nullcontext():
        given = make()
        status = lib.aclprofStart(given)
        return lib.aclprofStart(given) if twice else status


def stop(make=None, ready: bool = True, started: bool = True):
    with initialised() if ready else contextlib.nullcontext():
        given = configuration()
        if ready and started:
            ok(lib.aclprofStart(given))
        return lib.aclprofStop(given if make is None else make())


def set_config(kind: int = STORAGE, text=b"200MB", length=None):
    return lib.aclprofSetConfig(kind, text, (len(text) if text else 5) if length is None else length)


def write_end():
    ends = os.pipe()
    os.close(ends[0])
    return ffi.new("int *", ends[1])


def subscription(fd=None):
    made = lib.aclprofCreateSubscribeConfig(1, lib.ACL_AICORE_NONE, write_end() if fd is None else fd)
    return made


def create_subscription(fd=None):
    return Result(0 if subscription(fd) != NULL else 100000)


def dead_subscription():
    made = subscription()
    ok(lib.aclprofDestroySubscribeConfig(made))
    return made


def subscribe(make=subscription, first=contextlib.nullcontext):
    with first():
        status = lib.aclprofModelSubscribe(7, make())
    if status == 0:
        ok(lib.aclprofModelUnSubscribe(7))
    return status


def init_after_a_subscription():
    ok(lib.aclprofModelSubscribe(7, subscription()))
    return init()


def unsubscribe():
    ok(lib.aclprofModelSubscribe(9, subscription()))
    return lib.aclprofModelUnSubscribe(9)


# ---- stamps ----


def stamp(text: bytes = b"text"):
    made = lib.aclprofCreateStamp()
    ok(lib.aclprofSetStampTraceMessage(made, text, len(text)))
    return made


def dead_stamp():
    made = stamp()
    lib.aclprofDestroyStamp(made)
    return made


def message(made=None, text=b"text", length: int = 4):
    return lib.aclprofSetStampTraceMessage(stamp() if made is None else made, text, length)


def push(made=None):
    status = lib.aclprofPush(stamp() if made is None else made)
    if status == 0:
        ok(lib.aclprofPop())
    return status


def deep(again, count: int):
    """The status and the rule of a push after so many."""
    one = stamp()
    for _ in range(count):
        ok(lib.aclprofPush(one))
    status = again()
    for _ in range(count + (status == 0)):
        ok(lib.aclprofPop())
    return status


def push_ex(null: bool = False):
    status = lib.aclprofRangePushEx(NULL if null else ffi.new("aclprofEventAttributes *"))
    if status == 0:
        ok(lib.aclprofRangePop())
    return status


def pop_after_push(pop):
    ok(lib.aclprofPush(stamp()))
    return pop()


def range_start(made=None, null: bool = False):
    return lib.aclprofRangeStart(stamp() if made is None else made, NULL if null else ffi.new("uint32_t *"))


def range_stop():
    number = ffi.new("uint32_t *")
    ok(lib.aclprofRangeStart(stamp(), number))
    return lib.aclprofRangeStop(number[0])


def mark_ex(text=b"text", length: int = 4, on=None):
    with device(), stream() as own:
        return lib.aclprofMarkEx(text, length, own if on is None else on())


def mark_without_context():
    with device(), no_context():
        return lib.aclprofMarkEx(b"text", 4, NULL)


def mark_in_scene(of):
    with contextlib.ExitStack() as stack:
        return lib.aclprofMarkEx(b"text", 4, of(Scene(stack)))


def step(tags=(0,), made=None, on=NULL):
    given = lib.aclprofCreateStepInfo() if made is None else made
    return [lib.aclprofGetStepTimestamp(given, tag, on) for tag in tags][-1]


def dead_step():
    made = lib.aclprofCreateStepInfo()
    lib.aclprofDestroyStepInfo(made)
    return made


def on_dead_stream():
    with device():
        return step(on=dead_stream())


def size_of_records(null: bool = False):
    return lib.aclprofGetOpDescSize(NULL if null else ffi.new("size_t *"))


RULES = [
    case("aclprofInit/profilerResultPath/null", lambda: init(NULL, 4), init_and_end, ALONE),
    case("aclprofInit/length/range", lambda: init(b"x", 0), init_and_end, ALONE),
    case("aclprofInit/profilerResultPath/unusable", lambda: init(b"/proc/none/x"), init_and_end, ALONE),
    case("aclprofInit/profiling/running", lambda: init() or init(), lambda: lib.aclprofFinalize(), ALONE),
    case("aclprofInit/profiling/conflict", init_after_a_subscription,
         lambda: lib.aclprofModelUnSubscribe(7) or init(), ALONE),
    case("aclprofFinalize/profiling/idle", lambda: lib.aclprofFinalize(), init_and_end, ALONE),
    case("aclprofStart/profilerConfig/null", lambda: start(lambda: NULL), start, ALONE),
    case("aclprofStart/profilerConfig/dead", lambda: start(dead_configuration), start, ALONE),
    case("aclprofStart/profilerConfig/data", lambda: start(lambda: configuration(1 << 63)), start, ALONE),
    case("aclprofStart/profiling/idle", lambda: start(ready=False), start, ALONE),
    case("aclprofStart/profiling/running", lambda: start_second(0), lambda: start_second(1), ALONE),
    case("aclprofInit/profiling/configured", lambda: init_after(b'{"profiler": {"switch": "on"}}'),
         lambda: init_after(b'{"profiler": {"switch": "off"}}'), ALONE),
    case("aclprofCreateConfig/deviceIdList/range",
         lambda: create_configuration(ffi.new("uint32_t *", 2), 1, status=107001),
         lambda: create_configuration(ffi.new("uint32_t *", 1), 1), ALONE),
    case("aclprofStop/profilerConfig/null", lambda: stop(lambda: NULL), stop, ALONE),
    case("aclprofStop/profilerConfig/dead", lambda: stop(dead_configuration), stop, ALONE),
    case("aclprofStop/profilerConfig/stopped", lambda: stop(started=False), stop, ALONE),
    case("aclprofStop/profiling/idle", lambda: stop(ready=False), stop, ALONE),
    case("aclprofCreateConfig/deviceIdList/null", lambda: create_configuration(count=1), create_configuration),
    case("aclprofCreateConfig/aicoreEvents/reserved", lambda: create_configuration(events=ffi.cast("void *", 4096)),
         create_configuration),
    case("aclprofDestroyConfig/profilerConfig/null", lambda: lib.aclprofDestroyConfig(NULL),
         lambda: lib.aclprofDestroyConfig(configuration())),
    case("aclprofDestroyConfig/profilerConfig/dead", lambda: lib.aclprofDestroyConfig(dead_configuration()),
         lambda: lib.aclprofDestroyConfig(configuration())),
    case("aclprofSetConfig/config/null", lambda: set_config(text=NULL, length=5), set_config),
    case("aclprofSetConfig/configLength/range", lambda: set_config(3, b"1" * 257), lambda: set_config(3, b"100")),
    case("aclprofSetConfig/configType/range", lambda: set_config(2, b"1"), lambda: set_config(3, b"1")),
    case("aclprofSetConfig/config/value", lambda: set_config(text=b"199"), lambda: set_config(text=b"200")),
    case("aclprofCreateSubscribeConfig/fd/null", lambda: create_subscription(NULL), create_subscription),
    case("aclprofDestroySubscribeConfig/profSubscribeConfig/null", lambda: lib.aclprofDestroySubscribeConfig(NULL),
         lambda: lib.aclprofDestroySubscribeConfig(subscription())),
    case("aclprofDestroySubscribeConfig/profSubscribeConfig/dead",
         lambda: lib.aclprofDestroySubscribeConfig(dead_subscription()),
         lambda: lib.aclprofDestroySubscribeConfig(subscription())),
    case("aclprofModelSubscribe/profSubscribeConfig/null", lambda: subscribe(lambda: NULL), subscribe, ALONE),
    case("aclprofModelSubscribe/profSubscribeConfig/dead", lambda: subscribe(dead_subscription), subscribe, ALONE),
    case("aclprofModelSubscribe/modelId/repeated", lambda: lib.aclprofModelSubscribe(7, subscription())
         or lib.aclprofModelSubscribe(7, subscription()), lambda: lib.aclprofModelSubscribe(8, subscription()), ALONE),
    case("aclprofModelSubscribe/profiling/conflict", lambda: subscribe(first=initialised), subscribe, ALONE),
    case("aclprofModelUnSubscribe/modelId/unknown", lambda: lib.aclprofModelUnSubscribe(9), unsubscribe, ALONE),
    case("aclprofGetOpDescSize/opDescSize/null", lambda: size_of_records(null=True), size_of_records),
    case("aclprofSetStampTraceMessage/stamp/null", lambda: message(NULL), message),
    case("aclprofSetStampTraceMessage/stamp/dead", lambda: message(dead_stamp()), message),
    case("aclprofSetStampTraceMessage/msg/null", lambda: message(text=NULL), message),
    case("aclprofSetStampTraceMessage/msgLen/range", lambda: message(text=b"x" * 128, length=128),
         lambda: message(text=b"x" * 127, length=127)),
    case("aclprofMark/stamp/null", lambda: lib.aclprofMark(NULL), lambda: lib.aclprofMark(stamp())),
    case("aclprofMark/stamp/dead", lambda: lib.aclprofMark(dead_stamp()), lambda: lib.aclprofMark(stamp())),
    case("aclprofMarkEx/msg/null", lambda: mark_ex(NULL), mark_ex),
    case("aclprofMarkEx/msgLen/range", lambda: mark_ex(length=0), lambda: mark_ex(length=1)),
    case("aclprofMarkEx/context/none", mark_without_context, lambda: mark_ex(on=lambda: NULL)),
    case("aclprofMarkEx/stream/implicit", lambda: mark_in_scene(lambda scene: (scene.recording(mode=2), NULL)[1]),
         lambda: mark_in_scene(lambda scene: (scene.stream(), NULL)[1])),
    case("aclprofMarkEx/stream/closed", lambda: mark_in_scene(Scene.closed), lambda: mark_in_scene(Scene.bound)),
    case("aclprofMarkEx/stream/dead", lambda: mark_ex(on=dead_stream), mark_ex),
    case("aclprofPush/stamp/null", lambda: push(NULL), push),
    case("aclprofPush/stamp/dead", lambda: push(dead_stamp()), push),
    case("aclprofPush/range/depth", lambda: deep(lambda: lib.aclprofPush(stamp()), 128),
         lambda: deep(lambda: lib.aclprofPush(stamp()), 127)),
    case("aclprofRangePushEx/range/depth",
         lambda: deep(lambda: lib.aclprofRangePushEx(ffi.new("aclprofEventAttributes *")), 128),
         lambda: deep(lambda: lib.aclprofRangePushEx(ffi.new("aclprofEventAttributes *")), 127)),
    case("aclprofRangePushEx/attr/null", lambda: push_ex(null=True), push_ex),
    case("aclprofPop/range/none", lambda: lib.aclprofPop(), lambda: pop_after_push(lib.aclprofPop)),
    case("aclprofRangePop/range/none", lambda: lib.aclprofRangePop(), lambda: pop_after_push(lib.aclprofRangePop)),
    case("aclprofRangeStart/stamp/null", lambda: range_start(NULL), range_start),
    case("aclprofRangeStart/stamp/dead", lambda: range_start(dead_stamp()), range_start),
    case("aclprofRangeStart/rangeId/null", lambda: range_start(null=True), range_start),
    case("aclprofRangeStop/rangeId/unknown", lambda: lib.aclprofRangeStop(1 << 31), range_stop),
    case("aclprofGetStepTimestamp/stepInfo/null", lambda: step(made=NULL), step),
    case("aclprofGetStepTimestamp/stepInfo/dead", lambda: step(made=dead_step()), step),
    case("aclprofGetStepTimestamp/stream/dead", on_dead_stream, step),
    case("aclprofGetStepTimestamp/tag/range", lambda: step((2,)), step),
    case("aclprofGetStepTimestamp/tag/order", lambda: step((1,)), lambda: step((0, 1))),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
