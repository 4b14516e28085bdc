"""Softmax (mcdnn 6.16) against float64: algorithms, groups along any axes, layouts, scaling, limits."""

import itertools

import numpy as np
import pytest

from tests.kernels.test_soft_margin_loss_backward import bits
from tests.tensor.internals import ACCURATE, FAST, LOG, Softmax, bfloat_of, bfloat_values, run, view

ALGORITHMS = [FAST, ACCURATE, LOG]
TOLERANCE = {"float32": 1e-6, "float16": 2**-11 * 1.01, "float64": 1e-13}

# shape, first and last axis of the group: rows, columns, one group, groups of one, uneven sizes, short and long groups
SHAPES = [
    ((4, 17), 1, 1), ((2, 3, 5), 1, 1), ((3, 10, 49), 1, 1), ((2, 1, 7), 1, 1), ((300, 10), 1, 1), ((40, 3, 5), 1, 1),
    ((5, 2049), 1, 1), ((7,), 0, 0), ((1,), 0, 0), ((3, 5, 4, 6), 1, 3), ((5, 30, 17, 3), 1, 1), ((2, 70, 1030), 1, 1),
    ((33, 65, 18), 1, 1), ((2, 1000, 33), 1, 1), ((2053, 550), 0, 0), ((1, 40_000), 1, 1), ((2, 300_001), 1, 1),
    ((3, 4, 5, 6), 1, 2), ((40, 33), 1, 1), ((40, 64), 1, 1), ((3, 20, 150), 2, 2), ((2, 3, 31), 2, 2),
]


def forward(x, y, first, last, algorithm, alpha=1.0, beta=0.0):
    run("us_softmax_forward", [view(x), view(y)], Softmax(algorithm, first, last, alpha, beta))
    return y


def backward(y, dy, dx, first, last, algorithm, alpha=1.0, beta=0.0):
    run("us_softmax_backward", [view(y), view(dy), view(dx)], Softmax(algorithm, first, last, alpha, beta))
    return dx


def forward_oracle(x, axes, algorithm):
    x = x.astype(np.float64)
    shifted = x - x.max(axes, keepdims=True)
    e = np.exp(shifted)
    total = e.sum(axes, keepdims=True)
    return shifted - np.log(total) if algorithm == LOG else e / total


def backward_oracle(y, dy, axes, algorithm):
    y, dy = y.astype(np.float64), dy.astype(np.float64)
    if algorithm == LOG:
        return dy - np.exp(y) * dy.sum(axes, keepdims=True)
    return y * (dy - (y * dy).sum(axes, keepdims=True))


def in_layout(values, dtype, layout):
    """The same logical array in another order of memory."""
    axes = list(range(values.ndim))
    order = {"packed": axes, "channels last": [0, *axes[2:], 1][: values.ndim], "reversed": axes[::-1]}[layout]
    if values.ndim == 1:
        order = [0]
    return np.ascontiguousarray(values.astype(dtype).transpose(order)).transpose(np.argsort(order))


def arrays(shape, dtype, layout, count, seed=1):
    rng = np.random.default_rng(seed)
    return [in_layout(rng.standard_normal(shape) * 3, dtype, layout) for _ in range(count)]


@pytest.mark.parametrize("layout", ["packed", "channels last", "reversed"])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape, first, last", SHAPES, ids=str)
def test_against_float64(shape, first, last, dtype, layout):
    axes, tolerance = tuple(range(first, last + 1)), TOLERANCE[dtype]
    given = arrays(shape, dtype, layout, 4)
    for algorithm, (alpha, beta) in itertools.product(ALGORITHMS, [(1, 0), (0.5, 2)]):
        x, prior, dy, dprior = (array.copy("K") for array in given)
        result = forward_oracle(x, axes, algorithm)
        expected = alpha * result + (beta * prior.astype(np.float64) if beta else 0)
        y = np.full_like(x, np.nan) if beta == 0 else prior
        forward(x, y, first, last, algorithm, alpha, beta)
        # Beside the result's own rounding: that of the prior value, and for log the relative error of the sum.
        absolute = tolerance * (abs(beta) * 10 + (1 if algorithm == LOG else 1e-2))
        np.testing.assert_allclose(y, expected, rtol=2 * tolerance, atol=absolute)

        y = in_layout(result, dtype, layout)
        gradient = backward_oracle(y, dy, axes, algorithm)
        expected = alpha * gradient + (beta * dprior.astype(np.float64) if beta else 0)
        dx = np.full_like(x, np.nan) if beta == 0 else dprior
        backward(y, dy, dx, first, last, algorithm, alpha, beta)
        # Rounding of y*dy and of their sum scales with the largest terms, not with the difference.
        largest = np.abs(dy.astype(np.float64)).max() * (1 + np.sqrt(np.prod(shape)) * (algorithm == LOG))
        np.testing.assert_allclose(dx, expected, rtol=2 * tolerance, atol=tolerance * (largest + abs(beta) * 10))


def stored(values, dtype, layout):
    """The same array with other strides."""
    if layout == "every second":
        wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    if layout == "backwards":
        return np.ascontiguousarray(values[..., ::-1].astype(dtype))[..., ::-1]
    return in_layout(values, dtype, layout)


UNLIKE = ["every second", "reversed", "backwards", "packed"]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape, first", [((70, 130), 1), ((3, 37, 65), 2), ((2, 9000), 1), ((41, 64), 1), ((3, 70_000), 1),
                                          ((150, 33), 0), ((1, 300), 1), ((45, 63), 1)])  # fmt: skip
def test_operands_of_unlike_layouts(shape, first, dtype):
    axes, tolerance = (first,), TOLERANCE[dtype]
    rng = np.random.default_rng(7)
    for place, (of_input, of_change, of_result) in enumerate(itertools.product(UNLIKE, UNLIKE, UNLIKE)):
        algorithm, (alpha, beta) = ALGORITHMS[place % 3], [(1, 0), (0.5, 2)][place % 2]
        x, dy, prior = (rng.standard_normal(shape).astype(dtype) * 3 for _ in range(3))
        result = forward_oracle(x, axes, algorithm)
        expected = alpha * result + (beta * prior.astype(np.float64) if beta else 0)
        y = stored(prior if beta else np.full(shape, np.nan), dtype, of_result)
        forward(stored(x, dtype, of_input), y, first, first, algorithm, alpha, beta)
        absolute = tolerance * (abs(beta) * 10 + (1 if algorithm == LOG else 1e-2))
        np.testing.assert_allclose(y, expected, rtol=2 * tolerance, atol=absolute)

        y, dx = stored(result, dtype, of_input), stored(prior if beta else np.full(shape, np.nan), dtype, of_result)
        gradient = backward_oracle(y, dy, axes, algorithm)
        expected = alpha * gradient + (beta * prior.astype(np.float64) if beta else 0)
        backward(y, stored(dy, dtype, of_change), dx, first, first, algorithm, alpha, beta)
        largest = np.abs(dy.astype(np.float64)).max() * (1 + np.sqrt(np.prod(shape)) * (algorithm == LOG))
        np.testing.assert_allclose(dx, expected, rtol=2 * tolerance, atol=tolerance * (largest + abs(beta) * 10))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("shape", [(3, 1001), (2, 19, 70), (200, 7), (1, 300_000), (40, 49), (40, 130)])
def test_in_place_is_bitwise_as_not_in_place(shape, algorithm):
    x, dy = arrays(shape, "float32", "packed", 2)
    y = forward(x, np.empty_like(x), 1, 1, algorithm)
    dx = backward(y, dy, np.empty_like(x), 1, 1, algorithm)
    assert np.array_equal(forward(x, x, 1, 1, algorithm), y)
    assert np.array_equal(backward(y, dy, dy, 1, 1, algorithm), dx)


@pytest.mark.parametrize("shape", [(3, 100), (2, 20, 33)])
def test_bfloat(shape):
    rng = np.random.default_rng(4)
    x = bfloat_of(rng.standard_normal(shape) * 3)
    y = np.zeros(shape, np.uint16)
    run("us_softmax_forward", [view(x, "bfloat16"), view(y, "bfloat16")], Softmax(ACCURATE, 1, 1, 1, 0))
    expected = forward_oracle(bfloat_values(x), 1, ACCURATE)
    np.testing.assert_allclose(bfloat_values(y), expected, rtol=2**-8 * 1.01)


def test_mixed_types_compute_in_float():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((6, 90)).astype(np.float16)
    y = forward(x, np.zeros((6, 90), np.float32), 1, 1, ACCURATE)
    np.testing.assert_allclose(y, forward_oracle(x, 1, ACCURATE), rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 20), (1, 20, 40)])
def test_fast_overflows_as_its_formula_and_accurate_does_not(shape):
    x = np.zeros(shape, np.float32)
    x[:, 3] = 100
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(np.float32(100)))
    y = forward(x, np.empty_like(x), 1, 1, FAST)
    assert np.isnan(y[:, 3]).all() and (np.delete(y, 3, 1) == 0).all()
    y = forward(x, np.empty_like(x), 1, 1, ACCURATE)
    assert (y[:, 3] == 1).all() and np.isfinite(y).all()
    y = forward(x, np.empty_like(x), 1, 1, LOG)
    assert (y[:, 3] == 0).all() and (np.delete(y, 3, 1) == -100).all()


@pytest.mark.parametrize("shape", [(2, 20), (2, 20, 40)])
def test_fast_of_very_negative_values_divides_subnormals(shape):
    """e^-100 is a subnormal float, whose reciprocal is infinite."""
    x = np.full(shape, -100, np.float32)
    y = forward(x, np.empty_like(x), 1, 1, FAST)
    np.testing.assert_allclose(y, 1 / 20, rtol=1e-6)
    x[:] = -200  # 0 / 0
    assert np.isnan(forward(x, np.empty_like(x), 1, 1, FAST)).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_spoil_their_own_group_only(algorithm, value):
    x = np.zeros((3, 50), np.float32)
    x[1, 49] = value
    y = forward(x, np.empty_like(x), 1, 1, algorithm)
    assert np.isnan(y[1, 49]) and np.isfinite(y[[0, 2]]).all()


@pytest.mark.parametrize("shape", [(2, 50), (2, 50, 20)])
def test_minus_infinity_masks(shape):
    x = np.zeros(shape, np.float32)
    x[:, 10:] = -np.inf
    for algorithm in (FAST, ACCURATE):
        y = forward(x, np.empty_like(x), 1, 1, algorithm)
        np.testing.assert_allclose(y[:, :10], 0.1, rtol=1e-6)
        assert (y[:, 10:] == 0).all()
    assert np.isneginf(forward(x, np.empty_like(x), 1, 1, LOG)[:, 10:]).all()


# Groups along the outer axis whose rows are taken in blocks of 32, since whole groups are too large to keep.
LARGE = [("float32", (1031, 4099)), ("float16", (2050, 4100)), ("float64", (1024, 2050))]


def large(dtype, shape):
    """Highest values in the first block, the last row, more and more from row to row; masked blocks; special groups."""
    x = np.random.default_rng(7).standard_normal(shape) * 3
    x[-1, :700] = 40
    x[0, 700:900] = 40
    x[:, 900:1000] = np.linspace(-9, 9, shape[0])[:, None]
    x[:64, 1000:1100] = -np.inf
    x[64:, 1100:1200] = -np.inf
    x[:, 1300] = -np.inf
    x[500, 1301] = np.nan
    x[500, 1302] = np.inf
    return x.astype(dtype)


@pytest.mark.parametrize("dtype, shape", LARGE)
def test_large_outer_groups(dtype, shape):
    x, special, tolerance = large(dtype, shape), np.s_[:, 1300:1303], TOLERANCE[dtype]
    for algorithm in (ACCURATE, LOG):
        with np.errstate(invalid="ignore"):
            expected = forward_oracle(x, 0, algorithm)
        y = forward(x, np.full_like(x, np.nan), 0, 0, algorithm)
        assert np.isnan(expected[special]).all() and np.isnan(y[special]).all()
        absolute = tolerance * (1 if algorithm == LOG else 1e-2)
        np.testing.assert_allclose(y, expected, rtol=2 * tolerance, atol=absolute)
        prior = np.ones_like(x)
        forward(x, prior, 0, 0, algorithm, 0.5, 2)
        np.testing.assert_allclose(prior, expected / 2 + 2, rtol=2 * tolerance, atol=2 * absolute)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_large_outer_groups_in_place(algorithm):
    x = np.random.default_rng(8).standard_normal((1031, 4099)).astype(np.float32)
    y = forward(x, np.empty_like(x), 0, 0, algorithm)
    np.testing.assert_allclose(y, forward_oracle(x, 0, algorithm), rtol=2e-6, atol=1e-6)
    assert np.array_equal(forward(x, x, 0, 0, algorithm), y)


def test_fast_of_large_outer_groups_divides_subnormals_and_overflows():
    x = np.full((1031, 4099), -100, np.float32)
    x[3, 5] = 100
    y = forward(x, np.empty_like(x), 0, 0, FAST)
    assert np.isnan(y[3, 5]) and (np.delete(y[:, 5], 3) == 0).all()
    np.testing.assert_allclose(np.delete(y, 5, 1), 1 / 1031, rtol=1e-6)


def test_gaps_of_a_strided_output_keep_their_bytes():
    x = np.random.default_rng(6).standard_normal((4, 30)).astype(np.float32)
    storage = np.full((8, 90), 7, np.float32)
    y = forward(x, storage[::2, ::3], 1, 1, ACCURATE)
    np.testing.assert_allclose(y, forward_oracle(x, 1, ACCURATE), rtol=1e-6)
    storage[::2, ::3] = 7
    assert (storage == 7).all()


def beside_a_line(like, elements):
    """Memory for results that begins so many elements behind the beginning of a line of the cache."""
    storage = np.full(like.size + 64, 7, like.dtype)
    begin = -storage.ctypes.data // like.itemsize % (64 // like.itemsize) + elements
    return storage, storage[begin : begin + like.size].reshape(like.shape)


# Rows; columns of short and of long groups; one long group. All have more than 2^25 bytes.
PAST = [((8200, 1024), 1), ((8224, 1024), 0), ((33, 7, 36480), 1), ((1, 8400 * 1024), 1)]


@pytest.mark.parametrize("shape, axis", PAST, ids=str)
@pytest.mark.parametrize("dtype, wider, algorithm", [("float32", 1, ACCURATE), ("float32", 1, LOG), ("float16", 2, ACCURATE)])
def test_large_results_go_past_the_caches(shape, axis, dtype, wider, algorithm):
    """What begins within a line does not: the same bits there, and nothing beside them is written."""
    x = np.random.default_rng(9).standard_normal((shape[0] * wider, *shape[1:]), np.float32).astype(dtype)
    expected = forward(x, beside_a_line(x, 1)[1], axis, axis, algorithm)
    storage, y = beside_a_line(x, 0)
    forward(x, y, axis, axis, algorithm)
    assert y.tobytes() == expected.tobytes() and (storage == 7).sum() == storage.size - x.size + (y == 7).sum()
    gradient = backward(y, x, beside_a_line(x, 1)[1], axis, axis, algorithm)
    storage, dx = beside_a_line(x, 0)
    backward(y, x, dx, axis, axis, algorithm)
    assert dx.tobytes() == gradient.tobytes() and (storage == 7).sum() == storage.size - x.size + (dx == 7).sum()
    assert forward(x, x, axis, axis, algorithm).tobytes() == y.tobytes()


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (2, 0, 3)])
def test_empty(shape):
    x = np.zeros(shape, np.float32)
    forward(x, x.copy(), 1, 1, ACCURATE)
    backward(x, x.copy(), x.copy(), 1, 1, LOG)


def everything():
    results = []
    shapes = [((1, 50_001), 1, 1), ((64, 1000), 1, 1), ((2, 19, 5000), 1, 1), ((9000, 10), 1, 1), ((1, 600_000), 1, 1),
              ((1031, 4099), 0, 0), ((700, 49), 1, 1), ((5, 200, 131), 2, 2)]
    for (shape, first, last), dtype, algorithm in itertools.product(shapes, TOLERANCE, ALGORITHMS):
        x, dy = arrays(shape, dtype, "packed", 2)
        y = forward(x, np.empty_like(x), first, last, algorithm)
        results += [y.tobytes(), backward(y, dy, dy, first, last, algorithm).tobytes()]
    x, dy = arrays((300, 200), "float32", "reversed", 2)
    y = forward(x, np.empty((300, 200), np.float32), 1, 1, ACCURATE)
    results += [y.tobytes(), backward(y, dy, y, 1, 1, ACCURATE).tobytes()]
    return b"".join(results)


def test_same_bits_on_every_instruction_set_and_any_number_of_threads():
    variants = {bits("test_softmax", level, threads)
                for level, threads in [("base", "1"), ("v3", "2"), ("v4", "1"), ("v4", "3")]}
    assert len(variants) == 1
