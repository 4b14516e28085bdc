"""What a handle of mcBLAS keeps, and what the library says about itself (mcblas 3, 4)."""

import pytest

from understudy.maca import ffi, last_error, lib

from tests.maca import runtime_support as rt
from tests.maca.runtime_support import made, ok

# Setting -> type, what a new handle has, and what else it may be: the order of the test.
SETTINGS = {
    "PointerMode": ("mcblasPointerMode_t", 0, (1, 0)),
    "AtomicsMode": ("mcblasAtomicsMode_t", 0, (1, 0)),
    "MathMode": ("mcblasMath_t", 0, (1, 2, 3, 16, 17, 19, 0)),
    "SmCountTarget": ("int", 0, (8, 0)),
}


@pytest.fixture
def handle():
    new = made("mcblasHandle_t", lib.mcblasCreate)
    yield new
    ok(lib.mcblasDestroy(new))


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_handle_keeps_its_settings(handle, setting):
    kind, first, others = SETTINGS[setting]
    get, put = getattr(lib, f"mcblasGet{setting}"), getattr(lib, f"mcblasSet{setting}")
    found = ffi.new(f"{kind} *")
    ok(get(handle, found))
    assert found[0] == first
    for value in others:
        ok(put(handle, value))
        ok(get(handle, found))
        assert found[0] == value


def test_a_handle_keeps_its_stream(handle):
    found, stream = ffi.new("mcStream_t *"), rt.stream()
    legacy, per_thread = (ffi.cast("mcStream_t", number) for number in (1, 2))
    for wanted in (ffi.NULL, stream, legacy, per_thread, ffi.NULL):
        ok(lib.mcblasSetStream(handle, wanted))
        ok(lib.mcblasGetStream(handle, found))
        assert found[0] == wanted
    ok(lib.mcStreamDestroy(stream))


def test_versions_agree(handle):
    version, part = ffi.new("int *"), ffi.new("int *")
    ok(lib.mcblasGetVersion(handle, version))
    parts = []
    for kind in (lib.MAJOR_VERSION, lib.MINOR_VERSION, lib.PATCH_LEVEL):
        ok(lib.mcblasGetProperty(kind, part))
        parts.append(part[0])
    assert parts == [lib.MCBLAS_VER_MAJOR, lib.MCBLAS_VER_MINOR, 0] == [1, 0, 0]
    assert version[0] == 10000


@pytest.mark.parametrize("prefix", ["mcblas", "mcblasLt"])
def test_every_status_has_its_name_and_a_text(prefix):
    name, text = getattr(lib, f"{prefix}GetStatusName"), getattr(lib, f"{prefix}GetStatusString")
    known = ffi.typeof("mcblasStatus_t").elements
    assert len({ffi.string(text(code)) for code in known}) == len(known) == 10
    for code, enumerator in known.items():
        assert ffi.string(name(code)).decode() == enumerator
    for code in (2, 17, 2**31 - 1):
        assert ffi.string(name(code)) == ffi.string(text(code)) == b"unknown status"


def test_the_log_is_accepted_and_never_written():
    called = []
    callback = ffi.callback("mcblasLogCallback", called.append)
    found = ffi.new("mcblasLogCallback *")
    ok(lib.mcblasLoggerConfigure(1, 0, 1, ffi.NULL))
    for wanted in (callback, ffi.NULL):
        ok(lib.mcblasSetLoggerCallback(wanted))
        assert lib.mcblasGetStream(ffi.NULL, ffi.NULL) == lib.MCBLAS_STATUS_NOT_INITIALIZED
        ok(lib.mcblasGetLoggerCallback(found))
        assert found[0] == wanted
    assert called == []


def test_the_references_names_of_data_types_are_those_of_the_clients():
    for name in ("R_16F", "C_16F", "R_16BF", "C_16BF", "R_32F", "C_32F", "R_64F", "C_64F", "R_8I", "C_8I", "R_8U", "C_8U",
                 "R_32I", "C_32I"):
        assert getattr(lib, f"MCBLAS_{name}") == getattr(lib, f"MACA_{name}"), name


def test_types_that_do_not_go_together_are_named(handle):
    one = ffi.new("float[16]", [1] * 16)
    arguments = handle, 0, 0, 1, 1, 1, one, one, lib.MACA_R_16F, 1, one, lib.MACA_R_32F, 1, one, one, lib.MACA_R_16BF, 1
    lib.mcblasGemmEx(*arguments, lib.MCBLAS_COMPUTE_32F_FAST_TF32, -1)
    assert last_error().text == ("types MACA_R_16F, MACA_R_32F, MACA_R_16BF of A, B, C do not go together in compute type "
                                 "MCBLAS_COMPUTE_32F_FAST_TF32")
    lib.mcblasSgemmEx(*arguments)
    assert last_error().text == "types MACA_R_16F, MACA_R_32F, MACA_R_16BF of A, B, C do not go together"
    lib.mcblasNrm2Ex(handle, 1, one, lib.MACA_R_32F, 1, one, lib.MACA_R_32F, lib.MACA_R_64F)
    assert last_error().text == "xType is MACA_R_32F, executionType MACA_R_64F: they do not go together"


def test_page_locked_memory_is_the_devices_too():
    """As mcMemcpy and kernels have it (maca-runtime 5); ordinary memory is not."""
    given, back = ffi.new("int[4]", [1, 2, 3, 4]), ffi.new("int[4]")
    pinned, stream = ffi.cast("int *", rt.pinned_memory(64)), rt.stream()
    ok(lib.mcblasSetVector(2, 4, given, 2, pinned, 1))
    assert list(pinned[0:2]) == [1, 3]
    ok(lib.mcblasSetMatrixAsync(2, 2, 4, given, 2, pinned, 3, stream))
    ok(lib.mcStreamSynchronize(stream))
    assert [*pinned[0:2], *pinned[3:5]] == [1, 2, 3, 4]
    ok(lib.mcblasGetMatrix(2, 2, 4, pinned, 3, back, 2))
    assert list(back) == [1, 2, 3, 4]
    ok(lib.mcblasGetVectorAsync(2, 4, pinned + 3, 1, back, 1, stream))
    ok(lib.mcStreamSynchronize(stream))
    assert list(back) == [3, 4, 3, 4]
    assert lib.mcblasSetVector(4, 4, given, 1, back, 1) == lib.MCBLAS_STATUS_MAPPING_ERROR
    assert lib.mcblasGetVector(4, 4, given, 1, back, 1) == lib.MCBLAS_STATUS_MAPPING_ERROR
    ok(lib.mcStreamDestroy(stream))
    ok(lib.mcFreeHost(pinned))
