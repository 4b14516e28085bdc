"""`understudy abi`: libraries and programs that agree with the headers, and some that do not."""

import pytest

from tests.kit.support import AARCH64, assert_error_of_use, change_machine, library, program, understudy, understudy_json
from understudy import paths
from understudy.kit import abi, elf, sdk, surface

OURS = sorted(file for stack in paths.STACKS.values() for file in stack.library_path.glob("lib*.so"))


def flags(stack):
    return ["-g", *(f"-I{path}" for path in paths.STACKS[stack].include_paths)]


def differences(report):
    return {(entry["kind"], entry["name"]): (entry["headers"], entry["file"]) for entry in report["differences"]}


@pytest.mark.parametrize("file", OURS, ids=lambda file: file.name)
def test_our_libraries_are_what_the_headers_say(file):
    report, status = understudy_json("abi", file)
    assert status == 0
    assert report["library"] == file.name and report["missing"] == report["extra"] == []


@pytest.mark.parametrize("stack, header, name", [
    ("ascend", "acl/acl.h", "libascendcl.so"),
    ("ascend", "aclnnop/aclnn_soft_margin_loss_backward.h", "libopapi_nn.so"),
    ("maca", "mc_runtime.h", "libmcruntime.so"),
    ("maca", "mcdnn.h", "libmcdnn.so"),
    ("ftdsp", "binarycrossentropygrad.h", "libftdsp.so"),
])  # fmt: skip
def test_debug_information_of_a_program_with_our_headers_agrees(tmp_path, stack, header, name):
    """The compiler's view of every function of a library is the surface's: two ways from the same headers."""
    functions = surface.current()["libraries"][name]["functions"]
    headers = "".join(f'#include "{file}"\n' for file in sorted((paths.STACKS[stack].root / "include").rglob("*.h")))
    uses = ", ".join(f"(void *){function}" for function in functions)
    source = f'#include "{header}"\n{headers}\nvoid *uses[] = {{{uses}}};\n'
    file = program(tmp_path, "uses.o", source, ["-c", "-fno-eliminate-unused-debug-types", *flags(stack)])
    report, status = understudy_json("abi", file)
    assert report["types_compared"] and functions
    assert report["differences"] == [] and status == 0


def test_missing_and_extra_functions(tmp_path):
    file = library(tmp_path, "libmcdnn.so", "void mcdnnCreate(void) {} void mcdnnNew(void) {} void mcMalloc(void) {}\n")
    report, status = understudy_json("abi", file)
    assert status == 1 and not report["types_compared"]
    assert "mcdnnDestroy" in report["missing"] and "mcdnnCreate" not in report["missing"]
    assert report["extra"] == ["mcMalloc", "mcdnnNew"]
    lines = understudy("abi", file).stdout
    assert "no debug information" in lines and "emulated in libmcruntime.so" in lines


def test_extra_functions_alone_do_not_count(tmp_path):
    names = understudy_json("abi", OURS[0], "--as", "libopapi_nn.so")[0]["missing"]
    source = "".join(f"void {name}(void) {{}}\n" for name in [*names, "aclnnGridSampler3D"])
    report, status = understudy_json("abi", library(tmp_path, "libopapi_nn.so", source))
    assert status == 0 and report["extra"] == ["aclnnGridSampler3D"]


def test_prototypes_structures_and_constants_that_differ(tmp_path):
    source = """
typedef struct mcStreamOther *mcStream_t;                         /* a tag of another name: no difference */
typedef struct mcDeviceArch_t { int first, second; } mcDeviceArch_t;
typedef enum mcMemcpyKind { mcMemcpyHostToHost = 0, mcMemcpyHostToDevice = 7 } mcMemcpyKind;
int mcMalloc(void **p, int size) { return size + (p != 0); }      /* the headers: size_t */
int mcFree(void *p, int more) { return more + (p != 0); }         /* one parameter too many */
int mcStreamDestroy(mcStream_t s) { return s != 0; }
int mcMemset(void *p, int value, unsigned long n) { return p != 0 && value && n; }
mcDeviceArch_t arch; mcMemcpyKind kind;
"""
    file = library(tmp_path, "libmcruntime.so", source, ["-g"])
    report, status = understudy_json("abi", file)
    assert status == 1 and report["types_compared"]
    found = differences(report)
    assert found[("prototype", "mcMalloc")][1].endswith("(void**, int32)")
    assert ("prototype", "mcFree") in found
    assert found[("constant", "mcMemcpyHostToDevice")] == ("1", "7")
    assert ("structure", "mcDeviceArch_t") in found
    assert {name for _, name in found} == {"mcMalloc", "mcFree", "mcMemcpyHostToDevice", "mcDeviceArch_t"}
    change_machine(file, AARCH64)
    assert differences(understudy_json("abi", file)[0]) == found


def test_a_program_with_its_own_wrong_declaration(tmp_path):
    source = "int aclrtMalloc(void **p, int size); int main(void) { void *p; return aclrtMalloc(&p, 4); }\n"
    ascend = paths.STACKS["ascend"]
    file = program(tmp_path, "wrong", source, ["-g", f"-L{ascend.library_path}", "-lascendcl"])
    report, status = understudy_json("abi", file)
    assert status == 1 and list(differences(report)) == [("prototype", "aclrtMalloc")]
    right = program(tmp_path, "right", '#include "acl/acl.h"\nint main(void) { void *p; '
                    "return aclrtMalloc(&p, 4, ACL_MEM_MALLOC_HUGE_FIRST); }\n",
                    [*flags("ascend"), f"-L{ascend.library_path}", "-lascendcl"])  # fmt: skip
    assert understudy_json("abi", right)[1] == 0


@pytest.mark.parametrize("version", [4, 5])
def test_debug_information_in_another_file_is_none(tmp_path, monkeypatch, version):
    """Of what is only elsewhere nothing was compared; a second unit that is here is."""
    monkeypatch.chdir(tmp_path)  # where the compiler puts the other file
    wrong = "int mcMalloc(void **p, int size);\nint %s(void) { void *p; return mcMalloc(&p, 4); }\n"
    maca = paths.STACKS["maca"]
    link = [f"-L{maca.library_path}", "-lmcruntime"]
    split = [f"-gdwarf-{version}", "-gsplit-dwarf"]
    assert_error_of_use(understudy("abi", program(tmp_path, "split", wrong % "main", [*split, *link])), "without debug information")
    program(tmp_path, "one.o", wrong % "other", ["-c", "-g"])
    assert_error_of_use(understudy("abi", program(tmp_path, "split.o", wrong % "main", ["-c", *split])), "without debug information")
    both = program(tmp_path, "both", wrong % "main", [*split, "one.o", *link])
    assert differences(understudy_json("abi", both)[0]).keys() == {("prototype", "mcMalloc")}


def test_abidiff_is_used_when_there_is_debug_information(tmp_path, monkeypatch):
    """A stand-in for the tool: what counts is when it is asked, with what, and that its report is shown."""
    tool = tmp_path / "abidiff"
    tool.write_text('#!/bin/sh\necho "asked: $*"\n')
    tool.chmod(0o755)
    (tmp_path / "ours").mkdir()
    source = "int fp_binarycrossentropygrad_s(void) { return 0; }\n"
    ours, theirs = (library(folder, "libftdsp.so", source, ["-g"]) for folder in (tmp_path / "ours", tmp_path))
    comparison = abi.Comparison(str(theirs), "libftdsp.so", "", types_compared=True)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(sdk, "libraries", lambda: {"libftdsp.so": ("ftdsp", elf.read(ours))})
    assert abi.run_abidiff(comparison) == f"asked: {ours} {theirs}"
    comparison.types_compared = False
    assert abi.run_abidiff(comparison) == ""


def test_errors_of_use(tmp_path):
    assert_error_of_use(understudy("abi"), "no LIB given")
    assert_error_of_use(understudy("abi", library(tmp_path, "libother.so", "int x;")), "--as")
    assert_error_of_use(understudy("abi", OURS[0], "--as", "libnone.so"), "there is no libnone.so")
    assert_error_of_use(understudy("abi", "/bin/ls"), "without debug information")
    assert_error_of_use(understudy("abi", OURS[0], "--against", "7.7"), "no ABI lock of version '7.7'")
    assert_error_of_use(understudy("abi", tmp_path / "absent.so"), "cannot read")


def test_a_lock_is_written_once(tmp_path):
    assert understudy("abi", "--write-lock", tmp_path).returncode == 0
    (file,) = tmp_path.glob("*.json")
    text = file.read_text()
    assert understudy("abi", "--write-lock", tmp_path).returncode == 0, "the same again"
    file.write_text(text.replace('"MCDNN_STATUS_BAD_PARAM": 3', '"MCDNN_STATUS_BAD_PARAM": 4'))
    done = understudy("abi", "--write-lock", tmp_path)
    assert_error_of_use(done, "MCDNN_STATUS_BAD_PARAM: 4 -> 3")
    assert "raise the version in python/understudy/__init__.py, or delete the file" in done.stderr
