"""How a row of an mcDNN function is made, and the images that the layers work on."""

import contextlib
from collections.abc import Iterable

import numpy
from cases import DTYPES, Case, random, to_torch

from understudy import maca

FLOATS = ["float32", "float16", "bfloat16"]
SHAPE = 32, 64, 56, 56
LABEL = "32x64x56x56"
LAST = (0, 2, 3, 1)  # axes of an NHWC array


def images(dtype: str, count: int, last: bool = False, shape=None) -> list[numpy.ndarray]:
    """Arrays of logical shape n, c, h, w; with `last`, channels lie side by side in memory."""
    number, channels, height, width = shape = shape or SHAPE
    size = number * channels * height * width * DTYPES[dtype].itemsize
    if not last:
        return [array.reshape(shape) for array in random(dtype, size, -1, 1, count)]
    arrays = random(dtype, size, -1, 1, count)
    return [array.reshape(number, height, width, channels).transpose(0, 3, 1, 2) for array in arrays]


def image_tensor(array: numpy.ndarray):
    """For PyTorch: a view of the same memory, channels last where the array is."""
    if array.flags.c_contiguous:
        return to_torch(array)
    return to_torch(array.transpose(LAST)).permute(0, 3, 1, 2)


@contextlib.contextmanager
def mcdnn_case(function: str, arguments: dict, reads: str, writes: str, peer=None, descriptors: Iterable = ()):
    """A call of the function. reads, writes: the arguments whose bytes any implementation has to move."""
    lib = maca.lib
    with contextlib.ExitStack() as stack:
        for descriptor in descriptors:
            stack.enter_context(descriptor)
        prepared = stack.enter_context(maca.PreparedCall(function, **arguments))
        prepared()  # fails loudly, once
        call, wait = getattr(lib, function), lib.mcStreamSynchronize
        values, stream = prepared.values, prepared.operation.session.stream

        def run():
            call(*values)
            wait(stream)

        moved = [sum(arguments[name].nbytes for name in names.split()) for names in (reads, writes)]
        yield Case(run, peer, *moved)
