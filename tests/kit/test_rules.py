"""`understudy rules`: what it prints is the catalogue."""

import json

import pytest

from tests.kit.support import assert_error_of_use, understudy, understudy_json
from understudy import paths
from understudy.kit import names, sdk


def entries(kind):
    """Of the files themselves, not by the catalogue's reader."""
    rules = paths.sdk() / "rules"
    for path in rules.rglob("rules.json"):
        yield from json.loads(path.read_text(encoding="utf-8")).get(kind, [])


@pytest.fixture(scope="module")
def everything():
    printed, status = understudy_json("rules")
    assert status == 0
    return printed


def test_every_entry_is_listed(everything):
    for kind, listed in (("rule", everything["rules"]), ("choice", everything["choices"])):
        texts = {entry["sentence"] for entry in listed}
        assert texts == {entry["sentence"] for entry in entries(kind)}
    assert len({rule["id"] for rule in everything["rules"]}) == len(everything["rules"])


def test_totals_add_up(everything):
    for total in everything["totals"]:
        mine = [rule for rule in everything["rules"] if rule["library"] == total["library"]]
        assert total["rules"] == len(mine) == sum(total[key] for key in ("page", "sheet", "choice", "cannot-check"))
        assert total["tested"] == sum(rule["tested"] for rule in mine)
        assert total["tested"] + total["cannot-check"] == total["rules"]


@pytest.mark.parametrize("function, rule, name", [
    ("mcdnnSoftmaxForward", "algo/range", "MCDNN_STATUS_BAD_PARAM"),
    ("mcMemcpy", "kind/range", "mcErrorInvalidMemcpyDirection"),
    ("aclrtMalloc", "size/zero", "ACL_ERROR_INVALID_PARAM"),
    ("aclnnSoftMarginLossBackward", "self/null", "ACLNN_ERR_PARAM_NULLPTR"),
])  # fmt: skip
def test_statuses_have_the_vendors_names(function, rule, name):
    printed, _ = understudy_json("rules", function)
    found = {entry["id"]: entry["status_name"] for entry in printed["rules"]}
    assert found[f"{function}/{rule}"] == name


def test_every_status_of_a_stack_with_statuses_has_a_name(everything):
    nameless = [rule["id"] for rule in everything["rules"]
                if rule["library"] != "libftdsp.so" and not rule["status_name"]]  # fmt: skip
    assert nameless == []


def test_a_function_and_its_first_phase_are_one():
    assert understudy_json("rules", "aclnnSoftMarginLossBackwardGetWorkspaceSize") == understudy_json(
        "rules", "aclnnSoftMarginLossBackward")  # fmt: skip


def test_pattern_and_stack_choose():
    printed, _ = understudy_json("rules", "mcdnn*")
    assert {rule["library"] for rule in printed["rules"]} == {"libmcdnn.so"}
    printed, _ = understudy_json("rules", "--stack", "ftdsp")
    assert {rule["library"] for rule in printed["rules"]} == {"libftdsp.so"}


def test_table_says_why_a_rule_is_not_tested():
    done = understudy("rules", "mcdnnCreate")
    assert done.returncode == 0
    line = next(line for line in done.stdout.splitlines() if "mcdnnCreate/handle/memory" in line)
    assert "not tested" in line and "cannot be made to run out" in line
    assert "\033" not in done.stdout, "colours are for terminals"


def test_unknown_function_is_an_error_of_use():
    assert_error_of_use(understudy("rules", "aclMalloc"), "did you mean aclrtMalloc?")


def test_a_function_of_another_stack_is_said_to_be_one():
    assert_error_of_use(understudy("rules", "--stack", "ascend", "mcMalloc"), "mcMalloc is of maca")


def test_capitals_do_not_hide_a_function():
    assert_error_of_use(understudy("rules", "ACLRTMALLOC"), "did you mean aclrtMalloc?")


def test_no_name_is_no_function():
    assert_error_of_use(understudy("rules", ""), "no rules for ''")


def test_the_name_of_a_rule_in_a_message_finds_it():
    printed, status = understudy_json("rules", "aclrtMalloc/size/zero")
    assert status == 0 and [rule["id"] for rule in printed["rules"]] == ["aclrtMalloc/size/zero"]
    assert_error_of_use(understudy("rules", "aclrtMaloc/size/zero"), "did you mean aclrtMalloc?")


def test_a_function_that_the_vendor_has_is_no_typing_error():
    absent = min(name for name in names.known() if name not in sdk.exporters() and name.startswith("aclnn"))
    assert_error_of_use(understudy("rules", absent), f"{absent} is not emulated; the vendor has it")
