"""Which functions a chip has (ft-dsp 1), as the library itself answers, and as docs/functions.md shows."""

import pytest

from tests.function_table import complete_functions, functions_of_chip, split_ft_name

PREFIXES = {
    "FT78NE": {"fp", "dp", "i8", "i16", "i32", "c64", "c128"},
    "MT7004": {"hp", "fp", "i16", "i32", "c64"},
}


@pytest.mark.parametrize("chip", PREFIXES)
def test_functions_of_the_chip(chip):
    functions = sorted(name for names in complete_functions("ftdsp").values() for name in names
                       if "_to_" not in name)  # between two types, of which either may be the chip's
    expected = {name for name in functions if split_ft_name(name)[1] in PREFIXES[chip] | {""}}
    assert functions_of_chip(chip, functions) == expected
    assert len(expected) < len(functions)
