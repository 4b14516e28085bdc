"""Rows of batch normalization, Normalization, local response and divisive normalization."""

from dataclasses import dataclass
from functools import partial

import numpy
from cases import DTYPES, Row, peer, shaped_rows, torch
from mcdnn import FLOATS, LABEL, SHAPE, image_tensor, images, mcdnn_case

from understudy import maca

TRAINED = ["float32", "float16"]  # batch normalization has a gradient in these (and in float64)
EPSILON = 1e-5
LRN = 5, 1e-4, 0.75, 2.0  # neighbours, alpha, beta, k
DIVISIVE = 5, 0.1, 0.75, 1.0
CHANNELS = SHAPE[1]


def parameters(spatial: bool, count: int) -> list[numpy.ndarray]:
    shape = (1, CHANNELS, 1, 1) if spatial else (1, *SHAPE[1:])
    return [numpy.ones(shape, numpy.float32) for _ in range(count)]


def mode_of(spatial: bool) -> str:
    return "MCDNN_BATCHNORM_SPATIAL" if spatial else "MCDNN_BATCHNORM_PER_ACTIVATION"


def features(array: numpy.ndarray, spatial: bool):
    """For PyTorch, which normalizes dimension 1: per activation every element of an image is one."""
    return image_tensor(array) if spatial else image_tensor(array).reshape(array.shape[0], -1)


def like(array: numpy.ndarray) -> numpy.ndarray:
    """An array with the same order in memory."""
    return numpy.empty_like(array, order="K")


def training(dtype: str, last: bool, spatial: bool):
    (x,) = images(dtype, 1, last)
    y = like(x)
    scale, bias, mean, variance, saved, inverse = parameters(spatial, 6)
    arguments = {
        "mode": mode_of(spatial), "x": x, "y": y, "bnScale": scale, "bnBias": bias, "epsilon": EPSILON,
        "exponentialAverageFactor": 0.1, "resultRunningMean": mean, "resultRunningVariance": variance,
        "resultSaveMean": saved, "resultSaveInvVariance": inverse,
    }  # fmt: skip

    def torch_training():
        data = features(x, spatial)
        weights = [torch.ones(scale.size) for _ in range(4)]
        out, saves = torch.empty_like(data), [torch.empty(scale.size) for _ in range(2)]
        given = {"out": out, "save_mean": saves[0], "save_invstd": saves[1]}
        return lambda: torch.ops.aten.native_batch_norm.out(data, *weights, True, 0.1, EPSILON, **given)

    writes = "y resultRunningMean resultRunningVariance resultSaveMean resultSaveInvVariance"
    reads = "x bnScale bnBias resultRunningMean resultRunningVariance"
    return mcdnn_case("mcdnnBatchNormalizationForwardTraining", arguments, reads, writes, peer(torch_training))


def inference(dtype: str, last: bool, spatial: bool):
    (x,) = images(dtype, 1, last)
    y = like(x)
    scale, bias, mean, variance = parameters(spatial, 4)
    arguments = {
        "mode": mode_of(spatial), "x": x, "y": y, "bnScale": scale, "bnBias": bias, "estimatedMean": mean,
        "estimatedVariance": variance, "epsilon": EPSILON,
    }  # fmt: skip

    def torch_inference():
        data = features(x, spatial)
        weights = [torch.ones(scale.size) for _ in range(4)]
        out, nothing = torch.empty_like(data), [torch.empty(0) for _ in range(2)]
        given = {"out": out, "save_mean": nothing[0], "save_invstd": nothing[1]}
        return lambda: torch.ops.aten.native_batch_norm.out(data, *weights, False, 0.1, EPSILON, **given)

    reads = "x bnScale bnBias estimatedMean estimatedVariance"
    return mcdnn_case("mcdnnBatchNormalizationForwardInference", arguments, reads, "y", peer(torch_inference))


def gradient(dtype: str, last: bool, spatial: bool):
    x, dy = images(dtype, 2, last)
    scale, scale_gradient, bias_gradient, mean, inverse = parameters(spatial, 5)
    arguments = {
        "mode": mode_of(spatial), "x": x, "dy": dy, "dx": like(x), "bnScale": scale, "epsilon": EPSILON,
        "resultBnScaleDiff": scale_gradient, "resultBnBiasDiff": bias_gradient, "savedMean": mean,
        "savedInvVariance": inverse,
    }  # fmt: skip

    def torch_gradient():  # has no form with a given output
        grad, data = features(dy, spatial), features(x, spatial)
        weight, mean, variance, saved, inverse = (torch.ones(scale.size) for _ in range(5))
        statistics = weight, mean, variance, saved, inverse, True, EPSILON, [True, True, True]
        return lambda: torch.ops.aten.native_batch_norm_backward(grad, data, *statistics)

    reads, writes = "x dy bnScale savedMean savedInvVariance", "dx resultBnScaleDiff resultBnBiasDiff"
    return mcdnn_case("mcdnnBatchNormalizationBackward", arguments, reads, writes, peer(torch_gradient))


def torch_fused(x, z):
    """Eager PyTorch has no fused form: the normalization, the addition and the activation in turn."""
    data, other = image_tensor(x), None if z is None else image_tensor(z)
    weights = [torch.ones(CHANNELS) for _ in range(4)]
    out, saves = torch.empty_like(data), [torch.empty(CHANNELS) for _ in range(2)]
    given = {"out": out, "save_mean": saves[0], "save_invstd": saves[1]}

    def run():
        torch.ops.aten.native_batch_norm.out(data, *weights, True, 0.1, EPSILON, **given)
        if other is not None:
            out.add_(other)
        out.clamp_min_(0)

    return run


def torch_fused_gradient(y, dy, x):
    result, grad, data = (image_tensor(array) for array in (y, dy, x))
    weights, masked = [torch.ones(CHANNELS) for _ in range(5)], torch.empty_like(grad)

    def run():
        torch.ops.aten.threshold_backward.grad_input(grad, result, 0, grad_input=masked)
        torch.ops.aten.native_batch_norm_backward(masked, data, *weights, True, EPSILON, [True, True, True])

    return run


@dataclass(frozen=True)
class Interface:
    """How one of the two interfaces to the fused forms spells the same things."""

    name: str
    forward: str
    backward: str
    reserve_size: str
    fixed: dict
    operation: tuple[str, str]  # parameter, start of the enumerator
    forward_parameters: str  # scale, bias, running mean and variance, saved mean and inverse deviation
    backward_parameters: str  # scale, bias, their gradients, saved mean and inverse deviation


BATCH_NORM = Interface(
    "batch norm", "mcdnnBatchNormalizationForwardTrainingEx", "mcdnnBatchNormalizationBackwardEx",
    "mcdnnGetBatchNormalizationTrainingExReserveSpaceSize", {"mode": "MCDNN_BATCHNORM_SPATIAL"},
    ("bnOps", "MCDNN_BATCHNORM_OPS_BN"),
    "bnScaleData bnBiasData resultRunningMeanData resultRunningVarianceData saveMean saveInvVariance",
    "bnScaleData bnBiasData dBnScaleData dBnBiasData savedMean savedInvVariance",
)  # fmt: skip
NORMALIZATION = Interface(
    "Normalization", "mcdnnNormalizationForwardTraining", "mcdnnNormalizationBackward",
    "mcdnnGetNormalizationTrainingReserveSpaceSize", {"mode": "MCDNN_NORM_PER_CHANNEL", "groupCnt": 1},
    ("normOps", "MCDNN_NORM_OPS_NORM"),
    "normScale normBias resultRunningMean resultRunningVariance resultSaveMean resultSaveInvVariance",
    "normScaleData normBiasData dNormScaleData dNormBiasData savedMean savedInvVariance",
)  # fmt: skip


def fused(dtype: str, backward: bool, add: bool, interface: Interface):
    """Batch normalization, the addition of z where wanted, and relu; NHWC."""
    x, dy, z = images(dtype, 3, last=True)
    y, dx, dz = like(x), like(x), like(x)
    scale, bias, scale_gradient, bias_gradient, mean, variance, saved, inverse = parameters(True, 8)
    relu = maca.ActivationDescriptor("relu")
    parameter, start = interface.operation
    common = {**interface.fixed, parameter: f"{start}_{'ADD_' if add else ''}ACTIVATION", "activationDesc": relu}
    reserve = numpy.zeros(maca.run(interface.reserve_size, xDesc=x, **common), numpy.uint8)
    common |= {"reserveSpace": reserve, "reserveSpaceSizeInBytes": reserve.nbytes, "xData": x, "yData": y,
               "epsilon": EPSILON}  # fmt: skip
    forward = {**common, **({"zData": z} if add else {}), "exponentialAverageFactor": 0.1}
    forward |= zip(interface.forward_parameters.split(), (scale, bias, mean, variance, saved, inverse))
    if not backward:
        reads, function = "xData zData" if add else "xData", peer(lambda: torch_fused(x, z if add else None))
        return mcdnn_case(interface.forward, forward, reads, "yData reserveSpace", function, [relu])
    maca.run(interface.forward, **forward)
    arguments = {**common, **({"dzData": dz} if add else {}), "dyData": dy, "dxData": dx}
    gradients = scale, bias, scale_gradient, bias_gradient, saved, inverse
    arguments |= zip(interface.backward_parameters.split(), gradients)
    writes, function = "dxData dzData" if add else "dxData", peer(lambda: torch_fused_gradient(y, dy, x))
    return mcdnn_case(interface.backward, arguments, "xData dyData reserveSpace", writes, function, [relu])


def local_response(dtype: str, backward: bool):
    x, dy = images(dtype, 2)
    descriptor = maca.LRNDescriptor(*LRN)
    y = maca.lrn_cross_channel_forward(x, descriptor)
    common = {"normDesc": descriptor, "lrnMode": "MCDNN_LRN_CROSS_CHANNEL_DIM1", "x": x, "y": y}

    def torch_forward():  # a composition: no form with a given output
        data = image_tensor(x)
        return lambda: torch.nn.functional.local_response_norm(data, *LRN)

    def torch_backward():  # through autograd: there is no kernel of its own
        with torch.enable_grad():
            data, grad = image_tensor(x).clone().requires_grad_(), image_tensor(dy)
            result = torch.nn.functional.local_response_norm(data, *LRN)
        return lambda: torch.autograd.grad(result, data, grad, retain_graph=True)

    if backward:
        arguments = {**common, "dy": dy, "dx": like(x)}
        function = peer(torch_backward)
        return mcdnn_case("mcdnnLRNCrossChannelBackward", arguments, "x y dy", "dx", function, [descriptor])
    return mcdnn_case("mcdnnLRNCrossChannelForward", common, "x", "y", peer(torch_forward), [descriptor])


def divisive(dtype: str, backward: bool):
    """PyTorch has nothing like it. The two scratch arrays are not counted: a better kernel does without."""
    x, dy, means = images(dtype, 3)
    descriptor = maca.LRNDescriptor(*DIVISIVE)
    common = {"normDesc": descriptor, "mode": "MCDNN_DIVNORM_PRECOMPUTED_MEANS", "x": x, "means": means,
              "temp": like(x), "temp2": like(x)}  # fmt: skip
    if backward:
        arguments = {**common, "dy": dy, "dx": like(x), "dMeans": like(x)}
        name, reads, writes = "mcdnnDivisiveNormalizationBackward", "x means dy", "dx dMeans"
        return mcdnn_case(name, arguments, reads, writes, None, [descriptor])
    arguments = {**common, "y": like(x)}
    return mcdnn_case("mcdnnDivisiveNormalizationForward", arguments, "x means", "y", None, [descriptor])


def rows() -> list[Row]:
    found: list[Row] = []

    def add(name: str, dtypes, make, *aims: float) -> None:
        found.extend(shaped_rows(name, [dtype for dtype in dtypes if dtype in DTYPES], LABEL, make, *aims))

    for layout, last in (("NCHW", False), ("NHWC", True)):
        ahead, back = ((0.6, 3.0), (0.55, 1.5)) if not last else ((0.45, 1.3), (0.45, 1.3))
        add(f"batch norm forward {layout}", FLOATS, partial(training, last=last, spatial=True), *ahead)
        add(f"batch norm backward {layout}", TRAINED, partial(gradient, last=last, spatial=True), *back)
        add(f"batch norm inference {layout}", FLOATS, partial(inference, last=last, spatial=True))
    add("per-activation forward", FLOATS, partial(training, last=False, spatial=False), 0.45, 1.3)
    add("per-activation backward", TRAINED, partial(gradient, last=False, spatial=False), 0.45, 1.3)
    add("per-activation inference", FLOATS, partial(inference, last=False, spatial=False))
    for interface in (BATCH_NORM, NORMALIZATION):
        for direction, backward in (("forward", False), ("backward", True)):
            for label, z, dtypes in (("+relu", False, TRAINED), ("+add+relu", True, ["float16"])):
                make = partial(fused, backward=backward, add=z, interface=interface)
                add(f"{interface.name}{label} {direction}", dtypes, make, 0.45, 1.3)
    add("local response forward", FLOATS, partial(local_response, backward=False), 0.0, 25.0)
    add("local response backward", FLOATS, partial(local_response, backward=True), 0.0, 25.0)
    add("divisive forward", FLOATS, partial(divisive, backward=False))
    add("divisive backward", FLOATS, partial(divisive, backward=True))
    return found
