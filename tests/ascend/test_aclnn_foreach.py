"""Lists: integers that functions with real results take are computed in float and cut off towards 0; long lists are checked to
their ends."""

from __future__ import annotations

import numpy
import pytest

from tests.ascend.calling import call, empty, fault, refusal, tensor, whole
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
