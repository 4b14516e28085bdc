"""Numbers of devices, limits of cores, fills with words: what is asked is what was set (cann-runtime-3 7 and 14)."""

import struct
import threading

from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import device, download, memory, ok, stream
from tests.conformance.harness import run_python


def test_numbers_of_visible_devices():
    source = """
from understudy.ascend import ffi, lib
cell, text = ffi.new("int32_t *"), ffi.new("char[13]")
for own, number in enumerate((1, 3)):
    for name in ("aclrtGetLogicDevIdByUserDevId", "aclrtGetPhyDevIdByUserDevId", "aclrtGetPhyDevIdByLogicDevId"):
        assert getattr(lib, name)(own, cell) == 0 and cell[0] == number, name
    for name in ("aclrtGetUserDevIdByLogicDevId", "aclrtGetUserDevIdByPhyDevId", "aclrtGetLogicDevIdByPhyDevId"):
        assert getattr(lib, name)(number, cell) == 0 and cell[0] == own, name
    assert lib.aclrtDeviceGetPCIBusId(own, text, 13) == 0
    assert ffi.string(text) == b"0000:%02x:00.0" % (number + 1)
    assert lib.aclrtDeviceGetByPCIBusId(text, cell) == 0 and cell[0] == own
assert lib.aclrtGetUserDevIdByPhyDevId(2, cell) == 107001
print("seen")
"""
    assert run_python(source, {"UNDERSTUDY_DEVICES": "4", "ASCEND_RT_VISIBLE_DEVICES": "1,3"}).split() == ["seen"]


def test_peers_are_told():
    source = """
from understudy.ascend import ffi, lib
cell = ffi.new("int32_t *")
assert lib.aclrtSetDevice(0) == 0 and lib.aclrtDeviceEnablePeerAccess(1, 0) == 0
print([(lib.aclrtDevicePeerAccessStatus(a, b, cell), cell[0])[1] for a, b in ((0, 1), (1, 0), (0, 0))])
"""
    assert run_python(source, {"UNDERSTUDY_DEVICES": "2"}).strip() == "[1, 0, 0]"


def limit(function, *arguments) -> int:
    cell = ffi.new("uint32_t *")
    ok(function(*arguments, cell))
    return cell[0]


def test_limits_of_cores_go_from_product_to_device_to_stream():
    def in_thread():
        def run():
            with device():
                seen.append(limit(lib.aclrtGetResInCurrentThread, 1))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

    seen = []
    with device(), stream() as own:
        assert [limit(lib.aclrtGetDeviceResLimit, 0, kind) for kind in (0, 1)] == [24, 48]
        ok(lib.aclrtSetDeviceResLimit(0, 1, 40))
        assert limit(lib.aclrtGetResInCurrentThread, 1) == limit(lib.aclrtGetStreamResLimit, own, 1) == 40
        ok(lib.aclrtSetStreamResLimit(own, 1, 7))
        ok(lib.aclrtSetStreamResLimit(own, 0, 3))
        ok(lib.aclrtSetStreamResLimit(own, 1, 8))
        assert [limit(lib.aclrtGetStreamResLimit, own, kind) for kind in (0, 1)] == [3, 8]
        assert limit(lib.aclrtGetResInCurrentThread, 1) == 40
        ok(lib.aclrtUseStreamResInCurrentThread(own))
        assert limit(lib.aclrtGetResInCurrentThread, 1) == 8
        in_thread()
        ok(lib.aclrtUnuseStreamResInCurrentThread(ffi.NULL))
        assert limit(lib.aclrtGetResInCurrentThread, 1) == 8
        ok(lib.aclrtUnuseStreamResInCurrentThread(own))
        assert limit(lib.aclrtGetResInCurrentThread, 1) == 40
        ok(lib.aclrtUseStreamResInCurrentThread(own))
        ok(lib.aclrtResetStreamResLimit(own))
        assert limit(lib.aclrtGetResInCurrentThread, 1) == 40
        ok(lib.aclrtSetStreamResLimit(own, 1, 9))
        ok(lib.aclrtResetDeviceResLimit(0))
        in_thread()
    with device():
        assert limit(lib.aclrtGetResInCurrentThread, 1) == 48, "the stream is gone"
    assert seen == [40, 48]


def test_fills_with_words():
    with device(), memory(64) as block, stream() as own:
        ok(lib.aclrtMemsetD32(block, 64, 0x01020304, 16))
        ok(lib.aclrtMemsetD32Async(ffi.cast("char *", block) + 8, 8, 7, 2, own))
        ok(lib.aclrtMemsetD32Async(block, 0, 7, 0, own))
        ok(lib.aclrtSynchronizeStream(own))
        assert struct.unpack("<16I", download(block, 64)) == (0x01020304,) * 2 + (7, 7) + (0x01020304,) * 12
        host = ffi.new("uint32_t[4]")
        assert lib.aclrtMemsetD32(ffi.cast("char *", host) + 1, 8, 7, 1) == 100000


def text_of(source: str, product: str) -> str:
    return run_python(f"from understudy.ascend import ffi, lib\n{source}", {"UNDERSTUDY_SOC": product}).strip()


def test_what_a_product_is_as_text():
    source = """
value = ffi.new("char[32]")
print([ffi.string(value).decode() for what in (0, 2, 3, 4, 5, 13) if lib.aclplatformGetDeviceInfo(what, value, 32) == 0])
"""
    assert text_of(source, "Ascend910B") == str(["24", "24", "48", "201326592", "68719476736", "Ascend910B1"])
    assert text_of(source, "Ascend910") == str(["32", "32", "32", "33554432", "34359738368", "Ascend910A"])


def test_engines_that_copy_or_compute_reach_registered_memory():
    cell = ffi.new("aclrtHostMemMapCapability *")
    reached = []
    for engine in range(10):
        ok(lib.aclrtHostMemMapCapabilities(0, engine, cell))
        reached.append(cell[0])
    assert reached == [0, 0, 1, 1, 1, 0, 1, 0, 0, 0]
