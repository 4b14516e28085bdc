"""understudy trace and replay, on a correct program and on one that is refused."""

import json
import pathlib

import pytest

from tests import native
from tests.kit.support import assert_error_of_use, program, understudy

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples_c/ascend/soft_margin_loss_backward/soft_margin_loss_backward.c"

REFUSED = """
#include "acl/acl.h"
#include "aclnnop/aclnn_soft_margin_loss_backward.h"
int main(void)
{
    int64_t shape[] = {2, 3}, wrong[] = {3, 2};
    void *p;
    aclrtSetDevice(0);
    aclrtMalloc(&p, 24, ACL_MEM_MALLOC_HUGE_FIRST);
    aclTensor *a = aclCreateTensor(shape, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, 2, p);
    aclTensor *b = aclCreateTensor(wrong, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, wrong, 2, p);
    uint64_t size;
    aclOpExecutor *executor;
    aclnnSoftMarginLossBackwardGetWorkspaceSize(a, a, a, 0, b, &size, &executor);
    aclDestroyTensor(a);
    aclDestroyTensor(b);
    return 3;
}
"""

# As the PyTorch adapter does it: a library of its own, opened for itself alone, calls and looks up functions.
PLUGIN = """
#include "acl/acl.h"
int plugin(int (*create)(uint32_t *)) { uint32_t count; return aclrtGetDeviceCount(&count) + create(&count); }
"""
OPENS = """
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
int main(void)
{
    void *plugin = dlopen("PLUGIN", RTLD_NOW | RTLD_LOCAL);
    void *runtime = dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL);
    int (*call)(void *) = (int (*)(void *))dlsym(plugin, "plugin");
    void *looked_up = dlsym(runtime, "aclrtGetStreamAvailableNum");
    return call(looked_up) == 0 && dlsym(runtime, "aclNothing") == NULL && getenv("LD_PRELOAD") == NULL ? 5 : 6;
}
"""

SOFTMAX = """
#include <mc_runtime.h>
#include <mcdnn/mcdnn.h>
int main(void)
{
    float one = 1.0f, zero = 0.0f;
    int dims[] = {2, 3, 4, 5}, strides[] = {60, 20, 5, 1};
    void *p;
    mcdnnHandle_t handle;
    mcdnnTensorDescriptor_t x, y;
    mcMalloc(&p, 480);
    mcdnnCreate(&handle);
    mcdnnCreateTensorDescriptor(&x);
    mcdnnCreateTensorDescriptor(&y);
    mcdnnSetTensorNdDescriptor(x, MCDNN_DATA_FLOAT, 4, dims, strides);
    mcdnnSetTensor4dDescriptor(y, MCDNN_TENSOR_NCHW, MCDNN_DATA_HALF, 2, 3, 4, 5);
    mcdnnSoftmaxForward(handle, MCDNN_SOFTMAX_LOG, MCDNN_SOFTMAX_MODE_CHANNEL, &one, x, p, &zero, y, p);
    mcdnnDestroyTensorDescriptor(x);
    return mcdnnDestroyTensorDescriptor(x);
}
"""


def link_flags(stack):
    from understudy.paths import STACKS

    vendor = STACKS[stack]
    return [*(f"-I{path}" for path in vendor.include_paths), f"-L{vendor.library_path}",
            *(f"-l{name}" for name in vendor.link)]  # fmt: skip


def traced(tmp_path, stack, source):
    binary = program(tmp_path, "traced", source, link_flags(stack))
    done = understudy("trace", binary, "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    return done, [event for event in events if event["ph"] == "X"]


def numbered(events, name):
    return [event["args"]["call"] for event in events if event["cat"] == "call" and event["name"] == name]


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trace")
    return folder, *traced(folder, "ascend", EXAMPLE.read_text())


def test_the_program_behaves_as_without_tracing(example):
    _, done, _ = example
    assert done.returncode == 0 and "none: -0.5 1.4621172 -2.6423912" in done.stdout


def test_calls_kernels_and_their_facts(example):
    _, _, events = example
    calls = [event for event in events if event["cat"] == "call"]
    assert [call["args"]["call"] for call in calls] == list(range(1, len(calls) + 1))
    assert calls[0]["name"] == "aclInit" and calls[-1]["name"] == "aclFinalize"
    malloc = next(call for call in calls if call["name"] == "aclrtMalloc")
    assert malloc["args"]["size"] == 24 and malloc["args"]["status"] == 0 and malloc["args"]["*devPtr"] != "0x0"
    tensor = next(call for call in calls if call["name"] == "aclCreateTensor")
    assert bytes.fromhex(tensor["args"]["viewDims[]"]) == bytes([2, *[0] * 7, 3, *[0] * 7])
    kernels = [event for event in events if event["cat"] == "kernel"]
    assert [kernel["name"] for kernel in kernels] == ["aclnnSoftMarginLossBackward"] * 2
    assert all(kernel["args"]["bytes"] == 4 * 24 and kernel["args"]["fault"] == 0 for kernel in kernels)


def test_a_kernel_starts_after_its_call(example):
    _, _, events = example
    call = next(e for e in events if e["cat"] == "call" and e["name"] == "aclnnSoftMarginLossBackward")
    kernel = next(e for e in events if e["cat"] == "kernel")
    assert kernel["ts"] >= call["ts"] and kernel["tid"] != call["tid"]


def test_the_table_counts(example):
    _, done, _ = example
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("kernel"))
    assert row[1:3] == ["aclnnSoftMarginLossBackward", "2"] and row[5] == "192"


def test_a_refused_call_is_repeated(tmp_path):
    done, events = traced(tmp_path, "ascend", REFUSED)
    assert done.returncode == 3
    number = numbered(events, "aclnnSoftMarginLossBackwardGetWorkspaceSize")[0]
    kept = tmp_path / "replay.c"
    again = understudy("replay", tmp_path / "trace.json", number, "-o", kept)
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[-1] == "aclnnSoftMarginLossBackwardGetWorkspaceSize: 161002 (traced: 161002)"
    assert "aclDestroyTensor" not in kept.read_text()
    binary = tmp_path / "replay"
    native.check(["gcc", "-w", kept, "-o", binary, *link_flags("ascend")])


def test_functions_of_libraries_that_a_program_opens_itself(tmp_path):
    plugin = tmp_path / "libplugin.so"
    (tmp_path / "plugin.c").write_text(PLUGIN)
    native.check(["gcc", "-shared", "-fPIC", tmp_path / "plugin.c", "-o", plugin, *link_flags("ascend")])
    binary = program(tmp_path, "opens", OPENS.replace("PLUGIN", str(plugin)), ["-ldl"])
    done = understudy("trace", "-o", tmp_path / "trace.json", binary)
    assert done.returncode == 5, done.stderr
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events if event["ph"] == "X"] == ["aclrtGetDeviceCount", "aclrtGetStreamAvailableNum"]


def test_descriptors_and_scaling_factors_are_repeated(tmp_path):
    done, events = traced(tmp_path, "maca", SOFTMAX)
    assert done.returncode == 3, done.stderr  # MCDNN_STATUS_BAD_PARAM
    for name, status in (("mcdnnSoftmaxForward", 3), ("mcdnnSetTensorNdDescriptor", 0)):
        again = understudy("replay", tmp_path / "trace.json", numbered(events, name)[0])
        assert (again.returncode, again.stdout.splitlines()[-1]) == (0, f"{name}: {status} (traced: {status})")
    twice = numbered(events, "mcdnnDestroyTensorDescriptor")[1]
    again = understudy("replay", tmp_path / "trace.json", twice)
    assert again.stdout.splitlines()[-1] == f"mcdnnDestroyTensorDescriptor: {done.returncode} (traced: {done.returncode})"


def test_a_kernel_of_the_dsp_is_traced(tmp_path):
    source = """
#include <binarycrossentropygrad.h>
int main(void)
{
    float x[3] = {0.1f, 0.2f, 0.3f}, y[3] = {0}, one[3] = {1, 1, 1}, dx[3];
    fp_binarycrossentropygrad_s(3, 0, x, y, 0, one, dx, 0, 0xff);
    return 0;
}
"""
    done, events = traced(tmp_path, "ftdsp", source)
    assert done.returncode == 0
    call = next(event for event in events if event["name"] == "fp_binarycrossentropygrad_s")
    assert call["args"]["input_size"] == 3 and call["args"]["core_mask"] == 255
    assert understudy("replay", tmp_path / "trace.json", 1).stdout == "fp_binarycrossentropygrad_s\n"


def test_errors_of_use(tmp_path):
    assert_error_of_use(understudy("trace", "no-such-program"), "no program 'no-such-program'")
    assert_error_of_use(understudy("trace", "true", "-o", tmp_path / "t.json"), "called no function of the stacks")
    assert_error_of_use(understudy("replay", tmp_path / "absent.json", "1"), "cannot read")
    (tmp_path / "other.json").write_text("[]")
    assert_error_of_use(understudy("replay", tmp_path / "other.json", "1"), "is no timeline")
