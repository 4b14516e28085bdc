"""Regions of images: the formula point by point in float64."""

import itertools
import math

import numpy as np

from tests.ascend.calling import LAYOUTS, call, empty, tensor


def sample(image, y, x):
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    total = 0.0
    for i, j in itertools.product((int(y), int(y) + 1), (int(x), int(x) + 1)):
        weight = (1 - abs(y - i)) * (1 - abs(x - j))
        total += weight * image[i, j] if weight else 0
    return total


def aligned(images, rois, batch, mode, height, width, ratio, scale):
    out = np.empty((len(rois), images.shape[1], height, width))
    for r, c, p, q in np.ndindex(*out.shape):
        x1, y1, x2, y2 = rois[r] * scale
        sizes = max(y2 - y1, 1) / height, max(x2 - x1, 1) / width
        counts = [ratio or math.ceil(size) for size in sizes]
        values = [sample(images[batch[r], c], y1 + sizes[0] * (p + (i + 0.5) / counts[0]),
                         x1 + sizes[1] * (q + (j + 0.5) / counts[1])) for i, j in np.ndindex(*counts)]
        out[r, c, p, q] = max(values) if mode == "max" else sum(values) / len(values)
    return out


def test_regions():
    images = np.random.default_rng(1).integers(-8, 9, (2, 3, 7, 6)) / 4
    rois = np.array([[0, 0, 6, 7], [1.5, 2, 4, 6.5], [3, 3, 3, 3], [-2, -3, 9, 12], [0, 0, 2, 1]])
    batch = np.array([0, 1, 1, 0, 1])
    for (kind, unit), mode, (ratio, scale), layout in itertools.product(
            [("F32", 2.0**-24), ("F16", 2.0**-11)], ["avg", "max"], [(2, 1.0), (0, 1.0), (0, 0.5), (3, 2.0)], LAYOUTS):
        expected = aligned(images, rois, batch, mode, 2, 3, ratio, scale)
        out = call("RoiAlign", self=tensor(images, kind, layout), rois=tensor(rois, kind, layout),
                   batchIndices=tensor(batch, "I64" if layout == "gaps" else "I32"), mode=mode, outputHeight=2,
                   outputWidth=3, samplingRatio=ratio, spatialScale=scale, out=empty(expected.shape, kind, layout))
        np.testing.assert_allclose(out, expected, rtol=unit, atol=2.0**-24)


def test_image_that_is_not_there():
    out = call("RoiAlign", self=tensor(np.ones((1, 1, 3, 3))), rois=tensor(np.array([[0, 0, 2, 2.0]] * 2)),
               batchIndices=tensor([5, -1], "I32"), mode="avg", outputHeight=1, outputWidth=1, samplingRatio=1,
               spatialScale=1.0, out=empty((2, 1, 1, 1)))
    assert not out.any()
