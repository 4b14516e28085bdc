"""Losses and their gradients against the formulas in NumPy, and gradients against finite differences."""

import itertools

import numpy as np
import pytest

from understudy.ascend import lib

from tests.ascend.calling import LAYOUTS, call, empty, rounded, tensor
from tests.conformance.ascend.aclnn_support import F32, blank, expanded, ok, plan
from tests.conformance.harness import last_rule

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


# ---- single elements -----------------------------------------------------------------------------------------------------


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def smooth_l1(x, y, beta=0.75):
    size = np.abs(x - y)
    return np.where(size < beta, 0.5 * size**2 / beta, size - 0.5 * beta)


def cross_entropy(x, y, weight=1.0):
    return -weight * (y * np.log(x) + (1 - y) * np.log(1 - x))


def logits_cross_entropy(x, y, weight=1.0, positive=1.0):
    return weight * (positive * y * softplus(-x) + (1 - y) * softplus(x))


def kl_div(x, y, log_target):
    return np.exp(y) * (y - x) if log_target else y * (np.log(y) - x)


# Loss: formula, ranges of prediction and target, further arguments.
LINE, UNIT = (-3, 3), (0.05, 0.95)
LOSSES = {
    "MseLoss": (lambda x, y: (x - y) ** 2, LINE, LINE, {}),
    "MseLossOut": (lambda x, y: (x - y) ** 2, LINE, LINE, {}),
    "L1Loss": (lambda x, y: np.abs(x - y), LINE, LINE, {}),
    "SmoothL1Loss": (smooth_l1, LINE, LINE, {"beta": 0.75}),
    "BinaryCrossEntropy": (cross_entropy, UNIT, UNIT, {"weight": None}),
    "BinaryCrossEntropyWithLogits": (logits_cross_entropy, LINE, UNIT, {"weightOptional": None, "posWeightOptional": None}),
    "KlDiv": (lambda x, y: kl_div(x, y, False), LINE, UNIT, {"logTarget": False}),
    "KlDiv log": (lambda x, y: kl_div(x, y, True), LINE, LINE, {"logTarget": True}),
}
KINDS = ["F32", "F16", "BF16"]


def drawn(rng, shape, limits, kind):
    return rounded(rng.uniform(*limits, shape), kind)


def reduced(losses, reduction, first):
    return [losses, losses.mean(), losses.sum(), losses.sum() / first][reduction]


@pytest.mark.parametrize("case", LOSSES)
def test_losses(case):
    name, rng = case.split()[0], np.random.default_rng(len(case))
    formula, x_limits, y_limits, more = LOSSES[case]
    broadcasts = name in ("MseLoss", "MseLossOut", "L1Loss", "SmoothL1Loss", "KlDiv")
    shapes = [((3, 1031), (3, 1031)), ((), ()), ((40, 700), (40, 700))]
    shapes += [((5, 1, 4), (3, 1))] if broadcasts else []
    for (index, (x_shape, y_shape)), reduction in itertools.product(enumerate(shapes), [NONE, MEAN, SUM, 3]):
        if reduction == 3 and name != "KlDiv":
            continue
        kind, layout = KINDS[(2 * index + reduction) % 3], LAYOUTS[(index + reduction) % 3]
        x, y = drawn(rng, x_shape, x_limits, kind), drawn(rng, y_shape, y_limits, kind)
        losses = formula(x, y)
        expected = reduced(losses, reduction, losses.shape[0] if losses.ndim else 1)
        result = "result" if name == "SmoothL1Loss" else "out"
        actual = call(name, self=tensor(x, kind, layout), target=tensor(y, kind, layout), reduction=reduction, **more,
                      **{result: empty(np.shape(expected), kind, layout)})  # fmt: skip
        np.testing.assert_allclose(actual, expected, rtol=1.01 * EPSILON[kind] + 2e-6, atol=2e-6)


def test_weights_and_mixed_types():
    rng = np.random.default_rng(3)
    x, y, w, p = (drawn(rng, (6, 50), limits, "F16") for limits in [LINE, UNIT, (0.5, 2), (0.5, 2)])
    for weight, positive in [(w, None), (None, p), (w[:1], p[0]), (w, p)]:
        expected = logits_cross_entropy(x, y, 1 if weight is None else weight, 1 if positive is None else positive)
        for reduction in (NONE, MEAN, SUM):
            wanted = reduced(expected, reduction, 6)
            shape = (1,) if reduction == SUM else np.shape(wanted)  # either form of one element
            actual = call("BinaryCrossEntropyWithLogits", self=tensor(x), target=tensor(y), reduction=reduction,
                          weightOptional=None if weight is None else tensor(weight),
                          posWeightOptional=None if positive is None else tensor(positive), out=empty(shape))  # fmt: skip
            np.testing.assert_allclose(actual, np.reshape(wanted, shape), rtol=2e-6, atol=2e-6)
    weighted = call("BinaryCrossEntropy", self=tensor(y), target=tensor(y), weight=tensor(w), reduction=SUM, out=empty(()))
    np.testing.assert_allclose(weighted, cross_entropy(y, y, w).sum(), rtol=2e-6)
    mixed = call("MseLoss", self=tensor(x, "F16"), target=tensor(y, "F32"), reduction=MEAN, out=empty((), "F32"))
    np.testing.assert_allclose(mixed, ((x - y) ** 2).mean(), rtol=2e-6)
    whole = np.array([[2**40, -5], [7, 2**24 + 1]])
    distances = call("L1Loss", self=tensor(whole, "I64"), target=tensor([[1, 1]], "I64"), reduction=SUM,
                     out=empty((), "I64"))  # fmt: skip
    assert distances == 2**40 - 1 + 6 + 6 + 2**24


def test_certain_predictions():
    """Logarithms end at -100; a divergence from 0 is not a number."""
    losses = call("BinaryCrossEntropy", self=tensor([0.0, 1, 0, 1]), target=tensor([0.0, 1, 1, 0]), weight=None,
                  reduction=NONE, out=empty((4,)))  # fmt: skip
    np.testing.assert_array_equal(losses, [0, 0, 100, 100])
    slopes = call("BinaryCrossEntropyBackward", gradOutput=tensor(1.0), self=tensor([0.0, 1, 0]), target=tensor([0.0, 1, 1]),
                  weightOptional=None, reduction=NONE, out=empty((3,)))  # fmt: skip
    np.testing.assert_allclose(slopes, [0, 0, -1e12], rtol=1e-6)
    assert np.isnan(call("KlDiv", self=tensor([1.0]), target=tensor([0.0]), reduction=NONE, logTarget=False,
                         out=empty((1,))))  # fmt: skip
    large = call("BinaryCrossEntropyWithLogits", self=tensor([1000.0, -1000]), target=tensor([0.0, 1]), weightOptional=None,
                 posWeightOptional=None, reduction=NONE, out=empty((2,)))  # fmt: skip
    np.testing.assert_array_equal(large, [1000, 1000])


@pytest.mark.parametrize("name", ["MseLoss", "SoftMarginLoss"])
def test_losses_of_more_than_can_be_counted(name):
    """The sum has one element; it is of 2^62 of them, or, one step further, of 2^63."""
    rows, out = expanded(F32, (2**31, 1)), blank(F32, ())
    status, _, executor = plan(f"aclnn{name}", rows, expanded(F32, (1, 2**31)), SUM, out)
    ok(status)
    ok(lib.aclDestroyAclOpExecutor(executor))
    assert plan(f"aclnn{name}", rows, expanded(F32, (1, 2**32)), SUM, out)[0] == 161002
    assert last_rule() == f"aclnn{name}/target/broadcast"


def test_losses_of_nothing():
    for reduction, expected in [(MEAN, np.nan), (SUM, 0)]:
        actual = call("MseLoss", self=tensor(np.zeros((0, 3))), target=tensor(np.zeros((0, 3))), reduction=reduction,
                      out=empty(()))  # fmt: skip
        np.testing.assert_array_equal(actual, expected)


# Gradient: formula of the loss, its arguments in order with the ranges, the one it is taken by, further arguments, output.
GRADIENTS = {
    "MseLossBackward": (lambda x, y: (x - y) ** 2, {"self": LINE, "target": LINE}, "self", {}, "out"),
    "L1LossBackward": (lambda x, y: np.abs(x - y), {"self": LINE, "target": LINE}, "self", {}, "gradInput"),
    "SmoothL1LossBackward": (smooth_l1, {"self": LINE, "target": LINE}, "self", {"beta": 0.75}, "gradInput"),
    "BinaryCrossEntropyBackward": (cross_entropy, {"self": UNIT, "target": UNIT, "weightOptional": UNIT}, "self", {}, "out"),
    "BinaryCrossEntropyWithLogitsBackward": (
        logits_cross_entropy, {"self": LINE, "target": UNIT, "weightOptional": UNIT, "posWeightOptional": UNIT}, "self",
        {}, "out"),
    "BinaryCrossEntropyWithLogitsTargetBackward": (
        logits_cross_entropy, {"self": LINE, "target": UNIT, "weightOptional": UNIT, "posWeightOptional": UNIT},
        "target", {},
        "gradTarget"),
    "KlDivBackward": (lambda x, y: kl_div(x, y, False), {"self": LINE, "target": UNIT}, "self", {"logTarget": False}, "out"),
    "KlDivBackward log": (lambda x, y: kl_div(x, y, True), {"self": LINE, "target": LINE}, "self", {"logTarget": True},
                          "out"),
    "KlDivTargetBackward": (
        lambda x, y: kl_div(x, y, False), {"self": LINE, "target": UNIT}, "target", {"logTarget": False}, "gradTarget"),
    "KlDivTargetBackward log": (
        lambda x, y: kl_div(x, y, True), {"self": LINE, "target": LINE}, "target", {"logTarget": True}, "gradTarget"),
}  # fmt: skip


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients_are_slopes_of_the_losses(case):
    """Central differences of the loss in float64."""
    name, rng = case.split()[0], np.random.default_rng(len(case))
    formula, inputs, by, more, output = GRADIENTS[case]
    incoming = "gradOut" if name == "SmoothL1LossBackward" else "gradOutput"
    for index, reduction in enumerate([NONE, MEAN, SUM, 3] if name.startswith("Kl") else [NONE, MEAN, SUM]):
        kind, layout = KINDS[index % 3], LAYOUTS[index % 3]
        values = {key: drawn(rng, (9, 47), limits, kind) for key, limits in inputs.items()}
        gradient = drawn(rng, (9, 47) if reduction == NONE else (), (0.5, 2), kind)
        step = 1e-5
        around = [formula(*(value + side * step * (key == by) for key, value in values.items())) for side in (1, -1)]
        expected = (around[0] - around[1]) / (2 * step) * gradient / [1, 9 * 47, 1, 9][reduction]
        actual = call(name, **{incoming: tensor(gradient, kind)}, reduction=reduction, **more,
                      **{key: tensor(value, kind, layout) for key, value in values.items()},
                      **{output: empty((9, 47), kind, layout)})  # fmt: skip
        near = np.abs(values["self"] - values["target"])
        smooth = np.ones((9, 47), bool) if "L1" not in name else (np.minimum(near, np.abs(near - 0.75)) > 2 * step)
        scale = np.abs(expected).max()
        least = 2.0**-25 if kind == "F16" else 0  # half of the smallest number
        np.testing.assert_allclose(actual[smooth], expected[smooth], rtol=1.01 * EPSILON[kind] + 1e-5,
                                   atol=2e-6 * scale + least)  # fmt: skip
        assert smooth.mean() > 0.8


def test_slope_where_there_is_none():
    equal = tensor([1.5]), tensor([1.5])
    for name, more, output, incoming in [("L1LossBackward", {}, "gradInput", "gradOutput"),
                                         ("SmoothL1LossBackward", {"beta": 0.0}, "gradInput", "gradOut")]:  # fmt: skip
        assert call(name, **{incoming: tensor([1.0])}, self=equal[0], target=equal[1], reduction=NONE, **more,
                    **{output: empty((1,))}) == 0  # fmt: skip


# ---- cross entropy -------------------------------------------------------------------------------------------------------


def log_softmax(x):
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def cross_entropies(x, target, weight, ignored, smoothing):
    """Losses of the rows, and what a mean divides by."""
    logs, counts = log_softmax(x), target != ignored
    y = np.where(counts, target, 0)
    hard = -weight[y] * logs[np.arange(y.size), y]
    soft = -(weight * logs).sum(axis=1) / x.shape[1]
    return np.where(counts, (1 - smoothing) * hard + smoothing * soft, 0), (weight[y] * counts).sum()


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy(reduction):
    rng = np.random.default_rng(5)
    for kind, layout, smoothing, weighted in [("F32", "row-major", 0.0, True), ("F32", "reversed", 0.25, True),
                                              ("BF16", "gaps", 0.0, False)]:  # fmt: skip
        x, target = drawn(rng, (19, 7), LINE, kind), rng.integers(0, 7, 19)
        target[3] = 2
        weight = rounded(rng.uniform(0.5, 2, 7), "F32") if weighted else np.ones(7)
        given = {"target": tensor(target, "I64", layout), "weightOptional": tensor(weight) if weighted else None,
                 "reductionOptional": reduction, "ignoreIndex": 2, "labelSmoothing": smoothing,
                 "lseSquareScaleForZloss": 0.0}  # fmt: skip

        def total(x):
            losses, divisor = cross_entropies(x, target, weight, 2, smoothing)
            return losses if reduction == "none" else losses.sum() / (divisor if reduction == "mean" else 1)

        shape = (19,) if reduction == "none" else (1,)
        loss, logs = call("CrossEntropyLoss", input=tensor(x, kind, layout), **given, returnZloss=False,
                          lossOut=empty(shape, kind), logProbOut=empty(x.shape, kind, layout),
                          zlossOut=tensor(np.zeros(shape), kind),
                          lseForZlossOut=tensor(np.zeros(19), kind))  # fmt: skip
        close(logs, log_softmax(x), kind, 32)
        np.testing.assert_allclose(loss, np.reshape(total(x), shape), rtol=1e-5 + 4 * EPSILON[kind], atol=2e-6)
        gradient = drawn(rng, shape if reduction == "none" else (), (0.5, 2), kind)
        exact = rounded(log_softmax(x), kind)
        slopes = call("CrossEntropyLossGrad", gradLoss=tensor(gradient, kind), logProb=tensor(exact, kind, layout), **given,
                      gradZlossOptional=None, lseForZlossOptional=None, out=empty(x.shape, kind, layout))  # fmt: skip
        expected, step = np.zeros(x.shape), 1e-5
        for column in range(7):
            moved = [x.copy(), x.copy()]
            for side, one in zip((step, -step), moved):
                one[:, column] += side
            losses = [cross_entropies(one, target, weight, 2, smoothing) for one in moved]
            expected[:, column] = (losses[0][0] - losses[1][0]) / (2 * step)
        divisor = losses[0][1] if reduction == "mean" else 1
        expected *= np.reshape(gradient / divisor, (-1, 1))
        if kind == "F32":
            np.testing.assert_allclose(slopes, expected, rtol=1e-5, atol=1e-6)
        p, own = np.exp(exact), np.eye(7)[target]  # the page's formula, of the logarithms as they were given
        expected = (p - own) * (1 - smoothing) * weight[target][:, None] + smoothing / 7 * (p * weight.sum() - weight)
        expected *= np.reshape(gradient / divisor, (-1, 1)) * (target != 2)[:, None]
        np.testing.assert_allclose(slopes, expected, rtol=1.01 * EPSILON[kind], atol=1e-12)


def test_cross_entropy_of_many_classes():
    """More than are handled at a time, and rows too."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(15)
    x, target, weight = rng.normal(0, 1, (300, 700)), rng.integers(0, 700, 300), rng.uniform(0.5, 2, 700)
    x, weight = rounded(x, "F32"), rounded(weight, "F32")
    logits = torch.tensor(x, requires_grad=True)
    wanted = torch.nn.functional.cross_entropy(logits, torch.tensor(target), torch.tensor(weight), label_smoothing=0.25)
    wanted.backward()
    given = {"target": tensor(target, "I64"), "weightOptional": tensor(weight, layout="gaps"), "reductionOptional": "mean",
             "ignoreIndex": -100, "labelSmoothing": 0.25, "lseSquareScaleForZloss": 0.0}  # fmt: skip
    loss, logs = call("CrossEntropyLoss", input=tensor(x), **given, returnZloss=False, lossOut=empty((1,)),
                      logProbOut=empty(x.shape), zlossOut=tensor([0]), lseForZlossOut=tensor(np.zeros(300)))  # fmt: skip
    np.testing.assert_allclose(loss, [wanted.item()], rtol=1e-6)
    slopes = call("CrossEntropyLossGrad", gradLoss=tensor(1.0), logProb=tensor(logs, layout="reversed"), **given,
                  gradZlossOptional=None, lseForZlossOptional=None, out=empty(x.shape, layout="gaps"))  # fmt: skip
    np.testing.assert_allclose(slopes, logits.grad.numpy(), rtol=1e-6, atol=1e-9)


def test_softmax_cross_entropy_with_logits():
    rng = np.random.default_rng(6)
    for kind, layout in [("F32", "row-major"), ("F16", "reversed")]:
        x, labels = drawn(rng, (9, 13), LINE, kind), drawn(rng, (9, 13), UNIT, kind)
        arguments = {"features": tensor(x, kind, layout), "labels": tensor(labels, kind, layout)}
        loss, slopes = call("SoftmaxCrossEntropyWithLogits", **arguments, loss=empty((9,), kind, layout),
                            backprop=empty((9, 13), kind, layout))  # fmt: skip
        close(loss, -(labels * log_softmax(x)).sum(axis=1), kind)
        np.testing.assert_allclose(slopes, np.exp(log_softmax(x)) - labels, atol=EPSILON[kind] + 1e-6)


def test_softmax_cross_entropy_of_no_classes():
    loss, slopes = call("SoftmaxCrossEntropyWithLogits", features=empty((2, 0)), labels=empty((2, 0)), loss=empty((2,)),
                        backprop=empty((2, 0)))  # fmt: skip
    assert loss.tolist() == [0, 0] and slopes.shape == (2, 0)


# ---- labels --------------------------------------------------------------------------------------------------------------


def test_multilabel_margin():
    rng = np.random.default_rng(7)
    x = drawn(rng, (4, 5), LINE, "F32")
    target = np.array([[3, 0, -1, 1, 2], [-1, 1, 1, 1, 1], [2, 2, 4, -1, 0], [0, 1, 2, 3, 4]])
    marks, losses = np.zeros(x.shape), np.zeros(4)
    for row, labels in enumerate([[3, 0], [], [2, 2, 4], range(5)]):  # a label that stands there twice counts twice, as in PyTorch
        marks[row, list(labels)] = 1
        losses[row] = sum(max(0, 1 - x[row, j] + x[row, i]) for j in labels for i in range(5) if i not in labels) / 5
    for reduction, expected in [(NONE, losses), (MEAN, losses.mean()), (SUM, losses.sum())]:
        for layout in LAYOUTS:
            out, is_target = call("MultilabelMarginLoss", self=tensor(x, "F32", layout),
                                  target=tensor(target, "I32", layout), reduction=reduction,
                                  out=empty(np.shape(expected)), isTarget=empty(x.shape, "F32", layout))  # fmt: skip
            np.testing.assert_allclose(out, expected, rtol=1e-6)
            np.testing.assert_array_equal(is_target, marks)
    out, _ = call("MultilabelMarginLoss", self=tensor(x[0]), target=tensor(target[0], "I64"), reduction=NONE, out=empty(()),
                  isTarget=empty((5,)))  # fmt: skip
    np.testing.assert_allclose(out, losses[0], rtol=1e-6)


def paths(steps, classes):
    return itertools.product(range(classes), repeat=steps)


def collapsed(path, blank):
    return tuple(label for label, _ in itertools.groupby(path) if label != blank)


def ctc_loss(logits, labels, blank):
    """By the definition: the sum over all paths."""
    logs = log_softmax(logits)
    chance = sum(np.exp(sum(logs[t, c] for t, c in enumerate(path)))
                 for path in paths(*logits.shape) if collapsed(path, blank) == tuple(labels))  # fmt: skip
    return -np.log(chance) if chance > 0 else np.inf


def test_ctc_of_many_classes_and_labels():
    """More than are handled at a time."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(16)
    steps, counts, blank = [60, 41, 60], [25, 0, 12], 299
    labels = rng.integers(0, 5, (3, 25))
    logits = torch.tensor(rounded(rng.normal(0, 1, (60, 3, 300)), "F32"), requires_grad=True)
    logs = torch.log_softmax(logits, 2)
    wanted = torch.nn.functional.ctc_loss(logs, torch.tensor(labels), steps, counts, blank, reduction="none")
    wanted.sum().backward()
    given = {"logProbs": tensor(logs.detach().numpy(), "F64"), "targets": tensor(labels, "I64"), "inputLengths": steps,
             "blank": blank, "zeroInfinity": False}  # fmt: skip
    out, alphas = empty((3,), "F64"), empty((3, 60, 56), "F64")
    losses, _ = call("CtcLoss", **given, targetlengths=counts, negLogLikelihoodOut=out, logAlphaOut=alphas)
    np.testing.assert_allclose(losses, wanted.detach().numpy(), rtol=1e-12)
    slopes = call("CtcLossBackward", gradOut=tensor(np.ones(3), "F64"), **given, targetLengths=counts, negLogLikelihood=out,
                  logAlpha=alphas, out=empty(logits.shape, "F64"))  # fmt: skip
    np.testing.assert_allclose(slopes, logits.grad.numpy(), rtol=0, atol=1e-12)


def test_ctc_loss_and_gradient():
    rng = np.random.default_rng(8)
    steps, classes, blank = 4, 3, 1
    labels, step_counts = [[0, 0], [2], [], [2, 0, 2]], [4, 3, 4, 2]  # the last one has too few steps
    logits = rng.uniform(-2, 2, (steps, 4, classes))
    losses = np.array([ctc_loss(logits[:count, n], labels[n], blank) for n, count in enumerate(step_counts)])
    counts, padded = [len(one) for one in labels], np.full((4, 3), 1)
    for n, one in enumerate(labels):
        padded[n, : len(one)] = one
    joined = np.concatenate([np.array(one, int) for one in labels])
    step, expected, incoming = 1e-5, np.zeros(logits.shape), np.array([1.0, 0.5, 2.0, 1.0])
    for t, n, c in np.ndindex(logits.shape):
        if t < step_counts[n] and np.isfinite(losses[n]):
            sides = [logits[: step_counts[n], n].copy() for _ in range(2)]
            sides[0][t, c] += step
            sides[1][t, c] -= step
            expected[t, n, c] = incoming[n] * (ctc_loss(sides[0], labels[n], blank) - ctc_loss(sides[1], labels[n], blank)) / (2 * step)
    for kind, layout, targets in itertools.product(["F32", "F64"], ["row-major", "reversed"], [padded, joined]):
        logs = log_softmax(logits)
        given = {"logProbs": tensor(logs, kind, layout), "targets": tensor(targets, "I64", layout),
                 "inputLengths": step_counts,
                 "blank": blank}  # fmt: skip
        for zero in (False, True):
            out, alpha = call("CtcLoss", **given, targetlengths=counts, zeroInfinity=zero,
                              negLogLikelihoodOut=empty((4,), kind),
                              logAlphaOut=empty((4, steps, 8), kind))  # fmt: skip
            np.testing.assert_allclose(out, np.where(zero & np.isinf(losses), 0, losses), rtol=2e-6)
            last = alpha[0, 3, 3:5]
            np.testing.assert_allclose(-np.log(np.exp(last).sum()), losses[0], rtol=2e-6)
            assert np.isneginf(alpha[1, 3]).all() and np.isneginf(alpha[0, :, 5:]).all()
            slopes = call("CtcLossBackward", gradOut=tensor(incoming, kind), **given, targetLengths=counts,
                          zeroInfinity=zero, negLogLikelihood=tensor(out, kind), logAlpha=tensor(alpha, kind),
                          out=empty(logits.shape, kind, layout))  # fmt: skip
            np.testing.assert_allclose(slopes[:, :3], expected[:, :3], atol=1e-6)
            if zero:
                assert not slopes[:, 3].any()
    alone, _ = call("CtcLoss", logProbs=tensor(log_softmax(logits)[:, 0]), targets=tensor(labels[0], "I32"),
                    inputLengths=[4], targetlengths=[2], blank=blank, zeroInfinity=False, negLogLikelihoodOut=empty(()),
                    logAlphaOut=empty((1, 4, 8)))  # fmt: skip
    np.testing.assert_allclose(alone, losses[0], rtol=2e-6)
