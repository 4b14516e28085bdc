"""Shapes of attention, recurrent networks and grouped products: functions of the pages, as in `shape_functions`."""

from __future__ import annotations

from understudy.ascend.shape_functions import shape_function

MAXIMA = 8  # numbers of a row's maximum and of its sum


# ---- attention -------------------------------------------------------------------------------------------------------------


def _by_heads(layout: str, shape, heads: int) -> dict[str, int]:
    """Sizes of B, S (or T), N and D; H is N times D."""
    sizes = dict(zip(layout, shape))
    if "H" in sizes:
        sizes |= {"N": heads, "D": sizes.pop("H") // max(heads, 1)}
    return sizes


def _first(shapes):
    """Of a list of tensors the first one's shape."""
    return shapes[0] if shapes and isinstance(shapes[0], (tuple, list)) else shapes


@shape_function
def attended(query, key, value, layout, heads, pages=None):
    """The rows of the query, the head size of the value, in the layout behind `_` if there is one."""
    key, value = _first(key), _first(value)
    inside, _, outside = layout.partition("_")
    of = _by_heads(inside, query, heads)
    of_keys = inside if pages is None else "BSH" if len(key) == 3 else "BNSD"
    key_heads = key[-1] // max(of["D"], 1) if "H" in of_keys else 1
    in_blocks = pages is not None and len(value) == 5  # of 16 numbers of a head: [pages, heads, D / 16, tokens, 16]
    of["D"] = value[2] * value[4] if in_blocks else value[-1] // max(key_heads, 1)
    of["H"] = of["D"] * of["N"]
    return [of[letter] for letter in outside or inside]


@shape_function
def row_maxima(query, layout, heads):
    of = _by_heads(layout, query, heads)
    return [of[letter] for letter in ("TN" if "T" in of else "BNS")] + [MAXIMA]


@shape_function
def pair_maxima(query):
    return [*query[:-1], MAXIMA]


@shape_function
def row_logarithms(query, layout, heads, wanted):
    """None: nobody wants them."""
    of = _by_heads(layout.partition("_")[0], query, heads)
    return [*(of[letter] for letter in ("TN" if "T" in of else "BNS")), 1] if wanted else None


@shape_function
def of_windows(x, ends, length, stride):
    """A row for each window of `length` rows that begins every `stride` rows of a sequence."""
    windows = (1 + (end - begin - length) // stride for begin, end in zip([0, *ends], ends) if end - begin >= length)
    return [sum(windows), *x[1:]]


@shape_function
def row_joints(query):
    return [*query[:-1], 1]


@shape_function
def token_heads(query):
    """A number for each head of each token."""
    return query[:-1]


@shape_function
def selected_tokens(query, key, count):
    """So many for each head of the keys."""
    return [*query[:-2], key[-2], count]


@shape_function
def token_statistics(query, key):
    return [*query[:-3], key[-2], query[-3], query[-2] // max(key[-2], 1)]


@shape_function
def indexer_statistics(query, key):
    return [*query[:-3], key[-2], query[-3]]


# ---- residual streams: x is [tokens…, streams, numbers] --------------------------------------------------------------------


@shape_function
def stream_matrices(x):
    return [*x[:-1], x[-2]]


@shape_function
def stream_layer(x):
    return [*x[:-2], x[-1]]


@shape_function
def stream_weights(x):
    return x[:-1]


@shape_function
def stream_tokens(x):
    return x[:-2]


@shape_function
def stream_products(x, phi):
    return [*x[:-2], phi[0]]


@shape_function
def stream_mix(x, phi):
    """A matrix of the streams, or a number for each of their orders."""
    orders = phi[0] - 2 * x[-2]
    return [*x[:-1], x[-2]] if orders in (0, x[-2] ** 2) else [*x[:-2], orders]


BALANCE_ITERATIONS = 20


@shape_function
def stream_inverses(x):
    return [*x[:-2], 1]


@shape_function
def balanced_sums(x):
    return [2 * BALANCE_ITERATIONS, *x[:-1]]


@shape_function
def balanced_streams(x):
    return [2 * BALANCE_ITERATIONS, *x[:-1], x[-2]]


@shape_function
def weighed_blocks(blocks):
    return [blocks[0], blocks[1] + 1]


# ---- recurrent networks ----------------------------------------------------------------------------------------------------


def _recurrent(input, params, sizes, batch_first, gates) -> tuple[int, int, int]:
    """Steps, batch and hidden."""
    if sizes:
        steps, batch = sizes[0], input[0] // sizes[0]
    else:
        steps, batch = (input[1], input[0]) if batch_first else input[:2]
    return steps, batch, params[0][0] // gates


@shape_function
def recurrent_output(input, params, sizes, batch_first, two_directions, gates):
    steps, batch, hidden = _recurrent(input, params, sizes, batch_first, gates)
    first = (batch, steps) if batch_first and not sizes else (steps, batch)
    return (*first, hidden * (1 + bool(two_directions)))


@shape_function
def recurrent_states(input, params, sizes, batch_first, two_directions, gates, layers):
    _, batch, hidden = _recurrent(input, params, sizes, batch_first, gates)
    return (layers * (1 + bool(two_directions)), batch, hidden)


@shape_function
def recurrent_steps(input, params, sizes, batch_first, two_directions, gates, layers, train):
    """Of every direction of every layer; None: nothing is trained."""
    of_each = _recurrent(input, params, sizes, batch_first, gates)
    return [of_each] * (layers * (1 + bool(two_directions))) if train else None


@shape_function
def first_of(shapes):
    return shapes[0]


# ---- grouped products ------------------------------------------------------------------------------------------------------


@shape_function
def grouped(x, weight, split, kind, groups=None):
    """kind: -1 products of lists, 0 groups of rows, 2 groups of k. groups: numbers of the rows' ends, or the shape of their
    tensor."""
    columns = weight[0][-1]
    if kind == 2:
        return [(groups[0], x[0][0], columns)] if split >= 2 else [(x[0][0], one[-1]) for one in weight]
    if split >= 2:
        return [(sum(one[0] for one in x), columns)]
    if len(x) == 1 and len(weight) > 1:
        return [(end - begin, one[-1]) for begin, end, one in zip([0, *groups], groups, weight)]
    return [(*left[:-1], right[-1]) for left, right in zip(x, weight)]
