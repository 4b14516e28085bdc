"""Products of groups, against NumPy: every way in which lists and groups go together, quantized operands, activations."""

import numpy as np
import pytest

from tests.ascend.blocks import blocked, in_line
from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, packed, random, refusal, rounded, tensor, whole
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend.pages import KINDS as KINDS_OF
from tests.conformance.ascend.pages import operators, tensor_list

KINDS = ["F32", "F16", "BF16"]
ROUNDING = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}
NONE = ("scaleOptional", "offsetOptional", "antiquantScaleOptional", "antiquantOffsetOptional")
LATER = ("perTokenScaleOptional", "activationInputOptional", "activationQuantScaleOptional", "activationQuantOffsetOptional",
         "activationFeatureOutOptional", "dynQuantScaleOutOptional")  # fmt: skip
SIZES = [3, 0, 5, 1]


def near(actual, expected, kind, terms):
    """Summed in float32 in some order, then rounded once."""
    np.testing.assert_allclose(actual, expected, rtol=1.01 * ROUNDING[kind], atol=4 * terms * 2.0**-24 * 3)


def grouped(version, x, weight, out, groups=None, **given):
    names = dict.fromkeys(NONE + (() if version < 4 else LATER))
    names |= {"biasOptional": None, "splitItem": 2} | ({} if version == 1 else {"groupType": 0})
    names |= {} if version < 4 else {"groupListType": 1, "actType": 0}
    names |= {"tuningConfigOptional": None} if version == 5 else {}
    name, result = "GroupedMatmul" if version == 1 else f"GroupedMatmulV{version}", "y" if version < 4 else "out"
    found = call(name, x=x, weight=weight, groupListOptional=groups, **{result: out}, **(names | given))
    return found


def list_of(sizes, kind):
    """The list in one of its three forms; the pairs have the empty groups behind."""
    if kind == 0:
        return tensor(np.cumsum(sizes), "I64")
    if kind == 1:
        return tensor(sizes, "I64", "gaps")
    order = sorted(range(len(sizes)), key=lambda item: sizes[item] == 0)
    return tensor([[item, sizes[item]] for item in order], "I64")


def wide(scale, kind="U64"):
    return tensor(np.asarray(scale, np.float32).view(np.uint32).astype(np.uint64), kind)


def rows_of(x, sizes, multiply):
    ends = np.cumsum(sizes)
    return np.concatenate([multiply(x[end - size : end], group) for group, (size, end) in enumerate(zip(sizes, ends))])


@pytest.mark.parametrize("version", [3, 4, 5])
def test_groups_of_rows(version):
    """One x; weight as one tensor or as a list; rows that no group names stay as they are."""
    for number, (kind, layout) in enumerate(zip(KINDS + KINDS, LAYOUTS + LAYOUTS[::-1])):
        k, n, of_bias = (17, 33, 5)[number % 3], (6, 1, 40)[number % 3], "F32" if kind == "BF16" else kind
        x, weight, bias = drawn((11, k), 1, kind), drawn((4, k, n), 2, kind), drawn((4, n), 3, of_bias)
        items = number % 2 == 0
        weights = [tensor(weight, kind, layout)] if items else [tensor(item, kind, layout) for item in weight]
        biases = [tensor(bias, of_bias, layout)] if items else [tensor(item, of_bias, layout) for item in bias]
        out = empty((11, n), kind, layout)
        before = out.values()
        form = {"groupListType": number % 3} if version > 3 else {}
        found = grouped(version, [tensor(x, kind, layout)], weights, [out], list_of(SIZES, form.get("groupListType", 0)),
                        splitItem=2 + number % 2, biasOptional=biases if number < 4 else None, **form)  # fmt: skip
        expected = rows_of(x, SIZES, lambda rows, group: rows @ weight[group] + (bias[group] if number < 4 else 0))
        near(found[0][:9], expected, kind, k)
        np.testing.assert_array_equal(found[0][9:], before[9:])


def test_lists_of_tensors():
    for number, (kind, layout) in enumerate(zip(KINDS, LAYOUTS)):
        shapes = [(3, 5, 4), (1, 7, 9), (0, 2, 3), (20, 300, 2)]
        x = [drawn((m, k), 1, kind) for m, k, _ in shapes]
        weight = [drawn((k, n), 2, kind) for _, k, n in shapes]
        put = lambda arrays: [tensor(array, kind, layout) for array in arrays]
        for version in (1, 3, 4, 5) if kind != "F32" else (3, 4, 5):
            found = grouped(version, put(x), put(weight), [empty((m, n), kind, layout) for m, _, n in shapes], splitItem=0,
                            **({} if version == 1 else {"groupType": -1}))  # fmt: skip
            for own, a, b in zip(found, x, weight):
                near(own, a @ b, kind, a.shape[1])
            alike = [item[:, :1].repeat(3, 1) for item in weight]
            for groups in (None, np.cumsum([m for m, _, _ in shapes]).tolist()):
                given = groups if version == 1 or groups is None else tensor(groups, "I64")
                found = grouped(version, put(x), put(alike), [empty((24, 3), kind, layout)], given, splitItem=3,
                                **({} if version < 4 else {"groupListType": 0}))  # fmt: skip
                near(found[0], np.concatenate([a @ b for a, b in zip(x, alike)]), kind, 300)


def test_groups_of_depth():
    sizes = [3, 0, 4]
    for number, (kind, version) in enumerate(zip(KINDS, (3, 5, 4))):
        a, b = drawn((8, 5), 1, kind), drawn((8, 6), 2, kind)
        x = tensor(a.T, kind, "reversed")  # lies in memory as [k, m]
        parts = np.split(np.arange(8), np.cumsum(sizes))[:3]
        expected = np.stack([a[part].T @ b[part] for part in parts])
        found = grouped(version, [x], [tensor(b, kind)], [empty((3, 5, 6), kind, LAYOUTS[number])],
                        list_of(sizes, number), groupType=2,
                        **({"groupListType": number} if version > 3 else {}))  # fmt: skip
        near(found[0], expected, kind, 8)
        found = grouped(version, [tensor(a.T, kind, "reversed")], [tensor(b[part], kind) for part in parts],
                        [empty((5, 6), kind) for _ in parts], groupType=2, splitItem=0)  # fmt: skip
        near(np.stack(found), expected, kind, 8)


@pytest.mark.parametrize("pairs", [[[0, 3], [2, 5], [0, 0]], [[2, 5], [0, 0], [0, 3]], [[0, 3], [2, 5], [1, 0]]])
def test_pairs_that_fill_up_the_list(pairs):
    """[0, 0] names no group: group 0 keeps its product, and the one that no pair names is 0."""
    a, b = drawn((8, 5), 1, "F16"), drawn((8, 6), 2, "F16")
    expected, begin = np.zeros((3, 5, 6)), 0
    for item, size in pairs:
        expected[item] += a[begin : begin + size].T @ b[begin : begin + size]
        begin += size
    found = grouped(5, [tensor(a.T, "F16", "reversed")], [tensor(b, "F16")], [empty((3, 5, 6), "F16")], tensor(pairs, "I64"),
                    groupType=2, groupListType=2)  # fmt: skip
    near(found[0], expected, "F16", 8)


def test_first_version():
    ends = np.cumsum(SIZES).tolist()
    for kind, layout in zip(KINDS[1:], LAYOUTS):
        x, weight, bias = drawn((9, 12), 1, kind), drawn((4, 12, 5), 2, kind), drawn((4, 5), 3, "F32" if kind == "BF16" else kind)
        put = lambda arrays, of=kind: [tensor(array, of, layout) for array in arrays]
        of_bias = "F32" if kind == "BF16" else kind
        expected = rows_of(x, SIZES, lambda rows, group: rows @ weight[group] + bias[group])
        found = grouped(1, put([x]), put(weight), [empty((9, 5), kind, layout)], ends, biasOptional=put(bias, of_bias))
        near(found[0], expected, kind, 12)
        found = grouped(1, put([x]), put(weight), [empty((size, 5), kind, layout) for size in SIZES], ends, splitItem=1,
                        biasOptional=put(bias, of_bias))  # fmt: skip
        near(np.concatenate(found), expected, kind, 12)
        batch = drawn((2, 3, 4, 12), 4, kind)
        found = grouped(1, put([batch]), put(weight[:1]), [empty((2, 3, 4, 5), kind, layout)], splitItem=0)
        near(found[0], batch @ weight[0], kind, 12)
    a, b, summands = whole((9, 40), 1), whole((4, 40, 6), 2), whole((4, 6), 3, -9999, 9999)
    scale = rounded(random(4).uniform(0.0005, 0.002, (4, 6)), "BF16")
    sums = rows_of(a, SIZES, lambda rows, group: rows @ b[group] + summands[group])
    int8 = lambda arrays: [tensor(array, "I8") for array in arrays]
    given = {"biasOptional": [tensor(item, "I32") for item in summands]}
    found = grouped(1, int8([a]), int8(b), [empty((9, 6), "I8")], ends, scaleOptional=[wide(item) for item in scale],
                    **given)  # fmt: skip
    scales = np.repeat(scale, SIZES, 0)
    np.testing.assert_array_equal(found[0], np.clip(np.rint(sums * scales), -128, 127))
    given = {"biasOptional": [tensor(item, "I32") for item in summands]}
    np.testing.assert_array_equal(grouped(1, int8([a]), int8(b), [empty((9, 6), "I32")], ends, **given)[0], sums)


def test_second_version():
    """An array of ends, and a groupType: every way of the page's table."""
    ends = np.cumsum(SIZES).tolist()
    for number, (kind, layout) in enumerate(zip(KINDS, LAYOUTS)):
        of_bias = "F32" if kind == "BF16" else kind
        x, weight, bias = drawn((9, 12), 1, kind), drawn((4, 12, 5), 2, kind), drawn((4, 5), 3, of_bias)
        put = lambda arrays, of=kind: [tensor(array, of, layout) for array in arrays]
        expected = rows_of(x, SIZES, lambda rows, group: rows @ weight[group] + bias[group])
        parts = np.split(x, ends[:-1])
        for items, biases in ((put([weight]), put([bias], of_bias)), (put(weight), put(bias, of_bias))):
            found = grouped(2, put([x]), items, [empty((9, 5), kind, layout)], ends, biasOptional=biases)
            near(found[0], expected, kind, 12)
        biases = lambda: put(bias, of_bias)
        found = grouped(2, put([x]), put(weight), [empty((size, 5), kind, layout) for size in SIZES], ends, splitItem=1,
                        biasOptional=biases())  # fmt: skip
        near(np.concatenate(found), expected, kind, 12)
        for groups in (ends, None):
            near(grouped(2, put(parts), put(weight), [empty((9, 5), kind, layout)], groups, splitItem=3, biasOptional=biases())[0], expected, kind, 12)
        found = grouped(2, put(parts), put(weight), [empty((size, 5), kind, layout) for size in SIZES], groupType=-1,
                        splitItem=0, biasOptional=biases())  # fmt: skip
        near(np.concatenate(found), expected, kind, 12)
        batches = drawn((2, 3, 4, 12), 4, kind)
        found = grouped(2, put([batches, batches + 1 - 1]), put(weight[:2]),
                        [empty((2, 3, 4, 5), kind, layout) for _ in range(2)], groupType=-1, splitItem=0)  # fmt: skip
        near(np.stack(found), np.stack([batches @ item for item in weight[:2]]), kind, 12)
        b = drawn((12, 6), 5, kind)
        found = grouped(2, put([x]), put([b]), [empty((3, 9, 6), kind, layout)], [3, 3, 12], groupType=2)
        near(found[0], np.stack([x[:, part] @ b[part] for part in (slice(0, 3), slice(3, 3), slice(3, 12))]), kind, 12)


def test_second_version_of_integers():
    ends = np.cumsum(SIZES).tolist()
    a, b, summands = whole((9, 40), 1), whole((4, 40, 6), 2), whole((4, 6), 3, -9999, 9999)
    scale = rounded(random(4).uniform(0.0005, 0.002, (4, 6)), "BF16")
    sums = rows_of(a, SIZES, lambda rows, group: rows @ b[group] + summands[group])
    expected = np.clip(np.rint(sums * np.repeat(scale, SIZES, 0)), -128, 127)
    int8 = lambda arrays: [tensor(array, "I8") for array in arrays]
    found = grouped(2, int8([a]), int8([b]), [empty((9, 6), "I8")], ends, scaleOptional=[wide(scale)],
                    biasOptional=[tensor(summands, "I32")])  # fmt: skip
    np.testing.assert_array_equal(found[0], expected)
    lists = lambda: {"scaleOptional": [wide(item) for item in scale],
                     "biasOptional": [tensor(item, "I32") for item in summands]}  # fmt: skip
    np.testing.assert_array_equal(grouped(2, int8([a]), int8(b), [empty((9, 6), "I8")], ends, **lists())[0], expected)
    found = grouped(2, int8(np.split(a, ends[:-1])), int8(b), [empty((size, 6), "I8") for size in SIZES], groupType=-1,
                    splitItem=0, **lists())  # fmt: skip
    np.testing.assert_array_equal(np.concatenate(found), expected)
    x, factors, shifts = drawn((9, 40), 6, "F16"), drawn((4, 6), 7, "F16"), whole((4, 6), 8, -8, 8)
    found = grouped(2, [tensor(x, "F16")], int8([b]), [empty((9, 6), "F16")], ends,
                    antiquantScaleOptional=[tensor(factors, "F16")],
                    antiquantOffsetOptional=[tensor(shifts, "F16")])[0]  # fmt: skip
    real = (b + shifts[:, None]) * factors[:, None]
    near(found, rows_of(x, SIZES, lambda rows, group: rows @ real[group]), "F16", np.abs(real).max() * 40)


ACTIVATIONS = {0: lambda v: v, 1: lambda v: np.maximum(v, 0),
               2: lambda v: v / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))),
               4: lambda v: v / (1 + np.exp(-1.702 * v)), 5: lambda v: v / (1 + np.exp(-v))}  # fmt: skip


@pytest.mark.parametrize("version", [4, 5])
def test_products_of_integers(version):
    a, b, summands = whole((11, 70), 1), whole((4, 70, 6), 2), whole((4, 6), 3, -9999, 9999)
    scale = rounded(random(4).uniform(0.00002, 0.0002, (4, 6)), "BF16")
    rows = rounded(random(5).uniform(0.5, 2, 11), "F32")
    sums = rows_of(a, SIZES, lambda part, group: part @ b[group] + summands[group])
    scales = np.repeat(scale, SIZES, 0)
    for number, (kind, of_scale, of_rows) in enumerate([("I8", "U64", False), ("BF16", "BF16", True),
                                                        ("F16", "F32", True), ("BF16", "BF16", False),
                                                        ("I32", None, False)]):  # fmt: skip
        layout = LAYOUTS[number % 3]
        for activation in ACTIVATIONS if kind in KINDS else (0,):
            given = {"scaleOptional": None if of_scale is None else [wide(scale * 20) if of_scale == "U64" else tensor(scale, of_scale, layout)],
                     "perTokenScaleOptional": [tensor(rows, "F32", layout)] if of_rows else None}  # fmt: skip
            found = grouped(version, [tensor(a, "I8", layout)], [tensor(b, "I8", layout)],
                            [empty((11, 6), kind, layout)], list_of(SIZES, number % 3), groupListType=number % 3,
                            actType=activation, biasOptional=[tensor(summands, "I32", layout)],
                            **given)[0][:9]  # fmt: skip
            if kind == "I32":
                np.testing.assert_array_equal(found, sums)
            elif kind == "I8":
                np.testing.assert_array_equal(found, np.clip(np.rint(sums * scales * 20), -128, 127))
            else:
                near(found, ACTIVATIONS[activation](sums * scales * (rows[:9, None] if of_rows else 1)), kind, 16)


def test_integers_of_four_bits():
    a, b = whole((9, 16), 1, -8, 8), whole((4, 16, 8), 2, -8, 8)
    rows = rounded(random(5).uniform(0.5, 2, 9), "F32")
    for parts, kind, has_rows, form in ((None, "F16", True, "I4"), (None, "BF16", False, "I32"), (4, "BF16", True, "I32"),
                                        (8, "F16", False, "I4")):  # fmt: skip
        scale = rounded(random(4).uniform(0.01, 0.02, (4, parts or 1, 8)), "BF16")
        spread = scale.repeat(16 // (parts or 1), 1)
        found = grouped(5, [packed(a, form)], [packed(b, form)], [empty((9, 8), kind)], list_of(SIZES, 1),
                        scaleOptional=[wide(scale if parts else scale[:, 0], "I64" if parts else "U64")],
                        perTokenScaleOptional=[tensor(rows)] if has_rows else None)[0]  # fmt: skip
        expected = rows_of(a, SIZES, lambda part, group: part @ (b[group] * spread[group])) * (rows[:, None] if has_rows else 1)
        near(found, expected, kind, 16)


def turned_blocks(b, code="FRACTAL_NZ"):
    """[groups, k, n] whose integers of 4 bits lie along k; what aclnnTransMatmulWeight leaves has another format only."""
    groups, k, n = b.shape
    raw = packed(b.swapaxes(1, 2).reshape(-1, k), "I4").stored()
    return support.Tensor(support.I8, raw, shape=[groups, k, n], strides=[k * n, 1, k], storage=[groups * k * n],
                          format=getattr(support.lib, f"ACL_FORMAT_{code}"), code=support.lib.ACL_INT4)  # fmt: skip


def test_transposed_integers_of_four_bits():
    """A weight in blocks may be transposed, with depths and parts of multiples of 64 and columns of 16; one of ND may not."""
    a, b = whole((9, 256), 1, -8, 8), whole((4, 256, 48), 2, -8, 8)
    for parts, kind in ((None, "F16"), (2, "BF16")):
        scale = rounded(random(4).uniform(0.01, 0.02, (4, parts or 1, 48)), "BF16")
        spread = scale.repeat(256 // (parts or 1), 1)
        found = grouped(5, [packed(a, "I4")], [turned_blocks(b)], [empty((9, 48), kind)], list_of(SIZES, 1),
                        scaleOptional=[wide(scale if parts else scale[:, 0])])[0]  # fmt: skip
        near(found, rows_of(a, SIZES, lambda part, group: part @ (b[group] * spread[group])), kind, 256)
    for (k, n), parts, code, version in (((256, 48), 8, "FRACTAL_NZ", 5), ((256, 40), 1, "FRACTAL_NZ", 5), ((96, 48), 1, "FRACTAL_NZ", 5),
                                         ((256, 48), 1, "ND", 5), ((256, 48), 1, "FRACTAL_NZ", 4)):  # fmt: skip
        names = {p["name"]: None for p in operators()[f"GroupedMatmulV{version}"]["parameters"]}
        names |= {"x": tensor_list([packed(a[:, :k], "I4")]), "weight": tensor_list([turned_blocks(b[:, :k, :n], code)]),
                  "out": tensor_list([empty((9, n), "F16")]), "scaleOptional": tensor_list([wide(np.ones((4, parts, n)))]),
                  "groupListOptional": list_of(SIZES, 1), "groupListType": 1, "groupType": 0, "splitItem": 2, "actType": 0}
        assert refusal(f"GroupedMatmulV{version}", *names.values()) == (161002, f"aclnnGroupedMatmulV{version}/weight/transposed")


def test_columns_of_four_bits():
    """Of ND they are a multiple of 8, in blocks any even number."""
    a, b, scale = whole((9, 16), 1, -8, 8), whole((4, 16, 6), 2, -8, 8), rounded(random(4).uniform(0.01, 0.02, (4, 6)), "BF16")
    for version in (4, 5):
        weight = support.Tensor(support.I8, packed(b, "I4").stored(), shape=b.shape, storage=[b.size], code=support.lib.ACL_INT4,
                                format=support.lib.ACL_FORMAT_FRACTAL_NZ)  # fmt: skip
        found = grouped(version, [packed(a, "I4")], [weight], [empty((9, 6), "F16")], list_of(SIZES, 1), scaleOptional=[wide(scale)])[0]
        near(found, rows_of(a, SIZES, lambda part, group: part @ b[group] * scale[group]), "F16", 16)


def test_integers_of_eight_and_four_bits():
    """((x - 8) weight scale + bias + sum of x offset) rows: with the bias that the page asks for the 8 goes out again."""
    rows = rounded(random(5).uniform(0.5, 2, 11), "F32")
    forms = [(512, None, "BF16", "I4", 4), (512, None, "F16", "I32", 5), (256, None, "F16", "I4", 5),
             (40, 1, "F16", "I32", 5), (300, 1, "F16", "I4", 4)]  # fmt: skip
    for number, (k, offsets, kind, of_weight, version) in enumerate(forms):
        a, b = whole((11, k), 1), whole((4, k, 24), 2, -8, 8)
        parts = offsets or k // 256
        scale = rounded(random(4).uniform(0.001, 0.002, (4, parts, 24)), "F32")
        real = b * scale.repeat(k // parts, 1)
        correction = (8 * real).sum(1) if number % 2 else drawn((4, 24), 7)
        offset = None if offsets is None else rounded(random(6).uniform(-0.01, 0.01, (4, 1, 24)), "F32")
        bias = correction.astype(np.float32)

        def product(part, group):
            moved = (part - 8.0) @ real[group] + bias[group].astype(float)
            return moved if offset is None else moved + part.sum(1, keepdims=True) * offset[group]

        expected = rows_of(a, SIZES, product) * rows[:9, None]
        several = version == 5 and number % 2
        each = lambda array, kind: [tensor(item, kind) for item in array] if several else [tensor(array, kind)]
        scales = [wide(item) for item in scale] if several else [wide(scale, "I64")]
        # sizes, whatever groupListType says; with an offset, what it says
        told = number % 3 if offsets else number % 2
        groups = list_of(SIZES, told if offsets else 1)
        out = empty((11, 24), kind, LAYOUTS[number % 3])
        before = out.values()
        found = grouped(version, [tensor(a, "I8", LAYOUTS[number % 3])],
                        [packed(item, of_weight) for item in b] if several else [packed(b, of_weight)], [out], groups,
                        groupListType=told, biasOptional=each(bias, "F32"), scaleOptional=scales,
                        perTokenScaleOptional=[tensor(rows)],
                        offsetOptional=None if offset is None else each(offset, "F32"))[0]  # fmt: skip
        np.testing.assert_allclose(found[:9], expected, rtol=1.01 * ROUNDING[kind], atol=1e-9)
        np.testing.assert_array_equal(found[9:], before[9:])


@pytest.mark.parametrize("bits", [8, 4])
def test_quantized_weights(bits):
    low, high, n = (-128, 128, 6) if bits == 8 else (-8, 8, 8)
    for number, (kind, layout) in enumerate(zip(KINDS[1:] * 2, LAYOUTS + ["row-major"])):
        of_bias, parts = ("F32" if kind == "BF16" else kind), (4 if bits == 4 and number >= 2 else None)
        x, b, bias = drawn((9, 32), 1, kind), whole((4, 32, n), 2, low, high), drawn((4, n), 3, of_bias)
        scale, offset = drawn((4, parts or 1, n), 4, kind), whole((4, parts or 1, n), 5, -8, 8)
        offset = None if number == 3 else offset
        spread = lambda v: v.repeat(32 // (parts or 1), 1)
        real = (b + (0 if offset is None else spread(offset))) * spread(scale)
        drop = (lambda v: v) if parts else (lambda v: v[:, 0])
        make = lambda v: tensor(v, "I8", layout) if bits == 8 else packed(v, "I4" if number else "I32")
        given = {"biasOptional": [tensor(bias, of_bias, layout)],
                 "antiquantScaleOptional": [tensor(drop(scale), kind, layout)],
                 "antiquantOffsetOptional": None if offset is None else [tensor(drop(offset), kind, layout)]}  # fmt: skip
        found = grouped(4, [tensor(x, kind, layout)], [make(b)], [empty((9, n), kind, layout)], list_of(SIZES, 1), **given)
        expected = rows_of(x, SIZES, lambda part, group: part @ real[group] + bias[group])
        magnitude = np.abs(real).max() * 32
        near(found[0], expected, kind, magnitude)
        lists = {"biasOptional": [tensor(item, of_bias) for item in bias],
                 "antiquantScaleOptional": [tensor(item, kind) for item in drop(scale)],
                 "antiquantOffsetOptional": None if offset is None else [tensor(item, kind) for item in drop(offset)]}  # fmt: skip
        turned = [packed(item, "I4", turned=True) if bits == 4 and not parts else make(item) for item in b]
        found = grouped(5, [tensor(x[i * 2 : i * 2 + 2], kind) for i in range(4)], turned,
                        [empty((2, n), kind) for _ in range(4)], groupType=-1, splitItem=1, **lists)  # fmt: skip
        near(np.stack(found), np.stack([x[i * 2 : i * 2 + 2] @ real[i] + bias[i] for i in range(4)]), kind, magnitude)


def gated(x, weight, scale, rows, ends, out, **given):
    names = {"bias": None, "offset": None, "outputOffset": None} | given
    return call("GroupedMatmulSwigluQuant", x=tensor(x, "I8"), weight=weight, weightScale=scale, xScale=tensor(rows),
                groupList=tensor(ends, "I64", "gaps"), output=out, outputScale=empty((len(x),)), **names)  # fmt: skip


def gated_near(found, v, used, before):
    """Levels of a result rounded in float32: another one only where the exact value lies half-way; rows behind the groups stay."""
    a, b = np.split(v, 2, axis=1)
    s = a / (1 + np.exp(-a)) * b
    scale = np.abs(s).max(1) / 127
    np.testing.assert_allclose(found[1][:used], scale, rtol=1e-5)
    level = s / np.where(scale == 0, 1, scale)[:, None]
    away = np.abs(found[0][:used] - np.rint(level))
    assert np.all((away == 0) | ((away == 1) & (np.abs(level - np.floor(level) - 0.5) < 1e-3)))
    np.testing.assert_array_equal(found[0][used:], before[used:])
    np.testing.assert_array_equal(found[1][used:], empty((len(before),)).values()[used:])


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_gated_products(kind):
    """Integers of 8 bits: a weight in blocks, with the shape of the blocks too, or in line."""
    for number, (k, n, layout) in enumerate([(40, 20, "row-major"), (300, 66, "gaps"), (5, 2, "reversed")]):
        a, b = whole((11, k), number), whole((4, k, n), number + 1)
        scale = rounded(random(4).uniform(0.0001, 0.0005, (4, n)), kind)
        rows = rounded(random(5).uniform(0.5, 2, 11), "F32")
        v = rows_of(a, SIZES, lambda part, group: part @ b[group] * scale[group]) * rows[:9, None]
        for weight in (blocked(b, "I8"), blocked(b, "I8", own=True), in_line(b, "I8")):
            out = empty((11, n // 2), "I8", layout)
            before = out.values()
            gated_near(gated(a, weight, tensor(scale, kind, layout), rows, np.cumsum(SIZES), out), v, 9, before)


@pytest.mark.parametrize("form", ["I4", "I32"])
def test_gated_products_of_four_bits(form):
    """((x - 8) weight scale + bias) rows, with the bias that takes the 8 out again, or another one; scales of columns, or of parts of the depth."""
    for number, (k, parts) in enumerate([(64, None), (512, 2), (30, 3)]):
        a, b = whole((9, k), number), whole((4, k, 16), number + 1, -8, 8)
        scale = rounded(random(4).uniform(0.001, 0.003, (4, parts or 1, 16)), "F32")
        rows = rounded(random(5).uniform(0.5, 2, 9), "F32")
        real = b * scale.repeat(k // (parts or 1), 1)
        bias = np.float32((8 * real).sum(1)) if number % 2 == 0 else np.float32(drawn((4, 16), 7))
        v = rows_of(a, SIZES, lambda part, group: (part - 8.0) @ real[group] + bias[group]) * rows[:, None]
        out = empty((9, 8), "I8")
        found = gated(a, packed(b, form), wide(scale if parts else scale[:, 0]), rows, np.cumsum(SIZES), out,
                      bias=tensor(bias))  # fmt: skip
        gated_near(found, v, 9, out.values())


DEPTH, COLUMNS = 2048, 7168


def combined(version, x, weight, groups, places, out, offset=None, shared=None, **more):
    """One of the three versions, which differ in names and in what they have."""
    first = version == 1
    names = dict.fromkeys(("offsetOptional", "antiquantScaleOptional", "antiquantOffsetOptional") if not first else ())
    names |= {"offsetOptional": offset} if not first else {}
    names |= {"tuningConfigOptional": [3]} if version == 3 else {}
    x_name, weight_name, out_name = ("x", "w", "y") if first else ("x1", "x2", "out")
    turned = ("transposeX", "transposeW") if first else ("transposeX1", "transposeX2")
    given = {x_name: x, weight_name: weight, out_name: out, "groupListOptional": groups, "rowIndexOptional": places,
             "sharedInputOptional": shared, "dtype": 0} | dict.fromkeys(turned, False)  # fmt: skip
    suffix = "" if first else f"V{version}"
    return call(f"GroupedMatmulFinalizeRouting{suffix}", **names, **given, **more)


@pytest.mark.parametrize("version, beneath", [(1, True), (2, True), (3, True), (3, False)])
def test_products_that_go_back_to_their_tokens(version, beneath):
    """Rows of one token are summed with what is beneath; a row behind the last group counts nowhere, wherever it would go."""
    sizes, targets, begin = [4, 0, 5], 6, 2
    a, b = whole((10, DEPTH), 1), whole((3, DEPTH, COLUMNS), 2, -8, 8)
    scale = rounded(random(3).uniform(0.0005, 0.001, (3, 1, COLUMNS)), "F32")
    bias = (8 * (b * scale).sum(1)).astype(np.float32)
    offset = None if version == 1 else rounded(random(4).uniform(-0.01, 0.01, (3, 1, COLUMNS)), "F32")
    rows, logits = drawn(10, 5), drawn(10, 6)
    places = np.array([5, 1, 1, 0, 5, 5, 2, 1, 3, 99])
    shared, factor = drawn((3, COLUMNS), 7, "BF16"), 0.3
    layout = LAYOUTS[version - 1]
    found = combined(version, tensor(a, "I8", layout), packed(b, "I32" if version == 2 else "I4"),
                     tensor(np.cumsum(sizes) if version == 1 else sizes, "I64", "gaps"),
                     tensor(places, "I32" if version == 3 else "I64", layout),
                     empty((targets, COLUMNS), "F32", layout), None if offset is None else tensor(offset),
                     tensor(shared, "BF16", layout) if beneath else None, scaleOptional=wide(scale, "I64"),
                     biasOptional=tensor(bias, "F32", layout),
                     pertokenScaleOptional=tensor(rows, "F32", "gaps"), logitOptional=tensor(logits, "F32", "gaps"),
                     sharedInputWeight=factor, sharedInputOffset=begin, groupListType=int(version != 1))  # fmt: skip

    def product(part, group):
        moved = (part - 8.0) @ (b[group] * scale[group].astype(float)) + bias[group].astype(float)
        return moved if offset is None else moved + part.sum(1, keepdims=True) * offset[group]

    v = rows_of(a, sizes, product) * (rows[:9, None] * logits[:9, None])
    expected, size = np.zeros((targets, COLUMNS)), np.zeros((targets, COLUMNS))
    expected[begin : begin + 3] = shared * np.float32(factor) if beneath else 0
    size[...] = np.abs(expected)
    np.add.at(expected, places[:9], v)
    np.add.at(size, places[:9], np.abs(v))
    # a row is rounded to float32, weighed, and the sum is rounded once; the large bias cancels in float64
    assert np.all(np.abs(found - expected) <= 3 * 2.0**-24 * size + 1e-12)


def test_no_products_go_back():
    """Groups without rows leave what is beneath, and nobody looks where rows behind the last group would go."""
    shared = drawn((1, COLUMNS), 1, "BF16")
    for layout in LAYOUTS:
        found = combined(
            1, tensor(np.ones((2, DEPTH)), "I8"), packed(np.ones((2, DEPTH, COLUMNS), int), "I4"), tensor([0, 0], "I64"),
            tensor([-1, 9], "I64"), empty((2, COLUMNS), "F32", layout), shared=tensor(shared, "BF16"),
            scaleOptional=wide(np.ones((2, 1, COLUMNS)), "I64"), biasOptional=tensor(np.ones((2, COLUMNS))),
            pertokenScaleOptional=tensor(np.ones(2)), logitOptional=tensor(np.ones(2)), sharedInputWeight=0.5, sharedInputOffset=1,
            groupListType=1)  # fmt: skip
        np.testing.assert_array_equal(found, [np.zeros(COLUMNS), 0.5 * shared[0]])


def test_places_that_the_result_does_not_have_are_faults():
    given = [tensor(np.ones((2, DEPTH)), "I8"), packed(np.ones((1, DEPTH, COLUMNS), int), "I4"),
             wide(np.ones((1, 1, COLUMNS)), "I64"), tensor(np.ones((1, COLUMNS)))]  # fmt: skip
    for places, ends, sentence in (([0, 3], [2], "row 1 goes to row 3 of 3"), ([-1, 0], [2], "row 0 goes to row -1 of 3"),
                                   ([0, 0], [3], "of an axis of 2")):  # fmt: skip
        out = empty((3, COLUMNS))
        told = fault("GroupedMatmulFinalizeRouting", *given, tensor(np.ones(2)), tensor(ends, "I64"),
                     tensor(np.ones((1, COLUMNS)), "BF16"), tensor(np.ones(2)), tensor(places, "I64"), 0, 1.0, 0, False,
                     False, 1, out)  # fmt: skip
        assert sentence in told
        np.testing.assert_array_equal(out.values(), empty((3, COLUMNS)).values())


def test_products_of_groups_of_k_are_added():
    """Groups of no rows add nothing, nor do rows behind the last group."""
    ends = [3, 3, 8, 9]
    for number, (kind, layout) in enumerate(zip(["F16", "BF16"] * 3, LAYOUTS * 2)):
        m, n = (17, 33) if number % 2 else (300, 5)
        x, weight, before = drawn((11, m), 1, kind), drawn((11, n), 2, kind), drawn((4, m, n), 3)
        below = number >= 3
        y = tensor(before.reshape(4 * m, n) if below else before, "F32", layout)
        found = call("GroupedMatmulAdd", x=tensor(x, kind, layout), weight=tensor(weight, kind, LAYOUTS[-1 - number % 3]),
                     groupList=tensor(ends, "I64", "gaps"), yRef=y, transposeX=True, transposeWeight=False,
                     groupType=2)  # fmt: skip
        parts = zip([0, *ends], ends)
        expected = before + np.stack([x[begin:end].T @ weight[begin:end] for begin, end in parts])
        near(found.reshape(expected.shape), expected, "F32", 6)


def test_no_rows_add_nothing():
    before = drawn((2, 3, 4), 1)
    for m, n in ((3, 4), (0, 4), (3, 0)):
        found = call("GroupedMatmulAdd", x=tensor(np.ones((0, m)), "F16"), weight=tensor(np.ones((0, n)), "F16"),
                     groupList=tensor([0, 0], "I64"), yRef=tensor(before[:, :m, :n]), transposeX=True,
                     transposeWeight=False, groupType=2)  # fmt: skip
        np.testing.assert_array_equal(found, before[:, :m, :n])


def test_lists_that_do_not_fit_are_faults():
    nothing = [None] * 6
    for values, kind in (([3, 2], 1), ([3, 2], 0), ([1, 5], 0), ([-1, 2], 1), ([[0, 1], [2, 1]], 2), ([[-1, 1], [1, 1]], 2)):
        out = empty((4, 5))
        sentence = fault("GroupedMatmulV4", tensor_list([tensor(np.ones((4, 3)))]), tensor_list([tensor(np.ones((2, 3, 5)))]),
                         *nothing, tensor(values, "I64"), None, None, None, 2, 0, kind, 0, tensor_list([out]), None,
                         None)  # fmt: skip
        assert "of an axis of 4" in sentence
        np.testing.assert_array_equal(out.values(), empty((4, 5)).values())
    for ends in ([3, 2], [1, 5], [-1, 2]):
        out = empty((4, 2), "I8")
        sentence = fault("GroupedMatmulSwigluQuant", tensor(np.ones((4, 3)), "I8"),
                         packed(np.ones((2, 3, 4), int), "I4"), tensor(np.ones((2, 4))), None, wide(np.ones((2, 4))),
                         tensor(np.ones(4)), tensor(ends, "I64"), out, empty((4,)), None)  # fmt: skip
        assert "of an axis of 4" in sentence
        np.testing.assert_array_equal(out.values(), empty((4, 2), "I8").values())
    for ends in ([3, 2], [1, 5], [-1, 2], [1, -(2**63)], [1, 2**63 - 1]):
        y = tensor(np.ones((2, 3, 5)))
        sentence = fault("GroupedMatmulAdd", tensor(np.ones((4, 3)), "F16"), tensor(np.ones((4, 5)), "F16"),
                         tensor(ends, "I64"), y, True, False, 2)  # fmt: skip
        assert "of an axis of 4" in sentence
        np.testing.assert_array_equal(y.values(), np.ones((2, 3, 5)))


def test_gated_products_of_no_groups_write_nothing():
    levels, scales = call(
        "GroupedMatmulSwigluQuant", x=tensor(np.ones((4, 8)), "I8"), weight=packed(np.ones((0, 8, 6), int), "I4"),
        bias=tensor(np.ones((0, 6))), offset=None, weightScale=wide(np.ones((0, 6))), xScale=tensor(np.ones(4)),
        groupList=tensor(np.ones(0), "I64"), output=empty((4, 3), "I8"), outputScale=empty((4,)),
        outputOffset=None)  # fmt: skip
    np.testing.assert_array_equal(levels, empty((4, 3), "I8").values())
    np.testing.assert_array_equal(scales, empty((4,)).values())


def test_numbers_of_groups_and_rows_that_overflow():
    """What 32 bits leave of the number of groups would be 1, and 64 bits of the sum of rows 4."""
    items = {group: support.blank(KINDS_OF["F16"], (group, 0, 6)) for group in (1, 2**32 + 1)}
    given = lambda x, weight, groups, out, form: refusal(
        "GroupedMatmulV4", tensor_list(x), tensor_list(weight), *[None] * 6, groups, *[None] * 3, 2, form, 1, 0,
        tensor_list([out]), None, None)
    for group, status in ((1, 0), (2**32 + 1, 161002)):
        found = given([empty((4, 0), "F16")], [items[group]], tensor([4], "I64"), empty((4, 6), "F16"), 0)
        assert found[0] == status and (status == 0 or found[1] == "aclnnGroupedMatmulV4/groupListOptional/shape")
    parts = [support.expanded(KINDS_OF["F16"], (rows, 1)) for rows in (2**62, 2**62, 2**62, 2**62, 4)]
    found = given(parts, [tensor(np.ones((1, 3)), "F16") for _ in parts], None, empty((4, 3), "F16"), 0)
    assert found == (161002, "aclnnGroupedMatmulV4/out/shape")
