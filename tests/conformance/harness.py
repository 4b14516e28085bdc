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
import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from understudy.kit import catalogue


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


@functools.cache
def _core() -> ctypes.CDLL | None:
    """The library that knows rules and sentences; None when the calls go to libraries that are not ours."""
    try:
        core = ctypes.CDLL("libunderstudy.so", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
    for name in ("understudy_last_rule", "understudy_last_error"):
        getattr(core, name).restype = ctypes.c_char_p
    return core


def _told(function: str) -> str:
    if _core() is None:
        pytest.skip("only our libraries tell the rule and the sentence")
    return getattr(_core(), function)().decode()


def last_rule() -> str:
    return _told("understudy_last_rule")


def last_text() -> str:
    return _told("understudy_last_error")


def _check_here(case: RuleCase) -> None:
    expected = catalogue.rules()[case.rule]
    status = expected.status if case.status is None else case.status
    if _core() is None:
        result = case.refused()
        if expected.library != "libftdsp.so":  # its functions return nothing: only the outputs tell
            assert result.status == status, result
        assert result.untouched is not False, "a refused call has written to its outputs"
        result = case.accepted()
        assert result.status == 0, result
        return
    _core().understudy_clear_last_error()
    result = case.refused()
    assert result.status == status, (result, last_text())
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
