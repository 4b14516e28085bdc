"""Which elements of a matrix mcBLAS uses, by what the checks find. Run under UNDERSTUDY_CHECK=init,race with the name of a case.

Each element of the storage in turn is left unwritten, or written by another stream. Prints, as JSON, the elements [row, column]
for which there was a finding: of missing inputs, of unordered writes, and those that were not written by a call on fresh memory."""

from __future__ import annotations

import ctypes
import json
import sys

from tests.maca.runtime_support import device_memory, made, ok, stream
from understudy import paths
from understudy.maca import ffi, lib

N, LEADING = 5, 6
BELOW, ABOVE = 1, 2 # diagonals of the general band
ROWS = 4            # of the general band's matrix
core = ctypes.CDLL(str(paths.sdk() / "lib" / "libunderstudy.so"))
handle = made("mcblasHandle_t", lib.mcblasCreate)
first, second = (stream(lib.mcStreamNonBlocking) for _ in range(2))
ok(lib.mcblasSetStream(handle, first))


def scalar(value, kind):
    return ffi.new("float[2]", [value, 0.0]) if kind == "C" else ffi.new("float *", value)


def number(value):
    """In device memory."""
    place = device_memory(8)
    ok(lib.mcMemcpy(place, ffi.new("float[2]", [value, 0.0]), 8, lib.mcMemcpyHostToDevice))
    return place


def filled(bytes_=512):
    memory = device_memory(bytes_)
    ok(lib.mcMemset(memory, 0, bytes_))
    return memory


B, C = filled(), filled()


def call(kind, routine, *arguments):
    """Calls mcblas<kind><routine>: memory becomes a pointer of the type, numbers written as floats become scalars."""
    function = getattr(lib, f"mcblas{kind}{routine}")
    given = [scalar(argument, kind) if isinstance(argument, float) else argument for argument in arguments]
    ok(function(handle, *(ffi.cast(wanted, argument) if isinstance(argument, ffi.CData) else argument
                          for wanted, argument in zip(ffi.typeof(function).args[1:], given))))


# What reads, or writes over, a matrix x with leading dimension LEADING; parameters uplo and diag.
CASES = {
    "trmv": ("S", lambda x, u, d: call("S", "trmv", u, 0, d, N, x, LEADING, B, 1)),
    "trsv": ("S", lambda x, u, d: call("S", "trsv", u, 1, d, N, x, LEADING, B, -1)),
    "trsm": ("S", lambda x, u, d: call("S", "trsm", 1, u, 0, d, 2, N, 1.0, x, LEADING, B, 2)),
    "trmm": ("C", lambda x, u, d: call("C", "trmm", 0, u, 0, d, N, 2, 1.0, x, LEADING, B, N, C, N)),
    "tbmv": ("S", lambda x, u, d: call("S", "tbmv", u, 0, d, N, 2, x, LEADING, B, 1)),
    "tbsv": ("C", lambda x, u, d: call("C", "tbsv", u, 0, d, N, 2, x, LEADING, B, 1)),
    "symv": ("S", lambda x, u, d: call("S", "symv", u, N, 1.0, x, LEADING, B, 1, 0.0, C, 1)),
    "hemm": ("C", lambda x, u, d: call("C", "hemm", 0, u, N, 2, 1.0, x, LEADING, B, N, 0.0, C, N)),
    "hbmv": ("C", lambda x, u, d: call("C", "hbmv", u, N, 2, 1.0, x, LEADING, B, 1, 0.0, C, 1)),
    "gbmv": ("S", lambda x, u, d: call("S", "gbmv", 0, ROWS, N, BELOW, ABOVE, 1.0, x, LEADING, B, 1, 0.0, C, 1)),
    "trttp": ("S", lambda x, u, d: call("S", "trttp", u, N, x, LEADING, C)),
    "syr": ("S", lambda x, u, d: call("S", "syr", u, N, 1.0, B, 1, x, LEADING)),
    "syrk": ("S", lambda x, u, d: call("S", "syrk", u, 0, N, 2, 1.0, B, N, 1.0, x, LEADING)),
    "syrk-over": ("S", lambda x, u, d: call("S", "syrk", u, 0, N, 2, 1.0, B, N, 0.0, x, LEADING)),
    "herkx-over": ("C", lambda x, u, d: call("C", "herkx", u, 0, N, 2, 1.0, B, N, C, N, 0.0, x, LEADING)),
    "tpttr": ("S", lambda x, u, d: call("S", "tpttr", u, N, B, x, LEADING)),
    "trsmBatched": ("S", lambda x, u, d: call("S", "trsmBatched", 0, u, 0, d, N, 2, 1.0, table(x), LEADING, table(B), N, 1)),
}
tables = []


def table(address):
    tables.append(filled(8))
    ok(lib.mcMemcpy(tables[-1], ffi.new("void *[1]", [address]), 8, lib.mcMemcpyHostToDevice))
    return tables[-1]


def found(action) -> bool:
    before = core.understudy_findings()
    action()
    ok(lib.mcDeviceSynchronize())
    return core.understudy_findings() > before


def element_at(memory, size, row, column):
    return ffi.cast("char *", memory) + (column * LEADING + row) * size


def without(size, row, column):
    """All of the storage is written but this element."""
    memory, offset, end = device_memory(N * LEADING * size), (column * LEADING + row) * size, N * LEADING * size
    ok(lib.mcMemset(memory, 0, offset))
    ok(lib.mcMemset(ffi.cast("char *", memory) + offset + size, 0, end - offset - size))
    return memory


def show(name, uplo, diag):
    kind, use = CASES[name]
    size = {"S": 4, "C": 8}[kind]
    elements = [(row, column) for row in range(LEADING) for column in range(N)]
    whole, fresh = filled(N * LEADING * size), device_memory(N * LEADING * size)
    print(json.dumps({
        "missing": [e for e in elements if found(lambda e=e: use(without(size, *e), uplo, diag))],
        "unordered": [e for e in elements if found(lambda e=e: (
            use(whole, uplo, diag), ok(lib.mcMemsetAsync(element_at(whole, size, *e), 0, size, second))))],
        "unwritten": [e for e in elements if found(lambda e=e: (
            use(fresh, uplo, diag), ok(lib.mcDeviceSynchronize()),
            ok(lib.mcMemcpy(ffi.new("char[]", size), element_at(fresh, size, *e), size, lib.mcMemcpyDeviceToHost))))]
        if name.endswith("-over") or name == "tpttr" else None,
    }))


if __name__ == "__main__":
    show(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
