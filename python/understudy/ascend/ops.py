"""Ascend operators on NumPy arrays: copies to the emulated device, both phases, the wait, the copy back.

Arrays may be views: strides are handed to the operator as they are. torch tensors on the CPU are taken like arrays; device
arrays (`ascend.array`) are used where they are, and then the results are device arrays too. A refusal raises understudy.errors.StatusError.
Operators that are made from pages have functions too, by their names in lower case: `ops.add(x, y)`, `ops.gelu(x)`,
`ops.clamp_min_tensor(x, y)`; `dir(ops)` lists them, `help(ops.add)` tells their types and shapes.
"""

import numpy

from understudy.arrays import REDUCTIONS, code_of
from understudy.ascend import ffi
from understudy.ascend.runtime import Operation
from understudy.device_array import as_operand


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
    arrays = grad, x, target = [as_operand(array) for array in (grad, x, target)]
    code = code_of(reduction, REDUCTIONS, "reduction")
    with Operation() as op:
        tensors = [op.input(array) for array in arrays]
        out = op.output(_broadcast_shape(x, grad, target), out_dtype or _promoted(*arrays))
        op.run("aclnnSoftMarginLossBackward", *tensors, code, out.tensor)
        return out.fetch()


def soft_margin_loss(x, target, reduction="mean", out_dtype=None) -> numpy.ndarray:
    """The soft margin loss ln(1 + e^(-target x)): aclnnSoftMarginLoss.

    x, target: as in soft_margin_loss_backward. x is the operator's `self`.
    reduction: "none", "mean" or "sum" (or 0, 1, 2).
    Returns an array of the broadcast shape for "none", of rank 0 otherwise.
    Raises as soft_margin_loss_backward. Source: aclnn-ops 4.1.
    """
    arrays = x, target = [as_operand(array) for array in (x, target)]
    code = code_of(reduction, REDUCTIONS, "reduction")
    with Operation() as op:
        tensors = [op.input(array) for array in arrays]
        out = op.output(_broadcast_shape(x, target) if code == 0 else (), out_dtype or _promoted(*arrays))
        op.run("aclnnSoftMarginLoss", *tensors, code, out.tensor)
        return out.fetch()


def embedding(weight, indices) -> numpy.ndarray:
    """Rows of a table, out[i...] = weight[indices[i...]]: aclnnEmbedding.

    weight: shape (rows, D); indices: int32 or int64, rank at most 7; one outside the table is a fault, 507015.
    Returns an array of weight's dtype and the shape of indices followed by D.
    Raises StatusError when the operator refuses, TypeError for a dtype without a name. Source: aclnn-ops 4.2.
    """
    weight, indices = as_operand(weight), as_operand(indices)
    with Operation() as op:
        tensors = op.input(weight), op.input(indices)
        out = op.output(indices.shape + weight.shape[1:], weight.dtype)
        op.run("aclnnEmbedding", *tensors, out.tensor)
        return out.fetch()


def embedding_dense_backward(
    grad, indices, num_weights: int, padding_idx: int = -1, scale_grad_by_freq: bool = False, out_dtype=None
) -> numpy.ndarray:
    """Gradient of an embedding table: aclnnEmbeddingDenseBackward.

        out[w] = sum of the rows of grad whose index is w, divided by their number with scale_grad_by_freq

    grad: float16, float32 or bfloat16, shape (..., D); indices: as many as grad has rows, any of the integer and float
        types that the operator lists. Indices outside the table and those equal to padding_idx are left out.
    out_dtype: of the result; default grad's.
    Returns an array of shape (num_weights, D); sums are made in float32.
    Raises StatusError when the operator refuses, TypeError for a dtype without a name. Source: aclnn-ops 2.
    """
    grad, indices = as_operand(grad), as_operand(indices)
    with Operation() as op:
        tensors = op.input(grad), op.input(indices)
        out = op.output((num_weights, *(grad.shape[-1:] or (1,))), out_dtype or grad.dtype)
        padding = padding_idx % 2**64  # two's complement: -1 is "none"
        op.run("aclnnEmbeddingDenseBackward", *tensors, num_weights, padding, scale_grad_by_freq, out.tensor)
        return out.fetch()


def fused_linear_online_max_sum(x, weight, target, vocab_start: int, vocab_end: int) -> tuple[numpy.ndarray, ...]:
    """Maximum and sum of exponentials of a vocabulary shard's logits x . weight^T: aclnnFusedLinearOnlineMaxSum.

    x: (BT, H), weight: (V, H), both float16 or both bfloat16; target: (BT,), int32 or int64, in the whole vocabulary.
    vocab_start, vocab_end: the shard's range, end excluded. x is the operator's `input`.
    Returns (maximum, sum, predicted, mask, masked_target, logits); predicted is the target's logit minus the maximum,
    mask has a bit per token, lowest first, set when the target is in another shard. Source: aclnn-ops 4.3.
    """
    x, weight, target = (as_operand(array) for array in (x, weight, target))
    count = x.shape[0] if x.ndim else 1
    with Operation() as op:
        tensors = [op.input(array) for array in (x, weight, target)]
        outputs = [op.output((count,), numpy.float32) for _ in range(3)]
        outputs += [op.output(((count + 7) // 8,), numpy.uint8), op.output((count,), target.dtype)]
        outputs += [op.output((count, *weight.shape[:1]), x.dtype)]
        op.run("aclnnFusedLinearOnlineMaxSum", *tensors, vocab_start, vocab_end, *(out.tensor for out in outputs))
        return tuple(out.fetch() for out in outputs)


def fused_cross_entropy_loss_with_max_sum(logits_max, sum_exp, predicted, logits=None, label_smoothing=0.0):
    """Cross entropy from the whole vocabulary's maximum and sum: aclnnFusedCrossEntropyLossWithMaxSum.

        loss = ln(sum_exp) - predicted; softmax = exp(logits - logits_max) / sum_exp

    logits_max, sum_exp, predicted: float32 (BT,); logits: float16 or bfloat16 (BT, V), or None.
    Returns (loss, softmax), softmax float32 or, without logits, None. Source: aclnn-ops 4.4.
    """
    arrays = [as_operand(array) for array in (logits_max, sum_exp, predicted)]
    with Operation() as op:
        tensors = [op.input(array) for array in arrays]
        loss, softmax, source = op.output(arrays[0].shape, numpy.float32), None, ffi.NULL
        if logits is not None:
            logits = as_operand(logits)
            source, softmax = op.input(logits), op.output(logits.shape, numpy.float32)
        target = ffi.NULL if softmax is None else softmax.tensor
        arguments = *tensors, label_smoothing, ffi.NULL, ffi.NULL, source, loss.tensor, target
        op.run("aclnnFusedCrossEntropyLossWithMaxSum", *arguments)
        return loss.fetch(), None if softmax is None else softmax.fetch()


def fused_linear_cross_entropy_loss_grad(
    grad, x, weight, mask, masked_target, logits_max=None, sum_exp=None, softmax=None, label_smoothing=0.0
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Gradients of a linear layer's cross entropy: aclnnFusedLinearCrossEntropyLossGrad.

        Q = (P - [v == masked_target, unless masked]) * grad, rounded to x's dtype; Q . weight and Q^T . x

    grad: float32 (BT,); x, weight, mask, masked_target: as in fused_linear_online_max_sum, mask also
    bool (BT,). P is softmax, float32 (BT, V), or made again from logits_max and sum_exp, float32 (BT,), of the whole
    vocabulary.
    Returns (gradient of x, gradient of weight) in x's dtype. x is the operator's `input`. Source: aclnn-ops 3.
    """
    x, weight = as_operand(x), as_operand(weight)
    with Operation() as op:
        tensors = [op.input(array) for array in (grad, x, weight, mask, masked_target)]
        optional = [ffi.NULL if array is None else op.input(array) for array in (logits_max, sum_exp, softmax)]
        outputs = op.output(x.shape, x.dtype), op.output(weight.shape, x.dtype)
        arguments = *tensors, label_smoothing, *optional, *(out.tensor for out in outputs)
        op.run("aclnnFusedLinearCrossEntropyLossGrad", *arguments)
        return tuple(out.fetch() for out in outputs)


def __getattr__(name: str):
    from understudy.ascend import page_ops

    return page_ops.function(name)


def __dir__():
    from understudy.ascend import page_ops

    return sorted({*globals(), *page_ops.operators()})
