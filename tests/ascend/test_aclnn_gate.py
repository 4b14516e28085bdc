"""Gated activations and rotary embeddings, with their gradients, in float64."""

import math

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, fault, refusal, rounded, tensor
from tests.conformance.ascend import pages

KINDS = ["F32", "F16", "BF16"]
ROUNDING = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}


def drawn(shape, seed, kind="F32"):
    return rounded(np.random.default_rng(seed).normal(0, 2, shape), kind)


def near(actual, expected, kind, terms=32):
    scale = max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(actual, expected, rtol=1.01 * ROUNDING[kind], atol=terms * 2.0**-24 * scale)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("shape, dim", [((4, 6), 1), ((4, 6), -2), ((2, 2, 3), 0), ((3, 1026), -1), ((0, 4), 1)], ids=str)
def test_gates(shape, dim):
    for kind, layout in zip(KINDS, LAYOUTS):
        x = drawn(shape, 1, kind)
        a, b = np.split(x, 2, dim)
        put, blank = (lambda v: tensor(v, kind, layout)), (lambda: empty(a.shape, kind, layout))
        near(call("SwiGlu", x=put(x), dim=dim, out=blank()), a * sigmoid(a) * b, kind)
        dy = drawn(a.shape, 2, kind)
        da = dy * sigmoid(a) * (1 + a * (1 - sigmoid(a))) * b
        if x.size:  # its page takes no empty tensors
            own = call("SwiGluGrad", yGrad=put(dy), x=put(x), dim=dim, out=empty(shape, kind, layout))
            near(own, np.concatenate([da, dy * a * sigmoid(a)], dim), kind)
        for approximate in (0, 1):
            cubic = lambda v: np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)
            gelu = lambda v: v / 2 * (1 + (np.tanh(cubic(v)) if approximate else np.vectorize(math.erf, otypes=[float])(v / np.sqrt(2))))
            out, gate = call("GeGlu", self=put(x), dim=dim, approximate=approximate, out=blank(), outGelu=blank())
            near(out, a * gelu(b), kind)
            near(gate, gelu(b), kind)
            out, gate = call("GeGluV3", self=put(x), dim=dim, approximate=approximate, activateLeft=True, out=blank(),
                             outGelu=blank())  # fmt: skip
            near(out, gelu(a) * b, kind)
            near(gate, gelu(a), kind)
            slope = lambda v: np.vectorize(lambda at: derivative(gelu, at), otypes=[float])(v)
            for left, other, active in [(True, b, a), (False, a, b)]:
                stored = rounded(gelu(active), kind)
                parts = [dy * other * slope(active), dy * stored]
                parts = parts if left else parts[::-1]
                given = dict(gradOutput=put(dy), self=put(x), gelu=put(stored), dim=dim, approximate=approximate)
                own = call("GeGluV3Backward", **given, activateLeft=left, gradInput=empty(shape, kind, layout))
                near(own, np.concatenate(parts, dim), kind)
                if not left:
                    again = call("GeGluBackward", **given, gradInput=empty(shape, kind, layout))
                    np.testing.assert_array_equal(again, own)


@pytest.mark.parametrize("beta, linear", [(1.0, 0.0), (4.0, 25.0), (-2.0, 1.5), (0.7, -3.0)])
@pytest.mark.parametrize("left", [True, False])
def test_bounded_gates(beta, linear, left):
    for kind, layout, shape, dim in zip(KINDS, LAYOUTS, [(4, 6), (2, 6, 3), (3, 1026)], [1, -2, -1]):
        x = drawn(shape, 1, kind)
        gate, up = np.split(x, 2, dim)[:: 1 if left else -1]
        t, s, b = np.tanh(gate / beta), sigmoid(gate), np.float64(np.float32(beta))
        held, slope = (linear * np.tanh(up / linear), 1 - np.tanh(up / linear) ** 2) if linear > 0 else (up, 1)
        dy = drawn(gate.shape, 2, kind)
        given = dict(x=tensor(x, kind, layout), dim=dim, beta=beta, linearBeta=linear, activateLeft=left)
        near(call("SituGlu", **given, out=empty(gate.shape, kind, layout)), b * t * s * held, kind)
        parts = [dy * held * s * (1 - t * t + b * t * (1 - s)), dy * b * t * s * slope][:: 1 if left else -1]
        near(call("SituGluGrad", gradY=tensor(dy, kind, layout), **given, out=empty(shape, kind, layout)),
             np.concatenate(parts, dim), kind)  # fmt: skip


def derivative(function, at):
    """By differences of the fourth order, good to 1e-10."""
    step = 2.0**-9
    f = lambda k: float(function(at + k * step))
    return (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / (12 * step)


def turned(x, mode):
    """rot(x), and x as cos multiplies it, by the page's words."""
    halves = np.split(x, 2, -1)
    e, o = x[..., ::2], x[..., 1::2]
    if mode == 0:
        return np.concatenate([-halves[1], halves[0]], -1), x
    if mode == 1:
        return np.stack([-o, e], -1).reshape(x.shape), x
    if mode == 2:
        a, b, c, d = np.split(x, 4, -1)
        return np.concatenate([-b, a, -d, c], -1), x
    return np.concatenate([-o, e], -1), np.concatenate([e, o], -1)


SHAPES = [((2, 3, 4, 8), (1, 3, 1, 8)), ((2, 3, 4, 8), (2, 3, 4, 8)), ((2, 3, 1, 64), (2, 1, 1, 64)),
          ((1, 5, 2, 12), (1, 1, 1, 12))]  # fmt: skip


def test_interleaved_rotary_embedding():
    shape = (2, 3, 4, 64)
    for kind, layout, of_angles in zip(KINDS, LAYOUTS, [(2, 1, 4, 64), (1, 1, 4, 64), (2, 1, 1, 64)]):
        x, cos, sin = drawn(shape, 1, kind), drawn(of_angles, 2, kind), drawn(of_angles, 3, kind)
        rot, same = turned(x, 3)
        own = call("InterleaveRope", x=tensor(x, kind, layout), cos=tensor(cos, kind, layout), sin=tensor(sin, kind, layout),
                   out=empty(shape, kind, layout))  # fmt: skip
        near(own, same * cos + rot * sin, kind)


@pytest.mark.parametrize("mode", range(4))
def test_rotary_embedding(mode):
    for (shape, of_angles), kind, layout in zip(SHAPES, KINDS + ["F32"], LAYOUTS + ["row-major"]):
        x, dy, cos, sin = drawn(shape, 1, kind), drawn(shape, 2, kind), drawn(of_angles, 3, kind), drawn(of_angles, 4, kind)
        rot, same = turned(x, mode)
        put = lambda v: tensor(v, kind, layout)
        near(call("RotaryPositionEmbedding", x=put(x), cos=put(cos), sin=put(sin), mode=mode,
                  out=empty(shape, kind, layout)), same * cos + rot * sin, kind)  # fmt: skip
        # the embedding is linear: its matrix, element by element of the last dimension
        n = shape[-1]
        of_rot, of_same = (part.T for part in turned(np.eye(n), mode))
        dx = np.einsum("...i,ij->...j", dy * cos, of_same) + np.einsum("...i,ij->...j", dy * sin, of_rot)
        axes = tuple(axis for axis in range(4) if of_angles[axis] == 1)
        arguments = {"dy": put(dy), "cos": put(cos), "sin": put(sin), "mode": mode, "dxOut": empty(shape, kind, layout),
                     "dcosOut": empty(of_angles, kind), "dsinOut": empty(of_angles, kind)}  # fmt: skip
        own_dx, dcos, dsin = call("RotaryPositionEmbeddingGrad", xOptional=put(x), **arguments)
        near(own_dx, dx, kind)
        near(dcos, (dy * same).sum(axes, keepdims=True), kind, 64)
        near(dsin, (dy * rot).sum(axes, keepdims=True), kind, 64)
        again, dcos, _ = call("RotaryPositionEmbeddingGrad", xOptional=None,
                              **{**arguments, "dcosOut": empty(of_angles, kind)})  # fmt: skip
        np.testing.assert_array_equal(again, own_dx)
        np.testing.assert_array_equal(dcos, empty(of_angles, kind).values())


@pytest.mark.parametrize("shape, of_angles", [((0, 2, 3, 8), (1, 2, 1, 8)), ((2, 0, 3, 8), (1, 5, 1, 8)), ((2, 3, 3, 0), (1, 3, 1, 4))])
def test_rotary_embedding_of_nothing(shape, of_angles):
    """Angles need not fit what has no elements."""
    own = call("RotaryPositionEmbedding", x=empty(shape), cos=empty(of_angles), sin=empty((2, *of_angles[1:])), mode=0,
               out=empty(shape))  # fmt: skip
    assert own.shape == shape


@pytest.mark.parametrize("name", ["RotaryPositionEmbedding", "RotaryPositionEmbeddingGrad"])
def test_types_of_angles_are_parameters(name):
    """Angles of another type are wrong as parameters, those of another shape for the tiling."""
    x, sizes = empty((2, 3, 1, 8)), [empty((1, 2, 1, 8)), empty((1, 3, 1, 8), "F16"), empty((1, 3, 1, 8))]
    for angles, told in zip(sizes, [(561002, "cos/rotary"), (161002, "cos/same-dtype"), (0, "")]):
        more = [0, x] if name == "RotaryPositionEmbedding" else [x, 0, x, angles, angles]
        status, rule = refusal(name, x, angles, angles, *more)
        assert (status, rule.removeprefix(f"aclnn{name}/") if status else "") == told


def test_gradients_of_angles_of_no_samples():
    dy, angles = tensor(np.zeros((0, 3, 1, 8))), tensor(np.ones((1, 3, 1, 8)))
    for x in (dy, None):
        _, *slopes = call("RotaryPositionEmbeddingGrad", dy=dy, cos=angles, sin=angles, xOptional=x, mode=0, dxOut=empty((0, 3, 1, 8)),
                          dcosOut=empty((1, 3, 1, 8)), dsinOut=empty((1, 3, 1, 8)))  # fmt: skip
        for own in slopes:
            np.testing.assert_array_equal(own, np.zeros_like(own) if x is not None else empty(own.shape).values())


@pytest.mark.parametrize("kind", KINDS)
def test_rotary_embedding_in_place(kind):
    q, k, cos, sin = drawn((2, 3, 4, 16), 1, kind), drawn((2, 3, 2, 16), 2, kind), drawn((2, 3, 1, 16), 3, kind), drawn((2, 3, 1, 16), 4, kind)
    expected = lambda x, mode: turned(x, mode)[1] * cos + turned(x, mode)[0] * sin
    common = {"cos": tensor(cos, kind), "sin": tensor(sin, kind), "layout": 1}
    for layout in LAYOUTS:
        own = call("ApplyRotaryPosEmb", queryRef=tensor(q, kind, layout), keyRef=tensor(k, kind, layout), **common)
        for result, x in zip(own, (q, k)):
            near(result, expected(x, 0), kind)
        for mode, name in enumerate(("half", "interleave", "quarter")):
            own = call("ApplyRotaryPosEmbV2", queryRef=tensor(q, kind, layout), keyRef=tensor(k, kind), rotaryMode=name,
                       **common)  # fmt: skip
            for result, x in zip(own, (q, k)):
                near(result, expected(x, mode), kind)


@pytest.mark.parametrize("name", ["ApplyRotaryPosEmb", "ApplyRotaryPosEmbV2"])
def test_rotary_embedding_of_no_heads(name):
    """A query without heads is left alone, its keys are turned."""
    k, cos, sin = drawn((2, 3, 2, 8), 1), drawn((2, 3, 1, 8), 2), drawn((2, 3, 1, 8), 3)
    q = np.zeros((2, 3, 0, 8))
    more = {"rotaryMode": "half"} if name == "ApplyRotaryPosEmbV2" else {}
    own_q, own_k = call(name, queryRef=tensor(q), keyRef=tensor(k), cos=tensor(cos), sin=tensor(sin), layout=1, **more)
    assert own_q.shape == q.shape
    a, b = np.split(k, 2, -1)
    near(own_k, k * cos + np.concatenate([-b, a], -1) * sin, "F32")


def test_gates_of_nothing():
    out = call("SwiGluGrad", yGrad=empty((0, 2)), x=empty((0, 4)), dim=1, out=empty((0, 4)))
    assert out.shape == (0, 4)


def alternating(part, sections):
    """Every third angle of the second and the third row among those of the first one."""
    joined = part[0].copy()
    for row in (1, 2):
        joined[:, row : sections[1] * 3 : 3] = part[row, :, row : sections[1] * 3 : 3]
    return joined


def by_table(x, positions, table, head, sections, halves, mode=0):
    """The page's formulas: angles of the sections side by side, pairs as halves or as neighbours, what is behind them as is."""
    rows = table[positions]
    cos, sin = np.split(rows, 2, -1)
    if sections and mode == 1:
        cos, sin = alternating(cos, sections), alternating(sin, sections)
    elif sections:
        ends = np.cumsum(sections)
        cos, sin = (np.concatenate([part[i, :, end - size : end] for i, (size, end) in enumerate(zip(sections, ends))],
                                   -1) for part in (cos, sin))  # fmt: skip
    width, heads = table.shape[1], x.reshape(len(x), -1, head)
    cos, sin = cos[:, None], sin[:, None]
    turning, rest = heads[..., :width], heads[..., width:]
    a, b = np.split(turning, 2, -1) if halves else (turning[..., ::2], turning[..., 1::2])
    pair = (a * cos - b * sin, b * cos + a * sin)
    joined = np.concatenate(pair, -1) if halves else np.stack(pair, -1).reshape(turning.shape)
    return np.concatenate([joined, rest], -1).reshape(x.shape)


@pytest.mark.parametrize("halves", [True, False])
def test_rotary_embedding_by_table(halves):
    cases = [(3, 32, 32, None), (1, 96, 64, None), (5, 64, 64, [0, 0, 0]), (4, 128, 128, [16, 24, 24]),
             (2, 160, 128, [24, 20, 20]),
             (3, 64, 64, [8, 12, 12]), (2, 128, 128, [16, 16, 16, 16])]  # fmt: skip
    for number, (tokens, head, width, sections) in enumerate(cases):
        for kind, layout in zip(KINDS, np.roll(LAYOUTS, number)):
            used = sections if sections and any(sections) else None
            q, k, table = drawn((tokens, 3 * head), 1, kind), drawn((tokens, head), 2, kind), drawn((7, width), 3, kind)
            positions = np.random.default_rng(number).integers(0, 7, (len(used), tokens) if used else tokens)
            own = call("RopeWithSinCosCache", positions=tensor(positions, "I64", layout),
                       queryIn=tensor(q, kind, layout), keyIn=tensor(k, kind, layout),
                       cosSinCache=tensor(table, kind, layout), mropeSection=sections, headSize=head,
                       isNeoxStyle=halves, queryOut=empty(q.shape, kind, layout),
                       keyOut=empty(k.shape, kind, layout))  # fmt: skip
            for result, x in zip(own, (q, k)):
                near(result, by_table(x, positions, table, head, used, halves), kind)
            if layout == "row-major":
                again = call("RopeWithSinCosCacheV2", positions=tensor(positions, "I64", layout), queryIn=tensor(q, kind),
                             keyIn=tensor(k, kind), cosSinCache=tensor(table, kind), headSize=head,
                             mropeSection=sections or [9, 26, 26],  # not read: positions have one dimension
                             isNeoxStyle=halves, cacheMode=0, queryOut=empty(q.shape, kind),
                             keyOut=empty(k.shape, kind))  # fmt: skip
                for result, same in zip(again, own):
                    np.testing.assert_array_equal(result, same)
    for position in (7, -1):
        assert f"position {position} of token 1 is outside a table of 7 rows" in fault(
            "RopeWithSinCosCache", tensor([0, position], "I64"), tensor(np.ones((2, 32))), tensor(np.ones((2, 32))),
            tensor(np.ones((7, 16))), None, 32, halves, empty((2, 32)), empty((2, 32)))  # fmt: skip


@pytest.mark.parametrize("halves", [True, False])
def test_alternating_sections(halves):
    cases = [(3, 64, 64, [11, 11, 10]), (4, 128, 128, [16, 24, 24]), (2, 160, 128, [24, 20, 20]), (3, 96, 64, [8, 12, 12])]
    for number, (tokens, head, width, sections) in enumerate(cases):
        for kind, layout in zip(KINDS, np.roll(LAYOUTS, number)):
            q, k, table = drawn((tokens, 3 * head), 1, kind), drawn((tokens, head), 2, kind), drawn((7, width), 3, kind)
            positions = np.random.default_rng(number).integers(0, 7, (3, tokens))
            for mode in (0, 1):
                own = call("RopeWithSinCosCacheV2", positions=tensor(positions, "I64", layout), queryIn=tensor(q, kind, layout),
                           keyIn=tensor(k, kind, layout), cosSinCache=tensor(table, kind, layout), mropeSection=sections,
                           headSize=head, isNeoxStyle=halves, cacheMode=mode, queryOut=empty(q.shape, kind, layout),
                           keyOut=empty(k.shape, kind, layout))  # fmt: skip
                for result, x in zip(own, (q, k)):
                    near(result, by_table(x, positions, table, head, sections, halves, mode), kind)
    for position in (7, -1):
        places = np.zeros((3, 2))
        places[2, 1] = position
        assert f"position {position} of token 1 is outside a table of 7 rows" in fault(
            "RopeWithSinCosCacheV2", tensor(places, "I64"), tensor(np.ones((2, 64))), tensor(np.ones((2, 64))),
            tensor(np.ones((7, 64))), pages.made({"kind": "IA"}, [11, 11, 10]), 64, halves, 1, empty((2, 64)), empty((2, 64)))  # fmt: skip


@pytest.mark.parametrize("mode", range(4))
def test_rotary_embedding_of_either_kind(mode):
    """The second version: as the first one, of three dimensions too, or by a matrix."""
    cases = SHAPES + [((5, 3, 12), (5, 1, 12)), ((5, 3, 12), (5, 3, 12)), ((0, 3, 12), (1, 3, 12))]
    for number, (shape, of_angles) in enumerate(cases):
        for kind, layout in zip(KINDS, np.roll(LAYOUTS, number)):
            n = shape[-1]
            x, cos, sin, matrix = (drawn(of, seed, kind) for seed, of in enumerate((shape, of_angles, of_angles, (n, n))))
            put = lambda v: tensor(v, kind, layout)
            given = {"x": put(x), "cos": put(cos), "sin": put(sin), "mode": mode}
            rot, same = turned(x, mode)
            own = call("RotaryPositionEmbeddingV2", **given, rotate=None, out=empty(shape, kind, layout))
            near(own, same * cos + rot * sin, kind)
            own = call("RotaryPositionEmbeddingV2", **given, rotate=put(matrix), out=empty(shape, kind, layout))
            near(own, x * cos + (x @ matrix) * sin, kind, 4 * n)
