"""Running the commands, and binaries for them."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import unittest.mock

from tests import native
from understudy import __main__

AARCH64 = 183


# They start no program whose output is to be seen.
IN_PROCESS = {"abi", "doctor", "rules"}


def understudy(*arguments, env=None) -> subprocess.CompletedProcess:
    """The command, started; or what it starts, called here: starting Python takes longer than most commands do."""
    command = ["understudy", *map(str, arguments)]
    if env is not None or command[1] not in IN_PROCESS:
        return native.run([sys.executable, "-m", *command], env)
    with (contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as errors,
          unittest.mock.patch.object(sys, "argv", command)):
        try:
            status = __main__.main()
        except SystemExit as end:
            status = end.code
    return subprocess.CompletedProcess(command, status, out.getvalue(), errors.getvalue())


def understudy_json(*arguments):
    """What a command prints with --json, and its exit status."""
    done = understudy(*arguments, "--json")
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout), done.returncode


def assert_error_of_use(done: subprocess.CompletedProcess, text: str) -> None:
    assert done.returncode == 2
    assert done.stdout == ""
    assert text in done.stderr and done.stderr.count("\n") == 1, done.stderr


def library(folder: pathlib.Path, soname: str, source: str, flags=()) -> pathlib.Path:
    """A shared library of this name from C source."""
    file = folder / f"{soname}.c"
    file.write_text(source)
    native.check(["gcc", "-shared", "-fPIC", *flags, file, "-o", folder / soname, f"-Wl,-soname,{soname}"])
    return folder / soname


def program(folder: pathlib.Path, name: str, source: str, flags=(), compiler="gcc") -> pathlib.Path:
    file = folder / f"{name}.{'c' if compiler == 'gcc' else 'cc'}"
    file.write_text(source)
    native.check([compiler, file, "-o", folder / name, *flags])
    return folder / name


def change_machine(file: pathlib.Path, machine: int) -> None:
    """Says in the ELF header that the file is for another machine; symbols and libraries stay what they are."""
    data = bytearray(file.read_bytes())
    data[18:20] = machine.to_bytes(2, "little")
    file.write_bytes(data)
