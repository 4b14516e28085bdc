"""`understudy abi`: a library, or what a program was compiled against, beside the emulated headers."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
from dataclasses import dataclass, field

from understudy.errors import UsageError
from understudy.kit import names, table

TOKEN = re.compile(r"enum \w+|\w+|\.\.\.|[*(),\[\]]")
BUILT_IN = re.compile(r"void|bool|(u?int|float)\d+|\d+")
COLOURS = {"missing": "red", "prototype": "red", "structure": "red", "constant": "red", "extra": "yellow"}


def add_arguments(parser) -> None:
    parser.add_argument("library", nargs="?", metavar="LIB", help="a library, or a program with debug information")
    parser.add_argument("--against", metavar="VERSION", help="compare with the ABI lock of this version")
    parser.add_argument("--as", dest="name", metavar="NAME", help="compare with this library, such as libmcdnn.so")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--write-lock", nargs="?", const="abi", metavar="FOLDER",
                        help="write the ABI of this version to FOLDER/VERSION.json (default: abi)")  # fmt: skip
    parser.epilog = ("Exit status: 0 when nothing differs, 1 for missing functions, or prototypes, structures or "
                     "constants that differ. Functions that only LIB has are listed and do not count.")  # fmt: skip


@dataclass
class Comparison:
    file: str
    library: str  # of ours that it is compared with; "" for a program
    version: str
    types_compared: bool = False
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    differences: list[tuple[str, str, str, str]] = field(default_factory=list)  # kind, name, the headers', the file's
    abidiff: str = ""

    @property
    def equal(self) -> bool:
        return not self.missing and not self.differences


def stack_surfaces(surface: dict, stack: str) -> list[dict]:
    return [surface["stacks"][stack]] if stack else list(surface["stacks"].values())


def structure_names(part: dict) -> set[str]:
    """Every structure that the headers name, complete or not."""
    tokens = {token for text in [*part["functions"].values(), *part["types"].values()] for token in TOKEN.findall(text)}
    return {token for token in tokens if token.isidentifier() and not BUILT_IN.fullmatch(token)}


def alike(ours: str, theirs: str, known: set[str]) -> bool:
    """Whether two types are called alike. A structure or enumeration with a name that our headers do not have may be
    one of theirs under another name; an enumeration and an integer are passed alike."""
    first, second = TOKEN.findall(ours), TOKEN.findall(theirs)
    if len(first) != len(second):
        return False
    for index, (mine, other) in enumerate(zip(first, second)):
        if mine == other:
            continue
        kinds = {_kind(mine), _kind(other)}
        if kinds <= {"integer", "enum"} and "enum" in kinds and (other not in known or "integer" in kinds):
            continue
        if kinds == {"structure"} and other not in known:
            continue
        behind_pointer = first[index + 1 : index + 2] == ["*"]
        if {mine, other} == {"uint16", "float16"} and behind_pointer:  # half, in two languages
            continue
        return False
    return True


def _kind(token: str) -> str:
    if token.startswith("enum "):
        return "enum"
    if token in ("int32", "uint32"):
        return "integer"
    return "structure" if token.isidentifier() and not BUILT_IN.fullmatch(token) else "other"


def compare_types(comparison: Comparison, path: pathlib.Path, parts: list[dict], functions: set[str] | None) -> None:
    """Prototypes, structures and enumerators in the file's debug information, beside the headers'."""
    from understudy.kit import dwarf, elf

    for part in parts:
        known = structure_names(part) | {f"enum {name}" for name in part["types"]}
        known |= {token for text in part["functions"].values() for token in TOKEN.findall(text)}
        with elf.damage(path):
            found = dwarf.read(path, {*part["functions"], *part["structures"], *part["constants"]})
        for name, theirs in sorted(found.functions.items()):
            ours = part["functions"][name]
            if (functions is None or name in functions) and not alike(ours, theirs, known):
                comparison.differences.append(("prototype", name, ours, theirs))
        for name, theirs in sorted(found.structures.items()):
            comparison.differences += [("structure", name, *pair)
                                       for pair in structure_differences(part["structures"][name], theirs, known)]
        for name, theirs in sorted(found.constants.items()):
            ours = part["constants"].get(name)
            if ours != theirs:
                comparison.differences.append(("constant", name, str(ours), str(theirs)))


def structure_differences(ours: dict, theirs: dict, known: set[str]) -> list[tuple[str, str]]:
    pairs = []
    if ours["size"] != theirs["size"]:
        pairs.append((f"{ours['size']} bytes", f"{theirs['size']} bytes"))
    split = [{name: (offset, kind) for offset, name, kind in map(_split_field, side["fields"])}
             for side in (ours, theirs)]  # fmt: skip
    for name in {**split[0], **split[1]}:
        mine, other = (side.get(name) for side in split)
        if mine is None or other is None or mine[0] != other[0] or not alike(mine[1], other[1], known):
            texts = (f"{name}: {field[1]} at {field[0]}" if field else f"no {name}" for field in (mine, other))
            pairs.append(tuple(texts))
    return pairs


def _split_field(text: str) -> tuple[int, str, str]:
    head, _, kind = text.partition(": ")
    offset, _, name = head.partition(" ")
    return int(offset), name, kind


def compare(path: str, surface: dict, name: str | None) -> Comparison:
    """Raises UsageError for what is no ELF file, or can be compared with nothing of ours."""
    from understudy.kit import elf

    facts = elf.read(path)
    plain = [candidate.partition(".so")[0] + ".so" for candidate in (facts.soname, facts.path.name)]
    library = name or next((candidate for candidate in plain if candidate in surface["libraries"]), "")
    if library and library not in surface["libraries"]:
        raise UsageError(f"there is no {library}; there are: {', '.join(sorted(surface['libraries']))}")
    if not library and facts.kind == "library":
        raise UsageError(f"{path} has no name of ours; say with --as which of these it is to be: "
                         f"{', '.join(sorted(surface['libraries']))}")  # fmt: skip
    comparison = Comparison(str(path), library, surface["version"], types_compared=facts.has_debug_information)
    stack, functions = "", None
    if library:
        functions = set(surface["libraries"][library]["functions"])
        stack = surface["libraries"][library]["stack"]
        comparison.missing = sorted(functions - facts.exported)
        comparison.extra = sorted(facts.exported - functions)
    elif not facts.has_debug_information:
        raise UsageError(f"{path} is a {facts.kind} without debug information: compile it with -g")
    if facts.has_debug_information:
        compare_types(comparison, facts.path, stack_surfaces(surface, stack), functions)
    return comparison


def run_abidiff(comparison: Comparison) -> str:
    """libabigail's report, when it is installed and both libraries have debug information."""
    from understudy.kit import sdk

    ours = sdk.libraries().get(comparison.library)
    tool = shutil.which("abidiff")
    if tool is None or ours is None or not (ours[1].has_debug_information and comparison.types_compared):
        return ""
    command = [tool, ours[1].path, comparison.file]
    return subprocess.run(command, capture_output=True, text=True, errors="replace").stdout.strip()


def extra_note(name: str) -> str:
    from understudy.kit import sdk

    if name in sdk.exporters():
        return f"emulated in {', '.join(sdk.exporters()[name])}"
    return "the vendor has it; it is not emulated" if name in names.known() else ""


def print_comparison(comparison: Comparison) -> None:
    what = comparison.library or "the headers"
    print(table.coloured(comparison.file, "bold") + f" beside {what} of {comparison.version}")
    rows = [("missing", name, "") for name in comparison.missing]
    rows += [(kind, name, f"{ours} in the headers, {theirs} in the file")
             for kind, name, ours, theirs in comparison.differences]  # fmt: skip
    rows += [("extra", name, extra_note(name)) for name in comparison.extra]
    if rows:
        print(table.render(rows, colours=COLOURS))
    if not comparison.types_compared:
        print("  prototypes and types were not compared: the file has no debug information")
    counts = [f"{len(comparison.missing)} missing", table.plural(len(comparison.differences), "difference"),
              f"{len(comparison.extra)} extra"]  # fmt: skip
    print("  " + ", ".join(counts))
    if comparison.abidiff:
        print("\nabidiff:\n" + comparison.abidiff)


def as_json(comparison: Comparison) -> str:
    keys = ("kind", "name", "headers", "file")
    return json.dumps({
        "file": comparison.file, "library": comparison.library, "version": comparison.version,
        "equal": comparison.equal, "types_compared": comparison.types_compared,
        "missing": comparison.missing, "extra": comparison.extra, "abidiff": comparison.abidiff,
        "differences": [dict(zip(keys, difference)) for difference in comparison.differences],
    }, indent=1)  # fmt: skip


def run(options) -> int:
    from understudy.kit import surface

    if options.write_lock is not None:
        if options.library:
            raise UsageError("--write-lock takes no LIB: it writes down the emulated headers")
        print(f"wrote {surface.write_lock(pathlib.Path(options.write_lock))}")
        return 0
    if not options.library:
        raise UsageError("no LIB given (see understudy abi --help)")
    basis = surface.locked(options.against) if options.against else surface.current()
    comparison = compare(options.library, basis, options.name)
    comparison.abidiff = run_abidiff(comparison)
    if options.json:
        print(as_json(comparison))
    else:
        print_comparison(comparison)
    return 0 if comparison.equal else 1
