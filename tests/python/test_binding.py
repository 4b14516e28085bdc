"""The raw ABI from Python: several libraries behind one object, last errors, exceptions, other libraries."""

import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import threading

import pytest

import understudy
from understudy import ascend, errors, ftdsp, maca, paths
from understudy.binding import Libraries
from understudy.kit import names, sdk

STACK_MODULES = {"ascend": ascend, "maca": maca, "ftdsp": ftdsp}


@pytest.mark.parametrize("name", ["understudy", *(f"understudy.{stack}" for stack in STACK_MODULES)])
def test_import_in_a_fresh_process(name):
    subprocess.run([sys.executable, "-c", f"import {name}"], check=True)


def test_what_was_built_may_lie_apart_from_the_sources(tmp_path):
    """`pip install -e .` leaves the Python files where they are: the package has two folders."""
    sources = tmp_path / "understudy"
    sources.mkdir()
    built = pathlib.Path(understudy.__path__[0])
    for file in built.iterdir():
        if file.name not in ("sdk", "examples_c", "abi", "suite"):
            (sources / file.name).symlink_to(file)
    script = f"""
import understudy
assert understudy.__path__ == [{str(sources)!r}]
understudy.__path__.append({str(built)!r})
from understudy import ascend, demo, paths
from understudy.kit import conform, surface
ascend.ops.add([1.0], [2.0])
assert paths.sdk().is_dir() and paths.examples().is_dir() and conform.SUITE.is_dir() and surface.FOLDER.is_dir()
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    environment.pop("UNDERSTUDY_SDK", None)
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_all_stacks_in_one_process_share_libunderstudy():
    script = """
from understudy import ascend, ftdsp, maca
maps = {line.split()[-1] for line in open("/proc/self/maps") if "libunderstudy.so" in line}
assert len(maps) == 1, maps
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("stack", STACK_MODULES)
def test_every_prototype_of_the_headers_is_found(stack):
    lib = STACK_MODULES[stack].lib
    missing = []
    for name in dir(lib):
        try:
            getattr(lib, name)
        except AttributeError:
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize("stack", STACK_MODULES)
def test_an_unknown_name_is_an_attribute_error(stack):
    with pytest.raises(AttributeError, match="noSuchFunction"):
        STACK_MODULES[stack].lib.noSuchFunction


def test_a_name_that_the_vendor_has_is_told_from_a_typing_error():
    absent = next(name for name, entry in names.known().items() if entry.stack == "maca" and name not in sdk.exporters())
    with pytest.raises(AttributeError, match=f"{absent} is not emulated; the vendor has it"):
        getattr(maca.lib, absent)
    with pytest.raises(AttributeError, match="did you mean mcMalloc?"):
        maca.lib.mcMaloc
    with pytest.raises(AttributeError, match="did you mean MCDNN_DATA_FLOAT?"):
        maca.lib.MCDNN_DATA_FLAOT


def test_constants_come_from_the_headers():
    assert ascend.lib.ACL_ERROR_INVALID_PARAM == 100000
    assert maca.lib.MCDNN_STATUS_BAD_PARAM == 3
    assert maca.lib.mcErrorInvalidDevice == 101


def test_a_refusal_is_an_exception_with_everything():
    with pytest.raises(errors.StatusError) as caught:
        maca.call("mcdnnCreateTensorDescriptor", maca.ffi.NULL)
    error = caught.value
    assert (error.function, error.name, error.code) == ("mcdnnCreateTensorDescriptor", "MCDNN_STATUS_BAD_PARAM", 3)
    assert error.rule.startswith("mcdnnCreateTensorDescriptor/") and error.text
    assert maca.last_error() == (error.code, error.rule, error.text)
    assert str(error) == f"mcdnnCreateTensorDescriptor: MCDNN_STATUS_BAD_PARAM (3): {error.text} [{error.rule}]"
    again = pickle.loads(pickle.dumps(error))
    assert vars(again) == vars(error) and str(again) == str(error) and type(again) is errors.StatusError


def test_statuses_of_operators_have_the_vendors_names():
    size, executor = ascend.ffi.new("uint64_t *"), ascend.ffi.new("aclOpExecutor **")
    null = ascend.ffi.NULL
    with pytest.raises(errors.StatusError) as caught:
        ascend.call("aclnnSoftMarginLossGetWorkspaceSize", null, null, 0, null, size, executor)
    assert (caught.value.name, caught.value.code) == ("ACLNN_ERR_PARAM_NULLPTR", 161001)
    assert str(caught.value).startswith("aclnnSoftMarginLossGetWorkspaceSize: ACLNN_ERR_PARAM_NULLPTR (161001): ")
    assert ascend._binding.status_name("aclnnSoftMarginLoss", 161002) == "ACLNN_ERR_PARAM_INVALID"
    assert ascend._binding.status_name("aclnnSoftMarginLoss", 999) == "999"


@pytest.mark.parametrize("function, argument, name, code", [
    ("aclrtSetDevice", 1000, "ACL_ERROR_RT_INVALID_DEVICEID", 107001),
    ("aclrtFree", None, "ACL_ERROR_INVALID_PARAM", 100000),
])  # fmt: skip
def test_status_names_of_ascend(function, argument, name, code):
    with pytest.raises(errors.StatusError) as caught:
        ascend.call(function, ascend.ffi.NULL if argument is None else argument)
    assert (caught.value.name, caught.value.code) == (name, code)


def test_last_error_belongs_to_the_thread():
    with pytest.raises(errors.StatusError):
        maca.call("mcSetDevice", -1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(maca.last_error()))
    thread.start()
    thread.join()
    assert maca.last_error().status == maca.lib.mcErrorInvalidDevice
    assert seen == [(0, "", "")]


def test_another_library_of_the_same_abi(tmp_path):
    source = tmp_path / "other.c"
    source.write_text("int mcdnnGetVersion(void) { return 4242; }\nint mcdnnCreate(void **h) { *h = 0; return 9; }\n")
    library = tmp_path / "libother.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", source, "-o", library], check=True)
    ours = maca.lib.mcdnnGetVersion()
    handle = maca.ffi.new("mcdnnHandle_t *")
    try:
        maca.load(str(library))
        assert maca.lib.mcdnnGetVersion() == 4242
        with pytest.raises(AttributeError):
            maca.lib.mcMalloc
        with pytest.raises(errors.StatusError) as caught:
            maca.call("mcdnnCreate", handle)
        assert (caught.value.name, caught.value.rule, caught.value.text) == ("MCDNN_STATUS_NOT_SUPPORTED", "", "")
        assert str(caught.value) == "mcdnnCreate: MCDNN_STATUS_NOT_SUPPORTED (9)"
    finally:
        maca.load()
    assert maca.lib.mcdnnGetVersion() == ours


def test_a_library_that_is_not_there(tmp_path):
    with pytest.raises(errors.SdkError, match="cannot load a library: .*nothing.so"):
        Libraries(maca.ffi, [tmp_path / "nothing.so"])


def test_sdk_override(tmp_path):
    script = "from understudy import paths; print(paths.sdk())"
    copy = tmp_path / "copy"
    shutil.copytree(paths.sdk(), copy, symlinks=True)
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "UNDERSTUDY_SDK": str(copy)},
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout.strip() == str(copy)
    use = "from understudy import maca; assert any('copy' in line for line in open('/proc/self/maps'))"
    subprocess.run([sys.executable, "-c", use], env={**os.environ, "UNDERSTUDY_SDK": str(copy)}, check=True)
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "UNDERSTUDY_SDK": "/nowhere"},
                          capture_output=True, text=True)  # fmt: skip
    assert "no SDK folder at /nowhere (from UNDERSTUDY_SDK)" in done.stderr


@pytest.mark.parametrize("stack", STACK_MODULES)
def test_sdk_trees_have_the_vendors_shape(stack):
    tree = paths.STACKS[stack]
    assert all(folder.is_dir() for folder in tree.include_paths)
    assert all(library.is_file() for library in tree.libraries)
    assert list((tree.root / "include").rglob("*.h"))
