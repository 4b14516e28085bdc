"""Local response and divisive normalization against NumPy models that add up every window, and against finite differences
(mcdnn 6.8, 6.10)."""

import itertools

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import run_python
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, LAYOUTS, Tensor, assert_close, differences,
                                      digest_of, gapped_strides, handle, lrn, nhwc_strides, ok, random, run, scale)

TYPES = [FLOAT, DOUBLE, HALF, BFLOAT16]
ULPS = {FLOAT: 4, DOUBLE: 16, HALF: 1, BFLOAT16: 1}
SETTINGS = [(5, 0.1, 0.75, 2.0), (1, 0.5, 0.5, 1.0), (4, 0.3, 1.0, 1e-5), (16, 2.0, 0.6, 0.5), (2, -0.1, 0.75, 3.0)]


def spans(size, n):
    back = (n - 1) // 2
    return [range(max(0, i - back), min(size, i - back + n)) for i in range(size)]


def lrn_sums(x, n, alpha, k):
    return np.stack([k + alpha / n * (x[:, list(span)] ** 2).sum(1) for span in spans(x.shape[1], n)], 1)


def lrn_model(x, n, alpha, beta, k):
    return x * lrn_sums(x, n, alpha, k) ** -beta


def lrn_gradient(x, dy, n, alpha, beta, k):
    sums = lrn_sums(x, n, alpha, k)
    y, dx = x * sums**-beta, dy * sums**-beta
    for centre, span in enumerate(spans(x.shape[1], n)):
        for c in span:
            dx[:, c] -= 2 * alpha * beta / n * x[:, c] * (dy * y / sums)[:, centre]
    return dx


def lrn_forward(descriptor, x, y, alpha=1.0, beta=0.0):
    run("mcdnnLRNCrossChannelForward", handle=handle(), normDesc=descriptor, lrnMode=0, alpha=scale(alpha, x.data_type),
        xDesc=x, x=x, beta=scale(beta, x.data_type), yDesc=y, y=y)


def lrn_backward(descriptor, y, dy, x, dx, alpha=1.0, beta=0.0):
    run("mcdnnLRNCrossChannelBackward", handle=handle(), normDesc=descriptor, lrnMode=0, alpha=scale(alpha,
                                                                                                     x.data_type),
        yDesc=y, y=y, dyDesc=dy, dy=dy, xDesc=x, x=x, beta=scale(beta, x.data_type), dxDesc=dx, dx=dx)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("sizes", [(2, 7, 3, 5), (1, 1, 1, 1), (2, 3, 4, 1), (1, 33, 9, 37), (2, 5, 2, 3, 4),
                                   (1, 600, 5, 5)])
def test_lrn_follows_the_formulas(sizes, setting, data_type):
    descriptor = lrn(*setting)
    x, y = Tensor(random(sizes, data_type, 1), data_type), Tensor(random(sizes, data_type, 2), data_type)
    prior = y.values()
    lrn_forward(descriptor, x, y, 1.5, -0.5)
    model = lrn_model(x.values(), *setting)
    floor = np.abs(1.5 * model) + np.abs(0.5 * prior)
    assert_close(y.values(), 1.5 * model - 0.5 * prior, data_type, ULPS[data_type], floor=floor)
    dy, dx = Tensor(random(sizes, data_type, 3), data_type), Tensor(random(sizes, data_type, 4), data_type)
    prior = dx.values()
    lrn_backward(descriptor, y, dy, x, dx, 0.75, 2.0)  # y as scaled above: it is not read
    model = lrn_gradient(x.values(), dy.values(), *setting)
    largest = np.abs(model).max() + np.abs(dy.values() * lrn_sums(x.values(), setting[0], setting[1], setting[3])
                                           ** -setting[2]).max()
    assert_close(dx.values(), 0.75 * model + 2.0 * prior, data_type, ULPS[data_type] * 2,
                 floor=np.abs(2 * prior) + largest)


@pytest.mark.parametrize("output", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_lrn_layouts_agree_gaps_stay_and_the_old_value_is_not_read(source, output):
    sizes, descriptor = (2, 7, 4, 5), lrn(5, 0.1, 0.75, 2.0)
    x = Tensor(random(sizes, FLOAT, 1), strides=LAYOUTS[source](sizes))
    y = Tensor(np.full(sizes, np.nan), strides=LAYOUTS[output](sizes))
    lrn_forward(descriptor, x, y)
    assert_close(y.values(), lrn_model(x.values(), 5, 0.1, 0.75, 2.0), FLOAT, 4)
    dy = Tensor(random(sizes, FLOAT, 2), strides=LAYOUTS[output](sizes))
    dx = Tensor(np.full(sizes, np.nan), strides=LAYOUTS[source](sizes))
    lrn_backward(descriptor, y, dy, x, dx)
    assert_close(dx.values(), lrn_gradient(x.values(), dy.values(), 5, 0.1, 0.75, 2.0), FLOAT, 4)
    assert y.gaps_untouched() and dx.gaps_untouched()


@pytest.mark.parametrize("data_type", [FLOAT, BFLOAT16])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("size", [1e12, 1e20, 1e30])
def test_lrn_squares_may_leave_the_range_of_float(size, in_place, data_type):
    """Large values in some channels of some positions; the others keep theirs."""
    sizes, setting = (1, 9, 10, 13), (5, 0.1, 0.75, 2.0)
    values, slopes = random(sizes, data_type, 1), random(sizes, data_type, 2)
    values[:, 3:5, :, ::4] *= size
    x, dy = Tensor(values, data_type), Tensor(slopes, data_type)
    y, dx = (x, dy) if in_place else (Tensor(np.zeros(sizes), data_type), Tensor(np.zeros(sizes), data_type))
    exact = x.values()
    lrn_backward(lrn(*setting), y, dy, x, dx)
    expected = lrn_gradient(exact, slopes, *setting)
    floor = np.abs(slopes) * lrn_sums(exact, setting[0], setting[1], setting[3]) ** -setting[2]
    assert_close(dx.values(), expected, data_type, 16, floor=np.maximum(floor, 2.0**-126))
    lrn_forward(lrn(*setting), x, y)
    assert_close(y.values(), lrn_model(exact, *setting), data_type, 16, floor=2.0**-126)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_lrn_gradient_is_that_of_the_forward_function(n):
    sizes, descriptor = (1, 6, 2, 2), lrn(n, 0.5, 0.75, 1.0)
    values, slopes = random(sizes, DOUBLE, 1), random(sizes, DOUBLE, 2)

    def function(x_values):
        y = Tensor(np.zeros(sizes), DOUBLE)
        lrn_forward(descriptor, Tensor(x_values, DOUBLE), y)
        return y.values()

    x, dx = Tensor(values, DOUBLE), Tensor(np.zeros(sizes), DOUBLE)
    lrn_backward(descriptor, Tensor(function(values), DOUBLE), Tensor(slopes, DOUBLE), x, dx)
    np.testing.assert_allclose(dx.values(), differences(function, values, slopes), atol=1e-7)


def divisive_terms(x, means, n, alpha, k):
    """S, and for every element its neighbours' positions."""
    space = x.shape[2:]
    neighbours = {index: list(itertools.product(*(spans(size, n)[i] for size, i in zip(space, index))))
                  for index in np.ndindex(space)}
    sums = np.empty(x.shape)
    for index, around in neighbours.items():
        distances = sum((x[(..., *j)] - means[(..., *index)]) ** 2 for j in around)
        sums[(..., *index)] = k + alpha / n ** len(space) * distances
    return sums, neighbours


def divisive_model(x, means, n, alpha, beta, k):
    return x * divisive_terms(x, means, n, alpha, k)[0] ** -beta


def divisive_gradient(x, means, dy, n, alpha, beta, k):
    sums, neighbours = divisive_terms(x, means, n, alpha, k)
    g = dy * x * -beta * sums ** (-beta - 1) * alpha / n ** (x.ndim - 2)
    dx, dmeans = dy * sums**-beta, np.zeros(x.shape)
    for i, around in neighbours.items():
        for j in around:
            distance = x[(..., *j)] - means[(..., *i)]
            dx[(..., *j)] += 2 * g[(..., *i)] * distance
            dmeans[(..., *i)] -= 2 * g[(..., *i)] * distance
    return dx, dmeans


SCRATCH = Tensor(np.zeros(4096), DOUBLE)


def divisive_forward(descriptor, x, means, y, alpha=1.0, beta=0.0):
    run("mcdnnDivisiveNormalizationForward", handle=handle(), normDesc=descriptor, mode=0, alpha=scale(alpha,
                                                                                                       x.data_type),
        xDesc=x, x=x, means=means, temp=SCRATCH, temp2=SCRATCH, beta=scale(beta, x.data_type), yDesc=y, y=y)


def divisive_backward(descriptor, x, means, dy, dx, dmeans, alpha=1.0, beta=0.0):
    run("mcdnnDivisiveNormalizationBackward", handle=handle(), normDesc=descriptor, mode=0, alpha=scale(alpha,
                                                                                                        x.data_type),
        xDesc=x, x=x, means=means, dy=dy, temp=SCRATCH, temp2=SCRATCH, beta=scale(beta, x.data_type), dxDesc=dx, dx=dx,
        dMeans=dmeans)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("with_means", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16])
@pytest.mark.parametrize("sizes", [(2, 3, 5, 7), (1, 1, 1, 1), (2, 2, 3, 4, 5), (1, 2, 1, 19)])
def test_divisive_normalization_follows_the_formulas(sizes, n, with_means, data_type):
    setting = (n, 0.5, 0.75, 1.0)
    descriptor = lrn(*setting)
    x, means = Tensor(random(sizes, data_type, 1), data_type), Tensor(random(sizes, data_type, 2), data_type)
    m = means.values() if with_means else np.zeros(sizes)
    y = Tensor(random(sizes, data_type, 3), data_type)
    prior = y.values()
    divisive_forward(descriptor, x, means if with_means else None, y, 1.5, -0.5)
    model = divisive_model(x.values(), m, *setting)
    assert_close(y.values(), 1.5 * model - 0.5 * prior, data_type, ULPS[data_type],
                 floor=np.abs(1.5 * model) + np.abs(0.5 * prior))
    dy, dx, dmeans = (Tensor(random(sizes, data_type, seed), data_type) for seed in (4, 5, 6))
    prior_x, prior_means = dx.values(), dmeans.values()
    divisive_backward(descriptor, x, means if with_means else None, dy, dx, dmeans, 0.75, 2.0)
    model_x, model_means = divisive_gradient(x.values(), m, dy.values(), *setting)
    for actual, expected, prior in ((dx, model_x, prior_x), (dmeans, model_means, prior_means)):
        assert_close(actual.values(), 0.75 * expected + 2.0 * prior, data_type, ULPS[data_type],
                     floor=np.abs(2 * prior) + np.abs(expected).max() + 4)
    alone = Tensor(np.full(sizes, np.nan), data_type)
    divisive_backward(descriptor, x, means if with_means else None, dy, alone, None)
    assert_close(alone.values(), model_x, data_type, ULPS[data_type], floor=np.abs(model_x).max() + 4)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_divisive_gradients_are_those_of_the_forward_function(n):
    """Even windows too: the exact gradient, not the neighbourhood of the element itself."""
    sizes, descriptor = (1, 1, 4, 5), lrn(n, 0.5, 0.75, 1.0)
    values, means, slopes = (random(sizes, DOUBLE, seed) for seed in (1, 2, 3))

    def function(x_values, m_values):
        y = Tensor(np.zeros(sizes), DOUBLE)
        divisive_forward(descriptor, Tensor(x_values, DOUBLE), Tensor(m_values, DOUBLE), y)
        return y.values()

    dx, dmeans = Tensor(np.zeros(sizes), DOUBLE), Tensor(np.zeros(sizes), DOUBLE)
    divisive_backward(descriptor, Tensor(values, DOUBLE), Tensor(means, DOUBLE), Tensor(slopes, DOUBLE), dx, dmeans)
    np.testing.assert_allclose(dx.values(), differences(lambda x: function(x, means), values, slopes), atol=1e-7)
    np.testing.assert_allclose(dmeans.values(), differences(lambda m: function(values, m), means, slopes), atol=1e-7)


def test_divisive_distances_from_means_far_from_zero_keep_their_digits():
    """S is a sum of squares of small differences, whatever the size of x and of the means."""
    sizes, setting = (1, 2, 9, 20), (5, 25.0, 0.75, 1.0)
    m = 1000 + random(sizes, FLOAT, 1)
    x, means = Tensor(1000 + random(sizes, FLOAT, 2)), Tensor(m)
    y, dx, dmeans = (Tensor(np.full(sizes, np.nan)) for _ in range(3))
    dy = Tensor(random(sizes, FLOAT, 3))
    divisive_forward(lrn(*setting), x, means, y)
    assert_close(y.values(), divisive_model(x.values(), means.values(), *setting), FLOAT, 4)
    divisive_backward(lrn(*setting), x, means, dy, dx, dmeans)
    expected = divisive_gradient(x.values(), means.values(), dy.values(), *setting)
    for found, model in zip((dx, dmeans), expected):
        assert_close(found.values(), model, FLOAT, 4, floor=np.abs(model).max())


@pytest.mark.parametrize("sizes, at", [((1, 1, 4, 9), (0, 0, 1, 8)), ((1, 1, 4, 9), (0, 0, 3, 0)),
                                       ((1, 1, 3, 3, 9), (0, 0, 1, 2, 8))])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_divisive_nan_spoils_its_neighbours_only(sizes, at, n):
    """Also at the ends of lines and planes, where the next line begins in memory."""
    setting = (n, 0.5, 0.75, 1.0)
    values, slopes = random(sizes, FLOAT, 1), random(sizes, FLOAT, 2)
    values[at] = np.nan
    y, dx = Tensor(np.zeros(sizes)), Tensor(np.zeros(sizes))
    divisive_forward(lrn(*setting), Tensor(values), None, y)
    divisive_backward(lrn(*setting), Tensor(values), None, Tensor(slopes), dx, None)
    expected = divisive_model(values, np.zeros(sizes), *setting)
    gradient, _ = divisive_gradient(values, np.zeros(sizes), slopes, *setting)
    assert (np.isnan(y.values()) == np.isnan(expected)).all()
    assert (np.isnan(dx.values()) == np.isnan(gradient)).all() and np.isfinite(gradient).any()


@pytest.mark.parametrize("strides", [nhwc_strides, gapped_strides])
def test_divisive_layouts_agree_and_gaps_stay(strides):
    sizes, descriptor = (2, 3, 4, 5), lrn(3, 0.5, 0.75, 1.0)
    x, dy = (Tensor(random(sizes, FLOAT, seed), strides=strides(sizes)) for seed in (1, 2))
    y, dx, dmeans = (Tensor(np.full(sizes, np.nan), strides=strides(sizes)) for _ in range(3))
    divisive_forward(descriptor, x, None, y)
    assert_close(y.values(), divisive_model(x.values(), np.zeros(sizes), 3, 0.5, 0.75, 1.0), FLOAT, 4)
    divisive_backward(descriptor, x, None, dy, dx, dmeans)
    expected = divisive_gradient(x.values(), np.zeros(sizes), dy.values(), 3, 0.5, 0.75, 1.0)
    assert_close(dx.values(), expected[0], FLOAT, 4)
    assert_close(dmeans.values(), expected[1], FLOAT, 4)
    assert y.gaps_untouched() and dx.gaps_untouched() and dmeans.gaps_untouched()


@pytest.mark.parametrize("kind", ["lrn", "divisive"])
def test_in_place_equals_out_of_place(kind):
    sizes, descriptor = (2, 5, 6, 7), lrn(5, 0.5, 0.75, 1.0)
    forward = lrn_forward if kind == "lrn" else lambda d, x, y: divisive_forward(d, x, None, y)
    x, y = Tensor(random(sizes, FLOAT, 1)), Tensor(np.zeros(sizes))
    forward(descriptor, x, y)
    forward(descriptor, x, x)
    assert x.bytes() == y.bytes()


def test_descriptors_report_what_they_hold():
    made, n, numbers = ffi.new("mcdnnLRNDescriptor_t *"), ffi.new("unsigned *"), ffi.new("double[3]")
    ok(lib.mcdnnCreateLRNDescriptor(made))
    ok(lib.mcdnnGetLRNDescriptor(made[0], n, numbers, numbers + 1, numbers + 2))
    assert (n[0], list(numbers)) == (5, [1e-4, 0.75, 2.0])
    ok(lib.mcdnnSetLRNDescriptor(made[0], 16, -3.5, 0.01, 1e-5))
    ok(lib.mcdnnGetLRNDescriptor(made[0], n, numbers, numbers + 1, numbers + 2))
    assert (n[0], list(numbers)) == (16, [-3.5, 0.01, 1e-5])
    ok(lib.mcdnnGetLRNDescriptor(made[0], *[ffi.NULL] * 4))
    ok(lib.mcdnnDestroyLRNDescriptor(made[0]))


def digest() -> str:
    outputs, descriptor = [], lrn(5, 0.5, 0.75, 1.0)
    for data_type, layout in itertools.product(TYPES, LAYOUTS.values()):
        sizes = (3, 17, 33, 31)
        x, dy = (Tensor(random(sizes, data_type, seed), data_type, layout(sizes)) for seed in (1, 2))
        y, dx = (Tensor(np.zeros(sizes), data_type, layout(sizes)) for _ in range(2))
        lrn_forward(descriptor, x, y)
        lrn_backward(descriptor, y, dy, x, dx)
        outputs += [y, dx]
        dx = Tensor(np.zeros(sizes), data_type, layout(sizes))
        divisive_backward(descriptor, x, None, dy, dx, None)
        outputs.append(dx)
    return digest_of(outputs)


def test_results_do_not_depend_on_the_number_of_threads():
    source = "from tests.maca.test_mcdnn_lrn import digest; print(digest())"
    assert len({run_python(source, {"UNDERSTUDY_THREADS": threads}) for threads in ("1", "2", "5")}) == 1


def test_the_vendors_second_name_of_a_status():
    assert lib.MCDNN_STATUS_UNSUPPORTED == lib.MCDNN_STATUS_NOT_SUPPORTED == 9
