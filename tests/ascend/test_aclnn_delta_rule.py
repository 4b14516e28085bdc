"""The gated delta rule, by its formula in float64."""

import numpy
import pytest

from tests.ascend.attention import near
from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, random, rounded, tensor

CASES = [  # lengths, heads of the key, of the value, numbers of a key, of a value
    ([1], 1, 1, 1, 1),
    ([2, 1, 8], 2, 6, 17, 5),
    ([3, 4], 3, 3, 128, 33),
    ([5, 5, 5, 5], 1, 4, 96, 64),
]


def rule(q, k, v, beta, g, gk, state, scale):
    """All tokens of one sequence: the results, and the state behind each of them."""
    shared = v.shape[1] // k.shape[1]
    out, states = numpy.zeros(v.shape), []
    for t in range(len(v)):
        keys, queries = (numpy.repeat(x[t], shared, 0) for x in (k, q))
        state = state * numpy.exp(g[t][:, None, None] + gk[t][:, None, :])
        learned = beta[t][:, None] * (v[t] - numpy.einsum("hij,hj->hi", state, keys))
        state = state + learned[:, :, None] * keys[:, None, :]
        out[t] = numpy.einsum("hij,hj->hi", state, queries * scale)
        states.append(state)
    return out, states


def inputs(lengths, key_heads, heads, key_depth, depth):
    """Keys and queries of length 1 or less, so that a step makes no error larger."""
    tokens = sum(lengths)
    unit = lambda x: rounded(x / numpy.maximum(1, numpy.linalg.norm(x, axis=-1, keepdims=True)) * 0.99, "BF16")
    q, k = (unit(random(seed).normal(0, 1, (tokens, key_heads, key_depth))) for seed in (1, 2))
    v = drawn((tokens, heads, depth), 3, "BF16")
    beta = rounded(random(4).uniform(0.1, 0.9, (tokens, heads)), "BF16")
    g = rounded(-random(5).uniform(0, 1, (tokens, heads)), "F32")
    gk = rounded(-random(6).uniform(0, 1, (tokens, heads, key_depth)), "F32")
    return q, k, v, beta, g, gk


@pytest.mark.parametrize("lengths, key_heads, heads, key_depth, depth", CASES)
@pytest.mark.parametrize("with_g, with_gk", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("kind, layout", [*zip(["F32", "BF16", "F32"], LAYOUTS)])
@pytest.mark.parametrize("counted", [True, False])
def test_recurrent(counted, kind, layout, with_g, with_gk, lengths, key_heads, heads, key_depth, depth):
    q, k, v, beta, g, gk = inputs(lengths, key_heads, heads, key_depth, depth)
    g, gk = g * with_g, gk * with_gk
    tokens, scale = sum(lengths), 0.3
    states = drawn((tokens + 3, heads, depth, key_depth), 7, kind)
    places = random(8).permutation(tokens + 3)[:tokens]
    accepted = [random(9 + length).integers(1, length + 1) if counted else 1 for length in lengths]
    expected, out, first = states.copy(), numpy.zeros(v.shape), 0
    for length, count in zip(lengths, accepted):
        own = slice(first, first + length)
        out[own], after = rule(q[own], k[own], v[own], beta[own], g[own], gk[own], states[places[first + count - 1]], scale)
        expected[places[own]] = after
        first += length
    put = lambda values, of: tensor(values, of, layout)
    own_states, own_out = call(
        "RecurrentGatedDeltaRule", query=put(q, "BF16"), key=put(k, "BF16"), value=put(v, "BF16"), beta=put(beta, "BF16"),
        stateRef=put(states, kind), actualSeqLengths=put(lengths, "I32"), ssmStateIndices=put(places, "I32"),
        g=put(g, "F32") if with_g else None, gk=put(gk, "F32") if with_gk else None,
        numAcceptedTokens=put(accepted, "I32") if counted else None, scaleValue=scale, out=empty(v.shape, "BF16", layout))  # fmt: skip
    near(own_out, out, "BF16", 8 * key_depth)
    near(own_states, expected, kind, 8 * key_depth)
    untouched = numpy.setdiff1d(numpy.arange(tokens + 3), places)
    numpy.testing.assert_array_equal(own_states[untouched], states[untouched])


@pytest.mark.parametrize("with_g", [True, False])
@pytest.mark.parametrize("lengths, key_heads, heads, key_depth, depth", [
    *CASES, ([0, 70, 3, 0], 2, 4, 64, 32), ([131], 1, 2, 16, 128)])  # fmt: skip
@pytest.mark.parametrize("layout", LAYOUTS)
def test_chunk(layout, lengths, key_heads, heads, key_depth, depth, with_g):
    q, k, v, beta, g, gk = inputs(lengths, key_heads, heads, key_depth, depth)
    g, scale = g * with_g, 0.3
    states = drawn((len(lengths), heads, depth, key_depth), 7, "BF16")
    expected, out, first = states.copy(), numpy.zeros(v.shape), 0
    for s, length in enumerate(lengths):
        own = slice(first, first + length)
        out[own], after = rule(q[own], k[own], v[own], beta[own], g[own], 0 * gk[own], states[s], scale)
        expected[s] = [states[s], *after][-1]
        first += length
    put = lambda values, of="BF16": tensor(values, of, layout)
    own_out, own_states = call(
        "ChunkGatedDeltaRule", query=put(q), key=put(k), value=put(v), beta=put(beta), initialState=put(states),
        actualSeqLengths=put(lengths, "I32"), gOptional=put(g, "F32") if with_g else None, scaleValue=scale,
        out=empty(v.shape, "BF16", layout), finalState=empty(states.shape, "BF16", layout))  # fmt: skip
    near(own_out, out, "BF16", max(lengths) * key_depth)
    near(own_states, expected, "BF16", max(lengths) * key_depth)


def test_states_in_common():
    """The second sequence begins with what the first one left; both are of one token, and alike."""
    q, k, v, beta, g, gk = (numpy.concatenate([x, x]) for x in inputs([1], 1, 1, 4, 3))
    state = drawn((2, 1, 3, 4), 7)
    out, after = rule(q, k, v, beta, g, gk, state[1], 1)
    own_states, own_out = call(
        "RecurrentGatedDeltaRule", query=tensor(q, "BF16"), key=tensor(k, "BF16"), value=tensor(v, "BF16"),
        beta=tensor(beta, "BF16"), stateRef=tensor(state), actualSeqLengths=tensor([1, 1], "I32"),
        ssmStateIndices=tensor([1, 1], "I32"), g=tensor(g), gk=tensor(gk), numAcceptedTokens=tensor([1, 1], "I32"),
        scaleValue=1, out=empty(v.shape, "BF16"))  # fmt: skip
    near(own_out, out, "BF16")
    near(own_states, numpy.stack([state[0], after[1]]), "F32")


def filled(*shape):
    return empty(shape, "BF16")


def recurrent_fault(lengths, places, accepted):
    return fault("RecurrentGatedDeltaRule", filled(9, 1, 4), filled(9, 1, 4), filled(9, 1, 3), filled(9, 1), filled(9, 1, 3, 4),
                 tensor(lengths, "I32"), tensor(places, "I32"), None, None, tensor(accepted, "I32"), 1.0,
                 filled(9, 1, 3))  # fmt: skip


PLACES = [*range(9)]


@pytest.mark.parametrize("lengths, places, accepted, said", [
    ([9, 0], PLACES, [1, 1], "sequence 0 has 9 tokens, behind 0 of 9"), ([0, 8], PLACES, [1, 1], "sequence 0 has 0 tokens"),
    ([4, 6], PLACES, [1, 1], "sequence 1 has 6 tokens, behind 4 of 9"),
    ([4, 4], PLACES, [1, 1], "the sequences have 8 tokens of 9"), ([4, 5], [*range(8), 9], [1, 1], "token 8 has state 9 of 9"),
    ([4, 5], [-1, *range(8)], [1, 1], "token 0 has state -1 of 9"),
    ([4, 5], PLACES, [0, 1], "sequence 0 has 0 accepted tokens of 4"),
    ([4, 5], PLACES, [4, 6], "sequence 1 has 6 accepted tokens of 5")])  # fmt: skip
def test_what_is_not_there(lengths, places, accepted, said):
    assert said in recurrent_fault(lengths, places, accepted)


@pytest.mark.parametrize("lengths, said", [([10, -1], "sequence 0 has 10 tokens"), ([9, -1], "sequence 1 has -1 tokens"),
                                           ([4, 4], "the sequences have 8 tokens of 9")])  # fmt: skip
def test_lengths_of_chunks_that_are_not_there(lengths, said):
    assert said in fault("ChunkGatedDeltaRule", filled(9, 1, 4), filled(9, 1, 4), filled(9, 1, 3), filled(9, 1),
                         filled(2, 1, 3, 4), tensor(lengths, "I32"), None, 1.0, filled(9, 1, 3), filled(2, 1, 3, 4))  # fmt: skip
