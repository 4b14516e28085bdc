"""Rule cases: each documented refusal with the call that triggers exactly it and its nearest legal neighbour.

A case uses only the vendor's public ABI, so it also runs against another library of the same ABI. The rule id and the
sentence are checked only when the library is ours (libunderstudy.so knows them).
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping

from understudy import paths


@dataclasses.dataclass(frozen=True)
class Result:
    """What a call did: its status, and whether its outputs kept their bytes (None when it has none)."""

    status: int
    untouched: bool | None = None


@dataclasses.dataclass(frozen=True)
class RuleCase:
    rule: str
    refused: Callable[[], Result]
    accepted: Callable[[], Result]
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    status: int | None = None  # of the refused call; None: as in the catalogue


@dataclasses.dataclass(frozen=True)
class Rule:
    id: str
    status: int
    sentence: str
    source: str
    where: str
    why: str
    library: str


SOURCES = ("page", "sheet", "choice", "cannot-check")


def expand_braces(text: str) -> list[str]:
    """"a/{b,c}" -> ["a/b", "a/c"]; several groups multiply."""
    group = re.search(r"\{([^{}]*)\}", text)
    if group is None:
        return [text]
    head, tail = text[: group.start()], text[group.end() :]
    return [whole for part in group[1].split(",") for whole in expand_braces(head + part + tail)]


def rules_folder() -> pathlib.Path:
    return paths.sdk() / "rules"


def catalogue_files() -> list[pathlib.Path]:
    return sorted(rules_folder().rglob("rules.toml"))


@functools.cache
def catalogue() -> dict[str, Rule]:
    """Every rule of every library by id."""
    rules: dict[str, Rule] = {}
    for file in catalogue_files():
        content = tomllib.loads(file.read_text())
        for entry in content.get("rule", []):
            for rule_id in expand_braces(entry["id"]):
                if rule_id in rules:
                    raise ValueError(f"{file}: {rule_id} is listed twice")
                rules[rule_id] = Rule(rule_id, entry["status"], entry["sentence"], entry["source"], entry["where"],
                                      entry.get("why", ""), content["library"])
    return rules


@functools.cache
def _core() -> ctypes.CDLL:
    core = ctypes.CDLL(str(paths.sdk() / "lib" / "libunderstudy.so"))
    for name in ("understudy_last_rule", "understudy_last_error"):
        getattr(core, name).restype = ctypes.c_char_p
    return core


def last_rule() -> str:
    return _core().understudy_last_rule().decode()


def last_text() -> str:
    return _core().understudy_last_error().decode()


def _check_here(case: RuleCase) -> None:
    expected = catalogue()[case.rule]
    _core().understudy_clear_last_error()
    result = case.refused()
    assert result.status == (expected.status if case.status is None else case.status), (result, last_text())
    assert last_rule() == case.rule, last_text()
    assert len(last_text()) > 10, "a refusal must say what is wrong"
    assert result.untouched is not False, "a refused call has written to its outputs"
    _core().understudy_clear_last_error()
    result = case.accepted()
    assert result.status == 0, (result, last_rule(), last_text())
    assert last_rule() == "", last_text()


def check_rule(case: RuleCase) -> None:
    """Runs a case; with `env`, in a child process that has these variables set before the libraries are loaded."""
    if not case.env:
        _check_here(case)
        return
    module = sys.modules[case.refused.__module__].__name__
    run_isolated([sys.executable, "-m", "tests.conformance.harness", module, case.rule], case.env)


def run_isolated(command: list[str], env: Mapping[str, str], timeout: float = 120) -> subprocess.CompletedProcess:
    """Runs a command with extra variables; fails with its output when it does."""
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=timeout,
                          cwd=pathlib.Path(__file__).parents[2])
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done


def run_python(source: str, env: Mapping[str, str]) -> str:
    """Runs Python source in a child process with extra variables; returns what it printed."""
    return run_isolated([sys.executable, "-c", source], env).stdout


if __name__ == "__main__":
    wanted_module, wanted_rule = sys.argv[1:]
    for wanted in importlib.import_module(wanted_module).RULES:
        if wanted.rule == wanted_rule:
            _check_here(wanted)
