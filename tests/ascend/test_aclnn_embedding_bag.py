"""Bags of rows against the definition."""

import numpy as np
import pytest

from tests.ascend.calling import call, empty, rounded, tensor

SUM, MEAN, MAX = range(3)


@pytest.mark.parametrize("mode", [SUM, MEAN, MAX])
def test_bags(mode):
    rng = np.random.default_rng(mode)
    for kind, layout, width, has_last, padding in [("F32", "row-major", 3, False, -1), ("F16", "reversed", 300, True, 2),
                                                   ("BF16", "gaps", 5, False, -2)]:  # fmt: skip
        table = rounded(rng.uniform(-2, 2, (6, width)), kind)
        indices, offsets = rng.integers(0, 6, 11), np.array([0, 4, 4, 9, 11])[: 5 if has_last else 4]
        bags = np.split(indices, [4, 4, 9])
        skipped = padding if padding >= 0 else 4 if padding == -2 else None
        scales = rounded(rng.uniform(0.5, 2, 11), kind) if mode == SUM else None
        expected, sizes, rows = np.zeros((4, width)), np.zeros(4), np.zeros((4, width) if mode == MAX else 4)
        begin = 0
        for number, bag in enumerate(bags):
            places = [i for i, index in enumerate(bag, begin) if index != skipped]
            begin += len(bag)
            sizes[number] = len(places)
            taken = table[indices[places]]
            if not places:
                continue
            if mode == MAX:
                expected[number], rows[number] = taken.max(axis=0), indices[places][taken.argmax(axis=0)]
            else:
                weights = scales[places] if mode == SUM else np.full(len(places), 1 / len(places))
                expected[number] = (taken * weights[:, None]).sum(axis=0)
        out, bag_of, size, maxima = call(
            "EmbeddingBag", weight=tensor(table, kind, layout), indices=tensor(indices, "I64", layout),
            offsets=tensor(offsets, "I32"), scaleGradByFreq=False, mode=mode, sparse=False,
            perSampleWeights=None if scales is None else tensor(scales, kind), includeLastOffset=has_last,
            paddingIdx=padding, output=empty((4, width), kind, layout), offset2bag=empty((11,), "I64"),
            bagSize=empty((4,), "I64"), maxIndices=empty(rows.shape, "I64"))  # fmt: skip
        np.testing.assert_allclose(out, rounded(expected, kind),
                                   rtol=2.0**-7 if kind == "BF16" else 2.0**-10 if kind == "F16" else 1e-6)  # fmt: skip
        np.testing.assert_array_equal(bag_of, np.repeat([0, 2, 3], [4, 5, 2]))
        np.testing.assert_array_equal(size, sizes)
        np.testing.assert_array_equal(maxima, rows)


def test_indices_outside_the_table_take_no_part():
    out, _, size, _ = call(
        "EmbeddingBag", weight=tensor([[1.0], [2.0]]), indices=tensor([0, 7, -3, 1], "I32"), offsets=tensor([-5, 2], "I32"),
        scaleGradByFreq=False, mode=SUM, sparse=False, perSampleWeights=None, includeLastOffset=False, paddingIdx=-1,
        output=empty((2, 1)), offset2bag=empty((0,), "I32"), bagSize=empty((2,), "I32"), maxIndices=empty((2,), "I32"))  # fmt: skip
    np.testing.assert_array_equal(out, [[1], [2]])
    np.testing.assert_array_equal(size, [1, 1])


def test_of_bags_that_share_an_index_the_last_one_has_it():
    """Offsets that decrease."""
    _, bag_of, size, _ = call(
        "EmbeddingBag", weight=tensor([[1.0]]), indices=tensor([0] * 5, "I64"), offsets=tensor([0, 4, 1, 3], "I64"),
        scaleGradByFreq=False, mode=SUM, sparse=False, perSampleWeights=None, includeLastOffset=False, paddingIdx=-1,
        output=empty((4, 1)), offset2bag=empty((5,), "I64"), bagSize=empty((4,), "I64"),
        maxIndices=empty((4,), "I64"))  # fmt: skip
    np.testing.assert_array_equal(bag_of, [0, 2, 2, 3, 3])
    np.testing.assert_array_equal(size, [4, 0, 2, 2])


def test_an_index_in_no_bag():
    """Before the first offset, and behind the last one where that is an end."""
    for offsets, expected, sizes in (([2, 3, 4], [-1, -1, 0, 1, -1], [1, 1]), ([5], [-1] * 5, [])):
        bags = len(sizes)
        _, bag_of, size, _ = call(
            "EmbeddingBag", weight=tensor([[1.0]]), indices=tensor([0] * 5, "I64"), offsets=tensor(offsets, "I64"),
            scaleGradByFreq=False, mode=SUM, sparse=False, perSampleWeights=None, includeLastOffset=True, paddingIdx=-1,
            output=empty((bags, 1)), offset2bag=empty((5,), "I64"), bagSize=empty((bags,), "I64"),
            maxIndices=empty((bags,), "I64"))  # fmt: skip
        np.testing.assert_array_equal(bag_of, expected)
        np.testing.assert_array_equal(size, sizes)
