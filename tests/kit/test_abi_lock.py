"""The ABI of a version is written down once: headers that say otherwise need another version."""

import json

import pytest

from tests.kit.support import understudy, understudy_json
from tests.native import ROOT
from tests.test_exports import LIBRARIES, library_path
from understudy import __version__
from understudy.kit import surface

LOCKS = sorted((ROOT / "abi").glob("*.json"))


def test_the_headers_are_what_the_lock_says():
    file = ROOT / "abi" / f"{__version__}.json"
    assert file.exists(), "write it: understudy abi --write-lock, and install again"
    changes = surface.differences(json.loads(file.read_text()), surface.current())
    assert changes == [], (
        f"the ABI of {__version__} was another: raise the version in python/understudy/__init__.py, install, "
        "run `understudy abi --write-lock`, and install again (if this version was never published: delete its lock instead of "
        "raising it)"
    )
    assert file.read_text() == surface.text(surface.current())


def test_the_libraries_have_the_version_of_the_package():
    from understudy import maca

    assert maca.ffi.string(maca.lib.understudy_version()).decode() == __version__


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: file.stem)
def test_locks_are_shipped_and_named_by_their_version(file):
    assert json.loads(file.read_text())["version"] == file.stem
    assert surface.locked(file.stem) == json.loads(file.read_text())


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_can_be_compared_with_a_lock(name):
    report, status = understudy_json("abi", library_path(name), "--against", __version__)
    assert status == 0 and report["version"] == __version__


def test_the_lock_says_what_a_call_needs():
    lock = surface.locked(__version__)
    maca = lock["stacks"]["maca"]
    assert maca["functions"]["mcMalloc"] == "enum mcError_t(void**, uint64)"
    assert maca["constants"]["MCDNN_STATUS_BAD_PARAM"] == 3
    assert maca["structures"]["mcDeviceArch_t"] == {"size": 4, "alignment": 4, "fields": ["0 reserved: uint32"]}
    assert lock["stacks"]["ascend"]["types"]["aclrtStream"] == "void*"
    assert "mcMalloc" in lock["libraries"]["libmcruntime.so"]["functions"]


def change(lock, *path, value=None):
    """The lock with one entry changed, or removed when there is no value."""
    changed = json.loads(json.dumps(lock))
    place = changed
    for key in path[:-1]:
        place = place[key]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


def test_every_kind_of_change_is_seen():
    lock = surface.locked(__version__)
    changes = [
        ("stacks", "maca", "functions", "mcMalloc", "enum mcError_t(void**, uint32)"),
        ("stacks", "maca", "constants", "MCDNN_STATUS_BAD_PARAM", 4),
        ("stacks", "maca", "constants", "MCDNN_STATUS_BAD_PARAM", None),
        ("stacks", "maca", "structures", "mcDeviceArch_t", {"size": 8, "alignment": 4, "fields": ["4 reserved: uint32"]}),
        ("stacks", "ascend", "types", "aclrtStream", "int32"),
        ("libraries", "libmcruntime.so", "functions", ["mcFree"]),
    ]
    for *path, value in changes:
        lines = surface.differences(change(lock, *path, value=value), lock)
        name = "libmcruntime.so: mcMalloc is new" if path[0] == "libraries" else path[-1]
        assert lines and any(name in line for line in lines), path
    assert surface.differences(lock, json.loads(json.dumps(lock))) == []


def test_a_lock_of_this_version_is_not_overwritten():
    done = understudy("abi", "--write-lock", ROOT / "abi")
    assert done.returncode == 0, "it is what the headers say, so nothing changes"
