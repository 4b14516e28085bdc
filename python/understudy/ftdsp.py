"""The FT DSP stack: `ffi` and `lib` are the raw ABI, the rest is the NumPy layer.

The library's functions return nothing; a refusal is known only by its message, which is made a StatusError here.
"""

from __future__ import annotations

import struct

import numpy

from understudy._ftdsp_cffi import ffi
from understudy.arrays import REDUCTIONS, as_array, code_of
from understudy.binding import Binding
from understudy.errors import StatusError

_binding = Binding("ftdsp", ffi)

lib = _binding.lib
load = _binding.load
last_error = _binding.last_error

__all__ = ["binarycrossentropygrad", "call", "ffi", "last_error", "lib", "load", "run"]

PREFIXES = {
    numpy.dtype(name): prefix
    for name, prefix in {
        "float32": "fp", "float16": "hp", "float64": "dp", "int8": "i8", "int16": "i16", "int32": "i32",
        "complex64": "c64", "complex128": "c128",
    }.items()
}  # fmt: skip
ELEMENTS = {  # what arrays a pointer parameter takes; complex numbers are pairs
    "half": ("float16",), "float": ("float32", "complex64"), "double": ("float64", "complex128"), "int": ("int32",),
    "int8_t": ("int8",), "int16_t": ("int16",), "int32_t": ("int32",),
}  # fmt: skip
TYPES = {ffi.typeof(name): names for name, names in ELEMENTS.items()}
HALF = ffi.typeof("half")
ALL_CORES = 0xFF  # bits beyond the chip's cores do nothing


def _check() -> None:
    """Raises for the refusal that the last call left behind."""
    last = last_error()
    if last.rule:
        function, _, rule = last.rule.partition("/")
        raise StatusError(function, rule.rpartition("/")[2], last.status, last.rule, last.text)


def call(function: str, *arguments) -> None:
    """Calls a function that returns nothing; a refusal becomes a StatusError."""
    _call(getattr(lib, function), arguments)


def _call(function, arguments, arrays=()) -> None:
    """arrays: those that the arguments point to. Our library then refuses an operand that leaves its array."""
    clear = getattr(lib, "understudy_clear_last_error", None)
    if clear is None:  # not an Understudy library
        function(*arguments)
        return
    clear()
    first = ffi.new("const void *[]", [ffi.cast("void *", array.ctypes.data) for array in arrays])
    sizes = ffi.new("uint64_t[]", [array.nbytes for array in arrays])
    lib.understudy_expect_arrays(first, sizes, len(arrays))
    try:
        function(*arguments)
    finally:
        lib.understudy_expect_arrays(ffi.NULL, ffi.NULL, 0)
    _check()


def _half_by_value(value: float) -> float:
    """_Float16 travels in a vector register, as a double does: one whose low 16 bits are the half's."""
    return struct.unpack("<d", numpy.float16(value).tobytes() + bytes(6))[0]


def _pointer(array, kind, position: int):
    if array is None or (isinstance(array, numpy.ndarray) and array.size == 0):
        return ffi.NULL
    names = TYPES.get(kind.item)
    if kind.item.kind == "pointer":  # a table of arrays
        return ffi.new(f"{kind.item.cname}[]", [_pointer(entry, kind.item, position) for entry in array])
    if isinstance(array, (str, bytes)):
        return ffi.new("char[]", array.encode() if isinstance(array, str) else array)
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"argument {position} is {type(array).__name__}, needed is an array")
    if names is not None and array.dtype.name not in names:
        raise TypeError(f"argument {position} is {array.dtype}, needed is {' or '.join(names)}")
    if not array.flags.c_contiguous:
        raise ValueError(f"argument {position} is not contiguous; these functions know no strides")
    return ffi.cast(kind, ffi.from_buffer(array.reshape(-1).view(numpy.uint8)))


def _as_arrays(argument):
    """torch tensors, also in lists, as arrays of the same memory; all else as it is."""
    if isinstance(argument, list):
        return [_as_arrays(item) for item in argument]
    return as_array(argument) if hasattr(argument, "resolve_conj") else argument


def run(operator: str, *arguments, prefix: str | None = None, space: str = "s", core_mask: int = ALL_CORES) -> None:
    """Calls <prefix>_<operator>_<space>, such as fp_subext_s, with the parameters of its header, without core_mask.

    Arrays (and torch tensors on the CPU) are used in place, inputs and outputs alike: contiguous, of the element type that the header names (complex64
    counts as float, as there). Lists of arrays are tables of pointers; None is NULL; numbers and strings are passed on.
    An array that is shorter than the call needs is refused (rule window); a vendor's own library does not look.
    prefix: "fp", "hp", "dp", "i8", "i16", "i32", "c64", "c128"; default: the one of the first array's dtype.
    space: "s" shared or "p" private to a core. core_mask: bit i lets DSP core i take part; only with "s".
    Raises StatusError when the function refuses, AttributeError when there is no such function, TypeError and
    ValueError for arguments that do not fit. Source: ft-dsp 1.
    """
    if space not in ("s", "p"):
        raise ValueError(f"space is {space!r}, not one of 's', 'p'")
    arguments = tuple(_as_arrays(argument) for argument in arguments)
    flat = [item for argument in arguments for item in (argument if isinstance(argument, list) else [argument])]
    arrays = [item for item in flat if isinstance(item, numpy.ndarray)]
    if prefix is None:
        first = next(iter(arrays), None)
        if first is None or first.dtype not in PREFIXES:
            raise TypeError(f"no prefix for {'no array' if first is None else first.dtype}")
        prefix = PREFIXES[first.dtype]
    function = getattr(lib, f"{prefix}_{operator}_{space}")
    kinds = ffi.typeof(function).args
    if space == "s":
        if not core_mask & ALL_CORES:
            raise ValueError(f"core_mask {core_mask:#x} names no core: nothing would be computed")
        arguments = (*arguments, core_mask)
    if len(arguments) != len(kinds):
        raise TypeError(f"{prefix}_{operator}_{space} takes {len(kinds)} arguments, {len(arguments)} were given")
    if HALF in kinds:
        names = ["double" if kind is HALF else kind.cname for kind in kinds]
        function = ffi.cast(f"void (*)({', '.join(names)})", function)
    values = []
    for position, (argument, kind) in enumerate(zip(arguments, kinds)):
        if kind.kind == "pointer":
            values.append(_pointer(argument, kind, position))
        else:
            values.append(_half_by_value(argument) if kind is HALF else argument)
    _call(function, values, arrays)


def binarycrossentropygrad(x, y, dloss, weight=None, reduction="mean", core_mask=ALL_CORES, space="s") -> numpy.ndarray:
    """Gradient of the binary cross entropy with respect to the prediction: fp_/hp_binarycrossentropygrad_s/_p.

        dx = d * weight * (x - y) / (x * (1 - x) + 1e-12); d = dloss for "none" and "sum", dloss / N for "mean"

    x, y: prediction and target, float32 (fp_) or float16 (hp_), equal shapes of N elements; weight: the same, or None.
    dloss: of x's shape for "none", else one element.
    reduction: "none", "mean" or "sum" (or 0, 1, 2): the one used forward.
    core_mask: bit i lets DSP core i take part; only with space "s". space: "s" shared or "p" private to a core.
    Returns an array of x's shape and dtype. Non-contiguous arrays are copied: these functions know no strides.
    Raises StatusError when the function refuses, ValueError for unknown names or shapes that do not fit, TypeError for
    dtypes that differ or have no function. Source: ft-dsp 3.
    """
    x = numpy.asarray(as_array(x), order="C")
    if PREFIXES.get(x.dtype) not in ("fp", "hp"):
        raise TypeError(f"x is {x.dtype}: there are functions for float32 (fp_) and float16 (hp_)")
    code = code_of(reduction, REDUCTIONS, "reduction")
    operands = {"y": y, "weight": weight, "dloss": dloss}
    for name, array in operands.items():
        if array is None:
            continue
        array = as_array(array)
        if array.dtype != x.dtype and array.ndim:
            raise TypeError(f"{name} is {array.dtype}, x is {x.dtype}")
        count = 1 if name == "dloss" and code != 0 else x.size
        if array.size != count:
            raise ValueError(f"{name} has {array.size} elements, needed are {count}")
        operands[name] = numpy.asarray(array, x.dtype, order="C")
    dx = numpy.empty(x.shape, x.dtype)
    arguments = x.size, code, x, *operands.values(), dx, int(weight is not None)
    run("binarycrossentropygrad", *arguments, space=space, core_mask=core_mask)
    return dx
