"""Scratch memory that kernels do not get: no operator ends the process, and each says so."""

import functools
import json
import sys

import pytest

from tests import native
from tests.conformance.ascend import pages
from tests.conformance.harness import run_isolated
from understudy import toml

GROUPS = 8


def maps() -> set[str]:
    """Operators that are formulas of the map family, which take no scratch."""
    found = set()
    for page in (native.ROOT / "src_c/ascend/opapi/pages").glob("*.toml"):
        tables = toml.loads(page.read_text())
        for name, table in tables.items():
            while "plan" not in table and "like" in table:
                table = tables[table["like"]]
            if table.get("plan", "").startswith("map "):
                found.add(name)
    return found


@functools.cache
def names() -> list[str]:
    return sorted(set(pages.planned()) - maps())


def run(kind: str, operators: list[str], least: int, **env) -> None:
    told = json.loads(run_isolated([sys.executable, "-m", "tests.ascend.scratch", kind, *operators], env).stdout)
    assert not told["wrong"], "\n".join(told["wrong"])
    assert told["calls"] >= least


@pytest.mark.parametrize("group", range(GROUPS))
def test_sizes_of_which_few_elements_are_stored(group):
    """Of 2^62 elements, as far as an operator takes them."""
    run("expanded", names()[group::GROUPS], least=40)


def failing_allocation() -> str:
    library = native.work_folder() / "failing_allocation.so"
    if not library.exists():
        source = native.ROOT / "tests/ascend/failing_allocation.c"
        native.check(["gcc", "-std=gnu11", "-O1", *native.STRICT, "-shared", "-fPIC", source, "-o", library])
    return str(library)


@pytest.mark.parametrize("group", range(GROUPS))
def test_allocations_that_fail(group):
    """The first one of a legal call, then the second one, until there is none; what is given back as a result is right."""
    run("failing", names()[group::GROUPS], least=20, LD_PRELOAD=failing_allocation())


def test_copies_of_images_that_get_no_memory():
    run("apart", ["UpsampleNearest2d", "UpsampleBilinear2d", "MaxPool2dWithIndices", "MaxPool2dWithIndicesBackward",
                  "AvgPool2d", "AdaptiveAvgPool2d"], least=18, LD_PRELOAD=failing_allocation())
