"""Promotion and conversion of element types, from the sheet's sentences (aclnn-base 7): what tests expect."""

from __future__ import annotations

# name: (category, bits)
TYPES = {
    "F32": ("float", 32), "F16": ("float", 16), "BF16": ("float", 16), "F64": ("float", 64), "I8": ("int", 8),
    "I16": ("int", 16), "I32": ("int", 32), "I64": ("int", 64), "U8": ("int", 8), "U16": ("wide", 16),
    "U32": ("wide", 32), "U64": ("wide", 64), "B": ("bool", 1), "C32": ("complex", 32), "C64": ("complex", 64),
    "C128": ("complex", 128),
}  # fmt: skip


def category(name: str) -> str:
    return TYPES[name][0]


def promoted(a: str, b: str) -> str | None:
    """Tensor with tensor, sentence by sentence; None: the types do not mix."""
    if a == b:
        return a
    kinds = {category(a), category(b)}
    if "wide" in kinds:
        return None
    pair = {a, b}
    if "complex" in kinds:
        if "C128" in pair or "F64" in pair:
            return "C128"
        return "C64" if "C64" in pair or pair & {"F32", "BF16"} else "C32"
    if "float" in kinds:
        floats = sorted((name for name in pair if category(name) == "float"), key=lambda name: TYPES[name][1])
        if len(floats) == 2:
            return "F32" if pair == {"F16", "BF16"} else floats[1]
        return floats[0]
    if "bool" in kinds:
        return a if b == "B" else b
    if "U8" in pair:
        other = (pair - {"U8"}).pop()
        return "I16" if other == "I8" else other
    return max(pair, key=lambda name: TYPES[name][1])


def promoted_with_scalar(tensor: str, scalar: str) -> str | None:
    """Tensor with scalar: the tensor's category dominates."""
    kind, other = category(tensor), category(scalar)
    if kind == "float":
        complexes = {"F16": "C32", "F32": "C64", "BF16": "C64", "F64": "C128"}
        return complexes[tensor] if other == "complex" else tensor
    if kind == "complex":
        return "C128" if scalar == "F64" else tensor
    if other == "complex":
        return "C64"
    if other == "float":
        return None if kind == "wide" else "F32"
    if kind == "bool":
        return {"bool": "B", "int": scalar, "wide": None}[other]
    return tensor


def can_cast(a: str, b: str) -> bool:
    """Whether a result of type a may be stored as b."""
    kind, to = category(a), category(b)
    return not ((kind == "complex" and to != "complex") or (kind == "float" and to in ("int", "wide", "bool"))
                or (kind != "bool" and to == "bool"))  # fmt: skip
