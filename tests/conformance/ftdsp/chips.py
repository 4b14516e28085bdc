"""Runs rule cases under the chip they need: one child process per chip, not per case."""

import importlib
import sys

from tests.conformance import harness

CHIP = "UNDERSTUDY_FT_CHIP"


def check_here(module: str, chip: str) -> None:
    checked = 0
    for case in importlib.import_module(module).RULES:
        if case.env.get(CHIP, "") == chip:
            try:
                harness.check_case(case)
            except AssertionError as error:
                raise AssertionError(f"{case.rule}: {error}") from error
            checked += 1
    print(f"{checked} cases")


def check_rules(module: str, rules: list[harness.RuleCase], chip: str) -> None:
    """Checks every case of `rules`, the RULES of `module`, that is to be run on `chip` (empty: no chip chosen)."""
    expected = sum(case.env.get(CHIP, "") == chip for case in rules)
    done = harness.run_isolated([sys.executable, "-m", __name__, module, chip], {CHIP: chip, "UNDERSTUDY_LOG": "off"})
    assert done.stdout.split() == [str(expected), "cases"]


if __name__ == "__main__":
    check_here(*sys.argv[1:])
