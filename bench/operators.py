"""What the benchmark runs: one entry per operator, through the raw ABI, on data that is already on the device."""

import contextlib
from collections.abc import Callable

import layers
import numpy
from cases import DTYPES, Case, random, to_torch, torch

from understudy import ascend, ftdsp, maca
from understudy.ascend.runtime import Operation as AscendOperation
from understudy.maca.dnn import Operation as MacaOperation

ROW = 1024  # length of a softmax group


def two_phases(op: AscendOperation, name: str, arguments: list) -> Callable[[], None]:
    """Both phases and the wait, with a workspace that is there already."""
    ffi, lib = ascend.ffi, ascend.lib
    size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
    first, second = getattr(lib, f"{name}GetWorkspaceSize"), getattr(lib, name)
    wait, stream = lib.aclrtSynchronizeStream, op.stream
    ascend.call(f"{name}GetWorkspaceSize", *arguments, size, executor)
    lib.aclDestroyAclOpExecutor(executor[0])
    workspace = op.memory(size[0])

    def run():
        first(*arguments, size, executor)
        second(workspace, size[0], executor[0], stream)
        wait(stream)

    return run


@contextlib.contextmanager
def soft_margin_loss_backward(dtype: str, size: int):
    arrays = random(dtype, size, -3, 3, 3)
    with AscendOperation() as op:
        tensors = [op.input(array) for array in arrays]
        out = op.output(arrays[0].shape, arrays[0].dtype).tensor
        arguments = [*tensors, 1, out]
        op.run("aclnnSoftMarginLossBackward", *arguments)  # fails loudly, once
        run = two_phases(op, "aclnnSoftMarginLossBackward", arguments)
        peer = None
        if torch is not None:
            grad, x, target = map(to_torch, arrays)
            peer = lambda: torch.ops.aten.soft_margin_loss_backward(grad, x, target, 1)  # noqa: E731
        yield Case(run, peer, 3, size)


@contextlib.contextmanager
def embedding_case(grad: numpy.ndarray, indices: numpy.ndarray, rows: int):
    """grad is read once, a table of so many rows is written once; counted as two arrays of one size."""
    with AscendOperation() as op:
        tensors = op.input(grad), op.input(indices)
        out = op.output((rows, grad.shape[1]), grad.dtype).tensor
        arguments = [*tensors, rows, 2**64 - 1, False, out]
        op.run("aclnnEmbeddingDenseBackward", *arguments)  # fails loudly, once
        run = two_phases(op, "aclnnEmbeddingDenseBackward", arguments)
        peer = None
        if torch is not None:
            data, index = to_torch(grad), torch.from_numpy(indices)
            peer = lambda: torch.ops.aten.embedding_dense_backward(data, index, rows, -1, False)  # noqa: E731
        yield Case(run, peer, 1, (grad.nbytes + rows * grad.shape[1] * grad.itemsize) // 2)


def embedding_dense_backward(dtype: str, size: int):
    """As many rows in the table as there are tokens."""
    grad = random(dtype, size, -1, 1, 1)[0]
    rows = max(1, grad.size // ROW)
    return embedding_case(grad.reshape(rows, -1), numpy.random.default_rng(3).integers(0, rows, rows), rows)


def vocabulary(tokens: int, zipf: bool):
    """The gradient of a table of 50000 x 1024; with `zipf` the n-th most frequent row has a share of 1/n."""

    def make(dtype: str, size: int):
        rows = 50_000
        generator = numpy.random.default_rng(3)
        shares = 1 / numpy.arange(1, rows + 1) if zipf else numpy.ones(rows)
        indices = generator.permutation(rows)[generator.choice(rows, tokens, p=shares / shares.sum())]
        return embedding_case(random(dtype, size, -1, 1, 1)[0].reshape(tokens, ROW), indices, rows)

    return make


@contextlib.contextmanager
def softmax(dtype: str, size: int, backward: bool):
    arrays = [array.reshape(-1, ROW, 1, 1) for array in random(dtype, size, -1, 1, 2 if backward else 1)]
    ffi, lib = maca.ffi, maca.lib
    name = "mcdnnSoftmaxBackward" if backward else "mcdnnSoftmaxForward"
    with MacaOperation() as op:
        inputs = [item for array in arrays for item in op.input(array)]
        output = op.output(arrays[0].copy())
        one, zero = ffi.new("float *", 1), ffi.new("float *", 0)
        codes = lib.MCDNN_SOFTMAX_ACCURATE, lib.MCDNN_SOFTMAX_MODE_INSTANCE
        arguments = [*codes, one, *inputs, zero, *output]
        function, wait = getattr(lib, name), lib.mcStreamSynchronize
        handle, stream = op.session.handle, op.session.stream

        def run():
            function(handle, *arguments)
            wait(stream)

        op.run(name, *arguments)  # fails loudly, once
        peer = None
        if torch is not None:
            tensors = [to_torch(array).reshape(-1, ROW) for array in arrays]
            if backward:
                y, dy = tensors
                peer = lambda: torch.ops.aten._softmax_backward_data(dy, y, -1, y.dtype)  # noqa: E731
            else:
                peer = lambda: torch.softmax(tensors[0], -1)  # noqa: E731
        yield Case(run, peer, len(arrays), size)


def softmax_forward(dtype: str, size: int):
    return softmax(dtype, size, backward=False)


def softmax_backward(dtype: str, size: int):
    return softmax(dtype, size, backward=True)


@contextlib.contextmanager
def binarycrossentropygrad(dtype: str, size: int):
    arrays = random(dtype, size, 0.05, 0.95, 3)  # prediction, target, upstream gradient
    ffi, prefix = ftdsp.ffi, ftdsp.PREFIXES[arrays[0].dtype]
    dx = numpy.empty_like(arrays[0])
    pointer = "float[]" if prefix == "fp" else "half[]"
    x, y, grad, out = (ffi.from_buffer(pointer, array.view(numpy.uint8)) for array in (*arrays, dx))
    name = f"{prefix}_binarycrossentropygrad_s"
    function = getattr(ftdsp.lib, name)
    arguments = [dx.size, 0, x, y, ffi.NULL, grad, out, 0, ftdsp.ALL_CORES]
    ftdsp.call(name, *arguments)  # fails loudly, once
    peer = None
    if torch is not None:
        tensors = list(map(to_torch, arrays))
        peer = lambda: torch.ops.aten.binary_cross_entropy_backward(tensors[2], *tensors[:2], None, 0)  # noqa: E731
    yield Case(lambda: function(*arguments), peer, 3, size)


OPERATORS = [
    ("soft margin loss backward", list(DTYPES), soft_margin_loss_backward),
    ("embedding dense backward", list(DTYPES), embedding_dense_backward),
    ("softmax forward", list(DTYPES), softmax_forward),
    ("softmax backward", list(DTYPES), softmax_backward),
    ("binary cross entropy grad", ["float32", "float16"], binarycrossentropygrad),
    *layers.OPERATORS,
]

# Rows of one size each: name, types, label, elements of the first input, and as above.
SHAPED_OPERATORS = [
    (f"embedding backward {kind}", ["float32", "float16"], f"{tokens >> 10}k", tokens * ROW, vocabulary(tokens, zipf))
    for kind, zipf in (("uniform", False), ("Zipf", True))
    for tokens in (16 << 10, 128 << 10)
]
