"""Errors of exp, log, pow and their relatives in units in the last place, against NumPy in a wider type, and the values
that C gives special arguments."""

import ctypes
import functools
import math
import pathlib

import numpy as np
import pytest
from understudy import toolchain

from tests.native import ROOT, check, work_folder

HERE = pathlib.Path(__file__).parent
FLAGS = ["-O2", "-std=gnu11", "-D_GNU_SOURCE", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno", "-shared",
         "-fPIC"]
SPECIAL = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, -1.5, 1e-45, -1e-45, 1e-40, 3e38, -3e38,
                    2**22 + 0.5, 2**23 - 1, 1 - 2**23, 2**23 + 1, -1 - 2**23, 2**24, 2**24 + 2, np.inf, -np.inf, np.nan], np.float32)
PATTERNS = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)


@functools.cache
def library():
    path = work_folder() / "maths.so"
    check([*toolchain.compiler("c"), *FLAGS, f"-I{ROOT / 'src_c'}", HERE / "maths.c", "-o", path, "-lm"])
    return ctypes.CDLL(str(path))


def values(name, x, y=None):
    dtype = np.float32 if name.endswith("float") else np.float64
    x = np.ascontiguousarray(x, dtype)
    y = x if y is None else np.ascontiguousarray(y, dtype)
    out = np.empty_like(x)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, out)]
    getattr(library(), name + "_array")(*pointers, ctypes.c_long(x.size))
    return out


def ulps(actual, exact):
    """The distance in units of the last place of the nearest value; 0 where it cannot be measured but is the same."""
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = exact.astype(actual.dtype)
        same = (actual == nearest) | (np.isnan(actual) & np.isnan(nearest))
        unit = np.spacing(np.minimum(np.abs(nearest), np.finfo(actual.dtype).max)).astype(exact.dtype)
        distance = np.abs(actual.astype(exact.dtype) - exact) / unit
    return np.where(same, np.where(np.isfinite(distance), np.minimum(distance, 0.5), 0),
                    np.where(np.isnan(distance), np.inf, distance))


def assert_within(bound, name, x, exact, y=None):
    error = ulps(values(name, x, y), exact)
    worst = error.argmax()
    assert error[worst] <= bound, (error[worst], x[worst], None if y is None else y[worst], exact[worst])


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def test_exp_float():
    x = np.concatenate([PATTERNS, SPECIAL, np.linspace(-105, 90, 1_000_003).astype(np.float32)])
    assert_within(1.0, "exp_float", x, np.exp(x.astype(np.float64)))


@pytest.mark.parametrize("low, high", [(-60, 60), (-1, 1), (-1e-30, 1e-30)])
def test_expm1_float(low, high):
    x = np.linspace(low, high, 1_000_003).astype(np.float32)
    assert_within(2.0, "expm1_float", x, np.expm1(x.astype(np.float64)))


def test_tanh_float():
    x = np.concatenate([PATTERNS, SPECIAL, np.linspace(-10, 10, 1_000_003).astype(np.float32)])
    assert_within(3.0, "tanh_float", x, np.tanh(x.astype(np.float64)))


@pytest.mark.parametrize("x", [PATTERNS, SPECIAL, np.linspace(0.3, 3, 1_000_003).astype(np.float32),
                               np.arange(0, 2**23, 17, dtype=np.uint32).view(np.float32)],
                         ids=["all bits", "special", "around 1", "subnormal"])
def test_log_float(x):
    assert_within(0.9, "log_float", x, np.log(x.astype(np.float64)))


def test_log1p_float():
    x = np.concatenate([np.linspace(0, 1, 1_000_003), np.exp(np.linspace(-103, 0, 100_003)), [np.nan]])
    x = x.astype(np.float32)
    assert_within(1.3, "log1p_float", x, np.log1p(x.astype(np.float64)))


def test_pow_float_of_special_values():
    x, y = (array.ravel() for array in np.meshgrid(SPECIAL, SPECIAL))
    expected = np.array([c_pow(a, b) for a, b in zip(x, y)])
    actual = values("pow_float", x, y)
    assert ulps(actual, expected).max() <= 1.2
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]))


def c_pow(x, y):
    """math.pow is C's, but raises where C returns NaN or an infinity."""
    try:
        return math.pow(x, y)
    except (ValueError, OverflowError):
        return float(np.power(np.float64(x), np.float64(y)))


def pow_samples():
    rng = np.random.default_rng(3)
    count = 500_000
    x = np.exp(rng.uniform(-80, 80, count)).astype(np.float32)
    yield "whole range", x, rng.uniform(-104, 89, count) / np.log(x.astype(np.float64))
    yield "moderate", rng.uniform(0, 4, count), rng.uniform(-6, 6, count)
    yield "near 1", 1 + rng.uniform(-1e-3, 1e-3, count), rng.uniform(-60_000, 60_000, count)
    yield "integers", rng.integers(-50, 50, count), rng.integers(-20, 20, count)
    for exponent in (2, 3, 0.5, -0.5, 1.5, -1):
        yield f"^{exponent}", rng.uniform(0, 100, count), np.full(count, exponent)
    bits = rng.integers(0, 2**32, (2, count), dtype=np.uint64).astype(np.uint32).view(np.float32)
    yield "all bits", *bits


@pytest.mark.parametrize("x, y", [pytest.param(x, y, id=name) for name, x, y in pow_samples()])
def test_pow_float(x, y):
    x, y = x.astype(np.float32), y.astype(np.float32)
    assert_within(1.2, "pow_float", x, np.power(x.astype(np.float64), y.astype(np.float64)), y)


def test_normal_tail_float():
    """The power is given as a float; the exact tail belongs to that float."""
    x = np.linspace(-13, 13, 100_003).astype(np.float32)
    wide = x.astype(np.float64)
    power = np.exp(-wide * wide / 2)
    exact = np.array([0.5 * math.erfc(abs(value) / math.sqrt(2)) for value in wide]) / power
    given = power.astype(np.float32)
    assert_within(6.0, "normal_tail_float", x, exact * given, given)


@pytest.mark.parametrize("name, function, low, high, bound", [
    ("exp_double", np.exp, -740, 710, 1.0), ("expm1_double", np.expm1, -60, 60, 2.0),
    ("expm1_double", np.expm1, -1, 1, 2.0), ("tanh_double", np.tanh, -20, 20, 3.0), ("log_double", np.log, 0.3, 3, 2.0),
    ("log_double", np.log, 1e-300, 1e300, 2.0)])
def test_double(name, function, low, high, bound):
    x = np.linspace(low, high, 200_003)
    assert_within(bound, name, x, function(x.astype(np.longdouble)))
