"""The compiler wrapper mxcc: the command lines of the vendor's samples build host programs (maca-runtime 6)."""

import shlex
import sys

import pytest

from understudy import paths

from tests import native

MXCC = native.ROOT / "src_c" / "maca" / "mcruntime" / "mxcc.sh"
SDK = paths.STACKS["maca"].root
PROGRAM = """
#include <mc_runtime.h>
int main()
{
    void *memory = NULL;
    mcError_t error = mcMalloc(&memory, 16);
    printf("%s\\n", mcGetErrorName(error));
    return mcFree(memory);
}
"""


def mxcc(*arguments, env=None):
    return native.run([MXCC, *arguments], {"MACA_PATH": str(SDK), **(env or {})})


@pytest.fixture
def source(tmp_path):
    def make(name, text=PROGRAM):
        file = tmp_path / name
        file.write_text(text)
        return file

    return make


def runs(program):
    assert native.check([program]) == "mcSuccess\n"


@pytest.mark.parametrize("name, options", [
    ("a.cpp", ["-x", "maca"]), ("a.cpp", ["-xmaca", "-O2", "-std=c++14"]), ("a.maca", []), ("a.maca", ["-x", "maca"]),
    ("a.c", []), ("a b.cpp", ["-x", "maca", "-DNAME=a b"]), ("a.cpp", ["--offload-arch=xcore1000"]),
    ("a.cpp", ["--offload-arch", "xcore1000", "--default-stream=legacy"]),
])  # fmt: skip
def test_command_lines_build_and_run(name, options, source, tmp_path):
    done = mxcc(*options, source(name), "-o", tmp_path / "program", f"--maca-path={SDK}")
    assert done.returncode == 0, done.stderr
    runs(tmp_path / "program")


def test_headers_of_every_library_are_found_without_their_folder(source, tmp_path):
    headers = ("mcblas.h", "mcblasLt.h", "mcdnn.h", "maca_fp16.h", "maca_bfloat16.h", "library_types.h", "mc_common.h")
    text = PROGRAM + "".join(f'#include "{name}"\n' for name in headers)
    done = mxcc(source("a.c", text), "-o", tmp_path / "program", "-lmcblas", "-lmcdnn")
    assert done.returncode == 0, done.stderr
    runs(tmp_path / "program")


def test_compile_and_link_apart(source, tmp_path):
    assert mxcc("-x", "maca", "-c", source("a.cpp"), "-o", tmp_path / "a.o").returncode == 0
    done = mxcc(tmp_path / "a.o", "-o", tmp_path / "program")
    assert done.returncode == 0, done.stderr
    runs(tmp_path / "program")


def test_maca_is_cpp_and_c_is_c(source, tmp_path):
    only_cpp = source("a.c", PROGRAM.replace("NULL", "nullptr"))
    assert mxcc("-x", "maca", only_cpp, "-o", tmp_path / "program").returncode == 0
    assert mxcc(only_cpp, "-std=c11", "-o", tmp_path / "program").returncode != 0


@pytest.mark.parametrize("option", [["-x", "c++"], ["-xc++"]])
def test_a_language_that_is_told_goes_before_the_ending(option, source, tmp_path):
    done = mxcc(*option, source("a.c", PROGRAM.replace("NULL", "nullptr")), "-o", tmp_path / "program")
    assert done.returncode == 0, done.stderr
    runs(tmp_path / "program")


@pytest.mark.parametrize("compiler", ["{}", "env {}", "{} -DUNUSED", f"{shlex.quote(sys.executable)} -m understudy c++"])
@pytest.mark.parametrize("options", [[], ["-x", "maca"]])
def test_build_systems_name_it_in_cxx(compiler, options, source, tmp_path):
    """Then it does not call itself for ever."""
    file = source("a.c", PROGRAM.replace("NULL", "nullptr") if options else PROGRAM)
    done = mxcc(*options, file, "-o", tmp_path / "program", env={"CXX": compiler.format(MXCC)})
    assert done.returncode == 0, done.stderr
    runs(tmp_path / "program")


@pytest.mark.parametrize("text", ["__global__ void f() {}", "void f() { g<<<1, 2>>>(); }"])
def test_device_code_is_refused_by_name(text, source):
    done = mxcc("-x", "maca", source("kernel.cpp", text))
    assert done.returncode == 1 and "kernel.cpp has device code" in done.stderr


@pytest.mark.parametrize("arguments, sentence", [
    ([], "no input files"), (["--default-stream=new"], "legacy, null or per-thread"), (["-x"], "-x needs a value"),
    (["--maca-path=/nowhere"], "no SDK at /nowhere"),
])  # fmt: skip
def test_wrong_options_are_one_clear_line(arguments, sentence):
    done = mxcc(*arguments)
    assert done.returncode == 1 and sentence in done.stderr and done.stderr.count("\n") == 1


def test_the_per_thread_default_stream_is_noted(source, tmp_path):
    done = mxcc("--default-stream=per-thread", source("a.cpp"), "-o", tmp_path / "program")
    assert done.returncode == 0 and "note: stream 0 stays" in done.stderr
    runs(tmp_path / "program")


@pytest.mark.parametrize("folder", ["sdk", "a, b"])
def test_it_finds_the_sdk_it_is_installed_in(source, tmp_path, folder):
    root = tmp_path / folder
    (root / "mxgpu_llvm" / "bin").mkdir(parents=True)
    (root / "include").symlink_to(SDK / "include")
    (root / "lib").symlink_to(SDK / "lib")
    installed = root / "mxgpu_llvm" / "bin" / "mxcc"
    installed.write_bytes(MXCC.read_bytes())
    installed.chmod(0o755)
    done = native.run([installed, source("a.cpp"), "-o", tmp_path / "program"], {"MACA_PATH": ""})
    assert done.returncode == 0, done.stderr
    runs(tmp_path / "program")
