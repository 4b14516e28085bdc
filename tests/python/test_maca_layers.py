"""Pooling and local response normalization on NumPy arrays, against float64."""

import numpy
import pytest

from understudy import maca
from understudy.errors import StatusError

generator = numpy.random.default_rng(9)
X = generator.uniform(-1, 1, (2, 5, 4, 6)).astype(numpy.float32)


@pytest.mark.parametrize("mode", ["max", "max_deterministic", "average_include_padding", "average_exclude_padding"])
def test_pooling(mode):
    windows = X.astype(numpy.float64).reshape(2, 5, 2, 2, 2, 3).swapaxes(3, 4).reshape(2, 5, 2, 2, 6)
    dy = generator.uniform(-1, 1, (2, 5, 2, 2)).astype(numpy.float32)
    if mode.startswith("max"):
        expected, share = windows.max(axis=-1), numpy.arange(6) == windows.argmax(axis=-1)[..., None]
    else:
        expected, share = windows.mean(axis=-1), numpy.full(windows.shape, 1 / 6)
    gradient = (share * dy[..., None]).reshape(2, 5, 2, 2, 2, 3).swapaxes(3, 4).reshape(X.shape)
    with maca.PoolingDescriptor(mode, (2, 3)) as pooling:
        y = maca.pooling_forward(X, pooling)
        numpy.testing.assert_allclose(y, expected, rtol=2**-20, atol=2**-22)
        numpy.testing.assert_allclose(maca.pooling_backward(y, dy, X, pooling), gradient, rtol=2**-20)


def test_lrn():
    x = X.astype(numpy.float64)

    def neighbours(values):
        wide = numpy.pad(values, ((0, 0), (1, 1), (0, 0), (0, 0)))
        return wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]

    power = 1 + 0.5 / 3 * neighbours(x**2)
    expected = x * power**-0.75
    dy = generator.uniform(-1, 1, X.shape).astype(numpy.float32)
    gradient = dy * power**-0.75 - 2 * 0.5 * 0.75 / 3 * x * neighbours(dy * expected / power)
    with maca.LRNDescriptor(3, 0.5, 0.75, 1.0) as lrn:
        y = maca.lrn_cross_channel_forward(X, lrn)
        numpy.testing.assert_allclose(y, expected, rtol=2**-19)
        got = maca.lrn_cross_channel_backward(y, dy, X, lrn)
        numpy.testing.assert_allclose(got, gradient, rtol=2**-18, atol=2**-20)


def test_refusals():
    with pytest.raises(StatusError):
        maca.LRNDescriptor(n=17)
    with pytest.raises(StatusError):
        maca.PoolingDescriptor("max", (0, 2))
    with pytest.raises(ValueError):
        maca.PoolingDescriptor("median", (2, 2))
    with pytest.raises(ValueError):
        maca.PoolingDescriptor("max", (2, 2), padding=(1,))


def test_a_descriptor_says_what_it_was_made_with():
    with maca.TensorDescriptor((2, 3), "float32", strides=(3, 1)) as tensor:
        assert repr(tensor) == "TensorDescriptor((2, 3), 'float32', strides=(3, 1))"
    assert repr(tensor).endswith(" (closed)")
