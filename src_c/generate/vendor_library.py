"""From a vendor library's public headers: its export list, and the functions that refuse whatever they are given.

    vendor_library.py --headers HEADER … --rules rules.toml --exports FILE --refusals FILE

A rule with `always = true` names functions that are declared, so that programs compile and link, but not emulated. Their
bodies are made here from the declaration, the rule's status and its sentence; all other functions are written by hand.
"""

import argparse
import pathlib
import re
import sys
from dataclasses import dataclass

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from understudy import toml  # noqa: E402
from understudy.kit.catalogue import expand_braces  # noqa: E402


@dataclass(frozen=True)
class Function:
    name: str
    result: str
    parameters: str


def without_groups(text: str) -> str:
    """The text with the contents of all braces removed, innermost first."""
    while (shorter := re.sub(r"\{[^{}]*\}", " ", text)) != text:
        text = shorter
    return text


def functions_of(header: str) -> list[Function]:
    """The functions that a header's text declares, in its order."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", header, flags=re.DOTALL)
    text = re.sub(r"^#ifdef __cplusplus\n.*?^#endif", " ", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.MULTILINE)
    text = re.sub(r'extern\s+"C"\s*\{', " ", text)
    text = re.sub(r"\bstatic inline\b[^{;]*\{[^{}]*\}", " ", text)
    text = re.sub(r'\b(MCBLASAPIENTRY|ACL_FUNC_VISIBILITY|ACL_DEPRECATED(_MESSAGE\("[^"]*"\))?)', " ", text)
    found = []
    for statement in without_groups(text).split(";"):
        statement = " ".join(statement.replace("}", " ").split())
        match = re.fullmatch(r"(?:extern )?([\w\s*]+?)\b(\w+)\s*\((.*)\)", statement)
        if match and not statement.startswith("typedef"):
            found.append(Function(match[2], match[1].strip(), match[3]))
    return found


def refusing_rules(rules: dict) -> dict[str, dict]:
    """The rule of each function that always refuses."""
    found = {}
    for entry in rules.get("rule", []):
        if entry.get("always"):
            for rule_id in expand_braces(entry["id"]):
                function, parameter, rule = rule_id.split("/")
                found[function] = {"parameter": parameter, "rule": rule, **entry}
    return found


def refusal(function: Function, entry: dict) -> str:
    """The body of a function that always refuses; one without a status gives NULL or 0."""
    begin = "us_call_begin_void" if function.result == "void" else "us_call_begin"
    sentence = (entry["sentence"][0].lower() + entry["sentence"][1:]).removesuffix(".").replace('"', '\\"')
    lines = [
        f"{function.result} {function.name}({function.parameters})", "{",
        f'    Call call = {begin}("{function.name}");',
        f'    us_refuse(&call, "{entry["parameter"]}", "{entry["rule"]}", {entry["status"]},',
        f'              "{function.name} is not emulated: {sentence}");',
    ]  # fmt: skip
    if function.result == "void":
        lines.append("    us_call_end(&call);")
    elif function.result in entry.get("statuses", ["aclError"]):
        lines.append(f"    return ({function.result})us_call_end(&call);")
    else:
        lines += ["    us_call_end(&call);", "    return 0;"]
    return "\n".join([*lines, "}"])


def refusals_file(includes: list[str], functions: list[Function], rules: dict) -> str:
    entries = refusing_rules(rules)
    declared = {function.name for function in functions}
    if unknown := sorted(set(entries) - declared):
        raise SystemExit(f"vendor_library: no header declares {', '.join(unknown)}")
    bodies = [refusal(function, entries[function.name]) for function in functions if function.name in entries]
    head = ["/* Made by src_c/generate/vendor_library.py: functions that are declared, but not emulated. */",
            *(f'#include "{header}"' for header in includes), '#include "report/report.h"', "",
            '#pragma GCC diagnostic ignored "-Wunused-parameter"',
            "extern int a_unit_needs_a_declaration;", ""]  # fmt: skip
    return "\n".join(head) + "\n" + "\n\n".join(bodies) + "\n"


def exports_file(functions: list[Function]) -> str:
    names = "".join(f"    {name};\n" for name in sorted({function.name for function in functions}))
    return "{\n" + (f"  global:\n{names}" if names else "") + "  local:\n    *;\n};\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True, help="folder that the headers are named from")
    parser.add_argument("--headers", nargs="*", default=[])
    parser.add_argument("--rules", type=pathlib.Path)
    parser.add_argument("--exports", type=pathlib.Path, required=True)
    parser.add_argument("--refusals", type=pathlib.Path, required=True)
    options = parser.parse_args()
    functions = [function for header in options.headers for function in functions_of((options.root / header).read_text())]
    rules = toml.loads(options.rules.read_text()) if options.rules else {}
    options.exports.parent.mkdir(parents=True, exist_ok=True)
    options.exports.write_text(exports_file(functions))
    options.refusals.write_text(refusals_file(options.headers, functions, rules))


if __name__ == "__main__":
    main()
