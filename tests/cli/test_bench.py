"""The benchmark runs and prints a row per operator, dtype and size. What the numbers are is not tested."""

import ctypes
import importlib
import pathlib
import subprocess
import sys

import numpy
import pytest

from understudy import toolchain

BENCH = pathlib.Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def bench():
    """The benchmark's modules by name."""
    sys.path.insert(0, str(BENCH))
    yield importlib.import_module
    sys.path.remove(str(BENCH))


def run(*arguments):
    return subprocess.run([sys.executable, BENCH / "run.py", *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("options", [[], ["--busy"]])
def test_rows_of_one_operator(options):
    done = run("--quick", "--only", "cross entropy grad float32", *options)
    assert done.returncode == 0, done.stderr
    table, summary = done.stdout.split("\n\n")
    rows = [line.split() for line in table.splitlines()[2:]]
    assert [row[6:8] for row in rows] == [["4", "KiB"], ["1", "MiB"], ["64", "MiB"]]
    assert [float(row[9]) for row in rows] == [0.016, 4, 256]
    assert all(float(row[8]) > 0 and float(row[10]) >= 0 for row in rows)
    assert " of 2 rows reach their aims" in summary and "\033" not in summary


@pytest.mark.parametrize("arguments", [["--only"], ["--sizes", "3"]])
def test_errors_of_use(arguments):
    done = run(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_rows_are_told_apart(bench):
    rows = bench("operators").all_rows()
    names = [(row.name, row.dtype, row.size) for row in rows]
    assert len(set(names)) == len(names) > 150
    assert all(len(name) <= 31 and len(size) <= 12 for name, _, size in names)


EVERY_ROW = """
import aclnn, attention, mcdnn
attention.SHAPE = 1, attention.HEADS, 32, attention.WIDTH
aclnn.ELEMENTS = 4096 * 16
mcdnn.SHAPE = 2, 4, 6, 6
import operators
for row in operators.all_rows():
    large = row.size in ("1 MiB", "64 MiB", "4096x1024") or row.size.endswith("tokens")
    if not large and (row.name, row.size) != ("matmul", "1024x1024"):
        with row.make() as case:  # PyTorch's part has run once then
            case.operator()
            assert case.bytes_read > 0 and case.bytes_written > 0
            print(row.name, row.dtype, row.size, sep="/")
"""


def test_every_row_runs(bench):
    """On small arrays and images. That PyTorch's part computes the same is the business of the tests of the layers."""
    done = subprocess.run([sys.executable, "-c", EVERY_ROW], cwd=BENCH, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 120


def test_summary(bench, capsys):
    """Only rows below an aim are listed, the worst first; what was not measured is no miss."""
    module, row_of = bench("run"), bench("cases").Row
    rows = {
        "reached": (row_of("reached", "float32", "1", None, 0.8, 2.0), module.Seconds(1.0, 0.8, 2.0)),
        "slow": (row_of("slow", "float32", "1", None, 0.8, 2.0), module.Seconds(1.0, 0.9, 1.9)),
        "worst": (row_of("worst", "float32", "1", None, 0.8), module.Seconds(1.0, 0.1, None)),
        "alone": (row_of("alone", "float32", "1", None, 0.0, 2.0), module.Seconds(1.0, 0.1, None)),
        "free": (row_of("free", "float32", "1", None), module.Seconds(1.0, 0.1, 0.1)),
    }
    module.print_summary(list(rows.values()))
    first, *missed = capsys.readouterr().out.strip().splitlines()
    assert first == "2 of 4 rows reach their aims, these do not:"
    assert [line.split()[0] for line in missed] == ["worst", "slow"]
    assert missed[1].endswith("stream  0.90 (aim 0.80)  torch  1.90 (aim 2.00)")


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("reads, writes", [(64, 64), (100_000, 100_000), (130_003, 65_001), (300_000, 100_001),
                                           (500_000, 31_000), (16_000, 100_003), (70_000, 3), (0, 40_000), (40_000, 0)])
def test_yardstick(tmp_path_factory, reads, writes, threads):
    """It writes each word of the output once per repeat, from what it read, and nothing behind it."""
    library = tmp_path_factory.getbasetemp() / "stream.so"
    if not library.exists():
        command = [*toolchain.compiler("c"), "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-pthread"]
        subprocess.run([*command, BENCH / "stream.c", "-o", library], check=True)
    functions = ctypes.CDLL(str(library))
    functions.stream_open.restype = ctypes.c_void_p
    source, target = numpy.full(reads + 1, 5, numpy.uint32), numpy.zeros(writes + 1, numpy.uint32)
    pointers = (ctypes.c_void_p(array.ctypes.data) for array in (target, source))
    stream = functions.stream_open(*pointers, ctypes.c_size_t(reads), ctypes.c_size_t(writes), threads)
    assert stream
    for _ in range(2):
        functions.stream_call(ctypes.c_void_p(stream))
    functions.stream_close(ctypes.c_void_p(stream))
    assert target[writes] == 0
    ratio = min(4, max(1, round(reads / writes))) if writes else 1
    both = min(reads // ratio // 16 * 16, writes)
    assert (target[:both] == (6 if ratio == 1 else 5 * ratio)).all()
