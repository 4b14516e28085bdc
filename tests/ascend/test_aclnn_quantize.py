"""Quantization: roundings, scales along axes, and scales that are found row by row."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from understudy import ascend

from tests.ascend.calling import LAYOUTS, call, empty, empty_packed, fault, packed, random, refusal, rounded, steps_apart, tensor, unpacked, whole
from tests.conformance.ascend import pages
from tests.conformance.harness import Result, run_python


def drawn(shape, seed, kind="F32"):
    return rounded(np.random.default_rng(seed).normal(0, 3, shape), kind)


def clipped(values):
    return np.clip(values, -128, 127)


ROUNDINGS = {"round": np.rint, "ceil": np.ceil, "trunc": np.trunc, "floor": np.floor}


@pytest.mark.parametrize("mode", list(ROUNDINGS))
def test_quantize(mode):
    """Quarters and powers of 2, so that nothing is rounded before."""
    shape = (3, 5, 70)
    x = np.rint(drawn(shape, 1) * 8) / 4
    for kind, layout, twice in zip(["F32", "F16", "BF16"], LAYOUTS, [False, True, False]):
        x = rounded(x, kind)
        for of_scale, axis in [((70,), -1), ((1,), -1), ((1, 1, 70), -1), ((5,), -2), ((1, 5, 1), 1)]:
            count = int(np.prod(of_scale))
            scale = 2.0 ** (np.arange(count) % 5 - 1).reshape(of_scale)
            offset = (np.arange(count) % 7 - 3.0).reshape(of_scale)
            along = lambda v: v if len(of_scale) == 3 or count == 1 else v.reshape(1, *((70,) if axis == -1 else (5, 1)))
            common = {"x": tensor(x, kind, layout), "scale": tensor(scale, kind), "sqrtMode": twice, "roundMode": mode,
                      "dstType": 2}  # fmt: skip
            for given in (offset, None):
                shift = 0 if given is None else along(offset)
                expected = clipped(ROUNDINGS[mode](x * along(scale) ** (2 if twice else 1) + shift))
                own = call("AscendQuantV3", offset=None if given is None else tensor(offset, kind), axis=axis,
                           y=empty(shape, "I8", layout), **common)  # fmt: skip
                np.testing.assert_array_equal(own, expected)
                if axis == -1:
                    own = call("AscendQuant", offset=None if given is None else tensor(offset, kind),
                               y=empty(shape, "I8"), **common)  # fmt: skip
                    np.testing.assert_array_equal(own, expected)


def test_dequantize():
    x = np.random.default_rng(1).integers(-128, 128, (4, 6, 33))
    for kind, count, layout in [("F16", 33, "row-major"), ("BF16", 33, "gaps"), ("F16", 33, "reversed"), ("BF16", 1, "gaps")]:
        scale, offset = 2.0 ** (np.arange(count) % 3 - 2), np.arange(count) % 9 - 4.0
        for twice in (False, True):
            for given in (offset, None):
                expected = rounded((x + (0 if given is None else offset)) * scale ** (2 if twice else 1), kind)
                own = call("AscendAntiQuant", x=tensor(x, "I8", layout), scale=tensor(scale), sqrtMode=twice,
                           offset=None if given is None else tensor(offset), dstType={"F16": 1, "BF16": 27}[kind],
                           y=empty(x.shape, kind, layout))  # fmt: skip
                np.testing.assert_array_equal(own, expected)


@pytest.mark.parametrize("shape, of_scale", [((4, 6, 33), (6,)), ((4, 6, 33), (1, 1, 33)), ((4, 6, 33), (1, 6, 1)),
                                             ((4, 6, 33), (1, 1, 1)), ((4, 6, 33), ()), ((), (3,))])  # fmt: skip
def test_dequantize_by_vectors_only(shape, of_scale):
    """On these products: one number, or those of the last dimension."""
    x, y = tensor(np.zeros(shape), "I8"), empty(shape, "F16")
    refused = refusal("AscendAntiQuant", x, tensor(np.ones(of_scale)), None, 1, False, y)
    assert refused == (161002, "aclnnAscendAntiQuant/scale/shape")


@pytest.mark.parametrize("of_x", ["F16", "BF16"])
@pytest.mark.parametrize("name", ["AscendQuant", "AscendQuantV3"])
def test_scales_have_the_type_of_halves(name, of_x):
    axis = [-1] if name == "AscendQuantV3" else []
    x, y = tensor(np.ones((2, 4)), of_x), empty((2, 4), "I8")
    refused = refusal(name, x, tensor(np.ones(4)), None, False, b"round", 2, *axis, y)
    assert refused == (161002, f"aclnn{name}/scale/same-dtype")


@pytest.mark.parametrize("shape", [(6,), (3, 2), (1, 6), (2, 3, 1)])
def test_scales_of_rows_have_their_shape(shape):
    """As many numbers are not enough."""
    x, y = tensor(np.ones((2, 3, 16)), "F16"), empty((2, 3, 16), "I8")
    refused = lambda name, *given: refusal(name, x, *given)
    assert refused("DynamicQuant", None, y, empty(shape)) == (161002, "aclnnDynamicQuant/scaleOut/shape")
    for offset in (None, empty(shape)):
        of_rows = refused("DynamicQuantV2", None, None, 2, y, empty(shape), offset)
        assert of_rows == (161002, "aclnnDynamicQuantV2/scaleOut/shape")
    of_rows = refused("DynamicQuantV2", None, None, 2, y, empty((2, 3)), empty(shape))
    assert of_rows == (161002, "aclnnDynamicQuantV2/offsetOut/same-shape")
    groups = tensor(np.ones(1)), None, tensor([6], "I32")
    gated = refused("SwiGluQuant", *groups, True, b"dynamic", empty((2, 3, 8), "I8"), empty(shape))
    assert gated == (161002, "aclnnSwiGluQuant/scaleOut/shape")


PACKED = {"I4": 29, "I32": 3}


@pytest.mark.parametrize("kind", list(PACKED))
def test_quantize_to_four_bits(kind):
    """Saturation at -8 and 7, rows that lie apart, several tiles and an uneven number of rows."""
    for (shape, axis), mode in zip([((3, 5, 72), -1), ((1104,), -1), ((7, 1, 344), -2), ((0, 8), -1)], ROUNDINGS):
        x, count = np.rint(drawn(shape, 1) * 8) / 4, shape[axis]
        scale, offset = 2.0 ** (np.arange(count) % 3 - 2), np.arange(count) % 5 - 2.0
        along = (lambda v: v) if axis == -1 else (lambda v: v[:, None])
        expected = np.clip(ROUNDINGS[mode](x * along(scale) + along(offset)), -8, 7)
        for name, more in [("AscendQuantV3", {"axis": axis}), *([("AscendQuant", {})] if axis == -1 else [])]:
            y = empty_packed(shape, kind, gap=2)
            call(name, x=tensor(x, layout="reversed"), scale=tensor(scale), offset=tensor(offset), sqrtMode=False,
                 roundMode=mode, dstType=PACKED[kind], y=y, **more)  # fmt: skip
            if x.size:
                np.testing.assert_array_equal(unpacked(y, shape), expected)
    special = np.array([np.nan, np.inf, -np.inf, 100, -100, 7.4, -8.4, 0])
    y = empty_packed((8,), kind)
    call("AscendQuant", x=tensor(special), scale=tensor([1.0]), offset=None, sqrtMode=False, roundMode="round",
         dstType=PACKED[kind], y=y)  # fmt: skip
    np.testing.assert_array_equal(unpacked(y, (8,)), [0, 7, -8, 7, -8, 7, -8, 0])


@pytest.mark.parametrize("kind", list(PACKED))
def test_dequantize_from_four_bits(kind):
    for shape, count in [((3, 5, 72), 72), ((1104,), 1104), ((7, 344), 344), ((8,), 1)]:
        x = np.random.default_rng(3).integers(-8, 8, shape)
        scale, offset = 2.0 ** (np.arange(count) % 3 - 2), np.arange(count) % 9 - 4.0
        own = call("AscendAntiQuant", x=packed(x, kind), scale=tensor(scale), offset=tensor(offset), dstType=1,
                   sqrtMode=False, y=empty(shape, "F16", "reversed"))  # fmt: skip
        np.testing.assert_array_equal(own, rounded((x + offset) * scale, "F16"))


@pytest.mark.parametrize("kind", list(PACKED))
def test_quantize_rows_to_four_bits(kind):
    for shape in [(3, 5, 24), (2, 2000), (0, 8)]:
        x, smooth = drawn(shape, 1, "F16"), rounded(np.abs(drawn(shape[-1], 2)) + 0.5, "F16")
        given = {"x": tensor(x, "F16", "gaps"), "smoothScalesOptional": tensor(smooth, "F16")}
        if x.size:
            x[0, ..., :] = 0
            given["x"] = tensor(x, "F16", "gaps")
        v = x * smooth
        y = empty_packed(shape, kind, gap=2)
        _, scales = call("DynamicQuant", yOut=y, scaleOut=empty(shape[:-1]), **given)
        scale = np.abs(v).max(-1, initial=0) / 7
        np.testing.assert_allclose(scales, scale, rtol=1e-6)
        if x.size == 0:
            continue
        steps_apart(unpacked(y, shape), v / np.where(scale == 0, 1, scale)[..., None])
        y = empty_packed(shape, kind)
        _, scales, offsets = call("DynamicQuantV2", yOut=y, scaleOut=empty(shape[:-1]), offsetOut=empty(shape[:-1]),
                                  groupIndexOptional=None, dstType=PACKED[kind], **given)  # fmt: skip
        scale = (v.max(-1) - v.min(-1)) / 15
        offset = np.where(scale == 0, 0, 7 - v.max(-1) / np.where(scale == 0, 1, scale))
        np.testing.assert_allclose(scales, scale, rtol=1e-6)
        np.testing.assert_allclose(offsets, offset, rtol=1e-4, atol=1e-4)
        steps_apart(unpacked(y, shape),
                    np.where(scale == 0, 0, 1)[..., None] * (v / np.where(scale == 0, 1, scale)[..., None] + offset[..., None]))  # fmt: skip


def test_parameters_of_64_bits():
    """The formula of the page in integers; a scale that a product of integers then reads."""
    scale = np.float32([1.5, 0.1, -3e-9, 255.75, 1e30, 0])
    offset = np.array([3, -2.5, 254.5, 300, -1e9, -256.4])
    whole = np.array([3, -3, 255, 255, -256, -256])
    bits = (scale.view(np.uint32).astype(np.uint64) & np.uint64(0xFFFFE000)) | np.uint64(1 << 46)
    shifted = bits | ((whole & 0x1FF).astype(np.uint64) << np.uint64(37))
    for kind, storage in (("U64", np.uint64), ("I64", np.int64)):
        for shape, layout in (((6,), "gaps"), ((1, 6), "reversed")):
            for given, expected in ((None, bits), (tensor(offset.reshape(shape), layout=layout), shifted)):
                out = empty(shape, kind, layout)
                call("TransQuantParamV2", scale=tensor(scale.reshape(shape), layout=layout), offset=given, out=out)
                np.testing.assert_array_equal(out.bits().ravel().astype(np.uint64),
                                              expected.astype(storage).astype(np.uint64))  # fmt: skip
    near = np.float32([1.5, 1 + 2**-11, 1 + 2**-11 + 2**-23, 1 + 3 * 2**-11 - 2**-23, -1 - 2**-11, 2 - 2**-23])
    for mode, of in ((0, [1.5, 1, 1, 1 + 2**-10, -1, 2 - 2**-10]),
                     (1, [1.5, 1 + 2**-10, 1 + 2**-10, 1 + 2**-10, -1 - 2**-10, 2])):  # fmt: skip
        for shift in (None, 7):
            call("TransQuantParamV3", scale=tensor(near), offset=None if shift is None else tensor([shift]),
                 roundMode=mode, out=(out := empty((6,), "U64", "gaps")))  # fmt: skip
            own = out.bits().astype(np.uint64)
            np.testing.assert_array_equal((own & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32), of)
            np.testing.assert_array_equal(own >> np.uint64(32), 1 << 14 | (shift or 0) << 5)
    out = empty((300,), "U64")
    call("TransQuantParamV2", scale=tensor([0.5]), offset=tensor(np.arange(300) - 20), out=out)
    numbers = out.bits()
    np.testing.assert_array_equal((numbers >> np.uint64(37)).astype(np.int64) & 0x1FF,
                                  np.minimum(np.arange(300) - 20, 255) & 0x1FF)  # fmt: skip
    a, b = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)
    call("TransQuantParamV2", scale=tensor([0.5, 1, 2, 4]), offset=None, out=(wide := empty((4,), "U64")))
    own = call("QuantMatmulV3", x1=tensor(a, "I8"), x2=tensor(b, "I8"), scale=wide, offset=None, bias=None,
               transposeX1=False, transposeX2=False, out=empty((2, 4), "F16"))  # fmt: skip
    np.testing.assert_array_equal(own, a @ b * [0.5, 1, 2, 4])


ON_910 = """
import numpy as np
from tests.ascend.calling import call, empty, tensor
x = np.arange(128.0).reshape(4, 32)
smooth = tensor(np.full((2, 32), 8.0), "F16")
line = tensor(np.full(32, 8.0), "F16")
for name, added in (("DynamicQuant", {"smoothScalesOptional": line}),
                    ("DynamicQuantV2", {"smoothScalesOptional": smooth, "groupIndexOptional": tensor([1, 3], "I32"),
                                        "dstType": 2, "offsetOut": None})):
    y, scales = call(name, x=tensor(x, "F16"), yOut=empty((4, 32), "I8"), scaleOut=empty((4,)), **added)
    print([round(float(scale * 127)) for scale in scales], [int(row[-1]) for row in y])
"""


def test_the_first_product_does_not_smooth_rows():
    """Its pages call the factors and the groups reserved: row i has the maximum 32 i + 31, the last row is in no group."""
    line = "[31, 63, 95, 127] [127, 127, 127, 127]"
    assert run_python(ON_910, {"UNDERSTUDY_SOC": "Ascend910"}).split("\n") == [line, line, ""]
    smooth = "[248, 504, 760, 1016] [127, 127, 127, 127]"
    grouped = "[248, 504, 760, 0] [127, 127, 127, 0]"
    assert run_python(ON_910, {"UNDERSTUDY_SOC": "Ascend910B"}).split("\n") == [smooth, grouped, ""]


@pytest.mark.parametrize("kind", ["F16", "BF16"])
@pytest.mark.parametrize("shape", [(3, 4, 37), (2, 2000), (0, 4)], ids=str)
def test_quantize_rows(kind, shape):
    x, smooth = drawn(shape, 1, kind), rounded(np.abs(drawn(shape[-1], 2)) + 0.5, kind)
    if x.size:
        x[0, ..., :] = 0
    for layout in LAYOUTS:
        for factor in (smooth, None):
            v = x * (1 if factor is None else smooth)
            scale = np.abs(v).max(-1, initial=0) / 127
            given = {"x": tensor(x, kind, layout), "smoothScalesOptional": None if factor is None else tensor(smooth, kind)}
            y, scales = call("DynamicQuant", yOut=empty(shape, "I8", layout), scaleOut=empty(shape[:-1]), **given)
            np.testing.assert_allclose(scales, scale, rtol=1e-6)
            steps_apart(y, v / np.where(scale == 0, 1, scale)[..., None])
            given |= {"groupIndexOptional": None, "dstType": 2}
            again, _ = call("DynamicQuantV2", yOut=empty(shape, "I8"), scaleOut=empty(shape[:-1]), offsetOut=None, **given)
            np.testing.assert_array_equal(again, y)
            y, scales, offsets = call("DynamicQuantV2", yOut=empty(shape, "I8"), scaleOut=empty(shape[:-1], layout=layout),
                                      offsetOut=empty(shape[:-1]), **given)  # fmt: skip
            if x.size:
                scale = (v.max(-1) - v.min(-1)) / 255
                offset = np.where(scale == 0, 0, 127 - v.max(-1) / np.where(scale == 0, 1, scale))
                np.testing.assert_allclose(scales, scale, rtol=1e-6)
                np.testing.assert_allclose(offsets, offset, rtol=1e-4, atol=1e-4)
                steps_apart(y,
                            np.where(scale == 0, 0, 1)[..., None] * (v / np.where(scale == 0, 1, scale)[..., None] + offset[..., None]))  # fmt: skip


@pytest.mark.parametrize("kind, code", [("I8", 2), *PACKED.items()])
def test_rows_without_numbers(kind, code):
    """Their scales and offsets are written: 0."""
    for shape, groups in [((3, 0), None), ((2, 40, 0), [1, 80]), ((0, 0), None)]:
        smooth = tensor(np.zeros((2, 0)), "F16") if groups else None
        rows, y = shape[:-1], lambda: empty(shape, kind) if kind == "I8" else empty_packed(shape, kind)
        if groups is None:
            call("DynamicQuant", x=tensor(np.zeros(shape), "F16"), smoothScalesOptional=None, yOut=y(), scaleOut=(scale := empty(rows)))
            np.testing.assert_array_equal(scale.values(), np.zeros(rows))
        for layout in LAYOUTS:
            _, scales, offsets = call("DynamicQuantV2", x=tensor(np.zeros(shape), "F16"), smoothScalesOptional=smooth,
                                      groupIndexOptional=groups and tensor(groups, "I32"), dstType=code, yOut=y(),
                                      scaleOut=empty(rows, layout=layout), offsetOut=empty(rows))  # fmt: skip
            np.testing.assert_array_equal(scales, np.zeros(rows))
            np.testing.assert_array_equal(offsets, np.zeros(rows))


def test_rows_with_nan_and_infinities():
    """NaN wins wherever it stands, and has no levels; an infinity leaves nothing of the numbers beside it."""
    rows = np.zeros((7, 40))
    rows[0, 3] = rows[1, 39] = rows[2, 0] = np.nan
    rows[2, 1] = rows[3, 5] = rows[4, 20] = np.inf
    rows[4, 30] = -np.inf
    rows[:, 10], rows[5, 7], rows[6, 39] = 1.0, -127.0, 254.0
    scales = [np.nan, np.nan, np.nan, np.inf, np.inf, 1.0, 2.0]
    y, found = call("DynamicQuant", x=tensor(rows, "F16"), smoothScalesOptional=None, yOut=empty(rows.shape, "I8"),
                    scaleOut=empty((7,)))  # fmt: skip
    np.testing.assert_array_equal(found, scales)
    np.testing.assert_array_equal(y[:5], np.zeros((5, 40)))
    np.testing.assert_array_equal(y[5:], np.rint(rows[5:] / [[1], [2]]))
    _, found, _ = call("DynamicQuantV2", x=tensor(rows, "F16"), smoothScalesOptional=None, groupIndexOptional=None,
                       dstType=2, yOut=empty(rows.shape, "I8"), scaleOut=empty((7,)),
                       offsetOut=empty((7,)))  # fmt: skip
    np.testing.assert_array_equal(found, [np.nan] * 3 + [np.inf] * 2 + [np.float32(128) / 255, np.float32(254) / 255])


def test_extents_that_no_float_holds():
    """The formulas of DynamicQuantV2 in float64; the extent of the second row is a float."""
    rows = rounded(np.array([[3e38, -3e38, 1e38], [1.6e38, -1.6e38, 1e38]]), "BF16").astype(np.float64)
    y, scales, offsets = call("DynamicQuantV2", x=tensor(rows, "BF16"), smoothScalesOptional=None, groupIndexOptional=None,
                              dstType=2, yOut=empty(rows.shape, "I8"), scaleOut=empty((2,)), offsetOut=empty((2,)))  # fmt: skip
    scale = (rows.max(1) - rows.min(1)) / 255
    offset = 127 - rows.max(1) / scale
    np.testing.assert_allclose(scales, scale, rtol=2**-23)
    np.testing.assert_allclose(offsets, offset, atol=127 * 2**-22)
    np.testing.assert_array_equal(y, np.rint(rows / scale[:, None] + offset[:, None]))


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_quantize_rows_of_groups(kind):
    """Groups of rows, empty ones among them; ends that fall back or pass the last row are held; rows behind them give 0."""
    forms = [((9, 10), [2, 2, 9], [2, 2, 9]), ((2, 3, 66), [1, 0, 3, 5], [1, 1, 3, 5]),
             ((40, 200), [-3, 7, 999], [0, 7, 999]), ((3, 4), [], [])]  # fmt: skip
    for (shape, ends, held), layout in zip(forms, LAYOUTS + LAYOUTS):
        x, smooth = drawn(shape, 1, kind), rounded(np.abs(drawn((len(ends), shape[-1]), 2)) + 0.5, kind)
        group = np.searchsorted(held, np.arange(x.size // shape[-1]), side="right").reshape(shape[:-1])
        v = x * np.vstack([smooth, np.zeros((1, shape[-1]))])[group]
        given = {"x": tensor(x, kind, layout),
                 "smoothScalesOptional": tensor(smooth, kind, layout if ends else "row-major"), "dstType": 2,
                 "groupIndexOptional": tensor(np.asarray(ends, int), "I32", layout if ends else "row-major")}  # fmt: skip
        for shifts in (False, True):
            found = call("DynamicQuantV2", yOut=empty(shape, "I8", layout), scaleOut=empty(shape[:-1], layout=layout),
                         offsetOut=empty(shape[:-1]) if shifts else None, **given)  # fmt: skip
            scale = (v.max(-1) - v.min(-1)) / 255 if shifts else np.abs(v).max(-1) / 127
            divisor = np.where(scale == 0, 1, scale)
            offset = np.where(scale == 0, 0, 127 - v.max(-1) / divisor) if shifts else np.zeros_like(scale)
            np.testing.assert_allclose(found[1], scale, rtol=1e-6)
            steps_apart(found[0], (v / divisor[..., None] + offset[..., None]) * (scale != 0)[..., None])


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_gated(kind):
    """Groups of rows, one of them empty, rows behind the last one; numbers for columns and for whole groups."""
    for shape, ends, layout in [((9, 10), [2, 2, 7], "row-major"), ((2, 3, 66), [1, 6], "gaps"),
                                ((40, 2000), [40], "reversed")]:  # fmt: skip
        x = drawn(shape, 1, kind)
        rows, size = x.size // shape[-1], shape[-1] // 2
        group = np.searchsorted(ends, np.arange(rows), side="right")
        for of_group in ((len(ends), size), (len(ends),)):
            smooth, offset = drawn(of_group, 2) * 4, np.rint(drawn(of_group, 3))
            lines = lambda v: np.vstack([v.reshape(len(ends), -1) + np.zeros(size), np.zeros(size)])[group]
            for left in (True, False):
                a, b = np.split(x.reshape(rows, -1), 2, axis=1)[:: 1 if left else -1]
                v = a / (1 + np.exp(-a)) * b * lines(smooth)
                given = {"x": tensor(x, kind, layout), "smoothScalesOptional": tensor(smooth), "activateLeft": left,
                         "groupIndexOptional": tensor(ends, "I32")}  # fmt: skip
                y_shape = (*shape[:-1], size)
                y, scale = call("SwiGluQuant", offsetsOptional=None, quantModeOptional="dynamic",
                                yOut=empty(y_shape, "I8", layout), scaleOut=empty(shape[:-1], layout=layout),
                                **given)  # fmt: skip
                expected = np.abs(v).max(1) / 127
                np.testing.assert_allclose(scale.ravel(), expected, rtol=1e-5)
                steps_apart(y.reshape(v.shape), v / np.where(expected == 0, 1, expected)[:, None])
                for shift in (offset, None):
                    y, _ = call("SwiGluQuant", offsetsOptional=None if shift is None else tensor(shift),
                                quantModeOptional="static", yOut=empty(y_shape, "I8", layout),
                                scaleOut=empty(shape[:-1]), **given)  # fmt: skip
                    fixed = v + (0 if shift is None else lines(offset))
                    steps_apart(y.reshape(v.shape), np.clip(fixed, -128, 127))


SWISH = lambda v: v / (1 + np.exp(-v))


def gate_of(mode, a, b, limit=3.0, alpha=1.5, bias=0.5):
    """The vendor's swiglu modes, of what they make of halves or places."""
    if mode == 0:
        return SWISH(a) * b
    if mode == 3:
        return np.minimum(SWISH(a), limit) * np.clip(b, -limit, limit)
    held = np.minimum(a, limit)
    return held / (1 + np.exp(-alpha * held)) * (np.clip(b, -limit, limit) + bias)


def levels_near(y, scale, v, top):
    """Both rounded in float32: a level next to the exact one only where that lies half-way."""
    expected = np.abs(v).max(-1) / top
    np.testing.assert_allclose(scale.reshape(expected.shape), expected, rtol=1e-5)
    steps_apart(y.reshape(v.shape), v / np.where(expected == 0, 1, expected)[..., None])


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_gated_second_version(kind):
    """Groups by ends or sizes, or none; 8 or 4 bits; with and without smooth numbers."""
    for shape, ends, layout in [((9, 12), [2, 2, 7], "row-major"), ((2, 3, 68), [1, 6], "gaps"),
                                ((40, 2000), None, "row-major"), ((5, 8), None, "reversed")]:  # fmt: skip
        x = drawn(shape, 1, kind)
        rows, size, groups = x.size // shape[-1], shape[-1] // 2, len(ends or [1])
        group = np.searchsorted(ends, np.arange(rows), side="right") if ends else np.zeros(rows, int)
        for number, of_group in enumerate([(groups, size), (groups,), None]):
            sizes, left = number != 1 and ends is not None, number != 0
            smooth = None if of_group is None else drawn(of_group, 2) * 4
            offset = None if of_group is None else np.rint(drawn(of_group, 3))
            lines = lambda v: np.vstack([v.reshape(groups, -1) + np.zeros(size), np.zeros(size)])[group]
            there = (group < groups)[:, None]
            a, b = np.split(x.reshape(rows, -1), 2, axis=1)[:: 1 if left else -1]
            v = np.where(there, SWISH(a) * b * (1 if smooth is None else lines(smooth)), 0)
            index = None if ends is None else tensor(np.diff([0, *ends]) if sizes else ends, "I32")
            for bits, top in (("I8", 127), ("I4", 7)):
                made = lambda: empty((*shape[:-1], size), "I8", layout) if bits == "I8" else empty_packed((*shape[:-1], size), "I4")
                values = lambda y, made: y if bits == "I8" else unpacked(made, (*shape[:-1], size))
                given = {"x": tensor(x, kind, layout),
                         "smoothScalesOptional": None if smooth is None else tensor(smooth), "activateLeft": left,
                         "groupIndexOptional": index, "groupListType": int(sizes), "dstType": 2 if bits == "I8" else 29}  # fmt: skip
                out = made()
                y, scale = call("SwiGluQuantV2", offsetsOptional=None, quantModeOptional="dynamic", yOut=out,
                                scaleOut=empty(shape[:-1]), **given)  # fmt: skip
                levels_near(values(y, out), scale, v, top)
                out = made()
                y = call("SwiGluQuantV2", offsetsOptional=None if offset is None else tensor(offset),
                         quantModeOptional="static", yOut=out, scaleOut=None, **given)  # fmt: skip
                fixed = v + (0 if offset is None else lines(offset))
                steps_apart(values(y, out).reshape(v.shape), np.clip(fixed, -top - 1, top))


def dequantized(x, weight, row, bias, group, of_bias):
    """Rows of integers as numbers; `weight` and `bias` have a row for each group."""
    weight, bias = weight[group], 0 if bias is None else bias[group]
    row = 1 if row is None else row[:, None]
    return (x + bias) * weight * row if of_bias == "I32" else x * weight * row + bias


@pytest.mark.parametrize("of_bias", [None, "F32", "F16", "BF16", "I32"])
def test_gated_integers(of_bias):
    """DequantSwigluQuant and its second version, which has more gates; integers and numbers."""
    for number, (shape, sizes) in enumerate([((7, 128), [2, 0, 4]), ((40, 640), [40]), ((2, 3, 64), None), ((5, 192), [9]), ((6, 128), None)]):
        rows, width = int(np.prod(shape[:-1])), shape[-1]
        groups = len(sizes or [1])
        group = np.repeat(np.arange(groups), np.minimum(sizes, rows))[:rows] if sizes else np.zeros(rows, int)
        used = len(group)
        x = random(number).integers(-2000, 2000, (rows, width))
        weight, row = np.abs(drawn((groups, width), 1)) * 1e-3, None if number == 1 else np.abs(drawn(rows, 2)) + 0.5
        bias = None if of_bias is None else whole((groups, width), 3, -500, 500) if of_bias == "I32" else drawn((groups, width), 3, of_bias)
        smooth = drawn((groups, width // 2), 4) if number != 3 else None
        v = dequantized(x[:used], weight, None if row is None else row[:used], bias, group, of_bias)
        full = lambda w: np.concatenate([w, np.zeros((rows - used, width // 2))])
        lines = lambda of: of if sizes else of[0]
        tensors = {"x": tensor(x.reshape(shape), "I32"), "weightScaleOptional": tensor(lines(weight)),
                   "biasOptional": None if bias is None else tensor(lines(bias), of_bias),
                   "groupIndexOptional": None if sizes is None else tensor(sizes, "I64" if number else "I32")}  # fmt: skip
        for left in (True, False):
            a, b = np.split(v, 2, axis=1)[:: 1 if left else -1]
            w = full(gate_of(0, a, b) * (1 if smooth is None else smooth[group]))
            given = {**tensors, "activationScaleOptional": None if row is None else tensor(row.reshape(*shape[:-1], 1)),
                     "activateLeft": left}  # fmt: skip
            y, scale = call("DequantSwigluQuant", quantScaleOptional=None if smooth is None else tensor(lines(smooth)),
                            quantOffsetOptional=None, quantModeOptional="dynamic",
                            yOut=empty((*shape[:-1], width // 2), "I8"), scaleOut=empty(shape[:-1]),
                            **given)  # fmt: skip
            levels_near(y.reshape(w.shape), scale.ravel(), w, 127)
            y, _ = call("DequantSwigluQuant", quantScaleOptional=tensor([7.0]), quantOffsetOptional=tensor([-3.0]),
                        quantModeOptional="static", yOut=empty((*shape[:-1], width // 2), "I8"),
                        scaleOut=empty(shape[:-1]), **given)  # fmt: skip
            fixed = np.where((np.arange(rows) < used)[:, None], full(gate_of(0, a, b)) * 7 - 3, 0)
            steps_apart(y.reshape(w.shape), np.clip(fixed, -128, 127))
        if len(shape) != 2:
            continue
        for mode in range(4):
            a, b = (v[:, ::2], v[:, 1::2]) if mode == 1 else np.split(v, 2, axis=1)
            gated = gate_of(mode, a, b)
            given = {**given, "groupIndexOptional": sizes and tensor(sizes, "I64"), "activateLeft": True,
                     "dstType": 2, "roundModeOptional": "rint", "activateDim": -1, "swigluMode": mode,
                     "clampLimit": 3.0, "gluAlpha": 1.5, "gluBias": 0.5}  # fmt: skip
            w = full(gated * (1 if smooth is None else smooth[group]))
            y, scale = call("DequantSwigluQuantV2", quantScaleOptional=None if smooth is None else tensor(smooth),
                            quantOffsetOptional=None, quantModeOptional="dynamic", yOut=empty((rows, width // 2), "I8"),
                            scaleOut=empty((rows,)), **given)  # fmt: skip
            levels_near(y, scale, w, 127)
            factor, shift = drawn(groups, 6) * 9, np.rint(drawn(groups, 7))
            y, _ = call("DequantSwigluQuantV2", quantScaleOptional=tensor(factor), quantOffsetOptional=tensor(shift),
                        quantModeOptional="static", yOut=empty((rows, width // 2), "I8"), scaleOut=empty((rows,)),
                        **given)  # fmt: skip
            steps_apart(y, np.clip(full(gated * factor[group][:, None] + shift[group][:, None]), -128, 127))


def test_static_numbers_are_vectors():
    """Of one element: a matrix of it was read as a line for all columns."""
    x, y, scale = tensor(np.ones((2, 8)), "F16"), empty((2, 4), "I8"), empty((2,))
    for shape, status in [((1,), 0), ((), 161002), ((1, 1), 161002)]:
        for name, given in [("quantScaleOptional", [tensor(np.ones(shape)), None]), ("quantOffsetOptional", [None, tensor(np.ones(shape))])]:
            found = refusal("DequantSwigluQuant", x, None, None, None, *given, None, True, b"static", y, scale)
            assert found[0] == status and (status == 0 or found[1] == f"aclnnDequantSwigluQuant/{name}/shape"), found


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_gated_numbers(kind):
    """x that is no integer goes without a scale of its own."""
    x = drawn((6, 64), 1, kind)
    a, b = np.split(x, 2, axis=1)
    nothing = dict.fromkeys(("weightScaleOptional", "activationScaleOptional", "biasOptional", "quantScaleOptional",
                             "quantOffsetOptional"))  # fmt: skip
    y, scale = call("DequantSwigluQuant", x=tensor(x, kind), groupIndexOptional=None, activateLeft=True,
                    quantModeOptional="dynamic", yOut=empty((6, 32), "I8"), scaleOut=empty((6,)),
                    **nothing)  # fmt: skip
    levels_near(y, scale, gate_of(0, a, b), 127)
    if kind == "BF16":
        y, scale = call("DequantSwigluQuantV2", x=tensor(x, kind), groupIndexOptional=tensor([6], "I64"),
                        activateLeft=False, quantModeOptional="dynamic", dstType=2, roundModeOptional="",
                        activateDim=-1, swigluMode=2, clampLimit=3.0, gluAlpha=1.5, gluBias=0.5,
                        yOut=empty((6, 32), "I8"), scaleOut=empty((6,)), **nothing)  # fmt: skip
        levels_near(y, scale, gate_of(2, b, a), 127)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_clipped_gate(kind):
    ulp = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}[kind]
    for shape, dim, sizes, layout in [((5, 8), 1, None, "row-major"), ((5, 8), -1, [1, 0, 2], "gaps"),
                                      ((3, 4, 5), 1, [2], "reversed"), ((6, 3), 0, None, "row-major"),
                                      ((2, 2000), 1, [9], "gaps"), ((3, 2, 2, 7), -2, [4, -3], "row-major"), ((40, 2050), 1, [30], "row-major"),
                                      ((4,), 0, None, "row-major"), ((0, 4), 1, None, "row-major")]:  # fmt: skip
        x = drawn(shape, 1, kind) * 3
        x = rounded(x, kind)
        axis = dim % len(shape)
        rows = int(np.prod(shape[:axis]))
        flat = x.reshape(rows, -1) if x.size else x.reshape(rows, int(np.prod(shape[axis:])))
        out_shape = [size // 2 if i == axis else size for i, size in enumerate(shape)]
        for pairs in (False, True):
            a, b = (flat[:, ::2], flat[:, 1::2]) if pairs else np.split(flat, 2, axis=1)
            expected = gate_of(2, a, b)
            if sizes is not None:
                expected = np.where((np.arange(rows) < np.maximum(sizes, 0).sum())[:, None], expected, 0)
            own = call("ClippedSwiglu", x=tensor(x, kind, layout),
                       groupIndexOptional=None if sizes is None else tensor(sizes, "I64"), dim=dim, alpha=1.5,
                       limit=3.0, bias=0.5, interleaved=pairs, out=empty(out_shape, kind, layout))  # fmt: skip
            np.testing.assert_allclose(own.reshape(expected.shape), expected, rtol=16 * 2.0**-24 + 1.01 * ulp, atol=2.0**-20)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_gradient_of_clipped_gate(kind):
    """Against autograd: torch's clamp has the slope 1 at its limits, as the page has it."""
    torch = pytest.importorskip("torch")
    ulp = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}[kind]
    for shape, dim, sizes, layout in [((5, 8), 1, None, "row-major"), ((5, 8), -1, [1, 0, 2], "gaps"),
                                      ((3, 4, 5), 1, [2], "reversed"), ((6, 3), 0, None, "row-major"),
                                      ((2, 2000), 1, [9], "gaps"), ((3, 2, 2, 7), -2, [4, -3], "row-major"), ((40, 2050), 1, [30], "row-major"),
                                      ((4,), 0, None, "row-major"), ((0, 4), 1, None, "row-major")]:  # fmt: skip
        x = rounded(drawn(shape, 1, kind) * 2, kind)
        x.ravel()[:2] = [3.0, -3.0][: x.size]
        axis = dim % len(shape)
        rows = int(np.prod(shape[:axis]))
        half = [size // 2 if i == axis else size for i, size in enumerate(shape)]
        dy = drawn(half, 2, kind)
        used = rows if sizes is None else min(rows, int(np.maximum(sizes, 0).sum()))
        for pairs in (False, True):
            of = torch.tensor(x, requires_grad=True)
            flat = of.reshape(rows, int(np.prod(shape[axis:])))
            a, b = (flat[:, ::2], flat[:, 1::2]) if pairs else flat.chunk(2, 1)
            a = a.clamp(max=3.0)
            out = a * torch.sigmoid(1.5 * a) * (b.clamp(-3.0, 3.0) + 0.5)
            (out * torch.tensor(dy).reshape(out.shape))[:used].sum().backward()
            own = call("ClippedSwigluGrad", gradY=tensor(dy, kind, layout), x=tensor(x, kind, layout),
                       groupIndexOptional=None if sizes is None else tensor(sizes, "I64"), dim=dim, alpha=1.5,
                       limit=3.0, bias=0.5, interleaved=pairs, gradXOut=empty(shape, kind, layout))  # fmt: skip
            # 1 + alpha * A * (1 - s) cancels: 16 roundings of float32 of what it is a factor of, at most |dy| * 3.5
            np.testing.assert_allclose(own, of.grad.numpy(), rtol=16 * 2.0**-24 + 1.01 * ulp,
                                       atol=16 * 2.0**-24 * 3.5 * np.abs(dy).max(initial=1))  # fmt: skip
            given = tensor(x, kind, layout)
            again = call("ClippedSwigluGrad", gradY=tensor(dy, kind, layout), x=given, dim=dim, alpha=1.5, limit=3.0, bias=0.5,
                         groupIndexOptional=None if sizes is None else tensor(sizes, "I64"), interleaved=pairs, gradXOut=given)
            np.testing.assert_array_equal(again, own)  # in its own place


@pytest.mark.parametrize("of_y", ["I8", "I4", "I32"])
@pytest.mark.parametrize("kind, layout", [("F32", "row-major"), ("F16", "gaps"), ("BF16", "reversed")])
def test_quantize_by_groups(of_y, kind, layout):
    """Quarters and powers of 2, so that nothing is rounded before. In the last one pieces of work begin and end inside groups."""
    for shape, ends, of_ends, of_scale, offset in [((4, 8), [1, 2, 4], "I32", kind, 2.0),
                                                   ((9, 704), [0, 3, 3, 9], "I64", "F32", None),
                                                   ((5, 8), [4, 2, 3], "I32", "F16", -1.0),
                                                   ((3, 16), [2, 7], "I64", "BF16", 1.0),
                                                   ((6, 8), [-1, 6], "I32", kind, None),
                                                   ((0, 8), [0], "I64", kind, None),
                                                   ((90, 704), [5, 5, 6, 40, 39, 88], "I64", kind, 3.0)]:  # fmt: skip
        x = rounded(np.rint(drawn(shape, 1) * 8) / 4, kind)
        scale = 2.0 ** np.random.default_rng(2).integers(-2, 2, (len(ends), shape[1]))
        held = np.clip(np.maximum.accumulate(ends), 0, shape[0])
        group = np.searchsorted(held, np.arange(shape[0]), "right")
        factor = np.concatenate([scale, np.zeros((1, shape[1]))])[group]
        limits = (-128, 127) if of_y == "I8" else (-8, 7)
        expected = np.where((group < len(ends))[:, None], np.clip(np.rint(x * factor + (offset or 0)), *limits), 0)
        y = empty(shape, "I8", layout) if of_y == "I8" else empty_packed(shape, of_y)
        call("GroupQuant", x=tensor(x, kind, layout), scale=tensor(scale, of_scale, layout),
             groupIndex=tensor(ends, of_ends), offsetOptional=None if offset is None else tensor([offset], of_scale),
             dstType={"I8": 2, "I32": 3, "I4": 29}[of_y], y=y)  # fmt: skip
        np.testing.assert_array_equal(y.values() if of_y == "I8" else unpacked(y, shape), expected)


def cut_apart(y, exact, slack):
    """Integers without their fraction: the next one only where float32 may take the exact number for a whole one's other side."""
    y, low, high = np.asarray(y), np.trunc(exact - slack), np.trunc(exact + slack)
    assert ((y >= np.clip(low, -128, 127)) & (y <= np.clip(high, -128, 127))).all()


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("kind", ["I8", "I32", "F16", "BF16"])
def test_bounded_gates_of_integers(kind, left):
    """Numbers for columns and for all, groups of rows, of which one is empty and the last one ends before the last row."""
    forms = [((3, 8), "row-major", 4.0, 25.0), ((7, 130), "gaps", -1.5, 0.0), ((2, 3, 1040), "reversed", 1.0, 2.0)]
    for shape, layout, beta, linear in forms if kind == "I8" else forms[:2]:
        whole, size = kind in ("I8", "I32"), shape[-1] // 2
        x = np.clip(np.rint(drawn(shape, 1) * 20), -128, 127) if whole else drawn(shape, 1, kind)
        x.reshape(-1, shape[-1])[0] = 0
        for wide in (True, False):
            weight, bias = drawn((shape[-1],) if wide else (1,), 2) / 10, drawn((shape[-1],) if wide else (1,), 3) / 4
            bias = np.where(np.arange(len(bias)) % 3, bias, 0) * wide  # a row of zeros stays one
            smooth, offset = 2.0 ** np.rint(drawn((size,) if wide else (1,), 4)), drawn((size,) if wide else (1,), 5) * 4
            of_row = 0.125 if kind == "I32" else 1.0
            sizes = None if kind == "I8" else [2, 0, shape[0] - 3]
            v = x * weight * of_row + bias if whole else x
            a, b = np.split(v, 2, -1)[:: 1 if left else -1]
            w = beta * np.tanh(a / beta) / (1 + np.exp(-a)) * (linear * np.tanh(b / linear) if linear > 0 else b)
            if sizes is not None:
                w[sum(sizes):] = 0
            given = {"x": tensor(x, kind, layout), "weightScaleOptional": tensor(weight, "F32", layout),
                     "activationScaleOptional": tensor([of_row]) if kind == "I32" else None,
                     "biasOptional": tensor(bias, "F32", layout),
                     "groupIndexOptional": None if sizes is None else tensor(sizes, "I64"), "beta": beta, "linearBeta": linear,
                     "activateLeft": left}  # fmt: skip
            blank = lambda: {"yOut": empty((*shape[:-1], size), "I8", layout), "yScaleOut": empty(shape[:-1], layout=layout)}
            for factor in (None, smooth) if kind == "I8" else (None,):
                y, scale = call("DequantSituQuant", **given, quantScaleOptional=None if factor is None else tensor(factor),
                                quantOffsetOptional=None, quantTypeOptional=None if wide else "dynamic", **blank())  # fmt: skip
                scaled = w * (1 if factor is None else factor)
                expected = np.abs(scaled).max(-1) / 127
                # The terms of an integer's sum are at most 2^5 times as large as what it is bounded to.
                np.testing.assert_allclose(scale, expected, rtol=1e-4, atol=1e-7)
                cut_apart(y, scaled / np.where(expected == 0, 1, expected)[..., None], 127 * 1e-4)
            if kind == "I8":
                y, _ = call("DequantSituQuant", **given, quantScaleOptional=tensor(smooth / 8), quantOffsetOptional=tensor(offset),
                            quantTypeOptional="static", **blank())  # fmt: skip
                cut_apart(y, w / (smooth / 8) + offset, 127 * 1e-4)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("shape", [(4, 2), (3, 128), (5, 300), (2, 3, 256), (2, 2, 129)], ids=str)
def test_quantize_by_blocks(kind, shape):
    x = drawn(shape, 1, kind)
    x[0] = 0
    count = -(-shape[-1] // 128)
    wide = np.zeros((*shape[:-1], count * 128))
    wide[..., : shape[-1]] = x
    highest = np.abs(wide.reshape(*shape[:-1], count, 128)).max(-1)
    for layout, least, mode in zip(LAYOUTS * 2, (0.0, 40.0, 1e-3, 1e300), ("rint", None, "", "rint")):
        y, scale = call("DynamicBlockQuant", x=tensor(x, kind, layout), minScale=least, roundModeOptional=mode,
                        dstType=2, rowBlockSize=1, colBlockSize=128, yOut=empty(shape, "I8", layout),
                        scaleOut=empty((*shape[:-1], count), layout=layout))  # fmt: skip
        expected = np.minimum(highest / 127, 1 / least if least else np.inf)
        np.testing.assert_allclose(scale, expected, rtol=1e-6, atol=2.0**-149)
        step = np.repeat(np.where(expected == 0, 1, expected), 128, -1)[..., : shape[-1]]
        steps_apart(y, clipped(x / step))
        given = dict(x=tensor(x, kind, layout), minScale=least, roundModeOptional=mode, dstType=2, rowBlockSize=1, dstTypeMax=0.0)
        again = call("DynamicBlockQuantV2", **given, colBlockSize=128, yOut=empty(shape, "I8", layout),
                     scaleOut=empty((*shape[:-1], count), layout=layout))  # fmt: skip
        for own, of_first in zip(again, (y, scale)):
            np.testing.assert_array_equal(own, of_first)
        y, scale = call("DynamicBlockQuantV2", **given, colBlockSize=1, yOut=empty(shape, "I8", layout),
                        scaleOut=empty(shape, layout=layout))  # fmt: skip
        expected = np.minimum(np.abs(x) / 127, 1 / least if least else np.inf)
        np.testing.assert_allclose(scale, expected, rtol=1e-6, atol=2.0**-149)
        steps_apart(y, clipped(x / np.where(expected == 0, 1, expected)))


@pytest.mark.parametrize("of_y", ["I4", "I32"])
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_quantize_turned_matrices(kind, of_y):
    for number, (shape, clip) in enumerate([((2, 3, 8), 1.0), ((5, 1, 16), 0.5), ((3, 33, 64), 0.9), ((1, 256, 256), 1.0)]):
        layout = LAYOUTS[number % 3]
        x, left, right = (drawn(of, seed, kind) / 4 for seed, of in enumerate([shape, shape[1:2] * 2, shape[2:] * 2]))
        if number == 0:
            x[0] = 0
        x, left, right = (rounded(v, kind) for v in (x, left, right))
        out, scale = empty_packed(shape, of_y), empty(shape[:1], layout=layout)
        call("FlatQuant", x=tensor(x, kind, layout), kroneckerP1=tensor(left, kind, layout),
             kroneckerP2=tensor(right, kind), clipRatio=clip, out=out, quantScale=scale)  # fmt: skip
        v = left @ (x @ right)
        expected = np.abs(v).max((1, 2)) / (7 / clip)
        np.testing.assert_allclose(scale.values(), expected, rtol=1e-5)
        steps_apart(unpacked(out, shape), np.clip(v / np.where(expected == 0, 1, expected)[:, None, None], -8, 7))
        for groups, of, count in [(None, 9, shape[0]), ([1, 0, 2], 0, 2), ([1, -1, 1], 1, 2),
                                  ([[3, 0], [0, 2], [1, 1]], 2, 3), ([0, 0], 1, 0),
                                  ([1, -(2**63), 0], 0, 1)]:  # fmt: skip
            count = min(count, shape[0])
            again, scales = empty_packed(shape, of_y), empty(shape[:1], layout=layout)
            call("FlatQuantV3", x=tensor(x, kind, layout), kroneckerP1=tensor(left, kind, layout),
                 kroneckerP2=tensor(right, kind), groupListOptional=None if groups is None else tensor(groups, "I64"),
                 clipRatio=clip, dstTypeMax=0.0, groupListType=of, out=again, quantScale=scales)  # fmt: skip
            used = np.arange(shape[0]) < count
            np.testing.assert_array_equal(scales.values(), np.where(used, scale.values(), 0))
            np.testing.assert_array_equal(unpacked(again, shape), np.where(used[:, None, None], unpacked(out, shape), 0))


@pytest.mark.parametrize("of_y", ["I8", "I32"])
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_quantize_rotated_rows(kind, of_y):
    highest = 127 if of_y == "I8" else 7
    for number, (rows, width, size) in enumerate([(3, 128, 16), (5, 160, 32), (2, 1024, 1024), (40, 384, 128)]):
        layout = LAYOUTS[number % 3]
        x, rotation = rounded(drawn((rows, width), 1, kind), kind), rounded(drawn((size, size), 2, kind) / 8, kind)
        x[0] = 0 if number == 0 else x[0]
        v = (x.reshape(rows, -1, size) @ rotation).reshape(rows, width)
        expected = np.abs(v).max(1) / highest
        q = v / np.where(expected == 0, 1, expected)[:, None]
        for mode in ("rint", None, "round", "floor"):
            y = empty((rows, width if of_y == "I8" else width // 8), of_y, layout)
            _, scale = call("RotateQuant", x=tensor(x, kind, layout), rotation=tensor(rotation, kind, layout),
                            alpha=None, axis=1 if number else -1, roundMode=mode, scaleAlg=0, dstTypeMax=0.0,
                            trans=False, yOut=y, scaleOut=empty((rows,), layout=layout))  # fmt: skip
            np.testing.assert_allclose(scale, expected, rtol=1e-5)
            found = y.values().astype(np.int64)
            if of_y == "I32":
                found = ((np.stack([found >> 4 * i & 15 for i in range(8)], -1) ^ 8) - 8).reshape(rows, width)
            if mode == "floor":
                away = np.abs(found - np.floor(q))
                assert ((away == 0) | ((away == 1) & (np.abs(q - np.rint(q)) < 1e-3))).all()
            else:
                steps_apart(found, q)


@pytest.mark.parametrize("mode, halves",
                         [("rint", [0, 2, 2, 0, -2]), ("round", [1, 2, 3, -1, -2]),
                          ("floor", [0, 1, 2, -1, -2])])  # fmt: skip
def test_halves_of_rotated_rows(mode, halves):
    x = np.zeros((1, 128))
    x[0, :6] = 127, 0.5, 1.5, 2.5, -0.5, -1.5
    y, scale = call("RotateQuant", x=tensor(x, "F16"), rotation=tensor(np.eye(16), "F16"), alpha=None, axis=-1,
                    roundMode=mode, scaleAlg=0, dstTypeMax=0.0, trans=False, yOut=empty((1, 128), "I8"),
                    scaleOut=empty((1,)))  # fmt: skip
    assert scale == [1]
    np.testing.assert_array_equal(y[0, :6], [127, *halves])


def test_turned_matrices_from_numpy():
    x = np.float16(np.arange(48).reshape(2, 3, 8) % 15 - 7)
    out, scale = ascend.ops.flat_quant(x, np.eye(3, dtype=np.float16), np.eye(8, dtype=np.float16), 1.0)
    np.testing.assert_allclose(scale, np.ones(2))
    levels = np.stack([out >> 4 * i & 15 for i in range(8)], -1).reshape(x.shape)
    np.testing.assert_array_equal((levels ^ 8) - 8, x)
    again, _ = ascend.ops.flat_quant_v3(x, np.eye(3, dtype=np.float16), np.eye(8, dtype=np.float16), 1.0, 0.0, 0,
                                        np.int64([1]))  # fmt: skip
    np.testing.assert_array_equal(again, np.stack([out[0], np.zeros_like(out[0])]))


@pytest.mark.parametrize("of_bias", [None, "F32", "F16", "BF16", "I32"])
def test_dequantize_sums(of_bias):
    """Sums of integers, exact beyond what float32 holds; a bias of integers is one of them."""
    for number, shape in enumerate([(3, 4), (40, 700), (1, 1)]):
        m, n = shape
        for scale, kind, layout in (("F32", "F16", LAYOUTS[number]), ("BF16", "BF16", "row-major")):
            x = random(number).integers(-(2**27), 2**27, shape)
            column, row = rounded(random(1).uniform(1e-7, 3e-7, n), scale), None if number == 1 else rounded(random(2).uniform(0.5, 2, m), "F32")
            bias = None if of_bias is None else random(3).integers(-(2**20), 2**20, n) if of_bias == "I32" else drawn((n,), 3, of_bias)
            total = x + (bias if of_bias == "I32" else 0)
            expected = total * column * (1 if row is None else row[:, None]) + (0 if of_bias in (None, "I32") else bias)
            own = call("DequantBias", x=tensor(x, "I32", layout), weightScale=tensor(column, scale),
                       activateScaleOptional=None if row is None else tensor(row),
                       biasOptional=None if bias is None else tensor(bias, of_bias),
                       outputDtype=1 if kind == "F16" else 27, out=empty(shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(own, rounded(expected, kind))


def test_from_numpy():
    x, scale = np.float32([[1.5, -2.5, 300], [0, 1, 2]]), np.ones(3, np.float32)
    np.testing.assert_array_equal(ascend.ops.ascend_quant(x, scale, False, "round", 2), np.int8([[2, -2, 127], [0, 1, 2]]))


def test_from_numpy_the_type_that_is_named():
    """Eight integers of 4 bits in an int32, lowest first."""
    x, one = np.float32([[1, -2, 3, 0, 7, -8, 0, 1]] * 2), np.ones(1, np.float32)
    packed_rows = np.full((2, 1), 0x108703E1, np.int32)
    ends = np.array([2], np.int32)
    for found in (ascend.ops.ascend_quant(x, one, False, "round", 3), ascend.ops.ascend_quant_v3(x, one, False, "round", 3, -1),
                  ascend.ops.group_quant(x, np.ones((1, 8), np.float32), ends, 3)):  # fmt: skip
        np.testing.assert_array_equal(found, packed_rows, strict=True)
    levels, scales, _ = ascend.ops.dynamic_quant_v2(np.float16([[7, -7, 0, 0, 1, 0, 0, 0]]), 3)
    assert levels.dtype == np.int32 and levels.shape == (1, 1) and scales.dtype == np.float32
    whole = np.int8([[1, -3]])
    for kind, code in ((np.float16, 1), (ml_dtypes.bfloat16, 27)):
        for of_scale in (np.float32, ml_dtypes.bfloat16):
            found = ascend.ops.ascend_anti_quant(whole, np.ones(1, of_scale), code, False)
            np.testing.assert_array_equal(found, whole.astype(kind), strict=True)
    halved = ascend.ops.dequant_bias(np.int32([[2, 4]]), np.ones(2, ml_dtypes.bfloat16), 27)
    assert halved.dtype == ml_dtypes.bfloat16 and halved.astype(np.float32).tolist() == [[2, 4]]


# ---- levels and signs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, layout", [("F32", "row-major"), ("F32", "gaps"), ("F16", "reversed"), ("BF16", "gaps")])
def test_quantize_by_steps(kind, layout):
    rng = np.random.default_rng(31)
    for shape, axis in (((4, 2), 1), ((3, 5, 40), -2), ((7, 300), 0), ((5,), 0), ((0, 3), 1)):
        x, size = rounded(rng.normal(0, 60, shape), kind), shape[axis]
        for count, zero_kind, out in ((size, "I32", "I8"), (1, "U8", "U8"), (size, "I8", "I32"), (size, None, "I8"),
                                      (1, "BF16", "I32")):  # fmt: skip
            if zero_kind == "BF16" and kind != "BF16":
                continue
            scales = rounded(rng.choice([-0.5, 0.25, 1, 2, 3], count), kind)
            zeros = rng.integers(0, 20, count) if zero_kind else np.zeros(count)
            along = lambda v: v.reshape([-1 if d == axis % len(shape) else 1 for d in range(len(shape))])
            quotient = x.astype(np.float32) / along(scales).astype(np.float32)  # rounded in float32 as a step of its own
            level = np.rint((quotient + along(zeros).astype(np.float32)).astype(np.float64))
            low, high = {"I8": (-128, 127), "U8": (0, 255), "I32": (-(2**31), 2**31 - 1)}[out]
            found = call("Quantize", x=tensor(x, kind, layout), scales=tensor(scales, kind), axis=axis, dtype=out,
                         zeroPoints=tensor(zeros, zero_kind) if zero_kind else None, out=empty(shape, out, layout))  # fmt: skip
            np.testing.assert_array_equal(found, np.clip(level, low, high))
    held = {"scales": tensor([1.0]), "axis": 0, "dtype": "I8", "zeroPoints": None, "out": empty((6,), "I8")}
    assert call("Quantize", x=tensor([0.5, 1.5, -2.5, np.inf, -np.inf, np.nan]), **held).tolist() == [0, 2, -2, 127, -128, 0]


@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3)])
def test_one_step_has_no_axis(shape):
    """PyTorch's adapter passes axis 1 for every tensor of one scale."""
    x = drawn(shape, 32)
    for axis in (1, 7, -9):
        for count in (1, None):
            zeros = None if count is None else tensor([3], "I32")
            own = call("Quantize", x=tensor(x), scales=tensor([0.25]), zeroPoints=zeros, dtype="I8", axis=axis,
                       out=empty(shape, "I8"))  # fmt: skip
            np.testing.assert_array_equal(own, clipped(np.rint(4 * x) + (3 if count else 0)))


@pytest.mark.parametrize("kind, layout",
                         [("F16", "row-major"), ("F16", "reversed"), ("BF16", "row-major"),
                          ("BF16", "gaps")])  # fmt: skip
def test_levels_in_a_cache(kind, layout):
    rng = np.random.default_rng(33)
    scale_kind, zero_kind = ("F32", "I32") if kind == "F16" else ("BF16", "BF16")
    for shape, length, starts in (((4, 9, 32), 1, [8, 0, 3]), ((2, 40, 128), 17, [23, 5]), ((1, 1, 32), 1, [0]),
                                  ((3, 5, 64), 5, [0, 0, 0]),
                                  ((2, 4, 32), 0, [1, 2])):  # fmt: skip
        columns, data = shape[-1], rng.integers(-128, 128, shape)
        x = rounded(rng.normal(0, 60, (len(starts), length, columns)), kind)
        scales, zeros = rounded(rng.choice([-0.5, 0.25, 1, 2, 3], columns), scale_kind), rng.integers(-20, 20, columns)
        for sizes, shifts, index_kind, axis in (((1, 1, columns), True, "I32", -1),
                                                ((2, columns // 2, 1), True, "I64", 2),
                                                ((1, 1, columns), False, "I64", -1)):  # fmt: skip
            level = np.clip(np.rint(x.astype(np.float32) / scales.astype(np.float32) + np.float32(zeros * shifts)),
                            -128, 127)  # fmt: skip
            expected = data.copy()
            for entry, start in enumerate(starts):
                expected[entry, start : start + length] = level[entry]
            found = call("InplaceQuantScatter", selfRef=tensor(data, "I8", layout),
                         indices=tensor(starts, index_kind, layout), updates=tensor(x, kind, layout),
                         quantScales=tensor(scales.reshape(sizes), scale_kind, layout),
                         quantZeroPoints=tensor(zeros.reshape(sizes), zero_kind, layout) if shifts else None, axis=-2,
                         quantAxis=axis, reduction=1)  # fmt: skip
            np.testing.assert_array_equal(found, expected)
    for start in (-1, 3):
        assert "room for 4" in fault("InplaceQuantScatter", tensor(np.zeros((2, 4, 32)), "I8"),
                                     tensor([0, start], "I64"), tensor(np.ones((2, 2, 32)), "F16"),
                                     tensor(np.ones((1, 1, 32))), None, -2, -1, 1)  # fmt: skip


@pytest.mark.parametrize("kind, layout", [("F32", "row-major"), ("F16", "gaps"), ("F32", "reversed")])
def test_fake_quantize_as_pytorch_does(kind, layout):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(32)
    for shape, axis in (((4, 6), 1), ((3, 5, 40), -2), ((70, 300), 0), ((), 0)):
        x, size = rounded(rng.normal(0, 8, shape), kind), shape[axis] if shape else 1
        scales, zeros = rng.choice([0.25, 0.5, 1, 2], size), rng.integers(-3, 4, size)  # exact quotients: the same in PyTorch
        along = lambda v: v.reshape([-1 if d == axis % len(shape) else 1 for d in range(len(shape))]) if shape else v[0]
        level = np.rint(x / along(scales)) + along(zeros)
        expected, inside = (np.clip(level, -5, 9) - along(zeros)) * along(scales), (level >= -5) & (level <= 9)
        if shape:
            other = torch.fake_quantize_per_channel_affine(torch.tensor(x, dtype=torch.float32),
                                                           torch.tensor(scales, dtype=torch.float32),
                                                           torch.tensor(zeros, dtype=torch.int32), axis % len(shape),
                                                           -5, 9)  # fmt: skip
            np.testing.assert_array_equal(expected, other.numpy())
        outputs = lambda: {"out": empty(shape, kind, layout), "mask": empty(shape, "B", layout)}
        limits = {"quantMin": -5, "quantMax": 9}
        found, mask = call("FakeQuantPerChannelAffineCachemask", self=tensor(x, kind, layout), scale=tensor(scales),
                           axis=axis, zeroPoint=tensor(zeros, "I32", layout), **limits, **outputs())  # fmt: skip
        np.testing.assert_array_equal(found, rounded(expected, kind))
        np.testing.assert_array_equal(mask, inside)
        level = np.rint(x / scales[0]) + zeros[0]
        one = {"self": tensor(x, kind, layout), "scale": tensor(scales[:1], "F16"),
               "zeroPoint": tensor(zeros[:1], "I32"), **limits}  # fmt: skip
        found, mask = call("FakeQuantPerTensorAffineCachemask", fakeQuantEnabled=1.0, **one, **outputs())
        np.testing.assert_array_equal(found, rounded((np.clip(level, -5, 9) - zeros[0]) * scales[0], kind))
        np.testing.assert_array_equal(mask, (level >= -5) & (level <= 9))
        found, mask = call("FakeQuantPerTensorAffineCachemask", fakeQuantEnabled=0.5, **one, **outputs())
        np.testing.assert_array_equal(found, x)
        assert np.all(mask)
    steps = {"scale": tensor([1.0]), "zeroPoint": tensor([0], "I32"), "fakeQuantEnabled": 1.0, "quantMin": -5, "quantMax": 9}
    found, mask = call("FakeQuantPerTensorAffineCachemask", self=tensor([np.nan, np.inf, 0.5]), **steps,
                       out=empty((3,)), mask=empty((3,), "B"))  # fmt: skip
    np.testing.assert_array_equal(found, [np.nan, 9, 0])
    assert np.asarray(mask).tolist() == [False, False, True]


def test_signs():
    page = np.array([5, 4, 3, 2, 0, -1, -2, 4, 3, 2, 1, 0, -1, -2.0])
    assert call("SignBitsPack", self=tensor(page), size=2, out=empty((2, 1), "U8")).tolist() == [[159], [15]]
    ones = call("SignBitsUnpack", self=tensor([159, 15], "U8"), size=2, dtype="F32", out=empty((2, 8)))
    assert np.asarray(ones).tolist() == [[1, 1, 1, 1, 1, -1, -1, 1], [1, 1, 1, 1, -1, -1, -1, -1]]
    assert call("SignBitsPack", self=tensor([np.nan, -0.0, np.inf, -np.inf]), size=1,
                out=empty((1, 1), "U8")).tolist() == [[6]]  # fmt: skip
    for kind, layout in itertools.product(("F32", "F16"), LAYOUTS):
        for count, rows in ((1, 1), (64, 4), (50001, 7), (8 * 4096, 16), (0, 3)):
            values = np.random.default_rng(count).normal(0, 1, count)
            packed = np.packbits(values >= 0, bitorder="little").reshape(rows, -1) if count else np.zeros((rows, 0))
            found = call("SignBitsPack", self=tensor(values, kind, layout), size=rows, out=empty(packed.shape, "U8", layout))
            np.testing.assert_array_equal(found, packed)
            signs = np.unpackbits(packed.ravel().astype(np.uint8), bitorder="little").reshape(rows, -1) * 2.0 - 1
            found = call("SignBitsUnpack", self=tensor(packed.ravel(), "U8", layout), size=rows, dtype=kind,
                         out=empty(signs.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, signs)


def test_an_output_that_is_not_asked_for_may_be_what_cannot_be_packed():
    entry = pages.operators()["AddRmsNormDynamicQuantV2"]
    other = {"outputMask": None, "smoothScale2Optional": None, "y2Out": pages.shaped("I4[]")}
    assert pages.result_of(entry, pages.legal(entry) | other) == Result(0, untouched=False)
