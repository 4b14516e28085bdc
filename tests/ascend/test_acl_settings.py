"""Versions, options, overflow modes, device information (cann-runtime 9)."""

import ast

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, context, device, download, memory, ok
from tests.conformance.ascend.test_acl_init import INSTALLED
from tests.conformance.harness import run_python


def value_of(kind: str, function, *arguments):
    cell = ffi.new(f"{kind} *")
    ok(function(*arguments, cell))
    return cell[0]


# ---- versions ----


def test_runtime_version_is_that_of_the_headers():
    parts = [ffi.new("int32_t *") for _ in range(3)]
    ok(lib.aclrtGetVersion(*parts))
    assert [part[0] for part in parts] == [1, 16, 0]
    assert (lib.ACL_MAJOR_VERSION, lib.ACL_MINOR_VERSION, lib.ACL_PATCH_VERSION) == (1, 16, 0)


def told(expression: str, texts: list[str]) -> list:
    """What a process is told when its installation's version files have each of these texts."""
    source = f"""
from tests.conformance.ascend.test_acl_init import ffi, install, lib

def number(name):
    cell = ffi.new("int32_t *")
    return lib.aclsysGetVersionNum(ffi.new("char[]", name), cell) or cell[0]

def text(name):
    cell = ffi.new("char[128]")
    return lib.aclsysGetVersionStr(ffi.new("char[]", name), cell) or ffi.string(cell).decode()

def parts():
    cell = ffi.new("aclCANNPackageVersion *")
    fields = ("version", "majorVersion", "minorVersion", "releaseVersion", "patchVersion")
    return lib.aclsysGetCANNVersion(0, cell) or [ffi.string(getattr(cell, field)).decode() for field in fields]

answers = []
for content in {texts!r}:
    install(content)
    answers.append({expression})
print(answers)
"""
    return ast.literal_eval(run_python(source, INSTALLED))


def test_version_numbers():
    """x*10000000 + y*100000 + z*1000, minus 300/200/100 for alpha/beta/rc, plus the number behind it."""
    numbers = {"8.5.0": 80500000, "9.1.2": 90102000, "0.0.1": 1000, "8.5.0-alpha.2": 80499702, "8.5.0-beta.1": 80499801,
               "8.5.0-rc.3": 80499903, "8.5.1.RC2": 80500902, "10.20.30": 102030000, "8.5.0-rc": 80499900}
    texts = [f"# a comment\nVersion={version}\nArch=x86_64\n" for version in numbers]
    assert told("(text(b'ops_nn'), number(b'ops-nn'))", texts) == list(numbers.items())


def test_texts_that_are_no_version_numbers():
    wrong = ["8.5", "x.y.z", "", "8.5.0-gamma.1", "8.5.0x", "100.0.0", "-1.0.0", "8..0", "8.5.0-rc.x"]
    assert told("number(b'ops_nn')", [f"Version={version}\n" for version in wrong]) == [500000] * len(wrong)


def test_parts_of_a_package_version():
    assert told("parts()", ["Version=8.5.RC1.alpha002\n"]) == [["8.5.RC1.alpha002", "8", "5", "RC1", "alpha002"]]


def test_packages_that_are_not_installed():
    names = [b"", b"nothing", b"../toolkit", b"x" * 5000]
    assert told(f"[text(name) for name in {names!r}]", ["Version=8.5.0\n"]) == [[100003] * len(names)]


def test_a_very_long_version_is_cut():
    assert told("text(b'toolkit')", ["Version=" + "9" * 400 + "\n"]) == ["9" * 127]


# ---- options ----


def test_options_of_process_and_context():
    with device(), context():
        for option in range(3):
            ok(lib.aclrtSetSysParamOpt(option, 0))
            assert lib.aclrtCtxGetSysParamOpt(option, ffi.new("int64_t *")) == 107021
            ok(lib.aclrtSetSysParamOpt(option, 1))
            assert value_of("int64_t", lib.aclrtGetSysParamOpt, option) == 1
            ok(lib.aclrtCtxSetSysParamOpt(option, 0))
            assert value_of("int64_t", lib.aclrtCtxGetSysParamOpt, option) == 0
            assert value_of("int64_t", lib.aclrtGetSysParamOpt, option) == 0  # also kept for the process
        with context():
            assert lib.aclrtCtxGetSysParamOpt(0, ffi.new("int64_t *")) == 107021


def test_options_are_0_before_they_are_set():
    source = """
from understudy.ascend import ffi, lib
value = ffi.new("int64_t *", 5)
print([(lib.aclrtGetSysParamOpt(option, value), value[0]) for option in range(3)])
"""
    assert run_python(source, {}).strip() == "[(0, 0), (0, 0), (0, 0)]"


# ---- overflow ----


@pytest.mark.parametrize("soc, default", [("Ascend910B", 1), ("Ascend910", 0)])
def test_overflow_mode(soc, default):
    source = """
from understudy.ascend import ffi, lib
mode = ffi.new("aclrtFloatOverflowMode *")
lib.aclrtSetDevice(0); lib.aclrtGetDeviceSatMode(mode); print(int(mode[0]))
for wanted in (0, 1):
    lib.aclrtSetDeviceSatMode(wanted); lib.aclrtGetDeviceSatMode(mode); print(int(mode[0]))
"""
    assert run_python(source, {"UNDERSTUDY_SOC": soc}).split() == [str(default), "0", "1"]


def test_overflow_status_is_written_in_stream_order():
    with device(), memory(64) as block:
        ok(lib.aclrtMemsetAsync(block, 64, 0xFF, 64, ffi.NULL))
        ok(lib.aclrtGetOverflowStatus(block, 64, ffi.NULL))
        ok(lib.aclrtSynchronizeStream(ffi.NULL))
        assert download(block, 64) == bytes(64)
        assert lib.aclrtResetOverflowStatus(ffi.NULL) == 0


# ---- devices ----


def test_device_information():
    with device():
        assert value_of("uint32_t", lib.aclrtGetDeviceCount) >= 1
        assert value_of("aclrtRunMode", lib.aclrtGetRunMode) == lib.ACL_HOST
        assert value_of("aclrtDeviceStatus", lib.aclrtQueryDeviceStatus, 0) == lib.ACL_RT_DEVICE_STATUS_NORMAL
        free, total = ffi.new("size_t *"), ffi.new("size_t *")
        ok(lib.aclrtGetMemInfo(lib.ACL_HBM_MEM, free, total))
        assert value_of("int64_t", lib.aclrtGetDeviceInfo, 0, lib.ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE) == total[0]
        assert value_of("int64_t", lib.aclrtGetDeviceInfo, 0, lib.ACL_DEV_ATTR_PHY_CHIP_ID) == 0
        for attribute, capability in ((lib.ACL_DEV_ATTR_CUBE_CORE_NUM, 0), (lib.ACL_DEV_ATTR_VECTOR_CORE_NUM, 1),
                                      (lib.ACL_DEV_ATTR_L2_CACHE_SIZE, 2)):
            cores = value_of("int64_t", lib.aclGetDeviceCapability, 0, capability)
            assert value_of("int64_t", lib.aclrtGetDeviceInfo, 0, attribute) == cores > 0
        info = ffi.new("aclrtUtilizationInfo *")
        ok(lib.aclrtGetDeviceUtilizationRate(0, info))
        assert info.cubeUtilization == info.vectorUtilization == -1
        assert info.aicpuUtilization == info.memoryUtilization == -1


def test_the_default_context_is_active_while_the_device_is_set():
    source = """
from understudy.ascend import ffi, lib
flags, active = ffi.new("uint32_t *"), ffi.new("int32_t *")
def state(): assert lib.aclrtGetPrimaryCtxState(1, flags, active) == 0; print(flags[0], active[0])
state(); lib.aclrtSetDevice(1); state(); lib.aclrtResetDevice(1); state()
lib.aclrtSetDevice(1); lib.aclrtSetDevice(1); lib.aclrtResetDeviceForce(1); state()
print(lib.aclrtResetDevice(1))
"""
    assert run_python(source, ALONE).split() == ["0", "0", "0", "1", "0", "0", "0", "0", "507007"]


def test_references_of_init():
    source = """
from understudy.ascend import ffi, lib
count = ffi.new("uint64_t *", 99)
print(lib.aclFinalizeReference(count), count[0])
print([lib.aclInit(ffi.NULL) for _ in range(3)])
for _ in range(4): print(lib.aclFinalizeReference(count), count[0])
print(lib.aclFinalize(), lib.aclInit(ffi.NULL), lib.aclFinalizeReference(ffi.NULL))
"""
    assert run_python(source, {}).split("\n")[:-1] == [
        "100037 99", "[0, 100002, 100002]", "0 2", "0 1", "0 0", "100037 0", "100037 0 0"]  # fmt: skip


def test_peers():
    source = """
from understudy.ascend import ffi, lib
answer = ffi.new("int32_t *")
print(lib.aclrtDeviceCanAccessPeer(answer, 0, 1), answer[0])
lib.aclrtSetDevice(0)
print(lib.aclrtDeviceEnablePeerAccess(1, 0), lib.aclrtDeviceDisablePeerAccess(1))
"""
    assert run_python(source, ALONE).split() == ["0", "1", "0", "0"]


KERNEL_ON_PEER_MEMORY = """
from understudy.ascend import ffi, lib
from tests.conformance.ascend.acl_support import Out, address_of, ok
from tests.conformance.harness import last_rule
shape = ffi.new("int64_t[1]", [4])
def tensor(device):
    ok(lib.aclrtSetDevice(device))
    block = Out()
    ok(lib.aclrtMalloc(block.cell, 16, 0))
    ok(lib.aclrtMemset(block.value, 16, 0, 16))
    return lib.aclCreateTensor(shape, 1, lib.ACL_FLOAT, ffi.NULL, 0, lib.ACL_FORMAT_ND, shape, 1, block.value)
def run(on, tensors):
    ok(lib.aclrtSetDevice(on))
    stream = Out()
    ok(lib.aclrtCreateStream(stream.cell))  # a fault stays on its stream
    size, executor = ffi.new("uint64_t *"), ffi.new("aclOpExecutor **")
    ok(lib.aclnnSoftMarginLossBackwardGetWorkspaceSize(*tensors[:3], 0, tensors[3], size, executor))
    ok(lib.aclnnSoftMarginLossBackward(ffi.NULL, 0, executor[0], stream.value))
    status = lib.aclrtSynchronizeStream(stream.value)
    print(status, last_rule() if status else "")
    ok(lib.aclrtDestroyStream(stream.value))
here, there = tensor(0), tensor(1)
input_there, output_there = [here, there, here, here], [here, here, here, there]
run(0, input_there); run(0, output_there)
ok(lib.aclrtSetDevice(0))
ok(lib.aclrtDeviceEnablePeerAccess(1, 0))
run(0, input_there); run(0, output_there); run(0, [there] * 4)
run(1, input_there)  # the other way is not enabled
ok(lib.aclrtSetDevice(0))
ok(lib.aclrtDeviceDisablePeerAccess(1))
run(0, input_there)
ok(lib.aclrtSetDevice(1)); ok(lib.aclrtDeviceEnablePeerAccess(0, 0))
run(1, input_there)
ok(lib.aclrtResetDeviceForce(0))
here = tensor(0)
run(1, [here, there, here, there])  # a reset of the owner ends the access
"""


def test_kernels_use_the_memory_of_peers_that_are_enabled():
    refused = "507015 aclrtSynchronizeStream/stream/kernel-fault"
    assert [line.strip() for line in run_python(KERNEL_ON_PEER_MEMORY, ALONE).splitlines()] == [
        refused, refused, "0", "0", "0", refused, refused, "0", refused]  # fmt: skip
