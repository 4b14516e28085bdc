"""What the build says of a page that is written wrongly."""

import pathlib
import subprocess
import sys

import pytest

PYTHON = pathlib.Path(__file__).parents[2] / "python"
PAGE = """
[Zebra]
library = "math"
page = "aclnnZebra.md"
parameters = "self:T, other:T, alpha:S, out:T!"
meaning = "out = self + alpha * other"
dtype.self = "F32 F16 BF16"
dtype.other = "=self"
dtype.out = "=self"
except.910 = "no BF16"
checks = [
  "dtype self other",
  "promote self other",
  "cast promoted -> out",
  "broadcast self other",
  { rule = "alpha/zero", when = "alpha.value.real != 0", say = "alpha is {alpha}", break = { alpha = 0.0 } },
  "shape out = broadcast(self, other)",
]
plan = "map add(self, other; alpha) -> out"
result = "promoted"
"""


def generated(folder: pathlib.Path, text: str) -> subprocess.CompletedProcess:
    (folder / "aclnn_zebra.toml").write_text(text)
    return subprocess.run([sys.executable, "-m", "pages", folder, folder / "made"], cwd=PYTHON, capture_output=True, text=True)


def test_the_page_itself_is_right(tmp_path):
    done = generated(tmp_path, PAGE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("right, wrong, words", [
    ("checks =", "check =", "unknown keys ['check']"),
    ("except.910", "except.911", "unknown keys ['911']"),
    ("when =", "where =", "unknown keys ['where']"),
    ("meaning =", "meanings =", "unknown keys ['meanings']"),
    ('page = "aclnnZebra.md"', "", "needs ['page']"),
    ('library = "math"', "", "needs ['library']"),
    ('library = "math"', 'library = "maths"', "library is 'maths'"),
    ("alpha:S", "alpha:Q", "parameter alpha has unknown kind Q"),
    ("F32 F16 BF16", "F32 F15", "unknown types ['F15']"),
    ('"dtype self', '"dtyp self', "unknown check dtyp self other"),
    ('"dtype self', '"dtype sefl', "no parameter sefl"),
])  # fmt: skip
def test_a_mistake_is_told_in_one_line(tmp_path, right, wrong, words):
    done = generated(tmp_path, PAGE.replace(right, wrong, 1))
    assert done.returncode == 1 and words in done.stderr, done.stderr
    assert done.stderr.startswith("pages: aclnn_zebra.") and done.stderr.count("\n") == 1
