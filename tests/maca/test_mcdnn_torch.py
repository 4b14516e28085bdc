"""mcDNN layers against PyTorch's own layers and autograd, in float64. Needs PyTorch."""

import numpy as np
import pytest
from understudy.maca import lib

from tests.maca import test_mcdnn_batch_norm as batch_norm
from tests.maca import test_mcdnn_convolution as convolutions
from tests.maca import test_mcdnn_ctc_loss as ctc
from tests.maca import test_mcdnn_dropout as dropout
from tests.maca import test_mcdnn_lrn as local_response
from tests.maca import test_mcdnn_pooling as pool
from tests.maca import test_mcdnn_rnn as recurrent
from tests.maca import test_mcdnn_spatial_transformer as spatial
from tests.maca.mcdnn_support import (DOUBLE, FLOAT, Tensor, activation, handle, lrn, nhwc_strides, pooling,
                                      random, run, scale, transformer)

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


def test_batch_normalization_per_activation():
    """PyTorch has the same when every element of an image is a feature."""
    case = batch_norm.Case(SIZES, batch_norm.PER_ACTIVATION, DOUBLE)
    x, gain, bias = leaf(case.x), leaf(case.gain), leaf(case.bias)
    means = [torch.from_numpy(t.values()).flatten() for t in (case.running_mean, case.running_variance)]
    y = functional.batch_norm(x.flatten(1), *means, gain.flatten(), bias.flatten(), True, 0.25, batch_norm.EPSILON)
    case.train(factor=0.25)
    agree(case.y, y.reshape(SIZES))
    for ours, theirs in zip((case.running_mean, case.running_variance), means):
        np.testing.assert_allclose(ours.values().ravel(), theirs.numpy(), rtol=1e-12)
    y.backward(torch.from_numpy(case.dy.values()).flatten(1))
    case.differentiate()
    # Two images make every variance small: terms of 1 / deviation cancel.
    for ours, theirs in ((case.dx, x.grad), (case.gain_gradient, gain.grad), (case.bias_gradient, bias.grad)):
        np.testing.assert_allclose(ours.values(), theirs.numpy(), rtol=1e-9, atol=1e-10)


def test_batch_normalization_with_relu():
    case = batch_norm.Case(SIZES, batch_norm.SPATIAL, DOUBLE, nhwc_strides)
    x, gain, bias = leaf(case.x), leaf(case.gain), leaf(case.bias)
    normal = functional.batch_norm(x, None, None, gain.flatten(), bias.flatten(), True, 0.0, batch_norm.EPSILON)
    assert normal.abs().min() > 1e-6  # none so near to the kink that a rounding decides
    relu = activation(lib.MCDNN_ACTIVATION_RELU, 0.0)
    reserve = case.reserve(batch_norm.BN_ACTIVATION, relu)
    case.fused(batch_norm.BN_ACTIVATION, relu, reserve)
    agree(case.y, torch.relu(normal))
    torch.relu(normal).backward(torch.from_numpy(case.dy.values()))
    case.differentiate_fused(batch_norm.BN_ACTIVATION, relu, reserve)
    for ours, theirs in ((case.dx, x.grad), (case.gain_gradient, gain.grad), (case.bias_gradient, bias.grad)):
        agree(ours, theirs)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout(p):
    """Masks differ between generators; what they do and how often they keep does not."""
    sizes = (4, 16, 32, 32)
    x, y = Tensor(random(sizes, FLOAT, 1) + 3), Tensor(np.full(sizes, np.nan))
    dy, dx = Tensor(random(sizes, FLOAT, 2) + 3), Tensor(np.full(sizes, np.nan))
    made = dropout.Dropout(p)
    reserve = dropout.forward(made, x, y)
    dropout.backward(made, dy, dx, reserve)
    theirs, mask = torch.native_dropout(torch.from_numpy(x.stored()), p, True)
    factor = (theirs[mask] / torch.from_numpy(x.stored())[mask]).mean().item()
    kept = y.values() != 0
    for ours, source in ((y, x), (dx, dy)):
        np.testing.assert_allclose(ours.values()[kept], factor * source.values()[kept], rtol=2**-20)
        assert (ours.values()[~kept] == 0).all()
    deviation = np.sqrt(p * (1 - p) / kept.size)
    for ratio in (kept.mean(), mask.double().mean().item()):
        assert abs(ratio - (1 - p)) < 5 * deviation


@pytest.mark.parametrize("with_means", [False, True])
@pytest.mark.parametrize("n", [1, 3, 5])
def test_divisive_normalization(n, with_means):
    """PyTorch has no such layer: composed of its sums over windows, differentiated by autograd."""
    alpha, beta, k = 0.3, 0.75, 1.5
    x, means, y, dy, dx, dmeans = (tensor(SIZES, seed) for seed in range(6))
    their_x, their_means = leaf(x), leaf(means) if with_means else torch.zeros(SIZES, dtype=torch.float64)

    def sums(values):
        return functional.avg_pool2d(values, n, 1, n // 2, divisor_override=1)

    squares = sums(their_x**2) - 2 * their_means * sums(their_x) + their_means**2 * sums(torch.ones_like(their_x))
    their_y = their_x * (k + alpha / n**2 * squares) ** -beta
    descriptor, given = lrn(n, alpha, beta, k), means if with_means else None
    local_response.divisive_forward(descriptor, x, given, y)
    agree(y, their_y)
    their_y.backward(torch.from_numpy(dy.values()))
    local_response.divisive_backward(descriptor, x, given, dy, dx, dmeans if with_means else None)
    agree(dx, their_x.grad)
    if with_means:
        agree(dmeans, their_means.grad)


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


@pytest.mark.parametrize("window, padding, stride", [((3, 2), (1, 1), (2, 1)), ((3, 3), (1, 1), (2, 2)),
                                                     ((3, 3), (1, 1), (1, 1)), ((2, 2), (0, 0), (2, 2))])  # fmt: skip
@pytest.mark.parametrize("mode", ["max", "include", "exclude"])
def test_pooling(mode, window, padding, stride):
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
    their_theta, slopes, dtheta = leaf(theta), tensor(grid.sizes, 8), tensor(theta.sizes, 9)
    functional.affine_grid(their_theta, list(sizes), align_corners=True).backward(torch.from_numpy(slopes.values()))
    run("mcdnnSpatialTfGridGeneratorBackward", handle=handle(), stDesc=descriptor, dgrid=slopes, dtheta=dtheta)
    agree(dtheta, their_theta.grad)
    x, y, dy, dx = tensor(images, 3), tensor(sizes, 4), tensor(sizes, 5), tensor(images, 6)
    dgrid = tensor(grid.sizes, 7)
    their_x, their_grid = leaf(x), leaf(grid)
    their_y = functional.grid_sample(their_x, their_grid, "bilinear", "zeros", align_corners=True)
    spatial.sample(descriptor, x, grid, y)
    agree(y, their_y)
    their_y.backward(torch.from_numpy(dy.values()))
    spatial.sample_back(descriptor, x, grid, dy, dx, dgrid)
    agree(dx, their_x.grad)
    agree(dgrid, their_grid.grad)


@pytest.mark.parametrize("problem", convolutions.PROBLEMS, ids=str)
def test_convolution(problem):
    x_sizes, w_sizes, padding, stride, dilation, groups = problem
    convolve = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[len(padding)]
    x, w = tensor(x_sizes, 1), convolutions.Filter(random(w_sizes, DOUBLE, 2), DOUBLE)
    x_leaf, w_leaf = leaf(x), leaf(w)
    y_torch = convolve(x_leaf, w_leaf, None, stride, padding, dilation, groups)
    dy, y, dx = tensor(tuple(y_torch.shape), 3), tensor(tuple(y_torch.shape), 4), tensor(x_sizes, 5)
    dw = convolutions.Filter(np.zeros(w_sizes), DOUBLE)
    y_torch.backward(torch.from_numpy(dy.values()))
    conv = convolutions.convolution(padding, stride, dilation, groups, compute=DOUBLE)
    assert convolutions.forward(conv, x, w, y) == 0
    assert convolutions.backward_data(conv, w, dy, dx) == 0
    assert convolutions.backward_filter(conv, x, dy, dw) == 0
    for ours, theirs in ((y, y_torch), (dx, x_leaf.grad), (dw, w_leaf.grad)):
        agree(ours, theirs)


@pytest.mark.parametrize("cell", recurrent.CELLS)
def test_recurrent_networks(cell):
    """PyTorch's modules have the parameters of each layer and direction in the same order as our weight space."""
    kinds = {recurrent.RELU: (torch.nn.RNN, {"nonlinearity": "relu"}), recurrent.TANH: (torch.nn.RNN, {}),
             recurrent.LSTM: (torch.nn.LSTM, {"proj_size": 3}), recurrent.GRU: (torch.nn.GRU, {})}
    module, more = kinds[cell]
    projection = more.get("proj_size")
    net = recurrent.Network(cell, directions=2, layers=2, inputs=5, hidden=4, projection=projection)
    case = recurrent.Run(net, recurrent.PACKED, 6, (6, 4, 1))
    theirs = module(5, 4, 2, bidirectional=True, dtype=torch.float64, **more)
    begin, values = 0, net.weights.values()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.from_numpy(values[begin : begin + parameter.numel()]).reshape(parameter.shape))
            begin += parameter.numel()
    assert begin == len(values)
    x = torch.from_numpy(case.x.data.values()).requires_grad_()
    states = [torch.from_numpy(state).requires_grad_() for state in (case.hx_values, case.cx_values)]
    packed = torch.nn.utils.rnn.PackedSequence(x, torch.tensor([3, 2, 2, 2, 1, 1]))
    output, last = theirs(packed, tuple(states) if cell == recurrent.LSTM else states[0])
    last = last if cell == recurrent.LSTM else (last,)
    case.forward()
    case.backward()
    agree(case.y.data, output.data)
    agree(case.hy, last[0])
    total = (output.data * torch.from_numpy(case.dy.data.values())).sum()
    for state, slope in zip(last, (case.dhy, case.dcy)):
        total = total + (state * torch.from_numpy(slope.values())).sum()
    total.backward()
    agree(case.dx.data, x.grad)
    agree(case.dhx, states[0].grad)
    gradients = torch.cat([parameter.grad.flatten() for parameter in theirs.parameters()])
    np.testing.assert_allclose(case.dweights.values() - case.prior, gradients.numpy(), rtol=1e-11, atol=1e-12)


def test_ctc_loss():
    case = ctc.Call(sequences=ctc.SEQUENCES[:-1])
    case.run()
    x = torch.from_numpy(case.activations.astype(float)).requires_grad_()
    labels = torch.tensor([label for sequence, _ in case.sequences for label in sequence])
    losses = functional.ctc_loss(x.log_softmax(-1), labels, torch.tensor([steps for _, steps in case.sequences]),
                                 torch.tensor([len(sequence) for sequence, _ in case.sequences]), reduction="none")
    losses.sum().backward()
    np.testing.assert_allclose(case.costs.read(), losses.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(case.gradients.values(), x.grad.numpy(), atol=1e-6)
