"""Matrices beside their products: against NumPy in float64."""

import itertools

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, rounded, tensor

UNITS = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8, "F64": 2.0**-53, "C64": 2.0**-24, "C128": 2.0**-53}
COMPLEX = {"C64": "F32", "C128": "F64"}


def drawn(shape, kind="F32", seed=1, low=-4, high=4):
    """Small integers: every type holds them, and sums of their products."""
    rng = np.random.default_rng(seed)
    values = rng.integers(low, high + 1, shape).astype(np.float64)
    return values + 1j * rng.integers(low, high + 1, shape) if kind in COMPLEX else values


def exact(actual, expected, kind):
    np.testing.assert_array_equal(actual, rounded(expected, kind) if kind not in COMPLEX else expected)


@pytest.mark.parametrize("added", [(3, 4), (4,), (3, 1)], ids=str)
def test_addbmm(added):
    for (kind, layout), batches in itertools.product(zip(["F32", "F16", "BF16"], LAYOUTS), [(5, 5), (1, 4), (4, 1)]):
        a, b, c = drawn((batches[0], 3, 6), seed=1), drawn((batches[1], 6, 4), seed=2), drawn(added, seed=3)
        product = (a @ b).sum(0)
        for beta, alpha in [(1.0, 1.0), (0.5, 2.0), (0.0, 1.0), (2.0, 0.0)]:
            given = np.full(added, np.nan) if beta == 0 else c
            expected = (beta * c if beta else 0) + alpha * product
            arguments = dict(batch1=tensor(a, kind, layout), batch2=tensor(b, kind, layout), beta=beta, alpha=alpha,
                             cubeMathType=1)
            out = call("Addbmm", self=tensor(given, kind, layout), out=empty((3, 4), kind, layout), **arguments)
            exact(out, np.broadcast_to(expected, (3, 4)), kind)
        if added == (3, 4):
            out = call("InplaceAddbmm", selfRef=tensor(c, kind, layout), **arguments | {"alpha": 1.0})
            exact(out, 2 * c + product, kind)


def test_outer():
    for kind, layout in itertools.product(["F32", "F16", "F64", "I8", "I64", "U8", "C64", "C128"], LAYOUTS):
        a, b = drawn((3,), kind, 1, 0), drawn((5,), kind, 2, 0)
        exact(call("Ger", self=tensor(a, kind, layout), vec2=tensor(b, kind, layout), out=empty((3, 5), kind, layout)),
              np.outer(a, b), kind)
    for one, other, kind in (("C128", "I8", "C128"), ("F16", "C64", "C64"), ("I8", "F32", "F32"), ("U8", "I8", "I16")):
        a, b = drawn((3,), one, 1, 0), drawn((5,), other, 2, 0)
        exact(call("Ger", self=tensor(a, one), vec2=tensor(b, other), out=empty((3, 5), kind)), np.outer(a, b), kind)
    truth = call("Ger", self=tensor([1, 0], "B"), vec2=tensor([1, 1, 0], "B"), out=empty((2, 3), "B"))
    np.testing.assert_array_equal(truth, [[1, 1, 0], [0, 0, 0]])


def test_einsum():
    for kind, layout in itertools.product(["F32", "F16", "I16", "U32", "I64"], LAYOUTS):
        a, b = drawn((2, 3, 2, 4), seed=1, low=0), drawn((2, 3, 2, 5, 4), seed=2, low=0)
        out = call("Einsum", tensors=[tensor(a, kind, layout), tensor(b, kind, layout)], equation="abcd,abced->abce",
                   output=empty((2, 3, 2, 5), kind, layout))
        exact(out, np.einsum("abcd,abced->abce", a, b), kind)
        out = call("Einsum", tensors=[tensor(a[0, 0, 0], kind, layout), tensor(b[0, 0, 0, 0], kind, layout)],
                   equation="a,b->ab", output=empty((4, 4), kind, layout))
        exact(out, np.outer(a[0, 0, 0], b[0, 0, 0, 0]), kind)


def test_trace():
    for kind, shape, layout in itertools.product(["F32", "F16", "BF16", "F64", "I32", "I64", "U8", "C64", "C128"],
                                                 [(4, 6), (6, 4), (1, 1), (0, 3)], LAYOUTS):
        x = drawn(shape, kind, low=0)
        to = kind if kind[0] in "FBC" else "I64"
        exact(call("Trace", self=tensor(x, kind, layout), out=empty((), to)), np.trace(x), to)
    assert call("Trace", self=tensor(np.ones((3, 3)), "B"), out=empty((), "I64")) == 3


def test_cross():
    for kind, layout in itertools.product(["F32", "F16", "BF16", "F64", "I8", "I64", "C64", "C128"], LAYOUTS):
        for a_shape, b_shape, axis in [((4, 3), (4, 3), 1), ((3, 5), (3, 1), 0), ((2, 3, 4), (3, 4), -2),
                                       ((3,), (2, 3), -1)]:  # fmt: skip
            a, b = drawn(a_shape, kind, 1), drawn(b_shape, kind, 2)
            joint = np.broadcast_shapes(a_shape, b_shape)
            expected = np.cross(np.broadcast_to(a, joint), np.broadcast_to(b, joint), axis=axis)
            out = call("LinalgCross", self=tensor(a, kind, layout), other=tensor(b, kind, layout), dim=axis,
                       out=empty(joint, kind, layout))
            exact(out, expected, kind)


def test_complex_and_polar():
    for (to, kind), layout in itertools.product(COMPLEX.items(), LAYOUTS):
        real, imaginary = drawn((3, 4), seed=1), drawn((4,), seed=2)
        out = call("Complex", real=tensor(real, kind, layout), imag=tensor(imaginary, kind, layout),
                   out=empty((3, 4), to, layout))
        np.testing.assert_array_equal(out, real + 1j * imaginary)
    for layout in LAYOUTS:
        r, angle = drawn((3, 5), seed=1), drawn((3, 5), seed=2, low=-40, high=40) / 8
        out = call("Polar", input=tensor(r, "F32", layout), angle=tensor(angle, "F32", layout),
                   out=empty((3, 5), "C64", layout))
        np.testing.assert_allclose(out, r * np.exp(1j * angle), rtol=0, atol=2.0**-20)


@pytest.mark.parametrize("case", [((2, 3, 6, 5), [2, 3], [1, 1], [1, 0], [1, 2]),
                                  ((2, 7, 8), [3, 2], [2, 1], [2, 1], [2, 3]),
                                  ((1, 1, 4, 4), [1, 1], [1, 1], [0, 0], [1, 1])], ids=str)  # fmt: skip
def test_columns(case):
    """Tap by tap; and the way back is the transposed map."""
    shape, kernel, dilation, padding, stride = case
    x = drawn(shape)
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding])
    counts = [(n + 2 * p - d * (k - 1) - 1) // s + 1
              for n, k, d, p, s in zip(shape[-2:], kernel, dilation, padding, stride)]
    expected = np.empty((*shape[:-2], *kernel, *counts))
    dy = drawn(expected.shape, seed=2)
    folded = np.zeros_like(padded)
    for i, j in np.ndindex(*kernel):
        places = tuple(slice(t * d, t * d + (c - 1) * s + 1, s) for t, d, c, s in zip((i, j), dilation, counts, stride))
        expected[..., i, j, :, :] = padded[(..., *places)]
        folded[(..., *places)] += dy[..., i, j, :, :]
    folded = folded[..., padding[0] : padding[0] + shape[-2], padding[1] : padding[1] + shape[-1]]
    columns = (*shape[:-3], shape[-3] * kernel[0] * kernel[1], counts[0] * counts[1])
    settings = dict(kernelSize=kernel, dilation=dilation, padding=padding, stride=stride)
    for kind, layout in itertools.product(["F32", "F16", "BF16"], LAYOUTS):
        out = call("Im2col", self=tensor(x, kind, layout), out=empty(columns, kind, layout), **settings)
        exact(out, expected.reshape(columns), kind)
        out = call("Im2colBackward", gradOutput=tensor(dy.reshape(columns), kind, layout), inputSize=list(shape[-2:]),
                   out=empty(shape, kind, layout), **settings)
        exact(out, folded, kind)


def matrices(shape, kind, seed=1):
    """With large diagonals, so that they are not near singular."""
    return drawn(shape, kind, seed) + 12 * np.eye(*shape[-2:])


def test_inverse():
    for (kind, layout), shape in itertools.product(zip(["F32", "F16", "F32"], LAYOUTS),
                                                   [(4, 4), (2, 3, 5, 5), (1, 1), (40, 40)]):  # fmt: skip
        x = matrices(shape, kind)
        out = call("Inverse", self=tensor(x, kind, layout), out=empty(shape, kind, layout))
        np.testing.assert_allclose(out, np.linalg.inv(x), atol=64 * UNITS[kind])
    out = call("Inverse", self=tensor([[[1.0, 2], [2, 4]], [[2, 0], [0, 4]]]), out=empty((2, 2, 2)))
    np.testing.assert_array_equal(out, [[[np.nan] * 2] * 2, [[0.5, 0], [0, 0.25]]])


def test_determinants():
    for kind, layout in itertools.product(["F32", "F64", "C64", "C128"], LAYOUTS):
        for shape in [(3, 3), (2, 3, 6, 6), (2, 1, 1)]:
            x = drawn(shape, kind, 5) + 0.5 * np.eye(shape[-1])
            sign, logarithm = np.linalg.slogdet(x)
            assert (np.abs(np.linalg.det(x)) > 0.01).all()
            real = COMPLEX.get(kind, kind)
            actual = call("Slogdet", self=tensor(x, kind, layout), signOut=empty(sign.shape, kind),
                          logOut=empty(sign.shape, kind))
            for value, expected in zip(actual, (sign, logarithm)):
                np.testing.assert_allclose(value, expected, atol=4096 * UNITS[real])
            with np.errstate(invalid="ignore"):
                expected = np.log(sign) + logarithm if kind in COMPLEX else np.where(sign < 0, np.nan, logarithm)
            out = call("Logdet", self=tensor(x, kind, layout), out=empty(sign.shape, kind))
            np.testing.assert_allclose(out, expected, atol=4096 * UNITS[real])
    sign, logarithm = call("Slogdet", self=tensor([[1.0, 2], [2, 4]]), signOut=empty(()), logOut=empty(()))
    assert (sign, logarithm) == (0, -np.inf)


@pytest.mark.parametrize("kind", ["F32", "F64"])
@pytest.mark.parametrize(("x", "sign", "logarithm"), [
    ([[np.nan]], np.nan, np.nan), ([[1, np.nan], [2, 3]], np.nan, np.nan), ([[0, 0], [0, np.nan]], np.nan, np.nan),
    ([[np.nan, 0], [0, 0]], np.nan, np.nan),
    ([[np.inf]], 1, np.inf), ([[-np.inf]], -1, np.inf), ([[np.inf, 0], [0, -2]], -1, np.inf),
    ([[0, np.inf], [3, 0]], -1, np.inf)], ids=str)  # fmt: skip
def test_determinants_that_are_not_finite(kind, x, sign, logarithm):
    actual = call("Slogdet", self=tensor(x, kind), signOut=empty((), kind), logOut=empty((), kind))
    np.testing.assert_array_equal(actual, (sign, logarithm))
    out = call("Logdet", self=tensor(x, kind), out=empty((), kind))
    np.testing.assert_array_equal(out, np.nan if sign == -1 else logarithm)


def test_qr():
    for kind, layout in itertools.product(["F32", "F16", "F64", "C64", "C128"], LAYOUTS):
        unit = 256 * UNITS[kind]
        for shape in [(5, 3), (2, 3, 5), (2, 2, 4, 4)]:
            x = drawn(shape, kind, 7)
            m, n = shape[-2:]
            k = min(m, n)
            for mode, q_columns, r_rows in [(0, k, k), (1, m, m)]:
                q, r = call("LinalgQr", self=tensor(x, kind, layout), mode=mode,
                            Q=empty((*shape[:-1], q_columns), kind, layout), R=empty((*shape[:-2], r_rows, n), kind, layout))
                np.testing.assert_allclose(q @ r, x, atol=4 * unit)
                adjoint = np.conj(np.swapaxes(q, -1, -2))
                np.testing.assert_allclose(adjoint @ q, np.broadcast_to(np.eye(q_columns), (*shape[:-2], *[q_columns] * 2)),
                                           atol=unit)
                assert not np.tril(r, -1).any()
                old = call("Qr", self=tensor(x, kind, layout), some=mode == 0, Q=empty(q.shape, kind, layout),
                           R=empty(r.shape, kind, layout))
                np.testing.assert_array_equal(old[0], q)
                np.testing.assert_array_equal(old[1], r)
            _, only = call("LinalgQr", self=tensor(x, kind, layout), mode=2, Q=empty((0,), kind),
                           R=empty((*shape[:-2], k, n), kind, layout))
            np.testing.assert_allclose(only, r[..., :k, :], atol=unit)
    q, r = call("LinalgQr", self=tensor([[1.0, 2], [3, 4]]), mode=0, Q=empty((2, 2)), R=empty((2, 2)))
    np.testing.assert_allclose(q, [[-0.3162, -0.9487], [-0.9487, 0.3162]], atol=1e-4)  # the page's example
    np.testing.assert_allclose(r, [[-3.1623, -4.4272], [0, -0.6325]], atol=1e-4)


def test_cholesky():
    for kind, layout in itertools.product(["F32", "BF16"], LAYOUTS):
        for shape in [(3, 3), (2, 4, 4), (0, 3, 3)]:
            x = drawn(shape, kind, 3)
            x = rounded(x @ np.swapaxes(x, -1, -2) + 3 * np.eye(shape[-1]), kind)
            for upper in (False, True):
                half = np.triu(x) if upper else np.tril(x)  # the other half is not read
                factor = call("LinalgCholesky", self=tensor(half, kind, layout), upper=upper, out=empty(shape, kind, layout))
                turned = np.swapaxes(factor, -1, -2)
                np.testing.assert_allclose(turned @ factor if upper else factor @ turned, x, rtol=0, atol=2000 * UNITS[kind])
                assert not (np.tril(factor, -1) if upper else np.triu(factor, 1)).any()
    broken = call("LinalgCholesky", self=tensor([[[1.0, 0], [0, -1]], [[4.0, 0], [0, 1]]]), upper=False,
                  out=empty((2, 2, 2)))  # fmt: skip
    assert np.isnan(broken[0][[0, 1, 1], [0, 0, 1]]).all() and broken[1].tolist() == [[2, 0], [0, 1]]


def test_svd_of_infinite_elements():
    """NaN, as where the values are not found; OpenBLAS looks for those of this matrix forever."""
    for kind in ("F32", "F64", "C64"):
        x = np.array([[0, 5e8, 6e9], [-np.inf, -6e26, 0], [9e7, np.inf, -9e24], [-np.inf, 2e4, 6e-8]])
        found = call("Svd", input=tensor(x, kind), fullMatrices=False, computeUV=True,
                     sigma=empty((3,), "F64" if kind == "F64" else "F32"), u=empty((4, 3), kind),
                     v=empty((3, 3), kind))  # fmt: skip
        assert all(np.isnan(one).all() for one in found)


def test_svd():
    for kind, layout in itertools.product(["F32", "F64", "C64", "C128"], LAYOUTS):
        real = COMPLEX.get(kind, kind)
        for shape, full in itertools.product([(5, 3), (2, 3, 5), (2, 2, 4, 4), (3, 0), (2, 0, 3)], (False, True)):
            x = drawn(shape, kind, 7)
            m, n = shape[-2:]
            k = min(m, n)
            columns = (m, n) if full else (k, k)
            values, u, v = call("Svd", input=tensor(x, kind, layout), fullMatrices=full, computeUV=True,
                                sigma=empty((*shape[:-2], k), real, layout),
                                u=empty((*shape[:-2], m, columns[0]), kind, layout),
                                v=empty((*shape[:-2], n, columns[1]), kind, layout))
            np.testing.assert_allclose(values, np.linalg.svd(x, compute_uv=False), atol=512 * UNITS[kind])
            adjoint = np.conj(np.swapaxes(v, -1, -2))
            np.testing.assert_allclose((u[..., :k] * values[..., None, :]) @ adjoint[..., :k, :], x, atol=1024 * UNITS[kind])
            for unitary in (u, v):
                product = np.conj(np.swapaxes(unitary, -1, -2)) @ unitary
                np.testing.assert_allclose(product, np.broadcast_to(np.eye(product.shape[-1]), product.shape),
                                           atol=256 * UNITS[kind])
            only, *_ = call("Svd", input=tensor(x, kind, layout), fullMatrices=full, computeUV=False,
                            sigma=empty((*shape[:-2], k), real, layout), u=empty((0,), kind), v=empty((0,), kind))
            np.testing.assert_allclose(only, values, atol=512 * UNITS[kind])


def test_angle():
    for layout in LAYOUTS:
        x = np.array([[0.0, -0.0, 2], [-2, np.nan, -np.inf]])
        for kind in ("F32", "F16"):
            found = call("AngleV2", x=tensor(x, kind, layout), out=empty(x.shape, kind, layout))
            np.testing.assert_array_equal(found, rounded(np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0)), kind))
        found = call("AngleV2", x=tensor([-3, 0, 5], "I64", layout), out=empty((3,), "F32", layout))
        np.testing.assert_array_equal(found, rounded([np.pi, 0, 0], "F32"))
        z = drawn((4, 5), "C64")
        found = call("AngleV2", x=tensor(z, "C64", layout), out=empty((4, 5), "F32", layout))
        np.testing.assert_allclose(found, np.angle(z), rtol=4 * UNITS["F32"])


def test_triangular_solve():
    for kind, layout in itertools.product(["F32", "F64", "C64", "C128"], LAYOUTS):
        for (b_shape, a_shape), upper, transposed in itertools.product(
                [((3, 4), (3, 3)), ((2, 1, 3, 2), (5, 3, 3)), ((2, 3, 1), (3, 3))], [False, True], [False, True]):
            b, a = drawn(b_shape, kind, 1), matrices(a_shape, kind, 2)
            batch = np.broadcast_shapes(b_shape[:-2], a_shape[:-2])
            half = np.broadcast_to((np.triu if upper else np.tril)(a), (*batch, 3, 3))
            form = np.swapaxes(half, -1, -2) if transposed else half
            x, m = call("TriangularSolve", self=tensor(b, kind, layout), A=tensor(a, kind, layout), upper=upper,
                        transpose=transposed, unitriangular=False, xOut=empty((*batch, *b_shape[-2:]), kind, layout),
                        mOut=empty((*batch, 3, 3), kind, layout))
            np.testing.assert_allclose(x, np.linalg.solve(form, np.broadcast_to(b, x.shape)), atol=64 * UNITS[kind])
            np.testing.assert_array_equal(m, half)
    a, b = drawn((3, 3), seed=4), drawn((3, 2), seed=5)
    x, _ = call("TriangularSolve", self=tensor(b), A=tensor(a), upper=True, transpose=False, unitriangular=True,
                xOut=empty((3, 2)), mOut=empty((3, 3)))
    np.testing.assert_allclose((np.triu(a, 1) + np.eye(3)) @ x, b, atol=1e-4)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
def test_distances(power):
    for kind, layout in itertools.product(["F32", "F16", "BF16"], LAYOUTS):
        for a_shape, b_shape in [((3, 5), (4, 5)), ((2, 1, 3, 7), (3, 40, 7)), ((2, 0), (3, 0))]:
            a, b = drawn(a_shape, seed=1), drawn(b_shape, seed=2)
            differences = np.abs(a[..., :, None, :] - b[..., None, :, :])
            with np.errstate(divide="ignore"):
                expected = ((differences != 0).sum(-1) if power == 0 else differences.max(-1, initial=0)
                            if power == np.inf else (differences**power).sum(-1) ** (1 / power))
            out = call("Cdist", x1=tensor(a, kind, layout), x2=tensor(b, kind, layout), p=power, compute_mode=0,
                       out=empty(expected.shape, kind, layout))
            np.testing.assert_allclose(out, expected, rtol=2 * UNITS[kind])


def test_pair_distances():
    for kind, layout in itertools.product(["F32", "F16"], LAYOUTS):
        for shape, power in itertools.product([(5, 3), (40, 2), (1, 3), (0, 3), (4, 0)], (0.0, 1.0, 2.0, 3.0, np.inf)):
            a = drawn(shape, seed=4)
            rows, others = np.triu_indices(shape[0], 1)
            apart = np.abs(a[rows] - a[others])
            expected = ((apart != 0).sum(-1) if power == 0 else apart.max(-1, initial=0) if power == np.inf
                        else (apart**power).sum(-1) ** (1 / power))
            for name, given in (("Pdist", {"p": power}), ("PdistForward", {"pScalar": power})):
                out = call(name, self=tensor(a, kind, layout), out=empty(expected.shape, kind, layout), **given)
                np.testing.assert_allclose(out, expected, rtol=2 * UNITS[kind])


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.inf])
def test_slopes_of_distances(power):
    """By central differences, where rows differ in every element and by different amounts; 0 where they are equal."""
    rng = np.random.default_rng(8)
    a, b = (rounded(rng.normal(0, 1, shape), "F32").astype(np.float64) for shape in ((2, 3, 4), (2, 5, 4)))
    b[0, 0] = a[0, 0]
    weights = rng.normal(0, 1, (2, 3, 5))

    def distances(x):
        apart = np.abs(x[:, :, None] - b[:, None])
        return ((apart != 0).sum(-1) if power == 0 else apart.max(-1) if power == np.inf
                else (apart**power).sum(-1) ** (1 / power))

    lengths, expected, step = distances(a), np.zeros_like(a), 1e-6
    weights[0, 0, 0] = 0 if power else 1  # no slope there, whatever the weight: below
    for place in np.ndindex(a.shape if power else (0,)):
        moved = np.zeros_like(a)
        moved[place] = step
        expected[place] = ((distances(a + moved) - distances(a - moved)) * weights).sum() / (2 * step)
    weights[0, 0, 0] = 3
    for layout in LAYOUTS:
        given = dict(grad=tensor(weights, "F32", layout), x1=tensor(a, "F32", layout), x2=tensor(b, "F32", layout),
                     cdist=tensor(lengths, "F32", layout), p=power)
        found = call("CdistBackward", **given, out=empty(a.shape, "F32", layout))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def sinkhorn(cost, tolerance):
    kernel = np.exp(cost)
    rows, columns = cost.shape
    of_columns, change = np.ones(columns), 1e9
    while change > tolerance:
        of_rows = 1 / (rows * ((of_columns * kernel).sum(1) + 1e-8))
        before, of_columns = of_columns, 1 / (columns * ((of_rows[:, None] * kernel).sum(0) + 1e-8))
        change = abs(before - of_columns).mean()
    return of_columns * kernel * of_rows[:, None]


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_sinkhorn(kind):
    for (shape, tolerance), layout in itertools.product([((3, 2), 1e-4), ((70, 130), 1e-5), ((1, 5), 0.5),
                                                         ((9, 1), None)], LAYOUTS):  # fmt: skip
        cost = rounded(np.random.default_rng(shape[0]).uniform(0, 1, shape), kind)
        found = call("Sinkhorn", cost=tensor(cost, kind, layout), tol=tolerance, p=empty(shape, kind, layout))
        expected = sinkhorn(cost, np.float32(1e-4 if tolerance is None else tolerance))
        np.testing.assert_allclose(found, expected, rtol=2 * UNITS[kind], atol=2.0**-26 if kind == "F16" else 0)
    assert np.isnan(call("Sinkhorn", cost=tensor([[np.nan, 0.5], [0.25, 0.5]], kind), tol=1e-4, p=empty((2, 2), kind))).all()
    assert call("Sinkhorn", cost=tensor(np.zeros((0, 3)), kind), tol=1e-4, p=empty((0, 3), kind)).shape == (0, 3)


def test_sinkhorn_ends():
    """The 1e-8 of the formula moves d1 in every step, so that its change does not get to 0."""
    found = call("Sinkhorn", cost=tensor(np.random.default_rng(1).uniform(0, 1, (40, 8))), tol=("F64", 0.0),
                 p=empty((40, 8)))  # fmt: skip
    np.testing.assert_allclose(found.sum(0), np.full(8, 1 / 8), rtol=1e-5)
    np.testing.assert_allclose(found.sum(1), np.full(40, 1 / 40), rtol=1e-5)
