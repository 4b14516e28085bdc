"""Refusals of the element-wise operators: arithmetic, losses, gradients, optimiser steps."""

import numpy
import pytest

from tests.conformance.ftdsp.calls import (DDR_END, At, Input, Operator, case, chip_cases, common_cases, described,
                                           length_case, overlap_case)
from tests.conformance.ftdsp.chips import check_rules

FLOATS = ("fp", "hp")
ALL = ("fp", "hp", "dp", "i8", "i16", "i32", "c64", "c128")
REAL = ("fp", "hp", "dp", "i8", "i16", "i32")


def operators(names, prefixes, text):
    return [Operator(name, tuple(prefixes), described(text)) for name in names.split()]


ACTIVATIONS = "relu_grad relu6_grad sigmoid_grad tanh_grad hsigmoid hswish gelu softplus"

LENGTHS = [
    *operators("add sub mul", ALL, "in x, in y, out out, n n"),
    *operators("subext", ("hp", "fp", "dp", "c64", "c128"), "in input0, in input1, num alpha=0.5, out output, n size"),
    *operators("subrelu subrelu6", ("i8", "i16", "i32", "hp", "fp"), "in input0, in input1, out output, n size"),
    *operators("pow_fusion", ("i8", "i16", "i32", "hp", "fp", "dp"),
               "in Input, in exponent, out output, n length_in, num scale=1, num shift=0, num broadcast=0"),
    *operators("sigmoidcrossentropywithlogits", ("i8", "fp", "hp"), "in input0, in input1, out output, n length"),
    *operators("sigmoidcrossentropywithlogitsgrad", FLOATS, "in Input0, in Input1, out output, n length"),
    *operators("power_grad", FLOATS,
               "in Input1, in Input2, out output, n length, num power=2.0, num scale=1.0, num shift=0.0"),
    *operators("log_grad", FLOATS, "in input0, in input1, out output, n length"),
    *operators(ACTIVATIONS, FLOATS, "in src0, in src1, out dst, n length"),
    *operators("l_relu_grad elu", FLOATS, "in src0, in src1, out dst, n length, num alpha=0.5"),
    *operators("hardshrink softshrink", FLOATS, "in src0, in src1, out dst, n length, num lambd=0.5"),
    *operators("fake_quant_with_min_max_vars", FLOATS,
               "in src, num min_val=0.0, num max_val=1.0, out output, n length, num quant_min=0, num quant_max=255, "
               "num symmetric=0"),
]
DIV = Operator("div", ALL, lambda prefix: described(
    "in x, in y, out out, n n" + ("" if prefix == "hp" else ", num optimize=0, num first_scalar=0"))(prefix))
EXP = Operator("exp", ALL, lambda prefix: described(
    f"in x, out out{'=float32' if prefix == 'i32' else ''}, n n, num in_scale=1.0, num out_scale=1.0, "
    "num scale=1")(prefix))
SMOOTH_L1 = Operator("smoothl1lossgrad", FLOATS, described("in dy, out dx1, in x1, in x2, n length, num beta=0.5"))
LINSPACE = Operator("linspace", FLOATS, described("out out, num start=0.0, num end=1.0, n n"))
RANGE = Operator("range", REAL, lambda prefix: described("out out, num start=0, num delta=1, n n")(prefix))
BCE = Operator("binarycrossentropy", ("fp", "hp", "i8"), described(
    "n input_size, num reduction=1, in input_x, in input_y, in weight, one loss, out tmp_loss, num weight_defined=1"))
RANGES = "num start=0, num end=6"
STEPS = {
    "applymomentum": (FLOATS, ["weight", "accumulate"], "inout weight, inout accumulate, in gradient, "
                      f"num learning_rate=0.1, num moment=0.9, num nesterov=0, {RANGES}"),
    "sgd": (FLOATS, ["weight", "accumulate"], "inout weight, inout accumulate, in gradient, num learning_rate=0.1, "
            f"num dampening=0.0, num moment=0.9, num nesterov=0, num weight_decay=0.0, {RANGES}"),
    "adam": (("fp",), ["m", "v", "weight"], "inout m, inout v, in gradient, inout weight, num beta1=0.9, "
             "num beta2=0.99, floats beta1_power=0.9, floats beta2_power=0.99, num eps=0.001, num learning_rate=0.1, "
             f"num nesterov=0, {RANGES}"),
    "adamweightdecay": (FLOATS, ["var", "m", "v"], "inout var, inout m, inout v, in gradient, num lr=0.1, "
                        f"num beta1=0.9, num beta2=0.99, num epsilon=0.001, num decay=0.01, {RANGES}"),
}
APPLY = Operator("apply_momentum", FLOATS, described(
    "inout weight, inout accumulate, in gradient, num nesterov=1, floats float_addr=0.1 0.9, ints int_addr=0 6"))
STEP_OPERATORS = {name: Operator(name, prefixes, described(text)) for name, (prefixes, _, text) in STEPS.items()}
OPERATORS = [*LENGTHS, DIV, EXP, SMOOTH_L1, LINSPACE, RANGE, BCE, APPLY, *STEP_OPERATORS.values()]


def counting(operator):
    """The name of the parameter that counts elements."""
    text = {p.name for p in operator.parameters(operator.prefixes[0])}
    return next(name for name in ("length", "length_in", "size", "n", "input_size") if name in text)


def output_of(operator):
    text = [p.name for p in operator.parameters(operator.prefixes[0])]
    return next(name for name in ("output", "out", "dst", "loss", "dx1") if name in text)


def step_cases(operator):
    for prefix, space in operator.functions():
        yield case(operator, prefix, space, "start/negative", [{"start": -1}, {"start": -(2**31)}],
                   [{"start": 0}, {"start": 5}])
        yield case(operator, prefix, space, "end/range", [{"start": 3, "end": 2}, {"end": -1}],
                   [{"start": 3, "end": 3}, {"start": 3, "end": 4}, {"end": 0}])


def overlap_of_step(operator, prefix, space, outputs):
    """The output that a refusal names is the first, in the operator's order of outputs, that overlaps in part."""
    order = [p.name for p in operator.parameters(prefix)]
    size = operator.parameters(prefix)[order.index(outputs[0])].dtype().itemsize
    for output in outputs:
        partners = [name for name in (*outputs[outputs.index(output) + 1:], "gradient")]
        refused = []
        for partner in partners:
            first, second = sorted([output, partner], key=order.index)
            refused += [{second: (first, shift)} for shift in (size, 5 * size)]
        first, second = sorted([output, "gradient"], key=order.index)
        yield case(operator, prefix, space, f"{output}/overlap", refused,
                   [{second: (first, 0)}, {second: (first, 6 * size)}])


def make_rules():
    for operator in OPERATORS:
        yield from common_cases(operator)
        yield from chip_cases(operator)
    for operator in [*LENGTHS, DIV, EXP, SMOOTH_L1, LINSPACE, RANGE, BCE]:
        for prefix, space in operator.functions():
            yield length_case(operator, prefix, space, counting(operator))
    for operator in [*LENGTHS, DIV, EXP]:
        for prefix, space in operator.functions():
            yield overlap_case(operator, prefix, space, output_of(operator))
    for prefix, space in SMOOTH_L1.functions():
        size = SMOOTH_L1.parameters(prefix)[1].dtype().itemsize
        yield case(SMOOTH_L1, prefix, space, "dx1/overlap",
                   [{"dx1": ("dy", size)}, {"x1": ("dx1", size)}, {"x2": ("dx1", 5 * size)}],
                   [{"dx1": ("dy", 0)}, {"x1": ("dx1", 0)}, {"x2": ("dx1", 0)}, {"x2": ("dx1", 6 * size)}])
    for prefix, space in BCE.functions():
        size = BCE.parameters(prefix)[5].dtype().itemsize
        yield case(BCE, prefix, space, "reduction/range", [{"reduction": -1}, {"reduction": 3}],
                   [{"reduction": 0}, {"reduction": 1}, {"reduction": 2}])
        each = {"reduction": 0}
        yield case(BCE, prefix, space, "loss/overlap",
                   [{**each, "loss": ("input_x", size)}, {**each, "loss": ("weight", 5 * size)}],
                   [{**each, "loss": ("input_x", 0)}, {**each, "loss": ("weight", 6 * size)},
                    {"loss": ("input_y", size)}, {"weight_defined": 0, "weight": None}])
        yield case(BCE, prefix, space, "loss/window", [{**each, "loss": At(DDR_END - 5 * size, copy=False)}],
                   [{**each, "loss": At(DDR_END - 6 * size, copy=False)}, {"loss": At(DDR_END - size)},
                    {**each, "tmp_loss": None}])
    for operator in LENGTHS:
        if operator.name == "fake_quant_with_min_max_vars":
            for prefix, space in operator.functions():
                yield case(operator, prefix, space, "max_val/range",
                           [{"min_val": 1.0}, {"max_val": -0.5}, {"max_val": float("nan")}], [{"min_val": 0.9375}])
                yield case(operator, prefix, space, "quant_max/range", [{"quant_max": 0}, {"quant_max": -1}],
                           [{"quant_max": 1}, {"quant_min": -2**31, "quant_max": 2**31 - 1}])
    for name, operator in STEP_OPERATORS.items():
        yield from step_cases(operator)
        for prefix, space in operator.functions():
            yield from overlap_of_step(operator, prefix, space, STEPS[name][1])
    for prefix, space in APPLY.functions():
        yield from overlap_of_step(APPLY, prefix, space, ["weight", "accumulate"])
        yield case(APPLY, prefix, space, "int_addr/range", [{"int_addr": ints(-1, 3)}, {"int_addr": ints(3, 2)}],
                   [{"int_addr": ints(0, 3)}, {"int_addr": ints(3, 3)}])


def ints(*values):
    return Input("int_addr", numpy.array(values, numpy.int32))


RULES = list(make_rules())


@pytest.mark.parametrize("chip", ["FT78NE", "MT7004", ""])
def test_rules(chip):
    check_rules(__name__, RULES, chip)
