"""Pools whose memory streams take and give back (cann-runtime-3 18)."""

import functools

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend import test_acl_built_in
from tests.conformance.ascend.acl_support import ALONE, case, no_context, ok
from tests.conformance.ascend.test_acl_model import NULL, ON_910, ON_A3, STRANGE, gone, implicit
from tests.conformance.harness import check_rule

MIB = 1 << 20
THRESHOLD, RESERVED, RESERVED_HIGH = 4, 5, 6


def properties(kind: int = 0, handle: int = 0, place: int = 1, number: int = 0, limit: int = 0, reserved: int = 0):
    made = ffi.new("aclrtMemPoolProps *", {"allocType": kind, "handleType": handle, "maxSize": limit})
    made.location.type, made.location.id = place, number
    made.reserved[31] = reserved
    return made


def pool(scene, **changes):
    return scene.made("aclrtMemPool", lib.aclrtMemPoolCreate, properties(**changes), end=lib.aclrtMemPoolDestroy)


def destroyed(scene):
    made = scene.made("aclrtMemPool", lib.aclrtMemPoolCreate, properties())
    ok(lib.aclrtMemPoolDestroy(made))
    return made


def own_pool(_scene):
    cell = ffi.new("aclrtMemPool *")
    ok(lib.aclrtMemPoolCreate(cell, properties()))
    return cell[0]


def block(scene, stream):
    return scene.made("void *", lib.aclrtMemPoolMallocAsync, 64, pool(scene), stream)


def returned(scene):
    stream = scene.stream()
    made = block(scene, stream)
    ok(lib.aclrtMemPoolFreeAsync(made, stream))
    return made


def create(cell, props):
    status = lib.aclrtMemPoolCreate(cell, props)
    if status == 0:
        ok(lib.aclrtMemPoolDestroy(cell[0]))
        cell[0] = NULL
    return status


def free_legally(scene):
    stream = scene.stream()
    return [block(scene, stream), stream]


def free_on(stream):
    """Memory of another stream than the one that is to give it back."""
    return {0: lambda scene: block(scene, scene.stream()), 1: stream}


def number(value, kind: str = "uint64_t"):
    return ffi.new(f"{kind} *", value)


LEGAL = {
    "aclrtMemPoolCreate": lambda s: [ffi.new("aclrtMemPool *"), properties()],
    "aclrtMemPoolDestroy": lambda s: [own_pool(s)],
    "aclrtMemPoolSetAttr": lambda s: [pool(s), THRESHOLD, number(MIB)],
    "aclrtMemPoolGetAttr": lambda s: [pool(s), THRESHOLD, number(0)],
    "aclrtMemPoolMallocAsync": lambda s: [ffi.new("void **"), 64, pool(s), s.stream()],
    "aclrtMemPoolFreeAsync": free_legally,
    "aclrtMemPoolTrimTo": lambda s: [pool(s), 0],
}
STREAMS = {"aclrtMemPoolMallocAsync": 3, "aclrtMemPoolFreeAsync": 1}
test_acl_built_in.CALLS["aclrtMemPoolCreate"] = create
run = functools.partial(test_acl_built_in.run, legal=LEGAL)
rule = functools.partial(test_acl_built_in.rule, legal=LEGAL)
foreign = functools.partial(test_acl_built_in.foreign, legal=LEGAL)
NULLS = [("aclrtMemPoolCreate/memPool", 0), ("aclrtMemPoolCreate/poolProps", 1), ("aclrtMemPoolDestroy/memPool", 0),
         ("aclrtMemPoolSetAttr/memPool", 0), ("aclrtMemPoolSetAttr/value", 2), ("aclrtMemPoolGetAttr/memPool", 0),
         ("aclrtMemPoolGetAttr/value", 2), ("aclrtMemPoolMallocAsync/ptr", 0), ("aclrtMemPoolMallocAsync/memPool", 2),
         ("aclrtMemPoolFreeAsync/ptr", 0), ("aclrtMemPoolTrimTo/memPool", 0)]  # fmt: skip
# Of the right kinds; no pool of another product can be made.
STRANGERS = {"aclrtMemPoolCreate": [ffi.new("aclrtMemPool *"), properties()], "aclrtMemPoolDestroy": [STRANGE],
             "aclrtMemPoolSetAttr": [STRANGE, THRESHOLD, number(0)],
             "aclrtMemPoolGetAttr": [STRANGE, THRESHOLD, number(0)],
             "aclrtMemPoolMallocAsync": [ffi.new("void **"), 64, STRANGE, NULL],
             "aclrtMemPoolFreeAsync": [STRANGE, NULL], "aclrtMemPoolTrimTo": [STRANGE, 0]}  # fmt: skip


def on_product(name):
    return getattr(lib, name)(*STRANGERS[name])


RULES = [
    *[case(f"{name}/device/unsupported", lambda name=name: on_product(name), lambda: 0, ON_910 if i % 2 else ON_A3)
      for i, name in enumerate(LEGAL)],
    *[rule(f"{name}/null", {position: NULL}) for name, position in NULLS],
    *[rule(f"{name}/memPool/dead", {0: destroyed})
      for name in ("aclrtMemPoolDestroy", "aclrtMemPoolSetAttr", "aclrtMemPoolGetAttr", "aclrtMemPoolTrimTo")],
    rule("aclrtMemPoolMallocAsync/memPool/dead", {2: destroyed}),
    rule("aclrtMemPoolCreate/poolProps/allocation", {1: properties(kind=1)}),
    rule("aclrtMemPoolCreate/poolProps/handle", {1: properties(handle=1)}),
    rule("aclrtMemPoolCreate/poolProps/location", {1: properties(place=0)}),
    rule("aclrtMemPoolCreate/poolProps/reserved", {1: properties(reserved=1)}),
    rule("aclrtMemPoolCreate/poolProps/device", {1: properties(number=64)}),
    *[rule(f"{name}/attr/range", {1: 9}, {1: 8, 2: number(0)}) for name in ("aclrtMemPoolSetAttr", "aclrtMemPoolGetAttr")],
    rule("aclrtMemPoolSetAttr/attr/read-only", {1: RESERVED}),
    rule("aclrtMemPoolSetAttr/value/switch", {1: 1, 2: number(2, "uint32_t")}, {1: 1, 2: number(1, "uint32_t")}),
    rule("aclrtMemPoolSetAttr/value/peak", {1: RESERVED_HIGH, 2: number(1)}, {1: RESERVED_HIGH, 2: number(0)}),
    rule("aclrtMemPoolMallocAsync/size/zero", {1: 0}, {1: 1}),
    rule("aclrtMemPoolMallocAsync/size/memory", {1: MIB + 1, 2: lambda s: pool(s, limit=MIB)},
         {1: MIB, 2: lambda s: pool(s, limit=MIB)}),
    case("aclrtMemPoolMallocAsync/memPool/device",
         lambda: run("aclrtMemPoolMallocAsync", {2: lambda s: pool(s, number=1)}), lambda: run("aclrtMemPoolMallocAsync"),
         ALONE),
    *[rule(f"{name}/context/none", around=no_context) for name in STREAMS],
    *[rule(f"{name}/stream/dead", {position: gone}) for name, position in STREAMS.items()],
    rule("aclrtMemPoolMallocAsync/stream/implicit", {3: implicit}, {3: NULL}),
    rule("aclrtMemPoolFreeAsync/stream/implicit", free_on(implicit), free_on(NULL)),
    rule("aclrtMemPoolMallocAsync/stream/recorded", {3: lambda s: s.recording()}),
    rule("aclrtMemPoolFreeAsync/stream/recorded", free_on(lambda s: s.bound()), free_on(lambda s: s.stream())),
    *[foreign(name, position) for name, position in STREAMS.items()],
    rule("aclrtMemPoolFreeAsync/ptr/unknown", {0: returned}),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
