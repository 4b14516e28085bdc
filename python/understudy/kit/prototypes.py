"""Prototypes as calls need them: parameter names and texts from the headers, passing classes from the bindings."""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass

from understudy.kit.surface import is_variadic
from understudy.paths import STACKS


# Host pointers to one number: scaling factors and the value of mcdnnSetTensor.
SCALING_FACTORS = {"alpha", "beta", "alpha1", "alpha2", "alphaDataDiff", "betaDataDiff", "alphaParamDiff",
                   "betaParamDiff", "alphaDgrid", "betaDgrid", "valuePtr"}  # fmt: skip


def is_half(kind, stack: str) -> bool:
    """A half by value, which cffi knows as the integer of its size."""
    return stack == "ftdsp" and kind.cname == "uint16_t"


@dataclass(frozen=True)
class Parameter:
    name: str
    text: str  # as the header spells it
    kind: object  # cffi type
    stack: str

    @property
    def is_pointer(self) -> bool:
        return self.kind.kind in ("pointer", "array", "function")

    @property
    def gives_handle(self) -> bool:
        """A pointer to a pointer that the call fills: a new object or an address. The FT functions make none: theirs are
        tables that the caller has filled."""
        to_pointer = self.kind.kind == "pointer" and self.kind.item.kind == "pointer"
        return to_pointer and "const" not in self.text and self.stack != "ftdsp"


@dataclass(frozen=True)
class Prototype:
    name: str
    stack: str
    result: object  # cffi type
    parameters: tuple[Parameter, ...]


def _header_text(stack: str) -> str:
    root = STACKS[stack].root / "include"
    text = "\n".join(file.read_text("utf-8") for file in sorted(root.rglob("*.h")))
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"//[^\n]*|^\s*#.*$", " ", text, flags=re.MULTILINE)


@functools.cache
def _parameter_texts(stack: str) -> dict[str, list[str]]:
    """Function -> parameter declarations, from the headers."""
    found = {}
    for name, inside in re.findall(r"\b(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)\s*(?:__attribute__\s*\(\(.*?\)\)\s*)?;",
                                   _header_text(stack)):
        texts = [" ".join(part.split()) for part in re.split(r",(?![^()]*\))", inside)]
        found.setdefault(name, [] if texts == ["void"] or texts == [""] else texts)
    return found


def _name_of(text: str, index: int) -> str:
    function_pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", text)
    last = function_pointer or re.search(r"(\w+)\s*(?:\[[^\]]*\])*$", text)
    return last[1] if last else f"argument{index}"


def _prototype(module, stack: str, name: str) -> Prototype | None:
    """None for constants and variadic functions."""
    value = getattr(module.lib, name)
    if not isinstance(value, module.ffi.CData) or is_variadic(module.ffi.typeof(value)):
        return None
    kind = module.ffi.typeof(value)
    texts = _parameter_texts(stack).get(name, [])
    if len(texts) != len(kind.args):
        texts = [""] * len(kind.args)
    parameters = tuple(Parameter(_name_of(text, index), text, argument, stack)
                       for index, (text, argument) in enumerate(zip(texts, kind.args)))  # fmt: skip
    return Prototype(name, stack, kind.result, parameters)


@functools.cache
def prototype(stack: str, name: str) -> Prototype:
    """One function of a stack."""
    return _prototype(importlib.import_module(f"understudy.{stack}"), stack, name)


@functools.cache
def prototypes() -> dict[str, Prototype]:
    """Every function of every stack that is not variadic."""
    found = {}
    for stack in STACKS:
        module = importlib.import_module(f"understudy.{stack}")
        for name in dir(module.lib):
            if not name.startswith("understudy_") and (made := _prototype(module, stack, name)):
                found[name] = made
    return found
