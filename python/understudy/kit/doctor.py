"""`understudy doctor`: what of the stacks a binary or sources need, and which of it is emulated."""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
import re
from dataclasses import dataclass, field

from understudy.errors import UsageError
from understudy.kit import catalogue, names, table
from understudy.paths import STACKS

EMULATED, PARTLY, REFUSED, MISSING, UNKNOWN = "emulated", "partly", "refused", "missing", "unknown"
THERE = (EMULATED, PARTLY, REFUSED)
OPERATOR = re.compile(r"aclnn[A-Z]\w*")  # operators of other releases are asked for as well
COLOURS = {EMULATED: "green", PARTLY: "yellow", REFUSED: "yellow", MISSING: "red", UNKNOWN: "red"}
CPP_NAME = re.compile(r"_Z(\d+)([A-Za-z_]\w*)")
NESTED_NAME = re.compile(r"_Z(?:T[VTIS])?N[rVKRO]*(\d+[a-z]+)(?=\d)")
LIBRARY_PATTERN = re.compile(r"lib(acl|ascend|opapi|nnopbase|hccl|ftdsp|hthread"
                             r"|mc(dnn|blas|fft|rand|solver|sparse|cl|pti|rtc|runtime))\w*\.so")  # fmt: skip


def add_arguments(parser) -> None:
    parser.add_argument("file", nargs="+", metavar="FILE",
                        help="ELF program, library or object, of any architecture; C or C++ source; or a folder of sources")  # fmt: skip
    parser.add_argument("-a", "--all", action="store_true", help="list the emulated symbols too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = ("Refused functions are there, so that a program links, and fail with a reason when they are called. "
                     "Exit status: 0 when all that is needed is there, 1 when something is missing or unknown.")


@dataclass(frozen=True)
class Finding:
    name: str
    stack: str
    status: str
    note: str = ""


def judge_library(name: str) -> Finding | None:
    """What a needed library is to us; None for one that belongs to no stack."""
    from understudy.kit import sdk

    plain = name.partition(".so")[0] + ".so"
    if plain in sdk.libraries():
        note = "" if plain == name else f"emulated as {plain}; the version is another"
        return Finding(name, sdk.libraries()[plain][0], EMULATED if plain == name else MISSING, note)
    if plain in names.other_libraries():
        return Finding(name, "", MISSING, names.other_libraries()[plain])
    if LIBRARY_PATTERN.fullmatch(plain):
        near = names.nearest(plain, [*sdk.libraries(), *names.other_libraries()])
        return Finding(name, "", UNKNOWN, f"did you mean {near}?" if near else "")
    return None


def _emulated(name: str, stack: str) -> Finding:
    if rule := catalogue.refused_functions().get(name):
        return Finding(name, stack, REFUSED, rule.sentence)
    limit = names.limits().get(name)
    return Finding(name, stack, PARTLY if limit else EMULATED, limit or "")


def _missing(name: names.Name) -> Finding:
    place = ", ".join(filter(None, [name.library, name.header]))
    since = f", since {name.since}" if name.since else ""
    return Finding(name.name, name.stack, MISSING, f"the vendor has it: {place}{since}")


def _unknown(name: str, stack: str) -> Finding:
    """A name that only looks like the stack's."""
    from understudy.kit import sdk

    candidates = {other for other in sdk.exporters() if sdk.stack_of(other) == stack}
    candidates |= {other for other, entry in names.known().items() if entry.stack == stack}
    near = names.nearest(name, candidates)
    return Finding(name, stack, UNKNOWN, f"did you mean {near}?" if near else "")


def judge_symbol(name: str, stacks: set[str]) -> Finding | None:
    """What an undefined symbol is to us; None for one that belongs to no stack.

    stacks: those that the file needs; there, also a common name and one that only resembles one of theirs is reported."""
    from understudy.kit import sdk

    if stack := sdk.stack_of(name):
        return _emulated(name, stack)
    if name in names.known():
        return _missing(names.known()[name])
    if name in names.common() and names.common()[name].stack in stacks:
        return _missing(names.common()[name])
    if family := names.family_of(name):
        stack, part = family
        return Finding(name, stack, MISSING, f"the vendor has it: {part}")
    if stack := names.stack_by_pattern(name):
        return _unknown(name, stack)
    mangled = CPP_NAME.match(name)
    if mangled:
        plain = mangled[2][: int(mangled[1])]
        if stack := sdk.stack_of(plain) or (names.known()[plain].stack if plain in names.known() else None):
            return Finding(name, stack, UNKNOWN, f"{plain} as a C++ function: it was declared without extern \"C\"")
        return None
    for stack in stacks:
        finding = _unknown(name, stack)
        if finding.note and len(name) > 8:
            return finding
    return None


def namespaces_of(symbols) -> list[Finding]:
    """One finding for each C++ namespace of a stack, of mangled names."""
    counts = collections.Counter(match[1] for name in symbols for match in [NESTED_NAME.match(name)] if match)
    return [Finding(f"{space}::", "ascend", MISSING, f"{table.plural(counts[f'{len(space)}{space}'], 'C++ name')}: {text}")
            for space, text in names.namespaces().items() if counts[f"{len(space)}{space}"]]  # fmt: skip


def models_of(asked: list[Finding]) -> list[str]:
    """Of each kind of model whose functions the file may ask for, how many are emulated."""
    found = {finding.name: finding.status in THERE for finding in asked}
    return [f"{name}: {sum(found[function] for function in functions)} of {len(functions)}"
            for name, functions in names.models().items() if all(function in found for function in functions)]  # fmt: skip


@dataclass(frozen=True)
class Report:
    """What a file needs. `libraries` are a binary's libraries or a source's headers; `asked` are functions that a binary
    may look up while it runs."""

    path: pathlib.Path
    kind: str
    machine: str
    libraries: list[Finding]
    symbols: list[Finding]
    asked: list[Finding] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return all(finding.status in THERE for finding in [*self.libraries, *self.symbols])


def examine(path: str) -> Report:
    """Raises UsageError for what is no ELF file, source or folder of sources."""
    from understudy.kit import sources

    if not path:  # a variable without a value, say; it would be the current folder
        raise UsageError("a FILE is empty")
    found = sources.files(pathlib.Path(path))
    return examine_binary(path) if found is None else examine_sources(pathlib.Path(path), found)


def examine_sources(path: pathlib.Path, files: list[pathlib.Path]) -> Report:
    from understudy.kit import names, sdk, sources

    text = [sources.read(file) for file in files]
    headers = [Finding(header, stack, EMULATED if sources.header_path(header, stack) else MISSING)
               for header, stack in sorted(sources.headers(text).items())]  # fmt: skip
    mentioned, called, declared = sources.identifiers(text)
    listed = {name for name in mentioned if sdk.stack_of(name) or name in names.known()}
    guessed = {name for name in called - declared - listed if names.stack_by_pattern(name)}
    symbols = [finding for name in sorted(listed | guessed) if (finding := judge_symbol(name, set()))]
    return Report(path, "folder of sources" if path.is_dir() else "source file", "", headers, symbols)


def asked_by_name(texts: set[str], undefined: frozenset[str]) -> list[Finding]:
    """Functions of the stacks among the texts; the two phases of an operator are one."""
    from understudy.kit import names, sdk

    functions = {text.removesuffix("GetWorkspaceSize") for text in texts - undefined
                 if sdk.stack_of(text) or text in names.known() or OPERATOR.fullmatch(text)}  # fmt: skip
    return [judge_symbol(name, set()) for name in sorted(functions) if name]


def examine_binary(path: str) -> Report:
    from understudy.kit import elf

    facts = elf.read(path)
    libraries = [finding for name in facts.needed if (finding := judge_library(name))]
    stacks = {finding.stack for finding in libraries if finding.stack}
    symbols = [finding for name in sorted(facts.undefined) if (finding := judge_symbol(name, stacks))]
    symbols += namespaces_of(facts.undefined)
    asked = asked_by_name(elf.identifiers(path) - facts.exported, facts.undefined)
    return Report(facts.path, facts.kind, facts.machine, libraries, symbols, asked)


def print_report(report: Report, everything: bool) -> None:
    machine = f" for {report.machine}" if report.machine else ""
    print(table.coloured(f"{report.path}", "bold") + f": {report.kind}{machine}")
    if not report.libraries and not report.symbols and not report.asked:
        print("  uses none of the stacks\n")
        return
    rows = [(finding.status, finding.name, finding.note) for finding in report.libraries
            if everything or report.machine or finding.status != EMULATED]  # fmt: skip
    order = [MISSING, UNKNOWN, REFUSED, PARTLY, EMULATED]
    for finding in sorted(report.symbols, key=lambda finding: order.index(finding.status)):
        if everything or finding.status != EMULATED:
            rows.append((finding.status, finding.name, finding.note))
    if rows:
        print(table.render(rows, colours=COLOURS))
    for stack in STACKS:
        mine = [finding for finding in report.symbols if finding.stack == stack]
        if mine:
            counts = [f"{sum(finding.status == status for finding in mine)} {status}"
                      for status in (EMULATED, PARTLY, REFUSED, MISSING, UNKNOWN)]  # fmt: skip
            print(f"  {stack}: {table.plural(len(mine), 'symbol')}: {', '.join(counts)}")
    if report.asked:
        there = sum(finding.status in THERE for finding in report.asked)
        print(f"  at run time: of {table.plural(len(report.asked), 'function')} it may ask for by name, {there} are emulated")
        if models := models_of(report.asked):
            print(f"  of what a model that trains asks for, emulated: {', '.join(models)}")
        if everything:
            print(table.render([(finding.status, finding.name, finding.note) for finding in report.asked], colours=COLOURS))
    if report.machine not in ("", "x64"):
        print("  The emulated libraries are for x64: build the program for this machine to run it here.")
    print()


def as_json(reports: list[Report]) -> str:
    return json.dumps([{
        "file": str(report.path), "kind": report.kind, "machine": report.machine,
        "complete": report.complete,
        "libraries": [dataclasses.asdict(finding) for finding in report.libraries],
        "symbols": [dataclasses.asdict(finding) for finding in report.symbols],
        "asked_by_name": [dataclasses.asdict(finding) for finding in report.asked],
    } for report in reports], indent=1)  # fmt: skip


def run(options) -> int:
    reports = [examine(path) for path in options.file]
    if options.stack:
        wanted = set(options.stack)
        reports = [dataclasses.replace(report, symbols=[f for f in report.symbols if f.stack in wanted],
                                       libraries=[f for f in report.libraries if f.stack in wanted | {""}],
                                       asked=[f for f in report.asked if f.stack in wanted])
                   for report in reports]  # fmt: skip
    if options.json:
        print(as_json(reports))
    else:
        for report in reports:
            print_report(report, options.all)
    return 0 if all(report.complete for report in reports) else 1
