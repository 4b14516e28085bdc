"""Devices: the current one of each thread, two of them, none, faults and reset (maca-runtime 5.6, 5.10).

Resets and faults concern a whole process, so each of these tests runs in its own."""

import json

import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import run_python
from tests.maca import runtime_support as rt

HEAD = """
import threading
from understudy.maca import ffi, last_error, lib
from tests.maca import runtime_support as rt
from tests.maca.runtime_support import ok
NULL = ffi.NULL
"""


def in_child(source, **env):
    env.setdefault("UNDERSTUDY_DEVICES", "2")
    assert run_python(HEAD + source + "\nprint('done')", env).endswith("done\n")


def test_properties_and_attributes_agree():
    prop = rt.made("mcDeviceProp_t", lib.mcGetDeviceProperties, 0)
    assert ffi.string(prop.name) == b"MetaX C500"
    name = ffi.new("char[]", 256)
    rt.ok(lib.mcDeviceGetName(name, 256, 0))
    assert ffi.string(name) == ffi.string(prop.name)
    rt.ok(lib.mcDeviceGetName(name, 6, 0))
    assert ffi.string(name) == b"MetaX"
    pairs = {
        "WarpSize": prop.warpSize, "WaveSize": prop.waveSize, "MaxThreadsPerBlock": prop.maxThreadsPerBlock,
        "MaxBlockDimX": prop.maxThreadsDim[0], "MaxBlockDimY": prop.maxThreadsDim[1],
        "MaxBlockDimZ": prop.maxThreadsDim[2], "MaxGridDimX": prop.maxGridSize[0], "MaxGridDimY": prop.maxGridSize[1],
        "MaxGridDimZ": prop.maxGridSize[2], "MaxSharedMemoryPerBlock": prop.sharedMemPerBlock,
        "ClockRate": prop.clockRate, "MemoryClockRate": prop.memoryClockRate, "MemoryBusWidth": prop.memoryBusWidth,
        "MultiProcessorCount": prop.multiProcessorCount, "ComputeMode": prop.computeMode,
        "L2CacheSize": prop.l2CacheSize, "ComputeCapabilityMajor": prop.major, "ComputeCapabilityMinor": prop.minor,
        "PciBusId": prop.pciBusID, "PciDeviceId": prop.pciDeviceID, "PciDomainId": prop.pciDomainID,
        "Integrated": prop.integrated, "ManagedMemory": prop.managedMemory,
        "UnifiedAddressing": prop.unifiedAddressing,
    }  # fmt: skip
    for attribute, value in pairs.items():
        assert rt.made("int", lib.mcDeviceGetAttribute, getattr(lib, f"mcDeviceAttribute{attribute}"), 0) == value
    assert prop.waveSize == 64
    total = ffi.new("size_t *")
    rt.ok(lib.mcMemGetInfo(ffi.new("size_t *"), total))
    assert prop.totalGlobalMem == total[0] > 0


def test_the_bus_id_finds_the_device_again():
    text = ffi.new("char[]", 13)
    rt.ok(lib.mcDeviceGetPCIBusId(text, 13, 0))
    assert rt.made("int", lib.mcDeviceGetByPCIBusId, text) == 0


def test_priorities_have_a_range_and_are_clamped():
    least, greatest = ffi.new("int *"), ffi.new("int *")
    rt.ok(lib.mcDeviceGetStreamPriorityRange(least, greatest))
    assert greatest[0] <= least[0]
    rt.ok(lib.mcDeviceGetStreamPriorityRange(ffi.NULL, ffi.NULL))
    for priority in (-(2**31), greatest[0], 0, least[0], 2**31 - 1):
        stream = rt.made("mcStream_t", lib.mcStreamCreateWithPriority, 1, priority)
        rt.ok(lib.mcStreamSynchronize(stream))
        rt.ok(lib.mcStreamDestroy(stream))


def test_runtime_and_driver_have_one_version():
    assert rt.made("int", lib.mcRuntimeGetVersion) == rt.made("int", lib.mcDriverGetVersion) == 3071


def test_each_thread_has_its_own_device_and_begins_with_the_first():
    in_child("""
seen = []
def look():
    seen.append(rt.made('int', lib.mcGetDevice))
    ok(lib.mcSetDevice(0))
ok(lib.mcSetDevice(1))
thread = threading.Thread(target=look); thread.start(); thread.join()
assert seen == [0] and rt.made('int', lib.mcGetDevice) == 1
assert lib.mcSetDevice(2) == lib.mcSetDevice(-1) == lib.mcErrorInvalidDevice
assert rt.made('int', lib.mcGetDevice) == 1
""")


def test_two_devices_have_their_own_memory_and_copy_to_each_other():
    in_child("""
a = rt.device_memory(64); rt.write(a, b'a' * 64)
with rt.on_device(1):
    b = rt.device_memory(64)
    assert rt.made('mcPointerAttribute_t', lib.mcPointerGetAttributes, b).device == 1
    assert rt.made('mcPointerAttribute_t', lib.mcPointerGetAttributes, a).device == 0
assert rt.made('int', lib.mcDeviceCanAccessPeer, 0, 1) == 1 and rt.made('int', lib.mcDeviceCanAccessPeer, 1, 1) == 0
ok(lib.mcMemcpyPeerAsync(b, 1, a, 0, 64, NULL)); ok(lib.mcDeviceSynchronize())
assert rt.read(b, 64) == b'a' * 64
ok(lib.mcMemcpy(b + 1, a, 10, rt.D2D))
ok(lib.mcFree(b)); assert lib.mcFree(b) == lib.mcErrorInvalidValue
""")


KERNEL_ON_PEER_MEMORY = """
mine = rt.device_memory(64); rt.write(mine, bytes(64))
with rt.on_device(1):
    theirs = rt.device_memory(64); rt.write(theirs, bytes(64))
handle = rt.made('mcdnnHandle_t', lib.mcdnnCreate)
tensor = rt.made('mcdnnTensorDescriptor_t', lib.mcdnnCreateTensorDescriptor)
ok(lib.mcdnnSetTensor4dDescriptor(tensor, lib.MCDNN_TENSOR_NCHW, lib.MCDNN_DATA_FLOAT, 1, 16, 1, 1))
one, zero = ffi.new('float *', 1), ffi.new('float *', 0)
def softmax(x, y):
    ok(lib.mcdnnSoftmaxForward(handle, lib.MCDNN_SOFTMAX_ACCURATE, lib.MCDNN_SOFTMAX_MODE_CHANNEL, one, tensor, x, zero,
                               tensor, y))
    return lib.mcDeviceSynchronize()
"""


@pytest.mark.parametrize("x, y", [("mine", "theirs"), ("theirs", "mine")])
def test_kernels_fault_on_the_memory_of_a_device_that_is_no_peer(x, y):
    in_child(KERNEL_ON_PEER_MEMORY + f"""
with rt.on_device(1):
    ok(lib.mcDeviceEnablePeerAccess(0, 0))  # the other way
assert softmax(mine, mine) == 0
assert softmax({x}, {y}) == lib.mcErrorIllegalAddress
""")


def test_kernels_use_the_memory_of_peers():
    in_child(KERNEL_ON_PEER_MEMORY + """
ok(lib.mcDeviceEnablePeerAccess(1, 0))
assert softmax(mine, theirs) == softmax(theirs, mine) == softmax(theirs, theirs) == 0
assert rt.read(theirs, 4) == bytes(ffi.buffer(ffi.new('float *', 1 / 16)))
with rt.on_device(1):
    ok(lib.mcDeviceReset())
    theirs = rt.device_memory(64)
assert softmax(mine, theirs) == lib.mcErrorIllegalAddress  # a reset of the owner ends the access
""")


def test_a_stream_keeps_the_device_it_was_made_on():
    in_child("""
with rt.on_device(1):
    own, event, b = rt.stream(), rt.event(), rt.device_memory(64)
gate = rt.Gate(own)
ok(lib.mcMemsetAsync(b, 9, 64, own)); ok(lib.mcEventRecord(event, own))
ok(lib.mcDeviceSynchronize())                        # device 0 has nothing to wait for
assert lib.mcStreamQuery(own) == lib.mcErrorNotReady
other = rt.stream(); c = rt.device_memory(64)
ok(lib.mcStreamWaitEvent(other, event, 0))           # across devices
ok(lib.mcMemcpyAsync(c, b, 64, rt.D2D, other))
gate.open()
ok(lib.mcStreamSynchronize(other))
assert rt.read(c, 64) == b'\\x09' * 64
""")


def test_default_streams_of_two_devices_do_not_wait_for_each_other():
    in_child("""
gate = rt.Gate(NULL)
with rt.on_device(1):
    ok(lib.mcMemset(rt.device_memory(), 1, 16)); ok(lib.mcDeviceSynchronize())
gate.open(); ok(lib.mcDeviceSynchronize())
""")


def test_a_fault_stays_on_its_device_until_the_reset():
    in_child("""
memory, own, event = rt.device_memory(), rt.stream(), rt.event()
rt.break_device()
seen = [lib.mcDeviceSynchronize(), lib.mcMalloc(ffi.new('void **'), 1), lib.mcStreamSynchronize(NULL),
        lib.mcStreamQuery(own), lib.mcEventQuery(event), lib.mcFree(memory), lib.mcMemcpy(memory, memory, 1, rt.D2D)]
assert seen == [lib.mcErrorIllegalAddress] * 7, seen
assert lib.mcGetLastError() == lib.mcGetLastError() == lib.mcPeekAtLastError() == lib.mcErrorIllegalAddress
text = last_error().text
assert not text or 'mcMemsetAsync' in text and 'freed' in text and '256 bytes' in text, text
in_thread = []
thread = threading.Thread(target=lambda: in_thread.append(lib.mcGetLastError())); thread.start(); thread.join()
assert in_thread == [lib.mcErrorIllegalAddress]
assert lib.mcGetDevice(ffi.new('int *')) == lib.mcGetDeviceCount(ffi.new('int *')) == 0
with rt.on_device(1):
    ok(lib.mcGetLastError()); rt.write(rt.device_memory(64), b'x' * 64); ok(lib.mcDeviceSynchronize())
ok(lib.mcDeviceReset())
lib.mcGetLastError(); assert lib.mcGetLastError() == 0
assert rt.read((lambda m: (rt.write(m, b'y' * 64), m)[1])(rt.device_memory(64)), 64) == b'y' * 64
""")


@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
def test_reset_ends_everything_on_the_device_and_the_device_works_again(mode):
    in_child("""
with rt.on_device(1):
    other = rt.device_memory()
    memory, pinned, own, event = rt.device_memory(), rt.pinned_memory(64), rt.stream(), rt.recorded_event()
    managed, mine = rt.managed_memory(), rt.PER_THREAD
    ok(lib.mcMemsetAsync(memory, 1, 16, mine)); ok(lib.mcMemsetAsync(memory, 1, 16, own))
zero, zero_stream = rt.device_memory(), rt.stream()
with rt.on_device(1):
    ok(lib.mcDeviceReset()); ok(lib.mcDeviceReset())
    assert rt.made('int', lib.mcGetDevice) == 1
    assert lib.mcFree(memory) == lib.mcFree(managed) == lib.mcErrorInvalidValue
    assert lib.mcStreamSynchronize(own) == lib.mcEventQuery(event) == lib.mcEventDestroy(event) == 400
    ok(lib.mcFreeHost(pinned))
    again = rt.device_memory(64)
    ok(lib.mcMemsetAsync(again, 3, 64, mine)); ok(lib.mcMemsetAsync(again, 4, 32, NULL))
    assert rt.read(again, 64) == b'\\x04' * 32 + b'\\x03' * 32
ok(lib.mcMemset(zero, 1, 16)); ok(lib.mcStreamSynchronize(zero_stream))
""", UNDERSTUDY_STREAM=mode)


def test_without_a_device_every_call_says_so():
    in_child("""
count = ffi.new('int *', -1)
assert lib.mcGetDeviceCount(count) == lib.mcErrorNoDevice and count[0] == 0
assert lib.mcMalloc(ffi.new('void **'), 1) == lib.mcDeviceSynchronize() == lib.mcErrorNoDevice
assert lib.mcStreamCreate(ffi.new('mcStream_t *')) == lib.mcEventCreate(ffi.new('mcEvent_t *')) == lib.mcErrorNoDevice
assert lib.mcMemcpy(rt.host_memory(), rt.host_memory(), 1, rt.H2H) == lib.mcDeviceReset() == lib.mcErrorNoDevice
assert lib.mcStreamSynchronize(rt.PER_THREAD) == lib.mcErrorNoDevice
assert lib.mcSetDevice(0) == lib.mcErrorInvalidDevice
assert lib.mcGetLastError() == lib.mcErrorInvalidDevice
""", UNDERSTUDY_DEVICES="0")


def test_a_process_may_fork_before_it_uses_a_device():
    in_child("""
import os
child = os.fork()
if child == 0:
    rt.write(rt.device_memory(64), b'c' * 64)
    os._exit(0)
rt.write(rt.device_memory(64), b'p' * 64)
assert os.waitpid(child, 0)[1] == 0
""")


def test_a_child_forked_after_use_is_told_so():
    in_child("""
import os
ok(lib.mcDeviceSynchronize())
child = os.fork()
if child == 0:
    number = ffi.new('int *')
    calls = (lambda: lib.mcMalloc(ffi.new('void **'), 1), lambda: lib.mcSetDevice(0), lambda: lib.mcGetDeviceCount(number),
             lambda: lib.mcDeviceGetAttribute(number, lib.mcDeviceAttributeWarpSize, 0))
    told = [call() == lib.mcErrorInitializationError and 'was forked' in last_error().text for call in calls]
    os._exit(0 if all(told) else 1)
assert os.waitpid(child, 0)[1] == 0
ok(lib.mcDeviceSynchronize())
""")


def test_every_copy_and_fill_is_on_the_timeline(tmp_path):
    file = tmp_path / "trace"
    in_child("""
memory, own = rt.device_memory(100), rt.stream()
rt.write(memory, b'x' * 100); ok(lib.mcMemset(memory, 1, 60))
ok(lib.mcMemcpyAsync(memory, b'y' * 40, 40, rt.H2D, own)); ok(lib.mcMemsetAsync(memory, 2, 20, own))
ok(lib.mcStreamSynchronize(own))
""", UNDERSTUDY_TRACE=str(file))
    lines = [json.loads(line.strip().rstrip(",")) for line in file.read_text().splitlines() if line.startswith("{")]
    copies = {line["name"]: line["args"]["bytes"] for line in lines if line["cat"] == "copy"}
    assert copies == {"mcMemcpy": 100, "mcMemset": 60, "mcMemcpyAsync": 40, "mcMemsetAsync": 20}
