"""Rules of recurrent networks (mcdnn-cnn 15)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, descriptor_rules, fresh
from tests.maca.mcdnn_support import DOUBLE, FLOAT, HALF, descriptor, gapped_strides, handle, ok
from tests.maca.runtime_support import device_memory
from tests.maca.test_mcdnn_dropout import Dropout
from tests.maca.test_mcdnn_rnn import BATCH_MAJOR, GRU, LSTM, PACKED, SEQ_MAJOR, Network, Run, Sequences

KEEP = []  # what descriptors refer to outlives the cases


def new_network(_=None):
    return fresh("mcdnnRNNDescriptor_t", "RNN")


def new_data(_=None):
    return fresh("mcdnnRNNDataDescriptor_t", "RNNData")


def network(**more):
    KEEP.append(Network(**{"data_type": FLOAT, **more}))
    return KEEP[-1].descriptor


def sequences(vector=3, lengths=(4, 3, 1), layout=SEQ_MAJOR, steps=4, data_type=FLOAT):
    return Sequences(np.zeros((steps, len(lengths), vector)), lengths, layout, data_type).descriptor


def lengths(*values):
    return ffi.new("int[]", list(values))


# ---- descriptors ----

SET = Subject("mcdnnSetRNNDescriptor_v8", lambda: dict(
    rnnDesc=new_network(), algo=0, cellMode=LSTM, biasMode=2, dirMode=0, inputMode=0, dataType=FLOAT, mathPrec=FLOAT,
    mathType=0, inputSize=3, hiddenSize=4, projSize=4, numLayers=1, dropoutDesc=None, auxFlags=0))
GET = Subject("mcdnnGetRNNDescriptor_v8", lambda: dict(rnnDesc=network(), **dict.fromkeys((
    "algo", "cellMode", "biasMode", "dirMode", "inputMode", "dataType", "mathPrec", "mathType", "inputSize", "hiddenSize",
    "projSize", "numLayers", "dropoutDesc", "auxFlags"))))
SET_CLIP = Subject("mcdnnRNNSetClip_v8", lambda: dict(rnnDesc=new_network(), clipMode=1, clipNanOpt=1, lclip=-1.0,
                                                      rclip=1.0))
GET_CLIP = Subject("mcdnnRNNGetClip_v8", lambda: dict(rnnDesc=new_network(), clipMode=None, clipNanOpt=None, lclip=None,
                                                      rclip=None))
BUILD = Subject("mcdnnBuildRNNDynamic", lambda: dict(handle=handle(), rnnDesc=network(algorithm=2), miniBatch=3))
SET_DATA = Subject("mcdnnSetRNNDataDescriptor", lambda: dict(
    rnnDataDesc=new_data(), dataType=FLOAT, layout=SEQ_MAJOR, maxSeqLength=4, batchSize=2, vectorSize=3,
    seqLengthArray=lengths(3, 4), paddingFill=None))
GET_DATA = Subject("mcdnnGetRNNDataDescriptor", lambda: dict(
    rnnDataDesc=sequences(), dataType=None, layout=None, maxSeqLength=None, batchSize=None, vectorSize=None,
    arrayLengthRequested=0, seqLengthArray=None, paddingFill=None))


def out_of_range(subject, **last):
    """An enumeration's values are 0 to its last one."""
    return [subject.case(f"{name}/range", {name: value + 1}, {name: value}) for name, value in last.items()]


RULES = [
    *descriptor_rules("RNN", "mcdnnRNNDescriptor_t", "rnnDesc", {}),
    *descriptor_rules("RNNData", "mcdnnRNNDataDescriptor_t", "rnnDataDesc", {}),
    *[subject.case("rnnDesc/alive", {"rnnDesc": None}) for subject in (SET, GET, SET_CLIP, GET_CLIP, BUILD)],
    *[subject.case("rnnDesc/set", lambda _: {"rnnDesc": new_network()}) for subject in (GET, BUILD)],
    *[subject.case("rnnDataDesc/alive", {"rnnDataDesc": None}) for subject in (SET_DATA, GET_DATA)],
    GET_DATA.case("rnnDataDesc/set", lambda _: {"rnnDataDesc": new_data()}),
    SET.case("dropoutDesc/alive", lambda _: {"dropoutDesc": ffi.cast("mcdnnDropoutDescriptor_t", new_network())}),
    *out_of_range(SET, algo=3, cellMode=3, biasMode=3, dirMode=1, mathType=3, auxFlags=1),
    SET.case("inputMode/range", {"inputMode": 2}, {"inputMode": 1, "inputSize": 4}),
    *[SET.case(f"{name}/range", {name: 0}, {name: 1}) for name in ("inputSize", "numLayers")],
    SET.case("hiddenSize/range", {"hiddenSize": 0}, {"hiddenSize": 1, "projSize": 1}),
    SET.case("projSize/range", {"projSize": 5}, {"projSize": 3}),
    SET.case("inputSize/skip", {"inputMode": 1}, {"inputMode": 1, "inputSize": 4}),
    SET.case("dataType/combination", {"mathPrec": HALF}, {"dataType": HALF, "mathPrec": HALF}),
    SET.case("projSize/cell", {"cellMode": GRU, "projSize": 2}, {"projSize": 2}),
    SET.case("numLayers/parameters", {"numLayers": 2**29}, {"numLayers": 2**27}),
    *out_of_range(SET_CLIP, clipMode=1, clipNanOpt=1),
    SET_CLIP.case("lclip/order", {"lclip": 2.0}, {"lclip": 2.0, "clipMode": 0}),
    BUILD.case("handle/alive", {"handle": None}),
    BUILD.case("miniBatch/range", {"miniBatch": 0}, {"miniBatch": 1}),
    BUILD.case("rnnDesc/algorithm", lambda _: {"rnnDesc": network(algorithm=1)}),
    SET_DATA.case("seqLengthArray/null", {"seqLengthArray": None}),
    SET_DATA.case("seqLengthArray/device", lambda _: {"seqLengthArray": device_memory()}),
    SET_DATA.case("layout/range", {"layout": 3}, {"layout": BATCH_MAJOR}),
    SET_DATA.case("maxSeqLength/range", {"maxSeqLength": 0}, {"maxSeqLength": 4}),
    SET_DATA.case("batchSize/range", {"batchSize": 0}, {"batchSize": 1}),
    SET_DATA.case("vectorSize/range", {"vectorSize": 0}, {"vectorSize": 1}),
    SET_DATA.case("seqLengthArray/range", {"seqLengthArray": lengths(3, 5)}, {"seqLengthArray": lengths(0, 4)}),
    SET_DATA.case("seqLengthArray/order", {"layout": PACKED},
                  {"layout": PACKED, "seqLengthArray": lengths(4, 3)}),
    SET_DATA.case("dataType/unsupported-type", {"dataType": lib.MCDNN_DATA_BFLOAT16}, {"dataType": HALF}),
    SET_DATA.case("rnnDataDesc/elements", {"maxSeqLength": 2**20, "vectorSize": 2**20},
                  {"maxSeqLength": 2**20, "vectorSize": 2**19}),
    GET_DATA.case("arrayLengthRequested/range", {"arrayLengthRequested": -1}),
]


# ---- runs ----

def run_of():
    made = Run(Network(layers=2, data_type=FLOAT))
    made.begin_backward()
    KEEP.append(made)
    return made


def forward():
    return run_of().forward_arguments()


def data_gradients():
    return run_of().data_arguments()


def weight_gradients():
    return run_of().weight_arguments()


FORWARD = Subject("mcdnnRNNForward", forward, ("y", "hy", "cy"))
DATA = Subject("mcdnnRNNBackwardData_v8", data_gradients, ("dx", "dhx", "dcx"))
WEIGHTS = Subject("mcdnnRNNBackwardWeights_v8", weight_gradients, ("dweightSpace",))
TEMP = Subject("mcdnnGetRNNTempSpaceSizes", lambda: dict(
    handle=handle(), rnnDesc=network(layers=2), fMode=1, xDesc=sequences(), workSpaceSize=None,
    reserveSpaceSize=ffi.new("size_t *")))
WEIGHT_SIZE = Subject("mcdnnGetRNNWeightSpaceSize", lambda: dict(handle=handle(), rnnDesc=network(),
                                                                 weightSpaceSize=ffi.new("size_t *")))
PARAMETERS = Subject("mcdnnGetRNNWeightParams", lambda: dict(
    handle=handle(), rnnDesc=network(), pseudoLayer=0, weightSpaceSize=1 << 20, weightSpace=ffi.cast("void *", 4096),
    linLayerID=0, mDesc=fresh("mcdnnTensorDescriptor_t", "Tensor"), mAddr=ffi.new("void **"),
    bDesc=fresh("mcdnnTensorDescriptor_t", "Tensor"), bAddr=ffi.new("void **")))


def sequence_rules(subject):
    """Of what all take that have an x."""
    return [
        subject.case("handle/alive", {"handle": None}),
        subject.case("rnnDesc/alive", {"rnnDesc": None}),
        subject.case("rnnDesc/set", lambda _: {"rnnDesc": new_network()}),
        subject.case("xDesc/alive", {"xDesc": None}),
        subject.case("xDesc/set", lambda _: {"xDesc": new_data()}),
        subject.case("xDesc/type", lambda _: {"xDesc": sequences(data_type=DOUBLE)}),
        subject.case("xDesc/vector", lambda _: {"xDesc": sequences(4)}),
        subject.case("xDesc/padded", lambda _: {"rnnDesc": network(layers=2, padded=False)}),
        subject.case("xDesc/elements", lambda _: {"xDesc": described(1 << 20, 1 << 18)}),
    ]


def described(steps, batch, vector=3):
    """Sequences without data."""
    made = new_data()
    ok(lib.mcdnnSetRNNDataDescriptor(made, FLOAT, SEQ_MAJOR, steps, batch, vector, [steps] * batch, ffi.NULL))
    return made


def state_rules(subject, parameter, *pointers):
    """A state's descriptor; without the state's pointers it may be left out."""
    return [
        subject.case(f"{parameter}/alive", {parameter: None}, {parameter: None, **dict.fromkeys(pointers)}),
        subject.case(f"{parameter}/set", lambda _: {parameter: fresh("mcdnnTensorDescriptor_t", "Tensor")}),
        subject.case(f"{parameter}/sizes", lambda _: {parameter: descriptor((2, 3, 5))}),
        subject.case(f"{parameter}/type", lambda _: {parameter: descriptor((2, 3, 4), DOUBLE)}),
        subject.case(f"{parameter}/packed",
                     lambda _: {parameter: descriptor((2, 3, 4), strides=gapped_strides((2, 3, 4)))}),
    ]


def built(batch):
    made = network(layers=2, algorithm=2)
    ok(lib.mcdnnBuildRNNDynamic(handle(), made, batch))
    return made


def dropping(alive=True, bound=True):
    dropout = Dropout(0.5)
    if not bound:
        dropout.descriptor = fresh("mcdnnDropoutDescriptor_t", "Dropout")
        ok(lib.mcdnnSetDropoutDescriptor(dropout.descriptor, handle(), 0.5, ffi.NULL, 0, 0))
    made = network(layers=2, dropout=dropout)
    if not alive:
        ffi.release(dropout.descriptor)
    return made


def run_rules(subject, required):
    return [
        *sequence_rules(subject),
        *[subject.case(f"{name}/null", {name: None}) for name in required],
        subject.case("yDesc/alive", {"yDesc": None}),
        subject.case("yDesc/set", lambda _: {"yDesc": new_data()}),
        subject.case("yDesc/type", lambda _: {"yDesc": sequences(4, data_type=HALF)}),
        subject.case("yDesc/vector", lambda _: {"yDesc": sequences(3)}),
        subject.case("yDesc/sequences", lambda _: {"yDesc": sequences(4, (4, 2, 1))}),
        *[subject.case(f"{name}/minimum", lambda it, name=name: {name: it[name] - 1})
          for name in ("weightSpaceSize", "workSpaceSize", "reserveSpaceSize")],
        subject.case("rnnDesc/built", lambda _: {"rnnDesc": built(2)}, lambda _: {"rnnDesc": built(3)}),
        subject.case("rnnDesc/dropout", lambda _: {"rnnDesc": dropping(alive=False)},
                     lambda _: {"rnnDesc": dropping()}),
        subject.case("rnnDesc/dropout-states", lambda _: {"rnnDesc": dropping(bound=False)},
                     lambda _: {"rnnDesc": dropping()}),
        subject.launch(),
    ]


RULES += [
    *sequence_rules(TEMP),
    *out_of_range(TEMP, fMode=1),
    *[subject.case("handle/alive", {"handle": None}) for subject in (WEIGHT_SIZE, PARAMETERS)],
    *[subject.case("rnnDesc/alive", {"rnnDesc": None}) for subject in (WEIGHT_SIZE, PARAMETERS)],
    *[subject.case("rnnDesc/set", lambda _: {"rnnDesc": new_network()}) for subject in (WEIGHT_SIZE, PARAMETERS)],
    WEIGHT_SIZE.case("weightSpaceSize/null", {"weightSpaceSize": None}),
    *[PARAMETERS.case(f"{name}/null", {name: None}) for name in ("weightSpace", "mAddr", "bAddr")],
    *[PARAMETERS.case(f"{name}/alive", {name: None}) for name in ("mDesc", "bDesc")],
    PARAMETERS.case("pseudoLayer/range", {"pseudoLayer": 1}),
    PARAMETERS.case("linLayerID/range", {"linLayerID": 9}, {"linLayerID": 8}),
    PARAMETERS.case("weightSpaceSize/minimum", {"weightSpaceSize": 4 * 4 * 4 * 9 - 1},
                    {"weightSpaceSize": 4 * 4 * 4 * 9}),
    *run_rules(FORWARD, ("x", "y", "weightSpace", "workSpace")),
    FORWARD.case("reserveSpace/null", {"reserveSpace": None}, {"reserveSpace": None, "fwdMode": 0}),
    *out_of_range(FORWARD, fwdMode=1),
    *state_rules(FORWARD, "hDesc", "hx", "hy"),
    *state_rules(FORWARD, "cDesc", "cx", "cy"),
    *run_rules(DATA, ("y", "dy", "dx", "weightSpace", "workSpace", "reserveSpace")),
    *state_rules(DATA, "hDesc", "hx", "dhy", "dhx"),
    *state_rules(DATA, "cDesc", "cx", "dcy", "dcx"),
    *run_rules(WEIGHTS, ("x", "y", "dweightSpace", "workSpace", "reserveSpace")),
    *state_rules(WEIGHTS, "hDesc", "hx"),
    WEIGHTS.case("addGrad/range", {"addGrad": 2}, {"addGrad": 0}),
    WEIGHTS.case("addGrad/mode", {"addGrad": 1}),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
