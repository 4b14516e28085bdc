"""Images of another size and their gradients: as matrices along each axis, made from the formulas in float64; against
PyTorch where it is there."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, OF_IMAGES, call, empty, fault, refusal, rounded, tensor
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages

UNITS = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8, "F64": 2.0**-53}


def keys(d, a):
    d = abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0


def meant(scale):
    """The ratio that a scale, of float32 or float64, was rounded from."""
    return Fraction(float(scale)).limit_denominator(1000)


def matrix(mode, size, out, align=False, scale=0.0):
    """y = matrix @ x along an axis."""
    m = np.zeros((out, size))
    step = 1 / scale if scale > 0 else size / out
    if align:
        step = (size - 1) / (out - 1) if out > 1 else 0
    for o in range(out):
        at = o * step if align else (o + 0.5) * step - 0.5
        if mode == "nearest":
            m[o, min(math.floor(o / meant(scale)) if scale > 0 else o * size // out, size - 1)] = 1
        elif mode == "exact":
            place = Fraction(2 * o + 1, 2) / meant(scale) if scale > 0 else (2 * o + 1) * size // (2 * out)
            m[o, min(math.floor(place), size - 1)] = 1
        elif mode == "linear":
            at = min(max(at, 0), size - 1)
            below = int(at)
            m[o, below] += 1 - (at - below)
            m[o, min(below + 1, size - 1)] += at - below
        elif mode == "cubic":
            for tap in range(math.floor(at) - 1, math.floor(at) + 3):
                m[o, min(max(tap, 0), size - 1)] += keys(at - tap, -0.75)
        else:
            centre, width = (o + 0.5) * step, max(step, 1)
            kernel = (lambda d: max(1 - abs(d), 0)) if mode == "linear filter" else (lambda d: keys(d, -0.5))
            reach = (1 if mode == "linear filter" else 2) * width
            for tap in range(max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), size)):
                m[o, tap] = kernel((tap - centre + 0.5) / width)
            m[o] /= m[o].sum()
    return m


def along_axes(x, matrices):
    for axis, m in enumerate(matrices):
        x = np.moveaxis(np.tensordot(m, x, (1, 2 + axis)), 0, 2 + axis)
    return x


FORWARD = {  # name: mode, spatial axes, name of the input, names of the scales, types
    "UpsampleNearest1d": ("nearest", 1, "self", [], "F32 F16 F64 U8"),
    "UpsampleNearest1dV2": ("nearest", 1, "self", ["scaleL"], "F32 F16 BF16 F64 U8"),
    "UpsampleNearest2d": ("nearest", 2, "self", [], "F32 F16 BF16 F64 U8"),
    "UpsampleNearest2dV2": ("nearest", 2, "self", ["scalesH", "scalesW"], "F32 F16 BF16 F64 U8"),
    "UpsampleNearest3d": ("nearest", 3, "self", ["scalesD", "scalesH", "scalesW"], "F32 F16 BF16 F64"),
    "UpsampleNearestExact1d": ("exact", 1, "self", ["scales"], "F32 F16 BF16"),
    "UpsampleNearestExact2d": ("exact", 2, "self", ["scalesH", "scalesW"], "F32 F16 BF16 U8"),
    "UpsampleNearestExact3d": ("exact", 3, "self", ["scalesD", "scalesH", "scalesW"], "F32 F16 BF16"),
    "UpsampleLinear1d": ("linear", 1, "self", ["scale"], "F32 F16 BF16"),
    "UpsampleBilinear2d": ("linear", 2, "self", ["scalesH", "scalesW"], "F32 F16 BF16 F64"),
    "UpsampleTrilinear3d": ("linear", 3, "self", ["scalesD", "scalesH", "scalesW"], "F32 F16 BF16 F64"),
    "UpsampleBicubic2d": ("cubic", 2, "self", ["scalesH", "scalesW"], "F32 F16 BF16"),
    "UpsampleBilinear2dAA": ("linear filter", 2, "input", ["scalesH", "scalesW"], "F32 F16 BF16"),
    "UpsampleBicubic2dAA": ("cubic filter", 2, "x", ["scalesH", "scalesW"], "F32 F16 BF16"),
}  # fmt: skip
BACKWARD = {  # name: mode, spatial axes, name of the result, names of the scales, types
    "UpsampleNearest1dBackward": ("nearest", 1, "out", ["scales"], "F32 F16 BF16 F64"),
    "UpsampleNearest2dBackward": ("nearest", 2, "gradInput", ["scalesH", "scalesW"], "F32 F16 BF16"),
    "UpsampleNearest3dBackward": ("nearest", 3, "gradInput", ["scalesD", "scalesH", "scalesW"], "F32 F16 BF16 F64"),
    "UpsampleNearestExact1dBackward": ("exact", 1, "out", ["scales"], "F32 F16 BF16"),
    "UpsampleNearestExact2dBackward": ("exact", 2, "out", ["scalesH", "scalesW"], "F32 F16 BF16"),
    "UpsampleNearestExact3dBackward": ("exact", 3, "gradInput", ["scalesD", "scalesH", "scalesW"], "F32 F16 BF16"),
    "UpsampleLinear1dBackward": ("linear", 1, "out", ["scales"], "F32 F16 BF16"),
    "UpsampleBilinear2dBackward": ("linear", 2, "out", ["scalesH", "scalesW"], "F32 F16"),
    "UpsampleBilinear2dBackwardV2": ("linear", 2, "out", ["scalesH", "scalesW"], "F32 F16 BF16"),
    "UpsampleTrilinear3dBackward": ("linear", 3, "gradInput", ["scalesD", "scalesH", "scalesW"], "F32 F16 BF16 F64"),
    "UpsampleBicubic2dBackward": ("cubic", 2, "gradInput", ["scalesH", "scalesW"], "F32 F16 BF16"),
    "UpsampleBilinear2dAABackward": ("linear filter", 2, "out", ["scalesH", "scalesW"], "F32 F16 BF16"),
    "UpsampleBicubic2dAAGrad": ("cubic filter", 2, "out", ["scalesH", "scalesW"], "F32 F16 BF16"),
}  # fmt: skip
SIZES = [  # of every axis, from and to; scales
    ((3, 4, 5), (7, 9, 5), (0.0, 0.0, 0.0)),
    ((6, 5, 9), (2, 3, 4), (0.0, -1.0, 0.0)),
    ((2, 3, 4), (5, 6, 10), (2.5, 2.0, 2.5)),
    ((5, 7, 23), (2, 3, 7), (0.4, 0.5, 0.33)),
    ((1, 4, 1), (3, 1, 4), (0.0, 0.0, 0.0)),
]


def cases(table):
    """Each operator with every pair of sizes, corners aligned or not where it can be told."""
    for name, (mode, axes, *rest) in table.items():
        aligns = [False, True] if mode in ("linear", "cubic") else [False]
        for number, ((sizes, outs, scales), align) in enumerate(itertools.product(SIZES, aligns)):
            if "filter" in mode or mode == "exact" or name == "UpsampleBilinear2d":
                scales = tuple(max(scale, 0) for scale in scales)  # these refuse scales below 0
            yield number, name, mode, axes, rest, sizes[-axes:], outs[-axes:], scales[-axes:], align


def settings(names, scales, mode, align):
    given = dict(zip(names, scales))
    return given if mode in ("nearest", "exact") else {"alignCorners": align, **given}


def close(actual, expected, scale, kind):
    """Weights are rounded once, sums have few terms; the result is rounded once."""
    unit = UNITS[kind]
    np.testing.assert_allclose(actual, expected, rtol=unit, atol=64 * scale * min(unit, 2.0**-24))


def test_forward():
    for number, name, mode, axes, (source, names, kinds), sizes, outs, scales, align in cases(FORWARD):
        scales = scales if names else (0.0,) * axes
        x = np.random.default_rng(number).integers(0, 9, (2, 3, *sizes)) / 4
        matrices = [matrix(mode, n, o, align, np.float32(s) if name.endswith("V2") else s)
                    for n, o, s in zip(sizes, outs, scales)]
        for place, kind in enumerate(kinds.split()):
            values = np.floor(x) if kind == "U8" else x
            expected = along_axes(values, matrices)
            layout, other = LAYOUTS[(number + place) % 3], LAYOUTS[place % 3]
            out = call(name, **{source: tensor(values, kind, layout), "outputSize": outs,
                                "out": empty(expected.shape, kind, other), **settings(names, scales, mode, align)})
            if mode in ("nearest", "exact"):
                np.testing.assert_array_equal(out, expected, err_msg=name)
            else:
                close(out, expected, np.abs(x).max(), kind)


@pytest.mark.parametrize("layouts", OF_IMAGES, ids=str)
@pytest.mark.parametrize("name, mode, result", [("Nearest", "nearest", "gradInput"), ("Bilinear", "linear", "out"),
                                                ("Bicubic", "cubic", "gradInput")])  # fmt: skip
def test_channels_side_by_side(name, mode, result, layouts):
    """In one of the images, or in both."""
    shape, outs = (2, 20, 19, 23), (29, 11)
    x, slopes = (np.random.default_rng(seed).integers(0, 9, sizes) / 4 for seed, sizes in enumerate((shape, (2, 20, *outs))))
    matrices = [matrix(mode, n, o) for n, o in zip(shape[2:], outs)]
    more = {"alignCorners": False, "scalesH": 0.0, "scalesW": 0.0} if mode != "nearest" else {}
    back = {"scalesH": 0.0, "scalesW": 0.0, **more}
    for kind in ("F32", "F16", "BF16")[: 2 if name == "Bilinear" else 3]:
        out = call(f"Upsample{name}2d", self=tensor(x, kind, layouts[0]), outputSize=outs,
                   out=empty(slopes.shape, kind, layouts[1]), **more)
        close(out, along_axes(x, matrices), 2, kind)
        dx = call(f"Upsample{name}2dBackward", gradOut=tensor(slopes, kind, layouts[0]), outputSize=outs,
                  inputSize=list(shape), **{result: empty(shape, kind, layouts[1])}, **back)
        close(dx, along_axes(slopes, [m.T for m in matrices]), 16, kind)


def test_nearest_by_scales_that_were_rounded():
    """Places are those of the ratio: by a third every third element, though float32's third is above it, and 15 for 35
    elements by 7 / 3, where the quotient of float64 is below."""
    x = np.arange(200.0).reshape(1, 1, 200)
    for ratio in (Fraction(1, 3), Fraction(3, 20), Fraction(7, 3), Fraction(11, 10), Fraction(37, 3)):
        size = math.floor(200 * ratio)
        expected = [min(math.floor(o / ratio), 199) for o in range(size)]
        for name, scale in (("UpsampleNearest1dV2", "scaleL"), ("UpsampleNearest2dV2", "scalesW"), ("UpsampleNearest3d", "scalesW")):
            axes = int(name[15])
            space, rest = (1,) * (axes - 1), dict.fromkeys(["scalesH", "scalesD"][: axes - 1], 0.0)
            out = call(name, self=tensor(x.reshape(1, 1, *space, 200)), outputSize=[*space, size],
                       out=empty((1, 1, *space, size)), **{scale: float(ratio)}, **rest)
            np.testing.assert_array_equal(out.ravel(), expected, err_msg=f"{name} {ratio}")
        found = call("Resize", self=tensor(x.reshape(1, 1, 1, 200)), scales=[1.0, 1.0, 1.0, float(ratio)], mode="nearest",
                     out=empty((1, 1, 1, int(np.float32(200) * np.float32(ratio)))))
        np.testing.assert_array_equal(found.ravel()[: len(expected)], expected[: found.size])


@pytest.mark.parametrize("name, mode, source", [("UpsampleBilinear2dAA", "linear filter", "input"),
                                                ("UpsampleBicubic2dAA", "cubic filter", "x")])  # fmt: skip
def test_filters_wider_than_the_image(name, mode, source):
    """By scales that do not fit the sizes; those of the smallest ones are even."""
    x = np.random.default_rng(0).integers(0, 9, (2, 3, 5, 7)) / 4
    for scale in (0.1, 0.01, 1e-5, 1e-300, 5e-324):
        across = np.full((1, 7), 1 / 7) if scale < 1e-100 else matrix(mode, 7, 1, scale=scale)
        expected = along_axes(x, [matrix(mode, 5, 4), across])
        out = call(name, **{source: tensor(x)}, outputSize=[4, 1], alignCorners=False, scalesH=0.0, scalesW=scale,
                   out=empty((2, 3, 4, 1)))  # fmt: skip
        close(out, expected, np.abs(x).max(), "F32")


def test_resize():
    for number, ((sizes, scales), mode, (kind, layout)) in enumerate(itertools.product(
            [((5, 7), (2.0, 1.5)), ((4, 9), (0.5, 0.7)), ((1, 3), (3.0, 1.0)), ((10, 1030), (0.7, 1.1))],
            ["nearest", "bilinear"], [("F32", "row-major"), ("F16", "reversed"), ("F32", "gaps")])):
        x = np.random.default_rng(number).integers(0, 9, (2, 3, *sizes)) / 4
        scales = [np.float32(scale) for scale in scales]
        outs = [int(np.float32(size) * scale) for size, scale in zip(sizes, scales)]
        expected = along_axes(x, [matrix("nearest" if mode == "nearest" else "linear", n, o, scale=float(scale))
                                  for n, o, scale in zip(sizes, outs, scales)])
        found = call("Resize", self=tensor(x, kind, layout), scales=[1.0, 1.0, *map(float, scales)], mode=mode,
                     out=empty(expected.shape, kind, layout))
        close(found, expected, np.abs(x).max(), kind)


def test_resize_refuses_channels_last():
    def status(format):
        scales = pages.made({"kind": "FA"}, [1.0, 1.0, 2.0, 2.0])
        return refusal("Resize", tensor(np.ones((1, 2, 3, 4)), format=format), scales, b"nearest",
                       empty((1, 2, 6, 8), format=format))  # fmt: skip

    assert status("NHWC") == (161002, "aclnnResize/self/layout")
    assert status("NCHW")[0] == 0


def test_backward():
    for number, name, mode, axes, (result, names, kinds), sizes, outs, scales, align in cases(BACKWARD):
        dy = np.random.default_rng(number).integers(-8, 9, (2, 3, *outs)) / 4
        matrices = [matrix(mode, n, o, align, s) for n, o, s in zip(sizes, outs, scales)]
        expected = along_axes(dy, [m.T for m in matrices])
        for place, kind in enumerate(kinds.split()):
            layout, other = LAYOUTS[(number + place) % 3], LAYOUTS[place % 3]
            slopes = pages.operators()[name]["parameters"][0]["name"]
            dx = call(name, **{slopes: tensor(dy, kind, layout), "outputSize": outs, "inputSize": [2, 3, *sizes],
                               result: empty(expected.shape, kind, other), **settings(names, scales, mode, align)})
            close(dx, expected, max(along_axes(np.abs(dy), [np.abs(m.T) for m in matrices]).max(), 1), kind)


def test_as_torch():
    torch = pytest.importorskip("torch")
    resize = torch.nn.functional.interpolate
    x = np.random.default_rng(0).standard_normal((1, 2, 11, 6)).astype(np.float32)
    for size, align in itertools.product([[5, 13], [30, 2]], [False, True]):
        for name, mode, source, filtered in [("UpsampleBilinear2d", "bilinear", "self", False),
                                             ("UpsampleBicubic2d", "bicubic", "self", False),
                                             ("UpsampleBilinear2dAA", "bilinear", "input", True),
                                             ("UpsampleBicubic2dAA", "bicubic", "x", True)]:
            expected = resize(torch.from_numpy(x), size=size, mode=mode, align_corners=align, antialias=filtered).numpy()
            out = call(name, **{source: tensor(x), "outputSize": size, "alignCorners": align, "scalesH": 0.0,
                                "scalesW": 0.0, "out": empty(expected.shape)})
            np.testing.assert_allclose(out, expected, atol=2e-5, err_msg=name)


def test_gradients_as_torch():
    torch = pytest.importorskip("torch")
    dy = np.random.default_rng(1).standard_normal((1, 2, 7, 13)).astype(np.float32)
    for size, align in itertools.product([[5, 20], [30, 6]], [False, True]):
        for name, mode, filtered in [("UpsampleBilinear2dBackward", "bilinear", False),
                                     ("UpsampleBilinear2dAABackward", "bilinear", True),
                                     ("UpsampleBicubic2dAAGrad", "bicubic", True)]:  # fmt: skip
            x = torch.zeros((1, 2, *size), requires_grad=True)
            resized = torch.nn.functional.interpolate(x, size=[7, 13], mode=mode, align_corners=align, antialias=filtered)
            resized.backward(torch.from_numpy(dy))
            slopes = pages.operators()[name]["parameters"][0]["name"]
            dx = call(name, **{slopes: tensor(dy)}, outputSize=[7, 13], inputSize=[1, 2, *size], alignCorners=align,
                      scalesH=0.0, scalesW=0.0, out=empty(x.shape))  # fmt: skip
            np.testing.assert_allclose(dx, x.grad.numpy(), atol=2e-5, err_msg=name)


def test_large_images():
    """Planes cut in pieces, on several threads."""
    x = np.random.default_rng(0).integers(0, 9, (1, 2, 150, 170)) / 4
    matrices = [matrix("linear", 150, 301), matrix("linear", 170, 260)]
    out = call("UpsampleBilinear2d", self=tensor(x), outputSize=[301, 260], alignCorners=False, scalesH=0.0,
               scalesW=0.0, out=empty((1, 2, 301, 260)))
    np.testing.assert_allclose(out, along_axes(x, matrices), atol=2.0**-20)


@pytest.mark.parametrize("name", ["UpsampleBilinear2d", "UpsampleBicubic2d"])
def test_images_in_their_own_place(name):
    """As many elements, that lie elsewhere."""
    x = rounded(np.random.default_rng(0).standard_normal((1, 1, 300, 260)), "F32")
    settings = {"outputSize": [300, 260], "alignCorners": False, "scalesH": 1.5, "scalesW": 0.7}
    own = tensor(x)
    apart, found = (call(name, self=given, out=out, **settings) for given, out in ((tensor(x), empty(x.shape)), (own, own)))
    np.testing.assert_array_equal(found, apart)


def test_what_has_no_weight_does_not_count():
    x = np.array([[[1.0, np.inf, 3.0, np.nan]]])
    out = call("UpsampleLinear1d", self=tensor(x), outputSize=[4], alignCorners=True, scale=0.0, out=empty((1, 1, 4)))
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("name, shape, outs", [
    ("UpsampleBilinear2dBackward", (3, 4), (5, 7)), ("UpsampleBilinear2dAABackward", (4, 9), (2, 3)),
    ("UpsampleBilinear2dAABackward", (9, 4), (3, 2)),
])  # fmt: skip
def test_an_infinite_slope_goes_where_it_came_from(name, shape, outs):
    """To no other element, along neither axis."""
    slopes = np.zeros((1, 1, *outs))
    slopes[0, 0, 0, 0] = np.inf
    source = pages.operators()[name]["parameters"][0]["name"]
    dx = call(name, **{source: tensor(slopes)}, outputSize=outs, inputSize=[1, 1, *shape], alignCorners="AA" not in name,
              scalesH=0.0, scalesW=0.0, out=empty((1, 1, *shape)))  # fmt: skip
    mode = "linear filter" if "AA" in name else "linear"
    reached = np.multiply.outer(*(matrix(mode, n, o, "AA" not in name)[0] > 0 for n, o in zip(shape, outs)))
    np.testing.assert_array_equal(dx[0, 0], np.where(reached, np.inf, 0))


def test_gradients_of_lines_that_no_memory_holds():
    """2^63 - 1 elements twice, and two more."""
    line = support.expanded(support.F32, (1, 1, 2**63 - 1))
    arrays = [pages.made({"kind": "IA"}, values) for values in ([2], [1, 1, 2**63 - 1])]
    assert "no host memory for scratch space" in fault("UpsampleLinear1dBackward", tensor([[[1.0, 2.0]]]), *arrays, False, 0.0,
                                                       line, status=207001)  # fmt: skip


NOTHING = [  # operator, axes, attributes between the sizes and the result
    ("UpsampleNearest1d", 1, {}), ("UpsampleNearest2d", 2, {}), ("UpsampleNearest2dV2", 2, {"scalesH": 0.0, "scalesW": 0.0}),
    ("UpsampleNearest1dV2", 1, {"scaleL": 0.0}), ("UpsampleNearestExact1d", 1, {"scales": 0.0}),
    ("UpsampleNearestExact2d", 2, {"scalesH": 0.0, "scalesW": 0.0}),
    ("UpsampleNearestExact3d", 3, {"scalesD": 0.0, "scalesH": 0.0, "scalesW": 0.0}),
    ("UpsampleLinear1d", 1, {"alignCorners": True, "scale": 0.0}),
    ("UpsampleBilinear2d", 2, {"alignCorners": False, "scalesH": 0.0, "scalesW": 0.0}),
    ("UpsampleBilinear2dAA", 2, {"alignCorners": False, "scalesH": 0.0, "scalesW": 0.0}),
    ("UpsampleBicubic2dAA", 2, {"alignCorners": False, "scalesH": 0.0, "scalesW": 0.0}),
]  # fmt: skip


@pytest.mark.parametrize("name, axes, attributes", NOTHING, ids=[name for name, *_ in NOTHING])
def test_images_of_nothing(name, axes, attributes):
    """They are taken where no check of the page is about them, and nothing is written."""
    source = "x" if name == "UpsampleBicubic2dAA" else "input" if name == "UpsampleBilinear2dAA" else "self"
    for shape in [(2, 0) + (4,) * axes, (2, 3) + (0,) * axes]:
        out = empty(shape[:2] + (5,) * axes)
        untouched = out.values()
        own = call(name, **{source: empty(shape), "outputSize": [5] * axes, "out": out}, **attributes)
        np.testing.assert_array_equal(own, untouched)


@pytest.mark.parametrize("name, axes, attributes", [
    ("UpsampleNearest1dBackward", 1, {"scales": 0.0}), ("UpsampleNearest2dBackward", 2, {"scalesH": 0.0, "scalesW": 0.0}),
    ("UpsampleTrilinear3dBackward", 3, {"alignCorners": False, "scalesD": 0.0, "scalesH": 0.0, "scalesW": 0.0}),
])  # fmt: skip
def test_slopes_of_nothing(name, axes, attributes):
    shape = (2, 0) + (3,) * axes
    result = "out" if axes == 1 else "gradInput"
    own = call(name, gradOut=empty((2, 0) + (5,) * axes), outputSize=[5] * axes, inputSize=shape, **attributes,
               **{result: empty(shape)})
    assert own.shape == shape


FILTERED = {"alignCorners": False, "scalesH": 0.0, "scalesW": 0.0}


@pytest.mark.parametrize("name, slopes, result, axes, attributes", [
    ("UpsampleNearestExact1dBackward", "gradOutput", "out", 1, {"scales": 0.0}),
    ("UpsampleNearestExact2dBackward", "gradOutput", "out", 2, {"scalesH": 0.0, "scalesW": 0.0}),
    ("UpsampleNearestExact3dBackward", "gradOut", "gradInput", 3, {"scalesD": 0.0, "scalesH": 0.0, "scalesW": 0.0}),
    ("UpsampleBicubic2dAAGrad", "gradOutput", "out", 2, FILTERED),
    ("UpsampleBilinear2dAABackward", "gradOutput", "out", 2, FILTERED),
    ("UpsampleBilinear2dBackward", "gradOut", "out", 2, FILTERED),
])  # fmt: skip
def test_slopes_of_no_images(name, slopes, result, axes, attributes):
    shape = (0, 3) + (4,) * axes
    own = call(name, **{slopes: empty((0, 3) + (5,) * axes), "outputSize": [5] * axes, "inputSize": shape,
                        result: empty(shape)}, **attributes)  # fmt: skip
    assert own.shape == shape


@pytest.mark.parametrize("own, other", [("NCHW", "NHWC"), ("NHWC", "NCHW")])
def test_two_layouts(own, other):
    """The input's decides for both, and the result's of a gradient, as it does where the sizes are checked."""
    shape, outs = ((2, 3, 4, 5), (2, 3, 7, 3)) if own == "NCHW" else ((2, 4, 5, 3), (2, 7, 3, 3))
    x, slopes = (np.random.default_rng(seed).integers(0, 9, sizes) / 4 for seed, sizes in enumerate((shape, outs)))
    settings = {"outputSize": [7, 3], "scalesH": 0.0, "scalesW": 0.0}
    found = [call("UpsampleNearest2dBackward", gradOut=tensor(slopes, format=format), inputSize=list(shape),
                  gradInput=empty(shape, format=own), **settings) for format in (own, other)]
    np.testing.assert_array_equal(*found)
    found = [call("UpsampleNearest2dV2", self=tensor(x, format=own), out=empty(outs, format=format),
                  **settings) for format in (own, other)]  # fmt: skip
    np.testing.assert_array_equal(*found)


def test_channels_last():
    """Where the format says so; formats of another number of dimensions say nothing."""
    x = np.random.default_rng(0).integers(0, 9, (2, 4, 5, 3)) / 4
    expected = along_axes(np.moveaxis(x, 3, 1), [matrix("linear", 4, 7), matrix("linear", 5, 3)])
    out = call("UpsampleBilinear2d", self=tensor(x, format="NHWC"), outputSize=[7, 3], alignCorners=False, scalesH=0.0,
               scalesW=0.0, out=empty((2, 7, 3, 3), format="NHWC"))
    np.testing.assert_allclose(out, np.moveaxis(expected, 1, 3), atol=2.0**-20)
    line = x[0]
    out = call("UpsampleLinear1d", self=tensor(line, format="NHWC"), outputSize=[6], alignCorners=False, scale=0.0,
               out=empty((4, 5, 6), format="NHWC"))
    np.testing.assert_allclose(out, along_axes(line, [matrix("linear", 3, 6)]), atol=2.0**-20)
