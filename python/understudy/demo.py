"""`understudy demo`: compiles the example programs as a vendor's user would, runs them, compares with NumPy float64.

An example is a file examples_c/<stack>/<operator>/<program>.c or .cpp whose first line is the compile command in a
comment. It prints labelled numbers: "label: v v v", "label[i] = v", or a line with the label and the numbers below it.
What the numbers should be is computed here from the formula, on the same inputs. A program that compares
results itself prints a sentence. A comment "Run as: understudy …" says how to start a program in another way.
"""

from __future__ import annotations

import math
import os
import pathlib
import re
import shlex
import shutil
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
# float32 results: the operators' sums and exponentials stay within a few units in the last place.
TOLERANCE = 2.0**-20
LEAST_PLACES = 4  # fewer decimal places tell too little to compare


# ---- references: formula and inputs of each example, in float64 ------------------------------------------------------


def _soft_margin_loss_backward() -> dict[str, numpy.ndarray]:
    grad = numpy.array([1, 2, 3, 4, -0.5, 0.25])
    x = numpy.array([0, 1, -2, 3, 0.5, -7])
    target = numpy.array([1, -1, 1, 1, 1, -1])
    gradient = grad * -target / (1 + numpy.exp(x * target))
    return {"none": gradient, "mean": gradient / gradient.size}


def _embedding_training() -> dict[str, numpy.ndarray]:
    table = (numpy.arange(20) * 7 % 11 / 8 - 0.5).reshape(5, 4)
    target = numpy.where(numpy.arange(32) * 5 % 8 < 4, 1.0, -1.0).reshape(8, 4)
    one_hot = numpy.eye(5)[[0, 3, 1, 3, 4, 0, 3, 1]]
    losses = []
    for _ in range(6):
        margins = target * (one_hot @ table)
        losses.append(numpy.log1p(numpy.exp(-margins)).mean())
        table = table + 8 / target.size * one_hot.T @ (target / (1 + numpy.exp(margins)))
    return {"loss": numpy.array(losses), "learned table": table}


def _softmax() -> dict[str, numpy.ndarray]:
    logits = numpy.array([[1, 2, 3, 4], [-1, 0, 1, 0.5], [100, 101, 99, 0]])
    slopes = numpy.array([[0, 0, 0, 1], [1, -1, 0.5, 0], [0.25, 0.5, 0.75, 1]])
    powers = numpy.exp(logits - logits.max(axis=1, keepdims=True))
    y = powers / powers.sum(axis=1, keepdims=True)
    gradient = y * (slopes - (y * slopes).sum(axis=1, keepdims=True))
    return {"probabilities": y, "gradient of the logits": gradient}


def _cross_entropy_slope(x, target) -> numpy.ndarray:
    x, target = (numpy.array(values, numpy.float32).astype(numpy.float64) for values in (x, target))
    return (x - target) / (x * (1 - x) + 1e-12)


def _shared_space() -> dict[str, numpy.ndarray]:
    slope = _cross_entropy_slope([0.1, 0.25, 0.5, 0.75, 0.9, 0.999], [0, 1, 0.5, 1, 0, 1])
    return {"dx": 2 / slope.size * numpy.array([1, 2, 0.5, 1.5, 1, 3]) * slope}


def _private_space() -> dict[str, numpy.ndarray]:
    slope = _cross_entropy_slope([0.1, 0.25, 0.5, 0.75, 0.9, 0.999], [0, 1, 0.5, 1, 0, 1])
    return {"dx": numpy.array([1, 1, 2, 0.5, 1, 1]) * slope}


def _momentum() -> dict[str, numpy.ndarray]:
    weight, accumulate, gradient = numpy.arange(1, 7.0), numpy.zeros(6), numpy.arange(6) / 2
    for _ in range(3):
        accumulate = 0.9 * accumulate + gradient
        weight = weight - 0.1 * accumulate
    return {"weight": weight}


def _async_copy() -> dict[str, numpy.ndarray]:
    bands = (numpy.arange(64 * 96) % 100).reshape(4, 16, 96)
    shared = numpy.ones(16)
    shared[4:12] = 2
    invalid_value, success = 1, 0
    return {
        "border sum": numpy.full(4, 0xFF * 96),
        "inside sum": bands[:, 1:].sum(axis=(1, 2)),
        "shared byte": shared,
        "errors": numpy.array([invalid_value, invalid_value, success]),
    }



class _Normalization:
    """Batch normalization over all but the last axis, with momentum."""

    def __init__(self, channels: int):
        self.scale, self.bias, self.velocity = numpy.ones(channels), numpy.zeros(channels), numpy.zeros((2, channels))

    def forward(self, x):
        axes = tuple(range(x.ndim - 1))
        self.inverse = 1 / numpy.sqrt(x.var(axis=axes) + 1e-3)
        self.x = (x - x.mean(axis=axes)) * self.inverse
        return self.scale * self.x + self.bias

    def backward(self, slope):
        axes = tuple(range(slope.ndim - 1))
        bias, scale = slope.sum(axis=axes), (slope * self.x).sum(axis=axes)
        count = slope.size // bias.size
        result = self.scale * self.inverse * (slope - bias / count - self.x * scale / count)
        self.velocity = 0.5 * self.velocity - 0.5 * numpy.array([scale, bias])
        self.scale, self.bias = self.scale + self.velocity[0], self.bias + self.velocity[1]
        return result


def _neighbours(x):
    """Sum over each channel, the one before and the one after."""
    wide = numpy.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 1)])
    return wide[..., :-2] + wide[..., 1:-1] + wide[..., 2:]


def _training(printed) -> dict[str, numpy.ndarray]:
    """The same network, channels last, with the program's dropout masks."""
    images, classes = 8, 4
    state, noise = 1, []
    for _ in range(images * 8 * 8 * classes):
        state = (state * 1664525 + 1013904223) % 2**32
        noise.append(state >> 24)
    label = numpy.eye(classes)[numpy.arange(images) % classes]
    x = numpy.reshape(noise, (images, 8, 8, classes)) / 256 + label[:, None, None] / 4
    first, second, losses = _Normalization(classes), _Normalization(classes), []
    for mask in printed["masks"].values.astype(numpy.uint64):
        kept = (mask >> numpy.arange(images * classes, dtype=numpy.uint64)).reshape(images, classes) % 2 / 0.75
        hidden = numpy.maximum(first.forward(x), 0)
        powers = 1 + 0.5 / 3 * _neighbours(hidden**2)
        local = hidden * powers**-0.75
        windows = local.reshape(images, 4, 2, 4, 2, classes).swapaxes(2, 3).reshape(images, 4, 4, 4, classes)
        logits = kept * second.forward(windows.max(axis=3)).mean(axis=(1, 2))
        logarithms = logits - numpy.log(numpy.exp(logits).sum(axis=1, keepdims=True))
        losses.append(-(label * logarithms).sum() / images)

        slope = kept * (numpy.exp(logarithms) - label) / images
        slope = second.backward(numpy.broadcast_to(slope[:, None, None] / 16, (images, 4, 4, classes)))
        taps = numpy.arange(4)[:, None] == windows.argmax(axis=3)[:, :, :, None]
        slope = (taps * slope[:, :, :, None]).reshape(images, 4, 4, 2, 2, classes).swapaxes(2, 3).reshape(x.shape)
        slope = slope * powers**-0.75 - 2 * 0.5 * 0.75 / 3 * hidden * _neighbours(slope * local / powers)
        first.backward(slope * (hidden > 0))
    learned = {"first scale": first.scale, "first bias": first.bias}
    learned |= {"second scale": second.scale, "second bias": second.bias}
    return {"loss": numpy.array(losses), **learned}


def _convolution(x, filters):
    """3 x 3 windows, the image padded with zeros: [n, c, h, w], [k, c, 3, 3] -> [n, k, h, w]."""
    wide = numpy.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = numpy.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    return numpy.einsum("nchwij,kcij->nkhw", windows, filters)


def _convolution_gradients(x, filters, slope):
    """Of the input, the filters and the bias."""
    of_input = _convolution(slope, filters[:, :, ::-1, ::-1].swapaxes(0, 1))
    wide = numpy.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = numpy.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    return of_input, numpy.einsum("nchwij,nkhw->kcij", windows, slope), slope.sum(axis=(0, 2, 3))


def _convolutional_network() -> dict[str, numpy.ndarray]:
    state, noise = 1, []
    for _ in range(8 * 64 + 380):
        state = (state * 1664525 + 1013904223) % 2**32
        noise.append((state >> 24) / 256)
    row, column, one = numpy.arange(8)[:, None], numpy.arange(8), numpy.ones((8, 8))
    lines = numpy.array([one * (row == 4), one * (column == 4), row == column, row + column == 7])
    x = numpy.reshape(noise[: 8 * 64], (8, 1, 8, 8)) / 2 + lines[numpy.arange(8) % 4][:, None]
    label = numpy.eye(4)[numpy.arange(8) % 4]
    shapes = {"first filters": (4, 1, 3, 3), "first bias": (4,), "second filters": (8, 4, 3, 3), "second bias": (8,),
              "weight": (4, 8), "bias": (4,)}  # fmt: skip
    ends = numpy.cumsum([math.prod(shape) for shape in shapes.values()])
    drawn = numpy.split(numpy.array(noise[8 * 64 :])[: ends[-1]] - 0.5, ends[:-1])
    learned = {name: values.reshape(shape) for (name, shape), values in zip(shapes.items(), drawn)}
    losses = []
    for _ in range(12):
        f1, b1, f2, b2, weight, bias = learned.values()
        first = numpy.maximum(_convolution(x, f1) + b1[:, None, None], 0)
        windows = first.reshape(8, 4, 4, 2, 4, 2).swapaxes(3, 4).reshape(8, 4, 4, 4, 4)
        pooled = windows.max(axis=-1)
        second = numpy.maximum(_convolution(pooled, f2) + b2[:, None, None], 0)
        features = second.mean(axis=(2, 3))
        logits = features @ weight.T + bias
        logarithms = logits - numpy.log(numpy.exp(logits).sum(axis=1, keepdims=True))
        losses.append(-(label * logarithms).sum() / 8)

        slope = (numpy.exp(logarithms) - label) / 8
        of_weight, of_bias = slope.T @ features, slope.sum(axis=0)
        slope = (second > 0) * (slope @ weight)[:, :, None, None] / 16
        slope, of_f2, of_b2 = _convolution_gradients(pooled, f2, slope)
        taps = numpy.arange(4) == windows.argmax(axis=-1)[..., None]
        slope = (taps * slope[..., None]).reshape(8, 4, 4, 4, 2, 2).swapaxes(3, 4).reshape(first.shape) * (first > 0)
        _, of_f1, of_b1 = _convolution_gradients(x, f1, slope)
        for name, gradient in zip(learned, (of_f1, of_b1, of_f2, of_b2, of_weight, of_bias)):
            learned[name] = learned[name] - 0.5 * gradient
    return {"loss": numpy.array(losses), **learned}


def _captured_graph() -> dict[str, numpy.ndarray]:
    matrix = ((numpy.arange(36) * 7 % 11 - 5) / 16).reshape(6, 6).T
    x, total = numpy.zeros(6), numpy.zeros(6)
    for _ in range(100):
        x = numpy.tanh(matrix @ x + (numpy.arange(6) - 2) / 4)
        total += x
    return {"last x": x, "sum": total}


def _spatial_transformer() -> dict[str, numpy.ndarray]:
    """Sampling as two interpolation matrices per point: hat functions around its coordinates."""
    x = ((numpy.arange(80) * 37 % 64) / 32 - 1).reshape(2, 2, 4, 5)
    theta = [0.7, -0.2, 0.12, 0.3, 0.6, -0.05, 1.1, 0.43, 0.2, -0.5, 0.9, 0.15]
    theta = numpy.array(theta, numpy.float32).astype(numpy.float64).reshape(2, 2, 3)
    rows, columns = numpy.meshgrid(numpy.linspace(-1, 1, 3), numpy.linspace(-1, 1, 4), indexing="ij")
    places = numpy.stack([columns, rows, numpy.ones((3, 4))], axis=-1)
    grid = numpy.einsum("nrk,ijk->nijr", theta, places)
    across = (grid[..., 0:1] + 1) * (5 - 1) / 2 - numpy.arange(5)
    down = (grid[..., 1:2] + 1) * (4 - 1) / 2 - numpy.arange(4)
    hat_across, hat_down = numpy.maximum(1 - abs(across), 0), numpy.maximum(1 - abs(down), 0)
    slope_across = -numpy.sign(across) * (hat_across > 0) * (5 - 1) / 2
    slope_down = -numpy.sign(down) * (hat_down > 0) * (4 - 1) / 2
    y = numpy.einsum("nijh,nijw,nchw->ncij", hat_down, hat_across, x)
    dx = numpy.einsum("nijh,nijw,ncij->nchw", hat_down, hat_across, y)
    dgrid = [
        numpy.einsum("nijh,nijw,nchw,ncij->nij", hat_down, slope_across, x, y),
        numpy.einsum("nijh,nijw,nchw,ncij->nij", slope_down, hat_across, x, y),
    ]
    return {"y": y, "dx": dx, "dtheta": numpy.einsum("rnij,ijk->nrk", dgrid, places)}


def _vocab_parallel_cross_entropy() -> dict[str, numpy.ndarray]:
    """The undivided computation, but for the float16 roundings: Q, each shard's gradients."""
    x = (numpy.arange(12).reshape(4, 3) * 7 % 11 - 5) / 4
    weight = (numpy.arange(30).reshape(10, 3) * 5 % 17 - 8) / 8
    target = numpy.eye(10)[[7, 0, 4, 9]]
    powers = numpy.exp(x @ weight.T)
    probability = powers / powers.sum(axis=1, keepdims=True)
    loss = -numpy.log((probability * target).sum(axis=1))
    slope = ((probability - target) / 4).astype(numpy.float16).astype(numpy.float64)
    parts = [(slope[:, shard] @ weight[shard]).astype(numpy.float16) for shard in (slice(0, 5), slice(5, 10))]
    return {
        "loss on the first shard": loss,
        "loss on the second shard": loss,
        "gradient of the input": parts[0].astype(numpy.float64) + parts[1],
        "gradient of the weight": (slope.T @ x).astype(numpy.float16),
    }


def _data_parallel() -> dict[str, numpy.ndarray]:
    """One device with all examples."""
    inputs = (numpy.arange(4)[:, None] * 7 + numpy.arange(3) * 3) % 5 - 2.0
    target, weights, losses = inputs @ [2, -1, 3], numpy.zeros(3), []
    for _ in range(3):
        error = inputs @ weights - target
        losses.append((error**2).sum() / 2)
        weights = weights - 0.125 / 4 * inputs.T @ error
    return {"loss": numpy.array(losses), "weights of the first device": weights, "weights of the last device": weights}


REFERENCES = {
    "async_copy": _async_copy,
    "captured_graph": _captured_graph,
    "convolutional_network": _convolutional_network,
    "data_parallel": _data_parallel,
    "embedding_training": _embedding_training,
    "soft_margin_loss_backward": _soft_margin_loss_backward,
    "softmax": _softmax,
    "spatial_transformer": _spatial_transformer,
    "vocab_parallel_cross_entropy": _vocab_parallel_cross_entropy,
    "binarycrossentropygrad/shared_space": _shared_space,
    "binarycrossentropygrad/private_space": _private_space,
    "cores/momentum": _momentum,
}

# The same from what the program printed: random draws are its own.
REFERENCES_FROM_DRAWS = {
    "training": _training,
}

# What programs that compare by themselves say.
SENTENCES = {
    "cores/slices": "8 cores: the same as one _s call",
}


# ---- running ---------------------------------------------------------------------------------------------------------


@dataclass
class Printed:
    """The numbers below one label."""

    values: numpy.ndarray
    resolution: float  # half a unit of the last decimal place, when all are printed with the same number of places


@dataclass
class Comparison:
    """The numbers of one label beside their reference."""

    example: str
    label: str
    got: Printed
    expected: numpy.ndarray

    def _relative(self, forgiven: float) -> float:
        """Largest difference beyond `forgiven`, relative to the value or, for small ones, to 1/1024 of the largest."""
        if self.got.values.shape != self.expected.shape:
            return float("inf")
        size = numpy.abs(self.expected)
        scale = numpy.maximum(size, 2.0**-10 * size.max(initial=0))
        difference = numpy.maximum(numpy.abs(self.got.values - self.expected) - forgiven, 0)
        with numpy.errstate(invalid="ignore", divide="ignore"):
            relative = numpy.where(difference == 0, 0, difference / scale)
        return float(numpy.nan_to_num(relative, nan=numpy.inf).max(initial=0))

    @property
    def error(self) -> float:
        return self._relative(0)

    @property
    def agrees(self) -> bool:
        return self._relative(self.got.resolution) <= TOLERANCE


    def row(self) -> tuple[str, ...]:
        shown = shortened(self.got.values), shortened(self.expected), f"{self.error:.1e}"
        return self.example, self.label, *shown, "ok" if self.agrees else "DIFFERS"


@dataclass
class Statement:
    """A program's sentence beside the one it should print."""

    example: str
    got: str
    expected: str

    @property
    def agrees(self) -> bool:
        return self.got == self.expected

    def row(self) -> tuple[str, ...]:
        return self.example, "says", self.got, self.expected, "", "ok" if self.agrees else "DIFFERS"


class ExampleError(Exception):
    """An example does not compile, does not run, or is not known here."""


def sources(stacks: list[Stack]) -> Iterator[tuple[Stack, pathlib.Path]]:
    for stack in stacks:
        folder = paths.examples() / stack.name
        for source in sorted([*folder.rglob("*.c"), *folder.rglob("*.cpp")]):
            yield stack, source


def name_of(source: pathlib.Path) -> str:
    return source.stem if source.stem == source.parent.name else f"{source.parent.name}/{source.stem}"


def compile_command(source: pathlib.Path) -> str:
    """The command in the first line's comment."""
    first = source.read_text("utf-8").partition("\n")[0]
    found = re.match(r"(?:/\*|//)\s*((?:gcc|g\+\+|cc|c\+\+)\s.*?)\s*(?:\*/)?$", first)
    if not found:
        raise ExampleError(f"{source.name}: the first line is not a compile command in a comment")
    return found[1]


def require_compiler() -> None:
    if not any(shutil.which(name) for name in ("cc", "gcc", "g++")):
        raise SdkError("the examples are C and C++ programs, and there is no compiler on PATH; Python, and programs that were "
                       "compiled elsewhere, need none")


def run_quietly(command, what: str, **settings) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_SECONDS, **settings)
    except subprocess.TimeoutExpired:
        raise ExampleError(f"{what} did not end within {TIME_LIMIT_SECONDS} s") from None
    if result.returncode != 0:
        raise ExampleError(f"{what} ended with status {result.returncode}\n{result.stdout}{result.stderr}".rstrip())
    return result.stdout


def environment_of(stack: Stack) -> dict[str, str]:
    """With two devices, for the programs that divide their work."""
    return {"UNDERSTUDY_DEVICES": "2", **toolchain.environment([stack])}


def build_and_run(stack: Stack, source: pathlib.Path, folder: str) -> str:
    """What the program prints."""
    environment = environment_of(stack)
    command = compile_command(source)
    (pathlib.Path(folder) / source.name).write_bytes(source.read_bytes())
    # The variables are folders, and not in quotes: an empty IFS keeps one with a space together.
    run_quietly(["sh", "-c", f"IFS=; {command}"], f"compiling {source.name}", cwd=folder, env=environment)
    return run_quietly(start_command(source), source.stem, cwd=folder, env=environment)


def start_command(source: pathlib.Path) -> list[str]:
    """How to start the program in its folder: by itself, or as its comment says."""
    found = re.search(r"Run as: understudy (.*)", source.read_text("utf-8"))
    return [sys.executable, "-m", "understudy", *shlex.split(found[1])] if found else [f"./{source.stem}"]


def numbers(text: str) -> list[str]:
    """The words of a text if all of them are numbers, else nothing."""
    words = text.split()
    try:
        [float(word) for word in words]
    except ValueError:
        return []
    return words


def parse(printed: str) -> dict[str, Printed]:
    """Labels and their numbers; other lines are for the reader."""
    words: dict[str, list[str]] = {}
    label = ""
    for line in printed.splitlines():
        if not numbers(line):
            label, line = re.fullmatch(r"\s*(.*?)(?:\[\d+\])?\s*(?:[:=](.*))?", line).groups(default="")
        words.setdefault(label, []).extend(numbers(line))
    return {label: printed_numbers(found) for label, found in words.items() if found}


def printed_numbers(words: list[str]) -> Printed:
    places = {len(word.partition(".")[2]) if "e" not in word.lower() else 0 for word in words}
    fixed = len(places) == 1 and min(places) >= LEAST_PLACES
    return Printed(numpy.array([float(word) for word in words]), 0.5 * 10.0 ** -min(places) if fixed else 0.0)


def compare(source: pathlib.Path, printed: str) -> list[Comparison | Statement]:
    name = name_of(source)
    if name in SENTENCES:
        return [Statement(name, printed.strip(), SENTENCES[name])]
    got, nothing = parse(printed), Printed(numpy.array([]), 0.0)
    if name in REFERENCES:
        expected = REFERENCES[name]()
    elif name in REFERENCES_FROM_DRAWS:
        expected = REFERENCES_FROM_DRAWS[name](got)
    else:
        raise ExampleError(f"{name}: no reference for this example")
    return [
        Comparison(name, label, got.get(label, nothing), numpy.ravel(values))
        for label, values in expected.items()
    ]


# ---- the table -------------------------------------------------------------------------------------------------------


def paint(text: str, colour: int) -> str:
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        return f"\033[{colour}m{text}\033[0m"
    return text


def shortened(values: numpy.ndarray) -> str:
    text = " ".join(f"{value:.6g}" for value in values[:4])
    return text + (" …" if values.size > 4 else "") if values.size else "(not printed)"


def print_table(comparisons: list[Comparison | Statement]) -> None:
    rows = [comparison.row() for comparison in comparisons]
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
    require_compiler()
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
