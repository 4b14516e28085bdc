"""Values and experts for the tests of routing."""

import numpy as np

from tests.ascend.calling import call, empty, rounded, tensor

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
