"""Tables and colours for a terminal or a pipe, and files of results."""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import sys
import tempfile
import textwrap

from understudy.errors import UsageError

COLOURS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "bold": 1, "dim": 2}


def coloured(text: str, colour: str, stream=None) -> str:
    """The text in a colour, when the stream is a terminal and NO_COLOR is not set."""
    stream = stream or sys.stdout
    if not colour or os.environ.get("NO_COLOR") or not stream.isatty():
        return text
    return f"\033[{COLOURS[colour]}m{text}\033[0m"


def line_width() -> int | None:
    """Columns of the terminal; None when the output is no terminal: then lines are not folded."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def render(rows: list[tuple], indent: str = "  ", colours: dict[str, str] | None = None) -> str:
    """Aligned columns; on a terminal the last one is folded. colours: of a row, by the text of its first cell."""
    if not rows:
        return ""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]) - 1)]
    left = len(indent) + sum(widths) + 2 * len(widths)
    terminal = line_width()
    room = max(30, terminal - left) if terminal else None
    lines = []
    for row in cells:
        last = textwrap.wrap(row[-1], room) if room and row[-1] else [row[-1]]
        padded = [cell.ljust(width) for cell, width in zip(row, widths)]
        if padded and colours and row[0] in colours:
            padded[0] = coloured(padded[0], colours[row[0]])
        lines.append((indent + "  ".join([*padded, last[0]])).rstrip())
        lines += [" " * left + line for line in last[1:]]
    return "\n".join(lines)


def plural(count: int, singular: str, several: str = "") -> str:
    return f"{count} {singular if count == 1 else several or singular + 's'}"


def write(path, text: str) -> None:
    """Writes a file whole or not at all: when the disk is full, what was there before is still there."""
    path = pathlib.Path(path)
    try:
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_text(text, "utf-8", "surrogateescape")
            return
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape", dir=path.parent,
                                         prefix=f".{path.name}.", delete=False) as file:  # fmt: skip
            try:
                file.write(text)
                file.close()
                os.chmod(file.name, 0o666 & ~_umask())
                os.replace(file.name, path)
            except BaseException:
                pathlib.Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def check_place(path) -> None:
    """Before long work whose result will be written there: the same errors as later, but for a full disk."""
    path = pathlib.Path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.is_file() or not path.exists():
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
