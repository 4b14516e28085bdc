"""Settings of collective communication (torch-npu-client 3).

The value is a union that is passed by itself, which cffi cannot do: these calls go through ctypes.
"""

import ctypes
import functools

import pytest
from understudy import paths

from tests.conformance.ascend.acl_support import case
from tests.conformance.harness import Result, check_rule


class Value(ctypes.Union):
    _fields_ = [("value", ctypes.c_int32)]


@functools.cache
def library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(paths.STACKS["ascend"].library_path / "libhccl.so"))
    found.HcclSetConfig.argtypes = [ctypes.c_int, ctypes.c_int32]  # in a register, like the union of one integer
    found.HcclGetConfig.argtypes = [ctypes.c_int, ctypes.POINTER(Value)]
    return found


def set_config(config: int = 0, value: int = 0) -> int:
    return library().HcclSetConfig(config, value)


def get_config(config: int = 0, null: bool = False) -> Result:
    out = Value(0x5A5A5A5A)
    status = library().HcclGetConfig(config, None if null else ctypes.byref(out))
    return Result(status, out.value == 0x5A5A5A5A)


RULES = [
    case("HcclSetConfig/config/unsupported", lambda: set_config(1), lambda: set_config(0)),
    case("HcclSetConfig/configValue/range", lambda: set_config(value=2), lambda: set_config(value=1)),
    case("HcclGetConfig/config/unsupported", lambda: get_config(1), lambda: get_config(0).status),
    case("HcclGetConfig/configValue/null", lambda: get_config(null=True), lambda: get_config().status),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)


def test_what_is_set_is_read_back():
    for value in (1, 0):
        assert set_config(value=value) == 0
        out = Value(7)
        assert library().HcclGetConfig(0, ctypes.byref(out)) == 0 and out.value == value
