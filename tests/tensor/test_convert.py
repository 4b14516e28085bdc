"""Element conversion against NumPy (fp16) and the definition of rounding to nearest even (bfloat16)."""

import numpy as np
import pytest

from tests.tensor.internals import DTYPES, bfloat_of, library

ALL_16_BITS = np.arange(65536, dtype=np.uint16)


def load(array, dtype, wide=False, stride=1, count=None):
    count = array.size if count is None else count
    to = np.zeros(count, np.float64 if wide else np.float32)
    function = library().us_load_double if wide else library().us_load_float
    function(to.ctypes.data, array.ctypes.data, DTYPES[dtype], stride, count)
    return to


def store(values, dtype, element, stride=1):
    to = np.zeros(values.size * stride, element)
    function = library().us_store_double if values.dtype == np.float64 else library().us_store_float
    function(to.ctypes.data, DTYPES[dtype], stride, values.ctypes.data, values.size)
    return to[::stride]


def samples(count=400_003):
    """Bit patterns of every kind, and the neighbourhoods of all fp16 and bf16 ties."""
    rng = np.random.default_rng(7)
    patterns = rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32)
    halves = ALL_16_BITS.view(np.float16).astype(np.float32).view(np.uint32)
    ties = np.concatenate([halves + offset for offset in (0xFFF, 0x1000, 0x1001)])
    bfloat_ties = (ALL_16_BITS.astype(np.uint32) << 16) + 0x8000
    every = np.concatenate([patterns, halves, ties, bfloat_ties - 1, bfloat_ties, bfloat_ties + 1])
    return every.astype(np.uint32).view(np.float32)


def same(actual, expected):
    """Equal bits, any NaN for a NaN."""
    nan = np.isnan(expected)
    assert np.array_equal(np.isnan(actual), nan)
    assert np.array_equal(actual[~nan].view(f"u{actual.itemsize}"), expected[~nan].view(f"u{actual.itemsize}"))


@pytest.mark.parametrize("stride", [1, 3])
def test_half_to_float_is_exact_for_every_half(stride):
    halves = np.zeros(65536 * stride, np.uint16)
    halves[::stride] = ALL_16_BITS
    same(load(halves, "float16", stride=stride, count=65536), ALL_16_BITS.view(np.float16).astype(np.float32))
    same(load(halves, "float16", wide=True, stride=stride, count=65536),
         ALL_16_BITS.view(np.float16).astype(np.float64))


@pytest.mark.parametrize("stride", [1, 2])
def test_float_to_half_rounds_to_nearest_even(stride):
    values = samples()
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    same(store(values, "float16", np.uint16, stride).copy().view(np.float16), expected)


def test_double_to_half_rounds_once():
    rng = np.random.default_rng(3)
    halves = ALL_16_BITS.view(np.float16)
    halves = halves[np.isfinite(halves)].astype(np.float64)
    near_ties = np.concatenate([halves * (1 + 2.0**-11) * (1 + d) for d in (0, 2.0**-40, -(2.0**-40))])
    values = np.concatenate([near_ties, rng.standard_normal(10_000) * 10.0 ** rng.integers(-9, 6, 10_000),
                             [np.inf, -np.inf, np.nan, 65519.999, 65520.0, 1e300, -1e300, 5e-324]])
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    same(store(values, "float16", np.uint16).view(np.float16), expected)


@pytest.mark.parametrize("stride", [1, 2])
def test_float_to_bfloat_rounds_to_nearest_even(stride):
    values = samples()
    actual = store(values, "bfloat16", np.uint16, stride)
    assert np.array_equal(actual, bfloat_of(values))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_double_to_bfloat_rounds_once(stride, sign):
    """Halfway between neighbours, subnormal ones too, and a little beside: what a float in between would not show."""
    low = np.arange(0x7F7F, dtype=np.uint32)
    middles = sum((bits << 16).view(np.float32).astype(np.float64) for bits in (low, low + 1)) / 2
    negative = 0x8000 if sign < 0 else 0
    for factor, expected in ((1, low + (low & 1)), (1 + 2.0**-40, low + 1), (1 - 2.0**-40, low)):
        actual = store(sign * middles * factor, "bfloat16", np.uint16, stride)
        assert np.array_equal(actual, (expected | negative).astype(np.uint16))


def test_bfloat_to_float_is_exact():
    expected = (ALL_16_BITS.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(load(ALL_16_BITS, "bfloat16").view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_float_to_integer_truncates_and_saturates(name):
    limits = np.iinfo(name)
    values = np.array([0.0, 1.9, -1.9, 100.5, np.nan, np.inf, -np.inf, 1e30, -1e30])
    expected = [0, 1, max(-1, limits.min), 100, 0, limits.max, limits.min, limits.max, limits.min]
    assert store(values, name, name).tolist() == expected
    assert store(values.astype(np.float32), name, name).tolist() == expected


def test_bool_is_any_value_but_zero():
    assert store(np.array([0.0, -0.0, 0.5, np.nan, -3.0], np.float32), "bool", np.uint8).tolist() == [0, 0, 1, 1, 1]
    assert load(np.array([0, 1, 255], np.uint8), "bool").tolist() == [0, 1, 1]
