"""Levels 2 and 3 of mcBLAS and its extensions against NumPy in float64."""

import itertools

import numpy as np
import pytest

from tests.conformance.harness import run_python
from tests.maca.mcblas_support import C, LEFT, LETTERS, LOWER, N, REAL, RIGHT, TYPES, UPPER, Device, Host, T, close, drawn, op, \
    run, scalar
from tests.maca.runtime_support import made, ok
from understudy.maca import ffi, lib

SIZE = 9
ALPHA = {"S": 1.5, "D": 1.5, "C": 1.5 - 0.5j, "Z": 1.5 - 0.5j}
BETA = {"S": -0.5, "D": -0.5, "C": -0.5 + 1j, "Z": -0.5 + 1j}


def wide(array):
    return np.asarray(array).astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def factors(letter):
    return scalar(ALPHA[letter], LETTERS[letter]), scalar(BETA[letter], LETTERS[letter])


def matrix(letter, rows, columns, seed, padding=2):
    """A matrix in memory whose columns are longer than it is."""
    return drawn((rows + padding, columns), LETTERS[letter], seed)


def triangle(full, uplo, diag=0, hermitian=False, whole=False):
    """What a function sees of a matrix of which it reads one triangle."""
    part = np.tril(full) if uplo == LOWER else np.triu(full)
    if whole:
        other = part.conj().T if hermitian else part.T
        diagonal = np.diag(np.diag(part).real if hermitian else np.diag(part))
        return part + other - np.diag(np.diag(other)) if not hermitian else \
            part - np.diag(np.diag(part)) + other - np.diag(np.diag(other)) + diagonal
    return part - np.diag(np.diag(part)) + np.eye(len(full)) if diag else part


def packed(full, uplo):
    n = len(full)
    return np.concatenate([full[j:, j] if uplo == LOWER else full[: j + 1, j] for j in range(n)])


def band(full, below, above):
    """The diagonals of a matrix as rows."""
    m, n = full.shape
    stored = np.full((below + above + 1, n), 99, full.dtype, order="F")
    for i, j in itertools.product(range(m), range(n)):
        if -above <= i - j <= below:
            stored[above + i - j, j] = full[i, j]
    return stored


def of_band(full, below, above):
    i, j = np.indices(full.shape)
    return np.where((i - j <= below) & (j - i <= above), full, 0)


# ---- level 2 ----


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("trans", [N, T, C])
def test_gemv_and_gbmv(letter, trans):
    m, n, dtype = 7, 5, LETTERS[letter]
    a = matrix(letter, m, n, 1)
    rows, columns = (m, n) if trans == N else (n, m)
    for incx, incy in ((1, 1), (2, -1), (-1, 3)):
        x, y = drawn(columns * abs(incx), dtype, 2), drawn(rows * abs(incy), dtype, 3)
        xs = (x[::incx] if incx > 0 else x[::-1])[:columns]
        ys = lambda v: v[::incy] if incy > 0 else v[::-1]  # noqa: B023, E731
        out = y.copy()
        run(f"mcblas{letter}gemv", trans, m, n, factors(letter)[0], a, m + 2, x, incx, factors(letter)[1], out, incy)
        close(ys(out), ALPHA[letter] * op(wide(a[:m]), trans) @ wide(xs) + BETA[letter] * wide(ys(y)), dtype)
        out = y.copy()
        run(f"mcblas{letter}gbmv", trans, m, n, 2, 1, factors(letter)[0], band(a[:m], 2, 1), 4, x, incx,
            factors(letter)[1], out, incy)
        close(ys(out), ALPHA[letter] * op(wide(of_band(a[:m], 2, 1)), trans) @ wide(xs) + BETA[letter] * wide(ys(y)), dtype)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("uplo", [LOWER, UPPER])
def test_symmetric_products_with_vectors(letter, uplo):
    n, dtype = SIZE, LETTERS[letter]
    a, x, y = matrix(letter, n, n, 1), drawn(2 * n, dtype, 2), drawn(n, dtype, 3)
    alpha, beta = factors(letter)

    def check(function, whole, *arguments):
        out = y.copy()
        run(f"mcblas{letter}{function}", uplo, n, *arguments, x, 2, beta, out, -1)
        close(out[::-1], ALPHA[letter] * whole @ wide(x[::2]) + BETA[letter] * wide(y[::-1]), dtype)

    symmetric, hermitian = (triangle(wide(a[:n]), uplo, whole=True, hermitian=h) for h in (False, True))
    check("symv", symmetric, alpha, a, n + 2)
    own = hermitian if letter in "CZ" else symmetric
    kind = "h" if letter in "CZ" else "s"
    if letter in "CZ":
        check("hemv", hermitian, alpha, a, n + 2)
    lower, upper = (2, 0) if uplo == LOWER else (0, 2)
    check(f"{kind}bmv", of_band(own, 2, 2), 2, alpha, band(a[:n], lower, upper), 3)
    check(f"{kind}pmv", own, alpha, packed(a[:n], uplo))


@pytest.mark.parametrize("letter", LETTERS)
def test_rank_one_of_general_matrices(letter):
    m, n, dtype = 6, 4, LETTERS[letter]
    x, y = drawn(2 * m, dtype, 1), drawn(n, dtype, 2)
    for function in ("geru", "gerc") if letter in "CZ" else ("ger",):
        a = matrix(letter, m, n, 3)
        expected = wide(a[:m]) + ALPHA[letter] * np.outer(wide(x[::2]), wide(y[::-1]).conj() if function == "gerc"
                                                          else wide(y[::-1]))
        run(f"mcblas{letter}{function}", m, n, factors(letter)[0], x, 2, y, -1, a, m + 2)
        close(a[:m], expected, dtype)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("uplo", [LOWER, UPPER])
def test_rank_updates_of_triangles(letter, uplo):
    n, dtype, real = SIZE, LETTERS[letter], LETTERS[REAL[letter]]
    x, y = drawn(n, dtype, 1), drawn(n, dtype, 2)
    inside = np.tril(np.ones((n, n), bool)) if uplo == LOWER else np.triu(np.ones((n, n), bool))
    alpha = ALPHA[letter]

    def check(function, update, *arguments, hermitian=False, pack=False):
        a = matrix(letter, n, n, 3, 0 if pack else 2)
        if hermitian:
            a[range(n), range(n)] = a[range(n), range(n)].real
        expected = np.where(inside, wide(a[:n]) + update, wide(a[:n]))
        place = packed(a, uplo) if pack else a
        run(f"mcblas{letter}{function}", uplo, n, *arguments, place, *([] if pack else [n + 2]))
        close(place if pack else a[:n], packed(expected, uplo) if pack else expected, dtype)

    xs, ys = wide(x), wide(y)
    check("syr", alpha * np.outer(xs, xs), factors(letter)[0], x, 1)
    check("syr2", alpha * (np.outer(xs, ys) + np.outer(ys, xs)), factors(letter)[0], x, 1, y, 1)
    if letter in "CZ":
        one = 1.5 * np.outer(xs, xs.conj())
        two = alpha * np.outer(xs, ys.conj()) + np.conj(alpha) * np.outer(ys, xs.conj())
        check("her", one, scalar(1.5, real), x, 1, hermitian=True)
        check("her2", two, factors(letter)[0], x, 1, y, 1, hermitian=True)
        check("hpr", one, scalar(1.5, real), x, 1, hermitian=True, pack=True)
        check("hpr2", two, factors(letter)[0], x, 1, y, 1, hermitian=True, pack=True)
    else:
        check("spr", alpha * np.outer(xs, xs), factors(letter)[0], x, 1, pack=True)
        check("spr2", alpha * (np.outer(xs, ys) + np.outer(ys, xs)), factors(letter)[0], x, 1, y, 1, pack=True)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("uplo, trans, diag", [*itertools.product([LOWER, UPPER], [N, T, C], [0, 1])])
def test_triangular_matrices_and_vectors(letter, uplo, trans, diag):
    n, dtype = SIZE, LETTERS[letter]
    a = matrix(letter, n, n, 1)
    a[range(n), range(n)] += 4
    x = drawn(2 * n, dtype, 2)
    below, above = (2, 0) if uplo == LOWER else (0, 2)
    full = triangle(wide(a[:n]), uplo, diag)
    forms = [("tr", full, (a, n + 2)), ("tb", of_band(full, 2, 2), (2, band(a[:n], below, above), 3)),
             ("tp", full, (packed(a[:n], uplo),))]
    for name, seen, arguments in forms:
        out = x.copy()
        run(f"mcblas{letter}{name}mv", uplo, trans, diag, n, *arguments, out, 2)
        close(out[::2], op(seen, trans) @ wide(x[::2]), dtype, 64)
        product = out.copy()
        run(f"mcblas{letter}{name}sv", uplo, trans, diag, n, *arguments, product, 2)
        close(product[::2], x[::2], dtype, 2000)


# ---- products of general matrices ----


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("transa, transb", [*itertools.product([N, T, C], repeat=2)])
def test_gemm(letter, transa, transb):
    m, n, k, dtype = 5, 7, 6, LETTERS[letter]
    a = matrix(letter, *((m, k) if transa == N else (k, m)), 1)
    b = matrix(letter, *((k, n) if transb == N else (n, k)), 2)
    c = matrix(letter, m, n, 3)
    alpha, beta = factors(letter)
    first, second = op(wide(a[:-2]), transa), op(wide(b[:-2]), transb)
    expected = ALPHA[letter] * first @ second + BETA[letter] * wide(c[:m])
    for function in ("gemm", "gemm3m") if letter in "CZ" else ("gemm",):
        out = c.copy(order="F")
        run(f"mcblas{letter}{function}", transa, transb, m, n, k, alpha, a, len(a), b, len(b), beta, out, m + 2)
        close(out[:m], expected, dtype)
        assert (out[m:] == c[m:]).all()


def pointers(arrays):
    """Arrays on the device, and a device array of their addresses."""
    devices = [Device(array) for array in arrays]
    return devices, np.array([int(ffi.cast("uintptr_t", device.address)) for device in devices], np.uint64)


@pytest.mark.parametrize("letter", [*LETTERS, "H"])
def test_gemm_of_batches(letter):
    m, n, k, count = 3, 4, 5, 6
    dtype = np.float16 if letter == "H" else LETTERS[letter]
    a, b, c = (drawn((count, size), dtype, seed) for seed, size in ((1, m * k), (2, k * n), (3, m * n)))
    a, b, c = (np.ascontiguousarray(x) for x in (a, b, c))
    alpha, beta = 1.5, 0.5

    def expected(i, shared=False):
        left = wide(a[0 if shared else i].reshape(k, m).T)
        return (alpha * left @ wide(b[i].reshape(n, k).T) + beta * wide(c[i].reshape(n, m).T)).T.ravel()

    for function in ["gemm", "gemm3m"] if letter == "C" else ["gemm"]:
        for shared in (False, True):
            out = c.copy()
            run(f"mcblas{letter}{function}StridedBatched", N, N, m, n, k, scalar(alpha, dtype), a, m, 0 if shared else m * k,
                b, k, k * n, scalar(beta, dtype), out, m, m * n, count)
            for i in range(count):
                close(out[i], expected(i, shared), dtype, 32)
        devices, tables = zip(*(pointers(list(x)) for x in (a, b, c.copy())))
        run(f"mcblas{letter}{function}Batched", N, N, m, n, k, scalar(alpha, dtype), tables[0], m, tables[1], k,
            scalar(beta, dtype), tables[2], m, count)
        for i in range(count):
            place = devices[2][i]
            place.end()
            close(place.array, expected(i), dtype, 32)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("trans", [N, T])
def test_gemv_of_batches(letter, trans):
    m, n, count, dtype = 3, 5, 4, LETTERS[letter]
    rows, columns = (m, n) if trans == N else (n, m)
    a, x, y = (np.ascontiguousarray(drawn((count, s), dtype, i)) for i, s in enumerate((m * n, columns, rows)))
    expected = [ALPHA[letter] * op(wide(a[i].reshape(n, m).T), trans) @ wide(x[i]) + BETA[letter] * wide(y[i])
                for i in range(count)]
    alpha, beta = factors(letter)
    out = y.copy()
    run(f"mcblas{letter}gemvStridedBatched", trans, m, n, alpha, a, m, m * n, x, 1, columns, beta, out, 1, rows, count)
    close(out, expected, dtype)
    devices, tables = zip(*(pointers(list(v)) for v in (a, x, y.copy())))
    run(f"mcblas{letter}gemvBatched", trans, m, n, alpha, tables[0], m, tables[1], 1, beta, tables[2], 1, count)
    for device, wanted in zip(devices[2], expected):
        device.end()
        close(device.array, wanted, dtype)


def stored(values, dtype):
    if dtype != "bfloat16":
        return np.asfortranarray(np.asarray(values).astype(dtype))
    bits = np.asfortranarray(values).astype(np.float32).view(np.uint32)
    return np.asfortranarray(((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16))


def read(array, dtype):
    return (array.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else array


MIXED = {"HSH": ("float16", "float16"), "HSS": ("float16", "float32"), "TST": ("bfloat16", "bfloat16"),
         "TSS": ("bfloat16", "float32")}


@pytest.mark.parametrize("name", MIXED)
def test_gemv_of_mixed_types(name):
    """Small integers: sums are exact, and so is the one rounding."""
    given, result = MIXED[name]
    m, n, count = 3, 40, 2
    rng = np.random.default_rng(1)
    a, x = rng.integers(-9, 10, (count, n, m)), rng.integers(-9, 10, (count, n))
    expected = stored(np.einsum("bnm,bn->bm", a, x) * 2.0, result)
    out = stored(np.zeros((count, m)), result).copy()
    out = np.ascontiguousarray(out)
    run(f"mcblas{name}gemvStridedBatched", N, m, n, scalar(2, np.float32), np.ascontiguousarray(stored(a, given)), m, m * n,
        np.ascontiguousarray(stored(x, given)), 1, n, scalar(0, np.float32), out, 1, m, count)
    assert (out == expected).all()
    devices, tables = zip(*(pointers([np.ascontiguousarray(stored(v, kind)) for v in values])
                            for values, kind in ((a, given), (x, given), (np.zeros((count, m)), result))))
    run(f"mcblas{name}gemvBatched", N, m, n, scalar(2, np.float32), tables[0], m, tables[1], 1, scalar(0, np.float32),
        tables[2], 1, count)
    for device, wanted in zip(devices[2], expected):
        device.end()
        assert (device.array == wanted).all()


COMBINATIONS = [("16F", "float16", "float16", "float16"), ("32I", "int32", "int8", "int32"),
                *(("32F", "float32", a, c) for a, c in [("bfloat16", "bfloat16"), ("bfloat16", "float32"),
                                                       ("float16", "float16"), ("float16", "float32"), ("int8", "float32"),
                                                       ("float32", "float32")]),
                ("32F", "complex64", "complex64", "complex64"), ("64F", "float64", "float64", "float64"),
                ("64F", "complex128", "complex128", "complex128"),
                ("32F_FAST_16BF", "float32", "bfloat16", "bfloat16"), ("32F_FAST_TF32", "float32", "float32", "float32"),
                ("32F_PEDANTIC", "float32", "float16", "float32"), ("32I_PEDANTIC", "int32", "int8", "int32")]


@pytest.mark.parametrize("compute, scale, ab, result", COMBINATIONS)
def test_gemm_of_types(compute, scale, ab, result):
    """Small integers, so that every type has the exact sums, rounded once."""
    m, n, k = 8, 4, 12
    rng = np.random.default_rng(2)
    a, b, c = (np.asfortranarray(rng.integers(-9, 10, shape)) for shape in ((m, k), (k, n), (m, n)))
    expected = stored(2 * (a @ b) + 3 * c, result)
    kind = getattr(lib, f"MCBLAS_COMPUTE_{compute}")
    out = stored(c, result)
    run("mcblasGemmEx", N, N, m, n, k, scalar(2, scale), stored(a, ab), TYPES[ab], m, stored(b, ab), TYPES[ab], k,
        scalar(3, scale), out, TYPES[result], m, kind, lib.MCBLAS_GEMM_DEFAULT)
    assert (out == expected).all()
    out = stored(c, result)
    run("mcblasGemmStridedBatchedEx", N, N, m, n, k, scalar(2, scale), stored(a, ab), TYPES[ab], m, 0, stored(b, ab),
        TYPES[ab], k, 0, scalar(3, scale), out, TYPES[result], m, 0, 1, kind, lib.MCBLAS_GEMM_ALGO3_TENSOR_OP)
    assert (out == expected).all()
    devices, tables = zip(*(pointers([x]) for x in (stored(a, ab), stored(b, ab), stored(c, result))))
    run("mcblasGemmBatchedEx", N, N, m, n, k, scalar(2, scale), tables[0], TYPES[ab], m, tables[1], TYPES[ab], k,
        scalar(3, scale), tables[2], TYPES[result], m, 1, kind, lib.MCBLAS_GEMM_DEFAULT)
    devices[2][0].end()
    assert (devices[2][0].array == expected).all()
    if scale in ("float32", "complex64") and compute == "32F":
        out = stored(c, result)
        run(f"mcblas{'C' if scale == 'complex64' else 'S'}gemmEx", N, N, m, n, k, scalar(2, scale), stored(a, ab), TYPES[ab],
            m, stored(b, ab), TYPES[ab], k, scalar(3, scale), out, TYPES[result], m)
        assert (out == expected).all()


def test_complex_products_of_8_bit_integers():
    m, n, k = 4, 4, 8
    rng = np.random.default_rng(3)
    a, b = (np.asfortranarray(rng.integers(-9, 10, (rows, columns)) + 1j * rng.integers(-9, 10, (rows, columns)))
            for rows, columns in ((m, k), (k, n)))
    as_bytes = [np.ascontiguousarray(np.stack([x.real, x.imag], -1).transpose(1, 0, 2).astype(np.int8)) for x in (a, b)]
    out = np.zeros((m, n), np.complex64, order="F")
    run("mcblasCgemmEx", N, N, m, n, k, scalar(1, np.complex64), as_bytes[0], 7, m, as_bytes[1], 7, k,
        scalar(0, np.complex64), out, 4, m)
    assert (out == a @ b).all()
    out[:] = np.nan
    run("mcblasGemmStridedBatchedEx", C, N, k, n, m, scalar(1, np.complex64), as_bytes[0], 7, m, 0,
        np.ascontiguousarray(as_bytes[1][:, :m]), 7, m, 0, scalar(0, np.complex64),
        (wide_out := np.zeros((k, n), np.complex64, order="F")), 4, k, 0, 1, 68, -1)
    assert (wide_out == a.conj().T @ b[:m]).all()


def test_groups():
    sizes = [(2, 3, 4, 2), (5, 1, 3, 1)]
    arrays = [[(drawn((m, k), np.float32, i), drawn((k, n), np.float32, 9 + i), np.zeros((m, n), np.float32, order="F"))
               for i in range(count)] for m, n, k, count in sizes]
    flat = [group for groups in arrays for group in groups]
    devices, tables = zip(*(pointers([group[i] for group in flat]) for i in range(3)))
    host = lambda *values: Host(np.array(values, np.int32))  # noqa: E731
    m, n, k, counts = zip(*sizes)
    run("mcblasGemmGroupedBatchedEx", host(N, N), host(N, N), host(*m), host(*n), host(*k), Host(np.float32([1, 2])),
        tables[0], 0, host(*m), tables[1], 0, host(*k), Host(np.float32([0, 0])), tables[2], 0, host(*m), 2,
        host(*counts), 68)  # fmt: skip
    for device, (a, b, _), factor in zip(devices[2], flat, (1, 1, 2)):
        device.end()
        close(device.array, factor * wide(a) @ wide(b), np.float32)


def test_worked_products():
    """mcblas 7."""
    six = np.arange(1, 7, dtype=np.float32)

    def gemm(transa, transb, lda, ldb, c, alpha=1, beta=0):
        run("mcblasSgemm", transa, transb, 2, 2, 3, scalar(alpha, np.float32), six, lda, six, ldb,
            scalar(beta, np.float32), c, 2)  # fmt: skip
        return c.tolist()

    assert gemm(N, N, 2, 3, np.float32([10, 20, 30, 40]), 2, 0.5) == [49, 66, 113, 148]
    assert gemm(T, N, 3, 3, np.float32([np.nan] * 4)) == [14, 32, 32, 77]
    assert gemm(N, T, 2, 2, np.float32([np.nan] * 4)) == [35, 44, 44, 56]
    b = np.float32([2, 11, 4, 14])
    run("mcblasStrsm", LEFT, LOWER, N, 0, 2, 2, scalar(2, np.float32), np.float32([2, 3, 0, 4]), 2, b, 2)
    assert b.tolist() == [2, 4, 4, 4]


# ---- level 3 ----


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("side, uplo", [*itertools.product([LEFT, RIGHT], [LOWER, UPPER])])
def test_symm(letter, side, uplo):
    m, n, dtype = 5, 7, LETTERS[letter]
    order = m if side == LEFT else n
    a, b, c = matrix(letter, order, order, 1), matrix(letter, m, n, 2), matrix(letter, m, n, 3)
    alpha, beta = factors(letter)
    for function in ("symm", "hemm") if letter in "CZ" else ("symm",):
        whole = triangle(wide(a[:order]), uplo, whole=True, hermitian=function == "hemm")
        product = whole @ wide(b[:m]) if side == LEFT else wide(b[:m]) @ whole
        out = c.copy(order="F")
        run(f"mcblas{letter}{function}", side, uplo, m, n, alpha, a, order + 2, b, m + 2, beta, out, m + 2)
        close(out[:m], ALPHA[letter] * product + BETA[letter] * wide(c[:m]), dtype)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("uplo", [LOWER, UPPER])
def test_products_that_give_a_triangle(letter, uplo):
    n, k, dtype, real = 6, 4, LETTERS[letter], LETTERS[REAL[letter]]
    inside = np.tril(np.ones((n, n), bool)) if uplo == LOWER else np.triu(np.ones((n, n), bool))
    alpha, beta = ALPHA[letter], BETA[letter]

    def check(function, trans, update, factor, first, second, *operands):
        c = matrix(letter, n, n, 3)
        if function.startswith("he"):
            c[range(n), range(n)] = c[range(n), range(n)].real
        expected = np.where(inside, update + factor * wide(c[:n]), wide(c[:n]))
        rows = n if trans == N else k
        arguments = [value for operand in operands for value in (operand, rows + 2)]
        run(f"mcblas{letter}{function}", uplo, trans, n, k, first, *arguments, second, c, n + 2)
        close(c[:n], expected, dtype, 32)

    for trans in (N, T, C):
        shape = (n, k) if trans == N else (k, n)
        a, b = matrix(letter, *shape, 1), matrix(letter, *shape, 2)
        left, right = wide(a[:-2]), wide(b[:-2])
        if not (letter in "CZ" and trans == C):
            x, y = (left, right) if trans == N else (left.T, right.T)
            check("syrk", trans, alpha * x @ x.T, beta, *factors(letter), a)
            check("syr2k", trans, alpha * (x @ y.T + y @ x.T), beta, *factors(letter), a, b)
            check("syrkx", trans, alpha * x @ y.T, beta, *factors(letter), a, b)
        if letter in "CZ" and trans != T:
            x, y = (left, right) if trans == N else (left.conj().T, right.conj().T)
            one = scalar(0.5, real)
            check("herk", trans, 1.5 * x @ x.conj().T, 0.5, scalar(1.5, real), one, a)
            check("her2k", trans, alpha * x @ y.conj().T + np.conj(alpha) * y @ x.conj().T, 0.5, factors(letter)[0],
                  one, a, b)  # fmt: skip
            product = alpha * x @ y.conj().T
            product[range(n), range(n)] = product[range(n), range(n)].real
            check("herkx", trans, product, 0.5, factors(letter)[0], one, a, b)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("side, uplo, trans, diag", [*itertools.product([LEFT, RIGHT], [LOWER, UPPER], [N, T, C], [0, 1])])
def test_triangular_matrices(letter, side, uplo, trans, diag):
    m, n, dtype = 5, 4, LETTERS[letter]
    order = m if side == LEFT else n
    a, b = matrix(letter, order, order, 1), matrix(letter, m, n, 2)
    a[range(order), range(order)] += 4
    full = op(triangle(wide(a[:order]), uplo, diag), trans)
    alpha = ALPHA[letter]
    product = alpha * (full @ wide(b[:m]) if side == LEFT else wide(b[:m]) @ full)
    out = np.full_like(b, np.nan)
    run(f"mcblas{letter}trmm", side, uplo, trans, diag, m, n, factors(letter)[0], a, order + 2, b, m + 2, out, m + 2)
    close(out[:m], product, dtype, 64)
    solution = b.copy(order="F")
    run(f"mcblas{letter}trsm", side, uplo, trans, diag, m, n, factors(letter)[0], a, order + 2, solution, m + 2)
    x = wide(solution[:m])
    close(full @ x if side == LEFT else x @ full, alpha * wide(b[:m]), dtype, 500)
    devices, tables = zip(*(pointers([x, x.copy(order="F")]) for x in (a, b)))
    run(f"mcblas{letter}trsmBatched", side, uplo, trans, diag, m, n, factors(letter)[0], tables[0], order + 2,
        tables[1], m + 2, 2)  # fmt: skip
    for device in devices[1]:
        device.end()
    assert (devices[1][1].array[:m] == solution[:m]).all()


def test_trmm_in_place_and_what_zero_does_not_read():
    a, b = matrix("D", 4, 4, 1, 0), matrix("D", 4, 3, 2, 0)
    place = made("void *", lib.mcMalloc, b.nbytes)
    from tests.maca.mcblas_support import bytes_of, handle

    ok(lib.mcMemcpy(place, bytes_of(b), b.nbytes, lib.mcMemcpyHostToDevice))
    left = Device(a)
    one = ffi.new("double *", 1.0)
    ok(lib.mcblasDtrmm(handle(), LEFT, UPPER, N, 0, 4, 3, one, left.address, 4, place, 4, place, 4))
    out = np.zeros_like(b)
    ok(lib.mcMemcpy(bytes_of(out), place, b.nbytes, lib.mcMemcpyDeviceToHost))
    close(out, np.triu(a) @ b, np.float64)
    out[:] = np.nan
    run("mcblasDtrsm", LEFT, UPPER, N, 0, 4, 3, scalar(0, np.float64), None, 4, out, 4)
    assert (out == 0).all()
    for function in ("mcblasDsymv", "mcblasDspmv"):
        y = np.full(4, np.nan)
        arguments = (a, 4) if function == "mcblasDsymv" else (packed(a, UPPER),)
        run(function, UPPER, 4, scalar(0, np.float64), *arguments, b[:, 0].copy(), 1, scalar(0, np.float64), y, 1)
        assert (y == 0).all(), function
        run(function, UPPER, 4, scalar(1, np.float64), *arguments, b[:, 0].copy(), 1, scalar(0, np.float64),
            (y := np.full(4, np.nan)), 1)
        assert np.isfinite(y).all(), function
    for function in ("mcblasDsymm", "mcblasDgemm"):
        c = np.full((4, 3), np.nan, order="F")
        if function == "mcblasDsymm":
            run(function, LEFT, UPPER, 4, 3, scalar(1, np.float64), a, 4, b, 4, scalar(0, np.float64), c, 4)
        else:
            run(function, N, N, 4, 3, 4, scalar(1, np.float64), a, 4, b, 4, scalar(0, np.float64), c, 4)
        assert np.isfinite(c).all(), function


# ---- extensions ----


@pytest.mark.parametrize("letter", LETTERS)
def test_extensions(letter):
    m, n, dtype = 5, 6, LETTERS[letter]
    for transa, transb in itertools.product([N, T, C], repeat=2):
        a = matrix(letter, *((m, n) if transa == N else (n, m)), 1)
        b = matrix(letter, *((m, n) if transb == N else (n, m)), 2)
        out = np.full((m + 1, n), np.nan, dtype, order="F")
        run(f"mcblas{letter}geam", transa, transb, m, n, factors(letter)[0], a, len(a), factors(letter)[1], b, len(b),
            out, m + 1)  # fmt: skip
        close(out[:m], ALPHA[letter] * op(wide(a[:-2]), transa) + BETA[letter] * op(wide(b[:-2]), transb), dtype)
    a = matrix(letter, m, n, 1)
    for mode, incx in itertools.product([LEFT, RIGHT], [2, -1, 0]):
        count = m if mode == LEFT else n
        x = drawn(count * max(1, abs(incx)), dtype, 2)
        seen = x[::incx] if incx > 0 else x[::-1] if incx else np.full(count, x[0])
        out = np.zeros((m, n), dtype, order="F")
        run(f"mcblas{letter}dgmm", mode, m, n, a, m + 2, x, incx, out, m)
        close(out, np.diag(wide(seen)) @ wide(a[:m]) if mode == LEFT else wide(a[:m]) @ np.diag(wide(seen)), dtype)
    full = matrix(letter, n, n, 3)
    for uplo in (LOWER, UPPER):
        run(f"mcblas{letter}trttp", uplo, n, full, n + 2, (out := np.zeros(n * (n + 1) // 2, dtype)))
        assert (out == packed(full[:n], uplo)).all()
        run(f"mcblas{letter}tpttr", uplo, n, out, (back := np.zeros((n, n), dtype, order="F")), n)
        assert (back == triangle(full[:n], uplo)).all()


@pytest.mark.parametrize("function, copies", [("herk", 1), ("her2k", 2), ("herkx", 1)])
@pytest.mark.parametrize("uplo", [LOWER, UPPER])
@pytest.mark.parametrize("letter", "CZ")
@pytest.mark.parametrize("n, held", [(5, None), (19, np.nan), (19, -np.inf)], ids=str)
def test_imaginary_parts_on_a_hermitian_diagonal_count_as_0_and_become_0(letter, uplo, function, copies, n, held):
    k, dtype, real = 3, LETTERS[letter], LETTERS[REAL[letter]]
    a, c = matrix(letter, n, k, 1), matrix(letter, n, n, 2)
    if held is not None:
        np.fill_diagonal(c.imag, held)
    before, product = wide(c), wide(a[:n]) @ wide(a[:n]).conj().T
    alpha = scalar(1.5, real if function == "herk" else dtype)
    run(f"mcblas{letter}{function}", uplo, N, n, k, alpha, *(a, n + 2) * (1 if function == "herk" else 2), scalar(2, real), c,
        n + 2)  # fmt: skip
    assert (np.diag(c[:n]).imag == 0).all()
    close(np.diag(c[:n]).real, 1.5 * copies * np.diag(product).real + 2 * np.diag(before[:n]).real, dtype)
    outside = np.ones((n + 2, n), bool)
    outside[:n] = np.triu(outside[:n], 1) if uplo == LOWER else np.tril(outside[:n], -1)
    np.testing.assert_array_equal(wide(c)[outside], before[outside])


# A matrix of 2^30 + 1 columns, 2^30 elements apart, of which an array of pointers has one element: 2^64 bytes and one element
# more. The rest of the call reads nothing. A fault stays on the device of its process: another process.
COLUMNS_BEYOND_MEMORY = """
import numpy as np
from tests.maca.mcblas_support import N, RIGHT, Device, handle
from understudy.maca import ffi, last_error, lib
def table():
    matrix = Device(np.ones(1, np.complex128))
    return ffi.cast("void *", Device(np.array([int(ffi.cast("uintptr_t", matrix.address))], np.uint64)).address)
zero, info, n, leading = ffi.new("mcDoubleComplex *"), ffi.new("int *"), COLUMNS, 1 << 30
calls = {
    "gemm": lambda: lib.mcblasZgemmBatched(handle(), N, N, 1, n, 0, zero, ffi.NULL, 1, ffi.NULL, 1, zero, table(), leading, 1),
    "vector": lambda: lib.mcblasZgemv(handle(), N, n, 1, zero, ffi.NULL, n, ffi.NULL, 1, zero,
                                      ffi.cast("void *", Device(np.ones(1, np.complex128)).address), -2**31),
    "gemv": lambda: lib.mcblasZgemvBatched(handle(), N, n, 1, zero, ffi.NULL, n, ffi.NULL, 1, zero, table(), leading, 1),
    "trsm": lambda: lib.mcblasZtrsmBatched(handle(), RIGHT, 0, N, 0, 1, n, zero, ffi.NULL, n, table(), leading, 1),
    "getrs": lambda: lib.mcblasZgetrsBatched(handle(), N, 1, n, table(), 1, ffi.NULL, table(), leading, info, 1),
}
assert calls["FUNCTION"]() == 0
print(lib.mcDeviceSynchronize() == lib.mcErrorIllegalAddress, last_error().text)
"""


@pytest.mark.parametrize("function, said", [("gemm", "Carray[0]: "), ("gemv", "yarray[0]: "), ("trsm", "B[0]: "),
                                            ("getrs", "Barray[0]: "), ("vector", "y reaches beyond the address space")])
def test_columns_beyond_all_memory_are_a_fault(function, said):
    source = COLUMNS_BEYOND_MEMORY.replace("FUNCTION", function)
    assert run_python(source.replace("COLUMNS", "1"), {}).startswith("False")
    found = run_python(source.replace("COLUMNS", "(1 << 30) + 1"), {})
    assert found.startswith("True") and said in found, found


def test_device_mode_reads_factors_on_the_stream():
    own = made("mcblasHandle_t", lib.mcblasCreate)
    ok(lib.mcblasSetPointerMode(own, lib.MCBLAS_POINTER_MODE_DEVICE))
    a, b = drawn((4, 4), np.float32, 1), drawn((4, 4), np.float32, 2)
    for alpha, beta in ((2, 0), (0, 3), (2, 3)):
        c = drawn((4, 4), np.float32, 3)
        before = c.copy()
        run("mcblasSgemm", N, N, 4, 4, 4, np.float32([alpha]), a, 4, b, 4, np.float32([beta]), c, 4, on=own)
        close(c, alpha * wide(a) @ wide(b) + beta * wide(before), np.float32)
        y = drawn(4, np.float32, 4)
        expected = alpha * np.tril(wide(a)) + alpha * np.tril(wide(a), -1).T
        expected = expected @ wide(b[:, 0]) + beta * wide(y)
        run("mcblasSsymv", LOWER, 4, np.float32([alpha]), a, 4, b[:, 0].copy(), 1, np.float32([beta]), y, 1, on=own)
        close(y, expected, np.float32)
        c = before.astype(np.complex64, order="F")
        run("mcblasCherkx", LOWER, N, 4, 4, np.complex64([alpha]), a.astype(np.complex64), 4, b.astype(np.complex64), 4,
            np.float32([beta]), c, 4, on=own)
        close(np.tril(c), np.tril(alpha * wide(a) @ wide(b).T + beta * wide(before)), np.float32)
    ok(lib.mcblasDestroy(own))
