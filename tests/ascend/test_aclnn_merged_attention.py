"""Merged results of attention to parts of the keys: the pages' formulas in float64, and attention to all keys at once."""

import numpy as np
import pytest

from tests.ascend.attention import attention, near
from tests.ascend.calling import LAYOUTS, call, drawn, empty, random, rounded, tensor

KINDS = ["F32", "F16", "BF16"]
ROUNDING = {"F32": 0.0, "F16": 2.0**-11, "BF16": 2.0**-8}


def close(actual, expected, kind, scale=None, parts=2):
    """Rounded once from float32, in which each part's weight has some roundings and two exponentials."""
    with np.errstate(invalid="ignore"):
        size = np.abs(expected) if scale is None else scale
        bound = ROUNDING[kind] * np.abs(expected) + (parts + 12) * 2.0**-24 * size + 2.0**-25
        assert ((np.abs(actual - expected) <= bound) | (actual == expected)).all()


# ---- two parts ------------------------------------------------------------------------------------------------------------


def merged(parts):
    """Of (y, m, s) with [batch, head, row, depth] and [batch, head, row, 1]; and the size of the terms of y."""
    (y1, m1, s1), (y2, m2, s2) = parts
    largest = np.maximum(m1, m2)
    shift = np.where(np.isinf(largest), 0, largest)
    s1, s2 = s1 * np.exp(m1 - shift), s2 * np.exp(m2 - shift)
    whole = np.where(s1 + s2 == 0, 1, s1 + s2)
    return (y1 * s1 + y2 * s2) / whole, largest, s1 + s2, (np.abs(y1) * s1 + np.abs(y2) * s2) / whole


def update(parts, kind, layout, packed, version):
    (b, n, s, d) = parts[0][0].shape

    def own(values, depth):  # [b, n, s, …] as the layout has it
        if packed:
            return values[0].swapaxes(0, 1)
        return values.transpose(2, 0, 1, 3).reshape(s, b, n * d) if depth == d else values

    def back(values, depth):
        if packed:
            return values.swapaxes(0, 1)[None]
        return values.reshape(s, b, n, d).transpose(1, 2, 0, 3) if depth == d else values

    given = {}
    for name, (y, m, total) in zip(("prev", "cur"), parts):
        given[f"{name}AttnOut"] = tensor(own(y, d), kind, layout)
        given[f"{name}SoftmaxMax"] = tensor(own(np.repeat(m, 8, 3), 8), "F32", layout)
        given[f"{name}SoftmaxSum"] = tensor(own(np.repeat(total, 8, 3), 8), "F32", layout)
    if version == 2:
        given["inputSoftmaxLayoutOptional"] = "TND" if packed else None
    shapes = [own(parts[0][0], d).shape] + [own(np.zeros((b, n, s, 8)), 8).shape] * 2
    outs = [empty(shape, own_kind, layout) for shape, own_kind in zip(shapes, (kind, "F32", "F32"))]
    found = call("RingAttentionUpdate" + ("V2" if version == 2 else ""), inputLayoutOptional="TND" if packed else "SBH",
                 actualSeqQlenOptional=tensor([0, 2, s], "I64") if packed else None, attnOutOut=outs[0], softmaxMaxOut=outs[1],
                 softmaxSumOut=outs[2], **given)  # fmt: skip
    return [back(values, depth) for values, depth in zip(found, (d, 8, 8))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed, shape", [(False, (2, 3, 5, 20)), (False, (1, 1, 700, 7)), (True, (1, 5, 9, 64)),
                                           (True, (1, 2, 33, 192))])  # fmt: skip
def test_two_parts(kind, packed, shape):
    rows = (*shape[:3], 1)
    parts = [(drawn(shape, seed, kind), rounded(drawn(rows, seed + 1) * 30, "F32"),
              np.float32(random(seed + 2).uniform(1, 900, rows)))
             for seed in (1, 4)]  # fmt: skip
    parts[0][1][0, 0, 0] = parts[1][1][0, 0, 1] = -np.inf  # a row without keys in one part, one in the other
    parts[0][2][0, 0, 0] = parts[1][2][0, 0, 1] = 0
    if shape[2] > 2:
        for _, m, total in parts:
            m[0, 0, 2], total[0, 0, 2] = -np.inf, 0
    y, m, total, scale = merged(parts)
    for layout in LAYOUTS:
        for version in (1, 2):
            own = update(parts, kind, layout, packed, version)
            close(own[0], y, kind, scale)
            np.testing.assert_array_equal(own[1], np.repeat(m, 8, 3))
            close(own[2], np.repeat(total, 8, 3), "F32")


def test_copies_that_differ():
    """Each is merged by itself; the first one counts for the result."""
    y1, y2, (m1, m2), (s1, s2) = drawn((7, 2, 64), 1), drawn((7, 2, 64), 2), drawn((2, 7, 2, 8), 3), np.float64(
        np.float32(random(4).uniform(1, 9, (2, 7, 2, 8))))  # fmt: skip
    m1[..., 5] = m1[..., 0]  # a copy of the first one in one part
    s1[..., 5] = s1[..., 0]
    y, m, total = call("RingAttentionUpdate", prevAttnOut=tensor(y1), prevSoftmaxMax=tensor(m1), prevSoftmaxSum=tensor(s1),
                       curAttnOut=tensor(y2), curSoftmaxMax=tensor(m2), curSoftmaxSum=tensor(s2),
                       actualSeqQlenOptional=tensor([0, 7], "I64"), inputLayoutOptional="TND", attnOutOut=empty((7, 2, 64)),
                       softmaxMaxOut=empty((7, 2, 8)), softmaxSumOut=empty((7, 2, 8)))  # fmt: skip
    largest = np.maximum(m1, m2)
    first, second = s1 * np.exp(m1 - largest), s2 * np.exp(m2 - largest)
    np.testing.assert_array_equal(m, largest)
    close(total, first + second, "F32")
    weights = [(part / (first + second))[..., :1] for part in (first, second)]
    close(y, y1 * weights[0] + y2 * weights[1], "F32", np.abs(y1) * weights[0] + np.abs(y2) * weights[1])


def test_attention_to_all_keys():
    """What two calls of FlashAttentionScore leave, merged."""
    kind = "F32"
    (b, n, s, d), keys = (2, 3, 11, 16), 40
    q, k, v = (drawn((b, n, rows, d), seed, kind) for rows, seed in ((s, 7), (keys, 8), (keys, 9)))
    as_sbh = lambda x: x.transpose(2, 0, 1, 3).reshape(x.shape[2], b, n * d)
    from_sbh = lambda x: x.reshape(s, b, n, d).transpose(1, 2, 0, 3)
    parts = []
    for part in (slice(0, 13), slice(13, keys)):
        outs = [empty((b, n, s, 8)), empty((b, n, s, 8)), empty((s, b, n * d), kind)]
        m, total, y = call(
            "FlashAttentionScore", query=tensor(as_sbh(q), kind), key=tensor(as_sbh(k[:, :, part]), kind),
            value=tensor(as_sbh(v[:, :, part]), kind), realShiftOptional=None, dropMaskOptional=None, paddingMaskOptional=None,
            attenMaskOptional=None, prefixOptional=None, scaleValue=0.25, keepProb=1.0, preTokens=65536, nextTokens=65536,
            headNum=n, inputLayout="SBH", innerPrecise=0, sparseMode=0, softmaxMaxOut=outs[0], softmaxSumOut=outs[1],
            softmaxOutOut=None, attentionOutOut=outs[2])  # fmt: skip
        parts.append((from_sbh(y), m[..., :1], total[..., :1]))
    y, m, total = update(parts, kind, "row-major", False, 1)
    expected = attention(q, k, v, np.zeros((b, n, s, d)), 0.25, 0, np.ones((s, keys), bool), 1)
    near(y, expected[0], "F32")
    near(m[..., 0], expected[1], "F32")
    near(total[..., 0], expected[2], "F32")


# ---- any number of parts ---------------------------------------------------------------------------------------------------


def update_parts(logarithms, values, kind, layout, wants):
    rows, depth = values[0].shape
    found = call("AttentionUpdate", lse=[tensor(x, "F32", layout) for x in logarithms],
                 localOut=[tensor(x, kind, layout) for x in values], updateType=int(wants),
                 out=empty((rows, depth), kind, layout),
                 lseOut=empty((rows,), "F32", layout) if wants else None)  # fmt: skip
    return found if wants else (found, None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts, rows, depth", [(1, 3, 8), (2, 700, 40), (7, 31, 512), (128, 5, 24)])
def test_many_parts(kind, parts, rows, depth):
    logarithms = [np.float32(drawn(rows, seed)) * 8 for seed in range(parts)]
    values = [drawn((rows, depth), 1000 + seed, kind) for seed in range(parts)]
    for part in range(parts):  # no keys in some; in none for the last row
        if parts > 1 and part % 2 == 0:
            logarithms[part][0] = np.inf if part % 4 == 0 else -np.inf
        logarithms[part][-1] = np.inf
    for part in range(0, parts, 2):
        values[part][0] = np.nan if parts > 1 else values[part][0]  # what no key counts for
    weights = np.where(np.isinf(logarithms), -np.inf, logarithms)
    largest = weights.max(0)
    with np.errstate(invalid="ignore"):
        whole = largest + np.log(np.exp(weights - largest).sum(0))
        weights = np.where(np.isinf(weights), 0, np.exp(weights - whole))
    whole[-1] = np.inf
    terms = [np.where(weight[:, None] == 0, 0, weight[:, None] * value) for weight, value in zip(weights, values)]
    steep = 1 + np.abs(np.where(np.isinf(whole), 0, whole))[:, None]  # an error of a logarithm is one of its power
    for layout in LAYOUTS:
        for wants in (False, True):
            out, logarithm = update_parts(logarithms, values, kind, layout, wants)
            close(out, np.sum(terms, 0), kind, np.abs(terms).sum(0) * steep, parts)
            if wants:
                close(logarithm, whole, "F32", 1 + np.abs(np.where(np.isinf(whole), 0, whole)), parts)


def test_no_rows():
    out, logarithm = update_parts([np.zeros(0)] * 3, [np.zeros((0, 8))] * 3, "F16", "row-major", True)
    assert out.shape == (0, 8) and logarithm.shape == (0,)
