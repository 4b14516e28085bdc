"""libascendcl.so and libacl_rt.so are the same code twice."""

import ctypes
import re
import subprocess

import pytest
from understudy import paths

LIBRARIES = [paths.STACKS["ascend"].library_path / f"lib{name}.so" for name in ("ascendcl", "acl_rt")]


def sizes_of_sections(library) -> dict[str, int]:
    listing = subprocess.run(["readelf", "-SW", library], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"\]\s+(\.\S+)\s+\S+\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)", listing)
    return {name: int(size, 16) for name, size in found}


def writable_objects(library) -> list[str]:
    """Names of variables in writable sections; the C runtime's own excepted."""
    listing = subprocess.run(["nm", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    entries = [line.split()[-2:] for line in listing.splitlines() if len(line.split()) >= 2]
    own_of_c = {"__dso_handle", "__TMC_END__", "_DYNAMIC", "_GLOBAL_OFFSET_TABLE_", "__FRAME_END__"}
    return [name for kind, name in entries
            if kind in "bBdD" and name not in own_of_c and not re.match(r"completed\.\d+$|__.*_array_entry$", name)]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_no_variables_of_its_own(library):
    local_data = [name for name in writable_objects(library) if not name.startswith("_")]
    # Tables of pointers that never change are relocated once and then read-only.
    assert [name for name in local_data if not is_relocated_constant(library, name)] == []
    assert sizes_of_sections(library).get(".tbss", 0) == sizes_of_sections(library).get(".tdata", 0) == 0


def is_relocated_constant(library, name) -> bool:
    listing = subprocess.run(["objdump", "-t", library], check=True, capture_output=True, text=True).stdout
    return any(line.endswith(f" {name}") and ".data.rel.ro" in line for line in listing.splitlines())


def test_both_libraries_share_their_state():
    old, new = (ctypes.CDLL(str(library)) for library in LIBRARIES)
    old.aclGetRecentErrMsg.restype = ctypes.c_char_p
    assert new.aclrtFree(None) == 100000
    assert b"devPtr is NULL" in old.aclGetRecentErrMsg()
    stream = ctypes.c_void_p()
    assert old.aclrtSetDevice(0) == 0
    assert new.aclrtCreateStream(ctypes.byref(stream)) == 0
    assert old.aclrtDestroyStream(stream) == 0
    assert new.aclrtDestroyStream(stream) == 107017
    assert new.aclrtResetDevice(0) == 0
