"""Promotion and conversion tables against the sheet's sentences (aclnn-base 7). The functions are internal: the source file
is compiled here."""

import itertools
import pathlib
import shutil
import subprocess

import cffi
import pytest

from tests.conformance.ascend import promotion

ROOT = pathlib.Path(__file__).parents[2]

CODES = {
    "F32": 0, "F16": 1, "BF16": 27, "F64": 11, "I8": 2, "I16": 6, "I32": 3, "I64": 9, "U8": 4, "U16": 7, "U32": 8, "U64": 10,
    "B": 12, "C32": 33, "C64": 16, "C128": 17,
}  # fmt: skip
OTHERS = {"STRING": 13, "INT4": 29, "UINT1": 30, "HIFLOAT8": 34, "FLOAT8_E5M2": 35, "unknown": 5}


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
    return next((name for name in CODES if CODES[name] == code), None)


@pytest.mark.parametrize("a, b", list(itertools.product(CODES, repeat=2)))
def test_tensor_with_tensor(library, a, b):
    result = library.acl_promote(CODES[a], CODES[b])
    assert named(result) == promotion.promoted(a, b)
    assert result == library.acl_promote(CODES[b], CODES[a])


@pytest.mark.parametrize("tensor, scalar", list(itertools.product(CODES, repeat=2)))
def test_tensor_with_scalar(library, tensor, scalar):
    result = library.acl_promote_scalar(CODES[tensor], CODES[scalar])
    assert named(result) == promotion.promoted_with_scalar(tensor, scalar)


@pytest.mark.parametrize("a, b", list(itertools.product(CODES, repeat=2)))
def test_conversions(library, a, b):
    assert library.acl_can_cast(CODES[a], CODES[b]) == promotion.can_cast(a, b)


@pytest.mark.parametrize("name", OTHERS)
def test_types_outside_the_tables(library, name):
    code = OTHERS[name]
    assert library.acl_promote(code, code) == code
    for other in list(CODES.values()) + [-1, -5, 1000]:
        assert library.acl_promote(code, other) == library.acl_promote(other, code) == -1
        assert library.acl_promote_scalar(code, other) == library.acl_promote_scalar(other, code) == -1
        assert not library.acl_can_cast(code, other) and not library.acl_can_cast(other, code)
