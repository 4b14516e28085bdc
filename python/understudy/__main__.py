"""The command line."""

from __future__ import annotations

import argparse
import codecs
import errno
import importlib
import io
import os
import sys

from understudy import __version__, ft_run, toolchain
from understudy.errors import SdkError, UsageError
from understudy.paths import STACKS

DESCRIPTION = "Programs for the Ascend CANN, MetaX MACA and FT DSP operator libraries, built and run on a plain CPU."
STATIC_LINKS = {"-static", "-static-pie"}
PASS_THROUGH = {  # commands that hand on what follows their own leading options, and those of the options with a value
    "cc": ("--stack",),
    "c++": ("--stack",),
    "run": ("--stack",),
    "ft-run": ("-n",),
}
FLAGS = ("-h", "--help")
FLAGS_OF = {"ft-run": (*FLAGS, "--label")}
KIT = {  # commands of understudy.kit, each a module of its name
    "rules": "The rule catalogue: what each function refuses, with which status, from which source, whether tested.",
    "doctor": "Which symbols and libraries of the stacks a program or library needs, and which of them are emulated.",
    "trace": "Run a program; its calls, kernels and copies as a timeline and as a table.",
    "replay": "Repeat one call of a timeline with a small C program of its own.",
    "abi": "Compare a library, or what a program was compiled against, with the emulated headers.",
    "manual": "Print the man page, or a shell's completion.",
    "conform": "Run the conformance cases against the emulated libraries, or with --lib against others.",
}
OF_ANY_STACK = {"abi", "replay", "manual"}  # what they work on says of which stack it is
COMMANDS = ("demo", "env", *PASS_THROUGH, *KIT)


class Parser(argparse.ArgumentParser):
    """Errors of use are one line."""

    def error(self, message: str):
        raise UsageError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, file=None):
        """argparse's own says nothing when help or version cannot be written."""
        print(message, end="", file=file or sys.stderr, flush=True)


def make_parser(asked: str | None = None) -> Parser:
    """asked: the command that is going to run; the others of the kit get no options, and are not imported."""
    parser = Parser(prog="understudy", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"understudy {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(name: str, text: str, **settings) -> Parser:
        made = commands.add_parser(name, help=text, description=text, allow_abbrev=False, **settings)
        if name not in OF_ANY_STACK:
            what = "calls and kernels of this stack" if name == "trace" else "this stack"
            made.add_argument("--stack", action="append", choices=STACKS, help=f"only {what}; may be repeated")
        return made

    command("demo", "Compile and run the example programs and compare their results with NumPy.")
    command("env", 'Print shell exports: eval "$(understudy env)".')
    usage = "understudy {} [--stack STACK] {}"
    command("cc", "The C compiler with the include paths, the libraries and their run-time paths.",
            usage=usage.format("cc", "ARGUMENT ..."))  # fmt: skip
    command("c++", "The C++ compiler, likewise.", usage=usage.format("c++", "ARGUMENT ..."))
    command("run", "Run a program so that it finds the libraries.", usage=usage.format("run", "PROGRAM [ARGUMENT ...]"))
    text = "Run a program as the DSP cores of one FT chip: a process per core, with common DDR and SMC and an L2 each."
    cores = commands.add_parser("ft-run", help=text, description=text, allow_abbrev=False,
                                usage="understudy ft-run [-n CORES] [--label] PROGRAM [ARGUMENT ...]")  # fmt: skip
    cores.add_argument("-n", dest="cores", type=int, default=ft_run.chip_cores(), metavar="CORES",
                       help="cores; default: all of the chip that UNDERSTUDY_FT_CHIP names, FT78NE 8 (as without "
                       "one), MT7004 4")  # fmt: skip
    cores.add_argument("--label", action="store_true", help="begin each line of output with the core's number")
    for name, text in KIT.items():
        made = command(name, text)
        if asked in (None, name):
            kit_module(name).add_arguments(made)
    return parser


def kit_module(name: str):
    return importlib.import_module(f"understudy.kit.{name}")


def split_pass_through(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Splits our own leading options from what belongs to the compiler or program."""
    own = PASS_THROUGH[arguments[0]]
    count = 1
    while count < len(arguments):
        if arguments[count] in own:
            count += 2
        elif arguments[count].startswith("--stack=") or arguments[count] in FLAGS_OF.get(arguments[0], FLAGS):
            count += 1
        else:
            break
    rest = arguments[count:]
    return arguments[:count], rest[1:] if rest[:1] == ["--"] else rest


def execute(command: list[str], environment: dict[str, str]) -> None:
    """Becomes the command: its exit status and signals reach the caller as they are."""
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        raise UsageError(f"cannot run {command[0]!r}: {error.strerror}") from None


def compile_program(language: str, stacks, arguments: list[str]) -> None:
    if not arguments:
        raise UsageError("nothing to compile")
    command = [*toolchain.compiler(language), *arguments]
    if language == "c":
        toolchain.check_declarations([*command, *toolchain.search_flags(stacks)], stacks)
    if STATIC_LINKS.intersection(arguments):  # there are few static libraries: the caller names them
        command += toolchain.search_flags(stacks)
    else:
        command += [*toolchain.flags(stacks), *toolchain.libraries(stacks)]
    execute(command, toolchain.compiler_environment(language))


def environment_for(arguments: list[str], stacks: list) -> dict[str, str]:
    """Of a program that can be run."""
    if not arguments:
        raise UsageError("no program given")
    environment = toolchain.environment(stacks)
    toolchain.check_program(arguments[0], environment)
    return environment


def run_cores(options: argparse.Namespace, arguments: list[str]) -> int:
    environment = environment_for(arguments, toolchain.stacks_named(["ftdsp"]))
    return ft_run.run(arguments, options.cores, environment, options.label)


def dispatch(arguments: list[str]) -> int:
    rest = []
    if arguments[:1] and arguments[0] in PASS_THROUGH:
        arguments, rest = split_pass_through(arguments)
    parser = make_parser(next(iter(arguments), ""))
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    if options.command in KIT:
        return kit_module(options.command).run(options)
    if options.command == "ft-run":
        return run_cores(options, rest)
    stacks = toolchain.stacks_named(options.stack)
    if options.command == "env":
        print(toolchain.shell_exports(stacks))
    elif options.command == "demo":
        from understudy import demo  # imports NumPy: only when asked for

        return demo.run(stacks)
    elif options.command == "run":
        execute(rest, environment_for(rest, stacks))
    else:
        compile_program("c" if options.command == "cc" else "c++", stacks, rest)
    return 0


def open_what_is_closed() -> None:
    """Streams that the caller has closed are None, and print(file=None) writes to standard output."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))


def escape(error: UnicodeError):
    """For letters that the locale does not have. Bytes of a file's name that are no letters go out as they came in."""
    letters = error.object[error.start : error.end]
    parts = (bytes([ord(letter) - 0xDC00]) if 0xDC80 <= ord(letter) <= 0xDCFF else letter.encode("ascii", "backslashreplace")
             for letter in letters)  # fmt: skip
    return b"".join(parts), error.end


def complain(text, command: str = "") -> int:
    try:
        print(f"understudy {command}: {text}" if command in COMMANDS else f"understudy: {text}", file=sys.stderr, flush=True)
    except OSError:  # the status tells
        write_no_more(sys.stderr)
    return 2


def write_no_more(stream) -> None:
    """Python would write what is left at its end, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def main() -> int:
    arguments = sys.argv[1:]
    command = next(iter(arguments), "")
    open_what_is_closed()
    codecs.register_error("understudy", escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="understudy")
    try:
        status = dispatch(arguments)
        print(end="", flush=True)  # what cannot be written is to be known here
        return status
    except (UsageError, SdkError) as error:
        return complain(error, command)
    except BrokenPipeError:
        write_no_more(sys.stdout)
        return 1
    except OSError as error:
        if error.filename is not None:  # a file or folder that was named: unreadable, say, or too long a name
            return complain(f"cannot use {error.filename}: {error.strerror}", command)
        if error.errno != errno.ENOSPC:
            raise
        write_no_more(sys.stdout)
        return complain(f"cannot write the output: {error.strerror}")
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
