"""Instruction-set levels: which functions a call reaches, and what sources of every level may not have."""

import platform
import sys

import pytest

from tests import native
from understudy import paths

LIBRARY = paths.sdk() / "lib" / "libunderstudy.so"
SCRIPT = native.ROOT / "src_c" / "generate" / "levels.py"
LEVELS = {"base": 1, "v3": 3, "v4": 4}

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have one level")


def has_level(number):
    loader = native.run(["/lib64/ld-linux-x86-64.so.2", "--help"]).stdout
    return number == 1 or f"x86-64-v{number} (supported" in loader


# A jump begins with movq us_level_row(%rip), %r11; the rows of the levels follow each other.
PROGRAM = f"""
import ctypes
library = ctypes.CDLL({str(LIBRARY)!r})
jump = ctypes.cast(library.us_store_bytes, ctypes.c_void_p).value
code = ctypes.string_at(jump, 7)
assert code[:3] == bytes.fromhex("4c8b1d")
row = jump + 7 + int.from_bytes(code[3:], "little", signed=True)
print(ctypes.c_uint64.from_address(row).value - jump)
"""


def test_calls_go_to_the_level_that_was_asked_for():
    levels = [level for level, number in LEVELS.items() if has_level(number)]
    rows = [int(native.check([sys.executable, "-c", PROGRAM], {"UNDERSTUDY_ISA": level})) for level in levels]
    assert rows == sorted(set(rows))
    assert int(native.check([sys.executable, "-c", PROGRAM], {"UNDERSTUDY_ISA": ""})) == rows[-1]


def linked(folder, source, *flags):
    """What the script says about a source as the only one of a level; "" where it takes it."""
    (folder / "source.c").write_text(source)
    native.check(["gcc", "-O2", "-fPIC", *flags, "-c", folder / "source.c", "-o", folder / "source.o"])
    (folder / "list").write_text(f'"{folder / "source.o"}"\n')
    tools = [f"--{tool}={tool}" for tool in ("nm", "objcopy", "objdump")]
    command = [sys.executable, SCRIPT, folder / "linked", "--compiler=gcc", *tools, f"base={folder / 'list'}"]
    return native.run(command).stderr


def test_functions_and_constants_are_taken(tmp_path):
    assert linked(tmp_path, "static const int *const table[2]; int f(int k) { return *table[k]; }") == ""
    jump = (tmp_path / "linked" / "levels.S").read_text()
    assert "\nf:\n" in jump and ".quad f_base\n" in jump
    assert " T f_base\n" in native.check(["nm", tmp_path / "linked" / "base.o"])


@pytest.mark.parametrize("source", ["int f(void) { static int calls; return ++calls; }", "int calls = 1;",
                                    "const int calls = 1;",
                                    "int f(void) { static _Thread_local int calls = 1; return ++calls; }"])  # fmt: skip
def test_variables_and_global_data_are_refused(tmp_path, source):
    assert "calls" in linked(tmp_path, source)


def test_fused_products_are_refused(tmp_path):
    source = """void f(float *y, const float *a, const float *b, const float *c)
{
    asm("vmovups (%1), %%ymm0\\n vmovups (%2), %%ymm1\\n vfmaddsub231ps (%3), %%ymm0, %%ymm1\\n vmovups %%ymm1, (%0)"
        : : "r"(y), "r"(a), "r"(b), "r"(c) : "xmm0", "xmm1", "memory");
}"""
    assert "complex products were fused with sums" in linked(tmp_path, source)
