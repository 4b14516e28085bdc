"""Calls that programs are known to make, where the page read literally would refuse them: numbers against NumPy."""

from __future__ import annotations

import numpy
import pytest

from tests.ascend.calling import call, drawn, empty, refusal, rounded, tensor, whole
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages
from tests.conformance.harness import last_rule


@pytest.mark.parametrize("name, function", [("Expm1", numpy.expm1), ("Log10", numpy.log10)])
def test_functions_of_double(name, function):
    values = numpy.abs(drawn((3, 5), 1, "F64")) + 0.1
    actual = call(name, self=tensor(values, "F64", "gaps"), out=empty((3, 5), "F64", "reversed"))
    numpy.testing.assert_allclose(actual, function(values), rtol=4e-16)


def test_inverse_of_double():
    values = drawn((2, 4, 4), 2, "F64") + 4 * numpy.eye(4)
    actual = call("Inverse", self=tensor(values, "F64", "reversed"), out=empty((2, 4, 4), "F64"))
    numpy.testing.assert_allclose(actual, numpy.linalg.inv(values), rtol=1e-12, atol=1e-12)


def test_lists_of_double():
    values = drawn((7,), 3, "F64")
    actual = call("ForeachMulScalar", x=[tensor(values, "F64")], scalar=tensor(numpy.array(0.1), "F64"),
                  out=[empty((7,), "F64")])  # fmt: skip
    numpy.testing.assert_array_equal(actual[0], values * 0.1)


def test_masked_fill_with_a_bfloat16():
    values, mask = drawn((2, 3), 4, "BF16"), numpy.array([[True, False, True], [False, False, True]])
    actual = call("InplaceMaskedFillTensor", selfRef=tensor(values, "BF16"), mask=tensor(mask, "B"),
                  value=tensor(numpy.array(0.3), "BF16"))  # fmt: skip
    numpy.testing.assert_array_equal(actual, numpy.where(mask, rounded(0.3, "BF16"), values))


@pytest.mark.parametrize("shape", [(1, 1, 1, 6), (2, 3), (6,)])
def test_sequences_of_any_rank(shape):
    actual = call("Arange", start=1.0, end=4.0, step=0.5, out=empty(shape, "F16", "reversed"))
    numpy.testing.assert_array_equal(actual, numpy.arange(1, 4, 0.5).reshape(shape))


@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("kind", ["I32", "B", "F32"])
def test_one_probability_for_all(kind, shape):
    for chance in (0.0, 1.0):
        actual = call("BernoulliTensor", self=empty((40, 50), kind), prob=tensor(numpy.full(shape, chance)), seed=3,
                      offset=4, out=empty((40, 50), kind, "gaps"))  # fmt: skip
        numpy.testing.assert_array_equal(actual, numpy.full((40, 50), chance))
    actual = numpy.asarray(call("InplaceBernoulliTensor", selfRef=empty((40, 50), kind),
                                prob=tensor(numpy.full(shape, 0.25)), seed=3, offset=4), float)  # fmt: skip
    assert abs(actual.mean() - 0.25) < 5 * numpy.sqrt(0.1875 / 2000)


def test_gradient_of_the_window_of_a_tensor_without_dimensions():
    torch = pytest.importorskip("torch")
    x = torch.tensor(2.5, requires_grad=True)
    x.unfold(0, 1, 3).backward(torch.tensor([7.0]))
    for kind, layout in (("F32", "row-major"), ("F16", "gaps"), ("BF16", "reversed")):
        actual = call("UnfoldGrad", gradOut=tensor(numpy.array([7.0]), kind, layout), inputSizes=[], dim=0, size=1, step=3,
                      gradIn=empty((), kind))  # fmt: skip
        numpy.testing.assert_array_equal(actual, x.grad.numpy())


@pytest.mark.parametrize("rule, changes", [
    ("gradOut/rank", {"shape": (1, 1)}), ("dim/value", {"dim": -1}), ("dim/value", {"dim": 1}), ("size/range", {"size": 0}),
    ("size/range", {"shape": (2,), "size": 2}), ("step/range", {"step": 0}), ("gradOut/windows", {"shape": (2,)}),
    ("gradIn/shape", {"out": (1,)}),
])  # fmt: skip
def test_other_windows_of_a_tensor_without_dimensions(rule, changes):
    given = {"shape": (1,), "dim": 0, "size": 1, "step": 1, "out": ()} | changes
    slopes, out = empty(given["shape"]), empty(given["out"])
    sizes = pages.made({"kind": "IA"}, [])
    found = refusal("UnfoldGrad", slopes, sizes, given["dim"], given["size"], given["step"], out)
    assert found == (561002, f"aclnnUnfoldGrad/{rule}")


@pytest.mark.parametrize("kind", ["F32", "BF16", "I64"])
def test_an_index_of_one_element_whose_axis_the_result_leaves_out(kind):
    values = drawn((4, 3, 5), 5, kind)

    def found(layout, shape, *indices):
        given = [None if at is None else tensor(numpy.array(at), "I32") for at in indices]
        return call("Index", self=tensor(values, kind, layout), indices=given, out=empty(shape, kind, layout))

    for layout in ("row-major", "reversed", "gaps"):
        numpy.testing.assert_array_equal(found(layout, (3, 5), [2]), values[2])
        numpy.testing.assert_array_equal(found(layout, (4,), None, [2], [-1]), values[:, 2, -1])
        numpy.testing.assert_array_equal(found(layout, (3,), [[1]], None, [[-1]]), values[1, :, -1])
        numpy.testing.assert_array_equal(found(layout, (4, 5), None, [2]), values[:, 2])
        assert found(layout, (), [2], [1], [-1]) == values[2, 1, -1]
        assert found(layout, (1,), 2, 1, -1) == [values[2, 1, -1]]


@pytest.mark.parametrize("index, shape", [([2, 1], (3, 5)), ([2], (5,)), ([2], (1, 1, 3, 5)), ([2], (3, 1))])
def test_other_results_of_an_index_of_one_element(index, shape):
    indices = pages.tensor_list([tensor(numpy.array(index), "I32")])
    assert refusal("Index", empty((4, 3, 5)), indices, empty(shape)) == (161002, "aclnnIndex/out/shape")


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("shape, dims", [((2, 3, 4, 16), 1), ((2, 3, 4), 2), ((6, 1), 1)])
def test_deviations_described_in_the_shape_of_what_is_normalized(kind, shape, dims):
    """Their memory has room for one number per line."""
    x, gamma = drawn(shape, 6, kind), numpy.ones(shape[-dims:])
    lines = shape[:-dims]
    usual = empty(lines)
    expected, deviations = empty(shape, kind), 1 / numpy.sqrt((x**2).mean(tuple(range(-dims, 0))) + 1e-6)
    support.run("aclnnRmsNorm", tensor(x, kind), tensor(gamma, kind), 1e-6, expected, usual)
    room = support.Tensor(support.F32, numpy.zeros(lines), shape=shape, storage=shape)
    y = empty(shape, kind)
    support.run("aclnnRmsNorm", tensor(x, kind), tensor(gamma, kind), 1e-6, y, room)
    assert y.bytes() == expected.bytes() and room.bytes() == usual.bytes()
    numpy.testing.assert_allclose(numpy.frombuffer(room.bytes(), numpy.float32), deviations.ravel(), rtol=2e-7)


@pytest.mark.parametrize("shape, strides", [((3, 4), (1, 3)), ((3, 4), (8, 2)), ((4, 3), (3, 1)), ((12,), (1,))])
def test_other_deviations_in_the_shape_of_what_is_normalized(shape, strides):
    room = support.blank(support.F32, shape, strides=strides)
    found = refusal("RmsNorm", empty((3, 4)), empty((4,)), 1e-6, empty((3, 4)), room)
    assert found == (561002, "aclnnRmsNorm/rstdOut/elements")


@pytest.mark.parametrize("integer", ["I8", "U8", "I16", "I32", "I64"])
def test_the_product_of_an_integer_and_a_half_is_formed_in_float(integer):
    """127 * 1000 is more than an F16 holds, 125 * 0.3330078125 needs more digits."""
    counts, halves = numpy.array([127, 125, 3]), rounded([1000.0, 1 / 3, 0.1], "F16")
    for self, other in [((counts, integer), (halves, "F16")), ((halves, "F16"), (counts, integer))]:
        actual = call("Mul", self=tensor(*self), other=tensor(*other), out=empty((3,), "F32", "gaps"))
        numpy.testing.assert_array_equal(actual, (counts * halves).astype(numpy.float32))
    assert call("Mul", self=tensor([127], integer), other=tensor([1000.0], "F16"), out=empty((1,), "F16")) == numpy.inf


@pytest.mark.parametrize("kind", ["U32", "U64", "U16", "C128"])
def test_zeros_of_every_type(kind):
    numpy.testing.assert_array_equal(call("InplaceZero", selfRef=tensor([3, 1, 2], kind, "gaps")), numpy.zeros(3))


@pytest.mark.parametrize("scale, zero", [("F32", "I32"), ("F64", "I64"), ("F16", "U8"), ("I64", "B")])
def test_scalars_of_any_type_that_converts(scale, zero):
    """Client conflicts, general rule 7: a number of Python comes as F64 or I64 whatever the tensor's type."""
    x, mean, deviation = whole((2, 3, 2, 4), 1), numpy.array([0.5, -1.0, 2.0]), numpy.array([4.0, 16.0, 1.0])
    own = call("QuantizedBatchNorm", input=tensor(x, "I8"), mean=tensor(mean), var=tensor(deviation**2), weight=None,
               bias=None, inputScale=(scale, 2), inputZeroPoint=(zero, 1), outputScale=(scale, 1), outputZeroPoint=(zero, 1),
               epsilon=0.0, output=empty((2, 3, 2, 4), "I8"))  # fmt: skip
    per_channel = lambda values: values[:, None, None]
    exact = (2 * (x - 1.0) - per_channel(mean)) / per_channel(deviation) + 1
    numpy.testing.assert_array_equal(own, numpy.clip(numpy.rint(exact), -128, 127))


@pytest.mark.parametrize("name, value", [("inputScale", 1j), ("outputScale", 1j), ("inputZeroPoint", 1.0),
                                         ("outputZeroPoint", ("F64", 1.0))])  # fmt: skip
def test_scalars_that_do_not_convert(name, value):
    entry = pages.operators()["QuantizedBatchNorm"]
    assert pages.result_of(entry, {**pages.legal(entry), name: value}).status == support.INVALID
    assert last_rule() == f"aclnnQuantizedBatchNorm/{name}/cast"


ABSENT = [(name, parameter["name"]) for name, entry in pages.operators().items() if name in pages.planned()
          for parameter in entry["parameters"]
          if parameter["optional"] and parameter["kind"] in ("IA", "BA", "TL")]  # fmt: skip


@pytest.mark.parametrize("name, absent", ABSENT)
def test_an_optional_array_or_list_of_no_entries_is_as_null(name, absent):
    """Client conflicts, general rule 10: clients pass either."""
    entry = pages.operators()[name]
    arguments = {**pages.legal(entry), absent: None}
    expected = pages.result_of(entry, arguments)
    rule = last_rule() if expected.status else None
    found = pages.result_of(entry, {**arguments, absent: []})
    assert (found.status, last_rule() if found.status else None) == (expected.status, rule)
