"""Exponentials of the sums of segments and their gradient, against float64 and PyTorch."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, drawn, empty, tensor

ROUNDING = {"F32": 2.0**-22, "F16": 2.0**-11, "BF16": 2.0**-8}  # float32: of the sum and of its exponential


def exponentials(x):
    """The page's steps: broadcast, fill the diagonal and above with 0, add up, fill what is above with -inf."""
    size = x.shape[-1]
    below = np.tril(np.ones((size, size), bool), -1)
    sums = np.cumsum(np.where(below, x[..., :, None], 0), -2)
    return np.exp(np.where(below | np.eye(size, dtype=bool), sums, -np.inf))


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 2, 3, 4), (2, 2, 70), (1, 1, 1), (2, 0, 3), (2, 3, 0)], ids=str)
def test_segments(kind, shape):
    x, slope = drawn(shape, 1, kind), drawn((*shape, shape[-1]), 2, kind)
    result = exponentials(x)
    for layout in LAYOUTS:
        found = call("ExpSegsum", self=tensor(x, kind, layout), out=empty(result.shape, kind, layout))
        np.testing.assert_allclose(found, result, rtol=ROUNDING[kind] * (4 if kind == "F32" else 1.01), atol=2.0**-25)
        gradient = call("ExpSegsumBackward", gradOutput=tensor(slope, kind, layout), gradSelf=tensor(found, kind, layout),
                        gradInput=empty(shape, kind, layout))  # fmt: skip
        below = np.tril(slope * found, -1)
        steps = np.tril(np.flip(np.cumsum(np.flip(below, -2), -2), -2), -1)  # the page's
        np.testing.assert_allclose(gradient, steps.sum(-1), rtol=1.01 * ROUNDING[kind],
                                   atol=2.0**-20 * np.abs(below).sum((-2, -1), initial=1).max(initial=1))  # fmt: skip


def test_gradient_of_torch():
    torch = pytest.importorskip("torch")
    x, slope = drawn((2, 3, 6), 3), drawn((2, 3, 6, 6), 4)
    own = torch.tensor(x, requires_grad=True)
    below = torch.ones(6, 6, dtype=torch.bool).tril(-1)
    sums = own.unsqueeze(-1).expand(2, 3, 6, 6).masked_fill(~below, 0).cumsum(-2)
    result = sums.masked_fill(~torch.ones(6, 6, dtype=torch.bool).tril(), -torch.inf).exp()
    result.backward(torch.tensor(slope))
    found = call("ExpSegsumBackward", gradOutput=tensor(slope), gradSelf=tensor(result.detach().numpy()),
                 gradInput=empty(x.shape))  # fmt: skip
    np.testing.assert_allclose(found, own.grad.numpy(), rtol=1e-5, atol=1e-5)


def test_segments_of_infinities():
    """A decay to nothing stays nothing: the numbers of Mamba's padding."""
    found = call("ExpSegsum", self=tensor([[[1.0, -np.inf, 2.0]]]), out=empty((1, 1, 3, 3)))
    np.testing.assert_allclose(found, [[[[1, 0, 0], [0, 1, 0], [0, np.exp(2), 1]]]], rtol=1e-6)
