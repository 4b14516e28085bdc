"""Promotion and conversion tables against the sheet's sentences (aclnn-base 7). The functions are internal: the source file
is compiled here."""

import itertools
import pathlib
import shutil
import subprocess

import cffi
import pytest

ROOT = pathlib.Path(__file__).parents[2]

# name: (code, category, bits)
TYPES = {
    "F32": (0, "float", 32), "F16": (1, "float", 16), "BF16": (27, "float", 16), "F64": (11, "float", 64),
    "S8": (2, "int", 8), "S16": (6, "int", 16), "S32": (3, "int", 32), "S64": (9, "int", 64), "U8": (4, "int", 8),
    "U16": (7, "wide", 16), "U32": (8, "wide", 32), "U64": (10, "wide", 64), "BOOL": (12, "bool", 1),
    "C32": (33, "complex", 32), "C64": (16, "complex", 64), "C128": (17, "complex", 128),
}  # fmt: skip
OTHERS = {"STRING": 13, "INT4": 29, "UINT1": 30, "HIFLOAT8": 34, "FLOAT8_E5M2": 35, "unknown": 5}


def category(name):
    return TYPES[name][1]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or pytest.skip("no C compiler")
    made = tmp_path_factory.mktemp("promotion") / "promotion.so"
    subprocess.run([compiler, "-std=gnu11", "-shared", "-fPIC", "-I", ROOT / "src_c", "-I", ROOT / "include/ascend", "-o",
                    made, ROOT / "src_c/ascend/common/promotion.c"], check=True)  # fmt: skip
    ffi = cffi.FFI()
    ffi.cdef("int acl_promote(int, int); int acl_promote_scalar(int, int); _Bool acl_can_cast(int, int);")
    return ffi.dlopen(str(made))


def named(code):
    return next((name for name, facts in TYPES.items() if facts[0] == code), None)


def expected_pair(a, b):
    """The sheet's sentences on tensor with tensor, one after the other."""
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
        floats = sorted((name for name in pair if category(name) == "float"), key=lambda name: TYPES[name][2])
        if len(floats) == 2:
            return "F32" if pair == {"F16", "BF16"} else floats[1]
        return floats[0]
    if "bool" in kinds:
        return a if b == "BOOL" else b
    if "U8" in pair:
        other = (pair - {"U8"}).pop()
        return "S16" if other == "S8" else other
    return max(pair, key=lambda name: TYPES[name][2])


@pytest.mark.parametrize("a, b", list(itertools.product(TYPES, repeat=2)))
def test_tensor_with_tensor(library, a, b):
    result = library.acl_promote(TYPES[a][0], TYPES[b][0])
    assert named(result) == expected_pair(a, b)
    assert result == library.acl_promote(TYPES[b][0], TYPES[a][0])


def expected_with_scalar(tensor, scalar):
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
        return {"bool": "BOOL", "int": scalar, "wide": None}[other]
    return tensor


@pytest.mark.parametrize("tensor, scalar", list(itertools.product(TYPES, repeat=2)))
def test_tensor_with_scalar(library, tensor, scalar):
    result = library.acl_promote_scalar(TYPES[tensor][0], TYPES[scalar][0])
    assert named(result) == expected_with_scalar(tensor, scalar)


def refused_cast(a, b):
    kind, to = category(a), category(b)
    return ((kind == "complex" and to != "complex") or (kind == "float" and to in ("int", "wide", "bool"))
            or (kind != "bool" and to == "bool"))  # fmt: skip


@pytest.mark.parametrize("a, b", list(itertools.product(TYPES, repeat=2)))
def test_conversions(library, a, b):
    assert library.acl_can_cast(TYPES[a][0], TYPES[b][0]) == (not refused_cast(a, b))


@pytest.mark.parametrize("name", OTHERS)
def test_types_outside_the_tables(library, name):
    code = OTHERS[name]
    assert library.acl_promote(code, code) == code
    for other in [facts[0] for facts in TYPES.values()] + [-1, -5, 1000]:
        assert library.acl_promote(code, other) == library.acl_promote(other, code) == -1
        assert library.acl_promote_scalar(code, other) == library.acl_promote_scalar(other, code) == -1
        assert not library.acl_can_cast(code, other) and not library.acl_can_cast(other, code)
