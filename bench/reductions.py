"""Rows of reductions, running sums and softmax of Ascend, over all, inner and outer axes."""

import contextlib
from functools import partial

from aclnn import ELEMENTS, axes_array, dtype_code, one, running, values
from cases import Case, Row, peer, shaped_rows, to_torch, torch

from understudy.ascend.runtime import Operation

SHAPE = (4096, ELEMENTS // 4096)
AXES = {"all": [], "inner": [1], "outer": [0]}


@contextlib.contextmanager
def reduction(dtype: str, name: str, axes: list[int], function):
    """`function(tensor, axes)` is PyTorch's."""
    x = values(dtype, SHAPE, 1)
    shape = tuple(size for axis, size in enumerate(SHAPE) if axes and axis not in axes)
    with Operation() as op:
        out = op.output(shape, x.dtype)
        typed = [dtype_code(x)] if name in ("aclnnReduceSum", "aclnnMean") else []
        power = [one(op)] if name == "aclnnNorm" else []
        corrected = [True] if name == "aclnnVar" else []
        arguments = [op.input(x), *power, axes_array(op, axes), *corrected, False, *typed, out.tensor]
        run = running(op, name, arguments)

        def with_torch():
            data = to_torch(x)
            return lambda: function(data, axes or [0, 1])

        yield Case(run, peer(with_torch), x.nbytes, max(1, x.nbytes * len(shape) // 4096))


@contextlib.contextmanager
def positions(dtype: str, axis: int):
    x = values(dtype, SHAPE, 1)
    with Operation() as op:
        out = op.output(SHAPE[1 - axis : 2 - axis], "int64")
        run = running(op, "aclnnArgMax", [op.input(x), axis, False, out.tensor])

        def with_torch():
            data = to_torch(x)
            return lambda: torch.argmax(data, axis)

        yield Case(run, peer(with_torch), x.nbytes, 8 * SHAPE[1 - axis])


@contextlib.contextmanager
def running_sum(dtype: str, axis: int):
    x = values(dtype, SHAPE, 1)
    with Operation() as op:
        run = running(op, "aclnnCumsum", [op.input(x), axis, dtype_code(x), op.output(SHAPE, x.dtype).tensor])

        def with_torch():
            data = to_torch(x)
            out = torch.empty_like(data)
            return lambda: torch.cumsum(data, axis, out=out)

        yield Case(run, peer(with_torch), x.nbytes, x.nbytes)


@contextlib.contextmanager
def softmax(dtype: str, name: str, axis: int, function):
    x = values(dtype, SHAPE, 1)
    with Operation() as op:
        run = running(op, name, [op.input(x), axis, op.output(SHAPE, x.dtype).tensor])

        def with_torch():
            data = to_torch(x)
            out = torch.empty_like(data)
            return lambda: function(data, axis, out)

        yield Case(run, peer(with_torch), x.nbytes, x.nbytes)


@contextlib.contextmanager
def softmax_gradient(dtype: str, axis: int):
    grad, result = values(dtype, SHAPE, 1), values(dtype, SHAPE, 2)
    with Operation() as op:
        run = running(op, "aclnnSoftmaxBackward", [op.input(grad), op.input(result), axis, op.output(SHAPE, grad.dtype).tensor])

        def with_torch():
            a, b = map(to_torch, (grad, result))
            out = torch.empty_like(a)
            return lambda: torch.ops.aten._softmax_backward_data.out(a, b, axis, a.dtype, grad_input=out)

        yield Case(run, peer(with_torch), 2 * grad.nbytes, grad.nbytes)


REDUCTIONS = {
    "aclnnReduceSum": (["float32", "float16", "int32"], lambda x, axes: torch.sum(x, axes, dtype=x.dtype)),
    "aclnnMean": (["float32", "float16"], lambda x, axes: torch.mean(x, axes)),
    "aclnnAmax": (["float32", "float16"], lambda x, axes: torch.amax(x, axes)),
    "aclnnNorm": (["float32", "float16"], lambda x, axes: torch.linalg.vector_norm(x, 1, axes)),
    "aclnnVar": (["float32", "float16"], lambda x, axes: torch.var(x, axes)),
    "aclnnLogSumExp": (["float32", "float16"], lambda x, axes: torch.logsumexp(x, axes)),
}
SOFTMAX = {
    "aclnnSoftmax": lambda x, axis, out: torch.ops.aten._softmax.out(x, axis, False, out=out),
    "aclnnLogSoftmax": lambda x, axis, out: torch.ops.aten._log_softmax.out(x, axis, False, out=out),
}


def rows() -> list[Row]:
    found = []
    label = "x".join(map(str, SHAPE))
    for name, (dtypes, function) in REDUCTIONS.items():
        for where, axes in AXES.items():
            make = partial(reduction, name=name, axes=axes, function=function)
            aim = 0.0 if name in ("aclnnVar", "aclnnLogSumExp") else 0.8  # these read twice, or are bound by arithmetic
            found += shaped_rows(f"{name.removeprefix('aclnn').lower()} {where}", dtypes, label, make, aim, 1.0)
    floats = ["float32", "float16"]
    for where, axis in (("inner", 1), ("outer", 0)):
        found += shaped_rows(f"argmax {where}", floats, label, partial(positions, axis=axis))
        found += shaped_rows(f"cumsum {where}", floats, label, partial(running_sum, axis=axis), 0.0, 1.0)
        for name, function in SOFTMAX.items():
            make = partial(softmax, name=name, axis=axis, function=function)
            found += shaped_rows(f"{name.removeprefix('aclnn').lower()} {where}", floats, label, make, 0.0, 1.0)
        found += shaped_rows(f"softmaxbackward {where}", floats, label, partial(softmax_gradient, axis=axis), 0.0, 1.0)
    return found
