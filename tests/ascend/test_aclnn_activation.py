"""Activations with negative numbers, which bend them the other way: against the formulas of their pages in float64."""

from __future__ import annotations

import numpy
import pytest

from understudy.ascend import lib

from tests.ascend.calling import call, drawn, empty, refusal, rounded, tensor
from tests.conformance.ascend import pages
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


@pytest.mark.parametrize("kind", list(TOLERANCE))
@pytest.mark.parametrize("lambd", [-1.0, -0.0, 0.0, 0.25])
def test_a_negative_lambd_of_hardshrink_counts_as_0_in_its_gradient(kind, lambd):
    values, gradients = rounded([-1.5, -0.5, -0.1, 0, 0.1, 0.5, 1.5], kind), rounded(numpy.arange(1, 8), kind)
    actual = call("HardshrinkBackward", gradOutput=tensor(gradients, kind), self=tensor(values, kind), lambd=lambd,
                  gradInput=empty((7,), kind))  # fmt: skip
    numpy.testing.assert_array_equal(actual, numpy.where(numpy.abs(values) > max(lambd, 0), gradients, 0))


@pytest.mark.parametrize("kind", ["I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "B", "C64", "C128", "F16"])
def test_gradients_of_leaky_relu_convert_to_any_type(kind):
    """`out` may have these types by automatic cast, says a note of the page."""
    gradients, values = numpy.array([0.0, 3.75, 8.0, 100.5]), numpy.array([1.0, 2, -1, 3])
    actual = call("LeakyReluBackward", gradOutput=tensor(gradients), self=tensor(values), negativeSlope=0.5,
                  selfIsResult=False, out=empty((4,), kind, "gaps"))  # fmt: skip
    expected = numpy.array([0, 3.75, 4, 100.5])
    if kind == "B":
        expected = expected != 0
    elif kind[0] in "IU":
        expected = numpy.trunc(expected)
    numpy.testing.assert_array_equal(actual, expected)


def test_gradients_of_leaky_relu_of_another_type_are_refused():
    out = Tensor(F32, numpy.zeros(3), code=lib.ACL_STRING)
    arguments = [tensor(numpy.ones(3)), tensor(numpy.ones(3)), pages.scalar(0.5), False, out]
    assert refusal("LeakyReluBackward", *arguments) == (161002, "aclnnLeakyReluBackward/out/dtype")


@pytest.mark.parametrize("eps, expected", [
    (-1.0, [numpy.nan, numpy.inf, 16 / 3, 4, -numpy.inf, numpy.nan, numpy.nan, numpy.nan]),
    (0.0, [0, numpy.inf, 16 / 3, 4, -numpy.inf, 0, 0, numpy.nan]), (0.3, [0, 0, 0, 4, 0, 0, 0, numpy.nan]),
    (1.0, [0, 0, 0, 0, 0, 0, 0, numpy.nan]), (2.0, [0, 0, 0, 0, 0, 0, 0, numpy.nan]),
    (numpy.inf, [0, 0, 0, 0, 0, 0, 0, numpy.nan]), (numpy.nan, [numpy.nan] * 8),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["F32", "F16"])
def test_gradients_of_logit_by_eps(eps, expected, kind):
    """Outside [eps, 1 - eps] they are 0, where an eps of 1 or more leaves nothing inside; eps NaN gives NaN."""
    x = [-0.5, 0, 0.25, 0.5, 1, 1.5, numpy.inf, numpy.nan]
    dy = [1, 1, 1, 1, -1, 1, 1, 1]
    actual = call("LogitGrad", x=tensor(x, kind), dy=tensor(dy, kind), eps=eps, out=empty((8,), kind))
    numpy.testing.assert_allclose(actual, expected, rtol=TOLERANCE[kind])
