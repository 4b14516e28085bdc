"""Activations with alpha and beta: the same bits on every instruction set, and nothing is written past the end."""

import ctypes
import itertools

import numpy as np
import pytest

from tests.kernels.test_soft_margin_loss_backward import bits
from tests.tensor.internals import run, view

SIGMOID, RELU, TANH, CLIPPED_RELU, ELU, SWISH = FUNCTIONS = range(6)
TYPES = ["float32", "float16", "bfloat16", "float64"]
SCALES = [(1.0, 0.0), (0.75, 0.0), (0.75, 0.5), (1.0, 0.5)]  # alpha, beta


class Activation(ctypes.Structure):
    _fields_ = [("function", ctypes.c_int), ("propagate_nan", ctypes.c_bool), ("coefficient", ctypes.c_double),
                ("alpha", ctypes.c_double), ("beta", ctypes.c_double)]


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


def activate(function, dtype, backward, arrays, alpha=1.0, beta=0.0, propagate=True):
    *inputs, out = arrays
    kernel = f"us_activation_{'backward' if backward else 'forward'}"
    run(kernel, [view(array, dtype) for array in arrays], Activation(function, propagate, 1.5, alpha, beta))
    return out


def without_payloads(array, dtype):
    """NaNs all alike: which of two NaNs an operation returns depends on the order of its operands."""
    wide = (array.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else array
    return np.where(np.isnan(wide), array.dtype.type(1), array).tobytes() + np.isnan(wide).tobytes()


def activations(count):
    for function, dtype, backward, scales in itertools.product(FUNCTIONS, TYPES, (False, True), SCALES):
        arrays = [samples(dtype, count, seed) for seed in range(3 if backward else 2)]
        yield without_payloads(activate(function, dtype, backward, arrays, *scales), dtype)


def everything():
    with np.errstate(all="ignore"):
        return b"".join(itertools.chain(activations(5), activations(5003)))


def test_same_bits_on_every_instruction_set_and_any_number_of_threads():
    variants = {bits("test_activation", level, threads)
                for level, threads in [("base", "1"), ("v3", "2"), ("v4", "1"), ("v4", "3")]}
    assert len(variants) == 1


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("scales", SCALES)
def test_nothing_is_written_past_the_end(function, backward, scales):
    for count in (0, 1, 15, 16, 17, 1025, 17000):
        arrays = [samples("float16", count, seed) for seed in range(2 if backward else 1)]
        storage = np.full(count + 40, 7, np.float16)
        activate(function, "float16", backward, [*arrays, storage[20:count + 20]], *scales)
        assert (storage[:20] == 7).all() and (storage[count + 20:] == 7).all()
