"""The benchmark runs and prints a row per operator, dtype and size. What the numbers are is not tested."""

import pathlib
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench" / "run.py"


def test_rows_of_one_operator():
    command = [sys.executable, BENCH, "--quick", "--only", "cross entropy grad float32"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()[2:]]
    assert [row[5:7] for row in rows] == [["4", "KiB"], ["1", "MiB"], ["64", "MiB"]]
    assert [float(row[8]) for row in rows] == [0.016, 4, 256]
    assert all(float(row[7]) > 0 and float(row[9]) >= 0 for row in rows)


@pytest.mark.parametrize("arguments", [["--only"], ["--sizes", "3"]])
def test_errors_of_use(arguments):
    done = subprocess.run([sys.executable, BENCH, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and "Traceback" not in done.stderr
