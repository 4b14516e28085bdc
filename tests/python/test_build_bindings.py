"""What the shipped headers contain reaches Python: attributes, constants, inline functions, half, system headers."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "python" / "build_bindings.py"
ASCEND_HEADER = """
#ifndef GUARD_H
#define GUARD_H
#include <stdio.h>
#include <stdint.h>
#define API __attribute__((visibility("default"), deprecated("use (another)")))
#define COUNT 3
#define MASK (1U << COUNT | 0x10UL)
#define OCTAL 0755
#define NEGATIVE (-2)
#define FROM_ENUM (1 << SECOND)
#define TEXT "text"
#define RATIO 0.5
typedef enum { FIRST, SECOND = 4, THIRD } Order;
static const int CONSTANT = 100000;
typedef int (*Callback)(void *data);
typedef struct { char name[COUNT]; double value; } Record;
_Static_assert(sizeof(Record) == 16, "layout; with (brackets)");
static inline int twice(int x) { if (x) { return 2 * x; } return 0; }
__extension__ typedef _Float16 half;
API int function(Record *record, const half *data, size_t count, Callback callback);
#endif
"""


def load_script():
    spec = importlib.util.spec_from_file_location("build_bindings", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_script(include: pathlib.Path, output: pathlib.Path):
    command = [sys.executable, SCRIPT, "--stack", "ascend", "--include", include, "--output", output]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def include(tmp_path):
    (tmp_path / "include" / "ascend").mkdir(parents=True)
    (tmp_path / "include" / "understudy").mkdir()
    (tmp_path / "include" / "understudy" / "understudy.h").write_text("int understudy_last_status(void);\n")
    return tmp_path / "include"


def test_a_header_with_everything(include, tmp_path):
    (include / "ascend" / "everything.h").write_text(ASCEND_HEADER)
    done = run_script(include, tmp_path / "made.py")
    assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location("made", tmp_path / "made.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ffi, lib = module.ffi, module.ffi.dlopen(None)
    names = ["COUNT", "MASK", "OCTAL", "NEGATIVE", "FROM_ENUM", "SECOND", "THIRD", "CONSTANT"]
    assert [getattr(lib, name) for name in names] == [3, 0x18, 0o755, -2, 16, 4, 5, 100000]
    declared = set(dir(lib))
    assert declared.isdisjoint({"TEXT", "RATIO", "API", "GUARD_H", "twice", "printf", "EOF"})
    assert {"function", "understudy_last_status"} <= declared
    assert ffi.sizeof("Record") == 16 and ffi.sizeof("half") == 2
    assert ffi.typeof("Order").elements == {0: "FIRST", 4: "SECOND", 5: "THIRD"}


def test_a_stack_without_headers_is_an_error(include, tmp_path):
    done = run_script(include, tmp_path / "made.py")
    assert done.returncode != 0 and "no headers of" in done.stderr


def test_a_broken_header_is_an_error(include, tmp_path):
    (include / "ascend" / "broken.h").write_text('#include "missing.h"\n')
    done = run_script(include, tmp_path / "made.py")
    assert done.returncode != 0 and "missing.h" in done.stderr and not (tmp_path / "made.py").exists()


@pytest.mark.parametrize("text, value", [
    ("12", 12), ("0x1fUL", 31), ("-5", -5), ("~0", -1), ("1 << 4 | 3", 19), ("(A * 100 + 2)", 302), ("017", 15),
    ("0", 0), ("1.5", None), ("unknown", None), ('"7"', None), ("(int)3", None), ("", None), ("f(1)", None),
])  # fmt: skip
def test_integer_macros(text, value):
    assert load_script().integer_value(text, {"A": 3}) == value
