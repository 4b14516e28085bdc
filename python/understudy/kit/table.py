"""Tables and colours for a terminal or a pipe."""

import os
import shutil
import sys
import textwrap

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
