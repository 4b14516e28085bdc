"""Batches of factorisations, solutions and inverses against NumPy in float64, and against what they are factors of."""

import numpy as np
import pytest

from tests.conformance.harness import run_python
from tests.maca import runtime_support as rt
from tests.maca.mcblas_support import C, LETTERS, N, Device, Host, T, close, drawn, op, run, status
from understudy.maca import ffi, lib

COUNT, PADDING = 3, 2
ORDERS = [1, 5, 32, 70]  # 70: more than a block of the LAPACK


def wide(array):
    return np.asarray(array).astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def batch(letter, rows, columns, seed):
    """Matrices in memory whose columns are longer than they are."""
    return [drawn((rows + PADDING, columns), LETTERS[letter], seed + i) for i in range(COUNT)]


def dominant(letter, n, seed=1):
    """Well conditioned, also without exchanges."""
    matrices = batch(letter, n, n, seed)
    for matrix in matrices:
        matrix[range(n), range(n)] += 4 * n
    return matrices


class Table:
    """Copies of arrays on the device, and the array of their addresses, which goes there too."""

    def __init__(self, arrays):
        self.devices = [Device(array.copy(order="F")) for array in arrays]
        self.addresses = np.array([int(ffi.cast("uintptr_t", device.address)) for device in self.devices], np.uint64)

    def end(self):
        for device in self.devices:
            device.end()
        return [device.array for device in self.devices]


def integers(*shape):
    return np.full(shape, -99, np.int32)


def host_int():
    return Host(np.full(1, -99, np.int32))


def value_of(host):
    return ffi.cast("int *", host.address)[0]


def exchanged(matrix, pivots):
    """The rows in the order that the exchanges give them."""
    result = matrix.copy()
    for i, pivot in enumerate(pivots):
        result[[i, pivot - 1]] = result[[pivot - 1, i]]
    return result


def product(factors):
    return (np.tril(factors, -1) + np.eye(len(factors))) @ np.triu(factors)


def factors_of(letter, n, matrices, pivots=True):
    table, p, info = Table(matrices), integers(COUNT, n) if pivots else None, integers(COUNT)
    run(f"mcblas{letter}getrfBatched", n, table.addresses, n + PADDING, p, info, COUNT)
    return table.end(), p, info


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("n", ORDERS)
def test_lu(letter, n):
    matrices = batch(letter, n, n, 1)
    factors, pivots, info = factors_of(letter, n, matrices)
    assert (info == 0).all() and (pivots >= np.arange(1, n + 1)).all() and (pivots <= n).all()
    for before, after, rows in zip(matrices, factors, pivots):
        close(product(wide(after[:n])), exchanged(wide(before[:n]), rows), LETTERS[letter], 8 * n)
        # The pivots are the largest; of complex ones |re| + |im| counts, which is at most the root of 2 times the size.
        largest = 2 ** 0.5 if letter in "CZ" else 1
        assert (np.abs(np.tril(wide(after[:n]), -1)) <= largest * (1 + 4 * np.finfo(LETTERS[letter]).eps)).all()
        assert (after[n:] == before[n:]).all()


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("n", ORDERS)
def test_lu_without_exchanges(letter, n):
    matrices = dominant(letter, n)
    factors, _, info = factors_of(letter, n, matrices, pivots=False)
    assert (info == 0).all()
    for before, after in zip(matrices, factors):
        close(product(wide(after[:n])) / (4 * n), wide(before[:n]) / (4 * n), LETTERS[letter], 8 * n)
        assert (after[n:] == before[n:]).all()


def test_lu_of_a_known_matrix():
    """By hand: [[0, 2], [4, 8]] needs an exchange; without one its first pivot is 0. [[2, 4], [1, 3]] needs none."""
    matrices = [np.asfortranarray(np.float64(m)) for m in ([[0, 2], [4, 8]], [[2, 4], [1, 3]])]
    table, pivots, info = Table(matrices), integers(2, 2), integers(2)
    run("mcblasDgetrfBatched", 2, table.addresses, 2, pivots, info, 2)
    assert pivots.tolist() == [[2, 2], [1, 2]] and info.tolist() == [0, 0]
    assert [array.tolist() for array in table.end()] == [[[4, 8], [0, 2]], [[2, 4], [0.5, 1]]]
    table = Table(matrices)
    run("mcblasDgetrfBatched", 2, table.addresses, 2, None, info, 2)
    assert info.tolist() == [1, 0] and table.end()[1].tolist() == [[2, 4], [0.5, 1]]


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("trans", [N, T, C])
@pytest.mark.parametrize("pivots", [True, False])
def test_solutions(letter, trans, pivots):
    n, nrhs = 33, 4
    matrices, right = dominant(letter, n), batch(letter, n, nrhs, 20)
    factors, p, _ = factors_of(letter, n, matrices, pivots)
    a, b, info = Table(factors), Table(right), host_int()
    run(f"mcblas{letter}getrsBatched", trans, n, nrhs, a.addresses, n + PADDING, p, b.addresses, n + PADDING, info, COUNT)
    assert value_of(info) == 0
    for matrix, before, after in zip(matrices, right, b.end()):
        close(after[:n], np.linalg.solve(op(wide(matrix[:n]), trans), wide(before[:n])), LETTERS[letter], 64)
        assert (after[n:] == before[n:]).all()
    assert all((x == y).all() for x, y in zip(a.end(), factors))


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("pivots", [True, False])
def test_inverses(letter, n, pivots):
    matrices = dominant(letter, n)
    factors, p, _ = factors_of(letter, n, matrices, pivots)
    results = {}
    a, c, info = Table(factors), Table(batch(letter, n, n, 30)), integers(COUNT)
    run(f"mcblas{letter}getriBatched", n, a.addresses, n + PADDING, p, c.addresses, n + PADDING, info, COUNT)
    assert (info == 0).all() and all((x == y).all() for x, y in zip(a.end(), factors))
    results["getri"] = c.end()
    if pivots and n <= 32:
        a, c, info = Table(matrices), Table(batch(letter, n, n, 30)), integers(COUNT)
        run(f"mcblas{letter}matinvBatched", n, a.addresses, n + PADDING, c.addresses, n + PADDING, info, COUNT)
        assert (info == 0).all() and all((x == y).all() for x, y in zip(a.end(), matrices))
        results["matinv"] = c.end()
    for inverses in results.values():
        for matrix, inverse, before in zip(matrices, inverses, batch(letter, n, n, 30)):
            close(4 * n * wide(inverse[:n]), 4 * n * np.linalg.inv(wide(matrix[:n])), LETTERS[letter], 64)
            assert (inverse[n:] == before[n:]).all()


@pytest.mark.parametrize("letter", LETTERS)
def test_singular_matrices_are_named(letter):
    dtype, singular = LETTERS[letter], np.ones((3, 3))
    singular[2, 2] = 5  # U(2,2) is 0, U(3,3) is not
    regular = np.diag([1, 2, 4])
    matrices = [np.asfortranarray(m.astype(dtype)) for m in (regular, singular, regular)]
    table, pivots, info = Table(matrices), integers(3, 3), integers(3)
    run(f"mcblas{letter}getrfBatched", 3, table.addresses, 3, pivots, info, 3)
    assert info.tolist() == [0, 2, 0]
    factors = Table(table.end())
    sentinel = np.full((3, 3), 7, dtype, order="F")
    for function, arguments in (("getri", (factors.addresses, 3, pivots)), ("matinv", (Table(matrices).addresses, 3))):
        c, info = Table([sentinel] * 3), integers(3)
        run(f"mcblas{letter}{function}Batched", 3, *arguments, c.addresses, 3, info, 3)
        assert info.tolist() == [0, 2, 0], function
        first, second, third = c.end()
        assert (first == np.diag([1, 0.5, 0.25])).all() and (second == 7).all() and (third == first).all()


def q_of(factors, tau, rows):
    """The product of the reflectors."""
    q = np.eye(rows, dtype=wide(factors).dtype)
    for i, scale in enumerate(wide(tau)):
        v = np.zeros(rows, q.dtype)
        v[i], v[i + 1:] = 1, wide(factors)[i + 1:rows, i]
        q = q @ (np.eye(rows) - scale * np.outer(v, v.conj()))
    return q


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("m, n", [(5, 3), (3, 5), (1, 1), (4, 4), (70, 66)])
def test_qr(letter, m, n):
    matrices, k = batch(letter, m, n, 1), min(m, n)
    a, tau, info = Table(matrices), Table([np.zeros(k, LETTERS[letter])] * COUNT), host_int()
    run(f"mcblas{letter}geqrfBatched", m, n, a.addresses, m + PADDING, tau.addresses, info, COUNT)
    assert value_of(info) == 0
    for before, after, scales in zip(matrices, a.end(), tau.end()):
        q, r = q_of(after, scales, m), np.triu(wide(after[:m]))
        close(q.conj().T @ q, np.eye(m), LETTERS[letter], 8 * m)
        close(q @ r, wide(before[:m]), LETTERS[letter], 8 * m)
        close(np.abs(np.diag(r)), np.abs(np.diag(np.linalg.qr(wide(before[:m]))[1])), LETTERS[letter], 8 * m)
        assert (after[m:] == before[m:]).all()


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("m, n", [(9, 4), (5, 5), (1, 1), (80, 66)])
def test_least_squares(letter, m, n):
    nrhs, matrices = 3, batch(letter, m, n, 1)
    for matrix in matrices:
        matrix[range(n), range(n)] += 2 * m  # well conditioned
    right = batch(letter, m, nrhs, 20)
    for infos in (integers(COUNT), None):
        a, c, info = Table(matrices), Table(right), host_int()
        run(f"mcblas{letter}gelsBatched", N, m, n, nrhs, a.addresses, m + PADDING, c.addresses, m + PADDING, info,
            infos, COUNT)  # fmt: skip
        assert value_of(info) == 0 and (infos is None or (infos == 0).all())
        for matrix, factors, before, after in zip(matrices, a.end(), right, c.end()):
            expected = np.linalg.lstsq(wide(matrix[:m]), wide(before[:m]), rcond=None)[0]
            close(2 * m * wide(after[:n]), 2 * m * expected, LETTERS[letter], 16 * m)
            left_over = np.linalg.norm(wide(before[:m]) - wide(matrix[:m]) @ expected, axis=0)
            close(np.linalg.norm(wide(after[n:m]), axis=0), left_over, LETTERS[letter], 16 * m)
            r = np.abs(np.diag(np.linalg.qr(wide(matrix[:m]))[1])) / (2 * m)
            close(np.abs(np.diag(wide(factors[:n]))) / (2 * m), r, LETTERS[letter], 8 * m)


@pytest.mark.parametrize("letter", LETTERS)
def test_least_squares_name_columns_without_rank(letter):
    without = np.zeros((4, 3), LETTERS[letter], order="F")
    without[0, 0], without[1, 2] = 2, 3
    full = without.copy(order="F")
    full[2, 1] = 1
    a, c, info, infos = Table([full, without]), Table([np.ones((4, 1), LETTERS[letter])] * 2), host_int(), integers(2)
    run(f"mcblas{letter}gelsBatched", N, 4, 3, 1, a.addresses, 4, c.addresses, 4, info, infos, 2)
    assert value_of(info) == 0 and infos.tolist() == [0, 2]
    close(c.end()[0][:3, 0], np.array([0.5, 1, 1 / 3]), LETTERS[letter])


# Arguments that are refused, and the position that info on the host gets.
WRONG = [
    ("getrsBatched", {0: 7}, 1), ("getrsBatched", {1: -1}, 2), ("getrsBatched", {2: -1}, 3), ("getrsBatched", {3: None}, 4),
    ("getrsBatched", {4: 1}, 5), ("getrsBatched", {6: None}, 7), ("getrsBatched", {7: 1}, 8), ("getrsBatched", {9: -1}, 10),
    ("geqrfBatched", {0: -1}, 1), ("geqrfBatched", {1: -1}, 2), ("geqrfBatched", {2: None}, 3), ("geqrfBatched", {3: 1}, 4),
    ("geqrfBatched", {4: None}, 5), ("geqrfBatched", {6: -1}, 7),
    ("gelsBatched", {0: T}, 1), ("gelsBatched", {1: 2}, 2), ("gelsBatched", {2: -1}, 3), ("gelsBatched", {3: -1}, 4),
    ("gelsBatched", {4: None}, 5), ("gelsBatched", {5: 1}, 6), ("gelsBatched", {6: None}, 7), ("gelsBatched", {7: 1}, 8),
    ("gelsBatched", {10: -1}, 11),
]  # fmt: skip


@pytest.mark.parametrize("function, change, position", WRONG)
def test_info_names_the_parameter_that_is_refused(function, change, position):
    a, b, info = Table([np.eye(3)]), Table([np.ones((3, 1))]), host_int()
    arguments = {"getrsBatched": [N, 3, 1, a.addresses, 3, None, b.addresses, 3, info, 1],
                 "geqrfBatched": [3, 3, a.addresses, 3, b.addresses, info, 1],
                 "gelsBatched": [N, 3, 3, 1, a.addresses, 3, b.addresses, 3, info, None, 1]}[function]
    for place, value in change.items():
        arguments[place] = value
    assert status(f"mcblasD{function}", *arguments) == (15 if function == "gelsBatched" and position in (1, 2) else 7)
    assert value_of(info) == -position
    assert (b.end()[0] == 1).all() and (a.end()[0] == np.eye(3)).all()


def test_nothing_to_do():
    info, infos = host_int(), integers(1)
    run("mcblasSgetrsBatched", N, 0, 1, None, 1, None, None, 1, info, 1)
    assert value_of(info) == 0
    run("mcblasSgetrfBatched", 3, None, 3, None, infos, 0)
    run("mcblasSgetrfBatched", 0, None, 1, None, infos, 1)
    assert infos[0] == -99


# A fault stays on the device of its process: another process.
PIVOTS_THAT_ARE_NONE = """
import numpy as np
from tests.maca.mcblas_support import Device, N, handle
from tests.maca.test_mcblas_factorisations import Table
from understudy.maca import ffi, last_error, lib
a, b, info = Table([np.eye(2)]), Table([np.ones((2, 1))]), ffi.new("int *")
pivots, left, right = Device(np.int32([1, PIVOT])), Device(a.addresses), Device(b.addresses)
assert lib.mcblasDgetrsBatched(handle(), N, 2, 1, ffi.cast("double **", left.address), 2, ffi.cast("int *", pivots.address),
                               ffi.cast("double **", right.address), 2, info, 1) == 0
print(lib.mcDeviceSynchronize() == lib.mcErrorIllegalAddress, "pivots" in last_error().text)
"""


@pytest.mark.parametrize("pivot, fault", [(3, True), (0, True), (2, False)])
def test_pivots_that_are_none_are_a_fault(pivot, fault):
    assert run_python(PIVOTS_THAT_ARE_NONE.replace("PIVOT", str(pivot)), {}) == f"{fault} {fault}\n"


def test_a_graph_factorises_what_is_there_when_it_runs():
    """Captured, the call does nothing; each run of the graph reads tables and matrices anew."""
    stream, own = rt.stream(), rt.made("mcblasHandle_t", lib.mcblasCreate)
    rt.ok(lib.mcblasSetStream(own, stream))
    a = Table([np.asfortranarray(np.float64([[2, 4], [1, 3]]))])
    table, pivots, info = Device(a.addresses), Device(integers(2)), Device(integers(1))
    rt.ok(lib.mcStreamBeginCapture(stream, lib.mcStreamCaptureModeRelaxed))
    rt.ok(lib.mcblasDgetrfBatched(own, 2, ffi.cast("double **", table.address), 2, ffi.cast("int *", pivots.address),
                                  ffi.cast("int *", info.address), 1))
    graph = ffi.new("mcGraph_t *")
    rt.ok(lib.mcStreamEndCapture(stream, graph))
    executable = ffi.new("mcGraphExec_t *")
    rt.ok(lib.mcGraphInstantiate(executable, graph[0], ffi.NULL, ffi.NULL, 0))
    read = np.zeros((2, 2), order="F")
    address = ffi.from_buffer(read.T, require_writable=True)
    rt.ok(lib.mcMemcpy(address, a.devices[0].address, 32, lib.mcMemcpyDeviceToHost))
    assert read.tolist() == [[2, 4], [1, 3]]
    for expected in ([[2, 4], [0.5, 1]], [[2, 4], [0.25, 0]]):  # the second are factors of the first
        rt.ok(lib.mcGraphLaunch(executable[0], stream))
        rt.ok(lib.mcStreamSynchronize(stream))
        rt.ok(lib.mcMemcpy(address, a.devices[0].address, 32, lib.mcMemcpyDeviceToHost))
        assert read.tolist() == expected
    info.end()
    assert info.array.tolist() == [2]
    rt.ok(lib.mcblasDestroy(own))
