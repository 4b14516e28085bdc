"""python -m pages PAGES OUTPUT [NAME …]: writes what the operator pages become, all or those with these names. Files that
would not change are left alone."""

from __future__ import annotations

import pathlib
import sys
import zlib

from pages import emit
from pages.derive import derive
from pages.model import LIBRARIES, PageError, read_host_functions, read_pages

GROUPS = 16  # of files that are compiled as one, in each library


def write(file: pathlib.Path, text: str) -> None:
    if not file.exists() or file.read_text("utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def remove_others(folder: pathlib.Path, kept: set[pathlib.Path]) -> None:
    for file in folder.rglob("*"):
        if file.is_file() and file not in kept and "include/ftdsp" not in file.as_posix():  # another generator's
            file.unlink()


def source_list(library: str, files: list[pathlib.Path]) -> str:
    """The files, in groups that are compiled as one: most of a page's time is its headers'. A file's group depends on its name
    only, so that a new page leaves the others' objects as they are."""
    lines = [f"set(opapi_{library}_pages\n  " + "\n  ".join(f'"{file}"' for file in files) + ")\n"]
    for file in files:
        group = zlib.crc32(file.stem.encode()) % GROUPS
        lines.append(f'set_source_files_properties("{file}" PROPERTIES UNITY_GROUP pages_{group})\n')
    return "".join(lines)


def main(pages: pathlib.Path, output: pathlib.Path, *stems: str) -> None:
    derived = [derive(operator) for operator in read_pages(pages, set(stems))]
    hosts = read_host_functions(pages, set(stems))
    stems: dict[str, list] = {host.header.removesuffix(".h"): [] for host in hosts}
    for item in derived:
        stems.setdefault(item.operator.header.removesuffix(".h"), []).append(item)
    files: dict[pathlib.Path, str] = {}
    sources = {library: [] for library in LIBRARIES}
    for stem, items in stems.items():
        operators = [item.operator for item in items]
        own_hosts = [host for host in hosts if host.header == f"{stem}.h"]
        files[output / "include/ascend/aclnnop" / f"{stem}.h"] = emit.header(stem, operators, own_hosts)
        files[output / "include/ascend/aclnnop/level2" / f"{stem}.h"] = emit.second_place(stem)
        if not operators:
            continue
        file = output / "src" / f"{stem}.c"
        files[file] = emit.source(stem, items)
        sources[operators[0].library].append(file)
    for library in LIBRARIES:
        mine = [item for item in derived if item.operator.library == library]
        own_hosts = [host for host in hosts if host.library == library]
        files[output / f"exports_{library}.map"] = emit.exports([item.operator for item in mine], own_hosts)
        files[output / f"rules/opapi_{library}/rules.json"] = emit.catalogue(f"libopapi_{library}.so", mine, own_hosts)
    files[output / "exports.map"] = emit.exports([item.operator for item in derived], hosts)
    files[output / "rules/pages.json"] = emit.data(derived, hosts)
    files[output / "rules/cases.json"] = emit.cases(derived)
    lists = [source_list(library, sources[library]) for library in LIBRARIES]
    files[output / "sources.cmake"] = "".join(lists)
    for file, text in files.items():
        write(file, text)
    remove_others(output, set(files))


if __name__ == "__main__":
    try:
        main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *sys.argv[3:])
    except PageError as error:
        sys.exit(f"pages: {error}")
