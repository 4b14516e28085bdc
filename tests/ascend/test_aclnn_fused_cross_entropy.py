"""The fused cross entropy operators against float64 NumPy: sizes around their blocks, both modes, threads, and together as a
training step over a divided vocabulary."""

import numpy
import pytest

from tests.conformance.ascend.aclnn_support import BF16, BOOL, F16, F32, I32, I64, U8, Tensor, assert_rounded, blank, run
from tests.conformance.ascend.fused_cross_entropy_support import gradient, needs_blas, packed, statistics
from tests.conformance.harness import run_python

pytestmark = needs_blas
GRADIENT = "aclnnFusedLinearCrossEntropyLossGrad"
KINDS = [BF16, F16]


class Problem:
    """Random tokens, weights and targets, of which a third is masked and some lie outside the vocabulary."""

    def __init__(self, tokens, features, vocabulary, kind, seed=1):
        generator = numpy.random.default_rng(seed)
        self.kind = kind
        self.x = Tensor(kind, generator.normal(size=(tokens, features)) / features**0.5)
        self.w = Tensor(kind, generator.normal(size=(vocabulary, features)))
        self.grad = Tensor(F32, generator.normal(size=tokens))
        self.target = generator.integers(-1, vocabulary + 1, tokens)
        self.masked = generator.integers(0, 3, tokens) == 0
        top, total = statistics(self.x.values(), self.w.values())
        self.top, self.total = Tensor(F32, top), Tensor(F32, total)
        self.dx, self.dw = blank(kind, (tokens, features)), blank(kind, (vocabulary, features))

    def probabilities(self):
        logits = self.x.values() @ self.w.values().T
        return numpy.exp(logits - self.top.values()[:, None]) / self.total.values()[:, None]

    def run(self, mask, softmax=None, target_kind=I64):
        statistics_given = (self.top, self.total) if softmax is None else (None, None)
        run(GRADIENT, self.grad, self.x, self.w, mask, Tensor(target_kind, self.target), 0.0, *statistics_given, softmax,
            self.dx, self.dw)  # fmt: skip

    def check(self, probabilities):
        """Q may round to the neighbour where fp32 and float64 fall on two sides of a tie: a few units of the half type in the
        sum of the products' magnitudes; and one rounding at the end."""
        x, w, grad = self.x.values(), self.w.values(), self.grad.values()
        exact = gradient(probabilities, grad, self.masked, self.target, x, w)
        q = numpy.abs(probabilities) * numpy.abs(grad)[:, None]
        hits = ~self.masked & (self.target >= 0) & (self.target < w.shape[0])
        q[numpy.flatnonzero(hits), self.target[hits]] += numpy.abs(grad)[hits]
        unit = 2.0 ** (-8 if self.kind == BF16 else -11)
        smallest = 2.0**-25 if self.kind == F16 else 0.0  # half of float16's smallest step
        magnitudes = (q * unit + smallest) @ numpy.abs(w), (q.T * unit + smallest) @ numpy.abs(x)
        for out, expected, bound in zip((self.dx, self.dw), exact, magnitudes):
            assert_rounded(out.values(), expected, 0.0, [self.kind], floor=bound + 1e-12)


@pytest.mark.parametrize("tokens, features, vocabulary", [
    (1, 1, 1), (3, 7, 511), (5, 3, 512), (5, 3, 513), (1023, 2, 9), (1024, 2, 9), (1025, 2, 9), (2050, 5, 1030),
    (257, 300, 600), (1027, 40, 2061), (2003, 200, 777),
])  # fmt: skip
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_memory_saving_mode(tokens, features, vocabulary, kind):
    problem = Problem(tokens, features, vocabulary, kind)
    problem.run(Tensor(U8, packed(problem.masked, extra=tokens % 3, padding=1)), target_kind=I32)
    problem.check(problem.probabilities())


@pytest.mark.parametrize("tokens, features, vocabulary", [(1, 1, 128), (7, 3, 513), (1025, 2, 130), (300, 300, 600)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_high_performance_mode(tokens, features, vocabulary, kind):
    problem = Problem(tokens, features, vocabulary, kind)
    softmax = Tensor(F32, problem.probabilities())
    problem.run(Tensor(BOOL, problem.masked), softmax)
    problem.check(softmax.values())


def test_memory_taken_is_an_eighth_of_the_logits():
    """Counted by the C library. The stream's thread keeps its scratch memory."""
    source = """
import ctypes
from tests.ascend.test_aclnn_fused_cross_entropy import *
names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
Info = type("Info", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in names.split()]})
libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info
def used():
    info = libc.mallinfo2()
    return info.uordblks + info.hblkhd
problem = Problem(3, 4, 5, BF16)
problem.run(Tensor(BOOL, problem.masked))
problem = Problem(512, 256, 16384, BF16)
mask = Tensor(BOOL, problem.masked)
before = used()
problem.run(mask)
print(used() - before)
"""
    assert 1 << 20 < int(run_python(source, {})) < 512 * 16384 * 4 / 8


@pytest.mark.parametrize("tokens, features, vocabulary", [(700, 30, 2000), (1003, 100, 377)])
def test_gradients_in_the_place_of_the_inputs(tokens, features, vocabulary):
    problem = Problem(tokens, features, vocabulary, BF16)
    probabilities, separate = problem.probabilities(), (problem.x, problem.w)
    problem.x, problem.w = (Tensor(BF16, tensor.values()) for tensor in separate)
    problem.dx, problem.dw = problem.x, problem.w
    problem.run(Tensor(BOOL, problem.masked))
    problem.x, problem.w = separate
    problem.check(probabilities)


def test_strided_everything():
    problem = Problem(6, 4, 130, BF16)
    mask, softmax = Tensor(BOOL, problem.masked), Tensor(F32, problem.probabilities())
    problem.run(mask, softmax)
    expected = problem.dx.values(), problem.dw.values()

    def transposed(tensor):
        rows, columns = tensor.shape
        return Tensor(tensor.kind, numpy.ascontiguousarray(tensor.values().T), shape=(rows, columns), strides=(1, rows))

    def spread(tensor):
        return Tensor(tensor.kind, numpy.repeat(tensor.values(), 2), shape=tensor.shape, strides=(2,), offset=1)

    # bfloat16 is encoded from its values, so transposing the values keeps the bits.
    problem.x, problem.w, problem.grad = transposed(problem.x), transposed(problem.w), spread(problem.grad)
    problem.dx, problem.dw = blank(BF16, (6, 4), strides=(1, 6)), blank(BF16, (130, 4), strides=(9, 2), offset=1)
    problem.run(spread(mask), transposed(softmax))
    numpy.testing.assert_array_equal(problem.dx.values(), expected[0])
    numpy.testing.assert_array_equal(problem.dw.values(), expected[1])


def test_results_do_not_depend_on_the_number_of_threads():
    source = """
import hashlib
from tests.ascend.test_aclnn_fused_cross_entropy import *
digest = hashlib.sha256()
for kind in KINDS:
    problem = Problem(1300, 70, 1100, kind)
    problem.run(Tensor(BOOL, problem.masked))
    digest.update(problem.dx.bytes() + problem.dw.bytes())
print(digest.hexdigest())
"""
    assert len({run_python(source, {"UNDERSTUDY_THREADS": str(count)}) for count in (1, 2, 3)}) == 1


# ---- a training step over a divided vocabulary (sheet 4, last paragraph) ------------------------------------------------


class Shard:
    """One device's part of the vocabulary."""

    def __init__(self, x, weight, start, target):
        self.x, self.weight = x, Tensor(x.kind, weight)
        tokens = x.shape[0]
        self.top, self.total, self.predicted = (blank(F32, (tokens,)) for _ in range(3))
        self.mask, self.target = blank(U8, ((tokens + 7) // 8,)), blank(I64, (tokens,))
        run("aclnnFusedLinearOnlineMaxSum", x, self.weight, Tensor(I64, target), start, start + len(weight), self.top,
            self.total, self.predicted, self.mask, self.target, None)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("cut", [1, 300, 601])
def test_a_divided_vocabulary_gives_the_undivided_gradients(kind, cut):
    tokens, features, vocabulary = 37, 24, 602
    generator = numpy.random.default_rng(5)
    x = Tensor(kind, generator.normal(size=(tokens, features)))
    w = kind.round(generator.normal(size=(vocabulary, features)))
    target = generator.integers(0, vocabulary, tokens)
    shards = [Shard(x, w[:cut], 0, target), Shard(x, w[cut:], cut, target)]

    top = numpy.maximum(*(shard.top.values() for shard in shards))
    scales = [numpy.exp(shard.top.values() - top) for shard in shards]
    total = sum(shard.total.values() * scale for shard, scale in zip(shards, scales))
    unmasked = [(shard.mask.stored()[numpy.arange(tokens) // 8] >> numpy.arange(tokens) % 8) & 1 == 0 for shard in shards]
    predicted = sum(numpy.where(own, shard.predicted.values() + shard.top.values() - top, 0.0)
                    for shard, own in zip(shards, unmasked))  # fmt: skip

    loss = blank(F32, (tokens,))
    run("aclnnFusedCrossEntropyLossWithMaxSum", Tensor(F32, top), Tensor(F32, total), Tensor(F32, predicted), 0.0, None,
        None, None, loss, None)  # fmt: skip
    logits = x.values() @ w.T
    highest = logits.max(axis=1)
    exact = numpy.log(numpy.exp(logits - highest[:, None]).sum(axis=1)) + highest - logits[numpy.arange(tokens), target]
    numpy.testing.assert_allclose(loss.values(), exact, atol=2e-5)

    grad = numpy.full(tokens, 1 / tokens)
    found_x, found_w = numpy.zeros((tokens, features)), []
    for shard in shards:
        dx, dw = blank(kind, (tokens, features)), blank(kind, shard.weight.shape)
        run(GRADIENT, Tensor(F32, grad), x, shard.weight, shard.mask, shard.target, 0.0, Tensor(F32, top),
            Tensor(F32, total), None, dx, dw)  # fmt: skip
        found_x += dx.values()
        found_w.append(dw.values())
    p = numpy.exp(logits - highest[:, None])
    p /= p.sum(axis=1, keepdims=True)
    dx, dw = gradient(p, grad, numpy.zeros(tokens, bool), target, x.values(), w)
    tolerance = 2.0**-7 if kind == BF16 else 2.0**-10
    numpy.testing.assert_allclose(found_x, dx, atol=tolerance * numpy.abs(dx).max())
    numpy.testing.assert_allclose(numpy.concatenate(found_w), dw, atol=tolerance * numpy.abs(dw).max())


def test_the_gradient_is_the_slope_of_the_loss():
    """Central differences of the forward operators in float16, along one direction."""
    tokens, features, vocabulary = 5, 8, 40
    generator = numpy.random.default_rng(3)
    x, direction = generator.normal(size=(tokens, features)), generator.choice([-1.0, 1.0], (tokens, features))
    w, target = F16.round(generator.normal(size=(vocabulary, features))), generator.integers(0, vocabulary, tokens)
    x = numpy.round(x * 64) / 64  # so that x +- step is exact
    step = 1 / 64

    def statistics_of(moved):
        return Shard(Tensor(F16, moved), w, 0, target)

    def loss(moved):
        shard, out = statistics_of(moved), blank(F32, (tokens,))
        run("aclnnFusedCrossEntropyLossWithMaxSum", shard.top, shard.total, shard.predicted, 0.0, None, None, None, out,
            None)  # fmt: skip
        return out.values().sum()

    slope = (loss(x + step * direction) - loss(x - step * direction)) / (2 * step)
    shard, dx, dw = statistics_of(x), blank(F16, x.shape), blank(F16, w.shape)
    run(GRADIENT, Tensor(F32, numpy.ones(tokens)), shard.x, shard.weight, shard.mask, shard.target, 0.0, shard.top,
        shard.total, None, dx, dw)  # fmt: skip
    assert abs((dx.values() * direction).sum() - slope) < 2e-2 * max(1.0, abs(slope))


def test_equal_to_autograd():
    torch = pytest.importorskip("torch")
    problem = Problem(20, 16, 200, F16)
    problem.masked[:] = False
    problem.target = numpy.clip(problem.target, 0, 199)
    x = torch.tensor(problem.x.values(), requires_grad=True)
    w = torch.tensor(problem.w.values(), requires_grad=True)
    losses = torch.nn.functional.cross_entropy(x @ w.T, torch.tensor(problem.target), reduction="none")
    losses.backward(torch.tensor(problem.grad.values()))
    problem.run(Tensor(BOOL, problem.masked))
    for out, expected in ((problem.dx, x.grad.numpy()), (problem.dw, w.grad.numpy())):
        numpy.testing.assert_allclose(out.values(), expected, atol=2.0**-9 * numpy.abs(expected).max())
