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
    "TL": ("Sequence[ArrayLike]", "arrays"), "SL": ("Sequence[Number]", "numbers"),
}  # fmt: skip
TENSORS = ("T", "TL")
AT_MOST = "at most "
INTEGER = ("builtins.int", "integer")
# Name and kind of a parameter -> its value where the caller gives none: with it the parameter changes nothing, or the result
# is the one that PyTorch's function has by default. None as `dtype`: the type of the first array.
USUAL = {
    ("alpha", "S"): 1, ("beta", "S"): 1, ("scale", "S"): 1, ("inputScale", "S"): 1, ("cubeMathType", "i8"): 0,
    ("keepDim", "b"): False, ("keepDims", "b"): False, ("keepdim", "b"): False, ("dtype", "dt"): None,
    ("ceilMode", "b"): False, ("countIncludePad", "b"): True, ("divisorOverride", "i64"): 0, ("alignCorners", "b"): False,
    ("scales", "d"): 0.0, ("scalesD", "d"): 0.0, ("scalesH", "d"): 0.0, ("scalesW", "d"): 0.0, ("diagonal", "i64"): 0,
    ("largest", "b"): True, ("sorted", "b"): True, ("descending", "b"): False, ("right", "b"): False, ("outInt32", "b"): False,
    ("reduction", "i64"): 1, ("ignoreIndex", "i64"): -100, ("labelSmoothing", "d"): 0.0, ("lseSquareScaleForZloss", "d"): 0.0,
    ("logTarget", "b"): False, ("blank", "i64"): 0, ("zeroInfinity", "b"): False, ("correction", "i64"): 1,
    ("keepProb", "d"): 1.0, ("preTokens", "i64"): 2**31 - 1, ("nextTokens", "i64"): 2**31 - 1, ("innerPrecise", "i64"): 0,
    ("sparseMode", "i64"): 0,
}  # fmt: skip


def python_name(name: str) -> str:
    return name + "_" * keyword.iskeyword(name)  # lambda_


def is_result(parameter: dict) -> bool:
    return parameter["written"] and not parameter["updated"]


def inputs(entry: dict) -> list[dict]:
    """The function's parameters: those that may be left out come last."""
    given = [parameter for parameter in entry["parameters"] if not is_result(parameter)]
    return [p for p in given if not p["optional"]] + [p for p in given if p["optional"]]


def defaults(entry: dict) -> dict[str, object]:
    """Values of the parameters that may be left out: optional ones, and before these the last ones that have a usual value.
    Only `cast` needs its type."""
    found = {}
    for parameter in reversed(inputs(entry)):
        name, key = parameter["name"], (parameter["name"], parameter["kind"])
        if not parameter["optional"] and (key not in USUAL or entry["python"] == "cast"):
            break
        found[name] = None if parameter["optional"] else entry["usual"].get(name, USUAL[key])
    return found


def shape_rule(entry: dict, name: str) -> str:
    """The expression of an output's shape; "" when the page does not give it."""
    if name in entry["shapes"]:
        return entry["shapes"][name]
    for check in entry["checks"]:
        if check[0] == "shape" and check[1] == name:
            return " ".join(check[3:])
        if check[0] in ("same-shape", "list-shape") and name in check[2:]:
            return _resolved(entry, check[1])
    return ""


def _resolved(entry: dict, name: str) -> str:
    """A name, or the rule of an output of this name, which may come later."""
    return shape_rule(entry, name) if any(p["name"] == name and is_result(p) for p in entry["parameters"]) else name


def is_absent(entry: dict, parameter: dict) -> bool:
    """No call may have this output."""
    return shape_rule(entry, parameter["name"]) == "none"


def private_format(entry: dict, parameter: dict) -> str:
    """The private format that the operator takes this tensor in only: its page has a rule for it, and its example says which,
    or it is FRACTAL_NZ. Empty: there is none."""
    if parameter["name"] not in entry["private"]:
        return ""
    return (entry.get("example") or {}).get(parameter["name"], "").partition(":")[2] or "FRACTAL_NZ"


def is_found(entry: dict, parameter: dict) -> bool:
    """The operator finds the output's shape."""
    return shape_rule(entry, parameter["name"]).startswith(AT_MOST)


def takes_shape(entry: dict) -> bool:
    """Only the caller knows how large the result is."""
    return any(shape_rule(entry, parameter["name"]) == "given" for parameter in entry["parameters"])


def has_function(entry: dict) -> bool:
    """The first function comes from the page, there are outputs, and their shapes are known."""
    outputs = [p for p in entry["parameters"] if p["written"]]
    return bool(entry["planned"] and outputs) and all(shape_rule(entry, p["name"]) for p in outputs if is_result(p))


def results(entry: dict) -> list[dict]:
    """What the function returns, in the operator's order."""
    return [p for p in entry["parameters"] if p["kind"] in TENSORS and p["written"] and not is_absent(entry, p)]


def _types(entry: dict, name: str) -> str:
    listed = entry["dtypes"].get(name, {}).get(PRODUCT, [])
    return " ".join(TYPES[kind] for kind in listed if kind in TYPES)


def _rank(entry: dict, name: str) -> str:
    ranges = [check[1] for check in entry["checks"] if check[0] == "rank" and name in check[2:]]
    return f", rank {ranges[0].replace('-', ' to ')}" if ranges else ""


def _input_line(entry: dict, parameter: dict) -> str:
    name, what = parameter["name"], KINDS.get(parameter["kind"], INTEGER)[1]
    types = _types(entry, name) if parameter["kind"] in TENSORS else ""
    given = defaults(entry)
    usual = ""
    if parameter["optional"]:
        usual = "; may be None"
    elif name in given:
        usual = "; by default that of the first array" if given[name] is None else f"; by default {_plain(given[name])}"
    return f"    {python_name(name)}: {what}{f' of {types}' if types else ''}{_rank(entry, name)}{usual}"


def _plain(value) -> str:
    """As a person writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _result_line(entry: dict, parameter: dict) -> str:
    name = parameter["name"]
    if parameter["updated"]:
        return f"    {name}, changed: " + ("a device array itself, of others a copy" if parameter["kind"] == "T" else
                                           "the device arrays themselves, of others copies")  # fmt: skip
    types = _types(entry, name)
    rule = shape_rule(entry, name)
    if rule == "given":
        shape = "out_shape"
    elif rule.isidentifier():
        shape = f"the {'shape' if parameter['kind'] == 'T' else 'shapes'} of {rule}"
    else:
        shape = f"shape {rule}"
    return f"    {name}: {shape}{f'; {types}' if types else ''}"


def docstring(entry: dict) -> str:
    """Formula, parameters, results, statuses and source."""
    lines = [f"{entry['function']}: {entry['meaning'] or entry['description']}", ""]
    lines += [_input_line(entry, parameter) for parameter in inputs(entry)]
    lines += ["    out_dtype: of the result; by default what the page gives"]
    lines += ["    out_shape: of the result"] * takes_shape(entry) + ["", "Returns"]
    lines += [_result_line(entry, parameter) for parameter in results(entry)]
    refused = [f"    {status}: {', '.join(told)}: {sentence}" for status, sentence, told in entry["refusals"]]
    if refused:
        lines += ["", "Raises StatusError with"] + refused
    return "\n".join([*lines, "", f"Source: {entry['page']}."])


def stub(entry: dict) -> str:
    """The function as a stub declares it."""
    parameters, given = [], defaults(entry)
    for parameter in inputs(entry):
        name = parameter["name"]
        annotation = KINDS.get(parameter["kind"], INTEGER)[0]
        if name in given:
            annotation += " | None = None" if given[name] is None else f" = {given[name]!r}"
        parameters.append(f"{python_name(name)}: {annotation}")
    types = ["Array" if parameter["kind"] == "T" else "builtins.list[Array]" for parameter in results(entry)]
    result = types[0] if len(types) == 1 else f"builtins.tuple[{', '.join(types)}]"
    out_shape = ["out_shape: Sequence[builtins.int]"] * takes_shape(entry)
    signature = ", ".join([*parameters, "*", *out_shape, "out_dtype: DTypeLike | None = None"])
    return f"def {entry['python']}({signature}) -> {result}:\n{quoted(docstring(entry))}"


def quoted(text: str) -> str:
    """A docstring as it stands in a function."""
    lines = text.replace("\\", "\\\\").replace('"""', "'''").splitlines()
    body = "\n".join(f"    {line}".rstrip() for line in lines[1:])
    return f'    """{lines[0]}\n{body}\n    """\n'
