"""The functions of kernels/maths: errors in units of the last place (ULP) against the C library's long double
functions, or series in long double where it has none; what C gives special arguments; the same bits on every
instruction set."""

import ctypes
import functools
import pathlib

import numpy as np
import pytest
from understudy import toolchain

from tests.native import ROOT, check, work_folder

HERE = pathlib.Path(__file__).parent
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno", "-shared",
         "-fPIC"]
REALS = {"float": np.float32, "double": np.float64}
COMPLEX = {"float": np.complex64, "double": np.complex128}
EPSILON = {"float": 2.0**-24, "double": 2.0**-53}
COUNT = 20_000
SPECIAL = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, -1.5, 4, 8, 10, 20, -20, 100, -100, 1000, -1000,
                    1e-45, -1e-45, 1e-40, 3e38, -3e38, 1e-310, -1e-310, 1e308, -1e308, 2**22 + 0.5, 2**23 - 1,
                    1 - 2**23, 2**23 + 1, -1 - 2**23, 2**24, 2**24 + 2, 2**52 + 1, 2**53, np.inf, -np.inf,
                    np.nan])  # fmt: skip

# Bounds in ULP for float and double, interval for float, and for double where it is another one.
EVERYWHERE = {  # every argument; the interval is only sampled more closely
    "exp": (1, 1, (-110, 95), (-750, 720)),
    "exp2": (1, 1, (-152, 130), (-1080, 1030)),
    "expm1": (1.5, 2, (-20, 90), (-40, 712)),
    "log": (1, 1, (0, 4)),
    "log2": (1, 1, (0, 4)),
    "log10": (1, 1, (0, 4)),
    "log1p": (1.5, 1.5, (-1, 4)),
    "rsqrt": (1.5, 1.5, (0, 10)),
    "sin": (0.6, 1, (-20, 20)),
    "cos": (0.6, 1, (-20, 20)),
    "tan": (0.7, 2, (-20, 20)),
    "sin_pi": (0.6, 1.5, (-10, 10)),
    "cos_pi": (0.6, 1.5, (-10, 10)),
    "sinc": (0.6, 3, (-10, 10)),
    "asin": (1.5, 1.5, (-1.1, 1.1)),
    "acos": (1.5, 1.5, (-1.1, 1.1)),
    "atan": (2.5, 2.5, (-20, 20)),
    "sinh": (2.5, 2.5, (-95, 95), (-715, 715)),
    "cosh": (2, 2, (-95, 95), (-715, 715)),
    "tanh": (2.5, 2.5, (-12, 12), (-22, 22)),
    "asinh": (3, 3, (-20, 20)),
    "acosh": (3, 3, (1, 20)),
    "atanh": (3, 3, (-1.1, 1.1)),
    "erf": (1.5, 1.5, (-6, 6)),
    "erfc": (4, 4, (-6, 11), (-7, 28)),
    "erfinv": (3.5, 3, (-1, 1)),
    "normal_cdf": (5, 5.5, (-15, 10), (-39, 10)),
    "bessel_i0": (0.6, 4, (-95, 95), (-715, 715)),
    "sigmoid": (2.5, 2.5, (-110, 30), (-750, 40)),
    "log_sigmoid": (2, 2, (-110, 110), (-750, 750)),
    "softplus": (2, 2, (-110, 110), (-750, 750)),
}
# Within the interval: of the interval's lower end on, e^-|x| is a normal number.
WITHIN = {
    "log1p_of_fraction": (1.5, 1.5, (0, 1)),
    "silu": (3, 3, (-87, 200), (-708, 900)),
    "mish": (4, 4, (-87, 200), (-708, 900)),
    "gelu": (6, 6, (-13, 200), (-37.5, 900)),
    # 3 ULP and 3 times the exponent, which is 6.7 here
    "gelu_tanh": (23, 23, (-3, 200)),
}
# Within the interval, relative to the larger of the result and 1: they have roots.
NEAR_ROOTS = {
    "silu_slope": (4, 4, (-87, 200), (-708, 900)),
    "mish_slope": (6, 6, (-87, 200), (-708, 900)),
    "gelu_slope": (6, 6, (-13, 200), (-37.5, 900)),
    "gelu_tanh_slope": (12, 12, (-9, 200), (-19, 200)),
    "lgamma": (3, 5, (0, 40)),
    "digamma": (1, 20, (0, 40)),
}
OF_TWO = {"pow": (1.2, 1.2), "atan2": (2.5, 2.5), "fmod": (0, 0), "floor_mod": (0.5, 0.5)}
# Bounds in ULP of the absolute value, for double; those of float are 1, since they compute in double.
OF_COMPLEX = {
    "abs": 1.5, "sqrt": 3, "exp": 3, "log": 4, "log2": 4, "log10": 4, "log1p": 4, "sin": 5, "cos": 5, "tan": 8,
    "sinh": 5, "cosh": 5, "tanh": 8, "asin": 8, "acos": 8, "atan": 8, "asinh": 8, "acosh": 8, "atanh": 8,
    "mul": 2, "div": 4,
}  # fmt: skip


@functools.cache
def library(*flags):
    path = work_folder() / f"maths{'_'.join(flags).replace('=', '_')}.so"
    check([*toolchain.compiler("c"), *FLAGS, *flags, f"-I{ROOT / 'src_c'}", HERE / "maths.c", "-o", path, "-lm"])
    return ctypes.CDLL(str(path))


def call(kind, name, type_name, x, y=None, of=None):
    """The values of a function, or their errors in ULP."""
    dtype = (COMPLEX if name.startswith("complex_") else REALS)[type_name]
    x = np.ascontiguousarray(x, dtype)
    y = x if y is None else np.ascontiguousarray(y, dtype)
    out = np.empty(x.size, np.float64 if kind == "errors" else dtype)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, out)]
    getattr(of or library("-O1"), f"{name}_{type_name}_{kind}")(*pointers, ctypes.c_long(x.size))
    return out


def any_bits(type_name, count=COUNT, seed=3):
    generator = np.random.default_rng(seed)
    if type_name == "float":
        return generator.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return generator.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)


def small_numbers():
    generator = np.random.default_rng(4)
    return generator.uniform(-1, 1, COUNT) * np.exp(generator.uniform(-40, 0, COUNT))


def interval(row, type_name):
    return row[-1] if type_name == "double" else row[2]


def cases(table):
    return [pytest.param(name, type_name, *row[:2], interval(row, type_name), id=f"{name}-{type_name}")
            for name, row in table.items() for type_name in REALS]  # fmt: skip


def assert_within(bound, errors, *arguments):
    worst = errors.argmax()
    assert errors[worst] <= bound, (errors[worst], [array[worst] for array in arguments])


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("name, type_name, of_float, of_double, bounds", cases(EVERYWHERE))
def test_every_argument(name, type_name, of_float, of_double, bounds):
    x = np.concatenate([np.linspace(*bounds, COUNT), small_numbers(), any_bits(type_name), SPECIAL])
    x = (x[::10] if name in ("bessel_i0", "erfinv") else x).astype(REALS[type_name])
    assert_within(of_float if type_name == "float" else of_double, call("errors", name, type_name, x), x)


def samples_within(bounds, near, type_name):
    low, high = bounds
    x = np.concatenate([np.linspace(low, high, COUNT), np.linspace(max(low, -5), near, COUNT)])
    return x.astype(REALS[type_name])


@pytest.mark.parametrize("name, type_name, of_float, of_double, bounds", cases(WITHIN))
def test_within_an_interval(name, type_name, of_float, of_double, bounds):
    x = samples_within(bounds, 1, type_name)
    assert_within(of_float if type_name == "float" else of_double, call("errors", name, type_name, x), x)


@pytest.mark.parametrize("name, type_name, of_float, of_double, bounds", cases(NEAR_ROOTS))
def test_around_roots(name, type_name, of_float, of_double, bounds):
    x = samples_within(bounds, 3, type_name)
    values = call("values", name, type_name, x)
    size = np.maximum(np.abs(values), np.finfo(values.dtype).tiny)
    units = call("errors", name, type_name, x)
    # Units of the result, or of a number just below 1.
    spacing = np.where(np.isfinite(size), np.spacing(size).astype(np.float64), 0)
    errors = np.where(units == 0, 0, np.minimum(units, units * spacing / EPSILON[type_name]))
    assert_within(of_float if type_name == "float" else of_double, errors, x)


@pytest.mark.parametrize("type_name", REALS)
@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_gamma_of_negative_numbers(name, type_name):
    """The error stays small beside the terms that cancel: the result at |x| and the reflection's."""
    x = np.concatenate([np.linspace(-30, 0, COUNT), np.linspace(-3.3, -0.01, COUNT)]).astype(REALS[type_name])
    x = x[np.abs(x - np.rint(x)) > 1e-3]
    values = call("values", name, type_name, x).astype(np.float64)
    units = call("errors", name, type_name, x)
    of_size = np.abs(call("values", name, "double", np.abs(x)))
    terms = np.maximum(np.abs(values), of_size) + np.pi / np.abs(x - np.rint(x))
    spacing = np.spacing(np.abs(values).astype(REALS[type_name])).astype(np.float64)
    errors = units * spacing / (terms * EPSILON[type_name])
    assert_within(8, errors, x)


def special_cases(name):
    expected = {
        "lgamma": {0.0: np.inf, 1.0: 0.0, 2.0: 0.0, -1.0: np.inf, np.inf: np.inf, -np.inf: np.inf},
        "digamma": {0.0: -np.inf, -1.0: np.nan, np.inf: np.inf, -np.inf: np.nan},
        "silu_slope": {np.inf: 1, -np.inf: 0}, "gelu_slope": {np.inf: 1, -np.inf: 0},
        "gelu_tanh_slope": {np.inf: 1, -np.inf: 0}, "mish_slope": {np.inf: 1, -np.inf: 0},
        "silu": {np.inf: np.inf, 0.0: 0}, "gelu": {np.inf: np.inf, 0.0: 0}, "gelu_tanh": {np.inf: np.inf, 0.0: 0},
        "mish": {np.inf: np.inf, 0.0: 0},
    }  # fmt: skip
    return {**expected[name], np.nan: np.nan}


@pytest.mark.parametrize("type_name", REALS)
@pytest.mark.parametrize("name", ["lgamma", "digamma", "silu", "silu_slope", "gelu", "gelu_slope", "gelu_tanh",
                                  "gelu_tanh_slope", "mish", "mish_slope"])  # fmt: skip
def test_special_arguments(name, type_name):
    table = special_cases(name)
    np.testing.assert_array_equal(call("values", name, type_name, list(table)), list(table.values()))


@pytest.mark.parametrize("type_name", REALS)
def test_lgamma_of_a_negative_zero(type_name):
    """Which is a pole as 0 is, and the same key of a table."""
    assert call("values", "lgamma", type_name, [-0.0])[0] == np.inf


@pytest.mark.parametrize("type_name", REALS)
def test_exact_results(type_name):
    low, high = (-149, 128) if type_name == "float" else (-1074, 1024)
    n = np.arange(low, high)
    powers = np.ldexp(1.0, n)
    assert np.array_equal(call("values", "exp2", type_name, n), powers)
    assert np.array_equal(call("values", "log2", type_name, powers), n)
    tens = np.arange(11 if type_name == "float" else 23)
    assert np.array_equal(call("values", "log10", type_name, 10.0**tens), tens)
    halves = np.arange(-100, 100) / 2
    assert np.array_equal(call("values", "sin_pi", type_name, halves), np.sin(np.pi * halves).round())
    assert np.array_equal(call("values", "cos_pi", type_name, halves), np.cos(np.pi * halves).round())


def pairs(name, type_name):
    """x and y of many kinds."""
    generator = np.random.default_rng(5)
    uniform = functools.partial(generator.uniform, size=COUNT)
    yield np.meshgrid(SPECIAL, SPECIAL)
    yield any_bits(type_name, seed=6), any_bits(type_name, seed=7)
    yield uniform(-6, 6), uniform(-6, 6)
    yield generator.integers(-50, 50, COUNT), generator.integers(-20, 20, COUNT)
    if name == "pow":
        x = np.exp(uniform(-80, 80))
        limit = 88 if type_name == "float" else 709
        yield x, uniform(-limit, limit) / np.log(x)
        yield 1 + uniform(-1e-3, 1e-3), uniform(-60_000, 60_000)
        for exponent in (2, 3, 0.5, -0.5, 1.5, -1):
            yield uniform(0, 100), np.full(COUNT, exponent)


@pytest.mark.parametrize("type_name", REALS)
@pytest.mark.parametrize("name", OF_TWO)
def test_two_arguments(name, type_name):
    for x, y in pairs(name, type_name):
        x, y = (np.ravel(array).astype(REALS[type_name]) for array in (x, y))
        assert_within(OF_TWO[name][type_name == "double"], call("errors", name, type_name, x, y), x, y)


def complex_samples(type_name):
    generator = np.random.default_rng(8)
    uniform = functools.partial(generator.uniform, size=COUNT // 2)
    yield uniform(-2, 2) + 1j * uniform(-2, 2)
    yield uniform(-30, 30) + 1j * uniform(-30, 30)
    yield (1 + uniform(-1, 1) * 10.0 ** uniform(-12, -1)) * np.exp(1j * uniform(0, 7))
    signs = generator.choice([-1, 1], (2, COUNT // 2))
    yield signs[0] * 10.0 ** uniform(-30, 30) + 1j * (signs[1] * 10.0 ** uniform(-30, 30))
    yield joined(any_bits(type_name, COUNT // 2, 9), any_bits(type_name, COUNT // 2, 10))
    yield joined(*(array.ravel() for array in np.meshgrid(SPECIAL, SPECIAL)))


def joined(re, im):
    """A sum would turn infinities into NaN."""
    z = np.empty(re.size, COMPLEX["double"])
    z.real, z.imag = re, im
    return z


@pytest.mark.parametrize("type_name", COMPLEX)
@pytest.mark.parametrize("name", OF_COMPLEX)
def test_complex(name, type_name):
    bound = OF_COMPLEX[name] if type_name == "double" else 1
    for x in complex_samples(type_name):
        x = x.astype(COMPLEX[type_name])
        y = np.random.default_rng(11).permutation(x)
        if name == "mul":  # C's own product gives other infinities
            x, y = (z[np.isfinite(x * y) & (np.abs(x) < 1e300)] for z in (x, y))
        if x.size:
            assert_within(bound, call("errors", f"complex_{name}", type_name, x, y), x, y)


def test_complex_pow():
    generator = np.random.default_rng(12)
    x, y = (generator.uniform(-3, 3, COUNT) + 1j * generator.uniform(-3, 3, COUNT) for _ in range(2))
    for type_name in COMPLEX:
        errors = call("errors", "complex_pow", type_name, x, y)
        if type_name == "double":
            errors /= 3 + np.abs(y * np.log(x))
        assert_within(1 if type_name == "float" else 1.5, errors, x, y)
    assert call("values", "complex_pow", "double", [0, 0, 2, 0], [0, 2, 0, -1])[:3].tolist() == [1, 0, 1]



@pytest.mark.parametrize("level", [3, 4])
def test_same_bits_on_every_level(level):
    """Vectorised for newer instruction sets, every function gives what it gives without them, NaN's bits aside."""
    if not library("-O1").has_level(level):
        pytest.skip("the processor has no such instructions")
    newer = library("-O3", f"-march=x86-64-v{level}", "-DVALUES_ONLY")
    for type_name in REALS:
        x = np.concatenate([np.linspace(-30, 30, 1003), small_numbers()[:1000], any_bits(type_name, 3000), SPECIAL])
        y = np.random.default_rng(13).permutation(x)
        z = joined(x, y)
        names = [*EVERYWHERE, *WITHIN, *NEAR_ROOTS, *OF_TWO, *(f"complex_{name}" for name in [*OF_COMPLEX, "pow"])]
        for name in names:
            arguments = (z, z[::-1]) if name.startswith("complex_") else (x, y)
            expected, actual = (call("values", name, type_name, *arguments, of=of) for of in (None, newer))
            same = bits(expected) == bits(actual)
            assert same.all(), (name, type_name, [array[~same][:3] for array in (*arguments, expected, actual)])


def bits(values):
    """All NaNs are one."""
    parts = values.view(values.real.dtype).reshape(values.size, -1)
    parts = np.where(np.isnan(parts), np.nan, parts)
    return parts.view(f"V{values.dtype.itemsize}").ravel()
