"""Fourier transforms against NumPy's in float64."""

import math

import numpy
import pytest

from tests.conformance.ftdsp.calls import Input, Output, Value, compute

SIZES = [1, 2, 4, 8, 64, 1024, 32768]


def rows(batch, n, seed=0):
    parts = numpy.random.default_rng(seed).uniform(-1, 1, (2, batch, n))
    return (parts[0] + 1j * parts[1]).astype(numpy.complex64)


def factors(n, direction, mask=0xFF):
    return compute("c64_getw_p" if mask is None else "c64_getw_s",
                   [Output("w", n, numpy.complex64), Value("n", n), Value("direction", direction)],
                   mask)["w"]  # fmt: skip


def transformed(name, x, mask=0xFF, w=None):
    """By the _s form, or by the _p form where the mask is None."""
    batch, n = x.shape
    w = factors(n, int(name == "ifft")) if w is None else w
    parameters = [Input("in", x), Input("w", w), Output("out", x.size, numpy.complex64), Value("batch", batch),
                  Value("n", n), Output("tmp", 2 * x.size, numpy.complex64)]
    symbol = f"c64_{name}_p" if mask is None else f"c64_{name}_s"
    return compute(symbol, parameters, mask)["out"].reshape(x.shape)


@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 360, 1025, 65536])
def test_factors(n, direction):
    w = factors(n, direction)
    angle = 2 * math.pi * numpy.arange(n) / n * (1 if direction else -1)
    error = numpy.array([w.real - numpy.cos(angle), w.imag - numpy.sin(angle)])
    assert (numpy.abs(error) <= 2.0**-25 + 2e-15).all()  # a rounding to float32; the oracle's angle is rounded too
    if n % 4 == 0:
        quarter = 1j if direction else -1j
        assert w[:: n // 4].tolist() == [1, quarter, -1, -quarter]
    for mask in (1, 6, 0x7F, None):
        assert factors(n, direction, mask).tobytes() == w.tobytes()


@pytest.mark.parametrize("batch", [1, 3, 11])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_against_float64(name, n, batch):
    x = rows(batch, n)
    result = transformed(name, x)
    expected = getattr(numpy.fft, name)(x.astype(numpy.complex128))
    # a stage rounds each number by some units of 2^-24, and does not change the sum of the squares otherwise
    bound = 2.0**-24 * 4 * max(1, math.log2(n)) * numpy.linalg.norm(expected, axis=1)
    assert (numpy.linalg.norm(result - expected, axis=1) <= bound).all()
    for mask in (1, 6, 0x80, 0x7F, None):
        assert transformed(name, x, mask).tobytes() == result.tobytes(), mask


@pytest.mark.parametrize("n", SIZES)
def test_one_impulse_gives_the_factors(n):
    """The transform of a 1 at place 1 is w itself, in natural order. w is used as it is given.

    Each of log2 n stages multiplies by a factor that is off by 2^-25 in each part, and rounds two products and a sum.
    """
    impulse = numpy.zeros((1, n), numpy.complex64)
    impulse[0, 1 % n] = 1
    for direction in (0, 1):
        w = factors(n, direction)
        expected = w if n > 1 else numpy.ones(1, numpy.complex64)
        numpy.testing.assert_allclose(transformed("fft", impulse, w=w)[0], expected, rtol=0,
                                   atol=2.25 * 2.0**-24 * math.log2(n))


def test_the_inverse_undoes_the_forward_transform():
    x = rows(5, 4096)
    numpy.testing.assert_allclose(transformed("ifft", transformed("fft", x)), x, rtol=0, atol=2.0**-24 * 4 * 24)
