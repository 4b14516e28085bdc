"""A second process that does what it is told."""

from __future__ import annotations

import ast
import os
import pathlib
import subprocess
import sys

LOOP = """
import os, sys
exec(sys.argv[1])
answers = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    source = line.strip().replace("\\\\n", "\\n")
    try:
        result = eval(source, globals())
    except SyntaxError:
        result = exec(source, globals())
    print(repr(result), file=answers, flush=True)
"""


class OtherProcess:
    """`prelude`: what it runs first, for the names that are used later."""

    def __init__(self, prelude: str, env=None):
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOP, prelude], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})}, cwd=pathlib.Path(__file__).parents[2])

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
            status = self.process.wait(60)
            assert status == 0, status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
