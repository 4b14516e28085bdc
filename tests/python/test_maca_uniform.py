"""Any mcDNN function by the header's names, against float64 NumPy."""

import numpy as np
import pytest

from understudy import maca
from understudy.errors import StatusError
from understudy.maca import lib


def random(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_batch_normalization(dtype):
    x, y = random(5, 3, 4, 2, dtype=dtype), np.zeros((5, 3, 4, 2), dtype)
    kind = np.float64 if dtype == np.float64 else np.float32
    scale, bias, mean, variance, saved, inverse = (random(1, 3, 1, 1, seed=k, dtype=kind) for k in range(6))
    old = mean.copy()
    maca.run("mcdnnBatchNormalizationForwardTraining", mode="MCDNN_BATCHNORM_SPATIAL", x=x, y=y, bnScale=scale,
             bnBias=bias, exponentialAverageFactor=0.5, resultRunningMean=mean, resultRunningVariance=variance,
             epsilon=1e-5, resultSaveMean=saved, resultSaveInvVariance=inverse)  # fmt: skip
    data = x.astype(np.float64)
    average, spread = data.mean((0, 2, 3), keepdims=True), data.var((0, 2, 3), keepdims=True)
    tolerance = 2e-3 if dtype == np.float16 else 1e-5
    np.testing.assert_allclose(y, scale * (data - average) / np.sqrt(spread + 1e-5) + bias, rtol=0, atol=tolerance)
    np.testing.assert_allclose(saved, average, rtol=0, atol=1e-6)
    np.testing.assert_allclose(mean, 0.5 * old + 0.5 * average, rtol=0, atol=1e-6)


def test_channels_last_arrays_stay_so():
    x = random(2, 3, 4, 5).transpose(0, 3, 1, 2)
    y = np.zeros_like(x)  # keeps the order in memory
    assert not y.flags.c_contiguous
    with maca.ActivationDescriptor("relu") as relu:
        maca.run("mcdnnActivationForward", activationDesc=relu, x=x, y=y, alpha=2.0)
    np.testing.assert_array_equal(y, 2 * np.maximum(x, 0))


def test_dropout_scales_what_it_keeps():
    x, y = np.ones((4, 3, 8, 8), np.float32), np.zeros((4, 3, 8, 8), np.float32)
    size = maca.run("mcdnnDropoutGetReserveSpaceSize", xdesc=x)
    reserve = np.zeros(size, np.uint8)
    with maca.DropoutDescriptor(0.25, seed=7) as dropout:
        maca.run("mcdnnDropoutForward", dropoutDesc=dropout, xdesc=x, ydesc=y, x=x, y=y, reserveSpace=reserve,
                 reserveSpaceSizeInBytes=size)  # fmt: skip
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert 0.6 < (y != 0).mean() < 0.9


def test_spatial_transformer():
    theta, grid = np.array([[[0.5, 0.25, 0.1], [0, 1, -0.2]]], np.float32), np.zeros((1, 3, 4, 2), np.float32)
    with maca.SpatialTransformerDescriptor((1, 1, 3, 4)) as transformer:
        maca.run("mcdnnSpatialTfGridGeneratorForward", stDesc=transformer, theta=theta, grid=grid)
    rows, columns = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 4), indexing="ij")
    expected = np.stack([columns, rows, np.ones((3, 4))], -1) @ theta[0].T.astype(np.float64)
    np.testing.assert_allclose(grid[0], expected, rtol=0, atol=1e-6)


def test_tensor_functions():
    a, b = random(2, 3, 4, 5), random(1, 3, 1, 1, seed=1)
    total = random(2, 3, 4, 5, seed=2)
    expected = 2 * b + 0.5 * total
    maca.run("mcdnnAddTensor", A=b, C=total, alpha=2.0, beta=0.5)
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-6)
    with maca.OpTensorDescriptor(lib.MCDNN_OP_TENSOR_MUL) as product:
        maca.run("mcdnnOpTensor", opTensorDesc=product, A=a, B=b, C=total, alpha1=1.0, alpha2=3.0)
    np.testing.assert_allclose(total, a * 3 * b, rtol=0, atol=1e-6)
    sums = np.zeros((1, 3, 1, 1), np.float32)
    with maca.ReduceTensorDescriptor(lib.MCDNN_REDUCE_TENSOR_ADD) as reduction:
        size = maca.run("mcdnnGetReductionWorkspaceSize", reduceTensorDesc=reduction, aDesc=a, cDesc=sums)
        maca.run("mcdnnReduceTensor", reduceTensorDesc=reduction, A=a, C=sums, workspaceSizeInBytes=size,
                 workspace=np.zeros(size, np.uint8) if size else None)  # fmt: skip
    np.testing.assert_allclose(sums, a.astype(np.float64).sum((0, 2, 3), keepdims=True), rtol=0, atol=1e-5)


def test_a_filter_has_a_size():
    with maca.FilterDescriptor((4, 3, 2, 2)) as made:
        assert maca.run("mcdnnGetFilterSizeInBytes", filterDesc=made) == 4 * 3 * 2 * 2 * 4


def test_functions_that_return_no_status():
    assert maca.run("mcdnnGetVersion") == maca.lib.mcdnnGetVersion()
    assert maca.run("mcdnnGetErrorString", status="MCDNN_STATUS_BAD_PARAM") == "MCDNN_STATUS_BAD_PARAM"


def test_in_place():
    x = random(2, 3, 4, 5)
    expected = np.maximum(x, 0)
    with maca.ActivationDescriptor("relu") as relu:
        maca.run("mcdnnActivationForward", activationDesc=relu, y=x, x=x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.array, lambda number: np.array(number, np.float32)],
                         ids=["float32", "float64", "array", "float32 array"])  # fmt: skip
def test_numbers_of_numpy_are_numbers(kind):
    """For scaling factors, which the header declares as pointers, and for what it declares as numbers."""
    x, y = random(2, 3, 4, 5), random(2, 3, 4, 5, seed=1)
    expected = 2 * np.maximum(x, 0) + 0.5 * y
    with maca.ActivationDescriptor("relu") as relu:
        maca.run("mcdnnActivationForward", activationDesc=relu, x=x, y=y, alpha=kind(2), beta=kind(0.5))
    np.testing.assert_array_equal(y, expected)
    scale, bias, mean, variance = (np.full((1, 3, 1, 1), value, np.float32) for value in (2, 1, 0.5, 3.75))
    maca.run("mcdnnBatchNormalizationForwardInference", mode=np.int64(maca.lib.MCDNN_BATCHNORM_SPATIAL), x=x, y=y,
             bnScale=scale, bnBias=bias, estimatedMean=mean, estimatedVariance=variance, epsilon=kind(0.25))  # fmt: skip
    np.testing.assert_allclose(y, x - 0.5 + 1, rtol=1e-6, atol=1e-6)


def test_mistakes_are_told():
    x, y = random(2, 3, 4, 5), random(2, 3, 4, 6)
    with maca.ActivationDescriptor("relu") as relu, pytest.raises(StatusError, match="mcdnnActivationForward"):
        maca.run("mcdnnActivationForward", activationDesc=relu, x=x, y=y)
    with pytest.raises(TypeError, match="aDesc: needed is an array or a descriptor, not list"):
        maca.run("mcdnnAddTensor", A=[1.0], C=x)
    with pytest.raises(TypeError, match="no parameter z"):
        maca.run("mcdnnAddTensor", z=x)


def test_unknown_functions_and_enumerators_are_named():
    with pytest.raises(TypeError, match="mcblasSaxpy is no function of mcDNN"):
        maca.run("mcblasSaxpy", n=1)
    x = np.zeros((1, 2, 1, 1), np.float32)
    for name in ("accurate", "MCDNN_SOFTMAX_MODE_CHANNEL"):
        with pytest.raises(ValueError, match=f"algo is '{name}'; it is one of MCDNN_SOFTMAX_FAST, .*_ACCURATE, .*_LOG$"):
            maca.run("mcdnnSoftmaxForward", algo=name, mode="MCDNN_SOFTMAX_MODE_CHANNEL", x=x, y=x)
    maca.run("mcdnnSoftmaxForward", algo="MCDNN_SOFTMAX_ACCURATE", mode="MCDNN_SOFTMAX_MODE_CHANNEL", x=x, y=x)
    assert x.ravel().tolist() == [0.5, 0.5]


@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), np.array(0.5), 0.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_are_numbers_of_any_kind(dtype, number):
    a, c = random(1, 2, 3, 4, dtype=dtype), random(1, 2, 3, 4, seed=1, dtype=dtype)
    expected = a * dtype(0.5) + c * dtype(0.5)
    maca.run("mcdnnAddTensor", A=a, C=c, alpha=number, beta=number)
    np.testing.assert_allclose(c, expected, rtol=1e-6)


def test_whole_numbers_may_be_numpys():
    x, w, y = random(1, 2, 3, 3), random(4, 2, 1, 1), random(1, 4, 3, 3)
    with maca.ConvolutionDescriptor((0, 0), (1, 1)) as convolution:
        assert maca.run("mcdnnGetConvolutionForwardWorkspaceSize", xDesc=x, wDesc=w, convDesc=convolution, yDesc=y,
                        algo=np.int32(1)) == 0  # fmt: skip
