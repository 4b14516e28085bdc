"""Every NumPy function called as the operator's page says a call is legal: shapes and types of what it returns are those of
the page's own outputs."""

import numpy
import pytest

from understudy.ascend import operator_text, ops, page_ops
from understudy.kit import catalogue

from tests.conformance.ascend import communicators, pages

NUMPY = {kind: numpy.dtype(name) for kind, name in operator_text.TYPES.items()}


def array_of(spec: pages.Shaped) -> numpy.ndarray:
    made = spec.values().astype(NUMPY[spec.dtype]).reshape(spec.shape)
    return numpy.ascontiguousarray(made.swapaxes(-1, -2)).swapaxes(-1, -2) if spec.turned else made


def argument(parameter: dict, value):
    if parameter["kind"] == "S" and isinstance(value, list):  # a type, a number
        return NUMPY[value[0]].type(value[1])
    if parameter["kind"] == "str":
        communicators.be_there(value)
    if value is None or parameter["kind"] not in operator_text.TENSORS:
        return NUMPY[value] if parameter["kind"] == "dt" and value in NUMPY else value
    if parameter["kind"] == "T":
        return array_of(value)
    return [None if item is None else array_of(item) for item in value]


def shape_of(item) -> tuple[int, ...]:
    """Results of one element may have any rank where the page says so."""
    return () if numpy.prod(item.shape) == 1 else tuple(item.shape)


def each(value) -> list:
    return value if isinstance(value, list) else [value]


CALLED = {name: entry for name, entry in page_ops.operators().items()
          if entry["function"] not in catalogue.refused_functions()}


def given_to(entry: dict, legal: dict) -> dict:
    return {operator_text.python_name(p["name"]): argument(p, legal[p["name"]]) for p in operator_text.inputs(entry)}


@pytest.mark.parametrize("name", CALLED)
def test_a_legal_call(name):
    entry = CALLED[name]
    legal = pages.legal(entry)
    given = given_to(entry, legal)
    shown = [p for p in operator_text.results(entry) if legal[p["name"]] is not None]
    if operator_text.takes_shape(entry):
        given["out_shape"] = legal[shown[0]["name"]].shape
    if entry["result"] == shown[0]["name"]:  # only the caller knows its type
        given["out_dtype"] = NUMPY[legal[shown[0]["name"]].dtype]
    made = getattr(ops, name)(**given)
    made = made if isinstance(made, tuple) else (made,)
    assert len(made) == len(operator_text.results(entry))
    of_name = dict(zip((p["name"] for p in operator_text.results(entry)), made))
    for parameter in shown:
        result, spec = of_name[parameter["name"]], legal[parameter["name"]]
        if operator_text.is_found(entry, parameter):
            assert result.ndim == len(spec.shape) and result.size <= numpy.prod(spec.shape), parameter["name"]
        else:
            assert [shape_of(item) for item in each(result)] == [shape_of(item) for item in each(spec)], parameter["name"]
        kinds = {NUMPY[kind].name for kind in pages.listed_types(entry, parameter["name"]) if kind in NUMPY}
        assert not kinds or {item.dtype.name for item in each(result)} <= kinds, parameter["name"]


def legal_with(entry: dict, subject: str) -> dict:
    """A legal call with an operand that may be left out."""
    kinds = {p["name"]: p["kind"] for p in entry["parameters"]}
    return pages.legal(entry) | {name: pages.parsed(value, kinds[name]) for name, value in entry["given"][subject].items()}


def has_numpy_types(legal: dict) -> bool:
    return all(item.dtype in NUMPY for value in legal.values() for item in each(value) if isinstance(item, pages.Shaped))


GIVEN = [(name, p["name"]) for name, entry in CALLED.items() for p in operator_text.inputs(entry)
         if p["name"] in entry["given"] and has_numpy_types(legal_with(entry, p["name"]))]  # fmt: skip


@pytest.mark.parametrize("name, subject", GIVEN)
def test_a_legal_call_with_what_may_be_left_out(name, subject):
    """The types of the results follow what is given."""
    entry = CALLED[name]
    legal = legal_with(entry, subject)
    shown = [p for p in operator_text.results(entry) if legal[p["name"]] is not None]
    given = given_to(entry, legal)
    if operator_text.takes_shape(entry):
        given["out_shape"] = legal[shown[0]["name"]].shape
    if entry["result"] == shown[0]["name"]:
        given["out_dtype"] = NUMPY[legal[shown[0]["name"]].dtype]
    made = getattr(ops, name)(**given)
    of_name = dict(zip((p["name"] for p in operator_text.results(entry)), made if isinstance(made, tuple) else (made,)))
    for parameter in shown:
        result, spec = of_name[parameter["name"]], legal[parameter["name"]]
        assert [item.dtype for item in each(result)] == [NUMPY[item.dtype] for item in each(spec)], parameter["name"]


@pytest.mark.parametrize("name", [name for name in CALLED if name.startswith("moe_distribute_dispatch")])
def test_tokens_that_are_quantized_on_their_way_are_bytes(name):
    """Numbers that are all the same are all the largest."""
    entry = CALLED[name]
    legal = pages.legal(entry)
    given = given_to(entry, legal) | {"quantMode": 2}
    given["x"] = numpy.full_like(given["x"], 0.5)
    room = legal[operator_text.results(entry)[0]["name"]].shape
    numpy.testing.assert_array_equal(getattr(ops, name)(**given, out_shape=room)[0], numpy.full(room, 127, numpy.int8), strict=True)


def test_numbers_get_the_type_of_the_page():
    """A page that wants int32 and float32 gets them of Python's numbers, and of NumPy's."""
    x, zeros, ones = numpy.arange(24,
                                  dtype=numpy.int8).reshape(1, 3, 2, 4), numpy.zeros(3, numpy.float32), numpy.ones(3, numpy.float32)  # fmt: skip
    expected = numpy.rint((x - 1) * 0.5 / numpy.sqrt(1.25) / 0.25 - 2)
    for one in (1, numpy.int64(1), numpy.int32(1), numpy.int8(1)):
        made = ops.quantized_batch_norm(x, zeros, ones, 0.5, one, numpy.float64(0.25), -2, 0.25)
        numpy.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i2", "i4", "i8", "c8", "c16"])
def test_the_other_byte_order_is_the_same_type(kind):
    x = numpy.arange(1, 7).reshape(2, 3).astype(kind)
    other = x.astype(x.dtype.newbyteorder())
    for left, right in ((other, x), (x, other), (other, other)):
        numpy.testing.assert_array_equal(ops.add(left, right), x + x, strict=True)


NUMBERS = [2.5, numpy.float16(2.5), numpy.float32(2.5), numpy.array(2.5), numpy.array(2.5, numpy.float32)]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{type(number).__name__} {getattr(number, 'dtype', '')}")
def test_a_number_of_any_kind_counts_for_the_result(number):
    """A fraction makes float32 of integers, whoever brings it."""
    made = ops.adds(numpy.arange(3, dtype=numpy.int32), number)
    numpy.testing.assert_array_equal(made, numpy.float32([2.5, 3.5, 4.5]), strict=True)
    assert ops.adds(numpy.ones(1, numpy.float32), numpy.complex64(1j)).dtype == numpy.complex64


def test_lists_of_numbers_are_anything_that_has_them():
    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    for dims in ([0], (0,), numpy.array([0]), range(1), (dim for dim in [0]), [numpy.int32(0)]):
        numpy.testing.assert_array_equal(ops.reduce_sum(x, dims), x.sum(0))
    numpy.testing.assert_array_equal(ops.reduce_sum(x, [0], numpy.True_), x.sum(0, keepdims=True))


@pytest.mark.parametrize("call, error, words", [
    (lambda x: ops.adds(x, x), TypeError, "other: needed is a number, not ndarray"),
    (lambda x: ops.add(None, x), TypeError, "self: needed is an array, not NoneType"),
    (lambda x: ops.adds(x, None), TypeError, "other: needed is a number, not NoneType"),
    (lambda x: ops.adds(x, "2"), TypeError, "other: needed is a number, not str"),
    (lambda x: ops.adds(x, 2**63), OverflowError, "too large"),
    (lambda x: ops.adds(x, numpy.uint64(2**63)), OverflowError, "too large"),
    (lambda x: ops.softmax(x, None), TypeError, "dim: needed is a number"),
    (lambda x: ops.softmax(x, 1.5), TypeError, "dim: 'float' object"),
    (lambda x: ops.reduce_sum(x, 0), TypeError, "dims: 'int' object is not iterable"),
    (lambda x: ops.reduce_sum(x, [0.5]), TypeError, "dims: 'float' object"),
    (lambda x: ops.cat(3, 0), TypeError, "tensors: 'int' object is not iterable"),
    (lambda x: ops.foreach_add_scalar_list([x], ["a"]), TypeError, "scalars: needed is a number"),
    (lambda x: ops.cast(x, "U1"), TypeError, "no counterpart in aclDataType"),
    (lambda x: ops.ascend_quant(x, x, False, 1, 2), TypeError, "roundMode: needed is text, not int"),
])  # fmt: skip
def test_an_argument_that_does_not_fit_is_told_by_name(call, error, words):
    with pytest.raises(error, match=words):
        call(numpy.ones(3, numpy.float32))
