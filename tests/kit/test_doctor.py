"""`understudy doctor` on programs that need what is emulated, what is not, and what does not exist."""

import errno
import os
import subprocess

import pytest

from tests.kit.support import (AARCH64, assert_error_of_use, change_machine, library, program, understudy,
                               understudy_json)
from understudy import paths
from understudy.kit import names, sdk

# What is not emulated becomes less: an operator and a function, whichever they are.
NOT_EMULATED = sorted(name for name, entry in names.known().items() if entry.stack == "ascend"
                      and name not in sdk.exporters())  # fmt: skip
MISSING_OPERATOR = next(name for name in NOT_EMULATED if names.known()[name].header.startswith("aclnnop/"))
MISSING_FUNCTION = next((name for name in NOT_EMULATED if not name.startswith("aclnn")), MISSING_OPERATOR)
ABSENT = [f"{MISSING_OPERATOR}GetWorkspaceSize", MISSING_FUNCTION, "aclrtMaloc", "alcrtMemcpy", "aclrtMemsetZebraThing",
          "my_helper_function"]  # fmt: skip


@pytest.fixture
def sdk_flags():
    ascend = paths.STACKS["ascend"]
    return [*(f"-I{path}" for path in ascend.include_paths), f"-L{ascend.library_path}", "-lascendcl"]


def source(*absent):
    calls = "".join(f"{name}();" for name in absent)
    return (f'#include "acl/acl.h"\n{"".join(f"void {name}(void);" for name in absent)}\n'
            f"int main(void) {{ {calls} return aclInit(0); }}\n")  # fmt: skip


@pytest.fixture
def incomplete(tmp_path, sdk_flags):
    """A program that needs names and a library which are not emulated, as built where the vendor's libraries are."""
    library(tmp_path, "libacl_cblas.so", "".join(f"void {name}(void) {{}}\n" for name in ABSENT))
    return program(tmp_path, "incomplete", source(*ABSENT), [*sdk_flags, f"-L{tmp_path}", "-lacl_cblas"])


def by_name(report, kind="symbols"):
    return {finding["name"]: finding for finding in report[kind]}


def test_a_program_that_runs_here_is_complete(tmp_path, sdk_flags):
    file = program(tmp_path, "good", source(), sdk_flags)
    (report,), status = understudy_json("doctor", file)
    assert status == 0 and report["complete"]
    assert by_name(report)["aclInit"]["status"] in ("emulated", "partly")
    assert by_name(report, "libraries")["libascendcl.so"]["status"] == "emulated"


def test_what_is_absent_is_found_and_explained(incomplete):
    (report,), status = understudy_json("doctor", incomplete)
    assert status == 1 and not report["complete"]
    symbols = by_name(report)
    assert symbols[f"{MISSING_OPERATOR}GetWorkspaceSize"]["status"] == "missing"
    assert symbols[MISSING_FUNCTION]["status"] == "missing" and "the vendor has it" in symbols[MISSING_FUNCTION]["note"]
    assert symbols["aclrtMaloc"]["status"] == "unknown"
    assert symbols["aclrtMaloc"]["note"] == "did you mean aclrtMalloc?"
    assert symbols["alcrtMemcpy"]["note"] == "did you mean aclrtMemcpy?"
    assert symbols["aclrtMemsetZebraThing"]["status"] == "unknown"
    assert "my_helper_function" not in symbols
    assert by_name(report, "libraries")["libacl_cblas.so"]["status"] == "missing"


def test_the_table_names_what_is_missing(incomplete):
    done = understudy("doctor", incomplete)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.split()[:2] == ["missing", MISSING_FUNCTION] for line in lines)
    assert not any("aclInit" in line for line in lines), "emulated symbols are listed with --all only"
    assert any(line.split()[:2] == ["emulated", "aclInit"]
               for line in understudy("doctor", "-a", incomplete).stdout.splitlines())  # fmt: skip


def test_another_architecture(incomplete):
    change_machine(incomplete, AARCH64)
    (report,), status = understudy_json("doctor", incomplete)
    assert report["machine"] == "AArch64" and status == 1
    assert by_name(report)["aclrtMaloc"]["note"] == "did you mean aclrtMalloc?"
    assert "for x64" in understudy("doctor", incomplete).stdout


def test_an_object_file_with_a_cpp_declaration(tmp_path):
    file = program(tmp_path, "object.o", "int aclInit(const char *); int use() { return aclInit(0); }\n", ["-c"], "g++")
    (report,), status = understudy_json("doctor", file)
    assert status == 1 and report["kind"] == "object file"
    assert 'without extern "C"' in report["symbols"][0]["note"]


@pytest.mark.parametrize("stack, name, status", [
    ("ascend", "aclrtActiveStream", "emulated"),
    ("ascend", "aclrtSetExceptionInfoCallback", "emulated"),
    ("ascend", "aclopCompileAndExecute", "partly"),
    ("ascend", "HcclCommSuspend", "missing"),
    ("ascend", "HcclAllReduce", "emulated"),
    ("ftdsp", "fp_binarycrossentropygrad_s", "emulated"),
    ("ftdsp", "LaunchGroup", "missing"),
    ("ftdsp", "fp_binarycrossentropygrd_s", "unknown"),
    ("maca", "mcMalloc", "emulated"),
    ("maca", "mcFuncGetAttributes", "missing"),
    ("maca", "mcdnnCreateTensorDescripter", "unknown"),
    ("maca", "mcblasSgemm", "emulated"),
    ("maca", "mcfftPlan1d", "missing"),
    ("maca", "mcblasXtCreate", "missing"),
    ("maca", "mcdnnBackendExecute", "missing"),
    ("maca", "mcdnnMultiHeadAttnForward", "missing"),
    ("maca", "mcblasXgemm", "unknown"),
])  # fmt: skip
def test_names_of_the_stacks(tmp_path, stack, name, status):
    file = program(tmp_path, "object.o", f"void {name}(void); void use(void) {{ {name}(); }}\n", ["-c"])
    (report,), _ = understudy_json("doctor", file)
    (finding,) = report["symbols"]
    assert (finding["stack"], finding["status"]) == (stack, status)


def test_a_common_name_is_missing_only_where_the_stack_is_needed(tmp_path):
    source = "void shape(void); void fp_add_p(void); int main(void) { fp_add_p(); shape(); }\n"
    link = ["-shared", "-fPIC", f"-L{paths.STACKS['ftdsp'].library_path}", "-lftdsp"]
    (report,), status = understudy_json("doctor", program(tmp_path, "needs.so", source, link))
    assert status == 1 and by_name(report)["shape"]["status"] == "missing"
    source = "void shape(void); void use(void) { shape(); }\n"
    (report,), status = understudy_json("doctor", program(tmp_path, "object.o", source, ["-c"]))
    assert (report["symbols"], status) == ([], 0)


@pytest.mark.parametrize("function, words", [
    ("mcDeviceSetLimit", "no effect"), ("aclopCompileAndExecute", "docs/programs.md lists")])  # fmt: skip
def test_limits_are_of_emulated_functions_and_are_told(tmp_path, function, words):
    assert names.limits() and set(names.limits()) <= set(sdk.exporters())
    source = f"void {function}(void); void use(void) {{ {function}(); }}\n"
    (report,), status = understudy_json("doctor", program(tmp_path, "object.o", source, ["-c"]))
    assert status == 0
    assert report["symbols"][0]["status"] == "partly" and words in report["symbols"][0]["note"]


def test_a_library_with_a_version_in_its_name_is_not_ours(tmp_path):
    library(tmp_path, "libmcruntime.so.3", "void mcInit(void) {}\n")
    file = program(tmp_path, "old", "void mcInit(void); int main(void) { mcInit(); }\n", [tmp_path / "libmcruntime.so.3"])
    (report,), status = understudy_json("doctor", file)
    assert status == 1
    assert by_name(report, "libraries")["libmcruntime.so.3"]["status"] == "missing"


def test_a_program_of_no_stack():
    done = understudy("doctor", "/bin/ls")
    assert done.returncode == 0 and "uses none of the stacks" in done.stdout


def test_errors_of_use(tmp_path):
    text = tmp_path / "text"
    text.write_text("no program")
    assert_error_of_use(understudy("doctor", text), "is no ELF file")
    for archive in (b"!<arch>\n", b"!<thin>\n"):
        text.write_bytes(archive)
        assert_error_of_use(understudy("doctor", text), "is an archive")
    assert_error_of_use(understudy("doctor", tmp_path / "absent"), "No such file")
    (tmp_path / "empty").mkdir()
    assert_error_of_use(understudy("doctor", tmp_path / "empty"), "directory without C or C++ sources")
    assert_error_of_use(understudy("doctor"), "required")


def test_damaged_files_are_errors_of_use(incomplete):
    data = incomplete.read_bytes()
    for size in (20, 64, len(data) // 2, len(data) - 100):
        incomplete.write_bytes(data[:size])
        done = understudy("doctor", incomplete)
        assert done.returncode in (0, 2) and "Traceback" not in done.stderr, (size, done.stderr)


def test_what_only_refuses_is_counted_apart(tmp_path, sdk_flags):
    text = '#include "acl/acl_op.h"\nint main(void) { return aclopLoad(0, 0); }\n'
    (report,), status = understudy_json("doctor", program(tmp_path, "refused", text, sdk_flags))
    assert status == 0 and report["complete"]
    assert by_name(report)["aclopLoad"]["status"] == "refused" and "by name" in by_name(report)["aclopLoad"]["note"]


# ---- sources ----

SOURCE = """
#include <acl/acl.h>
#include "aclnnop/aclnn_pairwise_zebra.h"
#include "mine.h"
/* aclnnGridSampler3D is only spoken of here */
static void aclrtMyHelper(int x) { (void)x; }
struct Table { int (*aclrtOwnMember)(void); };
int main(void)
{
    struct Table table = {0};
    aclrtMyHelper(1);
    table.aclrtOwnMember();
    aclDataType type = (aclDataType)(ACL_FLOAT);
    void *found = dlsym(0, "MISSING_FUNCTION");
    aclrtMaloc(&found, 1, type);
    return aclInit(0);
}
"""


DEAD = """
#if 0 /* not yet */
#include <acl/dead.h>
aclrtDeadA(); don't
#ifdef MACRO
aclrtDeadB();
#else
aclrtDeadC();
#endif
#elif MACRO
aclrtLiveA();
#else
aclrtLiveB();
#endif
# if (1)
aclrtLiveC();
#elif MACRO
aclrtDeadD();
#else
aclrtDeadE();
# endif
#ifndef false
aclrtLiveD("#if 0");
#else
aclrtLiveE();
#endif
/*
#if 0
#include <acl/comment.h>
*/
#if aclrtLiveF(0)
#elif 1
aclrtLiveG();
#else
aclrtDeadF();
#endif
#endif
aclrtLiveH();
"""


def test_a_source_file(tmp_path):
    file = tmp_path / "main.cpp"
    file.write_text(SOURCE.replace("MISSING_FUNCTION", MISSING_FUNCTION))
    (report,), status = understudy_json("doctor", file)
    assert status == 1 and report["kind"] == "source file"
    headers = {header["name"]: header["status"] for header in report["libraries"]}
    assert headers == {"acl/acl.h": "emulated", "aclnnop/aclnn_pairwise_zebra.h": "missing"}
    found = {symbol["name"]: symbol["status"] for symbol in report["symbols"]}
    assert found == {"aclInit": "emulated", MISSING_FUNCTION: "missing", "aclrtMaloc": "unknown"}
    assert "did you mean aclrtMalloc?" in understudy("doctor", file).stdout


def test_what_no_compiler_sees_is_not_needed(tmp_path):
    live = {f"aclrtLive{letter}" for letter in "ABCDEFGH"}
    file = tmp_path / "main.c"
    file.write_text(DEAD)
    (report,), _ = understudy_json("doctor", file)
    assert set(by_name(report)) == live and by_name(report, "libraries") == {}


def test_a_folder_of_sources(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/one.c").write_text("void f(void) { mcMalloc(0, 0); }")
    (tmp_path / "two.h").write_text("#include <acl/acl.h>\n")
    (tmp_path / "notes.txt").write_text("aclrtMaloc()")
    (report,), status = understudy_json("doctor", tmp_path)
    assert status == 0 and report["kind"] == "folder of sources"
    assert list(by_name(report)) == ["mcMalloc"]


def test_a_folder_below_that_cannot_be_read_is_not_passed_over(tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir()
    (tmp_path / "one.c").write_text("void f(void) { mcMalloc(0, 0); }")
    read = os.scandir

    def scandir(folder):  # root may read everything
        if os.fspath(folder) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(closed))
        return read(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    assert_error_of_use(understudy("doctor", tmp_path), f"cannot read {closed}: Permission denied")


def test_every_example_needs_only_what_is_there():
    (report,), status = understudy_json("doctor", paths.examples())
    assert status == 0, report
    assert len(report["symbols"]) > 50


# ---- what is looked up at run time ----


def test_functions_that_are_asked_for_by_name(tmp_path):
    asked = ["aclnnSoftMarginLoss", "aclnnSoftMarginLossGetWorkspaceSize", MISSING_OPERATOR, "aclnnZebraStripes",
             "aclrtMalloc", "aclrtMallocation", "hello world", "no_function"]  # fmt: skip
    texts = ", ".join(f'"{name}"' for name in asked)
    file = program(tmp_path, "asker",
                   f"const char *volatile names[] = {{{texts}}};\nint main(void) {{ return !names[0]; }}\n")  # fmt: skip
    (report,), status = understudy_json("doctor", file)
    assert status == 0, "what is only asked for is not needed to start"
    found = {finding["name"]: finding["status"] for finding in report["asked_by_name"]}
    assert found == {"aclnnSoftMarginLoss": "emulated", MISSING_OPERATOR: "missing", "aclnnZebraStripes": "unknown",
                     "aclrtMalloc": "emulated"}  # fmt: skip
    done = understudy("doctor", file)
    assert "at run time: of 4 functions it may ask for by name, 2 are emulated" in done.stdout
    assert "aclnnZebraStripes" not in done.stdout and "aclnnZebraStripes" in understudy("doctor", "-a", file).stdout


def test_models_and_namespaces(tmp_path):
    mlp = names.models()["MLP"]
    texts = ", ".join(f'"{name}"' for name in mlp)
    file = program(tmp_path, "trainer",
                   f"const char *volatile names[] = {{{texts}}};\nint main(void) {{ return !names[0]; }}\n")  # fmt: skip
    assert f"emulated: MLP: {len(mlp)} of {len(mlp)}\n" in understudy("doctor", file).stdout
    source = tmp_path / "engine.cpp"
    source.write_text("namespace ge { struct Graph { Graph(); void run(); }; } namespace atb { void go(int); }\n"
                      "int main() { ge::Graph graph; graph.run(); atb::go(1); }\n")  # fmt: skip
    subprocess.run(["g++", "-c", str(source), "-o", str(tmp_path / "engine.o")], check=True)
    (report,), status = understudy_json("doctor", tmp_path / "engine.o")
    assert status == 1
    assert {finding["name"]: (finding["status"], finding["note"].split(":")[0]) for finding in report["symbols"]} == {
        "ge::": ("missing", "2 C++ names"), "atb::": ("missing", "1 C++ name")}


def test_the_operators_of_the_public_pages_are_known():
    operators = {name for name, entry in names.known().items()
                 if name.startswith("aclnn") and entry.header and not name.endswith("GetWorkspaceSize")}  # fmt: skip
    assert len(operators) >= 992
    assert names.known()["aclnnInplaceAdd"] == names.Name("aclnnInplaceAdd", "ascend", "libopapi_math.so",
                                                          "aclnnop/aclnn_add.h")  # fmt: skip
    assert names.known()["aclnnGridSampler3DGetWorkspaceSize"].header == "aclnnop/aclnn_grid_sampler3d.h"


def test_a_pipe_is_no_file_to_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert_error_of_use(understudy("doctor", tmp_path / "pipe"), "no ordinary file")
    assert_error_of_use(understudy("abi", tmp_path / "pipe"), "no ordinary file")


def test_no_name_is_not_the_current_folder():
    assert_error_of_use(understudy("doctor", ""), "a FILE is empty")
