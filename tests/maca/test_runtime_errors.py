"""Errors: names, texts, and what each thread remembers (maca-runtime 3.1, 5.9, 5.12)."""

import threading

import pytest

from understudy.maca import ffi, last_error, lib

from tests.maca import runtime_support as rt

CODES = ffi.typeof("mcError_t").elements


def name(code):
    return ffi.string(lib.mcGetErrorName(code)).decode()


def refuse():
    """Some call that fails with InvalidValue."""
    assert lib.mcMalloc(ffi.NULL, 1) == lib.mcErrorInvalidValue


@pytest.fixture(autouse=True)
def no_old_error():
    lib.mcGetLastError()


@pytest.mark.parametrize("code", [code for code in CODES if CODES[code] != "mcErrorMax"])
def test_every_code_has_its_name_and_a_text(code):
    assert name(code) == CODES[code]
    assert len(ffi.string(lib.mcGetErrorString(code))) > 4


@pytest.mark.parametrize("code", [10, 11, 14, 15, 29, 10033, 99999, 2**31])
def test_codes_that_do_not_exist_have_a_fixed_text(code):
    assert name(code) == "mcErrorUnknown"
    assert lib.mcGetErrorString(code) == lib.mcGetErrorString(10033) != ffi.NULL


def test_texts_differ():
    texts = [ffi.string(lib.mcGetErrorString(code)) for code in CODES if CODES[code] != "mcErrorMax"]
    assert len(set(texts)) == len(texts)


def test_the_last_error_is_given_once():
    assert lib.mcGetLastError() == 0
    refuse()
    assert lib.mcPeekAtLastError() == lib.mcErrorInvalidValue
    assert lib.mcPeekAtLastError() == lib.mcErrorInvalidValue
    assert lib.mcGetLastError() == lib.mcErrorInvalidValue
    assert lib.mcGetLastError() == lib.mcPeekAtLastError() == 0


def test_success_keeps_the_last_error():
    refuse()
    assert lib.mcFree(rt.device_memory()) == 0
    assert lib.mcGetLastError() == lib.mcErrorInvalidValue


def test_a_later_error_replaces_it():
    refuse()
    assert lib.mcSetDevice(-1) == lib.mcErrorInvalidDevice
    assert lib.mcGetLastError() == lib.mcErrorInvalidDevice


def test_each_thread_remembers_its_own():
    seen = {}

    def other():
        seen["first"] = lib.mcGetLastError()
        seen["set"] = lib.mcSetDevice(99)
        barrier.wait()
        barrier.wait()
        seen["kept"] = lib.mcGetLastError()

    barrier = threading.Barrier(2)
    refuse()
    thread = threading.Thread(target=other)
    thread.start()
    barrier.wait()
    assert lib.mcGetLastError() == lib.mcErrorInvalidValue
    barrier.wait()
    thread.join()
    assert seen == {"first": 0, "set": lib.mcErrorInvalidDevice, "kept": lib.mcErrorInvalidDevice}


@rt.needs_a_gate
def test_not_ready_is_remembered_and_is_no_refusal():
    stream, event = rt.stream(), rt.event()
    gate = rt.Gate(stream)
    rt.ok(lib.mcEventRecord(event, stream))
    before = last_error()
    assert lib.mcEventQuery(event) == lib.mcErrorNotReady
    assert lib.mcGetLastError() == lib.mcErrorNotReady
    assert last_error() == before
    gate.open()
    assert lib.mcStreamSynchronize(stream) == 0
