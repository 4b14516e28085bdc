"""From an operator to its first function's lines and its rules."""

from __future__ import annotations

import dataclasses
import re

from pages.checks import KINDS, Scope, dtype_set
from pages.plans import plan_expression
from pages.model import (BOOLS, FLOATS, GENERIC_STATUS, INTS, INVALID, LIST, NULL_POINTER, PRODUCTS, RUNTIME, SCALAR,
                         SCALARS, TENSOR, VALUES, Operator, PageError, Rule)  # fmt: skip


@dataclasses.dataclass
class Derived:
    operator: Operator
    lines: list[str]  # C statements between op_begin and the plan
    rules: list[Rule]


TAKE_UP = {
    TENSOR: ("const Operand *", {False: "op_input", True: "op_optional_input"}),
    LIST: ("const Operands ", {False: "op_inputs", True: "op_optional_inputs"}),
    SCALAR: ("const ScalarArgument ", {False: "op_scalar", True: "op_optional_scalar"}),
    SCALARS: ("const ScalarArguments ", {False: "op_scalars", True: "op_scalars"}),
    INTS: ("const IntArguments ", {False: "op_ints", True: "op_optional_ints"}),
    FLOATS: ("const FloatArguments ", {False: "op_floats", True: "op_floats"}),
    BOOLS: ("const BoolArguments ", {False: "op_bools", True: "op_optional_bools"}),
    "str": ("const char *", {False: "op_text", True: "op_optional_text"}),
}
OUTPUTS = {(TENSOR, False): "op_output", (TENSOR, True): "op_optional_output", (LIST, False): "op_outputs",
           (LIST, True): "op_optional_outputs"}  # fmt: skip
UPDATED = {TENSOR: "op_updated", LIST: "op_updated_list"}


def _take_up(operator: Operator, body: str) -> list[str]:
    lines = []
    for parameter in operator.parameters:
        if parameter.kind not in TAKE_UP:
            continue
        declaration, functions = TAKE_UP[parameter.kind]
        function = functions[parameter.optional]
        if parameter.kind == TENSOR and parameter.optional and operator.empty_is_null:
            function = "op_filled_input"
        if parameter.written and not parameter.in_place:
            function = OUTPUTS[parameter.kind, parameter.optional]
        call = f'{function}(&op, "{parameter.name}", {parameter.name}_)'
        if parameter.written and parameter.updated:
            call = f"{UPDATED[parameter.kind]}(&op, {call})"
        used = re.search(rf"\b{parameter.name}\b", body)
        lines.append(f"{declaration}{parameter.name} = {call};" if used else f"{call};")
    return lines


def _one_element(operator: Operator, name: str) -> bool:
    """A tensor of one element, or a list of such, has no strides that could lead outside."""
    checked = any(check.kind == "elements" and name in check.words[:-2] and check.words[-1] == "1"
                  or check.kind == "shape" and check.words[0] == name and check.words[2] == "[]"
                  for check in operator.checks)  # fmt: skip
    example = operator.example.get(name, "")
    items = example if isinstance(example, list) else [example]
    return checked or bool(items) and all(re.fullmatch(r"\w+\[(1(, *1)*)?\](<\d+)?", item) for item in items)


def _never_taken(operator: Operator, name: str) -> bool:
    """Whether no legal call gives it: a rule of its own refuses it before its view is looked at."""
    tails = {table["rule"] for check in operator.checks
             for table in [check.table, *check.table.get("rules", [])] if "rule" in table}  # fmt: skip
    return f"{name}/given" in tails and operator.example.get(name) == "null" and name not in operator.given


def _whole_lists(operator: Operator) -> list[str]:
    """Lists all of whose tensors must be given although no check of the page says so."""
    checked = {name for check in operator.checks if check.kind == "null-item" for name in check.words}
    return [parameter.name for parameter in operator.parameters
            if parameter.kind == LIST and parameter.name not in checked | operator.null_items]  # fmt: skip


def _parameter_rules(operator: Operator) -> list[Rule]:
    rules = []
    for parameter in operator.parameters:
        name = parameter.name
        if (parameter.is_object or parameter.kind == "str") and not parameter.optional:
            rules.append(Rule(f"{name}/null", operator.missing, f"{name} is NULL.", "null", name))
        if parameter.is_object:
            sentence = f"{name} is not alive: destroyed, or never created by this library."
            rules.append(Rule(f"{name}/handle", INVALID, sentence, "handle", name, source="choice",
                              why="The vendor reads what the handle points to; a dead handle is a mistake in every case."))
        if parameter.kind in (TENSOR, LIST):
            sentence = "A size is negative, or the number of elements exceeds 2^63 - 1."
            rules.append(Rule(f"{name}/sizes", INVALID, sentence, "sizes", name, source="choice",
                              why="aclCreateTensor accepts any sizes; no device holds such a tensor."))
        if parameter.kind in (TENSOR, LIST) and not (_one_element(operator, name) or _never_taken(operator, name)):
            sentence = "A view that is not contiguous leaves the tensor's storage."
            rules.append(Rule(f"{name}/view", 561103, sentence, "view", name))
        if parameter.kind in (LIST, SCALARS):
            rules.append(Rule(f"{name}/entries", INVALID, "The list has 2^31 - 1 entries or more.", "entries", name,
                              source="cannot-check", why="The handles of so many take 16 GiB of memory."))
        if parameter.kind == SCALARS or name in _whole_lists(operator):
            entry = "scalar" if parameter.kind == SCALARS else "tensor"
            rules.append(Rule(f"{name}/item", INVALID, f"A {entry} of the list is NULL.", "null-item", name, source="choice",
                              why=f"The page speaks of {entry}s only; pages that do name the case refuse it."))
    return rules


PHASE_RULES = [
    Rule("workspaceSize/null", NULL_POINTER, "workspaceSize is NULL.", "phase", "workspaceSize"),
    Rule("executor/null", NULL_POINTER, "executor of either function is NULL.", "phase", "executor"),
    Rule("executor/exhausted", GENERIC_STATUS["executor/exhausted"], "No host memory or handle is left for the executor.",
         "phase", "executor", source="cannot-check",
         why="Host memory cannot be made to run out at this one allocation through the public functions."),
    Rule("executor/handle", GENERIC_STATUS["executor/handle"], "The executor has run, was destroyed, or was never created.",
         "phase", "executor"),
    Rule("executor/operator", GENERIC_STATUS["executor/operator"], "The executor was planned by another operator; it ends.",
         "phase", "executor", source="choice",
         why="The vendor runs what was planned, whichever function is called: a mistake that stays unnoticed."),
    Rule("kernel/missing", 561003, "No kernel computes in this type.", "phase", "kernel", source="cannot-check",
         why="Every type that a page allows has a kernel, which a test checks."),
    Rule("workspace/null", NULL_POINTER, "workspace is NULL although workspaceSize is not 0; the executor ends.", "phase",
         "workspace"),
    Rule("stream/handle", RUNTIME, "The stream is not alive, or it is NULL and the thread has no device.", "phase", "stream",
         source="choice",
         why="The vendor hands the stream on unchecked; a runtime call that fails inside an operator is 361001."),
    Rule("stream/implicit", RUNTIME, "The default stream is used while another stream of its context is captured.", "phase",
         "stream", source="choice",
         why="The runtime's answer to any use of the default stream is 107031, which an operator tells as 361001."),
    Rule("stream/other-group", RUNTIME, "A task group of another stream of the capture is being recorded.", "phase", "stream",
         source="choice",
         why="The runtime's answer to any task on such a stream is 107034, which an operator tells as 361001."),
    Rule("stream/closed", RUNTIME, "The stream is bound to a model that takes no more work.", "phase", "stream",
         source="choice",
         why="The runtime refuses such tasks with 107000, which an operator tells as 361001; they would never run."),
    Rule("stream/exhausted", RUNTIME, "The operator cannot be queued for lack of host memory.", "phase", "stream",
         source="cannot-check",
         why="Host memory cannot be made to run out at this one allocation through the public functions."),
]  # fmt: skip


def _sets(scope: Scope) -> list[str]:
    """The constants of the operator's sets of types, one set for each product in the order of PRODUCTS."""
    lines = []
    for key, constant in scope.sets.items():
        rows = [dtype_set(list(types)) for types in key]
        lines.append(f"static const DTypeSet {constant}[] = {{{', '.join(rows)}}};")
    return lines


def _check_lines(operator: Operator) -> tuple[list[str], list[Rule]]:
    """The lines are those of every product. Rules that only another product than the default one can break name it."""
    default = "910B"
    lines, rules = _checked(operator, default)
    for product in (product for product in PRODUCTS if product != default):
        known = {rule.tail for rule in rules}
        rules += [dataclasses.replace(rule, env={"UNDERSTUDY_SOC": f"Ascend{product}"})
                  for rule in _checked(operator, product)[1] if rule.tail not in known]  # fmt: skip
    return lines, rules


def _checked(operator: Operator, product: str) -> tuple[list[str], list[Rule]]:
    scope = Scope(operator, product)
    lines, rules, status = [], [], INVALID
    for number, check in enumerate(operator.checks):
        if check.kind not in KINDS:
            raise PageError(f"{operator.header}: {operator.name}: unknown check {check.kind} {' '.join(check.words)}")
        try:
            made, refused = KINDS[check.kind](check, number, scope)
        except (ValueError, KeyError) as error:
            raise PageError(f"{operator.header}: {operator.name}: check {check.kind} {' '.join(check.words)}: {error!r}") from None
        if check.status != status:
            lines.append(f"op.invalid = {check.status};")
            status = check.status
        lines += made
        rules += refused
    return _sets(scope) + lines, rules


def derive(operator: Operator) -> Derived:
    lines, rules = _check_lines(operator)
    lines = [f"op_require_items(&op, {name});" for name in _whole_lists(operator)] + lines
    operator.plan = plan_expression(operator)
    body = "\n".join(lines) + operator.plan
    if operator.plan:
        missing = [f"op.missing = {operator.missing};"] if operator.missing != NULL_POINTER else []
        lines = missing + _take_up(operator, body) + lines
        rules = _parameter_rules(operator) + rules
    else:
        return Derived(operator, [], [])  # a C file of its own, with rules of its own
    merged: dict[str, Rule] = {}
    always = any(rule.always for rule in rules)
    for rule in [*PHASE_RULES, *rules]:
        if always:
            rule = dataclasses.replace(rule, source="cannot-check", why="No call is legal.")
        if rule.tail in operator.unreachable:
            rule = dataclasses.replace(rule, source="cannot-check", why=operator.unreachable[rule.tail])
        if merged.setdefault(rule.tail, rule).sentence != rule.sentence:
            raise PageError(f"{operator.header}: {operator.name}: {rule.tail} stands for two rules")
    if unknown := set(operator.unreachable) - set(merged):
        raise PageError(f"{operator.header}: {operator.name}: unreachable names no rule: {sorted(unknown)}")
    return Derived(operator, lines, list(merged.values()))


def c_type(parameter) -> str:
    """The parameter's type in the prototype."""
    handles = {TENSOR: "aclTensor", LIST: "aclTensorList", SCALAR: "aclScalar", SCALARS: "aclScalarList", INTS: "aclIntArray",
               FLOATS: "aclFloatArray", BOOLS: "aclBoolArray"}  # fmt: skip
    if parameter.kind in handles:
        return f"{'' if parameter.mutable else 'const '}{handles[parameter.kind]} *"
    if parameter.kind == "str" and parameter.mutable:
        return "char *"
    text = VALUES[parameter.kind]
    return text if text.endswith("*") else text + " "
