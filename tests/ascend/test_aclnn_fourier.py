"""aclStft and aclRfft1D beside sums of float64."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, random, tensor
from tests.conformance.ascend import pages

STEP = {"F32": 2.0**-23, "C64": 2.0**-23, "F64": 2.0**-52, "C128": 2.0**-52}
LENGTHS = [1, 2, 3, 4, 5, 8, 12, 13, 16, 30, 49, 64, 97, 400]


def drawn(shape, kind, seed):
    values = random(seed).normal(0, 1, shape)
    values = values + 1j * random(seed + 1).normal(0, 1, shape) if kind[0] == "C" else values
    return values.astype({"F32": np.float32, "C64": np.complex64, "F64": np.float64, "C128": np.complex128}[kind])


def transformed(frames, count):
    """The definition, with angles that are exact modulo a turn."""
    n = frames.shape[-1]
    turns = np.outer(np.arange(n), np.arange(count)) % n / n
    return frames @ np.exp(-2j * np.pi * turns)


def near(actual, expected, kind, size):
    """Rounded once; the sums of float64 differ by some of its roundings of the largest terms."""
    bound = STEP[kind] / 2 * np.abs(expected) + 2.0**-50 * size
    assert (np.abs(actual.real - expected.real) <= bound).all() and (np.abs(actual.imag - expected.imag) <= bound).all()


def stft(x, window, n, hop, width, kind, one_sided=True, normalized=False, parts=False, layout="row-major"):
    count = n // 2 + 1 if one_sided else n
    shape = (*x.shape[:-1], count, (x.shape[-1] - n) // hop + 1)
    wide = kind in ("F64", "C128")
    out = empty((*shape, 2), "F64" if wide else "F32", layout) if parts else empty(shape, "C128" if wide else "C64", layout)
    own = call("Stft", self=tensor(x, kind, layout), windowOptional=None if window is None else tensor(window, kind, layout),
               out=out, nFft=n, hopLength=hop, winLength=width, normalized=normalized, onesided=one_sided,
               returnComplex=not parts)  # fmt: skip
    own = own[..., 0] + 1j * own[..., 1] if parts else own
    whole = np.zeros(n, complex)
    whole[(n - width) // 2 :][:width] = 1 if window is None else window
    frames = np.stack([x[..., at : at + n] for at in range(0, x.shape[-1] - n + 1, hop)], -2).astype(complex) * whole
    expected = np.moveaxis(transformed(frames, count), -1, -2) / (np.sqrt(n) if normalized else 1)
    near(own, expected, kind, np.abs(frames).sum(-1).max() / (np.sqrt(n) if normalized else 1))


@pytest.mark.parametrize("n", LENGTHS)
def test_short_time_transforms(n):
    for number, kind in enumerate(STEP):
        one_sided, parts, layout = kind[0] == "F", number % 2 == n % 2, LAYOUTS[(number + n) % 3]
        width = n - n // 3
        for shape in [(n,), (2, n + 2), (3, 2 * n + 35)]:
            x, window = drawn(shape, kind, 10 + n), drawn((width,), kind, 30 + n)
            stft(x, window, n, 3, width, kind, one_sided, n % 2 == 0, parts, layout)
            stft(x, None, n, n, width, kind, False, False, not parts, layout)
            stft(x, drawn((n,), kind, 50 + n), n, 1, n, kind, one_sided, True, parts, layout)


def test_the_pages_example():
    own = call("Stft", self=tensor([1, 6, 8, 5, 7]), windowOptional=tensor([1, 1, 1, 1]), out=empty((3, 1, 2)), nFft=4,
               hopLength=2, winLength=4, normalized=False, onesided=True, returnComplex=False)  # fmt: skip
    np.testing.assert_array_equal(own.reshape(3, 2), [[20, 0], [-7, -1], [-2, 0]])
    own = call("Rfft1D", self=tensor([1, 2, 3, 4]), n=4, dim=-1, norm=1, out=empty((3, 2)))
    np.testing.assert_array_equal(own, [[10, 0], [-2, 2], [-2, 0]])


@pytest.mark.parametrize("n", [*LENGTHS, 1024, 3000, 4096])
def test_real_transforms(n):
    for norm, shape, dim, layout in [(1, (n,), 0, "gaps"), (2, (3, n + 2), -1, "row-major"), (3, (2, max(1, n - 3), 5), 1, "reversed"),
                                     (1, (n, 9), -2, "row-major")]:  # fmt: skip
        x = drawn(shape, "F32", n)
        there = np.moveaxis(x, dim, -1)[..., :n].astype(float)
        there = np.concatenate([there, np.zeros((*there.shape[:-1], n - there.shape[-1]))], -1)
        scale = {1: 1, 2: n, 3: np.sqrt(n)}[norm]
        expected = np.moveaxis(transformed(there, n // 2 + 1) / scale, -1, dim % len(shape))
        own = call("Rfft1D", self=tensor(x, "F32", layout), n=n, dim=dim, norm=norm, out=empty((*expected.shape, 2), "F32", layout))
        near(own[..., 0] + 1j * own[..., 1], expected, "F32", np.abs(there).sum(-1).max() / scale)


def test_nothing_to_transform():
    call("Rfft1D", self=tensor(np.zeros((0, 5))), n=5, dim=-1, norm=1, out=empty((0, 3, 2)))
    assert pages.operators()["Stft"]["function"] == "aclStft"
