"""`understudy ft-run`: one process per DSP core of an emulated chip, with common DDR and SMC and an L2 each."""

import contextlib
import os
import signal
import subprocess
import sys
import time

GRACE_SECONDS = 2.0  # for the other cores when one has failed: they may be waiting for it at a barrier
POLL_SECONDS = 0.01


def threads_of_a_core(cores: int) -> int:
    """The cores share the processors; more threads than those would only wait for each other."""
    return max(1, len(os.sched_getaffinity(0)) // cores)


def core_environment(environment: dict[str, str], memory: int, core: int, cores: int) -> dict[str, str]:
    return {
        "UNDERSTUDY_THREADS": str(threads_of_a_core(cores)),
        **environment,
        "UNDERSTUDY_FT_MEMORY": f"/proc/{os.getpid()}/fd/{memory}",
        "UNDERSTUDY_FT_CORES": str(cores),
        "UNDERSTUDY_FT_CORE": str(core),
    }


def ending(status: int) -> str:
    return f"ended with status {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"


def wait(processes: list[subprocess.Popen]) -> int | None:
    """Waits for all cores. Once one has failed the others are stopped; gives the core that failed first."""
    failed, deadline = None, float("inf")
    while any([process.poll() is None for process in processes]):
        if failed is None:
            failed = next((core for core, process in enumerate(processes) if process.returncode), None)
            deadline = deadline if failed is None else time.monotonic() + GRACE_SECONDS
        if time.monotonic() > deadline:
            stop(processes)
        time.sleep(POLL_SECONDS)
    if failed is None:
        failed = next((core for core, process in enumerate(processes) if process.returncode), None)
    return failed


def stop(processes: list[subprocess.Popen]) -> None:
    for process in processes:
        if process.poll() is None:
            process.kill()


def run(command: list[str], cores: int, environment: dict[str, str]) -> int:
    """Starts the command once per core; the exit status of the first core that fails, 128 + n for signal n, else 0."""
    with contextlib.ExitStack() as stack:
        memory = os.memfd_create("understudy-ft")
        stack.callback(os.close, memory)
        processes: list[subprocess.Popen] = []
        stack.callback(stop, processes)
        for core in range(cores):
            processes.append(subprocess.Popen(command, env=core_environment(environment, memory, core, cores)))
        failed = wait(processes)
    if failed is None:
        return 0
    status = processes[failed].returncode
    print(f"understudy ft-run: core {failed} {ending(status)}", file=sys.stderr)
    return status if status > 0 else 128 - status
