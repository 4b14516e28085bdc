"""Attention between pairs: the formula in float64, and PyTorch's automatic gradients."""

import numpy
import pytest

from tests.ascend.attention import near
from tests.ascend.calling import LAYOUTS, call, drawn, empty, rounded, tensor

CASES = [  # batches, heads, N, M, K, D, masked
    (1, 1, 16, 128, 128, 32, False),
    (2, 1, 32, 128, 256, 32, True),
    (1, 2, 16, 256, 128, 64, True),
    (1, 1, 16, 128, 128, 128, True),
]
SCALE = 0.11


def inputs(case, kind):
    b, h, n, m, k, d, masked = case
    mask = numpy.random.default_rng(1).random((b, 1, n, 1, k)) < 0.4
    mask[:, :, 0] = True  # rows without keys
    shapes = [(b, h, n, m, d), (b, h, n, k, d), (b, h, n, k, d), (b, h, k, m, d), (b, h, k, m, d)]
    return [drawn(shape, 2 + at, kind) for at, shape in enumerate(shapes)], mask if masked else None


def computed(xp, query, key1, value1, key2, value2, mask):
    """The result, the largest scores and the sums, by NumPy or torch."""
    scores = SCALE * (xp.einsum("bhnmd,bhnkd->bhnmk", query, key1) + xp.einsum("bhnmd,bhkmd->bhnmk", query, key2))
    if mask is not None:
        scores = xp.where(mask if xp is numpy else xp.tensor(mask), xp.full_like(scores, -numpy.inf), scores)
    largest = xp.amax(scores, -1)
    base = xp.where(xp.isinf(largest), xp.zeros_like(largest), largest)
    powers = xp.exp(scores - base[..., None])
    sums = powers.sum(-1)
    weights = powers / xp.where(sums == 0, xp.ones_like(sums), sums)[..., None]
    out = xp.einsum("bhnmk,bhnkd->bhnmd", weights, value1) + xp.einsum("bhnmk,bhkmd->bhnmd", weights, value2)
    return out, largest, sums


# With gaps in five dimensions a tensor takes 32 times the memory.
KINDS = [(case, kind, layout) for case in CASES
         for kind, layout in zip(["F16", "BF16", "BF16"], LAYOUTS) if layout != "gaps" or case == CASES[0]]  # fmt: skip
NAMES = ["query", "key1", "value1", "key2", "value2"]


@pytest.mark.parametrize("case, kind, layout", KINDS)
def test_forward(case, kind, layout):
    given, mask = inputs(case, kind)
    out, largest, sums = computed(numpy, *given, mask)
    statistic = (*case[:4], 8)
    own = call("FusedFloydAttention", **{name: tensor(values, kind, layout) for name, values in zip(NAMES, given)},
               attenMaskOptional=None if mask is None else tensor(mask, "B", layout), scaleValueOptional=SCALE,
               softmaxMaxOut=empty(statistic, "F32", layout), softmaxSumOut=empty(statistic, "F32", layout),
               attentionOutOut=empty(out.shape, kind, layout))  # fmt: skip
    # A score is a sum of 2 D terms whose sizes add up to less than D / 4.
    terms = 2 * case[5] * case[5] / 4
    for actual, expected in zip(own, (largest, sums)):
        near(actual, numpy.repeat(expected[..., None], 8, -1), "F32", terms)
    near(own[2], out, kind, terms)


@pytest.mark.parametrize("case, kind, layout", KINDS)
def test_gradients(case, kind, layout):
    """They take the result as it is stored: what it was rounded by shifts the slopes of a row's scores, each by its weight, as if
    the keys were values."""
    torch = pytest.importorskip("torch")
    given, mask = inputs(case, kind)
    dy = drawn(given[0].shape, 9, kind)
    out, largest, sums = computed(numpy, *given, mask)
    tensors = [torch.tensor(values, requires_grad=True) for values in given]
    expected = torch.autograd.grad(computed(torch, *tensors, mask)[0], tensors, torch.tensor(dy))
    # The scores' slopes are weights times what dy says of the values, less the mean that the rounded result has.
    shift = SCALE * (dy * (out - rounded(out, kind))).sum(-1, keepdims=True)
    keys = [tensors[0], tensors[1], tensors[1].detach().clone(), tensors[3], tensors[3].detach().clone()]
    shifted = [values.detach().numpy() for values in keys]
    average = computed(numpy, *shifted, mask)[0]
    weights_slopes = torch.autograd.grad(
        computed(torch, *[torch.tensor(values) for values in given[:2]], (v1 := torch.tensor(given[1], requires_grad=True)),
                 torch.tensor(given[3]), (v2 := torch.tensor(given[3], requires_grad=True)), mask)[0],
        (v1, v2), torch.tensor(shift * given[0]))  # fmt: skip
    expected = [values.numpy() for values in expected]
    expected = [expected[0] + shift * average, expected[1] + weights_slopes[0].numpy(), expected[2],
                expected[3] + weights_slopes[1].numpy(), expected[4]]  # fmt: skip
    put = lambda values, of=kind: tensor(values, of, layout)
    copies = [put(numpy.repeat(values[..., None], 8, -1), "F32") for values in (largest, sums)]
    own = call("FusedFloydAttentionGrad", **{name: put(values) for name, values in zip(NAMES, given)}, dy=put(dy),
               attenMaskOptional=None if mask is None else put(mask, "B"), softmaxMax=copies[0], softmaxSum=copies[1],
               attentionIn=put(out), scaleValue=SCALE,
               **{name: empty(values.shape, kind, layout)
                  for name, values in zip(("dqOut", "dk1Out", "dv1Out", "dk2Out", "dv2Out"), given)})  # fmt: skip
    terms = 2 * case[5] * case[5] / 4
    for actual, values in zip(own, expected):
        near(actual, values, kind, terms)


@pytest.mark.parametrize("scale", [0.0, -0.2])
def test_scales_that_are_not_above_zero(scale, monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", scale)
    test_forward(CASES[3], "F16", "row-major")
    test_gradients(CASES[3], "F16", "row-major")
