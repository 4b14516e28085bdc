"""Heads of new tokens, normalized, turned and written to caches: the pages' formulas in float64, token by token."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, random, refusal, steps_apart, tensor, whole
from tests.conformance.ascend.aclnn_support import F16, blank, ffi

HALF_UNIT = {"F16": 2.0**-11, "BF16": 2.0**-8}
EPSILON = 1e-5


def close(actual, expected, kind):
    """Rounded once from float32, in which a number comes from some products; where the expected one is NaN, anything."""
    seen = ~np.isnan(expected)
    bound = HALF_UNIT[kind] * np.abs(expected) * (1 + 2**-8) + 2.0**-18
    assert (np.abs(actual - expected) <= bound)[seen].all(), np.nanmax(np.abs(actual - expected) - bound)


def normalized(x, gamma):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON) * gamma


def turned(x, cos, sin, halves=False):
    """The even and odd places become halves, or they are halves."""
    a, b = np.split(x, 2, -1) if halves else (x[..., ::2], x[..., 1::2])
    return np.concatenate([a, b], -1) * cos + np.concatenate([-b, a], -1) * sin


def check_cache(actual, cache, rows, kind, scale=None, offset=0):
    """What is in `rows`, by its place in the cache, and all others as before."""
    rest = np.ones(cache.shape[:2], bool)
    for place, row in rows.items():
        rest[place] = False
        if scale is None:
            close(actual[place], row, kind)
        else:
            steps_apart(actual[place], np.clip(row * scale + offset, -128, 127))
    np.testing.assert_array_equal(actual[rest], cache[rest])


# ---- aclnnKvRmsNormRopeCache ------------------------------------------------------------------------------------------------

B, S = 2, 19
MODES = ["Norm", "PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"]


def places(mode, pages, rows, seed):
    """The index, and where token s of sequence b goes: page and row, or None."""
    drawn_places = random(seed)
    if mode == "Norm":
        index = np.stack([drawn_places.permutation(rows)[:S] for _ in range(B)])
        index[0, 3], index[1, 7], index[1, 12] = -1, -1, index[1, 2]  # the later token stays
        where = lambda b, s: (b, index[b, s])
    elif mode.startswith("PA_BLK"):
        blocks = -(-S // rows)
        index = drawn_places.permutation(pages)[: B * blocks] * rows
        index[1] = -1
        where = lambda b, s: (index[b * blocks + s // rows] // rows, -1 if index[b * blocks + s // rows] < 0 else s % rows)
    else:
        index = drawn_places.permutation(pages * rows)[: B * S]
        index[5], index[30], index[17] = -1, -1, index[2]
        where = lambda b, s: divmod(index[b * S + s], rows) if index[b * S + s] >= 0 else (0, -1)
    return index, {(b, s): tuple(map(int, where(b, s))) for b in range(B) for s in range(S) if where(b, s)[1] >= 0}


def stored(cache, mode, kind):
    """[page, row, head, depth] as the mode has it."""
    page, row, heads, depth = cache.shape
    if mode == "Norm":
        return cache.transpose(0, 2, 1, 3)
    if not mode.endswith("NZ"):
        return cache
    c = 32 if kind == "I8" else 16
    return cache.reshape(page, row, heads, depth // c, c).transpose(0, 2, 3, 1, 4).reshape(cache.shape)


def taken(values, shape, mode, kind):
    """And back."""
    page, row, heads, depth = shape
    if mode == "Norm":
        return values.transpose(0, 2, 1, 3)
    if not mode.endswith("NZ"):
        return values
    c = 32 if kind == "I8" else 16
    return values.reshape(page, heads, depth // c, row, c).transpose(0, 3, 1, 2, 4).reshape(shape)


class Kv:
    """A call, and what it gives."""

    def __init__(self, kind, mode, heads=1, apart=False, kinds=None, scales=(None, None), offsets=(None, None), share=False):
        self.kind, self.mode, self.kinds = kind, mode, kinds or (kind, kind)
        self.scales, self.offsets, self.apart = scales, offsets, apart
        rope, latent = (64, 128) if apart else (32, 96)
        depth = 192 if apart else rope + latent
        self.kv = drawn((B, heads, S, depth), 1, kind)
        self.gamma = drawn(192 if apart else latent, 2, kind)
        self.cos, self.sin = (drawn((B, heads, 1 if share else S, rope), seed, kind) for seed in (3, 4))
        self.v = drawn((B, heads, S, latent), 5, kind) if apart else None
        if apart:
            k = normalized(self.kv, self.gamma)
            self.k = np.concatenate([turned(k[..., :rope], self.cos, self.sin), k[..., rope:]], -1)
            self.c = self.v
        else:
            self.c = normalized(self.kv[..., :latent], self.gamma)
            self.k = turned(self.kv[..., latent:], self.cos, self.sin)
        rows = 32 if mode != "Norm" else S + 4
        pages = max(5, B * -(-S // rows))
        self.shapes = [(pages, rows, heads, x.shape[3]) for x in (self.k, self.c)]
        self.caches = [whole(shape, seed) if own == "I8" else drawn(shape, seed, own)
                       for shape, seed, own in zip(self.shapes, (6, 7), self.kinds)]  # fmt: skip
        self.index, self.where = places(mode, pages, rows, 8)

    def run(self, second, layout, outputs):
        null = lambda values, kind: None if values is None else tensor(values, kind, layout)
        of_blocks = "row-major" if self.mode.endswith("NZ") else layout
        caches = [tensor(stored(cache, self.mode, own), own, of_blocks) for cache, own in zip(self.caches, self.kinds)]
        outs = [empty(x.shape, self.kind, layout) if outputs else None for x in (self.k, self.c)]
        more = {"vOptional": null(self.v, self.kind)} if second else {}
        results = call("KvRmsNormRopeCacheV2" if second else "KvRmsNormRopeCache", kv=tensor(self.kv, self.kind, layout),
                       gamma=tensor(self.gamma, self.kind, layout), cos=tensor(self.cos, self.kind, layout),
                       sin=tensor(self.sin, self.kind, layout), index=tensor(self.index, "I64", layout), kCacheRef=caches[0],
                       ckvCacheRef=caches[1], kRopeScaleOptional=null(self.scales[0], "F32"),
                       cKvScaleOptional=null(self.scales[1], "F32"), kRopeOffsetOptional=null(self.offsets[0], "F32"),
                       cKvOffsetOptional=null(self.offsets[1], "F32"), epsilon=EPSILON, cacheModeOptional=self.mode,
                       isOutputKv=outputs, kRopeOut=outs[0], cKvOut=outs[1], **more)  # fmt: skip
        offsets = self.offsets if self.apart else (None, None)
        parts = zip((self.k, self.c), results, self.caches, self.shapes, self.kinds, self.scales, offsets)
        for x, found, cache, shape, own, scale, offset in parts:
            rows = {place: x[b, :, s] for (b, s), place in self.where.items()}
            check_cache(taken(found, shape, self.mode, own), cache, rows, self.kind, scale, 0 if offset is None else offset)
        written = outputs and (self.mode != "Norm" or (self.apart and "I8" in self.kinds))
        for x, found, untouched in zip((self.k, self.c), results[2:], outs):
            if written:
                close(found, x, self.kind)
            else:
                np.testing.assert_array_equal(found, empty(x.shape, self.kind).values())


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("mode", MODES)
def test_latent_numbers(kind, mode):
    of = Kv(kind, mode)
    for second in (False, True):
        for layout in LAYOUTS:
            of.run(second, layout, False)
        of.run(second, "row-major", True)


@pytest.mark.parametrize("mode", ["Norm", "PA", "PA_BLK_BNSD"])
def test_angles_for_all_tokens(mode):
    of = Kv("F16", mode, share=True)
    of.run(False, "row-major", False)
    if not mode.startswith("PA_"):
        of.run(True, "gaps", False)


def scale_of(shape, seed):
    return np.float32(random(seed).uniform(10, 60, shape)).astype(np.float64)


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("which", ["both", "keys", "latent"])
def test_latent_numbers_as_integers(kind, mode, which):
    keys, latent = which != "latent", which != "keys"
    scales = scale_of((1, 32), 9) if keys else None, scale_of((96,), 10) if latent else None
    offsets = scale_of((32,), 11) if keys else None, None  # which change nothing
    of = Kv(kind, mode, kinds=("I8" if keys else kind, "I8" if latent else kind), scales=scales, offsets=offsets)
    of.run(False, "gaps", True)
    shaped = lambda numbers, *rest: tuple(None if each is None else each.reshape(*rest, -1) for each in numbers)
    for rest in ((), (1,)):  # the second version's have one number of dimensions
        of.scales, of.offsets = shaped(scales, *rest), shaped(offsets, *rest)
        of.run(True, "gaps", True)
    of.scales = tuple(None if scale is None else scale.ravel()[:1] for scale in scales)
    of.run(False, "row-major", False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("quantized", [False, True])
def test_keys_apart(mode, heads, quantized):
    more = {}
    if quantized:
        more = {"kinds": ("I8", "I8"), "scales": (scale_of((heads, 192), 12), scale_of((heads, 128), 13)),
                "offsets": (scale_of((heads, 192), 14) - 30, None)}  # fmt: skip
    of = Kv("BF16", mode, heads, True, **more)
    for layout in LAYOUTS:
        of.run(True, layout, True)


@pytest.mark.parametrize("batches, tokens, mode", [(2, 700, "PA"), (2, 700, "Norm"), (2, 300, "PA_BLK_NZ"), (300, 1, "PA_NZ"),
                                                   (40, 17, "PA_BLK_BNSD")])  # fmt: skip
def test_more_tokens_than_are_computed_at_once(batches, tokens, mode, monkeypatch):
    """Some of a sequence, or of several sequences."""
    monkeypatch.setitem(globals(), "B", batches)
    monkeypatch.setitem(globals(), "S", tokens)
    scales = {} if mode == "Norm" else {"kinds": ("I8", "I8"), "scales": (scale_of((32,), 9), scale_of((96,), 10))}
    Kv("F16", mode, **scales).run(True, "row-major", True)
    Kv("BF16", mode, share=True).run(False, "gaps", True)
    Kv("BF16", mode, 4, True).run(True, "row-major", mode != "Norm")


@pytest.mark.parametrize("mode, index, said", [
    ("PA", [0, 64], "index 64 of token 1 of sequence 0"), ("PA", [0, -2], "index -2 of token 1"),
    ("PA_NZ", [2**62, 1], "index 4611686018427387904 of token 0"), ("Norm", [[0, 16]], "index 16 of token 1"),
    ("Norm", [[-5, 1]], "index -5 of token 0"), ("PA_BLK_NZ", [64], "index 64 of token 0"),
    ("PA_BLK_BNSD", [-(2**63)], "index -9223372036854775808")])  # fmt: skip
def test_places_that_are_not_there(mode, index, said):
    shape = (2, 1, 16) if mode == "Norm" else (4, 16, 1)
    caches = [tensor(np.zeros((*shape, depth)), "F16") for depth in (16, 32)]
    angles = tensor(np.ones((1, 1, 2, 16)), "F16")
    told = fault("KvRmsNormRopeCache", tensor(np.ones((1, 1, 2, 48)), "F16"), tensor(np.ones(32), "F16"), angles, angles,
                 tensor(index, "I64"), *caches, None, None, None, None, EPSILON, ffi.new("char[]", mode.encode()), False,
                 None, None)  # fmt: skip
    assert said in told and not any(cache.values().any() for cache in caches)


@pytest.mark.parametrize("mode", ["PA_NZ", "PA_BLK_NZ"])
@pytest.mark.parametrize("which", ["kCacheRef", "ckvCacheRef"])
def test_blocks_that_do_not_follow_each_other(mode, which):
    """They would be written beside the storage."""
    angles = tensor(np.ones((1, 1, 2, 16)), "F16")
    index = tensor([0] if "BLK" in mode else [0, 1], "I64")
    for strides in ("reversed", "gaps", 0, 128):
        plain = isinstance(strides, str)
        lies = lambda depth: empty((4, 16, 1, depth), "F16", strides) if plain else blank(
            F16, (4, 16, 1, depth), strides=[strides, depth, depth, 1])  # fmt: skip
        caches = [lies(depth) if name == which else tensor(np.zeros((4, 16, 1, depth)), "F16")
                  for name, depth in (("kCacheRef", 16), ("ckvCacheRef", 32))]  # fmt: skip
        told = refusal("KvRmsNormRopeCache", tensor(np.ones((1, 1, 2, 48)), "F16"), tensor(np.ones(32), "F16"), angles, angles,
                       index, *caches, None, None, None, None, EPSILON, mode.encode(), False, None, None)  # fmt: skip
        assert told == (561002, f"aclnnKvRmsNormRopeCache/{which}/contiguous")


# ---- aclnnQkvRmsNormRopeCache -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("queries, heads", [(1, 1), (5, 2)])
@pytest.mark.parametrize("integers, shifts", [("", ""), ("k", "k"), ("v", ""), ("kv", "v"), ("kv", "kv")])
def test_joint_heads(kind, queries, heads, integers, shifts):
    batches, tokens, depth, pages, rows = 2, 11, 128, 4, 32
    total = batches * tokens
    qkv = drawn((total, queries + 2 * heads, depth), 20, kind)
    gammas = drawn((2, depth), 21, kind)
    cos, sin = drawn((2, total, 1, depth), 22, kind)
    index = random(23).permutation(pages * rows)[:total]
    index[4] = -1
    q, k = (turned(normalized(part, gamma), cos, sin, True)
            for part, gamma in zip((qkv[:, :queries], qkv[:, queries : queries + heads]), gammas))  # fmt: skip
    values = {"k": k, "v": qkv[:, queries + heads :]}
    kinds = {name: "I8" if name in integers else kind for name in values}
    caches = {name: whole((pages, rows, heads, depth), 24) if own == "I8" else drawn((pages, rows, heads, depth), 24, own)
              for name, own in kinds.items()}  # fmt: skip
    scales = {name: 1 / scale_of((heads, depth), 25) if name in integers else None for name in values}
    scales = {name: None if scale is None else np.float64(np.float32(scale)) for name, scale in scales.items()}
    offsets = {name: scale_of((heads, depth), 26) - 30 if name in shifts else None for name in values}
    blocks = {name: (pages, heads * depth // (32 if own == "I8" else 16), rows, 32 if own == "I8" else 16)
              for name, own in kinds.items()}  # fmt: skip
    for layout in LAYOUTS:
        null = lambda numbers: None if numbers is None else tensor(numbers, "F32", layout)
        held = {name: tensor(stored(caches[name], "PA_NZ", own).reshape(blocks[name]), own, layout)
                for name, own in kinds.items()}  # fmt: skip
        outs = call("QkvRmsNormRopeCache", qkv=tensor(qkv.reshape(total, -1), kind, layout),
                    qGamma=tensor(gammas[0], kind, layout), kGamma=tensor(gammas[1], kind, layout),
                    cos=tensor(cos[:, 0], kind, layout), sin=tensor(sin[:, 0], kind, layout),
                    index=tensor(index, "I64", layout), qOut=empty((total, queries * depth), kind, layout), kCache=held["k"],
                    vCache=held["v"], kScaleOptional=null(scales["k"]), vScaleOptional=null(scales["v"]),
                    kOffsetOptional=null(offsets["k"]), vOffsetOptional=null(offsets["v"]),
                    qkvSize=[batches, tokens, queries + 2 * heads, depth], headNums=[queries, heads, heads], epsilon=EPSILON,
                    cacheModeOptional="PA_NZ", qOutBeforeQuant=None, kOutBeforeQuant=None, vOutBeforeQuant=None)  # fmt: skip
        close(outs[0].reshape(total, queries, depth), q, kind)
        for name, found in zip("kv", outs[1:]):
            rows_of = {divmod(int(slot), rows): values[name][token] for token, slot in enumerate(index) if slot >= 0}
            cache = taken(found.reshape(caches[name].shape), caches[name].shape, "PA_NZ", kinds[name])
            scale = None if scales[name] is None else 1 / scales[name]
            check_cache(cache, caches[name], rows_of, kind, scale, 0 if offsets[name] is None else offsets[name])
