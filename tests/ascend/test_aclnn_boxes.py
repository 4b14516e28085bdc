"""What boxes share, against float64 and the worked numbers of public pages."""

import itertools

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, random, rounded, tensor


def overlaps(boxes, others, eps, of_second):
    left, low, right, high = boxes.T
    left2, low2, right2, high2 = others.T
    width = np.minimum(right, right2) - np.maximum(left, left2)
    height = np.minimum(high, high2) - np.maximum(low, low2)
    shared = np.maximum(width, 0) * np.maximum(height, 0)
    first, second = (right - left + eps) * (high - low + eps), (right2 - left2 + eps) * (high2 - low2 + eps)
    return shared / (second if of_second else first + second - shared)


def drawn(count, seed, kind):
    corner = random(seed).uniform(0, 10, (count, 2))
    return rounded(np.hstack([corner, corner + random(seed + 1).uniform(1, 9, (count, 2))]), kind)


@pytest.mark.parametrize("kind, unit", [("F32", 2.0**-20), ("F16", 1.01 * 2.0**-11), ("BF16", 1.01 * 2.0**-8)])
@pytest.mark.parametrize("mode", ["iou", "iof"])
def test_overlaps(kind, unit, mode):
    for layout, eps, (m, n) in itertools.product(LAYOUTS, (0.0, 0.01, 1.0), ((3, 5), (70, 300), (0, 3), (4, 0))):
        boxes, others = drawn(m, 1, kind), drawn(n, 3, kind)
        put = lambda x: tensor(x, kind, layout)
        found = call("Iou", bBoxes=put(boxes), gtBoxes=put(others), mode=mode, eps=eps, aligned=False,
                     overlap=empty((m, n), kind, layout))  # fmt: skip
        expected = overlaps(boxes[:, None].reshape(-1, 4).repeat(n, 0), np.tile(others, (m, 1)), eps,
                            mode == "iof").reshape(m, n)  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=unit, atol=2.0**-20)
        pairs = drawn(m, 5, kind)
        found = call("Iou", bBoxes=put(boxes), gtBoxes=put(pairs), mode=mode, eps=eps, aligned=True,
                     overlap=empty((m, 1), kind, layout))  # fmt: skip
        np.testing.assert_allclose(found, overlaps(boxes, pairs, eps, mode == "iof")[:, None], rtol=unit, atol=2.0**-20)


def test_worked_numbers():
    """aclnnIou's page: 1 of 8 + 15 - 1; npu_iou's page, whose boxes overlap themselves by 0.9961 in float16."""
    one, two = tensor([[1.0, 1, 5, 3]]), tensor([[4.0, 2, 9, 5]])
    np.testing.assert_allclose(call("Iou", bBoxes=one, gtBoxes=two, mode="iou", eps=0.0, aligned=True,
                                    overlap=empty((1, 1))), 1 / 22, rtol=1e-6)  # fmt: skip
    box = tensor([[10.0, 10, 20, 20]], "F16")
    found = call("Iou", bBoxes=box, gtBoxes=box, mode="iou", eps=0.01, aligned=False, overlap=empty((1, 1), "F16"))
    assert round(float(found[0, 0]), 4) == 0.9961
