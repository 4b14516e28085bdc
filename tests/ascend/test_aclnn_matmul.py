"""Matrix products: types, layouts, batches and the added term, against NumPy."""

import itertools

import numpy as np
import pytest

from tests.ascend import calling
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend.aclnn_support import Tensor, blank
from tests.conformance.ascend.pages import KINDS, handle_of, scalar

UNIT = 2.0**-24


def tensor(values, kind="F32", turned=False):
    """The values in memory, or as the transposed view of a matrix."""
    values = np.asarray(values)
    if not turned:
        return Tensor(KINDS[kind], values.ravel(), shape=values.shape)
    axes = (*range(values.ndim - 2), values.ndim - 1, values.ndim - 2)
    strides = support.row_major(tuple(values.shape[axis] for axis in axes))
    strides = [*strides[:-2], strides[-1], strides[-2]]
    return Tensor(KINDS[kind], values.transpose(axes).ravel(), shape=values.shape, strides=strides,
                  storage=[values.size])


def drawn(shape, seed, low=-4, high=4):
    """Small integers: every type holds them, and float32 their sums."""
    return np.random.default_rng(seed).integers(low, high + 1, shape).astype(np.float64)


def run(function, *arguments):
    status, size, executor = support.plan(function, *map(handle_of, arguments))
    assert status == 0, support.lib.aclGetRecentErrMsg()
    support.execute(function, size, executor)


def result(out, shape):
    return np.asarray(out.values()).reshape(shape)


SHAPES = [((5, 7), (7, 3)), ((1, 40), (40, 1)), ((70, 300), (300, 130))]


@pytest.mark.parametrize("kinds", [("F32", "F32", "F32"), ("F16", "F16", "F16"), ("BF16", "BF16", "BF16"),
                                   ("F32", "BF16", "F32"), ("F16", "F32", "F32"), ("F16", "F16", "F32")], ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_mm(kinds, shapes):
    a, b = (drawn(shape, i, -2, 2) for i, shape in enumerate(shapes))
    for turned in itertools.product([False, True], repeat=2):
        out = blank(KINDS[kinds[2]], (a.shape[0], b.shape[1]))
        run("aclnnMm", tensor(a, kinds[0], turned[0]), tensor(b, kinds[1], turned[1]), out, 0)
        expected = KINDS[kinds[2]].decode(KINDS[kinds[2]].encode((a @ b).ravel()))  # rounded once
        np.testing.assert_array_equal(result(out, (-1,)), expected)


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)), ((3,), (5, 3, 4)),
                                    ((5, 2, 3), (3,)), ((2, 1, 2, 3), (5, 3, 4)), ((1, 2, 3), (6, 3, 1)), ((2, 0), (0, 3)),
                                    ((2, 2, 2, 2, 2, 3), (2, 1, 2, 1, 3, 2)), ((0, 3), (3, 4))], ids=str)
def test_matmul(shapes):
    a, b = (drawn(shape, i) for i, shape in enumerate(shapes))
    expected = a @ b
    out = blank(KINDS["F32"], expected.shape)
    run("aclnnMatmul", tensor(a), tensor(b), out, 1)
    np.testing.assert_array_equal(result(out, expected.shape), expected)


@pytest.mark.parametrize("shapes", [((1, 4), (4, 5), (5,)), ((3, 4), (4, 1), (3,)), ((1, 4), (2, 4, 5), (2, 5)),
                                    ((2, 3, 4), (4, 1), (2, 3)), ((1, 4), (4, 1), ()), ((1, 4), (4, 1), (1,))], ids=str)
def test_vectors_written_as_matrices(shapes):
    """As programs of frameworks call it for vectors: matrices of one row or one column, and an out without that axis."""
    x, y = drawn(shapes[0], 1), drawn(shapes[1], 2)
    for kind, turned in itertools.product(("F32", "F16", "BF16"), (False, True)):
        out = blank(KINDS[kind], shapes[2])
        run("aclnnMatmul", tensor(x, kind), tensor(y, kind, turned), out, 0)
        assert (out.values() == (x @ y).reshape(shapes[2])).all()


@pytest.mark.parametrize("shapes", [((1, 4), (4, 5), (4,)), ((3, 4), (4, 1), (1,)), ((2, 4), (4, 5), (5,)),
                                    ((2, 1, 4), (4, 5), (2, 5)), ((1, 4), (4, 5), ())], ids=str)
def test_an_out_that_lacks_another_axis_is_refused(shapes):
    given = tensor(drawn(shapes[0], 1)), tensor(drawn(shapes[1], 2))
    assert calling.refusal("Matmul", *given, blank(KINDS["F32"], shapes[2]), 0) == (161002, "aclnnMatmul/out/shape")


@pytest.mark.parametrize("batches", [(4, 4), (1, 4), (4, 1)])
def test_batch_matmul(batches):
    a, b = drawn((batches[0], 3, 5), 1), drawn((batches[1], 5, 2), 2)
    for turned in itertools.product([False, True], repeat=2):
        out = blank(KINDS["F16"], (4, 3, 2))
        run("aclnnBatchMatMul", tensor(a, "F16", turned[0]), tensor(b, "F16", turned[1]), out, 0)
        np.testing.assert_array_equal(result(out, (4, 3, 2)), a @ b)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("added", [(3, 4), (4,), (1, 4), (3, 1)], ids=str)
def test_addmm(kind, added):
    a, b, c = drawn((3, 6), 1), drawn((6, 4), 2), drawn(added, 3)
    out = blank(KINDS[kind], (3, 4))
    run("aclnnAddmm", tensor(c, kind), tensor(a, kind), tensor(b, kind, True), scalar(0.5), scalar(2), out, 0)
    expected = KINDS[kind].decode(KINDS[kind].encode((0.5 * c + 2 * (a @ b)).ravel()))
    np.testing.assert_array_equal(result(out, (-1,)), expected)


@pytest.mark.parametrize("kinds", [("F32", "F32"), ("F16", "F16"), ("BF16", "BF16"), ("F16", "F32"), ("F32", "F16")],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("added", [(3, 4), (1, 4), (3, 1), (1, 1), (4,), (1,)], ids=str)
def test_gemm(kinds, added):
    kind, of_out = kinds
    a, b, c = drawn((3, 6), 1), drawn((6, 4), 2), drawn(added, 3)
    for left, right, stored in itertools.product([False, True], repeat=3):
        out = blank(KINDS[of_out], (3, 4))
        run("aclnnGemm", tensor(a.T if left else a, kind, stored), tensor(b.T if right else b, kind), tensor(c, kind), 2.0,
            0.5, 5 * left, int(right), out, 0)
        expected = KINDS[of_out].decode(KINDS[of_out].encode((2 * (a @ b) + 0.5 * c).ravel()))
        np.testing.assert_array_equal(result(out, (-1,)), expected)


def test_what_beta_zero_does_not_read():
    a, b = drawn((3, 6), 1), drawn((6, 4), 2)
    out = blank(KINDS["F32"], (3, 4))
    run("aclnnAddmm", tensor(np.full((3, 4), np.nan)), tensor(a), tensor(b), scalar(0), scalar(1), out, 0)
    np.testing.assert_array_equal(result(out, (3, 4)), a @ b)


def test_in_place_forms():
    a, b, c = drawn((3, 6), 1), drawn((6, 4), 2), drawn((3, 4), 3)
    own = tensor(c)
    run("aclnnInplaceAddmm", own, tensor(a), tensor(b), scalar(2), scalar(3), 0)
    np.testing.assert_array_equal(result(own, (3, 4)), 2 * c + 3 * (a @ b))
    a, b, c = drawn((2, 3, 6), 1), drawn((2, 6, 4), 2), drawn((2, 3, 4), 3)
    own = tensor(c)
    run("aclnnInplaceBaddbmm", own, tensor(a), tensor(b), scalar(2), scalar(3), 0)
    np.testing.assert_array_equal(result(own, (2, 3, 4)), 2 * c + 3 * (a @ b))


@pytest.mark.parametrize("added", [(2, 3, 4), (4,), (3, 1), (2, 1, 1)], ids=str)
def test_baddbmm(added):
    a, b, c = drawn((2, 3, 6), 1), drawn((2, 6, 4), 2), drawn(added, 3)
    out = blank(KINDS["F32"], (2, 3, 4))
    run("aclnnBaddbmm", tensor(c), tensor(a), tensor(b), scalar(-1), scalar(2), out, 0)
    np.testing.assert_array_equal(result(out, (2, 3, 4)), 2 * (a @ b) - c)


@pytest.mark.parametrize("own", ["F16", "F32", "BF16"])
def test_baddbmm_of_halves_for_a_float(own):
    """The one mix of types: batches of one type of 16 bits, an F32, and either for what is added."""
    kind = "BF16" if own == "BF16" else "F16"
    a, b, c = drawn((2, 3, 6), 1), drawn((2, 6, 4), 2), drawn((4,), 3)
    out = blank(KINDS["F32"], (2, 3, 4))
    run("aclnnBaddbmm", tensor(c, own), tensor(a, kind), tensor(b, kind), scalar(0.5), scalar(1 / 8), out, 0)
    np.testing.assert_array_equal(result(out, (2, 3, 4)), (a @ b) / 8 + 0.5 * c)


@pytest.mark.parametrize("types, rule", [
    (("F32", "F16", "F32", "F32"), "batch2/same-dtype"), (("F16", "F16", "BF16", "F32"), "batch2/same-dtype"),
    (("F16", "F16", "F16", "BF16"), "out/types"), (("F32", "F32", "F32", "F16"), "out/types"),
    (("BF16", "F16", "F16", "F32"), "self/types"), (("F32", "F16", "F16", "F16"), "self/types"),
])  # fmt: skip
def test_other_mixes_of_baddbmm_are_refused(types, rule):
    shapes = [(2, 3, 4), (2, 3, 6), (2, 6, 4), (2, 3, 4)]
    own, a, b, out = (tensor(np.ones(shape), kind) for shape, kind in zip(shapes, types))
    assert calling.refusal("Baddbmm", own, a, b, scalar(1), scalar(1), out, 0) == (161002, f"aclnnBaddbmm/{rule}")


@pytest.mark.parametrize("types, refused", [(("F16", "F32"), False), (("BF16", "F32"), True), (("F16", "BF16"), True)])
@pytest.mark.parametrize("name, whole", [("InplaceBaddbmm", (2, 3, 4)), ("InplaceAddbmm", (3, 4)), ("Addbmm", (3, 4))])
def test_batches_of_bfloats_mix_with_nothing(types, refused, name, whole):
    own, out = tensor(np.ones(whole)), [] if name.startswith("Inplace") else [blank(KINDS["F32"], whole)]
    batches = [tensor(np.ones(shape), kind) for shape, kind in zip([(2, 3, 6), (2, 6, 4)], types)]
    status, rule = calling.refusal(name, own, *batches, scalar(1), scalar(1), *out, 0)
    assert (status, rule) == (161002, f"aclnn{name}/batch2/bfloat16") if refused else status == 0


@pytest.mark.parametrize("kind", ["F32", "I32"])
def test_addmv_with_alpha_zero_takes_the_shape_of_the_product_alone(kind):
    a, x, c = drawn((3, 5), 1, 0, 3), drawn((5,), 2, 0, 3), drawn((3,), 3, 0, 3)
    out = blank(KINDS[kind], (3,))
    run("aclnnAddmv", tensor(c, kind), tensor(a, kind), tensor(x, kind), scalar(0), scalar(2), out, 0)
    np.testing.assert_array_equal(result(out, (3,)), 2 * c)
    for shape in (1,), ():
        own, numbers = tensor(np.ones(shape), kind), (tensor(a, kind), tensor(x, kind))
        found = calling.refusal("Addmv", own, *numbers, scalar(0), scalar(2), out, 0)
        assert found == (161002, "aclnnAddmv/self/alone")
        run("aclnnAddmv", own, *numbers, scalar(1), scalar(2), out, 0)
        np.testing.assert_array_equal(result(out, (3,)), 2 + a @ x)


@pytest.mark.parametrize("kind, legal", [("F32", [0, 1, 2, 3]), ("F16", [0, 1, 2]), ("BF16", [0, 1])])
def test_cube_math_types_of_mv(kind, legal):
    for value in range(-1, 6):
        out = blank(KINDS[kind], (3,))
        status, rule = calling.refusal("Mv", tensor(np.ones((3, 5)), kind), tensor(np.ones(5), kind), out, value)
        assert (status == 0) == (value in legal)
        assert status == 0 or (status, rule) == (161002, "aclnnMv/cubeMathType/" + ("type" if 0 <= value <= 3 else "range"))


@pytest.mark.parametrize("kind", ["F32", "F16", "I32", "I8", "F64", "I64"])
def test_addmv_mv_dot(kind):
    a, x, c = drawn((3, 5), 1, 0, 3), drawn((5,), 2, 0, 3), drawn((3,), 3, 0, 3)
    out = blank(KINDS[kind], (3,))
    run("aclnnAddmv", tensor(c, kind), tensor(a, kind), tensor(x, kind), scalar(2), scalar(1), out, 0)
    np.testing.assert_array_equal(result(out, (3,)), c + 2 * (a @ x))
    if kind in ("F32", "F16"):
        run("aclnnMv", tensor(a, kind, True), tensor(x, kind), out, 1)
        np.testing.assert_array_equal(result(out, (3,)), a @ x)
    if kind in ("F32", "F16", "I32", "I8"):
        one = blank(KINDS[kind], ())
        run("aclnnDot", tensor(x, kind), tensor(x, kind), one)
        assert result(one, ()) == x @ x


def test_float32_sums():
    """Any numbers, within the roundings of sums of 300 terms."""
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((70, 300), (300, 130)))
    out = blank(KINDS["F32"], (70, 130))
    run("aclnnMm", tensor(a), tensor(b), out, 3)
    wide = a.astype(np.float64) @ b.astype(np.float64)
    bound = 300 * UNIT * (np.abs(a).astype(np.float64) @ np.abs(b))
    assert (np.abs(result(out, (70, 130)) - wide) <= bound).all()


# ---- turned batches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, other", [("F32", "F32"), ("F16", "F16"), ("BF16", "BF16"), ("F16", "F32")])
def test_turned_batches(kind, other):
    """Axes in both orders, results side by side in one or several pieces; whole numbers, so that all sums are exact."""
    out_kind = "F32" if "F32" in (kind, other) else kind
    for number, (b, m, k, n) in enumerate([(2, 3, 4, 5), (6, 1, 40, 7), (1, 9, 3, 1), (4, 70, 65, 33)]):
        layout, random = calling.LAYOUTS[number % 3], np.random.default_rng(number)
        x1, x2 = random.integers(-2, 3, (b, m, k)), random.integers(-2, 3, (b, k, n))
        product = np.einsum("bmk,bkn->bmn", x1, x2)
        for turned1, turned2, pieces in [(False, False, 1), (True, False, 1), (True, True, 1), (False, False, b),
                                         (True, False, max(b // 2, 1))]:  # fmt: skip
            shape = (m, b, n) if pieces == 1 else (pieces, m, b // pieces * n)
            expected = product.reshape(pieces, b // pieces, m, n).transpose(0, 2, 1, 3).reshape(shape)
            own = calling.call("TransposeBatchMatMul", x1=calling.tensor(x1.swapaxes(0, 1) if turned1 else x1, kind, layout),
                       x2=calling.tensor(x2.swapaxes(1, 2) if turned2 else x2, other, layout), bias=None, scale=None,
                               permX1=[1, 0, 2] if turned1 else [0, 1, 2],
                       permX2=[0, 2, 1] if turned2 else [0, 1, 2], permY=[1, 0, 2], cubeMathType=0, batchSplitFactor=pieces,
                       out=calling.empty(shape, out_kind, layout))  # fmt: skip
            np.testing.assert_array_equal(own, expected)


def test_turned_batches_of_integers():
    for number, (b, m, k, n, bits) in enumerate([(2, 3, 4, 5, "U64"), (5, 20, 33, 9, "I64"), (1, 1, 1, 1, "U64")]):
        layout, random = calling.LAYOUTS[number], np.random.default_rng(number)
        x1, x2 = random.integers(-9, 10, (b, m, k)), random.integers(-9, 10, (b, k, n))
        scale = np.float32(random.choice([0.25, -0.5, 1, 3], b * n))
        product = np.einsum("bmk,bkn->mbn", x1, x2).reshape(m, 1, b * n)
        own = calling.call("TransposeBatchMatMul", x1=calling.tensor(x1.swapaxes(0, 1), "F16", layout),
                           x2=calling.tensor(x2, "F16", layout), bias=None,
                   scale=calling.tensor(scale.view(np.uint32).astype(np.uint64), bits, layout), permX1=[1, 0, 2],
                           permX2=[0, 1, 2], permY=[1, 0, 2], cubeMathType=1,
                   batchSplitFactor=1, out=calling.empty((m, 1, b * n), "I8", layout))  # fmt: skip
        np.testing.assert_array_equal(own, np.clip(np.rint(product * scale), -128, 127))


@pytest.mark.parametrize("layout", calling.LAYOUTS)
def test_low_rank_updates(layout):
    random = np.random.default_rng(5)
    for rows, width, depth, adapters, layers, columns, rank, layer, begin in [(3, 48, 32, 2, 3, 16, 16, 1, 16), (70, 32, 160, 5, 1, 32, 64, 0, 0),
                                                                              (1, 1040, 16, 1, 2, 1008, 128, 1, 32)]:  # fmt: skip
        half = lambda *shape: np.float16(random.normal(0, 0.5, shape)).astype(float)
        y, x, b, a = half(rows, width), half(rows, depth), half(adapters, layers, columns, rank), half(adapters, layers, rank, depth)
        indices = random.integers(0, adapters, rows)
        for first in (True, False):
            inner = np.einsum("ik,irk->ir", x, a[indices, layer]) if first else half(rows, rank)
            update = 0.75 * np.einsum("ir,icr->ic", inner, b[indices, layer])
            expected = y.copy()
            expected[:, begin : begin + columns] += update
            put = lambda x: calling.tensor(x, "F16", layout)
            out = calling.call("AddLora", y=put(y), x=put(x if first else inner), weightB=put(b),
                               indices=calling.tensor(indices, "I32", layout),
                       weightAOptional=put(a) if first else None, layerIdx=layer, scale=0.75, yOffset=begin,
                               ySliceSize=columns,
                       out=calling.empty(y.shape, "F16", layout))  # fmt: skip
            # one rounding of the type, and those of sums of rank (and depth) products in float32
            terms = np.abs(update).max() * 2.0**-24 * (rank + depth)
            np.testing.assert_allclose(out, expected, rtol=1.01 * 2.0**-11, atol=terms + 2.0**-25)
            rest = np.delete(out, np.s_[begin : begin + columns], axis=1)
            np.testing.assert_array_equal(rest, np.delete(y, np.s_[begin : begin + columns], axis=1))


def test_an_adapter_that_is_not_there_is_a_fault():
    half = lambda *shape: calling.tensor(np.ones(shape), "F16")
    for index in (-1, 2):
        assert f"index 1 of 2 is {index}, which is not in 0 … 1" in calling.fault(
            "AddLora", half(2, 16), half(2, 16), half(2, 1, 16, 16), calling.tensor([0, index], "I32"), None, 0, 1.0, 0,
            16, calling.empty((2, 16), "F16"))  # fmt: skip


def test_strides_that_no_memory_has():
    """They are refused, and told as they were given."""
    far = Tensor(support.F32, [1.0], shape=[3], strides=[2**62], storage=[1])
    status, _, _ = support.plan("aclnnDot", far, tensor([1, 2, 3]), blank(support.F32, ()))
    said = support.ffi.string(support.lib.aclGetRecentErrMsg()).decode()
    assert status == 561103 and f"strides [{2**62}]" in said
