"""The manual's maps, losses, image operators, reductions and searches against NumPy, for every prefix and masks."""

import math

import numpy
import pytest

from tests.conformance.ftdsp.calls import ELEMENT, Input, Output, Value, compute
from tests.ftdsp.test_arrays import ALL, FLOATS, ints, masks_agree, values
from tests.ftdsp.test_norms import close, numbers
from understudy.ftdsp import ffi

FLOAT = numpy.float32


# ---- maps ----

def levels(x, scale, zero):
    """In the compute type: division, sum and rounding are float32's."""
    level = x.astype(FLOAT) / FLOAT(scale) + FLOAT(zero)
    with numpy.errstate(invalid="ignore"):
        nearest = numpy.copysign(numpy.floor(numpy.abs(level.astype(float)) + 0.5), level)
    return numpy.nan_to_num(numpy.clip(nearest, -128, 127), nan=0).astype(numpy.int8)


@pytest.mark.parametrize("prefix", FLOATS)
def test_quantisation(prefix):
    kind = ELEMENT[prefix]
    x = numpy.concatenate([values(prefix, 5003, 0, -9, 9),
                           kind([1.02, -0.13, 7, -7, numpy.inf, -numpy.inf, 0.25, -0.25, 0.75,
                                 numpy.nan])])  # fmt: skip
    for scale, zero in ((0.05, 3), (0.5, 0), (0.5, 1), (1 / 3, -7), (6e-5, 0)):
        scale = float(kind(scale))
        tail = numbers(scale=scale, zp=zero, length=x.size)
        q = masks_agree(f"{prefix}_to_i8_quant_s", [Input("x", x), Output("q", x.size, numpy.int8), *tail], "q")
        assert q.tolist() == levels(x, scale, zero).tolist()
        back = masks_agree(f"i8_to_{prefix}_dequant_s", [Input("q", q), Output("x", q.size, kind), *tail], "x")
        assert back.tolist() == ((q.astype(float) - zero) * scale).astype(kind).tolist()
    worked = [Input("x", FLOAT([1.02, -0.13, 7, -7, numpy.inf])), Output("q", 5, numpy.int8),
              *numbers(scale=0.05, zp=3, length=5)]  # fmt: skip
    assert compute("fp_to_i8_quant_s", worked)["q"].tolist() == [23, 0, 127, -128, 127]  # ft-dsp-manual 7


@pytest.mark.parametrize(("count", "segments", "by_axis"), [(1024, 4, 1), (10, 4, 1), (7, 9, 2), (1000, 3, 0), (0, 2, 1)])
@pytest.mark.parametrize("prefix", FLOATS)
def test_dynamic_quantisation(prefix, count, segments, by_axis):
    x, scale, zero = values(prefix, count), values(prefix, segments, 1, 0.05, 0.2), ints(*range(segments))
    length = -(-count // segments)
    expected = numpy.concatenate([levels(x[k * length:(k + 1) * length], float(scale[k]), k) for k in range(segments)]) \
        if by_axis else levels(x, float(scale[0]), 0)
    given = [Input("x", x), Output("q", count, numpy.int8), *numbers(element_num=count), Input("scale", scale),
             Input("zp", zero),
             *numbers(segment_num=segments, axis_num=by_axis)]  # fmt: skip
    assert masks_agree(f"{prefix}_QuantData_s", given, "q").tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["dropout", "dropoutgrad"])
@pytest.mark.parametrize("prefix", FLOATS)
def test_dropout(prefix, name):
    x, mask = values(prefix, 4099), numpy.random.default_rng(1).integers(0, 2, 4099).astype(ELEMENT[prefix])
    given = [Input("input", x), *numbers(scale=1.25, length=x.size), Output("output", x.size, x.dtype), Input("mask", mask)]
    expected = (x.astype(float) * mask * 1.25).astype(FLOAT).astype(x.dtype)
    assert masks_agree(f"{prefix}_{name}_s", given, "output").tobytes() == expected.tobytes()


@pytest.mark.parametrize("prefix", FLOATS)
def test_gradmul(prefix):
    dy, x1, x2 = (values(prefix, (7, 301), seed) for seed in range(3))
    shape, nothing = ints(7, 301), [Value("nothing", None)] * 5
    given = [Input("dy", dy), Input("x1", x1), Input("x2", x2), *[Value("shape", shape)] * 3, *numbers(ndims=2), *nothing,
             Output("dx1", dy.size, dy.dtype), Output("dx2", dy.size, dy.dtype), *nothing[:3]]
    for name, other in (("dx1", x2), ("dx2", x1)):
        expected = (dy.astype(FLOAT) * other.astype(FLOAT)).astype(dy.dtype)
        assert masks_agree(f"{prefix}_gradmul_s", given, name).tobytes() == expected.tobytes()


@pytest.mark.parametrize("larger", [1, 2])
@pytest.mark.parametrize(("shape", "small"),
                         [((7, 301), (7, 1)), ((7, 301), (1, 301)), ((3, 5, 1030), (1, 5, 1)), ((2, 3), (2, 3)),
                          ((4, 0), (4, 1)), ((65, 3), (1, 1))])  # fmt: skip
@pytest.mark.parametrize("prefix", FLOATS)
def test_gradmul_of_a_repeated_factor(prefix, shape, small, larger):
    dy, many, few, size = values(prefix, shape), values(prefix, shape, 1), values(prefix, small, 2), math.prod(small)
    summed = tuple(d for d in range(len(shape)) if small[d] != shape[d])
    wide = dy.astype(float)
    expected = [wide * few, (wide * many).sum(summed, keepdims=True)]
    factors = [(Input("many", many), Output("dx", dy.size, dy.dtype)), (Input("few", few), Output("dx_few", size, dy.dtype))]
    (x1, dx1), (x2, dx2) = factors if larger == 1 else factors[::-1]
    given = [Input("dy", dy), x1, x2, *(Value("shape", ints(*sizes)) for sizes in (shape, small, shape)),
             *numbers(ndims=len(shape)),
             *[Value("nothing", None)] * 5, dx1, dx2, *[Value("nothing", None)] * 3]  # fmt: skip
    for name, wanted in zip(("dx", "dx_few"), expected):
        close(masks_agree(f"{prefix}_gradmul{larger}l_s", given, name), wanted, prefix,
              scale=math.sqrt(max(dy.size // size, 1)))  # fmt: skip


@pytest.mark.parametrize("prefix", FLOATS)
def test_random_normal(prefix):
    def draws(count, seed):
        given = [Output("output", count, ELEMENT[prefix]), *numbers(length=count, seed=seed)]
        return masks_agree(f"{prefix}_random_standard_normal_s", given, "output")

    x = draws(60001, 1234)
    assert numpy.array_equal(x[:1024], draws(1024, 1234)) and not numpy.array_equal(x[:1024], draws(1024, 1235))
    wide = x.astype(float)
    error = 5 / math.sqrt(x.size)  # five standard errors
    assert abs(wide.mean()) < error and abs(wide.var() - 1) < error * math.sqrt(2)
    assert abs((wide**3).mean()) < error * math.sqrt(15) and abs((wide**4).mean() - 3) < error * math.sqrt(96)
    assert abs((wide[:-1] * wide[1:]).mean()) < error
    inside = [numpy.mean(numpy.abs(wide) < limit) for limit in (1, 2, 3)]
    numpy.testing.assert_allclose(inside, [math.erf(limit / math.sqrt(2)) for limit in (1, 2, 3)], atol=error)
    given = [Output("output", 999, ELEMENT[prefix]), *numbers(length=999, mean=3.0, scale=0.5, seed=1234)]
    close(masks_agree(f"{prefix}_random_normal_s", given, "output"), 3 + 0.5 * wide[:999], prefix,
          scale=8192 if prefix == "hp" else 1, slack=1)


# ---- losses ----

@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize(("batch", "classes"), [(2, 3), (33, 7), (1, 1), (0, 4)])
@pytest.mark.parametrize("prefix", FLOATS)
def test_nlllossgrad(prefix, batch, classes, reduction):
    kind = ELEMENT[prefix]
    labels = numpy.random.default_rng(0).integers(0, classes, batch).astype(numpy.int32)
    weight, total = values(prefix, classes, 1, 1, 4), kind([4])
    slopes = values(prefix, batch if reduction == 0 else 1, 2)
    expected = numpy.zeros((batch, classes))
    for i, label in enumerate(labels):
        expected[i, label] = -float(slopes[i if reduction == 0 else 0]) * float(weight[label]) / (4 if reduction == 2 else 1)
    given = [Value("logits", None), Input("loss_grad", slopes), Input("labels", labels), Input("weight", weight),
             Input("total", total),
             Output("logits_grad", batch * classes, kind),
             *numbers(batch=batch, class_num=classes, reduction_type=reduction)]  # fmt: skip
    assert masks_agree(f"{prefix}_nlllossgrad_s", given, "logits_grad").tolist() == expected.astype(kind).ravel().tolist()


def softmax_of(x, axis):
    shifted = x - x.max(axis, keepdims=True)
    logarithm = shifted - numpy.log(numpy.exp(shifted).sum(axis, keepdims=True))
    return numpy.exp(logarithm), logarithm


@pytest.mark.parametrize(("batch", "classes"), [(2, 3), (17, 1030), (1, 1)])
@pytest.mark.parametrize("prefix", ["fp", "hp", "i8"])
def test_softmax_cross_entropy(prefix, batch, classes):
    x, labels = values(prefix, (batch, classes), 0, -5, 5), values(prefix, (batch, classes), 1, 0, 1)
    kind, out = (FLOAT, "fp") if prefix == "i8" else (ELEMENT[prefix], prefix)
    p, logarithm = softmax_of(x.astype(float), 1)
    losses = -(labels.astype(float) * logarithm).sum(1)
    given = [Input("logits", x), Input("labels", labels), Output("probs", x.size, kind), Output("grads", x.size, kind),
             Output("output", 1, kind), Output("sum", batch, kind), *numbers(batch=batch, classes=classes, need_grads=1)]
    for name, expected in (("probs", p), ("grads", p - labels.astype(float)), ("output", losses.mean())):
        close(masks_agree(f"{prefix}_softmax_cross_entropy_with_logits_s", given, name), expected, out, slack=0.01)
    given[3], given[-1] = Value("grads", None), Value("need_grads", 0)
    close(compute(f"{prefix}_softmax_cross_entropy_with_logits_s", given)["probs"], p, out, slack=0.01)


def test_softmax_cross_entropy_worked():
    """ft-dsp-manual 7."""
    given = [Input("x", FLOAT([1, 2, 3, 0, 0, 0])), Input("y", FLOAT([0, 0, 1, 1, 0, 0])), Output("probs", 6, FLOAT),
             Output("grads", 6, FLOAT), Output("output", 1, FLOAT), Output("sum", 2, FLOAT),
             *numbers(batch=2, classes=3, grads=1)]  # fmt: skip
    results = compute("fp_softmax_cross_entropy_with_logits_s", given)
    numpy.testing.assert_allclose(results["output"], [0.753109127], 1e-6)
    numpy.testing.assert_allclose(results["grads"], [0.0900305732, 0.244728471, -0.334759044, -2 / 3, 1 / 3, 1 / 3], 1e-6)


@pytest.mark.parametrize("shape", [(3, 4, 1), (2, 5, 7), (1, 1030, 2)], ids=str)
@pytest.mark.parametrize("prefix", FLOATS)
def test_sparse_softmax_cross_entropy(prefix, shape):
    outer, classes, inner = shape
    x, kind, rows = values(prefix, shape, 0, -5, 5), ELEMENT[prefix], outer * inner
    labels = numpy.random.default_rng(0).integers(0, classes, rows).astype(numpy.int32)
    p, logarithm = softmax_of(x.astype(float), 1)
    of_rows = logarithm.transpose(0, 2, 1).reshape(rows, classes)
    losses = -of_rows[numpy.arange(rows), labels]
    one_hot = numpy.eye(classes)[labels].reshape(outer, inner, classes).transpose(0, 2, 1)
    given = [Input("x", x), Output("losses", 1, kind), Output("sum", rows, kind),
             *numbers(inner=inner, outter=outer, axis=classes),
             Input("labels", labels), *numbers(is_grad=1), Output("output", x.size, kind),
             *numbers(batch=rows, classes=classes),
             Output("partial", rows, kind)]  # fmt: skip
    for name, expected in (("partial", losses), ("losses", losses.mean()), ("output", p - one_hot)):
        close(masks_agree(f"{prefix}_sparse_softmax_cross_entropy_with_logits_s", given, name), expected, prefix, slack=0.01)


# ---- images ----

def average_gradient(dy, image, stride, window, pad):
    out = image.astype(float).copy()
    n, h, w, _ = dy.shape
    for y in range(h):
        for x in range(w):
            for i in range(window[0]):
                for j in range(window[1]):
                    row, column = y * stride[0] - pad[0] + i, x * stride[1] - pad[1] + j
                    if 0 <= row < out.shape[1] and 0 <= column < out.shape[2]:
                        out[:, row, column] += dy[:, y, x].astype(float) / (window[0] * window[1])
    return out


@pytest.mark.parametrize(("dy_shape", "image_size", "stride", "window", "pad"), [
    ((2, 7, 7, 5), (14, 14), (2, 2), (2, 2), (0, 0)), ((1, 2, 2, 1), (3, 3), (2, 2), (2, 2), (1, 1)),
    ((2, 3, 4, 9), (7, 6), (2, 1), (3, 3), (1, 0)), ((1, 3, 2, 2), (5, 9), (1, 4), (2, 5), (0, 1)),
    ((270, 2, 2, 32), (4, 4), (2, 2), (2, 2), (0, 0))])  # fmt: skip
@pytest.mark.parametrize("prefix", FLOATS)
def test_avgpoolinggrad(prefix, dy_shape, image_size, stride, window, pad):
    batch, height, width, channels = dy_shape
    dy, base = values(prefix, dy_shape), values(prefix, (batch, *image_size, channels), 1)
    given = [Input("input", dy), Output("output", base.size, base.dtype, base),
             *numbers(batch=batch, output_h=height, output_w=width, channel=channels, input_w=image_size[1],
                      input_h=image_size[0], stride_w=stride[1], stride_h=stride[0], pad_l=pad[1], pad_u=pad[0],
                      window_w=window[1], window_h=window[0])]  # fmt: skip
    close(masks_agree(f"{prefix}_avgpoolinggrad_s", given, "output"), average_gradient(dy, base, stride, window, pad),
          prefix, slack=8)  # fmt: skip


def test_avgpoolinggrad_worked():
    given = [Input("dy", FLOAT([4, 8, 12, 16])), Output("dx", 9, FLOAT, numpy.zeros(9, FLOAT)),
             *numbers(b=1, oh=2, ow=2, c=1, iw=3, ih=3, sw=2, sh=2, pl=1, pu=1, ww=2, wh=2)]
    assert compute("fp_avgpoolinggrad_s", given)["dx"].tolist() == [1, 2, 2, 3, 4, 4, 3, 4, 4]  # ft-dsp-manual 7


def resize_gradient(dy, image, scales, kind):
    """[batch, channels, height, width]."""
    out, size = image.astype(float).copy(), image.shape[2:]

    def taps(index, axis):
        place = float(FLOAT(index) * FLOAT(scales[axis]))  # a product of float32
        if kind == "bilinear":
            low = max(math.floor(place), 0)
            return min(low, size[axis] - 1), min(math.ceil(place), size[axis] - 1), place - math.floor(place)
        nearest = math.floor(place) if kind == "nearest" else math.floor(place + 0.5)
        return (min(nearest, size[axis] - 1),) * 2 + (0.0,)

    for y in range(dy.shape[2]):
        for x in range(dy.shape[3]):
            (top, bottom, down), (left, right, across) = taps(y, 0), taps(x, 1)
            slope = dy[:, :, y, x].astype(float)
            for row, a in ((top, 1 - down), (bottom, down)):
                for column, b in ((left, 1 - across), (right, across)):
                    out[:, :, row, column] += slope * a * b
    return out


@pytest.mark.parametrize(("name", "kind", "corners"),
                         [("resizebilineargrad", "bilinear", 0), ("resizenearestneighborgrad", "nearest", 0),
                          ("resizenearestneighborgrad", "rounded", 1)])  # fmt: skip
@pytest.mark.parametrize(("shape", "size", "scales"),
                         [((1, 1, 3, 3), (2, 2), (0.5, 0.5)), ((2, 3, 7, 5), (4, 9), (0.6, 1.75)),
                          ((1, 5, 4, 6), (1, 1), (0.25, 0.125)), ((1, 10, 4, 77), (3, 37), (0.6, 0.48)),
                          ((1, 45, 5, 6), (3, 3), (0.6, 0.5)), ((1, 2, 7, 11), (6, 10), (5 / 6, 0.9))], ids=str)  # fmt: skip
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("prefix", FLOATS)
def test_resize_gradients(prefix, layout, shape, size, scales, name, kind, corners):
    scales = [float(FLOAT(s)) for s in scales]
    dy, base = values(prefix, shape), values(prefix, (*shape[:2], *size), 1)
    expected = resize_gradient(dy, base, scales, kind)
    order = (0, 2, 3, 1) if layout == 0 else (0, 1, 2, 3)
    dy, base, expected = (numpy.ascontiguousarray(a.transpose(order)) for a in (dy, base, expected))
    given = [Input("in", dy), Output("out", base.size, base.dtype, base),
             *numbers(batch=shape[0], channel=shape[1], format=layout, align_corners=corners, in_h=shape[2],
                      in_w=shape[3], out_h=size[0], out_w=size[1], hs=scales[0], ws=scales[1])]  # fmt: skip
    close(masks_agree(f"{prefix}_{name}_s", given, "out"), expected, prefix, slack=0.01)


def test_resize_gradients_worked():
    """ft-dsp-manual 7."""
    for name, corners, expected in (("resizebilineargrad", 0, [5.25, 8.25, 14.25, 17.25]),
                                    ("resizenearestneighborgrad", 0, [12, 9, 15, 9]),
                                    ("resizenearestneighborgrad", 1, [1, 5, 11, 28])):  # fmt: skip
        given = [Input("in", numpy.arange(1, 10, dtype=FLOAT)), Output("out", 4, FLOAT, numpy.zeros(4, FLOAT)),
                 *numbers(batch=1, channel=1, format=0, corners=corners, ih=3, iw=3, oh=2, ow=2, hs=0.5, ws=0.5)]
        assert compute(f"fp_{name}_s", given)["out"].tolist() == expected


def test_a_place_between_two_is_found_in_float32():
    """5 / 6 as float32 is less, and 3 times that is 2.5 in float32: row 3 of 7 goes to row 3 of 6."""
    given = [Input("in", numpy.arange(1, 8, dtype=FLOAT)), Output("out", 6, FLOAT, numpy.zeros(6, FLOAT)),
             *numbers(batch=1, channel=1, format=0, corners=1, ih=7, iw=1, oh=6, ow=1, hs=5 / 6, ws=1)]
    assert compute("fp_resizenearestneighborgrad_s", given)["out"].tolist() == [1, 2, 3, 9, 6, 7]
    given = [*numbers(n=1, h=8, w=1, c=1, num=1, scale=0.7, ph=1, pw=1), Input("in", numpy.arange(8, dtype=FLOAT)),
             Output("out", 1, FLOAT), Input("roi", FLOAT([0, 0, 0, 5, 0])), Output("max_c", 1, FLOAT)]
    assert compute("fp_roipooling_s", given)["out"].tolist() == [4]  # 5 times 0.7 is 3.5


@pytest.mark.parametrize("c", [3, 300])
@pytest.mark.parametrize("prefix", ["fp", "hp", "i8"])
def test_roipooling(prefix, c):
    n, h, w, pooled, scale = 2, 9, 11, (3, 2), 0.5
    x = values(prefix, (n, h, w, c), 0, -50, 50)
    rois = numpy.array([[0, 0, 0, 17, 21], [1, 4, 2, 9, 20], [1, 10, 10, 10, 10], [0, -6, -4, 3, 3],
                        [1, 30, 30, 40, 40], [0, 8, 8, 2, 2]])  # fmt: skip
    kind = FLOAT if prefix == "i8" else ELEMENT[prefix]
    expected = numpy.zeros((len(rois), *pooled, c))
    for r, (image, *corners) in enumerate(rois):
        top, left, bottom, right = (math.copysign(math.floor(abs(v * scale) + 0.5), v) for v in corners)
        sizes = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for p in range(pooled[0]):
            for q in range(pooled[1]):
                rows = [min(max(int(top + f(k * sizes[0] / pooled[0])), 0),
                            h) for f, k in ((math.floor, p), (math.ceil, p + 1))]  # fmt: skip
                columns = [min(max(int(left + f(k * sizes[1] / pooled[1])), 0),
                               w) for f, k in ((math.floor, q), (math.ceil, q + 1))]  # fmt: skip
                part = x[image, rows[0]:rows[1], columns[0]:columns[1]].astype(float)
                expected[r, p, q] = part.max((0, 1)) if part.size else 0
    given = [*numbers(n=n, h=h, w=w, c=c, num=len(rois), scale=scale, ph=pooled[0], pw=pooled[1]), Input("in", x),
             Output("out", expected.size, x.dtype), Input("roi", rois.astype(kind)), Output("max_c", c, x.dtype)]
    assert masks_agree(f"{prefix}_roipooling_s", given, "out").tolist() == expected.ravel().tolist()


@pytest.mark.parametrize("crop, channels", [((3, 4), 3), ((1, 5), 3), ((1, 1), 3), ((2, 3), 300)], ids=str)
@pytest.mark.parametrize("prefix", ["fp", "hp", "i8"])
def test_crop_and_resize(prefix, crop, channels):
    x = values(prefix, (2, 5, 7, channels), 0, -50, 50)
    boxes = FLOAT([[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], [0.9, 0.7, 0.2, 0.1], [-0.5, 0, 1.5, 1], [0.5, 0.5, 0.5, 0.5]])
    images = ints(0, 1, 1, 0, 1)

    def places(first, last, points, size):
        first, last = float(first), float(last)
        return [first * (size - 1) + i * (last - first) * (size - 1) / (points - 1) if points > 1 else 0.5 * (first + last) * (size - 1)
                for i in range(points)]

    expected = numpy.zeros((5, *crop, channels))
    for b, (y1, x1, y2, x2) in enumerate(boxes):
        for i, y in enumerate(places(y1, y2, crop[0], 5)):
            for j, at in enumerate(places(x1, x2, crop[1], 7)):
                if not (0 <= y <= 4 and 0 <= at <= 6):
                    expected[b, i, j] = -7.5
                    continue
                rows, columns = (math.floor(y), math.ceil(y)), (math.floor(at), math.ceil(at))
                corner = [[x[images[b], r, c].astype(float) for c in columns] for r in rows]
                upper, lower = (a + (d - a) * (at - columns[0]) for a, d in corner)
                expected[b, i, j] = upper + (lower - upper) * (y - rows[0])
    shapes = [ffi.new("int[]", list(x.shape)), ffi.new("int[]", list(expected.shape))]
    param = ffi.new("CropAndResizeParameter *", {"input_shape_": shapes[0], "output_shape_": shapes[1]})
    for mask in (0xFF, 0x0B):
        from tests.conformance.ftdsp.calls import Invocation, clear
        clear()
        call = Invocation(f"{prefix}_crop_and_resize_anycore",
                          [Input("src", x), Output("dst", expected.size, x.dtype), Input("box_idx", images),
                           Input("boxes", boxes),
                           Value("param", param), Value("outside", -7.5)], {}, mask)  # fmt: skip
        call.run()
        got = call.output("dst", x.dtype)
        if prefix == "i8":
            assert (numpy.abs(got - numpy.trunc(expected).ravel()) <= (numpy.abs(expected - numpy.round(expected)) < 1e-9).ravel()).all()
        else:
            close(got, expected, prefix, slack=0.01)


# ---- reductions and searches ----

MODES = [lambda x, a: x.mean(a), lambda x, a: x.max(a), lambda x, a: x.min(a), lambda x, a: x.prod(a), lambda x, a: x.sum(a),
         lambda x, a: (x**2).sum(a), lambda x, a: numpy.abs(x).sum(a), lambda x, a: numpy.sqrt((x**2).sum(a))]
RESULTS = {"fp": "fp", "hp": "hp", "dp": "dp", "i8": "i8", "i16": "hp", "i32": "fp"}


@pytest.mark.parametrize("mode", range(8))
@pytest.mark.parametrize(("shape", "axes"),
                         [((6, 7), [1]), ((3, 4, 5), [0, 2]), ((2, 3, 4, 2), [3, 1, 0]), ((5, 1001), [0]),
                          ((1001, 5), [0, 1])], ids=str)  # fmt: skip
@pytest.mark.parametrize("prefix", ["fp", "hp", "dp", "i8", "i16", "i32"])
def test_reduce(prefix, shape, axes, mode):
    x = values(prefix, shape, 0, -2, 2) if mode != 3 or prefix.startswith("i") else values(prefix, shape, 0, 0.9, 1.1)
    expected = MODES[mode](x.astype(float), tuple(axes))
    left, steps = list(shape), []
    for axis in axes:
        steps.append((math.prod(left[:axis]), left[axis], math.prod(left[axis + 1:])))
        left[axis] = 1
    arrays = [ffi.new("int[]", list(column)) for column in zip(*steps)]
    param = ffi.new("ReduceParameter *", {"outer_sizes_": arrays[0], "axis_sizes_": arrays[1], "inner_sizes_": arrays[2],
                                          "total_num_": x.size, "num_axes_": len(axes), "mode_": mode,
                                          "output_num_": expected.size})  # fmt: skip
    result = RESULTS[prefix]
    given = [Input("src", x), Output("dst", expected.size, ELEMENT[result]), Value("param", param)]
    got = masks_agree(f"{prefix}_reduce_s", given, "dst")
    if result == "i8":
        near = numpy.abs(expected - numpy.round(expected)).ravel() < 1e-9
        wanted = numpy.clip(numpy.trunc(expected), -128, 127).ravel()
        assert (numpy.abs(got - wanted) <= near).all() and (mode in (0, 7) or numpy.array_equal(got, wanted))
    else:
        with numpy.errstate(over="ignore"):
            numpy.testing.assert_allclose(got, expected.ravel().astype(ELEMENT[result]),
                                          rtol=float(numpy.finfo(ELEMENT[result]).eps) * 8,
                                          atol=float(numpy.abs(x.astype(float)).sum()) * 2.0**-48 + (2.0**-24 if result == "hp" else 0))  # fmt: skip


@pytest.mark.parametrize("prefix", ["fp", "i16"])
def test_reduce_of_nothing(prefix):
    """An empty axis gives the value of no elements to as many results as the other sizes say, in any step."""
    for steps in ([(2, 0, 1)], [(0, 5, 1), (60000, 0, 1)], [(3, 0, 4), (3, 1, 4), (1, 3, 4)]):
        arrays = [ffi.new("int[]", list(column)) for column in zip(*steps)]
        count = steps[-1][0] * steps[-1][2]
        for mode, nothing in enumerate([numpy.nan, -numpy.inf, numpy.inf, 1, 0, 0, 0, 0]):
            param = ffi.new("ReduceParameter *", {"outer_sizes_": arrays[0], "axis_sizes_": arrays[1],
                                                  "inner_sizes_": arrays[2], "num_axes_": len(steps), "mode_": mode,
                                                  "output_num_": count})  # fmt: skip
            given = [Input("src", values(prefix, 4)), Output("dst", count, ELEMENT[RESULTS[prefix]]), Value("param", param)]
            got = masks_agree(f"{prefix}_reduce_s", given, "dst")
            assert numpy.array_equal(got, numpy.full(count, nothing), equal_nan=True), (steps, mode)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(("shape", "axis", "top"), [((3, 4), 1, 2), ((5, 6, 7), 1, 1), ((4, 9), 0, 4), ((2, 1030), 1, 3),
                                                    ((2, 300, 3), 1, 140), ((3, 700), 1, 700)], ids=str)  # fmt: skip
@pytest.mark.parametrize("prefix", FLOATS)
def test_best(prefix, shape, axis, top, name):
    x = numpy.round(values(prefix, shape, 0, -9, 9))  # ties
    sign = -1 if name == "argmax" else 1
    order = numpy.take(numpy.argsort(sign * x.astype(float), axis, kind="stable"), range(top), axis)
    picked = numpy.take_along_axis(x, order, axis)

    def strides(sizes):
        return ints(*(math.prod(sizes[d + 1:]) for d in range(len(sizes))))

    given = [Input("input", x), Output("output", order.size, numpy.int32), Output("values", order.size, x.dtype),
             *[Value(key, ints(*v)) for key, v in (("shape", shape), ("in", strides(shape)), ("out", strides(order.shape)))],
             Output("elements", shape[axis], x.dtype), Output("index", shape[axis], numpy.int32),
             *numbers(topk=top, out_value=1, rank=len(shape), axis=axis)]
    assert masks_agree(f"{prefix}_{name}_s", given, "output").tolist() == order.ravel().tolist()
    assert masks_agree(f"{prefix}_{name}_s", given, "values").tobytes() == picked.tobytes()


@pytest.mark.parametrize("shape", [(4, 5, 6), (3, 5, 141)], ids=str)
@pytest.mark.parametrize("prefix", ALL)
def test_nonzero(prefix, shape):
    x = values(prefix, shape)
    x[numpy.random.default_rng(1).integers(0, 2, x.shape) == 1] = 0
    expected = numpy.argwhere(x)
    given = [Input("input", x), Output("output", expected.size, numpy.int32), Output("count", 1, numpy.int32, ints(0)),
             Value("strides", ints(shape[1] * shape[2], shape[2], 1)), Value("shape", ints(*shape)),
             *numbers(rank=3, length=x.size)]  # fmt: skip
    assert masks_agree(f"{prefix}_nonzero_s", given, "output").tolist() == expected.ravel().tolist()
    assert masks_agree(f"{prefix}_nonzero_s", given, "count").tolist() == [len(expected)]


@pytest.mark.parametrize("prefix", ALL)
def test_sparsefillemptyrows(prefix):
    kind = ELEMENT[prefix]
    cases = [([(0, 1), (2, 0), (2, 3)], 4), ([(3, 0), (1, 1), (3, 2), (0, 9), (1, 5)], 6), ([], 3)]
    for entries, rows in cases:
        entries = numpy.array(entries, numpy.int32).reshape(-1, 2)
        x = numpy.arange(5, 5 + len(entries)).astype(kind)
        wanted, reverse = [], [0] * len(entries)
        for row in range(rows):
            mine = [i for i, entry in enumerate(entries) if entry[0] == row]
            for i in mine:
                reverse[i] = len(wanted)
                wanted.append((*entries[i], x[i]))
            wanted += [] if mine else [(row, 0, kind(-1))]
        given = [*numbers(N=len(entries), rank=2, rows=rows), Input("indices", entries), Input("values", x),
                 *numbers(default=-1),
                 Output("scratch", rows, numpy.int32), Output("out", 2 * len(wanted), numpy.int32),
                 Output("y", len(wanted), kind),
                 Output("reverse", len(entries), numpy.int32), Output("filled", rows, numpy.int32)]  # fmt: skip
        symbol = f"{prefix}_sparsefillemptyrows_s"
        assert masks_agree(symbol, given, "out").tolist() == [v for row in wanted for v in row[:2]]
        assert masks_agree(symbol, given, "y").tolist() == [row[2] for row in wanted]
        assert masks_agree(symbol, given, "reverse").tolist() == reverse
        counts = [sum(int(e[0]) == row for e in entries) for row in range(rows)]
        assert masks_agree(symbol, given, "filled").tolist() == counts
    assert reverse == [] and len(wanted) == 3


@pytest.mark.parametrize("prefix", ["fp", "hp", "dp", "i8", "i16", "i32"])
def test_lsh_projection(prefix):
    seeds, feature = values("fp", (3, 7)), numpy.random.default_rng(1).integers(-(2**31), 2**31, 11).astype(numpy.int32)
    weight = values(prefix, 11)

    def hashed(seed, number):
        value = 0xCBF29CE484222325
        for byte in seed.tobytes() + number.tobytes():
            value = (value ^ byte) * 0x100000001B3 % 2**64
        return value - 2**64 if value >= 2**63 else value

    for weights in (weight, None):
        expected = []
        for group in seeds:
            bits = 0
            for seed in group:
                score = sum((1.0 if weights is None else float(weights[k])) * float(hashed(seed, feature[k]))
                            for k in range(11))  # fmt: skip
                bits = bits * 2 + (score > 0)
            expected.append(bits)
        given = [Input("seed", seeds), Input("feature", feature),
                 Value("weight", None) if weights is None else Input("weight", weights),
                 Output("output", 3, numpy.int32), *numbers(groups=3, bits=7, features=11)]  # fmt: skip
        assert masks_agree(f"{prefix}_lsh_projection_s", given, "output").tolist() == expected
