"""Shuffled channels, slices that repeat, and powers in sequence, against NumPy."""

import itertools

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, refusal, rounded, tensor
from tests.ascend.test_aclnn_index import fault
from tests.conformance.ascend import pages
from tests.conformance.ascend.aclnn_support import blank

RANDOM = np.random.default_rng(3)


def drawn(shape, kind):
    return RANDOM.integers(0, 2 if kind == "B" else 9, shape)


def test_channel_shuffle():
    for kind, layout in itertools.product(["F32", "BF16", "U8", "C128"], LAYOUTS):
        for shape, groups in (((2, 6, 3), 2), ((1, 6, 2, 5), 3), ((2, 4, 1, 2, 3), 4), ((0, 4, 2), 2)):
            values = drawn(shape, kind)
            seen = values.reshape(shape[0], groups, shape[1] // groups, *shape[2:])
            found = call("ChannelShuffle", self=tensor(values, kind, layout), groups=groups, out=empty(shape, kind, layout))
            np.testing.assert_array_equal(found, np.swapaxes(seen, 1, 2).reshape(shape))


def test_repeats():
    for kind, layout in itertools.product(["F32", "F16", "I64", "B"], LAYOUTS):
        values, times = drawn((3, 4), kind), RANDOM.integers(0, 4, 12)
        given = tensor(values, kind, layout)
        found = call("RepeatInterleaveInt", self=given, repeats=3, outputSize=36, out=empty((36,), kind, layout))
        np.testing.assert_array_equal(found, np.repeat(values, 3))
        found = call("RepeatInterleave", self=given, repeats=tensor(times, "I64", layout), outputSize=int(times.sum()),
                     out=empty((int(times.sum()),), kind, layout))  # fmt: skip
        np.testing.assert_array_equal(found, np.repeat(values, times))
        for dim, few in ((0, times[:3]), (-1, times[:4]), (0, np.array([2]))):
            expected = np.repeat(values, few, dim)
            found = call("RepeatInterleaveWithDim", self=given, repeats=tensor(few, "I32", layout), dim=dim,
                         outputSize=expected.shape[dim], out=empty(expected.shape, kind, layout))  # fmt: skip
            np.testing.assert_array_equal(found, expected)
            if kind[0] == "F":
                slopes = drawn(expected.shape, kind)
                owners = np.repeat(np.arange(values.shape[dim]), few)
                sums = np.zeros(values.shape)
                np.add.at(np.moveaxis(sums, dim, 0), owners, np.moveaxis(slopes, dim, 0))
                found = call("RepeatInterleaveGrad", yGrad=tensor(slopes, kind, layout), repeats=tensor(few, "I64", layout),
                             axis=dim, out=empty(values.shape, kind, layout))  # fmt: skip
                np.testing.assert_array_equal(found, sums)
    found = call("RepeatInterleaveTensor", repeats=tensor(times, "I32"), outputSize=int(times.sum()),
                 out=empty((int(times.sum()),), "I32"))  # fmt: skip
    np.testing.assert_array_equal(found, np.repeat(np.arange(12), times))


def test_repeats_that_do_not_add_up_are_a_fault():
    for times, sentence in (([1, 1], "add to 2, not 3"), ([2, 2], "more than 3"), ([-1, 4], "-1 times")):
        found = fault("RepeatInterleave", tensor([1.0, 2.0]), tensor(times, "I64"), 3, empty((3,)))
        assert sentence in found, found


def test_logspace():
    for kind, layout in itertools.product(["F32", "F16", "BF16"], LAYOUTS):
        for steps, base, (start, end) in itertools.product((0, 1, 5), (2.0, 10.0), ((0.0, 4.0), (3, -1), (0.5, 3.75))):
            expected = rounded(base ** np.linspace(start, end, steps), kind)
            found = call("LogSpace", start=start, end=end, steps=steps, base=base, result=empty((steps,), kind, layout))
            np.testing.assert_allclose(found, expected, rtol=1e-15)


def test_chunk_cat():
    """Sizes that the number of chunks divides, sizes that it does not, fewer rows than chunks, none at all."""
    shapes = [(2, 3), (1, 3), (7,), (5, 2, 2), (4, 1), (0, 3), (3, 0)]
    for (kind, out), layout, chunks in itertools.product([("F32", "F32"), ("F16", "F32"), ("BF16", "F16")], LAYOUTS,
                                                         (1, 2, 3, 4)):  # fmt: skip
        values = [drawn(shape, kind) + 1 for shape in shapes]
        expected = []
        for value in values:
            rows = -(-len(value) // chunks) * chunks
            padded = np.zeros((rows, *value.shape[1:]))
            padded[: len(value)] = value
            expected.append(padded.reshape(chunks, -1) if padded.size else np.zeros((chunks, 0)))
        expected = np.concatenate(expected, 1)
        found = call("ChunkCat", tensors=[tensor(value, kind, layout) for value in values], dim=0, numChunks=chunks,
                     out=empty(expected.shape, out, layout))  # fmt: skip
        np.testing.assert_array_equal(found, expected)


def test_gradients_of_windows():
    """Windows that overlap, that touch, that leave gaps and a rest; both axes that the page allows, and PyTorch."""
    torch = pytest.importorskip("torch")
    forms = [((8, 2), 0, 3, 2), ((2, 3, 9), 2, 2, 2), ((7,), 0, 2, 3), ((5, 6), 1, 6, 1), ((2, 40, 30), 1, 5, 1),
             ((3, 0, 2), 2, 1, 1),
             ((1,), 0, 1, 4)]  # fmt: skip
    for (shape, dim, size, step), (kind, layout) in itertools.product(forms, zip(["F32", "F16", "BF16"], LAYOUTS)):
        count = (shape[dim] - size) // step + 1
        slopes = drawn((*shape[:dim], count, *shape[dim + 1 :], size), kind)
        expected = np.zeros(shape)
        for t, k in itertools.product(range(count), range(size)):
            np.moveaxis(expected, dim, 0)[t * step + k] += np.moveaxis(slopes[..., k], dim, 0)[t]
        own = torch.ops.aten.unfold_backward(torch.tensor(slopes, dtype=torch.float64), list(shape), dim, size, step)
        np.testing.assert_array_equal(expected, own.numpy())
        found = call("UnfoldGrad", gradOut=tensor(slopes, kind, layout), inputSizes=list(shape), dim=dim, size=size,
                     step=step, gradIn=empty(shape, kind, layout))  # fmt: skip
        np.testing.assert_array_equal(found, expected)


def test_weights_stay_as_they_are():
    for kind, layout in itertools.product(["F16", "BF16", "I8"], LAYOUTS):
        values = drawn((3, 20, 30), kind)
        weight = tensor(values, kind, layout)
        before = weight.bytes()
        call("TransMatmulWeight", mmWeightRef=weight)
        assert weight.bytes() == before


def test_flattened_rows_that_no_number_counts():
    """2^64 rows of nothing are not 0 rows."""
    rows = blank(pages.KINDS["F32"], (1 << 32, 1 << 32, 0), strides=[0, 0, 1], storage=[1])
    assert refusal("Flatten", rows, 2, empty((0, 0))) == (161002, "aclnnFlatten/out/shape")
    rows = blank(pages.KINDS["F32"], (1 << 32, 1 << 30, 0), strides=[0, 0, 1], storage=[1])
    out = blank(pages.KINDS["F32"], (1 << 62, 0), strides=[0, 1], storage=[1])
    assert refusal("Flatten", rows, 2, out)[0] == 0
