"""Queries and caches of latent attention from tokens: the pages' formulas in float64, for which integers are exact."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, random, refusal, rounded, steps_apart, tensor, whole
from tests.ascend.test_aclnn_blocked_weight import blocked
from tests.ascend.test_aclnn_caches import blocks_of
from tests.ascend.test_aclnn_cached_heads import turned
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor, expanded, ffi

HIDDEN, RANK, LATENT, TURNED = 1024, 1536, 512, 64
EPSILONS = 3e-3, 2e-2
NAMES = {1: "MlaProlog", 2: "MlaPrologV2WeightNz", 3: "MlaPrologV3WeightNz"}
PAGES, ROWS = 12, 16


def normalized(x, gamma, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * gamma


def quantized(x):
    """Row by row, with the rows' scales, which float32 has."""
    scale = (np.abs(x).max(-1, keepdims=True).astype(np.float32) / np.float32(127)).astype(np.float64)
    return np.rint(x / scale), scale


class Case:
    """Numbers of a call. weights: the modes of the third version; caches: 0, 1 (one scale), 2 (one for each number)."""

    def __init__(self, shape, heads=2, depth=128, rank=RANK, weights=0, caches=0, smooth=True, factors=(1.0, 1.0), seed=1):
        self.shape, self.heads, self.depth, self.rank = shape, heads, depth, rank
        self.weights, self.caches, self.factors = weights, caches, factors
        draw = lambda *sizes, by=1.0, add=0: rounded(random(seed + 100 + add).normal(0, by, sizes), "BF16")
        many = heads * (depth + TURNED)
        self.x = whole((*shape, HIDDEN), seed) if weights == 2 else drawn((*shape, HIDDEN), seed, "BF16")
        self.dq = whole((HIDDEN, rank), seed + 1) if weights == 2 else draw(HIDDEN, rank, by=1 / 32, add=1)
        self.dkv = whole((HIDDEN, LATENT + TURNED), seed + 2) if weights == 2 else draw(HIDDEN, LATENT + TURNED, by=1 / 32, add=2)
        self.uq = whole((rank, many), seed + 3) if weights else draw(rank, many, by=1 / 40, add=3)
        self.uk = draw(heads, depth, LATENT, by=1 / 12, add=4)
        self.q_gamma, self.kv_gamma = draw(rank, add=5), draw(LATENT, add=6)
        angles = random(seed + 9).normal(0, 3, (*shape, TURNED))
        self.sin, self.cos = rounded(np.sin(angles), "BF16"), rounded(np.cos(angles), "BF16")
        scales = lambda *sizes, add: random(seed + add).uniform(0.5, 1.5, sizes).astype(np.float32).astype(np.float64)
        tokens = int(np.prod(shape))
        self.x_scale, self.dq_scale, self.dkv_scale = (
            scales(*sizes, add=add) / 64 for add, sizes in ((10, (tokens, 1)), (11, (1, rank)), (12, (1, LATENT + TURNED))))
        self.uq_scale, self.smooth = scales(1, many, add=13) / 2048, scales(1, rank, add=14) if smooth and weights else None
        self.kv_scale = scales(1, 1 if caches == 1 else LATENT, add=15) * 32
        self.kr_scale = scales(1, TURNED, add=16) * 32

    def expected(self):
        x = self.x.reshape(-1, HIDDEN).astype(np.float64)
        of_x, of_dq, of_dkv = (self.x_scale, self.dq_scale, self.dkv_scale) if self.weights == 2 else (1, 1, 1)
        c = self.factors[0] * normalized((x @ self.dq) * of_x * of_dq, self.q_gamma, EPSILONS[0])
        self.norm, self.norm_scale = c, None
        wide = c @ self.uq
        if self.weights:
            self.norm, self.norm_scale = quantized(c * (1 if self.smooth is None else self.smooth))
            wide = (self.norm @ self.uq) * self.norm_scale * self.uq_scale
        wide = wide.reshape(len(x), self.heads, -1)
        query = np.einsum("thd,hdl->thl", wide[..., : self.depth], self.uk)
        sin, cos = (angle.reshape(-1, 1, TURNED) for angle in (self.sin, self.cos))
        rope = turned(wide[..., self.depth :], cos, sin)
        latent = (x @ self.dkv) * of_x * of_dkv
        kv = self.factors[1] * normalized(latent[:, :LATENT], self.kv_gamma, EPSILONS[1])
        return query, rope, kv, turned(latent[:, None, LATENT:], cos, sin)[:, 0]

    def run(self, version, caches, index, mode="PA_BSND", layout="row-major", own=False, norm=False, ends=None):
        """query, rope, the caches, and what else there is, by the names of parameters."""
        full, half = self.weights == 2, self.weights > 0
        kind = lambda integer: "I8" if integer else "BF16"
        kinds = kind(self.caches > 0), kind(self.caches == 2)
        whole_query, tokens = self.caches == 1, int(np.prod(self.shape))
        weight = lambda values, integer: blocked(values, kind(integer), own=own)
        factor = lambda values, given: tensor(values, "F32", layout) if given and values is not None else None
        lies = "row-major" if mode and "NZ" in mode else layout
        held = lambda at: caches[at] if isinstance(caches[at], Tensor) else tensor(caches[at], kinds[at], lies)
        third = {3: "Optional"}.get(version, "")
        given = {
            "tokenX": tensor(self.x, kind(full), layout), "weightDq": weight(self.dq, full), "weightUqQr": weight(self.uq, half),
            "weightUk": tensor(self.uk, "BF16", layout), "weightDkvKr": weight(self.dkv, full),
            "rmsnormGammaCq": tensor(self.q_gamma, "BF16", layout), "rmsnormGammaCkv": tensor(self.kv_gamma, "BF16", layout),
            "ropeSin": tensor(self.sin, "BF16", layout), "ropeCos": tensor(self.cos, "BF16", layout),
            f"cacheIndex{third}": None if index is None else tensor(index, "I64", layout),
            "kvCacheRef": held(0), "krCacheRef": held(1),
            "dequantScaleXOptional": factor(self.x_scale, full), "dequantScaleWDqOptional": factor(self.dq_scale, full),
            "dequantScaleWUqQrOptional": factor(self.uq_scale, half), "dequantScaleWDkvKrOptional": factor(self.dkv_scale, full),
            "quantScaleCkvOptional": factor(self.kv_scale[0] if version == 3 and full else
                                            np.broadcast_to(self.kv_scale, (1, LATENT)), self.caches),
            "quantScaleCkrOptional": factor(self.kr_scale, self.caches == 2), "smoothScalesCqOptional": factor(self.smooth, half),
            "rmsnormEpsilonCq": EPSILONS[0], "rmsnormEpsilonCkv": EPSILONS[1], "cacheModeOptional": mode,
            "queryOut": empty((*self.shape, self.heads, LATENT), kind(whole_query), layout),
            "queryRopeOut": empty((*self.shape, self.heads, TURNED), "BF16", layout)}  # fmt: skip
        if version > 1:
            given["dequantScaleQNopeOutOptional"] = empty((tokens, self.heads, 1), "F32", layout) if whole_query else None
        if version == 3:
            given.update(
                actualSeqLenOptional=None if ends is None else tensor(ends, "I32", layout), kNopeClipAlphaOptional=None,
                weightQuantMode=self.weights, kvCacheQuantMode=self.caches, queryQuantMode=int(whole_query), ckvkrRepoMode=0,
                quantScaleRepoMode=0, tileSize=128, qcQrScale=self.factors[0], kcScale=self.factors[1],
                queryNormOutOptional=empty((*self.shape, self.rank), kind(half), layout) if norm else None,
                dequantScaleQNormOutOptional=empty((tokens, 1), "F32", layout) if norm and half else None)  # fmt: skip
        call(NAMES[version], **given)
        return {name: given[name].values() for name in given if name.endswith(("Ref", "Out", "OutOptional")) and given[name]}


def near(actual, expected, bits=8, least=2.0**-13):
    """Rounded once from float32, in which sums of many products lie a little beside."""
    expected = np.asarray(expected).reshape(actual.shape)
    bound = 2.0**-bits * np.abs(expected) * 1.02 + least * np.abs(expected).max()
    assert (np.abs(actual - expected) <= bound).all(), (np.abs(actual - expected) - bound).max()


def check(case, found, before, places, mode="PA_BSND", norm=False):
    """places: the row of the cache that each token has, or -1."""
    query, rope, kv, kr = case.expected()
    if case.caches == 1:
        integers, scale = quantized(query)
        near(found["dequantScaleQNopeOutOptional"], scale, 20, 2.0**-20)
        steps_apart(found["queryOut"].reshape(query.shape), query / scale)
    else:
        near(found["queryOut"], query)
    near(found["queryRopeOut"], rope)
    if norm and case.weights:
        steps_apart(found["queryNormOutOptional"].reshape(case.norm.shape), case.norm)
        near(found["dequantScaleQNormOutOptional"], case.norm_scale, 20, 2.0**-20)
    elif norm:
        near(found["queryNormOutOptional"], case.norm)
    for name, new, scale, old in zip(("kvCacheRef", "krCacheRef"), (kv, kr), (case.kv_scale, case.kr_scale), before):
        integers = case.caches == 2 or (case.caches == 1 and name == "kvCacheRef")
        rows = found[name]
        if "NZ" in mode:
            page, row, _, depth = old.shape
            c = 32 if integers else 16
            rows = rows.reshape(page, depth // c, row, c).transpose(0, 2, 1, 3)
        rows, old = rows.reshape(-1, new.shape[1]), old.reshape(-1, new.shape[1])
        seen = {place: token for token, place in enumerate(places) if place >= 0}
        stays = np.ones(len(rows), bool)
        stays[list(seen)] = False
        np.testing.assert_array_equal(rows[stays], old[stays])
        right = new[list(seen.values())]
        if integers:
            steps_apart(rows[list(seen)], np.clip(right * scale, -128, 127))
        else:
            near(rows[list(seen)], right)


def old_caches(case, shape):
    integers = case.caches > 0, case.caches == 2
    return [whole((*shape, 1, depth), 50 + depth) if integer else drawn((*shape, 1, depth), 50 + depth, "BF16")
            for depth, integer in zip((LATENT, TURNED), integers)]  # fmt: skip


def stored(case, caches, mode):
    """As a cache of this mode is passed: the bytes of its blocks in the shape of the mode."""
    if "NZ" not in mode:
        return caches
    integers = case.caches > 0, case.caches == 2
    return [blocks_of(cache, "I8" if integer else "BF16").reshape(cache.shape) for cache, integer in zip(caches, integers)]


def places_of(tokens, seed):
    places = random(seed).permutation(PAGES * ROWS)[:tokens]
    if tokens > 3:
        places[1], places[-1] = -1, places[0]  # the last token stays
    return places


MODES = [(1, 0, 0), (1, 1, 0), (1, 1, 2), (2, 0, 0), (2, 1, 2), (2, 2, 0), (2, 2, 1), (3, 0, 0), (3, 1, 0), (3, 1, 2), (3, 2, 0),
         (3, 2, 1)]  # fmt: skip


@pytest.mark.parametrize("version, weights, caches", MODES)
def test_all_types(version, weights, caches):
    case = Case((2, 3), weights=weights, caches=caches, smooth=version != 2, seed=version,
                factors=(1.5, 0.75) if version == 3 else (1.0, 1.0))  # fmt: skip
    places = places_of(6, 7)
    before = old_caches(case, (PAGES, ROWS))
    for mode, layout in (("PA_BSND", "row-major"), ("PA_NZ", "gaps"), ("PA_BSND", "reversed")):
        norm = version == 3
        found = case.run(version, stored(case, before, mode), places.reshape(2, 3), mode, layout, layout == "gaps", norm)
        check(case, found, before, places, mode, norm)


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize("tokens", [1, 128, 131])
def test_tokens_in_one_line(version, tokens):
    case = Case((tokens,), heads=1, weights=tokens % 2, seed=4)
    places = places_of(tokens, 8)
    before = old_caches(case, (PAGES, ROWS))
    check(case, case.run(version, before, places, None), before, places)


def test_other_sizes_of_the_third_version():
    for weights in (0, 1):
        case = Case((3,), heads=4, depth=192, rank=2048, weights=weights, seed=5, factors=(0.5, 2.0))
        places, before = places_of(3, 9), old_caches(case, (PAGES, ROWS))
        check(case, case.run(3, before, places, norm=True), before, places, norm=True)


def test_caches_without_pages():
    for shape, mode in (((2, 3), "BSND"), ((5,), "TND")):
        case = Case(shape, heads=1, seed=6)
        before = old_caches(case, shape)
        for layout in LAYOUTS:
            check(case, case.run(3, before, None, mode, layout), before, np.arange(np.prod(shape)))


@pytest.mark.parametrize("mode", ["PA_BLK_BSND", "PA_BLK_NZ"])
def test_pages_of_sequences(mode):
    case = Case((2, 19), heads=1, seed=7)
    numbers = random(10).permutation(PAGES)[:4].reshape(2, 2)
    before = old_caches(case, (PAGES, ROWS))
    places = np.concatenate([numbers[b, np.arange(19) // ROWS] * ROWS + np.arange(19) % ROWS for b in range(2)])
    for layout in LAYOUTS:
        check(case, case.run(3, stored(case, before, mode), numbers, mode, layout), before, places, mode)
    flat = Case((38,), heads=1, seed=8)
    ends, lengths = [16, 16, 33, 38], [16, 0, 17, 5]
    numbers, places = random(11).permutation(PAGES)[:4], []
    for entries, length in zip(([0], [], [1, 2], [3]), lengths):
        places += [numbers[entries[t // ROWS]] * ROWS + t % ROWS for t in range(length)]
    found = flat.run(3, stored(flat, before, mode), numbers, mode, "gaps", ends=ends)
    check(flat, found, before, places, mode)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_nothing(version):
    """Without tokens nothing is written; without pages only the queries are."""
    for shape in ((0,), (0, 3), (2, 0)):
        case = Case(shape, heads=1)
        before = old_caches(case, (2, ROWS))
        found = case.run(version, before, np.zeros(shape, np.int64))
        np.testing.assert_array_equal(found["kvCacheRef"], before[0])
    case = Case((2,), heads=1)
    before = old_caches(case, (0, ROWS))
    found = case.run(version, before, [5, -7])
    query, rope, _, _ = case.expected()
    near(found["queryOut"], query)
    near(found["queryRopeOut"], rope)


# ---- what is not there --------------------------------------------------------------------------------------------------------


def arguments(index, caches, outs, mode, ends=None):
    case = Case((3,), heads=1)
    own = lambda values: tensor(values, "BF16")
    return [own(case.x), blocked(case.dq, "BF16"), blocked(case.uq, "BF16"), own(case.uk), blocked(case.dkv, "BF16"),
            own(case.q_gamma), own(case.kv_gamma), own(case.sin), own(case.cos), *caches, tensor(index, "I64"), *[None] * 7,
            None if ends is None else tensor(ends, "I32"), None, 1e-5, 1e-5, ffi.new("char[]", mode.encode()), 0, 0, 0, 0, 0, 128,
            1.0, 1.0, *outs, None, None, None]  # fmt: skip


@pytest.mark.parametrize("version, tokens, expected", [
    (1, 2**20, 0), (1, 2**20 + 1, 561002), (2, 2**20, 0), (2, 2**20 + 1, 561002), (3, 2**20 + 1, 0)])  # fmt: skip
def test_most_tokens_in_one_line(version, tokens, expected):
    case, of = Case((1,), heads=1), lambda *shape, kind="BF16": expanded(pages.KINDS[kind], (tokens, *shape))
    weights, own = (blocked(values, "BF16") for values in (case.dq, case.uq, case.dkv)), lambda values: tensor(values, "BF16")
    dq, uq, dkv = weights
    front = of(HIDDEN), dq, uq, own(case.uk), dkv, own(case.q_gamma), own(case.kv_gamma), of(TURNED), of(TURNED)
    caches = empty((2, ROWS, 1, LATENT), "BF16"), empty((2, ROWS, 1, TURNED), "BF16")
    places = (of(kind="I64"), *caches) if version < 3 else (*caches, of(kind="I64"))
    more = (None, None) if version == 3 else ()
    modes = (0, 0, 0, 0, 0, 128, 1.0, 1.0) if version == 3 else ()
    outs = of(1, LATENT), of(1, TURNED), *[None] * {1: 0, 2: 1, 3: 3}[version]
    status, rule = refusal(NAMES[version], *front, *places, *[None] * 7, *more, 1e-5, 1e-5, b"PA_BSND", *modes, *outs)
    assert status == expected and (status == 0 or rule == f"aclnn{NAMES[version]}/tokenX/tokens")


@pytest.mark.parametrize("which", ["kvCacheRef", "krCacheRef"])
def test_blocks_that_do_not_follow_each_other(which):
    outs = empty((3, 1, LATENT), "BF16"), empty((3, 1, TURNED), "BF16")
    for layout in ("reversed", "gaps"):
        caches = [empty((2, ROWS, 1, depth), "BF16", layout if name == which else "row-major")
                  for name, depth in (("kvCacheRef", LATENT), ("krCacheRef", TURNED))]  # fmt: skip
        told = refusal("MlaPrologV3WeightNz", *arguments([0, 1, 2], caches, outs, "PA_NZ"))
        assert told == (561002, f"aclnnMlaPrologV3WeightNz/{which}/contiguous")


def test_pages_with_gaps():
    """The first axis of a cache need not be contiguous, of one in blocks neither."""
    case = Case((5,), heads=1, seed=12)
    all_pages, places = old_caches(case, (2 * PAGES, ROWS)), places_of(5, 13)
    for mode in ("PA_BSND", "PA_NZ"):
        held = [Tensor(pages.KINDS["BF16"], cache.ravel(), shape=(PAGES, *cache.shape[1:]),
                       strides=[2 * ROWS * cache.shape[3], cache.shape[3], cache.shape[3], 1], storage=[cache.size])
                for cache in stored(case, all_pages, mode)]  # fmt: skip
        check(case, case.run(1, held, places, mode), [cache[::2] for cache in all_pages], places, mode)


def latent_fault(index, mode="PA_BSND", ends=None):
    zeros = lambda *shape: tensor(np.zeros(shape), "BF16")
    caches, outs = (zeros(2, ROWS, 1, LATENT), zeros(2, ROWS, 1, TURNED)), (zeros(3, 1, LATENT), zeros(3, 1, TURNED))
    said = fault("MlaPrologV3WeightNz", *arguments(index, caches, outs, mode, ends))
    assert not any(each.values().any() for each in (*caches, *outs))
    return said


@pytest.mark.parametrize("index, mode, ends, said", [
    ([0, 32, 1], "PA_BSND", None, "index 32 of token 1 is outside"), ([0, 1, -2], "PA_NZ", None, "index -2 of token 2"),
    ([0, 1, 2**63 - 1], "PA_BSND", None, "of token 2"), ([0], "PA_BLK_BSND", [2, 3], "page 1 of 1"),
    ([0, 2], "PA_BLK_BSND", [2, 3], "page 1 of 2 is number 2"), ([0, -1], "PA_BLK_NZ", [2, 3], "number -1"),
    ([0, 1], "PA_BLK_BSND", [2, 1], "sequence 1 ends at token 1"), ([0, 1], "PA_BLK_BSND", [2, 4], "ends at token 4 of 3"),
    ([0, 1], "PA_BLK_BSND", [1, 2], "the last sequence ends at token 2"), ([0, 1], "PA_BLK_BSND", [-1, 3], "ends at token -1")])
def test_rows_that_are_not_there(index, mode, ends, said):  # fmt: skip
    assert said in latent_fault(index, mode, ends)
