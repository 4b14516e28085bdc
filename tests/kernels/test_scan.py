"""The scan family against NumPy: running sums and products, extrema with indices, any axis, strides and types."""

import ctypes

import numpy as np
import pytest

from tests.kernels.families import bfloat, library, name_of, seen
from tests.kernels.test_map_formulas import plain, samples, wide
from tests.kernels.test_soft_margin_loss_backward import bits
from tests.tensor.internals import DTYPES, View

UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-53, "complex64": 2.0**-24,
        "complex128": 2.0**-53}
INTEGERS = ["int32", "int64", "uint64", "int8", "uint8", "int16", "uint16", "uint32", "bool"]
SHAPES = [((), 0), ((1,), 0), ((0,), 0), ((17,), 0), ((2063,), 0), ((3, 70), 0), ((3, 70), 1), ((5, 4, 33), 0),
          ((5, 4, 33), 1),
          ((5, 4, 33), 2), ((300, 40), 0), ((2, 1100, 3), 1), ((0, 4), 1), ((4, 0), 1),
          ((70, 3), 1), ((1100, 2), 1), ((33, 50), 1), ((40, 9, 3), 1), ((17, 70, 15), 1), ((700, 6), 0)]  # fmt: skip


class ScanCall(ctypes.Structure):
    _fields_ = [("scan", ctypes.c_void_p), ("compute", ctypes.c_int), ("result", ctypes.c_int), ("axis", ctypes.c_int32),
                ("outputs", ctypes.c_int32), ("exclusive", ctypes.c_bool), ("reverse", ctypes.c_bool)]


def scan(name, x, axis, outputs=None, compute=None, exclusive=False, reverse=False, indices="int64"):
    compute = compute or name_of(x)
    if outputs is None:
        values = np.full(x.shape, 7, "uint16" if compute == "bfloat16" else compute)
        outputs = [bfloat(values) if compute == "bfloat16" else values]
        outputs += [np.full(x.shape, 7, indices)] if name.endswith("_index") else []
    place = ctypes.addressof(ctypes.c_char.in_dll(library(), f"us_scan_{name}"))
    call = ScanCall(place, DTYPES[compute], DTYPES[compute], axis, len(outputs), exclusive, reverse)
    views = [seen(operand) for operand in (x, *outputs)]
    assert library().us_scan((View * len(views))(*views), ctypes.byref(call)) == 0
    return outputs


def accumulated(function, x, axis, exclusive=False, reverse=False, start=0):
    x = np.asarray(x) if x.ndim else np.asarray(x).reshape(1)
    x = np.flip(x, axis) if reverse else x
    result = function.accumulate(x, axis)
    if exclusive and x.size:
        shifted = np.roll(result, 1, axis)
        shifted[tuple(0 if dim == axis else slice(None) for dim in range(x.ndim))] = start
        result = shifted
    return np.flip(result, axis) if reverse else result


@pytest.mark.parametrize("dtype", list(UNIT))
def test_running_sums_and_products(dtype):
    for place, (shape, axis) in enumerate(SHAPES):
        x = samples(dtype, int(np.prod(shape)), place, (-2, 3)).reshape(shape)
        for exclusive, reverse in ((False, False), (True, False), (False, True), (True, True)):
            exact = accumulated(np.add, wide(x), axis, exclusive, reverse).reshape(shape)
            size = accumulated(np.add, np.abs(wide(x)), axis, exclusive, reverse).reshape(shape)
            actual = wide(scan("sum", x, axis, exclusive=exclusive, reverse=reverse)[0])
            count = shape[axis] if shape else 1
            smallest = {"float16": 2.0**-25}.get(dtype, 2.0**-134)
            assert (np.abs(actual - exact) <= UNIT[dtype] * np.abs(exact) + 2.0**-52 * count * size + smallest).all()
        near_one = samples(dtype, int(np.prod(shape)), place, (0.999, 1.001)).reshape(shape)
        exact = accumulated(np.multiply, wide(near_one), axis).reshape(shape)
        actual = wide(scan("prod", near_one, axis)[0])
        with np.errstate(all="ignore"):
            limit = {"float16": 65504.0}.get(dtype, 1e38)
            allowed = UNIT[dtype] * np.abs(exact) + 2.0**-51 * count * np.abs(exact) + smallest
            assert ((np.abs(actual - exact) <= allowed) | (np.abs(exact) > limit) | ~np.isfinite(exact)).all()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_numbers_modulo(dtype):
    for place, (shape, axis) in enumerate(SHAPES):
        x = samples(dtype, int(np.prod(shape)), place).reshape(shape)
        with np.errstate(all="ignore"):
            widest = x.astype(np.uint64 if dtype == "uint64" else np.int64)
            total = accumulated(np.add, widest, axis).reshape(shape).astype(dtype)
            product = accumulated(np.multiply, widest, axis).reshape(shape).astype(dtype)
        assert np.array_equal(scan("sum", x, axis)[0], total)
        assert np.array_equal(scan("prod", x, axis)[0], product)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "uint64", "int8", "bool"])
def test_running_extrema(dtype):
    for place, (shape, axis) in enumerate(SHAPES):
        for domain in (None, (0, 3)):
            x = samples(dtype, int(np.prod(shape)), place, domain).reshape(shape)
            for name, function in (("max_index", np.maximum), ("min_index", np.minimum)):
                values, indices = scan(name, x, axis, indices="int32" if place % 2 else "int64")
                exact = accumulated(function, wide(x), axis).reshape(shape)
                assert np.array_equal(wide(values), exact, equal_nan=True)
                if x.size == 0 or x.ndim == 0:
                    continue
                # The last element so far that is equal to the extremum.
                equal = np.moveaxis(wide(x), axis, -1)[..., None, :] == np.moveaxis(exact, axis, -1)[..., None]
                nan = np.isnan(np.moveaxis(wide(x), axis, -1).astype(np.float64))
                equal |= nan[..., None, :] & np.isnan(np.moveaxis(exact, axis, -1).astype(np.float64))[..., None] \
                    if shape[axis] < 600 else False
                if shape[axis] >= 600:
                    picked = np.take_along_axis(wide(x), indices.astype(np.int64), axis)
                    assert np.array_equal(picked, exact, equal_nan=True)
                    continue
                length = shape[axis]
                so_far = np.tril(np.ones((length, length), bool))
                last = length - 1 - np.argmax((equal & so_far)[..., ::-1], axis=-1)
                assert np.array_equal(np.moveaxis(indices, axis, -1), last)


def test_any_strides_in_place_and_types_that_differ():
    x = np.trunc(samples("float32", 4 * 50 * 30, 1, (-9, 9))).reshape(4, 50, 30)
    for axis in range(3):
        exact = np.cumsum(x, axis)
        for array in (np.asfortranarray(x), np.swapaxes(np.swapaxes(x, 0, 2).copy(), 0, 2), x[::-1].copy()[::-1]):
            out = np.zeros((4, 100, 60), np.float32)[:, ::2, ::2]
            assert np.array_equal(scan("sum", array, axis, outputs=[out])[0], exact)
        same = x.copy()
        assert np.array_equal(scan("sum", same, axis, outputs=[same])[0], exact)
    halves = scan("sum", x.astype(np.int8), 1, outputs=[np.zeros(x.shape, np.float16)], compute="int64")[0]
    assert np.array_equal(halves, np.cumsum(x, 1).astype(np.float16))


def everything():
    parts = []
    for shape, axis in [((70000,), 0), ((300, 500), 0), ((300, 500), 1)]:
        for dtype in ("float32", "float16", "int32"):
            x = samples(dtype, int(np.prod(shape)), 1, (-4, 4)).reshape(shape)
            parts += [plain(scan(name, x, axis)) for name in ("sum", "max_index")]
    return b"".join(parts)


def test_same_bits_on_every_instruction_set_and_any_number_of_threads():
    assert len({bits("test_scan", level, threads) for level, threads in [("base", "1"), ("v3", "2"), ("v4", "3")]}) == 1
