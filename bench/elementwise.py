"""Rows of element-wise operators of Ascend: contiguous, broadcast, across, and lists of small tensors."""

import contextlib
from functools import partial

import numpy
from aclnn import ELEMENTS, TYPES, Out, called, dtype_code, one, running, values, whole
from cases import Case, Row, peer, shaped_rows, to_torch, torch

from understudy import ascend
from understudy.ascend.runtime import Operation

LIST = 300  # tensors of a model, as an optimizer updates them


@contextlib.contextmanager
def add(dtype: str, views):
    """`views` makes both operands from a shape."""
    x, y = views(dtype)
    shape = numpy.broadcast_shapes(x.shape, y.shape)
    with Operation() as op:
        out = op.output(shape, x.dtype)
        run = running(op, "aclnnAdd", [op.input(x), op.input(y), one(op), out.tensor])

        def with_torch():
            a, b = map(to_torch, (x, y))
            result = torch.empty(shape, dtype=a.dtype)
            return lambda: torch.add(a, b, out=result)

        moved = x.nbytes + (y.nbytes if y.size == x.size else 0)
        yield Case(run, peer(with_torch), moved, int(numpy.prod(shape)) * x.itemsize)


def same_shape(dtype: str):
    return values(dtype, (ELEMENTS,), 1), values(dtype, (ELEMENTS,), 2)


def row_vector(dtype: str):
    return values(dtype, (4096, ELEMENTS // 4096), 1), values(dtype, (ELEMENTS // 4096,), 2)


def column_vector(dtype: str):
    return values(dtype, (4096, ELEMENTS // 4096), 1), values(dtype, (4096, 1), 2)


def transposed(dtype: str):
    return values(dtype, (4096, ELEMENTS // 4096), 1), values(dtype, (ELEMENTS // 4096, 4096), 2).T


@contextlib.contextmanager
def unary(dtype: str, name: str, function, scalars):
    x = values(dtype, (ELEMENTS,), 1)
    with Operation() as op:
        numbers = [whole(op, number) for number in scalars]
        run = running(op, name, [op.input(x), *numbers, op.output(x.shape, x.dtype).tensor])

        def with_torch():
            data = to_torch(x)
            result = torch.empty_like(data)
            return lambda: function(data, result)

        yield Case(run, peer(with_torch), x.nbytes, x.nbytes)


def quotient(dtype: str):
    x, y = (values("float32", (2 * ELEMENTS,), seed).view(dtype) for seed in (1, 2))

    def with_torch():
        a, b = to_torch(x), to_torch(y)
        out = torch.empty_like(a)
        return lambda: torch.div(a, b, out=out)

    return called("aclnnDiv", [x, y, Out(x.shape, dtype)], with_torch)


def conjunction(dtype: str):
    x, y = same_shape(dtype)

    def with_torch():
        a, b = map(to_torch, (x, y))
        out = torch.empty_like(a)
        return lambda: torch.logical_and(a, b, out=out)

    return called("aclnnLogicalAnd", [x, y, Out(x.shape, TYPES["bool"])], with_torch)


def cast(dtype: str, target: str):
    x, out = values(dtype, (ELEMENTS,), 1), Out((ELEMENTS,), TYPES[target])

    def with_torch():
        data = to_torch(x)
        result = torch.empty(data.shape, dtype=getattr(torch, target))
        return lambda: result.copy_(data)

    return called("aclnnCast", [x, dtype_code(out), out], with_torch)


@contextlib.contextmanager
def list_of_small_tensors(dtype: str):
    """Gradients of a model: x += y for LIST tensors of up to 16 KiB in one call."""
    sizes = [16 + 37 * place % 4096 for place in range(LIST)]
    pairs = [(values(dtype, (size,), place), values(dtype, (size,), place + LIST)) for place, size in enumerate(sizes)]
    with Operation() as op:
        lists = []
        for arrays in zip(*pairs):
            tensors = [op.input(array) for array in arrays]
            lists.append(ascend.lib.aclCreateTensorList(ascend.ffi.new("aclTensor *[]", tensors), LIST))
        run = running(op, "aclnnForeachAddListV2", [*lists, one(op), lists[0]])

        def with_torch():
            x, y = ([to_torch(array) for array in arrays] for arrays in zip(*pairs))
            return lambda: torch._foreach_add_(x, y)

        moved = sum(x.nbytes for x, _ in pairs)
        yield Case(run, peer(with_torch), 2 * moved, moved)


UNARY = {  # function, aim, scalars; transcendental maps are bound by arithmetic
    "aclnnRelu": (lambda x, out: torch.ops.aten.clamp_min.out(x, 0, out=out), 0.85),
    "aclnnClamp": (lambda x, out: torch.clamp(x, -1, 1, out=out), 0.85, -1, 1),
    "aclnnExp": (lambda x, out: torch.exp(x, out=out), 0.0),
    "aclnnSigmoid": (lambda x, out: torch.sigmoid(x, out=out), 0.0),
    "aclnnTanh": (lambda x, out: torch.tanh(x, out=out), 0.0),
    "aclnnGelu": (lambda x, out: torch.ops.aten.gelu.out(x, out=out), 0.0),
    "aclnnSin": (lambda x, out: torch.sin(x, out=out), 0.0),
}


def rows() -> list[Row]:
    found = []
    label = f"{ELEMENTS >> 20}M"
    kinds = [(["float32", "float16", "int32", "int8"], "", same_shape, 0.85), (["float32", "float16"], " row", row_vector, 0.0),
             (["float32"], " column", column_vector, 0.0), (["float32"], " transposed", transposed, 0.0)]
    for dtypes, kind, views, aim in kinds:
        make = partial(add, views=views)
        found += shaped_rows(f"add{kind}", dtypes, label, make, *([aim, 1.0] if aim else []))
    found += shaped_rows("logical and", ["bool"], label, conjunction, 0.85, 1.0)
    for dtype, target in (("int8", "float32"), ("float32", "int32"), ("float32", "float16"), ("bool", "int32")):
        found += shaped_rows(f"cast to {target}", [dtype], label, partial(cast, target=target), 0.85, 1.0)
    found += shaped_rows("quotient", ["complex64"], label, quotient, 0.7, 1.0)
    found += shaped_rows("add of a list", ["float32", "float16"], f"{LIST} small", list_of_small_tensors)
    for name, (function, aim, *scalars) in UNARY.items():
        make = partial(unary, name=name, function=function, scalars=scalars)
        found += shaped_rows(name.removeprefix("aclnn").lower(), ["float32", "float16"], label, make, aim, 1.0)
    return found
