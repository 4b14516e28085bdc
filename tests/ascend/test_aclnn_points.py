"""Gradients on sets of points: the formulas in float64, PyTorch's autograd, and indices that are not there."""

import itertools

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, tensor

UNITS = {"F32": 2.0**-23, "F16": 2.0**-10}


@pytest.mark.parametrize("kind", UNITS)
def test_three_interpolate_backward(kind):
    for number, ((b, c, n, m), layout) in enumerate(itertools.product([(2, 3, 5, 4), (1, 40, 300, 70), (3, 1, 1, 6)], LAYOUTS)):
        slopes, weights = drawn((b, c, n), number, kind), drawn((b, n, 3), 50 + number, kind)
        indices = np.random.default_rng(number).integers(0, m, (b, n, 3))
        expected = np.zeros((b, c, m))
        for batch, channel in np.ndindex(b, c):
            np.add.at(expected[batch, channel], indices[batch], slopes[batch, channel][:, None] * weights[batch])
        for last in ((), (1,)):
            found = call("ThreeInterpolateBackward", grad_x=tensor(slopes.reshape(b, c, n, *last), kind, layout),
                         idx=tensor(indices, "I64" if last else "I32", layout), weight=tensor(weights, kind, layout), m=m,
                         grad_y=empty((b, c, m, *last), kind, layout))
            np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=UNITS[kind], atol=2.0**-40)


def test_three_interpolate_backward_as_torch():
    torch = pytest.importorskip("torch")
    points, weights, slopes = torch.tensor(drawn((2, 3, 6), 1), requires_grad=True), torch.tensor(drawn((2, 5, 3), 2)), torch.tensor(drawn((2, 3, 5), 3))
    indices = np.random.default_rng(4).integers(0, 6, (2, 5, 3))
    gathered = torch.stack([points[b][:, indices[b]] for b in range(2)])
    ((gathered * weights[:, None]).sum(-1) * slopes).sum().backward()
    found = call("ThreeInterpolateBackward", grad_x=tensor(slopes.numpy()), idx=tensor(indices, "I32"),
                 weight=tensor(weights.numpy()), m=6, grad_y=empty((2, 3, 6)))  # fmt: skip
    np.testing.assert_allclose(found, points.grad.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", UNITS)
def test_chamfer_distance_backward(kind):
    for number, ((b, n, m), layout) in enumerate(itertools.product([(2, 3, 5), (1, 300, 200), (3, 1, 1)], LAYOUTS)):
        first, second = drawn((b, n, 2), number, kind), drawn((b, m, 2), 50 + number, kind)
        rng = np.random.default_rng(number)
        to_second, to_first = rng.integers(0, m, (b, n)), rng.integers(0, n, (b, m))
        of_first, of_second = drawn((b, n), 90 + number, kind), drawn((b, m), 130 + number, kind)
        expected = [np.zeros((b, n, 2)), np.zeros((b, m, 2))]
        for batch in range(b):
            share = 2 * of_first[batch][:, None] * (first[batch] - second[batch][to_second[batch]])
            expected[0][batch] += share
            np.add.at(expected[1][batch], to_second[batch], -share)
            share = 2 * of_second[batch][:, None] * (second[batch] - first[batch][to_first[batch]])
            expected[1][batch] += share
            np.add.at(expected[0][batch], to_first[batch], -share)
        found = call("ChamferDistanceBackward", xyz1=tensor(first, kind, layout), xyz2=tensor(second, kind, layout),
                     idx1=tensor(to_second, "I32", layout), idx2=tensor(to_first, "I32", layout),
                     gradDist1=tensor(of_first, kind, layout), gradDist2=tensor(of_second, kind, layout),
                     gradXyz1=empty((b, n, 2), kind, layout), gradXyz2=empty((b, m, 2), kind, layout))  # fmt: skip
        for actual, one in zip(found, expected):
            np.testing.assert_allclose(actual, one, rtol=UNITS[kind], atol=2.0**-40)


def test_chamfer_distance_backward_as_torch():
    torch = pytest.importorskip("torch")
    first, second = (torch.tensor(drawn(shape, seed),
                                  requires_grad=True) for seed, shape in enumerate([(2, 7, 2), (2, 5, 2)]))  # fmt: skip
    distances = ((first[:, :, None] - second[:, None]) ** 2).sum(-1)
    (of_first, to_second), (of_second, to_first) = distances.min(2), distances.min(1)
    slopes = torch.tensor(drawn((2, 7), 5)), torch.tensor(drawn((2, 5), 6))
    ((of_first * slopes[0]).sum() + (of_second * slopes[1]).sum()).backward()
    found = call("ChamferDistanceBackward", xyz1=tensor(first.detach().numpy()), xyz2=tensor(second.detach().numpy()),
                 idx1=tensor(to_second.numpy(), "I32"), idx2=tensor(to_first.numpy(), "I32"),
                 gradDist1=tensor(slopes[0].numpy()), gradDist2=tensor(slopes[1].numpy()), gradXyz1=empty((2, 7, 2)),
                 gradXyz2=empty((2, 5, 2)))  # fmt: skip
    for actual, one in zip(found, (first, second)):
        np.testing.assert_allclose(actual, one.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_points_that_are_not_there():
    ones = lambda *shape: tensor(np.ones(shape))
    for index in (4, -1):
        said = fault("ThreeInterpolateBackward", ones(1, 2, 1), tensor([[[0, index, 1]]], "I32"), ones(1, 1, 3), 4,
                     empty((1, 2, 4)))  # fmt: skip
        assert f"index {index} is outside a dimension of size 4" in said
    said = fault("ChamferDistanceBackward", ones(1, 2, 2), ones(1, 3, 2), tensor([[0, 2]], "I32"),
                 tensor([[0, 1, 2]], "I32"), ones(1, 2), ones(1, 3), empty((1, 2, 2)), empty((1, 3, 2)))  # fmt: skip
    assert "index 2 is outside a dimension of size 2" in said
