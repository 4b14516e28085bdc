"""Several processes as the cores of one chip: shared DDR and SMC, an L2 each, barriers."""

import functools
import os
import subprocess
import sys
import tempfile
import time

import pytest

from tests import native
from tests.function_table import complete_functions
from understudy import paths

SDK = paths.STACKS["ftdsp"]
EXAMPLE = native.ROOT / "examples_c" / "ftdsp" / "cores" / "slices.c"


def build(source) -> str:
    program = native.work_folder() / f"{source.stem}-cores"
    native.check(["gcc", "-std=c11", *native.STRICT, "-O1", source, f"-I{SDK.root}/include",
                  f"-I{paths.sdk()}/include", f"-L{SDK.library_path}", f"-L{paths.sdk()}/lib",
                  f"-Wl,-rpath,{SDK.library_path}:{paths.sdk()}/lib", "-lftdsp", "-lunderstudy", "-o", program])
    return str(program)


def start(command: list[str], memory, core: int, cores: int, log: str = "error") -> subprocess.Popen:
    """The program as one of several cores, as `understudy ft-run` starts it."""
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "UNDERSTUDY_FT_CORES": str(cores), "UNDERSTUDY_FT_CORE": str(core),
                                 "UNDERSTUDY_FT_MEMORY": f"/proc/{os.getpid()}/fd/{memory.fileno()}",
                                 "UNDERSTUDY_LOG": log})


def run_cores(program: str, cores: int, log: str = "error") -> list[tuple[int, str, str]]:
    """Starts the program once per core; status, output and messages of each."""
    with tempfile.TemporaryFile() as memory:
        processes = [start([program], memory, core, cores, log) for core in range(cores)]
        try:
            texts = [process.communicate(timeout=native.HANGS) for process in processes]
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


# Every core makes the same calls on the same DDR: in place, accumulating, on masks with gaps and on masks that leave it
# out. Core 0 prints what came out, and every core that the results are there when the call returns.
EVERY_CORE = r"""
#include <add.h>
#include <applymomentum.h>
#include <biasaddgrad.h>
#include <nllloss.h>
#include <stdio.h>
#include <sub.h>
#include <understudy/understudy.h>

#define COUNT 5001
#define AT(offset) ((float *)(0xA0000000 + (offset)))

static void show(const char *name, const float *data, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += (double)data[i] * (i % 7 + 1);
    }
    if (understudy_core() == 0) {
        printf("%s %.17g %.9g %.9g\n", name, sum, (double)data[0], (double)data[count - 1]);
    }
    understudy_barrier();
}

int main(void)
{
    static const int masks[] = {0xff, 0x01, 0x0b, 0x7fffffff, 0x03};
    float *x = AT(0), *one = AT(0x100000), *accumulate = AT(0x200000), *loss = AT(0x300000);
    int *labels = (int *)AT(0x400000), *dims = (int[]){COUNT / 3, 3};
    const int core = understudy_core();
    if (core == 0) {
        for (int i = 0; i < COUNT; i++) {
            x[i] = 4;
            one[i] = 1 + (float)(i % 5) / 8;
            labels[i] = i % 3;
        }
    }
    understudy_barrier();
    for (int round = 0; round < 200; round++) {
        const int mask = masks[round % 5];
        fp_sub_s(x, one, x, COUNT, mask);
        if ((mask >> core & 1) != 0) { /* the others may be anywhere */
            const float now = x[COUNT - 1];
            fp_add_s(x, accumulate, x, COUNT, mask);
            if (x[COUNT - 1] != now + accumulate[COUNT - 1]) {
                printf("core %d round %d: not there yet\n", core, round);
            }
            fp_sub_s(x, accumulate, x, COUNT, mask);
        }
        understudy_barrier();
    }
    show("in place", x, COUNT);
    for (int round = 0; round < 5; round++) {
        fp_applymomentum_s(x, accumulate, one, 0.5f, 0.25f, 1, 1, COUNT, masks[round]);
        understudy_barrier();
    }
    show("momentum", x, COUNT);
    show("accumulated", accumulate, COUNT);
    fp_biasaddgrad_s(x, dims, 2, loss, 0xff);
    show("sums", loss, 3);
    fp_nllloss_s(x, labels, one, loss, loss + 8, COUNT / 3, 3, 2, 0x0b);
    understudy_barrier();
    show("loss", loss, 1);
    fp_sub_s(x, one, x, COUNT, 0);
    fp_sub_s(x, one, x, COUNT, 0x100);
    show("no core", x, COUNT);
    fp_sub_s(x, one, x, -1, 0xff); /* refused by the core that would do the work, and nobody waits for ever */
    understudy_barrier();
    if (core == 0) {
        printf("%s\n", understudy_last_rule());
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def every_core():
    source = native.work_folder() / "every_core.c"
    source.write_text(EVERY_CORE)
    return build(source)


@pytest.fixture(scope="module")
def one_process(every_core):
    done = native.run([every_core], {"UNDERSTUDY_LOG": "off"})
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[-1] == "fp_sub_s/n/negative"
    assert lines[-2].split()[2:] == lines[1].split()[1:]  # a mask without a core: nothing is done
    assert lines[0].split()[3] == str(4 - 200)  # each call once
    return done.stdout


@pytest.mark.parametrize("cores", [1, 2, 3, 8])
def test_any_number_of_cores_computes_what_one_process_does(every_core, one_process, cores):
    results = run_cores(every_core, cores, log="off")
    assert [(status, errors) for status, _, errors in results] == [(0, "")] * cores
    assert results[0][1] == one_process
    assert [text for _, text, _ in results[1:]] == [""] * (cores - 1)


@functools.cache
def digests(cores: int) -> dict[str, str]:
    """What the legal call of every _s function leaves in its operands, made twice by so many cores (0: without ft-run)."""
    command = [sys.executable, "-m", "tests.ftdsp.core_calls"]
    runner = [sys.executable, "-m", "understudy", "ft-run", "-n", cores] if cores else []
    done = native.run([*runner, *command], {"UNDERSTUDY_LOG": "error"})
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("cores", [2, 3, 8])
def test_any_number_of_cores_gives_what_every_function_gives_alone(cores):
    alone = digests(0)
    shared = {name for names in complete_functions("ftdsp").values() for name in names if not name.endswith("_p")}
    assert {name.split()[0] for name in alone} == shared
    assert digests(cores) == alone


ENDS = r"""
#include <add.h>
#include <signal.h>
#include <stdlib.h>
#include <understudy/understudy.h>

int main(int count, char **arguments)
{
    float *x = (float *)0xA0000000;
    understudy_barrier();
    if (understudy_core() == 1 && count > 1) {
        return atoi(arguments[1]) == 9 ? raise(SIGKILL) : 0;
    }
    fp_add_s(x, x, x, 4, 0x7);
    return 0;
}
"""


@pytest.mark.parametrize("signal", [0, 9])
def test_a_core_that_ends_before_a_barrier_ends_those_that_wait_for_it(tmp_path, signal):
    source = tmp_path / "ends.c"
    source.write_text(ENDS)
    program = build(source)
    with tempfile.TemporaryFile() as memory:
        processes = [start([program, str(signal)], memory, core, 3) for core in range(3)]
        start_time = time.monotonic()
        processes[1].wait(timeout=10)
        for core in (0, 2):
            _, errors = processes[core].communicate(timeout=10)
            assert processes[core].returncode == 1
            assert "waits at a barrier of the cores 0x07, but core" in errors
        assert time.monotonic() - start_time < 1
        processes[1].communicate()


@pytest.mark.parametrize("signal, status", [(0, 1), (9, 137)])
def test_a_core_that_ends_under_ft_run_ends_all(tmp_path, signal, status):
    source = tmp_path / "ends.c"
    source.write_text(ENDS)
    start_time = time.monotonic()
    done = native.run([sys.executable, "-m", "understudy", "ft-run", "-n", 3, build(source), signal])
    assert done.returncode == status and "waits at a barrier of the cores 0x07, but core" in done.stderr, done
    assert time.monotonic() - start_time < 5


SPACES = r"""
#include <add.h>
#include <binarycrossentropygrad.h>
#include <flatten.h>
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
    FlattenParameter one = {.elem_cnt_ = 1, .type_size_ = sizeof(float)}; /* no suffix: the mask says whose work it is */
    Flatten(mine, mine + 32, 1 << core, &one);
    Flatten(mine, mine + 33, 1 << (1 - core), &one);
    failed += understudy_last_rule()[0] != 0 || mine[32] != mine[0] || mine[33] != 0;
    if (core == 0) { /* who does not take part does not check either */
        Flatten(neighbour, mine, 0x01, &one);
        failed += strcmp(understudy_last_rule(), "Flatten/input/other-core") != 0;
    }
    understudy_clear_last_error();
    Flatten(mine, smc, 0x03, &one);
    failed += strcmp(understudy_last_rule(), core == 0 ? "Flatten/input/private" : "") != 0;
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


REFUSED = r"""
#include <add.h>
#include <stdio.h>
#include <understudy/understudy.h>

#define AT(offset) ((void *)(0xA0000000 + (offset)))

static int told; /* a bit for each call that this core has refused */

static void look(int call)
{
    told |= (understudy_last_status() != 0) << call;
    understudy_clear_last_error();
}

int main(void)
{
    hp_add_s(AT(0), AT(0), AT(0), 4, 0x07); /* a prefix that the chip does not have */
    look(0);
    hp_add_s(AT(0), AT(0), AT(0), 4, 0x06);
    look(1);
    fp_add_s(AT(0), AT(0), AT(0), 4, -1);
    look(2);
    fp_add_s(AT(0), AT(0), AT(0), 4, -0x7ffffffe); /* names core 1 */
    look(3);
    fp_add_s(AT(0), AT(0), AT(0), 4, -0x7fffffff - 1); /* names none */
    look(4);
    hp_add_p(AT(0), AT(0), AT(0), 4); /* each core's own call */
    look(5);
    fp_add_s(AT(0), AT(0), AT(0), 4, 0x100); /* no refusal, but a message */
    printf("%d\n", told);
    return 0;
}
"""


def test_of_several_cores_the_one_that_does_the_work_reports_a_refusal(tmp_path, monkeypatch):
    """Also of a prefix or a mask, which is known before the cores meet; core 0 where the mask names none."""
    monkeypatch.setenv("UNDERSTUDY_FT_CHIP", "FT78NE")
    source = tmp_path / "refused.c"
    source.write_text(REFUSED)
    own = 1 << 5
    results = run_cores(build(source), 3, log="warn")
    assert [int(text) for _, text, _ in results] == [1 | 4 | 16 | own, 2 | 8 | own, own], results
    assert [errors.count("names no core") for _, _, errors in results] == [1, 0, 0], results


def closed(stream: str, command: list) -> subprocess.CompletedProcess:
    """The command with a standard stream closed, as `2>&-` does it. What would never end fails soon."""
    return native.run(["sh", "-c", f'exec "$@" {stream}', "sh", *command], timeout=60)


@pytest.mark.parametrize("stream", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_cores_with_a_closed_stream_meet(tmp_path, stream):
    """Their common memory would get the stream's number, and a message would be written over the barriers."""
    source = tmp_path / "closed.c"
    source.write_text(CLOSED)
    done = closed(stream, [sys.executable, "-m", "understudy", "ft-run", "-n", "2", build(source), tmp_path])
    assert done.returncode == 0, done
    assert sorted(file.name for file in tmp_path.glob("core*")) == ["core0", "core1"]


CLOSED = r"""
#include <add.h>
#include <stdio.h>
#include <understudy/understudy.h>

int main(int count, char **arguments)
{
    float *data = (float *)0xA0000000;
    char name[4096];
    for (int round = 0; round < 8; round++) {
        fp_add_s(data, data, data + 1, 4, 0x03); /* a message */
        printf("text that is longer than what the barriers have in common at the beginning of the file\n");
        fflush(stdout);
        understudy_barrier();
    }
    snprintf(name, sizeof name, "%s/core%d", arguments[count - 1], understudy_core());
    FILE *file = fopen(name, "w");
    return file == NULL || fclose(file) != 0;
}
"""


def test_memory_that_cannot_be_opened_leaves_a_chip_of_one_core():
    done = native.run([build(EXAMPLE)], {"UNDERSTUDY_FT_CORES": "8", "UNDERSTUDY_FT_MEMORY": "/nonexistent/memory"})
    assert done.returncode == 0 and done.stdout.startswith("1 cores")
    assert "cannot use UNDERSTUDY_FT_MEMORY=/nonexistent/memory" in done.stderr
