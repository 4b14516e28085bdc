"""Attention and its gradients: layouts, sparse modes, shifts, dropout, shared keys and packed sequences, in float64."""

import re

import numpy as np
import pytest

from tests.ascend.attention import AXES, FAR, attention, back, kept, laid_out, near
from tests.ascend.calling import call, drawn, empty, refusal, tensor
from tests.conformance import harness
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import expanded, ffi, lib
from tests.conformance.verdicts import WrongStatus


def check(kind="F32", layout="BNSD", heads=4, key_heads=2, rows=5, keys=7, depth=8, value_depth=8, mode=None, mask=None,
          before=FAR, after=FAR, prefix=None, keep=1.0, shift=None, pse_type=None, batches=2, gaps="row-major", scale=0.3):
    q, k = drawn((batches, heads, rows, depth), 1, kind), drawn((batches, key_heads, keys, depth), 2, kind)
    v, dy = drawn((batches, key_heads, keys, value_depth), 3, kind), drawn((batches, heads, rows, value_depth), 4, kind)
    keeps = np.ones((batches, 1, rows, keys), bool)
    if mode is not None:
        keeps &= np.stack([kept(mode, rows, keys, before, after, p) for p in (prefix or [0] * batches)])[:, None]
    if mask is not None and mode in (None, 0, 1, 5):
        keeps = keeps & ~mask
    bits = np.random.default_rng(5).random((batches, heads, rows, keys)) < keep
    drop = bits / keep
    shifts = drawn(shift, 6, kind) if shift else None
    y, largest, sums, dq, dk, dv = attention(q, k, v, dy, scale, 0 if shifts is None else shifts, keeps, drop, pse_type == 0)
    given = lambda x, name=None: None if x is None else tensor(x, name or kind, gaps)
    fixed = {2: (2048, 2048), 3: (2048, 2048), 4: (2048, 2048), 6: (3072, 2048)}.get(mode)
    mask_given = empty(fixed, "B") if fixed else None if mask is None and mode is None else tensor(
        np.zeros((rows, keys)) if mask is None else mask, "B", gaps)  # fmt: skip
    drop_given = None if keep == 1 else tensor(np.packbits(bits.ravel(), bitorder="little"), "U8")
    common = {"dropMaskOptional": drop_given, "paddingMaskOptional": None, "attenMaskOptional": mask_given,
              "prefixOptional": prefix or [], "scaleValue": scale, "keepProb": keep, "preTokens": before,
              "nextTokens": after,
              "headNum": heads, "inputLayout": layout, "innerPrecise": 0, "sparseMode": mode or 0}  # fmt: skip
    version = "" if pse_type is None else "V2"
    if version:
        common |= {"qStartIdxOptional": [], "kvStartIdxOptional": [], "pseType": pse_type}
    put = lambda x: tensor(laid_out(x, layout), kind, gaps)
    blank = lambda x: empty(laid_out(x, layout).shape, kind, gaps)
    own_largest, own_sums, own_y = call(
        "FlashAttentionScore" + version, query=put(q), key=put(k), value=put(v), realShiftOptional=given(shifts),
        softmaxMaxOut=empty((*largest.shape, 8)), softmaxSumOut=empty((*sums.shape, 8)), softmaxOutOut=None,
        attentionOutOut=blank(y), **common)  # fmt: skip
    near(back(own_y, layout, y.shape), y, kind)
    near(own_largest, np.repeat(largest[..., None], 8, -1), "F32")
    near(own_sums, np.repeat(sums[..., None], 8, -1), "F32", 64)
    gradients = call(
        "FlashAttentionScoreGrad" + version, query=put(q), keyIn=put(k), value=put(v), dy=put(dy),
        pseShiftOptional=given(shifts), softmaxMaxOptional=tensor(own_largest), softmaxSumOptional=tensor(own_sums),
        softmaxInOptional=empty((0,), kind), attentionInOptional=put(y), dqOut=blank(q), dkOut=blank(k), dvOut=blank(v),
        dpseOut=None, **common)  # fmt: skip
    for own, expected in zip(gradients, (dq, dk, dv)):
        near(back(own, layout, expected.shape), expected, kind, 128 if kind == "F32" else 2**14)


@pytest.mark.parametrize("layout", list(AXES))
def test_layouts(layout):
    for kind in ("F32", "F16", "BF16"):
        check(kind, layout)
    check(layout=layout, value_depth=3, heads=6, key_heads=1, gaps="gaps")


@pytest.mark.parametrize("mode, before, after",
                         [(0, 2, 1), (0, FAR, 0), (0, -1, 3), (1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 2, 1),
                          (4, FAR, FAR)])  # fmt: skip
def test_sparse_modes(mode, before, after):
    check(mode=mode, before=before, after=after)
    check(mode=mode, before=before, after=after, rows=7, keys=4)  # some rows see no key
    check(mode=mode, before=before, after=after, rows=130, keys=261, heads=2, batches=1)


def test_prefixes():
    for mode in (5, 6):
        check(mode=mode, prefix=[4, 6])
        check(mode=mode, prefix=[0, 3], rows=6, keys=4)
        check(mode=mode, prefix=[10, 270, 300], rows=290, keys=300, heads=2, batches=3)
        for rows, keys, wrong in [(5, 7, (-(2**63), -1, 1, 8, 2**63 - 1)), (7, 5, (-1, 6))]:
            for count in wrong:
                with pytest.raises(WrongStatus):
                    check(mode=mode, prefix=[count, 4], rows=rows, keys=keys)
                assert harness.last_rule() == "aclnnFlashAttentionScore/prefixOptional/values"


# In the forward and the backward functions by the sheet of modes: mode, preTokens, nextTokens, ends of rows and keys, what is refused.
LIMITS = [
    (0, 9, -5, [2, 5], [3, 9], None), (0, 9, -6, [2, 5], [3, 9], "nextTokens/reach"),
    (0, -2, 9, [2, 5], [3, 9], None), (0, -3, 9, [2, 5], [3, 9], "preTokens/reach"),
    (7, 6, -3, [2, 5], [3, 9], None), (7, 6, 0, [2, 5, 5], [3, 9, 11], None),
    (7, 5, 0, [2, 5], [3, 9], "preTokens/cut"), (7, 6, 1, [2, 5], [3, 9], "nextTokens/cut"),
    (7, 6, -4, [2, 5], [3, 9], "nextTokens/cut"), (7, 9, 0, [2, 5], [1, 9], "sparseMode/rows"),
    (8, 3, -1, [2, 5], [3, 9], None), (8, 6, 2, [0, 3, 5], [3, 9, 9], None),
    (8, 2, 0, [2, 5], [3, 9], "preTokens/cut"), (8, 3, -2, [2, 5], [3, 9], "nextTokens/cut"),
    (8, 5, 0, [0, 3, 5], [3, 9, 9], "preTokens/cut"), (8, FAR, FAR, [2, 5], [1, 9], None),
    (3, 0, 0, [2, 5], [2, 9], None), (2, 0, 0, [2, 5], [1, 9], None), (6, 0, 0, [2, 5], [1, 9], None),
]  # fmt: skip


def packed_refusal(name, mode, before, after, query_ends, key_ends, shift=None, masked=True):
    """The rule that refuses; "": none does."""
    q, k, statistic = empty((query_ends[-1], 2, 8)), empty((key_ends[-1], 2, 8)), empty((query_ends[-1], 2, 8))
    mask = empty((16, 16) if mode == 0 else (3072 if mode == 6 else 2048, 2048), "B") if masked else None
    common = [np.maximum(np.diff(key_ends, prepend=0) - np.diff(query_ends, prepend=0), 0).tolist() if mode == 6 else [],
              query_ends, key_ends]  # fmt: skip
    numbers, arrays = [0.3, 1.0, before, after, 2, b"TND", 0, mode], [array(values) for values in common]
    if name == "FlashAttentionVarLenScore":
        told = refusal(name, q, k, k, shift, None, None, mask, *arrays, *numbers, statistic, statistic, None, q)
    else:
        told = refusal(name, q, k, k, q, shift, None, None, mask, statistic, statistic, None, q, *arrays, *numbers, q, k, k, None)
    for one in arrays:
        lib.aclDestroyIntArray(one)
    assert told[0] in (0, 161002)
    return told[1].removeprefix(f"aclnn{name}/") if told[0] else ""


def array(values):
    return lib.aclCreateIntArray(ffi.new("int64_t[]", values or [0]), len(values))


@pytest.mark.parametrize("name", ["FlashAttentionVarLenScore", "FlashAttentionUnpaddingScoreGrad"])
def test_limits_of_sparse_modes(name):
    for *given, rule in LIMITS:
        assert packed_refusal(name, *given) == (rule or ""), given
        assert packed_refusal(name, *given, masked=False) == "", given  # then there is no mode
    rows = "sparseMode/rows" if name == "FlashAttentionVarLenScore" else ""  # the gradient's page does not say it
    assert packed_refusal(name, 3, 0, 0, [2, 5], [1, 9]) == rows
    shift, which = empty((3, 2, 9, 9)), "realShiftOptional" if name == "FlashAttentionVarLenScore" else "pseShiftOptional"
    assert packed_refusal(name, 0, FAR, FAR, [2, 3, 5], [3, 9, 9], shift) == ""
    assert packed_refusal(name, 0, FAR, FAR, [2, 2, 5], [3, 9, 9], shift) == f"{which}/empty"


def test_masks_and_rows_without_keys():
    for shape in [(5, 7), (2, 4, 5, 7), (2, 1, 5, 7), (1, 1, 5, 7)]:
        mask = np.random.default_rng(1).random(shape) < 0.4
        mask[..., 2, :] = True
        for mode in (None, 1):
            check(mask=mask, mode=mode)
    check(mask=np.random.default_rng(2).random((200, 150)) < 0.5, rows=200, keys=150, mode=0, after=20)


@pytest.mark.parametrize("scale", [0.0, -0.7])
def test_scales_that_are_not_above_zero(scale):
    mask = np.random.default_rng(1).random((5, 7)) < 0.4
    mask[2] = True
    check(mask=mask, mode=0, after=3, scale=scale)
    check(mask=mask, mode=1, scale=scale, shift=(2, 4, 5, 7), pse_type=0)


def test_shifts():
    for shift in [(2, 4, 5, 7), (2, 4, 1, 7), (1, 4, 5, 7)]:
        check(shift=shift)
        for pse_type in (0, 1):
            check(shift=shift, pse_type=pse_type, gaps="reversed")


def test_dropout():
    check(keep=0.7)
    check(keep=0.5, mode=3, rows=140, keys=150, heads=2, key_heads=2)


def test_more_scores_than_are_counted():
    """2^64 of them have no mask of one byte."""
    heads, tokens = 256, 2**28
    of = lambda kind, *shape: expanded(pages.KINDS[kind], shape)
    rows, statistics = [of("F16", tokens, heads, 8) for _ in range(4)], [of("F32", tokens, heads, 8) for _ in range(2)]
    ends = lib.aclCreateIntArray(ffi.new("int64_t[]", [tokens]), 1)
    told = [refusal("FlashAttentionVarLenScoreV4", *rows[:3], None, drop, None, None, None, ends, ends, 0.5, 1.0, 9, 9, heads,
                    b"TND", 0, 0, None, *statistics, None, rows[3]) for drop in (None, tensor([255], "U8"))]  # fmt: skip
    assert lib.aclDestroyIntArray(ends) == 0
    assert told[0][0] == 0 and told[1] == (161002, "aclnnFlashAttentionVarLenScoreV4/dropMaskOptional/elements")


def test_no_rows():
    """Keys and values that nothing asks for have slopes of 0."""
    check(rows=0)
    check(rows=0, gaps="gaps", layout="SBH", value_depth=3)


def test_keys_in_ranges():
    """Few heads: the gradient is cut along the keys, and the parts are added."""
    check(batches=1, heads=1, key_heads=1, rows=150, keys=600)


@pytest.mark.parametrize("mode", [None, 1, 2, 3, 4, 6, 7, 8])
def test_packed_sequences(mode):
    heads, key_heads, depth = 4, 2, 8
    query_ends, key_ends = [3, 3, 8], [4, 6, 12]
    q, k, v = drawn((8, heads, depth), 1), drawn((12, key_heads, depth), 2), drawn((12, key_heads, depth), 3)
    dy = drawn(q.shape, 4)
    before, after = (6, -1) if mode == 7 else (9, 1)
    prefix = [1, 0, 3] if mode == 6 else []
    expected = [np.zeros_like(q), np.zeros((8, heads)), np.zeros((8, heads)), *map(np.zeros_like, (q, k, v))]
    for s in range(3):
        rows = slice(([0] + query_ends)[s], query_ends[s])
        keys = slice(([0] + key_ends)[s], key_ends[s])
        count = rows.stop - rows.start, keys.stop - keys.start
        if count[0] == 0:
            continue
        own = {7: 4 if s == 2 else 3, 8: 4 if s == 0 else 2}.get(mode, 1 if mode is None else mode)
        keeps = kept(own, *count, before, after, prefix[s] if prefix else 0)
        part = lambda x, at: x[at].swapaxes(0, 1)[None]
        results = attention(part(q, rows), part(k, keys), part(v, keys), part(dy, rows), 0.3, 0, keeps[None, None], 1)
        for whole, result, at in zip(expected, results, (rows, rows, rows, rows, keys, keys)):
            whole[at] = result[0].swapaxes(0, 1)
    below = empty((3072 if mode == 6 else 2048, 2048), "B")
    mask = None if mode is None else tensor(np.zeros((5, 6)), "B") if mode == 1 else below
    common = {"dropMaskOptional": None, "paddingMaskOptional": None, "attenMaskOptional": mask, "prefixOptional": prefix,
              "actualSeqQLenOptional": query_ends, "actualSeqKvLenOptional": key_ends, "scaleValue": 0.3, "keepProb": 1.0,
              "preTokens": before, "nextTokens": after, "headNum": heads, "inputLayout": "TND", "innerPrecise": 0,
              "sparseMode": mode or 0}  # fmt: skip
    largest, sums, y = call("FlashAttentionVarLenScore", query=tensor(q), key=tensor(k), value=tensor(v),
                            realShiftOptional=None, softmaxMaxOut=empty((8, heads, 8)),
                            softmaxSumOut=empty((heads, 8, 8) if mode == 1 else (8, heads, 8)), softmaxOutOut=None,
                            attentionOutOut=empty(q.shape), **common)  # fmt: skip
    near(y, expected[0], "F32")
    near(largest[..., 3], expected[1], "F32")
    gradients = call(
        "FlashAttentionUnpaddingScoreGrad", query=tensor(q), keyIn=tensor(k), value=tensor(v), dy=tensor(dy),
        pseShiftOptional=None, softmaxMaxOptional=tensor(largest), softmaxSumOptional=tensor(sums),
        softmaxInOptional=None, attentionInOptional=tensor(y), dqOut=empty(q.shape), dkOut=empty(k.shape),
        dvOut=empty(v.shape), dpseOut=None, **common)  # fmt: skip
    for own, of in zip(gradients, expected[3:]):
        near(own, of, "F32", 128)


def test_shifts_of_sequences_cut_outside():
    """sparseMode 8 takes a shift where every sequence has as many rows as keys."""
    heads, ends = 2, [3, 8]
    q, k, shift = drawn((8, heads, 8), 1), drawn((8, heads, 8), 2), drawn((2, heads, 5, 5), 3)
    *_, y = call("FlashAttentionVarLenScore", query=tensor(q), key=tensor(k), value=tensor(k), realShiftOptional=tensor(shift),
                 dropMaskOptional=None, paddingMaskOptional=None, attenMaskOptional=empty((2048, 2048), "B"),
                 prefixOptional=[], actualSeqQLenOptional=ends, actualSeqKvLenOptional=ends, scaleValue=0.3, keepProb=1.0,
                 preTokens=9, nextTokens=1, headNum=heads, inputLayout="TND", innerPrecise=0, sparseMode=8,
                 softmaxMaxOut=empty((8, heads, 8)), softmaxSumOut=empty((8, heads, 8)), softmaxOutOut=None,
                 attentionOutOut=empty(q.shape))  # fmt: skip
    for s, (at, mode) in enumerate([(slice(0, 3), 4), (slice(3, 8), 2)]):
        own, keys = (x[at].swapaxes(0, 1)[None] for x in (q, k))
        rows = own.shape[2]
        keeps = kept(mode, rows, rows, 9, 1)[None, None]
        expected = attention(own, keys, keys, own, 0.3, shift[s : s + 1, :, :rows, :rows], keeps, 1)[0]
        near(y[at].swapaxes(0, 1)[None], expected, "F32")


@pytest.mark.parametrize("kind", ["F32", "F16"])
def test_packed_versions(kind):
    """The second version has the bits of the first with pseType 1; with 0 the shift is added to scaled products, which with a
    power of two for a scale is the first version's sum with a shift so much larger."""
    heads, depth, scale = 4, 8, 0.5
    q, k, v, dy = (drawn((7, heads, depth), 1, kind), drawn((9, 2, depth), 2, kind), drawn((9, 2, depth), 3, kind),
                   drawn((7, heads, depth), 4, kind))  # fmt: skip
    shift = drawn((2, heads, 5, 6), 5, kind) / 4
    common = {"dropMaskOptional": None, "paddingMaskOptional": None, "attenMaskOptional": None, "prefixOptional": [],
              "actualSeqQLenOptional": [2, 7], "actualSeqKvLenOptional": [3, 9], "scaleValue": scale, "keepProb": 1.0,
              "preTokens": 9, "nextTokens": 9, "headNum": heads, "inputLayout": "TND", "innerPrecise": 0,
              "sparseMode": 0}  # fmt: skip

    def both(forward, backward, shift, **more):
        largest, sums, y = call(forward, query=tensor(q, kind), key=tensor(k, kind), value=tensor(v, kind),
                                realShiftOptional=tensor(shift, kind), softmaxMaxOut=empty((7, heads, 8)),
                                softmaxSumOut=empty((7, heads, 8)), softmaxOutOut=None, attentionOutOut=empty(q.shape, kind),
                                **common, **more)  # fmt: skip
        gradients = call(backward, query=tensor(q, kind), keyIn=tensor(k, kind), value=tensor(v, kind), dy=tensor(dy, kind),
                         pseShiftOptional=tensor(shift, kind), softmaxMaxOptional=tensor(largest),
                         softmaxSumOptional=tensor(sums), softmaxInOptional=None, attentionInOptional=tensor(y, kind),
                         dqOut=empty(q.shape, kind), dkOut=empty(k.shape, kind), dvOut=empty(v.shape, kind),
                         dpseOut=None, **common, **more)  # fmt: skip
        return [largest, sums, y, *gradients]

    first = "FlashAttentionVarLenScore", "FlashAttentionUnpaddingScoreGrad"
    second = [name + "V2" for name in first]
    starts = {"qStartIdxOptional": [], "kvStartIdxOptional": []}
    for own, of in zip(both(*second, shift, pseType=1, **starts), both(*first, shift)):
        np.testing.assert_array_equal(own, of)
    for own, of in zip(both(*second, shift, pseType=0, **starts), both(*first, shift / scale)):
        np.testing.assert_array_equal(own, of)


@pytest.mark.parametrize("mode", [0, 2, 3])
@pytest.mark.parametrize("rotary, depth, deep", [(8, 16, 8), (64, 128, 128), (None, 24, 16)], ids=str)
def test_packed_parts(mode, rotary, depth, deep):
    """Scores of two parts are those of heads in which both stand side by side."""
    heads, key_heads, query_ends, key_ends = 4, 2, [3, 3, 8], [4, 6, 12]
    q, k, v = (drawn(shape, seed, "BF16")
               for seed, shape in enumerate([(8, heads, depth), (12, key_heads, depth),
                                             (12, key_heads, deep)]))  # fmt: skip
    parts = [np.zeros((8, heads, 0)), np.zeros((12, key_heads, 0))]
    if rotary is not None:
        parts = [drawn((8, heads, rotary), 4, "BF16"), drawn((12, key_heads, rotary), 5, "BF16")]
    drop = np.zeros((5, 6))
    drop[1:, 0] = 1
    dy = drawn((8, heads, deep), 6, "BF16")
    whole_q, whole_k = np.concatenate([q, parts[0]], -1), np.concatenate([k, parts[1]], -1)
    expected = [np.zeros_like(dy), np.zeros((8, heads)), np.zeros((8, heads)), *map(np.zeros_like, (whole_q, whole_k, v))]
    mask = empty((2048, 2048), "B") if mode else tensor(drop, "B")
    put = lambda x: None if rotary is None else tensor(x, "BF16")
    common = {"dropMaskOptional": None, "paddingMaskOptional": None, "attenMaskOptional": mask, "prefixOptional": [],
              "actualSeqQLenOptional": query_ends, "actualSeqKvLenOptional": key_ends, "qStartIdxOptional": [],
              "kvStartIdxOptional": [],
              "scaleValue": 0.1, "keepProb": 1.0, "preTokens": 9, "nextTokens": 9, "headNum": heads,
              "inputLayout": "TND", "innerPrecise": 0,
              "sparseMode": mode, "pseType": 1, "value": tensor(v, "BF16"), "query": tensor(q, "BF16"),
              "queryRope": put(parts[0])}  # fmt: skip
    largest, sums, y = call(
        "FlashAttentionVarLenScoreV3", key=tensor(k, "BF16"), keyRope=put(parts[1]), realShiftOptional=None,
        softmaxMaxOut=empty((8, heads, 8)), softmaxSumOut=empty((8, heads, 8)), softmaxOutOut=None,
        attentionOutOut=empty((8, heads, deep), "BF16"), **common)  # fmt: skip
    for s in range(3):
        rows, keys = slice(([0] + query_ends)[s], query_ends[s]), slice(([0] + key_ends)[s], key_ends[s])
        count = rows.stop - rows.start, keys.stop - keys.start
        keeps = kept(mode, *count, 9, 9) if mode else kept(0, *count, 9, 9) & (drop[: count[0], : count[1]] == 0)
        part = lambda x, at: x[at].swapaxes(0, 1)[None]
        if count[0] == 0:
            continue
        results = attention(part(whole_q, rows), part(whole_k, keys), part(v, keys), part(dy, rows), 0.1, 0,
                            keeps[None, None], 1, read=part(y, rows))  # fmt: skip
        for whole, result, at in zip(expected, results, (rows, rows, rows, rows, keys, keys)):
            whole[at] = result[0].swapaxes(0, 1)
    near(y, expected[0], "BF16")
    near(largest[..., 5], expected[1], "F32")
    near(sums[..., 0], expected[2], "F32", 64)
    dq, dq_part, dk, dk_part, dv = call(
        "FlashAttentionUnpaddingScoreGradV3", keyIn=tensor(k, "BF16"), keyInRope=put(parts[1]), dy=tensor(dy, "BF16"),
        pseShiftOptional=None, softmaxMaxOptional=tensor(largest), softmaxSumOptional=tensor(sums),
        softmaxInOptional=None, attentionInOptional=tensor(y, "BF16"), dqOut=empty(q.shape, "BF16", "gaps"),
        dqRopeOut=empty(parts[0].shape, "BF16"), dkOut=empty(k.shape, "BF16"),
        dkRopeOut=empty(parts[1].shape, "BF16", "gaps"), dvOut=empty(v.shape, "BF16"), dpseOut=None,
        **common)  # fmt: skip
    found = [np.concatenate([dq, dq_part], -1), np.concatenate([dk, dk_part], -1), dv]
    for own, of in zip(found, expected[3:]):
        near(own, of, "BF16", 128)


# ---- sinks -----------------------------------------------------------------------------------------------------------------


def with_sink(q, k, v, dy, scale, shift, keeps, drop, sink, read):
    """As `attention`, with one more score of every row that has keys, which has no value; and the slopes of the sinks.
    `read`: the result as the gradients read it."""
    shared = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, shared, 1) for x in (k, v))
    scores = np.where(keeps, scale * (q @ k.swapaxes(2, 3)) + shift, -np.inf)
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    seen = ~np.isinf(largest)
    sinks = np.broadcast_to(sink[None, :, None, None], largest.shape)
    largest = np.where(seen, np.maximum(largest, sinks), largest)
    powers = np.exp(scores - np.where(seen, largest, 0))
    sums = powers.sum(-1, keepdims=True) + np.where(seen, np.exp(sinks - np.where(seen, largest, 0)), 0)
    whole = np.where(seen, sums, 1)
    weights, weight = powers / whole, np.where(seen, np.exp(sinks - np.where(seen, largest, 0)), 0) / whole
    y = (weights * drop) @ v
    mean = (dy * (y if read is None else read)).sum(-1, keepdims=True)
    slopes = weights * ((dy @ v.swapaxes(2, 3)) * drop - mean)
    joined = lambda x: x.reshape(x.shape[0], -1, shared, *x.shape[2:]).sum(2)
    return (y, largest[..., 0], sums[..., 0], scale * slopes @ k, joined(scale * slopes.swapaxes(2, 3) @ q),
            joined((weights * drop).swapaxes(2, 3) @ dy), -(weight * mean).sum((0, 2, 3)))  # fmt: skip


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("layout", list(AXES))
@pytest.mark.parametrize("sinks", [True, False])
def test_sinks(kind, layout, sinks):
    batches, heads, rows, keys, depth = 2, 6, 150, 141, 16
    q, dy = drawn((batches, heads, rows, depth), 1, kind), drawn((batches, heads, rows, 8), 2, kind)
    k, v = drawn((batches, 3, keys, depth), 3, kind), drawn((batches, 3, keys, 8), 4, kind)
    sink = drawn((heads,), 5) * 3 if sinks else np.full(heads, -np.inf)
    sink = np.float64(np.float32(sink))
    bits = np.random.default_rng(6).random((batches, heads, rows, keys)) < 0.8
    mask = np.random.default_rng(7).random((rows, keys)) < 0.3
    mask[5] = True
    pse_type, shift = int(not sinks), drawn((1, heads, rows, keys), 8, kind)
    expect = lambda read: with_sink(q, k, v, dy, 0.3, shift * (0.3 if pse_type else 1), ~mask, bits / 0.8, sink, read)
    put, blank = lambda x: tensor(laid_out(x, layout), kind), lambda x: empty(laid_out(x, layout).shape, kind)
    common = {"dropMaskOptional": tensor(np.packbits(bits.ravel(), bitorder="little"), "U8"), "paddingMaskOptional": None,
              "attenMaskOptional": tensor(mask, "B"), "prefixOptional": [], "qStartIdxOptional": [], "kvStartIdxOptional": [],
              "scaleValue": 0.3, "keepProb": 0.8, "preTokens": FAR, "nextTokens": FAR, "headNum": heads, "inputLayout": layout,
              "innerPrecise": 0, "sparseMode": 1, "pseType": pse_type}  # fmt: skip
    given = tensor(sink, "F32", "gaps") if sinks else None
    largest, sums, y = call("FlashAttentionScoreV3", query=put(q), key=put(k), value=put(v),
                            realShiftOptional=tensor(shift, kind), sinkOptional=given,
                            softmaxMaxOut=empty((batches, heads, rows, 8)),
                            softmaxSumOut=empty((batches, heads, rows, 8)), softmaxOutOut=None, attentionOutOut=blank(dy),
                            **common)  # fmt: skip
    y = back(y, layout, dy.shape)
    expected = expect(y)
    near(y, expected[0], kind)
    near(largest[..., 4], expected[1], "F32")
    near(sums[..., 4], expected[2], "F32", 2048)
    *gradients, slopes = call(
        "FlashAttentionScoreGradV3", query=put(q), keyIn=put(k), value=put(v), dy=put(dy),
        pseShiftOptional=tensor(shift, kind), softmaxMaxOptional=tensor(largest), softmaxSumOptional=tensor(sums),
        softmaxInOptional=None, attentionInOptional=put(y), sinkInOptional=given, dqOut=blank(q), dkOut=blank(k),
        dvOut=blank(v), dpseOut=None, dsinkOut=empty((heads,), "F32", "gaps"), **common)  # fmt: skip
    for own, of in zip(gradients, expected[3:]):
        near(back(own, layout, of.shape), of, kind, 256)
    if sinks:
        near(slopes, expected[6], "F32", 256)
    else:
        np.testing.assert_array_equal(slopes, empty((heads,)).values())


def test_slopes_of_sinks_of_no_rows():
    *gradients, slopes = call(
        "FlashAttentionScoreGradV3", query=empty((1, 2, 0, 8), "F16"), keyIn=empty((1, 2, 3, 8), "F16"),
        value=empty((1, 2, 3, 8), "F16"), dy=empty((1, 2, 0, 8), "F16"), pseShiftOptional=None, dropMaskOptional=None,
        paddingMaskOptional=None, attenMaskOptional=None, softmaxMaxOptional=empty((1, 2, 0, 8)),
        softmaxSumOptional=empty((1, 2, 0, 8)), softmaxInOptional=None, attentionInOptional=empty((1, 2, 0, 8), "F16"),
        sinkInOptional=tensor([1, 2]), prefixOptional=[], qStartIdxOptional=[], kvStartIdxOptional=[], scaleValue=0.3,
        keepProb=1.0, preTokens=9, nextTokens=9, headNum=2, inputLayout="BNSD", innerPrecise=0, sparseMode=0, pseType=1,
        dqOut=empty((1, 2, 0, 8), "F16"), dkOut=empty((1, 2, 3, 8), "F16"), dvOut=empty((1, 2, 3, 8), "F16"), dpseOut=None,
        dsinkOut=empty((2,)))  # fmt: skip
    assert not gradients[1].any() and not gradients[2].any() and not slopes.any()


@pytest.mark.parametrize("rotary", [None, 8])
@pytest.mark.parametrize("sinks", [True, False])
def test_packed_sinks(rotary, sinks):
    """The fifth version, with parts of queries and keys and sinks, and the fourth one, which has neither."""
    heads, key_heads, depth, deep, query_ends, key_ends = 4, 2, 16, 8, [3, 3, 8], [4, 6, 12]
    q, k, v, dy = (drawn(shape, seed, "BF16")
                   for seed, shape in enumerate([(8, heads, depth), (12, key_heads, depth), (12, key_heads, deep),
                                                 (8, heads, deep)]))  # fmt: skip
    parts = [drawn((rows, of, rotary or 0), 4 + seed, "BF16") for seed, (rows, of) in enumerate([(8, heads), (12, key_heads)])]
    whole_q, whole_k = np.concatenate([q, parts[0]], -1), np.concatenate([k, parts[1]], -1)
    sink = np.float64(np.float32(drawn((heads,), 7) if sinks else np.full(heads, -np.inf)))
    bf16, part = lambda x: tensor(x, "BF16"), lambda x: tensor(x, "BF16") if rotary else None
    common = {"dropMaskOptional": None, "paddingMaskOptional": None, "attenMaskOptional": empty((2048, 2048), "B"),
              "prefixOptional": [], "actualSeqQLenOptional": query_ends, "actualSeqKvLenOptional": key_ends, "scaleValue": 0.2,
              "keepProb": 1.0, "preTokens": 9, "nextTokens": 9, "headNum": heads, "inputLayout": "TND", "innerPrecise": 0,
              "sparseMode": 2}  # fmt: skip
    more = {"qStartIdxOptional": [], "kvStartIdxOptional": [], "pseType": 1}
    forward = {"query": bf16(q), "key": bf16(k), "value": bf16(v), "realShiftOptional": None, "softmaxOutOut": None, **common}
    outs = lambda: {"softmaxMaxOut": empty((8, heads, 8)), "softmaxSumOut": empty((8, heads, 8)),
                    "attentionOutOut": empty((8, heads, deep), "BF16")}  # fmt: skip
    given = tensor(sink, "F32", "gaps") if sinks else None
    largest, sums, y = call("FlashAttentionVarLenScoreV5", queryRope=part(parts[0]), keyRope=part(parts[1]), sinkOptional=given,
                            softmaxOutLayout="same_as_input", **forward, **more, **outs())  # fmt: skip
    backward = {"query": bf16(q), "keyIn": bf16(k), "value": bf16(v), "dy": bf16(dy), "pseShiftOptional": None,
                "softmaxMaxOptional": tensor(largest), "softmaxSumOptional": tensor(sums), "softmaxInOptional": None,
                "attentionInOptional": bf16(y), "dqOut": empty(q.shape, "BF16"), "dkOut": empty(k.shape, "BF16"),
                "dvOut": empty(v.shape, "BF16"), "dpseOut": None, **common}  # fmt: skip
    rope_outs = {"dqRopeOut": empty(parts[0].shape, "BF16") if rotary else None,
                 "dkRopeOut": empty(parts[1].shape, "BF16") if rotary else None}  # fmt: skip
    found = call("FlashAttentionUnpaddingScoreGradV5", queryRope=part(parts[0]), keyInRope=part(parts[1]), sinkInOptional=given,
                 softmaxInLayout="", dsinkOut=empty((heads,)) if sinks else None, **backward, **more, **rope_outs)  # fmt: skip
    found = list(found)
    if rotary:
        found = [np.concatenate(found[:2], -1), np.concatenate(found[2:4], -1), *found[4:]]
    expected = [np.zeros_like(dy), np.zeros((8, heads)), np.zeros((8, heads)), *map(np.zeros_like, (whole_q, whole_k, v))]
    slopes = np.zeros(heads)
    for s in range(3):
        rows, keys = slice(([0] + query_ends)[s], query_ends[s]), slice(([0] + key_ends)[s], key_ends[s])
        if rows.stop > rows.start:
            one = lambda x, at: x[at].swapaxes(0, 1)[None]
            keeps = kept(2, rows.stop - rows.start, keys.stop - keys.start)[None, None]
            *results, slope = with_sink(one(whole_q, rows), one(whole_k, keys), one(v, keys), one(dy, rows), 0.2, 0, keeps, 1,
                                        sink, one(y, rows))  # fmt: skip
            for whole, result, at in zip(expected, results, (rows, rows, rows, rows, keys, keys)):
                whole[at] = result[0].swapaxes(0, 1)
            slopes += slope
    near(y, expected[0], "BF16")
    near(largest[..., 2], expected[1], "F32")
    near(sums[..., 2], expected[2], "F32", 64)
    for own, of in zip(found, expected[3:]):
        near(own, of, "BF16", 128)
    if sinks:
        near(found[3], slopes, "F32", 128)
    elif not rotary:
        for layout in ("", "same_as_input", None):
            again = call("FlashAttentionVarLenScoreV4", softmaxOutLayout=layout, **forward, **outs())
            for own, of in zip(again, (largest, sums, y)):
                np.testing.assert_array_equal(own, of)
            again = call("FlashAttentionUnpaddingScoreGradV4", softmaxInLayout=layout, **backward)
            for own, of in zip(again, found):
                np.testing.assert_array_equal(own, of)


@pytest.mark.parametrize("pse_type", [0, 1])
@pytest.mark.parametrize("in_line", [False, True])
def test_packed_shifts_and_dropout(pse_type, in_line):
    """Shifts have room for the longest sequence, or lie as the bits of the dropout do, sequence by sequence, head by head."""
    heads, depth, kind, scale, keep, query_ends, key_ends = 4, 8, "F16", 0.3, 0.7, [3, 140, 143], [4, 150, 151]
    q, k, v, dy = (drawn((ends[-1], of, depth), seed, kind)
                   for seed, (ends, of) in enumerate([(query_ends, heads), (key_ends, 2), (key_ends, 2),
                                                      (query_ends, heads)]))  # fmt: skip
    shift, sink = drawn((3, heads, 139, 150), 4, kind), np.float64(np.float32(drawn((heads,), 5)))
    sequences = [(slice(*rows), slice(*keys)) for rows, keys in
                 zip(zip([0, *query_ends], query_ends), zip([0, *key_ends], key_ends))]  # fmt: skip
    counts = [(rows.stop - rows.start, keys.stop - keys.start) for rows, keys in sequences]
    bits = [np.random.default_rng(6 + s).random((heads, *count)) < keep for s, count in enumerate(counts)]
    line = np.concatenate([shift[s, :, :m, :n].ravel() for s, (m, n) in enumerate(counts)])
    shifts = tensor(line, kind, "gaps") if in_line else tensor(shift, kind)
    put, more = lambda x: tensor(x, kind), {"pseType": pse_type, "qStartIdxOptional": [], "kvStartIdxOptional": []}
    common = {"query": put(q), "value": put(v), "queryRope": None, "paddingMaskOptional": None, "attenMaskOptional": None,
              "dropMaskOptional": tensor(np.packbits(np.concatenate([of.ravel() for of in bits]), bitorder="little"), "U8"),
              "prefixOptional": [], "actualSeqQLenOptional": query_ends, "actualSeqKvLenOptional": key_ends, "scaleValue": scale,
              "keepProb": keep, "preTokens": 9, "nextTokens": 9, "headNum": heads, "inputLayout": "TND", "innerPrecise": 0,
              "sparseMode": 0, **more}  # fmt: skip
    largest, sums, y = call("FlashAttentionVarLenScoreV5", key=put(k), keyRope=None, realShiftOptional=shifts,
                            sinkOptional=tensor(sink), softmaxOutLayout=None, softmaxMaxOut=empty((heads, 143, 8)),
                            softmaxSumOut=empty((143, heads, 8)), softmaxOutOut=None, attentionOutOut=empty(q.shape, kind),
                            **common)  # fmt: skip
    found = call("FlashAttentionUnpaddingScoreGradV5", keyIn=put(k), keyInRope=None, dy=put(dy), pseShiftOptional=shifts,
                 softmaxMaxOptional=tensor(largest), softmaxSumOptional=tensor(sums), softmaxInOptional=None,
                 attentionInOptional=put(y), sinkInOptional=tensor(sink), softmaxInLayout=None, dqOut=empty(q.shape, kind),
                 dqRopeOut=None, dkOut=empty(k.shape, kind), dkRopeOut=None, dvOut=empty(v.shape, kind), dpseOut=None,
                 dsinkOut=empty((heads,)), **common)  # fmt: skip
    expected = [np.zeros_like(q), np.zeros((143, heads)), np.zeros((143, heads)), *map(np.zeros_like, (q, k, v))]
    slopes = np.zeros(heads)
    for s, (rows, keys) in enumerate(sequences):
        one = lambda x, at: x[at].swapaxes(0, 1)[None]
        own = shift[s, :, : counts[s][0], : counts[s][1]] * (scale if pse_type else 1)
        *results, slope = with_sink(one(q, rows), one(k, keys), one(v, keys), one(dy, rows), scale, own, True, bits[s] / keep,
                                    sink, one(y, rows))  # fmt: skip
        for whole, result, at in zip(expected, results, (rows, rows, rows, rows, keys, keys)):
            whole[at] = result[0].swapaxes(0, 1)
        slopes += slope
    near(y, expected[0], kind)
    near(largest[..., 7].T, expected[1], "F32")
    near(sums[..., 7], expected[2], "F32", 2048)
    for own, of in zip(found, [*expected[3:], slopes]):
        near(own, of, "F32" if own.ndim == 1 else kind, 256)


PAGES = [name for name in pages.operators() if re.match("(Prompt|Incre)?FlashAttention|FusedInferAttention", name)]


def outcome(entry, arguments):
    values = pages.values_of(entry, arguments)
    status, size, executor = support.plan(entry["function"], *map(pages.handle_of, values.values()))
    if status != 0:
        return status, harness.last_rule()
    support.execute(entry["function"], size, executor)
    return status, [written.bytes() for written in pages.watched(entry, values)]


@pytest.mark.parametrize("name", PAGES)
def test_inputs_without_elements(name):
    """Of shape [0] they are as NULL, whatever then becomes of the call."""
    entry = pages.operators()[name]
    optional = [p["name"] for p in entry["parameters"] if p["kind"] == "T" and p["optional"] and not p["written"]]
    assert optional
    for parameter in optional:
        null, empty_one = ({**pages.legal(entry), parameter: value} for value in (None, pages.Shaped("F32", (0,))))
        assert outcome(entry, empty_one) == outcome(entry, null), parameter
