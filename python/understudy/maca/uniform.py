"""Any mcDNN function on NumPy arrays, by the header's names: `maca.run("mcdnnAddTensor", A=a, C=c, beta=1)`."""

from __future__ import annotations

import numpy

from understudy.arrays import storage_of
from understudy.device_array import DeviceArray, as_operand
from understudy.kit.prototypes import SCALING_FACTORS, prototype
from understudy.maca import call, ffi, lib
from understudy.maca.dnn import Descriptor, Operation, TensorDescriptor

# Which array a tensor descriptor describes, where their names do not say so.
DESCRIBED = {
    "bnScaleBiasMeanVarDesc": ("bnScale", "bnScaleData"), "bnScaleBiasDiffDesc": ("bnScale",),
    "dBnScaleBiasDesc": ("bnScaleData",), "normScaleBiasDesc": ("normScale",), "dNormScaleBiasDesc": ("normScaleData",),
    "normMeanVarDesc": ("estimatedMean", "savedMean", "resultSaveMean", "resultRunningMean"),
    "srcDesc": ("srcData",), "destDesc": ("destData",),
}  # fmt: skip


HOST_MEMORY = {"algoSpace"}  # a `void *` that is no device address


class DropoutDescriptor(Descriptor):
    """A dropout probability and the state of its random numbers, which lies in device memory of its own.

    states: an earlier `states()`, to go on from there; None: seeded."""

    kind = "Dropout"

    def __init__(self, dropout: float, seed: int = 0, states: numpy.ndarray | None = None):
        super().__init__()
        self._operation = Operation()
        handle, size = self._operation.session.handle, ffi.new("size_t *")
        call("mcdnnDropoutGetStatesSize", handle, size)
        self._states = numpy.zeros(size[0], numpy.uint8) if states is None else numpy.array(states, numpy.uint8)
        self._address = self._operation.upload(self._states)
        function = "mcdnnSetDropoutDescriptor" if states is None else "mcdnnRestoreDropoutDescriptor"
        call(function, self.handle, handle, dropout, self._address, self._states.size, seed)

    def states(self) -> numpy.ndarray:
        """A copy of the state, as bytes."""
        return self._operation.download(self._states.copy(), self._address)

    def close(self) -> None:
        super().close()
        self._operation.close()


class SpatialTransformerDescriptor(Descriptor):
    """The output sizes n, c, h, w of a bilinear sampler."""

    kind = "SpatialTransformer"

    def __init__(self, sizes, dtype=numpy.float32):
        super().__init__()
        kind = lib.MCDNN_DATA_DOUBLE if numpy.dtype(dtype) == numpy.float64 else lib.MCDNN_DATA_FLOAT
        call("mcdnnSetSpatialTransformerNdDescriptor", self.handle, lib.MCDNN_SAMPLER_BILINEAR, kind, len(sizes), sizes)


class OpTensorDescriptor(Descriptor):
    """What mcdnnOpTensor does: one of MCDNN_OP_TENSOR_…, the type it computes in, what becomes of NaN."""

    kind = "OpTensor"

    def __init__(self, operation: int, compute_type: int = lib.MCDNN_DATA_FLOAT, propagate_nan: bool = True):
        super().__init__()
        call("mcdnnSetOpTensorDescriptor", self.handle, operation, compute_type, int(propagate_nan))


class ReduceTensorDescriptor(Descriptor):
    """What mcdnnReduceTensor does: one of MCDNN_REDUCE_TENSOR_…, and whether indices are wanted."""

    kind = "ReduceTensor"

    def __init__(self, operation: int, compute_type: int = lib.MCDNN_DATA_FLOAT, propagate_nan: bool = True,
                 indices: bool = False):  # fmt: skip
        super().__init__()
        call("mcdnnSetReduceTensorDescriptor", self.handle, operation, compute_type, int(propagate_nan), int(indices),
             lib.MCDNN_32BIT_INDICES)  # fmt: skip


class FilterDescriptor(Descriptor):
    """A filter's type, format and sizes k, c, h, w."""

    kind = "Filter"

    def __init__(self, sizes, data_type: int = lib.MCDNN_DATA_FLOAT, tensor_format: int = lib.MCDNN_TENSOR_NCHW):
        super().__init__()
        call("mcdnnSetFilterNdDescriptor", self.handle, data_type, tensor_format, len(sizes), sizes)


class ConvolutionDescriptor(Descriptor):
    """Padding, stride and dilation of each spatial dimension, the number of groups, the mode, the type of sums."""

    kind = "Convolution"

    def __init__(self, padding, stride, dilation=None, groups: int = 1, mode: int = lib.MCDNN_CROSS_CORRELATION,
                 compute_type: int = lib.MCDNN_DATA_FLOAT):  # fmt: skip
        super().__init__()
        dilation = dilation or (1,) * len(padding)
        call("mcdnnSetConvolutionNdDescriptor", self.handle, len(padding), padding, stride, dilation, mode,
             compute_type)  # fmt: skip
        call("mcdnnSetConvolutionGroupCount", self.handle, groups)


class TensorTransformDescriptor(Descriptor):
    """Padding before and after, folds, and the direction of folding, dimension by dimension."""

    kind = "TensorTransform"

    def __init__(self, before, after, folds, tensor_format: int = lib.MCDNN_TENSOR_NCHW, unfold: bool = False):
        super().__init__()
        call("mcdnnSetTensorTransformDescriptor", self.handle, len(before), tensor_format, before, after, folds,
             int(unfold))  # fmt: skip


class AlgorithmDescriptor(Descriptor):
    """The number of an algorithm (deprecated): one of MCDNN_CONVOLUTION_…_ALGO_…, MCDNN_RNN_ALGO_… and the like."""

    kind = "Algorithm"

    def __init__(self, number: int | None = None):
        super().__init__()
        if number is not None:
            # A structure around one enumerator, which cffi cannot pass by value: it travels as an int.
            kind = "mcdnnStatus_t (*)(mcdnnAlgorithmDescriptor_t, int)"
            ffi.cast(kind, lib.mcdnnSetAlgorithmDescriptor)(self.handle, number)

    @property
    def number(self) -> int:
        held = ffi.new("mcdnnAlgorithm_t *")
        call("mcdnnGetAlgorithmDescriptor", self.handle, held)
        return ffi.cast("int *", held)[0]


class PreparedCall:
    """One call of an mcDNN function whose arguments are on the device: made by calling the object, any number of times.

    Arguments as for `run`. What it made is freed at the end of a `with` block."""

    def __init__(self, function: str, **arguments):
        parameters = prototype("maca", function).parameters
        names = {parameter.name for parameter in parameters}
        if unknown := sorted(set(arguments) - names):
            raise TypeError(f"{function} has no parameter {', '.join(unknown)}; it has {', '.join(sorted(names))}")
        # One array for a tensor that is given twice, which means in place.
        taken = {id(value): as_operand(value) for value in arguments.values() if hasattr(value, "dtype") and hasattr(value, "shape")
                 and not isinstance(value, Descriptor)}  # fmt: skip
        self.function, self.operation = function, Operation()
        self.given = {name: taken.get(id(value), value) for name, value in arguments.items()}
        self._memory: list[tuple[numpy.ndarray, object, object]] = []  # array, its storage, device address
        self._written: list[tuple[numpy.ndarray, object, object]] = []
        self._results: dict[str, object] = {}
        doubles = any(getattr(value, "dtype", None) == numpy.float64 for value in self.given.values())
        self._scale_type = "double *" if doubles else "float *"
        try:
            self.values = [self._argument(parameter) for parameter in parameters]
        except BaseException:
            self.operation.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.operation.close()

    def __call__(self) -> None:
        """The call and the wait for it."""
        call(self.function, *self.values)
        call("mcStreamSynchronize", self.operation.session.stream)

    def _argument(self, parameter):
        name, text = parameter.name, parameter.text
        if name == "handle":
            return self.operation.session.handle
        if "mcdnnTensorDescriptor_t" in text:
            return self._tensor_descriptor(name)
        value = self.given.get(name)
        if isinstance(value, Descriptor):
            return value.handle
        if isinstance(value, DeviceArray):
            return ffi.cast("void *", value.pointer)
        if isinstance(value, numpy.ndarray):
            if "[" in text or name in HOST_MEMORY:
                return self._host(value, parameter)
            return self._address(value, writes="const" not in text)
        if name in SCALING_FACTORS:
            return ffi.new(self._scale_type, 1.0 if value is None and name.startswith("alpha") else value or 0.0)
        if value is None and parameter.is_pointer and parameter.kind.kind == "pointer":
            return self._result(parameter)
        if isinstance(value, str):
            return getattr(lib, value)
        return 0 if value is None else value

    def _tensor_descriptor(self, name: str):
        described = self.given.get(name)
        base = name.removesuffix("Desc").removesuffix("desc")
        for candidate in (*DESCRIBED.get(name, ()), base, f"{base}Data", base.upper()):
            described = self.given.get(candidate) if described is None else described
        if described is None:
            return ffi.NULL
        if isinstance(described, Descriptor):
            return described.handle
        strides = described.element_strides if isinstance(described, DeviceArray) else storage_of(described).strides
        return self.operation.enter_context(TensorDescriptor(described.shape, described.dtype, strides)).handle

    def _host(self, array: numpy.ndarray, parameter):
        """Memory that the function reads or writes where it is."""
        item = parameter.kind.item
        if item.kind != "void" and array.itemsize != ffi.sizeof(item):
            raise TypeError(f"{parameter.name} is {array.dtype}, needed are elements of {ffi.sizeof(item)} bytes")
        return ffi.cast(parameter.kind, ffi.from_buffer(array, require_writable="const" not in parameter.text))

    def _address(self, array: numpy.ndarray, writes: bool):
        held = next((held for held in self._memory if held[0] is array), None)  # given twice: in place
        if held is None:
            view = storage_of(array)
            held = array, view, self.operation.upload(numpy.ascontiguousarray(view.elements))
            self._memory.append(held)
        if writes:
            self._written.append(held)
        return held[2]

    def _result(self, parameter):
        """A number that the call gives; other pointers that were not given, arrays among them, are NULL."""
        item = parameter.kind.item
        if item.kind not in ("primitive", "enum") or "const" in parameter.text or "[" in parameter.text:
            return ffi.NULL
        self._results[parameter.name] = ffi.new(parameter.kind)
        return self._results[parameter.name]

    def fetch(self) -> None:
        """Brings what the calls wrote back into the caller's arrays."""
        for array, view, address in self._written:
            elements = numpy.empty(view.elements.shape, view.elements.dtype)
            self.operation.download(elements, address)
            steps = [stride * elements.itemsize for stride in view.strides]
            array[...] = numpy.lib.stride_tricks.as_strided(elements, view.shape, steps)

    def results(self):
        """The numbers that the function gives: one alone, several as a dict, None when it gives none."""
        numbers = {name: cell[0] for name, cell in self._results.items()}
        return next(iter(numbers.values()), None) if len(numbers) < 2 else numbers


def run(function: str, **arguments):
    """Calls an mcDNN function; arguments go by the header's parameter names.

    Arrays are copied to the device; those that the function may write are copied back into the same array (strides and
    all); an array given twice is in place. torch tensors on the CPU are taken like arrays; device arrays (`maca.array`) are
    read and written where they are. Tensor descriptors follow from the arrays they describe, unless one is given
    (a descriptor, or an array like it). `handle` is the thread's own. Scaling factors are numbers (alpha 1, beta 0 when
    left out), enumerators numbers or names, workspaces arrays of bytes; what the header declares as `name[]` is host
    memory. What is left out is NULL or 0. Numbers that the function gives are returned: one alone, several as a dict.
    Errors: StatusError with the function's status; TypeError for an unknown name."""
    with PreparedCall(function, **arguments) as prepared:
        prepared()
        prepared.fetch()
        return prepared.results()
