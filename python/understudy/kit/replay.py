"""`understudy replay`: one call of a trace as a small C program of its own that gives the same status."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
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
CHANGING = re.compile(r"\w*(Set|Destroy|Free|Reset|Restore|Derive|Init|Repeatable|Clean|[Rr]egister|Record)\w*")
LAST_ERROR = re.compile(r"(mc|aclrt)(Get|PeekAt)LastError")  # what earlier calls of the thread left
# Tells whether work has been done. A traced call that found it done had been waited for, in whatever way.
TIMED = {"mcEventElapsedTime": "mcDeviceSynchronize", "aclrtEventElapsedTime": "aclrtSynchronizeDevice"}
# What begins and ends that the calls of a stream are recorded. The stream is the first argument.
CAPTURE_BEGINS = re.compile(r"mcStreamBeginCapture|aclmdlRICapture(ToModelRI)?Begin")
CAPTURE_ENDS = re.compile(r"mcStreamEndCapture|aclmdlRICaptureEnd")
DEVICE_MEMORY = re.compile(r"(aclrtMalloc\w*|mcMalloc\w*)")

C_HEADERS = ("stdint", "stdio", "stdlib", "string", "sys/mman")
HEADERS = {
    "ascend": '#include "acl/acl.h"\n#include "aclnn/aclnn_base.h"\n{operators}',
    "maca": "#include <mc_runtime.h>\n#include <mcdnn/mcdnn.h>\n#include <mcblas/mcblas.h>\n",
    "ftdsp": "{operators}",
}


def add_arguments(parser) -> None:
    parser.add_argument("trace", help="file that `understudy trace` wrote")
    parser.add_argument("number", type=int, help="number of the call (args.call in the timeline)")
    parser.add_argument("-o", "--output", metavar="FILE", help="keep the C program here")
    parser.epilog = ("Exit status: 0 when the repeated call gives the traced status; of a function that returns nothing, the one of "
                     "understudy_last_status(). What the trace does not hold of a call is said.")


# Addresses of the chip (src_c/ftdsp/space.h): SMC, L2, DDR, DDR with 36 bits, the L2 of each core under its common address.
FT_WINDOWS = ((0x0C000000, 4 << 20), (0x10000000, 256 << 20), (0x80000000, 2 << 30), (0xD00000000, 4 << 30),
              (0x1000000000, 8 * (256 << 20)))  # fmt: skip
FT_OTHER_CORES = 0x1000000000  # from here on there is no memory for a process that is alone

POINTER = re.compile(r"0x[0-9a-f]{1,16}|0")
FLOATING = re.compile(r"-?(0x[0-9a-f](\.[0-9a-f]+)?p[+-]?[0-9]{1,5}|inf|nan)")
NOT_FINITE = {"inf": "(SIGN1.0 / 0.0)", "nan": "(SIGN0.0 / 0.0)"}  # as C expressions
BYTES = re.compile(r"([0-9a-f]{2})*")
NOTED_BYTES = re.compile(r"(0x[0-9a-f]{1,16})\[\]")  # names of what memory held: bytes, and a pointer
NOTED_POINTER = re.compile(r"\*(0x[0-9a-f]{1,16})")


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


def without_repetition(memory: dict[int, str]) -> dict[int, str]:
    """The same contents, where one array reaches into the next but not beyond it."""
    kept, places = {}, sorted(memory)
    for place, following in zip(places, [*places[1:], None]):
        digits = memory[place]
        reaches_no_further = following is not None and place + len(digits) // 2 <= following + len(memory[following]) // 2
        kept[place] = digits[: 2 * (following - place)] if reaches_no_further else digits
    return kept


class Call:
    """A traced call: what it was given, and which new objects it gave. Raises Damaged for what no trace has."""

    def __init__(self, event: dict):
        self.name, arguments = event["name"], event.get("args")
        self.process, self.thread = str(event.get("pid")), str(event.get("tid"))
        self.begin, self.duration = event.get("ts"), event.get("dur")
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
        else:
            self._take(arguments, "last_status", "integer")
        self.bytes_at = without_repetition(self._memory(arguments, NOTED_BYTES, "bytes"))
        self.pointers_at = self._memory(arguments, NOTED_POINTER, "pointer")

    def _take(self, arguments: dict, name: str, kind: str) -> None:
        if name in arguments:
            self.arguments[name] = checked(self.name, name, arguments[name], kind)

    def _memory(self, arguments: dict, names: re.Pattern, kind: str) -> dict[int, str]:
        """What memory held before the call, by address."""
        found = {name: names.fullmatch(name) for name in arguments}
        return {int(match[1], 16): checked(self.name, name, arguments[name], kind) for name, match in found.items() if match}

    def value(self, parameter: Parameter):
        return self.arguments.get(parameter.name, 0)

    def status(self):
        """Of a function that returns nothing what understudy_last_status() gave behind it; None: that is not in the trace."""
        return self.arguments.get("last_status" if self.prototype.result.kind == "void" else "status")

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

    def encloses(self, other: Call) -> bool:
        """Whether the other was made inside this one: by a library that calls itself, or by a function it was given."""
        times = (self.begin, self.duration, other.begin)
        return (self.thread == other.thread and all(isinstance(time, (int, float)) for time in times)
                and self.begin <= other.begin < self.begin + self.duration)  # fmt: skip

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
               and not calls[index].encloses(calls[target])
               and (calls[index].thread == thread or not OF_A_THREAD.fullmatch(calls[index].name))]  # fmt: skip
    recorded = captures(calls, earlier)
    chosen, wanted = set(), set()
    new = {target, *_errors(calls, earlier, target)}
    while new:
        chosen |= new
        wanted.update(pointer for index in new for pointer in calls[index].used())
        new = {index for index in earlier if index not in chosen and _matters(calls[index], wanted)}
        for capture in recorded:
            if capture.matters(chosen, wanted, thread):
                new.update(capture.calls)
        new -= chosen
    return [calls[index] for index in sorted(chosen)]


def _errors(calls: list[Call], earlier: list[int], target: int) -> list[int]:
    """For a call that asks for the last error: the calls of its thread that left one, and those that asked before."""
    if not LAST_ERROR.fullmatch(calls[target].name):
        return []
    thread, result = calls[target].thread, calls[target].prototype.result
    return [index for index in earlier if calls[index].thread == thread and calls[index].prototype.result == result
            and (calls[index].status() != 0 or LAST_ERROR.fullmatch(calls[index].name))]  # fmt: skip


def _matters(call: Call, wanted: set[int]) -> bool:
    if SETTING.fullmatch(call.name):
        return True
    size = call.block_size()
    if any(value <= pointer < value + size for value in call.given().values() for pointer in wanted):
        return True
    used = call.used()
    return bool(used) and used[0] in wanted and CHANGING.fullmatch(call.name) is not None


# A trace says where the host memory of a call is and not how long it is; no operand of an emulated call is larger than this.
HOST_ROOM = 64 << 30

HOST_MEMORY = """/* Host memory that the traced program passed, by its addresses there: what was near each other is it here, too. It holds zeros
 * but for what is set below. */
typedef struct Area { uintptr_t first; size_t span; char *memory; } Area;
static Area areas[] = {AREAS};

static void reserve(Area *area)
{
    void *memory = MAP_FAILED;
    for (size_t room = (size_t)ROOM; memory == MAP_FAILED && room >= 1 << 16; room /= 2) { /* less where the system gives less */
        memory = mmap(NULL, area->span + room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (memory == MAP_FAILED) {
        perror("host memory");
        exit(1);
    }
    area->memory = memory;
}

static void *host(uintptr_t traced)
{
    Area *area = areas;
    while (traced - area->first > area->span) {
        area++;
    }
    if (area->memory == NULL) {
        reserve(area);
    }
    return area->memory + (traced - area->first);
}
"""

REFUSALS = """/* Of understudy/understudy.h; a vendor's library has neither, and does not tell. */
int32_t understudy_last_status(void) __attribute__((weak));
void understudy_clear_last_error(void) __attribute__((weak));

static void clear_refusal(void)
{
    if (understudy_clear_last_error) {
        understudy_clear_last_error();
    } else {
        puts("this library does not tell whether it refuses a call that returns nothing");
    }
}

static long long refusal(void) { return understudy_last_status ? understudy_last_status() : -1; }
"""


def areas(addresses: set[int]) -> list[tuple[int, int]]:
    """First address and span of what lies so near each other that operands may overlap. First addresses are of whole pages, so
    that alignments stay."""
    found: list[tuple[int, int]] = []
    for address in sorted(addresses):
        if found and address - sum(found[-1]) <= HOST_ROOM:
            found[-1] = (found[-1][0], address - found[-1][0])
        else:
            first = address & ~0xFFFF
            found.append((first, address - first))
    return found


def is_of_chip(value: int, stack: str) -> bool:
    return stack == "ftdsp" and any(first <= value < first + size for first, size in FT_WINDOWS)


def signed(status: int | None):
    """As long long has it."""
    return status - (1 << 64) if status is not None and status >= 1 << 63 else status


def number_in_c(text) -> str:
    return NOT_FINITE.get(str(text).removeprefix("-"), str(text)).replace("SIGN", "-" * str(text).startswith("-"))


class Program:
    """The C program while it is being written."""

    def __init__(self):
        self.objects: list[tuple[int, int, str]] = []  # first address, bytes, variable; latest last
        self.hosts: set[int] = set()
        self.functions: dict[int, str] = {}
        self.declarations: list[str] = []
        self.body: list[str] = []
        self.unread: list[tuple[Call, Parameter]] = []  # arguments whose contents are not in the trace

    def new_object(self, value: int, size: int) -> str:
        variable = f"object{len(self.objects)}"
        self.objects.append((value, size, variable))
        self.declarations.append(f"static void *{variable};")
        return variable

    def object_at(self, value: int) -> str:
        """How the program spells an address in an object; "" for one in none."""
        for first, size, variable in reversed(self.objects):
            if first <= value < first + size:
                return variable if value == first else f"(void *)((char *){variable} + {value - first})"
        return ""

    def pointer(self, value: int, stack: str) -> str:
        """How the program spells a pointer of the traced one."""
        if value == 0:
            return "NULL"
        if is_of_chip(value, stack):
            return f"(void *)(uintptr_t){value:#x}"
        if spelled := self.object_at(value):
            return spelled
        if value >> 48 or value < 4096:
            return f"(void *)(uintptr_t){value:#x}"  # a handle nobody made, or a small number
        self.hosts.add(value)
        return f"host({value:#x})"

    def function(self, value: int) -> str:
        """One of the traced program's own functions, which does nothing here."""
        if value and value not in self.functions:
            self.functions[value] = f"function{len(self.functions)}"
            self.declarations.append(f"static long {self.functions[value]}(void) {{ return 0; }}")
        return f"(void *){self.functions[value]}" if value else "NULL"

    def array(self, parameter: Parameter, digits: str) -> str:
        name = f"array{len(self.declarations)}"
        if holds_pointers(parameter):
            values = ", ".join(self.pointer(word, parameter.stack) for word in words(digits))
            self.body.append(f"void *{name}[] = {{{values}}};")
        else:
            self.declarations.append(f"static _Alignas(16) unsigned char {name}[] = {{{bytes_in_c(digits)}}};")
        return f"(void *){name}"

    def fill(self, call: Call) -> None:
        """Sets what memory held before a call. Pointers last: bytes may reach over them."""
        stack = call.prototype.stack
        for place, digits in call.bytes_at.items():
            if self.is_ours(place, stack):
                name = f"contents{len(self.declarations)}"
                self.declarations.append(array_in_c(name, digits))
                self.body.append(f"memcpy({self.pointer(place, stack)}, {name}, sizeof {name});")
        for place, value in call.pointers_at.items():
            if self.is_ours(place, stack):
                self.body.append(f"*(void **){self.pointer(place, stack)} = {self.pointer(number_of(value), stack)};")

    def is_ours(self, place: int, stack: str) -> bool:
        """Whether the program may write there: to host memory, and to a chip's that a process alone has."""
        if is_of_chip(place, stack):
            return place < FT_OTHER_CORES
        return self.pointer(place, stack).startswith("host(")

    def argument(self, call: Call, parameter: Parameter) -> str:
        value = call.value(parameter)
        if value == "structure":
            raise UsageError(f"{call.name} takes a structure by value, which a trace does not hold")
        if not parameter.is_pointer:
            return number_in_c(value)
        digits = call.arguments.get(f"{parameter.name}[]")
        if digits is not None and (parameter.name not in SCALING_FACTORS or number_of(value)):
            return self.array(parameter, digits)
        if parameter.gives_handle and number_of(value):
            given = call.given().get(parameter.name, 0)
            return f"(void *)&{self.new_object(given, call.block_size())}"
        if parameter.kind.kind == "function":
            return self.function(number_of(value))
        self.look_for_contents(call, parameter, number_of(value))
        return self.pointer(number_of(value), parameter.stack)

    def look_for_contents(self, call: Call, parameter: Parameter, value: int) -> None:
        is_known = value in call.bytes_at or value in call.pointers_at
        if value and not is_known and (is_of_chip(value, parameter.stack) or self.is_ours(value, parameter.stack)):
            self.unread.append((call, parameter))

    def add(self, call: Call) -> None:
        parameters = call.prototype.parameters
        # New objects last: one may have the address of something that the call was given.
        order = sorted(parameters, key=lambda parameter: parameter.gives_handle)
        spelled = {parameter.name: self.argument(call, parameter) for parameter in order}
        text = f"{call.name}({', '.join(spelled[parameter.name] for parameter in parameters)})"
        self.fill(call)
        self.body += self.calling(call, text)

    def calling(self, call: Call, text: str) -> list[str]:
        """Statements that make a call and print what it gave."""
        name, kind, traced = call.name, kind_of(call.prototype.result, call.prototype.stack), call.status()
        if call.prototype.result.kind == "void" and call.prototype.stack != "ftdsp":
            return [f"{text};", f'puts("{name}");']
        if call.prototype.result.kind == "void":
            return ["clear_refusal();", f"{text};", "status = refusal();",
                    f'printf("{name}: %lld (traced: {traced})\\n", status);']  # fmt: skip
        if kind == "pointer":
            variable = self.new_object(call.given().get("", 0), 1)
            return [f"{variable} = (void *){text};", f"status = {variable} != NULL;",
                    f'printf("{name}: %s\\n", status ? "not NULL" : "NULL");']  # fmt: skip
        if kind == "floating":
            return [f"value = {text};", f'printf("{name}: %a (traced: {traced})\\n", value);']
        wait = TIMED.get(name) if traced == 0 else None
        return [*([f"{wait}();"] if wait else []), f"status = (long long){text};",
                f'printf("{name}: %lld (traced: {signed(traced)})\\n", status);']  # fmt: skip

    def text(self, target: Call, number: int) -> str:
        stack, traced = target.prototype.stack, target.status()
        head = f"/* Repeats call {number} of a trace: {target.name}, which gave {'nothing' if traced is None else traced}. */\n"
        host = HOST_MEMORY.replace("AREAS", ", ".join(f"{{{first:#x}, {span:#x}}}" for first, span in areas(self.hosts)))
        return "\n".join([head + includes([stack]), *(f"#include <{name}.h>" for name in C_HEADERS), "",
                          *([host.replace("ROOM", f"{HOST_ROOM:#x}")] if self.hosts else []),
                          *([REFUSALS] if "clear_refusal();" in self.body else []), *self.declarations, "",
                          "int main(void)", "{", "    long long status = 0;", "    double value = 0;",
                          *(f"    {line}" for line in self.body),
                          f"    return ({same(target)}) ? 0 : 1;", "}", ""])  # fmt: skip

    def left_out(self, target: Call, is_same: bool) -> list[str]:
        """Sentences about what the trace does not hold and what may have decided: structures a call reads always, other memory if
        the repeated call gave something else."""
        told = []
        if target.status() is None:
            told.append(f"the trace has no status of {target.name}, which returns nothing: nothing was compared")
        told += [f"{call.name} reads the structure {parameter.name}, whose contents are not in the trace: zeros here"
                 for call, parameter in self.unread if is_structure_read(parameter)]
        names = [parameter.name for call, parameter in self.unread if call is target and not is_structure_read(parameter)]
        if names and not is_same:
            told.append(f"what {', '.join(names)} of {target.name} led to is not in the trace: zeros here")
        return list(dict.fromkeys(told))


def is_structure_read(parameter: Parameter) -> bool:
    return parameter.kind.kind == "pointer" and parameter.kind.item.kind in ("struct", "union") and "const" in parameter.text


def same(target: Call) -> str:
    """A condition of C: the call gave what was traced. Of a pointer only whether there was one can be repeated."""
    traced = target.status()
    kind = kind_of(target.prototype.result, target.prototype.stack)
    if traced is None:
        return "0"
    if kind == "pointer":
        return f"status == {int(number_of(traced) != 0)}"
    if kind == "floating":
        return f"value == {number_in_c(traced)} || (value != value && {int(traced.endswith('nan'))})"
    return f"status == {signed(traced)}LL"


def array_in_c(name: str, digits: str) -> str:
    """Bytes as an array of integers, which most are."""
    if len(digits) % 8:
        return f"static const unsigned char {name}[] = {{{bytes_in_c(digits)}}};"
    numbers = [int.from_bytes(bytes.fromhex(digits[i : i + 8]), "little", signed=True) for i in range(0, len(digits), 8)]
    return f"static const int32_t {name}[] = {{{', '.join(map(str, numbers))}}};"


def bytes_in_c(digits: str) -> str:
    return ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(digits))


def includes(stacks: list[str]) -> str:
    text = ""
    for stack in stacks:
        root = STACKS[stack].root / "include"
        folder = root / "aclnnop" if stack == "ascend" else root
        headers = sorted(str(file.relative_to(root)) for file in folder.glob("*.h"))
        text += HEADERS[stack].format(operators="".join(f'#include "{header}"\n' for header in headers))
    return text.rstrip()


def repeated(calls: list[Call], number: int) -> Program:
    program = Program()
    for call in needed(calls, number - 1):
        program.add(call)
    return program


def reproducer(calls: list[Call], number: int) -> str:
    return repeated(calls, number).text(calls[number - 1], number)


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
    target, program = calls[options.number - 1], repeated(calls, options.number)
    source = program.text(target, options.number)
    if options.output:
        table.write(options.output, source)
    status = compile_and_run(source)
    for sentence in program.left_out(target, status == 0):
        print(f"understudy replay: {sentence}", file=sys.stderr)
    return status
