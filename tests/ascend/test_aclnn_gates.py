"""Operators on halves of tensors, with weights for channels, and the outer product, against NumPy."""

import numpy
import pytest

from tests.ascend.calling import LAYOUTS, call, empty, refusal, rounded, tensor

ROUNDING = {"F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8, "F64": 2.0**-53}


def drawn(kind, shape, seed):
    return rounded(numpy.random.default_rng(seed).uniform(-3, 3, shape), kind)


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def close(actual, expected, kind, scale=1.0):
    """Within one rounding of the type and some of the type that is computed in, of terms of this size."""
    expected = numpy.asarray(expected)
    computed = min(ROUNDING[kind], ROUNDING["F32"])
    numpy.testing.assert_allclose(numpy.asarray(actual).reshape(expected.shape), expected, 1.01 * ROUNDING[kind],
                                  16 * scale * computed)  # fmt: skip


@pytest.mark.parametrize("kind", ROUNDING)
def test_glu_and_its_gradient(kind):
    for index, (shape, dim) in enumerate([((4, 6), -1), ((2, 4, 3), 1), ((8,), 0), ((2, 0), 1), ((3, 2050), 1)]):
        layout = LAYOUTS[index % 3]
        self = drawn(kind, shape, index)
        a, b = numpy.split(self, 2, dim)
        close(call("Glu", self=tensor(self, kind, layout), dim=dim, out=empty(a.shape, kind, layout)), a * sigmoid(b), kind)
        grad, s = drawn(kind, a.shape, 9), sigmoid(b)
        expected = numpy.concatenate([grad * s, grad * s * (a - a * s)], dim)
        actual = call("GluBackward", gradOut=tensor(grad, kind, layout), self=tensor(self, kind, layout), dim=dim,
                      out=empty(shape, kind, layout))
        close(actual, expected, kind)


def test_glu_gradient_is_the_slope():
    self, grad, step = drawn("F64", (3, 4), 1), drawn("F64", (3, 2), 2), 1e-6

    def loss(x):
        return (call("Glu", self=tensor(x, "F64"), dim=1, out=empty((3, 2), "F64")) * grad).sum()

    slopes = numpy.zeros(self.shape)
    for place in numpy.ndindex(self.shape):
        moved = numpy.zeros(self.shape)
        moved[place] = step
        slopes[place] = (loss(self + moved) - loss(self - moved)) / (2 * step)
    actual = call("GluBackward", gradOut=tensor(grad, "F64"), self=tensor(self, "F64"), dim=1, out=empty((3, 4), "F64"))
    numpy.testing.assert_allclose(actual, slopes, 1e-6, 1e-8)


def test_gelu_mul():
    from math import erf

    for kind in ("F32", "F16", "BF16"):
        x = drawn(kind, (3, 5, 8), 3)
        a, b = x[..., :4], x[..., 4:]
        exact = 0.5 * a * (1 + numpy.vectorize(erf)(a / numpy.sqrt(2))) * b
        tanh = 0.5 * a * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (a + 0.044715 * a**3))) * b
        for name, expected in (("none", exact), (None, exact), ("tanh", tanh)):
            close(call("GeluMul", input=tensor(x, kind, "gaps"), approximateOptional=name, out=empty(a.shape, kind)),
                  expected, kind)  # fmt: skip


@pytest.mark.parametrize("kind, layout", list(zip(["F32", "F16", "BF16"], LAYOUTS)))
def test_fatrelu_mul(kind, layout):
    for seed, shape in enumerate([(3, 4), (2, 3, 1030), (0, 6), (5, 0)]):
        x = drawn(kind, shape, seed)
        left, right = numpy.split(x, 2, -1)
        least = drawn(kind, (1,), seed + 10)
        out = call("FatreluMul", input=tensor(x, kind, layout), threshold=tensor(least, kind),
                   out=empty(left.shape, kind, layout))  # fmt: skip
        close(out, numpy.where(left < least, 0, left) * right, kind)
    x, least = tensor([[1.0, 2.0, 3.0, numpy.nan, 5.0, -6.0, 7.0, 8.0]]), tensor(2.0)
    found = call("FatreluMul", input=x, threshold=least, out=empty((1, 4)))  # the threshold itself and NaN stay
    numpy.testing.assert_array_equal(found, [[0, -12, 21, numpy.nan]])


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_prelu_and_its_gradient(kind):
    for index, (shape, weights) in enumerate([((2, 3, 4), (3,)), ((5, 6), (1,)), ((5,), ()), ((), (1,)),
                                              ((2, 3, 2, 2), (1, 3, 1, 1)),
                                              ((40, 3, 30), (3,)), ((0, 3), (3,))]):  # fmt: skip
        layout = LAYOUTS[index % 3]
        x, w, g = drawn(kind, shape, 1), drawn(kind, weights, 2), drawn(kind, shape, 3)
        channels = w.size > 1
        spread = w.reshape([1, 3, *[1] * (len(shape) - 2)]) if channels else w.reshape(())
        expected = numpy.where(x > 0, x, spread * x)
        actual = call("Prelu", self=tensor(x, kind, layout), weight=tensor(w, kind), out=empty(shape, kind, layout))
        close(actual, expected, kind)
        share = numpy.where(x > 0, 0, g * x)
        total = share.sum(tuple(axis for axis in range(len(shape)) if axis != 1)) if channels else share.sum()
        dx, dw = call("PreluBackward", gradOutput=tensor(g, kind, layout), self=tensor(x, kind, layout),
                      weight=tensor(w, kind), gradInput=empty(shape, kind, layout),
                      gradWeight=empty(weights, kind))  # fmt: skip
        close(dx, numpy.where(x > 0, g, g * spread), kind)
        close(dw, total.reshape(weights), kind, 9)  # products up to 9


def test_real_part():
    values = numpy.random.default_rng(1).normal(size=(3, 4)) + 1j * numpy.random.default_rng(2).normal(size=(3, 4))
    for kind, out in (("C64", "F32"), ("C128", "F64"), ("F32", "F32"), ("F16", "F16")):
        given = values if kind.startswith("C") else values.real
        actual = call("Real", self=tensor(given, kind, "gaps"), out=empty((3, 4), out, "reversed"))
        numpy.testing.assert_array_equal(actual, rounded(values.real, out))


def test_rounding_to_decimals():
    values = [0.5, 1.5, 2.5, -0.5, 1234.5678, -15.0]
    for decimals, expected in ((0, [0, 2, 2, 0, 1235, -15]), (2, [0.5, 1.5, 2.5, -0.5, 1234.57, -15]),
                               (-1, [0, 0, 0, 0, 1230, -20])):  # fmt: skip
        actual = call("RoundDecimals", self=tensor(values, "F64"), decimals=decimals, out=empty((6,), "F64"))
        numpy.testing.assert_allclose(actual, expected, 1e-12)
    whole = [15, -25, 7]
    for decimals, expected in ((3, whole), (0, whole), (-1, [20, -20, 10])):
        actual = call("RoundDecimals", self=tensor(whole, "I32"), decimals=decimals, out=empty((3,), "I32"))
        numpy.testing.assert_array_equal(actual, expected)


def test_swish_without_beta():
    x, g = drawn("F32", (7,), 1), drawn("F32", (7,), 2)
    s = sigmoid(x)
    close(call("Swish", self=tensor(x), betaOptional=None, out=empty((7,))), x * s, "F32")
    actual = call("SwishBackward", gradOutput=tensor(g), self=tensor(x), betaOptional=None, gradInput=empty((7,)))
    close(actual, g * s * (1 + x * (1 - s)), "F32")


def test_is_inf():
    values = [1.0, numpy.inf, -numpy.inf, numpy.nan, 0.0]
    for kind in ("F32", "F16", "BF16", "F64"):
        numpy.testing.assert_array_equal(call("IsInf", x=tensor(values, kind), out=empty((5,), "B")), [0, 1, 1, 0, 0])
    numpy.testing.assert_array_equal(call("IsInf", x=tensor([1, 2], "I8"), out=empty((2,), "B")), [0, 0])


@pytest.mark.parametrize("kind, least, most", [("I8", -128, 127), ("U8", 0, 255), ("I32", -(2**31), 2**31 - 1)])
def test_quantized_batch_norm(kind, least, most):
    """In float32, operation by operation."""
    number = numpy.float32
    for index, (shape, layout) in enumerate([((2, 3, 2, 5), "row-major"), ((1, 5, 3, 70), "reversed"),
                                             ((3, 1, 4, 4), "gaps")]):  # fmt: skip
        rng = numpy.random.default_rng(index)
        x = rng.integers(max(least, -(2**24)), min(most, 2**24) + 1, shape)
        mean, weight, bias = (drawn("F32", shape[1:2], seed) for seed in range(3))
        variance = abs(drawn("F32", shape[1:2], 3))
        in_step, in_zero, out_step, out_zero = number(0.3), max(least, -7), number(0.7), max(least, -3)
        for weighted, biased in [(True, True), (False, True), (True, False), (False, False)]:
            of = lambda part: part.astype(number)[None, :, None, None]
            y = ((x.astype(number) - number(in_zero)) * in_step - of(mean)) / numpy.sqrt(of(variance) + number(0.01))
            y = y * (of(weight) if weighted else number(1)) + (of(bias) if biased else number(0))
            expected = numpy.clip(numpy.rint(y / out_step + number(out_zero)).astype(numpy.float64), least, most)
            found = call("QuantizedBatchNorm", input=tensor(x, kind, layout), mean=tensor(mean), var=tensor(variance),
                         inputScale=float(in_step), inputZeroPoint=("I32", in_zero), outputScale=float(out_step),
                         outputZeroPoint=("I32", out_zero), weight=tensor(weight) if weighted else None,
                         bias=tensor(bias) if biased else None, epsilon=float(number(0.01)),
                         output=empty(shape, kind, layout))  # fmt: skip
            numpy.testing.assert_array_equal(found, expected)


def test_outer_products():
    rng = numpy.random.default_rng(4)
    for kind in ("F32", "F16", "F64", "I8", "I32", "I64", "B"):
        row, column = rng.integers(0, 2 if kind == "B" else 4, 5), rng.integers(0, 2 if kind == "B" else 4, 3)
        beta, alpha = (True, True) if kind == "B" else (3, 2)
        for shape in ((5, 3), (3,), (5, 1), ()):
            self = rng.integers(0, 2 if kind == "B" else 4, shape)
            expected = beta * self + alpha * numpy.outer(row, column)
            expected = expected != 0 if kind == "B" else expected
            vectors = {"vec1": tensor(row, kind, "gaps"), "vec2": tensor(column, kind)}
            actual = call("Addr", self=tensor(self, kind), **vectors, betaOptional=beta, alphaOptional=alpha,
                          out=empty((5, 3), kind, "reversed"))  # fmt: skip
            numpy.testing.assert_array_equal(actual, expected, f"Addr {kind} {shape}")
            if shape == (5, 3):
                actual = call("InplaceAddr", selfRef=tensor(self, kind, "gaps"), **vectors, betaOptional=beta,
                              alphaOptional=alpha)  # fmt: skip
                numpy.testing.assert_array_equal(actual, expected, f"InplaceAddr {kind}")
    vectors = {"vec1": tensor([1.0]), "vec2": tensor([2.0])}
    assert call("Addr", self=tensor(numpy.nan), **vectors, betaOptional=0.0, alphaOptional=None, out=empty((1, 1))) == 2


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_scale_along_axes(kind):
    for index, (shape, axis, count, from_blob, part) in enumerate([
            ((2, 3, 4, 5), 1, 2, True, (3, 4)), ((2, 3, 4, 5), -2, -1, True, (4, 5)), ((2, 3, 4, 5), 2, 0, True, (1,)),
            ((2, 3, 4, 5), 1, 7, False, (3,)), ((2, 3), 0, -1, False, (2, 3)), ((4, 2), 1, -1, False, ()),
        ((3, 0), 0, 1, True, (3,))]):  # fmt: skip
        layout = LAYOUTS[index % 3]
        x, scale, bias = drawn(kind, shape, index), drawn(kind, part, 50 + index), drawn(kind, part, 90 + index)
        behind = (1,) * (len(shape) - axis % len(shape) - len(part))
        aligned = [one.reshape(*part, *behind) for one in (scale, bias)]
        for added in (False, True):
            expected = x * aligned[0] + (aligned[1] if added else 0)
            found = call("Scale", x=tensor(x, kind, layout), scale=tensor(scale, kind, layout),
                         bias=tensor(bias, kind, layout) if added else None, axis=axis, numAxes=count,
                         scaleFromBlob=from_blob, y=empty(shape, kind, layout))  # fmt: skip
            close(found, expected, kind)


@pytest.mark.parametrize("count", [3, 2**63 - 1])
def test_scale_along_more_axes_than_there_are(count):
    x, part = tensor(numpy.ones((2, 3, 4))), tensor(numpy.ones((3, 4)))
    assert refusal("Scale", x, part, None, 1, count, True, empty((2, 3, 4))) == (161002, "aclnnScale/numAxes/range-of-x")
    assert refusal("Scale", x, part, None, 1, 2, True, empty((2, 3, 4)))[0] == 0


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_modulate_gradients(kind):
    for index, shape in enumerate([(2, 3, 5), (1, 1, 1030), (3, 70, 4), (2, 9, 300)]):
        layout = LAYOUTS[index % 3]
        part = (shape[0], shape[2])
        slopes, x, scale = drawn(kind, shape, index), drawn(kind, shape, 50 + index), drawn(kind, part, 90 + index)
        expected = slopes * scale[:, None], (slopes * x).sum(1), slopes.sum(1)
        for scaled, wanted in [(True, True), (False, True), (True, False)]:
            given = tensor(scale, kind, layout) if scaled else None
            found = call("ModulateBackward", grad_output=tensor(slopes, kind, layout), input=tensor(x, kind, layout),
                         scale=given, shift=given, grad_input=empty(shape, kind, layout),
                         grad_scale=empty(part, kind, layout) if wanted else None,
                         grad_shift=empty(part, kind, layout) if wanted else None)  # fmt: skip
            close(found[0] if wanted else found, expected[0] if scaled else slopes, kind)
            if wanted:
                close(found[1], expected[1], kind)
                close(found[2], expected[2], kind)


def test_modulate_gradients_as_torch():
    """The page multiplies by scale where the slope of aclnnModulate has 1 + scale."""
    torch = pytest.importorskip("torch")
    x, scale, shift, slopes = (torch.tensor(drawn("F32", shape, seed), requires_grad=True)
                               for seed, shape in enumerate([(2, 5, 6), (2, 6), (2, 6), (2, 5, 6)]))
    (x * (1 + scale[:, None]) + shift[:, None]).backward(slopes.detach())
    found = call("ModulateBackward", grad_output=tensor(slopes.detach().numpy()), input=tensor(x.detach().numpy()),
                 scale=tensor(1 + scale.detach().numpy()), shift=tensor(shift.detach().numpy()), grad_input=empty(x.shape),
                 grad_scale=empty(scale.shape), grad_shift=empty(shift.shape))
    for actual, one in zip(found, (x, scale, shift)):
        close(actual, one.grad.numpy(), "F32")


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_modulate(kind):
    for index, shape in enumerate([(2, 3, 5), (1, 1, 1030), (3, 70, 4), (0, 3, 4)]):
        layout = LAYOUTS[index % 3]
        part = (shape[0], 1, shape[2])
        x, scale, shift = drawn(kind, shape, index), drawn(kind, part, 50 + index), drawn(kind, part, 90 + index)
        for scaled, shifted, axes in [(True, True, 2), (True, False, 3), (False, True, 3), (False, False, 3),
                                      (True, True, 3)]:  # fmt: skip
            given = [tensor(one.reshape(part if axes == 3 else (shape[0], shape[2])), kind, layout) if used else None
                     for one, used in ((scale, scaled), (shift, shifted))]
            found = call("Modulate", self=tensor(x, kind, layout), scaleOptional=given[0], shiftOptional=given[1],
                         out=empty(shape, kind, layout))
            close(found, x * (1 + scaled * scale) + shifted * shift, kind)


@pytest.mark.parametrize("shape, heads",
                         [((2, 3, 12), 2), ((1, 700, 24), 1), ((3, 1, 9), 3), ((2, 0, 6), 1),
                          ((0, 2, 6), 2)])  # fmt: skip
def test_heads_with_their_bias(shape, heads):
    random = numpy.random.default_rng(3)
    for kind, layout in zip(["F32", "F16", "BF16"], LAYOUTS):
        x, bias = rounded(random.normal(0, 1, shape), kind), rounded(random.normal(0, 1, shape[2]), kind)
        depth = shape[2] // 3 // heads
        parts = (x + bias).reshape(*shape[:2], 3, heads, depth).transpose(2, 0, 3, 1, 4)
        own = call("TransformBiasRescaleQkv", qkv=tensor(x, kind, layout), qkvBias=tensor(bias, kind, layout),
                   numHeads=heads, **{name: empty(parts.shape[1:], kind,
                                                  layout) for name in ("qOut", "kOut", "vOut")})  # fmt: skip
        for found, part, factor in zip(own, parts, (depth**-0.5, 1, 1)):
            unit = {"F32": 2.0**-23, "F16": 2.0**-11, "BF16": 2.0**-8}[kind]
            numpy.testing.assert_allclose(found, part * factor, rtol=2 * unit, atol=2.0**-22)
