"""Any operator of a page, called with NumPy values in any layout: for the tests of operators with structure."""

from __future__ import annotations

import numpy

from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor
from tests.conformance.harness import last_rule

LAYOUTS = ["row-major", "reversed", "gaps"]
OF_IMAGES = [("channels-last", "row-major"), ("row-major", "channels-last"), ("channels-last", "channels-last")]


def _steps(shape, layout: str) -> tuple[list[int], int]:
    """Strides and offset: `reversed` has the first axis innermost, `channels-last` the second, `gaps` uses every second place of
    every axis."""
    if layout == "row-major":
        return support.row_major(shape), 0
    if layout == "reversed":
        return support.row_major(tuple(shape)[::-1])[::-1], 3
    if layout == "channels-last":
        first, *space, channel = support.row_major((shape[0], *shape[2:], shape[1]))
        return [first, channel, *space], 5
    assert layout == "gaps"
    return [2 * step for step in support.row_major([2 * size for size in shape])], 1


def tensor(values, kind: str = "F32", layout: str = "row-major", format: str | None = None) -> Tensor:
    """A tensor that holds `values`; what is around them is poison, so a read beside the view shows."""
    values = numpy.asarray(values)
    made = empty(values.shape, kind, layout, format)
    flat = made.stored().copy()
    made.view_of(flat)[...] = made.kind.encode(values.ravel()).reshape(values.shape)
    made.memory.write(flat.tobytes())
    return made


def empty(shape, kind: str = "F32", layout: str = "row-major", format: str | None = None) -> Tensor:
    """An output that holds a pattern which no operator writes by chance. format: "NHWC" and the like, else ND."""
    strides, offset = _steps(shape, layout)
    code = None if format is None else getattr(support.lib, f"ACL_FORMAT_{format}")
    return support.blank(pages.KINDS[kind], shape, strides=strides, offset=offset, format=code)


def in_memory_of(output: Tensor, values, kind: str) -> Tensor:
    """An input whose elements begin where those of an output lie."""
    made = tensor(values, kind)
    output.memory.write(made.bytes() + output.bytes()[len(made.bytes()) :])
    support.ok(support.lib.aclSetRawTensorAddr(made.handle, output.memory.address))
    return made


def packed(values, kind: str, turned: bool = False) -> Tensor:
    """Integers of 4 bits, neighbours along the last axis in one byte (I4) or eight in an I32; `turned` gives the transposed
    view of the transposed storage."""
    stored = numpy.ascontiguousarray(values.T if turned else values)
    low, high = stored.reshape(-1, 2).T & 15
    raw = (low | high << 4).astype(numpy.uint8)
    shape = list(stored.shape)
    if kind == "I32":
        shape[-1] //= 8
        raw = raw.view(numpy.int32)
    strides = support.row_major(shape)
    if turned:
        shape, strides = shape[::-1], strides[::-1]
    storage = {"storage": [int(numpy.prod(shape))], "shape": shape, "strides": strides}
    return Tensor(support.I32, raw, **storage) if kind == "I32" else Tensor(
        support.I8, raw.view(numpy.int8), code=support.lib.ACL_INT4, **storage)  # fmt: skip


def empty_packed(shape, kind: str, gap: int = 0) -> Tensor:
    """An output for `shape` integers of 4 bits, `gap` elements between its rows."""
    elements = 8 if kind == "I32" else 1
    stored = [*shape[:-1], shape[-1] // elements]
    strides = support.row_major([*stored[:-1], stored[-1] + gap])
    return support.blank(pages.KINDS[kind], stored, strides=strides)


def unpacked(made: Tensor, shape) -> numpy.ndarray:
    """What an output of `empty_packed` holds."""
    per_byte = made.kind.storage().itemsize * 2 if made.kind.name != "int4" else 1
    raw = numpy.frombuffer(made.bytes(), numpy.uint8)
    both = numpy.stack([raw & 15, raw >> 4], -1).ravel().astype(numpy.int8)
    numbers = (both ^ 8) - 8
    return numpy.lib.stride_tricks.as_strided(numbers, shape, [*(s * per_byte for s in made.strides[:-1]), 1])


def rounded(values, kind: str) -> numpy.ndarray:
    """The values as the type holds them."""
    of_type = pages.KINDS[kind]
    values = numpy.asarray(values)
    return of_type.decode(of_type.encode(values.ravel())).reshape(values.shape)


def random(seed: int) -> numpy.random.Generator:
    return numpy.random.default_rng(seed)


def drawn(shape, seed: int, kind: str = "F32") -> numpy.ndarray:
    """Numbers of the standard normal distribution, as the type holds them."""
    return rounded(random(seed).normal(0, 1, shape), kind)


def steps_apart(actual, expected):
    """float32 may decide otherwise than float64 where a value lies within its roundings of the middle of two integers."""
    away = numpy.abs(actual - numpy.rint(expected))
    middle = numpy.abs(numpy.abs(expected - numpy.floor(expected)) - 0.5) < 1e-3
    assert ((away == 0) | ((away == 1) & middle)).all(), (actual[away > 0], expected[away > 0])


def whole(shape, seed: int, low: int = -128, high: int = 128) -> numpy.ndarray:
    return random(seed).integers(low, high, shape)


def call(name: str, stream=support.ffi.NULL, **arguments):
    """Runs `aclnn<name>`, which must succeed, on a stream: tensors are Tensors, lists of tensors lists of them, NULL is None,
    scalars and arrays plain values. What was written, in the prototype's order: one array, or a tuple of arrays and lists
    of arrays."""
    entry = pages.operators()[name]
    parameters = entry["parameters"]
    assert set(arguments) == {p["name"] for p in parameters}, f"{name} has {[p['name'] for p in parameters]}"
    handles = []
    for parameter in parameters:
        value = arguments[parameter["name"]]
        if isinstance(value, list) and any(isinstance(item, Tensor) for item in value):
            handles.append(pages.tensor_list(value))
        elif isinstance(value, Tensor) or value is None:
            handles.append(value if value is not None else support.ffi.NULL)
        else:
            handles.append(pages.made(parameter, value))
    support.run(entry["function"], *map(pages.handle_of, handles), stream=stream)
    written = [arguments[p["name"]] for p in parameters if p["written"] and arguments[p["name"]] is not None]
    results = [[one.values() for one in item] if isinstance(item, list) else item.values() for item in written]
    return results[0] if len(results) == 1 else tuple(results)


def _handles(arguments) -> list:
    return [support.ffi.NULL if argument is None else pages.handle_of(argument) for argument in arguments]


def refusal(name, *arguments) -> tuple[int, str]:
    """The status and the rule of a first function that refuses; texts are bytes."""
    texts = [support.ffi.new("char[]", argument) if isinstance(argument, bytes) else argument for argument in arguments]
    status, _, _ = support.plan(f"aclnn{name}", *_handles(texts))
    return status, last_rule()


def fault(name, *arguments, status=507015):
    """The sentence of the fault, or of the other status, that the call leaves on its stream."""
    stream = support.ffi.new("aclrtStream *")
    planned, size, executor = support.plan(f"aclnn{name}", *_handles(arguments))
    assert planned == 0 and size == 0 and support.lib.aclrtCreateStream(stream) == 0
    assert getattr(support.lib, f"aclnn{name}")(support.ffi.NULL, 0, executor, stream[0]) == 0
    assert support.lib.aclrtSynchronizeStream(stream[0]) == status
    sentence = support.ffi.string(support.lib.aclGetRecentErrMsg()).decode()
    assert support.lib.aclrtDestroyStream(stream[0]) == 0
    return sentence
