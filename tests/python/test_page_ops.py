"""NumPy functions of the operators from pages: what they return has the shape, the type and the values of NumPy's own."""

import inspect
import json

import numpy
import pytest

from understudy import ascend, paths
from understudy.ascend import ops, page_ops
from understudy.device_array import DeviceArray
from understudy.errors import StatusError

X = numpy.linspace(-2, 2, 12, dtype=numpy.float32).reshape(3, 4)
ROW = numpy.array([1, 2, 3, 4], numpy.int64)


def test_examples():
    assert numpy.array_equal(ops.add(X, ROW, 2), X + 2 * ROW.astype(numpy.float32))
    assert ops.add(X, ROW, 2).dtype == numpy.float32
    assert numpy.array_equal(ops.muls(ROW, 3), ROW * 3) and ops.muls(ROW, 3).dtype == numpy.int64
    assert ops.muls(ROW, 0.5).dtype == numpy.float32
    assert ops.gt_tensor(X, X.T[:1].T).dtype == bool
    assert numpy.allclose(ops.exp(ROW), numpy.exp(ROW), rtol=1e-6) and ops.exp(ROW).dtype == numpy.float32
    assert numpy.array_equal(ops.permute(X, [1, 0]), X.T)
    assert numpy.array_equal(ops.slice(X, 1, 0, 4, 2), X[:, ::2])
    assert numpy.array_equal(ops.cast(X, numpy.int32), X.astype(numpy.int32))
    assert ops.add(X, X, 1, out_dtype=numpy.float16).dtype == numpy.float16


def test_what_changes_nothing_may_be_left_out():
    assert numpy.array_equal(ops.add(X, X), 2 * X) and numpy.array_equal(ops.sub(X, ROW), X - ROW.astype(numpy.float32))
    assert numpy.array_equal(ops.matmul(X, X.T), ops.matmul(X, X.T, 0))
    assert numpy.array_equal(ops.addmm(X[:, :3], X, X.T), ops.addmm(X[:, :3], X, X.T, 1, 1, 0))
    sums = ops.reduce_sum(X, [1])
    assert numpy.allclose(sums, X.sum(1)) and sums.dtype == X.dtype and ops.cumsum(ROW, 0).dtype == ROW.dtype
    assert ops.reduce_sum(X, [1], True).shape == (3, 1)
    assert [part.tolist() for part in ops.topk(ROW, 2, 0)] == [[4, 3], [3, 2]]
    exact = ROW.astype(numpy.float32)
    assert ops.mse_loss(exact, exact + 2) == 4 and ops.mse_loss(exact, exact + 2, "none").tolist() == [4, 4, 4, 4]
    with pytest.raises(ValueError, match="not one of 'none', 'mean', 'sum'"):
        ops.mse_loss(X, X, "average")
    for call in (lambda: ops.cast(X), lambda: ops.sort(X), lambda: ops.softmax(X)):
        with pytest.raises(TypeError, match="missing"):
            call()


def test_empty_indices():
    """Integers index nothing; what does not index stands for all, as do those of the tensor's type beside others."""
    none, some = numpy.zeros(0, numpy.int64), numpy.array([2, 0])
    for indices in ([none], [None, none], [none, none], [numpy.zeros((0, 2), numpy.int64)], [some, none[:, None]]):
        whole = tuple(slice(None) if index is None else index for index in indices)
        assert ops.index(X, indices).shape == X[whole].shape
    assert numpy.array_equal(ops.index(X, [numpy.zeros(0, numpy.float32), some]), X[:, some])
    assert numpy.array_equal(ops.index(X.astype(numpy.int64), [none, some]), X.astype(numpy.int64)[:, some])
    assert numpy.array_equal(ops.index(X, [numpy.zeros(0, numpy.uint8)]), X)


def test_results_have_the_type_of_complex_parts():
    for dtype, parts in ((numpy.complex64, numpy.float32), (numpy.complex128, numpy.float64)):
        values = numpy.array([[3 + 4j, 0], [0, 1]], dtype)
        assert ops.real(values).dtype == parts and numpy.array_equal(ops.real(values), values.real)
        sigma, u, _ = ops.svd(values, False, True)
        assert sigma.dtype == parts and numpy.allclose(sigma, [5, 1]) and u.dtype == dtype
    assert ops.real(X).dtype == X.dtype


def test_results_of_products_with_a_scale_are_integers():
    """A scale of 64 bits holds a float32: 0.5."""
    a, b = numpy.float16([[[1, 2], [3, 4]]]), numpy.float16([[[2, 0], [0, 4]]])
    half = numpy.full(2, numpy.float32(0.5).view(numpy.uint32), numpy.uint64)
    order = [0, 1, 2], [0, 1, 2], [1, 0, 2], 0, 1
    assert ops.transpose_batch_mat_mul(a, b, *order).dtype == numpy.float16
    scaled = ops.transpose_batch_mat_mul(a, b, *order, scale=half)
    assert numpy.array_equal(scaled, numpy.int8([[[1, 4]], [[3, 8]]])) and scaled.dtype == numpy.int8


def test_rank_0():
    assert [part.tolist() for part in ops.topk(numpy.float32(3), 1, 0)] == [3, 0]
    with pytest.raises(StatusError, match="weight is"):
        ops.convert_weight_to_int4_pack(numpy.int32(3))


def test_what_is_left_out_is_what_the_operator_takes():
    """The indexer's softmax has one mode only, which is not the usual one of attention."""
    query, key, weights = numpy.ones((1, 2, 8, 128), "f2"), numpy.ones((1, 3, 1, 128), "f2"), numpy.ones((1, 2, 8), "f2")
    largest, sums = ops.dense_lightning_indexer_softmax_lse(query, key, weights)
    assert largest.tolist() == [[[1024, 1024]]] and sums.tolist() == [[[2, 3]]]


def test_a_fault_does_not_stay_with_the_thread():
    with pytest.raises(StatusError, match="index 5 is outside"):
        ops.gather(X, 1, numpy.array([[0, 5]]))
    assert numpy.array_equal(ops.neg(X), -X)
    with ascend.Stream():  # the caller's own keeps its fault, as a card's does
        for call in (lambda: ops.gather(X, 1, numpy.array([[0, 5]])), lambda: ops.neg(X)):
            with pytest.raises(StatusError, match="index 5 is outside"):
                call()
    assert numpy.array_equal(ops.neg(X), -X)


def test_lists():
    assert numpy.array_equal(ops.cat([X, X[:1]], 0), numpy.concatenate([X, X[:1]]))
    assert numpy.array_equal(ops.stack((X, X), 1), numpy.stack([X, X], 1))
    assert [piece.tolist() for piece in ops.split_tensor(ROW, 3, 0)] == [[1, 2, 3], [4]]
    assert [piece.shape for piece in ops.split_with_size(X, [1, 3], -1)] == [(3, 1), (3, 3)]
    sums = ops.foreach_add_list([X, X[0]], [X, X[1]], numpy.float32([2]))
    assert numpy.array_equal(sums[0], X * 3) and numpy.array_equal(sums[1], X[0] + 2 * X[1])
    scaled = ops.foreach_mul_scalar_list([X, X[0]], [2, 0.5])
    assert numpy.array_equal(scaled[0], X * 2) and numpy.array_equal(scaled[1], X[0] / 2)
    assert numpy.array_equal(ops.index(X, [None, numpy.array([3, 0])]), X[:, [3, 0]])
    assert ops.foreach_abs([]) == []


@pytest.mark.parametrize("on", [lambda array: array, ascend.array])
def test_masks_are_indices(on):
    """The result's shape follows from how much of a mask is true."""
    picked = lambda *indices: numpy.asarray(ops.index(on(X), [None if i is None else on(numpy.array(i)) for i in indices]))
    columns = [True, False, True, True]
    assert numpy.array_equal(picked(X > 0), X[X > 0])
    assert numpy.array_equal(picked(None, columns), X[:, columns])
    assert numpy.array_equal(picked([2, 0, 0], columns), X[[2, 0, 0], columns])
    assert picked(X > X.max()).shape == (0,)


def test_outputs_that_are_not_read_need_not_be_given():
    assert numpy.array_equal(ops.index_copy(X, 0, numpy.array([2]), X[:1]), numpy.concatenate([X[:2], X[:1]]))


def test_sums_of_integers_are_long():
    total = ops.trace(numpy.arange(9, dtype=numpy.int32).reshape(3, 3))
    assert total.dtype == numpy.int64 and total == 12


def test_lists_that_are_changed_are_copied_unless_they_are_on_the_device():
    assert numpy.array_equal(ops.foreach_mul_scalar_inplace([X], numpy.float32([3]))[0], X * 3)
    on_device = ascend.array(X)
    changed = ops.foreach_zero_inplace([on_device])
    assert changed[0] is on_device and not on_device.numpy().any()


def test_shapes_that_the_operator_finds():
    picked = ops.masked_select(X, X > 0)
    assert numpy.array_equal(picked, X[X > 0])
    assert numpy.array_equal(ops.nonzero(X > 1), numpy.argwhere(X > 1))
    values, inverse, counts = ops.unique2(numpy.array([3, 1, 3, 3]), True, True, True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3], [1, 0, 1, 1], [1, 3])
    on_device = ops.masked_select(ascend.array(X), X > 0)
    assert isinstance(on_device, DeviceArray) and numpy.array_equal(on_device.numpy(), picked)


def test_what_holds_something_before_is_taken_and_returned():
    mean, variance = numpy.zeros(4, numpy.float32), numpy.ones(4, numpy.float32)
    results = ops.batch_norm(X, True, 0.5, 1e-5, runningMean=mean, runningVar=variance)
    expected = X.mean(0) / 2, (X.var(0, ddof=1) + 1) / 2
    assert len(results) == 5 and numpy.allclose(results[0], expected[0]) and numpy.allclose(results[1], expected[1])
    assert not mean.any() and ops.batch_norm(X, True, 0.5, 1e-5)[0] is None


def test_what_is_not_wanted_is_none():
    sequence, parameters = numpy.ones((3, 2, 4), numpy.float32), [numpy.ones((20, n), numpy.float32) for n in (4, 5)]
    output, *states = ops.lstm(sequence, parameters, False, 1, 0.0, False, False, False)
    assert output.shape == (3, 2, 5) and [state.shape for state in states[:2]] == [(1, 2, 5)] * 2 and states[2:] == [None] * 7
    rows, blocks, weights = (numpy.ones(shape, numpy.float32) for shape in ((2, 8), (2, 3, 8), (8,)))
    assert ops.block_attention_residuals(rows, blocks, weights, weights, -1, 1e-6, False)[1:] == (None, None)
    assert ops.block_attention_residuals(rows, blocks, weights, weights, -1, 1e-6, True)[2].tolist() == [[0.25] * 4] * 2


def test_normalized_sums_are_wanted_where_the_scales_divide():
    """Rows of ones: their sums are 2, normalized 1, times or by 1 / 4."""
    ones, quarters = numpy.ones((3, 8), numpy.float16), numpy.full(8, 0.25, numpy.float32)
    for divides, steps in ((True, 4), (False, 0)):
        y, _, sums, normalized = ops.add_rms_norm_quant_v2(ones, ones, ones[0], quarters, -1, 0.0, divides)
        assert (y == steps).all() and (sums == 2).all()
        assert (normalized == 1).all() if divides else normalized is None


@pytest.mark.parametrize("integers", [False, True])
def test_latent_queries_have_scales_where_they_are_integers(integers):
    """Ones normalized are ones, and so are sums over 1536 and 128 numbers that are multiplied by just as many parts of 1."""
    kind, whole = ("int8", True) if integers else ("bfloat16", False)
    ones = lambda *shape, dtype=kind: numpy.ones(shape, page_ops.dtype_named(dtype))
    brain = lambda *shape: ones(*shape, dtype="bfloat16")
    parts = lambda *shape, of=1: numpy.full(shape, 1 / of, numpy.float32)
    columns = ones(1536, 192)
    given = [ones(2, 1024), ones(1024, 1536), columns if whole else columns / 1536, brain(1, 128, 512) / 128, ones(1024, 576),
             brain(1536), brain(512), brain(2, 64), brain(2, 64), ones(2, 16, 1, 512), brain(2, 16, 1, 64)]  # fmt: skip
    given = [values.astype(page_ops.dtype_named("bfloat16")) if values.dtype == numpy.float32 else values for values in given]
    scales = {"dequantScaleXOptional": parts(2, 1), "dequantScaleWDqOptional": parts(1, 1536),
              "dequantScaleWUqQrOptional": parts(1, 192, of=1536), "dequantScaleWDkvKrOptional": parts(1, 576)}  # fmt: skip
    places = numpy.array([3, 4])
    second = {**scales, "quantScaleCkvOptional": parts(1, 512)} if whole else {}
    third = {**scales, "quantScaleCkvOptional": parts(1)} if whole else {}
    modes = [2, 1, 1, 0, 0, 128, 1.0, 1.0] if whole else [0, 0, 0, 0, 0, 128, 1.0, 1.0]
    results = [(ops.mla_prolog_v2_weight_nz(*given[:9], places, *given[9:], 0.0, 0.0, **second), 1),
               (ops.mla_prolog_v3_weight_nz(*given, 0.0, 0.0, *modes, cacheIndexOptional=places, **third), 3)]  # fmt: skip
    near = lambda values: numpy.allclose(values.astype(numpy.float64), 1, rtol=2**-7)
    for found, more in results:
        query, scale = found[2], found[4]
        assert len(found) == 4 + more and query.shape == (2, 1, 512) and query.dtype == given[0].dtype
        assert (query == 127).all() and near(127 * scale) and scale.shape == (2, 1, 1) if whole else near(query) and scale is None
    norm, scale = results[1][0][5:]
    assert norm.shape == (2, 1536) and norm.dtype == given[0].dtype
    assert (norm == 127).all() and near(127 * scale) and scale.shape == (2, 1) if whole else near(norm) and scale is None


def test_what_is_not_given_has_no_gradient():
    query, key, sums = numpy.ones((1, 2, 8, 512), "f2"), numpy.ones((1, 3, 1, 512), "f2"), numpy.ones((1, 1, 2, 8), "f4")
    selected = numpy.full((1, 2, 1, 1024), -1, numpy.int32)
    found = ops.sparse_flash_attention_grad(query, key, selected, query, query, sums, sums, 1, 1, 0, 2**63 - 1, 2**63 - 1, True)
    assert [values.shape for values in found[:2]] == [query.shape, key.shape] and found[2:] == (None, None, None)


def test_shapes_that_only_the_caller_knows():
    assert numpy.array_equal(ops.bincount(ROW, 0, out_shape=(6,)), numpy.bincount(ROW, minlength=6))
    with pytest.raises(TypeError, match="out_shape"):
        ops.bincount(ROW, 0)
    assert ops.bincount(ROW, 0, out_shape=(6,)).dtype == numpy.int64
    assert ops.normal_float_float(0.0, 1.0, 7, 0, out_shape=(), out_dtype=numpy.float32).shape == ()


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i4", "u1", "?"])
def test_weights_are_counted_in_float64(dtype):
    places, weights = numpy.array([0, 1, 1, 3]), numpy.array([0.5, 0.25, 0.5, 1.0]).astype(dtype)
    found, expected = ops.bincount(places, 0, weights, out_shape=(4,)), numpy.bincount(places, weights)
    assert found.dtype == expected.dtype and found.tolist() == expected.tolist()
    assert ops.bincount(places, 0, weights, out_shape=(4,), out_dtype=numpy.float32).dtype == numpy.float32


def test_results_that_are_made_of_numbers():
    assert ops.arange(0, 5, 2).tolist() == [0, 2, 4] and ops.arange(0, 5, 2).dtype == numpy.int64
    assert ops.arange(0.0, 1.0, 0.25).dtype == numpy.float32 and ops.eye(2, 3, out_dtype=numpy.float32).shape == (2, 3)


def test_transforms_are_complex_or_of_parts():
    signal = numpy.cos(numpy.arange(12.0) ** 1.5)
    frames = numpy.stack([numpy.fft.rfft(signal[at : at + 6]) for at in (0, 2, 4, 6)], -1)
    for dtype, whole, part in [("f4", "c8", "f4"), ("f8", "c16", "f8")]:
        apart = ops.stft(signal.astype(dtype), 6, 2, 6, False, True, False)
        together = ops.stft(signal.astype(dtype), 6, 2, 6, False, True, True)
        assert (apart.dtype, together.dtype) == (numpy.dtype(part), numpy.dtype(whole))
        assert numpy.array_equal(apart, numpy.stack([together.real, together.imag], -1))
        assert numpy.allclose(together, frames, atol=1e-6)


@pytest.mark.parametrize("mode, scale, offset", [(-1, None, None), (0, [2], [1]), (1, None, None)])
def test_results_that_a_mode_quantizes(mode, scale, offset):
    experts = numpy.array([[0], [1], [0]], numpy.int32)
    scale, offset = (None if values is None else numpy.float32(values) for values in (scale, offset))
    routed, places, *_ = ops.moe_init_routing_v3(X, experts, 3, 0, 2, 0, 1, True, mode, 0, scale, offset, [0, 2])
    assert routed.dtype == (X.dtype if mode < 0 else numpy.int8) and places.tolist() == [0, 2, 1]
    rows = X[[0, 2, 1]]
    steps = numpy.abs(rows).max(1, keepdims=True) / 127
    expected = {-1: rows, 0: numpy.rint(rows * 2 + 1), 1: numpy.rint(rows / steps)}[mode]
    assert numpy.array_equal(routed, expected.astype(routed.dtype))


def test_results_that_a_scale_decides():
    one, other = numpy.full((2, 8), 3, numpy.int8), numpy.full((8, 3), 5, numpy.int8)
    bits = numpy.full(3, 0.5, numpy.float32).view(numpy.uint32).astype(numpy.uint64)
    halves = [numpy.full(3, 0.5, kind) for kind in ("float32", "bfloat16")]
    for scale, kind in zip([*halves, bits], ["bfloat16", "bfloat16", "float16"]):
        product = ops.quant_matmul_v3(one, other, scale, False, False)
        assert product.dtype == kind and (product == 60).all()
    tokens, half = numpy.full(2, 2, numpy.float32), numpy.full(3, 1, numpy.float16)
    product = ops.quant_matmul_v4(one, other, numpy.full(3, 0.5, numpy.float32), False, False, None, tokens, half)
    assert product.dtype == numpy.float16 and (product == 121).all()


def test_in_place_operators_return_what_they_changed():
    before = X.copy()
    assert numpy.array_equal(ops.inplace_mul(X, X), X * X)
    assert numpy.array_equal(X, before)


@pytest.mark.parametrize("name", ["incre_flash_attention_v2", "incre_flash_attention_v3", "incre_flash_attention_v4",
                                  "prompt_flash_attention_v2", "prompt_flash_attention_v3", "fused_infer_attention_score",
                                  "fused_infer_attention_score_v2", "fused_infer_attention_score_v3",
                                  "fused_infer_attention_score_v4"])  # fmt: skip
def test_attention_to_one_value_is_that_value(name):
    """As float16 it is the first of the two values, once quantized with a step of 1 / 4 a whole number."""
    function, end = getattr(ops, name), "Optional" if name[-2:] in ("v2", "v3", "v4") and name.startswith("fused") else ""
    query = numpy.zeros((1, 2, 1, 64), numpy.float16)
    value = numpy.full((1, 2, 1, 64), 2.5, numpy.float16)
    incremental = name.startswith("incre")
    keys = value if name.startswith("prompt") else [value]
    given = {"query": query, "key": keys, "value": keys, "scaleValue": 1.0, "inputLayout": "BNSD", "numHeads": 2}
    more = {} if incremental else {"preTokens": 2**31 - 1, "nextTokens": 2**31 - 1}
    for quantized, dtype, expected in ((False, numpy.float16, 2.5), (True, numpy.int8, 10)):
        scale = {"quantScale2" + end: numpy.float32([4])} if quantized else {}
        out = function(**given, **more, **scale, **required(function, {*given, *more, *scale}))
        out = out[0] if isinstance(out, tuple) else out
        assert numpy.array_equal(out, numpy.full((1, 2, 1, 64), expected, dtype)) and out.dtype == dtype


def required(function, named) -> dict:
    """0 for each further parameter that has no default."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: 0 for p in parameters if p.default is p.empty and p.name not in named}


def test_values_in_blocks_of_16_numbers():
    """[pages, heads, 512 / 16, tokens of a page, 16]; one token of an only page."""
    blocks = numpy.arange(512, dtype=numpy.float16).reshape(1, 1, 32, 1, 16).repeat(128, 3)
    rotary = numpy.zeros((1, 1, 4, 128, 16), numpy.float16)
    query = numpy.zeros((1, 1, 8, 512), numpy.float16)
    given = {"query": query, "key": [blocks], "value": [blocks], "queryRopeOptional": query[..., :64], "keyRopeOptional": rotary,
             "blockTableOptional": numpy.int32([[0]]), "actualSeqLengthsKvOptional": [1], "blockSize": 128, "numHeads": 8,
             "numKeyValueHeads": 1, "scaleValue": 1.0, "preTokens": 2**31 - 1, "nextTokens": 2**31 - 1, "inputLayout": "BSND"}
    for function in (ops.fused_infer_attention_score_v3, ops.fused_infer_attention_score_v4):
        out, _ = function(**given, **required(function, given))
        assert numpy.array_equal(out, numpy.broadcast_to(numpy.arange(512, dtype=numpy.float16), (1, 1, 8, 512)))


def test_sums_of_truths_count_them():
    assert numpy.array_equal(ops.cumsum(X > 0, 1), (X > 0).cumsum(1)) and ops.cumsum(X > 0, 1).dtype == numpy.int64
    assert ops.reduce_sum(X > 0, [1]).dtype == bool  # a type that the page has for results


def test_refusals_are_exceptions():
    with pytest.raises(StatusError, match="broadcast"):
        ops.mul(X, numpy.ones((5, 5), numpy.float32))


@pytest.mark.parametrize("call", [
    lambda: ops.cat([], 0), lambda: ops.cat([X, X.T], 0), lambda: ops.stack([], 0), lambda: ops.sum([]),
    lambda: ops.split_tensor(X, 0, 0), lambda: ops.split_tensor(X, 2, 7), lambda: ops.arange(0, 1, 0),
    lambda: ops.foreach_add_list([X], [X, X], numpy.float32([1])), lambda: ops.index(X, [ROW, ROW, ROW]),
    lambda: ops.flash_attention_score(X, X, X, 1.0, 1.0, 9, 9, 1, "XYZ", 0, 0),
    lambda: ops.moe_compute_expert_tokens(numpy.int32([0, 1]), -1), lambda: ops.constant_pad_nd(X, [-9, 0], 0.0),
    lambda: ops.repeat(X, [-1, 2]), lambda: ops.moe_token_permute_grad(X, numpy.int32([0, 1, 2]), -2, False),
])  # fmt: skip
def test_what_has_no_shape_is_refused_by_the_operator(call):
    with pytest.raises(StatusError):
        call()


def test_a_type_without_a_name_in_a_list():
    with pytest.raises(TypeError, match="no counterpart"):
        ops.foreach_abs([X, X.astype("datetime64[s]")])


def test_unknown_names():
    with pytest.raises(AttributeError):
        ops.no_such_operator


def test_every_function_has_a_signature_and_a_description():
    pages = json.loads((paths.sdk() / "rules/ascend/pages.json").read_text())["operators"].values()
    without = {"npu_format_cast", "moe_distribute_buffer_reset"}  # arrays have no formats; nothing to return
    assert {entry["python"] for entry in pages} - set(dir(ops)) == without
    for name in page_ops.operators():
        function = getattr(ops, name)
        assert function.__doc__.startswith("acl") and "out_dtype" in str(function.__signature__), name
