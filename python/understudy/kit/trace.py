"""`understudy trace`: a program's calls, kernels and copies as a timeline and as a table."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from understudy import toolchain
from understudy.errors import UsageError
from understudy.ft_run import ending
from understudy.kit import interposer, table, timeline_page
from understudy.kit.prototypes import prototypes
from understudy.paths import STACKS

COPY = re.compile(r"Mem(cpy|set)")
TIMELINE = "trace.json"
FIRST_STREAM_LANE = 1_000_000  # thread numbers of streams in the trace lines of the library


def add_arguments(parser) -> None:
    parser.usage = "understudy trace [--stack STACK] [-o FILE] [--] PROGRAM [ARGUMENT ...]"
    parser.add_argument("-o", "--output", metavar="FILE", help=f"timeline (default: {TIMELINE})")
    # One argument: argparse would take a `--` between two of them away.
    parser.add_argument("words", nargs="...", metavar="PROGRAM [ARGUMENT ...]",
                        help="program to run, and its arguments; without an -o or -- before it, -o FILE may follow PROGRAM")  # fmt: skip
    parser.epilog = ("A FILE that ends with .html is a page with the timeline that needs no network; else it is JSON, which "
                     "opens in Perfetto or chrome://tracing. `understudy replay FILE N` repeats call N of the JSON.")


def is_of(event: dict, stacks: list[str]) -> bool:
    """Whether an event is of one of the stacks: calls and kernels have a function's name; what has not may be anyone's."""
    function = prototypes().get(event["name"])
    return function is None or function.stack in stacks


def events_of(lines, stacks: list[str] | None = None) -> tuple[list[dict], int]:
    """The trace lines as events, in order of time, and how many lines are damaged; calls are numbered from 1. stacks: those whose
    calls and kernels are wanted, all for none."""
    events, damaged = [], 0
    for line in lines:
        line = line.strip().removesuffix(",")
        if line in ("", "[", "]"):
            continue
        try:
            event = json.loads(line)
            if event["cat"] == "call":
                event["args"] |= event.pop("result")
            {"ts": event["ts"] + event["dur"], "name": event["name"] + "", "row": (event["pid"], event["tid"])}
        except (ValueError, KeyError, TypeError, RecursionError):  # a process that ended, or a full disk
            damaged += 1
        else:
            events.append(event)
    if stacks:
        events = [event for event in events if is_of(event, stacks)]
    events.sort(key=lambda event: event["ts"])
    for number, event in enumerate((event for event in events if event["cat"] == "call"), 1):
        event["args"] = {"call": number, **event["args"]}
    return events, damaged


def lanes(events: list[dict]) -> list[dict]:
    """Names for the rows of the timeline."""

    def title(thread: int) -> str:
        return f"stream {thread - FIRST_STREAM_LANE}" if thread >= FIRST_STREAM_LANE else f"thread {thread}"

    rows = sorted({(event["pid"], event["tid"]) for event in events})
    return [
        {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": title(thread)}}
        for process, thread in rows
    ]


def scratch_folder() -> str | None:
    """Where a library for LD_PRELOAD may lie: its name can have no blank and no colon."""
    folders = [tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"]
    return next((folder for folder in folders if not interposer.UNLOADABLE.search(folder) and os.access(folder, os.W_OK)), None)


def run_to_its_end(program: list[str], environment: dict[str, str]) -> int:
    """The exit status. What ends this process ends the program, and it goes on with what was traced: a terminal sends Ctrl-C to
    both, the others are passed on. A second time the program is killed."""
    came: list[int] = []
    process = None

    def end(number, _):
        came.append(number)
        if process is not None and len(came) > 1:
            process.kill()
        elif process is not None and number != signal.SIGINT:
            process.send_signal(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, end)
    try:
        process = subprocess.Popen(program, env=environment)
        for number in list(came):  # before there was a program to end
            process.send_signal(number)
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def record(program: list[str], stacks: list[str] | None = None) -> tuple[list[dict], int, int]:
    """Runs a program with tracing; its events (of some stacks, or of all), how many lines are damaged, and its exit status."""
    environment = toolchain.environment(list(STACKS.values()))
    toolchain.check_program(program[0], environment)
    with tempfile.TemporaryDirectory(prefix="understudy-trace-", dir=scratch_folder()) as name:
        folder = pathlib.Path(name)
        lines = folder / "lines"
        preload = [str(interposer.build(folder)), environment.get("LD_PRELOAD", "")]
        environment |= {"LD_PRELOAD": ":".join(filter(None, preload)), "UNDERSTUDY_TRACE": str(lines)}
        try:
            status = run_to_its_end(program, environment)
        except OSError as error:  # for another architecture, say
            raise UsageError(f"cannot run {program[0]!r}: {error.strerror}") from None
        text = lines.read_text("utf-8", "replace") if lines.exists() else ""
    return *events_of(text.splitlines(), stacks), status


def arrows(events: list[dict]) -> list[dict]:
    """From each call to the kernels and copies it queued: the nearest ones of its name, or of a copy's, that begin later."""
    made, waiting = [], collections.defaultdict(collections.deque)
    for event in events:
        if event["cat"] == "call":
            kind = "copy" if COPY.search(event["name"]) else event["name"]
            waiting[event["pid"], kind].append(event)
            continue
        queued = waiting[event["pid"], "copy" if event["cat"] == "copy" else event["name"]]
        if queued:
            call = queued.popleft()
            common = {"cat": "flow", "name": "queued", "id": len(made) // 2 + 1}
            made.append({"ph": "s", **common, "pid": call["pid"], "tid": call["tid"], "ts": call["ts"]})
            made.append({"ph": "f", "bp": "e", **common, "pid": event["pid"], "tid": event["tid"], "ts": event["ts"]})
    return made


def summary(events: list[dict]) -> str:
    """A table per category: how often, how long, how many bytes, how fast."""
    sums: dict[tuple[str, str], list[float]] = collections.defaultdict(lambda: [0, 0.0, 0])
    for event in events:
        total = sums[event["cat"], event["name"]]
        total[0] += 1
        total[1] += event["dur"]
        total[2] += event["args"].get("bytes", 0)
    rows = [("what", "name", "times", "total us", "mean us", "bytes", "GB/s")]
    for (category, name), (count, duration, size) in sorted(sums.items(), key=lambda item: (item[0][0], -item[1][1])):
        speed = f"{size / duration * 1e-3:.2f}" if size and duration else ""
        rows.append((category, name, count, f"{duration:.1f}", f"{duration / count:.2f}", size or "", speed))
    return table.render(rows, indent="")


def program_and_timeline(words: list[str], output: str | None) -> tuple[list[str], str]:
    """The program's command, and where the timeline goes. -o FILE right behind the program is ours, unless our options have
    ended before: by an -o or a `--`."""
    if words[:1] == ["--"]:
        return words[1:], output or TIMELINE
    if output is None and len(words) > 2 and words[1] in ("-o", "--output"):
        return [words[0], *words[3:]], words[2]
    return words, output or TIMELINE


def run(options) -> int:
    program, output = program_and_timeline(options.words, options.output)
    if not program:
        raise UsageError("no program given")
    table.check_place(output)
    events, damaged, status = record(program, options.stack)
    if not events:
        wanted = " and ".join(options.stack or ["the stacks"])
        raise UsageError(f"{program[0]} called no function of {wanted}" + (f" and {ending(status)}" if status else ""))
    everything = lanes(events) + arrows(events) + events
    if output.endswith(".html"):
        table.write(output, timeline_page.page(program[0], everything))
    else:
        table.write(output, json.dumps({"displayTimeUnit": "ms", "traceEvents": everything}))
    print(summary(events))
    print(f"timeline: {os.fspath(output)}, {table.plural(len(events), 'event')}"
          + (f"; {table.plural(damaged, 'line')} of the trace damaged" if damaged else ""))  # fmt: skip
    return status if status >= 0 else 128 - status
