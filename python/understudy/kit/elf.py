"""What an ELF file of any architecture says about itself: symbols, libraries, debug information. Nothing is loaded."""

from __future__ import annotations

import contextlib
import pathlib
import re
import struct
from dataclasses import dataclass

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from understudy.errors import UsageError

IDENTIFIER = re.compile(rb"(?<=\0)[A-Za-z_][A-Za-z0-9_]{4,127}(?=\0)")
KINDS = {"ET_EXEC": "program", "ET_DYN": "library", "ET_REL": "object file"}


@dataclass(frozen=True)
class Facts:
    path: pathlib.Path
    machine: str
    kind: str
    soname: str
    needed: tuple[str, ...]
    exported: frozenset[str]
    undefined: frozenset[str]  # without those that are bound to a version of another library
    has_debug_information: bool


def open_elf(path: pathlib.Path, file) -> ELFFile:
    """Raises UsageError for what is no ELF file."""
    if file.read(7) in (b"!<arch>", b"!<thin>"):
        raise UsageError(f"{path} is an archive: `ar x {path}` takes its objects out, and these can be read")
    try:
        return ELFFile(file)
    except ELFError as error:
        raise UsageError(f"{path} is no ELF file: {error}") from None


@dataclass(frozen=True)
class Symbol:
    name: str
    binding: int  # 1 global, 2 weak
    visibility: int  # 0 default, 3 protected
    defined: bool
    versioned: bool


# Elf64_Sym and Elf32_Sym. Read here because a parser that asks for one symbol after the other takes half a second for all
# our libraries.
LAYOUTS = {64: ("IBBHQQ", ("name", "info", "other", "section")), 32: ("IIIBBH", ("name", "", "", "info", "other", "section"))}


def _symbols(elf: ELFFile):
    """Symbols with names. A file that is linked has a dynamic table, an object file another."""
    name = ".symtab" if elf["e_type"] == "ET_REL" else ".dynsym"
    table = elf.get_section_by_name(name)
    if not isinstance(table, SymbolTableSection):
        return
    order = "<" if elf.little_endian else ">"
    layout, fields = LAYOUTS[elf.elfclass]
    places = [fields.index(field) for field in ("name", "info", "other", "section")]
    versions = elf.get_section_by_name(".gnu.version")
    numbers = struct.iter_unpack(order + "H", versions.data()) if isinstance(versions, GNUVerSymSection) else None
    strings = table.stringtable.data()
    for entry in struct.iter_unpack(order + layout, table.data()):
        start, info, other, section = (entry[place] for place in places)
        number = next(numbers)[0] if numbers is not None else 1
        text = strings[start : strings.index(b"\0", start)].decode()
        if text:
            yield Symbol(text, info >> 4, other & 3, section != 0, number > 1)  # 0: local, 1: of the library itself


@contextlib.contextmanager
def damage(path: str | pathlib.Path):
    """What goes wrong while a file is read, as a UsageError: a parser of damaged files fails in any way there is."""
    try:
        yield
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except (Exception, RecursionError) as error:
        raise UsageError(f"{path} is a damaged ELF file: {error or type(error).__name__}".replace("\n", " ")) from None


def read(path: str | pathlib.Path) -> Facts:
    """Raises UsageError for a file that cannot be read, is no ELF file, or is damaged."""
    path = pathlib.Path(path)
    if path.exists() and not path.is_file():
        raise UsageError(f"cannot read {path}: " + ("Is a directory" if path.is_dir() else "it is no ordinary file"))
    with damage(path), open(path, "rb") as file:
        return _read(path, open_elf(path, file))


def identifiers(path: str | pathlib.Path) -> set[str]:
    """Texts of a file's constant data that are identifiers: what it may look up by name while it runs."""
    found = set()
    with damage(path), open(path, "rb") as file:
        elf = open_elf(pathlib.Path(path), file)
        for section in elf.iter_sections():
            if section["sh_type"] == "SHT_PROGBITS" and section.name.startswith((".rodata", ".data", ".lrodata")):
                found.update(match.decode() for match in IDENTIFIER.findall(b"\0" + section.data()))
    return found


def _read(path: pathlib.Path, elf: ELFFile) -> Facts:
    dynamic = elf.get_section_by_name(".dynamic")
    tags = list(dynamic.iter_tags()) if isinstance(dynamic, DynamicSection) else []
    kind = KINDS.get(elf["e_type"], "file")
    if kind == "library" and any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments()):
        kind = "program"
    exported, undefined = set(), set()
    for symbol in _symbols(elf):
        if symbol.binding not in (1, 2):
            continue
        if not symbol.defined:
            if not symbol.versioned:
                undefined.add(symbol.name)
        elif symbol.visibility in (0, 3):
            exported.add(symbol.name)
    return Facts(
        path=path,
        machine=elf.get_machine_arch(),
        kind=kind,
        soname=next((tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"), ""),
        needed=tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
        exported=frozenset(exported),
        undefined=frozenset(undefined),
        has_debug_information=elf.has_dwarf_info(strict=True) and not _is_split(elf),
    )


def _is_split(elf: ELFFile) -> bool:
    """Whether the debug information lies in other files (-gsplit-dwarf), and here is only what leads there."""
    if not elf.has_section(".debug_addr"):  # what lies elsewhere needs it; reading all sections takes long
        return False
    units = elf.get_dwarf_info(relocate_dwarf_sections=False).iter_CUs()
    return all(_is_skeleton(unit) for unit in units)


def _is_skeleton(unit) -> bool:
    top = unit.get_top_DIE()  # before DWARF 5 an ordinary unit with the name of the other file
    return top.tag == "DW_TAG_skeleton_unit" or not {"DW_AT_dwo_name", "DW_AT_GNU_dwo_name"}.isdisjoint(top.attributes)
