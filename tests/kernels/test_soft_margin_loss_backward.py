"""Soft margin backward: numbers of aclnn-ops 1.5 and 1.6, float64 as oracle, every layout, every instruction set."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.kernels.families import bfloat, run_map
from tests.tensor.internals import bfloat_of, bfloat_values

EDGES = [88.0, -88.0, -88.7, -88.8, -100, 100, 0, np.inf, -np.inf, np.nan]
AT_EDGES = [-6.0546015e-39, -1, -1, np.nan, np.nan, -3.78350585e-44, -0.5, -0.0, np.nan, np.nan]


def backward(g, x, y, out=None, promoted="float32", factor=1.0):
    if out is None:
        out = np.full(np.broadcast_shapes(g.shape, x.shape, y.shape), 99, promoted)
    return run_map("soft_margin_loss_backward", [g, x, y], [out], promoted, [factor])[0]


def oracle(g, x, y, factor=1.0):
    g, x, y = (np.asarray(a, np.float64) for a in (g, x, y))
    return factor * g * -y / (1 + np.exp(x * y))


@pytest.mark.parametrize("count", [10, 13, 16, 70, 2063])
def test_edges(count):
    """Also where the loop over whole vectors and the loop over the rest meet."""
    x = np.resize(np.array(EDGES, np.float32), count)
    one = np.ones(count, np.float32)
    expected = np.resize(np.array(AT_EDGES, np.float32), count)
    actual = backward(one, x, one)
    assert np.array_equal(np.isnan(actual), np.isnan(expected))
    assert np.array_equal(np.signbit(actual)[~np.isnan(actual)], np.signbit(expected)[~np.isnan(expected)])
    np.testing.assert_allclose(actual, expected, rtol=2e-7)


def test_subnormals_to_the_last_bit():
    x = np.array([88.0, 100.0], np.float32)
    one = np.ones(2, np.float32)
    expected = (-1 / (1 + np.exp(x.astype(np.float64)))).astype(np.float32)
    assert np.array_equal(backward(one, x, one).view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("place", range(3))
def test_nan_propagates_with_any_payload(place):
    operands = [np.ones(40, np.float32) for _ in range(3)]
    operands[place][:] = np.arange(0x7FC00000, 0x7FC00028, dtype=np.uint32).view(np.float32)
    assert np.isnan(backward(*operands)).all()


def test_half_rounds_once_per_rounding_of_the_vendor():
    g = np.array([1, 0.5, -2, 3], np.float16)
    x = np.array([0.0999755859375, -0.7001953125, 1.2998046875, 20], np.float16)
    y = np.array([1, -1, 1, 1], np.float16)
    out = backward(g, x, y, promoted="float16")
    assert [hex(bits) for bits in out.view(np.uint16)] == ["0xb79a", "0x314f", "0x36db", "0x8000"]
    wide = backward(g, x, y, out=np.zeros(4, np.float32), promoted="float16")
    assert np.array_equal(wide, out.astype(np.float32))


@pytest.mark.parametrize("dtype, tolerance", [("float32", 4e-7), ("float16", 2**-10), ("float64", 1e-14)])
@pytest.mark.parametrize("count", [1, 15, 17, 1023, 1025, 16385, 50021])
def test_against_float64(dtype, tolerance, count):
    rng = np.random.default_rng(count)
    g, x, y = (rng.uniform(-3, 3, count).astype(dtype) for _ in range(3))
    np.testing.assert_allclose(backward(g, x, y, promoted=dtype), oracle(g, x, y), rtol=tolerance, atol=1e-7)


@pytest.mark.parametrize("count", [5, 1000, 40001])
def test_bfloat(count):
    rng = np.random.default_rng(count)
    g, x, y = (bfloat(bfloat_of(rng.uniform(-3, 3, count))) for _ in range(3))
    out = backward(g, x, y, bfloat(np.zeros(count, np.uint16)), "bfloat16")
    expected = oracle(*(bfloat_values(a) for a in (g, x, y)))
    np.testing.assert_allclose(bfloat_values(out), expected, rtol=2**-8 * 1.01, atol=1e-30)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_strided_is_bitwise_as_contiguous(dtype):
    rng = np.random.default_rng(5)
    shape = (3, 37, 65)
    g, x, y = (rng.uniform(-3, 3, shape).astype(dtype) for _ in range(3))
    expected = backward(g, x, y, promoted=dtype)
    storage = np.full((65, 74, 3), 7, dtype)
    out = storage[:, ::2, :].transpose(2, 1, 0)[:, ::-1]
    backward(g.transpose(2, 0, 1).copy().transpose(1, 2, 0), x[::-1].copy()[::-1], y, out=out, promoted=dtype)
    assert np.array_equal(out, expected)
    assert (storage[:, 1::2] == 7).all()


@pytest.mark.parametrize("shapes", [((), (5, 1), (1, 3)), ((1,), (4000,), (4000,)), ((3, 1, 7), (5, 7), (1,)), ((),) * 3])
def test_broadcast(shapes):
    rng = np.random.default_rng(6)
    g, x, y = (np.asarray(rng.uniform(-2, 2, shape), np.float32) for shape in shapes)
    np.testing.assert_allclose(backward(g, x, y, factor=0.25), oracle(g, x, y, 0.25), rtol=5e-7, atol=1e-7)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_in_place(place, dtype):
    rng = np.random.default_rng(8)
    operands = [rng.uniform(-3, 3, 5003).astype(dtype) for _ in range(3)]
    expected = backward(*operands, promoted=dtype)
    backward(*operands, out=operands[place], promoted=dtype)
    assert np.array_equal(operands[place], expected)


def test_empty():
    empty = np.zeros((3, 0), np.float32)
    assert backward(empty, empty, empty).shape == (3, 0)


BITS = """
import hashlib
import numpy as np
from tests.kernels import {module}
print(hashlib.sha256({module}.everything()).hexdigest())
"""


def bits(module, level, threads):
    environment = dict(os.environ, UNDERSTUDY_ISA=level, UNDERSTUDY_THREADS=threads)
    script = BITS.format(module=module)
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def everything():
    """Bytes of many results: to be the same on every instruction set and with any number of threads."""
    rng = np.random.default_rng(9)
    results = []
    for dtype, count in itertools.product(("float32", "float16", "float64"), (7, 100, 70001)):
        g, x, y = (rng.normal(0, 8, count).astype(dtype) for _ in range(3))
        results.append(backward(g, x, y, promoted=dtype).tobytes())
    sweep = np.linspace(-110, 110, 100_001).astype(np.float32)
    one = np.ones_like(sweep)
    results.append(backward(one, sweep, one).tobytes())
    return b"".join(results)


def test_same_bits_on_every_instruction_set_and_any_number_of_threads():
    module = "test_soft_margin_loss_backward"
    variants = {bits(module, level, threads) for level, threads in [("base", "1"), ("v3", "2"), ("v4", "1"), ("v4", "3")]}
    assert len(variants) == 1
