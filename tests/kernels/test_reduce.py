"""The reduce family against NumPy in float64 (integers exactly): any axes, strides, types and sizes."""

import ctypes
import itertools

import numpy as np
import pytest

from tests.kernels.families import Number, bfloat, library, number, seen
from tests.kernels.test_map_formulas import plain, samples, stored_as, wide
from tests.kernels.test_soft_margin_loss_backward import bits
from tests.tensor.internals import DTYPES, View

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int32", "int64", "uint64", "int8", "uint8", "int16", "uint16", "uint32", "bool"]
COMPLEX = ["complex64", "complex128"]
UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-53, "complex64": 2.0**-24,
        "complex128": 2.0**-53}


class ReduceCall(ctypes.Structure):
    _fields_ = [("reduction", ctypes.c_void_p), ("compute", ctypes.c_int), ("result", ctypes.c_int),
                ("axes", ctypes.c_uint32), ("outputs", ctypes.c_int32), ("numbers", Number * 4)]


def reduce(name, x, axes, compute=None, outputs=None, result=None, numbers=(), count=1, indices="int64"):
    compute = compute or ("bfloat16" if x.dtype == np.uint16 and hasattr(x, "view")
                          and type(x) is not np.ndarray else x.dtype.name)  # fmt: skip
    axes = tuple(range(x.ndim)) if axes is None else axes
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    result = result or compute
    if outputs is None:
        outputs = [np.full(shape, 7, "uint16" if result == "bfloat16" else result) for _ in range(count)]
        outputs = [bfloat(out) if result == "bfloat16" else out for out in outputs]
        if name.endswith("_index"):
            outputs = [outputs[0], np.full(shape, 7, indices)]
    reduction = ctypes.c_char.in_dll(library(), f"us_reduce_{name}")
    call = ReduceCall(ctypes.addressof(reduction), DTYPES[compute], DTYPES[result], sum(1 << axis for axis in axes),
                      len(outputs))
    for place, value in enumerate(numbers):
        call.numbers[place] = number(value)
    views = [seen(operand) for operand in (x, *outputs)]
    assert library().us_reduce((View * len(views))(*views), ctypes.byref(call)) == 0
    return outputs


def shapes_and_axes():
    yield (), ()
    yield (1,), (0,)
    yield (7,), (0,)
    for shape in [(2063,), (40000,)]:
        yield shape, (0,)
    for shape in [(3, 70), (70, 3), (5, 1031), (1031, 5), (2, 20000), (20000, 2), (700, 17)]:
        yield from ((shape, axes) for axes in [(0,), (1,), (0, 1), ()])
    for axes in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        yield (6, 7, 90), axes
    for length in (2, 4, 8, 16, 31, 47, 48, 63, 100):  # many short rows
        yield (300, length), (1,)
    yield (71, 2100), (0,)  # more columns, and narrow rows, than are taken at once
    for columns in (2, 3, 15, 16, 40, 63, 64):  # few columns of many rows
        yield (2500, columns), (0,)
    yield (3, 1700, 4), (1,)
    for shape in [(90, 3, 3), (300, 2, 2), (33, 8, 8), (70, 30, 15), (20, 5, 32), (9, 32, 33), (2, 700, 17), (3, 40, 2, 5)]:
        yield shape, (len(shape) - 2,)  # many small groups
    yield (4, 6, 9, 9), (0, 2, 3)
    yield (2, 1, 3, 1, 4, 1, 5, 2), (1, 2, 6)


def sums(x, axes):
    return np.sum(wide(x), axis=axes, keepdims=True), np.sum(np.abs(wide(x)), axis=axes, keepdims=True)


def assert_within(actual, exact, allowed, dtype):
    actual, exact = wide(actual), np.asarray(exact)
    limit = {"float16": 65504, "bfloat16": 3.38e38, "float32": 3.4e38, "complex64": 3.4e38}.get(dtype, 1.7e308)
    with np.errstate(all="ignore"):
        allowed = allowed + UNIT[dtype] * np.abs(exact) + {"float16": 2.0**-25, "bfloat16": 2.0**-134}.get(dtype, 2.0**-150)
        same = (actual == exact) | np.isnan(actual) & np.isnan(exact) | (np.abs(exact) + allowed >= limit) & np.isinf(actual)
        wrong = ~(same | (np.abs(actual - exact) <= allowed))
    assert not wrong.any(), (actual[wrong][:3], exact[wrong][:3])


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_sums(dtype):
    for place, (shape, axes) in enumerate(shapes_and_axes()):
        x = samples(dtype, int(np.prod(shape)), place, (-2, 3)).reshape(shape)
        exact, size = sums(x, axes)
        count = max(1, x.size // max(1, exact.size))
        assert_within(reduce("sum", x, axes)[0], exact, 2.0**-53 * size * (count + 2), dtype)
        assert_within(reduce("mean", x, axes)[0], exact / count, 2.0**-53 * size * 2, dtype)


@pytest.mark.parametrize("name, dtype", [*itertools.product(["sum", "nansum", "sum_squares"], FLOATS), ("sum", "complex64")])
def test_sums_of_neighbours_are_those_of_elements_that_lie_apart(name, dtype):
    """To the last bit of the states, in lengths of all parts that rows are cut into."""
    result = "complex128" if dtype == "complex64" else "float64"
    for length in (1, 15, 97, 255, 256, 300, 511, 512, 1000, 1024, 1056, 1103, 1600, 4001):
        scale = 2.0 ** np.random.default_rng(length).integers(-12, 12, 5 * length)  # sums of any order are rounded otherwise
        neighbours = stored_as(wide(samples(dtype, 5 * length, length, (-9, 9))) * scale, dtype).reshape(5, length)
        apart = np.repeat(neighbours, 2, axis=1)[:, ::2]
        apart = bfloat(apart) if dtype == "bfloat16" else apart
        one, other = (plain(reduce(name, x, (1,), result=result)) for x in (neighbours, apart))
        assert one == other, length


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_sums_products_and_extrema(dtype):
    for place, (shape, axes) in enumerate(shapes_and_axes()):
        x = samples(dtype, int(np.prod(shape)), place).reshape(shape)
        with np.errstate(all="ignore"):
            wrapped = np.uint64 if dtype == "uint64" else np.int64
            total = np.sum(x.astype(wrapped), axis=axes, keepdims=True).astype(dtype)
            product = np.prod(x.astype(wrapped), axis=axes, keepdims=True).astype(dtype)
        assert np.array_equal(reduce("sum", x, axes)[0], total)
        assert np.array_equal(reduce("prod", x, axes)[0], product)
        low, high = reduce("min_max", x, axes, count=2)
        assert np.array_equal(low, np.min(x, axis=axes, keepdims=True))
        assert np.array_equal(high, np.max(x, axis=axes, keepdims=True))
        assert np.array_equal(reduce("max", x, axes)[0], high) and np.array_equal(reduce("min", x, axes)[0], low)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_extrema_of_one_sign_and_nan_of_either(dtype):
    """16-bit floats are compared by their bits."""
    for shape, axes in [((3, 700), (1,)), ((700, 35), (0,))]:
        size = int(np.prod(shape))
        for sign, special in itertools.product((1, -1), (None, 0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan)):
            values = sign * np.random.default_rng(size).uniform(0.5, 200, size).astype("float32")
            if special is not None:
                values[[5, size // 2]] = special
            x = stored_as(values, dtype).reshape(shape)
            for name, function in (("max", np.max), ("min", np.min)):
                exact = function(wide(x), axis=axes, keepdims=True)
                assert np.array_equal(wide(reduce(name, x, axes)[0]), exact, equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATS)
def test_extrema_and_nan(dtype):
    for place, (shape, axes) in enumerate(shapes_and_axes()):
        for domain in (None, (-4, 4)):
            x = samples(dtype, int(np.prod(shape)), place, domain).reshape(shape)
            low, high = np.min(wide(x), axis=axes, keepdims=True), np.max(wide(x), axis=axes, keepdims=True)
            assert np.array_equal(wide(reduce("max", x, axes)[0]), high, equal_nan=True)
            assert np.array_equal(wide(reduce("min", x, axes)[0]), low, equal_nan=True)
            both = reduce("min_max", x, axes, count=2)
            assert np.array_equal(wide(both[0]), low, equal_nan=True) and np.array_equal(wide(both[1]), high, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16", "bfloat16"])
@pytest.mark.parametrize("columns", [2053, 131, 4096])
def test_columns_from_far_memory(dtype, columns):
    """From 32 MiB on: several units and one, rests of rows of each number that is taken at once, and a NaN near the end."""
    size = 4 if dtype.endswith("32") else 2
    rows = (32 << 20) // size // columns + 7
    x = np.random.default_rng(columns).integers(-9, 10, (rows, columns)).astype("float32")
    x[-2, columns // 2] = np.nan if dtype != "int32" else 99
    x = x.astype("int32") if dtype == "int32" else stored_as(x, dtype)
    x = bfloat(x) if dtype == "bfloat16" else x
    exact = wide(x)
    assert np.array_equal(wide(reduce("max", x, (0,))[0]), exact.max(axis=0, keepdims=True), equal_nan=True)
    result = "int64" if dtype == "int32" else "float32"  # sums of integers below 2^24: exact
    assert np.array_equal(reduce("sum", x, (0,), result=result)[0], exact.sum(axis=0, keepdims=True), equal_nan=True)
    if dtype == "float32":
        squares = np.sqrt((exact**2).sum(axis=0, keepdims=True)).astype("float32")
        assert np.array_equal(reduce("norm_2", x, (0,))[0], squares, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "int8", "uint64", "bool"])
def test_indices_of_extrema(dtype):
    columns_of_units = [((1031, columns), (0,)) for columns in (128, 129, 257)]
    for place, (shape, axes) in enumerate([*shapes_and_axes(), *columns_of_units]):
        for domain in (None, (0, 3)):
            x = samples(dtype, int(np.prod(shape)), place, domain).reshape(shape)
            if domain and x.dtype.kind == "f":
                x = np.asarray(np.trunc(x))  # many equal ones
            kept = [axis for axis in range(x.ndim) if axis not in axes]
            rows = np.transpose(x, [*kept, *axes]).reshape([x.shape[axis] for axis in kept] + [-1])
            for name, function, values in (("max_index", np.argmax, np.max), ("min_index", np.argmin, np.min)):
                value, index = reduce(name, x, axes, indices="int32" if place % 2 else "int64")
                assert np.array_equal(index.reshape(rows.shape[:-1]), function(rows, axis=-1)), (shape, axes)
                assert np.array_equal(value.reshape(rows.shape[:-1]), values(rows, axis=-1), equal_nan=True)
                alone = reduce(name, x, axes, outputs=[None, np.zeros(value.shape, np.int64)], compute=dtype)
                assert np.array_equal(alone[1], index)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + COMPLEX)
def test_any_and_all(dtype):
    for place, (shape, axes) in enumerate(shapes_and_axes()):
        for x in (samples(dtype, int(np.prod(shape)), place).reshape(shape), np.zeros(shape, stored_as([0], dtype).dtype),
                  np.ones(shape, stored_as([0], dtype).dtype)):
            x = bfloat(x) if dtype == "bfloat16" else x
            assert np.array_equal(reduce("any", x, axes, result="bool")[0], np.any(wide(x) != 0, axis=axes, keepdims=True))
            assert np.array_equal(reduce("all", x, axes, result="bool")[0], np.all(wide(x) != 0, axis=axes, keepdims=True))


@pytest.mark.parametrize("dtype", FLOATS)
def test_variances(dtype):
    for place, (shape, axes) in enumerate(shapes_and_axes()):
        for centre in (0, 1000):
            x = samples(dtype, int(np.prod(shape)), place, (centre - 1, centre + 2)).reshape(shape)
            with np.errstate(all="ignore"):
                deviation = wide(x).astype(np.longdouble) - np.mean(wide(x).astype(np.longdouble), axis=axes, keepdims=True)
                count = max(1, x.size // max(1, int(np.prod([1 if a in axes else n for a, n in enumerate(shape)]))))
                exact = (np.sum(deviation**2, axis=axes, keepdims=True) / max(0, count - 1)).astype(np.float64)
            size = np.abs(centre) + 2
            variance, mean = reduce("variance", x, axes, numbers=[1], count=2)
            # Each deviation is off by the rounding of its difference; squares and sums by their own.
            allowed = 2.0**-52 * (np.nan_to_num(exact) * (count + 8) + 2 * size * np.sqrt(np.nan_to_num(exact)) + 2.0**-50 * size**2)
            assert_within(variance, exact, allowed, dtype)
            assert_within(mean, np.mean(wide(x), axis=axes, keepdims=True), 2.0**-52 * size * (count + 2), dtype)
            with np.errstate(all="ignore"):
                root = np.sqrt(exact)
            deviation = reduce("standard_deviation", x, axes, numbers=[1], count=2)[0]
            assert_within(deviation, root, allowed / np.maximum(np.nan_to_num(root), 1e-30), dtype)


# Long enough to be cut into chunks, whose numbers are far from those of others: alone, and in columns.
UNLIKE_CHUNKS = [((300_000,), (0,)), ((9000, 37), (0,))]


@pytest.mark.parametrize("shape,axes", UNLIKE_CHUNKS)
def test_variances_of_chunks_with_means_far_apart(shape, axes):
    centres = np.repeat([0, 1e6, -1e6, 3, 1e6], shape[0] // 5).reshape(-1, *[1] * (len(shape) - 1))
    x = np.float32(np.random.default_rng(5).uniform(-1, 1, shape) + centres)
    exact_mean = np.mean(x.astype(np.longdouble), axis=axes, keepdims=True)
    exact = np.sum((x - exact_mean) ** 2, axis=axes, keepdims=True) / (shape[0] - 1)
    variance, mean = reduce("variance", x, axes, numbers=[1], count=2)
    assert_within(variance, exact.astype(np.float64), 2.0**-52 * (shape[0] + 8) * exact.astype(np.float64), "float32")
    assert_within(mean, exact_mean.astype(np.float64), 2.0**-52 * (shape[0] + 2) * 1e6, "float32")


@pytest.mark.parametrize("shape,axes", UNLIKE_CHUNKS)
@pytest.mark.parametrize("odd,variance,mean", [(np.inf, np.nan, np.inf), (-np.inf, np.nan, -np.inf), (np.nan,) * 3])
def test_a_chunk_that_is_not_finite(shape, axes, odd, variance, mean):
    x = np.float32(np.random.default_rng(6).uniform(-1, 1, shape))
    x[shape[0] // 2] = odd
    actual = reduce("variance", x, axes, numbers=[1], count=2)
    for out, expected in zip(actual, (variance, mean)):
        assert np.array_equal(out, np.full(out.shape, expected, np.float32), equal_nan=True)


@pytest.mark.parametrize("shape,axes", UNLIKE_CHUNKS)
@pytest.mark.parametrize("parts", [(-np.inf, 5, -1e4, 0, -np.inf), (-1e4, -2e4, -3e4, -1e4, -9e4), (-np.inf,) * 5,
                                   (0, np.inf, -np.inf, 1e4, 0), (1e4, np.inf, 3e38, 0, 0), (0, np.nan, np.inf, 0, 0)])  # fmt: skip
def test_logarithms_of_sums_of_chunks_far_apart(shape, axes, parts):
    centres = np.repeat(parts, shape[0] // 5).reshape(-1, *[1] * (len(shape) - 1))
    x = np.float32(np.random.default_rng(7).uniform(-1, 1, shape) + centres)
    with np.errstate(all="ignore"):
        top = np.max(x, axis=axes, keepdims=True).astype(np.float64)
        finite = np.where(np.isfinite(top), top, 0)
        exact = np.log(np.sum(np.exp(x - finite), axis=axes, keepdims=True)) + finite
    assert_within(reduce("logsumexp", x, axes)[0], exact, 4 * 2.0**-24, "float32")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, np.inf, -np.inf])
def test_norms(dtype, p):
    named = {0: "norm_0", 1: "norm_1", 2: "norm_2", np.inf: "norm_high", -np.inf: "norm_low"}
    find = library().us_reduce_norm
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_double]
    name = named.get(p, "norm_of")
    assert find(p) == ctypes.addressof(ctypes.c_char.in_dll(library(), f"us_reduce_{name}"))
    for place, (shape, axes) in enumerate(shapes_and_axes()):
        x = samples(dtype, int(np.prod(shape)), place, (-2, 3)).reshape(shape)
        magnitude = np.abs(np.asarray(wide(x)))
        if p == 0:
            exact = np.sum(magnitude != 0, axis=axes, keepdims=True).astype(np.float64)
        elif np.isinf(p):
            exact = (np.max if p > 0 else np.min)(magnitude, axis=axes, keepdims=True)
        else:
            exact = np.sum(magnitude**p, axis=axes, keepdims=True) ** (1 / p)
        compute = 2.0**-53 if dtype == "float64" else 2.0**-24
        # Powers are off by two units of the type computed in, relative to themselves; the root divides that by p.
        count = max(1, x.size // max(1, exact.size))
        allowed = ((8 * compute + count * 2.0**-53) / min(p, 1) if name == "norm_of" else 2.0**-45) * exact
        assert_within(reduce(name, x, axes, numbers=[p] if name == "norm_of" else [])[0], exact, allowed, dtype)
        if p == 2 and dtype in ("float32", "float64"):
            assert_within(reduce("sum_squares", x, axes)[0], exact**2, 2.0**-53 * (count + 4) * exact**2, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_logarithms_of_sums(dtype):
    for place, (shape, axes) in enumerate(shapes_and_axes()):
        x = samples(dtype, int(np.prod(shape)), place, (-6, 9)).reshape(shape)
        top = np.max(wide(x), axis=axes, keepdims=True)
        exact = np.log(np.sum(np.exp(wide(x) - top), axis=axes, keepdims=True)) + top
        compute = 2.0**-53 if dtype == "float64" else 2.0**-24
        # e^x is off by 2 units and by the rounding of its argument, at most 15.
        assert_within(reduce("logsumexp", x, axes)[0], exact, 20 * compute + 2.0**-50 * np.abs(exact), dtype)
        positive = stored_as(np.abs(wide(x)) + 0.5, dtype)
        positive = bfloat(positive) if dtype == "bfloat16" else positive
        total = np.sum(wide(positive), axis=axes, keepdims=True)
        assert_within(reduce("log_sum", positive, axes)[0], np.log(total), 2.0**-40 + 2.0**-50 * np.abs(np.log(total)),
                      dtype)  # fmt: skip


def test_logsumexp_of_infinite_numbers():
    x = np.float32([[np.inf, 1], [-np.inf, -np.inf], [np.nan, 0], [-np.inf, 2], [1e10, 0]])
    actual = reduce("logsumexp", x, (1,))[0].ravel()
    assert np.array_equal(actual, np.float32([np.inf, -np.inf, np.nan, 2, 1e10]), equal_nan=True)


def test_nan_counts_as_nothing_in_nansum():
    x = samples("float32", 5000, 3)
    x = np.where(np.isinf(x), np.float32(np.nan), x)
    np.testing.assert_allclose(reduce("nansum", x, (0,))[0], [np.nansum(x.astype(np.float64))], rtol=2e-7)


def test_products():
    x = samples("float32", 40, 1, (0.5, 2)).reshape(4, 10)
    for axes in ((0,), (1,), (0, 1)):
        exact = np.prod(x.astype(np.float64), axis=axes, keepdims=True)
        assert_within(reduce("prod", x, axes)[0], exact, 0, "float32")


def test_not_finite():
    for value in (np.inf, -np.inf, np.nan):
        x = np.zeros(1000, np.float16)
        assert reduce("any_not_finite", x, (0,), result="float32")[0] == 0
        x[517] = value
        assert reduce("any_not_finite", x, (0,), result="float32")[0] == 1


@pytest.mark.parametrize("name, start", [("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf), ("mean", np.nan),
                                         ("any", 0), ("all", 1), ("variance", np.nan), ("norm_2", 0),
                                         ("logsumexp", -np.inf)])  # fmt: skip
def test_reductions_of_nothing(name, start):
    for shape, axes in (((0,), (0,)), ((3, 0), (1,)), ((0, 3), (0,)), ((2, 0, 3), (1,))):
        out = reduce(name, np.zeros(shape, np.float32), axes, numbers=[1])[0]
        assert np.array_equal(out, np.full(out.shape, start, np.float32), equal_nan=True)
    assert reduce(name, np.zeros((0, 3), np.float32), (1,), numbers=[1])[0].shape == (0, 1)


def test_variance_of_one_element():
    x = np.float32([[3], [4]])
    assert np.isnan(reduce("variance", x, (1,), numbers=[1])[0]).all()
    assert (reduce("variance", x, (1,), numbers=[0])[0] == 0).all()


def layouts(x):
    yield np.asfortranarray(x)
    spread = np.zeros([2 * size for size in x.shape], x.dtype)
    spread[tuple(slice(0, None, 2) for _ in x.shape)] = x
    yield spread[tuple(slice(0, None, 2) for _ in x.shape)]
    yield x[::-1].copy()[::-1]
    yield np.swapaxes(np.swapaxes(x, 0, x.ndim - 1).copy(), 0, x.ndim - 1)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "complex64"])
def test_any_strides(dtype):
    x = samples(dtype, 5 * 70 * 33, 1, (-4, 4)).reshape(5, 70, 33)
    small = np.trunc(x.real).astype(dtype)
    for axes in itertools.chain.from_iterable(itertools.combinations(range(3), count) for count in (1, 2, 3)):
        with np.errstate(all="ignore"):
            exact = np.sum(small.astype({"int16": np.int64, "complex64": np.complex128}.get(dtype, np.float64)), axis=axes,
                           keepdims=True)
        for array in layouts(small):
            out = np.zeros([2 * size for size in exact.shape], dtype)[tuple(slice(0, None, 2) for _ in exact.shape)]
            reduce("sum", array, axes, outputs=[out])
            assert np.array_equal(out, exact.astype(dtype))
            if dtype != "complex64":
                value, index = reduce("max_index", array, axes)
                first, second = reduce("max_index", small, axes)
                assert np.array_equal(index, second) and np.array_equal(value, first)


def test_types_convert_before_and_after():
    x = np.array([[True, False, True]] * 4)
    assert reduce("sum", x, (0, 1), compute="int64", outputs=[np.zeros((1, 1), np.int64)])[0].item() == 8
    halves = np.float16([2048] * 100)
    assert reduce("sum", halves, (0,), compute="float32", outputs=[np.zeros(1, np.float32)])[0].item() == 204800
    integers = np.int32([2**30] * 8)
    assert reduce("sum", integers, (0,))[0].item() == 0  # modulo 2^32
    assert reduce("sum", integers, (0,), compute="int64", outputs=[np.zeros(1, np.float32)])[0].item() == 2.0**33
    assert reduce("mean", integers, (0,), compute="float32", outputs=[np.zeros(1, np.float16)])[0].item() == np.inf


def everything():
    parts = []
    for shape, axes in [((300000,), (0,)), ((500, 700), (0,)), ((500, 700), (1,)), ((8, 60000), (1,)), ((60000, 8), (0,))]:
        for dtype in ("float32", "float16", "float64", "int32"):
            x = samples(dtype, int(np.prod(shape)), 1, (-4, 4)).reshape(shape)
            for name in ("sum", "max", "max_index", "variance", "logsumexp"):
                if dtype != "int32" or name not in ("variance", "logsumexp"):
                    parts.append(plain(reduce(name, x, axes, numbers=[1], count=2 if name == "variance" else 1)))
    return b"".join(parts)


def test_same_bits_on_every_instruction_set_and_any_number_of_threads():
    variants = {bits("test_reduce", level, threads)
                for level, threads in [("base", "1"), ("v3", "2"), ("v4", "1"), ("v4", "3")]}
    assert len(variants) == 1
