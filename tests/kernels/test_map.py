"""Element-wise kernels: the same bits on every instruction set and wherever an element lies in its array."""

import ctypes
import itertools
import math

import numpy as np
import pytest

from tests.kernels.test_soft_margin_loss_backward import bits
from tests.tensor.internals import DTYPES, library, run, view

SIGMOID, RELU, TANH, CLIPPED_RELU, ELU, SWISH = FUNCTIONS = range(6)
TYPES = ["float32", "float16", "bfloat16", "float64"]
ONE_INPUT, TWO, THREE, FOUR = (
    ["exponential", "pow_one", "fake_quantise"],
    ["add", "sub", "mul", "subext", "subrelu", "subrelu6", "div", "glu", "pow", "binary_cross_entropy",
     "sigmoid_cross_entropy", "sigmoid_cross_entropy_grad", "log_grad", "power_grad", "relu_grad", "relu6_grad",
     "l_relu_grad", "sigmoid_grad", "tanh_grad", "hsigmoid", "hswish", "gelu", "softplus", "elu", "shrink"],
    ["binary_cross_entropy_weighted", "smooth_l1_grad"],
    [])
WITH_MORE_OUTPUTS = {"maximum_grad": (3, 2), "minimum_grad": (3, 2), "momentum": (3, 2), "sgd": (3, 2), "adam": (4, 3),
                     "adam_weight_decay": (4, 3)}
FORMULAS = {name: (inputs, 1) for inputs, names in enumerate((ONE_INPUT, TWO, THREE, FOUR), 1) for name in names}
FORMULAS.update(WITH_MORE_OUTPUTS)
NUMBERS = (0.5, 1.25, 0.75, 0.125, 1.0)


class Activation(ctypes.Structure):
    _fields_ = [("function", ctypes.c_int), ("propagate_nan", ctypes.c_bool), ("coefficient", ctypes.c_double),
                ("alpha", ctypes.c_double), ("beta", ctypes.c_double)]


class ArrayMap(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_void_p), ("numbers", ctypes.c_double * 5), ("dtype", ctypes.c_int),
                ("output_dtype", ctypes.c_int), ("inputs", ctypes.c_int), ("outputs", ctypes.c_int),
                ("input", ctypes.c_void_p * 4), ("output", ctypes.c_void_p * 3)]


def samples(dtype, count, seed):
    """Values around 0, and bit patterns of every kind."""
    rng = np.random.default_rng(seed)
    stored = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    drawn = rng.normal(0, 4, count)
    if dtype == "bfloat16":
        values = (drawn.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        values = drawn.astype(dtype)
    patterns = rng.integers(0, 256, count * stored.itemsize, dtype=np.uint8).view(stored)
    return np.where(rng.integers(0, 4, count) == 0, patterns, values)


def activate(function, dtype, backward, arrays, beta=0.0, propagate=True):
    *inputs, out = arrays
    kernel = f"us_activation_{'backward' if backward else 'forward'}"
    run(kernel, [view(array, dtype) for array in arrays], Activation(function, propagate, 1.5, 0.75, beta))
    return out


def formula(name, dtype, inputs):
    kernel = ctypes.addressof(ctypes.c_char.in_dll(library(), f"us_array_{name}"))
    _, count = FORMULAS[name]
    outputs = [np.full_like(inputs[0], 7) for _ in range(count)]
    work = ArrayMap(kernel, NUMBERS, DTYPES[dtype], DTYPES[dtype], len(inputs), count)
    for place, array in enumerate(inputs):
        work.input[place] = array.ctypes.data
    for place, array in enumerate(outputs):
        work.output[place] = array.ctypes.data
    library().us_array_map(ctypes.byref(work), ctypes.c_int64(0), ctypes.c_int64(inputs[0].size))
    return outputs


def without_payloads(array, dtype):
    """NaNs all alike: which of two NaNs an operation returns depends on the order of its operands."""
    wide = (array.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else array
    return np.where(np.isnan(wide), array.dtype.type(1), array).tobytes() + np.isnan(wide).tobytes()


def activations(count):
    for function, dtype, backward, beta in itertools.product(FUNCTIONS, TYPES, (False, True), (0.0, 0.5)):
        arrays = [samples(dtype, count, seed) for seed in range(3 if backward else 2)]
        yield without_payloads(activate(function, dtype, backward, arrays, beta), dtype)


def formulas(count):
    for name, (inputs, _) in FORMULAS.items():
        for dtype in ("float32", "float16", "float64"):
            if dtype == "float64" and name == "gelu":
                continue  # nobody has it
            outputs = formula(name, dtype, [samples(dtype, count, seed) for seed in range(inputs)])
            yield from (without_payloads(output, dtype) for output in outputs)


def everything():
    with np.errstate(all="ignore"):
        return b"".join(itertools.chain(activations(5), activations(5003), formulas(11), formulas(5003)))


def test_same_bits_on_every_instruction_set_and_any_number_of_threads():
    variants = {bits("test_map", level, threads)
                for level, threads in [("base", "1"), ("v3", "2"), ("v4", "1"), ("v4", "3")]}
    assert len(variants) == 1


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_result_does_not_depend_on_its_place(name, dtype):
    inputs = [samples(dtype, 70, seed) for seed in range(FORMULAS[name][0])]
    whole = formula(name, dtype, inputs)
    for first, last in [(0, 1), (3, 18), (16, 33), (5, 70)]:
        part = formula(name, dtype, [array[first:last].copy() for array in inputs])
        for one, other in zip(part, whole):
            assert without_payloads(one, dtype) == without_payloads(other[first:last], dtype)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("backward", [False, True])
def test_nothing_is_written_past_the_end(function, backward):
    for count in (0, 1, 15, 16, 17, 1025, 17000):
        arrays = [samples("float16", count, seed) for seed in range(2 if backward else 1)]
        storage = np.full(count + 40, 7, np.float16)
        activate(function, "float16", backward, [*arrays, storage[20:count + 20]])
        assert (storage[:20] == 7).all() and (storage[count + 20:] == 7).all()


def test_gelu_keeps_its_precision_where_the_probability_is_small():
    x = np.linspace(-9, 9, 5001).astype(np.float32)
    actual = formula("gelu", "float32", [np.ones_like(x), x])[0]
    wide = x.astype(np.float64)
    probability = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in wide])
    density = np.exp(-wide * wide / 2) / math.sqrt(2 * math.pi)
    # The power's argument has a rounding of its own, which counts x^2 / 2 times.
    allowed = 2.0**-24 * (8 + wide * wide) * (probability + np.abs(wide) * density)
    assert (np.abs(actual - (probability + wide * density)) <= allowed).all()


def test_every_float16_has_its_sigmoid_cross_entropy():
    """Against targets of 0 it is ln(1 + e^x), computed to 2^-20 in float32, and to less where the result is subnormal."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        exact = np.logaddexp(0, x.astype(np.float64))
    finite = np.isfinite(x)
    actual = formula("sigmoid_cross_entropy", "float16", [x, np.zeros_like(x)])[0]
    place = np.spacing(exact[finite].astype(np.float16).clip(max=65472)).astype(np.float64)
    assert (np.abs(actual[finite].astype(np.float64) - exact[finite]) <= 0.501 * place).all()
    assert np.isnan(actual[~finite]).all()  # an infinity times 0, too


@pytest.mark.parametrize("dtype, rounding", [("float32", 0), ("float16", 2.0**-11)])
def test_power_grad_of_scale_zero_is_zero_and_of_other_scales_the_slope(dtype, rounding):
    dy, x = samples(dtype, 100, 1), samples(dtype, 100, 2)
    kernel = ctypes.addressof(ctypes.c_char.in_dll(library(), "us_array_power_grad"))
    for scale in (0.0, 0.5):
        out = np.full_like(x, 7)
        work = ArrayMap(kernel, (3, scale, 0.25), DTYPES[dtype], DTYPES[dtype], 2, 1,
                     (dy.ctypes.data, x.ctypes.data), (out.ctypes.data,))
        library().us_array_map(ctypes.byref(work), ctypes.c_int64(0), ctypes.c_int64(100))
        if scale == 0:
            assert (out == 0).all()
            continue
        with np.errstate(all="ignore"):
            exact = 3 * scale * dy.astype(np.float64) * (scale * x.astype(np.float64) + 0.25) ** 2
            moderate = (np.abs(exact) < 6e4) & (np.abs(exact) > 1e-4)
        np.testing.assert_allclose(out[moderate], exact[moderate], rtol=rounding + 40 * 2.0**-24, atol=1e-6)
        assert moderate.sum() > 50
