"""Functions that are declared so that programs link, and refuse whatever they are given: each says why."""

import pytest

from tests.conformance.harness import last_rule, last_text
from understudy.kit import catalogue
from understudy.kit.prototypes import prototype
from understudy.maca import ffi, lib

REFUSED = {name: rule for name, rule in catalogue.refused_functions().items()
           if catalogue.stack_of_library()[rule.library] == "maca"}  # fmt: skip


def test_there_are_such_functions():
    assert REFUSED.keys() == {"mcdnnGetFoldedConvBackwardDataDescriptors", "mcdnnMakeFusedOpsPlan", "mcdnnFusedOpsExecute"}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_it_refuses_and_writes_nothing(name):
    size = ffi.new("size_t *", 77)
    given = [size if parameter.name == "workspaceSizeInBytes" else ffi.NULL if parameter.is_pointer else 0
             for parameter in prototype("maca", name).parameters]
    assert getattr(lib, name)(*given) == lib.MCDNN_STATUS_NOT_SUPPORTED
    assert last_rule() == REFUSED[name].id
    assert last_text().endswith("are not emulated")
    assert size[0] == 77
