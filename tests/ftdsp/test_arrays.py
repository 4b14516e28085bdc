"""Numbers of the operators with shapes against NumPy, for every prefix, masks and uneven sizes."""

import itertools
import math
import sys

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import native
from tests.conformance.ftdsp.calls import (DDR, ELEMENT, At, Input, Invocation, Output, Table, Value, clear, compute,
                                           memory)
from tests.conformance.harness import run_tests
from understudy.ftdsp import last_error

FLOATS = ("fp", "hp")
ALL = ("fp", "hp", "dp", "i8", "i16", "i32", "c64", "c128")


def ints(*values):
    return numpy.array(values, numpy.int32)


def values(prefix, shape, seed=0, low=-3, high=3):
    random = numpy.random.default_rng(seed)
    if prefix.startswith("i"):
        return random.integers(low, high + 1, shape).astype(ELEMENT[prefix])
    drawn = random.uniform(low, high, shape)
    if prefix.startswith("c"):
        drawn = drawn + 1j * random.uniform(low, high, shape)
    return drawn.astype(ELEMENT[prefix])


def masks_agree(symbol, parameters, output):
    """The result, after checking that neither the mask nor the _p form changes a bit."""
    result = compute(symbol, parameters)
    for mask in (1, 5, 0x80, 0x7F):
        assert compute(symbol, parameters, mask)[output].tobytes() == result[output].tobytes(), hex(mask)
    assert compute(symbol.removesuffix("_s") + "_p", parameters)[output].tobytes() == result[output].tobytes()
    return result[output]


def saturated(expected, prefix):
    limits = numpy.iinfo(ELEMENT[prefix])
    return numpy.clip(expected, limits.min, limits.max).astype(ELEMENT[prefix])


# ---- bias ----

SHAPES = [(1, 1), (3, 5), (2, 3, 7), (5, 3, 2, 11), (2, 1030), (1030, 3, 1), (1030, 3), (1, 2, 3, 2, 2)]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("prefix", ["i8", "i16", "i32", "fp", "hp", "dp"])
def test_biasadd(prefix, shape, layout):
    channels = shape[1] if layout == "NCHW" else shape[-1]
    low, high = (-100, 100) if prefix.startswith("i") else (-3, 3)
    x, bias = values(prefix, shape, 0, low, high), values(prefix, channels, 1, low, high)
    wide = bias.astype(numpy.float64).reshape((-1,) + (1,) * (len(shape) - 2) if layout == "NCHW" else (-1,))
    expected = x.astype(numpy.float64) + wide
    output = masks_agree(f"{prefix}_biasadd_s", [
        Input("input_x", x), Input("input_bias", bias), Output("output", x.size, ELEMENT[prefix]),
        Value("dims", ints(*shape)), Value("shape_size", len(shape)), Value("data_format", layout.encode()),
        Value("length", x.size)], "output").reshape(shape)
    if prefix.startswith("i"):
        assert numpy.array_equal(output, saturated(expected, prefix))
    else:
        assert numpy.array_equal(output, expected.astype(ELEMENT[prefix]))  # one rounding


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("prefix", ["c64", "c128"])
def test_biasadd_of_complex_numbers(prefix, layout):
    x, bias = values(prefix, (3, 5, 701) if layout == "NCHW" else (3, 701, 5), 0), values(prefix, 5, 1)
    output = masks_agree(f"{prefix}_biasadd_s", [
        Input("input_x", x), Input("input_bias", bias), Output("output", x.size, ELEMENT[prefix]),
        Value("dims", ints(*x.shape)), Value("shape_size", 3), Value("data_format", layout.encode()),
        Value("length", x.size)], "output")
    assert output.tobytes() == (x + (bias[:, None] if layout == "NCHW" else bias)).tobytes()  # one rounding for each part


def test_biasadd_of_int32_is_exact():
    x, bias = ints(2**31 - 1, -(2**31), 2**24 + 1, 7), ints(1, -1)
    output = compute("i32_biasadd_s", [Input("input_x", x), Input("input_bias", bias), Output("output", 4, numpy.int32),
                                       Value("dims", ints(2, 2)), Value("shape_size", 2), Value("data_format", b"NHWC"),
                                       Value("length", 4)])["output"]
    assert output.tolist() == [2**31 - 1, -(2**31), 2**24 + 2, 6]


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (1030, 3), (5003, 3), (7, 301, 63), (2, 3, 1025), (0, 3), (3, 0, 4)],
                         ids=str)
@pytest.mark.parametrize("prefix", FLOATS)
def test_biasaddgrad(prefix, shape):
    dy = values(prefix, shape)
    expected = dy.astype(numpy.float64).reshape(-1, shape[-1]).sum(axis=0)
    dbias = masks_agree(f"{prefix}_biasaddgrad_s", [
        Input("dy", dy), Value("dy_dims", ints(*shape)), Value("shape_size", len(shape)),
        Output("dbias", shape[-1], ELEMENT[prefix])], "dbias")
    # summed in float64 and rounded once
    numpy.testing.assert_allclose(dbias, expected, rtol=float(numpy.finfo(ELEMENT[prefix]).eps) / 2 * 1.001, atol=1e-11)


# ---- maximum, minimum ----

def extremum_oracle(greater, x0, x1, dy):
    chosen = (x0 > x1) if greater else (x0 < x1)
    parts = (numpy.where(chosen, dy, 0), numpy.where(chosen, 0, dy))
    return [numpy.add.reduce(part, axis=tuple(d for d in range(dy.ndim) if own.shape[d] != dy.shape[d]), keepdims=True)
            for part, own in zip(parts, (x0, x1))]


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_extremum_gradients(data):
    prefix = data.draw(st.sampled_from(FLOATS))
    name = data.draw(st.sampled_from(["maximumgrad", "minimumgrad"]))
    shape = data.draw(st.lists(st.integers(0, 5), max_size=5))
    own = [[1 if data.draw(st.booleans()) else size for size in shape] for _ in range(2)]
    shape = [b if a == 1 else a for a, b in zip(*own)]
    x0, x1, dy = (numpy.round(values(prefix, size, seed)) for seed, size in enumerate([*own, shape]))  # rounded: ties
    mask = data.draw(st.none() | st.integers(1, 255))
    results = compute(f"{prefix}_{name}_{'p' if mask is None else 's'}", [
        Input("Input0", x0), Input("Input1", x1), Input("dy", dy), Value("Input0_dims", ints(*own[0])),
        Value("Input1_dims", ints(*own[1])), Value("num_dims", len(shape)), Output("dx0", x0.size, ELEMENT[prefix]),
        Output("dx1", x1.size, ELEMENT[prefix])], mask)
    for expected, got in zip(extremum_oracle(name == "maximumgrad", x0, x1, dy), (results["dx0"], results["dx1"])):
        assert got.tolist() == expected.ravel().tolist()


def test_large_equal_shapes_and_broadcast_row():
    x0, x1, dy = (values("fp", (513, 21), seed) for seed in range(3))
    for second in (x1, x1[:1]):
        results = compute("fp_maximumgrad_s", [
            Input("Input0", x0), Input("Input1", second), Input("dy", dy), Value("Input0_dims", ints(*x0.shape)),
            Value("Input1_dims", ints(*second.shape)), Value("num_dims", 2), Output("dx0", x0.size, numpy.float32),
            Output("dx1", second.size, numpy.float32)])
        expected = extremum_oracle(True, *(array.astype(float) for array in (x0, second, dy)))
        for got, wanted in zip((results["dx0"], results["dx1"]), expected):
            numpy.testing.assert_allclose(got, wanted.ravel(), rtol=2.0**-24 * 1.001, atol=1e-11)


# ---- nllloss ----

@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize(("batch", "classes"), [(1, 1), (4, 3), (1025, 7), (3, 1030)])
@pytest.mark.parametrize("prefix", ["i8", "hp", "fp"])
def test_nllloss(prefix, batch, classes, reduction):
    low, high = (-9, 9) if prefix == "i8" else (-3, 0)
    log_probs = values(prefix, (batch, classes), 0, low, high)
    weight = values(prefix, classes, 1, 1, 4)
    labels = numpy.random.default_rng(2).integers(0, classes, batch).astype(numpy.int32)
    out = numpy.int32 if prefix == "i8" else ELEMENT[prefix]
    parameters = [Input("log_probs", log_probs), Input("labels", labels), Input("weight", weight),
                  Output("loss", batch if reduction == 0 else 1, out), Output("total_weight", 1, out),
                  Value("batch_size", batch), Value("class_num", classes), Value("reduction_type", reduction)]
    loss = masks_agree(f"{prefix}_nllloss_s", parameters, "loss")
    total = masks_agree(f"{prefix}_nllloss_s", parameters, "total_weight")
    picked = weight.astype(float)[labels]
    each = -picked * log_probs.astype(float)[numpy.arange(batch), labels]
    expected = {0: each, 1: each.sum(keepdims=True), 2: each.sum(keepdims=True) / picked.sum()}[reduction]
    if prefix == "i8":
        assert loss.tolist() == numpy.trunc(expected).tolist() and total.tolist() == [int(picked.sum())]
    else:
        rounding = float(numpy.finfo(out).eps) / 2 * 1.001  # of sums in float64
        numpy.testing.assert_allclose(loss, expected, rtol=rounding, atol=float(numpy.finfo(out).smallest_subnormal) / 2)
        numpy.testing.assert_allclose(total, picked.sum(keepdims=True), rtol=rounding)


# ---- matrices ----

@pytest.mark.parametrize("activation", [0, 1, 2])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 5, 7), (17, 1030, 5), (2, 3, 0), (33, 31, 257),
                                           (300, 270, 9), (1, 257, 2), (513, 1, 3)])
@pytest.mark.parametrize(("name", "prefix"), [*itertools.product(["fullconnection"], ["i8", "fp", "hp"]),
                                              *itertools.product(["matmulfusion"],
                                                                 ["fp", "hp", "dp", "i8", "i16", "i32"])])
def test_matrix_products(name, prefix, m, n, k, bias, activation):
    a, b, added = values(prefix, (m, k), 0), values(prefix, (k, n), 1), values(prefix, (m, n), 2)
    output = masks_agree(f"{prefix}_{name}_s", [
        Input("A", a), Input("B", b), Output("C", m * n, ELEMENT[prefix]),
        Input("bias", added) if bias else Value("bias", None), Value("M", m), Value("N", n), Value("K", k),
        Value("act", activation)], "C").reshape(m, n)
    wide = [array.astype(numpy.float64) for array in (a, b, added)]
    expected = wide[0] @ wide[1] + (wide[2] if bias else 0)
    expected = numpy.maximum(expected, 0) if activation else expected
    expected = numpy.minimum(expected, 6) if activation == 2 else expected
    if prefix.startswith("i"):
        assert numpy.array_equal(output, saturated(expected, prefix))
        return
    compute_eps = 2.0**-53 if prefix == "dp" else 2.0**-24
    sizes = numpy.abs(wide[0]) @ numpy.abs(wide[1]) + numpy.abs(wide[2])
    bound = sizes * compute_eps * (k + 2) + numpy.abs(expected) * float(numpy.finfo(ELEMENT[prefix]).eps) / 2 * 1.01
    assert (numpy.abs(output - expected) <= bound + 2.0**-25).all()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 5, 7), (5, 530, 3), (2, 3, 0), (33, 31, 257)])
@pytest.mark.parametrize("prefix", ["c64", "c128"])
def test_complex_matrix_products(prefix, m, n, k, bias):
    a, b, added = values(prefix, (m, k), 0), values(prefix, (k, n), 1), values(prefix, (m, n), 2)
    output = masks_agree(f"{prefix}_matmulfusion_s", [
        Input("A", a), Input("B", b), Output("C", m * n, ELEMENT[prefix]),
        Input("bias", added) if bias else Value("bias", None), Value("M", m), Value("N", n), Value("K", k),
        Value("act", 0)], "C").reshape(m, n)
    wide = [array.astype(numpy.complex128) for array in (a, b, added)]
    expected = wide[0] @ wide[1] + (wide[2] if bias else 0)
    sizes = numpy.abs(wide[0]) @ numpy.abs(wide[1]) + numpy.abs(wide[2])
    eps = float(numpy.finfo(ELEMENT[prefix]).eps)
    assert (numpy.abs(output - expected) <= 2 * sizes * 2.0**-53 * (k + 2) + numpy.abs(expected) * eps / 2 * 1.01).all()


@pytest.mark.parametrize("prefix", ["fp", "dp", "hp", "i16", "c64"])
def test_the_bias_may_be_the_result(prefix):
    m, n, k = 300, 270, 5
    a, b, added = values(prefix, (m, k), 0), values(prefix, (k, n), 1), values(prefix, (m, n), 2)
    sizes = [Value("M", m), Value("N", n), Value("K", k), Value("act", 0)]
    symbol = f"{prefix}_matmulfusion_s"
    apart = compute(symbol, [Input("A", a), Input("B", b), Output("C", m * n, ELEMENT[prefix]), Input("bias", added),
                             *sizes])["C"]
    clear()
    call = Invocation(symbol, [Input("A", a), Input("B", b), Output("C", m * n, ELEMENT[prefix], added),
                               Input("bias", added), *sizes], {"bias": ("C", 0)}, 0xFF)
    call.run()
    assert last_error().rule == ""
    assert call.output("C", ELEMENT[prefix]).tobytes() == apart.tobytes()


PRODUCTS = """
import hashlib, numpy
from tests.ftdsp.test_arrays import values
from understudy import ftdsp
digest = hashlib.sha256()
for prefix in ("fp", "dp"):
    for m, n, k in ((700, 530, 129), (1, 1000, 77), (1000, 3, 300)):
        a, b, c = values(prefix, (m, k)), values(prefix, (k, n), 1), numpy.empty((m, n), values(prefix, 1).dtype)
        ftdsp.run("matmulfusion", a, b, c, None, m, n, k, 0)
        digest.update(c.tobytes())
q, k, v = (values("fp", (2, 600, 40), seed) for seed in range(3))
out, scores, weights = numpy.empty_like(q), *(numpy.empty((2, 600, 600), "f4") for _ in range(2))
ftdsp.run("attention", q, k, v, out, 1, 600, 2, 40, scores, weights)
digest.update(out.tobytes() + weights.tobytes())
print(digest.hexdigest())
"""


def test_no_number_of_threads_changes_a_bit_of_products():
    digests = {native.check([sys.executable, "-c", PRODUCTS], {"UNDERSTUDY_THREADS": threads}) for threads in "1237"}
    assert len(digests) == 1


def test_products_without_a_blas():
    """The same tests, in a process that finds no CBLAS."""
    run_tests([__file__], {"UNDERSTUDY_BLAS": "/nonexistent/libblas.so"}, "-k", "(matrix or attention) and f")


def test_int16_products_saturate():
    """ft-dsp 5.1: int16 saturates at 32767."""
    output = compute("i16_matmulfusion_s", [Input("A", numpy.int16([300, -300])), Input("B", numpy.int16([200])),
                                            Output("C", 2, numpy.int16), Value("bias", None), Value("M", 2),
                                            Value("N", 1), Value("K", 1), Value("act", 0)])["C"]
    assert output.tolist() == [32767, -32768]


@pytest.mark.parametrize(("batch", "heads", "length", "depth"),
                         [(1, 1, 1, 1), (2, 3, 5, 7), (1, 2, 33, 64), (1, 1, 3, 1030), (1, 2, 300, 20)])
def test_attention(batch, heads, length, depth):
    shape, scores = (batch, heads, length, depth), (batch, heads, length, length)
    q, k, v = (values("fp", shape, seed) for seed in range(3))
    parameters = [Input("Q", q), Input("K", k), Input("V", v), Output("output", q.size, numpy.float32),
                  Value("batch_size", batch), Value("seq_len", length), Value("head_num", heads),
                  Value("head_dim", depth), Output("QK", math.prod(scores), numpy.float32),
                  Output("softmax_out", math.prod(scores), numpy.float32)]
    output = masks_agree("fp_attention_s", parameters, "output").reshape(shape)
    weights = masks_agree("fp_attention_s", parameters, "softmax_out").reshape(scores)
    products = q.astype(float) @ k.astype(float).swapaxes(-1, -2) / math.sqrt(depth)
    expected = numpy.exp(products - products.max(axis=-1, keepdims=True))
    expected /= expected.sum(axis=-1, keepdims=True)
    # a score is off by 2^-23 of itself, and so is the exponential's exponent
    rounding = 2.0**-24 * (8 + 4 * numpy.abs(products).max())
    numpy.testing.assert_allclose(weights, expected, rtol=rounding, atol=1e-30)
    numpy.testing.assert_allclose(output, expected @ v.astype(float), rtol=0, atol=3 * rounding * 2)


# ---- gated linear unit ----

@pytest.mark.parametrize(("shape", "axis"), [((2,), 0), ((2, 6, 5), 1), ((4, 7), 0), ((3, 5, 2, 8), 3), ((2, 2060, 3), 1),
                                             ((1030, 4), 1), ((4100,), 0), ((3, 0, 2), 2)], ids=str)
@pytest.mark.parametrize("prefix", ["i8", "hp", "fp"])
def test_glu(prefix, shape, axis):
    low, high = (-100, 100) if prefix == "i8" else (-3, 3)
    x = values(prefix, shape, 0, low, high)
    count, half = x.size // 2, shape[axis] // 2
    strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
    halves = [At(DDR, copy=False), At(DDR + 2**20, copy=False)]
    output = masks_agree(f"{prefix}_glu_s", [
        Input("in_data", x), Table("split_data", halves), Output("out_data", count, ELEMENT[prefix]),
        Value("ndim", len(shape)), Value("split_dim", axis), Value("input_shape", ints(*shape)), Value("num_split", 2),
        Value("split_sizes", ints(half, half)), Value("strides", ints(*strides)), Value("len", count)], "out_data")
    a, b = numpy.split(x, 2, axis)
    for address, part in zip(halves, (a, b)):
        assert memory(address.address, part.nbytes) == part.tobytes()
    expected = (a.astype(float) / (1 + numpy.exp(-b.astype(float)))).ravel()
    if prefix == "i8":
        assert numpy.array_equal(output, numpy.trunc(expected))
    else:
        eps = float(numpy.finfo(ELEMENT[prefix]).eps)
        assert (numpy.abs(output - expected) <= numpy.abs(expected) * (eps / 2 * 1.01 + 6 * 2.0**-24) + 2.0**-25).all()


# ---- ranges ----

@pytest.mark.parametrize("prefix", ["i8", "i16", "i32", "fp", "dp", "hp"])
def test_raggedrange(prefix):
    ranges = [(0, 5, 1), (5, 0, -2), (0, 5, -1), (3, 3, 1), (-4, 100, 7), (1, 2, 50)]
    if not prefix.startswith("i"):
        ranges += [(0.5, 2.0, 0.25), (1.0, -1.0, -0.75)]
    starts, limits, deltas = (numpy.array(column, ELEMENT[prefix]) for column in zip(*ranges))
    expected = [numpy.arange(*one) for one in ranges]
    count = sum(map(len, expected))
    parameters = [Input("starts", starts), Input("limits", limits), Input("deltas", deltas),
                  Value("range_count", len(ranges)), Output("values", count, ELEMENT[prefix]),
                  Output("splits", len(ranges) + 1, numpy.int32)]
    assert numpy.array_equal(masks_agree(f"{prefix}_raggedrange_s", parameters, "values"), numpy.concatenate(expected))
    splits = masks_agree(f"{prefix}_raggedrange_s", parameters, "splits")
    assert splits.tolist() == [0, *numpy.cumsum([len(one) for one in expected])]


@pytest.mark.parametrize(("prefix", "count"), [("fp", 3), ("hp", 4), ("dp", 3)])
def test_raggedrange_counts_tenths(prefix, count):
    """The quotient of 0.3 and 0.1 in float32 is 3, that of the same two numbers in float64 is more; as float16 they are 3.001
    apart. Limits are exclusive."""
    starts, limits, deltas = (ELEMENT[prefix]([number]) for number in (0, 0.3, 0.1))
    parameters = [Input("starts", starts), Input("limits", limits), Input("deltas", deltas), Value("range_count", 1),
                  Output("values", count, ELEMENT[prefix]), Output("splits", 2, numpy.int32)]
    assert masks_agree(f"{prefix}_raggedrange_s", parameters, "splits").tolist() == [0, count]


# ---- moving elements ----

@pytest.mark.parametrize(("shapes", "axis"), [
    ([(3,)], 0), ([(2, 3), (2, 5), (2, 1)], 1), ([(2, 3), (4, 3)], 0), ([(2, 0, 3), (2, 4, 3)], 1),
    ([(3, 2, 5), (3, 2, 7)], 2), ([(1, 1030), (2, 1030)], 0)])
@pytest.mark.parametrize("prefix", ALL)
def test_concat(prefix, shapes, axis):
    arrays = [values(prefix, shape, seed) for seed, shape in enumerate(shapes)]
    expected = numpy.concatenate(arrays, axis)
    output = masks_agree(f"{prefix}_concat_s", [
        Table("inputs", arrays), Table("input_shapes", [ints(*shape) for shape in shapes], operands=False),
        Value("num_inputs", len(arrays)), Value("axis", axis), Value("input_ndim", len(shapes[0])),
        Output("output", expected.size, ELEMENT[prefix])], "output")
    assert output.tobytes() == expected.tobytes()


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("prefix", ALL)
def test_stack(prefix, count, axis):
    arrays = [values(prefix, (3, 7), seed) for seed in range(count)]
    output = masks_agree(f"{prefix}_stack_s", [
        Table("inputs", arrays), Value("input_shape", ints(3, 7)), Value("num_inputs", count), Value("axis", axis),
        Value("input_ndim", 2), Output("output", 21 * count, ELEMENT[prefix])], "output")
    assert output.tobytes() == numpy.stack(arrays, axis).tobytes()


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_slice(data):
    prefix = data.draw(st.sampled_from(ALL))
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    begin = [data.draw(st.integers(0, size)) for size in shape]
    size = [data.draw(st.integers(0, whole - first)) for whole, first in zip(shape, begin)]
    x = values(prefix, shape)
    expected = x[tuple(slice(first, first + count) for first, count in zip(begin, size))]
    mask = data.draw(st.none() | st.integers(1, 255))
    output = compute(f"{prefix}_slice_{'p' if mask is None else 's'}", [
        Input("input", x), Output("output", expected.size, ELEMENT[prefix]), Value("input_shape", ints(*shape)),
        Value("ndim", len(shape)), Value("begin", ints(*begin)), Value("size", ints(*size))], mask)["output"]
    assert output.tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [0, 1, 7, 4096, 20011])
@pytest.mark.parametrize("prefix", ALL)
def test_tensorarrayread(prefix, size):
    """Any number of bytes, whatever the prefix."""
    tensors = [numpy.random.default_rng(seed).integers(-128, 128, size + seed, numpy.int8) for seed in range(3)]
    for index, tensor in enumerate(tensors):
        parameters = [Table("handle_data", tensors), Value("handle_size", ints(*map(len, tensors))),
                      Value("index", index), Output("output_data", len(tensor), numpy.int8),
                      Output("output_size", 1, numpy.int32)]
        symbol = f"{prefix}_tensorarrayread_s"
        assert masks_agree(symbol, parameters, "output_data").tobytes() == tensor.tobytes()
        assert masks_agree(symbol, parameters, "output_size").tolist() == [len(tensor)]


@pytest.mark.parametrize("unknown_bytes", [0, 5, 5000])
def test_tensorliststack(unknown_bytes):
    """Tensors of several types, unknown ones (0 bytes per element) between them, whose data is not looked at."""
    known = [values("fp", 1, 0), values("i8", 7, 1), values("dp", 1025, 2), values("hp", 0, 3), values("i16", 5003, 4)]
    tensors = [known[0], None, *known[1:3], None, *known[3:]]
    expected = b"".join(bytes(unknown_bytes) if tensor is None else tensor.tobytes() for tensor in tensors)
    parameters = [Value("tensor_num", len(tensors)),
                  Value("tensor_element_nums", ints(*(9 if tensor is None else len(tensor) for tensor in tensors))),
                  Value("tensor_data_type", ints(*(0 if tensor is None else tensor.itemsize for tensor in tensors))),
                  Table("tensor_data", tensors), Output("output_data", len(expected), numpy.int8),
                  Value("unknown_type_offset", unknown_bytes)]
    for mask in (1, 5, 0x80, 0x7F, 0xFF):
        assert compute("tensorliststack_s", parameters, mask)["output_data"].tobytes() == expected
