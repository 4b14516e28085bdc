"""aclnnFusedCrossEntropyLossWithMaxSum: its rules and values (aclnn-ops 4.4)."""

import numpy
import pytest

from tests.conformance.ascend.aclnn_support import (
    BF16, F16, F32, F64, INVALID, RUNTIME, Subject, Tensor, assert_rounded, blank, dead_tensor, plan, run,
)  # fmt: skip
from tests.conformance.harness import check_rule, run_python

NAME = "aclnnFusedCrossEntropyLossWithMaxSum"
OUTPUTS = ("lossOut", "softMaxOutOptional")


def arguments(top=(3, 0.5), total=(1.5032147244, 1.5910096013), predicted=(0, 0), logits=((1, 2, 3), (0.5, -1, -0.5)),
              kind=BF16):  # fmt: skip
    logits = None if logits is None else Tensor(kind, numpy.array(logits, float))
    return {
        "logitsMax": Tensor(F32, top), "sumExpLogits": Tensor(F32, total), "predictedLogits": Tensor(F32, predicted),
        "labelSmoothing": 0.0, "inputOptional": None, "weightOptional": None, "vocabParallelLogitsOptional": logits,
        "lossOut": blank(F32, (len(top),)), "softMaxOutOptional": None if logits is None else blank(F32, logits.shape),
    }  # fmt: skip


SUBJECT = Subject(NAME, arguments, OUTPUTS)
SHAPES = {"logitsMax": (2,), "sumExpLogits": (2,), "predictedLogits": (2,), "vocabParallelLogitsOptional": (2, 3),
          "lossOut": (2,), "softMaxOutOptional": (2, 3)}  # fmt: skip
KINDS = {name: BF16 if name == "vocabParallelLogitsOptional" else F32 for name in SHAPES}


def replaced(name, rule, kind, shape):
    return SUBJECT.case(f"{name}/{rule}", lambda: {name: Tensor(kind, numpy.zeros(shape))})


def view(name):
    shape = SHAPES[name]
    strides = (2,) if len(shape) == 1 else (1, shape[0])
    reach = sum(s * (n - 1) for s, n in zip(strides, shape)) + 1

    def at(offset):
        return lambda: {name: Tensor(KINDS[name], numpy.zeros(reach), shape=shape, strides=strides, offset=offset)}

    return SUBJECT.case(f"{name}/view", at(1), at(0))


RULES = [
    *SUBJECT.phase_cases(),
    *SUBJECT.tensor_cases("logitsMax", "sumExpLogits", "predictedLogits", "lossOut",
                          optional=("vocabParallelLogitsOptional", "softMaxOutOptional")),
    SUBJECT.case("softMaxOutOptional/null", {"softMaxOutOptional": None},
                 {"softMaxOutOptional": None, "vocabParallelLogitsOptional": None}),
    SUBJECT.case("labelSmoothing/range", {"labelSmoothing": 0.1}, {"labelSmoothing": -0.0}),
    *(replaced(name, "dtype", F64, shape) for name, shape in SHAPES.items()),
    *(replaced(name, "rank", KINDS[name], (*SHAPES[name], 1)) for name in ("logitsMax", "vocabParallelLogitsOptional")),
    *(replaced(name, "shape", KINDS[name], (5,) * len(shape)) for name, shape in SHAPES.items() if name != "logitsMax"),
    SUBJECT.case("product/unsupported", {}, lambda: arguments((), (), (), None), env={"UNDERSTUDY_SOC": "Ascend910"}),
    *(view(name) for name in SHAPES),
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


def test_example():
    """4.4 with the statistics of 3.6-A."""
    given = arguments(logits=None)
    run(NAME, *given.values())
    numpy.testing.assert_allclose(given["lossOut"].values(), [0.4076059644, 0.4643687841], rtol=3e-7)


def test_unused_operands_are_not_looked_at():
    given = arguments(logits=None) | {"inputOptional": Tensor(F16, [[1.0, 2]]), "weightOptional": dead_tensor()}
    run(NAME, *given.values())
    numpy.testing.assert_allclose(given["lossOut"].values(), [0.4076059644, 0.4643687841], rtol=3e-7)


@pytest.mark.parametrize("kind", [F32, BF16, F16], ids=lambda kind: kind.name)
@pytest.mark.parametrize("tokens, vocabulary", [(1, 1), (2, 511), (17, 512), (33, 1500)])
def test_softmax(kind, tokens, vocabulary):
    generator = numpy.random.default_rng(tokens)
    given = arguments(generator.normal(3, 1, tokens), generator.uniform(1, 9, tokens), generator.normal(-2, 1, tokens),
                      generator.normal(size=(tokens, vocabulary)), kind)  # fmt: skip
    run(NAME, *given.values())
    top, total, predicted = (given[name].values() for name in ("logitsMax", "sumExpLogits", "predictedLogits"))
    logits = given["vocabParallelLogitsOptional"].values()
    assert_rounded(given["lossOut"].values(), numpy.log(total) - predicted, 2.0**-22, [F32], floor=2.0**-21)
    shifted = logits - top[:, None]
    margin = (8 + numpy.abs(shifted)) * 2.0**-24
    assert_rounded(given["softMaxOutOptional"].values(), numpy.exp(shifted) / total[:, None], margin, [F32])


def test_strided_operands():
    given = arguments()
    given["sumExpLogits"] = Tensor(F32, [1.5, 9, 2.5], shape=(2,), strides=(2,))
    given["vocabParallelLogitsOptional"] = Tensor(BF16, [1, 0.5, 2, -1, 3, -0.5], shape=(2, 3), strides=(1, 2))
    given["softMaxOutOptional"] = blank(F32, (2, 3), strides=(1, 2))
    plain = arguments(total=(1.5, 2.5))
    run(NAME, *given.values())
    run(NAME, *plain.values())
    for name in OUTPUTS:
        numpy.testing.assert_array_equal(given[name].values(), plain[name].values())


def test_a_softmax_without_logits_is_left_alone():
    softmax = blank(F32, (2, 3))
    before = softmax.bytes()
    given = {**arguments(logits=None), "softMaxOutOptional": softmax}
    run(NAME, *given.values())
    assert softmax.bytes() == before


@pytest.mark.parametrize("total, expected", [(0.0, -numpy.inf), (-1.0, numpy.nan), (numpy.inf, numpy.inf)])
def test_sums_are_not_checked(total, expected):
    given = arguments((1.0,), (total,), (2.0,), None)
    run(NAME, *given.values())
    numpy.testing.assert_array_equal(given["lossOut"].values(), [expected])


@pytest.mark.parametrize("smoothing", [numpy.nan, 1.0, -1e-30])
def test_label_smoothing_is_zero(smoothing):
    assert plan(NAME, *{**arguments(), "labelSmoothing": smoothing}.values())[0] == INVALID


def test_no_tokens():
    given = arguments((), (), (), numpy.ones((0, 3)))
    run(NAME, *given.values())


@pytest.mark.parametrize("soc, status", [("Ascend910", RUNTIME), ("Ascend910B", 0), ("Ascend910_93", 0)])
def test_products(soc, status):
    source = """
from tests.conformance.ascend.test_aclnn_fused_cross_entropy_loss_with_max_sum import *
print(plan(NAME, *arguments().values())[0])
"""
    assert int(run_python(source, {"UNDERSTUDY_SOC": soc})) == status
