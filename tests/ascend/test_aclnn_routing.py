"""Tokens to experts and back: places by NumPy's stable sort, blocks with room for so many tokens, sums in float64."""

import numpy as np
import pytest

from understudy import ascend

from tests.ascend.calling import LAYOUTS, call, empty, fault, rounded, tensor
from tests.conformance.ascend import aclnn_support as support

KINDS = ["F32", "F16", "BF16"]
ROUNDING = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}


def drawn(shape, seed, kind="F32"):
    return rounded(np.random.default_rng(seed).normal(0, 2, shape), kind)


def experts_of(shape, limit, seed):
    return np.random.default_rng(seed).integers(0, limit, shape)


def near(actual, expected, kind, magnitude):
    """Rounded once from a sum of a few products in float32."""
    np.testing.assert_allclose(actual, expected, rtol=1.01 * ROUNDING[kind], atol=16 * 2.0**-24 * np.abs(magnitude).max(initial=0))


def places_of(experts):
    """Where each number stands in the sorted order."""
    return np.argsort(np.argsort(experts.ravel(), kind="stable"), kind="stable")


def kept_of(count, limit):
    return len(range(count)[:limit]) if limit else count


# tokens, their numbers, how many experts, numOutTokens
PERMUTED = [((3, 4), (3, 2), 5, 0), ((7, 33), (7, 3), 4, 10), ((5, 2, 3), (5,), 2, -2), ((2, 3), (2, 2), 9, -9), ((1, 600), (1, 40), 3, 99),
            ((0, 4), (0, 2), 3, 0), ((4, 0), (4, 2), 3, 0), ((4, 3), (4, 0), 3, 0), ((90, 5), (90, 8), 16777215, 0)]  # fmt: skip


def test_permute():
    for number, (shape, choice, limit, kept) in enumerate(PERMUTED):
        for kind, layout, index in zip(KINDS, np.roll(LAYOUTS, number), ("I32", "I64", "I32")):
            tokens, experts = drawn(shape, number, kind), experts_of(choice, limit, number)
            places = places_of(experts)
            expected = np.zeros((places.size, *shape[1:]))
            expected[places] = np.repeat(tokens, choice[1] if len(choice) == 2 else 1, 0)
            out = empty((kept_of(places.size, kept), *shape[1:]), kind, layout)
            rows, order = call("MoeTokenPermute", tokens=tensor(tokens, kind, layout), indices=tensor(experts, index, layout), numOutTokens=kept,
                               paddedMode=False, permuteTokensOut=out, sortedIndicesOut=empty((places.size,), "I32", layout))  # fmt: skip
            np.testing.assert_array_equal(order, places)
            np.testing.assert_array_equal(rows, expected[: len(rows)])
    flat, _ = call("MoeTokenPermute", tokens=tensor(drawn((3, 2, 4), 1)), indices=tensor([2, 0, 1], "I32"), numOutTokens=2, paddedMode=False,
                   permuteTokensOut=empty((2, 8)), sortedIndicesOut=empty((3,), "I32"))  # fmt: skip
    np.testing.assert_array_equal(flat, drawn((3, 2, 4), 1)[[1, 2]].reshape(2, 8))


def test_unpermute():
    for number, (rows, choices, width, missing) in enumerate([(3, 2, 4, 0), (7, 3, 1030, 4), (40, 1, 5, 0), (2, 512, 3, 1000), (0, 2, 3, 0)]):
        for kind, weight, layout in zip(KINDS, ("F32", "F32", "BF16"), np.roll(LAYOUTS, number)):
            count = rows * choices
            tokens, probs = drawn((count, width), number, kind), drawn((rows, choices), number + 9, weight)
            places = np.random.default_rng(number).permutation(count)
            there = tokens * (np.arange(count) < count - missing)[:, None]
            expected = (there[places].reshape(rows, choices, width) * probs[:, :, None]).sum(1)
            own = call("MoeTokenUnpermute", permutedTokens=tensor(tokens[: count - missing], kind, layout), sortedIndices=tensor(places, "I32", layout),
                       probsOptional=tensor(probs, weight, layout), paddedMode=False, restoreShapeOptional=None, out=empty((rows, width), kind, layout))  # fmt: skip
            near(own, expected, kind, np.abs(there).max(initial=0) * np.abs(probs).sum(1))
            own = call("MoeTokenUnpermute", permutedTokens=tensor(tokens, kind), sortedIndices=tensor(places, "I32"), probsOptional=None,
                       paddedMode=False, restoreShapeOptional=None, out=empty((count, width), kind))  # fmt: skip
            np.testing.assert_array_equal(own, tokens[places])


def initial(x, experts, kind, layout="row-major", active=0, capacity=0, limit=0, flag=0, before=False):
    count = experts.size
    shape = (limit, capacity, x.shape[1]) if capacity else (min(active or count, count), x.shape[1])
    return call("MoeInitRoutingV2", x=tensor(x, kind, layout), expertIdx=tensor(experts, "I32", layout), activeNumOptional=active,
                expertCapacityOptional=capacity, expertNumOptional=limit, dropPadModeOptional=int(capacity > 0),
                expertTokensCountOrCumsumFlagOptional=flag, expertTokensBeforeCapacityFlagOptional=before, expandedXOut=empty(shape, kind, layout),
                expandedRowIdxOut=empty((count,), "I32", layout), expertTokensCountOrCumsumOutOptional=empty((limit,), "I32", layout) if flag and not capacity else None,
                expertTokensBeforeCapacityOutOptional=empty((limit,), "I32", layout) if before and capacity else None)  # fmt: skip


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
            own = call("MoeTokenPermuteGrad", permutedOutputGrad=tensor(routed, kind, layout), sortedIndices=tensor(places, "I32", layout),
                       numTopk=choices, paddedMode=False, out=empty((rows, width), kind, layout))
            near(own, chosen.sum(1), kind, np.abs(chosen).sum((1, 2)))
            again = call("MoeInitRoutingV2Grad", gradExpandedX=tensor(routed, kind, layout), expandedRowIdx=tensor(places, "I32"),
                         topK=choices, dropPadMode=0, activeNum=kept if missing else 0, out=empty((rows, width), kind))  # fmt: skip
            np.testing.assert_array_equal(again, own)
            values = np.concatenate([tokens, np.zeros((missing, width))])[places].reshape(rows, choices, width)
            expected = np.zeros((count, width))
            expected[places] = (probs[:, :, None] * slopes[:, None]).reshape(count, width)
            by_tokens, by_probs = call(
                "MoeTokenUnpermuteGrad", permuteTokens=tensor(tokens, kind, layout), unpermutedTokensGrad=tensor(slopes, kind, layout),
                sortedIndices=tensor(places, "I32"), probsOptional=tensor(probs, "F32", layout), paddedMode=False, restoreShapeOptional=None,
                permutedTokensGradOut=empty((kept, width), kind, layout), probsGradOut=empty((rows, choices), "F32", layout))  # fmt: skip
            near(by_tokens, expected[:kept], kind, np.full(kept, np.abs(expected).max()))
            np.testing.assert_allclose(by_probs, (values * slopes[:, None]).sum(2), rtol=2.0**-23, atol=2.0**-40 * width)
        if choices == 1:
            plain = call("MoeTokenUnpermuteGrad", permuteTokens=tensor(tokens, kind), unpermutedTokensGrad=tensor(slopes, kind),
                         sortedIndices=tensor(places, "I32"), probsOptional=None, paddedMode=False, restoreShapeOptional=None,
                         permutedTokensGradOut=empty((kept, width), kind), probsGradOut=None)  # fmt: skip
            assert plain.shape == (kept, width)


def test_gradients_of_blocks():
    """dropPadMode 1: places count over the blocks of all experts, -1 is none."""
    routed, places = drawn((2, 3, 4), 1), np.array([0, -1, 5, 3, -1, -1])
    out = call("MoeInitRoutingV2Grad", gradExpandedX=tensor(routed), expandedRowIdx=tensor(places, "I32"), topK=2, dropPadMode=1,
               activeNum=0, out=empty((3, 4)))  # fmt: skip
    rows = routed.reshape(6, 4)
    near(out, np.stack([rows[0], rows[5] + rows[3], np.zeros(4)]), "F32", np.full(3, np.abs(rows).max()))


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
            for own, wanted in zip(initial(x, experts, kind, layout, capacity=capacity, limit=limit, before=True, flag=number % 3), expected):
                np.testing.assert_array_equal(own, wanted)
            assert len(initial(x, experts, kind, layout, capacity=capacity, limit=limit)) == 2


def final(x, places, mode, out, first=None, second=None, bias=None, scales=None, experts=None):
    return call("MoeFinalizeRoutingV2", expandedX=x, expandedRowIdx=places, x1Optional=first, x2Optional=second, biasOptional=bias,
                scalesOptional=scales, expertIdxOptional=experts, dropPadMode=mode, out=out)  # fmt: skip


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
            own = final(x, put(places, "I32"), mode, empty((rows, width), kind, layout), put(sides[0]), put(sides[1]), put(bias),
                        put(scales, weight), put(experts, "I32"))  # fmt: skip
            near(own, sums, kind, 8 * np.abs(scales).sum(1) * np.abs(tokens).max())
            own = final(x, put(places, "I32"), mode, empty((count, width), kind, layout), first=put(np.repeat(sides[0], choices, 0)))
            near(own, np.repeat(sides[0], choices, 0) + np.where(places[:, None] < 0, 0, tokens[places]), kind, 16)


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
    for experts, limit, words in (([[0, 4]], 4, "number 1 of 2 is 4, which is not in 0 … 3"), ([[-1, 2]], 0, "number 0 of 2 is -1")):
        assert words in fault("MoeInitRoutingV2", tensor(np.ones((1, 3))), tensor(experts, "I32"), 0, 0, limit, 0, int(limit > 0), False,
                              empty((2, 3)), empty((2,), "I32"), empty((4,), "I32"), None)  # fmt: skip
    assert "is 16777215," in fault("MoeTokenPermute", tensor(np.ones((1, 3))), tensor([16777215], "I32"), 0, False, empty((1, 3)), empty((1,), "I32"))
    x, one = tensor(np.ones((4, 3))), tensor(np.ones((2, 2)))
    for places, expert, words in (([0, 1, 4, 2], 1, "place 2 of 4 is 4, which is not in 0 … 3"), ([0, -1, 1, 2], 1, "place 1 of 4 is -1"),
                                  ([0, 1, 3, 2], -1, "expert number 3 of 4 is -1"), ([0, 1, 3, 2], 2, "expert number 3 of 4 is 2")):  # fmt: skip
        assert words in fault("MoeFinalizeRoutingV2", x, tensor(places, "I32"), None, None, tensor(np.ones((2, 3))), one,
                              tensor([[0, 1], [1, expert]], "I32"), 2, empty((2, 3)))  # fmt: skip
    assert "place 0 of 4 is -2" in fault("MoeTokenUnpermute", x, tensor([-2, 1, 2, 3], "I32"), one, False, None, empty((2, 3)))
    for place in (-1, 4):
        out = empty((4, 3))
        sentence = fault("MoeTokenUnpermuteGrad", x, tensor(np.ones((2, 3))), tensor([0, 1, 2, place], "I32"), one, False, None, out, empty((2, 2)))
        assert f"place 3 of 4 is {place}" in sentence
        np.testing.assert_array_equal(out.values(), empty((4, 3)).values())


def test_no_rows_of_a_width_beyond_counting():
    """Three choices of this width are 2^64 - 1 elements."""
    rows = (0, (2**64 - 1) // 3)
    support.run("aclnnMoeInitRoutingV2Grad", empty(rows), empty((0,), "I32"), 3, 0, 0, empty(rows))


def test_blocks_of_no_columns():
    """More of them than memory could hold."""
    experts = [[0], [2], [0], [1]]
    _, places, _, _ = call(
        "MoeInitRoutingV2", x=tensor(np.zeros((4, 0))), expertIdx=tensor(experts, "I32"), activeNumOptional=0,
        expertCapacityOptional=4, expertNumOptional=2**57, dropPadModeOptional=1, expertTokensCountOrCumsumFlagOptional=0,
        expertTokensBeforeCapacityFlagOptional=False, expandedXOut=empty((2**57, 4, 0)), expandedRowIdxOut=empty((4,), "I32"),
        expertTokensCountOrCumsumOutOptional=empty((1,), "I32"), expertTokensBeforeCapacityOutOptional=empty((1,), "I32"))  # fmt: skip
    np.testing.assert_array_equal(places, [0, 8, 1, 4])


def test_functions():
    x, experts = drawn((4, 6), 1).astype(np.float32), np.array([[1, 0], [2, 1], [0, 2], [1, 2]], np.int32)
    rows, order = ascend.ops.moe_token_permute(x, experts, 0, False)
    np.testing.assert_array_equal(order, places_of(experts))
    halves = np.full((4, 2), 0.5, np.float32)
    np.testing.assert_array_equal(ascend.ops.moe_token_unpermute(rows, order, False, halves), x)
    rows, order, counts, _ = ascend.ops.moe_init_routing_v2(x, experts, 0, 0, 3, 0, 2, False)
    assert counts.tolist() == [2, 3, 3]
    np.testing.assert_array_equal(ascend.ops.moe_finalize_routing_v2(rows, order, 2, scalesOptional=halves), x)
