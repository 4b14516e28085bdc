"""How a map call treats its operands: broadcasting, strides, types that differ, scalars, lists, shared memory. The
formulas themselves are in test_map_formulas.py."""

import ctypes
import itertools

import numpy as np
import pytest

from tests.kernels.families import Bfloat, MapCall, Number, View, bfloat, formula, library, number, run_map, seen
from tests.kernels.test_map_formulas import samples, stored_as, wide
from tests.kernels.test_soft_margin_loss_backward import bits
from tests.tensor.internals import DTYPES

ALL = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint64", "int8", "uint8", "int16", "uint16", "uint32",
       "bool", "complex64", "complex128"]
SHAPES = [  # self, other: every way in which axes can be missing, of size 1, or merge
    ((), ()), ((1,), ()), ((5,), ()), ((3, 4), (4,)), ((3, 1), (4,)), ((2, 3, 70), (3, 1)), ((2, 1, 5), (3, 1)),
    ((130, 129), (129,)), ((130, 129), (130, 1)), ((1, 200), (90, 1)), ((2, 3, 4, 5, 1, 2, 2, 2), (5, 1, 2, 1, 2)),
    ((0, 3), (3,)), ((40, 1, 50), (1, 30, 1)), ((33000,), (1,)), ((200, 300), (1, 300)),
    # rows of up to 16 elements, many and just too few of them, longer ones; whole rows, columns, both again and again
    ((7000, 3), (3,)), ((7000, 3), (7000, 1)), ((7000, 1), (3,)), ((40, 1, 2), (50, 2)), ((3, 333, 16), (333, 1)),
    ((300, 17), (17,)), ((15, 3), (3,)), ((16, 3), (16, 1)), ((5, 30, 2, 2), (30, 1, 2))]


def plain_add(x, y, dtype="float32", shape=None):
    shape = np.broadcast_shapes(x.shape, y.shape) if shape is None else shape
    return run_map("add", [x, y], [np.full(shape, 7, dtype)], dtype, [1])[0]


@pytest.mark.parametrize("one, other", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "complex64"])
def test_operands_broadcast(one, other, dtype):
    x, y = (np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 100) for shape in (one, other))
    for a, b in ((x, y), (y, x)):
        a, b = np.asarray(a.astype(dtype)), np.asarray(b.astype(dtype))
        assert np.array_equal(plain_add(a, b, dtype), a + b)


def layouts(array):
    """The same values in other memory orders, with gaps, backwards."""
    yield array.T.copy().T
    spread = np.zeros([2 * size for size in array.shape], array.dtype)
    spread[tuple(slice(0, None, 2) for _ in array.shape)] = array
    yield spread[tuple(slice(0, None, 2) for _ in array.shape)]
    yield array[::-1].copy()[::-1]
    yield np.swapaxes(np.swapaxes(array, 0, 1).copy(), 0, 1)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "complex128"])
@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 90, 70), (70, 3, 2), (1, 1, 300), (7, 170, 3)])
def test_any_strides_on_inputs_and_outputs(dtype, shape):
    x = (np.arange(np.prod(shape)).reshape(shape) % 90).astype(dtype)
    y = x[::-1].copy()
    for a, b, blank in itertools.product(layouts(x), layouts(y), layouts(np.zeros(shape, dtype))):
        run_map("sub", [a, b], [blank], dtype, [1])
        assert np.array_equal(blank, x - y)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "complex128"])
@pytest.mark.parametrize("shape", [(64, 96), (32, 32), (3, 64, 64), (33, 64), (64, 5, 32)])
def test_operands_in_another_order_of_axes(dtype, shape):
    x = (np.arange(np.prod(shape)).reshape(shape) % 90).astype(dtype)
    y = (x[::-1] // 2 if dtype != "complex128" else x[::-1]).astype(dtype)
    with np.errstate(all="ignore"):
        expected = x + y
    across = np.swapaxes(np.swapaxes(x, 0, -1).copy(), 0, -1)
    for a, b, blank in itertools.product((x, across), (y, np.asfortranarray(y)), layouts(np.zeros(shape, dtype))):
        assert np.array_equal(run_map("add", [a, b], [blank], dtype, [1])[0], expected)
    mixed = run_map("add", [across, y], [np.zeros(shape, "complex64")], dtype, [1])[0]
    assert np.array_equal(mixed, expected.astype("complex64"))


@pytest.mark.parametrize("shape", [(2100, 1100), (3, 800, 900), (17_000, 1, 130), (130, 129)])  # slices, and one alone
def test_large_operands_that_lie_across(shape):
    rng = np.random.default_rng(4)
    x, y = (rng.integers(-50, 50, shape).astype("float32") for _ in range(2))
    across, gaps = np.swapaxes(np.swapaxes(x, 0, -1).copy(), 0, -1), np.zeros([2 * size for size in shape], "float32")
    row, column = (rng.integers(-50, 50, some).astype("float32") for some in (shape[-1:], (*shape[:-1], 1)))
    out, spaced = np.zeros(shape, "float32"), gaps[tuple(slice(0, None, 2) for _ in shape)]
    for blank in (out, spaced, out.T.copy().T):
        for a, b in ((across, y), (y, across), (across, across), (across, row), (column, across),
                     (across.astype("float16"), y)):  # fmt: skip
            run_map("sub", [a, b], [blank], "float32", [1])
            assert np.array_equal(blank, a.astype("float32") - b)
    for target in (y, across):  # in place of either operand
        expected = y - across
        run_map("sub", [y, across], [target], "float32", [1])
        assert np.array_equal(target, expected)


def test_a_large_result_over_an_operand_that_lies_across():
    x = np.random.default_rng(4).standard_normal((900, 900)).astype("float32")
    expected = x - x.T
    run_map("sub", [x, x.T], [x], "float32", [1])
    assert np.array_equal(x, expected)


def test_expanded_input_and_negative_strides_of_the_output():
    x = np.broadcast_to(np.float32(3), (4, 6))
    out = np.zeros((4, 6), np.float32)[::-1, ::-1]
    row = np.arange(6, dtype=np.float32)
    assert np.array_equal(run_map("mul", [x, row], [out], "float32")[0], 3 * np.tile(row, (4, 1)))


def converted(values, dtype):
    """Conversion as tensor/lane.h says."""
    values = wide(values) if isinstance(values, Bfloat) else values
    target = np.dtype("float32" if dtype == "bfloat16" else dtype)
    with np.errstate(all="ignore"):
        if values.dtype.kind == "c" and target.kind != "c":
            values = values != 0 if target.kind == "b" else values.real
        if target.kind == "b":
            return values != 0
        if values.dtype.kind == "f" and target.kind in "iu":
            info = np.iinfo(target)
            whole = np.nan_to_num(np.trunc(values.astype(np.float64)), nan=0, posinf=2.0**70, neginf=-(2.0**70))
            exact = [min(max(int(value), info.min), info.max) for value in whole]
            return np.array(exact, target)
        return stored_as(values, dtype) if dtype in ("bfloat16", "float16") else values.astype(target)


@pytest.mark.parametrize("source", ALL)
def test_every_type_converts_to_every_type(source):
    for target in ALL:
        for count, stride in ((37, 1), (37, 3), (1100, 1), (16 * 1024 + 5, 1)):
            x = samples(source, count * stride, 5)[::stride]
            out = np.zeros(count, "uint16" if target == "bfloat16" else target)
            out = bfloat(out) if target == "bfloat16" else out
            # In the source's type: only the output converts; in the target's: only the input does.
            for compute in (source, target):
                run_map("copy", [x], [out], compute)
                expected = converted(x, target)
                same = (wide(out) == wide(expected)) | (np.isnan(wide(out)) & np.isnan(wide(expected)))
                assert same.all(), (source, target, compute, wide(x)[~same][:3], wide(out)[~same][:3])


def test_inputs_round_to_the_compute_type_and_results_before_the_output():
    x, y = np.float32([1 + 2.0**-11, 2049]), np.float32([2.0**-12, 0])
    out = run_map("add", [x, y], [np.zeros(2, np.float32)], "float16", [1])[0]
    with np.errstate(all="ignore"):
        assert np.array_equal(out, (x.astype(np.float16) + y.astype(np.float16)).astype(np.float32))
    wraps = run_map("add", [np.int64([300, 100]), np.int8([1, 100])], [np.zeros(2, np.int32)], "int8", [1])[0]
    assert wraps.tolist() == [45, -56]
    truth = run_map("add", [np.array([True, True, False]), np.array([True, False, False])], [np.zeros(3, np.float32)],
                    "bool", [1])[0]  # fmt: skip
    assert truth.tolist() == [1, 1, 0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int8", "int64", "uint64", "complex64"])
def test_an_absent_input_is_a_number(dtype):
    x = samples(dtype, 300, 1, (-4, 4))
    value = 3 if np.dtype("float32" if dtype == "bfloat16" else dtype).kind in "iu" else 1.5 - 2j if "complex" in dtype else 1.5
    scalar = np.full(300, value, "float32" if dtype == "bfloat16" else dtype)
    other = stored_as(scalar, dtype)
    for name, numbers in (("add", [2]), ("mul", []), ("sub", [1])):
        blank = [np.zeros_like(x) for _ in range(4)]
        expected = run_map(name, [x, other], blank[:1], dtype, numbers)[0]
        actual = run_map(name, [x, None], blank[1:2], dtype, numbers, scalars=[value])[0]
        assert actual.tobytes() == expected.tobytes()
        swapped = run_map(name, [other, x], blank[2:3], dtype, numbers)[0]
        assert run_map(name, [None, x], blank[3:], dtype, numbers, scalars=[value])[0].tobytes() == swapped.tobytes()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_numbers_beyond_a_narrow_type_are_compared_as_they_are(dtype):
    x = samples(dtype, 1000, 3)
    for value in (-100_000, -1, 0, 44, 300, 100_000):
        for name, expected in (("lt", x.astype(int) < value), ("eq", x.astype(int) == value)):
            assert np.array_equal(run_map(name, [x, None], [np.zeros(1000, bool)], dtype, scalars=[value])[0], expected)
    scaled = run_map("add", [x, x], [np.zeros(1000, dtype)], dtype, [1000])[0]
    assert np.array_equal(scaled, (x.astype(int) * 1001).astype(dtype))


def test_of_bool_any_byte_but_0_is_true():
    x, y = (np.resize(np.uint8(bytes_), 1000).view(bool) for bytes_ in ([0, 1, 2, 255, 0], [0, 2, 128, 0, 7, 1, 0]))
    a, b = x.view(np.uint8) != 0, y.view(np.uint8) != 0
    for name, expected in (("eq", a == b), ("lt", ~a & b), ("logical_and", a & b), ("logical_xor", a ^ b), ("mul", a & b),
                           ("maximum", a | b), ("bitwise_and", a & b), ("bitwise_xor", a ^ b)):  # fmt: skip
        out = run_map(name, [x, y], [np.zeros(1000, bool)], "bool")[0]
        assert np.array_equal(out.view(np.uint8), expected.astype(np.uint8)), name


def test_both_bounds_absent():
    x = np.float32([-9, 0.5, 9, np.nan])
    out = run_map("clamp", [x, None, None], [np.zeros(4, np.float32)], "float32", scalars=[-1, 2])[0]
    assert np.array_equal(out, np.float32([-1, 0.5, 2, np.nan]), equal_nan=True)


@pytest.mark.parametrize("dtype, alpha",
                         [("float32", np.float64(0.1)), ("float16", np.float32(0.1)), ("int32", np.int64(-3)),
                          ("uint64", np.uint64(2**63 + 1)), ("complex64", np.complex64(1 - 2j))])  # fmt: skip
def test_a_number_may_come_from_a_tensor_of_one_element(dtype, alpha):
    x, y = samples(dtype, 100, 1, (-4, 4)), samples(dtype, 100, 2, (-4, 4))
    with np.errstate(all="ignore"):
        rounded = np.asarray(alpha).astype(dtype)
    expected = run_map("add", [x, y], [np.zeros_like(x)], dtype, [rounded.item()])[0]
    actual = run_map("add", [x, y, np.asarray(alpha)], [np.zeros_like(x)], dtype)[0]
    assert actual.tobytes() == expected.tobytes()


# ---- memory that inputs and outputs share ----

def test_a_shifted_view_of_the_output_is_read_as_it_was():
    for count in (10, 3000, 70000):
        values = np.arange(count + 1, dtype=np.float32)
        expected = values[1:] + values[:-1]
        run_map("add", [values[1:], values[:-1]], [values[1:]], "float32", [1])
        assert np.array_equal(values[1:], expected)


def test_the_output_may_be_broadcast_into_itself_and_read_as_another_type():
    grid = np.arange(200 * 300, dtype=np.float32).reshape(200, 300)
    expected = grid + grid[0]
    assert np.array_equal(run_map("add", [grid, grid[0]], [grid], "float32", [1])[0], expected)
    x = np.arange(50000, dtype=np.int32)
    assert np.array_equal(run_map("copy", [x], [x.view(np.float32)], "int32")[0], np.arange(50000, dtype=np.float32))


def test_a_number_that_is_overwritten():
    x = np.full(70000, 2, np.float32)
    run_map("add", [x, x, x[5:6]], [x], "float32")
    assert (x == 6).all()


# ---- blending ----

def blended(result, prior, alpha, beta, dtype):
    """In float32 (float64), one rounding after another, and the last to the type."""
    lane = np.float64 if dtype == "float64" else np.float32
    result, prior = result.astype(lane), wide(prior).astype(lane)
    exact = lane(alpha) * result + lane(beta) * prior if beta else lane(alpha) * result
    return stored_as(exact, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("alpha, beta", [(0.75, 0), (1, 0.5), (-0.75, 0.3)])
@pytest.mark.parametrize("shape", [(5,), (4, 300), (37, 65), (3, 64, 64)])
def test_outputs_are_blended_with_what_they_were(dtype, alpha, beta, shape):
    x, y, prior = (samples(dtype, int(np.prod(shape)), seed, (-4, 4)).reshape(shape) for seed in range(3))
    result = np.where(wide(x) > 0, wide(x), 0.5 * wide(x))  # exact: nothing here is subnormal
    expected = blended(result, prior, alpha, beta, dtype)
    for order in (lambda array: array, lambda array: np.swapaxes(np.swapaxes(array, 0, -1).copy(), 0, -1)):
        source, out = order(x), order(prior.copy())
        if dtype == "bfloat16":
            source, out = bfloat(source), bfloat(out)
        run_map("leaky_relu", [source], [out], dtype, [0.5], blend=(alpha, beta))
        assert np.asarray(out).tobytes() == np.asarray(expected).tobytes()


def test_what_was_there_is_not_read_where_beta_is_0():
    x = np.ones(100, np.float32)
    out = np.full(100, np.nan, np.float32)
    run_map("copy", [x], [out], "float32", blend=(2, 0))
    assert (out == 2).all()


def test_an_output_that_is_the_input_is_blended_with_it():
    x = np.arange(5000, dtype=np.float32)
    expected = 2 * (x + 1) + 3 * x
    run_map("add", [x, None], [x], "float32", [1], scalars=[1], blend=(2, 3))
    assert np.array_equal(x, expected)


# ---- lists ----

def run_list(name, items, dtype, each=(), numbers=(), counts=(2, 1)):
    inputs, outputs = counts

    class ListCall(ctypes.Structure):
        _fields_ = [("call", MapCall), ("each", Number * max(1, sum(map(len, each))))]

    call = ListCall(MapCall(ctypes.addressof(formula(name)), DTYPES[dtype], DTYPES[dtype], inputs, outputs, len(items),
                            len(each[0]) if each else 0))
    for place, value in enumerate(numbers):
        call.call.numbers[place] = number(value)
    for place, value in enumerate(itertools.chain(*each)):
        call.each[place] = number(value)
    views = [seen(operand) for item in items for operand in item]
    assert library().us_map((View * len(views))(*views), ctypes.byref(call)) == 0


def many(dtype="float32"):
    shapes = [(), (3,), (0,), (2, 5), (40000,), (17, 1, 9), (1,)] * 9
    return [[samples(dtype, int(np.prod(shape)), seed, (-4, 4)).reshape(shape) for seed in (2 * place, 2 * place + 1)]
            + [np.zeros(shape, dtype)] for place, shape in enumerate(shapes)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_a_list_is_one_call(dtype):
    items = many(dtype)
    run_list("add", items, dtype, numbers=[3])
    for x, y, out in items:
        assert out.tobytes() == run_map("add", [x, y], [np.zeros_like(out)], dtype, [3])[0].tobytes()


def test_items_have_numbers_of_their_own():
    items = many()
    run_list("add", items, "float32", each=[[place] for place in range(len(items))])
    for place, (x, y, out) in enumerate(items):
        assert np.array_equal(out, x + np.float32(place) * y)
    scaled = [[x, None, out] for x, _, out in items]
    run_list("mul", scaled, "float32", each=[[place] for place in range(len(items))])
    for place, (x, _, out) in enumerate(scaled):
        assert np.array_equal(out, x * np.float32(place))
    # Number 0 of each item, number 1 of all: x + place * 1.
    run_list("add", scaled, "float32", each=[[place] for place in range(len(items))], numbers=[0, 1])
    for place, (x, _, out) in enumerate(scaled):
        assert np.array_equal(out, x + np.float32(place))


def test_items_have_numbers_in_a_tensor():
    items, scalars = many(), np.arange(100, dtype=np.float32)
    run_list("addcmul", [[x, y, x, scalars[place:place + 1], out] for place, (x, y, out) in enumerate(items)], "float32",
             counts=(4, 1))
    for place, (x, y, out) in enumerate(items):
        assert np.array_equal(out, x + np.float32(place) * y * x)


def test_lists_in_place_and_items_that_share_memory():
    x = np.arange(100, dtype=np.float32)
    run_list("add", [[x[:50], x[:50], x[:50]], [x[51:], x[50:-1], x[51:]]], "float32", numbers=[1])
    expected = np.arange(100, dtype=np.float32)
    expected[:50] *= 2
    expected[51:] += np.arange(50, 99, dtype=np.float32)
    assert np.array_equal(x, expected)


def test_items_that_overwrite_what_they_read():
    counts = (3, 70000, 50, 16384, 16385, 1) * 20  # of one piece of work, and of several
    memory = [np.arange(count + 1, dtype=np.float32) for count in counts]
    expected = [values[1:] + np.float32(place) * values[:-1] for place, values in enumerate(memory)]
    items = [[values[1:], values[:-1], values[1:]] for values in memory]
    run_list("add", items, "float32", each=[[place] for place in range(len(items))])
    for values, sums in zip(memory, expected):
        assert values[0] == 0 and np.array_equal(values[1:], sums)
    moved = [np.arange(count + 1, dtype=np.float32) for count in counts]
    run_list("copy", [[values[:-1], values[1:]] for values in moved], "float32", counts=(1, 1))
    for count, values in zip(counts, moved):
        assert np.array_equal(values, np.r_[0, np.arange(count)])


def test_empty_lists_and_empty_items():
    run_list("add", [[np.zeros(0, np.float32)] * 3], "float32", numbers=[1])
    run_list("add", [], "float32", numbers=[1])


def inside(count, dtype, first):
    """An array that begins `first` elements behind the line of a cache, in memory that is all sevens."""
    memory = np.full(count + 256, 7, dtype)
    begin = -memory.ctypes.data % 64 // memory.itemsize + first
    return memory, slice(begin, begin + count)


@pytest.mark.parametrize("first", [0, 1, 7, 30])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_results_that_no_cache_can_keep(dtype, first):
    stored = np.dtype("uint16" if dtype == "bfloat16" else dtype)
    count = 2**25 // stored.itemsize + 37  # PAST_MAP_BYTES and some elements that fill no vector
    numbers = np.arange(count) % 255 - 128  # exact in every type
    x = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(stored) if dtype == "bfloat16" else numbers.astype(stored)
    memory, place = inside(count, stored, first)
    source, target = (x.view(Bfloat), memory[place].view(Bfloat)) if dtype == "bfloat16" else (x, memory[place])
    run_map("relu", [source], [target], dtype)
    assert np.array_equal(memory[place], np.where(numbers < 0, stored.type(0), x))
    assert (memory[: place.start] == 7).all() and (memory[place.stop :] == 7).all()


@pytest.mark.parametrize("first", [(0, 0), (5, 5), (0, 3)])
def test_two_results_that_no_cache_can_keep(first):
    """The bits of small calls, whose values test_map_formulas checks."""
    count, part = 2**23 + 5, 2**20
    x, y = samples("float32", count, 1), samples("float32", count, 2)
    (left, left_place), (right, right_place) = (inside(count, "float32", offset) for offset in first)
    run_map("gelu_gate", [x, y], [left[left_place], right[right_place]], "float32")
    for begin in range(0, count, part):
        some = slice(begin, begin + part)
        expected = run_map("gelu_gate", [x[some], y[some]], [np.empty_like(x[some]) for _ in range(2)], "float32")
        assert left[left_place][some].tobytes() == expected[0].tobytes()
        assert right[right_place][some].tobytes() == expected[1].tobytes()


def test_large_results_in_place():
    x = np.arange(2**23, dtype=np.float32)
    run_map("add", [x, x], [x], "float32", [1])
    assert np.array_equal(x, 2 * np.arange(2**23, dtype=np.float32))


def everything():
    """Large enough for several threads."""
    x, y = samples("float32", 200000, 1), samples("float32", 200000, 2)
    parts = [run_map(name, [x, y], [np.zeros_like(x)], "float32", [1])[0].tobytes() for name in ("add", "mul", "maximum")]
    parts.append(run_map("add", [x.reshape(400, 500), y[:400].reshape(400, 1)], [np.zeros((400, 500), np.float16)],
                         "float32", [1])[0].tobytes())
    items = many()
    run_list("add", items, "float32", numbers=[3])
    return b"".join(parts + [item[2].tobytes() for item in items])


def test_any_number_of_threads_gives_the_same_bits():
    assert len({bits("test_map_calls", "v4", threads) for threads in ("1", "2", "5")}) == 1


def complex_pairs(parts, dtype):
    """All quotients of numbers with these parts."""
    numbers = np.array([(re, im) for re in parts for im in parts], np.dtype(dtype).char.lower()).view(dtype).ravel()
    return np.repeat(numbers, len(numbers)), np.tile(numbers, len(numbers))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients_of_infinities_zeros_and_nan(dtype):
    """As NumPy's, but by 0: there the formula has no case of its own."""
    x, y = complex_pairs([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan], dtype)
    out, = run_map("div", [x, y], [np.zeros_like(x)], dtype)
    with np.errstate(all="ignore"):
        expected = np.where(y == 0, np.array(complex(np.nan, np.nan), dtype), x / y)
    assert np.isfinite(expected).any() and np.isinf(expected).any()
    np.testing.assert_allclose(out.view(out.real.dtype), expected.view(out.real.dtype), rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients_where_squares_overflow_or_vanish(dtype):
    limits = np.finfo(dtype)
    large, small = float(limits.max) / 4, float(limits.tiny) / float(limits.eps)
    x, y = complex_pairs([large, -large / 3, small, small * 5, 1.0, -0.75], dtype)
    exact = x.astype(np.clongdouble) / y.astype(np.clongdouble)
    ordinary = (abs(exact) < large) & (abs(exact) > small)
    out, = run_map("div", [x, y], [np.zeros_like(x)], dtype)
    assert ordinary.sum() > len(x) / 2
    assert (abs(out - exact)[ordinary] <= 8 * limits.eps * abs(exact)[ordinary]).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients_in_place_of_an_operand(dtype):
    x, y = (samples(dtype, 1000, seed, (-9, 9)) for seed in (1, 2))
    expected = run_map("div", [x, y], [np.zeros_like(x)], dtype)[0].tobytes()
    for place in (0, 1):
        operands = [x.copy(), y.copy()]
        assert run_map("div", operands, [operands[place]], dtype)[0].tobytes() == expected


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_inverses_are_quotients_of_1(dtype):
    _, y = complex_pairs([0.0, -0.0, 1.0, -1.5, 3.0, np.inf, -np.inf, np.nan, float(np.finfo(dtype).max)], dtype)
    for operand in (y, samples(dtype, 1000, 3, (-9, 9))):
        expected, = run_map("div", [np.ones_like(operand), operand], [np.zeros_like(operand)], dtype)
        same, = run_map("reciprocal", [operand.copy()], [np.zeros_like(operand)], dtype)
        in_place = operand.copy()
        run_map("reciprocal", [in_place], [in_place], dtype)
        for found in (same, in_place):
            np.testing.assert_array_equal(found.view(found.real.dtype), expected.view(found.real.dtype))
