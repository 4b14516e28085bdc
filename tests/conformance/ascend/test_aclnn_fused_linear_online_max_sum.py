"""aclnnFusedLinearOnlineMaxSum: its rules and values (aclnn-ops 4.3)."""

import numpy
import pytest

from tests.conformance.ascend.aclnn_support import (
    BF16, F16, F32, F64, I8, I16, I32, I64, RUNTIME, U8, Subject, Tensor, blank, plan, run,
)  # fmt: skip
from tests.conformance.ascend.fused_cross_entropy_support import needs_blas, packed, statistics
from tests.conformance.harness import check_rule, run_python

pytestmark = needs_blas
NAME = "aclnnFusedLinearOnlineMaxSum"
OUTPUTS = ("logitsMaxLocalOut", "sumExpLogitsLocalOut", "predictedLogitsLocalOut", "targetMaskOut", "maskedTargetOut",
           "vocabParallelLogitsOutOptional")  # fmt: skip


def arguments(x=((1, 2), (0.5, -1)), w=((1, 0), (0, 1), (1, 1)), target=(2, 0), start=0, end=3, kind=BF16, target_kind=I64,
              logits=True):  # fmt: skip
    x, w = numpy.array(x, float), numpy.array(w, float)
    tokens = x.shape[0]
    return {
        "input": Tensor(kind, x), "weight": Tensor(kind, w), "target": Tensor(target_kind, numpy.array(target)),
        "vocabStartIndex": start, "vocabEndIndex": end,
        "logitsMaxLocalOut": blank(F32, (tokens,)), "sumExpLogitsLocalOut": blank(F32, (tokens,)),
        "predictedLogitsLocalOut": blank(F32, (tokens,)), "targetMaskOut": blank(U8, ((tokens + 7) // 8,)),
        "maskedTargetOut": blank(target_kind, (tokens,)),
        "vocabParallelLogitsOutOptional": blank(kind, (tokens, w.shape[0])) if logits else None,
    }  # fmt: skip


def evaluate(**changes):
    given = arguments(**changes)
    run(NAME, *given.values())
    return {name: given[name].values() for name in OUTPUTS if given[name] is not None}


SUBJECT = Subject(NAME, arguments, OUTPUTS)
SHAPES = {"input": (2, 2), "weight": (3, 2), "target": (2,), "logitsMaxLocalOut": (2,), "sumExpLogitsLocalOut": (2,),
          "predictedLogitsLocalOut": (2,), "targetMaskOut": (1,), "maskedTargetOut": (2,),
          "vocabParallelLogitsOutOptional": (2, 3)}  # fmt: skip
KINDS = {"input": BF16, "weight": BF16, "target": I64, "logitsMaxLocalOut": F32, "sumExpLogitsLocalOut": F32,
         "predictedLogitsLocalOut": F32, "targetMaskOut": U8, "maskedTargetOut": I64, "vocabParallelLogitsOutOptional": BF16}  # fmt: skip
WRONG = {"input": F32, "target": I16, "logitsMaxLocalOut": BF16, "sumExpLogitsLocalOut": F64,
         "predictedLogitsLocalOut": F16, "targetMaskOut": I8}  # fmt: skip
OTHER = {"weight": F16, "maskedTargetOut": I32, "vocabParallelLogitsOutOptional": F32}


def replaced(name, rule, kind, shape):
    return SUBJECT.case(f"{name}/{rule}", lambda: {name: Tensor(kind, numpy.zeros(shape))})


def moved(name, tokens, offset):
    """A call of nine tokens, in which `name` is a strided view that begins at `offset` and fits when that is 0."""

    def changes():
        given = arguments(numpy.ones((tokens, 2)), numpy.ones((3, 2)), numpy.zeros(tokens))
        shape = given[name].shape
        strides = (2,) if len(shape) == 1 else (1, shape[0])
        reach = sum(s * (n - 1) for s, n in zip(strides, shape)) + 1
        given[name] = Tensor(KINDS[name], numpy.zeros(reach), shape=shape, strides=strides, offset=offset)
        return given

    return changes


def empty_input():
    return arguments(numpy.ones((0, 2)), target=())


RULES = [
    *SUBJECT.phase_cases(),
    *SUBJECT.tensor_cases(*(name for name in SHAPES if not name.endswith("Optional")),
                          optional=["vocabParallelLogitsOutOptional"]),
    *(replaced(name, "dtype", kind, SHAPES[name]) for name, kind in WRONG.items()),
    *(replaced(name, "same-dtype", kind, SHAPES[name]) for name, kind in OTHER.items()),
    *(replaced(name, "rank", BF16, (2, 2, 1)) for name in ("input", "weight")),
    *(replaced(name, "shape", KINDS[name], (5,) * len(SHAPES[name])) for name in SHAPES if name != "input"),
    SUBJECT.case("product/unsupported", {}, empty_input, env={"UNDERSTUDY_SOC": "Ascend910"}),
    SUBJECT.case("kernel/missing", {}, empty_input, env={"UNDERSTUDY_BLAS": "/nonexistent/libblas.so"}),
    SUBJECT.case("input/limit", lambda: arguments(numpy.ones((1, 65535)), numpy.ones((2, 65535)), [0]),
                 lambda: arguments(numpy.ones((1, 65534)), numpy.ones((2, 65534)), [0])),
    SUBJECT.case("vocabStartIndex/range", {"vocabStartIndex": -1}, {"vocabStartIndex": 0}),
    SUBJECT.case("vocabEndIndex/range", {"vocabStartIndex": 5, "vocabEndIndex": 4},
                 {"vocabStartIndex": 5, "vocabEndIndex": 5}),
    SUBJECT.case("weight/empty", lambda: arguments(numpy.ones((2, 2)), numpy.ones((0, 2)), [0, 0])),
    *(SUBJECT.case(f"{name}/view", moved(name, 9, 1), moved(name, 9, 0)) for name in SHAPES),
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


def test_example():
    """aclnn-ops 3.6-A: the statistics its gradient begins with, and 4.4's loss."""
    found = evaluate()
    numpy.testing.assert_array_equal(found["logitsMaxLocalOut"], [3, 0.5])
    numpy.testing.assert_allclose(found["sumExpLogitsLocalOut"], [1.5032147244, 1.5910096013], rtol=3e-7)
    numpy.testing.assert_array_equal(found["predictedLogitsLocalOut"], [0, 0])
    numpy.testing.assert_array_equal(found["vocabParallelLogitsOutOptional"], [[1, 2, 3], [0.5, -1, -0.5]])
    numpy.testing.assert_array_equal(found["maskedTargetOut"], [2, 0])
    assert int(found["targetMaskOut"][0]) & 3 == 0


@pytest.mark.parametrize("tokens, features, vocabulary", [
    (1, 1, 1), (3, 5, 511), (3, 5, 512), (9, 17, 513), (1023, 2, 7), (1025, 3, 1025), (2049, 33, 40),
])  # fmt: skip
@pytest.mark.parametrize("kind", [BF16, F16], ids=lambda kind: kind.name)
def test_sizes_around_blocks(tokens, features, vocabulary, kind):
    generator = numpy.random.default_rng(tokens)
    target = generator.integers(-5, vocabulary + 15, tokens)
    given = arguments(generator.normal(size=(tokens, features)), generator.normal(size=(vocabulary, features)), target,
                      start=3, end=3 + vocabulary, kind=kind, target_kind=I32)  # fmt: skip
    run(NAME, *given.values())
    x, w = given["input"].values(), given["weight"].values()
    top, total = statistics(x, w)
    logits = x @ w.T
    masked = (target < 3) | (target >= 3 + vocabulary)
    local = numpy.where(masked, 0, target - 3)
    scale = (numpy.abs(x) @ numpy.abs(w).T).max() * 2.0**-23 * 4
    numpy.testing.assert_allclose(given["logitsMaxLocalOut"].values(), top, atol=scale)
    numpy.testing.assert_allclose(given["sumExpLogitsLocalOut"].values(), total, rtol=2 * scale + 2.0**-20)
    expected = numpy.where(masked, 0.0, logits[numpy.arange(tokens), local] - top)
    numpy.testing.assert_allclose(given["predictedLogitsLocalOut"].values(), expected, atol=2 * scale)
    numpy.testing.assert_array_equal(given["maskedTargetOut"].values(), local)
    numpy.testing.assert_array_equal(given["targetMaskOut"].stored(), packed(masked, padding=1))
    stored = given["vocabParallelLogitsOutOptional"].values()
    numpy.testing.assert_allclose(stored, logits, rtol=2.0**-8 if kind == BF16 else 2.0**-10, atol=scale + 1e-7)


@pytest.mark.parametrize("start, end, target, masked, local", [
    (10, 13, (9, 10), (1, 0), (0, 0)), (10, 13, (12, 13), (0, 1), (2, 0)), (0, 3, (-2, 0), (1, 0), (0, 0)),
    (5, 5, (5, 4), (1, 1), (0, 0)), (2**63 - 4, 2**63 - 1, (2**63 - 2, -(2**63)), (0, 1), (2, 0)),
])  # fmt: skip
def test_range_of_the_vocabulary(start, end, target, masked, local):
    found = evaluate(start=start, end=end, target=numpy.array(target, numpy.int64))
    assert [int(found["targetMaskOut"][0]) >> k & 1 for k in range(2)] == list(masked)
    numpy.testing.assert_array_equal(found["maskedTargetOut"], local)


def test_strided_operands():
    plain = arguments()
    run(NAME, *plain.values())
    given = arguments()
    given["weight"] = Tensor(BF16, [1, 0, 1, 0, 1, 1], shape=(3, 2), strides=(1, 3))
    given["vocabParallelLogitsOutOptional"] = blank(BF16, (2, 3), strides=(1, 2))
    given["target"] = Tensor(I64, [2, 9, 0], shape=(2,), strides=(2,))
    given["sumExpLogitsLocalOut"] = blank(F32, (2,), strides=(3,))
    run(NAME, *given.values())
    for name in OUTPUTS:
        numpy.testing.assert_array_equal(given[name].values(), plain[name].values())


@pytest.mark.parametrize("sizes", [(0, 2, 3), (2, 0, 3)])
def test_empty_tensors_write_nothing(sizes):
    tokens, features, vocabulary = sizes
    given = arguments(numpy.ones((tokens, features)), numpy.ones((vocabulary, features)), numpy.zeros(tokens))
    before = [given[name].bytes() for name in OUTPUTS]
    run(NAME, *given.values())
    assert [given[name].bytes() for name in OUTPUTS] == before


@pytest.mark.parametrize("soc, status", [("Ascend910", RUNTIME), ("Ascend910B", 0), ("Ascend910_93", 0)])
def test_products(soc, status):
    source = """
from tests.conformance.ascend.test_aclnn_fused_linear_online_max_sum import *
print(plan(NAME, *arguments().values())[0])
"""
    assert int(run_python(source, {"UNDERSTUDY_SOC": soc})) == status
