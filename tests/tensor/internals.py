"""Internals of libunderstudy.so through ctypes: views of NumPy arrays, kernels and their attributes.

The structures repeat src_c/tensor/view.h and src_c/kernels/kernels.h.
"""

import ctypes
import functools

import numpy as np
from understudy.paths import sdk

RANK_LIMIT = 25
DTYPES = {"float32": 1, "float16": 2, "bfloat16": 3, "float64": 4, "int8": 5, "int16": 6, "int32": 7, "int64": 8,
          "uint8": 9, "uint16": 10, "uint32": 11, "uint64": 12, "bool": 13, "complex64": 14, "complex128": 15}
FAST, ACCURATE, LOG = 0, 1, 2


class View(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32),
                ("shape", ctypes.c_int64 * RANK_LIMIT), ("strides", ctypes.c_int64 * RANK_LIMIT)]


class Softmax(ctypes.Structure):
    _fields_ = [("algorithm", ctypes.c_int), ("first_axis", ctypes.c_int32), ("last_axis", ctypes.c_int32),
                ("alpha", ctypes.c_double), ("beta", ctypes.c_double)]


@functools.cache
def library():
    loaded = ctypes.CDLL(str(sdk() / "lib" / "libunderstudy.so"))
    loaded.us_shape_elements.restype = ctypes.c_int64
    loaded.us_shape_elements.argtypes = [ctypes.c_int32, ctypes.POINTER(ctypes.c_int64)]
    for name in ("us_view_is_contiguous", "us_view_extent", "us_broadcast_shape"):
        getattr(loaded, name).restype = ctypes.c_bool
    loaded.us_view_broadcast.restype = View
    loaded.us_view_half.restype = View
    loaded.us_view_half.argtypes = [View, ctypes.c_int32, ctypes.c_bool, ctypes.c_bool]
    for direction in ("load", "store"):
        for kind in ("float", "double"):
            arguments = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
            if direction == "store":
                arguments = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
            getattr(loaded, f"us_{direction}_{kind}").argtypes = arguments
    return loaded


def view(array, dtype=None):
    """The view of an array; bfloat16 arrays are uint16 arrays with dtype="bfloat16"."""
    if array is None:
        return View()
    result = View(array.ctypes.data, DTYPES[dtype or array.dtype.name], array.ndim)
    for axis in range(array.ndim):
        assert array.strides[axis] % array.itemsize == 0
        result.shape[axis] = array.shape[axis]
        result.strides[axis] = array.strides[axis] // array.itemsize
    return result


def shape_view(shape, strides=None):
    result = View(None, DTYPES["float32"], len(shape))
    for axis, size in enumerate(shape):
        result.shape[axis] = size
        result.strides[axis] = strides[axis] if strides else 0
    return result


def run(kernel, views, attributes):
    status = getattr(library(), kernel)((View * len(views))(*views), ctypes.byref(attributes))
    assert status == 0


def bfloat_of(values):
    """fp32 -> bfloat16 bits, to nearest even, from the definition: the nearer of the two neighbours in float64."""
    values = np.asarray(values, np.float32)
    low = values.view(np.uint32) & np.uint32(0xFFFF0000)
    high = low + np.uint32(0x10000)
    with np.errstate(invalid="ignore"):
        exact, at_low, at_high = (bits.view(np.float32).astype(np.float64) for bits in (values, low, high))
        # Past the largest finite number the next neighbour counts as 2^128.
        at_high = np.where(np.isinf(at_high), np.copysign(2.0**128, exact), at_high)
        to_low, to_high = np.abs(exact - at_low), np.abs(at_high - exact)
    odd = (low >> 16) & 1 == 1
    take_high = np.isfinite(exact) & ((to_high < to_low) | ((to_high == to_low) & odd))
    bits = np.where(take_high, high, low) >> 16
    return np.where(np.isnan(exact), bits | 0x40, bits).astype(np.uint16)


def bfloat_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)
