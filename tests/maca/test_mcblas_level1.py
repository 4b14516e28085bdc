"""Level 1 of mcBLAS against NumPy in float64."""

import numpy as np
import pytest

from tests.maca.mcblas_support import LETTERS, REAL, TYPES, Host, close, drawn, run, scalar
from understudy.maca import ffi, lib
from tests.maca.runtime_support import made, ok

SIZES = [1, 5, 1000, 20000]
STEPS = [(1, 1), (2, 3), (-1, 1), (1, -2)]


def picked(storage, n, step):
    """The vector that a step picks from memory, as a view."""
    return storage[: n * step : step] if step > 0 else storage[: n * -step : -step][::-1]


def vectors(letter, n, steps, seed=0):
    return [drawn(n * abs(step), LETTERS[letter], seed + i) for i, step in enumerate(steps)]


def reduced(function, n, dtype, *arrays_and_steps):
    result = np.zeros(1, dtype)
    run(function, n, *arrays_and_steps, Host(result))
    return result[0]


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("n", SIZES)
def test_reductions(letter, n):
    prefix = {"C": "Sc", "Z": "Dz"}.get(letter, letter)
    (x,) = vectors(letter, n, (2,))
    view = picked(x, n, 2)
    sizes = np.abs(view.real.astype(np.float64)) + np.abs(view.imag.astype(np.float64))
    real = LETTERS[REAL[letter]]
    close(reduced(f"mcblas{prefix}asum", n, real, x, 2) / n, sizes.sum() / n, real)
    close(reduced(f"mcblas{prefix}nrm2", n, real, x, 2), np.linalg.norm(view.astype(np.complex128)), real, 64)
    assert reduced(f"mcblasI{letter.lower()}amax", n, np.int32, x, 2) == 1 + sizes.argmax()
    assert reduced(f"mcblasI{letter.lower()}amin", n, np.int32, x, 2) == 1 + sizes.argmin()
    for count, step in ((0, 1), (n, 0), (n, -1)):
        assert reduced(f"mcblas{prefix}asum", count, real, x, step) == 0
        assert reduced(f"mcblas{prefix}nrm2", count, real, x, step) == 0
        assert reduced(f"mcblasI{letter.lower()}amax", count, np.int32, x, step) == 0


def test_norms_do_not_overflow():
    for value in (1e300, 1e-300, 0.0):
        assert reduced("mcblasDnrm2", 4, np.float64, np.full(4, value), 1) == pytest.approx(2 * value, rel=1e-15)
    assert np.isnan(reduced("mcblasSnrm2", 3, np.float32, np.float32([1, np.nan, 2]), 1))
    assert np.isinf(reduced("mcblasDnrm2", 3, np.float64, np.float64([1, np.inf, 2]), 1))


def test_the_first_of_equals_and_not_a_number():
    def largest(*values):
        return reduced("mcblasIsamax", len(values), np.int32, np.float32(values), 1)

    assert largest(1, -3, 3) == 2
    assert largest(1, np.nan, 3) == 3
    assert largest(np.nan, 1, 3) == 1
    assert reduced("mcblasIsamin", 3, np.int32, np.float32([np.inf, np.inf, np.inf]), 1) == 1


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("steps", STEPS)
def test_dot_axpy_copy_swap(letter, steps):
    n, dtype = 700, LETTERS[letter]
    x, y = vectors(letter, n, steps)
    xs, ys = picked(x, n, steps[0]).copy(), picked(y, n, steps[1]).copy()
    wide = [v.astype(np.complex128 if letter in "CZ" else np.float64) for v in (xs, ys)]
    for name, expected in ({"dotu": wide[0] @ wide[1], "dotc": wide[0].conj() @ wide[1]} if letter in "CZ"
                           else {"dot": wide[0] @ wide[1]}).items():
        close(reduced(f"mcblas{letter}{name}", n, dtype, x, steps[0], y, steps[1]), expected, dtype, 700)
    alpha = 1.5 - 0.5j if letter in "CZ" else 1.5
    out = y.copy()
    run(f"mcblas{letter}axpy", n, scalar(alpha, dtype), x, steps[0], out, steps[1])
    close(picked(out, n, steps[1]), alpha * wide[0] + wide[1], dtype)
    out = y.copy()
    run(f"mcblas{letter}copy", n, x, steps[0], out, steps[1])
    assert (picked(out, n, steps[1]) == xs).all()
    a, b = x.copy(), y.copy()
    run(f"mcblas{letter}swap", n, a, steps[0], b, steps[1])
    assert (picked(a, n, steps[0]) == ys).all() and (picked(b, n, steps[1]) == xs).all()


@pytest.mark.parametrize("n", [1, 7, 100000])  # more than a block of a thread
def test_a_step_of_0_is_one_element_that_changes_n_times(n):
    x = drawn(n, np.float64, 1).round(2)
    run("mcblasDcopy", n, x, 1, (y := np.zeros(1)), 0)
    assert y[0] == x[-1]
    whole = np.arange(1.0, n + 1)
    run("mcblasDaxpy", n, scalar(2, np.float64), whole, 1, (y := np.array([10.0])), 0)
    assert y[0] == 10 + n * (n + 1)
    run("mcblasDswap", n, (a := x.copy()), 1, (y := np.array([5.0])), 0)
    assert a.tolist() == [5.0, *x[:-1]] and y[0] == x[-1]
    run("mcblasDrot", n, (a := x.copy()), 1, (y := np.array([1.0])), 0, scalar(0, np.float64), scalar(1, np.float64))
    before = np.array([1.0, *-x[:-1]])  # each one is the last one's -x
    assert a.tolist() == before.tolist() and y[0] == -x[-1]


@pytest.mark.parametrize("letter", "CZ")
def test_real_factors_multiply_the_parts_of_complex_numbers_apart(letter):
    dtype, real = LETTERS[letter], LETTERS[REAL[letter]]
    inf = np.inf
    x = np.array([complex(inf, 1), complex(-2, -inf), complex(0.0, -0.0)], dtype)
    run(f"mcblas{letter}{REAL[letter].lower()}scal", 3, scalar(-2, real), (out := x.copy()), 1)
    assert str(out.real.tolist()) == "[-inf, 4.0, -0.0]" and str(out.imag.tolist()) == "[-2.0, inf, 0.0]"
    zeros = np.zeros(3, dtype)
    for function, s in ((f"mcblas{letter}rot", scalar(2j, dtype)), (f"mcblas{letter}{REAL[letter].lower()}rot", scalar(2, real))):
        run(function, 3, (a := x.copy()), 1, (b := zeros.copy()), 1, scalar(3, real), s)
        assert a.real.tolist()[:2] == [inf, -6] and a.imag.tolist()[:2] == [3, -inf]
    assert b.real.tolist()[:2] == [-inf, 4] and b.imag.tolist()[:2] == [-2, inf]  # of the real one


def test_scaling_keeps_the_sign_of_zeros():
    run("mcblasDscal", 2, scalar(1, np.float64), (x := np.array([-0.0, 0.0])), 1)
    assert np.signbit(x).tolist() == [True, False]


def test_a_factor_of_0_on_the_device_reads_no_x():
    own = made("mcblasHandle_t", lib.mcblasCreate)
    ok(lib.mcblasSetPointerMode(own, lib.MCBLAS_POINTER_MODE_DEVICE))
    for alpha, expected in ((0, [1, 2]), (1, [np.nan, np.nan])):
        run("mcblasSaxpy", 2, np.float32([alpha]), np.float32([np.nan, np.nan]), 1, (y := np.float32([1, 2])), 1, on=own)
        np.testing.assert_array_equal(y, expected)
    ok(lib.mcblasDestroy(own))


def test_rotations_from_numbers_at_the_end_of_the_range():
    a, b, c, s = (np.array([v]) for v in (1e308, 1e308, 0.0, 0.0))
    run("mcblasDrotg", *map(Host, (a, b, c, s)))
    np.testing.assert_allclose([*a, *c, *s], [2**0.5 * 1e308, 0.5**0.5, 0.5**0.5], rtol=1e-15)
    a, b, c, s = (np.array([v]) for v in (np.nan, 0.0, 0.0, 0.0))
    run("mcblasDrotg", *map(Host, (a, b, c, s)))
    assert np.isnan([*a, *c]).all()
    values = [np.array([v]) for v in (np.inf, 1.0, 1.0, 1.0)]
    run("mcblasDrotmg", *map(Host, (*values, np.zeros(5))))  # rescaling comes to an end
    assert not np.isfinite(values[0][0])


def test_worked_numbers():
    """mcblas 5."""
    y = np.float32([10, 20, 30, 40, 50])
    run("mcblasSaxpy", 5, scalar(2, np.float32), np.float32([1, 2, 3, 4, 5]), -1, y, 1)
    assert y.tolist() == [20, 28, 36, 44, 52]
    assert reduced("mcblasSdot", 5, np.float32, np.float32([1, 2, 3, 4, 5]), -1, np.float32([10, 20, 30, 40, 50]), 1) == 350
    a, b, c, s = (np.zeros(1, np.float32) for _ in range(4))
    a[0], b[0] = 3, 4
    run("mcblasSrotg", *map(Host, (a, b, c, s)))
    assert (a[0], c[0], s[0]) == (5, np.float32(0.6), np.float32(0.8)) and b[0] == pytest.approx(1.6666667)
    x, y = np.float64([1, 2]), np.float64([3, 4])
    run("mcblasDrot", 2, x, 1, y, 1, scalar(0.6, np.float64), scalar(0.8, np.float64))
    np.testing.assert_allclose([*x, *y], [3, 4.4, 1, 0.8], rtol=1e-15)


@pytest.mark.parametrize("letter", LETTERS)
def test_scal(letter):
    n, dtype = 300, LETTERS[letter]
    (x,) = vectors(letter, n, (3,))
    alpha = 0.5 + 2j if letter in "CZ" else 0.5
    out = x.copy()
    run(f"mcblas{letter}scal", n, scalar(alpha, dtype), out, 3)
    close(out[::3], alpha * x[::3], dtype)
    assert (np.delete(out, np.s_[::3]) == np.delete(x, np.s_[::3])).all()
    run(f"mcblas{letter}scal", n, scalar(alpha, dtype), (same := x.copy()), -1)
    assert (same == x).all()
    if letter in "CZ":
        run(f"mcblas{letter}{REAL[letter].lower()}scal", n, scalar(2, LETTERS[REAL[letter]]), (out := x.copy()), 3)
        close(out[::3], 2 * x[::3], dtype)


@pytest.mark.parametrize("letter", LETTERS)
def test_rotations(letter):
    n, dtype, real = 50, LETTERS[letter], LETTERS[REAL[letter]]
    x, y = vectors(letter, n, (1, 1))
    c, s = 0.6, 0.8j if letter in "CZ" else 0.8
    a, b = x.copy(), y.copy()
    run(f"mcblas{letter}rot", n, a, 1, b, 1, scalar(c, real), scalar(s, dtype))
    close(a, c * x + s * y, dtype)
    close(b, -np.conj(s) * x + c * y, dtype)
    if letter in "CZ":
        a, b = x.copy(), y.copy()
        run(f"mcblas{letter}{REAL[letter].lower()}rot", n, a, 1, b, 1, scalar(0.6, real), scalar(0.8, real))
        close(a, 0.6 * x + 0.8 * y, dtype)
        close(b, -0.8 * x + 0.6 * y, dtype)
    for first, second in ((3, 4), (-4, 3), (0, 2), (2, 0), (0, 0)):
        values = np.array([first, second], dtype) * (1 + 0.5j if letter in "CZ" else 1)
        a, b, cosine, sine = values[:1].copy(), values[1:].copy(), np.zeros(1, real), np.zeros(1, dtype)
        run(f"mcblas{letter}rotg", *map(Host, (a, b, cosine, sine)))
        close(cosine * values[0] + sine * values[1], a, dtype)
        close(-np.conj(sine) * values[0] + cosine * values[1], 0, dtype)
        close(cosine**2 + abs(sine) ** 2, 1, real)


@pytest.mark.parametrize("letter", "SD")
def test_modified_rotations(letter):
    dtype = LETTERS[letter]
    for d1, d2, x1, y1 in [(2, 3, 1, 0.5), (0.5, 3, 0.5, 2), (1e-9, 2e-9, 3, 1), (1e9, 3e9, 1, 2), (1, 0, 2, 3),
                           (-1, 1, 1, 1)]:  # fmt: skip
        values = [np.array([v], dtype) for v in (d1, d2, x1, y1)]
        before = [v[0] for v in values]
        param = np.full(5, 7, dtype)
        run(f"mcblas{letter}rotmg", *map(Host, (*values, param)))
        flag, h11, h21, h12, h22 = param
        matrix = {-1: [[h11, h12], [h21, h22]], 0: [[1, h12], [h21, 1]], 1: [[h11, 1], [-1, h22]], -2: [[1, 0], [0, 1]]}[flag]
        turned = np.array(matrix, np.float64) @ [before[2], before[3]]
        if flag != -2:  # the second component vanishes, the weighted length stays
            close(turned[1] / (abs(before[2]) + abs(before[3])), 0, dtype)
            close(turned[0], values[2][0], dtype)
            if before[0] > 0:
                length = before[0] * before[2] ** 2 + before[1] * before[3] ** 2
                np.testing.assert_allclose(values[0][0] * values[2][0] ** 2, length, rtol=100 * np.finfo(dtype).eps)
        x, y = drawn(9, dtype, 1), drawn(9, dtype, 2)
        a, b = x.copy(), y.copy()
        run(f"mcblas{letter}rotm", 9, a, 1, b, 1, Host(param))
        expected = np.array(matrix, np.float64) @ [x, y]
        close(a / max(1, np.abs(matrix).max()), expected[0] / max(1, np.abs(matrix).max()), dtype)
        close(b / max(1, np.abs(matrix).max()), expected[1] / max(1, np.abs(matrix).max()), dtype)


@pytest.mark.parametrize("letter", "SD")
def test_modified_rotations_by_infinity_end(letter):
    for d1, d2 in ((np.inf, 1), (1, np.inf), (np.inf, np.inf), (np.nan, 1)):
        values = [np.array([v], LETTERS[letter]) for v in (d1, d2, 2, 3)]
        param = np.full(5, 7, LETTERS[letter])
        run(f"mcblas{letter}rotmg", *map(Host, (*values, param)))
        assert param[0] in (-2, -1, 0, 1)


def test_norm_of_parts_whose_sum_overflows():
    for x in (np.complex128([1e308 + 1e308j]), np.complex128([9e307 - 1e308j, 3e307])):
        expected = np.hypot.reduce([*(x.real / 4), *(x.imag / 4)]) * 4
        assert reduced("mcblasDznrm2", x.size, np.float64, x, 1) == pytest.approx(expected, rel=1e-15)
    assert reduced("mcblasDznrm2", 2, np.float64, np.complex128([np.inf, 1]), 1) == np.inf


def test_device_mode_reads_and_writes_scalars_on_the_stream():
    own = made("mcblasHandle_t", lib.mcblasCreate)
    ok(lib.mcblasSetPointerMode(own, lib.MCBLAS_POINTER_MODE_DEVICE))
    x, alpha, result, index = drawn(100, np.float32, 1), np.float32([3]), np.zeros(1, np.float32), np.zeros(1, np.int32)
    expected = 3 * x
    run("mcblasSscal", 100, alpha, x, 1, on=own)
    np.testing.assert_allclose(x, expected, rtol=1e-6)
    run("mcblasSasum", 100, x, 1, result, on=own)
    np.testing.assert_allclose(result, np.abs(x).sum(), rtol=1e-6)
    run("mcblasIsamax", 100, x, 1, index, on=own)
    assert index[0] == 1 + np.abs(x).argmax()
    a, b, c, s = (np.float32([v]) for v in (3, 4, 0, 0))
    run("mcblasSrotg", a, b, c, s, on=own)
    assert (a[0], c[0], s[0]) == (5, np.float32(0.6), np.float32(0.8))
    run("mcblasSscal", 100, Host(np.float32([0.5])), x, 1, on=own)  # a host scalar is read at the call
    np.testing.assert_allclose(x, 0.5 * expected, rtol=1e-6)
    ok(lib.mcblasDestroy(own))


HALVES = ["float16", "bfloat16"]


def stored(values, dtype):
    if dtype != "bfloat16":
        return np.asfortranarray(values.astype(dtype))
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def read(array, dtype):
    return (array.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else array


@pytest.mark.parametrize("dtype", [*HALVES, "float32", "float64"])
def test_types_as_parameters(dtype):
    kind = TYPES[dtype]
    execution = TYPES["float32"] if dtype in HALVES else kind
    x, y = (np.round(drawn(200, np.float64, seed) * 4) for seed in (1, 2))  # small integers: sums are exact
    a, b = stored(x, dtype), stored(y, dtype)
    run("mcblasAxpyEx", 200, Host(stored(np.array([2.0]), dtype)), kind, a, kind, 1, b, kind, 1, execution)
    assert (read(b, dtype) == 2 * x + y).all()
    result = stored(np.zeros(1), dtype)
    ones = stored(np.ones(200), dtype)
    run("mcblasDotEx", 200, a, kind, 1, ones, kind, 1, Host(result), kind, execution)
    assert (read(result, dtype) == x.sum()).all()
    run("mcblasNrm2Ex", 200, ones, kind, 1, Host(result), kind, execution)
    assert (read(result, dtype) == read(stored(np.array([200**0.5]), dtype), dtype)).all()
    run("mcblasScalEx", 200, Host(stored(np.array([0.5]), dtype)), kind, a, kind, 1, execution)
    assert (read(a, dtype) == x / 2).all()
    a, b = stored(x, dtype), stored(y, dtype)
    c, s = Host(stored(np.array([0.0]), dtype)), Host(stored(np.array([1.0]), dtype))
    run("mcblasRotEx", 200, a, kind, 1, b, kind, 1, c, s, kind, execution)
    assert (read(a, dtype) == y).all() and (read(b, dtype) == -x).all()
    if dtype in HALVES:  # a float factor too
        a = stored(x, dtype)
        run("mcblasScalEx", 200, scalar(0.25, np.float32), TYPES["float32"], a, kind, 1, execution)
        assert (read(a, dtype) == x / 4).all()


def test_conjugated_dot_of_a_type():
    x, y = drawn(9, np.complex64, 1), drawn(9, np.complex64, 2)
    result = np.zeros(1, np.complex64)
    run("mcblasDotcEx", 9, x, 4, 1, y, 4, 1, Host(result), 4, 4)
    np.testing.assert_allclose(result, x.conj() @ y, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "kind", "real"), [(np.complex64, lib.MACA_C_32F, lib.MACA_R_32F),
                                                     (np.complex128, lib.MACA_C_64F, lib.MACA_R_64F)])
def test_the_norm_of_complex_numbers_is_computed_in_a_real_type_or_in_theirs(dtype, kind, real):
    x = np.array([3 + 4j, 12j, 84], dtype)
    for execution in (real, kind):
        result = np.zeros(1, x.real.dtype)
        run("mcblasNrm2Ex", 3, x, kind, 1, Host(result), real, execution)
        np.testing.assert_allclose(result, 85, rtol=1e-6)  # 5, 12, 84, 85


def test_the_sample_of_the_reference():
    """mcblas 1: two scalings of a 6 x 5 matrix that was copied there and back."""
    matrix = np.asfortranarray(np.float32([[i * 5 + j + 1 for j in range(5)] for i in range(6)]))  # a(i, j) = (i - 1) * 5 + j
    device = made("void *", lib.mcMalloc, matrix.nbytes)
    from tests.maca.mcblas_support import bytes_of, handle

    ok(lib.mcblasSetMatrix(6, 5, 4, bytes_of(matrix), 6, device, 6))
    at = lambda row, column: ffi.cast("float *", device) + (column - 1) * 6 + row - 1  # noqa: E731
    ok(lib.mcblasSscal(handle(), 3, ffi.new("float *", 16), at(2, 3), 6))
    ok(lib.mcblasSscal(handle(), 5, ffi.new("float *", 12), at(2, 3), 1))
    out = np.zeros_like(matrix, order="F")
    ok(lib.mcblasGetMatrix(6, 5, 4, device, 6, bytes_of(out), 6))
    expected = matrix.copy(order="F")
    for (row, column), value in {(2, 3): 1536, (2, 4): 144, (2, 5): 160, (3, 3): 156, (4, 3): 216, (5, 3): 276,
                                 (6, 3): 336}.items():
        expected[row - 1, column - 1] = value
    assert (out == expected).all()


@pytest.mark.parametrize("function, value", [("amax", 7), ("amin", -0.25)])
@pytest.mark.parametrize("place", [0, 15, 16, 254, 255, 256, 8191, 8192, 20013])
def test_the_first_of_equals_wherever_it_stands(function, place, value):
    """Around the ends of what is compared at a time; what comes before the second one is NaN here and there."""
    x = np.full(20014, 1.0)
    x[[place, -1]] = value
    x[[i for i in (3, 17, 300, 8200) if i != place]] = np.nan
    assert reduced(f"mcblasId{function}", len(x), np.int32, x, 1) == place + 1
