"""The ABI as data: functions with parameter types, types, structures with offsets, constants, library by library.

It comes from the bindings, which come from the headers. A lock is a surface that was written down for one version.
Types are spelled by what a call sees: int32, uint64, float32, "void*", "aclTensor*", "enum aclDataType"; names of
integer types, const, and the words struct and union are gone.
"""

from __future__ import annotations

import functools
import importlib
import json
import pathlib

from understudy import __version__, paths
from understudy.errors import UsageError
from understudy.kit import sdk, table
from understudy.paths import STACKS

FOLDER = paths.part("abi")
OWN_PREFIX = "understudy_"


def spelled(kind) -> str:
    """A cffi type as a surface spells it."""
    ffi_kind = kind.kind
    if ffi_kind == "void":
        return "void"
    if ffi_kind == "primitive":
        return _primitive(kind)
    if ffi_kind == "pointer":
        return spelled(kind.item) + "*"
    if ffi_kind == "array":
        return f"{spelled(kind.item)}[{'' if kind.length is None else kind.length}]"
    if ffi_kind == "function":
        return signature(kind) + "*"
    name = kind.cname.removeprefix(f"{ffi_kind} ")
    name = "anonymous" if "$" in name else name
    return f"enum {name}" if ffi_kind == "enum" else name


def _primitive(kind) -> str:
    name = kind.cname
    if name in ("float", "double"):
        return "float32" if name == "float" else "float64"
    if name in ("_Bool", "bool"):
        return "bool"
    if name == "char":
        return "int8"
    unsigned = name.startswith(("unsigned", "uint", "size_t"))
    return f"{'u' if unsigned else ''}int{8 * _size(name)}"


@functools.cache
def _size(name: str) -> int:
    import cffi

    return cffi.FFI().sizeof(name)


def is_variadic(function) -> bool:
    """cffi's own `ellipsis` is also true of functions that take a union by value, which it cannot call."""
    return function.cname.endswith("...)")


def signature(function) -> str:
    """"int32(void*, uint64)"; a variadic function ends in "..."."""
    parameters = [spelled(kind) for kind in function.args] + (["..."] if is_variadic(function) else [])
    return f"{spelled(function.result)}({', '.join(parameters)})"


def _structure(ffi, kind) -> dict | None:
    """Size and fields of a structure or union; None when the headers keep them to themselves."""
    try:
        size = ffi.sizeof(kind)
    except ffi.error:
        return None
    return {"size": size, "alignment": ffi.alignof(kind),
            "fields": [f"{field.offset} {name}: {spelled(field.type)}" for name, field in kind.fields]}  # fmt: skip


def _of_stack(stack: str) -> dict:
    module = importlib.import_module(f"understudy.{stack}")
    ffi, lib = module.ffi, module.lib
    functions, constants = {}, {}
    for name in dir(lib):
        if name.startswith(OWN_PREFIX):
            continue
        value = getattr(lib, name)
        if isinstance(value, ffi.CData):
            functions[name] = signature(ffi.typeof(value))
        else:
            constants[name] = int(value)
    typedefs, structs, unions = ffi.list_types()
    structures, types = {}, {}
    for name in [*structs, *unions]:
        structures[name] = _structure(ffi, ffi.typeof(("struct " if name in structs else "union ") + name))
    for name in typedefs:
        kind = ffi.typeof(name)
        types[name] = spelled(kind)
        if kind.kind in ("struct", "union"):
            structures.setdefault(types[name], _structure(ffi, kind))
    if "half" in types:  # cffi has no half: the bindings say uint16, which nothing else in that stack is
        types["half"] = "float16"
        functions = {name: text.replace("uint16", "float16") for name, text in functions.items()}
    complete = {name: structure for name, structure in structures.items() if structure is not None}
    return {"functions": functions, "types": types, "structures": complete, "constants": constants}


@functools.cache
def current() -> dict:
    """The surface of this version: what the headers declare and the libraries export."""
    libraries = {name: {"stack": stack, "functions": sorted(facts.exported)}
                 for name, (stack, facts) in sdk.libraries().items()}  # fmt: skip
    return {"version": __version__, "libraries": libraries, "stacks": {stack: _of_stack(stack) for stack in STACKS}}


def versions() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def locked(version: str) -> dict:
    """The surface that was written down for a version."""
    file = FOLDER / f"{version}.json"
    if not file.is_file():
        raise UsageError(f"no ABI lock of version {version!r}; there are: {', '.join(versions()) or 'none'}")
    return json.loads(file.read_text("utf-8"))


def text(surface: dict) -> str:
    return json.dumps(surface, indent=1, sort_keys=True) + "\n"


def differences(old: dict, new: dict) -> list[str]:
    """What changed from one surface to another, a line each."""
    lines = []
    for library in sorted({*old["libraries"], *new["libraries"]}):
        was, now = (set(surface["libraries"].get(library, {}).get("functions", [])) for surface in (old, new))
        lines += [f"{library}: {name} is gone" for name in sorted(was - now)]
        lines += [f"{library}: {name} is new" for name in sorted(now - was)]
    for stack in sorted({*old["stacks"], *new["stacks"]}):
        for kind in ("functions", "types", "structures", "constants"):
            was, now = (surface["stacks"].get(stack, {}).get(kind, {}) for surface in (old, new))
            for name in sorted({*was, *now}):
                if was.get(name) != now.get(name) and not (kind == "functions" and (name in was) != (name in now)):
                    lines.append(f"{stack}: {name}: {_short(was.get(name))} -> {_short(now.get(name))}")
    return lines


def _short(value) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return f"{value['size']} bytes with {', '.join(value['fields'])}"
    return str(value)


def write_lock(folder: pathlib.Path) -> pathlib.Path:
    """Writes the lock of this version. A lock never changes: another ABI is another version."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{__version__}.json"
    now = text(current())
    if file.exists() and file.read_text("utf-8") != now:
        first = differences(json.loads(file.read_text("utf-8")), current())[0]
        raise UsageError(f"{file} says otherwise ({first}): raise the version in python/understudy/__init__.py, or "
                         f"delete the file if {__version__} was never published")  # fmt: skip
    table.write(file, now)
    return file
