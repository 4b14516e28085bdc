"""The operators of the FT DSP manual, read from manual.toml: signatures, what each parameter has to be, and the rules that
follow. The build makes headers, C entries and rules from it (python/generate_ftdsp.py), the tests their cases.

Standard library and toml.py only: the build runs it before there is a package.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import pathlib
import re

from understudy import toml

C_TYPES = {"fp": "float", "hp": "half", "dp": "double", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t",
           "c64": "float", "c128": "double"}  # fmt: skip
SIZES = {"fp": 4, "hp": 2, "dp": 8, "i8": 1, "i16": 2, "i32": 4, "c64": 8, "c128": 16}
ALIGNMENTS = {**SIZES, "c64": 4, "c128": 8}
DTYPES = {"fp": "FLOAT32", "hp": "FLOAT16", "dp": "FLOAT64", "i8": "INT8", "i16": "INT16", "i32": "INT32",
          "c64": "COMPLEX64", "c128": "COMPLEX128"}  # fmt: skip
PREFIX_OF_C_TYPE = {"float": "fp", "half": "hp", "double": "dp", "int8_t": "i8", "int16_t": "i16", "int32_t": "i32",
                    "int": "i32", "bool": "i8", "char": "i8", "void": "i8", "uint8_t": "i8"}  # fmt: skip
OTHER_C_TYPES = {"longlong": "long long", "void_of_int": "void"}  # type names of the table that are one word
CHIP_OF = {"hp": "MT7004", "dp": "FT78NE", "i8": "FT78NE", "c128": "FT78NE"}  # the others exist on both
PREFIX_SETS = {"STD": "fp hp dp i8 i16 i32 c64 c128", "R": "fp hp dp i8 i16 i32", "G": "fp hp", "G8": "fp hp i8"}

OPERANDS = {"in", "out", "inout", "scratch"}
LIMIT = 2**44  # elements: more than any memory holds


@dataclasses.dataclass(frozen=True, eq=False)
class Parameter:
    """role: in, out, inout, scratch: an operand; size (not negative), positive, rank (of a shape), choice (of the numbers in
    `values`), value (any number); dims: a shape, of as many sizes as `factors` says; array: another parameter array;
    table: an array of pointers to operands; tensors: one of pointers to structures; struct; ignored: a pointer that is not read; mask;
    private: a number that only the _p form has, and nothing reads."""

    role: str
    type: str  # as in C, without the star; T is the element
    name: str
    const: bool
    pointer: bool
    optional: bool
    factors: tuple[str, ...] | None  # of the number of elements; None: the operator's own matter
    values: tuple[float, ...]  # of the legal call that tests begin with; of a choice all of them
    count: int  # elements in that call
    same: tuple[str, ...]  # inputs that may be the same array

    @property
    def is_operand(self) -> bool:
        return self.role in OPERANDS

    @property
    def is_written(self) -> bool:
        return self.role in ("out", "inout", "scratch")


@dataclasses.dataclass(frozen=True, eq=False)
class Operator:
    key: str  # in the table, and of the C function that does the work
    name: str
    header: str
    text: str
    where: str
    prefixes: tuple[str, ...]  # ("",): none
    spaces: str
    symbol_pattern: str
    types: dict[str, dict[str, str]]  # own type letters: prefix -> C type
    parameters: tuple[Parameter, ...]
    structure: str  # C text of a parameter structure
    extra: str  # more C text for the end of the header
    memory: bool  # takes working memory, which may run out
    calls: str  # the C function, where several entries of the table share it

    @property
    def mask_decides(self) -> bool:
        """Whether the name says nothing of the space: a mask of one core makes the call a private one."""
        return "{space}" not in self.symbol_pattern

    def symbol(self, prefix: str, space: str) -> str:
        return self.symbol_pattern.format(prefix=prefix, name=self.name, space=space)

    def functions(self) -> list[tuple[str, str]]:
        return [(prefix, space) for prefix in self.prefixes for space in self.spaces]

    def c_type(self, parameter: Parameter, prefix: str) -> str:
        if parameter.type == "T":
            return C_TYPES[prefix]
        if parameter.type in OTHER_C_TYPES:
            return OTHER_C_TYPES[parameter.type]
        own = self.types.get(parameter.type)
        return own.get(prefix, C_TYPES[prefix]) if own else parameter.type

    def element(self, parameter: Parameter, prefix: str) -> str:
        """The prefix whose elements an operand has."""
        if parameter.type == "void_of_int":
            return "i32"
        return prefix if parameter.type == "T" else PREFIX_OF_C_TYPE[self.c_type(parameter, prefix)]

    def operands(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if parameter.is_operand]


LINE = re.compile(r"(?P<role>\w+)(?P<optional>\??)\s+(?P<const>const\s+)?(?P<type>\w+)\s+(?P<star>\**)(?P<name>\w+)"
                  r"(?P<array>\[\])?(?:\s*:\s*(?P<rest>.*))?$")  # fmt: skip


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) if re.search(r"[.e]|inf|nan", word) else int(word) for word in text.split())


def _parameters(text: str) -> tuple[Parameter, ...]:
    """One a line: role type name : count = values ~ inputs it may be. `count` is a product of sizes and shapes, or a question
    mark and a number where only the operator itself knows it. Of a rank it is the lowest; of sizes, choices, values and
    arrays there are only the values."""
    made: list[Parameter] = []
    sizes: dict[str, int] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        found = LINE.match(line)
        if not found:
            raise ValueError(f"not a parameter: {line}")
        rest, _, same = (found["rest"] or "").partition("~")
        count, _, values = rest.partition("=")
        factors, elements = None, 0
        if found["role"] in OPERANDS:
            if count.strip().startswith("?"):
                elements = int(count.strip()[1:])
            else:
                factors = tuple(word for word in re.split(r"[\s*]+", count.strip()))
                elements = math.prod(sizes[name] if name in sizes else int(name) for name in factors)
        elif found["role"] in ("dims", "rank"):
            factors = (count.strip(),)
        else:
            values = rest
        sample = _numbers(values)
        made.append(Parameter(found["role"], found["type"], found["name"], bool(found["const"]),
                              bool(found["star"]) or bool(found["array"]), bool(found["optional"]), factors, sample, elements,
                              tuple(same.split())))  # fmt: skip
        if found["role"] in ("size", "positive", "dims"):
            sizes[found["name"]] = math.prod(int(number) for number in sample)
    return tuple(made)


def _with_sizes_first(text: str) -> str:
    """The lines of sizes in front: counts of operands may name parameters that come later."""
    lines = text.splitlines()
    return "\n".join(sorted(lines, key=lambda line: not line.strip().startswith(("size", "positive", "dims"))))


def _operator(key: str, entry: dict) -> Operator:
    ordered = [found["name"] for line in entry["parameters"].splitlines() if (found := LINE.match(line.strip()))]
    by_name = {parameter.name: parameter for parameter in _parameters(_with_sizes_first(entry["parameters"]))}
    parameters = [by_name[name] for name in ordered]
    spaces = entry.get("spaces", "sp")
    if "s" in spaces and "core_mask" not in by_name:
        parameters.append(Parameter("mask", "int", "core_mask", False, False, False, None, (), 0, ()))
    prefixes = entry["prefixes"]
    prefixes = tuple(PREFIX_SETS.get(prefixes, prefixes).split()) or ("",)
    name = entry.get("name", key)
    pattern = entry.get("symbol", "{prefix}_{name}_{space}" if prefixes[0] else "{name}_{space}")
    types = {letter: dict(pairs) for letter, pairs in entry.get("types", {}).items()}
    return Operator(key, name, entry.get("header", f"{name}.h"), entry["text"].strip(), entry["where"], prefixes, spaces,
                    pattern, types, tuple(parameters), entry.get("structure", ""), entry.get("extra", ""),
                    entry.get("memory", False), entry.get("calls", key))  # fmt: skip


def read(file: pathlib.Path) -> tuple[list[Operator], dict[str, list[str]]]:
    """The operators, and the headers that only include others."""
    content = toml.loads(file.read_text("utf-8"))
    aliases = content.pop("aliases", {})
    return [_operator(key, entry) for key, entry in content.items()], aliases


# ---- the rules that follow from a signature ----

UNALIGNED = "Not the address of such an element; nothing is stated."
REASONS = {  # rule -> status, sentence, source, why
    "chip": (1, "The chip has no functions of this element type.", "sheet", ""),
    "core_mask": (2, "core_mask is negative.", "choice", "The sign names no core; what the chip does is not known."),
    "negative": (3, "A size is negative.", "choice", "A size cannot be negative; the page does not say."),
    "positive": (3, "A size is less than 1.", "choice", "The operator divides by it; the page does not say."),
    "rank": (3, "A number of axes is none that is supported.", "choice", "Up to 8 axes are supported."),
    "shape": (3, "A size of a shape is negative, or the shape has more elements than any memory holds.", "choice",
              "A size cannot be negative; nothing is stated."),
    "shape-null": (5, "A parameter array is NULL.", "choice", "It is needed; nothing is stated."),
    "choice": (4, "A code is none of those that the page defines.", "choice", "The page does not say what others mean."),
    "null": (5, "An operand is NULL.", "choice", UNALIGNED),
    "alignment": (5, "An operand is not aligned to its elements.", "choice", UNALIGNED),
    "window": (6, "An operand leaves the memory it begins in.", "sheet", ""),
    "private": (6, "An operand of an _s function lies in a core's private memory.", "sheet", ""),
    "private-of-several": (6, "An operand lies in a core's private memory, and several cores take part.", "sheet", ""),
    "other-core": (6, "An operand of one core's call lies in another core's memory.", "sheet", ""),
    "overflow": (3, "An operand would have more elements than any memory holds.", "choice", "Sizes are ints; nothing is stated."),
    "no-memory": (8, "The host has no memory for the work.", "cannot-check", "Needs a host that is out of memory."),
    "overlap": (7, "What is written shares memory with another operand in a way the operator cannot take.", "choice",
                "The result would depend on the order of the elements, and so on core_mask."),
}  # fmt: skip


@functools.cache
def overflowing(operator: Operator, operand: Parameter) -> dict[str, int] | None:
    """Sizes (of shapes: their products) with which this operand has too many elements and none before it; None: there are
    none."""
    by_name = {p.name: p for p in operator.parameters}
    names = [name for name in dict.fromkeys(operand.factors or ()) if name in by_name]
    if not names:
        return None
    earlier = list(itertools.takewhile(lambda other: other is not operand, operator.operands()))

    def elements(other: Parameter, values: dict[str, int]) -> int:
        known = {p.name: math.prod(map(int, p.values)) if p.role == "dims" else int(p.values[0])
                 for p in operator.parameters if p.role in ("dims", "size", "positive")} | values  # fmt: skip
        return math.prod(known[name] if name in known else int(name) for name in other.factors)

    def candidates(name: str) -> list[int]:
        if by_name[name].role == "dims":
            return [1, 2**22, LIMIT] if len(by_name[name].values) > 1 else [1, 2**22, 2**30]
        return [1, 2**15, 2**22, 2**45 if by_name[name].type == "uint64_t" else 2**31 - 1]

    for chosen in itertools.product(*map(candidates, names)):
        values = dict(zip(names, chosen))
        if elements(operand, values) > LIMIT and all(elements(other, values) <= LIMIT for other in earlier if other.factors):
            return values
    return None


def operand_rules(operator: Operator, operand: Parameter, prefix: str, space: str) -> list[str]:
    """Names of the rules of one operand in one function."""
    element = operator.element(operand, prefix)
    found = [] if operand.optional else ["null"]
    if ALIGNMENTS[element] > 1:
        found.append("alignment")
    if operand.count > 1:
        found.append("window")
    if space == "s":
        found.append("private")
    if space == "p" or operator.mask_decides:
        found.append("other-core")
    if overflowing(operator, operand):
        found.append("overflow")
    if operand.is_written and len(operator.operands()) > 1:
        found.append("overlap")
    return found


def rules(operator: Operator) -> dict[str, str]:
    """Rule ids -> the reason, a key of REASONS."""
    found = {}
    for prefix, space in operator.functions():
        function = operator.symbol(prefix, space)
        if operator.memory:
            found[f"{function}/scratch/no-memory"] = "no-memory"
        if prefix in CHIP_OF:
            found[f"{function}/prefix/chip"] = "chip"
        for parameter in operator.parameters:
            if parameter.is_operand:
                for rule in operand_rules(operator, parameter, prefix, space):
                    several = rule == "private" and operator.mask_decides
                    found[f"{function}/{parameter.name}/{rule}"] = "private-of-several" if several else rule
            elif parameter.role == "size" and parameter.type != "uint64_t":
                found[f"{function}/{parameter.name}/negative"] = "negative"
            elif parameter.role == "positive":
                found[f"{function}/{parameter.name}/range"] = "positive"
            elif parameter.role == "rank":
                found[f"{function}/{parameter.name}/range"] = "rank"
            elif parameter.role in ("dims", "array"):
                found[f"{function}/{parameter.name}/null"] = "shape-null"
                if parameter.role == "dims":
                    found[f"{function}/{parameter.name}/range"] = "shape"
            elif parameter.role == "choice":
                found[f"{function}/{parameter.name}/range"] = "choice"
            elif parameter.role == "mask" and space == "s":
                found[f"{function}/{parameter.name}/negative"] = "core_mask"
    return found


def rules_json(operators: list[Operator]) -> str:
    """The catalogue entries of these rules."""
    entries = []
    for operator in operators:
        groups: dict[str, list[str]] = {}
        for rule, reason in rules(operator).items():
            groups.setdefault(reason, []).append(rule)
        for reason, names in groups.items():
            status, sentence, source, why = REASONS[reason]
            entries.append({"id": f"{{{','.join(names)}}}", "status": status, "sentence": sentence, "source": source,
                            "where": operator.where, "why": why})  # fmt: skip
    return json.dumps({"library": "libftdsp.so", "rule": entries}, ensure_ascii=False, indent=1)
