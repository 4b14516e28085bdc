"""The MACA stack: `ffi` and `lib` are the raw ABI, the rest is the NumPy layer over mcDNN.

    from understudy.maca import ffi, lib, run
    lib.mcSetDevice(0)
    run("mcdnnAddTensor", A=a, C=c, beta=1)  # any function, on arrays, by the header's names
"""

from understudy._maca_cffi import ffi
from understudy.binding import Binding

_binding = Binding("maca", ffi)

lib = _binding.lib
load = _binding.load
last_error = _binding.last_error
call = _binding.call

from understudy.maca.dnn import (  # noqa: E402  (needs the names above)
    ActivationDescriptor,
    Event,
    LRNDescriptor,
    PoolingDescriptor,
    Stream,
    TensorDescriptor,
    array,
)
from understudy.maca.ops import (  # noqa: E402
    activation_backward,
    activation_forward,
    lrn_cross_channel_backward,
    lrn_cross_channel_forward,
    pooling_backward,
    pooling_forward,
    softmax_backward,
    softmax_forward,
)
from understudy.maca.uniform import (  # noqa: E402
    AlgorithmDescriptor,
    ConvolutionDescriptor,
    CTCLossDescriptor,
    DropoutDescriptor,
    FilterDescriptor,
    OpTensorDescriptor,
    PreparedCall,
    ReduceTensorDescriptor,
    RNNDataDescriptor,
    RNNDescriptor,
    SpatialTransformerDescriptor,
    TensorTransformDescriptor,
    run,
)

__all__ = [
    "ActivationDescriptor", "AlgorithmDescriptor", "CTCLossDescriptor", "ConvolutionDescriptor", "DropoutDescriptor", "Event",
    "FilterDescriptor", "LRNDescriptor", "OpTensorDescriptor", "PoolingDescriptor", "PreparedCall", "RNNDataDescriptor",
    "RNNDescriptor", "ReduceTensorDescriptor", "SpatialTransformerDescriptor", "Stream", "TensorDescriptor",
    "TensorTransformDescriptor",
    "activation_backward", "activation_forward", "array", "call", "ffi", "last_error", "lib", "load",
    "lrn_cross_channel_backward",
    "lrn_cross_channel_forward", "pooling_backward", "pooling_forward", "run", "softmax_backward", "softmax_forward",
]  # fmt: skip
