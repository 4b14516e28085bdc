"""Products that objects describe: layouts, types, epilogues, batches, against NumPy in float64."""

import itertools
import math

import numpy as np
import pytest

from tests.maca import mcblaslt_support as lt
from tests.maca.mcblas_support import C, N, T, TYPES, Device, close, drawn, handle, op
from tests.maca.runtime_support import ok
from tests.maca.test_mcblas_matrices import read, stored
from understudy.maca import ffi, lib

COL, ROW = 0, 1


def in_order(values, order):
    return np.asfortranarray(values) if order == COL else np.ascontiguousarray(values)


def layout_of(array, kind, order, **more):
    rows, columns = array.shape[-2:]
    return lt.layout(kind, rows, columns, max(1, rows if order == COL else columns), ORDER=order, **more)


def multiply(a, b, c, result="float32", alpha=1.0, beta=0.0, orders=(COL, COL, COL), compute=68, scale="float32", given=None,
             on=None, algorithm=ffi.NULL, **attributes):
    """D of the arrays' stored contents."""
    given = given or result
    out = in_order(c, orders[2]).copy(order="K")
    arrays = [Device(x) for x in (in_order(a, orders[0]), in_order(b, orders[1]), out)]
    types = {**TYPES, "e4m3": 28}
    layouts = [layout_of(x, types[kind], order) for x, kind, order in zip((a, b, c), (given, given, result), orders)]
    desc = lt.description(compute, TYPES[scale], **attributes)
    factors = [ffi.from_buffer(np.array([value], scale)) for value in (alpha, beta)]
    ok(lib.mcblasLtMatmul(on or lt.handle(), desc, factors[0], arrays[0].address, layouts[0], arrays[1].address, layouts[1],
                          factors[1], arrays[2].address, layouts[2], arrays[2].address, layouts[2], algorithm, ffi.NULL, 0,
                          ffi.NULL))
    ok(lib.mcDeviceSynchronize())
    for array in arrays:
        array.end()
    return out


@pytest.mark.parametrize("orders", [*itertools.product([COL, ROW], repeat=3)])
@pytest.mark.parametrize("dtype, transa, transb", [("float32", N, T), ("float64", T, N), ("complex64", C, T)])
def test_layouts(orders, dtype, transa, transb):
    m, n, k = 5, 7, 6
    a, b, c = (drawn(shape, dtype, i) for i, shape in enumerate([(m, k) if transa == N else (k, m),
                                                                 (k, n) if transb == N else (n, k), (m, n)]))
    out = multiply(a, b, c, dtype, 1.5, -0.5, orders, 70 if dtype == "float64" else 68, dtype, TRANSA=transa, TRANSB=transb)
    wide = np.complex128 if dtype == "complex64" else np.float64
    close(out, 1.5 * op(a.astype(wide), transa) @ op(b.astype(wide), transb) - 0.5 * c.astype(wide), dtype)


@pytest.mark.parametrize("given, result, compute, scale", [
    ("float16", "float16", 68, "float32"), ("bfloat16", "bfloat16", 68, "float32"), ("bfloat16", "float32", 74, "float32"),
    ("float16", "float16", 64, "float16"), ("int8", "int32", 72, "int32"), ("int8", "float32", 68, "float32")])
def test_types(given, result, compute, scale):
    """Small integers: sums are exact, and rounded once."""
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-9, 10, shape) for shape in [(8, 40), (40, 4), (8, 4)])
    out = multiply(stored(a, given), stored(b, given), stored(c, result), result, 2, 3, compute=compute, scale=scale,
                   given=given)
    assert (out == stored(2 * (a @ b) + 3 * c, result)).all()


def e4m3(byte):
    """Sign, four bits of exponent, three of fraction; 0x7f is not a number."""
    exponent, fraction = byte >> 3 & 15, byte & 7
    if byte & 0x7F == 0x7F:
        return math.nan
    size = (8 + fraction) * 2.0 ** (exponent - 10) if exponent else fraction * 2.0**-9
    return -size if byte & 0x80 else size


E4M3 = np.array([e4m3(byte) for byte in range(256)])


@pytest.mark.parametrize("result", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("orders, transa", [((COL, COL, COL), T), ((ROW, COL, ROW), N)])
def test_numbers_of_8_bits(result, orders, transa):
    """Every number times one, and products of small ones, whose sums are exact."""
    rng = np.random.default_rng(4)
    a, b = np.arange(256, dtype=np.uint8).reshape(64, 4), np.full((4, 1), 0x38, np.uint8)  # 1.0
    out = multiply(a.T if transa == T else a, b, stored(np.full((64, 1), np.nan), result), result, given="e4m3",
                   orders=orders, TRANSA=transa)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(read(out, result).astype(float), read(stored(E4M3[a].sum(1, keepdims=True), result), result),
                              equal_nan=True)
    codes = np.flatnonzero(np.isin(np.abs(E4M3), [0, 1, 1.5, 2, 3]))
    a, b = (rng.choice(codes, shape).astype(np.uint8) for shape in ((5, 40), (40, 7)))
    c = rng.integers(-9, 9, (5, 7))
    factors = {name: Device(np.float32([value])).address for name, value in (("A_SCALE_POINTER", 2), ("C_SCALE_POINTER", 4))}
    out = multiply(a.T.copy() if transa == T else a, b, stored(c, result), result, 0.5, 0.5, orders, given="e4m3",
                   TRANSA=transa, FAST_ACCUM=1, **factors)
    assert (out == stored(E4M3[a] @ E4M3[b] + 2 * c, result)).all()


def test_sums_of_8_bits_of_a_batch_share_a_matrix():
    a, b = np.full((2, 3), 0x40, np.uint8), np.arange(24, dtype=np.uint8).reshape(2, 4, 3)  # a: 2.0
    out, more = np.zeros((2, 4, 2), np.float32), {"BATCH_COUNT": 2}
    arrays = [Device(x) for x in (np.ascontiguousarray(a.T), b, out)]
    layouts = [lt.layout(28, 2, 3, **more), lt.layout(28, 3, 4, STRIDED_BATCH_OFFSET=12, **more),
               lt.layout(0, 2, 4, STRIDED_BATCH_OFFSET=8, **more)]
    one, zero = ffi.new("float *", 1), ffi.new("float *", 0)
    ok(lib.mcblasLtMatmul(lt.handle(), lt.description(), one, arrays[0].address, layouts[0], arrays[1].address,
                          layouts[1], zero, arrays[2].address, layouts[2], arrays[2].address, layouts[2], ffi.NULL,
                          ffi.NULL, 0, ffi.NULL))  # fmt: skip
    ok(lib.mcDeviceSynchronize())
    arrays[2].end()
    assert (out == 2 * E4M3[b].sum(2)[:, :, None]).all()


TRANSFORMS = [("float32", "float32"), ("float16", "float32"), ("bfloat16", "float32"), ("int8", "float32"),
              ("int32", "float32"),
              ("float64", "float64"), ("complex64", "complex64"), ("complex128", "complex128")]  # fmt: skip


@pytest.mark.parametrize("dtype, scale", TRANSFORMS)
@pytest.mark.parametrize("orders", [*itertools.product([COL, ROW], repeat=3)])
def test_transforms(dtype, scale, orders):
    """Small integers: sums are exact, and rounded once."""
    rng = np.random.default_rng(5)
    for transa, transb in ((N, T), (C, N)):
        a, b = (rng.integers(-9, 10, (4, 6) if trans == N else (6, 4)) for trans in (transa, transb))
        if dtype.startswith("complex"):
            a = a + 1j * rng.integers(-9, 10, a.shape)
        arrays = [Device(in_order(stored(x, dtype), order)) for x, order in zip((a, b, np.full((4, 6), 7)), orders)]
        layouts = [layout_of(x, TYPES[dtype], order) for x, order in zip((a, b, np.zeros((4, 6))), orders)]
        alpha, beta = (ffi.from_buffer(np.array([value], scale)) for value in (2, -3))
        ok(lib.mcblasLtMatrixTransform(lt.handle(), lt.transform(TYPES[scale], TRANSA=transa, TRANSB=transb), alpha,
                                       arrays[0].address, layouts[0], beta, arrays[1].address, layouts[1], arrays[2].address,
                                       layouts[2], ffi.NULL))
        ok(lib.mcDeviceSynchronize())
        arrays[2].end()
        assert (arrays[2].array == stored(2 * op(a, transa) - 3 * op(b, transb), dtype)).all()


def test_transforms_of_a_batch_round_saturate_and_leave_out_what_has_no_factor():
    values = np.array([[100, -100, 1, 3], [5, 7, -1, 50]], np.int8)
    source, target = Device(values), Device(np.zeros((2, 4), np.int8))
    batch = {"BATCH_COUNT": 2, "STRIDED_BATCH_OFFSET": 4}
    a, c = lt.layout(3, 2, 2, **batch), lt.layout(3, 2, 2, ORDER=ROW, **batch)
    alpha, beta = Device(np.float32([2.5])), Device(np.float32([0]))
    for mode, factors in ((0, (ffi.new("float *", 2.5), ffi.new("float *", 0))), (1, (alpha.address, beta.address))):
        other = (ffi.NULL, ffi.NULL) if mode == 0 else (source.address, a)
        ok(lib.mcblasLtMatrixTransform(lt.handle(), lt.transform(POINTER_MODE=mode), factors[0], source.address, a,
                                       factors[1], *other, target.address, c, ffi.NULL))  # fmt: skip
        ok(lib.mcDeviceSynchronize())
        read_back = np.zeros((2, 4), np.int8)
        ok(lib.mcMemcpy(ffi.from_buffer(read_back), target.address, 8, lib.mcMemcpyDeviceToHost))
        expected = np.clip(np.rint(2.5 * values.reshape(2, 2, 2).transpose(0, 2, 1)), -128, 127).reshape(2, 4)
        assert (read_back == expected).all()
        ok(lib.mcMemset(target.address, 0, 8))


def test_a_transform_of_many_matrices_is_one_task():
    """A million of them take next to no memory."""
    import resource

    source, target = Device(np.float32([1, 2, 3, 4])), Device(np.zeros(4, np.float32))
    two, zero = ffi.new("float *", 2), ffi.new("float *", 0)
    batch = lt.layout(0, 2, 2, BATCH_COUNT=1_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ok(lib.mcblasLtMatrixTransform(lt.handle(), lt.transform(), two, source.address, batch, zero, ffi.NULL, ffi.NULL,
                                   target.address, batch, ffi.NULL))  # fmt: skip
    ok(lib.mcDeviceSynchronize())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    target.end()
    assert target.array.tolist() == [2, 4, 6, 8]


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


EPILOGUES = {"DEFAULT": (lambda x: x, False), "RELU": (lambda x: np.maximum(x, 0), False), "BIAS": (lambda x: x, True),
             "RELU_BIAS": (lambda x: np.maximum(x, 0), True), "GELU": (gelu, False), "GELU_BIAS": (gelu, True)}


@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("dtype, order", [("float32", COL), ("float32", ROW), ("float16", COL)])
def test_epilogues(name, dtype, order):
    m, n, k = 70, 300, 5
    a, b, bias = (stored(drawn(shape, "float64", i), dtype) for i, shape in enumerate([(m, k), (k, n), (m,)]))
    device = Device(bias)
    formula, has_bias = EPILOGUES[name]
    more = {"BIAS_POINTER": device.address} if has_bias else {}
    out = multiply(a, b, np.full((m, n), np.nan, dtype), dtype, orders=(COL, COL, order), given=dtype,
                   EPILOGUE=getattr(lib, f"MCBLASLT_EPILOGUE_{name}"), **more)
    a, b, bias = (x.astype(np.float64) for x in (a, b, bias))
    close(out, formula(a @ b + (bias[:, None] if has_bias else 0)), dtype)


def gelu_slope(x):
    """By finite differences."""
    return (gelu(x + 1e-6) - gelu(x - 1e-6)) / 2e-6


@pytest.mark.parametrize("name", ["GELU_AUX", "GELU_AUX_BIAS", "DGELU"])
@pytest.mark.parametrize("dtype, order", [("float32", COL), ("float32", ROW), ("float16", COL)])
def test_epilogues_with_a_matrix(name, dtype, order):
    """`order` is that of A and B."""
    m, n, k, leading = 70, 300, 5, 80
    shapes = [(m, k), (k, n), (m,), (leading, n)]
    a, b, bias, kept = (stored(drawn(shape, "float64", i), dtype) for i, shape in enumerate(shapes))
    devices = [Device(bias), Device(aux := kept.copy(order="F"))]
    out = multiply(a, b, np.full((m, n), np.nan, dtype), dtype, orders=(order, order, COL), given=dtype,
                   EPILOGUE=getattr(lib, f"MCBLASLT_EPILOGUE_{name}"), BIAS_POINTER=devices[0].address,
                   EPILOGUE_AUX_POINTER=devices[1].address, EPILOGUE_AUX_LD=leading)
    devices[1].end()
    a, b, bias = (x.astype(np.float64) for x in (a, b, bias))
    before = a @ b + (bias[:, None] if name.endswith("BIAS") else 0)
    if name == "DGELU":
        assert (aux == kept).all()
        close(out, before * gelu_slope(kept[:m].astype(np.float64)), dtype)
    else:
        close(aux[:m], before, dtype)
        close(out, gelu(before), dtype)
        assert (aux[m:] == kept[m:]).all()


def bits_of(truths, leading):
    """Row i of a column in bit i % 8 of byte i / 8, columns `leading` bits apart."""
    padded = np.zeros((*truths.shape[:-2], leading, truths.shape[-1]), bool)
    padded[..., :truths.shape[-2], :] = truths
    return np.packbits(np.ascontiguousarray(padded.swapaxes(-1, -2)), axis=-1, bitorder="little")


@pytest.mark.parametrize("name", ["RELU_AUX", "RELU_AUX_BIAS", "DRELU", "DRELU_BGRAD", "DGELU_BGRAD"])
@pytest.mark.parametrize("dtype, order", [("float32", COL), ("float32", ROW), ("float16", COL), ("bfloat16", COL)])
@pytest.mark.parametrize("m", [1, 8, 131])
def test_bits_of_relu_and_gradients_of_biases(name, dtype, order, m):
    """Products of small integers are exact. Bits of rows that D does not have are not compared where they are written."""
    n, k, leading = 37, 6, 256
    rng = np.random.default_rng(m)
    a, b, bias = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n)), rng.integers(-3, 4, m)
    truths, places = rng.integers(0, 2, (m, n)).astype(bool), stored(np.round(rng.uniform(-3, 3, (leading, n)), 2), dtype)
    is_gelu = name == "DGELU_BGRAD"
    kept = places.copy(order="F") if is_gelu else bits_of(truths, leading)
    devices = [Device(given := stored(bias, dtype)), Device(aux := kept.copy(order="F" if is_gelu else "C"))]
    out = multiply(stored(a, dtype), stored(b, dtype), stored(np.zeros((m, n)), dtype), dtype, orders=(order, order, COL),
                   EPILOGUE=getattr(lib, f"MCBLASLT_EPILOGUE_{name}"), BIAS_POINTER=devices[0].address,
                   EPILOGUE_AUX_POINTER=devices[1].address, EPILOGUE_AUX_LD=leading)
    for device in devices:
        device.end()
    before = a @ b + (bias[:, None] if name.endswith("BIAS") else 0)
    if name.startswith("RELU"):
        assert (out == stored(np.maximum(before, 0), dtype)).all()
        used = (m + 7) // 8
        assert (aux[:, :used] == bits_of(before > 0, leading)[:, :used]).all() and (aux[:, used:] == kept[:, used:]).all()
        return
    assert (aux == kept).all()
    if is_gelu:  # bfloat16 has three bits less than float16
        known = ("float16", 16 * 8) if dtype == "bfloat16" else (dtype, 16)
        close(read(out, dtype), before * gelu_slope(read(places, dtype).astype(float)[:m]), *known)
    else:
        assert (out == stored(np.where(truths, before, 0), dtype)).all()
    if name.endswith("BGRAD"):  # of what is stored: one rounding
        assert (given == stored(read(out, dtype).astype(float).sum(1), dtype)).all()


def test_batches_have_masks_and_gradients_of_their_own():
    batch, m, n, k, leading = 3, 20, 5, 4, 128
    rng = np.random.default_rng(8)
    a, b = rng.integers(-3, 4, (batch, m, k)).astype(np.float32), rng.integers(-3, 4, (batch, k, n)).astype(np.float32)
    truths = rng.integers(0, 2, (batch, m, n)).astype(bool)
    columns = [np.ascontiguousarray(x.swapaxes(1, 2)) for x in (a, b)]
    arrays = [*columns, np.zeros((batch, n, m), np.float32), np.zeros((batch, m), np.float32), bits_of(truths, leading)]
    devices = [Device(array) for array in arrays]
    desc = lt.description(EPILOGUE=lib.MCBLASLT_EPILOGUE_DRELU_BGRAD, BIAS_POINTER=devices[3].address, BIAS_BATCH_STRIDE=m,
                          EPILOGUE_AUX_POINTER=devices[4].address, EPILOGUE_AUX_LD=leading,
                          EPILOGUE_AUX_BATCH_STRIDE=n * leading)
    layouts = [lt.layout(0, rows, cols, BATCH_COUNT=batch, STRIDED_BATCH_OFFSET=rows * cols)
               for rows, cols in ((m, k), (k, n), (m, n))]
    one, zero = ffi.new("float *", 1), ffi.new("float *", 0)
    ok(lib.mcblasLtMatmul(lt.handle(), desc, one, devices[0].address, layouts[0], devices[1].address, layouts[1], zero,
                          devices[2].address, layouts[2], devices[2].address, layouts[2], ffi.NULL, ffi.NULL, 0, ffi.NULL))
    for device in devices:
        device.end()
    expected = np.where(truths, a @ b, 0)
    assert (arrays[2].swapaxes(1, 2) == expected).all() and (arrays[3] == expected.sum(2)).all()


@pytest.mark.parametrize("name", ["BGRADA", "BGRADB"])
@pytest.mark.parametrize("dtype, order", [("float32", COL), ("float32", ROW), ("float16", COL), ("bfloat16", COL)])
@pytest.mark.parametrize("transa, transb", [(N, N), (T, T)])
@pytest.mark.parametrize("m, n, k", [(7, 5, 300), (513, 300, 2)])
def test_gradients_of_biases(name, dtype, order, transa, transb, m, n, k):
    """Small integers: sums are exact, and rounded once."""
    rng = np.random.default_rng(4)
    a, b = rng.integers(-3, 4, (m, k)), rng.integers(-3, 4, (k, n))
    sums = a.sum(1) if name == "BGRADA" else b.sum(0)
    device = Device(out := np.ascontiguousarray(stored(np.full(len(sums) + 1, 77), dtype)))
    d = multiply(stored(op(a, transa), dtype), stored(op(b, transb), dtype), stored(np.zeros((m, n)), dtype), dtype, 2,
                 orders=(order, order, COL), TRANSA=transa, TRANSB=transb, BIAS_POINTER=device.address,
                 EPILOGUE=getattr(lib, f"MCBLASLT_EPILOGUE_{name}"))
    device.end()
    assert (out == stored(np.append(sums, 77), dtype)).all()
    assert (d == stored(2 * (a @ b), dtype)).all()


def test_batches_and_factors_on_the_device():
    m, n, k, count = 3, 4, 5, 6
    a, b = drawn((m * k,), "float32", 1), drawn((count, k * n), "float32", 2)
    b = np.ascontiguousarray(b)
    out = np.zeros((count, m * n), np.float32)
    devices = [Device(x) for x in (a, b, out, np.float32([2]), np.float32([0]), np.float32([3]), np.float32([0.5]))]
    shared, many = {"BATCH_COUNT": count}, lambda size: {"BATCH_COUNT": count, "STRIDED_BATCH_OFFSET": size}
    layouts = [lt.layout(0, m, k, **shared), lt.layout(0, k, n, **many(k * n)), lt.layout(0, m, n, **many(m * n))]
    desc = lt.description(POINTER_MODE=1, A_SCALE_POINTER=devices[5].address, B_SCALE_POINTER=devices[6].address)
    address = [device.address for device in devices]
    ok(lib.mcblasLtMatmul(ffi.cast("mcblasLtHandle_t", handle()), desc, address[3], address[0], layouts[0], address[1],
                          layouts[1], address[4], address[2], layouts[2], address[2], layouts[2], ffi.NULL, ffi.NULL, 0,
                          ffi.NULL))
    ok(lib.mcDeviceSynchronize())
    devices[2].end()
    for i in range(count):
        close(out[i].reshape(n, m).T, 3 * a.reshape(k, m).T.astype(float) @ b[i].reshape(n, k).T, np.float32)


def test_heuristic_and_attributes():
    results, count = ffi.new("mcblasLtMatmulHeuristicResult_t[3]"), ffi.new("int *")
    layouts = [lt.layout(0, 4, 4) for _ in range(4)]
    ok(lib.mcblasLtMatmulAlgoGetHeuristic(lt.handle(), lt.description(), *layouts, lt.preference(), 3, results, count))
    assert count[0] == 1 and results[0].state == 0 and results[0].workspaceSize == 0
    assert ffi.sizeof(results[0]) == 96
    private = lt.layout(0, 4, 4, ORDER=2)
    assert lib.mcblasLtMatmulAlgoGetHeuristic(lt.handle(), lt.description(), private, *layouts[1:], lt.preference(), 3,
                                              results, count) == 15 and count[0] == 0
    out = multiply(np.eye(4), np.eye(4), np.zeros((4, 4)), "float64", compute=70, scale="float64",
                   algorithm=ffi.addressof(results[0].algo))
    assert (out == np.eye(4)).all()
    rows, size = ffi.new("uint64_t *"), ffi.new("size_t *")
    ok(lib.mcblasLtMatrixLayoutGetAttribute(layouts[0], 2, rows, 8, size))
    assert (rows[0], size[0]) == (4, 8)
    ok(lib.mcblasLtMatmulDescGetAttribute(lt.description(), 7, ffi.NULL, 0, size))
    assert size[0] == 4
    alignment = ffi.new("uint32_t *")
    ok(lib.mcblasLtMatmulPreferenceGetAttribute(lt.preference(), 5, alignment, 4, ffi.NULL))
    assert alignment[0] == 256 and lib.mcblasLtGetVersion() == 10000
    for status in (lib.MCBLAS_STATUS_SUCCESS, lib.MCBLAS_STATUS_NOT_SUPPORTED, 99):
        for what in ("Name", "String"):
            text, other = getattr(lib, f"mcblasLtGetStatus{what}")(status), getattr(lib, f"mcblasGetStatus{what}")(status)
            assert ffi.string(text) == ffi.string(other)


def test_objects_end_and_empty_products_do_nothing():
    thing = lt.layout(0, 4, 4)
    ok(lib.mcblasLtMatrixLayoutDestroy(thing))
    assert lib.mcblasLtMatrixLayoutDestroy(thing) == 7
    assert math.isnan(multiply(np.zeros((1, 0)), np.zeros((0, 1)), np.full((1, 1), np.nan), "float64", 1, 1, compute=70,
                               scale="float64")[0, 0])
    assert multiply(np.zeros((1, 0)), np.zeros((0, 1)), np.full((1, 1), np.nan), "float64", 1, 0, compute=70,
                    scale="float64")[0, 0] == 0
