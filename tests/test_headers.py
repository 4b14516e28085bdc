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


def compile_unit(language, stack, source, extra=()):
    unit = native.work_folder() / f"unit-{stack}.txt"
    unit.write_text(source + "extern int a_unit_needs_a_declaration;\n")  # some headers only define constants
    native.check([*LANGUAGES[language], *native.STRICT, "-fsyntax-only", *extra, unit,
                  *(f"-I{path}" for path in paths.STACKS[stack].include_paths), f"-I{paths.sdk() / 'include'}"])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("stack", paths.STACKS)
def test_each_header_compiles_alone(stack, language):
    for header in headers(stack):
        compile_unit(language, stack, f'#include "{header}"\n')


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("stack", paths.STACKS)
def test_headers_compile_in_any_order(stack, language):
    shuffled = headers(stack)
    for seed in range(3):
        random.Random(seed).shuffle(shuffled)
        compile_unit(language, stack, "".join(f'#include "{header}"\n' for header in shuffled))


@pytest.mark.parametrize("language", LANGUAGES)
def test_our_own_header_compiles_beside_them(language):
    compile_unit(language, "ascend", '#include "understudy/understudy.h"\n#include "acl/acl.h"\n')


# What a vendor's header may define besides include guards.
MACRO_NAMES = {
    "ascend": r"ACL|UCE_INFO_RESERVED_SIZE|MAX_MEM_UCE_INFO_ARRAY_SIZE|FUNC_VISIBILITY",
    "maca": r"MCDNN|MC_|mc|MACA",
    "ftdsp": r"ACTIVATION_(NONE|RELU|RELU6)$",
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
    source = "".join(f'#include "{header}"\n' for header in headers(stack))
    compile_unit("c++11", stack, source + "".join(f"struct {name} {{}};\n" for name in SAMPLE_NAMES))
