"""`understudy ft-run`: one process per DSP core of an emulated chip, with common DDR and SMC and an L2 each."""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import sys
import time

from understudy import addresses
from understudy.errors import UsageError

CORES_OF_CHIP = {"FT78NE": 8, "MT7004": 4}
MOST_CORES = max(CORES_OF_CHIP.values())
GRACE_SECONDS = 0.5  # for the other cores when one has failed: they may have something to say, too
POLL_SECONDS = 0.01
ENDED_OFFSET, WATCHED_OFFSET = 4, 12  # in the common memory: a byte for each core that has ended, and one that says that
# these are written (src_c/device/team.c)


def chip_cores() -> int:
    """Cores of the chip that UNDERSTUDY_FT_CHIP names, or of the largest."""
    return CORES_OF_CHIP.get(os.environ.get("UNDERSTUDY_FT_CHIP", ""), MOST_CORES)


def cores_here() -> int:
    """Cores that masks of this process name: of the chip, or as many as `ft-run` has started. Libraries read these settings once."""
    started = os.environ.get("UNDERSTUDY_FT_CORES", "")
    return min(chip_cores(), int(started)) if started.isdecimal() and int(started) > 1 else chip_cores()


def core_environment(environment: dict[str, str], memory: int, core: int, cores: int) -> dict[str, str]:
    return {
        **environment,
        "UNDERSTUDY_FT_MEMORY": f"/proc/{os.getpid()}/fd/{memory}",
        "UNDERSTUDY_FT_CORES": str(cores),
        "UNDERSTUDY_FT_CORE": str(core),
    }


def signal_name(number: int) -> str:
    """Most real-time signals have none."""
    return next((known.name for known in signal.Signals if known == number), f"signal {number}")


def ending(status: int) -> str:
    return f"ended with status {status}" if status >= 0 else f"was ended by {signal_name(-status)}"


def status_of(process: subprocess.Popen) -> int | None:
    """0, an exit status, or -n for signal n; None while it runs. The process stays known to the system, so that its number
    cannot become another's before `stop`."""
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if found is None else found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def end_group(core: int) -> None:
    """Ends a core and what it has started."""
    with contextlib.suppress(OSError):
        os.killpg(core, signal.SIGKILL)


def tell(text: str) -> None:
    print(f"understudy ft-run: {text}", file=sys.stderr, flush=True)


class Guard:
    """A process that ends the cores when the runner itself is ended, however that happens: it reads their numbers from a
    pipe, whose other end closes with the runner."""

    def __init__(self):
        ours, self.pipe = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.pipe)
            os.setsid()  # what ends the runner may be sent to its whole group, as by a terminal or by `timeout`
            self._watch(ours)
            os._exit(0)
        os.close(ours)

    @staticmethod
    def _watch(pipe: int) -> None:
        with open(pipe) as lines:
            words = lines.read().split()
        if "done" in words:
            return
        for word in words:
            end_group(int(word))
        tell(f"the runner was ended, and so were its {len(words)} cores")

    def register(self) -> None:
        """For the calling process, a core that is about to begin."""
        os.write(self.pipe, b"%d " % os.getpid())

    def dismiss(self) -> None:
        os.write(self.pipe, b"done")
        os.close(self.pipe)
        os.waitpid(self.process, 0)


class Labels:
    """Copies what the cores print, line by line, with the number of the core in front."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()

    def add(self, core: int, process: subprocess.Popen) -> None:
        for source, target in ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer)):
            self.selector.register(source, selectors.EVENT_READ, (core, target, bytearray()))

    def copy(self, seconds: float) -> None:
        """What has come, or comes within the time."""
        for key, _ in self.selector.select(seconds):
            core, target, rest = key.data
            data = os.read(key.fd, 65536)
            rest += data or (b"\n" if rest else b"")
            *lines, tail = rest.split(b"\n")
            rest[:] = tail
            target.write(b"".join(b"[%d] %s\n" % (core, line) for line in lines))
            target.flush()
            if not data:
                self.selector.unregister(key.fileobj)

    def finish(self) -> None:
        """The rest. What a core's own children still hold open is not waited for."""
        deadline = time.monotonic() + GRACE_SECONDS
        while self.selector.get_map() and time.monotonic() < deadline:
            self.copy(POLL_SECONDS)


def first_failed(processes: list[subprocess.Popen]) -> int | None:
    return next((core for core, process in enumerate(processes) if status_of(process)), None)


def tell_ended(processes: list[subprocess.Popen], memory: int, ended: set[int]) -> None:
    """Tells the others which cores have ended, those too that have not come to open the memory."""
    for core in set(range(len(processes))) - ended:
        if status_of(processes[core]) is not None:
            os.pwrite(memory, b"\1", ENDED_OFFSET + core)
            ended.add(core)


def wait(processes: list[subprocess.Popen], memory: int, labels: Labels | None) -> int | None:
    """Waits for all cores. Once one has failed the others are ended; gives the core that failed first."""
    failed, deadline, ended = None, float("inf"), set()
    while len(ended) < len(processes):
        tell_ended(processes, memory, ended)
        if failed is None and (failed := first_failed(processes)) is not None:
            deadline = time.monotonic() + GRACE_SECONDS
        if time.monotonic() > deadline:
            for process in processes:
                end_group(process.pid)
        if labels is None:
            time.sleep(POLL_SECONDS)
        else:
            labels.copy(POLL_SECONDS)
    return first_failed(processes) if failed is None else failed


def stop(processes: list[subprocess.Popen]) -> None:
    """Collects the cores. Unless all have done well, whatever they started is ended, too."""
    if any(status_of(process) != 0 for process in processes):
        for process in processes:
            end_group(process.pid)
    for process in processes:
        process.wait()


def above_streams(made: int) -> int:
    """A descriptor with a number above the standard streams': one that the caller has closed may be free."""
    moved = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(made)
    return moved


def run(command: list[str], cores: int, environment: dict[str, str], label: bool = False) -> int:
    """Starts the command once per core; the exit status of the first core that fails, 128 + n for signal n, else 0.

    label: each line that a core prints begins with the core's number.
    """
    if not 1 <= cores <= chip_cores():
        name = os.environ.get("UNDERSTUDY_FT_CHIP") or "a chip"
        raise UsageError(f"-n is {cores}; {name} has 1 to {chip_cores()} cores")
    addresses.keep_in_place()
    labels = Labels() if label else None
    output = subprocess.PIPE if label else None
    with contextlib.ExitStack() as stack:
        guard = Guard()
        stack.callback(guard.dismiss)
        memory = above_streams(os.memfd_create("understudy-ft"))
        stack.callback(os.close, memory)
        os.pwrite(memory, b"\1", WATCHED_OFFSET)
        processes: list[subprocess.Popen] = []
        stack.callback(stop, processes)
        for core in range(cores):
            try:
                process = subprocess.Popen(command, env=core_environment(environment, memory, core, cores), stdout=output,
                                           stderr=output, start_new_session=True, preexec_fn=guard.register)  # fmt: skip
            except OSError as error:  # for another architecture, say
                raise UsageError(f"cannot run {command[0]!r}: {error.strerror}") from None
            processes.append(process)
            if labels:
                labels.add(core, process)
        failed = wait(processes, memory, labels)
        if labels:
            labels.finish()
        status = 0 if failed is None else status_of(processes[failed])
    if failed is None:
        return 0
    tell(f"core {failed} {ending(status)}")
    return status if status > 0 else 128 - status
