"""Code, catalogue and cases say the same: no rule without entry, no entry without a pair of cases, and none gets lost."""

import collections
import importlib
import json
import pathlib
import re

import pytest

from understudy import paths, toml
from understudy.kit import catalogue
from understudy.paths import STACKS

ROOT = pathlib.Path(__file__).parents[1]

# The number of rules of a library may grow; a smaller number means that a check was dropped.
LEAST_RULES = {
    "libacl_op_compiler.so": 17, "libascendcl.so": 2277, "libhccl.so": 341, "libprofapi.so": 4, "libruntime.so": 4,
    "libacl_tdt_channel.so": 55, "libacl_tdt_queue.so": 100, "libmsprofiler.so": 77, "libascend_dump.so": 24,
    "libftdsp.so": 17270, "libmcblas.so": 3181, "libmcblasLt.so": 174, "libmcdnn.so": 2316, "libmcruntime.so": 424,
    "libnnopbase.so": 109,
    "libopapi_math.so": 9864, "libopapi_nn.so": 15535, "libopapi_cv.so": 1426,
    "libopapi_transformer.so": 4578,
}  # fmt: skip


def case_modules():
    files = sorted((ROOT / "tests" / "conformance").rglob("test_*.py"))
    return [importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts)) for file in files]


def cases_by_rule():
    return {case.rule: case for module in case_modules() for case in getattr(module, "RULES", [])}


# us_refuse(call, "parameter", "rule", …), us_require(call, condition, "parameter", "rule", …) and the helpers of a
# library that end in one of these: the two literals before the status are the last parts of the id. (Lists of choices
# end in NULL, and their literals are followed by literals.)
LITERAL_PAIR = re.compile(r'"([A-Za-z_][A-Za-z0-9_]*)",\s*"([a-z][a-z0-9-]*)",(?!\s*(?:"|NULL))')


# The same with the status behind it, where that is a constant of the vendor's.
LITERAL_STATUS = re.compile(LITERAL_PAIR.pattern + r"\s*((?:ACL|mc)\w+)")


def statuses_in_code(folder):
    """The constants that the sources of a folder give with each tail of an id, as numbers."""
    library = importlib.import_module(f"understudy.{folder.parent.name}").lib
    statuses = collections.defaultdict(set)
    for file in sorted(folder.glob("*.c")):
        for parameter, rule, constant in LITERAL_STATUS.findall(file.read_text()):
            if hasattr(library, constant):
                statuses[f"{parameter}/{rule}"].add(int(getattr(library, constant)))
    return statuses


def rule_tails_in_code():
    tails = {}
    for file in sorted(file for stack in STACKS for file in (ROOT / "src_c" / stack).rglob("*.c")):
        text = file.read_text()
        for parameter, rule in LITERAL_PAIR.findall(text):
            tails.setdefault(f"{parameter}/{rule}", file.name)
    return tails


def test_entries_are_complete():
    for file, content in catalogue.contents().items():
        assert content["library"].startswith("lib"), file
        for entry in content.get("rule", []):
            assert entry["source"] in catalogue.SOURCES, entry
            assert entry["sentence"].endswith("."), entry
            assert entry["where"], entry
            assert entry["status"] != 0, entry
            if entry["source"] in ("choice", "cannot-check"):
                assert entry.get("why"), f"{entry['id']}: a choice needs a reason"
        for entry in content.get("choice", []):
            assert entry["sentence"].endswith(".") and entry["where"], entry


def test_every_rule_has_a_pair_of_cases():
    cases = cases_by_rule()
    missing = [rule.id for rule in catalogue.rules().values()
               if rule.source != "cannot-check" and rule.id not in cases]
    assert not missing


def test_every_case_has_a_rule():
    unknown = [rule for rule in cases_by_rule() if rule not in catalogue.rules()]
    assert not unknown


def test_no_rule_is_tested_twice():
    seen = [case.rule for module in case_modules() for case in getattr(module, "RULES", [])]
    assert len(seen) == len(set(seen)), sorted(rule for rule in set(seen) if seen.count(rule) > 1)


def test_every_rule_in_the_code_is_in_the_catalogue():
    known = {"/".join(rule.split("/")[-2:]) for rule in catalogue.rules()}
    unknown = {tail: file for tail, file in rule_tails_in_code().items() if tail not in known}
    assert not unknown


def written_files():
    """Catalogues that are kept with the source; those of pages are made from them."""
    return sorted((ROOT / "src_c").rglob("rules.toml"))


def shipped(file):
    return (paths.sdk() / "rules" / file.relative_to(ROOT / "src_c")).with_suffix(".json")


@pytest.mark.parametrize("file", written_files(), ids=lambda file: file.parent.name)
def test_the_shipped_catalogue_is_the_one_of_the_source(file):
    assert json.loads(shipped(file).read_text("utf-8")) == toml.loads(file.read_text("utf-8"))


@pytest.mark.parametrize("file", [file for file in written_files() if file.parent.name != "ftdsp"],
                         ids=lambda file: file.parent.name)  # fmt: skip
def test_rules_without_cases_have_the_status_of_the_code(file):
    """Cases look at the statuses of all others."""
    known = statuses_in_code(file.parent)
    wrong = {entry["id"]: entry["status"] for entry in catalogue.contents()[shipped(file)].get("rule", [])
             if entry["source"] == "cannot-check" for rule in catalogue.expand_braces(entry["id"])
             if entry["status"] not in known.get("/".join(rule.split("/")[-2:]), {entry["status"]})}  # fmt: skip
    assert not wrong


def test_no_rule_gets_lost():
    counts = collections.Counter(rule.library for rule in catalogue.rules().values())
    assert {library: count for library, count in LEAST_RULES.items() if counts[library] < count} == {}
    assert set(counts) >= set(LEAST_RULES)
