"""UNDERSTUDY_CHECK: each check finds its mistake, names the calls involved, and stays silent about correct programs."""

import pathlib
import re
import signal
import sys

import pytest

from tests import native
from tests.conformance.harness import run_isolated

PROGRAM = pathlib.Path(__file__).parent / "mistakes.c"
ALL = "memory,init,sync,race,leak"



def at(text, function="main"):
    """The place of a line of the program, as messages name it."""
    line = 1 + next(i for i, line in enumerate(PROGRAM.read_text().splitlines()) if text in line)
    return f" at {re.escape(str(PROGRAM))}:{line} in {function}"


MALLOC = "from aclrtMalloc" + at("aclrtMalloc(&address", "device_memory")
LAUNCH = "aclnnSoftMarginLossBackward" + at("CHECK(aclnnSoftMarginLossBackward(NULL", "launch")
FINDINGS = {
    "init": [f"check init: aclnnSoftMarginLossBackward reads {name} at .*, byte 0 of block #1 .*{MALLOC}\\), which was never "
             "written" + at("CHECK(aclnnSoftMarginLossBackward(NULL",
                            "launch") for name in ("gradOutput", "self", "target")],
    "sync": [f"check sync: the host copies 12000 bytes .* while {LAUNCH}, which writes there.*"
             + at("aclrtMemcpy(host, sizeof host, output_address")],
    "early-free": [f"check memory: block #1 .* is freed while {LAUNCH}, which uses it.*" + at("aclrtFree(input_address)")],
    "overflow": ["check memory: the 2 bytes behind block #3 \\(100 bytes from aclrtMallocHost" + at("aclrtMallocHost(") + "\\)"
                 " were written to" + at("aclrtFreeHost(")],
    "beyond": [f"check memory: aclrtMemcpy uses 12008 bytes from byte 0 on of block #3 \\(12000 bytes {MALLOC}\\).*"
               + at("in the page, but not asked for"),
               "check memory: aclrtMemcpy uses 64 bytes from byte 0 on of block #4 \\(16 bytes from aclrtMalloc"
               + at("aclrtMalloc(&block, 16") + "\\).*" + at("aclrtMemcpy(block, 64")],
    "leak": [f"check leak: block #2 .*{MALLOC}\\) was not freed$", "check leak: 1 streams", "check leak: 1 aclTensor"],
}  # fmt: skip


def findings(mistake, checks, mode="deferred"):
    program = native.build_vendor(PROGRAM, "ascend", flags=("-g", "-fno-inline"))
    done = native.run([program, mistake], {"UNDERSTUDY_CHECK": checks, "UNDERSTUDY_STREAM": mode})
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    return [line for line in done.stderr.splitlines() if ": check " in line]


@pytest.mark.parametrize("mistake", FINDINGS)
def test_each_mistake_is_found(mistake):
    found = findings(mistake, ALL)
    assert len(found) == len(FINDINGS[mistake]), found
    for pattern in FINDINGS[mistake]:
        assert any(re.search(pattern, line) for line in found), (pattern, found)


@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
def test_a_correct_program_has_no_findings(mode):
    assert findings("none", ALL, mode) == []


@pytest.mark.parametrize("mistake", FINDINGS)
def test_nothing_is_checked_unless_asked_for(mistake):
    assert findings(mistake, "") == []


@pytest.mark.parametrize(("mistake", "check"), [("init", "init"), ("sync", "sync"), ("early-free", "memory"),
                                                ("overflow", "memory"), ("beyond", "memory"), ("leak", "leak")])
def test_checks_are_independent(mistake, check):
    others = ",".join(name for name in ALL.split(",") if name != check)
    assert findings(mistake, check) != []
    assert findings(mistake, others) == []


@pytest.mark.parametrize("mistake", [*FINDINGS, "none"])
def test_findings_set_the_exit_status(mistake):
    """Also what is only found at the end; what the program printed is there."""
    program = native.build_vendor(PROGRAM, "ascend", flags=("-g", "-fno-inline"))
    settings = {"UNDERSTUDY_CHECK": ALL, "UNDERSTUDY_STREAM": "deferred", "UNDERSTUDY_CHECK_EXIT": "47"}
    done = native.run([program, mistake], settings)
    assert (done.returncode, done.stdout) == (0 if mistake == "none" else 47, "done\n"), done.stderr


@pytest.mark.parametrize(("checks", "status"), [("refusals", 9), ("", 3), ("memory", 3)])
def test_refusals_are_findings_when_asked_for(checks, status):
    source = native.work_folder() / "refused.c"
    source.write_text("#include <acl/acl.h>\nint main(void) { return aclrtMalloc(0, 1, 0) == ACL_SUCCESS ? 0 : 3; }\n")
    program = native.build_vendor(source, "ascend")
    done = native.run([program], {"UNDERSTUDY_CHECK": checks, "UNDERSTUDY_CHECK_EXIT": "9"})
    assert done.returncode == status, done.stderr
    assert ("aclrtMalloc/devPtr/null" in done.stderr) == (checks == "refusals")
    done = native.run([program], {"UNDERSTUDY_CHECK": checks, "UNDERSTUDY_CHECK_EXIT": "none"})
    assert done.returncode == 3 and 'UNDERSTUDY_CHECK_EXIT is "none"' in done.stderr


HANDLED = """
import ctypes, faulthandler, sys
from understudy.maca import ffi, lib
pinned, block, stream = ffi.new("void **"), ffi.new("void **"), ffi.new("mcStream_t *")
assert lib.mcMallocHost(pinned, 4096, 0) == lib.mcMalloc(block, 4096) == lib.mcStreamCreate(stream) == 0
faulthandler.enable()
assert lib.mcMemcpyAsync(pinned[0], block[0], 4096, lib.mcMemcpyDeviceToHost, stream[0]) == 0
ctypes.memset(int(ffi.cast("uintptr_t", pinned[0])) if sys.argv[1] == "early" else 8, 1, 1)
print("went on")
"""


def test_a_handler_of_the_program_hides_no_access_and_gets_what_is_not_ours():
    settings = {"UNDERSTUDY_CHECK": "sync", "UNDERSTUDY_STREAM": "deferred"}
    early = native.run([sys.executable, "-c", HANDLED, "early"], settings)
    assert (early.returncode, early.stdout) == (0, "went on\n") and "check sync: host code touches" in early.stderr
    wild = native.run([sys.executable, "-c", HANDLED, "wild"], settings)
    assert wild.returncode == -signal.SIGSEGV and "Fatal Python error" in wild.stderr and "check" not in wild.stderr


def test_an_unknown_check_is_reported():
    program = native.build_vendor(PROGRAM, "ascend", flags=("-g", "-fno-inline"))
    done = native.run([program], {"UNDERSTUDY_CHECK": "memory,everything"})
    assert 'UNDERSTUDY_CHECK has "everything"; known checks: memory, init, sync, race, leak, workspace' in done.stderr


@pytest.mark.parametrize("blanks", ["memory, refusals", " memory ,\trefusals ", "memory refusals", ",memory,,refusals,"])
def test_blanks_around_names_are_no_part_of_them(blanks):
    """mcdnnCreate(NULL) is refused, which is a finding only for the check behind the blank."""
    code = "from understudy.maca import ffi, lib; assert lib.mcdnnCreate(ffi.NULL) != 0"
    done = native.run([sys.executable, "-c", code], {"UNDERSTUDY_CHECK": blanks, "UNDERSTUDY_CHECK_EXIT": "47"})
    assert done.returncode == 47 and "known checks" not in done.stderr, done.stderr


THREADS = pathlib.Path(__file__).parents[1] / "threads"
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples_c"
CORRECT = [("ascend", THREADS / "ascend_threads.c"), ("maca", THREADS / "maca_threads.c"),
           *((file.relative_to(EXAMPLES).parts[0], file) for file in sorted(EXAMPLES.rglob("*.c"))
             if file.relative_to(EXAMPLES).parts[0] != "ftdsp")]  # fmt: skip


@pytest.mark.parametrize(("stack", "source"), CORRECT, ids=lambda value: getattr(value, "stem", value))
def test_programs_that_synchronise_have_no_findings(stack, source):
    program = native.build_vendor(source, stack)
    checks = "memory,init,sync,race" + ("" if source.is_relative_to(THREADS) else ",workspace")
    done = native.run([program], {"UNDERSTUDY_CHECK": checks, "UNDERSTUDY_STREAM": "deferred"})
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if ": check " in line] == []


# What makes an object, and what one that is left is called.
LEFT = {
    "mcdnnCreate(it)": "mcDNN handles",
    **{f"mcdnnCreate{name}(it)": what for name, what in {
        "TensorDescriptor": "tensor descriptors", "ActivationDescriptor": "activation descriptors",
        "PoolingDescriptor": "pooling descriptors", "DropoutDescriptor": "dropout descriptors",
        "LRNDescriptor": "LRN descriptors", "SpatialTransformerDescriptor": "spatial transformer descriptors",
        "OpTensorDescriptor": "operation descriptors", "ReduceTensorDescriptor": "reduction descriptors",
        "FilterDescriptor": "filter descriptors", "AlgorithmDescriptor": "algorithm descriptors",
        "TensorTransformDescriptor": "tensor transform descriptors", "ConvolutionDescriptor": "convolution descriptors",
        "RNNDescriptor": "RNN descriptors", "RNNDataDescriptor": "RNN data descriptors",
        "CTCLossDescriptor": "CTC loss descriptors"}.items()},
    "mcdnnCreateAlgorithmPerformance(it, 1)": "algorithm performances",
    "mcdnnCreateFusedOpsConstParamPack(it, 0)": "packs of constants",
    "mcdnnCreateFusedOpsVariantParamPack(it, 0)": "packs of variants",
    "mcdnnCreateFusedOpsPlan(it, 0)": "plans of fused operations",
    "mcblasCreate(it)": "mcBLAS handles",
    "mcblasLtCreate(it)": "mcBLASLt handles",
    "mcblasLtMatmulDescCreate(it, 68, 0)": "descriptions of products",
    "mcblasLtMatrixLayoutCreate(it, 0, 2, 2, 2)": "matrix layouts",
    "mcblasLtMatmulPreferenceCreate(it)": "preferences of products",
    "mcblasLtMatrixTransformDescCreate(it, 0)": "descriptions of transforms",
    "mcGraphInstantiate(it, graph, ffi.NULL, ffi.NULL, 0)": "executable graphs",
}  # fmt: skip
LEAVES = """
from understudy.kit.prototypes import prototype
from understudy.maca import ffi, lib
stream, graph = ffi.new("mcStream_t *"), ffi.new("mcGraph_t *")
assert lib.mcStreamCreate(stream) == lib.mcStreamBeginCapture(stream[0], 0) == lib.mcStreamEndCapture(stream[0], graph) == 0
graph = graph[0]
for call in CALLS:
    it = ffi.new(prototype("maca", call.split("(")[0]).parameters[0].kind)
    assert eval("lib." + call) == 0, call
"""


def test_objects_that_are_left_are_listed():
    source = LEAVES.replace("CALLS", repr(list(LEFT)))
    done = run_isolated([sys.executable, "-c", source], {"UNDERSTUDY_CHECK": "leak"})
    listed = re.findall(r"check leak: 1 (.*) not destroyed", done.stderr)
    assert sorted(listed) == sorted([*LEFT.values(), "streams"])


FRESH = """
#include "acl/acl.h"
#include <stdio.h>
int main(void)
{
    unsigned char host[1000];
    void *block;
    if (aclrtSetDevice(0) || aclrtMalloc(&block, sizeof host, ACL_MEM_MALLOC_HUGE_FIRST) ||
        aclrtMemcpy(host, sizeof host, block, sizeof host, ACL_MEMCPY_DEVICE_TO_HOST)) {
        return 1;
    }
    unsigned poisoned = 0;
    for (unsigned i = 0; i < sizeof host; i++) {
        poisoned += host[i] == 0xff;
    }
    printf("%u\\n", poisoned);
    return 0;
}
"""


@pytest.mark.parametrize(("checks", "poisoned"), [("memory", "1000\n"), ("init,sync,leak", "0\n")])
def test_fresh_memory_holds_nan_only_on_request(checks, poisoned):
    source = native.work_folder() / "fresh.c"
    source.write_text(FRESH)
    program = native.build_vendor(source, "ascend")
    assert native.check([program], {"UNDERSTUDY_CHECK": checks}) == poisoned


UNWRITTEN = """
from tests.conformance.ascend import aclnn_support as support
from understudy.ascend import ffi, lib


def fresh(shape, kind=support.F32):
    memory = support.Memory(4096)
    sizes = ffi.new("int64_t[]", shape)
    strides = ffi.new("int64_t[]", support.row_major(shape))
    made = lib.aclCreateTensor(sizes, len(shape), kind.code, strides, 0, lib.ACL_FORMAT_ND, sizes, len(shape), memory.address)
    kept.append(memory)
    return made


kept = []
one = support.Tensor(support.F32, [1.0])
number = lib.aclCreateScalar(ffi.new("float *", 2), lib.ACL_FLOAT)
CALLS
"""
WRITE_ALL = """
support.run("aclnnInplaceZero", fresh([2, 3]))
support.run("aclnnInplaceOne", fresh([2, 3]))
support.run("aclnnInplaceFillScalar", fresh([2, 3]), number)
support.run("aclnnEye", 2, 3, fresh([2, 3]))
support.run("aclnnBincount", support.Tensor(support.I64, [0, 2]), None, 3, fresh([3], support.I64))
support.run("aclnnRReluWithNoise", one, fresh([1]), number, number, True, 0, 0, fresh([1]))
"""


@pytest.mark.parametrize("calls, found", [(WRITE_ALL, 0), ('support.run("aclnnInplaceMuls", fresh([2, 3]), number)', 1)])
def test_what_is_written_whole_need_not_have_been_written(calls, found):
    done = run_isolated([sys.executable, "-c", UNWRITTEN.replace("CALLS", calls)], {"UNDERSTUDY_CHECK": "init"})
    assert done.stderr.count(": check init") == found, done.stderr
