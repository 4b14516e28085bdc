"""The fused linear cross entropy gradient beside the bare matrix products of the same shapes, and beside PyTorch."""

import time

import numpy
from aclnn import two_phases
from cases import DTYPES, to_torch, torch

from understudy import ascend
from understudy.ascend.runtime import Operation

ROWS, HIDDEN, VOCABULARY = 2048, 2048, 16384


def products(x: numpy.ndarray, weight: numpy.ndarray) -> float:
    """Seconds of logits, input gradient and weight gradient in float32, through NumPy's BLAS."""
    start = time.perf_counter()
    logits = x @ weight.T
    logits @ weight
    logits.T @ x
    return time.perf_counter() - start


def fused(dtype: str, x: numpy.ndarray, weight: numpy.ndarray) -> float:
    """Seconds of the operator in memory-saving mode."""
    half = [array.astype(DTYPES[dtype]) for array in (x, weight)]
    grad, sums = numpy.full(ROWS, 1 / ROWS, numpy.float32), numpy.full(ROWS, float(VOCABULARY), numpy.float32)
    maxima, target = numpy.zeros(ROWS, numpy.float32), numpy.arange(ROWS, dtype=numpy.int32)
    with Operation() as op:
        inputs = [op.input(array) for array in (grad, *half, numpy.zeros(ROWS, bool), target)]
        given = [op.input(array) for array in (maxima, sums)]
        outputs = [op.output(array.shape, array.dtype).tensor for array in half]
        arguments = [*inputs, 0.0, *given, ascend.ffi.NULL, *outputs]
        run = two_phases(op, "aclnnFusedLinearCrossEntropyLossGrad", arguments)
        start = time.perf_counter()
        run()
        return time.perf_counter() - start


def seconds_of_product(matrix) -> float:
    start = time.perf_counter()
    matrix @ matrix
    return time.perf_counter() - start


def in_torch(dtype: str, x: numpy.ndarray, weight: numpy.ndarray) -> float | None:
    """Seconds of the same steps in PyTorch, which keeps the whole matrix of logits; None where it is absent.

    Where the processor has no instruction for products of the type, it is widened first: they would take minutes."""
    if torch is None:
        return None
    x, weight = (to_torch(array.astype(DTYPES[dtype])) for array in (x, weight))
    rows, part = torch.arange(ROWS), x[:256, :256].contiguous()
    narrow, wide = (min(seconds_of_product(matrix) for _ in range(5)) for matrix in (part, part.float()))
    start = time.perf_counter()
    if narrow > wide:
        x, weight = x.float(), weight.float()
    slope = torch.exp((x @ weight.T).float()) / VOCABULARY
    slope[rows, rows] -= 1
    slope = (slope / ROWS).to(x.dtype)
    slope @ weight
    slope.T @ x
    return time.perf_counter() - start


def print_table() -> None:
    generator = numpy.random.default_rng(5)
    x, weight = (generator.standard_normal((rows, HIDDEN)).astype(numpy.float32) * 0.02
                 for rows in (ROWS, VOCABULARY))  # fmt: skip
    print(f"\nfused linear cross entropy grad, {ROWS} rows, {HIDDEN} features, vocabulary {VOCABULARY}")
    print(f"{'dtype':<9} {'seconds':>8} {'three products':>15} {'ratio':>6} {'torch/op':>9}")
    for dtype in ("bfloat16", "float16"):
        bare = min(products(x, weight) for _ in range(2))
        whole = min(fused(dtype, x, weight) for _ in range(2))
        peer = in_torch(dtype, x, weight)
        times = f"{peer / whole:9.2f}" if peer else f"{'-':>9}"
        print(f"{dtype:<9} {whole:8.2f} {bare:15.2f} {whole / bare:6.2f} {times}", flush=True)
