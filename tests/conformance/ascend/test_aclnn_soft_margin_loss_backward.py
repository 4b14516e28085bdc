"""aclnnSoftMarginLossBackward: its rules (aclnn-ops 1.3, 0.2, 0.3) and worked examples (1.5, 1.6)."""

import numpy
import pytest

from understudy.ascend import lib

from tests.conformance.ascend.aclnn_support import (
    BF16, F16, F32, F64, FLOATS, INVALID, Subject, Tensor, blank, plan, promoted, run,
)  # fmt: skip
from tests.conformance.harness import check_rule, last_rule, run_python

NAME = "aclnnSoftMarginLossBackward"
NONE, MEAN, SUM = 0, 1, 2


def arguments(g=((1, 2), (3, 4)), x=((0, 1), (-2, 3)), y=((1, -1), (1, 1)), reduction=SUM, out=(2, 2), kinds=(F32,) * 4):
    return {
        "gradOutput": Tensor(kinds[0], numpy.array(g, float)),
        "self": Tensor(kinds[1], numpy.array(x, float)),
        "target": Tensor(kinds[2], numpy.array(y, float)),
        "reduction": reduction,
        "out": blank(kinds[3], out),
    }


def evaluate(**changes):
    given = arguments(**changes)
    run(NAME, *given.values())
    return given["out"].values()


def of_rank(rank, kind=F32):
    return Tensor(kind, numpy.ones((1,) * rank))


def ranks(name, rank):
    """One tensor of that rank, sizes 1, so that all still broadcast; out has at most rank 8."""
    return lambda: {"gradOutput": of_rank(0), "self": of_rank(0), "target": of_rank(0), name: of_rank(rank),
                    "out": blank(F32, (1,) * min(rank, 8))}  # fmt: skip


def view_of(kind, *, offset):
    """[2,2] with strides (1,2) over 5 elements: offset 1 reaches the last one, offset 2 leaves."""
    return Tensor(kind, numpy.arange(5.0), shape=(2, 2), strides=(1, 2), offset=offset)


SUBJECT = Subject(NAME, arguments, ["out"])
TENSORS = ("gradOutput", "self", "target", "out")
RULES = [
    *SUBJECT.phase_cases(),
    *SUBJECT.tensor_cases(*TENSORS),
    *(SUBJECT.case(f"{name}/dtype", lambda name=name: {name: Tensor(F64, numpy.ones((2, 2)))},
                   lambda name=name: {name: Tensor(BF16, numpy.ones((2, 2)))}) for name in TENSORS),
    *(SUBJECT.case(f"{name}/rank", ranks(name, 9), ranks(name, 8)) for name in TENSORS[:3]),
    SUBJECT.case("self/broadcast", lambda: {"self": Tensor(F32, numpy.ones((3, 2)))},
                 lambda: {"self": Tensor(F32, numpy.ones((1, 2)))}),
    SUBJECT.case("target/broadcast", lambda: {"target": Tensor(F32, numpy.ones(3))},
                 lambda: {"target": Tensor(F32, numpy.ones(2))}),
    SUBJECT.case("out/shape", lambda: {"out": blank(F32, (1, 2, 2))}),
    SUBJECT.case("reduction/range", {"reduction": 3}, {"reduction": 2}),
    *(SUBJECT.case(f"{name}/view", lambda name=name: {name: view_of(F32, offset=2)},
                   lambda name=name: {name: view_of(F32, offset=1)}) for name in TENSORS),
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


# ---- boundaries the rules leave open ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", [-1, -(2**63), 3, 2**63 - 1])
def test_reductions_outside_the_page(reduction):
    given = arguments(reduction=reduction)
    assert plan(NAME, *given.values())[0] == INVALID


@pytest.mark.parametrize("shape", [(2,), (4,), (1, 2, 2), (2, 1), (2, 2, 1), ()])
def test_out_has_exactly_the_broadcast_shape(shape):
    assert plan(NAME, *arguments(out=shape).values())[0] == INVALID


def test_first_failure_wins():
    """Checks come in the sheet's order: NULL before type before rank before shape before reduction."""
    given = arguments(reduction=7, out=(5,))
    wrong_type, wrong_rank = Tensor(F64, [1.0]), of_rank(9)
    for expected, changes in [
        ("target/null", {"target": None, "gradOutput": wrong_type}),
        ("out/null", {"out": None, "self": wrong_type}),
        ("gradOutput/dtype", {"gradOutput": wrong_type, "self": wrong_rank}),
        ("out/dtype", {"self": wrong_rank, "out": blank(F64, (2, 2))}),
        ("self/rank", {"self": wrong_rank}),
        ("target/broadcast", {"target": Tensor(F32, numpy.ones(3))}),
        ("out/shape", {}),
    ]:
        assert plan(NAME, *{**given, **changes}.values())[0] != 0
        assert last_rule() == f"{NAME}/{expected}"


@pytest.mark.parametrize("soc, bfloat", [("Ascend910", False), ("Ascend910B", True), ("Ascend910_93", True)])
def test_product_profiles(soc, bfloat):
    """1.3 #2: ACL_BF16 is missing on 910A only."""
    source = f"""
from tests.conformance.ascend.test_aclnn_soft_margin_loss_backward import *
for position in range(4):
    kinds = [F32] * 4
    kinds[position] = BF16
    print(plan(NAME, *arguments(kinds=kinds).values())[0])
print(plan(NAME, *arguments(kinds=[F16, F32, F16, F32]).values())[0])
"""
    expected = [0 if bfloat else INVALID] * 4 + [0]
    assert run_python(source, {"UNDERSTUDY_SOC": soc}).split() == [str(status) for status in expected]


@pytest.mark.parametrize("format", ["ND", "NCHW", "NHWC", "FRACTAL_NZ", "UNDEFINED"])
def test_formats_are_never_refused(format):
    g = Tensor(F32, [[1, 2], [3, 4]], format=getattr(lib, f"ACL_FORMAT_{format}"))
    given = {**arguments(), "gradOutput": g}
    run(NAME, *given.values())
    numpy.testing.assert_array_equal(given["out"].values(), evaluate())


# ---- worked examples --------------------------------------------------------------------------------------------------


def close(actual, expected):
    """Nine decimals of a float64 result, against fp32 arithmetic."""
    numpy.testing.assert_allclose(actual, expected, rtol=4e-7, atol=1e-9)


@pytest.mark.parametrize("reduction, expected", [
    (NONE, [[-0.5, 1.462117157], [-2.642391234, -0.189703493]]),
    (SUM, [[-0.5, 1.462117157], [-2.642391234, -0.189703493]]),
    (MEAN, [[-0.125, 0.365529289], [-0.660597808, -0.047425873]]),
])  # fmt: skip
def test_example_a(reduction, expected):
    close(evaluate(reduction=reduction), expected)


def test_example_b_soft_labels():
    out = evaluate(g=(1, 1, 1), x=(2, -3, 0.5), y=(0.25, -2, 0), reduction=NONE, out=(3,))
    close(out, [-0.094385167, 0.004945246, 0.0])
    assert numpy.signbit(out[2])


def test_example_c_broadcast_mean():
    out = evaluate(g=1.0, x=[[0.5], [-1.5]], y=[[1, -1, 0.5]], reduction=MEAN, out=(2, 3))
    close(out, [[-0.062923445, 0.103743222, -0.036485292], [-0.136262413, 0.030404254, -0.056598225]])


def test_example_d_transposed_self():
    x = Tensor(F32, numpy.arange(6.0), shape=(3, 2), strides=(1, 3))
    given = {**arguments(g=[[1], [0.5], [0.25]], y=[-1, 1], out=(3, 2)), "self": x}
    run(NAME, *given.values())
    close(given["out"].values(), [[0.5, -0.047425873], [0.365529289, -0.008993105], [0.220199269, -0.001673213]])


@pytest.mark.parametrize("kind, reduction, expected", [
    (F32, NONE, [-0.425366511, 1.691884875, 0.450264893]),
    (F32, MEAN, [-0.141788837, 0.563961625, 0.150088298]),
    (BF16, NONE, [-0.42578125, 1.6953125, 0.451171875]),
    (BF16, MEAN, [-0.1416015625, 0.5625, 0.150390625]),
    (F16, MEAN, [-0.141845703125, 0.56396484375, 0.150146484375]),
])  # fmt: skip
def test_example_e_mixed_types(kind, reduction, expected):
    out = evaluate(g=[1, -2, 0.5], x=[0.30078125, -1.703125, 2.203125], y=[1, 1, -1], reduction=reduction, out=(3,),
                   kinds=(F16, BF16, F32, kind))  # fmt: skip
    close(out, expected) if kind == F32 else numpy.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("kind", [F16, F32], ids=lambda kind: kind.name)
def test_example_f_rounds_through_the_promoted_type(kind):
    given = arguments(g=[1, 0.5, -2, 3], x=[0.0999755859375, -0.7001953125, 1.2998046875, 20], y=[1, -1, 1, 1],
                      reduction=NONE, out=(4,), kinds=(F16, F16, F16, kind))  # fmt: skip
    run(NAME, *given.values())
    out = given["out"].bits()
    expected = numpy.array([0xB79A, 0x314F, 0x36DB, 0x8000], numpy.uint16).view(numpy.float16).astype(kind.storage)
    assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("x, expected", [
    (88.0, -6.0546015e-39), (-88.0, -1.0), (-89.0, numpy.nan), (-100.0, numpy.nan), (100.0, -3.78e-44), (0.0, -0.5),
    (numpy.inf, -0.0), (-numpy.inf, numpy.nan), (numpy.nan, numpy.nan),
])  # fmt: skip
def test_overflow_of_the_exponential_gives_nan(x, expected, kind):
    """1.5: inf/inf, not the limit, once -x*y exceeds ln(FLT_MAX); in every type, since the product is formed in fp32."""
    out = evaluate(g=[1], x=[x], y=[1], reduction=NONE, out=(1,), kinds=(kind,) * 4)
    numpy.testing.assert_allclose(out, kind.round(numpy.array([expected])), rtol=1e-6, atol=2e-45)
    assert numpy.isnan(expected) or numpy.signbit(out[0])


@pytest.mark.parametrize("x, expected", [(-88.7, -1.0), (-88.8, numpy.nan)])
def test_the_edge_of_overflow_in_fp32(x, expected):
    numpy.testing.assert_array_equal(evaluate(g=[1], x=[x], y=[1], reduction=NONE, out=(1,)), [expected])


@pytest.mark.parametrize("g, x, y", [
    (1, numpy.inf, 0), (1, -numpy.inf, 0), (numpy.inf, 200, 1), (numpy.nan, 1, 1), (1, numpy.nan, 1), (1, 1, numpy.nan),
])  # fmt: skip
def test_undefined_products_are_nan(g, x, y):
    assert numpy.isnan(evaluate(g=[g], x=[x], y=[y], reduction=NONE, out=(1,))).all()


def test_promotion_of_three():
    assert promoted(F16, F16, F16) == F16 and promoted(F16, BF16, F16) == F32
