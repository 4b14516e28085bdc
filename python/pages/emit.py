"""Text of what is generated: headers, C, export lists, the rule catalogue, and the data that Python uses."""

from __future__ import annotations

import json
import re
import textwrap

from pages.derive import Derived, c_type
from pages.model import DTYPES, PRODUCTS, HostFunction, Operator

GENERATED = "Made from src_c/ascend/opapi/pages/{stem}.toml at build time."


def _wrapped(head: str, parts: list[str]) -> str:
    """head(part, part, …) in lines of at most 120 columns."""
    indent = " " * (len(head) + 1)
    lines, line = [], head + "("
    for index, part in enumerate(parts):
        piece = part + (", " if index + 1 < len(parts) else ")")
        if len(line) + len(piece.rstrip()) > 119 and line.strip() and not line.endswith("("):
            lines.append(line.rstrip())
            line = indent
        line += piece
    return "\n".join([*lines, line.rstrip()])


def first_prototype(operator: Operator, suffix: str = "", head: str = "", size: str = "") -> str:
    """The first function; parameters that are taken up get a name of their own in its definition (suffix). With size "Max"
    the one that asks for the most."""
    parts = []
    for parameter in operator.parameters:
        taken_up = parameter.is_object or parameter.kind == "str"
        parts.append(f"{c_type(parameter)}{parameter.name}{suffix if taken_up else ''}")
    parts += ["uint64_t *workspaceSize", "aclOpExecutor **executor"]
    return _wrapped(f"{head}aclnnStatus {operator.function}Get{size}WorkspaceSize", parts)


def _asks_the_most(operator: Operator) -> list[str]:
    """No operator needs a workspace, so the most that it needs is what the first function says."""
    arguments = [*(parameter.name for parameter in operator.parameters), "workspaceSize", "executor"]
    call = _wrapped(f"    return {operator.function}GetWorkspaceSize", arguments)
    return ["", first_prototype(operator, size="Max"), "{", call + ";", "}"]


def second_prototype(operator: Operator, head: str = "") -> str:
    parts = ["void *workspace", "uint64_t workspaceSize", "aclOpExecutor *executor", "aclrtStream stream"]
    return _wrapped(f"{head}aclnnStatus {operator.function}", parts)


def _comment(text: str) -> str:
    lines = textwrap.wrap(text, 115)
    return "/* " + "\n * ".join(lines) + " */"


def _types_text(operator: Operator) -> str:
    """Types of the parameters on Ascend910B, those with the same list together."""
    groups: dict[str, list[str]] = {}
    for name, per_product in operator.dtypes.items():
        groups.setdefault(" ".join(DTYPES[kind][4:] for kind in per_product["910B"]), []).append(name)
    return "; ".join(f"{', '.join(names)}: {types}" for types, names in groups.items() if types)


def _ranks_text(operator: Operator) -> str:
    groups: dict[tuple[int, int], list[str]] = {}
    for name, limits in operator.ranks.items():
        groups.setdefault(limits, []).append(name)
    return "; ".join(f"{', '.join(names)}: {low}" + (f" to {high}" if high != low else "")
                     for (low, high), names in groups.items())  # fmt: skip


def description(operator: Operator) -> str:
    if operator.description:
        return operator.description
    text = operator.meaning.rstrip(".") + "."
    if types := _types_text(operator):
        text += f" Types on Ascend910B: {types}."
    if ranks := _ranks_text(operator):
        text += f" Ranks: {ranks}."
    if optional := [parameter.name for parameter in operator.parameters if parameter.optional]:
        text += f" May be NULL: {', '.join(optional)}."
    return f"{text} {operator.missing}: a NULL parameter. {operator.status}: a type, shape or value that is not allowed."


def header(stem: str, operators: list[Operator], hosts: list[HostFunction]) -> str:
    guard = f"OP_API_INC_{stem.removeprefix('aclnn_').upper()}_H"
    libraries = " ".join(sorted({f"libopapi_{operator.library}.so" for operator in [*operators, *hosts]}))
    lines = [f"/* Libraries: {libraries} libopapi.so. */", f"#ifndef {guard}", f"#define {guard}", "",
             '#include "aclnn/aclnn_base.h"', '#include "aclnn_util.h"', "", "#ifdef __cplusplus", 'extern "C" {',
             "#endif"]  # fmt: skip
    for operator in operators:
        lines += ["", _comment(description(operator)), first_prototype(operator, head="ACLNN_API ") + ";"]
        if operator.asks_most:
            lines += ["", "/* The largest workspace of any sequence lengths, for a graph whose lengths are updated. */",
                      first_prototype(operator, head="ACLNN_API ", size="Max") + ";"]  # fmt: skip
        lines += ["", "/* Queues the computation on the stream. The executor ends here unless it is repeatable. */",
                  second_prototype(operator, "ACLNN_API ") + ";"]  # fmt: skip
    for host in hosts:
        prototype = _wrapped(f"ACLNN_API aclnnStatus {host.function}", host.parameters.split(", "))
        lines += ["", _comment(host.description), prototype + ";"]
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def second_place(stem: str) -> str:
    return f'/* The second place where the vendor installs this header. */\n#include "../{stem}.h"\n'


def source(stem: str, derived: list[Derived]) -> str:
    lines = [f"/* {GENERATED.format(stem=stem)} */", f'#include "aclnnop/{stem}.h"', '#include "ascend/opapi/families.h"']
    families = sorted({item.operator.family for item in derived if item.operator.family})
    lines += [f'#include "ascend/opapi/{family}.h"' for family in families]
    # Not the header of all formulas: a new one would compile every page again.
    texts = [text for item in derived for text in (item.operator.plan, *item.lines)]
    formulas = sorted({name for text in texts for name in re.findall(r"\bus_map_\w+", text)})
    lines += ["", *(f"extern const MapFormula {name};" for name in formulas)] if formulas else []
    for item in derived:
        operator = item.operator
        if operator.plan:
            lines += ["", f"/* {operator.page}: {operator.meaning} */".replace("*/ */", "*/"),
                      first_prototype(operator, suffix="_"), "{",
                      f'    OpCall op = op_begin("{operator.function}", workspaceSize, executor);']  # fmt: skip
            lines += [part for line in [*item.lines, f"return {operator.plan};"] for part in _statement(line)]
            lines.append("}")
        lines += _asks_the_most(operator) if operator.asks_most else []
        lines += ["", second_prototype(operator), "{",
                  f'    return op_execute("{operator.function}", workspace, workspaceSize, executor, stream);', "}"]  # fmt: skip
    return "\n".join([*lines, ""])


def _statement(line: str) -> list[str]:
    """A statement in lines of at most 120 columns, broken between words but not inside texts."""
    lines, current = [], "    "
    for word in re.findall(r'(?:"(?:\\.|[^"\\])*"|[^\s"])+', line):
        if len(current) + len(word) > 119 and current.strip():
            lines.append(current.rstrip())
            current = "        "
        current += word + " "
    return [*lines, current.rstrip()]


def exports(operators: list[Operator], hosts: list[HostFunction]) -> str:
    names = [name for operator in operators for name in (f"{operator.function}GetWorkspaceSize", operator.function)]
    names += [f"{operator.function}GetMaxWorkspaceSize" for operator in operators if operator.asks_most]
    names += [host.function for host in hosts]
    listed = "".join(f"    {name};\n" for name in names)
    scope = f"  global:\n{listed}\n" if names else ""
    return f"{{\n{scope}  local:\n    *;\n}};\n"


def catalogue(library: str, derived: list[Derived], hosts: list[HostFunction]) -> str:
    """rules.json of one library. Rules that every operator has share an entry."""
    shared: dict[tuple, list[str]] = {}
    for item in derived:
        for rule in item.rules:
            where = item.operator.page if rule.kind != "phase" else "aclnn-base 6"
            key = (rule.tail, rule.status, rule.sentence, rule.source, rule.why, where, rule.always)
            shared.setdefault(key, []).append(item.operator.function)
    for host in hosts:
        for rule in host.rules:
            key = (rule.tail, rule.status, rule.sentence, rule.source, rule.why, host.page, rule.always)
            shared.setdefault(key, []).append(host.function)
    rules = []
    for (tail, status, sentence, origin, why, where, always), functions in shared.items():
        names = functions[0] if len(functions) == 1 else "{" + ",".join(functions) + "}"
        rules.append({"id": f"{names}/{tail}", "status": status, "sentence": sentence, "source": origin, "where": where,
                      **({"why": why} if why else {}), **({"always": True} if always else {})})  # fmt: skip
    choices = [
        {"id": f"{source.function}/{choice['about']}", "sentence": choice["sentence"], "where": source.page}
        for source in [*(item.operator for item in derived), *hosts]
        for choice in source.choices
    ]
    return json.dumps({"library": library, "rule": rules, "choice": choices}, ensure_ascii=False, indent=1)


def _plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """Without `or [1]`: calls are made with the shape before it."""
    return words[:-2] if words[-2:] == ("or", "[1]") else words


def _refusals(item: Derived) -> list[tuple[int, str, list[str]]]:
    """Status, sentence and the parameters that are refused with them, without what only a program in C can do."""
    subjects: dict[tuple[int, str], list[str]] = {}
    for rule in item.rules:
        if rule.kind not in ("phase", "handle", "null", "view") and rule.source != "cannot-check":
            told = subjects.setdefault((rule.status, rule.sentence), [])
            if rule.subject not in told:
                told.append(rule.subject)
    return [(*what, told) for what, told in sorted(subjects.items())]


def data(derived: list[Derived], hosts: list[HostFunction]) -> str:
    """What Python uses of the pages: the NumPy layer, the tests' calls, the tables of functions."""
    entries = {}
    for item in derived:
        operator = item.operator
        entries[operator.name] = {
            "function": operator.function,
            "python": operator.python_name,
            "header": operator.header,
            "library": operator.library,
            "page": operator.page,
            "meaning": operator.meaning,
            "description": description(operator),
            "planned": bool(operator.plan),
            "parameters": [
                {key: getattr(p, key) for key in ("name", "kind", "written", "in_place", "updated", "optional")}
                for p in operator.parameters
            ],
            "dtypes": {name: {product: per[product] for product in PRODUCTS} for name, per in operator.dtypes.items()},
            "checks": [[check.kind, *_plain(check.words)] if not check.table else [check.kind] for check in operator.checks],
            "refusals": _refusals(item),
            "private": [rule.subject for rule in item.rules if rule.tail == f"{rule.subject}/private"],
            "computes": operator.computes,
            "result": operator.result,
            "shapes": operator.shapes,
            "example": operator.example,
            "given": operator.given,
            "usual": operator.usual,
        }
    content = {"products": PRODUCTS, "dtypes": DTYPES, "operators": entries,
               "hosts": [{"function": host.function, "header": host.header, "library": host.library} for host in hosts]}
    return json.dumps(content, ensure_ascii=False, indent=0)


def _is_unsaid(value) -> bool:
    return value in (None, "", -1) or value is False


# Of a rule, what its cases need beside what the catalogue says.
CASE = ("tail", "kind", "subject", "check", "breaks", "legal", "env", "source", "always")


def cases(derived: list[Derived]) -> str:
    """The rules of each operator, for the calls that break them and their nearest legal ones."""
    content = {
        item.operator.name: [{key: value for key in CASE if not _is_unsaid(value := getattr(rule, key))}
                             for rule in item.rules]
        for item in derived
    }  # fmt: skip
    return json.dumps(content, ensure_ascii=False, indent=0)
