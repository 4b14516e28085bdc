"""The last line of a first function: the family's C call. Element-wise operators have a short form,

    map FORMULA(inputs; numbers) -> outputs in TYPE

Inputs are tensors or scalars, or lists of tensors. Numbers are scalars, attributes, constants, tensors of one element, or,
with lists, a list of scalars. TYPE is `promoted` or another defined type, a tensor (its type), floating(TYPE), or a
type's name; lists have their own types. Everything else is C, with the parameters by their names.
"""

from __future__ import annotations

import re

from pages.checks import type_expression
from pages.model import LIST, SCALAR, SCALARS, TENSOR, Operator, PageError

MAP = re.compile(r"map (\w+)\(([^;)]*)(?:;([^)]*))?\) -> ([\w, ]+?)(?: in ([\w()]+))?")


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _kinds(operator: Operator) -> dict[str, str]:
    return {parameter.name: parameter.kind for parameter in operator.parameters}


def _number(text: str, kinds: dict[str, str], compute: str) -> str:
    if kinds.get(text) == SCALAR:
        return f"op_number(&{text}, {compute})"
    return f"op_real((double){text}, {compute})" if text in kinds else f"op_real({text}, {compute})"


def _operands(names: list[str], kinds: dict[str, str]) -> str:
    if unknown := [name for name in names if kinds.get(name) not in (TENSOR, SCALAR)]:
        raise PageError(f"the plan names {unknown}, which are neither tensors nor scalars")
    return f"OPERANDS({', '.join(name if kinds.get(name) == TENSOR else 'NULL' for name in names)})"


def _numbers(numbers: list[str]) -> str:
    return f"NUMBERS({', '.join(numbers)})" if numbers else "NO_NUMBERS"


def plan_expression(operator: Operator) -> str:
    match = MAP.fullmatch(operator.plan)
    if match is None:
        if operator.plan.startswith("map "):
            raise PageError(f"{operator.header}: {operator.name}: cannot read the plan {operator.plan!r}")
        return operator.plan
    kinds = _kinds(operator)
    formula, inputs, numbers, outputs = match[1], _names(match[2]), _names(match[3]), _names(match[4])
    if any(kinds.get(name) == LIST for name in inputs):
        return _of_lists(formula, inputs, numbers, outputs, kinds)
    operator.computes = operator.computes or match[5] or "promoted"
    compute = type_expression(operator.computes, kinds)
    device = [name for name in numbers if kinds.get(name) == TENSOR]
    host = [_number(name, kinds, compute) for name in [*numbers, *(name for name in inputs if kinds.get(name) == SCALAR)]
            if name not in device]  # fmt: skip
    # Device numbers stand first among the formula's numbers; their places in the array are not read.
    host = ["{0}"] * len(device) + host
    return (f"op_map(&op, &us_map_{formula}, {compute}, {_operands([*inputs, *device], kinds)}, "
            f"{_operands(outputs, kinds)}, {_numbers(host)})")


def _of_lists(formula, inputs, numbers, outputs, kinds) -> str:
    def list_operand(name):
        if kinds.get(name) == LIST:
            return name
        return f"OPERANDS({name})" if kinds.get(name) == TENSOR else "NO_OPERANDS"  # one for all items; a scalar

    device = [name for name in numbers if kinds.get(name) == TENSOR]
    scalars = [*(name for name in numbers if name not in device), *(name for name in inputs if kinds.get(name) == SCALAR)]
    each = [name for name in [*numbers, *inputs] if kinds.get(name) == SCALARS]
    compute = f"op_list_dtype({outputs[0]})"
    host = ["{0}"] * len(device) + [_number(name, kinds, compute) for name in scalars if name not in each]
    operands = f"OPERANDS({', '.join(device)})" if device else "NO_OPERANDS"
    return (f"op_map_lists(&op, &us_map_{formula}, LISTS({', '.join(map(list_operand, inputs))}), "
            f"LISTS({', '.join(outputs)}), {operands}, {'&' + each[0] if each else 'NULL'}, {_numbers(host)})")
