"""`understudy replay`: one call of a trace as a small C program of its own that gives the same status."""

import json
import pathlib
import re
import subprocess
import tempfile
from dataclasses import dataclass

from understudy import toolchain
from understudy.errors import UsageError
from understudy.kit import table
from understudy.kit.prototypes import SCALING_FACTORS, Parameter, is_half, prototypes
from understudy.paths import STACKS

# Calls that a later call may depend on although they share no object with it.
SETTING = re.compile(r"(aclInit|\w*SetDevice|\w*SetCurrentContext|mcInit|\w+SetSysParamOpt|aclFinalize|mcDeviceReset"
                     r"|aclrtResetDevice(Force)?)")
OF_A_THREAD = re.compile(r"aclrtResetDevice(Force)?")  # those that another thread may survive
# Calls that change or end an object that is their first argument.
CHANGING = re.compile(r"\w*(Set|Destroy|Free|Reset|Restore|Derive|Init|Repeatable|Clean|[Rr]egister)\w*")
# What begins and ends that the calls of a stream are recorded. The stream is the first argument.
CAPTURE_BEGINS = re.compile(r"mcStreamBeginCapture|aclmdlRICapture(ToModelRI)?Begin")
CAPTURE_ENDS = re.compile(r"mcStreamEndCapture|aclmdlRICaptureEnd")
DEVICE_MEMORY = re.compile(r"(aclrtMalloc\w*|mcMalloc\w*)")

HEADERS = {
    "ascend": '#include "acl/acl.h"\n#include "aclnn/aclnn_base.h"\n{operators}',
    "maca": "#include <mc_runtime.h>\n#include <mcdnn/mcdnn.h>\n#include <mcblas/mcblas.h>\n",
    "ftdsp": "{operators}",
}


def add_arguments(parser) -> None:
    parser.add_argument("trace", help="file that `understudy trace` wrote")
    parser.add_argument("number", type=int, help="number of the call (args.call in the timeline)")
    parser.add_argument("-o", "--output", metavar="FILE", help="keep the C program here")
    parser.epilog = "Exit status: 0 when the repeated call gives the traced status."


POINTER = re.compile(r"0x[0-9a-f]{1,16}|0")
FLOATING = re.compile(r"-?(0x[0-9a-f](\.[0-9a-f]+)?p[+-]?[0-9]{1,5}|inf|nan)")
NOT_FINITE = {"inf": "(SIGN1.0 / 0.0)", "nan": "(SIGN0.0 / 0.0)"}  # as C expressions
BYTES = re.compile(r"([0-9a-f]{2})*")


class Damaged(UsageError):
    """A value of a trace that `understudy trace` never writes. Nothing else of a trace may reach the C program."""


def checked(call: str, name: str, value, kind: str):
    """A traced value of a parameter, by what the parameter is: a number, or a text of the form that is written for it."""
    if kind == "integer" and type(value) is int and -(2**63) <= value < 2**64:
        return value
    forms = {"pointer": POINTER, "floating": FLOATING, "bytes": BYTES}
    if kind in forms and isinstance(value, str) and forms[kind].fullmatch(value):
        return value
    if kind == "structure" and value == "structure":
        return value
    raise Damaged(f"{call}: {name} is no {kind} that `understudy trace` writes")


def kind_of(kind, stack: str) -> str:
    """What a trace holds of a cffi type."""
    if kind.kind in ("pointer", "array", "function"):
        return "pointer"
    if kind.kind in ("struct", "union"):
        return "structure"
    return "floating" if kind.cname in ("float", "double") or is_half(kind, stack) else "integer"


def number_of(text) -> int:
    return int(text, 16) if isinstance(text, str) else int(text)


class Call:
    """A traced call: what it was given, and which new objects it gave. Raises Damaged for what no trace has."""

    def __init__(self, event: dict):
        self.name, arguments = event["name"], event.get("args")
        self.process, self.thread = str(event.get("pid")), str(event.get("tid"))
        self.prototype = prototypes()[self.name]
        if not isinstance(arguments, dict):
            raise Damaged(f"{self.name}: no arguments")
        self.arguments = {}
        for parameter in self.prototype.parameters:
            self._take(arguments, parameter.name, kind_of(parameter.kind, self.prototype.stack))
            self._take(arguments, f"*{parameter.name}", "pointer")
            self._take(arguments, f"{parameter.name}[]", "bytes")
        if self.prototype.result.kind != "void":
            self._take(arguments, "status", kind_of(self.prototype.result, self.prototype.stack))

    def _take(self, arguments: dict, name: str, kind: str) -> None:
        if name in arguments:
            self.arguments[name] = checked(self.name, name, arguments[name], kind)

    def value(self, parameter: Parameter):
        return self.arguments.get(parameter.name, 0)

    def status(self):
        return self.arguments.get("status")

    def given(self) -> dict[str, int]:
        """New objects by the parameter through which they came; "" for the result."""
        objects = {p.name: number_of(self.arguments[f"*{p.name}"])
                   for p in self.prototype.parameters if f"*{p.name}" in self.arguments}  # fmt: skip
        if self.prototype.result.kind == "pointer":
            objects[""] = number_of(self.status())
        return {name: value for name, value in objects.items() if value}

    def used(self) -> list[int]:
        """Pointers that it was given, also those inside arrays."""
        values = [number_of(self.value(p)) for p in self.prototype.parameters if p.is_pointer and not p.gives_handle]
        for parameter in self.prototype.parameters:
            if holds_pointers(parameter) and f"{parameter.name}[]" in self.arguments:
                values += words(self.arguments[f"{parameter.name}[]"])
        return [value for value in values if value]

    def block_size(self) -> int:
        """Bytes of the device memory it gave."""
        sizes = [self.value(p) for p in self.prototype.parameters if p.name in ("size", "n")]
        return sizes[0] if sizes and DEVICE_MEMORY.fullmatch(self.name) else 1


def holds_pointers(parameter: Parameter) -> bool:
    return parameter.kind.kind == "pointer" and parameter.kind.item.kind == "pointer" and not parameter.gives_handle


def words(digits: str) -> list[int]:
    data = bytes.fromhex(digits)
    return [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8)]


def load(trace: str) -> list[Call]:
    no_timeline = UsageError(f"{trace} is no timeline of `understudy trace`")
    try:
        content = json.loads(pathlib.Path(trace).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {trace}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise no_timeline from None
    events = content.get("traceEvents") if isinstance(content, dict) else None
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise no_timeline
    calls = [event for event in events if event.get("cat") == "call"]
    return [Call(event) for event in calls if isinstance(event.get("name"), str) and event["name"] in prototypes()]


@dataclass
class Capture:
    """The calls, by index, that belong to a capture: those of the thread that began it, and the one that ended it."""

    stream: int
    thread: str
    calls: list[int]
    ended: bool = False

    def matters(self, chosen: set[int], wanted: set[int], thread: str) -> bool:
        """A graph is what all calls of its capture made it; while one lasts, it decides what other calls may do."""
        if self.ended:
            return not chosen.isdisjoint((self.calls[0], self.calls[-1]))
        return self.thread == thread or self.stream in wanted


def captures(calls: list[Call], earlier: list[int]) -> list[Capture]:
    found: list[Capture] = []
    for index in earlier:
        call = calls[index]
        stream = call.used()[0] if call.used() else 0
        for capture in found:
            ends = CAPTURE_ENDS.fullmatch(call.name) is not None and stream == capture.stream
            if not capture.ended and (ends or call.thread == capture.thread):
                capture.calls.append(index)
                capture.ended = ends
        if CAPTURE_BEGINS.fullmatch(call.name) and call.status() == 0:
            found.append(Capture(stream, call.thread, [index]))
    return found


def needed(calls: list[Call], target: int) -> list[Call]:
    """The target and the earlier calls of its process that made, changed or ended what it uses, in order."""
    process, thread = calls[target].process, calls[target].thread
    earlier = [index for index in range(target) if calls[index].process == process
               and (calls[index].thread == thread or not OF_A_THREAD.fullmatch(calls[index].name))]  # fmt: skip
    recorded = captures(calls, earlier)
    chosen, wanted = set(), set()
    new = {target}
    while new:
        chosen |= new
        wanted.update(pointer for index in new for pointer in calls[index].used())
        new = {index for index in earlier if index not in chosen and _matters(calls[index], wanted)}
        for capture in recorded:
            if capture.matters(chosen, wanted, thread):
                new.update(capture.calls)
        new -= chosen
    return [calls[index] for index in sorted(chosen)]


def _matters(call: Call, wanted: set[int]) -> bool:
    if SETTING.fullmatch(call.name):
        return True
    size = call.block_size()
    if any(value <= pointer < value + size for value in call.given().values() for pointer in wanted):
        return True
    used = call.used()
    return bool(used) and used[0] in wanted and CHANGING.fullmatch(call.name) is not None


class Program:
    """The C program while it is being written."""

    def __init__(self):
        self.objects: list[tuple[int, int, str]] = []  # first address, bytes, variable; latest last
        self.hosts: dict[int, int] = {}
        self.functions: dict[int, str] = {}
        self.declarations: list[str] = []
        self.body: list[str] = []

    def new_object(self, value: int, size: int) -> str:
        variable = f"object{len(self.objects)}"
        self.objects.append((value, size, variable))
        self.declarations.append(f"static void *{variable};")
        return variable

    def pointer(self, value: int) -> str:
        """How the program spells a pointer of the traced one."""
        if value == 0:
            return "NULL"
        for first, size, variable in reversed(self.objects):
            if first <= value < first + size:
                return variable if value == first else f"(void *)((char *){variable} + {value - first})"
        if value >> 48 or value < 4096:
            return f"(void *)(uintptr_t){value:#x}"  # a handle nobody made, or a small number
        slot = self.hosts.setdefault(value, len(self.hosts))
        return f"(void *)host[{slot}]"

    def function(self, value: int) -> str:
        """One of the traced program's own functions, which does nothing here."""
        if value and value not in self.functions:
            self.functions[value] = f"function{len(self.functions)}"
            self.declarations.append(f"static long {self.functions[value]}(void) {{ return 0; }}")
        return f"(void *){self.functions[value]}" if value else "NULL"

    def array(self, parameter: Parameter, digits: str) -> str:
        name = f"array{len(self.declarations)}"
        if holds_pointers(parameter):
            values = ", ".join(self.pointer(word) for word in words(digits))
            self.body.append(f"void *{name}[] = {{{values}}};")
        else:
            values = ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(digits))
            self.declarations.append(f"static _Alignas(16) unsigned char {name}[] = {{{values}}};")
        return f"(void *){name}"

    def argument(self, call: Call, parameter: Parameter) -> str:
        value = call.value(parameter)
        if value == "structure":
            raise UsageError(f"{call.name} takes a structure by value, which a trace does not hold")
        if not parameter.is_pointer:
            return NOT_FINITE.get(str(value).removeprefix("-"), str(value)).replace("SIGN", "-" * str(value).startswith("-"))
        digits = call.arguments.get(f"{parameter.name}[]")
        if digits is not None and (parameter.name not in SCALING_FACTORS or number_of(value)):
            return self.array(parameter, digits)
        if parameter.gives_handle and number_of(value):
            given = call.given().get(parameter.name, 0)
            return f"(void *)&{self.new_object(given, call.block_size())}"
        if parameter.kind.kind == "function":
            return self.function(number_of(value))
        return self.pointer(number_of(value))

    def add(self, call: Call) -> None:
        parameters = call.prototype.parameters
        # New objects last: one may have the address of something that the call was given.
        order = sorted(parameters, key=lambda parameter: parameter.gives_handle)
        spelled = {parameter.name: self.argument(call, parameter) for parameter in order}
        text = f"{call.name}({', '.join(spelled[parameter.name] for parameter in parameters)})"
        result = call.prototype.result
        if result.kind == "void":
            self.body += [f"{text};", f'puts("{call.name}");']
        elif result.kind == "pointer":
            variable = self.new_object(call.given().get("", 0), 1)
            self.body += [f"{variable} = (void *){text};",
                          f'printf("%s: %s\\n", "{call.name}", {variable} == NULL ? "NULL" : "not NULL");']  # fmt: skip
        else:
            self.body += [f"status = (long long){text};",
                          f'printf("%s: %lld (traced: {call.status()})\\n", "{call.name}", status);']  # fmt: skip

    def text(self, target: Call, number: int) -> str:
        traced = target.status()
        same = "1" if target.prototype.result.kind in ("void", "pointer") else f"status == {traced}LL"
        stacks = sorted({target.prototype.stack})
        head = f"/* Repeats call {number} of a trace: {target.name}, which gave {traced}. */\n"
        return "\n".join([head + includes(stacks), "#include <stdint.h>", "#include <stdio.h>", "",
                          "/* Host memory that the traced program passed; its contents are not in the trace. */",
                          f"static _Alignas(64) char host[{len(self.hosts) + 1}][1 << 16];", *self.declarations, "",
                          "int main(void)", "{", "    long long status = 0;",
                          *(f"    {line}" for line in self.body),
                          f"    return ({same}) ? 0 : 1;", "}", ""])  # fmt: skip


def includes(stacks: list[str]) -> str:
    text = ""
    for stack in stacks:
        root = STACKS[stack].root / "include"
        folder = root / "aclnnop" if stack == "ascend" else root
        headers = sorted(str(file.relative_to(root)) for file in folder.glob("*.h"))
        text += HEADERS[stack].format(operators="".join(f'#include "{header}"\n' for header in headers))
    return text.rstrip()


def reproducer(calls: list[Call], number: int) -> str:
    program = Program()
    for call in needed(calls, number - 1):
        program.add(call)
    return program.text(calls[number - 1], number)


def compile_and_run(source: str) -> int:
    with tempfile.TemporaryDirectory(prefix="understudy-replay-") as name:
        file, program = pathlib.Path(name) / "replay.c", pathlib.Path(name) / "replay"
        file.write_text(source, "utf-8")
        stacks = list(STACKS.values())
        command = [*toolchain.compiler("c"), "-w", str(file), "-o", str(program), *toolchain.flags(stacks),
                   *toolchain.libraries(stacks)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise UsageError(f"the program does not compile: {done.stderr.strip().splitlines()[0]}")
        return subprocess.run([str(program)], env=toolchain.environment(stacks)).returncode


def run(options) -> int:
    calls = load(options.trace)
    if not 1 <= options.number <= len(calls):
        raise UsageError(f"{options.trace} has calls 1 to {len(calls)}")
    source = reproducer(calls, options.number)
    if options.output:
        table.write(options.output, source)
    return compile_and_run(source)
