"""The headers say what the vendor's say: values, layouts, signatures; in C11 and C++11; alone and in any order."""

import re
import subprocess

import pytest
from understudy import paths

from tests.ascend import acl_facts as facts

INCLUDE = paths.STACKS["ascend"].include_paths[0]
HEADERS = ["acl/acl.h", "acl/acl_base.h", "acl/acl_base_rt.h", "acl/acl_base_mdl.h", "acl/acl_rt.h",
           "acl/acl_rt_allocator.h", "acl/acl_op.h", "acl/acl_mdl.h", "acl/error_codes/rt_error_codes.h",
           "acl/error_codes/ge_error_codes.h"]  # fmt: skip
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}"]
LANGUAGES = {"c11": ["gcc", "-std=c11", "-x", "c"], "c++11": ["g++", "-std=c++11", "-x", "c++"]}


def joined_lines(text: str) -> list[str]:
    """Entries; a line that starts with a space continues the one before."""
    return re.sub(r"\n +", " ", text.strip()).split("\n")


def compile_unit(language: str, source: str, *options: str) -> None:
    done = subprocess.run([*LANGUAGES[language], *STRICT, *options, "-"], input=source, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.fixture(params=LANGUAGES)
def language(request):
    return request.param


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_alone_and_twice(language, header):
    compile_unit(language, f'#include "{header}"\n#include "{header}"\nint unit;\n', "-fsyntax-only")


@pytest.mark.parametrize("order", [HEADERS, HEADERS[::-1]], ids=["forward", "backward"])
def test_headers_compile_in_any_order(language, order):
    compile_unit(language, "".join(f'#include "{header}"\n' for header in order), "-fsyntax-only")


ASSERT = {"c11": "_Static_assert", "c++11": "static_assert"}


def check_constants(language: str, pairs) -> None:
    lines = [f'{ASSERT[language]}({name} == {value}, "{name}");' for name, value in pairs]
    compile_unit(language, "\n".join(['#include "acl/acl.h"', '#include "acl/acl_base.h"', *lines]), "-fsyntax-only")


def enumerations():
    for line in joined_lines(facts.ENUMERATIONS):
        name, values = line.split(": ")
        yield name, [pair.split("=") for pair in values.split()]


def test_enumeration_values(language):
    assert len(list(enumerations())) == 61
    for name, values in enumerations():
        check_constants(language, [*values, (f"sizeof({name})", 4)])


def test_macros(language):
    check_constants(language, [pair.split("=") for pair in facts.MACROS.split()])


def status_codes():
    return re.findall(r"(\d{6})\s(\w+)", facts.STATUS_CODES)


def test_status_codes(tmp_path):
    """In C the status codes of the acl layer are variables, so they are compared by a program."""
    codes = status_codes()
    assert len(codes) == 237
    lines = [f"    if ((long)ACL_ERROR_{name} != {value}) {{ return __LINE__ % 255 + 1; }}" for value, name in codes]
    source = "\n".join(['#include "acl/acl.h"', "int main(void)", "{", *lines,
                        "    return ACL_SUCCESS + ACL_ERROR_NONE;", "}"])  # fmt: skip
    compile_unit("c11", source, "-o", str(tmp_path / "codes"))
    assert subprocess.run([tmp_path / "codes"]).returncode == 0


def test_status_codes_are_constants_in_cpp():
    check_constants("c++11", [(f"static_cast<long>(ACL_ERROR_{name})", value) for value, name in status_codes()])


def test_layouts(language):
    pairs = []
    for line in joined_lines(facts.LAYOUTS):
        name, size, fields = re.fullmatch(r"(\w+) (\d+): (.*)", line).groups()
        pairs.append((f"sizeof({name})", size))
        pairs += [(f"offsetof({name}, {field.split()[1]})", field.split()[0]) for field in fields.split(", ")]
    check_constants(language, pairs)


def signatures() -> list[str]:
    return joined_lines(facts.SIGNATURES)


def test_signatures(language):
    """A second declaration with another type does not compile."""
    opening, closing = ('extern "C" {', "}") if language == "c++11" else ("", "")
    compile_unit(language, "\n".join(['#include "acl/acl.h"', opening, *signatures(), closing]), "-fsyntax-only")


def test_functions_have_addresses(language):
    """Samples pass aclrtFree as a deleter of exactly this type."""
    compile_unit(language, '#include "acl/acl.h"\naclError (*release)(void *) = aclrtFree;\n', "-fsyntax-only")


@pytest.mark.parametrize("library", ["ascendcl", "acl_rt"])
def test_these_are_exported(library):
    file = paths.STACKS["ascend"].library_path / f"lib{library}.so"
    listing = subprocess.run(["nm", "-D", "--defined-only", file], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1] for line in listing.splitlines()}
    assert {re.search(r"(\w+)\(", signature)[1] for signature in signatures()} - exported == set()


def test_application_log_macro():
    compile_unit("c++11", '#include "acl/acl.h"\nvoid f() { ACL_APP_LOG(ACL_INFO, "%d", 3); }\n', "-fsyntax-only")
