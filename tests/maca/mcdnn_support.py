"""Tensors on the emulated device, calls by parameter name, and the status of everything checked.

Uses only the public ABI: parameter names come from the shipped headers, values pass through the vendor's runtime.
"""

from __future__ import annotations

import functools
import hashlib
import re

import numpy as np

from understudy import paths
from understudy.maca import ffi, lib

from tests import in_step
from tests.conformance.verdicts import WrongNumber
from tests.conformance.verdicts import require_status as ok

FLOAT, DOUBLE, HALF, BFLOAT16 = (lib.MCDNN_DATA_FLOAT, lib.MCDNN_DATA_DOUBLE, lib.MCDNN_DATA_HALF,
                                 lib.MCDNN_DATA_BFLOAT16)
STORAGE = {FLOAT: np.float32, DOUBLE: np.float64, HALF: np.float16, BFLOAT16: np.uint16,
           lib.MCDNN_DATA_INT8: np.int8, lib.MCDNN_DATA_UINT8: np.uint8, lib.MCDNN_DATA_INT32: np.int32,
           lib.MCDNN_DATA_INT64: np.int64}
NUMBERS = {FLOAT: "float32", DOUBLE: "float64", HALF: "float16", BFLOAT16: "bfloat16"}
# One rounding of the result, relative: half a unit in the last place.
ROUNDING = {FLOAT: 2.0**-24, DOUBLE: 2.0**-53, HALF: 2.0**-11, BFLOAT16: 2.0**-8}


def synchronize() -> None:
    ok(lib.mcDeviceSynchronize())


@functools.cache
def handle():
    made = ffi.new("mcdnnHandle_t *")
    ok(lib.mcdnnCreate(made))
    return made[0]


def to_storage(values: np.ndarray, data_type: int) -> np.ndarray:
    """Values rounded to the type's storage: to nearest, ties to even."""
    if data_type != BFLOAT16:
        return np.asarray(values).astype(STORAGE[data_type])
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(np.asarray(values, np.float32)), np.uint16(0x7FC0), rounded)


def from_storage(stored: np.ndarray, data_type: int) -> np.ndarray:
    if data_type != BFLOAT16:
        return stored.astype(np.float64)
    return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def packed_strides(sizes, order=None) -> tuple[int, ...]:
    """Strides of a tensor whose dimensions lie in memory in `order`, outermost first; default: row-major."""
    strides, step = [0] * len(sizes), 1
    for axis in reversed(order if order is not None else range(len(sizes))):
        strides[axis], step = step, step * sizes[axis]
    return tuple(strides)


def nhwc_strides(sizes) -> tuple[int, ...]:
    return packed_strides(sizes, [0, *range(2, len(sizes)), 1])


def gapped_strides(sizes) -> tuple[int, ...]:
    """Row-major with a gap behind each row, plane and image."""
    strides, step = [0] * len(sizes), 1
    for axis in reversed(range(len(sizes))):
        strides[axis], step = step, step * sizes[axis] + 1
    return tuple(strides)


LAYOUTS = {"nchw": packed_strides, "nhwc": nhwc_strides, "gapped": gapped_strides}


class Buffer:
    """Device memory that holds a NumPy array."""

    def __init__(self, content: np.ndarray):
        self.content = np.ascontiguousarray(content)
        address = ffi.new("void **")
        ok(lib.mcMalloc(address, max(self.content.nbytes, 1)))
        self.address = ffi.gc(address[0], lib.mcFree)  # Python code here could end pytest, where a library has no mcFree
        self.write(self.content)

    def write(self, content: np.ndarray) -> None:
        content = np.ascontiguousarray(content)
        ok(lib.mcMemcpy(self.address, ffi.from_buffer(content), content.nbytes, lib.mcMemcpyHostToDevice))

    def read(self) -> np.ndarray:
        synchronize()
        content = np.empty_like(self.content)
        ok(lib.mcMemcpy(ffi.from_buffer(content, require_writable=True), self.address, content.nbytes,
                        lib.mcMemcpyDeviceToHost))
        return content


def descriptor(sizes, data_type=FLOAT, strides=None):
    """A tensor descriptor that lives as long as the object that is returned."""
    made = ffi.new("mcdnnTensorDescriptor_t *")
    ok(lib.mcdnnCreateTensorDescriptor(made))
    ok(lib.mcdnnSetTensorNdDescriptor(made[0], data_type, len(sizes), list(sizes),
                                      list(strides if strides is not None else packed_strides(sizes))))
    return ffi.gc(made[0], lib.mcdnnDestroyTensorDescriptor)


class Tensor:
    """A tensor in device memory with its descriptor. What lies between elements is filled with a pattern."""

    def __init__(self, values, data_type=FLOAT, strides=None):
        values = np.asarray(values)
        self.sizes, self.data_type = values.shape, data_type
        self.strides = tuple(strides if strides is not None else packed_strides(values.shape))
        reach = 1 + sum((size - 1) * stride for size, stride in in_step(self.sizes, self.strides))
        storage = np.full(reach * np.dtype(STORAGE[data_type]).itemsize, 0xA5, np.uint8).view(STORAGE[data_type])
        self._logical(storage)[...] = to_storage(values, data_type)
        self.buffer = Buffer(storage)
        self.descriptor = descriptor(self.sizes, data_type, self.strides)

    def _logical(self, storage: np.ndarray) -> np.ndarray:
        strides = [stride * storage.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(storage, self.sizes, strides)

    @property
    def address(self):
        return self.buffer.address

    def stored(self) -> np.ndarray:
        """The elements as they are stored, after all queued work."""
        return self._logical(self.buffer.read()).copy()

    def values(self) -> np.ndarray:
        """The elements as float64, after all queued work."""
        return from_storage(self.stored(), self.data_type)

    def bytes(self) -> bytes:
        return self.buffer.read().tobytes()

    def gaps_untouched(self) -> bool:
        before, after = self.buffer.content, self.buffer.read()
        gaps = np.ones(before.size, bool)
        offsets = sum(np.arange(size).reshape([-1] + [1] * (len(self.sizes) - axis - 1)) * stride
                      for axis, (size, stride) in enumerate(zip(self.sizes, self.strides)))
        gaps[np.asarray(offsets).ravel()] = False
        return before[gaps].tobytes() == after[gaps].tobytes()


def activation(mode, coef: float, *, propagate_nan=False, swish_beta=1.0):
    """An activation descriptor that lives as long as the object that is returned."""
    made = ffi.new("mcdnnActivationDescriptor_t *")
    ok(lib.mcdnnCreateActivationDescriptor(made))
    ok(lib.mcdnnSetActivationDescriptor(made[0], mode, int(propagate_nan), coef))
    if swish_beta is not None:
        ok(lib.mcdnnSetActivationDescriptorSwishBeta(made[0], swish_beta))
    return ffi.gc(made[0], lib.mcdnnDestroyActivationDescriptor)


def pooling(mode, window, padding, stride, *, propagate_nan=False):
    """A pooling descriptor that lives as long as the object that is returned."""
    made = ffi.new("mcdnnPoolingDescriptor_t *")
    ok(lib.mcdnnCreatePoolingDescriptor(made))
    if len(window) == 2:
        ok(lib.mcdnnSetPooling2dDescriptor(made[0], mode, int(propagate_nan), *window, *padding, *stride))
    else:
        ok(lib.mcdnnSetPoolingNdDescriptor(made[0], mode, int(propagate_nan), len(window), window, padding, stride))
    return ffi.gc(made[0], lib.mcdnnDestroyPoolingDescriptor)


def lrn(n, alpha, beta, k):
    """An LRN descriptor that lives as long as the object that is returned."""
    made = ffi.new("mcdnnLRNDescriptor_t *")
    ok(lib.mcdnnCreateLRNDescriptor(made))
    ok(lib.mcdnnSetLRNDescriptor(made[0], n, alpha, beta, k))
    return ffi.gc(made[0], lib.mcdnnDestroyLRNDescriptor)


def transformer(sizes, data_type=FLOAT):
    """A spatial transformer descriptor that lives as long as the object that is returned."""
    made = ffi.new("mcdnnSpatialTransformerDescriptor_t *")
    ok(lib.mcdnnCreateSpatialTransformerDescriptor(made))
    ok(lib.mcdnnSetSpatialTransformerNdDescriptor(made[0], lib.MCDNN_SAMPLER_BILINEAR, data_type, len(sizes), sizes))
    return ffi.gc(made[0], lib.mcdnnDestroySpatialTransformerDescriptor)


def op_tensor(op, compute_type=FLOAT, propagate_nan=False):
    """An operation descriptor that lives as long as the object that is returned."""
    made = ffi.new("mcdnnOpTensorDescriptor_t *")
    ok(lib.mcdnnCreateOpTensorDescriptor(made))
    ok(lib.mcdnnSetOpTensorDescriptor(made[0], op, compute_type, int(propagate_nan)))
    return ffi.gc(made[0], lib.mcdnnDestroyOpTensorDescriptor)


def reduction(op, compute_type=FLOAT, propagate_nan=False, indices=False, indices_type=0):
    """A reduction descriptor that lives as long as the object that is returned."""
    made = ffi.new("mcdnnReduceTensorDescriptor_t *")
    ok(lib.mcdnnCreateReduceTensorDescriptor(made))
    ok(lib.mcdnnSetReduceTensorDescriptor(made[0], op, compute_type, int(propagate_nan), int(indices), indices_type))
    return ffi.gc(made[0], lib.mcdnnDestroyReduceTensorDescriptor)


def scale(value: float, data_type: int = FLOAT):
    """A host scaling factor: float, or double for DOUBLE data."""
    return ffi.new("double *" if data_type == DOUBLE else "float *", value)


@functools.cache
def parameters(function: str) -> tuple[str, ...]:
    """The parameter names of a function, from the shipped headers."""
    folder = paths.STACKS["maca"].root / "include" / "mcdnn"
    text = "".join(file.read_text() for file in sorted(folder.glob("*.h")))
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    prototype = re.search(rf"\b{function}\s*\(([^)]*)\)", text)
    assert prototype, f"{function} is not declared"
    return tuple(re.findall(r"(\w+)(?:\[\])?\s*(?:,|$)", prototype[1].strip()))


def native(parameter: str, value):
    """What cffi is given for a parameter: tensors become their descriptor or address, None becomes NULL."""
    if value is None:
        return ffi.NULL
    if isinstance(value, Tensor):
        return value.descriptor if parameter.lower().endswith("desc") else value.address
    if isinstance(value, Buffer):
        return value.address
    return value


def call(function: str, **arguments) -> int:
    """Calls a function by parameter names; returns its status."""
    names = parameters(function)
    assert set(names) == set(arguments), (set(names) ^ set(arguments))
    return int(getattr(lib, function)(*[native(name, arguments[name]) for name in names]))


def run(function: str, **arguments) -> None:
    """As `call`, and the call and its work must succeed."""
    ok(call(function, **arguments))
    synchronize()


def assert_close(actual, expected, data_type, ulps=4.0, floor=1.0) -> None:
    """Within `ulps` units in the last place of the expected value or, where terms cancel, of `floor`: the magnitude of the
    terms that were added (a number or one per element)."""
    expected = np.asarray(expected, np.float64)
    tolerance = ulps * 2 * ROUNDING[data_type] * np.maximum(np.abs(expected), floor)
    both_nan = np.isnan(actual) & np.isnan(expected)
    same = both_nan | (actual == expected) | (np.abs(actual - expected) <= tolerance)
    if not same.all():
        raise WrongNumber(actual, expected, f"{ulps} ulp", NUMBERS[data_type])


def random(sizes, data_type, seed=0, spread=2.0) -> np.ndarray:
    """Values between -spread and spread that the type represents exactly."""
    values = np.random.default_rng(seed).uniform(-spread, spread, sizes)
    return from_storage(to_storage(values, data_type), data_type)


def differences(function, values, slopes, step=1e-6):
    """Central differences of sum(slopes * function(values)) by every element of values."""
    found = np.zeros(values.shape)
    for index in np.ndindex(values.shape):
        moved = values.copy()
        moved[index] += step
        above = function(moved)
        moved[index] -= 2 * step
        found[index] = ((above - function(moved)) * slopes).sum() / (2 * step)
    return found


def digest_of(tensors) -> str:
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(tensor.bytes())
    return found.hexdigest()
