"""Scratch memory of the fused cross entropy gradient."""

import ctypes

import pytest

from tests.tensor.internals import library


@pytest.mark.parametrize("tokens, features, vocabulary", [
    (2048, 2048, 16384), (2048, 2048, 8192), (2048, 4096, 32000), (4096, 4096, 128256), (8192, 8192, 16032),
    (256, 2048, 32000), (2048, 4096, 8192),
])  # fmt: skip
def test_scratch_memory_is_an_eighth_of_the_logits(tokens, features, vocabulary):
    scratch = library().us_fused_cross_entropy_backward_scratch
    scratch.restype, scratch.argtypes = ctypes.c_size_t, [ctypes.c_int64] * 3
    assert scratch(tokens, features, vocabulary) < tokens * vocabulary * 4 / 8
