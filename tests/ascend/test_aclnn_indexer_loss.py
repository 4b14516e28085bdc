"""What the lightning indexer is taught with: statistics of its scores, and the loss whose gradients PyTorch finds in float64."""

import numpy
import pytest

from tests.ascend.attention import ROUNDING
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


def close(actual, expected, kind, error):
    """Rounded once, and wrong by so many units of float32 before; the smallest numbers of float16 are 2^-24 apart."""
    expected = numpy.asarray(expected)
    numpy.testing.assert_array_equal(numpy.isinf(actual), numpy.isinf(expected))
    seen = numpy.isfinite(expected)
    allowed = ROUNDING[kind] * abs(expected[seen]) + numpy.broadcast_to(error, seen.shape)[seen] * 2.0**-24 + 2.0**-25
    wrong = abs(numpy.asarray(actual)[seen] - expected[seen])
    assert (wrong <= allowed).all(), (wrong / allowed).max()


def score_error(*own):
    """Of a row, in units of float32: sums of 128 terms for every head, which are added."""
    return (128 + len(own[2])) * scores_of(*map(abs, own)).max()


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
    weights = tensor(weights, weight_kind).values().astype(float)
    maxima, sums = numpy.full(at.row_shape, -numpy.inf), numpy.zeros(at.row_shape)
    errors = numpy.zeros(at.row_shape)
    for s, row, seen in at.sequences(True):
        own = query[at.rows_of(s)][row], key[at.keys_of(s)], weights[at.rows_of(s)][row]
        scores = scores_of(*own)[:seen]
        maxima[at.rows_of(s)][row] = scores.max()
        sums[at.rows_of(s)][row] = numpy.exp(scores - scores.max()).sum()
        errors[at.rows_of(s)][row] = score_error(*own)
    rows, keys = at.listed()
    shape = (1, *at.row_shape) if at.packed else (at.row_shape[0], 1, at.row_shape[1])
    own = call("DenseLightningIndexerSoftmaxLse", queryIndex=tensor(query, kind, layout), keyIndex=tensor(key, kind, layout),
               weight=tensor(weights, weight_kind, layout), actualSeqLengthsQueryOptional=rows, actualSeqLengthsKeyOptional=keys,
               layoutOptional=at.names[0], sparseMode=3, preTokens=ALL, nextTokens=ALL, softmaxMaxOut=empty(shape, "F32", layout),
               softmaxSumOut=empty(shape, "F32", layout))  # fmt: skip
    for actual, expected, error in zip(own, (maxima, sums), (errors, sums * (2 * errors + 16))):
        close(actual, expected.reshape(shape), "F32", error.reshape(shape))


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
        # A score of the attention is a sum of as many terms as its heads have numbers.
        yield s, row, places, p / p.sum(), q.shape[-1] * scale * numpy.einsum("hd,khd->hk", abs(q), abs(k)).max()


def add_errors(errors, where, keys, own, p, softmax, error):
    """Of the gradients by query, key and weights, in units of float32, by those of a row's slopes: each is at most `error` times
    the size of what it is the difference of."""
    query, key, weights = map(abs, own)
    slopes, products = p + softmax, query @ key.T
    errors[0][where] = (error + len(p)) * (slopes * weights[:, None]) @ key
    numpy.add.at(errors[1], keys, ((error + len(weights)) * (slopes[:, None] * weights) @ query)[:, None])
    errors[2][where] = (error + 128 + len(p)) * products @ slopes


def loss_of(torch, at, attention, scale, selection, statistics, query, key, weights):
    """The loss; of each row its sequence, number and scores; errors of the gradients and of the loss, in units of float32."""
    loss, scores_of_rows, errors = 0, [], [*(numpy.zeros(values.shape) for values in (query, key, weights)), 0]
    for s, row, places, p, attention_error in taught(at, attention, scale, selection, statistics):
        own = query[at.rows_of(s)][row], key[at.keys_of(s)][torch.tensor(places), 0], weights[at.rows_of(s)][row]
        scores = (own[2][:, None] * torch.relu(own[0] @ own[1].T)).sum(0)
        difference = torch.log(torch.tensor(p)) - torch.log_softmax(scores, 0)
        loss = loss + (torch.tensor(p) * difference).sum()
        scores_of_rows.append((s, row, scores.detach().numpy()))
        exact = [values.detach().numpy() for values in own]
        error = 2 * (score_error(exact[0], exact[1][:, None], exact[2]) + attention_error) + 64
        where = numpy.arange(len(query))[at.rows_of(s)][row] if at.packed else (s, row)
        keys = numpy.arange(len(key))[at.keys_of(s)][places] if at.packed else (s, places)
        add_errors(errors, where, keys, exact, p, torch.softmax(scores, 0).detach().numpy(), error)
        errors[3] += error * (p * (1 + abs(difference.detach().numpy()))).sum()
    return loss, scores_of_rows, errors


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
    loss, scores, errors = loss_of(torch, at, attention, scale, selection, statistics, *tensors)
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
    for actual, values, of, error in zip(own, expected, (kind, kind, weight_kind), errors):
        close(actual, values, of, error)
    close(own_loss, loss.detach().numpy().reshape(1), "F32", errors[3])


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


def test_loss_without_rows():
    """Nothing is learnt: keys have gradients of 0, and there is no loss."""
    half = lambda *shape: empty(shape, "F16")
    *_, of_keys, of_weights, loss = call(
        "SparseLightningIndexerGradKLLoss", query=half(1, 0, 32, 512), key=half(1, 5, 1, 512), queryIndex=half(1, 0, 8, 128),
        keyIndex=half(1, 5, 1, 128), weights=half(1, 0, 8), sparseIndices=empty((1, 0, 1, 1024), "I32"),
        softmaxMax=empty((1, 1, 0, 32)), softmaxSum=empty((1, 1, 0, 32)), queryRope=None, keyRope=None,
        actualSeqLengthsQuery=[], actualSeqLengthsKey=[], scaleValue=1.0, layout="BSND", sparseMode=3, pre_tokens=9,
        next_tokens=9, deterministic=True, dQueryIndex=half(1, 0, 8, 128), dKeyIndex=half(1, 5, 1, 128),
        dWeights=half(1, 0, 8), loss=empty((1,)))  # fmt: skip
    assert (of_keys.shape, of_weights.size, loss.tolist()) == ((1, 5, 1, 128), 0, [0])
    assert not of_keys.any()


def test_selected_keys_that_are_not_there():
    indices = numpy.full((1, 1, 1, 1024), -1)
    indices[0, 0, 0, 0] = 3
    half = lambda *shape: empty(shape, "F16")
    sentence = fault("SparseLightningIndexerGradKLLoss", half(1, 1, 32, 512), half(1, 3, 1, 512), half(1, 1, 8, 128),
                     half(1, 3, 1, 128), half(1, 1, 8), tensor(indices, "I32"), empty((1, 1, 1, 32)), empty((1, 1, 1, 32)), None,
                     None, None, None, 1.0, ffi.new("char[]", b"BSND"), 3, 0, 0, False, half(1, 1, 8, 128), half(1, 3, 1, 128),
                     half(1, 1, 8), empty((1,)))  # fmt: skip
    assert "row 0 selects block 3 of a sequence of 3" in sentence
