"""Normalizations, softmax and their gradients against float64 NumPy, for every prefix, masks and uneven sizes."""

import math

import numpy
import pytest

from tests import native
from tests.conformance.ftdsp.calls import ELEMENT, Input, Output, Value, compute
from tests.ftdsp.test_arrays import FLOATS, masks_agree, values


def close(got, expected, prefix, scale=1.0, slack=0.0):
    """Within one rounding of the element type of a float64 result; `scale`: sizes that cancel, in float32; `slack`: in
    units of float32's rounding."""
    expected = numpy.asarray(expected, numpy.float64).ravel()
    eps = float(numpy.finfo(ELEMENT[prefix]).eps)
    bound = numpy.abs(expected) * eps * 0.51 + slack * 2.0**-24 * (numpy.abs(expected) + scale) + (2.0**-25 if prefix == "hp" else 0)
    assert (numpy.abs(got.astype(numpy.float64) - expected) <= bound).all(), numpy.abs(got - expected).max()


def numbers(**given):
    return [Value(name, value) for name, value in given.items()]


def parameters(prefix, count, seed):
    return values(prefix, count, seed, 0.5, 2)


LINES = [(1, 1, 4), (2, 3, 7), (4, 5, 1030), (3, 64, 1), (1, 2, 5003), (0, 3, 4), (2, 0, 4)]


@pytest.mark.parametrize("shape", LINES, ids=str)
@pytest.mark.parametrize("prefix", FLOATS)
def test_instancenorm(prefix, shape):
    batch, channel, inner = shape
    x, gamma, beta = values(prefix, shape), parameters(prefix, channel, 1), values(prefix, channel, 2)
    wide = x.astype(float)
    mean, variance = (wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)) if x.size else (0, 1)
    expected = (wide - mean) / numpy.sqrt(variance + 1e-5) * gamma[:, None].astype(float) + beta[:, None].astype(float)
    output = masks_agree(f"{prefix}_instancenorm_s", [
        Input("input", x), Input("gamma", gamma), Input("beta", beta), Output("output", x.size, ELEMENT[prefix]),
        *numbers(batch=batch, channel=channel, inner_size=inner, epsilon=1e-5)], "output")
    close(output, expected, prefix, slack=2)


@pytest.mark.parametrize("prefix", FLOATS)
def test_instancenorm_of_neighbours(prefix):
    """Nearly all elements are nearer to the mean than float32 holds it."""
    x, one = numpy.full((1, 1, 10007), 1003, ELEMENT[prefix]), numpy.ones(1, ELEMENT[prefix])
    x[0, 0, 5] = 1003.5
    wide = x.astype(float)
    output = masks_agree(f"{prefix}_instancenorm_s", [
        Input("input", x), Input("gamma", one), Input("beta", 0 * one), Output("output", x.size, ELEMENT[prefix]),
        *numbers(batch=1, channel=1, inner_size=10007, epsilon=1e-7)], "output")
    close(output, (wide - wide.mean()) / numpy.sqrt(wide.var() + 1e-7), prefix, slack=2)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, 0.5, 2.5])
@pytest.mark.parametrize("shape", LINES[:5], ids=str)
@pytest.mark.parametrize("prefix", FLOATS)
def test_lpnorm(prefix, shape, p):
    batch, channel, inner = shape
    x, gamma, beta = values(prefix, shape), parameters(prefix, channel, 1), values(prefix, channel, 2)
    norm = (numpy.sum(numpy.abs(x.astype(float)) ** p, -1, keepdims=True) + 1e-5) ** (1 / p)
    expected = x / norm * gamma[:, None].astype(float) + beta[:, None].astype(float)
    output = masks_agree(f"{prefix}_lpnorm_s", [
        Input("input", x), Input("gamma", gamma), Input("beta", beta), Output("output", x.size, ELEMENT[prefix]),
        *numbers(p=p, batch=batch, channel=channel, inner_size=inner, epsilon=1e-5)], "output")
    close(output, expected, prefix, slack=2)


@pytest.mark.parametrize(("batch", "unit", "channel", "groups"),
                         [(1, 2, 4, 2), (3, 7, 12, 3), (2, 33, 64, 8), (2, 1030, 6, 6),
                          (1, 5, 5, 1)])  # fmt: skip
@pytest.mark.parametrize("prefix", FLOATS)
def test_groupnorm(prefix, batch, unit, channel, groups):
    x, scale, offset = values(prefix, (batch, unit, channel)), parameters(prefix, channel, 1), values(prefix, channel, 2)
    grouped = x.astype(float).reshape(batch, unit, groups, -1)
    mean, variance = grouped.mean((1, 3), keepdims=True), grouped.var((1, 3), keepdims=True)
    expected = ((grouped - mean) / numpy.sqrt(variance + 1e-5)).reshape(x.shape) * scale.astype(float) + offset.astype(float)
    parameters_ = [Input("input", x), Input("scale", scale), Input("offset", offset),
                   Output("mean", batch * groups, ELEMENT[prefix]), Output("variance", batch * groups, ELEMENT[prefix]),
                   *numbers(epsilon=1e-5, num_groups=groups, channel=channel, unit=unit, batch=batch)]
    output = Output("output", x.size, ELEMENT[prefix])
    results = with_mask(f"{prefix}_groupnormfusion", parameters_, [output])
    close(results["output"], expected, prefix, slack=2)
    close(results["mean"], mean, prefix, slack=1)
    close(results["variance"], variance, prefix, slack=1)


@pytest.mark.parametrize("prefix", FLOATS)
def test_statistics_of_no_elements(prefix):
    """They are those of an empty sum divided by 0."""
    kind, none = ELEMENT[prefix], numpy.zeros(0, ELEMENT[prefix])
    for unit, channel in ((0, 4), (3, 0)):
        given = [Input("input", none), Input("scale", numpy.ones(channel, kind)), Input("offset", numpy.ones(channel, kind)),
                 Output("mean", 6, kind), Output("variance", 6, kind),
                 *numbers(epsilon=1e-5, num_groups=2, channel=channel, unit=unit, batch=3)]  # fmt: skip
        found = with_mask(f"{prefix}_groupnormfusion", given, [Output("output", 0, kind)])
        assert numpy.isnan([found["mean"], found["variance"]]).all()
    for rows, parameters_ in ((5, 2), (2, 5)):
        pointers = [Input("gamma", numpy.ones(4, kind)), Input("beta", numpy.ones(4, kind))]
        output, statistics = Output("output", 0, kind), [Output("mean", rows, kind), Output("variance", rows, kind)]
        order = [output, *pointers] if prefix == "fp" else [*pointers, output]
        given = [Input("input", none), *order, *statistics,
                 *numbers(param_inner=4, param_outer=parameters_, inner=0, outer=rows, epsilon=1e-5, length=0)]
        for name in ("mean", "variance"):
            assert numpy.isnan(compute(f"{prefix}_layernormfusion_s", given)[name]).all()


@pytest.mark.parametrize("prefix", FLOATS)
def test_groupnorm_of_neighbours(prefix):
    """Nearly all elements are nearer to the mean than float32 holds it."""
    shape, ones = (1, 10007, 8), numpy.ones(8, ELEMENT[prefix])
    x = numpy.full(shape, 1003, ELEMENT[prefix])
    x[0, [5, 7], [0, 4]] = 1003.5
    grouped = x.astype(float).reshape(10007, 2, 4)
    expected = (grouped - grouped.mean((0, 2), keepdims=True)) / numpy.sqrt(grouped.var((0, 2), keepdims=True) + 1e-7)
    found = with_mask(f"{prefix}_groupnormfusion", [
        Input("input", x), Input("scale", ones), Input("offset", 0 * ones), Output("mean", 2, ELEMENT[prefix]),
        Output("variance", 2, ELEMENT[prefix]), *numbers(epsilon=1e-7, num_groups=2, channel=8, unit=10007, batch=1)],
        [Output("output", x.size, ELEMENT[prefix])])
    close(found["output"], expected, prefix, slack=2)


def with_mask(name, before, behind):
    """A function whose core_mask stands between its parameters; every mask and the _p form give the same bits."""
    found = None
    for mask in (0xFF, 1, 0x0B, None):
        middle = [] if mask is None else [Value("core_mask", mask)]
        symbol = f"{name}_{'p' if mask is None else 's'}"
        result = plain(symbol, [*before, *middle, *behind])
        assert found is None or all(result[key].tobytes() == found[key].tobytes() for key in found)
        found = result
    return found


def plain(symbol, given):
    from tests.conformance.ftdsp.calls import Invocation, clear
    from understudy.ftdsp import last_error

    clear()
    call = Invocation(symbol, given, {}, None)
    call.run()
    assert last_error().rule == "", last_error()
    return {p.name: call.output(p.name, p.dtype) for p in given if isinstance(p, Output)}


@pytest.mark.parametrize(("outer", "inner", "param_inner", "param_outer"), [
    (3, 4, 4, 3), (5, 12, 4, 5), (7, 6, 6, 2), (33, 1030, 1030, 40), (4, 9, 3, 1), (0, 4, 4, 3)])  # fmt: skip
@pytest.mark.parametrize("prefix", ["fp", "hp", "i8"])
def test_layernorm(prefix, outer, inner, param_inner, param_outer):
    low, high = (-100, 100) if prefix == "i8" else (-3, 3)
    repeats = outer <= param_outer
    count = param_inner if repeats else -(-outer // param_outer) * inner
    x = values(prefix, (outer, inner), 0, low, high)
    gamma, beta = values(prefix, count, 1, 1, 30), values(prefix, count, 2, -20, 20)
    wide = x.astype(float)
    mean, variance = (wide.mean(-1), wide.var(-1)) if outer else (numpy.zeros(0), numpy.ones(0))
    if repeats:
        of_row = [numpy.tile(p.astype(float), inner // param_inner)[None] for p in (gamma, beta)]
    else:
        of_row = [p.astype(float).reshape(-1, inner)[numpy.arange(outer) // param_outer] for p in (gamma, beta)]
    expected = (wide - mean[:, None]) / numpy.sqrt(variance[:, None] + 1e-5) * of_row[0] + of_row[1]
    kind = numpy.float32 if prefix == "i8" else ELEMENT[prefix]
    statistics = [Output("out_mean", outer, kind), Output("out_variance", outer, kind)]
    pointers = [Input("x", x), Input("gamma", gamma), Input("beta", beta), Output("y", x.size, ELEMENT[prefix]), *statistics]
    if prefix == "fp":
        pointers = [pointers[0], pointers[3], pointers[1], pointers[2], *statistics]
    tail = numbers(param_inner_size=param_inner, param_outer_size=param_outer, norm_inner_size=inner, norm_outer_size=outer,
                   epsilon=1e-5, length=x.size)
    results = compute(f"{prefix}_layernormfusion_s", [*pointers, *tail])
    again = [compute(f"{prefix}_layernormfusion_s", [*pointers, *tail], mask) for mask in (1, 0x0B)]
    again.append(compute(f"{prefix}_layernormfusion_p", [*pointers, *tail, *numbers(task_id=0, thread_num=1)]))
    assert all(other["y"].tobytes() == results["y"].tobytes() for other in again)
    if prefix == "i8":
        assert numpy.array_equal(results["y"], numpy.clip(numpy.trunc(expected), -128, 127).ravel())
    else:
        close(results["y"], expected, prefix, scale=40, slack=2)
    close(results["out_mean"], mean, "fp" if prefix == "i8" else prefix, slack=1)
    close(results["out_variance"], variance, "fp" if prefix == "i8" else prefix, slack=1)
    without = [Value(p.name, None) if p.name.startswith("out_") else p for p in pointers]
    assert compute(f"{prefix}_layernormfusion_s", [*without, *tail])["y"].tobytes() == results["y"].tobytes()


def layer_gradient(x, dy, var, mean, gamma, param_num):
    xh = (x - mean[:, None]) / numpy.sqrt(var[:, None] + 1e-12)
    weights = numpy.resize(gamma, x.size).reshape(x.shape)
    slope = dy * weights
    dx = (slope - slope.mean(-1, keepdims=True) - xh * (slope * xh).mean(-1, keepdims=True)) / numpy.sqrt(var[:, None] + 1e-12)
    return dx, (dy * xh).reshape(-1, param_num).sum(0), dy.reshape(-1, param_num).sum(0)


@pytest.mark.parametrize(("rows", "length", "param_num"), [(3, 4, 4), (5, 12, 4), (6, 4, 8), (17, 1030, 1030)])
@pytest.mark.parametrize("prefix", FLOATS)
def test_layernormgrad(prefix, rows, length, param_num):
    x, dy, gamma = values(prefix, (rows, length)), values(prefix, (rows, length), 1), parameters(prefix, param_num, 2)
    mean, var = (f(x.astype(float), axis=-1).astype(ELEMENT[prefix]) for f in (numpy.mean, numpy.var))
    wide = [a.astype(float) for a in (x, dy, var, mean, gamma)]
    expected = layer_gradient(*wide, param_num)
    given = [Input("x", x), Input("dy", dy), Input("var", var), Input("mean", mean), Input("gamma", gamma),
             *numbers(param_num=param_num, param_size=x.size // param_num, block_num=rows, block_size=length),
             Output("dx", x.size, ELEMENT[prefix]), Output("dg", param_num, ELEMENT[prefix]),
             Output("db", param_num, ELEMENT[prefix])]
    for name, wanted in zip(("dx", "dg", "db"), expected):
        close(masks_agree(f"{prefix}_layernormgrad_s", given, name), wanted, prefix, scale=length, slack=0.01)


@pytest.mark.parametrize("train", [0, 1])
@pytest.mark.parametrize(("batch", "channel"), [(3, 1), (7, 5), (1030, 3), (64, 257), (1, 4), (0, 3)])
@pytest.mark.parametrize("prefix", FLOATS)
def test_batchnormgrad(prefix, batch, channel, train):
    x, dy, scale = values(prefix, (batch, channel)), values(prefix, (batch, channel), 1), parameters(prefix, channel, 2)
    wide = x.astype(float)
    mean = wide.mean(0).astype(ELEMENT[prefix]) if batch else values(prefix, channel)
    invar = (1 / numpy.sqrt(wide.var(0) + 0.25)).astype(ELEMENT[prefix]) if batch else values(prefix, channel)
    m, i, s, d = (a.astype(float) for a in (mean, invar, scale, dy))
    xh = (wide - m) * i
    dbias, dscale = d.sum(0), (d * xh).sum(0)
    dx = s * i / max(batch, 1) * (batch * d - dbias - xh * dscale) if train else s * i * d
    given = [Input("x", x), Input("dy", dy), Input("mean", mean), Input("invar", invar), Input("scale", scale),
             *numbers(batch=batch, channel=channel, is_train=train), Output("dx", x.size, ELEMENT[prefix]),
             Output("dbias", channel, ELEMENT[prefix]), Output("dscale", channel, ELEMENT[prefix])]
    for name, wanted in (("dx", dx), ("dbias", dbias), ("dscale", dscale)):
        close(masks_agree(f"{prefix}_batchnormgrad_s", given, name), wanted, prefix, scale=10 + math.sqrt(batch), slack=4)


@pytest.mark.parametrize(("unit", "channel"), [(1, 1), (3, 4), (128, 64), (33, 1030), (0, 3)])
@pytest.mark.parametrize("prefix", ["fp", "hp", "i8"])
def test_batchnorm(prefix, unit, channel):
    low, high = (-100, 100) if prefix == "i8" else (-3, 3)
    x = values(prefix, (unit, channel), 0, low, high)
    mean, variance = values("fp", channel, 1), values("fp", channel, 2, 0.001, 0.5)
    expected = (x.astype(float) - mean.astype(float)) / numpy.sqrt(variance.astype(float) + float(numpy.float32(1e-5)))
    output = masks_agree(f"{prefix}_batchnorm_s", [
        Input("input", x), Output("output", x.size, ELEMENT[prefix]), Input("mean", mean), Input("variance", variance),
        *numbers(unit=unit, channel=channel, epsilon=1e-5)], "output")
    if prefix == "i8":
        assert numpy.array_equal(output, numpy.clip(numpy.trunc(expected), -128, 127).ravel())
    else:
        close(output, expected, prefix, slack=4)
    if prefix != "i8":
        scale, offset = parameters(prefix, channel, 3), values(prefix, channel, 4)
        statistics = [a.astype(ELEMENT[prefix]) for a in (mean, variance)]
        root = numpy.sqrt(statistics[1].astype(float) + float(numpy.float32(1e-5)))
        fused = scale.astype(float) * (x.astype(float) - statistics[0].astype(float)) / root + offset.astype(float)
        results = with_mask(f"{prefix}_fusedbatchnorm", [
            Input("input", x), Input("scale", scale), Input("offset", offset), Input("mean", statistics[0]),
            Input("variance", statistics[1]), *numbers(epsilon=1e-5, channel=channel, unit=unit)],
            [Output("output", x.size, ELEMENT[prefix])])
        close(results["output"], fused, prefix, scale=20, slack=2)


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1030, 1), (5, 1, 3), (3, 7, 33), (64, 100, 1), (0, 3, 2), (2, 3, 0)],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("prefix", ["fp", "hp", "i8"])
def test_softmax(prefix, shape):
    outer, axis, inner = shape
    x = values(prefix, shape, 0, *((-100, 100) if prefix == "i8" else (-9, 9)))
    wide = x.astype(float)
    powers = numpy.exp(wide - (wide.max(1, keepdims=True) if x.size else 0))
    expected = powers / (powers.sum(1, keepdims=True) if x.size else 1)
    kind = numpy.float32 if prefix == "i8" else ELEMENT[prefix]
    given = [Input("input_ptr", x), Output("output_ptr", x.size, ELEMENT[prefix]), Output("sum_data", outer * inner, kind),
             *numbers(axis=1, n_dim=3, inner_size=inner, outter_size=outer, axis_size=axis)]
    output = masks_agree(f"{prefix}_softmax_s", given, "output_ptr")
    if prefix == "i8":
        assert (numpy.abs(output - expected.ravel()) < 1).all()  # 1 only where float32 cannot tell it from 1
        assert numpy.array_equal(output == 1, expected.ravel() > 0.999) or expected[(output == 0).reshape(shape)].max() < 1
    else:  # x - max, up to 18, is rounded to float32 before the exponential makes a relative error of it
        close(output, expected, prefix, scale=0, slack=8 + 18)


@pytest.mark.parametrize(("rows", "channels", "radius"),
                         [(1, 4, 1), (7, 96, 5), (3, 5, 0), (2, 33, 1000), (65, 1030, 2), (0, 3, 1),
                          (3, 200, 8), (9, 1030, 40), (2, 50, 49), (1, 17, 8), (1, 18, 9)])  # fmt: skip
@pytest.mark.parametrize("prefix", FLOATS)
def test_lrn(prefix, rows, channels, radius):
    x = values(prefix, (rows, channels))
    settings = numpy.array([1e-1, 0.75, 1], numpy.float32)
    alpha, beta, bias = settings.astype(float)
    squares = numpy.pad(x.astype(float) ** 2, [(0, 0), (min(radius, channels),) * 2])
    sums = sum((squares[:, k:k + channels] for k in range(2 * min(radius, channels) + 1)), numpy.zeros(x.shape))
    addresses = [settings.ctypes.data + offset for offset in (0, 4, 8)]
    given = [Input("input", x), Output("output", x.size, ELEMENT[prefix]),
             Value("params", numpy.array([rows, channels, radius, *addresses], numpy.int64))]
    close(masks_agree(f"{prefix}_lrn_s", given, "output"), x * (bias + alpha * sums) ** -beta, prefix, slack=6)


@pytest.mark.parametrize("large", [1e15, numpy.inf])
def test_lrn_of_small_values_behind_a_large_one(large):
    x = numpy.ones((1, 60), numpy.float32)
    x[0, 3] = large
    settings = numpy.array([1e-1, 0.75, 1], numpy.float32)
    params = numpy.array([1, 60, 8, *(settings.ctypes.data + offset for offset in (0, 4, 8))], numpy.int64)
    found = compute("fp_lrn_s", [Input("input", x), Output("output", 60, numpy.float32), Value("params", params)])["output"]
    alpha = float(settings[0])
    numpy.testing.assert_allclose(found[12:52], (1 + alpha * 17) ** -0.75, rtol=2.0**-22)
    numpy.testing.assert_allclose(found[52:], (1 + alpha * numpy.arange(16, 8, -1)) ** -0.75, rtol=2.0**-22)


def test_worked_numbers():
    """ft-dsp-manual 7."""
    fp = numpy.float32
    settings = numpy.array([0.5, 0.75, 1], fp)
    params = numpy.array([1, 4, 1, *(settings.ctypes.data + offset for offset in (0, 4, 8))], numpy.int64)
    x = [Input("input", fp([1, 2, 3, 4])), Output("output", 4, fp), Value("params", params)]
    numpy.testing.assert_allclose(compute("fp_lrn_s", x)["output"],
                                  [0.390794971, 0.420448208, 0.384036481, 0.567949426], 1e-6)  # fmt: skip
    x = [Input("x", fp([1, 2, 3])), Output("y", 3, fp), Output("sum", 1, fp),
         *numbers(axis=0, n_dim=1, inner=1, outter=1, size=3)]  # fmt: skip
    numpy.testing.assert_allclose(compute("fp_softmax_s", x)["y"], [0.0900305732, 0.244728471, 0.665240956], 1e-6)
    x = [Input("x", fp([1, 2, 3, 6])), Input("g", fp([2])), Input("b", fp([1])), Output("y", 4, fp),
         *numbers(batch=1, channel=1, inner=4, epsilon=1e-5)]
    numpy.testing.assert_allclose(compute("fp_instancenorm_s", x)["y"], [-1.13808688, -0.0690434404, 1, 4.20713032], 1e-6)
    for p, expected in ((2, [0.59999988, -0.79999984]), (1, [0.428570816, -0.571427755])):
        x = [Input("x", fp([3, -4])), Input("g", fp([1])), Input("b", fp([0])), Output("y", 2, fp),
             *numbers(p=p, batch=1, channel=1, inner=2, epsilon=1e-5)]
        numpy.testing.assert_allclose(compute("fp_lpnorm_s", x)["y"], expected, 1e-6)
    for train, expected in ((1, [0.229089164, -0.343618283, 0.114529119]), (0, [1.6035623, 0, -1.6035623])):
        x = [Input("x", fp([1, 2, 4])), Input("dy", fp([1, 0, -1])), Input("mean", fp([7 / 3])),
             Input("invar", fp([0.801781149])),
             Input("scale", fp([2])), *numbers(batch=3, channel=1, train=train), Output("dx", 3, fp), Output("db", 1, fp),
             Output("ds", 1, fp)]  # fmt: skip
        results = compute("fp_batchnormgrad_s", x)
        numpy.testing.assert_allclose(results["dx"], expected, 1e-5, 1e-6)
        numpy.testing.assert_allclose([*results["db"], *results["ds"]], [0, -2.40534345], 1e-6, 1e-7)
    x = [Input("x", fp([1, 2, 4])), Input("dy", fp([1, 0, -1])), Input("var", fp([14 / 9])), Input("mean", fp([7 / 3])),
         Input("gamma", fp([1, 2, 0.5])), *numbers(param_num=3, param_size=1, block_num=1, block_size=3),
         Output("dx", 3, fp),
         Output("dg", 3, fp), Output("db", 3, fp)]  # fmt: skip
    results = compute("fp_layernormgrad_s", x)
    numpy.testing.assert_allclose(results["dg"], [-1.06904497, 0, -1.33630621], 1e-6, 1e-7)
    numpy.testing.assert_allclose(results["dx"], [0.171810798, -0.257716198, 0.0859053992], 2e-6)
    x = [Input("x", numpy.arange(8, dtype=fp)), Input("s", numpy.ones(4, fp)), Input("o", numpy.zeros(4, fp)),
         Output("mean", 2, fp),
         Output("variance", 2, fp), *numbers(epsilon=1e-5, groups=2, channel=4, unit=2, batch=1)]  # fmt: skip
    results = with_mask("fp_groupnormfusion", x, [Output("output", 8, fp)])
    assert results["mean"].tolist() == [2.5, 4.5] and results["variance"].tolist() == [4.25, 4.25]
    numpy.testing.assert_allclose(results["output"],
                                  [-1.2126767, -0.727606019, -1.2126767, -0.727606019, 0.727606019, 1.2126767,
                                   0.727606019, 1.2126767], 1e-6)  # fmt: skip


@pytest.mark.parametrize("compiler", [["gcc", "-std=c11"], ["g++", "-std=c++11", "-x", "c++"]], ids=str)
def test_the_older_list_of_lrn(compiler, tmp_path):
    from understudy import paths

    source = tmp_path / "older.c"
    source.write_text("""
#define FTDSP_LRN_VALUES
#include <lrn.h>
#include <stdio.h>
int main(void)
{
    float x[4] = {1, 2, 3, 4}, y[4], z[4];
    fp_lrn_s(x, y, 1, 4, 1, 0.5f, 0.75f, 1.0f, 0xff);
    fp_lrn_p(x, z, 1, 4, 1, 0.5f, 0.75f, 1.0f);
    printf("%.6f %.6f %.6f %.6f\\n", (double)y[0], (double)y[3], (double)z[1], (double)z[2]);
    return 0;
}
""")
    sdk = paths.STACKS["ftdsp"]
    native.check([*compiler, *native.STRICT, source, "-x", "none", f"-I{sdk.include_paths[0]}", f"-L{sdk.library_path}",
                  "-lftdsp",
                  f"-Wl,-rpath,{sdk.library_path}", "-o", tmp_path / "older"])  # fmt: skip
    assert native.check([tmp_path / "older"]).split() == ["0.390795", "0.567949", "0.420448", "0.384036"]
