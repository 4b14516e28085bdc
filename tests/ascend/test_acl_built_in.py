"""What reductions, random numbers and indirect copies do, and allocators and streams of a configuration (cann-runtime-3 8,
10, 18)."""

import contextlib
import math

import numpy
import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import address_of, device, download, memory, ok, stream, upload
from tests.conformance.ascend.test_acl_built_in import INNER, Scene, allocator, draws, number
from tests.conformance.harness import run_python

KINDS = {10: numpy.add, 11: numpy.maximum, 12: numpy.minimum}
TYPES = {0: numpy.float32, 1: numpy.float16, 2: numpy.int8, 3: numpy.int32, 6: numpy.int16}


@pytest.fixture(autouse=True)
def device_0():
    with device():
        yield


def test_the_worked_numbers_of_the_sheet():
    """Four floats 1 2 3 4, added to themselves: 2 4 6 8."""
    values = numpy.array([1, 2, 3, 4], numpy.float32)
    with memory(16) as target, memory(16) as source:
        for block in (target, source):
            upload(block, values.tobytes())
        ok(lib.aclrtReduceAsync(target, source, 16, 10, 0, ffi.NULL, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        assert numpy.frombuffer(download(target, 16), numpy.float32).tolist() == [2, 4, 6, 8]


def test_reductions_of_every_kind_and_type():
    random = numpy.random.default_rng(1)
    with memory(4096) as target, memory(4096) as source, stream() as on:
        for (kind, formula), (code, dtype) in ((k, t) for k in KINDS.items() for t in TYPES.items()):
            a, b = ((random.standard_normal(37) * 40).astype(dtype) for _ in range(2))
            upload(target, a.tobytes())
            upload(source, b.tobytes())
            ok(lib.aclrtReduceAsync(target, source, a.nbytes, kind, code, on, ffi.NULL))
            ok(lib.aclrtSynchronizeStream(on))
            assert numpy.array_equal(numpy.frombuffer(download(target, a.nbytes), dtype), formula(a, b)), (kind, dtype)


def test_bfloat16_sums_round_to_even():
    bits = numpy.array([0x3F80, 0x4000, 0x4040], numpy.uint16)  # 1 2 3
    with memory(64) as block:
        upload(block, bits.tobytes())
        ok(lib.aclrtReduceAsync(block, block, 6, 10, 27, ffi.NULL, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        assert numpy.frombuffer(download(block, 6), numpy.uint16).tolist() == [0x4000, 0x4080, 0x40C0]  # 2 4 6


def test_a_fault_of_a_reduction_comes_out_of_the_synchronise():
    source = """
from tests.ascend.test_acl_built_in import *
with device(), memory(64) as block:
    ok(lib.aclrtReduceAsync(block, block, 1 << 22, 10, 0, ffi.NULL, ffi.NULL))
    print(lib.aclrtSynchronizeStream(ffi.NULL))
"""
    assert run_python(source, {}).split() == ["507015"]


# ---- random numbers ----

COUNT = 20000


def drawn(function: int, code: int, dtype, low, high, seed: int = 7, offset: int = 0, count: int = COUNT, bytes_=None):
    """The values of one task."""
    size = bytes_ or count * numpy.dtype(dtype).itemsize
    kind = {0: "float", 1: "uint16_t", 27: "uint16_t", 3: "int32_t", 8: "uint32_t", 9: "int64_t", 10: "uint64_t"}[code]
    given = [int(numpy.float16(value).view(numpy.uint16)) if code == 1 else value for value in (low, high)]
    with memory(size) as result, memory(16) as counter:
        upload(counter, offset.to_bytes(16, "little"))
        task = draws(None, function, code, low=number(given[0], kind), high=number(given[1], kind), result=result,
                     counter=counter, seed=number(seed, "uint64_t"), count=number(count, "uint64_t"))
        ok(lib.aclrtRandomNumAsync(task, ffi.NULL, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        return numpy.frombuffer(download(result, size), dtype)


def test_uniform_numbers_lie_between_their_limits():
    for code, dtype in ((0, numpy.float32), (1, numpy.float16), (3, numpy.int32), (9, numpy.int64)):
        values = drawn(1, code, dtype, -10, 30).astype(float)
        assert values.min() >= -10 and values.max() <= 30, dtype
        # The mean of n uniform numbers of width w deviates by w / sqrt(12 n); integers are truncated towards 0.
        assert abs(values.mean() - 10) < 6 * 40 / math.sqrt(12 * COUNT) + (0.5 if code in (3, 9) else 0.01), dtype


def test_normal_numbers_have_their_mean_and_deviation():
    values = drawn(2, 0, numpy.float32, 3.0, 2.0).astype(float)
    assert abs(values.mean() - 3) < 6 * 2 / math.sqrt(COUNT)
    assert abs(values.std() - 2) < 6 * 2 / math.sqrt(2 * COUNT)
    assert abs(values - 3).max() > 2 * 2


def test_truncated_normal_numbers_end_at_two_deviations():
    values = drawn(3, 0, numpy.float32, 3.0, 2.0).astype(float)
    z = (values - 3) / 2
    assert abs(z).max() <= 2
    # Variance of a normal distribution cut at ±2: 1 - 2·2·φ(2) / (Φ(2) - Φ(-2)).
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    variance = 1 - 4 * density / math.erf(2 / math.sqrt(2))
    assert abs(z.mean()) < 6 / math.sqrt(COUNT) and abs(z.var() - variance) < 6 * math.sqrt(2 / COUNT)
    inner = numpy.mean(abs(z) < 1)  # a share of erf(1/sqrt 2) / erf(2/sqrt 2)
    assert abs(inner - math.erf(1 / math.sqrt(2)) / math.erf(2 / math.sqrt(2))) < 6 * 0.5 / math.sqrt(COUNT)


def test_masks_drop_their_share():
    bits = numpy.unpackbits(drawn(0, 0, numpy.uint8, 0.25, 0.0, bytes_=COUNT // 8), bitorder="little")
    assert abs(bits.mean() - 0.75) < 6 * math.sqrt(0.25 * 0.75 / COUNT)


def test_the_seed_and_the_counter_decide():
    first = drawn(1, 0, numpy.float32, 0.0, 1.0)
    assert numpy.array_equal(first, drawn(1, 0, numpy.float32, 0.0, 1.0))
    for changed in ({"seed": 8}, {"offset": 1}):
        assert not numpy.array_equal(first, drawn(1, 0, numpy.float32, 0.0, 1.0, **changed)), changed


def test_parameters_may_lie_in_memory_of_the_device():
    with memory(64) as parameters, memory(64) as result, memory(16) as counter:
        upload(counter, bytes(16))
        upload(parameters, numpy.array([5, 6], numpy.float32).tobytes() + (9).to_bytes(8, "little"))

        def at(offset: int):
            made = ffi.new("aclrtRandomParaInfo *", {"isAddr": 1})
            ffi.memmove(made.valueOrAddr, (address_of(parameters) + offset).to_bytes(8, "little"), 8)
            return made[0]

        task = draws(None, low=at(0), high=at(4), seed=at(8), result=result, counter=counter)
        ok(lib.aclrtRandomNumAsync(task, ffi.NULL, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        values = numpy.frombuffer(download(result, 16), numpy.float32)
    assert ((values >= 5) & (values < 6)).all()
    assert numpy.array_equal(values, drawn(1, 0, numpy.float32, 5.0, 6.0, seed=9, count=4))


# ---- indirect copies ----


def test_copies_that_memory_describes():
    size = ffi.new("size_t *")
    ok(lib.aclrtGetMemcpyDescSize(INNER, size))
    with memory(size[0]) as description, memory(64) as source, memory(64) as target, stream() as on:
        upload(source, b"first   second  ")
        ok(lib.aclrtSetMemcpyDesc(description, INNER, source, target, 8, ffi.NULL))
        ok(lib.aclrtMemcpyAsyncWithDesc(description, INNER, on))
        ok(lib.aclrtSynchronizeStream(on))
        assert download(target, 8) == b"first   "
        # What the description says when the task runs counts.
        ok(lib.aclrtSetMemcpyDesc(description, INNER, ffi.cast("char *", source) + 8, target, 8, ffi.NULL))
        ok(lib.aclrtMemcpyAsyncWithDesc(description, INNER, on))
        ok(lib.aclrtSynchronizeStream(on))
        assert download(target, 8) == b"second  "


def test_copies_between_addresses_that_lie_in_memory():
    with memory(16) as cells, memory(64) as source, memory(64) as target, stream() as on:
        upload(source, b"0123456789")
        upload(target, b"----------")
        upload(cells, address_of(target).to_bytes(8, "little") + address_of(source).to_bytes(8, "little"))
        first = ffi.cast("void **", cells)
        ok(lib.aclrtMemcpyAsyncWithOffset(first, 4, 2, ffi.cast("const void **", first + 1), 4, 5, INNER, on))
        ok(lib.aclrtSynchronizeStream(on))
        assert download(target, 10) == b"--5678----"


CHECKED = """
import ctypes
from understudy import paths
from understudy.ascend import ffi, lib

def new(function, kind, *arguments):
    cell = ffi.new(kind + " *")
    assert function(cell, *arguments) == 0
    return cell[0]

assert lib.aclrtSetDevice(0) == 0
on = new(lib.aclrtCreateStream, "aclrtStream")
source, target, description = (new(lib.aclrtMalloc, "void *", 64, 0) for _ in range(3))
statuses = [
    lib.aclrtSetMemcpyDesc(description, lib.ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, source, target, 64, ffi.NULL),
    lib.aclrtMemsetAsync(source, 64, 1, 64, on),
    lib.aclrtMemcpyAsyncWithDesc(description, lib.ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, on),
    lib.aclrtMemcpy(target, 64, source, 64, lib.ACL_MEMCPY_DEVICE_TO_DEVICE) if {early} else 0,
    lib.aclrtSynchronizeStream(on),
]
print(statuses, ctypes.CDLL(str(paths.sdk() / "lib" / "libunderstudy.so")).understudy_findings())
"""


@pytest.mark.parametrize(("early", "findings"), [(False, 0), (True, 1)])
def test_a_copy_that_memory_describes_is_the_streams_and_not_the_hosts(early, findings):
    environment = {"UNDERSTUDY_CHECK": "sync", "UNDERSTUDY_LOG": "off"}
    assert run_python(CHECKED.format(early=early), environment).split("\n")[0] == f"[0, 0, 0, 0, 0] {findings}"


# ---- allocators, streams of a configuration ----


def test_a_stream_gives_back_the_allocator_it_has():
    with contextlib.ExitStack() as stack:
        scene = Scene(stack)
        on, first, second = scene.stream(), allocator(scene), allocator(scene)
        for description in (first, second):  # the last one counts
            ok(lib.aclrtAllocatorRegister(on, description))
        got = [ffi.new(kind) for kind in ffi.typeof(lib.aclrtAllocatorGetByStream).args[1:]]
        ok(lib.aclrtAllocatorGetByStream(on, *got))
        assert got[0][0] == second and all(cell[0] != ffi.NULL for cell in got)
        for _ in range(2):
            ok(lib.aclrtAllocatorUnregister(on))
        assert lib.aclrtAllocatorGetByStream(on, *got) == 100000


def test_a_stream_has_what_its_configuration_says():
    handle, made = lib.aclrtCreateStreamConfigHandle(), ffi.new("aclrtStream *")
    flags, priority = ffi.new("uint32_t *"), ffi.new("uint32_t *")
    for attribute, value in ((lib.ACL_RT_STREAM_FLAG, 2), (lib.ACL_RT_STREAM_PRIORITY, 5)):
        ok(lib.aclrtSetStreamConfigOpt(handle, attribute, ffi.new("uint32_t *", value), 4))
    ok(lib.aclrtCreateStreamV2(made, handle))
    ok(lib.aclrtDestroyStreamConfigHandle(handle))
    ok(lib.aclrtStreamGetFlags(made[0], flags))
    ok(lib.aclrtStreamGetPriority(made[0], priority))
    assert (flags[0], priority[0]) == (2, 5)
    ok(lib.aclrtDestroyStream(made[0]))


def test_configurations_that_have_ended_stay_known_and_new_ones_are_empty():
    """The structure is public: one that the program made works too, and is not ended by the library."""
    made = ffi.new("aclrtStream *")
    ended = [lib.aclrtCreateStreamConfigHandle() for _ in range(20)]
    for handle in ended:
        handle.priority = 5
        ok(lib.aclrtDestroyStreamConfigHandle(handle))
    for _ in range(200):
        handle = lib.aclrtCreateStreamConfigHandle()
        assert (handle.workptr, handle.workSize, handle.flag, handle.priority) == (ffi.NULL, 0, 0, 0)
        handle.priority = 7
        ok(lib.aclrtDestroyStreamConfigHandle(handle))
        assert lib.aclrtCreateStreamV2(made, handle) == 100000
    own = ffi.new("aclrtStreamConfigHandle *", {"flag": 2})
    ok(lib.aclrtSetStreamConfigOpt(own, lib.ACL_RT_STREAM_PRIORITY, ffi.new("uint32_t *", 3), 4))
    assert lib.aclrtDestroyStreamConfigHandle(own) == 100000
    ok(lib.aclrtCreateStreamV2(made, own))
    ok(lib.aclrtDestroyStream(made[0]))
