"""Refusals of the operators with shapes: bias, maximum, losses by class, matrices, ranges, joins, slices."""

import numpy
import pytest

from tests.conformance.ftdsp.calls import (ALIGNMENT, DDR, DDR_END, ELEMENT, L2, L2_OF_CORE_3, At, Input, Operator,
                                           Output, Table, Value, case, chip_cases, common_cases, sample)
from tests.conformance.ftdsp.chips import check_rules

FLOATS = ("fp", "hp")
ALL = ("fp", "hp", "dp", "i8", "i16", "i32", "c64", "c128")
INT_MAX = 2**31 - 1


def ints(*values):
    return numpy.array(values, numpy.int32)


HUGE = ints(INT_MAX, INT_MAX, 1, 1)


def item(prefix):
    return numpy.dtype(ELEMENT[prefix]).itemsize if prefix else 1


def extremum(prefix):
    element = ELEMENT[prefix]
    return [Input("Input0", sample(prefix, 6, 0)), Input("Input1", sample(prefix, 6, 1)),
            Input("dy", sample(prefix, 6, 2)), Value("Input0_dims", ints(2, 3)), Value("Input1_dims", ints(2, 3)),
            Value("num_dims", 2), Output("dx0", 6, element), Output("dx1", 6, element)]


def biasadd(prefix):
    return [Input("input_x", sample(prefix, 12, 0)), Input("input_bias", sample(prefix, 3, 1)),
            Output("output", 12, ELEMENT[prefix]), Value("dims", ints(2, 3, 2)), Value("shape_size", 3),
            Value("data_format", b"NCHW"), Value("length", 12)]


def biasaddgrad(prefix):
    return [Input("dy", sample(prefix, 12, 0)), Value("dy_dims", ints(2, 2, 3)), Value("shape_size", 3),
            Output("dbias", 3, ELEMENT[prefix])]


def nllloss(prefix):
    loss = numpy.int32 if prefix == "i8" else ELEMENT[prefix]
    return [Input("log_probs", sample(prefix, 12, 0)), Input("labels", ints(0, 2, 1, 2)),
            Input("weight", sample(prefix, 3, 1)), Output("loss", 4, loss), Output("total_weight", 1, loss),
            Value("batch_size", 4), Value("class_num", 3), Value("reduction_type", 0)]


def matrix(activation):
    def parameters(prefix):
        return [Input("A", sample(prefix, 6, 0)), Input("B", sample(prefix, 12, 1)), Output("C", 8, ELEMENT[prefix]),
                Input("bias", sample(prefix, 8, 2)), Value("M", 2), Value("N", 4), Value("K", 3),
                Value(activation, 0)]

    return parameters


def attention(prefix):
    return [Input("Q", sample(prefix, 24, 0)), Input("K", sample(prefix, 24, 1)), Input("V", sample(prefix, 24, 2)),
            Output("output", 24, numpy.float32), Value("batch_size", 1), Value("seq_len", 3), Value("head_num", 2),
            Value("head_dim", 4), Output("QK", 18, numpy.float32), Output("softmax_out", 18, numpy.float32)]


def raggedrange(prefix, starts=(0, 5, 1), limits=(4, 2, 1), deltas=(1, -1, 1)):
    element = ELEMENT[prefix]
    return [Input("starts", numpy.array(starts, element)), Input("limits", numpy.array(limits, element)),
            Input("deltas", numpy.array(deltas, element)), Value("range_count", 3), Output("values", 7, element),
            Output("splits", 4, numpy.int32)]


def concat(prefix):
    return [Table("inputs", [sample(prefix, 6, 0), sample(prefix, 9, 1)]),
            Table("input_shapes", [ints(3, 2), ints(3, 3)], operands=False), Value("num_inputs", 2), Value("axis", 1),
            Value("input_ndim", 2), Output("output", 15, ELEMENT[prefix])]


def stack(prefix):
    return [Table("inputs", [sample(prefix, 6, 0), sample(prefix, 6, 1)]), Value("input_shape", ints(3, 2)),
            Value("num_inputs", 2), Value("axis", 1), Value("input_ndim", 2), Output("output", 12, ELEMENT[prefix])]


def slice_(prefix):
    return [Input("input", sample(prefix, 12, 0)), Output("output", 4, ELEMENT[prefix]),
            Value("input_shape", ints(3, 4)), Value("ndim", 2), Value("begin", ints(1, 1)), Value("size", ints(2, 2))]


def tensorarrayread(prefix):
    return [Table("handle_data", [sample(prefix, 4, 0), sample(prefix, 6, 1)]),
            Value("handle_size", ints(4 * item(prefix), 6 * item(prefix))), Value("index", 1),
            Output("output_data", 6 * item(prefix), numpy.int8), Output("output_size", 1, numpy.int32)]


def tensorliststack(prefix):
    return [Value("tensor_num", 2), Value("tensor_element_nums", ints(4, 6)), Value("tensor_data_type", ints(4, 2)),
            Table("tensor_data", [sample("fp", 4, 0), sample("hp", 6, 1)]), Output("output_data", 28, numpy.int8),
            Value("unknown_type_offset", 8)]


def glu(prefix):
    return [Input("in_data", sample(prefix, 24, 0)), Table("split_data", [sample(prefix, 12, 1), sample(prefix, 12, 2)]),
            Output("out_data", 12, ELEMENT[prefix]), Value("ndim", 3), Value("split_dim", 1),
            Value("input_shape", ints(2, 4, 3)), Value("num_split", 2), Value("split_sizes", ints(2, 2)),
            Value("strides", ints(12, 3, 1)), Value("len", 12)]


def assertion(prefix):
    return [Input("cond", ints(1)), Output("out", 1, numpy.int32)]


def factors(prefix):
    return [Output("w", 4, ELEMENT[prefix]), Value("n", 4), Value("direction", 0)]


def fourier(prefix):
    element = ELEMENT[prefix]
    return [Input("in", sample(prefix, 8, 0)), Input("w", sample(prefix, 4, 1)), Output("out", 8, element),
            Value("batch", 2), Value("n", 4), Output("tmp", 16, element)]


OPERATORS = {
    operator.name: operator
    for operator in [
        Operator("maximumgrad", FLOATS, extremum), Operator("minimumgrad", FLOATS, extremum),
        Operator("biasadd", ("i8", "i16", "i32", "fp", "hp", "dp", "c64", "c128"), biasadd),
        Operator("biasaddgrad", FLOATS, biasaddgrad), Operator("nllloss", ("i8", "hp", "fp"), nllloss),
        Operator("fullconnection", ("i8", "fp", "hp"), matrix("activation_type")),
        Operator("matmulfusion", ALL, matrix("act")),
        Operator("attention", ("fp",), attention),
        Operator("raggedrange", ("i8", "i16", "i32", "fp", "dp", "hp"), raggedrange),
        Operator("concat", ALL, concat), Operator("stack", ALL, stack), Operator("slice", ALL, slice_),
        Operator("tensorarrayread", ALL, tensorarrayread),
        Operator("tensorliststack", ("",), tensorliststack, spaces="s"),
        Operator("glu", ("i8", "hp", "fp"), glu), Operator("assert", ("",), assertion, spaces="s"),
        Operator("getw", ("c64",), factors), Operator("fft", ("c64",), fourier), Operator("ifft", ("c64",), fourier),
    ]
}


def negative(name):
    return [{name: -1}, {name: -(2**31)}]


def extremum_cases(add, size):
    yield add("num_dims/range", [{"num_dims": -1}, {"num_dims": 9}],
              [{"num_dims": 0}, {"num_dims": 8, "Input0_dims": ints(*[1] * 8), "Input1_dims": ints(*[1] * 8)}])
    for name in ("Input0_dims", "Input1_dims"):
        yield add(f"{name}/null", [{name: None}], [{}])
        yield add(f"{name}/range", [{name: ints(2, -1)}, {name: HUGE, "num_dims": 4}], [{name: ints(2, 1)}])
    yield add("Input1_dims/broadcast", [{"Input1_dims": ints(3, 3)}, {"Input1_dims": ints(2, 2)},
                                        {"Input1_dims": ints(0, 3)}],
              [{"Input1_dims": ints(1, 3)}, {"Input1_dims": ints(1, 1)}])
    wide = {"num_dims": 2, "Input0_dims": ints(INT_MAX, 1)}
    yield add("Input1_dims/overflow", [{**wide, "Input1_dims": ints(1, 2**20)}],
              [{"Input0_dims": ints(2, 1), "Input1_dims": ints(1, 3)}])
    yield add("dx0/overlap", [{"dx0": ("Input0", size)}, {"dx0": ("dy", 5 * size)},
                              {"Input1_dims": ints(1, 3), "dx0": ("Input0", 0)}],
              [{"dx0": ("Input0", 0)}, {"dx0": ("dy", 6 * size)}])
    yield add("dx1/overlap", [{"dx1": ("Input1", size)}, {"dx1": ("dx0", 0)}],
              [{"dx1": ("dy", 0)}, {"dx1": ("dx0", 6 * size)}])


def biasadd_cases(add, size):
    yield add("shape_size/range", [{"shape_size": 1}, {"shape_size": 9}, {"shape_size": -1}],
              [{"shape_size": 2, "length": 6}])
    yield add("dims/null", [{"dims": None}], [{}])
    yield add("data_format/null", [{"data_format": None}], [{}])
    yield add("dims/range", [{"dims": ints(2, -3, 2)}, {"dims": HUGE, "shape_size": 4}],
              [{"dims": ints(2, 0, 2), "length": 0}])
    yield add("data_format/value", [{"data_format": b"NCHw"}, {"data_format": b""}, {"data_format": b"NHWCX"}],
              [{"data_format": b"NHWC"}])
    yield add("length/mismatch", [{"length": 11}, {"length": 13}, {"length": -12}, {"length": 3}], [{}])
    yield add("output/overlap", [{"output": ("input_x", size)}, {"output": ("input_bias", 0)},
                                 {"output": ("input_bias", 2 * size)}],
              [{"output": ("input_x", 0)}, {"output": ("input_x", 12 * size)}])


def biasaddgrad_cases(add, size):
    yield add("shape_size/range", [{"shape_size": 0}, {"shape_size": 9}],
              [{"shape_size": 1, "dy_dims": ints(3)}])
    yield add("dy_dims/null", [{"dy_dims": None}], [{}])
    yield add("dy_dims/range", [{"dy_dims": ints(2, -2, 3)}, {"dy_dims": HUGE, "shape_size": 4}],
              [{"dy_dims": ints(0, 2, 3)}, {"dy_dims": ints(2, 2, 0)}])
    yield add("dbias/overlap", [{"dbias": ("dy", 0)}, {"dbias": ("dy", 11 * size)}], [{"dbias": ("dy", 12 * size)}])


def nllloss_cases(add, size):
    yield add("batch_size/negative", negative("batch_size"), [{"batch_size": 0}, {"batch_size": 1}])
    yield add("class_num/range", [{"class_num": 0}, {"class_num": -1}],
              [{"class_num": 1, "labels": Input("labels", ints(0, 0, 0, 0))}])
    yield add("class_num/overflow", [{"class_num": INT_MAX, "batch_size": INT_MAX}], [{}])
    yield add("reduction_type/range", [{"reduction_type": -1}, {"reduction_type": 3}],
              [{"reduction_type": 1}, {"reduction_type": 2}])
    yield add("labels/range", [{"labels": Input("labels", ints(0, 1, 2, 3))},
                               {"labels": Input("labels", ints(-1, 0, 0, 0))}],
              [{"labels": Input("labels", ints(0, 1, 2, 2))}])
    yield add("loss/overlap", [{"loss": ("log_probs", 0)}, {"loss": ("labels", 12)}],
              [{"loss": ("log_probs", 12 * size)}])
    yield add("total_weight/overlap", [{"total_weight": ("loss", 0)}, {"total_weight": ("labels", 12)}],
              [{"total_weight": ("labels", 16)}])


def matrix_cases(activation, prefix):
    ordered = not prefix.startswith("c")

    def cases(add, size):
        for name in "MNK":
            yield add(f"{name}/negative", negative(name), [{name: 0}, {name: 1}])
        yield add("M/overflow", [{"M": INT_MAX, "K": INT_MAX}, {"K": INT_MAX, "N": INT_MAX},
                                 {"M": INT_MAX, "N": INT_MAX}], [{}])
        yield add(f"{activation}/range", [{activation: -1}, {activation: 3}],
                  [{activation: 1}, {activation: 2}] if ordered else [{activation: 0}])
        if not ordered:
            yield add(f"{activation}/complex", [{activation: 1}, {activation: 2}], [{activation: 0}])
        # C stands before bias in the argument list: bias is placed relative to it
        yield add("C/overlap", [{"C": ("A", 0)}, {"C": ("B", 11 * size)}, {"bias": ("C", size)}],
                  [{"C": ("B", 12 * size)}, {"bias": ("C", 0)}, {"bias": None}])

    return cases


def attention_cases(add, size):
    for name in ("batch_size", "seq_len", "head_num", "head_dim"):
        yield add(f"{name}/negative", negative(name), [{name: 0}, {name: 1}])
    yield add("seq_len/overflow", [{"seq_len": INT_MAX, "head_dim": 1}, {"batch_size": INT_MAX, "head_num": INT_MAX}],
              [{}])
    for output, other, elements in (("output", "V", 24), ("QK", "output", 24), ("softmax_out", "QK", 18)):
        yield add(f"{output}/overlap", [{output: (other, 0)}, {output: (other, (elements - 1) * size)}],
                  [{output: (other, elements * size)}])


def raggedrange_cases(add, size, element):
    def numbers(name, *values):
        return Input(name, numpy.array(values, element))

    yield add("range_count/negative", negative("range_count"), [{"range_count": 0}, {"range_count": 1}])
    yield add("deltas/zero", [{"deltas": numbers("deltas", 1, -1, 0)}], [{"deltas": numbers("deltas", 1, -1, -1)}])
    if numpy.dtype(element).kind == "f":
        tiny = numpy.finfo(element).tiny
        refused = [{"deltas": numbers("deltas", tiny / 2**8, -1, 1)} if element != numpy.float16 else
                   {"limits": numbers("limits", numpy.inf, 2, 1)},
                   {"limits": numbers("limits", numpy.nan, 2, 1)}, {"starts": numbers("starts", -numpy.inf, 5, 1)}]
        yield add("splits/overflow", refused, [{"limits": numbers("limits", 4, 2, -numpy.inf)}])
    elif element == numpy.int32:
        least = numbers("starts", -(2**31), 5, 1)
        yield add("splits/overflow", [{"starts": least, "limits": numbers("limits", 2**31 - 1, 2, 1)}],
                  [{"starts": least, "limits": numbers("limits", -(2**31) + 4, 2, 1)}])
    else:  # one range is too short: many of the longest
        limits = numpy.iinfo(element)
        many = 2**31 // (int(limits.max) - int(limits.min)) + 1
        whole = {name: Input(name, numpy.full(many, value, element))
                 for name, value in (("starts", limits.min), ("limits", limits.max), ("deltas", 1))}
        yield add("splits/overflow", [{**whole, "range_count": many}], [{}])
    yield add("values/overlap", [{"values": ("starts", 0)}, {"values": ("deltas", 2 * size)}],
              [{"values": ("deltas", 3 * size)}])
    yield add("splits/overlap", [{"splits": ("values", 0)}, {"splits": ("values", (7 * size - 1) // 4 * 4)}],
              [{"splits": ("values", (7 * size + 3) // 4 * 4)}])


def join_cases(name):
    def cases(add, size):
        yield add("num_inputs/range", [{"num_inputs": 0}, {"num_inputs": -1}], [{}])
        yield add("inputs/table", [{"inputs": None}], [{}])
        lowest = 1 if name == "concat" else 0
        yield add("input_ndim/range", [{"input_ndim": lowest - 1}, {"input_ndim": 9}],
                  [{"input_ndim": 2}, {"input_ndim": 1, "axis": 0}])
        yield add("axis/range", [{"axis": -1}, {"axis": 2 if name == "concat" else 3}],
                  [{"axis": 0}, {"axis": 1}] if name == "stack" else [{"axis": 1}])
        yield add("output/overflow", overflow(name), [{}])
        yield add("output/overlap", [{"output": At(DDR), "inputs": Table("inputs", [At(DDR), At(DDR + 2**20)])},
                                     {"output": At(DDR), "inputs": Table("inputs", [At(DDR + 2**20), At(DDR + size)])}],
                  [{"output": At(DDR), "inputs": Table("inputs", [At(DDR + 2**20), At(DDR + 2**21)])}])
        shapes = "input_shapes" if name == "concat" else "input_shape"
        if name == "concat":
            yield add("input_shapes/null", [{shapes: None}, {shapes: Table(shapes, [ints(3, 2), None], operands=False)},
                                            {shapes: Table(shapes, [None, ints(3, 3)], operands=False)}], [{}])
            yield add("input_shapes/range", [{shapes: Table(shapes, [ints(3, 2), ints(3, -3)], operands=False)},
                                             {shapes: Table(shapes, [ints(-3, 2), ints(3, 3)], operands=False)}],
                      [{shapes: Table(shapes, [ints(3, 2), ints(3, 0)], operands=False)}])
            yield add("input_shapes/mismatch", [{shapes: Table(shapes, [ints(3, 2), ints(2, 3)], operands=False)},
                                                {"axis": 0}],
                      [{shapes: Table(shapes, [ints(3, 2), ints(3, 1)], operands=False)}])
        else:
            yield add("input_shape/null", [{shapes: None}], [{}])
            yield add("input_shape/range", [{shapes: ints(3, -2)}, {shapes: HUGE, "input_ndim": 4}],
                      [{shapes: ints(3, 0)}])

    return cases


def overflow(name):
    wide = ints(INT_MAX, 2**12 + 1)  # two of them have more than 2^44 elements
    if name == "concat":
        return [{"input_shapes": Table("input_shapes", [wide, wide], operands=False)}]
    return [{"input_shape": wide}]


def slice_cases(add, size):
    yield add("ndim/range", [{"ndim": 0}, {"ndim": 9}], [{"ndim": 1}])
    for name in ("input_shape", "begin", "size"):
        yield add(f"{name}/null", [{name: None}], [{}])
    yield add("input_shape/range", [{"input_shape": ints(3, -4)}], [{"input_shape": ints(3, 4)}])
    yield add("size/range", [{"size": ints(2, -1)}], [{"size": ints(2, 0)}])
    yield add("begin/range", [{"begin": ints(2, 1)}, {"begin": ints(1, -1)}, {"size": ints(2, 4)}],
              [{"begin": ints(1, 2)}, {"begin": ints(0, 0)}])
    yield add("output/overlap", [{"output": ("input", 0)}, {"output": ("input", 11 * size)}],
              [{"output": ("input", 12 * size)}])


def tensorarrayread_cases(add, size):
    yield add("index/negative", negative("index"), [{"index": 0}])
    yield add("handle_data/table", [{"handle_data": None}], [{}])
    yield add("handle_size/null", [{"handle_size": None}], [{}])
    nothing = Table("handle_data", [At(DDR), None])
    yield add("handle_size/negative", [{"handle_size": ints(1, -1)}, {"handle_size": ints(1, -(2**31))}],
              [{"handle_size": ints(-1, 1)}, {"handle_size": ints(1, 0), "handle_data": nothing, "output_data": None}])
    source = Table("handle_data", [At(DDR), At(DDR + 2**20)])
    last = DDR + 2**20 + 6 * size
    yield add("output_data/overlap", [{"handle_data": source, "output_data": At(DDR + 2**20)},
                                      {"handle_data": source, "output_data": At(last - 1)}],
              [{"handle_data": source, "output_data": At(last)}])
    yield add("output_size/overlap", [{"handle_data": source, "output_size": At(DDR + 2**20)},
                                      {"output_size": ("output_data", 0)},
                                      {"output_size": ("output_data", (6 * size - 1) // 4 * 4)}],
              [{"handle_data": source, "output_size": At(-(-last // 4) * 4)},
               {"output_size": ("output_data", -(-6 * size // 4) * 4)}])


def tensorliststack_cases(add, size):
    nothing = {"tensor_element_nums": None, "tensor_data_type": None, "tensor_data": None, "output_data": None}
    yield add("tensor_num/negative", negative("tensor_num"), [{"tensor_num": 0, **nothing}, {"tensor_num": 1}])
    for name, good in (("tensor_element_nums", ints(4, 0)), ("tensor_data_type", ints(4, 0))):
        yield add(f"{name}/null", [{name: None}], [{}])
        yield add(f"{name}/negative", [{name: ints(4, -1)}, {name: ints(-(2**31), 2)}],
                  [{name: good}, {name: good, "tensor_data": Table("tensor_data", [At(DDR), None])}])
    yield add("unknown_type_offset/negative", negative("unknown_type_offset"), [{"unknown_type_offset": 0}])
    yield add("tensor_data/table", [{"tensor_data": None}], [{}])
    huge = ints(4, INT_MAX)
    yield add("output_data/overflow", [{"tensor_element_nums": huge, "tensor_data_type": huge}], [{}])
    source = {"tensor_data": Table("tensor_data", [At(DDR), At(DDR + 64)])}
    yield add("output_data/overlap", [{**source, "output_data": At(DDR + 64)}, {**source, "output_data": At(DDR + 15)},
                                      {**source, "output_data": At(DDR + 75)}],
              [{**source, "output_data": At(DDR + 16)}, {**source, "output_data": At(DDR + 76)}])


def glu_cases(add, size):
    flat = {"input_shape": ints(4), "split_dim": 0, "strides": ints(1), "len": 2}
    yield add("ndim/range", [{"ndim": 0}, {"ndim": 9}, {"ndim": -1}],
              [{"ndim": 1, **flat}, {"ndim": 8, "input_shape": ints(4, 1, 1, 1, 1, 1, 1, 1), "split_dim": 0,
                                     "strides": ints(*[1] * 8), "len": 2}])
    yield add("split_dim/range", [{"split_dim": -1}, {"split_dim": 3}],
              [{"split_dim": 0, "split_sizes": ints(1, 1)},
               {"split_dim": 2, "input_shape": ints(2, 3, 4), "strides": ints(12, 4, 1)}])
    for name in ("input_shape", "split_sizes", "strides"):
        yield add(f"{name}/null", [{name: None}], [{}])
    yield add("input_shape/range", [{"input_shape": ints(2, -4, 3)}, {"input_shape": HUGE, "ndim": 4}],
              [{"input_shape": ints(2, 0, 3), "split_sizes": ints(0, 0), "strides": ints(0, 3, 1), "len": 0,
                "in_data": None, "out_data": None}])
    yield add("split_data/table", [{"split_data": None}], [{}])
    yield add("num_split/range", [{"num_split": 1}, {"num_split": 3}, {"num_split": -2}], [{"num_split": 2}])
    yield add("split_sizes/mismatch", [{"split_sizes": ints(1, 3)}, {"split_sizes": ints(1, 1)},
                                       {"split_sizes": ints(3, 2)}, {"split_dim": 2, "split_sizes": ints(1, 1)}],
              [{"split_dim": 0, "split_sizes": ints(1, 1)}])
    yield add("strides/mismatch", [{"strides": ints(12, 3, 2)}, {"strides": ints(12, 4, 1)},
                                   {"strides": ints(1, 3, 12)}], [{"strides": ints(12, 3, 1)}])
    yield add("len/mismatch", [{"len": 11}, {"len": 13}, {"len": 24}, {"len": -12}, {"len": 0}], [{"len": 12}])
    halves = {"split_data": Table("split_data", [At(DDR), At(DDR + 12 * size)])}
    yield add("split_data/overlap", [{"split_data": Table("split_data", [At(DDR), At(DDR)])},
                                     {"split_data": Table("split_data", [At(DDR), At(DDR + 11 * size)])},
                                     {"in_data": At(DDR + 24 * size),
                                      "split_data": Table("split_data", [At(DDR + 47 * size), At(DDR)])},
                                     {"in_data": At(DDR + 11 * size), **halves}],
              [{"in_data": At(DDR + 24 * size), **halves}])
    yield add("out_data/overlap", [{"out_data": ("in_data", 0)}, {"out_data": ("in_data", 23 * size)},
                                   {**halves, "out_data": At(DDR)}, {**halves, "out_data": At(DDR + 23 * size)}],
              [{"out_data": ("in_data", 24 * size)}, {**halves, "out_data": At(DDR + 24 * size)}])


def no_cases(add, size):
    return []


def factors_cases(add, size):
    yield add("n/negative", negative("n"), [{"n": 0, "w": None}, {"n": 1}, {"n": 3}])
    yield add("direction/range", [{"direction": -1}, {"direction": 2}], [{"direction": 1}])


def fourier_cases(add, size):
    nothing = {name: None for name in ("in", "w", "out", "tmp")}
    yield add("batch/negative", negative("batch"), [{"batch": 0, **nothing}, {"batch": 1}])
    yield add("n/negative", negative("n"), [{"n": 0, **nothing}, {"n": 1}])
    yield add("n/power-of-two", [{"n": 3}, {"n": 6}, {"n": 5}, {"n": INT_MAX}], [{"n": 1}, {"n": 2}, {"n": 4}])
    yield add("batch/overflow", [{"batch": INT_MAX, "n": 2**30}, {"batch": 2**15, "n": 2**30}], [{}])
    yield add("out/overlap", [{"out": ("in", 0)}, {"out": ("in", 7 * size)}, {"out": ("w", 3 * size)}],
              [{"out": ("w", 4 * size)}, {"out": ("in", 8 * size)}])
    yield add("tmp/overlap", [{"tmp": ("in", 7 * size)}, {"tmp": ("w", 0)}, {"tmp": ("out", 0)},
                              {"tmp": ("out", 7 * size)}, {"tmp": At(DDR), "in": At(DDR + 15 * size)}],
              [{"tmp": ("out", 8 * size)}, {"tmp": At(DDR), "in": At(DDR + 16 * size)}])


OWN = {
    "maximumgrad": extremum_cases, "minimumgrad": extremum_cases, "biasadd": biasadd_cases,
    "biasaddgrad": biasaddgrad_cases, "nllloss": nllloss_cases, "attention": attention_cases, "concat": join_cases("concat"),
    "stack": join_cases("stack"), "slice": slice_cases,
    "tensorarrayread": tensorarrayread_cases,
    "tensorliststack": tensorliststack_cases, "glu": glu_cases, "assert": no_cases, "getw": factors_cases,
    "fft": fourier_cases, "ifft": fourier_cases,
}
ACTIVATIONS = {"fullconnection": "activation_type", "matmulfusion": "act"}


def table_cases(operator, prefix, space):
    """The operand rules of the arrays that a table points to."""
    table = next(p for p in operator.parameters(prefix) if isinstance(p, Table))
    bytewise = table.name not in ("inputs", "split_data")
    alignment = 1 if bytewise else ALIGNMENT.get(prefix, item(prefix))
    first = At(DDR)

    def entries(bad):
        return {table.name: Table(table.name, [first, bad])}

    def add(rule, bad, good):
        return case(operator, prefix, space, f"{table.name}/{rule}", [entries(b) for b in bad],
                    [entries(g) for g in good])

    last = table.entries[1].nbytes
    yield add("null", [None], [At(DDR + 2**20)])
    if alignment > 1:
        yield add("alignment", [At(DDR + 2**20 + 1)], [At(DDR + 2**20 + alignment)])
    yield add("window", [At(DDR_END - last + alignment, copy=False)], [At(DDR_END - last)])
    if space == "s":
        yield add("private", [At(L2)], [At(DDR + 2**20)])
    else:
        yield add("other-core", [At(L2_OF_CORE_3, copy=False)], [At(L2)])


def make_rules():
    for operator in OPERATORS.values():
        yield from common_cases(operator, optional=("bias",) if operator.name in ACTIVATIONS else ())
        yield from chip_cases(operator)
        for prefix, space in operator.functions():
            def add(tail, refused, accepted, p=prefix, s=space, o=operator):
                return case(o, p, s, tail, refused, accepted)

            if operator.name == "raggedrange":
                yield from raggedrange_cases(add, item(prefix), ELEMENT[prefix])
            elif operator.name in ACTIVATIONS:
                yield from matrix_cases(ACTIVATIONS[operator.name], prefix)(add, item(prefix))
            else:
                yield from OWN[operator.name](add, item(prefix))
            if operator.name in ("concat", "stack", "tensorarrayread", "tensorliststack", "glu"):
                yield from table_cases(operator, prefix, space)


RULES = list(make_rules())


@pytest.mark.parametrize("chip", ["FT78NE", "MT7004", ""])
def test_rules(chip):
    check_rules(__name__, RULES, chip)
