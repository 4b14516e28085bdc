"""Types and texts of the operators' functions: the stub that the build makes, docstrings, near names."""

import ast
import importlib.util
import inspect
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from understudy import ascend, maca, paths
from understudy.ascend import page_ops

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = """
import numpy
from understudy import ascend, ftdsp, maca

x = ascend.array(numpy.ones((2, 3)))
shape: tuple[int, ...] = x[0, ..., 1:].shape
y = ascend.ops.add(x, x, out_dtype=numpy.float32)
z = ascend.ops.soft_margin_loss(x, y, reduction="mean")
values: numpy.ndarray = x.numpy()
with maca.Stream() as stream, maca.ActivationDescriptor("relu") as relu:
    maca.run("mcdnnActivationForward", activationDesc=relu, x=values, y=values)
    done: bool = stream.record().done()
ftdsp.run("add", values, values, values, 6)
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    output = tmp_path_factory.mktemp("stubs") / "ops.pyi"
    subprocess.run([sys.executable, ROOT / "python" / "build_stubs.py", "--pages", paths.sdk() / "rules/ascend/pages.json",
                    "--output", output], check=True)  # fmt: skip
    return output


def test_the_stub_declares_every_function_with_its_parameters(stub):
    declared = {node.name: node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.FunctionDef)}
    functions = {name for name, value in vars(ascend.ops).items()
                 if inspect.isfunction(value) and value.__module__ == "understudy.ascend.ops" and not name.startswith("_")}
    assert set(declared) == functions | set(page_ops.operators()) and len(declared) > 400
    for name, node in declared.items():
        function = getattr(ascend.ops, name)
        arguments = [argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]]
        assert arguments == list(inspect.signature(function).parameters), name
        assert all(argument.annotation for argument in node.args.args)
        usual = [p.default for p in inspect.signature(function).parameters.values() if p.default is not p.empty]
        keywords = [ast.literal_eval(default) for default in node.args.kw_defaults if default is not None]
        assert [ast.literal_eval(default) for default in node.args.defaults] + keywords == usual, name
        assert inspect.cleandoc(ast.get_docstring(node)).splitlines()[0] == inspect.getdoc(function).splitlines()[0]


def test_docstrings_tell_what_the_page_says():
    entries = json.loads((paths.sdk() / "rules/ascend/pages.json").read_text())["operators"]
    for name, entry in page_ops.operators().items():
        text = getattr(ascend.ops, name).__doc__
        assert text.startswith(entry["function"] + ": ") and entry["page"] in text, name
        assert entry["function"] in {entries[key]["function"] for key in entries}
        for parameter in page_ops.text.inputs(entry):
            assert f"    {page_ops.text.python_name(parameter['name'])}: " in text, (name, parameter)
    lines = ascend.ops.softmax.__doc__.splitlines()
    assert "    self: array of float16 float32 float64 bfloat16, rank 0 to 8" in lines and "    dim: integer" in lines
    assert "    out: the shape of self; float16 float32 float64 bfloat16" in lines
    assert "    alpha: number; by default 1" in ascend.ops.add.__doc__
    assert "    dtype: NumPy dtype; by default that of the first array" in ascend.ops.mean.__doc__
    assert "    161002: dim: There is no such dimension of self." in lines


def test_near_names_are_told():
    for stack, name, meant in [(ascend.ops, "softmx", "softmax"), (ascend.lib, "aclrtMaloc", "aclrtMalloc"),
                               (ascend.lib, "ACL_FLOT16", "ACL_FLOAT16"), (maca.lib, "mcMaloc", "mcMalloc"),
                               (maca.lib, "MCDNN_STATUS_SUCCES", "MCDNN_STATUS_SUCCESS")]:  # fmt: skip
        with pytest.raises(AttributeError, match=f"did you mean {meant}\\?"):
            getattr(stack, name)


def test_mypy_accepts_a_program(stub, tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    package = tmp_path / "understudy"
    shutil.copytree(ROOT / "python" / "understudy", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(stub, package / "ascend")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from understudy import ascend\nascend.ops.add(1)\nascend.ops.softmx(1)\nascend.array(1).shap\n")
    check = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent", "--cache-dir",
             tmp_path / "cache"]  # fmt: skip
    done = subprocess.run([*check, program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    done = subprocess.run([*check, wrong], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.count("error:") >= 3, done.stdout
