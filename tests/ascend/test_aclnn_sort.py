"""Sorting: order, stability, NaN and zeros, in every type and layout, against NumPy."""

import itertools

import numpy as np
import pytest

from understudy.ascend import ffi, lib

from tests.ascend.calling import LAYOUTS, call, empty, refusal, rounded, tensor
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import blank

RANDOM = np.random.default_rng(5)
TYPES = ["F32", "F16", "BF16", "F64", "I8", "U8", "I16", "I32", "I64", "B"]


def order(values, dim, descending):
    """Stable; NaN is the greatest value."""
    ranks = np.unique(values, return_inverse=True)[1].reshape(values.shape)  # of floats too: NaN last, zeros alike
    return np.argsort(-ranks if descending else ranks, dim, kind="stable")


def drawn(shape, kind):
    if kind == "B":
        return RANDOM.integers(0, 2, shape)
    low = 0 if kind[0] == "U" else -100
    values = RANDOM.integers(low, 100, shape).astype(np.float64)
    if kind[0] in "FB":
        values[RANDOM.random(shape) < 0.1] = np.nan
        values[RANDOM.random(shape) < 0.1] = -0.0
        values[RANDOM.random(shape) < 0.1] = np.inf
    return values


@pytest.mark.parametrize("kind", TYPES)
def test_sort(kind):
    for shape, dim in (((3, 40), -1), ((40, 3), 0), ((2, 30, 3), 1), ((7,), 0), ((1, 300), 1), ((3, 0), 1), ((), 0)):
        for layout, descending in itertools.product(LAYOUTS, (False, True)):
            values = rounded(drawn(shape, kind), kind)
            expected = order(values, dim, descending) if values.ndim and values.size else np.zeros(shape, int)
            sorted_, places = call("Sort", self=tensor(values, kind, layout), stable=True, dim=dim, descending=descending,
                                   valuesOut=empty(shape, kind, layout), indicesOut=empty(shape, "I64", layout))  # fmt: skip
            np.testing.assert_array_equal(places, expected)
            np.testing.assert_array_equal(sorted_, np.take_along_axis(values, expected, dim) if values.ndim else values)


@pytest.mark.parametrize("kind", ["F32", "F16", "I64", "U8"])
def test_topk(kind):
    for shape, dim, k in (((3, 40), -1, 5), ((40, 3), 0, 40), ((3, 50), 1, 32), ((2, 30), 1, 30), ((7,), 0, 0),
                          ((2, 9000), 1, 11), ((9000, 2), 0, 2100), ((1, 9000), 1, 40), ((), 0, 1)):  # fmt: skip
        for layout, largest in itertools.product(LAYOUTS, (False, True)):
            values = rounded(drawn(shape, kind), kind)
            kept = (*shape[: dim % len(shape)], k, *shape[dim % len(shape) + 1 :]) if shape else ()
            expected = order(values, dim, largest) if shape else np.zeros((), int)
            expected = np.take(expected, range(k), dim) if shape else expected
            found, places = call("Topk", self=tensor(values, kind, layout), k=k, dim=dim, largest=largest, sorted=True,
                                 valuesOut=empty(kept, kind, layout), indicesOut=empty(kept, "I64", layout))  # fmt: skip
            np.testing.assert_array_equal(places, expected)
            np.testing.assert_array_equal(found, np.take_along_axis(values, expected, dim) if shape else values)


@pytest.mark.parametrize("kind", ["F32", "I64"])
def test_long_line(kind):
    values = rounded(RANDOM.normal(0, 1e4, 300_001), kind)
    expected = order(values, 0, False)
    found, places = call("Sort", self=tensor(values, kind), stable=False, dim=0, descending=False,
                         valuesOut=empty(values.shape, kind), indicesOut=empty(values.shape, "I64"))  # fmt: skip
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(found, values[expected])
    expected = order(values, 0, True)[:50]
    found, places = call("Topk", self=tensor(values, kind), k=50, dim=0, largest=True, sorted=True,
                         valuesOut=empty((50,), kind), indicesOut=empty((50,), "I64"))  # fmt: skip
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(found, values[expected])


@pytest.mark.parametrize("kind", ["F32", "I64"])
def test_values_in_place(kind):
    """Values may be self: lines longer than what is written at once are read to their end first."""
    for shape, dim in (((2, 3000), 1), ((2100, 3), 0), ((2999,), 0)):
        for layout, descending in itertools.product(LAYOUTS, (False, True)):
            values = rounded(drawn(shape, kind), kind)
            expected = order(values, dim, descending)
            for name, rest in (("Sort", {"stable": True, "descending": descending}),
                               ("Topk", {"k": shape[dim], "largest": descending, "sorted": True})):  # fmt: skip
                made = tensor(values, kind, layout)
                found, places = call(name, self=made, dim=dim, valuesOut=made, indicesOut=empty(shape, "I64"), **rest)
                np.testing.assert_array_equal(places, expected)
                np.testing.assert_array_equal(found, np.take_along_axis(values, expected, dim))


def shape_of(made):
    sizes, rank = ffi.new("int64_t **"), ffi.new("uint64_t *")
    assert lib.aclGetViewShape(made.handle, sizes, rank) == 0
    return tuple(sizes[0][axis] for axis in range(rank[0]))


def filled(made):
    """What an output of any number of elements holds, in the shape that it got."""
    shape = shape_of(made)
    return made.kind.decode(made.stored()[: int(np.prod(shape))]).reshape(shape)


@pytest.mark.parametrize("kind", ["F32", "F16", "I64", "U8", "B", "F64"])
def test_unique(kind):
    for shape, layout in itertools.product([(30,), (3, 40), (2, 3, 5), (0,), ()], LAYOUTS):
        values = rounded(drawn(shape, kind), kind)
        values = np.where(np.isnan(values), 0, values)
        expected, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        out, back, times = empty((values.size,), kind), empty(shape, "I64", layout), empty((values.size,), "I64")
        call("Unique2", self=tensor(values, kind, layout), sorted=True, returnInverse=True, returnCounts=True, valueOut=out,
             inverseOut=back, countsOut=times)  # fmt: skip
        np.testing.assert_array_equal(filled(out), expected)
        np.testing.assert_array_equal(filled(times), counts)
        np.testing.assert_array_equal(back.values(), inverse.reshape(shape))
        out, back = empty((values.size,), kind), empty(shape, "I64")
        call("Unique", self=tensor(values, kind, layout), sorted=False, returnInverse=True, valueOut=out, inverseOut=back)
        np.testing.assert_array_equal(filled(out), expected)
        np.testing.assert_array_equal(back.values(), inverse.reshape(shape))


def test_unique_keeps_every_nan():
    out = empty((5,), "F32")
    call("Unique", self=tensor([np.nan, 1, np.nan, -0.0, 0.0]), sorted=True, returnInverse=False, valueOut=out,
         inverseOut=empty((1,), "I64"))  # fmt: skip
    np.testing.assert_array_equal(filled(out), [0, 1, np.nan, np.nan])


def test_unique_counts_that_would_lie_behind_their_storage():
    """The counts are one row from the first element on, which here is the last one in memory."""
    values, inverse = tensor(np.arange(6.0).reshape(3, 2)), empty((3,), "I64")
    for strides, offset, expected in (([-2, -1], 3, (561103, "aclnnUniqueDim/countsOut/view")), ([2, 1], 0, (0, ""))):
        counts = blank(pages.KINDS["I64"], (2, 2), strides=strides, offset=offset, storage=[8])
        status, rule = refusal("UniqueDim", values, True, True, 0, empty((3, 2)), inverse, counts)
        assert (status, rule if status else "") == expected


def test_unique_slices_in_room_of_another_shape():
    """They are one row from the room's first element on: its strides say nothing of theirs."""
    values, numbers = tensor([[2.0], [1.0], [2.0]]), empty((3,), "I64")
    room = blank(pages.KINDS["F32"], (1, 3), strides=[1 << 20, 2], offset=1, storage=[7])
    call("UniqueDim", self=values, sorted=True, returnInverse=True, dim=0, valueOut=room, inverseOut=numbers,
         countsOut=empty((3,), "I64"))  # fmt: skip
    assert shape_of(room) == (2, 1)
    np.testing.assert_array_equal(room.kind.decode(room.stored())[1:3], [1, 2])
    room = blank(pages.KINDS["F32"], (1, 3), strides=[3, -1], offset=2, storage=[4])
    status, rule = refusal("UniqueDim", values, True, True, 0, room, numbers, empty((3,), "I64"))
    assert (status, rule) == (561103, "aclnnUniqueDim/valueOut/view")


def test_unique_of_many():
    """More than are entered and stored at a time; the inverse is larger than it must be."""
    values = RANDOM.integers(0, 5000, (3, 3001))
    expected, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    for layout in LAYOUTS:
        out, back, times = empty((values.size,), "I16"), empty(values.shape, "I64", layout), empty((values.size,), "I64")
        call("Unique2", self=tensor(values, "I32", layout), sorted=True, returnInverse=True, returnCounts=True,
             valueOut=out, inverseOut=back, countsOut=times)  # fmt: skip
        np.testing.assert_array_equal(filled(out), expected)
        np.testing.assert_array_equal(back.values(), inverse.reshape(values.shape))
        np.testing.assert_array_equal(filled(times), counts)
        starts = np.flatnonzero(np.diff(values.ravel() // 1000, prepend=-1))
        back = empty((3, 3100), "I32", layout)
        before = back.values().ravel()
        call("UniqueConsecutive", self=tensor(values // 1000, "C64", layout), returnInverse=True, returnCounts=True, dim=1000,
             valueOut=empty((values.size,), "C64", layout), inverseOut=back,
             countsOut=empty((values.size,), "I32", layout))  # fmt: skip
        runs = np.searchsorted(starts, np.arange(values.size), "right") - 1
        np.testing.assert_array_equal(back.values().ravel(), [*runs, *before[values.size :]])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_unique_slices(layout):
    values = RANDOM.integers(0, 2, (6, 2, 5)).astype(float)
    for dim in (0, 1, -1):
        expected, inverse, counts = np.unique(values, return_inverse=True, return_counts=True, axis=dim)
        size = values.shape[dim]
        out, back, times = empty(values.shape), empty((size,), "I64"), empty((size,), "I64")
        call("UniqueDim", self=tensor(values, "F32", layout), sorted=True, returnInverse=True, dim=dim, valueOut=out,
             inverseOut=back, countsOut=times)  # fmt: skip
        np.testing.assert_array_equal(filled(out), expected)
        np.testing.assert_array_equal(back.values(), inverse.ravel())
        np.testing.assert_array_equal(filled(times), counts)


def test_unique_consecutive():
    values = np.array([[1, 1, 2], [2, 2, 1], [1, 1, 1]])
    for kind, integers in (("F32", "I64"), ("C64", "I32"), ("B", "I64")):
        flat = rounded(values - 1, kind).ravel()
        starts = np.flatnonzero(np.diff(flat, prepend=-1))
        out, back, times = empty((9,), kind), empty((3, 3), integers), empty((9,), integers)
        call("UniqueConsecutive", self=tensor(values - 1, kind), returnInverse=True, returnCounts=True, dim=1000,
             valueOut=out, inverseOut=back, countsOut=times)  # fmt: skip
        np.testing.assert_array_equal(filled(out), flat[starts])
        np.testing.assert_array_equal(filled(times), np.diff(starts, append=9))
        np.testing.assert_array_equal(back.values().ravel(), np.searchsorted(starts, np.arange(9), "right") - 1)
    rows = np.array([[1, 2], [1, 2], [3, 4], [1, 2]])
    out, back, times = empty((8,)), empty((4,), "I64"), empty((4,), "I64")
    call("UniqueConsecutive", self=tensor(rows), returnInverse=True, returnCounts=True, dim=0, valueOut=out, inverseOut=back,
         countsOut=times)  # fmt: skip
    np.testing.assert_array_equal(filled(out), [[1, 2], [3, 4], [1, 2]])
    assert back.values().tolist() == [0, 0, 1, 2] and filled(times).tolist() == [2, 1, 1]


def test_argsort():
    values = drawn((4, 50), "F32")
    for descending in (False, True):
        places = call("Argsort", self=tensor(values), dim=-1, descending=descending, out=empty((4, 50), "I64"))
        np.testing.assert_array_equal(places, order(values, -1, descending))


def test_search():
    for kind, layout in itertools.product(["F32", "F16", "I64", "U8"], LAYOUTS):
        sequence, values = np.sort(RANDOM.integers(0, 30, 20)), RANDOM.integers(0, 35, (7, 9))
        for right, wide in itertools.product((False, True), (False, True)):
            out = "I64" if wide else "I32"
            expected = np.searchsorted(sequence, values, "right" if right else "left")
            found = call("Bucketize", self=tensor(values, "F32", layout), boundaries=tensor(sequence, kind, layout),
                         outInt32=not wide, right=right, out=empty((7, 9), out, layout))  # fmt: skip
            np.testing.assert_array_equal(found, expected)
            turn = RANDOM.permutation(20)
            for given, sorter in ((sequence, None), (sequence[np.argsort(turn)], tensor(turn, "I64"))):
                found = call("SearchSorteds", sortedSequence=tensor(given, kind, layout), self=int(values[0, 0]),
                             outInt32=not wide, right=right, sorter=sorter, out=empty((1,), out))  # fmt: skip
                np.testing.assert_array_equal(found, [expected[0, 0]])


def test_search_of_lines():
    for kind, layout in itertools.product(["F32", "F16", "I64", "U8"], LAYOUTS):
        lines, values = np.sort(RANDOM.integers(0, 30, (2, 3, 8)), -1), RANDOM.integers(0, 35, (2, 3, 5))
        order = RANDOM.permuted(np.broadcast_to(np.arange(8), lines.shape), axis=-1)
        shuffled = np.empty_like(lines)
        np.put_along_axis(shuffled, order, lines, -1)  # so that the sorter `order` gives the lines back
        for right, (given, sorter) in itertools.product((False, True), ((lines, None), (shuffled, order))):
            expected = np.stack([np.searchsorted(line, some, "right" if right else "left")
                                 for line, some in zip(lines.reshape(-1, 8), values.reshape(-1, 5))])
            found = call("SearchSorted", sortedSequence=tensor(given, kind, layout), self=tensor(values, "F32", layout),
                         outInt32=False, right=right, sorter=None if sorter is None else tensor(sorter, "I64", layout),
                         out=empty((2, 3, 5), "I64", layout))  # fmt: skip
            np.testing.assert_array_equal(found, expected.reshape(2, 3, 5))
        found = call("SearchSorted", sortedSequence=tensor(lines[0, 0], kind, layout), self=tensor(values, "I32", layout),
                     outInt32=True, right=False, sorter=None, out=empty((2, 3, 5), "I32", layout))  # fmt: skip
        np.testing.assert_array_equal(found, np.searchsorted(lines[0, 0], values))


def test_kth_value():
    for kind, layout in itertools.product(["F32", "F16", "BF16", "I8", "I64", "U8"], LAYOUTS):
        values = drawn((3, 40, 2), kind)
        ranked, places = np.sort(values, 1), np.argsort(values, 1, kind="stable")
        for k, keep in ((1, True), (17, False), (40, False)):
            shape = (3, 1, 2) if keep else (3, 2)
            found, where = call("Kthvalue", self=tensor(values, kind, layout), k=k, dim=-2, keepdim=keep,
                                valuesOut=empty(shape, kind, layout), indicesOut=empty(shape, "I64", layout))
            np.testing.assert_array_equal(found.reshape(3, 2), rounded(ranked[:, k - 1], kind))
            where = where.astype(np.int64)
            picked = np.take_along_axis(values, where.reshape(3, 1, 2), 1)[:, 0]
            np.testing.assert_array_equal(picked, ranked[:, k - 1])  # of both zeros either
            first = np.where(ranked[:, k - 1] == 0, where.reshape(3, 2), [
                [np.flatnonzero((values[i, :, j] == picked[i, j]) | (np.isnan(values[i, :, j]) & np.isnan(picked[i, j])))[0]
                 for j in range(2)] for i in range(3)])
            np.testing.assert_array_equal(where.reshape(3, 2), first)


def test_histc():
    values = RANDOM.normal(0, 1, (40, 500)).astype(np.float32).astype(np.float64)
    for least, greatest in ((-1.0, 1.0), (0.0, 0.0)):
        found = call("Histc", self=tensor(values), bins=16, min=least, max=greatest, out=empty((16,)))
        limits = (least, greatest) if least < greatest else (values.min(), values.max())
        np.testing.assert_array_equal(found, np.histogram(values, 16, limits)[0])
    for bins in (7, 5000):  # several pieces, of which the last one is short
        whole = RANDOM.integers(-9, 5009, 90_001)
        found = call("Histc", self=tensor(whole, "I32"), bins=bins, min=0, max=5000, out=empty((bins,), "I32"))
        np.testing.assert_array_equal(found, np.histogram(whole, bins, (0, 5000))[0])
    found = call("Histc", self=tensor([1, 2, 2, 5], "I32"), bins=4, min=1, max=5, out=empty((4,), "I32"))
    assert found.tolist() == [1, 2, 0, 1]
    assert call("Histc", self=tensor([3.0, 3.0]), bins=2, min=0.0, max=0.0, out=empty((2,))).tolist() == [0, 2]


def test_is_in():
    for invert in (False, True):
        values = tensor([[1, 2], [2, 3]], "I64")
        found = call("IsInTensorScalar", element=values, testElement=2, assumeUnique=False, invert=invert,
                     out=empty((2, 2), "B"))  # fmt: skip
        np.testing.assert_array_equal(found, np.array([[0, 1], [1, 0]]) != invert)
        found = call("IsInScalarTensor", element=2, testElements=values, assumeUnique=True, invert=invert,
                     out=empty((2, 2), "B"))  # fmt: skip
        np.testing.assert_array_equal(found, np.array([[0, 1], [1, 0]]) != invert)


def filtered(scores, p, k):
    """The page's steps in float64."""
    out = scores.copy()
    for row in range(len(scores)):
        order = np.argsort(scores[row], kind="stable")
        values = scores[row, order].copy()
        if k is not None:
            values[values < values[len(values) - k[row]]] = -np.inf
        if p is not None:
            powers = np.exp(values - values[-1])
            left_out = np.cumsum(powers / powers.sum()) <= 1 - p[row]
            left_out[-1] = False
            values[left_out] = -np.inf
        out[row, order] = values
    return out


@pytest.mark.parametrize("rows, columns", [(4, 9), (1, 1), (3, 5000), (0, 4)])
def test_scores_that_a_sampler_leaves(rows, columns):
    random = np.random.default_rng([rows, columns])
    for kind, layout in zip(["F32", "F16", "BF16"], LAYOUTS):
        scores = rounded(random.normal(0, 2, (rows, columns)), kind)
        scores[:, columns // 2] = scores[:, 0]  # some are equal
        p = rounded(np.array([0.25, 0.875, 1.0, 0.0])[:rows], kind)
        k = random.integers(1, columns + 1, rows)
        for given_p, given_k in [(p, k), (None, k), (p, None), (None, None)]:
            own = call("ApplyTopKTopP", logits=tensor(scores, kind, layout),
                       p=None if given_p is None else tensor(given_p, kind),
                       k=None if given_k is None else tensor(given_k, "I32"),
                       out=empty(scores.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(own, filtered(scores, given_p, given_k))


def test_a_sampler_without_so_many_scores():
    scores = np.array([[1.0, 3.0, 2.0]] * 4)
    own = call("ApplyTopKTopP", logits=tensor(scores), p=None, k=tensor([0, 4, -1, 1], "I32"), out=empty(scores.shape))
    np.testing.assert_array_equal(own, [*scores[:3], [-np.inf, 3, -np.inf]])


def sampled(scores, k, p, least, most, normalized):
    """The page's steps in float64, row by row: columns in the order that the sampler sees, which of them are kept, prob."""
    rows = []
    for row, line in enumerate(scores):
        ranked = 1 <= k[row] <= min(len(line), most)
        sorts = ranked or p[row] < 1 or least[row] > 0
        columns = np.argsort(-line, kind="stable") if sorts else np.arange(len(line))
        columns = columns[: k[row]] if ranked else columns
        prob = line[columns] if normalized else np.exp(line[columns] - line.max())
        prob = prob if normalized else prob / prob.sum()
        kept = np.ones(len(columns), bool)
        if p[row] < 1:
            kept = np.cumsum(prob) - prob < p[row]
            kept[0] = True
        if least[row] > 0:
            kept &= prob >= prob[0] * least[row] if least[row] < 1 else np.arange(len(columns)) == 0
        rows.append((columns, kept, prob))
    return rows


def choice_of(columns, kept, prob, q):
    return columns[np.argmax(np.where(kept, prob / (1 if q is None else q[: len(columns)] + 1e-8), -1))]


SAMPLERS = [(6, 9, 1024), (1, 1, 1024), (5, 3000, 1024), (6, 700, 12)]


@pytest.mark.parametrize("rows, columns, most", SAMPLERS)
@pytest.mark.parametrize("version", [1, 2])
def test_a_token_that_a_sampler_chooses(version, rows, columns, most):
    """With and without each step; equal scores, too, in the fewest that make p."""
    random = np.random.default_rng([version, rows, columns])
    for number, (kind, layout) in enumerate(zip(["F16", "BF16", "F32" if version == 2 else "F16"] * 2, LAYOUTS * 2)):
        scores = rounded(random.normal(0, 2, (rows, columns)), kind)
        scores[:, columns // 2] = scores[:, 0]
        p = rounded(np.array([0.3, 1.0, 0.85, 0.0, 7.0, 0.5])[:rows], kind)
        k = np.array([columns, -1, columns // 2 + 1, 3, columns + 1, 0])[:rows]
        least = rounded(np.array([0, 0.2, 0.05, -1, 0.0, 1])[:rows], kind) if version == 2 and number % 2 else np.zeros(rows)
        q = np.float32(random.exponential(1, (rows, columns))) if number < 4 else None
        kept = sampled(scores, k, p, least, 1024 if version == 1 else -(-most // 8) * 8, False)
        given = {} if version == 1 else {"minPs": tensor(least[:, None] if number < 3 else least, kind, layout), "ksMax": most,
                                         "inputIsLogits": True, "isNeedSampleResult": False, "logitsIdx": None,
                                         "logitsSortMasked": None}  # fmt: skip
        chosen, left = call(
            "TopKTopPSample" if version == 1 else "TopKTopPSampleV2", logits=tensor(scores, kind, layout),
            topK=tensor(k, "I32", "gaps"), topP=tensor(p, kind, "gaps"), q=None if q is None else tensor(q, "F32", layout),
            eps=1e-8, isNeedLogits=True, topKGuess=32, logitsSelectIdx=empty((rows,), "I64", "gaps"),
            logitsTopKPSelect=empty(scores.shape, "F32", layout), **given)  # fmt: skip
        expected = np.full(scores.shape, -np.inf)
        for row, (order_of, is_kept, _) in enumerate(kept):
            expected[row, order_of[is_kept]] = scores[row, order_of[is_kept]]
        np.testing.assert_array_equal(left, expected)
        np.testing.assert_array_equal(chosen, [choice_of(*row, None if q is None else q[i]) for i, row in enumerate(kept)])


@pytest.mark.parametrize("normalized", [False, True])
def test_what_a_sampler_chooses_from(normalized):
    random = np.random.default_rng(normalized)
    for kind, layout in zip(["F16", "BF16", "F32"], LAYOUTS):
        scores = rounded(random.normal(0, 2, (6, 40)), kind)
        scores = rounded(np.exp(scores) / np.exp(scores).sum(1, keepdims=True), kind) if normalized else scores
        k, p = np.array([40, 1, 20, 0, 7, 41]), rounded(np.array([0.3, 1, 0.85, 0.6, 7, 1]), kind)
        least = rounded(np.array([0, 0.2, 0.05, -1, 0.1, 0]), kind)
        places, probs = call(
            "TopKTopPSampleV2", logits=tensor(scores, kind, layout), topK=tensor(k, "I32"), topP=tensor(p, kind), q=None,
            minPs=tensor(least, kind), eps=1e-8, isNeedLogits=False, topKGuess=1, ksMax=40, inputIsLogits=not normalized,
            isNeedSampleResult=True, logitsSelectIdx=empty((6, 1), "I64"), logitsTopKPSelect=None,
            logitsIdx=empty((6, 40), "I64", layout), logitsSortMasked=empty((6, 40), "F32", layout))[1:]  # fmt: skip
        for row, (columns, kept, prob) in enumerate(sampled(scores, k, p, least, 40, normalized)):
            np.testing.assert_array_equal(places[row], [*columns, *[0] * (40 - len(columns))])
            expected = np.where(kept, prob, 0)
            # float32: the distance from the largest, its power, the quotient
            near = (4 + np.ptp(scores[row])) * 2.0**-24 * expected
            assert np.all(np.abs(probs[row, : len(columns)] - expected) <= near)
            assert not probs[row, len(columns) :].any()


def test_a_sampler_of_no_numbers():
    """NaN is the greatest; of equal ones, and where NaN leaves no probabilities, the first in order is chosen."""
    scores = np.array([[1.0, np.nan, 3, np.nan], [2, 5, 5, 1], [-np.inf] * 4, [np.inf, 1, np.inf, 0]])
    for k, p in ((2, 1.0), (0, 0.5), (0, 1.0)):
        chosen = call("TopKTopPSample", logits=tensor(scores, "F16"), topK=tensor([k] * 4, "I32"), topP=tensor([p] * 4, "F16"),
                      q=None, eps=1e-8, isNeedLogits=False, topKGuess=32, logitsSelectIdx=empty((4,), "I64"),
                      logitsTopKPSelect=None)  # fmt: skip
        assert chosen.tolist() == [1 if (k, p) != (0, 1.0) else 0, 1, 0, 0]


def test_a_sampler_of_long_rows():
    """The first of equal ones, and of those that are NaN, wherever it stands."""
    rows = np.full((4, 700), 0.25)
    rows[0, [300, 600]] = 0.5
    rows[1, [20, 500, 650]] = 0.5, np.nan, np.nan
    rows[2, 699] = 0.5
    q = np.where(np.arange(700) == 256, 0.125, np.float32(1)) * np.ones((4, 1))
    for divisors, expected in ((None, [300, 500, 699, 0]), (q, [256, 500, 256, 256])):
        chosen = call(
            "TopKTopPSampleV2", logits=tensor(rows), topK=tensor([0] * 4, "I32"), topP=tensor([1.0] * 4), minPs=None,
            q=None if divisors is None else tensor(divisors, "F32", "gaps"), eps=0.0, isNeedLogits=False, topKGuess=1, ksMax=1,
            inputIsLogits=False, isNeedSampleResult=False, logitsSelectIdx=empty((4,), "I64"), logitsTopKPSelect=None,
            logitsIdx=None, logitsSortMasked=None)  # fmt: skip
        assert chosen.tolist() == expected
