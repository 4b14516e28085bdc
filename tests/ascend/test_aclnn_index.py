"""Operators by index tensors: types, layouts, masks, faults and real shapes, against NumPy."""

import itertools

import numpy as np
import pytest
from understudy.ascend import ffi, lib

from tests.ascend.calling import LAYOUTS, call, empty, fault, refusal, rounded, tensor
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import Tensor
from tests.conformance.ascend.pages import tensor_list
from tests.conformance.harness import run_python

RANDOM = np.random.default_rng(12)
TYPES = ["F32", "F16", "I64", "U8", "B", "F64"]


def drawn(shape, kind="F32"):
    """Small integers, which every type holds."""
    return RANDOM.integers(0, 2 if kind == "B" else 6, shape).astype(np.float64)


def view_shape(tensor):
    sizes, rank = ffi.new("int64_t **"), ffi.new("uint64_t *")
    assert lib.aclGetViewShape(tensor.handle, sizes, rank) == 0
    return tuple(sizes[0][axis] for axis in range(rank[0]))


def cases(kinds=TYPES):
    return [(kind, layout) for kind in kinds for layout in LAYOUTS if layout == "row-major" or kind in kinds[:2]]


def test_index():
    shape = (5, 3, 4)
    wide, row, column = (np.array([[1, -1, 0], [4, 2, 2]]), np.array([2, 0, -3]), np.array([[3], [1]]))
    for kind, layout in cases([*TYPES, "C128"]):
        values = drawn(shape, kind)
        for index in ((wide,), (None, row), (wide, row), (None, row, column), (wide, None, column), (wide, row, column),
                      (None, None, row), (np.array([], np.int64),)):  # fmt: skip
            expected = values[tuple(slice(None) if one is None else one for one in index)]
            given = [tensor(one, "I32" if layout == "gaps" else "I64", layout) if one is not None
                     else empty((0,), kind if layout == "row-major" else "F32")
                     for one in index]  # fmt: skip
            found = call("Index", self=tensor(values, kind, layout), indices=given, out=empty(expected.shape, kind, layout))
            np.testing.assert_array_equal(found, expected)


def test_index_of_masks():
    values = drawn((4, 3, 5))
    both, first, last = drawn((4, 3), "B") > 0, np.array([True, False, True, True]), np.array([0, 1, 0, 0, 1]) > 0
    rows = np.array([0, 2, 1])
    for index in ((both,), (first,), (None, None, last), (first, rows), (first, None, np.array([4])), (both, np.array([1])),
                  (np.zeros(4, bool),)):  # fmt: skip
        at = tuple(slice(None) if one is None else one for one in index)
        given = [empty((0,), "F32") if one is None else tensor(one, "B" if one.dtype == bool else "I64") for one in index]
        found = call("Index", self=tensor(values), indices=given, out=empty(values[at].shape))
        np.testing.assert_array_equal(found, values[at])
        for accumulate in (False, True):
            given = [empty((0,), "F32") if one is None else tensor(one, "B" if one.dtype == bool else "I64")
                     for one in index]  # fmt: skip
            expected = values.copy()
            expected[at] = expected[at] * accumulate + 3
            found = call("IndexPutImpl", selfRef=tensor(values), indices=given, values=tensor(3.0), accumulate=accumulate,
                         unsafe=False)  # fmt: skip
            np.testing.assert_array_equal(found, expected)


def test_index_put():
    rows, columns = np.array([3, 0, 3, -1, 0]), np.array([1, 2, 1, 2, 2])
    for kind, layout in cases(["F32", "F16", "I32", "B", "I8"]):
        values = drawn((4, 3, 6), kind)
        for index, new in (((rows,), drawn((5, 3, 6), kind)), ((rows, columns), drawn((5, 6), kind)),
                           ((None, columns), drawn((4, 5, 6), kind)), ((rows, None, columns), drawn((5, 3), kind)),
                           ((rows,), drawn((1, 6), kind))):  # fmt: skip
            at = tuple(slice(None) if one is None else one for one in index)
            for accumulate in (False, True):
                expected = values.copy()
                if accumulate:
                    np.add.at(expected, at, new)
                    expected = np.minimum(expected, 1) if kind == "B" else expected
                else:
                    expected[at] = new
                given = [None if one is None else tensor(one, "I64", layout) for one in index]
                found = call("IndexPutImpl", selfRef=tensor(values, kind, layout), indices=given,
                             values=tensor(new, kind, layout), accumulate=accumulate, unsafe=True)  # fmt: skip
                np.testing.assert_array_equal(found, expected)


def test_index_select():
    for kind, layout in cases([*TYPES, "C64", "U32"]):
        values = drawn((4, 3, 5), kind)
        for dim, index_kind in itertools.product((0, 1, -1), ("I32", "I64")):
            index = RANDOM.integers(0, values.shape[dim], 7)
            expected = np.take(values, index, dim)
            found = call("IndexSelect", self=tensor(values, kind, layout), dim=dim,
                         index=tensor(index, index_kind, layout), out=empty(expected.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, expected)
    one = call("IndexSelect", self=tensor(5.0), dim=0, index=tensor([0], "I64"), out=empty(()))
    row = call("IndexSelect", self=tensor([[1.0, 2], [3, 4]]), dim=0, index=tensor(1, "I64"), out=empty((1, 2)))
    assert one == 5 and row.tolist() == [[3, 4]]


def test_gather():
    for kind, layout in cases():
        values = drawn((5, 4, 3), kind)
        for dim in (0, 1, -1):
            index = RANDOM.integers(-values.shape[dim], values.shape[dim], (4, 3, 2))
            part = values[tuple(slice(None) if axis == dim % 3 else slice(size) for axis, size in enumerate(index.shape))]
            expected = np.take_along_axis(part, index % values.shape[dim], dim)
            found = call("Gather", self=tensor(values, kind, layout), dim=dim, index=tensor(index, "I64", layout),
                         out=empty(index.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, expected)


def scattered(values, dim, index, src, reduce):
    out = values.copy()
    for at in np.ndindex(*index.shape):
        to = list(at)
        to[dim] = index[at]
        out[tuple(to)] = (src[at], out[tuple(to)] + src[at], out[tuple(to)] * src[at])[reduce]
    return out


def test_scatter():
    for (kind, layout), dim, reduce in itertools.product(cases(["F32", "I32", "F16", "C64"]), (0, -1), (0, 1, 2)):
        values, src = drawn((4, 3, 5), kind), drawn((3, 3, 5), kind)
        index = RANDOM.integers(0, values.shape[dim], (3, 2, 4))
        out = empty(values.shape, kind, layout)
        arguments = {"dim": dim, "index": tensor(index, "I64", layout), "reduce": reduce}
        expected = scattered(values, dim, index, src, reduce)
        found = call("Scatter", self=tensor(values, kind, layout), src=tensor(src, kind, layout), out=out, **arguments)
        np.testing.assert_array_equal(found, expected)
        found = call("InplaceScatter", selfRef=tensor(values, kind, layout), src=tensor(src, kind), **arguments)
        np.testing.assert_array_equal(found, expected)
        expected = scattered(values, dim, index, np.full(index.shape, 3.0), reduce)
        out = empty(values.shape, kind, layout)
        found = call("ScatterValue", self=tensor(values, kind, layout), value=3, out=out, **arguments)
        np.testing.assert_array_equal(found, expected)
        found = call("InplaceScatterValue", selfRef=tensor(values, kind, layout), value=3, **arguments)
        np.testing.assert_array_equal(found, expected)
        if reduce == 1:
            del arguments["reduce"]
            found = call("ScatterAdd", self=tensor(values, kind, layout), src=tensor(src, kind),
                         out=empty(values.shape, kind), **arguments)  # fmt: skip
            np.testing.assert_array_equal(found, scattered(values, dim, index, src, 1))


def test_sums_at_one_place_round_once():
    """A million float32 terms on one element, and 16-bit terms that are lost one by one."""
    terms = np.full(1_000_000, 0.1, np.float32)
    found = call("IndexPutImpl", selfRef=tensor(np.zeros(3)), indices=[tensor(np.ones(terms.size), "I32")],
                 values=tensor(terms), accumulate=True, unsafe=False)  # fmt: skip
    np.testing.assert_array_equal(found, [0, np.float32(terms.astype(np.float64).sum()), 0])
    found = call("ScatterAdd", self=tensor([2048.0], "F16"), dim=0, index=tensor(np.zeros(64), "I64"),
                 src=tensor(np.ones(64), "F16"), out=empty((1,), "F16"))  # fmt: skip
    assert found == [2112]


def test_large():
    """More than one piece of work, on every path."""
    values, index = drawn((300, 257)), RANDOM.integers(0, 300, 1000)
    taken = call("IndexSelect", self=tensor(values), dim=0, index=tensor(index, "I64"), out=empty((1000, 257)))
    np.testing.assert_array_equal(taken, values[index])
    columns = RANDOM.integers(0, 257, (300, 400))
    taken = call("Gather", self=tensor(values), dim=1, index=tensor(columns, "I64"), out=empty(columns.shape))
    np.testing.assert_array_equal(taken, np.take_along_axis(values, columns, 1))
    new = drawn((1000, 257))
    for accumulate in (False, True):
        expected = values.copy()
        if accumulate:
            np.add.at(expected, index, new)
        else:
            expected[index] = new
        found = call("IndexPutImpl", selfRef=tensor(values), indices=[tensor(index, "I64")], values=tensor(new),
                     accumulate=accumulate, unsafe=False)  # fmt: skip
        np.testing.assert_array_equal(found, expected)
    for dim in (0, 1):
        found = call("ScatterAdd", self=tensor(np.zeros((300, 300))), dim=dim, index=tensor(columns[:, :300], "I64"),
                     src=tensor(np.ones((300, 300))), out=empty((300, 300)))  # fmt: skip
        expected = scattered(np.zeros((300, 300)), dim, columns[:, :300], np.ones((300, 300)), 1)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind, size", [("I8", 1), ("F16", 2), ("F32", 4), ("F64", 8)])
def test_reads_that_no_cache_holds(kind, size):
    """16 MiB and more, which are written past the caches: lines of indices, and slices; odd lengths, so that few are aligned."""
    count = 2**24 // size // 1031 + 2
    values = drawn((70, 1031), kind)
    columns, rows = RANDOM.integers(0, 1031, (70, count)), RANDOM.integers(0, 70, count)
    for index_kind in ("I32", "I64"):
        taken = call("IndexSelect", self=tensor(values, kind), dim=0, index=tensor(rows, index_kind), out=empty((count, 1031), kind))
        np.testing.assert_array_equal(taken, values[rows])
    wide = np.tile(columns, (1, 15))
    taken = call("Gather", self=tensor(values, kind), dim=1, index=tensor(wide, "I64"), out=empty(wide.shape, kind))
    np.testing.assert_array_equal(taken, np.take_along_axis(values, wide, 1))
    wide[69, -7] = 1031
    out = empty(wide.shape, kind)
    assert "index 1031 is outside" in fault("Gather", tensor(values, kind), 1, tensor(wide, "I64"), out)
    np.testing.assert_array_equal(out.values()[:60], np.take_along_axis(values[:60], wide[:60], 1))


def test_large_scatter():
    """Pieces that copy their part of what was there before, all of which is named or not."""
    shape = (40, 30, 50)
    values = RANDOM.integers(-3, 4, shape).astype(float)
    for dim, named, reduce in itertools.product((1, 2), ((40, 30, 20), (40, 29, 50), (40, 15, 30), (39, 30, 50)), (0, 1, 2)):
        index, src = RANDOM.integers(0, shape[dim], named), RANDOM.integers(-3, 4, named).astype(float)
        found = call("Scatter", self=tensor(values), dim=dim, index=tensor(index, "I64"), src=tensor(src), reduce=reduce,
                     out=empty(shape))  # fmt: skip
        np.testing.assert_array_equal(found, scattered(values, dim, index, src, reduce))
    index[5] = 50
    out = empty(shape)
    assert "index 50 is outside" in fault("ScatterAdd", tensor(values), 2, tensor(index, "I64"), tensor(src), out)
    np.testing.assert_array_equal(out.values()[5], values[5])


def test_lines():
    """Long lines of indices, taken as they lie in memory, with ones from the end among them: in few places, or everywhere."""
    for (kind, layout), (rows, columns), share in itertools.product(
        cases(["F32", "F16", "I64", "U8", "F64"]), ((3, 67), (2, 1031), (70, 64)), (0, 0.02, 0.5)
    ):
        values, source = drawn((rows, columns), kind), drawn((rows, columns), kind)
        for dim in (0, 1):
            size = values.shape[dim]
            index = RANDOM.integers(0, size, (rows, columns))
            found = call("Gather", self=tensor(values, kind, layout), dim=dim, out=empty(index.shape, kind, layout),
                         index=tensor(index - size * (RANDOM.random(index.shape) < share), "I64", layout))  # fmt: skip
            np.testing.assert_array_equal(found, np.take_along_axis(values, index, dim))
        for index_kind, accumulate in itertools.product(("I32", "I64"), (False, True)):
            index, expected = RANDOM.integers(0, columns, columns), values[0].copy()
            given = index - columns * (RANDOM.random(columns) < share)
            found = call("InplacePut", selfRef=tensor(values[0], kind), index=tensor(given, index_kind),
                         source=tensor(source[0], kind), accumulate=accumulate)  # fmt: skip
            for place, value in zip(index, source[0]):
                expected[place] = value + (expected[place] if accumulate else 0)
            np.testing.assert_array_equal(found, rounded(expected, kind))
    columns = np.zeros((3, 100), np.int64)
    for name, outside in itertools.product(("Scatter", "ScatterAdd"), (100, 2**63 - 1, -(2**63))):
        columns[1, 70] = outside
        given = [tensor(drawn((3, 100))), 1, tensor(columns, "I64"), tensor(drawn((3, 100)))]
        assert f"index {outside} is outside" in fault(name, *given, *([0] if name == "Scatter" else []), empty((3, 100)))


def test_rows_are_added_in_order():
    """Rows of a matrix, wide or not, with places from the end and far more rows than places or far fewer."""
    for kind, layout in cases(["F32", "F16", "BF16", "F64", "I32"]):
        for (places, count), width in itertools.product(((7, 300), (300, 7), (1, 1), (5000, 0)), (15, 16, 67, 515)):
            table, rows = drawn((places, width), kind), drawn((count, width), kind)
            rows[::3] /= 2
            rows = np.trunc(rows) if kind == "I32" else rows
            if count > 2 and kind == "F32":  # in another order the sum would be another one
                rows[0], rows[1], rows[2] = 1e30, 3, -1e30
            index = RANDOM.integers(0, places, count)
            index[:3] = 0
            expected = table.copy()
            np.add.at(expected, index, rows)
            given = index - places * (RANDOM.random(count) < 0.3)
            for index_kind in ("I32", "I64"):
                found = call("IndexPutImpl", selfRef=tensor(table, kind, layout),
                             indices=[tensor(given, index_kind, layout)], values=tensor(rows, kind, layout),
                             accumulate=True, unsafe=False)  # fmt: skip
                np.testing.assert_array_equal(found, rounded(expected, kind))
    out, outside = tensor(np.ones((5, 20))), tensor([0, 5, 7], "I64")
    assert "index 5 is outside" in fault("IndexPutImpl", out, tensor_list([outside]), tensor(np.ones((3, 20))), True, False)
    np.testing.assert_array_equal(out.values(), 1)


def test_sums_do_not_depend_on_the_number_of_threads():
    source = """
import hashlib
from tests.ascend.test_aclnn_index import *
digest = hashlib.sha256()
for rows, columns, dim in ((300, 400, 1), (400, 300, 0), (20000, 1, 0), (40000, 3, 0)):
    source, index = RANDOM.normal(0, 1, (rows, columns)), RANDOM.integers(0, 37, (rows, columns))
    out = empty((400, 400) if columns > 1 else (10**6, 1))
    found = call("ScatterAdd", self=tensor(np.ones(out.shape)), dim=dim, index=tensor(index, "I64"), src=tensor(source),
                 out=out)
    digest.update(found.tobytes())
    found = call("IndexPutImpl", selfRef=tensor(np.ones((37, columns))), indices=[tensor(index[:, 0], "I64")],
                 values=tensor(source), accumulate=True, unsafe=False)
    digest.update(found.tobytes())
print(digest.hexdigest())
"""
    assert len({run_python(source, {"UNDERSTUDY_THREADS": str(count)}) for count in (1, 3, 20)}) == 1


@pytest.mark.parametrize("count", [5, 700])
def test_index_that_is_expanded_along_its_axis(count):
    """Stride 0: all positions of a line name one element."""
    def same(kind, shape, strides):
        return Tensor(pages.KINDS[kind], np.full(max(1, shape[0] * strides[0]), 2), shape=shape, strides=strides)

    values = drawn((count,))
    start = drawn((3,))
    expected = start + np.array([0, 0, values.sum()])
    at = {"dim": 0, "out": empty((3,))}
    found = call("ScatterAdd", self=tensor(start), index=same("I64", (count,), [0]), src=tensor(values), **at)
    np.testing.assert_array_equal(found, expected)
    found = call("IndexAdd", self=tensor(start), index=same("I32", (count,), [0]), source=tensor(values), alpha=1, **at)
    np.testing.assert_array_equal(found, expected)
    found = call("Scatter", self=tensor(start), index=same("I64", (count,), [0]), src=tensor(values), reduce=0, **at)
    np.testing.assert_array_equal(found, [*start[:2], values[-1]])
    changed = tensor(start)
    call("InplacePut", selfRef=changed, index=same("I64", (count,), [0]), source=tensor(values), accumulate=True)
    np.testing.assert_array_equal(changed.values(), expected)
    found = call("Bincount", self=same("I32", (count,), [0]), weights=tensor(values), minlength=3, out=empty((3,)))
    np.testing.assert_array_equal(found, [0, 0, values.sum()])
    rows = drawn((2, count))
    found = call("ScatterAdd", self=tensor(np.zeros((2, 3))), dim=1, index=same("I64", (2, count), [1, 0]), src=tensor(rows),
                 out=empty((2, 3)))  # fmt: skip
    np.testing.assert_array_equal(found, np.stack([0 * rows.sum(1), 0 * rows.sum(1), rows.sum(1)], 1))


def test_index_outside_is_a_fault():
    for index in (5, -6, 2**40):
        sentence = fault("Index", tensor(drawn((5, 2))), tensor_list([tensor([0, index], "I64")]), empty((2, 2)))
        assert f"index {index} is outside a dimension of size 5" in sentence
    assert "index -1" in fault("IndexSelect", tensor(drawn((5, 2))), 0, tensor([-1], "I64"), empty((1, 2)))
    self = tensor(drawn((4,)))
    before = self.bytes()
    assert "index 4" in fault("IndexPutImpl", self, tensor_list([tensor([4], "I32")]), tensor([1.0]), True, True)
    assert self.bytes() == before
    assert "name 2" in fault("Index", self, tensor_list([tensor([1, 0, 1, 0], "B")]), empty((3,)))
    assert "room for 1" in fault("NonzeroV2", tensor([1.0, 2.0]), empty((1, 1), "I64"))


@pytest.mark.parametrize("index, dtype", [(-1, "I32"), (5, "I32"), (2**32, "I64"), (2**63 - 1, "I64"), (-(2**63), "I64")])
def test_embedding_index_outside_is_a_fault(index, dtype):
    table, out = drawn((5, 3)), empty((2, 3, 3))
    indices = np.array([[0, index, 2], [1, index, 4]])
    assert f"index {index} is outside a table of 5 rows" in fault("Embedding", tensor(table), tensor(indices, dtype), out)
    found = out.values()
    assert not found[:, 1].any()
    np.testing.assert_array_equal(found[:, [0, 2]], table[[[0, 2], [1, 4]]])
    found = call("Embedding", weight=tensor(table), indices=tensor([4, 0], dtype), out=empty((2, 3)))
    np.testing.assert_array_equal(found, table[[4, 0]])


def test_empty():
    none = np.zeros((0, 3))
    assert call("IndexSelect", self=tensor(none), dim=1, index=tensor([1], "I64"), out=empty((0, 1))).shape == (0, 1)
    assert call("Gather", self=tensor(none), dim=0, index=tensor(none, "I64"), out=empty((0, 3))).shape == (0, 3)
    values = drawn((2, 3))
    found = call("ScatterAdd", self=tensor(values), dim=0, index=tensor(none, "I64"), src=tensor(none), out=empty((2, 3)))
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nonzero_and_masked_select(layout):
    for kind, shape in itertools.product(["F32", "B", "I64", "F16"], [(3, 4), (2, 3, 2), (70, 300), (5,), (), (0, 3)]):
        values = drawn(shape, kind) * (RANDOM.random(shape) < 0.6)
        where = np.argwhere(values)
        out = empty((values.size, values.ndim), "I64")
        call("Nonzero", self=tensor(values, kind, layout), out=out)
        assert view_shape(out) == where.shape
        np.testing.assert_array_equal(out.stored()[: where.size].reshape(where.shape), where)
        out = empty((values.ndim, values.size), "I64")
        call("NonzeroV2", self=tensor(values, kind, layout), out=out)
        assert view_shape(out) == where.T.shape
        np.testing.assert_array_equal(out.stored()[: where.size].reshape(where.T.shape), where.T)
        mask = values > 2
        out = empty((values.size,), kind)
        call("MaskedSelect", self=tensor(values, kind, layout), mask=tensor(mask, "B", layout), out=out)
        assert view_shape(out) == (mask.sum(),)
        np.testing.assert_array_equal(out.kind.decode(out.stored()[: mask.sum()]), rounded(values, kind)[mask])


def test_masked_select_broadcasts():
    values, mask = drawn((3, 1, 4)), drawn((5, 1), "U8") > 2
    joint, truth = np.broadcast_arrays(values, mask)
    out = empty((60,), "F64")
    call("MaskedSelect", self=tensor(values), mask=tensor(mask, "U8"), out=out)
    np.testing.assert_array_equal(out.stored()[: truth.sum()], joint[truth])


@pytest.mark.parametrize("kind, dtype", [("I8", "int8"), ("U8", "uint8"), ("I32", "int32"), ("I64", "int64"), ("B", "bool"),
                                         ("F16", "float16"), ("F32", "float32"), ("F64", "float64")])  # fmt: skip
def test_narrow_rows_are_added(kind, dtype):
    """Rows of few elements, more of them than are converted together: integers wrap round, bools stay true, sums round once."""
    dtype = np.dtype(dtype)
    for width, targets, count in ((1, 7, 5000), (2, 50, 300), (3, 1, 2000), (5, 900, 700), (33, 20, 130), (63, 9, 90)):
        rows = RANDOM.integers(0, 2 if kind == "B" else 100, (count, width)).astype(dtype)
        start = RANDOM.integers(0, 2 if kind == "B" else 100, (targets, width)).astype(dtype)
        index = RANDOM.integers(0, targets, count)
        sums = start.astype(np.float64 if dtype.kind == "f" else np.int64)
        np.add.at(sums, index, rows.astype(sums.dtype))
        for index_kind in ("I64", "I32"):
            arguments = {"self": tensor(start, kind), "dim": 0, "index": tensor(index, index_kind),
                         "source": tensor(rows, kind)}  # fmt: skip
            found = call("IndexAdd", alpha=1, out=empty(start.shape, kind), **arguments)
            with np.errstate(over="ignore"):  # infinity in float16
                expected = sums.astype(dtype).astype(np.float64)
            np.testing.assert_array_equal(found, expected)


def test_index_add_copy_and_fill():
    for kind, layout in cases(["F32", "F16", "I32", "I8"]):
        values = drawn((5, 4, 3), kind)
        for dim in (0, 1, -1):
            index = RANDOM.integers(0, values.shape[dim], 6)
            shape = list(values.shape)
            shape[dim] = 6
            source = drawn(shape, kind)
            arguments = {"dim": dim, "index": tensor(index, "I64", layout), "source": tensor(source, kind, layout)}
            at = (slice(None),) * (dim % 3) + (index,)
            expected = values.copy()
            np.add.at(expected, at, 2 * source)
            for name, more in (("IndexAdd", {}), ("IndexAddV2", {"mode": 1})):
                found = call(name, self=tensor(values, kind, layout), alpha=2, out=empty(values.shape, kind, layout),
                             **arguments, **more)  # fmt: skip
                np.testing.assert_array_equal(found, expected)
            expected = values.copy()
            for k, place in enumerate(index):
                expected[at[:-1] + (place,)] = np.take(source, k, dim)
            found = call("IndexCopy", selfRef=tensor(values, kind, layout), outRef=empty(values.shape, kind, layout),
                         **arguments)  # fmt: skip
            np.testing.assert_array_equal(found, expected)
            found = call("InplaceIndexCopy", selfRef=tensor(values, kind, layout), **arguments)
            np.testing.assert_array_equal(found, expected)
            if kind == "I8":
                continue
            expected = values.copy()
            expected[at[:-1] + ([0, -1],)] = 3
            found = call("IndexFillTensor", self=tensor(values, kind, layout), dim=dim, index=[0, -1], value=3,
                         out=empty(values.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, expected)
            found = call("InplaceIndexFillTensor", selfRef=tensor(values, kind, layout), dim=dim, index=[0, -1], value=3)
            np.testing.assert_array_equal(found, expected)
            if kind in ("U8", "F64"):
                continue
            for index_kind in ("I32", "I64"):  # indices outside are left out
                at_ends = {"dim": dim, "index": tensor([0, 7, -1, -8, 0], index_kind, layout), "value": 3}
                found = call("IndexFill", self=tensor(values, kind, layout), out=empty(values.shape, kind, layout),
                             **at_ends)  # fmt: skip
                np.testing.assert_array_equal(found, expected)
                found = call("InplaceIndexFill", selfRef=tensor(values, kind, layout), **at_ends)
                np.testing.assert_array_equal(found, expected)
    one = {"dim": 0, "index": tensor([0], "I64"), "source": tensor(7.0)}
    assert call("InplaceIndexCopy", selfRef=tensor(1.0), **one) == 7
    assert call("InplaceIndexCopy", selfRef=tensor([1.0, 2]), **one).tolist() == [7, 2]
    for held in (5.0, [5.0, 6.0]):  # no index at all, of no dimension as of one
        nothing = {"dim": 0, "index": [], "value": 7.0}
        assert np.array_equal(call("IndexFillTensor", self=tensor(held), out=empty(np.shape(held)), **nothing), held)
        assert np.array_equal(call("InplaceIndexFillTensor", selfRef=tensor(held), **nothing), held)
        for index in ([], [4, -9]):
            nothing["index"] = tensor(index, "I64")
            assert np.array_equal(call("IndexFill", self=tensor(held), out=empty(np.shape(held)), **nothing), held)
            assert np.array_equal(call("InplaceIndexFill", selfRef=tensor(held), **nothing), held)
    assert call("InplaceIndexFill", selfRef=tensor(5.0), dim=0, index=tensor([4, 0, -1], "I64"), value=7.0) == 7
    assert call("IndexFill", self=tensor(5.0), dim=-1, index=tensor(0, "I32"), value=7.0, out=empty(())) == 7
    many = np.arange(3 * 5000.0).reshape(5000, 3)
    index = RANDOM.integers(-6000, 6000, 3000)
    expected = many.copy()
    expected[index[(index >= -5000) & (index < 5000)]] = -1
    found = call("IndexFill", self=tensor(many), dim=0, index=tensor(index, "I64"), value=-1, out=empty(many.shape))
    np.testing.assert_array_equal(found, expected)


def test_scatter_reduce_is_the_sum():
    torch = pytest.importorskip("torch")
    for layout in LAYOUTS:
        for shape, dim in (((5, 4, 3), 1), ((70, 200), 0), ((), 0)):
            values, picked = drawn(shape), tuple(max(1, size - 1) for size in shape)
            index, source = RANDOM.integers(0, shape[dim] if shape else 1, picked), drawn(shape)
            expected = torch.tensor(values).scatter_reduce(dim, torch.tensor(index), torch.tensor(source), "sum",
                                                           include_self=True).numpy()  # fmt: skip
            given = {"dim": dim, "index": tensor(index, "I64", layout), "src": tensor(source, layout=layout),
                     "reduce": 1, "includeSelf": True}  # fmt: skip
            found = call("ScatterReduce", self=tensor(values, layout=layout), out=empty(shape, layout=layout), **given)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(call("InplaceScatterReduce", selfRef=tensor(values, layout=layout), **given),
                                          expected)  # fmt: skip


SPANS = ["I8", "U8", "F16", "F32", "I32", "BF16"]


def test_spans_of_a_batch():
    for kind, layout in cases(SPANS):
        for shape, axis, length, starts in (((4, 3, 6, 2), -2, 1, [5, 0, 2]), ((4, 3, 6, 2), 1, 2, [1, 0, 1, 1]),
                                            ((3, 500), -1, 100, [0, 400, 17]),
                                            ((2, 3), 1, 3, [0])):  # fmt: skip
            data, entries = drawn(shape, kind), len(starts)
            part = [entries, *shape[1:]]
            part[axis] = length
            updates = drawn(part, kind) + 50
            expected = data.copy()
            for entry, start in enumerate(starts):
                np.moveaxis(expected, axis, 1)[entry][start : start + length] = np.moveaxis(updates, axis, 1)[entry]
            for index_kind in ("I32", "I64"):
                places = tensor(starts, index_kind, layout)
                found = call("InplaceScatterUpdate", data=tensor(data, kind, layout), indices=places,
                             updates=tensor(updates, kind, layout), axis=axis)  # fmt: skip
                np.testing.assert_array_equal(found, expected)
                if entries == 1:  # a start without dimensions
                    found = call("InplaceScatterUpdate", data=tensor(data, kind), indices=tensor(starts[0], index_kind),
                                 updates=tensor(updates, kind), axis=axis)  # fmt: skip
                    np.testing.assert_array_equal(found, expected)
            rows, expected = RANDOM.integers(0, shape[0], entries), data.copy()
            for entry, (row, start) in enumerate(zip(rows, starts)):
                np.moveaxis(expected, axis, 1)[row][start : start + length] = np.moveaxis(updates, axis, 1)[entry]
            found = call("InplaceScatterUpdate", data=tensor(data, kind, layout), updates=tensor(updates, kind, layout),
                         indices=tensor(np.stack([rows, starts], 1), "I64", layout), axis=axis)  # fmt: skip
            np.testing.assert_array_equal(found, expected)
    for row in (-1, 3):
        assert f"to entry {row}: there are 3" in fault("InplaceScatterUpdate", tensor(np.ones((3, 4))),
                                                       tensor([[0, 0], [row, 1]], "I64"), tensor(np.ones((2, 2))), -1)  # fmt: skip
    for start in (-1, 3):
        assert "room for 4" in fault("InplaceScatterUpdate", tensor(np.ones((2, 4))), tensor([0, start], "I64"),
                                     tensor(np.ones((2, 2))), -1)  # fmt: skip


def test_spans_of_a_list():
    for kind, layout in cases([*SPANS, "U16", "U32", "I16"]):
        for shape, axis, length in (((3, 6, 2), -2, 2), ((3, 6, 2), 1, 1), ((500,), -1, 100)):
            targets = [drawn(shape, kind) for _ in range(4)]
            part = [4, *shape]
            part[axis] = length
            updates, size = drawn(part, kind) + 50, shape[axis if axis < 0 else axis - 1]
            starts, lengths = RANDOM.integers(0, size - length + 1, 4), RANDOM.integers(0, length + 1, 4)
            for rank, masked in ((1, False), (1, True), (2, False), (2, True)):
                mask, expected = np.array([1, 0, 1, 1]), [one.copy() for one in targets]
                for i, target in enumerate(expected):
                    count = 0 if masked and not mask[i] else lengths[i] if rank == 2 else length
                    along = axis if axis < 0 else axis - 1
                    np.moveaxis(target, along, 0)[starts[i] : starts[i] + count] = np.moveaxis(updates[i], along, 0)[:count]
                found = call("ScatterList", varRef=[tensor(one, kind, layout) for one in targets],
                             indice=tensor(starts if rank == 1 else np.stack([starts, lengths], 1),
                                           "I32" if masked else "I64", layout), updates=tensor(updates, kind, layout),
                             maskOptional=tensor(mask, "U8", layout) if masked else None, reduceOptional="update",
                             axis=axis)  # fmt: skip
                for one, exact in zip(found, expected):
                    np.testing.assert_array_equal(one, exact)
    for places in ([3], [[0, 3]], [[2, -1]]):
        assert "room for 4" in fault("ScatterList", tensor_list([tensor(np.ones(4))]), tensor(places, "I64"),
                                     tensor(np.ones((1, 2))), None, ffi.new("char[]", b"update"), -1)  # fmt: skip


def test_coordinates():
    for kind, layout in cases(["F32", "F16", "B"]):
        values = drawn((5, 4, 3), kind)
        for named in (1, 2, 3):
            places = np.stack([RANDOM.integers(0, size, (2, 6)) for size in values.shape[:named]], -1)
            at = tuple(np.moveaxis(places, -1, 0))
            expected = values[at]
            for index_kind, given in (("I32", places), ("I64", places - np.array(values.shape[:named]))):
                found = call("GatherNd", self=tensor(values, kind, layout), indices=tensor(given, index_kind, layout),
                             negativeIndexSupport=True, out=empty(expected.shape, kind, layout))  # fmt: skip
                np.testing.assert_array_equal(found, expected)
            new, result = drawn(expected.shape, kind), values.copy()
            for place in np.ndindex(2, 6):
                result[tuple(places[place])] = new[place]
            found = call("ScatterNd", data=tensor(values, kind, layout), indices=tensor(places, "I64", layout),
                         updates=tensor(new, kind, layout), out=empty(values.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, result)
            found = call("ScatterNdUpdate", varRef=tensor(values, kind, layout), indices=tensor(places, "I32", layout),
                         updates=tensor(new, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, result)
    assert "index -1" in fault("GatherNd", tensor(drawn((5,))), tensor([[-1]], "I64"), False, empty((1,)))


def test_sums_at_coordinates():
    for kind, layout in cases(["F32", "F16", "BF16", "I32", "I8", "U8"]):
        values = drawn((3, 4, 2), kind)
        for named in (0, 1, 2, 3):  # 0: indices of the first axis, without an axis for coordinates
            shape = (2, 6) if named == 0 else (2, 6, named)
            places = RANDOM.integers(0, values.shape[: max(named, 1)] if named else 3, shape)
            at = tuple(np.moveaxis(places, -1, 0)) if named else (places,)
            new, expected = drawn((2, 6, *values.shape[max(named, 1) :]), kind), values.copy()
            np.add.at(expected, at, new)
            for index_kind in ("I32", "I64"):
                found = call("TfScatterAdd", varRef=tensor(values, kind, layout), indices=tensor(places, index_kind, layout),
                             updates=tensor(new, kind, layout))  # fmt: skip
                np.testing.assert_array_equal(found, expected)
    assert "index 3" in fault("TfScatterAdd", tensor(drawn((3, 2))), tensor([3], "I64"), tensor(drawn((1, 2))))
    found = call("TfScatterAdd", varRef=tensor(drawn((0, 2))), indices=tensor(np.zeros(0), "I64"),
                 updates=tensor(np.zeros((0, 2))))  # fmt: skip
    assert found.shape == (0, 2)


def test_take_gather_and_masked_scatter():
    for kind, layout in cases(["F32", "I64", "B"]):
        values, index = drawn((5, 4), kind), RANDOM.integers(0, 4, (3, 2))
        found = call("Take", self=tensor(values, kind, layout), index=tensor(index * 6, "I64", layout),
                     out=empty((3, 2), kind, layout))  # fmt: skip
        np.testing.assert_array_equal(found, values.ravel()[index * 6])
        for dim in (0, 1):
            expected = np.take(values, index, dim)
            found = call("GatherV2", self=tensor(values, kind, layout), dim=dim, index=tensor(index, "I32", layout),
                         out=empty(expected.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, expected)
            if dim == 0:
                found = call("GatherV3", self=tensor(values, kind, layout), dim=0, index=tensor(index, "I32", layout),
                             batchDims=0, mode=1, out=empty(expected.shape, kind, layout))  # fmt: skip
                np.testing.assert_array_equal(found, expected)
        mask, source = RANDOM.random((4,)) < 0.6, drawn((25,), kind)
        expected = values.copy()
        expected[:, mask] = source[: 5 * mask.sum()].reshape(5, -1)
        found = call("InplaceMaskedScatter", selfRef=tensor(values, kind, layout), mask=tensor(mask, "B"),
                     source=tensor(source, kind))  # fmt: skip
        np.testing.assert_array_equal(found, expected)
    assert "index 20" in fault("Take", tensor(drawn((5, 4))), tensor([20], "I64"), empty((1,)))
    assert "source has 1" in fault("InplaceMaskedScatter", tensor([1.0, 2]), tensor([1, 1], "B"), tensor([3.0]))


def test_take_and_put_from_the_end():
    for kind, layout in cases(["F32", "F16", "I64", "B", "F64"]):
        values, index = drawn((5, 4), kind), np.array([[3, -1, 7], [7, 0, -20]])
        found = call("Take", self=tensor(values, kind, layout), index=tensor(index, "I32", layout),
                     out=empty((2, 3), kind, layout))  # fmt: skip
        np.testing.assert_array_equal(found, values.ravel()[index])
        for shape, accumulate in itertools.product([(2, 3), (6,), (3, 2)], [False] if kind == "BF16" else [False, True]):
            source, expected = drawn(shape, kind), values.ravel().copy()
            for place, value in zip(index.ravel(), source.ravel()):
                expected[place] = value + (accumulate and expected[place])
            found = call("InplacePut", selfRef=tensor(values, kind, layout), index=tensor(index, "I64", layout),
                         source=tensor(source, kind, layout), accumulate=accumulate)  # fmt: skip
            np.testing.assert_array_equal(found, expected.reshape(5, 4) > 0 if kind == "B" else expected.reshape(5, 4))
    assert "index" in fault("InplacePut", tensor(np.zeros(3)), tensor([3], "I64"), tensor([1.0]), False)


def test_one_hot():
    for kind, layout in cases(["I64", "F32", "U8"]):
        for shape, axis in (((5,), -1), ((2, 3), 0), ((2, 3), 1), ((), -1), ((0, 2), -1)):
            classes = RANDOM.integers(0, 4, shape)
            at = len(shape) if axis < 0 else axis
            found = call("OneHot", self=tensor(classes, "I64", layout), numClasses=4, onValue=tensor([3], kind),
                         offValue=tensor([1], kind), axis=axis, out=empty((*shape[:at], 4, *shape[at:]), kind, layout))
            np.testing.assert_array_equal(found, np.moveaxis(np.eye(4)[classes] * 2 + 1, -1, at))


def test_one_hot_of_numbers_that_are_no_class():
    """They have offValue everywhere; of onValue and offValue the first elements count."""
    for layout in LAYOUTS:
        numbers = RANDOM.integers(-2, 6, (3, 700))
        found = call("OneHot", self=tensor(numbers, "I32", layout), numClasses=4, onValue=tensor([[5.0, 6.0]], "F16", layout),
                     offValue=tensor([2.0, 3.0], "F16", layout), axis=1, out=empty((3, 4, 700), "F16", layout))  # fmt: skip
        np.testing.assert_array_equal(found, np.where(numbers[:, None] == np.arange(4)[:, None], 5, 2))
    found = call("OneHot", self=tensor([1, 255, 0], "U8"), numClasses=2, onValue=tensor([1.0]), offValue=tensor([0.0]), axis=-1,
                 out=empty((3, 2)))  # fmt: skip
    np.testing.assert_array_equal(found, [[0, 1], [0, 0], [1, 0]])


def test_unpool():
    for axes, (kind, layout) in itertools.product((2, 3), cases(["F32", "F16", "I64"])):
        of_slopes = layout if axes == 2 else "row-major"
        for lead in [(3,), (2, 3)]:
            small, size = (*lead, 2, 2, 2)[: len(lead) + axes], (2, 4, 5)[-axes:]
            values, plane = drawn(small, kind), int(np.prod(size))
            places = np.stack([RANDOM.permutation(plane)[: 2**axes] for _ in range(int(np.prod(lead)))]).reshape(small)
            expected = np.zeros((*lead, plane))
            flat, of_plane = places.reshape(*lead, -1), values.reshape(*lead, -1)
            np.put_along_axis(expected, flat, of_plane, -1)
            more = {} if axes == 2 else {"stride": [2] * 3, "padding": [0] * 3}
            indices, name = tensor(places, "I64", layout), f"MaxUnpool{axes}d"
            result = {"out" if axes == 2 else "outRef": empty((*lead, *size), kind, layout)}
            found = call(name, self=tensor(values, kind, layout), indices=indices, outputSize=list(size), **more, **result)
            np.testing.assert_array_equal(found, expected.reshape(*lead, *size))
            slopes = drawn((*lead, *size), kind)
            found = call(name + "Backward", gradOutput=tensor(slopes, kind, layout), self=tensor(values, kind, layout),
                         indices=indices, outputSize=list(size), out=empty(small, kind, of_slopes), **more)
            np.testing.assert_array_equal(found, np.take_along_axis(slopes.reshape(*lead, -1), flat, -1).reshape(small))


def test_bincount():
    values = RANDOM.integers(0, 7, 300)
    for kind, weight_kind, out_kind in (("I64", None, "I64"), ("U8", "F32", "F64"), ("I32", "F16", "F32"),
                                        ("I8", "I32", "I32")):  # fmt: skip
        weights = drawn((300,)) if weight_kind else None
        found = call("Bincount", self=tensor(values, kind), weights=tensor(weights, weight_kind) if weight_kind else None,
                     minlength=9, out=empty((9,), out_kind))  # fmt: skip
        np.testing.assert_array_equal(found, np.bincount(values, weights, 9))
    assert "index 2" in fault("Bincount", tensor([2], "I32"), None, 0, empty((2,), "I64"))
    unknown = Tensor(pages.KINDS["F32"], [1.0], code=64 + pages.KINDS["F32"].code)  # the same bit modulo 64
    assert refusal("Bincount", tensor([0], "I32"), unknown, 1, empty((1,))) == (161002, "aclnnBincount/weights/dtype")


# ---- groups of rows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("version", [1, 2])
def test_sums_of_groups(version, kind):
    """The gradient of a bias that each group of rows has: by ends, sizes, or equal groups; empty ones give 0."""
    name, form = ("GroupedBiasAddGrad", {}) if version == 1 else ("GroupedBiasAddGradV2", {"groupIdxType": 0})
    for number, (sizes, width) in enumerate([([3, 0, 4], 5), ([1000, 1], 300), ([0], 2), ([2, 2, 2, 2], 1)]):
        layout, count = LAYOUTS[number % 3], sum(sizes)
        rows = rounded(np.random.default_rng(number).normal(0, 1, (count, width)), kind)
        expected = rounded(np.stack([part.sum(0) for part in np.split(rows, np.cumsum(sizes)[:-1])]), kind)
        for index in ("I32", "I64"):
            for by_sizes in (False, True)[:version]:
                made = form | ({"groupIdxType": int(by_sizes)} if version == 2 else {})
                own = call(name, gradY=tensor(rows, kind, layout),
                           groupIdxOptional=tensor(sizes if by_sizes else np.cumsum(sizes), index, layout), **made,
                           out=empty((len(sizes), width), kind, layout))  # fmt: skip
                np.testing.assert_array_equal(own, expected)
        equal = rounded(np.random.default_rng(number).normal(0, 1, (len(sizes), 7, width)), kind)
        own = call(name, gradY=tensor(equal, kind, layout), groupIdxOptional=None, **form,
                   out=empty((len(sizes), width), kind, layout))  # fmt: skip
        np.testing.assert_array_equal(own, rounded(equal.sum(1), kind))


def test_groups_that_do_not_fit_are_faults():
    rows = tensor(np.ones((4, 2)))
    for ends, words in (([3, 2], "group 1 of 2 ends before row 2, which is not in 3 … 4"),
                        ([1, 5], "group 1 of 2 ends before row 5"),
                        ([-1, 4], "group 0 of 2 ends before row -1"), ([1, 3], "the groups have 3 rows, of 4")):  # fmt: skip
        assert words in fault("GroupedBiasAddGrad", rows, tensor(ends, "I32"), empty((2, 2)))
    assert "group 1 of 2 ends before row 0" in fault("GroupedBiasAddGradV2", rows, tensor([1, -1], "I64"), 1, empty((2, 2)))


COALESCED = [((2, 9), ()), ((1, 40), (3,)), ((3, 300), (2, 5)), ((2, 2), (4,)), ((4, 1), ())]


@pytest.mark.parametrize("shape, dense", COALESCED)
@pytest.mark.parametrize("kind", ["F32", "F16", "I32"])
def test_entries_of_one_place_become_one(kind, shape, dense):
    """Coordinates of two types, as columns and as rows; what is in the new values counts."""
    for number, (of_index, layout) in enumerate(itertools.product(["I64", "I32"], LAYOUTS)):
        coordinates, values = RANDOM.integers(0, 3, shape), drawn((shape[1], *dense), kind) * 0.25
        values = np.trunc(values * 4) if kind == "I32" else values
        places, groups = np.unique(coordinates, axis=1, return_inverse=True)
        before = drawn((places.shape[1], *dense), kind)
        expected = before.copy()
        np.add.at(expected, groups.ravel(), values)
        rows = number % 2 == 1 and shape[0] != shape[1]
        turned = (lambda array: array.T) if rows else (lambda array: array)
        found = call("CoalesceSparse", uniqueLen=tensor([places.shape[1]], of_index),
                     uniqueIndices=tensor(groups.ravel(), of_index, "gaps"),
                     indices=tensor(turned(coordinates), of_index, layout), values=tensor(values, kind, layout),
                     newIndicesOut=empty(turned(places).shape, of_index, LAYOUTS[-number % 3]),
                     newValuesOut=tensor(before, kind, LAYOUTS[number % 3]))  # fmt: skip
        np.testing.assert_array_equal(found[0], turned(places))
        np.testing.assert_array_equal(found[1], rounded(expected, kind))


def test_a_place_that_the_coalesced_values_do_not_have():
    for outside in (3, -1):
        values = tensor(np.zeros(3))
        sentence = fault("CoalesceSparse", tensor([3], "I64"), tensor([0, outside, 1, 2], "I64"), tensor(np.ones((2, 4)), "I64"),
                         tensor(np.ones(4)), empty((2, 3), "I64"), values)  # fmt: skip
        assert f"index {outside} is outside" in sentence
        np.testing.assert_array_equal(values.values(), np.zeros(3))


# ---- lists of different lengths -----------------------------------------------------------------------------------------------


def jagged(permutation, begins, ends, size, layout="row-major"):
    given = (tensor(values, "I32", layout) for values in (permutation, begins, ends))
    return call("ExpandIntoJaggedPermute", **dict(zip(("permute", "inputOffset", "outputOffset"), given)), outputSize=size,
                outputPermuteOut=tensor(np.full(size, -7), "I32", layout))  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_permutation_of_lists(layout):
    np.testing.assert_array_equal(jagged([1, 0, 2], [0, 3, 5, 8], [0, 2, 4, 6], 6, layout), [3, 4, 0, 1, 5, 6])
    assert jagged([], [4], [0], 0, layout).shape == (0,)
    for lists in (1, 9, 300):
        lengths = RANDOM.integers(0, 6, lists)
        permutation, begins = RANDOM.permutation(lists), np.cumsum([0, *lengths])
        ends = np.cumsum([0, *lengths[permutation]])
        expected = np.concatenate([np.arange(begins[i], begins[i] + lengths[i]) for i in permutation])
        np.testing.assert_array_equal(jagged(permutation, begins, ends, ends[-1], layout), expected)
    highest = 2**31 - 1
    np.testing.assert_array_equal(jagged([0], [highest, 0], [0, 2], 2, layout), [highest, -highest - 1])


@pytest.mark.parametrize("permutation, ends, said", [
    ([0, 2], [0, 1, 3], "list 1, from 1 to 3, is to be list 2 of 2"), ([-1, 0], [0, 1, 3], "list -1 of 2"),
    ([0, 1], [0, 2, 4], "the lists lie from 0 to 4 of 3"), ([0, 1], [1, 2, 3], "from 1 to 3 of 3"),
    ([0, 1], [0, 1, 2], "from 0 to 2 of 3"), ([0, 1], [0, 4, 3], "list 1, from 4 to 3"),
    ([0, 1], [0, -1, 3], "list 0, from 0 to -1")])  # fmt: skip
def test_lists_that_are_not_there(permutation, ends, said):
    out = tensor([5, 5, 5], "I32")
    assert said in fault("ExpandIntoJaggedPermute", tensor(permutation, "I32"), tensor([0, 1, 2], "I32"), tensor(ends, "I32"), 3, out)
    np.testing.assert_array_equal(out.values(), [5, 5, 5])
