"""Whole-tensor arithmetic and reductions against NumPy in extended precision (mcdnn 7.3)."""

import itertools

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import run_python
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, LAYOUTS, Buffer, Tensor, assert_close, descriptor, digest_of,
                                      handle, ok, op_tensor, random, reduction, run, scale)

from tests.maca.test_mcdnn_convolution import Vectors

INT8 = lib.MCDNN_DATA_INT8
TYPES = [FLOAT, DOUBLE, HALF, BFLOAT16]
ADD, MUL, MIN, MAX, SQRT, NOT = range(6)
SUM, PRODUCT, LEAST, LARGEST, AMAX, AVG, NORM1, NORM2, NO_ZEROS = range(9)
ULPS = {FLOAT: 4, DOUBLE: 16, HALF: 1, BFLOAT16: 1}


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [(2, 3, 4, 5), (1, 1, 1, 1), (2, 33, 17, 31)])
def test_set_scale_and_transform(sizes, layout, data_type):
    strides = LAYOUTS[layout](sizes)
    y = Tensor(np.full(sizes, np.nan), data_type, strides)
    run("mcdnnSetTensor", handle=handle(), yDesc=y, y=y, valuePtr=scale(1.25, data_type))
    assert (y.values() == 1.25).all() and y.gaps_untouched()
    run("mcdnnScaleTensor", handle=handle(), yDesc=y, y=y, alpha=scale(-3.0, data_type))
    assert (y.values() == -3.75).all() and y.gaps_untouched()
    x = Tensor(random(sizes, HALF, 1), HALF)
    run("mcdnnTransformTensor", handle=handle(), alpha=scale(1.5, data_type), xDesc=x, x=x, beta=scale(0.5, data_type),
        yDesc=y, y=y)
    assert_close(y.values(), 1.5 * x.values() + 0.5 * -3.75, data_type, 1, floor=8)
    assert y.gaps_untouched()


def test_transform_changes_the_layout_without_reading_the_old_values():
    sizes = (2, 3, 4, 5)
    for source, target in itertools.product(LAYOUTS.values(), repeat=2):
        x = Tensor(random(sizes, FLOAT, 1), strides=source(sizes))
        y = Tensor(np.full(sizes, np.nan), strides=target(sizes))
        run("mcdnnTransformTensor", handle=handle(), alpha=scale(1), xDesc=x, x=x, beta=scale(0), yDesc=y, y=y)
        np.testing.assert_array_equal(y.values(), x.values())


def test_transform_within_one_memory():
    """x is read whole before y is written, in whatever layouts."""
    sizes = (2, 3, 4, 5)
    for source, target in itertools.product(LAYOUTS.values(), repeat=2):
        x = Tensor(random(sizes, FLOAT, 1), strides=source(sizes))
        y = descriptor(sizes, FLOAT, target(sizes))
        before = x.values()
        memory = Buffer(np.zeros(1000, np.float32))
        memory.write(x.buffer.content)
        run("mcdnnTransformTensor", handle=handle(), alpha=scale(1), xDesc=x, x=memory, beta=scale(0), yDesc=y, y=memory)
        after = np.lib.stride_tricks.as_strided(memory.read(), sizes, [4 * stride for stride in target(sizes)])
        np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_transform_of_bytes(layout, data_type):
    sizes = (2, 8, 3, 5)
    integers, halves = np.random.default_rng(1).integers(-128, 128, sizes), random(sizes, HALF, 2, spread=90)
    x, y = Tensor(integers, INT8, LAYOUTS[layout](sizes)), Tensor(random(sizes, data_type, 3), data_type)
    prior = y.values()
    run("mcdnnTransformTensor", handle=handle(), alpha=scale(0.3, data_type), xDesc=x, x=x, beta=scale(0.5, data_type),
        yDesc=y, y=y)  # fmt: skip
    factor = 0.3 if data_type == DOUBLE else float(np.float32(0.3))
    assert_close(y.values(), factor * integers + 0.5 * prior, data_type, 1, floor=32)
    x, y = Tensor(halves, data_type), Tensor(integers, INT8, LAYOUTS[layout](sizes))
    run("mcdnnTransformTensor", handle=handle(), alpha=scale(2), xDesc=x, x=x, beta=scale(-1), yDesc=y, y=y)
    np.testing.assert_array_equal(y.values(), np.clip(np.rint(2 * x.values() - integers), -128, 127))
    assert y.gaps_untouched()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_transform_into_vectors_of_channels_and_back(layout):
    sizes = (2, 8, 3, 5)
    values = np.random.default_rng(1).integers(-128, 128, sizes)
    places = Vectors(values * 0, lib.MCDNN_DATA_INT8x4, 4)
    for plain in (Tensor(values, INT8, LAYOUTS[layout](sizes)), Tensor(values, FLOAT, LAYOUTS[layout](sizes))):
        run("mcdnnTransformTensor", handle=handle(), alpha=scale(1), xDesc=plain, x=plain, beta=scale(0),
            yDesc=places.descriptor, y=places.address)
        np.testing.assert_array_equal(places.values(), values)
        back = Tensor(values * 0 + 1, plain.data_type, plain.strides)
        run("mcdnnTransformTensor", handle=handle(), alpha=scale(0.5), xDesc=places.descriptor, x=places.address,
            beta=scale(0), yDesc=back, y=back)
        np.testing.assert_array_equal(back.values(), np.rint(values / 2) if plain.data_type == INT8 else values / 2)
        assert back.gaps_untouched()
    again = Vectors(values * 0, lib.MCDNN_DATA_INT8x4, 4)
    run("mcdnnTransformTensor", handle=handle(), alpha=scale(1), xDesc=places.descriptor, x=places.address, beta=scale(0),
        yDesc=again.descriptor, y=again.address)
    np.testing.assert_array_equal(again.values(), values)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("small", [(1, 7, 1, 1), (1, 1, 1, 1), (2, 7, 3, 5), (1, 1, 3, 5), (2, 1, 1, 5)])
def test_add_spreads_sizes_of_one(small, data_type):
    a, c = Tensor(random(small, data_type, 1), data_type), Tensor(random((2, 7, 3, 5), data_type, 2), data_type)
    prior = c.values()
    run("mcdnnAddTensor", handle=handle(), alpha=scale(1.5, data_type), aDesc=a, A=a, beta=scale(-0.5, data_type),
        cDesc=c,
        C=c)
    assert_close(c.values(), 1.5 * a.values() - 0.5 * prior, data_type, 1, floor=4)


def operate(op, a, b, c, factors=(1.0, 1.0, 0.0), nan=False):
    one, two, beta = (scale(value, c.data_type) for value in factors)
    descriptor = op_tensor(op, DOUBLE if c.data_type == DOUBLE else FLOAT, nan)
    run("mcdnnOpTensor", handle=handle(), opTensorDesc=descriptor, alpha1=one, aDesc=a, A=a, alpha2=two if b else None,
        bDesc=b, B=b, beta=beta, cDesc=c, C=c)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("op", [ADD, MUL, MIN, MAX, SQRT, NOT])
@pytest.mark.parametrize("small", [(2, 7, 3, 5), (1, 7, 1, 1)])
def test_operations(small, op, data_type):
    sizes = (2, 7, 3, 5)
    a, b = Tensor(np.abs(random(sizes, data_type, 1)), data_type), Tensor(random(small, data_type, 2), data_type)
    c = Tensor(random(sizes, data_type, 3), data_type)
    prior, left, right = c.values(), 1.5 * a.values(), -0.5 * b.values()
    operate(op, a, b if op < SQRT else None, c, (1.5, -0.5, 2.0))
    model = [lambda: left + right, lambda: left * right, lambda: np.minimum(left, right), lambda: np.maximum(left,
                                                                                                             right),
             lambda: np.sqrt(left), lambda: 1 - left][op]()
    assert_close(c.values(), model + 2 * prior, data_type, 2, floor=8)
    fresh = Tensor(np.full(sizes, np.nan), data_type)
    operate(op, a, b if op < SQRT else None, fresh, (1.5, -0.5, 0.0))
    assert_close(fresh.values(), model, data_type, 2, floor=4)


@pytest.mark.parametrize("op", [MIN, MAX])
def test_nan_option_of_minimum_and_maximum(op):
    a, b = Tensor(np.array([np.nan, 1, np.nan, 2])), Tensor(np.array([3, np.nan, np.nan, 2]))
    for propagate, expected in ((False, [3, 1, np.nan, 2]), (True, [np.nan, np.nan, np.nan, 2])):
        c = Tensor(np.zeros(4))
        operate(op, a, b, c, nan=propagate)
        np.testing.assert_array_equal(c.values(), expected)


def reduce(op, a, c, *, alpha=1.0, beta=0.0, nan=False, indices=None):
    descriptor = reduction(op, DOUBLE if a.data_type == DOUBLE else FLOAT, nan, indices is not None)
    run("mcdnnReduceTensor", handle=handle(), reduceTensorDesc=descriptor, indices=indices,
        indicesSizeInBytes=indices.content.nbytes if indices else 0, workspace=None, workspaceSizeInBytes=0,
        alpha=scale(alpha, a.data_type), aDesc=a, A=a, beta=scale(beta, a.data_type), cDesc=c, C=c)


def reduce_model(a, op, axes):
    a = a.astype(np.longdouble)
    keep = dict(axis=axes, keepdims=True)
    return {SUM: lambda: a.sum(**keep), PRODUCT: lambda: a.prod(**keep), LEAST: lambda: a.min(**keep),
            LARGEST: lambda: a.max(**keep), AMAX: lambda: np.abs(a).max(**keep), AVG: lambda: a.mean(**keep),
            NORM1: lambda: np.abs(a).sum(**keep), NORM2: lambda: np.sqrt((a * a).sum(**keep)),
            NO_ZEROS: lambda: np.where(a == 0, 1, a).prod(**keep)}[op]()


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("op", range(9))
@pytest.mark.parametrize("sizes, axes", [((2, 3, 4, 5), (1,)), ((2, 3, 4, 5), (0, 2, 3)), ((2, 3, 4, 5), (0, 1, 2, 3)),
                                         ((3, 7), (1,)), ((2, 1, 130, 131), (2, 3)), ((7, 2, 3, 2, 2), (0, 3)),
                                         ((7001, 3), (1,)), ((3, 5000), (0,)), ((2, 16384), (1,)), ((1, 16385), (1,))])
def test_reductions(sizes, axes, op, data_type):
    values = random(sizes, data_type, 1)
    if op in (PRODUCT, NO_ZEROS):
        values = np.sign(values) if np.prod(sizes) > 1000 else values
    values.flat[0] = 0 if op == NO_ZEROS else values.flat[0]
    a = Tensor(values, data_type, LAYOUTS["nhwc"](sizes))
    c = Tensor(random([1 if axis in axes else size for axis, size in enumerate(sizes)], data_type, 2), data_type)
    prior = c.values()
    reduce(op, a, c, alpha=1.5, beta=-0.5)
    model = reduce_model(a.values(), op, axes)
    m = a.values().size / c.values().size
    assert_close(c.values(), 1.5 * model - 0.5 * prior, data_type, ULPS[data_type],
                 floor=np.abs(1.5 * model) + np.abs(prior) + (m if data_type == DOUBLE else 1))


@pytest.mark.parametrize("op", [LEAST, LARGEST, AMAX])
def test_indices_count_the_reduced_elements_and_the_first_one_wins(op):
    sizes = (2, 3, 150, 151)
    values = random(sizes, FLOAT, 1).round(1)
    a, c = Tensor(values, strides=LAYOUTS["nhwc"](sizes)), Tensor(np.full((1, 3, 1, 1), np.nan))
    indices = Buffer(np.zeros(3, np.uint32))
    reduce(op, a, c, indices=indices)
    rows = np.moveaxis(a.values(), 1, 0).reshape(3, -1)
    expected = {LEAST: rows.argmin(1), LARGEST: rows.argmax(1), AMAX: np.abs(rows).argmax(1)}[op]
    assert indices.read().tolist() == expected.tolist()


@pytest.mark.parametrize("sizes", [(20000, 3), (2, 16384), (3, 16390)])  # several groups in a piece, and several pieces
def test_indices_of_many_groups(sizes):
    a, c = Tensor(random(sizes, FLOAT, 1).round(1)), Tensor(np.full((sizes[0], 1), np.nan))
    indices = Buffer(np.zeros(sizes[0], np.uint32))
    reduce(LARGEST, a, c, indices=indices)
    assert indices.read().tolist() == a.values().argmax(1).tolist()
    assert c.values().ravel().tolist() == a.values().max(1).tolist()


def test_nan_option_of_the_reductions():
    a = Tensor(np.array([[np.nan, 3, 1], [2, 5, 4], [np.nan, np.nan, np.nan]]))
    for op, dropped in ((LEAST, [1, 2, np.nan]), (LARGEST, [3, 5, np.nan])):
        for propagate, expected in ((False, dropped), (True, [np.nan, dropped[1], np.nan])):
            c = Tensor(np.zeros((3, 1)))
            reduce(op, a, c, nan=propagate)
            np.testing.assert_array_equal(c.values().ravel(), expected)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", [LEAST, LARGEST, AMAX])
@pytest.mark.parametrize("nan", [False, True])
def test_extrema_beside_nan(nan, op, layout, data_type):
    """Of some groups with NaNs; the first element that wins, or the first NaN."""
    sizes = (2, 5, 21, 30)
    values = random(sizes, data_type, 1)
    values[:, 1, 3:7] = values[1, 3] = values[0, 3, 5] = np.nan
    a, c = Tensor(values, data_type, LAYOUTS[layout](sizes)), Tensor(np.zeros((1, 5, 1, 1)), data_type)
    rows = np.moveaxis(a.values(), 1, 0).reshape(5, -1)
    rows = {LEAST: -rows, LARGEST: rows, AMAX: np.abs(rows)}[op]
    expected = np.argmax(rows, 1) if nan else np.nanargmax(rows, 1)
    indices = Buffer(np.zeros(5, np.uint32))
    for wanted in (None, indices):
        reduce(op, a, c, nan=nan, indices=wanted)
        found = rows[range(5), expected]
        np.testing.assert_array_equal(c.values().ravel(), -found if op == LEAST else found)
    assert indices.read().tolist() == expected.tolist()


def test_sizes_of_indices_and_workspace():
    a, c, size = Tensor(np.zeros((2, 3, 4, 5))), Tensor(np.zeros((1, 3, 1, 5))), ffi.new("size_t *")
    for op, wanted, expected in ((LARGEST, True, 60), (LARGEST, False, 0), (SUM, True, 0)):
        ok(lib.mcdnnGetReductionIndicesSize(handle(), reduction(op, FLOAT, False, wanted), a.descriptor, c.descriptor,
                                            size))
        assert size[0] == expected
    ok(lib.mcdnnGetReductionWorkspaceSize(handle(), reduction(SUM, FLOAT, False, False), a.descriptor, c.descriptor,
                                          size))


def test_descriptors_report_what_they_were_given():
    enums = [ffi.new("mcdnnOpTensorOp_t *"), ffi.new("mcdnnDataType_t *"), ffi.new("mcdnnNanPropagation_t *")]
    ok(lib.mcdnnGetOpTensorDescriptor(op_tensor(MAX, DOUBLE, True), *enums))
    assert [it[0] for it in enums] == [MAX, DOUBLE, 1]
    enums = [ffi.new("mcdnnReduceTensorOp_t *"), ffi.new("mcdnnDataType_t *"), ffi.new("mcdnnNanPropagation_t *"),
             ffi.new("mcdnnReduceTensorIndices_t *"), ffi.new("mcdnnIndicesType_t *")]
    ok(lib.mcdnnGetReduceTensorDescriptor(reduction(AVG, HALF, True, True), *enums))
    assert [it[0] for it in enums] == [AVG, HALF, 1, 1, 0]


def digest() -> str:
    outputs, sizes = [], (5, 33, 31, 37)
    for data_type in TYPES:
        a = Tensor(random(sizes, data_type, 1), data_type)
        for op, kept in itertools.product(range(9), [(1, 33, 1, 1), (1, 1, 1, 1), (5, 1, 31, 37)]):
            c = Tensor(np.zeros(kept), data_type)
            reduce(op, a, c)
            outputs.append(c)
    return digest_of(outputs)


def test_results_do_not_depend_on_the_number_of_threads():
    source = "from tests.maca.test_mcdnn_tensor_ops import digest; print(digest())"
    assert len({run_python(source, {"UNDERSTUDY_THREADS": threads}) for threads in ("1", "2", "5")}) == 1
