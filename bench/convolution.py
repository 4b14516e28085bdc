"""Rows of convolutions: layers of ResNet-50 at batch 8, one to few channels, depthwise ones and groups, forward and both
gradients."""

from functools import partial

import mcdnn
import numpy
from cases import DTYPES, Row, peer, random, shaped_rows, to_torch, torch

from understudy import maca

BATCH = 8
# Channels in and out, filter, stride, padding, size of the image, groups.
LAYERS = {
    "7x7 s2": (3, 64, 7, 2, 3, 224, 1), "1x1": (64, 256, 1, 1, 0, 56, 1), "1x1 s2": (256, 512, 1, 2, 0, 56, 1),
    "3x3 56": (64, 64, 3, 1, 1, 56, 1), "3x3 28": (128, 128, 3, 1, 1, 28, 1), "3x3 14": (256, 256, 3, 1, 1, 14, 1),
    "3x3 7": (512, 512, 3, 1, 1, 7, 1), "3x3 s2": (128, 128, 3, 2, 1, 56, 1), "1x1 7": (2048, 512, 1, 1, 0, 7, 1),
    "3x3 to 3": (64, 3, 3, 1, 1, 112, 1),
    "depthwise": (32, 32, 3, 1, 1, 112, 32), "depthwise 14": (384, 384, 3, 1, 1, 14, 384),
    "7x7 depthwise": (384, 384, 7, 1, 3, 14, 384), "5x5 depthwise s2": (240, 240, 5, 2, 2, 28, 240),
    "groups of 16": (512, 512, 3, 1, 1, 14, 32),
}  # fmt: skip
CODES = {"float32": "MCDNN_DATA_FLOAT", "float16": "MCDNN_DATA_HALF", "bfloat16": "MCDNN_DATA_BFLOAT16"}


def shrunk(layer):
    """The layer on the images that the layers of the benchmark work on: tests make these small."""
    channels, maps, taps, stride, padding, size, groups = layer
    part, side = mcdnn.SHAPE[1] / 64, mcdnn.SHAPE[2] / 56
    size = max(taps, int(size * side))
    if part == 1:
        return layer
    if groups > 1:
        return 4, 4, taps, stride, padding, size, 4
    return max(1, int(channels * part)), max(1, int(maps * part)), taps, stride, padding, size, 1


def array(dtype: str, shape) -> numpy.ndarray:
    return random(dtype, int(numpy.prod(shape)) * DTYPES[dtype].itemsize, -1, 1, 1)[0].reshape(shape)


def convolution(dtype: str, layer: str, direction: str):
    channels, maps, taps, stride, padding, size, groups = shrunk(LAYERS[layer])
    out = (size + 2 * padding - taps) // stride + 1
    x, y = array(dtype, (BATCH, channels, size, size)), array(dtype, (BATCH, maps, out, out))
    w = array(dtype, (maps, channels // groups, taps, taps))
    code = getattr(maca.lib, CODES[dtype])
    described = maca.FilterDescriptor(w.shape, code)
    descriptor = maca.ConvolutionDescriptor((padding, padding), (stride, stride), groups=groups)
    kind = {"forward": "FWD", "data": "BWD_DATA", "filter": "BWD_FILTER"}[direction]
    plain = "IMPLICIT_PRECOMP_GEMM" if kind == "FWD" else "1"
    # What the library recommends, where the processor multiplies 16-bit numbers.
    least = 65 if direction == "filter" else 16
    tiles = (taps, stride, groups) == (3, 1, 1) and dtype == "float32" and maps >= least
    name = "WINOGRAD" if tiles else plain
    common = {"convDesc": descriptor, "algo": getattr(maca.lib, f"MCDNN_CONVOLUTION_{kind}_ALGO_{name}")}

    def torch_forward():
        data, weights = to_torch(x), to_torch(w)
        return lambda: torch.ops.aten.convolution(data, weights, None, [stride] * 2, [padding] * 2, [1, 1], False,
                                                  [0, 0], groups)

    def torch_backward(mask):
        data, weights, grad = to_torch(x), to_torch(w), to_torch(y)
        return lambda: torch.ops.aten.convolution_backward(grad, data, weights, None, [stride] * 2, [padding] * 2,
                                                           [1, 1], False, [0, 0], groups, mask)

    if direction == "forward":
        arguments = {**common, "wDesc": described, "x": x, "w": w, "y": y}
        name, reads, writes, function = "mcdnnConvolutionForward", "x w", "y", peer(torch_forward)
    elif direction == "data":
        arguments = {**common, "wDesc": described, "w": w, "dy": y, "dx": x.copy()}
        name, reads, writes = "mcdnnConvolutionBackwardData", "w dy", "dx"
        function = peer(lambda: torch_backward([True, False, False]))
    else:
        arguments = {**common, "dwDesc": described, "x": x, "dy": y, "dw": w.copy()}
        name, reads, writes = "mcdnnConvolutionBackwardFilter", "x dy", "dw"
        function = peer(lambda: torch_backward([False, True, False]))
    return mcdnn.mcdnn_case(name, arguments, reads, writes, function, [described, descriptor])


def rows() -> list[Row]:
    found = []
    for layer, (channels, _, _, _, _, size, groups) in LAYERS.items():
        aim = 1.0 if groups > 1 else 0.8
        for direction in ("forward", "data", "filter"):
            make = partial(convolution, layer=layer, direction=direction)
            types = list(CODES) if layer in ("3x3 28", "1x1", "3x3 to 3", "depthwise") else ["float32"]
            found += shaped_rows(f"conv {layer} {direction}", types, f"{channels}x{size}x{size}", make, 0.0, aim)
    return found
