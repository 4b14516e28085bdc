"""Reductions, random numbers, indirect copies, prefetching; streams from a configuration, allocators (cann-runtime-3 8, 10,
18)."""

import contextlib

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import case, foreign_stream, freed_memory, no_context, ok
from tests.conformance.ascend.test_acl_model import GROUPS, NULL, ON_910, STRANGE, Scene, bytes_of, gone, implicit
from tests.conformance.harness import Result, check_rule

INNER = 6
SUM = 10


def number(value, kind: str = "float"):
    """A parameter that is in the call."""
    made = ffi.new("aclrtRandomParaInfo *")
    data = ffi.new(f"{kind} *", value)
    made.size = ffi.sizeof(kind)
    ffi.memmove(made.valueOrAddr, data, made.size)
    return made[0]


def draws(scene, function: int = 1, kind: int = 0, **changes):
    task = ffi.new("aclrtRandomNumTaskInfo *")
    task.dataType, task.randomNumFuncParaInfo.funcType = kind, function
    numbers = task.randomNumFuncParaInfo.paramInfo.uniformDisInfo
    numbers.min, numbers.max = changes.get("low", number(0.0)), changes.get("high", number(1.0))
    task.randomResultAddr = changes["result"] if "result" in changes else scene.memory()
    task.randomCounterAddr = changes["counter"] if "counter" in changes else scene.memory()
    task.randomSeed = changes.get("seed", number(7, "uint64_t"))
    task.randomNum = changes.get("count", number(4, "uint64_t"))
    return task


def at_address():
    made = ffi.new("aclrtRandomParaInfo *", {"isAddr": 1})
    return made[0]


def configuration(scene):
    made = lib.aclrtCreateStreamConfigHandle()
    scene.stack.callback(lib.aclrtDestroyStreamConfigHandle, made)
    return made


def own_configuration(scene):
    return lib.aclrtCreateStreamConfigHandle()


def dead_configuration(scene):
    made = own_configuration(scene)
    ok(lib.aclrtDestroyStreamConfigHandle(made))
    return made


def create_v2(cell, handle):
    status = lib.aclrtCreateStreamV2(cell, handle)
    if status == 0:
        ok(lib.aclrtDestroyStream(cell[0]))
        cell[0] = ffi.NULL
    return status


def allocator(scene, complete: bool = True):
    made = lib.aclrtAllocatorCreateDesc()
    scene.stack.callback(lib.aclrtAllocatorDestroyDesc, made)
    ok(lib.aclrtAllocatorSetObjToDesc(made, STRANGE))
    for name in ("Alloc", "Free", "AllocAdvise", "GetAddrFromBlock")[: 4 if complete else 1]:
        function = getattr(lib, f"aclrtAllocatorSet{name}FuncToDesc")
        ok(function(made, ffi.cast(ffi.typeof(function).args[1], 1 << 16)))
    return made


def dead_allocator(scene):
    made = lib.aclrtAllocatorCreateDesc()
    ok(lib.aclrtAllocatorDestroyDesc(made))
    return made


def with_allocator(scene):
    stream = scene.stream()
    ok(lib.aclrtAllocatorRegister(stream, allocator(scene)))
    return stream


def cells(scene):
    kinds = ffi.typeof(lib.aclrtAllocatorGetByStream).args[1:]
    return [ffi.new(kind) for kind in kinds]


def function_of(name):
    return lambda scene: ffi.cast(ffi.typeof(getattr(lib, name)).args[1], 1 << 16)


SETTERS = [f"aclrtAllocatorSet{name}FuncToDesc" for name in ("Alloc", "Free", "AllocAdvise", "GetAddrFromBlock")]
LEGAL = {
    "aclrtReduceAsync": lambda s: [s.memory(), s.memory(), 64, SUM, 0, s.stream(), NULL],
    "aclrtRandomNumAsync": lambda s: [draws(s), s.stream(), NULL],
    "aclrtGetMemcpyDescSize": lambda s: [INNER, ffi.new("size_t *")],
    "aclrtSetMemcpyDesc": lambda s: [s.memory(), INNER, s.memory(), s.memory(), 8, NULL],
    "aclrtMemcpyAsyncWithDesc": lambda s: [described(s), INNER, s.stream()],
    "aclrtMemcpyAsyncWithOffset": lambda s: [address_cell(s), 16, 0, address_cell(s), 16, 0, INNER, s.stream()],
    "aclrtMemcpyBatchV2": lambda s: [*[NULL] * 3, ffi.new("size_t[1]"), 1, NULL, NULL, 0],
    "aclrtMemcpyBatchAsyncV2": lambda s: [*batch(s), s.stream()],
    "aclrtCmoAsync": lambda s: [s.memory(), 64, 0, s.stream()],
    "aclrtCmoGetDescSize": lambda s: [ffi.new("size_t *")],
    "aclrtCmoSetDesc": lambda s: [s.memory(), s.memory(), 64],
    "aclrtCmoAsyncWithDesc": lambda s: [s.memory(), 0, s.stream(), NULL],
    "aclrtProfTrace": lambda s: [ffi.new("char[18]"), 18, s.stream()],
    "aclplatformGetDeviceInfo": lambda s: [lib.ACL_PLATFORM_VECTOR_CORE_CNT, ffi.new("char[3]", b"??"), 3],
    "aclrtHostMemMapCapabilities": lambda s: [0, 6, ffi.new("aclrtHostMemMapCapability *")],
    "aclrtDestroyStreamConfigHandle": lambda s: [own_configuration(s)],
    "aclrtSetStreamConfigOpt": lambda s: [configuration(s), 3, ffi.new("uint32_t *", 7), 4],
    "aclrtCreateStreamV2": lambda s: [ffi.new("aclrtStream *"), configuration(s)],
    "aclrtAllocatorDestroyDesc": lambda s: [lib.aclrtAllocatorCreateDesc()],
    "aclrtAllocatorSetObjToDesc": lambda s: [allocator(s), STRANGE],
    **{name: lambda s, name=name: [allocator(s), function_of(name)(s)] for name in SETTERS},
    "aclrtAllocatorRegister": lambda s: [s.stream(), allocator(s)],
    "aclrtAllocatorGetByStream": lambda s: [with_allocator(s), *cells(s)],
    "aclrtAllocatorUnregister": lambda s: [s.stream()],
}
CALLS = {"aclrtCreateStreamV2": create_v2}


def described(scene):
    made = scene.memory()
    ok(lib.aclrtSetMemcpyDesc(made, INNER, scene.memory(), scene.memory(), 8, NULL))
    return made


def address_cell(scene):
    """A cell in the device's memory that holds the address of other memory."""
    cell = scene.memory()
    address = ffi.new("void **", scene.memory())
    ok(lib.aclrtMemcpy(cell, 8, address, 8, lib.ACL_MEMCPY_HOST_TO_DEVICE))
    return ffi.cast("void **", cell)


def batch(scene):
    """One copy of 8 bytes inside the device."""
    attributes = ffi.new("aclrtMemcpyBatchAttr[1]")
    attributes[0].dstLoc.type = attributes[0].srcLoc.type = lib.ACL_MEM_LOCATION_TYPE_DEVICE
    made = [ffi.new("void *[1]", [scene.memory()]), ffi.new("size_t[1]", [8]), ffi.new("void *[1]", [scene.memory()]),
            ffi.new("size_t[1]", [8]), 1, attributes, ffi.new("size_t[1]"), 1]
    return made


def run(function, changes=None, around=contextlib.nullcontext, legal=None):
    """The legal call with some arguments changed, by position: values, or functions of the scene."""
    with contextlib.ExitStack() as stack:
        scene = Scene(stack)
        arguments = (legal or LEGAL)[function](scene)
        for position, change in (changes or {}).items():
            arguments[position] = change(scene) if callable(change) and not isinstance(change, ffi.CData) else change
        own = [item for item in arguments if isinstance(item, ffi.CData) and "void * *" not in str(item)]
        before = bytes_of(own)
        with around():
            status = CALLS.get(function, getattr(lib, function))(*arguments)
        if status == 0:
            ok(lib.aclrtSynchronizeDevice())
        return Result(status, bytes_of(own) == before if before else None)


def rule(name, changes=None, neighbour=None, env=None, around=contextlib.nullcontext, legal=None):
    function = name.split("/")[0]
    accepted = (lambda: 0) if env else (lambda: run(function, neighbour, legal=legal))
    return case(name, lambda: run(function, changes, around, legal), accepted, env)


def foreign(function, position, legal=None):
    def refused():
        with foreign_stream() as other, contextlib.ExitStack() as stack:
            arguments = (legal or LEGAL)[function](Scene(stack))
            arguments[position] = other
            return getattr(lib, function)(*arguments)

    return case(f"{function}/stream/context", refused, lambda: run(function, legal=legal))


def change_of(**changes):
    return {0: lambda scene: draws(scene, **changes)}


STREAMS = {"aclrtReduceAsync": 5, "aclrtRandomNumAsync": 1, "aclrtMemcpyAsyncWithDesc": 2, "aclrtMemcpyAsyncWithOffset": 7,
           "aclrtCmoAsync": 3, "aclrtCmoAsyncWithDesc": 2, "aclrtMemcpyBatchAsyncV2": 8, "aclrtProfTrace": 2}  # fmt: skip
NULLS = [("aclrtProfTrace/userdata", 0), ("aclplatformGetDeviceInfo/value", 1),
         ("aclrtHostMemMapCapabilities/capabilities", 2), ("aclrtReduceAsync/dst", 0), ("aclrtReduceAsync/src", 1),
         ("aclrtRandomNumAsync/taskInfo", 0),
         ("aclrtGetMemcpyDescSize/descSize", 1), ("aclrtSetMemcpyDesc/desc", 0), ("aclrtSetMemcpyDesc/srcAddr", 2),
         ("aclrtSetMemcpyDesc/dstAddr", 3), ("aclrtMemcpyAsyncWithDesc/desc", 0), ("aclrtMemcpyAsyncWithOffset/dst", 0),
         ("aclrtMemcpyAsyncWithOffset/src", 3), ("aclrtCmoAsync/src", 0), ("aclrtCmoGetDescSize/size", 0),
         ("aclrtCmoSetDesc/cmoDesc", 0), ("aclrtCmoSetDesc/src", 1), ("aclrtCmoAsyncWithDesc/cmoDesc", 0),
         ("aclrtDestroyStreamConfigHandle/handle", 0), ("aclrtSetStreamConfigOpt/handle", 0),
         ("aclrtSetStreamConfigOpt/attrValue", 2), ("aclrtCreateStreamV2/stream", 0), ("aclrtCreateStreamV2/handle", 1),
         ("aclrtAllocatorDestroyDesc/allocatorDesc", 0), ("aclrtAllocatorSetObjToDesc/allocatorDesc", 0),
         ("aclrtAllocatorSetObjToDesc/allocator", 1), ("aclrtAllocatorRegister/stream", 0),
         ("aclrtAllocatorRegister/allocatorDesc", 1), ("aclrtAllocatorGetByStream/stream", 0),
         ("aclrtAllocatorGetByStream/allocatorDesc", 3), ("aclrtAllocatorUnregister/stream", 0),
         *[(f"{name}/allocatorDesc", 0) for name in SETTERS], *[(f"{name}/func", 1) for name in SETTERS]]  # fmt: skip

RULES = [
    *[rule(f"{name}/null", {position: NULL}) for name, position in NULLS],
    *[rule(f"{name}/context/none", around=no_context) for name in [*STREAMS, "aclrtCreateStreamV2"]],
    *[rule(f"{name}/stream/dead", {position: gone}) for name, position in STREAMS.items()],
    *[rule(f"{name}/stream/implicit", {position: implicit}, {position: NULL}) for name, position in STREAMS.items()],
    *[foreign(name, position) for name, position in STREAMS.items()],
    *[rule(f"{name}/stream/{group}", {position: place})
      for name, position in STREAMS.items() if name != "aclrtMemcpyBatchAsyncV2" for group, place in GROUPS],
    rule("aclrtAllocatorRegister/stream/dead", {0: gone}),
    rule("aclrtReduceAsync/count/zero", {2: 0}),
    rule("aclrtReduceAsync/count/elements", {2: 62}, {2: 60}),
    rule("aclrtReduceAsync/kind/range", {3: 13}, {3: 12}),
    rule("aclrtReduceAsync/type/unsupported", {4: 9}, {4: 6}),
    rule("aclrtReduceAsync/reserve/reserved", {6: STRANGE}),
    rule("aclrtRandomNumAsync/reserve/reserved", {2: STRANGE}),
    rule("aclrtRandomNumAsync/taskInfo/function", change_of(function=4), change_of(function=3)),
    rule("aclrtRandomNumAsync/taskInfo/type", change_of(function=2, kind=3), change_of(function=2)),
    rule("aclrtRandomNumAsync/taskInfo/parameter", change_of(low=number(0.0, "double"))),
    rule("aclrtRandomNumAsync/taskInfo/seed", change_of(seed=number(0, "uint32_t"))),
    rule("aclrtRandomNumAsync/randomResultAddr/null", change_of(result=NULL)),
    rule("aclrtRandomNumAsync/randomCounterAddr/null", change_of(counter=NULL)),
    rule("aclrtRandomNumAsync/randomNum/address", change_of(count=at_address())),
    rule("aclrtRandomNumAsync/randomNum/range", change_of(count=number(0, "uint64_t")),
         change_of(count=number(1, "uint64_t"))),
    rule("aclrtRandomNumAsync/randomNum/size", change_of(count=ffi.new("aclrtRandomParaInfo *", {"size": 9})[0])),
    rule("aclrtSetMemcpyDesc/count/zero", {4: 0}),
    rule("aclrtSetMemcpyDesc/config/reserved", {5: STRANGE}),
    rule("aclrtSetMemcpyDesc/desc/memory", {0: lambda s: freed_memory()}),
    rule("aclrtCmoSetDesc/cmoDesc/memory", {0: lambda s: freed_memory()}),
    rule("aclrtMemcpyAsyncWithOffset/count/zero", {4: 0}),
    rule("aclrtMemcpyAsyncWithOffset/count/limit", {4: 17}),
    rule("aclrtCmoAsync/size/zero", {1: 0}),
    rule("aclrtCmoSetDesc/size/zero", {2: 0}),
    rule("aclrtCmoAsync/cmoType/unsupported", {2: 1}),
    rule("aclrtCmoAsyncWithDesc/cmoType/unsupported", {1: 1}),
    rule("aclrtCmoAsyncWithDesc/reserve/reserved", {3: STRANGE}),
    *[rule(f"{name}/kind/range", {position: 3}) for name, position in (
        ("aclrtGetMemcpyDescSize", 0), ("aclrtSetMemcpyDesc", 1), ("aclrtMemcpyAsyncWithDesc", 1),
        ("aclrtMemcpyAsyncWithOffset", 6))],
    *[rule(f"{name}/device/unsupported", {0: STRANGE} if name == "aclrtMemcpyAsyncWithDesc" else {}, env=ON_910)
      for name in ("aclrtRandomNumAsync", "aclrtGetMemcpyDescSize", "aclrtSetMemcpyDesc", "aclrtCmoAsync",
                   "aclrtCmoGetDescSize", "aclrtCmoSetDesc", "aclrtCmoAsyncWithDesc", "aclrtMemcpyBatchV2",
                   "aclrtMemcpyBatchAsyncV2")],
    case("aclrtMemcpyAsyncWithDesc/device/unsupported", lambda: lib.aclrtMemcpyAsyncWithDesc(STRANGE, INNER, NULL),
         lambda: 0, ON_910),
    rule("aclrtProfTrace/length/zero", {1: 0}, {1: 1}),
    rule("aclrtProfTrace/length/range", {1: 19}),
    rule("aclplatformGetDeviceInfo/infoType/range", {0: 17}),
    rule("aclplatformGetDeviceInfo/infoType/unknown", {0: lib.ACL_PLATFORM_CUBE_FREQ}),
    rule("aclplatformGetDeviceInfo/maxLen/short", {2: 2}),
    rule("aclrtHostMemMapCapabilities/hacType/range", {1: 10}, {1: 9}),
    rule("aclrtHostMemMapCapabilities/deviceId/range", {0: 64}),
    rule("aclrtDestroyStreamConfigHandle/handle/dead", {0: dead_configuration}),
    rule("aclrtSetStreamConfigOpt/handle/dead", {0: dead_configuration}),
    rule("aclrtCreateStreamV2/handle/dead", {1: dead_configuration}),
    rule("aclrtSetStreamConfigOpt/attr/range", {1: 4}),
    rule("aclrtSetStreamConfigOpt/valueSize/range", {3: 8}),
    rule("aclrtSetStreamConfigOpt/attrValue/priority", {2: ffi.new("uint32_t *", 8)}),
    *[rule(f"{name}/allocatorDesc/dead", {0: dead_allocator}) for name in
      ("aclrtAllocatorDestroyDesc", "aclrtAllocatorSetObjToDesc", *SETTERS)],
    rule("aclrtAllocatorRegister/allocatorDesc/dead", {1: dead_allocator}),
    rule("aclrtAllocatorRegister/allocatorDesc/incomplete", {1: lambda s: allocator(s, complete=False)}),
    rule("aclrtAllocatorGetByStream/stream/none", {0: lambda s: s.stream()}),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
