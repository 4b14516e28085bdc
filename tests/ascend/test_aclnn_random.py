"""Random numbers and dropout: distributions, what seed and offset decide, and what a mask does."""

import numpy as np
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, rounded, tensor
from tests.conformance.ascend import aclnn_support as support
from tests.conformance.ascend import pages

COUNT = 60_000
SEED = 6_200_000_000_000_000


def assert_uniform(values, low, high):
    """Kolmogorov's and Smirnov's distance, which exceeds 2.5 / sqrt(n) once in 10^5 samples."""
    places = (np.sort(values) - low) / (high - low)
    distance = np.abs(places - (np.arange(values.size) + 0.5) / values.size).max()
    assert distance < 2.5 / np.sqrt(values.size), distance


def assert_normal(values, mean, deviation):
    """Moments within five of their standard errors."""
    z = (values - mean) / deviation
    errors = [(z.mean(), 1), ((z**2).mean() - 1, 2), ((z**3).mean(), 15), ((z**4).mean() - 3, 96)]
    for error, variance in errors:
        assert abs(error) < 5 * np.sqrt(variance / z.size), errors
    assert np.abs(z).max() < 7


def uncorrelated(a, b):
    return abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(a.size)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "F64"])
def test_normal(kind):
    values = call("InplaceNormal", selfRef=empty((COUNT,), kind), mean=2.0, std=0.5, seed=SEED, offset=12)
    slack = {"BF16": 0.02, "F16": 0.002}.get(kind, 0)  # roundings widen the values
    assert abs(values.mean() - 2) < 0.01 + slack and abs(values.std() - 0.5) < 0.01 + slack
    if not slack:
        assert_normal(values, 2.0, 0.5)
        assert uncorrelated(values[:-1], values[1:]) and uncorrelated(values[: COUNT // 2], values[COUNT // 2 :])


@pytest.mark.parametrize("kind", ["F32", "F64"])
def test_uniform(kind):
    values = call("InplaceUniform", **{"from": -2.0, "to": 3.0}, selfRef=empty((COUNT,), kind), seed=SEED, offset=0)
    assert_uniform(values, -2, 3)
    assert values.min() >= -2 and values.max() < 3
    assert uncorrelated(values[:-1], values[1:])


def test_uniform_numbers_of_an_interval_whose_length_is_no_number():
    values = call("InplaceUniform", **{"from": -1.5e308, "to": 1e308}, selfRef=empty((COUNT,), "F64"), seed=SEED, offset=0)
    assert_uniform(values / 1e308, -1.5, 1)
    halves = call("InplaceUniform", **{"from": -0.75e308, "to": 0.5e308}, selfRef=empty((COUNT,), "F64"), seed=SEED, offset=0)
    np.testing.assert_array_equal(values, 2 * halves)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_exponential(kind):
    """1 - exp(-lambda x) is uniform; no number is 0 or infinite; place, seed and offset decide, not the layout."""
    def draw(rate, seed=SEED, offset=0, layout="row-major"):
        return call("SimThreadExponential", selfRef=empty((200, 300), kind, layout), count=COUNT, seed=seed,
                    offset=offset, **{"lambda": rate})  # fmt: skip

    values = draw(1.5)
    assert values.min() > 0 and np.isfinite(values).all()
    if kind == "F32":
        assert_uniform(-np.expm1(-1.5 * values.ravel()), 0, 1)
        np.testing.assert_allclose(draw(3.0) * 2, values, rtol=2.0**-23)
        assert uncorrelated(values.ravel()[:-1], values.ravel()[1:])
        assert uncorrelated(values.ravel(), draw(1.5, seed=SEED + 1).ravel()) and uncorrelated(values.ravel(), draw(1.5, offset=4).ravel())
    else:
        np.testing.assert_allclose(values.mean(), 1 / 1.5, rtol=0.02)
    assert all(np.array_equal(values, draw(1.5, layout=layout)) for layout in LAYOUTS)


def test_seed_and_offset_select_the_numbers():
    def draw(seed, offset, layout="row-major"):
        return call("InplaceUniform", **{"from": 0.0, "to": 1.0}, selfRef=empty((100, 30), "F32", layout), seed=seed,
                    offset=offset)  # fmt: skip

    first = draw(5, 12)
    assert all(np.array_equal(first, draw(5, 12, layout)) for layout in LAYOUTS)
    for other in (draw(6, 12), draw(5, 24), draw(5, 2**40 + 12)):
        assert uncorrelated(first.ravel(), other.ravel())
        assert not np.isin(first, other).mean() > 0.01  # none is the other one moved along


def test_seeds_and_offsets_in_tensors():
    one = call("InplaceUniform", **{"from": 0.0, "to": 1.0}, selfRef=empty((50,)), seed=9, offset=16)
    two = call("InplaceUniformTensor", **{"from": 0.0, "to": 1.0}, selfRef=empty((50,)), seedTensor=tensor([9], "I64"),
               offsetTensor=tensor([12], "I64"), offset=4)  # fmt: skip
    np.testing.assert_array_equal(one, two)
    one = call("InplaceNormal", selfRef=empty((50,)), mean=0.0, std=1.0, seed=9, offset=16)
    two = call("InplaceNormalTensor", selfRef=empty((50,)), mean=0.0, std=1.0, seedTensor=tensor([9], "I64"),
               offsetTensor=tensor([16], "I64"), offset=0)  # fmt: skip
    np.testing.assert_array_equal(one, two)
    for kind in ("I64", "F16"):
        one = call("InplaceRandom", **{"from": 0, "to": 9}, selfRef=empty((50,), kind), seed=9, offset=16)
        two = call("InplaceRandomTensor", **{"from": 0, "to": 9}, selfRef=empty((50,), kind), seedTensor=tensor([9], "I64"),
                   offsetTensor=tensor([12], "I64"), offset=4)  # fmt: skip
        np.testing.assert_array_equal(one, two)
    one = call("DropoutGenMaskV2", shape=[30, 50], prob=0.3, seed=9, offset=16, probDataType="F32", out=empty((192,), "U8"))
    two = call("DropoutGenMaskV2Tensor", shape=[30, 50], prob=0.3, seedTensor=tensor([9], "I64"),
               offsetTensor=tensor([4], "I64"), offset=12, probDataType="F32", out=empty((192,), "U8"))  # fmt: skip
    np.testing.assert_array_equal(one, two)
    weights = np.ones((3, 7))
    one = call("Multinomial", self=tensor(weights), numsamples=4, replacement=False, seed=9, offset=16,
               out=empty((3, 4), "I64"))  # fmt: skip
    two = call("MultinomialTensor", self=tensor(weights), numsamples=4, replacement=False, seedTensor=tensor([9], "I64"),
               offsetTensor=tensor([4], "I64"), offset=12, out=empty((3, 4), "I64"))  # fmt: skip
    np.testing.assert_array_equal(one, two)


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("kind", ["I64", "F32", "U8", "C64"])
def test_random_integers(kind):
    values = np.real(call("InplaceRandom", **{"from": 3, "to": 9}, selfRef=empty((COUNT,), kind), seed=1,
                          offset=0)).astype(int)  # fmt: skip
    counts = np.bincount(values, minlength=9)
    assert counts[:3].sum() == 0 and counts.size == 9
    assert (((counts[3:] - COUNT / 6) ** 2) / (COUNT / 6)).sum() < 30  # chi square of 5 degrees: once in 10^5


def test_random_integers_of_the_widest_range():
    values = call("InplaceRandom", **{"from": -(2**63), "to": 2**63 - 1}, selfRef=empty((COUNT,), "I64"), seed=1, offset=0)
    assert_uniform(values.astype(np.float64), -(2.0**63), 2.0**63)


def test_bernoulli():
    for kind in ["F32", "B", "I8", "F64"]:
        for probability in (0.0, 0.3, 1.0):
            values = np.asarray(call("InplaceBernoulli", selfRef=empty((COUNT,), kind), prob=probability, seed=4,
                                     offset=8), float)  # fmt: skip
            assert set(np.unique(values)) <= {0.0, 1.0}
            assert abs(values.mean() - probability) <= 5 * np.sqrt(probability * (1 - probability) / COUNT)
    chances = np.resize([0.0, 0.25, 1.0], COUNT)
    values = call("BernoulliTensor", self=empty((COUNT,)), prob=tensor(chances, "F64"), seed=4, offset=8,
                  out=empty((COUNT,)))  # fmt: skip
    means = values.reshape(-1, 3).mean(axis=0)
    assert means[0] == 0 and means[2] == 1 and abs(means[1] - 0.25) < 5 * np.sqrt(0.1875 * 3 / COUNT)
    held = tensor(np.full((4, 4), 9.0))
    part = call("InplaceBernoulliTensor", selfRef=held, prob=tensor(np.ones((4, 2))), seed=4, offset=8)
    np.testing.assert_array_equal(part.ravel(), [1] * 8 + [9] * 8)  # as many as prob has, by position


def test_normal_with_means_and_deviations():
    means, deviations = np.array([[0.0], [100.0]]), np.array([1.0, 4.0, 0.0])
    wide = np.repeat(deviations, COUNT // 3)
    values = call("NormalTensorTensor", mean=tensor(means), std=tensor(wide), seed=2, offset=0, out=empty((2, wide.size)))
    for row, mean in enumerate((0, 100)):
        assert_normal(values[row, : COUNT // 3], mean, 1)
        assert_normal(values[row, COUNT // 3 : 2 * (COUNT // 3)], mean, 4)
        assert (values[row, 2 * (COUNT // 3) :] == mean).all()
    plain = call("NormalFloatFloat", mean=3.0, std=2.0, seed=2, offset=0, out=empty((50,)))
    np.testing.assert_array_equal(
        plain, call("NormalTensorFloat", mean=tensor([3.0]), std=2.0, seed=2, offset=0, out=empty((50,))))
    np.testing.assert_array_equal(
        plain, call("NormalFloatTensor", mean=3.0, std=tensor(np.full(50, 2.0)), seed=2, offset=0, out=empty((50,))))


def test_permutations():
    for size in (0, 1, 2, 1000):
        for kind in ("I64", "I32", "F64"):
            values = call("Randperm", n=size, seed=3, offset=0, out=empty((size,), kind, "gaps"))
            np.testing.assert_array_equal(np.sort(values), np.arange(size))
    seen = [tuple(call("Randperm", n=3, seed=seed, offset=0, out=empty((3,), "I64"))) for seed in range(1200)]
    counts = [seen.count(order) for order in set(seen)]
    assert len(counts) == 6 and sum((count - 200) ** 2 / 200 for count in counts) < 30


def test_multinomial():
    weights = np.array([0.0, 1.0, 3.0, 0.0, 4.0])
    rows = rounded(np.stack([weights, weights[::-1]]), "F32")
    for kind in ("F32", "F16", "F64"):
        drawn = call("Multinomial", self=tensor(rows, kind, "gaps"), numsamples=COUNT, replacement=True, seed=8, offset=4,
                     out=empty((2, COUNT), "I64"))  # fmt: skip
        for row, shares in zip(drawn, rows / 8):
            counts = np.bincount(row.astype(int), minlength=5)
            assert (np.abs(counts - COUNT * shares) <= 5 * np.sqrt(COUNT * shares * (1 - shares))).all()


def test_multinomial_draws_each_class_once():
    """Both draws of two of three classes: the chance of an order is w1 / W * w2 / (W - w1)."""
    weights, rows = np.array([1.0, 2.0, 5.0]), 20_000
    drawn = call("Multinomial", self=tensor(np.tile(weights, (rows, 1))), numsamples=2, replacement=False, seed=8, offset=4,
                 out=empty((rows, 2), "I64"))  # fmt: skip
    for first in range(3):
        for second in range(3):
            chance = 0 if first == second else weights[first] / 8 * weights[second] / (8 - weights[first])
            found = ((drawn[:, 0] == first) & (drawn[:, 1] == second)).sum()
            assert abs(found - rows * chance) <= 5 * np.sqrt(rows * chance * (1 - chance))
    all_of = call("Multinomial", self=tensor([0.0, 1.0, 0.0, 2.0]), numsamples=4, replacement=False, seed=8, offset=4,
                  out=empty((4,), "I64"))  # fmt: skip
    assert set(all_of[:2]) == {1, 3} and list(all_of[2:]) == [0, 2]


# ---- dropout -------------------------------------------------------------------------------------------------------------


def mask_of(shape, drop, seed=1, offset=12):
    size = -(-int(np.prod(shape)) // 128) * 16
    return call("DropoutGenMaskV2", shape=list(shape), prob=drop, seed=seed, offset=offset, probDataType="F32",
                out=empty((size,), "U8"))  # fmt: skip


def kept(mask, count):
    return np.unpackbits(np.asarray(mask, np.uint8), bitorder="little")[:count].astype(bool)


@pytest.mark.parametrize("shape", [(1,), (5, 7), (300, 401), (), (3, 0)])
def test_dropout_masks(shape):
    count = int(np.prod(shape))
    for drop in (0.0, 0.1, 0.75, 1.0):
        mask = mask_of(shape, drop)
        share = kept(mask, count).mean() if count else 1 - drop
        assert abs(share - (1 - drop)) <= 5 * np.sqrt(drop * (1 - drop) / max(count, 1))
        assert not kept(mask, mask.size * 8)[count:].any()
    if count > 1000:
        assert uncorrelated(kept(mask_of(shape, 0.5), count), kept(mask_of(shape, 0.5, offset=24), count))


def test_dropout_forward_and_backward():
    rng = np.random.default_rng(0)
    for kind, out_kind in [("F32", "F32"), ("F16", "F16"), ("BF16", "BF16"), ("F32", "F16"), ("F16", "F32")]:
        for layout, mask_layout in [("row-major", "row-major"), ("reversed", "gaps")]:
            x, drop = rounded(rng.normal(size=(37, 41)), kind), 0.25
            mask = mask_of(x.shape, drop)
            expected = rounded(np.where(kept(mask, x.size).reshape(x.shape), x / (1 - drop), 0), out_kind)
            given = {"mask": tensor(mask, "U8", mask_layout), "out": empty(x.shape, out_kind, layout)}
            actual = call("DropoutDoMask", self=tensor(x, kind, layout), prob=drop, **given)
            np.testing.assert_allclose(actual, expected,
                                       rtol=2.0**-7 if out_kind == "BF16" else 2.0**-10 if "16" in out_kind else 3e-7)  # fmt: skip
            np.testing.assert_array_equal(actual == 0, expected == 0)
            again = call("DropoutBackward", gradOutput=tensor(x, kind, layout), scale=1 / (1 - drop), **given)
            np.testing.assert_array_equal(again, actual)
    x = np.arange(6.0).reshape(2, 3)
    for drop, expected in [(0.0, x), (1.0, 0 * x)]:  # whatever the mask
        np.testing.assert_array_equal(
            call("DropoutDoMask", self=tensor(x), mask=tensor(np.full(16, 170), "U8"), prob=drop, out=empty((2, 3))),
            expected)  # fmt: skip


def test_dropout_in_one_call():
    x = np.random.default_rng(0).uniform(1, 2, (50, 60))
    bytes_of = -(-x.size // 128) * 16

    def dropout(p, train=True):
        return call("Dropout", input=tensor(x), p=p, train=train, seed=1, offset=12, out=empty(x.shape),
                    maskOut=empty((bytes_of,), "U8"))  # fmt: skip

    out, mask = dropout(0.5)
    np.testing.assert_array_equal(mask, mask_of(x.shape, 0.5))
    np.testing.assert_allclose(out, np.where(kept(mask, x.size).reshape(x.shape), 2 * rounded(x, "F32"), 0))
    untouched = empty((bytes_of,), "U8").values()
    for p, train, expected in [(0.5, False, rounded(x, "F32")), (0.0, True, rounded(x, "F32")), (1.0, True, 0 * x)]:
        out, mask = dropout(p, train)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(mask, untouched)
    out, mask = call("DropoutV3", input=tensor(x), optionalNoiseShape=None, p=0.5, seed=1, offset=12, out=empty(x.shape),
                     maskOut=empty((bytes_of,), "U8"))  # fmt: skip
    np.testing.assert_array_equal(mask, mask_of(x.shape, 0.5))


# ---- leaky units with random slopes ----------------------------------------------------------------------------------------


def test_random_slopes():
    x = rounded(np.random.default_rng(0).normal(size=(100, 300)), "F32")
    out, noise = empty(x.shape, "F32", "reversed"), empty(x.shape)
    noise_values, values = call("RReluWithNoise", self=tensor(x, "F32", "gaps"), noise=noise, lower=0.125, upper=0.25,
                                training=True, seed=1, offset=12, out=out)  # fmt: skip
    np.testing.assert_array_equal(noise_values[x > 0], 1)
    assert_uniform(noise_values[x <= 0], 0.125, 0.25)
    np.testing.assert_allclose(values, x * noise_values, rtol=1e-6)
    held, factors = tensor(x), empty(x.shape)
    again = call("InplaceRReluWithNoise", self=held, noise=factors, lower=0.125, upper=0.25, training=True, seed=1,
                 offset=12)  # fmt: skip
    np.testing.assert_array_equal(again[0], values)
    np.testing.assert_array_equal(again[1], noise_values)
    more = empty((x.size + 5,))
    call("RReluWithNoise", self=tensor(x), noise=more, lower=0.125, upper=0.25, training=True, seed=1, offset=12,
         out=empty(x.shape))  # fmt: skip
    np.testing.assert_array_equal(more.values()[: x.size].reshape(x.shape), noise_values)
    np.testing.assert_array_equal(more.values()[x.size :], empty((x.size + 5,)).values()[x.size :])


def test_random_slopes_without_training():
    x, noise = rounded([-2.0, 0.0, 3.0], "F32"), empty((3,))
    _, values = call("RReluWithNoise", self=tensor(x), noise=noise, lower=0.125, upper=0.375, training=False, seed=1,
                     offset=12, out=empty((3,)))  # fmt: skip
    np.testing.assert_array_equal(values, [-0.5, 0, 3])
    np.testing.assert_array_equal(noise.values(), empty((3,)).values())


def test_longer_noise_must_be_contiguous():
    x = tensor(np.ones((2, 3)))
    for shape, layout, expected in [((2, 3), "gaps", 0), ((7,), "row-major", 0), ((7,), "gaps", 161002)]:
        scalars = [pages.scalar(value) for value in (0.125, 0.25)]
        noise, out = empty(shape, "F32", layout), empty((2, 3))
        status, size, executor = support.plan("aclnnRReluWithNoise", x, noise, *[one.handle for one in scalars], True,
                                              1, 12, out)  # fmt: skip
        assert status == expected
        if status == 0:
            support.execute("aclnnRReluWithNoise", size, executor)
