"""Calls of mcBLAS on NumPy arrays: arrays go to device memory and come back after the call."""

from __future__ import annotations

import functools

import numpy as np

from tests.maca.runtime_support import made, ok
from understudy.kit.prototypes import prototype
from understudy.maca import ffi, lib

LETTERS = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
REAL = {"S": "S", "D": "D", "C": "S", "Z": "D"}
N, T, C = 0, 1, 2
LOWER, UPPER, LEFT, RIGHT = 0, 1, 0, 1
TYPES = {"float32": 0, "float64": 1, "float16": 2, "int8": 3, "complex64": 4, "complex128": 5, "int32": 10, "bfloat16": 14}


@functools.cache
def handle():
    return made("mcblasHandle_t", lib.mcblasCreate)


def bytes_of(array):
    """The array's memory; it has to be contiguous in one of the two orders."""
    return ffi.from_buffer((array if array.flags.c_contiguous else array.T), require_writable=True)


class Device:
    """A copy of an array's memory on the device."""

    def __init__(self, array):
        self.array = array
        self.address = made("void *", lib.mcMalloc, max(1, array.nbytes))
        if array.nbytes:
            ok(lib.mcMemcpy(self.address, bytes_of(array), array.nbytes, lib.mcMemcpyHostToDevice))

    def end(self):
        if self.array.nbytes:
            ok(lib.mcMemcpy(bytes_of(self.array), self.address, self.array.nbytes, lib.mcMemcpyDeviceToHost))
        ok(lib.mcFree(self.address))


class Host:
    """An array that the function is given as it is: scalars and results in host mode."""

    def __init__(self, array):
        self.address = bytes_of(array)


def pointer(kind, address):
    return ffi.cast(kind, address)


def status(function: str, *arguments, on=None) -> int:
    """Calls with the handle and the arguments in the prototype's order; arrays become device memory."""
    known = prototype("maca", function).parameters
    if known[0].name == "handle":
        arguments = (handle() if on is None else on, *arguments)
    assert len(known) == len(arguments), (function, [p.name for p in known])
    kept = [Device(value) if isinstance(value, np.ndarray) else value for value in arguments]
    given = [pointer(parameter.kind, value.address) if isinstance(value, (Device, Host)) else ffi.NULL if value is None
             else value for parameter, value in zip(known, kept)]
    result = int(getattr(lib, function)(*given))
    ok(lib.mcDeviceSynchronize())
    for value in kept:
        if isinstance(value, Device):
            value.end()
    return result


def run(function: str, *arguments, on=None) -> None:
    ok(status(function, *arguments, on=on))


def scalar(value, dtype):
    return Host(np.array([value], dtype))


def drawn(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.normal(size=shape)
    return np.asfortranarray(values.astype(dtype))


def op(matrix, operation):
    return matrix if operation == N else matrix.T if operation == T else matrix.conj().T


def close(actual, expected, dtype, terms=16):
    """Within some roundings of sums of `terms` numbers of about one."""
    unit = np.finfo(np.dtype(dtype)).eps
    np.testing.assert_allclose(actual, expected, rtol=terms * unit, atol=4 * terms * unit)
