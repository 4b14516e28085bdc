"""The unmodified PyTorch adapter trains on the emulated device, with the numbers of the CPU.

Needs an environment of its own: `pip install '.[torch-npu]'`. Where the adapter is not installed, these tests are skipped.
The CPU's numbers come from a process that does not load the adapter.
"""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest

from understudy import toolchain

from tests.clients.torch_npu.names import PROGRAMS

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch_npu") is None,
                                reason="the PyTorch adapter (torch-npu) is not installed in this environment")

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="module")
def server():
    """A process that runs programs: see server.py."""
    environment = {**toolchain.environment(toolchain.stacks_named(["ascend"])), "UNDERSTUDY_LOG": "warn",
                   "UNDERSTUDY_DEVICES": "2",
                   "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
    command = [sys.executable, "-m", "tests.clients.torch_npu.server"]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


def run(server, device: str, *programs: str, **variables: str) -> tuple[dict, str]:
    """The numbers of the programs, all without names, and what was printed on the way."""
    call = {"device": device, "programs": programs, "variables": variables}
    print(json.dumps(call), file=server.stdin, flush=True)
    done = json.loads(server.stdout.readline())
    assert done["status"] == 0, done["printed"][-4000:]
    return done["results"], done["printed"]


@pytest.fixture(scope="module")
def expected(server):
    return run(server, "cpu")[0]


@pytest.fixture(scope="module")
def found(server):
    return run(server, "npu")


# Half precision has 11 bits; a loss is a mean of numbers that were rounded many times, and the last bit of a result may differ.
TOLERANCES = {"mixed_precision": 4e-3, "updated_graph": 4e-3, "npu_sparse_flash_attention": 2**-10,
              "npu_lightning_indexer_grad": 2**-10, "npu_dense_lightning_indexer_grad_kl_loss": 2**-10,
              "npu_scaled_masked_softmax": 2**-10, "npu_iou": 2**-10, "npu_mhc_pre": 2**-10,
              "npu_mla_prolog_v2": 2**-7, "npu_mla_prolog_v3": 2**-7}  # fmt: skip


def check(name: str, results: dict, expected: dict, printed: str) -> None:
    assert isinstance(expected[name], list), expected[name]
    if isinstance(results[name], str):  # it raised
        missing = sorted(set(re.findall(r"looked for (aclnn\w+)", printed)))
        pytest.fail(f"{results[name]}\nnot emulated: {' '.join(missing)}" if missing else results[name])
    assert results[name] == pytest.approx(expected[name], rel=TOLERANCES.get(name, 2e-4), abs=2e-4, nan_ok=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_are_the_cpus(name, expected, found):
    check(name, found[0], expected, found[1])


QUEUES = [{"TASK_QUEUE_ENABLE": "0"}, {"TASK_QUEUE_ENABLE": "1"}, {"TASK_QUEUE_ENABLE": "2"},
          {"ASCEND_LAUNCH_BLOCKING": "1"}]  # fmt: skip


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: "=".join(*queue.items()))
@pytest.mark.parametrize("stream", ["async", "inline", "deferred"])
def test_every_mode_gives_the_same(queue, stream, server, expected):
    results, printed = run(server, "npu", "mlp", UNDERSTUDY_STREAM=stream, **queue)
    check("mlp", results, expected, printed)


# Not "leak": the adapter keeps its pool of streams for ever.
@pytest.mark.parametrize("checks", ["memory", "sync", "init"])
def test_the_checks_find_nothing(checks, server, expected):
    names = ["copies", "memory", "streams_and_events", "mlp"]
    results, printed = run(server, "npu", *names, UNDERSTUDY_CHECK=checks)
    assert "understudy: error: check" not in printed, printed
    for name in names:
        check(name, results, expected, printed)


def test_expandable_segments(server, expected):
    results, printed = run(server, "npu", "memory", PYTORCH_NPU_ALLOC_CONF="expandable_segments:True")
    check("memory", results, expected, printed)
