"""The Python code of README.md runs and computes what it says."""

import pathlib
import re
import subprocess
import sys

import numpy as np

README = pathlib.Path(__file__).parents[2] / "README.md"
(CODE,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_code_runs():
    names = {}
    exec(CODE, names)
    x = names["x"].astype(np.float64)
    target = np.sign(x)
    np.testing.assert_allclose(names["gradient"], -target / (1 + np.exp(x * target)) / x.size, rtol=2**-20)
    np.testing.assert_array_equal(names["y"], np.maximum(names["x"], 0))
    np.testing.assert_array_equal(names["total"], names["x"] + names["y"])


def test_the_code_runs_without_bfloat16():
    """ml_dtypes is not among the packages that ours brings."""
    before = "import sys; sys.modules['ml_dtypes'] = None\n"
    after = """
from understudy.ascend import page_ops
assert all(getattr(ascend.ops, name).__doc__ for name in page_ops.operators())
try:
    ascend.ops.quant_matmul_v3(np.ones((2, 16), "i1"), np.ones((16, 4), "i1"), np.ones(4, "f4"), False, False)
except TypeError as error:
    assert "bfloat16 needs the package ml_dtypes" in str(error), error
else:
    raise AssertionError("a result of bfloat16")
"""
    done = subprocess.run([sys.executable, "-c", before + CODE + after], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
