"""Copies between views, which move elements bit by bit: every size of element, every order of axes, tiles with rests."""

import itertools

import numpy as np
import pytest

from tests.kernels.families import run_map

SHAPES = [(65, 129), (3, 700), (700, 3), (1, 5), (16, 16), (5, 33, 17), (2, 3, 40, 21), (130, 1, 67), (4, 2, 3, 5, 2),
          (300, 2),
          (600, 8, 2, 2), (2, 70001), (16, 1031), (8, 37),
          (2, 130, 65), (17, 3, 2, 2), (4, 70, 130), (3, 9, 300), (40, 3, 50), (2, 5, 6, 90)]  # fmt: skip


def numbers(dtype, shape):
    random = np.random.default_rng(0)
    raw = random.integers(0, 256, int(np.prod(shape)) * np.dtype(dtype).itemsize, np.uint8)
    return raw.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64", "complex128"])
def test_any_order_of_axes(dtype):
    for shape in SHAPES:
        x = numbers(dtype, shape)
        for order in itertools.permutations(range(len(shape))) if len(shape) < 5 else [(4, 3, 2, 1, 0), (2, 0, 4, 1, 3)]:
            expected = np.ascontiguousarray(x.transpose(order))
            (got,) = run_map("copy", [x.transpose(order)], [np.zeros(expected.shape, dtype)], dtype)
            assert got.tobytes() == expected.tobytes(), (shape, order)
            target = np.zeros([2 * size for size in expected.shape], dtype)[tuple(slice(None, None, 2) for _ in shape)]
            (got,) = run_map("copy", [x.transpose(order)], [target], dtype)
            assert np.ascontiguousarray(got).tobytes() == expected.tobytes(), (shape, order, "with gaps")


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
def test_sizes_about_powers_of_two_in_any_order(dtype):
    """Rests of tiles and of groups, of which there are few or one."""
    random, sizes = np.random.default_rng(3), [about for power in (1, 2, 4, 16, 32, 64, 128, 256) for about in
                                               (power - 1, power, power + 1, power + 2) if about > 0]  # fmt: skip
    shapes = [tuple(random.choice(sizes, random.integers(2, 6))) for _ in range(1500)]
    for shape in (shape for shape in shapes if np.prod(shape) < 100_000):
        order = random.permutation(len(shape))
        x = numbers(dtype, shape)[..., :: random.integers(1, 3)]
        expected = np.ascontiguousarray(x.transpose(order))
        (got,) = run_map("copy", [x.transpose(order)], [np.zeros(expected.shape, dtype)], dtype)
        assert got.tobytes() == expected.tobytes(), (shape, order, x.strides)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float64", "complex128"])
def test_backwards_and_repeated(dtype):
    x = numbers(dtype, (37, 130))
    for source in (x[::-1], x[:, ::-1], x.T[::-1, ::-1], np.broadcast_to(x[:1], x.shape), np.broadcast_to(x[:, :1], x.shape),
                   np.broadcast_to(x.T[:, None], (130, 3, 37)), x[::3, ::5].T):  # fmt: skip
        (got,) = run_map("copy", [source], [np.zeros(source.shape, dtype)], dtype)
        assert got.tobytes() == np.ascontiguousarray(source).tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_short_runs_of_many_rows(dtype):
    """Runs of some bytes, of one, two and more axes, that begin and end inside pieces of work."""
    for width in (1, 2, 3, 5, 7, 9, 16, 64, 100):
        x = numbers(dtype, (2000 // width + 3, 5, width))
        wide = np.broadcast_to(x[:, None, :, None], (len(x), 3, 5, 7, width))
        for source in (wide, wide[:, :2], np.broadcast_to(x, (41, *x.shape)), x[:, ::2], np.broadcast_to(x[:, :1], x.shape)):
            for gap in (0, 3):
                target = np.zeros((*source.shape[:-2], source.shape[-2] + gap, width), dtype)[..., :source.shape[-2], :]
                (got,) = run_map("copy", [source], [target], dtype)
                assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(source).tobytes(), (width, source.shape, gap)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float64", "complex128"])
def test_short_lines_across(dtype):
    """Few elements, apart or backwards or one for all, of more lines than are turned together; lines far apart, too."""
    for lines, columns in itertools.product((70, 9000), (2, 3, 5, 17)):
        x = numbers(dtype, (lines, columns + 2))
        far = numbers(dtype, (lines // 2, 4, 2 * columns))[:, 1, ::2]
        for source in (x[:, ::-1], x[:, 1:-1], x[:, ::2], x[::-1, 1:-1], far, np.broadcast_to(x[:, :1], (lines, columns)),
                       np.broadcast_to(x[:1, :columns], (lines, columns))):  # fmt: skip
            for gap in (0, 3):
                around = np.zeros((len(source), source.shape[1] + gap), dtype)
                target = around[:, : source.shape[1]]
                run_map("copy", [source], [target], dtype)
                assert np.ascontiguousarray(target).tobytes() == np.ascontiguousarray(source).tobytes(), (lines, columns, gap)
                assert not around[:, source.shape[1] :].view(np.uint8).any()


@pytest.mark.parametrize("dtype, shape, order", [
    ("float32", (2100, 2048), (1, 0)), ("float16", (4099, 2053), (1, 0)), ("float32", (3, 64, 25007), (0, 2, 1)),
    ("complex128", (1030, 1040), (1, 0)), ("uint8", (5, 48, 75011), (0, 2, 1)), ("float16", (2, 32, 131_075), (0, 2, 1)),
    ("float32", (2112, 2050), (1, 0)), ("float16", (3904, 2210), (1, 0)),
])  # fmt: skip
@pytest.mark.parametrize("beside", [0, 1, 16, 48])
def test_results_that_no_cache_holds(dtype, shape, order, beside):
    """From 16 MiB on: whole lines and parts of lines, on their boundaries and so many bytes beside them (or an element);
    nothing around is written."""
    x = numbers(dtype, shape)
    expected = np.ascontiguousarray(x.transpose(order))
    around = np.zeros(expected.size + 256, dtype)
    offset = -(-(-around.ctypes.data % 64 + beside) // around.itemsize)
    target = around[offset:offset + expected.size].reshape(expected.shape)
    run_map("copy", [x.transpose(order)], [target], dtype)
    assert expected.nbytes >= 1 << 24 and target.tobytes() == expected.tobytes()
    assert not around[:offset].any() and not around[offset + expected.size:].any()
