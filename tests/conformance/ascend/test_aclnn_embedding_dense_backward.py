"""aclnnEmbeddingDenseBackward: its rules (aclnn-ops 2.3) and worked examples (2.6, 2.7)."""

import numpy
import pytest

from understudy.ascend import lib

from tests.conformance.ascend.aclnn_support import (
    BF16, BOOL, F16, F32, F64, FLOATS, I8, I16, I32, I64, INNER_NULL, INVALID, U8, U16, Subject, Tensor, blank,
    expanded, plan, run,
)  # fmt: skip
from tests.conformance.harness import check_rule, last_rule, run_python

NAME = "aclnnEmbeddingDenseBackward"
NO_PADDING = 2**64 - 1
INDEX_KINDS = (F16, F32, F64, I8, U8, I16, I32, I64, BOOL)


def arguments(grad=None, indices=((2, 0, 2), (1, 2, 0)), rows=4, padding=NO_PADDING, scale=False, columns=2, kind=F32,
              index_kind=I64, out_kind=None):  # fmt: skip
    grad = numpy.arange(1.0, 13.0).reshape(2, 3, 2) if grad is None else numpy.asarray(grad, float)
    return {
        "grad": Tensor(kind, grad),
        "indices": Tensor(index_kind, numpy.array(indices)),
        "numWeights": rows,
        "paddingIdx": padding % 2**64,
        "scaleGradByFreq": scale,
        "out": blank(out_kind or kind, (rows, columns)),
    }


def evaluate(**changes):
    given = arguments(**changes)
    run(NAME, *given.values())
    return given["out"].values()


def view(kind, shape, strides, storage, offset):
    return Tensor(kind, numpy.zeros(storage), shape=shape, strides=strides, offset=offset)


def ranks(grad, indices):
    return lambda: {"grad": Tensor(F32, numpy.ones((1,) * (grad - 1) + (2,))),
                    "indices": Tensor(I64, numpy.zeros((1,) * indices, int))}  # fmt: skip


def private(name, kind, shape, format="FRACTAL_NZ"):
    code = getattr(lib, f"ACL_FORMAT_{format}")
    return lambda: {name: Tensor(kind, numpy.zeros(shape), format=code)}


SUBJECT = Subject(NAME, arguments, ["out"])
ON_910A = {"UNDERSTUDY_SOC": "Ascend910"}
RULES = [
    *SUBJECT.phase_cases(),
    *SUBJECT.tensor_cases("grad", "indices", "out"),
    SUBJECT.case("grad/dtype", lambda: {"grad": Tensor(F64, numpy.ones((2, 3, 2)))},
                 lambda: {"grad": Tensor(BF16, numpy.ones((2, 3, 2)))}),
    SUBJECT.case("indices/dtype", lambda: {"indices": Tensor(U16, numpy.zeros((2, 3)))},
                 lambda: {"indices": Tensor(U8, numpy.zeros((2, 3)))}),
    SUBJECT.case("out/dtype", lambda: {"out": blank(F64, (4, 2))}, lambda: {"out": blank(F16, (4, 2))}),
    SUBJECT.case("grad/rank", ranks(9, 0), ranks(8, 0)),
    SUBJECT.case("indices/rank", ranks(2, 9), ranks(2, 8)),
    SUBJECT.case("out/rank", lambda: {"out": blank(F32, (1, 4, 2))}),
    SUBJECT.case("indices/count", lambda: {"indices": Tensor(I64, numpy.zeros(5))},
                 lambda: {"indices": Tensor(I64, numpy.zeros(6))}),
    SUBJECT.case("out/shape", lambda: {"numWeights": 5}, lambda: {"numWeights": 5, "out": blank(F32, (5, 2))}),
    SUBJECT.case("grad/format", private("grad", F32, (2, 3, 2)), private("grad", F32, (2, 3, 2), "NCHW")),
    SUBJECT.case("indices/format", private("indices", I64, (2, 3)), private("indices", I64, (2, 3), "NHWC")),
    SUBJECT.case("out/format", private("out", F32, (4, 2), "NC1HWC0"), private("out", F32, (4, 2), "NCHW")),
    SUBJECT.case("grad/view", lambda: {"grad": view(F32, (2, 3, 2), (1, 4, 2), 12, 1)},
                 lambda: {"grad": view(F32, (2, 3, 2), (1, 4, 2), 12, 0)}),
    SUBJECT.case("indices/view", lambda: {"indices": view(I64, (6,), (2,), 11, 1)},
                 lambda: {"indices": view(I64, (6,), (2,), 12, 1)}),
    SUBJECT.case("out/view", lambda: {"out": blank(F32, (4, 2), strides=(1, 4), offset=1, storage=(8,))},
                 lambda: {"out": blank(F32, (4, 2), strides=(1, 4), offset=1, storage=(9,))}),
    SUBJECT.case("scaleGradByFreq/row-size", lambda: long_rows(5005, I32), lambda: long_rows(5004, I32), env=ON_910A),
]  # fmt: skip


def long_rows(columns, index_kind, rows=10):
    return {"grad": Tensor(F32, numpy.ones((1, columns))), "indices": Tensor(index_kind, [3]), "numWeights": rows,
            "scaleGradByFreq": True, "out": blank(F32, (rows, columns))}  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


# ---- boundaries the rules leave open ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6,), (3, 2), (2, 3), (1, 6), (6, 1, 1)])
def test_only_the_number_of_indices_counts(shape):
    numpy.testing.assert_array_equal(evaluate(indices=numpy.reshape([2, 0, 2, 1, 2, 0], shape)), EXAMPLE_A)


def test_low_ranks():
    """2.3: no lower bound but the choice for a grad of rank 0."""
    numpy.testing.assert_array_equal(evaluate(grad=[5, 7], indices=[1], rows=2), [[0, 0], [5, 7]])
    numpy.testing.assert_array_equal(evaluate(grad=[5, 7], indices=1, rows=2), [[0, 0], [5, 7]])
    assert plan(NAME, *arguments(grad=1.0, indices=[1]).values())[0] == INVALID
    assert last_rule() == f"{NAME}/grad/rank"


@pytest.mark.parametrize("rows, padding, scale, shape, status", [
    (2**64 - 1, 0, False, (4, 2), INVALID), (4, 2**63, True, (4, 2), 0), (5, 0, False, (4, 2), INVALID),
    (4, 0, False, (4, 3), INVALID), (4, 0, False, (2, 4), INVALID), (4, 0, False, (8,), INVALID),
])  # fmt: skip
def test_out_is_rows_by_columns(rows, padding, scale, shape, status):
    given = {**arguments(padding=padding, scale=scale), "numWeights": rows, "out": blank(F32, shape)}
    assert plan(NAME, *given.values())[0] == status


def test_first_failure_wins():
    wrong_type, high = Tensor(F64, numpy.ones((2, 3, 2))), Tensor(F32, numpy.ones((1,) * 9))
    private_out = Tensor(F32, numpy.zeros((4, 2)), format=lib.ACL_FORMAT_FRACTAL_NZ)
    for rule, changes in [
        ("indices/null", {"indices": None, "grad": wrong_type}),
        ("grad/dtype", {"grad": wrong_type, "indices": Tensor(U16, [1])}),
        ("indices/dtype", {"indices": Tensor(U16, [1]), "out": blank(F64, (4, 2))}),
        ("out/dtype", {"out": blank(F64, (4, 2)), "grad": high}),
        ("grad/rank", {"grad": high, "indices": Tensor(I64, numpy.zeros((1,) * 9))}),
        ("indices/count", {"indices": Tensor(I64, [1]), "out": blank(F32, (4, 2, 1))}),
        ("out/rank", {"out": blank(F32, (4, 2, 1)), "numWeights": 7}),
        ("out/shape", {"out": private_out, "numWeights": 7}),
    ]:
        assert plan(NAME, *{**arguments(), **changes}.values())[0] != 0
        assert last_rule() == f"{NAME}/{rule}"


@pytest.mark.parametrize("soc, bfloat", [("Ascend910", False), ("Ascend910B", True), ("Ascend910_93", True)])
def test_product_profiles(soc, bfloat):
    source = f"""
from tests.conformance.ascend.test_aclnn_embedding_dense_backward import *
print(plan(NAME, *arguments(kind=BF16, out_kind=F32).values())[0], plan(NAME, *arguments(out_kind=BF16).values())[0])
"""
    status = str(0 if bfloat else INVALID)
    assert run_python(source, {"UNDERSTUDY_SOC": soc}).split() == [status, status]


def test_row_limits_of_910a():
    """2.3: with 32 cores; only when scaling; nothing of it on other products."""
    source = """
from tests.conformance.ascend.test_aclnn_embedding_dense_backward import *
def status(columns, index_kind, rows, scale=True):
    given = arguments(grad=numpy.ones((1, columns)), indices=[3], rows=10, scale=scale, columns=columns, index_kind=index_kind)
    given.update(numWeights=rows, out=expanded(F32, (rows, columns)))
    return plan(NAME, *given.values())[0]
print(*[status(*call) for call in [
    (5004, I32, 10), (5005, I32, 10), (9005, I64, 10), (9006, I64, 10), (5004, F64, 10), (5005, F64, 10),
    (1533, I32, 1000000), (1534, I32, 1000000), (1, I64, 1000000), (5005, I32, 10, False)]])
"""
    expected = [0, INNER_NULL, 0, INNER_NULL, 0, INNER_NULL, 0, INNER_NULL, INNER_NULL, 0]
    assert run_python(source, ON_910A).split() == [str(status) for status in expected]
    assert set(run_python(source, {}).split()) == {"0"}


# ---- worked examples --------------------------------------------------------------------------------------------------

EXAMPLE_A = [[14, 16], [7, 8], [15, 18], [0, 0]]
EXAMPLES = [
    (-1, False, EXAMPLE_A),
    (99, False, EXAMPLE_A),
    (-1, True, [[7, 8], [7, 8], [5, 6], [0, 0]]),
    (0, False, [[0, 0], [7, 8], [15, 18], [0, 0]]),
    (2, True, [[7, 8], [7, 8], [0, 0], [0, 0]]),
]


@pytest.mark.parametrize("padding, scale, expected", EXAMPLES)
@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_examples_a_to_d(padding, scale, expected, kind):
    numpy.testing.assert_array_equal(evaluate(padding=padding, scale=scale, kind=kind), expected)


def test_example_e_strided():
    given = arguments(rows=4)
    given["grad"] = Tensor(F32, numpy.arange(8.0), shape=(4, 2), strides=(1, 4))
    given["indices"] = Tensor(I64, [1, 9, 1, 9, 0, 9, 3, 9], shape=(4,), strides=(2,))
    run(NAME, *given.values())
    numpy.testing.assert_array_equal(given["out"].values(), [[2, 6], [1, 9], [0, 0], [3, 7]])


@pytest.mark.parametrize("kind, out_kind, grad, expected", [
    (BF16, BF16, [1.0] * 301, 300), (BF16, F32, [1.0] * 301, 301), (F16, F16, [2048, 1, 1, 1], 2052),
    (F16, F32, [2048, 1, 1, 1], 2051), (F16, F16, [60000, 60000, -60000], 60000), (F16, F16, [60000, 60000], numpy.inf),
])  # fmt: skip
def test_example_f_sums_in_fp32_and_rounds_once(kind, out_kind, grad, expected):
    out = evaluate(grad=numpy.reshape(grad, (-1, 1)), indices=[0] * len(grad), rows=2, columns=1, kind=kind,
                   out_kind=out_kind)  # fmt: skip
    numpy.testing.assert_array_equal(out, [[expected], [0]])


@pytest.mark.parametrize("kind", INDEX_KINDS, ids=lambda kind: kind.name)
def test_example_g_every_type_of_index(kind):
    indices = [1, 0, 1] if kind == BOOL else [1, 2, 1]
    expected = [[2], [5], [0]] if kind == BOOL else [[0], [5], [2]]
    out = evaluate(grad=[[1], [2], [4]], indices=indices, rows=3, columns=1, index_kind=kind)
    numpy.testing.assert_array_equal(out, expected)


def test_floating_indices_truncate():
    indices = [1.9, 2.999, -0.9, 0.5, -1.0, 3.0, numpy.nan, numpy.inf, -numpy.inf, 1e30]
    out = evaluate(grad=numpy.reshape(2.0 ** numpy.arange(10), (-1, 1)), indices=indices, rows=3, columns=1, index_kind=F32)
    numpy.testing.assert_array_equal(out, [[4 + 8], [1], [2]])


def test_indices_outside_the_table_are_skipped():
    """2.5, measured with PyTorch; and they do not count for the frequency."""
    for scale in (False, True):
        out = evaluate(grad=[[1, 2], [3, 4], [5, 6]], indices=[0, 7, -3], scale=scale)
        numpy.testing.assert_array_equal(out, [[1, 2], [0, 0], [0, 0], [0, 0]])
    for outside in (2**31, 2**32, -(2**63), 2**63 - 1, 4, -1):
        assert not evaluate(grad=[[1, 2]], indices=[outside]).any()


def test_padding_rows_may_hold_nan():
    out = evaluate(grad=[[numpy.nan], [numpy.inf], [3], [-numpy.inf]], indices=[1, 0, 2, 0], rows=3, padding=1, columns=1)
    numpy.testing.assert_array_equal(out, [[numpy.nan], [0], [3]])


def test_scaling_is_one_reciprocal_and_one_product():
    out = evaluate(grad=[[0.1], [0.2], [0.4]], indices=[0, 0, 0], rows=1, scale=True, columns=1)
    assert out.astype(numpy.float32).view(numpy.uint32) == 0x3E6EEEF0


@pytest.mark.parametrize("soc", ["Ascend910", "Ascend910B"])
def test_order_of_scaling(soc):
    """2.2: 910A scales every row, the others the sum."""
    rows = numpy.array([0.1, 0.7, 0.3, 0.9, 0.2, 0.6, 1.7], numpy.float32)
    factor = numpy.float32(1) / numpy.float32(7)
    total = numpy.float32(0)
    for row in rows:
        total = total + (row * factor if soc == "Ascend910" else row)
    expected = total if soc == "Ascend910" else total * factor
    source = f"""
from tests.conformance.ascend.test_aclnn_embedding_dense_backward import *
rows = {rows.tolist()}
print(float(evaluate(grad=[[row] for row in rows], indices=[0] * 7, rows=1, scale=True, columns=1)[0, 0]))
"""
    assert float(run_python(source, {"UNDERSTUDY_SOC": soc})) == float(expected)


def test_sums_begin_with_positive_zero():
    out = evaluate(grad=[[-0.0]], indices=[0], rows=1, columns=1)
    assert not numpy.signbit(out[0, 0])
