"""Numbers of fp_/hp_binarycrossentropygrad_s/_p against float64, for all sizes, masks and aliases."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.ftdsp.calls import ELEMENT, Input, Invocation, Output, Value, clear, compute
from understudy.ftdsp import last_error

SIZES = [1, 7, 1023, 1025, 100003]


def random_inputs(prefix, count, reduction, seed=0):
    """Predictions in [1e-3, 1 - 1e-3]: nearer to the ends the inputs' own rounding hides what is tested."""
    random = numpy.random.default_rng(seed)
    element = ELEMENT[prefix]
    x = random.uniform(1e-3, 1 - 1e-3, count).astype(element)
    y = random.uniform(0, 1, count).astype(element)
    w = random.uniform(0.1, 3, count).astype(element)
    d = random.uniform(-2, 2, count if reduction == 0 else 1).astype(element)
    return x, y, w, d


def parameters(reduction, x, y, w, d, weighted, dx=None):
    return [Value("input_size", len(x)), Value("reduction", reduction), Input("input_x", x), Input("input_y", y),
            Input("weight", w), Input("dloss", d), dx or Output("dx", len(x), x.dtype),
            Value("weight_defined", int(weighted))]


def oracle(reduction, x, y, w, d, weighted):
    x, y, w, d = (array.astype(numpy.float64) for array in (x, y, w, d))
    d = d / len(x) if reduction == 1 else d
    return d * (w if weighted else 1) * (x - y) / (x * (1 - x) + 1e-12)


def assert_close(result, expected):
    """At most seven roundings to float32, then one to the element type."""
    rounding = numpy.finfo(result.dtype).eps / 2 if result.dtype == numpy.float16 else 0
    smallest = numpy.finfo(result.dtype).smallest_subnormal
    allowed = numpy.abs(expected) * (rounding + 7 * 2.0**-24) * 1.01 + smallest
    assert (numpy.abs(result.astype(numpy.float64) - expected) <= allowed).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("prefix", ["fp", "hp"])
def test_against_float64(prefix, count, reduction, weighted):
    inputs = random_inputs(prefix, count, reduction)
    dx = compute(f"{prefix}_binarycrossentropygrad_s", parameters(reduction, *inputs, weighted))["dx"]
    assert_close(dx, oracle(reduction, *inputs, weighted))


@pytest.mark.parametrize("prefix", ["fp", "hp"])
def test_no_mask_changes_a_bit(prefix):
    for count in (5, 1025, 20011):
        inputs = random_inputs(prefix, count, 0)
        private = compute(f"{prefix}_binarycrossentropygrad_p", parameters(0, *inputs, True))["dx"].tobytes()
        for mask in range(1, 256):
            shared = compute(f"{prefix}_binarycrossentropygrad_s", parameters(0, *inputs, True), mask)["dx"]
            assert shared.tobytes() == private, mask


@pytest.mark.parametrize("space", ["s", "p"])
@pytest.mark.parametrize("alias", ["input_x", "input_y", "weight", "dloss"])
@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("prefix", ["fp", "hp"])
def test_in_place(prefix, reduction, alias, space):
    """dx may be any of the inputs; also the single dloss of mean and sum, wherever dx lies over it."""
    count = 5003
    inputs = random_inputs(prefix, count, reduction)
    symbol = f"{prefix}_binarycrossentropygrad_{space}"
    apart = compute(symbol, parameters(reduction, *inputs, True))["dx"]
    x, y, w, d = inputs
    if alias == "dloss" and reduction != 0:
        d = numpy.concatenate([d, numpy.zeros(count - 1, d.dtype)])  # room for dx
    clear()
    call = Invocation(symbol, parameters(reduction, x, y, w, d, True), {"dx": (alias, 0)},
                      0xFF if space == "s" else None)
    call.run()
    assert last_error().rule == ""
    assert call.output("dx", x.dtype).tobytes() == apart.tobytes()


@settings(deadline=None, max_examples=60)
@given(prefix=st.sampled_from(["fp", "hp"]), count=st.integers(1, 5000), reduction=st.integers(0, 2),
       weighted=st.booleans(), mask=st.integers(1, 255), seed=st.integers(0, 2**32 - 1))
def test_any_size_mask_and_values(prefix, count, reduction, weighted, mask, seed):
    inputs = random_inputs(prefix, count, reduction, seed)
    dx = compute(f"{prefix}_binarycrossentropygrad_s", parameters(reduction, *inputs, weighted), mask)["dx"]
    assert_close(dx, oracle(reduction, *inputs, weighted))


def test_against_pytorch():
    torch = pytest.importorskip("torch")
    x, y, w, d = random_inputs("fp", 4099, 1)
    prediction = torch.tensor(x, requires_grad=True)
    loss = torch.nn.functional.binary_cross_entropy(prediction, torch.tensor(y), torch.tensor(w), reduction="mean")
    loss.backward(torch.tensor(d[0]))
    dx = compute("fp_binarycrossentropygrad_s", parameters(1, x, y, w, d, True))["dx"]
    numpy.testing.assert_allclose(dx, prediction.grad.numpy(), rtol=2e-6)
