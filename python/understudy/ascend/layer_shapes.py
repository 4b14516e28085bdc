"""Shapes of layers, of images, tokens and losses: functions of the pages, as in `shape_functions`."""

from __future__ import annotations

import math

import numpy

from understudy.ascend.array_shapes import broadcast
from understudy.ascend.shape_functions import FUNCTIONS, shape_function


# ---- convolutions ----------------------------------------------------------------------------------------------------------


@shape_function
def conv_channels(weight, transposed, groups):
    return (weight[1] * groups if transposed else weight[0],)


@shape_function
def convolved(input, weight, stride, padding, dilation, transposed, output_padding, groups):
    axes = len(input) - 2
    sides = padding if len(padding) == 2 * axes else [side for side in padding for _ in range(2)]
    sizes = []
    for axis, (size, taps) in enumerate(zip(input[2:], weight[2:])):
        outside, reach = sides[2 * axis] + sides[2 * axis + 1], dilation[axis] * (taps - 1)
        if transposed:
            sizes.append((size - 1) * stride[axis] - outside + reach + output_padding[axis] + 1)
        else:
            sizes.append((size + outside - reach - 1) // stride[axis] + 1)
    return (input[0], *conv_channels(weight, transposed, groups), *sizes)


@shape_function
def deformed(x, weight, stride, padding, dilation):
    return (x[0], weight[0], *(max((x[axis] + padding[side] + padding[side + 1] - (weight[axis] - 1) * dilation[axis] - 1)
                                   // stride[axis] + 1, 0) for axis, side in ((2, 0), (3, 2))))  # fmt: skip


@shape_function
def depthwise(self, weight, stride, padding, dilation):
    return convolved(self, weight, stride, padding, dilation, False, [], 1)


@shape_function
def conv_tbc(data, weight, pad):
    return (data[0] + 2 * pad - weight[0] + 1, data[1], weight[2])


@shape_function
def unfolded(shape, kernel, dilation, padding, stride):
    sizes = ((n + 2 * p - d * (k - 1) - 1) // s + 1
             for n, k, d, p, s in zip(shape[-2:], kernel, dilation, padding, stride))
    height, width = sizes
    return (*shape[:-3], shape[-3] * kernel[0] * kernel[1], height * width)


@shape_function
def folded(columns, size, kernel):
    return (*columns[:-2], columns[-2] // (kernel[0] * kernel[1]), *size)


# ---- pools -----------------------------------------------------------------------------------------------------------------


def _windows(sizes, kernel, stride, before, behind, ceil):
    counts = []
    arrays = (list(values) * (len(sizes) if len(values) == 1 else 1) for values in (kernel, stride, before, behind))
    for size, k, s, b, e in zip(sizes, *arrays):
        whole, rest = divmod(size + b + e - k, s)
        count = whole + (bool(ceil) and rest > 0) + 1
        counts.append(count - ((count - 1) * s >= size + b))
    return counts


@shape_function
def max_pooled(shape, kernel, strides, pads, ceil):
    pads = list(pads or [0])
    behind = pads[2:] if len(pads) == 4 else pads
    return (*shape[:-2], *_windows(shape[-2:], kernel, strides or [1], pads[:2], behind, ceil))


@shape_function
def pooled2d(shape, kernel, stride, padding, ceil):
    return (*shape[:-2], *_windows(shape[-2:], kernel, stride or kernel, padding, padding, ceil))


@shape_function
def pooled3d(shape, kernel, stride, padding, ceil):
    return (*shape[:-3], *_windows(shape[-3:], kernel, stride or kernel, padding, padding, ceil))


@shape_function
def globally_pooled(shape):
    return (*shape[:2], *(1 for _ in shape[2:]))


@shape_function
def pool_mask(out, kernel):
    return (*out[:-2], kernel[0] * kernel[-1] if len(kernel) > 1 else kernel[0] ** 2,
            ((out[-2] * out[-1] + 15) // 16 + 1) * 32)


# ---- images ----------------------------------------------------------------------------------------------------------------


@shape_function
def resized(shape, size):
    return (*shape[: len(shape) - len(size)], *size)


FUNCTIONS["upsampled"] = resized  # arrays have no format: the space is behind the channels


@shape_function
def rescaled(shape, scales):
    return tuple(int(numpy.float32(size) * numpy.float32(scale)) for size, scale in zip(shape, scales))


@shape_function
def of_points(shape, count):
    return (*shape[:2], count, *shape[3:])


@shape_function
def sampled(images, grid):
    return (*images[:2], *grid[1:-1])


@shape_function
def affine_theta(size):
    return (size[0], len(size) - 2, len(size) - 1)


@shape_function
def affine_grid(size):
    return (size[0], *size[2:], len(size) - 2)


@shape_function
def overlaps(boxes, others, aligned):
    return (boxes[0], 1 if aligned else others[0])


# ---- norms -----------------------------------------------------------------------------------------------------------------


@shape_function
def lines(shape, normalized):
    """1 for the last dimensions, which are normalized."""
    kept = len(shape) - len(normalized)
    return (*shape[:kept], *[1] * (len(shape) - kept))


@shape_function
def channels(shape):
    return (shape[1],)


@shape_function
def instances(shape, layout):
    return [size if letter in "NC" else 1 for size, letter in zip(shape, layout)]


# ---- tokens of experts -----------------------------------------------------------------------------------------------------


@shape_function
def gates(x, choices):
    return (*x[:-1], choices)


@shape_function
def places(experts):
    return (int(numpy.prod(experts)),)


@shape_function
def permuted_tokens(tokens, experts, limit, out=None):
    count = int(numpy.prod(experts))
    return (len(range(count)[:limit]) if limit else count, *tokens[1:])


@shape_function
def part_of_tokens(tokens, experts, span, limit):
    return (span[1] - span[0] if span else permuted_tokens(tokens, experts, limit)[0], tokens[1])


@shape_function
def part_of_gates(tokens, experts, span, limit):
    return part_of_tokens(tokens, experts, span, limit)[:1]


@shape_function
def rows_of_choices(places, choices):
    return (places[0] // choices, choices)


@shape_function
def rows_before_part(slopes, places, rows=None, span=None):
    return rows if rows else (span[1] - span[0] if span else places[0], slopes[1])


@shape_function
def routed_tokens(x, experts, mode, expert_count, capacity, active):
    count = int(numpy.prod(experts))
    return (expert_count, capacity, x[1]) if mode == 1 else (min(active if active > 0 else count, count), x[1])


@shape_function
def routed_rows(x, experts, mode, expert_count, capacity, active):
    return (int(numpy.prod(routed_tokens(x, experts, mode, expert_count, capacity, active)[:-1])),)


@shape_function
def active_tokens(x, experts, active):
    return (min(x[0], active) * experts[1], x[1])


@shape_function
def expert_counts(mode, counting_mode, wanted, expert_count, counts=None):
    return (expert_count,) if mode == counting_mode and wanted else (0,)


@shape_function
def counted_experts(active, experts, counting, wanted, counts=None):
    if counting == 2:
        return (experts, 2)
    return (active[1] - active[0] if active else experts,)


@shape_function
def combined_tokens(tokens, places, scale=None):
    return (scale[0] if scale is not None else places[0], tokens[-1])


@shape_function
def finalized(tokens, places, scale=None, choices=1):
    return (scale[0] if scale is not None else places[0] // choices, tokens[-1])


@shape_function
def mapped_places(routing_map, limit, blocks):
    count = routing_map[1 if blocks else 0]
    return (limit // count * count if count else 0,)


@shape_function
def mapped_tokens(tokens, routing_map, limit, blocks):
    return (*mapped_places(routing_map, limit, blocks), tokens[1])


@shape_function
def unmapped_tokens(routed, gates=None, routing_map=None, shape=None):
    """Without a map and gates the shape tells."""
    known = gates or routing_map
    return (known[0], routed[1]) if known else tuple(shape)


@shape_function
def rows_of_places(tokens, places, choices):
    return (places[0] // choices, tokens[-1])


@shape_function
def combined_part(tokens, places, scale=None, span=None, choices=1):
    return rows_of_places(tokens, places, choices) if span else combined_tokens(tokens, places, scale)


@shape_function
def gated_rows(x, scales):
    return (x[0], scales[-1] // 2)


@shape_function
def summed_groups(rows, ends=None):
    return (rows[0] if ends is None else ends[0], rows[-1])


@shape_function
def heads_of(qkv, heads):
    return (qkv[0], heads, qkv[1], qkv[2] // 3 // heads)


# ---- heads and their parts -------------------------------------------------------------------------------------------------


@shape_function
def merged_parts(parts, wanted=1):
    return tuple(parts[0]) if wanted else None


@shape_function
def cached_keys(kv, cos, wanted, values=None):
    """With values kv has keys only."""
    return (kv if values else (*kv[:-1], cos[-1])) if wanted else None


@shape_function
def cached_values(kv, cos, wanted, values=None):
    return (values or (*kv[:-1], kv[-1] - cos[-1])) if wanted else None


@shape_function
def latent_heads(tokens, heads, numbers):
    return (*tokens[:-1], heads[0], numbers[-1])


@shape_function
def latent_query_scales(tokens, heads, cache):
    """Of queries that are integers, as they are where the tokens and the cache are."""
    return (math.prod(tokens[:-1]), heads[0], 1) if tokens.dtype == cache.dtype == numpy.int8 else None


@shape_function
def latent_norm(tokens, gamma):
    return (*tokens[:-1], *gamma)


@shape_function
def latent_norm_scales(tokens, weight):
    return (math.prod(tokens[:-1]), 1) if weight.dtype == numpy.int8 else None


@shape_function
def selected_heads(query, key, value):
    """Heads of a key or value have an axis of their own, or lie side by side."""
    return (*query[:-1], query[-1] * math.prod(value[2:]) // max(math.prod(key[2:]), 1))


# ---- bags of embeddings ----------------------------------------------------------------------------------------------------


@shape_function
def bag_numbers(indices, numbers=None):
    return indices


@shape_function
def bag_sizes(offsets, has_last):
    return (offsets[0] - bool(has_last),)


@shape_function
def bags(offsets, has_last, weight):
    return (*bag_sizes(offsets, has_last), weight[1])


@shape_function
def bag_maxima(offsets, has_last, weight, mode):
    return bag_sizes(offsets, has_last) if mode in (0, 1) else bags(offsets, has_last, weight)


# ---- losses ----------------------------------------------------------------------------------------------------------------


@shape_function
def loss(reduction, *shapes):
    """Of every element of the joint shape without reduction, else of one."""
    return broadcast(*shapes) if reduction == 0 else ()


@shape_function
def sample_losses(reduction, shape):
    """Of every row of a matrix without reduction, else of one."""
    return shape[:1] if reduction == 0 and len(shape) == 2 else ()


@shape_function
def text_loss(reduction, target):
    return target if reduction == "none" else (1,)


@shape_function
def ctc_losses(log_probs):
    return log_probs[1:-1]


@shape_function
def ctc_alphas(log_probs, lengths):
    """Of every entry and step; the labels and the blanks between them fill eights."""
    return (*log_probs[1:-1], log_probs[0], (2 * max(lengths) + 8) // 8 * 8)
