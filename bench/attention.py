"""Rows of attention and its gradients: 8 heads of 2048 x 64, causal."""

import contextlib

import numpy
from aclnn import running, values
from cases import Case, Row, peer, shaped_rows, to_torch, torch

from understudy import ascend
from understudy.ascend.runtime import Operation

HEADS, LENGTH, WIDTH = 8, 2048, 64
SHAPE = 1, HEADS, LENGTH, WIDTH
CAUSAL = 2  # sparse mode; its mask is the upper triangle of 2048 x 2048


@contextlib.contextmanager
def both_passes(dtype: str):
    """PyTorch's path without a fused kernel, which holds all scores."""
    arrays = [values(dtype, SHAPE, seed) for seed in range(4)]
    mask = numpy.triu(numpy.ones((LENGTH, LENGTH), bool), 1)
    null, layout = ascend.ffi.NULL, ascend.ffi.new("char[]", b"BNSD")
    settings = WIDTH**-0.5, 1.0, LENGTH, 0, HEADS, layout, 0, CAUSAL
    with Operation() as op:
        query, key, value, dy = (op.input(array) for array in arrays)
        masks = null, null, null, op.input(mask)
        highest, sums = (op.output((*SHAPE[:3], 8), "float32").tensor for _ in range(2))
        result, *gradients = (op.output(SHAPE, arrays[0].dtype).tensor for _ in range(4))
        given = query, key, value, *masks, null, *settings, highest, sums, null, result
        forward = running(op, "aclnnFlashAttentionScore", list(given))
        saved = highest, sums, null, result, null
        given = query, key, value, dy, *masks, *saved, *settings, *gradients, null
        backward = running(op, "aclnnFlashAttentionScoreGrad", list(given))

        def run():
            forward()
            backward()

        def with_torch():
            given = [to_torch(array).clone().requires_grad_() for array in arrays[:3]]
            slopes = to_torch(arrays[3])

            def both():
                with torch.enable_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                    mixed = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=True)
                return torch.autograd.grad(mixed, given, slopes)

            return both

        yield Case(run, peer(with_torch), 4 * arrays[0].nbytes, 4 * arrays[0].nbytes)


def rows() -> list[Row]:
    label = f"{HEADS}x{LENGTH}x{WIDTH}"
    return shaped_rows("attention, both passes", ["float32", "float16"], label, both_passes, 0.0, 1.0)
