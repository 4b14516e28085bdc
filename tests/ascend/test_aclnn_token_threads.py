"""Attention of selected tokens, its gradients, and attention between pairs: the same bits for any number of threads, whether these
divide sequences, rows or what a row needs."""

import pytest

from tests.conformance.harness import run_python

SETTINGS = [{"UNDERSTUDY_THREADS": str(count)} for count in (1, 2, 5)]
BEGIN = """
import hashlib
import numpy
from understudy.ascend import ops

random, far = numpy.random.default_rng(1), 2**63 - 1
half = lambda *shape: random.normal(0, 1, shape).astype("f2")
digest = hashlib.sha256()

def add(found):
    for values in found if isinstance(found, tuple) else (found,):
        digest.update(b"" if values is None else values.tobytes())
    return found

def chosen(rows, keys, count):
    indices = numpy.full((1, rows, 1, count), -1, "i4")
    for row in range(rows):
        own = random.integers(1, min(keys, count) + 1)
        indices[0, row, 0, :own] = random.permutation(keys)[:own]
    return indices
"""
END = "print(digest.hexdigest())"
SOURCES = {
    "rows": """
query, key, turned, turned_key = half(1, 21, 8, 512), half(1, 600, 1, 512), half(1, 21, 8, 64), half(1, 600, 1, 64)
indices = chosen(21, 600, 1024)
out, largest, sums = add(ops.sparse_flash_attention(query, key, key, indices, turned, turned_key, 0.04, 1, 3, far, far, 2, True))
add(ops.sparse_flash_attention_grad(query, key, indices, out, out, largest, sums, 0.04, 1, 3, far, far, True, key, None, None,
                                    turned, turned_key))
""",
    "a row": """
query, key = half(1, 1, 16, 512), half(1, 600, 1, 512)
add(ops.sparse_flash_attention(query, key, key, chosen(1, 600, 512), half(1, 1, 16, 64), half(1, 600, 1, 64), 0.04, 1, 3, far, far,
                               2, True))
add(ops.lightning_indexer(half(1, 1, 16, 128), half(1, 5000, 1, 128), half(1, 1, 16), 700, 3, far, far, True))
add(ops.dense_lightning_indexer_softmax_lse(half(1, 1, 16, 128), half(1, 5000, 1, 128), half(1, 1, 16)))
""",
    "the indexer": """
for batches in (1, 6):
    tokens = (batches, 21)
    query, key, weights = half(*tokens, 8, 128), half(batches, 300, 1, 128), half(*tokens, 8) / 64
    largest, sums = add(ops.dense_lightning_indexer_softmax_lse(query, key, weights))
    own, own_key, ones = half(*tokens, 32, 128), half(batches, 300, 32, 128), numpy.ones((batches, 32, 21, 1), "f4")
    add(ops.dense_lightning_indexer_grad_kl_loss(own, own_key, query, key, weights, 9 * ones, ones, largest, sums, 0.03, "BSND"))
key, weights, indices = half(1, 2048, 1, 128), half(1, 21, 8), chosen(21, 2048, 2048)
query = half(1, 21, 8, 128)
add(ops.lightning_indexer_grad(query, key, half(1, 21, 1, 2048), indices, weights, 8, "BSND", 3, far, far, True))
ones = numpy.ones((1, 1, 21, 32), "f4")
add(ops.sparse_lightning_indexer_grad_kl_loss(half(1, 21, 32, 512), half(1, 2048, 1, 512), query, key, weights, indices, 9 * ones,
                                              ones, 0.03, "BSND", 3, far, far, True))
""",
    "pairs": """
query, key1, key2 = half(1, 2, 32, 128, 32), half(1, 2, 32, 128, 32), half(1, 2, 128, 128, 32)
largest, sums, out = add(ops.fused_floyd_attention(query, key1, key1, key2, key2, 0.2))
add(ops.fused_floyd_attention_grad(query, key1, key1, key2, key2, out, largest, sums, out, 0.2))
""",
}


@pytest.mark.parametrize("name", SOURCES)
def test_threads(name):
    assert len({run_python(BEGIN + SOURCES[name] + END, setting) for setting in SETTINGS}) == 1
