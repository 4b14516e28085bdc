"""Attention by its formula, in float64, and its layouts: for the tests of attention."""

import numpy as np

from tests.ascend.calling import call

ROUNDING = {"F32": 2.0**-22, "F16": 2.0**-11, "BF16": 2.0**-8}
FAR = 2**31 - 1
AXES = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3)}


def laid_out(values, layout):
    """[B, N, S, D] in a layout."""
    moved = values.transpose(AXES[layout])
    return moved.reshape(*moved.shape[:2], moved.shape[2] * moved.shape[3]) if layout.endswith("H") else moved


def back(values, layout, shape):
    """To [B, N, S, D]."""
    b, n, s, d = shape
    sizes = {"BNSD": (b, n, s, d), "BSND": (b, s, n, d), "BSH": (b, s, n, d), "SBH": (s, b, n, d)}[layout]
    return values.reshape(sizes).transpose(np.argsort(AXES[layout]))


def kept(mode, rows, keys, before=FAR, after=FAR, prefix=0):
    """Where a sparse mode keeps scores, by its definition."""
    i, j = np.arange(rows)[:, None], np.arange(keys)[None]
    corner = keys - rows
    return {0: (i - before <= j) & (j <= i + after), 1: j >= 0, 2: j <= i, 3: j <= i + corner,
            4: (i + corner - before <= j) & (j <= i + corner + after)}.get(mode, (j <= i + corner) | (j < prefix)) & (i >= 0)  # fmt: skip


def attention(q, k, v, dy, scale, shift, keeps, drop, after_scale=False, read=None):
    """The result, softmax statistics, and the gradients by the chain rule, head by head. `read`: the result as the gradients
    read it, rounded."""
    shared = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, shared, 1) for x in (k, v))
    scores = scale * (q @ k.swapaxes(2, 3)) + (1 if after_scale else scale) * shift
    scores = np.where(keeps, scores, -np.inf)
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    sums = powers.sum(-1, keepdims=True)
    weights = powers / np.where(sums == 0, 1, sums)
    y = (weights * drop) @ v
    slopes = (dy @ v.swapaxes(2, 3)) * drop
    slopes = weights * (slopes - (dy * (y if read is None else read)).sum(-1, keepdims=True))
    joined = lambda x: x.reshape(x.shape[0], -1, shared, *x.shape[2:]).sum(2)
    dk, dv = joined(scale * slopes.swapaxes(2, 3) @ q), joined((weights * drop).swapaxes(2, 3) @ dy)
    return y, largest[..., 0], sums[..., 0], scale * slopes @ k, dk, dv


def near(actual, expected, kind, terms=32):
    scale = max(1.0, np.abs(expected[np.isfinite(expected)]).max(initial=0))
    np.testing.assert_allclose(actual, expected, rtol=ROUNDING[kind],
                               atol=terms * 2.0**-24 * scale + ROUNDING[kind] / 4 * (kind != "F32"))  # fmt: skip


FUSED = ["deqScale1", "quantScale1", "deqScale2", "quantScale2", "quantOffset2", "antiquantScale", "antiquantOffset",
         "blockTable",
         "queryPaddingSize", "kvPaddingSize"]  # fmt: skip
NEWEST = ["queryRope", "keyRope", "keyRopeAntiquantScale"]
LATER = ["keyAntiquantScale", "keyAntiquantOffset", "valueAntiquantScale", "valueAntiquantOffset", "keySharedPrefix",
         "valueSharedPrefix"]  # fmt: skip


def fused(version, rows, **given):
    """The call of a version, from names without "Optional" and what is not absent."""
    own = "" if version == 1 else "Optional"
    optional = ["pseShift", "attenMask", "actualSeqLengths", "actualSeqLengthsKv", *FUSED]
    values = {"preTokens": 4, "nextTokens": 1, "sparseMode": 0, "innerPrecise": 0, "blockSize": 0, "antiquantMode": 0,
              "softmaxLseFlag": "softmaxLse" in given, "softmaxLse": None, "scaleValue": 0.3, "inputLayout": "BNSD"}  # fmt: skip
    if version > 1:
        optional += [*LATER, "actualSharedPrefixLen"]
        values |= {"keyAntiquantMode": 0, "valueAntiquantMode": 0}
    if version > 2:
        optional += NEWEST
    if version > 3:
        optional += ["dequantScaleQuery", "learnableSink"]
        values["queryQuantMode"] = 0
    values |= {name + own: [] if name.startswith("actual") else None for name in optional}
    values |= {name + own if name in optional else name: value for name, value in given.items()}
    return call("FusedInferAttentionScore" + (f"V{version}" if version > 1 else ""), **values)
