"""Operators that multiply and meet the other ranks in one call, against NumPy: a thread for each rank, and processes.

Where a result is to be exact, numbers are small integers whose sums every type holds."""

import math
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from understudy.ascend import ffi, lib

from tests.ascend.blocks import blocked
from tests.ascend.calling import call, drawn, empty, packed, refusal, rounded, tensor, whole
from tests.ascend.test_hccl_operations import SUM, Rank, on_all, root_info, status_and_text
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend.pages import KINDS as KINDS_OF
from tests.conformance.verdicts import require_status as ok

KINDS = ["F16", "BF16"]
ROUNDING = {"F16": 2.0**-11, "BF16": 2.0**-8}
SHAPES = [((3, 7), 5), ((2, 3, 4), 1), ((1, 33), 40), ((6, 0), 3), ((0, 4), 3)]


def group_of(rank) -> bytes:
    name = ffi.new("char[128]")
    ok(lib.HcclGetCommName(rank.comm, name))
    return ffi.string(name).decode()


def run(rank, name, **arguments):
    mode = {"commTurn": 0, "streamMode": 1, "group": group_of(rank)}
    return call(name, stream=rank.stream, **(mode | arguments))


def small(shape, seed, kind, most=1):
    return rounded(whole(shape, seed, -most, most + 1).astype(float), kind)



# ---- products ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_matmul_all_reduce(ranks, kind):
    def body(rank):
        for number, (shape, n) in enumerate(SHAPES):
            layout = ("row-major", "reversed", "gaps")[number % 3]
            x1 = [small(shape, 10 + other, kind) for other in range(ranks)]
            x2 = [small((shape[-1], n), 20 + other, kind) for other in range(ranks)]
            bias, x3 = small((n,), 30 + number, kind, 3), small((*shape[:-1], n), 40 + number, kind, 3)
            given = {"x1": tensor(x1[rank.rank], kind), "x2": tensor(x2[rank.rank], kind, layout), "reduceOp": "sum"}
            summed = sum(a @ b for a, b in zip(x1, x2))
            out = lambda: empty(summed.shape, kind, layout)
            assert np.array_equal(run(rank, "MatmulAllReduce", **given, bias=None, output=out()), summed)
            with_bias = run(rank, "MatmulAllReduce", **given, bias=tensor(bias, kind), output=out())
            assert np.array_equal(with_bias, summed + ranks * bias)
            both = run(rank, "MatmulAllReduceV2", **given, bias=tensor(bias, kind), x3=tensor(x3, kind, layout), output=out())
            assert np.array_equal(both, summed + ranks * (bias + x3))
            assert np.array_equal(run(rank, "MatmulAllReduceV2", **given, bias=None, x3=None, output=out()), summed)

    on_all(ranks, body, "products")


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_rounded_once_and_sums_once(kind):
    """Within the roundings of both; and the same bits as a product and HcclAllReduce."""
    ranks, m, k, n = 3, 37, 64, 29
    code = {"F16": 3, "BF16": 11}[kind]

    def body(rank):
        x1, x2 = ([drawn(shape, 50 + at + other, kind) for other in range(ranks)] for at, shape in ((0, (m, k)), (9, (k, n))))
        bias = drawn((n,), 70, kind)
        a, b, c = tensor(x1[rank.rank], kind), tensor(x2[rank.rank], kind), tensor(bias, kind)
        out, apart = empty((m, n), kind), empty((m, n), kind)
        found = run(rank, "MatmulAllReduce", x1=a, x2=b, bias=c, reduceOp="sum", output=out)
        own = [p @ q + bias for p, q in zip(x1, x2)]
        margin = 1.01 * ROUNDING[kind] * (sum(map(abs, own)) + abs(sum(own))) + ranks * 4 * k * 2.0**-24
        assert (abs(found - sum(own)) <= margin).all()
        call("Addmm", stream=rank.stream, self=c, mat1=a, mat2=b, beta=1.0, alpha=1.0, out=apart, cubeMathType=0)
        rank.run("HcclAllReduce", apart.memory.address, apart.memory.address, m * n, code, SUM)
        ok(lib.aclrtSynchronizeStream(rank.stream))
        assert out.bytes() == apart.bytes()

    on_all(ranks, body, "rounding")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_matmul_reduce_scatter(ranks, kind):
    def body(rank):
        for number, (rows, n) in enumerate([(1, 5), (3, 1), (0, 4), (2, 0), (2, 700)]):
            layout = ("row-major", "reversed", "gaps")[number % 3]
            x1 = [small((rows * ranks, 256), 10 + other, kind) for other in range(ranks)]
            x2 = [small((256, n), 20 + other, kind) for other in range(ranks)]
            bias = small((n,), 30, kind, 3)
            summed = sum(a @ b for a, b in zip(x1, x2)) + ranks * bias
            found = run(rank, "MatmulReduceScatter", x1=tensor(x1[rank.rank], kind), x2=tensor(x2[rank.rank], kind, layout),
                        bias=tensor(bias, kind), reduceOp="sum", output=empty((rows, n), kind, layout))  # fmt: skip
            assert np.array_equal(found, summed[rank.rank * rows : (rank.rank + 1) * rows])

    on_all(ranks, body, "scatter")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_all_gather_matmul(ranks, kind):
    def body(rank):
        for number, (rows, n) in enumerate([(1, 5), (3, 1), (0, 4), (2, 0), (2, 700)]):
            layout = ("row-major", "reversed", "gaps")[number % 3]
            x1 = [small((rows, 256), 10 + other, kind) for other in range(ranks)]
            x2, bias = small((256, n), 20 + rank.rank, kind), small((n,), 30 + rank.rank, kind, 3)
            gathered = np.concatenate(x1)
            given = {"x1": tensor(x1[rank.rank], kind, layout), "x2": tensor(x2, kind, layout), "gatherIndex": 0}
            out = lambda columns=n: empty((rows * ranks, columns), kind, layout)
            found = run(rank, "AllGatherMatmul", **given, bias=tensor(bias, kind), output=out(), gatherOut=out(256))
            assert np.array_equal(found[0], gathered @ x2 + bias) and np.array_equal(found[1], gathered)
            for nothing in (None, empty((0,), kind)):
                found = run(rank, "AllGatherMatmul", **given, bias=None, output=out(), gatherOut=nothing)
                assert np.array_equal(found if nothing is None else found[0], gathered @ x2)

    on_all(ranks, body, "gather")


def test_sizes_that_do_not_fit_the_ranks():
    def body(rank):
        x1, x2 = tensor(np.ones((5, 256)), "F16"), tensor(np.ones((256, 4)), "F16")
        out = lambda rows: empty((rows, 4), "F16")
        group = group_of(rank).encode()
        assert refusal("MatmulReduceScatter", x1, x2, None, group, b"sum", 0, 1, out(2))[1].endswith("output/shape")
        assert refusal("AllGatherMatmul", x1, x2, None, group, 0, 0, 1, out(5), None)[1].endswith("output/shape")
        assert refusal("AllGatherMatmul", x1, x2, None, group, 0, 0, 1, out(10), out(10))[1].endswith("gatherOut/shape")

    on_all(2, body, "sizes")


# ---- products of integers ----


def wide(scale, kind):
    """The bits of float32 in 64."""
    return tensor(np.asarray(scale, np.float32).view(np.uint32).astype(np.uint64), kind)


def powers(shape, seed):
    return 2.0 ** whole(shape, seed, -4, 1)


def summed(parts, kind):
    """Of ranks that send numbers of the type: few of them are exact in float32."""
    return rounded(sum(rounded(part, kind) for part in parts), kind)


QUANTIZED = {  # version: output, type of the scale, whether rows have scales
    1: [("F16", "U64", False), ("F16", "I64", False), ("BF16", "BF16", False)],
    2: [("F16", "U64", False), ("F16", "F32", True), ("BF16", "BF16", False), ("BF16", "BF16", True)],
    3: [("F16", "I64", False), ("F16", "F32", True), ("BF16", "BF16", True)],
    4: [("F16", "U64", False), ("F16", "F32", True), ("BF16", "F32", False), ("BF16", "BF16", True)],
}


def quantized_call(rank, version, values, kind, of_scale, out, sent=(None, None)):
    names = ["bias", "x3"] if version == 1 else ["biasOptional", "x3Optional"]
    of_rows = "pertokenScaleOptional" if version < 4 else "x1ScaleOptional"
    x1, x2, bias, x3, scale, rows, layout = values
    given = {"x1": tensor(x1, "I8", "gaps" if layout == "gaps" else "row-major"), "x2": tensor(x2, "I8", layout),
             names[0]: None if bias is None else tensor(bias, "I32"), names[1]: None if x3 is None else tensor(x3, kind),
             "dequantScale" if version < 4 else "x2Scale": wide(scale, of_scale) if of_scale.endswith("64") else tensor(scale, of_scale),
             "reduceOp": "sum", "output": out}  # fmt: skip
    if version > 1:
        given[of_rows] = None if rows is None else tensor(rows, "F32")
    if version > 2:
        given |= {f"commQuantScale{at + 1}Optional": None if one is None else tensor(one, kind) for at, one in enumerate(sent)}
    if version > 3:
        given |= {"groupSize": 0, "commQuantMode": 0}
    return run(rank, f"QuantMatmulAllReduce{f'V{version}' if version > 1 else ''}", **given)


def quantized_values(number, version, kind, of_rows, other, shape, k, n):
    """What a rank has, and its product before it is rounded."""
    seed = 1000 * number + 100 * version + other
    x1, x2 = whole((*shape, k), seed, -8, 8), whole((k, n), seed + 10, -8, 8)
    bias = whole((n,), 7, -9, 9) if number % 2 else None
    x3 = rounded(whole((*shape, n), seed + 20, -9, 9) / 4, kind) if number % 3 else None
    scale = powers([(n,), (1,), (1, n)][number % 3], 9)
    rows = powers((int(np.prod(shape)),), seed + 30) if of_rows else None
    product = (x1 @ x2 + (0 if bias is None else bias)) * scale * (rows.reshape(*shape, 1) if of_rows else 1.0)
    own = rounded(product, kind)
    own = own if x3 is None else rounded(own + x3, kind)
    return (x1, x2, bias, x3, scale, rows, ("row-major", "reversed", "gaps")[number % 3]), own


@pytest.mark.parametrize("version", QUANTIZED)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_quantized_products(ranks, version):
    def body(rank):
        for number, (kind, of_scale, of_rows) in enumerate(QUANTIZED[version] * 3):
            shape, k, n = (((3,), 7, 5), ((2, 3), 4, 1), ((1,), 33, 40), ((2, 2), 5, 9))[number % 4]
            ranks_have = [quantized_values(number, version, kind, of_rows, other, shape, k, n) for other in range(ranks)]
            found = quantized_call(rank, version, ranks_have[rank.rank][0], kind, of_scale,
                                   empty((*shape, n), kind, ("row-major", "gaps")[number % 2]))  # fmt: skip
            assert np.array_equal(found, summed([own for _, own in ranks_have], kind)), (number, kind, of_scale)

    on_all(ranks, body, "quantized")


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_products_that_are_sent_as_integers(ranks, version):
    def body(rank):
        for number, (kind, of_scale, of_rows) in enumerate(QUANTIZED[version]):
            shape, k, n = (((3,), 7, 5), ((2, 3), 4, 1), ((1,), 33, 40), ((2, 2), 5, 9))[number % 4]
            ranks_have = [quantized_values(number, version, kind, of_rows, other, shape, k, n) for other in range(ranks)]
            of_line = (1, n) if number % 2 else (n,)
            sent, total = powers(of_line, 40), 2 * powers(of_line, 41)
            found = quantized_call(rank, version, ranks_have[rank.rank][0], kind, of_scale, empty((*shape, n), kind), (sent, total))
            sums = sum(np.clip(np.rint(own / sent), -128, 127) for _, own in ranks_have)
            assert np.array_equal(found, rounded(np.clip(np.rint(sums * (sent / total)), -128, 127) * total, kind))

    on_all(ranks, body, "integers")


def test_a_quantized_weight_in_blocks():
    def body(rank):
        x1, x2 = whole((3, 40), 1 + rank.rank, -8, 8), whole((40, 20), 5, -8, 8)
        weight = blocked(x2, "I8", turned=rank.rank == 1, own=rank.rank == 2)
        found = run(rank, "QuantMatmulAllReduce", x1=tensor(x1, "I8"), x2=weight, bias=None, x3=None,
                    dequantScale=wide([0.5], "U64"), reduceOp="sum", output=empty((3, 20), "F16"))  # fmt: skip
        return found, x1 @ x2 * 0.5

    results = on_all(3, body, "blocks")
    assert all(np.array_equal(found, sum(own for _, own in results)) for found, _ in results)


# ---- weights of integers ----


def weight_values(number, kind, other, shape, n):
    """What a rank has, and its product before it is rounded: a scale for all, for each column, for groups of rows."""
    k, group, of_scale = [(7, 0, (1,)), (5, 0, (n,)), (6, 0, (1, n)), (70, 32, (3, n)), (0, 0, (n,))][number % 5]
    seed = 100 * number + other
    x1 = rounded(whole((*shape, k), seed, -2, 3), kind)
    weight = whole((k, n), seed + 10, -8, 8)
    scale = powers(of_scale, seed + 20)
    offset = rounded(whole(of_scale, seed + 30, -2, 3), kind) if number % 2 else None
    bias = rounded(whole((n,), 7, -3, 4), kind) if number % 3 else None
    x3 = rounded(whole((*shape, n), seed + 40, -3, 4), kind) if number % 2 else None
    repeats = (lambda a: np.repeat(a, group, 0)[:k]) if group else lambda a: a
    numbers = (weight + (0 if offset is None else repeats(offset))) * repeats(scale)
    own = rounded(x1 @ numbers + (0 if bias is None else bias), kind)
    own = own if x3 is None else rounded(own + x3, kind)
    return {"x1": x1, "bias": bias, "antiquantScale": scale, "antiquantOffset": offset, "x3": x3}, weight, group, own


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_quantized_weights(ranks, kind):
    def body(rank):
        for number in range(10):
            shape, n = (((3,), 4), ((2, 3), 2), ((1,), 40))[number % 3]
            ranks_have = [weight_values(number, kind, other, shape, n) for other in range(ranks)]
            numbers, weight, group, _ = ranks_have[rank.rank]
            turned = number % 4 == 1
            made = packed(weight, "I4", turned and weight.shape[0] % 2 == 0) if number % 2 and weight.size else tensor(
                weight, "I8", "reversed" if turned else "row-major")  # fmt: skip
            given = {name: None if value is None else tensor(value, kind) for name, value in numbers.items()}
            found = run(rank, "WeightQuantMatmulAllReduce", **given, x2=made, reduceOp="sum", antiquantGroupSize=group,
                        output=empty((*shape, n), kind, ("row-major", "gaps")[number % 2]))  # fmt: skip
            assert np.array_equal(found, summed([own for *_, own in ranks_have], kind)), number

    on_all(ranks, body, "weights")


# ---- sums that are normalized ----

EPSILON = 0.125


def check_norm(rank, name, kind, shape, own, given):
    """y and normOut of both forms: `own` are the ranks' products."""
    b_s_n = (2, shape[0] // 2, own[0].shape[-1])
    residual, gamma = drawn(b_s_n, 61, kind), drawn(b_s_n[2:], 62, kind)
    total = summed(own, kind).reshape(b_s_n) + residual
    norm = total / np.sqrt((total**2).mean(-1, keepdims=True) + EPSILON) * gamma
    common = given | {"gamma": tensor(gamma, kind), "epsilon": EPSILON, "reduceOp": "sum"}
    y, out = run(rank, name, **common, residual=tensor(residual, kind), y=empty(b_s_n, kind), normOut=empty(b_s_n, kind, "gaps"))
    changed, again = run(rank, f"Inplace{name}", **common, residual=tensor(residual, kind), normOut=empty(b_s_n, kind))
    assert np.array_equal(y, rounded(np.float32(total), kind)) and np.array_equal(changed, y)
    np.testing.assert_allclose(out, norm, rtol=1.01 * ROUNDING[kind], atol=1e-6)
    assert np.array_equal(out, again)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_sums_are_normalized(ranks, kind):
    def body(rank):
        n, at = 5, rank.rank
        for rows in (6, 2):
            x1 = [small((rows, 7), 10 + other, kind) for other in range(ranks)]
            x2, bias = [small((7, n), 20 + other, kind) for other in range(ranks)], small((n,), 30, kind)
            shaped = x1[at] if rows == 6 else x1[at].reshape(2, 1, 7)
            check_norm(rank, "MatmulAllReduceAddRmsNorm", kind, (rows,), [a @ b + bias for a, b in zip(x1, x2)],
                       {"x1": tensor(shaped, kind), "x2": tensor(x2[at], kind, "reversed"), "bias": tensor(bias, kind)})
            of_scale = "U64" if kind == "F16" else "BF16"
            have = [quantized_values(1, 1, kind, False, other, (rows,), 7, n) for other in range(ranks)]
            _, x2, bias, _, scale, _, _ = have[at][0]
            own = [rounded((v[0] @ v[1] + v[2]) * v[4], kind) for v, _ in have]
            check_norm(rank, "QuantMatmulAllReduceAddRmsNorm", kind, (rows,), own,
                       {"x1": tensor(have[at][0][0], "I8"), "x2": tensor(x2, "I8", "reversed"), "bias": tensor(bias, "I32"),
                        "dequantScale": wide(scale, of_scale) if kind == "F16" else tensor(scale, of_scale)})  # fmt: skip
            weights = [weight_values(8, kind, other, (rows,), n) for other in range(ranks)]
            numbers, weight, group, _ = weights[at]
            given = {name: None if value is None else tensor(value, kind) for name, value in numbers.items() if name != "x3"}
            check_norm(rank, "WeightQuantMatmulAllReduceAddRmsNorm", kind, (rows,), [own for *_, own in weights],
                       given | {"x2": tensor(weight, "I8"), "antiquantGroupSize": group})  # fmt: skip

    on_all(ranks, body, "norms")


# ---- experts of which each rank has some ----


def by_rank(counts):
    """Of rows that a rank has, in the order of the experts of all ranks: the rows of each (other rank, expert)."""
    ends = np.cumsum(counts.ravel())
    return lambda rows: {place: rows[end - size : end] for place, end, size in
                         zip(np.ndindex(counts.shape), ends, counts.ravel())}  # fmt: skip


def shared(number, kind, turned):
    if number % 2:
        return {"mmXOptional": None, "mmWeightOptional": None, "mmYOptional": None}, None
    x, weight = small((3, 6), 80, kind), small((6, 7), 81, kind)
    given = {"mmXOptional": tensor(x, kind), "mmWeightOptional": tensor(weight.T if turned else weight, kind)}
    return given | {"mmYOptional": empty((3, 7), kind)}, x @ weight


NO_COUNTS = {"sendCountsTensorOptional": None, "recvCountsTensorOptional": None}


def expert_call(rank, name, **given):
    return call(name, stream=rank.stream, group=group_of(rank), epWorldSize=rank.ranks, **NO_COUNTS, **given)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_experts_multiply_what_other_ranks_send(ranks, kind):
    def body(rank):
        for number, (experts, k, n) in enumerate([(2, 5, 4), (3, 1, 7), (1, 33, 1), (2, 300, 3)]):
            at, turned = rank.rank, number % 2 == 1
            counts = whole((ranks, ranks, experts), 90 + number, 0, 4)  # from, to, expert of that rank
            counts[:, 0, 0] += 1
            rows = [small((counts[other].sum(), k), 100 + other, kind) for other in range(ranks)]
            weight = small((experts, k, n), 120 + at, kind)
            mine = {(other, expert): by_rank(counts[other])(rows[other])[at, expert]
                    for other in range(ranks) for expert in range(experts)}  # fmt: skip
            grouped = np.concatenate([mine[other, expert] for expert in range(experts) for other in range(ranks)])
            product = np.concatenate([mine[other, expert] @ weight[expert] for expert in range(experts) for other in range(ranks)])
            beside, beside_product = shared(number, kind, turned)
            flag, layout = number != 2, ("row-major", "gaps")[number % 2]
            found = expert_call(
                rank, "AlltoAllvGroupedMatMul", gmmX=tensor(rows[at], kind, layout),
                gmmWeight=tensor(weight.swapaxes(1, 2) if turned else weight, kind, "reversed"), transGmmWeight=turned,
                transMmWeight=turned, sendCounts=counts[at].ravel().tolist(), recvCounts=counts[:, at].ravel().tolist(),
                permuteOutFlag=flag, gmmY=empty(product.shape, kind, layout),
                permuteOutOptional=empty(grouped.shape, kind) if flag else None, **beside)  # fmt: skip
            expected = [each for each in (product, beside_product, grouped if flag else None) if each is not None]
            found = found if isinstance(found, tuple) else (found,)
            assert len(found) == len(expected) and all(map(np.array_equal, found, expected)), number

    on_all(ranks, body, "experts")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_experts_send_their_products_back(ranks, kind):
    def body(rank):
        for number, (experts, k, n) in enumerate([(2, 5, 4), (3, 1, 7), (1, 33, 1), (2, 300, 3)]):
            at, turned = rank.rank, number % 2 == 1
            counts = whole((ranks, ranks, experts), 90 + number, 0, 4)  # from, to, expert of the first
            counts[0, :, 0] += 1
            weights = [small((experts, k, n), 120 + other, kind) for other in range(ranks)]
            rows = [{(to, expert): small((counts[other, to, expert], k), 1000 * other + 10 * to + expert, kind)
                     for to in range(ranks) for expert in range(experts)} for other in range(ranks)]  # fmt: skip
            x = np.concatenate([rows[at][to, expert] for expert in range(experts) for to in range(ranks)])
            expected = np.concatenate([rows[other][at, expert] @ weights[other][expert]
                                       for other in range(ranks) for expert in range(experts)])  # fmt: skip
            beside, beside_product = shared(number, kind, turned)
            layout = ("row-major", "gaps")[number % 2]
            found = expert_call(
                rank, "GroupedMatMulAlltoAllv", gmmX=tensor(x, kind, layout),
                gmmWeight=tensor(weights[at].swapaxes(1, 2) if turned else weights[at], kind), transGmmWeight=turned,
                transMmWeight=turned, sendCounts=counts[at].ravel().tolist(), recvCounts=counts[:, at].ravel().tolist(),
                y=empty(expected.shape, kind, layout), **beside)  # fmt: skip
            found = found if isinstance(found, tuple) else (found,)
            assert np.array_equal(found[0], expected), number
            assert beside_product is None or np.array_equal(found[1], beside_product)

    on_all(ranks, body, "experts")


# ---- batches between ranks with other experts and ranks with other parts ----


def two_groups(experts, parts, body):
    """Threads that are in two communicators: rank = part * experts + place among those with other experts."""
    roots = [root_info() for _ in range(experts + parts)]

    def work(rank):
        part, place = divmod(rank.rank, experts)
        of_experts = Rank(experts, place, roots[part], name=f"experts {rank.rank}")
        of_parts = Rank(parts, part, roots[parts + place], name=f"parts {rank.rank}")
        groups = {"groupEp": f"experts {rank.rank}", "groupTp": f"parts {rank.rank}"}
        body(rank, place, part, groups | {"epWorldSize": experts, "tpWorldSize": parts})
        ok(lib.aclrtSynchronizeStream(rank.stream))
        of_experts.end()
        of_parts.end()

    on_all(experts * parts, work, "both")


def bias_for(number, kind, own, n, seed):
    if number % 2 == 0:
        return None, np.zeros((own, 1, n))
    values = small((own, 1, n), seed, kind, 3)
    return tensor(values if number % 4 == 1 else values[:, 0], "F32" if kind == "BF16" else kind), values


ACTIVATIONS = [lambda v: v, lambda v: 0.5 * v * (1 + np.vectorize(math.erf)(v / math.sqrt(2))), lambda v: v / (1 + np.exp(-v)),
               lambda v: np.maximum(v, 0), lambda v: v / (1 + np.exp(-1.702 * np.abs(v))) * np.exp(0.851 * (v - np.abs(v)))]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("experts", "parts"), [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2)])
def test_batches_are_gathered_and_multiplied(experts, parts, kind):
    def body(rank, place, part, groups):
        for number in range(10):
            shard, activation, own, rows, columns, n = number % 2, number % 5, 2, 3, 4, (5, 1)[number % 2]
            # What every part of every rank has: [experts of all, rows, columns].
            x = [[small((own * experts, rows, columns), 100 * p + e, kind) for e in range(experts)] for p in range(parts)]
            arrived = [[x[p][e][place * own : (place + 1) * own] for e in range(experts)] for p in range(parts)]
            if shard == 0:
                gathered = np.concatenate([np.concatenate([arrived[p][e] for p in range(parts)], 2) for e in range(experts)], 1)
            else:
                gathered = np.concatenate([arrived[p][e] for e in range(experts) for p in range(parts)], 1)
            weight = small((own, gathered.shape[2], n), 7 + rank.rank, kind)
            bias, added = bias_for(number, kind, own, n, 9)
            product, layout = gathered @ weight + added, ("row-major", "reversed", "gaps")[number % 3]
            wanted, kept = number % 3 > 0, activation and number % 4 > 1
            found = call(
                "AlltoAllAllGatherBatchMatMul", stream=rank.stream, x=tensor(x[part][place], kind, layout), biasOptional=bias,
                weight=tensor(weight, kind, layout), xShardType=shard, actType=activation, y1Out=empty(product.shape, kind, layout),
                y2OutOptional=empty(gathered.shape, kind, layout) if wanted else None,
                y3OutOptional=empty(product.shape, kind) if kept else None, **groups)  # fmt: skip
            found = list(found) if isinstance(found, tuple) else [found]
            result = ACTIVATIONS[activation](product)
            np.testing.assert_allclose(found.pop(0), result, rtol=1.01 * ROUNDING[kind], atol=1e-6)
            assert not wanted or np.array_equal(found.pop(0), gathered)
            assert not kept or np.array_equal(found.pop(0), product)

    two_groups(experts, parts, body)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("experts", "parts"), [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2)])
def test_batches_are_multiplied_and_scattered(experts, parts, kind):
    def body(rank, place, part, groups):
        for number in range(4):
            shard, own, rows, columns, k = number % 2, 2, 3, 4, (5, 1)[number % 2]
            pieces, width = experts * (parts if shard else 1), columns * (1 if shard else parts)
            x = [[small((own, pieces * rows, k), 100 * p + e, kind) for e in range(experts)] for p in range(parts)]
            weight = [[small((own, k, width), 500 + 100 * p + e, kind) for e in range(experts)] for p in range(parts)]
            biases = [bias_for(number, kind, own, columns, 9 + 10 * e + part) for e in range(experts)]
            result = []
            for e in range(experts):  # of the experts of each rank
                summed = sum(x[p][e] @ weight[p][e] for p in range(parts))
                at = (place * parts + part) if shard else place
                mine = summed[:, at * rows : (at + 1) * rows, slice(None) if shard else slice(part * columns, (part + 1) * columns)]
                result.append(mine + biases[e][1])
            layout = ("row-major", "gaps")[number % 2]
            found = call(
                "BatchMatMulReduceScatterAlltoAll", stream=rank.stream, x=tensor(x[part][place], kind, layout),
                weight=tensor(weight[part][place], kind, "reversed"), biasOptional=biases[place][0], yShardType=shard,
                out=empty((own * experts, rows, columns), kind, layout), **groups)  # fmt: skip
            assert np.array_equal(found, np.concatenate(result)), number

    two_groups(experts, parts, body)


# ---- barriers ----


@pytest.mark.parametrize("name", ["DistributeBarrier", "DistributeBarrierV2", "MoeDistributeBufferReset"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_no_rank_goes_on_before_all_are_there(ranks, name):
    arrived = []

    def body(rank):
        group, x = ffi.new("char[]", group_of(rank).encode()), tensor(np.arange(6.0))
        arguments = {"DistributeBarrier": [x, group, ranks], "DistributeBarrierV2": [x, None, None, group, ranks],
                     "MoeDistributeBufferReset": [tensor(np.ones(ranks), "I32"), group, ranks, 1]}[name]  # fmt: skip
        for turn in range(3):
            go = plan(rank, name, *arguments)
            arrived.append(turn)
            go()
            ok(lib.aclrtSynchronizeStream(rank.stream))
            assert arrived.count(turn) == ranks
        assert np.array_equal(x.values(), np.arange(6.0))

    on_all(ranks, body, "barrier")


# ---- ranks that do not fit together, and communicators that end ----


def plan(rank, name, *arguments):
    status, size, executor = support.plan(f"aclnn{name}", *arguments)
    ok(status)
    return lambda: ok(getattr(lib, f"aclnn{name}")(ffi.NULL, size, executor, rank.stream))


def end_failed(rank):
    ok(lib.HcclCommDestroy(rank.comm))
    ok(lib.aclrtDestroyStream(rank.stream))
    rank.end = lambda: None


def test_ranks_that_run_different_operators_are_told():
    def body(rank):
        group = ffi.new("char[]", group_of(rank).encode())
        x1, x2, out = tensor(np.ones((4, 256)), "F16"), tensor(np.ones((256, 4)), "F16"), empty((2, 4), "F16")
        if rank.rank == 0:
            plan(rank, "MatmulReduceScatter", x1, x2, None, group, ffi.new("char[]", b"sum"), 0, 1, out)()
        else:
            x = rank.put(np.zeros(8, np.float16))
            rank.run("HcclAllReduce", x, x, 8, 3, SUM)
        found = status_and_text(rank)
        end_failed(rank)
        return found

    results = on_all(2, body, "different")
    assert all(status != 0 for status, _ in results)
    assert any("runs aclnnMatmulReduceScatter(float16), this rank HcclAllReduce" in text
               or "runs HcclAllReduce(type 3, op 0), this rank aclnnMatmulReduceScatter" in text
               for _, text in results), results  # fmt: skip


def test_a_communicator_that_ends_before_the_operator_runs():
    def body(rank):
        group = ffi.new("char[]", group_of(rank).encode())
        x, out = tensor(np.ones((2, 2)), "F16"), empty((2, 2), "F16")
        go = plan(rank, "MatmulAllReduce", x, x, None, group, ffi.new("char[]", b"sum"), 0, 1, out)
        assert refusal("MatmulAllReduce", x, x, None, b"ends 7", b"sum", 0, 1, out)[1].endswith("group/unknown")
        ok(lib.HcclCommDestroy(rank.comm))
        assert refusal("MatmulAllReduce", x, x, None, b"ends 0", b"sum", 0, 1, out)[1].endswith("group/unknown")
        go()
        found = status_and_text(rank)
        ok(lib.aclrtDestroyStream(rank.stream))
        rank.end = lambda: None
        return found

    ((status, text),) = on_all(1, body, "ends")
    assert status != 0 and "has destroyed its communicator" in text, text


def test_an_operator_that_is_queued_keeps_its_communicator():
    def body(rank):
        group = ffi.new("char[]", group_of(rank).encode())
        x, out = tensor(np.eye(2), "F16"), empty((2, 2), "F16")
        go = plan(rank, "MatmulAllReduce", x, x, None, group, ffi.new("char[]", b"sum"), 0, 1, out)
        if rank.rank == 0:
            go()
            assert lib.HcclCommDestroy(rank.comm) == lib.HCCL_E_AGAIN
        ranks_met.wait()
        if rank.rank == 1:
            go()
        ok(lib.aclrtSynchronizeStream(rank.stream))
        assert np.array_equal(out.values(), 2 * np.eye(2))

    ranks_met = threading.Barrier(2, timeout=60)
    on_all(2, body, "keeps")


# ---- graphs, modes, devices, processes ----


def test_a_graph_runs_them_again_and_again():
    def body(rank):
        group = ffi.new("char[]", group_of(rank).encode())
        x1, x2, out = tensor(np.eye(3), "F16"), tensor(np.full((3, 3), rank.rank + 1.0), "F16"), empty((3, 3), "F16")
        model = ffi.new("aclmdlRI *")
        ok(lib.aclmdlRICaptureBegin(rank.stream, lib.ACL_MODEL_RI_CAPTURE_MODE_RELAXED))
        plan(rank, "MatmulAllReduce", x1, x2, None, group, ffi.new("char[]", b"sum"), 0, 1, out)()
        ok(lib.aclmdlRICaptureEnd(rank.stream, model))
        for factor in (1, 2, 5):
            x2.memory.write(KINDS_OF["F16"].encode(np.full(9, factor * (rank.rank + 1.0))).tobytes())
            ok(lib.aclmdlRIExecuteAsync(model[0], rank.stream))
            ok(lib.aclrtSynchronizeStream(rank.stream))
            assert (out.values() == 6 * factor).all()
        ok(lib.aclmdlRIDestroy(model[0]))

    on_all(3, body, "graph")


DEVICES = """
import sys, threading
import numpy as np
from understudy.ascend import ffi, lib
from tests.ascend.calling import call, empty, tensor
from tests.conformance.ascend import aclnn_support as support
ok = support.ok
support.start()
comms = ffi.new("HcclComm[4]")
ok(lib.HcclCommInitAll(4, ffi.new("int32_t[]", [0, 1, 2, 3]), comms))
name = ffi.new("char[128]")
ok(lib.HcclGetCommName(comms[0], name))
group, wrong = ffi.string(name).decode(), []
def work(number):
    try:
        support.start()
        ok(lib.aclrtSetDevice(number))
        stream = ffi.new("aclrtStream *")
        ok(lib.aclrtCreateStream(stream))
        found = call("MatmulAllReduce", stream=stream[0], x1=tensor(np.eye(3), "F16"), x2=tensor(np.full((3, 3), 1.0 + number), "F16"),
                     bias=None, group=group, reduceOp="sum", commTurn=0, streamMode=1, output=empty((3, 3), "F16"))
        assert (found == 10).all(), found
        ok(lib.aclrtDestroyStream(stream[0]))
    except BaseException as error:
        wrong.append((number, error))
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
[one.start() for one in threads]
[one.join() for one in threads]
sys.exit(repr(wrong) if wrong else 0)
"""


def test_devices_of_one_process_share_a_name():
    done = subprocess.run([sys.executable, "-c", DEVICES], env={**os.environ, "UNDERSTUDY_DEVICES": "4"},
                          capture_output=True, text=True, timeout=200)  # fmt: skip
    assert done.returncode == 0, done.stderr


PROCESS = """
import sys
import numpy as np
from understudy.ascend import ffi, lib
from tests.ascend.calling import empty, tensor
from tests.ascend.test_aclnn_ranks import run
from tests.ascend.test_hccl_operations import Rank
from tests.conformance.ascend import aclnn_support as support
ranks, number = map(int, sys.argv[1:])
support.start()
root = ffi.new("HcclRootInfo *")
if number == 0:
    assert lib.HcclGetRootInfo(root) == 0
    print(bytes(ffi.buffer(root)).hex(), flush=True)
else:
    ffi.buffer(root)[:] = bytes.fromhex(sys.stdin.readline())
rank = Rank(ranks, number, root)
x1 = tensor(np.full((2, 256), number + 1.0), "F16")
found = run(rank, "AllGatherMatmul", x1=x1, x2=tensor(np.ones((256, 300)), "F16"), bias=None, gatherIndex=0,
            output=empty((2 * ranks, 300), "F16"), gatherOut=None)
assert (found == 256 * (np.arange(2 * ranks) // 2 + 1.0)[:, None]).all(), found
found = run(rank, "MatmulAllReduce", x1=x1, x2=tensor(np.full((256, 300), 0.25), "F16"), bias=None, reduceOp="sum",
            output=empty((2, 300), "F16"))
assert (found == 64 * ranks * (ranks + 1) / 2).all(), found
rank.end()
"""


def test_every_rank_may_be_a_process():
    ranks, started = 3, []
    try:
        for number in range(ranks):
            started.append(subprocess.Popen([sys.executable, "-c", PROCESS, str(ranks), str(number)], text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))  # fmt: skip
        root = started[0].stdout.readline()
        for other in started[1:]:
            other.stdin.write(root)
            other.stdin.flush()
        for one in started:
            _, errors = one.communicate(timeout=100)
            assert one.returncode == 0, errors
    finally:
        for one in started:
            one.kill()
            one.communicate()


def test_work_of_all_modes_of_streams_and_the_checks_of_memory():
    """In processes of their own: both are read once."""
    source = ("from tests.ascend import test_aclnn_ranks as t\nt.test_matmul_all_reduce(3, 'BF16')\n"
              "t.test_all_gather_matmul(2, 'F16')\nt.test_matmul_reduce_scatter(2, 'F16')\nt.test_sums_are_normalized(2, 'F16')\n"
              "t.test_experts_multiply_what_other_ranks_send(2, 'F16')\nt.test_experts_send_their_products_back(2, 'F16')\n"
              "from tests.ascend import test_aclnn_experts as e\ne.test_tokens_are_quantized(4, True)\n"
              "e.test_the_sum_of_experts_is_normalized(2)\n")  # fmt: skip
    checks = {"UNDERSTUDY_CHECK": "memory,init,sync,race,leak"}
    for setting in ({"UNDERSTUDY_STREAM": "inline"}, {"UNDERSTUDY_STREAM": "deferred"}, checks):
        done = subprocess.run([sys.executable, "-c", source], env={**os.environ, **setting}, capture_output=True, text=True,
                              timeout=200)  # fmt: skip
        assert done.returncode == 0 and done.stderr == "", f"{setting}: {done.stderr}"
