"""Samples of images at the points of a grid: the formulas point by point in float64, gradients by differences, and all of it
against PyTorch where it is there."""

import itertools
import math

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, tensor

MODES, PADDINGS = ["bilinear", "nearest", "bicubic"], ["zeros", "border", "reflection"]


def keys(d, a=-0.75):
    d = abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0


def padded(at, size, padding, align):
    if padding == "reflection":
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        while high > low and not low <= at <= high:
            at = 2 * low - at if at < low else 2 * high - at
        at = at if high > low else 0
    return at if padding == "zeros" else min(max(at, 0), size - 1)


def taps(number, size, mode, padding, align):
    """Of one axis: places with their weights."""
    at = (number + 1) / 2 * (size - 1) if align else ((number + 1) * size - 1) / 2
    if mode == "bicubic":
        return [(padded(p, size, padding, align), keys(at - p)) for p in range(math.floor(at) - 1, math.floor(at) + 3)]
    at = padded(at, size, padding, align)
    if mode == "nearest":
        return [(round(at), 1)]
    return [(math.floor(at), 1 - (at - math.floor(at))), (math.floor(at) + 1, at - math.floor(at))]


def sampled(x, grid, mode, padding, align):
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *place in np.ndindex(*grid.shape[:-1]):
        axes = [taps(number, size, mode, padding, align) for number, size in zip(grid[(n, *place)][::-1], x.shape[2:])]
        for combination in itertools.product(*axes):
            at = [int(p) for p, _ in combination]
            if all(0 <= p < size for p, size in zip(at, x.shape[2:])):
                y[(n, slice(None), *place)] += math.prod(w for _, w in combination) * x[(n, slice(None), *at)]
    return y


def drawn(axes, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-8, 9, (2, 3, *[4, 5, 3][:axes])) / 4
    return x, (rng.uniform(-1.6, 1.6, (2, *[3, 4, 2][:axes], axes))).astype(np.float32).astype(np.float64)


def cases(axes):
    return itertools.product(range(3 if axes == 2 else 2), range(3), [False, True])


@pytest.mark.parametrize("axes", [2, 3])
def test_forward(axes):
    for number, (mode, padding, align) in enumerate(cases(axes)):
        x, grid = drawn(axes, number)
        layout = LAYOUTS[number % 3]
        for kind, unit in [("F32", 2.0**-24), ("F64", 2.0**-50), ("F16", 2.0**-11), ("BF16", 2.0**-8)]:
            if kind == "F64" and mode == 2:
                continue
            given = tensor(grid, kind, layout)
            expected = sampled(x, given.values(), MODES[mode], PADDINGS[padding], align)
            out = call(f"GridSampler{axes}D", input=tensor(x, kind, layout), grid=given, interpolationMode=mode,
                       paddingMode=padding, alignCorners=align, out=empty(expected.shape, kind, layout))
            np.testing.assert_allclose(out, expected, rtol=unit, atol=1e-12 if kind != "F16" else 2.0**-24)


@pytest.mark.parametrize("axes", [2, 3])
def test_gradients(axes):
    """The gradient by x is what the formula, linear in x, gives for unit images; that by the grid, central differences."""
    for number, (mode, padding, align) in enumerate(cases(axes)):
        x, grid = drawn(axes, number)
        words = (MODES[mode], PADDINGS[padding], align)
        dy = np.random.default_rng(1).integers(-4, 5, (*x.shape[:2], *grid.shape[1:-1])) / 4
        units = np.eye(x[0, 0].size).reshape(1, -1, *x.shape[2:])
        dx = np.stack([np.stack([(sampled(units, grid[n : n + 1], *words)[0] * dy[n, c]).reshape(units.shape[1], -1).sum(1)
                                 for c in range(x.shape[1])]) for n in range(2)]).reshape(x.shape)
        dgrid, step = np.zeros_like(grid), 2.0**-20
        for k in range(axes):
            moved = np.zeros(axes)
            moved[k] = step
            change = sampled(x, grid + moved, *words) - sampled(x, grid - moved, *words)
            dgrid[..., k] = (change * dy).sum(1) / (2 * step)
        kind, layout = ("F64", LAYOUTS[number % 3]) if mode != 2 else ("F32", LAYOUTS[number % 3])
        for mask in [[True, True], [True, False], [False, True]]:
            results = [empty(x.shape, kind, layout), empty(grid.shape, kind, layout)]
            before = [result.bytes() for result in results]
            actual = call(f"GridSampler{axes}DBackward", gradOutput=tensor(dy, kind, layout), input=tensor(x, kind, layout),
                          grid=tensor(grid, kind, layout), interpolationMode=mode, paddingMode=padding, alignCorners=align,
                          outputMask=mask, inputGrad=results[0], gridGrad=results[1])
            for place, (wanted, expected) in enumerate(zip(mask, (dx, dgrid))):
                if wanted:
                    np.testing.assert_allclose(actual[place], expected, rtol=1e-5, atol=1e-5, err_msg=str(words))
                else:
                    assert results[place].bytes() == before[place]


def test_as_torch():
    torch = pytest.importorskip("torch")
    for axes in (2, 3):
        for number, (mode, padding, align) in enumerate(cases(axes)):
            x, grid = drawn(axes, number)
            given = [torch.from_numpy(v.astype(np.float32)).requires_grad_() for v in (x, grid)]
            y = torch.nn.functional.grid_sample(*given, MODES[mode], PADDINGS[padding], align)
            settings = dict(interpolationMode=mode, paddingMode=padding, alignCorners=align)
            out = call(f"GridSampler{axes}D", input=tensor(x), grid=tensor(grid), out=empty(y.shape), **settings)
            np.testing.assert_allclose(out, y.detach().numpy(), atol=2e-5)
            y.sum().backward()
            results = call(f"GridSampler{axes}DBackward", gradOutput=tensor(np.ones(y.shape)), input=tensor(x),
                           grid=tensor(grid), outputMask=[True, True], inputGrad=empty(x.shape),
                           gridGrad=empty(grid.shape), **settings)
            for actual, tensor_ in zip(results, given):
                np.testing.assert_allclose(actual, tensor_.grad.numpy(), atol=2e-4, err_msg=f"{axes} {settings}")


@pytest.mark.parametrize("mode", range(3))
def test_more_channels_and_points_than_are_handled_at_once(mode):
    rng = np.random.default_rng(mode)
    x, dy = rng.integers(-8, 9, (2, 19, 4, 5)) / 4, rng.integers(-8, 9, (2, 19, 17, 23)) / 4
    grid = rng.uniform(-1.4, 1.4, (2, 17, 23, 2)).astype(np.float32).astype(np.float64)
    how = dict(interpolationMode=mode, paddingMode=2, alignCorners=False)
    out = call("GridSampler2D", input=tensor(x), grid=tensor(grid), out=empty(dy.shape), **how)
    np.testing.assert_allclose(out, sampled(x, grid, MODES[mode], "reflection", False), rtol=2.0**-24, atol=1e-12)
    dx, dgrid = call("GridSampler2DBackward", gradOutput=tensor(dy), input=tensor(x), grid=tensor(grid),
                     outputMask=[True, True], inputGrad=empty(x.shape), gridGrad=empty(grid.shape), **how)
    np.testing.assert_allclose((sampled(x, grid, MODES[mode], "reflection", False) * dy).sum(), (dx * x).sum(), rtol=1e-6)
    moved = np.array([2.0**-20, 0])
    change = [sampled(x, grid + step, MODES[mode], "reflection", False) for step in (moved, -moved)]
    np.testing.assert_allclose(dgrid[..., 0], ((change[0] - change[1]) * dy).sum(1) / 2.0**-19, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("size", [[2, 3, 4, 5], [3, 1, 1, 2], [2, 1, 3, 4, 5], [1, 2, 1, 3, 1]], ids=str)
def test_affine_grid(size):
    axes = len(size) - 2
    theta = np.random.default_rng(1).integers(-8, 9, (size[0], axes, axes + 1)) / 8
    for align, (kind, unit), layout in itertools.product(
            [False, True], [("F32", 2.0**-24), ("F16", 2.0**-11), ("BF16", 2.0**-8)], LAYOUTS[:2]):
        lines = [(np.linspace(-1, 1, n) if n > 1 else np.zeros(1)) if align else (2 * np.arange(n) + 1) / n - 1
                 for n in size[2:]]
        points = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(size[2:])], -1)
        expected = np.einsum("nrk,...k->n...r", theta, points)
        out = call("AffineGrid", theta=tensor(theta, kind, layout), size=size, alignCorners=align,
                   out=empty(expected.shape, kind, layout))
        np.testing.assert_allclose(out, expected, rtol=unit, atol=1e-7 if kind == "F32" else unit)


@pytest.mark.parametrize("format", ["NCDHW", "NDHWC"])
def test_three_axes_by_format(format):
    """The channels of NDHWC are last, in the gradients, too."""
    put = (lambda values: np.moveaxis(values, 1, 4)) if format == "NDHWC" else lambda values: values
    rng = np.random.default_rng(3)
    x, grid, dy = rng.normal(size=(2, 4, 3, 2, 3)), rng.uniform(-1.2, 1.2, (2, 2, 3, 2, 3)), rng.normal(size=(2, 4, 2, 3, 2))
    how = dict(interpolationMode=0, paddingMode=0, alignCorners=False)
    plain = [call("GridSampler3D", input=tensor(x), grid=tensor(grid), out=empty(dy.shape), **how)]
    plain += call("GridSampler3DBackward", gradOutput=tensor(dy), input=tensor(x), grid=tensor(grid),
                  outputMask=[True, True], inputGrad=empty(x.shape), gridGrad=empty(grid.shape), **how)  # fmt: skip
    x, dy = put(x), put(dy)
    own = [call("GridSampler3D", input=tensor(x, format=format), grid=tensor(grid, format="NDHWC"),
                out=empty(dy.shape, format=format), **how)]
    own += call("GridSampler3DBackward", gradOutput=tensor(dy, format=format), input=tensor(x, format=format),
                grid=tensor(grid, format="NDHWC"), outputMask=[True, True], inputGrad=empty(x.shape, format=format),
                gridGrad=empty(grid.shape, format="NDHWC"), **how)
    for a, b in zip(own, [put(plain[0]), put(plain[1]), plain[2]]):
        np.testing.assert_array_equal(a, b)


def test_two_axes_whatever_the_format():
    x, grid = np.random.default_rng(5).normal(size=(2, 3, 5, 4)), np.random.default_rng(4).uniform(-1, 1, (2, 3, 4, 2))
    how = dict(interpolationMode=0, paddingMode=0, alignCorners=True)
    plain = call("GridSampler2D", input=tensor(x), grid=tensor(grid), out=empty((2, 3, 3, 4)), **how)
    own = call("GridSampler2D", input=tensor(x, format="NHWC"), grid=tensor(grid, format="NHWC"),
               out=empty((2, 3, 3, 4), format="NHWC"), **how)
    np.testing.assert_array_equal(own, plain)


def test_volumes_of_nothing():
    """Of three axes they are taken, and nothing is written."""
    out = empty((2, 3, 2, 2, 2))
    untouched = out.values()
    own = call("GridSampler3D", input=empty((2, 3, 4, 0, 3)), grid=tensor(np.zeros((2, 2, 2, 2, 3))), interpolationMode=0,
               paddingMode=0, alignCorners=False, out=out)
    np.testing.assert_array_equal(own, untouched)
