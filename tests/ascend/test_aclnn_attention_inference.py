"""Attention for inference: valid lengths, pages, lists, integers, shared rows, rotary parts, padding and sinks, in float64."""

import numpy as np
import pytest

from tests.ascend import calling
from tests.ascend.attention import FAR, attention, back, fused, kept, laid_out, near
from tests.ascend.calling import call, drawn, empty, rounded, tensor
from tests.conformance import harness
from tests.conformance.ascend import aclnn_support as support


@pytest.mark.parametrize("layout", ["BSH", "BSND", "BNSD", "BNSD_BSND"])
def test_inference(layout):
    """Valid lengths of every batch, masks of every rank, and a token after a cache of keys."""
    batches, heads, rows, keys, depth = 2, 4, 5, 7, 8
    before = layout.split("_")[0]
    for kind, key_heads in (("F16", 2), ("BF16", 4)):
        q, k, v = (drawn((batches, n, s, depth), seed,
                         kind) for seed, n, s in ((1, heads, rows), (2, key_heads, keys),
                                                  (3, key_heads, keys)))  # fmt: skip
        mask = np.random.default_rng(4).random((batches, 1, rows, keys)) < 0.3
        put = lambda x: tensor(laid_out(x, before), kind)
        for given, lengths, next_tokens in [(None, [5, 3], 0), (mask, [], 3), (mask[0, 0], [4], FAR), (mask[:, 0], [], 1)]:
            valid = np.broadcast_to(lengths or [rows], (batches,))[:, None, None, None]
            keeps = np.arange(rows)[:, None] < valid
            if given is not None:
                band = np.arange(keys) <= np.arange(rows)[:, None] + next_tokens
                keeps = keeps & band & ~(given[:, None] if given.ndim == 3 else given)
            y = attention(q, k, v, q, 0.3, 0, np.broadcast_to(keeps, (batches, 1, rows, keys)), 1)[0]
            own = call("PromptFlashAttention", query=put(q), key=put(k), value=put(v), pseShift=None,
                       attenMask=None if given is None else tensor(given, "B"), actualSeqLengths=lengths,
                       numHeads=heads, scaleValue=0.3, preTokens=FAR, nextTokens=next_tokens, inputLayout=layout,
                       numKeyValueHeads=key_heads if key_heads != heads else 0,
                       attentionOut=empty(laid_out(q, layout[-4:]).shape, kind))  # fmt: skip
            near(back(own, layout[-4:], q.shape), y, kind)
        if layout == "BNSD_BSND":
            continue
        token = q[:, :, :1]
        for given, lengths in [(None, [7, 4]), (mask[:, 0, 0], []), (mask[:, :, :1], [5])]:
            keeps = np.arange(keys) < np.broadcast_to(lengths or [keys], (batches,))[:, None, None, None]
            keeps = keeps if given is None else keeps & ~mask[:, :, :1]
            y = attention(token, k, v, token, 0.3, 0, np.broadcast_to(keeps, (batches, 1, 1, keys)), 1)[0]
            own = call("IncreFlashAttention", query=put(token), key=[put(k)], value=[put(v)], pseShift=None,
                       attenMask=None if given is None else tensor(given, "U8"), actualSeqLengths=lengths,
                       numHeads=heads, scaleValue=0.3, inputLayout=layout, numKeyValueHeads=key_heads,
                       attentionOut=empty(laid_out(token, layout).shape, kind))  # fmt: skip
            near(back(own, layout, token.shape), y, kind)


def test_fused_inference():
    batches, heads, keys, depth, kind = 2, 4, 9, 8, "F16"
    for version, rows, mode in [(1, 5, None), (2, 5, 0), (3, 5, 3), (4, 1, None), (1, 5, 4)]:
        q, k, v = (drawn((batches, n, s, depth), seed,
                         kind) for seed, n, s in ((1, heads, rows), (2, 2, keys), (3, 2, keys)))  # fmt: skip
        shift = drawn((batches, heads, rows, keys), 4, kind)
        query_lengths, key_lengths = [rows, 3], [keys, 6]
        keeps = np.zeros((batches, 1, rows, keys), bool)
        for b in range(batches):
            m, n = rows if rows == 1 else query_lengths[b], key_lengths[b]
            keeps[b, 0, :m, :n] = True if mode is None else kept(mode, m, n, 4, 1)
        mask = None if mode is None else tensor(np.zeros((rows, keys)), "B") if mode == 0 else empty((2048, 2048), "B")
        y, largest, sums, *_ = attention(q, k, v, q, 0.3, shift, keeps, 1, after_scale=True)
        with np.errstate(divide="ignore"):
            joint = np.where(sums == 0, np.inf, largest + np.log(sums))
        result, sums_of = fused(version, rows, query=tensor(q, kind), key=[tensor(k, kind)], value=[tensor(v, kind)],
                                pseShift=tensor(shift, kind, "gaps"), attenMask=mask, actualSeqLengths=query_lengths,
                                actualSeqLengthsKv=key_lengths, numHeads=heads, numKeyValueHeads=2, sparseMode=mode or 0,
                                attentionOut=empty(q.shape, kind), softmaxLse=empty((batches, heads, rows, 1)))  # fmt: skip
        near(result, y, kind)
        np.testing.assert_allclose(sums_of[..., 0], joint, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_one_token_needs_no_mask(version):
    """sparseMode counts for several rows."""
    q, k = drawn((2, 4, 1, 16), 1, "F16"), drawn((2, 2, 6, 16), 2, "F16")
    expected = attention(q, k, k, q, 0.3, 0, np.ones((2, 1, 1, 6), bool), 1)[0]
    for mode in range(5):
        result = fused(version, 1, query=tensor(q, "F16"), key=[tensor(k, "F16")], value=[tensor(k, "F16")], numHeads=4,
                       numKeyValueHeads=2, sparseMode=mode, attentionOut=empty(q.shape, "F16"))  # fmt: skip
        near(result, expected, "F16")


@pytest.mark.parametrize("version", [1, 2, 3, 4, "prompt"])
def test_lengths_of_batches_that_are_not_there(version):
    """Of more lengths than batches the first count, whatever the others are."""
    q, k, rows, keys = drawn((2, 4, 5, 16), 1, "F16"), drawn((2, 2, 6, 16), 2, "F16"), [5, 3, -1], [4, 6, 999]
    given = {"query": tensor(q, "F16"), "numHeads": 4, "numKeyValueHeads": 2, "actualSeqLengths": rows,
             "actualSeqLengthsKv": keys, "attentionOut": empty(q.shape, "F16")}  # fmt: skip
    if version == "prompt":
        result = prompt(key=tensor(k, "F16"), value=tensor(k, "F16"), **given)
    else:
        result = fused(version, 5, key=[tensor(k, "F16")], value=[tensor(k, "F16")], **given)
    keeps = np.arange(6) < np.array(keys[:2])[:, None, None, None]
    keeps = keeps & (np.arange(5)[:, None] < np.array(rows[:2])[:, None, None, None])
    near(result, attention(q, k, k, q, 0.3, 0, keeps, 1)[0], "F16")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_heads_of_no_numbers_have_scores(version):
    """Their products are sums over nothing, 0: what is left is the shift and the mask."""
    nothing, shift = (2, 4, 5, 0), drawn((2, 4, 5, 7), 4, "F16")
    mask = np.random.default_rng(5).random((5, 7)) < 0.3
    result, sums_of = fused(version, 5, query=empty(nothing, "F16"), key=[empty((2, 2, 7, 0), "F16")],
                            value=[empty((2, 2, 7, 0), "F16")], pseShift=tensor(shift, "F16"), attenMask=tensor(mask, "B"),
                            numHeads=4, numKeyValueHeads=2, preTokens=FAR, nextTokens=FAR, attentionOut=empty(nothing, "F16"),
                            softmaxLse=empty((2, 4, 5, 1)))  # fmt: skip
    assert result.shape == nothing
    expected = np.log((np.exp(shift) * ~mask).sum(-1))
    np.testing.assert_allclose(sums_of[..., 0], expected, rtol=1e-5, atol=1e-5)


def test_logarithms_that_nobody_asks_for():
    """Clients that capture graphs pass one element of the query's type; it stays as it is."""
    q, k = drawn((1, 1, 1, 16), 1, "BF16"), drawn((1, 1, 16, 16), 2, "BF16")
    result, unasked = fused(3, 1, query=tensor(q, "BF16"), key=[tensor(k, "BF16")], value=[tensor(k, "BF16")], numHeads=1,
                            numKeyValueHeads=1, attentionOut=empty(q.shape, "BF16"), softmaxLse=tensor([7.0], "BF16"),
                            softmaxLseFlag=False)  # fmt: skip
    near(result, attention(q, k, k, q, 0.3, 0, np.ones((1, 1, 1, 16), bool), 1)[0], "BF16")
    assert unasked.tolist() == [7]


def later_token(**given):
    names = ["pseShift", "attenMask", "dequantScale1", "quantScale1", "dequantScale2", "quantScale2", "quantOffset2",
             "antiquantScale",
             "antiquantOffset", "blocktable", "kvPaddingSize"]  # fmt: skip
    return call("IncreFlashAttentionV4",
                **{"scaleValue": 0.3, "innerPrecise": 0, "blockSize": 0, **dict.fromkeys(names), **given})  # fmt: skip


def test_lists_of_keys():
    """A tensor for each batch, of different lengths."""
    heads, depth, kind, counts = 4, 8, "BF16", [9, 150, 1]
    q = drawn((3, heads, 2, depth), 1, kind)
    k, v = ([drawn((1, 2, n, depth), seed + n, kind) for n in counts] for seed in (2, 300))
    mask = np.random.default_rng(4).random((3, 1, 2, max(counts))) < 0.3
    for layout, version, rows in [("BNSD", 1, 2), ("BSH", 4, 2), ("BSND", 0, 1)]:
        put = lambda x: tensor(laid_out(x, layout), kind, "gaps")
        own = empty(laid_out(q[:, :, :rows], layout).shape, kind)
        common = {"query": put(q[:, :, :rows]), "key": [put(x) for x in k], "value": [put(x) for x in v], "numHeads": heads,
                  "attentionOut": own, "numKeyValueHeads": 2, "inputLayout": layout}  # fmt: skip
        if version:
            result = fused(version, rows, attenMask=tensor(mask, "B"), actualSeqLengthsKv=[5, 140, 1], preTokens=FAR,
                           nextTokens=FAR, **common)  # fmt: skip
        else:
            result = call("IncreFlashAttention", pseShift=None, attenMask=None, actualSeqLengths=[], scaleValue=0.3,
                          **common)  # fmt: skip
        for b, n in enumerate([5, 140, 1] if version else counts):
            keeps = ~mask[b : b + 1, :, :, :n] if version else np.ones((1, 1, rows, n), bool)
            y = attention(q[b : b + 1, :, :rows], k[b][:, :, :n], v[b][:, :, :n], q[b : b + 1, :, :rows], 0.3, 0, keeps, 1)[0]
            near(back(result[b : b + 1], layout, y.shape), y, kind)


def test_more_lists_of_keys_than_a_call_takes():
    for count in (256, 257):
        q = np.ones((count, 1, 1, 16))
        keys, values = ([tensor(np.ones((1, 1, 2, 16)), "F16") for _ in range(count)] for _ in range(2))
        given = {"query": tensor(q, "F16"), "key": keys, "value": values, "attentionOut": empty(q.shape, "F16")}
        if count == 256:
            np.testing.assert_array_equal(fused(1, 1, numHeads=1, numKeyValueHeads=1, **given), q)
            continue
        with pytest.raises(AssertionError):
            fused(1, 1, numHeads=1, numKeyValueHeads=1, **given)
        assert harness.last_rule() == "aclnnFusedInferAttentionScore/key/count"


@pytest.mark.parametrize("by_heads", [True, False])
def test_pages(by_heads):
    """Keys in pages that lie anywhere, by rows and by heads; a page of a batch may be one of another."""
    heads, key_heads, depth, kind, pages = 4, 2, 16, "F16", 7
    table = np.array([[5, 0, 3], [1, 5, 6]])
    lengths = {128: [300, 129], 48: [100, 97]}
    for version, rows, block in [(1, 3, 128), (4, 1, 48), (0, 1, 48), (3, 1, 128)]:
        layout = "BNSD" if by_heads else ["BSND", "BSH"][rows % 2]
        q = drawn((2, heads, rows, depth), 1, kind)
        k, v = (drawn((pages, key_heads, block, depth), seed, kind) for seed in (2, 3))
        put = lambda x: tensor(x if by_heads else laid_out(x, "BSH"), kind, "gaps")
        common = {"query": tensor(laid_out(q, layout), kind), "key": [put(k)], "value": [put(v)], "numHeads": heads,
                  "blockSize": block,
                  "numKeyValueHeads": key_heads, "inputLayout": layout,
                  "attentionOut": empty(laid_out(q, layout).shape, kind)}  # fmt: skip
        if version:
            result = fused(version, rows, blockTable=tensor(table, "I32", "gaps"), actualSeqLengthsKv=lengths[block],
                           **common)  # fmt: skip
        else:
            result = later_token(blocktable=tensor(table, "I32"), actualSeqLengths=lengths[block], **common)
        for b, n in enumerate(lengths[block]):
            whole = [np.concatenate([x[page] for page in table[b]], 1)[None, :, :n] for x in (k, v)]
            y = attention(q[b : b + 1], *whole, q[b : b + 1], 0.3, 0, np.ones((1, 1, rows, n), bool), 1)[0]
            near(back(result[b : b + 1], layout, y.shape), y, kind)


MISSING_PAGE = """
from tests.ascend.attention import fused
from tests.ascend.calling import drawn, empty, tensor
q, k, v = (tensor(drawn(shape, 1, "F16"), "F16") for shape in ((1, 1, 1, 8), (2, 16, 8), (2, 16, 8)))
try:
    fused(1, 1, query=q, key=[k], value=[v], blockTable=tensor([[1, NUMBER]], "I32"), actualSeqLengthsKv=[17], numHeads=1,
          numKeyValueHeads=1, blockSize=16, attentionOut=empty((1, 1, 1, 8), "F16"))
except AssertionError as refused:
    print(refused)
"""


@pytest.mark.parametrize("number", [2, -1])
def test_a_page_that_does_not_exist(number):
    """In a process of its own: the fault stays on the device."""
    out = harness.run_python(MISSING_PAGE.replace("NUMBER", str(number)), {})
    assert "507015" in out and f"page 1 of sequence 0 is number {number} of 2" in out, out


def test_quantized_results():
    heads, rows, keys, depth = 2, 5, 9, 32
    for kind, of_scale, offset_given in [("F16", (1,), True), ("BF16", (heads * depth,), True),
                                         ("F16", (heads, 1, depth), False),
                                       ("F16", (heads * depth, 1), True)]:  # fmt: skip
        q, k, v = (drawn((2, heads, s, depth), seed, kind) for seed, s in ((1, rows), (2, keys), (3, keys)))
        scale = rounded(np.random.default_rng(4).uniform(20, 60, of_scale), "BF16")
        offset = rounded(np.random.default_rng(5).uniform(-9, 9, of_scale), "BF16") if offset_given else None
        y = attention(q, k, v, q, 0.3, 0, np.ones((2, 1, rows, keys), bool), 1)[0]
        spread = lambda x: 0 if x is None else np.broadcast_to(x.ravel(), (heads * depth,)).reshape(heads, 1, depth)
        expected = np.clip(y * spread(scale) + spread(offset), -128, 127)
        name = "BF16" if kind == "BF16" else "F32"
        given = [tensor(scale, name), None if offset is None else tensor(offset, name)]
        names = ["pseShift", "attenMask", "deqScale1", "quantScale1", "deqScale2"]
        put = lambda x: tensor(laid_out(x, "BSH"), kind)
        results = [
            fused(4, rows, query=put(q), key=[put(k)], value=[put(v)], numHeads=heads, numKeyValueHeads=0, inputLayout="BSH",
                  quantScale2=given[0], quantOffset2=given[1], attentionOut=empty((2, rows, heads * depth), "I8", "gaps")),
            call("PromptFlashAttentionV3", query=put(q), key=put(k), value=put(v), numHeads=heads,
                 numKeyValueHeads=heads, inputLayout="BSH", quantScale2=given[0], quantOffset2=given[1],
                 attentionOut=empty((2, rows, heads * depth), "I8"), actualSeqLengths=[], actualSeqLengthsKv=[],
                 scaleValue=0.3, preTokens=FAR, nextTokens=0, sparseMode=0, innerPrecise=1, **dict.fromkeys(names)),
        ]  # fmt: skip
        for result in results:
            assert (np.abs(back(result, "BSH", y.shape) - expected) <= 0.5 + 1e-3).all()


def packed(parts, layout):
    """[1, N, S, D] of every sequence, one after the other."""
    return np.concatenate([part[0] for part in parts], 1).transpose((0, 1, 2) if layout == "NTD" else (1, 0, 2))


def test_packed_inference():
    heads, rows, keys = 4, [3, 0, 140], [5, 2, 150]
    for version, layout, depth, value_depth, mode, kind in [(3, "TND", 128, 128, 3, "BF16"), (4, "NTD_TND", 192, 128, 0, "BF16"),
                                                            (3, "TND", 192, 192, 4, "BF16"), (4, "TND", 64, 64, 3, "F16"),
                                                            (3, "TND", 256, 256, 3, "BF16")]:  # fmt: skip
        q, k, v = ([drawn((1, n, s, d), seed + s, kind) for s in sizes]
                   for n, sizes, d, seed in ((heads, rows, depth, 1), (2, keys, depth, 400), (2, keys, value_depth, 800)))  # fmt: skip
        put = lambda parts: tensor(packed(parts, layout[:3]), kind)
        result, joint = fused(version, 5, query=put(q), key=[put(k)], value=[put(v)], numHeads=heads,
                              numKeyValueHeads=2, inputLayout=layout, actualSeqLengths=np.cumsum(rows).tolist(),
                              actualSeqLengthsKv=np.cumsum(keys).tolist(), sparseMode=mode,
                              attenMask=empty((2048, 2048), "B") if mode else None, scaleValue=0.1,
                              attentionOut=empty((sum(rows), heads, value_depth), kind),
                              softmaxLse=empty((sum(rows), heads, 1)))  # fmt: skip
        for s, end in enumerate(np.cumsum(rows)):
            keeps = kept(mode or 1, rows[s], keys[s], 4, 1)[None, None]
            y, largest, sums, *_ = attention(q[s], k[s], v[s], np.zeros(q[s].shape[:3] + (value_depth,)), 0.1, 0, keeps, 1)
            near(result[end - rows[s] : end].swapaxes(0, 1)[None], y, kind)
            np.testing.assert_allclose(joint[end - rows[s] : end, :, 0].T, (largest + np.log(sums))[0], rtol=1e-5, atol=1e-5)


def test_packed_prompts():
    heads, kind, rows, keys = 8, "BF16", [3, 6], [5, 2]
    for mode, value_depth in ((3, 128), (0, 192)):
        q, k, v = ([drawn((1, heads, s, d), seed + s, kind) for s in sizes]
                   for sizes, d, seed in ((rows, 192, 1), (keys, 192, 20), (keys, value_depth, 40)))  # fmt: skip
        put = lambda parts: tensor(packed(parts, "TND"), kind)
        absent = ["pseShift", "deqScale1", "quantScale1", "deqScale2", "quantScale2", "quantOffset2"]
        result = call("PromptFlashAttentionV3", query=put(q), key=put(k), value=put(v),
                      attenMask=empty((2048, 2048), "B") if mode else None, actualSeqLengths=[3, 9],
                      actualSeqLengthsKv=[5, 7], numHeads=heads, scaleValue=0.1, preTokens=FAR, nextTokens=0,
                      inputLayout="TND", numKeyValueHeads=0, sparseMode=mode, innerPrecise=0,
                      attentionOut=empty((9, heads, value_depth), kind), **dict.fromkeys(absent))  # fmt: skip
        for s, end in enumerate((3, 9)):
            keeps = kept(mode or 1, rows[s], keys[s])[None, None]
            y = attention(q[s], k[s], v[s], np.zeros((1, heads, rows[s], value_depth)), 0.1, 0, keeps, 1)[0]
            near(result[end - rows[s] : end].swapaxes(0, 1)[None], y, kind)


@pytest.mark.parametrize("version", ["fused", "prompt"])
def test_one_packed_token(version):
    """A call of one token in all, with the mask that the sparse mode has."""
    heads, kind, mask = 8, "BF16", empty((2048, 2048), "B")
    q, k, v = (drawn((1, heads, s, d), seed, kind) for s, d, seed in ((1, 192, 1), (5, 192, 2), (5, 128, 3)))
    put = lambda x: tensor(packed([x], "TND"), kind)
    common = dict(query=put(q), numHeads=heads, scaleValue=0.1, inputLayout="TND", sparseMode=3, attenMask=mask,
                  actualSeqLengths=[1], actualSeqLengthsKv=[5], attentionOut=empty((1, heads, 128), kind))  # fmt: skip
    if version == "prompt":
        absent = dict.fromkeys(["pseShift", "deqScale1", "quantScale1", "deqScale2", "quantScale2", "quantOffset2"])
        result = call("PromptFlashAttentionV3", key=put(k), value=put(v), preTokens=FAR, nextTokens=0, numKeyValueHeads=0,
                      innerPrecise=0, **common, **absent)  # fmt: skip
    else:
        result = fused(3, 5, key=[put(k)], value=[put(v)], numKeyValueHeads=heads, **common)
    y = attention(q, k, v, np.zeros((1, heads, 1, 128)), 0.1, 0, kept(3, 1, 5)[None, None], 1)[0]
    near(result.swapaxes(0, 1)[None], y, kind)


def test_one_row_of_a_prompt():
    """The triangle is no mask of batches, though there is one row."""
    q, k = drawn((2, 2, 1, 32), 1, "F16"), drawn((2, 2, 5, 32), 2, "F16")
    put = lambda x: tensor(laid_out(x, "BSND"), "F16")
    absent = dict.fromkeys(["pseShift", "deqScale1", "quantScale1", "deqScale2", "quantScale2", "quantOffset2"])
    result = call("PromptFlashAttentionV3", query=put(q), key=put(k), value=put(k), attenMask=empty((2048, 2048), "B"),
                  actualSeqLengths=None, actualSeqLengthsKv=None, numHeads=2, scaleValue=0.1, preTokens=FAR, nextTokens=FAR,
                  inputLayout="BSND", numKeyValueHeads=0, sparseMode=2, innerPrecise=0,
                  attentionOut=empty((2, 1, 2, 32), "F16"), **absent)  # fmt: skip
    near(np.moveaxis(result, 1, 2), k[:, :, :1], "F16")  # the first key alone is kept


def test_rotary_parts():
    """Heads of 512 with keys in pages, in every layout; heads of 128, packed."""
    heads, kind, block, table, lengths = 2, "F16", 16, np.array([[2, 0], [1, 2]]), [30, 17]
    k, rotary = (drawn((3, 1, block, d), seed, kind) for d, seed in ((512, 1), (64, 2)))
    for layout, rows, version in [("BNSD", 1, 3), ("BSND_NBSD", 3, 4), ("BSH_NBSD", 3, 3), ("TND_NTD", 2, 4), ("TND", 2, 3)]:
        q, own = (drawn((2, heads, rows, d), seed, kind) for d, seed in ((512, 3), (64, 4)))
        before, _, after = layout.partition("_")
        put = lambda x: tensor(packed(x[:, None], "TND") if before == "TND" else laid_out(x, before), kind)
        pages = lambda x: tensor(x if rows == 1 else laid_out(x, "BSH"), kind)
        shape = {"": (2, heads, rows, 512), "NBSD": (heads, 2, rows, 512), "NTD": (heads, 2 * rows, 512)}[after]
        result = fused(version, rows, query=put(q), key=[pages(k)], value=[pages(k)], numHeads=heads,
                       numKeyValueHeads=1, inputLayout=layout, queryRope=put(own), keyRope=pages(rotary),
                       blockTable=tensor(table, "I32"), blockSize=block, scaleValue=0.05,
                       actualSeqLengths=[rows, 2 * rows] if before == "TND" else [], actualSeqLengthsKv=lengths,
                       attenMask=None if rows == 1 else empty((2048, 2048), "B"), sparseMode=0 if rows == 1 else 3,
                       attentionOut=empty((2 * rows, heads, 512) if layout == "TND" else shape, kind))  # fmt: skip
        if before == "TND":
            result = (result if after else result.swapaxes(0, 1)).reshape(heads, 2, rows, 512).swapaxes(0, 1)
        elif after:
            result = result.swapaxes(0, 1)
        for b, n in enumerate(lengths):
            keys, parts = (np.concatenate([x[page] for page in table[b]], 1)[None, :, :n] for x in (k, rotary))
            joint = np.concatenate([q[b : b + 1], own[b : b + 1]], -1), np.concatenate([keys, parts], -1)
            y = attention(*joint, keys, np.zeros((1, heads, rows, 512)), 0.05, 0, kept(3, rows, n)[None, None], 1)[0]
            near(result[b : b + 1], y, kind)
    q, own, k, rotary = (drawn((1, n, s, d), seed,
                               "BF16")
                         for seed, (n, s, d) in enumerate([(2, 5, 128), (2, 5, 64), (1, 7, 128),
                                                           (1, 7, 64)]))  # fmt: skip
    put = lambda x: tensor(packed([x], "TND"), "BF16")
    result = fused(3, 5, query=put(q), key=[put(k)], value=[put(k)], numHeads=2, numKeyValueHeads=1, inputLayout="TND",
                   queryRope=put(own), keyRope=put(rotary), actualSeqLengths=[5], actualSeqLengthsKv=[7],
                   attentionOut=empty((5, 2, 128), "BF16"))  # fmt: skip
    joint = np.concatenate([q, own], -1), np.concatenate([k, rotary], -1)
    near(result.swapaxes(0, 1)[None], attention(*joint, k, q, 0.3, 0, np.ones((1, 1, 5, 7), bool), 1)[0], "BF16")


@pytest.mark.parametrize("layout, rows", [("BSND", 1), ("BNSD", 1), ("BSND", 3), ("TND", 2)])
def test_rotary_parts_in_a_band(layout, rows):
    """The fourth version has sparseMode 4 for heads of 512; one row has no 3, and the third version has no 4."""
    heads, kind, block, table, lengths = 2, "BF16", 128, np.array([[2, 0], [1, 2]]), [130, 17]
    k, rotary = (drawn((3, 1, block, d), seed, kind) for d, seed in ((512, 1), (64, 2)))
    q, own = (drawn((2, heads, rows, d), seed, kind) for d, seed in ((512, 3), (64, 4)))
    put = lambda x: tensor(packed(x[:, None], "TND") if layout == "TND" else laid_out(x, layout), kind)
    pages = lambda x: tensor(x if layout == "BNSD" else laid_out(x, "BSH"), kind)
    shape = (2 * rows, heads, 512) if layout == "TND" else laid_out(q, layout).shape
    run = lambda version, mode: fused(
        version, rows, query=put(q), key=[pages(k)], value=[pages(k)], numHeads=heads, numKeyValueHeads=1, inputLayout=layout,
        queryRope=put(own), keyRope=pages(rotary), blockTable=tensor(table, "I32"), blockSize=block, scaleValue=0.05,
        preTokens=9, nextTokens=-1, actualSeqLengths=[rows, 2 * rows] if layout == "TND" else [], actualSeqLengthsKv=lengths,
        attenMask=empty((2048, 2048), "B"), sparseMode=mode, attentionOut=empty(shape, kind))  # fmt: skip
    result = run(4, 4)
    result = back(result.reshape(2, rows, heads, 512) if layout == "TND" else result, layout.replace("TND", "BSND"), q.shape)
    for b, n in enumerate(lengths):
        keys, parts = (np.concatenate([x[page] for page in table[b]], 1)[None, :, :n] for x in (k, rotary))
        joint = np.concatenate([q[b : b + 1], own[b : b + 1]], -1), np.concatenate([keys, parts], -1)
        band = kept(4, rows, n, 9, -1)[None, None]
        near(result[b : b + 1], attention(*joint, keys, np.zeros((1, heads, rows, 512)), 0.05, 0, band, 1)[0], kind)
    for version, mode in [(3, 4), *([(3, 3), (4, 3)] if rows == 1 else [])]:
        with pytest.raises(AssertionError, match=f"status 161002.*sparseMode is {mode} with a mask"):
            run(version, mode)
        assert harness.last_rule() == f"aclnnFusedInferAttentionScoreV{version}/sparseMode/packed"


def test_rotary_parts_of_many_heads():
    """128 heads share a key; pages by heads of packed tokens; the logarithms of the sums."""
    heads, kind, block, table, lengths = 128, "F16", 16, np.array([[2, 0], [1, 2]]), [30, 17]
    k, rotary = (drawn((3, 1, block, d), seed, kind) for d, seed in ((512, 1), (64, 2)))
    for layout, rows, version in [("TND", 2, 3), ("BNSD", 1, 4)]:
        q, own = (drawn((2, heads, rows, d), seed, kind) for d, seed in ((512, 3), (64, 4)))
        put = lambda x: tensor(packed(x[:, None], "TND") if layout == "TND" else x, kind)
        result, sums_of = fused(version, rows, query=put(q), key=[tensor(k, kind)], value=[tensor(k, kind)], numHeads=heads,
                                numKeyValueHeads=1, inputLayout=layout, queryRope=put(own), keyRope=tensor(rotary, kind),
                                blockTable=tensor(table, "I32"), blockSize=block, scaleValue=0.05,
                                actualSeqLengths=[rows, 2 * rows] if layout == "TND" else [], actualSeqLengthsKv=lengths,
                                attenMask=None if rows == 1 else empty((2048, 2048), "B"), sparseMode=0 if rows == 1 else 3,
                                attentionOut=empty((2 * rows, heads, 512) if layout == "TND" else q.shape, kind),
                                softmaxLse=empty((2 * rows, heads, 1) if layout == "TND" else (2, heads, rows, 1)))  # fmt: skip
        if layout == "TND":
            result, sums_of = (x.reshape(2, rows, heads, -1).swapaxes(1, 2) for x in (result, sums_of))
        for b, n in enumerate(lengths):
            keys, parts = (np.concatenate([x[page] for page in table[b]], 1)[None, :, :n] for x in (k, rotary))
            joint = np.concatenate([q[b : b + 1], own[b : b + 1]], -1), np.concatenate([keys, parts], -1)
            y, largest, sums, *_ = attention(*joint, keys, q[b : b + 1], 0.05, 0, kept(3, rows, n)[None, None], 1)
            near(result[b : b + 1], y, kind)
            np.testing.assert_allclose(sums_of[b, ..., 0], (largest + np.log(sums))[0], rtol=1e-5, atol=1e-5)
    with pytest.raises(AssertionError):
        fused(3, 1, query=empty((2, 129, 1, 512), kind), key=[tensor(k, kind)], value=[tensor(k, kind)], numHeads=129,
              numKeyValueHeads=1, queryRope=empty((2, 129, 1, 64), kind), keyRope=tensor(rotary, kind), blockSize=block,
              blockTable=tensor(table, "I32"), actualSeqLengthsKv=lengths, attentionOut=empty((2, 129, 1, 512), kind))  # fmt: skip
    assert harness.last_rule() == "aclnnFusedInferAttentionScoreV3/numHeads/ratio"


def test_pages_in_blocks():
    """Keys, values and rotary parts as [page, head, depth / 16, row, 16]."""
    heads, block, table, lengths = 2, 128, np.array([[2, 0], [1, 2]]), [130, 17]
    for layout, rows, version, kind in [("BSH", 1, 3, "BF16"), ("BSND_NBSD", 3, 4, "F16"), ("TND", 2, 4, "BF16")]:
        k, rotary = (drawn((3, 1, block, d), seed, kind) for d, seed in ((512, 1), (64, 2)))
        q, own = (drawn((2, heads, rows, d), seed, kind) for d, seed in ((512, 3), (64, 4)))
        before, _, after = layout.partition("_")
        put = lambda x: tensor(packed(x[:, None], "TND") if before == "TND" else laid_out(x, before), kind)
        in_blocks = lambda x, gaps="row-major": tensor(x.reshape(*x.shape[:3], -1, 16).swapaxes(2, 3), kind, gaps)
        result = fused(version, rows, query=put(q), key=[in_blocks(k, "gaps")], value=[in_blocks(k)], numHeads=heads,
                       numKeyValueHeads=1, inputLayout=layout, queryRope=put(own), keyRope=in_blocks(rotary),
                       blockTable=tensor(table, "I32"), blockSize=block, scaleValue=0.05,
                       actualSeqLengths=[rows, 2 * rows] if before == "TND" else [], actualSeqLengthsKv=lengths,
                       attenMask=None if rows == 1 else empty((2048, 2048), "B"), sparseMode=0 if rows == 1 else 3,
                       attentionOut=empty({"TND": (2 * rows, heads, 512),
                                           "BSH": (2, rows, heads * 512)}.get(layout, (heads, 2, rows, 512)),
                                          kind))  # fmt: skip
        result = result.reshape(2, rows, heads, 512).swapaxes(1, 2) if not after else result.swapaxes(0, 1)
        for b, n in enumerate(lengths):
            keys, parts = (np.concatenate([x[page] for page in table[b]], 1)[None, :, :n] for x in (k, rotary))
            joint = np.concatenate([q[b : b + 1], own[b : b + 1]], -1), np.concatenate([keys, parts], -1)
            y = attention(*joint, keys, np.zeros((1, heads, rows, 512)), 0.05, 0, kept(3, rows, n)[None, None], 1)[0]
            near(result[b : b + 1], y, kind)


# Shapes of the numbers of a mode, to broadcast over [batch, head, row, depth]; in the last two modes of pages.
NUMBERS = [lambda b, n, s, d: (1, n, 1, d), lambda b, n, s, d: (b, 1, s, 1), lambda b, n, s, d: (1, n, 1, 1),
           lambda b, n, s, d: (b, n, s, 1), lambda b, n, s, d: (b, 1, s, 1), lambda b, n, s, d: (b, n, s, 1)]  # fmt: skip


def numbers(mode, kind, sizes, seed):
    """Scale and offset of a mode, for the formula and as the page has them."""
    shape = NUMBERS[mode](*sizes)
    of_tokens = mode in (1, 3, 4, 5)
    name = "F32" if of_tokens else kind
    values = [rounded(np.random.default_rng(seed).uniform(0.01, 0.05, shape), "BF16"),
              np.rint(np.random.default_rng(seed + 1).uniform(-9, 9, shape))]  # fmt: skip
    own = {0: (1, sizes[1], sizes[3]), 1: (1, sizes[0], sizes[2]), 2: (sizes[1],), 3: sizes[:3], 4: (sizes[0], sizes[2]), 5: sizes[:3]}[mode]
    return values, [value.reshape(own) for value in values], name


def test_integer_keys_of_one_token():
    """Every mode of the numbers, the keys in turn and in pages."""
    heads, key_heads, depth, block = 4, 2, 16, 32
    table, lengths = np.array([[3, 0], [1, 2]]), [60, 17]
    for mode, other, version, kind in [(0, 0, 2, "F16"), (1, 1, 3, "BF16"), (2, 2, 4, "F16"), (3, 3, 2, "F16"),
                                       (0, 1, 2, "F16"),
                                       (4, 4, 3, "F16"), (5, 5, 2, "BF16")]:  # fmt: skip
        paged = mode > 3
        sizes = (4, key_heads, block, depth) if paged else (2, key_heads, 64, depth)
        q = drawn((2, heads, 1, depth), 1, kind)
        k, v = (np.random.default_rng(seed).integers(-128, 128, sizes) for seed in (2, 3))
        (of_k, given_k, name_k), (of_v, given_v, name_v) = numbers(mode, kind, sizes, 5), numbers(other, kind, sizes, 9)
        for offsets in (True, False):
            names = {"keyAntiquantScale": tensor(given_k[0], name_k), "valueAntiquantScale": tensor(given_v[0], name_v)}
            if offsets:
                names |= {"keyAntiquantOffset": tensor(given_k[1], name_k),
                          "valueAntiquantOffset": tensor(given_v[1], name_v)}  # fmt: skip
            if paged:
                names |= {"blockTable": tensor(table, "I32"), "blockSize": block}
            result = fused(version, 1, query=tensor(q, kind), key=[tensor(k, "I8", "gaps")], value=[tensor(v, "I8")],
                           numHeads=heads, numKeyValueHeads=key_heads, actualSeqLengthsKv=lengths,
                           keyAntiquantMode=mode, valueAntiquantMode=other, attentionOut=empty(q.shape, kind),
                           **names)  # fmt: skip
            real = [(x + of[1] * offsets) * of[0] for x, of in ((k, of_k), (v, of_v))]
            if paged:
                real = [np.stack([np.concatenate([x[page] for page in line], 1) for line in table]) for x in real]
            keeps = np.arange(64) < np.array(lengths)[:, None, None, None]
            near(result, attention(q, *real, q, 0.3, 0, keeps, 1)[0], kind)
    q, k = drawn((1, 1, 1, 16), 1, "F16"), np.ones((1, 1, 16, 16))
    with pytest.raises(AssertionError):
        fused(3, 1, query=tensor(q, "F16"), key=[tensor(k, "I8")], value=[tensor(k, "I8")], numHeads=1,
              numKeyValueHeads=1, actualSeqLengthsKv=[9], blockTable=tensor([[0]], "I32"), blockSize=16,
              keyAntiquantScale=tensor([0.5], "F16"), valueAntiquantScale=tensor([0.5], "F16"),
              attentionOut=empty(q.shape, "F16"))  # fmt: skip
    assert harness.last_rule() == "aclnnFusedInferAttentionScoreV3/blockSize/value"


def test_joint_numbers_of_integer_keys():
    """Keys' before values'; for one token and for several, in lists and in pages that have numbers of tokens in turn."""
    heads, keys, depth, kind = 2, 9, 8, "F16"
    k, v = (np.random.default_rng(seed).integers(-128, 128, (2, heads, keys, depth)) for seed in (2, 3))
    for version, rows, shape, name in [(1, 3, (2, heads, 1, depth), "F16"), (4, 1, (2, heads * depth), "F16"),
                                       (0, 1, (2,), "F16"),
                                       (0, 1, (2, heads, depth), "F16"), (2, 1, (2, 2, keys), "F32"),
                                       (3, 3, (2, 2, keys), "F32")]:  # fmt: skip
        scale = rounded(np.random.default_rng(4).uniform(0.01, 0.05, shape), "BF16")
        offset = np.rint(np.random.default_rng(5).uniform(-9, 9, shape))
        spread = lambda x, half: x[half].reshape(2, 1, keys, 1) if name == "F32" else np.broadcast_to(x[half].ravel(), heads * depth).reshape(heads, 1, depth)
        real = [(x + spread(offset, half)) * spread(scale, half) for half, x in enumerate((k, v))]
        q = drawn((2, heads, rows, depth), 1, kind)
        lists = [[tensor(x[b : b + 1], "I8") for b in range(2)] if version == 4 else [tensor(x, "I8")] for x in (k, v)]
        common = {"query": tensor(q, kind), "key": lists[0], "value": lists[1], "numHeads": heads,
                  "numKeyValueHeads": 0, "inputLayout": "BNSD",
                  "antiquantScale": tensor(scale, name), "antiquantOffset": tensor(offset, name),
                  "attentionOut": empty(q.shape, kind)}  # fmt: skip
        result = fused(version, rows, antiquantMode=int(name == "F32"), **common) if version else later_token(actualSeqLengths=[], **common)
        near(result, attention(q, *real, q, 0.3, 0, np.ones((2, 1, rows, keys), bool), 1)[0], kind)
    q, name = drawn((2, heads, 3, depth), 1, "BF16"), {"keyAntiquantMode": 0, "valueAntiquantMode": 1}
    scales = [drawn((heads, depth), 6, "BF16"), drawn((2, keys), 7)]
    result = fused(2, 3, query=tensor(q, "BF16"), key=[tensor(k, "I8")], value=[tensor(v, "I8")], numHeads=heads,
                   numKeyValueHeads=0, keyAntiquantScale=tensor(scales[0] / 64, "BF16"),
                   valueAntiquantScale=tensor(scales[1]), attentionOut=empty(q.shape, "BF16"), **name)  # fmt: skip
    real = k * scales[0][:, None] / 64, v * scales[1][:, None, :, None]
    near(result, attention(q, *real, q, 0.3, 0, np.ones((2, 1, 3, keys), bool), 1)[0], "BF16")


@pytest.mark.parametrize("integers", [False, True])
def test_results_of_several_rows_with_numbers_of_keys_and_of_values(integers):
    """They are of ACL_BF16 as the query is, and no integers."""
    ones = np.ones((1, 1, 3, 32))
    given = {"query": tensor(ones, "BF16"), "key": [tensor(ones, "I8")], "value": [tensor(ones, "I8")], "numHeads": 1, "numKeyValueHeads": 1,
             "keyAntiquantScale": tensor(ones[0, :, 0] / 2, "BF16"), "valueAntiquantScale": tensor(ones[0, :, 0] / 2, "BF16"),
             "attentionOut": empty(ones.shape, "I8" if integers else "BF16")}  # fmt: skip
    if not integers:
        np.testing.assert_array_equal(fused(2, 3, **given), ones / 2)
        return
    with pytest.raises(AssertionError):
        fused(2, 3, quantScale2=tensor([4.0]), **given)
    assert harness.last_rule() == "aclnnFusedInferAttentionScoreV2/query/dequantized"


def test_shared_rows():
    """Rows before those of every batch, with a mask over both, valid lengths, and a band from the last corner."""
    heads, keys, depth, kind = 4, 150, 8, "F16"
    for version, layout, rows, shared, length, mode in [(2, "BNSD", 5, 140, [], 0), (3, "BSH", 5, 3, [2], 3),
                                                        (4, "BSND", 1, 7, [0], None)]:  # fmt: skip
        q, k, v = (drawn((2, n, s, depth), seed, kind) for seed, n, s in ((1, heads, rows), (2, 2, keys), (3, 2, keys)))
        before = [drawn((1, 2, shared, depth), seed, kind) for seed in (4, 5)]
        count, lengths = (length or [shared])[0], [keys, 9]
        mask = np.random.default_rng(6).random((2, 1, rows, count + keys)) < 0.3
        put = lambda x: tensor(laid_out(x, layout), kind)
        given = tensor(mask, "B") if mode == 0 else empty((2048, 2048), "B") if mode else None
        result = fused(version, rows, query=put(q), key=[put(k)], value=[put(v)], keySharedPrefix=put(before[0]),
                       valueSharedPrefix=put(before[1]), actualSharedPrefixLen=length, numHeads=heads,
                       numKeyValueHeads=2, inputLayout=layout, sparseMode=mode or 0, actualSeqLengthsKv=lengths,
                       attenMask=given, preTokens=FAR, nextTokens=FAR,
                       attentionOut=empty(laid_out(q, layout).shape, kind))  # fmt: skip
        for b, n in enumerate(lengths):
            own = [np.concatenate([x[:, :, :count], y[b : b + 1, :, :n]], 2) for x, y in zip(before, (k, v))]
            keeps = ~mask[b : b + 1, :, :, : count + n] if mode == 0 else kept(mode or 1, rows, count + n)[None, None]
            y = attention(q[b : b + 1], *own, q[b : b + 1], 0.3, 0, keeps, 1)[0]
            near(back(result[b : b + 1], layout, y.shape), y, kind)


def test_shared_rows_of_integers():
    """They have the numbers of channels, of all, or of heads, that the keys have."""
    heads, keys, shared, depth = 4, 20, 3, 16
    for version, layout, rows, mode, kind, joint in [(2, "BNSD", 1, 0, "F16", False), (3, "BSND", 1, 2, "BF16", False),
                                                     (4, "BSH", 5, 0, "BF16", False),
                                                     (2, "BSH", 5, 0, "F16", True), (4, "BNSD", 1, 0, "BF16", True)]:  # fmt: skip
        q = drawn((2, heads, rows, depth), 1, kind)
        k, v = (np.random.default_rng(seed).integers(-128, 128, (2, 2, keys, depth)) for seed in (2, 3))
        before = [np.random.default_rng(seed).integers(-128, 128, (1, 2, shared, depth)) for seed in (4, 5)]
        of = [numbers(mode, kind, (2, 2, keys, depth), seed)[0] for seed in (6, 8)]
        put = lambda x, kind="I8": tensor(laid_out(x, layout), kind)
        if joint:
            shape = (2, 2, depth)
            given = {"antiquantScale": tensor(np.stack([of[0][0], of[1][0]]).reshape(shape), kind),
                     "antiquantOffset": tensor(np.stack([of[0][1], of[1][1]]).reshape(shape), kind)}  # fmt: skip
        else:
            own = {0: (1, 2, depth) if rows == 1 else (2, depth), 2: (2,)}[mode]
            names = ["keyAntiquantScale", "keyAntiquantOffset", "valueAntiquantScale", "valueAntiquantOffset"]
            given = {name: tensor(x.reshape(own), kind) for name, x in zip(names, [*of[0], *of[1]])}
        for length in ([], [2]):
            count, lengths = (length or [shared])[0], [keys, 9]
            result = fused(version, rows, query=put(q, kind), key=[put(k)], value=[put(v)],
                           keySharedPrefix=put(before[0]), valueSharedPrefix=put(before[1]),
                           actualSharedPrefixLen=length, numHeads=heads, numKeyValueHeads=2, inputLayout=layout,
                           keyAntiquantMode=mode, valueAntiquantMode=mode, actualSeqLengthsKv=lengths,
                           attentionOut=empty(laid_out(q, layout).shape, kind), **given)  # fmt: skip
            for b, n in enumerate(lengths):
                real = [(np.concatenate([x[:, :, :count], y[b : b + 1, :, :n]], 2) + offset) * scale
                        for x, y, (scale, offset) in zip(before, (k, v), of)]  # fmt: skip
                y = attention(q[b : b + 1], *real, q[b : b + 1], 0.3, 0, np.ones((1, 1, rows, count + n), bool), 1)[0]
                near(back(result[b : b + 1], layout, y.shape), y, kind)


def test_learnable_sink():
    """A score more in every row's sum; rows without keys give 0, and infinity."""
    heads, keys, kind = 4, 150, "BF16"
    sink = rounded(np.array([-3, 0.5, 9, 40]), "BF16")
    for layout, rows, depth, mode in [("BNSD", 5, 64, 3), ("BSH", 1, 128, None), ("BSND", 130, 64, None)]:
        q, k, v = (drawn((2, n, s, depth), seed, kind) for seed, n, s in ((1, heads, rows), (2, 2, keys), (3, 2, keys)))
        lengths = [keys, 3]
        keeps = np.zeros((2, 1, rows, keys), bool)
        for b, n in enumerate(lengths):
            keeps[b, 0, :, :n] = kept(mode, rows, n) if mode else True
        y, largest, sums, *_ = attention(q, k, v, q, 0.3, 0, keeps, 1)
        with np.errstate(divide="ignore"):
            joint = largest + np.log(sums)
        counted = np.logaddexp(joint, sink[:, None])
        y *= np.exp(joint - counted)[..., None]
        put = lambda x: tensor(laid_out(x, layout), kind)
        result, sums_of = fused(4, rows, query=put(q), key=[put(k)], value=[put(v)], numHeads=heads, numKeyValueHeads=2,
                                inputLayout=layout, learnableSink=tensor(sink, kind, "gaps"),
                                actualSeqLengthsKv=lengths, sparseMode=mode or 0,
                                attenMask=empty((2048, 2048), "B") if mode else None,
                                keyRopeAntiquantScale=tensor([2.0]),
                                attentionOut=empty(laid_out(q, layout).shape, kind),
                                softmaxLse=empty((2, heads, rows, 1)))  # fmt: skip
        near(back(result, layout, q.shape), y, kind)
        np.testing.assert_allclose(sums_of[..., 0], np.where(sums == 0, np.inf, counted), rtol=1e-5, atol=1e-5)


def prompt(**given):
    names = ["pseShift", "attenMask", "deqScale1", "quantScale1", "deqScale2", "quantScale2", "quantOffset2"]
    values = {"actualSeqLengths": [], "actualSeqLengthsKv": [], "scaleValue": 0.3, "preTokens": FAR, "nextTokens": 0,
              "sparseMode": 0,
              "innerPrecise": 0, "inputLayout": "BNSD"}  # fmt: skip
    return call("PromptFlashAttentionV3", **{**dict.fromkeys(names), **values, **given})


def wide(value):
    return tensor(np.array([np.float32(value).view(np.uint32)], np.uint64) | np.uint64(1 << 46), "U64")


def test_all_integers():
    """Weights that lie within float32's roundings of the middle of two integers may become either."""
    heads, key_heads, depth, between = 4, 2, 32, (0.01, 100.0, 0.02)
    for version, rows, keys, mode, quantizes in [(0, 5, 9, None, False), (1, 130, 300, 3, True), (2, 5, 9, 3, False),
                                                 (4, 9, 5, 3, True)]:  # fmt: skip
        q, k, v = (np.random.default_rng(seed).integers(-30, 31,
                                                        (2, n, s, depth))
                   for seed, n, s in ((1, heads, rows), (2, key_heads, keys), (3, key_heads, keys)))  # fmt: skip
        keeps = np.ones((rows, keys), bool) if mode is None else kept(mode, rows, keys)
        shift = drawn((2, heads, rows, keys), 4, "F16")
        of_k, of_v = (np.repeat(x, heads // key_heads, 1) for x in (k, v))
        scores = np.where(keeps, 0.3 * between[0] * (q @ of_k.swapaxes(2, 3)) + shift, -np.inf)
        powers = np.exp(scores - np.where(np.isinf(scores), 0, scores).max(-1, keepdims=True, where=keeps, initial=-1e9))
        weights, sums = np.rint(powers * between[1]), powers.sum(-1, keepdims=True)
        sums = np.where(sums == 0, 1, sums)
        unsure = np.abs(powers * between[1] % 1 - 0.5) < 1e-3
        y, slack = (x @ z * between[2] / sums for x, z in ((weights, of_v), (unsure, np.abs(of_v))))
        scale, offset = (1.5, 0.0 if mode == 3 and keys < rows else 3.5) if quantizes else (1, 0)
        given = {"query": tensor(q, "I8", "gaps"), "numHeads": heads, "numKeyValueHeads": key_heads,
                 "pseShift": tensor(shift, "F16"),
                 "attenMask": None if mode is None else empty((2048, 2048), "B"), "sparseMode": mode or 0, "nextTokens": 0,
                 "deqScale1": wide(between[0]) if quantizes else tensor([between[0]]), "quantScale1": tensor([between[1]]),
                 "deqScale2": tensor([between[2]]) if quantizes else wide(between[2]),
                 "quantScale2": tensor([scale]) if quantizes else None,
                 "quantOffset2": tensor([offset]) if offset else None,
                 "attentionOut": empty(q.shape, "I8" if quantizes else "F16")}  # fmt: skip
        k, v = tensor(k, "I8"), tensor(v, "I8", "reversed")
        own = prompt(key=k, value=v, **given) if version == 0 else fused(version, rows, key=[k], value=[v], **given)
        expected = y * scale + offset
        rounding = 0.5 if quantizes else np.abs(y) * 2.0**-11
        assert (np.abs(own - np.clip(expected, -128, 127) if quantizes else own - expected) <= rounding + slack * scale + 1e-3).all()


def placed(values, lengths, paddings):
    """The valid rows of every batch at the places that the paddings leave, zeros elsewhere; where there is no room, none."""
    result = np.zeros_like(values)
    for b, length in enumerate(lengths):
        begin = values.shape[2] - max(paddings, 0) - length
        if begin >= 0:
            result[b, :, begin : begin + length] = values[b, :, :length]
    return result


def test_left_padding():
    heads, room, keys, depth, kind = 2, 7, 9, 8, "F16"
    rows_of, keys_of = [5, 3], [6, 4]
    for version, before, behind, mode in [(1, 2, 3, None), (2, 0, 1, 0), (3, -4, 3, 3), (4, 2, None, 3),
                                          (2, None, 2, 0), (1, 3, 0, None), (3, 0, 6, 0)]:  # fmt: skip
        q, k, v = (drawn((2, heads, s, depth), seed, kind) for seed, s in ((1, room), (2, keys), (3, keys)))
        mask = np.random.default_rng(5).random((2, 1, room, keys)) < 0.3
        shift = drawn((2, heads, room, keys), 6, kind)
        fits = (before or 0) <= room - max(rows_of) and (behind or 0) <= keys - max(keys_of)
        expected = np.zeros(q.shape)
        for b in range(2):
            row = 0 if before is None else room - max(before, 0) - rows_of[b]
            key = 0 if behind is None else keys - max(behind, 0) - keys_of[b]
            if row < 0 or key < 0:
                continue
            own_rows, own_keys = slice(row, row + rows_of[b]), slice(key, key + keys_of[b])
            keeps = kept(mode if mode == 3 else 1, rows_of[b], keys_of[b])
            keeps = keeps & ~mask[b, :, own_rows, own_keys] if mode == 0 else keeps
            one = lambda x, place: x[b : b + 1, :, place]
            expected[b, :, own_rows] = attention(one(q, own_rows), one(k, own_keys), one(v, own_keys), one(q, own_rows), 0.3,
                                                 shift[b : b + 1, :, own_rows, own_keys], keeps, 1, True)[0]  # fmt: skip
        given = {name: tensor([value], "I64")
                 for name, value in (("queryPaddingSize", before), ("kvPaddingSize", behind)) if value is not None}  # fmt: skip
        own = fused(version, room, query=tensor(q, kind), key=[tensor(k, kind)], value=[tensor(v, kind)],
                    numHeads=heads, numKeyValueHeads=0, pseShift=tensor(shift, kind),
                    attenMask=None if mode is None else tensor(mask, "B") if mode == 0 else empty((2048, 2048), "B"),
                    sparseMode=mode or 0, actualSeqLengths=rows_of, actualSeqLengthsKv=keys_of,
                    attentionOut=empty(q.shape, kind), **given)  # fmt: skip
        near(own, expected, kind)
        assert fits or (own[0] == 0).all()


def test_left_padding_of_one_token():
    """Without lengths a padding has no effect."""
    q, k, v = (drawn((2, 2, s, 8), seed, "F16") for seed, s in ((1, 1), (2, 9), (3, 9)))
    for lengths in ([6, 4], []):
        keeps = np.ones((2, 1, 1, 9), bool)
        for b, length in enumerate(lengths):
            keeps[b] = (np.arange(9) >= 7 - length) & (np.arange(9) < 7)
        expected = attention(q, k, v, q, 0.3, 0, keeps, 1)[0]
        given = {"query": tensor(q, "F16"), "key": [tensor(k, "F16")], "value": [tensor(v, "F16")], "numHeads": 2,
                 "numKeyValueHeads": 2,
                 "kvPaddingSize": tensor([2], "I64"), "attentionOut": empty(q.shape, "F16")}  # fmt: skip
        near(later_token(actualSeqLengths=lengths, inputLayout="BNSD", **given), expected, "F16")
        given |= {"key": [tensor(k, "F16")], "value": [tensor(v, "F16")], "queryPaddingSize": tensor([5], "I64")}
        near(fused(2, 1, actualSeqLengthsKv=lengths, actualSeqLengths=[1], **given), expected, "F16")


def test_integer_keys_of_four_bits():
    heads, key_heads, depth, keys, lengths = 4, 2, 64, 24, [24, 17]
    sizes = (2, key_heads, keys, depth)
    for mode, other, version, kind, width, layout in [(0, 0, 2, "F16", "I4", "BNSD"), (1, 1, 3, "BF16", "I32", "BSH"),
                                                      (3, 3, 4, "F16", "I4", "BSND"),
                                                      (0, 1, 2, "F16", "I32", "BNSD"), (3, 3, 3, "BF16", "I32", "list")]:  # fmt: skip
        own_layout = "BNSD" if layout == "list" else layout
        q = drawn((2, heads, 1, depth), 1, kind)
        k, v = (np.random.default_rng(seed).integers(-8, 8, sizes) for seed in (2, 3))
        (of_k, given_k, name_k), (of_v, given_v, name_v) = numbers(mode, kind, sizes, 5), numbers(other, kind, sizes, 9)
        put = lambda x: [calling.packed(part,
                                        width)
                         for part in ((x[:1], x[1:]) if layout == "list" else (laid_out(x, layout),))]  # fmt: skip
        for offsets in (True, False):
            names = {"keyAntiquantScale": tensor(given_k[0], name_k), "valueAntiquantScale": tensor(given_v[0], name_v)}
            if offsets:
                names |= {"keyAntiquantOffset": tensor(given_k[1], name_k),
                          "valueAntiquantOffset": tensor(given_v[1], name_v)}  # fmt: skip
            result = fused(version, 1, query=tensor(laid_out(q, own_layout), kind), key=put(k), value=put(v), numHeads=heads,
                           numKeyValueHeads=key_heads, actualSeqLengthsKv=lengths, keyAntiquantMode=mode,
                           valueAntiquantMode=other, inputLayout=own_layout,
                           attentionOut=empty(laid_out(q, own_layout).shape, kind), **names)  # fmt: skip
            real = [(x + of[1] * offsets) * of[0] for x, of in ((k, of_k), (v, of_v))]
            keeps = np.arange(keys) < np.array(lengths)[:, None, None, None]
            near(back(result, own_layout, q.shape), attention(q, *real, q, 0.3, 0, keeps, 1)[0], kind)


def test_earlier_versions():
    """They have the bits of the later ones without what these have more."""
    q, k, v = (drawn((2, 4, 5, 32), 1, "F16"), drawn((2, 2, 6, 32), 2, "F16"), drawn((2, 2, 6, 32), 3, "F16"))
    mask, scale = tensor(np.random.default_rng(4).random((5, 6)) < 0.3, "B"), tensor([8.0])
    unused = tensor([3.0, -3.0], "F16")  # the second versions have a parameter for a shift, and no shift
    for output, quantScale2 in [("F16", None), ("I8", scale)]:
        given = {"query": tensor(q, "F16"), "key": tensor(k, "F16"), "value": tensor(v, "F16"), "pseShift": None,
                 "attenMask": mask,
                 "actualSeqLengths": [5, 4], "actualSeqLengthsKv": [6, 3], "deqScale1": None, "quantScale1": None,
                 "deqScale2": None,
                 "quantScale2": quantScale2, "quantOffset2": None, "numHeads": 4, "scaleValue": 0.3, "preTokens": FAR,
                 "nextTokens": FAR, "inputLayout": "BNSD", "numKeyValueHeads": 2, "sparseMode": 0}  # fmt: skip
        later = call("PromptFlashAttentionV3", innerPrecise=0, attentionOut=empty(q.shape, output), **given)
        own = call("PromptFlashAttentionV2", attentionOut=empty(q.shape, output), **{**given, "pseShift": unused})
        np.testing.assert_array_equal(own, later)
        token = q[:, :, :1]
        given = {"query": tensor(token, "F16"), "pseShift": None,
                 "attenMask": None, "actualSeqLengths": [6, 3], "dequantScale1": None, "quantScale1": None,
                 "dequantScale2": None,
                 "quantScale2": quantScale2, "quantOffset2": None, "numHeads": 4, "scaleValue": 0.3, "inputLayout": "BNSD",
                 "numKeyValueHeads": 2, "attentionOut": empty(token.shape, output)}  # fmt: skip
        pages = {"antiquantScale": None, "antiquantOffset": None, "blocktable": None, "blockSize": 0, "innerPrecise": 0}
        latest = call("IncreFlashAttentionV4", key=[tensor(k, "F16")], value=[tensor(v, "F16")], kvPaddingSize=None,
                      **pages, **given)  # fmt: skip
        for name, more in [("IncreFlashAttentionV3", pages), ("IncreFlashAttentionV2", {})]:
            given["pseShift"] = unused if name.endswith("2") else None
            own = call(name, key=[tensor(k, "F16")], value=[tensor(v, "F16")], **more, **given)
            np.testing.assert_array_equal(own, latest)
        assert np.unique(latest).size > 2


@pytest.mark.parametrize("version", [3, 4])
def test_the_largest_workspace(version, monkeypatch):
    """GetMaxWorkspaceSize takes what GetWorkspaceSize takes, says the same size and refuses the same."""
    answers = []

    def ask_both(name, *arguments, stream):
        for size_of in ("GetWorkspaceSize", "GetMaxWorkspaceSize"):
            size, executor = support.ffi.new("uint64_t *", 0xA5A5), support.ffi.new("aclOpExecutor **")
            status = getattr(support.lib, name + size_of)(*map(support.handle_of, arguments), size, executor)
            answers.append((status, size[0], harness.last_rule() if status else support.lib.aclDestroyAclOpExecutor(executor[0])))

    monkeypatch.setattr(support, "run", ask_both)
    q, k = drawn((1, 1, 1, 16), 1, "F16"), drawn((1, 1, 16, 16), 2, "F16")
    for heads in (1, 0):
        fused(version, 1, query=tensor(q, "F16"), key=[tensor(k, "F16")], value=[tensor(k, "F16")], numHeads=heads, numKeyValueHeads=1,
              actualSeqLengthsKv=[9], attentionOut=empty(q.shape, "F16"))  # fmt: skip
    assert answers[:2] == [(0, 0, 0)] * 2
    assert answers[2:] == [(161002, 0xA5A5, f"aclnnFusedInferAttentionScoreV{version}/numHeads/range")] * 2
