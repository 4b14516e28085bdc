"""What README says is so: the table of functions, the commands, the environment variables."""

import re

import pytest

from tests import function_table

ROOT = function_table.ROOT


@pytest.mark.parametrize("readme", [path.name for path in function_table.readmes()])
def test_the_table_of_functions_is_up_to_date(readme):
    text = (ROOT / readme).read_text()
    assert function_table.BEGIN in text
    assert function_table.replaced(readme) == text, "run: python -m tests.function_table --write"


def test_ci_runs_the_readmes_test_command():
    command = re.search(r"Run the tests:\n\n    (.*)\n", (ROOT / "README.md").read_text())[1]
    script = (ROOT / ".ci" / "run").read_text()
    assert ".venv/bin/pip install '.[test]'" in command and "pip install --quiet '.[test]'" in script
    assert ".venv/bin/pytest" in command and "pytest" in script


def test_every_environment_variable_is_explained():
    sources = [*(ROOT / "src_c").rglob("*.c"), *(ROOT / "python").rglob("*.py")]
    used = {name for file in sources for name in re.findall(r'"(UNDERSTUDY_[A-Z_]+)"', file.read_text())}
    explained = set(re.findall(r"\| `(UNDERSTUDY_[A-Z_]+)` \|", (ROOT / "README.md").read_text()))
    assert used - explained == set(), "used but not in README"
    assert explained - used == set(), "in README but not used"
