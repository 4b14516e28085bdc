"""Rows of FT DSP operators on vectors."""

import contextlib
from functools import partial

import numpy
from cases import Case, Row, peer, random, sized_rows, to_torch, torch

from understudy import ftdsp

TYPES = ["float32", "float16"]
ELEMENTWISE = [("add", ()), ("sigmoid_grad", ()), ("log_grad", ()), ("sigmoidcrossentropywithlogits", ()),
               ("power_grad", (2.0, 1.0, 0.0))]  # fmt: skip


def pointers(*arrays: numpy.ndarray) -> list:
    kind = "float[]" if arrays[0].dtype == numpy.float32 else "half[]"
    return [ftdsp.ffi.from_buffer(kind, array.view(numpy.uint8)) for array in arrays]


@contextlib.contextmanager
def vectors(dtype: str, size: int, operator: str, numbers: tuple[float, ...]):
    """Two input vectors and one output: (inputs, output, length, numbers, core_mask)."""
    arrays = random(dtype, size, 0.1, 0.9, 2)
    result = numpy.empty_like(arrays[0])
    name = f"{ftdsp.PREFIXES[result.dtype]}_{operator}_s"
    function = getattr(ftdsp.lib, name)
    arguments = [*pointers(*arrays, result), result.size, *numbers, ftdsp.ALL_CORES]
    ftdsp.call(name, *arguments)  # fails loudly, once
    yield Case(lambda: function(*arguments), None, 2 * result.nbytes, result.nbytes)


@contextlib.contextmanager
def binarycrossentropygrad(dtype: str, size: int):
    arrays = random(dtype, size, 0.05, 0.95, 3)  # prediction, target, upstream gradient
    dx = numpy.empty_like(arrays[0])
    x, y, grad, out = pointers(*arrays, dx)
    name = f"{ftdsp.PREFIXES[dx.dtype]}_binarycrossentropygrad_s"
    function = getattr(ftdsp.lib, name)
    arguments = [dx.size, 0, x, y, ftdsp.ffi.NULL, grad, out, 0, ftdsp.ALL_CORES]
    ftdsp.call(name, *arguments)  # fails loudly, once

    def torch_gradient():
        prediction, target, upstream = map(to_torch, arrays)
        given = {"grad_input": torch.empty_like(prediction)}
        settings = upstream, prediction, target, None, 0
        return lambda: torch.ops.aten.binary_cross_entropy_backward.grad_input(*settings, **given)

    yield Case(lambda: function(*arguments), peer(torch_gradient), 3 * dx.nbytes, dx.nbytes)


def typed(value, kind):
    """What cffi passes for a parameter: of an array its address, of a number its own type."""
    if isinstance(value, numpy.ndarray):
        return ftdsp.ffi.cast(kind, ftdsp.ffi.from_buffer(value.view(numpy.uint8)))
    return value


@contextlib.contextmanager
def manual(dtype: str, size: int, operator: str, arguments):
    """An operator of the manual: `arguments` of the array gives the call without core_mask (a mask that is not last is
    MASK), the bytes written, and those read where they are not the array's."""
    (x,) = random(dtype, size, 0.1, 0.9, 1)
    operands, results, *read = arguments(x)
    function = getattr(ftdsp.lib, f"{ftdsp.PREFIXES[x.dtype]}_{operator}_s")
    kinds = ftdsp.ffi.typeof(function).args
    given = [typed(value, kind) for value, kind in zip(operands, kinds)]
    given += [ftdsp.ALL_CORES] * (len(kinds) - len(given))
    ftdsp.call(f"{ftdsp.PREFIXES[x.dtype]}_{operator}_s", *given)  # fails loudly, once
    yield Case(lambda: function(*given), None, *(read or [x.nbytes]), results)


def reshaped(x):
    return (x, numpy.empty_like(x), x.size), x.nbytes


def repeated(x):
    """Blocks of 64 elements, twice in a row."""
    shape = numpy.array([x.size // 64], numpy.int32)
    return (x, numpy.empty(2 * x.size, x.dtype), shape, 1, 2, 64), 2 * x.nbytes


def transposed(x):
    """[1, 64, n] with the channels last."""
    return (0, 1, x, numpy.empty_like(x), 1, 64, x.size // 64), x.nbytes


def normalized(x):
    """Channels of 1024 elements."""
    channels = x.size // 1024
    parameters = numpy.ones(channels, x.dtype)
    return (x, parameters, parameters.copy(), numpy.empty_like(x), 1, channels, 1024, 1e-5), x.nbytes


def softened(x):
    """Rows of 1024 elements."""
    rows = x.size // 1024
    return (x, numpy.empty_like(x), numpy.empty(rows, x.dtype), 1, 2, 1, rows, 1024), x.nbytes


def normalized_gradient(x):
    """Rows of 1024 elements, with a parameter each."""
    rows, ones = x.size // 1024, numpy.ones(1024, x.dtype)
    per_row = numpy.ones(rows, x.dtype)
    results = numpy.empty_like(x), numpy.empty_like(ones), numpy.empty_like(ones)
    return (x, x.copy(), per_row, per_row.copy(), ones, 1024, rows, rows, 1024, *results), x.nbytes, 2 * x.nbytes


def largest(x):
    """Rows of 1024 elements."""
    rows = x.size // 1024
    shape, strides, reduced = (numpy.array(pair, numpy.int32) for pair in ((rows, 1024), (1024, 1), (1, 1)))
    scratch = numpy.empty(1024, x.dtype), numpy.empty(1024, numpy.int32)
    operands = x, numpy.empty(rows, numpy.int32), numpy.empty(rows, x.dtype), shape, strides, reduced, *scratch, 1, 0, 2, 1
    return operands, 4 * rows


def picked(x):
    """Elements of rows of 1024, each by an index."""
    index = numpy.resize(numpy.arange(1024, dtype=numpy.int32)[::-1], x.size)
    shape = numpy.array([x.size // 1024, 1024], numpy.int32)
    return (x, 1, index, numpy.empty_like(x), shape, 2, shape.copy()), x.nbytes, x.nbytes + index.nbytes


def normalized_groups(x):
    """[1, n, 64], 8 groups of channels."""
    channels, groups = 64, 8
    scale, offset = numpy.ones(channels, x.dtype), numpy.zeros(channels, x.dtype)
    statistics = numpy.empty(groups, x.dtype), numpy.empty(groups, x.dtype)
    settings = 1e-5, groups, channels, x.size // channels, 1, ftdsp.ALL_CORES
    return (x, scale, offset, *statistics, *settings, numpy.empty_like(x)), x.nbytes, 2 * x.nbytes


def normalized_to_power(x):
    """Channels of 1024 elements, by the sum of their third powers."""
    channels = x.size // 1024
    parameters = numpy.ones(channels, x.dtype)
    return (x, parameters, parameters.copy(), numpy.empty_like(x), 3.0, 1, channels, 1024, 1e-5), x.nbytes


def locally_normalized(x):
    """Rows of 64 channels, 5 of them in a window."""
    settings = numpy.array([1e-1, 0.75, 1], numpy.float32)
    addresses = [settings.ctypes.data + offset for offset in (0, 4, 8)]
    KEPT.append(settings)
    return (x, numpy.empty_like(x), numpy.array([x.size // 64, 64, 2, *addresses], numpy.int64)), x.nbytes


def resized(channels_last: bool):
    """The gradient of doubling images of 64 x 64 (or of 16 x 16), 8 channels."""

    def arguments(x):
        side, channels = (64 if x.size >= 64 * 64 * 8 else 16 if x.size >= 16 * 16 * 8 else 8), 8
        batch = x.size // (side * side * channels)
        out = numpy.zeros(x.size // 4, x.dtype)
        sizes = side, side, side // 2, side // 2
        return (x, out, batch, channels, 0 if channels_last else 1, 0, *sizes, 0.5, 0.5), out.nbytes, x.nbytes + out.nbytes

    return arguments


def pooled(x):
    """The gradient of windows of 2 x 2 in images of 8 x 8, 8 channels."""
    side, channels = 8, 8
    batch = x.size // (side * side * channels)
    out = numpy.zeros(4 * x.size, x.dtype)
    return (x, out, batch, side, side, channels, 2 * side, 2 * side, 2, 2, 0, 0, 2, 2), out.nbytes, x.nbytes + out.nbytes


def reduced(mode: int):
    """Rows of 1024 elements."""

    def arguments(x):
        rows = x.size // 1024
        arrays = [ftdsp.ffi.new("int[]", [number]) for number in (rows, 1, 1024)]
        param = ftdsp.ffi.new("ReduceParameter *", {
            "outer_sizes_": arrays[0], "inner_sizes_": arrays[1], "axis_sizes_": arrays[2], "total_num_": x.size, "num_axes_": 1,
            "mode_": mode, "output_num_": rows})  # fmt: skip
        KEPT.append(arrays)
        return (x, numpy.empty(rows, x.dtype), param), rows * x.itemsize

    return arguments


def drawn(x):
    return (x, x.size, 0.5, 2.0, 1234), x.nbytes, x.itemsize


def broadcast(x):
    """[n, 64] to [n, 2, 64]."""
    shapes = [numpy.array(shape, numpy.int32) for shape in ((x.size // 64, 1, 64), (x.size // 64, 2, 64))]
    return (x, numpy.empty(2 * x.size, x.dtype), shapes[0], 3, shapes[1], 3, x.itemsize), 2 * x.nbytes


def moved_to_depth(x):
    """Blocks of 2 x 2 of images with 8 channels."""
    shape = numpy.array([x.size // 512, 8, 8, 8], numpy.int32)
    return (x, numpy.empty_like(x), shape, 2, x.itemsize), x.nbytes


def summed_by_segment(x):
    """Rows of 64 elements to a tenth of as many."""
    rows = x.size // 64
    index = numpy.random.default_rng(5).integers(0, rows // 10 + 1, rows).astype(numpy.int32)
    out = numpy.empty((rows // 10 + 1) * 64, x.dtype)
    return (x, out, index, rows, 64, rows // 10 + 1), out.nbytes, x.nbytes + index.nbytes


def quantised(x):
    """Segments of 1024 elements."""
    segments = x.size // 1024
    zero = numpy.zeros(segments, numpy.int32)
    return (x, numpy.empty(x.size, numpy.int8), x.size, numpy.full(segments, 0.05, x.dtype), zero, segments, 1), x.size


def lost(x):
    """Rows of 64 classes."""
    rows = x.size // 64
    labels = x.copy()
    results = numpy.empty_like(x), numpy.empty_like(x), numpy.empty(1, x.dtype), numpy.empty(rows, x.dtype)
    return (x, labels, *results, rows, 64, 1), 2 * x.nbytes, 2 * x.nbytes


def found(x):
    """Half of the elements are not 0."""
    x[::2] = 0
    shape, strides = numpy.array([x.size // 64, 64], numpy.int32), numpy.array([64, 1], numpy.int32)
    output, count = numpy.empty(2 * x.size, numpy.int32), numpy.zeros(1, numpy.int32)
    count = numpy.zeros(1, numpy.int32)
    return (x, output, count, strides, shape, 2, x.size), output.nbytes // 2


KEPT: list = []  # what addresses in parameters point to

MANUAL = {
    "reshape": [("reshape", reshaped)], "tile": [("tile", repeated)], "formattranspose": [("formattranspose", transposed)],
    "broadcastto": [("broadcastto", broadcast)], "spacetodepth": [("spacetodepth", moved_to_depth)],
    "instancenorm": [("instancenorm", normalized)], "groupnormfusion": [("groupnormfusion", normalized_groups)],
    "lpnorm": [("lpnorm p=3", normalized_to_power)], "lrn": [("lrn", locally_normalized)],
    "softmax": [("softmax", softened)], "layernormgrad": [("layernormgrad", normalized_gradient)],
    "argmax": [("argmax", largest)], "gatherd": [("gatherd", picked)],
    "unsorted_segment_sum": [("unsorted_segment_sum", summed_by_segment)],
    "QuantData": [("QuantData", quantised)], "random_normal": [("random_normal", drawn)],
    "resizebilineargrad": [("resizebilineargrad planar", resized(False)), ("resizebilineargrad", resized(True))],
    "avgpoolinggrad": [("avgpoolinggrad", pooled)],
    "reduce": [("reduce max", reduced(1)), ("reduce sum", reduced(4)), ("reduce L2", reduced(7))],
    "softmax_cross_entropy_with_logits": [("softmax cross entropy", lost)],
}  # fmt: skip


def rows() -> list[Row]:
    found = sized_rows("FT binary cross entropy grad", TYPES, binarycrossentropygrad, 0.8)
    for operator, numbers in ELEMENTWISE:
        name = f"FT {operator.replace('sigmoidcrossentropywithlogits', 'sigmoid cross entropy')}"
        found += sized_rows(name, TYPES, partial(vectors, operator=operator, numbers=numbers), 0.8)
    for operator, variants in MANUAL.items():
        for name, arguments in variants:
            found += sized_rows(f"FT {name}", TYPES, partial(manual, operator=operator, arguments=arguments), 0.85)
    return found
