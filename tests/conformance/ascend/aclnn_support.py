"""What tests of aclnn functions share: element types, tensors in device memory, the two phases of an operator.

Only the vendor's public ABI is used.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence

import numpy

from understudy.ascend import ffi, lib

from tests.conformance.harness import Result, RuleCase
from tests.conformance.verdicts import WrongNumber
from tests.conformance.verdicts import require_status as ok

OK, NULL_POINTER, INVALID = 0, 161001, 161002
RUNTIME, INNER, INNER_NULL = 361001, 561000, 561103


# ---- element types ----------------------------------------------------------------------------------------------------


def _bfloat_bits(values: numpy.ndarray) -> numpy.ndarray:
    """float32 to bfloat16, to nearest, ties to even."""
    bits = values.astype(numpy.float32).view(numpy.uint32)
    rounded = ((bits.astype(numpy.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    return numpy.where(numpy.isnan(values), numpy.uint16(0x7FC0), rounded)


def _bfloat_exact(values: numpy.ndarray) -> numpy.ndarray:
    """float64 to bfloat16 bits without the intermediate rounding to float32 that could double round."""
    wide = values.astype(numpy.float32)
    bits = wide.view(numpy.uint32)
    if not (bits & 0xFFFF).any() and (wide == values).all():  # most large tensors of the pages' cases: in a quarter of the time
        return (bits >> 16).astype(numpy.uint16)
    # Round to odd in float32: then rounding once more, to 8 bits, is the rounding of the exact value.
    exact = wide.astype(numpy.float64) == values
    away = numpy.abs(wide.astype(numpy.float64)) > numpy.abs(values)
    bits = numpy.where(exact | ~numpy.isfinite(values), bits, (bits - away) | 1).astype(numpy.uint32)
    return _bfloat_bits(bits.view(numpy.float32))


@dataclasses.dataclass(frozen=True)
class Kind:
    """An element type: its code, how NumPy stores it, and its values as float64."""

    name: str
    code: int
    storage: type

    def encode(self, values) -> numpy.ndarray:
        """Rounds to nearest, ties to even."""
        values = numpy.asarray(values)
        if self.name == "bfloat16":
            shaped = numpy.atleast_1d(values.astype(numpy.float64))
            return _bfloat_exact(shaped).reshape(values.shape)
        with numpy.errstate(over="ignore", invalid="ignore"):
            return values.astype(self.storage)

    def decode(self, stored: numpy.ndarray) -> numpy.ndarray:
        if self.name == "bfloat16":
            return (stored.astype(numpy.uint32) << 16).view(numpy.float32).astype(numpy.float64)
        return stored.astype(numpy.complex128 if stored.dtype.kind == "c" else numpy.float64)

    def round(self, values) -> numpy.ndarray:
        return self.decode(self.encode(values))


F32 = Kind("float32", lib.ACL_FLOAT, numpy.float32)
F16 = Kind("float16", lib.ACL_FLOAT16, numpy.float16)
BF16 = Kind("bfloat16", lib.ACL_BF16, numpy.uint16)
F64 = Kind("float64", lib.ACL_DOUBLE, numpy.float64)
I8 = Kind("int8", lib.ACL_INT8, numpy.int8)
U8 = Kind("uint8", lib.ACL_UINT8, numpy.uint8)
I16 = Kind("int16", lib.ACL_INT16, numpy.int16)
U16 = Kind("uint16", lib.ACL_UINT16, numpy.uint16)
I32 = Kind("int32", lib.ACL_INT32, numpy.int32)
I64 = Kind("int64", lib.ACL_INT64, numpy.int64)
BOOL = Kind("bool", lib.ACL_BOOL, numpy.bool_)
FLOATS = (F32, F16, BF16)


def promoted(*kinds: Kind) -> Kind:
    """Of floats below float64: equal types stay, any mix is float32."""
    return kinds[0] if all(kind == kinds[0] for kind in kinds) else F32


def assert_rounded(actual, expected, tolerance, kinds: Sequence[Kind], floor=0.0):
    """Every value lies where the exact one, moved by a relative `tolerance` and an absolute `floor`, is rounded to through
    `kinds` in turn. NaN and infinities must be where they are expected."""
    margin = numpy.where(numpy.isfinite(expected), numpy.abs(expected), 0.0) * tolerance + floor
    low, high = expected - margin, expected + margin
    for kind in kinds:
        low, high = kind.round(low), kind.round(high)
    fits = ((actual >= low) & (actual <= high)) | (numpy.isnan(actual) & numpy.isnan(expected))
    if not fits.all():
        raise WrongNumber(actual, expected, f"a relative error of {tolerance:.3g}", kinds[-1].name)


# ---- the device -------------------------------------------------------------------------------------------------------

_thread = threading.local()


def start() -> None:
    """Initialises the runtime and gives this thread device 0; again when a test of the runtime has reset it."""
    if not getattr(_thread, "started", False):
        assert lib.aclInit(ffi.NULL) in (0, lib.ACL_ERROR_REPEAT_INITIALIZE)
        _thread.started = True
        _thread.context = ffi.new("aclrtContext *")
    if lib.aclrtGetCurrentContext(_thread.context) != 0:
        ok(lib.aclrtSetDevice(0))


def address(number: int):
    return ffi.cast("void *", number)


class Memory:
    """A block of device memory that lives as long as the object."""

    def __init__(self, size: int):
        start()
        self.size = size
        self.address = ffi.NULL
        if size > 0:
            made = ffi.new("void **")
            ok(lib.aclrtMalloc(made, size, lib.ACL_MEM_MALLOC_HUGE_FIRST))
            self.address = made[0]

    def write(self, data: bytes | numpy.ndarray) -> None:
        """Bytes, or a packed array's."""
        if self.size > 0:
            given = ffi.from_buffer(data)
            ok(lib.aclrtMemcpy(self.address, self.size, given, len(given), lib.ACL_MEMCPY_HOST_TO_DEVICE))

    def read(self) -> bytes:
        data = bytearray(self.size)
        if self.size > 0:
            ok(lib.aclrtMemcpy(ffi.from_buffer(data), self.size, self.address, self.size, lib.ACL_MEMCPY_DEVICE_TO_HOST))
        return bytes(data)

    def __del__(self):
        if self.address != ffi.NULL:
            lib.aclrtFree(self.address)


def row_major(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


class Tensor:
    """A view in its own device memory. `values` are those of the whole storage, row-major; `stored`, instead of them, has
    the bits."""

    def __init__(self, kind: Kind, values=None, *, stored=None, shape=None, strides=None, offset=0, storage=None, format=None,
                 code=None, without_memory=False):  # fmt: skip
        stored = kind.encode(values) if stored is None else stored
        self.kind = kind
        self.shape = tuple(stored.shape if shape is None else shape)
        self.strides = tuple(row_major(self.shape) if strides is None else strides)
        self.offset = offset
        self.storage = tuple(stored.shape if storage is None else storage)
        self.count = stored.size
        self.memory = Memory(0 if without_memory else stored.nbytes)
        if not without_memory:
            self.memory.write(numpy.ascontiguousarray(stored))
        self.handle = lib.aclCreateTensor(
            ffi.new("int64_t[]", list(self.shape)), len(self.shape), kind.code if code is None else code,
            ffi.new("int64_t[]", list(self.strides)), offset, lib.ACL_FORMAT_ND if format is None else format,
            ffi.new("int64_t[]", list(self.storage)), len(self.storage), self.memory.address,
        )  # fmt: skip
        assert self.handle != ffi.NULL

    def bytes(self) -> bytes:
        return self.memory.read()

    def stored(self) -> numpy.ndarray:
        """Everything in the storage, as it is stored."""
        return numpy.frombuffer(self.bytes(), self.kind.storage)

    def view_of(self, flat: numpy.ndarray) -> numpy.ndarray:
        """A flat array seen as this tensor."""
        if 0 in self.shape:
            return numpy.empty(self.shape, flat.dtype)
        step = flat.itemsize
        return numpy.lib.stride_tricks.as_strided(flat[self.offset :], self.shape, [s * step for s in self.strides])

    def bits(self) -> numpy.ndarray:
        return self.view_of(self.stored()).copy()

    def values(self) -> numpy.ndarray:
        """The elements of the view as float64."""
        return self.kind.decode(self.bits())

    def destroy(self) -> None:
        """The descriptor only: the memory stays."""
        handle, self.handle = self.handle, ffi.NULL
        ok(lib.aclDestroyTensor(handle))

    def __del__(self):
        if getattr(self, "handle", ffi.NULL) != ffi.NULL:
            lib.aclDestroyTensor(self.handle)


def blank(kind: Kind, shape, *, strides=None, offset=0, storage=None, format=None) -> Tensor:
    """An output filled with a pattern that no operator writes by chance."""
    strides = row_major(shape) if strides is None else strides
    reach = offset + sum(max(0, s * (n - 1)) for s, n in zip(strides, shape)) + 1
    count = 0 if 0 in shape else (int(numpy.prod(storage)) if storage is not None else reach)
    stored = numpy.full(count * numpy.dtype(kind.storage).itemsize, 0xA5, numpy.uint8).view(kind.storage)
    return Tensor(kind, stored=stored, shape=shape, strides=strides, offset=offset,
                  storage=[count] if storage is None else storage, format=format)  # fmt: skip


def expanded(kind: Kind, shape) -> Tensor:
    """Any shape over one stored element."""
    return Tensor(kind, [1], shape=shape, strides=(0,) * len(shape), storage=[1])


def dead_tensor():
    """A handle that was alive."""
    made = Tensor(F32, [1.0])
    handle = made.handle
    made.destroy()
    return handle


# ---- operators --------------------------------------------------------------------------------------------------------


def handle_of(argument):
    if argument is None:
        return ffi.NULL
    return getattr(argument, "handle", argument)


def plan(name: str, *arguments):
    """Phase 1. Returns (status, workspace size, executor); the latter two hold marks when they were not written."""
    start()
    size, executor = ffi.new("uint64_t *", 0xA5A5), ffi.new("aclOpExecutor **", ffi.cast("aclOpExecutor *", 0xA5A5))
    status = getattr(lib, f"{name}GetWorkspaceSize")(*map(handle_of, arguments), size, executor)
    if status != 0:
        assert size[0] == 0xA5A5 and executor[0] == ffi.cast("aclOpExecutor *", 0xA5A5)
    return status, size[0], executor[0]


def execute(name: str, size: int, executor, stream=ffi.NULL) -> None:
    """Phase 2 and the wait."""
    workspace = Memory(size)
    ok(getattr(lib, name)(workspace.address, size, executor, stream))
    ok(lib.aclrtSynchronizeStream(stream))


def run(name: str, *arguments, stream=ffi.NULL) -> None:
    status, size, executor = plan(name, *arguments)
    ok(status)
    execute(name, size, executor, stream)


# ---- streams that take no operator: each with what ends it ------------------------------------------------------------


def dead_stream():
    made = ffi.new("aclrtStream *")
    ok(lib.aclrtCreateStream(made))
    ok(lib.aclrtDestroyStream(made[0]))
    return made[0], lambda: None


def default_beside_capture():
    captured = ffi.new("aclrtStream *")
    ok(lib.aclrtCreateStream(captured))
    ok(lib.aclmdlRICaptureBegin(captured[0], lib.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL))
    return ffi.NULL, lambda: ok(lib.aclrtDestroyStreamForce(captured[0]))


def captured_beside_group():
    """A stream of a capture whose origin records a task group."""
    origin, joined, fork = ffi.new("aclrtStream *"), ffi.new("aclrtStream *"), ffi.new("aclrtEvent *")
    ok(lib.aclrtCreateStream(origin))
    ok(lib.aclrtCreateStream(joined))
    ok(lib.aclrtCreateEvent(fork))
    ok(lib.aclmdlRICaptureBegin(origin[0], lib.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL))
    ok(lib.aclrtRecordEvent(fork[0], origin[0]))
    ok(lib.aclrtStreamWaitEvent(joined[0], fork[0]))
    ok(lib.aclmdlRICaptureTaskGrpBegin(origin[0]))

    def end():
        ok(lib.aclrtDestroyStreamForce(joined[0]))
        ok(lib.aclrtDestroyStreamForce(origin[0]))
        ok(lib.aclrtDestroyEvent(fork[0]))

    return joined[0], end


def stream_of_built_model():
    bound, model = ffi.new("aclrtStream *"), ffi.new("aclmdlRI *")
    ok(lib.aclrtCreateStreamWithConfig(bound, 0, lib.ACL_STREAM_PERSISTENT))
    ok(lib.aclmdlRIBuildBegin(model, 0))
    ok(lib.aclmdlRIBindStream(model[0], bound[0], 0))
    ok(lib.aclmdlRIBuildEnd(model[0], ffi.NULL))

    def end():
        ok(lib.aclmdlRIUnbindStream(model[0], bound[0]))
        ok(lib.aclmdlRIDestroy(model[0]))
        ok(lib.aclrtDestroyStreamForce(bound[0]))

    return bound[0], end


REFUSED_STREAMS = {"handle": dead_stream, "implicit": default_beside_capture, "other-group": captured_beside_group,
                   "closed": stream_of_built_model}  # fmt: skip


# ---- the cases of an operator -----------------------------------------------------------------------------------------


class Subject:
    """An operator and a legal call of it. `arguments` makes new ones each time, by parameter name in the header's order;
    `outputs` names the tensors that the operator writes."""

    def __init__(self, name: str, arguments: Callable[[], dict], outputs: Sequence[str]):
        self.name, self.arguments, self.outputs = name, arguments, outputs

    def result(self, changes: Callable[[], dict] | dict) -> Result:
        """Both phases, with changed arguments."""
        arguments = self.arguments()
        arguments.update(changes() if callable(changes) else changes)
        watched = [arguments[name] for name in self.outputs if isinstance(arguments[name], Tensor)]
        before = [tensor.bytes() for tensor in watched]
        status, size, executor = plan(self.name, *arguments.values())
        if status == 0:
            execute(self.name, size, executor)
        return Result(status, [tensor.bytes() for tensor in watched] == before)

    def case(self, rule: str, refused, accepted=None, env=None) -> RuleCase:
        def refuse():
            return self.result(refused)

        def accept():
            return self.result(accepted if accepted is not None else {})

        refuse.__module__ = self.arguments.__module__  # the harness finds the case there again, in a child process
        return RuleCase(f"{self.name}/{rule}", refuse, accept, env=env or {})

    def phase_cases(self) -> list[RuleCase]:
        """The rules every operator has: of the results of phase 1, and of phase 2."""
        name = self.name

        def first(*, size=True, executor=True) -> Result:
            arguments = self.arguments()
            given = ffi.new("uint64_t *", 77), ffi.new("aclOpExecutor **", ffi.NULL)
            status = getattr(lib, f"{name}GetWorkspaceSize")(
                *map(handle_of, arguments.values()), given[0] if size else ffi.NULL,
                given[1] if executor else ffi.NULL)  # fmt: skip
            untouched = given[0][0] == 77 and given[1][0] == ffi.NULL
            if status == 0:
                ok(lib.aclDestroyAclOpExecutor(given[1][0]))
            return Result(status, untouched)

        def second(change: Callable[[object], tuple], afterwards=lambda: None) -> Result:
            arguments = self.arguments()
            watched = [arguments[output] for output in self.outputs if isinstance(arguments[output], Tensor)]
            before = [tensor.bytes() for tensor in watched]
            status, size, executor = plan(name, *arguments.values())
            ok(status)
            workspace = Memory(max(size, 32))
            status = getattr(lib, name)(*change(workspace, size, executor))
            afterwards()
            ok(lib.aclrtSynchronizeStream(ffi.NULL))
            return Result(status, [tensor.bytes() for tensor in watched] == before)

        def plain(workspace, size, executor):
            return workspace.address, size, executor, ffi.NULL

        def dead_executor(workspace, size, executor):
            ok(lib.aclDestroyAclOpExecutor(executor))
            return workspace.address, size, executor, ffi.NULL

        def of_another_operator(workspace, size, executor):
            ok(lib.aclDestroyAclOpExecutor(executor))
            other = "aclnnEmbedding" if name != "aclnnEmbedding" else "aclnnSoftMarginLoss"
            empty, index = Tensor(F32, numpy.ones((0, 1))), Tensor(I64, numpy.zeros(0))
            given = (empty, index, empty) if other == "aclnnEmbedding" else (empty, empty, 0, empty)
            status, size, executor = plan(other, *given)
            ok(status)
            return workspace.address, size, executor, ffi.NULL

        def on(make_stream: Callable[[], tuple]) -> Result:
            ends = []

            def begin(workspace, size, executor):
                stream, end = make_stream()
                ends.append(end)
                return workspace.address, size, executor, stream

            return second(begin, lambda: ends[0]())

        return [
            RuleCase(f"{name}/workspaceSize/null", lambda: first(size=False), first),
            RuleCase(f"{name}/executor/null", lambda: first(executor=False), first),
            RuleCase(f"{name}/executor/handle", lambda: second(dead_executor), lambda: second(plain)),
            RuleCase(f"{name}/executor/operator", lambda: second(of_another_operator), lambda: second(plain)),
            RuleCase(f"{name}/workspace/null", lambda: second(lambda w, s, e: (ffi.NULL, 32, e, ffi.NULL)),
                     lambda: second(lambda w, s, e: (w.address, 32, e, ffi.NULL))),
            *(RuleCase(f"{name}/stream/{rule}", lambda make=make: on(make), lambda: second(plain))
              for rule, make in REFUSED_STREAMS.items()),
        ]  # fmt: skip

    def tensor_cases(self, *required: str, optional: Sequence[str] = ()) -> list[RuleCase]:
        """Of each tensor: not alive, and of sizes that make no shape; of a required one: NULL."""
        nulls = [self.case(f"{name}/null", {name: None}) for name in required]
        return nulls + [case for name in (*required, *optional) for case in (
            self.case(f"{name}/handle", lambda name=name: {name: dead_tensor()}),
            self.case(f"{name}/sizes", lambda name=name: {name: expanded(F32, (2**32, 2**31))}),
        )]  # fmt: skip
