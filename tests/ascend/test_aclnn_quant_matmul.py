"""Products of quantized matrices: exact sums, scales of rows, columns and groups, packed integers of 4 bits."""

import numpy as np
import pytest

from understudy import ascend

from tests.ascend.calling import LAYOUTS, call, empty, packed, random, refusal, rounded, tensor, whole
from tests.conformance.ascend import aclnn_support as support


def nibbles(shape, seed):
    return whole(shape, seed, -8, 8)


def wide(scale):
    """A scale of 64 bits: the float32 in the low half, what is above does not count."""
    return tensor(np.float32(scale).view(np.uint32).astype(np.uint64) | np.uint64(1 << 46), "U64")


def parameters(scale, offset, kind):
    """What aclnnTransQuantParam makes of both: the offset is in bits 37 to 45."""
    bits = np.float32(scale).view(np.uint32).astype(np.int64) | np.int64(1) << 46 | (np.int64(offset) & 0x1FF) << 37
    return tensor(bits.view({"I64": np.int64, "U64": np.uint64}[kind]), kind, "reversed")


def scales(count, seed):
    return rounded(random(seed).uniform(0.001, 0.02, count), "BF16")


def expected_of(sums, scale, rows, bias, offset, kind, integer_bias):
    total = (sums + (bias if integer_bias else 0)) * scale
    total = total * rows + offset + (0 if integer_bias else bias)
    return np.clip(np.rint(total), -128, 127) if kind == "I8" else rounded(total, kind)


def product_of(version, given, out):
    names = {"V3": {}, "V4": {"pertokenScaleOptional": given["rows"]}, "V5": {}}[version]
    if version == "V5":
        absent = None if given["bias"] is None else tensor(np.zeros(0), "I8")
        names = {"x1Scale": given["rows"], "x2Scale": given["scale"], "x2Offset": given["offset"], "yScale": None,
                 "x1Offset": absent, "yOffset": absent,
                 "groupSize": 0 if given["bias"] is None else -(1 << 48)}  # its upper 16 bits do not count
    else:
        names |= {"scale": given["scale"], "offset": given["offset"]}
    return call(f"QuantMatmul{version}", x1=given["x1"], x2=given["x2"], bias=given["bias"], transposeX1=given["turned"][0],
                transposeX2=given["turned"][1], out=out, **names)  # fmt: skip


# out, scale's type, whether rows have scales, bias, offset
CASES = [("F16", "U64", False, "I32", False), ("F16", "U64", False, None, False), ("I8", "U64", False, "I32", True),
         ("I8", "U64", False, None, False), ("BF16", "F32", False, "I32", False), ("BF16", "BF16", False, "BF16", False),
         ("BF16", "BF16", True, "F32", False), ("BF16", "F32", True, "I32", False), ("F16", "F32", True, "F16", False),
         ("F16", "F32", True, "I32", False), ("I32", "F32", False, "I32", False), ("I32", "BF16", False, None, False)]  # fmt: skip


def test_products():
    """Every row of the pages' tables, batches that broadcast, transposed and strided operands."""
    shapes = [((3, 5), (5, 7)), ((2, 1, 4, 300), (3, 300, 9)), ((2, 5, 33), (2, 33, 270))]
    for number, (out, scale_kind, has_rows, bias_kind, has_offset) in enumerate(CASES):
        a_shape, b_shape = shapes[number % 3]
        a, b = whole(a_shape, number), whole(b_shape, number + 50)
        a.flat[:3], b.flat[:3] = -128, -128
        m, n = a_shape[-2], b_shape[-1]
        turned = number % 2 == 1, number % 4 > 1
        layout = LAYOUTS[number % 3]
        scale = scales(1 if number % 5 == 4 else n, number)
        rows = scales(m, number + 9) * 50 if has_rows else 1
        bias = random(number).integers(-5000, 5000, n) * (1 if bias_kind == "I32" else 1 / 8)
        bias = 0 if bias_kind is None else rounded(bias, bias_kind)
        offset = np.arange(n) % 9 - 4.5 if has_offset else 0
        given = {
            "x1": tensor(a.swapaxes(-1, -2) if turned[0] else a, "I8", layout), "turned": turned,
            "x2": tensor(b.swapaxes(-1, -2) if turned[1] else b, "I8", layout),
            "scale": wide(scale) if scale_kind == "U64" else tensor(scale, scale_kind),
            "rows": tensor(rows, "F32") if has_rows else None,
            "bias": None if bias_kind is None else tensor(bias, bias_kind),
            "offset": tensor(offset, "F32") if has_offset else None,
        }  # fmt: skip
        sums = a @ b
        expected = expected_of(sums, scale, rows[:, None] if has_rows else 1, bias, offset, out, bias_kind == "I32")
        if out == "I32":
            expected = sums + bias
        for version in ("V4", "V5") if has_rows or bias_kind == "F16" else ("V3", "V4", "V5"):
            own = product_of(version, given, empty(expected.shape, out, layout))
            np.testing.assert_array_equal(own, expected, err_msg=f"{version} {out} {scale_kind}")


def test_bias_of_a_batch():
    a, b, bias = whole((2, 3, 8), 1), whole((2, 8, 5), 2), rounded(whole((2, 1, 5), 3) / 4, "F32")
    given = {"x1": tensor(a, "I8"), "x2": tensor(b, "I8"), "turned": (False, False), "scale": tensor([0.5], "F32"),
             "rows": None, "bias": tensor(bias, "F32"), "offset": None}  # fmt: skip
    for version in ("V3", "V4", "V5"):
        own = product_of(version, given, empty((2, 3, 5), "BF16"))
        np.testing.assert_array_equal(own, rounded(a @ b * 0.5 + bias, "BF16"))
        integers = {**given, "bias": tensor(bias * 4, "I32")}
        own = product_of(version, integers, empty((2, 3, 5), "BF16"))
        np.testing.assert_array_equal(own, rounded((a @ b + bias * 4) * 0.5, "BF16"))
        own = product_of(version, integers, empty((2, 3, 5), "I32"))
        np.testing.assert_array_equal(own, a @ b + bias * 4)


def test_integers_of_four_bits():
    for number, (left, right, turned, view) in enumerate([("I4", "I4", False, False), ("I32", "I32", True, False),
                                                          ("I4", "I32", False, False), ("I32", "I4", False, True)]):  # fmt: skip
        a, b = nibbles((3, 40), number), nibbles((40, 16), number + 20)
        scale, rows, bias = scales(16, number), scales(3, number + 5), random(number).integers(-50, 50, 16)
        given = {"x1": packed(a, left), "x2": packed(b.T if turned else b, right, turned=view), "turned": (False, turned),
                 "scale": tensor(scale, "F32"), "rows": tensor(rows, "F32"), "bias": tensor(bias, "I32"), "offset": None}  # fmt: skip
        for version in ("V4", "V5"):
            own = product_of(version, given, empty((3, 16), "F16"))
            np.testing.assert_array_equal(own, rounded((a @ b + bias) * scale * rows[:, None], "F16"))
        given |= {"scale": wide(scale), "rows": None}
        own = product_of("V3", given, empty((3, 16), "F16"))
        np.testing.assert_array_equal(own, rounded((a @ b + bias) * scale, "F16"))


def grouped(a, b, row_scale, scale, zero, group):
    """The sum over groups, in float64, group after group."""
    total = 0
    for at in range(0, a.shape[1], group):
        part = a[:, at : at + group] @ b[at : at + group]
        if zero is not None:
            part = part - a[:, at : at + group].sum(1, keepdims=True) * zero[at // group]
        total = total + part * (1 if row_scale is None else row_scale[:, at // group, None]) * scale[at // group]
    return total


def test_groups():
    common = {"yScale": None, "x1Offset": None, "transposeX1": False}
    a, b, bias = whole((5, 512), 1), whole((512, 256), 2), rounded(whole(256, 3) / 4, "F32")
    rows, blocks = scales((5, 4), 4), scales((4, 2), 5)
    expected = grouped(a, b, rows, np.repeat(blocks, 128, axis=1), None, 128) + bias
    own = call("QuantMatmulV5", x1=tensor(a, "I8", "gaps"), x2=tensor(b.T, "I8"), x1Scale=tensor(rows),
               x2Scale=tensor(blocks.T), x2Offset=None, yOffset=None, bias=tensor(bias), transposeX2=True,
               groupSize=4303356032, out=empty((5, 256), "BF16", "gaps"), **common)  # fmt: skip
    np.testing.assert_array_equal(own, rounded(expected, "BF16"))

    a, b, row, scale, shift = whole((3, 512), 6), nibbles((512, 24), 7), scales((3, 1), 8), scales((2, 24), 9), whole(24, 10) / 2
    for kind in ("F16", "BF16"):
        expected = (grouped(a, b, None, scale, None, 256) + shift) * row
        own = call("QuantMatmulV5", x1=tensor(a, "I8"), x2=packed(b, "I32"), x1Scale=tensor(row), x2Scale=wide(scale),
                   x2Offset=None, yOffset=tensor(shift), bias=None, transposeX2=False, groupSize=256,
                   out=empty((3, 24), kind), **common)  # fmt: skip
        np.testing.assert_array_equal(own, rounded(expected, kind))

    a, b, scale = nibbles((2, 1024), 11), nibbles((1024, 256), 12), scales((4, 256), 13)
    zero = rounded(random(14).uniform(-3, 3, (4, 256)), "F16")
    expected = grouped(a, b, None, scale, zero, 256) * row[:2]
    own = call("QuantMatmulV5", x1=packed(a, "I4"), x2=packed(b.T, "I4"), x1Scale=tensor(row[:2]), x2Scale=tensor(scale),
               x2Offset=tensor(zero, "F16"), yOffset=None, bias=None, transposeX2=True, groupSize=256,
               out=empty((2, 256), "BF16"), **common)  # fmt: skip
    np.testing.assert_array_equal(own, rounded(expected, "BF16"))


def weight_product(version, x, weight, scale, y, offset=None, bias=None, group=0, quant=(None, None)):
    inner = {"innerPrecise": 1} if version == "V3" else {}
    return call(f"WeightQuantBatchMatmul{version}", x=x, weight=weight, antiquantScale=scale, antiquantOffsetOptional=offset,
                quantScaleOptional=quant[0], quantOffsetOptional=quant[1], biasOptional=bias, antiquantGroupSize=group,
                y=y, **inner)  # fmt: skip


def near(actual, expected, terms, kind):
    """float32 sums, rounded once."""
    slack = {"F16": 2.0**-11, "BF16": 2.0**-8}[kind] * np.abs(expected) + 2.0**-20 * terms
    assert (np.abs(actual - expected) <= slack).all()


@pytest.mark.parametrize("version", ["V2", "V3"])
def test_weights(version):
    """Weights by rows and by columns, all granularities, both widths."""
    k, n = 96, 70
    for number, (kind, width, turned, group) in enumerate(
        [("F16", "I8", False, 0), ("BF16", "I8", True, 32), ("F16", "I4", True, 64), ("BF16", "I4", False, 0),
         ("F16", "I32", True, 32), ("BF16", "I8", False, 64)]):  # fmt: skip
        x, bias_kind = rounded(random(number).normal(0, 1, (5, k)), kind), "F32" if kind == "BF16" else "F16"
        w = whole((k, n), number) if width == "I8" else nibbles((k, n), number)
        weight = tensor(w, "I8", "reversed" if turned else "gaps") if width == "I8" else packed(w, width, turned=turned)
        shape = (-(-k // group), n) if group else [(n,), (1, n), (1,), (1, 1)][number % 4]
        scale, offset = scales(shape, number), np.rint(random(number).uniform(-5, 5, shape))
        bias = rounded(random(number).normal(0, 1, n), bias_kind)
        spread = lambda v: np.repeat(v, group, axis=0)[:k] if group else np.broadcast_to(v, (1, n))
        for given in (offset, None):
            real = (w + (0 if given is None else spread(offset))) * spread(scale)
            for added in (bias, None):
                own = weight_product(version, tensor(x, kind, LAYOUTS[number % 3]), weight, tensor(scale, kind, "reversed"),
                                     empty((5, n), kind, LAYOUTS[number % 3]), group=group,
                                     offset=None if given is None else tensor(offset, kind, "reversed"),
                                     bias=None if added is None else tensor(bias, bias_kind))  # fmt: skip
                expected = x @ real + (0 if added is None else bias)
                near(own, expected, np.abs(x) @ np.abs(real), kind)


@pytest.mark.parametrize("version", ["V2", "V3"])
@pytest.mark.parametrize("width", ["I8", "I4"])
def test_weights_of_one_of_many(version, width):
    """An offset that the storage shape does not count, as llama.cpp gives it; a weight that is not transposed may not have it."""
    experts, n, k, group = 3, 34, 64, 32
    x, scale = rounded(random(1).normal(0, 1, (5, k)), "F16"), scales((experts, n, k // group), 2)
    w = (whole if width == "I8" else nibbles)((experts, n, k), 3)
    stored = tensor(w.reshape(-1, k), "I8") if width == "I8" else packed(w.reshape(-1, k), "I4")
    code = support.lib.ACL_INT4 if width == "I4" else None
    for expert in range(experts):
        of_weight = {"shape": [k, n], "strides": [1, k], "offset": expert * n * k, "storage": [n * k]}
        of_scale = {"shape": [k // group, n], "strides": [1, k // group], "offset": expert * n * k // group,
                    "storage": [n * k // group]}  # fmt: skip
        weight = support.Tensor(support.I8, stored.stored(), code=code, **of_weight)
        own = weight_product(version, tensor(x, "F16"), weight, support.Tensor(support.F16, scale.ravel(), **of_scale),
                             empty((5, n), "F16"), group=group)  # fmt: skip
        real = w[expert].T * np.repeat(scale[expert].T, group, axis=0)
        near(own, x @ real, np.abs(x) @ np.abs(real), "F16")
    outside = support.Tensor(support.I8, np.zeros(2 * k * n), shape=[k, n], strides=[2 * n, 2], offset=1, storage=[k * n])
    inner = [0] if version == "V3" else []
    assert refusal(f"WeightQuantBatchMatmul{version}", tensor(x, "F16"), outside, tensor(np.ones(n), "F16"), None, None, None, None,
                   0, *inner, empty((5, n), "F16")) == (561103, f"aclnnWeightQuantBatchMatmul{version}/weight/view")  # fmt: skip


def test_a_column_of_packed_weights():
    """Its integers lie side by side along the depth, whatever the stride of the one column."""
    x, w = rounded(random(1).normal(0, 1, (5, 64)), "F16"), nibbles((64, 1), 2)
    raw = packed(w.T, "I4").stored()
    for strides in ([1, 64], [1, 1]):
        weight = support.Tensor(support.I8, raw, shape=[64, 1], strides=strides, storage=[64], code=support.lib.ACL_INT4)
        own = weight_product("V2", tensor(x, "F16"), weight, tensor(np.full(1, 0.25), "F16"), empty((5, 1), "F16"))
        near(own, x @ (w * 0.25), np.abs(x) @ np.abs(w), "F16")


@pytest.mark.parametrize("turned", [False, True])
def test_weights_of_one_scale_for_a_column(turned):
    """Of bfloat16 x the sums are scaled, where weights with their offsets are whole numbers that bfloat16 holds: -256 to 255."""
    k, n = 333, 300
    x, w, scale = rounded(random(1).normal(0, 1, (37, k)), "BF16"), whole((k, n), 2), scales((n,), 3)
    w[:2] = [[-128], [127]]
    bias, weight = rounded(random(4).normal(0, 1, n), "F32"), tensor(w, "I8", "reversed" if turned else "row-major")
    extremes = np.resize([-128.0, 128.0], n)
    for offset in (None, np.zeros(n), extremes, np.rint(random(5).uniform(-128, 128, n)), np.where(np.arange(n) == 299, 0.5, extremes),
                   np.where(np.arange(n) == 260, 129.0, extremes)):  # fmt: skip
        real = (w + (0 if offset is None else offset)) * scale
        for added in (None, bias):
            own = weight_product("V2", tensor(x, "BF16"), weight, tensor(scale, "BF16"), empty((37, n), "BF16"),
                                 offset=None if offset is None else tensor(offset, "BF16"), bias=None if added is None else tensor(added))
            near(own, x @ real + (0 if added is None else added), np.abs(x) @ np.abs(real), "BF16")


def test_weights_of_no_depth():
    """They are refused, after their scales are looked at."""
    for k, expected in ((0, (161002, "aclnnWeightQuantBatchMatmulV2/x/empty")), (2, (0, ""))):
        status, rule = refusal("WeightQuantBatchMatmulV2", tensor(np.zeros((3, k)), "F16"), tensor(np.zeros((k, 5)), "I8"),
                               tensor(np.ones(5), "F16"), None, None, None, None, 0, empty((3, 5), "F16"))  # fmt: skip
        assert (status, rule if status else "") == expected


def test_quantized_results_and_wide_scales():
    x, w = np.rint(random(1).normal(0, 2, (3, 64))), whole((64, 64), 2)
    scale, quant, shift = 2.0 ** -(np.arange(64) % 3), 2.0 ** -(np.arange(64) % 5 + 3), np.arange(64) % 7 - 3.0
    exact = x @ (w * scale)
    for offset in (None, shift):
        own = weight_product("V2", tensor(x, "F16"), tensor(w, "I8"), tensor(scale, "F16"), empty((3, 64), "I8"),
                             quant=(wide(quant), None if offset is None else tensor(offset)))  # fmt: skip
        np.testing.assert_array_equal(own, np.clip(np.rint(exact * quant + (0 if offset is None else offset)), -128, 127))
    for version, kind in (("V2", "I64"), ("V3", "U64")):  # the offset of the scale counts where none is given
        for offset in (None, -shift):
            own = weight_product(version, tensor(x, "F16"), tensor(w, "I8"), tensor(scale, "F16"), empty((3, 64), "I8"),
                                 quant=(parameters(quant, shift * 85, kind), None if offset is None else tensor(offset)))  # fmt: skip
            added = shift * 85 if offset is None else offset
            np.testing.assert_array_equal(own, np.clip(np.rint(exact * quant + added), -128, 127))
    x = x / 16
    own = weight_product("V3", tensor(x, "F16"), tensor(w, "I8", "reversed"), wide(scale), empty((3, 64), "F16"),
                         offset=tensor(shift, "I32"))  # fmt: skip
    np.testing.assert_array_equal(own, rounded(x @ ((w + shift) * scale), "F16"))
    for layout, expected in (("row-major", 0), ("reversed", 161002)):  # x may not be transposed beside such a scale
        status, rule = refusal("WeightQuantBatchMatmulV3", tensor(x, "F16", layout), tensor(w, "I8", "reversed"), wide(scale), None, None,
                               None, None, 0, 0, empty((3, 64), "F16"))  # fmt: skip
        assert status == expected and (status == 0 or rule == "aclnnWeightQuantBatchMatmulV3/antiquantScale/case")


def test_wide_panels():
    """More columns than are dequantized at once, a single row."""
    k, n = 4200, 600
    x, w, scale = rounded(random(1).normal(0, 1, (1, k)), "F16"), whole((k, n), 2), scales((-(-k // 128), n), 3)
    real = w * np.repeat(scale, 128, axis=0)[:k]
    own = weight_product("V2", tensor(x, "F16"), tensor(w, "I8"), tensor(scale, "F16"), empty((1, n), "F16"), group=128)
    near(own, x @ real, np.abs(x) @ np.abs(real), "F16")


def test_numpy_functions():
    a, b, scale, rows = whole((2, 3, 8),
                              1).astype(np.int8), whole((5, 8),
                                                        2).astype(np.int8), np.float32(scales(5, 3)), np.float32([1, 2, 4])  # fmt: skip
    expected = (a.astype(np.int64) @ b.T.astype(np.int64)) * scale * rows[:, None]
    found = ascend.ops.quant_matmul_v4(a, b, scale, False, True, pertokenScaleOptional=rows, out_dtype="float16")
    np.testing.assert_array_equal(found, rounded(expected, "F16"))
    x, weight = np.float16(rounded(random(4).normal(0, 1, (3, 8)), "F16")), b.T.copy()
    found = ascend.ops.weight_quant_batch_matmul_v2(x, weight, np.float16(scale), 0)
    near(found, x @ (weight * np.float64(np.float16(scale))), np.full((3, 5), 64.0), "F16")


def eights(numbers):
    """Integers of 4 bits as they lie in int32, along the last axis."""
    return packed(numbers.reshape(-1, numbers.shape[-1]), "I32").stored().view(np.int32).reshape(*numbers.shape[:-1], -1)


def test_numpy_functions_of_integers_of_four_bits():
    """An int32 of NumPy is eight of them: the results have the shapes of the integers, of transposed arrays too."""
    a, b, scale, rows = nibbles((5, 64), 1), nibbles((64, 16), 2), np.float32(scales(16, 3)), np.ones(5, np.float32)
    for right, turned in ((eights(b), False), (eights(b.T.copy()), True)):
        found = ascend.ops.quant_matmul_v4(eights(a), right, scale, False, turned, pertokenScaleOptional=rows, out_dtype="float16")
        np.testing.assert_array_equal(found, rounded(a @ b * scale, "F16"))
    x = np.float16(rounded(random(4).normal(0, 1, (3, 64)), "F16"))
    for weight in (eights(b), eights(b.T.copy()).T):
        found = ascend.ops.weight_quant_batch_matmul_v2(x, weight, np.float16(scale), 0)
        near(found, x @ (b * np.float64(np.float16(scale))), np.full((3, 16), 512.0), "F16")
    ones, x = np.ones(64, np.float32), np.float32(a)
    found = ascend.ops.ascend_quant(x, ones, False, "round", 3, out_dtype="int32")
    np.testing.assert_array_equal(found, eights(a))
    np.testing.assert_array_equal(ascend.ops.ascend_anti_quant(found, ones, 1, False), a)
    found, scale = ascend.ops.dynamic_quant(np.float16(np.where(np.arange(64) == 9, 7, a)), out_dtype="int32")
    assert scale.shape == (5,) and found.shape == (5, 8)


def test_weights_with_numbers_in_two_parts():
    """Few rows take the ready offset and scale, many the two parts that these are made of."""
    for number, m in enumerate((1, 63, 64, 130)):
        layout, turned, k, n = LAYOUTS[number % 3], (number % 2 == 1, number > 1), 40, (7, 1, 5, 9)[number]
        x, b = rounded(random(1).normal(0, 1, (m, k)), "F16"), whole((k, n), 2)
        added, factor = rounded(random(3).normal(0, 3, n), "F16"), rounded(random(4).uniform(0.01, 0.03, n), "F16")
        deq_offset, deq_scale, bias = np.arange(n) - 3, scales(n, 5), rounded(random(6).normal(0, 9, n), "F32")
        mat2 = (b + deq_offset) * deq_scale if m < 64 else ((b - 2.0) * 0.5 + added) * factor
        given = {"deqOffset": tensor(deq_offset, "I32"), "deqScale": wide(deq_scale),
                 "addOffset": tensor(added[:, None], "F16", layout),
                 "mulScale": tensor(factor[None], "F16", layout)}  # fmt: skip
        given = {name: value for name, value in given.items() if (m < 64) == name.startswith("deq")}
        names = dict.fromkeys(["deqOffset", "deqScale", "addOffset", "mulScale"]) | given
        own = call("WeightQuantBatchMatmul", x1=tensor(x.T if turned[0] else x, "F16", layout),
                   x2=tensor(b.T if turned[1] else b, "I8", layout),
                   diagonalMatrix=tensor(np.eye(32), "I8") if m < 64 else None, bias=tensor(bias),
                   transposeX1=turned[0], transposeX2=turned[1], antiquantScale=0.5, antiquantOffset=2.0,
                   out=empty((m, n), "F16", layout), **names)  # fmt: skip
        expected = x @ mat2 + bias
        np.testing.assert_allclose(own, expected, rtol=2.0**-11 * 1.01, atol=2.0**-22 * np.abs(mat2).max() * k)
    plain = dict.fromkeys(["diagonalMatrix", "deqOffset", "deqScale", "addOffset", "mulScale", "bias"])
    own = call("WeightQuantBatchMatmul", x1=tensor(np.full((64, 1), 0.75), "F16"), x2=tensor([[3, -3, 127]], "I8"),
               transposeX1=False, transposeX2=False, antiquantScale=2.0, antiquantOffset=0.0, out=empty((64, 3), "I8"),
               **plain)  # fmt: skip
    assert own[0].tolist() == [4, -4, 127]  # 4.5, -4.5 and 190.5, as a cast


def test_first_versions():
    """One factor for all, and one for each column in a vector whose length is a multiple of 16; sums beyond float32, and of nothing."""
    for number, (batch, m, k, n) in enumerate([((), 3, 8, 4), ((2,), 5, 300, 17), ((3,), 1, 70000, 2), ((), 4, 0, 6)]):
        layout = LAYOUTS[number % 3]
        a, b = whole((*batch, m, k), number), whole((*batch, k, n), number + 9)
        bias = None if k == 0 else random(number).integers(-9999, 9999, n)
        sums = a @ b + (0 if bias is None else bias)
        added = None if bias is None else tensor(bias, "I32", layout)
        factor = float(np.float32(1e-3))
        own = call("QuantMatmul", x1=tensor(a, "I8", layout), x2=tensor(b, "I8", layout), bias=added, deqScale=factor,
                   out=empty(sums.shape, "F16", layout))  # fmt: skip
        np.testing.assert_array_equal(own, rounded(sums * factor, "F16"))
        scale = scales(-(-n // 16) * 16, number)
        for turned1, turned2 in ((False, False), (True, True)):
            own = call("QuantMatmulV2", x1=tensor(a.swapaxes(-1, -2) if turned1 else a, "I8", layout),
                       x2=tensor(b.swapaxes(-1, -2) if turned2 else b, "I8", layout), bias=added, deqScale=wide(scale),
                       adjX1=turned1, adjX2=turned2, out=empty(sums.shape, "F16", layout))  # fmt: skip
            np.testing.assert_array_equal(own, rounded(sums * scale[:n], "F16"))
    a, b = whole((1, 4, 5), 1), whole((3, 5, 2), 2)
    own = call("QuantMatmulV2", x1=tensor(a, "I8"), x2=tensor(b, "I8"), bias=None, deqScale=wide(np.ones(16)),
               adjX1=False, adjX2=False, out=empty((3, 4, 2), "F16"))  # fmt: skip
    np.testing.assert_array_equal(own, rounded(a @ b, "F16"))
