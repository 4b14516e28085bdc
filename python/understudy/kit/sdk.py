"""What our own SDK trees offer: libraries by name, and which of them export a function."""

from __future__ import annotations

import functools
import pathlib

from understudy.kit import elf
from understudy.paths import STACKS


@functools.cache
def libraries() -> dict[str, tuple[str, elf.Facts]]:
    """Stack and facts of every vendor-named library by its file name."""
    return {file.name: (stack.name, elf.read(file))
            for stack in STACKS.values() for file in sorted(stack.library_path.glob("lib*.so"))}  # fmt: skip


@functools.cache
def exporters() -> dict[str, tuple[str, ...]]:
    """The libraries that export each function."""
    found: dict[str, list[str]] = {}
    for name, (_, facts) in libraries().items():
        for function in facts.exported:
            found.setdefault(function, []).append(name)
    return {function: tuple(names) for function, names in found.items()}


def stack_of(function: str) -> str | None:
    """The stack that emulates the function."""
    names = exporters().get(function)
    return libraries()[names[0]][0] if names else None


def static_libraries() -> set[str]:
    return {file.name for stack in STACKS.values() for file in stack.library_path.glob("lib*.a")}


def library_like(facts: elf.Facts) -> pathlib.Path | None:
    """Our library of the same name as another one."""
    for name in (facts.soname, facts.path.name):
        plain = name.partition(".so")[0] + ".so"  # a version may follow
        if plain in libraries():
            return libraries()[plain][1].path
    return None
