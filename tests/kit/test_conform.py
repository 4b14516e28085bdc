"""`understudy conform` on our libraries, and on a library that is wrong, crashes and hangs."""

import gc
import json
import os
import shutil
import subprocess
import sys
import time
import types
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy
import pytest

from tests.kit.support import assert_error_of_use, library, understudy
from tests.maca import mcdnn_support
from tests.native import ROOT
from understudy import paths
from understudy.kit import conform, conform_worker

FOREIGN = """
#include <unistd.h>
static int things[2];
static void *dead;
int mcdnnCreate(void **handle) { *(volatile int **)handle = things; dead = 0; return 0; }
int mcdnnDestroy(void *handle) { if (handle == 0 || handle == dead) return 3; dead = handle; return 0; }
int mcdnnSetStream(void *handle, void *stream) { return 0 * (handle == stream); }
int mcdnnGetStream(void *handle, void **stream) { for (;;) pause(); }
"""
HANDLE = "(mcdnnCreate or mcdnnDestroy or mcdnnSetStream or mcdnnGetStream)"


@pytest.fixture(scope="module")
def bytecode(tmp_path_factory):
    """Compiled modules of the suite, for all commands here, of all workers of a run."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    return {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


@pytest.fixture
def conform_here(tmp_path, bytecode):
    def run(*arguments):
        report = tmp_path / "report.json"
        done = understudy("conform", "--report", report, *arguments, env=bytecode)
        return done, json.loads(report.read_text()) if report.exists() else None

    return run


def outcomes(report):
    """Outcome of each rule case by rule."""
    return {case["id"].partition("[")[2].rstrip("]"): case["outcome"] for case in report["cases"]}


def test_our_libraries_pass(conform_here):
    done, report = conform_here("test_mcdnn_handle", "--stack", "maca", "-k", HANDLE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {case["id"].partition("::")[0] for case in report["cases"]} == {"conformance/maca/test_mcdnn_handle.py"}
    assert report["target"] == "the emulated libraries"
    assert report["totals"]["passed"] == len(report["cases"]) > 5
    found = outcomes(report)
    assert found["mcdnnCreate/handle/null"] == found["mcdnnDestroy/handle/alive"] == "passed"
    assert done.stdout.splitlines()[0].split()[:3] == ["stack", "cases", "passed"]
    assert f"{len(report['cases'])} of {len(report['cases'])} cases, 0 bad" in done.stderr


def test_every_stack_and_every_kind_of_case_is_there():
    for stack in ("ascend", "maca", "ftdsp"):
        folders = conform.suite_paths([stack])
        assert folders == [f"tests/conformance/{stack}", f"tests/{stack}"]
        for folder in folders:
            assert list((conform.SUITE / folder).glob("test_*.py")), folder


@pytest.mark.parametrize("stack, keyword",
                         [("ascend", "test_acl_init"), ("maca", HANDLE),
                          ("ftdsp", "binarycrossentropygrad")])  # fmt: skip
def test_every_module_of_a_stack_can_be_collected(stack, keyword, conform_here):
    """From the installed package: a module that imports what is not shipped is a failed case, whatever -k says."""
    done, report = conform_here("--stack", stack, "-k", keyword)
    assert done.returncode == 0, done.stdout
    assert report["totals"]["passed"] > 5 and not any(case["id"].endswith(".py") for case in report["cases"])


def test_the_shipped_cases_are_those_of_the_repository():
    shipped = [file for file in conform.SUITE.rglob("*.py")]
    assert len(shipped) > 20
    for file in shipped:
        assert file.read_bytes() == (ROOT / file.relative_to(conform.SUITE)).read_bytes()


def test_a_foreign_library_that_differs_crashes_and_hangs(tmp_path, conform_here):
    file = library(tmp_path, "libmcdnn.so", FOREIGN)
    known = tmp_path / "known.toml"
    known.write_text("""
[[difference]]
case = "*[mcdnnSetStream/handle/alive]"
why = "Handles are not looked at."
[[difference]]
case = "conformance/maca/test_mcdnn_handle.py::*[mcdnnDestroy/handle/alive]"
why = "Was so in the last release."
[[difference]]
case = "*[mcdnnNothing/x/y]"
why = "Of another function."
""")
    choice = "mcdnnCreate/handle/null or mcdnnDestroy/handle/alive or mcdnnSetStream/handle/alive or mcdnnGetStream/handle"
    keyword = " or ".join(f"({' and '.join(name.split('/'))})" for name in choice.split(" or "))
    done, report = conform_here("--lib", file, "--known", known, "--timeout", "5", "-k", keyword, "test_mcdnn_handle")
    assert done.returncode == 1
    assert report["target"] == {"maca": [str(file)]}
    found = outcomes(report)
    assert found["mcdnnCreate/handle/null"] == "crashed"
    assert found["mcdnnDestroy/handle/alive"] == "passed", "rule ids are not asked of a foreign library"
    assert found["mcdnnSetStream/handle/alive"] == "known"
    assert found["mcdnnGetStream/handle/alive"] == "hung"
    (crash,) = [case for case in report["cases"] if case["outcome"] == "crashed"]
    assert "SIGSEGV" in crash["message"]
    assert len(report["fixed"]) == 1 and "mcdnnDestroy/handle/alive" in report["fixed"][0]
    assert report["unused"] == ["*[mcdnnNothing/x/y]"]
    assert "Handles are not looked at." in done.stdout and "is listed as a known difference and passes" in done.stdout


def test_nothing_is_left_of_a_command_that_is_killed(tmp_path, bytecode):
    """Its child waits inside the library, where no signal handler of Python runs, and has a child of its own."""
    told = tmp_path / "told"
    hangs = f"""int child = fork();
        if (child != 0) {{
            FILE *told = fopen("{told}.part", "w");
            fprintf(told, "%d %d", getpid(), child);
            fclose(told);
            rename("{told}.part", "{told}");
        }}
        for (;;) pause();"""
    file = library(tmp_path, "libmcdnn.so", "#include <stdio.h>" + FOREIGN.replace("for (;;) pause();", hangs))
    command = subprocess.Popen([sys.executable, "-m", "understudy", "conform", "test_mcdnn_handle", "--lib", file,
                                "-k", "mcdnnGetStream and handle and alive"],
                               env={**os.environ, **bytecode, "TMPDIR": str(tmp_path)})  # fmt: skip
    try:
        wait_until(told.exists)
    finally:
        command.kill()
        command.wait()
    for process in map(int, told.read_text().split()):
        wait_until(lambda: has_ended(process))


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def has_ended(process):
    try:
        return "\nState:\tZ" in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return True


def test_a_missing_function_is_told_from_a_failure(tmp_path, conform_here):
    file = library(tmp_path, "libmcdnn.so", FOREIGN.replace("int mcdnnDestroy", "static inline int unused"))
    done, report = conform_here("--lib", file, "-k", "mcdnnDestroy", "test_mcdnn_handle")
    assert done.returncode == 1
    assert [case for case in report["cases"] if case["outcome"] != "missing"] == []
    assert "mcdnnDestroy" in {case["message"] for case in report["cases"]}
    assert report["totals"]["missing"] == len(report["cases"]) and "missing: " in done.stderr


def test_device_memory_of_a_library_that_cannot_free_it(monkeypatch):
    """An exception behind the case that is told would be of no case."""
    others = []
    monkeypatch.setattr(sys, "unraisablehook", others.append)
    monkeypatch.setattr(mcdnn_support, "lib", types.SimpleNamespace(mcMalloc=lambda address, size: 0))
    with pytest.raises(AttributeError, match="mcFree"):
        mcdnn_support.Buffer(numpy.zeros(1))
    gc.collect()
    assert others == []


def test_nothing_is_collected_while_a_case_is_reported():
    """An object with `__del__` inside of Python's parser would end the worker."""
    making = conform_worker.Reporter(None, set(), None).pytest_runtest_makereport()
    next(making)
    try:
        assert not gc.isenabled()
    finally:
        making.close()
    assert gc.isenabled()


@pytest.mark.parametrize("message, told", [
    ("AssertionError: Traceback\nunderstudy.binding.MissingName: no loaded library has mcFree\nassert 1 == 0", ("missing", "mcFree")),
    ("understudy.binding.MissingName: no loaded library has mcFree", ("missing", "mcFree")),
    ("AssertionError: Traceback\nassert 1 == 0", ("failed", "AssertionError: Traceback")),
])  # fmt: skip
def test_a_function_that_a_python_of_a_case_misses(message, told):
    report = types.SimpleNamespace(longrepr=types.SimpleNamespace(reprcrash=types.SimpleNamespace(message=message)))
    assert conform_worker.failure(conform_worker.summary(report)) == told


def test_a_missing_function_is_one_line_however_many_cases_need_it(capsys):
    cases = [conform.Case(f"conformance/maca/test_x.py::test[{i}]", "missing", message="mcdnnDestroy") for i in range(129)]
    conform.print_result([*cases, conform.Case("a", "failed", message="differs")], [], [])
    lines = capsys.readouterr().out.splitlines()
    told = [line.split()[:2] for line in lines if line.startswith(("missing", "failed"))]
    assert told == [["missing", "mcdnnDestroy"], ["failed", "a"]]
    assert "129 cases cannot run" in lines[0]


def foreign_copy(folder):
    """The MACA libraries as another vendor's: our core, and what it says beside the ABI, have other names."""
    shutil.copytree(paths.sdk() / "lib", folder / "lib")
    shutil.copytree(paths.STACKS["maca"].library_path, folder / "maca/lib")
    for file in folder.rglob("*.so"):
        data = file.read_bytes().replace(b"libunderstudy.so", b"libvendorcore.so")
        file.write_bytes(data.replace(b"understudy_", b"vendorcore_"))
    (folder / "lib/libunderstudy.so").rename(folder / "lib/libvendorcore.so")
    return [folder / "maca/lib/libmcdnn.so", folder / "maca/lib/libmcruntime.so"]


def test_a_foreign_library_that_behaves_passes(tmp_path, conform_here):
    """Rule cases, also those in children with their own environment, and functional tests; ours is not loaded."""
    modules = ("test_mcdnn_softmax", "test_runtime_device", "test_runtime_memory")
    choice = "(mcdnn_softmax and (test_rule or fault)) or mcSetDevice or test_runtime_memory"
    done, report = conform_here("--lib", *foreign_copy(tmp_path), "-k", choice, "--", *modules)
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["totals"]["passed"] > 50
    reasons = {case["message"] for case in report["cases"] if case["outcome"] == "skipped"}
    assert "only our libraries tell the rule and the sentence" in reasons


WRONG = """
#include <dlfcn.h>
#include <stdlib.h>
#define RIGHT(library, name, type) ((type)dlsym(dlopen(library, RTLD_NOW), name))
typedef int Forward(void *, void *, const void *, void *, const void *, const void *, void *, void *);
typedef int Set(void *, int, int, int, int, int, int, int, int);
int mcdnnPoolingForward(void *handle, void *pooling, const void *alpha, void *x_desc, const void *x, const void *beta,
                        void *y_desc, void *y)
{
    int status = RIGHT(DNN, "mcdnnPoolingForward", Forward *)(handle, pooling, alpha, x_desc, x, beta, y_desc, y);
    if (status) return status == 3 ? 9 : status; /* NOT_SUPPORTED instead of BAD_PARAM */
    size_t size;
    RIGHT(DNN, "mcdnnGetTensorSizeInBytes", int (*)(void *, size_t *))(y_desc, &size);
    RIGHT(RUNTIME, "mcDeviceSynchronize", int (*)(void))();
    float *values = malloc(size), factor = size < 100 ? 1.00000012f : size < 100000 ? 1.00001f : 1.001f;
    RIGHT(RUNTIME, "mcMemcpy", int (*)(void *, const void *, size_t, int))(values, y, size, 2);
    for (size_t i = 0; i < size / 4; i++) values[i] *= factor;
    RIGHT(RUNTIME, "mcMemcpy", int (*)(void *, const void *, size_t, int))(y, values, size, 1);
    free(values);
    return 0;
}
int mcdnnSetPooling2dDescriptor(void *pooling, int mode, int nan, int h, int w, int ph, int pw, int sh, int sw)
{
    int other = h == 3 && w == 3 && mode < 2 ? 1 - mode : mode; /* the numbers of two modes are exchanged */
    return RIGHT(DNN, "mcdnnSetPooling2dDescriptor", Set *)(pooling, other, nan, h, w, ph, pw, sh, sw);
}
"""


def test_kinds_of_differences_are_told_apart(tmp_path, conform_here):
    """One unit in the last place and 1e-5 lie within the vendor's tolerance (aclnn-ops 1.5), 1e-3 does not."""
    dnn, runtime = foreign_copy(tmp_path)
    wrong = library(tmp_path, "libwrong.so", WRONG, [f'-DDNN="{dnn}"', f'-DRUNTIME="{runtime}"'])
    known = tmp_path / "known.toml"
    known.write_text('[[difference]]\ncase = "*stride2-0]"\nwhy = "Its rounding is known."\n')
    junit, page = tmp_path / "report.xml", tmp_path / "report.html"
    planes = " or ".join(f"stride{case}-0" for case in range(4))
    done, report = conform_here("--lib", wrong, dnn, runtime, "--stack", "maca", "--junit", junit, "--html", page, "--known",
                                known, "test_mcdnn_pooling", "-k",
                                f"(test_planes and ({planes})) or (mcdnnPoolingForward and output-sizes)")  # fmt: skip
    assert done.returncode == 1, done.stderr
    cases = {case["id"].rpartition("-stride")[2]: case for case in report["cases"]}
    rule = next(case for case in report["cases"] if "rule" in case)
    found = {name: case["outcome"] for name, case in cases.items() if case is not rule}
    assert found == {"0-0]": "wrong number", "1-0]": "wrong number", "2-0]": "known", "3-0]": "rounds differently"}
    assert rule["outcome"] == "wrong status" and rule["facts"] == {"status": 9, "expected_status": 3}
    assert rule["rule"] == "mcdnnPoolingForward/yDesc/output-sizes" and rule["source"] and rule["where"]
    assert 0.5 < cases["3-0]"]["facts"]["largest_error_ulp"] < 2.1
    assert 8000 < cases["1-0]"]["facts"]["largest_error_ulp"] < 8800
    assert [entry["file"] for entry in report["libraries"]["maca"]] == ["libwrong.so", "libmcdnn.so", "libmcruntime.so"]
    assert report["host"]["machine"] and len(report["libraries"]["maca"][0]["sha256"]) == 64
    suite = xml.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures"), len(suite.findall(".//skipped"))) == ("5", "3", 1)
    assert {entry.get("type") for entry in suite.iter("failure")} == {"wrong number", "wrong status"}
    text = page.read_text()
    assert text.count('class="bad"') == 3 and text.count('class="noted"') == 2 and "Its rounding is known." in text


def test_one_process_per_case(conform_here):
    done, report = conform_here("--stack", "maca", "--isolate", "-k", "mcdnnDestroy", "test_mcdnn_handle")
    assert done.returncode == 0 and set(outcomes(report).values()) == {"passed"}


def test_errors_of_use(tmp_path, monkeypatch, bytecode):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(*next(iter(bytecode.items())))
    other = library(tmp_path, "libother.so", "int x;")
    assert_error_of_use(understudy("conform", "--lib", other), "say with --stack")
    assert_error_of_use(understudy("conform", "--lib", tmp_path / "absent.so"), "cannot read")
    assert_error_of_use(understudy("conform", "test_mcdnn_handle", "--stack", "maca", "-k", "no_such_case"),
                        "no case fits 'no_such_case'")  # fmt: skip
    assert_error_of_use(understudy("conform", "test_mcdnn_handle", "--stack", "maca", "-k", "a b ("), "Wrong expression")
    assert_error_of_use(understudy("conform", "test_mcdnn", "--stack", "maca"), "test_mcdnn is no module of maca")
    for seconds in ("0", "-1", "nan", "inf", "1e300", "1e10", "soon"):
        assert_error_of_use(understudy("conform", "--timeout", seconds), "--timeout")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[[difference]]\ncase = 'x'\n")
    assert_error_of_use(understudy("conform", "--known", wrong), "needs case and why")
    for text in ("case = 1\nwhy = 'x'\n", "case = 'x'\nwhy = ['x']\n"):
        wrong.write_text(f"[[difference]]\n{text}")
        assert_error_of_use(understudy("conform", "--known", wrong), "needs case and why, which are texts")
    wrong.write_text("difference = 'x'\n")
    assert_error_of_use(understudy("conform", "--known", wrong), "needs case and why")
    wrong.write_text("[[difference]]\ncase = 'x'\nwhy = 'y'\nwhi = 'z'\n")
    assert_error_of_use(understudy("conform", "--known", wrong), "there is no key 'whi'; there are: case, why")
    wrong.write_text("[[diference]]\ncase = 'x'\nwhy = 'y'\n")
    assert_error_of_use(understudy("conform", "--known", wrong), "there is no key 'diference'; there are: difference")
    wrong.write_text("what")
    assert_error_of_use(understudy("conform", "--known", wrong), "is no TOML file")


def test_a_library_that_cannot_be_loaded_is_one_line(tmp_path, bytecode):
    file = library(tmp_path, "libmcdnn.so", "void absent_function(void); int mcdnnCreate(void **h) { absent_function(); }",
                   ["-Wl,-z,now"])  # fmt: skip
    done = understudy("conform", "test_mcdnn_handle", "--lib", file, "--report", tmp_path / "report.json", env=bytecode)
    assert done.returncode == 1, "the module is broken, which is what is reported"
    assert "absent_function" in done.stdout


@pytest.mark.parametrize("pattern, case_id, covered", [
    ("a/b[c]", "a/b[c]", True), ("a/*[c]", "a/b::d[c]", True), ("a/b[c]", "a/bc", False), ("*", "", True),
    ("a", "ab", False),
])  # fmt: skip
def test_patterns_of_known_differences(pattern, case_id, covered):
    assert conform.Known(pattern, "").covers(case_id) is covered


@pytest.mark.parametrize("option, place", [("--report", "/none/report"), ("--html", "/"), ("--junit", "/none/report")])
def test_reports_are_files(bytecode, option, place):
    """Which is found before the cases run."""
    done = understudy("conform", "test_mcdnn_handle", "-k", "mcdnnCreate", option, place, env=bytecode)
    assert_error_of_use(done, f"cannot write {place}")


@pytest.mark.parametrize("end", ["no tests ran in 0.57s", "3 passed, 1 skipped in 2.8s", "1 deselected in 12.00s", "..F."])
def test_the_last_words_of_a_child_are_not_the_sum_of_its_tests(tmp_path, end):
    log = tmp_path / "log"
    log.write_text(f"at first\nERROR: Wrong expression passed to '-k'\n{end}\n")
    assert conform.last_words(log.open()) == "ERROR: Wrong expression passed to '-k'"
