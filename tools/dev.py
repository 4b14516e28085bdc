#!/usr/bin/env python3
"""Builds the sources into a folder and runs a command with what was built, without pip.

    python tools/dev.py                                   build
    python tools/dev.py pytest tests/kit/test_doctor.py   build, then test
    python tools/dev.py python -m understudy doctor a.out

The folder has the CMake build and, in `packages`, the package as pip would install it. Only what has changed is compiled.
The Python that runs this needs the package's dependencies (`pip install '.[test]'` once), cmake and ninja.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Not by the preprocessor's output: GCC applies target pragmas only when it compiles, so that what stands in #if __AVX512F__
# is not there, and ccache would take an old object for a changed file.
CCACHE = "env;CCACHE_DEPEND=1;ccache"


def configure(build: pathlib.Path, *more: str) -> None:
    if (build / "build.ninja").exists():
        return
    launcher = [f"-DCMAKE_C_COMPILER_LAUNCHER={CCACHE}"] if shutil.which("ccache") else []
    package = build / "packages" / "understudy"
    subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", build, *launcher, "-DUNDERSTUDY_WERROR=ON",
                    f"-DPython_EXECUTABLE={sys.executable}", f"-DUNDERSTUDY_PACKAGE_DIR={package}",
                    f"-DCMAKE_INSTALL_PREFIX={package / 'sdk'}", *more], check=True, stdout=subprocess.DEVNULL)  # fmt: skip


def install(build: pathlib.Path) -> None:
    """The package as it is now: nothing of an earlier state is left."""
    packages = build / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    subprocess.run(["cmake", "--install", build], check=True, stdout=subprocess.DEVNULL)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    name = re.search(r'^name = "(.*)"', project, re.MULTILINE)[1]
    information = packages / f"{name.replace('-', '_')}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n")
    scripts = re.search(r"^\[project\.scripts\]\n((?:.+\n)*)", project, re.MULTILINE)[1].replace('"', "")
    (information / "entry_points.txt").write_text(f"[console_scripts]\n{scripts}")


def environment(build: pathlib.Path) -> dict[str, str]:
    """Variables with which a program uses what was built."""
    paths = [str(build / "packages"), os.environ.get("PYTHONPATH", "")]
    changes = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
    blas = importlib.util.find_spec("scipy_openblas32")
    if blas is not None:  # the installed package finds it at its side
        folder = pathlib.Path(blas.submodule_search_locations[0]) / "lib"
        changes["UNDERSTUDY_BLAS"] = os.environ.get("UNDERSTUDY_BLAS") or str(folder / "libscipy_openblas.so")
    return {**os.environ, **changes, "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "dev", help="the folder")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run")
    options = parser.parse_args()
    build = options.build.resolve()
    configure(build)
    compiled = subprocess.run(["cmake", "--build", build])
    if compiled.returncode:
        return compiled.returncode
    install(build)
    if not options.command:
        return 0
    return subprocess.run(options.command, env=environment(build)).returncode


if __name__ == "__main__":
    sys.exit(main())
