"""Rules of the CTC loss (mcdnn-cnn 16)."""

import pytest

from understudy.maca import ffi

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, descriptor_rules, fresh
from tests.maca.mcdnn_support import HALF, descriptor, gapped_strides
from tests.maca.runtime_support import device_memory
from tests.maca.test_mcdnn_ctc_loss import Call, described

KEEP = []
SIZES = (5, 6, 3)


def new(_=None):
    return fresh("mcdnnCTCLossDescriptor_t", "CTCLoss")


def arguments_of(version, query):
    made = Call(version)
    KEEP.append(made)
    found = made.arguments()
    if query:
        for name in ("probs", "costs", "gradients", "workSpaceSizeInBytes", "workspace"):
            del found[name]
        found["sizeInBytes"] = ffi.new("size_t *")
        for host, name in (("hostLabels", "labels"), ("hostLabelLengths", "labelLengths"),
                           ("hostInputLengths", "inputLengths")):
            if version == 7:
                found[name] = found.pop(host)
            else:
                del found[name]
    return found


OLD = Subject("mcdnnCTCLoss", lambda: arguments_of(7, False), ("gradients",))
NEW = Subject("mcdnnCTCLoss_v8", lambda: arguments_of(8, False), ("gradients",))
OLD_SIZE = Subject("mcdnnGetCTCLossWorkspaceSize", lambda: arguments_of(7, True))
NEW_SIZE = Subject("mcdnnGetCTCLossWorkspaceSize_v8", lambda: arguments_of(8, True))
SET = Subject("mcdnnSetCTCLossDescriptor", lambda: dict(ctcLossDesc=new(), compType=0))
SET_EX = Subject("mcdnnSetCTCLossDescriptorEx", lambda: dict(ctcLossDesc=new(), compType=0, normMode=0, gradMode=0))
SET_V8 = Subject("mcdnnSetCTCLossDescriptor_v8", lambda: dict(ctcLossDesc=new(), compType=0, normMode=0, gradMode=0,
                                                              maxLabelLength=9))
GET = [Subject(f"mcdnnGetCTCLossDescriptor{suffix}",
               lambda names=names: dict(ctcLossDesc=described(), **dict.fromkeys(names)))
       for suffix, names in (("", ("compType",)), ("Ex", ("compType", "normMode", "gradMode")),
                             ("_v8", ("compType", "normMode", "gradMode", "maxLabelLength")))]


def numbers(*values):
    return ffi.new("int[]", list(values))


def tensor_rules(subject):
    unset = lambda name: lambda _: {name: fresh("mcdnnTensorDescriptor_t", "Tensor")}  # noqa: E731
    four = {"probsDesc": descriptor((*SIZES, 1)), "gradientsDesc": None}
    gapped = {"strides": gapped_strides(SIZES)}
    return [
        subject.case("handle/alive", {"handle": None}),
        subject.case("ctcLossDesc/alive", {"ctcLossDesc": None}),
        subject.case("ctcLossDesc/set", lambda _: {"ctcLossDesc": new()}),
        subject.case("probsDesc/alive", {"probsDesc": None}),
        subject.case("probsDesc/set", unset("probsDesc")),
        subject.case("gradientsDesc/alive", {"gradientsDesc": ffi.cast("mcdnnTensorDescriptor_t", 4096)},
                     {"gradientsDesc": None}),
        subject.case("gradientsDesc/set", unset("gradientsDesc")),
        subject.case("algo/range", {"algo": 2}, {"algo": 1}),
        subject.case("probsDesc/rank", four, {"gradientsDesc": None}),
        subject.case("gradientsDesc/sizes", lambda _: {"gradientsDesc": descriptor((5, 6, 4))}),
        subject.case("probsDesc/packed", lambda _: {"probsDesc": descriptor(SIZES, **gapped)}),
        subject.case("gradientsDesc/packed", lambda _: {"gradientsDesc": descriptor(SIZES, **gapped)}),
        subject.case("probsDesc/unsupported-type", lambda _: {"probsDesc": descriptor(SIZES, HALF)}),
        subject.case("gradientsDesc/unsupported-type", lambda _: {"gradientsDesc": descriptor(SIZES, HALF)}),
    ]


def length_rules(subject, labels, steps):
    return [
        subject.case(f"{labels}/range", {labels: numbers(2, 2, 0, 1, 3, -1)}, {labels: numbers(2, 2, 0, 1, 3, 0)}),
        subject.case(f"{steps}/range", {steps: numbers(5, 4, 3, 1, 6, 4)}, {steps: numbers(5, 4, 3, 1, 0, 4)}),
    ]


RULES = [
    *descriptor_rules("CTCLoss", "mcdnnCTCLossDescriptor_t", "ctcLossDesc", {}),
    *[subject.case("ctcLossDesc/alive", {"ctcLossDesc": None}) for subject in (SET, SET_EX, SET_V8, *GET)],
    *[subject.case("ctcLossDesc/set", lambda _: {"ctcLossDesc": new()}) for subject in GET],
    *[subject.case("compType/unsupported-type", {"compType": 1}) for subject in (SET, SET_EX, SET_V8)],
    *[subject.case(f"{name}/range", {name: 2}, {name: 1})
      for subject in (SET_EX, SET_V8) for name in ("normMode", "gradMode")],
    SET_V8.case("maxLabelLength/range", {"maxLabelLength": 256}, {"maxLabelLength": 255}),
    *[case for subject in (OLD, NEW, OLD_SIZE, NEW_SIZE) for case in tensor_rules(subject)],
    *[subject.case(f"{name}/null", {name: None}) for subject, names in (
        (OLD, ("probs", "hostLabels", "hostLabelLengths", "hostInputLengths", "costs", "workspace")),
        (NEW, ("probs", "labels", "labelLengths", "inputLengths", "costs", "workspace")),
        (OLD_SIZE, ("labels", "labelLengths", "inputLengths", "sizeInBytes")), (NEW_SIZE, ("sizeInBytes",)))
      for name in names],
    *[subject.case(f"{name}/device", lambda _, name=name: {name: device_memory()}) for subject, names in (
        (OLD, ("hostLabels", "hostLabelLengths", "hostInputLengths")),
        (OLD_SIZE, ("labels", "labelLengths", "inputLengths")))
      for name in names],
    *length_rules(OLD, "hostLabelLengths", "hostInputLengths"),
    *length_rules(OLD_SIZE, "labelLengths", "inputLengths"),
    *[subject.case("workSpaceSizeInBytes/minimum",
                   lambda it: {"workSpaceSizeInBytes": it["workSpaceSizeInBytes"] - 1}) for subject in (OLD, NEW)],
    *[subject.launch() for subject in (OLD, NEW)],
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
