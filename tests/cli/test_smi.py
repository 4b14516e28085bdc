"""npu-smi and mx-smi, which `understudy env` puts on PATH: what scripts read from them."""

import re
import subprocess
import sys

import pytest

from understudy import toolchain


def smi(*command, devices="2", status=0, **more):
    environment = {**toolchain.environment(toolchain.stacks_named(None)), "UNDERSTUDY_DEVICES": devices,
                   "UNDERSTUDY_LOG": "off", **more}  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def test_npu_smi_info():
    text = smi("npu-smi", "info")
    assert len({len(line) for line in text.splitlines()}) == 1  # a rectangle
    devices = re.findall(r"^\| (\d+) +(910\w*) +\| OK ", text, re.MULTILINE)
    assert [number for number, _ in devices] == ["0", "1"]
    assert len(re.findall(r"\| 0000:[0-9A-Fa-f:.]+ +\| 0 +0 / 0 +0 / [1-9]\d+ +\|$", text, re.MULTILINE)) == 2
    assert text.count("No running processes found in NPU") == 2
    for name in ("NPU", "Name", "Health", "Bus-Id", "AICore(%)", "HBM-Usage(MB)", "Process id", "Process memory(MB)"):
        assert name in text
    assert "| 0 " not in smi("npu-smi", "info", devices="0")


@pytest.mark.parametrize("product, bus", [("Ascend910", "NA"), ("Ascend910_93", "0000:")])
def test_npu_smi_shows_the_other_products(product, bus):
    text = smi("npu-smi", "info", UNDERSTUDY_SOC=product)
    assert len(re.findall(rf"^\| 0 +\| {bus}", text, re.MULTILINE)) == 2
    assert len({len(line) for line in text.splitlines()}) == 1


def test_run_finds_the_stacks_own_programs():
    done = subprocess.run([sys.executable, "-m", "understudy", "run", "npu-smi", "-v"], capture_output=True, text=True)
    assert done.returncode == 0 and "version" in done.stdout, done.stderr


def test_npu_smi_lists():
    text = smi("npu-smi", "info", "-l", devices="3")
    assert re.search(r"Total Count +: 3$", text, re.MULTILINE) and re.findall(r"NPU ID +: (\d)", text) == ["0", "1", "2"]
    rows = [line.split() for line in smi("npu-smi", "info", "-m").splitlines()[1:]]
    assert [row[:3] for row in rows] == [["0", "0", "0"], ["1", "0", "1"]] and all(row[3].startswith("910") for row in rows)
    text = smi("npu-smi", "info", "-t", "memory", "-i", "1")
    assert re.search(r"NPU ID +: 1$", text, re.MULTILINE) and re.search(r"HBM Capacity\(MB\) +: [1-9]\d+$", text, re.MULTILINE)
    assert re.search(r"HBM Usage Rate\(%\) +: 0$", smi("npu-smi", "info", "-t", "usages", "-i", "0"), re.MULTILINE)
    assert "version" in smi("npu-smi", "-v")


@pytest.mark.parametrize("words", [[], ["info", "-t"], ["info", "-t", "memory", "-i", "7"], ["info", "-t", "all"], ["help"]])
def test_npu_smi_refuses_what_it_does_not_know(words):
    assert re.search("usage: npu-smi|there is no NPU", smi("npu-smi", *words, status=1))


def test_mx_smi():
    text = smi("mx-smi")
    table = [line for line in text.splitlines() if line[:1] in "+|" and line]
    assert len({len(line) for line in table}) == 1
    assert re.search(r"^Attached GPUs +: 2$", text, re.MULTILINE) and "no process found" in text
    assert re.findall(r"^\| (\d) +MetaX C500 +\| 0000:\S+ +\| 0% +\|$", text, re.MULTILINE) == ["0", "1"]
    assert len(re.findall(r"\| 0/[1-9]\d+ MiB +\|", text)) == 2
    assert re.findall(r"^GPU#(\d)  MetaX C500  0000:", smi("mx-smi", "-L"), re.MULTILINE) == ["0", "1"]
    assert "usage: mx-smi" in smi("mx-smi", "-q", status=1)
