"""What C and C++ sources use of the stacks: headers, and functions by name. Nothing is compiled, and no macro is
looked at."""

from __future__ import annotations

import functools
import os
import pathlib
import re

from understudy.errors import UsageError
from understudy.paths import STACKS

SUFFIXES = {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".maca", ".cu"}
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
CONDITION = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)")
CONSTANTS = {"0": False, "false": False, "1": True, "true": True}  # conditions that need no macro
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
# Folders and files of headers that only the vendors have.
VENDOR_HEADER = {
    "ascend": re.compile(r"(acl|aclnn|aclnnop|hccl|experiment|opdev)/.*|aclnn_\w+\.h|acl_\w+\.h"),
    "maca": re.compile(r"(mcr|mcdnn|mcblas|mcfft|mcrand|mcsparse|mcsolver|mccl)/.*|mc(dnn|blas|rtc|_runtime)\w*\.h"),
    "ftdsp": re.compile(r"hthread\w*\.h|hthread/.*"),
}


def files(path: pathlib.Path) -> list[pathlib.Path] | None:
    """The sources that a path stands for; None when it is no source and no folder."""
    if path.is_dir():
        below = (pathlib.Path(folder, name) for folder, _, names in os.walk(path, onerror=_refuse) for name in names)
        found = sorted(file for file in below if file.suffix.lower() in SUFFIXES and file.is_file())
        if not found:
            raise UsageError(f"{path} is a directory without C or C++ sources")
        return found
    return [path] if path.suffix.lower() in SUFFIXES and path.is_file() else None


def _refuse(error: OSError) -> None:
    """A folder that cannot be read may hold what is missing."""
    raise UsageError(f"cannot read {error.filename}: {error.strerror}")


def read(file: pathlib.Path) -> str:
    """The file without comments and without what no compiler sees."""
    try:
        return without_dead_lines(COMMENT_OR_TEXT.sub(_without_comment, file.read_text("utf-8", "replace")))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None


def _without_comment(found: re.Match) -> str:
    return found[0] if found[0].startswith('"') else " "


def without_dead_lines(text: str) -> str:
    """Without what `#if 0` switches off; where a macro decides, both branches stay."""
    kept, levels = [], []  # of each #if around the line: whether the branch is dead, and whether the others behind it are
    for line in text.split("\n"):
        found = CONDITION.match(line)
        if found is None:
            if not any(dead for dead, _ in levels):
                kept.append(line)
            continue
        holds = CONSTANTS.get(found[2].strip(" \t\r()")) if found[1] in ("if", "elif") else None
        if found[1].startswith("if"):
            levels.append((holds is False, holds is True))
        elif levels:
            _, decided = levels.pop()
            if found[1] != "endif":
                levels.append((decided or holds is False, decided or holds is True))
        if not any(dead for dead, _ in levels):
            kept.append(line)  # a condition may name functions, too
    return "\n".join(kept)


def header_path(header: str, stack: str) -> pathlib.Path | None:
    """Where the SDK tree has a header."""
    return next((file for folder in STACKS[stack].include_paths if (file := folder / header).is_file()), None)


def headers(texts: list[str]) -> dict[str, str]:
    """Headers of the stacks that are included, and whose they are."""
    found = {}
    for name in {name for text in texts for name in INCLUDE.findall(text)}:
        for stack, pattern in VENDOR_HEADER.items():
            if header_path(name, stack) or pattern.fullmatch(name):
                found.setdefault(name, stack)
    return found


@functools.cache
def header_words() -> set[str]:
    """Every identifier of our headers: types, constants and macros look like functions too."""
    texts = [file.read_text("utf-8") for stack in STACKS.values() for file in (stack.root / "include").rglob("*.h")]
    return set(re.findall(r"[A-Za-z_]\w*", "\n".join(texts)))


def identifiers(texts: list[str]) -> tuple[set[str], set[str], set[str]]:
    """Identifiers outside comments, also those that are whole texts (looked up by name); those that are called; and those
    that are no function of a vendor: defined here, members, or types and constants of the headers."""
    mentioned, called, declared = set(), set(), set(header_words())
    for text in texts:
        kept = COMMENT_OR_TEXT.sub(lambda found: f" {found[0][1:-1]} " if re.fullmatch(r'"\w+"', found[0]) else " ", text)
        kept = INCLUDE.sub("", kept)
        mentioned.update(re.findall(r"\b[A-Za-z_]\w*", kept))
        called.update(re.findall(r"\b([A-Za-z_]\w*)\s*\(", kept))
        declared.update(re.findall(r"(?:\.|->|::)\s*([A-Za-z_]\w*)", kept))
        declared.update(re.findall(r"#\s*define\s+(\w+)", kept))
        declared.update(re.findall(r"\b([A-Za-z_]\w*)\s*\([^;{}()]*(?:\([^()]*\)[^;{}()]*)*\)\s*(?:const\s*)?\{", kept))
    return mentioned, called, declared
