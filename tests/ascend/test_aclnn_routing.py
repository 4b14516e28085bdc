"""Tokens to experts and back: places by NumPy's stable sort, blocks with room for so many tokens, sums in float64."""

import numpy as np
import pytest

from understudy import ascend

from tests.ascend.calling import LAYOUTS, call, empty, empty_packed, fault, tensor, unpacked
from tests.ascend.routing import KINDS, ROUNDING, drawn, experts_of, initial_v3, near, places_of, rows_by_experts, softmax_gated, sorted_by_experts
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages


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


def counts_by_experts(experts, begin, end, limit, form):
    counts = np.bincount(experts[experts >= 0], minlength=limit)[begin:end]
    pairs = np.zeros((limit, 2), int)
    busy = np.flatnonzero(counts)
    pairs[: len(busy)] = np.stack([busy + begin, counts[busy]], 1)
    return [counts.cumsum(), counts, pairs][form]


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


@pytest.mark.parametrize("width", [1024, 1021])
def test_routed_tokens_that_no_cache_keeps(width):
    """They are written past the caches; rows of 2042 bytes begin anywhere in a line of memory."""
    rng = np.random.default_rng(7)
    x, experts = rng.normal(0, 1, (4300, width)).astype(np.float16), rng.integers(0, 64, (4300, 2)).astype(np.int32)
    order = np.argsort(experts.ravel(), kind="stable")
    routed, places = ascend.ops.moe_token_permute(x, experts, 0, False)
    np.testing.assert_array_equal(routed, x[order // 2])
    np.testing.assert_array_equal(places[order], np.arange(order.size))
    capacity = 180  # more than any expert gets: the others are zeros
    padded, *_ = ascend.ops.moe_init_routing_v2(x, experts, 0, capacity, 64, 1, 0, False)
    for expert in range(64):
        tokens = np.flatnonzero(experts.ravel() == expert) // 2
        np.testing.assert_array_equal(padded[expert, : len(tokens)], x[tokens])
        assert not padded[expert, len(tokens) :].any() and len(tokens) < capacity
