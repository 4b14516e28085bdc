"""Callbacks of states, exceptions and starts; work that is stopped; notes to recorded tasks (cann-runtime-3 6, 13.4)."""

import contextlib
import threading

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend import test_acl_built_in, test_acl_managed_memory, test_acl_memory_pool, test_acl_model
from tests.conformance.ascend.acl_support import ALONE, Out, case, device, no_context, ok, with_out
from tests.conformance.ascend.test_acl_callback import OTHER_THREAD, nothing, this_thread
from tests.conformance.ascend.test_acl_model import NULL, ON_910, STRANGE, Scene, destroyed_model, gone
from tests.conformance.harness import check_rule

STARTING = {"UNDERSTUDY_LOG": "off"}  # what is registered stays: in a process of its own


def in_scene(function):
    """A case's function that gets a Scene, as one without parameters."""

    def run():
        with contextlib.ExitStack() as stack:
            return function(Scene(stack))

    run.__module__ = function.__module__
    return run


# ---- callbacks with a name ----

@ffi.callback("aclrtStreamStateCallback")
def stream_state(_stream, _state, _arguments):
    pass


@ffi.callback("aclrtDeviceStateCallback")
def device_state(_device, _state, _arguments):
    pass


@ffi.callback("aclrtDeviceTaskAbortCallback")
def task_abort(_device, _stage, _timeout, _arguments):
    return 0


NAMED = {"aclrtRegStreamStateCallback": stream_state, "aclrtRegDeviceStateCallback": device_state,
         "aclrtSetDeviceTaskAbortCallback": task_abort}  # fmt: skip


def register(name, text=b"case", already=()):
    function = getattr(lib, name)
    for other in already:
        ok(function(other, NAMED[name], NULL))
    status = function(text, NAMED[name], NULL)
    for known in {*already, text}:
        if 0 < len(known) < 128:
            ok(function(known, NULL, NULL))
    return status


def named_cases(name):
    many = [b"%d" % i for i in range(64)]
    return [
        case(f"{name}/regName/empty", lambda: register(name, b""), lambda: register(name)),
        case(f"{name}/regName/length", lambda: register(name, b"x" * 128), lambda: register(name, b"x" * 127)),
        case(f"{name}/regName/registered", lambda: register(name, already=[b"case"]),
             lambda: register(name, already=[b"other"])),
        case(f"{name}/regName/limit", lambda: register(name, already=many), lambda: register(name, already=many[1:])),
    ]  # fmt: skip


# ---- start and end ----

@ffi.callback("aclInitCallbackFunc")
def started(_text, _size, result):
    return int(ffi.cast("intptr_t", result))


@ffi.callback("aclFinalizeCallbackFunc")
def ended(result):
    return int(ffi.cast("intptr_t", result))


STARTS = {"aclInitCallbackRegister": started, "aclInitCallbackUnRegister": started,
          "aclFinalizeCallbackRegister": ended, "aclFinalizeCallbackUnRegister": ended}  # fmt: skip


def start_callback(name, kind=0, function=True, result=0):
    arguments = [kind, STARTS[name] if function else NULL]
    return getattr(lib, name)(*arguments, *([] if "UnRegister" in name else [ffi.cast("void *", result)]))


def many_starts(name, count):
    """So many different functions, and then one more."""
    base = int(ffi.cast("intptr_t", STARTS[name]))
    function = getattr(lib, name)
    for i in range(count):  # never called: this process does not initialise
        ok(function(0, ffi.cast(ffi.typeof(STARTS[name]), base + 1 + i), NULL))
    status = function(0, STARTS[name], NULL)
    for i in range(count):
        ok(getattr(lib, name.replace("Register", "UnRegister"))(0, ffi.cast(ffi.typeof(STARTS[name]), base + 1 + i)))
    return status


def initialise(result, ends):
    """The callback of the start, or that of one of the two ends, gives a status."""
    ok(lib.aclInitCallbackRegister(1, started, ffi.cast("void *", 0 if ends else result)))
    ok(lib.aclFinalizeCallbackRegister(1, ended, ffi.cast("void *", result if ends else 0)))
    status = lib.aclInit(NULL)
    return {None: lambda: status, "aclFinalize": lib.aclFinalize,
            "aclFinalizeReference": lambda: lib.aclFinalizeReference(NULL)}[ends]()


def register_late(result):
    ok(lib.aclInit(NULL))
    return lib.aclInitCallbackRegister(2, started, ffi.cast("void *", result))


# ---- exceptions ----

@ffi.callback("aclrtExceptionInfoCallback")
def exception(_info):
    pass


def many_exceptions(count):
    base = int(ffi.cast("intptr_t", exception))
    functions = [ffi.cast(ffi.typeof(exception), base + 1 + i) for i in range(count)]
    for function in functions:
        ok(lib.aclrtExceptionInfoCallbackRegister(function))
    status = lib.aclrtExceptionInfoCallbackRegister(exception)
    for function in [*functions, exception]:
        ok(lib.aclrtExceptionInfoCallbackUnregister(function))
    return status


def arguments_of_task(skip=None):
    """The function looks at nothing but whether there is a task: its kernels have no arguments in device memory."""
    address, size = Out(), Out("uint32_t")
    given = {"info": ffi.cast("aclrtExceptionInfo *", STRANGE), "devArgsPtr": address.cell, "devArgsLen": size.cell}
    if skip:
        given[skip] = NULL
    return address.result(lib.aclrtGetArgsFromExceptionInfo(*given.values()))


# ---- stopping ----

def while_aborting(function, legal):
    """The legal call, from a callback of an abort."""

    def run():
        seen = []
        with contextlib.ExitStack() as stack:
            arguments = legal[function](Scene(stack))

            @ffi.callback("aclrtDeviceTaskAbortCallback")
            def stop(_device, stage, _timeout, _arguments):
                if stage == 0:
                    seen.append(getattr(lib, function)(*arguments))
                return 0

            ok(lib.aclrtSetDeviceTaskAbortCallback(b"case", stop, NULL))
            ok(lib.aclrtDeviceTaskAbort(0, 0))
            ok(lib.aclrtSetDeviceTaskAbortCallback(b"case", NULL, NULL))
        return seen[0]

    return run


WAITS = [f"{name}{suffix}" for name in ("aclrtSynchronizeDevice", "aclrtSynchronizeEvent") for suffix in ("", "WithTimeout")]
WORK = {**{name: test_acl_model for name in (*test_acl_model.WORK, "aclmdlRIExecute", *WAITS)},
        **{name: module for module in (test_acl_built_in, test_acl_memory_pool,
                                       test_acl_managed_memory) for name in module.STREAMS}}  # fmt: skip


def abort(timeout=0, ordinal=0):
    with device():
        return lib.aclrtDeviceTaskAbort(ordinal, timeout)


@in_scene
def abort_what_does_not_end(scene):
    """A callback that runs: the program's own code cannot be stopped."""
    begun, over = threading.Event(), threading.Event()

    @ffi.callback("void(void *)")
    def block(_):
        begun.set()
        over.wait(20)

    stream = scene.stream()
    ok(lib.aclrtLaunchHostFunc(stream, block, NULL))
    lib.aclrtStreamQuery(stream, ffi.new("aclrtStreamStatus *"))
    assert begun.wait(20)
    status = lib.aclrtDeviceTaskAbort(0, 1)
    over.set()
    ok(lib.aclrtSynchronizeStream(stream))
    return status


def stop(stream):
    return in_scene(lambda scene: lib.aclrtStreamStop(stream(scene)))


def clean(stream):
    return in_scene(lambda scene: lib.aclrtPersistentTaskClean(stream(scene)))


def model_of_running(scene):
    """A persistent stream whose model waits in another stream for an event that never comes."""
    model = scene.open_model()
    stream = scene.bound(model)
    scene.fill(stream)
    ok(lib.aclmdlRIBuildEnd(model, NULL))
    other, event = scene.stream(), scene.made("aclrtEvent", lib.aclrtCreateEventWithFlag, 1, end=lib.aclrtDestroyEvent)
    ok(lib.aclrtStreamWaitEvent(other, event))
    ok(lib.aclmdlRIExecuteAsync(model, other))
    return stream


def stop_model(model):
    return in_scene(lambda scene: lib.aclmdlRIAbort(model(scene)))


# ---- host functions of threads ----

@contextlib.contextmanager
def served(thread=OTHER_THREAD):
    with contextlib.ExitStack() as stack:
        scene = Scene(stack)
        stream = scene.stream()
        ok(lib.aclrtSubscribeHostFunc(thread, stream))
        yield scene, stream
        ok(lib.aclrtUnSubscribeHostFunc(thread, stream))


def subscribe(stream=None):
    def run(scene):
        target = scene.stream() if stream is None else stream(scene)
        status = lib.aclrtSubscribeHostFunc(OTHER_THREAD, target)
        if status == 0:
            ok(lib.aclrtUnSubscribeHostFunc(OTHER_THREAD, target))
        return status

    return in_scene(run)


def subscribe_twice():
    with served() as (_, stream):
        return lib.aclrtSubscribeHostFunc(this_thread(), stream)


def subscribe_elsewhere(ordinal):
    with served():
        with device(ordinal), contextlib.ExitStack() as stack:
            other = Out()
            ok(lib.aclrtCreateStream(other.cell))
            stack.callback(lib.aclrtDestroyStream, other.value)
            status = lib.aclrtSubscribeHostFunc(OTHER_THREAD, other.value)
            if status == 0:
                ok(lib.aclrtUnSubscribeHostFunc(OTHER_THREAD, other.value))
        ok(lib.aclrtSetDevice(0))
        ok(lib.aclrtResetDevice(0))
        return status


def unsubscribe(stream, thread=OTHER_THREAD):
    def run():
        with served() as (scene, first):
            target = stream(scene, first)
            status = lib.aclrtUnSubscribeHostFunc(thread, target)
            if status == 0:
                ok(lib.aclrtSubscribeHostFunc(OTHER_THREAD, target))
            return status

    return run


def legal_unsubscribe():
    with served() as (scene, _):
        other = scene.stream()
        ok(lib.aclrtSubscribeHostFunc(OTHER_THREAD, other))
        return lib.aclrtUnSubscribeHostFunc(OTHER_THREAD, other)


def process(timeout, launches=True):
    with served(this_thread()) as (_, stream):
        if launches:
            ok(lib.aclrtLaunchHostFunc(stream, nothing, NULL))
        return lib.aclrtProcessHostFunc(timeout)


# ---- notes ----

def note(name="aclrtCacheLastTaskOpInfo", text=b"note", size=4, cache=1, stream=None, flags=0):
    def run(scene):
        made = (stream or Scene.recording)(scene)
        value = ffi.new("aclrtStreamAttrValue *")
        value.cacheOpInfoSwitch = cache
        ok(lib.aclrtSetStreamAttribute(made, lib.ACL_STREAM_ATTR_CACHE_OP_INFO, value))
        scene.fill(made)
        return getattr(lib, name)(NULL if text is None else ffi.from_buffer(text), size)

    return in_scene(run)


def note_without_task(name):
    return in_scene(lambda scene: (scene.model(), getattr(lib, name)(b"note", 4))[1])


def without_context(call):
    def run():
        with contextlib.ExitStack() as stack:
            stream = Scene(stack).persistent()
            with no_context():
                return call(stream)

    return run


NOTES = ["aclrtCacheLastTaskOpInfo", "aclrtCacheLastTaskExtendInfo"]
CALLS_ON_910 = {
    "aclrtSetDeviceTaskAbortCallback": lambda: lib.aclrtSetDeviceTaskAbortCallback(b"case", task_abort, NULL),
    "aclrtDeviceTaskAbort": abort,
    "aclrtStreamStop": stop(lambda s: s.stream()), "aclrtPersistentTaskClean": clean(lambda s: s.persistent()),
    "aclrtCacheLastTaskOpInfo": lambda: lib.aclrtCacheLastTaskOpInfo(b"note", 4),
    "aclrtCacheLastTaskExtendInfo": lambda: lib.aclrtCacheLastTaskExtendInfo(b"note", 4),
}  # fmt: skip
LEGAL = {"aclrtStreamStop": stop(lambda s: s.stream()), "aclrtPersistentTaskClean": clean(lambda s: s.persistent()),
         "aclrtSubscribeHostFunc": subscribe(), "aclrtUnSubscribeHostFunc": legal_unsubscribe,
         **{name: note(name) for name in NOTES}}  # fmt: skip

RULES = [
    *[entry for name in NAMED for entry in named_cases(name)],
    *[case(f"{name}/device/unsupported", call, lambda: register("aclrtRegStreamStateCallback"), ON_910)
      for name, call in CALLS_ON_910.items()],
    *[case(f"{name}/type/range", lambda name=name: start_callback(name, 8), lambda name=name: start_callback(name, 7),
           STARTING)
      for name in STARTS],
    *[case(f"{name}/cbFunc/null", lambda name=name: start_callback(name, function=False),
           lambda name=name: start_callback(name), STARTING) for name in STARTS],
    *[case(f"{name}/cbFunc/limit", lambda name=name: many_starts(name, 64), lambda name=name: many_starts(name, 63),
           STARTING)
      for name in STARTS if "UnRegister" not in name],
    case("aclInit/callback/failed", lambda: initialise(100003, None), lambda: lib.aclFinalize(), STARTING),
    *[case(f"{name}/callback/failed", lambda name=name: initialise(100003, name), lambda: lib.aclInit(NULL), STARTING)
      for name in ("aclFinalize", "aclFinalizeReference")],
    case("aclInitCallbackRegister/callback/failed", lambda: register_late(100003),
         lambda: lib.aclInitCallbackRegister(2, started, NULL), STARTING),
    case("aclrtExceptionInfoCallbackRegister/callback/null", lambda: lib.aclrtExceptionInfoCallbackRegister(NULL),
         lambda: many_exceptions(0)),
    case("aclrtExceptionInfoCallbackUnregister/callback/null", lambda: lib.aclrtExceptionInfoCallbackUnregister(NULL),
         lambda: lib.aclrtExceptionInfoCallbackUnregister(exception)),
    case("aclrtExceptionInfoCallbackRegister/callback/limit", lambda: many_exceptions(64), lambda: many_exceptions(63)),
    *[case(f"aclrtGetArgsFromExceptionInfo/{name}/null", lambda name=name: arguments_of_task(name), arguments_of_task)
      for name in ("info", "devArgsPtr", "devArgsLen")],
    case("aclrtGetThreadLastTaskId/taskId/null", lambda: lib.aclrtGetThreadLastTaskId(NULL),
         with_out("uint32_t", lib.aclrtGetThreadLastTaskId)),
    case("aclrtDeviceTaskAbort/deviceId/range", lambda: abort(ordinal=2), lambda: abort(ordinal=1), ALONE),
    case("aclrtDeviceTaskAbort/timeout/range", lambda: abort(2160001), lambda: abort(2160000)),
    case("aclrtDeviceTaskAbort/timeout/expired", abort_what_does_not_end, lambda: abort(1)),
    *[case(f"{name}/device/aborting", while_aborting(name, module.LEGAL), lambda name=name, module=module: module.run(name))
      for name, module in WORK.items()],
    *[case(f"{name}/context/none", without_context(call), LEGAL[name]) for name, call in (
        ("aclrtStreamStop", lib.aclrtStreamStop), ("aclrtPersistentTaskClean", lib.aclrtPersistentTaskClean),
        ("aclrtSubscribeHostFunc", lambda s: lib.aclrtSubscribeHostFunc(OTHER_THREAD, s)),
        ("aclrtUnSubscribeHostFunc", lambda s: lib.aclrtUnSubscribeHostFunc(OTHER_THREAD, s)),
        ("aclrtCacheLastTaskOpInfo", lambda _: lib.aclrtCacheLastTaskOpInfo(b"note", 4)),
        ("aclrtCacheLastTaskExtendInfo", lambda _: lib.aclrtCacheLastTaskExtendInfo(b"note", 4)))],
    case("aclrtStreamStop/stream/dead", stop(gone), LEGAL["aclrtStreamStop"]),
    case("aclrtStreamStop/stream/default", stop(lambda s: NULL), LEGAL["aclrtStreamStop"]),
    case("aclrtStreamStop/stream/bound", stop(lambda s: s.bound()), stop(lambda s: s.persistent())),
    case("aclrtPersistentTaskClean/stream/null", clean(lambda s: NULL), LEGAL["aclrtPersistentTaskClean"]),
    case("aclrtPersistentTaskClean/stream/dead", clean(gone), LEGAL["aclrtPersistentTaskClean"]),
    case("aclrtPersistentTaskClean/stream/persistent", clean(lambda s: s.stream()), LEGAL["aclrtPersistentTaskClean"]),
    case("aclrtPersistentTaskClean/modelRI/running", clean(model_of_running), clean(lambda s: s.bound())),
    case("aclmdlRIAbort/modelRI/null", stop_model(lambda s: NULL), stop_model(lambda s: s.built())),
    case("aclmdlRIAbort/modelRI/dead", stop_model(destroyed_model), stop_model(lambda s: s.built())),
    case("aclmdlRIAbort/modelRI/kind", stop_model(lambda s: s.model()), stop_model(lambda s: s.built())),
    case("aclrtSubscribeHostFunc/stream/null", subscribe(lambda s: NULL), subscribe()),
    case("aclrtSubscribeHostFunc/stream/dead", subscribe(gone), subscribe()),
    case("aclrtSubscribeHostFunc/stream/subscribed", subscribe_twice, subscribe()),
    case("aclrtSubscribeHostFunc/threadId/device", lambda: subscribe_elsewhere(1), lambda: subscribe_elsewhere(0), ALONE),
    case("aclrtUnSubscribeHostFunc/stream/null", unsubscribe(lambda scene, own: NULL), legal_unsubscribe),
    case("aclrtUnSubscribeHostFunc/stream/dead", unsubscribe(lambda scene, own: gone(scene)), legal_unsubscribe),
    case("aclrtUnSubscribeHostFunc/stream/unsubscribed", unsubscribe(lambda scene, own: scene.stream()), legal_unsubscribe),
    case("aclrtUnSubscribeHostFunc/threadId/unsubscribed", unsubscribe(lambda scene, own: own, OTHER_THREAD + 1),
         legal_unsubscribe),
    case("aclrtProcessHostFunc/timeout/range", lambda: process(0), lambda: process(-1)),
    case("aclrtProcessHostFunc/thread/unsubscribed", lambda: lib.aclrtProcessHostFunc(10), lambda: process(10000)),
    case("aclrtProcessHostFunc/timeout/expired", lambda: process(1, launches=False), lambda: process(10000)),
    case("aclrtCacheLastTaskOpInfo/infoPtr/null", note(text=None), note()),
    case("aclrtCacheLastTaskExtendInfo/extendInfoPtr/null", note(NOTES[1], text=None), note(NOTES[1])),
    *[case(f"{name}/infoSize/zero", note(name, size=0), note(name, size=1)) for name in NOTES],
    case("aclrtCacheLastTaskOpInfo/infoSize/range", note(text=bytes(65537), size=65537),
         note(text=bytes(65536), size=65536)),
    *[case(f"{name}/task/none", note_without_task(name), note(name)) for name in NOTES],
    case("aclrtCacheLastTaskOpInfo/stream/capture", note(stream=Scene.bound), note()),
    case("aclrtCacheLastTaskOpInfo/stream/cache", note(cache=0), note(NOTES[1], cache=0)),
]  # fmt: skip


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
