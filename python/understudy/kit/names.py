"""Names that the vendors' stacks have, whether emulated or not, from the data files in names/."""

from __future__ import annotations

import difflib
import functools
import pathlib
import re
from dataclasses import dataclass

from understudy import toml
from understudy.paths import STACKS

FOLDER = pathlib.Path(__file__).parent / "names"

# What a name of a stack looks like, for names that no list has.
PATTERNS = {
    "ascend": re.compile(r"(acl(nn|rt|op|mdl|tdt|prof|dump|sys|blas)?[A-Z0-9]|Acl[A-Z]|Hccl[A-Z]|Msprof[A-Z])\w*"),
    "maca": re.compile(r"(mc(dnn|blas|blasLt|fft|rand|solver|sparse|cl|pti|rtc)?[A-Z])\w*"),
    "ftdsp": re.compile(r"(hp|fp|dp|i8|i16|i32|c64|c128)_\w+_([sp]|anycore)"),
}


@dataclass(frozen=True)
class Name:
    """Where a vendor has a function: library and header, and the first release with it; "" for what is not known."""

    name: str
    stack: str
    library: str = ""
    header: str = ""
    since: str = ""


@functools.cache
def _content(stack: str) -> dict:
    return toml.loads((FOLDER / f"{stack}.toml").read_text("utf-8"))


@functools.cache
def _groups(stack: str) -> list[dict]:
    """The groups of every file of a stack; what ascend_operators.toml says of an operator comes first."""
    files = sorted(FOLDER.glob(f"{stack}*.toml"), reverse=True)
    return [group for file in files for group in toml.loads(file.read_text("utf-8")).get("group", [])]


def _phases(operators: list[str]) -> list[str]:
    return [f"aclnn{operator}{phase}" for operator in operators for phase in ("", "GetWorkspaceSize")]


def _spelled(group: dict) -> dict[str, list[str]]:
    """Header -> the functions of a group: names as they are, operators with what the stack puts around them."""
    header = group.get("header", "")
    if "headers" in group:  # a line each: the header's name without aclnn_ and .h, then its operators
        lines = (line.split() for line in group["headers"].strip().splitlines())
        return {f"{group['folder']}aclnn_{name}.h": _phases(operators) for name, *operators in lines}
    if "names" in group:
        return {header: group["names"].split()}
    operators = group["operators"].split()
    if "prefixes" in group:
        return {header: [f"{prefix}_{operator}_{suffix}" for operator in operators
                         for prefix in group["prefixes"].split() for suffix in group["suffixes"].split()]}  # fmt: skip
    return {header: _phases(operators)}


@functools.cache
def known() -> dict[str, Name]:
    """Every listed name of every stack."""
    found: dict[str, Name] = {}
    for stack in STACKS:
        for group in _groups(stack):
            for header, functions in _spelled(group).items():
                for name in functions:
                    found.setdefault(name, Name(name, stack, group.get("library", ""), header, group.get("since", "")))
    return found


@functools.cache
def common() -> dict[str, Name]:
    """Names that any program may have for its own: a stack's only in a binary that needs the stack."""
    return {name: Name(name, stack, library) for stack in STACKS for name, library in _content(stack).get("common", {}).items()}


@functools.cache
def other_libraries() -> dict[str, str]:
    """Libraries of the stacks that are not emulated, and what they are for."""
    return {name: text for stack in STACKS for name, text in _content(stack).get("libraries", {}).items()}


@functools.cache
def _families() -> dict[str, tuple[str, str]]:
    """Functions of a library that is not emulated begin with its name; those of other parts are listed."""
    found = {}
    for stack in STACKS:
        for library, text in _content(stack).get("libraries", {}).items():
            found[library.removeprefix("lib").partition(".")[0]] = (stack, f"{library}: {text}")
        found |= {begin: (stack, text) for begin, text in _content(stack).get("families", {}).items()}
    return found


def family_of(name: str) -> tuple[str, str] | None:
    """Of a function of a part that is not emulated at all: the stack, and what the part is."""
    return next((family for begin, family in _families().items()
                 if name.startswith(begin) and name[len(begin):][:1].isupper()), None)  # fmt: skip


@functools.cache
def namespaces() -> dict[str, str]:
    """C++ namespaces of the stacks, and what they are."""
    return {name: text for stack in STACKS for name, text in _content(stack).get("namespaces", {}).items()}


@functools.cache
def models() -> dict[str, list[str]]:
    """The functions that PyTorch's adapter calls when a kind of model trains."""
    return {name: [f"aclnn{operator}" for operator in text.split()]
            for name, text in _content("ascend").get("models", {}).items()}  # fmt: skip


@functools.cache
def limits() -> dict[str, str]:
    """What of a function is not emulated; the others are emulated whole."""
    return {function: entry["sentence"] for stack in STACKS for entry in _content(stack).get("limit", [])
            for function in entry["functions"].split()}  # fmt: skip


def status_name(stack: str, status: int) -> str:
    """The vendor's name of a status that no public header names; "" when there is none."""
    return _content(stack).get("statuses", {}).get(str(status), "")


def stack_by_pattern(name: str) -> str | None:
    return next((stack for stack, pattern in PATTERNS.items() if pattern.fullmatch(name)), None)


def absence(name: str, candidates) -> str:
    """What to say of a name that no loaded library has: the vendor has it and we do not, or another name is meant."""
    from understudy.kit import sdk

    if name in sdk.exporters():  # others' libraries are loaded
        return f"no loaded library has {name}"
    if name in known():
        entry = known()[name]
        place = ", ".join(filter(None, [entry.library, entry.header]))
        return f"{name} is not emulated; the vendor has it" + (f" ({place})" if place else "")
    near = nearest(name, candidates, 0.75)
    return f"no loaded library has {name}" + (f"; did you mean {near}?" if near else "")


def nearest(name: str, candidates, cutoff: float = 0.85) -> str:
    """The candidate most like the name; "" when none is. One that differs in capitals only is the nearest."""
    same = sorted(candidate for candidate in candidates if candidate.lower() == name.lower())
    return next(iter(same or difflib.get_close_matches(name, candidates, 1, cutoff)), "")
