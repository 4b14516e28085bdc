"""Lists of integers that functions with real results take: computed in float, cut off towards 0."""

from __future__ import annotations

import numpy
import pytest

from tests.ascend.calling import call, empty, tensor, whole


@pytest.mark.parametrize("name, function", [("ForeachExp", numpy.exp), ("ForeachExpm1", numpy.expm1)])
@pytest.mark.parametrize("kind", ["I16", "I8", "U8"])
def test_exponentials_of_integers(name, function, kind):
    values = [whole((3, 5), 1, 0 if kind == "U8" else -5, 5), whole((7,), 2, 0, 5), numpy.empty((0,))]
    actual = call(name, x=[tensor(item, kind, "gaps") for item in values], out=[empty(item.shape, kind) for item in values])
    for item, found in zip(values, actual):
        numpy.testing.assert_array_equal(found, numpy.trunc(function(item)))
