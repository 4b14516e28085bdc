"""The rule catalogue: what every library refuses and chooses, from the SDK's files rules.toml (written) and rules.json (made)."""

import functools
import json
import pathlib
import re
from dataclasses import dataclass

from understudy import paths, toml

SOURCES = ("page", "sheet", "choice", "cannot-check")


@dataclass(frozen=True)
class Rule:
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


@dataclass(frozen=True)
class Choice:
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
    group = re.search(r"\{([^{}]*)\}", text)
    if group is None:
        return [text]
    head, tail = text[: group.start()], text[group.end() :]
    return [whole for part in group[1].split(",") for whole in expand_braces(head + part + tail)]


def files() -> list[pathlib.Path]:
    return sorted((paths.sdk() / "rules").rglob("rules.*"))


@functools.cache
def contents() -> dict[pathlib.Path, dict]:
    """What each catalogue says: "library", and lists of "rule" and "choice"."""
    readers = {".toml": toml.loads, ".json": json.loads}
    return {file: readers[file.suffix](file.read_text("utf-8")) for file in files()}


def stack_of(file: pathlib.Path) -> str:
    return file.relative_to(paths.sdk() / "rules").parts[0]


@functools.cache
def rules() -> dict[str, Rule]:
    """Every rule of every library by id."""
    found: dict[str, Rule] = {}
    for file, content in contents().items():
        for entry in content.get("rule", []):
            for rule_id in expand_braces(entry["id"]):
                if rule_id in found:
                    raise ValueError(f"{file}: {rule_id} is listed twice")
                found[rule_id] = Rule(rule_id, entry["status"], entry["sentence"], entry["source"], entry["where"],
                                      entry.get("why", ""), content["library"],
                                      entry.get("always", False))  # fmt: skip
    return found


@functools.cache
def refused_functions() -> dict[str, Rule]:
    """The functions that are declared and exported, but refuse whatever they are given; of an operator both."""
    found = {rule.function: rule for rule in rules().values() if rule.always}
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
