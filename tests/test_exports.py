"""Library names and what they export, compared with the public headers."""

import functools
import json
import os

import pytest
from elftools.elf.elffile import ELFFile

import understudy.ascend
import understudy.ftdsp
import understudy.maca
from tests import native
from understudy import paths
from understudy.kit import names

RUNTIME_HEADERS = ["acl/acl_base", "acl/acl_rt", "acl/acl_op.h", "acl/acl_mdl.h", "acl/acl_platform.h"]

def operator_headers():
    """Headers of the operators by the library that has them, as the pages say."""
    data = json.loads((paths.sdk() / "rules/ascend/pages.json").read_text())
    headers = {}
    for entry in [*data["operators"].values(), *data["hosts"]]:
        headers.setdefault(entry["library"], set()).add(f"aclnnop/{entry['header']}")
    return {part: sorted(names) for part, names in headers.items()}


# Library -> headers (folders or files of its stack) whose functions it exports.
LIBRARIES = {
    "libascendcl.so": ("ascend", RUNTIME_HEADERS),
    "libacl_rt.so": ("ascend", RUNTIME_HEADERS),
    "libacl_op_compiler.so": ("ascend", ["acl/acl_op_compiler.h"]),
    "libhccl.so": ("ascend", ["hccl/"]),
    "libhcomm.so": ("ascend", ["hccl/hccl_comm.h"]),
    "libruntime.so": ("ascend", ["experiment/runtime/"]),
    "libprofapi.so": ("ascend", ["experiment/msprof/"]),
    "libge_runner.so": ("ascend", []),
    "libgraph.so": ("ascend", []),
    "libacl_tdt_channel.so": ("ascend", ["acl/acl_tdt.h"]),
    "libacl_tdt_queue.so": ("ascend", ["acl/acl_tdt_queue.h"]),
    "libmsprofiler.so": ("ascend", ["acl/acl_prof.h"]),
    "libascend_dump.so": ("ascend", ["acl/acl_dump.h"]),
    "libnnopbase.so": ("ascend", ["aclnn/"]),
    "libopapi.so": ("ascend", ["aclnnop/"]),
    **{f"libopapi_{part}.so": ("ascend", headers) for part, headers in operator_headers().items()},
    "libmcruntime.so": ("maca", ["mcr/", "mc_common.h", "common/"]),
    "libmcdnn.so": ("maca", ["mcdnn/"]),
    "libmcblas.so": ("maca", ["mcblas/mcblas.h"]),
    "libmcblasLt.so": ("maca", ["mcblas/mcblasLt.h"]),
    "libftdsp.so": ("ftdsp", [""]),
}


def library_path(name):
    return paths.STACKS[LIBRARIES[name][0]].library_path / name


@functools.cache
def elf_facts(name):
    """SONAME, needed libraries, exported functions and data, undefined functions."""
    with open(library_path(name), "rb") as file:
        elf = ELFFile(file)
        dynamic = elf.get_section_by_name(".dynamic")
        tags = [(tag.entry.d_tag, tag) for tag in dynamic.iter_tags()]
        symbols = list(elf.get_section_by_name(".dynsym").iter_symbols())
        exported = {symbol.name for symbol in symbols
                    if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK")}
        return {
            "soname": next(tag.soname for kind, tag in tags if kind == "DT_SONAME"),
            "needed": [tag.needed for kind, tag in tags if kind == "DT_NEEDED"],
            "runpath": [tag.runpath for kind, tag in tags if kind == "DT_RUNPATH"],
            "exported": exported,
        }


@functools.cache
def declarations(stack):
    """Header, relative to the include folder -> the function names that the compiler sees declared in it."""
    vendor = paths.STACKS[stack]
    root = vendor.root / "include"
    source, listing = native.work_folder() / f"declared-{stack}.c", native.work_folder() / f"declared-{stack}.txt"
    source.write_text("".join(f'#include "{file}"\n' for file in sorted(root.rglob("*.h"))))
    native.check(["gcc", "-std=c11", "-fsyntax-only", "-aux-info", listing, source,
                  *(f"-I{path}" for path in vendor.include_paths)])
    found = {}
    for line in listing.read_text().splitlines():
        # /* file:line:NC */ extern type name (parameters);
        origin, _, declaration = line.partition("*/")
        path = os.path.normpath(origin.split(":")[0].removeprefix("/*").strip())
        if path.startswith(f"{root}/") and not declaration.startswith(" static "):
            names = found.setdefault(path[len(str(root)) + 1 :], set())
            names.add(declaration.split(" (")[0].split()[-1].lstrip("*"))
    return found


def declared_functions(stack, headers):
    """Function names declared in the headers of a stack whose paths begin so."""
    return set().union(*(names for header, names in declarations(stack).items() if header.startswith(tuple(headers))))


@pytest.mark.parametrize("name", LIBRARIES)
def test_soname_is_the_vendors(name):
    assert elf_facts(name)["soname"] == name


@pytest.mark.parametrize("name", LIBRARIES)
def test_exports_are_the_public_prototypes(name):
    stack, headers = LIBRARIES[name]
    declared = declared_functions(stack, headers)
    exported = elf_facts(name)["exported"]
    assert exported - declared == set(), "exported but in no public header"
    assert declared - exported == set(), "declared in a public header but not exported"


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_find_each_other(name):
    facts = elf_facts(name)
    assert "libunderstudy.so" in facts["needed"]
    assert facts["runpath"] and all("$ORIGIN" in path for path in facts["runpath"])


def test_operators_are_where_the_vendor_has_them():
    """Library and header, as the list of the vendor's names says."""
    pages = json.loads((paths.sdk() / "rules/ascend/pages.json").read_text())["operators"].values()
    ours = {entry["function"]: (f"libopapi_{entry['library']}.so", f"aclnnop/{entry['header']}") for entry in pages}
    theirs = {name: (names.known()[name].library, names.known()[name].header) for name in ours if name in names.known()}
    assert theirs
    assert {name: place for name, place in ours.items() if place != theirs.get(name, place)} == {}


def test_operator_libraries_need_the_base_library():
    for name in ["libopapi.so", *(f"libopapi_{part}.so" for part in operator_headers())]:
        assert "libnnopbase.so" in elf_facts(name)["needed"], name


@pytest.mark.parametrize("name", ["libopapi.so", *(f"libopapi_{part}.so" for part in operator_headers())])
def test_base_functions_are_found_through_an_operator_library(name):
    source = native.work_folder() / "find.c"
    source.write_text("""
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **arguments)
{
    void *library = count > 1 ? dlopen(arguments[1], RTLD_LAZY) : NULL;
    const char *names[] = {"aclCreateTensor", "aclCreateScalar", "aclCreateIntArray", "aclCreateTensorList",
                           "aclDestroyTensor", "aclGetViewShape", "aclnnInit"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (library == NULL || dlsym(library, names[i]) == NULL) {
            printf("missing %s\\n", names[i]);
            return 1;
        }
    }
    return 0;
}
""")
    program = native.work_folder() / "find"
    native.check(["gcc", source, "-o", program, "-ldl"])
    native.check([program, library_path(name)])


def test_an_unoptimised_build_names_libm():
    """Without optimisation floor and sqrt are calls: a library that calls them needs libm itself."""
    callers = 0
    for file in sorted(native.sdk("thread").rglob("*.so")):
        with open(file, "rb") as opened:
            elf = ELFFile(opened)
            wanted = {s.name for s in elf.get_section_by_name(".dynsym").iter_symbols() if s["st_shndx"] == "SHN_UNDEF"}
            needed = [tag.needed
                      for tag in elf.get_section_by_name(".dynamic").iter_tags() if tag.entry.d_tag == "DT_NEEDED"]  # fmt: skip
        if wanted & {"floor", "floorf", "ceil", "sqrt", "sqrtf", "frexp", "fmod"}:
            callers += 1
            assert "libm.so.6" in needed, file.name
    assert callers > 1


def test_only_two_kinds_of_names_leave_the_core():
    with open(paths.sdk() / "lib" / "libunderstudy.so", "rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        names = {s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF" and s["st_info"]["bind"] == "STB_GLOBAL"}
    assert names and all(name.startswith(("us_", "understudy_")) for name in names)


def test_bindings_know_every_declared_function():
    bindings = {"ascend": understudy.ascend, "maca": understudy.maca, "ftdsp": understudy.ftdsp}
    for name, (stack, headers) in LIBRARIES.items():
        for function in declared_functions(stack, headers):
            assert callable(getattr(bindings[stack].lib, function)), f"{name}: {function}"
