"""What `understudy conform` writes: a JSON file with everything, JUnit's XML, and a page for a browser."""

import dataclasses
import hashlib
import html
import json
import pathlib
import platform
import xml.etree.ElementTree as xml

from understudy import __version__
from understudy.kit import catalogue

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Conformance</title>
<style>
body { font: 14px sans-serif; margin: 16px; }
table { border-collapse: collapse; margin: 12px 0; }
td, th { border: 1px solid #bbb; padding: 2px 8px; text-align: left; vertical-align: top; }
.bad { background: #fdd; } .noted { background: #ffd; }
</style></head><body>
<h2>Conformance of TARGET</h2>
<table>TOTALS</table>
<table>HOST</table>
<h3>Differences</h3>
<table>DIFFERENCES</table>
</body></html>
"""


def processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def host() -> dict[str, str]:
    return {"machine": platform.machine(), "processor": processor(), "system": platform.platform(),
            "libc": " ".join(platform.libc_ver()), "python": platform.python_version()}  # fmt: skip


def identity(path: str) -> dict:
    """Which file a library was: names and versions lie."""
    file = pathlib.Path(path).resolve()
    return {"path": path, "file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def rule_of(case) -> dict:
    """What the catalogue says of the rule that the case is about; {} when it is about none."""
    name = case.id.partition("[")[2].rpartition("]")[0]
    rule = catalogue.rules().get(name)
    return {} if rule is None else {"rule": name, "sentence": rule.sentence, "source": rule.source, "where": rule.where}


def facts(target: dict[str, list[str]], cases: list, totals: dict[str, int], seconds: float) -> dict:
    libraries = {stack: [identity(path) for path in paths] for stack, paths in target.items()}
    return {
        "understudy": __version__, "target": target or "the emulated libraries", "libraries": libraries, "host": host(),
        "seconds": round(seconds, 1), "totals": totals,
        "cases": [{**dataclasses.asdict(case), **rule_of(case)} for case in cases],
    }  # fmt: skip


def json_text(report: dict) -> str:
    return json.dumps(report, indent=1) + "\n"


def junit_text(report: dict, bad: tuple[str, ...]) -> str:
    """A suite per run: bad cases are failures, known ones and skipped ones are skipped."""
    failures = sum(case["outcome"] in bad for case in report["cases"])
    suite = xml.Element("testsuite", name="understudy conform", tests=str(len(report["cases"])), failures=str(failures),
                        time=str(report["seconds"]))  # fmt: skip
    for case in report["cases"]:
        module, _, name = case["id"].partition("::")
        entry = xml.SubElement(suite, "testcase", classname=module, name=name or module, time=str(case["seconds"]))
        if case["outcome"] in bad:
            xml.SubElement(entry, "failure", type=case["outcome"], message=case["message"])
        elif case["outcome"] in ("known", "skipped"):
            xml.SubElement(entry, "skipped", message=case["why"] or case["message"])
    xml.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(suite, encoding="unicode") + "\n"


def rows(entries, tag: str = "td", kind: str = "") -> str:
    cells = "".join(f"<{tag}>{html.escape(str(entry))}</{tag}>" for entry in entries)
    return f'<tr class="{kind}">{cells}</tr>\n' if kind else f"<tr>{cells}</tr>\n"


def html_text(report: dict, bad: tuple[str, ...]) -> str:
    differing = [case for case in report["cases"] if case["outcome"] not in ("passed", "skipped")]
    table = rows(("outcome", "case", "what was seen", "rule's source", "reason"), "th")
    for case in sorted(differing, key=lambda case: case["outcome"] not in bad):
        source = " ".join(filter(None, [case.get("source"), case.get("where")]))
        table += rows((case["outcome"], case["id"], case["message"], source, case["why"]),
                      kind="bad" if case["outcome"] in bad else "noted")  # fmt: skip
    target = report["target"] if isinstance(report["target"], str) else " ".join(sum(report["target"].values(), []))
    parts = {"TARGET": html.escape(target), "TOTALS": rows(report["totals"], "th") + rows(report["totals"].values()),
             "HOST": "".join(rows(fact) for fact in report["host"].items()), "DIFFERENCES": table}  # fmt: skip
    page = PAGE
    for name, text in parts.items():
        page = page.replace(name, text, 1)
    return page
