"""The Python code of README.md runs and computes what it says."""

import pathlib
import re

import numpy as np

README = pathlib.Path(__file__).parents[2] / "README.md"


def test_the_code_runs():
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names = {}
    exec(code, names)
    x = names["x"].astype(np.float64)
    target = np.sign(x)
    np.testing.assert_allclose(names["gradient"], -target / (1 + np.exp(x * target)) / x.size, rtol=2**-20)
    np.testing.assert_array_equal(names["y"], np.maximum(names["x"], 0))
    np.testing.assert_array_equal(names["total"], names["x"] + names["y"])
