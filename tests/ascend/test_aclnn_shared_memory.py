"""Integers in the memory of an output: what a kernel has found good stays so, and results are those of tensors that lie
apart."""

import numpy as np
import pytest

from tests.ascend.blocks import blocked
from tests.ascend.calling import call, drawn, empty, in_memory_of, random, rounded, tensor, whole


@pytest.mark.parametrize("kind", ["I32", "I64"])
def test_indices_that_results_overwrite(kind):
    slopes, weights, indices = drawn((2, 3, 5), 1), drawn((2, 5, 3), 2), random(3).integers(0, 40, (2, 5, 3))
    expected, out = np.zeros((2, 3, 40)), empty((2, 3, 40))
    for batch, channel in np.ndindex(2, 3):
        np.add.at(expected[batch, channel], indices[batch], slopes[batch, channel][:, None] * weights[batch])
    found = call("ThreeInterpolateBackward", grad_x=tensor(slopes), idx=in_memory_of(out, indices, kind),
                 weight=tensor(weights), m=40, grad_y=out)  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=2.0**-23, atol=2.0**-40)


def test_indices_that_lie_in_what_is_updated():
    starts, updates = np.array([2, 0, 1]), whole((3, 1, 4), 1)
    data = tensor(whole((3, 3, 4), 2), "I32")
    indices = in_memory_of(data, starts, "I32")
    expected = data.values()
    for entry, start in enumerate(starts):
        expected[entry, start] = updates[entry]
    found = call("InplaceScatterUpdate", data=data, indices=indices, updates=tensor(updates, "I32"), axis=-2)
    np.testing.assert_array_equal(found, expected)


def test_views_that_a_plan_makes_of_one_operand():
    """They move together."""
    a, b, out = whole((2, 7, 8), 1), whole((2, 8, 8), 2), empty((7, 8), "BF16")
    rows, columns = rounded(random(3).uniform(0.5, 2, (2, 7)), "F32"), rounded(random(4).uniform(0.5, 2, 8), "BF16")
    found = call("QuantMatmulReduceSumWeightNz", x1=in_memory_of(out, a, "I8"), x2=blocked(b, "I8"),
                 x1Scale=tensor(rows), x2Scale=tensor(columns, "BF16"), yScale=None, x1Offset=None, x2Offset=None,
                 yOffset=None, bias=None, transposeX1=False, transposeX2=False, groupSize=0, dims=[0], keepDims=False,
                 out=out)  # fmt: skip
    expected = sum((a[i] @ b[i]) * columns * rows[i][:, None] for i in range(2))
    np.testing.assert_array_equal(found, rounded(expected, "BF16"))
