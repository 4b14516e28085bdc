"""The NumPy layer against the formulas in float64: dtypes, views, broadcasting, empty arrays, threads, refusals."""

import gc
import os
import sys
import threading

import numpy
import pytest

from tests import native
from understudy import arrays, ascend, ftdsp, maca
from understudy.errors import StatusError

# Half a unit in the last place of the result's type, plus a few float32 roundings on the way.
RELATIVE = {"float64": 2.0**-48, "float32": 2.0**-20, "float16": 2.0**-11 + 2.0**-20, "bfloat16": 2.0**-8 + 2.0**-20}
SMALLEST = {"float64": 0.0, "float32": 0.0, "float16": 2.0**-24, "bfloat16": 0.0}
FLOATS = ["float32", "float16", "bfloat16"]


def dtype_named(name: str) -> numpy.dtype:
    return numpy.dtype(pytest.importorskip("ml_dtypes").bfloat16) if name == "bfloat16" else numpy.dtype(name)


def uniform(shape, dtype, low=-3.0, high=3.0, seed=1) -> numpy.ndarray:
    values = numpy.random.default_rng(seed).uniform(low, high, shape)
    return values.astype(numpy.float32).astype(dtype) if dtype.name == "bfloat16" else values.astype(dtype)


def assert_close(got: numpy.ndarray, expected: numpy.ndarray) -> None:
    name = got.dtype.name
    numpy.testing.assert_allclose(got.astype(numpy.float64), expected, rtol=RELATIVE[name], atol=SMALLEST[name])


# ---- Ascend: soft margin loss ----


def soft_margin_reference(grad, x, target, reduction="mean"):
    grad, x, target = (array.astype(numpy.float64) for array in (grad, x, target))
    result = -grad * target / (1 + numpy.exp(x * target))
    return result / result.size if reduction == "mean" else result


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 1, 5), (1, 2, 3, 1, 2, 1, 3, 2), (1031,)])
def test_soft_margin_dtypes_and_shapes(name, shape):
    inputs = [uniform(shape, dtype_named(name), seed=seed) for seed in range(3)]
    for reduction in ("none", "sum", "mean"):
        got = ascend.ops.soft_margin_loss_backward(*inputs, reduction)
        assert got.shape == shape and got.dtype == inputs[0].dtype
        assert_close(got, soft_margin_reference(*inputs, reduction))


def test_soft_margin_views_and_broadcast():
    single = numpy.dtype(numpy.float32)
    x = uniform((6, 10), single).T[::2, 1::3]  # (5, 2)
    target = numpy.broadcast_to(uniform((2,), single, seed=2), (5, 2))
    for grad in (uniform((5, 1), single, seed=3), uniform((5, 2), single, seed=4)[::-1, ::-1], numpy.float32(0.5)):
        got = ascend.ops.soft_margin_loss_backward(grad, x, target, "none")
        assert_close(got, soft_margin_reference(numpy.asarray(grad), x, target, "none"))


def test_soft_margin_does_not_change_its_inputs():
    inputs = [uniform((4, 5), numpy.dtype(numpy.float32), seed=seed) for seed in range(3)]
    copies = [array.copy() for array in inputs]
    ascend.ops.soft_margin_loss_backward(*inputs)
    for array, copy in zip(inputs, copies):
        numpy.testing.assert_array_equal(array, copy)


def test_soft_margin_mixed_dtypes_and_out_dtype():
    half, single = numpy.dtype(numpy.float16), numpy.dtype(numpy.float32)
    inputs = uniform(9, half), uniform(9, single, seed=2), uniform(9, half, seed=3)
    assert ascend.ops.soft_margin_loss_backward(*inputs).dtype == single
    got = ascend.ops.soft_margin_loss_backward(*inputs, "none", out_dtype=half)
    assert got.dtype == half
    assert_close(got, soft_margin_reference(*inputs, "none"))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 5)])
def test_soft_margin_empty(shape):
    empty = numpy.zeros(shape, numpy.float32)
    assert ascend.ops.soft_margin_loss_backward(empty, empty, empty).shape == shape


def test_soft_margin_refusals():
    ones = numpy.ones((2, 3), numpy.float32)
    with pytest.raises(StatusError) as caught:
        ascend.ops.soft_margin_loss_backward(ones, ones, numpy.ones(2, numpy.float32))
    assert caught.value.code == 161002 and caught.value.rule.startswith("aclnnSoftMarginLossBackward/target/")
    with pytest.raises(StatusError) as caught:
        ascend.ops.soft_margin_loss_backward(ones, ones, ones, out_dtype=numpy.float64)
    assert caught.value.code == 161002 and caught.value.rule == "aclnnSoftMarginLossBackward/out/dtype"
    with pytest.raises(StatusError, match="reduction"):
        ascend.ops.soft_margin_loss_backward(ones, ones, ones, 3)
    with pytest.raises(ValueError, match="reduction is 'median'"):
        ascend.ops.soft_margin_loss_backward(ones, ones, ones, "median")
    with pytest.raises(TypeError, match="no counterpart in aclDataType"):
        ascend.ops.soft_margin_loss_backward(ones, ones, ones.astype("U3"))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_soft_margin_loss(name, reduction):
    x, target = uniform((7, 1), dtype_named(name)), uniform((1, 5), dtype_named(name), seed=2)
    expected = numpy.log1p(numpy.exp(-x.astype(numpy.float64) * target.astype(numpy.float64)))
    expected = {"none": expected, "mean": expected.mean(), "sum": expected.sum()}[reduction]
    got = ascend.ops.soft_margin_loss(x, target, reduction)
    assert got.shape == expected.shape and got.dtype == x.dtype
    # 1 + e^z is rounded to float32 before the logarithm: half a unit of 1, in absolute terms.
    numpy.testing.assert_allclose(got.astype(float), expected, rtol=RELATIVE[name], atol=2.0**-23)


# ---- Ascend: embedding ----


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("index_type", [numpy.int32, numpy.int64])
@pytest.mark.parametrize("scale", [False, True])
def test_embedding_dense_backward(name, index_type, scale):
    indices = numpy.random.default_rng(5).integers(0, 11, (6, 7)).astype(index_type)
    indices[indices == 4] = 3  # a row that nobody uses
    grad = uniform((6, 7, 13), dtype_named(name))
    for padding in (-1, 2, 99):
        expected = numpy.zeros((11, 13))
        kept = indices.ravel() != padding
        numpy.add.at(expected, indices.ravel()[kept], grad.reshape(-1, 13).astype(numpy.float64)[kept])
        if scale:
            expected /= numpy.maximum(numpy.bincount(indices.ravel(), minlength=11), 1)[:, None]
        got = ascend.ops.embedding_dense_backward(grad, indices, 11, padding, scale)
        assert got.shape == (11, 13) and got.dtype == grad.dtype
        terms = numpy.abs(grad.astype(numpy.float64)).max() * 42  # sums cancel: errors are relative to the terms
        numpy.testing.assert_allclose(got.astype(float), expected, rtol=RELATIVE[name], atol=terms * 2.0**-24)


def test_embedding():
    weight = uniform((9, 4), numpy.dtype(numpy.float32)).T.copy().T  # columns innermost
    indices = numpy.array([[0, 8, 3], [3, 3, 1]])
    numpy.testing.assert_array_equal(ascend.ops.embedding(weight, indices), weight[indices])


def test_embedding_refusals():
    grad, indices = numpy.ones((3, 4), numpy.float32), numpy.zeros(2, numpy.int64)
    with pytest.raises(StatusError) as caught:
        ascend.ops.embedding_dense_backward(grad, indices, 5)
    assert caught.value.code == 161002 and caught.value.rule.startswith("aclnnEmbeddingDenseBackward/")
    with pytest.raises(StatusError):
        ascend.ops.embedding_dense_backward(numpy.float32(1), numpy.int64(0), 5)
    with pytest.raises(StatusError):
        ascend.ops.embedding(grad, indices.astype(numpy.uint8))


@pytest.mark.parametrize("name, arguments, sentence", [
    ("max_pool2d_with_mask", ([2, 2], [2, 2], [0, 0], [2, 2]), "dilation is 2; it must be 1"),
    ("upsample_nearest2d_v2", ([0, 4], 1.0, 1.0), "outputSize is 0; it must be 1 or more"),
    ("matmul", (numpy.ones((8, 3), numpy.float32), 9), "cubeMathType is 9; it must be 0 to 4"),
    ("im2col", ([2, 2, 2], [1, 1], [0, 0], [1, 1]), "kernelSize has 3 entries; it needs 2"),
    ("mv", (numpy.ones(8, numpy.float32),), "self is [1,2,8,8], 4 dimensions; it needs 2"),
])  # fmt: skip
def test_a_refusal_tells_the_bounds_in_words(name, arguments, sentence):
    with pytest.raises(StatusError) as caught:
        getattr(ascend.ops, name)(numpy.ones((1, 2, 8, 8), numpy.float32), *arguments)
    assert caught.value.text == sentence


@pytest.mark.parametrize("make, end", [("aclrtMalloc", "aclrtFree"), ("aclCreateTensor", "aclDestroyTensor")])
def test_what_is_made_is_freed(monkeypatch, make, end):
    counts = {make: 0, end: 0}

    def count(name):
        function = getattr(ascend.lib, name)

        def counted(*arguments):
            counts[name] += 1
            return function(*arguments)

        monkeypatch.setattr(ascend.lib, name, counted)

    count(make)
    count(end)
    ones = numpy.ones((64, 64), numpy.float32)
    ascend.ops.soft_margin_loss_backward(ones, ones, ones)
    with pytest.raises(StatusError):
        ascend.ops.soft_margin_loss_backward(ones, ones, ones, 3)
    assert counts[make] == counts[end] >= 8


# ---- MACA: softmax ----


def groups(mode, rank):
    return tuple(range(1, rank)) if mode == "instance" else (1,)


def softmax_reference(x, algorithm, mode):
    x = x.astype(numpy.float64)
    axes = groups(mode, x.ndim)
    shifted = x - x.max(axis=axes, keepdims=True)
    total = numpy.exp(shifted).sum(axis=axes, keepdims=True)
    return shifted - numpy.log(total) if algorithm == "log" else numpy.exp(shifted) / total


def softmax_backward_reference(y, dy, algorithm, mode):
    y, dy = y.astype(numpy.float64), dy.astype(numpy.float64)
    axes = groups(mode, y.ndim)
    if algorithm == "log":
        return dy - numpy.exp(y) * dy.sum(axis=axes, keepdims=True)
    return y * (dy - (y * dy).sum(axis=axes, keepdims=True))


@pytest.mark.parametrize("mode", ["channel", "instance"])
@pytest.mark.parametrize("algorithm", ["fast", "accurate", "log"])
@pytest.mark.parametrize("name", ["float64", *FLOATS])
def test_softmax(name, algorithm, mode):
    dtype = dtype_named(name)
    for shape in [(2, 3), (2, 5, 3), (3, 7, 2, 5), (2, 3, 2, 3, 2)]:
        x = uniform(shape, dtype)
        y = maca.softmax_forward(x, algorithm, mode)
        assert y.shape == shape and y.dtype == dtype
        assert_close(y, softmax_reference(x, algorithm, mode))
        dy = uniform(shape, dtype, seed=2)
        expected = softmax_backward_reference(y, dy, algorithm, mode)
        got = maca.softmax_backward(y, dy, algorithm, mode).astype(numpy.float64)
        # Differences of terms of size 1 cancel: the error is relative to the terms, not to the result.
        numpy.testing.assert_allclose(got, expected, rtol=RELATIVE[name], atol=4 * RELATIVE[name] * numpy.abs(dy).max()
                                      if name in ("float32", "float64") else SMALLEST[name] + 2.0**-18)  # fmt: skip


def test_softmax_blends():
    single = numpy.dtype(numpy.float32)
    x, old = uniform((2, 3, 4, 5), single), uniform((2, 3, 4, 5), single, seed=2)
    copy = old.copy()
    got = maca.softmax_forward(x, alpha=1.5, beta=-0.25, y=old)
    expected = 1.5 * softmax_reference(x, "accurate", "channel") - 0.25 * copy
    numpy.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)
    numpy.testing.assert_array_equal(old, copy)
    got = maca.softmax_backward(x, old, alpha=2, beta=3, dx=old)
    expected = 2 * softmax_backward_reference(x, old, "accurate", "channel") + 3.0 * old
    numpy.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-4)
    with pytest.raises(ValueError, match="the old y is needed"):
        maca.softmax_forward(x, beta=1)


def test_softmax_of_a_view():
    x = uniform((4, 5, 6, 3), numpy.dtype(numpy.float32)).transpose(0, 3, 1, 2)  # channels innermost
    assert_close(maca.softmax_forward(x), softmax_reference(x, "accurate", "channel"))


def test_softmax_refusals():
    x = numpy.ones((2, 3, 4, 5), numpy.float32)
    with pytest.raises(StatusError) as caught:
        maca.softmax_backward(x, x[:, :, :, :4])
    assert caught.value.name == "MCDNN_STATUS_BAD_PARAM"
    with pytest.raises(StatusError) as caught:
        maca.softmax_forward(x.astype(numpy.int32))
    assert caught.value.name == "MCDNN_STATUS_NOT_SUPPORTED"
    with pytest.raises(StatusError):
        maca.softmax_forward(x, algorithm=17)
    with pytest.raises(ValueError, match="algorithm is 'slow', not one of 'fast', 'accurate', 'log'"):
        maca.softmax_forward(x, algorithm="slow")
    with pytest.raises(TypeError, match="no counterpart in mcdnnDataType_t"):
        maca.softmax_forward(x.astype(numpy.complex64))


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


COEF, SWISH_BETA = 1.25, 0.75
ACTIVATIONS = {  # f and f' of the input
    "sigmoid": (sigmoid, lambda x: sigmoid(x) * (1 - sigmoid(x))),
    "relu": (lambda x: numpy.maximum(x, 0), lambda x: x > 0),
    "tanh": (numpy.tanh, lambda x: 1 - numpy.tanh(x) ** 2),
    "clipped_relu": (lambda x: numpy.clip(x, 0, COEF), lambda x: (x > 0) & (x <= COEF)),
    "elu": (lambda x: numpy.where(x > 0, x, COEF * numpy.expm1(x)),
            lambda x: numpy.where(x > 0, 1, COEF * numpy.exp(x))),
    "swish": (
        lambda x: x * sigmoid(SWISH_BETA * x),
        lambda x: sigmoid(SWISH_BETA * x) * (1 + SWISH_BETA * x * (1 - sigmoid(SWISH_BETA * x))),
    ),
}


@pytest.mark.parametrize("name", ["float64", "float32", "float16"])
@pytest.mark.parametrize("mode", ACTIVATIONS)
def test_activations(mode, name):
    function, slope = ACTIVATIONS[mode]
    dtype = numpy.dtype(name)
    x, dy = uniform((2, 3, 5, 7), dtype), uniform((2, 3, 5, 7), dtype, seed=2)
    wide = x.astype(numpy.float64)
    y = maca.activation_forward(x, mode, COEF, swish_beta=SWISH_BETA)
    assert y.dtype == dtype
    numpy.testing.assert_allclose(y, function(wide), rtol=RELATIVE[name], atol=2.0**-22 if name != "float64" else 1e-15)
    dx = maca.activation_backward(y, dy, x, mode, COEF, swish_beta=SWISH_BETA)
    # The slope may be taken from y, which is rounded to the dtype: an error of one rounding of 1, times dy.
    numpy.testing.assert_allclose(dx, dy * slope(wide), rtol=4 * RELATIVE[name], atol=12 * RELATIVE[name])


def test_activation_blends_and_refuses():
    x, old = uniform((2, 3, 4), numpy.dtype(numpy.float32)), uniform((2, 3, 4), numpy.dtype(numpy.float32), seed=2)
    got = maca.activation_forward(x, "tanh", alpha=2, beta=0.5, y=old)
    numpy.testing.assert_allclose(got, 2 * numpy.tanh(x.astype(float)) + 0.5 * old, rtol=0, atol=1e-6)
    with pytest.raises(StatusError) as caught:
        maca.activation_forward(x, "identity")
    assert caught.value.name == "MCDNN_STATUS_BAD_PARAM"
    with pytest.raises(StatusError) as caught:
        maca.activation_backward(x, x, x[:, :2], "relu")
    assert caught.value.name == "MCDNN_STATUS_NOT_SUPPORTED"
    with pytest.raises(ValueError, match="mode is 'gelu'"):
        maca.activation_forward(x, "gelu")
    nan = numpy.full((1, 1, 1, 1), numpy.nan, numpy.float32)
    assert numpy.isnan(maca.activation_forward(nan)) and maca.activation_forward(nan, propagate_nan=False) == 0


def test_device_memory_is_given_back():
    def free_bytes():
        free, total = maca.ffi.new("size_t *"), maca.ffi.new("size_t *")
        maca.call("mcMemGetInfo", free, total)
        return free[0]

    x = numpy.ones((2, 3, 64, 64), numpy.float32)
    maca.softmax_forward(x)
    gc.collect()  # what other tests have left in circles would be given back meanwhile
    before = free_bytes()
    for _ in range(3):
        maca.softmax_backward(x, x)
        with pytest.raises(StatusError):
            maca.softmax_forward(x, algorithm=17)
    assert free_bytes() == before


def test_tensor_descriptor():
    with maca.TensorDescriptor((2, 3, 4, 5), numpy.float32) as packed:
        assert packed.size_in_bytes == 2 * 3 * 4 * 5 * 4
    assert packed.handle == maca.ffi.NULL
    strided = maca.TensorDescriptor((2, 3), numpy.float16, (100, 2))
    assert strided.size_in_bytes == 2 * (100 + 2 * 2 + 1)
    strided.close()
    strided.close()
    with pytest.raises(StatusError):
        maca.TensorDescriptor((2, -3, 4, 5), numpy.float32)


# ---- FT: binary cross entropy ----


def cross_entropy_reference(x, y, dloss, weight, reduction):
    x, y, dloss = (numpy.asarray(array).astype(numpy.float64) for array in (x, y, dloss))
    weight = 1.0 if weight is None else weight.astype(numpy.float64)
    return dloss / (x.size if reduction == "mean" else 1) * weight * (x - y) / (x * (1 - x) + 1e-12)


@pytest.mark.parametrize("space", ["s", "p"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["float32", "float16"])
def test_binarycrossentropygrad(name, reduction, space):
    dtype = numpy.dtype(name)
    for shape in [(1,), (3, 5), (1031,)]:
        x, y = uniform(shape, dtype, 0.05, 0.95), uniform(shape, dtype, 0, 1, seed=2)
        dloss = uniform(shape, dtype, seed=3) if reduction == "none" else dtype.type(1.5)
        for weight in (None, uniform(shape, dtype, 0.5, 2, seed=4)):
            got = ftdsp.binarycrossentropygrad(x, y, dloss, weight, reduction, space=space)
            assert got.shape == shape and got.dtype == dtype
            assert_close(got, cross_entropy_reference(x, y, dloss, weight, reduction))


def test_binarycrossentropygrad_of_a_view_and_every_mask():
    x = uniform((30, 70), numpy.dtype(numpy.float32), 0.1, 0.9)[::2, ::-1]
    y = numpy.zeros_like(x)
    whole = ftdsp.binarycrossentropygrad(x, y, 1)
    assert_close(whole, cross_entropy_reference(x, y, 1, None, "mean"))
    for mask in range(1, 16):
        numpy.testing.assert_array_equal(ftdsp.binarycrossentropygrad(x, y, 1, core_mask=mask), whole)


def test_binarycrossentropygrad_refusals():
    x = numpy.full(4, 0.5, numpy.float32)
    with pytest.raises(StatusError) as caught:
        ftdsp.binarycrossentropygrad(x, x, 1, reduction=7)
    assert caught.value.rule == "fp_binarycrossentropygrad_s/reduction/range"
    with pytest.raises(StatusError, match="core_mask"):
        ftdsp.binarycrossentropygrad(x, x, 1, core_mask=-1)
    with pytest.raises(ValueError, match="names no core"):
        ftdsp.binarycrossentropygrad(x, x, 1, core_mask=0)
    source = """
import numpy
from understudy import ftdsp
x = numpy.ones(4, numpy.float32)
ftdsp.run("add", x, x, x, 4, core_mask=1 << ftdsp.CORES - 1)
ftdsp.run("add", x, x, x, 4, core_mask=1 << ftdsp.CORES)
"""
    for settings, cores in (({"UNDERSTUDY_FT_CHIP": "MT7004"}, 4), ({}, 8)):
        done = native.run([sys.executable, "-c", source], settings)
        assert f"ValueError: core_mask {1 << cores:#x} names no core of {cores}: nothing" in done.stderr
    with pytest.raises(TypeError, match="x is float64"):
        ftdsp.binarycrossentropygrad(x.astype(float), x, 1)
    with pytest.raises(TypeError, match="y is float16, x is float32"):
        ftdsp.binarycrossentropygrad(x, x.astype(numpy.float16), 1)
    with pytest.raises(ValueError, match="y has 3 elements, needed are 4"):
        ftdsp.binarycrossentropygrad(x, x[:3], 1)
    with pytest.raises(ValueError, match="dloss has 4 elements, needed are 1"):
        ftdsp.binarycrossentropygrad(x, x, x)
    with pytest.raises(ValueError, match="space is 'q'"):
        ftdsp.binarycrossentropygrad(x, x, 1, space="q")


# ---- FT: any function ----


@pytest.mark.parametrize("name", ["float32", "float16", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("space", ["s", "p"])
def test_run_chooses_the_prefix_and_passes_numbers(name, space):
    a, b = (uniform((37,), numpy.dtype("float64"), seed=seed).astype(name) for seed in (1, 2))
    out = numpy.empty_like(a)
    ftdsp.run("subext", a, b, 0.75, out, a.size, space=space)  # alpha is a half by value with hp_
    wide = numpy.result_type(name, numpy.float64)
    epsilon = numpy.finfo(name).eps
    numpy.testing.assert_allclose(out, a.astype(wide) - 0.75 * b.astype(wide), rtol=epsilon, atol=4 * epsilon)


def test_run_with_tables_and_strings():
    parts = [numpy.arange(6, dtype=numpy.int32).reshape(2, 3), numpy.arange(4, dtype=numpy.int32).reshape(2, 2)]
    shapes = [numpy.array(part.shape, numpy.int32) for part in parts]
    out = numpy.zeros((2, 5), numpy.int32)
    ftdsp.run("concat", parts, shapes, 2, 1, 2, out)
    numpy.testing.assert_array_equal(out, numpy.concatenate(parts, axis=1))
    with pytest.raises(StatusError, match="input_shapes is NULL") as caught:
        ftdsp.run("concat", parts, shapes, 3, 1, 2, out)  # more than there are
    assert caught.value.rule == "i32_concat_s/input_shapes/null"
    rows = numpy.arange(4, dtype=numpy.int32).reshape(2, 2)  # a table may also be the rows of an array
    ftdsp.run("stack", rows, numpy.int32([2]), 2, 1, 1, out)
    numpy.testing.assert_array_equal(out.ravel()[:4], [0, 2, 1, 3])
    x, bias = uniform((2, 3, 4), numpy.dtype(numpy.float32)), uniform((3,), numpy.dtype(numpy.float32), seed=2)
    dims, result = numpy.array([2, 3, 4, 1], numpy.int32), numpy.empty((2, 3, 4), numpy.float32)
    ftdsp.run("biasadd", x, bias, result, dims, 4, "NCHW", x.size)
    numpy.testing.assert_array_equal(result, x + bias[:, None])


@pytest.mark.parametrize("space", ["s", "p"])
def test_run_puts_core_mask_where_it_belongs(space):
    """It is not the last parameter of these."""
    x, *parameters = (uniform(shape, numpy.dtype(numpy.float32), seed=seed) for seed, shape in enumerate([(5, 3), 3, 3, 3]))
    scale, offset, mean = parameters
    variance, out = numpy.arange(1, 4, dtype=numpy.float32), numpy.empty((5, 3), numpy.float32)
    ftdsp.run("fusedbatchnorm", x, scale, offset, mean, variance, 0.25, 3, 5, out, space=space)
    wide = x.astype(float)
    numpy.testing.assert_allclose(out, scale * (wide - mean) / numpy.sqrt(variance + 0.25) + offset, rtol=1e-6, atol=1e-6)
    filled = numpy.zeros(5, numpy.complex64)
    ftdsp.run("fill", numpy.complex64([2 - 1j]), filled, {"elem_cnt_": 4}, space=space)
    assert filled.tolist() == [2 - 1j] * 4 + [0]


def test_run_takes_tables_of_arrays_in_structures():
    x, out, buffer = numpy.arange(6, dtype=numpy.float32), numpy.empty(3, numpy.float32), numpy.empty(6, numpy.float32)
    one, three, two = (numpy.array([size], numpy.int32) for size in (1, 3, 2))
    sizes = {"outer_sizes_": one, "inner_sizes_": three, "axis_sizes_": two, "total_num_": 6, "num_axes_": 1}
    ftdsp.run("reduce", x, out, {"data_buffers_": [buffer], **sizes, "mode_": 4, "output_num_": 3})
    assert out.tolist() == [3, 5, 7]


def test_run_finds_functions_without_prefix_or_suffix():
    x, out = numpy.arange(6, dtype=numpy.int8), numpy.zeros(6, numpy.int8)
    ftdsp.run("Flatten", x, out, {"elem_cnt_": 5, "type_size_": 1})
    assert out.tolist() == [0, 1, 2, 3, 4, 0]
    tensors = [{"type_size": 1, "size": 3, "data": x}, {"type_size": 1, "size": 2, "data": x[4:]}]
    ftdsp.run("switchlayer", tensors, {"data": out}, 1)
    assert out.tolist() == [4, 5, 2, 3, 4, 0]
    ftdsp.run("tensorlistgetitem", x, out, 1, 3, space="p")
    assert out.tolist() == [0, 1, 2, 3, 4, 0]
    image, crop = numpy.arange(6, dtype=numpy.float16), numpy.empty(4, numpy.float16)
    sizes = {"input_shape_": numpy.int32([1, 2, 3, 1]), "output_shape_": numpy.int32([1, 2, 2, 1])}
    ftdsp.run("crop_and_resize", image, crop, numpy.int32([0]), numpy.float32([0, 0, 1, 0.5]), sizes, 0.0)
    assert crop.tolist() == [0, 1, 3, 4]
    with pytest.raises(AttributeError, match="Flatten_p"):
        ftdsp.run("Flatten", x, out, {}, space="p", prefix="")
    with pytest.raises(TypeError, match="no member count, but shape_, ndim_, elem_cnt_, type_size_"):
        ftdsp.run("Flatten", x, out, {"count": 5})


@pytest.mark.parametrize("name", ["float32", "float16", "int8", "int32", "complex128"])
def test_run_chooses_the_prefix_that_all_arrays_fit(name):
    places, values = numpy.int32([0, 0, 0, 2, 0, 0, 0, 1]), numpy.array([3, 5], name)
    out = numpy.zeros(3, name)
    ftdsp.run("sparsetodense", places, values, out, numpy.int32([3, 3, 3]), 2, 0)
    assert out.tolist() == [0, 5, 3]


def test_run_takes_addresses_and_checks_what_they_are_in_a_list_of_numbers():
    x, alpha, beta, bias = (numpy.float32([value]) for value in (2, 0.5, 1, 1))
    out = numpy.zeros(1, numpy.float32)
    numbers = numpy.int64([1, 1, 1, *(array.ctypes.data for array in (alpha, beta, bias))])
    ftdsp.run("lrn", x, ftdsp.ffi.cast("float *", out.ctypes.data), numbers)
    assert out == numpy.float32(2 / 3)
    with pytest.raises(TypeError, match="argument 2 is int32, needed is int64"):
        ftdsp.run("lrn", x, out, numbers.astype(numpy.int32))


@pytest.mark.parametrize("short", ["x", "y", "out"])
def test_an_array_shorter_than_the_call_needs_is_refused(short):
    arrays = {name: numpy.full(1200, 7, numpy.float32) for name in ("x", "y", "out")}
    ftdsp.run("add", *arrays.values(), 1200)
    whole = {**arrays, "out": numpy.full(1200, 7, numpy.float32)}
    cut = {**whole, short: whole[short][:2]}
    with pytest.raises(StatusError, match="its array ends after 8") as caught:
        ftdsp.run("add", *cut.values(), 4)
    assert caught.value.rule.startswith("fp_add_s/") and caught.value.rule.endswith("/window")
    assert (whole["out"] == 7).all()
    ftdsp.run("add", *cut.values(), 2)
    ftdsp.run("add", whole["x"][:2], whole["y"], whole["x"], 1200)  # of two that begin alike the longer counts


def test_run_leaves_read_only_arrays_alone():
    """Their memory may be that of a file, or of an object that nobody changes."""
    data = bytes(16)
    constant, x, out = numpy.frombuffer(data, numpy.float32), numpy.ones(4, numpy.float32), numpy.zeros(4, numpy.float32)
    ftdsp.run("add", constant, x, out, 4)
    numpy.testing.assert_array_equal(out, x)
    with pytest.raises(ValueError, match="fp_add_s writes an array that is read-only"):
        ftdsp.run("add", x, x, constant, 4)
    with pytest.raises(ValueError, match="fp_split_s writes an array that is read-only"):
        ftdsp.run("split", x, [out[:2], constant[:2]], 0, numpy.int32([4]), 1, 2, numpy.int32([2, 2]))
    assert data == bytes(16)


def test_run_refuses_what_does_not_fit():
    x = numpy.ones(4, numpy.float32)
    for arguments, error, words in [
        ((x, x, 1, x), TypeError, "takes 5 arguments, 4 were given"),
        ((x, x.astype(int), 1, x, 4), TypeError, "argument 1 is int64, needed is float32 or complex64"),
        ((x, [1.0], 1, x, 4), TypeError, "argument 1 is list, needed is an array"),
        ((x[::2], x, 1, x, 2), ValueError, "argument 0 is not contiguous"),
        ((x.astype(">f4"), x, 1, x, 4), TypeError, "argument 0 is >f4, needed is float32 or complex64"),
        ((x.astype(bool), x, 1, x, 2), TypeError, "argument 0 is bool, needed is float32 or complex64"),
        ((x.astype(bool), 2), TypeError, "no prefix for bool"),
        ((1, 2), TypeError, "no prefix for no array"),
    ]:
        with pytest.raises(error, match=words):
            ftdsp.run("subext", *arguments)
    with pytest.raises(AttributeError, match="fp_polish_s"):
        ftdsp.run("polish", x)
    with pytest.raises(StatusError) as caught:
        ftdsp.run("subext", x, x, 1, None, 4)
    assert caught.value.rule == "fp_subext_s/output/null"


# ---- threads ----


def test_threads_work_in_parallel():
    x = uniform((2, 3, 40, 50), numpy.dtype(numpy.float32))
    expected = ascend.ops.soft_margin_loss_backward(x, x, x), maca.softmax_forward(x)
    problems = []

    def work():
        try:
            for _ in range(10):
                numpy.testing.assert_array_equal(ascend.ops.soft_margin_loss_backward(x, x, x), expected[0])
                numpy.testing.assert_array_equal(maca.softmax_forward(x), expected[1])
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_a_thread_leaves_no_stream_behind():
    def threads_of_the_process():
        return len(os.listdir("/proc/self/task"))

    def work():
        ascend.ops.soft_margin_loss_backward(x, x, x)
        maca.softmax_forward(x)

    x = numpy.ones((2, 3), numpy.float32)
    work()
    before = threads_of_the_process()
    for _ in range(10):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert threads_of_the_process() <= before + 2  # a worker may still be on its way out


# ---- a program that also uses the raw ABI ----


@pytest.mark.parametrize("end", [lambda: ascend.lib.aclrtResetDevice(0), lambda: ascend.lib.aclFinalize(),
                                 lambda: maca.lib.mcDeviceReset()],
                         ids=["aclrtResetDevice", "aclFinalize", "mcDeviceReset"])  # fmt: skip
def test_work_goes_on_after_a_reset(end):
    x = numpy.linspace(-1, 1, 12, dtype=numpy.float32).reshape(1, 3, 2, 2)
    before = ascend.ops.abs(x), maca.softmax_forward(x)
    assert end() == 0
    numpy.testing.assert_array_equal(ascend.ops.abs(x), before[0])
    numpy.testing.assert_array_equal(maca.softmax_forward(x), before[1])


def test_bfloat16_without_ml_dtypes_is_left_out():
    table = arrays.dtype_table(float32="A", bfloat16="B")
    assert table[numpy.dtype(numpy.float32)] == "A"
    assert ("B" in table.values()) == (arrays.ml_dtypes is not None)
