"""What people and type checkers are told of an operator's NumPy function: signature, types, docstring, from its page.

Only the standard library: the build makes the stubs (`ops.pyi`) with this file before the package is there.
"""

import keyword

PRODUCT = "910B"
TYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64", "I8": "int8", "I16": "int16", "I32": "int32",
         "I64": "int64", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "B": "bool", "C64": "complex64",
         "C128": "complex128"}  # fmt: skip
# Kind of a parameter on a page -> annotation, and how a person calls it. Operators have the names of built-in types.
KINDS = {
    "T": ("ArrayLike", "array"), "S": ("Number", "number"), "IA": ("Sequence[builtins.int]", "integers"),
    "FA": ("Sequence[builtins.float]", "numbers"), "BA": ("Sequence[builtins.bool]", "truth values"),
    "b": ("builtins.bool", "true or false"), "d": ("builtins.float", "number"), "f": ("builtins.float", "number"),
    "str": ("builtins.str", "text"), "dt": ("DTypeLike", "NumPy dtype"),
}  # fmt: skip
INTEGER = ("builtins.int", "integer")


def python_name(name: str) -> str:
    return name + "_" * keyword.iskeyword(name)  # lambda_


def is_result(parameter: dict) -> bool:
    return parameter["written"] and not parameter["in_place"]


def inputs(entry: dict) -> list[dict]:
    """The function's parameters: those that may be left out come last."""
    given = [parameter for parameter in entry["parameters"] if not is_result(parameter)]
    return [p for p in given if not p["optional"]] + [p for p in given if p["optional"]]


def shape_rule(entry: dict, name: str) -> str:
    """The expression of an output's shape; "" when the page does not give it."""
    for check in entry["checks"]:
        if check[0] == "shape" and check[1] == name:
            return " ".join(check[3:])
        if check[0] == "same-shape" and name in check[2:]:
            return check[1]
    return ""


def is_simple(entry: dict) -> bool:
    """Tensors in, tensors out, and the outputs' shapes are known; no lists: the operators that have a function."""
    kinds = {parameter["kind"] for parameter in entry["parameters"]}
    outputs = [p["name"] for p in entry["parameters"] if is_result(p)]
    return bool(entry["planned"]) and not {"TL", "SL"} & kinds and all(shape_rule(entry, name) for name in outputs)


def results(entry: dict) -> list[dict]:
    """What the function returns, in the operator's order."""
    return [p for p in entry["parameters"] if p["kind"] == "T" and p["written"]]


def _types(entry: dict, name: str) -> str:
    listed = entry["dtypes"].get(name, {}).get(PRODUCT, [])
    return " ".join(TYPES[kind] for kind in listed if kind in TYPES)


def _rank(entry: dict, name: str) -> str:
    ranges = [check[1] for check in entry["checks"] if check[0] == "rank" and name in check[2:]]
    return f", rank {ranges[0].replace('-', ' to ')}" if ranges else ""


def _input_line(entry: dict, parameter: dict) -> str:
    name, what = parameter["name"], KINDS.get(parameter["kind"], INTEGER)[1]
    types = _types(entry, name) if parameter["kind"] == "T" else ""
    return (f"    {python_name(name)}: {what}{f' of {types}' if types else ''}{_rank(entry, name)}"
            f"{'; may be None' if parameter['optional'] else ''}")  # fmt: skip


def _result_line(entry: dict, parameter: dict) -> str:
    name = parameter["name"]
    if parameter["in_place"]:
        return f"    {name}, changed: a device array itself, of others a copy"
    types = _types(entry, name)
    rule = shape_rule(entry, name)
    shape = f"the shape of {rule}" if rule.isidentifier() else f"shape {rule}"
    return f"    {name}: {shape}{f'; {types}' if types else ''}"


def _statuses(entry: dict) -> list[str]:
    """Status by status what is refused, without what only a program in C can do."""
    subjects: dict[tuple[int, str], list[str]] = {}
    for rule in entry["rules"]:
        if rule["kind"] not in ("phase", "handle", "null", "view") and rule["source"] != "cannot-check":
            told = subjects.setdefault((rule["status"], rule["sentence"]), [])
            if rule["subject"] not in told:
                told.append(rule["subject"])
    return [f"    {status}: {', '.join(told)}: {sentence}" for (status, sentence), told in sorted(subjects.items())]


def docstring(entry: dict) -> str:
    """Formula, parameters, results, statuses and source."""
    lines = [f"{entry['function']}: {entry['meaning'] or entry['description']}", ""]
    lines += [_input_line(entry, parameter) for parameter in inputs(entry)]
    lines += ["    out_dtype: of the result; by default what the page gives", "", "Returns"]
    lines += [_result_line(entry, parameter) for parameter in results(entry)]
    refused = _statuses(entry)
    if refused:
        lines += ["", "Raises StatusError with"] + refused
    return "\n".join([*lines, "", f"Source: {entry['page']}."])


def stub(entry: dict) -> str:
    """The function as a stub declares it."""
    parameters = []
    for parameter in inputs(entry):
        annotation = KINDS.get(parameter["kind"], INTEGER)[0]
        optional = parameter["optional"]
        parameters.append(f"{python_name(parameter['name'])}: {annotation}{' | None = None' if optional else ''}")
    count = len(results(entry))
    result = "Array" if count == 1 else f"builtins.tuple[{', '.join(['Array'] * count)}]"
    signature = ", ".join([*parameters, "*", "out_dtype: DTypeLike | None = None"])
    return f"def {entry['python']}({signature}) -> {result}:\n{quoted(docstring(entry))}"


def quoted(text: str) -> str:
    """A docstring as it stands in a function."""
    lines = text.replace("\\", "\\\\").replace('"""', "'''").splitlines()
    body = "\n".join(f"    {line}".rstrip() for line in lines[1:])
    return f'    """{lines[0]}\n{body}\n    """\n'
