#!/usr/bin/env python3
"""Builds for aarch64 with a cross compiler, and runs Python with what was built under qemu-user.

    python tools/aarch64.py                                          build, into build/aarch64
    python tools/aarch64.py -m pytest -n 0 tests/test_same_bits.py   build, then run Python with these arguments

Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user. The Python for aarch64 with the packages that tests need is
fetched the first time, with apt-get and pip, into build/aarch64-python. Nothing is installed on this machine.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import dev

BUILD = dev.ROOT / "build" / "aarch64"
PYTHON = dev.ROOT / "build" / "aarch64-python"
VERSION = "3.11"  # Debian's of this release
DEBIAN = [f"python{VERSION}-minimal", f"libpython{VERSION}-minimal", f"libpython{VERSION}-stdlib", "libc6", "libstdc++6",
          "libgcc-s1", "libssl3", "zlib1g", "libexpat1", "libffi8", "libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1",
          "libcrypt1"]
PACKAGES = ["numpy<2.4", "cffi", "pycparser", "pyelftools", "scipy-openblas32<0.4", "pytest", "pytest-xdist", "execnet",
            "iniconfig", "packaging", "pluggy", "pygments", "hypothesis", "sortedcontainers", "attrs", "ml_dtypes"]


def build() -> None:
    dev.configure(BUILD, f"-DCMAKE_TOOLCHAIN_FILE={dev.ROOT / 'tools' / 'aarch64.cmake'}")
    subprocess.run(["cmake", "--build", BUILD], check=True)
    dev.install(BUILD)


def fetch_debian(root: pathlib.Path, work: pathlib.Path) -> None:
    """Unpacks packages of the other architecture; apt keeps what it knows of it in a folder of its own."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    (work / "status").touch()
    options = ["APT::Architecture=arm64", "APT::Architectures=arm64", f"Dir::State={work / 'state'}",
               f"Dir::State::status={work / 'status'}", f"Dir::Cache={work / 'cache'}", "APT::Sandbox::User=root"]
    apt = ["apt-get", "-qq", *(part for option in options for part in ("-o", option))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *DEBIAN], check=True, cwd=work)
    for package in work.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, root], check=True)


def fetch_packages(site: pathlib.Path) -> None:
    platforms = [part for number in (17, 27, 28) for part in ("--platform", f"manylinux_2_{number}_aarch64")]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", *platforms,
                    "--python-version", VERSION, "--target", site, *PACKAGES], check=True)  # fmt: skip
    # Tests start further processes of this Python: by a program that the host can run.
    (site / "sitecustomize.py").write_text(f"import sys\nsys.executable = {str(PYTHON / 'python')!r}\n")


def fetch_python() -> None:
    shutil.rmtree(PYTHON, ignore_errors=True)
    (PYTHON / "root").mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        fetch_debian(PYTHON / "root", pathlib.Path(work))
    fetch_packages(PYTHON / "site")
    # Not the processor "max" of qemu: OpenBLAS's products for its SVE are wrong under some versions of qemu.
    start = PYTHON / "python"
    start.write_text(f"""#!/bin/sh
export QEMU_CPU=cortex-a72 QEMU_LD_PREFIX={PYTHON}/root PYTHONHOME={PYTHON}/root/usr PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH={BUILD}/packages:{PYTHON}/site UNDERSTUDY_BLAS={PYTHON}/site/scipy_openblas32/lib/libscipy_openblas.so
exec qemu-aarch64 {PYTHON}/root/usr/bin/python{VERSION} "$@"
""")
    start.chmod(0o755)


def main() -> int:
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    build()
    if len(sys.argv) == 1:
        return 0
    if not (PYTHON / "python").exists():
        fetch_python()
    return subprocess.run([PYTHON / "python", *sys.argv[1:]], cwd=os.getcwd()).returncode


if __name__ == "__main__":
    sys.exit(main())
