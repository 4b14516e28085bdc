"""NumPy arrays as the stacks see them: a storage, a shape, strides counted in elements."""

from typing import NamedTuple

import numpy

try:
    import ml_dtypes
except ImportError:  # bfloat16 is offered only when this package is there
    ml_dtypes = None


def is_known(name: str) -> bool:
    """Whether NumPy has the type: bfloat16 only with ml_dtypes."""
    return name != "bfloat16" or ml_dtypes is not None


def dtype_named(name: str) -> numpy.dtype:
    if not is_known(name):
        raise TypeError("bfloat16 needs the package ml_dtypes")
    return numpy.dtype(name)


def dtype_table(**names: str) -> dict[numpy.dtype, str]:
    """NumPy dtypes as keys, the given constants as values, as far as NumPy has the types."""
    return {dtype_named(name): constant for name, constant in names.items() if is_known(name)}


class Storage(NamedTuple):
    elements: numpy.ndarray  # one-dimensional, contiguous or a plain window of the caller's memory
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements


def strided(array: numpy.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> numpy.ndarray:
    """numpy.lib.stride_tricks.as_strided, also of types that NumPy does not have itself; strides in bytes."""
    plain = array.view(numpy.dtype((numpy.void, array.itemsize)))
    return numpy.lib.stride_tricks.as_strided(plain, shape, strides).view(array.dtype)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _of_torch(tensor) -> numpy.ndarray:
    """A torch tensor's memory; a copy where it is not on the CPU, or not in memory as it reads (conjugated)."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    try:
        return tensor.numpy()
    except TypeError:  # a type that NumPy does not have itself
        import torch

        known = getattr(ml_dtypes, name, None)
        bits = {1: torch.uint8, 2: torch.int16}.get(tensor.element_size())
        if known is None or bits is None:
            raise TypeError(f"NumPy has no counterpart of {tensor.dtype}"
                            + ("" if ml_dtypes else "; bfloat16 needs the package ml_dtypes")) from None  # fmt: skip
        return tensor.view(bits).numpy().view(known)


def as_array(value) -> numpy.ndarray:
    """A NumPy array, without a copy where it can be: of an array, of a torch tensor (also one that requires gradients, and
    of bfloat16, with ml_dtypes), of numbers."""
    is_tensor = hasattr(value, "resolve_conj") and hasattr(value, "detach")
    return _of_torch(value) if is_tensor else numpy.asarray(value)


def native(array: numpy.ndarray) -> numpy.ndarray:
    """In the byte order of this machine; a copy where the other one is given."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def storage_of(array: numpy.ndarray) -> Storage:
    """The memory behind a view, from its first element to its last, and the strides within it.

    Views with negative strides, or strides that are no multiple of the element size, are copied first."""
    array = native(as_array(array))
    size = array.itemsize
    if array.size == 0 or any(stride < 0 or stride % size for stride in array.strides):
        array = numpy.ascontiguousarray(array).reshape(array.shape)
    if array.flags.c_contiguous:
        return Storage(array.reshape(-1), array.shape, contiguous_strides(array.shape))
    extent = 1 + sum((length - 1) * stride // size for length, stride in zip(array.shape, array.strides))
    window = strided(array, (extent,), (size,))
    window.flags.writeable = False
    return Storage(window, array.shape, tuple(stride // size for stride in array.strides))


REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}  # of losses


def code_of(name, choices: dict[str, int], what: str) -> int:
    """The number of a named option; integers pass, so that the library judges them."""
    if isinstance(name, str):
        if name not in choices:
            raise ValueError(f"{what} is {name!r}, not one of {', '.join(map(repr, choices))}")
        return choices[name]
    return int(name)


def pointer(ffi, array: numpy.ndarray, writable: bool = False):
    """A C pointer to a contiguous array. It keeps the array alive only while the pointer object lives."""
    return ffi.from_buffer("char[]", array.view(numpy.uint8), require_writable=writable)
