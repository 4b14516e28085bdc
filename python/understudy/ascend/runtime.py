"""What every operator call from NumPy needs: a device with a stream per thread, device copies, tensors, two phases."""

import contextlib
import threading

import numpy

from understudy.arrays import Storage, contiguous_strides, dtype_table, pointer, storage_of
from understudy.ascend import call, ffi, lib

DTYPES = dtype_table(
    float32="ACL_FLOAT", float16="ACL_FLOAT16", bfloat16="ACL_BF16", float64="ACL_DOUBLE", int8="ACL_INT8",
    int16="ACL_INT16", int32="ACL_INT32", int64="ACL_INT64", uint8="ACL_UINT8", uint16="ACL_UINT16",
    uint32="ACL_UINT32", uint64="ACL_UINT64", bool="ACL_BOOL", complex64="ACL_COMPLEX64", complex128="ACL_COMPLEX128",
)  # fmt: skip

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
        self._destroy = lib.aclrtDestroyStream

    def __del__(self):
        if hasattr(self, "_destroy"):
            self._destroy(self.stream)


def stream():
    """The calling thread's stream, made on first use and again when other libraries have been loaded."""
    session = getattr(_thread, "session", None)
    if session is None or session.generation != lib._generation:
        session = _thread.session = _Session()
    return session.stream


class Operation(contextlib.ExitStack):
    """One operator call: what it makes is freed, in reverse order, when the block ends.

        with Operation() as op:
            x = op.input(array)
            out = op.output(shape, dtype)
            op.run("aclnnX", x, out.tensor)
            return out.fetch()
    """

    def __init__(self):
        super().__init__()
        self.stream = stream()

    def memory(self, size: int):
        """Device memory until the block ends; NULL for none."""
        if size == 0:
            return ffi.NULL
        address = ffi.new("void **")
        call("aclrtMalloc", address, size, lib.ACL_MEM_MALLOC_HUGE_FIRST)
        self.callback(lib.aclrtFree, address[0])
        return address[0]

    def _tensor(self, view: Storage, address):
        constant = DTYPES.get(view.elements.dtype)
        if constant is None:
            raise TypeError(f"dtype {view.elements.dtype} has no counterpart in aclDataType")
        rank = len(view.shape)
        shape, strides = ffi.new("int64_t[]", view.shape), ffi.new("int64_t[]", view.strides)
        storage_shape = ffi.new("int64_t[]", [view.elements.size])
        tensor = lib.aclCreateTensor(
            shape, rank, getattr(lib, constant), strides, 0, lib.ACL_FORMAT_ND, storage_shape, 1, address
        )
        if tensor == ffi.NULL:
            raise MemoryError("aclCreateTensor returned NULL")
        self.callback(lib.aclDestroyTensor, tensor)
        return tensor

    def input(self, array):
        """A tensor with the contents of an array; a strided view stays one."""
        view = storage_of(array)
        size = view.elements.nbytes
        address = self.memory(size)
        if size:
            call("aclrtMemcpy", address, size, pointer(ffi, view.elements), size, lib.ACL_MEMCPY_HOST_TO_DEVICE)
        return self._tensor(view, address)

    def output(self, shape: tuple[int, ...], dtype) -> "Output":
        host = numpy.empty(shape, dtype)
        address = self.memory(host.nbytes)
        tensor = self._tensor(Storage(host.reshape(-1), host.shape, contiguous_strides(host.shape)), address)
        return Output(tensor, address, host)

    def changed(self, array) -> "Output":
        """A tensor with the contents of an array, which an operator changes; the array itself stays."""
        made = self.output(array.shape, array.dtype)
        host = numpy.ascontiguousarray(array)
        if host.nbytes:
            source = pointer(ffi, host.reshape(-1))
            call("aclrtMemcpy", made._address, host.nbytes, source, host.nbytes, lib.ACL_MEMCPY_HOST_TO_DEVICE)
        return made

    def run(self, name: str, *arguments) -> None:
        """Both phases of an operator, and the wait for its stream. Arguments are those of the first phase."""
        size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
        call(f"{name}GetWorkspaceSize", *arguments, size, executor)
        workspace = self.memory(size[0])
        call(name, workspace, size[0], executor[0], self.stream)
        call("aclrtSynchronizeStream", self.stream)


class Output:
    """An output tensor and the array it is copied to."""

    def __init__(self, tensor, address, host: numpy.ndarray):
        self.tensor, self._address, self._host = tensor, address, host

    def fetch(self) -> numpy.ndarray:
        """The device's result; call after `Operation.run`."""
        size = self._host.nbytes
        if size:
            target = pointer(ffi, self._host.reshape(-1), writable=True)
            call("aclrtMemcpy", target, size, self._address, size, lib.ACL_MEMCPY_DEVICE_TO_HOST)
        return self._host
