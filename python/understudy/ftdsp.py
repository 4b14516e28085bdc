"""The FT DSP stack: `ffi` and `lib` are the raw ABI, the rest is the NumPy layer.

The library's functions return nothing; a refusal is known only by its message, which is made a StatusError here.
"""

import numpy

from understudy._ftdsp_cffi import ffi
from understudy.arrays import code_of
from understudy.binding import Binding
from understudy.errors import StatusError

_binding = Binding("ftdsp", ffi)

lib = _binding.lib
load = _binding.load
last_error = _binding.last_error

__all__ = ["binarycrossentropygrad", "call", "ffi", "last_error", "lib", "load"]

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
PREFIXES = {numpy.dtype(numpy.float32): "fp", numpy.dtype(numpy.float16): "hp"}
POINTERS = {"fp": "float[]", "hp": "half[]"}
ALL_CORES = 0xFF  # bits beyond the chip's cores do nothing


def call(function: str, *arguments) -> None:
    """Calls a function that returns nothing; a refusal becomes a StatusError."""
    clear = getattr(lib, "understudy_clear_last_error", None)
    if clear is not None:
        clear()
    getattr(lib, function)(*arguments)
    last = last_error()
    if last.rule:
        raise StatusError(function, last.rule.rpartition("/")[2], last.status, last.rule, last.text)


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
    x = numpy.asarray(x)
    prefix = PREFIXES.get(x.dtype)
    if prefix is None:
        raise TypeError(f"x is {x.dtype}: there are functions for float32 (fp_) and float16 (hp_)")
    if space not in ("s", "p"):
        raise ValueError(f"space is {space!r}, not one of 's', 'p'")
    code = code_of(reduction, REDUCTIONS, "reduction")
    arrays = {"x": x, "y": y, "weight": weight, "dloss": dloss}
    pointers = {name: ffi.NULL for name in arrays}
    for name, array in arrays.items():
        if array is None:
            continue
        array = numpy.asarray(array)
        if array.dtype != x.dtype and array.ndim:
            raise TypeError(f"{name} is {array.dtype}, x is {x.dtype}")
        count = 1 if name == "dloss" and code != 0 else x.size
        if array.size != count:
            raise ValueError(f"{name} has {array.size} elements, needed are {count}")
        flat = numpy.ascontiguousarray(array, x.dtype).reshape(-1)
        pointers[name] = ffi.from_buffer(POINTERS[prefix], flat.view(numpy.uint8))
    dx = numpy.empty(x.shape, x.dtype)
    out = ffi.from_buffer(POINTERS[prefix], dx.reshape(-1).view(numpy.uint8), require_writable=True)
    arguments = [x.size, code, *pointers.values(), out, int(weight is not None)]
    if space == "s":
        arguments.append(core_mask)
    call(f"{prefix}_binarycrossentropygrad_{space}", *arguments)
    return dx
