"""The operators of the manual's table as the tests call them: the legal call of each, and the rule cases that follow from
its parameters."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterable

import numpy

from tests.conformance.ftdsp.calls import (DDR, DDR_END, ELEMENT, L2, L2_OF_CORE_3, SMC, At, Input, Output, Table, Value,
                                           all_accepted, all_refused, invoke, sample)
from tests.conformance.harness import RuleCase
from understudy import paths
from understudy.kit import ft_manual

INT_MAX = 2**31 - 1


@functools.cache
def operators() -> dict[str, ft_manual.Operator]:
    table = paths.sdk() / "rules" / "ftdsp" / "manual.toml"
    return {operator.key: operator for operator in ft_manual.read(pathlib.Path(table))[0]}


def element(operator: ft_manual.Operator, parameter: ft_manual.Parameter, prefix: str):
    return ELEMENT[operator.element(parameter, prefix)]


def built(operator, parameter, prefix: str, position: int, own: dict[str, Callable]):
    """The parameter of the legal call. `own`: what the table does not say, name -> value of a prefix."""
    if parameter.name in own:
        value = own[parameter.name](prefix)
        return value if isinstance(value, Table) else Value(parameter.name, value)
    if parameter.is_operand:
        dtype = element(operator, parameter, prefix)
        values = sample(operator.element(parameter, prefix), parameter.count, position)
        if parameter.values:
            values = numpy.array(parameter.values, dtype)
        if parameter.role == "in":
            return Input(parameter.name, values)
        return Output(parameter.name, parameter.count, dtype, values if parameter.role == "inout" else None)
    if parameter.role in ("dims", "array"):
        kind = {"float": numpy.float32, "longlong": numpy.int64}.get(parameter.type, numpy.int32)
        return Value(parameter.name, numpy.array(parameter.values, kind))
    return Value(parameter.name, None if parameter.role == "ignored" else parameter.values[0])


class Manual:
    """An operator, called as calls.Operator is."""

    def __init__(self, key: str, own: dict[str, Callable] | None = None):
        self.operator = operators()[key]
        self.own = own or {}
        self.prefixes = self.operator.prefixes

    def symbol(self, prefix: str, space: str) -> str:
        return self.operator.symbol(prefix, space)

    def parameters(self, prefix: str) -> list:
        return [built(self.operator, p, prefix, position, self.own) for position, p in enumerate(self.operator.parameters)
                if p.role != "mask"]

    def mask_position(self) -> int:
        shared = [p.role for p in self.operator.parameters if p.role != "private"]
        return shared.index("mask") if "mask" in shared else -1

    def call(self, prefix: str, space: str, changes: dict):
        mask = changes.get("core_mask", 0xFF)
        others = {name: value for name, value in changes.items() if name != "core_mask"}
        return lambda: invoke(self, prefix, space, mask, **others)

    def case(self, prefix: str, space: str, tail: str, refused: list[dict], accepted: list[dict], env=None) -> RuleCase:
        rule = f"{self.symbol(prefix, space)}/{tail}"
        return RuleCase(rule, all_refused(rule, [self.call(prefix, space, changes) for changes in refused]),
                        all_accepted([self.call(prefix, space, changes) for changes in accepted]), env=env or {})

    def cases(self) -> Iterable[RuleCase]:
        """One for every rule that ft_manual.rules gives this operator."""
        for prefix, space in self.operator.functions():
            if prefix in ft_manual.CHIP_OF:
                yield self.chip_case(prefix, space)
            for parameter in self.operator.parameters:
                if parameter.is_operand:
                    yield from self.operand_cases(parameter, prefix, space)
                elif parameter.role == "mask" and space == "s":
                    yield self.case(prefix, space, f"{parameter.name}/negative",
                                    [{"core_mask": -1}, {"core_mask": -(2**31)}],
                                    [{"core_mask": mask} for mask in (1, 0x80, 0x0B, INT_MAX, 0, 0x100)])
                else:
                    yield from self.number_cases(parameter, prefix, space)

    def chip_case(self, prefix: str, space: str) -> RuleCase:
        lacking = "FT78NE" if ft_manual.CHIP_OF[prefix] == "MT7004" else "MT7004"
        other = next(p for p in self.prefixes if ft_manual.CHIP_OF.get(p, lacking) == lacking)
        rule = f"{self.symbol(prefix, space)}/prefix/chip"
        return RuleCase(rule, self.call(prefix, space, {}), self.call(other, space, {}),
                        env={"UNDERSTUDY_FT_CHIP": lacking})

    def number_cases(self, p: ft_manual.Parameter, prefix: str, space: str) -> Iterable[RuleCase]:
        """Sizes, codes and shapes: outside what they may be, and the nearest inside."""
        def add(tail, refused, accepted):
            return self.case(prefix, space, f"{p.name}/{tail}", [{p.name: value} for value in refused],
                             [{p.name: value} for value in accepted])

        if p.role == "size":
            widest = -(2**63) if p.type == "uint64_t" else -(2**31)
            if p.type != "uint64_t":
                yield add("negative", [-1, widest], [p.values[0]])
        elif p.role == "positive":
            yield add("range", [0, -1, -(2**31)], [p.values[0]])
        elif p.role == "choice":
            legal = {int(value) for value in p.values}
            yield add("range", sorted({min(legal) - 1, max(legal) + 1, INT_MAX}), [p.values[0]])
        elif p.role == "rank":
            yield add("range", [int(p.factors[0]) - 1, 9, -(2**31)], [p.values[0]])
        elif p.role in ("dims", "array"):
            whole = next(made.value for made in self.parameters(prefix) if made.name == p.name)
            yield add("null", [None], [whole])
            if p.role == "dims":
                negative = whole.copy()
                negative[-1] = -1
                yield add("range", [negative], [whole])

    def operand_cases(self, p: ft_manual.Parameter, prefix: str, space: str) -> Iterable[RuleCase]:
        dtype = numpy.dtype(element(self.operator, p, prefix))
        alignment = ft_manual.ALIGNMENTS[self.operator.element(p, prefix)]
        size = p.count * dtype.itemsize
        own = next(built for built in self.parameters(prefix) if built.name == p.name)
        pairs = {
            "null": ([None], [own]),
            "alignment": ([1, alignment // 2], [alignment]),
            "window": ([At(DDR_END - size + alignment, copy=False), At(DDR_END - alignment, copy=False)],
                       [At(DDR_END - size)]),
            "private": ([At(L2)], [At(DDR), At(SMC)]),
            "other-core": ([At(L2_OF_CORE_3, copy=False)], [At(L2), At(DDR)]),
        }  # fmt: skip
        for rule in ft_manual.operand_rules(self.operator, p, prefix, space):
            if rule == "overlap":
                yield self.overlap_case(p, prefix, space)
            elif rule == "overflow":
                yield self.overflow_case(p, prefix, space)
            else:
                refused, accepted = pairs[rule]
                cores = {"core_mask": 0x01} if space == "s" and rule == "other-core" else {}
                yield self.case(prefix, space, f"{p.name}/{rule}", [{p.name: bad, **cores} for bad in refused],
                                [{p.name: good, **cores} for good in accepted])

    def overflow_case(self, p: ft_manual.Parameter, prefix: str, space: str) -> RuleCase:
        huge = {}
        for name, elements in ft_manual.overflowing(self.operator, p).items():
            other = next(q for q in self.operator.parameters if q.name == name)
            if other.role != "dims":
                huge[name] = elements
                continue
            sizes = [elements] if len(other.values) == 1 else [elements // 2**22 or 1, min(elements, 2**22)]
            huge[name] = numpy.array(sizes + [1] * (len(other.values) - len(sizes)), numpy.int32)
        return self.case(prefix, space, f"{p.name}/overflow", [huge], [{}])

    def overlap_case(self, p: ft_manual.Parameter, prefix: str, space: str) -> RuleCase:
        """Shifted against each other operand; the same array where that is allowed; next to it."""
        dtype = numpy.dtype(element(self.operator, p, prefix))
        step, base = ft_manual.ALIGNMENTS[self.operator.element(p, prefix)], DDR + 2**20
        size = p.count * dtype.itemsize
        refused, accepted = [], []
        for other in self.operator.operands():
            if other.name == p.name or other.count == 0:
                continue
            other_step = ft_manual.ALIGNMENTS[self.operator.element(other, prefix)]
            other_size = other.count * numpy.dtype(element(self.operator, other, prefix)).itemsize
            behind = -(-other_size // step) * step
            last_inside = (other_size - 1) // step * step
            beside = {other.name: At(base), p.name: At(base + behind)}
            inside = {other.name: At(base), p.name: At(base + last_inside)}
            twice = {other.name: At(base), p.name: At(base)}
            accepted.append(beside)
            later_output = other.is_written and self.operator.operands().index(other) > self.operator.operands().index(p)
            if later_output:
                continue  # the rule of the later one
            if other.name in p.same:
                accepted.append(twice)
                if min(size, other_size) > step:
                    refused.append({other.name: At(base), p.name: At(base + max(step, other_step))})
            else:
                refused += [twice, inside]
        return self.case(prefix, space, f"{p.name}/overlap", refused, accepted)
