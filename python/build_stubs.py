"""Makes ops.pyi, the types of the NumPy functions of the operators: from the pages' data, and from ops.py for those that are
written there. What a page says is in the docstrings, so that editors show it.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import pathlib
import re

ASCEND = pathlib.Path(__file__).parent / "understudy" / "ascend"

HEAD = '''"""Types of understudy.ascend.ops, made from the operators' pages."""

import builtins
from collections.abc import Sequence
from typing import Any, TypeAlias

from numpy.typing import DTypeLike

# Arrays, torch tensors on the CPU, device arrays, numbers.
ArrayLike: TypeAlias = Any
# NumPy arrays; device arrays where one of the inputs is one.
Array: TypeAlias = Any
Number: TypeAlias = builtins.bool | builtins.int | builtins.float | builtins.complex

'''

# In annotations of ops.py: results may be device arrays too, and operators have the names of built-in types.
ANNOTATIONS = [(re.compile(r"numpy\.ndarray"), "Array"), (re.compile(r"\b(int|float|bool|str|tuple)\b"), r"builtins.\1")]


def operator_text():
    specification = importlib.util.spec_from_file_location("operator_text", ASCEND / "operator_text.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _annotation(node: ast.expr | None) -> str:
    text = ast.unparse(node) if node else "Any"
    for pattern, replacement in ANNOTATIONS:
        text = pattern.sub(replacement, text)
    return text


def _annotated(arguments: ast.arguments) -> str:
    for argument in [*arguments.args, *arguments.kwonlyargs]:
        argument.annotation = ast.Name(_annotation(argument.annotation) if argument.annotation else "ArrayLike")
    return ast.unparse(arguments)


def written_functions(text) -> dict[str, str]:
    """The functions of ops.py, by name."""
    found = {}
    for node in ast.parse((ASCEND / "ops.py").read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            body = text.quoted(ast.get_docstring(node) or node.name)
            found[node.name] = f"def {node.name}({_annotated(node.args)}) -> {_annotation(node.returns)}:\n{body}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=pathlib.Path, required=True, help="pages.json")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    text = operator_text()
    entries = json.loads(options.pages.read_text("utf-8"))["operators"].values()
    functions = {entry["python"]: text.stub(entry) for entry in entries if text.has_function(entry)} | written_functions(text)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(HEAD + "\n".join(functions[name] for name in sorted(functions)), "utf-8")


if __name__ == "__main__":
    main()
