"""Algorithm descriptors, measurements, saved algorithms, and the callback (mcdnn 3, 5.1)."""

import os
import threading

import pytest

from understudy.maca import ffi, lib

from tests.conformance.maca.mcdnn_cases import fresh
from tests.maca.mcdnn_support import handle, ok


def new():
    return fresh("mcdnnAlgorithmDescriptor_t", "Algorithm")


def set_algorithm(descriptor, number):
    """The algorithm is a structure around one enumerator, which cffi cannot pass by value: it travels as an int."""
    function = ffi.cast("mcdnnStatus_t (*)(mcdnnAlgorithmDescriptor_t, int)", lib.mcdnnSetAlgorithmDescriptor)
    return int(function(descriptor, number))


def held(descriptor):
    found = ffi.new("mcdnnAlgorithm_t *")
    ok(lib.mcdnnGetAlgorithmDescriptor(descriptor, found))
    return found.algo.convBwdFilterAlgo


def test_descriptors_are_copied_saved_and_restored():
    source, copy, restored = new(), new(), new()
    ok(set_algorithm(source, 5))
    ok(lib.mcdnnCopyAlgorithmDescriptor(source, copy))
    size = ffi.new("size_t *")
    ok(lib.mcdnnGetAlgorithmSpaceSize(handle(), copy, size))
    space = ffi.new("unsigned char[]", size[0] + 1)
    space[size[0]] = 77
    ok(lib.mcdnnSaveAlgorithm(handle(), copy, space, size[0]))
    ok(set_algorithm(source, 3))
    ok(lib.mcdnnRestoreAlgorithm(handle(), space, size[0], restored))
    assert (held(source), held(copy), held(restored), space[size[0]]) == (3, 5, 5, 77)


def test_measurements_report_what_they_hold():
    made, descriptor = ffi.new("mcdnnAlgorithmPerformance_t[]", 3), new()
    ok(lib.mcdnnCreateAlgorithmPerformance(made, 3))
    assert len({int(ffi.cast("uintptr_t", one)) for one in made}) == 3
    ok(lib.mcdnnSetAlgorithmPerformance(made[1], descriptor, lib.MCDNN_STATUS_NOT_SUPPORTED, 0.25, 1 << 40))
    found, status, time, memory = (ffi.new(f"{kind} *") for kind in (
        "mcdnnAlgorithmDescriptor_t", "mcdnnStatus_t", "float", "size_t"))
    ok(lib.mcdnnGetAlgorithmPerformance(made[1], found, status, time, memory))
    assert (found[0], status[0], time[0], memory[0]) == (descriptor, lib.MCDNN_STATUS_NOT_SUPPORTED, 0.25, 1 << 40)
    ok(lib.mcdnnGetAlgorithmPerformance(made[0], found, status, time, memory))
    assert (found[0], status[0], time[0], memory[0]) == (ffi.NULL, 0, 0.0, 0)
    ok(lib.mcdnnDestroyAlgorithmPerformance(made, 3))


@pytest.fixture
def messages():
    heard = []

    @ffi.callback("void (mcdnnSeverity_t, void *, const mcdnnDebug_t *, const char *)")
    def listen(severity, data, facts, text):
        heard.append((int(severity), data, facts.mcdnn_version, int(facts.mcdnnStatus), facts.pid, facts.tid,
                      ffi.string(text).decode()))
        lib.mcdnnDestroy(ffi.NULL)  # refused as well: not reported again

    yield heard, listen
    ok(lib.mcdnnSetCallback(0, ffi.NULL, ffi.NULL))


def test_the_callback_hears_of_refused_calls(messages):
    heard, listen = messages
    data = ffi.new("int *")
    ok(lib.mcdnnSetCallback(lib.MCDNN_SEV_ERROR_EN, data, listen))
    mask, udata, function = ffi.new("unsigned *"), ffi.new("void **"), ffi.new("mcdnnCallback_t *")
    ok(lib.mcdnnGetCallback(mask, udata, function))
    assert (mask[0], udata[0], function[0]) == (lib.MCDNN_SEV_ERROR_EN, data, listen)
    assert heard == []
    assert lib.mcdnnSetStream(ffi.NULL, ffi.NULL) == lib.MCDNN_STATUS_BAD_PARAM
    severity, found, version, status, pid, tid, text = heard.pop()
    assert (severity, found, version, status) == (lib.MCDNN_SEV_ERROR, data, 1101, lib.MCDNN_STATUS_BAD_PARAM)
    assert (pid, tid) == (os.getpid(), threading.get_native_id())
    assert text.startswith("mcdnnSetStream: ") and "handle" in text
    assert heard == []


@pytest.mark.parametrize("mask", ["none", "others"])
def test_the_mask_and_other_libraries_are_quiet(messages, mask):
    heard, listen = messages
    ok(lib.mcdnnSetCallback(lib.MCDNN_SEV_ERROR_EN, ffi.NULL, listen))
    assert lib.mcFree(ffi.cast("void *", 64)) != 0
    others = lib.MCDNN_SEV_WARNING_EN | lib.MCDNN_SEV_INFO_EN
    ok(lib.mcdnnSetCallback(0 if mask == "none" else others, ffi.NULL, listen))
    assert lib.mcdnnDestroy(ffi.NULL) == lib.MCDNN_STATUS_BAD_PARAM
    assert heard == []
    ok(lib.mcdnnSetCallback(lib.MCDNN_SEV_ERROR_EN, ffi.NULL, ffi.NULL))
    assert lib.mcdnnDestroy(ffi.NULL) == lib.MCDNN_STATUS_BAD_PARAM
