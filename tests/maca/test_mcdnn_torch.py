"""mcDNN layers against PyTorch's own layers and autograd, in float64. Needs PyTorch."""

import numpy as np
import pytest
from understudy.maca import lib

from tests.maca import test_mcdnn_batch_norm as batch_norm
from tests.maca import test_mcdnn_lrn as local_response
from tests.maca import test_mcdnn_pooling as pool
from tests.maca import test_mcdnn_spatial_transformer as spatial
from tests.maca.mcdnn_support import DOUBLE, Tensor, handle, lrn, pooling, random, run, scale, transformer

torch = pytest.importorskip("torch", reason="PyTorch is an optional oracle")
functional = torch.nn.functional

SIZES = (2, 7, 9, 11)


def tensor(sizes, seed):
    return Tensor(random(sizes, DOUBLE, seed), DOUBLE)


def leaf(ours):
    return torch.from_numpy(ours.values()).requires_grad_()


def agree(ours, theirs):
    np.testing.assert_allclose(ours.values(), theirs.detach().numpy(), rtol=1e-11, atol=1e-12)


def test_batch_normalization():
    case = batch_norm.Case(SIZES, batch_norm.SPATIAL, DOUBLE)
    x, gain, bias = leaf(case.x), leaf(case.gain), leaf(case.bias)
    mean, variance = (torch.from_numpy(t.values()).flatten() for t in (case.running_mean, case.running_variance))
    y = functional.batch_norm(x, mean, variance, gain.flatten(), bias.flatten(), True, 0.25, batch_norm.EPSILON)
    case.train(factor=0.25)
    agree(case.y, y)
    for ours, theirs in ((case.running_mean, mean), (case.running_variance, variance)):
        np.testing.assert_allclose(ours.values().ravel(), theirs.numpy(), rtol=1e-12)
    y.backward(torch.from_numpy(case.dy.values()))
    case.differentiate()
    for ours, theirs in ((case.dx, x.grad), (case.gain_gradient, gain.grad), (case.bias_gradient, bias.grad)):
        agree(ours, theirs)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_local_response_normalization(n):
    setting = (n, 0.3, 0.75, 1.5)
    x, y, dy, dx = (tensor(SIZES, seed) for seed in range(4))
    their_x = leaf(x)
    their_y = functional.local_response_norm(their_x, *setting)
    local_response.lrn_forward(lrn(*setting), x, y)
    agree(y, their_y)
    their_y.backward(torch.from_numpy(dy.values()))
    local_response.lrn_backward(lrn(*setting), y, dy, x, dx)
    agree(dx, their_x.grad)


@pytest.mark.parametrize("mode", ["max", "include", "exclude"])
def test_pooling(mode):
    window, padding, stride = (3, 2), (1, 1), (2, 1)
    code = {"max": pool.MAX, "include": pool.INCLUDE, "exclude": pool.EXCLUDE}[mode]
    layer = (functional.max_pool2d if mode == "max" else
             lambda x, *sizes: functional.avg_pool2d(x, *sizes, count_include_pad=mode == "include"))
    x, dx = tensor(SIZES, 1), tensor(SIZES, 2)
    their_x = leaf(x)
    their_y = layer(their_x, window, stride, padding)
    y, dy = tensor(tuple(their_y.shape), 3), tensor(tuple(their_y.shape), 4)
    descriptor = pooling(code, window, padding, stride)
    pool.forward(descriptor, x, y)
    agree(y, their_y)
    their_y.backward(torch.from_numpy(dy.values()))
    pool.backward(descriptor, y, dy, x, dx)
    agree(dx, their_x.grad)


@pytest.mark.parametrize("log", [False, True])
def test_softmax_over_channels(log):
    x, y, dy, dx = (tensor(SIZES, seed) for seed in range(4))
    their_x = leaf(x)
    their_y = (torch.log_softmax if log else torch.softmax)(their_x, 1)
    codes = {"mode": lib.MCDNN_SOFTMAX_MODE_CHANNEL, "alpha": scale(1, DOUBLE), "beta": scale(0, DOUBLE)}
    algorithm = lib.MCDNN_SOFTMAX_LOG if log else lib.MCDNN_SOFTMAX_ACCURATE
    run("mcdnnSoftmaxForward", handle=handle(), algo=algorithm, **codes, xDesc=x, x=x, yDesc=y, y=y)
    agree(y, their_y)
    their_y.backward(torch.from_numpy(dy.values()))
    run("mcdnnSoftmaxBackward", handle=handle(), algorithm=algorithm, **codes, yDesc=y, yData=y, dyDesc=dy, dy=dy,
        dxDesc=dx, dx=dx)
    agree(dx, their_x.grad)


def test_grid_and_sampler():
    images, sizes = (2, 3, 5, 7), (2, 3, 6, 4)
    descriptor = transformer(sizes, DOUBLE)
    theta, grid = tensor((2, 2, 3), 1), tensor((2, 6, 4, 2), 2)
    run("mcdnnSpatialTfGridGeneratorForward", handle=handle(), stDesc=descriptor, theta=theta, grid=grid)
    agree(grid, functional.affine_grid(torch.from_numpy(theta.values()), list(sizes), align_corners=True))
    x, y, dy, dx, dgrid = tensor(images, 3), tensor(sizes, 4), tensor(sizes, 5), tensor(images, 6), tensor(grid.sizes, 7)
    their_x, their_grid = leaf(x), leaf(grid)
    their_y = functional.grid_sample(their_x, their_grid, "bilinear", "zeros", align_corners=True)
    spatial.sample(descriptor, x, grid, y)
    agree(y, their_y)
    their_y.backward(torch.from_numpy(dy.values()))
    spatial.sample_back(descriptor, x, grid, dy, dx, dgrid)
    agree(dx, their_x.grad)
    agree(dgrid, their_grid.grad)
