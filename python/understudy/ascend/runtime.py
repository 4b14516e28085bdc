"""What every operator call from NumPy needs: a device with a stream per thread, device copies, tensors, two phases."""

from __future__ import annotations

import contextlib
import ctypes
import threading

import numpy

from understudy.arrays import dtype_table
from understudy.ascend import call, ffi, lib
from understudy.device_array import DeviceArray, Handle, Memory, Space, make_array, owned
from understudy.errors import StatusError

DTYPES = dtype_table(
    float32="ACL_FLOAT", float16="ACL_FLOAT16", bfloat16="ACL_BF16", float64="ACL_DOUBLE", int8="ACL_INT8",
    int16="ACL_INT16", int32="ACL_INT32", int64="ACL_INT64", uint8="ACL_UINT8", uint16="ACL_UINT16",
    uint32="ACL_UINT32", uint64="ACL_UINT64", bool="ACL_BOOL", complex64="ACL_COMPLEX64", complex128="ACL_COMPLEX128",
)  # fmt: skip

# What C++ callers delete[]: the library makes it by operator new[] where the process has that, else by malloc.
_process_symbols = ctypes.CDLL(None)
_delete_array = getattr(_process_symbols, "_ZdaPv", _process_symbols.free)
_delete_array.argtypes, _delete_array.restype = [ctypes.c_void_p], None

_thread = threading.local()
_process = threading.Lock()


class _Session:
    """A thread's stream on device 0; destroyed when the thread ends."""

    def __init__(self):
        with _process:
            status = lib.aclInit(ffi.NULL)
            if status not in (0, lib.ACL_ERROR_REPEAT_INITIALIZE):
                call("aclInit", ffi.NULL)
        call("aclrtSetDevice", 0)
        stream = ffi.new("aclrtStream *")
        call("aclrtCreateStream", stream)
        self.stream, self.generation = stream[0], lib._generation
        self._destroy, self._state = lib.aclrtDestroyStream, ffi.new("aclrtStreamStatus *")

    def is_over(self) -> bool:
        """Other libraries have been loaded, or the program has reset the device, which ended the stream."""
        gone = lib.ACL_ERROR_RT_CONTEXT_NULL, lib.ACL_ERROR_RT_INVALID_HANDLE
        return self.generation != lib._generation or lib.aclrtStreamQuery(self.stream, self._state) in gone

    def __del__(self):
        if hasattr(self, "_destroy"):
            self._destroy(self.stream)


def stream():
    """The calling thread's stream: that of the innermost `with Stream()` block; otherwise one of its own, made on first use
    and again when it is over."""
    session = getattr(_thread, "session", None)
    if session is None or session.is_over():
        session = _thread.session = _Session()
    chosen = getattr(_thread, "streams", None)
    return chosen[-1].handle if chosen else session.stream


def wait(for_stream) -> None:
    """A fault stays on its stream and comes out of every later wait: the thread's own stream is made again after one."""
    try:
        call("aclrtSynchronizeStream", for_stream)
    except StatusError:
        session = getattr(_thread, "session", None)
        if session is not None and session.stream == for_stream:
            _thread.session = None
        raise


class _Ascend(Space):
    name = "ascend"

    def allocate(self, kind: str, size: int) -> int:
        stream()  # the thread has a device then
        address = ffi.new("void **")
        if kind == "device":
            call("aclrtMalloc", address, size, lib.ACL_MEM_MALLOC_HUGE_FIRST)
        else:
            call("aclrtMallocHost", address, size)
        return int(ffi.cast("uintptr_t", address[0]))

    def free_function(self, kind: str):
        free = lib.aclrtFree if kind == "device" else lib.aclrtFreeHost
        return lambda address: free(ffi.cast("void *", address))

    def copy(self, target: int, source: int, size: int) -> None:
        wait(stream())
        call("aclrtMemcpy", ffi.cast("void *", target), size, ffi.cast("void *", source), size, lib.ACL_MEMCPY_DEFAULT)

    def ordinal(self) -> int:
        number = ffi.new("int32_t *")
        stream()
        call("aclrtGetDevice", number)
        return number[0]


SPACE = _Ascend()


def array(values, dtype=None, memory: str = "device") -> DeviceArray:
    """A device array with the contents of a NumPy array, a torch tensor, or anything that numpy.asarray takes; a strided
    view stays one. memory: "device", or "pinned" for page-locked host memory, which kernels of this stack cannot use.
    Raises StatusError when the device is full."""
    return make_array(SPACE, values, dtype, memory)


class Event(Handle):
    """An event: `record()` on a stream, then streams (`Stream.wait`) and the host (`synchronize`) wait for it."""

    def __init__(self):
        stream()
        made = ffi.new("aclrtEvent *")
        call("aclrtCreateEvent", made)
        super().__init__(made[0], lib.aclrtDestroyEvent)

    def record(self, on: Stream | None = None) -> Event:
        """On a stream; None: the thread's."""
        call("aclrtRecordEvent", self.handle, stream() if on is None else on.handle)
        return self

    def synchronize(self) -> None:
        call("aclrtSynchronizeEvent", self.handle)

    def done(self) -> bool:
        status = ffi.new("aclrtEventRecordedStatus *")
        call("aclrtQueryEventStatus", self.handle, status)
        return status[0] == lib.ACL_EVENT_RECORDED_STATUS_COMPLETE

    def milliseconds_since(self, earlier: Event) -> float:
        """Between the records of two events, both of which are done."""
        milliseconds = ffi.new("float *")
        call("aclrtEventElapsedTime", milliseconds, earlier.handle, self.handle)
        return milliseconds[0]


class Stream(Handle):
    """A stream. In a `with` block it is the one that this thread's operators use; at the end it is waited for and
    destroyed."""

    def __init__(self):
        stream()
        made = ffi.new("aclrtStream *")
        call("aclrtCreateStream", made)
        super().__init__(made[0], lib.aclrtDestroyStream)

    def __enter__(self) -> Stream:
        _thread.__dict__.setdefault("streams", []).append(self)
        return self

    def __exit__(self, *_) -> None:
        _thread.streams.remove(self)
        self.close()

    def synchronize(self) -> None:
        call("aclrtSynchronizeStream", self.handle)

    def record(self) -> Event:
        """A new event that is recorded here."""
        return Event().record(self)

    def wait(self, event: Event) -> None:
        """What is queued here from now on comes after the event's record."""
        call("aclrtStreamWaitEvent", self.handle, event.handle)


def dtype_code(dtype) -> int:
    constant = DTYPES.get(numpy.dtype(dtype))
    if constant is None:
        raise TypeError(f"dtype {dtype} has no counterpart in aclDataType")
    return getattr(lib, constant)


def _created(array: DeviceArray, layout: int = lib.ACL_FORMAT_ND):
    """A new tensor of a device array."""
    code, rank = dtype_code(array.dtype), len(array.shape)
    shape, strides = ffi.new("int64_t[]", array.shape), ffi.new("int64_t[]", array.element_strides)
    storage_shape = ffi.new("int64_t[]", [array.extent])
    address = ffi.cast("void *", array.pointer)
    tensor = lib.aclCreateTensor(
        shape, rank, code, strides, 0, layout, storage_shape, 1, address
    )
    if tensor == ffi.NULL:
        raise MemoryError("aclCreateTensor returned NULL")
    return tensor


def _view_shape(tensor) -> tuple[int, ...]:
    sizes, rank = ffi.new("int64_t **"), ffi.new("uint64_t *")
    call("aclGetViewShape", tensor, sizes, rank)
    shape = tuple(sizes[0][0 : rank[0]])
    _delete_array(int(ffi.cast("uintptr_t", sizes[0])))
    return shape


class Operation(contextlib.ExitStack):
    """One operator call: what it makes is freed, in reverse order, when the block ends.

        with Operation() as op:
            x = op.input(array)
            out = op.output(shape, dtype)
            op.run("aclnnX", x, out.tensor)
            return out.fetch()

    With a device array among the inputs, results are device arrays; otherwise they are NumPy arrays.
    """

    def __init__(self):
        super().__init__()
        self.stream = stream()
        self.on_device = False
        self._kept: list[Memory | DeviceArray] = []

    def memory(self, size: int) -> Memory:
        """Device memory until the block ends, unless somebody keeps it; of size 0: none."""
        made = Memory(SPACE, "device", size)
        self._kept.append(made)
        return made

    def _on_device(self, array) -> DeviceArray:
        """A device array itself; of others a copy, strided views stay such."""
        if isinstance(array, DeviceArray):
            self.on_device = True
            self._kept.append(owned(SPACE, array))
            return self._kept[-1]
        made = make_array(SPACE, array)
        self._kept.append(made)
        return made

    def _copied(self, array) -> DeviceArray:
        """A device array itself; of others a contiguous copy."""
        on_device = isinstance(array, DeviceArray)
        return self._on_device(array if on_device else numpy.ascontiguousarray(array).reshape(numpy.shape(array)))

    def _room(self, shape: tuple[int, ...], dtype) -> DeviceArray:
        dtype = numpy.dtype(dtype)
        return DeviceArray(self.memory(dtype.itemsize * int(numpy.prod(shape, dtype=numpy.int64))), shape, dtype)

    def _tensor(self, array: DeviceArray, layout: int = lib.ACL_FORMAT_ND):
        tensor = _created(array, layout)
        self.callback(lib.aclDestroyTensor, tensor)
        return tensor

    def _tensor_list(self, arrays: list[DeviceArray | None]):
        """The list owns its tensors, once there is one."""
        tensors = []
        with contextlib.ExitStack() as unlisted:
            for array in arrays:
                tensors.append(ffi.NULL if array is None else _created(array))
                if array is not None:
                    unlisted.callback(lib.aclDestroyTensor, tensors[-1])
            made = lib.aclCreateTensorList(ffi.new("aclTensor *[]", tensors), len(tensors))
            if made == ffi.NULL:
                raise MemoryError("aclCreateTensorList returned NULL")
            unlisted.pop_all()
        self.callback(lib.aclDestroyTensorList, made)
        return made

    def input(self, array):
        """A tensor with the contents of an array; a strided view stays one. A device array is used where it is."""
        return self._tensor(self._on_device(array))

    def private_input(self, array, format: str):
        """As `input`, for an operator that only takes this private format. Its storage shape is not of blocks, so it lies as its
        strides say."""
        code = {"FRACTAL_NZ": lib.ACL_FORMAT_FRACTAL_NZ, "FRACTAL_Z_3D": lib.ACL_FRACTAL_Z_3D}[format]
        return self._tensor(self._on_device(array), code)

    def inputs(self, arrays):
        """A list of tensors with the contents of arrays; None stays NULL."""
        return self._tensor_list([None if array is None else self._on_device(array) for array in arrays])

    def output(self, shape: tuple[int, ...], dtype) -> Output:
        made = self._room(shape, dtype)
        return Output(self, self._tensor(made), made)

    def outputs(self, shapes, dtypes) -> Output:
        """A list of tensors, one of each shape and type."""
        made = [self._room(shape, dtype) for shape, dtype in zip(shapes, dtypes)]
        return Output(self, self._tensor_list(made), made)

    def changed(self, array) -> Output:
        """A tensor with the contents of an array, which an operator changes. A device array is changed itself; of others
        a copy is."""
        made = self._copied(array)
        return Output(self, self._tensor(made), made)

    def changed_list(self, arrays) -> Output:
        """A list of tensors that an operator changes, as in `changed`."""
        made = [self._copied(array) for array in arrays]
        return Output(self, self._tensor_list(made), made)

    def run(self, name: str, *arguments) -> None:
        """Both phases of an operator, and the wait for its stream. Arguments are those of the first phase."""
        size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
        call(f"{name}GetWorkspaceSize", *arguments, size, executor)
        workspace = ffi.cast("void *", self.memory(size[0]).address)
        call(name, workspace, size[0], executor[0], self.stream)
        wait(self.stream)


class Output:
    """What an operator writes, a tensor or a list of them, and the memory that it shows."""

    def __init__(self, operation: Operation, tensor, made: DeviceArray | list[DeviceArray]):
        self.tensor, self._operation, self._made = tensor, operation, made

    def fetch(self):
        """The result, of a list a list; call after `Operation.run`."""
        if isinstance(self._made, list):
            return [self._result(made) for made in self._made]
        return self._result(self._made)

    def fetch_found(self) -> numpy.ndarray | DeviceArray:
        """The result of the shape that the operator gave its tensor."""
        return self._result(DeviceArray(self._made.memory, _view_shape(self.tensor), self._made.dtype))

    def _result(self, made: DeviceArray) -> numpy.ndarray | DeviceArray:
        return made if self._operation.on_device else made.numpy()
