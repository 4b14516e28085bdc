"""The fused cross entropy operators on NumPy arrays: a divided vocabulary against float64, whose Q alone is rounded."""

import numpy
import pytest

from understudy.ascend import ops
from understudy.errors import StatusError

TOKENS, HIDDEN, VOCABULARY = 11, 5, 256
generator = numpy.random.default_rng(5)
X = generator.uniform(-1, 1, (TOKENS, HIDDEN)).astype(numpy.float16)
WEIGHT = generator.uniform(-1, 1, (VOCABULARY, HIDDEN)).astype(numpy.float16)
TARGET = generator.integers(0, VOCABULARY, TOKENS)
GRAD = generator.uniform(-1, 1, TOKENS).astype(numpy.float32)


def reference():
    logits = X.astype(numpy.float64) @ WEIGHT.astype(numpy.float64).T
    maximum = logits.max(axis=1)
    total = numpy.exp(logits - maximum[:, None]).sum(axis=1)
    softmax = numpy.exp(logits - maximum[:, None]) / total[:, None]
    return logits, maximum, total, softmax


@pytest.mark.parametrize("saving", [False, True])
def test_whole_vocabulary(saving):
    logits, maximum, total, softmax = reference()
    got = ops.fused_linear_online_max_sum(X, WEIGHT, TARGET, 0, VOCABULARY)
    rows = numpy.arange(TOKENS)
    numpy.testing.assert_allclose(got[0], maximum, rtol=2**-20)
    numpy.testing.assert_allclose(got[1], total, rtol=2**-20)
    numpy.testing.assert_allclose(got[2], (logits[rows, TARGET] - maximum), rtol=2**-20, atol=2**-20)
    assert not numpy.unpackbits(got[3], bitorder="little")[:TOKENS].any()
    numpy.testing.assert_array_equal(got[4], TARGET)
    numpy.testing.assert_allclose(got[5].astype(numpy.float64), logits, rtol=2**-10, atol=2**-20)
    loss, probabilities = ops.fused_cross_entropy_loss_with_max_sum(*got[:3], got[5])
    numpy.testing.assert_allclose(loss, -numpy.log(softmax[rows, TARGET]), rtol=2**-20)
    numpy.testing.assert_allclose(probabilities, softmax, rtol=2**-9)  # its logits are float16
    assert ops.fused_cross_entropy_loss_with_max_sum(*got[:3])[1] is None

    state = {"logits_max": got[0], "sum_exp": got[1]} if saving else {"softmax": softmax.astype(numpy.float32)}
    gradients = ops.fused_linear_cross_entropy_loss_grad(GRAD, X, WEIGHT, *got[3:5], **state)
    slope = (softmax - (numpy.arange(VOCABULARY) == TARGET[:, None])) * GRAD[:, None]
    operands = abs(slope) @ abs(WEIGHT.astype(numpy.float64)), abs(slope).T @ abs(X.astype(numpy.float64))
    for found, expected, size in zip(gradients, (slope @ WEIGHT, slope.T @ X), operands):
        # Half a unit for Q, half a unit for the result, float16's smallest number.
        assert (abs(found - expected) <= 2**-10 * size + 2**-24 * VOCABULARY).all()


def test_masks_of_two_shards():
    half = VOCABULARY // 2
    masks = []
    for start in (0, half):
        got = ops.fused_linear_online_max_sum(X, WEIGHT[start : start + half], TARGET, start, start + half)
        masks.append(numpy.unpackbits(got[3], bitorder="little")[:TOKENS].astype(bool))
        inside = (TARGET >= start) & (TARGET < start + half)
        numpy.testing.assert_array_equal(masks[-1], ~inside)
        numpy.testing.assert_array_equal(got[4], numpy.where(inside, TARGET - start, 0))
    assert (masks[0] != masks[1]).all() and masks[0].any() and masks[1].any()


def test_refusals():
    with pytest.raises(StatusError):
        ops.fused_linear_online_max_sum(X, WEIGHT[:, :-1], TARGET, 0, VOCABULARY)
    with pytest.raises(StatusError):
        ops.fused_cross_entropy_loss_with_max_sum(GRAD, GRAD, GRAD, label_smoothing=0.5)
    with pytest.raises(StatusError):
        ops.fused_linear_cross_entropy_loss_grad(GRAD, X, WEIGHT, TARGET == 0, TARGET)  # neither softmax nor statistics
