"""The tests of order, memory and errors in the stream modes that this process does not have."""

import pytest

from tests.conformance.harness import run_tests

FILES = ["test_runtime_order.py", "test_runtime_memory.py", "test_runtime_errors.py"]


@pytest.mark.parametrize("mode", ["inline", "deferred"])
def test_other_modes(mode):
    files = [f"tests/maca/{file}" for file in FILES]
    run_tests(files, {"UNDERSTUDY_STREAM": mode})
