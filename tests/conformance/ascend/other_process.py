"""A second process with a device of its own, which does what it is told."""

from __future__ import annotations

import ast
import contextlib
import os
import pathlib
import subprocess
import sys

from tests.conformance.ascend.acl_support import ok

LOOP = """
import os, sys
from understudy.ascend import ffi, lib
from tests.conformance.ascend.acl_support import *
answers = os.fdopen(os.dup(1), "w")
ok(lib.aclrtSetDevice(int(sys.argv[1])))
for line in sys.stdin:
    source = line.strip().replace("\\\\n", "\\n")
    try:
        result = eval(source, globals())
    except SyntaxError:
        result = exec(source, globals())
    print(repr(result), file=answers, flush=True)
"""


class OtherProcess:
    def __init__(self, device: int = 0, env=None):
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOP, str(device)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})}, cwd=pathlib.Path(__file__).parents[3])

    @property
    def pid(self) -> int:
        return self.process.pid

    def begin(self, source: str) -> None:
        self.process.stdin.write(source.replace("\n", "\\n") + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, "the other process has ended"
        return ast.literal_eval(line)

    def ask(self, source: str):
        """The value of an expression there; None for statements."""
        self.begin(source)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        if self.process.poll() is None:
            ok(self.process.wait(60))


@contextlib.contextmanager
def other_process(device: int = 0, env=None):
    other = OtherProcess(device, env)
    try:
        yield other
    finally:
        other.close()
