"""Random numbers: the published vectors of Philox, and the same bits on every instruction set and number of threads."""

import ctypes

import numpy as np
import pytest

from tests.kernels.test_soft_margin_loss_backward import bits
from tests.tensor.internals import library, run, view

UNIFORM, NORMAL, BERNOULLI, INTEGER = range(4)


class Stream(ctypes.Structure):
    _fields_ = [("seed", ctypes.c_uint64), ("offset", ctypes.c_uint64)]


class Draws(ctypes.Structure):
    _fields_ = [("distribution", ctypes.c_int), ("stream", Stream), ("a", ctypes.c_double), ("b", ctypes.c_double),
                ("start", ctypes.c_int64), ("range", ctypes.c_uint64)]


class DropoutMask(ctypes.Structure):
    _fields_ = [("stream", Stream), ("drop", ctypes.c_double), ("elements", ctypes.c_int64)]


def block(counter, key):
    """The words of a counter: a group holds the same word of sixteen blocks, one after the other."""
    low, high = counter[0] | counter[1] << 32, counter[2] | counter[3] << 32
    words = (ctypes.c_uint32 * 64)()
    stream = Stream(key[0] | key[1] << 32, high)
    library().us_philox_words(stream, ctypes.c_uint64(low // 16), ctypes.c_int64(1), words)
    return tuple(words[low % 16 + 16 * i] for i in range(4))


@pytest.mark.parametrize("counter, key, expected", [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
])  # fmt: skip
def test_published_vectors(counter, key, expected):
    """Known answers that the authors publish with the generator."""
    assert block(counter, key) == expected


@pytest.mark.parametrize("first", [0, 2**28 - 3])  # the second crosses a block number of 32 bits
def test_groups_together_and_one_by_one(first):
    stream, together, alone = Stream(11, 5), (ctypes.c_uint32 * (5 * 64))(), (ctypes.c_uint32 * 64)()
    library().us_philox_words(stream, ctypes.c_uint64(first), ctypes.c_int64(5), together)
    for group in range(5):
        library().us_philox_words(stream, ctypes.c_uint64(first + group), ctypes.c_int64(1), alone)
        assert together[group * 64:(group + 1) * 64] == alone[:]


def draw(distribution, out, a=0.0, b=1.0, start=0, size=0, seed=7, offset=12):
    run("us_draws", [view(out), view(None), view(None), view(None), view(None)],
        Draws(distribution, Stream(seed, offset), a, b, start, size))  # fmt: skip
    return out


def everything():
    parts = []
    for count in (1, 700, 40_001):
        for dtype in ("float32", "float64", "float16", "int32"):
            parts += [draw(kind, np.zeros(count, dtype), 0.5, 3, -4, 9) for kind in (UNIFORM, BERNOULLI, INTEGER)]
        parts += [draw(NORMAL, np.zeros(count, dtype)) for dtype in ("float32", "float64", "float16")]
        mask = np.zeros(-(-count // 128) * 16, np.uint8)
        run("us_dropout_mask", [view(mask)], DropoutMask(Stream(1, 2), 0.3, count))
        parts.append(mask)
    return b"".join(part.tobytes() for part in parts)


def test_same_bits_on_every_instruction_set_and_number_of_threads():
    assert len({bits("test_random", level, threads) for level, threads in
                [("base", "1"), ("v3", "2"), ("v4", "1"), ("v4", "3")]}) == 1  # fmt: skip


def test_uniform_stays_below_its_end():
    """Where rounding to the type would reach it."""
    for dtype, low, high in [("float16", 0.0, 1.0), ("float16", -1.0, 0.0), ("float32", 1.0, 1 + 2.0**-22),
                             ("float64", 0.0, 1.0),
                             ("float16", 2.0, 2.0)]:  # fmt: skip
        values = draw(UNIFORM, np.zeros(100_000, dtype), low, high)
        assert values.min() >= low and (values.max() < high or low == high), dtype
