"""Every formula of the map family, in every lane it has, against NumPy: float64 from the definition with the error that
its roundings allow, integers exactly; every layout gives the bits of the contiguous arrays."""

import functools
import itertools
import math
import zlib

import numpy as np
import pytest

from tests import in_step
from tests.kernels.families import bfloat, formulas, library, name_of, result_type, run_map, stored
from tests.kernels.map_oracle import ORACLE, gelu
from tests.kernels.test_soft_margin_loss_backward import bits
from tests.tensor.internals import bfloat_of, bfloat_values

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int32", "int64", "uint64", "int8", "uint8", "int16", "uint16", "uint32", "bool"]
COMPLEX = ["complex64", "complex128"]
LANES = {"FLOATS": FLOATS, "REALS": FLOATS + INTEGERS, "INTEGERS": INTEGERS, "NUMBERS": FLOATS + INTEGERS + COMPLEX,
         "FIELD": FLOATS + COMPLEX, "COMPLEX": COMPLEX, "FLOATS_HALF": FLOATS}
PRECISION = {"float32": 24, "float64": 53, "float16": 11, "bfloat16": 8, "complex64": 24, "complex128": 53}
SMALLEST = {"float32": 2.0**-149, "float64": 2.0**-1074, "float16": 2.0**-24, "bfloat16": 2.0**-133}
FORMULAS = formulas()


def dtypes_of(lanes):
    """Of a set of lanes; the bodies that some types have of their own do not count."""
    return LANES[lanes.removesuffix("_NARROW").removesuffix("16")]


CASES = [(name, dtype) for name, (_, _, _, _, lanes) in FORMULAS.items() for dtype in dtypes_of(lanes)]
SPECIAL = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 2.0**-20, 3, -7]


def stored_as(values, dtype):
    with np.errstate(all="ignore"):
        return bfloat(bfloat_of(values)) if dtype == "bfloat16" else np.asarray(values).astype(dtype)


def wide(array):
    """The values of an array in float64 or complex128; integers as they are."""
    if name_of(array) == "bfloat16":
        return bfloat_values(np.asarray(array)).astype(np.float64)
    kinds = {"f": np.float64, "c": np.complex128}
    return array.astype(kinds.get(array.dtype.kind, array.dtype))


def samples(dtype, count, seed, domain=None):
    rng = np.random.default_rng(seed)
    if np.dtype(stored(dtype)).kind in "iub" and dtype != "bfloat16":
        if dtype == "bool":
            return rng.integers(0, 2, count).astype(bool)
        info = np.iinfo(dtype)
        anything = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        small = rng.integers(-4 if info.min else 0, 9, count).astype(dtype)
        edges = np.resize(np.array([info.min, info.max, 0, 1], dtype), count)
        return np.choose(rng.integers(0, 3, count), [anything, small, edges])
    low, high = domain or (-8, 8)
    drawn = rng.uniform(low, high, count)
    if domain is None:
        drawn = np.where(rng.integers(0, 4, count) == 0, rng.choice(SPECIAL, count), drawn)
    if dtype in COMPLEX:
        parts = np.empty(count, np.complex128)
        parts.real, parts.imag = drawn, samples("float64", count, seed + 100, domain)
        drawn = parts
    return stored_as(drawn, dtype)


def numbers_of(name, dtype, count):
    given = ORACLE[name].numbers
    if given is None:
        given = [1] * count if dtype == "bool" else (3, 2, 1, 2, 3)[:count] if dtype in INTEGERS else (1.25, 0.5, 2, 0.75, 1)[:count]
    return given


def call(name, dtype, inputs, shape=None, outputs=None, **more):
    kind, _, count, numbers, _ = FORMULAS[name]
    result = result_type(kind, dtype)
    if outputs is None:
        outputs = [np.zeros(inputs[0].shape if shape is None else shape, stored(result)) for _ in range(count)]
        outputs = [bfloat(array) if result == "bfloat16" else array for array in outputs]
    return run_map(name, inputs, outputs, dtype, numbers_of(name, dtype, numbers), kind=kind, **more)


def assert_close(name, dtype, actual, exact, scale, roundings, complex_part=False):
    """Each of `roundings` is half a unit in the last place of `scale`, then comes the one to the output's type."""
    kind = FORMULAS[name][0]
    if kind == "bool" or dtype in INTEGERS:
        assert np.array_equal(actual, exact.astype(actual.dtype)), name
        return
    if np.iscomplexobj(exact):
        # Where one part of an operand is infinite or NaN, C leaves open what the parts of a product are.
        scale = np.where(np.isfinite(scale), np.abs(scale), np.inf if roundings else 0)
        for part in (np.real, np.imag):
            assert_close(name, "float64" if dtype == "complex128" else "float32", part(actual), part(exact), scale,
                         roundings, True)
        return
    actual = wide(actual) if actual.dtype.kind != "f" or actual.dtype.itemsize != 8 else actual
    compute = 53 if dtype == "float64" or dtype == "complex128" else 24
    final = PRECISION[dtype]
    limit = {"float16": 65504.0, "bfloat16": 3.3895e38}.get(dtype, float(np.finfo("f4" if compute == 24 else "f8").max))
    with np.errstate(all="ignore"):
        allowed = roundings * 2.0**-compute * np.abs(scale)
        allowed = allowed + (2.0**-final * np.abs(exact) * (1 + 2.0**-9) if final < compute else 0)
        allowed = allowed + SMALLEST[dtype if dtype in SMALLEST else "float32"]
        overflows = (np.abs(exact) + allowed >= limit) & (np.isinf(actual) | (np.abs(actual) >= limit * 0.99))
        same = (actual == exact) | (np.isnan(actual) & np.isnan(exact)) | overflows & (np.sign(actual) == np.sign(exact))
        wrong = ~(same | (np.abs(actual - exact) <= allowed) | np.isinf(scale) & complex_part)
    where = np.flatnonzero(wrong)
    assert where.size == 0, (name, dtype, where[:3], actual[where[:3]], exact[where[:3]], allowed[where[:3]])


def test_every_float16_has_its_sigmoid_cross_entropy():
    """Against targets of 0 it is ln(1 + e^x), computed to 2^-20 in float32, and to less where the result is subnormal."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        exact = np.logaddexp(0, x.astype(np.float64))
    finite = np.isfinite(x)
    actual = call("sigmoid_cross_entropy", "float16", [x, np.zeros_like(x)])[0]
    place = np.spacing(exact[finite].astype(np.float16).clip(max=65472)).astype(np.float64)
    assert (np.abs(actual[finite].astype(np.float64) - exact[finite]) <= 0.501 * place).all()
    assert np.isnan(actual[~finite]).all()  # an infinity times 0, too


def test_every_bfloat16_has_its_gelu():
    """It and its slope: right to a hundredth of the last place before they are rounded, tails of 2^-133 among them. Terms of the
    slope, each to 2^-20, cancel at its root."""
    x = bfloat(np.arange(1 << 16, dtype=np.uint16))
    one = bfloat(bfloat_of(np.ones(1 << 16)))
    with np.errstate(all="ignore"):
        values = wide(x)
        cdf = np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))(values)
        density = np.exp(-values * values / 2) / math.sqrt(2 * math.pi)
        slope = cdf + np.where(np.isinf(values), 0, values) * density
        for name, inputs, exact in [("gelu", [x], values * cdf), ("gelu_backward", [one, x], slope)]:
            actual = wide(call(name, "bfloat16", inputs)[0])
            place = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-126))) - 7)
            allowed = 0.51 * place + (2.0**-20 * np.abs(values) * density if name == "gelu_backward" else 0)
            finite = np.isfinite(exact)
            wrong = finite & (np.abs(actual - exact) > allowed)
            assert not wrong.any(), (name, values[wrong][:5], actual[wrong][:5], exact[wrong][:5])
            same = (actual == exact) | np.isnan(actual) & np.isnan(exact)
            assert same[~finite].all(), name


@pytest.mark.parametrize("keeps_nan", [0, 1])
@pytest.mark.parametrize("limit", [0.1, 6, 1e-9, 2.0**-24, 1e9, np.inf, 0, -1, np.nan])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_16_bit_number_is_clipped(dtype, limit, keeps_nan):
    """By its bits, to what the float32 lane gives, which is rounded once."""
    x = np.arange(1 << 16, dtype=np.uint16)
    x = bfloat(x) if dtype == "bfloat16" else x.view(np.float16)
    blank = bfloat(np.zeros_like(x)) if dtype == "bfloat16" else np.zeros_like(x)
    for name, inputs in (("clipped_relu", [x]), ("clipped_relu_backward", [samples(dtype, 1 << 16, 1), x])):
        with np.errstate(all="ignore"):
            floats = [wide(array).astype(np.float32) for array in inputs]
        actual = run_map(name, inputs, [blank], dtype, (limit, keeps_nan))
        expected = run_map(name, floats, [np.zeros(1 << 16, np.float32)], "float32", (limit, keeps_nan))[0]
        with np.errstate(all="ignore"):
            assert plain(actual) == plain([stored_as(expected, dtype)])
            inside = (floats[-1] > 0) & (floats[-1] <= np.float32(limit))
        assert np.array_equal(expected[inside], floats[0][inside], equal_nan=True)


@pytest.mark.parametrize("name", [name for name in FORMULAS if name.startswith("power_") and name.endswith("_backward")])
def test_slopes_of_a_line_of_slope_0_are_0(name):
    """Also where the power is not finite."""
    x, y = samples("float32", 300, 1), samples("float32", 300, 2)
    assert (run_map(name, [x, y], [np.full_like(x, 7)], "float32", (-2, 0, 0))[0] == 0).all()


@pytest.mark.parametrize("name", FORMULAS)
def test_a_result_does_not_depend_on_its_place(name):
    lanes = FORMULAS[name][4]
    for dtype in dtypes_of(lanes):
        if dtype in ORACLE[name].without:
            continue
        inputs = [samples(dtype, 70, seed) for seed in range(FORMULAS[name][1])]
        whole = call(name, dtype, inputs)
        for first, last in [(0, 1), (3, 18), (16, 33), (5, 70)]:
            part = call(name, dtype, [array[first:last].copy() for array in inputs])
            assert plain(part) == plain([array[first:last] for array in whole])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_every_float16_has_its_circular_functions(name):
    """They are reduced in float32: right to a thousandth of the last place before they are rounded."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(x.astype(np.float64))
    finite = np.isfinite(x)
    actual = call(name, "float16", [x])[0]
    place = np.spacing(np.abs(exact[finite]).astype(np.float16)).astype(np.float64)
    assert (np.abs(actual[finite].astype(np.float64) - exact[finite]) <= 0.501 * place).all()
    assert np.isnan(actual[~finite]).all() and (np.signbit(actual) == np.signbit(exact))[x == 0].all()


def test_every_float16_has_its_gelu():
    """It is computed to 2^-20 in float32, and to less where the result is subnormal."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        exact = gelu(x.astype(np.float64))
    finite = np.isfinite(x)
    actual = call("gelu", "float16", [x])[0]
    place = np.spacing(np.abs(exact[finite]).astype(np.float16).clip(max=65472)).astype(np.float64)
    assert (np.abs(actual[finite].astype(np.float64) - exact[finite]) <= 0.501 * place).all()
    assert (np.isnan(actual[~finite]) == ~(x[~finite] == np.inf)).all() and (actual[x == np.inf] == np.inf).all()
    assert (np.signbit(actual) == np.signbit(x))[finite].all()


@pytest.mark.parametrize("name", FORMULAS)
def test_values(name):
    assert name in ORACLE, "a formula without an oracle"
    kind, inputs, _, numbers, lanes = FORMULAS[name]
    oracle = ORACLE[name]
    for dtype in dtypes_of(lanes):
        if dtype in oracle.without:
            continue
        domains = [None, None, None, None] if oracle.domains is None else oracle.domains
        arrays = [samples(dtype, 2063, seed, domain)
                  for seed, domain in zip(itertools.count(zlib.crc32(name.encode()) % 1000),
                                          (*domains, *[None] * 8))][:inputs]  # fmt: skip
        actual = call(name, dtype, arrays)
        with np.errstate(all="ignore"):
            given = [np.asarray(value).astype("float64" if dtype in FLOATS else dtype if dtype in INTEGERS else "complex128")
                     for value in numbers_of(name, dtype, numbers)]
            expected = oracle.function(*[wide(array) for array in arrays], *given)
        expected = expected if isinstance(expected, tuple) and oracle.many else (expected,)
        for one, exact in in_step(actual, expected):
            scale = exact
            if isinstance(exact, tuple):
                exact, scale = exact
            with np.errstate(all="ignore"):
                assert_close(name, dtype, one, np.asarray(exact), np.asarray(scale), oracle.roundings)


def strided(array):
    """The same values with gaps between them."""
    spread = np.zeros((array.size, 3), array.dtype)
    spread[:, 1] = array
    return bfloat(spread)[:, 1] if name_of(array) == "bfloat16" else spread[:, 1]


def plain(arrays):
    """Bytes, with every NaN alike: which of two NaNs an operation returns depends on the order of its operands."""
    parts = []
    for array in arrays:
        values = wide(array)
        nan = np.isnan(values) if values.dtype.kind in "fc" else np.zeros(values.shape, bool)
        # A NaN part of a complex number may leave the other part undefined.
        parts.append(np.where(nan, np.zeros((), array.dtype), np.asarray(array)).tobytes() + nan.tobytes())
    return b"".join(parts)


@pytest.mark.parametrize("name", FORMULAS)
def test_every_layout_gives_the_same_bits(name):
    kind, inputs, outputs, _, lanes = FORMULAS[name]
    for dtype in dtypes_of(lanes):
        if dtype in ORACLE[name].without:
            continue
        for count in (0, 1, 19, 1031):
            arrays = [samples(dtype, count, seed) for seed in range(inputs)]
            expected = plain(call(name, dtype, [array.copy() for array in arrays]))
            gaps = [strided(array) for array in arrays]
            assert plain(call(name, dtype, gaps)) == expected
            result = result_type(kind, dtype)
            blank = np.zeros(count, stored(result))
            spread = [strided(bfloat(blank) if result == "bfloat16" else blank) for _ in range(outputs)]
            assert plain(call(name, dtype, arrays, outputs=spread)) == expected
            if result == dtype:
                copies = [array.copy() for array in arrays]
                places = [bfloat(array) if dtype == "bfloat16" else array for array in copies[:outputs]]
                places += [np.zeros_like(copies[0]) for _ in range(outputs - len(places))]
                assert plain(call(name, dtype, copies, outputs=places)) == expected


@functools.cache
def everything():
    parts = []
    for name, dtype in CASES:
        if dtype not in ORACLE[name].without:
            parts.append(plain(call(name, dtype, [samples(dtype, 300, seed) for seed in range(FORMULAS[name][1])])))
    return b"".join(parts)


def test_same_bits_on_every_instruction_set():
    assert len({bits("test_map_formulas", level, "1") for level in ("base", "v3", "v4")}) == 1


def test_every_formula_is_in_the_library():
    for name in FORMULAS:
        assert hasattr(library(), f"us_map_{name}")
