"""Binary cross entropy backward: the tables of ft-dsp 3.5 and 7."""

import numpy as np
import pytest

from tests.kernels.test_soft_margin_loss_backward import bits
from tests.tensor.internals import BinaryCrossEntropyBackward, run, view

X = [0.1, 0.25, 0.5, 0.75, 0.9, 0.999]
Y = [0, 1, 0.5, 1, 0, 1]
W = [1, 2, 0.5, 1.5, 1, 3]
D = [1, 1, 2, 0.5, 1, 1]

FLOAT_BITS = {
    (0, False): "3f8e38e4 c0800000 00000000 bf2aaaab 411ffffe bf8020cd",
    (0, True): "3f8e38e4 c1000000 00000000 bf800000 411ffffe c0403134",
    (1, False): "3ebda130 bfaaaaab 00000000 bee38e3a 40555553 beaad667",
    (1, True): "3ebda130 c02aaaab 00000000 bf2aaaab 40555553 bf8020ce",
    (2, False): "400e38e4 c1000000 00000000 c02aaaab 419ffffe c00020cd",
    (2, True): "400e38e4 c1800000 00000000 c0800000 419ffffe c0c03134",
}
HALF_BITS = {
    (0, False): "3c72 c400 0000 b955 48ff bc01",
    (0, True): "3c72 c800 0000 bc00 48ff c202",
    (1, False): "35ed bd55 0000 b71c 42a9 b557",
    (1, True): "35ed c155 0000 b955 42a9 bc01",
    (2, False): "4072 c800 0000 c155 4cff c001",
    (2, True): "4072 cc00 0000 c400 4cff c602",
}


def backward(x, y, d, w=None, divide_by=1, out=None):
    out = np.full_like(x, 99) if out is None else out
    run("us_binary_cross_entropy_backward", [view(x), view(y), view(w), view(d), view(out)],
        BinaryCrossEntropyBackward(divide_by))
    return out


def oracle(x, y, d, w=None, divide_by=1):
    x, y, d = (np.asarray(a, np.float64) for a in (x, y, d))
    return d / divide_by * (1 if w is None else w.astype(np.float64)) * (x - y) / (x * (1 - x) + 1e-12)


@pytest.mark.parametrize("dtype, table", [("float32", FLOAT_BITS), ("float16", HALF_BITS)])
@pytest.mark.parametrize("reduction, weighted", FLOAT_BITS)
@pytest.mark.parametrize("repeats", [1, 3, 700])
def test_worked_numbers_to_the_bit(dtype, table, reduction, weighted, repeats):
    x, y, w = (np.tile(np.array(a, dtype), repeats) for a in (X, Y, W))
    d = np.tile(np.array(D, dtype), repeats) if reduction == 0 else np.array([2], dtype)
    dx = backward(x, y, d, w if weighted else None, divide_by=6 if reduction == 1 else 1)
    width = 2 * dx.itemsize
    text = " ".join(format(value, f"0{width}x") for value in dx.view(f"u{dx.itemsize}"))
    assert text == " ".join([table[reduction, weighted]] * repeats)


@pytest.mark.parametrize("x, y, expected", [
    (0, 0, 0x00000000), (0, 1, 0xD368D4A5), (1, 0, 0x5368D4A5), (1, 1, 0x00000000), (1e-7, 1, 0xCB18961C),
    (1 - 2**-24, 0, 0x4B7FFEE7),
])
def test_special_values_to_the_bit(x, y, expected):
    x, y = (np.full(20, value, np.float32) for value in (x, y))
    assert (backward(x, y, np.ones(20, np.float32)).view(np.uint32) == expected).all()


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan])
def test_not_finite_gives_nan(x):
    x = np.full(20, x, np.float32)
    assert np.isnan(backward(x, np.zeros(20, np.float32), np.ones(20, np.float32))).all()


def test_zero_gradient_keeps_the_sign():
    dx = backward(np.zeros(20, np.float32), np.ones(20, np.float32), np.zeros(20, np.float32))
    assert (dx == 0).all() and np.signbit(dx).all()


@pytest.mark.parametrize("bits_of_x, y, divide_by, expected", [
    (0x068E, 1, 1, 0xF0E2), (0x068E, 1, 4, 0xE8E2), (0x3C00, 0, 1, 0x7C00), (0, 1, 1, 0xFC00), (0, 0, 1, 0),
])
def test_half_edges(bits_of_x, y, divide_by, expected):
    x = np.full(33, bits_of_x, np.uint16).view(np.float16)
    dx = backward(x, np.full(33, y, np.float16), np.ones(1, np.float16), divide_by=divide_by)
    assert (dx.view(np.uint16) == expected).all()


def test_mean_over_more_than_half_can_count():
    count = 70_001
    x, y = np.full(count, 0.5, np.float16), np.zeros(count, np.float16)
    dx = backward(x, y, np.full(1, 1000, np.float16), divide_by=count)
    assert (dx == np.float16(np.float32(1000) / np.float32(count) * np.float32(2))).all()


@pytest.mark.parametrize("count", [1, 17, 1024, 1025, 50021])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("dtype, tolerance", [("float32", 4e-7), ("float16", 2**-10), ("float64", 1e-15)])
def test_against_float64(count, weighted, one, dtype, tolerance):
    rng = np.random.default_rng(count)
    x = rng.uniform(0.05, 0.95, count).astype(dtype)
    y, w = (rng.uniform(0, 1, count).astype(dtype) for _ in range(2))
    d = rng.uniform(-1, 1, 1 if one else count).astype(dtype)
    w = w if weighted else None
    np.testing.assert_allclose(backward(x, y, d, w), oracle(x, y, d, w), rtol=2 * tolerance, atol=1e-6)


@pytest.mark.parametrize("place", ["x", "y", "d", "w"])
def test_in_place(place):
    rng = np.random.default_rng(1)
    operands = {name: rng.uniform(0.1, 0.9, 40_001).astype(np.float32) for name in "xydw"}
    expected = backward(**operands)
    backward(**operands, out=operands[place])
    assert np.array_equal(operands[place], expected)


def test_output_may_be_the_one_upstream_gradient():
    rng = np.random.default_rng(2)
    x, y = (rng.uniform(0.1, 0.9, 40_001).astype(np.float32) for _ in range(2))
    out = np.full(40_001, 3, np.float32)
    expected = backward(x, y, out[:1].copy(), divide_by=40_001)
    assert np.array_equal(backward(x, y, out[:1], divide_by=40_001, out=out), expected)


def everything():
    rng = np.random.default_rng(3)
    results = []
    for dtype in ("float32", "float16", "float64"):
        for count in (9, 50_003):
            x, y, d, w = (rng.uniform(-0.1, 1.1, count).astype(dtype) for _ in range(4))
            results += [backward(x, y, d, w).tobytes(), backward(x, y, d[:1], None, 7).tobytes()]
    return b"".join(results)


def test_same_bits_on_every_instruction_set_and_any_number_of_threads():
    module = "test_binary_cross_entropy_backward"
    variants = {bits(module, level, threads) for level, threads in [("base", "1"), ("v3", "2"), ("v4", "1"), ("v4", "3")]}
    assert len(variants) == 1
