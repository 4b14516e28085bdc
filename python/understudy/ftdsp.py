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
from understudy.ft_run import cores_here

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
    "int8_t": ("int8",), "int16_t": ("int16",), "int32_t": ("int32",), "long long": ("int64",),
    "bool": ("bool", "int8", "uint8"),
}  # fmt: skip
TYPES = {ffi.typeof(name): names for name, names in ELEMENTS.items()}
HALF, INT = ffi.typeof("half"), ffi.typeof("int")
ALL_CORES = 0xFF  # bits beyond CORES do nothing
CORES = cores_here()


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


def _takes(kind, array) -> bool:
    """Whether a pointer may point to elements of an array's type."""
    return kind.item not in TYPES or (array.dtype.isnative and array.dtype.name in TYPES[kind.item])


def _structure(members: dict, kind, position: int, made: list):
    structure, types = ffi.new(kind), dict(kind.item.fields)
    made.append(structure)
    for name, value in members.items():
        if name not in types:
            raise TypeError(f"argument {position}: {kind.item.cname} has no member {name}, but {', '.join(types)}")
        is_pointer = types[name].type.kind == "pointer"
        setattr(structure, name, _pointer(value, types[name].type, position, made) if is_pointer else value)
    return structure


def _pointer(value, kind, position: int, made: list):
    """What C gets for an argument. made: objects that have to live until the call has ended."""
    if value is None or (isinstance(value, numpy.ndarray) and value.size == 0):
        return ffi.NULL
    if isinstance(value, ffi.CData):
        return value
    if isinstance(value, dict) and kind.item.kind == "struct":
        return _structure(value, kind, position, made)
    if kind.item.kind == "pointer":  # a table of arrays; C does not know where it ends: NULL is refused
        entries = [_pointer(entry, kind.item, position, made) for entry in value]
        made.append(ffi.new(f"{kind.item.cname}[]", [*entries, ffi.NULL]))
        return made[-1]
    if isinstance(value, (str, bytes)):
        made.append(ffi.new("char[]", value.encode() if isinstance(value, str) else value))
        return made[-1]
    if not isinstance(value, numpy.ndarray):
        raise TypeError(f"argument {position} is {type(value).__name__}, needed is an array")
    if not _takes(kind, value):
        raise TypeError(f"argument {position} is {value.dtype}, needed is {' or '.join(TYPES[kind.item])}")
    if not value.flags.c_contiguous:
        raise ValueError(f"argument {position} is not contiguous; these functions know no strides")
    return ffi.cast(kind, ffi.from_buffer(value.reshape(-1).view(numpy.uint8)))


def _as_arrays(argument, copied: list):
    """torch tensors, also in lists and structures, as arrays of the same memory; all else as it is.

    copied: gets each read-only array and the copy that is taken for it. The headers do not say what a function writes."""
    if isinstance(argument, (list, tuple)):
        return [_as_arrays(item, copied) for item in argument]
    if isinstance(argument, dict):
        return {name: _as_arrays(item, copied) for name, item in argument.items()}
    if isinstance(argument, numpy.ndarray) and argument.flags.c_contiguous and not argument.flags.writeable:
        copied.append((argument, argument.copy()))
        return copied[-1][1]
    return as_array(argument) if hasattr(argument, "resolve_conj") else argument


def _arrays_in(arguments) -> list:
    found = []
    for argument in arguments:
        inner = argument if isinstance(argument, list) else argument.values() if isinstance(argument, dict) else None
        found += [argument] if isinstance(argument, numpy.ndarray) else [] if inner is None else _arrays_in(inner)
    return found


def _kinds(name: str) -> tuple[list, int | None]:
    """Types of a function's parameters without core_mask, and where that stands: it is the last int, and _p functions
    have none."""
    kinds = list(ffi.typeof(getattr(lib, name)).args)
    if name.endswith("_p"):
        return kinds, None
    place = max(position for position, kind in enumerate(kinds) if kind is INT)
    return kinds[:place] + kinds[place + 1:], place


def _has(name: str) -> bool:
    try:
        return callable(getattr(lib, name))
    except AttributeError:
        return False


def _name(operator: str, arguments, prefix: str | None, space: str) -> str:
    """The function that is meant: of the arrays' prefixes the first whose function takes all of them."""
    of_arrays = dict.fromkeys(PREFIXES[array.dtype] for array in _arrays_in(arguments) if array.dtype in PREFIXES)
    prefixes = [prefix] if prefix else list(of_arrays)
    names = [f"{each}_{operator}_{space}" for each in prefixes] + [f"{operator}_{space}"]
    if space == "s":
        names += [*(f"{each}_{operator}_anycore" for each in prefixes), operator]
    there = [name for name in names if _has(name)]
    if not there and not prefixes:
        kinds = ", ".join(dict.fromkeys(str(array.dtype) for array in _arrays_in(arguments)))
        raise TypeError(f"no prefix for {kinds or 'no array'}")
    fitting = [name for name in there if all(_takes(kind, argument) for argument, kind in zip(arguments, _kinds(name)[0])
                                             if isinstance(argument, numpy.ndarray) and kind.kind == "pointer")]  # fmt: skip
    return (fitting or there or names)[0]


def run(operator: str, *arguments, prefix: str | None = None, space: str = "s", core_mask: int = ALL_CORES) -> None:
    """Calls <prefix>_<operator>_<space>, such as fp_subext_s, with the parameters of its header, without core_mask.

    Arrays (and torch tensors on the CPU) are used in place, inputs and outputs alike: contiguous, of the element type that
    the header names (complex64 counts as float, as there); read-only ones can be inputs only. Lists of arrays are tables
    of pointers, dicts the members of a structure; None is NULL; numbers, strings and cffi pointers are passed on.
    An array that is shorter than the call needs is refused (rule window); a vendor's own library does not look.
    prefix: "fp", "hp", "dp", "i8", "i16", "i32", "c64", "c128"; default: the first of the arrays' types with which there
    is such a function for all of them. Functions without prefix or suffix are found by their names: "sparsereshape",
    "Flatten", "crop_and_resize".
    space: "s" shared or "p" private to a core. core_mask: bit i lets DSP core i take part; only with "s".
    Raises StatusError when the function refuses, AttributeError when there is no such function, TypeError and
    ValueError for arguments that do not fit. Source: ft-dsp 1.
    """
    if space not in ("s", "p"):
        raise ValueError(f"space is {space!r}, not one of 's', 'p'")
    copied: list[tuple[numpy.ndarray, numpy.ndarray]] = []
    arguments = [_as_arrays(argument, copied) for argument in arguments]
    name = _name(operator, arguments, prefix, space)
    function, (kinds, mask_place) = getattr(lib, name), _kinds(name)
    if mask_place is not None and not core_mask & (1 << CORES) - 1:
        raise ValueError(f"core_mask {core_mask:#x} names no core of {CORES}: nothing would be computed")
    if len(arguments) != len(kinds):
        raise TypeError(f"{name} takes {len(kinds)} arguments, {len(arguments)} were given")
    values, made = [], []
    for position, (argument, kind) in enumerate(zip(arguments, kinds)):
        if kind.kind == "pointer":
            values.append(_pointer(argument, kind, position, made))
        else:
            values.append(_half_by_value(argument) if kind is HALF else argument)
    if mask_place is not None:
        values.insert(mask_place, core_mask)
        kinds.insert(mask_place, INT)
    if HALF in kinds:
        names = ["double" if kind is HALF else kind.cname for kind in kinds]
        function = ffi.cast(f"void (*)({', '.join(names)})", function)
    _call(function, values, _arrays_in(arguments))
    if any(array.tobytes() != copy.tobytes() for array, copy in copied):
        raise ValueError(f"{name} writes an array that is read-only; that one is left as it was")


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
