"""The page of functions and the READMEs' counts, made from the headers, the libraries and the names the vendors have.

    python -m tests.function_table --write    writes docs/functions.md, and the counts in README.md and README.zh-CN.md
"""

import functools
import os
import pathlib
import re
import subprocess
import sys
import textwrap

from understudy.kit import catalogue, names
from understudy.paths import STACKS

ROOT = pathlib.Path(__file__).parents[1]
BEGIN, END = "<!-- functions: begin -->", "<!-- functions: end -->"
TITLES = {"ascend": "Ascend CANN", "maca": "MetaX MACA", "ftdsp": "FT DSP"}
PAGE = ROOT / "docs" / "functions.md"
HEADINGS = {"README.md": ("stack", "complete", "refused", "missing"),
            "README.zh-CN.md": ("软件栈", "已实现", "拒绝", "缺少")}  # fmt: skip
INTRODUCTION = """# Functions

What is emulated, function by function. Complete means: every documented rule, type, layout and edge case. Refused means: it
is there, so that programs link, and refuses with the reason. Missing means: the vendor has it, we do not, and a program
that needs it does not link. Two functions of one operator (`aclnnX` and `aclnnXGetWorkspaceSize`) are one entry, and so are
`fp_x_s` and `fp_x_p`. `understudy doctor PROGRAM` says which of them a program needs.

This page is made by `python -m tests.function_table --write`.
"""
LEGEND = "`s`, `p`: the functions with that suffix, on both chips or on one: ¹ FT78NE, ² MT7004. –: missing."
WIDTH = 118
PREFIXES = ["fp", "hp", "dp", "i8", "i16", "i32", "c64", "c128"]
CHIPS = {"FT78NE": "¹", "MT7004": "²"}


def complete_functions(stack):
    """Header -> the functions that it declares and a library exports."""
    from tests.test_exports import LIBRARIES, declarations, elf_facts

    exported = {name for library, (owner, _) in LIBRARIES.items() if owner == stack
                for name in elf_facts(library)["exported"]}  # fmt: skip
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
    return [{header: kept
             for header, functions in found.items() if (kept := [f for f in functions if (f in refused) == wanted])}
            for wanted in (False, True)]  # fmt: skip


def missing_functions(stack, complete):
    """Header -> the vendor's functions that are not emulated."""
    known = {name for functions in complete.values() for name in functions}
    found = {}
    for name, entry in sorted({**names.known(), **names.common()}.items()):
        if entry.stack == stack and name not in known and not name.endswith("GetWorkspaceSize"):
            found.setdefault(entry.header or entry.library or "-", []).append(name)
    return found


def brief(functions):
    """aclnnX and aclnnXGetWorkspaceSize as one; fp_x_s and fp_x_p as fp_x_{s,p}."""
    whole, text = set(functions), []
    for name in functions:
        if name.removesuffix("GetWorkspaceSize") != name and name.removesuffix("GetWorkspaceSize") in whole:
            continue
        if name.endswith("_p") and name[:-1] + "s" in whole:
            text.append(name[:-1] + "{s,p}")
        elif not (name.endswith("_s") and name[:-1] + "p" in whole):
            text.append(name)
    return text


def functions_by_header(groups):
    """A list per header and word ("complete" …); the headers with one operator each are one entry."""
    places = {}
    for word, headers in groups.items():
        for header, functions in headers.items():
            place = re.sub(r"^aclnnop/.*", "aclnnop/", header)
            places.setdefault(place, {}).setdefault(word, []).extend(brief(functions))
    lines = []
    for place in sorted(places):
        lines += [f"`{place}`" + (", a header per operator" if place == "aclnnop/" else ""), ""]
        for word, functions in places[place].items():
            text = f"- {word}, {len(functions)}: " + " ".join(sorted(functions))
            lines += textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        lines.append("")
    return lines


def functions_of_chip(chip, functions):
    """Those that the library serves as this chip: it is asked, function by function."""
    command = [sys.executable, "-m", "tests.ftdsp.chip_functions", *functions]
    environment = {**os.environ, "UNDERSTUDY_FT_CHIP": chip, "UNDERSTUDY_LOG": "off"}
    return set(subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=True).stdout.split())


def split_ft_name(name):
    """fp_add_s -> add, fp, s; assert_s -> assert, no prefix, s; Flatten -> Flatten, no prefix, itself."""
    if "_" not in name:
        return name, "", name
    operator, _, suffix = name.rpartition("_")
    prefix, _, rest = operator.partition("_")
    return (rest, prefix, suffix) if prefix in PREFIXES else (operator, "", suffix)


def functions_by_operator(complete, missing):
    """Operators of the FT DSP library against prefixes: suffixes and chips in the cells."""
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
        cells.setdefault((operator, prefix), ["–"])
    columns = [*PREFIXES, ""]
    titles = [f"`{prefix}`" if prefix else "no prefix" for prefix in columns]
    lines = [LEGEND, "", f"| operator | header | {' | '.join(titles)} |", "|---" * (2 + len(columns)) + "|"]
    for operator in sorted({operator for operator, _ in cells}):
        header = f"`{headers[operator]}`" if operator in headers else ""
        row = [" ".join(cells.get((operator, prefix), [])) for prefix in columns]
        lines.append(f"| `{operator}` | {header} | {' | '.join(row)} |")
    return lines


@functools.cache
def functions():
    """Stack -> "complete", "refused" and "missing" -> header -> functions."""
    found = {}
    for stack in STACKS:
        there = complete_functions(stack)
        complete, refused = without_refused(there)
        found[stack] = {"complete": complete, "refused": refused, "missing": missing_functions(stack, there)}
    return found


def page():
    lines = [INTRODUCTION]
    for stack, groups in functions().items():
        lines += [f"## {TITLES[stack]}", ""]
        if stack == "ftdsp":
            rest = {header: names for header, names in groups["missing"].items() if header != "libftdsp.so"}
            lines += [*functions_by_operator(groups["complete"], groups["missing"].get("libftdsp.so", [])), ""]
            groups = {"refused": groups["refused"], "missing": rest}
        lines += functions_by_header(groups)
    return "\n".join(lines).rstrip() + "\n"


def counts(readme):
    words = HEADINGS[readme]
    lines = [BEGIN, f"| {' | '.join(words)} |", "|---" * len(words) + "|"]
    for stack, groups in functions().items():
        sums = [sum(len(brief(names)) for names in headers.values()) for headers in groups.values()]
        lines.append(f"| {TITLES[stack]} | {' | '.join(map(str, sums))} |")
    return "\n".join([*lines, END])


def replaced(readme):
    text = (ROOT / readme).read_text()
    return re.sub(re.escape(BEGIN) + ".*" + re.escape(END), lambda _: counts(readme), text, flags=re.DOTALL)


def written():
    """What the files should hold."""
    return {PAGE: page(), **{ROOT / name: replaced(name) for name in HEADINGS}}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for path, text in written().items():
        path.write_text(text)
