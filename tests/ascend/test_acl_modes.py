"""The tests of streams, events and callbacks again, with work done at submit and with work held back."""

import pathlib

import pytest

from tests.conformance.harness import run_tests

FILES = ["test_acl_stream.py", "test_acl_event.py", "test_acl_callback.py"]


@pytest.mark.parametrize("mode", ["inline", "deferred"])
def test_mode(mode):
    files = [pathlib.Path(__file__).with_name(file) for file in FILES]
    run_tests(files, {"UNDERSTUDY_STREAM": mode})
