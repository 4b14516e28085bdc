"""Links the objects of each instruction-set level into one, and makes the functions that choose between the levels.

    levels.py OUTPUT --compiler gcc --nm nm --objcopy objcopy --objdump objdump base=LIST v3=LIST v4=LIST

Every LIST is a file of the objects of one level, all of the same sources. In OUTPUT/LEVEL.o each of their functions us_f is
called us_f_LEVEL, and calls of it in the level go to that. OUTPUT/levels.S has us_f itself, which goes on to the function of
the level in use: that of us_level_row, which tensor/levels.c sets when the library is loaded.

Levels that would give other results than each other are refused: no source asks for the instructions of FUSED, but GCC 12
makes them of complex products, whatever -ffp-contract says.
"""

import argparse
import pathlib
import re
import subprocess
import sys

# Of these there would be one for each level, and nobody would know which of them is meant.
VARIABLES = (".data", ".bss", ".tdata", ".tbss", "*COM*")
FUSED = re.compile(r"\tvfm(?:addsub|subadd)")


def output_of(*command) -> str:
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def symbols(nm: str, file: pathlib.Path) -> list[tuple[str, str, str]]:
    """Those the file defines: name, whether it is global ("T") or not ("t"), section."""
    lines = [[part.strip() for part in line.split("|")] for line in output_of(nm, "-f", "sysv", file).splitlines()]
    return [(line[0], line[2], line[6]) for line in lines if len(line) == 7 and line[6] and line[6] != "*UND*"]


def functions(nm: str, file: pathlib.Path) -> list[str]:
    """The global functions of a level, which must have nothing else that others see, and no state."""
    found = symbols(nm, file)
    wrong = [name for name, kind, section in found
             if section.startswith(VARIABLES) and not section.startswith(".data.rel.ro")
             or kind.isupper() and not section.startswith(".text")]  # fmt: skip
    if wrong:
        sys.exit(f"{file.name}: sources that are compiled once for each level have variables or global data: "
                 f"{', '.join(sorted(wrong))}")
    return sorted(name for name, kind, section in found if kind == "T")


def fused(objdump: str, file: pathlib.Path) -> list[str]:
    """Functions that have an instruction of FUSED."""
    functions = re.split(r"^[0-9a-f]+ <(.*)>:$", output_of(objdump, "-d", "--no-show-raw-insn", file), flags=re.MULTILINE)
    return [name for name, code in zip(functions[1::2], functions[2::2]) if FUSED.search(code)]


def link(compiler: str, objects: pathlib.Path, file: pathlib.Path) -> None:
    output_of(compiler, "-r", "-nostdlib", "-o", file, f"@{objects}")


JUMP = """
.globl {name}
.type {name}, @function
.p2align 4
{name}:
    movq us_level_row(%rip), %r11
    jmp *{offset}(%r11)
.size {name}, . - {name}
"""
ROW_ENTRY = """    .hidden {name}_{level}
    .quad {name}_{level}
"""
ROWS = """
.section .data.rel.ro, "aw"
.p2align 3
{rows}
.globl us_level_rows
.hidden us_level_rows
us_level_rows:
    .quad {labels}

.data
.p2align 3
.globl us_level_row
.hidden us_level_row
us_level_row:
    .quad row_{first}
.section .note.GNU-stack, "", @progbits
"""


def jumps(names: list[str], levels: list[str]) -> str:
    text = "/* Made by src_c/generate/levels.py: each function goes on to that of the level in use. */\n.text\n"
    text += "".join(JUMP.format(name=name, offset=8 * k) for k, name in enumerate(names))
    rows = [f"row_{level}:\n" + "".join(ROW_ENTRY.format(name=name, level=level) for name in names) for level in levels]
    return text + ROWS.format(rows="".join(rows), labels=", ".join(f"row_{level}" for level in levels), first=levels[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    for tool in ("compiler", "nm", "objcopy", "objdump"):
        parser.add_argument(f"--{tool}", required=True)
    parser.add_argument("levels", nargs="+", help="LEVEL=LIST")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    names: dict[str, list[str]] = {}
    for pair in options.levels:
        level, objects = pair.split("=", 1)
        plain, renamed, file = (options.output / f"{level}{suffix}" for suffix in (".plain.o", ".names", ".o"))
        link(options.compiler, pathlib.Path(objects), plain)
        names[level] = functions(options.nm, plain)
        if found := fused(options.objdump, plain):
            sys.exit(f"{level}: complex products were fused with sums (see US_SCALAR in tensor/levels.h): {', '.join(found)}")
        renamed.write_text("".join(f"{name} {name}_{level}\n" for name in names[level]))
        output_of(options.objcopy, f"--redefine-syms={renamed}", plain, file)
        plain.unlink()
    levels = list(names)
    differing = set.union(*map(set, names.values())) - set.intersection(*map(set, names.values()))
    if differing:
        sys.exit(f"not in every level: {', '.join(sorted(differing))}")
    (options.output / "levels.S").write_text(jumps(names[levels[0]], levels))


if __name__ == "__main__":
    main()
