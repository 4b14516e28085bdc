"""What a compiler, a linker and a shell need to know about the SDK trees."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
import subprocess

from understudy.errors import UsageError
from understudy.paths import STACKS, Stack, sdk


def stacks_named(names: list[str] | None) -> list[Stack]:
    """The stacks with these names; all of them for none."""
    return [STACKS[name] for name in names or STACKS]


COMPILERS = {"c": ("CC", "cc"), "c++": ("CXX", "c++")}  # the variable that names a language's compiler, and the one without it


def compiler(language: str) -> list[str]:
    """The host compiler for "c" or "c++": $CC or $CXX, else cc or c++."""
    variable, fallback = COMPILERS[language]
    given = os.environ.get(variable, "")
    try:
        command = shlex.split(given) or [fallback]
    except ValueError as error:  # a quotation without an end
        raise UsageError(f"{variable} is {given!r}: {error}") from None
    if shutil.which(command[0]) is None:
        raise UsageError(f"no compiler {command[0]!r} found; install gcc, or set {variable}")
    return command


def compiler_environment(language: str) -> dict[str, str]:
    """The environment that the compiler gets: without its own name, or `CC="understudy cc"` would call itself for ever."""
    return {name: value for name, value in os.environ.items() if name != COMPILERS[language][0]}


def check_program(program: str, environment: dict[str, str]) -> None:
    """Refuses what cannot be run by this name in the environment; its PATH has the stacks' own programs too."""
    if shutil.which(program, path=environment.get("PATH")) is None:
        is_here = os.path.isfile(program) and os.access(program, os.X_OK)
        reason = f"not found in PATH; here is ./{program}" if is_here else (
            "not executable" if os.path.exists(program) else "not found")
        raise UsageError(f"program {program!r} {reason}")


def cache_folder() -> pathlib.Path | None:
    """A folder for what can be made again: $XDG_CACHE_HOME/understudy, else ~/.cache/understudy; None without one."""
    try:
        folder = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "understudy"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK) else None


def search_flags(stacks: list[Stack]) -> list[str]:
    """Include and library paths, our own header's last. They come after the caller's arguments, as the vendors' do."""
    include = [path for stack in stacks for path in stack.include_paths] + [sdk() / "include"]
    return [*(f"-I{path}" for path in include), *(f"-L{path}" for path in library_folders(stacks))]


def check_place() -> None:
    """Refuses a place that no search path can name: there a colon stands between two folders."""
    if ":" in str(sdk()):
        raise UsageError(f"programs would not find the libraries in {sdk()}: its name has a colon, which search paths cannot hold")


def library_folders(stacks: list[Stack]) -> list:
    check_place()
    return [stack.library_path for stack in stacks] + [sdk() / "lib"]


def flags(stacks: list[Stack]) -> list[str]:
    """The same and run-time library paths. (Not for static programs: -static-pie with a run path crashes at start.)"""
    # -Wl,… would split a path at its commas.
    return search_flags(stacks) + [word for path in library_folders(stacks)
                                   for word in ("-Xlinker", "-rpath", "-Xlinker", str(path))]  # fmt: skip


def libraries(stacks: list[Stack]) -> list[str]:
    """The stacks' libraries and C's mathematics, which C++ compilers add themselves; those that nothing is taken from are
    not linked."""
    names = [f"-l{name}" for stack in stacks for name in stack.link] + ["-lunderstudy", "-lm"]
    return ["-Wl,--push-state,--as-needed", *names, "-Wl,--pop-state"]


IMPLICIT = re.compile(r"^(.+?:\d+):.*(?:implicit declaration of|call to undeclared) function '(\w+)'", re.MULTILINE)


def declaring_header(name: str, stacks: list[Stack]) -> str:
    """The header that declares a function of the stacks; "" for none."""
    declaration = re.compile(rf"\b{name}\s*\(")
    for stack in stacks:
        for folder in stack.include_paths:
            for header in sorted(folder.rglob("*.h")):
                if declaration.search(header.read_text("utf-8")):
                    return str(header.relative_to(folder))
    return ""


def check_declarations(command: list[str], stacks: list[Stack]) -> None:
    """Refuses C programs that call functions of the stacks without a declaration: under the old rules of C they would
    pass a float as a double, and compute with garbage."""
    if not any(argument.endswith((".c", ".i")) or argument.startswith("-x") for argument in command):
        return
    spoken = [argument for argument in command if argument != "-w" and not argument.startswith("-fdiagnostics-")]
    checked = subprocess.run([*spoken, "-fsyntax-only", "-Wimplicit-function-declaration"], capture_output=True, text=True,
                             errors="replace",  # lines of the source, whatever they are written in
                             stdin=subprocess.DEVNULL, env={**compiler_environment("c"), "LC_ALL": "C"})  # fmt: skip
    from understudy.kit import sdk  # reads the libraries: only when something is undeclared

    found = [f"{place}: {name} is called without a declaration; #include <{header}>"
             for place, name in IMPLICIT.findall(checked.stderr)
             if sdk.stack_of(name) and (header := declaring_header(name, stacks))]  # fmt: skip
    if found:
        raise UsageError("; ".join(found))


def variables_of(stack: Stack, root) -> dict[str, str]:
    """Environment variables that a vendor's build files and programs read, for a tree at `root`."""
    values = {stack.home_variable: str(root)}
    if stack.name == "ascend":
        # The documents' CMake reads ASCEND_CUSTOM_PATH, or DDK_PATH and NPU_HOST_LIB; link lines of the operator samples
        # search $ASCEND_OPP_PATH/lib64 too.
        names = ("ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_CUSTOM_PATH", "DDK_PATH")
        values |= {name: str(root) for name in names} | {"NPU_HOST_LIB": str(root / stack.library)}
    if stack.name == "maca":
        values["MACA_CLANG_PATH"] = str(root / "mxgpu_llvm/bin")
    return values


PROGRAMS = {"ascend": ("bin",), "maca": ("bin", "mxgpu_llvm/bin")}  # folders of a tree with programs


def search_paths_of(stack: Stack, root) -> dict[str, list]:
    """Folders of a tree at `root` that are to stand in front of the environment's path lists."""
    # Our own header and library last: programs may ask which core they are, or how many findings there were.
    include = [*(root / folder for folder in stack.include), root.parent / "include"]
    library = [root / stack.library, root.parent / "lib"]
    paths = {"C_INCLUDE_PATH": include, "CPLUS_INCLUDE_PATH": include, "LIBRARY_PATH": library, "LD_LIBRARY_PATH": library,
             "PKG_CONFIG_PATH": [root.parent / "lib/pkgconfig"], "CMAKE_PREFIX_PATH": [root.parent],
             "CMAKE_INCLUDE_PATH": include, "CMAKE_LIBRARY_PATH": library,  # of find_path and find_library
             "PATH": [root / folder for folder in PROGRAMS.get(stack.name, ())]}  # fmt: skip
    return {name: folders for name, folders in paths.items() if folders}


def variables(stacks: list[Stack]) -> dict[str, str]:
    """Those of several stacks, at their places."""
    return {name: value for stack in stacks for name, value in variables_of(stack, stack.root).items()}


def search_paths(stacks: list[Stack]) -> dict[str, str]:
    """Path lists that are to stand in front of what the environment has."""
    check_place()
    found: dict[str, dict[str, None]] = {}
    for stack in stacks:
        for name, folders in search_paths_of(stack, stack.root).items():
            found.setdefault(name, {}).update(dict.fromkeys(map(str, folders)))
    return {name: ":".join(folders) for name, folders in found.items()}


def shell_exports(stacks: list[Stack]) -> str:
    """Lines for `eval "$(understudy env)"` in a POSIX shell."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables(stacks).items()]
    for name, value in search_paths(stacks).items():
        lines.append(f'export {name}={shlex.quote(value)}"${{{name}:+:${name}}}"')
    return "\n".join(lines)


def environment(stacks: list[Stack]) -> dict[str, str]:
    """This process's environment, changed as `shell_exports` does."""
    result = {**os.environ, **variables(stacks)}
    for name, value in search_paths(stacks).items():
        result[name] = ":".join(filter(None, [value, os.environ.get(name)]))
    return result
