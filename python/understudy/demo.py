"""`understudy demo`: compiles the example programs as a vendor's user would, runs them, compares with NumPy float64.

An example is a file examples_c/<stack>/<name>/<name>.c or .cpp whose first line is the compile command in a comment. It
prints lines "label: v v v". What the numbers should be is computed here from the formula, on the same inputs.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy

from understudy import paths, toolchain
from understudy.errors import SdkError
from understudy.paths import Stack

TIME_LIMIT_SECONDS = 120


# ---- references: formula and inputs of each example, in float64 ------------------------------------------------------


def _soft_margin_loss_backward() -> dict[str, numpy.ndarray]:
    grad = numpy.array([1, 2, 3, 4, -0.5, 0.25])
    x = numpy.array([0, 1, -2, 3, 0.5, -7])
    target = numpy.array([1, -1, 1, 1, 1, -1])
    gradient = grad * -target / (1 + numpy.exp(x * target))
    return {"none": gradient, "mean": gradient / gradient.size}


REFERENCES = {
    "soft_margin_loss_backward": _soft_margin_loss_backward,
}


# ---- running ---------------------------------------------------------------------------------------------------------


@dataclass
class Comparison:
    """One printed line beside its reference."""

    example: str
    label: str
    got: numpy.ndarray
    expected: numpy.ndarray
    tolerance: float

    @property
    def error(self) -> float:
        """Largest difference, relative to the reference or, for small values, to the line's largest one."""
        if self.got.shape != self.expected.shape:
            return float("inf")
        scale = numpy.maximum(numpy.abs(self.expected), 2.0**-10 * numpy.abs(self.expected).max(initial=0))
        difference = numpy.abs(self.got - self.expected)
        with numpy.errstate(invalid="ignore", divide="ignore"):
            relative = numpy.where(difference == 0, 0, difference / scale)
        return float(numpy.nan_to_num(relative, nan=numpy.inf).max(initial=0))

    @property
    def agrees(self) -> bool:
        return self.error <= self.tolerance


class ExampleError(Exception):
    """An example does not compile, does not run, or is not known here."""


def sources(stacks: list[Stack]) -> Iterator[tuple[Stack, pathlib.Path]]:
    for stack in stacks:
        folder = paths.examples() / stack.name
        for source in sorted([*folder.rglob("*.c"), *folder.rglob("*.cpp")]):
            yield stack, source


def compile_command(source: pathlib.Path) -> str:
    """The command in the first line's comment."""
    first = source.read_text().partition("\n")[0]
    found = re.match(r"(?:/\*|//)\s*((?:gcc|g\+\+|cc|c\+\+)\s.*?)\s*(?:\*/)?$", first)
    if not found:
        raise ExampleError(f"{source.name}: the first line is not a compile command in a comment")
    return found[1]


def run_quietly(command, what: str, **settings) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS, **settings)
    except subprocess.TimeoutExpired:
        raise ExampleError(f"{what} did not end within {TIME_LIMIT_SECONDS} s") from None
    if result.returncode != 0:
        raise ExampleError(f"{what} ended with status {result.returncode}\n{result.stdout}{result.stderr}".rstrip())
    return result.stdout


def build_and_run(stack: Stack, source: pathlib.Path, folder: str) -> str:
    """What the program prints."""
    environment = toolchain.environment([stack])
    command = compile_command(source)
    (pathlib.Path(folder) / source.name).write_bytes(source.read_bytes())
    run_quietly(["sh", "-c", command], f"compiling {source.name}", cwd=folder, env=environment)
    return run_quietly([f"./{source.stem}"], source.stem, cwd=folder, env=environment)


def parse(printed: str) -> dict[str, numpy.ndarray]:
    """Lines "label: v v v"; lines of other shapes are for the reader."""
    lines = {}
    for line in printed.splitlines():
        label, colon, values = line.partition(":")
        try:
            lines[label.strip()] = numpy.array([float(value) for value in values.split()])
        except ValueError:
            continue
    return {label: values for label, values in lines.items() if values.size}


def compare(source: pathlib.Path, printed: str) -> list[Comparison]:
    reference = REFERENCES.get(source.stem)
    if reference is None:
        raise ExampleError(f"{source.name}: no reference for this example")
    expected, got = reference(), parse(printed)
    return [
        Comparison(source.stem, label, got.get(label, numpy.array([])), numpy.ravel(values), TOLERANCE)
        for label, values in expected.items()
    ]


# float32 results: the operators' sums and exponentials stay within a few units in the last place.
TOLERANCE = 2.0**-20


# ---- the table -------------------------------------------------------------------------------------------------------


def paint(text: str, colour: int) -> str:
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        return f"\033[{colour}m{text}\033[0m"
    return text


def shortened(values: numpy.ndarray) -> str:
    text = " ".join(f"{value:.6g}" for value in values[:4])
    return text + (" …" if values.size > 4 else "") if values.size else "(not printed)"


def print_table(comparisons: list[Comparison]) -> None:
    rows = [
        (c.example, c.label, shortened(c.got), shortened(c.expected), f"{c.error:.1e}", "ok" if c.agrees else "DIFFERS")
        for c in comparisons
    ]
    header = ("example", "result", "program", "NumPy float64", "error", "")
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    for row in [header, *rows]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        if row[-1] in ("ok", "DIFFERS"):
            cells[-1] = paint(row[-1], 32 if row[-1] == "ok" else 31)
        print("  ".join(cells).rstrip())


def run(stacks: list[Stack]) -> int:
    """Runs the examples of the stacks; 0 when every program works and every number agrees."""
    found = list(sources(stacks))
    if not found:
        raise SdkError(f"no example programs in {paths.examples()}")
    comparisons, problems = [], []
    for stack, source in found:
        with tempfile.TemporaryDirectory() as folder:
            try:
                comparisons += compare(source, build_and_run(stack, source, folder))
            except ExampleError as error:
                problems.append(str(error))
    print_table(comparisons)
    for problem in problems:
        print(paint(problem, 31))
    bad = len(problems) + sum(not comparison.agrees for comparison in comparisons)
    print(f"{len(found)} programs, {len(comparisons)} results compared, {bad} bad")
    return 1 if bad else 0
