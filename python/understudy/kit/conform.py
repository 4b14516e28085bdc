"""`understudy conform`: the conformance cases, against our libraries or another's."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from understudy import addresses, paths, toml
from understudy.errors import SdkError, UsageError
from understudy.ft_run import signal_name
from understudy.kit import conform_report, table
from understudy.paths import STACKS

PACKAGES = pathlib.Path(__file__).resolve().parents[2]
SUITE = paths.part("suite")
BAD = ("missing", "wrong status", "wrong number", "failed", "crashed", "hung")
# Within the vendor's own tolerance: told, and no fault.
ROUNDS = "rounds differently"
OUTCOMES = ("passed", "known", *BAD, ROUNDS, "skipped")
COLOURS = {**dict.fromkeys(BAD, "red"), **dict.fromkeys((ROUNDS, "fixed", "unused"), "yellow")}
AT_EXIT = "at the end of the process"


LONGEST_TIMEOUT = 10**9  # seconds; the operating system cannot wait for any number that Python can write


def _seconds(text: str) -> float:
    if not 0 < (seconds := float(text)) <= LONGEST_TIMEOUT:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most {LONGEST_TIMEOUT}")
    return seconds


def add_arguments(parser) -> None:
    parser.add_argument("modules", nargs="*", metavar="MODULE",
                        help="only these, as test_mcdnn_softmax; without: all of the stacks")  # fmt: skip
    parser.add_argument("--lib", action="append", nargs="+", default=[], metavar="PATH",
                        help="test these libraries instead of ours; a library before those it needs")  # fmt: skip
    parser.add_argument("-k", dest="keyword", default="", metavar="EXPRESSION",
                        help="only cases whose names fit, as pytest's -k")  # fmt: skip
    parser.add_argument("--known", metavar="FILE", help="TOML file of the target's known differences")
    parser.add_argument("--report", default="conform.json", metavar="FILE", help="JSON report (default: conform.json)")
    parser.add_argument("--junit", metavar="FILE", help="the same as JUnit's XML")
    parser.add_argument("--html", metavar="FILE", help="the same as a page for a browser")
    parser.add_argument("--isolate", action="store_true", help="one process per case: slow, nothing carries over")
    parser.add_argument("--timeout", type=_seconds, default=300, metavar="SECONDS",
                        help="a case that takes longer is ended and counted as hung (default: 300)")  # fmt: skip
    parser.epilog = "Exit status: 0 when every case passed, was skipped or is a known difference, else 1."


@dataclass
class Case:
    id: str
    outcome: str
    seconds: float = 0.0
    message: str = ""
    why: str = ""  # of a known difference
    facts: dict = field(default_factory=dict)  # statuses, largest error

    @property
    def stack(self) -> str:
        return next((stack for stack in STACKS if f"/{stack}/" in f"/{self.id}"), "")


@dataclass
class Known:
    """Cases that are known to differ on a target."""

    pattern: str
    why: str
    used: bool = False

    def covers(self, case_id: str) -> bool:
        parts = map(re.escape, self.pattern.split("*"))
        return re.fullmatch(".*".join(parts), case_id) is not None


@dataclass
class Run:
    """What is to be run, and what came of it."""

    paths: list[str]
    keyword: str
    environment: dict[str, str]
    timeout: float
    limit: int | None
    log: pathlib.Path
    cases: dict[str, Case] = field(default_factory=dict)
    collected: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)


def read_known(path: str | None) -> list[Known]:
    if path is None:
        return []
    try:
        content = toml.loads(pathlib.Path(path).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML file: {error}") from None
    refuse_others(path, content, "difference")
    entries = content.get("difference", [])
    return [known_of(path, entry) for entry in (entries if isinstance(entries, list) else [entries])]


def known_of(path: str, entry) -> Known:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("case", "why")):
        raise UsageError(f"{path}: every [[difference]] needs case and why, which are texts")
    refuse_others(path, entry, "case", "why")
    return Known(entry["case"], entry["why"])


def refuse_others(path: str, table: dict, *keys: str) -> None:
    """A key with a typing error would change nothing, and nobody would see it."""
    for key in table:
        if key not in keys:
            raise UsageError(f"{path}: there is no key {key!r}; there are: {', '.join(keys)}")


def assign(libraries: list[str], stacks: list[str] | None) -> dict[str, list[str]]:
    """The stack that each given library is of: by name, or the only one that was asked for."""
    from understudy.kit import elf, names, sdk

    found: dict[str, list[str]] = {}
    for library in libraries:
        facts = elf.read(library)
        own = [sdk.libraries()[name][0] for name in (facts.soname, facts.path.name) if name in sdk.libraries()]
        exported = [names.known()[name].stack for name in facts.exported if name in names.known()]
        guesses = own or exported[:1] or (stacks if stacks and len(stacks) == 1 else [])
        if not guesses:
            raise UsageError(f"{library} has no name and no function of the stacks; say with --stack whose it is")
        found.setdefault(guesses[0], []).append(str(facts.path.resolve()))
    return found


def suite_paths(stacks, modules=()) -> list[str]:
    """The folders of the stacks, or those of their files that are named."""
    folders = [SUITE / "tests" / folder for stack in stacks for folder in (f"conformance/{stack}", stack)]
    present = [folder for folder in folders if folder.is_dir()]
    if not present:
        raise SdkError(f"no conformance cases at {SUITE}")
    for module in modules:
        if not any((folder / f"{module}.py").is_file() for folder in present):
            raise UsageError(f"{module} is no module of {' or '.join(stacks)}")
    found = [folder / f"{module}.py" for module in modules for folder in present] if modules else present
    return [str(path.relative_to(SUITE)) for path in found if path.exists()]


# ---- the children ----


class Worker:
    """One child process and its events. It ends, with what it started, when the pipe `_alive` closes: however this
    process ends."""

    def __init__(self, run: Run, log):
        self._reader, writer = os.pipe()
        alive, self._alive = os.pipe()
        self._buffer = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "understudy.kit.conform_worker", str(writer), str(alive)], cwd=SUITE,
            env=run.environment, stdin=subprocess.PIPE, stdout=log, stderr=log, pass_fds=[writer, alive],
            start_new_session=True,
        )  # fmt: skip
        os.close(writer)
        os.close(alive)
        request = {"paths": run.paths, "keyword": run.keyword, "done": sorted(run.cases), "limit": run.limit}
        try:
            self.process.stdin.write(json.dumps(request).encode())
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it ended at once: its exit status tells

    def event(self, timeout: float) -> dict | None:
        """The next event; None when there are no more. Raises TimeoutError."""
        end = time.monotonic() + timeout
        while b"\n" not in self._buffer:
            if not select.select([self._reader], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError
            data = os.read(self._reader, 65536)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def end(self) -> int:
        """Ends the process and what it started; returns the exit status, negative for a signal."""
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            return self.kill()
        finally:
            os.close(self._reader)
            os.close(self._alive)

    def kill(self) -> int:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return self.process.wait()


def ending(status: int) -> str:
    """How a process ended, in words."""
    return signal_name(-status) if status < 0 else f"exit status {status}"


def run_worker(run: Run, progress) -> bool:
    """Runs cases until the child ends. Returns whether there may be more."""
    with open(run.log, "w+", encoding="utf-8", errors="replace") as log:
        worker = Worker(run, log)
        current, finished, hung = "", False, False
        before = len(run.cases)
        try:
            while (event := worker.event(run.timeout if current else max(run.timeout, 120))) is not None:
                if "collected" in event:
                    run.collected = run.collected or event["collected"]
                elif "broken" in event:
                    run.broken[event["broken"]] = event["message"]
                elif "start" in event:
                    current = event["start"]
                    progress.show(run, current)
                elif "end" in event:
                    case = Case(event["end"], event["outcome"], event["seconds"], event["message"], facts=event["facts"])
                    run.cases[case.id], current = case, ""
                    progress.done(run, case)
                elif "finished" in event:
                    finished = event["finished"] != pytest_usage_error()
        except TimeoutError:
            worker.kill()
            hung = True
        except BaseException:
            worker.kill()
            raise
        status = worker.end()
        tail = last_words(log)
    if current:
        message = f"took more than {run.timeout:g} s" if hung else " ".join(filter(None, [ending(status), tail]))
        case = Case(current, "hung" if hung else "crashed", run.timeout if hung else 0.0, message)
        run.cases[current] = case
        progress.done(run, case)
    elif not finished and before == len(run.cases):
        raise SdkError(f"the cases cannot be run: {tail or ending(status)}")
    elif status < 0:
        run.cases[AT_EXIT] = Case(AT_EXIT, "crashed", 0.0, ending(status))
    run.paths = sorted({name.partition("::")[0] for name in run.collected if name not in run.cases})[: run.limit]
    return bool(run.paths) and len(run.cases) > before


def pytest_usage_error() -> int:
    import pytest

    return pytest.ExitCode.USAGE_ERROR


def last_words(log) -> str:
    """The last line that the child printed and that is neither dots of pytest nor its sum ("1 skipped in 2.8s")."""
    log.seek(0)
    lines = [line.strip() for line in log.read().splitlines()
             if re.search(r"[A-Za-z]{3}", line) and not re.match(r"(no tests ran|(\d+ \w+,? ?)+) in [\d.]+s", line.strip())]
    return lines[-1][:200] if lines else ""


class Progress:
    """One line that changes on a terminal; elsewhere a line per tenth of the cases and per failure."""

    def __init__(self):
        self.terminal = sys.stderr.isatty()
        self.tenth = 0
        self.missing: set[str] = set()  # functions that were told

    def show(self, run: Run, current: str) -> None:
        if self.terminal:
            width = table.line_width() or 100
            text = f"[{len(run.cases) + 1}/{len(run.collected)}] {short(current)}"
            print(f"\r\033[K{text[: width - 1]}", end="", file=sys.stderr, flush=True)

    def done(self, run: Run, case: Case) -> None:
        if case.outcome in BAD and (case.outcome != "missing" or case.message not in self.missing):
            if case.outcome == "missing":
                self.missing.add(case.message)
            clear = "\r\033[K" if self.terminal else ""
            print(f"{clear}{case.outcome}: {short(case.id)}: {case.message}", file=sys.stderr, flush=True)
        tenth = 10 * len(run.cases) // max(1, len(run.collected))
        if not self.terminal and tenth > self.tenth:
            self.tenth = tenth
            bad = sum(case.outcome in BAD for case in run.cases.values())
            print(f"{len(run.cases)} of {len(run.collected)} cases, {bad} bad", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def short(case_id: str) -> str:
    return case_id.removeprefix("tests/")


# ---- the result ----


def apply_known(cases: list[Case], known: list[Known]) -> list[Case]:
    """Marks the failures that are known; returns the cases that pass although they are listed."""
    fixed = []
    for case in cases:
        for entry in known:
            if entry.covers(case.id):
                entry.used = True
                if case.outcome in BAD or case.outcome == ROUNDS:
                    case.outcome, case.why = "known", entry.why
                elif case.outcome == "passed":
                    fixed.append(case)
                break
    return fixed


def print_result(cases: list[Case], fixed: list[Case], known: list[Known]) -> None:
    rows = [("stack", "cases", *OUTCOMES)]
    groups = {stack: [case for case in cases if case.stack == stack] for stack in [*STACKS, ""]}
    for stack, mine in [*groups.items(), ("total", cases)]:
        if mine:
            rows.append((stack or "-", len(mine), *(sum(case.outcome == kind for case in mine) for kind in OUTCOMES)))
    absent = collections.Counter(case.message for case in cases if case.outcome == "missing")
    details = [("missing", name, f"the libraries do not export it; {table.plural(count, 'case')} cannot run")
               for name, count in absent.most_common()]  # fmt: skip
    details += [(case.outcome, case.id, case.message) for case in cases if case.outcome in BAD and case.outcome != "missing"]
    details += [(ROUNDS, case.id, case.message) for case in cases if case.outcome == ROUNDS]
    details += [("known", case.id, case.why) for case in cases if case.outcome == "known"]
    details += [("fixed", case.id, "is listed as a known difference and passes") for case in fixed]
    details += [("unused", entry.pattern, "is listed as a known difference and names no case that was run")
                for entry in known if not entry.used]  # fmt: skip
    if details:
        print(table.render(details, indent="", colours=COLOURS) + "\n")
    print(table.render(rows, indent=""))


def write_reports(options, target: dict, cases: list[Case], fixed: list[Case], known: list[Known], seconds: float):
    totals = {kind: sum(case.outcome == kind for case in cases) for kind in OUTCOMES}
    report = {**conform_report.facts(target, cases, totals, seconds), "fixed": [case.id for case in fixed],
              "unused": [entry.pattern for entry in known if not entry.used]}  # fmt: skip
    table.write(options.report, conform_report.json_text(report))
    if options.junit:
        table.write(options.junit, conform_report.junit_text(report, BAD))
    if options.html:
        table.write(options.html, conform_report.html_text(report, BAD))


def environment(target: dict[str, list[str]], scratch: str) -> dict[str, str]:
    """Of the children. They keep compiled modules, for those that follow, away from where the package is installed."""
    changes = {"HYPOTHESIS_STORAGE_DIRECTORY": scratch, "PYTHONDONTWRITEBYTECODE": "",
               "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX") or scratch}
    changes |= {f"UNDERSTUDY_{stack.upper()}_LIBRARIES": os.pathsep.join(paths) for stack, paths in target.items()}
    path = os.pathsep.join([str(SUITE), str(PACKAGES)])  # the suite's folder `tests` hides any other
    return {**os.environ, "PYTHONPATH": path, **changes}


def run(options) -> int:
    try:
        from understudy.kit import conform_worker
    except ImportError:
        raise UsageError("pytest is not installed: pip install 'understudy-abi[conform]'") from None
    for place in filter(None, (options.report, options.junit, options.html)):
        table.check_place(place)
    known = read_known(options.known)
    target = assign([path for group in options.lib for path in group], options.stack)
    stacks = options.stack or list(target) or list(STACKS)
    started = time.monotonic()
    addresses.keep_in_place()  # cases write to literal addresses of the DSP
    with tempfile.TemporaryDirectory(prefix="understudy-conform-") as scratch:
        todo = Run(suite_paths(stacks, options.modules), options.keyword, environment(target, scratch), options.timeout,
                   1 if options.isolate else None, pathlib.Path(scratch) / "log")
        progress = Progress()
        try:
            while run_worker(todo, progress):
                pass
        finally:
            progress.close()
    cases = [dataclasses.replace(case, id=short(case.id)) for case in todo.cases.values()]
    for name, message in todo.broken.items():  # modules
        outcome, text = conform_worker.failure(message)
        cases.append(Case(short(name), outcome, 0.0, text))
    if not cases:
        raise UsageError(f"no case fits {options.keyword!r}" if options.keyword else "there are no cases")
    fixed = apply_known(cases, known)
    write_reports(options, target, cases, fixed, known, time.monotonic() - started)
    print_result(cases, fixed, known)
    print(f"\nreport: {options.report}")
    return 1 if any(case.outcome in BAD for case in cases) else 0
