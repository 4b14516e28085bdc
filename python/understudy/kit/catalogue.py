"""The rule catalogue: what every library refuses and chooses, from the SDK's files rules.json."""

import functools
import json
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from understudy import paths

SOURCES = ("page", "sheet", "choice", "cannot-check")


class Rule(NamedTuple):
    """A refusal. `id` is "function/parameter/rule", `status` the vendor's."""

    id: str
    status: int
    sentence: str
    source: str
    where: str
    why: str
    library: str
    always: bool = False  # the function refuses whatever it is given: it is declared, but not emulated

    @property
    def function(self) -> str:
        return self.id.partition("/")[0]


class Choice(NamedTuple):
    """Behaviour that refuses nothing, taken where the vendor's is unknown."""

    id: str
    sentence: str
    where: str
    library: str

    @property
    def function(self) -> str:
        return self.id.partition("/")[0]


def expand_braces(text: str) -> list[str]:
    """"a/{b,c}" -> ["a/b", "a/c"]; several groups multiply."""
    if "{" not in text:
        return [text]
    group = re.search(r"\{([^{}]*)\}", text)
    head, tail = text[: group.start()], text[group.end() :]
    return [whole for part in group[1].split(",") for whole in expand_braces(head + part + tail)]


def files() -> list[pathlib.Path]:
    return sorted((paths.sdk() / "rules").rglob("rules.json"))


@functools.cache
def contents() -> dict[pathlib.Path, dict]:
    """What each catalogue says: "library", and lists of "rule" and "choice"."""
    return {file: json.loads(file.read_text("utf-8")) for file in files()}


def stack_of(file: pathlib.Path) -> str:
    return file.relative_to(paths.sdk() / "rules").parts[0]


def _rules_of(library: str, entry: dict) -> Iterator[Rule]:
    said = (entry["status"], entry["sentence"], entry["source"], entry["where"], entry.get("why", ""), library,
            entry.get("always", False))  # fmt: skip
    for rule_id in expand_braces(entry["id"]):
        yield Rule(rule_id, *said)


@functools.cache
def rules() -> dict[str, Rule]:
    """Every rule of every library by id."""
    found: dict[str, Rule] = {}
    for file, content in contents().items():
        for entry in content.get("rule", []):
            for rule in _rules_of(content["library"], entry):
                if rule.id in found:
                    raise ValueError(f"{file}: {rule.id} is listed twice")
                found[rule.id] = rule
    return found


@functools.cache
def refused_functions() -> dict[str, Rule]:
    """The functions that are declared and exported, but refuse whatever they are given; of an operator both."""
    found = {rule.function: rule for content in contents().values() for entry in content.get("rule", [])
             if entry.get("always") for rule in _rules_of(content["library"], entry)}
    return found | {f"{name}GetWorkspaceSize": rule for name, rule in found.items() if name.startswith("aclnn")}


@functools.cache
def choices() -> list[Choice]:
    found = []
    for content in contents().values():
        for entry in content.get("choice", []):
            found += [Choice(name, entry["sentence"], entry["where"], content["library"])
                      for name in expand_braces(entry["id"])]  # fmt: skip
    return found


@functools.cache
def stack_of_library() -> dict[str, str]:
    """The stack of each library that has a catalogue."""
    return {content["library"]: stack_of(file) for file, content in contents().items()}
