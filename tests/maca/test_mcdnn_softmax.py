"""Softmax against NumPy models written from the formulas, in extended precision (mcdnn 6.16)."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.maca import ffi, lib

from tests.conformance.harness import run_python
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, LAYOUTS, Tensor, assert_close, call, digest_of,
                                      handle, nhwc_strides, packed_strides, random, run, scale, synchronize)

FAST, ACCURATE, LOG = lib.MCDNN_SOFTMAX_FAST, lib.MCDNN_SOFTMAX_ACCURATE, lib.MCDNN_SOFTMAX_LOG
INSTANCE, CHANNEL = lib.MCDNN_SOFTMAX_MODE_INSTANCE, lib.MCDNN_SOFTMAX_MODE_CHANNEL
TYPES = [FLOAT, DOUBLE, HALF, BFLOAT16]
ULPS = {FLOAT: 8, DOUBLE: 8, HALF: 1, BFLOAT16: 1}  # 16-bit types: float32 arithmetic, then one rounding


def group_axes(mode, rank):
    return tuple(range(1, rank)) if mode == INSTANCE else (1,)


def forward_model(x, algorithm, mode):
    x = x.astype(np.longdouble)
    axes = group_axes(mode, x.ndim)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if algorithm == FAST:
            return np.exp(x) / np.exp(x).sum(axes, keepdims=True)
        shifted = x - x.max(axes, keepdims=True)
        if algorithm == LOG:
            return shifted - np.log(np.exp(shifted).sum(axes, keepdims=True))
        return np.exp(shifted) / np.exp(shifted).sum(axes, keepdims=True)


def backward_model(y, dy, algorithm, mode):
    y, dy = y.astype(np.longdouble), dy.astype(np.longdouble)
    axes = group_axes(mode, y.ndim)
    if algorithm == LOG:
        return dy - np.exp(y) * dy.sum(axes, keepdims=True)
    return y * (dy - (y * dy).sum(axes, keepdims=True))


def forward(x, y, algorithm, mode, alpha=1.0, beta=0.0):
    run("mcdnnSoftmaxForward", handle=handle(), algo=algorithm, mode=mode, alpha=scale(alpha, x.data_type), xDesc=x,
        x=x,
        beta=scale(beta, x.data_type), yDesc=y, y=y)


def backward(y, dy, dx, algorithm, mode, alpha=1.0, beta=0.0):
    run("mcdnnSoftmaxBackward", handle=handle(), algorithm=algorithm, mode=mode, alpha=scale(alpha, y.data_type),
        yDesc=y,
        yData=y, dyDesc=dy, dy=dy, beta=scale(beta, y.data_type), dxDesc=dx, dx=dx)


SIZES = [(2, 3, 4, 5), (1, 1, 1, 1), (3, 1031, 1, 1), (1, 7, 37, 41), (2, 5, 3, 2, 7), (5, 2053), (3,), (2, 3, 2, 2,
                                                                                                         3, 2)]


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("mode", [INSTANCE, CHANNEL])
@pytest.mark.parametrize("algorithm", [FAST, ACCURATE, LOG])
def test_forward_and_backward_follow_the_formulas(algorithm, mode, data_type):
    for sizes in SIZES:
        x_values, prior = random(sizes, data_type, 1), random(sizes, data_type, 2)
        x, y = Tensor(x_values, data_type), Tensor(prior, data_type)
        forward(x, y, algorithm, mode, 1.5, -0.5)
        model = forward_model(x_values if len(sizes) > 1 else x_values[:, None], algorithm, mode).reshape(sizes)
        assert_close(y.values(), 1.5 * model - 0.5 * prior, data_type, ULPS[data_type],
                     floor=np.abs(1.5 * model) + np.abs(0.5 * prior))

        stored, dy_values = y.values(), random(sizes, data_type, 3)
        dy, dx = Tensor(dy_values, data_type), Tensor(prior, data_type)
        backward(y, dy, dx, algorithm, mode, 0.75, 2.0)
        pair = (stored, dy_values) if len(sizes) > 1 else (stored[:, None], dy_values[:, None])
        model = backward_model(*pair, algorithm, mode).reshape(sizes)
        assert_close(dx.values(), 0.75 * model + 2.0 * prior, data_type, ULPS[data_type] * 4,
                     floor=np.abs(dy_values).max() + np.abs(2.0 * prior))


@pytest.mark.parametrize("mode", [INSTANCE, CHANNEL])
@pytest.mark.parametrize("output", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (2, 3, 2, 3, 2)])
def test_layouts_agree_and_gaps_stay(sizes, source, output, mode):
    x_values, dy_values = random(sizes, FLOAT, 4), random(sizes, FLOAT, 5)
    x = Tensor(x_values, strides=LAYOUTS[source](sizes))
    y = Tensor(np.full(sizes, np.nan), strides=LAYOUTS[output](sizes))
    forward(x, y, ACCURATE, mode)
    expected = forward_model(x_values, ACCURATE, mode)
    assert_close(y.values(), expected, FLOAT, 8)
    assert y.gaps_untouched()

    dy = Tensor(dy_values, strides=LAYOUTS[output](sizes))
    dx = Tensor(np.full(sizes, np.nan), strides=LAYOUTS[source](sizes))
    backward(y, dy, dx, ACCURATE, mode)
    assert_close(dx.values(), backward_model(y.values(), dy_values, ACCURATE, mode), FLOAT, 8)
    assert dx.gaps_untouched()


@pytest.mark.parametrize("data_type", TYPES)
def test_beta_zero_does_not_read_the_old_value(data_type):
    values = random((2, 3, 4, 5), data_type)
    x, y = Tensor(values, data_type), Tensor(np.full(values.shape, np.nan), data_type)
    dx = Tensor(np.full(values.shape, np.nan), data_type)
    forward(x, y, ACCURATE, CHANNEL)
    assert np.isfinite(y.values()).all()
    backward(y, x, dx, ACCURATE, CHANNEL)
    assert np.isfinite(dx.values()).all()


@pytest.mark.parametrize("strides", [packed_strides, nhwc_strides])
@pytest.mark.parametrize("algorithm", [FAST, ACCURATE, LOG])
@pytest.mark.parametrize("mode", [INSTANCE, CHANNEL])
def test_in_place_equals_out_of_place(algorithm, mode, strides):
    sizes = (3, 67, 5, 31)
    values, slopes = random(sizes, FLOAT, 6), random(sizes, FLOAT, 7)
    x, y = Tensor(values, strides=strides(sizes)), Tensor(values, strides=strides(sizes))
    forward(x, y, algorithm, mode, 1.25, 0.5)
    forward(x, x, algorithm, mode, 1.25, 0.5)
    assert x.bytes() == y.bytes()
    dy, dx = Tensor(slopes, strides=strides(sizes)), Tensor(slopes, strides=strides(sizes))
    backward(y, dy, dx, algorithm, mode, 1.25, 0.5)
    backward(y, dy, dy, algorithm, mode, 1.25, 0.5)
    assert dx.bytes() == dy.bytes()


def test_large_inputs_overflow_only_in_the_fast_form():
    x = Tensor(np.array([[100.0, 99.0, -100.0]]).reshape(1, 3, 1, 1))
    for algorithm, finite in ((FAST, False), (ACCURATE, True), (LOG, True)):
        y = Tensor(np.zeros((1, 3, 1, 1)))
        forward(x, y, algorithm, CHANNEL)
        assert np.isfinite(y.values()).all() == finite


def test_double_scaling_factors_are_doubles():
    x, y = Tensor(np.zeros((1, 3, 1, 1)), DOUBLE), Tensor(np.ones((1, 3, 1, 1)), DOUBLE)
    factor = 1 / 3 + 2.0**-50
    forward(x, y, ACCURATE, CHANNEL, 3.0, factor)
    np.testing.assert_allclose(y.values(), 1 + factor, rtol=1e-15)


def test_backward_uses_y_as_stored():
    """The published expectation of a program of the mirrored library: y = 1.5 * softmax goes in unchanged."""
    y_values, dy_values = random((2, 5, 2, 2), FLOAT, 8), random((2, 5, 2, 2), FLOAT, 9)
    y, dy, dx = Tensor(1.5 * y_values), Tensor(dy_values), Tensor(dy_values)
    backward(y, dy, dx, ACCURATE, CHANNEL)
    assert_close(dx.values(), backward_model(y.values(), dy_values, ACCURATE, CHANNEL), FLOAT, 16, floor=8)


@settings(max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=2, max_size=5), order=st.randoms(),
       mode=st.sampled_from([INSTANCE, CHANNEL]), algorithm=st.sampled_from([FAST, ACCURATE, LOG]),
       data_type=st.sampled_from(TYPES), seed=st.integers(0, 2**32 - 1))  # fmt: skip
def test_any_shape_and_order_of_dimensions(sizes, order, mode, algorithm, data_type, seed):
    axes = list(range(len(sizes)))
    order.shuffle(axes)
    values = random(sizes, data_type, seed)
    x, y = Tensor(values, data_type, packed_strides(sizes, axes)), Tensor(np.zeros(sizes), data_type)
    forward(x, y, algorithm, mode)
    model = forward_model(values, algorithm, mode)
    assert_close(y.values(), model, data_type, ULPS[data_type], floor=np.abs(model).max())


def digest() -> str:
    """A hash over the results of calls large enough to be split."""
    outputs = []
    for sizes, strides in (((9, 33, 17, 19), packed_strides), ((1, 129, 33, 31), nhwc_strides),
                           ((3, 70001), packed_strides)):
        for algorithm, mode, data_type in itertools.product((FAST, ACCURATE, LOG), (INSTANCE, CHANNEL), TYPES):
            x, y = (Tensor(random(sizes, data_type, seed), data_type, strides(sizes)) for seed in (1, 2))
            dx = Tensor(np.zeros(sizes), data_type, strides(sizes))
            forward(x, y, algorithm, mode, 1.5, 0.25)
            backward(y, x, dx, algorithm, mode)
            outputs += [y, dx]
    return digest_of(outputs)


def test_results_do_not_depend_on_the_number_of_threads():
    source = "from tests.maca.test_mcdnn_softmax import digest; print(digest())"
    assert len({run_python(source, {"UNDERSTUDY_THREADS": threads}) for threads in ("1", "2", "5")}) == 1


@pytest.mark.parametrize("pointer", ["host", "freed", "short"])
def test_memory_that_is_not_the_devices_is_a_fault_of_the_stream(pointer):
    """In a child process: a device fault stays on the device."""
    run_python(f"from tests.maca.test_mcdnn_softmax import fault; fault({pointer!r})", {})


def fault(pointer: str) -> None:
    sizes = (2, 3, 4, 5)
    x, y = Tensor(np.zeros(sizes)), Tensor(np.zeros(sizes))
    other = Tensor(np.zeros((2, 3, 4, 4)))
    address = {"host": ffi.new("float[120]"), "short": other.address, "freed": ffi.cast("void *", x.address)}[pointer]
    if pointer == "freed":
        assert lib.mcFree(x.address) == 0
    arguments = dict(handle=handle(), algo=ACCURATE, mode=CHANNEL, alpha=scale(1), xDesc=x, x=address, beta=scale(0),
                     yDesc=y, y=y)
    assert call("mcdnnSoftmaxForward", **arguments) == lib.MCDNN_STATUS_SUCCESS
    assert lib.mcStreamSynchronize(ffi.NULL) == lib.mcErrorIllegalAddress
    assert call("mcdnnSoftmaxForward", **{**arguments, "x": y}) == lib.MCDNN_STATUS_EXECUTION_FAILED


def test_calls_are_queued_on_the_handles_stream():
    """In the deferred mode nothing runs before somebody waits."""
    run_python("from tests.maca.test_mcdnn_softmax import deferred; deferred()", {"UNDERSTUDY_STREAM": "deferred"})


def deferred() -> None:
    stream, own = ffi.new("mcStream_t *"), ffi.new("mcdnnHandle_t *")
    assert lib.mcStreamCreateWithFlags(stream, lib.mcStreamNonBlocking) == 0
    assert lib.mcdnnCreate(own) == 0 and lib.mcdnnSetStream(own[0], stream[0]) == 0
    x, y = Tensor(np.zeros((1, 4, 1, 1))), Tensor(np.full((1, 4, 1, 1), 7.0))
    assert call("mcdnnSoftmaxForward", handle=own[0], algo=ACCURATE, mode=CHANNEL, alpha=scale(1), xDesc=x, x=x,
                beta=scale(0), yDesc=y, y=y) == 0
    host = np.zeros(4, np.float32)
    other = ffi.new("mcStream_t *")
    assert lib.mcStreamCreateWithFlags(other, lib.mcStreamNonBlocking) == 0
    assert lib.mcMemcpyAsync(ffi.from_buffer(host, require_writable=True), y.address, 16, lib.mcMemcpyDeviceToHost,
                             other[0]) == 0
    assert lib.mcStreamSynchronize(other[0]) == 0
    assert (host == 7).all()
    synchronize()
    assert (y.values() == 0.25).all()
