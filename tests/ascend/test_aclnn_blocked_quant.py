"""Products of quantized matrices by the functions whose weights lie in blocks."""

import math

import numpy as np
import pytest

from tests.ascend.blocks import blocked, convolution_blocked, in_line
from tests.ascend.calling import LAYOUTS, call, empty, empty_packed, fault, packed, random, rounded, tensor, unpacked, whole
from tests.ascend.test_aclnn_quant_matmul import CASES, expected_of, nibbles, parameters, scales, weight_product, wide
from tests.ascend.test_aclnn_quant_matmul import near as near_sum
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor, ffi, lib


def quant_matmul(x1, x2, out, scale, turned=(False, False), rows=None, bias=None, offset=None, shift=None):
    return call("QuantMatmulWeightNz", x1=x1, x2=x2, x1Scale=rows, x2Scale=scale, yScale=tensor(np.zeros(0), "I8"), x1Offset=None,
                x2Offset=offset, yOffset=shift, bias=bias, transposeX1=turned[0], transposeX2=turned[1], groupSize=0,
                out=out)  # fmt: skip


def forms(values, kind, turned):
    """Every tensor that holds such a weight; `turned`: what the flag says of the matrix."""
    given = values.swapaxes(-1, -2) if turned else values
    yield blocked(given, kind)
    yield blocked(given, kind, own=True)
    if kind != "I32" or given.shape[-2] % 8 == 0:
        yield blocked(given, kind, turned=True)
    if kind == "I8":
        yield in_line(given, kind)


def scale_of(scale, kind):
    return wide(scale) if kind == "U64" else tensor(scale, kind)


def test_products_of_bytes():
    """Every row of the table, batches that broadcast, sizes that do not fill blocks."""
    shapes = [((3, 5), (5, 7)), ((2, 1, 4, 300), (3, 300, 9)), ((2, 5, 33), (2, 33, 70))]
    for number, (out, scale_kind, has_rows, bias_kind, has_offset) in enumerate(CASES):
        a_shape, b_shape = shapes[number % 3]
        a, b = whole(a_shape, number), whole(b_shape, number + 50)
        a.flat[:3], b.flat[:3] = -128, -128
        m, n = a_shape[-2], b_shape[-1]
        layout = LAYOUTS[number % 3]
        scale = scales(1 if number % 5 == 4 else n, number)
        rows = scales(m, number + 9) * 50 if has_rows else None
        bias = random(number).integers(-5000, 5000, n) * (1 if bias_kind == "I32" else 1 / 8)
        bias = 0 if bias_kind is None else rounded(bias, bias_kind)
        offset = np.arange(n) % 9 - 4.5 if has_offset else 0
        sums = a @ b
        expected = expected_of(sums, scale, rows[:, None] if has_rows else 1, bias, offset, out, bias_kind == "I32")
        expected = sums + bias if out == "I32" else expected
        for turned in ((number % 2 == 1, False), (number % 2 == 0, True)):
            for weight in forms(b, "I8", turned[1]):
                own = quant_matmul(
                    tensor(a.swapaxes(-1, -2) if turned[0] else a, "I8", layout), weight, empty(expected.shape, out, layout),
                    scale_of(scale, scale_kind), turned, rows=tensor(rows) if has_rows else None,
                    bias=None if bias_kind is None else tensor(bias, bias_kind), offset=tensor(offset) if has_offset else None)  # fmt: skip
                np.testing.assert_array_equal(own, expected, err_msg=f"{number} {turned}")


# out, scale's type, whether rows have scales, bias, offset
OF_FOUR_BITS = [("BF16", "BF16", True, "BF16", False), ("BF16", "BF16", False, None, True), ("BF16", "F32", True, None, False),
                ("BF16", "F32", False, None, True), ("F16", "U64", True, "I32", False), ("F16", "U64", False, "I32", True),
                ("F16", "F32", True, "I32", False), ("F16", "F32", False, None, True), ("F16", "F32", False, "I32", True)]  # fmt: skip


@pytest.mark.parametrize("row", range(len(OF_FOUR_BITS)))
def test_products_of_four_bits(row):
    """More than a block of 64 numbers, and less than two."""
    out, scale_kind, has_rows, bias_kind, has_offset = OF_FOUR_BITS[row]
    a, b = nibbles((2, 5, 70), row), nibbles((2, 70, 82), row + 20)
    scale, rows, offset = scales(82, row), scales(5, row + 5), np.arange(82) % 9 - 4.5
    bias = random(row).integers(-50, 50, 82)
    total = (a @ b + (bias if bias_kind == "I32" else 0)) * scale * (rows[:, None] if has_rows else 1)
    total = total + (offset if has_offset else 0) + (bias if bias_kind == "BF16" else 0)
    for turned in (False, True):
        for weight in forms(b, "I4", turned):
            own = quant_matmul(packed(a, "I4"), weight, empty((2, 5, 82), out, "gaps"), scale_of(scale, scale_kind), (False, turned),
                               rows=tensor(rows) if has_rows else None, offset=tensor(offset) if has_offset else None,
                               bias=None if bias_kind is None else tensor(bias, bias_kind))  # fmt: skip
            np.testing.assert_array_equal(own, rounded(total, out))


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_bytes_beside_four_bits(kind):
    """(x1 @ x2 x2Scale + yOffset) x1Scale, the shift being what the page asks for and any other."""
    a, b, scale, rows = whole((5, 72), 1), nibbles((72, 40), 2), scales(40, 3), scales(5, 4)
    for number, shift in enumerate((rounded(8 * (b * scale).sum(0), "F32"), whole(40, 5) / 2)):
        expected = (a @ b * scale + shift) * rows[:, None]
        for turned in (False, True):
            for weight in forms(b, "I32", turned):
                one = number == 1 and not turned
                own = quant_matmul(tensor(a, "I8", "gaps"), weight, empty((5, 40), kind), wide(scale[:1] if one else scale), (False, turned),
                                   rows=tensor(rows), shift=tensor(shift))  # fmt: skip
                total = (a @ b * scale[0] + shift) * rows[:, None] if one else expected
                np.testing.assert_array_equal(own, rounded(total, kind))


@pytest.mark.parametrize("version", ["V4", "V5"])
def test_four_bits_in_blocks_by_the_plain_functions(version):
    a, b = nibbles((5, 72), 1), nibbles((72, 88), 2)
    scale, rows, bias = scales(88, 3), scales(5, 4), random(5).integers(-50, 50, 88)
    names = {"V4": {"scale": tensor(scale), "offset": None, "pertokenScaleOptional": tensor(rows)},
             "V5": {"x1Scale": tensor(rows), "x2Scale": tensor(scale), "yScale": None, "x1Offset": None, "x2Offset": None,
                    "yOffset": None, "groupSize": 0}}[version]  # fmt: skip
    for kind in ("I4", "I32"):
        for turned in (False, True):
            for weight in forms(b, kind, turned):
                own = call(f"QuantMatmul{version}", x1=packed(a, kind), x2=weight, bias=tensor(bias, "I32"), transposeX1=False,
                           transposeX2=turned, out=empty((5, 88), "F16"), **names)  # fmt: skip
                np.testing.assert_array_equal(own, rounded((a @ b + bias) * scale * rows[:, None], "F16"))


def test_sums_of_products():
    """The scales differ from product to product; whatever the layout, matrices of all the batch are one."""
    for number, (batch, m, k, n) in enumerate([(3, 5, 40, 70), (1, 1, 1, 1), (4, 20, 32, 33), (8, 3, 300, 7)]):
        a, b = whole((batch, m, k), number), whole((batch, k, n), number + 9)
        rows, columns = rounded(random(number).uniform(0.5, 2, (batch, m)), "F32"), scales(n, number)
        expected = sum((a[i] @ b[i]) * columns * rows[i][:, None] for i in range(batch))
        for layout in LAYOUTS:
            for weight in (blocked(b, "I8"), blocked(b, "I8", own=True), in_line(b, "I8"), in_line(b, "I8", turned=True)):
                own = call("QuantMatmulReduceSumWeightNz", x1=tensor(a, "I8", layout), x2=weight, x1Scale=tensor(rows, "F32", layout),
                           x2Scale=tensor(columns, "BF16", layout), yScale=None, x1Offset=None, x2Offset=None, yOffset=None, bias=None,
                           transposeX1=False, transposeX2=False, groupSize=0, dims=[0], keepDims=False, out=empty((m, n), "BF16", layout))  # fmt: skip
                np.testing.assert_array_equal(own, rounded(expected, "BF16"))


@pytest.mark.parametrize("kind", ["I4", "I32"])
def test_integers_are_packed(kind):
    """As matrices, and as blocks that are filled up with 0; what 4 bits do not hold loses its high bits."""
    for shape, layout in (((3, 8), "row-major"), ((2, 17, 72), "gaps"), ((40, 136), "reversed"), ((1, 1, 64), "row-major"), ((130, 256), "gaps")):
        values = whole(shape, 1, -8, 8)
        plain = empty_packed(shape, kind)
        call("ConvertWeightToINT4Pack", weight=tensor(values + 16 * (values % 3), "I32", layout), weightInt4Pack=plain)
        np.testing.assert_array_equal(unpacked(plain, shape), values)
        blocks = blocked(values, kind, around=0)
        filled = np.frombuffer(blocks.bytes(), np.uint8)
        blocks.memory.write(np.full(filled.size, 0x5A, np.uint8).tobytes())
        support.run("aclnnConvertWeightToINT4Pack", tensor(values, "I32", layout), blocks)
        np.testing.assert_array_equal(np.frombuffer(blocks.bytes(), np.uint8), filled)


GELU = {"gelu_erf": lambda v: v / 2 * (1 + np.vectorize(math.erf)(v / np.sqrt(2))),
        "gelu_tanh": lambda v: v / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))}  # fmt: skip
# x, out, scale's type, bias
ACTIVATED = [("I8", "BF16", "F32", "I32"), ("I8", "BF16", "BF16", "BF16"), ("I8", "BF16", "F32", "F32"), ("I8", "F16", "F32", "F16"),
             ("I8", "F16", "F32", None), ("I4", "BF16", "BF16", "BF16"), ("I4", "F16", "F32", "I32"), ("I32", "F16", "F32", "F32"),
             ("I32", "BF16", "F32", None)]  # fmt: skip


@pytest.mark.parametrize("row", range(len(ACTIVATED)))
def test_activated_products(row):
    """float32 rounds what gelu takes and gives; then the result is rounded."""
    kind, out, scale_kind, bias_kind = ACTIVATED[row]
    four, layout = kind != "I8", LAYOUTS[row % 3]
    make, shape = (nibbles if four else whole), ((2, 5, 72), (72, 88)) if four else ((2, 5, 70), (2, 70, 33))
    a, b = make(shape[0], row), make(shape[1], row + 9)
    n = b.shape[-1]
    scale, rows = scales(1 if row == 4 else n, row), scales(5, row + 5) * (50 if four else 0.2)
    bias = 0 if bias_kind is None else rounded(random(row).integers(-50, 50, n) / (1 if bias_kind == "I32" else 16), bias_kind)
    v = (a @ b + (bias if bias_kind == "I32" else 0)) * scale * rows[:, None] + (0 if bias_kind == "I32" else bias)
    x1 = packed(a, kind) if four else tensor(a, "I8", layout)
    plain = [packed(b, kind), packed(b, kind, turned=True)] if four else [tensor(b, "I8", item) for item in LAYOUTS]
    in_blocks = [blocked(b, kind), blocked(b, kind, own=True), blocked(b.swapaxes(-1, -2), kind, own=True), blocked(b, kind, turned=True)]
    for number, weight in enumerate([*plain, *in_blocks]):
        name = "gelu_tanh" if number % 2 else "gelu_erf"
        own = call("FusedQuantMatmul" + ("" if number < len(plain) else "WeightNz"), x1=x1, x2=weight, x1Scale=tensor(rows),
                   x2Scale=tensor(scale, scale_kind), yScaleOptional=None, x1OffsetOptional=None, x2OffsetOptional=None, yOffsetOptional=None,
                   biasOptional=None if bias_kind is None else tensor(bias, bias_kind), x3Optional=None, fusedOpType=name,
                   groupSizeOptional=0, out=empty(v.shape, out, layout))  # fmt: skip
        expected = GELU[name](v)
        step = {"F16": 2.0**-11, "BF16": 2.0**-8}[out] + 8 * 2.0**-24
        assert (np.abs(own - expected) <= step * np.abs(expected) + 8 * 2.0**-24 * np.abs(v) + 2.0**-25).all(), (name, number)


def test_products_as_integers():
    """Numbers whose sums are exact; scales of powers of two, so that ties are ties."""
    for number, (m, k, n, one) in enumerate([(3, 8, 4, False), (20, 33, 17, True), (5, 1, 32, False), (70, 300, 40, False)]):
        layout = LAYOUTS[number % 3]
        a, b = whole((m, k), number, -8, 9), whole((k, n), number + 9, -4, 5)
        scale = np.float32(random(number).choice([0.25, -0.5, 1, 0.125], 1 if one else -(-n // 16) * 16))
        offset = random(number + 1).integers(-20, 20, scale.size)
        bias = whole(n, number + 2) / 4
        param = parameters(scale, offset, "U64")
        for turned in ((False, False), (True, False), (False, True), (True, True)):
            for added in (bias, None):
                v = (a @ b + (0 if added is None else added)) * scale[:n] + offset[:n]
                own = call("BatchMatmulQuant", x1=tensor(a.T if turned[0] else a, "F16", layout), x2=tensor(b.T if turned[1] else b, "F16", layout),
                           quantParam=param, bias=None if added is None else tensor(added, "F16", layout), transposeX1=turned[0],
                           transposeX2=turned[1], out=empty((m, n), "I8", layout))  # fmt: skip
                np.testing.assert_array_equal(own, np.clip(np.rint(v), -128, 127))


def test_weights_that_the_vendors_programs_prepare():
    """Of ND with a storage shape of one dimension, through aclnnTransMatmulWeight, as the pages' own calls have it."""
    a, b, scale = whole((5, 32), 1), whole((32, 32), 2), scales(32, 3)
    x2 = tensor(b, "I8")
    call("TransMatmulWeight", mmWeightRef=x2)
    own = quant_matmul(tensor(a, "I8"), x2, empty((5, 32), "F16"), wide(scale))
    np.testing.assert_array_equal(own, rounded(a @ b * scale, "F16"))
    left, right = whole((3, 2, 16), 4, -4, 5), whole((2, 16, 32), 5, -4, 5)
    x2 = tensor(right, "F16")
    call("TransMatmulWeight", mmWeightRef=x2)
    own = call("TransposeBatchMatMulWeightNz", x1=tensor(left, "F16"), x2=x2, bias=None, scale=None, permX1=[1, 0, 2], permX2=[0, 1, 2],
               permY=[1, 0, 2], cubeMathType=0, batchSplitFactor=1, out=empty((3, 2, 32), "F16"))  # fmt: skip
    np.testing.assert_array_equal(own, np.einsum("mbk,bkn->mbn", left, right))


def sparse_weight(n, k, seed):
    """A matrix with two numbers of every four at most, what is kept of it, and the places."""
    chance, half = random(seed), -(-k // 8) * 4
    dense, kept, places = np.zeros((n, 2 * half), int), np.zeros((n, half), int), np.zeros((n, half), int)
    for row in range(n):
        for group in range(half // 2):
            first, second = sorted(chance.choice(4, 2, replace=False))
            for at, element, place in ((2 * group, first, first), (2 * group + 1, second, second - 1)):
                places[row, at] = place
                if chance.random() < 0.8:
                    kept[row, at] = dense[row, 4 * group + element] = chance.integers(-128, 128)
    shifts = places.reshape(n, -1, 4) << np.array([0, 2, 4, 6])
    return dense[:, :k], kept, shifts.sum(-1)


def in_eights(places, view=None):
    """Places in blocks of 16 rows and 8 bytes, around them what spoils a result that reads them."""
    n, count = places.shape
    padded = np.full((-(-n // 16) * 16, -(-count // 8) * 8), 255)
    padded[:n, :count] = places
    stored = padded.reshape(padded.shape[0] // 16, 16, -1, 8).transpose(2, 0, 1, 3)
    return Tensor(pages.KINDS["U8"], stored.ravel(), shape=list(view or stored.shape), storage=list(stored.shape))


def test_sparse_weights():
    for number, (m, n, k) in enumerate([(3, 4, 12), (5, 33, 130), (1, 1, 1), (20, 16, 64), (7, 40, 270)]):
        dense, kept, places = sparse_weight(n, k, number)
        a, rows, columns, bias = whole((m, k), number), scales(m, number) * 50, scales(n, number + 1), rounded(whole(n, number) / 4, "BF16")
        layout = LAYOUTS[number % 3]
        of_kept = [blocked(kept, "I8", format="ND"), blocked(kept, "I8"), blocked(kept, "I8", own=True), tensor(kept, "I8", "gaps")]
        of_places = [in_eights(places), in_eights(places, places.shape), in_eights(places), tensor(places, "U8", "reversed")]
        for weight, index in zip(of_kept, of_places):
            for added in (bias, None):
                own = call("Sparse4to2QuantMatmulWeightNz", x=tensor(a, "I8", layout), sparseWeight=weight, index=index, xScale=tensor(rows),
                           sparseWeightScale=tensor(columns), biasOptional=None if added is None else tensor(added, "BF16"),
                           out=empty((m, n), "BF16", layout))  # fmt: skip
                expected = a @ dense.T * columns * rows[:, None] + (0 if added is None else added)
                np.testing.assert_array_equal(own, rounded(expected, "BF16"))


@pytest.mark.parametrize("place", [0b0011, 0b0001])
def test_places_that_make_no_sense_are_faults(place):
    """Place 3; and element 1 for both numbers. A kept 0 may be anywhere."""
    kept, index = np.array([[0, 0, 0, 0], [5, 7, 0, 0]]), np.array([[255], [place | 0xF0]])
    out = empty((2, 2), "BF16")
    given = [tensor(whole((2, 8), 1), "I8"), tensor(kept, "I8"), tensor(index, "U8"), tensor(np.ones(2)), tensor(np.ones(2)), None, out]
    assert "row 1 of the weight" in fault("Sparse4to2QuantMatmulWeightNz", *given)
    np.testing.assert_array_equal(out.values(), empty((2, 2), "BF16").values())


@pytest.mark.parametrize("version", ["V2", "V3"])
@pytest.mark.parametrize("kind", ["I4", "I32"])
def test_weights_of_four_bits(version, kind):
    """In the blocks that aclnnConvertWeightToINT4Pack makes: transposed with a scale for each column, or not with groups."""
    x, w, scale = rounded(random(1).normal(0, 1, (5, 72)), "F16"), nibbles((72, 17), 2), scales((17,), 3)
    own = weight_product(version, tensor(x, "F16"), blocked(w, kind, turned=True), tensor(scale, "F16"), empty((5, 17), "F16"))
    near_sum(own, x @ (w * scale), np.abs(x) @ np.abs(w * scale), "F16")
    x, w, scale = rounded(random(4).normal(0, 1, (5, 128)), "BF16"), nibbles((128, 64), 5), scales((2, 64), 6)
    offset = np.rint(random(7).uniform(-5, 5, (2, 64)))
    real = (w + offset.repeat(64, 0)) * scale.repeat(64, 0)
    own = weight_product(version, tensor(x, "BF16"), blocked(w, kind), tensor(scale, "BF16"), empty((5, 64), "BF16"), group=64,
                         offset=tensor(offset, "BF16"))  # fmt: skip
    near_sum(own, x @ real, np.abs(x) @ np.abs(real), "BF16")


def test_weights_that_were_cast_to_blocks():
    """By aclnnNpuFormatCast, into the storage shapes that the functions of such weights read."""
    a, b, scale = whole((5, 40), 1), whole((2, 40, 70), 2), scales(70, 3)
    x2 = blocked(np.zeros_like(b), "I8")
    call("NpuFormatCast", srcTensor=tensor(b, "I8"), dstTensor=x2)
    own = quant_matmul(tensor(np.stack([a, a]), "I8"), x2, empty((2, 5, 70), "BF16"), tensor(scale))
    np.testing.assert_array_equal(own, rounded(a @ b * scale, "BF16"))
    x, w = whole((1, 40, 2, 3, 4), 4), whole((20, 40, 1, 2, 2), 5)
    weight = convolution_blocked(np.zeros_like(w))
    call("NpuFormatCast", srcTensor=tensor(w, "I8", format="NCDHW"), dstTensor=weight)
    settings = {"offset": None, "stride": [1, 1, 1], "padding": [0, 0, 0], "dilation": [1, 1, 1], "transposed": False,
                "outputPadding": None, "groups": 1, "offsetx": 0, "roundMode": None, "bias": None}  # fmt: skip
    found = [call(f"QuantConvolution{name}", input=tensor(x, "I8"), weight=one, scale=tensor(scale[:20]),
                  output=empty((1, 20, 2, 2, 3), "F16"), **settings)
             for name, one in (("", tensor(w, "I8")), ("WeightNz", weight))]  # fmt: skip
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("make", [blocked, in_line])
def test_another_weight_for_the_same_executor(make):
    """The copy, or what stands for a tensor of another format, follows the address that the program sets."""
    a, first, second, scale = whole((5, 40), 1), whole((40, 70), 2), whole((40, 70), 3), scales(70, 4)
    x2, other, out = make(first, "I8"), make(second, "I8"), empty((5, 70), "BF16")
    given = [tensor(a, "I8"), x2, None, tensor(scale), None, None, None, None, None]
    status, size, executor = support.plan("aclnnQuantMatmulWeightNz", *(ffi.NULL if one is None else one for one in given), False, False, 0, out)
    assert status == 0 and lib.aclSetAclOpExecutorRepeatable(executor) == 0
    support.execute("aclnnQuantMatmulWeightNz", size, executor)
    np.testing.assert_array_equal(out.values(), rounded(a @ first * scale, "BF16"))
    assert lib.aclSetTensorAddr(executor, 1, x2.handle, other.memory.address) == 0
    support.execute("aclnnQuantMatmulWeightNz", size, executor)
    np.testing.assert_array_equal(out.values(), rounded(a @ second * scale, "BF16"))
    assert lib.aclDestroyAclOpExecutor(executor) == 0
