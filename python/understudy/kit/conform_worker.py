"""Child process of `understudy conform`: runs cases with pytest and tells what happens, a JSON line each.

Standard input: {"paths", "keyword", "done", "limit"}. Events go to the file descriptor that the first argument names;
what the cases print goes to standard output. A case that ends this process ends nothing else: the parent starts
another. The second argument names a pipe that the parent holds open as long as it lives.
"""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import sys
import threading
import time

import pytest

from understudy.kit.collection import cases_are_no_garbage


NEEDS_SOURCES = re.compile(r"import native|parents\[2\]|\[\"(gcc|nm)\"|from tests\.(tensor|function_table)")
# How pytest spells that a function is not in the libraries (binding.MissingName).
MISSING = re.compile(r"understudy\.binding\.MissingName: (?:no loaded library has )?(\w+)")
LONGEST_MESSAGE = 240


class Reporter:
    """Pytest plugin: skips what is done, and tells the start and the end of every case."""

    def __init__(self, events, done: set[str], limit: int | None):
        self.events, self.done, self.limit = events, done, limit
        self.outcome, self.message, self.started = "passed", "", 0.0

        self.facts: dict = {}

    def tell(self, **event) -> None:
        self.events.write(json.dumps(event) + "\n")
        self.events.flush()

    def pytest_ignore_collect(self, collection_path):
        """Modules that compile programs, or look into our libraries, are no cases of the ABI alone."""
        if collection_path.suffix == ".py" and NEEDS_SOURCES.search(collection_path.read_text("utf-8")):
            return True
        return None

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self):
        with cases_are_no_garbage():
            return (yield)

    @pytest.hookimpl(trylast=True)  # after -k has chosen
    def pytest_collection_modifyitems(self, session, config, items):
        self.tell(collected=[item.nodeid for item in items])
        left = [item for item in items if item.nodeid not in self.done]
        items[:] = left if self.limit is None else left[: self.limit]

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell(broken=report.nodeid, message=last_line(str(report.longrepr)))

    def pytest_runtest_logstart(self, nodeid, location):
        self.outcome, self.message, self.facts, self.started = "passed", "", {}, time.monotonic()
        self.tell(start=nodeid)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self):
        """Python's parser, which reports ask for the lines of a case, fails when an object with `__del__` is collected in it."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()

    def pytest_exception_interact(self, node, call, report):
        """What the suite itself says of a difference (tests/conformance/verdicts.py)."""
        difference = call.excinfo.value
        if hasattr(difference, "outcome"):
            self.outcome, self.message, self.facts = difference.outcome, str(difference), difference.facts

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.outcome, self.message = failure(summary(report))
        elif report.skipped and self.outcome == "passed":
            self.outcome, self.message = "skipped", summary(report)

    def pytest_runtest_logfinish(self, nodeid, location):
        seconds = round(time.monotonic() - self.started, 4)
        self.tell(end=nodeid, outcome=self.outcome, seconds=seconds, message=self.message[:LONGEST_MESSAGE], facts=self.facts)


def failure(message: str) -> tuple[str, str]:
    """Outcome and message of what went wrong: "missing" and the function's name, or "failed" and what was said."""
    absent = MISSING.match(message)
    return ("missing", absent[1]) if absent else ("failed", message)


def last_line(text: str) -> str:
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def summary(report) -> str:
    """The line that says why: where a case started Python itself, what that Python did not find."""
    if isinstance(report.longrepr, tuple):  # skipped: file, line, reason
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    if not crash or not crash.message:
        return last_line(str(report.longrepr))
    absent = MISSING.search(crash.message)
    return absent[0] if absent else crash.message.splitlines()[0]


def tell_apart_numbers() -> None:
    """Comparisons of NumPy's that fail say how far the numbers lie apart."""
    import numpy

    compare = numpy.testing.assert_allclose

    def assert_allclose(actual, desired, rtol=1e-7, atol=0, *rest, **options):
        from tests.conformance.verdicts import WrongNumber

        try:
            compare(actual, desired, rtol, atol, *rest, **options)
        except AssertionError:
            if numpy.shape(actual) != numpy.shape(desired) and numpy.ndim(desired):
                raise
            raise WrongNumber(actual, desired, f"rtol {rtol:.3g}") from None

    numpy.testing.assert_allclose = assert_allclose


def end_with_the_parent(pipe: int) -> None:
    """Ends this process, and those that cases have started, even while a case waits in a library."""
    os.read(pipe, 1)
    os.killpg(0, signal.SIGKILL)


def main() -> int:
    threading.Thread(target=end_with_the_parent, args=(int(sys.argv[2]),), daemon=True).start()
    tell_apart_numbers()
    request = json.load(sys.stdin)
    with os.fdopen(int(sys.argv[1]), "w") as events:
        reporter = Reporter(events, set(request["done"]), request["limit"])
        options = ["-q", "--import-mode=importlib", "-p", "no:cacheprovider", "-c", os.devnull, "-W", "ignore",
                   "--rootdir", os.getcwd(), "--continue-on-collection-errors"]  # fmt: skip
        if request["keyword"]:
            options += ["-k", request["keyword"]]
        status = pytest.main([*options, *request["paths"]], plugins=[reporter])
        reporter.tell(finished=int(status))
    return 0


if __name__ == "__main__":
    sys.exit(main())
