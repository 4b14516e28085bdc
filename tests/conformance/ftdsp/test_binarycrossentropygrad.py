"""fp_/hp_binarycrossentropygrad_s/_p: every refusal with its legal neighbour, and the worked numbers."""

import numpy
import pytest

from tests.conformance.ftdsp.calls import (ELEMENT, Input, Operator, Output, Value, case, chip_cases, common_cases,
                                           compute)
from tests.conformance.ftdsp.chips import check_rules

X = [0.1, 0.25, 0.5, 0.75, 0.9, 0.999]
Y = [0, 1, 0.5, 1, 0, 1]
W = [1, 2, 0.5, 1.5, 1, 3]
DLOSS = {0: [1, 1, 2, 0.5, 1, 1], 1: [2], 2: [2]}


def parameters(prefix, reduction=0, x=X, y=Y, weight=W, dloss=None, weight_defined=1):
    element = ELEMENT[prefix]
    return [
        Value("input_size", len(x)),
        Value("reduction", reduction),
        Input("input_x", numpy.array(x, element)),
        Input("input_y", numpy.array(y, element)),
        Input("weight", numpy.array(weight, element)),
        Input("dloss", numpy.array(DLOSS[reduction] if dloss is None else dloss, element)),
        Output("dx", len(x), element),
        Value("weight_defined", weight_defined),
    ]


OPERATOR = Operator("binarycrossentropygrad", ("fp", "hp"), parameters)


def own_cases():
    for prefix, space in OPERATOR.functions():
        size = numpy.dtype(ELEMENT[prefix]).itemsize

        def add(tail, refused, accepted):
            return case(OPERATOR, prefix, space, tail, refused, accepted)

        nothing = {name: None for name in ("input_x", "input_y", "weight", "dloss", "dx")}
        yield add("input_size/negative", [{"input_size": -1}, {"input_size": -(2**31)}],
                  [{"input_size": 0}, {"input_size": 0, **nothing}, {"input_size": 1}])
        yield add("reduction/range", [{"reduction": -1}, {"reduction": 3}, {"reduction": 2**31 - 1}],
                  [{"reduction": 0}, {"reduction": 1}, {"reduction": 2}])
        inputs = ["input_x", "input_y", "weight", "dloss"]
        shifted = [{"dx": (name, shift)} for name in inputs for shift in (size, 5 * size)]
        legal = [{"dx": (name, shift)} for name in inputs for shift in (0, 6 * size)]
        # one dloss for all elements is read first: dx may lie over it; weight is not looked at when it is not defined
        legal += [{"reduction": 1, "dx": ("dloss", 0)}, {"weight_defined": 0, "weight": None},
                  {"weight_defined": 0, "dx": ("weight", size)}]
        yield add("dx/overlap", shifted, legal)


RULES = [*common_cases(OPERATOR), *own_cases(), *chip_cases(OPERATOR)]


@pytest.mark.parametrize("prefix", ["FT78NE", "MT7004", ""])
def test_rules(prefix):
    check_rules(__name__, RULES, prefix)


BITS = {
    ("fp", 0, 0): "3f8e38e4 c0800000 00000000 bf2aaaab 411ffffe bf8020cd",
    ("fp", 0, 1): "3f8e38e4 c1000000 00000000 bf800000 411ffffe c0403134",
    ("fp", 1, 0): "3ebda130 bfaaaaab 00000000 bee38e3a 40555553 beaad667",
    ("fp", 1, 1): "3ebda130 c02aaaab 00000000 bf2aaaab 40555553 bf8020ce",
    ("fp", 2, 0): "400e38e4 c1000000 00000000 c02aaaab 419ffffe c00020cd",
    ("fp", 2, 1): "400e38e4 c1800000 00000000 c0800000 419ffffe c0c03134",
    ("hp", 0, 0): "3c72 c400 0000 b955 48ff bc01",
    ("hp", 0, 1): "3c72 c800 0000 bc00 48ff c202",
    ("hp", 1, 0): "35ed bd55 0000 b71c 42a9 b557",
    ("hp", 1, 1): "35ed c155 0000 b955 42a9 bc01",
    ("hp", 2, 0): "4072 c800 0000 c155 4cff c001",
    ("hp", 2, 1): "4072 cc00 0000 c400 4cff c602",
}


def bits(array):
    return " ".join(f"{value:0{array.itemsize * 2}x}" for value in array.view(f"u{array.itemsize}"))


@pytest.mark.parametrize("space", ["s", "p"])
@pytest.mark.parametrize(("prefix", "reduction", "weighted"), BITS)
def test_worked_numbers(prefix, reduction, weighted, space):
    result = compute(f"{prefix}_binarycrossentropygrad_{space}",
                     parameters(prefix, reduction, weight_defined=weighted))["dx"]
    assert bits(result) == BITS[prefix, reduction, weighted]


SPECIAL = [  # x, y, dloss, float32 bits (NaN: None)
    (0, 0, 1, 0x00000000), (0, 1, 1, 0xD368D4A5), (1, 0, 1, 0x5368D4A5), (1, 1, 1, 0x00000000),
    (1e-7, 1, 1, 0xCB18961C), (1 - 2**-24, 0, 1, 0x4B7FFEE7), (2, 0, 1, 0xBF800000),
    (numpy.inf, 0, 1, None), (-numpy.inf, 0, 1, None), (numpy.nan, 0, 1, None), (numpy.nan, 1, 1, None),
    (0.5, numpy.nan, 1, None), (0.5, 1, numpy.nan, None), (0, 1, 0, 0x80000000),
]


@pytest.mark.parametrize(("x", "y", "dloss", "expected"), SPECIAL)
def test_special_values(x, y, dloss, expected):
    dx = compute("fp_binarycrossentropygrad_s", parameters("fp", 0, [x], [y], [1], [dloss], 0))["dx"]
    if expected is None:
        assert numpy.isnan(dx[0])
    else:
        assert dx.view(numpy.uint32)[0] == expected


@pytest.mark.parametrize(("x", "expected"), [(-0.5, 0.666666687), (1e-13, -9.09090947e11)])
def test_special_values_given_in_decimal(x, expected):
    dx = compute("fp_binarycrossentropygrad_s", parameters("fp", 0, [x], [0 if x < 0 else 1], [1], [1], 0))["dx"]
    assert abs(dx[0] / expected - 1) < 1e-7  # nine digits are printed


HALF_EDGES = [  # x, y, reduction, N, half bits
    (0, 0, 0, 1, 0x0000), (0, 1, 0, 1, 0xFC00), (1, 0, 0, 1, 0x7C00), (1, 1, 0, 1, 0x0000),
    (1e-4, 1, 0, 1, 0xF0E2), (1e-4, 1, 2, 1, 0xF0E2), (1e-4, 1, 1, 4, 0xE8E2), (0.9999, 0, 0, 1, 0x7C00),
]


@pytest.mark.parametrize(("x", "y", "reduction", "count", "expected"), HALF_EDGES)
def test_half_edges(x, y, reduction, count, expected):
    dx = compute("hp_binarycrossentropygrad_s",
                 parameters("hp", reduction, [x] * count, [y] * count, [1] * count, [1], 0))["dx"]
    assert set(dx.view(numpy.uint16).tolist()) == {expected}


def test_half_mean_of_more_elements_than_half_can_count():
    count = 65521
    dx = compute("hp_binarycrossentropygrad_s",
                 parameters("hp", 1, [0.5] * count, [1] * count, [1] * count, [1000], 0))["dx"]
    assert set(dx.tolist()) == {float(numpy.float16(-2.0 * 1000 / count))}


def page_example():
    index = numpy.arange(1024)
    return (index + 1) / 1025, index % 2, 1 + 0.5 * (index % 3), numpy.linspace(-1, 1, 1024)


TABLE = {  # reduction, weighted: dx[0], dx[511], dx[1023], min, max, sum
    (0, 0): (-1.00097656147, 0.00195694342619, -1.00097656147, -1.00097656147, 511.498044703, 4948.58522311),
    (0, 1): (-1.00097656147, 0.00293541513928, -1.00097656147, -1.99802774856, 1022.99608941, 7515.19146619),
    (1, 0): (0.000977516173313, -0.00195503234862, -0.000977516173313, -0.500488280993, 0.500488280993, 0),
    (1, 1): (0.000977516173313, -0.00293254852294, -0.000977516173313, -0.750732421489, 1.00097656199, 0.213272340051),
    (2, 0): (1.00097656147, -2.00195312499, -1.00097656147, -512.499999737, 512.499999737, 0),
    (2, 1): (1.00097656147, -3.00292968749, -1.00097656147, -768.749999605, 1024.99999947, 218.390876212),
}


@pytest.mark.parametrize(("reduction", "weighted"), TABLE)
def test_example_of_the_page(reduction, weighted):
    x, y, w, d = page_example()
    dx = compute("fp_binarycrossentropygrad_s",
                 parameters("fp", reduction, x, y, w, d if reduction == 0 else [1], weighted))["dx"].astype(float)
    seen = (dx[0], dx[511], dx[1023], dx.min(), dx.max(), dx.sum())
    # the table has exact inputs; rounding x to float32 moves dx by up to 2^-24 / (x * (1 - x)) of itself, each of the
    # five operations by 2^-24
    bound = numpy.abs(dx) * 2.0**-24 * (5 + 1 / (x * (1 - x)))
    bounds = (bound[0], bound[511], bound[1023], bound.max(), bound.max(), bound.sum())
    for got, expected, allowed in zip(seen, TABLE[reduction, weighted], bounds):
        assert abs(got - expected) <= allowed + 1e-11 * abs(expected)  # the table has twelve digits
