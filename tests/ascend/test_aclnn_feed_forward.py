"""Two layers with an activation between them, of experts too, against float64: floating, quantized, with quantized weights."""

import math

import numpy as np
import pytest

from understudy import ascend

from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, packed, random, rounded, tensor, whole

KINDS = ["F16", "BF16"]
ROUNDING = {"F16": 2.0**-11, "BF16": 2.0**-8}
TENSORS = ("bias1", "bias2", "scale", "offset", "deqScale1", "deqScale2", "antiquantScale1", "antiquantScale2",
           "antiquantOffset1",
           "antiquantOffset2")  # fmt: skip
ERF = np.vectorize(math.erf, otypes=[float])
ACTIVATIONS = {"fastgelu": lambda v: v / (1 + np.exp(-1.702 * v)), "gelu": lambda v: v / 2 * (1 + ERF(v / np.sqrt(2))),
               "relu": lambda v: np.maximum(v, 0), "silu": lambda v: v / (1 + np.exp(-v))}  # fmt: skip
GATED = {"geglu": "gelu", "swiglu": "silu", "reglu": "relu"}


def near(actual, expected, kind, terms=64):
    np.testing.assert_allclose(actual, expected, rtol=1.01 * ROUNDING[kind],
                               atol=terms * 2.0**-24 * max(1, np.abs(expected).max(initial=0)))  # fmt: skip


def run(third, x, weight1, weight2, y, tokens=None, activation="gelu", precise=0, ends=False, **given):
    names = dict.fromkeys(TENSORS) | given
    if third == 2:
        groups = np.cumsum(tokens).tolist() if tokens is not None and ends else tokens
        return call("FFNV2", x=x, weight1=weight1, weight2=weight2, expertTokens=groups, activation=activation,
                    innerPrecise=precise, tokensIndexFlag=ends, y=y, **names)  # fmt: skip
    if third:
        groups = None if tokens is None else tensor(np.cumsum(tokens) if ends else tokens, "I64", "gaps")
        return call("FFNV3", x=x, weight1=weight1, weight2=weight2, expertTokensOptional=groups, activation=activation,
                    innerPrecise=precise, tokensIndexFlag=ends, y=y,
                    **{f"{name}Optional": value for name, value in names.items()})  # fmt: skip
    return call("FFN", x=x, weight1=weight1, weight2=weight2, expertTokens=tokens, activation=activation,
                innerPrecise=precise, y=y, **names)  # fmt: skip


def by_expert(x, tokens, network):
    ends = np.cumsum(tokens)
    return np.concatenate([network(x[end - size : end], expert) for expert, (size, end) in enumerate(zip(tokens, ends))])


@pytest.mark.parametrize("third", [False, 2, True])
def test_one_network(third):
    for number, (name, activation) in enumerate(ACTIVATIONS.items()):
        kind, layout = KINDS[number % 2], LAYOUTS[number % 3]
        of_bias, shape = ("F32" if kind == "BF16" else kind), ((7, 12), (2, 3, 12), (2, 1, 2, 2, 12), (1, 12))[number]
        x, a, b = drawn(shape, 1, kind), drawn((12, 9), 2, kind) / 4, drawn((9, 12), 3, kind) / 4
        bias1, bias2 = drawn(9, 4, of_bias), drawn(12, 5, of_bias)
        put = lambda v, of=kind: tensor(v, of, layout)
        own = run(third, put(x), put(a), put(b), empty(shape, kind, layout), activation=name, bias1=put(bias1, of_bias),
                  bias2=put(bias2, of_bias))  # fmt: skip
        near(own, activation(x @ a + bias1) @ b + bias2, kind)
        own = run(third, put(x), put(a), put(b), empty(shape, kind, layout), activation=name)
        near(own, activation(x @ a) @ b, kind)
    for name, inner in GATED.items():
        x, a, b = (drawn(shape, seed, "F16") for shape, seed in (((5, 8), 1), ((8, 6), 2), ((3, 8), 3)))
        first, second = np.split(x @ a, 2, -1)
        own = run(third, tensor(x, "F16"), tensor(a, "F16"), tensor(b, "F16"), empty((5, 8), "F16"), activation=name,
                  precise=1)  # fmt: skip
        near(own, (ACTIVATIONS[inner](first) * second) @ b, "F16")


CASES = [(False, False, [3, 0, 4, 1]), (2, False, [3, 0, 4, 1]), (2, True, [3, 0, 4, 1]), (True, False, [3, 0, 4, 1]),
         (True, True, [3, 0, 4, 1])]  # fmt: skip


@pytest.mark.parametrize("third, ends, tokens", CASES)
def test_experts(third, ends, tokens):
    for kind, layout in zip(KINDS, LAYOUTS):
        of_bias = "F32" if kind == "BF16" else kind
        x, a, b = drawn((8, 12), 1, kind), drawn((4, 12, 9), 2, kind) / 4, drawn((4, 9, 12), 3, kind) / 4
        bias1, bias2 = drawn((4, 9), 4, of_bias), drawn((4, 12), 5, of_bias)
        put = lambda v, of=kind: tensor(v, of, layout)
        own = run(third, put(x), put(a), put(b), empty((8, 12), kind, layout), tokens, "silu", ends=ends,
                  bias1=put(bias1, of_bias), bias2=put(bias2, of_bias))  # fmt: skip
        expected = by_expert(x, tokens, lambda rows, e: ACTIVATIONS["silu"](rows @ a[e] + bias1[e]) @ b[e] + bias2[e])
        near(own, expected, kind)


@pytest.mark.parametrize("third, ends, tokens", CASES + [(True, False, None)])
def test_integers(third, ends, tokens):
    """Integers between the layers: exact where the numbers before rounding are not halfway, which these are not."""
    experts = 1 if tokens is None else len(tokens)
    x, a, b = whole((8, 20), 1), whole((experts, 20, 6), 2), whole((experts, 6, 20), 3)
    bias1, bias2 = whole((experts, 6), 4, -999, 999), whole((experts, 20), 5, -999, 999)
    for kind, of_deq, columns in (("F16", "F32", False), ("F16", "U64", True), ("BF16", "BF16", True),
                                  ("BF16", "BF16", False)):  # fmt: skip
        deq1, deq2 = (rounded(random(seed).uniform(1e-5, 4e-5, shape),
                              "BF16") for seed, shape in ((6, (experts, 6)), (7, (experts, 20))))  # fmt: skip
        scale = rounded(random(8).uniform(20, 40, (experts, 6 if columns else 1)), "F32")
        offset = rounded(random(9).normal(0, 3, (experts, 1)), "F32")

        def network(rows, e):
            hidden = ACTIVATIONS["relu"]((rows @ a[e] + bias1[e]) * deq1[e]) * scale[e] + offset[e]
            assert (np.abs(hidden % 1 - 0.5) > 1e-4).all()
            return (np.clip(np.rint(hidden), -128, 127) @ b[e] + bias2[e]) * deq2[e]

        expected = by_expert(x, [8] if tokens is None else tokens, network)
        drop = (lambda v: v[0]) if tokens is None else (lambda v: v)
        wide = lambda v: tensor(v.astype(np.float32).view(np.uint32).astype(np.uint64), "U64") if of_deq == "U64" else tensor(v, of_deq)
        given = {"bias1": tensor(drop(bias1), "I32"), "bias2": tensor(drop(bias2), "I32"),
                 "deqScale1": wide(drop(deq1)), "deqScale2": wide(drop(deq2)),
                 "scale": tensor(drop(scale) if columns else scale[:, 0]), "offset": tensor(offset[:, 0])}  # fmt: skip
        own = run(third, tensor(x, "I8"), tensor(drop(a), "I8"), tensor(drop(b), "I8"), empty((8, 20), kind), tokens,
                  "relu", ends=ends, **given)  # fmt: skip
        near(own, expected, kind)


@pytest.mark.parametrize("bits", [8, 4])
def test_quantized_weights(bits):
    low, high = (-128, 128) if bits == 8 else (-8, 8)
    for number, (kind, tokens) in enumerate(zip(KINDS * 2, ([3, 0, 4, 1], None, None, [2, 2, 2, 2]))):
        experts, parts = (4 if tokens else 1), (2 if bits == 4 and number >= 2 else None)
        of_bias = "F32" if kind == "BF16" else kind
        x, a, b = drawn((8, 12), 1, kind), whole((experts, 12, 6), 2, low, high), whole((experts, 6, 12), 3, low, high)
        bias1 = drawn((experts, 6), 4, of_bias)
        scales = [rounded(random(seed).uniform(0.001, 0.02, shape),
                          kind) for seed, shape in ((5, (experts, parts or 1, 6)),
                                                    (6, (experts, parts or 1, 12)))]  # fmt: skip
        offsets = [whole((experts, parts or 1, 6), 7, -4, 4), whole((experts, parts or 1, 12), 8, -4, 4)]
        spread = lambda v, depth: v.repeat(depth // (parts or 1), 1)
        first, second = (a + spread(offsets[0], 12)) * spread(scales[0], 12), (b + spread(offsets[1], 6)) * spread(scales[1], 6)
        network = lambda rows, e: ACTIVATIONS["fastgelu"](rows @ first[e] + bias1[e]) @ second[e]
        drop = lambda v: (v if tokens else v[0]) if parts or v.ndim == 2 else (v[:, 0] if tokens else v[0, 0])
        make = lambda v: packed(v if tokens else v[0], "I4") if bits == 4 else tensor(v if tokens else v[0], "I8", LAYOUTS[number % 3])
        given = {"bias1": tensor(drop(bias1), of_bias), "antiquantScale1": tensor(drop(scales[0]), kind),
                 "antiquantScale2": tensor(drop(scales[1]), kind),
                 "antiquantOffset1": tensor(drop(offsets[0]), kind), "antiquantOffset2": tensor(drop(offsets[1]), kind)}  # fmt: skip
        own = run(number % 2 == 1, tensor(x, kind), make(a), make(b), empty((8, 12), kind), tokens, "fastgelu", **given)
        near(own, by_expert(x, tokens or [8], network), kind, 512)


def test_tokens_that_do_not_fit_are_faults():
    a, b = np.ones((2, 3, 5)), np.ones((2, 5, 3))
    for tokens, ends, words in (([1, 2], False, "have 3 of 4 tokens"),
                                ([1, 4], False, "expert 1 has 4 tokens from 1 on"),
                                ([3, 2], True, "expert 1 has -1 tokens")):  # fmt: skip
        out = empty((4, 3), "F16")
        sentence = fault("FFNV3", tensor(np.ones((4, 3)), "F16"), tensor(a, "F16"), tensor(b, "F16"),
                         tensor(tokens, "I64"), *[None] * 10, ascend.ffi.new("char[]", b"relu"), 0, ends,
                         out)  # fmt: skip
        assert words in sentence
        np.testing.assert_array_equal(out.values(), empty((4, 3), "F16").values())


def test_function():
    x, a, b = (drawn(shape, seed, "F16").astype(np.float16) for shape, seed in (((5, 8), 1), ((8, 6), 2), ((6, 8), 3)))
    near(ascend.ops.ffn(x, a, b, "relu", 0).astype(float), np.maximum(x.astype(float) @ a, 0) @ b, "F16")
