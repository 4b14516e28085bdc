"""Many threads use the runtime at once: plain, with address and undefined, and with thread sanitizer."""

import pathlib

import pytest

from tests import native

PROGRAM = pathlib.Path(__file__).parent / "runtime_threads.c"


@pytest.mark.parametrize("sanitizer", ["", "address", "thread"], ids=lambda build: build or "plain")
@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
def test_threads_share_a_device(mode, sanitizer):
    program = native.build_vendor(PROGRAM, "maca", sanitizer)
    done = native.run([program], {"UNDERSTUDY_STREAM": mode, "UNDERSTUDY_LOG": "off"})
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
