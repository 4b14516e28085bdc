"""The README's table of functions, made from the headers, the libraries and the list of names the vendors have.

    python -m tests.function_table --write    puts it between the markers in README.md and README.zh-CN.md
"""

import os
import pathlib
import re
import subprocess
import sys

from understudy.kit import catalogue, names
from understudy.paths import STACKS

ROOT = pathlib.Path(__file__).parents[1]
BEGIN, END = "<!-- functions: begin -->", "<!-- functions: end -->"
TITLES = {"ascend": "Ascend CANN", "maca": "MetaX MACA", "ftdsp": "FT DSP"}
HEADINGS = {"README.md": ("header", "complete", "refused", "missing", "functions"),
            "README.zh-CN.md": ("头文件", "已实现", "拒绝", "缺少", "个函数")}  # fmt: skip
FT_WORDS = {"README.md": ("operator", "no prefix", "`s`, `p`: the functions with that suffix, on both chips or on one: "
                          "¹ FT78NE, ² MT7004. –: missing."),
            "README.zh-CN.md": ("算子", "无前缀", "`s`、`p`：带该后缀的函数；两种芯片都有，或仅一种：¹ FT78NE，² MT7004。–：缺少。")}  # fmt: skip
PREFIXES = ["fp", "hp", "dp", "i8", "i16", "i32", "c64", "c128"]
CHIPS = {"FT78NE": "¹", "MT7004": "²"}


def readmes():
    return [ROOT / name for name in HEADINGS if (ROOT / name).exists()]


def complete_functions(stack):
    """Header -> the functions that it declares and a library exports."""
    from tests.test_exports import LIBRARIES, declarations, elf_facts

    exported = {name for library, (owner, _) in LIBRARIES.items() if owner == stack for name in elf_facts(library)["exported"]}
    root = STACKS[stack].root / "include"
    found = {}
    for file in sorted(root.rglob("*.h")):
        header = str(file.relative_to(root))
        if "level2/" not in header and (functions := sorted(declarations(stack).get(header, set()) & exported)):
            found[header] = functions
    return found


def without_refused(found):
    """What is complete, and what is only declared so that programs link: header -> functions, twice."""
    refused = catalogue.refused_functions().keys()
    return [{header: kept for header, functions in found.items() if (kept := [f for f in functions if (f in refused) == wanted])}
            for wanted in (False, True)]


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


def functions_by_header(readme, *columns):
    """A column for each of complete, refused and missing that any header has something in."""
    titles = [(word, column) for word, column in zip(HEADINGS[readme][1:4], columns, strict=True) if column]
    lines = [f"| {' | '.join([HEADINGS[readme][0], *(word for word, _ in titles)])} |", "|---" * (1 + len(titles)) + "|"]
    for header in sorted({header for column in columns for header in column}):
        cells = [f"`{header}`", *(brief(column.get(header, [])) for _, column in titles)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def functions_of_chip(chip, functions):
    """Those that the library serves as this chip: it is asked, function by function."""
    command = [sys.executable, "-m", "tests.ftdsp.chip_functions", *functions]
    environment = {**os.environ, "UNDERSTUDY_FT_CHIP": chip, "UNDERSTUDY_LOG": "off"}
    return set(subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=True).stdout.split())


def split_ft_name(name):
    """fp_add_s -> add, fp, s; assert_s -> assert, no prefix, s."""
    operator, _, suffix = name.rpartition("_")
    prefix, _, rest = operator.partition("_")
    return (rest, prefix, suffix) if prefix in PREFIXES else (operator, "", suffix)


def functions_by_operator(readme, complete, missing):
    """Operators of the FT DSP library against prefixes: suffixes and chips in the cells."""
    operator_word, no_prefix, legend = FT_WORDS[readme]
    functions = sorted(name for names_of_header in complete.values() for name in names_of_header)
    served = {chip: functions_of_chip(chip, functions) for chip in CHIPS}
    cells, headers = {}, {}
    for header, functions in complete.items():
        for name in sorted(functions, reverse=True):  # s before p
            operator, prefix, suffix = split_ft_name(name)
            chips = [chip for chip in CHIPS if name in served[chip]]
            assert chips, f"{name} is on no chip"
            mark = "" if len(chips) == len(CHIPS) else CHIPS[chips[0]]
            cells.setdefault((operator, prefix), []).append(suffix + mark)
            headers[operator] = header
    for name in missing:
        operator, prefix, _ = split_ft_name(name)
        cells[operator, prefix] = ["–"]
    columns = [*PREFIXES, ""]
    titles = [f"`{prefix}`" if prefix else no_prefix for prefix in columns]
    lines = [legend, "", f"| {operator_word} | {HEADINGS[readme][0]} | {' | '.join(titles)} |",
             "|---" * (2 + len(columns)) + "|"]
    for operator in sorted({operator for operator, _ in cells}):
        header = f"`{headers[operator]}`" if operator in headers else ""
        row = [" ".join(cells.get((operator, prefix), [])) for prefix in columns]
        lines.append(f"| `{operator}` | {header} | {' | '.join(row)} |")
    return lines


def table(readme):
    words = HEADINGS[readme]
    lines = [BEGIN, ""]
    for stack in STACKS:
        complete = complete_functions(stack)
        missing = missing_functions(stack, complete)
        complete, refused = without_refused(complete)
        done, only_declared, absent = (sum(map(len, found.values())) for found in (complete, refused, missing))
        counts = [f"{done} {words[4]} {words[1]}", *([f"{only_declared} {words[2]}"] if only_declared else []),
                  f"{absent} {words[3]}"]  # fmt: skip
        lines += ["<details>", f"<summary>{TITLES[stack]}: {', '.join(counts)}</summary>", ""]
        if stack == "ftdsp":
            lines += [*functions_by_operator(readme, complete, missing.pop("libftdsp.so", [])), ""]
            complete = {}
        lines += [*functions_by_header(readme, complete, refused, missing), "", "</details>", ""]
    return "\n".join([*lines, END])


def replaced(readme):
    text = (ROOT / readme).read_text()
    return re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: table(readme), text, flags=re.DOTALL)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for path in readmes():
        path.write_text(replaced(path.name))
