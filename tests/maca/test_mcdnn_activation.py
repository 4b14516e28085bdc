"""Activations against NumPy models written from the formulas, in extended precision (mcdnn 6.1)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.maca import ffi, lib

from tests.conformance.harness import run_python
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, LAYOUTS, ROUNDING, Buffer, Tensor, activation,
                                      assert_close,
                                      digest_of, handle, nhwc_strides, packed_strides, random, run, scale)

SIGMOID, RELU, TANH, CLIPPED, ELU, SWISH = (
    lib.MCDNN_ACTIVATION_SIGMOID, lib.MCDNN_ACTIVATION_RELU, lib.MCDNN_ACTIVATION_TANH,
    lib.MCDNN_ACTIVATION_CLIPPED_RELU, lib.MCDNN_ACTIVATION_ELU, lib.MCDNN_ACTIVATION_SWISH)
MODES = [SIGMOID, RELU, TANH, CLIPPED, ELU, SWISH]
TYPES = [FLOAT, DOUBLE, HALF, BFLOAT16]
ULPS = {FLOAT: 6, DOUBLE: 6, HALF: 1, BFLOAT16: 1}
IGNORED = np.finfo(float).max  # what callers pass as coef where it has no meaning


def forward_model(x, mode, coef, b):
    x = np.asarray(x, np.longdouble)
    with np.errstate(over="ignore"):
        return {
            SIGMOID: lambda: 1 / (1 + np.exp(-x)),
            RELU: lambda: np.maximum(x, 0),
            TANH: lambda: np.tanh(x),
            CLIPPED: lambda: np.minimum(np.maximum(x, 0), coef),
            ELU: lambda: np.where(x > 0, x, coef * np.expm1(np.minimum(x, 0))),
            SWISH: lambda: x / (1 + np.exp(-b * x)),
        }[mode]()


def backward_model(x, y, dy, mode, coef, b):
    x, y, dy = (np.asarray(array, np.longdouble) for array in (x, y, dy))
    s = 1 / (1 + np.exp(-b * x))
    return {
        SIGMOID: lambda: dy * y * (1 - y),
        RELU: lambda: dy * (x > 0),
        TANH: lambda: dy * (1 - y * y),
        CLIPPED: lambda: dy * ((x > 0) & (x <= coef)),
        ELU: lambda: dy * np.where(y >= 0, 1, y + coef),
        SWISH: lambda: dy * (s + b * x * s * (1 - s)),
    }[mode]()


def forward(descriptor, x, y, alpha=1.0, beta=0.0):
    run("mcdnnActivationForward", handle=handle(), activationDesc=descriptor, alpha=scale(alpha, x.data_type), xDesc=x,
        x=x, beta=scale(beta, x.data_type), yDesc=y, y=y)


def backward(descriptor, y, dy, x, dx, alpha=1.0, beta=0.0):
    run("mcdnnActivationBackward", handle=handle(), activationDesc=descriptor, alpha=scale(alpha, x.data_type), yDesc=y,
        y=y, dyDesc=dy, dy=dy, xDesc=x, x=x, beta=scale(beta, x.data_type), dxDesc=dx, dx=dx)


SIZES = [(2, 3, 4, 5), (1, 1, 1, 1), (3, 1031), (1, 7, 37, 41), (2, 5, 3, 2, 7), (1025,), (2, 3, 2, 2, 3, 2)]


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("mode", MODES)
def test_forward_and_backward_follow_the_formulas(mode, data_type):
    coef, b = (1.5, 0.75) if mode in (CLIPPED, ELU, SWISH) else (IGNORED, 1.0)
    descriptor = activation(mode, coef, swish_beta=b)
    for sizes in SIZES:
        x_values, prior = random(sizes, data_type, 1, 6.0), random(sizes, data_type, 2)
        x, y = Tensor(x_values, data_type), Tensor(prior, data_type)
        forward(descriptor, x, y, 1.25, -0.5)
        model = forward_model(x_values, mode, coef, b)
        assert_close(y.values(), 1.25 * model - 0.5 * prior, data_type, ULPS[data_type],
                     floor=np.abs(1.25 * model) + np.abs(0.5 * prior))
        forward(descriptor, x, y)
        y_values, dy_values = y.values(), random(sizes, data_type, 3)
        dy, dx = Tensor(dy_values, data_type), Tensor(prior, data_type)
        backward(descriptor, y, dy, x, dx, 0.75, 2.0)
        model = backward_model(x_values, y_values, dy_values, mode, coef, b)
        assert_close(dx.values(), 0.75 * model + 2.0 * prior, data_type, ULPS[data_type],
                     floor=np.abs(dy_values) * 2 + np.abs(2.0 * prior))


@pytest.mark.parametrize("data_type", [FLOAT, DOUBLE])
@pytest.mark.parametrize("mode", [SIGMOID, TANH, ELU, SWISH])
def test_accuracy_is_relative_over_the_whole_range(mode, data_type):
    """From the smallest normal numbers to where the functions saturate: nothing cancels around 0."""
    tiny = 2.0**-149 if data_type == FLOAT else 2.0**-1074
    smallest = -37 if data_type == FLOAT else -300
    sizes = np.concatenate([np.logspace(smallest, 2, 3000), np.linspace(0, 30, 3001)])
    values = np.concatenate([-sizes, sizes])
    x = Tensor(values, data_type)
    y = Tensor(np.zeros(values.shape), data_type)
    forward(activation(mode, 1.0), x, y)
    expected = forward_model(x.values(), mode, 1.0, 1.0)
    normal = np.abs(expected) > (2.0**-125 if data_type == FLOAT else 2.0**-1021)
    subnormal_steps = np.abs(x.values()) * tiny / ROUNDING[data_type]  # swish: the logistic factor may be subnormal
    assert_close(y.values()[normal], expected[normal], data_type, 6, floor=subnormal_steps[normal])
    magnitude = np.maximum(1, np.abs(x.values()[~normal]))  # swish multiplies a subnormal number by x
    assert (np.abs(y.values()[~normal] - expected[~normal]) <= 2 * tiny * magnitude).all()


def test_points_where_the_formulas_have_corners():
    corner = np.array([-0.0, 0.0, 2.0**-149, -(2.0**-149), 1.0, np.nextafter(np.float32(1), np.float32(2)), 0.5])
    x, ones, out = Tensor(corner), Tensor(np.ones(7)), Tensor(np.zeros(7))
    forward(activation(CLIPPED, 1.0), x, out)
    assert out.values().tolist() == [0, 0, 2.0**-149, 0, 1, 1, 0.5]
    backward(activation(CLIPPED, 1.0), x, ones, x, out)
    assert out.values().tolist() == [0, 0, 1, 0, 1, 0, 1]
    backward(activation(RELU, 0.0), x, ones, x, out)
    assert out.values().tolist() == [0, 0, 1, 0, 1, 1, 1]
    backward(activation(ELU, 0.25), x, ones, x, out)  # reads y, here given the same numbers
    assert out.values().tolist() == [1, 1, 1, 0.25, 1, 1, 1]


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("mode", [RELU, CLIPPED])
def test_nan_option_of_the_relu_forms(mode, data_type):
    values = np.array([np.nan, -1, 1, np.nan])
    x, out, ones = Tensor(values, data_type), Tensor(np.zeros(4), data_type), Tensor(np.ones(4), data_type)
    kept, dropped = activation(mode, 3.0, propagate_nan=True), activation(mode, 3.0)
    forward(dropped, x, out)
    assert out.values().tolist() == [0, 0, 1, 0]
    backward(dropped, x, ones, x, out)
    assert out.values().tolist() == [0, 0, 1, 0]
    forward(kept, x, out)
    np.testing.assert_array_equal(out.values(), [np.nan, 0, 1, np.nan])
    backward(kept, x, ones, x, out)
    np.testing.assert_array_equal(out.values(), [np.nan, 0, 1, np.nan])


# Of each type the bits of infinity, and the bit that makes a NaN quiet.
KINDS_OF_16_BITS = [(HALF, 0x7C00, 0x200), (BFLOAT16, 0x7F80, 0x40)]
LIMITS = [0.0, 1e-30, 3.0, 3.0001, 3.01, 1e-6, 65519.0, 65521.0, 1e38, 3.4e38, np.inf]


def tensor_of_bits(bits, data_type):
    tensor = Tensor(np.zeros(bits.shape), data_type)
    tensor.buffer = Buffer(bits.view(tensor.buffer.content.dtype))
    return tensor


def values_of_bits(bits, data_type):
    with np.errstate(invalid="ignore"):  # NaNs that signal
        return tensor_of_bits(bits, data_type).values()


def every_16_bit_number(infinity):
    """Their count is no multiple of a vector's."""
    return np.concatenate([np.arange(1 << 16), [0x1234, 0x8001, infinity + 1, 0x3C00, 0]]).astype(np.uint16)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("propagate_nan", [False, True])
@pytest.mark.parametrize("data_type, infinity, quiet", KINDS_OF_16_BITS)
def test_relu_forms_of_every_16_bit_number(data_type, infinity, quiet, propagate_nan, in_place):
    """NaNs become quiet or 0; all others are kept, or become +0 or the limit, rounded to nearest."""
    bits = every_16_bit_number(infinity)
    values = values_of_bits(bits, data_type)
    is_nan, of_nan = (bits & 0x7FFF) > infinity, bits | quiet if propagate_nan else np.zeros_like(bits)
    for mode, limit in [(RELU, np.inf), *((CLIPPED, limit) for limit in LIMITS)]:
        x = tensor_of_bits(bits, data_type)
        y = x if in_place else Tensor(np.zeros(bits.shape), data_type)
        forward(activation(mode, limit, propagate_nan=propagate_nan), x, y)
        with np.errstate(over="ignore"):
            of_limit = Tensor(np.array([limit]), data_type).stored().view(np.uint16)
        of_number = np.where(bits >= 0x8000, 0, np.where(values < np.float32(limit), bits, of_limit))
        assert np.array_equal(y.stored().view(np.uint16), np.where(is_nan, of_nan, of_number)), limit


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("propagate_nan", [False, True])
@pytest.mark.parametrize("data_type, infinity, quiet", KINDS_OF_16_BITS)
def test_slopes_of_the_relu_forms_of_every_16_bit_number(data_type, infinity, quiet, propagate_nan, in_place):
    """dy where x is above 0 and not above the limit, its NaNs quiet; else +0; for NaNs of x these, or +0."""
    bits = every_16_bit_number(infinity)
    upstream = np.random.default_rng(1).permutation(bits)
    values = values_of_bits(bits, data_type)
    is_nan, of_nan = (bits & 0x7FFF) > infinity, bits | quiet if propagate_nan else np.zeros_like(bits)
    quiet_upstream = np.where((upstream & 0x7FFF) > infinity, upstream | quiet, upstream)
    for mode, limit in [(RELU, np.inf), *((CLIPPED, limit) for limit in LIMITS)]:
        x, dy = tensor_of_bits(bits, data_type), tensor_of_bits(upstream, data_type)
        dx = dy if in_place else Tensor(np.zeros(bits.shape), data_type)
        backward(activation(mode, limit, propagate_nan=propagate_nan), x, dy, x, dx)
        is_kept = (values > 0) & (values <= np.float32(limit))
        of_number = np.where(is_kept, quiet_upstream, 0)
        assert np.array_equal(dx.stored().view(np.uint16), np.where(is_nan, of_nan, of_number)), limit


@pytest.mark.parametrize("mode", [SIGMOID, TANH, ELU, SWISH])
def test_the_other_modes_pass_nan_on_and_saturate(mode):
    x, y = Tensor(np.array([np.nan, np.inf, -200.0, 200.0])), Tensor(np.zeros(4))
    forward(activation(mode, 1.0), x, y)
    expected = {SIGMOID: [np.nan, 1, 0, 1], TANH: [np.nan, 1, -1, 1], ELU: [np.nan, np.inf, -1, 200],
                SWISH: [np.nan, np.inf, 0, 200]}[mode]
    np.testing.assert_array_equal(y.values(), expected)


@pytest.mark.parametrize("data_type", [FLOAT, DOUBLE])
@pytest.mark.parametrize("b", [1.0, 4.0])
def test_the_slope_of_swish_is_one_or_zero_far_out(b, data_type):
    largest = float(np.finfo(np.float32 if data_type == FLOAT else np.float64).max)
    x = Tensor(np.array([-np.inf, -largest, -1e30, -2000, 0, 2000, 1e30, largest, np.inf, np.nan]), data_type)
    dx = Tensor(np.zeros(10), data_type)
    backward(activation(SWISH, 0.0, swish_beta=b), x, Tensor(np.full(10, 3.0), data_type), x, dx)
    np.testing.assert_array_equal(dx.values(), [0, 0, 0, 0, 1.5, 3, 3, 3, 3, np.nan])


@pytest.mark.parametrize("mode", MODES)
def test_int8_runs_forward(mode):
    """Rounded to nearest, ties to even, and saturated."""
    coef = 50.0 if mode in (CLIPPED, ELU) else IGNORED
    values, prior = np.arange(-128, 128).reshape(2, 8, 4, 4), random((2, 8, 4, 4), lib.MCDNN_DATA_INT8, 1, 100.0)
    x, y = (Tensor(it, lib.MCDNN_DATA_INT8, nhwc_strides(values.shape)) for it in (values, prior))
    forward(activation(mode, coef), x, y, 2.0, -0.25)
    expected = 2.0 * forward_model(values, mode, coef, 1.0) - 0.25 * prior
    distance = np.abs(y.values() - np.clip(expected, -128, 127))
    assert (distance <= 0.5 + 1e-5).all()  # one rounding of a float result
    if mode == RELU:
        np.testing.assert_array_equal(y.values(), np.clip(np.rint(expected), -128, 127))


@pytest.mark.parametrize("output", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (2, 3, 2, 3, 2)])
def test_layouts_agree_gaps_stay_and_the_old_value_is_not_read(sizes, source, output):
    values, slopes = random(sizes, FLOAT, 4), random(sizes, FLOAT, 5)
    x, y = Tensor(values, strides=LAYOUTS[source](sizes)), Tensor(np.full(sizes, np.nan),
                                                                  strides=LAYOUTS[output](sizes))
    forward(activation(TANH, 0), x, y)
    assert_close(y.values(), np.tanh(values), FLOAT, 6)
    assert y.gaps_untouched()
    dy = Tensor(slopes, strides=LAYOUTS[output](sizes))
    dx = Tensor(np.full(sizes, np.nan), strides=LAYOUTS[source](sizes))
    backward(activation(TANH, 0), y, dy, x, dx)
    assert_close(dx.values(), slopes * (1 - y.values() ** 2), FLOAT, 6)
    assert dx.gaps_untouched()


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("mode", MODES)
def test_in_place_equals_out_of_place(mode, data_type):
    sizes, descriptor = (3, 67, 5, 31), activation(mode, 0.5)
    values, slopes = random(sizes, data_type, 6), random(sizes, data_type, 7)
    x, y = Tensor(values, data_type), Tensor(values, data_type)
    dy, dx = Tensor(slopes, data_type), Tensor(slopes, data_type)
    forward(descriptor, x, y, 1.25, 0.5)
    backward(descriptor, y, dy, x, dx, 1.25, 0.5)
    backward(descriptor, y, dy, x, dy, 1.25, 0.5)
    assert dx.bytes() == dy.bytes()
    forward(descriptor, x, x, 1.25, 0.5)
    assert x.bytes() == y.bytes()


def test_unread_operands_may_be_any_address():
    """Their memory is never opened: only what the mode's formula reads has to be there."""
    values = random((2, 3, 4, 5), FLOAT)
    x, dy, dx = Tensor(values), Tensor(values), Tensor(values)
    nowhere = ffi.cast("void *", 64)
    arguments = dict(handle=handle(), alpha=scale(1), yDesc=x, dyDesc=x, dy=dy, xDesc=x, beta=scale(0), dxDesc=x, dx=dx)
    run("mcdnnActivationBackward", activationDesc=activation(RELU, 0), y=nowhere, x=x, **arguments)
    run("mcdnnActivationBackward", activationDesc=activation(TANH, 0), y=x, x=nowhere, **arguments)


def test_descriptors_report_what_they_were_given():
    made = activation(CLIPPED, 6.0, propagate_nan=True, swish_beta=0.5)
    mode, nan, numbers = ffi.new("mcdnnActivationMode_t *"), ffi.new("mcdnnNanPropagation_t *"), ffi.new("double[2]")
    assert lib.mcdnnGetActivationDescriptor(made, mode, nan, numbers) == 0
    assert lib.mcdnnGetActivationDescriptorSwishBeta(made, numbers + 1) == 0
    assert (mode[0], nan[0], list(numbers)) == (CLIPPED, lib.MCDNN_PROPAGATE_NAN, [6.0, 0.5])
    assert lib.mcdnnGetActivationDescriptor(made, ffi.NULL, ffi.NULL, ffi.NULL) == 0
    assert lib.mcdnnSetActivationDescriptor(made, lib.MCDNN_ACTIVATION_IDENTITY, 0, 0.0) == 0
    assert lib.mcdnnDestroyActivationDescriptor(ffi.NULL) == 0


def test_swish_factor_of_a_new_descriptor_is_one():
    x, y = Tensor(np.linspace(-3, 3, 13)), Tensor(np.zeros(13))
    forward(activation(SWISH, 0, swish_beta=None), x, y)
    assert_close(y.values(), forward_model(x.values(), SWISH, 0, 1), FLOAT, 6)


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5), order=st.randoms(), mode=st.sampled_from(MODES),
       data_type=st.sampled_from(TYPES), seed=st.integers(0, 2**32 - 1))
def test_any_shape_and_order_of_dimensions(sizes, order, mode, data_type, seed):
    axes = list(range(len(sizes)))
    order.shuffle(axes)
    values = random(sizes, data_type, seed)
    x, y = Tensor(values, data_type, packed_strides(sizes, axes)), Tensor(np.zeros(sizes), data_type)
    forward(activation(mode, 1.0), x, y)
    assert_close(y.values(), forward_model(values, mode, 1.0, 1.0), data_type, ULPS[data_type], floor=0.5)


def digest() -> str:
    """A hash over results of calls large enough to be split."""
    outputs = []
    for sizes, strides in (((9, 33, 17, 19), packed_strides), ((1, 129, 33, 31), nhwc_strides)):
        for mode in MODES:
            for data_type in TYPES:
                x, y = (Tensor(random(sizes, data_type, seed), data_type, strides(sizes)) for seed in (1, 2))
                dx = Tensor(np.zeros(sizes), data_type, strides(sizes))
                forward(activation(mode, 1.0), x, y, 1.5, 0.25)
                backward(activation(mode, 1.0), y, x, x, dx)
                outputs += [y, dx]
    return digest_of(outputs)


def test_results_do_not_depend_on_the_number_of_threads():
    source = "from tests.maca.test_mcdnn_activation import digest; print(digest())"
    assert len({run_python(source, {"UNDERSTUDY_THREADS": threads}) for threads in ("1", "2", "5")}) == 1
