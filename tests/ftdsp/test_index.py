"""Picking, putting and adding by index against NumPy, for every prefix, masks and uneven sizes."""

import numpy
import pytest

from tests.conformance.ftdsp.calls import ELEMENT, Input, Invocation, Output, Value, clear, compute
from tests.ftdsp.test_arrays import ALL, FLOATS, ints, masks_agree, values
from understudy.ftdsp import last_error


def each(**arrays):
    return [Value(name, ints(*value) if isinstance(value, (list, tuple)) else value) for name, value in arrays.items()]


def index(shape, limit, seed=0):
    return numpy.random.default_rng(seed).integers(0, limit, shape).astype(numpy.int32)


def rounded(expected, prefix):
    """A float64 (or integer) result in the element type: integers saturate."""
    if prefix.startswith("i"):
        limits = numpy.iinfo(ELEMENT[prefix])
        return numpy.clip(expected, limits.min, limits.max).astype(ELEMENT[prefix])
    with numpy.errstate(over="ignore"):
        return expected.astype(ELEMENT[prefix])


def wide(x):
    return x.astype(numpy.complex128 if x.dtype.kind == "c" else numpy.float64)


@pytest.mark.parametrize(("shape", "picks", "axis", "common"), [
    ((5,), (7,), 0, 0), ((4, 5, 6), (3, 2), 1, 0), ((4, 5, 6), (4, 3), 1, 1), ((4, 5, 6), (4, 3), 2, 1),
    ((3, 4, 5, 2), (3, 4, 6), 2, 2),
    ((6, 3), (), 0, 0), ((50, 4001), (9,), 0, 0), ((3, 4), (0,), 1, 0), ((1700, 65), (40,), 1, 0)], ids=str)  # fmt: skip
@pytest.mark.parametrize("prefix", ALL)
def test_gather(prefix, shape, picks, axis, common):
    x, chosen = values(prefix, shape), index(picks, shape[axis])
    if common == 0:
        expected = numpy.take(x, chosen, axis)
    else:
        parts = [numpy.take(part, own, axis - common) for part, own in
                 zip(x.reshape(-1, *shape[common:]), chosen.reshape(-1, *picks[common:]))]
        expected = numpy.stack(parts)
    given = [Output("output", expected.size, x.dtype), Input("input", x), *each(shape=shape, ndim=len(shape)),
             Input("indices", chosen), *each(indices_shape=picks or (0,), indices_ndim=len(picks), axis=axis,
                                             batch_dims=common)]  # fmt: skip
    assert masks_agree(f"{prefix}_gather_s", given, "output").tobytes() == numpy.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize(("shape", "count", "depth"),
                         [((5,), (4,), 1), ((4, 5, 6), (3, 2), 2), ((4, 5, 6), (7,), 3), ((4, 5, 6), (2,), 1),
                          ((9, 2003), (11,), 1)], ids=str)  # fmt: skip
@pytest.mark.parametrize("prefix", ALL)
def test_gather_nd(prefix, shape, count, depth):
    x = values(prefix, shape)
    chosen = numpy.stack([index(count, shape[d], d) for d in range(depth)], axis=-1)
    expected = x[tuple(chosen[..., d] for d in range(depth))]
    given = [Input("input", x), Output("output", expected.size, x.dtype), *each(shape=shape, ndim=len(shape)),
             Input("indices", chosen), *each(indices_shape=chosen.shape, indices_ndim=chosen.ndim)]
    assert masks_agree(f"{prefix}_gather_nd_s", given, "output").tobytes() == expected.tobytes()


@pytest.mark.parametrize(("shape", "wanted", "axis"), [((5,), (7,), 0), ((4, 5, 6), (4, 3, 6), 1), ((4, 5, 6), (2, 3, 8), 2),
                                                       ((300, 70), (500, 70), 0), ((3, 90), (3, 200), 1)], ids=str)
@pytest.mark.parametrize("prefix", ALL)
def test_gatherd(prefix, shape, wanted, axis):
    x, chosen = values(prefix, shape), index(wanted, shape[axis])
    inside = x[tuple(slice(None) if d == axis else slice(size) for d, size in enumerate(wanted))]
    expected = numpy.take_along_axis(inside, chosen, axis)
    given = [Input("input_x", x), Value("dim", axis), Input("index", chosen), Output("output", expected.size, x.dtype),
             *each(shape=shape, rank=len(shape), index_shape=wanted)]
    assert masks_agree(f"{prefix}_gatherd_s", given, "output").tobytes() == expected.tobytes()


@pytest.mark.parametrize(("shape", "count", "depth"),
                         [((5,), (4,), 1), ((5,), (400,), 1), ((4, 5, 6), (3, 2), 2), ((4, 5, 3), (70,), 3),
                          ((9, 1203), (30,), 1), ((4000, 3), (9,), 1)], ids=str)  # fmt: skip
@pytest.mark.parametrize("prefix", ALL)
def test_scatters(prefix, shape, count, depth):
    base = values(prefix, shape)
    chosen = numpy.stack([index(count, shape[d], d) for d in range(depth)], axis=-1)
    updates = values(prefix, (*count, *shape[depth:]), 7)
    place = tuple(chosen[..., d] for d in range(depth))
    added, put = wide(base), base.copy()
    numpy.add.at(added, place, wide(updates))
    for own, update in zip(chosen.reshape(-1, depth), updates.reshape(-1, *shape[depth:])):
        put[tuple(own)] = update
    for name, expected in (("scatter_nd", rounded(added, prefix)), ("scatter_nd_update", put)):
        given = [Output("output", base.size, base.dtype, base), *each(shape=shape, ndim=len(shape)),
                 Input("indices", chosen),
                 *each(indices_shape=chosen.shape, indices_ndim=chosen.ndim), Input("updates", updates)]  # fmt: skip
        assert masks_agree(f"{prefix}_{name}_s", given, "output").tobytes() == expected.tobytes()


@pytest.mark.parametrize(("rows", "width", "segments"),
                         [(3, 2, 4), (500, 7, 5), (40, 1203, 60), (0, 3, 2), (2000, 1, 3), (40000, 3, 9000),
                          (300, 64, 20)])  # fmt: skip
@pytest.mark.parametrize("prefix", ["fp", "hp", "dp", "i8", "i16", "i32"])
def test_unsorted_segment_sum(prefix, rows, width, segments):
    x, chosen = values(prefix, (rows, width)), index(rows, segments)
    expected = numpy.zeros((segments, width))
    numpy.add.at(expected, chosen, wide(x))
    given = [Input("input", x), Output("output", segments * width, x.dtype), Input("index", chosen),
             *each(dim0=rows, dim1=width, id_max=segments)]
    assert masks_agree(f"{prefix}_unsorted_segment_sum_s", given, "output").tobytes() == rounded(expected, prefix).tobytes()


@pytest.mark.parametrize("scalar", [0, 1])
@pytest.mark.parametrize("prefix", ALL)
def test_sparsetodense(prefix, scalar):
    shape, count = (2, 3, 4, 5), 17
    places = numpy.stack([index(count, size, d) for d, size in enumerate(shape)], axis=-1)
    sparse, base = values(prefix, 1 if scalar else count), values(prefix, shape, 3)
    expected = base.copy()
    for k, place in enumerate(places):
        expected[tuple(place)] = sparse[0 if scalar else k]
    given = [Input("indices_vec", places), Input("sparse_values", sparse), Output("output", base.size, base.dtype, base),
             *each(strides=(60, 20, 5, 1), length=count, is_scalar=scalar)]
    assert masks_agree(f"{prefix}_sparsetodense_s", given, "output").tobytes() == expected.tobytes()


def test_sparsereshape():
    for shape, wanted, entries in (((2, 3), (3, 2), [(0, 2), (1, 1)]),
                                   ((4, 5, 6), (10, 12), [(3, 4, 5), (0, 0, 0), (2, 1, 3)])):  # fmt: skip
        entries = numpy.array(entries, numpy.int32)
        given = [Input("in_indices", entries), Input("in_shape", ints(*shape)), Input("out_shape", ints(*wanted)),
                 Output("out_indices", len(entries) * len(wanted), numpy.int32), Output("shape", len(wanted), numpy.int32),
                 *each(input_rank=len(shape), output_rank=len(wanted), N=len(entries)),
                 Output("in_stride", len(shape), numpy.int32), Output("out_stride", len(wanted), numpy.int32)]
        results, again = compute("sparsereshape_s", given), compute("sparsereshape_s", given, 0x0A)
        assert all(numpy.array_equal(again[name], result) for name, result in results.items())
        linear = numpy.ravel_multi_index(entries.T, shape)
        expected = numpy.stack(numpy.unravel_index(linear, wanted), axis=-1)
        assert results["out_indices"].tolist() == expected.ravel().tolist()
        assert results["shape"].tolist() == list(wanted)
        assert results["in_stride"].tolist() == (numpy.array(numpy.zeros(shape, numpy.int8).strides)).tolist()
    assert expected.shape == (3, 2)


@pytest.mark.parametrize("prefix", FLOATS)
def test_embeddinglookup(prefix):
    table = values(prefix, (6, 33), 0, 0, 3)
    table[2] = 0
    flags = numpy.array([0, 2, 0, 0, 0, 0], numpy.int8)  # any byte but 0 is a flag
    ids = ints(0, 1, 3, 0, 2, 7, -1, 5)
    expected_table, expected_flags = table.astype(float), flags.copy()
    for row in (0, 3, 5):
        expected_table[row] *= 4.5 / expected_table[row].sum()
    expected_flags[[0, 2, 3, 5]] = 1
    expected_table = expected_table.astype(ELEMENT[prefix])
    for mask in (0xFF, 0x0B, None):
        clear()
        given = [Output("input_data", table.size, table.dtype, table), Input("ids", ids),
                 Output("output", 8 * 33, table.dtype),
                 Value("max_norm_", 4.5), Output("is_regulated", 6, numpy.int8, flags),
                 *each(ids_size_=8, layer_size_=33, layer_num_=6)]  # fmt: skip
        call = Invocation(f"{prefix}_embeddinglookup_{'p' if mask is None else 's'}", given, {}, mask)
        call.run()
        assert last_error().rule == ""
        got = call.output("input_data", table.dtype).reshape(6, 33)
        assert numpy.array_equal(got, expected_table) or numpy.abs(got - expected_table).max() <= numpy.finfo(table.dtype).eps
        assert call.output("is_regulated", numpy.int8).tolist() == expected_flags.tolist()
        output = call.output("output", table.dtype).reshape(8, 33)
        for place, row in enumerate(ids):
            kept = b"\xa5" * 33 * table.itemsize
            assert output[place].tobytes() == (got[row].tobytes() if 0 <= row < 6 else kept)
    one = numpy.float32([1, 2, 3, 4])  # ft-dsp-manual 7
    given = [Output("t", 4, numpy.float32, one), Input("ids", ints(0)), Output("y", 4, numpy.float32),
             Value("max_norm_", 4.5),
             Output("f", 1, numpy.int8, numpy.zeros(1, numpy.int8)), *each(ids_size_=1, layer_size_=4, layer_num_=1)]  # fmt: skip
    assert compute("fp_embeddinglookup_s", given)["y"].tolist() == numpy.float32([0.45, 0.9, 1.35, 1.8]).tolist()


@pytest.mark.parametrize(("first", "second"),
                         [((3, 1), (1, 4)), ((5, 7), (5, 7)), ((1, 1, 1), (3, 5, 7)), ((40, 1), (40, 1030)),
                          ((2, 1, 3, 1), (2, 4, 1, 5))], ids=str)  # fmt: skip
@pytest.mark.parametrize("prefix", FLOATS)
def test_subgrad(prefix, first, second):
    shape = numpy.broadcast_shapes(first, second)
    dy = values(prefix, shape)

    def summed(own):
        return dy.astype(float).sum(tuple(d for d in range(len(shape)) if own[d] == 1), keepdims=True) * numpy.ones(own)

    given = [Input("dy", dy), *each(x1=first, x2=second, dims=shape, num_dims=len(shape)),
             Output("dx1", int(numpy.prod(first)), dy.dtype), Output("dx2", int(numpy.prod(second)), dy.dtype)]
    for name, expected in (("dx1", summed(first)), ("dx2", -summed(second))):
        got = masks_agree(f"{prefix}_subgrad_s", given, name)
        numpy.testing.assert_allclose(got, expected.ravel(), rtol=float(numpy.finfo(dy.dtype).eps), atol=1e-4)


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [0, 1])
@pytest.mark.parametrize("prefix", FLOATS)
def test_binary_cross_entropy_grad(prefix, reduction, weighted):
    """The same bits as the older name's."""
    x, y, weight = (values(prefix, 1025, seed, 0.05, 0.95) for seed in range(3))
    dloss = values(prefix, 1025 if reduction == 0 else 1, 4)
    older = compute(f"{prefix}_binarycrossentropygrad_s", [
        *each(size=1025, reduction=reduction), Input("x", x), Input("y", y), Input("w", weight), Input("d", dloss),
        Output("dx", 1025, x.dtype), Value("weight_defined", weighted)])["dx"]
    given = [Input("x", x), Input("y", y), Input("w", weight), Input("d", dloss), Output("dx", 1025, x.dtype),
             Value("param", numpy.array([1025, reduction, weighted], numpy.int64))]
    assert masks_agree(f"{prefix}_binary_cross_entropy_grad_s", given, "dx").tobytes() == older.tobytes()
