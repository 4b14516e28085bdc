"""What the lightning indexer is taught with: statistics of its scores, and the loss whose gradients PyTorch finds in float64."""

import numpy
import pytest

from tests.ascend.attention import near
from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, tensor
from tests.ascend.tokens import ALL, Layout, scores_of
from tests.conformance.ascend.aclnn_support import ffi

CASES = [  # as tokens.SEQUENCES; no sequence has more rows than keys
    ("BSND", "BSND", [3, 0, 2], [5, 4, 2], 3, 5),
    ("BSND", "BSND", None, None, 4, 7),
    ("TND", "TND", [3, 0, 4, 1], [5, 2, 9, 1], None, None),
]
LONG = ("TND", "TND", [2], [300], None, None)
MANY = ("TND", "TND", [37], [140], None, None)  # more than a group of rows
MORE_ROWS = ("BSND", "BSND", [5, 3], [3, 0], 5, 4)  # than keys: the first ones see none
KINDS = [*zip(["F16", "BF16", "BF16"], ["F16", "F32", "BF16"], LAYOUTS)]


def indexer(at, heads, kind, weight_kind):
    """Weights that leave scores of a few units."""
    return (drawn((*at.row_shape, heads, 128), 1, kind), drawn((*at.key_shape, 1, 128), 2, kind),
            drawn((*at.row_shape, heads), 3, weight_kind) / 64)  # fmt: skip


@pytest.mark.parametrize("case", [*CASES, LONG])
@pytest.mark.parametrize("heads", [8, 32])
@pytest.mark.parametrize("kind, weight_kind, layout", KINDS)
def test_statistics(kind, weight_kind, layout, heads, case):
    at = Layout(*case)
    query, key, weights = indexer(at, heads, kind, weight_kind)
    maxima, sums = numpy.full(at.row_shape, -numpy.inf), numpy.zeros(at.row_shape)
    for s, row, seen in at.sequences(True):
        scores = scores_of(query[at.rows_of(s)][row], key[at.keys_of(s)], weights[at.rows_of(s)][row])[:seen]
        maxima[at.rows_of(s)][row] = scores.max()
        sums[at.rows_of(s)][row] = numpy.exp(scores - scores.max()).sum()
    rows, keys = at.listed()
    shape = (1, *at.row_shape) if at.packed else (at.row_shape[0], 1, at.row_shape[1])
    own = call("DenseLightningIndexerSoftmaxLse", queryIndex=tensor(query, kind, layout), keyIndex=tensor(key, kind, layout),
               weight=tensor(weights, weight_kind, layout), actualSeqLengthsQueryOptional=rows, actualSeqLengthsKeyOptional=keys,
               layoutOptional=at.names[0], sparseMode=3, preTokens=ALL, nextTokens=ALL, softmaxMaxOut=empty(shape, "F32", layout),
               softmaxSumOut=empty(shape, "F32", layout))  # fmt: skip
    # A score is a sum of 128 * heads terms whose sizes add up to less than 3 * heads.
    for actual, expected in zip(own, (maxima, sums)):
        near(actual, expected.reshape(shape), "F32", 128 * 3 * heads)


def taught(at, attention, scale, selection, statistics):
    """Of every row: the keys that count, and p, which is made with the statistics of the attention's heads."""
    query, key = attention
    shared = query.shape[-2] // key.shape[-2]
    for s, row, seen in at.sequences(True):
        if seen == 0:
            continue
        places = numpy.arange(seen)
        if selection is not None:
            chosen = selection[at.rows_of(s)][row, 0]
            chosen = chosen[: numpy.argmax(chosen < 0)] if (chosen < 0).any() else chosen
            places = chosen[chosen < seen]
        q, k = query[at.rows_of(s)][row], numpy.repeat(key[at.keys_of(s)][places], shared, 1)
        scores = scale * numpy.einsum("hd,khd->hk", q, k)
        maxima, sums = statistics[0][at.rows_of(s)][row], statistics[1][at.rows_of(s)][row]
        if maxima[0] == -numpy.inf:
            maxima[:] = scores.max(-1)
            sums[:] = numpy.exp(scores - maxima[:, None]).sum(-1)
        p = (numpy.exp(scores - maxima[:, None]) / sums[:, None]).sum(0)
        yield s, row, places, p / p.sum()


def loss_of(torch, at, attention, scale, selection, statistics, query, key, weights):
    loss, scores_of_rows = 0, []
    for s, row, places, p in taught(at, attention, scale, selection, statistics):
        own = query[at.rows_of(s)][row], key[at.keys_of(s)][torch.tensor(places), 0], weights[at.rows_of(s)][row]
        scores = (own[2][:, None] * torch.relu(own[0] @ own[1].T)).sum(0)
        p = torch.tensor(p)
        loss = loss + (p * (torch.log(p) - torch.log_softmax(scores, 0))).sum()
        scores_of_rows.append((s, row, scores.detach().numpy()))
    return loss, scores_of_rows


def by_heads(values, at, key_heads):
    """[rows…, heads] as [batch, M, row, heads / M], or without the batch."""
    grouped = values.reshape(*values.shape[:-1], key_heads, -1)
    return numpy.moveaxis(grouped, -2, 0 if at.packed else 1)


def check(name, at, kind, weight_kind, layout, heads, own_heads, key_heads, depth, parts, selection=None):
    torch = pytest.importorskip("torch")
    scale, wide = 0.03, depth + 64 if parts else depth
    query, key, weights = indexer(at, heads, kind, weight_kind)
    weights = tensor(weights, weight_kind).values().astype(float)
    attention = [drawn((*at.row_shape, own_heads, wide), 4, kind), drawn((*at.key_shape, key_heads, wide), 5, kind)]
    statistics = numpy.full((*at.row_shape, own_heads), -numpy.inf), numpy.zeros((*at.row_shape, own_heads))
    tensors = [torch.tensor(values, requires_grad=True) for values in (query, key, weights)]
    loss, scores = loss_of(torch, at, attention, scale, selection, statistics, *tensors)
    expected = [found.numpy() for found in torch.autograd.grad(loss, tensors)]
    rows, keys = ([] if lengths is None and selection is not None else lengths for lengths in at.listed())  # [] is the same
    put, like = (lambda values, of=kind: tensor(values, of, layout)), (lambda values, of: empty(values.shape, of, layout))
    given = {}
    if selection is None:
        maxima, sums = numpy.full(at.row_shape, -numpy.inf), numpy.zeros(at.row_shape)
        for s, row, own in scores:
            maxima[at.rows_of(s)][row], sums[at.rows_of(s)][row] = own.max(), numpy.exp(own - own.max()).sum()
        shape = (1, *at.row_shape) if at.packed else (at.row_shape[0], 1, at.row_shape[1])
        given |= {"softmaxMaxIndex": put(maxima.reshape(shape), "F32"), "softmaxSumIndex": put(sums.reshape(shape), "F32"),
                  "preTokens": 9, "nextTokens": 9}  # fmt: skip
    else:
        given |= {"sparseIndices": put(selection, "I32"), "deterministic": True, "pre_tokens": 9, "next_tokens": 9}
    *own, own_loss = call(
        name, query=put(attention[0][..., :depth]), key=put(attention[1][..., :depth]), queryIndex=put(query), keyIndex=put(key),
        weights=put(weights, weight_kind), softmaxMax=put(by_heads(statistics[0], at, key_heads), "F32"),
        softmaxSum=put(by_heads(statistics[1], at, key_heads), "F32"),
        queryRope=put(attention[0][..., depth:]) if parts else None, keyRope=put(attention[1][..., depth:]) if parts else None,
        actualSeqLengthsQuery=rows, actualSeqLengthsKey=keys, scaleValue=scale, layout=at.names[0], sparseMode=3,
        dQueryIndex=like(query, kind), dKeyIndex=like(key, kind), dWeights=like(weights, weight_kind), loss=empty((1,)),
        **given)  # fmt: skip
    # The scores of the indexer and of the attention are wrong by as much, and so is what comes of them by a factor.
    terms = 128 * 3 * heads + 4 * wide
    for actual, values, of in zip(own, expected, (kind, kind, weight_kind)):
        near(actual, values, of, terms)
    near(own_loss, loss.detach().numpy().reshape(1), "F32", terms)


@pytest.mark.parametrize("case", [*CASES, LONG, MANY, MORE_ROWS])
@pytest.mark.parametrize("heads, parts", [(8, True), (16, False)])
@pytest.mark.parametrize("kind, weight_kind, layout", KINDS)
def test_dense_loss(kind, weight_kind, layout, heads, parts, case):
    check("DenseLightningIndexerGradKLLoss", Layout(*case), kind, weight_kind, layout, heads, 32, 32, 128, parts)


@pytest.mark.parametrize("case", [*CASES, MANY])
@pytest.mark.parametrize("heads, parts", [(8, True), (16, False)])
@pytest.mark.parametrize("kind, weight_kind, layout", KINDS)
def test_sparse_loss(kind, weight_kind, layout, heads, parts, case):
    at, random = Layout(*case), numpy.random.default_rng(6)
    selection = numpy.full((*at.row_shape, 1, 1024), -1)
    for s, row, seen in at.sequences(True):
        count = random.integers(1, seen + 1)
        selection[at.rows_of(s)][row, 0, :count] = random.permutation(seen)[:count]
        # One that the row does not see.
        selection[at.rows_of(s)][row, 0, count] = at.keys[s] - 1 if seen < at.keys[s] else -1
    check("SparseLightningIndexerGradKLLoss", at, kind, weight_kind, layout, heads, 64, 1, 512, parts, selection)


def test_statistics_without_rows():
    shape = (2, 1, 0)
    own = call("DenseLightningIndexerSoftmaxLse", queryIndex=empty((2, 0, 8, 128), "F16"), keyIndex=empty((2, 0, 1, 128), "F16"),
               weight=empty((2, 0, 8), "F16"), actualSeqLengthsQueryOptional=None, actualSeqLengthsKeyOptional=None,
               layoutOptional=None, sparseMode=3, preTokens=ALL, nextTokens=ALL, softmaxMaxOut=empty(shape),
               softmaxSumOut=empty(shape))  # fmt: skip
    assert own[0].shape == own[1].shape == shape


def test_selected_keys_that_are_not_there():
    indices = numpy.full((1, 1, 1, 1024), -1)
    indices[0, 0, 0, 0] = 3
    half = lambda *shape: empty(shape, "F16")
    sentence = fault("SparseLightningIndexerGradKLLoss", half(1, 1, 32, 512), half(1, 3, 1, 512), half(1, 1, 8, 128),
                     half(1, 3, 1, 128), half(1, 1, 8), tensor(indices, "I32"), empty((1, 1, 1, 32)), empty((1, 1, 1, 32)), None,
                     None, None, None, 1.0, ffi.new("char[]", b"BSND"), 3, 0, 0, False, half(1, 1, 8, 128), half(1, 3, 1, 128),
                     half(1, 1, 8), empty((1,)))  # fmt: skip
    assert "row 0 selects block 3 of a sequence of 3" in sentence
