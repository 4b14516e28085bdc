"""Steps of optimizers and lists with a tensor of scalars, against the pages' formulas in float64."""

import itertools

import numpy
import pytest

from tests import in_step
from tests.ascend.calling import LAYOUTS, call, empty, rounded, tensor

EPSILON = {"F32": 2.0**-19, "F16": 2.0**-9, "BF16": 2.0**-6}
SHAPE = (3, 700)


def state(kind, count):
    """Weight, gradient, m; then means of squares, which are positive."""
    rng = numpy.random.default_rng(count)
    values = [rng.uniform(-1, 1, SHAPE) for _ in range(3)] + [rng.uniform(0.1, 1, SHAPE) for _ in range(count - 3)]
    return [rounded(value, kind) for value in values]


def change(m, v, bias1, bias2, eps):
    return m / bias1 / (numpy.sqrt(v / bias2) + eps)


def close(actual, expected, kind):
    numpy.testing.assert_allclose(actual, expected, EPSILON[kind], 4 * EPSILON[kind])


@pytest.mark.parametrize("kind", EPSILON)
@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_w(kind, amsgrad):
    w, g, m, v, bound = state(kind, 5)
    numbers = {"beta1Power": 0.75, "beta2Power": 0.875, "lr": 0.125, "weightDecay": 0.0625, "beta1": 0.875,
               "beta2": 0.9375, "eps": 2.0**-10}  # fmt: skip
    n = {name: float(rounded(numpy.asarray([value]), kind)[0]) for name, value in numbers.items()}
    new_m, new_v = n["beta1"] * m - (1 - n["beta1"]) * g, n["beta2"] * v + (1 - n["beta2"]) * g * g
    new_v = numpy.maximum(new_v, bound) if amsgrad else new_v
    step = change(new_m, new_v, 1 - n["beta1Power"] * n["beta1"], 1 - n["beta2Power"] * n["beta2"], n["eps"])
    expected = w - n["lr"] * step - n["lr"] * n["weightDecay"] * w, new_m, new_v
    found = call("ApplyAdamW", varRef=tensor(w, kind), mRef=tensor(m, kind, "gaps"), vRef=tensor(v, kind),
                 grad=tensor(g, kind, "reversed"), **{name: tensor([value], kind) for name, value in numbers.items()},
                 maxGradNormOptional=tensor(bound, kind) if amsgrad else None, amsgrad=amsgrad,
                 maximize=True)  # fmt: skip
    for actual, exact in zip(found, expected):
        close(actual, exact, kind)


@pytest.mark.parametrize("kind", EPSILON)
@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_w_v2(kind, amsgrad):
    w, g, m, v, largest = state(kind, 5)
    rate, beta1, beta2, decay, eps, t = 1e-3, 0.9, 0.999, 0.01, 1e-8, 301
    new_m, new_v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    top = numpy.maximum(new_v, largest) if amsgrad else new_v
    expected = [w - rate * change(new_m, top, 1 - beta1**t, 1 - beta2**t, eps) - rate * decay * w, new_m, new_v]
    expected += [top] if amsgrad else []
    found = call("ApplyAdamWV2", varRef=tensor(w, kind), mRef=tensor(m, kind), vRef=tensor(v, kind), grad=tensor(g, kind),
                 maxGradNormOptionalRef=tensor(largest, kind) if amsgrad else None,
                 step=tensor([t - 1], "I64" if amsgrad else "F32"), lr=rate, beta1=beta1, beta2=beta2, weightDecay=decay,
                 eps=eps, amsgrad=amsgrad, maximize=False)  # fmt: skip
    for actual, exact in in_step(found, expected):
        close(actual, exact, kind)


@pytest.mark.parametrize("kind", EPSILON)
@pytest.mark.parametrize("mode", [0, 1])
def test_ema_adam(kind, mode):
    w, g, m, v, s = state(kind, 5)
    rate, average, beta1, beta2, eps, decay, t = 1e-2, 0.9, 0.9, 0.99, 1e-6, 0.1, 7
    gradient = g + decay * w if mode == 0 else g
    new_m, new_v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
    bias = (1 - beta1**t, 1 - beta2**t) if mode == 0 else (1, 1)
    update = change(new_m, new_v, *bias, eps) + (0 if mode == 0 else decay * w)
    new_w = w - rate * update
    found = call("ApplyFusedEmaAdam", grad=tensor(g, kind), varRef=tensor(w, kind), mRef=tensor(m, kind),
                 vRef=tensor(v, kind), sRef=tensor(s, kind), step=tensor([t], "I64"), lr=rate, emaDecay=average,
                 beta1=beta1, beta2=beta2, eps=eps, mode=mode, biasCorrection=mode == 0, weightDecay=decay)  # fmt: skip
    for actual, exact in zip(found, (new_w, new_m, new_v, average * s + (1 - average) * new_w)):
        close(actual, exact, kind)


@pytest.mark.parametrize("name", ["ForeachAddcdivList", "ForeachAddcdivScalarList", "ForeachAddcmulList",
                                  "ForeachAddcmulScalarList"])  # fmt: skip
def test_lists_with_a_tensor_of_scalars(name):
    rng = numpy.random.default_rng(5)
    shapes = [(3, 4), (), (7,), (0,), (2, 600)]
    for kind in ("F32", "F16", "BF16") + (("I32",) if "mul" in name else ()):
        draw = (lambda shape: rng.integers(-4, 5, shape)) if kind == "I32" else (lambda shape: rounded(rng.uniform(0.5, 2, shape), kind))
        x1, x2, x3 = ([draw(shape) for shape in shapes] for _ in range(3))
        scalars = draw((5,))
        found = call(name, **{key: [tensor(one, kind, LAYOUTS[i % 3]) for i, one in enumerate(values)]
                              for key, values in (("x1", x1), ("x2", x2), ("x3", x3))},
                     scalars=tensor(scalars, kind, "gaps"), out=[empty(shape, kind) for shape in shapes])
        for a, b, c, scalar, actual in in_step(x1, x2, x3, scalars, found):
            exact = a + scalar * b * c if "mul" in name else a + b / c * scalar
            numpy.testing.assert_allclose(actual, exact, EPSILON.get(kind, 0) , 0)


@pytest.mark.parametrize(("scale", "steps", "found", "expected"), [
    (8, 0, 0, (8, 1)), (8, 1, 0, (8, 2)), (8, 2, 0, (24, 0)), (8, 2, 1, (4, 0)), (8, 0, numpy.inf, (4, 0)),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_loss_scale(scale, steps, found, expected, kind):
    assert loss_scale(scale, steps, found, kind, 3.0) == expected


@pytest.mark.parametrize("kind, scale, grown",
                         [("F32", 2.0**127, 2 - 2.0**-23), ("F16", 2.0**15, 2 - 2.0**-10),
                          ("BF16", 2.0**127, 2 - 2.0**-7)])  # fmt: skip
def test_loss_scale_at_the_end_of_its_type(kind, scale, grown):
    """A scale that would overflow stays, as in PyTorch: half a last place above the largest number that is so."""
    assert loss_scale(scale, 2, 0, kind, grown) == (scale * grown, 0)
    assert loss_scale(scale, 2, 0, kind, (grown + 2) / 2) == (scale, 0)


def loss_scale(scale, steps, found, kind, growth):
    result = call("AmpUpdateScale", currentScale=tensor([scale], kind), growthTracker=tensor([steps], "I32"),
                  foundInf=tensor([found], kind), growthFactor=growth, backoffFactor=0.5, growthInterval=3,
                  updatedScale=empty((1,), kind), updatedGrowthTracker=empty((1,), "I32"))  # fmt: skip
    return tuple(float(value[0]) for value in result)


@pytest.mark.parametrize("kind, layout", list(zip(EPSILON, LAYOUTS)))
@pytest.mark.parametrize("with_buffers, scale", [(True, 4.0), (True, None), (False, 2.0), (False, None)])
def test_fused_sgd(kind, layout, with_buffers, scale):
    decay, moment, rate, dampening = 0.0625, 0.75, 0.125, 0.25
    for nesterov, maximize, first in itertools.product((False, True), repeat=3):
        rng = numpy.random.default_rng(5)
        lists = [[rounded(rng.uniform(-1, 1, shape), kind) for shape in (SHAPE, (5,), ())] for _ in range(3)]
        expected = ([], [], [])
        for w, g, v in zip(*lists):
            g = g / scale if scale else g
            whole = (-g if maximize else g) + decay * w
            v = whole if first else moment * v + (1 - dampening) * whole
            step = whole if not with_buffers else whole + moment * v if nesterov else v
            for results, value in zip(expected, (w - rate * step, g, v)):
                results.append(value)
        given = [[tensor(one, kind, layout) for one in values] for values in lists]
        found = call("FusedSgd", paramsRef=given[0], gradsRef=given[1],
                     momentumBufferListOptionalRef=given[2] if with_buffers else None,
                     gradScaleOptional=tensor([scale] if with_buffers else scale) if scale else None, weightDecay=decay, momentum=moment, lr=rate,
                     dampening=dampening, nesterov=nesterov, maximize=maximize, isFirstStep=first)  # fmt: skip
        for actual, exact in zip(found, expected):
            for one, other in in_step(actual, exact):
                close(one, other, kind)


def test_fused_sgd_steps_as_pytorch_does():
    torch = pytest.importorskip("torch")
    start, gradients = state("F32", 5)[0], [state("F32", 5 + step)[1] for step in range(3)]
    for nesterov in (False, True):
        leaf = torch.nn.Parameter(torch.tensor(start, dtype=torch.float32))
        optimizer = torch.optim.SGD([leaf], lr=0.1, momentum=0.9, dampening=0 if nesterov else 0.5, weight_decay=0.01,
                                    nesterov=nesterov)  # fmt: skip
        weight, buffer = start, numpy.zeros(SHAPE)
        for number, gradient in enumerate(gradients):
            leaf.grad = torch.tensor(gradient, dtype=torch.float32)
            optimizer.step()
            (weight,), _, (buffer,) = call(
                "FusedSgd", paramsRef=[tensor(weight)], gradsRef=[tensor(gradient)],
                momentumBufferListOptionalRef=[tensor(buffer)], gradScaleOptional=None, weightDecay=0.01, momentum=0.9,
                lr=0.1, dampening=0.0 if nesterov else 0.5, nesterov=nesterov, maximize=False,
                isFirstStep=number == 0)  # fmt: skip
        close(weight, leaf.detach().numpy(), "F32")


@pytest.mark.parametrize("kind, layout", list(zip(EPSILON, LAYOUTS)))
@pytest.mark.parametrize("scale, found", [(4.0, 0.0), (None, None), (2.0, 1.0), (None, 1.0)])
def test_fused_adam_w(kind, layout, scale, found):
    rate, beta1, beta2, decay, eps = 1e-2, 0.9, 0.99, 0.01, 1e-6
    for amsgrad, maximize in itertools.product((False, True), repeat=2):
        rng = numpy.random.default_rng(7)
        shapes, steps = (SHAPE, (5,), ()), (3, 40, 1)
        lists = [[rounded(rng.uniform(-1 if index < 3 else 0.1, 1, shape), kind) for shape in shapes] for index in range(5)]
        expected = ([], [], [], [])
        for t, w, g, m, v, largest in zip(steps, *lists):
            gradient = (-g if maximize else g) / (scale or 1)
            new_m, new_v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
            new_largest = numpy.maximum(largest, new_v)
            step = change(new_m, new_largest if amsgrad else new_v, 1 - beta1**t, 1 - beta2**t, eps)
            new_w = w - rate * step - rate * decay * w
            for results, new, old in zip(expected, (new_w, new_m, new_v, new_largest), (w, m, v, largest)):
                results.append(old if found == 1 else new)
        given = [[tensor(one, kind, layout) for one in values] for values in lists]
        results = call("FusedAdamw", paramsRef=given[0], grads=given[1], expAvgsRef=given[2], expAvgSqsRef=given[3],
                       maxExpAvgSqsRef=given[4] if amsgrad else None,
                       stateSteps=[tensor([t], "I64" if amsgrad else "F32") for t in steps],
                       gradScaleOptional=tensor([scale]) if scale else None,
                       foundInfOptional=tensor([found]) if found is not None else None, lr=rate, beta1=beta1,
                       beta2=beta2, weightDecay=decay, eps=eps, amsgrad=amsgrad, maximize=maximize)  # fmt: skip
        for actual, exact in zip(results, expected):
            for one, other in in_step(actual, exact):
                close(one, other, kind)


def test_fused_adam_w_steps_as_pytorch_does():
    torch = pytest.importorskip("torch")
    start, gradients = state("F32", 5)[0], [state("F32", 5 + step)[1] for step in range(3)]
    for amsgrad in (False, True):
        leaf = torch.nn.Parameter(torch.tensor(start, dtype=torch.float32))
        optimizer = torch.optim.AdamW([leaf], lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1, amsgrad=amsgrad)
        held = [start, *[numpy.zeros(SHAPE)] * 3]
        for number, gradient in enumerate(gradients):
            leaf.grad = torch.tensor(gradient, dtype=torch.float32)
            optimizer.step()
            given = [[tensor(one)] for one in held]
            found = call("FusedAdamw", paramsRef=given[0], grads=[tensor(gradient)], expAvgsRef=given[1],
                         expAvgSqsRef=given[2], maxExpAvgSqsRef=given[3], stateSteps=[tensor([number + 1.0])],
                         gradScaleOptional=None, foundInfOptional=None, lr=0.1, beta1=0.8, beta2=0.9, weightDecay=0.1,
                         eps=1e-3, amsgrad=amsgrad, maximize=False)  # fmt: skip
            held = [one for (one,) in found]
        close(held[0], leaf.detach().numpy(), "F32")
