"""Build files as the vendors' documents and samples have them, and those of other build systems, find headers and libraries."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from understudy import paths, toolchain

SDK = paths.sdk()
ASCEND = '#include <acl/acl.h>\n#include <aclnn/aclnn_base.h>\nint main(void) { return aclInit(NULL) || aclFinalize(); }\n'
MACA = "#include <mcr/mc_runtime.h>\n#include <mcdnn/mcdnn.h>\nint main(void) { mcdnnHandle_t h; return mcdnnCreate(&h); }\n"
FTDSP = "#include <add.h>\nint main(void) { float x[3] = {0}; fp_add_s(x, x, x, 3, 1); return 0; }\n"
PROGRAMS = {"ascend": ASCEND, "maca": MACA, "ftdsp": FTDSP}
CLEAN = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
SET_ENV = {stack: f'. "{SDK / stack}/set_env.sh"' for stack in paths.STACKS}


def shell(script: str, folder: pathlib.Path) -> str:
    """Runs bash lines in a folder with nothing of ours in the environment; returns what they print."""
    done = subprocess.run(["bash", "-euc", script], cwd=folder, env=CLEAN, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cmake_project(folder: pathlib.Path, body: str, stack: str) -> None:
    (folder / "program.c").write_text(PROGRAMS[stack])
    (folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.16)\nproject(sample C)\n{body}")


BUILD = "cmake -G Ninja -B build {} >/dev/null && cmake --build build >/dev/null && build/program"

ASKS = """
#include <understudy/understudy.h>
int main(void) { return understudy_core() + (int)understudy_findings(); }
"""


def linked_folder(folder: pathlib.Path) -> pathlib.Path:
    """An SDK of this name: not one link, since the folder that it leads to would be taken."""
    folder.mkdir()
    for part in SDK.iterdir():
        (folder / part.name).symlink_to(part)
    return folder


CUSTOM_PATH = """
if(NOT "$ENV{ASCEND_CUSTOM_PATH}" STREQUAL "")
  set(ASCEND_PATH $ENV{ASCEND_CUSTOM_PATH})
else()
  set(ASCEND_PATH "/usr/local/Ascend/ascend-toolkit/latest")
endif()
include_directories(${ASCEND_PATH}/include ${ASCEND_PATH}/include/aclnn)
add_executable(program program.c)
target_link_libraries(program PRIVATE ${ASCEND_PATH}/lib64/libascendcl.so ${ASCEND_PATH}/lib64/libnnopbase.so
  ${ASCEND_PATH}/lib64/libopapi.so)
"""
DDK_PATH = """
include_directories($ENV{DDK_PATH}/include)
link_directories($ENV{NPU_HOST_LIB})
add_executable(program program.c)
target_link_libraries(program ascendcl stdc++)
"""


@pytest.mark.parametrize("body", [CUSTOM_PATH, DDK_PATH], ids=["ASCEND_CUSTOM_PATH", "DDK_PATH"])
def test_the_documents_cmake(tmp_path, body):
    cmake_project(tmp_path, body, "ascend")
    shell(f"{SET_ENV['ascend']}\n{BUILD.format('')}", tmp_path)


def test_a_makefile_with_mxcc(tmp_path):
    (tmp_path / "program.cpp").write_text(MACA)
    (tmp_path / "Makefile").write_text("program: program.cpp\n\tmxcc -x maca $< -o $@ -lmcdnn --maca-path=$(MACA_PATH)\n")
    shell(f"{SET_ENV['maca']}\nmake -s && ./program", tmp_path)
    exports = toolchain.shell_exports([paths.STACKS["maca"]])
    shell(f'{exports}\nmake -s -B && ./program && test "$(command -v mxcc)" = "$MACA_PATH/bin/mxcc"', tmp_path)


@pytest.mark.parametrize("stack", paths.STACKS)
def test_set_env_exports_what_env_does(stack, tmp_path):
    show = "env | sort"
    by_script = shell(f"{SET_ENV[stack]}\n{show}", tmp_path).splitlines()
    by_command = shell(f"{toolchain.shell_exports([paths.STACKS[stack]])}\n{show}", tmp_path).splitlines()
    assert by_script == by_command and any(line.startswith(paths.HOME_VARIABLES[stack]) for line in by_script)


def test_set_env_in_a_shell_without_a_way_to_find_it(tmp_path):
    posix = next((path for name in ("dash", "busybox") if (path := shutil.which(name))), None)
    if posix is None:
        pytest.skip("no shell but bash")
    script = f'. {SDK}/ascend/set_env.sh; echo "${{ASCEND_HOME_PATH-none}}"'
    done = subprocess.run([posix, "-c", script], env=CLEAN, capture_output=True, text=True)
    assert done.stdout == "none\n" and "set UNDERSTUDY_ROOT" in done.stderr
    script = f'. {SDK}/ascend/set_env.sh && echo "goes on"'
    done = subprocess.run([posix, "-c", script], env=CLEAN, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    script = f'UNDERSTUDY_ROOT={SDK}/ascend; . {SDK}/ascend/set_env.sh; echo "$ASCEND_HOME_PATH"'
    done = subprocess.run([posix, "-c", script], env=CLEAN, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{SDK}/ascend\n", "")


FIND = """
find_library(LIBRARY NAMES mcdnn)
find_path(HEADER mcdnn/mcdnn.h)
find_library(OWN_LIBRARY NAMES own)
find_path(OWN_HEADER own.h)
foreach(name LIBRARY HEADER OWN_LIBRARY OWN_HEADER)
  message("${name} ${${name}}")
endforeach()
"""


@pytest.mark.parametrize("how", ["env", "toolchain"])
def test_find_library_and_find_path_need_no_hints(how, tmp_path):
    """And the user's own folders still count."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "libown.so").write_text("")
    (own / "own.h").write_text("")
    cmake_project(tmp_path, FIND, "maca")
    if how == "env":
        settings = (f"export CMAKE_LIBRARY_PATH={own} CMAKE_INCLUDE_PATH={own}\n"
                    f"{toolchain.shell_exports(list(paths.STACKS.values()))}\n")  # fmt: skip
        options = ""
    else:
        settings = ""
        options = (f"-DCMAKE_LIBRARY_PATH={own} -DCMAKE_INCLUDE_PATH={own} "
                   f"-DCMAKE_TOOLCHAIN_FILE={SDK}/lib/cmake/understudy/understudy-toolchain.cmake")  # fmt: skip
    told = shell(f"{settings}cmake -G Ninja -B build {options} 2>&1", tmp_path)
    expected = [f"LIBRARY {SDK}/maca/lib/libmcdnn.so", f"HEADER {SDK}/maca/include", f"OWN_LIBRARY {own}/libown.so",
                f"OWN_HEADER {own}"]  # fmt: skip
    assert [line for line in told.splitlines() if re.match("(OWN_)?(LIBRARY|HEADER) ", line)] == expected


def find_package(target: str) -> str:
    return (f"find_package(understudy 0.1 REQUIRED)\nadd_executable(program program.c)\n"
            f"target_link_libraries(program PRIVATE understudy::{target})\n")  # fmt: skip


@pytest.mark.parametrize("stack", paths.STACKS)
def test_find_package(stack, tmp_path):
    cmake_project(tmp_path, find_package(stack), stack)
    shell(BUILD.format(f'-DCMAKE_PREFIX_PATH="{SDK}"'), tmp_path)


@pytest.mark.parametrize("asked, found", [
    ("REQUIRED COMPONENTS maca understudy", True), ("COMPONENTS maca nosuch", False), ("REQUIRED COMPONENTS nosuch", None),
    ("REQUIRED COMPONENTS ftdsp OPTIONAL_COMPONENTS nosuch", True),
])  # fmt: skip
def test_components_of_the_package(asked, found, tmp_path):
    """None: CMake ends with a message."""
    (tmp_path / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.16)
project(program C)
find_package(understudy {asked})
message(STATUS "found: ${{understudy_FOUND}}")
""")
    command = ["cmake", "-G", "Ninja", "-B", tmp_path / "build", "-S", tmp_path, f"-DCMAKE_PREFIX_PATH={SDK}"]
    done = subprocess.run(command, env=CLEAN, capture_output=True, text=True)
    assert (done.returncode == 0) == (found is not None), done.stderr
    if found is None:
        assert "understudy has no component nosuch" in " ".join(done.stderr.split())
    else:
        words = ("TRUE", "1") if found else ("FALSE", "0")
        assert any(f"found: {word}\n" in done.stdout for word in words), done.stdout


def test_a_project_is_built_without_the_variables_it_was_configured_with(tmp_path):
    exports = toolchain.shell_exports(list(paths.STACKS.values()))
    file = f"{SDK}/lib/cmake/understudy/understudy-toolchain.cmake"
    plain = "add_executable(program program.c)\ntarget_link_libraries(program mcdnn mcruntime)\n"
    for name, body, option in (("package", find_package("maca"), ""), ("toolchain", plain, f"-DCMAKE_TOOLCHAIN_FILE={file}")):
        (tmp_path / name).mkdir()
        cmake_project(tmp_path / name, body, "maca")
        shell(f"{exports}\ncmake -G Ninja -B build {option}", tmp_path / name)
        shell("cmake --build build && build/program", tmp_path / name)


@pytest.mark.parametrize("target", ["ftdsp", "understudy"])
def test_find_package_has_the_library_of_our_own_header(target, tmp_path):
    cmake_project(tmp_path, find_package(target), "ftdsp")
    (tmp_path / "program.c").write_text(ASKS)
    shell(BUILD.format(f'-DCMAKE_PREFIX_PATH="{SDK}"'), tmp_path)


def test_our_own_header_and_library_after_env(tmp_path):
    (tmp_path / "program.c").write_text(ASKS)
    for settings in (toolchain.shell_exports([paths.STACKS["ftdsp"]]), SET_ENV["maca"]):
        shell(f"{settings}\ncc program.c -o program -lunderstudy && ./program", tmp_path)


def test_a_toolchain_file_is_all_that_a_project_needs(tmp_path):
    """Also one with a blank in its path, and CMake has nothing to say about it."""
    sdk = tmp_path / "of all stacks"
    sdk.symlink_to(SDK)
    cmake_project(tmp_path, "add_executable(program program.c)\ntarget_link_libraries(program mcdnn mcruntime)\n", "maca")
    file = f"{sdk}/lib/cmake/understudy/understudy-toolchain.cmake"
    assert shell(f"{BUILD.format(f'-DCMAKE_TOOLCHAIN_FILE={shlex.quote(file)}')} 2>&1", tmp_path) == ""


@pytest.mark.parametrize("stack", paths.STACKS)
def test_pkg_config_files(stack, tmp_path):
    """Without pkg-config: what it substitutes is little."""
    text = (SDK / f"lib/pkgconfig/understudy-{stack}.pc").read_text().replace("${pcfiledir}", f"{SDK}/lib/pkgconfig")
    variables = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    fields = dict(re.findall(r"^(\w+): (.*)$", text, re.MULTILINE))
    for _ in variables:
        fields = {name: re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], value) for name, value in fields.items()}
    for text in (PROGRAMS[stack], ASKS):
        (tmp_path / "program.c").write_text(text)
        shell(f"cc program.c {fields['Cflags']} -o program {fields['Libs']} && ./program", tmp_path)


needs_pkg_config = pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config")


@needs_pkg_config
def test_cmake_by_pkg_config(tmp_path):
    """It puts options before the program, and libraries behind it."""
    body = ("find_package(PkgConfig)\npkg_check_modules(maca REQUIRED IMPORTED_TARGET understudy-maca)\n"
            "add_executable(program program.c)\ntarget_link_libraries(program PkgConfig::maca)\n")  # fmt: skip
    cmake_project(tmp_path, body, "maca")
    shell(f"export PKG_CONFIG_PATH={SDK}/lib/pkgconfig\n{BUILD.format('')}", tmp_path)


@needs_pkg_config
def test_pkg_config_in_a_folder_with_a_blank(tmp_path):
    sdk = tmp_path / "a b"
    shutil.copytree(SDK / "lib/pkgconfig", sdk / "lib/pkgconfig")  # it resolves links
    for part in ("maca", "include", "lib/libunderstudy.so"):
        (sdk / part).symlink_to(SDK / part)
    (tmp_path / "program.c").write_text(MACA)
    flags = '$(PKG_CONFIG_PATH="a b/lib/pkgconfig" pkg-config --cflags --libs understudy-maca)'
    shell(f"eval cc program.c -o program {flags} && ./program", tmp_path)


def test_a_comma_in_the_folder_of_a_toolchain_file(tmp_path):
    odd = linked_folder(tmp_path / "a, b")
    cmake_project(tmp_path, "add_executable(program program.c)\ntarget_link_libraries(program mcdnn mcruntime)\n", "maca")
    shell(BUILD.format(f'-DCMAKE_TOOLCHAIN_FILE="{odd}/lib/cmake/understudy/understudy-toolchain.cmake"'), tmp_path)


def test_a_comma_in_the_folder(tmp_path):
    """-Wl,… splits at commas."""
    odd = linked_folder(tmp_path / "a, b")
    (tmp_path / "program.c").write_text(MACA)
    command = [sys.executable, "-m", "understudy", "cc", "program.c", "-o", "program"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "UNDERSTUDY_SDK": str(odd)}, capture_output=True,
                          text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "program"], env=CLEAN).returncode == 0


def test_our_own_sources_in_an_odd_folder(tmp_path):
    """And what Python knows of a page goes with it."""
    sources, build = pathlib.Path(__file__).resolve().parents[2], tmp_path / "a b é"
    start = f'cmake -G Ninja -S "{sources}" -B "{build}" -DPython_EXECUTABLE="{sys.executable}"'
    for pages in (["aclnn_abs", "aclnn_acos"], ["aclnn_abs"]):
        given = f'-DUNDERSTUDY_PACKAGE_DIR="{build}/package" -DUNDERSTUDY_PAGES="{";".join(pages)}"'
        shell(f'{start} {given} && cmake --build "{build}" --target python_bindings', tmp_path)
        bindings = (build / "python" / "_ascend_cffi.py").read_text("utf-8")
        assert "aclnnAbs" in bindings and ("aclnnAcos" in bindings) == ("aclnn_acos" in pages)
