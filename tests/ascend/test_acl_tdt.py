"""What channels and queues carry, between threads (cann-runtime-3 17)."""

import contextlib
import threading

import numpy
import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import device, memory, ok, upload
from tests.conformance.ascend.test_acl_tdt import DATA, DIMS, NULL, Scene


@pytest.fixture
def scene():
    with contextlib.ExitStack() as stack:
        yield Scene(stack)


def contents(item):
    """Type, element type, dimensions and bytes."""
    rank = lib.acltdtGetDimNumFromItem(item)
    dims = ffi.new("int64_t[]", rank)
    ok(lib.acltdtGetDimsFromItem(item, dims, rank))
    data = bytes(ffi.buffer(lib.acltdtGetDataAddrFromItem(item), lib.acltdtGetDataSizeFromItem(item)))
    return lib.acltdtGetTensorTypeFromItem(item), lib.acltdtGetDataTypeFromItem(item), list(dims), data


def size_of(channel) -> int:
    size = ffi.new("size_t *")
    ok(lib.acltdtQueryChannelSize(channel, size))
    return size[0]


def test_what_is_sent_is_received(scene):
    sent = numpy.array([1, 2, 3, 4], numpy.float32)
    buffer = ffi.from_buffer("char[]", sent)
    item = scene.made(lib.acltdtCreateDataItem, lib.acltdtDestroyDataItem, 0, DIMS, 2, 0, buffer, 16)
    outgoing, incoming, channel = scene.dataset(), scene.dataset(), scene.channel()
    ok(lib.acltdtAddDataItem(outgoing, item))
    assert lib.acltdtGetDatasetSize(outgoing) == 1
    ok(lib.acltdtSendTensor(channel, outgoing, -1))
    expected = contents(item)
    sent[:] = 0  # the channel has a copy
    assert size_of(channel) == 1
    ok(lib.acltdtReceiveTensor(channel, incoming, -1))
    assert size_of(channel) == 0
    received = lib.acltdtGetDataItem(incoming, 0)
    assert contents(received) == expected and expected[2:] == ([1, 4], numpy.float32([1, 2, 3, 4]).tobytes())
    assert lib.acltdtGetDataItem(incoming, 1) == NULL
    assert ffi.string(lib.acltdtGetDatasetName(incoming)) == b"one"


def test_items_may_lie_in_memory_of_the_device(scene):
    with device(), memory(16) as block:
        upload(block, bytes(range(16)))
        item = scene.made(lib.acltdtCreateDataItem, lib.acltdtDestroyDataItem, 0, DIMS, 2, 0, block, 16)
        outgoing, incoming, channel = scene.dataset(), scene.dataset(), scene.channel()
        ok(lib.acltdtAddDataItem(outgoing, item))
        ok(lib.acltdtSendTensor(channel, outgoing, 0))
        ok(lib.acltdtReceiveTensor(channel, incoming, 0))
        assert contents(lib.acltdtGetDataItem(incoming, 0))[3] == bytes(range(16))


def test_getters_of_nothing():
    assert lib.acltdtGetTensorTypeFromItem(NULL) == lib.ACL_TENSOR_DATA_UNDEFINED
    assert lib.acltdtGetDataTypeFromItem(NULL) == -1
    assert lib.acltdtGetDataAddrFromItem(NULL) == NULL and lib.acltdtGetDatasetName(NULL) == NULL
    assert lib.acltdtGetDataSizeFromItem(NULL) == lib.acltdtGetDimNumFromItem(NULL) == 0
    assert lib.acltdtGetDatasetSize(NULL) == lib.acltdtGetQueueRouteNum(NULL) == 0


def test_a_full_channel_waits_for_a_reader(scene):
    channel, outgoing = scene.channel(2), scene.dataset(1)
    assert lib.acltdtSendTensor(channel, outgoing, 0) == 207014
    statuses = []
    writer = threading.Thread(target=lambda: statuses.append(lib.acltdtSendTensor(channel, outgoing, -1)))
    writer.start()
    ok(lib.acltdtReceiveTensor(channel, scene.dataset(), -1))
    writer.join()
    assert statuses == [0] and size_of(channel) == 2
    ok(lib.acltdtCleanChannel(channel))
    assert size_of(channel) == 0


@pytest.mark.parametrize("end", ["stop", "destroy"])
def test_who_waits_is_woken_by_the_end(scene, end):
    channel = lib.acltdtCreateChannelWithCapacity(0, b"ends", 2)
    statuses, started = [], threading.Event()

    def read():
        started.set()
        statuses.append(lib.acltdtReceiveTensor(channel, scene.dataset(), -1))

    reader = threading.Thread(target=read)
    reader.start()
    started.wait()
    ok((lib.acltdtStopChannel if end == "stop" else lib.acltdtDestroyChannel)(channel))
    reader.join()
    assert statuses[0] in (500001, 100000)  # in the wait, or before it
    if end == "stop":
        ok(lib.acltdtDestroyChannel(channel))


def test_many_writers_and_readers(scene):
    channel, total = scene.channel(), 200
    seen, failures = [], []

    def write(first: int):
        for value in range(first, first + total // 4):
            data = ffi.new("int32_t *", value)
            item = lib.acltdtCreateDataItem(0, NULL, 0, 3, data, 4)
            dataset = lib.acltdtCreateDataset()
            failures.extend(filter(None, [lib.acltdtAddDataItem(dataset, item),
                                          lib.acltdtSendTensor(channel, dataset, -1),
                                          lib.acltdtDestroyDataItem(item), lib.acltdtDestroyDataset(dataset)]))

    def read():
        for _ in range(total // 2):
            dataset = lib.acltdtCreateDataset()
            failures.extend(filter(None, [lib.acltdtReceiveTensor(channel, dataset, -1)]))
            seen.append(int.from_bytes(contents(lib.acltdtGetDataItem(dataset, 0))[3], "little"))
            failures.extend(filter(None, [lib.acltdtDestroyDataset(dataset)]))

    threads = [threading.Thread(target=write, args=(n * total // 4,)) for n in range(4)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and sorted(seen) == list(range(total))


# ---- queues ----


def take(queue: int, size: int = 64, timeout: int = 0):
    data, length, user = ffi.new("char[]", size), ffi.new("size_t *"), ffi.new("char[96]")
    ok(lib.acltdtDequeueData(queue, data, size, length, user, 96, timeout))
    return bytes(ffi.buffer(data, length[0])), bytes(ffi.buffer(user))


def test_queues_carry_data_and_user_data(scene):
    queue = scene.queue()
    ok(lib.acltdtEnqueueData(queue, b"payload", 7, b"tag", 3, -1, 0))
    assert take(queue) == (b"payload", b"tag".ljust(96, b"\0"))


def test_attributes_of_queues(scene):
    attribute = scene.attribute(b"mine")
    text, depth, size = ffi.new("char *[1]"), ffi.new("uint32_t *"), ffi.new("size_t *")
    ok(lib.acltdtGetQueueAttr(attribute, 0, 8, size, text))
    ok(lib.acltdtGetQueueAttr(attribute, 1, 4, size, depth))
    assert (ffi.string(text[0]), depth[0], size[0]) == (b"mine", 8, 4)


def test_routes_lead_data_on(scene):
    first, second, third = (scene.queue(depth=4) for _ in range(3))
    routes = scene.routes((first, second), (second, third), bound=True)
    ok(lib.acltdtEnqueueData(first, DATA, 16, NULL, 0, 0, 0))
    assert take(third)[0] == bytes(ffi.buffer(DATA))
    query, found = scene.query(), scene.routes(empty=True)
    for kind, value in ((0, ffi.new("int32_t *", 2)), (1, ffi.new("uint32_t *", first)),
                        (2, ffi.new("uint32_t *", second))):
        ok(lib.acltdtSetQueueRouteQueryInfo(query, kind, 4, value))
    ok(lib.acltdtQueryQueueRoutes(query, found))
    assert lib.acltdtGetQueueRouteNum(found) == 1
    route, values, size = scene.route(), [], ffi.new("size_t *")
    ok(lib.acltdtGetQueueRoute(found, 0, route))
    for kind in range(3):
        cell = ffi.new("int32_t *")
        ok(lib.acltdtGetQueueRouteParam(route, kind, 4, size, cell))
        values.append(cell[0])
    assert values == [first, second, 1]
    ok(lib.acltdtUnbindQueueRoutes(routes))
    ok(lib.acltdtEnqueueData(first, DATA, 16, NULL, 0, 0, 0))
    assert take(first)[0] == bytes(ffi.buffer(DATA))


def test_a_route_leads_to_any_number_of_queues(scene):
    first, *others = (scene.queue() for _ in range(100))
    scene.routes(*((first, other) for other in others), bound=True)
    ok(lib.acltdtEnqueueData(first, DATA, 16, NULL, 0, 0, 0))
    assert [take(other)[0] for other in others] == [bytes(ffi.buffer(DATA))] * 99
    assert lib.acltdtDequeueData(first, ffi.new("char[]", 16), 16, ffi.new("size_t *"), NULL, 0, 0) == 207013


def test_a_cycle_is_looked_for_once_along_each_route(scene):
    """There are 2^40 ways from the first queue to the last one."""
    layers = [(scene.queue(), scene.queue()) for _ in range(41)]
    scene.routes(*((source, end) for sources, ends in zip(layers, layers[1:], strict=False) for source in sources
                   for end in ends), bound=True)
    assert lib.acltdtBindQueueRoutes(scene.routes((layers[-1][0], layers[0][0]))) == 100000
    ok(lib.acltdtBindQueueRoutes(scene.routes((layers[0][0], layers[-1][0]))))


def test_a_queue_that_is_destroyed_wakes_its_reader(scene):
    queue, statuses, started = scene.queue(), [], threading.Event()

    def read():
        started.set()
        statuses.append(lib.acltdtDequeueData(queue, ffi.new("char[16]"), 16, ffi.new("size_t *"), NULL, 0, -1))

    reader = threading.Thread(target=read)
    reader.start()
    started.wait()
    ok(lib.acltdtDestroyQueue(queue))
    reader.join()
    assert statuses == [100032]
