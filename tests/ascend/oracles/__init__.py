"""What operators compute, from the formulas of their pages: functions on float64, integer and complex128 arrays.

Each module holds the oracles of a family. An oracle gets the operator's inputs and attributes by the names of its base form
and returns the result, or a tuple of results. None of them uses the code under test.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Oracle:
    function: Callable
    ulp: float = 1.0  # largest error of the kernel in units of the compute type's epsilon; derived from the formula
    scale: float = 0.0  # largest magnitude of the terms of a sum: where they cancel, errors are of their size
    low: float = -4.0  # range of floating inputs
    high: float = 4.0
    attributes: dict = dataclasses.field(default_factory=dict)  # values of attributes and scalars
    refused: tuple = ()  # types that the chosen attributes do not go with
    ranges: dict = dataclasses.field(default_factory=dict)  # of single inputs: name -> (low, high)


_found: dict[str, Oracle] = {}


def oracle(*names: str, **facts):
    """Decorates a function: it is the oracle of these operators."""

    def register(function):
        for name in names:
            assert name not in _found, name
            _found[name] = Oracle(function, **facts)
        return function

    return register


def all_oracles() -> dict[str, Oracle]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return _found
