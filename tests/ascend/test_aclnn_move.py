"""Operators that move elements, against NumPy: exact, in several types, from strided and empty tensors."""

from __future__ import annotations

import numpy
import pytest

from tests.ascend.calling import call, empty, tensor
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor, blank

TYPES = ["F32", "F16", "I64", "U8", "B"]


def counted(kind, shape) -> numpy.ndarray:
    return kind.encode(numpy.arange(int(numpy.prod(shape))) % 97).reshape(shape)


def strided(kind, values: numpy.ndarray) -> Tensor:
    """The values in column-major order behind an offset."""
    flat = numpy.concatenate([numpy.zeros(3, values.dtype), values.T.reshape(-1)])
    steps = [1]
    for size in values.shape[:-1]:
        steps.append(steps[-1] * max(size, 1))
    return Tensor(kind, kind.decode(flat), shape=values.shape, strides=steps[: values.ndim], offset=3)


def run(name: str, dtype: str, arguments: dict, outputs: dict[str, numpy.ndarray]) -> None:
    """Runs the operator and compares its outputs. Arrays become strided tensors, lists of arrays lists of tensors."""
    entry, kind = pages.operators()[name], pages.KINDS[dtype]
    given = {}
    for parameter in entry["parameters"]:
        key = parameter["name"]
        value = outputs[key] if key in outputs and key not in arguments else arguments[key]
        if key in outputs and key not in arguments:
            made = [blank(kind, item.shape) for item in value] if isinstance(value, list) else blank(kind, value.shape)
            given[key] = made
        elif isinstance(value, numpy.ndarray):
            given[key] = strided(pages.KINDS["B"] if value.dtype == bool and key in ("mask", "condition") else kind, value)
        elif isinstance(value, list) and value and isinstance(value[0], numpy.ndarray):
            given[key] = [strided(kind, item) for item in value]
        else:
            given[key] = pages.made(parameter, value)
    handles, kept = [], []
    for value in given.values():
        if isinstance(value, list):
            kept.append(pages.tensor_list(value))
            value = kept[-1]
        handles.append(pages.handle_of(value))
    support.run(entry["function"], *handles)
    for key, expected in outputs.items():
        tensors, wanted = (given[key], expected) if isinstance(expected, list) else ([given[key]], [expected])
        for tensor, array in zip(tensors, wanted):
            assert numpy.array_equal(kind.decode(tensor.bits()), kind.decode(array)), (name, dtype, arguments)


def cases(kind):
    x, y, z = counted(kind, (5, 7)), counted(kind, (3, 7)), counted(kind, (5, 7))[::-1].copy()
    cube, empty = counted(kind, (2, 3, 5)), counted(kind, (0, 3))
    mask = numpy.arange(35).reshape(5, 7) % 3 == 0
    yield "Cat", {"tensors": [x, y, x], "dim": 0}, {"out": numpy.concatenate([x, y, x], 0)}
    yield "Cat", {"tensors": [x, z], "dim": -1}, {"out": numpy.concatenate([x, z], -1)}
    yield "Stack", {"tensors": [x, z], "dim": 1}, {"out": numpy.stack([x, z], 1)}
    yield "Stack", {"tensors": [counted(kind, ())] * 4, "dim": 0}, {"out": counted(kind, (1,)).repeat(4)}
    yield "SplitTensor", {"self": x, "splitSections": 3, "dim": 1}, {"out": [x[:, :3], x[:, 3:6], x[:, 6:]]}
    yield "SplitWithSize", {"self": x, "splitSize": [1, 4], "dim": 0}, {"out": [x[:1], x[1:]]}
    yield "Slice", {"self": x, "dim": 1, "start": -6, "end": 100, "step": 2}, {"out": x[:, -6:100:2]}
    yield "Flip", {"self": cube, "dims": [0, -1]}, {"out": cube[::-1, :, ::-1]}
    yield "Flip", {"self": cube, "dims": []}, {"out": cube}
    yield "InplaceFillTensor", {"selfRef": x[:3, :2], "value": x[1:2, 1]}, {"selfRef": x[1:2, 1:2].repeat(3, 0).repeat(2, 1)}
    yield "Flip", {"self": empty, "dims": [1]}, {"out": empty}
    yield "Permute", {"self": cube, "dims": [2, 0, 1]}, {"out": cube.transpose(2, 0, 1)}
    yield "Repeat", {"self": x, "repeats": [2, 3, 2]}, {"out": numpy.tile(x, (2, 3, 2))}
    yield "RepeatInterleaveIntWithDim", {"self": x, "repeats": 3, "dim": 1, "outputSize": 21}, {"out": x.repeat(3, 1)}
    yield "Roll", {"x": cube, "shifts": [1, -7], "dims": [0, 2]}, {"out": numpy.roll(cube, (1, -7), (0, 2))}
    yield "Flatten", {"self": cube, "axis": 1}, {"out": cube.reshape(2, 15)}
    yield "Flatten", {"self": cube, "axis": 0}, {"out": cube.reshape(1, 30)}
    yield "ConstantPadNd", {"self": x, "pad": [1, 2, 3, 0], "value": 1}, {"out": numpy.pad(x, ((3, 0), (1, 2)), constant_values=1)}
    yield "ConstantPadNd", {"self": x, "pad": [-2, 3], "value": 1}, {"out": numpy.pad(x[:, 2:], ((0, 0), (0, 3)), constant_values=1)}
    yield "ConstantPadNd", {"self": x, "pad": [-9, 11, 1, 2], "value": 1}, {"out": numpy.ones((8, 9), x.dtype)}
    for diagonal in (-9, -1, 0, 2, 9):
        yield "Tril", {"self": x, "diagonal": diagonal}, {"out": numpy.tril(x, diagonal)}
        yield "Triu", {"self": cube, "diagonal": diagonal}, {"out": numpy.triu(cube, diagonal)}
        yield "InplaceTril", {"selfRef": x, "diagonal": diagonal}, {"selfRef": numpy.tril(x, diagonal)}
    yield "InplaceOne", {"selfRef": x}, {"selfRef": numpy.ones_like(x)}
    yield "InplaceZero", {"selfRef": x}, {"selfRef": numpy.zeros_like(x)}
    yield "InplaceFillScalar", {"selfRef": x, "value": 1}, {"selfRef": numpy.ones_like(x)}
    yield "InplaceCopy", {"selfRef": x, "src": y[:1]}, {"selfRef": numpy.broadcast_to(y[:1], x.shape)}
    yield "SWhere", {"condition": mask, "self": x, "other": z}, {"out": numpy.where(mask, x, z)}
    yield "InplaceMaskedFillScalar", {"selfRef": x, "mask": mask[:1], "value": True if kind.name == "bool" else 1}, {"selfRef": numpy.where(mask[:1], x.dtype.type(1), x)}


@pytest.mark.parametrize("dtype", TYPES)
def test_against_numpy(dtype):
    kind = pages.KINDS[dtype]
    for name, arguments, outputs in cases(kind):
        types = pages.operators()[name]["dtypes"]
        if all(dtype in allowed["910B"] for key, allowed in types.items() if key not in ("mask", "condition")):
            run(name, dtype, arguments, outputs)


def test_filling_converts():
    for kind, expected in [("U16", 2), ("U32", 2), ("U64", 2), ("I32", 2), ("F16", 2.75), ("B", 1)]:
        found = call("InplaceFillTensor", selfRef=empty((2, 3), kind), value=tensor([2.75]))
        numpy.testing.assert_array_equal(found, numpy.full((2, 3), expected))


@pytest.mark.parametrize("dtype", ["F32", "F16", "F64", "I32", "I64"])
def test_sequences(dtype):
    kind = pages.KINDS[dtype]
    run("Arange", dtype, {"start": 2, "end": 23, "step": 3}, {"out": kind.encode(numpy.arange(2, 23, 3))})
    run("Arange", dtype, {"start": 5, "end": -3, "step": -2}, {"out": kind.encode(numpy.arange(5, -3, -2))})
    run("Range", dtype, {"start": 2, "end": 23, "step": 3}, {"out": kind.encode(numpy.arange(2, 24, 3))})
    run("Range", dtype, {"start": 5, "end": -4, "step": -2}, {"out": kind.encode(numpy.arange(5, -5, -2))})
    if dtype != "I64":
        run("Linspace", dtype, {"start": 1.0, "end": 5.0, "steps": 9}, {"out": kind.encode(numpy.linspace(1, 5, 9))})
    run("Eye", dtype, {"n": 3, "m": 5}, {"out": kind.encode(numpy.eye(3, 5))}) if dtype != "F64" else None


def test_identity_of_many_rows():
    """The diagonal is written after the zeros, whichever thread writes these."""
    for shape in ((20011, 13), (13, 20011), (600, 600)):
        for _ in range(20):
            found = call("Eye", n=shape[0], m=shape[1], out=empty(shape))
            numpy.testing.assert_array_equal(found, numpy.eye(*shape))


@pytest.mark.parametrize("source", ["F32", "F16", "BF16", "F64", "I8", "U8", "I32", "I64", "B", "C64"])
def test_casts(source):
    values = {"C64": numpy.array([1 + 2j, -3, 0])}.get(source, numpy.array([1.0, 3.0, 0.0]))
    for target in ("F32", "F16", "F64", "I8", "I32", "I64", "B", "C128"):
        entry = pages.operators()["Cast"]
        tensor, out = Tensor(pages.KINDS[source], values), blank(pages.KINDS[target], (3,))
        support.run(entry["function"], tensor.handle, pages.KINDS[target].code, out.handle)
        values = values != 0 if source == "B" else values
        wanted = values if target.startswith("C") else values.real
        assert numpy.array_equal(out.bits(), wanted.astype(pages.KINDS[target].storage)), (source, target)


@pytest.mark.parametrize("shape, shifts, dims", [
    ((4, 5, 3), [7], []), ((4, 5, 3), [-61], []), ((6,), [2], []), ((), [5], []), ((3, 0), [1], []), ((2, 1, 4), [9], []),
    ((4, 5), [1, 2, -9], [0, 0, -1]), ((4, 5), [2**63 - 1], [1]), ((4, 5), [-(2**63)], [-2]), ((), [3], [0]),
])  # fmt: skip
def test_roll(shape, shifts, dims):
    """Without dims as one row; a dimension that is named twice by both shifts."""
    values = counted(pages.KINDS["I32"], shape)
    sizes = [numpy.size(values)] if not dims else [values.shape[dim] if shape else 1 for dim in dims]
    small = [shift % size if size else 0 for shift, size in zip(shifts, sizes)]
    expected = values if not shape else numpy.roll(values, small, dims) if dims else numpy.roll(values, small[0])
    run("Roll", "I32", {"x": values, "shifts": shifts, "dims": dims}, {"out": expected})


@pytest.mark.parametrize("diagonal, kept", [(0, 1), (-1, 0), (3, 1)])
def test_triangle_of_one_element(diagonal, kept):
    """Rank 0 passes the check of aclnnInplaceTril: a row of one column."""
    held = Tensor(pages.KINDS["F32"], numpy.array(7.0))
    support.run("aclnnInplaceTril", held.handle, diagonal)
    assert held.values() == 7 * kept


def test_triangles_far_beyond():
    values = counted(pages.KINDS["F32"], (3, 4))
    for diagonal, lower in ((2**63 - 1, values), (-(2**63), numpy.zeros_like(values))):
        run("Tril", "F32", {"self": values, "diagonal": diagonal}, {"out": lower})
        run("Triu", "F32", {"self": values, "diagonal": diagonal}, {"out": values - lower})


@pytest.mark.parametrize("strides", [(0, 0), (0, 1), (1, 0)], ids=str)
def test_triangles_of_expanded_tensors(strides):
    held = Tensor(pages.KINDS["F32"], numpy.arange(1.0, 5.0), shape=(3, 4), strides=strides, storage=[4])
    for diagonal in (-1, 0, 1):
        for name, triangle in (("Tril", numpy.tril), ("Triu", numpy.triu)):
            out = support.blank(pages.KINDS["F32"], (3, 4))
            support.run(f"aclnn{name}", held, diagonal, out)
            numpy.testing.assert_array_equal(out.values(), triangle(held.values(), diagonal))


def test_constant_pad_in_its_own_place():
    """A shift: more than is copied at a time."""
    values = numpy.arange(3.0 * 100_000).reshape(3, 100_000)
    for pad in ([1, -1], [-7, 7, 1, -1]):
        made = tensor(values)
        found = call("ConstantPadNd", self=made, pad=pad, value=-1, out=made)
        expected = numpy.roll(values, [-pad[3], pad[0]] if len(pad) > 2 else [0, pad[0]], (0, 1))
        expected[(slice(None), slice(0, 1)) if pad[0] > 0 else (slice(None), slice(-7, None))] = -1
        if len(pad) > 2:
            expected[:1] = -1
        numpy.testing.assert_array_equal(found, expected)
