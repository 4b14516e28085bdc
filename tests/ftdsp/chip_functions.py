"""Prints those of the functions given as arguments that libftdsp serves as the chip of UNDERSTUDY_FT_CHIP.

Each is called with zeros and NULL. One that the chip lacks says so; what the others say does not matter.
"""

import sys

from understudy.ftdsp import ffi, last_error, lib


def served(name: str) -> bool:
    function = getattr(lib, name)
    lib.understudy_clear_last_error()
    function(*(ffi.NULL if kind.kind == "pointer" else 0 for kind in ffi.typeof(function).args))
    return last_error().rule != f"{name}/prefix/chip"


if __name__ == "__main__":
    print(*filter(served, sys.argv[1:]))
