"""Every public header compiles alone, in any order, as C11 and as C++11, with all warnings as errors."""

import random
import re

import pytest

from tests import native
from understudy import paths

LANGUAGES = {"c11": ["gcc", "-x", "c", "-std=c11"], "c++11": ["g++", "-x", "c++", "-std=c++11"],
             "c++17": ["g++", "-x", "c++", "-std=c++17"]}


def headers(stack):
    root = paths.STACKS[stack].root / "include"
    return sorted(str(file.relative_to(root)) for file in root.rglob("*.h"))


def compile_units(language, stack, sources):
    """Checks the syntax of each source by itself; one start of the compiler for all."""
    files = []
    for index, source in enumerate(sources):
        files.append(native.work_folder() / f"unit-{stack}-{index}.txt")
        files[-1].write_text(source + "extern int a_unit_needs_a_declaration;\n")  # some headers only define constants
    native.check([*LANGUAGES[language], *native.STRICT, "-fsyntax-only", *files,
                  *(f"-I{path}" for path in paths.STACKS[stack].include_paths), f"-I{paths.sdk() / 'include'}"])


def including(group):
    return "".join(f'#include "{header}"\n' for header in group)


INCLUDE = re.compile(r"^\s*#\s*include\s+(.*?)\s*$", re.MULTILINE)
FORWARDS = re.compile(r'\s*#\s*include\s+"[^"]+"\s*')
# Types and macros, which another header could use, and bodies, which could use another header's functions.
LENDS = re.compile(r'\b(typedef|struct|union|enum|class)\b|^\s*#\s*define\s+\w+[ (]|(?<!"C" )\{', re.MULTILINE)


def units(stack):
    """Groups of headers so that a group compiles only if each of its headers compiles alone.

    A header that only declares functions lends nothing to another; such headers that include the same files form one
    group, however many there are, and those form one that do nothing but include another, which is tried itself. Every
    other header is a group of its own."""
    root, alike, alone = paths.STACKS[stack].root / "include", {}, []
    for header in headers(stack):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", (root / header).read_text(), flags=re.DOTALL)
        if FORWARDS.fullmatch(text):
            alike.setdefault("forward", []).append(header)
        elif LENDS.search(text):
            alone.append([header])
        else:
            alike.setdefault(tuple(INCLUDE.findall(text)), []).append(header)
    return [*alike.values(), *alone]


@pytest.mark.parametrize("language", ["c11", "c++11"])
@pytest.mark.parametrize("stack", paths.STACKS)
def test_each_header_compiles_alone(stack, language):
    compile_units(language, stack, map(including, units(stack)))


@pytest.mark.parametrize("text, lends", [
    ('#ifndef A_H\n#define A_H\nextern "C" {\nT f(const U *u);\n}\n#endif', False), ("typedef int T;", True),
    ("struct S { int a; };", True), ("int f(enum E e);", True), ("#define LIMIT 3", True), ("#define f(x) g(x)", True),
    ("static inline int f(void)\n{ return g(); }", True),
])  # fmt: skip
def test_what_a_header_lends(text, lends):
    assert (LENDS.search(text) is not None) == lends


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("stack", paths.STACKS)
def test_headers_compile_in_any_order(stack, language):
    orders = [random.Random(seed).sample(headers(stack), len(headers(stack))) for seed in range(3)]
    compile_units(language, stack, map(including, orders))


@pytest.mark.parametrize("stack", paths.STACKS)
def test_headers_say_bool(stack):
    """<stdbool.h> of gcc lets C++ read _Bool, that of clang does not."""
    compile_units("c++11", stack, ["#include <stdbool.h>\n#undef _Bool\n" + including(headers(stack))])


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_own_header_compiles_beside_them(language):
    compile_units(language, "ascend", [including(["understudy/understudy.h", "acl/acl.h"])])


# What a vendor's header may define besides include guards.
MACRO_NAMES = {
    "ascend": r"ACL|UCE_INFO_RESERVED_SIZE|MAX_MEM_UCE_INFO_ARRAY_SIZE|FUNC_VISIBILITY",
    "maca": r"MCDNN|MCBLAS|MC_|mc|MACA",
    "ftdsp": r"(ACTIVATION_(NONE|RELU|RELU6)|FTDSP_LRN_\w+|FTDSP_HALF_BY_VALUE|[fh]p_lrn_[sp])$",
}


@pytest.mark.parametrize("stack", paths.STACKS)
def test_macros_keep_to_the_vendors_names(stack):
    root = paths.STACKS[stack].root / "include"
    for header in headers(stack):
        text = (root / header).read_text()
        guard = re.search(r"^#ifndef (\w+)\n#define \1$", text, re.MULTILINE)
        for name in re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE):
            assert (guard and name == guard[1]) or re.match(MACRO_NAMES[stack], name), f"{header} defines {name}"


# Names that vendor samples define themselves: a header that defines them would break those programs.
SAMPLE_NAMES = ["CHECK_RET", "LOG_PRINT", "GetShapeSize", "Init", "CreateAclTensor"]


@pytest.mark.parametrize("stack", paths.STACKS)
def test_names_of_vendor_samples_are_free(stack):
    definitions = "".join(f"struct {name} {{}};\n" for name in SAMPLE_NAMES)
    compile_units("c++11", stack, [including(headers(stack)) + definitions])
