"""Compressed windows of native sparse attention, against the sums in float64 and PyTorch's automatic gradients."""

import numpy
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, empty, fault, tensor
from tests.conformance.ascend.aclnn_support import ffi, lib

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


def cached(kind, x, weight, slots, lengths, pages, cache, stride, layout):
    return call("NsaCompressWithCache", input=tensor(x, kind, layout), weight=tensor(weight, kind, layout), slotMapping=tensor(slots, "I32"),
                actSeqLenOptional=lengths, blockTableOptional=None if pages is None else tensor(pages, "I32", layout),
                layoutOptional="TND" if pages is None else None, compressBlockSize=len(weight), compressStride=stride, actSeqLenType=1,
                pageBlockSize=64, outputCache=cache)  # fmt: skip


# A window within a page, over two pages, the first of a sequence, the last that there is room for; too short; between two.
LENGTHS = [64, 80, 32, 192, 31, 0, 100]


@pytest.mark.parametrize("paged", [True, False])
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_cached_windows(kind, paged):
    length, stride, heads, depth = 32, 16, 3, 48
    weight, old = drawn((length, heads), 8, kind), drawn((90, heads, depth), 9, kind)
    pages = numpy.random.default_rng(10).permutation(len(LENGTHS) * 3).reshape(-1, 3)  # of 21 pages
    slots = [5, 89, 0, 7, -1, 5, 1 << 30]  # those of the last three are not looked at
    stored = drawn((21, 64, heads, depth), 11, kind)
    whole = [stored[row].reshape(-1, heads, depth)[:count] for row, count in zip(pages, LENGTHS)]
    expected, scale = old.copy(), numpy.zeros_like(old)
    for rows, slot in list(zip(whole, slots))[:4]:
        expected[slot] = (weight[:, :, None] * rows[-length:]).sum(0)
        scale[slot] = numpy.abs(weight[:, :, None] * rows[-length:]).sum(0)
    for layout in LAYOUTS:
        x = stored if paged else numpy.concatenate(whole)
        own = cached(kind, x, weight, slots, LENGTHS, pages if paged else None, tensor(old, kind), stride, layout)
        close(own, expected, kind, length, scale)
        others = [row for row in range(len(old)) if row not in slots[:4]]
        numpy.testing.assert_array_equal(numpy.asarray(own)[others], old[others])


@pytest.mark.parametrize("slots, pages, said", [
    ([11, 0], [[0, 1], [2, 0]], "slot 11 of sequence 0"), ([0, -1], [[0, 1], [2, 0]], "slot -1 of sequence 1"),
    ([1, 0], [[0, 3], [2, 0]], "page 1 of sequence 0 is number 3 of 3"), ([1, 0], [[0, 1], [-1, 0]], "page 0 of sequence 1 is number -1 of 3")])  # fmt: skip
def test_places_that_are_not_there(slots, pages, said):
    x, weight = drawn((3, 64, 2, 16), 12, "F16"), drawn((32, 2), 13, "F16")
    lengths = ffi.new("int64_t[]", [80, 64])
    ends = lib.aclCreateIntArray(lengths, 2)
    sentence = fault("NsaCompressWithCache", tensor(x, "F16"), tensor(weight, "F16"), tensor(slots, "I32"), ends, tensor(pages, "I32"),
                     ffi.NULL, 32, 16, 1, 64, empty((11, 2, 16), "F16"))  # fmt: skip
    assert lib.aclDestroyIntArray(ends) == 0
    assert said in sentence
