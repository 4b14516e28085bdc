"""aclnnEmbeddingDenseBackward against float64 NumPy: sizes, views, orders of summation, threads."""

import hypothesis
import numpy
import pytest
from hypothesis import strategies

from tests.conformance.ascend.aclnn_support import (
    F32, FLOATS, I32, I64, INVALID, Tensor, assert_rounded, blank, plan, run,
)  # fmt: skip
from tests.conformance.harness import run_python

NAME = "aclnnEmbeddingDenseBackward"
NO_PADDING = 2**64 - 1


def in_order(grad, indices, rows, padding, scale):
    """Rows in ascending order: float32 sums of up to 256, parts of so many added in float64, one product."""
    parts, counts = numpy.zeros((rows, grad.shape[-1]), numpy.float32), numpy.zeros(rows, int)
    totals = numpy.zeros(parts.shape)
    for row, k in zip(grad.reshape(-1, grad.shape[-1]).astype(numpy.float32), indices.reshape(-1)):
        if 0 <= k < rows and k != padding:
            parts[k] += row
            counts[k] += 1
            if counts[k] % 256 == 0:
                totals[k] += parts[k]
                parts[k] = 0
    out = (totals + parts).astype(numpy.float32)
    if scale:
        out *= (numpy.float32(1) / numpy.maximum(counts, 1).astype(numpy.float32))[:, None]
    return out.astype(numpy.float64)


def check(grad, indices, rows, out, padding=NO_PADDING, scale=False):
    """Every bit, and nothing written between the elements of out."""
    run(NAME, grad, indices, rows, padding, scale, out)
    expected = in_order(grad.values(), indices.values().astype(numpy.int64), rows, padding, scale)
    assert_rounded(out.values(), expected, 0.0, [out.kind])
    touched = numpy.zeros(out.count, numpy.uint8)
    out.view_of(touched)[...] = 1
    assert (out.stored()[touched == 0].view(numpy.uint8) == 0xA5).all()


def normal(seed, shape):
    return numpy.random.default_rng(seed).normal(0, 1, shape)


def drawn(seed, rows, count, zipf=False):
    generator = numpy.random.default_rng(seed)
    return (generator.zipf(1.3, count) - 1) % rows if zipf else generator.integers(0, rows, count)


@pytest.mark.parametrize("rows, columns, count", [
    (1, 1, 1), (1, 1000, 3), (7, 255, 40), (7, 256, 40), (7, 257, 40), (1023, 3, 5000), (1024, 3, 5000), (1025, 3, 5000),
    (3000, 17, 65535), (3000, 2, 65536), (3000, 2, 65537), (300007, 1, 1000), (5, 1, 200003),
])  # fmt: skip
@pytest.mark.parametrize("scale", [False, True])
def test_sizes_around_blocks_buckets_and_chunks(rows, columns, count, scale):
    grad, indices = Tensor(F32, normal(1, (count, columns))), Tensor(I32, drawn(2, rows, count))
    check(grad, indices, rows, blank(F32, (rows, columns)), padding=rows // 2, scale=scale)


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("out_kind", FLOATS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("zipf", [False, True])
def test_types(kind, out_kind, zipf):
    grad, indices = Tensor(kind, normal(1, (40, 50, 33))), Tensor(I64, drawn(2, 1500, 2000, zipf))
    check(grad, indices, 1500, blank(out_kind, (1500, 33)))


@strategies.composite
def layouts(draw, shape, expand=False):
    strides, step = [0] * len(shape), 1
    for axis in draw(strategies.permutations(range(len(shape)))):
        step *= draw(strategies.integers(1, 2))
        strides[axis] = step
        step *= max(shape[axis], 1)
    if expand:
        strides = [0 if draw(strategies.integers(0, 3)) == 0 else stride for stride in strides]
    return strides, draw(strategies.integers(0, 3)), step


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(strategies.data())
def test_any_views(data):
    lead = tuple(data.draw(strategies.lists(strategies.integers(1, 4), max_size=4)))
    rows, columns = data.draw(strategies.integers(1, 5)), data.draw(strategies.integers(1, 5))
    strides, offset, size = data.draw(layouts((*lead, columns), expand=True))
    grad = Tensor(data.draw(strategies.sampled_from(FLOATS)), normal(3, size + offset), shape=(*lead, columns),
                  strides=strides, offset=offset)  # fmt: skip
    shape = data.draw(strategies.sampled_from([lead, (int(numpy.prod(lead)),)]))
    strides, offset, size = data.draw(layouts(shape, expand=True))
    indices = Tensor(data.draw(strategies.sampled_from([I32, I64])), drawn(4, rows + 2, size + offset) - 1, shape=shape,
                     strides=strides, offset=offset)  # fmt: skip
    strides, offset, _ = data.draw(layouts((rows, columns)))
    out = blank(data.draw(strategies.sampled_from(FLOATS)), (rows, columns), strides=strides, offset=offset)
    padding = data.draw(strategies.sampled_from([NO_PADDING, 0, rows - 1, 2**63]))
    check(grad, indices, rows, out, padding, data.draw(strategies.booleans()))


@pytest.mark.parametrize("lead, shape, columns", [
    ((0,), (0,), 3), ((2, 0), (0, 7), 3), ((0,), (3, 0), 1), ((5,), (99,), 0), ((0,), (), 0), ((3,), (4, 4), 0),
])  # fmt: skip
def test_empty_inputs_clear_out(lead, shape, columns):
    """2.4: zeros; with rows of length 0 the number of indices is not compared."""
    grad, indices = Tensor(F32, numpy.ones((*lead, columns))), Tensor(I64, numpy.zeros(shape))
    out = blank(F32, (4, columns))
    run(NAME, grad, indices, 4, NO_PADDING, True, out)
    assert not out.values().any()


def test_empty_inputs_are_checked():
    grad, indices = Tensor(F32, numpy.ones((0, 3))), Tensor(I64, numpy.zeros(0))
    assert plan(NAME, grad, Tensor(I64, [0]), 4, 0, False, blank(F32, (4, 3)))[0] == INVALID
    assert plan(NAME, grad, indices, 4, 0, False, blank(F32, (5, 3)))[0] == INVALID
    none = Tensor(F32, numpy.ones((3, 0)))
    assert plan(NAME, none, indices, 4, 0, False, blank(F32, (3, 0)))[0] == INVALID


def test_a_table_without_rows():
    run(NAME, Tensor(F32, numpy.ones((3, 2))), Tensor(I64, [0, 1, 2]), 0, NO_PADDING, False, blank(F32, (0, 2)))


@pytest.mark.parametrize("padding", [2**63, 2**63 + 5, 2**64 - 1, 10**18, 0xFFFFFFFF])
def test_paddings_that_match_nothing(padding):
    grad, indices = Tensor(F32, normal(1, (50, 3))), Tensor(I64, drawn(2, 7, 50))
    check(grad, indices, 7, blank(F32, (7, 3)), padding=padding)


def test_all_tokens_of_one_row():
    grad, indices = Tensor(F32, normal(1, (20000, 300))), Tensor(I32, numpy.full(20000, 3))
    check(grad, indices, 9, blank(F32, (9, 300)), scale=True)


def test_a_million_rows_of_one_index_are_not_lost():
    grad, out = Tensor(F32, numpy.full((1_000_000, 1), 0.1)), blank(F32, (2, 1))
    run(NAME, grad, Tensor(I32, numpy.ones(1_000_000)), 2, NO_PADDING, False, out)
    bound = 256 * 2.0**-24  # of a part of 256 rows
    numpy.testing.assert_allclose(out.values(), [[0], [1_000_000 * float(numpy.float32(0.1))]], rtol=bound)


@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("columns", [1024, 1037])
def test_tables_beyond_the_caches(kind, columns):
    """Written past them: rows that begin on a cache line and rows that do not, summed or empty."""
    grad, indices = Tensor(kind, normal(1, (3000, columns))), Tensor(I64, drawn(2, 4500, 3000))
    check(grad, indices, 4500, blank(kind, (4500, columns)), scale=True)


def test_results_do_not_depend_on_the_number_of_threads():
    source = """
import hashlib
from tests.ascend.test_aclnn_embedding_dense_backward import *
digest = hashlib.sha256()
for kind in FLOATS:
    for zipf in (False, True):
        grad, indices = Tensor(kind, normal(1, (70001, 65))), Tensor(I64, drawn(2, 5000, 70001, zipf))
        out = blank(F32, (5000, 65))
        run(NAME, grad, indices, 5000, 17, True, out)
        digest.update(out.bytes())
print(digest.hexdigest())
"""
    assert len({run_python(source, {"UNDERSTUDY_THREADS": str(count)}) for count in (1, 2, 3)}) == 1


def test_the_forward_operator_is_its_adjoint():
    """<look-up(table), grad> = <table, gradient>: in float64 of what both operators returned."""
    table, grad, indices = normal(1, (50, 6)), normal(2, (200, 6)), drawn(3, 50, 200)
    table, grad, indices = Tensor(F32, table), Tensor(F32, grad), Tensor(I64, indices)
    looked_up, gradient = blank(F32, (200, 6)), blank(F32, (50, 6))
    run("aclnnEmbedding", table, indices, looked_up)
    run(NAME, grad, indices, 50, NO_PADDING, False, gradient)
    left, right = (looked_up.values() * grad.values()).sum(), (table.values() * gradient.values()).sum()
    assert abs(left - right) < 1e-4


@pytest.mark.parametrize("scale, padding", [(False, None), (False, 3), (True, None), (True, 3)])
def test_equal_to_pytorch(scale, padding):
    torch = pytest.importorskip("torch")
    grad, indices = normal(1, (300, 20)).astype(numpy.float32), drawn(2, 40, 300)
    expected = torch.ops.aten.embedding_dense_backward(
        torch.tensor(grad), torch.tensor(indices), 40, -1 if padding is None else padding, scale)  # fmt: skip
    out = blank(F32, (40, 20))
    run(NAME, Tensor(F32, grad), Tensor(I64, indices), 40, NO_PADDING if padding is None else padding, scale, out)
    numpy.testing.assert_allclose(out.values(), expected.numpy(), rtol=1e-5, atol=1e-6)
