"""Rows of layers of language models: tokens routed to experts, products of groups and of integers, quantization, gates."""

from functools import partial

import numpy
from aclnn import Out, called, values
from cases import Row, shaped_rows, to_torch, torch

TOKENS, WIDTH, CHOICES, EXPERTS = 4096, 1024, 2, 64
ROUTED = (TOKENS * CHOICES, WIDTH)
FLOATS, HALVES = ["float32", "float16"], ["float16", "bfloat16"]


def whole(shape, seed: int, low: int, high: int, dtype: str = "int32") -> numpy.ndarray:
    return numpy.random.default_rng(seed).integers(low, high, shape).astype(dtype)


# ---- experts ----


def choices() -> numpy.ndarray:
    return whole((TOKENS, CHOICES), 2, 0, EXPERTS)


def permuted(dtype: str, has_counts: bool):
    """Tokens sorted by their experts; with the tokens of each expert counted."""
    x, experts = values(dtype, (TOKENS, WIDTH), 1), choices()

    def with_torch():
        data, chosen = to_torch(x), to_torch(experts).flatten()

        def run():
            order = torch.argsort(chosen, stable=True)
            places = torch.empty_like(order, dtype=torch.int32)
            places[order] = torch.arange(len(order), dtype=torch.int32)
            counts = torch.bincount(chosen, minlength=EXPERTS) if has_counts else None
            return data.index_select(0, order // CHOICES), places, counts

        return run

    rows, places = Out(ROUTED, x.dtype), Out(ROUTED[:1], "int32")
    if has_counts:
        settings, counts = [0, 0, EXPERTS, 0, 2, False], Out((EXPERTS,), "int32")
        return called("aclnnMoeInitRoutingV2", [x, experts, *settings, rows, places, counts, None], with_torch)
    return called("aclnnMoeTokenPermute", [x, experts, 0, False, rows, places], with_torch)


def combined(dtype: str, has_bias: bool):
    """The rows of each token times their weights, added; with what else its layer adds."""
    x, places = values(dtype, ROUTED, 1), numpy.random.default_rng(3).permutation(ROUTED[0]).astype("int32")
    weights, experts = values(dtype, (TOKENS, CHOICES), 4), choices()
    other, bias = values(dtype, (TOKENS, WIDTH), 5), values(dtype, (EXPERTS, WIDTH), 6)

    def with_torch():
        data, at, factors, chosen, added, biases = map(to_torch, (x, places, weights, experts, other, bias))

        def run():
            rows = data.index_select(0, at).view(TOKENS, CHOICES, WIDTH)
            if not has_bias:
                return (rows * factors[..., None]).sum(1)
            rows = rows + biases.index_select(0, chosen.flatten()).view(rows.shape)
            return added + (rows * factors[..., None]).sum(1)

        return run

    out = Out((TOKENS, WIDTH), x.dtype)
    if has_bias:
        return called("aclnnMoeFinalizeRoutingV2", [x, places, other, None, bias, weights, experts, 2, out], with_torch)
    return called("aclnnMoeTokenUnpermute", [x, places, weights, False, None, out], with_torch)


def gating(dtype: str):
    """The 8 best of 256 experts, in 4 of 8 groups, by sigmoids with a bias."""
    scores, bias = values(dtype, (TOKENS, 256), 1), values(dtype, (256,), 2)

    def with_torch():
        data, added = to_torch(scores), to_torch(bias)

        def run():
            chances = data.float().sigmoid()
            biased = (chances + added).view(TOKENS, 8, 32)
            groups = biased.topk(2)[0].sum(-1).topk(4)[1]
            kept = torch.zeros(TOKENS, 8, dtype=torch.bool).scatter_(1, groups, True)
            best = biased.masked_fill(~kept[..., None], -torch.inf).view(TOKENS, 256).topk(8)[1]
            weights = chances.gather(1, best)
            return weights / (weights.sum(1, keepdim=True) + 1e-20), best, chances

        return run

    outputs = Out((TOKENS, 8), scores.dtype), Out((TOKENS, 8), "int32"), Out(scores.shape, "float32")
    return called("aclnnMoeGatingTopK", [scores, bias, 8, 4, 8, 1, 0, 1, True, 1.0, 1e-20, *outputs], with_torch)


def softmax_gating(dtype: str):
    """The 8 best of 256 experts by softmax, and the numbers of their rows."""
    scores = values(dtype, (TOKENS, 256), 1)

    def with_torch():
        data, rows = to_torch(scores), torch.arange(8 * TOKENS, dtype=torch.int32).view(8, TOKENS).T

        def run():
            weights, best = data.float().softmax(1).topk(8)
            return weights.to(data.dtype), best.int(), rows.contiguous()

        return run

    outputs = Out((TOKENS, 8), scores.dtype), Out((TOKENS, 8), "int32"), Out((TOKENS, 8), "int32")
    return called("aclnnMoeGatingTopKSoftmax", [scores, None, 8, *outputs], with_torch)


def grouped_product(dtype: str):
    rows, groups = 2048, 8
    x, weight = values(dtype, (rows, WIDTH), 1), values(dtype, (groups, WIDTH, WIDTH), 2)
    sizes = numpy.random.default_rng(3).multinomial(rows, numpy.full(groups, 1 / groups)).astype("int64")

    def with_torch():
        parts, matrices = to_torch(x).split(sizes.tolist()), to_torch(weight)
        out = torch.empty(rows, WIDTH, dtype=matrices.dtype)
        places = out.split(sizes.tolist())

        def run():
            for part, matrix, place in zip(parts, matrices, places):
                torch.mm(part, matrix, out=place)
            return out

        return run

    results = [Out((rows, WIDTH), x.dtype)]
    arguments = [[x], [weight], *[None] * 6, sizes, *[None] * 3, 2, 0, 1, 0, results, None, None]
    return called("aclnnGroupedMatmulV4", arguments, with_torch)


# ---- integers ----


def rows_quantized(numbers):
    """PyTorch's integers of every row, and the row's step."""
    step = numbers.abs().amax(-1, keepdim=True) / 127
    return (numbers / step).round().to(torch.int8), step


def dynamic_quantization(dtype: str):
    x = values(dtype, (TOKENS, WIDTH), 1)

    def with_torch():
        data = to_torch(x)
        return lambda: rows_quantized(data.float())

    return called("aclnnDynamicQuant", [x, None, Out(x.shape, "int8"), Out(x.shape[:1], "float32")], with_torch)


def quantized_norm(dtype: str):
    x, other, gamma = values(dtype, (TOKENS, WIDTH), 1), values(dtype, (TOKENS, WIDTH), 2), values(dtype, (WIDTH,), 3)
    scale, zero = numpy.full(WIDTH, 0.0625, "float32"), whole((WIDTH,), 4, -9, 9)
    if dtype == "bfloat16":
        scale, zero = scale.astype(x.dtype), zero.astype(x.dtype)

    def with_torch():
        a, b, factors, step, zeros = map(to_torch, (x, other, gamma, scale, zero))

        def run():
            total = a + b
            normal = torch.nn.functional.rms_norm(total.float(), (WIDTH,), factors.float(), 1e-6)
            return (normal / step + zeros).round().clamp(-128, 127).to(torch.int8), total

        return run

    outputs = [Out(x.shape, "int8"), Out((1,), "int8"), Out(x.shape, x.dtype)]
    return called("aclnnAddRmsNormQuant", [x, other, gamma, scale, None, zero, None, -1, 1e-6, True, *outputs], with_torch)


def quantized_gate(dtype: str, of_sums: bool):
    """swish(a) * b of the halves of every row, quantized by the row; `of_sums`: of a product's integers."""
    shape = (TOKENS, 2 * WIDTH)
    x = whole(shape, 1, -(2**15), 2**15) if of_sums else values(dtype, shape, 1)
    columns, row = numpy.full(shape[1], 2.0**-13, "float32"), numpy.ones((TOKENS, 1), "float32")
    smooth, ends = numpy.ones((1, WIDTH), "float32"), numpy.array([TOKENS], "int32")

    def with_torch():
        data, factors, factor, last = map(to_torch, (x, columns, row, smooth[0]))

        def run():
            numbers = data * factors * factor if of_sums else data.float()
            a, b = numbers.chunk(2, -1)
            return rows_quantized(torch.nn.functional.silu(a) * b * last)

        return run

    outputs = Out((TOKENS, WIDTH), "int8"), Out((TOKENS,), "float32")
    if of_sums:
        arguments = [x, columns, row, None, smooth[0], None, None, True, b"dynamic", *outputs]
        return called("aclnnDequantSwigluQuant", arguments, with_torch)
    return called("aclnnSwiGluQuant", [x, smooth, None, ends, True, b"dynamic", *outputs], with_torch)


def gate(dtype: str):
    x = values(dtype, (TOKENS, 2 * WIDTH), 1)

    def with_torch():
        a, b = to_torch(x).chunk(2, -1)
        return lambda: torch.nn.functional.silu(a) * b

    return called("aclnnSwiGlu", [x, -1, Out((TOKENS, WIDTH), x.dtype)], with_torch)


def bounded_gate(dtype: str):
    """Both halves are held softly."""
    x, bound, limit = values(dtype, (TOKENS, 2 * WIDTH), 1), 4.0, 25.0

    def with_torch():
        a, b = to_torch(x).chunk(2, -1)
        return lambda: bound * torch.tanh(a / bound) * torch.sigmoid(a) * (limit * torch.tanh(b / limit))

    return called("aclnnSituGlu", [x, -1, bound, limit, True, Out((TOKENS, WIDTH), x.dtype)], with_torch)


def product_of_integers(dtype: str):
    a, b = (whole((WIDTH, WIDTH), seed, -128, 128, "int8") for seed in (1, 2))
    scale, row = values("float32", (WIDTH,), 3), values("float32", (WIDTH,), 4)

    def with_torch():
        x, y, columns, rows = map(to_torch, (a, b, scale, row))
        return lambda: (torch._int_mm(x, y) * columns * rows[:, None]).bfloat16()

    out = Out(a.shape, values(dtype, (1,), 1).dtype)
    return called("aclnnQuantMatmulV4", [a, b, scale, None, row, None, False, False, out], with_torch)


def product_with_integers(dtype: str, rows: int):
    """A weight of integers, with a step for every column."""
    x, scale = values(dtype, (rows, WIDTH), 1), values(dtype, (4 * WIDTH,), 3) / 1024
    weight = whole((WIDTH, 4 * WIDTH), 2, -128, 128, "int8")

    def with_torch():
        data, numbers, steps = map(to_torch, (x, weight, scale))
        return lambda: data @ (numbers.to(data.dtype) * steps)

    out = Out((rows, 4 * WIDTH), x.dtype)
    return called("aclnnWeightQuantBatchMatmulV2", [x, weight, scale, None, None, None, None, 0, out], with_torch)


# ---- attention ----


def decoding(dtype: str):
    """One token of 8 sequences: 16 heads over 2048 keys of 4."""
    query = values(dtype, (8, 16, 1, 128), 1)
    key, value = (values(dtype, (8, 4, 2048, 128), seed) for seed in (2, 3))

    def with_torch():
        q, k, v = map(to_torch, (query, key, value))
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.1, enable_gqa=True)

    arguments = [query, [key], [value], None, None, None, 16, 0.1, b"BNSD", 4, Out(query.shape, query.dtype)]
    return called("aclnnIncreFlashAttention", arguments, with_torch)


def segment_sums(dtype: str):
    x = -numpy.abs(values(dtype, (8, 8, 256), 1)) / 16

    def with_torch():
        data, above = to_torch(x), torch.ones(256, 256, dtype=torch.bool).triu(1)

        def run():
            sums = data.cumsum(-1)
            return (sums[..., None] - sums[..., None, :]).masked_fill(above, -torch.inf).exp()

        return run

    return called("aclnnExpSegsum", [x, Out((8, 8, 256, 256), x.dtype)], with_torch)


def sinkhorn(dtype: str):
    """Tokens by experts."""
    cost = values(dtype, (TOKENS, EXPERTS), 1) / 4

    def with_torch():
        data = to_torch(cost)

        def run():
            powers, d1, change = data.exp(), torch.ones(EXPERTS), 1.0
            while change > 1e-4:
                d0 = 1 / (TOKENS * ((powers * d1).sum(1) + 1e-8))
                last, d1 = d1, 1 / (EXPERTS * ((powers * d0[:, None]).sum(0) + 1e-8))
                change = (last - d1).abs().mean()
            return powers * d1 * d0[:, None]

        return run

    return called("aclnnSinkhorn", [cost, None, Out(cost.shape, cost.dtype)], with_torch)


def rows() -> list[Row]:
    size, found = f"{TOKENS}x{WIDTH}", []
    for name, dtypes, make, aim in (  # what quantizes or has a sigmoid is bound by arithmetic
        ("tokens permuted", FLOATS, partial(permuted, has_counts=False), 0.4),
        ("tokens routed", FLOATS, partial(permuted, has_counts=True), 0.4),
        ("tokens combined", FLOATS, partial(combined, has_bias=False), 0.3),
        ("tokens finalized", FLOATS, partial(combined, has_bias=True), 0.3),
        ("quantization of rows", HALVES, dynamic_quantization, 0.0),
        ("norm of sums, quantized", HALVES, quantized_norm, 0.0),
        ("gate", [*FLOATS, "bfloat16"], gate, 0.0),
        ("gate with bounds", [*FLOATS, "bfloat16"], bounded_gate, 0.0),
        ("gate, quantized", FLOATS, partial(quantized_gate, of_sums=False), 0.0),
        ("gate of sums, quantized", ["int32"], partial(quantized_gate, of_sums=True), 0.0),
    ):
        found += shaped_rows(name, dtypes, size, make, aim, 1.0)
    found += shaped_rows("gating", FLOATS, f"{TOKENS}x256", gating, 0.0, 1.0)
    found += shaped_rows("gating by softmax", FLOATS, f"{TOKENS}x256", softmax_gating, 0.0, 1.0)
    # Large products of float16 take PyTorch many seconds on a processor without instructions for them.
    found += shaped_rows("product of groups", ["float32", "bfloat16"], "8x2048x1024", grouped_product, 0.0, 1.0)
    found += shaped_rows("product of integers", ["bfloat16"], "1024x1024", product_of_integers, 0.0, 1.0)
    for count, dtypes in ((16, HALVES), (1024, ["bfloat16"])):
        make, label = partial(product_with_integers, rows=count), f"{count}x1kx4k"
        found += shaped_rows("product with integers", dtypes, label, make, 0.0, 1.0)
    found += shaped_rows("decoding", HALVES, "8x16x2048", decoding, 0.0, 1.0)
    found += shaped_rows("exp of segment sums", [*FLOATS, "bfloat16"], "8x8x256x256", segment_sums, 0.0, 1.0)
    found += shaped_rows("Sinkhorn", FLOATS, f"{TOKENS}x{EXPERTS}", sinkhorn, 0.0, 1.0)
    return found
