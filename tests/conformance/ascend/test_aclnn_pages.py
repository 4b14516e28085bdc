"""Every rule of every operator that is made from a page: the call that breaks just it, and its nearest legal neighbour."""

import pytest

from tests.conformance.ascend import pages
from tests.conformance.harness import check_rule

CASES = {name: pages.cases(pages.operators()[name]) for name in pages.planned()}
RULES = [case for cases in CASES.values() for case in cases]


@pytest.mark.parametrize("name", list(CASES))
def test_rules(name):
    failures = []
    for case in CASES[name]:
        try:
            check_rule(case)
        except (AssertionError, pages.CannotBreak) as error:
            failures.append(f"{case.rule}: {type(error).__name__} {str(error).splitlines()[0] if str(error) else ''}")
    assert not failures, "\n".join(failures)
