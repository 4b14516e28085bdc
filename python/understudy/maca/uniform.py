"""Any mcDNN function on NumPy arrays, by the header's names: `maca.run("mcdnnAddTensor", A=a, C=c, beta=1)`."""

from __future__ import annotations

import numpy

from understudy.arrays import as_array, contiguous_strides, storage_of
from understudy.device_array import DeviceArray, owned
from understudy.kit.prototypes import SCALING_FACTORS, prototype
from understudy.maca import call, ffi, lib
from understudy.maca.dnn import DTYPES, LOWEST_RANK, SPACE, Descriptor, Operation, TensorDescriptor, session

# Which array a tensor descriptor describes, where their names do not say so.
DESCRIBED = {
    "bnScaleBiasMeanVarDesc": ("bnScale", "bnScaleData"), "bnScaleBiasDiffDesc": ("bnScale",),
    "dBnScaleBiasDesc": ("bnScaleData",), "normScaleBiasDesc": ("normScale",), "dNormScaleBiasDesc": ("normScaleData",),
    "normMeanVarDesc": ("estimatedMean", "savedMean", "resultSaveMean", "resultRunningMean"),
    "srcDesc": ("srcData",), "destDesc": ("destData",), "hDesc": ("hx", "hy", "dhy", "dhx"),
    "cDesc": ("cx", "cy", "dcy", "dcx"),
}  # fmt: skip


HOST_MEMORY = {"algoSpace"}  # a `void *` that is no device address
# Arrays that the header declares like those of the host, or like device memory, but that are the other.
DEVICE_ARRAYS = {("mcdnnCTCLoss_v8", name) for name in ("labels", "labelLengths", "inputLengths")}
HOST_ARRAYS = {("mcdnnGetCTCLossWorkspaceSize", name) for name in ("labels", "labelLengths", "inputLengths")}


ELEMENTS = {lib.MCDNN_DATA_FLOAT: numpy.float32, lib.MCDNN_DATA_DOUBLE: numpy.float64, lib.MCDNN_DATA_HALF: numpy.float16}


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

    @classmethod
    def of(cls, array) -> FilterDescriptor:
        """That of an array k, c, h, w whose elements lie in memory in this order, or with c innermost."""
        first, *inner, last = contiguous_strides((array.shape[0], *array.shape[2:], array.shape[1]))
        formats = (contiguous_strides(array.shape), lib.MCDNN_TENSOR_NCHW), ((first, last, *inner), lib.MCDNN_TENSOR_NHWC)
        strides = array.element_strides if isinstance(array, DeviceArray) else storage_of(array).strides
        same = [code for known, code in formats
                if all(size == 1 or one == two for size, one, two in zip(array.shape, known, strides))]  # fmt: skip
        if not same:
            raise TypeError(f"a filter of shape {array.shape} has strides {tuple(strides)}: filters are packed")
        return cls(array.shape, getattr(lib, DTYPES[numpy.dtype(array.dtype)]), same[0])


class ConvolutionDescriptor(Descriptor):
    """Padding, stride and dilation of each spatial dimension, the number of groups, the mode, the type of sums."""

    kind = "Convolution"

    def __init__(self, padding, stride, dilation=None, groups: int = 1, mode: int = lib.MCDNN_CROSS_CORRELATION,
                 compute_type: int = lib.MCDNN_DATA_FLOAT):  # fmt: skip
        super().__init__()
        self.rank = len(padding) + 2
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


class RNNDescriptor(Descriptor):
    """A recurrent network: the cell, one of MCDNN_RNN_RELU, MCDNN_RNN_TANH, MCDNN_LSTM, MCDNN_GRU, and its sizes.

    dropout: between layers. padded: sequences need not be packed."""

    kind = "RNN"

    def __init__(self, cell: int, input_size: int, hidden_size: int, layers: int = 1, bidirectional: bool = False,
                 projection_size: int | None = None, bias: int = lib.MCDNN_RNN_DOUBLE_BIAS,
                 data_type: int = lib.MCDNN_DATA_FLOAT, dropout: DropoutDescriptor | None = None, padded: bool = True,
                 input_mode: int = lib.MCDNN_LINEAR_INPUT):  # fmt: skip
        super().__init__()
        self.data_type, self._dropout = data_type, dropout  # the descriptor has to live as long as this one
        call("mcdnnSetRNNDescriptor_v8", self.handle, lib.MCDNN_RNN_ALGO_STANDARD, cell, bias, int(bidirectional), input_mode,
             data_type, data_type, lib.MCDNN_DEFAULT_MATH, input_size, hidden_size, projection_size or hidden_size, layers,
             ffi.NULL if dropout is None else dropout.handle, int(padded))  # fmt: skip

    def weights(self) -> numpy.ndarray:
        """A weight space of zeros: what the functions call weightSpace."""
        size = ffi.new("size_t *")
        call("mcdnnGetRNNWeightSpaceSize", session().handle, self.handle, size)
        return numpy.zeros(size[0] // ELEMENTS[self.data_type]().itemsize, ELEMENTS[self.data_type])

    def parameter(self, weights: numpy.ndarray, pseudo_layer: int, matrix: int):
        """A matrix of a weight space and its bias, as views; None where the network has none."""
        base, addresses = ffi.cast("char *", 1 << 20), ffi.new("void *[2]")
        found = []
        with TensorDescriptor((1,), numpy.float32) as of_matrix, TensorDescriptor((1,), numpy.float32) as of_bias:
            call("mcdnnGetRNNWeightParams", session().handle, self.handle, pseudo_layer, weights.nbytes, base, matrix,
                 of_matrix.handle, addresses, of_bias.handle, addresses + 1)  # fmt: skip
            for descriptor, address in zip((of_matrix, of_bias), addresses):
                sizes, kind, rank = ffi.new("int[3]"), ffi.new("mcdnnDataType_t *"), ffi.new("int *")
                if address == ffi.NULL:
                    found.append(None)
                    continue
                call("mcdnnGetTensorNdDescriptor", descriptor.handle, 3, kind, rank, sizes, ffi.new("int[3]"))
                first = (ffi.cast("char *", address) - base) // weights.itemsize
                found.append(weights[first : first + sizes[1] * sizes[2]].reshape(sizes[1], sizes[2]))
        return tuple(found)


class RNNDataDescriptor(Descriptor):
    """Sequences of vectors: their lengths, the vectors' size, the number of steps (the longest one's), the layout."""

    kind = "RNNData"

    def __init__(self, lengths, vector_size: int, steps: int | None = None,
                 layout: int = lib.MCDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, data_type: int = lib.MCDNN_DATA_FLOAT,
                 fill: float = 0.0):  # fmt: skip
        super().__init__()
        lengths, padding = [int(length) for length in lengths], numpy.array([fill], ELEMENTS[data_type])
        call("mcdnnSetRNNDataDescriptor", self.handle, data_type, layout, max(lengths) if steps is None else steps,
             len(lengths), vector_size, lengths, ffi.from_buffer(padding))  # fmt: skip


class CTCLossDescriptor(Descriptor):
    """Connectionist temporal classification in float: of activations (softmax) or of probabilities."""

    kind = "CTCLoss"

    def __init__(self, softmax: bool = True, propagate_nan: bool = False, longest_label: int = 255):
        super().__init__()
        call("mcdnnSetCTCLossDescriptor_v8", self.handle, lib.MCDNN_DATA_FLOAT, int(softmax), int(propagate_nan),
             longest_label)  # fmt: skip


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


def _named(parameter, value: str) -> int:
    if parameter.kind.kind != "enum":
        return getattr(lib, value)
    numbers = parameter.kind.relements
    if value not in numbers:
        names = ", ".join(sorted(numbers, key=numbers.get))
        raise ValueError(f"{parameter.name} is {value!r}; it is one of {names}")
    return numbers[value]


class PreparedCall:
    """One call of an mcDNN function whose arguments are on the device: made by calling the object, any number of times.

    Arguments as for `run`. What it made is freed at the end of a `with` block."""

    def __init__(self, function: str, **arguments):
        if not function.startswith("mcdnn"):
            raise TypeError(f"{function} is no function of mcDNN: call it through `maca.lib`")
        found = prototype("maca", function)
        parameters = found.parameters
        names = {parameter.name for parameter in parameters}
        if unknown := sorted(set(arguments) - names):
            raise TypeError(f"{function} has no parameter {', '.join(unknown)}; it has {', '.join(sorted(names))}")
        # One array for a tensor that is given twice, which means in place.
        taken = {id(value): value if isinstance(value, DeviceArray) else as_array(value) for value in arguments.values()
                 if hasattr(value, "dtype") and hasattr(value, "shape")
                 and not isinstance(value, (Descriptor, numpy.generic))}  # fmt: skip
        self.function, self.operation = function, Operation()
        self._gives_status = found.result == ffi.typeof("mcdnnStatus_t")
        numbers = {parameter.name for parameter in parameters if not parameter.is_pointer} | SCALING_FACTORS
        self.given = {name: value.item() if name in numbers and hasattr(value, "item") and value.ndim == 0
                      else taken.get(id(value), value) for name, value in arguments.items()}  # fmt: skip
        self._memory: list[tuple[numpy.ndarray, object, object]] = []  # array, its storage, device address
        self._written: list[tuple[numpy.ndarray, object, object]] = []
        self._results: dict[str, object] = {}
        doubles = any(getattr(value, "dtype", None) == numpy.float64 for name, value in self.given.items()
                      if name not in SCALING_FACTORS)
        self._scale_type = "double *" if doubles else "float *"
        self._least_rank = next((min(value.rank, LOWEST_RANK) for value in self.given.values()
                                 if isinstance(value, ConvolutionDescriptor)), 3 if "RNN" in function or "CTC" in function
                                else LOWEST_RANK)  # fmt: skip
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
        """The call and the wait for it. The few functions that return no status give what they return."""
        if not self._gives_status:
            value = getattr(lib, self.function)(*self.values)
            self._results[self.function] = [ffi.string(value).decode() if isinstance(value, ffi.CData) else value]
            return
        call(self.function, *self.values)
        call("mcStreamSynchronize", self.operation.session.stream)

    def _argument(self, parameter):
        name, text = parameter.name, parameter.text
        if name == "handle":
            return self.operation.session.handle
        if "mcdnnTensorDescriptor_t" in text:
            return self._tensor_descriptor(name)
        value = self.given.get(name)
        if name in SCALING_FACTORS:
            return ffi.new(self._scale_type, float((1 if name.startswith("alpha") else 0) if value is None else value))
        if "mcdnnFilterDescriptor_t" in text and not isinstance(value, Descriptor):
            value = self._described(name) if value is None else value
            if hasattr(value, "shape"):
                return self.operation.enter_context(FilterDescriptor.of(value)).handle
        if isinstance(value, Descriptor):
            return value.handle
        if isinstance(value, DeviceArray):
            return ffi.cast("void *", owned(SPACE, value).pointer)
        if isinstance(value, numpy.ndarray):
            if self._is_host(parameter):
                return self._host(value, parameter)
            return self._address(value, writes="const" not in text)
        if value is None and parameter.is_pointer and parameter.kind.kind == "pointer":
            return self._result(parameter)
        if isinstance(value, str):
            return _named(parameter, value)
        return 0 if value is None else value

    def _is_host(self, parameter) -> bool:
        """Whether an array is read or written where it is, not on the device."""
        place = self.function, parameter.name
        return place in HOST_ARRAYS or parameter.name in HOST_MEMORY or ("[" in parameter.text and place not in DEVICE_ARRAYS)

    def _described(self, name: str):
        """What was given for a descriptor, or the array that it describes; None: nothing."""
        described = self.given.get(name)
        base = name.removesuffix("Desc").removesuffix("desc")
        for candidate in (*DESCRIBED.get(name, ()), base, f"{base}Data", base.upper()):
            described = self.given.get(candidate) if described is None else described
        return described

    def _tensor_descriptor(self, name: str):
        described = self._described(name)
        if described is None:
            return ffi.NULL
        if isinstance(described, Descriptor):
            return described.handle
        if not hasattr(described, "shape"):
            raise TypeError(f"{name}: needed is an array or a descriptor, not {type(described).__name__}")
        strides = described.element_strides if isinstance(described, DeviceArray) else storage_of(described).strides
        made = TensorDescriptor(described.shape, described.dtype, strides, self._least_rank)
        return self.operation.enter_context(made).handle

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
    read and written where they are. Descriptors of tensors and filters follow from the arrays they describe, unless one is
    given (a descriptor, or an array like it). `handle` is the thread's own. Scaling factors are numbers (alpha 1, beta 0 when
    left out), enumerators numbers or names, workspaces arrays of bytes; what the header declares as `name[]` is host
    memory. What is left out is NULL or 0. Numbers that the function gives are returned: one alone, several as a dict.
    Errors: StatusError with the function's status; TypeError for an unknown name, ValueError for an unknown enumerator."""
    with PreparedCall(function, **arguments) as prepared:
        prepared()
        prepared.fetch()
        return prepared.results()
