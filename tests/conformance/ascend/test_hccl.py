"""What HCCL refuses: communicators and operations, most of them of one rank (public pages of the functions).

Settings are a union that is passed by itself, which cffi cannot do: these calls go through ctypes.
"""

import contextlib
import ctypes
import functools
import json
import os
import pathlib
import tempfile
import types

import pytest
from understudy import paths
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import (
    ALONE,
    Out,
    case,
    dead_stream,
    device,
    download,
    in_thread,
    memory,
    named,
    no_context,
    stream,
    upload,
)
from tests.conformance.ascend.communicators import configured
from tests.conformance.harness import Result, check_rule
from tests.conformance.verdicts import require_status as ok


class Value(ctypes.Union):
    _fields_ = [("value", ctypes.c_int32)]


@functools.cache
def library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(paths.STACKS["ascend"].library_path / "libhccl.so"))
    found.HcclSetConfig.argtypes = [ctypes.c_int, ctypes.c_int32]  # in a register, like the union of one integer
    found.HcclGetConfig.argtypes = [ctypes.c_int, ctypes.POINTER(Value)]
    return found


def set_config(config: int = 0, value: int = 0) -> int:
    return library().HcclSetConfig(config, value)


def get_config(config: int = 0, null: bool = False) -> Result:
    out = Value(0x5A5A5A5A)
    status = library().HcclGetConfig(config, None if null else ctypes.byref(out))
    return Result(status, out.value == 0x5A5A5A5A)


SETTINGS = [
    case("HcclSetConfig/config/unsupported", lambda: set_config(1), lambda: set_config(0)),
    case("HcclSetConfig/configValue/range", lambda: set_config(value=2), lambda: set_config(value=1)),
    case("HcclGetConfig/config/unsupported", lambda: get_config(1), lambda: get_config(0).status),
    case("HcclGetConfig/configValue/null", lambda: get_config(null=True), lambda: get_config().status),
]

# ---- operations of one rank ----

BYTES = 64
PATTERN = bytes(range(BYTES))
FLOAT32, BFLOAT16, INT128 = 4, 11, 12
SUM, PRODUCT, MINIMUM = 0, 1, 3
HUGE = 1 << 62

# Arguments in the vendor's order.
OPERATIONS = {
    "HcclAllReduce": "sendBuf recvBuf count dataType op comm stream",
    "HcclBroadcast": "buf count dataType root comm stream",
    "HcclReduceScatter": "sendBuf recvBuf recvCount dataType op comm stream",
    "HcclReduceScatterV": "sendBuf sendCounts sendDispls recvBuf recvCount dataType op comm stream",
    "HcclScatter": "sendBuf recvBuf recvCount dataType root comm stream",
    "HcclAllGather": "sendBuf recvBuf sendCount dataType comm stream",
    "HcclAllGatherV": "sendBuf sendCount recvBuf recvCounts recvDispls dataType comm stream",
    "HcclReduce": "sendBuf recvBuf count dataType op root comm stream",
    "HcclAlltoAll": "sendBuf sendCount sendType recvBuf recvCount recvType comm stream",
    "HcclAlltoAllV": "sendBuf sendCounts sdispls sendType recvBuf recvCounts rdispls recvType comm stream",
    "HcclAlltoAllVC": "sendBuf sendCountMatrix sendType recvBuf recvType comm stream",
    "HcclBarrier": "comm stream",
    "HcclSend": "sendBuf count dataType destRank comm stream",
    "HcclRecv": "recvBuf count dataType srcRank comm stream",
    "HcclBatchSendRecv": "sendRecvInfo itemNum comm stream",
}
COUNTS = ("sendCounts", "recvCounts", "sendCountMatrix")
PLACES = ("sendDispls", "recvDispls", "sdispls", "rdispls")
PARTNERS = {"HcclSend": "HcclRecv", "HcclRecv": "HcclSend"}


def call(function: str, arguments: dict) -> int:
    return named(function)(*(arguments[name] for name in OPERATIONS[function].split()))


def numbers(value: int):
    return ffi.new("uint64_t[]", [value])


def communicators(ranks: int = 1) -> list:
    """A communicator of each rank, all in this process."""
    made = ffi.new("HcclComm[]", ranks)
    ok(lib.HcclCommInitAll(ranks, ffi.new("int32_t[]", list(range(ranks))), made))
    return list(made)


@contextlib.contextmanager
def communicator():
    (made,) = communicators()
    try:
        yield made
    finally:
        ok(lib.HcclCommDestroy(made))


def dead_communicator(_=None):
    with communicator() as made:
        pass
    return made


@contextlib.contextmanager
def legal_arguments():
    """Of every operation, for a communicator of one rank."""
    with device(), communicator() as comm, stream() as on, memory(BYTES) as source, memory(BYTES) as target:
        for buffer in (source, target):
            upload(buffer, PATTERN)
        found = {"sendBuf": source, "recvBuf": target, "buf": target, "comm": comm, "stream": on, "op": SUM}
        found |= dict.fromkeys(("count", "sendCount", "recvCount"), 4)
        found |= dict.fromkeys(("dataType", "sendType", "recvType"), FLOAT32)
        found |= dict.fromkeys(("root", "destRank", "srcRank"), 0)
        found |= {name: numbers(4) for name in COUNTS} | {name: numbers(0) for name in PLACES}
        found |= {"sendRecvInfo": messages(found), "itemNum": 2}
        yield found


def messages(arguments: dict, **changes):
    """A message of this rank to itself, which a batch may have."""
    items = [{"sendRecvType": kind, "buf": arguments[buffer], "count": 4, "dataType": FLOAT32, "remoteRank": 0, **changes}
             for kind, buffer in enumerate(("sendBuf", "recvBuf"))]  # fmt: skip
    return ffi.new("HcclSendRecvItem[]", items)


def run_grouped(function: str, legal: dict, arguments: dict) -> int:
    """A single message to itself, with the other half in the same group."""
    ok(lib.HcclGroupStart())
    status = call(function, arguments)
    if status == 0:
        ok(call(PARTNERS[function], legal))
    ended = lib.HcclGroupEnd()
    return status or ended


def run(function: str, **changes) -> Result:
    """A call with some arguments changed, by values or by functions of the legal ones."""
    alone = changes.pop("alone", False)
    with legal_arguments() as legal:
        changed = dict(legal)
        for name, value in changes.items():
            changed[name] = value(legal) if isinstance(value, types.FunctionType) else value
        status = run_grouped(function, legal, changed) if function in PARTNERS and not alone else call(function, changed)
        ok(lib.aclrtSynchronizeStream(legal["stream"]))
        return Result(status, download(legal["recvBuf"], BYTES) == PATTERN)


def pair(rule: str, env=None, legal=None, **changes):
    function = rule.split("/")[0]
    return case(rule, lambda: run(function, **changes), lambda: run(function, **(legal or {})).status, env=env or {})


def having(name: str) -> list[str]:
    return [function for function, names in OPERATIONS.items() if name in names.split()]


def batch(**changes):
    return lambda legal: messages(legal, **changes)


def stream_of_another_device(_):
    made = ffi.new("aclrtStream *")
    ok(lib.aclrtSetDevice(1))
    ok(lib.aclrtCreateStream(made))
    ok(lib.aclrtSetDevice(0))
    return made[0]


def second_byte_of(name: str):
    return lambda legal: ffi.cast("char *", legal[name]) + 1


HANDLES = [
    *(pair(f"{function}/comm/null", comm=ffi.NULL) for function in OPERATIONS),
    *(pair(f"{function}/comm/dead", comm=dead_communicator) for function in OPERATIONS),
    *(pair(f"{function}/stream/null", stream=ffi.NULL) for function in OPERATIONS),
    *(pair(f"{function}/stream/dead", stream=lambda _: dead_stream()) for function in OPERATIONS),
    *(pair(f"{function}/stream/device", env=ALONE, stream=stream_of_another_device) for function in OPERATIONS),
]
ARRAYS = [(function, name) for name in (*COUNTS, *PLACES) for function in having(name)]
VALUES = [
    *(pair(f"{function}/{name}/null", **{name: ffi.NULL}) for name in ("sendBuf", "recvBuf", "buf")
      for function in having(name)),
    *(pair(f"{function}/{name}/null", **{name: ffi.NULL}) for function, name in ARRAYS),
    *(pair(f"{function}/{name}/range", **{name: numbers(HUGE)}) for function, name in ARRAYS),
    *(pair(f"{function}/count/range", count=HUGE) for function in having("count")),
    *(pair(f"{function}/recvCount/range", recvCount=HUGE) for function in ("HcclReduceScatter", "HcclScatter")),
    *(pair(f"{function}/sendCount/range", sendCount=HUGE) for function in ("HcclAllGather", "HcclAllGatherV")),
    pair("HcclAlltoAll/sendCount/range", sendCount=HUGE, recvCount=HUGE),
    *(pair(f"{function}/{name}/type", **{name: INT128}) for name in ("dataType", "sendType", "recvType")
      for function in having(name)),
    *(pair(f"{function}/{name}/range", **{name: 1}) for name in ("root", "destRank", "srcRank") for function in having(name)),
    *(pair(f"{function}/op/range", op=4, legal={"op": MINIMUM}) for function in having("op")),
    *(pair(f"{function}/op/type", op=PRODUCT, dataType=BFLOAT16, legal={"op": PRODUCT}) for function in having("op")
      if function != "HcclReduceScatterV"),
    pair("HcclReduceScatterV/op/type", op=PRODUCT, legal={"op": MINIMUM}),
    *(pair(f"{function}/{name}/alignment", **{name: second_byte_of(name)}) for name in ("sendBuf", "recvBuf")
      for function in having("op")),
    *(pair(f"{function}/recvBuf/same", recvBuf=lambda legal: legal["sendBuf"]) for function in
      ("HcclReduceScatterV", "HcclAllGatherV", "HcclAlltoAll", "HcclAlltoAllV", "HcclAlltoAllVC")),
    pair("HcclAllGatherV/sendCount/count", sendCount=3),
    pair("HcclReduceScatterV/recvCount/count", recvCount=3),
    pair("HcclAlltoAll/recvCount/count", recvCount=3),
    pair("HcclSend/destRank/own", alone=True),
    pair("HcclRecv/srcRank/own", alone=True),
    *(case(f"{function}/comm/unsupported", lambda function=function: run(function), lambda: run("HcclAllGather").status,
           env={"UNDERSTUDY_SOC": "Ascend910"}) for function in ("HcclReduceScatterV", "HcclAllGatherV", "HcclAlltoAllVC")),
]  # fmt: skip
BATCHES = [
    pair("HcclBatchSendRecv/sendRecvInfo/null", sendRecvInfo=ffi.NULL),
    pair("HcclBatchSendRecv/itemNum/range", itemNum=0),
    pair("HcclBatchSendRecv/sendRecvInfo/direction", sendRecvInfo=batch(sendRecvType=2)),
    pair("HcclBatchSendRecv/buf/null", sendRecvInfo=batch(buf=ffi.NULL), legal={"sendRecvInfo": batch(buf=ffi.NULL, count=0)}),
    pair("HcclBatchSendRecv/dataType/type", sendRecvInfo=batch(dataType=INT128)),
    pair("HcclBatchSendRecv/count/range", sendRecvInfo=batch(count=HUGE)),
    pair("HcclBatchSendRecv/remoteRank/range", sendRecvInfo=batch(remoteRank=1)),
]


# ---- communicators that have failed, and groups ----


@contextlib.contextmanager
def failed_communicator():
    """The other rank has gone before both ran an operation."""
    with stream() as on:
        mine, theirs = communicators(2)
        ok(lib.HcclCommDestroy(theirs))
        ok(lib.HcclBarrier(mine, on))
        assert lib.aclrtSynchronizeStream(on) != 0
        yield mine
        ok(lib.HcclCommDestroy(mine))


def run_failed(function: str) -> Result:
    with legal_arguments() as legal, failed_communicator() as comm:
        return Result(call(function, legal | {"comm": comm}), download(legal["recvBuf"], BYTES) == PATTERN)


def end_group(ended: str = "") -> int:
    """Two messages of a group whose communicator or stream may end before it does."""
    ends = {"comm": lib.HcclCommDestroy, "stream": lib.aclrtDestroyStream}
    with legal_arguments() as legal:
        made = ffi.new("aclrtStream *")
        ok(lib.aclrtCreateStream(made))
        legal |= {"comm": communicators()[0], "stream": made[0]}
        ok(lib.HcclGroupStart())
        for function in PARTNERS:
            ok(call(function, legal))
        if ended:
            ok(ends.pop(ended)(legal[ended]))
        status = lib.HcclGroupEnd()
        if "stream" in ends:
            ok(lib.aclrtSynchronizeStream(legal["stream"]))
        for name, end in ends.items():
            ok(end(legal[name]))
    return status


def batch_in_group() -> int:
    with legal_arguments() as legal:
        ok(lib.HcclGroupStart())
        status = call("HcclBatchSendRecv", legal)
        ok(lib.HcclGroupEnd())
    return status


def end_failed_group() -> int:
    with legal_arguments() as legal, stream() as on:
        mine, theirs = communicators(2)
        ok(lib.HcclGroupStart())
        ok(call("HcclSend", legal | {"comm": mine, "destRank": 1}))
        ok(lib.HcclCommDestroy(theirs))
        ok(lib.HcclBarrier(mine, on))
        assert lib.aclrtSynchronizeStream(on) != 0
        status = lib.HcclGroupEnd()
        ok(lib.HcclCommDestroy(mine))
    return status


GROUPS = [
    *(case(f"{function}/comm/failed", lambda function=function: run_failed(function),
           lambda function=function: run(function).status, env=ALONE) for function in OPERATIONS),
    case("HcclGroupEnd/comm/failed", end_failed_group, end_group, env=ALONE),
    case("HcclGroupEnd/group/none", lambda: lib.HcclGroupEnd(), lambda: lib.HcclGroupStart() or lib.HcclGroupEnd()),
    case("HcclGroupEnd/comm/dead", lambda: end_group("comm"), end_group),
    case("HcclGroupEnd/stream/dead", lambda: end_group("stream"), end_group),
    case("HcclBatchSendRecv/comm/group", batch_in_group, lambda: run("HcclBatchSendRecv").status),
    case("HcclGroupStart/group/unsupported", lambda: lib.HcclGroupStart(), lambda: run("HcclBarrier").status,
         env={"UNDERSTUDY_SOC": "Ascend910"}),
]  # fmt: skip


# ---- communicators ----


def root_info():
    made = ffi.new("HcclRootInfo *")
    ok(lib.HcclGetRootInfo(made))
    return made


def named_join(config=None, by: str = "RootInfo"):
    """HcclCommInit…, with the arguments behind `rank`."""
    function = named(f"HcclCommInit{by}" + ("" if config is None else "Config"))
    return lambda *given: function(*given[:-1], *(() if config is None else (config,)), given[-1])


def ended(status: int, out: Out) -> Result:
    """A communicator that was made ends."""
    if status == 0:
        ok(lib.HcclCommDestroy(out.value))
    return out.result(status)


def join(ranks: int = 1, rank: int = 0, info=None, comm=None, config=None) -> Result:
    with device():
        info, out = root_info() if info is None else info, Out("HcclComm")
        return ended(named_join(config)(ranks, info, rank, out.cell if comm is None else comm), out)


def table_text(ranks=(0,), status: str = "completed", cut: int = 0) -> str:
    """Without its last bytes."""
    devices = [{"device_id": str(rank), "rank_id": str(rank)} for rank in ranks]
    text = json.dumps({"status": status, "version": "1.0", "server_count": "1",
                       "server_list": [{"server_id": f"of process {os.getpid()}", "device": devices}]})  # fmt: skip
    return text[: len(text) - cut]


@contextlib.contextmanager
def table(*given, length: int = 0, **more):
    """The path of a rank table, of so many bytes."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "ranks.json"
        file.write_text(table_text(*given, **more))
        path = os.fsencode(file)
        yield os.path.dirname(path) + b"/" * max(length - len(path), 0) + b"/ranks.json"


def join_table(path=None, rank: int = 0, comm=None, config=None, length: int = 0, **given) -> Result:
    with device(), table(length=length, **given) as legal:
        out = Out("HcclComm")
        name = legal if path is None else path
        return ended(named_join(config, "ClusterInfo")(name, rank, out.cell if comm is None else comm), out)


def table_without_device(config=None) -> Result:
    with table() as path:
        return without_device(lambda info, out: named_join(config, "ClusterInfo")(path, 0, out.cell))


def join_table_twice(config=None) -> Result:
    with device(), table((0, 1)) as path:
        kept, out = ffi.new("HcclComm *"), Out("HcclComm")
        ok(lib.HcclGroupStart())
        ok(lib.HcclCommInitClusterInfo(path, 0, kept))
        status = named_join(config, "ClusterInfo")(path, 0, out.cell)
        ok(lib.HcclCommDestroy(kept[0]))
        lib.HcclGroupEnd()
    return out.result(status)


def join_table_after_one_has_left(config=None) -> Result:
    """Rank 2 of 4: a thread has joined for rank 0 and for rank 1, which has gone."""
    with device(), table((0, 1, 2, 3)) as path:
        kept, out = ffi.new("HcclComm[]", 2), Out("HcclComm")

        def join_and_leave():
            ok(lib.aclrtSetDevice(0))
            ok(lib.HcclGroupStart())
            for rank in range(2):
                ok(lib.HcclCommInitClusterInfo(path, rank, kept + rank))
            ok(lib.HcclCommDestroy(kept[1]))

        in_thread(join_and_leave)
        status = named_join(config, "ClusterInfo")(path, 2, out.cell)
        ok(lib.HcclCommDestroy(kept[0]))
    return out.result(status)


def unmade_config():
    return ffi.new("HcclCommConfig *")


def without_device(function) -> Result:
    with device():
        info = root_info()
    with no_context():
        out = Out("HcclComm")
        return out.result(function(info, out))


def join_without_device(config=None) -> Result:
    return without_device(lambda info, out: named_join(config)(1, info, 0, out.cell))


def join_twice(config=None) -> Result:
    """Two ranks 0: in a group, since the first one waits for rank 1."""
    with device():
        info, kept, out = root_info(), ffi.new("HcclComm *"), Out("HcclComm")
        ok(lib.HcclGroupStart())
        ok(lib.HcclCommInitRootInfo(2, info, 0, kept))
        status = named_join(config)(2, info, 0, out.cell)
        ok(lib.HcclCommDestroy(kept[0]))
        ok(lib.HcclGroupEnd())
    return out.result(status)


def join_after_one_has_left(config=None, at_end=False) -> Result:
    with device():
        info, kept, out = root_info(), ffi.new("HcclComm *"), Out("HcclComm")
        ok(lib.HcclGroupStart())
        ok(lib.HcclCommInitRootInfo(3, info, 0, kept))
        ok(lib.HcclCommDestroy(kept[0]))
        if at_end:
            ok(named_join(config)(3, info, 1, out.cell))
            return Result(lib.HcclGroupEnd())
        ok(lib.HcclGroupEnd())
        return out.result(named_join(config)(3, info, 1, out.cell))


def join_all(count: int = 1, devices=(0,), null: str = "") -> Result:
    out = Out("HcclComm")
    given = ffi.NULL if null == "devices" else ffi.new("int32_t[]", list(devices))
    with device():
        status = lib.HcclCommInitAll(count, given, ffi.NULL if null == "comms" else out.cell)
        if status == 0:
            ok(lib.HcclCommDestroy(out.value))
    return out.result(status)


def divide(ranks: int = 1, ids=(0,), rank: int = 0, config=None, **null) -> Result:
    """HcclCreateSubCommConfig of a communicator of one rank; `null` arguments are NULL, or what they are given as."""
    out = Out("HcclComm")
    with device(), communicator() as whole:
        given = {"comm": ffi.new("HcclComm *", whole), "rankIds": ffi.new("uint32_t[]", list(ids)),
                 "config": configured() if config is None else config, "subComm": out.cell, **null}  # fmt: skip
        status = lib.HcclCreateSubCommConfig(given["comm"], ranks, given["rankIds"], 7, rank, given["config"], given["subComm"])
        if status == 0:
            ok(lib.HcclCommDestroy(out.value))
    return out.result(status)


def divide_after_one_has_left() -> Result:
    """The rank that would tell the other one of their part."""
    out = Out("HcclComm")
    first, second = communicators(2)
    ok(lib.HcclCommDestroy(first))
    with device(1):
        ids = ffi.new("uint32_t[]", [0, 1])
        status = lib.HcclCreateSubCommConfig(ffi.new("HcclComm *", second), 2, ids, 3, 1, configured(), out.cell)
        ok(lib.HcclCommDestroy(second))
    return out.result(status)


def divide_a_part() -> Result:
    out, part = Out("HcclComm"), ffi.new("HcclComm *")
    ids = ffi.new("uint32_t[]", [0])
    with device(), communicator() as whole:
        ok(lib.HcclCreateSubCommConfig(ffi.new("HcclComm *", whole), 1, ids, 1, 0, configured(), part))
        status = lib.HcclCreateSubCommConfig(part, 1, ids, 2, 0, configured(), out.cell)
        ok(lib.HcclCommDestroy(part[0]))
    return out.result(status)


QUESTIONS = {"HcclGetRankSize": ("rankSize", "uint32_t"), "HcclGetRankId": ("rank", "uint32_t"),
             "HcclGetCommName": ("commName", "char[128]"), "HcclGetCommAsyncError": ("asyncError", "HcclResult")}  # fmt: skip


def ask(function: str, comm=None, null: bool = False) -> Result:
    kind = QUESTIONS[function][1]
    out = ffi.new("char[128]", b"Z" * 127) if kind.endswith("]") else ffi.new(f"{kind} *", 0x5A)
    before = bytes(ffi.buffer(out))
    with device(), communicator() as made:
        status = named(function)(made if comm is None else comm(), ffi.NULL if null else out)
    return Result(status, bytes(ffi.buffer(out)) == before)


def destroy_while_busy(busy: bool) -> int:
    """Rank 0's part is queued; rank 1's follows."""
    with device(1), stream() as second:
        with device(0), stream() as first:
            mine, theirs = communicators(2)
            ok(lib.HcclBarrier(mine, first))
            if not busy:
                ok(lib.HcclBarrier(theirs, second))
                ok(lib.aclrtSynchronizeStream(first))
            status = lib.HcclCommDestroy(mine)
            if busy:
                ok(lib.HcclBarrier(theirs, second))
                ok(lib.aclrtSynchronizeStream(first))
                ok(lib.HcclCommDestroy(mine))
        ok(lib.aclrtSetDevice(1))
        ok(lib.aclrtSynchronizeStream(second))
        ok(lib.HcclCommDestroy(theirs))
    return status


def refusal(rule: str, run_it, legal=None, env=None, **changes):
    """A function of this file with some arguments changed; legal without, or with others."""
    return case(rule, lambda: run_it(**changes), lambda: run_it(**(legal or {})).status, env=env)


LEGAL_CONFIGS = {"hcclBufferSize": 1, "hcclDeterministic": 2, "hcclCommName": b"a" * 127}
WRONG_CONFIGS = {"hcclBufferSize": 0, "hcclDeterministic": 3, "hcclCommName": b"a" * 128}
NO_RANK = ffi.new("HcclRootInfo *")  # nobody made it


def configs(name: str, function) -> list:
    """What a function that takes a configuration refuses of it."""
    legal = {"config": configured()}
    return [
        refusal(f"{name}/config/null", function, legal, config=ffi.NULL),
        refusal(f"{name}/config/uninitialized", function, legal, config=unmade_config()),
        *(refusal(f"{name}/config/{field}", function, {"config": configured(**{field: LEGAL_CONFIGS[field]})},
                  config=configured(**{field: value})) for field, value in WRONG_CONFIGS.items()),
    ]  # fmt: skip


def joins(end: str, **config) -> list:
    """Of two functions that make a rank join; `end` of their names, `config` what they are given."""
    root, cluster = f"HcclCommInitRootInfo{end}", f"HcclCommInitClusterInfo{end}"

    def by_root(rule, function=join, **changes):
        return case(f"{root}/{rule}", lambda: function(**changes, **config), lambda: join(**config).status)

    def by_table(rule, function=join_table, legal=None, **changes):
        return case(f"{cluster}/{rule}", lambda: function(**changes, **config),
                    lambda: join_table(**(legal or {}), **config).status)  # fmt: skip

    return [
        by_root("comm/null", comm=ffi.NULL),
        by_root("rootInfo/null", info=ffi.NULL),
        by_root("rootInfo/unknown", info=NO_RANK),
        by_root("nRanks/range", ranks=0),
        by_root("rank/range", rank=1),
        by_root("rank/refused", join_twice),
        by_root("ranks/lost", join_after_one_has_left),
        by_root("context/none", join_without_device),
        by_table("comm/null", comm=ffi.NULL),
        by_table("clusterInfo/null", path=ffi.NULL),
        by_table("clusterInfo/missing", path=b"/no/such/table.json"),
        by_table("clusterInfo/size", length=4096, legal={"length": 4095}),
        by_table("clusterInfo/syntax", cut=1),
        by_table("clusterInfo/status", status="initializing"),
        by_table("clusterInfo/ranks", ranks=(0, 2)),
        by_table("rank/range", rank=1),
        by_table("rank/refused", join_table_twice),
        by_table("ranks/lost", join_table_after_one_has_left),
        by_table("context/none", table_without_device),
    ]


DIVIDED = "HcclCreateSubCommConfig"
COMMUNICATORS = [
    *joins(""),
    *joins("Config", config=configured()),
    *configs("HcclCommInitRootInfoConfig", join),
    *configs("HcclCommInitClusterInfoConfig", join_table),
    *configs(DIVIDED, divide),
    case("HcclGroupEnd/ranks/lost", lambda: join_after_one_has_left(at_end=True),
         lambda: lib.HcclGroupStart() or lib.HcclGroupEnd()),
    case("HcclGetRootInfo/rootInfo/null", lambda: lib.HcclGetRootInfo(ffi.NULL), lambda: join().status),
    case("HcclGetRootInfo/context/none", lambda: without_device(lambda info, out: lib.HcclGetRootInfo(info)).status,
         lambda: join().status),
    refusal("HcclCommInitAll/devices/null", join_all, null="devices"),
    refusal("HcclCommInitAll/comms/null", join_all, null="comms"),
    refusal("HcclCommInitAll/ndev/range", join_all, count=0),
    refusal("HcclCommInitAll/devices/range", join_all, devices=(9,)),
    refusal("HcclCommInitAll/devices/twice", join_all, count=2, devices=(0, 0)),
    refusal(f"{DIVIDED}/comm/null", divide, comm=ffi.NULL),
    refusal(f"{DIVIDED}/comm/dead", divide, comm=ffi.new("HcclComm *", ffi.cast("void *", 16))),
    case(f"{DIVIDED}/comm/part", lambda: divide_a_part(), lambda: divide().status),
    refusal(f"{DIVIDED}/subComm/null", divide, subComm=ffi.NULL),
    refusal(f"{DIVIDED}/rankIds/null", divide, rankIds=ffi.NULL),
    refusal(f"{DIVIDED}/rankNum/range", divide, ranks=2, ids=(0, 1)),
    refusal(f"{DIVIDED}/rankIds/order", divide, ids=(1,)),
    refusal(f"{DIVIDED}/subCommRankId/own", divide, rank=1),
    case(f"{DIVIDED}/ranks/lost", divide_after_one_has_left, lambda: divide().status, env=ALONE),
    *(refusal(f"{name}/comm/null", ask, {"function": name}, function=name, comm=lambda: ffi.NULL) for name in QUESTIONS),
    *(refusal(f"{name}/comm/dead", ask, {"function": name}, function=name, comm=dead_communicator) for name in QUESTIONS),
    *(refusal(f"{name}/{answer}/null", ask, {"function": name}, function=name, null=True)
      for name, (answer, _) in QUESTIONS.items()),
    case("HcclCommDestroy/comm/null", lambda: lib.HcclCommDestroy(ffi.NULL), lambda: join().status),
    case("HcclCommDestroy/comm/dead", lambda: lib.HcclCommDestroy(dead_communicator()), lambda: join().status),
    case("HcclCommDestroy/comm/busy", lambda: destroy_while_busy(True), lambda: destroy_while_busy(False), env=ALONE),
]  # fmt: skip

RULES = [*SETTINGS, *HANDLES, *VALUES, *BATCHES, *GROUPS, *COMMUNICATORS]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)


def test_what_is_set_is_read_back():
    for value in (1, 0):
        assert set_config(value=value) == 0
        out = Value(7)
        assert library().HcclGetConfig(0, ctypes.byref(out)) == 0 and out.value == value
