"""What the benchmark runs, through the raw ABI, on data that is already on the device. This file: Ascend operators."""

import contextlib
from functools import partial

import attention
import convolution
import dsp
import elementwise
import language
import layer_norms
import normalization
import numpy
import pointwise
import reductions
import spatial
import structured
from aclnn import two_phases
from cases import DTYPES, Case, Row, peer, random, shaped_rows, sized_rows, to_torch, torch

from understudy.ascend.runtime import Operation

WIDTH = 1024  # of an embedding table


@contextlib.contextmanager
def soft_margin_loss_backward(dtype: str, size: int):
    arrays = random(dtype, size, -3, 3, 3)
    with Operation() as op:
        tensors = [op.input(array) for array in arrays]
        out = op.output(arrays[0].shape, arrays[0].dtype).tensor
        arguments = [*tensors, 1, out]
        op.run("aclnnSoftMarginLossBackward", *arguments)  # fails loudly, once

        def torch_gradient():
            grad, x, target = map(to_torch, arrays)
            result = torch.empty_like(x)
            return lambda: torch.ops.aten.soft_margin_loss_backward.grad_input(grad, x, target, 1, grad_input=result)

        run = two_phases(op, "aclnnSoftMarginLossBackward", arguments)
        yield Case(run, peer(torch_gradient), 3 * arrays[0].nbytes, arrays[0].nbytes)


@contextlib.contextmanager
def embedding_case(grad: numpy.ndarray, indices: numpy.ndarray, rows: int):
    """grad and the indices are read once, a table of so many rows is written once."""
    with Operation() as op:
        tensors = op.input(grad), op.input(indices)
        out = op.output((rows, grad.shape[1]), grad.dtype).tensor
        arguments = [*tensors, rows, 2**64 - 1, False, out]
        op.run("aclnnEmbeddingDenseBackward", *arguments)  # fails loudly, once

        def torch_gradient():  # has no form with a given output
            data, index = to_torch(grad), torch.from_numpy(indices)
            return lambda: torch.ops.aten.embedding_dense_backward(data, index, rows, -1, False)

        run = two_phases(op, "aclnnEmbeddingDenseBackward", arguments)
        written = rows * grad.shape[1] * grad.itemsize
        yield Case(run, peer(torch_gradient), grad.nbytes + indices.nbytes, written)


def embedding_dense_backward(dtype: str, size: int):
    """As many rows in the table as there are tokens."""
    grad = random(dtype, size, -1, 1, 1)[0]
    rows = max(1, grad.size // WIDTH)
    return embedding_case(grad.reshape(rows, -1), numpy.random.default_rng(3).integers(0, rows, rows), rows)


def vocabulary(dtype: str, tokens: int, zipf: bool):
    """The gradient of a table of 50000 x 1024; with `zipf` the n-th most frequent row has a share of 1/n."""
    rows = 50_000
    generator = numpy.random.default_rng(3)
    shares = 1 / numpy.arange(1, rows + 1) if zipf else numpy.ones(rows)
    indices = generator.permutation(rows)[generator.choice(rows, tokens, p=shares / shares.sum())]
    grad = random(dtype, tokens * WIDTH * DTYPES[dtype].itemsize, -1, 1, 1)[0]
    return embedding_case(grad.reshape(tokens, WIDTH), indices, rows)


def ascend_rows() -> list[Row]:
    found = sized_rows("soft margin loss backward", DTYPES, soft_margin_loss_backward)
    found += sized_rows("embedding dense backward", DTYPES, embedding_dense_backward)
    for kind, zipf, aim in (("uniform", False, 0.9), ("Zipf", True, 0.7)):
        for tokens in (16 << 10, 128 << 10):
            make, label = partial(vocabulary, tokens=tokens, zipf=zipf), f"{tokens >> 10}k tokens"
            found += shaped_rows(f"embedding backward {kind}", ["float32", "float16"], label, make, aim, 3.0)
    return found


def all_rows() -> list[Row]:
    modules = [attention, elementwise, reductions, structured, language, pointwise, layer_norms, normalization, spatial,
               convolution, dsp]  # fmt: skip
    return [*ascend_rows(), *(row for module in modules for row in module.rows())]
