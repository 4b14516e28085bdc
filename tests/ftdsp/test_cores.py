"""Several processes as the cores of one chip: shared DDR and SMC, an L2 each, barriers."""

import os
import subprocess
import tempfile

import pytest

from tests import native
from understudy import paths

SDK = paths.STACKS["ftdsp"]
EXAMPLE = native.ROOT / "examples_c" / "ftdsp" / "cores" / "slices.c"


def build(source) -> str:
    program = native.work_folder() / f"{source.stem}-cores"
    native.check(["gcc", "-std=c11", *native.STRICT, "-O1", source, f"-I{SDK.root}/include",
                  f"-I{paths.sdk()}/include", f"-L{SDK.library_path}", f"-L{paths.sdk()}/lib",
                  f"-Wl,-rpath,{SDK.library_path}:{paths.sdk()}/lib", "-lftdsp", "-lunderstudy", "-o", program])
    return str(program)


def run_cores(program: str, cores: int, log: str = "error") -> list[tuple[int, str, str]]:
    """Starts the program once per core, as `understudy ft-run` does; status, output and messages of each."""
    with tempfile.TemporaryFile() as memory:
        processes = [
            subprocess.Popen([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "UNDERSTUDY_FT_CORES": str(cores), "UNDERSTUDY_FT_CORE": str(core),
                                  "UNDERSTUDY_FT_MEMORY": f"/proc/{os.getpid()}/fd/{memory.fileno()}",
                                  "UNDERSTUDY_LOG": log})
            for core in range(cores)
        ]
        try:
            texts = [process.communicate(timeout=60) for process in processes]
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
        return [(process.returncode, *text) for process, text in zip(processes, texts)]


@pytest.mark.parametrize("cores", [1, 2, 3, 8])
def test_private_slices_give_the_shared_result(cores):
    results = run_cores(build(EXAMPLE), cores)
    assert [status for status, _, _ in results] == [0] * cores, results
    assert results[0][1] == f"{cores} cores: the same as one _s call\n"
    assert all(errors == "" for _, _, errors in results)


def test_the_example_runs_alone():
    assert native.check([build(EXAMPLE)]) == "1 cores: the same as one _s call\n"


SPACES = r"""
#include <add.h>
#include <binarycrossentropygrad.h>
#include <stdio.h>
#include <string.h>
#include <understudy/understudy.h>

#define L2_OF_CORE(n) ((float *)(0x1000000000 + (n) * 0x10000000ull))

int main(void)
{
    const int core = understudy_core();
    float *mine = (float *)0x10000000, *neighbour = L2_OF_CORE(1 - core);
    int *smc = (int *)0x0C000000;
    int failed = 0;
    mine[0] = 0.25f + (float)core; /* the same address, another memory on each core */
    smc[core] = core + 1;
    for (int round = 0; round < 1000; round++) { /* a shared counter that only barriers keep in step */
        understudy_barrier();
        failed += smc[8] != round;
        understudy_barrier();
        if (core == round % 2) {
            smc[8]++;
        }
    }
    understudy_barrier();
    failed += mine[0] != 0.25f + (float)core;
    failed += smc[0] != 1 || smc[1] != 2;
    failed += neighbour[0] != 0.25f + (float)(1 - core);
    failed += L2_OF_CORE(core)[0] != mine[0];
    mine[1] = mine[2] = 0.5f;
    fp_binarycrossentropygrad_p(1, 0, mine + 1, mine + 2, 0, mine + 1, L2_OF_CORE(core) + 4, 0);
    failed += understudy_last_rule()[0] != 0; /* its own L2 by the other address */
    fp_add_p(mine + 8, mine + 16, L2_OF_CORE(core) + 9, 4); /* the same memory by two addresses, shifted */
    failed += strcmp(understudy_last_rule(), "fp_add_p/out/overlap") != 0;
    understudy_clear_last_error();
    fp_add_p(mine + 8, mine + 16, L2_OF_CORE(core) + 8, 4); /* in place */
    fp_add_p(mine + 8, mine + 16, L2_OF_CORE(core) + 12, 4);
    failed += understudy_last_rule()[0] != 0;
    fp_binarycrossentropygrad_p(1, 0, mine + 1, mine + 2, 0, mine + 1, neighbour + 5, 0);
    printf("%d %s\n", failed, understudy_last_rule());
    understudy_barrier();
    return failed != 0;
}
"""


def test_spaces_of_two_cores(tmp_path):
    source = tmp_path / "spaces.c"
    source.write_text(SPACES)
    for status, text, _ in run_cores(build(source), 2, log="off"):
        assert (status, text) == (0, "0 fp_binarycrossentropygrad_p/dx/other-core\n")


def test_memory_that_cannot_be_opened_leaves_a_chip_of_one_core():
    done = native.run([build(EXAMPLE)], {"UNDERSTUDY_FT_CORES": "8", "UNDERSTUDY_FT_MEMORY": "/nonexistent/memory"})
    assert done.returncode == 0 and done.stdout.startswith("1 cores")
    assert "cannot use UNDERSTUDY_FT_MEMORY=/nonexistent/memory" in done.stderr
