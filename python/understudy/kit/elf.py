"""What an ELF file of any architecture says about itself: symbols, libraries, debug information. Nothing is loaded."""

import contextlib
import pathlib
import re
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
    try:
        return ELFFile(file)
    except ELFError as error:
        raise UsageError(f"{path} is no ELF file: {error}") from None


def _symbols(elf: ELFFile):
    """Symbols with whether they have a version. A file that is linked has a dynamic table, an object file another."""
    name = ".symtab" if elf["e_type"] == "ET_REL" else ".dynsym"
    table = elf.get_section_by_name(name)
    if not isinstance(table, SymbolTableSection):
        return
    versions = elf.get_section_by_name(".gnu.version")
    for index, symbol in enumerate(table.iter_symbols()):
        version = versions.get_symbol(index)["ndx"] if isinstance(versions, GNUVerSymSection) else "VER_NDX_GLOBAL"
        yield symbol, isinstance(version, int)


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
    for symbol, versioned in _symbols(elf):
        if not symbol.name or symbol["st_info"]["bind"] not in ("STB_GLOBAL", "STB_WEAK"):
            continue
        if symbol["st_shndx"] == "SHN_UNDEF":
            if not versioned:
                undefined.add(symbol.name)
        elif symbol["st_other"]["visibility"] in ("STV_DEFAULT", "STV_PROTECTED"):
            exported.add(symbol.name)
    return Facts(
        path=path,
        machine=elf.get_machine_arch(),
        kind=kind,
        soname=next((tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"), ""),
        needed=tuple(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
        exported=frozenset(exported),
        undefined=frozenset(undefined),
        has_debug_information=elf.has_dwarf_info(strict=True),
    )
