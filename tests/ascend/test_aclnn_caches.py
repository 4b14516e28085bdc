"""Paged caches of keys and values: what NumPy's indexing puts and takes, token by token."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, fault, refusal, rounded, tensor, whole
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor, ffi, row_major

KINDS = ["F16", "BF16", "I8"]
PAGES, ROWS, HEADS = 7, 5, 3


def numbers(shape, seed, kind):
    return whole(shape, seed) if kind == "I8" else drawn(shape, seed, kind)


def blocks_of(cache, kind, five=False):
    """[page, row, head, depth] as [page, head * depth / c, row, c], or with the heads apart."""
    c = 32 if kind == "I8" else 16
    page, row, head, depth = cache.shape
    parts = cache.reshape(page, row, head, depth // c, c).transpose(0, 2, 3, 1, 4)
    return parts if five else parts.reshape(page, head * depth // c, row, c)


def put(key, value, caches, slots, kinds, layout="row-major", index="I32", cache="Norm", scatter="None", **more):
    optional = {name: None if more.get(name) is None else tensor(more[name], index, layout)
                for name in ("compressLensOptional", "compressSeqOffsetOptional", "seqLensOptional")}  # fmt: skip
    return call("ScatterPaKvCache", key=tensor(key, kinds[0], layout), keyCacheRef=tensor(caches[0], kinds[0], layout),
                slotMapping=tensor(slots, index, layout), value=tensor(value, kinds[1], layout),
                valueCacheRef=tensor(caches[1], kinds[1], layout), cacheModeOptional=cache, scatterModeOptional=scatter,
                stridesOptional=None, offsetsOptional=None, **optional)  # fmt: skip


def after(cache, tokens, slots):
    """[page, row, head, depth]; one after another, those of slot -1 left out."""
    cache = cache.copy()
    for token, slot in zip(tokens, slots):
        if slot != -1:
            cache[slot // cache.shape[1], slot % cache.shape[1]] = token
    return cache


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", ["I32", "I64"])
def test_a_slot_for_each_token(kind, index):
    tokens, slots = 9, [34, 0, 17, -1, 4, 5, 17, 30, -1]  # 17 twice
    key, value = numbers((tokens, HEADS, 64), 1, kind), numbers((tokens, HEADS, 32), 2, kind)
    caches = numbers((PAGES, ROWS, HEADS, 64), 3, kind), numbers((PAGES, ROWS, HEADS, 32), 4, kind)
    expected = [after(*of, slots) for of in zip(caches, (key, value))]
    for layout in LAYOUTS:
        for scatter in (None, "None"):
            for own, right in zip(put(key, value, caches, slots, (kind, kind), layout, index, None, scatter), expected):
                np.testing.assert_array_equal(own, right)
        heads = [cache.transpose(0, 2, 1, 3) for cache in caches]
        for own, right in zip(put(key, value, heads, slots, (kind, kind), layout, index, scatter="NHSD"), expected):
            np.testing.assert_array_equal(own, right.transpose(0, 2, 1, 3))
        for five in (False, True):
            blocks = [blocks_of(cache, kind, five) for cache in caches]
            for own, right in zip(put(key, value, blocks, slots, (kind, kind), layout, index, "PA_NZ"), expected):
                np.testing.assert_array_equal(own, blocks_of(right, kind, five))


def test_blocks_of_two_types():
    key, value, slots = numbers((4, 2, 32), 5, "I8"), numbers((4, 2, 32), 6, "BF16"), [3, 1, 8, 0]
    caches = numbers((2, 5, 2, 32), 7, "I8"), numbers((2, 5, 2, 32), 8, "BF16")
    own = put(key, value, [blocks_of(caches[0], "I8"), blocks_of(caches[1], "BF16", True)], slots, ("I8", "BF16"), cache="PA_NZ")
    np.testing.assert_array_equal(own[0], blocks_of(after(caches[0], key, slots), "I8"))
    np.testing.assert_array_equal(own[1], blocks_of(after(caches[1], value, slots), "BF16", True))


@pytest.mark.parametrize("scatter", ["None", "NHSD"])
def test_keys_without_values(scatter):
    key, slots, cache = numbers((3, 2, 16), 9, "F16"), [9, 2, 5], numbers((2, 5, 2, 16), 10, "F16")
    order = (0, 2, 1, 3) if scatter == "NHSD" else (0, 1, 2, 3)
    own = put(key, np.float64(3), (cache.transpose(order), np.float64(4)), slots, ("F16", "F16"), scatter=scatter)
    np.testing.assert_array_equal(own[0], after(cache, key, slots).transpose(order))
    assert own[1] == 4


def test_tokens_that_lie_apart():
    """Nct: both are parts of one storage, whose tokens have more than these."""
    stored = drawn((4, 100), 11, "F16")
    flat = stored.ravel()
    key, value = (np.stack([flat[begin + 100 * t :][: 2 * depth] for t in range(4)]).reshape(4, 2, depth)
                  for begin, depth in ((3, 16), (51, 8)))  # fmt: skip
    caches, slots = (drawn((2, 3, 2, 16), 12, "F16"), drawn((2, 3, 2, 8), 13, "F16")), [5, 0, 2, 3]
    kind = pages.KINDS["F16"]
    held = [Tensor(kind, kind.encode(flat), shape=(4, 2, depth), strides=row_major((4, 2, depth)), storage=[400], offset=offset)
            for depth, offset in ((16, 0), (8, 9))]  # fmt: skip
    own = call("ScatterPaKvCache", key=held[0], keyCacheRef=tensor(caches[0], "F16"), slotMapping=tensor(slots, "I32"),
               value=held[1], valueCacheRef=tensor(caches[1], "F16"), compressLensOptional=None,
               compressSeqOffsetOptional=None, seqLensOptional=None, cacheModeOptional="Norm", scatterModeOptional="Nct",
               stridesOptional=[100, 100], offsetsOptional=[3, 51])  # fmt: skip
    for found, cache, tokens in zip(own, caches, (key, value)):
        np.testing.assert_array_equal(found, after(cache, tokens, slots))


# ---- compressed sequences ------------------------------------------------------------------------------------------------

LENGTHS = [4, 0, 7]


def kept(tokens, count, begin=None):
    """The tokens of a head of a sequence, in float64."""
    if begin is None:
        return tokens[len(tokens) - count :]
    mean = [tokens[begin : begin + count].mean(0)] if count else []
    return np.stack([*tokens[:begin], *mean, *tokens[begin + count :]]) if len(tokens) else tokens


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["Alibi", "Rope"])
def test_compressed_sequences(kind, mode):
    rope = mode == "Rope"
    counts = [1, 4, 0, 0, 0, 0, 7, 3, 5] if not rope else [2, 0, 4, 0, 0, 0, 3, 7, 1]
    begins = [1, 4, 0, 0, 0, 0, 2, 0, 6]
    slots = [10 * entry for entry in range(9)]
    slots[2], slots[6] = 84, 93
    key, value = (numbers((11, HEADS, depth), seed, kind) for depth, seed in ((40, 14), (24, 15)))
    caches = [numbers((20, ROWS, 1, depth), seed, kind) for depth, seed in ((40, 16), (24, 17))]
    expected = [cache.copy() for cache in caches]
    for tokens, cache in zip((key, value), expected):
        flat = cache.reshape(-1, cache.shape[3])
        for entry in range(9):
            sequence, head = divmod(entry, HEADS)
            begin = sum(LENGTHS[:sequence])
            rows = kept(tokens[begin : begin + LENGTHS[sequence], head], counts[entry], begins[entry] if rope else None)
            flat[slots[entry] : slots[entry] + len(rows)] = np.trunc(rows) if kind == "I8" else rounded(rows, kind)
    more = {"compressLensOptional": counts, "seqLensOptional": LENGTHS, "compressSeqOffsetOptional": begins if rope else None}
    for layout in LAYOUTS:
        for index, scatter in (("I32", mode), ("I64", mode), ("I32", "None")):
            own = put(key, value, caches, slots, (kind, kind), layout, index, scatter=scatter, **more)
            for found, right in zip(own, expected):
                np.testing.assert_array_equal(found, right)


# ---- what is not there ----------------------------------------------------------------------------------------------------


def put_fault(slots, counts=None, begins=None, lengths=None):
    null = lambda values: None if values is None else tensor(values, "I32")
    heads = 2 if counts is None else 1
    caches = [tensor(np.zeros((2, 5, heads, 16)), "F16") for _ in range(2)]
    key = tensor(np.ones((3, 2, 16)), "F16")
    said = fault("ScatterPaKvCache", key, caches[0], tensor(slots, "I32"), key, caches[1], null(counts), null(begins),
                 null(lengths), None, None, None, None)  # fmt: skip
    assert not any(cache.values().any() for cache in caches)
    return said


@pytest.mark.parametrize("slot", [10, -2, 2**31 - 1, -(2**31)])
def test_slots_that_are_not_there(slot):
    assert f"slot {slot} of token 1 is outside a cache of 2 pages of 5 rows" in put_fault([0, slot, 1])


@pytest.mark.parametrize("slots, counts, begins, lengths, said", [
    ([0, 8], [1, 3], None, [3], "slot 8 of entry 1"), ([0, 2**31 - 1], [1, 3], None, [3], "of entry 1 is outside"),
    ([0, -1], [1, 1], None, [3], "slot -1 of entry 1"), ([0, 3], [1, 4], None, [3], "entry 1 compresses 4 tokens"),
    ([0, 3], [-1, 1], None, [3], "entry 0 compresses -1 tokens"), ([0, 3], [1, 1], None, [2], "sequences have 2 tokens"),
    ([0, 3], [1, 1], None, [4], "sequence 0 has 4 tokens: there are 3"), ([0, 3], [1, 1], None, [-1], "sequence 0 has -1"),
    ([0, 3], [1, 1], [0, 3], [3], "entry 1 compresses 1 tokens from 3 on"), ([0, 3], [1, 1], [-1, 0], [3], "from -1 on"),
    ([0, 3], [0, 0], [4, 0], [3], "from 4 on"), ([0, 9], [1, 2], [0, 0], [3], "slot 9 of entry 1")])  # fmt: skip
def test_compressed_sequences_that_do_not_fit(slots, counts, begins, lengths, said):
    assert said in put_fault(slots, counts, begins, lengths)


def test_omni_is_refused():
    key, cache = tensor(np.ones((3, 2, 16)), "F16"), tensor(np.ones((2, 5, 2, 16)), "F16")
    told = refusal("ScatterPaKvCache", key, cache, tensor([0, 1, 2], "I32"), key, cache, None, None, None, b"Norm", b"Omni",
                   None, None)  # fmt: skip
    assert told == (161002, "aclnnScatterPaKvCache/scatterModeOptional/value")


# ---- tokens from pages ------------------------------------------------------------------------------------------------------


def take(caches, tables, lengths, rest, kinds, layout="row-major", offsets=None, mode="Norm", ends=False):
    return call("GatherPaKvCache", keyCache=tensor(caches[0], kinds[0], layout), valueCache=tensor(caches[1], kinds[1], layout),
                blockTables=tensor(tables, "I32", layout), seqLens=tensor(lengths, "I32", layout),
                keyRef=tensor(rest[0], kinds[0], layout), valueRef=tensor(rest[1], kinds[1], layout),
                seqOffsetOptional=None if offsets is None else tensor(offsets, "I32", layout), cacheMode=mode,
                isSeqLensCumsum=ends)  # fmt: skip


@pytest.mark.parametrize("kinds", [("F16", "F16"), ("BF16", "BF16"), ("I8", "I8"), ("I8", "F16")])
@pytest.mark.parametrize("offset", [False, True])
def test_tokens_from_pages(kinds, offset):
    lengths, room = [4, 0, 11, 5, 1], 24  # 21, and 3 that stay
    offsets = [4, 3, 5, 14, 15] if offset else None
    tables = np.random.default_rng(18).integers(0, PAGES, (5, 6))
    caches = [numbers((PAGES, ROWS, 2, depth), seed, kind) for depth, seed, kind in ((64, 19, kinds[0]), (32, 20, kinds[1]))]
    rest = [numbers((room, 2, depth), seed, kind) for depth, seed, kind in ((64, 21, kinds[0]), (32, 22, kinds[1]))]
    expected = []
    for cache, own in zip(caches, rest):
        rows = [cache[tables[b, (offsets[b] // ROWS if offset else 0) + i // ROWS], i % ROWS]
                for b, length in enumerate(lengths) for i in range(length)]  # fmt: skip
        expected.append(np.concatenate([rows, own[len(rows) :]]))
    used = tables.copy()
    used[1] = 1 << 30  # an empty sequence has no pages
    ends = [0, *np.cumsum(lengths)]
    for layout in LAYOUTS:
        for given, is_ends in ((lengths, False), (ends, True)):
            for own, right in zip(take(caches, used, given, rest, kinds, layout, offsets, ends=is_ends), expected):
                np.testing.assert_array_equal(own, right)
            blocks, flat = [blocks_of(*of) for of in zip(caches, kinds)], [own.reshape(room, -1) for own in rest]
            for own, right in zip(take(blocks, used, given, flat, kinds, layout, offsets, "PA_NZ", is_ends), expected):
                np.testing.assert_array_equal(own, right.reshape(room, -1))


@pytest.mark.parametrize("tables, lengths, offsets, ends, said", [
    ([[0, 2], [1, 1]], [5, 1], None, False, "page 1 of sequence 0 is number 2"),
    ([[0, 1], [-1, 1]], [5, 1], None, False, "number -1"),
    ([[0, 1], [1, 1]], [9, 0], None, False, "page 2 of sequence 0"), ([[0, 1], [1, 1]], [2, 9], None, False, "room for 10"),
    ([[0, 1], [1, 1]], [2, -1], None, False, "has -1 tokens"), ([[0, 1], [1, 1]], [2, 1], [0, 8], False, "page 2 of sequence 1"),
    ([[0, 1], [1, 1]], [2, 1], [0, -1], False, "-1 rows behind"), ([[0, 1], [1, 1]], [1, 2, 3], None, True, "from 1 on"),
    ([[0, 1], [1, 1]], [2, 1], [0, 2**31 - 1], False, "of sequence 1"), ([[0, 1], [1, 1]], [0, 3, 2], None, True, "has -1"),
    ([[0, 1], [1, 1]], [0, 2**31 - 1, -(2**31)], None, True, "sequence 0 has 2147483647")])  # fmt: skip
def test_pages_that_are_not_there(tables, lengths, offsets, ends, said):
    cache, key, value = tensor(np.ones((2, 4, 2, 16)), "F16"), *(tensor(np.zeros((10, 2, 16)), "F16") for _ in range(2))
    assert said in fault("GatherPaKvCache", cache, cache, tensor(tables, "I32"), tensor(lengths, "I32"), key, value,
                         None if offsets is None else tensor(offsets, "I32"), ffi.new("char[]", b"Norm"), ends)  # fmt: skip
    assert not key.values().any() and not value.values().any()


# ---- the next step's tokens -------------------------------------------------------------------------------------------------


def advance(seen, sampled, blocks, queries, size, layout="row-major"):
    return call("AdvanceStep", inputTokens=tensor(seen[0], "I64", layout), sampledTokenIds=tensor(sampled, "I64", layout),
                inputPositions=tensor(seen[1], "I64", layout), seqLens=tensor(seen[2], "I64", layout),
                slotMapping=tensor(seen[3], "I64", layout), blockTables=tensor(blocks, "I64", layout),
                numSeqs=len(blocks), numQueries=queries, blockSize=size)  # fmt: skip


@pytest.mark.parametrize("size", [1, 4, 5])
def test_a_step_of_decoding(size):
    draw = np.random.default_rng(30)
    sequences, queries, width = 9, 6, -(-21 // size)
    blocks, lengths = draw.permutation(sequences * width).reshape(sequences, width), draw.integers(0, 21, sequences)
    lengths[:2] = 0, 20
    sampled = draw.integers(0, 1 << 40, (queries, 1))
    before = [draw.integers(0, 99, sequences), draw.integers(0, 99, sequences), lengths, draw.integers(0, 99, sequences)]
    rows = np.arange(queries)
    at = lengths[:queries]
    for column in (False, True):
        seen = [each[:, None] if column else each for each in before]
        new = [sampled[:, 0], at, at + 1, blocks[rows, at // size] * size + at % size]
        for layout in LAYOUTS:
            for own, first, rest in zip(advance(seen, sampled, blocks, queries, size, layout), new, before):
                np.testing.assert_array_equal(own.ravel(), np.concatenate([first, rest[queries:]]))


@pytest.mark.parametrize("lengths, block, size", [
    ([1, 8, 0], 0, 4), ([1, -1, 0], 0, 4), ([1, 2**63 - 1, 0], 0, 4), ([1, 5, 0], -1, 4), ([1, 5, 0], 2**62, 4),
    ([0, -(2**63), 0], 0, 1), ([0, 2**62, 0], 3, 2**62), ([0, 2**63 - 1, 0], 0, 2**62)])  # fmt: skip
def test_a_step_without_a_block(lengths, block, size):
    seen = [tensor(values, "I64") for values in ([7, 7, 7], [8, 8, 8], lengths, [9, 9, 9])]
    said = fault("AdvanceStep", seen[0], tensor([[1], [2]], "I64"), *seen[1:], tensor([[0, 1], [0, block], [0, 1]], "I64"),
                 3, 2, size)  # fmt: skip
    assert f"sequence 1 has {lengths[1]} tokens, and no block" in said
    assert [list(each.values()) for each in seen] == [[7, 7, 7], [8, 8, 8], lengths, [9, 9, 9]]


def guess(seen, sampled, blocks, guesses, accepted, size, layout="row-major"):
    put = lambda values: tensor(values, "I64", layout)
    return call("AdvanceStepV2", inputTokens=put(seen[0]), sampledTokenIds=put(sampled), inputPositions=put(seen[1]),
                seqLens=put(seen[2]), slotMapping=put(seen[3]), blockTables=put(blocks), specToken=put(guesses),
                acceptedNum=put(accepted), numSeqs=len(blocks), numQueries=len(blocks), blockSize=size)  # fmt: skip


@pytest.mark.parametrize("guesses", [1, 3])
@pytest.mark.parametrize("size", [1, 4, 5])
def test_a_step_of_guessed_tokens(size, guesses):
    draw = np.random.default_rng(31)
    sequences, width = 7, -(-30 // size)
    blocks, accepted = draw.permutation(sequences * width).reshape(sequences, width), draw.integers(0, guesses + 1, sequences)
    accepted[:2] = 0, guesses
    sampled = draw.integers(0, 1 << 40, (sequences, 1 + guesses))
    last = sampled[np.arange(sequences), accepted]
    sampled[np.arange(1 + guesses) > accepted[:, None]] = -1
    spec = draw.integers(0, 1 << 40, (sequences, guesses))
    before = [draw.integers(0, 25, (sequences, 1 + guesses)) for _ in range(4)]
    at = before[1] + 1 + accepted[:, None]
    new = [np.concatenate([last[:, None], spec], 1), at, at + 1,
           np.take_along_axis(blocks, at // size, 1) * size + at % size]  # fmt: skip
    for flat in (False, True):
        for layout in LAYOUTS:
            seen = [each.ravel() if flat else each for each in before]
            for own, right in zip(guess(seen, sampled, blocks, spec, accepted, size, layout), new):
                np.testing.assert_array_equal(own, right.ravel() if flat else right)


@pytest.mark.parametrize("position, accepted, block, sampled, said", [
    (6, 1, 0, 5, "token 1 of sequence 1, at 6 with 1 accepted"), (1, -3, 0, 5, "gets no block"), (2**63 - 1, 0, 0, 5, "gets no block"),
    (5, 2**63 - 1, 0, 5, "gets no block"), (5, 0, -1, 5, "gets no block"), (5, 0, 2**62, 5, "gets no block"),
    (5, 0, 0, -1, "sequence 1 has no sampled token"), (2**63 - 2, 0, 0, 5, "gets no block")])  # fmt: skip
def test_guessed_tokens_without_a_place(position, accepted, block, sampled, said):
    before = [[7, 7, 7, 7], [2, 3, 2, position], [8, 8, 8, 8], [9, 9, 9, 9]]
    seen = [tensor(values, "I64") for values in before]
    assert said in fault("AdvanceStepV2", seen[0], tensor([[1, -1], [sampled, -1]], "I64"), *seen[1:],
                         tensor([[0, 1], [0, block]], "I64"), tensor([[3], [4]], "I64"), tensor([0, accepted], "I64"),
                         2, 2, 4)  # fmt: skip
    assert [list(each.values()) for each in seen] == before
