"""Functions that are declared so that programs link, and refuse whatever they are given: each says why."""

import ctypes

import pytest
from understudy import paths
from understudy.kit import catalogue

# An operator's first function looks at its arguments before it refuses them: its own test has it.
REFUSED = {name: rule for name, rule in catalogue.refused_functions().items()
           if catalogue.stack_of_library()[rule.library] == "ascend" and not name.startswith("aclnn")}  # fmt: skip


@pytest.fixture(scope="module")
def core():
    library = ctypes.CDLL(str(paths.sdk() / "lib" / "libunderstudy.so"))
    for name in ("understudy_last_rule", "understudy_last_error"):
        getattr(library, name).restype = ctypes.c_char_p
    return library


def test_there_are_such_functions():
    assert {"aclopExecute", "rtKernelLaunch", "MsprofReportApi", "aclrtBinaryLoadFromData"} <= REFUSED.keys()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_it_refuses_and_says_its_name(core, name):
    rule = REFUSED[name]
    library = ctypes.CDLL(str(paths.STACKS["ascend"].library_path / rule.library))
    core.understudy_clear_last_error()
    status = getattr(library, name)(*[ctypes.c_void_p(0)] * 16)  # no function has more parameters
    assert core.understudy_last_rule().decode() == rule.id
    assert core.understudy_last_error().decode().startswith(f"{name} is not emulated: ")
    assert core.understudy_last_status() == rule.status
    assert status in (rule.status, 0)  # 0: NULL, or nothing at all, where a function has no status
