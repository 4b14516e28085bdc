"""`understudy rules`: the rule catalogue as a table."""

from __future__ import annotations

import fnmatch
import importlib
import json

from understudy.errors import UsageError
from understudy.kit import catalogue, names, table

COLOURS = {"choice": "yellow", "cannot-check": "red"}


def add_arguments(parser) -> None:
    parser.add_argument("function", nargs="?", metavar="FUNCTION",
                        help="a function's name, a rule's, or a pattern such as 'mc*'")
    parser.add_argument("--json", action="store_true", help="print JSON")


def status_name(rule: catalogue.Rule) -> str:
    """The status as the vendor spells it; "" in stacks without statuses."""
    stack = catalogue.stack_of_library()[rule.library]
    module = importlib.import_module(f"understudy.{stack}")
    for function in (rule.function, f"{rule.function}GetWorkspaceSize"):
        if hasattr(module.lib, function):
            name = module._binding.status_name(function, rule.status)
            if name != str(rule.status):
                return name
    return names.status_name(stack, rule.status)


def tested(rule: catalogue.Rule) -> str:
    """Whether the rule has its pair of cases; the tests of the repository hold this to be so."""
    return f"not tested: {rule.why}" if rule.source == "cannot-check" else "tested"


def named(pattern: str | None, entries) -> list:
    """The entries of the functions that the pattern matches; the two phases of an operator are one function here. A pattern
    with a slash is a rule's, as messages print it."""
    if pattern is None:
        return list(entries)
    if "/" in pattern:
        return [entry for entry in entries if fnmatch.fnmatchcase(entry.id, pattern)]
    phase_less = pattern.removesuffix("GetWorkspaceSize")
    return [entry for entry in entries
            if fnmatch.fnmatchcase(entry.function, pattern) or entry.function == phase_less]  # fmt: skip


def unknown_function(pattern: str) -> UsageError:
    from understudy.kit import sdk

    entries = [*catalogue.rules().values(), *catalogue.choices()]
    functions = {entry.function for entry in entries}
    others = {catalogue.stack_of_library()[entry.library] for entry in named(pattern, entries)}
    if others:  # of another stack than --stack says
        return UsageError(f"{pattern} is of {' and '.join(sorted(others))}")
    if pattern in sdk.exporters():
        return UsageError(f"{pattern} refuses nothing")
    if pattern in names.known():
        return UsageError(names.absence(pattern, ()))
    near = names.nearest(pattern.partition("/")[0], functions, 0.6)
    return UsageError(f"no rules for {pattern!r}" + (f"; did you mean {near}?" if near else ""))


def totals(rules, choices) -> list[dict]:
    libraries = sorted({entry.library for entry in [*rules, *choices]})
    result = []
    for library in libraries:
        mine = [rule for rule in rules if rule.library == library]
        result.append({
            "library": library,
            "rules": len(mine),
            **{source: sum(rule.source == source for rule in mine) for source in catalogue.SOURCES},
            "tested": sum(rule.source != "cannot-check" for rule in mine),
            "choices": sum(choice.library == library for choice in choices),
        })  # fmt: skip
    return result


def as_json(rules, choices) -> str:
    return json.dumps({
        "rules": [{**rule._asdict(), "status_name": status_name(rule),
                   "tested": rule.source != "cannot-check"} for rule in rules],
        "choices": [choice._asdict() for choice in choices],
        "totals": totals(rules, choices),
    }, indent=1)  # fmt: skip


def rule_row(rule: catalogue.Rule) -> tuple:
    status = f"{rule.status} {status_name(rule)}".strip()
    reason = f" ({rule.why})" if rule.why else ""
    return (rule.source, rule.id, status, tested(rule).partition(":")[0],
            f"{rule.sentence} [{rule.where}]{reason}")  # fmt: skip


def print_library(library: str, rules, choices) -> None:
    print(table.coloured(library, "bold"))
    if rules:
        print(table.render([("source", "rule", "status", "", "sentence"), *map(rule_row, rules)], colours=COLOURS))
    if choices:
        print("\n  where the vendor's behaviour is unknown and nothing is refused")
        print(table.render([(choice.id, f"{choice.sentence} [{choice.where}]") for choice in choices]))
    print()


def run(options) -> int:
    rules = named(options.function, catalogue.rules().values())
    choices = named(options.function, catalogue.choices())
    if options.stack:
        stacks = catalogue.stack_of_library()
        rules, choices = ([entry for entry in entries if stacks[entry.library] in options.stack]
                          for entries in (rules, choices))  # fmt: skip
    if not rules and not choices and options.function is not None:
        raise unknown_function(options.function)
    if options.json:
        print(as_json(rules, choices))
        return 0
    sums = totals(rules, choices)
    for entry in sums:
        library = entry["library"]
        print_library(library, [rule for rule in rules if rule.library == library],
                      [choice for choice in choices if choice.library == library])  # fmt: skip
    headings = ("library", "rules", *catalogue.SOURCES, "tested", "choices")
    whole = {"library": "total", **{key: sum(entry[key] for entry in sums) for key in headings[1:]}}
    print(table.render([headings, *(tuple(entry[key] for key in headings) for entry in [*sums, whole])], indent=""))
    return 0
