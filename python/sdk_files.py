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
    return 1
fi
EXPORTS
unset UNDERSTUDY_ROOT
"""

# One -Wl: pkgconf 1.8 escapes no blanks of a folder once there is another, such as one with --pop-state.
PKG_CONFIG = """prefix=${pcfiledir}/../../STACK
libdir=${prefix}/LIBRARY
sdk=${pcfiledir}/../..

Name: understudy-STACK
Description: the STACK stack on a plain CPU
Version: VERSION
Cflags: INCLUDES
Libs: -L${libdir} -L${sdk}/lib -Wl,--as-needed,-rpath,${libdir},-rpath,${sdk}/lib LINKS
"""

CONFIG = """# find_package(understudy) gives the targets understudy::ascend, understudy::maca and understudy::ftdsp, and
# understudy::understudy, which they need, for <understudy/understudy.h>.
get_filename_component(_understudy_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

function(_understudy_target name library_folder)
  cmake_parse_arguments(arg "" "" "INCLUDE;LINK;NEEDS" ${ARGN})
  if(TARGET understudy::${name})
    return()
  endif()
  list(TRANSFORM arg_INCLUDE PREPEND "${_understudy_root}/")
  set(folder "${_understudy_root}/${library_folder}")
  list(TRANSFORM arg_LINK PREPEND "${folder}/lib")
  list(TRANSFORM arg_LINK APPEND ".so")
  add_library(understudy::${name} INTERFACE IMPORTED)
  set_target_properties(understudy::${name} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${arg_INCLUDE}"
    INTERFACE_LINK_OPTIONS "LINKER:--as-needed;LINKER:-rpath,${folder}"
    INTERFACE_LINK_LIBRARIES "${arg_LINK};${arg_NEEDS}")
  # Also as options: folders that were in C_INCLUDE_PATH when CMake first ran count as the compiler's own, and it leaves them
  # out of the commands. A build without that variable would not find the headers.
  list(TRANSFORM arg_INCLUDE REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:C,CXX>:-isystem\\\\1>")
  set_property(TARGET understudy::${name} PROPERTY INTERFACE_COMPILE_OPTIONS "${arg_INCLUDE}")
endfunction()

"""

COMPONENTS = """
foreach(component IN LISTS understudy_FIND_COMPONENTS)
  if(TARGET understudy::${component})
    set(understudy_${component}_FOUND TRUE)
  else()
    set(understudy_${component}_FOUND FALSE)
    if(understudy_FIND_REQUIRED_${component})
      set(understudy_FOUND FALSE)
      set(understudy_NOT_FOUND_MESSAGE "understudy has no component ${component}")
    endif()
  endif()
endforeach()
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
  list(APPEND CMAKE_INCLUDE_PATH "${_understudy_root}/${_understudy_folder}") # of find_path
  include_directories(SYSTEM AFTER "${_understudy_root}/${_understudy_folder}")
  # Also as an option: what is in C_INCLUDE_PATH now counts as the compiler's own, and CMake leaves it out of the commands. A
  # build without that variable would not find the headers.
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-isystem${_understudy_root}/${_understudy_folder}>")
endforeach()
foreach(_understudy_folder LIBRARIES)
  list(APPEND CMAKE_LIBRARY_PATH "${_understudy_root}/${_understudy_folder}") # of find_library
  set(_understudy_folder "\\"${_understudy_root}/${_understudy_folder}\\"")
  foreach(_understudy_kind EXE SHARED MODULE)
    # -Wl,…, as CMAKE_BUILD_RPATH becomes, would split a path at its commas.
    string(APPEND CMAKE_${_understudy_kind}_LINKER_FLAGS_INIT
      " -L${_understudy_folder} -Xlinker -rpath -Xlinker ${_understudy_folder}")
  endforeach()
endforeach()
"""


def set_env(stack: Stack) -> str:
    """Variables and search paths as `understudy env` exports them."""
    root = ROOT / stack.name

    def here(path) -> str:
        return str(path).replace(str(root), "$UNDERSTUDY_ROOT").replace(str(ROOT), "${UNDERSTUDY_ROOT%/*}")

    lines = [f'export {name}="{here(value)}"' for name, value in toolchain.variables_of(stack, root).items()]
    for name, paths in toolchain.search_paths_of(stack, root).items():
        lines.append(f'export {name}="{":".join(map(here, paths))}${{{name}:+:${name}}}"')
    return SET_ENV.replace("EXPORTS", "\n".join(lines))


def pkg_config(stack: Stack, version: str) -> str:
    includes = [*(f"${{prefix}}/{folder}" for folder in stack.include), "${sdk}/include"]
    texts = {"STACK": stack.name, "LIBRARY": stack.library, "VERSION": version,
             "INCLUDES": " ".join(f"-I{folder}" for folder in includes),
             "LINKS": " ".join(f"-l{name}" for name in (*stack.link, "understudy"))}  # fmt: skip
    result = PKG_CONFIG
    for word, text in texts.items():
        result = result.replace(word, text)
    return result


def cmake_config() -> str:
    calls = ["_understudy_target(understudy lib INCLUDE include LINK understudy)"]
    for stack in STACKS.values():
        includes = " ".join(f"{stack.name}/{folder}" for folder in stack.include)
        calls.append(f"_understudy_target({stack.name} {stack.name}/{stack.library} INCLUDE {includes} "
                     f"LINK {' '.join(stack.link)} NEEDS understudy::understudy)")  # fmt: skip
    return CONFIG + "\n".join([*calls, COMPONENTS])


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
