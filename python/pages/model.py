"""Operator pages: what the vendor's page says of an operator, as data.

A page file is named like the vendor's header and holds an operator per table; docs/adding-an-operator.md describes its keys.
Everything else (headers, both functions, export lists, rules, the tests' cases, the NumPy layer) is derived from `Operator`.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re

from understudy import toml

PRODUCTS = ("910", "910B", "910_93")  # UNDERSTUDY_SOC Ascend910, Ascend910B, Ascend910_93

DTYPES = {
    "F32": "ACL_FLOAT", "F16": "ACL_FLOAT16", "BF16": "ACL_BF16", "F64": "ACL_DOUBLE", "I8": "ACL_INT8",
    "I16": "ACL_INT16", "I32": "ACL_INT32", "I64": "ACL_INT64", "U8": "ACL_UINT8", "U16": "ACL_UINT16",
    "U32": "ACL_UINT32", "U64": "ACL_UINT64", "B": "ACL_BOOL", "C32": "ACL_COMPLEX32", "C64": "ACL_COMPLEX64",
    "C128": "ACL_COMPLEX128", "I4": "ACL_INT4", "STRING": "ACL_STRING", "HF8": "ACL_HIFLOAT8",
    "F8E5": "ACL_FLOAT8_E5M2", "F8E4": "ACL_FLOAT8_E4M3FN", "F8E8": "ACL_FLOAT8_E8M0",
}  # fmt: skip
# What no kernel computes on: such a type is refused as the pages of products without it do.
NOT_EMULATED = {"C32", "STRING", "HF8", "F8E5", "F8E4", "F8E8"}

TENSOR, LIST, SCALAR, SCALARS, INTS, FLOATS, BOOLS = "T", "TL", "S", "SL", "IA", "FA", "BA"
OBJECTS = (TENSOR, LIST, SCALAR, SCALARS, INTS, FLOATS, BOOLS)
VALUES = {"i64": "int64_t", "i32": "int32_t", "i8": "int8_t", "u64": "uint64_t", "u32": "uint32_t", "b": "bool", "d": "double",
          "f": "float", "dt": "aclDataType", "str": "const char *"}  # fmt: skip

NULL_POINTER, INVALID, RUNTIME = 161001, 161002, 361001
GENERIC_STATUS = {"executor/exhausted": 561101, "executor/handle": 561000, "executor/operator": 561000}


class PageError(Exception):
    """A page that does not follow the format; the message names file, operator and place."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    mutable: bool  # the prototype's pointer is not const
    written: bool
    optional: bool
    in_place: bool  # read and written: one tensor is both
    updated: bool  # in place, or changed by what it holds: the NumPy layer gives it contents

    @property
    def is_object(self) -> bool:
        return self.kind in OBJECTS


@dataclasses.dataclass(frozen=True)
class Rule:
    """A refusal: `parameter/rule`, its status and sentence; how the tests break it."""

    tail: str
    status: int
    sentence: str
    kind: str  # the check's kind: tests know how to break those they know
    subject: str = ""  # the parameter
    check: int = -1  # number of the check in the operator's list
    breaks: dict | None = None
    legal: dict | None = None
    source: str = "sheet"
    why: str = ""
    env: dict | None = None
    always: bool = False  # every call that comes so far is refused


@dataclasses.dataclass(frozen=True)
class Check:
    """One line of `checks`: `words` behind its kind, or a table of its own."""

    kind: str
    words: tuple[str, ...]
    status: int
    table: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Operator:
    name: str  # "Add"
    header: str  # "aclnn_add.h"
    library: str  # "math"
    page: str
    meaning: str
    parameters: list[Parameter]
    dtypes: dict[str, dict[str, list[str]]]  # parameter -> product -> types
    ranks: dict[str, tuple[int, int]]
    checks: list[Check]
    computes: str  # the type in which an element-wise plan computes, as the page says it
    plan: str  # a C expression; empty: the first function is in a C file of its own
    status: int
    result: str
    shapes: dict[str, str]  # outputs whose shape no check gives: for the NumPy layer
    example: dict
    given: dict[str, dict]  # optional parameter -> what changes in `example` where it is given
    usual: dict[str, object]  # parameter -> its value where a NumPy caller gives none
    notes: list[str]
    choices: list[dict]
    unreachable: dict[str, str]
    null_items: set[str]  # lists that may have NULL among their tensors
    missing: int  # status where a parameter is NULL
    values: dict
    description: str = ""  # instead of the one that is made from meaning, types and ranks
    family: str = ""  # src_c/ascend/opapi/<family>.h declares what checks and plan call
    prefix: str = "aclnn"
    asks_most: bool = False  # there is a GetMaxWorkspaceSize, too
    empty_is_null: bool = False  # an optional input of shape [0] is not given

    @property
    def function(self) -> str:
        return self.prefix + self.name

    @property
    def python_name(self) -> str:
        return snake_case(self.name)

    def parameter(self, name: str) -> Parameter:
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise PageError(f"{self.header}: {self.name}: no parameter {name}")

    def outputs(self) -> list[Parameter]:
        return [parameter for parameter in self.parameters if parameter.written]


@dataclasses.dataclass(frozen=True)
class HostFunction:
    """A function of the page's header that runs on the host at once: a C file has it."""

    name: str
    header: str
    library: str
    page: str
    parameters: str  # as C has them
    description: str
    rules: list[Rule]
    choices: list[dict]

    @property
    def function(self) -> str:
        return "aclnn" + self.name


def snake_case(name: str) -> str:
    """InplaceAddcmul -> inplace_addcmul, Conv2dBackward -> conv2d_backward, LogAddExp2 -> log_add_exp2."""
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


# ---- reading -----------------------------------------------------------------------------------------------------------


def _parameters(operator: str, entry: dict, where: str) -> list[Parameter]:
    written = set(entry.get("writes", "").split())
    optional, updated = (set(entry.get(key, "").split()) for key in ("optional", "updates"))
    parameters = []
    for item in entry["parameters"].split(","):
        name, _, kind = item.strip().partition(":")
        mutable = kind.endswith("!")
        kind = kind.rstrip("!")
        if kind not in OBJECTS and kind not in VALUES:
            raise PageError(f"{where}: parameter {name} has unknown kind {kind}")
        is_written = name in written or (mutable and kind in (TENSOR, LIST) and "writes" not in entry)
        in_place = is_written and (name.endswith("Ref") and name != "outRef" or "Inplace" in operator)
        parameters.append(Parameter(name, kind, mutable, is_written, name in optional, in_place, in_place or name in updated))
    names = {parameter.name for parameter in parameters}
    if unknown := (written | optional | updated) - names:
        raise PageError(f"{where}: no parameters {sorted(unknown)}")
    return parameters


def _types(text: str, where: str) -> list[str]:
    types = text.split()
    if unknown := [name for name in types if name not in DTYPES]:
        raise PageError(f"{where}: unknown types {unknown}")
    return types


def _dtypes(entry: dict, parameters: list[Parameter], where: str) -> dict[str, dict[str, list[str]]]:
    """Types per parameter and product: the page's list, less what `except.PRODUCT` takes away.

    An exception is a row of clauses "[parameters:] no TYPES" or "[parameters:] only TYPES", divided by semicolons."""
    table = {}
    for names, text in entry.get("dtype", {}).items():
        types = entry["dtype"][text[1:]] if text.startswith("=") else text  # "=self": the list of self
        for name in names.split():
            table[name] = {product: _types(types, where) for product in PRODUCTS}
    for product, text in entry.get("except", {}).items():
        if product not in PRODUCTS:
            continue
        for clause in filter(None, (part.strip() for part in text.split(";"))):
            subject, _, rule = clause.rpartition(":")
            word, *types = rule.split()
            if word not in ("no", "only"):
                raise PageError(f"{where}: exception {clause!r} is neither 'no' nor 'only'")
            _types(" ".join(types), where)
            for name in subject.split() or list(table):
                if name not in table:
                    continue  # a scalar, or a parameter of the page that this one is like
                before = table[name][product]
                table[name][product] = [kind for kind in before if (kind in types) == (word == "only")]
    for per_product in table.values():
        for product in PRODUCTS:
            per_product[product] = [kind for kind in per_product[product] if kind not in NOT_EMULATED]
    return table


def _ranks(entry: dict) -> dict[str, tuple[int, int]]:
    ranks = {}
    for names, text in entry.get("rank", {}).items():
        low, _, high = str(text).partition("-")
        for name in names.split():
            ranks[name] = (int(low), int(high or low))
    return ranks


def _check(line: str | dict, status: int) -> Check:
    if isinstance(line, dict):
        kind = "call" if "call" in line else "when"
        return Check(kind, (), line.get("status", status), line)
    words = line.split()
    if words[0].isdigit():
        status = int(words.pop(0))
    return Check(words[0], tuple(words[1:]), status)


def _substituted(text: str, mapping: dict[str, str]) -> str:
    return re.sub(r"\b[A-Za-z_]\w*\b", lambda match: mapping.get(match[0], match[0]), text)


LIBRARIES = ("math", "nn", "cv", "transformer")
# What an operator's table, and one of a function of the host, may have.
KEYS = {"parameters", "meaning", "checks", "page", "library", "dtype", "rank", "plan", "except", "result", "family", "example",
        "choice", "writes", "optional", "shape", "like", "status", "given", "unreachable", "computes", "updates", "description",
        "asks_most", "empty_is_null", "null_items", "usual", "missing", "prefix"}  # fmt: skip
HOST_KEYS = {"host", "library", "page", "description", "rules", "choice"}
CHECK_KEYS = {"rule", "when", "say", "break", "legal", "call", "status", "rules", "env", "always"}


def _check_keys(entry: dict, where: str) -> None:
    """A misspelt key would be a rule that is not there."""
    checks = [line for line in entry.get("checks", []) if isinstance(line, dict)]
    found = [(set(entry), HOST_KEYS if "host" in entry else KEYS), (set(entry.get("except", {})), set(PRODUCTS)),
             ({key for line in checks for key in line}, CHECK_KEYS)]  # fmt: skip
    for given, known in found:
        if unknown := given - known:
            raise PageError(f"{where}: unknown keys {sorted(unknown)}; there are {sorted(known)}")
    if needed := {"page", "library", "description" if "host" in entry else "meaning"} - set(entry):
        raise PageError(f"{where}: needs {sorted(needed)}")
    if entry["library"] not in LIBRARIES:
        raise PageError(f"{where}: library is {entry['library']!r}, not one of {LIBRARIES}")


INHERITED = ("page", "library", "dtype", "rank", "shape", "except", "optional", "plan", "result", "computes", "example",
             "status", "values", "products", "choice")  # fmt: skip


def _with_base(entry: dict, base: dict | None) -> dict:
    """An entry with `like`: keys of the base that it does not give itself. Parameters that only the base has (its input and
    its output) stand for the one that only this entry has, the tensor changed in place."""
    if base is None:
        return entry
    own = [item.strip().partition(":")[0] for item in entry["parameters"].split(",")]
    others = [item.strip().partition(":")[0] for item in base["parameters"].split(",")]
    new = [name for name in own if name not in others] or entry.get("writes", "").split() or own
    mapping = {name: new[0] for name in others if name not in own} if new else {}
    merged = dict(entry)
    for key in INHERITED:
        by_name = key in ("dtype", "rank", "shape", "example")
        if key not in base or (key in merged and not by_name):
            continue
        value = base[key]
        if isinstance(value, str) and key in ("plan", "optional"):
            value = _substituted(value, mapping)
        elif key in ("result", "computes"):
            value = _substituted(value, mapping)
        elif key == "except":
            value = {product: _substituted(text, mapping) for product, text in value.items()}
        elif by_name:
            value = {mapping.get(name, name): _substituted(item, mapping) if key == "shape" else item
                     for name, item in value.items() if mapping.get(name, name) in own}  # fmt: skip
            for name, item in base[key].items():  # the base's input decides, not its output
                if key != "example" and mapping.get(name) and name == others[0]:
                    value[mapping[name]] = item
            value = {**value, **merged.get(key, {})}
        merged[key] = value
    return merged


def _content(file: pathlib.Path, host: bool) -> dict[str, dict]:
    """The tables of a page: those of functions of the host, which have the key `host`, or all others."""
    try:
        content = toml.loads(file.read_text("utf-8"))
    except toml.TOMLDecodeError as error:
        raise PageError(f"{file.name}: {error}") from None
    return {name: entry for name, entry in content.items() if ("host" in entry) == host}


def read_page(file: pathlib.Path) -> list[Operator]:
    content = _content(file, host=False)
    entries: dict[str, dict] = {}

    def entry_of(name: str, where: str) -> dict:
        """With what it inherits."""
        if name not in content:
            raise PageError(f"{where}: like names {name}, which is not on this page")
        if name not in entries:
            entry = content[name]
            base = entry_of(entry["like"], f"{file.name}: {name}") if "like" in entry else None
            entries[name] = _with_base(entry, base)
            _check_keys(entries[name], f"{file.name}: {name}")
        return entries[name]

    operators = []
    for name in content:
        where = f"{file.name}: {name}"
        try:
            operators.append(_operator(name, entry_of(name, where), file, where))
        except (KeyError, ValueError) as error:
            raise PageError(f"{where}: {error!r}") from None
    return operators


def _operator(name: str, entry: dict, file: pathlib.Path, where: str) -> Operator:
    parameters = _parameters(name, entry, where)
    status = entry.get("status", INVALID)
    return Operator(
        name=name,
        header=file.stem + ".h",
        library=entry["library"],
        page=entry["page"],
        meaning=entry["meaning"],
        parameters=parameters,
        dtypes=_dtypes(entry, parameters, where),
        ranks=_ranks(entry),
        checks=[_check(line, status) for line in entry.get("checks", [])],
        computes=entry.get("computes", ""),
        plan=entry.get("plan", ""),
        status=status,
        result=entry.get("result", ""),
        shapes=entry.get("shape", {}),
        example=entry.get("example", {}),
        given=entry.get("given", {}),
        usual=entry.get("usual", {}),
        notes=entry.get("notes", []),
        choices=entry.get("choice", []),
        unreachable=entry.get("unreachable", {}),
        null_items=set(entry.get("null_items", "").split()),
        missing=entry.get("missing", NULL_POINTER),
        values=entry.get("values", {}),
        description=" ".join(entry.get("description", "").split()),
        family=entry.get("family", ""),
        asks_most=entry.get("asks_most", False),
        empty_is_null=entry.get("empty_is_null", False),
        prefix=entry.get("prefix", "aclnn"),
    )


def _files(folder: pathlib.Path, stems: set[str]) -> list[pathlib.Path]:
    files = sorted(file for file in folder.glob("*.toml") if not stems or file.stem in stems)
    if missing := set(stems) - {file.stem for file in files}:
        raise PageError(f"no such pages: {sorted(missing)}")
    return files


def read_host_functions(folder: pathlib.Path, stems: set[str] = frozenset()) -> list[HostFunction]:
    return [_host_function(name, entry, file)
            for file in _files(folder, stems) for name, entry in _content(file, host=True).items()]  # fmt: skip


def _host_function(name: str, entry: dict, file: pathlib.Path) -> HostFunction:
    _check_keys(entry, f"{file.name}: {name}")
    rules = [Rule(rule["rule"], rule["status"], rule["say"], "host", source=rule.get("source", "sheet"), why=rule.get("why", ""))
             for rule in entry["rules"]]  # fmt: skip
    return HostFunction(name, f"{file.stem}.h", entry["library"], entry["page"], entry["host"], entry["description"], rules,
                        entry.get("choice", []))  # fmt: skip


def read_pages(folder: pathlib.Path, stems: set[str] = frozenset()) -> list[Operator]:
    """All operators, or those of the pages with these names, by header and in the order of their pages."""
    operators = [operator for file in _files(folder, stems) for operator in read_page(file)]
    names = [operator.name for operator in operators]
    if doubled := {name for name in names if names.count(name) > 1}:
        raise PageError(f"on two pages: {sorted(doubled)}")
    return operators
