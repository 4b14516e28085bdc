"""aclnnSoftMarginLoss: its rules and values (aclnn-ops 4.1)."""

import itertools

import numpy
import pytest

from tests.conformance.ascend.aclnn_support import (
    BF16, F16, F32, F64, FLOATS, INVALID, Subject, Tensor, assert_rounded, blank, plan, promoted, run,
)  # fmt: skip
from tests.conformance.harness import check_rule, run_python

NAME = "aclnnSoftMarginLoss"
NONE, MEAN, SUM = 0, 1, 2


def arguments(x=((0, 1), (-2, 3)), y=((1, -1), (1, 1)), reduction=NONE, out=(2, 2), kinds=(F32,) * 3):
    return {"self": Tensor(kinds[0], numpy.array(x, float)), "target": Tensor(kinds[1], numpy.array(y, float)),
            "reduction": reduction, "out": blank(kinds[2], out)}  # fmt: skip


def of_rank(name, rank):
    return lambda: {"self": Tensor(F32, 1.0), "target": Tensor(F32, 1.0), name: Tensor(F32, numpy.ones((1,) * rank)),
                    "out": blank(F32, (1,) * min(rank, 8))}  # fmt: skip


def view_of(offset):
    return Tensor(F32, numpy.arange(5.0), shape=(2, 2), strides=(1, 2), offset=offset)


SUBJECT = Subject(NAME, arguments, ["out"])
TENSORS = ("self", "target", "out")
RULES = [
    *SUBJECT.phase_cases(),
    *SUBJECT.tensor_cases(*TENSORS),
    *(SUBJECT.case(f"{name}/dtype", lambda name=name: {name: Tensor(F64, numpy.ones((2, 2)))},
                   lambda name=name: {name: Tensor(BF16, numpy.ones((2, 2)))}) for name in TENSORS),
    *(SUBJECT.case(f"{name}/rank", of_rank(name, 9), of_rank(name, 8)) for name in TENSORS[:2]),
    SUBJECT.case("target/broadcast", lambda: {"target": Tensor(F32, numpy.ones(3))},
                 lambda: {"target": Tensor(F32, numpy.ones((2, 1)))}),
    SUBJECT.case("out/shape", lambda: {"out": blank(F32, (1,)), "reduction": SUM},
                 lambda: {"out": blank(F32, ()), "reduction": SUM}),
    *(SUBJECT.case(f"{name}/view", lambda name=name: {name: view_of(2)}, lambda name=name: {name: view_of(1)})
      for name in TENSORS),
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


def oracle(x, y):
    x, y = numpy.broadcast_arrays(x, y)
    return numpy.logaddexp(0.0, -x * y)


def close(actual, x, y, kinds):
    """fp32: 1 + e^(-xy) is rounded, so small losses lose relative accuracy: one rounding of 1."""
    margin = (8 + 2 * numpy.abs(x * y)) * 2.0**-24
    assert_rounded(actual, oracle(x, y), margin, kinds, floor=2.0**-23)


@pytest.mark.parametrize("kinds", list(itertools.product(FLOATS, repeat=3)),
                         ids=lambda kinds: "-".join(kind.name for kind in kinds))
def test_elements(kinds):
    given = arguments(numpy.random.default_rng(1).normal(0, 3, (7, 300)), numpy.random.default_rng(2).normal(0, 1, (300,)),
                      NONE, (7, 300), kinds)  # fmt: skip
    run(NAME, *given.values())
    close(given["out"].values(), given["self"].values(), given["target"].values(), [promoted(*kinds[:2]), kinds[2]])


@pytest.mark.parametrize("reduction, divides", [(MEAN, True), (SUM, False), (3, False), (-1, False), (2**62, False)])
@pytest.mark.parametrize("count", [1, 1023, 16385, 100003])
@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_reductions(reduction, divides, count, kind):
    """Values other than 0 and 1 sum (4.1)."""
    x, y = numpy.random.default_rng(1).normal(0, 2, count), numpy.random.default_rng(2).choice([-1.0, 1.0], count)
    given = arguments(x, y, reduction, (), (kind, kind, kind))
    run(NAME, *given.values())
    expected = oracle(given["self"].values(), given["target"].values()).sum() / (count if divides else 1)
    assert_rounded(given["out"].values(), numpy.asarray(expected), 2.0**-22, [kind])


def test_a_reduction_rounds_through_the_promoted_type():
    given = arguments([1.0, 2.0, 3.0], [0.5, 1.0, -1.0], SUM, (), (F16, F16, F32))
    run(NAME, *given.values())
    total = oracle(numpy.array([1.0, 2.0, 3.0]), numpy.array([0.5, 1.0, -1.0])).sum()
    assert given["out"].values() == F16.round(total)


def test_a_reduction_over_broadcast_and_strided_inputs():
    x = Tensor(F32, numpy.arange(12.0) / 6, shape=(3, 4), strides=(1, 3))
    y = Tensor(BF16, [[1.0], [-1.0], [0.5]])
    out = blank(F32, ())
    run(NAME, x, y, MEAN, out)
    assert_rounded(out.values(), numpy.asarray(oracle(x.values(), y.values()).mean()), 2.0**-22, [F32])


@pytest.mark.parametrize("x, expected", [
    (0.0, numpy.log(2)), (88.0, 0.0), (-50.0, 50.0), (-88.0, 88.0), (-89.0, numpy.inf), (numpy.inf, 0.0),
    (-numpy.inf, numpy.inf), (numpy.nan, numpy.nan),
])  # fmt: skip
def test_extremes(x, expected):
    """ln(1 + e^(-xy)) as written: infinite once the exponential overflows in fp32."""
    given = arguments([x], [1], NONE, (1,))
    run(NAME, *given.values())
    numpy.testing.assert_allclose(given["out"].values(), [expected], rtol=3e-7)


@pytest.mark.parametrize("shapes", [((0,), (0,)), ((2, 0), (1,)), ((1,), (0, 3))])
@pytest.mark.parametrize("reduction, expected", [(NONE, None), (MEAN, numpy.nan), (SUM, 0.0)])
def test_empty_tensors(shapes, reduction, expected):
    given = [Tensor(F32, numpy.ones(shape)) for shape in shapes]
    out = blank(F32, numpy.broadcast_shapes(*shapes) if reduction == NONE else ())
    before = out.bytes()
    run(NAME, *given, reduction, out)
    if reduction == NONE:
        assert out.bytes() == before
    else:
        numpy.testing.assert_array_equal(out.values(), expected)


def test_the_backward_operator_is_its_derivative():
    """Central differences of this operator, summed, in fp32: half the digits."""
    x, y = numpy.random.default_rng(1).normal(0, 2, 50), numpy.random.default_rng(2).choice([-1.0, 1.0], 50)
    step = 2.0**-7

    def losses(moved):
        given = arguments(moved, y, NONE, (50,))
        run(NAME, *given.values())
        return given["out"].values()

    gradient = blank(F32, (50,))
    run("aclnnSoftMarginLossBackward", Tensor(F32, 1.0), Tensor(F32, x), Tensor(F32, y), SUM, gradient)
    slope = (losses(x + step) - losses(x - step)) / (2 * step)
    numpy.testing.assert_allclose(gradient.values(), slope, atol=1e-4)


@pytest.mark.parametrize("soc, bfloat", [("Ascend910", False), ("Ascend910B", True), ("Ascend910_93", True)])
def test_product_profiles(soc, bfloat):
    source = f"""
from tests.conformance.ascend.test_aclnn_soft_margin_loss import *
for position in range(3):
    kinds = [F32] * 3
    kinds[position] = BF16
    print(plan(NAME, *arguments(kinds=kinds).values())[0])
"""
    expected = [0 if bfloat else INVALID] * 3
    assert run_python(source, {"UNDERSTUDY_SOC": soc}).split() == [str(status) for status in expected]


def test_results_do_not_depend_on_the_number_of_threads():
    source = """
from tests.conformance.ascend.test_aclnn_soft_margin_loss import *
x = numpy.random.default_rng(1).normal(0, 3, 500009)
for reduction, shape in ((NONE, x.shape), (MEAN, ())):
    given = arguments(x, 1.0, reduction, shape)
    run(NAME, *given.values())
    print(hash(given["out"].bytes()))
"""
    env = {"PYTHONHASHSEED": "0"}
    assert len({run_python(source, {**env, "UNDERSTUDY_THREADS": str(count)}) for count in (1, 2, 3)}) == 1
