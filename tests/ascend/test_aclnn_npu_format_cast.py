"""Casts between formats: into blocks, out of blocks, and what the blocks' shape is (aclnnNpuFormatCast.md)."""

import ctypes
import math

import numpy as np
import pytest

from understudy.ascend import ffi

from tests.ascend.calling import call, empty, random
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor, lib, ok

FORMATS = {"ND": 2, "NCL": 47, "NCHW": 0, "NHWC": 1, "HWCN": 16, "NCDHW": 30, "NDHWC": 27, "DHWCN": 31, "FRACTAL_NZ": 29,
           "NC1HWC0": 3, "NDC1HWC0": 32, "FRACTAL_Z": 4, "FRACTAL_Z_3D": 33}  # fmt: skip
KINDS = {"I8": 32, "U8": 32, "F16": 16, "BF16": 16, "F32": 8, "I32": 8, "U32": 8}
MATRICES = [("ND", (20, 17)), ("ND", (3, 16, 32)), ("NCL", (2, 5, 33)), ("NCHW", (2, 3, 17, 1)), ("NCDHW", (1, 2, 1, 16, 40)),
            ("ND", (2, 1, 2, 1, 31, 9)), ("ND", (130, 257))]  # fmt: skip
IMAGES = [("NCHW", "NC1HWC0", (2, 17, 3, 5)), ("NHWC", "NC1HWC0", (2, 3, 5, 33)), ("NCDHW", "NDC1HWC0", (2, 40, 2, 1, 3)),
          ("NDHWC", "NDC1HWC0", (1, 2, 3, 4, 32)), ("NCHW", "FRACTAL_Z", (20, 17, 3, 2)),
          ("HWCN", "FRACTAL_Z", (2, 3, 64, 16)), ("NCDHW", "FRACTAL_Z_3D", (18, 3, 2, 2, 3)),
          ("DHWCN", "FRACTAL_Z_3D", (2, 1, 3, 35, 7))]  # fmt: skip
CASES = [(plain, "FRACTAL_NZ", shape) for plain, shape in MATRICES] + IMAGES


def cut(values, axis, block):
    """The axis as blocks and what is in them, filled up with zeros."""
    gap = [(0, 0)] * values.ndim
    gap[axis] = (0, -values.shape[axis] % block)
    filled = np.pad(values, gap)
    return filled.reshape(*filled.shape[:axis], -1, block, *filled.shape[axis + 1 :])


def in_blocks(values, plain, blocked, c):
    if blocked == "FRACTAL_NZ":
        return np.moveaxis(cut(cut(values, values.ndim - 1, c), values.ndim - 2, 16), -2, -4)
    images = values.transpose([plain.index(axis) for axis in ("NCHW" if len(plain) == 4 else "NCDHW")])
    if blocked == "NC1HWC0":
        return cut(images, 1, c).transpose(0, 1, 3, 4, 2)
    if blocked == "NDC1HWC0":
        return cut(images, 1, c).transpose(0, 3, 1, 4, 5, 2)
    filters = cut(cut(images, 1, c), 0, 16)  # N / 16, 16, C / c, c, [D,] H, W
    if blocked == "FRACTAL_Z":
        return filters.transpose(2, 4, 5, 0, 1, 3).reshape(-1, *filters.shape[:2], c)
    return filters.transpose(4, 2, 5, 6, 0, 1, 3).reshape(-1, *filters.shape[:2], c)


def asked(source, format, additional=-1):
    """Shape and format that the first function tells."""
    shape, size, actual = ffi.new("int64_t **"), ffi.new("uint64_t *"), ffi.new("int *")
    ok(lib.aclnnNpuFormatCastCalculateSizeAndFormat(source.handle, FORMATS[format], additional, shape, size, actual))
    found = list(shape[0][0 : size[0]])
    ctypes.CDLL(None).free(ctypes.c_void_p(int(ffi.cast("uintptr_t", shape[0]))))  # new[] of this process is malloc
    return found, actual[0]


def drawn(shape, kind):
    return random(math.prod(shape)).integers(0, 100, shape)


def plain_tensor(values, kind, format):
    return Tensor(pages.KINDS[kind], values.ravel(), shape=values.shape, format=FORMATS[format])


def out_tensor(shape, kind, format, storage=None):
    return support.blank(pages.KINDS[kind], shape, storage=storage, format=FORMATS[format])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plain, blocked, shape", CASES, ids=lambda value: str(value).replace(" ", ""))
def test_into_blocks_and_back(plain, blocked, shape, kind):
    values = drawn(shape, kind)
    expected = in_blocks(values, plain, blocked, KINDS[kind])
    source = plain_tensor(values, kind, plain)
    assert asked(source, blocked) == (list(expected.shape), FORMATS[blocked])
    for view in (shape, expected.shape):
        target = out_tensor(view, kind, blocked, expected.shape)
        call("NpuFormatCast", srcTensor=source, dstTensor=target)
        np.testing.assert_array_equal(target.kind.decode(target.stored()), expected.ravel())
    poisoned = in_blocks(values - 101, plain, blocked, KINDS[kind]) + 101  # what fills the blocks is not read
    stored = Tensor(pages.KINDS[kind], poisoned.ravel(), shape=shape, storage=expected.shape, format=FORMATS[blocked])
    assert asked(stored, plain) == (list(shape), FORMATS[plain])
    back = out_tensor(shape, kind, plain)
    call("NpuFormatCast", srcTensor=stored, dstTensor=back)
    np.testing.assert_array_equal(back.kind.decode(back.stored()), values.ravel())


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_another_type(kind):
    """additionalDtype says how wide the blocks are; the tensor keeps its type."""
    values = drawn((20, 70), kind)
    source = plain_tensor(values, kind, "ND")
    for other, c in KINDS.items():
        expected = in_blocks(values, "ND", "FRACTAL_NZ", c)
        assert asked(source, "FRACTAL_NZ", pages.KINDS[other].code) == (list(expected.shape), 29)
        target = out_tensor((20, 70), kind, "FRACTAL_NZ", expected.shape)
        call("NpuFormatCast", srcTensor=source, dstTensor=target)
        np.testing.assert_array_equal(target.kind.decode(target.stored()), expected.ravel())


def test_special_bits_stay():
    bits = np.array([0x7FC00001, 0xFF800000, 0x80000000, 1], np.uint32).repeat(9).view(np.float32)
    target = out_tensor((6, 6), "F32", "FRACTAL_NZ", (1, 1, 16, 8))
    call("NpuFormatCast", srcTensor=Tensor(support.F32, stored=bits, shape=(6, 6)), dstTensor=target)
    assert target.stored().view(np.uint32).reshape(16, 8)[:6, :6].tobytes() == bits.tobytes()


def test_a_weight_that_was_cast():
    """What the cast makes is what products take."""
    a, b = (random(seed).integers(-9, 9, shape) for seed, shape in [(1, (5, 40)), (2, (40, 24))])
    weight = out_tensor((40, 24), "F16", "FRACTAL_NZ", (2, 3, 16, 16))
    call("NpuFormatCast", srcTensor=plain_tensor(b, "F16", "ND"), dstTensor=weight)
    own = call("Mm", self=plain_tensor(a, "F16", "ND"), mat2=weight, out=empty((5, 24), "F16"), cubeMathType=0)
    np.testing.assert_array_equal(own, a @ b)


def test_nothing_to_cast():
    call("NpuFormatCast", srcTensor=out_tensor((0, 5), "F16", "ND"),
         dstTensor=out_tensor((0, 5), "F16", "FRACTAL_NZ", (1, 0, 16, 16)))  # fmt: skip
