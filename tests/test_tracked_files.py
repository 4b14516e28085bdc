"""What is under version control was written by people: no profile, build or archive slipped in."""

import shutil
import subprocess

import pytest

from tests import native


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
@pytest.mark.skipif(not (native.ROOT / ".git").exists(), reason="the sources are no checkout of git")
def test_tracked_files_are_texts():
    told = native.check(["git", "-c", "safe.directory=*", "-C", native.ROOT, "ls-files", "--eol"]).splitlines()
    assert len(told) > 1000
    assert [line for line in told if line.startswith("i/-text")] == []
