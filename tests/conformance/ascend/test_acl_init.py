"""aclInit, aclFinalize, last error (cann-runtime 8 and 9). Cases run in children: initialisation is the process's."""

import os
import tempfile

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import ALONE, case, ok
from tests.conformance.harness import check_rule


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
    case("aclFinalize/runtime/repeated", finalize_twice, init_after_finalize, ALONE),
    case("aclrtPeekAtLastError/level/range", lambda: lib.aclrtPeekAtLastError(1),
         lambda: (lib.aclrtGetLastError(0), lib.aclrtPeekAtLastError(0))[1]),
    case("aclrtGetLastError/level/range", lambda: lib.aclrtGetLastError(2),
         lambda: (lib.aclrtGetLastError(0), lib.aclrtGetLastError(0))[1]),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
