"""Start, end, last error, versions (cann-runtime 8 and 9). Initialisation is the process's: its cases run alone."""

from __future__ import annotations

import os
import pathlib
import tempfile

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, Out, case, ok
from tests.conformance.harness import Result, check_rule


def init_with(text: bytes) -> int:
    """aclInit with a configuration file of this content; the process is finalised again."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(text)
        file.flush()
        status = lib.aclInit(os.fsencode(file.name))
    if status == 0:
        ok(lib.aclFinalize())
    return status


def init_twice(first, second) -> int:
    ok(lib.aclInit(first))
    status = lib.aclInit(second)
    ok(lib.aclFinalize())
    return status


def init_after_finalize() -> int:
    ok(lib.aclInit(ffi.NULL))
    ok(lib.aclFinalize())
    status = lib.aclInit(ffi.NULL)
    ok(lib.aclFinalize())
    return status


def init_with_another_file() -> int:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(b"{}")
        file.flush()
        return init_twice(ffi.NULL, os.fsencode(file.name))


def finalize_twice() -> int:
    ok(lib.aclInit(ffi.NULL))
    ok(lib.aclFinalize())
    return lib.aclFinalize()


LARGEST_FILE = b'{"a": "' + b"x" * (10 * 1024 * 1024 - 9) + b'"}'

def finalize_once_too_often() -> int:
    ok(lib.aclInit(ffi.NULL))
    ok(lib.aclFinalizeReference(ffi.NULL))
    return lib.aclFinalizeReference(ffi.NULL)


def init_and_finalize_reference() -> int:
    ok(lib.aclInit(ffi.NULL))
    return lib.aclFinalizeReference(ffi.NULL)


# ---- versions ----


def runtime_version(skip: int | None = None):
    cells = [Out("int32_t") for _ in range(3)]
    status = lib.aclrtGetVersion(*[ffi.NULL if index == skip else cell.cell for index, cell in enumerate(cells)])
    return Result(status, all(cell.bytes() == cell.before for cell in cells))


# The library reads the environment when it is loaded: what needs an installation runs in a child that is given one.
FOLDER = tempfile.TemporaryDirectory(prefix="understudy-")
INSTALLED = {"ASCEND_HOME_PATH": FOLDER.name}


def install(text: str = "Version=8.5.0\n") -> None:
    """Gives the packages toolkit and ops_nn of this process's installation version files with this text."""
    for package in ("toolkit", "ops_nn"):
        folder = pathlib.Path(os.environ["ASCEND_HOME_PATH"], "share/info", package)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "version.info").write_text(text)


def package_version(out: bool = True, package: int = 0):
    version = Out("aclCANNPackageVersion")
    return version.result(lib.aclsysGetCANNVersion(package, version.cell if out else ffi.NULL))


def version_text(out: bool = True, package=b"ops_nn"):
    version = Out("aclCANNPackageVersion")  # large enough
    name = ffi.NULL if package is None else ffi.new("char[]", package)
    return version.result(lib.aclsysGetVersionStr(name, ffi.cast("char *", version.cell) if out else ffi.NULL))


def version_number(out: bool = True, package=b"ops_nn"):
    version = Out("int32_t")
    name = ffi.NULL if package is None else ffi.new("char[]", package)
    return version.result(lib.aclsysGetVersionNum(name, version.cell if out else ffi.NULL))


def with_installation(function, text: str = "Version=8.5.0\n", **arguments):
    def call():
        install(text)
        return function(**arguments)

    return call


def version_case(rule: str, function, breaking: dict, neighbour: dict | None = None):
    return case(rule, with_installation(function, **breaking), with_installation(function, **(neighbour or {})), INSTALLED)


def version_cases(name: str, function):
    yield version_case(f"{name}/package/missing", function, {"text": "version=8.5.0\n"})


RULES = [
    case("aclInit/runtime/repeated", lambda: init_twice(ffi.NULL, ffi.NULL), init_after_finalize, ALONE),
    case("aclInit/configPath/missing", lambda: lib.aclInit(b"/nowhere/acl.json"), lambda: init_with(b"{}"), ALONE),
    case("aclInit/configPath/size", lambda: init_with(LARGEST_FILE + b" "), lambda: init_with(LARGEST_FILE), ALONE),
    case("aclInit/configPath/json", lambda: init_with(b'{"dump": [1, 2}'), lambda: init_with(b'{"dump": [1, 2]}'),
         ALONE),
    case("aclInit/configPath/changed", init_with_another_file, lambda: init_with(b"{}"), ALONE),
    case("aclInit/configPath/default-device",
         lambda: init_with(b'{"defaultDevice": {"default_device": "first"}}'),
         lambda: init_with(b'{"defaultDevice": {"default_device": "0"}}'), ALONE),
    case("aclInit/configPath/message-mode", lambda: init_with(b'{"err_msg_mode": "2"}'),
         lambda: init_with(b'{"err_msg_mode": "1"}'), ALONE),
    case("aclFinalize/runtime/repeated", finalize_twice, init_after_finalize, ALONE),
    case("aclFinalizeReference/runtime/repeated", finalize_once_too_often, init_and_finalize_reference, ALONE),
    *[case(f"aclrtGetVersion/{name}/null", lambda index=index: runtime_version(index), runtime_version)
      for index, name in enumerate(("majorVersion", "minorVersion", "patchVersion"))],
    version_case("aclsysGetCANNVersion/version/null", package_version, {"out": False}),
    version_case("aclsysGetCANNVersion/name/range", package_version, {"package": 8}, {"package": 4}),
    *version_cases("aclsysGetCANNVersion", package_version),
    version_case("aclsysGetVersionStr/pkgName/null", version_text, {"package": None}),
    version_case("aclsysGetVersionStr/versionStr/null", version_text, {"out": False}),
    *version_cases("aclsysGetVersionStr", version_text),
    version_case("aclsysGetVersionNum/pkgName/null", version_number, {"package": None}),
    version_case("aclsysGetVersionNum/versionNum/null", version_number, {"out": False}),
    *version_cases("aclsysGetVersionNum", version_number),
    version_case("aclsysGetVersionNum/package/version", version_number, {"text": "Version=8.5.RC1\n"},
                 {"text": "Version=8.5.0-rc.1\n"}),
    case("aclrtPeekAtLastError/level/range", lambda: lib.aclrtPeekAtLastError(1),
         lambda: (lib.aclrtGetLastError(0), lib.aclrtPeekAtLastError(0))[1]),
    case("aclrtGetLastError/level/range", lambda: lib.aclrtGetLastError(2),
         lambda: (lib.aclrtGetLastError(0), lib.aclrtGetLastError(0))[1]),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
