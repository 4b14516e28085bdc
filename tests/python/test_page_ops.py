"""NumPy functions of the operators from pages: what they return has the shape, the type and the values of NumPy's own."""

import numpy
import pytest

from understudy.ascend import ops, page_ops
from understudy.errors import StatusError

X = numpy.linspace(-2, 2, 12, dtype=numpy.float32).reshape(3, 4)
ROW = numpy.array([1, 2, 3, 4], numpy.int64)


def test_examples():
    assert numpy.array_equal(ops.add(X, ROW, 2), X + 2 * ROW.astype(numpy.float32))
    assert ops.add(X, ROW, 2).dtype == numpy.float32
    assert numpy.array_equal(ops.muls(ROW, 3), ROW * 3) and ops.muls(ROW, 3).dtype == numpy.int64
    assert ops.muls(ROW, 0.5).dtype == numpy.float32
    assert ops.gt_tensor(X, X.T[:1].T).dtype == bool
    assert numpy.allclose(ops.exp(ROW), numpy.exp(ROW), rtol=1e-6) and ops.exp(ROW).dtype == numpy.float32
    assert numpy.array_equal(ops.permute(X, [1, 0]), X.T)
    assert numpy.array_equal(ops.slice(X, 1, 0, 4, 2), X[:, ::2])
    assert numpy.array_equal(ops.cast(X, numpy.int32), X.astype(numpy.int32))
    assert ops.add(X, X, 1, out_dtype=numpy.float16).dtype == numpy.float16


def test_in_place_operators_return_what_they_changed():
    before = X.copy()
    assert numpy.array_equal(ops.inplace_mul(X, X), X * X)
    assert numpy.array_equal(X, before)


def test_refusals_are_exceptions():
    with pytest.raises(StatusError, match="broadcast"):
        ops.mul(X, numpy.ones((5, 5), numpy.float32))


def test_unknown_names():
    with pytest.raises(AttributeError):
        ops.no_such_operator


def test_every_function_has_a_signature_and_a_description():
    assert len(page_ops.operators()) > 150 and set(page_ops.operators()) <= set(dir(ops))
    for name in page_ops.operators():
        function = getattr(ops, name)
        assert function.__doc__.startswith("acl") and "out_dtype" in str(function.__signature__), name
