"""Handles, streams, versions and texts (mcdnn 2, 7.1)."""

from understudy.maca import ffi, lib

from tests.maca.mcdnn_support import handle, ok


def test_versions_agree():
    assert lib.mcdnnGetVersion() == lib.MCDNN_VERSION == 1101
    parts = ffi.new("int[3]")
    for index, kind in enumerate((lib.MAJOR_VERSION, lib.MINOR_VERSION, lib.PATCH_LEVEL)):
        ok(lib.mcdnnGetProperty(kind, parts + index))
    assert list(parts) == [lib.MCDNN_MAJOR, lib.MCDNN_MINOR, lib.MCDNN_PATCHLEVEL] == [1, 1, 1]
    for part in ("Ops", "Cnn"):
        assert getattr(lib, f"mcdnn{part}InferVersionCheck")() == lib.MCDNN_STATUS_SUCCESS
        assert getattr(lib, f"mcdnn{part}TrainVersionCheck")() == lib.MCDNN_STATUS_SUCCESS


def test_the_runtimes_version_is_reported():
    version = ffi.new("int *")
    assert lib.mcRuntimeGetVersion(version) == 0
    assert lib.mcdnnGetCudartVersion() == version[0]


def test_every_status_has_its_name():
    for code, name in ffi.typeof("mcdnnStatus_t").elements.items():
        assert ffi.string(lib.mcdnnGetErrorString(code)).decode() == name
    for code in (15, 1000, 2**31 - 1):
        assert ffi.string(lib.mcdnnGetErrorString(code)) == b"unknown mcDNN status"


def test_the_stream_is_kept_as_given():
    stream, found = ffi.new("mcStream_t *"), ffi.new("mcStream_t *")
    ok(lib.mcdnnGetStream(handle(), found))
    assert found[0] == ffi.NULL
    assert lib.mcStreamCreate(stream) == 0
    legacy, per_thread = (ffi.cast("mcStream_t", number) for number in (1, 2))
    for wanted in (stream[0], legacy, per_thread, ffi.NULL):
        ok(lib.mcdnnSetStream(handle(), wanted))
        ok(lib.mcdnnGetStream(handle(), found))
        assert found[0] == wanted
    assert lib.mcStreamDestroy(stream[0]) == 0


def test_dead_and_foreign_handles_are_refused():
    dead, tensor = ffi.new("mcdnnHandle_t *"), ffi.new("mcdnnTensorDescriptor_t *")
    ok(lib.mcdnnCreate(dead))
    ok(lib.mcdnnDestroy(dead[0]))
    ok(lib.mcdnnCreateTensorDescriptor(tensor))
    for wrong in (ffi.NULL, dead[0], ffi.cast("mcdnnHandle_t", tensor[0]), ffi.cast("mcdnnHandle_t", 64)):
        assert lib.mcdnnDestroy(wrong) == lib.MCDNN_STATUS_BAD_PARAM
        assert lib.mcdnnSetStream(wrong, ffi.NULL) == lib.MCDNN_STATUS_BAD_PARAM
    ok(lib.mcdnnDestroyTensorDescriptor(tensor[0]))
