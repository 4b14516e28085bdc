"""Weights in ACL_FORMAT_FRACTAL_NZ: as aclnnTransMatmulWeight leaves them, and in blocks of 16 rows and 32 bytes."""

import numpy as np

from tests.ascend.blocks import blocked, in_line
from tests.ascend.calling import LAYOUTS, call, drawn, empty, rounded, tensor, whole
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend.aclnn_support import lib

ROUNDING = {"F32": 2.0**-22, "F16": 2.0**-11, "BF16": 2.0**-8}


def near(actual, expected, kind, terms=64):
    np.testing.assert_allclose(actual, expected, rtol=ROUNDING[kind], atol=terms * 2.0**-22)


def test_plain_products():
    for number, (kind, k, n) in enumerate([("F16", 40, 20), ("BF16", 16, 16), ("F32", 5, 9)]):
        a, b = drawn((2, 7, k), 1, kind), drawn((2, k, n), 2, kind)
        for turned in (False, True):
            for make in (blocked, in_line):
                own = call("Mm", self=tensor(a[0], kind), mat2=make(b[0], kind, turned), out=empty((7, n), kind),
                           cubeMathType=1)  # fmt: skip
                near(own, a[0] @ b[0], kind)
                own = call("Matmul", self=tensor(a, kind), mat2=make(b[1], kind, turned), out=empty((2, 7, n), kind),
                           cubeMathType=1)  # fmt: skip
                near(own, a @ b[1], kind)
                own = call("BatchMatMul", self=tensor(a, kind, "gaps"), mat2=make(b, kind, turned),
                           out=empty((2, 7, n), kind, "gaps"), cubeMathType=1)  # fmt: skip
                near(own, a @ b, kind)


def test_products_by_their_own_functions():
    for number, (kind, k, n) in enumerate([("F16", 40, 20), ("BF16", 16, 16)]):
        a, b, c = drawn((2, 7, k), 1, kind), drawn((2, k, n), 2, kind), drawn((1, n), 3, kind)
        for turned, make in [(False, blocked), (True, blocked), (False, in_line),
                             (False, lambda *given: blocked(*given, own=True))]:  # fmt: skip
            own = call("MatmulWeightNz", self=tensor(a[0], kind), mat2=make(b[0], kind, turned),
                       out=empty((7, n), kind, "gaps"), cubeMathType=0)  # fmt: skip
            near(own, a[0] @ b[0], kind)
            own = call("BatchMatMulWeightNz", self=tensor(a, kind, "gaps"), mat2=make(b, kind, turned),
                       out=empty((2, 7, n), kind), cubeMathType=0)  # fmt: skip
            near(own, a @ b, kind)
            own = call("AddmmWeightNz", self=tensor(c, kind), mat1=tensor(a[0], kind), mat2=make(b[0], kind, turned),
                       beta=0.5, alpha=2.0, out=empty((7, n), kind), cubeMathType=0)  # fmt: skip
            near(own, 0.5 * c + 2 * (a[0] @ b[0]), kind)


def test_quantized_products():
    a, b = whole((2, 7, 40), 1), whole((2, 40, 20), 2)
    scale = rounded(np.random.default_rng(3).uniform(0.001, 0.002, 20), "BF16")
    for version in (3, 4):
        for turned in (False, True)[version == 3 :]:  # the page of V3 takes transposed ones only
            given = b.swapaxes(1, 2) if turned else b
            for weight in (blocked(given, "I8"), blocked(given, "I8", own=True), in_line(given, "I8"),
                           blocked(given, "I8", turned=True)):  # fmt: skip
                more = {"pertokenScaleOptional": None} if version == 4 else {}
                own = call(f"QuantMatmulV{version}", x1=tensor(a, "I8"), x2=weight, scale=tensor(scale, "BF16"),
                           offset=None, bias=None, transposeX1=False, transposeX2=turned, out=empty((2, 7, 20), "BF16"),
                           **more)  # fmt: skip
                near(own, (a @ b) * scale, "BF16")
            own = call("QuantMatmulV5", x1=tensor(a, "I8"), x2=blocked(given, "I8", own=True), x1Scale=None,
                       x2Scale=tensor(scale, "BF16"), yScale=None, x1Offset=None, x2Offset=None, yOffset=None,
                       bias=None, transposeX1=False, transposeX2=turned, groupSize=0,
                       out=empty((2, 7, 20), "BF16"))  # fmt: skip
            near(own, (a @ b) * scale, "BF16")
    x, scale = drawn((7, 64), 4, "F16"), drawn((20,), 5, "F16")
    b = whole((64, 20), 6)
    for version in (2, 3):
        for weight in (blocked(b, "I8"), blocked(b, "I8", turned=True), in_line(b, "I8", turned=True)):
            more = {"innerPrecise": 0} if version == 3 else {}
            own = call(f"WeightQuantBatchMatmulV{version}", x=tensor(x, "F16"), weight=weight,
                       antiquantScale=tensor(scale, "F16"), antiquantOffsetOptional=None, quantScaleOptional=None,
                       quantOffsetOptional=None, biasOptional=None, antiquantGroupSize=0, y=empty((7, 20), "F16"),
                       **more)  # fmt: skip
            near(own, x @ (b * scale), "F16", 9999)


def test_products_of_groups():
    names = ["biasOptional", "scaleOptional", "offsetOptional", "antiquantScaleOptional", "antiquantOffsetOptional",
             "perTokenScaleOptional",
             "activationInputOptional", "activationQuantScaleOptional", "activationQuantOffsetOptional",
             "activationFeatureOutOptional",
             "dynQuantScaleOutOptional", "tuningConfigOptional"]  # fmt: skip
    sizes, group = [3, 0, 4], [0, 0, 0, 2, 2, 2, 2]
    common = {"groupListOptional": tensor(sizes, "I64"), "splitItem": 2, "groupType": 0, "groupListType": 1,
              "actType": 0, **dict.fromkeys(names)}  # fmt: skip
    x, b = drawn((7, 40), 1, "F16"), drawn((3, 40, 20), 2, "F16")
    expected = np.stack([row @ b[item] for row, item in zip(x, group)])
    for weight in ([blocked(b, "F16")], [blocked(b, "F16", turned=True)], [in_line(b, "F16")],
                   [blocked(item, "F16", turned=i > 3) for i, item in enumerate(b)]):  # fmt: skip
        near(call("GroupedMatmulV5", x=[tensor(x, "F16")], weight=weight, out=[empty((7, 20), "F16")], **common)[0],
             expected, "F16")  # fmt: skip
    a, b = whole((7, 40), 3), whole((3, 40, 20), 4)
    sums = np.stack([row @ b[item] for row, item in zip(a, group)])
    for weight in (blocked(b, "I8"), blocked(b, "I8", turned=True)):
        np.testing.assert_array_equal(call("GroupedMatmulV5", x=[tensor(a, "I8")], weight=[weight], out=[empty((7, 20), "I32")], **common)[0], sums)


def test_another_weight_for_the_same_executor():
    """The copy follows the address that the program sets."""
    a, first, second = drawn((7, 40), 1, "F16"), drawn((40, 20), 2, "F16"), drawn((40, 20), 3, "F16")
    x, weight, other, out = tensor(a, "F16"), blocked(first, "F16"), blocked(second, "F16"), empty((7, 20), "F16")
    status, size, executor = support.plan("aclnnMm", x, weight, out, 1)
    assert status == 0 and lib.aclSetAclOpExecutorRepeatable(executor) == 0
    support.execute("aclnnMm", size, executor)
    near(out.values(), a @ first, "F16")
    assert lib.aclSetTensorAddr(executor, 1, weight.handle, other.memory.address) == 0
    support.execute("aclnnMm", size, executor)
    near(out.values(), a @ second, "F16")
    assert lib.aclDestroyAclOpExecutor(executor) == 0


def test_reordered_batches():
    """Small whole numbers, so that every order of sums gives the same."""
    for number, (b, m, k, n, kind) in enumerate([(2, 3, 16, 32, "F16"), (4, 20, 48, 16, "BF16"), (1, 1, 16, 16, "F16")]):
        x1, x2 = whole((b, m, k), number, -4, 5), whole((b, k, n), number + 9, -4, 5)
        product, layout = np.einsum("bmk,bkn->mbn", x1, x2), LAYOUTS[number]
        for pieces, turned in ((1, False), (1, True), (b, True), (max(b // 2, 1), False)):
            shape = (m, b, n) if pieces == 1 else (pieces, m, b // pieces * n)
            expected = product.reshape(m, pieces, b // pieces * n).swapaxes(0, 1).reshape(shape)
            for weight in (blocked(x2, kind), blocked(x2, kind, turned=True), in_line(x2, kind)):
                own = call("TransposeBatchMatMulWeightNz", x1=tensor(x1.swapaxes(0, 1) if turned else x1, kind, layout), x2=weight, bias=None,
                           scale=None, permX1=[1, 0, 2] if turned else [0, 1, 2], permX2=[0, 1, 2], permY=[1, 0, 2], cubeMathType=1,
                           batchSplitFactor=pieces, out=empty(shape, kind, layout))  # fmt: skip
                np.testing.assert_array_equal(own, rounded(expected, kind))
        if kind == "F16":
            scale = np.float32(np.random.default_rng(number).choice([0.25, -0.5, 1, 3], b * n))
            own = call("TransposeBatchMatMulWeightNz", x1=tensor(x1, kind, layout), x2=blocked(x2, kind), bias=None,
                       scale=tensor(scale.view(np.uint32).astype(np.uint64), "U64", layout), permX1=[0, 1, 2], permX2=[0, 1, 2],
                       permY=[1, 0, 2], cubeMathType=0, batchSplitFactor=1, out=empty((m, 1, b * n), "I8", layout))  # fmt: skip
            np.testing.assert_array_equal(own, np.clip(np.rint(product.reshape(m, 1, b * n) * scale), -128, 127))
