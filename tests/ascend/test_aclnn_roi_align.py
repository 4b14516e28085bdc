"""Regions of images: the formula point by point in float64."""

import itertools
import math

import numpy as np

from tests.ascend.calling import LAYOUTS, call, empty, fault, tensor


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


def aligned(images, rois, batch, mode, height, width, ratio, scale, centred=False):
    out = np.empty((len(rois), images.shape[1], height, width))
    for r, c, p, q in np.ndindex(*out.shape):
        x1, y1, x2, y2 = rois[r] * scale - 0.5 * centred
        least = -math.inf if centred else 1
        sizes = max(y2 - y1, least) / height, max(x2 - x1, least) / width
        counts = [ratio or math.ceil(size) for size in sizes]
        values = [sample(images[batch[r], c], y1 + sizes[0] * (p + (i + 0.5) / counts[0]),
                         x1 + sizes[1] * (q + (j + 0.5) / counts[1])) for i, j in np.ndindex(*counts)]
        out[r, c, p, q] = max(values) if mode == "max" else sum(values) / max(len(values), 1)
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


BOXES = np.array([[0, 0, 0, 6, 7], [1.5, 1.5, 2, 4, 6.5], [1, 3, 3, 3, 3], [0, -2, -3, 9, 12], [1, 0, 0, 2, 1]])
SETTINGS = list(itertools.product([(2, 1.0), (0, 1.0), (0, 0.5), (3, 2.0)], [False, True]))


def test_boxes():
    images = np.random.default_rng(2).integers(-8, 9, (2, 3, 7, 6)) / 4
    batch = BOXES[:, 0].astype(int)
    for (kind, unit), ((ratio, scale), centred), layout in itertools.product(
            [("F32", 2.0**-24), ("F16", 2.0**-11)], SETTINGS, LAYOUTS):
        expected = aligned(images, BOXES[:, 1:], batch, "avg", 2, 3, ratio, scale, centred)
        out = call("RoiAlignV2", self=tensor(images, kind, layout), boxes=tensor(BOXES, kind, layout), pooledHeight=2,
                   pooledWidth=3, spatialScale=scale, samplingRatio=ratio, aligned=centred,
                   out=empty(expected.shape, kind, layout))
        np.testing.assert_allclose(out, expected, rtol=unit, atol=2.0**-24)


def test_more_channels_and_bins_than_are_handled_at_once():
    images = np.random.default_rng(5).integers(-8, 9, (2, 19, 7, 6)) / 4
    batch = BOXES[:, 0].astype(int)
    for kind, unit in (("F32", 2.0**-24), ("F16", 2.0**-11)):
        expected = aligned(images, BOXES[:, 1:], batch, "avg", 9, 8, 1, 1.0)
        out = call("RoiAlignV2", self=tensor(images, kind), boxes=tensor(BOXES, kind), pooledHeight=9, pooledWidth=8,
                   spatialScale=1.0, samplingRatio=1, aligned=False, out=empty(expected.shape, kind))
        np.testing.assert_allclose(out, expected, rtol=unit, atol=2.0**-24)


def test_more_points_than_memory_holds():
    given = [tensor(np.ones((1, 1, 3, 3))), tensor(np.zeros((1, 5))), 2, 2, 1.0, 2**61, False, empty((1, 1, 2, 2))]
    assert "no host memory for scratch space" in fault("RoiAlignV2", *given, status=207001)


def test_gradient_of_boxes():
    """The operator is linear in the images: a pixel's slope is the slopes' product with what comes from an image of that
    pixel alone."""
    shape = (2, 2, 5, 4)
    slopes = np.random.default_rng(3).integers(-8, 9, (len(BOXES), 2, 2, 3)) / 4
    batch = BOXES[:, 0].astype(int)
    for ((ratio, scale), centred), layout in zip(SETTINGS, itertools.cycle(LAYOUTS)):
        expected = np.empty(shape)
        for n, c, y, x in np.ndindex(*shape):
            image = np.zeros(shape)
            image[n, c, y, x] = 1
            expected[n, c, y, x] = (slopes * aligned(image, BOXES[:, 1:], batch, "avg", 2, 3, ratio, scale, centred)).sum()
        found = call("RoiAlignV2Backward", gradOutput=tensor(slopes, "F32", layout), boxes=tensor(BOXES, "F32", layout),
                     inputShape=list(shape), pooledHeight=2, pooledWidth=3, spatialScale=scale, samplingRatio=ratio,
                     aligned=centred, gradInput=empty(shape, "F32", layout))
        np.testing.assert_allclose(found, expected, rtol=2.0**-24, atol=2.0**-40)


def test_boxes_of_no_image():
    boxes = tensor(np.array([[2.0, 0, 0, 2, 2], [-1, 0, 0, 2, 2]]))
    out = call("RoiAlignV2", self=tensor(np.ones((2, 1, 3, 3))), boxes=boxes, pooledHeight=1, pooledWidth=1,
               spatialScale=1.0, samplingRatio=1, aligned=True, out=empty((2, 1, 1, 1)))  # fmt: skip
    found = call("RoiAlignV2Backward", gradOutput=tensor(np.ones((2, 1, 1, 1))), boxes=boxes, inputShape=[2, 1, 3, 3],
                 pooledHeight=1, pooledWidth=1, spatialScale=1.0, samplingRatio=1, aligned=True,
                 gradInput=empty((2, 1, 3, 3)))  # fmt: skip
    assert not out.any() and not found.any()


def pooled(images, rois, height, width, scales):
    """In float32, as the page's formulas stand."""
    y, places = np.zeros((len(rois), images.shape[1], height, width)), np.full((len(rois), images.shape[1], height, width), -1)
    number = np.float32
    for r, c, p, q in np.ndindex(*y.shape):
        ranges = []
        for first, last, scale, bin, bins, size in ((2, 4, scales[0], p, height, images.shape[2]),
                                                    (1, 3, scales[1], q, width, images.shape[3])):  # fmt: skip
            begin = number(rois[r, first]) * number(scale)
            length = (number(rois[r, last]) + number(1)) * number(scale) - begin
            step = length / number(bins)
            ends = math.floor(number(bin) * step + begin), math.ceil(number(bin + 1) * step + begin)
            ranges.append(range(*np.clip(ends, 0, size)) if length > 0 else range(0))
        inside = 0 <= rois[r, 0] < len(images)
        for i, j in itertools.product(*ranges) if inside else ():
            value = images[int(rois[r, 0]), c, i, j]
            if places[r, c, p, q] < 0 or value > y[r, c, p, q] or np.isnan(value) > np.isnan(y[r, c, p, q]):
                y[r, c, p, q], places[r, c, p, q] = value, i * images.shape[3] + j
    return y, places


def test_pooling():
    images = np.random.default_rng(4).integers(-8, 9, (2, 3, 7, 6)) / 4  # with equal maxima
    images[1, 1, 3, 4] = np.nan
    rois = np.array([[0, 0, 0, 5, 6], [1, 1, 2, 4, 6], [1, 3, 3, 3, 3], [0, -3, -2, 9, 12], [1, 5, 4, 2, 6],
                     [0, 2, 6, 2, 4.5], [7, 0, 0, 3, 3], [-1, 0, 0, 3, 3]])  # fmt: skip
    for kind, layout, scales, (height, width) in itertools.product(["F32", "F16"], LAYOUTS, [(1.0, 1.0), (0.5, 0.75)],
                                                           [(2, 3), (7, 1), (1, 65)]):
        expected = pooled(images, rois, height, width, scales)
        found = call("RoiPoolingWithArgMax", x=tensor(images, kind, layout),
                     rois=tensor(rois, "F16" if layout == "gaps" else "F32", layout), pooled_h=height, pooled_w=width,
                     spatial_scale_h=scales[0], spatial_scale_w=scales[1], y=empty(expected[0].shape, kind, layout),
                     argmax=empty(expected[0].shape, "I32", layout))  # fmt: skip
        for actual, one in zip(found, expected):
            np.testing.assert_array_equal(actual, one)
