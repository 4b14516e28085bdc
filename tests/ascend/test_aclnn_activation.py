"""Activations with negative numbers, which bend them the other way: against the formulas of their pages in float64."""

from __future__ import annotations

import numpy
import pytest

from understudy.ascend import lib

from tests.ascend.calling import call, drawn, empty, tensor
from tests.conformance.ascend.aclnn_support import F32, Tensor

TOLERANCE = {"F32": 4e-7, "F16": 1e-3, "BF16": 8e-3}


@pytest.mark.parametrize("kind", list(TOLERANCE))
def test_celu_of_negative_alpha(kind):
    values = drawn((5, 7), 1, kind)
    expected = numpy.maximum(values, 0) + numpy.minimum(0, -1.5 * numpy.expm1(values / -1.5))
    actual = call("Celu", self=tensor(values, kind), alpha=-1.5, out=empty((5, 7), kind))
    numpy.testing.assert_allclose(actual, expected, rtol=TOLERANCE[kind])


@pytest.mark.parametrize("kind", list(TOLERANCE))
def test_elu_of_negative_input_scale(kind):
    values = drawn((5, 7), 2, kind)
    expected = numpy.where(values > 0, 2 * values, 1.5 * 2 * numpy.expm1(-0.5 * values))
    actual = call("Elu", self=tensor(values, kind), alpha=1.5, scale=2.0, inputScale=-0.5, out=empty((5, 7), kind))
    numpy.testing.assert_allclose(actual, expected, rtol=TOLERANCE[kind])


@pytest.mark.parametrize("name", ["HardswishBackward", "HardswishBackwardV2", "ThresholdBackward"])
def test_gradient_that_nobody_wants(name):
    """Their pages let out be NULL."""
    number = {"threshold": 1.0} if name == "ThresholdBackward" else {}
    given = {"gradOutput": tensor(numpy.ones(3)), "self": tensor(numpy.full(3, 5)), **number}
    assert call(name, **given, out=None) == ()
    numpy.testing.assert_array_equal(call(name, **given, out=empty((3,))), numpy.ones(3))


def test_fast_gelu_backward_is_the_slope():
    torch = pytest.importorskip("torch")
    values, upstream = drawn((5, 7), 3), drawn((5, 7), 4)
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    (x / (1 + torch.exp(-1.702 * x))).backward(torch.tensor(upstream, dtype=torch.float64))
    actual = call("FastGeluBackward", gradOutput=tensor(upstream), self=tensor(values), gradInput=empty((5, 7)))
    numpy.testing.assert_allclose(actual, x.grad.numpy(), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("shape", [(0,), (3, 1)])
def test_log_sigmoid_ignores_its_buffer(shape):
    """Whatever it is, also of a type that nothing computes in."""
    values = drawn((5, 7), 5)
    buffer = Tensor(F32, numpy.zeros(shape), code=lib.ACL_STRING)
    slopes = call("LogSigmoidBackward", gradOutput=tensor(numpy.ones((5, 7))), self=tensor(values), buffer=buffer,
                  gradInput=empty((5, 7)))  # fmt: skip
    numpy.testing.assert_allclose(slopes, 1 / (1 + numpy.exp(values)), rtol=TOLERANCE["F32"])
    actual, _ = call("LogSigmoidForward", self=tensor(values), out=empty((5, 7)), buffer=buffer)
    numpy.testing.assert_allclose(actual, -numpy.logaddexp(0, -values), rtol=TOLERANCE["F32"])
