"""Rows of pooling and of the spatial transformer."""

from functools import partial

import numpy
from cases import Row, peer, shaped_rows, to_torch, torch
from mcdnn import FLOATS, LABEL, SHAPE, images, mcdnn_case

from understudy import maca

NUMBER, CHANNELS, HEIGHT, WIDTH = SHAPE
WINDOWS = {"2x2": (2, 2, 0), "3x3": (3, 2, 1)}  # size, stride, padding
MODES = {"max": "max", "average": "average_include_padding"}
# Turned by a small angle and moved a little, so that points fall between pixels and some outside.
THETA = numpy.tile(numpy.array([[0.96, -0.15, 0.05], [0.15, 0.96, -0.03]], numpy.float32), (NUMBER, 1, 1))


def torch_pooling(maximum: bool, x: numpy.ndarray, window: tuple[int, int, int]):
    data = to_torch(x)
    size, stride, padding = ([number, number] for number in window)
    if maximum:
        out, indices = torch.ops.aten.max_pool2d_with_indices(data, size, stride, padding)
        given = {"out": out, "indices": indices}
        return lambda: torch.ops.aten.max_pool2d_with_indices.out(data, size, stride, padding, **given)
    out = torch.ops.aten.avg_pool2d(data, size, stride, padding)
    return lambda: torch.ops.aten.avg_pool2d.out(data, size, stride, padding, out=out)


def torch_pooling_gradient(maximum: bool, x: numpy.ndarray, dy: numpy.ndarray, window: tuple[int, int, int]):
    data, grad = to_torch(x), to_torch(dy)
    out = torch.empty_like(data)
    size, stride, padding = ([number, number] for number in window)
    if maximum:  # PyTorch keeps the places of the maxima; mcDNN has to find them again
        _, indices = torch.ops.aten.max_pool2d_with_indices(data, size, stride, padding)
        settings = size, stride, padding, [1, 1], False, indices
        function = torch.ops.aten.max_pool2d_with_indices_backward.grad_input
    else:
        settings = size, stride, padding, False, True, None
        function = torch.ops.aten.avg_pool2d_backward.grad_input
    return lambda: function(grad, data, *settings, grad_input=out)


def pooling(dtype: str, mode: str, window: tuple[int, int, int], backward: bool):
    (x,) = images(dtype, 1)
    size, stride, padding = ((number, number) for number in window)
    descriptor = maca.PoolingDescriptor(MODES[mode], size, padding, stride)
    y = maca.pooling_forward(x, descriptor)
    arguments = {"poolingDesc": descriptor, "x": x, "y": y}
    maximum = mode == "max"
    if not backward:
        function = peer(lambda: torch_pooling(maximum, x, window))
        return mcdnn_case("mcdnnPoolingForward", arguments, "x", "y", function, [descriptor])
    dy = y.copy()
    arguments = {"poolingDesc": descriptor, "xData": x, "y": y, "dy": dy, "dx": numpy.empty_like(x)}
    function = peer(lambda: torch_pooling_gradient(maximum, x, dy, window))
    reads = "xData dy" if maximum else "dy"
    return mcdnn_case("mcdnnPoolingBackward", arguments, reads, "dx", function, [descriptor])


def made_grid() -> numpy.ndarray:
    grid = numpy.empty((NUMBER, HEIGHT, WIDTH, 2), numpy.float32)
    with maca.SpatialTransformerDescriptor(SHAPE) as transformer:
        maca.run("mcdnnSpatialTfGridGeneratorForward", stDesc=transformer, theta=THETA, grid=grid)
    return grid


def sampler(dtype: str, backward: bool):
    x, dy = images(dtype, 2)
    descriptor, grid = maca.SpatialTransformerDescriptor(SHAPE), made_grid()
    common = {"stDesc": descriptor, "x": x, "grid": grid}

    def torch_forward():  # bilinear, zeros outside, corners aligned; no form with a given output
        data, points = to_torch(x), to_torch(grid)
        return lambda: torch.ops.aten.grid_sampler_2d(data, points, 0, 0, True)

    def torch_backward():
        grad, data, points = to_torch(dy), to_torch(x), to_torch(grid)
        return lambda: torch.ops.aten.grid_sampler_2d_backward(grad, data, points, 0, 0, True, [True, True])

    if backward:
        arguments = {**common, "dy": dy, "dx": numpy.empty_like(x), "dgrid": numpy.empty_like(grid)}
        name, reads, writes = "mcdnnSpatialTfSamplerBackward", "x dy grid", "dx dgrid"
        return mcdnn_case(name, arguments, reads, writes, peer(torch_backward), [descriptor])
    arguments = {**common, "y": numpy.empty_like(x)}
    return mcdnn_case("mcdnnSpatialTfSamplerForward", arguments, "x grid", "y", peer(torch_forward), [descriptor])


def grid_generator(dtype: str, backward: bool):
    descriptor, grid = maca.SpatialTransformerDescriptor(SHAPE), made_grid()
    theta = THETA.copy()

    def torch_forward():
        affine = to_torch(theta)
        return lambda: torch.ops.aten.affine_grid_generator(affine, list(SHAPE), True)

    def torch_backward():
        grad = to_torch(grid)
        return lambda: torch.ops.aten.affine_grid_generator_backward(grad, list(SHAPE), True)

    if backward:
        arguments = {"stDesc": descriptor, "dgrid": grid, "dtheta": theta}
        name, function = "mcdnnSpatialTfGridGeneratorBackward", peer(torch_backward)
        return mcdnn_case(name, arguments, "dgrid", "dtheta", function, [descriptor])
    arguments = {"stDesc": descriptor, "theta": theta, "grid": grid}
    name, function = "mcdnnSpatialTfGridGeneratorForward", peer(torch_forward)
    return mcdnn_case(name, arguments, "theta", "grid", function, [descriptor])


def rows() -> list[Row]:
    found = []
    for mode, aim in (("max", 0.9), ("average", 4.0)):
        for label, window in WINDOWS.items():
            for direction, backward in (("forward", False), ("backward", True)):
                make = partial(pooling, mode=mode, window=window, backward=backward)
                found += shaped_rows(f"{mode} pooling {label} {direction}", FLOATS, LABEL, make, 0.0, aim)
    for direction, backward in (("forward", False), ("backward", True)):
        make = partial(sampler, backward=backward)
        found += shaped_rows(f"grid sampling {direction}", ["float32"], LABEL, make, 0.0, 2.0)
        make = partial(grid_generator, backward=backward)
        found += shaped_rows(f"grid generator {direction}", ["float32"], "32x56x56x2", make)
    return found
