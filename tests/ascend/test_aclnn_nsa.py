"""Compressed windows of native sparse attention, against the sums in float64 and PyTorch's automatic gradients."""

import numpy
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, empty, tensor

torch = pytest.importorskip("torch")

HALF_UNIT = {"F16": 2.0**-11, "BF16": 2.0**-8}
CASES = [  # ends, heads, depth, length, stride
    ([112], 2, 16, 32, 16),
    ([48, 112, 120, 240], 3, 16, 32, 32),  # windows side by side; a sequence that has none
    ([0, 128, 272], 5, 48, 32, 16),  # an empty sequence
    ([70, 141, 141, 300], 1, 256, 64, 48),  # rows behind the last window, and between windows of two sequences
    ([400], 128, 32, 128, 112),
]


def first_rows(ends, length, stride):
    begins = [0, *ends[:-1]]
    return [row for begin, end in zip(begins, ends) for row in range(begin, end - length + 1, stride)]


def compressed(x, weight, first):
    return torch.stack([(weight[:, :, None] * x[row : row + len(weight)]).sum(0) for row in first])


def close(actual, expected, kind, terms, scale):
    """Rounded once from a sum of `terms` in float32, whose terms' sizes add up to `scale`."""
    error = numpy.abs(numpy.asarray(actual) - expected)
    assert (error <= HALF_UNIT[kind] * numpy.abs(expected) * (1 + 2**-10) + terms * 2.0**-24 * scale + 2.0**-25).all(), error.max()


@pytest.mark.parametrize("ends, heads, depth, length, stride", CASES)
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_windows(kind, ends, heads, depth, length, stride):
    first = first_rows(ends, length, stride)
    for layout in LAYOUTS:
        x, weight = drawn((ends[-1], heads, depth), 1, kind), drawn((length, heads), 2, kind)
        y = call("NsaCompress", input=tensor(x, kind, layout), weight=tensor(weight, kind, layout), actSeqLenOptional=ends,
                 layoutOptional="TND", compressBlockSize=length, compressStride=stride, actSeqLenType=0,
                 output=empty((len(first), heads, depth), kind, layout))  # fmt: skip
        expected, scale = (compressed(*map(torch.tensor, pair), first).numpy() for pair in ((x, weight), map(numpy.abs, (x, weight))))
        close(y, expected, kind, length, scale)


@pytest.mark.parametrize("ends, heads, depth, length, stride", [case for case in CASES if case[3] > case[4]])
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_gradients(kind, ends, heads, depth, length, stride):
    first = first_rows(ends, length, stride)

    def gradients(x, weight, slopes):
        x, weight = (torch.tensor(values, requires_grad=True) for values in (x, weight))
        return [slope.numpy() for slope in torch.autograd.grad(compressed(x, weight, first), (x, weight), torch.tensor(slopes))]

    for layout in LAYOUTS:
        given = [drawn((ends[-1], heads, depth), 3, kind), drawn((length, heads), 4, kind), drawn((len(first), heads, depth), 5, kind)]
        x, weight, slopes = (tensor(values, kind, layout) for values in given)
        own = call("NsaCompressGrad", outputGrad=slopes, input=x, weight=weight, actSeqLenOptionalOptional=ends, compressBlockSize=length,
                   compressStride=stride, actSeqLenType=0, layoutOptionalOptional="TND", inputGradOut=empty(given[0].shape, kind, layout),
                   weightGradOut=empty(given[1].shape, kind, layout))  # fmt: skip
        for actual, expected, scale, terms in zip(own, gradients(*given), gradients(*map(numpy.abs, given)), (length, depth)):
            close(actual, expected, kind, terms, scale)


def test_layout_may_be_left_out():
    x, weight = drawn((32, 1, 16), 6, "F16"), drawn((16, 1), 7, "F16")
    for layout in (None, "TND"):
        y = call("NsaCompress", input=tensor(x, "F16"), weight=tensor(weight, "F16"), actSeqLenOptional=[32], layoutOptional=layout,
                 compressBlockSize=16, compressStride=16, actSeqLenType=0, output=empty((2, 1, 16), "F16"))  # fmt: skip
        expected = (weight * x[:, 0].reshape(2, 16, 16)).sum(1)[:, None]
        numpy.testing.assert_allclose(numpy.asarray(y), expected, 2.0**-10, 2.0**-10)
