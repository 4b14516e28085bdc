"""Rules of convolutions (mcdnn-cnn 8, 10 to 13)."""

import inspect

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests import in_step
from tests.conformance.harness import Result, RuleCase, check_rule
from tests.conformance.maca.mcdnn_cases import Subject, descriptor_rules, fresh
from tests.maca.mcdnn_support import (BFLOAT16, DOUBLE, FLOAT, HALF, Buffer, Tensor, activation, descriptor, handle,
                                      nhwc_strides, parameters, scale)
from tests.maca.test_mcdnn_convolution import Vectors, convolution
from tests.maca.test_mcdnn_tensor_transform import filter_descriptor

INT8, INT32, INT8X4 = lib.MCDNN_DATA_INT8, lib.MCDNN_DATA_INT32, lib.MCDNN_DATA_INT8x4
VECT_C = lib.MCDNN_TENSOR_NCHW_VECT_C
X, W, Y = (2, 4, 6, 7), (6, 2, 3, 3), (2, 6, 4, 5)


def unset(_=None):
    return fresh("mcdnnConvolutionDescriptor_t", "Convolution")


def plain(**more):
    return convolution((0, 0), (1, 1), (1, 1), more.pop("groups", 2), **more)


# ---- the three directions, in every function that takes them ----

class Role:
    """A function with its names for x, w and y and for their data, and whether it is forward, to data or to filter."""

    def __init__(self, function, direction, names, data=("", "", ""), extra=None, outputs=()):
        self.direction, self.names, self.data, self.extra = direction, names, data, extra or (lambda: {})
        self.subject = Subject(function, self.arguments, outputs)

    def arguments(self):
        x, w, y = Tensor(np.ones(X)), Tensor(np.ones(W)), Tensor(np.ones(Y))
        described = dict(zip(self.names, (x, filter_descriptor(W), y)))
        given = {name: tensor for name, tensor in zip(self.data, (x, w, y)) if name}
        return dict(handle=handle(), convDesc=plain(), **described, **given, **self.extra())


def compute(**more):
    return lambda: dict(workSpace=None, workSpaceSizeInBytes=0, **{name: make() for name, make in more.items()})


def one():
    return scale(1)


def zero():
    return scale(0)


def search(kind):
    return lambda: dict(requestedAlgoCount=8, returnedAlgoCount=ffi.new("int *"),
                        perfResults=ffi.new(f"mcdnnConvolution{kind}AlgoPerf_t[8]"))


def extended(kind):
    return lambda: dict(search(kind)(), workSpace=None, workSpaceSizeInBytes=0)


def size():
    return dict(algo=1, sizeInBytes=ffi.new("size_t *"))


def fused():
    tensor, bias = Tensor(np.ones(Y)), Tensor(np.ones((1, 6, 1, 1)))
    return dict(compute(alpha1=one, alpha2=one)(), algo=1, zDesc=tensor, z=tensor, biasDesc=bias, bias=bias,
                activationDesc=activation(lib.MCDNN_ACTIVATION_RELU, 0.0))


FORWARD, DATA, FILTER = range(3)
NAMES = {FORWARD: ("xDesc", "wDesc", "yDesc"), DATA: ("dxDesc", "wDesc", "dyDesc"), FILTER: ("xDesc", "dwDesc", "dyDesc")}
POINTERS = {FORWARD: ("x", "w", "y"), DATA: ("dx", "w", "dy"), FILTER: ("x", "dw", "dy")}
KINDS = {FORWARD: "Fwd", DATA: "BwdData", FILTER: "BwdFilter"}
WORDS = {FORWARD: "Forward", DATA: "BackwardData", FILTER: "BackwardFilter"}
V7_NAMES = {FORWARD: ("srcDesc", "filterDesc", "destDesc"), DATA: ("gradDesc", "filterDesc", "diffDesc"),
            FILTER: ("srcDesc", "gradDesc", "diffDesc")}
CALLS = [Role(f"mcdnnConvolution{WORDS[way]}", way, NAMES[way], POINTERS[way],
              lambda: dict(compute(alpha=one, beta=zero)(), algo=1), (POINTERS[way][2 if way == FORWARD else 0],))
         for way in (FORWARD, DATA, FILTER)]
FUSED = Role("mcdnnConvolutionBiasActivationForward", FORWARD, NAMES[FORWARD], POINTERS[FORWARD], fused, ("y",))
SIZES = [Role(f"mcdnnGetConvolution{WORDS[way]}WorkspaceSize", way,
              NAMES[way] if way != FILTER else ("xDesc", "gradDesc", "dyDesc"), extra=size)
         for way in (FORWARD, DATA, FILTER)]
SEARCHES = [Role(f"mcdnnGetConvolution{WORDS[way]}Algorithm_v7", way, V7_NAMES[way], extra=search(KINDS[way]))
            for way in (FORWARD, DATA, FILTER)]
SEARCHES += [Role(f"mcdnnFindConvolution{WORDS[way]}Algorithm", way, NAMES[way], extra=search(KINDS[way]))
             for way in (FORWARD, DATA, FILTER)]
SEARCHES += [Role(f"mcdnnFindConvolution{WORDS[way]}AlgorithmEx", way, NAMES[way],
                  POINTERS[way] if way != FILTER else ("x", "dw", "y"), extended(KINDS[way]))
             for way in (FORWARD, DATA, FILTER)]
OPTIONAL = ("workSpace",)


def tensors(role, x=X, w=W, y=Y, data_type=FLOAT, types=None, strides=(None, None), **more):
    """Other descriptors of the three, with memory for what they describe."""
    kinds = types or (data_type, data_type, data_type)

    def changes(arguments):
        made = {role.names[0]: descriptor(x, kinds[0], strides[0]), role.names[1]: filter_descriptor(w, kinds[1]),
                role.names[2]: descriptor(y, kinds[2], strides[1]), **{key: make() for key, make in more.items()}}
        room = {name: Buffer(np.zeros(65536, np.uint8)) for name in role.data if name}
        if "zDesc" in arguments:
            made["zDesc"] = made[role.names[2]]
            made["biasDesc"] = descriptor((1, y[1], *[1] * (len(y) - 2)), kinds[2])
        return {**made, **room}
    return changes


def shape_rules(role):
    x_name, w_name, y_name = role.names
    case, way = role.subject.case, role.direction
    one_less = (2, 6, 4, 4)
    cases = [
        case(f"{x_name}/alive", {x_name: None}), case(f"{w_name}/alive", {w_name: None}),
        case(f"{y_name}/alive", {y_name: None}), case("convDesc/alive", {"convDesc": None}),
        case("handle/alive", {"handle": None}),
        *[case(f"{name}/set", lambda _, name=name: {name: fresh("mcdnnTensorDescriptor_t", "Tensor")})
          for name in (x_name, y_name)],
        case(f"{w_name}/set", lambda _: {w_name: fresh("mcdnnFilterDescriptor_t", "Filter")}),
        case("convDesc/set", lambda _: {"convDesc": unset()}),
        case(f"{x_name}/rank", tensors(role, (2, 4), (6, 2), (2, 6))),
        case(f"{w_name}/rank", tensors(role, w=(6, 2, 3))),
        case(f"{y_name}/rank", tensors(role, y=(2, 6, 20))),
        case("convDesc/rank", lambda _: {"convDesc": convolution((0,), (1,), (1,), 2)}),
        case(f"{w_name}/channels", tensors(role, w=(6, 3, 3, 3)), tensors(role, w=(6, 4, 3, 3), convDesc=lambda: plain(
            groups=1))),
        case(f"{w_name}/groups", tensors(role, w=(5, 2, 3, 3), y=(2, 5, 4, 5))),
        case(f"{y_name}/maps", tensors(role, y=(2, 8, 4, 5))),
        case(f"{w_name}/type", tensors(role, types=(FLOAT, HALF, FLOAT))),
        case(f"{y_name}/type", tensors(role, types=(FLOAT, FLOAT, HALF))),
        case(f"{y_name}/output-sizes", tensors(role, y=one_less),
             tensors(role, y=one_less, convDesc=lambda: convolution((0, 0), (1, 1), (1, 1), 2), x=(2, 4, 6, 6))),
        case(f"{x_name}/dimensions", tensors(
            role, (2, 4, 1, 1, 6, 7), (6, 2, 1, 1, 3, 3), (2, 6, 1, 1, 4, 5),
            convDesc=lambda: convolution((0,) * 4, (1,) * 4, (1,) * 4, 2)),
            tensors(role, (2, 4, 1, 6, 7), (6, 2, 1, 3, 3), (2, 6, 1, 4, 5),
                    convDesc=lambda: convolution((0,) * 3, (1,) * 3, (1,) * 3, 2))),
        case(f"{x_name}/negative-stride", tensors(role, strides=((168, 42, 7, -1), None))),
        case(f"{y_name}/negative-stride", tensors(role, strides=(None, (120, 20, 5, -1)))),
        case(f"{x_name}/unsupported-type", tensors(role, data_type=INT32),
             tensors(role, data_type=BFLOAT16)),
        case("convDesc/compute-type", lambda _: {"convDesc": plain(compute=DOUBLE)},
             tensors(role, data_type=HALF, convDesc=lambda: plain(compute=HALF))),
    ]
    if way == FORWARD:
        cases += [case(f"{w_name}/window", tensors(role, w=(6, 2, 7, 3))),
                  case(f"{y_name}/overlap", tensors(role, strides=(None, (119, 20, 5, 1))))]
    if way == DATA:
        cases += [case(f"{x_name}/overlap", tensors(role, strides=((167, 42, 7, 1), None)))]
    return cases


def integer_rules(role):
    """What 8-bit integers need: channels last in fours, one dilation; vectors in their format, one group."""
    case, (x_name, w_name, y_name) = role.subject.case, role.names
    x, w, y = (2, 8, 6, 7), (8, 8, 3, 3), (2, 8, 4, 5)

    def plain_integers(x=x, w=w, y=y, strides=None, **conv):
        def changes(arguments):
            made = {x_name: descriptor(x, INT8, strides or nhwc_strides(x)), w_name: filter_descriptor(w, INT8, 1),
                    y_name: descriptor(y, INT8, nhwc_strides(y)),
                    "convDesc": convolution((0, 0), (1, 1), (1, 1), **{"compute": INT32, **conv})}
            return {**made, **room(role, arguments, y, INT8)}
        return changes

    def dilated(dilation):
        def changes(arguments):
            return {**plain_integers()(arguments), w_name: filter_descriptor((8, 8, 3, 2), INT8, 1),
                    "convDesc": convolution((0, 0), (1, 1), (1, dilation), compute=INT32),
                    **described_output(role, (2, 8, 4, 7 - dilation), INT8)}
        return changes

    def unsigned(output):
        def changes(arguments):
            return {**plain_integers()(arguments), x_name: descriptor(x, lib.MCDNN_DATA_UINT8, nhwc_strides(x)),
                    y_name: descriptor(y, output, nhwc_strides(y))}
        return changes

    def vectors(groups=1, formats=(VECT_C, VECT_C, VECT_C)):
        def changes(arguments):
            made, values = {}, {x_name: x, y_name: y}
            for name, layout in zip((x_name, y_name), (formats[0], formats[2])):
                made[name] = descriptor((1,))
                assert lib.mcdnnSetTensor4dDescriptor(made[name], layout, INT8X4, *values[name]) == 0
            made[w_name] = fresh("mcdnnFilterDescriptor_t", "Filter")
            w_sizes = (8, 8 // groups, 3, 3)
            assert lib.mcdnnSetFilter4dDescriptor(made[w_name], INT8X4, formats[1], *w_sizes) == 0
            made["convDesc"] = convolution((0, 0), (1, 1), (1, 1), groups, compute=INT32)
            return {**made, **room(role, arguments, y, INT8X4)}
        return changes

    plain_format = lib.MCDNN_TENSOR_NCHW
    return [
        case(f"{x_name}/layout", plain_integers(strides=(336, 42, 7, 1)), plain_integers()),
        case(f"{x_name}/fours", plain_integers(x=(2, 6, 6, 7), w=(8, 6, 3, 3)), plain_integers()),
        case(f"{y_name}/output-type", unsigned(lib.MCDNN_DATA_UINT8), unsigned(INT8)),
        case("convDesc/dilation", dilated(2), dilated(1)),
        case("convDesc/vectors", vectors(groups=2), vectors()),
        case(f"{x_name}/vectors", vectors(formats=(plain_format, VECT_C, VECT_C)), vectors()),
        case(f"{w_name}/vectors", vectors(formats=(VECT_C, plain_format, VECT_C)), vectors()),
        case(f"{y_name}/vectors", vectors(formats=(VECT_C, VECT_C, plain_format)), vectors()),
    ]


def described_output(role, sizes, data_type):
    made = {role.names[2]: descriptor(sizes, data_type, nhwc_strides(sizes))}
    if "zDesc" in role.subject.arguments():
        made["zDesc"] = made[role.names[2]]
    return made


def room(role, arguments, y, data_type):
    """Memory for any of the small problems; z and bias as integers want them."""
    given = {name: Buffer(np.zeros(65536, np.uint8)) for name in role.data if name}
    if "zDesc" in arguments:
        z = descriptor((1,))
        if data_type == INT8X4:
            assert lib.mcdnnSetTensor4dDescriptor(z, VECT_C, INT8X4, *y) == 0
        else:
            z = descriptor(y, INT8, nhwc_strides(y))
        bias = Tensor(np.ones((1, 8, 1, 1)))
        given |= {"zDesc": z, "z": Buffer(np.zeros(65536, np.uint8)), "biasDesc": bias, "bias": bias}
    return given


def pointer_rules(role):
    cases = []
    types = ffi.typeof(getattr(lib, role.subject.function)).args
    for name, kind in in_step(parameters(role.subject.function), types):
        if kind.kind == "pointer" and name not in OPTIONAL and (kind.item.kind != "struct" or name == "perfResults"):
            cases.append(role.subject.case(f"{name}/null", {name: None}))
    return cases


WIDE = ((2, 4, 6, 300), (6, 4, 3, 3), (2, 6, 4, 298))
COUNTS = {FORWARD: 8, DATA: 6, FILTER: 7}
FFT = {FORWARD: lib.MCDNN_CONVOLUTION_FWD_ALGO_FFT, DATA: lib.MCDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
       FILTER: lib.MCDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT}


def algorithm_rules(role):
    last = COUNTS[role.direction] - 1
    beyond = tensors(role, *WIDE, convDesc=lambda: plain(groups=1))

    def with_algo(changes, algo):
        return lambda arguments: {**changes(arguments), "algo": algo}

    rules = [role.subject.case("algo/range", {"algo": last + 1}, {"algo": 0})]
    if role is not FUSED:
        rules.append(role.subject.case("algo/supported", with_algo(beyond, FFT[role.direction]), with_algo(beyond, 1)))
    else:
        rules.append(role.subject.case("algo/supported", lambda _: {"algo": 6, "convDesc": convolution(
            (1, 1), (1, 1), (2, 2), 2)}, lambda _: {"algo": 1, "convDesc": convolution((1, 1), (1, 1), (2, 2), 2)}))
    return rules


RULES = [
    *descriptor_rules("Convolution", "mcdnnConvolutionDescriptor_t", "convDesc", {
        "mcdnnSetConvolutionMathType": lambda it: lib.mcdnnSetConvolutionMathType(it, 0),
        "mcdnnSetConvolutionGroupCount": lambda it: lib.mcdnnSetConvolutionGroupCount(it, 1),
        "mcdnnSetConvolutionReorderType": lambda it: lib.mcdnnSetConvolutionReorderType(it, 0),
        "mcdnnGetConvolutionMathType": lambda it: lib.mcdnnGetConvolutionMathType(it, ffi.new("mcdnnMathType_t *")),
        "mcdnnGetConvolutionGroupCount": lambda it: lib.mcdnnGetConvolutionGroupCount(it, ffi.new("int *")),
        "mcdnnGetConvolutionReorderType":
            lambda it: lib.mcdnnGetConvolutionReorderType(it, ffi.new("mcdnnReorderType_t *")),
        "mcdnnGetConvolutionNdDescriptor": lambda it: lib.mcdnnGetConvolutionNdDescriptor(it, 2, *[ffi.NULL] * 6),
    }),
    *[case for role in [*CALLS, FUSED] for case in (
        *shape_rules(role), *pointer_rules(role), *algorithm_rules(role), role.subject.launch())],
    *[case for role in SIZES for case in (*shape_rules(role), *pointer_rules(role), *algorithm_rules(role))],
    *[case for role in SEARCHES for case in (*shape_rules(role), *pointer_rules(role), role.subject.case(
        "requestedAlgoCount/range", {"requestedAlgoCount": 0}, {"requestedAlgoCount": 1}))],
    *[case for role in [CALLS[0], SIZES[0], FUSED, *SEARCHES[::3]] for case in integer_rules(role)],
]


# ---- descriptors ----

SET_2D = Subject("mcdnnSetConvolution2dDescriptor", lambda: dict(
    convDesc=unset(), pad_h=0, pad_w=0, u=1, v=1, dilation_h=1, dilation_w=1, mode=0, computeType=0))
SET_ND = Subject("mcdnnSetConvolutionNdDescriptor", lambda: dict(
    convDesc=unset(), arrayLength=2, padA=[0] * 8, filterStrideA=[1] * 8, dilationA=[1] * 8, mode=0, computeType=0))
GET_2D = Subject("mcdnnGetConvolution2dDescriptor", lambda: dict(
    convDesc=plain(), pad_h=None, pad_w=None, u=None, v=None, dilation_h=None, dilation_w=None, mode=None,
    computeType=None))
GET_ND = Subject("mcdnnGetConvolutionNdDescriptor", lambda: dict(
    convDesc=plain(), arrayLengthRequested=2, arrayLength=None, padA=None, strideA=None, dilationA=None, mode=None,
    computeType=None))
OUTPUT_2D = Subject("mcdnnGetConvolution2dForwardOutputDim", lambda: dict(
    convDesc=plain(), inputTensorDesc=descriptor(X), filterDesc=filter_descriptor(W), n=None, c=None, h=None, w=None))
OUTPUT_ND = Subject("mcdnnGetConvolutionNdForwardOutputDim", lambda: dict(
    convDesc=plain(), inputTensorDesc=descriptor(X), filterDesc=filter_descriptor(W), nbDims=4,
    tensorOutputDimA=ffi.new("int[8]")))


def place_rules(function, parameter, kind):
    place = getattr(lib, function)
    return [RuleCase(f"{function}/{parameter}/null", lambda: Result(int(place(unset(), ffi.NULL))),
                     lambda: Result(int(place(unset(), ffi.new(f"{kind} *")))))]


def range_rules(function, parameter, refused, accepted):
    setter = getattr(lib, function)
    return [RuleCase(f"{function}/{parameter}/range", lambda: Result(int(setter(unset(), refused))),
                     lambda: Result(int(setter(unset(), accepted))))]


def output_rules(subject):
    return [
        subject.case("convDesc/alive", {"convDesc": None}), subject.case("convDesc/set", lambda _: {"convDesc": unset()}),
        subject.case("inputTensorDesc/alive", {"inputTensorDesc": None}),
        subject.case("inputTensorDesc/set", lambda _: {"inputTensorDesc": fresh("mcdnnTensorDescriptor_t", "Tensor")}),
        subject.case("filterDesc/alive", {"filterDesc": None}),
        subject.case("filterDesc/set", lambda _: {"filterDesc": fresh("mcdnnFilterDescriptor_t", "Filter")}),
        subject.case("inputTensorDesc/rank", {"inputTensorDesc": descriptor((2, 4, 6))}),
        subject.case("filterDesc/rank", {"filterDesc": filter_descriptor((6, 2, 3))}),
        subject.case("filterDesc/channels", {"filterDesc": filter_descriptor((6, 3, 3, 3))}),
        subject.case("filterDesc/window", {"filterDesc": filter_descriptor((6, 2, 7, 3))},
                     {"filterDesc": filter_descriptor((6, 2, 6, 3))}),
    ]


RULES += [
    SET_2D.case("convDesc/alive", {"convDesc": None}),
    *[SET_2D.case(f"{name}/range", {name: -1}, {name: 0}) for name in ("pad_h", "pad_w")],
    *[SET_2D.case(f"{name}/range", {name: 0}, {name: 2}) for name in ("u", "v", "dilation_h", "dilation_w")],
    *[subject.case(f"{name}/range", {name: last + 1}, {name: last})
      for subject in (SET_2D, SET_ND) for name, last in (("mode", 1), ("computeType", 10))],
    SET_ND.case("convDesc/alive", {"convDesc": None}),
    *[SET_ND.case(f"{name}/null", {name: None}) for name in ("padA", "filterStrideA", "dilationA")],
    SET_ND.case("arrayLength/positive", {"arrayLength": 0}, {"arrayLength": 1}),
    SET_ND.case("arrayLength/limit", {"arrayLength": 7}, {"arrayLength": 6}),
    SET_ND.case("padA/range", {"padA": [0, -1]}, {"padA": [0, 1]}),
    SET_ND.case("filterStrideA/range", {"filterStrideA": [1, 0]}, {"filterStrideA": [1, 2]}),
    SET_ND.case("dilationA/range", {"dilationA": [1, 0]}, {"dilationA": [1, 2]}),
    GET_2D.case("convDesc/alive", {"convDesc": None}),
    GET_2D.case("convDesc/dimensions", lambda _: {"convDesc": convolution((0,), (1,), (1,))}),
    GET_ND.case("arrayLengthRequested/negative", {"arrayLengthRequested": -1}, {"arrayLengthRequested": 0}),
    GET_ND.case("arrayLengthRequested/limit", {"arrayLengthRequested": 7}, {"arrayLengthRequested": 6}),
    *place_rules("mcdnnGetConvolutionMathType", "mathType", "mcdnnMathType_t"),
    *place_rules("mcdnnGetConvolutionGroupCount", "groupCount", "int"),
    *place_rules("mcdnnGetConvolutionReorderType", "reorderType", "mcdnnReorderType_t"),
    *range_rules("mcdnnSetConvolutionMathType", "mathType", 4, 3),
    *range_rules("mcdnnSetConvolutionGroupCount", "groupCount", 0, 1),
    *range_rules("mcdnnSetConvolutionReorderType", "reorderType", 2, 1),
    *output_rules(OUTPUT_2D),
    OUTPUT_2D.case("convDesc/dimensions", lambda _: {
        "convDesc": convolution((0,), (1,), (1,), 2), "inputTensorDesc": descriptor((2, 4, 6)),
        "filterDesc": filter_descriptor((6, 2, 3))}),
    *output_rules(OUTPUT_ND),
    OUTPUT_ND.case("tensorOutputDimA/null", {"tensorOutputDimA": None}),
    OUTPUT_ND.case("nbDims/range", {"nbDims": 5}, {"nbDims": 0}),
    *[RuleCase(f"mcdnnGetConvolution{WORDS[way]}AlgorithmMaxCount/{rule}",
               lambda way=way, bad=bad: Result(int(getattr(lib, f"mcdnnGetConvolution{WORDS[way]}AlgorithmMaxCount")(*bad()))),
               lambda way=way: Result(int(getattr(lib, f"mcdnnGetConvolution{WORDS[way]}AlgorithmMaxCount")(
                   handle(), ffi.new("int *")))))
      for way in (FORWARD, DATA, FILTER)
      for rule, bad in (("handle/alive", lambda: (ffi.NULL, ffi.new("int *"))),
                        ("count/null", lambda: (handle(), ffi.NULL)))],
]  # fmt: skip


# ---- bias, activation, layouts ----

def bias_changes(sizes=(1, 6, 1, 1), data_type=FLOAT, strides=None):
    return {"biasDesc": descriptor(sizes, data_type, strides)}


BIAS = Subject("mcdnnConvolutionBackwardBias", lambda: dict(
    handle=handle(), alpha=scale(1), beta=scale(0), **{name: tensor for tensor in [Tensor(np.ones(Y))] for name in (
        "dyDesc", "dy")}, **{name: tensor for tensor in [Tensor(np.ones((1, 6, 1, 1)))] for name in ("dbDesc", "db")}),
    ("db",))
COLUMNS = Subject("mcdnnIm2Col", lambda: dict(
    handle=handle(), **{name: tensor for tensor in [Tensor(np.ones(X))] for name in ("xDesc", "x")},
    wDesc=filter_descriptor(W), convDesc=plain(), colBuffer=Tensor(np.ones((36, 40)))), ("colBuffer",))
def reorder():
    values = np.zeros((32, 32, 1, 1), np.int8)
    w, target = Vectors(values, lib.MCDNN_DATA_INT8x32, 32, True), Tensor(np.ones((32, 32)), INT8)
    bias, moved = Tensor(np.ones(32)), Tensor(np.zeros(32))
    KEEP.append(w)
    return dict(handle=handle(), filterDesc=w.descriptor, reorderType=0, filterData=w.address,
                reorderedFilterData=target, reorderBias=1, biasData=bias, reorderedBiasData=moved)


KEEP = []  # what raw addresses point into
REORDER = Subject("mcdnnReorderFilterAndBias", reorder, ("reorderedFilterData", "reorderedBiasData"))

RULES += [
    *[FUSED.subject.case(f"{name}/alive", {name: None}) for name in ("zDesc", "biasDesc", "activationDesc")],
    *[FUSED.subject.case(f"{name}/set", lambda _, name=name: {name: fresh("mcdnnTensorDescriptor_t", "Tensor")})
      for name in ("zDesc", "biasDesc")],
    FUSED.subject.case("activationDesc/set", lambda _: {"activationDesc": fresh("mcdnnActivationDescriptor_t",
                                                                                "Activation")}),
    FUSED.subject.case("activationDesc/fused-mode", {"activationDesc": activation(lib.MCDNN_ACTIVATION_TANH, 0.0)},
                       {"activationDesc": activation(lib.MCDNN_ACTIVATION_IDENTITY, 0.0)}),
    FUSED.subject.case("activationDesc/nan-option",
                       {"activationDesc": activation(lib.MCDNN_ACTIVATION_RELU, 0.0, propagate_nan=True)}),
    FUSED.subject.case("zDesc/rank", {"zDesc": descriptor((2, 6, 20))}),
    FUSED.subject.case("zDesc/sizes", {"zDesc": descriptor((2, 6, 5, 4))}),
    FUSED.subject.case("zDesc/strides", {"zDesc": descriptor(Y, FLOAT, nhwc_strides(Y))}),
    FUSED.subject.case("zDesc/type", {"zDesc": descriptor(Y, HALF)}),
    FUSED.subject.case("biasDesc/shape", bias_changes((1, 5, 1, 1)), bias_changes()),
    FUSED.subject.case("biasDesc/stride", bias_changes(strides=(12, 2, 1, 1)), bias_changes()),
    FUSED.subject.case("biasDesc/bias-type", bias_changes(data_type=HALF), bias_changes()),
    *BIAS.operands(),
    BIAS.case("dbDesc/shape", {"dbDesc": descriptor((6, 1, 1, 1))}),
    BIAS.case("dbDesc/type", {"dbDesc": descriptor((1, 6, 1, 1), HALF)}),
    BIAS.case("dyDesc/unsupported-type", {"dyDesc": descriptor(Y, INT32), "dbDesc": descriptor((1, 6, 1, 1), INT32)}),
    BIAS.case("dbDesc/overlap", {"dbDesc": descriptor((1, 6, 1, 1), FLOAT, (6, 0, 1, 1))}),
    BIAS.launch(),
    *COLUMNS.operands(),
    COLUMNS.case("wDesc/set", lambda _: {"wDesc": fresh("mcdnnFilterDescriptor_t", "Filter")}),
    COLUMNS.case("convDesc/set", lambda _: {"convDesc": unset()}),
    COLUMNS.case("wDesc/rank", {"wDesc": filter_descriptor((6, 2, 3))}),
    COLUMNS.case("xDesc/rank", {"xDesc": descriptor((2, 4, 6))}),
    COLUMNS.case("wDesc/channels", {"wDesc": filter_descriptor((6, 3, 3, 3))}),
    COLUMNS.case("wDesc/window", {"wDesc": filter_descriptor((6, 2, 7, 3))}),
    COLUMNS.case("xDesc/dimensions", lambda _: {
        "xDesc": descriptor((2, 4, 1, 1, 6, 7)), "wDesc": filter_descriptor((6, 2, 1, 1, 3, 3)),
        "convDesc": convolution((0,) * 4, (1,) * 4, (1,) * 4, 2)}),
    COLUMNS.case("xDesc/columns", lambda _: {
        "xDesc": descriptor((1, 4, 1 << 16)), "wDesc": filter_descriptor((1, 2, 1)),
        "convDesc": convolution((1 << 30,), (1,), (1,), 2)}),
    COLUMNS.case("xDesc/unsupported-type", {"xDesc": descriptor(X, INT32)}, {"xDesc": descriptor(X, HALF)}),
    COLUMNS.launch(),
    *REORDER.operands(),
    REORDER.case("filterDesc/set", lambda _: {"filterDesc": fresh("mcdnnFilterDescriptor_t", "Filter")}),
    REORDER.case("reorderType/range", {"reorderType": 2}, {"reorderType": 1}),
    REORDER.case("filterDesc/unsupported-type", {"filterDesc": filter_descriptor((32, 32, 1, 1), INT8)}),
    REORDER.launch(),
]


# ---- fused operations ----

def made(kind, name, ops=0):
    place = ffi.new(f"{kind} *")
    assert getattr(lib, f"mcdnnCreate{name}")(place, ops) == 0
    return place[0]


def status(function, *arguments):
    """The status of a call; functions among the arguments make theirs anew each time."""
    return lambda: Result(int(getattr(lib, function)(*[it() if inspect.isfunction(it) else it for it in arguments])))


PACKS = [("FusedOpsConstParamPack", "mcdnnFusedOpsConstParamPack_t", "constPack"),
         ("FusedOpsVariantParamPack", "mcdnnFusedOpsVariantParamPack_t", "varPack"),
         ("FusedOpsPlan", "mcdnnFusedOpsPlan_t", "plan")]


def destroyed(name, kind, times):
    def change():
        it = made(kind, name)
        return Result([int(getattr(lib, f"mcdnnDestroy{name}")(it)) for _ in range(times)][-1])
    return change


def constants(ops=0):
    return made("mcdnnFusedOpsConstParamPack_t", "FusedOpsConstParamPack", ops)


def variants(ops=0):
    return made("mcdnnFusedOpsVariantParamPack_t", "FusedOpsVariantParamPack", ops)


def reserved_constants():
    """Each label belongs to a reserved operation."""
    return constants(6)


def reserved_variants():
    return variants(6)


def number():
    return ffi.new("int64_t *")


def flag():
    return ffi.new("int *")


def any_tensor():
    return descriptor((1, 4, 2, 2))


def any_filter():
    return filter_descriptor((1, 4, 2, 2))


RULES += [case for name, kind, parameter in PACKS for case in (
    RuleCase(f"mcdnnCreate{name}/{parameter}/null", status(f"mcdnnCreate{name}", ffi.NULL, 0),
             status(f"mcdnnCreate{name}", lambda kind=kind: ffi.new(f"{kind} *"), 0)),
    RuleCase(f"mcdnnCreate{name}/ops/range", status(f"mcdnnCreate{name}", lambda kind=kind: ffi.new(f"{kind} *"), 7),
             status(f"mcdnnCreate{name}", lambda kind=kind: ffi.new(f"{kind} *"), 6)),
    RuleCase(f"mcdnnDestroy{name}/{parameter}/alive", destroyed(name, kind, 2), destroyed(name, kind, 1)),
)]
GET_CONSTANT, SET_CONSTANT = "mcdnnGetFusedOpsConstParamPackAttribute", "mcdnnSetFusedOpsConstParamPackAttribute"
GET_VARIANT, SET_VARIANT = "mcdnnGetFusedOpsVariantParamPackAttribute", "mcdnnSetFusedOpsVariantParamPackAttribute"
RULES += [
    RuleCase(f"{SET_CONSTANT}/constPack/alive", status(SET_CONSTANT, ffi.NULL, 0, ffi.NULL),
             status(SET_CONSTANT, constants, 0, ffi.NULL)),
    RuleCase(f"{SET_CONSTANT}/paramLabel/range", status(SET_CONSTANT, reserved_constants, 39, ffi.NULL),
             status(SET_CONSTANT, reserved_constants, 38, ffi.NULL)),
    RuleCase(f"{SET_CONSTANT}/paramLabel/of-operation", status(SET_CONSTANT, constants, lib.MCDNN_PARAM_DWDESC, ffi.NULL),
             status(SET_CONSTANT, constants, lib.MCDNN_PARAM_WDESC, ffi.NULL)),
    RuleCase(f"{SET_CONSTANT}/param/alive", status(SET_CONSTANT, constants, lib.MCDNN_PARAM_XDESC, any_filter),
             status(SET_CONSTANT, constants, lib.MCDNN_PARAM_XDESC, any_tensor)),
    RuleCase(f"{SET_CONSTANT}/param/range",
             status(SET_CONSTANT, constants, lib.MCDNN_PARAM_XDATA_PLACEHOLDER, lambda: ffi.new("int *", 3)),
             status(SET_CONSTANT, constants, lib.MCDNN_PARAM_XDATA_PLACEHOLDER, lambda: ffi.new("int *", 2))),
    RuleCase(f"{GET_CONSTANT}/constPack/alive", status(GET_CONSTANT, ffi.NULL, 1, number, flag),
             status(GET_CONSTANT, constants, 1, number, flag)),
    RuleCase(f"{GET_CONSTANT}/paramLabel/range", status(GET_CONSTANT, reserved_constants, 39, number, flag),
             status(GET_CONSTANT, reserved_constants, 38, number, flag)),
    RuleCase(f"{GET_CONSTANT}/paramLabel/of-operation",
             status(GET_CONSTANT, constants, lib.MCDNN_PARAM_BN_SCALE_PLACEHOLDER, number, flag),
             status(GET_CONSTANT, constants, lib.MCDNN_PARAM_BN_EQSCALE_PLACEHOLDER, number, flag)),
    RuleCase(f"{GET_CONSTANT}/param/alive", status(GET_CONSTANT, constants, lib.MCDNN_PARAM_XDESC, number, flag),
             status(GET_CONSTANT, constants, lib.MCDNN_PARAM_XDESC, any_tensor, flag)),
    RuleCase(f"{GET_CONSTANT}/param/null", status(GET_CONSTANT, constants, 1, ffi.NULL, flag),
             status(GET_CONSTANT, constants, 1, number, flag)),
    RuleCase(f"{GET_CONSTANT}/isNULL/null", status(GET_CONSTANT, constants, 1, number, ffi.NULL),
             status(GET_CONSTANT, constants, 1, number, flag)),
    RuleCase(f"{SET_VARIANT}/varPack/alive", status(SET_VARIANT, ffi.NULL, 0, ffi.NULL),
             status(SET_VARIANT, variants, 0, ffi.NULL)),
    RuleCase(f"{SET_VARIANT}/paramLabel/range", status(SET_VARIANT, reserved_variants, 24, ffi.NULL),
             status(SET_VARIANT, reserved_variants, 103, ffi.NULL)),
    RuleCase(f"{SET_VARIANT}/paramLabel/of-operation", status(SET_VARIANT, variants, lib.MCDNN_PTR_DWDATA, ffi.NULL),
             status(SET_VARIANT, variants, lib.MCDNN_PTR_WDATA, ffi.NULL)),
    RuleCase(f"{GET_VARIANT}/varPack/alive", status(GET_VARIANT, ffi.NULL, 0, number),
             status(GET_VARIANT, variants, 0, number)),
    RuleCase(f"{GET_VARIANT}/paramLabel/range", status(GET_VARIANT, reserved_variants, 104, number),
             status(GET_VARIANT, reserved_variants, 23, number)),
    RuleCase(f"{GET_VARIANT}/paramLabel/of-operation",
             status(GET_VARIANT, variants, lib.MCDNN_SCALAR_DOUBLE_BN_EPSILON, number),
             status(GET_VARIANT, variants, lib.MCDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, number)),
    RuleCase(f"{GET_VARIANT}/ptr/null", status(GET_VARIANT, variants, 0, ffi.NULL),
             status(GET_VARIANT, variants, 0, number)),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


def test_columns_of_two_dimensions():
    """2^31 and 2^32 positions, whose product is 2^63."""
    check_rule(COLUMNS.case("xDesc/columns", lambda _: {
        "xDesc": descriptor((1, 4, 2, 2)), "wDesc": filter_descriptor((1, 2, 1, 1)),
        "convDesc": convolution(((1 << 30) - 1, (1 << 31) - 1), (1, 1), (1, 1), 2)}))
