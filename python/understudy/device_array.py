"""Arrays in device memory, and streams and events: what is the same for the stacks that have them."""

from __future__ import annotations

import importlib
import math
import weakref
from collections.abc import Callable

import numpy

from understudy.arrays import as_array, contiguous_strides, native, storage_of, strided


class Space:
    """What a stack does for its arrays: memory, copies, streams. Addresses are numbers."""

    name = ""
    kinds: tuple[str, ...] = ("device", "pinned")

    def allocate(self, kind: str, size: int) -> int:
        raise NotImplementedError

    def free_function(self, kind: str) -> Callable[[int], None]:
        """Of the libraries that are loaded now: memory stays theirs when others are loaded."""
        raise NotImplementedError

    def copy(self, target: int, source: int, size: int) -> None:
        """Between any two memories, after the calling thread's stream has come to rest."""
        raise NotImplementedError

    def ordinal(self) -> int:
        """The calling thread's device."""
        raise NotImplementedError


class Memory:
    """A block of a space's memory, freed with the object. Size 0: no block."""

    def __init__(self, space: Space, kind: str, size: int):
        if kind not in space.kinds:
            raise ValueError(f"memory is {kind!r}, not one of {', '.join(map(repr, space.kinds))}")
        self.space, self.kind, self.size = space, kind, size
        self.address = space.allocate(kind, size) if size else 0
        self.device = space.ordinal()
        self._end = weakref.finalize(self, space.free_function(kind), self.address) if size else None
        if self._end:
            self._end.atexit = False  # at the end of the process the library ends its memory itself

    def free(self) -> None:
        """Frees it now, and not with the object."""
        if self._end:
            self._end()


class DeviceArray:
    """An array in memory of a device: `ascend.array(x)`, `maca.array(x)`. Operators take it without a copy.

    shape, strides (in bytes, as NumPy's), dtype, ndim, size, nbytes; pointer: the device address of the first element;
    device: its number. Slices with steps above 0, `T` and indices give views of the same memory. `numpy()` copies to the
    host. Memory that the host sees ("pinned", "managed") also has `__array_interface__` and DLPack, which do not copy.
    """

    def __init__(self, memory: Memory, shape, dtype, strides=None, offset: int = 0):
        self.memory, self.shape, self.dtype, self.offset = memory, tuple(shape), numpy.dtype(dtype), offset
        steps = contiguous_strides(self.shape)
        self.strides = tuple(step * self.dtype.itemsize for step in steps) if strides is None else tuple(strides)

    # ---- what it is ----

    @property
    def pointer(self) -> int:
        return self.memory.address + self.offset if self.memory.size else 0

    @property
    def device(self) -> int:
        return self.memory.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def element_strides(self) -> tuple[int, ...]:
        return tuple(step // self.itemsize for step in self.strides)

    @property
    def extent(self) -> int:
        """Elements of memory from the first one of the array to its last."""
        return 1 + sum((n - 1) * step for n, step in zip(self.shape, self.element_strides)) if self.size else 0

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        shown = self.memory.kind if self.memory.kind != "device" else f"device {self.device}"
        values = numpy.array2string(self.numpy(), separator=", ", threshold=32)
        return f"{self.memory.space.name}.array({values}, dtype={self.dtype}, shape={self.shape}, {shown})"

    # ---- views ----

    def _like(self, view: numpy.ndarray, start: int) -> DeviceArray:
        moved = view.__array_interface__["data"][0] - start
        return DeviceArray(self.memory, view.shape, self.dtype, view.strides, self.offset + moved)

    def _shadow(self) -> numpy.ndarray:
        """A NumPy array of the same shape and strides, whose elements nobody may touch."""
        return strided(numpy.empty(1, self.dtype), self.shape, self.strides)

    def __getitem__(self, key) -> DeviceArray:
        keys = key if isinstance(key, tuple) else (key,)
        for part in keys:
            if not (part is None or part is Ellipsis or isinstance(part, (int, numpy.integer, slice))):
                raise TypeError(f"a device array is indexed by integers and slices, not by {type(part).__name__}")
            if isinstance(part, slice) and part.step is not None and part.step < 0:
                raise ValueError("steps below 0 have no counterpart in the device's tensors")
        shadow = self._shadow()
        view = shadow[keys if any(part is Ellipsis for part in keys) else (*keys, Ellipsis)]
        return self._like(view, shadow.__array_interface__["data"][0])

    @property
    def T(self) -> DeviceArray:
        return DeviceArray(self.memory, self.shape[::-1], self.dtype, self.strides[::-1], self.offset)

    # ---- to the host ----

    def numpy(self) -> numpy.ndarray:
        """A copy on the host, after the calling thread's stream has come to rest."""
        elements = numpy.empty(self.extent, self.dtype)
        if elements.nbytes:
            self.memory.space.copy(elements.ctypes.data, self.pointer, elements.nbytes)
        if self.element_strides == contiguous_strides(self.shape):
            return elements.reshape(self.shape)
        return strided(elements, self.shape, self.strides).copy()

    def __array__(self, dtype=None, copy=None) -> numpy.ndarray:
        if copy is False and self.memory.kind == "device":
            raise ValueError("device memory cannot be seen by the host without a copy")
        return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)

    @property
    def __array_interface__(self) -> dict:
        if self.memory.kind == "device":
            raise AttributeError("device memory cannot be seen by the host: numpy() copies it")
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "strides": self.strides,
                "data": (self.pointer, False), "descr": self.dtype.descr}  # fmt: skip

    def _on_host(self) -> numpy.ndarray:
        """The same memory as a NumPy array, which keeps it alive."""
        if self.memory.kind == "device":
            raise BufferError(f"memory of {self.memory.space.name} device {self.device} cannot be seen by the host: "
                              "numpy() copies it")  # fmt: skip
        return numpy.asarray(_Interface(self)).view(self.dtype)

    def __reduce__(self):
        """Copies and pickled arrays are new arrays with these contents: other processes do not see the memory."""
        return _remade, (self.memory.space.name, self.numpy(), self.memory.kind)

    def __dlpack__(self, **options):
        return self._on_host().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        extension, host = 12, 1  # kDLExtDev, kDLCPU
        return (extension, self.device) if self.memory.kind == "device" else (host, 0)


def owned(space: Space, array: DeviceArray) -> DeviceArray:
    """The array, where it is of this stack: devices of the others do not see its memory."""
    if array.memory.space is not space:
        raise TypeError(f"an array of {array.memory.space.name} is not in {space.name}'s memory: {space.name}.array copies it")
    return array


class _Interface:
    """Only the interface: NumPy would ask the array itself for a copy."""

    def __init__(self, array: DeviceArray):
        self._array = array
        integers = {1: "|u1", 2: "<u2", 4: "<u4", 8: "<u8", 16: "|V16"}
        plain = integers[array.itemsize]
        self.__array_interface__ = {**array.__array_interface__, "typestr": plain, "descr": [("", plain)]}


def make_array(space: Space, values, dtype=None, memory: str = "device") -> DeviceArray:
    """A copy of a NumPy array, a torch tensor, a device array, or anything that numpy.asarray takes; a strided view stays
    one. `memory`: "device", "pinned" or, where the stack has it, "managed"."""
    host = as_array(values)
    if dtype is not None:
        host = host.astype(dtype, copy=False)
    if host.dtype.hasobject:
        raise TypeError(f"dtype {host.dtype}: addresses of Python's objects mean nothing on a device")
    view = storage_of(host)
    made = Memory(space, memory, view.elements.nbytes)
    if made.size:
        elements = numpy.ascontiguousarray(view.elements)
        space.copy(made.address, elements.ctypes.data, elements.nbytes)
    strides = tuple(step * host.dtype.itemsize for step in view.strides)
    return DeviceArray(made, view.shape, view.elements.dtype, strides)


def as_operand(value):
    """What an operator takes: a device array as it is, anything else as a NumPy array in this machine's byte order."""
    return value if isinstance(value, DeviceArray) else native(as_array(value))


def _remade(stack: str, values: numpy.ndarray, memory: str) -> DeviceArray:
    return importlib.import_module(f"understudy.{stack}").array(values, memory=memory)


class Handle:
    """A stream or an event; destroyed with the object, or earlier at the end of a `with` block or by `close`."""

    def __init__(self, handle, destroy):
        self.handle = handle
        self._end = weakref.finalize(self, destroy, handle)
        self._end.atexit = False

    def close(self) -> None:
        self._end()

    def __repr__(self) -> str:
        return f"{type(self).__module__.rpartition('.')[0]}.{type(self).__name__}({'open' if self._end.alive else 'closed'})"

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()
