"""What README says is so: the counts of functions, the commands, the environment variables."""

import re

import pytest

from tests import function_table

ROOT = function_table.ROOT


def test_the_functions_are_up_to_date():
    for path, text in function_table.written().items():
        assert path.read_text() == text, f"{path.name}: run python -m tests.function_table --write"


def test_ci_runs_the_readmes_test_command():
    command = re.search(r"Run the tests:\n\n    (.*)\n", (ROOT / "README.md").read_text())[1]
    script = (ROOT / ".ci" / "run").read_text()
    assert ".venv/bin/pip install '.[test]'" in command and "pip install --quiet '.[test]'" in script
    assert ".venv/bin/pytest" in command and "pytest" in script


def test_every_environment_variable_is_explained():
    sources = [*(ROOT / "src_c").rglob("*.c"), *(ROOT / "python").rglob("*.py")]
    used = {name for file in sources for name in re.findall(r'"(UNDERSTUDY_[A-Z0-9_]+)"', file.read_text())}
    rows = re.findall(r"^\| (`UNDERSTUDY_.*?) \|", (ROOT / "docs/programs.md").read_text(), re.MULTILINE)
    explained = set(re.findall(r"UNDERSTUDY_[A-Z0-9_]+", " ".join(rows)))
    assert used - explained == set(), "used but not in docs/programs.md"
    assert explained - used == set(), "in docs/programs.md but not used"


# ---- README.zh-CN.md is README.md in Chinese ----


def outline(text):
    """What both languages share: levels of headings, code, and the code words of each table row, in order."""
    text = re.sub(re.escape(function_table.BEGIN) + ".*" + re.escape(function_table.END), "", text, flags=re.DOTALL)
    text, blocks = re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.findall(r"```.*?```", text, re.DOTALL)
    lines = text.splitlines()
    return {
        "headings": [line.split(" ")[0] for line in lines if line.startswith("#")],
        "blocks": blocks,
        "commands": [line for line in lines if line.startswith("    ")],
        "rows": [re.findall(r"`[^`]+`", line.replace("PROGRAM", "")) for line in lines if line.startswith("| ")],
        "bullets": [re.findall(r"`[^`]+`", line) for line in lines if line.startswith("- ")],
    }


@pytest.mark.parametrize("part", ["headings", "blocks", "commands", "rows", "bullets"])
def test_the_chinese_readme_is_in_step(part):
    english, chinese = ((ROOT / name).read_text() for name in ("README.md", "README.zh-CN.md"))
    if part == "rows":
        assert [sorted(row) for row in outline(chinese)[part]] == [sorted(row) for row in outline(english)[part]]
    else:
        assert outline(chinese)[part] == outline(english)[part]


def test_the_readmes_commands_exist():
    from understudy.__main__ import COMMANDS

    named = set(re.findall(r"`understudy ([a-z+-]+)", (ROOT / "README.md").read_text()))
    assert named <= set(COMMANDS)
    assert set(COMMANDS) <= named | {"demo", "env"}
