"""Side-by-side ratios: each operator against a stream of the same bytes, and against PyTorch when it is installed.

    python bench/run.py [--quick] [--only WORD]

Times are the best of several rounds; operator, stream and PyTorch take turns within one run, with the same number of
threads, so the ratios carry over to other machines and the times do not.
"""

import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cases import DTYPES, Case, torch  # noqa: E402
from fused import print_table as print_fused  # noqa: E402
from operators import OPERATORS, SHAPED_OPERATORS  # noqa: E402

from understudy import toolchain  # noqa: E402

HERE = pathlib.Path(__file__).parent
SIZES = {"4 KiB": 4 << 10, "1 MiB": 1 << 20, "64 MiB": 64 << 20}
THREADS = int(os.environ.get("UNDERSTUDY_THREADS") or len(os.sched_getaffinity(0)))


class Stream:
    """The compiled yardstick."""

    def __init__(self, folder: pathlib.Path):
        library = folder / "stream.so"
        compiler = toolchain.compiler("c")
        subprocess.run([*compiler, "-O3", "-shared", "-fPIC", "-pthread", HERE / "stream.c", "-o", library], check=True)
        self._stream = ctypes.CDLL(str(library)).stream
        self._stream.restype = ctypes.c_double

    def prepare(self, reads: int, bytes_each: int) -> Callable[[int], float]:
        """A function of the number of repeats that gives seconds per repeat."""
        count = bytes_each // 4
        arrays = [numpy.ones(count, numpy.float32) for _ in range(reads + 1)]
        inputs = (ctypes.c_void_p * 3)(*(arrays[1 + k % reads].ctypes.data for k in range(3)))
        out = ctypes.c_void_p(arrays[0].ctypes.data)

        def run(repeats: int) -> float:
            assert arrays  # the closure keeps the memory
            return self._stream(out, inputs, reads, ctypes.c_size_t(count), THREADS, repeats)

        return run


def timed(function: Callable[[], None]) -> Callable[[int], float]:
    def run(repeats: int) -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            function()
        return (time.perf_counter() - start) / repeats

    return run


@dataclass
class Row:
    operator: float
    stream: float
    torch: float | None


def measure(case: Case, stream: Stream, rounds: int) -> Row:
    candidates = [timed(case.operator), stream.prepare(case.reads, case.bytes_each)]
    if case.torch is not None:
        candidates.append(timed(case.torch))
    best = [min(candidate(1), candidate(1)) for candidate in candidates]
    repeats = [max(1, int(0.02 / seconds)) for seconds in best]
    for _ in range(rounds):
        best = [min(old, candidate(n)) for old, candidate, n in zip(best, candidates, repeats)]
    return Row(*best, *[None] * (3 - len(best)))


def print_table(stream: Stream, rounds: int, only: str) -> None:
    print(f"threads: {THREADS}. stream/op 1.00: as fast as a loop that only moves the same bytes; torch/op: theirs / ours")
    names = f"{'operator':<28} {'dtype':<9} {'size':>7} {'time us':>10}"
    print(f"{names} {'MiB moved':>10} {'stream/op':>9} {'torch/op':>9}")
    for name, dtypes, make in OPERATORS:
        for dtype in dtypes:
            for label, size in SIZES.items():
                if only in f"{name} {dtype}":
                    print_row(stream, rounds, f"{name:<28} {dtype:<9} {label:>7}", make(dtype, size))
    for name, dtypes, label, elements, make in SHAPED_OPERATORS:
        for dtype in dtypes:
            if only in f"{name} {dtype}":
                case = make(dtype, elements * DTYPES[dtype].itemsize)
                print_row(stream, rounds, f"{name:<28} {dtype:<9} {label:>7}", case)


def print_row(stream: Stream, rounds: int, start: str, making: AbstractContextManager[Case]) -> None:
    with making as case:
        row = measure(case, stream, rounds)
    moved = case.bytes_each * (case.reads + 1) / 2**20
    torch = f"{row.torch / row.operator:9.2f}" if row.torch else f"{'-':>9}"
    ratio = row.stream / row.operator
    print(f"{start} {row.operator * 1e6:10.1f} {moved:10.3f} {ratio:9.2f} {torch}", flush=True)


def print_call_cost(folder: pathlib.Path) -> None:
    program = folder / "call_cost"
    flags = toolchain.flags(toolchain.stacks_named(["ascend"]))
    command = [*toolchain.compiler("c"), "-O2", HERE / "call_cost.c", "-o", program, *flags]
    subprocess.run([*command, "-lopapi_nn", "-lnnopbase", "-lascendcl"], check=True)
    print("\ncost of a call on a 4 KiB tensor, from C, microseconds")
    print(f"{'streams':<9} {'phase 1 + phase 2 + synchronise':>32} {'phase 1 + destroy':>18}")
    for mode in ("async", "inline"):
        result = subprocess.run([program], env={**os.environ, "UNDERSTUDY_STREAM": mode}, check=True,
                                capture_output=True, text=True)  # fmt: skip
        whole, first = map(float, result.stdout.split())
        print(f"{mode:<9} {whole:32.2f} {first:18.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: noisier")
    parser.add_argument("--only", default="", metavar="WORD", help='rows whose "operator dtype" contains WORD')
    options = parser.parse_args()
    if torch is not None:
        torch.set_num_threads(THREADS)
    with tempfile.TemporaryDirectory() as folder:
        print_table(Stream(pathlib.Path(folder)), 5 if options.quick else 25, options.only)
        if not options.only:
            print_call_cost(pathlib.Path(folder))
        if options.only in ("", "fused"):
            print_fused()


if __name__ == "__main__":
    main()
