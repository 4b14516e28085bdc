"""Gates of mixtures of experts: which experts a token goes to, and with what weight."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, fault, rounded, tensor
from tests.ascend.routing import FLOOR, KINDS, ROUNDING, drawn, initial_v3, rows_by_experts, softmax_gated, softmax_of


def gated(x, bias, k, kept, groups, top, renorm, norm, factor, eps):
    """Weights, experts and scores in float64; numbers are chosen so that none of the compared ones are near each other."""
    if norm == 0:
        scores = np.exp(x - x.max(1, keepdims=True))
        scores /= scores.sum(1, keepdims=True)
    else:
        scores = 1 / (1 + np.exp(-x)) if norm == 1 else np.sqrt(np.log1p(np.exp(x)))
    values = (scores + bias).reshape(len(x), groups, x.shape[1] // groups)
    best = -np.sort(-values, -1)
    worth = best[..., :top].sum(-1)
    order = np.argsort(-worth, -1, kind="stable")[:, :kept]
    masked = np.full_like(values, -np.inf)
    np.put_along_axis(masked, order[..., None], np.take_along_axis(values, order[..., None], 1), 1)
    masked = masked.reshape(x.shape)
    for compared, count in ((worth, kept + 1), (masked, k + 1)):
        largest = -np.sort(-compared, -1)[:, :count]
        assert np.all(largest[:, :-1] - largest[:, 1:] > 1e-6 * np.abs(largest[:, :-1]))
    chosen = np.argsort(-masked, -1, kind="stable")[:, :k]
    weights = np.take_along_axis(scores, chosen, 1)
    if norm or renorm:
        weights = weights / (weights.sum(1, keepdims=True) + eps)
    return weights * factor, chosen, scores


# rows, experts, k, kGroup, groupCount
GATES = [(2, 8, 3, 2, 4), (70, 256, 8, 4, 8), (5, 6, 4, 1, 1), (3, 500, 9, 1, 1), (2, 2048, 2048, 1, 1),
         (4, 10, 5, 5, 5), (1, 2, 1, 1, 1)]  # fmt: skip


@pytest.mark.parametrize("norm, renorm", [(0, 0), (0, 1), (1, 0), (2, 0)])
def test_gate(norm, renorm):
    for number, (rows, experts, k, kept, groups) in enumerate(GATES):
        for kind, layout, pairs in zip(KINDS, np.roll(LAYOUTS, number), (True, False, True)):
            random = np.random.default_rng(number)
            steps = [random.permutation(experts) for _ in range(rows)]  # bfloat16 holds 256 steps from -1 to 3
            kind = kind if experts <= 256 else "F32"
            x = rounded(np.array(steps) * (4.0 / experts) - 1, kind)
            bias = rounded(random.normal(0, 1, experts), kind) if number % 2 else None
            expected, chosen, scores = gated(x, 0 if bias is None else bias, k, kept, groups, 1 + pairs, renorm, norm, 1.5, 1e-3)
            own = call("MoeGatingTopK", x=tensor(x, kind, layout),
                       biasOptional=None if bias is None else tensor(bias, kind, layout), k=k, kGroup=kept,
                       groupCount=groups, groupSelectMode=int(pairs), renorm=renorm, normType=norm, outFlag=True,
                       routedScalingFactor=1.5, eps=1e-3, yOut=empty((rows, k), kind, layout),
                       expertIdxOut=empty((rows, k), "I32", layout),
                       outOut=empty((rows, experts), "F32", layout))  # fmt: skip
            np.testing.assert_array_equal(own[1], chosen)
            np.testing.assert_allclose(own[2], scores, rtol=8 * 2.0**-24)
            np.testing.assert_allclose(own[0], expected, rtol=16 * 2.0**-24 + 1.01 * ROUNDING[kind],
                                       atol=2.0**-25 if kind == "F16" else 0)  # fmt: skip


def gate_of(x, bias, k, groups=1, kept=1, flag=True):
    scores = empty(x.shape)
    weights, chosen, _ = call(
        "MoeGatingTopK", x=tensor(x), biasOptional=None if bias is None else tensor(bias), k=k, kGroup=kept,
        groupCount=groups, groupSelectMode=0, renorm=0, normType=1, outFlag=flag, routedScalingFactor=1, eps=0,
        yOut=empty((len(x), k)), expertIdxOut=empty((len(x), k), "I32"), outOut=scores)  # fmt: skip
    return weights, chosen, scores.values()


def test_gate_of_equal_and_unusual_scores():
    """The lower number first; the bias chooses and does not weigh; NaN is the largest, as torch.topk has it; no scores unless asked for."""
    weights, chosen, scores = gate_of(np.zeros((1, 6)), [0, 1, 0, 1, 1, 0], 4)
    assert chosen.tolist() == [[1, 3, 4, 0]] and np.all(weights == 0.25) and np.all(scores == 0.5)
    assert gate_of(np.zeros((1, 6)), None, 2, groups=3)[1].tolist() == [[0, 1]]
    assert gate_of(np.array([[1, np.nan, 9, 2.0]]), None, 2)[1].tolist() == [[1, 2]]
    assert gate_of(np.array([[1, 2, 9, np.nan]]), None, 2, groups=2)[1].tolist() == [[3, 2]]
    assert gate_of(np.zeros((1, 4)), [-np.inf] * 4, 2, groups=2)[1].tolist() == [[0, 1]]
    np.testing.assert_array_equal(gate_of(np.zeros((1, 6)), None, 4, flag=False)[2], empty((1, 6)).values())


# shape of x, k
SOFTMAX_GATES = [((2, 8), 3), ((3, 5, 60), 6), ((70, 256), 8), ((2, 5000), 1024), ((4, 1), 1), ((3, 7), 0), ((0, 4), 2), ((2, 0, 5), 1), ((3, 0), 0)]


@pytest.mark.parametrize("late", [False, True])
def test_gate_by_softmax(late):
    for number, (shape, k) in enumerate(SOFTMAX_GATES):
        for kind, layout, ends in zip(KINDS, np.roll(LAYOUTS, number), (True, False, True)):
            kind = kind if shape[-1] <= 256 else "F32"
            random = np.random.default_rng(number)
            steps = random.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
            x = rounded(steps * (4.0 / max(shape[-1], 1)) - 1, kind)
            finished = random.integers(0, 2, shape[:-1]) == 1 if ends else None
            weights, chosen, rows = softmax_gated(x, finished, k, late)
            put = dict(x=tensor(x, kind, layout), k=k, finishedOptional=tensor(finished, "B", layout) if ends else None,
                       yOut=empty(weights.shape, kind, layout), expertIdxOut=empty(chosen.shape, "I32", layout))  # fmt: skip
            own = call("MoeGatingTopKSoftmaxV2", **put, renorm=int(late), outputSoftmaxResultFlag=True,
                       softmaxResultOutOptional=None if late else empty(shape, "F32", layout))  # fmt: skip
            near = {"rtol": 16 * 2.0**-24 + 1.01 * ROUNDING[kind], "atol": FLOOR[kind]}
            np.testing.assert_allclose(own[0], weights, **near)
            np.testing.assert_array_equal(own[1], chosen)
            if not late:
                np.testing.assert_allclose(own[2], softmax_of(x), rtol=16 * 2.0**-24)
                first = call("MoeGatingTopKSoftmax", **put, rowIdxOut=empty(chosen.shape, "I32", layout))
                np.testing.assert_allclose(first[0], weights, **near)  # sums may be formed in another order: by its own layout
                np.testing.assert_array_equal(first[1], own[1])
                np.testing.assert_array_equal(first[2], rows)


def test_gate_by_softmax_of_equal_and_unusual_scores():
    """As torch.topk of torch.softmax: the lower number first, NaN above all; a row that is not asked for its scores keeps them."""
    def gated(x, late=0):
        scores = empty(np.shape(x))
        weights, chosen, _ = call("MoeGatingTopKSoftmaxV2", x=tensor(x), finishedOptional=None, k=2, renorm=late,
                                  outputSoftmaxResultFlag=False, yOut=empty((len(x), 2)),
                                  expertIdxOut=empty((len(x), 2), "I32"), softmaxResultOutOptional=scores)  # fmt: skip
        np.testing.assert_array_equal(scores.values(), empty(np.shape(x)).values())
        return weights.tolist(), chosen.tolist()

    assert gated([[3.0, 3, 3, 3]]) == ([[0.25, 0.25]], [[0, 1]])
    assert gated([[3.0, 3, 3, 3]], 1) == ([[0.5, 0.5]], [[0, 1]])
    assert gated([[-np.inf, 0, -np.inf, -np.inf]]) == ([[1, 0]], [[1, 0]])
    assert gated([[1, 2, np.nan, np.nan]], 1)[1] == [[2, 3]]
    assert gated([[-200.0, -300, 0, -400]], 1) == ([[1, 0]], [[2, 0]])  # by x: these differ, their softmax does not


@pytest.mark.parametrize("norm, renorm", [(0, 0), (0, 1), (1, 0), (2, 0)])
def test_gate_by_a_table(norm, renorm):
    for number, (rows, experts, k, keys) in enumerate([(2, 8, 3, 5), (70, 256, 8, 9), (3, 72, 64, 1), (4, 1, 1, 2)]):
        for kind, layout, types in zip(KINDS, np.roll(LAYOUTS, number), (("I32", "I32"), ("I64", "I32"), ("I32", "I64"))):
            random = np.random.default_rng(number)
            x, table, ids = drawn((rows, experts), number, kind), random.integers(0, experts, (keys, k)), random.integers(0, keys, rows)
            scores = softmax_of(x) if norm == 0 else 1 / (1 + np.exp(-x)) if norm == 1 else np.sqrt(np.log1p(np.exp(x)))
            weights = np.take_along_axis(scores, table[ids], 1)
            weights = 1.5 * (weights / (weights.sum(1, keepdims=True) + 1e-3) if norm or renorm else weights)
            own = call("MoeGatingTopKV2", x=tensor(x, kind, layout), biasOptional=tensor(drawn((experts,), 1, kind), kind),
                       inputIdsOptional=tensor(ids, types[0], layout), tid2eidOptional=tensor(table, types[1], layout), k=k,
                       kGroup=1, groupCount=1, groupSelectMode=0, renorm=renorm, normType=norm, outFlag=True,
                       routedScalingFactor=1.5, eps=1e-3, yOut=empty((rows, k), kind, layout),
                       expertIdxOut=empty((rows, k), "I32", layout),
                       outOut=empty((rows, experts), "F32", layout))  # fmt: skip
            np.testing.assert_array_equal(own[1], table[ids])
            np.testing.assert_allclose(own[0], weights, rtol=16 * 2.0**-24 + 1.01 * ROUNDING[kind], atol=FLOOR[kind])
            np.testing.assert_allclose(own[2], scores, rtol=16 * 2.0**-24)


def test_gate_with_half_a_table():
    """One of the two tables alone is not looked at."""
    x, bias = np.array([[0, 1, 3, 2.0]]), np.array([9, 0, 0, 0.0])
    for ids, table in ((None, None), ([7], None), (None, [[1, 1]])):
        own = call("MoeGatingTopKV2", x=tensor(x), biasOptional=tensor(bias), k=2, kGroup=1, groupCount=2, groupSelectMode=0,
                   inputIdsOptional=None if ids is None else tensor(ids, "I32"),
                   tid2eidOptional=None if table is None else tensor(table, "I32"), renorm=0, normType=1, outFlag=False,
                   routedScalingFactor=1, eps=0, yOut=empty((1, 2)), expertIdxOut=empty((1, 2), "I32"),
                   outOut=empty((1, 4)))  # fmt: skip
        assert own[1].tolist() == [[0, 1]]


def test_tables_that_do_not_fit_are_faults():
    for ids, table, words in (([0, 3], np.zeros((3, 2)), "input id 1 of 2 is 3, which is not in 0 … 2"),
                              ([-1, 0], np.zeros((3, 2)), "input id 0 of 2 is -1"),
                              ([0, 2], [[0, 1], [9, 9], [0, 4]], "expert 1 of input id 2 is 4, which is not in 0 … 3")):  # fmt: skip
        assert words in fault("MoeGatingTopKV2", tensor(np.ones((2, 4))), None, tensor(ids, "I64"), tensor(table, "I32"), 2, 1, 1,
                              0, 0, 1, False, 1, 0, empty((2, 2)), empty((2, 2), "I32"), empty((2, 4)))  # fmt: skip
    for count in (0, 3):
        assert f"expert 2 has {count} others in its place, which is not in 1 … 2" in fault(
            "MoeFusedTopk", tensor([[0, 1, 9.0]]), tensor(np.zeros(3)), tensor([1, 1, count], "I32"), tensor(np.zeros((3, 2)), "I32"),
            1, 1, 1, 1, 0, True, 1, True, empty((1, 1)), empty((1, 1), "I32"))  # fmt: skip
    for expert in (-1, 4):
        assert f"expert 1 of row 0 is {expert}, which is not in 0 … 3" in fault(
            "MoeGatingTopKBackward", tensor(np.ones((1, 4))), tensor(np.ones((1, 2))), tensor([[0, expert]], "I32"), 0, 1, 1, 0,
            empty((1, 4)))  # fmt: skip


# rows, experts, topK, groupTopk, groupNum, topN
FUSED = [(2, 8, 3, 2, 4, 2), (70, 256, 8, 4, 8, 3), (5, 6, 4, 1, 1, 6), (3, 500, 9, 1, 1, 1), (2, 1024, 700, 250, 256, 4), (0, 4, 2, 1, 1, 1)]


@pytest.mark.parametrize("maps", [False, True])
def test_fused_gate(maps):
    for number, (rows, experts, k, kept, groups, top) in enumerate(FUSED):
        for kind, layout, norm in zip(KINDS, np.roll(LAYOUTS, number), (True, False, True)):
            random = np.random.default_rng(number)
            kind = kind if experts <= 256 else "F32"
            steps = random.permuted(np.broadcast_to(np.arange(experts), (rows, experts)), axis=1)
            x, bias = rounded(steps * (4.0 / experts) - 1, kind), rounded(random.normal(0, 1, experts), kind)
            weights, chosen, _ = gated(x, bias, k, kept, groups, top, 0, 1, 1.5, 0)
            if not norm:
                weights = np.take_along_axis(1 / (1 + np.exp(-x)), chosen, 1)
            counts, table = random.integers(1, 8, experts), random.integers(0, 999, (experts, 7))
            own = call("MoeFusedTopk", x=tensor(x, kind, layout), addNum=tensor(bias, kind, layout),
                       mappingNum=tensor(counts, "I32", layout), mappingTable=tensor(table, "I32", layout), groupNum=groups,
                       groupTopk=kept, topN=top, topK=k, activateType=0, isNorm=norm, scale=1.5, enableExpertMapping=maps,
                       y=empty((rows, k), "F32", layout), indices=empty((rows, k), "I32", layout))  # fmt: skip
            np.testing.assert_allclose(own[0], weights, rtol=16 * 2.0**-24)
            if maps:  # any of an expert's places is right
                places = np.where(np.arange(7) < counts[chosen][..., None], table[chosen], -1)
                assert np.all((own[1][..., None] == places).any(-1))
            else:
                np.testing.assert_array_equal(own[1], chosen)


def test_gradient_of_the_gate():
    """By the matrix of derivatives of the weights by the chosen scores; for many choices by its product written out."""
    for number, (rows, experts, k) in enumerate([(2, 8, 3), (70, 256, 8), (3, 2, 1), (2, 2048, 2048), (4, 30, 30)]):
        for kind, layout in zip(KINDS, np.roll(LAYOUTS, number)):
            x, slopes = drawn((rows, experts), number), drawn((rows, k), number + 1, kind)
            random = np.random.default_rng(number)
            chosen = np.array([random.permutation(experts)[:k] for _ in range(rows)])
            if number == 4:
                chosen[:, 1] = chosen[:, 0]  # an expert that comes twice has both slopes
            scores = rounded(1 / (1 + np.exp(-x)), "F32")
            picked = np.take_along_axis(scores, chosen, 1)
            total = picked.sum(1, keepdims=True) + 0.25
            # y = 2.5 * picked / total: its derivative by picked, a matrix for each row
            matrix = 2.5 * (np.eye(k)[None] / total[:, :, None] - picked[:, :, None] / (total**2)[:, :, None]) if k <= 64 else None
            by_picked = np.einsum("rp,rpq->rq", slopes, matrix) if k <= 64 else 2.5 * (slopes - (slopes * picked).sum(1, keepdims=True) / total) / total
            by_scores = np.zeros((rows, experts))
            for row in range(rows):
                np.add.at(by_scores[row], chosen[row], by_picked[row])
            own = call("MoeGatingTopKBackward", xNorm=tensor(scores, "F32", layout), gradY=tensor(slopes, kind, layout),
                       expertIdx=tensor(chosen, "I32", layout), renorm=0, normType=1, routedScalingFactor=2.5, eps=0.25,
                       out=empty((rows, experts), kind, layout))  # fmt: skip
            expected = scores * (1 - scores) * by_scores
            np.testing.assert_allclose(own, expected, rtol=1.01 * ROUNDING[kind], atol=FLOOR[kind] + 1e-12)


def test_gates_of_rows_without_columns():
    experts = np.array([[2, 0], [1, 2], [0, 1]])
    for capacity in (0, 2):
        row_of, place_of = rows_by_experts(experts, 0, 3, 6, capacity)
        _, places, gates = initial_v3(np.zeros((3, 0)), experts, "F32", "gaps", -1, np.array([1.5, -2.0, 4.0]), None, 0, capacity, 3, None, None, False)
        np.testing.assert_array_equal(places, place_of)
        np.testing.assert_array_equal(gates, np.array([1.5, -2.0, 4.0])[row_of // 2])
