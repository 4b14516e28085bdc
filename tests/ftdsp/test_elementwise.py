"""Numbers of the element-wise operators against float64, for every prefix, space, mask and uneven sizes."""

import fractions
import math

import numpy
import pytest

from tests.conformance.ftdsp.calls import DDR, DDR_END, ELEMENT, At, Input, Invocation, Output, Value, clear, compute
from tests.ftdsp.test_arrays import masks_agree
from understudy.ftdsp import ffi, last_error

FLOATS = ("fp", "hp")
ALL = ("fp", "hp", "dp", "i8", "i16", "i32", "c64", "c128")
SIZES = [1, 7, 1025, 20011]
PART = {"c64": numpy.float32, "c128": numpy.float64}
erf = numpy.vectorize(math.erf)


def logistic(x):
    return 1 / (1 + numpy.exp(-x))


def positive(x):
    return numpy.where(x > 0, 1.0, 0.0)


def values(prefix, count, seed, low, high):
    random = numpy.random.default_rng(seed)
    if prefix.startswith("i"):
        return random.integers(math.ceil(low), math.floor(high) + 1, count).astype(ELEMENT[prefix])
    drawn = random.uniform(low, high, count)
    if prefix.startswith("c"):
        drawn = drawn + 1j * random.uniform(low, high, count)
    return drawn.astype(ELEMENT[prefix])


class Op:
    """One operator: parameter names in the vendor's order and the formula in float64."""

    def __init__(self, name, prefixes, inputs, output, length, formula, low=-4.0, high=4.0, order=None, numbers=(),
                 steps=8):
        self.name, self.prefixes, self.inputs, self.output, self.length = name, prefixes, inputs, output, length
        self.formula, self.low, self.high, self.numbers, self.steps = formula, low, high, dict(numbers), steps
        self.order = order or [*inputs, output, length, *self.numbers]

    def parameters(self, prefix, data):
        made = {name: Input(name, array) for name, array in zip(self.inputs, data)}
        made[self.output] = Output(self.output, len(data[0]), ELEMENT[prefix])
        made[self.length] = Value(self.length, len(data[0]))
        made.update({name: Value(name, number) for name, number in self.numbers.items()})
        return [made[name] for name in self.order]

    def __repr__(self):
        return self.name


class Division(Op):
    """hp_div has MT7004's parameters, the other prefixes FT78NE's."""

    def parameters(self, prefix, data):
        parameters = super().parameters(prefix, data)
        return parameters[:4] if prefix == "hp" else parameters


def activation(name, slope, **numbers):
    return Op(name, FLOATS, ["src0", "src1"], "dst", "length", lambda g, x: g * slope(x), numbers=numbers)


OPERATORS = [
    Op("add", ALL, ["x", "y"], "out", "n", lambda x, y: x + y),
    Op("sub", ALL, ["x", "y"], "out", "n", lambda x, y: x - y),
    Op("mul", ALL, ["x", "y"], "out", "n", lambda x, y: x * y),
    Division("div", ("fp", "hp", "dp", "c64", "c128"), ["x", "y"], "out", "n", lambda x, y: x / y, low=0.5,
             numbers={"optimize": 0, "first_scalar": 0}),
    Op("subext", ("hp", "fp", "dp", "c64", "c128"), ["input0", "input1"], "output", "size",
       lambda a, b: a - b * 0.75, numbers={"alpha": 0.75}, order=["input0", "input1", "alpha", "output", "size"]),
    Op("subrelu", ("i8", "i16", "i32", "hp", "fp"), ["input0", "input1"], "output", "size",
       lambda a, b: numpy.maximum(0, a - b)),
    Op("subrelu6", ("i8", "i16", "i32", "hp", "fp"), ["input0", "input1"], "output", "size",
       lambda a, b: numpy.clip(a - b, 0, 6), low=-9, high=9),
    Op("pow_fusion", ("i8", "i16", "i32", "hp", "fp", "dp"), ["Input", "exponent"], "output", "length_in",
       lambda x, e: (2 * x + 1) ** e, low=1, high=3, numbers={"scale": 2, "shift": 1, "broadcast": 0}, steps=40),
    Op("sigmoidcrossentropywithlogits", FLOATS, ["input0", "input1"], "output", "length",
       lambda x, y: -(y * numpy.log(logistic(x)) + (1 - y) * numpy.log(1 - logistic(x))), low=0.1, high=1),
    Op("sigmoidcrossentropywithlogitsgrad", FLOATS, ["Input0", "Input1"], "output", "length",
       lambda x, y: logistic(x) - y),
    Op("smoothl1lossgrad", FLOATS, ["dy", "x1", "x2"], "dx1", "length",
       lambda dy, a, b: numpy.clip((a - b) / 1.5, -1, 1) * dy, numbers={"beta": 1.5},
       order=["dy", "dx1", "x1", "x2", "length", "beta"]),
    Op("power_grad", FLOATS, ["Input1", "Input2"], "output", "length",
       lambda a, x: 2.5 * 0.5 * a * (0.5 * x + 3) ** 1.5, numbers={"power": 2.5, "scale": 0.5, "shift": 3.0}, steps=40),
    Op("log_grad", FLOATS, ["input0", "input1"], "output", "length", lambda a, b: a / b, low=0.5),
    activation("relu_grad", positive),
    activation("relu6_grad", lambda x: positive(x) * (x <= 6)),
    activation("sigmoid_grad", lambda x: x * (1 - x)),
    activation("tanh_grad", lambda x: 1 - x * x),
    activation("hsigmoid", lambda x: numpy.where(numpy.abs(x) < 3, 1 / 6, 0)),
    activation("hswish", lambda x: numpy.where(x > 3, 1, numpy.where(x < -3, 0, (2 * x + 3) / 6))),
    activation("gelu",
               lambda x: 0.5 * (1 + erf(x / math.sqrt(2))) + x * numpy.exp(-x * x / 2) / math.sqrt(2 * math.pi)),
    activation("softplus", logistic),
    activation("l_relu_grad", lambda x: numpy.where(x > 0, 1, 0.25), alpha=0.25),
    activation("elu", lambda x: numpy.where(x > 0, 1, 1.5 * numpy.exp(x)), alpha=1.5),
    activation("hardshrink", lambda x: numpy.where(numpy.abs(x) <= 0.5, 0, 1), lambd=0.5),
    activation("softshrink", lambda x: numpy.where(numpy.abs(x) <= 0.5, 0, 1), lambd=0.5),
]
CASES = [(operator, prefix) for operator in OPERATORS for prefix in operator.prefixes]


def exact(operator, data):
    wide = [array.astype(numpy.complex128 if array.dtype.kind == "c" else numpy.float64) for array in data]
    return operator.formula(*wide)


def assert_close(operator, prefix, result, expected, terms):
    """`steps` roundings of float32 (float64 for dp and c128) relative to the largest term, one to the element type."""
    if result.dtype.kind == "i":
        limits = numpy.iinfo(result.dtype)
        assert numpy.array_equal(result, numpy.clip(expected, limits.min, limits.max))
        return
    part = numpy.finfo(PART.get(prefix, ELEMENT[prefix]))
    compute_eps = 2.0**-53 if prefix in ("dp", "c128") else 2.0**-24
    scale = numpy.maximum(numpy.abs(expected), terms)
    allowed = scale * compute_eps * operator.steps + numpy.abs(expected) * part.eps / 2 + float(part.smallest_subnormal)
    error = numpy.abs(result.astype(expected.dtype) - expected)
    assert (error <= allowed * 1.01).all(), float((error / allowed).max())


@pytest.mark.parametrize("beta", [0, -0.5, math.nan, math.inf])
@pytest.mark.parametrize("prefix", FLOATS)
def test_smoothl1lossgrad_of_any_beta(prefix, beta):
    """The page's conditions in their order: dy above beta, -dy below -beta, else diff / beta * dy."""
    operator = next(op for op in OPERATORS if op.name == "smoothl1lossgrad")
    dy, x1, x2 = numpy.array([[2, 3, 5, 7, 11], [0, 1, 0, 0.25, math.nan], [0, 0, 1, 0.5, 0]], ELEMENT[prefix])
    diff = (x1.astype(float) - x2).tolist()
    with numpy.errstate(invalid="ignore", divide="ignore"):
        expected = [g if d > beta else -g if d < -beta else float(numpy.float64(d) / beta) * g for g, d in zip(dy.tolist(), diff)]
    given = [Value(p.name, beta) if p.name == "beta" else p for p in operator.parameters(prefix, [dy, x1, x2])]
    result = compute(f"{prefix}_smoothl1lossgrad_s", given)["dx1"]
    assert numpy.array_equal(result, numpy.array(expected, ELEMENT[prefix]), equal_nan=True)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize(("operator", "prefix"), CASES, ids=str)
def test_against_float64(operator, prefix, count):
    data = [values(prefix, count, seed, operator.low, operator.high) for seed in range(len(operator.inputs))]
    result = compute(f"{prefix}_{operator.name}_s", operator.parameters(prefix, data))[operator.output]
    expected = exact(operator, data)
    largest = max(float(numpy.abs(array.astype(complex)).max()) for array in data)
    assert_close(operator, prefix, result, expected, max(1.0, largest) ** 2)


@pytest.mark.parametrize(("operator", "prefix"), CASES, ids=str)
def test_no_mask_changes_a_bit(operator, prefix):
    data = [values(prefix, 5003, seed, operator.low, operator.high) for seed in range(len(operator.inputs))]
    expected = compute(f"{prefix}_{operator.name}_p", operator.parameters(prefix, data))[operator.output].tobytes()
    for mask in (1, 2, 3, 5, 0x0F, 0x55, 0xF0, 0x7F, 0xFF, 0x1FF):
        result = compute(f"{prefix}_{operator.name}_s", operator.parameters(prefix, data), mask)[operator.output]
        assert result.tobytes() == expected, hex(mask)


@pytest.mark.parametrize(("operator", "prefix"), CASES, ids=str)
def test_in_place_on_every_input(operator, prefix):
    data = [values(prefix, 3001, seed, operator.low, operator.high) for seed in range(len(operator.inputs))]
    symbol = f"{prefix}_{operator.name}_s"
    parameters = operator.parameters(prefix, data)
    order = [parameter.name for parameter in parameters]
    apart = compute(symbol, parameters)[operator.output]
    for name, array in zip(operator.inputs, data):
        clear()
        if order.index(name) < order.index(operator.output):
            call = Invocation(symbol, parameters, {operator.output: (name, 0)}, 0xFF)
        else:  # the output gets its address first: it holds the input's values, and the input lies on it
            holding = [Output(p.name, len(array), apart.dtype.type, array) if p.name == operator.output else p
                       for p in parameters]
            call = Invocation(symbol, holding, {name: (operator.output, 0)}, 0xFF)
        call.run()
        assert last_error().rule == ""
        assert call.output(operator.output, apart.dtype).tobytes() == apart.tobytes(), name


@pytest.mark.parametrize("prefix", ["fp", "c64"])
def test_none_of_all_masks_changes_a_bit(prefix):
    """Every mask of 8 cores."""
    operator = next(operator for operator in OPERATORS if operator.name == "div")
    parameters = operator.parameters(prefix, [values(prefix, 9001, seed, 0.5, 4) for seed in range(2)])
    results = {compute(f"{prefix}_div_s", parameters, mask)["out"].tobytes() for mask in range(1, 256)}
    assert len(results) == 1


def test_none_of_all_masks_changes_a_bit_of_a_sum():
    arrays = [values("fp", 9001, seed, 0.1, 0.9) for seed in range(3)]
    assert len({bce("fp", 2, 1, *arrays, mask).tobytes() for mask in range(1, 256)}) == 1


@pytest.mark.parametrize("prefix", ["i8", "i16", "i32"])
@pytest.mark.parametrize(("name", "formula"), [("add", lambda a, b: a + b), ("sub", lambda a, b: a - b),
                                               ("mul", lambda a, b: a * b)])
def test_integers_saturate(name, formula, prefix):
    limits = numpy.iinfo(ELEMENT[prefix])
    root = math.isqrt(limits.max)  # the square of the next one saturates
    ends = [limits.min, limits.min + 1, -root - 1, -root, -1, 0, 1, root, root + 1, limits.max - 1, limits.max]
    a, b = (grid.ravel() for grid in numpy.meshgrid(*2 * [numpy.array(ends, object)]))
    expected = [min(max(formula(int(x), int(y)), limits.min), limits.max) for x, y in zip(a, b)]
    out = masks_agree(f"{prefix}_{name}_s", [Input("x", a.astype(limits.dtype)), Input("y", b.astype(limits.dtype)),
                                             Output("out", len(a), limits.dtype.type), Value("n", len(a))], "out")
    assert out.tolist() == expected


def division(prefix, x, y, count, optimize=0, first_scalar=0, mask=0xFF):
    element = ELEMENT[prefix]
    flags = [] if prefix == "hp" else [Value("optimize", optimize), Value("first_scalar", first_scalar)]
    return compute(f"{prefix}_div_{'p' if mask is None else 's'}",
                   [Input("x", numpy.array(x, element)), Input("y", numpy.array(y, element)),
                                       Output("out", count, element), Value("n", count), *flags], mask)["out"]  # fmt: skip


@pytest.mark.parametrize("prefix", ["i8", "i16", "i32"])
def test_integer_division(prefix):
    """Towards zero; what no integer holds saturates, also divisions by 0; 0 / 0 is 0."""
    limits = numpy.iinfo(ELEMENT[prefix])
    some = [limits.min, limits.min + 1, -100, -7, -3, -2, -1, 0, 1, 2, 3, 7, 100, limits.max - 1, limits.max]
    pairs = [(int(x), int(y)) for x in some for y in some]

    def quotient(x, y):
        if y == 0:
            return 0 if x == 0 else limits.max if x > 0 else limits.min
        magnitude = abs(x) // abs(y)
        return min(magnitude if (x < 0) == (y < 0) else -magnitude, limits.max)

    out = division(prefix, [x for x, _ in pairs], [y for _, y in pairs], len(pairs))
    assert out.tolist() == [quotient(x, y) for x, y in pairs]


@pytest.mark.parametrize("count", [1, 7, 1025, 5003])
@pytest.mark.parametrize("prefix", ["fp", "dp", "i8", "i16", "i32", "c64", "c128"])
def test_one_number_divides_or_is_divided(prefix, count):
    """ft-dsp 5.1: optimize with one operand of 1 element; n counts the results even then."""
    many, one = values(prefix, count, 0, 1, 90), values(prefix, 1, 1, 1, 90)
    equal = numpy.repeat(one, count)
    for mask in (1, 6, None):
        assert division(prefix, many, one, count, 1, 0, mask).tobytes() == division(prefix, many, equal, count).tobytes()
        assert division(prefix, one, many, count, 1, 1, mask).tobytes() == division(prefix, equal, many, count).tobytes()
    assert division(prefix, many, equal, count, 0, 1).tobytes() == division(prefix, many, equal, count).tobytes()


@pytest.mark.parametrize("first_scalar", [0, 1])
@pytest.mark.parametrize("prefix", ["fp", "i16", "c64", "c128"])
def test_results_may_lie_over_the_one_number(prefix, first_scalar):
    """It is one element: right at the end of DDR it is whole, and it is read before anything is written."""
    many, one = values(prefix, 5003, 0, 1, 90), values(prefix, 1, 1, 1, 90)
    name, x, y = ("x", one, many) if first_scalar else ("y", many, one)
    expected = division(prefix, x, y, 5003, 1, first_scalar)
    element = ELEMENT[prefix]
    parameters = [Input("x", x), Input("y", y), Output("out", 5003, element), Value("n", 5003), Value("optimize", 1),
                  Value("first_scalar", first_scalar)]
    for replaced in ({name: At(DDR_END - one.nbytes)}, {name: At(DDR), "out": At(DDR)},
                     {name: At(DDR + 8 * one.nbytes), "out": At(DDR)}):
        clear()
        call = Invocation(f"{prefix}_div_s", parameters, replaced, 0xFF)
        if "out" in replaced:  # the output's bytes were placed last
            ffi.memmove(ffi.cast("char *", replaced[name].address), one.tobytes(), one.nbytes)
        call.run()
        assert last_error().rule == ""
        assert call.output("out", element).tobytes() == expected.tobytes()


def exact_quotient(x, y):
    """Real and imaginary part as rational numbers."""
    a, b, c, d = (fractions.Fraction(float(part)) for part in (x.real, x.imag, y.real, y.imag))
    size = c * c + d * d
    return (a * c + b * d) / size, (b * c - a * d) / size


@pytest.mark.parametrize(("prefix", "large", "small"), [("c64", 3e38, 1e-37), ("c128", 1.7e308, 1e-307)])
def test_complex_division_of_large_and_small_numbers(prefix, large, small):
    """Where c^2 + d^2 overflows or vanishes but the quotient is an ordinary number."""
    element = ELEMENT[prefix]
    sizes = [complex(a, b) for a in (large, small, -large / 3) for b in (large / 2, -small, large / 7)]
    sizes += [complex(small, small / 3), complex(-3 * small, 5 * small)]
    pairs = [(element(x), element(y)) for x in sizes for y in sizes]
    out = division(prefix, [x for x, _ in pairs], [y for _, y in pairs], len(pairs))
    limit, eps, least = (fractions.Fraction(float(value)) for value in (
        numpy.finfo(PART[prefix]).max, numpy.finfo(PART[prefix]).eps, numpy.finfo(PART[prefix]).smallest_subnormal))
    compared = 0
    for (x, y), got in zip(pairs, out):
        real, imaginary = exact_quotient(x, y)
        size = max(abs(real), abs(imaginary))
        if size < limit / 4:
            error = max(abs(fractions.Fraction(float(got.real)) - real),
                        abs(fractions.Fraction(float(got.imag)) - imaginary))
            assert error <= size * 4 * eps + least, (x, y, got)
            compared += 1
    assert compared > len(pairs) / 2


@pytest.mark.parametrize("prefix", ["c64", "c128"])
def test_complex_division_by_zero_and_infinity(prefix):
    """C11 annex G.5.1: a number by 0 is infinite, a number by an infinity is 0, 0 by 0 is NaN."""
    out = division(prefix, [1 + 1j, -2j, 0, 3 - 4j], [0, 0, 0, complex(math.inf, 1)], 4)
    assert numpy.isinf([out[0].real, out[1].imag]).all() and out[1].imag < 0
    assert numpy.isnan(out[2]) and out[3] == 0


@pytest.mark.parametrize("exponent", [2.5, 2, 0.5, -1, 0])
@pytest.mark.parametrize("prefix", FLOATS)
def test_broadcast_exponent(prefix, exponent):
    kind = ELEMENT[prefix]
    x = numpy.concatenate([numpy.linspace(0.5, 3, 1025), [-0.25, -1, numpy.inf, -numpy.inf, numpy.nan]]).astype(kind)
    out = compute(f"{prefix}_pow_fusion_s", [Input("Input", x), Input("exponent", kind([exponent])),
                                             Output("output", len(x), kind), Value("length_in", len(x)),
                                             Value("scale", 2.0), Value("shift", 0.5), Value("broadcast", 1)])["output"]
    with numpy.errstate(all="ignore"):
        expected = numpy.power(2 * x.astype(float) + 0.5, numpy.full(len(x), exponent)).astype(kind)
    numpy.testing.assert_allclose(out.astype(float), expected.astype(float), rtol=2e-6 if prefix == "fp" else 1e-3)


@pytest.mark.parametrize("prefix", ["i8", "i16", "i32", "dp"])
def test_broadcast_exponent_of_squares(prefix):
    kind = ELEMENT[prefix]
    x, most = numpy.arange(-128, 128).astype(kind), math.inf if prefix == "dp" else numpy.iinfo(kind).max
    out = compute(f"{prefix}_pow_fusion_s", [Input("Input", x), Input("exponent", kind([2])), Output("output", len(x), kind),
                                             Value("length_in", len(x)), Value("scale", 3), Value("shift", -1),
                                             Value("broadcast", 1)])["output"]  # fmt: skip
    assert out.tolist() == [min((3 * int(k) - 1) ** 2, most) for k in x]


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0, 1.5, 0.5, -1.0, 0.0, 2.5])
@pytest.mark.parametrize("prefix", FLOATS)
def test_power_grad_of_common_and_other_powers(prefix, power):
    kind = ELEMENT[prefix]
    x = numpy.array([0.5, 1, 2.25, 3, 0.125, 7, 1.5, 0, -0.0, numpy.inf, -numpy.inf, numpy.nan, -2] * 3, kind)
    dy = numpy.linspace(0.5, 2, x.size).astype(kind)
    out = compute(f"{prefix}_power_grad_s", [Input("Input1", dy), Input("Input2", x), Output("output", x.size, kind),
                                             Value("length", x.size), Value("power", power), Value("scale", 1.0),
                                             Value("shift", 0.0)])  # fmt: skip
    with numpy.errstate(all="ignore"):
        expected = (power * dy.astype(float) * numpy.power(x.astype(float), numpy.full(x.size, power - 1))).astype(kind)
    numpy.testing.assert_allclose(out["output"].astype(float), expected.astype(float), rtol=4 * float(numpy.finfo(kind).eps))


def test_power_grad_is_zero_without_scale():
    x = numpy.float32([0, 1, numpy.inf])
    out = compute("fp_power_grad_s", [Input("Input1", x), Input("Input2", x), Output("output", 3, numpy.float32),
                                      Value("length", 3), Value("power", 2.0), Value("scale", 0.0),
                                      Value("shift", 0.0)])["output"]
    assert out.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("prefix", "out_type"), [("fp", "f4"), ("hp", "f2"), ("dp", "f8"), ("i8", "i1"), ("i16", "i2"),
                                                  ("i32", "f4")])
def test_exp(prefix, out_type):
    x = numpy.arange(-2, 3).astype(ELEMENT[prefix])
    out = masks_agree(f"{prefix}_exp_s", [Input("x", x), Output("out", 5, numpy.dtype(out_type).type), Value("n", 5),
                                          Value("in_scale", 1.0), Value("out_scale", 2.0), Value("scale", 1)], "out")
    expected = 2 * numpy.exp(x.astype(float))
    if numpy.dtype(out_type).kind == "i":
        assert out.tolist() == [int(value) for value in expected]
    else:
        numpy.testing.assert_allclose(out, expected, rtol=float(numpy.finfo(out_type).eps) * 4)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("prefix", ["c64", "c128"])
def test_complex_exp(prefix, count):
    x = values(prefix, count, 0, -4, 4)
    parameters = [Input("x", x), Output("out", count, ELEMENT[prefix]), Value("n", count), Value("in_scale", 0.75),
                  Value("out_scale", -2.5), Value("scale", 1)]
    out = masks_agree(f"{prefix}_exp_s", parameters, "out")
    wide = x.astype(numpy.complex128)
    expected = -2.5 * numpy.exp(0.75 * wide.real) * (numpy.cos(0.75 * wide.imag) + 1j * numpy.sin(0.75 * wide.imag))
    eps = float(numpy.finfo(PART[prefix]).eps)
    assert (numpy.abs(out - expected) <= numpy.abs(expected) * (eps / 2 * 1.01 + 8 * 2.0**-53)).all()
    call = Invocation(f"{prefix}_exp_s", parameters, {"out": ("x", 0)}, 0xFF)
    call.run()
    assert call.output("out", ELEMENT[prefix]).tobytes() == out.tobytes()


@pytest.mark.parametrize("prefix", ["c64", "c128"])
def test_complex_exp_of_infinities(prefix):
    """C11 annex G.6.3.1: e^-inf is 0 whatever the angle, e^inf at angle 0 is inf + 0i."""
    x = numpy.array([complex(-math.inf, 1), complex(math.inf, 0), 0], ELEMENT[prefix])
    out = compute(f"{prefix}_exp_s", [Input("x", x), Output("out", 3, ELEMENT[prefix]), Value("n", 3),
                                      Value("in_scale", 1.0), Value("out_scale", 1.0), Value("scale", 1)])["out"]
    assert out.tolist() == [0, complex(math.inf, 0), 1]


@pytest.mark.parametrize("value", [1, 0, -7, 2**31 - 1])
def test_assert_copies_its_condition(value):
    """ft-dsp 5.1: 1 gives 1, 0 gives 0, nothing stops."""
    for mask in (1, 0x80, 0xFF):
        out = compute("assert_s", [Input("cond", numpy.int32([value])), Output("out", 1, numpy.int32)], mask)["out"]
        assert out.tolist() == [value]


def test_exp_of_int8_is_truncated():
    """ft-dsp 5.1: exp of 1 gives 2."""
    out = compute("i8_exp_s", [Input("x", numpy.int8([1])), Output("out", 1, numpy.int8), Value("n", 1),
                               Value("in_scale", 1.0), Value("out_scale", 1.0), Value("scale", 1)])["out"]
    assert out.tolist() == [2]


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("prefix", ["fp", "hp", "dp", "i8", "i16", "i32"])
def test_range(prefix, count):
    start, delta = (5, 3) if prefix.startswith("i") else (0.5, 0.25)
    out = masks_agree(f"{prefix}_range_s", [Output("out", count, ELEMENT[prefix]), Value("start", start),
                                            Value("delta", delta), Value("n", count)], "out")
    expected = start + delta * numpy.arange(count, dtype=float)
    if prefix.startswith("i"):
        limits = numpy.iinfo(ELEMENT[prefix])
        expected = numpy.clip(expected, limits.min, limits.max)
    assert numpy.array_equal(out, expected.astype(ELEMENT[prefix]))


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("prefix", FLOATS)
def test_linspace(prefix, count):
    start, end = numpy.float32(-1.1), numpy.float32(2.3)
    out = masks_agree(f"{prefix}_linspace_s", [Output("out", count, ELEMENT[prefix]), Value("start", float(start)),
                                               Value("end", float(end)), Value("n", count)], "out")
    expected = numpy.linspace(float(start), float(end), count)
    numpy.testing.assert_allclose(out, expected, rtol=0, atol=float(numpy.finfo(ELEMENT[prefix]).eps) * 2.3)
    assert out[0] == ELEMENT[prefix](start)
    assert count == 1 or out[-1] == ELEMENT[prefix](end)


# ---- binary cross entropy ----

X = [0.1, 0.25, 0.5, 0.75, 0.9, 0.999]
Y = [0, 1, 0.5, 1, 0, 1]
W = [1, 2, 0.5, 1.5, 1, 3]
WORKED = {  # ft-dsp 7
    (0, 0): [0.105360515657, 1.38629436112, 0.69314718056, 0.28768207245, 2.30258509298, 0.00100050033258],
    (0, 1): [0.105360515657, 2.77258872223, 0.346573590279, 0.431523108676, 2.30258509298, 0.00300150099775],
    (1, 0): [0.796011620516], (1, 1): [0.993605421804], (2, 0): [4.7760697231], (2, 1): [5.96163253082],
}


def bce(prefix, reduction, weighted, x, y, w, mask=0xFF):
    element = ELEMENT[prefix]
    return compute(f"{prefix}_binarycrossentropy_{'p' if mask is None else 's'}", [
        Value("input_size", len(x)), Value("reduction", reduction), Input("input_x", numpy.array(x, element)),
        Input("input_y", numpy.array(y, element)), Input("weight", numpy.array(w, element)),
        Output("loss", len(x) if reduction == 0 else 1, element), Output("tmp_loss", len(x), element),
        Value("weight_defined", weighted)], mask)["loss"]


@pytest.mark.parametrize(("reduction", "weighted"), WORKED)
def test_binary_cross_entropy_worked_numbers(reduction, weighted):
    loss = bce("fp", reduction, weighted, X, Y, W)
    # rounding x to float32 near 1 moves log(x) by up to 2^-25 / x, log(1 - x) by 2^-25 / (1 - x)
    numpy.testing.assert_allclose(loss, WORKED[reduction, weighted], rtol=1e-6, atol=2e-7)


@pytest.mark.parametrize(("x", "y", "expected"), [(0, 1, 27.631021), (1, 0, 27.631021), (0, 0, 0), (1, 1, 0)])
def test_binary_cross_entropy_edges(x, y, expected):
    assert bce("fp", 0, 0, [x], [y], [1])[0] == pytest.approx(expected, rel=1e-7, abs=1e-11)


@pytest.mark.parametrize("reduction", [1, 2])
@pytest.mark.parametrize("prefix", FLOATS)
@pytest.mark.parametrize("count", SIZES)
def test_binary_cross_entropy_sums(prefix, count, reduction):
    x, y, w = (values(prefix, count, seed, 0.01, 0.99) for seed in range(3))
    wide = [array.astype(float) for array in (x, y, w)]
    each = -wide[2] * (wide[1] * numpy.log(wide[0]) + (1 - wide[1]) * numpy.log(1 - wide[0]))
    expected = each.sum() / (count if reduction == 1 else 1)
    loss = bce(prefix, reduction, 1, x, y, w)
    largest = numpy.finfo(ELEMENT[prefix]).max
    if expected > largest:
        assert numpy.isinf(loss[0])
    else:
        assert loss[0] == pytest.approx(expected, rel=float(numpy.finfo(ELEMENT[prefix]).eps) + 1e-6)
    assert len({bce(prefix, reduction, 1, x, y, w, mask).tobytes() for mask in (1, 2, 7, 0xFF, None)}) == 1


@pytest.mark.parametrize(("reduction", "expected"), [(0, [0, 82, 127, -128, 0, 0]), (1, [9]), (2, [55])])
def test_binary_cross_entropy_of_int8(reduction, expected):
    """Plain numbers, truncated; a wrong certainty costs -log 1e-12 = 27.6."""
    loss = bce("i8", reduction, 1, [0, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 1], [1, 3, 5, -6, 7, 8])
    assert loss.tolist() == expected
    assert bce("i8", reduction, 1, [0, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 1], [1, 3, 5, -6, 7, 8], None).tolist() == expected


def test_sigmoid_cross_entropy_of_int8():
    """Plain numbers, truncated."""
    x, y = (grid.ravel().astype(numpy.int8) for grid in numpy.meshgrid(numpy.arange(-9, 10), numpy.arange(-2, 3)))
    got = masks_agree("i8_sigmoidcrossentropywithlogits_s",
                      [Input("input0", x), Input("input1", y), Output("output", x.size, numpy.int8),
                       Value("length", x.size)], "output")  # fmt: skip
    wide = x.astype(float)
    assert got.tolist() == numpy.trunc(numpy.logaddexp(0, wide) - wide * y).tolist()


# ---- optimiser steps: only [start, end) is touched ----

def step_oracle(name, arrays, numbers):
    n = numbers
    if name in ("applymomentum", "apply_momentum"):
        w, a, g = arrays
        a = n["moment"] * a + g
        return w - n["learning_rate"] * (a * n["moment"] + g if n["nesterov"] else a), a, g
    if name == "sgd":
        w, a, g = arrays
        h = g + n["weight_decay"] * w
        a = n["moment"] * a + (1 - n["dampening"]) * h
        return w - n["learning_rate"] * (a * n["moment"] + h if n["nesterov"] else a), a, g
    if name == "adam":
        m, v, g, w = arrays
        rate = n["learning_rate"] * math.sqrt(1 - n["beta2_power"]) / (1 - n["beta1_power"])
        m = m + (g - m) * (1 - n["beta1"])
        v = v + (g * g - v) * (1 - n["beta2"])
        step = m * n["beta1"] + (1 - n["beta1"]) * g if n["nesterov"] else m
        return m, v, g, w - rate * step / (numpy.sqrt(v) + n["eps"])
    w, m, v, g = arrays
    m = m * n["beta1"] + g * (1 - n["beta1"])
    v = v * n["beta2"] + g * g * (1 - n["beta2"])
    return w - n["lr"] * (m / (numpy.sqrt(v) + n["epsilon"]) + n["decay"] * w), m, v, g


STEPS = {
    "applymomentum": (FLOATS, ["weight", "accumulate", "gradient"],
                      {"learning_rate": 0.125, "moment": 0.75, "nesterov": 0}),
    "apply_momentum": (FLOATS, ["weight", "accumulate", "gradient"],
                       {"learning_rate": 0.125, "moment": 0.75, "nesterov": 0}),
    "sgd": (FLOATS, ["weight", "accumulate", "gradient"],
            {"learning_rate": 0.125, "dampening": 0.25, "moment": 0.75, "nesterov": 0, "weight_decay": 0.5}),
    "adam": (("fp",), ["m", "v", "gradient", "weight"],
             {"beta1": 0.75, "beta2": 0.875, "beta1_power": 0.5, "beta2_power": 0.75, "eps": 0.125,
              "learning_rate": 0.25, "nesterov": 0}),
    "adamweightdecay": (FLOATS, ["var", "m", "v", "gradient"],
                        {"lr": 0.25, "beta1": 0.75, "beta2": 0.875, "epsilon": 0.125, "decay": 0.5}),
}
STEP_CASES = [(name, prefix, nesterov) for name, (prefixes, _, numbers) in STEPS.items() for prefix in prefixes
              for nesterov in ((0, 1) if "nesterov" in numbers else (0,))]


def step_parameters(name, prefix, numbers, arrays, start, end):
    names = STEPS[name][1]
    operands = [Input(n, a) if n == "gradient" else Output(n, len(a), ELEMENT[prefix], a)
                for n, a in zip(names, arrays)]
    plain = dict(numbers)
    if name == "apply_momentum":
        return [*operands, Value("nesterov", plain["nesterov"]),
                Input("float_addr", numpy.float32([plain["learning_rate"], plain["moment"]])),
                Input("int_addr", numpy.int32([start, end]))]
    values_ = [Input(n, numpy.float32([v])) if n.endswith("_power") else Value(n, v) for n, v in plain.items()]
    return [*operands, *values_, Value("start", start), Value("end", end)]


@pytest.mark.parametrize(("start", "end"), [(0, 1), (0, 1025), (3, 1000), (1024, 1025), (17, 17)])
@pytest.mark.parametrize(("name", "prefix", "nesterov"), STEP_CASES)
def test_steps(name, prefix, nesterov, start, end):
    names, numbers = STEPS[name][1], dict(STEPS[name][2])
    if "nesterov" in numbers:
        numbers["nesterov"] = nesterov
    arrays = [values(prefix, 1025, seed, 0.1, 2) for seed in range(len(names))]
    parameters = step_parameters(name, prefix, numbers, arrays, start, end)
    results = {}
    for mask in (0xFF, 1, 6):
        results[mask] = compute(f"{prefix}_{name}_s", parameters, mask)
    private = compute(f"{prefix}_{name}_p", parameters)
    expected = dict(zip(names, step_oracle(name, [array.astype(float) for array in arrays], numbers)))
    for output, got in results[0xFF].items():
        before = arrays[names.index(output)]
        assert got[:start].tobytes() == before[:start].tobytes() and got[end:].tobytes() == before[end:].tobytes()
        wanted = expected[output][start:end]
        eps = float(numpy.finfo(ELEMENT[prefix]).eps) / 2
        numpy.testing.assert_allclose(got[start:end].astype(float), wanted, rtol=eps * 1.01, atol=2.0**-24 * 40)
        assert got.tobytes() == results[1][output].tobytes() == results[6][output].tobytes()
        assert got.tobytes() == private[output].tobytes()


@pytest.mark.parametrize("symmetric", [0, 1])
@pytest.mark.parametrize("prefix", FLOATS)
def test_fake_quantisation(prefix, symmetric):
    low, high, levels = -0.5, 1.5, (0, 255)
    x = values(prefix, 1025, 0, -3, 3)
    out = masks_agree(f"{prefix}_fake_quant_with_min_max_vars_s", [
        Input("src", x), Value("min_val", low), Value("max_val", high), Output("output", len(x), ELEMENT[prefix]),
        Value("length", len(x)), Value("quant_min", levels[0]), Value("quant_max", levels[1]),
        Value("symmetric", symmetric)], "output").astype(float)
    bottom, top = (-1.5, 1.5) if symmetric else (low, high)
    step = (top - bottom) / 255
    zero = math.floor(-bottom / step + 0.5)
    grid = (numpy.arange(256) - zero) * step
    nearest = numpy.abs(out[:, None] - grid[None, :]).min(axis=1)
    rounding = float(numpy.finfo(ELEMENT[prefix]).eps) * 1.5
    assert (nearest <= rounding).all(), "a result is none of the levels"
    clamped = numpy.clip(x.astype(float), grid[0], grid[-1])
    assert (numpy.abs(out - clamped) <= step / 2 + rounding).all()
    zeros = compute(f"{prefix}_fake_quant_with_min_max_vars_s", [
        Input("src", numpy.zeros(1, ELEMENT[prefix])), Value("min_val", low), Value("max_val", high),
        Output("output", 1, ELEMENT[prefix]), Value("length", 1), Value("quant_min", 0), Value("quant_max", 255),
        Value("symmetric", symmetric)])["output"]
    assert abs(float(zeros[0])) <= rounding, "0 is one of the levels"
