"""What the ranks of a communicator compute: against NumPy, with a thread for each rank and with a process for each.

Every rank has its own numbers, so that a part that comes from the wrong rank, or goes to the wrong place, shows."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import threading

import ml_dtypes
import numpy
import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.communicators import configured
from tests.conformance.verdicts import require_status as ok

TYPES = {
    "int8": (0, numpy.int8), "int16": (1, numpy.int16), "int32": (2, numpy.int32), "float16": (3, numpy.float16),
    "float32": (4, numpy.float32), "int64": (5, numpy.int64), "uint64": (6, numpy.uint64), "uint8": (7, numpy.uint8),
    "uint16": (8, numpy.uint16), "uint32": (9, numpy.uint32), "float64": (10, numpy.float64),
    "bfloat16": (11, ml_dtypes.bfloat16),
}  # fmt: skip
REDUCED = ("int8", "int16", "int32", "int64", "float16", "float32", "bfloat16")
SUM, PRODUCT, MAXIMUM, MINIMUM = range(4)
# One element, primes, nothing, and more than a channel or a chunk holds.
COUNTS = (0, 1, 7, 1009, 70001)


class Rank:
    """What a rank's thread has: its number, its communicator, a stream, and arrays in device memory."""

    def __init__(self, ranks: int, rank: int, root, device: int = 0, name: str = ""):
        self.ranks, self.rank, self.arrays = ranks, rank, []
        ok(lib.aclrtSetDevice(device))
        comm, stream = ffi.new("HcclComm *"), ffi.new("aclrtStream *")
        ok(lib.HcclCommInitRootInfoConfig(ranks, root, rank, configured(hcclCommName=name.encode()), comm))
        ok(lib.aclrtCreateStream(stream))
        self.comm, self.stream = comm[0], stream[0]

    def put(self, array: numpy.ndarray):
        made = ffi.new("void **")
        ok(lib.aclrtMalloc(made, max(array.nbytes, 1), lib.ACL_MEM_MALLOC_HUGE_FIRST))
        self.arrays.append(made[0])
        if array.nbytes:
            data = ffi.from_buffer(numpy.ascontiguousarray(array).view(numpy.uint8))
            ok(lib.aclrtMemcpy(made[0], array.nbytes, data, array.nbytes, lib.ACL_MEMCPY_HOST_TO_DEVICE))
        return made[0]

    def get(self, address, like: numpy.ndarray) -> numpy.ndarray:
        """After all that was queued."""
        ok(lib.aclrtSynchronizeStream(self.stream))
        out = numpy.empty_like(like)
        if out.nbytes:
            ok(lib.aclrtMemcpy(ffi.from_buffer(out.view(numpy.uint8)), out.nbytes, address, out.nbytes,
                               lib.ACL_MEMCPY_DEVICE_TO_HOST))  # fmt: skip
        return out

    def run(self, function: str, *arguments) -> None:
        ok(getattr(lib, function)(*arguments, self.comm, self.stream))

    def end(self) -> None:
        ok(lib.aclrtSynchronizeStream(self.stream))
        for address in self.arrays:
            ok(lib.aclrtFree(address))
        ok(lib.aclrtDestroyStream(self.stream))
        ok(lib.HcclCommDestroy(self.comm))


def root_info():
    made = ffi.new("HcclRootInfo *")
    ok(lib.aclrtSetDevice(0))
    ok(lib.HcclGetRootInfo(made))
    return made


def all_of_this_thread(ranks: int):
    """The communicators of all ranks."""
    root, comms = root_info(), ffi.new("HcclComm[]", ranks)
    ok(lib.HcclGroupStart())
    for rank in range(ranks):
        ok(lib.HcclCommInitRootInfo(ranks, root, rank, comms + rank))
    ok(lib.HcclGroupEnd())
    return comms


def on_all(ranks: int, body, name: str = "") -> list:
    """Runs `body` on a thread for each rank; what it gives, by rank. With a name, each rank's communicator has its own."""
    root, results, errors = root_info(), [None] * ranks, []

    def work(number: int) -> None:
        rank = None
        try:
            rank = Rank(ranks, number, root, name=name and f"{name} {number}")
            results[number] = body(rank)
            rank.end()
        except BaseException as error:  # noqa: BLE001 - shown by the main thread
            errors.append((number, error))
            if rank is not None:
                lib.HcclCommDestroy(rank.comm)  # the others need not wait for it

    threads = [threading.Thread(target=work, args=(number,)) for number in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, error in errors:
        raise AssertionError(f"rank {number}: {error!r}") from error
    return results


def values(dtype: str, count: int, rank: int) -> numpy.ndarray:
    """Numbers whose sums and products over a few ranks are exact in every type, and different on every rank."""
    generator = numpy.random.default_rng(100 + rank)
    numbers = generator.integers(0 if dtype.startswith("uint") else -3, 4, count)
    return numbers.astype(TYPES[dtype][1])


def reduced(arrays: list[numpy.ndarray], op: int) -> numpy.ndarray:
    """In float64, or in the integers of the type, which wrap."""
    exact = [array.astype(numpy.float64) if array.dtype.kind not in "iu" else array for array in arrays]
    functions = {SUM: numpy.add, PRODUCT: numpy.multiply, MAXIMUM: numpy.maximum, MINIMUM: numpy.minimum}
    with numpy.errstate(over="ignore"):
        return functools.reduce(functions[op], exact).astype(arrays[0].dtype)


def same(a: numpy.ndarray, b: numpy.ndarray) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


# ---- reductions ----


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("ranks", (1, 2, 3))
def test_all_reduce(ranks, dtype):
    number, kind = TYPES[dtype]
    operations = [op for op in range(4) if op != PRODUCT or dtype not in ("int16", "bfloat16")]

    def body(rank):
        for count in COUNTS:
            inputs = [values(dtype, count, other) for other in range(ranks)]
            for op in operations:
                x, y = rank.put(inputs[rank.rank]), rank.put(numpy.zeros(count, kind))
                rank.run("HcclAllReduce", x, y, count, number, op)
                assert same(rank.get(y, inputs[0]), reduced(inputs, op)), (count, op)
                assert same(rank.get(x, inputs[0]), inputs[rank.rank]), "the input has changed"
                rank.run("HcclAllReduce", x, x, count, number, op)
                assert same(rank.get(x, inputs[0]), reduced(inputs, op)), (count, op, "in place")

    on_all(ranks, body)


@pytest.mark.parametrize("dtype", REDUCED)
def test_reduce_scatter(dtype):
    number, kind = TYPES[dtype]
    ranks = 3

    def body(rank):
        for count in COUNTS:
            inputs = [values(dtype, count * ranks, other) for other in range(ranks)]
            x, y = rank.put(inputs[rank.rank]), rank.put(numpy.zeros(count, kind))
            rank.run("HcclReduceScatter", x, y, count, number, SUM)
            expected = reduced(inputs, SUM)[count * rank.rank : count * (rank.rank + 1)]
            assert same(rank.get(y, expected), expected), count

    on_all(ranks, body)


def test_parts_of_different_sizes_are_reduced_and_gaps_left_alone():
    ranks, counts, places = 3, [5, 0, 40013], [40017, 3, 1]

    def body(rank):
        inputs = [values("float32", 40025, other) for other in range(ranks)]
        own = counts[rank.rank]
        x, y = rank.put(inputs[rank.rank]), rank.put(numpy.zeros(own, numpy.float32))
        rank.run("HcclReduceScatterV", x, ffi.new("uint64_t[]", counts), ffi.new("uint64_t[]", places), y, own, 4, MAXIMUM)
        begin = places[rank.rank]
        expected = reduced(inputs, MAXIMUM)[begin : begin + own]
        assert same(rank.get(y, expected), expected)

    on_all(ranks, body)


@pytest.mark.parametrize("root", (0, 2))
def test_reduce_gives_the_root_alone_the_result(root):
    def body(rank):
        for count in COUNTS:
            inputs = [values("float32", count, other) for other in range(rank.ranks)]
            before = numpy.full(count, 77, numpy.float32)
            x, y = rank.put(inputs[rank.rank]), rank.put(before)
            rank.run("HcclReduce", x, y, count, 4, SUM, root)
            expected = reduced(inputs, SUM) if rank.rank == root else before
            assert same(rank.get(y, before), expected), count

    on_all(3, body)


def test_sums_are_the_same_bits_on_every_rank_and_nearly_exact():
    def body(rank):
        inputs = [numpy.random.default_rng(other).standard_normal(70001).astype(numpy.float32) for other in range(rank.ranks)]
        x, y = rank.put(inputs[rank.rank]), rank.put(numpy.zeros_like(inputs[0]))
        rank.run("HcclAllReduce", x, y, x_count := inputs[0].size, 4, SUM)
        exact = sum(array.astype(numpy.float64) for array in inputs)
        found = rank.get(y, inputs[0])
        # One rounding of the whole sum.
        assert (numpy.abs(found - exact) <= numpy.spacing(numpy.abs(exact).astype(numpy.float32)) / 2 * 1.0001).all()
        return found[:x_count].tobytes()

    assert len(set(on_all(5, body))) == 1


def test_nan_wins_in_maxima_and_infinities_add_up():
    inputs = [numpy.array([1, numpy.nan, numpy.inf, -numpy.inf], numpy.float32),
              numpy.array([numpy.nan, 2, -numpy.inf, -numpy.inf], numpy.float32)]  # fmt: skip

    def body(rank):
        x, y = rank.put(inputs[rank.rank]), rank.put(numpy.zeros(4, numpy.float32))
        rank.run("HcclAllReduce", x, y, 4, 4, MAXIMUM)
        largest = rank.get(y, inputs[0])
        rank.run("HcclAllReduce", x, y, 4, 4, SUM)
        return largest, rank.get(y, inputs[0])

    for largest, total in on_all(2, body):
        assert numpy.isnan(largest[:2]).all() and largest[2] == numpy.inf and largest[3] == -numpy.inf
        assert numpy.isnan(total[:3]).all() and total[3] == -numpy.inf


# ---- moves ----


@pytest.mark.parametrize("dtype", TYPES)
def test_moves(dtype):
    number, kind = TYPES[dtype]
    ranks = 3

    def body(rank):
        for count in COUNTS:
            own = [values(dtype, count, other) for other in range(ranks)]
            many = [values(dtype, count * ranks, 10 + other) for other in range(ranks)]
            x, all_of_mine = rank.put(own[rank.rank]), rank.put(many[rank.rank])
            y, all_of_theirs = rank.put(numpy.zeros(count, kind)), rank.put(numpy.zeros(count * ranks, kind))
            rank.run("HcclAllGather", x, all_of_theirs, count, number)
            assert same(rank.get(all_of_theirs, many[0]), numpy.concatenate(own)), count
            rank.run("HcclScatter", all_of_mine if rank.rank == 1 else ffi.NULL, y, count, number, 1)
            assert same(rank.get(y, own[0]), many[1][count * rank.rank : count * (rank.rank + 1)]), count
            rank.run("HcclAlltoAll", all_of_mine, count, number, all_of_theirs, count, number)
            expected = [array[count * rank.rank : count * (rank.rank + 1)] for array in many]
            assert same(rank.get(all_of_theirs, many[0]), numpy.concatenate(expected)), count
            rank.run("HcclBroadcast", x, count, number, 2)
            assert same(rank.get(x, own[0]), own[2]), count

    on_all(ranks, body)


def test_parts_of_different_sizes_move():
    """Rank i sends i * 1000 + j elements to rank j; gaps are left alone."""
    ranks, gap = 3, 5
    matrix = [[i * 20011 + j for j in range(ranks)] for i in range(ranks)]

    def places(counts):
        return [sum(counts[:k]) + gap * k for k in range(ranks)]

    def spread(parts, total):
        found = numpy.full(total, -1, numpy.int32)
        for part, begin in zip(parts, places([len(part) for part in parts])):
            found[begin : begin + len(part)] = part
        return found

    def sent(i):
        return [numpy.arange(matrix[i][j], dtype=numpy.int32) + 100000 * (10 * i + j) for j in range(ranks)]

    def body(rank):
        column = [matrix[i][rank.rank] for i in range(ranks)]
        mine, theirs = sent(rank.rank), [sent(i)[rank.rank] for i in range(ranks)]
        room, total = sum(matrix[rank.rank]) + gap * ranks, sum(column) + gap * ranks
        x, y = rank.put(spread(mine, room)), rank.put(numpy.full(total, -1, numpy.int32))
        array = functools.partial(ffi.new, "uint64_t[]")
        rank.run("HcclAlltoAllV", x, array(matrix[rank.rank]), array(places(matrix[rank.rank])), 2, y, array(column),
                 array(places(column)), 2)  # fmt: skip
        expected = spread(theirs, total)
        assert same(rank.get(y, expected), expected)
        packed, out = rank.put(numpy.concatenate(mine)), rank.put(numpy.zeros(sum(column), numpy.int32))
        rank.run("HcclAlltoAllVC", packed, array([n for row in matrix for n in row]), 2, out, 2)
        assert same(rank.get(out, numpy.concatenate(theirs)), numpy.concatenate(theirs))
        counts = [7, 0, 30011]
        own = [numpy.arange(n, dtype=numpy.int32) + 1000000 * k for k, n in enumerate(counts)]
        z = rank.put(numpy.full(sum(counts) + gap * ranks, -1, numpy.int32))
        rank.run("HcclAllGatherV", rank.put(own[rank.rank]), counts[rank.rank], z, array(counts), array(places(counts)), 2)
        expected = spread(own, sum(counts) + gap * ranks)
        assert same(rank.get(z, expected), expected)

    on_all(ranks, body)


# ---- two ranks ----


def test_send_and_receive():
    def body(rank):
        for count in COUNTS:
            mine, theirs = values("float32", count, rank.rank), values("float32", count, 1 - rank.rank)
            x, y = rank.put(mine), rank.put(numpy.zeros_like(mine))
            for sender in (0, 1):
                if rank.rank == sender:
                    rank.run("HcclSend", x, count, 4, 1 - rank.rank)
                else:
                    rank.run("HcclRecv", y, count, 4, 1 - rank.rank)
            assert same(rank.get(y, mine), theirs), count

    on_all(2, body)


@pytest.mark.parametrize("way", ("batch", "group"))
def test_a_ring_of_messages_does_not_wait_for_itself(way):
    """Every rank sends to the next one, more than a channel holds, before it receives."""
    count = 200003

    def body(rank):
        following, before = (rank.rank + 1) % rank.ranks, (rank.rank - 1) % rank.ranks
        x, y = rank.put(values("float32", count, rank.rank)), rank.put(numpy.zeros(count, numpy.float32))
        if way == "batch":
            messages = [[lib.HCCL_SEND, x, count, 4, following], [lib.HCCL_RECV, y, count, 4, before]]
            items = ffi.new("HcclSendRecvItem[]", messages)
            rank.run("HcclBatchSendRecv", items, 2)
        else:
            ok(lib.HcclGroupStart())
            rank.run("HcclSend", x, count, 4, following)
            rank.run("HcclRecv", y, count, 4, before)
            ok(lib.HcclGroupEnd())
        expected = values("float32", count, before)
        assert same(rank.get(y, expected), expected)

    on_all(3, body)


def test_messages_to_one_rank_come_in_the_order_of_the_calls():
    def body(rank):
        arrays = [rank.put(values("int32", 9, k)) for k in range(5)]
        results = [rank.put(numpy.zeros(9, numpy.int32)) for _ in range(5)]
        if rank.rank == 0:
            for array in arrays:
                rank.run("HcclSend", array, 9, 2, 1)
            return
        for result in results:
            rank.run("HcclRecv", result, 9, 2, 0)
        for k, result in enumerate(results):
            assert same(rank.get(result, values("int32", 9, k)), values("int32", 9, k))

    on_all(2, body)


def test_messages_and_reductions_of_one_communicator_do_not_wait_for_each_other():
    """Rank 0 reduces on one stream and sends on another one; rank 1 receives first and reduces then."""

    def body(rank):
        other = ffi.new("aclrtStream *")
        ok(lib.aclrtCreateStream(other))
        x, y = rank.put(values("float32", 50021, rank.rank)), rank.put(numpy.zeros(50021, numpy.float32))
        total = rank.put(numpy.zeros(50021, numpy.float32))
        if rank.rank == 0:
            rank.run("HcclAllReduce", x, total, 50021, 4, SUM)
            ok(lib.HcclSend(x, 50021, 4, 1, rank.comm, other[0]))
        else:
            ok(lib.HcclRecv(y, 50021, 4, 0, rank.comm, other[0]))
            ok(lib.aclrtSynchronizeStream(other[0]))
            rank.run("HcclAllReduce", x, total, 50021, 4, SUM)
            assert same(rank.get(y, values("float32", 50021, 0)), values("float32", 50021, 0))
        expected = reduced([values("float32", 50021, k) for k in range(2)], SUM)
        assert same(rank.get(total, expected), expected)
        ok(lib.aclrtSynchronizeStream(other[0]))
        ok(lib.aclrtDestroyStream(other[0]))

    on_all(2, body)


def test_a_message_waits_for_one_on_another_stream_of_its_rank():
    """Both ranks send more than a channel holds, and wait for what they receive."""

    def body(rank):
        other = ffi.new("aclrtStream *")
        ok(lib.aclrtCreateStream(other))
        mine, theirs = values("float32", 70001, rank.rank), values("float32", 70001, 1 - rank.rank)
        x, y = rank.put(mine), rank.put(numpy.zeros_like(mine))
        ok(lib.HcclSend(x, 70001, 4, 1 - rank.rank, rank.comm, other[0]))
        rank.run("HcclRecv", y, 70001, 4, 1 - rank.rank)
        assert same(rank.get(y, theirs), theirs)
        ok(lib.aclrtSynchronizeStream(other[0]))
        ok(lib.aclrtDestroyStream(other[0]))

    on_all(2, body)


def test_a_graph_waits_for_other_ranks_when_its_branches_have_nothing_else_to_do():
    """One thread runs a graph for each rank: a sum on one branch, on another one the event that the second rank waits for."""
    comms, models = all_of_this_thread(2), ffi.new("aclmdlRI[]", 2)
    streams, arrays, sums = ffi.new("aclrtStream[]", 4), ffi.new("void *[]", 2), ffi.new("void *[]", 2)
    fork, join, outside = ffi.new("aclrtEvent *"), ffi.new("aclrtEvent *"), ffi.new("aclrtEvent *")
    ok(lib.aclrtCreateEventWithFlag(outside, lib.ACL_EVENT_EXTERNAL))
    for event in (fork, join):
        ok(lib.aclrtCreateEventWithFlag(event, lib.ACL_EVENT_SYNC))
    for number in range(4):
        ok(lib.aclrtCreateStream(streams + number))
    for rank in range(2):
        for address in (arrays + rank, sums + rank):
            ok(lib.aclrtMalloc(address, 4, lib.ACL_MEM_MALLOC_HUGE_FIRST))
        ok(lib.aclmdlRICaptureBegin(streams[rank], lib.ACL_MODEL_RI_CAPTURE_MODE_RELAXED))
        if rank == 0:
            ok(lib.aclrtRecordEvent(fork[0], streams[0]))
            ok(lib.aclrtStreamWaitEvent(streams[2], fork[0]))
        ok(lib.HcclAllReduce(arrays[rank], sums[rank], 1, 2, SUM, comms[rank], streams[rank]))
        if rank == 0:
            ok(lib.aclrtRecordEvent(outside[0], streams[2]))
            ok(lib.aclrtRecordEvent(join[0], streams[2]))
            ok(lib.aclrtStreamWaitEvent(streams[0], join[0]))
        ok(lib.aclmdlRICaptureEnd(streams[rank], models + rank))
    for turn in range(3):
        for rank in range(2):
            own = numpy.array([rank + turn], numpy.int32)
            ok(lib.aclrtMemcpy(arrays[rank], 4, ffi.from_buffer(own), 4, lib.ACL_MEMCPY_HOST_TO_DEVICE))
            if rank == 1:
                ok(lib.aclrtStreamWaitEvent(streams[1], outside[0]))
            ok(lib.aclmdlRIExecuteAsync(models[rank], streams[rank]))
        for rank in range(2):
            total = numpy.zeros(1, numpy.int32)
            ok(lib.aclrtSynchronizeStream(streams[rank]))
            ok(lib.aclrtMemcpy(ffi.from_buffer(total), 4, sums[rank], 4, lib.ACL_MEMCPY_DEVICE_TO_HOST))
            assert total[0] == 1 + 2 * turn
    for rank in range(2):
        ok(lib.aclmdlRIDestroy(models[rank]))
        ok(lib.HcclCommDestroy(comms[rank]))
    for event in (fork, join, outside):
        ok(lib.aclrtDestroyEvent(event[0]))
    for stream in streams:
        ok(lib.aclrtDestroyStream(stream))
    for address in (*arrays, *sums):
        ok(lib.aclrtFree(address))


# ---- communicators ----


def config():
    made = ffi.new("HcclCommConfig *")
    ffi.memmove(made.reserved, ffi.new("uint64_t *", ffi.sizeof("HcclCommConfig")), 8)
    made.hcclBufferSize = made.hcclDeterministic = 0xFFFFFFFF
    made.hcclExecTimeOut = -1
    return made


def test_a_part_of_the_ranks_is_a_communicator_too():
    """Ranks 0 and 2 of 3; rank 1 has no part in it."""

    def body(rank):
        part, name = ffi.new("HcclComm *"), ffi.new("char[128]")
        if rank.rank == 1:
            ok(lib.HcclCreateSubCommConfig(ffi.new("HcclComm *", rank.comm), 0, ffi.NULL, 0xFFFFFFFF, 0, config(), part))
            assert part[0] == ffi.NULL
            return None
        ids = ffi.new("uint32_t[]", [0, 2])
        ok(lib.HcclCreateSubCommConfig(ffi.new("HcclComm *", rank.comm), 2, ids, 5, rank.rank // 2, config(), part))
        size, number = ffi.new("uint32_t *"), ffi.new("uint32_t *")
        ok(lib.HcclGetRankSize(part[0], size))
        ok(lib.HcclGetRankId(part[0], number))
        ok(lib.HcclGetCommName(part[0], name))
        assert (size[0], number[0]) == (2, rank.rank // 2) and ffi.string(name).endswith(b"_sub_5")
        x = rank.put(numpy.full(3, rank.rank + 1, numpy.float32))
        ok(lib.HcclAllReduce(x, x, 3, 4, SUM, part[0], rank.stream))
        assert (rank.get(x, numpy.zeros(3, numpy.float32)) == 4).all()
        ok(lib.HcclCommDestroy(part[0]))
        return ffi.string(name)

    names = on_all(3, body)
    assert names[0] == names[2]


def test_one_thread_joins_for_several_ranks_in_a_group():
    for comm in all_of_this_thread(3):
        ok(lib.HcclCommDestroy(comm))


def test_roots_that_nobody_joins_do_not_use_up_the_file_descriptors():
    """In a process of its own, since they stay. The newest ones can be joined."""
    source = """
import os
from tests.ascend import test_hccl_operations as t
before = t.root_info() and len(os.listdir("/proc/self/fd"))
roots = [t.root_info() for _ in range(600)]
assert len(os.listdir("/proc/self/fd")) <= before + 256
for root in roots[-200:]:
    made = t.ffi.new("HcclComm *")
    t.ok(t.lib.HcclCommInitRootInfo(1, root, 0, made))
    t.ok(t.lib.HcclCommDestroy(made[0]))
assert t.lib.HcclCommInitRootInfo(1, roots[0], 0, made) == t.lib.HCCL_E_PARA
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr


def test_one_thread_works_for_as_many_ranks_as_there_may_be():
    """Nothing waits before all have been queued."""
    ranks = 256
    comms, stream, array = all_of_this_thread(ranks), ffi.new("aclrtStream[]", ranks), ffi.new("void *[]", ranks)
    for rank in range(ranks):
        own = numpy.array([rank], numpy.int32)
        ok(lib.aclrtCreateStream(stream + rank))
        ok(lib.aclrtMalloc(array + rank, 4, lib.ACL_MEM_MALLOC_HUGE_FIRST))
        ok(lib.aclrtMemcpy(array[rank], 4, ffi.from_buffer(own), 4, lib.ACL_MEMCPY_HOST_TO_DEVICE))
        ok(lib.HcclAllReduce(array[rank], array[rank], 1, 2, SUM, comms[rank], stream[rank]))
    for rank in range(ranks):
        total = numpy.zeros(1, numpy.int32)
        ok(lib.aclrtSynchronizeStream(stream[rank]))
        ok(lib.aclrtMemcpy(ffi.from_buffer(total), 4, array[rank], 4, lib.ACL_MEMCPY_DEVICE_TO_HOST))
        assert total[0] == ranks * (ranks - 1) // 2
        ok(lib.aclrtFree(array[rank]))
        ok(lib.aclrtDestroyStream(stream[rank]))
    for comm in comms:
        ok(lib.HcclCommDestroy(comm))


def rank_table(folder, ranks) -> bytes:
    """The path of one that lists the ranks in this order, with what cards need besides."""
    devices = [{"device_id": str(n), "device_ip": f"192.168.1.{n}", "rank_id": str(rank)} for n, rank in enumerate(ranks)]
    table = folder / "ranks.json"
    table.write_text(json.dumps({"server_count": "1", "server_list": [{"server_id": str(folder), "device": devices}],
                                 "version": "1.0", "status": "completed"}, indent=2))  # fmt: skip
    return os.fsencode(table)


def test_ranks_find_each_other_by_a_rank_table(tmp_path):
    """In the order of the file or not."""
    table = rank_table(tmp_path, (2, 0, 1))
    sums = []

    def work(rank):
        comm, stream = ffi.new("HcclComm *"), ffi.new("aclrtStream *")
        ok(lib.aclrtSetDevice(0))
        ok(lib.HcclCommInitClusterInfo(table, rank, comm))
        ok(lib.aclrtCreateStream(stream))
        x, data = ffi.new("void **"), numpy.array([10**rank], numpy.int32)
        ok(lib.aclrtMalloc(x, 4, lib.ACL_MEM_MALLOC_HUGE_FIRST))
        ok(lib.aclrtMemcpy(x[0], 4, ffi.from_buffer(data), 4, lib.ACL_MEMCPY_HOST_TO_DEVICE))
        ok(lib.HcclAllReduce(x[0], x[0], 1, 2, SUM, comm[0], stream[0]))
        ok(lib.aclrtSynchronizeStream(stream[0]))
        ok(lib.aclrtMemcpy(ffi.from_buffer(data), 4, x[0], 4, lib.ACL_MEMCPY_DEVICE_TO_HOST))
        sums.append(int(data[0]))
        ok(lib.aclrtFree(x[0]))
        ok(lib.aclrtDestroyStream(stream[0]))
        ok(lib.HcclCommDestroy(comm[0]))

    threads = [threading.Thread(target=work, args=(rank,)) for rank in (1, 2, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [111] * 3


def status_by_table(folder, text: bytes) -> int:
    """Of a communicator of one rank."""
    made, table = ffi.new("HcclComm *"), folder / "ranks.json"
    table.write_bytes(text)
    ok(lib.aclrtSetDevice(0))
    status = lib.HcclCommInitClusterInfo(os.fsencode(table), 0, made)
    if status == 0:
        ok(lib.HcclCommDestroy(made[0]))
    return status


@pytest.mark.parametrize("server", ("rank_id", "status", 'a\\"}]', "", "{["))
def test_what_a_rank_table_says_of_a_server_is_no_key_of_it(tmp_path, server):
    servers = [{"server_id": server, "folder": str(tmp_path), "device": [{"rank_id": "0"}]}]
    given = {"server_list": servers, "status": "completed"}
    assert status_by_table(tmp_path, json.dumps(given).encode()) == 0


@pytest.mark.parametrize("before, behind", ((b"", b""), (b"\xef\xbb\xbf", b""), (b"\r\n ", b"\t\n")))
@pytest.mark.parametrize("text", (b'{"rank_id": 0, "of": %d}', b'{"a": [{"rank_id" : "0"}], "b": [[], {}, %d]}'))
def test_white_space_and_a_byte_order_mark_may_be_around_a_rank_table(tmp_path, text, before, behind):
    assert status_by_table(tmp_path, before + text % os.getpid() + behind) == 0


@pytest.mark.parametrize("text", (
    b"", b"rank_id 0", b'"rank_id": 0', b'[{"rank_id": 0}]', b'{"rank_id": 0', b'{"a": [{"rank_id": 0}}', b'{"rank_id": 0}}',
    b'{"rank_id": 0} {}', b'{"rank_id": 0, "a": "b}', b'{"rank_id": 0, "a": "b\\"}', b'{"rank_id": 0, "a": "b\\', b"{" * 99,
    b'{"rank_id" 0}', b'{"a": "rank_id"}', b'{"rank_id":}', b'{a"b "rank_id": 0}',
))  # fmt: skip
def test_what_is_no_rank_table_is_refused(tmp_path, text):
    assert status_by_table(tmp_path, text) == lib.HCCL_E_PARA


def test_one_thread_joins_for_the_ranks_of_a_table_in_any_order(tmp_path):
    table, comms = rank_table(tmp_path, (0, 1, 2)), ffi.new("HcclComm[]", 3)
    ok(lib.aclrtSetDevice(0))
    ok(lib.HcclGroupStart())
    for rank in (2, 0, 1):
        ok(lib.HcclCommInitClusterInfo(table, rank, comms + rank))
    ok(lib.HcclGroupEnd())
    for comm in comms:
        ok(lib.HcclCommDestroy(comm))


def make_and_end(table: bytes, rank: int) -> None:
    made = ffi.new("HcclComm *")
    ok(lib.HcclCommInitClusterInfo(table, rank, made))
    ok(lib.HcclCommDestroy(made[0]))


def test_no_rank_is_a_communicator_ahead_of_the_one_that_it_has_found(tmp_path):
    """It would find the last communicator by the same table: rank 0 waits for the others at the end of its group only."""
    table, went_on = rank_table(tmp_path, (0, 1)), threading.Event()

    def work():
        ok(lib.aclrtSetDevice(0))
        make_and_end(table, 1)
        went_on.set()
        make_and_end(table, 1)

    made, other = ffi.new("HcclComm *"), threading.Thread(target=work, daemon=True)
    ok(lib.aclrtSetDevice(0))
    ok(lib.HcclGroupStart())
    ok(lib.HcclCommInitClusterInfo(table, 0, made))
    other.start()
    early = went_on.wait(0.2)
    ok(lib.HcclGroupEnd())
    assert not early
    ok(lib.HcclCommDestroy(made[0]))
    make_and_end(table, 0)
    other.join()


def test_the_name_of_the_configuration_is_the_communicators():
    made, settings, name = ffi.new("HcclComm *"), config(), ffi.new("char[128]")
    settings.hcclCommName = b"mine"
    ok(lib.HcclCommInitRootInfoConfig(1, root_info(), 0, settings, made))
    ok(lib.HcclGetCommName(made[0], name))
    assert ffi.string(name) == b"mine"
    ok(lib.HcclCommDestroy(made[0]))


def test_every_status_has_a_text():
    assert lib.HcclGetCommConfigCapability() == lib.HCCL_COMM_CONFIG_RESERVED
    texts = {ffi.string(lib.HcclGetErrorString(status)) for status in [*range(25), 1041]}
    assert len(texts) == 26 and ffi.string(lib.HcclGetErrorString(99)) == b"unknown error"


# ---- what goes wrong ----


def status_and_text(rank) -> tuple[int, str]:
    status = lib.aclrtSynchronizeStream(rank.stream)
    return status, ffi.string(lib.aclGetRecentErrMsg()).decode() if status else ""


def failed(rank) -> tuple[int, str]:
    """What the stream says, where the communicator has failed; both are destroyed."""
    found = status_and_text(rank)
    failure = ffi.new("HcclResult *")
    ok(lib.HcclGetCommAsyncError(rank.comm, failure))
    assert failure[0] == lib.HCCL_E_REMOTE
    ok(lib.HcclCommDestroy(rank.comm))
    ok(lib.aclrtDestroyStream(rank.stream))
    rank.end = lambda: None
    return found


@pytest.mark.parametrize("other, expected", (
    (lambda rank, x: rank.run("HcclBroadcast", x, 8, 4, 0), "HcclBroadcast"),
    (lambda rank, x: rank.run("HcclAllReduce", x, x, 4, 4, SUM), "16 bytes"),
    (lambda rank, x: rank.run("HcclAllReduce", x, x, 8, 2, SUM), "type 2"),
    (lambda rank, x: rank.run("HcclAllReduce", x, x, 8, 4, MAXIMUM), "op 2"),
), ids=("function", "count", "type", "op"))  # fmt: skip
def test_ranks_that_call_differently_are_told(other, expected):
    """Neither waits for ever, and one of them at least is told what the other one calls."""

    def body(rank):
        x = rank.put(numpy.zeros(8, numpy.float32))
        if rank.rank == 0:
            rank.run("HcclAllReduce", x, x, 8, 4, SUM)
        else:
            other(rank, x)
        return failed(rank)

    results = on_all(2, body)
    assert all(status != 0 for status, _ in results)
    assert any(expected in text for _, text in results), results


ROOTED = {
    "HcclBroadcast": lambda rank, x, root: rank.run("HcclBroadcast", x, 8, 4, root),
    "HcclScatter": lambda rank, x, root: rank.run("HcclScatter", x, x, 4, 4, root),
    "HcclReduce": lambda rank, x, root: rank.run("HcclReduce", x, x, 8, 4, SUM, root),
}


@pytest.mark.parametrize("own", (True, False), ids=("itself", "the other"))
@pytest.mark.parametrize("function", ROOTED)
def test_ranks_that_mean_different_roots_are_told(function, own):
    """Each one itself, or the other one. No message stays behind for the next operation to take for its own."""

    def body(rank):
        x = rank.put(numpy.zeros(8, numpy.float32))
        ROOTED[function](rank, x, rank.rank if own else 1 - rank.rank)
        return failed(rank)

    results = on_all(2, body)
    assert all(status != 0 for status, _ in results)
    assert any("root" in text or "bytes" in text for _, text in results), results


@pytest.mark.parametrize("function", ROOTED)
def test_a_root_waits_for_the_other_ranks(function):
    """Operations wait on the stream until all ranks have run them (hccl.h)."""
    waited = threading.Event()

    def body(rank):
        x = rank.put(numpy.zeros(8, numpy.float32))
        if rank.rank == 1:
            waited.wait(60)
        ROOTED[function](rank, x, 0)
        if rank.rank == 0:
            status = lib.aclrtSynchronizeStreamWithTimeout(rank.stream, 50)
            waited.set()
            assert status == lib.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT

    on_all(2, body)


def fail_with_more_behind():
    """Rank 1 sends more zeros than a letterhead has bytes, which rank 0 does not expect; its next operation waits behind."""
    queued = threading.Event()

    def body(rank):
        x = rank.put(numpy.zeros(64, numpy.float32))
        if rank.rank == 0:
            rank.run("HcclAllReduce", x, x, 64, 4, SUM)
            rank.run("HcclReduceScatter", x, x, 32, 4, SUM)
            queued.set()
        else:
            queued.wait(60)
            rank.run("HcclBroadcast", x, 64, 4, 1)
        failed(rank)

    on_all(2, body)


def test_what_comes_after_a_failure_takes_nothing_of_it_for_its_own():
    """A stream keeps its first fault: the others are in the log."""
    source = "from tests.ascend import test_hccl_operations as t\nt.fail_with_more_behind()\n"
    done = subprocess.run([sys.executable, "-c", source], env={**os.environ, "UNDERSTUDY_LOG": "warn"}, capture_output=True,
                          text=True, timeout=200)  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if "HcclReduceScatter: " in line]
    assert done.returncode == 0 and len(lines) == 1, done.stderr
    assert "HcclReduceScatter: an operation before it has failed: HcclAllReduce(type 4, op 0): " in lines[0]


def test_a_communicator_is_not_destroyed_under_an_operation():
    """Which may be two tasks, and is no two operations."""
    comms, stream, array = all_of_this_thread(2), ffi.new("aclrtStream *"), ffi.new("void **")
    ok(lib.aclrtCreateStream(stream))
    ok(lib.aclrtMalloc(array, 64, lib.ACL_MEM_MALLOC_HUGE_FIRST))
    ok(lib.HcclAllReduce(array[0], array[0], 16, 4, SUM, comms[0], stream[0]))
    assert lib.HcclCommDestroy(comms[0]) == lib.HCCL_E_AGAIN
    text = ffi.string(lib.aclGetRecentErrMsg()).decode()
    assert ": operations of " in text and "are queued or run" in text, text
    ok(lib.HcclCommDestroy(comms[1]))
    assert lib.aclrtSynchronizeStream(stream[0]) != 0
    ok(lib.HcclCommDestroy(comms[0]))
    ok(lib.aclrtDestroyStream(stream[0]))
    ok(lib.aclrtFree(array[0]))


def test_a_rank_that_fails_in_what_it_does_alone_tells_the_others():
    """Its messages to itself differ in size, so it never comes to the one that the other rank waits for."""
    waits = threading.Event()

    def body(rank):
        x, y = (rank.put(numpy.zeros(8, numpy.float32)) for _ in range(2))
        if rank.rank == 0:
            waits.wait()
            messages = [[lib.HCCL_SEND, x, 2, 4, 0], [lib.HCCL_RECV, y, 3, 4, 0], [lib.HCCL_SEND, x, 8, 4, 1]]
            rank.run("HcclBatchSendRecv", ffi.new("HcclSendRecvItem[]", messages), 3)
        else:
            rank.run("HcclRecv", y, 8, 4, 0)
            waits.set()
        return failed(rank)

    results = on_all(2, body)
    assert all(status != 0 and "this rank sends itself 8 bytes" in text for status, text in results), results


WORKER = """
import sys
import numpy
from understudy.ascend import ffi, lib
from tests.ascend.test_hccl_operations import Rank, SUM, reduced, values, same, status_and_text

ranks, number, dies = map(int, sys.argv[1:4])
ok = lambda status: status == 0 or sys.exit(f"status {status}")
ok(lib.aclInit(ffi.NULL))
ok(lib.aclrtSetDevice(number % 2))
root = ffi.new("HcclRootInfo *")
if number == 0:
    ok(lib.HcclGetRootInfo(root))
    print(bytes(ffi.buffer(root)).hex(), flush=True)
else:
    ffi.buffer(root)[:] = bytes.fromhex(sys.stdin.readline())
rank = Rank(ranks, number, root, number % 2)
inputs = [values("float32", 300007, other) for other in range(ranks)]
x, y = rank.put(inputs[number]), rank.put(numpy.zeros(300007, numpy.float32))
for _ in range(5):
    rank.run("HcclAllReduce", x, y, 300007, 4, SUM)
assert same(rank.get(y, inputs[0]), reduced(inputs, SUM))
print("summed", flush=True)
if dies:
    if number == 1:
        sys.stdin.readline()  # until it is killed
    rank.run("HcclAllReduce", x, y, 300007, 4, SUM)
    status, text = status_and_text(rank)
    assert status != 0
    print(text, flush=True)
else:
    rank.end()
    ok(lib.aclFinalize())
"""


# Rank 0 queues a message and waits for nothing before the other one has got it.
SENDER = WORKER.partition("inputs = ")[0] + """
x = rank.put(values("float32", 9, number))
rank.run("HcclRecv" if number else "HcclSend", x, 9, 4, 1 - number)
if number == 0:
    sys.stdin.readline()
else:
    assert same(rank.get(x, values("float32", 9, 0)), values("float32", 9, 0))
    print("got it", flush=True)
rank.end()
"""


# Nothing keeps a rank from being a communicator ahead of the others.
USED_AGAIN = """
import os, sys
from tests.ascend.test_hccl_operations import ffi, lib, make_and_end, ok

if sys.argv[2] == "0":
    print(flush=True)
ok(lib.aclInit(ffi.NULL))
ok(lib.aclrtSetDevice(0))
for _ in range(30):
    make_and_end(os.environb[b"TABLE"], int(sys.argv[2]))
"""


# Rank 0 has joined, and does not come to the end of its group.
NO_END = """
import os, sys
from tests.ascend.test_hccl_operations import ffi, lib, ok

number, made = int(sys.argv[2]), ffi.new("HcclComm *")
if number == 1:
    sys.stdin.readline()
ok(lib.aclInit(ffi.NULL))
ok(lib.aclrtSetDevice(0))
ok(lib.HcclGroupStart())
ok(lib.HcclCommInitClusterInfo(os.environb[b"TABLE"], number, made))
print("joined", flush=True)
if number == 0:
    sys.stdin.readline()
assert lib.HcclGroupEnd() == lib.HCCL_E_TCP_CONNECT
print(ffi.string(lib.aclGetRecentErrMsg()).decode())
"""


@contextlib.contextmanager
def processes(ranks: int, dies: bool = False, source: str = WORKER, **environment: str):
    """One for each rank; rank 0 gives the others what they need to find it."""
    started = []
    try:
        for number in range(ranks):
            started.append(subprocess.Popen(
                [sys.executable, "-c", source, str(ranks), str(number), str(int(dies))], text=True, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, "UNDERSTUDY_DEVICES": "2", **environment}))  # fmt: skip
        root = started[0].stdout.readline()
        for other in started[1:]:
            other.stdin.write(root)
            other.stdin.flush()
        yield started
    finally:
        for one in started:
            one.kill()
            one.communicate()


def test_every_rank_may_be_a_process():
    with processes(3, dies=False) as started:
        for one in started:
            out, errors = one.communicate(timeout=100)
            assert one.returncode == 0 and out.endswith("summed\n"), errors


def test_processes_make_communicators_by_one_table_again_and_again(tmp_path):
    with processes(2, source=USED_AGAIN, TABLE=os.fsdecode(rank_table(tmp_path, (0, 1)))) as started:
        for one in started:
            _, errors = one.communicate(timeout=100)
            assert one.returncode == 0, errors


def test_a_rank_is_told_when_the_one_that_it_has_found_is_killed(tmp_path):
    with processes(2, source=NO_END, TABLE=os.fsdecode(rank_table(tmp_path, (0, 1)))) as (first, other):
        assert other.stdout.readline() == "joined\n"
        first.kill()
        out, errors = other.communicate(timeout=60)
        assert other.returncode == 0 and "has ended" in out, (out, errors)


def test_the_others_are_told_when_a_process_is_killed():
    with processes(3, dies=True) as started:
        for one in started:
            assert one.stdout.readline() == "summed\n"
        started[1].send_signal(signal.SIGKILL)
        for one in (started[0], started[2]):
            out, errors = one.communicate(timeout=60)
            assert one.returncode == 0 and "has ended" in out, (out, errors)


@pytest.mark.parametrize("mode", ("inline", "deferred", "async"))
def test_work_of_all_modes_of_streams(mode):
    """In a process of their own: the mode is read once."""
    source = ("from tests.ascend import test_hccl_operations as t\nt.test_all_reduce(3, 'float32')\nt.test_send_and_receive()\n"
              "t.test_a_message_waits_for_one_on_another_stream_of_its_rank()\n"
              "t.test_a_graph_waits_for_other_ranks_when_its_branches_have_nothing_else_to_do()\n"
              "t.test_one_thread_works_for_as_many_ranks_as_there_may_be()\n")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", source], env={**os.environ, "UNDERSTUDY_STREAM": mode},
                          capture_output=True, text=True, timeout=200)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_another_process_does_not_wait_until_this_one_waits_for_a_deferred_stream():
    with processes(2, source=SENDER, UNDERSTUDY_STREAM="deferred") as (sender, receiver):
        out, errors = receiver.communicate(timeout=60)
        assert out == "got it\n", errors
        _, errors = sender.communicate("\n", timeout=60)
        assert (sender.returncode, receiver.returncode) == (0, 0), errors


def test_the_checks_of_memory_know_what_ranks_read_and_write():
    """Nothing that was never written is sent, nothing is raced for, nothing is left."""
    source = ("from tests.ascend import test_hccl_operations as t\nt.test_moves('float32')\n"
              "t.test_parts_of_different_sizes_move()\nt.test_reduce_scatter('float16')\n")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", source], env={**os.environ, "UNDERSTUDY_CHECK": "memory,init,sync,race,leak"},
                          capture_output=True, text=True, timeout=200)  # fmt: skip
    assert done.returncode == 0 and done.stderr == "", done.stderr


@contextlib.contextmanager
def two_ranks_of_this_thread():
    """Their communicators, two streams for each, and 64 bytes for each."""
    comms, streams, arrays = all_of_this_thread(2), ffi.new("aclrtStream[]", 4), ffi.new("void *[]", 2)
    for number in range(4):
        ok(lib.aclrtCreateStream(streams + number))
    for rank in range(2):
        ok(lib.aclrtMalloc(arrays + rank, 64, lib.ACL_MEM_MALLOC_HUGE_FIRST))
        ok(lib.aclrtMemset(arrays[rank], 64, 0, 64))
    yield comms, streams, arrays
    ok(lib.aclrtSynchronizeDevice())
    for comm in comms:
        ok(lib.HcclCommDestroy(comm))
    for stream in streams:
        ok(lib.aclrtDestroyStream(stream))
    for address in arrays:
        ok(lib.aclrtFree(address))


def let_operations_order(first: int) -> None:
    """The rank that comes first writes its bytes before a barrier, the other one reads them afterwards; or the other way round.
    Both reduce in place on two streams, which come after one another."""
    with two_ranks_of_this_thread() as (comms, streams, arrays):
        for rank in (first, 1 - first):
            if rank == 0:
                ok(lib.aclrtMemsetAsync(arrays[0], 64, 1, 64, streams[0]))
            ok(lib.HcclBarrier(comms[rank], streams[rank]))
            if rank == 1:
                ok(lib.aclrtMemcpyAsync(arrays[1], 64, arrays[0], 64, lib.ACL_MEMCPY_DEVICE_TO_DEVICE, streams[1]))
        ok(lib.aclrtSynchronizeStream(streams[1]))
        out = numpy.zeros((2, 64), numpy.uint8)
        for rank in range(2):
            data = ffi.from_buffer(out[rank])
            ok(lib.aclrtMemcpy(data, 64, arrays[rank], 64, lib.ACL_MEMCPY_DEVICE_TO_HOST))
        assert (out == 1).all()
        for rank in range(2):
            for number in (rank, 2 + rank):
                ok(lib.HcclAllReduce(arrays[rank], arrays[rank], 16, 2, SUM, comms[rank], streams[number]))


def break_the_order(function: str) -> None:
    """Of the rank that comes last, whose operation is not ordered with the other stream of its rank."""
    with two_ranks_of_this_thread() as (comms, streams, arrays):
        for rank in range(2):
            ok(lib.HcclAllReduce(arrays[rank], arrays[rank], 16, 2, SUM, comms[rank], streams[rank]))
        if function == "race":
            ok(lib.aclrtMemsetAsync(arrays[1], 64, 1, 64, streams[3]))
        else:
            data = ffi.from_buffer(numpy.zeros(64, numpy.uint8))
            ok(lib.aclrtMemcpy(data, 64, arrays[1], 64, lib.ACL_MEMCPY_DEVICE_TO_HOST))


@pytest.mark.parametrize("call, finding", (
    ("let_operations_order(0)", ""), ("let_operations_order(1)", ""),
    ("break_the_order('race')", "race: aclrtMemsetAsync"), ("break_the_order('sync')", "sync: "),
))  # fmt: skip
def test_the_checks_know_what_operations_order(call, finding):
    source = f"from tests.ascend import test_hccl_operations as t\nt.{call}\n"
    done = subprocess.run([sys.executable, "-c", source], env={**os.environ, "UNDERSTUDY_CHECK": "memory,sync,race"},
                          capture_output=True, text=True, timeout=200)  # fmt: skip
    assert done.returncode == 0 and (finding in done.stderr if finding else done.stderr == ""), done.stderr
