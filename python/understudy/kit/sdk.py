"""What our own SDK trees offer: libraries by name, and which of them export a function."""

from __future__ import annotations

import functools

from understudy.kit import elf
from understudy.paths import STACKS, Stack


def library_files() -> dict[str, Stack]:
    """Every vendor-named library by its file name."""
    return {file.name: stack for stack in STACKS.values() for file in sorted(stack.library_path.glob("lib*.so"))}


@functools.cache
def libraries() -> dict[str, tuple[str, elf.Facts]]:
    """Stack and facts of every vendor-named library by its file name."""
    return {name: (stack.name, elf.read(stack.library_path / name)) for name, stack in library_files().items()}


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
