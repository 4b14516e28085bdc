"""The README's table of functions, made from the headers, the libraries and the list of names the vendors have.

    python -m tests.function_table --write    puts it between the markers in README.md and README.zh-CN.md
"""

import pathlib
import re
import sys

from understudy.kit import names
from understudy.paths import STACKS

ROOT = pathlib.Path(__file__).parents[1]
BEGIN, END = "<!-- functions: begin -->", "<!-- functions: end -->"
TITLES = {"ascend": "Ascend CANN", "maca": "MetaX MACA", "ftdsp": "FT DSP"}
HEADINGS = {"README.md": ("header", "complete", "missing", "functions"),
            "README.zh-CN.md": ("头文件", "已实现", "缺少", "个函数")}  # fmt: skip


def readmes():
    return [ROOT / name for name in HEADINGS if (ROOT / name).exists()]


def complete_functions(stack):
    """Header -> the functions that it declares and a library exports."""
    from tests.test_exports import LIBRARIES, declared_functions, elf_facts

    exported = {name for library, (owner, _) in LIBRARIES.items() if owner == stack for name in elf_facts(library)["exported"]}
    root = STACKS[stack].root / "include"
    found = {}
    for file in sorted(root.rglob("*.h")):
        header = str(file.relative_to(root))
        if "level2/" not in header and (functions := sorted(declared_functions(stack, [header]) & exported)):
            found[header] = functions
    return found


def missing_functions(stack, complete):
    """Header -> the vendor's functions that are not emulated."""
    known = {name for functions in complete.values() for name in functions}
    found = {}
    for name in sorted(names.known()):
        entry = names.known()[name]
        if entry.stack == stack and name not in known and not name.endswith("GetWorkspaceSize"):
            found.setdefault(entry.header or entry.library or "-", []).append(name)
    return found


def brief(functions):
    """aclnnX and aclnnXGetWorkspaceSize as one; fp_x_s and fp_x_p as fp_x_{s,p}."""
    whole = set(functions)
    text = []
    for name in functions:
        if name.removesuffix("GetWorkspaceSize") != name and name.removesuffix("GetWorkspaceSize") in whole:
            continue
        if name.endswith("_p") and name[:-1] + "s" in whole:
            text.append(name[:-1] + "{s,p}")
        elif not (name.endswith("_s") and name[:-1] + "p" in whole):
            text.append(name)
    return " ".join(f"`{name}`" for name in text)


def table(readme):
    header_word, complete_word, missing_word, functions_word = HEADINGS[readme]
    lines = [BEGIN, ""]
    for stack in STACKS:
        complete = complete_functions(stack)
        missing = missing_functions(stack, complete)
        done = sum(map(len, complete.values()))
        absent = sum(map(len, missing.values()))
        lines += ["<details>", f"<summary>{TITLES[stack]}: {done} {functions_word} {complete_word}, {absent} {missing_word}"
                  "</summary>", "", f"| {header_word} | {complete_word} | {missing_word} |", "|---|---|---|"]  # fmt: skip
        for header in sorted({*complete, *missing}):
            lines.append(f"| `{header}` | {brief(complete.get(header, []))} | {brief(missing.get(header, []))} |")
        lines += ["", "</details>", ""]
    return "\n".join([*lines, END])


def replaced(readme):
    text = (ROOT / readme).read_text()
    return re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: table(readme), text, flags=re.DOTALL)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for path in readmes():
        path.write_text(replaced(path.name))
