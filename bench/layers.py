"""Benchmark rows of mcDNN layers on images of 64 channels, 56 x 56 pixels, and of FT operators on vectors."""

import contextlib
from collections.abc import Callable

import numpy
from cases import Case, random, to_torch, torch

from understudy import ftdsp, maca
from understudy.maca.dnn import ActivationDescriptor, Operation

CHANNELS, PIXELS = 64, 56
LAST = (0, 2, 3, 1)  # axes of an NHWC array


def images(dtype: str, size: int, count: int, last: bool = False) -> list[numpy.ndarray]:
    """Arrays of logical shape n, c, h, w; with `last`, channels lie side by side in memory."""
    item = {"float32": 4, "float16": 2, "bfloat16": 2}[dtype]
    number = max(1, size // (CHANNELS * PIXELS * PIXELS * item))
    shape = (number, PIXELS, PIXELS, CHANNELS) if last else (number, CHANNELS, PIXELS, PIXELS)
    elements = item * number * CHANNELS * PIXELS * PIXELS
    arrays = [array.reshape(shape) for array in random(dtype, elements, -1, 1, count)]
    return [array.transpose(0, 3, 1, 2) if last else array for array in arrays]


def repeated(op: Operation, name: str, arguments: list) -> Callable[[], None]:
    """The call and the wait; the first call fails loudly."""
    op.run(name, *arguments)
    function, wait = getattr(maca.lib, name), maca.lib.mcStreamSynchronize
    handle, stream = op.session.handle, op.session.stream

    def run():
        function(handle, *arguments)
        wait(stream)

    return run


def factors():
    return maca.ffi.new("float *", 1), maca.ffi.new("float *", 0)


def activation(mode: str, backward: bool):
    @contextlib.contextmanager
    def make(dtype: str, size: int):
        arrays = images(dtype, size, 3 if backward else 1)
        one, zero = factors()
        with Operation() as op:
            descriptor = op.enter_context(ActivationDescriptor(mode)).handle
            inputs = [op.input(array) for array in arrays]
            out = op.output(arrays[0].copy())
            if backward:
                y, dy, x = inputs
                arguments = [descriptor, one, *y, *dy, *x, zero, *out]
            else:
                arguments = [descriptor, one, *inputs[0], zero, *out]
            name = f"mcdnnActivation{'Backward' if backward else 'Forward'}"
            peer = None
            if torch is not None and not backward:
                x_torch, target = to_torch(arrays[0]), torch.empty_like(to_torch(arrays[0]))
                peer = {"relu": lambda: torch.clamp_min(x_torch, 0, out=target),
                        "swish": lambda: torch.ops.aten.silu.out(x_torch, out=target)}.get(mode)  # fmt: skip
            yield Case(repeated(op, name, arguments), peer, 2 if backward else 1, arrays[0].nbytes)

    return make


def batch_norm(backward: bool, last: bool):
    @contextlib.contextmanager
    def make(dtype: str, size: int):
        ffi, lib = maca.ffi, maca.lib
        arrays = images(dtype, size, 2, last)
        parameters = [numpy.ones((1, CHANNELS, 1, 1), numpy.float32) for _ in range(6)]
        one, zero = factors()
        with Operation() as op:
            x, dy = (op.input(array) for array in arrays)
            out = op.input(arrays[0])
            (shape, scale), *rest = [op.output(array) for array in parameters]
            bias, mean, inverse, first, second = (address for _, address in rest)
            mode = lib.MCDNN_BATCHNORM_SPATIAL
            if backward:
                name = "mcdnnBatchNormalizationBackward"
                arguments = [mode, one, zero, one, zero, *x, *dy, *out, shape, scale, first, second, 1e-5, mean, inverse]
            else:
                name = "mcdnnBatchNormalizationForwardTraining"
                arguments = [mode, one, zero, *x, *out, shape, scale, bias, 0.1, first, second, 1e-5, mean, inverse]
            peer = None
            if torch is not None and not backward:
                data = to_torch(arrays[0]) if not last else to_torch(arrays[0].transpose(LAST)).permute(0, 3, 1, 2)
                weights = [torch.ones(CHANNELS) for _ in range(4)]
                peer = lambda: torch.ops.aten.native_batch_norm(data, *weights, True, 0.1, 1e-5)  # noqa: E731
            assert ffi
            yield Case(repeated(op, name, arguments), peer, 2 if backward else 1, arrays[0].nbytes)

    return make


def pooling(mode: str, backward: bool):
    @contextlib.contextmanager
    def make(dtype: str, size: int):
        ffi, lib = maca.ffi, maca.lib
        x = images(dtype, size, 1)[0]
        y = numpy.zeros((*x.shape[:2], PIXELS // 2, PIXELS // 2), x.dtype)
        one, zero = factors()
        with Operation() as op:
            cell = ffi.new("mcdnnPoolingDescriptor_t *")
            maca.call("mcdnnCreatePoolingDescriptor", cell)
            op.callback(lib.mcdnnDestroyPoolingDescriptor, cell[0])
            maca.call("mcdnnSetPooling2dDescriptor", cell[0], getattr(lib, f"MCDNN_POOLING_{mode}"), 0, 2, 2, 0, 0, 2, 2)
            source, result = op.input(x), op.output(y)
            name = f"mcdnnPooling{'Backward' if backward else 'Forward'}"
            if backward:
                op.run("mcdnnPoolingForward", cell[0], one, *source, zero, *result)
                arguments = [cell[0], one, *result, *result, *source, zero, *op.output(x.copy())]
            else:
                arguments = [cell[0], one, *source, zero, *result]
            peer = None
            if torch is not None and not backward:
                data = to_torch(x)
                function = torch.nn.functional.max_pool2d if mode == "MAX" else torch.nn.functional.avg_pool2d
                peer = lambda: function(data, 2)  # noqa: E731
            # x (and for a maximum's gradient x again) and a quarter of it: counted as whole arrays of x.
            yield Case(repeated(op, name, arguments), peer, 1, x.nbytes * 5 // 8)

    return make


@contextlib.contextmanager
def local_response(dtype: str, size: int):
    lib = maca.lib
    x = images(dtype, size, 1)[0]
    one, zero = factors()
    with Operation() as op:
        cell = maca.ffi.new("mcdnnLRNDescriptor_t *")
        maca.call("mcdnnCreateLRNDescriptor", cell)
        op.callback(lib.mcdnnDestroyLRNDescriptor, cell[0])
        maca.call("mcdnnSetLRNDescriptor", cell[0], 5, 1e-4, 0.75, 2.0)
        arguments = [cell[0], lib.MCDNN_LRN_CROSS_CHANNEL_DIM1, one, *op.input(x), zero, *op.output(x.copy())]
        peer = None
        if torch is not None:
            data = to_torch(x)
            peer = lambda: torch.nn.functional.local_response_norm(data, 5, 1e-4, 0.75, 2.0)  # noqa: E731
        yield Case(repeated(op, "mcdnnLRNCrossChannelForward", arguments), peer, 1, x.nbytes)


@contextlib.contextmanager
def dropout(dtype: str, size: int):
    ffi, lib = maca.ffi, maca.lib
    x = images(dtype, size, 1)[0]
    with Operation() as op:
        source, result = op.input(x), op.output(x.copy())
        cell, states, reserve = ffi.new("mcdnnDropoutDescriptor_t *"), ffi.new("size_t *"), ffi.new("size_t *")
        maca.call("mcdnnCreateDropoutDescriptor", cell)
        op.callback(lib.mcdnnDestroyDropoutDescriptor, cell[0])
        maca.call("mcdnnDropoutGetStatesSize", op.session.handle, states)
        maca.call("mcdnnDropoutGetReserveSpaceSize", source[0], reserve)
        memory = [op.upload(numpy.zeros(number[0], numpy.uint8)) for number in (states, reserve)]
        maca.call("mcdnnSetDropoutDescriptor", cell[0], op.session.handle, 0.5, memory[0], states[0], 1)
        arguments = [cell[0], *source, *result, memory[1], reserve[0]]
        peer = None
        if torch is not None:
            data = to_torch(x)
            peer = lambda: torch.nn.functional.dropout(data, 0.5)  # noqa: E731
        yield Case(repeated(op, "mcdnnDropoutForward", arguments), peer, 1, x.nbytes)


def vectors(operator: str, reads: int, *numbers):
    """An FT operator of `reads` input vectors and one output: (inputs, output, length, numbers, core_mask)."""

    @contextlib.contextmanager
    def make(dtype: str, size: int):
        arrays = random(dtype, size, 0.1, 0.9, reads)
        result = numpy.empty_like(arrays[0])
        ffi, prefix = ftdsp.ffi, ftdsp.PREFIXES[arrays[0].dtype]
        kind = "float[]" if prefix == "fp" else "half[]"
        pointers = [ffi.from_buffer(kind, array.view(numpy.uint8)) for array in (*arrays, result)]
        name = f"{prefix}_{operator}_s"
        function = getattr(ftdsp.lib, name)
        arguments = [*pointers, result.size, *numbers, ftdsp.ALL_CORES]
        ftdsp.call(name, *arguments)  # fails loudly, once
        yield Case(lambda: function(*arguments), None, reads, size)

    return make


TYPES = ["float32", "float16", "bfloat16"]
DSP_TYPES = ["float32", "float16"]
OPERATORS = [
    ("relu forward", TYPES, activation("relu", False)),
    ("swish forward", TYPES, activation("swish", False)),
    ("relu backward", TYPES, activation("relu", True)),
    ("batch norm forward NCHW", ["float32", "float16"], batch_norm(False, False)),
    ("batch norm backward NCHW", ["float32", "float16"], batch_norm(True, False)),
    ("batch norm forward NHWC", ["float32", "float16"], batch_norm(False, True)),
    ("batch norm backward NHWC", ["float32", "float16"], batch_norm(True, True)),
    ("max pooling forward", ["float32"], pooling("MAX", False)),
    ("average pooling forward", ["float32"], pooling("AVERAGE_COUNT_INCLUDE_PADDING", False)),
    ("max pooling backward", ["float32"], pooling("MAX", True)),
    ("average pooling backward", ["float32"], pooling("AVERAGE_COUNT_INCLUDE_PADDING", True)),
    ("local response forward", ["float32"], local_response),
    ("dropout forward", ["float32"], dropout),
    ("FT add", DSP_TYPES, vectors("add", 2)),
    ("FT sigmoid_grad", DSP_TYPES, vectors("sigmoid_grad", 2)),
    ("FT log_grad", DSP_TYPES, vectors("log_grad", 2)),
    ("FT sigmoid cross entropy", DSP_TYPES, vectors("sigmoidcrossentropywithlogits", 2)),
    ("FT power_grad", DSP_TYPES, vectors("power_grad", 2, 2.0, 1.0, 0.0)),
]
