"""`understudy trace`: a program's calls, kernels and copies as a timeline and as a table."""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from understudy import toolchain
from understudy.errors import UsageError
from understudy.kit import interposer, table
from understudy.paths import STACKS

FIRST_STREAM_LANE = 1_000_000  # thread numbers of streams in the trace lines of the library


def add_arguments(parser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", default="trace.json", help="timeline (default: trace.json)")
    parser.add_argument("program", metavar="PROGRAM", help="program to run; -o FILE may follow it")
    parser.add_argument("arguments", nargs="...", metavar="ARGUMENT", help="its arguments")
    parser.epilog = "The timeline opens in Perfetto or chrome://tracing. `understudy replay FILE N` repeats call N."


def events_of(lines) -> list[dict]:
    """The trace lines as events, in order of time; calls are numbered from 1."""
    events = sorted((json.loads(line) for line in lines), key=lambda event: event["ts"])
    number = 0
    for event in events:
        if event["cat"] == "call":
            number += 1
            event["args"] = {"call": number, **event["args"], **event.pop("result")}
    return events


def lanes(events: list[dict]) -> list[dict]:
    """Names for the rows of the timeline."""

    def title(thread: int) -> str:
        return f"stream {thread - FIRST_STREAM_LANE}" if thread >= FIRST_STREAM_LANE else f"thread {thread}"

    rows = sorted({(event["pid"], event["tid"]) for event in events})
    return [
        {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": title(thread)}}
        for process, thread in rows
    ]


def record(program: list[str]) -> tuple[list[dict], int]:
    """Runs a program with tracing; its events and its exit status."""
    if shutil.which(program[0]) is None:
        raise UsageError(f"no program {program[0]!r}")
    with tempfile.TemporaryDirectory(prefix="understudy-trace-") as name:
        folder = pathlib.Path(name)
        lines = folder / "lines"
        environment = toolchain.environment(list(STACKS.values()))
        preload = [str(interposer.build(folder)), environment.get("LD_PRELOAD", "")]
        environment |= {"LD_PRELOAD": ":".join(filter(None, preload)), "UNDERSTUDY_TRACE": str(lines)}
        status = subprocess.run(program, env=environment).returncode
        events = events_of(lines.read_text().splitlines()) if lines.exists() else []
    return events, status


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


def run(options) -> int:
    arguments, output = options.arguments, options.output
    if len(arguments) >= 2 and arguments[0] in ("-o", "--output"):
        output, arguments = arguments[1], arguments[2:]
    events, status = record([options.program, *arguments])
    if not events:
        raise UsageError(f"{options.program} called no function of the stacks (exit status {status})")
    timeline = {"displayTimeUnit": "ms", "traceEvents": lanes(events) + events}
    try:
        pathlib.Path(output).write_text(json.dumps(timeline))
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from None
    print(summary(events))
    print(f"timeline: {os.fspath(output)}, {table.plural(len(events), 'event')}")
    return status if status >= 0 else 128 - status
