"""Rows of activations, softmax and dropout."""

import numpy
from cases import Row, peer, random, shaped_rows, sized_rows, to_torch, torch
from mcdnn import FLOATS, LABEL, images, mcdnn_case

from understudy import maca

MODES = "relu", "clipped_relu", "elu", "sigmoid", "tanh", "swish"
LIMIT = 0.5  # of the clipped form; alpha of elu


def torch_activation(mode: str, x: numpy.ndarray):
    """PyTorch's kernels write into a tensor that is there already."""
    ops = torch.ops.aten
    data, out = to_torch(x), torch.empty_like(to_torch(x))
    return {
        "relu": lambda: ops.clamp_min.out(data, 0, out=out),
        "clipped_relu": lambda: ops.hardtanh.out(data, 0, LIMIT, out=out),
        "elu": lambda: ops.elu.out(data, LIMIT, out=out),
        "sigmoid": lambda: ops.sigmoid.out(data, out=out),
        "tanh": lambda: ops.tanh.out(data, out=out),
        "swish": lambda: ops.silu.out(data, out=out),
    }[mode]


def torch_gradient(mode: str, y: numpy.ndarray, dy: numpy.ndarray, x: numpy.ndarray):
    ops = torch.ops.aten
    result, grad, data = map(to_torch, (y, dy, x))
    out = torch.empty_like(data)
    return {
        "relu": lambda: ops.threshold_backward.grad_input(grad, data, 0, grad_input=out),
        "clipped_relu": lambda: ops.hardtanh_backward.grad_input(grad, data, 0, LIMIT, grad_input=out),
        "elu": lambda: ops.elu_backward.grad_input(grad, LIMIT, 1, 1, True, result, grad_input=out),
        "sigmoid": lambda: ops.sigmoid_backward.grad_input(grad, result, grad_input=out),
        "tanh": lambda: ops.tanh_backward.grad_input(grad, result, grad_input=out),
        "swish": lambda: ops.silu_backward.grad_input(grad, data, grad_input=out),
    }[mode]


def activation(mode: str, x: numpy.ndarray):
    descriptor = maca.ActivationDescriptor(mode, coef=LIMIT)
    arguments = {"activationDesc": descriptor, "x": x, "y": numpy.empty_like(x)}
    function = peer(lambda: torch_activation(mode, x))
    return mcdnn_case("mcdnnActivationForward", arguments, "x", "y", function, [descriptor])


def activation_gradient(mode: str, dtype: str):
    """The gradient needs dy and one of x and y: y for sigmoid, tanh and elu."""
    x, dy = images(dtype, 2)
    y = maca.activation_forward(x, mode, LIMIT)
    descriptor = maca.ActivationDescriptor(mode, coef=LIMIT)
    arguments = {"activationDesc": descriptor, "x": x, "y": y, "dy": dy, "dx": numpy.empty_like(x)}
    function = peer(lambda: torch_gradient(mode, y, dy, x))
    reads = "y dy" if mode in ("sigmoid", "tanh", "elu") else "x dy"
    return mcdnn_case("mcdnnActivationBackward", arguments, reads, "dx", function, [descriptor])


def softmax(x: numpy.ndarray, mode: str):
    codes = {"algo": "MCDNN_SOFTMAX_ACCURATE", "mode": f"MCDNN_SOFTMAX_MODE_{mode}"}
    arguments = {**codes, "x": x, "y": numpy.empty_like(x)}

    def torch_softmax():
        data = to_torch(x).squeeze()  # its kernel for the last axis is another one
        out = torch.empty_like(data)
        return lambda: torch.ops.aten._softmax.out(data, 1, False, out=out)

    return mcdnn_case("mcdnnSoftmaxForward", arguments, "x", "y", peer(torch_softmax))


def softmax_gradient(arrays: list[numpy.ndarray], mode: str):
    x, dy = arrays
    y = maca.softmax_forward(x, mode=mode.lower())
    codes = {"algorithm": "MCDNN_SOFTMAX_ACCURATE", "mode": f"MCDNN_SOFTMAX_MODE_{mode}"}
    arguments = {**codes, "yData": y, "dy": dy, "dx": numpy.empty_like(y)}

    def torch_softmax():
        result, grad = to_torch(y).squeeze(), to_torch(dy).squeeze()
        out = torch.empty_like(grad)
        return lambda: torch.ops.aten._softmax_backward_data.out(grad, result, 1, grad.dtype, grad_input=out)

    return mcdnn_case("mcdnnSoftmaxBackward", arguments, "yData dy", "dx", peer(torch_softmax))


def groups(dtype: str, count: int) -> list[numpy.ndarray]:
    return images(dtype, count, shape=(4096, 1024, 1, 1))


def dropout(dtype: str, backward: bool):
    (x,) = images(dtype, 1)
    y = numpy.empty_like(x)
    reserve = numpy.zeros(maca.run("mcdnnDropoutGetReserveSpaceSize", xdesc=x), numpy.uint8)
    descriptor = maca.DropoutDescriptor(0.5, seed=1)
    common = {"dropoutDesc": descriptor, "reserveSpace": reserve, "reserveSpaceSizeInBytes": reserve.nbytes}
    if backward:
        maca.run("mcdnnDropoutForward", x=x, y=y, **common)

        def torch_gradient():  # has no form with a given output
            grad, mask = to_torch(x), torch.rand(x.shape) < 0.5
            return lambda: torch.ops.aten.native_dropout_backward(grad, mask, 2.0)

        arguments = {**common, "dy": x, "dx": y}
        function = peer(torch_gradient)
        return mcdnn_case("mcdnnDropoutBackward", arguments, "dy reserveSpace", "dx", function, [descriptor])

    def torch_dropout():
        data = to_torch(x)
        return lambda: torch.ops.aten.native_dropout(data, 0.5, True)

    arguments = {**common, "x": x, "y": y}
    return mcdnn_case("mcdnnDropoutForward", arguments, "x", "y reserveSpace", peer(torch_dropout), [descriptor])


def relu_of_size(dtype: str, size: int):
    return activation("relu", random(dtype, size, -1, 1, 1)[0].reshape(-1, 64, 1, 1))


def rows() -> list[Row]:
    found = sized_rows("relu forward", FLOATS, relu_of_size, 0.85, 1.0)
    for mode in MODES:
        aims = 0.85, 1.1 if mode == "swish" else 1.0
        name = mode.replace("_", " ")
        forward = lambda dtype, mode=mode: activation(mode, *images(dtype, 1))  # noqa: E731
        backward = lambda dtype, mode=mode: activation_gradient(mode, dtype)  # noqa: E731
        found += shaped_rows(f"{name} forward", FLOATS, LABEL, forward, *aims)
        found += shaped_rows(f"{name} backward", FLOATS, LABEL, backward, *aims)
    for name, label, mode, arrays, aim in (("softmax", "4096x1024", "INSTANCE", groups, 0.8),
                                           ("channel softmax", LABEL, "CHANNEL", images, 0.7)):  # fmt: skip
        forward = lambda dtype, arrays=arrays, mode=mode: softmax(*arrays(dtype, 1), mode)  # noqa: E731
        backward = lambda dtype, arrays=arrays, mode=mode: softmax_gradient(arrays(dtype, 2), mode)  # noqa: E731
        found += shaped_rows(f"{name} forward", FLOATS, label, forward, aim, 1.0)
        found += shaped_rows(f"{name} backward", FLOATS, label, backward, aim, 1.0)
    found += shaped_rows("dropout forward", FLOATS, LABEL, lambda dtype: dropout(dtype, False), 0.8, 10.0)
    # Ten times PyTorch is for what draws the mask; backward both only move bytes.
    found += shaped_rows("dropout backward", FLOATS, LABEL, lambda dtype: dropout(dtype, True), 0.8)
    return found
