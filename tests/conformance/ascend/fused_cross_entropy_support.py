"""What the tests of the fused cross entropy operators share: whether they can run here, and float64 arithmetic."""

import functools
import os
import pathlib

import numpy
import pytest

try:
    import scipy_openblas32
except ImportError:
    pass  # then a library of the SDK or of the system has to do
else:
    os.environ.setdefault("UNDERSTUDY_BLAS", str(next(pathlib.Path(scipy_openblas32.get_lib_dir()).glob("lib*.so"))))

from tests.conformance.ascend.aclnn_support import BF16, F32, I64, U8, Tensor, blank, plan  # noqa: E402

MISSING = 561003


@functools.cache
def has_blas() -> bool:
    half = Tensor(BF16, [[1.0]])
    outputs = [blank(F32, (1,)) for _ in range(3)]
    status, _, _ = plan("aclnnFusedLinearOnlineMaxSum", half, half, Tensor(I64, [0]), 0, 1, *outputs, blank(U8, (1,)),
                        blank(I64, (1,)), None)  # fmt: skip
    return status != MISSING


# Asked when a test runs: who imports this has used no device, and may fork.
needs_blas = pytest.mark.skipif(f"not __import__('sys').modules[{__name__!r}].has_blas()",
                                reason="no library with cblas_sgemm here")  # fmt: skip


def statistics(x, w):
    """Maximum and sum of exponentials of the logits."""
    logits = x @ w.T
    top = logits.max(axis=1)
    return top, numpy.exp(logits - top[:, None]).sum(axis=1)


def gradient(p, grad, masked, target, x, w, half=None):
    """Sheet 3.2 in float64; Q rounded to `half` when given."""
    q = p.copy()
    for i, t in enumerate(target):
        if not masked[i] and 0 <= t < w.shape[0]:
            q[i, t] -= 1
    q *= grad[:, None]
    if half is not None:
        q = half.round(q.astype(numpy.float32))
    return q @ w, q.T @ x


def packed(masked, extra=0, padding=0):
    """Bits, lowest first; `extra` bytes and the bits beyond the end hold `padding`."""
    bits = list(masked) + [padding] * (-len(masked) % 8 + 8 * extra)
    return [sum(int(bit) << k for k, bit in enumerate(bits[i : i + 8])) for i in range(0, len(bits), 8)]
