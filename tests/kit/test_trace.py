"""understudy trace and replay, on a correct program and on one that is refused."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest

from tests import native
from tests.kit.support import AARCH64, assert_error_of_use, change_machine, program, understudy
from understudy import toolchain
from understudy.__main__ import make_parser
from understudy.errors import UsageError
from understudy.kit import interposer, replay, table, trace
from understudy.kit.prototypes import prototypes

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

CAPTURED = """
#include <mc_runtime.h>
static void count(void *number) { ++*(int *)number; }
int main(void)
{
    static _Alignas(4096) char host[4096];
    int number = 0;
    void *p, *seen;
    mcStream_t stream;
    mcGraph_t graph;
    mcGraphExec_t executable;
    mcMalloc(&p, 64);
    mcStreamCreate(&stream);
    mcStreamBeginCapture(stream, mcStreamCaptureModeGlobal);
    mcMemsetAsync(p, 1, 64, stream);
    mcStreamSynchronize(stream);
    mcStreamEndCapture(stream, &graph);
    mcStreamBeginCapture(stream, mcStreamCaptureModeGlobal);
    mcMemsetAsync(p, 1, 64, stream);
    mcLaunchHostFunc(stream, count, &number);
    mcStreamEndCapture(stream, &graph);
    mcGraphInstantiate(&executable, graph, NULL, NULL, 0);
    mcGraphLaunch(executable, stream);
    mcStreamSynchronize(stream);
    mcHostRegister(host, sizeof host, 0);
    mcHostGetDevicePointer(&seen, host, 0);
    mcHostUnregister(host);
    mcDeviceReset();
    mcFree(p);
    return number;
}
"""

CAPTURED_MODEL = """
#include "acl/acl.h"
int main(void)
{
    aclInit(NULL);
    aclrtSetDevice(0);
    void *p;
    aclrtStream stream;
    aclmdlRI model;
    aclrtCreateStream(&stream);
    aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST);
    aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
    aclrtMemsetAsync(p, 64, 1, 64, stream);
    aclmdlRICaptureEnd(stream, &model);
    int status = aclmdlRIExecuteAsync(model, stream);
    aclrtSynchronizeStream(stream);
    return status;
}
"""


def link_flags(stack):
    from understudy.paths import STACKS

    vendor = STACKS[stack]
    return [*(f"-I{path}" for path in vendor.include_paths), f"-L{vendor.library_path}",
            *(f"-l{name}" for name in vendor.link)]  # fmt: skip


def understudy_flags():
    """For our own header and library."""
    return [*toolchain.search_flags([]), "-lunderstudy"]


def traced(tmp_path, stack, source, more=()):
    binary = program(tmp_path, "traced", source, [*link_flags(stack), *more])
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


def test_captures_registered_memory_and_resets_are_repeated(tmp_path):
    done, events = traced(tmp_path, "maca", CAPTURED)
    assert done.returncode == 1, done.stderr
    calls = [event for event in events if event["cat"] == "call"]
    for name in ("mcStreamSynchronize", "mcGraphLaunch", "mcHostGetDevicePointer", "mcHostUnregister", "mcFree"):
        number = numbered(events, name)[0]
        status = calls[number - 1]["args"]["status"]
        assert (status != 0) == (name in ("mcStreamSynchronize", "mcFree")), "in a capture, after a reset"
        again = understudy("replay", tmp_path / "trace.json", number, "-o", tmp_path / f"{name}.c")
        assert (again.returncode, again.stdout.splitlines()[-1]) == (0, f"{name}: {status} (traced: {status})"), again.stderr
    launch = (tmp_path / "mcGraphLaunch.c").read_text()
    assert launch.count("mcStreamBeginCapture(") == 1, "of the capture that gave the graph"
    assert "static long function0(void)" in launch and "(void *)function0, " in launch


def test_a_captured_model_is_repeated(tmp_path):
    done, events = traced(tmp_path, "ascend", CAPTURED_MODEL)
    assert done.returncode == 0, done.stderr
    again = understudy("replay", tmp_path / "trace.json", numbered(events, "aclmdlRIExecuteAsync")[0])
    assert again.returncode == 0, again.stdout + again.stderr
    assert [line.split(":")[0] for line in again.stdout.splitlines()][-4:] == [
        "aclmdlRICaptureBegin", "aclrtMemsetAsync", "aclmdlRICaptureEnd", "aclmdlRIExecuteAsync"]  # fmt: skip


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
    again = understudy("replay", tmp_path / "trace.json", 1)
    assert (again.returncode, again.stdout) == (0, "fp_binarycrossentropygrad_s: 0 (traced: 0)\n"), again.stderr


LARGE = {"ascend": """
#include <acl/acl.h>
#include <stdlib.h>
int main(void)
{
    size_t n = 3 << 20;
    char *host = calloc(n, 1);
    void *p;
    aclrtSetDevice(0);
    aclrtMalloc(&p, n, ACL_MEM_MALLOC_HUGE_FIRST);
    return aclrtMemcpy(p, n, host, n, ACL_MEMCPY_HOST_TO_DEVICE) != 0;
}
""", "maca": """
#include <mc_runtime.h>
#include <stdlib.h>
int main(void)
{
    size_t n = 3 << 20;
    char *host = calloc(n, 1);
    void *p;
    mcMalloc(&p, n);
    return mcMemcpy(p, host, n, mcMemcpyHostToDevice) != 0;
}
""", "ftdsp": """
#include <add.h>
#include <stdlib.h>
int main(void)
{
    int n = 1 << 20;
    float *x = calloc(n, 4), *y = calloc(n, 4), *out = calloc(n, 4);
    fp_add_s(x, y, out, n, 0xff);
    return 0;
}
"""}  # fmt: skip


@pytest.mark.parametrize("stack, name", [("ascend", "aclrtMemcpy"), ("maca", "mcMemcpy"), ("ftdsp", "fp_add_s")])
def test_a_call_with_much_host_memory_is_repeated(tmp_path, stack, name):
    done, events = traced(tmp_path, stack, LARGE[stack])
    assert done.returncode == 0, done.stderr
    again = understudy("replay", tmp_path / "trace.json", numbered(events, name)[0])
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, f"{name}: 0 (traced: 0)"), again.stderr


# Each call with the status that the program itself sees. 3: a size, 5: a pointer, 6: a space, 7: an overlap (ftdsp/call.h).
FT_CALLS = """
#include <add.h>
#include <concat.h>
#include <fill.h>
#include <gather.h>
#include <glu.h>
#include <scatter_nd.h>
#include <stdio.h>
#include <switchlayer.h>
#include <understudy/understudy.h>
#define AT(address) ((float *)(address##ul))
static void tell(void) { printf("seen %d\\n", understudy_last_status()); understudy_clear_last_error(); }
int main(void)
{
    float h[16] = {0}, a[4], b[4], out[16], *split[2] = {a, b}, *inputs[2] = {a, b};
    int shape[1] = {4}, sizes[2] = {2, 2}, strides[1] = {1}, first[1] = {4}, second[1] = {3}, *shapes[2] = {first, second};
    int wide[2] = {2, 2}, tall[2] = {3, 2}, *tables[2] = {wide, tall}, *wrong[2] = {wide, shape};
    int indices[150] = {0}, many[1] = {150}, rows[1] = {4}, where[2] = {1, 1};
    float much[150];
    TensorC in = {4, 4, a}, to = {4, 4, b}, over = {4, 4, a + 1}, *tensors[1] = {&in};
    FillParameter fill = {shape, 1, 4, 4};
    fp_add_s(AT(0x80000000), AT(0x90000000), AT(0xA0000000), 4, 1); tell();
    fp_add_s(AT(0x10000000), AT(0x80000000), AT(0x90000000), 4, 1); tell();
    fp_add_s(h, h, h + 1, 4, 1);
    fp_add_s(h, h, h + 1, 4, 1); tell();
    fp_add_s((float *)((char *)h + 2), h, out, 2, 1); tell();
    fp_glu_s(h, split, out, 1, 0, shape, 2, sizes, strides, 2, 1); tell();
    fp_concat_s(inputs, tables, 2, 0, 2, out, 1); tell();
    fp_concat_s(inputs, wrong, 2, 0, 2, out, 1); tell();
    fp_gather_s(much, h, rows, 1, indices, many, 1, 0, 0, 1); tell();
    indices[149] = 4;
    fp_gather_s(much, h, rows, 1, indices, many, 1, 0, 0, 1); tell();
    fp_scatter_nd_s(out, rows, 1, indices, where, 2, h, 1); tell();
    switchlayer_s(tensors, &to, 0, 1); tell();
    switchlayer_s(tensors, &over, 0, 1); tell();
    fp_fill_s(h, out, &fill, 1); tell();
    fp_add_s(h, h, out, -1, 1);
    fp_add_s(h, h, out, 4, 1);
    printf("seen %d %s %s\\n", understudy_last_status(), understudy_last_rule(), understudy_last_error());
    return 0;
}
"""


def test_calls_of_the_dsp_are_repeated_with_their_memory(tmp_path):
    """Addresses of the chip, distances, shapes, tables of pointers and structures decide whether a call is legal."""
    plain = understudy("run", program(tmp_path, "plain", FT_CALLS, link_flags("ftdsp") + understudy_flags()))
    done, events = traced(tmp_path, "ftdsp", FT_CALLS, understudy_flags())
    seen = [line for line in done.stdout.splitlines() if line.startswith("seen")]
    assert done.returncode == 0 and seen == plain.stdout.splitlines(), "a program sees of its refusals what it sees without us"
    calls = [event for event in events if event["cat"] == "call"]
    statuses = [call["args"]["last_status"] for call in calls]
    asked = [status for index, status in enumerate(statuses) if index not in (2, 14, 15)]  # one line of the program tells of each
    assert [f"seen {status}" for status in asked] == seen[:-1] and seen[-1].startswith("seen 3 fp_add_s/n/negative n is -1")
    assert {0, 5, 6, 7} <= set(statuses) and statuses[2:4] == [7, 7] and statuses[-2:] == [3, 0]
    repeated = {call["args"]["call"]: understudy("replay", tmp_path / "trace.json", call["args"]["call"]) for call in calls}
    told = {number: (again.returncode, again.stdout) for number, again in repeated.items()}
    assert told == {call["args"]["call"]: (0, f"{call['name']}: {status} (traced: {status})\n")
                    for call, status in zip(calls, statuses)}  # fmt: skip


def test_every_table_of_the_dsp_has_a_count():
    functions = [one for one in prototypes().values() if one.stack == "ftdsp"]
    tables = {parameter.name for one in functions for parameter in one.parameters if re.search(r"\*\s*\*|\*.*\[", parameter.text)}
    assert tables == set(interposer.TABLE_COUNTS)
    assert not [parameter for one in functions for parameter in one.parameters if parameter.gives_handle], "the caller's own"


LAST_ERRORS = """
#include <mc_runtime.h>
int main(void)
{
    float time;
    mcEvent_t start, stop;
    mcEventCreate(&start);
    mcEventCreate(&stop);
    mcEventElapsedTime(&time, start, stop);
    mcGetLastError();
    mcGetLastError();
    mcEventRecord(start, 0);
    mcEventRecord(stop, 0);
    mcEventSynchronize(stop);
    mcEventElapsedTime(&time, start, stop);
    mcFree((void *)&time);
    mcPeekAtLastError();
    return 0;
}
"""


def test_last_errors_and_elapsed_times_are_repeated(tmp_path):
    _, events = traced(tmp_path, "maca", LAST_ERRORS)
    calls = [event for event in events if event["cat"] == "call"]
    names = ("mcEventElapsedTime", "mcGetLastError", "mcPeekAtLastError")
    chosen = [call["args"] for call in calls if call["name"] in names]
    # Each mcGetLastError is followed by what it asks itself, an mcPeekAtLastError.
    assert [call["status"] != 0 for call in chosen] == [True, True, True, False, False, False, True]
    for call in chosen:
        again = understudy("replay", tmp_path / "trace.json", call["call"])
        assert again.returncode == 0 and again.stdout.endswith(f": {call['status']} (traced: {call['status']})\n"), again.stdout


def test_what_a_trace_does_not_hold_is_said(tmp_path):
    source = """
#include <mc_runtime.h>
int main(void)
{
    mcMemPoolProps properties = {.allocType = mcMemAllocationTypePinned, .location = {mcMemLocationTypeDevice, 0}};
    mcMemPool_t pool;
    return mcMemPoolCreate(&pool, &properties);
}
"""
    done, _ = traced(tmp_path, "maca", source)
    assert done.returncode == 0, done.stderr
    again = understudy("replay", tmp_path / "trace.json", 1)
    assert again.returncode == 1 and "mcMemPoolCreate reads the structure props, whose contents are not in the trace" in again.stderr


def test_a_call_whose_status_is_not_in_the_trace_is_not_taken_for_repeated(tmp_path):
    """A library that has no understudy_last_status, say."""
    event = {"ph": "X", "cat": "call", "name": "fp_add_s", "ts": 1, "dur": 1, "pid": 1, "tid": 1,
             "args": {"x": "0x80000000", "y": "0x80000000", "out": "0x80000000", "n": 4, "core_mask": 1}}  # fmt: skip
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": [event]}))
    again = understudy("replay", file, 1)
    assert again.returncode == 1 and "no status of fp_add_s, which returns nothing: nothing was compared" in again.stderr


def test_host_memory_keeps_its_distances():
    assert replay.areas({0x7f0000000010, 0x7f0000000014, 0x7fff00000000}) == [(0x7f0000000000, 0x14), (0x7fff00000000, 0)]
    assert replay.areas({0x500000, 0x500000 + (1 << 30)}) == [(0x500000, 1 << 30)], "operands of this size may overlap"


def test_a_refusal_is_placed_in_the_program(tmp_path):
    source = """
#include <add.h>
int main(void)
{
    fp_add_s(0, 0, 0, -1, 0xff);
    return 0;
}
"""
    done, _ = traced(tmp_path, "ftdsp", source)
    assert re.search(r"n is -1 elements \(status 3\) (in main of traced|at .*:5 in main)$", done.stderr, re.MULTILINE), done.stderr


def test_a_half_by_value_is_traced_and_repeated(tmp_path):
    source = """
#include <dropout.h>
int main(void)
{
    half x[2] = {1, 2};
    hp_dropout_s(x, (half)-1.5f, 2, x, x, 0xff);
    return (float)x[1] != -6;
}
"""
    done, events = traced(tmp_path, "ftdsp", source)
    assert done.returncode == 0
    assert next(event for event in events if event["name"] == "hp_dropout_s")["args"]["scale"] == "-0x1.8p+0"
    again = understudy("replay", tmp_path / "trace.json", 1, "-o", tmp_path / "again.c")
    assert (again.returncode, again.stdout) == (0, "hp_dropout_s: 0 (traced: 0)\n"), again.stderr
    assert ", -0x1.8p+0, 2, " in (tmp_path / "again.c").read_text()


def test_arrows_lead_from_a_call_to_its_kernel(example):
    folder, _, events = example
    timeline = json.loads((folder / "trace.json").read_text())["traceEvents"]
    starts = {event["id"]: event for event in timeline if event["ph"] == "s"}
    ends = {event["id"]: event for event in timeline if event["ph"] == "f"}
    kernels = [event for event in events if event["cat"] == "kernel"]
    assert len(starts) == len(ends) >= len(kernels) > 0
    calls = {(call["tid"], call["ts"]) for call in events if call["name"] == "aclnnSoftMarginLossBackward"}
    for kernel in kernels:
        (end,) = [event for event in ends.values() if (event["tid"], event["ts"]) == (kernel["tid"], kernel["ts"])]
        start = starts[end["id"]]
        assert (start["tid"], start["ts"]) in calls and start["ts"] <= end["ts"]


def test_a_page_with_the_timeline(tmp_path):
    binary = program(tmp_path, "traced", REFUSED, link_flags("ascend"))
    assert understudy("trace", binary, "-o", tmp_path / "trace.html").returncode == 3
    page = (tmp_path / "trace.html").read_text()
    assert "aclrtMalloc" in page and not re.search(r"(src|href)\s*=|https?://", page), "it needs nothing else"
    events = json.loads(re.search(r"const events = (.*);\n", page)[1])
    assert any(event["name"] == "aclrtMalloc" for event in events)


def test_lines_of_a_process_that_was_killed():
    good = {"ph": "X", "cat": "call", "name": "mcInit", "args": {}, "result": {"status": 0}, "ts": 1, "dur": 2,
            "pid": 3, "tid": 4}  # fmt: skip
    line = json.dumps(good)
    damaged = [line[:30], "{}", "[1]", "null", line.replace('"ts": 1', '"ts": "x"'), '{"cat": "call"}', "\0\0", "[" * 100000]
    events, count = trace.events_of(["[", line + ",", *damaged, line])
    assert [event["args"] for event in events] == [{"call": 1, "status": 0}, {"call": 2, "status": 0}]
    assert count == len(damaged)


def test_the_file_of_the_library_is_an_array_that_nobody_closes(tmp_path):
    file = tmp_path / "raw"
    binary = program(tmp_path, "traced", EXAMPLE.read_text(), link_flags("ascend"))
    for _ in range(2):  # a second process appends
        assert understudy("run", binary, env={"UNDERSTUDY_TRACE": str(file)}).returncode == 0
    text = file.read_text()
    assert text.startswith("[\n") and text.endswith(",\n") and text.count("[\n") == 1
    events = json.loads(text.rstrip(",\n") + "]")
    assert sum(event["cat"] == "kernel" for event in events) == 4, "two of each process"


def test_a_full_disk_is_told(tmp_path):
    binary = program(tmp_path, "traced", EXAMPLE.read_text(), link_flags("ascend"))
    done = understudy("run", binary, env={"UNDERSTUDY_TRACE": "/dev/full"})
    assert done.returncode == 0 and done.stderr.count("No space left on device") == 1
    with pytest.raises(UsageError, match="cannot write /dev/full: No space left on device"):
        table.write("/dev/full", "text")


def test_a_place_that_cannot_be_written_is_told_before_the_program_runs(tmp_path):
    for place in (tmp_path, tmp_path / "none" / "trace.json"):
        done = understudy("trace", "-o", place, "touch", tmp_path / "ran")
        assert_error_of_use(done, f"cannot write {place}")
    assert not (tmp_path / "ran").exists()


def test_a_temporary_folder_with_a_space(tmp_path):
    odd = tmp_path / "with a space: and a colon"
    odd.mkdir()
    binary = program(tmp_path, "traced", REFUSED, link_flags("ascend"))
    (odd / "understudy").symlink_to(toolchain.cache_folder())  # where the tracing library is that other tests use
    environment = {"TMPDIR": str(odd), "XDG_CACHE_HOME": str(odd)}
    done = understudy("trace", binary, "-o", odd / "trace.json", env=environment)
    assert done.returncode == 3 and "aclrtMalloc" in done.stdout, done.stderr


def test_the_tracing_library_is_kept(tmp_path, monkeypatch):
    header, kept = tmp_path / "sdk/ascend/include/one.h", tmp_path / "cache/understudy"
    header.parent.mkdir(parents=True)
    header.write_text("int one(void);")
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept.parent))
    monkeypatch.setenv("UNDERSTUDY_SDK", str(tmp_path / "sdk"))
    monkeypatch.setattr(interposer, "source", lambda: "int traced;")
    made = [interposer.build(tmp_path / "none").stat().st_mtime_ns for _ in range(2)]
    assert made[0] == made[1] and len(list(kept.iterdir())) == 1
    header.write_text("int two(void);")
    interposer.build(tmp_path / "none")
    assert len(list(kept.iterdir())) == 2, "of other headers"
    library = tmp_path / "sdk/maca/lib/libmcdnn.so"
    library.parent.mkdir(parents=True)
    library.touch()
    interposer.build(tmp_path / "none")
    assert len(list(kept.iterdir())) == 3, "of another library"


def test_a_program_of_another_architecture(tmp_path):
    binary = program(tmp_path, "traced", REFUSED, link_flags("ascend"))
    change_machine(binary, AARCH64)
    assert_error_of_use(understudy("trace", binary, "-o", tmp_path / "t.json"), "Exec format error")


# ---- which calls a call needs ----


def call(name, process=1, thread=1, **arguments):
    return replay.Call({"name": name, "pid": process, "tid": thread, "args": {"status": 0, **arguments}})


def test_processes_and_threads_have_objects_of_their_own():
    made = [call("mcMalloc", process, size=8, **{"p": "0x7f0000000000", "*p": "0x100000000000"}) for process in (1, 2, 1)]
    calls = [*made, call("mcFree", 2, p="0x100000000000")]
    assert replay.needed(calls, 3) == [calls[1], calls[3]]
    calls = [call("aclrtResetDevice", thread=thread, deviceId=0) for thread in (1, 2, 1)]
    assert replay.needed(calls, 2) == [calls[0], calls[2]], "the other thread's ends nothing of this one"


def test_a_capture_that_has_ended_is_needed_for_its_graph_alone():
    stream, other = {"s": "0x100000001000"}, {"s": "0x100000002000"}
    calls = [call("mcStreamBeginCapture", mode=0, **stream), call("mcStreamQuery", **stream), call("mcStreamQuery", **other),
             call("mcStreamQuery", thread=2, **other), call("mcStreamEndCapture", thread=2, **stream, graph="0x7f0000000000",
                                                            **{"*graph": "0x100000003000"}),
             call("mcStreamQuery", **stream), call("mcGraphDestroy", graph="0x100000003000")]  # fmt: skip
    assert replay.needed(calls, 5) == [calls[5]]
    assert replay.needed(calls, 6) == [*calls[:3], calls[4], calls[6]]
    assert replay.needed(calls, 2) == calls[:3], "while it lasts it may forbid a call of its thread"
    assert replay.needed(calls, 3) == [calls[3]]


# ---- a trace is data, whoever wrote it ----

POISON = '0); system("touch poisoned"); (0'


def call_event(**arguments):
    return {"ph": "X", "cat": "call", "name": "aclrtMalloc", "ts": 1, "dur": 1, "pid": 1, "tid": 1,
            "args": {"devPtr": "0x7f0000000000", "size": 24, "policy": 0, "status": 0, "*devPtr": "0x100000000000",
                     **arguments}}  # fmt: skip


@pytest.mark.parametrize("arguments", [
    {"size": POISON}, {"devPtr": POISON}, {"*devPtr": POISON}, {"status": POISON}, {"policy": [1]}, {"size": 1.5},
    {"0x7f00[]": "0z"}, {"*0x7f00": POISON}, {"*0x7f00": 3}, {"size": True}, {"size": 2**70}, {"devPtr": 12}, {"devPtr[]": "zz"}, {"status": None}, {"devPtr": "0x" + "f" * 20},
], ids=repr)  # fmt: skip
def test_nothing_but_values_reaches_the_program(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": [call_event()]}))
    replay.reproducer(replay.load(str(file)), 1)
    file.write_text(json.dumps({"traceEvents": [call_event(**arguments)]}))
    with pytest.raises(UsageError, match="that `understudy trace` writes"):
        replay.load(str(file))
    assert not (tmp_path / "poisoned").exists()


@pytest.mark.parametrize("text", [
    "", "{", "[]", "3", '"text"', "null", '{"traceEvents": 3}', '{"traceEvents": [3]}', '{"traceEvents": {"a": 1}}',
    "[" * 200000, '{"traceEvents": [' + '{"a":' * 100000,
])  # fmt: skip
def test_what_is_no_timeline_is_one_line(tmp_path, text):
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="is no timeline"):
        replay.load(str(file))


@pytest.mark.parametrize("event", [{"cat": "call"}, {"cat": "call", "name": 3}, {"cat": "call", "name": POISON}])
def test_calls_of_nobody_are_passed_over(tmp_path, event):
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": [event]}))
    assert replay.load(str(file)) == []


WAITS = """
#include <acl/acl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) { aclrtSetDevice(0); puts("waits"); fflush(stdout); for (;;) { pause(); } }
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_is_ended_leaves_its_timeline(tmp_path, number):
    """The terminal sends Ctrl-C to the program, too; any other signal goes to the tracer alone."""
    timeline = tmp_path / "t.json"
    command = [sys.executable, "-m", "understudy", "trace", str(program(tmp_path, "waits", WAITS, link_flags("ascend"))), "-o", str(timeline)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True,
                          preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as process:  # shells ignore it behind `&`
        assert process.stdout.readline() == "waits\n"
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        assert "aclrtSetDevice" in process.communicate(timeout=60)[0]
    assert process.returncode == 128 + number
    assert any(event.get("name") == "aclrtSetDevice" for event in json.loads(timeline.read_text())["traceEvents"])


@pytest.mark.parametrize("words, timeline, program", [
    (["./a", "x"], None, ["./a", "x"]),
    (["-o", "t", "./a", "x"], "t", ["./a", "x"]),
    (["./a", "-o", "t", "x"], "t", ["./a", "x"]),
    (["./a", "--output", "t"], "t", ["./a"]),
    (["-o", "t", "./a", "-o", "x", "y"], "t", ["./a", "-o", "x", "y"]),
    (["--", "./a", "-o", "x"], None, ["./a", "-o", "x"]),
    (["-o", "t", "--", "./a", "--", "y"], "t", ["./a", "--", "y"]),
    (["./a", "--", "-o", "x"], None, ["./a", "--", "-o", "x"]),
    (["./a", "-o"], None, ["./a", "-o"]),
    (["./a", "x", "-o", "y"], None, ["./a", "x", "-o", "y"]),
])  # fmt: skip
def test_what_is_the_programs_stays_the_programs(words, timeline, program):
    options = make_parser("trace").parse_args(["trace", *words])
    assert trace.program_and_timeline(options.words, options.output) == (program, timeline or "trace.json")


MIXED = """
#include <acl/acl.h>
#include <add.h>
#include <mc_runtime.h>
int main(void)
{
    float x[4] = {0};
    void *p;
    aclrtSetDevice(0);
    mcMalloc(&p, 16);
    fp_add_s(x, x, x, 4, 1);
    return 0;
}
"""


def test_one_stack_alone_is_traced(tmp_path):
    binary = program(tmp_path, "mixed", MIXED, [*link_flags("ascend"), *link_flags("maca"), *link_flags("ftdsp")])
    file = tmp_path / "t.json"
    for stacks, names in ((["maca"], ["mcMalloc"]), (["ascend", "ftdsp"], ["aclrtSetDevice", "fp_add_s"])):
        options = [word for stack in stacks for word in ("--stack", stack)]
        assert understudy("trace", *options, "-o", file, binary).returncode == 0
        calls = [event for event in json.loads(file.read_text())["traceEvents"] if event.get("cat") == "call"]
        assert [(call["args"]["call"], call["name"]) for call in calls] == list(enumerate(names, 1))
    assert_error_of_use(understudy("replay", "--stack=maca", file, "1"), "--stack")  # the call says of which stack it is
    assert_error_of_use(understudy("abi", "--stack=maca", binary), "--stack")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_not_the_timeline(tmp_path, closed):
    """What a program prints to a stream that is closed goes nowhere, and not into a file that has got its number."""
    source = """
#include <acl/acl.h>
#include <stdio.h>
int main(void)
{
    aclrtSetDevice(0);
    for (int i = 0; i < 100; i++) { puts("printed"); fputs("complained", stderr); }
    fflush(stdout);
    aclrtSynchronizeDevice();
    return 0;
}
"""
    binary = program(tmp_path, "prints", source, link_flags("ascend"))
    for words, file in ((["run"], tmp_path / "raw"), (["trace", "-o", tmp_path / "t.json"], tmp_path / "t.json")):
        command = [sys.executable, "-m", "understudy", *words, binary]
        done = native.run(["sh", "-c", f'exec "$@" {closed}', "sh", *command], {"UNDERSTUDY_TRACE": str(tmp_path / "raw")})
        text = file.read_text()
        assert done.returncode == 0 and text[0] in "[{" and "printed" not in text and "complained" not in text
    names = [event["name"] for event in json.loads(text)["traceEvents"] if event.get("cat") == "call"]
    assert names == ["aclrtSetDevice", "aclrtSynchronizeDevice"] and " damaged" not in text


def test_errors_of_use(tmp_path):
    assert_error_of_use(understudy("trace", "-o", tmp_path / "t.json"), "no program given\n")
    assert_error_of_use(understudy("trace", "no-such-program"), "program 'no-such-program' not found\n")
    (tmp_path / "empty").write_text("")
    assert_error_of_use(understudy("trace", tmp_path / "empty"), "empty' not executable\n")
    assert_error_of_use(understudy("trace", "true", "-o", tmp_path / "t.json"), "called no function of the stacks\n")
    for number, name in ((signal.SIGABRT, "SIGABRT"), (signal.SIGRTMIN + 3, f"signal {signal.SIGRTMIN + 3}")):
        assert_error_of_use(understudy("trace", "sh", "-c", f"kill -{int(number)} $$"), f"and was ended by {name}\n")
    assert_error_of_use(understudy("replay", tmp_path / "absent.json", "1"), "cannot read")
    (tmp_path / "other.json").write_text("[]")
    assert_error_of_use(understudy("replay", tmp_path / "other.json", "1"), "is no timeline")
