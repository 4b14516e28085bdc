"""Shapes as the operator pages write them: broadcast(a, b), reduced(x, axes, keep), [sizes], and functions by name; `… if
flag` where an attribute says whether the output is wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping

from understudy.ascend import array_shapes, layer_shapes, network_shapes  # noqa: F401: they have the functions
from understudy.ascend.shape_functions import FUNCTIONS


def _parts(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def _argument(text: str, values: Mapping):
    name = text.removesuffix("_axes").removesuffix("_axis")
    if name in values:
        return values[name]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return {"true": True, "false": False}.get(text, text)


def evaluate(text: str, values: Mapping) -> tuple | None:
    """The shape that a page's expression gives. `values`: shapes of tensors, lists of them, and attributes, by name.
    Of a list of tensors it is a tuple of shapes; None: the output is not wanted."""
    text = text.strip()
    if text in values:
        return tuple(values[text])
    if match := re.fullmatch(r"(.*) if (\w+)", text):
        return evaluate(match[1], values) if values[match[2]] else None
    if match := re.fullmatch(r"(\w+)\((.*)\)", text):
        made = FUNCTIONS[match[1]](*(_argument(part, values) for part in _parts(match[2])))
        return None if made is None else tuple(made)
    if match := re.fullmatch(r"\[(.*)\]", text):
        return tuple(int(eval(part.replace("/", "//"), {}, dict(values))) for part in _parts(match[1]))
    raise ValueError(f"no shape expression: {text}")
