"""Rows of layer and root mean square normalization of Ascend, and their gradients."""

import contextlib

import numpy
from aclnn import running
from cases import DTYPES, Case, Row, peer, shaped_rows, to_torch, torch

from understudy import ascend
from understudy.ascend.runtime import Operation

ROWS, WIDTH = 8192, 1024
EPSILON = 1e-5


def drawn(dtype: str, shape: tuple[int, ...], seed: int) -> numpy.ndarray:
    return numpy.random.default_rng(seed).uniform(-2, 2, shape).astype(numpy.float32).astype(DTYPES[dtype])


def shape_array(op: Operation, sizes: list[int]):
    made = ascend.lib.aclCreateIntArray(ascend.ffi.new("int64_t[]", sizes), len(sizes))
    op.callback(ascend.lib.aclDestroyIntArray, made)
    return made


def mask(op: Operation):
    made = ascend.lib.aclCreateBoolArray(ascend.ffi.new("bool[]", [True] * 3), 3)
    op.callback(ascend.lib.aclDestroyBoolArray, made)
    return made


@contextlib.contextmanager
def layer_norm(dtype: str):
    x, weight, bias = drawn(dtype, (ROWS, WIDTH), 1), drawn(dtype, (WIDTH,), 2), drawn(dtype, (WIDTH,), 3)
    with Operation() as op:
        out, statistics = op.output(x.shape, x.dtype), [op.output((ROWS, 1), numpy.float32) for _ in range(2)]
        given = [op.input(x), shape_array(op, [WIDTH]), op.input(weight), op.input(bias), EPSILON]
        run = running(op, "aclnnLayerNorm", [*given, out.tensor, *(one.tensor for one in statistics)])

        def with_torch():
            tensors = [to_torch(array) for array in (x, weight, bias)]
            return lambda: torch.native_layer_norm(tensors[0], [WIDTH], *tensors[1:], EPSILON)

        yield Case(run, peer(with_torch), x.nbytes, x.nbytes)


@contextlib.contextmanager
def layer_norm_gradient(dtype: str):
    grad, x, weight = drawn(dtype, (ROWS, WIDTH), 1), drawn(dtype, (ROWS, WIDTH), 2), drawn(dtype, (WIDTH,), 3)
    wide = x.astype(numpy.float32)
    mean, rstd = wide.mean(1, keepdims=True), 1 / numpy.sqrt(wide.var(1, keepdims=True) + EPSILON)
    with Operation() as op:
        outs = [op.output(array.shape, array.dtype) for array in (x, weight, weight)]
        given = [op.input(grad), op.input(x), shape_array(op, [WIDTH]), op.input(mean), op.input(rstd), op.input(weight),
                 op.input(weight), mask(op)]  # fmt: skip
        run = running(op, "aclnnLayerNormBackward", [*given, *(out.tensor for out in outs)])

        def with_torch():
            a, b, w = (to_torch(array) for array in (grad, x, weight))
            statistics = [to_torch(array).to(a.dtype) for array in (mean, rstd)]
            call = torch.ops.aten.native_layer_norm_backward
            return lambda: call(a, b, [WIDTH], *statistics, w, w, [True] * 3)

        yield Case(run, peer(with_torch), 2 * x.nbytes, x.nbytes)


@contextlib.contextmanager
def rms_norm(dtype: str):
    x, weight = drawn(dtype, (ROWS, WIDTH), 1), drawn(dtype, (WIDTH,), 2)
    with Operation() as op:
        out, rstd = op.output(x.shape, x.dtype), op.output((ROWS, 1), numpy.float32)
        run = running(op, "aclnnRmsNorm", [op.input(x), op.input(weight), EPSILON, out.tensor, rstd.tensor])

        def with_torch():
            data, scale = to_torch(x), to_torch(weight)
            return lambda: torch.nn.functional.rms_norm(data, [WIDTH], scale, EPSILON)

        yield Case(run, peer(with_torch), x.nbytes, x.nbytes)


@contextlib.contextmanager
def rms_norm_gradient(dtype: str):
    grad, x, weight = drawn(dtype, (ROWS, WIDTH), 1), drawn(dtype, (ROWS, WIDTH), 2), drawn(dtype, (WIDTH,), 3)
    rstd = 1 / numpy.sqrt((x.astype(numpy.float32) ** 2).mean(1, keepdims=True) + EPSILON)
    with Operation() as op:
        outs = [op.output(x.shape, x.dtype), op.output(weight.shape, numpy.float32)]
        given = [op.input(array) for array in (grad, x, rstd, weight)]
        run = running(op, "aclnnRmsNormGrad", [*given, *(out.tensor for out in outs)])

        def with_torch():  # through autograd: there is no kernel of its own
            data, scale = (to_torch(array).requires_grad_() for array in (x, weight))
            result, upstream = torch.nn.functional.rms_norm(data, [WIDTH], scale, EPSILON), to_torch(grad)
            return lambda: torch.autograd.grad(result, (data, scale), upstream, retain_graph=True)

        yield Case(run, peer(with_torch), 2 * x.nbytes, x.nbytes)


def rows() -> list[Row]:
    label, makes = f"{ROWS}x{WIDTH}", {"layer norm forward": layer_norm, "layer norm backward": layer_norm_gradient,
                                       "rms norm forward": rms_norm, "rms norm backward": rms_norm_gradient}  # fmt: skip
    return [row for name, make in makes.items() for row in shaped_rows(name, DTYPES, label, make, 0.0, 1.0)]
