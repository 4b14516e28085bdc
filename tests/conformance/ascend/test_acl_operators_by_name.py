"""What operators by name refuse: the call, its operands, its attributes (rules of libacl_op_compiler)."""

import numpy
import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import case
from tests.conformance.ascend.by_name import Constant, call, constant
from tests.conformance.harness import Result, check_rule

X = numpy.arange(6, dtype="float32").reshape(2, 3)
Y = numpy.zeros((2, 3), "float32")
W, B = numpy.zeros((4, 4), "float32"), numpy.zeros(4, "float32")  # an LSTM of 3 inputs and one cell
STEPS = numpy.zeros((1, 2, 1), "float32")
LSTM = {"gate_order": "ifjo"}
RUN = ["aclopCompileAndExecute", "aclopCompileAndExecuteV2"]
ALL = ["aclopCompile", *RUN]


def dead_description():
    made = lib.aclCreateTensorDesc(0, 0, ffi.NULL, 2)
    lib.aclDestroyTensorDesc(made)
    return made


def private_format(descriptions):
    lib.aclSetTensorStorageFormat(descriptions[0], lib.ACL_FORMAT_FRACTAL_NZ)


def described(descriptions, code: int, *sizes: int):
    descriptions[0] = lib.aclCreateTensorDesc(code, len(sizes), ffi.new("int64_t[]", sizes), 2)  # until the process ends


def destroyed_attributes():
    attr = lib.aclopCreateAttr()
    lib.aclopDestroyAttr(attr)
    return attr


def dead_stream():
    stream = ffi.new("aclrtStream *")
    assert lib.aclrtCreateStream(stream) == 0
    assert lib.aclrtDestroyStream(stream[0]) == 0
    return stream[0]


def changed(name: str, value):
    return lambda raw: setattr(raw, name, value())


def first(name: str, value):
    return lambda raw: getattr(raw, name).__setitem__(0, value())


# rule -> a change of the arguments of Relu on [2, 3]
ARGUMENTS = {
    "opType/null": changed("kind", lambda: ffi.NULL),
    "opType/unsupported": changed("kind", lambda: b"NoSuchOperator"),
    "numInputs/range": changed("input_count", lambda: 25), "numOutputs/range": changed("output_count", lambda: -1),
    "inputDesc/null": changed("input_descriptions", lambda: ffi.NULL), "outputDesc/null": first("output_descriptions", lambda: ffi.NULL),
    "inputDesc/dead": first("input_descriptions", dead_description), "outputDesc/dead": first("output_descriptions", dead_description),
    "inputDesc/format": lambda raw: private_format(raw.input_descriptions),
    "outputDesc/format": lambda raw: private_format(raw.output_descriptions),
    "inputDesc/type": lambda raw: described(raw.input_descriptions, 13, 2, 3),  # ACL_STRING
    "outputDesc/type": lambda raw: described(raw.output_descriptions, 13, 2, 3),
    "inputDesc/shape": lambda raw: described(raw.input_descriptions, 0, 2, -1),
    "outputDesc/shape": lambda raw: described(raw.output_descriptions, 0, 1 << 40, 1 << 40),
    "outputDesc/absent": lambda raw: described(raw.output_descriptions, -1),
    "attr/dead": changed("attr", destroyed_attributes),
}  # fmt: skip
MEMORY = {
    "inputs/null": changed("inputs", lambda: ffi.NULL), "outputs/null": changed("outputs", lambda: ffi.NULL),
    "inputs/size": lambda raw: lib.aclUpdateDataBuffer(raw.inputs[0], lib.aclGetDataBufferAddr(raw.inputs[0]), 23),
    "outputs/size": lambda raw: lib.aclUpdateDataBuffer(raw.outputs[0], lib.aclGetDataBufferAddr(raw.outputs[0]), 23),
    "stream/dead": changed("stream", dead_stream),
}  # fmt: skip


def slices(count: int, begin=0, step=1):
    return [X, constant(0, begin), constant(2, begin + count * step), constant(1, step)]


SLICE = numpy.zeros((2, 2), "float32")
BOXES, MANY = numpy.ones((4, 3), "float32"), numpy.ones((3, 4), "float32")  # of GIoU, of the others
PAIRS = {"is_cross": False}
CODED = {"max_shape": (8, 9)}
COUNTS = [numpy.zeros(3, "int32"), numpy.zeros(3, "uint8")]
MOST, NUMBER = numpy.array(2, "int32"), numpy.array(0.5, "float32")
BEST = [numpy.zeros(2, "int32"), numpy.array(0, "int32")]
CLASSES = [numpy.zeros((1, 3, 1, 4), "float32"), numpy.zeros((1, 3, 2), "float32")]
WINNERS = [numpy.zeros((1, 5, 4), "float32"), numpy.zeros((1, 5), "float32"), numpy.zeros((1, 5), "float32"), numpy.zeros(1, "int32")]
LIMITS = {"max_size_per_class": 2, "max_total_size": 5}
BINS = {"pooled_height": 1, "pooled_width": 1, "spatial_scale": 1.0, "roi_end_mode": 0}
IMAGE, REGION, BIN = numpy.ones((1, 1, 4, 4), "float32"), numpy.zeros((1, 5), "float32"), numpy.ones((1, 1, 1, 1), "float32")
SAMPLED = {"ksize": (1, 2), "strides": (1, 2, 3, 1), "pads": (0, 1, 0, 0), "dilations": (1, 1, 2, 1), "deformable_groups": 2,
           "data_format": "NHWC"}  # fmt: skip
DEFORMED = [numpy.ones((1, 4, 6, 2), "float32"), numpy.zeros((1, 3, 2, 12), "float32")]
SAMPLES = numpy.ones((1, 3, 4, 2), "float32")
GRU = [numpy.ones((2, 3), "float32"), numpy.ones((1, 3), "float32"), numpy.ones(3, "float32"), numpy.ones(3, "float32")]
TWO, STATE = numpy.ones((2, 3, 2), "float32"), numpy.ones((1, 3, 1), "float32")
GATES = numpy.ones((2, 3, 1), "float32")
BYTES, BITS = numpy.ones(6, "uint8"), numpy.ones(16, "uint8")
STAYS = Constant(NUMBER, True)


COPY = [X, constant(2, 3), constant(3, 1), constant(0), X, constant(2, 3), constant(3, 1), constant(0)]
# rule -> (operator, inputs, outputs, attributes) that is refused, the nearest one that is not
OPERATORS = {
    "opType/refused": (("Relu", [X.astype(bool)], [Y.astype(bool)], {}), ("Relu", [X], [Y], {})),
    "numInputs/count": (("Relu", [X, X], [Y], {}), ("Relu", [X], [Y], {})),
    "numOutputs/count": (("Relu", [X], [Y, Y], {}), ("Relu", [X], [Y], {})),
    "inputDesc/absent": (("Cast", [None], [Y], {}), ("Cast", [X], [Y], {})),
    "inputDesc/rank": (("DynamicRNN", [X.ravel(), W, B], [STEPS] * 8, LSTM),
                       ("DynamicRNN", [X[None], W, B], [STEPS] * 8, LSTM)),
    "outputDesc/rank": (("DynamicRNN", [X[None], W, B], [STEPS] * 7 + [STEPS.ravel()], LSTM),
                        ("DynamicRNN", [X[None], W, B], [STEPS] * 7 + [STEPS[0]], LSTM)),
    "inputDesc/unsupported": (("DynamicRNN", [X[None], W, B, None, STEPS, STEPS, B], [STEPS] * 8, LSTM),
                              ("DynamicRNN", [X[None], W, B, None, STEPS, STEPS, None], [STEPS] * 8, LSTM)),
    "inputDesc/reach": (("AsStrided", [X, constant(2, 3), constant(3, 1), constant(1)], [Y], {}),
                        ("AsStrided", [X, constant(2, 3), constant(3, 1), constant(0)], [Y], {})),
    "inputs/host": (("Transpose", [X, numpy.array([1, 0])], [Y.T.copy()], {}), ("Transpose", [X, constant(1, 0)], [Y.T.copy()], {})),
    "inputs/order": (("Transpose", [X, constant(1, 1)], [Y.T.copy()], {}),
                     ("Transpose", [X, Constant(numpy.array([-1, 0]), True)], [Y.T.copy()], {})),
    "inputs/range": (("Slice", [X, constant(0, 2), constant(2, 2)], [SLICE], {}), ("Slice", [X, constant(0, 1), constant(2, 2)], [SLICE], {})),
    "inputs/step": (("StridedSlice", slices(2, step=0), [SLICE], {}), ("StridedSlice", slices(2), [SLICE], {})),
    "inputs/view": (("AsStrided", [X, constant(-1), constant(1), constant(0)], [Y], {}),
                    ("AsStrided", [X, constant(0), constant(1), constant(0)], [Y[:0]], {})),
    "inputs/shape": (("BroadcastTo", [X, constant(3, 3)], [numpy.zeros((3, 3), "float32")], {}),
                     ("BroadcastTo", [X, constant(1, 2, 3)], [Y[None]], {})),
    "attr/type": (("Swish", [X], [Y], {"scale": "one"}), ("Swish", [X], [Y], {"scale": 1.0})),
    "attr/value": (("SoftmaxV2", [X], [Y], {"axes": [0, 1]}), ("SoftmaxV2", [X], [Y], {"axes": [0]})),
}  # fmt: skip


def relu(function: str, change=None) -> Result:
    return call("Relu", [X], [Y], function=function, change=change)[0]


def run(function: str, one) -> Result:
    kind, inputs, outputs, attributes = one
    return call(kind, inputs, outputs, attributes, function=function)[0]


def view_copy(function: str, in_place: bool) -> Result:
    return call("ViewCopy", COPY, [Y], function=function, in_place=in_place)[0]


RULES = [
    *(case(f"{function}/{rule}", lambda f=function, c=change: relu(f, c), lambda f=function: relu(f))
      for function in ALL for rule, change in ARGUMENTS.items()),
    *(case(f"{function}/{rule}", lambda f=function, c=change: relu(f, c), lambda f=function: relu(f))
      for function in RUN for rule, change in MEMORY.items()),
    *(case(f"{function}/{rule}", lambda f=function, o=pair[0]: run(f, o), lambda f=function, o=pair[1]: run(f, o))
      for function in RUN for rule, pair in OPERATORS.items()),
    *(case(f"{function}/outputs/place", lambda f=function: view_copy(f, False), lambda f=function: view_copy(f, True))
      for function in RUN),
]  # fmt: skip


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)


# the operator's own codes, where the rule's catalogue names the one of tensors that no operator takes
MISMATCHES = [
    (("DynamicRNN", [X[None], W.astype("float16"), B], [STEPS] * 8, LSTM), 100021),
    (("DynamicRNN", [X[None], W[:3].copy(), B], [STEPS] * 8, LSTM), 100021),
    (("DynamicRNN", [X[None], W, B], [STEPS] * 7 + [STEPS.astype("float16")], LSTM), 100022),
    (("DynamicRNN", [X[None], W, B], [STEPS] * 7 + [STEPS[:, :1].copy()], LSTM), 100022),
    (("DynamicRNN", [X[None], W, B, numpy.ones(2, "int32")], [STEPS] * 8, LSTM), 100021),  # lengths, not a mask
    (("DynamicRNN", [X[None], W, B, STEPS[:, :1].astype("float16")], [STEPS] * 8, LSTM), 100021),
    (("DynamicGRUV2", [TWO, *GRU, numpy.ones(3, "int32")], [GATES] * 6, {"gate_order": "rzh"}), 207000),
    (("DynamicRNN", [X[None], W, B], [STEPS] * 8, {**LSTM, "direction": "BIDIRECTIONAL"}), 100023),
    (("Transpose", [X, constant(1, 0)], [Y[:, :2].copy()], {}), 100022),
    (("Fill", [constant(2, 3), Constant(X[:0, 0])], [Y], {}), 100021),  # else what lies behind the constant would be read
    (("Fill", [constant(2, 3), Constant(X[0, :1])], [Y.T.copy()], {}), 100022),
    (("Pad", [X, constant(1)], [Y], {}), 100021),  # half a pair: none may be looked for
    (("DynamicRNN", [X[None], W, B], [STEPS] * 8, {}), 100023),
    (("DynamicRNN", [X[None].astype("int32"), W.astype("int32"), B.astype("int32")], [STEPS.astype("int32")] * 8, LSTM), 100021),
    (("Cast", [X], [Y], {"dst_type": 1}), 100023),
    (("ConfusionTransposeD", [X], [Y], {"perm": (0, 1), "shape": (2, 2), "transpose_first": False}), 100023),
]


@pytest.mark.parametrize("one, status", MISMATCHES)
def test_what_does_not_match_has_its_code(one, status):
    result = run("aclopCompileAndExecute", one)
    assert result == Result(status, True)


# (operator, inputs, outputs, attributes), the status of what is refused; the first one is legal
LEGAL = {
    "ApplyAdamD": ([X, X, X, *[STAYS] * 6, X], [Y] * 3, {}),
    "GIoU": ([BOXES, BOXES[:, :2].copy()], [numpy.zeros((2, 3), "float32")], {}),
    "DIoU": ([BOXES, BOXES], [numpy.zeros((1, 3), "float32")], PAIRS),
    "GIoUGrad": ([BOXES[0], BOXES, BOXES], [BOXES, BOXES], PAIRS),
    "DIoUGrad": ([BOXES[0, :, None].copy(), BOXES, BOXES], [BOXES, BOXES], PAIRS),
    "BoundingBoxEncode": ([MANY, MANY], [MANY], {}),
    "BoundingBoxDecode": ([MANY, MANY], [MANY], CODED),
    "NMSWithMask": ([numpy.ones((3, 5), "float32")], [numpy.ones((3, 5), "float32"), *COUNTS], {}),
    "NonMaxSuppressionV4": ([MANY, MANY[:, 0].copy(), MOST, NUMBER, NUMBER], BEST, {}),
    "BatchMultiClassNonMaxSuppression": (CLASSES, WINNERS, LIMITS),
    "ROIAlign": ([IMAGE, REGION], [BIN], BINS),
    "ROIAlignGrad": ([BIN, REGION], [IMAGE], {**BINS, "xdiff_shape": (1, 1, 4, 4)}),
    "DeformableOffsets": (DEFORMED, [SAMPLES], SAMPLED),
    "DeformableOffsetsGrad": ([SAMPLES, *DEFORMED], DEFORMED, SAMPLED),
    "DropOutGenMaskV3": ([Constant(numpy.array([2, 3]), True), STAYS], [BYTES], {}),
    "DropOutDoMaskV3": ([X, BYTES, STAYS], [Y], {}),
    "DropOutDoMask": ([X, BITS, STAYS], [Y], {}),
    "DynamicGRUV2": ([TWO, *GRU], [GATES] * 6, {"gate_order": "rzh"}),
    "DynamicGRUV2Grad": ([TWO, *GRU[:2], GATES, STATE, GATES, GATES, STATE, *[GATES] * 4], [*GRU, TWO, STATE], {"gate_order": "rzh"}),
    "Identity": ([X], [Y], {}),
    "MaskedFillRange": ([X, *[numpy.array([[0, 1]], "int32")] * 2, X[0, :1]], [Y], {}),
    "ReduceSum": ([X, constant(0)], [Y[0]], {}),
    "SortV2": ([X], [Y], {}),
}


def replaced(items: list, place: int, value) -> list:
    return [*items[:place], value, *items[place + 1 :]]


def broken():
    """Each operand of each operator left out, in another type, with an element less; then what is an operator's own."""
    for name, (inputs, outputs, attributes) in LEGAL.items():
        for place, given in enumerate(inputs):
            if not isinstance(given, Constant):
                if (name, place) not in (("DynamicGRUV2", 3), ("DynamicGRUV2", 4)):  # biases
                    yield name, replaced(inputs, place, None), outputs, attributes
                yield name, replaced(inputs, place, given.astype("float64" if given.dtype != "float64" else "int8")), outputs, attributes
            array = given.values if isinstance(given, Constant) else given
            longer = numpy.concatenate([array.ravel(), array.ravel()[:1]])
            yield name, replaced(inputs, place, Constant(longer, True) if isinstance(given, Constant) else longer), outputs, attributes
        for place, given in enumerate(outputs):
            yield name, inputs, replaced(outputs, place, given.astype("int8")), attributes
            longer = numpy.concatenate([given.ravel(), given.ravel()[:1]])
            if (name, place) != ("NonMaxSuppressionV4", 0):  # which is as long as the caller wants it
                yield name, inputs, replaced(outputs, place, longer), attributes
        if name != "DynamicGRUV2":
            yield name, inputs[:-1], outputs, attributes
        yield name, inputs, [*outputs, outputs[0]], attributes


OWN = [
    ("GIoU", {"mode": "iof"}), ("DIoUGrad", {"is_cross": True}), ("GIoU", {"trans": 1}), ("BoundingBoxEncode", {"means": (0.0, 1.0)}),
    ("BoundingBoxEncode", {"stds": (0.0,) * 5}), ("BoundingBoxEncode", {"stds": "1"}), ("BoundingBoxDecode", {"max_shape": (8,)}),
    ("BoundingBoxDecode", {"max_shape": (8, 9, 10)}), ("BoundingBoxDecode", {"wh_ratio_clip": 0.0}), ("NMSWithMask", {"iou_threshold": "x"}),
    *(("BatchMultiClassNonMaxSuppression", change) for change in (
        {"max_size_per_class": 0}, {"max_total_size": 0}, {"change_coordinate_frame": True}, {"transpose_box": True})),
    ("ROIAlign", {"roi_end_mode": 1}), ("ROIAlignGrad", {"roi_end_mode": 2}), ("ROIAlignGrad", {"xdiff_shape": "all"}),
    *(("DeformableOffsets", change) for change in (
        {"ksize": (1,)}, {"ksize": (1, 0)}, {"strides": (2, 1, 1, 1)}, {"strides": (1, 0, 3, 1)}, {"dilations": (1, 1, 1)},
        {"pads": (0, 1, 0)}, {"pads": (0, -1, 0, 0)}, {"deformable_groups": 3}, {"deformable_groups": 0}, {"data_format": "NCHW"},
        {"modulated": False})),
    *(("DynamicGRUV2", change) for change in (
        {"gate_order": "zrh"}, {"reset_after": False}, {"time_major": False}, {"keep_prob": 0.5}, {"activation": "relu"})),
    ("DynamicGRUV2Grad", {"direction": "BIDIRECTIONAL"}), ("DynamicGRUV2Grad", {"cell_clip": 1.0}),
    ("DeformableOffsetsGrad", {"data_format": "NCHW"}), ("DropOutGenMaskV3", {"seed2": 1}), ("MaskedFillRange", {"axis": 0}),
    ("SortV2", {"axis": 2}), ("SortV2", {"axis": -3}), ("SortV2", {"descending": "yes"}),
]  # fmt: skip


@pytest.mark.parametrize("name", LEGAL)
def test_what_is_legal_runs(name):
    assert run("aclopCompileAndExecute", (name, *LEGAL[name])).status == 0


def test_operands_that_are_not_the_operators_are_refused():
    for one in broken():
        result = run("aclopCompileAndExecute", one)
        assert result.status in (100021, 100022, 500002) and result.untouched, one


@pytest.mark.parametrize("name, change", OWN)
def test_attributes_that_are_not_the_operators_are_refused(name, change):
    inputs, outputs, attributes = LEGAL[name]
    assert run("aclopCompileAndExecute", (name, inputs, outputs, {**attributes, **change})) == Result(100023, True)


@pytest.mark.parametrize("name, place, value", (
    ("ApplyAdamD", 3, NUMBER), ("ApplyAdamD", 8, Constant(X[0, :1], True)), ("DropOutDoMask", 2, NUMBER),
    ("DropOutDoMaskV3", 2, Constant(numpy.array(1.5, "float32"), True)),
    ("DropOutGenMaskV3", 1, Constant(numpy.array(-0.5, "float32"), True)), ("DropOutGenMaskV3", 1, NUMBER),
    ("DropOutGenMaskV3", 0, Constant(numpy.array([1 << 40, 1 << 40]), True)),
    ("NMSWithMask", 0, numpy.ones((3, 4), "float32")), ("DeformableOffsets", 0, numpy.ones((1, 0, 6, 2), "float32")),
    ("DeformableOffsets", 0, numpy.ones((1, 4, 1, 2), "float32")), ("MaskedFillRange", 0, X[None]),
))  # fmt: skip
def test_inputs_that_are_not_the_operators_are_refused(name, place, value):
    inputs, outputs, attributes = LEGAL[name]
    result = run("aclopCompileAndExecute", (name, replaced(inputs, place, value), outputs, attributes))
    assert result.status in (100021, 100022) and result.untouched


def test_a_refused_operator_fails_its_stream():
    """A client that goes on is told by the next synchronisation; a call that was made wrongly leaves the stream alone."""
    for change, fault in ((ARGUMENTS["opType/unsupported"], 507015), (ARGUMENTS["opType/null"], 0)):
        statuses = []

        def changed_and_told(raw, change=change, statuses=statuses):
            change(raw)
            tensors = (1, raw.input_descriptions, raw.inputs, 1, raw.output_descriptions, raw.outputs)
            statuses.append(lib.aclopCompileAndExecute(raw.kind, *tensors, raw.attr, 0, 0, ffi.NULL, raw.stream))
            statuses.append(lib.aclrtSynchronizeStream(raw.stream))

        relu("aclopCompileAndExecute", changed_and_told)
        assert statuses[0] != 0 and statuses[1] == fault, change


def test_an_output_needs_an_address_and_an_input_may_be_left_out():
    def without(name):
        return lambda raw: lib.aclUpdateDataBuffer(getattr(raw, name)[0], ffi.NULL, 24)

    result = relu("aclopCompileAndExecute", without("inputs"))
    assert result == Result(500002, True)  # aclnnRelu needs it
    assert call("Relu", [X], [Y[:0]], change=without("outputs"))[0].status == 500002  # of another shape, not without memory
    assert relu("aclopCompileAndExecute", without("outputs")).status == 100000


def test_a_constant_must_have_the_bytes_that_its_description_tells():
    def short(raw):
        assert lib.aclSetTensorConst(raw.input_descriptions[1], ffi.new("int64_t[]", [1]), 8) == 0

    for change, status in ((short, 100000), (None, 0)):
        assert call("Transpose", [X, constant(1, 0)], [Y.T.copy()], change=change)[0].status == status
