"""The package, its build and its tests keep to what the oldest Python of pyproject.toml has: no match statements, no unions of
types in isinstance or in annotations that are evaluated, no zip(strict=True), no tomllib."""

import ast
import re

from tests.native import ROOT

FOLDERS = ("python", "src_c/generate", "tests", "tools")
OTHERS = {"clients"}  # with other requirements: PyTorch's adapter
SUSPECT = re.compile(r" \| |strict=True|tomllib|^\s*match .*:$", re.MULTILINE)


def has_union(node) -> bool:
    parts = (getattr(node, name, None) for name in ("annotation", "returns"))
    return any(isinstance(inner, ast.BinOp) for part in parts if isinstance(part, ast.AST) for inner in ast.walk(part))


def faults(text: str):
    if not SUSPECT.search(text):
        return
    is_lazy = "from __future__ import annotations" in text
    for node in ast.walk(ast.parse(text, feature_version=(3, 9))):
        if not is_lazy and has_union(node):
            yield f"{node.lineno}: a union in an annotation needs from __future__ import annotations"
        called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if called in ("isinstance", "issubclass") and isinstance(node.args[1], ast.BinOp):
            yield f"{node.lineno}: a union of types in {called}; a tuple does that"
        if called == "zip" and node.keywords:
            yield f"{node.lineno}: zip(strict=True); tests.in_step does that"
        if isinstance(node, ast.Import) and any(name.name == "tomllib" for name in node.names):
            yield f"{node.lineno}: tomllib; understudy.toml finds it or its like"


def test_faults_are_found():
    text = "import tomllib\ndef f(x: int | None): return zip(x, x, strict=True)\n"
    assert sorted(fault[0] for fault in faults(text)) == ["1", "2", "2"]
    assert len(list(faults("isinstance(1, int | float)"))) == 1
    assert not list(faults("from __future__ import annotations\nx: int | None = None\n"))


def test_files_are_for_the_oldest_python():
    assert 'requires-python = ">=3.9"' in (ROOT / "pyproject.toml").read_text()
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py") if not OTHERS & {*file.parts}]
    assert len(files) > 200
    assert [f"{file.relative_to(ROOT)}:{fault}" for file in files for fault in faults(file.read_text())] == []
