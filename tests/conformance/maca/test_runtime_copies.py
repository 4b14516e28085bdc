"""Rules of copies and fills (maca-runtime 5.7, 5.8)."""

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.runtime_calls import NULL, case
from tests.maca import runtime_support as rt

PLAIN = ["mcMemcpy", "mcMemcpyAsync"]
RECTANGLES = ["mcMemcpy2D", "mcMemcpy2DAsync"]
FILLS = ["mcMemset", "mcMemsetAsync"]
# Where the kind is among the arguments.
KIND = {"mcMemcpy": 3, "mcMemcpyAsync": 3, "mcMemcpy2D": 6, "mcMemcpy2DAsync": 6}
SOURCE = {"mcMemcpy": 1, "mcMemcpyAsync": 1, "mcMemcpyPeerAsync": 2, "mcMemcpy2D": 2, "mcMemcpy2DAsync": 2}
SIZE = {"mcMemcpy": 2, "mcMemcpyAsync": 2, "mcMemcpyPeerAsync": 4, "mcMemset": 2, "mcMemsetAsync": 2}


def freed(_):
    return {0: rt.freed_memory()}


RULES = [
    *[case(f"{f}/kind/range", {position: 5}, {position: 4}) for f, position in KIND.items()],
    *[case(f"{f}/kind/direction", {position: rt.D2H}) for f, position in KIND.items()],
    *[case(f"{f}/dst/null", {0: NULL}) for f in SOURCE],
    *[case(f"{f}/src/null", {position: NULL}) for f, position in SOURCE.items()],
    *[case(f"{f}/range/bounds", {position: 257}, {position: 256}) for f, position in SIZE.items()],
    # Eight rows 32 bytes apart, 16 bytes each: the last ends at 240; nine do not fit.
    *[case(f"{f}/range/bounds", {5: 9}, {5: 8}) for f in RECTANGLES],
    *[case(f"{f}/range/freed", freed) for f in [*SOURCE, *FILLS]],
    *[case(f"{f}/dpitch/range", {1: 15}, {1: 16}) for f in RECTANGLES],
    *[case(f"{f}/spitch/range", {3: 15}, {3: 16}) for f in RECTANGLES],
    *[case(f"{f}/p/null", {0: NULL}) for f in FILLS],
    *[case(f"{f}/p/device", lambda _: {0: rt.host_memory()}, lambda _: {0: rt.pinned_memory()}) for f in FILLS],
    *[case(f"{f}/stream/alive", lambda a: {len(a) - 1: rt.dead_stream()}, lambda a: {len(a) - 1: rt.stream()})
      for f in ("mcMemcpyAsync", "mcMemcpyPeerAsync", "mcMemcpy2DAsync", "mcMemsetAsync", "mcMallocAsync",
                "mcFreeAsync", "mcMallocFromPoolAsync")],
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


SIDES = {"host": rt.host_memory, "device": rt.device_memory, "pinned": rt.pinned_memory, "managed": rt.managed_memory}
WANTED = {rt.H2H: ("host", "host"), rt.H2D: ("device", "host"), rt.D2H: ("host", "device"),
          rt.D2D: ("device", "device")}


@pytest.mark.parametrize("kind", [*WANTED, rt.ANY])
@pytest.mark.parametrize("source", SIDES)
@pytest.mark.parametrize("destination", SIDES)
def test_every_kind_between_every_two_memories(destination, source, kind):
    """Page-locked and managed memory are on both sides, other memory on one."""
    both = ("pinned", "managed")
    sides = (destination, source)
    legal = kind == rt.ANY or all(have in both or have == want for have, want in zip(sides, WANTED[kind]))
    status = lib.mcMemcpy(SIDES[destination](), SIDES[source](), 256, kind)
    assert status == (0 if legal else lib.mcErrorInvalidValue)


@pytest.mark.parametrize("changed", [{"n": 0}, {"n": 0, "dst": NULL, "src": NULL}])
def test_nothing_to_copy_succeeds(changed):
    n, dst, src = changed["n"], changed.get("dst", ffi.cast("void *", 1)), changed.get("src", ffi.cast("void *", 1))
    assert lib.mcMemcpy(dst, src, n, rt.H2D) == 0
    assert lib.mcMemcpyAsync(dst, src, n, rt.H2D, NULL) == 0
    assert lib.mcMemcpy2D(dst, 8, src, 8, 8, 0, rt.H2D) == 0
    assert lib.mcMemcpy2D(dst, 8, src, 8, 0, 8, rt.H2D) == 0
    assert lib.mcMemset(dst, 1, 0) == 0


@pytest.mark.parametrize("n", [2**63, 2**64 - 1, 2**63 - 1])
def test_absurd_sizes_are_refused(n):
    memory, content = rt.device_memory(), rt.host_memory()
    assert lib.mcMemcpy(memory, content, n, rt.H2D) == lib.mcErrorInvalidValue
    assert lib.mcMemset(memory, 1, n) == lib.mcErrorInvalidValue
    assert lib.mcMemcpy2D(memory, n, content, n, 1, 8, rt.H2D) == lib.mcErrorInvalidValue
    assert lib.mcMemcpy2D(memory, 8, content, 8, 8, n, rt.H2D) == lib.mcErrorInvalidValue
