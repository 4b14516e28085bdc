"""The checks on mcBLAS: what each function reads and writes is what its definition says (mcblas 6, 7, 9.2), no more and no less."""

import json
import sys

import pytest

from tests.checks.mcblas_elements import ABOVE, BELOW, LEADING, N, ROWS
from tests.conformance.harness import run_isolated

LOWER, UPPER, UNIT = 0, 1, 1


def triangle(uplo, unit):
    return {(row, column) for row in range(N) for column in range(N)
            if (row > column if uplo == LOWER else row < column) or (row == column and not unit)}


def in_diagonals(elements, top):
    """Where elements of a matrix are when its diagonals are stored as rows, the main one as row `top`."""
    return {(top + row - column, column) for row, column in elements}


def band(uplo, unit, width=2):
    near = {(row, column) for row, column in triangle(uplo, unit) if abs(row - column) <= width}
    return in_diagonals(near, 0 if uplo == LOWER else width)


def general_band():
    return in_diagonals({(row, column) for row in range(ROWS) for column in range(N)
                         if -ABOVE <= row - column <= BELOW}, ABOVE)


TRIANGULAR = {"trmv": triangle, "trsv": triangle, "trsm": triangle, "trmm": triangle, "trsmBatched": triangle, "tbmv": band,
              "tbsv": band}
SYMMETRIC = {"symv": triangle, "hemm": triangle, "hbmv": band, "trttp": triangle, "syr": triangle, "syrk": triangle}
OVERWRITTEN = ["syrk-over", "herkx-over", "tpttr"]
EVERY = ([(name, part, uplo, unit) for name, part in TRIANGULAR.items() for uplo in (LOWER, UPPER) for unit in (0, 1)] +
         [(name, part, uplo, 0) for name, part in SYMMETRIC.items() for uplo in (LOWER, UPPER)] +
         [("gbmv", lambda uplo, unit: general_band(), LOWER, 0)])


def elements_of(name, uplo, unit):
    done = run_isolated([sys.executable, "-m", "tests.checks.mcblas_elements", name, str(uplo), str(unit)],
                        {"UNDERSTUDY_CHECK": "init,race"})
    return {what: None if elements is None else set(map(tuple, elements))
            for what, elements in json.loads(done.stdout).items()}


@pytest.mark.parametrize("name, part, uplo, unit", EVERY, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_elements_that_are_used(name, part, uplo, unit):
    elements = elements_of(name, uplo, unit)
    assert elements["missing"] == part(uplo, unit)
    assert elements["unordered"] == part(uplo, unit)


@pytest.mark.parametrize("uplo", [LOWER, UPPER])
@pytest.mark.parametrize("name", OVERWRITTEN)
def test_the_elements_that_are_written_but_not_read(name, uplo):
    elements = elements_of(name, uplo, 0)
    everything = {(row, column) for row in range(LEADING) for column in range(N)}
    assert elements["missing"] == set()
    assert elements["unordered"] == triangle(uplo, False)
    assert elements["unwritten"] == everything - triangle(uplo, False)


# x has never been written; the factor f multiplies what it holds, A and B what is written. A number is in host memory, or in the
# device's; C is written.
FACTORS = {
    "gemm": 'call("S", "gemm", 0, 0, N, N, N, one, B, N, B, N, f, x, N)',
    "gemm-alpha": 'call("S", "gemm", 0, 0, N, N, N, f, x, N, B, N, one, C, N)',
    "gemv": 'call("S", "gemv", 0, N, N, one, B, N, B, 1, f, x, 1)',
    "gbmv": 'call("S", "gbmv", 0, N, N, 1, 1, one, B, N, B, 1, f, x, -1)',
    "symv": 'call("S", "symv", 0, N, one, B, N, B, 1, f, x, 1)',
    "symv-alpha": 'call("S", "symv", 0, N, f, x, N, B, 1, one, C, 1)',
    "spmv": 'call("S", "spmv", 0, N, one, B, B, 1, f, x, 1)',
    "hbmv": 'call("C", "hbmv", 0, N, 1, one, B, N, B, 1, f, x, 1)',
    "symm": 'call("S", "symm", 0, 0, N, N, one, B, N, B, N, f, x, N)',
    "syrk": 'call("S", "syrk", 0, 0, N, N, one, B, N, f, x, N)',
    "herk": 'call("C", "herk", 0, 0, N, N, one, B, N, f, x, N)',
    "syr2k": 'call("S", "syr2k", 1, 1, N, N, one, B, N, B, N, f, x, N)',
    "trsm": 'call("S", "trsm", 0, 0, 0, 0, N, N, f, B, N, x, N)',
    "trmm": 'call("S", "trmm", 0, 0, 0, 0, N, N, f, B, N, x, N, C, N)',
    "geam": 'call("S", "geam", 0, 0, N, N, one, B, N, f, x, N, C, N)',
    "gemmStridedBatched": 'call("S", "gemmStridedBatched", 0, 0, 2, 2, 2, one, B, 2, 4, B, 2, 4, f, x, 2, 4, 2)',
    "gemmBatched": 'call("S", "gemmBatched", 0, 0, N, N, N, one, table(B), N, table(B), N, f, table(x), N, 1)',
    "gemvBatched": 'call("S", "gemvBatched", 0, N, N, one, table(B), N, table(B), 1, f, table(x), 1, 1)',
    "trsmBatched": 'call("S", "trsmBatched", 0, 0, 0, 0, N, N, f, table(B), N, table(x), N, 1)',
    "trsmBatched-alpha": 'call("S", "trsmBatched", 0, 0, 0, 0, N, N, f, table(x), N, table(B), N, 1)',
}
PRELUDE = """
from tests.checks.mcblas_elements import *
x, D2H, H2D = device_memory(256), lib.mcMemcpyDeviceToHost, lib.mcMemcpyHostToDevice
def wait():
    ok(lib.mcDeviceSynchronize())
def down(address, size=4):
    ok(lib.mcMemcpy(ffi.new("char[]", size), address, size, D2H))
"""


def findings(calls, checks, mode="async"):
    done = run_isolated([sys.executable, "-c", PRELUDE + calls + "\nok(lib.mcDeviceSynchronize())"],
                        {"UNDERSTUDY_CHECK": checks, "UNDERSTUDY_STREAM": mode})
    return [line for line in done.stderr.splitlines() if ": check " in line]


@pytest.mark.parametrize("name", FACTORS)
def test_what_is_multiplied_by_zero_is_not_read(name):
    """One call after the other in one program: a factor of 0 or -0 on the host, on the device, then factors of 1."""
    calls = "".join(f"""
ok(lib.mcblasSetPointerMode(handle, {device}))
one, f, x = {place}(1.0), {place}({factor}), device_memory(256)
print({device}, {factor}, found(lambda: {FACTORS[name]}))
""" for device, place in enumerate(["float", "number"]) for factor in (0.0, -0.0, 1.0))
    done = run_isolated([sys.executable, "-c", PRELUDE + calls], {"UNDERSTUDY_CHECK": "init"})
    assert done.stdout.splitlines() == [f"{device} {factor} {factor == 1}" for device in (0, 1)
                                        for factor in (0.0, -0.0, 1.0)], done.stderr


@pytest.mark.parametrize("call", [
    "lib.mcblasLtMatmul(lt.handle(), lt.description(POINTER_MODE=1), number(1.0), B, of, B, of, number({}), x, of, C, of, ffi.NULL, "
    "ffi.NULL, 0, first)",
    "lib.mcblasLtMatrixTransform(lt.handle(), lt.transform(POINTER_MODE=1), number({}), x, of, number(1.0), B, of, C, of, first)",
    "lib.mcblasLtMatrixTransform(lt.handle(), lt.transform(POINTER_MODE=1), number(1.0), B, of, number({}), x, of, C, of, first)",
])
def test_what_mcblaslt_multiplies_by_zero_is_not_read(call):
    calls = "from tests.maca import mcblaslt_support as lt\nof = lt.layout(0, N, N)\n"
    assert findings(calls + f"ok({call.format(0.0)})", "init") == []
    assert len(findings(calls + f"ok({call.format(1.0)})", "init")) == 1


@pytest.mark.parametrize("calls, found", [
    ('call("S", "rotg", B, C, x, number(0.0))', None),
    ('call("C", "rotg", B, C, x, number(0.0))', None),
    ('call("S", "rotmg", B, B, C, C, x); wait(); down(x, 20)', None),
    ('call("S", "rotg", x, C, B, B)', "mcblasSrotg reads a"),
    ('call("S", "rotmg", B, B, C, x, C)', "mcblasSrotmg reads y1"),
])
def test_results_of_rotations_are_only_written(calls, found):
    told = findings("ok(lib.mcblasSetPointerMode(handle, 1))\n" + calls, "init")
    assert len(told) == (found is not None) and all(found in line for line in told), told


# Batches of two that read the matrices `inputs`, by the table r, and write `outputs`, by w; and how many bytes of each.
BATCHES = {
    "gemmBatched": ('call("S", "gemmBatched", 0, 0, 4, 4, 4, 1.0, {r}, 4, {r}, 4, 0.0, {w}, 4, 2)', 64),
    "gemvBatched": ('call("S", "gemvBatched", 0, 4, 4, 1.0, {r}, 4, {r}, 1, 0.0, {w}, -2, 2)', 4),
    "HSHgemvBatched": ('call("", "HSHgemvBatched", 0, 4, 4, one, {r}, 4, {r}, 1, nothing, {w}, 1, 2)', 8),
    "GemmBatchedEx": ('call("", "GemmBatchedEx", 0, 0, 4, 4, 4, one, {r}, 0, 4, {r}, 0, 4, nothing, {w}, 0, 4, 2, 68, -1)', 64),
    "groups": ('call("", "GemmGroupedBatchedEx", two(0), two(0), two(4), two(4), two(4), both, {r}, 0, two(4), {r}, 0, two(4), '
               'neither, {w}, 0, two(4), 2, two(1), 68)', 64),
    "getriBatched": ('call("S", "getriBatched", 4, {r}, 4, ffi.NULL, {w}, 4, B, 2)', 64),
    "matinvBatched": ('call("S", "matinvBatched", 4, {r}, 4, {w}, 4, B, 2)', 64),
    "geqrfBatched": ('call("S", "geqrfBatched", 4, 4, {r}, 4, {w}, ffi.new("int *"), 2)', 16),
}
BATCH_PRELUDE = """
one, nothing, both, neither = (ffi.new("float[2]", pair) for pair in ([1, 0], [0, 0], [1, 1], [0, 0]))
kept = []
def two(value):
    kept.append(ffi.new("int[2]", [value, value]))
    return kept[-1]
def pointers(*addresses):
    kept.append(filled(8 * len(addresses)))
    ok(lib.mcMemcpy(kept[-1], ffi.new("void *[]", addresses), 8 * len(addresses), H2D))
    return kept[-1]
def matrix():
    memory = device_memory(64)
    ok(lib.mcMemcpy(memory, ffi.new("float[16]", [float(i % 5 == 0) for i in range(16)]), 64, H2D))
    return memory
inputs, outputs = [matrix(), matrix()], [device_memory(64), device_memory(64)]
r, w = pointers(*inputs), pointers(*outputs)
"""


def batch(name):
    return BATCHES[name][0].format(r="r", w="w")


@pytest.mark.parametrize("name", BATCHES)
def test_init_sees_what_batches_read_and_write(name):
    read_back = f"\nwait()\nfor place in outputs: down(place, {BATCHES[name][1]})"
    assert findings(BATCH_PRELUDE + batch(name) + read_back, "init") == []
    missing = "\nr = pointers(inputs[0], device_memory(64))\n"
    told = findings(BATCH_PRELUDE + missing + batch(name), "init")
    assert told and all("check init: mcblas" in line and " reads " in line for line in told)


@pytest.mark.parametrize("mode", ["async", "inline", "deferred"])
@pytest.mark.parametrize("name", BATCHES)
def test_race_sees_what_batches_read_and_write(name, mode):
    def told(place):
        """A copy of the same bytes on another stream."""
        calls = f"same = pointers(*outputs)\n{batch(name)}\nok(lib.mcMemcpyAsync({place}, same, 4, lib.mcMemcpyDeviceToDevice, second))"
        return [line.split(": check ")[1][:20] for line in findings(BATCH_PRELUDE + calls, "race", mode)]

    assert told("outputs[1]") == told("inputs[1]") == told("w") == ["race: mcMemcpyAsync "]
    assert told("device_memory(64)") == []


def test_sync_sees_what_batches_write():
    told = findings(BATCH_PRELUDE + batch("gemmBatched") + "\ndown(outputs[1])", "sync", "deferred")
    assert len(told) == 1 and "which writes there" in told[0]


GROUPS = BATCHES["groups"][0]


@pytest.mark.parametrize("call, named", [
    (BATCHES["gemmBatched"][0].format(r="r", w="pointers(outputs[0], ffi.NULL)"), "Carray[1]: (nil) is "),
    (BATCHES["gemmBatched"][0].format(r="r", w="ffi.new('void *[]', outputs)"), "Carray, the array of pointers: 0x"),
    (BATCHES["gemmBatched"][0].format(r="pointers(host, *inputs)", w="w"), "Aarray[0]: 0x"),
    (GROUPS.format(r="r", w="pointers(outputs[0], host)"), "Carray[1]: 0x"),
    (BATCHES["getriBatched"][0].format(r="r", w="w").replace("B, 2", "host, 2"), "info of matrix 0: 0x"),
])
def test_messages_name_the_entry_of_a_batch(call, named):
    """An array in host memory and an entry that points there read differently."""
    calls = f'{PRELUDE}{BATCH_PRELUDE}host = ffi.new("char[64]")\n{call}\nlib.mcDeviceSynchronize()'
    done = run_isolated([sys.executable, "-c", calls], {"UNDERSTUDY_LOG": "warn"})
    assert f": {named}" in done.stderr and "is ordinary host memory" in done.stderr


# The pointers come by a copy, or the call is recorded: nobody knows at the call what it uses, but `init` does when it runs.
LATE = """
host = ffi.cast("void **", made("void *", lib.mcMallocHost, 64, 0))
host[0:2] = outputs
ok(lib.mcMemcpyAsync(w, host, 16, H2D, first))
""", """
graph, run = ffi.new("mcGraph_t *"), ffi.new("mcGraphExec_t *")
ok(lib.mcStreamBeginCapture(first, 0))
"""
THEN = "", """
ok(lib.mcStreamEndCapture(first, graph))
ok(lib.mcGraphInstantiate(run, graph[0], ffi.NULL, ffi.NULL, 0))
ok(lib.mcGraphLaunch(run[0], first))
"""


@pytest.mark.parametrize("before, after", list(zip(LATE, THEN)), ids=["copied", "recorded"])
def test_pointers_that_are_not_known_at_the_call(before, after):
    use = f"\n{batch('gemmBatched')}\n{after}wait()\nfor place in outputs: down(place, 64)"
    assert findings(BATCH_PRELUDE + before + use, "init,race,sync,memory") == []
    told = findings(BATCH_PRELUDE + "r = pointers(inputs[0], device_memory(64))\n" + before + use, "init,race,sync,memory")
    assert told and all("check init" in line for line in told)


def test_factorisations_in_place_are_seen():
    calls = """
P, info, right = (device_memory(64) for _ in range(3))
call("S", "getrfBatched", 4, r, 4, P, info, 2)
wait()
down(P, 32), down(info, 8)
ok(lib.mcMemset(right, 0, 32))
call("S", "getrsBatched", 0, 4, 2, r, 4, P, pointers(right, right), 4, ffi.new("int *"), 2)
call("S", "gelsBatched", 0, 4, 4, 2, pointers(matrix(), matrix()), 4, pointers(right, right), 4, ffi.new("int *"), info, 2)
"""
    assert findings(BATCH_PRELUDE + calls, "init") == []
    assert len(findings(BATCH_PRELUDE + calls.replace("ok(lib.mcMemset(right, 0, 32))", ""), "init")) == 1


def test_products_of_complex_integers_are_seen():
    """Of two matrices, whose parts are 8-bit integers."""
    product = """
zeros, pair = filled(64), device_memory(64)
call("", "GemmStridedBatchedEx", 0, 0, 2, 2, 2, ffi.new("float[2]", [1, 0]), {a}, 7, 4, 16, zeros, 7, 4, 16,
     ffi.new("float[2]", [0, 0]), pair, 4, 2, 4, 2, 68, -1)
"""
    assert findings(product.format(a="zeros") + "wait()\ndown(pair, 64)", "init") == []
    told = findings(product.format(a="x"), "init")
    assert len(told) == 1 and "reads A" in told[0]
    assert len(findings(product.format(a="zeros") + "ok(lib.mcMemsetAsync(pair, 0, 4, second))", "race")) == 1
