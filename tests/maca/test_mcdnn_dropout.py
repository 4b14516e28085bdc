"""Dropout: what a mask does, how masks follow each other, and what carries them (mcdnn 6.9, 7.4)."""

import itertools

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import run_python
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, Buffer, Tensor, digest_of, from_storage,
                                      gapped_strides,
                                      handle, nhwc_strides, ok, random, run, to_storage)

TYPES = [FLOAT, DOUBLE, HALF, BFLOAT16]


class Dropout:
    """A descriptor with its state buffer."""

    def __init__(self, p, seed=1):
        made, size = ffi.new("mcdnnDropoutDescriptor_t *"), ffi.new("size_t *")
        ok(lib.mcdnnCreateDropoutDescriptor(made))
        ok(lib.mcdnnDropoutGetStatesSize(handle(), size))
        self.descriptor = ffi.gc(made[0], lib.mcdnnDestroyDropoutDescriptor)
        self.states = Buffer(np.full(size[0], 0xA5, np.uint8))
        self.seed(p, seed)

    def seed(self, p, seed):
        ok(lib.mcdnnSetDropoutDescriptor(self.descriptor, handle(), p, self.states.address,
                                         self.states.content.nbytes, seed))

    def set_probability(self, p):
        ok(lib.mcdnnSetDropoutDescriptor(self.descriptor, handle(), p, ffi.NULL, 0, 0))

    def restore(self, p):
        ok(lib.mcdnnRestoreDropoutDescriptor(self.descriptor, handle(), p, self.states.address,
                                             self.states.content.nbytes, 0))


def reserve_for(tensor):
    size = ffi.new("size_t *")
    ok(lib.mcdnnDropoutGetReserveSpaceSize(tensor.descriptor, size))
    return Buffer(np.full(size[0], 0x5A, np.uint8))


def forward(dropout, x, y, reserve=None):
    reserve = reserve or reserve_for(x)
    run("mcdnnDropoutForward", handle=handle(), dropoutDesc=dropout.descriptor, xdesc=x, x=x, ydesc=y, y=y,
        reserveSpace=reserve, reserveSpaceSizeInBytes=reserve.content.nbytes)
    return reserve


def backward(dropout, dy, dx, reserve):
    run("mcdnnDropoutBackward", handle=handle(), dropoutDesc=dropout.descriptor, dydesc=dy, dy=dy, dxdesc=dx, dx=dx,
        reserveSpace=reserve, reserveSpaceSizeInBytes=reserve.content.nbytes)


def masks(dropout, count, elements=5000):
    """What the next calls keep, as rows."""
    ones, out, rows = Tensor(np.ones(elements)), Tensor(np.zeros(elements)), []
    for _ in range(count):
        forward(dropout, ones, out)
        rows.append(out.values() != 0)
    return np.array(rows)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("p", [0.25, 0.5, 0.9])
@pytest.mark.parametrize("sizes", [(1,), (7,), (33,), (2, 3, 4, 5), (3, 1031), (2, 20, 31, 33)])
def test_kept_elements_are_scaled_and_both_directions_agree(sizes, p, data_type):
    dropout = Dropout(p)
    values = random(sizes, data_type, 1)
    values[values == 0] = 1
    x, y = Tensor(values, data_type), Tensor(np.full(sizes, np.nan), data_type)
    reserve = forward(dropout, x, y)
    kept = y.values() != 0
    scale = 1 / (1 - np.float64(np.float32(p))) if data_type == DOUBLE else 1 / (np.float32(1) - np.float32(p))
    product = values * scale if data_type == DOUBLE else values.astype(np.float32) * scale
    expected = from_storage(to_storage(product, data_type), data_type)
    np.testing.assert_array_equal(y.values(), np.where(kept, expected, 0))
    dx = Tensor(np.full(sizes, np.nan), data_type)
    backward(dropout, x, dx, reserve)
    assert dx.bytes() == y.bytes()


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.77])
def test_share_and_independence_of_what_is_kept(p):
    """Within five standard deviations: the share kept, per bit position too; how neighbours and calls agree."""
    rows = masks(Dropout(p, seed=123), 8, 32 * 4096)
    keep = 1 - p

    def near(share, expected, count):
        assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / count) + 1e-9

    near(rows.mean(), keep, rows.size)
    for position in range(32):
        near(rows[:, position::32].mean(), keep, rows[:, position::32].size)
    for distance in (1, 2, 7, 32, 1024):
        near((rows[:, distance:] & rows[:, :-distance]).mean(), keep**2, rows[:, distance:].size)
    near((rows[1:] & rows[:-1]).mean(), keep**2, rows[1:].size)


def test_the_ends_of_the_probability():
    x, y = Tensor(np.linspace(-1, 1, 4097)), Tensor(np.full(4097, np.nan))
    forward(Dropout(0.0), x, y)
    assert y.bytes() == x.bytes()
    forward(Dropout(1.0), Tensor(np.full(4097, np.inf)), y)
    assert (y.values() == 0).all()


def test_the_same_seed_gives_the_same_sequence_of_masks():
    first, second, other = Dropout(0.5, 7), Dropout(0.5, 7), Dropout(0.5, 8)
    rows = masks(first, 4)
    np.testing.assert_array_equal(rows, masks(second, 4))
    assert (rows != masks(other, 4)).any(axis=1).all()
    assert len(np.unique(rows, axis=0)) == 4
    first.seed(0.5, 7)
    np.testing.assert_array_equal(masks(first, 4), rows)


def test_restoring_goes_on_where_the_state_was():
    whole, halves = Dropout(0.5, 7), Dropout(0.5, 7)
    rows = masks(whole, 4)
    np.testing.assert_array_equal(masks(halves, 2), rows[:2])
    saved = halves.states.read()
    masks(halves, 3)
    halves.states.write(saved)
    halves.restore(0.5)
    np.testing.assert_array_equal(masks(halves, 2), rows[2:])


def test_null_states_change_only_the_probability():
    dropout, twin = Dropout(0.5, 7), Dropout(0.25, 7)
    dropout.set_probability(0.25)
    np.testing.assert_array_equal(masks(dropout, 2), masks(twin, 2))


def test_descriptors_report_what_they_were_given():
    dropout = Dropout(0.25, 2**63 + 5)
    p, states, seed = ffi.new("float *"), ffi.new("void **"), ffi.new("unsigned long long *")
    ok(lib.mcdnnGetDropoutDescriptor(dropout.descriptor, handle(), p, states, seed))
    assert (p[0], states[0], seed[0]) == (0.25, dropout.states.address, 2**63 + 5)
    ok(lib.mcdnnGetDropoutDescriptor(dropout.descriptor, handle(), *[ffi.NULL] * 3))


def test_layouts_and_shapes_only_need_the_same_number_of_elements():
    """Element i in row-major order of either tensor is one element; the mask is of these numbers."""
    values = np.arange(1, 2 * 3 * 4 * 5 + 1, dtype=float)
    packed, out = Tensor(values.reshape(2, 3, 4, 5)), Tensor(np.zeros((2, 3, 4, 5)))
    forward(Dropout(0.5, 3), packed, out)
    expected = out.values().ravel()
    for strides, sizes in itertools.product([nhwc_strides, gapped_strides], [(2, 3, 4, 5), (6, 20), (5, 4, 3, 2)]):
        x = Tensor(values.reshape(2, 3, 4, 5), strides=strides((2, 3, 4, 5)))
        y = Tensor(np.zeros(sizes), strides=strides(sizes) if len(sizes) > 2 else None)
        forward(Dropout(0.5, 3), x, y)
        np.testing.assert_array_equal(y.values().ravel(), expected)
        assert y.gaps_untouched()


@pytest.mark.parametrize("data_type", TYPES)
def test_in_place_equals_out_of_place(data_type):
    x, y = (Tensor(random((3, 67, 31), data_type, 1), data_type) for _ in range(2))
    forward(Dropout(0.5, 9), x, y)
    reserve = forward(Dropout(0.5, 9), x, x)
    assert x.bytes() == y.bytes()
    dx = Tensor(np.zeros((3, 67, 31)), data_type)
    backward(Dropout(0.5, 9), x, dx, reserve)
    backward(Dropout(0.5, 9), x, x, reserve)
    assert x.bytes() == dx.bytes()


def test_a_larger_reserve_space_is_not_written_beyond_the_mask():
    x = Tensor(np.ones(100))
    reserve = Buffer(np.full(64, 0x5A, np.uint8))
    forward(Dropout(0.5), x, Tensor(np.zeros(100)), reserve)
    assert (reserve.read()[16:] == 0x5A).all()


def digest() -> str:
    outputs = []
    for data_type in TYPES:
        dropout, sizes = Dropout(0.3, 11), (5, 67, 65, 3)
        for strides in (None, nhwc_strides(sizes)):
            x, y = Tensor(random(sizes, data_type, 1), data_type, strides), Tensor(np.zeros(sizes), data_type, strides)
            reserve = forward(dropout, x, y)
            backward(dropout, y, x, reserve)
            outputs += [y, x]
    return digest_of(outputs)


def test_results_do_not_depend_on_the_number_of_threads_or_the_instruction_set():
    source = "from tests.maca.test_mcdnn_dropout import digest; print(digest())"
    variants = [("1", "v4"), ("2", "v4"), ("5", "v3"), ("2", "base")]
    assert len({run_python(source, {"UNDERSTUDY_THREADS": threads, "UNDERSTUDY_ISA": level})
                for threads, level in variants}) == 1
