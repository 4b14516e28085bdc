"""Calls of FT functions with named parameters, and the rule cases that every function with operands has."""

from __future__ import annotations

import dataclasses
import functools
import struct
from collections.abc import Callable, Iterable

import numpy

from tests.conformance.harness import Result, RuleCase
from understudy.ftdsp import ffi, last_error, lib

DDR, DDR_END, SMC, L2, L2_OF_CORE_3 = 0xA0000000, 0x100000000, 0x0C000000, 0x10000000, 0x1030000000
UNWRITTEN = 0xA5

ELEMENT = {"fp": numpy.float32, "hp": numpy.float16, "dp": numpy.float64, "i8": numpy.int8, "i16": numpy.int16,
           "i32": numpy.int32, "c64": numpy.complex64, "c128": numpy.complex128}
ALIGNMENT = {"c64": 4, "c128": 8}
CHIP_OF = {"hp": "MT7004", "dp": "FT78NE", "i8": "FT78NE", "c128": "FT78NE"}  # the others exist on both


@dataclasses.dataclass(frozen=True)
class Value:
    """A number, or a parameter array that is no operand."""

    name: str
    value: object


@dataclasses.dataclass(frozen=True)
class Input:
    name: str
    values: numpy.ndarray


@dataclasses.dataclass(frozen=True)
class Output:
    """`values`: what it holds before the call (in place); None: nothing yet."""

    name: str
    count: int
    dtype: type
    values: numpy.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Table:
    """A parameter array of pointers: to arrays, to addresses (At), or NULL (None)."""

    name: str
    entries: list
    operands: bool = True


@dataclasses.dataclass(frozen=True)
class At:
    """A stand-in for an operand's own buffer: an address the operand is copied to, or an address as it is."""

    address: int
    copy: bool = True


@dataclasses.dataclass(frozen=True)
class Operator:
    name: str
    prefixes: tuple[str, ...]
    parameters: Callable[[str], list]  # of a prefix, in the function's order, without core_mask
    spaces: str = "sp"

    def functions(self) -> Iterable[tuple[str, str]]:
        return [(prefix, space) for prefix in self.prefixes for space in self.spaces]

    def symbol(self, prefix: str, space: str) -> str:
        return f"{prefix}_{self.name}_{space}".removeprefix("_")  # one operator has no prefix


def aligned_bytes(content: bytes, offset: int = 0):
    """A cffi buffer that holds `content` at `offset` from a multiple of 64; the owner and the address."""
    owner = ffi.new("char[]", 2 * len(content) + 512)  # room for an output placed behind it
    address = (int(ffi.cast("uintptr_t", owner)) + 63) // 64 * 64 + offset
    ffi.memmove(ffi.cast("char *", address), content, len(content))
    return owner, address


def memory(address: int, size: int) -> bytes:
    return bytes(ffi.buffer(ffi.cast("char *", address), size))


def initial_bytes(parameter) -> bytes:
    if isinstance(parameter, Input):
        return numpy.ascontiguousarray(parameter.values).tobytes()
    if parameter.values is not None:
        return numpy.ascontiguousarray(parameter.values).tobytes()
    return bytes([UNWRITTEN]) * (parameter.count * numpy.dtype(parameter.dtype).itemsize)


def half_by_value(value: float) -> float:
    """A double whose low 16 bits are those of the half: _Float16 is passed in a vector register, as a double is."""
    return struct.unpack("<d", numpy.float16(value).tobytes() + bytes(6))[0]


@functools.cache
def function(symbol: str):
    """The function and its parameter types. cffi knows no half: by value it is declared as uint16_t, which would be
    passed in another register, so such functions are called as taking a double."""
    plain = getattr(lib, symbol)
    types = list(ffi.typeof(plain).args)
    double = ffi.typeof("double")
    types = [double if kind is ffi.typeof("uint16_t") else kind for kind in types]
    return ffi.cast(f"void(*)({', '.join(kind.cname for kind in types)})", plain), types


class Invocation:
    """One call: its arguments, and what the outputs held before."""

    def __init__(self, symbol: str, parameters: list, replaced: dict, core_mask: int | None, mask_position: int = -1):
        self.symbol, self.owners, self.outputs, self.arguments = symbol, [], {}, []
        self.function, types = function(symbol)
        declared = list(ffi.typeof(getattr(lib, symbol)).args)
        if core_mask is not None:  # nearly always the last
            mask_position %= len(declared)
            types, declared = (kinds[:mask_position] + kinds[mask_position + 1:] for kinds in (types, declared))
        by_name = {}
        for parameter, ctype, declared_type in zip(parameters, types, declared):
            instead = replaced.get(parameter.name, parameter)
            if isinstance(parameter, Table):
                self.arguments.append(self.table(instead, parameter, ctype))
                continue
            if isinstance(parameter, Value):
                by_value = ctype is not declared_type
                plain = self.plain(instead, ctype)
                self.arguments.append(half_by_value(plain) if by_value else plain)
                continue
            content = initial_bytes(instead if isinstance(instead, Input) else parameter)
            address = self.address(instead, parameter, content, by_name)
            by_name[parameter.name] = address
            readable = address and not (isinstance(instead, At) and not instead.copy)
            if isinstance(parameter, Output) and readable:
                self.outputs[parameter.name] = (address, memory(address, len(content)))
            self.arguments.append(ffi.cast(ctype, address))
        # operands that share memory have been written one over the other by now
        self.outputs = {name: (address, memory(address, len(content))) for name, (address, content) in self.outputs.items()}
        if core_mask is not None:
            self.arguments.insert(mask_position, core_mask)

    def table(self, instead, parameter, ctype):
        if instead is None:
            return ffi.NULL
        addresses = []
        for entry, own in zip(instead.entries, parameter.entries):
            if isinstance(entry, At):
                if entry.copy:
                    content = numpy.ascontiguousarray(own).tobytes()
                    ffi.memmove(ffi.cast("char *", entry.address), content, len(content))
                addresses.append(entry.address)
            elif entry is None:
                addresses.append(0)
            else:
                owner, address = aligned_bytes(numpy.ascontiguousarray(entry).tobytes())
                self.owners.append(owner)
                addresses.append(address)
        pointers = ffi.new("uintptr_t[]", addresses)
        self.owners.append(pointers)
        return ffi.cast(ctype, pointers)

    def plain(self, value, ctype):
        value = value.value if isinstance(value, Value) else value
        if value is None:
            return ffi.NULL
        if isinstance(value, numpy.ndarray):
            owner, address = aligned_bytes(value.tobytes())
            self.owners.append(owner)
            return ffi.cast(ctype, address)
        if isinstance(value, bytes):
            self.owners.append(ffi.new("char[]", value))
            return self.owners[-1]
        if isinstance(value, ffi.CData):
            self.owners.append(value)
            return value
        return ffi.cast(ctype, value) if ctype.kind == "pointer" else value

    def address(self, instead, parameter, content: bytes, by_name: dict) -> int:
        if isinstance(instead, At):
            if instead.copy:
                ffi.memmove(ffi.cast("char *", instead.address), content, len(content))
            return instead.address
        if isinstance(instead, tuple):  # (name of another operand, bytes from its start)
            return by_name[instead[0]] + instead[1]
        if instead is None:
            return 0
        owner, address = aligned_bytes(content, instead if isinstance(instead, int) else 0)
        self.owners.append(owner)
        return address

    def run(self) -> Result:
        self.function(*self.arguments)
        untouched = all(memory(address, len(content)) == content
                        for address, content in self.outputs.values())
        return Result(last_error().status, untouched)

    def output(self, name: str, dtype) -> numpy.ndarray:
        address, content = self.outputs[name]
        return numpy.frombuffer(memory(address, len(content)), dtype)


COUNT = 6


@functools.cache
def sample(prefix: str, count: int, seed: int) -> numpy.ndarray:
    """Values every operator accepts: between 0 and 1, or small integers. Not to be written: the cases of an operator have
    the same ones."""
    random = numpy.random.default_rng(seed)
    values = random.integers(1, 5, count) if prefix.startswith("i") else random.uniform(0.1, 0.9, count)
    if prefix.startswith("c"):
        values = values + 1j * random.uniform(0.1, 0.9, count)
    values = values.astype(ELEMENT[prefix])
    values.flags.writeable = False
    return values


def described(text: str) -> Callable[[str], list]:
    """Parameters from a description: "in x, inout y, out z, one sum, n length, num scale=2, floats a=0.1 0.9,
    ints b=0 6"."""

    def parameters(prefix: str) -> list:
        built = []
        for position, part in enumerate(text.split(", ")):
            kind, _, rest = part.partition(" ")
            name, _, value = rest.partition("=")
            element = ELEMENT[prefix]
            if kind == "in":
                built.append(Input(name, sample(prefix, COUNT, position)))
            elif kind == "inout":
                built.append(Output(name, COUNT, element, sample(prefix, COUNT, position)))
            elif kind == "out":
                built.append(Output(name, COUNT, numpy.dtype(value or element).type))
            elif kind == "one":
                built.append(Output(name, 1, numpy.dtype(value or element).type))
            elif kind == "n":
                built.append(Value(name, COUNT))
            elif kind == "num":
                built.append(Value(name, float(value) if "." in value else int(value)))
            else:
                dtype = {"floats": numpy.float32, "ints": numpy.int32}[kind]
                built.append(Input(name, numpy.array(value.split(), dtype)))
        return built

    return parameters


def clear() -> None:
    getattr(lib, "understudy_clear_last_error", lambda: None)()


def invoke(operator: Operator, prefix: str, space: str, core_mask: int = 0xFF, /, **replaced) -> Result:
    parameters = operator.parameters(prefix)
    mask = core_mask if space == "s" else None
    position = operator.mask_position() if hasattr(operator, "mask_position") else -1
    return Invocation(operator.symbol(prefix, space), parameters, replaced, mask, position).run()


def compute(symbol: str, parameters: list, core_mask: int = 0xFF) -> dict[str, numpy.ndarray]:
    """Calls a function and returns its outputs by name; a refusal fails."""
    clear()
    call = Invocation(symbol, parameters, {}, core_mask if symbol.endswith("_s") else None)
    call.run()
    assert last_error().rule == "", last_error()
    return {p.name: call.output(p.name, p.dtype) for p in parameters if isinstance(p, Output)}


def all_refused(rule: str, calls: Iterable[Callable[[], Result]]) -> Callable[[], Result]:
    """Several calls that the same rule refuses, seen as one."""

    def run() -> Result:
        untouched = []
        for call in calls:
            clear()
            result = call()
            assert last_error().rule in (rule, ""), (rule, last_error())
            assert last_error().rule == rule or not hasattr(lib, "understudy_last_rule"), "accepted"
            untouched.append(result.untouched)
        return Result(result.status, all(untouched))

    return run


def all_accepted(calls: Iterable[Callable[[], Result]]) -> Callable[[], Result]:
    def run() -> Result:
        for call in calls:
            assert call().status == 0, last_error()
        return Result(0)

    return run


def case(operator: Operator, prefix: str, space: str, tail: str, refused: list[dict], accepted: list[dict]) -> RuleCase:
    """The pair of one rule: the parameters that differ from the operator's ordinary call."""
    rule = f"{operator.symbol(prefix, space)}/{tail}"

    def call(changes: dict) -> Callable[[], Result]:
        mask = changes.get("core_mask", 0xFF)
        others = {name: value for name, value in changes.items() if name != "core_mask"}
        return lambda: invoke(operator, prefix, space, mask, **others)

    return RuleCase(rule, all_refused(rule, [call(changes) for changes in refused]),
                    all_accepted([call(changes) for changes in accepted]))


def operand_size(parameter) -> int:
    return len(initial_bytes(parameter))


def operand_cases(operator: Operator, prefix: str, space: str, optional: tuple[str, ...]) -> list[RuleCase]:
    """The rules of every operand: null, alignment, window, private, other-core."""
    cases = []
    for operand in operator.parameters(prefix):
        if isinstance(operand, (Value, Table)):
            continue
        name, size = operand.name, operand_size(operand)
        element = (operand.values if isinstance(operand, Input) else numpy.empty(0, operand.dtype)).dtype
        alignment = element.itemsize // (2 if element.kind == "c" else 1)

        def add(rule, refused, accepted):
            cases.append(case(operator, prefix, space, f"{name}/{rule}", [{name: r} for r in refused],
                              [{name: a} for a in accepted]))

        if name not in optional:
            add("null", [None], [operand])
        if alignment > 1:
            add("alignment", [1, alignment // 2], [alignment])
        if size > element.itemsize:
            add("window", [At(DDR_END - size + alignment, copy=False), At(DDR_END - alignment, copy=False)],
                [At(DDR_END - size)])
        if space == "s":
            add("private", [At(L2)], [At(DDR), At(SMC)])
        else:
            add("other-core", [At(L2_OF_CORE_3, copy=False)], [At(L2), At(DDR)])
    return cases


def mask_cases(operator: Operator, prefix: str) -> list[RuleCase]:
    return [
        case(operator, prefix, "s", "core_mask/negative", [{"core_mask": -1}, {"core_mask": -(2**31)}],
             [{"core_mask": 1}, {"core_mask": 2**31 - 1}]),
    ]


def length_case(operator: Operator, prefix: str, space: str, name: str) -> RuleCase:
    """A negative number of elements; none at all is fine, and then nobody looks at the operands."""
    nothing = {p.name: None for p in operator.parameters(prefix) if not isinstance(p, Value)}
    return case(operator, prefix, space, f"{name}/negative", [{name: -1}, {name: -(2**31)}],
                [{name: 0}, {name: 0, **nothing}, {name: 1}])


def overlap_case(operator: Operator, prefix: str, space: str, output: str) -> RuleCase:
    """An output shifted against an operand is refused; the same array as an input, or right behind it, is fine."""
    parameters = operator.parameters(prefix)
    own = next(p for p in parameters if not isinstance(p, Value) and p.name == output)
    position = parameters.index(own)
    size = numpy.dtype(own.dtype).itemsize
    # only operands before the output in the argument list have an address already when the output's is chosen
    others = [p for p in parameters[:position] if not isinstance(p, Value) and operand_size(p) == operand_size(own)]
    shifted = [{output: (p.name, shift)} for p in others for shift in (size, (COUNT - 1) * size)]
    shifted += [{output: (p.name, 0)} for p in others if isinstance(p, Output)]
    legal = [{output: (p.name, 0)} for p in others if isinstance(p, Input)]
    return case(operator, prefix, space, f"{output}/overlap", shifted,
                legal + [{output: (p.name, COUNT * size)} for p in others])


def common_cases(operator: Operator, optional: tuple[str, ...] = ()) -> list[RuleCase]:
    cases = []
    for prefix, space in operator.functions():
        cases += operand_cases(operator, prefix, space, optional)
        if space == "s":
            cases += mask_cases(operator, prefix)
    return cases


def chip_cases(operator: Operator) -> list[RuleCase]:
    """Functions whose prefix one of the chips lacks; their neighbour is a prefix that it has."""
    cases = []
    for prefix, space in operator.functions():
        if prefix not in CHIP_OF:
            continue
        lacking = "FT78NE" if CHIP_OF[prefix] == "MT7004" else "MT7004"
        others = [other for other in operator.prefixes if CHIP_OF.get(other, lacking) == lacking]
        assert others, f"{operator.name}: no prefix of {lacking}"
        cases.append(RuleCase(f"{operator.symbol(prefix, space)}/prefix/chip",
                              lambda p=prefix, s=space: invoke(operator, p, s),
                              lambda p=others[0], s=space: invoke(operator, p, s),
                              env={"UNDERSTUDY_FT_CHIP": lacking}))
    return cases
