"""Lists: integers that functions with real results take are computed in float and cut off towards 0; long lists are checked to
their ends."""

from __future__ import annotations

import itertools

import numpy
import pytest

from tests.ascend.calling import call, empty, fault, refusal, rounded, tensor, whole
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor, ffi, lib, ok


@pytest.mark.parametrize("name, function", [("ForeachExp", numpy.exp), ("ForeachExpm1", numpy.expm1)])
@pytest.mark.parametrize("kind", ["I16", "I8", "U8"])
def test_exponentials_of_integers(name, function, kind):
    values = [whole((3, 5), 1, 0 if kind == "U8" else -5, 5), whole((7,), 2, 0, 5), numpy.empty((0,))]
    actual = call(name, x=[tensor(item, kind, "gaps") for item in values], out=[empty(item.shape, kind) for item in values])
    for item, found in zip(values, actual):
        numpy.testing.assert_array_equal(found, numpy.trunc(function(item)))


LENGTH = 300  # views of so long lists are looked up by several threads


def lost(made: Tensor) -> Tensor:
    """The tensor, whose memory has been freed."""
    ok(lib.aclrtFree(made.memory.address))
    made.memory.size, made.memory.address = 0, ffi.NULL
    return made


@pytest.mark.parametrize("dead", [(0, 299), (70, 71), (130, 290), (299,)])
def test_of_the_tensors_that_have_lost_their_memory_the_first_is_named(dead):
    x = [tensor(numpy.ones(5)) for _ in range(LENGTH)]
    addresses = [int(ffi.cast("uintptr_t", x[place].memory.address)) for place in dead]
    for place in dead:
        lost(x[place])
    out = [empty((5,)) for _ in range(LENGTH)]
    before = [item.bytes() for item in out]
    sentence = fault("ForeachAbs", pages.tensor_list(x), pages.tensor_list(out))
    assert f"x: {addresses[0]:#x} is 0 bytes into" in sentence and "freed" in sentence
    assert [item.bytes() for item in out] == before


@pytest.mark.parametrize("last, rule", [
    (lambda: tensor(numpy.ones(1), "F64"), (161002, "dtype")),
    (lambda: tensor(numpy.ones(1), "F16"), (561002, "uniform")),
    (lambda: tensor(numpy.ones((1,) * 9)), (561002, "rank")),
    (lambda: tensor(numpy.ones((1,) * 8)), None),
])  # fmt: skip
def test_the_last_of_many_is_checked_like_the_first(last, rule):
    def lists():
        made = last()
        x = [*(tensor(numpy.ones(2)) for _ in range(LENGTH - 1)), made]
        kind = "F16" if made.kind.name == "float16" else "F64" if made.kind.name == "float64" else "F32"
        out = [*(empty((2,)) for _ in range(LENGTH - 1)), empty(made.shape, kind)]
        return x, out

    x, out = lists()
    if rule is None:
        for found in call("ForeachAbs", x=x, out=out):
            numpy.testing.assert_array_equal(found, numpy.ones(found.shape))
    else:
        status, check = rule
        assert refusal("ForeachAbs", pages.tensor_list(x), pages.tensor_list(out)) == (status, f"aclnnForeachAbs/x/{check}")


@pytest.mark.parametrize("layout", ["row-major", "gaps", "reversed"])
@pytest.mark.parametrize("of_x", ["row-major", "reversed"])
@pytest.mark.parametrize("shape, room", [
    ((2,), (2, 1)), ((2,), (3,)), ((2,), (2, 2)), ((), (1,)), ((1,), ()), ((3, 5), (15,)), ((3, 5), (4, 4)), ((7,), (2, 3, 4)),
    ((13,), (2, 3, 4)), ((2, 3), (3, 2)), ((0, 3), (2, 2)), ((0,), (3, 0)), ((130, 150), (150, 131)),
])  # fmt: skip
def test_results_are_the_first_elements_of_a_larger_output(shape, room, of_x, layout):
    """numel(out[i]) >= numel(x[i]), says the page's table."""
    values = [whole(shape, 1), whole((2, 3), 2)]
    out = [empty(room, "F32", layout), empty((2, 3))]
    before = [numpy.array(item.values()) for item in out]
    expected = before[0].ravel().copy()
    expected[: values[0].size] = numpy.abs(values[0]).ravel()
    found = call("ForeachAbs", x=[tensor(item, "F32", of_x) for item in values], out=out)
    numpy.testing.assert_array_equal(found[0].ravel(), expected)
    numpy.testing.assert_array_equal(found[1], numpy.abs(values[1]))


def test_room_for_the_results_of_several_lists():
    """A scalar before the list, a list of numbers and a tensor of numbers: results have the shape of the tensors."""
    x = whole((2, 3), 1, 1, 4).astype(float)
    for layout in "row-major", "gaps":
        two = [empty((7,), "F32", layout), empty((3, 2), "F32", layout)]
        first, second = call("ForeachPowScalarAndTensor", scalar=2.0, x=[tensor(x), tensor(x)], out=two)
        numpy.testing.assert_array_equal(first[:6], 2 ** x.ravel())
        numpy.testing.assert_array_equal(second.ravel(), 2 ** x.ravel())
        lists = {name: [tensor(x), tensor(x)] for name in ("x1", "x2", "x3")}
        first, second = call("ForeachAddcmulList", **lists, scalars=tensor([2.0, 3.0]),
                             out=[empty((7,), "F32", layout), empty((3, 2), "F32", layout)])  # fmt: skip
        numpy.testing.assert_array_equal(first[:6], (x + x * x * 2).ravel())
        numpy.testing.assert_array_equal(second.ravel(), (x + x * x * 3).ravel())


@pytest.mark.parametrize("name, lists, status", [("ForeachAbs", 1, 561002), ("ForeachAddListV2", 2, 161002)])
def test_an_output_needs_room_for_all_results(name, lists, status):
    def found(shape):
        x = [pages.tensor_list([tensor(numpy.ones((2, 3)))]) for _ in range(lists)]
        scalar = [pages.scalar(1.0)] if lists > 1 else []
        return refusal(name, *x, *scalar, pages.tensor_list([empty(shape)]))

    for shape in [(5,), (), (2, 2), (0, 9)]:
        assert found(shape) == (status, f"aclnn{name}/out/same-shape")
    assert found((1,) * 9) == (status, f"aclnn{name}/out/same-shape")
    assert found((6, *(1,) * 8)) == (status, f"aclnn{name}/out/rank")


@pytest.mark.parametrize("source, kind", [("F32", "F16"), ("F32", "BF16"), ("F16", "F32"), ("F32", "F32"), ("I32", "I32")])
@pytest.mark.parametrize("layout", ["row-major", "gaps"])
def test_copies_convert_between_floats(source, kind, layout):
    values = [rounded(whole((3, 5), 1) / 7, source), rounded(whole((4,), 2) / 7, source)]
    found = call("ForeachCopy", x=[tensor(item, source, layout) for item in values],
                 out=[empty((3, 5), kind, layout), empty((7,), kind, layout)])  # fmt: skip
    numpy.testing.assert_array_equal(found[0], rounded(values[0], kind))
    numpy.testing.assert_array_equal(found[1][:4], rounded(values[1], kind))


@pytest.mark.parametrize("source, kind", [("BF16", "F32"), ("BF16", "F16"), ("F16", "BF16"), ("F32", "F64"), ("I32", "I64")])
def test_other_copies_keep_their_type(source, kind):
    lists = [pages.tensor_list([tensor(numpy.ones(3), source)]), pages.tensor_list([empty((3,), kind)])]
    assert refusal("ForeachCopy", *lists) == (161002, "aclnnForeachCopy/out/same-dtype")


SPECIAL = [-numpy.inf, numpy.inf, numpy.nan, -0.0, 0.0]
ROUNDINGS = {2: numpy.floor, 3: numpy.ceil, 5: numpy.trunc, 7: lambda x: x - numpy.trunc(x), 0: lambda x: x, 8: lambda x: x,
             -1: lambda x: x}  # fmt: skip


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "I16"])
def test_modes_of_rounding(kind, mode):
    """7 is the fractional part, which of an infinity is NaN and of a whole number 0; numbers that are no mode round nothing."""
    items = [whole((3, 37), seed, -40, 41) / 16 for seed in (1, 2)]
    if kind == "I16":
        items = [16 * item for item in items]
    else:
        items[1].flat[: len(SPECIAL)] = SPECIAL
        items[1].flat[-2:] = 2.0**30, -1.75 * 2.0**7  # without fractions, in half precision the first is infinite
    with numpy.errstate(over="ignore", invalid="ignore"):
        values = [rounded(item, kind) for item in items]
        expected = [ROUNDINGS[mode](numpy.asarray(item, "f8")) for item in values]
    calls = [("RoundOffNumber", tensor([mode], "I8")), ("RoundOffNumberV2", ("I8", mode)), ("RoundOffNumberV2", ("I64", mode))]
    for (name, number), layout in itertools.product(calls, ["row-major", "gaps"]):
        found = call(f"Foreach{name}", x=[tensor(item, kind, layout) for item in values], roundMode=number,
                     out=[empty(item.shape, kind) for item in values])  # fmt: skip
        for actual, one in zip(found, expected):
            numpy.testing.assert_array_equal(actual.astype("f8"), one)
            assert kind == "I16" or (numpy.signbit(actual) == numpy.signbit(one))[one == 0].all()
