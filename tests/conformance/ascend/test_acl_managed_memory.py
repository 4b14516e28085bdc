"""Memory that host and devices reach (cann-runtime-3 18)."""

import functools

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend import test_acl_built_in
from tests.conformance.ascend.acl_support import case, freed_memory, no_context, ok
from tests.conformance.ascend.test_acl_model import GROUPS, NULL, ON_910, STRANGE, gone, implicit
from tests.conformance.harness import check_rule

PAGE = 2 << 20
READ_MOSTLY, PREFERRED, ACCESSED_BY = 1, 2, 3
INVALID, DEVICE, HOST, NODE, THIS_NODE = range(5)


def managed(scene, size: int = PAGE):
    return scene.made("void *", lib.aclrtMemAllocManaged, size, 1, end=lib.aclrtFree)


def place(kind: int = DEVICE, number: int = 0):
    return ffi.new("aclrtMemManagedLocation *", {"type": kind, "id": number})[0]


def places(*given):
    return ffi.new("aclrtMemManagedLocation[]", [list(one) for one in given])


def allocate(cell, size, flag):
    status = lib.aclrtMemAllocManaged(cell, size, flag)
    if status == 0:
        ok(lib.aclrtFree(cell[0]))
        cell[0] = NULL
    return status


def pointers(made):
    """An array of addresses as the functions take it; `made` must live as long."""
    return ffi.cast("void const * *", made)


def room(count: int = 1):
    return ffi.new("int32_t[]", count)


def batch(scene, sizes=(PAGE, PAGE), **changes):
    first, second = managed(scene), managed(scene)
    ranges = ffi.new("void *[]", changes.get("ptrs", [first, second]))
    given = ffi.new("size_t[]", list(sizes))
    where, firsts = places((DEVICE, 0), changes.get("second", (HOST, 0))), ffi.new("size_t[]", changes.get("firsts", [0, 1]))
    scene.stack.callback(len, ranges)  # a cast does not keep it
    return [pointers(ranges), given, 2, where, firsts, 2, 0, scene.stream()]


def batch_with(**changes):
    """The arguments by position that differ."""
    return {i: lambda scene, i=i: batch(scene, **changes)[i] for i in (0, 1, 3, 4)}


LEGAL = {
    "aclrtMemAllocManaged": lambda s: [ffi.new("void **"), 1, 1],
    "aclrtMemManagedAdvise": lambda s: [managed(s), PAGE, 2, place()],
    "aclrtMemManagedGetAttr": lambda s: [READ_MOSTLY, managed(s), PAGE, room(), 4],
    "aclrtMemManagedGetAttrs": lambda s: [ffi.new("aclrtMemManagedRangeAttribute[]", [PREFERRED, ACCESSED_BY]), 2,
                                          managed(s),
                                          1, ffi.new("void *[]", [ROOM, ROOM]), ffi.new("size_t[]", [4, 8])],
    "aclrtMemManagedPrefetchAsync": lambda s: [managed(s), PAGE, place(), 0, s.stream()],
    "aclrtMemManagedPrefetchBatchAsync": lambda s: batch(s),
}  # fmt: skip
ROOM = room(2)
STREAMS = {"aclrtMemManagedPrefetchAsync": 4, "aclrtMemManagedPrefetchBatchAsync": 7}
test_acl_built_in.CALLS["aclrtMemAllocManaged"] = allocate
run = functools.partial(test_acl_built_in.run, legal=LEGAL)
rule = functools.partial(test_acl_built_in.rule, legal=LEGAL)
foreign = functools.partial(test_acl_built_in.foreign, legal=LEGAL)
ADVISE, GET, GETS, FETCH, FETCHES = list(LEGAL)[1:]
NULLS = [("aclrtMemAllocManaged/ptr", 0), (f"{ADVISE}/ptr", 0), (f"{GET}/ptr", 1), (f"{GET}/data", 3),
         (f"{GETS}/attributes", 0), (f"{GETS}/ptr", 2), (f"{GETS}/data", 4), (f"{GETS}/dataSizes", 5), (f"{FETCH}/ptr", 0),
         (f"{FETCHES}/ptrs", 0), (f"{FETCHES}/sizes", 1), (f"{FETCHES}/prefetchLocs", 3),
         (f"{FETCHES}/prefetchLocIdxs", 4)]  # fmt: skip
STRANGERS = {"aclrtMemAllocManaged": [ffi.new("void **"), 1, 1], ADVISE: [STRANGE, PAGE, 2, place()],
             GET: [1, STRANGE, PAGE, room(), 4], GETS: [NULL, 1, STRANGE, PAGE, NULL, NULL],
             FETCH: [STRANGE, PAGE, place(), 0, NULL], FETCHES: [NULL, NULL, 1, NULL, NULL, 1, 0, NULL]}  # fmt: skip
# Functions with a location: how a case gives another one, and another size.
PLACED = {ADVISE: (lambda kind, number: {3: place(kind, number)}, {1: PAGE + 1}, {1: 0}),
          FETCH: (lambda kind, number: {2: place(kind, number)}, {1: PAGE + 1}, {1: 0}),
          FETCHES: (lambda kind, number: batch_with(second=(kind, number)), batch_with(sizes=(PAGE, 1)),
                    batch_with(sizes=(PAGE, 0)))}  # fmt: skip


def kinds(*given):
    return ffi.new("aclrtMemManagedRangeAttribute[]", list(given))


RULES = [
    *[case(f"{name}/device/unsupported", lambda name=name: getattr(lib, name)(*STRANGERS[name]), lambda: 0, ON_910)
      for name in LEGAL],
    *[rule(f"{name}/null", {position: NULL}) for name, position in NULLS],
    rule(f"{FETCHES}/ptr/null", batch_with(ptrs=[NULL, NULL])),
    rule("aclrtMemAllocManaged/size/zero", {1: 0}),
    rule("aclrtMemAllocManaged/size/memory", {1: 1 << 60}, {1: PAGE + 1}),
    rule("aclrtMemAllocManaged/flag/range", {2: 2}),
    *[rule(f"{name}/context/none", around=no_context) for name in ("aclrtMemAllocManaged", *STREAMS)],
    rule(f"{ADVISE}/advise/range", {2: 6}, {2: 5}),
    *[rule(f"{name}/size/zero", zero) for name, (_, _, zero) in PLACED.items()],
    *[rule(f"{name}/size/pages", odd) for name, (_, odd, _) in PLACED.items()],
    *[rule(f"{name}/location/range", change(INVALID, 0), change(THIS_NODE, 0)) for name, (change, _, _) in PLACED.items()],
    *[rule(f"{name}/location/node", change(NODE, -1), change(NODE, 0)) for name, (change, _, _) in PLACED.items()],
    *[rule(f"{name}/location/device", change(DEVICE, 64), change(HOST, 64)) for name, (change, _, _) in PLACED.items()],
    rule(f"{ADVISE}/ptr/unknown", {1: 2 * PAGE}),
    rule(f"{FETCH}/ptr/unknown", {0: lambda s: s.memory()}),
    rule(f"{FETCHES}/ptr/unknown", batch_with(sizes=(PAGE, 2 * PAGE))),
    rule(f"{GET}/ptr/unknown", {1: lambda s: freed_memory()}),
    rule(f"{GETS}/ptr/unknown", {3: PAGE + 1}, {3: PAGE}),
    *[rule(f"{name}/size/zero", {position: 0}) for name, position in ((GET, 2), (GETS, 3))],
    rule(f"{GETS}/numAttributes/zero", {1: 0}, {1: 1}),
    rule(f"{GET}/attribute/range", {0: 9}, {0: 8}),
    rule(f"{GETS}/attribute/range", {0: kinds(PREFERRED, 0)}),
    rule(f"{GET}/dataSize/size", {4: 8}),
    rule(f"{GETS}/dataSize/size", {5: ffi.new("size_t[]", [4, 6])}),
    rule(f"{FETCHES}/count/zero", {2: 0}),
    rule(f"{FETCHES}/numPrefetchLocs/range", {5: 3}, {5: 1}),
    rule(f"{FETCHES}/prefetchLocIdxs/order", batch_with(firsts=[0, 0])),
    rule(f"{FETCH}/flags/range", {3: 1}),
    rule(f"{FETCHES}/flags/range", {6: 1}),
    *[rule(f"{name}/stream/dead", {position: gone}) for name, position in STREAMS.items()],
    *[rule(f"{name}/stream/implicit", {position: implicit}, {position: NULL}) for name, position in STREAMS.items()],
    *[foreign(name, position) for name, position in STREAMS.items()],
    *[rule(f"{name}/stream/{group}", {position: place}) for name, position in STREAMS.items() for group, place in GROUPS],
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
