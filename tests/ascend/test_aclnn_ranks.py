"""Operators that multiply and meet the other ranks in one call, against NumPy: a thread for each rank, and processes.

Where a result is to be exact, numbers are small integers whose sums every type holds."""

import os
import subprocess
import sys

import numpy as np
import pytest
from understudy.ascend import ffi, lib

from tests.ascend.calling import call, drawn, empty, refusal, rounded, tensor, whole
from tests.ascend.test_hccl_operations import SUM, on_all, status_and_text
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

    import threading

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
              "t.test_all_gather_matmul(2, 'F16')\nt.test_matmul_reduce_scatter(2, 'F16')\n")  # fmt: skip
    checks = {"UNDERSTUDY_CHECK": "memory,init,sync,race,leak"}
    for setting in ({"UNDERSTUDY_STREAM": "inline"}, {"UNDERSTUDY_STREAM": "deferred"}, checks):
        done = subprocess.run([sys.executable, "-c", source], env={**os.environ, **setting}, capture_output=True, text=True,
                              timeout=200)  # fmt: skip
        assert done.returncode == 0 and done.stderr == "", f"{setting}: {done.stderr}"
