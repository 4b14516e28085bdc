"""What each kind of check becomes: lines of C and rules.

A kind is a class with `lines` (C, in terms of the operator's parameters) and `rules` (its refusals). The first word of a
line in a page's `checks` names it.
"""

from __future__ import annotations

import functools
import re

from pages.model import (DTYPES, INTS, LIST, NOT_EMULATED, PRODUCTS, SCALAR, TENSOR, Check, Operator, PageError, Rule)  # fmt: skip

SIZE = re.compile(r"\b([A-Za-z_]\w*)\[(-?\w+)\]")  # self[-1]: a size of a tensor


def operands(names) -> str:
    return f"OPERANDS({', '.join(names)})"


class Scope:
    """Names that earlier checks of an operator have defined in its C function, and what they leave possible on a product."""

    def __init__(self, operator: Operator, product: str):
        self.operator = operator
        self.product = product
        self.names: set[str] = set()
        self.sets: dict[tuple, str] = {}  # sets of types -> the name of their constant
        self.types: dict[str, set[str]] = {}  # what a defined type may be
        self.limited: set[str] = set()  # parameters that an earlier check has held to the types listed for them
        self.typed: set[str] = set()  # lists whose types an earlier check has tied to another's
        self.shaped: set[str] = set()  # tensors whose shape an earlier check has tied to others
        self.broadcasts: dict[tuple[str, ...], str] = {}

    def define(self, preferred: str) -> str:
        name, number = preferred, 2
        while name in self.names:
            name, number = f"{preferred}{number}", number + 1
        self.names.add(name)
        return name

    def kind(self, name: str) -> str:
        return self.operator.parameter(name).kind


def type_expression(text: str, kinds: dict[str, str]) -> str:
    """The C of a type: `promoted` or another defined one, a tensor's name, floating(TYPE), a type's name."""
    if match := re.fullmatch(r"floating\((.*)\)", text):
        return f"op_floating({type_expression(match[1], kinds)})"
    if kinds.get(text) == TENSOR:
        return f"{text}->dtype"
    return DTYPES.get(text, text)


def dtype_set(types: list[str]) -> str:
    return " | ".join(f"T_{kind}" for kind in types) or "0"


def allowed_types(scope: Scope, name: str) -> str:
    """The name of the constant that holds the parameter's types, a set per product."""
    operator = scope.operator
    per_product = operator.dtypes.get(name)
    if per_product is None:
        raise PageError(f"{operator.header}: {operator.name}: no dtype for {name}")
    key = tuple(tuple(per_product[product]) for product in PRODUCTS)
    constant = scope.sets.setdefault(key, f"types_of_{name}")
    return f"op_dtypes(&op, {constant})"


CATEGORIES = {"F32": "float", "F16": "float", "BF16": "float", "F64": "float", "U16": "wide", "U32": "wide", "U64": "wide",
              "B": "bool", "C32": "complex", "C64": "complex", "C128": "complex"}  # fmt: skip


def category(kind: str) -> str:
    return CATEGORIES.get(kind, "integer")


def _possible(scope: Scope, names) -> set[str]:
    """Types that a check may meet."""
    return {kind for name in names
            for kind in (scope.operator.dtypes.get(name, {}).get(scope.product, []) if name in scope.limited else DTYPES)}  # fmt: skip


def _joint(types: set[str], scalar_types: set[str]) -> set[str]:
    """What tensors of the first types, and scalars of the others, may have in common."""
    pairs = {"I16": {"I8", "U8"}, "F32": {"F16", "BF16"}, "C128": {"C64", "F64"}}
    joint = types | {common for common, pair in pairs.items() if pair <= types}
    categories = {category(kind) for kind in scalar_types}
    if "float" in categories and any(category(kind) in ("integer", "bool") for kind in types):
        joint.add("F32")
    if "complex" in categories:
        joint |= {"C64"} | {{"F64": "C128", "F16": "C32"}[kind] for kind in types & {"F64", "F16"}}
    return joint


def _refuses_cast(source: str, target: str) -> bool:
    """aclnn-base 7, conversion to the output type."""
    if {source, target} & NOT_EMULATED:
        return True
    source, target = category(source), category(target)
    if source == "complex":
        return target != "complex"
    return source == "float" and target in ("integer", "wide", "bool") or source != "bool" and target == "bool"


def _rule(check: Check, number: int, subject: str, rule: str, sentence: str, kind: str | None = None) -> Rule:
    return Rule(f"{subject}/{rule}", check.status, sentence, kind or check.kind, subject, number)


# ---- shapes: expressions that C and the tests both evaluate --------------------------------------------------------------


def shape_expression(text: str, scope: Scope) -> str:
    """The C of a shape: a tensor's name, broadcast(a, b), reduced(x, axes, keep), [sizes], or name(…): op_shape_name(&op, …)."""
    text = text.strip()
    tensors = {parameter.name for parameter in scope.operator.parameters if parameter.kind == TENSOR}
    if text in tensors:
        return f"op_shape({text})"
    if match := re.fullmatch(r"broadcast\((.*)\)", text):
        names = tuple(name.strip() for name in match[1].split(","))
        return scope.broadcasts.get(names) or f"op_broadcast(&op, {operands(names)})"
    if match := re.fullmatch(r"reduced\((.*)\)", text):
        axes = re.sub(r"\b(\w+_axis)\b", r"UINT32_C(1) << \1", match[1])
        return f"op_reduced_shape({axes})"
    if match := re.fullmatch(r"\[(.*)\]", text):
        sizes = [integer_expression(part, scope) for part in match[1].split(",") if part.strip()]
        return f"op_shape_of({len(sizes)}, (const int64_t[]){{{', '.join(sizes)}}})" if sizes else "(Shape){0}"
    if match := re.fullmatch(r"(\w+)\((.*)\)", text):
        return f"op_shape_{match[1]}(&op, {match[2]})"
    if text in scope.names:
        return text
    raise PageError(f"{scope.operator.header}: {scope.operator.name}: no shape expression: {text}")


def integer_expression(text: str, scope: Scope) -> str:
    """The C of an integer: name[axis] is a tensor's size, name alone a parameter."""

    def size(match):
        name = match[1]
        if any(parameter.name == name and parameter.kind == INTS for parameter in scope.operator.parameters):
            return f"{name}.values[{match[2]}]"
        return f"op_size({name}, {match[2]})"

    if re.fullmatch(r"[\w\[\]]+( \* [\w\[\]]+)+", text.strip()):  # of any sizes
        first, *others = (SIZE.sub(size, factor) for factor in text.strip().split(" * "))
        return functools.reduce(lambda product, factor: f"op_times({product}, {factor})", others, first)
    return SIZE.sub(size, text.strip())


# ---- kinds ---------------------------------------------------------------------------------------------------------------


def dtype(check, number, scope):
    lines, rules = [], []
    for name in check.words:
        kind = scope.kind(name)
        types = allowed_types(scope, name)
        if kind == TENSOR:
            lines.append(f"op_require_dtype(&op, {name}, {types});")
        elif kind == LIST:
            lines.append(f"op_require_dtypes(&op, {name}, {types});")
        elif kind == SCALAR:
            lines.append(f"op_require_scalar_dtype(&op, &{name}, {types});")
        elif kind == "dt":
            lines.append(f'op_require_dtype_attribute(&op, "{name}", {name}, {types});')
        else:
            raise PageError(f"{scope.operator.name}: {name} has no type")
        scope.limited.add(name)
        rules.append(_rule(check, number, name, "dtype", "The type is not one of those that the page lists for the product."))
    return lines, rules


def format_(check, number, scope):
    lines = []
    for name in check.words:
        each = f"for (int32_t i = 0; i < {name}.count; i++) " if scope.kind(name) == LIST else ""
        lines.append(f"{each}op_require_public_format(&op, {name}{'.items[i]' if each else ''});")
    return lines, [_rule(check, number, name, "format", "The tensor has a private format.") for name in check.words]


def promote(check, number, scope):
    """promote [name =] a b …: defines the common type, `promoted` unless a name is given."""
    words = list(check.words)
    name = "promoted"
    if len(words) > 1 and words[1] == "=":
        name, words = words[0], words[2:]
    name = scope.define(name)
    tensors = [word for word in words if scope.kind(word) == TENSOR]
    lists = [word for word in words if scope.kind(word) == LIST]
    scalars = [word for word in words if scope.kind(word) == SCALAR]
    first = f"op_promote(&op, {lists[0]})" if lists else f"op_promote(&op, {operands(tensors)})"
    if not lists and len(tensors) == 1:
        first = f"{tensors[0]}->dtype"
    lines = [f"aclDataType {name} = {first};"]
    lines += [f"{name} = op_promote_scalar(&op, {name}, &{scalar});" for scalar in scalars]
    lines.append(f"(void){name};")
    order = [*tensors[1:], *scalars] if not lists else lists
    possible = _possible(scope, tensors or lists)
    if not any(category(kind) == "wide" for kind in possible):
        order = []  # every mix of these types has a common type
    scope.types[name] = _joint(possible, _possible(scope, scalars))
    sentence = "The type has no common type with those of the parameters before it."
    return lines, [_rule(check, number, word, "promote", sentence) for word in order]


def cast(check, number, scope):
    """cast FROM -> TO: FROM is a defined type, a parameter of it, or a type's name."""
    source, _, target = check.words
    parameters = {parameter.name: parameter for parameter in scope.operator.parameters}
    kind = parameters[source].kind if source in parameters else ""
    kinds = {name: parameter.kind for name, parameter in parameters.items()}
    if kind == SCALAR:
        to = type_expression(target, kinds)
        sentence = f"The scalar cannot be converted to {target}."
        return ([f"op_require_scalar_cast(&op, &{source}, {to});"], [_rule(check, number, source, "cast", sentence)])
    types = type_expression(source, kinds)
    name = source.removeprefix("floating(").rstrip(")")
    possible = scope.types.get(name) or (_possible(scope, [name]) if name in parameters else {name})
    if source.startswith("floating("):
        possible = {kind if category(kind) in ("float", "complex") else "F32" for kind in possible}
    if not any(_refuses_cast(a, b) for a in possible for b in ([a] if name == target else _possible(scope, [target]))):
        return [f"op_require_cast(&op, {types}, {target});"], []  # no type that can come here fails
    sentence = "The result's type cannot be converted to the type of this parameter."
    return [f"op_require_cast(&op, {types}, {target});"], [_rule(check, number, target, "cast", sentence)]


def among(check, number, scope):
    """among TYPE F32 F16 …: a defined type must be one of these; the rule is of the first tensor."""
    name, *types = check.words
    subject = next(parameter.name for parameter in scope.operator.parameters if parameter.kind == TENSOR)
    constant = scope.sets.setdefault((tuple(types),) * len(PRODUCTS), f"{name}_types")
    possible = scope.types.get(name, set(types))
    scope.types[name] = possible & set(types)
    lines = [f'op_require_type(&op, "{subject}", {name}, op_dtypes(&op, {constant}));']
    if not possible - set(types):
        return lines, []  # the types of the parameters allow no other
    sentence = f"The common type is not one of {', '.join(DTYPES[kind] for kind in types)}."
    return lines, [_rule(check, number, subject, "common-dtype", sentence)]


def broadcast(check, number, scope):
    """broadcast [name =] a b …: defines the joint shape, `joint` unless a name is given."""
    words = list(check.words)
    name = "joint"
    if len(words) > 1 and words[1] == "=":
        name, words = words[0], words[2:]
    name = scope.define(name)
    scope.broadcasts[tuple(words)] = name
    sentence = "The shape does not broadcast with those of the parameters before it, or to more than 2^63 - 1 elements."
    lines = [f"Shape {name} = op_broadcast(&op, {operands(words)});", f"(void){name};"]
    return lines, [_rule(check, number, word, "broadcast", sentence) for word in words[1:]]


def expands(check, number, scope):
    """expands a b … -> EXPRESSION: each broadcasts to just this shape."""
    arrow = check.words.index("->")
    names, text = check.words[:arrow], " ".join(check.words[arrow + 1 :])
    expression = shape_expression(text, scope)
    lines = [f"op_require_expands(&op, {name}, {expression});" for name in names]
    return lines, [_rule(check, number, name, "broadcast", f"The shape does not broadcast to {text}.") for name in names]


def shape(check, number, scope):
    """shape NAME = EXPRESSION; behind it `or [1]`: where that is one element without dimensions, [1] will do as well."""
    target, _, *rest = check.words
    either = rest[-2:] == ["or", "[1]"]
    rest = rest[:-2] if either else rest
    expression = shape_expression(" ".join(rest), scope)
    expression = f"op_shape_or_one({target}, {expression})" if either else expression
    name = expression if expression in scope.names else scope.define(f"{target}_shape")
    scope.shaped.add(target)
    if re.fullmatch(rf"broadcast\(.*\b{target}\b.*\)", " ".join(rest)):
        scope.shaped |= set(re.findall(r"\w+", " ".join(rest))) - {target}  # none can have more dimensions than it
    lines = [] if name == expression else [f"const Shape {name} = {expression};"]
    lines.append(f"op_require_shape(&op, {target}, &{name});")
    return lines, [_rule(check, number, target, "shape", f"The shape is not {' '.join(rest)}.")]


def same_shape(check, number, scope):
    model, *others = check.words
    scope.shaped |= set(others)
    if scope.kind(model) == LIST:
        lines = [f"op_require_same_shapes(&op, {name}, {model});" for name in others]
    else:
        lines = [f"op_require_same_shape(&op, {name}, {model});" for name in others]
    return lines, [_rule(check, number, name, "same-shape", f"The shape is not that of {model}.") for name in others]


def same_dtype(check, number, scope):
    """same-dtype MODEL a b …: of a tensor, tensor by tensor of a list, or the type that an attribute names."""
    model, *others = check.words
    scope.typed |= set(others)
    if scope.kind(model) == LIST:
        lines = [f"op_require_same_dtypes(&op, {name}, {model});" for name in others]
    elif scope.kind(model) == "dt":
        lines = [f'op_require_given_dtype(&op, {name}, "{model}", {model});' for name in others]
    else:
        lines = [f"op_require_same_dtype(&op, {name}, {model});" for name in others]
    rules = [_rule(check, number, name, "same-dtype", f"The type is not that of {model}.")
             for name in others if len(_possible(scope, [model, name])) > 1]  # fmt: skip
    if model in scope.limited:
        scope.limited |= set(others)
    return lines, rules


def rank(check, number, scope):
    """rank 0-8 a b …, rank 4 a."""
    limits, *names = check.words
    low, _, high = limits.partition("-")
    lines, rules = [], []
    sentence = f"The number of dimensions is not {limits.replace('-', ' to ')}."
    for name in names:
        tied = name in scope.shaped and name != names[0]  # an earlier check, or the line before, refuses such a call
        if scope.kind(name) == LIST:
            lines.append(f"op_require_ranks(&op, {name}, {low}, {high or low});")
        else:
            lines.append(f"op_require_rank(&op, {name}, {low}, {high or low});")
        rules += [] if tied else [_rule(check, number, name, "rank", sentence)]
    return lines, rules


def dim(check, number, scope):
    """dim NAME TENSOR [+1]: an axis, -rank to rank - 1 (of one dimension more); defines NAME_axis."""
    name, tensor, *extra = check.words
    axis = scope.define(f"{name}_axis")
    value = f"(int64_t){name}" if scope.kind(name) != SCALAR else f"{name}.value.integer"
    rank = f"op_list_rank({tensor})" if scope.kind(tensor) == LIST else f"{tensor}->view.rank"
    if extra:
        rank = f"({rank} + {extra[0].lstrip('+')})"
    lines = [f'const int32_t {axis} = op_require_dim(&op, "{name}", {value}, {rank});', f"(void){axis};"]
    return lines, [_rule(check, number, name, "range", f"There is no such dimension of {tensor}.", "dim")]


def dims(check, number, scope):
    """dims NAME TENSOR: axes, -rank to rank - 1, none twice; defines NAME_axes, a bit each; none are all."""
    name, tensor = check.words
    axes = scope.define(f"{name}_axes")
    lines = [f"const uint32_t {axes} = op_require_dims(&op, {name}, {tensor}->view.rank);", f"(void){axes};"]
    return lines, [_rule(check, number, name, "range", f"There is no such dimension of {tensor}.", "dim"),
                   _rule(check, number, name, "unique", "A dimension is named twice.", "unique")]  # fmt: skip


def _limits(text: str) -> tuple[str, str]:
    low, _, high = text.partition("..")
    return low, high or "INT64_MAX"


def range_(check, number, scope):
    """range NAME 0..2, range NAME 1..: an integer attribute."""
    name, limits = check.words
    low, high = _limits(limits)
    lines = [f'op_require_range(&op, "{name}", (int64_t){name}, {low}, {high});']
    sentence = f"The value is not {limits.replace('..', ' to ') if not limits.endswith('..') else low + ' or more'}."
    return lines, [_rule(check, number, name, "range", sentence)]


def each(check, number, scope):
    """each NAME >= 1: every entry of an array."""
    *names, _, low = check.words
    lines = [f"op_require_each(&op, {name.rstrip(',')}, {low}, INT64_MAX);" for name in names]
    return lines, [_rule(check, number, name.rstrip(","), "range", f"An entry is below {low}.") for name in names]


def length(check, number, scope):
    """length NAME = 2, length NAME = 1..50: entries of an array or tensors of a list."""
    *names, _, limit = check.words
    lines, rules = [], []
    for name in (word.rstrip(",") for word in names):
        low, _, high = limit.partition("..")
        lines.append(f'op_require_length(&op, "{name}", {name}.count, {low}, {high or low});')
        rules.append(_rule(check, number, name, "length", f"The number of entries is not {limit.replace('..', ' to ')}."))
    return lines, rules


def uniform(check, number, scope):
    """uniform LIST …: all tensors of the lists have one type."""
    first = check.words[0]
    lines = [f"op_require_uniform(&op, {name}, {first});" for name in check.words]
    sentence = f"A tensor's type is not that of the first tensor of {first}."
    # A list whose tensors have the types of another's: that one is refused first.
    return lines, [_rule(check, number, name, "uniform", sentence)
                   for name in check.words if name == first or name not in scope.typed]  # fmt: skip


def null_item(check, number, scope):
    """null-item LIST …: no tensor of the lists is NULL."""
    lines = [f"op_require_items(&op, {name});" for name in check.words]
    return lines, [_rule(check, number, name, "item", "A tensor of the list is NULL.") for name in check.words]


def list_length(check, number, scope):
    """list-length MODEL LIST …: lists of one length."""
    model, *others = check.words
    sentence = f"The list is not as long as {model}."
    lines = [f'op_require_list_length(&op, "{name}", {name}.count, {model});' for name in others]
    return lines, [_rule(check, number, name, "length", sentence) for name in others]


def list_shape(check, number, scope):
    """list-shape MODEL LIST …: lists of one length, shapes alike tensor by tensor; a list that is only written must have room:
    the pages' tables ask for no more than numel(out[i]) >= numel(x[i])."""
    lines, rules = list_length(check, number, scope)
    model, *others = check.words
    for name in others:
        parameter = scope.operator.parameter(name)
        roomy = parameter.written and not parameter.in_place
        scope.shaped |= set() if roomy else {name}
        lines.append(f"op_require_{'room' if roomy else 'same_shapes'}(&op, {name}, {model});")
        sentence = f"A tensor has fewer elements than its partner in {model}." if roomy else (
            f"A tensor's shape is not that of its partner in {model}.")  # fmt: skip
        rules.append(_rule(check, number, name, "same-shape", sentence))
    return lines, rules


def elements(check, number, scope):
    *names, _, count = check.words
    lines = [f"op_require_elements(&op, {name}, {count});" for name in names]
    return lines, [_rule(check, number, name, "elements", f"The number of elements is not {count}.") for name in names]


def when(check, number, scope):
    """{rule = "parameter/rule", when = "C condition that holds for legal calls", say = "…", break = {…}, legal = {…}}"""
    table = check.table
    subject, _, rule = table["rule"].partition("/")
    text, arguments = message(table["say"], scope)
    line = f'op_require(&op, {table["when"]}, "{subject}", "{rule}", op.invalid, {text}{"".join(", " + a for a in arguments)});'
    return [line], [_table_rule(check, number, table, check.status)]


# What a refusal tells of the call at hand, and what is left of it where there is no call: of "k is {k}; it must be 1" "k must be 1".
IN_GENERAL = [(r", (?:which is )?\{\w+\}(?:,(?= ))?", ""), (r"\b(\w+) is \{\1\}(?:[:;] it|, which| and)(?= )", r"\1"),
              (r"\b(\w+) is \{\1\}, (?=not |none |neither |below |above |larger |longer |shorter |no |more )", r"\1 is "),
              (r"\b(\w+) (?:is )?\{\1\}", r"\1"), (r"\{(\w+)\}", r"\1")]  # fmt: skip


def in_general(say: str) -> str:
    for told, left in IN_GENERAL:
        say = re.sub(told, left, say)
    return say


def _table_rule(check: Check, number: int, table: dict, status: int) -> Rule:
    sentence = table.get("sentence", "") or in_general(table["say"])
    sentence = sentence[0].upper() + sentence[1:] if not re.match(r"\w*[A-Z_]", sentence) else sentence
    return Rule(table["rule"], table.get("status", status), sentence.rstrip(".") + ".", "table",
                table["rule"].partition("/")[0], number, table.get("break"), table.get("legal"),
                table.get("source", "sheet"), table.get("why", ""), table.get("env"), table.get("always", False))  # fmt: skip


def call(check, number, scope):
    """{call = "C statement", rules = [{rule = …, say = …, break = {…}}, …]}: checks that C code makes. It runs after a
    refusal too, when no size is known, so it may only divide by constants."""
    if re.search(r"[/%]\s*[^\s\d]", check.table["call"]):
        raise PageError(f"{scope.operator.header}: {scope.operator.name}: divides after a refusal too: {check.table['call']}")
    rules = [_table_rule(check, number, table, check.status) for table in check.table.get("rules", [])]
    return [check.table["call"].rstrip(";") + ";"], rules


def message(say: str, scope: Scope) -> tuple[str, list[str]]:
    """A printf format and its arguments from a sentence with {parameter} in it."""
    arguments = []

    def insert(match):
        name = match[1]
        kind = scope.kind(name)
        if kind == TENSOR:
            arguments.append(f"op_shape_text(&op, {name})")
            return "%s"
        if kind == SCALAR:
            arguments.append(f"{name}.value.real")
            return "%g"
        if kind in ("d", "f"):
            arguments.append(f"(double){name}")
            return "%g"
        if kind == "str":
            arguments.append(name)
            return "%s"
        arguments.append(f"(long long){name}")
        return "%lld"

    text = re.sub(r"\{(\w+)\}", insert, say.replace("%", "%%"))
    return '"' + text.replace('"', '\\"') + '"', arguments


KINDS = {"dtype": dtype, "format": format_, "promote": promote, "among": among, "cast": cast, "broadcast": broadcast,
         "expands": expands, "shape": shape,
         "same-shape": same_shape, "same-dtype": same_dtype, "rank": rank, "dim": dim, "dims": dims, "range": range_,
         "uniform": uniform, "null-item": null_item, "list-length": list_length, "list-shape": list_shape, "each": each,
         "length": length, "elements": elements, "when": when, "call": call}  # fmt: skip
