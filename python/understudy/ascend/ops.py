"""Ascend operators on NumPy arrays: copies to the emulated device, both phases, the wait, the copy back.

Arrays may be views: strides are handed to the operator as they are. A refusal raises understudy.errors.StatusError.
"""

import numpy

from understudy.arrays import code_of
from understudy.ascend.runtime import Operation

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _broadcast_shape(*arrays: numpy.ndarray) -> tuple[int, ...]:
    """The broadcast shape; where there is none, the first shape, so that the operator is the one to refuse."""
    try:
        return numpy.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        return arrays[0].shape


def _promoted(*arrays: numpy.ndarray) -> numpy.dtype:
    """The operators' promotion among floating types: equal types stay, mixed ones become float32."""
    first = arrays[0].dtype
    return first if all(array.dtype == first for array in arrays) else numpy.dtype(numpy.float32)


def soft_margin_loss_backward(grad, x, target, reduction="mean", out_dtype=None) -> numpy.ndarray:
    """Gradient of the soft margin loss ln(1 + e^(-target x)) with respect to x: aclnnSoftMarginLossBackward.

        out = cof * grad * (-target * e^(-x target)) / (1 + e^(-x target)), cof = 1/N for "mean", else 1

    grad, x, target: float16, float32 or bfloat16 arrays, dtypes may differ, rank at most 8, broadcast to one shape of
        N elements. x is the operator's `self`.
    reduction: "none", "mean" or "sum" (or 0, 1, 2).
    out_dtype: of the result; default the inputs' common dtype, float32 when they differ.
    Returns an array of the broadcast shape.
    Raises StatusError when the operator refuses, ValueError for an unknown reduction, TypeError for a dtype that the
    stack has no name for.
    Source: aclnn-ops 1.
    """
    arrays = grad, x, target = [numpy.asarray(array) for array in (grad, x, target)]
    code = code_of(reduction, REDUCTIONS, "reduction")
    with Operation() as op:
        tensors = [op.input(array) for array in arrays]
        out = op.output(_broadcast_shape(x, grad, target), out_dtype or _promoted(*arrays))
        op.run("aclnnSoftMarginLossBackward", *tensors, code, out.tensor)
        return out.fetch()
