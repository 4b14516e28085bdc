"""The emulated device, tested in C below any vendor's API: plain, and with sanitizers."""

import pathlib

import pytest

from tests import native

HERE = pathlib.Path(__file__).parent
MODES = ["async", "inline", "deferred"]
BUILDS = ["", "address", "thread"]


@pytest.mark.parametrize("sanitizer", BUILDS, ids=lambda build: build or "plain")
def test_memory(sanitizer):
    program = native.build_internal(HERE / "memory_test.c", sanitizer)
    assert native.check([program], {"UNDERSTUDY_DEVICES": "2"}) == "ok\n"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sanitizer", BUILDS, ids=lambda build: build or "plain")
def test_streams(sanitizer, mode):
    program = native.build_internal(HERE / "stream_test.c", sanitizer)
    assert native.check([program], {"UNDERSTUDY_STREAM": mode}) == "ok\n"


@pytest.mark.parametrize("devices, limit", [(64, 0), (64, 4 << 30), (1, 1 << 30)])
def test_devices_share_a_limited_address_space(devices, limit):
    program = native.build_internal(HERE / "limits_test.c")
    assert native.check([program, limit], {"UNDERSTUDY_DEVICES": str(devices), "UNDERSTUDY_STREAM": "inline"}) == "ok\n"


def test_hosts_with_large_pages():
    """Pages of 64 KiB, as some aarch64 systems have."""
    pages = native.work_folder() / "large_pages.so"
    native.check(["gcc", "-D_GNU_SOURCE", *native.STRICT, "-shared", "-fPIC", HERE / "large_pages.c", "-o", pages, "-ldl"])
    for name in ("memory_test.c", "stream_test.c"):
        program = native.build_internal(HERE / name)
        assert native.check([program], {"LD_PRELOAD": pages, "UNDERSTUDY_DEVICES": "2"}) == "ok\n"


def test_host_access_to_device_memory_stops_with_a_message():
    program = native.build_internal(HERE / "host_access_test.c")
    done = native.run([program])
    assert done.returncode == -11, "the ordinary SIGSEGV follows the message"
    assert "host code touched" in done.stderr and "8 bytes into block #1 (100 bytes from aclTest)" in done.stderr


def test_device_memory_can_be_opened_to_the_host():
    program = native.build_internal(HERE / "host_access_test.c")
    assert native.check([program], {"UNDERSTUDY_DEVICE_ACCESS": "host"}) == "read 42\n"


def test_an_ordinary_bad_pointer_is_not_claimed():
    program = native.build_internal(HERE / "host_access_test.c")
    done = native.run([program, "null"])
    assert done.returncode == -11
    assert "understudy" not in done.stderr


def test_a_process_may_fork_before_first_use():
    program = native.build_internal(HERE / "fork_test.c")
    assert native.check([program, "before"]) == "child ok\nparent ok\n"


def test_a_child_forked_after_use_is_told_so():
    program = native.build_internal(HERE / "fork_test.c")
    done = native.run([program, "after"])
    assert done.returncode == 0, done.stderr
    assert "child refused\n" in done.stdout
    assert done.stderr.count("forked after its parent had used Test devices") == 1, "said once, not by every call"


def test_the_environment_is_read_when_the_library_is_loaded():
    program = native.build_internal(HERE / "environment_test.c")
    done = native.run([program], {"UNDERSTUDY_STREAM": "sometimes", "UNDERSTUDY_DEVICES": "3", "UNDERSTUDY_LOG": ""})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    assert done.stderr.splitlines() == [
        'understudy: error: UNDERSTUDY_STREAM is "sometimes"; known values: always, never; using never',
        'understudy: error: UNDERSTUDY_DEVICES is "3"; it must be a whole number from 0 to 2; using 1']


def test_environment_mistakes_are_reported_and_ignored():
    program = native.build_internal(HERE / "stream_test.c")
    done = native.run([program], {"UNDERSTUDY_STREAM": "sometimes", "UNDERSTUDY_DEVICES": "many"})
    assert done.returncode == 0
    assert 'UNDERSTUDY_STREAM is "sometimes"; known values: async, inline, deferred; using async' in done.stderr
    assert 'UNDERSTUDY_DEVICES is "many"' in done.stderr
