"""aclnnFusedLinearCrossEntropyLossGrad: its rules (aclnn-ops 3.3) and worked examples (3.6)."""

import numpy
import pytest

from understudy.ascend import lib

from tests.conformance.ascend.aclnn_support import (
    BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, INNER_NULL, INVALID, RUNTIME, U8, Subject, Tensor, blank, dead_tensor,
    expanded, plan, run,
)  # fmt: skip
from tests.conformance.ascend.fused_cross_entropy_support import needs_blas, packed
from tests.conformance.harness import check_rule, last_rule, run_python

pytestmark = needs_blas
NAME = "aclnnFusedLinearCrossEntropyLossGrad"
ON_910A = {"UNDERSTUDY_SOC": "Ascend910"}


def arguments(grad=(1, 1), x=((1, 2), (0.5, -1)), w=((1, 0), (0, 1), (1, 1)), mask=(0, 0), target=(2, 0), smoothing=0.0,
              top=(3, 0.5), total=(1.5032147244, 1.5910096013), softmax=None, kind=BF16, mask_kind=BOOL, target_kind=I64):
    x, w = numpy.array(x, float), numpy.array(w, float)
    return {
        "grad": Tensor(F32, grad), "input": Tensor(kind, x), "weight": Tensor(kind, w),
        "targetMask": Tensor(mask_kind, mask), "maskedTarget": Tensor(target_kind, target), "labelSmoothing": smoothing,
        "logitsMaxOptional": None if top is None else Tensor(F32, top),
        "sumExpLogitsOptional": None if total is None else Tensor(F32, total),
        "softmaxOptional": None if softmax is None else Tensor(F32, softmax),
        "inputGradOut": blank(kind, x.shape), "weightGradOut": blank(kind, w.shape),
    }  # fmt: skip


def evaluate(**changes):
    given = arguments(**changes)
    run(NAME, *given.values())
    return given["inputGradOut"].values(), given["weightGradOut"].values()


def with_softmax(tokens=2, features=2, vocabulary=128):
    """High performance mode."""
    return arguments(numpy.ones(tokens), numpy.ones((tokens, features)), numpy.ones((vocabulary, features)),
                     numpy.zeros(tokens), numpy.zeros(tokens), top=None, total=None,
                     softmax=numpy.full((tokens, vocabulary), 1 / vocabulary))  # fmt: skip


def large(tokens, features, vocabulary, softmax=True):
    """Sizes whose memory is one element: for phase 1 only."""
    given = {
        "grad": expanded(F32, (tokens,)), "input": expanded(BF16, (tokens, features)),
        "weight": expanded(BF16, (vocabulary, features)), "targetMask": expanded(BOOL, (tokens,)),
        "maskedTarget": expanded(I64, (tokens,)), "labelSmoothing": 0.0,
        "logitsMaxOptional": None if softmax else expanded(F32, (tokens,)),
        "sumExpLogitsOptional": None if softmax else expanded(F32, (tokens,)),
        "softmaxOptional": expanded(F32, (tokens, vocabulary)) if softmax else None,
        "inputGradOut": expanded(BF16, (tokens, features)), "weightGradOut": expanded(BF16, (vocabulary, features)),
    }  # fmt: skip
    return given


def moved(kind, shape, strides, offset, storage):
    return Tensor(kind, numpy.zeros(storage), shape=shape, strides=strides, offset=offset)


SUBJECT = Subject(NAME, arguments, ["inputGradOut", "weightGradOut"])
PERFORMANCE = Subject(NAME, with_softmax, ["inputGradOut", "weightGradOut"])
REQUIRED = ("grad", "input", "weight", "targetMask", "maskedTarget", "inputGradOut", "weightGradOut")
SHAPES = {"grad": (2,), "input": (2, 2), "weight": (3, 2), "targetMask": (2,), "maskedTarget": (2,),
          "logitsMaxOptional": (2,), "sumExpLogitsOptional": (2,), "inputGradOut": (2, 2), "weightGradOut": (3, 2)}  # fmt: skip
KINDS = {"grad": F32, "input": BF16, "weight": BF16, "targetMask": BOOL, "maskedTarget": I64, "logitsMaxOptional": F32,
         "sumExpLogitsOptional": F32, "inputGradOut": BF16, "weightGradOut": BF16}  # fmt: skip


def replaced(subject, name, rule, kind, shape, *, format="ND"):
    """`name` of another type, shape or format; the neighbour is the legal call."""
    code = getattr(lib, f"ACL_FORMAT_{format}")
    return subject.case(f"{name}/{rule}", lambda: {name: Tensor(kind, numpy.zeros(shape), format=code)})


def leaving(name):
    """A strided view of the same shape, one element short and just fitting."""
    shape, kind = SHAPES[name], KINDS[name]
    strides = (2,) if len(shape) == 1 else (1, shape[0])
    reach = sum(s * (n - 1) for s, n in zip(strides, shape)) + 1
    return SUBJECT.case(f"{name}/view", lambda: {name: moved(kind, shape, strides, 1, reach)},
                        lambda: {name: moved(kind, shape, strides, 0, reach)})  # fmt: skip


RULES = [
    *SUBJECT.phase_cases(),
    *SUBJECT.tensor_cases(*REQUIRED, optional=("logitsMaxOptional", "sumExpLogitsOptional")),
    *PERFORMANCE.tensor_cases(optional=["softmaxOptional"]),
    SUBJECT.case("softmaxOptional/null", {"sumExpLogitsOptional": None}),
    replaced(SUBJECT, "grad", "dtype", BF16, (2,)),
    replaced(SUBJECT, "input", "dtype", F32, (2, 2)),
    replaced(SUBJECT, "weight", "dtype", F32, (3, 2)),
    SUBJECT.case("targetMask/dtype", lambda: {"targetMask": Tensor(I8, [0])}, lambda: {"targetMask": Tensor(U8, [0])}),
    SUBJECT.case("maskedTarget/dtype", lambda: {"maskedTarget": Tensor(I16, [2, 0])},
                 lambda: {"maskedTarget": Tensor(I32, [2, 0])}),
    replaced(SUBJECT, "logitsMaxOptional", "dtype", F16, (2,)),
    replaced(SUBJECT, "sumExpLogitsOptional", "dtype", F64, (2,)),
    replaced(PERFORMANCE, "softmaxOptional", "dtype", F16, (2, 128)),
    replaced(SUBJECT, "weight", "same-dtype", F16, (3, 2)),
    replaced(SUBJECT, "inputGradOut", "same-dtype", F32, (2, 2)),
    replaced(SUBJECT, "weightGradOut", "same-dtype", F16, (3, 2)),
    *(replaced(SUBJECT, name, "format", KINDS[name], SHAPES[name], format="NCHW") for name in SHAPES),
    replaced(PERFORMANCE, "softmaxOptional", "format", F32, (2, 128), format="NCHW"),
    SUBJECT.case("labelSmoothing/range", {"labelSmoothing": 1e-30}, {"labelSmoothing": -0.0}),
    *(replaced(SUBJECT, name, "rank", KINDS[name], (*SHAPES[name], 1)) for name in SHAPES),
    replaced(PERFORMANCE, "softmaxOptional", "rank", F32, (2, 128, 1)),
    replaced(SUBJECT, "input", "shape", BF16, (3, 2)),
    SUBJECT.case("weight/vocabulary", lambda: with_softmax(vocabulary=127), lambda: with_softmax(vocabulary=128)),
    replaced(SUBJECT, "weight", "shape", BF16, (3, 3)),
    replaced(SUBJECT, "targetMask", "shape", BOOL, (3,)),
    replaced(SUBJECT, "maskedTarget", "shape", I64, (3,)),
    replaced(SUBJECT, "logitsMaxOptional", "shape", F32, (3,)),
    replaced(SUBJECT, "sumExpLogitsOptional", "shape", F32, (1,)),
    replaced(PERFORMANCE, "softmaxOptional", "shape", F32, (128, 2)),
    replaced(SUBJECT, "inputGradOut", "shape", BF16, (3, 2)),
    replaced(SUBJECT, "weightGradOut", "shape", BF16, (2, 2)),
    SUBJECT.case("product/unsupported", {}, lambda: empty_input(), env=ON_910A),
    SUBJECT.case("kernel/missing", {}, lambda: empty_input(), env={"UNDERSTUDY_BLAS": "/nonexistent/libblas.so"}),
    SUBJECT.case("grad/limit", lambda: large(65537, 1, 128), lambda: with_softmax()),
    SUBJECT.case("input/limit", lambda: large(2, 65536, 3, softmax=False), lambda: with_softmax(features=65535)),
    SUBJECT.case("weight/limit", lambda: large(2, 1, 65281), lambda: with_softmax(features=1, vocabulary=65280)),
    *(leaving(name) for name in SHAPES),
    PERFORMANCE.case("softmaxOptional/view", lambda: {"softmaxOptional": moved(F32, (2, 128), (1, 2), 1, 256)},
                     lambda: {"softmaxOptional": moved(F32, (2, 128), (1, 2), 0, 256)}),
]  # fmt: skip


def empty_input():
    return {"grad": Tensor(F32, numpy.ones(0)), "input": Tensor(BF16, numpy.ones((0, 2))), "targetMask": Tensor(BOOL, []),
            "maskedTarget": Tensor(I64, []), "logitsMaxOptional": Tensor(F32, []), "sumExpLogitsOptional": Tensor(F32, []),
            "inputGradOut": blank(BF16, (0, 2))}  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


# ---- boundaries the rules leave open ----------------------------------------------------------------------------------


def test_first_failure_wins():
    wrong, given = Tensor(I8, [[1]]), arguments()
    for rule, changes in [
        ("softmaxOptional/null", {"logitsMaxOptional": None, "grad": None}),
        ("input/null", {"input": None, "inputGradOut": None}),
        ("weightGradOut/null", {"weightGradOut": None, "grad": wrong}),
        ("grad/dtype", {"grad": wrong, "weight": wrong}),
        ("sumExpLogitsOptional/dtype", {"sumExpLogitsOptional": wrong, "weight": Tensor(F16, [[1.0]])}),
        ("weight/same-dtype", {"weight": Tensor(F16, [[1.0]]), "grad": Tensor(F32, [1.0], format=0)}),
        ("grad/format", {"grad": Tensor(F32, [[1.0]], format=0), "labelSmoothing": 1.0}),
        ("labelSmoothing/range", {"labelSmoothing": 1.0, "grad": Tensor(F32, [[1.0]])}),
        ("weightGradOut/rank", {"weightGradOut": blank(BF16, (3,)), "input": Tensor(BF16, [[1.0]])}),
        ("input/shape", {"input": Tensor(BF16, [[1.0]]), "weight": Tensor(BF16, [[1.0]])}),
        ("weight/shape", {"weight": Tensor(BF16, [[1.0]]), "targetMask": Tensor(BOOL, [0])}),
        ("targetMask/shape", {"targetMask": Tensor(BOOL, [0]), "maskedTarget": Tensor(I64, [0])}),
    ]:
        assert plan(NAME, *{**given, **changes}.values())[0] != 0
        assert last_rule() == f"{NAME}/{rule}"


@pytest.mark.parametrize("smoothing", [numpy.nan, 0.1, -1.0, numpy.inf])
def test_label_smoothing_is_zero(smoothing):
    assert plan(NAME, *arguments(smoothing=smoothing).values())[0] == INVALID


@pytest.mark.parametrize("length, status", [(1, INVALID), (2, 0), (3, 0), (10, 0)])
def test_length_of_a_packed_mask(length, status):
    tokens = 10
    given = arguments(numpy.ones(tokens), numpy.ones((tokens, 2)), mask=numpy.zeros(length), target=numpy.zeros(tokens),
                      top=numpy.ones(tokens), total=numpy.ones(tokens), mask_kind=U8)  # fmt: skip
    assert plan(NAME, *given.values())[0] == status


@pytest.mark.parametrize("soc, status", [("Ascend910", RUNTIME), ("Ascend910B", 0), ("Ascend910_93", 0)])
def test_products(soc, status):
    """A wrong parameter comes before the product, an empty input succeeds on any."""
    source = """
from tests.conformance.ascend.test_aclnn_fused_linear_cross_entropy_loss_grad import *
print(plan(NAME, *arguments().values())[0], plan(NAME, *arguments(smoothing=1.0).values())[0],
      plan(NAME, *{**arguments(), **empty_input()}.values())[0])
"""
    assert run_python(source, {"UNDERSTUDY_SOC": soc}).split() == [str(status), str(INVALID), "0"]


def test_limits_hold_for_the_mode_they_belong_to():
    assert plan(NAME, *large(65537, 1, 65281, softmax=False).values())[0] == 0
    assert plan(NAME, *large(65536, 1, 65280).values())[0] == 0
    assert plan(NAME, *large(2, 65536, 128).values())[0] == INNER_NULL


@pytest.mark.parametrize("sizes", [(0, 3, 5), (2, 0, 5), (2, 3, 0), (0, 0, 0)])
def test_empty_tensors_write_nothing(sizes):
    tokens, features, vocabulary = sizes
    given = arguments(numpy.ones(tokens), numpy.ones((tokens, features)), numpy.ones((vocabulary, features)),
                      numpy.zeros(0), numpy.zeros(tokens), top=numpy.ones(tokens), total=numpy.ones(tokens),
                      mask_kind=BOOL) | {"targetMask": Tensor(BOOL, numpy.zeros(tokens))}  # fmt: skip
    before = given["weightGradOut"].bytes(), given["inputGradOut"].bytes()
    run(NAME, *given.values())
    assert (given["weightGradOut"].bytes(), given["inputGradOut"].bytes()) == before


def test_high_performance_mode_ignores_the_statistics():
    expected = with_softmax()
    run(NAME, *expected.values())
    for other in (Tensor(I8, [[1]]), dead_tensor()):
        given = {**with_softmax(), "logitsMaxOptional": other, "sumExpLogitsOptional": other}
        run(NAME, *given.values())
        assert given["weightGradOut"].bytes() == expected["weightGradOut"].bytes()


def test_the_softmax_stays_as_it_was():
    given = with_softmax()
    before = given["softmaxOptional"].bytes()
    run(NAME, *given.values())
    assert given["softmaxOptional"].bytes() == before


# ---- worked examples: within two units of the last place (3.6) --------------------------------------------------------


def near(actual, expected, kind):
    numpy.testing.assert_allclose(actual, expected, rtol={BF16: 2.0**-7, F16: 2.0**-10}[kind], atol=1e-6)


@pytest.mark.parametrize("kind, dx, dw", [
    (BF16, [[-0.244140625, -0.0888671875], [-0.1396484375, 0.37109375]],
     [[-0.095703125, 0.55078125], [0.31640625, 0.349609375], [-0.21875, -0.8984375]]),
    (F16, [[-0.2446289062, -0.0899658203], [-0.1403808594, 0.3715820312]],
     [[-0.0957641602, 0.5517578125], [0.3149414062, 0.3491210938], [-0.2191162109, -0.900390625]]),
], ids=["bfloat16", "float16"])  # fmt: skip
@pytest.mark.parametrize("target_kind", [I32, I64], ids=lambda kind: kind.name)
def test_example_a(kind, dx, dw, target_kind):
    found = evaluate(kind=kind, target_kind=target_kind)
    near(found[0], dx, kind)
    near(found[1], dw, kind)


def test_example_a_strided():
    given = arguments()
    given["weight"] = Tensor(BF16, [1, 0, 1, 0, 1, 1], shape=(3, 2), strides=(1, 3))
    given["inputGradOut"] = blank(BF16, (2, 2), strides=(1, 2))
    run(NAME, *given.values())
    dx, dw = evaluate()
    numpy.testing.assert_array_equal(given["inputGradOut"].values(), dx)
    numpy.testing.assert_array_equal(given["weightGradOut"].values(), dw)


def test_example_b_masked_target_is_not_read():
    dx, dw = evaluate(grad=(2, -0.5), mask=(0, 1), target=(2, 77))
    near(dx, [[-0.48828125, -0.177734375], [-0.4296875, -0.185546875]], BF16)
    near(dw, [[0.0224609375, 0.671875], [0.455078125, 1.046875], [-0.7265625, -1.21875]], BF16)


SHARDS = [
    (slice(0, 3), 0x05, [0, 1, 0],
     [[0.1524209056, 0.0560725176], [0.2976135343, -0.0788686613], [0.1514627131, 0.6069771019]],
     [[0.0680649160, 0.0002587926], [-0.8997961530, -0.2008428219], [0.0059686871, 0.5940100836]]),
    (slice(3, 5), 0x02, [1, 0, 0],
     [[-0.3624421083, 0.1812210541], [-0.0196446920, 0.0098223460], [0.6577427973, -0.3288713987]],
     [[1.0034679167, -0.5892492101], [-0.1777053668, 0.1958231558]]),
]  # fmt: skip


@pytest.mark.parametrize("rows, byte, target, dx, dw", SHARDS, ids=["first", "second"])
def test_example_c_two_shards_with_packed_masks(rows, byte, target, dx, dw):
    """float64 without the rounding of Q: within bfloat16's or float16's own error of a sum of three products."""
    weight = numpy.array([[1, 0], [0, 1], [1, 1], [-1, 0.5], [2, -1]])
    for kind, tolerance in ((BF16, 2.0**-7), (F16, 2.0**-10)):
        found = evaluate(grad=(1, 0.5, 2), x=[[1, -1], [0.5, 2], [-1.5, 1]], w=weight[rows], mask=[byte], target=target,
                         top=(3, 2.5, 2), total=(1.214546987, 1.9073986096, 1.4826405754), kind=kind, mask_kind=U8)  # fmt: skip
        numpy.testing.assert_allclose(found[0], dx, atol=tolerance)
        numpy.testing.assert_allclose(found[1], dw, atol=2 * tolerance)


EXAMPLE_D_ROWS = {0: [0.462890625, -0.904296875], 3: [-27.537109375, -3.904296875], 5: [-6.537109375, -2.904296875],
                  6: [-4.037109375, -0.404296875], 64: [-5.537109375, -0.904296875], 127: [-0.787109375, -0.154296875]}  # fmt: skip


@pytest.mark.parametrize("mask_kind, mask", [
    (U8, [0x12, 0xFD]), (U8, [0x12, 0xFD, 0xFF]), (BOOL, [0, 1, 0, 0, 1, 0, 0, 0, 1, 0]),
], ids=["packed", "longer", "bool"])  # fmt: skip
@pytest.mark.parametrize("kind", [BF16, F16], ids=lambda kind: kind.name)
def test_example_d_is_exact(mask_kind, mask, kind):
    w = [[v % 4, 1 if v % 2 == 0 else -1] for v in range(128)]
    dx, dw = evaluate(grad=[1, 0.5, 2, 1, 1, 0.25, 1, 4, 1, 0.5], x=[[i, 1] for i in range(10)], w=w, mask=mask,
                      target=[0, 1, 5, 5, 2, 127, 64, 3, 9, 6], top=None, total=None, softmax=numpy.full((10, 128), 1 / 128),
                      kind=kind, mask_kind=mask_kind)  # fmt: skip
    numpy.testing.assert_array_equal(dx, [[1.5, -1], [0.75, 0], [1, 2], [0.5, 1], [1.5, 0], [-0.375, 0.25], [1.5, -1],
                                          [-6, 4], [1.5, 0], [-0.25, -0.5]])  # fmt: skip
    expected = numpy.array([EXAMPLE_D_ROWS.get(v, [0.462890625, 0.095703125]) for v in range(128)])
    numpy.testing.assert_array_equal(dw, kind.round(expected))


@pytest.mark.parametrize("kind, dx, dw", [
    (F16, [[0.3601074219, 0.1350097656], [0.0708007812, 3.06640625]],
     [[0.3200683594, -0.6220703125], [-0.2700195312, 0.6303710938], [0.4501953125, 0.075012207]]),
    (BF16, [[0.359375, 0.134765625], [0.0712890625, 3.078125]],
     [[0.3203125, -0.62109375], [-0.26953125, 0.62890625], [0.451171875, 0.0751953125]]),
], ids=["float16", "bfloat16"])  # fmt: skip
def test_example_e_shows_the_rounding_of_q(kind, dx, dw):
    softmax, w = numpy.zeros((2, 128)), numpy.zeros((128, 2))
    softmax[0, :2], softmax[1, 0], softmax[1, 2] = (0.3, 0.7), 0.1, 0.9
    w[:3] = [1, 2], [-3, 0.5], [0.125, 10]
    found = evaluate(grad=[0.3, 1 / 3], x=[[3, -7], [1.5, 0.25]], w=w, mask=[0, 1], target=[1, 0], top=None, total=None,
                     softmax=softmax, kind=kind)  # fmt: skip
    numpy.testing.assert_allclose(found[0], dx, rtol=1e-9)
    numpy.testing.assert_allclose(found[1][:3], dw, rtol=1e-9)
    assert not found[1][3:].any()


@pytest.mark.parametrize("target", [-1, 3, 2**31 - 1, -(2**31)])
def test_targets_outside_subtract_nothing(target):
    one, other = evaluate(target=(target, 0)), evaluate(target=(0, 0), mask=(1, 0))
    numpy.testing.assert_array_equal(one[0], other[0])
    numpy.testing.assert_array_equal(one[1], other[1])


def test_a_sum_of_zero_is_not_checked():
    dx, dw = evaluate(total=(0.0, 1.5910096013))
    assert not numpy.isfinite(dx[0]).any() and numpy.isfinite(dx[1]).all() and not numpy.isfinite(dw).any()


def test_packing_of_masks():
    assert packed([1, 0, 1]) == [0x05] and packed([0] * 8 + [1]) == [0, 1] and packed([1], padding=1) == [0xFF]
