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


@contextlib.contextmanager
def manual(dtype: str, size: int, operator: str, arguments):
    """An operator of the manual: `arguments` of the array gives the call without core_mask, the bytes written, and those
    read where they are not the array's."""
    (x,) = random(dtype, size, 0.1, 0.9, 1)
    operands, results, *read = arguments(x)
    ftdsp.run(operator, *operands)  # fails loudly, once
    function = getattr(ftdsp.lib, f"{ftdsp.PREFIXES[x.dtype]}_{operator}_s")
    kinds = ftdsp.ffi.typeof(function).args
    given = [ftdsp.ffi.cast(kind, ftdsp.ffi.from_buffer(value.view(numpy.uint8))) if isinstance(value, numpy.ndarray) else value
             for value, kind in zip(operands, kinds)]  # fmt: skip
    yield Case(lambda: function(*given, ftdsp.ALL_CORES), None, *(read or [x.nbytes]), results)


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


MANUAL = {"reshape": reshaped, "tile": repeated, "formattranspose": transposed, "instancenorm": normalized, "softmax": softened,
          "layernormgrad": normalized_gradient, "argmax": largest, "gatherd": picked}  # fmt: skip


def rows() -> list[Row]:
    found = sized_rows("FT binary cross entropy grad", TYPES, binarycrossentropygrad, 0.8)
    for operator, numbers in ELEMENTWISE:
        name = f"FT {operator.replace('sigmoidcrossentropywithlogits', 'sigmoid cross entropy')}"
        found += sized_rows(name, TYPES, partial(vectors, operator=operator, numbers=numbers), 0.8)
    for operator, arguments in MANUAL.items():
        found += sized_rows(f"FT {operator}", TYPES, partial(manual, operator=operator, arguments=arguments), 0.85)
    return found
