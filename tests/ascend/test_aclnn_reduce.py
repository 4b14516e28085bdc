"""Reductions of every type, over every set of axes, in every layout, against NumPy in float64 or in exact integers."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import numpy
import pytest

from understudy.ascend import ops

from tests.ascend.calling import LAYOUTS, call, empty, refusal, rounded, tensor
from tests.conformance.ascend import pages, promotion

# A unit in the last place of the type, and of double for what comes before the rounding.
EPSILON = {"F32": 2.0**-23, "F16": 2.0**-10, "BF16": 2.0**-7, "F64": 2.0**-48, "C64": 2.0**-22, "C128": 2.0**-47}
LARGEST = {"F16": 65504.0, "BF16": 3.38953e38, "F32": 3.40282347e38}
SHAPES = [((3, 5, 7), [1]), ((3, 5, 7), [0, -1]), ((2, 3, 4, 2), [-2, 0]), ((4,), [0]), ((), []), ((3, 1031), [1]),
          ((1031, 3), [0]), ((5, 4), []), ((2, 0, 3), [1]), ((2, 0, 3), [0])]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Subject:
    """An operator: its oracle over axes, the type of its results, and its arguments besides the tensors."""

    oracle: Callable  # (values, axes, keepdims) -> array, or one for each output; integers are int64, complex complex128
    result: Callable = lambda kind: kind
    arguments: Callable = lambda dims, keep, out: {}
    special: bool = True  # with infinite numbers and NaN
    empty: bool = True  # axes of size 0 may be reduced
    outputs: tuple = ("out",)
    input: str = "self"


def dims_keep(dims_name, keep_name, *, dtype=False, **others):
    def arguments(dims, keep, out):
        return {dims_name: dims, keep_name: keep, **({"dtype": out} if dtype else {}), **others}

    return arguments


def mean(x, axes, keep):
    values = numpy.mean(x.astype(complex if x.dtype.kind == "c" else float), axes, keepdims=keep)
    return numpy.trunc(numpy.nan_to_num(values)) if x.dtype.kind in "iub" else values


def norm(order):
    def oracle(x, axes, keep):
        x = abs(x)
        if order == 0:
            return numpy.sum(x != 0, axes, keepdims=keep).astype(float)
        if order == numpy.inf:
            return numpy.max(x, axes, keepdims=keep, initial=0)
        if order == -numpy.inf:
            return numpy.min(x, axes, keepdims=keep, initial=numpy.inf)
        return numpy.sum(x**order, axes, keepdims=keep) ** (1 / order)

    return oracle


def lowest(x):
    return -numpy.inf if x.dtype.kind == "f" else numpy.iinfo(x.dtype).min


def highest(x):
    return numpy.inf if x.dtype.kind == "f" else numpy.iinfo(x.dtype).max


def to_float(kind):
    return kind if promotion.category(kind) == "float" else "F32"


def extreme(function, start):
    return lambda x, axes, keep: function(x, axes, keepdims=keep, initial=start(x))


def log_sum_exp(x, axes, keep):
    x = x.astype(float)
    top = numpy.max(x, axes, keepdims=True, initial=-numpy.inf)
    offset = numpy.where(numpy.isfinite(top), top, 0)
    total = numpy.log(numpy.sum(numpy.exp(x - offset), axes, keepdims=True)) + offset
    return total if keep else numpy.squeeze(total, axes)


def variance(correction, root=False):
    def oracle(x, axes, keep):
        mean = numpy.mean(x, axes, keepdims=True)
        count = numpy.prod([x.shape[axis] for axis in axes])
        result = numpy.sum((x - mean) ** 2, axes, keepdims=keep) / max(count - correction, 0)
        return numpy.sqrt(result) if root else result

    return oracle


def both(first, second):
    return lambda x, axes, keep: (first(x, axes, keep), second(x, axes, keep))


def middle(x, axes, keep):
    """Element (n - 1) // 2 of the sorted ones; NaN where there is one."""
    axis = axes[0]
    if x.shape[axis] == 0:
        taken = numpy.full([*x.shape[:axis], 1, *x.shape[axis + 1 :]], 0 if x.dtype.kind in "iub" else numpy.nan)
    else:
        taken = numpy.take(numpy.sort(x, axis), [(x.shape[axis] - 1) // 2], axis)
        taken = numpy.where(numpy.isnan(x).any(axis, keepdims=True), numpy.nan, taken) if x.dtype.kind == "f" else taken
    return taken if keep else taken.squeeze(axis)


SUBJECTS = {
    "ReduceSum": Subject(lambda x, a, k: numpy.sum(x, a, keepdims=k), arguments=dims_keep("dims", "keepDims", dtype=True)),
    "Mean": Subject(mean, arguments=dims_keep("dim", "keepDim", dtype=True)),
    "MeanV2": Subject(mean, arguments=dims_keep("dim", "keepDim", noopWithEmptyAxes=False)),
    "All": Subject(lambda x, a, k: numpy.all(x != 0, a, keepdims=k), lambda kind: "B", dims_keep("dim", "keepdim")),
    "Any": Subject(lambda x, a, k: numpy.any(x != 0, a, keepdims=k), lambda kind: "B", dims_keep("dim", "keepdim")),
    **{f"LinalgVectorNorm {p}": Subject(norm(p), arguments=dims_keep("dims", "keepDims", dtype=True, ord=p))
       for p in (0, 1, 2.0, 3.5, numpy.inf, -numpy.inf)},
    **{f"Norm {p}": Subject(norm(p), arguments=dims_keep("dim", "keepdim", pScalar=p)) for p in (0, 1.0, 2, 2.5, numpy.inf)},
    "Amax": Subject(extreme(numpy.max, lowest), arguments=dims_keep("dim", "keepDim"), empty=False),
    "Amin": Subject(extreme(numpy.min, highest), arguments=dims_keep("dim", "keepDim"), empty=False),
    "MaxV2": Subject(extreme(numpy.max, lowest), arguments=dims_keep("dims", "keepDims", noopWithEmptyDims=False),
                     empty=False),
    "Aminmax": Subject(both(extreme(numpy.min, highest), extreme(numpy.max, lowest)), arguments=dims_keep("dim", "keepDim"),
                       empty=False, outputs=("minOut", "maxOut")),
    "LogSumExp": Subject(log_sum_exp, to_float, dims_keep("dim", "keepDim")),
    "ReduceNansum": Subject(lambda x, a, k: numpy.nansum(x, a, keepdims=k),
                            arguments=dims_keep("dim", "keepDim", dtype=True)),
    "ReduceLogSum": Subject(lambda x, a, k: numpy.log(numpy.sum(x, a, keepdims=k)), input="data", outputs=("reduce",),
                            arguments=dims_keep("axes", "keepDims", noopWithEmptyAxes=False)),
    "Var": Subject(variance(1), arguments=dims_keep("dim", "keepdim", unbiased=True)),
    "VarCorrection": Subject(variance(2), arguments=dims_keep("dim", "keepdim", correction=2)),
    "VarMean": Subject(both(variance(0), mean), arguments=dims_keep("dim", "keepdim", correction=0),
                       outputs=("varOut", "meanOut")),
    "Std": Subject(variance(1, True), arguments=dims_keep("dim", "keepdim", correction=1)),
    "StdMeanCorrection": Subject(both(variance(1, True), mean), arguments=dims_keep("dim", "keepdim", correction=1),
                                 outputs=("stdOut", "meanOut")),
}  # fmt: skip
ALONG = {
    "AminmaxDim": Subject(both(extreme(numpy.min, highest), extreme(numpy.max, lowest)), outputs=("minOut", "maxOut"),
                          empty=False),
    "ProdDim": Subject(lambda x, a, k: numpy.prod(x.astype(numpy.int64) if x.dtype.kind in "iub" else x, a, keepdims=k),
                       special=False),
}  # fmt: skip


def drawn(kind: str, shape, special: bool) -> numpy.ndarray:
    """Values that the type holds; with NaN and infinities in some lines of a floating type."""
    rng = numpy.random.default_rng([len(shape), *shape])
    category = promotion.category(kind)
    if category in ("int", "wide"):
        return rng.integers(0 if kind.startswith("U") else -9, 10, shape)
    if category == "bool":
        return rng.integers(0, 2, shape)
    values = rng.uniform(-4, 4, shape)
    if category == "complex":
        return rounded_complex(values + 1j * rng.uniform(-4, 4, shape), kind)
    values[rng.random(shape) < 0.2] = 0
    if special and values.size > 8:
        values.ravel()[[3, 5, 6]] = [numpy.nan, numpy.inf, -numpy.inf]
    return rounded(values, kind)


def rounded_complex(values, kind):
    return values.astype(numpy.complex64 if kind == "C64" else numpy.complex128).astype(numpy.complex128)


def compare(actual, expected, kind: str, scale, message: str) -> None:
    category = promotion.category(kind)
    actual = numpy.asarray(actual).reshape(expected.shape)
    if category in ("int", "wide", "bool"):
        stored = pages.KINDS[kind].storage
        expected = expected != 0 if category == "bool" else expected.astype(numpy.int64).astype(stored)
        numpy.testing.assert_array_equal(actual.astype(stored), expected.astype(stored), message)
        return
    if category == "float":
        expected = numpy.where(abs(expected) > LARGEST.get(kind, numpy.inf), numpy.copysign(numpy.inf, expected), expected)
    numpy.testing.assert_allclose(actual, expected, EPSILON[kind], scale * 2.0**-44, True, message)


def axes_of(dims, shape) -> tuple[int, ...]:
    return tuple(sorted(dim % len(shape) for dim in dims)) if dims else tuple(range(len(shape)))


def test_global_pools():
    for name, kinds, oracle in (("GlobalAveragePool", ["F32", "F16", "BF16", "F64"], numpy.mean),
                                ("GlobalMaxPool", ["F32", "F16", "F64"], numpy.max)):
        for kind, shape, layout in itertools.product(kinds,
                                                     [(2, 3, 4, 5), (3, 1, 2, 1, 7), (2, 0, 3, 3),
                                                      (1, 2, 1, 2, 1, 2, 3, 2)], LAYOUTS):  # fmt: skip
            values = drawn(kind, shape, True)
            with numpy.errstate(all="ignore"):
                expected = oracle(values, tuple(range(2, len(shape))), keepdims=True)
            found = call(name, self=tensor(values, kind, layout), out=empty(expected.shape, kind, layout))
            compare(found, expected, kind, 16, f"{name} {kind} {shape} {layout}")


def check_over_axes(name, subject, shapes, arguments):
    operator = name.split()[0]
    types = pages.operators()[operator]["dtypes"][subject.input]["910B"]
    for number, kind in enumerate(types):
        for index, (shape, dims) in enumerate(shapes):
            layout, keep = LAYOUTS[(index + number) % len(LAYOUTS)], (index + number) % 2 == 0
            axes = axes_of(dims, shape)
            if 0 in [shape[axis] for axis in axes] and not subject.empty:
                continue
            values = drawn(kind, shape, subject.special and index % 2 == 0)
            with numpy.errstate(all="ignore"):
                expected = subject.oracle(values, axes, keep)
            expected = [numpy.asarray(one) for one in (expected if len(subject.outputs) > 1 else [expected])]
            out = subject.result(kind)
            outs = {place: empty(one.shape, out, layout) for place, one in zip(subject.outputs, expected)}
            found = call(operator, **{subject.input: tensor(values, kind, layout)}, **outs, **arguments(dims, keep, out))
            finite = abs(values[numpy.isfinite(values)])
            for actual, one in zip(found if len(expected) > 1 else [found], expected):
                compare(actual, one, out, (finite**2).sum() + 1, f"{name} {kind} {shape} {dims} {keep} {layout}")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SUBJECTS)
def test_over_axes(name):
    check_over_axes(name, SUBJECTS[name], SHAPES, SUBJECTS[name].arguments)


@pytest.mark.parametrize("name", ALONG)
def test_along_a_dimension(name):
    def arguments(dims, keep, out):
        extra = {"dtype": out} if name == "ProdDim" else {}
        return {"dim": dims[0] if dims else 0, "keepDim": keep, **extra}

    check_over_axes(name, ALONG[name], [(shape, dims[:1]) for shape, dims in SHAPES if dims or not shape], arguments)


EXTREMA = {"Max": numpy.max, "Min": numpy.min}


@pytest.mark.parametrize("name", ["Max", "Min", "Prod"])
def test_of_all_elements(name):
    for kind in pages.operators()[name]["dtypes"]["self"]["910B"]:
        for shape, out, layout in (((3, 5), (), "gaps"), ((2, 31), (1,), "row-major"), ((), (1,), "row-major")):
            values = drawn(kind, shape, False)
            values = numpy.where(values == 0, 1, values) if name == "Prod" and kind != "B" else values
            with numpy.errstate(all="ignore"):
                if name == "Prod":
                    expected = product(values, kind)
                else:
                    expected = EXTREMA[name](values)
            extra = {"dtype": kind} if name == "Prod" else {}
            actual = call(name, self=tensor(values, kind, layout), out=empty(out, kind), **extra)
            compare(actual, numpy.asarray(expected).reshape(out), kind, abs(expected), f"{name} {kind} {shape}")


def product(values, kind):
    """Integers modulo 2^64; others exactly, then in float64."""
    if values.dtype.kind in "iub":
        return numpy.multiply.reduce(values.astype(numpy.int64).ravel())
    return numpy.multiply.reduce(values.astype(numpy.longdouble if values.dtype.kind == "f" else complex).ravel())


def test_no_dims_at_all_are_all_dims_unless_the_page_has_a_switch():
    x = numpy.arange(6.0).reshape(2, 3)
    for name, expected in (("Std", x.std(ddof=1)), ("VarCorrection", x.var(ddof=1))):
        actual = call(name, self=tensor(x), dim=None, correction=1, keepdim=False, out=empty(()))
        numpy.testing.assert_allclose(actual, expected, 1e-6)
    for name, dims, keep, noop in (("MeanV2", "dim", "keepDim", "noopWithEmptyAxes"),
                                   ("MaxV2", "dims", "keepDims", "noopWithEmptyDims")):  # fmt: skip
        actual = call(name, self=tensor(x), **{dims: [], keep: False, noop: True}, out=empty((2, 3)))
        numpy.testing.assert_array_equal(actual, x)
    actual = call("ReduceLogSum", data=tensor(x), axes=[], keepDims=True, noopWithEmptyAxes=True, reduce=empty((2, 3)))
    numpy.testing.assert_array_equal(actual, x)
    assert call("AminmaxAll", self=tensor(x), minOut=empty(()), maxOut=empty((1,))) == (0, [5])


def test_nan_wins_and_the_undefined_type_is_selfs():
    values = numpy.asarray([1.0, numpy.nan, numpy.inf])
    for name in EXTREMA:
        assert numpy.isnan(call(name, self=tensor(values), out=empty(())))
    assert call("Prod", self=tensor([2.0, 3.0]), dtype=-1, out=empty(())) == 6
    assert call("Prod", self=tensor([2.0, 3.0]), dtype="F64", out=empty((), "F64")) == 6


@pytest.mark.parametrize("name", ["MaxDim", "MinDim", "ArgMax", "ArgMin"])
def test_positions(name):
    """The first of equal elements, and the first NaN."""
    entry = pages.operators()[name]
    best = numpy.argmax if "Max" in name else numpy.argmin
    index_types = entry["dtypes"]["indices" if name.endswith("Dim") else "out"]["910B"]
    for number, kind in enumerate(entry["dtypes"]["self"]["910B"]):
        for index, (shape, dim) in enumerate([((3, 5, 7), 1), ((3, 5, 7), -1), ((9, 40), 0), ((2100,), 0), ((2, 3000), 1)]):
            values = numpy.round(drawn(kind, shape, index % 2 == 0))  # many equal ones
            positions = best(values, dim)
            taken = numpy.take_along_axis(values, numpy.expand_dims(positions, dim), dim)
            keep, layout = (index + number) % 2 == 0, LAYOUTS[(index + number) % 3]
            taken = taken if keep else taken.squeeze(dim)
            positions = positions.reshape(taken.shape)
            index_type = index_types[number % len(index_types)]
            given = {"self": tensor(values, kind, layout), "dim": dim, "keepdim": keep}
            message = f"{name} {kind} {shape} {dim} {layout}"
            if name.endswith("Dim"):
                found, at = call(name, **given, out=empty(taken.shape, kind, layout),
                                 indices=empty(taken.shape, index_type, layout))
                numpy.testing.assert_array_equal(numpy.asarray(found), taken, message)
            else:
                at = call(name, **given, out=empty(taken.shape, index_type, layout))
            numpy.testing.assert_array_equal(numpy.asarray(at), positions, message)


def test_foreach_norm():
    rng = numpy.random.default_rng(1)
    shapes = [(), (3,), (70, 300), (2, 2, 5), (0,)]
    for kind, p in (("F32", 2), ("F16", 1.0), ("BF16", 2.0), ("F32", 3.0), ("F32", numpy.inf)):
        values = [rounded(rng.uniform(-2, 2, shape), kind) for shape in shapes]
        outs = [empty((1,) if index % 2 else (), kind) for index in range(len(shapes))]
        found = call("ForeachNorm", x=[tensor(one, kind) for one in values], scalar=p, out=outs)
        for actual, one in zip(found, values):
            expected = numpy.asarray(norm(p)(one.ravel(), 0, False))
            compare(actual, expected, kind, 0, f"ForeachNorm {kind} {p} {one.shape}")


def test_unscale():
    rng = numpy.random.default_rng(2)
    for kind, found in (("F32", False), ("F16", False), ("BF16", True), ("F32", True)):
        values = [rounded(rng.uniform(-2, 2, shape), kind) for shape in [(5,), (), (200, 170), (3, 4)]]
        if found:
            values[2][7, 3] = numpy.inf if kind == "F32" else numpy.nan
        scale = numpy.float32(1 / 3)
        grads, flag = call("ForeachNonFiniteCheckAndUnscale", scaledGrads=[tensor(one, kind, "gaps") for one in values],
                           foundInf=tensor(0.25), invScale=tensor(scale))
        assert flag == (1 if found else 0.25)
        for actual, one in zip(grads, values):
            exact = (one.astype(numpy.float32) * scale).astype(numpy.float64)
            numpy.testing.assert_array_equal(numpy.asarray(actual), rounded(exact, kind))


def test_equal():
    rng = numpy.random.default_rng(3)
    for kinds in (("F32", "F32"), ("F16", "F32"), ("I8", "I64"), ("B", "B"), ("U64", "U64"), ("BF16", "BF16")):
        for shape in ((), (7,), (3, 1031), (300, 200), (0, 4)):
            values = rng.integers(0, 2, shape).astype(float)
            for layouts in (("row-major", "row-major"), ("reversed", "gaps")):
                pair = [tensor(values, kind, layout) for kind, layout in zip(kinds, layouts)]
                assert call("Equal", self=pair[0], other=pair[1], out=empty((1,), "B"))
                if values.size:
                    changed = values.copy()
                    changed[(-1,) * len(shape)] = 1 - changed[(-1,) * len(shape)]
                    other = tensor(changed, kinds[1], layouts[1])
                    assert not call("Equal", self=pair[0], other=other, out=empty((), "B"))
    assert not call("Equal", self=tensor([1.0]), other=tensor([[1.0]]), out=empty((), "B"))
    nan = tensor([numpy.nan])
    assert not call("Equal", self=nan, other=nan, out=empty((), "B"))


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_precision_compare(kind):
    compare = lambda a, b: call("PrecisionCompare", golden=a, realdata=b, out=empty((), "U32"))
    for shape in ((), (7,), (3, 1031), (0, 4), (1, 2, 1, 2, 1, 2, 1, 3)):
        values = rounded(numpy.random.default_rng(4).normal(0, 1, shape), kind)
        for layout in LAYOUTS:
            assert compare(tensor(values, kind), tensor(values, kind, layout)) == 0
            for place in {0, values.size // 2, values.size - 1} if values.size else ():
                other = values.copy()
                other.ravel()[place] *= 1 + (2.0**-23 if kind == "F32" else 2.0**-7)  # two units in the last place, at most
                assert compare(tensor(values, kind, layout), tensor(other, kind)) == 503
    zeros, ends = tensor([0.0, -0.0], kind), [numpy.inf, -numpy.inf]
    assert compare(zeros, tensor([-0.0, 0.0], kind)) == 0
    assert compare(tensor(ends, kind), tensor(ends, kind)) == 0
    assert compare(tensor([1, numpy.nan], kind), tensor([1, numpy.nan], kind)) == 503


@pytest.mark.parametrize("name", ["Cumsum", "CumsumV2"])
def test_scans(name):
    for number, kind in enumerate(pages.operators()[name]["dtypes"]["out"]["910B"]):
        for index, (shape, dim) in enumerate([((3, 5, 7), 1), ((3, 5, 7), -1), ((9, 40), 0), ((2100,), 0), ((), 0),
                                              ((2, 0), 1)]):  # fmt: skip
            exclusive, reverse = (False, False) if name == "Cumsum" else (index % 2 == 0, (index + number) % 3 > 0)
            values = drawn(kind, shape, False)
            layout = LAYOUTS[(index + number) % 3]
            line = numpy.moveaxis(values.reshape(shape or (1,)), dim, 0)
            line = line[::-1] if reverse else line
            sums = numpy.cumsum(line, 0)
            sums = sums - line if exclusive else sums
            expected = numpy.moveaxis(sums[::-1] if reverse else sums, 0, dim).reshape(shape)
            extra = {"dtype": kind} if name == "Cumsum" else {"exclusive": exclusive, "reverse": reverse}
            actual = call(name, self=tensor(values, kind, layout), dim=dim, out=empty(shape, kind, LAYOUTS[index % 3]),
                          **extra)  # fmt: skip
            compare(actual, expected, kind, abs(values).sum() + 1, f"{name} {kind} {shape} {exclusive} {reverse}")
    if name == "Cumsum":
        actual = call(name, self=tensor([True, False, True], "B"), dim=0, dtype="I64", out=empty((3,), "I64"))
        numpy.testing.assert_array_equal(numpy.asarray(actual), [1, 1, 2])


@pytest.mark.parametrize("name", ["Cumprod", "InplaceCumprod"])
def test_running_products(name):
    for kind in pages.operators()["Cumprod"]["dtypes"]["input"]["910B"]:
        for shape, dim in (((3, 4, 5), 1), ((6,), -1), ((), 0)):
            values = drawn(kind, shape, False)
            wide = values.astype(numpy.int64) if values.dtype.kind in "iub" else values
            expected = numpy.cumprod(wide.reshape(shape or (1,)), dim).reshape(shape)
            given = {"input": tensor(values, kind, "gaps"), "dim": dim}
            if name == "Cumprod":
                given.update(dtype=-1, out=empty(shape, kind, "reversed"))
            compare(call(name, **given), expected, kind, 1, f"{name} {kind} {shape} {dim}")


@pytest.mark.parametrize("name", ["Cummax", "Cummin"])
def test_running_extrema(name):
    """The last of equal elements; NaN from where it stands on."""
    for number, kind in enumerate(pages.operators()[name]["dtypes"]["self"]["910B"]):
        for index, (shape, dim) in enumerate([((3, 5, 7), 1), ((40, 9), 0), ((1500,), -1), ((), 0), ((0, 2), 0)]):
            values = numpy.round(drawn(kind, shape, index % 2 == 0)).reshape(shape or (1,))
            line = numpy.moveaxis(values, dim, 0)
            best, place = line.copy(), numpy.zeros(line.shape, int)
            for i in range(1, len(line)):
                reaches = line[i] >= best[i - 1] if name == "Cummax" else line[i] <= best[i - 1]
                takes = (reaches & (best[i - 1] == best[i - 1])) | (line[i] != line[i])
                best[i] = numpy.where(takes, line[i], best[i - 1])
                place[i] = numpy.where(takes, i, place[i - 1])
            index_type = ("I32", "I64")[number % 2]
            found, at = call(name, self=tensor(values.reshape(shape), kind, "gaps"), dim=dim,
                             valuesOut=empty(shape, kind, "reversed"), indicesOut=empty(shape, index_type))
            message = f"{name} {kind} {shape}"
            numpy.testing.assert_array_equal(numpy.asarray(found), numpy.moveaxis(best, 0, dim).reshape(shape), message)
            numpy.testing.assert_array_equal(numpy.asarray(at), numpy.moveaxis(place, 0, dim).reshape(shape), message)


def test_median():
    for number, kind in enumerate(pages.operators()["Median"]["dtypes"]["self"]["910B"]):
        for index, shape in enumerate([(7,), (4, 5), (3, 1000), (), (2, 2, 3), (0,)]):
            values = drawn(kind, shape, index % 3 == 0)
            values = values * 3.0**12 if index == 2 and promotion.category(kind) == "float" and kind != "F16" else values
            flat, layout = rounded(values, kind).ravel(), LAYOUTS[(index + number) % 3]
            flat = flat if promotion.category(kind) == "float" else values.ravel()
            known = flat[flat == flat]
            of_all = middle(flat, (0,), False)
            actual = call("Median", self=tensor(flat.reshape(shape), kind, layout), valuesOut=empty((), kind))
            numpy.testing.assert_array_equal(actual, of_all, f"Median {kind} {shape}")
            actual = call("NanMedian", self=tensor(flat.reshape(shape), kind, layout), out=empty((1,), kind))
            numpy.testing.assert_array_equal(actual, [middle(known, (0,), False)], f"NanMedian {kind} {shape}")
    assert call("NanMedian", self=tensor([1.0, numpy.nan, 3.0, 2.0]), out=empty((1,))) == 2


def test_median_along_a_dimension():
    for number, kind in enumerate(pages.operators()["MedianDim"]["dtypes"]["self"]["910B"]):
        for index, (shape, dim) in enumerate([((3, 5, 7), 1), ((4, 600), -1), ((50, 3), 0), ((), 0)]):
            values = numpy.round(drawn(kind, shape, index % 2 == 0))
            line = values.reshape(shape or (1,))
            keep, layout = (index + number) % 2 == 0, LAYOUTS[(index + number) % 3]
            expected = middle(line, (dim % line.ndim,), True)
            same = (line == expected) | ((line != line) & (expected != expected))
            places = numpy.argmax(same, dim, keepdims=True)
            to = () if not shape else expected.shape if keep else expected.squeeze(dim).shape
            found, at = call("MedianDim", self=tensor(values, kind, layout), dim=dim, keepDim=keep,
                             valuesOut=empty(to, kind, layout), indicesOut=empty(to, "I64", layout))
            numpy.testing.assert_array_equal(numpy.asarray(found), expected.reshape(to), f"{kind} {shape} {dim}")
            numpy.testing.assert_array_equal(numpy.asarray(at), places.reshape(to), f"{kind} {shape} {dim}")


def test_median_along_a_dimension_without_nan():
    for number, kind in enumerate(pages.operators()["NanMedianDim"]["dtypes"]["self"]["910B"]):
        for index, (shape, dim) in enumerate([((3, 5, 7), 1), ((4, 600), -1), ((50, 3), 0), ((), 0)]):
            values = numpy.round(drawn(kind, shape, index % 2 == 0))
            line = numpy.moveaxis(values.reshape(shape or (1,)), dim, -1)
            known = [one[one == one] for one in line.reshape(-1, line.shape[-1])]
            middles = numpy.array([numpy.sort(one)[(one.size - 1) // 2] if one.size else numpy.nan for one in known])
            expected = middles.astype(line.dtype).reshape(line.shape[:-1])[..., None]
            places = numpy.argmax((line == expected) | ((line != line) & (expected != expected)), -1)
            keep, layout = (index + number) % 2 == 0, LAYOUTS[(index + number) % 3]
            of_dim = lambda found: numpy.expand_dims(found, dim) if keep and shape else found
            expected, places = of_dim(expected[..., 0]), of_dim(places)
            to = () if not shape else expected.shape
            found, at = call("NanMedianDim", self=tensor(values, kind, layout), dim=dim, keepDim=keep,
                             valuesOut=empty(to, kind, layout), indicesOut=empty(to, "I64", layout))
            numpy.testing.assert_array_equal(numpy.asarray(found), expected.reshape(to), f"{kind} {shape} {dim}")
            numpy.testing.assert_array_equal(numpy.asarray(at), places.reshape(to), f"{kind} {shape} {dim}")
    values = tensor([[1, numpy.nan, 3, 2], [-1, numpy.nan, 3, 2]])  # the page's numbers
    for dim, middles, at in ((0, [-1, numpy.nan, 3, 2], [1, 0, 0, 0]), (1, [2, 2], [3, 3])):
        found = call("NanMedianDim", self=values, dim=dim, keepDim=False, valuesOut=empty((len(at),)),
                     indicesOut=empty((len(at),), "I64"))  # fmt: skip
        numpy.testing.assert_array_equal(numpy.asarray(found[0]), middles)
        numpy.testing.assert_array_equal(numpy.asarray(found[1]), at)


def test_median_of_nothing_beyond_counting():
    """Sizes beside one of 0 may have a product that no integer holds."""
    found = call("Median", self=empty((2**40, 2**40, 0)), valuesOut=empty(()))
    assert numpy.isnan(found)


def test_median_of_negative_sizes_is_refused():
    values, places = empty((0,)), empty((0,), "I64")
    negative = pages.lib.aclCreateTensor([-1, 0], 2, pages.lib.ACL_FLOAT, [0, 1], 0, pages.lib.ACL_FORMAT_ND, [0], 1,
                                         pages.ffi.NULL)  # fmt: skip
    assert refusal("MedianDim", negative, 0, False, values, places) == (161002, "aclnnMedianDim/self/sizes")
    assert refusal("MedianDim", empty((2, 0)), 0, False, values, places)[0] == 0
    assert pages.lib.aclDestroyTensor(negative) == 0


FOLDS = {"MaxN": numpy.maximum, "MinN": numpy.minimum, "Sum": numpy.add, "AddN": numpy.add}


@pytest.mark.parametrize("name", FOLDS)
def test_lists_folded(name):
    for kind in pages.operators()[name]["dtypes"]["tensors"]["910B"]:
        for shapes in ([(3, 4)], [(3, 4), (4,), (3, 1)], [(70, 300)] * 20, [(), (2, 2)], [(0, 3), (3,)], [(5, 3)] * 3):
            if name == "AddN" and len({*shapes}) > 1:  # of one shape
                continue
            values = [rounded(drawn(kind, shape, False) + index, kind) if promotion.category(kind) == "float"
                      else drawn(kind, shape, False) + index for index, shape in enumerate(shapes)]
            joint = numpy.broadcast_shapes(*shapes)
            expected = numpy.broadcast_to(values[0], joint)
            for one in values[1:]:
                expected = FOLDS[name](expected, one)
            actual = call(name, tensors=[tensor(one, kind, LAYOUTS[i % 3]) for i, one in enumerate(values)],
                          out=empty(joint, kind, "reversed"))  # fmt: skip
            compare(actual, expected, kind, 1000 * 2.0**22, f"{name} {kind} {shapes}")
    a, b = tensor([1.0, 5.0]), tensor([[2.0], [3.0]])
    numpy.testing.assert_array_equal(call("Sum", tensors=[a, b], out=empty((2, 2))), [[3, 7], [4, 8]])


def test_clamp_with_one_bound_and_with_both_in_the_wrong_order():
    values = numpy.asarray([-2.0, 0.5, numpy.nan, 3.0])
    for low, high, expected in ((0.0, None, [0, 0.5, numpy.nan, 3]), (None, 1, [-2, 0.5, numpy.nan, 1]),
                                (2.0, 1.0, [2, 2, numpy.nan, 2])):
        actual = call("Clamp", self=tensor(values), clipValueMin=low, clipValueMax=high, out=empty((4,)))
        numpy.testing.assert_array_equal(actual, expected)
        bounds = [None if bound is None else tensor(float(bound)) for bound in (low, high)]
        actual = call("ClampTensor", self=tensor(values), clipValueMin=bounds[0], clipValueMax=bounds[1], out=empty((4,)))
        numpy.testing.assert_array_equal(actual, expected)


def test_numpy_functions_know_shapes_and_types():
    x = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
    total = ops.reduce_sum(x, [0, -1], True, numpy.float64)
    numpy.testing.assert_array_equal(total, x.sum((0, 2), keepdims=True))
    assert total.dtype == numpy.float64
    values, indices = ops.max_dim(x, 1, False)
    numpy.testing.assert_array_equal(values, x.max(1))
    numpy.testing.assert_array_equal(indices, x.argmax(1))
    assert indices.dtype == numpy.int64
    assert ops.max(x) == 23 and ops.any(x, [], False) and not ops.all(x, [], False)
    assert ops.equal(x, x) and not ops.equal(x, x[:1])
    numpy.testing.assert_array_equal(ops.cumsum(x, -1, numpy.float32), x.cumsum(-1))
    numpy.testing.assert_array_equal(ops.clamp(x, 3, None), numpy.maximum(x, 3))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0, 0), (0, 0, 0)], ids=str)
def test_nothing_along_several_axes(shape):
    x = tensor(numpy.zeros(shape))
    assert call("LinalgVectorNorm", self=x, ord=2.0, dims=[], keepDims=False, dtype="F32", out=empty(())) == 0
    assert call("ReduceSum", self=x, dims=[], keepDims=False, dtype="F32", out=empty(())) == 0
    assert call("Prod", self=x, dtype="F32", out=empty(())) == 1


@pytest.mark.parametrize("name, expected", [("ReduceSum", 0), ("Mean", numpy.nan)])
@pytest.mark.parametrize("kind", ["C64", "C128", "F32"])
def test_nothing_is_reduced_to_complex_numbers_too(name, expected, kind):
    """As PyTorch does: a note of the page takes it away, no check of it."""
    dims, keep = ("dims", "keepDims") if name == "ReduceSum" else ("dim", "keepDim")
    found = call(name, self=tensor(numpy.zeros((0, 3)), kind), **{dims: [0], keep: False},
                 dtype=pages.KINDS[kind].code, out=empty((3,), kind))  # fmt: skip
    numpy.testing.assert_array_equal(found, numpy.full(3, expected, found.dtype))
