"""Numbers of the operators that are made from pages: every type, layout and uneven size against the oracles."""

from __future__ import annotations

import inspect
import itertools
import zlib

import numpy
import pytest

from tests.ascend import oracles
from tests.ascend.calling import call, drawn, empty, rounded, tensor
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages, promotion
from tests.conformance.ascend.aclnn_support import Tensor, assert_rounded, blank

ORACLES = oracles.all_oracles()
# Shapes of the inputs in turn; those of one name stand for all.
LAYOUTS = {
    "line": [(7,)],
    "scalar": [()],
    "empty": [(0, 3)],
    "beyond a tile": [(3, 1031)],
    "transposed": [(5, 3)],
    "broadcast": [(3, 1), (1, 5), (5,)],
}
EPSILON = {"F16": 2.0**-24, "BF16": 2.0**-24, "F32": 2.0**-24, "F64": 2.0**-53, "C64": 2.0**-24, "C128": 2.0**-53}


def base_of(name: str) -> tuple[str, bool] | None:
    """The operator whose oracle holds, and whether this is its in-place form."""
    if name in ORACLES:
        return name, False
    if name.startswith("Inplace") and name.removeprefix("Inplace") in ORACLES:
        return name.removeprefix("Inplace"), True
    return None


SUBJECTS = [name for name in pages.planned() if base_of(name)]


def elements(rng, dtype: str, shape, low: float, high: float) -> numpy.ndarray:
    """Values that the type holds, as they are decoded."""
    kind = promotion.category(dtype)
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in ("int", "wide"):
        low, high = (max(low, 0), high) if dtype.startswith("U") else (low, high)
        return rng.integers(int(numpy.ceil(low)), int(high) + 1, shape)
    if kind == "complex":
        return rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)
    return rng.uniform(low, high, shape)


def complex_safe(kind, values):
    """Encoded and decoded again, in the wide type of its category."""
    stored = kind.storage(values) if numpy.ndim(values) == 0 and kind.name.startswith("complex") else kind.encode(values)
    return decoded(kind, numpy.asarray(stored))


def decoded(kind, stored):
    if kind.name.startswith("complex"):
        return stored.astype(numpy.complex128)
    if kind.name == "bool":
        return stored.astype(bool)
    if "int" in kind.name:
        return stored.astype(numpy.uint64 if kind.name == "uint64" else numpy.int64)
    return kind.decode(stored)


def converted(values, dtype: str):
    """To another type, as operators convert: once, wrapping integers."""
    kind, category = pages.KINDS[dtype], promotion.category(dtype)
    if category == "bool":
        return numpy.asarray(values) != 0
    if category in ("int", "wide"):
        return decoded(kind, numpy.asarray(values).astype(numpy.int64).astype(kind.storage))
    if category == "complex":
        return numpy.asarray(values).astype(kind.storage).astype(numpy.complex128)
    return kind.round(numpy.asarray(values).astype(numpy.float64))


class Call:
    """One call of an operator with types and a layout: its arguments, and what the oracle expects."""

    def __init__(self, name: str, types: dict[str, str], layout: str):
        self.entry = pages.operators()[name]
        self.base, in_place = base_of(name)
        self.in_place = in_place or any(parameter["in_place"] for parameter in self.entry["parameters"])
        self.oracle = ORACLES[self.base]
        self.types, self.layout = types, layout
        self.rng = numpy.random.default_rng(zlib.crc32(f"{name}{types}{layout}".encode()))
        self.arguments, self.values = {}, {}

    def shapes(self, count: int) -> list[tuple[int, ...]]:
        shapes = list(LAYOUTS[self.layout])
        if self.in_place:
            shapes[0] = numpy.broadcast_shapes(*shapes)
        return [shapes[min(index, len(shapes) - 1)] for index in range(count)]

    def tensor(self, dtype: str, shape, values) -> Tensor:
        kind = pages.KINDS[dtype]
        if self.layout != "transposed" or not shape:
            return Tensor(kind, values, shape=shape)
        flat = numpy.zeros(2 + values.size, values.dtype)
        flat[2:] = values.T.reshape(-1)
        return Tensor(kind, flat, shape=shape, strides=[1, shape[0]], offset=2)

    def output(self, dtype: str, shape) -> Tensor:
        if self.layout == "transposed":
            return blank(pages.KINDS[dtype], shape, strides=[1, shape[0]], offset=1)
        return blank(pages.KINDS[dtype], shape)

    def run(self) -> None:
        inputs = [p for p in self.entry["parameters"] if p["kind"] == "T"
                  and (not p["written"] or p["in_place"] or self.in_place)]  # fmt: skip
        shapes = dict(zip([p["name"] for p in inputs], self.shapes(len(inputs))))
        shapes.update({name: () for check in self.entry["checks"] if check[0] == "elements" for name in check[1:-2]})
        joint = numpy.broadcast_shapes(*shapes.values())
        out = None
        for parameter in self.entry["parameters"]:
            name, kind = parameter["name"], parameter["kind"]
            if name in shapes:
                low, high = self.oracle.ranges.get(name, (self.oracle.low, self.oracle.high))
                dtype = self.types[name]
                values = complex_safe(pages.KINDS[dtype], elements(self.rng, dtype, shapes[name], low, high))
                self.arguments[name] = self.tensor(dtype, shapes[name], values)
                self.values[name] = values
                if parameter["written"]:
                    out = self.arguments[name]
            elif kind == "T":
                self.arguments[name] = self.output(self.types[name], joint)
                out = out or self.arguments[name]
            else:
                value = self.oracle.attributes.get(name, pages.legal(self.entry)[name])
                if kind == "S" and all(dtype == "B" for dtype in self.types.values()):
                    value = True
                self.values[name] = value
                self.arguments[name] = pages.made(parameter, value)
        support.run(self.entry["function"], *map(pages.handle_of, self.arguments.values()))
        self.check(out)

    def oracle_arguments(self, compute: str) -> list:
        """In the order of the oracle's parameters: the in-place tensor stands for the base's first input."""
        values = {}
        for name, value in self.values.items():
            category = promotion.category(compute)
            if isinstance(value, numpy.ndarray):
                values[name] = converted(value, compute)
            elif isinstance(value, (int, float)) and not isinstance(value, bool) and category in ("float", "complex"):
                values[name] = converted(numpy.asarray(float(value)), compute)[()]
            else:
                values[name] = value
        wanted = list(inspect.signature(self.oracle.function).parameters)
        own = [name for name in values if name not in wanted]
        return [values[name] if name in values else values[own[0]] for name in wanted]

    def check(self, out: Tensor) -> None:
        arguments = {p["name"]: pages.Shaped(self.types[p["name"]], ()) if p["kind"] == "T" else self.values.get(p["name"])
                     for p in self.entry["parameters"]}  # fmt: skip
        compute = pages.computed_type(self.entry, arguments, self.entry["computes"])
        result = "B" if self.entry["result"] == "B" else compute
        with numpy.errstate(all="ignore"):
            expected = numpy.asarray(self.oracle.function(*self.oracle_arguments(compute)))
        actual = decoded(out.kind, out.bits())
        expected = numpy.broadcast_to(expected, actual.shape)
        to = self.types.get("out") or next(self.types[p["name"]] for p in self.entry["parameters"] if p["written"])
        self.compare(actual, expected, compute, result, to)

    def compare(self, actual, expected, compute, result, to) -> None:
        category = promotion.category(result)
        message = f"{self.entry['function']} {self.types} {self.layout}"
        if category in ("bool", "int", "wide") or to in ("B",) or promotion.category(to) in ("int", "wide"):
            assert numpy.array_equal(actual, converted(converted(expected, result), to)), message
            return
        tolerance = self.oracle.ulp * EPSILON[compute]
        if category == "complex":
            scale = numpy.maximum(numpy.abs(expected), self.oracle.scale) * (tolerance * 4 + EPSILON[to] * 4)
            assert (numpy.abs(actual - expected) <= scale).all(), message
            return
        kinds = [pages.KINDS[result], pages.KINDS[to]]
        if promotion.category(to) == "complex":
            assert (actual.imag == 0).all(), message
            actual, kinds = actual.real, kinds[:1]
        assert_rounded(actual, expected.astype(numpy.float64), tolerance, kinds, self.oracle.scale * tolerance)


def type_choices(name: str):
    """Every type of the first input with partners alike, and mixes of two inputs; outputs of the result's type."""
    entry = pages.operators()[name]
    tensors = [p for p in entry["parameters"] if p["kind"] == "T"]
    inputs = [p["name"] for p in tensors if not p["written"] or p["in_place"] or base_of(name)[1]]
    outputs = [p["name"] for p in tensors if p["name"] not in inputs]
    first, *rest = (pages.listed_types(entry, other) for other in inputs)
    choices = [dict.fromkeys(inputs, kind) for kind in first if all(kind in types for types in rest)]
    mixes = [("F16", "F32"), ("I64", "F32"), ("B", "I32"), ("U8", "I8"), ("BF16", "F16"), ("F32", "F64"),
             ("I32", "F16"), ("F32", "C64")]  # fmt: skip
    if len(inputs) > 1 and any(check[0] == "promote" for check in entry["checks"]):
        choices += [{inputs[0]: a, **dict.fromkeys(inputs[1:], b)} for a, b in mixes
                    if a in first and all(b in types for types in rest)]  # fmt: skip
    for types in choices:
        arguments = {other: pages.Shaped(kind, ()) for other, kind in types.items()}
        legal = pages.legal(entry)
        scalars = {p["name"]: ORACLES[base_of(name)[0]].attributes.get(p["name"], legal[p["name"]])
                   for p in entry["parameters"] if p["kind"] == "S"}  # fmt: skip
        computes = inputs[0] if entry["computes"] in outputs else entry["computes"]
        result = "B" if entry["result"] == "B" else pages.computed_type(entry, {**arguments, **scalars}, computes)
        if any(check[0] == "among" and pages.computed_type(entry, {**arguments, **scalars}, check[1]) not in check[2:]
               for check in entry["checks"]):  # fmt: skip
            continue
        if any(check[0] == "same-dtype" and len({types[other] for other in check[1:] if other in types}) > 1
               for check in entry["checks"]):  # fmt: skip
            continue
        if set(types.values()) & set(ORACLES[base_of(name)[0]].refused):
            continue
        cast = pages.computed_type(entry, {**arguments, **scalars}, "promoted") or result
        if result is None or result not in pages.KINDS:
            continue
        if not outputs:
            written = next(p["name"] for p in tensors if p["written"])
            if promotion.can_cast(cast, types[written]):
                yield types
            continue
        allowed = pages.listed_types(entry, outputs[0]) or [result]
        if any(check[0] == "same-dtype" and inputs[0] in check and outputs[0] in check for check in entry["checks"]):
            yield {**types, **{other: types[inputs[0]] for other in outputs}}
        elif result in allowed:
            yield {**types, **{other: result for other in outputs}}
        elif fits := [kind for kind in allowed if promotion.can_cast(result, kind)]:
            yield {**types, outputs[0]: fits[0]}


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_type(name):
    choices = list(type_choices(name))
    assert choices
    for types in choices:
        Call(name, types, "line").run()


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_layout(name):
    types = list(type_choices(name))
    inputs = [p for p in pages.operators()[name]["parameters"] if p["kind"] == "T"]
    chosen = [types[0], types[-1]]
    for choice, layout in itertools.product(chosen, LAYOUTS):
        broadcasts = any(check[0] == "broadcast" for check in pages.operators()[name]["checks"])
        if layout == "scalar" and any(check[0] == "rank" and not check[1].startswith("0")
                                      for check in pages.operators()[name]["checks"]):  # fmt: skip
            continue
        if layout != "broadcast" or (broadcasts and len(inputs) > 1):
            Call(name, choice, layout).run()


def test_every_planned_operator_has_numbers():
    """Operators with structure have tests of their own, which name them."""
    assert not [name for name in pages.planned() if pages.operators()[name]["computes"] and not base_of(name)]


@pytest.mark.parametrize("name", ["PowTensorScalar", "InplacePowTensorScalar"])
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "F64"])
def test_squares_are_rounded_once(name, kind):
    values = drawn((37, 29), 6, kind)
    out = {} if name.startswith("Inplace") else {"out": empty(values.shape, kind)}
    actual = call(name, self=tensor(values, kind, "gaps"), exponent=2.0, **out)
    numpy.testing.assert_array_equal(actual, rounded(values * values, kind))
