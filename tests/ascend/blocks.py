"""Weights in ACL_FORMAT_FRACTAL_NZ for tests: in blocks of 16 rows and 32 bytes, and as aclnnTransMatmulWeight leaves them."""

from __future__ import annotations

import numpy as np

from tests.ascend.calling import packed
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor, lib

COLUMNS = {"F32": 8, "F16": 16, "BF16": 16, "I8": 32, "I4": 64, "I32": 64}  # numbers in 32 bytes: an I32 holds eight


def blocks_of(values, columns, around):
    """[…, columns / c, rows / 16, 16, c], with `around` around the matrix."""
    *batch, m, n = values.shape
    padded = np.full((*batch, -(-m // 16) * 16, -(-n // columns) * columns), around, float)
    padded[..., :m, :n] = values
    rows = padded.reshape(*batch, padded.shape[-2] // 16, 16, padded.shape[-1] // columns, columns)
    return np.moveaxis(rows, -2, -4)


def _strides(shape, turned):
    if not turned:
        return support.row_major(shape)
    strides = support.row_major([*shape[:-2], shape[-1], shape[-2]])
    return [*strides[:-2], strides[-1], strides[-2]]


def blocked(values, kind, turned=False, own=False, format="FRACTAL_NZ", around=5):
    """A weight in blocks; `turned`: the transposed view of a transposed matrix; `own`: with the shape of the blocks itself. What
    is `around` the matrix spoils a result that reads it."""
    stored = blocks_of(values.swapaxes(-1, -2) if turned else values, COLUMNS[kind], around)
    shape, storage, raw, code = list(values.shape), list(stored.shape), stored.ravel(), None
    if kind in ("I4", "I32"):
        raw = packed(stored.astype(int), kind).stored()
        code = lib.ACL_INT4 if kind == "I4" else None
    if kind == "I32":
        storage[-1] //= 8
        shape[-2 if turned else -1] //= 8
    shape = storage if own else shape
    return Tensor(support.I8 if kind == "I4" else pages.KINDS[kind], raw, shape=shape, strides=_strides(shape, turned),
                  storage=storage, code=code, format=getattr(lib, f"ACL_FORMAT_{format}"))  # fmt: skip


def in_line(values, kind, turned=False):
    """What aclnnTransMatmulWeight leaves, with a storage shape of one dimension."""
    stored = values.swapaxes(-1, -2) if turned else values
    return Tensor(pages.KINDS[kind], stored.ravel(), shape=values.shape, strides=_strides(values.shape, turned),
                  format=lib.ACL_FORMAT_FRACTAL_NZ)  # fmt: skip


def convolution_blocked(values):
    """A weight of bytes in ACL_FRACTAL_Z_3D: [depth * channels / 32 * rows * columns, n / 16, 16, 32]."""
    n, channels, depth, rows, columns = values.shape
    padded = np.full((-(-n // 16) * 16, -(-channels // 32) * 32, depth, rows, columns), 77)
    padded[:n, :channels] = values
    apart = padded.reshape(padded.shape[0] // 16, 16, padded.shape[1] // 32, 32, depth, rows, columns)
    stored = apart.transpose(4, 2, 5, 6, 0, 1, 3).reshape(-1, padded.shape[0] // 16, 16, 32)
    return Tensor(support.I8, stored.ravel(), shape=values.shape, strides=_strides(values.shape, False), storage=list(stored.shape),
                  format=lib.ACL_FRACTAL_Z_3D)  # fmt: skip
