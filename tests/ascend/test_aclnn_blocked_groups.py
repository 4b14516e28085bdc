"""Products of groups by the functions whose weights lie in blocks, whatever format they say they have."""

import functools

import numpy as np
import pytest

from tests.ascend.blocks import blocked, in_line
from tests.ascend.calling import LAYOUTS, call, drawn, empty, packed, random, rounded, tensor, whole
from tests.ascend.test_aclnn_grouped_matmul import (
    ACTIVATIONS, LATER, NONE, SIZES, gated_near, list_of, near, rows_of, wide,
)  # fmt: skip


def grouped(x, weight, out, groups=None, **given):
    names = dict.fromkeys(NONE + LATER + ("biasOptional", "tuningConfigOptional"))
    names |= {"splitItem": 2, "groupType": 0, "groupListType": 1, "actType": 0, "quantGroupSize": 0}
    return call("GroupedMatmulWeightNz", x=x, weight=weight, groupListOptional=groups, out=out, **(names | given))


def forms(b, kind, turned=True):
    """What makes the tensors that hold weights of all groups: a call takes them away."""
    for format in ("FRACTAL_NZ", "ND"):
        for how in ({}, {"own": True}, {"turned": True})[: 2 + turned]:
            yield functools.partial(blocked, b, kind, format=format, **how)
    if kind not in ("I4", "I32"):
        yield functools.partial(in_line, b, kind)


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_groups_of_rows(kind):
    """One weight or many, groups without rows, rows behind the last group."""
    of_bias = "F32" if kind == "BF16" else kind
    for number, (k, n) in enumerate([(17, 33), (40, 20), (5, 1)]):
        x, b, bias = drawn((11, k), 1, kind), drawn((4, k, n), 2, kind), drawn((4, n), 3, of_bias)
        expected = rows_of(x, SIZES, lambda part, group: part @ b[group] + bias[group])
        for weight in forms(b, kind):
            found = grouped([tensor(x, kind, LAYOUTS[number])], [weight()], [empty((11, n), kind, LAYOUTS[number])],
                            list_of(SIZES, number % 3), groupListType=number % 3, biasOptional=[tensor(bias, of_bias)])[0]  # fmt: skip
            near(found[:9], expected, kind, k)
            np.testing.assert_array_equal(found[9:], empty((11, n), kind, LAYOUTS[number]).values()[9:])
        for weights in zip(*(forms(item, kind) for item in b)):
            found = grouped([tensor(x, kind)], [make() for make in weights], [empty((11, n), kind)], list_of(SIZES, 1),
                            biasOptional=[tensor(row, of_bias) for row in bias])[0]  # fmt: skip
            near(found[:9], expected, kind, k)


def test_tensors_of_their_own():
    """No groups: x, weight and out of each, of their own sizes and ranks."""
    sizes = [((3, 40), (40, 20)), ((3, 17), (17, 5)), ((3, 8), (8, 70))]
    x = [drawn(a, i, "F16") for i, (a, _) in enumerate(sizes)]
    b = [drawn(c, i + 5, "F16") for i, (_, c) in enumerate(sizes)]
    for weights in zip(*(forms(item, "F16") for item in b)):
        found = grouped([tensor(item, "F16") for item in x], [make() for make in weights], [empty((3, c[1]), "F16") for _, c in sizes],
                        groupType=-1, splitItem=0, groupListType=0)  # fmt: skip
        for own, one, other in zip(found, x, b):
            near(own, one @ other, "F16", 40)


def test_products_of_bytes():
    a, b = whole((11, 40), 1), whole((4, 40, 70), 2)
    scale, rows, summands = rounded(random(3).uniform(0.001, 0.002, (4, 70)), "BF16"), rounded(random(4).uniform(0.5, 2, 11), "F32"), whole((4, 70), 5)
    sums = rows_of(a, SIZES, lambda part, group: part @ b[group] + summands[group])
    real = sums * np.repeat(scale, SIZES, 0)
    for number, weight in enumerate(forms(b, "I8")):
        for kind, of_scale, of_rows in (("BF16", "BF16", True), ("F16", "F32", True), ("BF16", "BF16", False), ("F16", "F32", False)):
            activation = list(ACTIVATIONS)[number % len(ACTIVATIONS)]
            found = grouped([tensor(a, "I8", "gaps")], [weight()], [empty((11, 70), kind)], list_of(SIZES, number % 3),
                            groupListType=number % 3, actType=activation, biasOptional=[tensor(summands, "I32")],
                            scaleOptional=[tensor(scale, of_scale)], perTokenScaleOptional=[tensor(rows)] if of_rows else None)[0]  # fmt: skip
            near(found[:9], ACTIVATIONS[activation](real * (rows[:9, None] if of_rows else 1)), kind, 40)
        found = grouped([tensor(a, "I8")], [weight()], [empty((11, 70), "I32")], list_of(SIZES, 1), biasOptional=[tensor(summands, "I32")])[0]
        np.testing.assert_array_equal(found[:9], sums)


@pytest.mark.parametrize("form", ["I4", "I32"])
def test_integers_of_four_bits(form):
    """Of both; a transposed weight has depths and parts of multiples of 64 and columns of 16."""
    a, b = whole((9, 128), 1, -8, 8), whole((4, 128, 80), 2, -8, 8)
    rows = rounded(random(5).uniform(0.5, 2, 9), "F32")
    for parts, kind, size in ((None, "F16", 0), (2, "BF16", 64), (2, "F16", 0)):
        scale = rounded(random(4).uniform(0.01, 0.02, (4, parts or 1, 80)), "BF16")
        spread = scale.repeat(128 // (parts or 1), 1)
        expected = rows_of(a, SIZES, lambda part, group: part @ (b[group] * spread[group])) * rows[:, None]
        for weight in forms(b, form):
            found = grouped([packed(a, form)], [weight()], [empty((9, 80), kind)], list_of(SIZES, 1), quantGroupSize=size,
                            scaleOptional=[wide(scale if parts else scale[:, 0])], perTokenScaleOptional=[tensor(rows)])[0]  # fmt: skip
            near(found, expected, kind, 128)


@pytest.mark.parametrize("form", ["I4", "I32"])
def test_integers_of_eight_and_four_bits(form):
    """((x - 8) weight scale + bias + sum of x offset) rows."""
    rows = rounded(random(5).uniform(0.5, 2, 11), "F32")
    for k, offsets, kind, size in ((512, False, "BF16", 256), (256, False, "F16", 0), (40, True, "F16", 0)):
        a, b = whole((11, k), 1), whole((4, k, 72), 2, -8, 8)
        parts = 1 if offsets else k // 256
        scale = rounded(random(4).uniform(0.001, 0.002, (4, parts, 72)), "F32")
        real = b * scale.repeat(k // parts, 1)
        bias = (8 * real).sum(1).astype(np.float32)
        offset = rounded(random(6).uniform(-0.01, 0.01, (4, 1, 72)), "F32") if offsets else np.zeros((4, 1, 72))

        def product(part, group):
            return (part - 8.0) @ real[group] + bias[group].astype(float) + part.sum(1, keepdims=True) * offset[group]

        expected = rows_of(a, SIZES, product) * rows[:9, None]
        for weight in forms(b, form, turned=False):
            found = grouped([tensor(a, "I8")], [weight()], [empty((11, 72), kind)], list_of(SIZES, 1), biasOptional=[tensor(bias)],
                            scaleOptional=[wide(scale)], perTokenScaleOptional=[tensor(rows)], quantGroupSize=size,
                            offsetOptional=[tensor(offset)] if offsets else None)[0][:9]  # fmt: skip
            near(found, expected, kind, k)


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_weights_of_integers(kind):
    """x @ ((weight + offset) scale), by columns or by parts of the depth."""
    for width, parts in (("I8", None), ("I4", None), ("I4", 4), ("I32", 4)):
        x = drawn((9, 64), 1, kind)
        b = whole((4, 64, 72), 2) if width == "I8" else whole((4, 64, 72), 2, -8, 8)
        shape = (4, parts, 72) if parts else (4, 72)
        scale, offset = rounded(random(3).uniform(0.01, 0.02, shape), kind), np.rint(random(4).uniform(-5, 5, shape))
        spread = lambda v: v.repeat(64 // parts, 1) if parts else v[:, None]  # noqa: B023
        real = (b + spread(offset)) * spread(scale)
        expected = rows_of(x, SIZES, lambda part, group: part @ real[group])
        for weight in forms(b, width):
            found = grouped([tensor(x, kind)], [weight()], [empty((9, 72), kind)], list_of(SIZES, 1), quantGroupSize=64 // parts if parts else 0,
                            antiquantScaleOptional=[tensor(scale, kind)], antiquantOffsetOptional=[tensor(offset, kind)])[0]  # fmt: skip
            near(found, expected, kind, 9999)


def gated(x, weight, scale, rows, ends, out, bias=None):
    return call("GroupedMatmulSwigluQuantWeightNZ", x=tensor(x, "I8"), weight=weight, bias=bias, offset=None, weightScale=scale,
                xScale=tensor(rows), groupList=tensor(ends, "I64", "gaps"), output=out, outputScale=empty((len(x),)), outputOffset=None)  # fmt: skip


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_gated_products(kind):
    for number, (k, n, layout) in enumerate([(40, 20, "row-major"), (300, 66, "gaps"), (5, 2, "reversed")]):
        a, b = whole((11, k), number), whole((4, k, n), number + 1)
        scale, rows = rounded(random(4).uniform(0.0001, 0.0005, (4, n)), kind), rounded(random(5).uniform(0.5, 2, 11), "F32")
        v = rows_of(a, SIZES, lambda part, group: part @ b[group] * scale[group]) * rows[:9, None]
        for weight in forms(b, "I8"):
            out = empty((11, n // 2), "I8", layout)
            before = out.values()
            gated_near(gated(a, weight(), tensor(scale, kind, layout), rows, np.cumsum(SIZES), out), v, 9, before)


@pytest.mark.parametrize("form", ["I4", "I32"])
def test_gated_products_of_four_bits(form):
    for number, (k, parts, kind) in enumerate([(64, None, "U64"), (512, 2, "F32"), (32, 4, "F16"), (72, None, "BF16"), (72, 3, "U64")]):
        a, b = whole((9, k), number), whole((4, k, 80), number + 1, -8, 8)
        scale = rounded(random(4).uniform(0.001, 0.003, (4, parts or 1, 80)), "F32" if kind == "U64" else kind)
        rows = rounded(random(5).uniform(0.5, 2, 9), "F32")
        real = b * scale.repeat(k // (parts or 1), 1)
        bias = np.float32((8 * real).sum(1)) if number % 2 == 0 else np.float32(drawn((4, 80), 7))
        v = rows_of(a, SIZES, lambda part, group: (part - 8.0) @ real[group] + bias[group]) * rows[:, None]
        given = scale if parts else scale[:, 0]
        for weight in forms(b, form, turned=False):
            out = empty((9, 40), "I8")
            found = gated(a, weight(), wide(given) if kind == "U64" else tensor(given, kind), rows, np.cumsum(SIZES), out, tensor(bias))
            gated_near(found, v, 9, out.values())


def combined(version, x, weight, scale, groups, places, out, bias=None, offset=None, shared=None, logits=None, **more):
    names = {"offsetOptional": offset, "antiquantScaleOptional": None, "antiquantOffsetOptional": None,
             "tuningConfigOptional": [3, 1]} if version else {}  # fmt: skip
    return call(f"GroupedMatmulFinalizeRoutingWeightNz{version}", x1=x, x2=weight, scale=scale, bias=bias, groupList=groups,
                sharedInput=shared, logit=logits, rowIndex=places, dtype=0, transposeX1=False, transposeX2=False, out=out,
                **names, **more)  # fmt: skip


# version, k, n, weight, scale's type and shape, with an offset, with what is beneath
COMBINED = [("", 256, 2048, "I8", "F32", (3, 2048), False, True), ("", 512, 7680, "I8", "I64", (3, 7680), False, False),
            ("V2", 1408, 2048, "I8", "BF16", (3, 1, 2048), False, True), ("V2", 1024, 7168, "I8", "F32", (3, 7168), False, False),
            ("V2", 2048, 7168, "I4", "I64", (3, 1, 7168), False, True), ("V2", 2048, 7168, "I32", "I64", (3, 1, 7168), True, True)]  # fmt: skip


@pytest.mark.parametrize("case", range(len(COMBINED)))
def test_products_that_go_back_to_their_tokens(case):
    """Rows of one token are summed with what is beneath; a row behind the last group counts nowhere, wherever it would go."""
    version, k, n, kind, scale_kind, shape, has_offset, beneath = COMBINED[case]
    sizes, targets, begin, factor = [4, 0, 5], 6, 2, 0.3
    four, layout = kind != "I8", LAYOUTS[case % 3]
    a, b = whole((10, k), 1), whole((3, k, n), 2, -8, 8) if four else whole((3, k, n), 2)
    scale = rounded(random(3).uniform(0.0005, 0.001, shape), "BF16")
    of_columns = scale.reshape(3, 1, n)
    bias = (8 * (b * of_columns).sum(1)).astype(np.float32) if four else None
    offset = rounded(random(4).uniform(-0.01, 0.01, (3, 1, n)), "F32") if has_offset else np.zeros((3, 1, n))
    rows, logits = drawn(10, 5), drawn(10, 6) if beneath else np.ones(10)
    places, shared = np.array([5, 1, 1, 0, 5, 5, 2, 1, 3, 99]), drawn((3, n), 7, "BF16")

    def product(part, group):
        moved = (part - (8.0 if four else 0.0)) @ (b[group] * of_columns[group].astype(float))
        return moved + (bias[group].astype(float) if four else 0) + part.sum(1, keepdims=True) * offset[group]

    v = rows_of(a, sizes, product) * (rows[:9, None] * logits[:9, None])
    expected = np.zeros((targets, n))
    expected[begin : begin + 3] = shared * np.float32(factor) if beneath else 0
    size = np.abs(expected)
    np.add.at(expected, places[:9], v)
    np.add.at(size, places[:9], np.abs(v))
    of_format = [blocked(b, kind), blocked(b, kind, own=True)] + ([] if four else [in_line(b, kind), blocked(b, kind, turned=True)])
    for number, weight in enumerate(of_format):
        found = combined(version, tensor(a, "I8", layout), weight, wide(scale, "I64") if scale_kind == "I64" else tensor(scale, scale_kind),
                         tensor(np.cumsum(sizes) if number % 2 else sizes, "I64", "gaps"), tensor(places, "I32" if number % 2 else "I64", layout),
                         empty((targets, n), "F32", layout), bias=tensor(bias) if four else None,
                         offset=tensor(offset) if has_offset else None, shared=tensor(shared, "BF16", layout) if beneath else None,
                         logits=tensor(logits, "F32", "gaps") if beneath else None, pertokenScaleOptional=tensor(rows, "F32", "gaps"),
                         sharedInputWeight=factor, sharedInputOffset=begin, groupListType=1 - number % 2)  # fmt: skip
        # a row is rounded to float32, weighed, and the sum is rounded once; the large bias cancels in float64
        assert np.all(np.abs(found - expected) <= 3 * 2.0**-24 * size + 1e-12)
