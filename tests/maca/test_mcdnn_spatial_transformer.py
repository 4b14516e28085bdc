"""Spatial transformer against NumPy models written from the formulas, and against finite differences (mcdnn 6.17, 6.18)."""

import itertools

import numpy as np
import pytest

from tests.conformance.harness import run_python
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, LAYOUTS, Tensor, assert_close, digest_of, handle,
                                      random,
                                      run, scale, transformer)  # fmt: skip

TYPES = [FLOAT, DOUBLE, HALF, BFLOAT16]
ULPS = {FLOAT: 4, DOUBLE: 16, HALF: 1, BFLOAT16: 1}


def coordinates(size):
    return -1 + 2 * np.arange(size) / (size - 1) if size > 1 else np.zeros(1)


def grid_model(theta, h, w):
    ys, xs = np.meshgrid(coordinates(h), coordinates(w), indexing="ij")
    return np.einsum("nrk,hwk->nhwr", theta, np.stack([xs, ys, np.ones((h, w))], -1))


def corners(grid, in_h, in_w):
    """For every output element and corner: image index, clipped positions, weight, derivatives of the weight by px, py."""
    px, py = (grid[..., 0] + 1) * (in_w - 1) / 2, (grid[..., 1] + 1) * (in_h - 1) / 2
    x0, y0 = np.floor(px), np.floor(py)
    for right, below in itertools.product((0, 1), (0, 1)):
        cx, cy = x0 + right, y0 + below
        inside = (cx >= 0) & (cx < in_w) & (cy >= 0) & (cy < in_h)
        wx, wy = (px - x0 if right else 1 - (px - x0)), (py - y0 if below else 1 - (py - y0))
        position = (np.where(inside, cy, 0).astype(int), np.where(inside, cx, 0).astype(int))
        yield position, inside * wx * wy, inside * (2 * right - 1) * wy, inside * (2 * below - 1) * wx


def sample_model(x, grid):
    y = np.zeros((*x.shape[:2], *grid.shape[1:3]))
    for (cy, cx), weight, _, _ in corners(grid, *x.shape[2:]):
        for n in range(x.shape[0]):
            y[n] += weight[n] * x[n][:, cy[n], cx[n]]
    return y


def sample_gradient(x, grid, dy):
    dx, dgrid = np.zeros(x.shape), np.zeros(grid.shape)
    for (cy, cx), weight, by_x, by_y in corners(grid, *x.shape[2:]):
        for n in range(x.shape[0]):
            values = x[n][:, cy[n], cx[n]]
            dgrid[n, ..., 0] += (x.shape[3] - 1) / 2 * (dy[n] * by_x[n] * values).sum(0)
            dgrid[n, ..., 1] += (x.shape[2] - 1) / 2 * (dy[n] * by_y[n] * values).sum(0)
            for c in range(x.shape[1]):
                np.add.at(dx[n, c], (cy[n], cx[n]), weight[n] * dy[n, c])
    return dx, dgrid


def sample(descriptor, x, grid, y, alpha=1.0, beta=0.0):
    run("mcdnnSpatialTfSamplerForward", handle=handle(), stDesc=descriptor, alpha=scale(alpha, x.data_type), xDesc=x, x=x,
        grid=grid, beta=scale(beta, x.data_type), yDesc=y, y=y)


def sample_back(descriptor, x, grid, dy, dx, dgrid, factors=(1.0, 0.0, 1.0, 0.0)):
    a, b, c, d = (scale(value, x.data_type) for value in factors)
    run("mcdnnSpatialTfSamplerBackward", handle=handle(), stDesc=descriptor, alpha=a, xDesc=x, x=x, beta=b, dxDesc=dx, dx=dx,
        alphaDgrid=c, dyDesc=dy, dy=dy, grid=grid, betaDgrid=d, dgrid=dgrid)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("h, w", [(3, 4), (1, 1), (1, 5), (7, 1), (33, 41)])
def test_grid_and_its_gradient(h, w, data_type):
    descriptor = transformer((2, 3, h, w), data_type)
    theta, grid = Tensor(random((2, 2, 3), data_type, 1), data_type), Tensor(np.full((2, h, w, 2), np.nan), data_type)
    run("mcdnnSpatialTfGridGeneratorForward", handle=handle(), stDesc=descriptor, theta=theta, grid=grid)
    assert_close(grid.values(), grid_model(theta.values(), h, w), data_type, 2, floor=4)
    dgrid, dtheta = Tensor(random((2, h, w, 2), data_type, 2), data_type), Tensor(np.full((2, 2, 3), np.nan), data_type)
    run("mcdnnSpatialTfGridGeneratorBackward", handle=handle(), stDesc=descriptor, dgrid=dgrid, dtheta=dtheta)
    basis = grid_model(np.broadcast_to(np.eye(3)[None], (1, 3, 3)), h, w)[0]
    expected = np.einsum("nhwr,hwk->nrk", dgrid.values(), basis)
    assert_close(dtheta.values(), expected, data_type, 2, floor=h * w if data_type == DOUBLE else 4)


def test_four_columns_lie_at_thirds():
    descriptor = transformer((1, 1, 1, 4), DOUBLE)
    theta, grid = Tensor(np.eye(2, 3)[None], DOUBLE), Tensor(np.zeros((1, 1, 4, 2)), DOUBLE)
    run("mcdnnSpatialTfGridGeneratorForward", handle=handle(), stDesc=descriptor, theta=theta, grid=grid)
    np.testing.assert_allclose(grid.values()[0, 0, :, 0], [-1, -1 / 3, 1 / 3, 1], atol=1e-15)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("images, out", [((2, 3, 5, 7), (4, 6)), ((1, 1, 1, 1), (2, 2)), ((1, 37, 6, 5), (9, 11)),
                                         ((2, 2, 33, 41), (35, 37))])
def test_sampler_and_its_gradients(images, out, data_type):
    sizes = (*images[:2], *out)
    descriptor = transformer(sizes, data_type)
    x, grid = Tensor(random(images, data_type, 1), data_type), Tensor(random((images[0], *out, 2), data_type, 2, 1.3), data_type)
    y = Tensor(random(sizes, data_type, 3), data_type)
    prior = y.values()
    sample(descriptor, x, grid, y, 1.5, -0.5)
    model = sample_model(x.values(), grid.values())
    assert_close(y.values(), 1.5 * model - 0.5 * prior, data_type, ULPS[data_type], floor=4)
    dy, dx = Tensor(random(sizes, data_type, 4), data_type), Tensor(random(images, data_type, 5), data_type)
    dgrid = Tensor(random(grid.sizes, data_type, 6), data_type)
    prior_x, prior_grid = dx.values(), dgrid.values()
    sample_back(descriptor, x, grid, dy, dx, dgrid, (0.75, 2.0, 1.25, -0.5))
    model_x, model_grid = sample_gradient(x.values(), grid.values(), dy.values())
    assert_close(dx.values(), 0.75 * model_x + 2 * prior_x, data_type, ULPS[data_type], floor=np.abs(model_x) + 8)
    assert_close(dgrid.values(), 1.25 * model_grid - 0.5 * prior_grid, data_type, ULPS[data_type],
                 floor=np.abs(model_grid) + images[1] * max(images[2:]) * 4)


def test_many_points_may_look_at_one_element():
    """A million equal shares: adding them one after another in float would lose 0.9 %."""
    out = (1, 1, 1000, 1000)
    x, dy = Tensor(np.ones((1, 1, 3, 3))), Tensor(np.full(out, 0.1))
    grid, dx, dgrid = Tensor(np.zeros((1, 1000, 1000, 2))), Tensor(np.zeros((1, 1, 3, 3))), Tensor(np.zeros((1, 1000, 1000, 2)))
    sample_back(transformer(out), x, grid, dy, dx, dgrid)
    np.testing.assert_allclose(dx.values()[0, 0, 1, 1], 1e6 * float(np.float32(0.1)), rtol=1e-7)


def test_the_identity_gives_the_image_back():
    x, y = Tensor(random((2, 3, 5, 7), FLOAT, 1)), Tensor(np.full((2, 3, 5, 7), np.nan))
    grid = Tensor(grid_model(np.broadcast_to(np.eye(2, 3), (2, 2, 3)), 5, 7))
    sample(transformer((2, 3, 5, 7)), x, grid, y)
    assert_close(y.values(), x.values(), FLOAT, 8, floor=8)


def test_points_outside_and_that_are_no_numbers_give_zero():
    points = np.array([[-3, 0], [3, 0], [0, -1e30], [0, np.inf], [np.nan, 0], [0, np.nan], [-np.inf, np.inf], [0, 0]])
    x, grid = Tensor(np.ones((1, 2, 3, 3))), Tensor(points.reshape(1, 1, 8, 2))
    y, dx, dgrid = Tensor(np.full((1, 2, 1, 8), np.nan)), Tensor(np.full((1, 2, 3, 3), np.nan)), Tensor(np.full(grid.sizes, np.nan))
    sample(transformer((1, 2, 1, 8)), x, grid, y)
    assert y.values()[0, 0, 0].tolist() == [0] * 7 + [1]
    sample_back(transformer((1, 2, 1, 8)), x, grid, y, dx, dgrid)
    assert dx.values().sum() == 2 and (dgrid.values() == 0).all()


def test_gradients_are_those_of_the_forward_function():
    images, out = (1, 2, 4, 5), (1, 2, 3, 3)
    descriptor = transformer(out, DOUBLE)
    x_values, slopes = random(images, DOUBLE, 1), random(out, DOUBLE, 2)
    points = random((1, 3, 3, 2), DOUBLE, 3, 0.9)

    def loss(x, grid):
        y = Tensor(np.zeros(out), DOUBLE)
        sample(descriptor, Tensor(x, DOUBLE), Tensor(grid, DOUBLE), y)
        return (y.values() * slopes).sum()

    dx, dgrid = Tensor(np.zeros(images), DOUBLE), Tensor(np.zeros(points.shape), DOUBLE)
    sample_back(descriptor, Tensor(x_values, DOUBLE), Tensor(points, DOUBLE), Tensor(slopes, DOUBLE), dx, dgrid)
    for gradient, values, function in ((dx, x_values, lambda x: loss(x, points)),
                                       (dgrid, points, lambda grid: loss(x_values, grid))):
        expected = np.zeros(values.shape)
        for index in np.ndindex(values.shape):
            step = np.zeros(values.shape)
            step[index] = 1e-6
            expected[index] = (function(values + step) - function(values - step)) / 2e-6
        np.testing.assert_allclose(gradient.values(), expected, atol=1e-7)


@pytest.mark.parametrize("output", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_layouts_agree_gaps_stay_and_the_old_values_are_not_read(source, output):
    images, sizes = (2, 3, 5, 7), (2, 3, 4, 6)
    x, grid = Tensor(random(images, FLOAT, 1), strides=LAYOUTS[source](images)), Tensor(random((2, 4, 6, 2), FLOAT, 2))
    y = Tensor(np.full(sizes, np.nan), strides=LAYOUTS[output](sizes))
    sample(transformer(sizes), x, grid, y)
    assert_close(y.values(), sample_model(x.values(), grid.values()), FLOAT, 4)
    dy = Tensor(random(sizes, FLOAT, 3), strides=LAYOUTS[output](sizes))
    dx, dgrid = Tensor(np.full(images, np.nan), strides=LAYOUTS[source](images)), Tensor(np.full(grid.sizes, np.nan))
    sample_back(transformer(sizes), x, grid, dy, dx, dgrid)
    expected = sample_gradient(x.values(), grid.values(), dy.values())
    assert_close(dx.values(), expected[0], FLOAT, 4, floor=4)
    assert_close(dgrid.values(), expected[1], FLOAT, 4, floor=16)
    assert y.gaps_untouched() and dx.gaps_untouched()


def digest() -> str:
    outputs, images, sizes = [], (3, 37, 33, 31), (3, 37, 31, 35)
    for data_type in TYPES:
        x, grid = Tensor(random(images, data_type, 1), data_type), Tensor(random((3, 31, 35, 2), data_type, 2), data_type)
        y, dx, dgrid = (Tensor(np.zeros(shape), data_type) for shape in (sizes, images, grid.sizes))
        sample(transformer(sizes, data_type), x, grid, y)
        sample_back(transformer(sizes, data_type), x, grid, y, dx, dgrid)
        outputs += [y, dx, dgrid]
    return digest_of(outputs)


def test_results_do_not_depend_on_the_number_of_threads():
    source = "from tests.maca.test_mcdnn_spatial_transformer import digest; print(digest())"
    assert len({run_python(source, {"UNDERSTUDY_THREADS": threads}) for threads in ("1", "2", "5")}) == 1
