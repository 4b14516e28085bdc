"""How a case differs: another status, another number, or a number that is only rounded otherwise."""

from __future__ import annotations

import ctypes
import functools
import os

import numpy

# What the vendor allows one measurement (opbase, experimental_standard.md, by aclnn-ops 1.5): the mean relative error
# below T and the largest below 10 T, relative to |expected| + 1e-7.
TOLERANCES = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-13, "float64": 2.0**-13}
EPSILONS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


@functools.cache
def core() -> ctypes.CDLL | None:
    """The library that knows rules and sentences; None when the calls go to libraries that are not ours."""
    try:
        library = ctypes.CDLL("libunderstudy.so", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return None
    for name in ("understudy_last_rule", "understudy_last_error"):
        getattr(library, name).restype = ctypes.c_char_p
    return library


class WrongStatus(AssertionError):
    """The call returned another status than it has to."""

    outcome = "wrong status"

    def __init__(self, actual: int, expected: int):
        said = f" ({core().understudy_last_error().decode()})" if core() is not None else ""
        super().__init__(f"status {actual}, expected {expected}{said}")
        self.facts = {"status": actual, "expected_status": expected}


class WrongNumber(AssertionError):
    """Results lie outside of what the case allows; `outcome` says whether also outside of what the vendor does."""

    def __init__(self, actual, expected, allowed: str, dtype: str = "float32"):
        dtype = dtype if dtype in TOLERANCES else "float32"
        actual, expected = numpy.broadcast_arrays(numpy.asarray(actual), numpy.asarray(expected))
        exact = numpy.complex128 if numpy.iscomplexobj(actual) or numpy.iscomplexobj(expected) else numpy.float64
        actual, expected = actual.astype(exact).ravel(), expected.astype(exact).ravel()
        finite = numpy.isfinite(actual) & numpy.isfinite(expected)
        same = (actual == expected) | (numpy.isnan(actual) & numpy.isnan(expected))
        errors = numpy.zeros(actual.shape)
        errors[finite] = numpy.abs(actual - expected)[finite] / (numpy.abs(expected)[finite] + 1e-7)
        errors[~finite & ~same] = numpy.inf  # an infinity or NaN on one side
        tolerance = TOLERANCES[dtype]
        inside = errors.size > 0 and errors.max() < 10 * tolerance and errors.mean() < tolerance
        self.outcome = "rounds differently" if inside else "wrong number"
        worst = int(errors.argmax()) if errors.size else 0
        ulps = float(errors.max(initial=0.0) / EPSILONS[dtype])
        self.facts = {"largest_error_ulp": ulps, "type": dtype}
        super().__init__(f"element {worst} is {actual[worst]}, expected {expected[worst]}; largest error "
                         f"{ulps:.3g} units in the last place of {dtype}; allowed: {allowed}" if errors.size else "sizes differ")  # fmt: skip


def require_status(actual: int, expected: int = 0) -> None:
    if actual != expected:
        raise WrongStatus(actual, expected)
