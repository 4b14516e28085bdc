"""Side-by-side ratios: each operator against a stream of the same bytes, and against PyTorch when it is installed.

    python bench/run.py [--quick] [--only WORD] [--busy]

Times are the best of several rounds; operator, stream and PyTorch take turns within one run, with the same number of
threads, so the ratios carry over to other machines and the times do not. On a machine that does other work, --busy
counts the processor time of one thread instead.
"""

import argparse
import contextlib
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy
import scipy_openblas32

HERE = pathlib.Path(__file__).parent
BUSY = "--busy" in sys.argv[1:]
if BUSY:  # before the libraries load: everything on the calling thread
    os.environ |= {"UNDERSTUDY_THREADS": "1", "UNDERSTUDY_STREAM": "inline", "OPENBLAS_NUM_THREADS": "1"}
CLOCK = time.CLOCK_PROCESS_CPUTIME_ID if BUSY else time.CLOCK_MONOTONIC

sys.path.insert(0, str(HERE))
from cases import Case, Row, torch  # noqa: E402
from fused import print_table as print_fused  # noqa: E402
from operators import all_rows  # noqa: E402

from understudy import paths, toolchain  # noqa: E402

# PyTorch's threads look for work for 15 ms and more after they have done some, which nobody else should pay for.
REST_SECONDS = 0.05
LONG_SECONDS = 0.5  # what takes so long is called twice: PyTorch's 16-bit products on a processor without instructions for them
BLAS = pathlib.Path(scipy_openblas32.get_lib_dir()) / f"lib{scipy_openblas32.get_library()}.so"
THREADS = ctypes.CDLL(str(paths.sdk() / "lib" / "libunderstudy.so")).us_parallel_threads()  # of a kernel


class Stream:
    """The compiled yardstick."""

    def __init__(self, folder: pathlib.Path):
        library = folder / "stream.so"
        compiler = toolchain.compiler("c")
        subprocess.run([*compiler, "-O3", "-shared", "-fPIC", "-pthread", HERE / "stream.c", "-o", library], check=True)
        self._library = ctypes.CDLL(str(library))
        self._library.stream_open.restype = ctypes.c_void_p

    @contextlib.contextmanager
    def prepared(self, case: Case) -> Iterator[Callable[[], None]]:
        """A call that moves the bytes of the case once."""
        source, target = (numpy.ones(max(1, size // 4), numpy.uint32) for size in (case.bytes_read, case.bytes_written))
        addresses = (ctypes.c_void_p(array.ctypes.data) for array in (target, source))
        sizes = (ctypes.c_size_t(array.size) for array in (source, target))
        stream = ctypes.c_void_p(self._library.stream_open(*addresses, *sizes, THREADS))
        assert stream, "no memory or threads for the yardstick"
        move = self._library.stream_call
        yield lambda: move(stream)
        self._library.stream_close(stream)


def timed(function: Callable[[], None]) -> Callable[[int], float]:
    def run(repeats: int) -> float:
        start = time.clock_gettime(CLOCK)
        for _ in range(repeats):
            function()
        return (time.clock_gettime(CLOCK) - start) / repeats

    return run


@dataclass
class Seconds:
    operator: float
    stream: float
    torch: float | None

    @property
    def of_stream(self) -> float:
        return self.stream / self.operator

    @property
    def of_torch(self) -> float | None:
        return None if self.torch is None else self.torch / self.operator


def measure(case: Case, stream: Stream, rounds: int) -> Seconds:
    """All are called in the same way, each on arrays that its own last call left in the caches."""
    with stream.prepared(case) as move:
        candidates = [timed(case.operator), timed(move)]
        if case.torch is not None:
            candidates.append(timed(case.torch))
        best = [min(candidate(1), candidate(1)) for candidate in candidates]
        repeats = [max(1, int(0.02 / seconds)) if seconds < LONG_SECONDS else 0 for seconds in best]
        for _ in range(rounds):
            time.sleep(REST_SECONDS)
            best = [min(old, candidate(n)) if n else old for old, candidate, n in zip(best, candidates, repeats)]
    return Seconds(*best, *[None] * (3 - len(best)))


def start_of(row: Row) -> str:
    return f"{row.name:<31} {row.dtype:<9} {row.size:>12}"


def instructions() -> str:
    """What matrices are multiplied with, which OPENBLAS_CORETYPE and PyTorch's own variables can lower."""
    core = ctypes.CDLL(str(BLAS)).scipy_openblas_get_corename
    core.restype = ctypes.c_char_p
    peer = "" if torch is None else f", PyTorch's {torch.backends.cpu.get_cpu_capability()}"
    return f"OpenBLAS's kernels: {core().decode()}{peer}"


def print_table(rows: list[Row], stream: Stream, rounds: int) -> list[tuple[Row, Seconds]]:
    print(f"threads: {THREADS}, {instructions()}. stream/op 1.00: as fast as a loop that moves the same bytes; "
          "torch/op: theirs / ours")  # fmt: skip
    columns = f"{'time us':>10} {'MiB moved':>10} {'stream/op':>9} {'torch/op':>9}"
    print(f"{'operator':<31} {'dtype':<9} {'size':>12} {columns}")
    measured = []
    for row in rows:
        with row.make() as case:
            seconds = measure(case, stream, rounds)
        moved = (case.bytes_read + case.bytes_written) / 2**20
        peer = "-" if seconds.of_torch is None else f"{seconds.of_torch:.2f}"
        times = f"{seconds.operator * 1e6:10.1f} {moved:10.3f} {seconds.of_stream:9.2f} {peer:>9}"
        print(f"{start_of(row)} {times}", flush=True)
        measured.append((row, seconds))
    return measured


def shortfall(row: Row, seconds: Seconds) -> tuple[float, str]:
    """The worst share of an aim that the row reaches (1 or more: all reached), and the ratios beside their aims."""
    ratios = ("stream", seconds.of_stream, row.stream_aim), ("torch", seconds.of_torch, row.torch_aim)
    judged = [(name, ratio, aim) for name, ratio, aim in ratios if aim > 0 and ratio is not None]
    share = min((ratio / aim for _, ratio, aim in judged), default=1.0)
    return share, "  ".join(f"{name} {ratio:5.2f} (aim {aim:.2f})" for name, ratio, aim in judged)


def print_summary(measured: list[tuple[Row, Seconds]]) -> None:
    """The rows that miss an aim, the worst first; on a terminal in red what misses it by a fifth or more."""
    found = [(*shortfall(row, seconds), row) for row, seconds in measured if row.stream_aim > 0 or row.torch_aim > 0]
    missed = sorted((entry for entry in found if entry[0] < 1), key=lambda entry: entry[0])
    print(f"\n{len(found) - len(missed)} of {len(found)} rows reach their aims" + (", these do not:" if missed else ""))
    for share, ratios, row in missed:
        text = f"{start_of(row)}   {ratios}"
        print(f"\033[{31 if share < 0.8 else 33}m{text}\033[0m" if sys.stdout.isatty() else text)


def compiled(folder: pathlib.Path, name: str, stacks: list[str], libraries: list[str]) -> pathlib.Path:
    """A C program of this folder."""
    program = folder / name
    flags = toolchain.flags(toolchain.stacks_named(stacks))
    subprocess.run([*toolchain.compiler("c"), "-O2", HERE / f"{name}.c", "-o", program, *flags, *libraries], check=True)
    return program


def print_call_cost(folder: pathlib.Path) -> None:
    program = compiled(folder, "call_cost", ["ascend"], ["-lopapi_nn", "-lnnopbase", "-lascendcl"])
    print("\ncost of a call on a 4 KiB tensor, from C, microseconds")
    print(f"{'streams':<9} {'phase 1 + phase 2 + synchronise':>32} {'phase 1 + destroy':>18} "
          f"{'100 calls':>10} {'graph of 100':>13} {'ratio':>6} {'aim':>6}")  # fmt: skip
    for mode, checks in (("async", ""), ("inline", ""), *(("async", check) for check in ("memory", "init", "sync", "race"))):
        environment = {**os.environ, "UNDERSTUDY_STREAM": mode, "UNDERSTUDY_CHECK": checks}
        result = subprocess.run([program], env=environment, check=True, capture_output=True, text=True)
        assert " check " not in result.stderr, result.stderr
        whole, first, calls, graph = map(float, result.stdout.split())
        print(f"{checks or mode:<9} {whole:32.2f} {first:18.2f} {calls:10.1f} {graph:13.1f} {graph / calls:6.2f} {'<=0.50':>6}")


def print_list_cost(folder: pathlib.Path) -> None:
    program = compiled(folder, "list_cost", ["ascend"], ["-lopapi", "-lnnopbase", "-lascendcl"])
    result = subprocess.run([program], check=True, capture_output=True, text=True)
    print("\nx += y for 300 tensors: one call on lists beside a loop of calls, and a plain loop over the same bytes by one "
          "thread, from C, microseconds")  # fmt: skip
    print(f"{'elements':<12} {'dtype':<9} {'list':>10} {'loop':>10} {'plain':>10} {'loop/list':>10} {'aim':>6}")
    cases = [(size, dtype) for size in ("up to 512", "up to 4096") for dtype in ("float32", "float16")]
    for (size, dtype), line in zip(cases, result.stdout.splitlines(), strict=True):
        whole, loop, plain = map(float, line.split())
        print(f"{size:<12} {dtype:<9} {whole:10.1f} {loop:10.1f} {plain:10.1f} {loop / whole:10.2f} {'>=5':>6}")


def print_gemm_cost(folder: pathlib.Path) -> None:
    """The aims: 5 us over the bare call for a small product, 0.97 (mcBLAS) and 0.95 (aclnn) of its speed for a large one."""
    libraries = ["-lmcblas", "-lmcruntime", "-lopapi", "-lnnopbase", "-lascendcl", "-ldl"]
    program = compiled(folder, "gemm_cost", ["maca", "ascend"], libraries)
    result = subprocess.run([program, BLAS, "scipy_", str(THREADS)], env={**os.environ, "UNDERSTUDY_BLAS": str(BLAS)},
                            check=True, capture_output=True, text=True)
    print("\nfloat32 products with their waits beside the bare BLAS call, microseconds")
    print(f"{'':<12} {'size':>6} {'ours':>10} {'bare':>10} {'over':>8} {'bare/ours':>10} {'aim':>14}")
    for line in result.stdout.splitlines():
        size, *ours, bare = map(float, line.split())
        for name, time_of, least in zip(("mcblasSgemm", "aclnnMatmul"), ours, (0.97, 0.95)):
            aim = "over <= 5" if size == 64 else f"ratio >= {least}" if size == 1024 else ""
            print(f"{name:<12} {size:6.0f} {time_of:10.2f} {bare:10.2f} {time_of - bare:8.2f} {bare / time_of:10.2f} {aim:>14}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="fewer rounds: noisier")
    parser.add_argument("--only", default="", metavar="WORD", help='rows whose "operator dtype size" contains WORD')
    parser.add_argument("--busy", action="store_true", help="processor time of one thread, for a machine at work")
    options = parser.parse_args()
    if torch is not None:
        torch.set_num_threads(THREADS)
    rows = [row for row in all_rows() if options.only in f"{row.name} {row.dtype} {row.size}"]
    with tempfile.TemporaryDirectory() as folder:
        measured = print_table(rows, Stream(pathlib.Path(folder)), 5 if options.quick else 25)
        if options.only in ("", "calls"):
            print_call_cost(pathlib.Path(folder))
            print_list_cost(pathlib.Path(folder))
        if not options.only:
            print_gemm_cost(pathlib.Path(folder))
        if options.only in ("", "fused"):
            print_fused()
    print_summary(measured)


if __name__ == "__main__":
    main()
