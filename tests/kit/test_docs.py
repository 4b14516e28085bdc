"""The pages of docs/ are true to the code: files that they name exist, and so do functions, commands and options."""

import itertools
import re

import pytest

from tests.kit.support import understudy
from tests.native import ROOT
from understudy.__main__ import COMMANDS, PASS_THROUGH

PAGES = sorted((ROOT / "docs").glob("*.md"))
FOLDERS = "src_c|include|tests|python|examples_c|abi|docs|tools|bench"


def code_spans(page):
    return re.findall(r"`([^`\n]+)`", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_exist(page):
    named = [span for span in code_spans(page) if re.fullmatch(rf"({FOLDERS})/[\w./-]*", span) and "VERSION" not in span]
    missing = [span for span in named if not (ROOT / span).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_functions_exist(page):
    names = {name for span in code_spans(page) if " " not in span
             for name in re.findall(r"\b(?:us|op|ft|check|launch|understudy)_\w+", span)}  # fmt: skip
    files = [*(ROOT / "src_c").rglob("*.[ch]"), *(ROOT / "include/understudy").glob("*.h"), *(ROOT / "tests").rglob("*.py")]
    sources = "\n".join(file.read_text() for file in files)
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", sources)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_exist(page):
    lines = [span for span in code_spans(page) if span.startswith("understudy ")]
    lines += re.findall(r"^    (understudy (?:[^\n\\]|\\\n)*)", page.read_text(), re.M)
    assert lines or page.name in ("adding-an-operator.md", "contributing.md")
    for line in lines:
        command = line.split()[1]
        assert command in COMMANDS, line
        words = line.partition("#")[0].split()[2:]
        if command in PASS_THROUGH:  # what follows the program's name is the program's
            words = itertools.takewhile(lambda word: word.startswith("-") or word.isdigit(), words)
        options = [option for word in words for option in re.findall(r"^--?[a-z][a-z-]*", word)]
        text = understudy(command, "--help").stdout
        assert [option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", text)] == [], line
