"""Tokens to experts and back: places by NumPy's stable sort, blocks with room for so many tokens, sums in float64."""

import numpy as np
import pytest

from understudy import ascend

from tests.ascend.calling import LAYOUTS, call, empty, empty_packed, fault, rounded, tensor, unpacked
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages

KINDS = ["F32", "F16", "BF16"]
ROUNDING = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}
FLOOR = {"F32": 0, "F16": 2.0**-25, "BF16": 0}  # half the step of the numbers that are no longer normal


def drawn(shape, seed, kind="F32"):
    return rounded(np.random.default_rng(seed).normal(0, 2, shape), kind)


def experts_of(shape, limit, seed):
    return np.random.default_rng(seed).integers(0, limit, shape)


def near(actual, expected, kind, magnitude):
    """Rounded once from a sum of a few products in float32."""
    np.testing.assert_allclose(actual, expected, rtol=1.01 * ROUNDING[kind],
                               atol=16 * 2.0**-24 * np.abs(magnitude).max(initial=0))  # fmt: skip


def places_of(experts):
    """Where each number stands in the sorted order."""
    return np.argsort(np.argsort(experts.ravel(), kind="stable"), kind="stable")


def kept_of(count, limit):
    return len(range(count)[:limit]) if limit else count


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


def softmax_of(x):
    scores = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return scores / scores.sum(-1, keepdims=True)


def softmax_gated(x, finished, k, late):
    """In float64; the values that are compared lie apart."""
    scores = x if late else softmax_of(x)
    chosen = np.argsort(-scores, -1, kind="stable")[..., :k]
    best = np.take_along_axis(scores, chosen, -1)
    weights = softmax_of(best) if late and k else best
    if finished is not None:
        chosen = np.where(finished[..., None], x.shape[-1], chosen)
    rows = int(np.prod(x.shape[:-1]))
    return weights, chosen, np.arange(rows * k).reshape(k, rows).T.reshape(chosen.shape)


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
            np.testing.assert_allclose(own[0], weights, rtol=16 * 2.0**-24 + 1.01 * ROUNDING[kind], atol=FLOOR[kind])
            np.testing.assert_array_equal(own[1], chosen)
            if not late:
                np.testing.assert_allclose(own[2], softmax_of(x), rtol=16 * 2.0**-24)
                first = call("MoeGatingTopKSoftmax", **put, rowIdxOut=empty(chosen.shape, "I32", layout))
                np.testing.assert_array_equal(first[0], own[0])
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


# tokens, their numbers, how many experts, numOutTokens
PERMUTED = [((3, 4), (3, 2), 5, 0), ((7, 33), (7, 3), 4, 10), ((5, 2, 3), (5,), 2, -2), ((2, 3), (2, 2), 9, -9),
            ((1, 600), (1, 40), 3, 99),
            ((0, 4), (0, 2), 3, 0), ((4, 0), (4, 2), 3, 0), ((4, 3), (4, 0), 3, 0), ((90, 5), (90, 8), 16777215, 0)]  # fmt: skip


def test_permute():
    for number, (shape, choice, limit, kept) in enumerate(PERMUTED):
        for kind, layout, index in zip(KINDS, np.roll(LAYOUTS, number), ("I32", "I64", "I32")):
            tokens, experts = drawn(shape, number, kind), experts_of(choice, limit, number)
            places = places_of(experts)
            expected = np.zeros((places.size, *shape[1:]))
            expected[places] = np.repeat(tokens, choice[1] if len(choice) == 2 else 1, 0)
            out = empty((kept_of(places.size, kept), *shape[1:]), kind, layout)
            rows, order = call("MoeTokenPermute", tokens=tensor(tokens, kind, layout),
                               indices=tensor(experts, index, layout), numOutTokens=kept, paddedMode=False,
                               permuteTokensOut=out, sortedIndicesOut=empty((places.size,), "I32", layout))  # fmt: skip
            np.testing.assert_array_equal(order, places)
            np.testing.assert_array_equal(rows, expected[: len(rows)])
    flat, _ = call("MoeTokenPermute", tokens=tensor(drawn((3, 2, 4), 1)), indices=tensor([2, 0, 1], "I32"),
                   numOutTokens=2, paddedMode=False, permuteTokensOut=empty((2, 8)),
                   sortedIndicesOut=empty((3,), "I32"))  # fmt: skip
    np.testing.assert_array_equal(flat, drawn((3, 2, 4), 1)[[1, 2]].reshape(2, 8))


def test_permute_v2():
    """As MoeTokenPermute, of int8 too, whatever quantMode says; the scale stays as it is."""
    for number, (shape, choice, limit, kept) in enumerate(PERMUTED):
        if len(shape) != 2:
            continue
        for kind, layout, mode in zip([*KINDS, "I8"], [*LAYOUTS, "gaps"], (-1, 2, 3, 9)):
            tokens, experts = np.rint(drawn(shape, number, "F32")), experts_of(choice, limit, number)
            places = places_of(experts)
            expected = np.zeros((places.size, *shape[1:]))
            expected[places] = np.repeat(tokens, choice[1], 0)
            rows, order, _ = call("MoeTokenPermuteV2", tokens=tensor(tokens, kind, layout), indices=tensor(experts, "I64", layout),
                                  numOutTokens=kept, paddedMode=False, quantMode=mode,
                                  permuteTokensOut=empty((kept_of(places.size, kept), *shape[1:]), kind, layout),
                                  sortedIndicesOut=empty((places.size,), "I32", layout), expandedScaleOut=empty((0,)))  # fmt: skip
            np.testing.assert_array_equal(order, places)
            np.testing.assert_array_equal(rows, expected[: len(rows)])
    scale = empty((6, 2))
    call("MoeTokenPermuteV2", tokens=tensor(drawn((3, 64), 1)), indices=tensor([2, 0, 1], "I32"), numOutTokens=2, paddedMode=False,
         quantMode=2, permuteTokensOut=empty((2, 64)), sortedIndicesOut=empty((3,), "I32"), expandedScaleOut=scale)  # fmt: skip
    np.testing.assert_array_equal(scale.values(), empty((6, 2)).values())


# tokens, choices, experts, most places, ranks
BALANCED = [(3, 2, 5, 4, 8), (512, 16, 1024, 7, 768), (1, 1, 1, 1, 2), (40, 8, 60, 64, 64)]


@pytest.mark.parametrize("by_rows", [False, True])
def test_balanced_experts(by_rows):
    for number, (tokens, choices, experts, most, ranks) in enumerate(BALANCED):
        for kind, layout, index in zip(KINDS, np.roll(LAYOUTS, number), ("I32", "I64", "I32")):
            random = np.random.default_rng(number)
            counts = random.integers(1, most + 1, experts)
            counts[0] = 1
            table = np.concatenate([counts[:, None], random.integers(0, 1024, (experts, most))], 1)
            chosen, rank = random.integers(0, experts, (tokens, choices)), int(random.integers(0, ranks))
            placed = np.zeros((tokens, choices))
            for row, column in np.ndindex(tokens, choices):
                count = counts[chosen[row, column]]
                which = row % count if by_rows else rank // -(-ranks // count)
                assert 0 <= which < count
                placed[row, column] = table[chosen[row, column], 1 + which]
            scales, threshold = rounded(-np.sort(-random.random((tokens, choices)), 1), kind), rounded(random.random(choices) / choices, "F32")
            active = np.arange(tokens) < tokens - tokens // 3
            least = scales.sum(1, keepdims=True) * threshold
            assert np.all(np.abs(scales - least) > 1e-6)  # float32 decides as float64
            put = lambda values, k: tensor(values, k, layout)
            new = lambda k: empty((tokens, choices), k, layout)
            arguments = dict(expertIds=put(chosen, index), eplbTable=put(table, "I32"), localRankId=rank, worldSize=ranks,
                             balanceMode=int(by_rows))  # fmt: skip
            mask = (scales >= least) & active[:, None]
            for held in (active, None):
                own = call("MoeUpdateExpert", **arguments, expertScalesOptional=put(scales, kind),
                           pruningThresholdOptional=put(threshold if number % 2 else threshold[None], "F32"),
                           activeMaskOptional=None if held is None else put(held, "B"), balancedExpertIds=new(index),
                           balancedActiveMask=new("B"))  # fmt: skip
                np.testing.assert_array_equal(own[0], placed)
                np.testing.assert_array_equal(own[1], mask if held is not None else scales >= least)
            alone = call("MoeUpdateExpert", **arguments, expertScalesOptional=None, pruningThresholdOptional=None,
                         activeMaskOptional=None, balancedExpertIds=new(index), balancedActiveMask=None)  # fmt: skip
            np.testing.assert_array_equal(alone, placed)


def test_tables_of_places_that_do_not_fit_are_faults():
    for expert, count, words in ((2, 1, "expert 1 of row 0 is 2, which is not in 0 … 1"), (-1, 1, "expert 1 of row 0 is -1"),
                                 (1, 0, "expert 1 has 0 places, which is not in 1 … 2"), (1, 3, "expert 1 has 3 places")):  # fmt: skip
        assert words in fault("MoeUpdateExpert", tensor([[0, expert]], "I64"), tensor([[1, 5, 5], [count, 7, 8]], "I32"), None, None,
                              None, 0, 2, 0, empty((1, 2), "I64"), None)  # fmt: skip


def test_unpermute():
    for number, (rows, choices, width, missing) in enumerate([(3, 2, 4, 0), (7, 3, 1030, 4), (40, 1, 5, 0), (2, 512, 3, 1000), (0, 2, 3, 0)]):
        for kind, weight, layout in zip(KINDS, ("F32", "F32", "BF16"), np.roll(LAYOUTS, number)):
            count = rows * choices
            tokens, probs = drawn((count, width), number, kind), drawn((rows, choices), number + 9, weight)
            places = np.random.default_rng(number).permutation(count)
            there = tokens * (np.arange(count) < count - missing)[:, None]
            expected = (there[places].reshape(rows, choices, width) * probs[:, :, None]).sum(1)
            own = call("MoeTokenUnpermute", permutedTokens=tensor(tokens[: count - missing], kind, layout),
                       sortedIndices=tensor(places, "I32", layout), probsOptional=tensor(probs, weight, layout),
                       paddedMode=False, restoreShapeOptional=[1], out=empty((rows, width), kind, layout))  # fmt: skip
            near(own, expected, kind, np.abs(there).max(initial=0) * np.abs(probs).sum(1))
            own = call("MoeTokenUnpermute", permutedTokens=tensor(tokens, kind), sortedIndices=tensor(places, "I32"),
                       probsOptional=None, paddedMode=False, restoreShapeOptional=None,
                       out=empty((count, width), kind))  # fmt: skip
            np.testing.assert_array_equal(own, tokens[places])


# tokens, experts of each, width, range of rows or None
PARTS = [(3, 2, 4, (1, 5)), (20, 3, 700, (0, 60)), (9, 4, 5, (30, 36)), (7, 1, 33, (3, 3)), (5, 2, 3, (8, 14)), (6, 3, 8, None),
         (0, 2, 4, (0, 3))]  # fmt: skip


def part_of(rows, begin, end):
    """These rows of a matrix, 0 behind its end."""
    return np.concatenate([rows, np.zeros((max(end - len(rows), 0), *rows.shape[1:]))])[begin:end]


def test_permute_a_part():
    for number, (count, choices, width, span) in enumerate(PARTS):
        for kind, gate, layout, index in zip(KINDS, ("F32", "F16", "BF16"), np.roll(LAYOUTS, number), ("I32", "I64", "I32")):
            tokens, experts = drawn((count, width), number, kind), experts_of((count, choices), 5, number)
            probs, places = drawn((count, choices), number + 1, gate), places_of(experts)
            rows, gates = np.zeros((experts.size, width)), np.zeros(experts.size)
            rows[places], gates[places] = np.repeat(tokens, choices, 0), probs.ravel()
            begin, end = span or (0, experts.size)
            put = lambda values, k=kind: tensor(values, k, layout)
            for gated in (True, False):
                untouched = empty((end - begin,), gate, layout)
                own = call("MoeTokenPermuteWithEp", tokens=put(tokens), indices=put(experts, index),
                           probsOptional=put(probs, gate) if gated else None, rangeOptional=span and list(span),
                           numOutTokens=2 if span else 0, paddedMode=False,
                           permuteTokensOut=empty((end - begin, width), kind, layout),
                           sortedIndicesOut=empty((experts.size,), "I32", layout), permuteProbsOut=untouched)  # fmt: skip
                np.testing.assert_array_equal(own[0], part_of(rows, begin, end))
                np.testing.assert_array_equal(own[1], places)
                expected = part_of(gates, begin, end) if gated and span else empty((end - begin,), gate, layout).values()
                np.testing.assert_array_equal(own[2], expected)
    flat = call("MoeTokenPermuteWithEp", tokens=tensor(drawn((3, 4), 1)), indices=tensor([2, 0, 1], "I32"),
                probsOptional=tensor([5, 6, 7]), rangeOptional=[1, 3], numOutTokens=0, paddedMode=False,
                permuteTokensOut=empty((2, 4)), sortedIndicesOut=empty((3,), "I32"), permuteProbsOut=empty((2,)))  # fmt: skip
    np.testing.assert_array_equal(flat[0], drawn((3, 4), 1)[[2, 0]])
    assert flat[2].tolist() == [7, 5]


def test_gradients_of_a_part():
    """By the matrix that takes tokens, and that takes probs, to their rows."""
    for number, (count, choices, width, span) in enumerate(PARTS):
        if count == 0 or span == (3, 3):
            continue
        for kind, gate, layout in zip(KINDS, ("F32", "F16", "BF16"), np.roll(LAYOUTS, number)):
            places = np.random.default_rng(number).permutation(count * choices)
            begin, end = span or (0, count * choices)
            inside = (places >= begin) & (places < end)
            slopes, gate_slopes = drawn((end - begin, width), number, kind), drawn((end - begin,), number + 1, gate)
            arriving = np.where(inside[:, None], slopes[np.where(inside, places - begin, 0)], 0).reshape(count, choices, width)
            by_gates = np.where(inside, gate_slopes[np.where(inside, places - begin, 0)], 0).reshape(count, choices)
            put = lambda values, k=kind: tensor(values, k, layout)
            own = call("MoeTokenPermuteWithEpGrad", permutedTokensOutputGrad=put(slopes), sortedIndices=put(places, "I32"),
                       permutedProbsOutputGradOptional=put(gate_slopes, gate), numTopk=choices,
                       rangeOptional=span and list(span), paddedMode=False, tokenGradOut=empty((count, width), kind, layout),
                       probsGradOut=empty((count, choices), gate, layout))  # fmt: skip
            near(own[0], arriving.sum(1), kind, np.abs(arriving).sum(1))
            np.testing.assert_array_equal(own[1], by_gates if span else empty((count, choices), gate, layout).values())


def test_unpermute_a_part_and_its_gradients():
    for number, (count, choices, width, span) in enumerate(PARTS):
        if count == 0 or span == (3, 3):
            continue
        for kind, gate, layout, more in zip(KINDS, ("F32", "F16", "BF16"), np.roll(LAYOUTS, number), (0, 1, 0)):
            places = np.random.default_rng(number).permutation(count * choices)
            begin, end = span or (0, count * choices)
            rows = end - begin + (more if span and end - begin < count * choices else 0)
            inside = (places >= begin) & (places < end)
            to = np.where(inside, places - begin, 0)
            routed, probs = drawn((rows, width), number, kind), drawn((count, choices), number + 1, gate)
            chosen = np.where(inside[:, None], routed[to], 0).reshape(count, choices, width)
            put = lambda values, k=kind: tensor(values, k, layout)
            common = dict(sortedIndices=put(places, "I32"), rangeOptional=span and list(span), paddedMode=False,
                          restoreShapeOptional=None)  # fmt: skip
            for gated in (True, False):
                scale = probs[:, :, None] if gated else 1
                summed = (scale * chosen).sum(1) if gated or span else chosen.reshape(-1, width)
                own = call("MoeTokenUnpermuteWithEp", **common, permutedTokens=put(routed), numTopk=choices if span else 7,
                           probsOptional=put(probs, gate) if gated else None, out=empty(summed.shape, kind, layout))  # fmt: skip
                near(own, summed, kind, np.abs(scale * chosen).sum(1))
            slopes = drawn((count, width), number + 2, kind)
            by_rows = np.zeros((rows, width))
            by_rows[to[inside]] = (probs[:, :, None] * slopes[:, None]).reshape(-1, width)[inside]
            own = call("MoeTokenUnpermuteWithEpGrad", **common, unpermutedTokensGrad=put(slopes), topkNum=choices,
                       permutedTokensOptional=put(routed), probsOptional=put(probs, gate),
                       permutedTokensGradOut=empty((rows, width), kind, layout),
                       probsGradOut=empty((count, choices), gate, layout))  # fmt: skip
            np.testing.assert_allclose(own[0], by_rows, rtol=1.01 * ROUNDING[kind], atol=FLOOR[kind])
            np.testing.assert_allclose(own[1], (chosen * slopes[:, None]).sum(2), rtol=1.01 * ROUNDING[gate],
                                       atol=FLOOR[gate] + 2.0**-45 * width)  # fmt: skip
            if choices == 1:
                by_rows[to[inside]] = slopes[inside]
                own = call("MoeTokenUnpermuteWithEpGrad", **common, unpermutedTokensGrad=put(slopes), topkNum=1,
                           permutedTokensOptional=None, probsOptional=None,
                           permutedTokensGradOut=empty((rows, width), kind, layout), probsGradOut=None)  # fmt: skip
                np.testing.assert_array_equal(own, by_rows)


def test_places_outside_a_part():
    """They add nothing, whatever is multiplied by them; below 0 and from a limit on they are faults."""
    places, infinite = tensor([0, 1, 2, 2134372522], "I32"), tensor(np.full((2, 2), np.inf))
    own = call("MoeTokenUnpermuteWithEp", permutedTokens=tensor([[7.0]]), sortedIndices=places, probsOptional=infinite,
               numTopk=2, rangeOptional=[9, 10], paddedMode=False, restoreShapeOptional=None, out=empty((2, 1)))  # fmt: skip
    assert own.tolist() == [[0], [0]]
    span = lambda begin, end: pages.made({"kind": "IA"}, [begin, end])
    for place, where, words in ((-1, span(0, 4), "-1, which is not in 0 … 2134372522"), (2134372523, span(0, 4), "2134372523,"),
                                (4, None, "4, which is not in 0 … 3")):  # fmt: skip
        assert f"place 3 of 4 is {words}" in fault(
            "MoeTokenUnpermuteWithEp", tensor(np.ones((4, 3))), tensor([0, 1, 2, place], "I32"), tensor(np.ones((2, 2))), 2, where,
            False, None, empty((2, 3)))  # fmt: skip
    for place in (-1, 4):
        assert f"place 3 of 4 is {place}, which is not in 0 … 3" in fault(
            "MoeTokenUnpermuteWithEpGrad", tensor(np.ones((2, 3))), tensor([0, 1, 2, place], "I32"), tensor(np.ones((4, 3))),
            tensor(np.ones((2, 2))), False, None, span(0, 4), 2, empty((4, 3)), empty((2, 2)))  # fmt: skip
    assert "place 3 of 4 is -1" in fault("MoeTokenPermuteWithEpGrad", tensor(np.ones((4, 3))), tensor([0, 1, 2, -1], "I32"),
                                         tensor(np.ones(4)), 2, span(0, 4), False, empty((2, 3)), empty((2, 2)))  # fmt: skip
    assert "is 16777215," in fault("MoeTokenPermuteWithEp", tensor(np.ones((1, 3))), tensor([16777215], "I32"), None, span(0, 1), 0,
                                   False, empty((1, 3)), empty((1,), "I32"), None)  # fmt: skip


def map_of(tokens, experts, choices, seed, full):
    """Each token has `choices` experts, or, where it is not full, up to so many."""
    random = np.random.default_rng(seed)
    marks = np.zeros((tokens, experts), bool)
    for row in marks:
        row[random.permutation(experts)[: choices if full else random.integers(0, choices + 1)]] = True
    return marks


def pairs_of(marks, choices):
    """The token and expert of each row, by experts, and the places of each token's rows."""
    experts, tokens = np.nonzero(marks.T)
    places = np.full((len(marks), choices), -1)
    for token, row in enumerate(places):
        rows = np.flatnonzero(tokens == token)
        row[: len(rows)] = rows
    return tokens, experts, places.ravel()


def blocks_by_map(marks, capacity):
    order = np.argsort(~marks.T, axis=1, kind="stable")[:, :capacity]
    return order.ravel(), np.repeat(np.arange(marks.shape[1]), capacity), order.ravel()


# tokens, experts, width, topK or capacity
MAPS = [(3, 2, 4, 2), (20, 6, 600, 3), (1, 5, 3, 5), (9, 1, 7, 1), (40, 64, 5, 8)]


@pytest.mark.parametrize("blocks, full", [(False, True), (False, False), (True, False)])
def test_permute_by_map_and_its_gradient(blocks, full):
    """The gradient is that of the linear map from tokens and probs to their rows, written down as a matrix."""
    for number, (count, experts, width, each) in enumerate(MAPS):
        each = min(each, count) if blocks else each
        for kind, gate, layout, form in zip(KINDS, ("F32", "F16", "F32"), np.roll(LAYOUTS, number), ("B", "I8", "B")):
            marks = map_of(count, experts, min(each, experts), number, full)
            tokens, gates = drawn((count, width), number, kind), drawn((count, experts), number + 1, gate)
            rows = each * (experts if blocks else count)
            who, whose, places = blocks_by_map(marks, each) if blocks else pairs_of(marks, each)
            routed, routed_gates = np.zeros((rows, width)), np.zeros(rows)
            routed[: len(who)], routed_gates[: len(who)] = tokens[who], gates[who, whose]
            put = lambda values, k=kind: tensor(values, k, layout)
            own = call("MoeTokenPermuteWithRoutingMap", tokens=put(tokens), routingMap=put(marks, form),
                       probsOptional=put(gates, gate), numOutTokens=rows, dropAndPad=blocks,
                       permuteTokensOut=empty((rows, width), kind, layout),
                       permuteProbsOutOptional=empty((rows,), gate, layout),
                       sortedIndicesOut=empty((rows,), "I32", layout))  # fmt: skip
            for one, wanted in zip(own, (routed, routed_gates, places)):
                np.testing.assert_array_equal(one, wanted)
            alone = call("MoeTokenPermuteWithRoutingMap", tokens=put(tokens), routingMap=put(marks, form),
                         probsOptional=None, numOutTokens=rows, dropAndPad=blocks,
                         permuteTokensOut=empty((rows, width), kind), permuteProbsOutOptional=None,
                         sortedIndicesOut=empty((rows,), "I32"))  # fmt: skip
            np.testing.assert_array_equal(alone[0], routed)

            slopes, gate_slopes = drawn((rows, width), number + 2, kind), drawn((rows,), number + 3, gate)
            goes = np.zeros((rows, count))
            goes[np.arange(len(who)), who] = 1
            by_gates = np.zeros((count, experts))
            by_gates[who, whose] = gate_slopes[: len(who)]
            arguments = dict(permutedTokenOutputGrad=put(slopes), sortedIndices=put(places, "I32"), numExperts=experts,
                             tokensNum=count, dropAndPad=blocks)  # fmt: skip
            own = call("MoeTokenPermuteWithRoutingMapGrad", **arguments,
                       permutedProbsOutputGradOptional=put(gate_slopes, gate),
                       routingMapOptional=None if blocks else put(marks, form),
                       tokensGradOut=empty((count, width), kind, layout),
                       probsGradOutOptional=empty((count, experts), gate, layout))  # fmt: skip
            near(own[0], goes.T @ slopes, kind, np.abs(slopes).max() * goes.sum(0))
            np.testing.assert_array_equal(own[1], by_gates)
            alone = call("MoeTokenPermuteWithRoutingMapGrad", **arguments, permutedProbsOutputGradOptional=None,
                         routingMapOptional=None, tokensGradOut=empty((count, width), kind),
                         probsGradOutOptional=None)  # fmt: skip
            np.testing.assert_array_equal(alone, own[0])


def test_maps_that_do_not_fit_are_faults():
    def routed(marks, limit, rows):
        return fault("MoeTokenPermuteWithRoutingMap", tensor(np.ones((2, 3))), tensor(marks, "I8"), None, limit, False,
                     empty((rows, 3)), None, empty((rows,), "I32"))  # fmt: skip

    assert "token 1 has more than 1 experts" in routed([[0, 1], [1, 1]], 3, 2)
    many = np.ones((2, 5000))  # the first token's row would be far behind the two that there are
    many[0, :-1] = 0
    assert "token 1 has more than 1 experts" in routed(many, 3, 2)

    def gradients(places, blocks=False):
        return fault("MoeTokenPermuteWithRoutingMapGrad", tensor(np.ones((2, 3))), tensor(np.ones(2)),
                     tensor(places, "I32"), tensor([[1, 1], [1, 0]], "I8"), 2, 2, blocks, empty((2, 3)),
                     empty((2, 2)))  # fmt: skip

    assert "the map marks more than 2 pairs" in gradients([0, 1])
    assert "place 1 of 2 is 2, which is not in -1 … 1" in gradients([0, 2])
    assert "place 0 of 2 is -1, which is not in 0 … 1" in gradients([-1, 1], blocks=True)


@pytest.mark.parametrize("blocks, full", [(False, True), (False, False), (True, False)])
def test_unpermute_by_map_and_its_gradients(blocks, full):
    """Tokens are the transposed matrix of the routing times rows and gates; the gradients are those of this product."""
    for number, (count, experts, width, each) in enumerate([*MAPS, (4, 3, 0, 2)]):
        each = min(each, count if blocks else experts)
        for kind, gate, layout, form in zip(KINDS, ("F32", "F16", "F32"), np.roll(LAYOUTS, number), ("B", "I8", "B")):
            marks = map_of(count, experts, each, number, full)
            rows = each * (experts if blocks else count)
            who, whose, places = blocks_by_map(marks, each) if blocks else pairs_of(marks, each)
            routed, gates = drawn((rows, width), number, kind), drawn((count, experts), number + 1, gate)
            row_gates, goes = np.zeros(rows), np.zeros((rows, count))
            row_gates[: len(who)], goes[np.arange(len(who)), who] = gates[who, whose], 1
            tokens = np.full(rows, -1)
            tokens[: len(who)] = who
            order = np.argsort(places, kind="stable") if blocks else places
            named = tokens[order] if blocks else np.arange(rows) // each
            put = lambda values, k=kind: tensor(values, k, layout)
            new = lambda shape, k: empty(shape, k, layout)
            for gated in (True, False):
                scale = row_gates if gated else np.ones(rows)
                own = call("MoeTokenUnpermuteWithRoutingMap", permutedTokens=put(routed), sortedIndices=put(places, "I32"),
                           routingMapOptional=put(marks, form) if gated and not blocks else None,
                           probsOptional=put(gates, gate) if gated else None, paddedMode=blocks,
                           restoreShapeOptional=[count, width] if blocks and gated else None,
                           unpermutedTokens=new((count, width), kind), outIndex=new((rows,), "I32"),
                           permuteTokenId=new((rows,), "I32"),
                           permuteProbs=new((rows,), gate) if gated else None)  # fmt: skip
                near(own[0], goes.T @ (scale[:, None] * routed), kind, goes.T @ np.abs(scale[:, None] * routed).max(1, initial=0))
                np.testing.assert_array_equal(own[1], order)
                np.testing.assert_array_equal(own[2], named)
                if gated:
                    np.testing.assert_array_equal(own[3], row_gates)

                slopes, shuffled = drawn((count, width), number + 2, kind), np.random.default_rng(number).permutation(rows)
                out_index, token_id = (order[shuffled], named[shuffled]) if blocks else (places, places)  # as the adapter passes
                arriving = np.where((tokens >= 0)[:, None], slopes[tokens], 0)
                by_gates = np.zeros((count, experts))
                by_gates[who, whose] = (arriving * routed).sum(1)[: len(who)]
                own = call("MoeTokenUnpermuteWithRoutingMapGrad", unpermutedTokensGrad=put(slopes),
                           outIndex=put(out_index, "I32"), permuteTokenId=put(token_id, "I32"),
                           routingMapOptional=put(marks, form) if gated else None,
                           permutedTokensOptional=put(routed) if gated else None,
                           probsOptional=put(gates, gate) if gated else None, dropAndPad=blocks, restoreShapeOptional=None,
                           permutedTokensGradOut=new((rows, width), kind),
                           probsGradOutOptional=new((count, experts), gate) if gated else None)  # fmt: skip
                by_rows = scale[:, None] * arriving
                np.testing.assert_allclose(own[0] if gated else own, by_rows, rtol=1.01 * ROUNDING[kind], atol=FLOOR[kind])
                if gated:
                    np.testing.assert_allclose(own[1], by_gates, rtol=1.01 * ROUNDING[gate], atol=FLOOR[gate] + 2.0**-45 * width)


def test_maps_that_do_not_fit_on_the_way_back():
    ones = lambda *shape: tensor(np.ones(shape))

    def back(places, marks, blocks=False):
        return fault("MoeTokenUnpermuteWithRoutingMap", ones(2, 3), tensor(places, "I32"), tensor(marks, "I8"), ones(2, 2),
                     blocks, None, empty((2, 3)), empty((2,), "I32"), empty((2,), "I32"), empty((2,)))  # fmt: skip

    assert "the map marks more than 2 pairs" in back([0, 1], [[1, 1], [1, 0]])
    assert "place 1 of 2 is 2, which is not in -1 … 1" in back([0, 2], np.eye(2))
    assert "place 0 of 2 is -1, which is not in 0 … 1" in back([-1, 1], np.eye(2), blocks=True)

    def gradients(rows, tokens, marks, blocks=False):
        return fault("MoeTokenUnpermuteWithRoutingMapGrad", ones(2, 3), tensor(rows, "I32"), tensor(tokens, "I32"),
                     tensor(marks, "I8"), ones(2, 3), ones(2, 2), blocks, None, empty((2, 3)), empty((2, 2)))  # fmt: skip

    assert "the map marks more than 2 pairs" in gradients([0, 1], [0, 1], [[1, 1], [1, 0]])
    assert "row 1 of 2 is -2, which is not in -1 … 1" in gradients([0, -2], [0, 1], np.eye(2))
    assert "row 0 of 2 is 2, which is not in -1 … 1" in gradients([2, 0], [0, 1], np.eye(2))
    assert "row 1 of 2 is -1, which is not in 0 … 1" in gradients([0, -1], [0, 1], np.eye(2), blocks=True)
    assert "token 1 of 2 is 2, which is not in 0 … 1" in gradients([0, 1], [0, 2], np.eye(2), blocks=True)


def test_rows_of_a_block_that_share_a_token():
    """They have one gate: the last row tells its gradient."""
    routed = drawn((2, 3), 1)
    own = call("MoeTokenUnpermuteWithRoutingMapGrad", unpermutedTokensGrad=tensor(np.ones((2, 3))), outIndex=tensor([0, 1], "I32"),
               permuteTokenId=tensor([1, 1], "I32"), routingMapOptional=tensor(np.ones((2, 1)), "I8"),
               permutedTokensOptional=tensor(routed), probsOptional=tensor(np.full((2, 1), 3.0)), dropAndPad=True,
               restoreShapeOptional=[2, 3], permutedTokensGradOut=empty((2, 3)), probsGradOutOptional=empty((2, 1)))  # fmt: skip
    np.testing.assert_array_equal(own[0], np.full((2, 3), 3.0))
    np.testing.assert_allclose(own[1], [[0], [routed[1].sum()]], rtol=2.0**-23)


def test_no_rows():
    for blocks in (False, True):
        rows, order = call("MoeTokenPermuteWithRoutingMap", tokens=tensor(np.ones((2, 3))),
                           routingMap=tensor([[1, 1], [0, 1]], "I8"), probsOptional=None, numOutTokens=1,
                           dropAndPad=blocks, permuteTokensOut=empty((0, 3)), permuteProbsOutOptional=None,
                           sortedIndicesOut=empty((0,), "I32"))  # fmt: skip
        assert rows.size == order.size == 0


@pytest.mark.parametrize("blocks", [False, True])
def test_no_rows_on_the_way_back(blocks):
    """Tokens without rows are 0, and so are the gradients of their gates."""
    none, marks, gates = tensor(np.zeros((0, 4))), tensor(np.zeros((3, 2)), "I8"), tensor(np.ones((3, 2)))
    index = lambda: empty((0,), "I32")
    own = call("MoeTokenUnpermuteWithRoutingMap", permutedTokens=none, sortedIndices=index(),
               routingMapOptional=None if blocks else marks, probsOptional=gates, paddedMode=blocks, restoreShapeOptional=None,
               unpermutedTokens=empty((3, 4)), outIndex=index(), permuteTokenId=index(), permuteProbs=empty((0,)))  # fmt: skip
    np.testing.assert_array_equal(own[0], np.zeros((3, 4)))
    own = call("MoeTokenUnpermuteWithRoutingMapGrad", unpermutedTokensGrad=tensor(np.ones((3, 4))), outIndex=index(),
               permuteTokenId=index(), routingMapOptional=marks, permutedTokensOptional=none, probsOptional=gates,
               dropAndPad=blocks, restoreShapeOptional=None, permutedTokensGradOut=empty((0, 4)),
               probsGradOutOptional=empty((3, 2)))  # fmt: skip
    np.testing.assert_array_equal(own[1], np.zeros((3, 2)))


def initial(x, experts, kind, layout="row-major", active=0, capacity=0, limit=0, flag=0, before=False):
    count = experts.size
    shape = (limit, capacity, x.shape[1]) if capacity else (min(active or count, count), x.shape[1])
    return call("MoeInitRoutingV2", x=tensor(x, kind, layout), expertIdx=tensor(experts, "I32", layout),
                activeNumOptional=active, expertCapacityOptional=capacity, expertNumOptional=limit,
                dropPadModeOptional=int(capacity > 0), expertTokensCountOrCumsumFlagOptional=flag,
                expertTokensBeforeCapacityFlagOptional=before, expandedXOut=empty(shape, kind, layout),
                expandedRowIdxOut=empty((count,), "I32", layout),
                expertTokensCountOrCumsumOutOptional=empty((limit,), "I32", layout) if flag and not capacity else None,
                expertTokensBeforeCapacityOutOptional=empty((limit,), "I32", layout) if before
                and capacity else None)  # fmt: skip


def test_gradients_of_routing():
    """By the matrix of each linear map."""
    random = np.random.default_rng(3)
    for number, (kind, layout) in enumerate(zip(["F32", "F16", "BF16"], LAYOUTS)):
        rows, choices, width = [(5, 3, 700), (4, 1, 4), (9, 2, 3)][number]
        for missing in (0, 1):
            count = rows * choices
            kept = count - missing
            places = random.permutation(count)
            slopes, tokens, probs = drawn((rows, width), 1, kind), drawn((kept, width), 2, kind), drawn((rows, choices), 3)
            routed = drawn((kept, width), 4, kind)
            chosen = np.concatenate([routed, np.zeros((missing, width))])[places].reshape(rows, choices, width)
            own = call("MoeTokenPermuteGrad", permutedOutputGrad=tensor(routed, kind, layout),
                       sortedIndices=tensor(places, "I32", layout), numTopk=choices, paddedMode=False,
                       out=empty((rows, width), kind, layout))  # fmt: skip
            near(own, chosen.sum(1), kind, np.abs(chosen).sum((1, 2)))
            again = call("MoeInitRoutingV2Grad", gradExpandedX=tensor(routed, kind, layout),
                         expandedRowIdx=tensor(places, "I32"), topK=choices, dropPadMode=0,
                         activeNum=kept if missing else 0, out=empty((rows, width), kind))  # fmt: skip
            np.testing.assert_array_equal(again, own)
            values = np.concatenate([tokens, np.zeros((missing, width))])[places].reshape(rows, choices, width)
            expected = np.zeros((count, width))
            expected[places] = (probs[:, :, None] * slopes[:, None]).reshape(count, width)
            by_tokens, by_probs = call(
                "MoeTokenUnpermuteGrad", permuteTokens=tensor(tokens, kind, layout),
                unpermutedTokensGrad=tensor(slopes, kind, layout), sortedIndices=tensor(places, "I32"),
                probsOptional=tensor(probs, "F32", layout), paddedMode=False, restoreShapeOptional=[1],
                permutedTokensGradOut=empty((kept, width), kind, layout),
                probsGradOut=empty((rows, choices), "F32", layout))  # fmt: skip
            near(by_tokens, expected[:kept], kind, np.full(kept, np.abs(expected).max()))
            np.testing.assert_allclose(by_probs, (values * slopes[:, None]).sum(2), rtol=2.0**-23, atol=2.0**-40 * width)
        if choices == 1:
            plain = call("MoeTokenUnpermuteGrad", permuteTokens=tensor(tokens, kind),
                         unpermutedTokensGrad=tensor(slopes, kind), sortedIndices=tensor(places, "I32"),
                         probsOptional=None, paddedMode=False, restoreShapeOptional=None,
                         permutedTokensGradOut=empty((kept, width), kind), probsGradOut=None)  # fmt: skip
            assert plain.shape == (kept, width)


def test_gradients_of_blocks():
    """dropPadMode 1: places count over the blocks of all experts, -1 is none."""
    routed, places = drawn((2, 3, 4), 1), np.array([0, -1, 5, 3, -1, -1])
    out = call("MoeInitRoutingV2Grad", gradExpandedX=tensor(routed), expandedRowIdx=tensor(places, "I32"), topK=2,
               dropPadMode=1, activeNum=0, out=empty((3, 4)))  # fmt: skip
    rows = routed.reshape(6, 4)
    near(out, np.stack([rows[0], rows[5] + rows[3], np.zeros(4)]), "F32", np.full(3, np.abs(rows).max()))


def test_gradient_of_active_rows():
    """As many rows as activeNum says, fewer than places or more: places beyond them add nothing, rows that no place has neither."""
    places = np.array([4, 0, 2, 5, 1, 3])
    for active in (4, 8):
        routed = drawn((active, 3), active)
        rows = np.concatenate([routed, np.zeros((2, 3))])
        out = call("MoeInitRoutingV2Grad", gradExpandedX=tensor(routed), expandedRowIdx=tensor(places, "I32"), topK=2,
                   dropPadMode=0, activeNum=active, out=empty((3, 3)))  # fmt: skip
        near(out, rows[places].reshape(3, 2, 3).sum(1), "F32", np.full(3, np.abs(rows).max()))


def test_initial_routing():
    for number, (rows, choices, width, limit, active) in enumerate([(3, 2, 4, 3, 0), (50, 4, 7, 9, 23), (8, 1, 300, 70, 99), (0, 2, 4, 3, 0)]):
        for kind, layout, flag in zip(KINDS, LAYOUTS, (0, 1, 2)):
            x, experts = drawn((rows, width), number, kind), experts_of((rows, choices), limit, number)
            places = places_of(experts)
            routed, own, *counts = initial(x, experts, kind, layout, active, limit=limit if flag else 0, flag=flag)
            np.testing.assert_array_equal(own, places)
            expected = np.repeat(x, choices, 0)[np.argsort(places)]
            np.testing.assert_array_equal(routed, expected[: active or None])
            if flag:
                histogram = np.bincount(experts.ravel(), minlength=limit)
                np.testing.assert_array_equal(counts[0], histogram.cumsum() if flag == 1 else histogram)


def numbered(x, rows, experts, active, kind, layout, levels=None):
    """MoeInitRouting, or with scale and offset MoeInitRoutingQuant."""
    put = lambda values, k: tensor(values, k, layout)
    count, how = experts.size, {} if levels is None else dict(zip(("scale", "offset"), levels))
    shape = (min(len(x), active) * experts.shape[1], x.shape[1])
    return call("MoeInitRouting" + "Quant" * (levels is not None), x=put(x, kind), rowIdx=put(rows, "I32"),
                expertIdx=put(experts, "I32"), activeNum=active, **how,
                expandedXOut=empty(shape, kind if levels is None else "I8", layout),
                expandedRowIdxOut=empty((count,), "I32", layout),
                expandedExpertIdxOut=empty((count,), "I32", layout))  # fmt: skip


def test_numbered_routing():
    """One pair of number and expert after the other, as Python's stable sort has them."""
    for number, (tokens, choices, width, active) in enumerate([(3, 2, 4, 3), (40, 6, 33, 7), (9, 1, 600, 100), (5, 3, 4, 0), (0, 2, 4, 3), (3, 2, 0, 3), (700, 3, 2, 9)]):
        for kind, layout in zip(KINDS, np.roll(LAYOUTS, number)):
            random = np.random.default_rng(number)
            x, experts = drawn((tokens, width), number, kind), random.integers(-2**25, 2**25, (tokens, choices))
            experts[:, 0] = 7
            rows = np.arange(experts.size).reshape(choices, tokens).T if number % 2 else random.permutation(experts.size).reshape(experts.shape)
            pairs = sorted(zip(experts.ravel().tolist(), rows.ravel().tolist()), key=lambda pair: pair[0])
            places = np.zeros(experts.size)
            for i, (_, row) in enumerate(pairs):
                places[row] = i
            kept = [row % tokens for _, row in pairs][: min(tokens, active) * choices]
            expected = (x[kept], places, [expert for expert, _ in pairs])
            for own, wanted in zip(numbered(x, rows, experts, active, kind, layout), expected):
                np.testing.assert_array_equal(own, wanted)
            own = numbered(x, rows, experts, active, kind, layout, (17.0, -3.5))
            values = np.rint(np.float32(np.float32(x) * np.float32(17)) + np.float32(-3.5))
            np.testing.assert_array_equal(own[0], np.clip(values, -128, 127)[kept])
            np.testing.assert_array_equal(own[1], places)


def test_numbered_routing_after_the_gate():
    """MoeGatingTopKSoftmax, then MoeInitRouting, then the columns of MoeFinalizeRoutingV2 give the tokens back."""
    x, scores = drawn((9, 5), 1), drawn((9, 8), 2)
    weights, experts, rows = call("MoeGatingTopKSoftmax", x=tensor(scores), finishedOptional=None, k=3, yOut=empty((9, 3)),
                                  expertIdxOut=empty((9, 3), "I32"), rowIdxOut=empty((9, 3), "I32"))  # fmt: skip
    routed, places, _ = numbered(x, rows, experts, 9, "F32", "row-major")
    own = final(tensor(routed), tensor(places, "I32"), 0, empty((9, 5)), scales=tensor(weights))
    near(own, x * weights.sum(1, keepdims=True), "F32", 16)


def test_row_numbers_that_come_twice_or_not_at_all():
    _, places, sorted_experts = numbered(np.ones((2, 3)), np.array([[1, 1], [3, 0]]), np.array([[5, 4], [4, 4]]), 2, "F32", "gaps")
    assert places.tolist() == [2, 3, -1, 1] and sorted_experts.tolist() == [4, 4, 4, 5]


def re_routed(tokens, counts, scales, kind, index, layout):
    rows = len(tokens)
    scaled = empty((rows,), "F32", layout)
    own = call("MoeReRouting", tokens=tensor(tokens, kind, layout), expertTokenNumPerRank=tensor(counts, index, layout),
               perTokenScalesOptional=None if scales is None else tensor(scales, "F32", layout), expertTokenNumType=1, idxType=0,
               permuteTokensOut=empty(tokens.shape, kind, layout), permutePerTokenScalesOut=scaled,
               permuteTokenIdxOut=empty((rows,), "I32", layout),
               expertTokenNumOut=empty((counts.shape[1],), index, layout))  # fmt: skip
    return own


def test_re_routing():
    """Each token has the number of its rank and of its expert; a stable sort by experts moves it."""
    for number, (ranks, experts, width, most) in enumerate([(2, 3, 4, 3), (16, 16, 33, 5), (1, 7, 600, 2), (5, 1, 3, 4), (3, 4, 5, 0)]):
        for kind, layout, index in zip(["I8", "F16", "BF16"], np.roll(LAYOUTS, number), ("I32", "I64", "I32")):
            counts = np.random.default_rng(number).integers(0, most + 1, (ranks, experts))
            owner = np.concatenate([np.repeat(np.arange(experts), row) for row in counts])
            order = np.argsort(owner, kind="stable")
            tokens, scales = np.rint(drawn((len(owner), width), number)), drawn((len(owner),), number)
            for scaled in (scales, None):
                own = re_routed(tokens, counts, scaled, kind, index, layout)
                untouched = empty((len(owner),), "F32", layout).values()
                for one, wanted in zip(own, (tokens[order], untouched if scaled is None else scales[order], order, counts.sum(0))):
                    np.testing.assert_array_equal(one, wanted)


def test_re_routing_of_other_numbers_of_tokens():
    """Rows behind the last token are 0, and come from none; more tokens than there are, or fewer than none, are a fault."""
    own = re_routed(np.ones((4, 2)), np.array([[1, 0], [1, 1]]), np.ones(4), "F16", "I32", "row-major")
    assert own[0].tolist() == [[1, 1]] * 3 + [[0, 0]] and own[1].tolist() == [1, 1, 1, 0]
    assert own[2].tolist() == [0, 1, 2, -1] and own[3].tolist() == [2, 1]
    for counts, words in (([[2, 0], [1, 2]], "rank 1 has 2 tokens for expert 1, of 1 that are left"),
                          ([[1, -1], [0, 0]], "rank 0 has -1 tokens for expert 1, of 3 that are left")):  # fmt: skip
        assert words in fault("MoeReRouting", tensor(np.ones((4, 2)), "F16"), tensor(counts, "I64"), None, 1, 0,
                              empty((4, 2), "F16"), None, empty((4,), "I32"), empty((2,), "I64"))  # fmt: skip


def test_ends_of_experts():
    for number, (count, experts) in enumerate([(6, 3), (302, 31), (5000, 2048), (7, 1), (0, 4), (1, 5)]):
        for layout in LAYOUTS:
            drawn_experts = np.sort(experts_of((count,), experts + 3, number)) - 1
            own = call("MoeComputeExpertTokens", sortedExperts=tensor(drawn_experts, "I32", layout), numExperts=experts,
                       out=empty((experts,), "I32", layout))  # fmt: skip
            np.testing.assert_array_equal(own, (drawn_experts[:, None] <= np.arange(experts)).sum(0))


def sorted_by_experts(experts, begin, end):
    """The elements that have an active expert, by experts; stable."""
    flat = experts.ravel()
    return [f for expert in range(begin, end) for f in np.flatnonzero(flat == expert)]


def rows_by_experts(experts, begin, end, rows, capacity):
    """For each row its element or -1, and for each element its place or -1."""
    row_of, place_of = np.full(rows, -1), np.full(experts.size, -1)
    taken = {}
    for i, f in enumerate(sorted_by_experts(experts, begin, end)):
        expert = experts.ravel()[f]
        taken[expert] = taken.get(expert, -1) + 1
        place = expert * capacity + taken[expert] if capacity else i
        if not capacity or taken[expert] < capacity:
            place_of[f] = place
            if place < rows:
                row_of[place] = f
    return row_of, place_of


def counts_by_experts(experts, begin, end, limit, form):
    counts = np.bincount(experts[experts >= 0], minlength=limit)[begin:end]
    pairs = np.zeros((limit, 2), int)
    busy = np.flatnonzero(counts)
    pairs[: len(busy)] = np.stack([busy + begin, counts[busy]], 1)
    return [counts.cumsum(), counts, pairs][form]


def initial_v3(x, experts, kind, layout, mode, scale, offset, active, capacity, limit, form, span, by_order):
    rows = limit * capacity if capacity else min(active if active > 0 else experts.size, experts.size)
    shape = (limit, capacity, x.shape[1]) if capacity else (rows, x.shape[1])
    put = lambda values, k="F32": None if values is None else tensor(values, k, layout)
    width = span[1] - span[0] if span else limit
    return call("MoeInitRoutingV3", x=put(x, kind), expertIdx=put(experts, "I32"), scaleOptional=put(scale),
                offsetOptional=put(offset), activeNum=active, expertCapacity=capacity, expertNum=limit,
                dropPadMode=int(capacity > 0), expertTokensNumType=form or 0, expertTokensNumFlag=form is not None,
                quantMode=mode, activeExpertRangeOptional=span or ([] if by_order else None), rowIdxType=int(by_order),
                expandedXOut=empty(shape, "I8" if mode >= 0 else kind, layout),
                expandedRowIdxOut=empty((experts.size,), "I32", layout),
                expertTokensCountOrCumsumOut=None if form is None else empty((limit, 2) if form == 2 else (width,), "I64", layout),
                expandedScaleOut=empty((rows,), "F32", layout) if mode == 1 or mode < 0 and scale is not None else None)  # fmt: skip


# tokens, choices, width, experts, range, capacity, activeNum
ROUTES = [(5, 2, 7, 4, None, 0, -1), (40, 4, 33, 9, [2, 7], 0, 0), (9, 3, 5, 6, [0, 6], 4, -1),
          (30, 2, 600, 8, [1, 2], 0, 11), (4, 1, 3, 5, None, 1, 2),
          (0, 2, 4, 3, None, 0, 0)]  # fmt: skip


@pytest.mark.parametrize("mode", [-1, 0, 1])
@pytest.mark.parametrize("by_order", [False, True])
def test_initial_routing_v3(mode, by_order):
    for number, (tokens, choices, width, limit, span, capacity, active) in enumerate(ROUTES):
        begin, end = span or (0, limit)
        for kind, layout, form in zip([*KINDS, "I8"][: 4 if mode < 0 else 3], [*LAYOUTS, "gaps"], (0, 1, 2, None)):
            form = form if not capacity or form is None else 1
            random = np.random.default_rng(number)
            x = random.integers(-9, 9, (tokens, width)) if kind == "I8" else drawn((tokens, width), number, kind)
            experts = random.integers(-1, limit, (tokens, choices))
            rows = limit * capacity if capacity else min(active if active > 0 else experts.size, experts.size)
            row_of, place_of = rows_by_experts(experts, begin, end, rows, capacity)
            there = row_of >= 0
            routed = np.where(there[:, None], x[row_of // choices], 0) if tokens else np.zeros((rows, width))
            scale, offset, scales = None, None, []
            if mode == 0:
                scale, offset = np.array([7.5]), np.array([-3.25])
                expected = np.where(there[:, None],
                                    np.clip(np.rint(np.float32(routed) * np.float32(7.5) - np.float32(3.25)), -128,
                                            127), 0)  # fmt: skip
            elif mode == 1:
                scale = None if number % 2 else np.abs(drawn((end - begin, width), 3)) + 0.5
                expert = experts.ravel()[row_of] if tokens else row_of
                smooth = 1 if scale is None else np.where(there[:, None], scale[np.clip(expert - begin, 0, end - begin - 1)], 0) if tokens else 1
                values = np.float32(routed) * np.float32(smooth)
                scales = [np.abs(values).max(1) / np.float32(127)]
                expected = np.rint(values / np.where(scales[0] == 0, 1, scales[0])[:, None])
            else:
                scale = drawn((tokens,), 5) if number % 2 == 0 else None
                scales = [np.where(there, scale[row_of // choices], 0) if tokens else np.zeros(rows)] if scale is not None else []
                expected = routed
            own = initial_v3(x, experts, kind, layout, mode, scale, offset, active, capacity, limit, form, span, by_order)
            order = np.full(experts.size, -1)
            in_order = sorted_by_experts(experts, begin, end)
            order[: len(in_order)] = in_order
            counts = [] if form is None else [counts_by_experts(experts, begin, end, limit, form)]
            wanted = [expected, order if by_order else place_of, *counts, *scales]
            assert len(own) == len(wanted)
            for one, other in zip(own, wanted):
                np.testing.assert_array_equal(one.reshape(other.shape), other)


def quantized_v2(x, experts, kind, layout, dynamic, scale, offset, active, capacity, limit, flag, before, packed):
    rows = limit * capacity if capacity else min(active or experts.size, experts.size)
    shape = (limit, capacity, x.shape[1]) if capacity else (rows, x.shape[1])
    put = lambda values, k="F32": None if values is None else tensor(values, k, layout)
    out = empty_packed(shape, "I4", gap=2) if packed else empty(shape, "I8", layout)
    own = call("MoeInitRoutingQuantV2", x=put(x, kind), expertIdx=put(experts, "I32"), scaleOptional=put(scale),
               offsetOptional=put(offset), activeNum=active, expertCapacity=capacity, expertNum=limit,
               dropPadMode=int(capacity > 0), expertTokensCountOrCumsumFlag=flag,
               expertTokensBeforeCapacityFlag=before, quantMode=int(dynamic), expandedXOut=out,
               expandedRowIdxOut=empty((experts.size,), "I32", layout),
               expertTokensCountOrCumsumOutOptional=empty((limit,), "I32", layout) if flag and not capacity else None,
               expertTokensBeforeCapacityOutOptional=empty((limit,), "I32", layout) if before and capacity else None,
               dynamicQuantScaleOutOptional=empty((rows,), "F32", layout) if dynamic else None)  # fmt: skip
    return [unpacked(out, shape) if packed else own[0], *own[1:]]


# tokens, choices, width, experts, capacity, activeNum, bits
QUANTIZED = [(5, 2, 7, 4, 0, 0, 8), (40, 4, 33, 9, 0, 23, 8), (9, 3, 5, 6, 4, 0, 8), (3, 2, 600, 1, 2, 0, 8), (0, 2, 4, 3, 0, 0, 8),
             (7, 3, 34, 5, 0, 11, 4), (40, 2, 6, 3, 0, 0, 4), (0, 2, 4, 3, 0, 0, 4)]  # fmt: skip


@pytest.mark.parametrize("smooth", [None, "all", "each", "static"])
def test_quantized_routing_v2(smooth):
    for number, (tokens, choices, width, limit, capacity, active, bits) in enumerate(QUANTIZED):
        for kind, layout, flag in zip(KINDS, np.roll(LAYOUTS, number), (0, 1, 2)):
            if bits == 4 and smooth == "each":
                continue
            x, experts, most = drawn((tokens, width), number, kind), experts_of((tokens, choices), limit, number), 2.0 ** (bits - 1)
            rows = limit * capacity if capacity else min(active or experts.size, experts.size)
            row_of, place_of = rows_by_experts(experts, 0, limit, rows, capacity)
            there = (row_of >= 0)[:, None]
            routed = np.where(there, x[row_of // choices], 0) if tokens else np.zeros((rows, width))
            scale, offset, scales = None, None, []
            if smooth == "static":
                scale, offset = np.array([2.5]), np.array([-0.75])
                levels = np.rint(np.float32(np.float32(routed) * np.float32(2.5)) + np.float32(-0.75))
                expected = np.where(there, np.clip(levels, -most, most - 1), 0)
            else:
                scale = {"all": np.abs(drawn((1, width), 3)) + 0.5, "each": np.abs(drawn((limit, width), 3)) + 0.5, None: None}[smooth]
                factors = np.ones((limit, width)) if scale is None else np.broadcast_to(scale, (limit, width))
                values = np.float32(routed) * np.float32(factors[experts.ravel()[row_of]] if tokens else 1)
                scales = [np.abs(values).max(1) / np.float32(most - 1)]
                expected = np.rint(values / np.where(scales[0] == 0, 1, scales[0])[:, None])
            before = number % 2 == 0
            own = quantized_v2(x, experts, kind, layout, smooth != "static", scale, offset, active, capacity, limit, flag, before, bits == 4)
            histogram = np.bincount(experts.ravel(), minlength=limit)
            counts = [histogram] if (before if capacity else flag == 2) else [histogram.cumsum()] if flag == 1 and not capacity else []
            wanted = [expected, place_of, *counts, *scales]
            assert len(own) == len(wanted)
            for one, other in zip(own, wanted):
                np.testing.assert_array_equal(one.reshape(other.shape), other)


@pytest.mark.parametrize("capacity", [0, 2])
def test_scales_of_rows_without_columns(capacity):
    """They are 0, as those of rows without extent."""
    experts = np.array([[0, 1], [1, 2], [0, 0]])
    for smooth in (None, np.ones((1, 0)), np.ones((3, 0))):
        own = quantized_v2(np.ones((3, 0)), experts, "F32", "gaps", True, smooth, None, 0, capacity, 3, 0, False, False)
        np.testing.assert_array_equal(own[-1], np.zeros(6))
    own = initial_v3(np.ones((3, 0)), experts, "F32", "gaps", 1, np.ones((3, 0)), None, 0, capacity, 3, None, None, False)
    np.testing.assert_array_equal(own[-1], np.zeros(6))


def test_quantized_routing_without_a_number_of_experts():
    """Any expert number is sorted where nothing asks how many there are; with scales by expert there are as many as these."""
    experts = np.array([[1000000, 5], [7, 7]])
    own = quantized_v2(np.ones((2, 4)), experts, "F32", "row-major", True, np.ones((1, 4)), None, 0, 0, 0, 0, False, False)
    assert own[1].tolist() == [3, 0, 1, 2] and np.all(own[0] == 127)
    for scale in (np.ones((3, 4)), np.ones((0, 4))):
        assert f"number 0 of 4 is 1000000, which is not in 0 … {len(scale) - 1}" in fault(
            "MoeInitRoutingQuantV2", tensor(np.ones((2, 4))), tensor(experts, "I32"), tensor(scale), None, 0, 0, len(scale), 0, 0,
            False, 1, empty((4, 4), "I8"), empty((4,), "I32"), None, None, empty((4,)))  # fmt: skip


def blocks_of(x, experts, capacity, limit):
    """One token after the other takes the next row of its experts' blocks, if there is one."""
    routed, places, taken = np.zeros((limit, capacity, x.shape[1])), [], np.zeros(limit, int)
    for f, expert in enumerate(experts.ravel()):
        room = taken[expert] < capacity
        places.append(expert * capacity + taken[expert] if room else -1)
        if room:
            routed[expert, taken[expert]] = x[f // experts.shape[1]]
        taken[expert] += 1
    return routed, places, taken


def test_blocks():
    for number, (rows, choices, width, limit, capacity) in enumerate([(3, 2, 4, 3, 2), (50, 4, 33, 9, 11), (4, 1, 600, 7, 4), (6, 3, 1, 2, 1)]):
        for kind, layout in zip(KINDS, LAYOUTS):
            x, experts = drawn((rows, width), number, kind), experts_of((rows, choices), limit, number)
            expected = blocks_of(x, experts, capacity, limit)
            for own, wanted in zip(initial(x, experts, kind, layout, capacity=capacity, limit=limit, before=True,
                                           flag=number % 3), expected):  # fmt: skip
                np.testing.assert_array_equal(own, wanted)
            assert len(initial(x, experts, kind, layout, capacity=capacity, limit=limit)) == 2


def final(x, places, mode, out, first=None, second=None, bias=None, scales=None, experts=None):
    return call("MoeFinalizeRoutingV2", expandedX=x, expandedRowIdx=places, x1Optional=first, x2Optional=second,
                biasOptional=bias, scalesOptional=scales, expertIdxOptional=experts, dropPadMode=mode,
                out=out)  # fmt: skip


@pytest.mark.parametrize("mode", range(4))
def test_final_routing(mode):
    for number, (rows, choices, width, limit, capacity) in enumerate([(3, 2, 4, 3, 2), (20, 4, 600, 9, 7), (4, 1, 5, 7, 4)]):
        for kind, layout, weight in zip(KINDS, LAYOUTS, ("F32", "F16", "F32")):
            count, blocks = rows * choices, (limit * capacity if mode % 2 else rows * choices)
            tokens, scales = drawn((blocks, width), number, kind), drawn((rows, choices), number + 1, weight)
            bias, experts = drawn((limit, width), number + 2, kind), experts_of((rows, choices), limit, number)
            sides = drawn((2, rows, width), number + 3, kind)
            places = np.random.default_rng(number).choice(blocks, count, replace=mode % 2 == 1)
            places[1] = -1 if mode % 2 else places[1]
            ordered = places.reshape(choices, rows).T if mode < 2 else places.reshape(rows, choices)
            rows_of = np.where(ordered[..., None] < 0, 0, tokens[ordered])
            put = lambda v, k=kind: tensor(v, k, layout)
            x = put(tokens.reshape(limit, capacity, width) if mode % 2 else tokens)
            sums = sides.sum(0) + (scales[..., None] * (rows_of + bias[experts])).sum(1)
            own = final(x, put(places, "I32"), mode, empty((rows, width), kind, layout), put(sides[0]), put(sides[1]),
                        put(bias), put(scales, weight), put(experts, "I32"))  # fmt: skip
            near(own, sums, kind, 8 * np.abs(scales).sum(1) * np.abs(tokens).max())
            own = final(x, put(places, "I32"), mode, empty((count, width), kind, layout),
                        first=put(np.repeat(sides[0], choices, 0)))  # fmt: skip
            near(own, np.repeat(sides[0], choices, 0) + np.where(places[:, None] < 0, 0, tokens[places]), kind, 16)


def test_final_routing_of_the_first_version():
    for number, (rows, choices, width, experts, missing) in enumerate([(3, 2, 4, 3, 0), (20, 4, 600, 9, 7), (4, 1, 5, 7, 0), (0, 2, 3, 4, 0), (3, 2, 0, 1, 0)]):
        for kind, layout in zip(KINDS, np.roll(LAYOUTS, number)):
            count = rows * choices
            tokens, scales, bias = (drawn(shape, number + n, kind) for n, shape in enumerate([(count, width), (rows, choices), (experts, width)]))
            first, second = drawn((2, rows, width), number + 5, kind)
            chosen, places = experts_of((rows, choices), experts, number), np.random.default_rng(number).permutation(count)
            by_row = places.reshape(choices, rows).T
            there = (by_row < count - missing)[..., None]
            terms = np.where(there, scales[..., None] * (tokens[by_row] + bias[chosen]), 0)
            put = lambda values, k=kind: tensor(values, k, layout)
            for beside in (second, None):
                own = call("MoeFinalizeRouting", expandedX=put(tokens[: count - missing]), x1=put(first),
                           x2Optional=None if beside is None else put(beside), bias=put(bias), scales=put(scales),
                           expandedRowIdx=put(places, "I32"), expandedExpertIdx=put(chosen, "I32"),
                           out=empty((rows, width), kind, layout))  # fmt: skip
                expected = first + (0 if beside is None else beside) + terms.sum(1)
                near(own, expected, kind, np.abs(terms).sum(1).max(initial=0) + 8)


# rows, choices, width, blocks or 0, ordinary experts; behind them come two zero, three copying and two constant ones
SPECIAL = [(3, 2, 4, 0, 3), (20, 4, 600, 0, 2), (6, 3, 5, 4, 4), (4, 1, 7, 2, 2), (0, 2, 3, 0, 2), (3, 2, 0, 0, 2)]


@pytest.mark.parametrize("by_columns", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_final_routing_with_special_experts(by_columns, biased):
    for number, (rows, choices, width, capacity, experts) in enumerate(SPECIAL):
        for kind, layout, weight in zip(KINDS, np.roll(LAYOUTS, number), ("F32", "F16", "F32")):
            count, room = rows * choices, capacity * experts or rows * choices
            random = np.random.default_rng(number)
            tokens, x = drawn((room, width), number, kind), drawn((rows, width), number + 1, kind)
            scales, bias = drawn((rows, choices), number + 2, weight), drawn((experts + 7, width), number + 3, kind)
            alpha1, alpha2, v = drawn((3, 2, width), number + 4, kind)
            chosen = random.integers(0, experts + 7, (rows, choices))
            zero, copied, constant = (chosen >= experts) & (chosen < experts + 2), (chosen >= experts + 2) & (chosen < experts + 5), chosen >= experts + 5
            places = random.choice(room, count, replace=capacity > 0) if count else np.zeros(0, int)
            ordered = places.reshape(choices, rows).T if by_columns else places.reshape(rows, choices)
            numbers = np.where(constant, chosen - experts - 5, 0)
            own_rows = tokens[ordered] if count else np.zeros((rows, choices, width))
            values = np.where(copied[..., None], x[:, None], np.where(constant[..., None], alpha1[numbers] * x[:, None] + (alpha2 * v)[numbers], own_rows))
            terms = np.where(zero[..., None], 0, scales[..., None] * (values + (bias[chosen] if biased else 0)))
            wild = np.where(zero | copied | constant, -7, ordered)  # places of experts without rows are not looked at
            wild = wild.T.ravel() if by_columns else wild.ravel()
            put = lambda values, k=kind: tensor(values, k, layout)
            mode = (0 if by_columns else 2) + (capacity > 0)
            arguments = dict(
                expandedX=put(tokens.reshape(experts, capacity, width) if capacity else tokens), expandedRowIdx=put(wild, "I32"),
                x1Optional=put(x), x2Optional=None, biasOptional=put(bias) if biased else None, scalesOptional=put(scales, weight),
                expertIdxOptional=put(chosen, "I32"), xOptional=put(x), alpha1Optional=put(alpha1), alpha2Optional=put(alpha2),
                vOptional=put(v), dropPadMode=mode, zeroExpertRange=[experts, experts + 2],
                copyExpertRange=[experts + 2, experts + 5], constantExpertRange=[experts + 5, experts + 7])  # fmt: skip
            magnitude = np.abs(terms).sum(1) + np.abs(scales).sum(1, keepdims=True) * 16
            own = call("MoeFinalizeRoutingV3", **arguments, out=empty((rows, width), kind, layout))
            near(own, x + terms.sum(1), kind, magnitude)
            again = call("MoeFinalizeRoutingV4", **arguments, k=choices, out=empty((rows, width), kind, layout))
            np.testing.assert_array_equal(again, own)
            sums = call("MoeFinalizeRoutingV4", **{**arguments, "scalesOptional": None}, k=choices, out=empty((rows, width), kind))
            terms = np.where(zero[..., None], 0, values + (bias[chosen] if biased else 0))
            near(sums, x + terms.sum(1), kind, np.abs(terms).sum(1) + 16)


def test_final_routing_without_special_experts():
    """As MoeFinalizeRoutingV2, whatever else is given."""
    tokens, scales, x = drawn((6, 4), 1), drawn((3, 2), 2), tensor(np.full((3, 4), np.nan))
    places = tensor([5, 4, 3, 2, 1, 0], "I32")
    expected = final(tensor(tokens), places, 2, empty((3, 4)), scales=tensor(scales))
    for ranges in (None, []):
        own = call("MoeFinalizeRoutingV3", expandedX=tensor(tokens), expandedRowIdx=places, x1Optional=None, x2Optional=None,
                   biasOptional=None, scalesOptional=tensor(scales), expertIdxOptional=None, xOptional=x, alpha1Optional=x,
                   alpha2Optional=None, vOptional=None, dropPadMode=2, zeroExpertRange=ranges, copyExpertRange=ranges,
                   constantExpertRange=ranges, out=empty((3, 4)))  # fmt: skip
        np.testing.assert_array_equal(own, expected)


def test_special_experts_outside_are_faults():
    span = lambda begin, end: pages.made({"kind": "IA"}, [begin, end])
    ones = tensor(np.ones((2, 3)))
    for places, experts, words in (([0, 1, 2, 4], [[0, 1], [0, 1]], "place 3 of 4 is 4, which is not in 0 … 3"),
                                   ([0, 1, 2, 4], [[0, 1], [2, 3]], "expert number 3 of 4 is 3, which is not in 0 … 2"),
                                   ([-1, 1, 2, 3], [[0, 1], [2, 2]], "place 0 of 4 is -1")):  # fmt: skip
        assert words in fault(
            "MoeFinalizeRoutingV3", tensor(np.ones((4, 3))), tensor(places, "I32"), None, None, tensor(np.ones((3, 3))),
            tensor(np.ones((2, 2))), tensor(experts, "I32"), ones, None, None, None, 2, None, span(2, 9), None, empty((2, 3)))  # fmt: skip


@pytest.mark.parametrize("mode", [0, 1])
def test_gradient_of_final_routing(mode):
    """By the derivative of MoeFinalizeRoutingV2's formula, which is linear in tokens and in scales."""
    for number, (rows, choices, width, limit, capacity, active) in enumerate([(3, 2, 4, 3, 2, 0), (20, 4, 600, 9, 9, 70), (5, 1, 5, 7, 4, 3), (1, 8, 3, 8, 1, 0)]):
        for kind, layout in zip(KINDS, np.roll(LAYOUTS, number)):
            count = rows * choices
            room = limit * capacity if mode else count
            kept = room if mode else min(active or count, count)
            shape = (limit, capacity, width) if mode else (kept, width)
            random = np.random.default_rng(number)
            places = random.permutation(room)[:count] if room >= count else np.concatenate([random.permutation(room), np.full(count - room, -1)])
            places[0] = -1 if mode else places[0]
            slopes, scales, bias = drawn((rows, width), number, kind), drawn((rows, choices), number + 1, kind), drawn((limit, width), number + 2, kind)
            tokens, experts = drawn((kept, width), number + 3, kind), experts_of((rows, choices), limit, number)
            there = (places >= 0) & (places < kept)
            values = np.where(there[:, None], tokens[np.where(there, places, 0)], 0).reshape(rows, choices, width)
            by_tokens = np.zeros((kept, width))
            by_tokens[places[there]] = (scales[..., None] * slopes[:, None]).reshape(count, width)[there]
            put = lambda value, form=kind: tensor(value, form, layout)
            for biased in (True, False):
                addend = np.where((there | (mode == 1)).reshape(rows, choices, 1), bias[experts], 0) if biased else 0
                terms = slopes[:, None] * (values + addend)
                own = call("MoeFinalizeRoutingV2Grad", gradY=put(slopes), expandedRowIdx=put(places, "I32"),
                           expandedXOptional=put(tokens.reshape(shape)), scalesOptional=put(scales),
                           expertIdxOptional=put(experts, "I32") if biased else None,
                           biasOptional=put(bias) if biased else None, dropPadMode=mode, activeNum=active,
                           expertNum=limit, expertCapacity=capacity, gradExpandedXOut=empty(shape, kind, layout),
                           gradScalesOut=empty((rows, choices), kind, layout))  # fmt: skip
                near(own[0].reshape(kept, width), by_tokens, kind, 0)
                np.testing.assert_allclose(own[1], terms.sum(2), rtol=1.01 * ROUNDING[kind],
                                           atol=2.0**-50 * np.abs(terms).sum())  # fmt: skip
            if choices == 1:
                alone = call("MoeFinalizeRoutingV2Grad", gradY=put(slopes), expandedRowIdx=put(places, "I32"),
                             expandedXOptional=None, scalesOptional=None, expertIdxOptional=None, biasOptional=None,
                             dropPadMode=mode, activeNum=active, expertNum=limit, expertCapacity=capacity,
                             gradExpandedXOut=empty(shape, kind), gradScalesOut=None)  # fmt: skip
                expected = np.zeros((kept, width))
                expected[places[there]] = slopes[there]
                np.testing.assert_array_equal(alone.reshape(kept, width), expected)


def test_round_trip():
    """What the page pairs: mode 2 after a routing without blocks, mode 3 after one with blocks; with activeNum too."""
    x, experts = drawn((9, 5), 1), np.array([np.random.default_rng(i).permutation(4)[:2] for i in range(9)])
    scales = drawn((9, 2), 2)
    for capacity, active in ((0, 0), (9, 0), (2, 0), (0, 7)):
        routed, places = initial(x, experts, "F32", capacity=capacity, limit=4, active=active)
        own = final(tensor(routed), tensor(places, "I32"), 3 if capacity else 2, empty((9, 5)), scales=tensor(scales))
        lost = (places < 0) | (places >= (active or np.inf))
        near(own, x * (scales * ~lost.reshape(9, 2)).sum(1)[:, None], "F32", 16)


def test_numbers_outside_are_faults():
    for experts, limit, words in (([[0, 4]], 4, "number 1 of 2 is 4, which is not in 0 … 3"),
                                  ([[-1, 2]], 0, "number 0 of 2 is -1")):  # fmt: skip
        assert words in fault("MoeInitRoutingV2", tensor(np.ones((1, 3))), tensor(experts, "I32"), 0, 0, limit, 0,
                              int(limit > 0), False, empty((2, 3)), empty((2,), "I32"), empty((4,), "I32"),
                              None)  # fmt: skip
    for expert in (-2, 3):
        out = fault("MoeInitRoutingV3", tensor(np.ones((1, 3))), tensor([[0, expert]], "I32"), None, None, 0, 0, 3, 0,
                    0, False, -1, None, 0, empty((2, 3)), empty((2,), "I32"), None, None)  # fmt: skip
        assert f"number 1 of 2 is {expert}, which is not in -1 … 2" in out
    for row in (-1, 2):
        assert f"row number 1 of 2 is {row}, which is not in 0 … 1" in fault(
            "MoeInitRouting", tensor(np.ones((1, 3))), tensor([[0, row]], "I32"), tensor([[0, 1]], "I32"), 1, empty((2, 3)),
            empty((2,), "I32"), empty((2,), "I32"))  # fmt: skip
    assert "is 16777215," in fault("MoeTokenPermute", tensor(np.ones((1, 3))), tensor([16777215], "I32"), 0, False,
                                   empty((1, 3)), empty((1,), "I32"))  # fmt: skip
    x, one = tensor(np.ones((4, 3))), tensor(np.ones((2, 2)))
    for places, expert, words in (([0, 1, 4, 2], 1, "place 2 of 4 is 4, which is not in 0 … 3"),
                                  ([0, -1, 1, 2], 1, "place 1 of 4 is -1"),
                                  ([0, 1, 3, 2], -1, "expert number 3 of 4 is -1"),
                                  ([0, 1, 3, 2], 2, "expert number 3 of 4 is 2")):  # fmt: skip
        assert words in fault("MoeFinalizeRoutingV2", x, tensor(places, "I32"), None, None, tensor(np.ones((2, 3))), one,
                              tensor([[0, 1], [1, expert]], "I32"), 2, empty((2, 3)))  # fmt: skip
    for place, expert, words in ((4, 1, "place 3 of 4 is 4"), (3, 2, "expert number 3 of 4 is 2")):
        assert words in fault("MoeFinalizeRouting", x, tensor(np.ones((2, 3))), None, tensor(np.ones((2, 3))), one,
                              tensor([0, 1, 2, place], "I32"), tensor([[0, 1], [1, expert]], "I32"), empty((2, 3)))  # fmt: skip
    assert "place 0 of 4 is -2" in fault("MoeTokenUnpermute", x, tensor([-2, 1, 2, 3], "I32"), one, False, None,
                                         empty((2, 3)))  # fmt: skip
    for places, expert, mode, words in (([0, 1, 2, 4], 1, 0, "place 3 of 4 is 4, which is not in 0 … 3"),
                                        ([0, 1, 2, 3], 2, 0, "expert number 3 of 4 is 2"),
                                        ([0, 1, -2, 3], 1, 1, "place 2 of 4 is -2, which is not in -1 … 3")):  # fmt: skip
        shape = (2, 2, 3) if mode else (4, 3)
        assert words in fault("MoeFinalizeRoutingV2Grad", tensor(np.ones((2, 3))), tensor(places, "I32"),
                              tensor(np.ones(shape)), one, tensor([[0, 1], [1, expert]], "I32"),
                              tensor(np.ones((2, 3))), mode, 0, 2, 2, empty(shape), empty((2, 2)))  # fmt: skip
    for place in (-1, 4):
        out = empty((4, 3))
        sentence = fault("MoeTokenUnpermuteGrad", x, tensor(np.ones((2, 3))), tensor([0, 1, 2, place], "I32"), one,
                         False, None, out, empty((2, 2)))  # fmt: skip
        assert f"place 3 of 4 is {place}" in sentence
        np.testing.assert_array_equal(out.values(), empty((4, 3)).values())


def test_no_rows_of_a_width_beyond_counting():
    """Three choices of this width are 2^64 - 1 elements."""
    rows = (0, (2**64 - 1) // 3)
    support.run("aclnnMoeInitRoutingV2Grad", empty(rows), empty((0,), "I32"), 3, 0, 0, empty(rows))


def test_tokens_of_no_columns():
    """More of them than there is time to visit, or memory to count."""
    none, many, index = empty((0, 0)), (2**62, 0), lambda: empty((0,), "I32")
    support.run("aclnnMoeFinalizeRouting", none, empty(many), None, empty((2, 0)), empty(many), index(), empty(many, "I32"), empty(many))
    for blocks in (False, True):
        support.run("aclnnMoeTokenUnpermuteWithRoutingMap", none, index(), None, None, blocks, None, empty(many), index(), index(),
                    None)  # fmt: skip
        support.run("aclnnMoeTokenUnpermuteWithRoutingMap", none, index(), empty(many, "B"), empty(many), blocks, None, empty(many),
                    index(), index(), empty((0,)))  # fmt: skip
        support.run("aclnnMoeTokenUnpermuteWithRoutingMapGrad", empty(many), index(), index(), empty(many, "B"), none, empty(many),
                    blocks, None, none, empty(many))  # fmt: skip


def test_blocks_of_no_columns():
    """More of them than memory could hold."""
    experts = [[0], [2], [0], [1]]
    _, places, _, _ = call(
        "MoeInitRoutingV2", x=tensor(np.zeros((4, 0))), expertIdx=tensor(experts, "I32"), activeNumOptional=0,
        expertCapacityOptional=4, expertNumOptional=2**57, dropPadModeOptional=1, expertTokensCountOrCumsumFlagOptional=0,
        expertTokensBeforeCapacityFlagOptional=False, expandedXOut=empty((2**57, 4, 0)),
        expandedRowIdxOut=empty((4,), "I32"), expertTokensCountOrCumsumOutOptional=empty((1,), "I32"),
        expertTokensBeforeCapacityOutOptional=empty((1,), "I32"))  # fmt: skip
    np.testing.assert_array_equal(places, [0, 8, 1, 4])


def test_gates_of_rows_without_columns():
    experts = np.array([[2, 0], [1, 2], [0, 1]])
    for capacity in (0, 2):
        row_of, place_of = rows_by_experts(experts, 0, 3, 6, capacity)
        _, places, gates = initial_v3(np.zeros((3, 0)), experts, "F32", "gaps", -1, np.array([1.5, -2.0, 4.0]), None, 0, capacity, 3, None, None, False)
        np.testing.assert_array_equal(places, place_of)
        np.testing.assert_array_equal(gates, np.array([1.5, -2.0, 4.0])[row_of // 2])


def test_functions():
    x, experts = drawn((4, 6), 1).astype(np.float32), np.array([[1, 0], [2, 1], [0, 2], [1, 2]], np.int32)
    rows, order = ascend.ops.moe_token_permute(x, experts, 0, False)
    np.testing.assert_array_equal(order, places_of(experts))
    halves = np.full((4, 2), 0.5, np.float32)
    np.testing.assert_array_equal(ascend.ops.moe_token_unpermute(rows, order, False, halves), x)
    rows, order, counts, _ = ascend.ops.moe_init_routing_v2(x, experts, 0, 0, 3, 0, 2, False)
    assert counts.tolist() == [2, 3, 3]
    np.testing.assert_array_equal(ascend.ops.moe_finalize_routing_v2(rows, order, 2, scalesOptional=halves), x)


def test_functions_of_the_first_versions():
    x, scores = drawn((4, 6), 1).astype(np.float32), drawn((4, 3), 2).astype(np.float32)
    weights, experts, numbers = ascend.ops.moe_gating_top_k_softmax(scores, 2)
    np.testing.assert_allclose(weights, softmax_gated(scores, None, 2, False)[0], rtol=1e-5)
    both, again, _ = ascend.ops.moe_gating_top_k_softmax_v2(scores, 2, 1, False)
    np.testing.assert_array_equal(again, experts)
    np.testing.assert_allclose(both.sum(1), 1, rtol=1e-6)
    rows, order, sorted_experts = ascend.ops.moe_init_routing(x, numbers, experts, 4)
    np.testing.assert_array_equal(sorted_experts, np.sort(experts.ravel()))
    np.testing.assert_array_equal(ascend.ops.moe_compute_expert_tokens(sorted_experts, 3), np.bincount(experts.ravel(), minlength=3).cumsum())
    bias = np.zeros((3, 6), np.float32)
    own = ascend.ops.moe_finalize_routing(rows, x, bias, np.full((4, 2), 0.5, np.float32), order, experts)
    np.testing.assert_array_equal(own, 2 * x)
    quantized, _, _ = ascend.ops.moe_init_routing_quant(x, numbers, experts, 4, 10.0, 1.0)
    np.testing.assert_array_equal(quantized, np.rint(rows * np.float32(10) + np.float32(1)))


def test_functions_of_later_versions():
    """The NumPy layer finds the shapes of all results."""
    ops = ascend.ops
    x, experts = drawn((4, 6), 1).astype(np.float32), np.array([[1, 0], [2, 1], [0, 2], [1, 2]], np.int32)
    halves, places = np.full((4, 2), 0.5, np.float32), places_of(experts)
    rows = np.repeat(x, 2, 0)[np.argsort(places)]
    own = ops.moe_init_routing_quant_v2(x, experts, 0, 2, 3, 1, 0, False, 1)
    assert own[0].shape == (3, 2, 6) and own[-1].shape == (6,)
    part, order, gates = ops.moe_token_permute_with_ep(x, experts, 0, False, halves, [2, 6])
    np.testing.assert_array_equal(part, rows[2:6])
    assert gates.tolist() == [0.5] * 4
    back = ops.moe_token_unpermute_with_ep(part, order, 2, False, halves, [2, 6])
    kept = ((places >= 2) & (places < 6)).reshape(4, 2).sum(1)
    np.testing.assert_array_equal(back, x * 0.5 * kept[:, None])
    slopes, by_gates = ops.moe_token_permute_with_ep_grad(part, order, 2, False, gates, [2, 6])
    assert slopes.shape == x.shape and by_gates.shape == (4, 2)
    slopes, by_gates = ops.moe_token_unpermute_with_ep_grad(x, order, False, 2, part, halves, rangeOptional=[2, 6])
    assert slopes.shape == part.shape and by_gates.shape == (4, 2)
    for version, more in ((ops.moe_finalize_routing_v3, []), (ops.moe_finalize_routing_v4, [1])):
        np.testing.assert_array_equal(version(rows, order, 2, *more, scalesOptional=halves), x)
    assert ops.moe_finalize_routing_v4(rows, order, 2, 2).shape == x.shape
    marks = np.zeros((4, 3), bool)
    np.put_along_axis(marks, experts, True, 1)
    routed, _, order = ops.moe_token_permute_with_routing_map(x, marks, 8, False)
    probs = np.full((4, 3), 0.5, np.float32)
    own, index, tokens, _ = ops.moe_token_unpermute_with_routing_map(routed, order, False, marks, probs)
    np.testing.assert_array_equal(own, x)
    slopes, by_probs = ops.moe_token_unpermute_with_routing_map_grad(x, index, tokens, False, marks, routed, probs)
    assert slopes.shape == routed.shape and by_probs.shape == probs.shape
    weights, chosen, _ = ops.moe_gating_top_kv2(x, 2, 1, 1, 0, 0, 1, False, 1.0, 0.0)
    again, _ = ops.moe_fused_topk(x, np.zeros(6, np.float32), 1, 1, 1, 2, 0, True, 1.0, False)
    np.testing.assert_allclose(again, weights, rtol=1e-6)
    assert ops.moe_gating_top_k_backward(1 / (1 + np.exp(-x)), weights, chosen, 0, 1, 1.0, 0.0).shape == x.shape
    permuted, order, _ = ops.moe_token_permute_v2(x, experts, 0, False, -1)
    np.testing.assert_array_equal(permuted, rows)
    moved, _, index, counts = ops.moe_re_routing(x.astype(np.float16), np.array([[1, 1], [2, 0]], np.int32), 1, 0)
    assert index.tolist() == [0, 2, 3, 1] and counts.tolist() == [3, 1]
    placed, mask = ops.moe_update_expert(experts, np.array([[1, 7], [1, 8], [1, 9]], np.int32), 0, 2, 0, halves, halves[0])
    np.testing.assert_array_equal(placed, experts + 7)
    assert mask.all()
