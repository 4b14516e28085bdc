"""Rules of local response and divisive normalization (mcdnn 6.8, 6.10, 7.2, 7.3)."""

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, descriptor_rules, fresh, operands
from tests.maca.mcdnn_support import BFLOAT16, FLOAT, HALF, Buffer, Tensor, descriptor, handle, lrn, nhwc_strides, scale

SIZES = (2, 3, 4, 5)
FIVE = (2, 3, 2, 2, 5)
X, Y, DY, DX = ("xDesc", "x"), ("yDesc", "y"), ("dyDesc", "dy"), ("dxDesc", "dx")


def tensors(*pairs):
    return {name: tensor for pair in pairs for tensor in [Tensor(np.ones(SIZES))] for name in pair}


def common(**more):
    return dict(handle=handle(), normDesc=lrn(3, 0.5, 0.75, 1.0), alpha=scale(1), beta=scale(0), **more)


def scratch():
    return {"temp": Buffer(np.zeros(480, np.uint8)), "temp2": Buffer(np.zeros(480, np.uint8))}


FORWARD = Subject("mcdnnLRNCrossChannelForward", lambda: common(lrnMode=0, **tensors(X, Y)), ("y",))
BACKWARD = Subject("mcdnnLRNCrossChannelBackward", lambda: common(lrnMode=0, **tensors(X, Y, DY, DX)), ("dx",))
DIVISIVE = Subject("mcdnnDivisiveNormalizationForward",
                   lambda: common(mode=0, means=None, **scratch(), **tensors(X, Y)), ("y",))
DIVISIVE_BACK = Subject("mcdnnDivisiveNormalizationBackward", lambda: common(
    mode=0, means=None, dy=Tensor(np.ones(SIZES)), dMeans=None, **scratch(), **tensors(X, DX)), ("dx",))
SET = Subject("mcdnnSetLRNDescriptor", lambda: dict(normDesc=fresh("mcdnnLRNDescriptor_t", "LRN"), lrnN=5,
                                                    lrnAlpha=1e-4,
                                                    lrnBeta=0.75, lrnK=2.0))


def every(subject_pairs, sizes=SIZES, strides=None, data_type=FLOAT):
    return operands(subject_pairs, lambda: Tensor(np.ones(sizes), data_type, strides))


def descriptors(pairs, sizes, strides=None):
    return {pair[0]: descriptor(sizes, FLOAT, strides) for pair in pairs}


def gapped_five(pairs, name):
    """All of rank 5, the named one with a gap between its planes."""
    return {**descriptors(pairs, FIVE), name: descriptor(FIVE, FLOAT, (66, 22, 11, 5, 1))}


def lrn_rules(subject, pairs):
    names = [pair[0] for pair in pairs]
    return [
        *subject.operands(),
        subject.case("lrnMode/range", {"lrnMode": 1}),
        subject.case("xDesc/rank", descriptors(pairs, (2, 60)), descriptors(pairs, (2, 6, 10, 1))),
        subject.case("xDesc/dimensions", descriptors(pairs, (2, 6, 10)), descriptors(pairs, (2, 6, 1, 10))),
        *[subject.case(f"{name}/packed-planes", gapped_five(pairs, name), descriptors(pairs, FIVE)) for name in names],
        *[subject.case(f"{name}/type", {name: descriptor(SIZES, BFLOAT16)}) for name in names if name != "xDesc"],
        *[subject.case(f"{name}/sizes", {name: descriptor((2, 3, 5, 4))}) for name in names if name != "xDesc"],
        *[subject.case(f"{name}/negative-stride", {name: descriptor(SIZES, FLOAT, (60, 20, 5, -1))},
                       {name: descriptor(SIZES, FLOAT, nhwc_strides(SIZES))}) for name in names],
        subject.case("xDesc/unsupported-type", every(pairs, data_type=lib.MCDNN_DATA_INT32), every(pairs,
                                                                                                   data_type=HALF)),
        subject.launch(),
    ]


def divisive_rules(subject, pairs, output):
    def typed(data_type):
        def changes(arguments):
            slopes = {"dy": Tensor(np.ones(SIZES), data_type)} if "dy" in arguments else {}
            return {**every(pairs, data_type=data_type)(arguments), **slopes}
        return changes

    return [
        *subject.operands(optional=("means", "dMeans")),
        subject.case("mode/range", {"mode": 1}),
        subject.case("xDesc/rank", {"xDesc": descriptor((2, 3, 20))}),
        subject.case(f"{output}/rank", {output: descriptor((2, 3, 4, 5, 1, 1))}),
        subject.case(f"{output}/sizes", {output: descriptor((2, 3, 5, 4))}),
        subject.case(f"{output}/type", {output: descriptor(SIZES, BFLOAT16)}),
        *[subject.case(f"{name}/negative-stride", {name: descriptor(SIZES, FLOAT, (60, 20, 5, -1))})
          for name in ("xDesc", output)],
        subject.case(f"{output}/strides", {output: descriptor(SIZES, FLOAT, nhwc_strides(SIZES))},
                     {name: descriptor(SIZES, FLOAT, nhwc_strides(SIZES)) for name in ("xDesc", output)}),
        subject.case("xDesc/unsupported-type", typed(lib.MCDNN_DATA_INT32), typed(HALF)),
        subject.launch(),
    ]


RULES = [
    *[case for case in descriptor_rules("LRN", "mcdnnLRNDescriptor_t", "normDesc", {
        "mcdnnGetLRNDescriptor": lambda it: lib.mcdnnGetLRNDescriptor(it, *[ffi.NULL] * 4)})
      if "Destroy" not in case.rule],
    *[case for case in descriptor_rules("LRN", "mcdnnLRNDescriptor_t", "lrnDesc", {}) if "Destroy" in case.rule],
    *SET.operands(),
    SET.case("lrnN/range", {"lrnN": 17}, {"lrnN": 16}),
    SET.case("lrnBeta/minimum", {"lrnBeta": np.nextafter(0.01, 0)}, {"lrnBeta": 0.01}),
    SET.case("lrnK/minimum", {"lrnK": np.nextafter(1e-5, 0)}, {"lrnK": 1e-5}),
    *lrn_rules(FORWARD, [X, Y]),
    *lrn_rules(BACKWARD, [Y, DY, X, DX]),
    *divisive_rules(DIVISIVE, [X, Y], "yDesc"),
    *divisive_rules(DIVISIVE_BACK, [X, DX], "dxDesc"),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
