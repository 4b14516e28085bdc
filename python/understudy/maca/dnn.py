"""What every mcDNN call from NumPy needs: a handle per thread, device copies, tensor descriptors."""

from __future__ import annotations

import contextlib
import threading

import numpy

from understudy.arrays import code_of, contiguous_strides, dtype_table, pointer
from understudy.device_array import DeviceArray, Handle, Memory, Space, make_array, owned
from understudy.maca import call, ffi, lib

DTYPES = dtype_table(
    float32="MCDNN_DATA_FLOAT", float64="MCDNN_DATA_DOUBLE", float16="MCDNN_DATA_HALF",
    bfloat16="MCDNN_DATA_BFLOAT16", int8="MCDNN_DATA_INT8", uint8="MCDNN_DATA_UINT8", int32="MCDNN_DATA_INT32",
    int64="MCDNN_DATA_INT64", bool="MCDNN_DATA_BOOLEAN",
)  # fmt: skip
ACTIVATIONS = {
    name: getattr(lib, f"MCDNN_ACTIVATION_{name.upper()}")
    for name in ("sigmoid", "relu", "tanh", "clipped_relu", "elu", "identity", "swish")
}
POOLINGS = {
    "max": lib.MCDNN_POOLING_MAX, "average_include_padding": lib.MCDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
    "average_exclude_padding": lib.MCDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
    "max_deterministic": lib.MCDNN_POOLING_MAX_DETERMINISTIC,
}  # fmt: skip
LOWEST_RANK = 4  # clients give mcDNN at least n, c, h, w

_thread = threading.local()


class Session:
    """A thread's handle and stream on device 0; destroyed when the thread ends."""

    def __init__(self):
        call("mcSetDevice", 0)
        stream, handle = ffi.new("mcStream_t *"), ffi.new("mcdnnHandle_t *")
        call("mcStreamCreate", stream)
        self._ends = [(lib.mcStreamDestroy, stream[0])]
        call("mcdnnCreate", handle)
        self._ends.insert(0, (lib.mcdnnDestroy, handle[0]))
        self.own, self.chosen = stream[0], []
        self.handle, self.generation = handle[0], lib._generation
        self.use_stream()

    @property
    def stream(self):
        """That of the innermost `with Stream()` block, otherwise the thread's own."""
        return self.chosen[-1].handle if self.chosen else self.own

    def use_stream(self) -> None:
        call("mcdnnSetStream", self.handle, self.stream)

    def is_over(self) -> bool:
        """Other libraries have been loaded, or the program has reset the device, which ended stream and handle."""
        return self.generation != lib._generation or lib.mcStreamQuery(self.own) == lib.mcErrorInvalidResourceHandle

    def __del__(self):
        for end, argument in getattr(self, "_ends", []):
            end(argument)


def session() -> Session:
    """The calling thread's, made on first use and again when it is over."""
    found = getattr(_thread, "session", None)
    if found is None or found.is_over():
        found = _thread.session = Session()
    return found


class _Maca(Space):
    name = "maca"
    kinds = ("device", "pinned", "managed")

    def allocate(self, kind: str, size: int) -> int:
        session()  # the thread has a device then
        address = ffi.new("void **")
        if kind == "device":
            call("mcMalloc", address, size)
        elif kind == "pinned":
            call("mcMallocHost", address, size, 0)
        else:
            call("mcMallocManaged", address, size, lib.mcMemAttachGlobal)
        return int(ffi.cast("uintptr_t", address[0]))

    def free_function(self, kind: str):
        free = lib.mcFreeHost if kind == "pinned" else lib.mcFree
        return lambda address: free(ffi.cast("void *", address))

    def copy(self, target: int, source: int, size: int) -> None:
        call("mcStreamSynchronize", session().stream)
        call("mcMemcpy", ffi.cast("void *", target), ffi.cast("void *", source), size, lib.mcMemcpyDefault)

    def ordinal(self) -> int:
        number = ffi.new("int *")
        call("mcGetDevice", number)
        return number[0]


SPACE = _Maca()


def array(values, dtype=None, memory: str = "device") -> DeviceArray:
    """A device array with the contents of a NumPy array, a torch tensor, or anything that numpy.asarray takes; a strided
    view stays one. memory: "device", "pinned" (page-locked) or "managed", which host and device both see.
    Raises StatusError when the device is full."""
    return make_array(SPACE, values, dtype, memory)


class Event(Handle):
    """An event: `record()` on a stream, then streams (`Stream.wait`) and the host (`synchronize`) wait for it."""

    def __init__(self):
        session()
        made = ffi.new("mcEvent_t *")
        call("mcEventCreate", made)
        super().__init__(made[0], lib.mcEventDestroy)

    def record(self, on: Stream | None = None) -> Event:
        """On a stream; None: the thread's."""
        call("mcEventRecord", self.handle, session().stream if on is None else on.handle)
        return self

    def synchronize(self) -> None:
        call("mcEventSynchronize", self.handle)

    def done(self) -> bool:
        return lib.mcEventQuery(self.handle) == lib.mcSuccess

    def milliseconds_since(self, earlier: Event) -> float:
        """Between the records of two events, both of which are done."""
        milliseconds = ffi.new("float *")
        call("mcEventElapsedTime", milliseconds, earlier.handle, self.handle)
        return milliseconds[0]


class Stream(Handle):
    """A stream. In a `with` block it is the one that this thread's functions use; at the end it is waited for and
    destroyed."""

    def __init__(self):
        session()
        made = ffi.new("mcStream_t *")
        call("mcStreamCreate", made)
        super().__init__(made[0], lib.mcStreamDestroy)

    def __enter__(self) -> Stream:
        own = session()
        call("mcdnnSetStream", own.handle, self.handle)
        own.chosen.append(self)
        return self

    def __exit__(self, *_) -> None:
        own = session()
        if self in own.chosen:  # unless the device was reset meanwhile
            own.chosen.remove(self)
            own.use_stream()
        self.close()

    def synchronize(self) -> None:
        call("mcStreamSynchronize", self.handle)

    def record(self) -> Event:
        """A new event that is recorded here."""
        return Event().record(self)

    def wait(self, event: Event) -> None:
        """What is queued here from now on comes after the event's record."""
        call("mcStreamWaitEvent", self.handle, event.handle, 0)


class Descriptor:
    """A descriptor of mcDNN: `handle` is what the C functions take. It is destroyed with the object, or earlier at the
    end of a `with` block."""

    kind = ""  # as in mcdnnCreate<kind>Descriptor

    def __new__(cls, *arguments, **settings):
        made = super().__new__(cls)
        made._made_with = [*map(repr, arguments), *(f"{name}={value!r}" for name, value in settings.items())]
        return made

    def __repr__(self) -> str:
        closed = " (closed)" if self.handle == ffi.NULL else ""
        return f"{type(self).__name__}({', '.join(self._made_with)}){closed}"

    def __init__(self):
        self.handle = ffi.NULL
        created = ffi.new(f"mcdnn{self.kind}Descriptor_t *")
        call(f"mcdnnCreate{self.kind}Descriptor", created)
        self.handle, self._destroy = created[0], getattr(lib, f"mcdnnDestroy{self.kind}Descriptor")

    def close(self) -> None:
        if self.handle != ffi.NULL:
            self._destroy(self.handle)
            self.handle = ffi.NULL

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if hasattr(self, "handle"):
            self.close()


class TensorDescriptor(Descriptor):
    """Shape, dtype and strides in elements (default: packed, last dimension innermost) of a tensor.

    Shapes of fewer dimensions than `least_rank` get ones appended."""

    kind = "Tensor"

    def __init__(self, shape, dtype, strides=None, least_rank=LOWEST_RANK):
        shape = tuple(shape)
        strides = contiguous_strides(shape) if strides is None else tuple(strides)
        constant = DTYPES.get(numpy.dtype(dtype))
        if constant is None:
            raise TypeError(f"dtype {numpy.dtype(dtype)} has no counterpart in mcdnnDataType_t")
        self.shape, self.dtype = shape, numpy.dtype(dtype)
        super().__init__()
        missing = max(0, least_rank - len(shape))
        sizes, steps = shape + (1,) * missing, strides + (1,) * missing
        call("mcdnnSetTensorNdDescriptor", self.handle, getattr(lib, constant), len(sizes), sizes, steps)

    @property
    def size_in_bytes(self) -> int:
        """Bytes from the first to the last element."""
        size = ffi.new("size_t *")
        call("mcdnnGetTensorSizeInBytes", self.handle, size)
        return size[0]


class ActivationDescriptor(Descriptor):
    """An activation: a mode (name or number), what becomes of NaN, the limit or alpha, the factor of swish."""

    kind = "Activation"

    def __init__(self, mode, propagate_nan=True, coef=0.0, swish_beta=1.0):
        super().__init__()
        call("mcdnnSetActivationDescriptor", self.handle, code_of(mode, ACTIVATIONS, "mode"), int(propagate_nan), coef)
        call("mcdnnSetActivationDescriptorSwishBeta", self.handle, swish_beta)


class PoolingDescriptor(Descriptor):
    """Windows over two or three dimensions: sizes, paddings, strides (default: the sizes), a mode (name or number)."""

    kind = "Pooling"

    def __init__(self, mode, window, padding=None, stride=None, propagate_nan=True):
        super().__init__()
        window = tuple(window)
        padding, stride = tuple(padding or (0,) * len(window)), tuple(stride or window)
        if not len(window) == len(padding) == len(stride):
            raise ValueError(f"window {window}, padding {padding} and stride {stride} differ in length")
        code = code_of(mode, POOLINGS, "mode")
        call("mcdnnSetPoolingNdDescriptor", self.handle, code, int(propagate_nan), len(window), window, padding, stride)

    def output_shape(self, tensor: TensorDescriptor) -> tuple[int, ...]:
        rank = max(LOWEST_RANK, len(tensor.shape))
        sizes = ffi.new("int[]", rank)
        call("mcdnnGetPoolingNdForwardOutputDim", self.handle, tensor.handle, rank, sizes)
        return tuple(sizes)


class LRNDescriptor(Descriptor):
    """Local response normalization: neighbours n, alpha, beta, k."""

    kind = "LRN"

    def __init__(self, n=5, alpha=1e-4, beta=0.75, k=2.0):
        super().__init__()
        call("mcdnnSetLRNDescriptor", self.handle, n, alpha, beta, k)


class Operation(contextlib.ExitStack):
    """One mcDNN call: what it makes is freed, in reverse order, when the block ends."""

    def __init__(self):
        super().__init__()
        self.session = session()
        self._kept: list[Memory | DeviceArray] = []

    def upload(self, elements: numpy.ndarray):
        """A device copy of a storage."""
        made = Memory(SPACE, "device", max(elements.nbytes, 1))
        self._kept.append(made)
        address = ffi.cast("void *", made.address)
        call("mcMemcpy", address, pointer(ffi, elements), elements.nbytes, lib.mcMemcpyHostToDevice)
        return address

    def input(self, array):
        """Descriptor and device address of an array; a strided view stays one. A device array is used where it is."""
        made = owned(SPACE, array) if isinstance(array, DeviceArray) else make_array(SPACE, array)
        self._kept.append(made)
        descriptor = self.enter_context(TensorDescriptor(made.shape, made.dtype, made.element_strides))
        return descriptor.handle, ffi.cast("void *", made.pointer)

    def scale(self, value: float, dtype: numpy.dtype):
        """A scaling factor in the type that goes with the destination: double for float64, else float."""
        return ffi.new("double *" if dtype == numpy.float64 else "float *", value)

    def run(self, name: str, *arguments) -> None:
        call(name, self.session.handle, *arguments)
        call("mcStreamSynchronize", self.session.stream)

    def download(self, host: numpy.ndarray, address) -> numpy.ndarray:
        target = pointer(ffi, host.reshape(-1), writable=True)
        call("mcMemcpy", target, address, host.nbytes, lib.mcMemcpyDeviceToHost)
        return host
