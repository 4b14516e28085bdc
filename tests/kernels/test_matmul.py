"""The matrix product of every type, layout and batch against NumPy in float64, with and without a BLAS, and its bits for
any number of threads."""

import ctypes
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.conformance.harness import run_tests
from tests.tensor.internals import DTYPES as REAL_DTYPES
from tests.tensor.internals import library

BATCH_LIMIT = 8
DTYPES = {**REAL_DTYPES, "complex64": 14, "complex128": 15}


class Matrix(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("row", ctypes.c_int64), ("column", ctypes.c_int64),
                ("batch", ctypes.c_int64 * BATCH_LIMIT), ("conjugated", ctypes.c_bool)]


class Matmul(ctypes.Structure):
    _fields_ = [("m", ctypes.c_int64), ("n", ctypes.c_int64), ("k", ctypes.c_int64), ("batch_rank", ctypes.c_int32),
                ("batch_shape", ctypes.c_int64 * BATCH_LIMIT), ("a", Matrix), ("b", Matrix), ("addend", Matrix),
                ("c", Matrix), ("compute", ctypes.c_int), ("alpha", ctypes.c_double * 2), ("beta", ctypes.c_double * 2),
                ("finish", ctypes.c_void_p), ("finish_context", ctypes.c_void_p), ("finished", ctypes.c_int),
                ("undivided", ctypes.c_bool)]


class Tile(ctypes.Structure):
    _fields_ = [("values", ctypes.c_void_p), ("row_stride", ctypes.c_int64), ("column_stride", ctypes.c_int64),
                ("batch", ctypes.c_int64), ("row", ctypes.c_int64), ("column", ctypes.c_int64), ("rows", ctypes.c_int64),
                ("columns", ctypes.c_int64)]


FINISH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Tile))


def matrix(array, dtype=None, conjugated=False):
    """The array's last two axes; the others are those of the batch."""
    result = Matrix(array.ctypes.data, DTYPES[dtype or array.dtype.name], conjugated=conjugated)
    strides = [stride // array.itemsize for stride in array.strides]
    result.row, result.column = strides[-2:]
    result.batch[: array.ndim - 2] = strides[:-2]
    return result


def multiply(a, b, c, compute, addend=None, alpha=1, beta=0, types=(None, None, None), conjugated=(False, False),
             finish=None):
    product = Matmul(c.shape[-2], c.shape[-1], a.shape[-1], c.ndim - 2)
    product.batch_shape[: c.ndim - 2] = c.shape[:-2]
    batch = c.shape[:-2]
    product.a = matrix(np.broadcast_to(a, batch + a.shape[-2:]), types[0], conjugated[0])
    product.b = matrix(np.broadcast_to(b, batch + b.shape[-2:]), types[1], conjugated[1])
    product.c = matrix(c, types[2])
    if addend is not None:
        product.addend = matrix(np.broadcast_to(addend, c.shape), types[2])
    product.compute = DTYPES[compute]
    product.alpha[:] = complex(alpha).real, complex(alpha).imag
    product.beta[:] = complex(beta).real, complex(beta).imag
    product.finish = ctypes.cast(finish, ctypes.c_void_p) if finish else None
    assert library().us_matmul(ctypes.byref(product)) == 0


def laid_out(values, layout):
    """A copy with other strides."""
    values = values.copy()
    if layout == "rows":
        return np.ascontiguousarray(values)
    if layout == "columns":
        return np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout == "padded":
        return np.concatenate([values, values], axis=-1)[..., : values.shape[-1]]
    if layout == "spread":
        return np.repeat(values, 2, axis=-1)[..., ::2]
    return np.ascontiguousarray(values[..., ::-1])[..., ::-1]  # backwards


LAYOUTS = ["rows", "columns", "padded", "spread", "backwards"]
SIZES = [(1, 1, 1), (5, 7, 3), (1, 40, 33), (40, 1, 33), (33, 65, 20)]
# Few rows, or columns, of 16-bit numbers: short lines, and parts of long ones and a bit.
FEW_ROWS = [(2, 131, 150), (1, 40, 1029), (4, 21, 1030), (7, 18, 1025), (1, 1030, 41), (3, 1027, 18), (8, 1025, 19),
            (33, 1, 1029), (1028, 3, 33)]
FLOATS = {"float32": 1e-6, "float64": 1e-14, "complex64": 1e-6, "complex128": 1e-14}


def drawn(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if "complex" in dtype else values).astype(dtype)


def reference(a, b, c, alpha, beta):
    wide = np.complex128 if np.iscomplexobj(c) else np.float64
    return alpha * (a.astype(wide) @ b.astype(wide)) + beta * c.astype(wide)


def scale_of(a, b, c):
    return np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64) + np.abs(c)


@pytest.mark.parametrize("dtype, size", [*itertools.product(FLOATS, SIZES), ("float32", (70, 300, 130)),
                                         *(("float32", size) for size in FEW_ROWS)], ids=str)
def test_layouts(dtype, size):
    m, n, k = size
    alpha, beta = (1.5 - 0.5j, 0.5 + 1j) if "complex" in dtype else (1.5, -0.5)
    a, b, c = drawn((m, k), dtype, 1), drawn((k, n), dtype, 2), drawn((m, n), dtype, 3)
    expected = reference(a, b, c, alpha, beta)
    for layouts in itertools.product(LAYOUTS, ["rows", "columns", "spread"], ["rows", "columns", "spread"]):
        left, right, out = (laid_out(x, layout) for x, layout in zip((a, b, c), layouts))
        multiply(left, right, out, dtype, addend=out, alpha=alpha, beta=beta)
        assert (np.abs(out - expected) <= 4 * k * FLOATS[dtype] * scale_of(a, b, c)).all(), layouts


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("size", [(6, 9, 5), (1, 9, 5), (9, 1, 5)], ids=str)
def test_conjugates(dtype, size):
    m, n, k = size
    a, b = drawn((m, k), dtype, 1), drawn((k, n), dtype, 2)
    for conjugated in itertools.product([False, True], repeat=2):
        expected = (a.conj() if conjugated[0] else a) @ (b.conj() if conjugated[1] else b)
        for layouts in itertools.product(["rows", "columns", "spread"], repeat=3):
            left, right, out = (laid_out(x, layout) for x, layout in zip((a, b, expected * 0), layouts))
            multiply(left, right, out, dtype, conjugated=conjugated)
            np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5, err_msg=str((conjugated, layouts)))


def test_what_is_multiplied_by_zero_is_not_read():
    for size in [(4, 5, 6), (1, 5, 6), (4, 1, 6), (300, 300, 6)]:
        m, n, k = size
        nan = {shape: np.full(shape, np.nan, np.float32) for shape in [(m, k), (k, n), (m, n)]}
        ones = {shape: np.ones(shape, np.float32) for shape in nan}
        out = nan[m, n].copy()
        multiply(ones[m, k], ones[k, n], out, "float32", addend=out, beta=0)
        assert (out == k).all()
        out = ones[m, n].copy()
        multiply(nan[m, k], nan[k, n], out, "float32", addend=out, alpha=0, beta=2)
        assert (out == 2).all()
        multiply(nan[m, k][:, :0], nan[k, n][:0], out, "float32", addend=out, beta=2)
        assert (out == 4).all()


def rounded_to_bfloat(values):
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def bfloat_values(stored):
    return (stored.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("layouts", [("rows", "rows"), ("columns", "columns"), ("spread", "backwards")], ids=str)
def test_16_bit_sums_are_rounded_once(dtype, layouts):
    """Small integers: float32 sums are exact, so the one rounding is known."""
    rng = np.random.default_rng(5)
    a, b, c = (rng.integers(-9, 10, shape).astype(np.float32) for shape in [(70, 900), (900, 130), (70, 130)])
    expected = 2 * (a @ b) + 0.5 * c
    store = rounded_to_bfloat if dtype == "bfloat16" else lambda values: values.astype(np.float16)
    left, right, out = laid_out(store(a), layouts[0]), laid_out(store(b), layouts[1]), store(c)
    multiply(left, right, out, "float32", addend=out, alpha=2, beta=0.5, types=(dtype,) * 3)
    np.testing.assert_array_equal(out, store(expected))


def stored_as(values, dtype):
    return rounded_to_bfloat(values) if dtype == "bfloat16" else values.astype(np.float16)


def widened(stored, dtype):
    return (bfloat_values(stored) if dtype == "bfloat16" else stored).astype(np.float64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [*SIZES, *FEW_ROWS, (31, 17, 300), (100, 300, 1100)], ids=str)
def test_16_bit_operands_in_every_layout(dtype, size):
    """Sums of products are those of float32, whichever way the operands lie and the sums go."""
    m, n, k = size
    a, b, c = stored_as(drawn((m, k), "float64", 1), dtype), stored_as(drawn((k, n), "float64", 2), dtype), \
        drawn((m, n), "float32", 3)
    left, right = widened(a, dtype), widened(b, dtype)
    few = ["rows", "columns", "spread"] if k == 1100 else LAYOUTS
    for layouts in itertools.product(few, few, ["rows", "columns", "spread"]):
        for alpha, beta in [(1, 0), (1, 1), (-1.5, 0.5)]:
            out = laid_out(c, layouts[2])
            multiply(laid_out(a, layouts[0]), laid_out(b, layouts[1]), out, "float32", addend=out, alpha=alpha,
                     beta=beta, types=(dtype, dtype, "float32"))
            error = np.abs(out - reference(left, right, c, alpha, beta))
            assert (error <= 2 * (k + 2) * 2.0**-24 * (abs(alpha) * scale_of(left, right, 0 * c) + np.abs(c))).all(), layouts


@pytest.mark.parametrize("special", [False, True], ids=["finite", "special"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("depth", [1, 2, 31, 32, 33, 255, 256, 257])
@pytest.mark.parametrize("size", [(8, 16), (33, 31), (32, 64), (71, 130), (513, 33), (45, 545)], ids=str)
def test_shallow_16_bit_sums_are_rounded_once(size, depth, dtype, special):
    """Integers: float32 sums are exact. Also infinities and NaN; what lies behind the rows is left alone."""
    rng = np.random.default_rng(depth)
    a, b = (rng.integers(-99, 100, shape).astype(np.float32) for shape in [(size[0], depth), (depth, size[1])])
    a[5] = 0
    if special:
        a[7, 0], b[0, 3], b[-1, 9] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore", over="ignore"):
        expected = np.where(np.isnan(a).any(1)[:, None], np.nan, a @ b)
        stored = np.where(np.isnan(expected), 0, stored_as(np.nan_to_num(expected, posinf=np.inf, neginf=-np.inf), dtype))
    rounded = np.where(np.isnan(expected), np.nan, widened(stored, dtype))
    for padding, layout in itertools.product([0, 3], ["rows", "columns"]):
        whole = np.full((size[0], size[1] + padding), 0x4242, np.uint16)
        out = whole[:, : size[1]].view("float16" if dtype == "float16" else "uint16")
        multiply(laid_out(stored_as(a, dtype), layout), laid_out(stored_as(b, dtype), layout), out, "float32",
                 types=(dtype,) * 3)
        np.testing.assert_array_equal(widened(out, dtype), rounded)
        assert (whole[:, size[1] :] == 0x4242).all()


@pytest.mark.parametrize("at", [0, 1500, 2999])
def test_small_sums_of_bfloat16_are_not_lost_in_later_parts(at):
    """A denormal sum of one part of the depth, to which other parts add nothing."""
    a, b, out = np.zeros((64, 3000), np.float32), np.zeros((3000, 300), np.float32), np.zeros((64, 300), np.float32)
    a[:, at], b[at] = 2.0**-66, 2.0**-63
    for alpha, expected in [(1, 2.0**-129), (2.0**100, 2.0**-29)]:
        multiply(rounded_to_bfloat(a), rounded_to_bfloat(b), out, "float32", alpha=alpha,
                 types=("bfloat16", "bfloat16", "float32"))
        assert (out == np.float32(expected)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("exponent", [-149, -127, -126, -104, -103])
def test_small_addends_are_not_lost(dtype, exponent):
    """Of sums that are 0, or what the addend is half of: neither is rounded."""
    for products in (0, 2.0 ** (exponent + 1) if dtype == "bfloat16" and exponent > -126 else 0):
        a, b = np.zeros((64, 500), np.float32), np.zeros((500, 300), np.float32)
        a[:, 7], b[7] = products, 1
        out = np.full((64, 300), -(2.0**exponent), np.float32)
        multiply(stored_as(a, dtype), stored_as(b, dtype), out, "float32", addend=out, beta=1,
                 types=(dtype, dtype, "float32"))
        assert (out == np.float32(products - 2.0**exponent)).all()


@pytest.mark.parametrize("exponents", [(-133, -2), (-133, 100), (-126, 0), (-60, -70), (-56, -57), (-20, -20)], ids=str)
def test_small_numbers_of_bfloat16_are_not_lost(exponents):
    """Denormal operands, products and sums: exact in float32 where few significant bits are left."""
    rng = np.random.default_rng(8)
    a, b = (np.ldexp(rng.choice([-1.0, 0, 1], shape), exponent) for shape, exponent in zip([(40, 70), (70, 33)], exponents))
    out, rounded = np.zeros((40, 33), np.float32), np.zeros((40, 33), np.uint16)
    for to, dtype in [(out, "float32"), (rounded, "bfloat16")]:
        multiply(rounded_to_bfloat(a), rounded_to_bfloat(b), to, "float32", types=("bfloat16", "bfloat16", dtype))
    np.testing.assert_array_equal(out, (a @ b).astype(np.float32))
    np.testing.assert_array_equal(rounded, rounded_to_bfloat(a @ b))


@pytest.mark.parametrize("where", [((0, 0), (0, 0)), ((20, 299), (5, 3)), ((39, 31), (299, 32))], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_16_bit_infinities_and_nan(dtype, value, where):
    """Also beside zeros, and at the ends of panels."""
    a, b = np.ones((40, 300), np.float32), np.ones((300, 33), np.float32)
    a[3], b[:, 4] = 0, 0
    for special in ({0}, {1}, {0, 1}):
        left, right = a.copy(), b.copy()
        for operand, place in [((left, right)[i], where[i]) for i in special]:
            operand[place] = value
        out = np.zeros((40, 33), np.float32)
        multiply(stored_as(left, dtype), stored_as(right, dtype), out, "float32", types=(dtype, dtype, "float32"))
        with np.errstate(invalid="ignore"):
            expected = np.where(np.isnan(left).any(1)[:, None] | np.isnan(right).any(0), np.nan, left @ right)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("others", [(1030, 300), (517, 1025), (300, 255), (131, 256), (2049, 128)], ids=str)
def test_integers_of_few_rows_or_columns_stay_exact(others, dtype):
    """Rows of one group and of several, lines of one part and of several; also the columns of the transposed product."""
    rng = np.random.default_rng(14)
    n, k = others
    for m in (1, 2, 3, 8, 9, 15, 16, 17, 31, 32, 33):
        a, b, c = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
        for layout, out_layout in itertools.product(["rows", "columns"], ["rows", "columns", "spread"]):
            out, turned = laid_out(c, out_layout), laid_out(np.ascontiguousarray(c.T), out_layout)
            left, right = (values if dtype == "float32" else stored_as(values, dtype) for values in (a, b))
            right = laid_out(right, layout)
            types = (dtype, dtype, "float32")
            multiply(left, right, out, "float32", addend=out, alpha=-2, beta=0.5, types=types)
            multiply(right.T, left.T, turned, "float32", types=types)
            np.testing.assert_array_equal(out, -2 * (a @ b) + 0.5 * c)
            np.testing.assert_array_equal(turned, (a @ b).T)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_infinities_of_few_rows_stay_with_their_sums(layout):
    """Zeros that fill parts of lines are not multiplied by them."""
    a, b = np.ones((2, 1027), np.float16), np.ones((1027, 1030), np.float16)
    a[1, 1026], b[3, 1029], b[1026, 2] = np.inf, -np.inf, np.nan
    out = np.zeros((2, 1030), np.float32)
    multiply(a, laid_out(b, layout), out, "float32", types=("float16", "float16", "float32"))
    expected = np.full((2, 1030), [[1027], [np.inf]], np.float32)
    expected[:, 1029], expected[:, 2] = [-np.inf, np.nan], np.nan
    np.testing.assert_array_equal(out, expected)


def test_large_numbers_of_float16_do_not_overflow_in_sums():
    a, b = np.full((3, 1000), 65504, np.float16), np.full((1000, 5), -65504, np.float16)
    out = np.zeros((3, 5), np.float32)
    multiply(a, b, out, "float32", types=("float16", "float16", "float32"))
    np.testing.assert_allclose(out, -1000 * 65504.0**2, rtol=1e-6)


@pytest.mark.parametrize("stored, out_type", [(("int8", "int8"), "int32"), (("uint8", "int8"), "int32"),
                                              (("int32", "int32"), "int32"), (("int64", "int16"), "int64")], ids=str)
def test_integers_are_exact_modulo_their_size(stored, out_type):
    rng = np.random.default_rng(6)
    extremes = [np.iinfo(name) for name in stored]
    for m, n, k in [(3, 5, 7), (1, 9, 1030), (9, 1, 700), (40, 50, 1100)]:
        a = rng.integers(extremes[0].min, extremes[0].max, (m, k), stored[0], endpoint=True)
        b = rng.integers(extremes[1].min, extremes[1].max, (k, n), stored[1], endpoint=True)
        c = rng.integers(-1000, 1000, (m, n), out_type)
        with np.errstate(over="ignore"):
            expected = (3 * (a.astype(np.int64) @ b.astype(np.int64)) - 2 * c.astype(np.int64)).astype(out_type)
        multiply(a, b, c, "int64", addend=c, alpha=3, beta=-2)
        np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("depth", [1, 2, 5000, 16383, 16385, 40001])
@pytest.mark.parametrize("stored, extremes", [("int8", (-128, -128)), ("int8", (127, -128)), ("uint8", (255, -128)),
                                              ("uint8", (255, 127))], ids=str)  # fmt: skip
def test_extreme_bytes_are_exact(stored, extremes, depth):
    """Sums in int32 begin again before they overflow."""
    a, b, c = np.full((4, depth), extremes[0], stored), np.full((depth, 18), extremes[1], np.int8), np.zeros((4, 18), np.int64)
    multiply(a, b, c, "int64")
    assert (c == extremes[0] * extremes[1] * depth).all()


@pytest.mark.parametrize("stored", [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")], ids=str)
@pytest.mark.parametrize("layout_b", ["rows", "columns", "spread", "backwards"])
@pytest.mark.parametrize("layout_a", ["rows", "columns", "spread", "backwards"])
def test_bytes_in_every_layout(layout_a, layout_b, stored):
    rng = np.random.default_rng(8)
    for m, n, k in [(1, 1, 1), (17, 33, 65), (130, 47, 2), (5, 600, 31), (530, 3, 129)]:
        a = rng.integers(0, 256, (m, k), np.uint8).view(stored[0])
        b = rng.integers(0, 256, (k, n), np.uint8).view(stored[1])
        c = np.zeros((m, n), np.int32)
        multiply(laid_out(a, layout_a), laid_out(b, layout_b), c, "int64")
        np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


def test_batches_broadcast():
    a, b = drawn((3, 1, 4, 5), "float64", 1), drawn((2, 5, 6), "float64", 2)
    out = np.zeros((3, 2, 4, 6))
    multiply(a, b, out, "float64", addend=drawn((6,), "float64", 3), beta=1)
    np.testing.assert_allclose(out, a @ b + drawn((6,), "float64", 3), rtol=1e-13, atol=1e-13)
    shared = np.zeros((7, 4, 6))  # one b for all: rows of one product
    many = drawn((7, 4, 5), "float64", 4)
    multiply(many, b[0], shared, "float64")
    np.testing.assert_allclose(shared, many @ b[0], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("layout", ["rows", "columns", "spread"])
@pytest.mark.parametrize("m, n", [(300, 70), (2, 300), (300, 2)])
def test_finish_sees_every_sum_once(dtype, layout, m, n):
    a, b = np.ones((2, m, 20), dtype), np.ones((2, 20, n), dtype)
    out = laid_out(np.zeros((2, m, n), dtype), layout)
    seen = np.zeros((2, m, n), int)

    def finish(_, pointer):
        tile = pointer.contents
        count = (tile.rows - 1) * tile.row_stride + (tile.columns - 1) * tile.column_stride + 1
        flat = np.ctypeslib.as_array(ctypes.cast(tile.values, ctypes.POINTER(ctypes.c_float)), (count,))
        values = np.lib.stride_tricks.as_strided(flat, (tile.rows, tile.columns),
                                                 (4 * tile.row_stride, 4 * tile.column_stride))
        assert (values == 20).all()
        part = seen[tile.batch, tile.row : tile.row + tile.rows, tile.column : tile.column + tile.columns]
        part += 1
        values += tile.batch

    multiply(a, b, out, "float32", finish=FINISH(finish))
    assert (seen == 1).all() and (out[0] == 20).all() and (out[1] == 21).all()


def test_deep_products_are_summed_in_parts():
    a, b, c = drawn((3, 20005), "float64", 1), drawn((20005, 4), "float64", 2), drawn((3, 4), "float64", 3)
    expected = 2 * (a @ b) + 3 * c
    multiply(a, b, c, "float64", addend=c, alpha=2, beta=3)
    np.testing.assert_allclose(c, expected, rtol=1e-11)


def all_bits():
    """Sizes of many blocks, of parts, of panels."""
    results = b""
    for (m, n, k), dtype in itertools.product([(300, 700, 100), (3, 5, 9000), (2000, 1, 300), (2, 1500, 9000)],
                                         ["float32", "float16"]):
        out = np.zeros((m, n), dtype)
        multiply(drawn((m, k), dtype, 1), drawn((k, n), dtype, 2), out, "float32")
        results += out.tobytes()
    for m, n, k in [(700, 1100, 300), (3, 5, 9000), (200, 1, 300)]:
        out = np.zeros((m, n), np.float32)
        multiply(rounded_to_bfloat(drawn((m, k), "float32", 1)), rounded_to_bfloat(drawn((k, n), "float32", 2)), out,
                 "float32", types=("bfloat16", "bfloat16", "float32"))
        results += out.tobytes()
    return results


def test_the_same_bits_for_any_number_of_threads():
    script = ("import hashlib; from tests.kernels.test_matmul import all_bits; "
              "print(hashlib.sha256(all_bits()).hexdigest())")
    found = {subprocess.run([sys.executable, "-c", script], env={**os.environ, "UNDERSTUDY_THREADS": str(threads)},
                            capture_output=True, text=True, check=True).stdout for threads in (1, 2, 5)}
    assert len(found) == 1


def run_again(tests, environment, *options):
    run_tests([f"{__file__}::{name}" for name in tests], environment, *options)


@pytest.mark.parametrize("most", ["off", "avx512"])
def test_16_bit_operands_without_amx(most):
    run_again(["test_16_bit_sums_are_rounded_once", "test_shallow_16_bit_sums_are_rounded_once",
               "test_16_bit_operands_in_every_layout",
               "test_small_numbers_of_bfloat16_are_not_lost", "test_small_sums_of_bfloat16_are_not_lost_in_later_parts",
               "test_small_addends_are_not_lost", "test_16_bit_infinities_and_nan",
               "test_large_numbers_of_float16_do_not_overflow_in_sums", "test_extreme_bytes_are_exact",
               "test_bytes_in_every_layout"], {"UNDERSTUDY_BF16": most})


def test_without_a_blas():
    """The library's own loops, by a BLAS that does not exist."""
    tests = ["test_layouts", "test_conjugates", "test_16_bit_sums_are_rounded_once",
             "test_integers_are_exact_modulo_their_size", "test_what_is_multiplied_by_zero_is_not_read",
             "test_deep_products_are_summed_in_parts", "test_finish_sees_every_sum_once"]
    run_again(tests, {"UNDERSTUDY_BLAS": "none.so"}, "-k", "not 300")
