"""Rule cases: each documented refusal with the call that triggers exactly it and its nearest legal neighbour.

A case uses only the vendor's public ABI, so it also runs against another library of the same ABI. The rule id and the
sentence are checked only when the library is ours (libunderstudy.so knows them).
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib
import json
import os
import pathlib
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping

import pytest

from understudy.kit import catalogue

from tests.conformance.verdicts import core, require_status


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


def _told(function: str) -> str:
    if core() is None:
        pytest.skip("only our libraries tell the rule and the sentence")
    return getattr(core(), function)().decode()


def last_rule() -> str:
    return _told("understudy_last_rule")


def last_text() -> str:
    return _told("understudy_last_error")


def check_case(case: RuleCase) -> None:
    """In this process, whatever the case's environment."""
    expected = catalogue.rules()[case.rule]
    status = expected.status if case.status is None else case.status
    if core() is None:
        result = case.refused()
        if expected.library != "libftdsp.so":  # its functions return nothing: only the outputs tell
            require_status(result.status, status)
        assert result.untouched is not False, "a refused call has written to its outputs"
        require_status(case.accepted().status)
        return
    core().understudy_clear_last_error()
    result = case.refused()
    require_status(result.status, status)
    assert last_rule() == case.rule, last_text()
    assert len(last_text()) > 10, "a refusal must say what is wrong"
    assert result.untouched is not False, "a refused call has written to its outputs"
    core().understudy_clear_last_error()
    require_status(case.accepted().status)
    assert last_rule() == "", last_text()


def check_rule(case: RuleCase) -> None:
    """Runs a case; with `env`, in a process of its own that has these variables set before the libraries are loaded."""
    if not case.env:
        check_case(case)
        return
    module = sys.modules[case.refused.__module__]
    together = [one for one in module.RULES if one.env == case.env] if core() is not None else [case]
    outcomes = _outcomes(module.__name__, tuple(one.rule for one in together), tuple(case.env.items()))
    assert not outcomes[case.rule], outcomes[case.rule]


@functools.cache
def _outcomes(module: str, rules: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """What becomes of cases that need the same environment: Python starts and imports once for all of them."""
    done = run_isolated([sys.executable, "-m", "tests.conformance.harness", module, *rules], dict(env))
    return json.loads(done.stdout.splitlines()[-1])


def _outcome_in_a_child(rule: str, cases: list[RuleCase]) -> str:
    """Forks, as a process may that has not used a device yet; the text of what failed, or ""."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for case in cases:
                check_case(case)
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        sys.stderr.flush()
        ctypes.CDLL(None).exit(0)  # the libraries' ends run; that Python tidies its heap would take most of the time
    os.close(writing)
    with os.fdopen(reading, errors="replace") as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return text or (f"{rule}: the process ended with status {status}" if status else "")


def run_isolated(command: list[str], env: Mapping[str, str]) -> subprocess.CompletedProcess:
    """Runs a command with extra variables; fails with its output when it does."""
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True,
                          cwd=pathlib.Path(__file__).parents[2])
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done


def run_python(source: str, env: Mapping[str, str]) -> str:
    """Runs Python source in a child process with extra variables; returns what it printed."""
    return run_isolated([sys.executable, "-c", source], env).stdout


def run_tests(tests: Iterable[str | pathlib.Path], env: Mapping[str, str], *options: str) -> None:
    """Runs tests again, each a file or `file::test`, in a child process with extra variables: there are some, and all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *options, *map(str, tests)]
    assert " passed" in run_isolated(command, env).stdout


def _main(module: str, *rules: str) -> None:
    cases = importlib.import_module(module).RULES
    catalogue.rules()  # read once, before the children look rules up
    print(json.dumps({rule: _outcome_in_a_child(rule, [case for case in cases if case.rule == rule]) for rule in rules}))


if __name__ == "__main__":
    _main(*sys.argv[1:])
