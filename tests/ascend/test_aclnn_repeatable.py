"""Repeatable executors (aclnn-base 6): tensors that have moved, of every operator. What a call at first addresses gives is
what one at new addresses must give; the old memory then holds what no call could use, and keeps it.

Numbers are those of the header's order: what is read among the inputs, what is written among the outputs, in place both.
"""

from __future__ import annotations

import math

import pytest

from understudy.ascend import lib

from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import ok

GONE = b"\x5a"  # numbers, indices and lengths that no operator takes
LARGE = 1 << 16  # elements: the values of such calls are others' business
ONE = f"U64[16]={0x3F800000}"  # a scale of 1 as aclnnTransQuantParam makes it
OTHERS = [
    ("Gemm", {"A": "F32[3,2]", "transA": 1}),
    ("Gemm", {"B": "F32[4,3]", "transB": 1}),
    ("BatchMatmulQuant", {"x1": "F16[8,3]", "transposeX1": True, "quantParam": ONE}),
    ("BatchMatmulQuant", {"x2": "F16[4,8]", "transposeX2": True, "quantParam": ONE}),
    ("Matmul", {"self": "F32[1,4]", "mat2": "F32[4,5]", "out": "F32[5]"}),
    ("Matmul", {"self": "F32[3,4]", "mat2": "F32[4,1]", "out": "F32[3]"}),
]


def with_changes(entry: dict, changes: dict) -> dict:
    kinds = {parameter["name"]: parameter["kind"] for parameter in entry["parameters"]}
    return pages.legal(entry) | {name: pages.parsed(value, kinds[name]) for name, value in changes.items()}


def size_of(value) -> int:
    if isinstance(value, pages.Shaped):
        return math.prod(value.shape)
    return sum(map(size_of, value)) if isinstance(value, list) else 0


def legal_calls(entry: dict) -> list[dict]:
    """The page's example, and the legal neighbours that it gives of calls that are refused."""
    changes = [rule["legal"] for rule in entry["rules"] if rule.get("legal") and not rule.get("env")]
    calls = [with_changes(entry, {}), *(with_changes(entry, change) for change in changes)]
    return [call for call in calls if size_of(list(call.values())) <= LARGE]


OPERATORS = [name for name in pages.planned() if not any(rule.get("always") for rule in pages.operators()[name]["rules"])]


def is_read(parameter: dict) -> bool:
    return not parameter["written"] or parameter["updated"]


def tensors_of(parameter: dict, value) -> list:
    """A tensor, NULL too, or those of a list."""
    return [value] if parameter["kind"] == "T" else value.parts if value is not None else []


def places(entry: dict, values: dict) -> list[tuple]:
    """(setter, its numbers, list, tensor) of every tensor that is given; what is in place by its number among the outputs."""
    parameters = [p for p in entry["parameters"] if p["kind"] in ("T", "TL")]
    numbered = [*(p for p in parameters if is_read(p)), *(p for p in parameters if p["written"])]
    found, count = {}, 0
    for number, parameter in enumerate(numbered):
        value = values[parameter["name"]]
        for item, moved in enumerate(tensors_of(parameter, value)):
            if moved is not None and parameter["kind"] == "T":
                found[id(moved)] = (lib.aclSetTensorAddr, (count,), moved.handle, moved)
            elif moved is not None:
                found[id(moved)] = (lib.aclSetDynamicTensorAddr, (number, item), value.handle, moved)
            count += 1
    return list(found.values())


def planned(entry: dict, values: dict):
    status, size, executor = support.plan(entry["function"], *map(pages.handle_of, values.values()))
    ok(status)
    ok(lib.aclSetAclOpExecutorRepeatable(executor))
    return size, executor


def require_that_tensors_move(entry: dict, arguments: dict) -> None:
    values = pages.values_of(entry, arguments)
    moved = places(entry, values)
    before = [one.bytes() for *_, one in moved]
    size, executor = planned(entry, values)
    support.execute(entry["function"], size, executor)
    expected = [one.bytes() for *_, one in moved]
    rooms = [support.Memory(one.memory.size) for *_, one in moved]
    for (setter, numbers, handle, one), room, content in zip(moved, rooms, before):
        room.write(content)
        one.memory.write(GONE * one.memory.size)
        ok(setter(executor, *numbers, handle, room.address))
    support.execute(entry["function"], size, executor)
    ok(lib.aclDestroyAclOpExecutor(executor))
    assert [room.read() for room in rooms] == expected
    assert all(one.memory.read() == GONE * one.memory.size for *_, one in moved)


@pytest.mark.parametrize("name", OPERATORS)
def test_every_tensor_moves(name):
    entry = pages.operators()[name]
    for arguments in legal_calls(entry):
        require_that_tensors_move(entry, arguments)


@pytest.mark.parametrize("name, changes", OTHERS)
def test_tensors_of_which_the_kernel_has_another_view_move(name, changes):
    entry = pages.operators()[name]
    require_that_tensors_move(entry, with_changes(entry, changes))
