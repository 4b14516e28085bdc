"""Tokens in the order of their experts, by numbers, parts and maps, and back."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, fault, rounded, tensor
from tests.ascend.routing import FLOOR, KINDS, ROUNDING, drawn, experts_of, near, places_of
from tests.conformance.ascend import pages


def kept_of(count, limit):
    return len(range(count)[:limit]) if limit else count


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
