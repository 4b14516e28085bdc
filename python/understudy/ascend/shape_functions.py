"""The functions by which operator pages give shapes, by name; `shapes` evaluates what the pages write."""

from __future__ import annotations

from collections.abc import Callable

FUNCTIONS: dict[str, Callable] = {}


def shape_function(function: Callable) -> Callable:
    """Makes a function known to the pages by its name. It gets shapes for tensors, lists of shapes for lists of tensors, and
    attributes as they are."""
    FUNCTIONS[function.__name__] = function
    return function
