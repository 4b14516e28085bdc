"""mcDNN functions on NumPy arrays: copies to the emulated device, the call, the wait, the copy back.

Arrays may be views: strides are handed to the descriptor as they are. torch tensors on the CPU are taken like arrays; device
arrays (`maca.array`) are used where they are, and then the result is a device array too. A refusal raises understudy.errors.StatusError.
"""

import numpy

from understudy.arrays import as_array, code_of
from understudy.maca import lib
from understudy.device_array import DeviceArray, as_operand, make_array
from understudy.maca.dnn import SPACE, ActivationDescriptor, LRNDescriptor, Operation, PoolingDescriptor, TensorDescriptor

ALGORITHMS = {"fast": lib.MCDNN_SOFTMAX_FAST, "accurate": lib.MCDNN_SOFTMAX_ACCURATE, "log": lib.MCDNN_SOFTMAX_LOG}
MODES = {"instance": lib.MCDNN_SOFTMAX_MODE_INSTANCE, "channel": lib.MCDNN_SOFTMAX_MODE_CHANNEL}


def _destination(old, like, beta: float, name: str) -> numpy.ndarray:
    """A fresh array with what the result is blended with."""
    if old is not None:
        return numpy.array(as_array(old), order="C")
    if beta != 0:
        raise ValueError(f"beta is {beta}, so the old {name} is needed")
    return numpy.zeros(like.shape, like.dtype)


def _blended(name: str, settings: tuple, arrays, alpha: float, beta: float, result: numpy.ndarray):
    """result = alpha * function(arrays) + beta * result, with the operands in the order that all layers have."""
    made = make_array(SPACE, result)
    with Operation() as op:
        sources = [item for array in arrays for item in op.input(array)]
        descriptor, address = op.input(made)
        factors = op.scale(alpha, result.dtype), op.scale(beta, result.dtype)
        op.run(name, *settings, factors[0], *sources, factors[1], descriptor, address)
    return made if any(isinstance(array, DeviceArray) for array in arrays) else made.numpy()


def softmax_forward(x, algorithm="accurate", mode="channel", alpha=1.0, beta=0.0, y=None) -> numpy.ndarray:
    """Softmax: mcdnnSoftmaxForward.

        y = alpha * softmax(x) + beta * y

    x: float16, bfloat16, float32 or float64, shape (n, c, ...); at most 8 dimensions.
    algorithm: "fast" (e^x / sum e^x, may overflow), "accurate" (after subtracting the maximum), "log" (its logarithm).
    mode: "channel" (one group per n and position, over c) or "instance" (one group per n, over everything else).
    y: the old result, needed when beta is not 0; it is not changed.
    Returns an array of x's shape and dtype (of y's, when given).
    Raises StatusError when the library refuses, ValueError for an unknown algorithm or mode or a missing y, TypeError
    for a dtype that the stack has no name for. Source: mcdnn 7.3.
    """
    x = as_operand(x)
    codes = code_of(algorithm, ALGORITHMS, "algorithm"), code_of(mode, MODES, "mode")
    return _blended("mcdnnSoftmaxForward", codes, [x], alpha, beta, _destination(y, x, beta, "y"))


def softmax_backward(y, dy, algorithm="accurate", mode="channel", alpha=1.0, beta=0.0, dx=None) -> numpy.ndarray:
    """Gradient of the softmax with respect to its input: mcdnnSoftmaxBackward.

        "fast", "accurate":  dx = alpha * y * (dy - sum(y * dy)) + beta * dx
        "log":               dx = alpha * (dy - e^y * sum(dy)) + beta * dx

    y: result of the forward pass; dy: gradient with respect to it; equal shapes, dtypes and strides.
    algorithm, mode: as in softmax_forward. dx: the old result, needed when beta is not 0; it is not changed.
    Returns an array of y's shape and dtype (of dx's, when given).
    Raises as softmax_forward. Source: mcdnn 6.16.
    """
    y, dy = as_operand(y), as_operand(dy)
    codes = code_of(algorithm, ALGORITHMS, "algorithm"), code_of(mode, MODES, "mode")
    return _blended("mcdnnSoftmaxBackward", codes, [y, dy], alpha, beta, _destination(dx, y, beta, "dx"))


def activation_forward(
    x, mode="relu", coef=0.0, propagate_nan=True, swish_beta=1.0, alpha=1.0, beta=0.0, y=None
) -> numpy.ndarray:
    """An activation: mcdnnActivationForward.

        y = alpha * f(x) + beta * y

    x: float16, bfloat16, float32 or float64; at most 8 dimensions.
    mode: "sigmoid", "relu", "tanh", "clipped_relu" (limit coef), "elu" (alpha coef) or "swish"
        (x / (1 + e^(-swish_beta x))).
    propagate_nan: whether the two relu forms pass NaN on. y: as in softmax_forward.
    Returns an array of x's shape and dtype (of y's, when given). Raises as softmax_forward. Source: mcdnn 6.1.
    """
    x = as_operand(x)
    result = _destination(y, x, beta, "y")
    with ActivationDescriptor(mode, propagate_nan, coef, swish_beta) as activation:
        return _blended("mcdnnActivationForward", (activation.handle,), [x], alpha, beta, result)


def activation_backward(
    y, dy, x, mode="relu", coef=0.0, propagate_nan=True, swish_beta=1.0, alpha=1.0, beta=0.0, dx=None
) -> numpy.ndarray:
    """Gradient of an activation with respect to its input: mcdnnActivationBackward.

        dx = alpha * dy * f'(x) + beta * dx, f' from y for "sigmoid", "tanh" and "elu", from x otherwise

    y, dy, x: result of the forward pass, gradient with respect to it, input of the forward pass; equal shapes and
        dtypes, y and dy of equal strides. mode, coef, propagate_nan, swish_beta: as in activation_forward.
    dx: the old result.
    Returns an array of x's shape and dtype (of dx's, when given). Raises as softmax_forward. Source: mcdnn 6.1.
    """
    result = _destination(dx, as_operand(x), beta, "dx")
    with ActivationDescriptor(mode, propagate_nan, coef, swish_beta) as activation:
        return _blended("mcdnnActivationBackward", (activation.handle,), [y, dy, x], alpha, beta, result)


def pooling_forward(x, pooling: PoolingDescriptor, alpha=1.0, beta=0.0, y=None) -> numpy.ndarray:
    """Maxima or averages of windows: mcdnnPoolingForward. Source: mcdnn 7.3.

        y = alpha * pooled(x) + beta * y

    x: shape (n, c, ...), as many further dimensions as the windows have. y: as in softmax_forward.
    Returns an array of the shape that the windows give. Raises as softmax_forward."""
    x = as_operand(x)
    with TensorDescriptor(x.shape, x.dtype) as tensor:
        shape = pooling.output_shape(tensor)
    result = _destination(y, numpy.empty(shape, x.dtype), beta, "y")
    return _blended("mcdnnPoolingForward", (pooling.handle,), [x], alpha, beta, result)


def pooling_backward(y, dy, x, pooling: PoolingDescriptor, alpha=1.0, beta=0.0, dx=None) -> numpy.ndarray:
    """Gradient of pooling_forward with respect to x: mcdnnPoolingBackward. Source: mcdnn 6.15.

    y, dy: result of the forward pass and gradient with respect to it. dx: as in softmax_backward."""
    result = _destination(dx, as_operand(x), beta, "dx")
    return _blended("mcdnnPoolingBackward", (pooling.handle,), [y, dy, x], alpha, beta, result)


def lrn_cross_channel_forward(x, lrn: LRNDescriptor, alpha=1.0, beta=0.0, y=None) -> numpy.ndarray:
    """Local response normalization: mcdnnLRNCrossChannelForward. Source: mcdnn 6.10.

        y = alpha * x * (k + a / n * sum of x^2 over n neighbouring channels)^-b + beta * y

    lrn: holds n, a, b (its alpha and beta) and k. y: as in softmax_forward.
    Returns an array of x's shape and dtype. Raises as softmax_forward."""
    settings = lrn.handle, lib.MCDNN_LRN_CROSS_CHANNEL_DIM1
    result = _destination(y, as_operand(x), beta, "y")
    return _blended("mcdnnLRNCrossChannelForward", settings, [x], alpha, beta, result)


def lrn_cross_channel_backward(y, dy, x, lrn: LRNDescriptor, alpha=1.0, beta=0.0, dx=None) -> numpy.ndarray:
    """Gradient of lrn_cross_channel_forward with respect to x: mcdnnLRNCrossChannelBackward. Source: mcdnn 6.10.

    y, dy: result of the forward pass and gradient with respect to it. dx: as in softmax_backward."""
    settings = lrn.handle, lib.MCDNN_LRN_CROSS_CHANNEL_DIM1
    result = _destination(dx, as_operand(x), beta, "dx")
    return _blended("mcdnnLRNCrossChannelBackward", settings, [y, dy, x], alpha, beta, result)
