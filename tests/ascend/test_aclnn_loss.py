"""Losses and their gradients against the formulas in NumPy, and gradients against finite differences."""

import itertools

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, rounded, tensor

NONE, MEAN, SUM = range(3)
EPSILON = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8, "F64": 2.0**-53}


def close(actual, expected, kind, units=8):
    """Within `units` float32 roundings and the one to the type."""
    expected = np.asarray(expected, np.float64)
    scale = np.maximum(np.abs(expected), 1e-3)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    allowed = (units * 2.0**-24 + 1.01 * EPSILON[kind]) * scale
    same = np.nan_to_num(actual) == np.nan_to_num(expected)
    assert (same | np.isnan(expected) | (np.abs(actual - expected) <= allowed)).all(), (actual, expected)


# ---- classes -------------------------------------------------------------------------------------------------------------


def class_losses(x, target, weight, ignored):
    """Losses of the rows, their weights, and the gradient of the sum."""
    losses, weights, slope = np.zeros(target.shape), np.zeros(target.shape), np.zeros(x.shape)
    for at in np.ndindex(target.shape):
        y = int(target[at])
        if y != ignored and 0 <= y < weight.size:
            place = (*at[:1], y, *at[1:])
            losses[at], weights[at] = -weight[y] * x[place], weight[y]
            slope[place] = -weight[y]
    return losses, weights, slope


@pytest.mark.parametrize("name, shape", [("NLLLoss", (37, 5)), ("NLLLoss", (5,)), ("NLLLoss2d", (3, 5, 4, 7))])
def test_nll_loss(name, shape):
    rng = np.random.default_rng(len(shape))
    for kind, target_kind, layout, reduction in itertools.product(["F32", "F16", "BF16"], ["I64", "I32", "U8"],
                                                                  LAYOUTS[:2], [NONE, MEAN, SUM]):
        x = rounded(rng.uniform(-4, 0, shape), kind)
        rows = (*shape[:1], *shape[2:]) if len(shape) > 1 else ()
        weight = rounded(rng.uniform(0.5, 2, shape[1] if len(shape) > 1 else shape[0]), kind)
        target = rng.integers(0, 5, rows)
        ignored = 3 if rows else -100
        if rows and target_kind != "U8":
            target[0] = -100  # no class: counts as nothing
        losses, weights, slope = class_losses(x if rows else x[None], target if rows else target[None], weight, ignored)
        losses, weights, slope = (losses, weights, slope) if rows else (losses[0], weights[0], slope[0])
        total = weights.sum()
        expected = [losses, losses.sum() / total, losses.sum()][reduction]
        out, total_out = empty(rows if reduction == NONE else (1,) if layout == "row-major" else (), kind), empty((), kind)
        given = {"self": tensor(x, kind, layout), "target": tensor(target, target_kind, layout),
                 "weight": tensor(weight, kind, "gaps"), "reduction": reduction, "ignoreIndex": ignored}  # fmt: skip
        actual, weighed = call(name, **given, out=out, totalWeightOut=total_out)
        close(actual, np.reshape(expected, actual.shape), kind)
        close(weighed, total, kind)
        gradient = rounded(rng.uniform(-1, 1, rows if reduction == NONE else ()), kind)
        given_total = rounded(total, kind)
        scale = gradient / (given_total if reduction == MEAN else 1)
        expected = slope * (np.expand_dims(scale, 1) if rows and reduction == NONE else scale)
        actual = call(f"{name}Backward", gradOutput=tensor(gradient, kind), totalWeight=tensor(given_total, kind), **given,
                      out=empty(shape, kind, layout))  # fmt: skip
        close(actual, expected, kind)


def test_nll_loss_of_many_rows_is_the_same_for_any_number_of_rows_before_it():
    """Blocks of rows have partial sums: one more block than the last one fills."""
    rng = np.random.default_rng(1)
    x, target = rng.uniform(-4, 0, (4 * 4096 + 3, 3)), rng.integers(0, 3, 4 * 4096 + 3)
    x = rounded(x, "F32")
    out, total = call("NLLLoss", self=tensor(x), target=tensor(target, "I64"), weight=tensor(np.ones(3)), reduction=MEAN,
                      ignoreIndex=-100, out=empty(()), totalWeightOut=empty(()))  # fmt: skip
    assert total == target.size
    close(out, -x[np.arange(target.size), target].mean(), "F32", 1)


def test_nll_loss_of_nothing():
    def loss(reduction, ignored):
        return call("NLLLoss", self=tensor(np.ones((2, 3))), target=tensor([1, 1], "I64"), weight=tensor(np.ones(3)),
                    reduction=reduction, ignoreIndex=ignored, out=empty(()), totalWeightOut=empty(()))  # fmt: skip

    assert loss(SUM, 1) == (0, 0)
    assert np.isnan(loss(MEAN, 1)[0])
