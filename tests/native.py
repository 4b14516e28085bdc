"""Compiling and running C programs against the installed SDK, or against a sanitizer build of the same sources."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

from understudy import paths, toml

ROOT = pathlib.Path(__file__).parents[1]
BUILDS = ROOT / "build"
SANITIZERS = {"address": "address,undefined", "thread": "thread"}
# What programs under a sanitizer call; the rest of the libraries is built without one, or not at all.
SANITIZED_KERNELS = ["map/item.c", "map/loss.c", "map/map.c", "map/tiles.c", "softmax/softmax.c"]
HANGS = 3600  # seconds; a limit for what would never end, not for what is slow on a busy machine
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def sanitized_pages() -> list[str]:
    """Those whose functions are written by hand, and one of each library, so that there is one to link."""
    operators = ROOT / "src_c" / "ascend" / "opapi"
    by_library = {next(iter(toml.loads(page.read_text()).values()))["library"]: page.stem
                  for page in operators.glob("pages/*.toml")}
    return sorted({file.stem for file in operators.glob("aclnn_*.c")} | set(by_library.values()))


def compiled() -> pathlib.Path | str:
    """The objects that the installation of this checkout has left, when no source is younger; "" otherwise."""
    written = (file for file in (ROOT / "src_c").rglob("*") if file.suffix in (".c", ".h", ".inc"))
    newest = max(file.stat().st_mtime for file in written)
    kernels, families = ROOT.glob("src_c/kernels/**/*.c"), ROOT.glob("src_c/ascend/opapi/*.c")
    wanted = [(source.relative_to(ROOT), ("level_base", "understudy")) for source in kernels]
    wanted += [(source.relative_to(ROOT), ("opapi_common",)) for source in families]
    for folder in BUILDS.glob("*/objects/CMakeFiles"):
        choices = [[folder / f"{target}.dir" / f"{source}.o" for target in targets] for source, targets in wanted]
        if all(any(file.exists() and file.stat().st_mtime > newest for file in files) for files in choices):
            return folder
    return ""


def run(command: list, env: dict[str, str] | None = None, timeout: float = HANGS) -> subprocess.CompletedProcess:
    """Runs a command; never raises for its exit status."""
    return subprocess.run([str(part) for part in command], env={**os.environ, **(env or {})}, capture_output=True,
                          text=True, timeout=timeout)


def check(command: list, env: dict[str, str] | None = None, timeout: float = HANGS) -> str:
    """Runs a command that must succeed; returns what it printed."""
    done = run(command, env, timeout)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@functools.cache
def work_folder() -> pathlib.Path:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="understudy-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextlib.contextmanager
def locked(file: pathlib.Path):
    """Holds a lock file: one process of a test run at a time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@functools.cache
def sdk(sanitizer: str = "") -> pathlib.Path:
    """The SDK trees: the installed ones, or a build of the sources with a sanitizer.

    There is one build per sanitizer, in build/sanitize-NAME. All workers of a test run share it, and the next run only
    compiles what has changed."""
    if not sanitizer:
        return paths.sdk()
    build = BUILDS / f"sanitize-{sanitizer}"
    with locked(BUILDS / f"sanitize-{sanitizer}.lock"):
        check(["cmake", "-G", "Ninja", "-S", ROOT, "-B", build, "-DUNDERSTUDY_WERROR=ON",
               f"-DUNDERSTUDY_SANITIZE={SANITIZERS[sanitizer]}", f"-DCMAKE_INSTALL_PREFIX={build / 'prefix'}",
               f"-DUNDERSTUDY_SANITIZED_KERNELS={';'.join(SANITIZED_KERNELS)}",
               f"-DUNDERSTUDY_COMPILED={compiled()}",
               f"-DUNDERSTUDY_PAGES={';'.join(sanitized_pages())}"])
        check(["cmake", "--build", build])
        check(["cmake", "--install", build])
    return build / "prefix"


def _sanitizer_flags(sanitizer: str) -> list[str]:
    return [f"-fsanitize={SANITIZERS[sanitizer]}", "-g"] if sanitizer else []


@functools.cache
def build_internal(source: pathlib.Path, sanitizer: str = "") -> pathlib.Path:
    """A C program that uses the internal headers and libunderstudy.so."""
    program = work_folder() / f"{source.stem}-{sanitizer or 'plain'}"
    folder = sdk(sanitizer) / "lib"
    check(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", *STRICT, *_sanitizer_flags(sanitizer), f"-I{ROOT / 'src_c'}",
           f"-I{ROOT / 'include'}", source, "-o", program, f"-L{folder}", "-lunderstudy", "-lpthread", "-lm",
           f"-Wl,-rpath,{folder}"])
    return program


@functools.cache
def build_vendor(source: pathlib.Path, stack: str, sanitizer: str = "", compiler: str = "gcc",
                 flags: tuple[str, ...] = ()) -> pathlib.Path:
    """A program as the vendor's user writes it: includes the vendor's headers, links the vendor's names."""
    vendor = paths.STACKS[stack]
    root = sdk(sanitizer) / stack
    program = work_folder() / f"{source.stem}-{stack}-{pathlib.Path(compiler).name}-{sanitizer or 'plain'}"
    check([compiler, source, *flags, *_sanitizer_flags(sanitizer), "-O1", "-o", program,
           *(f"-I{root / folder}" for folder in vendor.include), f"-I{sdk(sanitizer) / 'include'}",
           f"-L{root / vendor.library}", *(f"-l{name}" for name in vendor.link), "-lpthread", "-lm",
           f"-Wl,-rpath,{root / vendor.library}"])
    return program
