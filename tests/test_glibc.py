"""Wheels run where glibc is 2.28 or newer: what the libraries take from a newer one is known to tools/wheel.py."""

import shutil
import sys

import pytest

from tests import native
from understudy import paths

TOOLS = native.ROOT / "tools"


@pytest.mark.skipif(not (TOOLS / "wheel.py").exists(), reason="the sources' tools are not here")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump (binutils)")
def test_wheels_bring_what_an_old_glibc_lacks(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(TOOLS), *sys.path])
    monkeypatch.delitem(sys.modules, "wheel", raising=False)  # a package of PyPI has the same name
    import wheel

    newer = wheel.newer_symbols(paths.sdk())
    assert [line for name, line in newer.items() if name not in wheel.stood_in()] == []
