"""Every rule of libmcblas that a test can break: a call that breaks it, and its nearest legal neighbour."""

import pytest

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcblas_cases import rule_case
from understudy.kit import catalogue

OURS = [rule for rule in catalogue.rules().values() if rule.library == "libmcblas.so"]
RULES = [rule_case(__name__, rule.id) for rule in OURS if rule.source != "cannot-check"]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
