"""Operators by name of boxes beside their formulas in float64, and the examples of the PyTorch adapter's and MindSpore's pages."""

import numpy as np
import pytest

from tests.ascend.test_aclnn_roi_align import BOXES as REGIONS
from tests.ascend.test_aclnn_roi_align import SETTINGS, aligned
from tests.ascend.test_operators_by_name import close, differences_agree, drawn, like
from tests.conformance.ascend.by_name import results

RANDOM = np.random.default_rng(11)


def boxes_of(count, centred=False, dtype="float32"):
    """[4, count], near each other."""
    corners = RANDOM.uniform(-4, 4, (2, count))
    sizes = RANDOM.uniform(0.5, 6, (2, count))
    return np.concatenate([corners, sizes if centred else corners + sizes]).astype(dtype)


# ---- how much two boxes have in common ----


def corners_of(boxes, centred):
    x, y, width, height = boxes
    return [x - width / 2, y - height / 2, x + width / 2, y + height / 2] if centred else [x, y, width, height]


def in_common(boxes, others, centred, of_distance):
    """Of float64 arrays [4, …]."""
    a, b = corners_of(boxes, centred), corners_of(others, centred)
    shared, around = ([outer(a[k + 2], b[k + 2]) - inner(a[k], b[k]) for k in (0, 1)]
                      for outer, inner in ((np.minimum, np.maximum), (np.maximum, np.minimum)))
    common = np.maximum(shared[0], 0) * np.maximum(shared[1], 0)
    union = sum((one[2] - one[0]) * (one[3] - one[1]) for one in (a, b)) - common
    if of_distance:
        distance = sum((a[k] + a[k + 2] - b[k] - b[k + 2]) ** 2 for k in (0, 1)) / 4
        return common / union - distance / (around[0] ** 2 + around[1] ** 2)
    hull = around[0] * around[1]
    return common / union - (hull - union) / hull


KINDS = pytest.mark.parametrize("name", ("GIoU", "DIoU"))


@KINDS
@pytest.mark.parametrize("centred", (False, True))
@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_what_boxes_have_in_common(name, centred, dtype):
    for count, others in ((1, 1), (37, 37), (5, 3), (0, 0), (0, 3), (4, 0)):
        a, b = boxes_of(count, centred, dtype), boxes_of(others, centred, dtype)
        wide = a.astype(np.float64), b.astype(np.float64)
        pairs = in_common(wide[0][:, None], wide[1][:, :, None], centred, name == "DIoU")
        attributes = {"trans": centred, "is_cross": True, "mode": "iou"}
        close(results(name, [a, b], [like(others, count, dtype=dtype)], attributes)[0], pairs, dtype)
        if count == others:
            found = results(name, [a, b], [like(1, count, dtype=dtype)], {**attributes, "is_cross": False})[0]
            close(found, np.diag(pairs)[None], dtype)


@KINDS
def test_a_box_has_everything_in_common_with_itself(name):
    """The adapter's example."""
    boxes = RANDOM.uniform(0, 1, (4, 10)).astype(np.float16)
    found = results(name, [boxes, boxes], [like(1, 10, dtype="float16")], {"trans": True, "is_cross": False, "mode": "iou"})[0]
    np.testing.assert_array_equal(found, np.ones((1, 10), np.float16))


@KINDS
@pytest.mark.parametrize("centred", (False, True))
def test_slopes_of_what_boxes_have_in_common(name, centred):
    for count in (1, 23, 0):
        a, b, slopes = boxes_of(count, centred), boxes_of(count, centred), drawn(count)
        attributes = {"trans": centred, "is_cross": False, "mode": "iou"}
        gradients = results(f"{name}Grad", [slopes, a, b], [like(4, count)] * 2, attributes)
        differences_agree(lambda a, b, s=slopes: (s * in_common(a, b, centred, name == "DIoU")).sum(), (a, b), gradients)


@KINDS
def test_slopes_where_boxes_touch_or_have_an_edge_in_common(name):
    """PyTorch's: half of it for each of equal ones."""
    torch = pytest.importorskip("torch")
    a = np.array([[0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [2, 2, 2, 2, 3], [2, 2, 2, 2, 3]], np.float32)
    b = np.array([[2, 0, 0, 5, 0], [0, 0, 1, 5, 0], [4, 2, 2, 6, 4], [2, 2, 3, 6, 4]], np.float32)
    x, y = (torch.tensor(one, dtype=torch.float64, requires_grad=True) for one in (a, b))
    shared = (torch.minimum(x[2:], y[2:]) - torch.maximum(x[:2], y[:2])).clamp(min=0).prod(0)
    around = torch.maximum(x[2:], y[2:]) - torch.minimum(x[:2], y[:2])
    union = (x[2:] - x[:2]).prod(0) + (y[2:] - y[:2]).prod(0) - shared
    distance = ((x[:2] + x[2:] - y[:2] - y[2:]) ** 2).sum(0) / 4
    rest = distance / (around**2).sum(0) if name == "DIoU" else 1 - union / around.prod(0)
    (shared / union - rest).sum().backward()
    found = results(f"{name}Grad", [np.ones(5, np.float32), a, b], [like(4, 5)] * 2, {"is_cross": False})
    for one, leaf in zip(found, (x, y)):
        close(one, leaf.grad.numpy())


# ---- from one box to another ----


def test_examples_of_boxes_encoded():
    """The adapter's has a box that ends before it begins; MindSpore's means and deviations are 0 and 1."""
    anchors, truths = np.array([[1, 2, 3, 4], [3, 4, 5, 6]], np.float32), np.array([[5, 6, 7, 8], [7, 8, 9, 6]], np.float32)
    found = results("BoundingBoxEncode", [anchors, truths], [like(2, 4)], {"means": (0.0,) * 4, "stds": (0.1, 0.1, 0.2, 0.2)})[0]
    np.testing.assert_allclose(found, [[40 / 3, 40 / 3, 0, 0], [40 / 3, 20 / 3, 0, np.nan]], rtol=1e-6)
    anchors, truths = np.array([[2, 2, 2, 3]] * 2, np.float32), np.array([[1, 2, 1, 4]] * 2, np.float32)
    found = results("BoundingBoxEncode", [anchors, truths], [like(2, 4)])[0]
    np.testing.assert_allclose(found, [[-1, 0.25, 0, 0.40551758]] * 2, rtol=2e-4)  # the page's has 11 bits


def test_examples_of_boxes_decoded():
    rois, deltas = np.array([[1, 2, 3, 4], [3, 4, 5, 6]], np.float32), np.array([[5, 6, 7, 8], [7, 8, 9, 6]], np.float32)
    attributes = {"means": (0.0,) * 4, "stds": (1.0,) * 4, "max_shape": (10, 10), "wh_ratio_clip": 0.1}
    found = results("BoundingBoxDecode", [rois, deltas], [like(2, 4)], attributes)[0]
    np.testing.assert_allclose(found, [[2.5, 6.5, 9, 9], [9, 9, 9, 9]], rtol=1e-6)
    rois, deltas = np.array([[4, 1, 2, 1], [2, 2, 2, 3]], np.float32), np.array([[3, 1, 2, 2], [1, 2, 1, 4]], np.float32)
    attributes = {"max_shape": (768, 1280), "wh_ratio_clip": 0.016}
    found = results("BoundingBoxDecode", [rois, deltas], [like(2, 4)], attributes)[0]
    np.testing.assert_allclose(found, [[4.194528, 0, 0, 5.194528], [2.1408591, 0, 3.8591409, 60.598152]], rtol=1e-6)


@pytest.mark.parametrize("dtype", ("float32", "float16"))
def test_boxes_coded_and_back(dtype):
    means, deviations, clip, height, width = (0.25, -0.5, 0.125, 0.0), (0.5, 0.25, 2.0, 1.5), 0.25, 5, 7
    for count in (0, 1, 35):
        anchors, truths = (boxes_of(count, dtype=dtype).T.copy() for _ in range(2))
        a, b = anchors.astype(np.float64), truths.astype(np.float64)
        size, other = a[:, 2:] - a[:, :2] + 1, b[:, 2:] - b[:, :2] + 1
        deltas = np.concatenate([(b[:, :2] + b[:, 2:] - a[:, :2] - a[:, 2:]) / 2 / size, np.log(other / size)], 1)
        attributes = {"means": means, "stds": deviations}
        found = results("BoundingBoxEncode", [anchors, truths], [like(count, 4, dtype=dtype)], attributes)[0]
        close(found, (deltas - means) / deviations, dtype)
        moves = found.astype(np.float64) * deviations + means
        middle = (a[:, :2] + a[:, 2:]) / 2 + size * moves[:, :2]
        half = (size * np.exp(np.clip(moves[:, 2:], np.log(clip), -np.log(clip))) - 1) / 2
        expected = np.concatenate([middle - half, middle + half], 1).clip(0, [width - 1, height - 1] * 2)
        attributes |= {"max_shape": (height, width), "wh_ratio_clip": clip}
        close(results("BoundingBoxDecode", [anchors, found], [like(count, 4, dtype=dtype)], attributes)[0], expected, dtype)


# ---- which boxes are chosen ----


def overlap(a, b):
    shared = np.prod(np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0))
    return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)


def chosen(boxes, order, threshold, most=10**9):
    found = []
    for place in order:
        if len(found) < most and all(overlap(boxes[place], boxes[other]) <= threshold for other in found):
            found.append(place)
    return found


def falling(scores, least):
    return [place for place in np.argsort(-scores, kind="stable") if scores[place] > least]


@pytest.mark.parametrize("dtype", ("float32", "float16"))
@pytest.mark.parametrize("columns", (5, 8))
def test_a_mask_of_boxes(dtype, columns):
    for count in (0, 1, 60):
        boxes = np.concatenate([boxes_of(count).T, RANDOM.uniform(0, 1, (count, columns - 4))], 1).astype(dtype)
        outputs = [like(count, 5, dtype=dtype), like(count, dtype="int32"), like(count, dtype="uint8")]
        same, numbers, mask = results("NMSWithMask", [boxes], outputs, {"iou_threshold": 0.3})
        np.testing.assert_array_equal(same, boxes[:, :5])
        np.testing.assert_array_equal(numbers, np.arange(count))
        expected = chosen(boxes[:, :4].astype(np.float64), range(count), float(np.float32(0.3)))
        np.testing.assert_array_equal(np.flatnonzero(mask), expected)
        assert count < 60 or len(expected) < count


def test_the_example_of_a_mask():
    boxes = np.array([[0, 1, 2, 3, 0.6, 0.5, 0.4, 0.3], [6, 7, 8, 9, 0.4, 0.5, 0.6, 0.7]], np.float16)
    outputs = [like(2, 5, dtype="float16"), like(2, dtype="int32"), like(2, dtype="uint8")]
    same, numbers, mask = results("NMSWithMask", [boxes], outputs, {"iou_threshold": 0.5})
    np.testing.assert_array_equal(same, boxes[:, :5])
    assert numbers.tolist() == [0, 1] and mask.tolist() == [1, 1]


@pytest.mark.parametrize("room, most", ((4, 4), (80, 80), (9, 3), (3, 9), (5, -1)))
@pytest.mark.parametrize("count", (60, 1, 0))
def test_boxes_by_falling_scores(count, room, most):
    boxes, scores = boxes_of(count).T.copy(), RANDOM.integers(0, 12, count).astype(np.float32) / 10  # some are equal
    given = [boxes, scores, np.array(most, np.int32), np.array(0.3, np.float32), np.array(0.2, np.float32)]
    expected = chosen(boxes.astype(np.float64), falling(scores, np.float32(0.2)), float(np.float32(0.3)), min(room, most))
    for corners in (boxes, boxes[:, [2, 1, 0, 3]], boxes[:, [2, 3, 0, 1]]):  # any two that lie opposite
        numbers, found = results("NonMaxSuppressionV4", [corners.copy(), *given[1:]], [like(room, dtype="int32"), like(dtype="int32")],
                                 {"pad_to_max_output_size": room > most})  # fmt: skip
        assert numbers.tolist() == expected + [0] * (room - len(expected)) and found == len(expected)


def test_a_score_that_is_no_number_is_not_chosen():
    boxes, scores = boxes_of(3).T.copy(), np.array([0.5, np.nan, 0.75], np.float32)
    given = [boxes, scores, np.array(3, np.int32), np.array(1, np.float32), np.array(0, np.float32)]
    numbers, found = results("NonMaxSuppressionV4", given, [like(3, dtype="int32"), like(dtype="int32")])
    assert numbers.tolist() == [2, 0, 0] and found == 2


@pytest.mark.parametrize("own", (False, True))
@pytest.mark.parametrize("images, count, classes, most, room", ((2, 40, 3, 4, 9), (1, 5, 1, 9, 20), (0, 3, 2, 1, 2), (2, 0, 3, 2, 2)))
def test_boxes_of_classes(own, images, count, classes, most, room):
    """`own`: every class has boxes of its own."""
    each = classes if own else 1
    boxes = boxes_of(images * count * each).T.reshape(images, count, each, 4).copy()
    scores = RANDOM.permutation(images * count * classes).reshape(images, count, classes).astype(np.float32) / 400
    attributes = {"score_threshold": 0.05, "iou_threshold": 0.3, "max_size_per_class": most, "max_total_size": room,
                  "change_coordinate_frame": False, "transpose_box": False}  # fmt: skip
    outputs = [like(images, room, 4), like(images, room), like(images, room), like(images, dtype="int32")]
    found = results("BatchMultiClassNonMaxSuppression", [boxes, scores], outputs, attributes)
    for image in range(images):
        best = []
        for kind in range(classes):
            corners = boxes[image, :, kind if own else 0].astype(np.float64)
            order = falling(scores[image, :, kind], np.float32(0.05))
            best += [(scores[image, place, kind], kind, corners[place]) for place in chosen(corners, order, float(np.float32(0.3)), most)]
        best = sorted(best, key=lambda one: -one[0])[:room]
        assert found[3][image] == len(best)
        for place in range(room):
            score, kind, corners = best[place] if place < len(best) else (0, 0, np.zeros(4))
            assert found[1][image, place] == score and found[2][image, place] == kind
            np.testing.assert_array_equal(found[0][image, place], corners)


# ---- what an image shows within boxes ----


def test_the_example_of_regions():
    x = np.arange(1, 37, dtype=np.float32).reshape(1, 1, 6, 6)
    attributes = {"spatial_scale": 0.25, "pooled_height": 3, "pooled_width": 3, "sample_num": 2, "roi_end_mode": 0}
    found = results("ROIAlign", [x, np.array([[0, -2, -2, 22, 22]], np.float32)], [like(1, 1, 3, 3)], attributes)[0]
    np.testing.assert_allclose(found[0, 0], [[4.5, 6.5, 8.5], [16.5, 18.5, 20.5], [28.5, 30.5, 32.5]], rtol=1e-6)


@pytest.mark.parametrize("setting, centred", SETTINGS)
def test_regions_and_their_gradient(setting, centred):
    """The operator is linear in the images."""
    (ratio, scale), regions = setting, REGIONS.astype(np.float32)
    images, slopes, moved = drawn(2, 3, 7, 6), drawn(len(regions), 3, 2, 3), drawn(2, 3, 7, 6)
    attributes = {"spatial_scale": scale, "pooled_height": 2, "pooled_width": 3, "sample_num": ratio, "roi_end_mode": 3 * centred}
    rest = (REGIONS[:, 1:], REGIONS[:, 0].astype(int), "avg", 2, 3, ratio, scale, centred)
    close(results("ROIAlign", [images, regions], [slopes], attributes)[0], aligned(images.astype(np.float64), *rest))
    found = results("ROIAlignGrad", [slopes, regions], [images], {"xdiff_shape": images.shape, **attributes})[0]
    exact = (slopes * aligned(moved.astype(np.float64), *rest)).sum()
    np.testing.assert_allclose((found.astype(np.float64) * moved).sum(), exact, rtol=1e-5, atol=1e-5)
