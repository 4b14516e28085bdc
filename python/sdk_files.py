"""Makes the files with which build systems and shells find the SDK trees: set_env.sh of each tree, pkg-config files, the
CMake package, and a CMake toolchain file. What is in the trees is said once, in understudy/paths.py.

    python -m sdk_files VERSION FOLDER     with python/ on PYTHONPATH; the files are in FOLDER as they are in the SDK
"""

import pathlib
import sys

from understudy import toolchain
from understudy.paths import STACKS, Stack

ROOT = pathlib.PurePosixPath("/ROOT")  # stands for where a tree will be

SET_ENV = """# Environment of programs for these libraries: `. set_env.sh` from bash or zsh; from another shell after
# UNDERSTUDY_ROOT=folder, with the folder that this script is in.
if [ -n "${BASH_SOURCE:-}" ]; then
    UNDERSTUDY_ROOT=$(cd "$(dirname "$BASH_SOURCE")" && pwd)
elif [ -n "${ZSH_VERSION:-}" ]; then
    eval 'UNDERSTUDY_ROOT=${${(%):-%x}:A:h}'
fi
if [ -z "${UNDERSTUDY_ROOT:-}" ]; then
    echo "set_env.sh: this shell does not tell where the script is; set UNDERSTUDY_ROOT to its folder" >&2
else
EXPORTS
fi
unset UNDERSTUDY_ROOT
"""

PKG_CONFIG = """prefix=${pcfiledir}/../../STACK
libdir=${prefix}/LIBRARY

Name: understudy-STACK
Description: the STACK stack on a plain CPU
Version: VERSION
Cflags: INCLUDES
Libs: -L${libdir} -Wl,-rpath,${libdir} -Wl,--push-state,--as-needed LINKS -Wl,--pop-state
"""

CONFIG = """# find_package(understudy) gives the targets understudy::ascend, understudy::maca and understudy::ftdsp.
get_filename_component(_understudy_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

function(_understudy_stack stack library_folder)
  cmake_parse_arguments(arg "" "" "INCLUDE;LINK" ${ARGN})
  if(TARGET understudy::${stack})
    return()
  endif()
  list(TRANSFORM arg_INCLUDE PREPEND "${_understudy_root}/${stack}/")
  set(folder "${_understudy_root}/${stack}/${library_folder}")
  list(TRANSFORM arg_LINK PREPEND "${folder}/lib")
  list(TRANSFORM arg_LINK APPEND ".so")
  add_library(understudy::${stack} INTERFACE IMPORTED)
  set_target_properties(understudy::${stack} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${arg_INCLUDE};${_understudy_root}/include"
    INTERFACE_LINK_OPTIONS "LINKER:--as-needed;LINKER:-rpath,${folder}"
    INTERFACE_LINK_LIBRARIES "${arg_LINK}")
endfunction()

"""

CONFIG_VERSION = """set(PACKAGE_VERSION VERSION)
if(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  string(COMPARE EQUAL "${PACKAGE_FIND_VERSION}" "${PACKAGE_VERSION}" PACKAGE_VERSION_EXACT)
endif()
"""

TOOLCHAIN = """# CMake toolchain file: a project finds headers and libraries of all stacks, whichever variables it reads.
get_filename_component(_understudy_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
list(APPEND CMAKE_PREFIX_PATH "${_understudy_root}")
VARIABLES
foreach(_understudy_folder
    FOLDERS)
  include_directories(SYSTEM AFTER "${_understudy_root}/${_understudy_folder}")
endforeach()
foreach(_understudy_folder LIBRARIES)
  foreach(_understudy_kind EXE SHARED MODULE)
    string(APPEND CMAKE_${_understudy_kind}_LINKER_FLAGS_INIT " \\"-L${_understudy_root}/${_understudy_folder}\\"")
  endforeach()
  list(APPEND CMAKE_BUILD_RPATH "${_understudy_root}/${_understudy_folder}")
endforeach()
"""


def set_env(stack: Stack) -> str:
    """Variables and search paths as `understudy env` exports them."""
    root = ROOT / stack.name

    def here(path) -> str:
        return str(path).replace(str(root), "$UNDERSTUDY_ROOT").replace(str(ROOT), "${UNDERSTUDY_ROOT%/*}")

    lines = [f'    export {name}="{here(value)}"' for name, value in toolchain.variables_of(stack, root).items()]
    for name, paths in toolchain.search_paths_of(stack, root).items():
        lines.append(f'    export {name}="{":".join(map(here, paths))}${{{name}:+:${name}}}"')
    return SET_ENV.replace("EXPORTS", "\n".join(lines))


def pkg_config(stack: Stack, version: str) -> str:
    texts = {"STACK": stack.name, "LIBRARY": stack.library, "VERSION": version,
             "INCLUDES": " ".join(f"-I${{prefix}}/{folder}" for folder in stack.include),
             "LINKS": " ".join(f"-l{name}" for name in stack.link)}  # fmt: skip
    result = PKG_CONFIG
    for word, text in texts.items():
        result = result.replace(word, text)
    return result


def cmake_config() -> str:
    calls = [f"_understudy_stack({stack.name} {stack.library} INCLUDE {' '.join(stack.include)} LINK {' '.join(stack.link)})"
             for stack in STACKS.values()]  # fmt: skip
    return CONFIG + "\n".join(calls) + "\n"


def cmake_toolchain() -> str:
    variables = [f'set(ENV{{{name}}} "{value.replace(str(ROOT), "${_understudy_root}")}")' for stack in STACKS.values()
                 for name, value in toolchain.variables_of(stack, ROOT / stack.name).items()]  # fmt: skip
    folders = [f"{stack.name}/{folder}" for stack in STACKS.values() for folder in stack.include] + ["include"]
    libraries = [f"{stack.name}/{stack.library}" for stack in STACKS.values()] + ["lib"]
    text = TOOLCHAIN.replace("VARIABLES", "\n".join(variables)).replace("FOLDERS", " ".join(folders))
    return text.replace("LIBRARIES", " ".join(libraries))


def files(version: str) -> dict[str, str]:
    """Path in the SDK -> text."""
    cmake = "lib/cmake/understudy"
    found = {f"{cmake}/understudy-config.cmake": cmake_config(), f"{cmake}/understudy-toolchain.cmake": cmake_toolchain(),
             f"{cmake}/understudy-config-version.cmake": CONFIG_VERSION.replace("VERSION)", f"{version})", 1)}  # fmt: skip
    for stack in STACKS.values():
        found[f"{stack.name}/set_env.sh"] = set_env(stack)
        found[f"lib/pkgconfig/understudy-{stack.name}.pc"] = pkg_config(stack, version)
    return found


def main() -> None:
    version, folder = sys.argv[1:]
    for path, text in files(version).items():
        file = pathlib.Path(folder) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
