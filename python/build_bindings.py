"""Makes a cffi module (out of line, ABI mode) from the shipped headers of one stack.

The headers are run through the C compiler's preprocessor; what comes from our own include folder is kept, rewritten to
the C subset that cffi reads, and emitted as Python. There is no second copy of any declaration.
"""

from __future__ import annotations

import argparse
import ast
import functools
import operator
import pathlib
import re
import subprocess
import sys

import cffi

# Folders of include/ that go on the include path of a stack, as in the vendors' compile commands.
INCLUDE_PATHS = {
    "ascend": ["ascend", "ascend/aclnn", "ascend/aclnnop"],
    "maca": ["maca", "maca/mcr", "maca/mcdnn", "maca/mcblas"],
    "ftdsp": ["ftdsp"],
}

OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}


def headers_of(roots: list[pathlib.Path], stack: str) -> list[pathlib.Path]:
    headers = [header for root in roots for header in sorted((root / stack).rglob("*.h"))]
    if not headers:
        sys.exit(f"build_bindings: no headers of {stack} in {', '.join(map(str, roots))}")
    return headers + [root / "understudy" / "understudy.h" for root in roots if (root / "understudy").is_dir()]


def preprocess(compiler: str, roots: list[pathlib.Path], stack: str) -> str:
    unit = "".join(f'#include "{header}"\n' for header in headers_of(roots, stack))
    paths = [f"-I{root / path}" for root in roots for path in [*INCLUDE_PATHS[stack], "."]]
    command = [compiler, "-x", "c", "-std=c11", "-E", "-dD", *paths, "-"]
    result = subprocess.run(command, input=unit, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"build_bindings: the headers of {stack} do not compile\n{result.stderr}")
    return result.stdout


def own_lines(preprocessed: str, roots: list[pathlib.Path]):
    """Lines that come from files below `roots`, going by the preprocessor's line markers."""
    @functools.cache
    def is_ours(file: str) -> bool:
        return any(pathlib.Path(file).is_relative_to(root) for root in roots)

    ours = False
    for line in preprocessed.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = is_ours(marker[1])
        elif ours:
            yield line


def integer_value(text: str, known: dict[str, int]) -> int | None:
    """The value of a macro body that is an integer expression; None for anything else."""
    text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
    text = re.sub(r"\b0([0-7]+)\b", r"0o\1", text)

    def value(node):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name):
            return known[node.id]
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return OPERATORS[type(node.op)](value(node.operand))
        raise ValueError

    try:
        return value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, KeyError):
        return None


def split_macros(lines) -> tuple[str, dict[str, str]]:
    """Declarations without preprocessor lines, and the bodies of the macros that have one."""
    declarations, macros = [], {}
    for line in lines:
        define = re.match(r"#define (\w+) (.+)", line)
        if define:
            macros[define[1]] = define[2]
        elif not line.startswith("#"):
            declarations.append(line)
    return "\n".join(declarations), macros


def integers(macros: dict[str, str], known: dict[str, int]) -> dict[str, int]:
    """The macros that are integers; they may use each other and what is `known`, in any order."""
    values = {}
    while found := {
        name: value
        for name, text in macros.items()
        if name not in values and (value := integer_value(text, {**known, **values})) is not None
    }:
        values.update(found)
    return values


def enumerators(cdef: str) -> dict[str, int]:
    ffi = cffi.FFI()
    ffi.cdef(cdef)
    process = ffi.dlopen(None)
    constants = {name: getattr(process, name, None) for name in dir(process)}
    return {name: value for name, value in constants.items() if isinstance(value, int)}


def end_of_group(text: str, start: int) -> int:
    """Index behind the bracket that closes the one at `start`."""
    pairs = {"(": ")", "{": "}"}
    opening, closing = text[start], pairs[text[start]]
    depth = 0
    for index in range(start, len(text)):
        depth += (text[index] == opening) - (text[index] == closing)
        if depth == 0:
            return index + 1
    sys.exit(f"build_bindings: unbalanced {opening} near: {text[start:start + 80]}")


def remove_groups(text: str, pattern: str, bracket: str, tail: str = "") -> str:
    """Removes what starts with `pattern` up to the end of the next bracketed group, and `tail` behind it."""
    start, behind = re.compile(pattern), re.compile(r"\s*" + re.escape(tail))
    kept, position = [], 0
    while found := start.search(text, position):
        kept.append(text[position : found.start()])
        position = end_of_group(text, text.index(bracket, found.start()))
        if tail and (end := behind.match(text, position)):
            position = end.end()
    return "".join([*kept, text[position:]])


def to_cdef(declarations: str) -> str:
    """Rewrites C11 declarations to what cffi's parser reads."""
    text = remove_groups(declarations, r"\b__attribute__\b", "(")
    text = remove_groups(text, r"\b_Static_assert\b", "(", ";")
    text = remove_groups(text, r"\bstatic\s+(?:__)?inline\b", "{")
    # cffi has no half type; only its size matters behind a pointer.
    text = re.sub(r"\b_Float16\b", "uint16_t", text)
    return re.sub(r"\b__extension__\b", "", text)


def with_macros(values: dict[str, int], cdef: str) -> str:
    return "".join(f"#define {name} {number}\n" for name, number in values.items()) + cdef


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", choices=INCLUDE_PATHS, required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True, nargs="+", help="folders with a folder per stack")
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    roots = [root.resolve() for root in options.include]
    declarations, macros = split_macros(own_lines(preprocess(options.compiler, roots, options.stack), roots))
    # Array sizes and enumerators may use macros, macros may use enumerators.
    cdef = with_macros(integers(macros, {}), to_cdef(declarations))
    cdef = with_macros(integers(macros, enumerators(cdef)), to_cdef(declarations))
    ffi = cffi.FFI()
    ffi.cdef(cdef)
    ffi.set_source(f"_{options.stack}_cffi", None)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    ffi.emit_python_code(str(options.output))


if __name__ == "__main__":
    main()
