"""Channels and queues (cann-runtime-3 17)."""

import contextlib

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import case, ok
from tests.conformance.ascend.test_acl_model import NULL, bytes_of
from tests.conformance.harness import Result, check_rule

DATA = ffi.new("float[4]", [1, 2, 3, 4])
DIMS = ffi.new("int64_t[2]", [1, 4])


class Scene:
    """Makes things; they end with the scene, unless somebody has ended them."""

    def __init__(self, stack):
        self.stack = stack

    def made(self, create, end, *arguments):
        handle = create(*arguments)
        assert handle != NULL
        self.stack.callback(end, handle)
        return handle

    def item(self):
        return self.made(lib.acltdtCreateDataItem, lib.acltdtDestroyDataItem, 0, DIMS, 2, 0, DATA, 16)

    def dataset(self, items: int = 0):
        made = self.made(lib.acltdtCreateDataset, lib.acltdtDestroyDataset)
        for _ in range(items):
            ok(lib.acltdtAddDataItem(made, self.item()))
        return made

    def channel(self, messages: int = 0):
        made = self.made(lib.acltdtCreateChannelWithCapacity, lib.acltdtDestroyChannel, 0, b"one", 2)
        for _ in range(messages):
            ok(lib.acltdtSendTensor(made, self.dataset(1), 0))
        return made

    def received(self):
        made = self.dataset()
        ok(lib.acltdtReceiveTensor(self.channel(1), made, 0))
        return made

    def received_item(self):
        return lib.acltdtGetDataItem(self.received(), 0)

    def attribute(self, name=None):
        made = self.made(lib.acltdtCreateQueueAttr, lib.acltdtDestroyQueueAttr)
        if name:
            text = ffi.new("char[]", name)
            self.stack.callback(lambda kept: None, text)
            ok(lib.acltdtSetQueueAttr(made, 0, 8, ffi.new("char *[1]", [text])))
        return made

    def queue(self, messages: int = 0, depth: int = 2, name=None):
        attribute = self.attribute(name)
        ok(lib.acltdtSetQueueAttr(attribute, 1, 4, ffi.new("uint32_t *", depth)))
        made = ffi.new("uint32_t *")
        ok(lib.acltdtCreateQueue(attribute, made))
        self.stack.callback(lib.acltdtDestroyQueue, made[0])
        for _ in range(messages):
            ok(lib.acltdtEnqueueData(made[0], DATA, 16, NULL, 0, 0, 0))
        return made[0]

    def route(self, ids=None):
        return self.made(lib.acltdtCreateQueueRoute, lib.acltdtDestroyQueueRoute, *(ids or (self.queue(), self.queue())))

    def routes(self, *all_ids, empty: bool = False, bound: bool = False):
        made = self.made(lib.acltdtCreateQueueRouteList, lib.acltdtDestroyQueueRouteList)
        for ids in all_ids or ([] if empty else [None]):
            ok(lib.acltdtAddQueueRoute(made, self.route(ids)))
        if bound:
            ok(lib.acltdtBindQueueRoutes(made))
        return made

    def query(self):
        return self.made(lib.acltdtCreateQueueRouteQueryInfo, lib.acltdtDestroyQueueRouteQueryInfo)


def own(create, *arguments):
    """Something that the call ends."""
    return lambda scene: create(*arguments)


def number(kind: str = "uint32_t", value: int = 0):
    return ffi.new(f"{kind} *", value)


def channel_call(cell, name, capacity):
    """What there is no status for: the refusal's own."""
    made = lib.acltdtCreateChannelWithCapacity(cell, name, capacity)
    if made != NULL:
        ok(lib.acltdtDestroyChannel(made))
    return made


def item_call(*arguments):
    made = lib.acltdtCreateDataItem(*arguments)
    if made != NULL:
        ok(lib.acltdtDestroyDataItem(made))
    return made


CREATORS = {"acltdtCreateChannelWithCapacity": (channel_call, {"deviceId": 107001}),
            "acltdtCreateDataItem": (item_call, {})}  # fmt: skip
LEGAL = {
    "acltdtCreateDataItem": lambda s: [0, DIMS, 2, 0, DATA, 16],
    "acltdtDestroyDataItem": lambda s: [lib.acltdtCreateDataItem(0, DIMS, 2, 0, DATA, 16)],
    "acltdtGetDimsFromItem": lambda s: [s.item(), ffi.new("int64_t[2]"), 2],
    "acltdtGetSliceInfoFromItem": lambda s: [s.item(), ffi.new("size_t *"), ffi.new("size_t *")],
    "acltdtDestroyDataset": lambda s: [lib.acltdtCreateDataset()],
    "acltdtAddDataItem": lambda s: [s.dataset(), s.item()],
    "acltdtCreateChannelWithCapacity": lambda s: [0, ffi.new("char[]", b"one"), 2],
    "acltdtStopChannel": lambda s: [s.channel()],
    "acltdtDestroyChannel": lambda s: [lib.acltdtCreateChannelWithCapacity(0, b"one", 2)],
    "acltdtCleanChannel": lambda s: [s.channel(1)],
    "acltdtQueryChannelSize": lambda s: [s.channel(), ffi.new("size_t *")],
    "acltdtSendTensor": lambda s: [s.channel(), s.dataset(1), 0],
    "acltdtReceiveTensor": lambda s: [s.channel(1), s.dataset(), 0],
    "acltdtDestroyQueueAttr": lambda s: [lib.acltdtCreateQueueAttr()],
    "acltdtSetQueueAttr": lambda s: [s.attribute(), 1, 4, number(value=2)],
    "acltdtGetQueueAttr": lambda s: [s.attribute(), 1, 4, number("size_t"), number()],
    "acltdtCreateQueue": lambda s: [s.attribute(), number()],
    "acltdtDestroyQueue": lambda s: [own_queue()],
    "acltdtEnqueueData": lambda s: [s.queue(), DATA, 16, NULL, 0, 0, 0],
    "acltdtDequeueData": lambda s: [s.queue(1), ffi.new("char[16]"), 16, number("size_t"), NULL, 0, 0],
    "acltdtDestroyQueueRoute": lambda s: [lib.acltdtCreateQueueRoute(1, 2)],
    "acltdtGetQueueRouteParam": lambda s: [s.route(), 0, 4, number("size_t"), number()],
    "acltdtDestroyQueueRouteList": lambda s: [lib.acltdtCreateQueueRouteList()],
    "acltdtAddQueueRoute": lambda s: [s.routes(), s.route()],
    "acltdtGetQueueRoute": lambda s: [s.routes(), 0, s.route()],
    "acltdtDestroyQueueRouteQueryInfo": lambda s: [lib.acltdtCreateQueueRouteQueryInfo()],
    "acltdtSetQueueRouteQueryInfo": lambda s: [s.query(), 0, 4, number("int32_t", 2)],
    "acltdtBindQueueRoutes": lambda s: [s.routes()],
    "acltdtUnbindQueueRoutes": lambda s: [s.routes(bound=True)],
    "acltdtQueryQueueRoutes": lambda s: [s.query(), s.routes(empty=True)],
}


def own_queue():
    attribute, made = lib.acltdtCreateQueueAttr(), number()
    ok(lib.acltdtCreateQueue(attribute, made))
    ok(lib.acltdtDestroyQueueAttr(attribute))
    return made[0]


def run(function, changes=None, parameter=None):
    with contextlib.ExitStack() as stack:
        scene = Scene(stack)
        arguments = LEGAL[function](scene)
        for position, change in (changes or {}).items():
            arguments[position] = change(scene) if callable(change) and not isinstance(change, ffi.CData) else change
        before = bytes_of(arguments)
        if function in CREATORS:
            call, statuses = CREATORS[function]
            return Result(0 if call(*arguments) != NULL else statuses.get(parameter, 100000))
        status = getattr(lib, function)(*arguments)
        result = Result(status, bytes_of(arguments) == before if before else None)
        if function == "acltdtCreateQueue" and status == 0:
            ok(lib.acltdtDestroyQueue(arguments[1][0]))
        return result


def rule(name, changes, neighbour=None):
    function, parameter, _ = name.split("/")
    return case(name, lambda: run(function, changes, parameter), lambda: run(function, neighbour))


# Handles of programs: function, parameter, where it stands, what makes another one that is ended.
KINDS = {
    "item": (lambda: lib.acltdtCreateDataItem(0, DIMS, 2, 0, DATA, 16), lib.acltdtDestroyDataItem),
    "dataset": (lib.acltdtCreateDataset, lib.acltdtDestroyDataset),
    "channel": (lambda: lib.acltdtCreateChannelWithCapacity(0, b"one", 2), lib.acltdtDestroyChannel),
    "attribute": (lib.acltdtCreateQueueAttr, lib.acltdtDestroyQueueAttr),
    "route": (lambda: lib.acltdtCreateQueueRoute(1, 2), lib.acltdtDestroyQueueRoute),
    "routes": (lib.acltdtCreateQueueRouteList, lib.acltdtDestroyQueueRouteList),
    "query": (lib.acltdtCreateQueueRouteQueryInfo, lib.acltdtDestroyQueueRouteQueryInfo),
}
HANDLES = [
    ("acltdtDestroyDataItem/dataItem", 0, "item"), ("acltdtGetDimsFromItem/dataItem", 0, "item"),
    ("acltdtGetSliceInfoFromItem/dataItem", 0, "item"), ("acltdtAddDataItem/dataItem", 1, "item"),
    ("acltdtDestroyDataset/dataset", 0, "dataset"), ("acltdtAddDataItem/dataset", 0, "dataset"),
    ("acltdtSendTensor/dataset", 1, "dataset"), ("acltdtReceiveTensor/dataset", 1, "dataset"),
    *[(f"acltdt{name}/handle", 0, "channel") for name in ("StopChannel", "DestroyChannel", "CleanChannel",
                                                          "QueryChannelSize", "SendTensor", "ReceiveTensor")],
    ("acltdtDestroyQueueAttr/attr", 0, "attribute"), ("acltdtSetQueueAttr/attr", 0, "attribute"),
    ("acltdtGetQueueAttr/attr", 0, "attribute"), ("acltdtCreateQueue/attr", 0, "attribute"),
    ("acltdtDestroyQueueRoute/route", 0, "route"), ("acltdtGetQueueRouteParam/route", 0, "route"),
    ("acltdtAddQueueRoute/route", 1, "route"), ("acltdtGetQueueRoute/route", 2, "route"),
    ("acltdtDestroyQueueRouteList/routeList", 0, "routes"), ("acltdtAddQueueRoute/routeList", 0, "routes"),
    ("acltdtGetQueueRoute/routeList", 0, "routes"), ("acltdtBindQueueRoutes/qRouteList", 0, "routes"),
    ("acltdtUnbindQueueRoutes/qRouteList", 0, "routes"), ("acltdtQueryQueueRoutes/qRouteList", 1, "routes"),
    ("acltdtDestroyQueueRouteQueryInfo/info", 0, "query"), ("acltdtSetQueueRouteQueryInfo/param", 0, "query"),
    ("acltdtQueryQueueRoutes/queryInfo", 0, "query")]  # fmt: skip
POINTERS = [
    ("acltdtGetDimsFromItem/dims", 1), ("acltdtGetSliceInfoFromItem/sliceNum", 2), ("acltdtQueryChannelSize/size", 1),
    ("acltdtCreateChannelWithCapacity/name", 1), ("acltdtCreateDataItem/dims", 1), ("acltdtCreateDataItem/data", 4),
    ("acltdtSetQueueAttr/param", 3), ("acltdtGetQueueAttr/param", 4), ("acltdtGetQueueAttr/paramRetSize", 3),
    ("acltdtCreateQueue/qid", 1), ("acltdtEnqueueData/data", 1), ("acltdtDequeueData/data", 1),
    ("acltdtDequeueData/retDataSize", 3), ("acltdtGetQueueRouteParam/param", 4),
    ("acltdtGetQueueRouteParam/paramRetSize", 3), ("acltdtSetQueueRouteQueryInfo/value", 3)]  # fmt: skip
TYPED = {"acltdtSetQueueAttr": 2, "acltdtGetQueueAttr": 2, "acltdtGetQueueRouteParam": 3,
         "acltdtSetQueueRouteQueryInfo": 3}  # fmt: skip


def ended(kind: str):
    def make(scene):
        create, end = KINDS[kind]
        made = create()
        ok(end(made))
        return made

    return make


def with_ended_item(scene):
    made, item = scene.dataset(), lib.acltdtCreateDataItem(0, DIMS, 2, 0, DATA, 16)
    ok(lib.acltdtAddDataItem(made, item))
    ok(lib.acltdtDestroyDataItem(item))
    return made


def with_stray_item(scene):
    made = scene.dataset()
    item = scene.made(lib.acltdtCreateDataItem, lib.acltdtDestroyDataItem, 0, DIMS, 2, 0, ffi.cast("void *", 4096), 16)
    ok(lib.acltdtAddDataItem(made, item))
    return made


def stopped(scene):
    made = scene.channel()
    ok(lib.acltdtStopChannel(made))
    return made


def cycle(scene):
    first, second = scene.queue(), scene.queue()
    return scene.routes((first, second), (second, first))


def bound_again(scene):
    first, second = scene.queue(), scene.queue()
    scene.routes((first, second), bound=True)
    return scene.routes((first, second))


def taken_name(scene):
    scene.queue(name=b"taken")
    return scene.attribute(b"taken")


def at_the_limit(scene):
    for _ in range(4096):
        scene.queue()
    return scene.attribute()


RULES = [
    *[rule(f"{name}/null", {position: NULL}) for name, position, _ in HANDLES],
    *[rule(f"{name}/dead", {position: ended(kind)}) for name, position, kind in HANDLES],
    *[rule(f"{name}/null", {position: NULL}) for name, position in POINTERS],
    *[rule(f"{name}/type/range", {1: types}) for name, types in TYPED.items()],
    *[rule(f"{name}/len/range", {2: 5}) for name in TYPED],
    rule("acltdtDestroyDataItem/dataItem/owned", {0: Scene.received_item}),
    rule("acltdtAddDataItem/dataItem/owned", {1: Scene.received_item}),
    rule("acltdtGetDimsFromItem/dimNum/limit", {2: 1}),
    rule("acltdtCreateChannelWithCapacity/capacity/range", {2: 1}, {2: 8192}),
    rule("acltdtCreateChannelWithCapacity/deviceId/range", {0: 64}),
    rule("acltdtSendTensor/timeout/range", {2: -2}, {2: -1}),
    rule("acltdtReceiveTensor/timeout/range", {2: -2}, {2: -1}),
    rule("acltdtSendTensor/dataset/item", {1: with_ended_item}),
    rule("acltdtSendTensor/dataset/memory", {1: with_stray_item}),
    rule("acltdtReceiveTensor/dataset/filled", {1: lambda s: s.dataset(1)}),
    rule("acltdtSendTensor/handle/full", {0: lambda s: s.channel(2)}, {0: lambda s: s.channel(1)}),
    rule("acltdtReceiveTensor/handle/empty", {0: Scene.channel, 2: 1}),
    rule("acltdtSendTensor/handle/stopped", {0: stopped}),
    rule("acltdtReceiveTensor/handle/stopped", {0: stopped}),
    rule("acltdtSetQueueAttr/param/name", {1: 0, 2: 8, 3: ffi.new("char *[1]")}),
    rule("acltdtSetQueueAttr/param/depth", {3: number(value=1)}),
    rule("acltdtSetQueueRouteQueryInfo/value/mode", {3: number("int32_t", 3)}, {3: number("int32_t", 100)}),
    rule("acltdtCreateQueue/attr/name", {0: taken_name}),
    rule("acltdtCreateQueue/attr/limit", {0: at_the_limit}),
    rule("acltdtDestroyQueue/qid/unknown", {0: 1 << 30}),
    rule("acltdtEnqueueData/qid/unknown", {0: 1 << 30}),
    rule("acltdtDequeueData/qid/unknown", {0: 1 << 30}),
    rule("acltdtEnqueueData/timeout/range", {5: -2}, {5: -1}),
    rule("acltdtDequeueData/timeout/range", {6: -2}, {6: -1}),
    rule("acltdtEnqueueData/userData/range", {3: DATA, 4: 97}, {3: ffi.new("char[96]"), 4: 96}),
    rule("acltdtDequeueData/userData/range", {4: ffi.new("char[97]"), 5: 97}, {4: ffi.new("char[96]"), 5: 96}),
    rule("acltdtEnqueueData/dataSize/range", {2: 0}),
    rule("acltdtDequeueData/dataSize/limit", {2: 15}),
    rule("acltdtEnqueueData/qid/full", {0: lambda s: s.queue(2)}, {0: lambda s: s.queue(1)}),
    rule("acltdtDequeueData/qid/empty", {0: Scene.queue, 6: 1}),
    rule("acltdtGetQueueRoute/index/range", {1: 1}),
    rule("acltdtBindQueueRoutes/qRouteList/queue", {0: lambda s: s.routes((1 << 30, 1 << 30))}),
    rule("acltdtBindQueueRoutes/qRouteList/cycle", {0: cycle}),
    rule("acltdtBindQueueRoutes/qRouteList/bound", {0: bound_again}),
    rule("acltdtBindQueueRoutes/qRouteList/empty", {0: lambda s: s.routes(empty=True)}),
    rule("acltdtUnbindQueueRoutes/qRouteList/unbound", {0: Scene.routes}),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
