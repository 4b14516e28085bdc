"""The lightning indexer and attention to the tokens that it selects: sequence by sequence and token by token, in float64."""

import numpy
import pytest

from tests.ascend.attention import attention, near
from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, rounded, tensor, whole
from tests.ascend.tokens import ALL, IDS, SEQUENCES, Layout, scores_of
from tests.conformance.ascend.aclnn_support import ffi


@pytest.mark.parametrize("case", SEQUENCES, ids=IDS)
@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("kind, weight_kind, layout", [*zip(["F16", "BF16", "BF16"], ["F16", "F32", "BF16"], LAYOUTS)])
def test_lightning_indexer(kind, weight_kind, layout, mode, case):
    """Of whole numbers the scores are exact, and many of them equal: the order of the indices is the order of the scores, and of
    equal ones that of the keys."""
    at = Layout(*case)
    heads, count = 5, 6
    query, key = whole((*at.row_shape, heads, 128), 2, -2, 3), whole((*at.key_shape, 1, 128), 3, -1, 2)
    weights = whole((*at.row_shape, heads), 4, -2, 3)
    indices = numpy.full((*at.row_shape, 1, count), -1)
    values = numpy.full(indices.shape, -numpy.inf)
    for s, row, seen in at.sequences(mode == 3):
        scores = scores_of(query[at.rows_of(s)][row], key[at.keys_of(s)], weights[at.rows_of(s)][row])[:seen]
        best = numpy.argsort(-scores, kind="stable")[:count]
        indices[at.rows_of(s)][row, 0, : len(best)] = best
        values[at.rows_of(s)][row, 0, : len(best)] = rounded(scores[best], kind)
    rows, keys, pages = at.lengths(layout)
    for wanted in [False] if at.paged else [True, False]:
        own = call("LightningIndexer", query=tensor(query, kind, layout), key=tensor(key, kind, layout),
                   weights=tensor(weights, weight_kind, layout), actualSeqLengthsQueryOptional=rows,
                   actualSeqLengthsKeyOptional=keys, blockTableOptional=pages, layoutQueryOptional=at.names[0],
                   layoutKeyOptional=at.names[1], sparseCount=count, sparseMode=mode, preTokens=ALL, nextTokens=ALL,
                   returnValues=wanted, sparseIndicesOut=empty(indices.shape, "I32", layout),
                   sparseValuesOut=empty(indices.shape, kind, layout) if wanted else None)  # fmt: skip
        own_indices, own_values = own if wanted else (own, values)
        numpy.testing.assert_array_equal(own_indices, indices)
        numpy.testing.assert_array_equal(own_values, values)


@pytest.mark.parametrize("case", SEQUENCES, ids=IDS)
@pytest.mark.parametrize("mode, layout", [(0, "row-major"), (3, "reversed"), (3, "gaps")])
def test_quantized_indexer(mode, layout, case):
    """Scales are powers of two, so that scores are exact."""
    at = Layout(*case)
    heads, count = 5, 6
    query, key = whole((*at.row_shape, heads, 128), 2, -2, 3), whole((*at.key_shape, 1, 128), 3)
    weights = whole((*at.row_shape, heads), 4, -2, 3)
    of_query, of_key = 2.0 ** whole((*at.row_shape, heads), 5, -2, 3), 2.0 ** whole((*at.key_shape, 1), 6, -3, 2)
    indices = numpy.full((*at.row_shape, 1, count), -1)
    for s, row, seen in at.sequences(mode == 3):
        own = at.rows_of(s)
        scores = scores_of(query[own][row] * of_query[own][row][:, None], key[at.keys_of(s)] * of_key[at.keys_of(s)][..., None],
                           weights[own][row])[:seen]  # fmt: skip
        best = numpy.argsort(-scores, kind="stable")[:count]
        indices[own][row, 0, : len(best)] = best
    rows, keys, pages = at.lengths(layout)
    put = lambda values: tensor(values, "F16", layout)
    own = call("QuantLightningIndexer", query=tensor(query, "I8", layout), key=tensor(key, "I8", layout), weights=put(weights),
               queryDequantScale=put(of_query), keyDequantScale=put(of_key), actualSeqLengthsQueryOptional=rows,
               actualSeqLengthsKeyOptional=keys, blockTableOptional=pages, queryQuantMode=0, keyQuantMode=0,
               layoutQueryOptional=at.names[0], layoutKeyOptional=at.names[1], sparseCount=count, sparseMode=mode, preTokens=ALL,
               nextTokens=ALL, out=empty(indices.shape, "I32", layout))  # fmt: skip
    numpy.testing.assert_array_equal(own, indices)


def test_scores_that_are_not_whole():
    """The selected ones are the largest within what float32 loses, and their scores are right."""
    heads, keys, count = 64, 1500, 512
    query, key, weights = drawn((1, 3, heads, 128), 5, "BF16"), drawn((1, keys, 1, 128), 6, "BF16"), drawn((1, 3, heads), 7)
    indices, values = call("LightningIndexer", query=tensor(query, "BF16"), key=tensor(key, "BF16"), weights=tensor(weights),
                           actualSeqLengthsQueryOptional=None, actualSeqLengthsKeyOptional=None, blockTableOptional=None,
                           layoutQueryOptional=None, layoutKeyOptional=None, sparseCount=count, sparseMode=0, preTokens=ALL,
                           nextTokens=ALL, returnValues=True, sparseIndicesOut=empty((1, 3, 1, count), "I32"),
                           sparseValuesOut=empty((1, 3, 1, count), "BF16"))  # fmt: skip
    for row in range(3):
        scores = scores_of(query[0, row], key[0], weights[0, row])
        chosen = indices[0, row, 0].astype(int)
        sizes = (abs(weights[0, row, :, None]) * (abs(query[0, row]) @ abs(key[0, :, 0]).T)).sum(0).max()
        error = (128 + heads) * 2.0**-24 * sizes
        assert len(set(chosen)) == count
        assert (numpy.diff(scores[chosen]) <= 2 * error).all()
        assert scores[chosen].min() >= numpy.sort(scores)[-count] - 2 * error
        numpy.testing.assert_allclose(values[0, row, 0], scores[chosen], rtol=2.0**-8, atol=error)


def test_nan_is_the_greatest():
    query, key = numpy.ones((1, 1, 1, 128)), numpy.ones((1, 4, 1, 128))
    key[0, 2] = numpy.nan
    indices = call("LightningIndexer", query=tensor(query, "F16"), key=tensor(key, "F16"),
                   weights=tensor(numpy.ones((1, 1, 1)), "F16"), actualSeqLengthsQueryOptional=None,
                   actualSeqLengthsKeyOptional=None, blockTableOptional=None, layoutQueryOptional=None, layoutKeyOptional="BSND",
                   sparseCount=3, sparseMode=0, preTokens=ALL, nextTokens=ALL, returnValues=False,
                   sparseIndicesOut=empty((1, 1, 1, 3), "I32"), sparseValuesOut=None)  # fmt: skip
    assert indices.ravel().tolist() == [2, 0, 1]


LONG = [  # as SEQUENCES; the operator has room for 2048 keys in a batch
    ("BSND", "BSND", [3, 0, 2], [9, 4, 2048], 3, 2048),
    ("BSND", "BSND", None, None, 2, 2050),
    ("TND", "TND", [3, 0, 4, 1], [5, 2, 9, 0], None, None),
    ("TND", "TND", [37], [60], None, None),  # more than a group of rows
]


@pytest.mark.parametrize("case", LONG)
@pytest.mark.parametrize("mode, heads, with_head", [(0, 3, True), (3, 64, False)])
@pytest.mark.parametrize("kind, layout", [*zip(["F16", "BF16", "BF16"], LAYOUTS)])
def test_indexer_gradients(kind, layout, mode, heads, with_head, case):
    """Whole numbers make many products that are just 0, and are exact; slopes need not be."""
    at, random = Layout(*case), numpy.random.default_rng(16)
    query, key = whole((*at.row_shape, heads, 128), 17, -1, 2), whole((*at.key_shape, 1, 128), 18, -1, 2)
    weights, dy = drawn((*at.row_shape, heads), 19, kind), drawn((*at.row_shape, 2048), 20, kind)
    indices = numpy.full((*at.row_shape, 2048), -1)
    dq, dk, dw = numpy.zeros(query.shape), numpy.zeros(key.shape), numpy.zeros(weights.shape)
    for s, row, seen in at.sequences(mode == 3):
        own, count = at.rows_of(s), min(40, at.keys[s])
        chosen = random.integers(0, max(1, at.keys[s]), count)  # some of them twice
        indices[own][row, :count] = chosen
        kept = numpy.flatnonzero(chosen < seen)
        keys, slopes = key[at.keys_of(s)][chosen[kept], 0], dy[own][row][kept]
        products = query[own][row] @ keys.T
        dw[own][row] = numpy.maximum(products, 0) @ slopes
        of_products = (products > 0) * slopes * weights[own][row][:, None]
        dq[own][row] = of_products @ keys
        of_keys = numpy.zeros((at.keys[s], 1, 128))
        numpy.add.at(of_keys, chosen[kept], (of_products.T @ query[own][row])[:, None])
        dk[at.keys_of(s)] += of_keys
    rows, keys, _ = at.lengths(layout)
    shape = (*at.row_shape, 1, 2048) if with_head else indices.shape
    found = call("LightningIndexerGrad", query=tensor(query, kind, layout), key=tensor(key, kind, layout),
                 dy=tensor(dy.reshape(shape), kind, layout), sparseIndices=tensor(indices.reshape(shape), "I32", layout),
                 weights=tensor(weights, kind, layout), actualSeqQLenOptional=rows, actualSeqKvLenOptional=keys, headNum=heads,
                 inputLayout=at.names[0], sparseMode=mode, preTokens=ALL, nextTokens=ALL, deterministic=False,
                 dqOut=empty(query.shape, kind, layout), dkOut=empty(key.shape, kind, layout),
                 dweightsOut=empty(weights.shape, kind, layout))  # fmt: skip
    for actual, expected in zip(found, (dq, dk, dw)):
        near(actual, expected, kind, 40 * 64)


def test_indexer_gradients_as_torch():
    """Of one row that selects all keys in another order: the automatic gradients of its values."""
    torch = pytest.importorskip("torch")
    query, key, weights = (torch.tensor(drawn(shape, seed, "F16"), requires_grad=True)
                           for seed, shape in enumerate([(5, 128), (2048, 128), (5,)], 21))  # fmt: skip
    order, dy = numpy.random.default_rng(24).permutation(2048), drawn((2048,), 25, "F16")
    values = (weights[:, None] * torch.relu(query @ key[order].T)).sum(0)
    expected = torch.autograd.grad(values, (query, key, weights), torch.tensor(dy))
    put = lambda values, *shape: tensor(values.detach().numpy().reshape(shape), "F16")
    found = call("LightningIndexerGrad", query=put(query, 1, 5, 128), key=put(key, 2048, 1, 128),
                 dy=tensor(dy[None], "F16"), sparseIndices=tensor(order[None], "I32"), weights=put(weights, 1, 5),
                 actualSeqQLenOptional=tensor([1], "I32"), actualSeqKvLenOptional=tensor([2048], "I32"), headNum=5,
                 inputLayout="TND", sparseMode=3, preTokens=0, nextTokens=0, deterministic=True,
                 dqOut=empty((1, 5, 128), "F16"), dkOut=empty((2048, 1, 128), "F16"),
                 dweightsOut=empty((1, 5), "F16"))  # fmt: skip
    for actual, values in zip(found, expected):
        near(actual.reshape(values.shape), values.numpy(), "F16", 2048)


def selected_keys(named, block, seen):
    """Those of the blocks before the first negative number, as far as they are seen."""
    named = named[: numpy.argmax(named < 0)] if (named < 0).any() else named
    places = (named[:, None] * block + numpy.arange(block)).ravel()
    return places[places < seen]


def attended(at, q, k, v, indices, block, scale, causal):
    """The result and the statistics of rows; those that see nothing have none."""
    shape = q.shape[:-1]
    y, largest, sums = numpy.zeros((*shape, v.shape[-1])), numpy.full(shape, -numpy.inf), numpy.zeros(shape)
    for s, row, seen in at.sequences(causal):
        places = selected_keys(indices[at.rows_of(s)][row, 0], block, seen)
        if len(places) == 0:
            continue
        own_q, own_k, own_v = q[at.rows_of(s)][row], k[at.keys_of(s)][places], v[at.keys_of(s)][places]
        found = attention(own_q[None, :, None], own_k[None].swapaxes(1, 2), own_v[None].swapaxes(1, 2),
                          numpy.zeros((1, len(own_q), 1, v.shape[-1])), scale, 0, numpy.array(True), 1)  # fmt: skip
        for into, values in zip((y, largest, sums), found):
            into[at.rows_of(s)][row] = values[0, :, 0]
    return y, largest, sums


def selections(at, block, count):
    """Of every row some blocks of its sequence, one of them twice, then what is none; of rows of no sequence anything."""
    random = numpy.random.default_rng(8)
    indices = numpy.full((*at.row_shape, 1, count), 99)
    for s, row, _ in at.sequences(False):
        blocks = random.permutation(-(-at.keys[s] // block))[: count - 2]
        line = [*blocks, *blocks[:1], -1]
        indices[at.rows_of(s)][row, 0] = (line + [0] * count)[:count]
    return indices


@pytest.mark.parametrize("case", SEQUENCES, ids=IDS)
@pytest.mark.parametrize("mode, block, heads", [(0, 1, 4), (3, 1, 1), (3, 4, 8)])
@pytest.mark.parametrize("kind, layout", [*zip(["F16", "BF16", "BF16"], LAYOUTS)])
def test_sparse_attention(kind, layout, mode, block, heads, case):
    at, scale = Layout(*case), 0.03
    q, k, v = (drawn((*shape, depth), 9 + depth + n, kind) for n, (shape, depth) in
               enumerate([((*at.row_shape, heads), 576), ((*at.key_shape, 1), 576), ((*at.key_shape, 1), 512)]))  # fmt: skip
    indices = selections(at, block, 7)
    y, largest, sums = attended(at, q, k, v, indices, block, scale, mode == 3)
    statistic = largest[None] if at.packed else largest[:, None]
    rows, keys, pages = at.lengths(layout)
    put = lambda values: tensor(values, kind, layout)
    for wanted in [False] if at.paged else [True, False]:
        own = call("SparseFlashAttention", query=put(q[..., :512]), key=put(k[..., :512]), value=put(v),
                   sparseIndices=tensor(indices, "I32", layout), blockTable=pages, actualSeqLengthsQuery=rows,
                   actualSeqLengthsKv=keys, queryRope=put(q[..., 512:]), keyRope=put(k[..., 512:]), scaleValue=scale,
                   sparseBlockSize=block, layoutQuery=at.names[0], layoutKv=at.names[1], sparseMode=mode, preTokens=ALL,
                   nextTokens=ALL, attentionMode=2, returnSoftmaxLse=wanted, attentionOutOut=empty(y.shape, kind, layout),
                   softmaxMaxOut=empty(statistic.shape, "F32", layout) if wanted else None,
                   softmaxSumOut=empty(statistic.shape, "F32", layout) if wanted else None)  # fmt: skip
        # A score is a sum of 576 terms whose sizes add up to less than 15.
        near(own[0] if wanted else own, y, kind, 576 * 15)
        if wanted:
            near(own[1], statistic, "F32", 576 * 15)
            near(own[2], sums[None] if at.packed else sums[:, None], "F32", 576 * 15)


def slopes_of(at, q, k, v, dy, read, indices, block, scale, causal):
    """Of query, keys and values, row by row; those of what nobody selects are 0."""
    dq, dk, dv = map(numpy.zeros_like, (q, k, v))
    for s, row, seen in at.sequences(causal):
        own, places = at.rows_of(s), selected_keys(indices[at.rows_of(s)][row, 0], block, seen)
        if len(places) == 0:
            continue
        of_keys, of_values = numpy.zeros_like(k[at.keys_of(s)]), numpy.zeros_like(v[at.keys_of(s)])
        *_, own_q, own_k, own_v = attention(
            q[own][row][None, :, None], k[at.keys_of(s)][places][None].swapaxes(1, 2),
            v[at.keys_of(s)][places][None].swapaxes(1, 2), dy[own][row][None, :, None], scale, 0, numpy.array(True), 1,
            read=read[own][row][None, :, None])  # fmt: skip
        dq[own][row] = own_q[0, :, 0]
        numpy.add.at(of_keys, places, own_k[0].swapaxes(0, 1))
        numpy.add.at(of_values, places, own_v[0].swapaxes(0, 1))
        dk[at.keys_of(s)] += of_keys
        dv[at.keys_of(s)] += of_values
    return dq, dk, dv


@pytest.mark.parametrize("case", [*(case for case in SEQUENCES if case[1] != "PA_BSND"), LONG[-1]])
@pytest.mark.parametrize("mode, block, heads, parts, merged", [
    (0, 1, 4, True, False), (3, 1, 1, False, False), (3, 8, 2, True, True), (0, 16, 8, False, True)])  # fmt: skip
@pytest.mark.parametrize("kind, layout", [*zip(["F16", "BF16", "BF16"], LAYOUTS)])
def test_sparse_attention_gradients(kind, layout, mode, block, heads, parts, merged, case):
    at, scale, depth = Layout(*case), 0.03, 576 if parts else 512
    q, k, dy = (drawn(shape, 11 + n, kind) for n, shape in
                enumerate([(*at.row_shape, heads, depth), (*at.key_shape, 1, depth), (*at.row_shape, heads, 512)]))  # fmt: skip
    v = k[..., :512] if merged else drawn((*at.key_shape, 1, 512), 15, kind)
    indices = numpy.full((*at.row_shape, 1, 1024), -1)
    indices[..., :7] = selections(at, block, 7)
    y, largest, sums = attended(at, q, k, v, indices, block, scale, mode == 3)
    dq, dk, dv = slopes_of(at, q, k, v, dy, rounded(y, kind), indices, block, scale, mode == 3)
    if merged:
        dk[..., :512] += dv
    put, like = lambda values: tensor(values, kind, layout), lambda values: empty(values.shape, kind, layout)
    statistics = [tensor(values[None] if at.packed else values[:, None], "F32", layout) for values in (largest, sums)]
    rows, keys, _ = at.lengths(layout)
    found = call("SparseFlashAttentionGrad", query=put(q[..., :512]), key=put(k[..., :512]), value=None if merged else put(v),
                 sparseIndices=tensor(indices, "I32", layout), dOut=put(dy), out=put(y), softmaxMax=statistics[0],
                 softmaxSum=statistics[1], actualSeqLengthsQueryOptional=rows, actualSeqLengthsKvOptional=keys,
                 queryRopeOptional=put(q[..., 512:]) if parts else None, keyRopeOptional=put(k[..., 512:]) if parts else None,
                 scaleValue=scale, sparseBlockSize=block, layoutOptional=at.names[0], sparseMode=mode, preTokens=2**31 - 1,
                 nextTokens=2**31 - 1, deterministic=False, dQueryOut=like(q[..., :512]), dKeyOut=like(k[..., :512]),
                 dValueOut=None if merged else like(v), dQueryRopeOutOptional=like(q[..., 512:]) if parts else None,
                 dKeyRopeOutOptional=like(k[..., 512:]) if parts else None)  # fmt: skip
    expected = [dq[..., :512], dk[..., :512], *([] if merged else [dv]), *([dq[..., 512:], dk[..., 512:]] if parts else [])]
    assert len(found) == len(expected)
    for actual, values in zip(found, expected):
        near(actual, values, kind, 576 * 15)


@pytest.mark.parametrize("parts", [False, True])
def test_gradients_without_rows(parts):
    """Keys that nobody asks for have gradients of 0."""
    keys, rows = (2, 5, 1), (2, 0, 4)
    half = lambda shape, depth=512: empty((*shape, depth), "F16")
    part = lambda shape: half(shape, 64) if parts else None
    found = call(
        "SparseFlashAttentionGrad", query=half(rows), key=half(keys), value=half(keys),
        sparseIndices=empty((2, 0, 1, 1024), "I32"), dOut=half(rows), out=half(rows), softmaxMax=empty((2, 1, 0, 4)),
        softmaxSum=empty((2, 1, 0, 4)), actualSeqLengthsQueryOptional=None, actualSeqLengthsKvOptional=None,
        queryRopeOptional=part(rows), keyRopeOptional=part(keys), scaleValue=1.0, sparseBlockSize=1, layoutOptional="BSND",
        sparseMode=0, preTokens=2**31 - 1, nextTokens=2**31 - 1, deterministic=True, dQueryOut=half(rows), dKeyOut=half(keys),
        dValueOut=half(keys), dQueryRopeOutOptional=part(rows), dKeyRopeOutOptional=part(keys))  # fmt: skip
    assert [values.size for values in found] == [0, 5120, 5120, *([0, 640] if parts else [])]
    assert not any(values.any() for values in found)


# ---- what is not there -----------------------------------------------------------------------------------------------------


def text(value):
    return ffi.new("char[]", value)


def indexer_fault(rows, keys, pages, layouts, row_shape=(2, 3), key_shape=(2, 5)):
    put = lambda values: None if values is None else tensor(values, "I32")
    return fault("LightningIndexer", empty((*row_shape, 4, 128), "F16"), empty((*key_shape, 1, 128), "F16"),
                 empty((*row_shape, 4), "F16"), put(rows), put(keys), put(pages), *map(text, layouts), 6, 3, ALL, ALL, False,
                 empty((*row_shape, 1, 6), "I32"), None)  # fmt: skip


@pytest.mark.parametrize("rows, keys, said", [
    ([4, 0], [5, 5], "rows of sequence 0: 4 is not 0 to 3"), ([3, -1], [5, 5], "rows of sequence 1: -1 is not 0 to 3"),
    (None, [5, 6], "keys of sequence 1: 6 is not 0 to 5"),
    ([3, 3], [-1, 5], "keys of sequence 0: -1 is not 0 to 5")])  # fmt: skip
def test_lengths_of_batches_that_are_not_there(rows, keys, said):
    assert said in indexer_fault(rows, keys, None, (b"BSND", b"BSND"))


@pytest.mark.parametrize("rows, keys, said", [
    ([2, 1], [5, 5], "rows of sequence 1: 1 is not 2 to 3"), ([2, 4], [5, 5], "rows of sequence 1: 4 is not 2 to 3"),
    ([2, 3], [6, 6], "keys of sequence 0: 6 is not 0 to 5")])  # fmt: skip
def test_ends_that_are_not_there(rows, keys, said):
    assert said in indexer_fault(rows, keys, None, (b"TND", b"TND"), (3,), (5,))


@pytest.mark.parametrize("keys, pages, said", [
    ([33, 5], [[0, 1], [1, 0]], "keys of sequence 0: 33 is not 0 to 32"),
    ([17, 5], [[0, 2], [1, 9]], "page 1 of sequence 0 is number 2 of 2"),
    ([17, 5], [[0, 1], [-1, 9]], "page 0 of sequence 1 is number -1 of 2")])  # fmt: skip
def test_pages_that_are_not_there(keys, pages, said):
    assert said in indexer_fault(None, keys, pages, (b"BSND", b"PA_BSND"), key_shape=(2, 16))


def test_pages_that_are_not_needed():
    """Nobody looks at their numbers."""
    indices = call("LightningIndexer", query=tensor(numpy.ones((1, 1, 1, 128)), "F16"),
                   key=tensor(numpy.ones((1, 16, 1, 128)), "F16"), weights=tensor(numpy.ones((1, 1, 1)), "F16"),
                   actualSeqLengthsQueryOptional=None, actualSeqLengthsKeyOptional=tensor([2], "I32"),
                   blockTableOptional=tensor([[0, 77]], "I32"), layoutQueryOptional="BSND", layoutKeyOptional="PA_BSND",
                   sparseCount=3, sparseMode=0, preTokens=ALL, nextTokens=ALL, returnValues=False,
                   sparseIndicesOut=empty((1, 1, 1, 3), "I32"), sparseValuesOut=None)  # fmt: skip
    assert indices.ravel().tolist() == [0, 1, -1]


def test_selected_keys_that_are_not_there():
    indices = numpy.full((1, 1, 2048), -1)
    indices[0, 0, :2] = 7, 2048
    shapes = [(1, 1, 2, 128), (1, 2048, 1, 128), (1, 1, 2)]
    sentence = fault("LightningIndexerGrad", empty(shapes[0], "F16"), empty(shapes[1], "F16"), empty((1, 1, 2048), "F16"),
                     tensor(indices, "I32"), empty(shapes[2], "F16"), None, None, 2, text(b"BSND"), 0, 0, 0, False,
                     *(empty(shape, "F16") for shape in shapes))  # fmt: skip
    assert "row 0 selects block 2048 of a sequence of 2048" in sentence


def test_blocks_that_are_not_there():
    """The sequence has 5 keys, which are two blocks of 4."""
    indices = numpy.array([[[[1, -1, 9]], [[0, 2, -1]]]])
    sentence = fault("SparseFlashAttention", empty((1, 2, 1, 512), "F16"), empty((1, 5, 1, 512), "F16"),
                     empty((1, 5, 1, 512), "F16"), tensor(indices, "I32"), None, None, None, empty((1, 2, 1, 64), "F16"),
                     empty((1, 5, 1, 64), "F16"), 1.0, 4, text(b"BSND"), text(b"BSND"), 0, ALL, ALL, 2, False,
                     empty((1, 2, 1, 512), "F16"), None, None)  # fmt: skip
    assert "row 1 selects block 2 of a sequence of 2" in sentence
