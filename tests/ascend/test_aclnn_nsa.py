"""Native sparse attention. Compressed windows: the sums in float64, and PyTorch's automatic gradients. Attention to selected
blocks: the formula in float64, token by token."""

import numpy
import pytest

from tests.ascend.attention import attention, near
from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, refusal, rounded, tensor
from tests.conformance.ascend.aclnn_support import ffi, lib

HALF_UNIT = {"F16": 2.0**-11, "BF16": 2.0**-8}
CASES = [  # ends, heads, depth, length, stride
    ([112], 2, 16, 32, 16),
    ([48, 112, 120, 240], 3, 16, 32, 32),  # windows side by side; a sequence that has none
    ([0, 128, 272], 5, 48, 32, 16),  # an empty sequence
    ([70, 141, 141, 300], 1, 256, 64, 48),  # rows behind the last window, and between windows of two sequences
    ([400], 128, 32, 128, 112),
]


def first_rows(ends, length, stride):
    begins = [0, *ends[:-1]]
    return [row for begin, end in zip(begins, ends) for row in range(begin, end - length + 1, stride)]


def compressed(library, x, weight, first):
    """By numpy or torch."""
    return library.stack([(weight[:, :, None] * x[row : row + len(weight)]).sum(0) for row in first])


def close(actual, expected, kind, terms, scale):
    """Rounded once from a sum of `terms` in float32, whose terms' sizes add up to `scale`."""
    error = numpy.abs(numpy.asarray(actual) - expected)
    allowed = HALF_UNIT[kind] * numpy.abs(expected) * (1 + 2**-10) + terms * 2.0**-24 * scale + 2.0**-25
    assert (error <= allowed).all(), error.max()


@pytest.mark.parametrize("ends, heads, depth, length, stride", CASES)
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_windows(kind, ends, heads, depth, length, stride):
    first = first_rows(ends, length, stride)
    for layout in LAYOUTS:
        x, weight = drawn((ends[-1], heads, depth), 1, kind), drawn((length, heads), 2, kind)
        y = call("NsaCompress", input=tensor(x, kind, layout), weight=tensor(weight, kind, layout), actSeqLenOptional=ends,
                 layoutOptional="TND", compressBlockSize=length, compressStride=stride, actSeqLenType=0,
                 output=empty((len(first), heads, depth), kind, layout))  # fmt: skip
        scale = compressed(numpy, abs(x), abs(weight), first)
        close(y, compressed(numpy, x, weight, first), kind, length, scale)


@pytest.mark.parametrize("ends, heads, depth, length, stride", [case for case in CASES if case[3] > case[4]])
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_gradients(kind, ends, heads, depth, length, stride):
    torch = pytest.importorskip("torch")
    first = first_rows(ends, length, stride)

    def gradients(x, weight, slopes):
        x, weight = (torch.tensor(values, requires_grad=True) for values in (x, weight))
        return [slope.numpy()
                for slope in torch.autograd.grad(compressed(torch, x, weight, first), (x, weight),
                                                 torch.tensor(slopes))]  # fmt: skip

    for layout in LAYOUTS:
        given = [drawn((ends[-1], heads, depth), 3, kind), drawn((length, heads), 4, kind),
                 drawn((len(first), heads, depth), 5, kind)]  # fmt: skip
        x, weight, slopes = (tensor(values, kind, layout) for values in given)
        own = call("NsaCompressGrad", outputGrad=slopes, input=x, weight=weight, actSeqLenOptionalOptional=ends,
                   compressBlockSize=length, compressStride=stride, actSeqLenType=0, layoutOptionalOptional="TND",
                   inputGradOut=empty(given[0].shape, kind, layout),
                   weightGradOut=empty(given[1].shape, kind, layout))  # fmt: skip
        for actual, expected, scale, terms in zip(own, gradients(*given), gradients(*map(numpy.abs, given)),
                                                  (length, depth)):  # fmt: skip
            close(actual, expected, kind, terms, scale)


def test_layout_may_be_left_out():
    x, weight = drawn((32, 1, 16), 6, "F16"), drawn((16, 1), 7, "F16")
    for layout in (None, "TND"):
        y = call("NsaCompress", input=tensor(x, "F16"), weight=tensor(weight, "F16"), actSeqLenOptional=[32],
                 layoutOptional=layout, compressBlockSize=16, compressStride=16, actSeqLenType=0,
                 output=empty((2, 1, 16), "F16"))  # fmt: skip
        terms = (weight * x[:, 0].reshape(2, 16, 16))[:, None]
        close(y, terms.sum(2), "F16", 16, abs(terms).sum(2))


def cached(kind, x, weight, slots, lengths, pages, cache, stride, layout):
    return call("NsaCompressWithCache", input=tensor(x, kind, layout), weight=tensor(weight, kind, layout),
                slotMapping=tensor(slots, "I32"), actSeqLenOptional=lengths,
                blockTableOptional=None if pages is None else tensor(pages, "I32", layout),
                layoutOptional="TND" if pages is None else None, compressBlockSize=len(weight), compressStride=stride,
                actSeqLenType=1, pageBlockSize=64, outputCache=cache)  # fmt: skip


# A window within a page, over two pages, the first of a sequence, the last that there is room for; too short; between two.
LENGTHS = [64, 80, 32, 192, 31, 0, 100]


@pytest.mark.parametrize("paged", [True, False])
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_cached_windows(kind, paged):
    length, stride, heads, depth = 32, 16, 3, 48
    weight, old = drawn((length, heads), 8, kind), drawn((90, heads, depth), 9, kind)
    pages = numpy.random.default_rng(10).permutation(len(LENGTHS) * 3).reshape(-1, 3)  # of 21 pages
    slots = [5, 89, 0, 7, -1, 5, 1 << 30]  # those of the last three are not looked at
    stored = drawn((21, 64, heads, depth), 11, kind)
    whole = [stored[row].reshape(-1, heads, depth)[:count] for row, count in zip(pages, LENGTHS)]
    expected, scale = old.copy(), numpy.zeros_like(old)
    for rows, slot in list(zip(whole, slots))[:4]:
        expected[slot] = (weight[:, :, None] * rows[-length:]).sum(0)
        scale[slot] = numpy.abs(weight[:, :, None] * rows[-length:]).sum(0)
    for layout in LAYOUTS:
        x = stored if paged else numpy.concatenate(whole)
        own = cached(kind, x, weight, slots, LENGTHS, pages if paged else None, tensor(old, kind), stride, layout)
        close(own, expected, kind, length, scale)
        others = [row for row in range(len(old)) if row not in slots[:4]]
        numpy.testing.assert_array_equal(numpy.asarray(own)[others], old[others])


@pytest.mark.parametrize("slots, pages, said", [
    ([11, 0], [[0, 1], [2, 0]], "slot 11 of sequence 0"), ([0, -1], [[0, 1], [2, 0]], "slot -1 of sequence 1"),
    ([1, 0], [[0, 3], [2, 0]], "page 1 of sequence 0 is number 3 of 3"),
    ([1, 0], [[0, 1], [-1, 0]], "page 0 of sequence 1 is number -1 of 3")])  # fmt: skip
def test_places_that_are_not_there(slots, pages, said):
    x, weight = drawn((3, 64, 2, 16), 12, "F16"), drawn((32, 2), 13, "F16")
    lengths = ffi.new("int64_t[]", [80, 64])
    ends = lib.aclCreateIntArray(lengths, 2)
    sentence = fault("NsaCompressWithCache", tensor(x, "F16"), tensor(weight, "F16"), tensor(slots, "I32"), ends,
                     tensor(pages, "I32"), ffi.NULL, 32, 16, 1, 64, empty((11, 2, 16), "F16"))  # fmt: skip
    assert lib.aclDestroyIntArray(ends) == 0
    assert said in sentence


# ---- selected attention ----------------------------------------------------------------------------------------------------


def selected(q, k, v, dy, blocks, ends, key_ends, block, scale, keeps):
    """Token by token, and head by head of the keys: attention to the keys that it selects. Their gradients add up."""
    group = q.shape[1] // k.shape[1]
    y, largest, sums = numpy.zeros_like(dy), numpy.zeros(q.shape[:2]), numpy.zeros(q.shape[:2])
    dq, dk, dv = map(numpy.zeros_like, (q, k, v))
    for begin, end, first in zip([0, *ends], ends, [0, *key_ends]):
        for row in range(begin, end):
            for head in range(k.shape[1]):
                own = slice(head * group, head * group + group)
                places = (blocks[row, head][:, None] * block + numpy.arange(block)).ravel()
                at = first + places, head
                found = attention(q[None, row, own, None], k[at][None, None], v[at][None, None],
                                  dy[None, row, own, None], scale, 0, keeps(row - begin, places), 1)  # fmt: skip
                for into, values in zip((y, largest, sums, dq), found):
                    into[row, own] = values[0, :, 0]
                numpy.add.at(dk, at, found[4][0, 0])
                numpy.add.at(dv, at, found[5][0, 0])
    return y, largest, sums, dq, dk, dv


SELECTED = [  # ends of rows and keys, heads, heads of the keys, keys of a block, blocks of a token, sparse mode (None: no mask)
    ([2, 5], [32, 80], 4, 2, 16, 2, None),
    ([2, 5], [32, 80], 4, 2, 16, 2, 0),
    ([40], [64], 3, 1, 16, 3, 2),
    ([0, 9], [32, 160], 32, 1, 32, 1, None),  # a sequence without rows
    ([12], [1024], 8, 4, 64, 8, 0),
]


@pytest.mark.parametrize("ends, key_ends, heads, key_heads, block, count, mode", SELECTED)
@pytest.mark.parametrize("kind, layout", [*zip(["F16", "BF16", "BF16"], LAYOUTS)])
def test_selected_attention(kind, layout, ends, key_ends, heads, key_heads, block, count, mode):
    random, scale = numpy.random.default_rng(14), 0.05
    q, k = drawn((ends[-1], heads, 192), 15, kind), drawn((key_ends[-1], key_heads, 192), 16, kind)
    v, dy = drawn((key_ends[-1], key_heads, 128), 17, kind), drawn((ends[-1], heads, 128), 18, kind)
    longest, most_keys = (max(numpy.diff([0, *all_ends])) for all_ends in (ends, key_ends))
    blocks = numpy.concatenate([random.integers(0, (last - first) // block,
                                                (end - begin, key_heads, count)) for begin, end, first, last in
                                zip([0, *ends], ends, [0, *key_ends], key_ends)])  # fmt: skip
    mask = random.random((longest, most_keys)) < 0.4
    mask[0] = True  # a row without keys
    keeps = {None: lambda row, places: places >= 0, 0: lambda row, places: ~mask[row, places],
             2: lambda row, places: places <= row}[mode]  # fmt: skip
    y, largest, sums, dq, dk, dv = selected(q, k, v, dy, blocks, ends, key_ends, block, scale, keeps)
    # The gradients take y as it is stored. What it was rounded by shifts the slopes of a row's scores, each by its weight: the
    # weighted keys are attention with the keys as values, what each key gets is the gradient of these.
    rounding = scale * (dy * (y - rounded(y, kind))).sum(-1, keepdims=True)
    keys, *_, of_keys = selected(q, k, k, rounding * q, blocks, ends, key_ends, block, scale, keeps)
    gradients = dq + rounding * keys, dk + of_keys, dv
    put = lambda values: tensor(values, kind, layout)
    given = {"query": put(q), "key": put(k), "value": put(v), "topkIndices": tensor(blocks, "I32", layout),
             "attenMaskOptional": {None: None, 0: tensor(mask, "B", layout), 2: empty((2048, 2048), "U8")}[mode],
             "scaleValue": scale,
             "actualSeqQLenOptional": ends, "actualSeqKvLenOptional": key_ends, "headNum": heads, "inputLayout": "TND",
             "sparseMode": mode or 0, "selectedBlockSize": block, "selectedBlockCount": count}  # fmt: skip
    statistic = (ends[-1], heads, 8)
    own_largest, own_sums, own_y = call("NsaSelectedAttention", softmaxMaxOut=empty(statistic, "F32", layout),
                                        attentionOut=empty(y.shape, kind, layout),
                                        softmaxSumOut=empty(statistic, "F32", layout), **given)  # fmt: skip
    # A score is a sum of 192 terms whose sizes add up to less than 12.
    near(own_largest, numpy.repeat(largest[..., None], 8, -1), "F32", 192 * 12)
    near(own_sums, numpy.repeat(sums[..., None], 8, -1), "F32", 192 * 12)
    near(own_y, y, kind)
    for wanted in (kind, "F32"):
        own = call("NsaSelectedAttentionGrad", attentionOut=put(y), attentionOutGrad=put(dy),
                   softmaxMax=tensor(own_largest, "F32", layout), softmaxSum=tensor(own_sums, "F32", layout), **given,
                   **{name: empty(values.shape, wanted,
                                  layout) for name, values in zip(("dqOut", "dkOut", "dvOut"), (q, k, v))})  # fmt: skip
        for actual, expected in zip(own, gradients):
            near(actual, expected, wanted, 192 * 12)


@pytest.mark.parametrize("number", [-1, 2])
def test_blocks_that_are_not_there(number):
    """The first sequence has two blocks."""
    q, k, v = drawn((5, 4, 192), 19, "F16"), drawn((80, 2, 192), 20, "F16"), drawn((80, 2, 128), 21, "F16")
    blocks = numpy.zeros((5, 2, 2), int)
    blocks[1, 1, 0] = number
    ends, key_ends = (lib.aclCreateIntArray(ffi.new("int64_t[]", values), 2) for values in ([2, 5], [32, 80]))
    sentence = fault("NsaSelectedAttention", *(tensor(values, "F16") for values in (q, k, v)), tensor(blocks, "I32"),
                     None, ends, key_ends, 0.1, 4, ffi.new("char[]", b"TND"), 0, 16, 2, empty((5, 4, 8)),
                     empty((5, 4, 8)), empty((5, 4, 128), "F16"))  # fmt: skip
    assert lib.aclDestroyIntArray(ends) == lib.aclDestroyIntArray(key_ends) == 0
    assert f"row 1 selects block {number} of a sequence of 2" in sentence


PAGED = [  # tokens and keys of the sequences, heads, those of keys, keys of a block, blocks of a token, rows of a page, layout
    ([1, 1, 1], [70, 128, 1], 4, 2, 64, 2, 64, "BSND"),
    ([1, 1], [48, 16], 3, 3, 16, 3, 128, None),
    ([1, 1, 1], [40, 0, 17], 2, 1, 32, 2, 64, "TND"),  # a sequence without keys
    ([3, 4], [200, 131], 16, 1, 48, 3, 128, "BSND"),
    ([4, 1, 2], [150, 1, 64], 8, 2, 32, 4, 64, "TND"),
    ([2, 2], [129, 256], 2, 1, 128, 2, 128, "BSH"),
]


@pytest.mark.parametrize("rows, lengths, heads, key_heads, block, count, page, layout", PAGED)
@pytest.mark.parametrize("kind, lies", [*zip(["F16", "BF16", "BF16"], LAYOUTS)])
def test_selected_attention_in_pages(kind, lies, rows, lengths, heads, key_heads, block, count, page, layout):
    random, scale, group = numpy.random.default_rng(22), 0.05, heads // key_heads
    flat, most, pages_of_each = layout == "TND", max(rows), -(-max(lengths) // page)
    shape = (sum(rows),) if flat else (len(rows), most)
    q = drawn((*shape, heads, 192), 23, kind)
    k, v = (drawn((9, page, key_heads, depth), seed, kind) for depth, seed in ((192, 24), (128, 25)))
    pages = numpy.stack([random.permutation(9)[:pages_of_each] for _ in rows])
    blocks = numpy.full((*shape, key_heads, count), -1)
    y = numpy.zeros((*shape, heads, 128))
    for s, (tokens, length) in enumerate(zip(rows, lengths)):
        pages[s, -(-length // page) :] = 1 << 30  # not needed
        first = sum(rows[:s])
        for token in range(tokens):
            at = first + token if flat else (s, token)
            for head in range(key_heads):
                there = -(-length // block)
                numbers = random.permutation(there)[: random.integers(0 if token else min(1, there), min(there, count) + 1)]
                blocks[at][head, random.permutation(count)[: len(numbers)]] = numbers
                places = numpy.concatenate([[], *(numpy.arange(n * block, min(length, n * block + block)) for n in numbers)])
                places = places.astype(int)
                if len(places):
                    where = pages[s, places // page], places % page, head
                    scores = scale * q[at][head * group : (head + 1) * group] @ k[where].T
                    weights = numpy.exp(scores - scores.max(-1, keepdims=True))
                    y[at][head * group : (head + 1) * group] = weights / weights.sum(-1, keepdims=True) @ v[where]
    if not flat and min(rows) < most:  # what is behind the tokens is not read
        blocks[numpy.argmin(rows), min(rows) :] = 1 << 30
    joined = lambda values: values.reshape(*values.shape[:2], -1) if layout == "BSH" else values
    for given in ([rows] if max(rows) > 1 and (flat or min(rows) < most) else [rows, None, []]):
        numbers = blocks[:, 0] if not flat and most == 1 and not given else blocks  # the axis may be left out
        for keys in ((k, v), (k.reshape(9, page, -1), v.reshape(9, page, -1))):
            own = call("NsaSelectedAttentionInfer", query=tensor(joined(q), kind, lies), key=tensor(keys[0], kind, lies),
                       value=tensor(keys[1], kind, lies), topkIndices=tensor(numbers, "I32", lies), attenMaskOptional=None,
                       blockTableOptional=tensor(pages, "I32", lies), actualQSeqLenOptional=given,
                       actualKvSeqLenOptional=lengths, layoutOptional=layout, numHeads=heads, numKeyValueHeads=key_heads,
                       selectBlockSize=block, selectBlockCount=count, pageBlockSize=page, scaleValue=scale, sparseMode=0,
                       output=empty(joined(y).shape, kind, lies))  # fmt: skip
            near(own, joined(y), kind)


@pytest.mark.parametrize("rows, lengths, expected", [
    ([2, 1], [2, 1], 0), ([2, 1], [1, 1], 161002), ([2, 1], [2, 0], 161002), ([1, 1], [1, 0], 0)])  # fmt: skip
def test_tokens_and_keys(rows, lengths, expected):
    """Where a sequence has several tokens, all have as many keys."""
    given = [lib.aclCreateIntArray(ffi.new("int64_t[]", numbers), 2) for numbers in (rows, lengths)]
    tokens = sum(rows)
    status, rule = refusal("NsaSelectedAttentionInfer", empty((tokens, 1, 192), "F16"), empty((3, 64, 1, 192), "F16"),
                           empty((3, 64, 1, 128), "F16"), empty((tokens, 1, 1), "I32"), None, empty((2, 1), "I32"), *given,
                           b"TND", 1, 1, 64, 1, 64, 0.1, 0, empty((tokens, 1, 128), "F16"))  # fmt: skip
    assert [lib.aclDestroyIntArray(each) for each in given] == [0, 0]
    assert status == expected and (status == 0 or rule == "aclnnNsaSelectedAttentionInfer/actualQSeqLenOptional/values")


@pytest.mark.parametrize("number, page, said", [
    (-2, 0, "row 0 selects block -2 of a sequence of 2"), (2, 0, "row 0 selects block 2"),
    (1, 3, "key 64 of sequence 0 is on page 3 of 3"), (1, -1, "on page -1 of 3")])  # fmt: skip
def test_blocks_and_pages_that_are_not_there(number, page, said):
    q, k, v = drawn((1, 1, 1, 192), 26, "F16"), drawn((3, 64, 1, 192), 27, "F16"), drawn((3, 64, 1, 128), 28, "F16")
    lengths = lib.aclCreateIntArray(ffi.new("int64_t[]", [65]), 1)
    out = tensor(numpy.ones((1, 1, 1, 128)), "F16")
    sentence = fault("NsaSelectedAttentionInfer", *(tensor(values, "F16") for values in (q, k, v)),
                     tensor([[[[0, number]]]], "I32"), None, tensor([[2, page]], "I32"), None, lengths,
                     ffi.new("char[]", b"BSND"), 1, 1, 64, 2, 64, 0.1, 0, out)  # fmt: skip
    assert lib.aclDestroyIntArray(lengths) == 0
    assert said in sentence
    assert (out.values() == 1).all()


# ---- compressed attention ----------------------------------------------------------------------------------------------------


def weights_of_blocks(p, step, width, blocks):
    """Along the last axis, term by term."""
    padded = numpy.concatenate([p, numpy.zeros((*p.shape[:-1], step * blocks))], -1)
    terms = lambda j: [padded[..., step * j - m - n] for m in range(step) for n in range(width) if step * j - m - n >= 0]
    return numpy.stack([sum(terms(j)) for j in range(blocks)], -1)


COMPRESSED = [  # ends of rows and keys, heads, heads of the keys, depths, window, stride, block, count, masks
    ([2, 5], [5, 12], 4, 2, 32, 16, 32, 16, 64, 2, False),
    ([2, 5], [5, 12], 4, 2, 32, 16, 32, 16, 64, 2, True),
    ([0, 140, 300], [1, 40, 100], 8, 1, 64, 48, 16, 16, 16, 1, True),  # more rows than a tile has, a block of one window
    ([9], [70], 3, 3, 192, 128, 48, 32, 64, 32, True),  # a window that is no multiple of its stride
    ([7, 7], [33, 80], 64, 1, 16, 16, 128, 16, 128, 5, False),
]


@pytest.mark.parametrize("ends, key_ends, heads, key_heads, depth, value_depth, window, stride, block, count, masked", COMPRESSED)
@pytest.mark.parametrize("kind, layout", [*zip(["F16", "BF16", "BF16"], LAYOUTS)])
def test_compressed_attention(kind, layout, ends, key_ends, heads, key_heads, depth, value_depth, window, stride, block, count,
                              masked):  # fmt: skip
    random, scale, step, width = numpy.random.default_rng(20), 0.3, block // stride, window // stride
    q, k = drawn((ends[-1], heads, depth), 21, kind), drawn((key_ends[-1], key_heads, depth), 22, kind)
    v = drawn((key_ends[-1], key_heads, value_depth), 23, kind)
    rows, keys = (numpy.diff([0, *each]) for each in (ends, key_ends))
    blocks = -(-keys // step)
    mask, block_mask = random.random((max(rows), max(keys))) < 0.4, random.random((max(rows), max(blocks))) < 0.3
    mask[0] = True  # a row without keys
    block_mask[1] = True
    own_largest, own_sums, own_y, own_blocks = call(
        "NsaCompressAttention", query=tensor(q, kind, layout), key=tensor(k, kind, layout), value=tensor(v, kind, layout),
        attenMaskOptional=tensor(mask, "B", layout) if masked else None,
        topkMaskOptional=tensor(block_mask, "U8", layout) if masked else None, actualSeqQLenOptional=ends,
        actualCmpSeqKvLenOptional=key_ends, actualSelSeqKvLenOptional=numpy.cumsum(blocks).tolist(), scaleValue=scale,
        headNum=heads, inputLayout="TND", sparseMode=int(masked), compressBlockSize=window, compressStride=stride,
        selectBlockSize=block, selectBlockCount=count, softmaxMaxOut=empty((ends[-1], heads, 8), "F32", layout),
        softmaxSumOut=empty((ends[-1], heads, 8), "F32", layout),
        attentionOutOut=empty((ends[-1], heads, value_depth), kind, layout),
        topkIndicesOut=empty((ends[-1], key_heads, count), "I32", layout))  # fmt: skip
    for row, end, key, key_end, many in zip([0, *ends], ends, [0, *key_ends], key_ends, blocks):
        places = slice(row, end), slice(key, key_end)
        keeps = ~mask[: end - row, : key_end - key] if masked else True
        of_heads = lambda x, at: x[at].swapaxes(0, 1)[None]
        given = of_heads(q, places[0]), of_heads(k, places[1]), of_heads(v, places[1])
        y, largest, sums, *_ = attention(*given, numpy.zeros((1, heads, end - row, value_depth)), scale, 0, keeps, 1)
        terms = depth * scale * 12
        near(own_largest[places[0]], numpy.repeat(largest[0].T[..., None], 8, -1), "F32", terms)
        near(own_sums[places[0]], numpy.repeat(sums[0].T[..., None], 8, -1), "F32", terms)
        near(own_y[places[0]], y[0].swapaxes(0, 1), kind, terms)
        scores = numpy.where(keeps, scale * given[0][0] @ numpy.repeat(given[1][0], heads // key_heads, 0).swapaxes(1, 2), -numpy.inf)
        powers = numpy.exp(scores - numpy.where(numpy.isinf(largest[0]), 0, largest[0])[..., None])
        p = (powers / numpy.where(sums[0] == 0, 1, sums[0])[..., None]).reshape(key_heads, heads // key_heads, *scores.shape[1:]).sum(1)
        heavy = weights_of_blocks(p, step, width, many)  # [head of the keys, row, block]
        if masked:
            heavy = numpy.where(block_mask[: end - row, :many], -numpy.inf, heavy)
        # A score is off by `terms` half units of 1 at most, a weight by twice that of itself; a block has each `width` times.
        check_heaviest(own_blocks[places[0]].swapaxes(0, 1), heavy, count, heads // key_heads * width * 2 * terms * 2.0**-24)


def check_heaviest(own, heavy, count, slack):
    """`own` are different blocks, in descending order, and none of the others is heavier: as far as float32 can tell. Where
    nothing weighs anything they come in order."""
    found = numpy.take_along_axis(heavy, own.astype(int), -1)
    assert (numpy.sort(own, -1)[..., 1:] > numpy.sort(own, -1)[..., :-1]).all()
    assert (found[..., 1:] <= found[..., :-1] + slack).all()
    best = -numpy.sort(-heavy, -1)[..., :count]
    numpy.testing.assert_allclose(found, best, rtol=0, atol=slack)
    nothing = (heavy == 0) | (heavy == -numpy.inf)
    expected = numpy.argsort(-heavy, -1, kind="stable")[..., :count]
    exact = nothing.all(-1)
    numpy.testing.assert_array_equal(own[exact], expected[exact])
