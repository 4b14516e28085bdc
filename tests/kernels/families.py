"""The kernel families (map, reduce, scan) called with NumPy arrays. The structures repeat src_c/kernels/map/map.h and
its neighbours. bfloat16 arrays are uint16 arrays wrapped in Bfloat."""

import ctypes
import pathlib
import re

import numpy as np

from tests.native import ROOT
from tests.tensor.internals import DTYPES, View, library, view

CALL_NUMBERS = 12
MAP_FILES = pathlib.Path(ROOT) / "src_c" / "kernels" / "map"
KINDS = {"MAP": "same", "MAP_TEST": "bool", "MAP_PART": "real", "MAP_MANY": "same", "MAP_PREPARED": "same", "MAP_UNLESS": "same",
         "MAP_POWER": "same"}


class Number(ctypes.Structure):
    _fields_ = [("real", ctypes.c_double), ("imaginary", ctypes.c_double), ("integer", ctypes.c_int64)]


class MapBlend(ctypes.Structure):
    _fields_ = [("wanted", ctypes.c_bool), ("alpha", ctypes.c_double), ("beta", ctypes.c_double)]


class MapCall(ctypes.Structure):
    _fields_ = [("formula", ctypes.c_void_p), ("compute", ctypes.c_int), ("result", ctypes.c_int),
                ("inputs", ctypes.c_int32), ("outputs", ctypes.c_int32), ("items", ctypes.c_int32),
                ("number_count", ctypes.c_int32), ("numbers", Number * CALL_NUMBERS), ("blend", MapBlend)]


class Bfloat(np.ndarray):
    """uint16 bits of bfloat16 values."""


def bfloat(array):
    return np.asarray(array, np.uint16).view(Bfloat)


def name_of(array):
    return "bfloat16" if isinstance(array, Bfloat) else array.dtype.name


def stored(dtype):
    return np.dtype("uint16" if dtype == "bfloat16" else dtype)


def number(value):
    if isinstance(value, Number):
        return value
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, complex):
        return Number(value.real, value.imag, 0)
    integer = int(value) if abs(value) < 2**64 and value == value else 0  # an infinite one has no integer form
    return Number(value, 0, (integer + 2**63) % 2**64 - 2**63)


def formula(name):
    return ctypes.c_char.in_dll(library(), f"us_map_{name}")


def formulas():
    """name -> (kind, inputs, outputs, numbers, lanes), from the files that declare them."""
    found = {}
    for path in sorted(MAP_FILES.glob("*.inc")):
        for line in path.read_text().splitlines():
            match = re.match(r"(MAP\w*)\((\w+), (\d+), (?:(\d+), )??(\d+), ([A-Z]\w*),", line)
            if match and match[1] in KINDS:
                kind, name, inputs, outputs, numbers, lanes = match.groups()
                found[name] = (KINDS[kind], int(inputs), int(outputs or 1), int(numbers), lanes)
            split = re.match(r"MAP_SPLIT\((\w+), ([A-Z]\w*),", line)
            if split:
                found[split[1]] = ("same", 1, 1, 0, split[2])
    return found


def real_of(dtype):
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def result_type(kind, compute):
    return {"same": compute, "bool": "bool", "real": real_of(compute)}[kind]


def seen(operand):
    return View() if operand is None else view(operand, name_of(operand))


def run_map(name, inputs, outputs, compute, numbers=(), *, scalars=(), kind="same", blend=None):
    """`inputs` may hold None, an absent input, whose value is in `scalars`; `blend`: alpha and beta."""
    call = MapCall(ctypes.addressof(formula(name)), DTYPES[compute], DTYPES[result_type(kind, compute)], len(inputs),
                   len(outputs), 1)
    for place, value in enumerate([*numbers, *scalars]):
        call.numbers[place] = number(value)
    call.blend = MapBlend(False) if blend is None else MapBlend(True, *blend)
    views = [seen(operand) for operand in (*inputs, *outputs)]
    assert library().us_map((View * len(views))(*views), ctypes.byref(call)) == 0
    return outputs
