"""Rules of the spatial transformer (mcdnn 6.17, 6.18, 7.2)."""

import numpy as np
import pytest

from understudy.maca import lib

from tests.conformance.harness import check_rule
from tests.conformance.maca.mcdnn_cases import Subject, descriptor_rules, fresh
from tests.maca.mcdnn_support import BFLOAT16, FLOAT, Tensor, descriptor, handle, scale, transformer

SIZES, IMAGES = (2, 3, 4, 5), (2, 3, 6, 7)
FIVE = (2, 3, 4, 5, 1)


def unset(_=None):
    return {"stDesc": fresh("mcdnnSpatialTransformerDescriptor_t", "SpatialTransformer")}


def theta():
    return Tensor(np.zeros((2, 2, 3)))


def grid():
    return Tensor(np.zeros((2, 4, 5, 2)))


def common(**more):
    return dict(handle=handle(), stDesc=transformer(SIZES), **more)


def forward():
    x, y = Tensor(np.ones(IMAGES)), Tensor(np.ones(SIZES))
    return common(alpha=scale(1), xDesc=x, x=x, grid=grid(), beta=scale(0), yDesc=y, y=y)


def backward():
    x, dx, dy = Tensor(np.ones(IMAGES)), Tensor(np.ones(IMAGES)), Tensor(np.ones(SIZES))
    return common(alpha=scale(1), xDesc=x, x=x, beta=scale(0), dxDesc=dx, dx=dx, alphaDgrid=scale(1), dyDesc=dy, dy=dy,
                  grid=grid(), betaDgrid=scale(0), dgrid=grid())


GRID = Subject("mcdnnSpatialTfGridGeneratorForward", lambda: common(theta=theta(), grid=grid()), ("grid",))
GRID_BACK = Subject("mcdnnSpatialTfGridGeneratorBackward", lambda: common(dgrid=grid(), dtheta=theta()), ("dtheta",))
SAMPLER = Subject("mcdnnSpatialTfSamplerForward", forward, ("y",))
SAMPLER_BACK = Subject("mcdnnSpatialTfSamplerBackward", backward, ("dx", "dgrid"))
SET = Subject("mcdnnSetSpatialTransformerNdDescriptor", lambda: dict(**unset(), samplerType=0, dataType=FLOAT, nbDims=4,
                                                                     dimA=list(SIZES)))


def common_rules(subject):
    return [*subject.operands(), subject.case("stDesc/set", unset), subject.launch()]


def five_dimensions(*names):
    return lambda _: {"stDesc": transformer(FIVE), **{name: descriptor(FIVE) for name in names}}


def integers(*names):
    """The descriptor and every tensor of a type that no kernel samples."""
    def changes(arguments):
        kind = lib.MCDNN_DATA_INT32
        tensors = {name: descriptor(arguments[name].sizes, kind) for name in names}
        return {"stDesc": transformer(SIZES, kind), **tensors}
    return changes


RULES = [
    *descriptor_rules("SpatialTransformer", "mcdnnSpatialTransformerDescriptor_t", "stDesc", {}),
    *SET.operands(),
    SET.case("samplerType/range", {"samplerType": 1}),
    SET.case("dataType/range", {"dataType": 11}, {"dataType": 10}),
    SET.case("nbDims/range", {"nbDims": 3}, {"nbDims": 5, "dimA": list(FIVE)}),
    SET.case("dimA/positive", {"dimA": [2, 3, 0, 5]}, {"dimA": [2, 3, 1, 5]}),
    SET.case("dimA/elements", {"dimA": [2, 3, 1 << 15, 1 << 15]}, {"dimA": [2, 1, 1 << 15, 1 << 15]}),
    *common_rules(GRID),
    GRID.case("stDesc/dimensions", five_dimensions()),
    GRID.case("stDesc/unsupported-type", integers()),
    *common_rules(GRID_BACK),
    GRID_BACK.case("stDesc/dimensions", five_dimensions()),
    GRID_BACK.case("stDesc/unsupported-type", integers()),
    *common_rules(SAMPLER),
    SAMPLER.case("yDesc/sizes", {"yDesc": descriptor((2, 3, 5, 4))}),
    SAMPLER.case("xDesc/source-sizes", {"xDesc": descriptor((2, 4, 6, 7))}, {"xDesc": descriptor((2, 3, 7, 6))}),
    *[SAMPLER.case(f"{name}/type", lambda it, name=name: {name: descriptor(it[name].sizes, BFLOAT16)})
      for name in ("xDesc", "yDesc")],
    SAMPLER.case("stDesc/dimensions", five_dimensions("xDesc", "yDesc")),
    SAMPLER.case("stDesc/unsupported-type", integers("xDesc", "yDesc")),
    *common_rules(SAMPLER_BACK),
    SAMPLER_BACK.case("dyDesc/sizes", {"dyDesc": descriptor((2, 3, 5, 4))}),
    SAMPLER_BACK.case("xDesc/source-sizes", {"xDesc": descriptor((3, 3, 6, 7))}),
    SAMPLER_BACK.case("dxDesc/sizes", {"dxDesc": descriptor((2, 3, 7, 6))}),
    *[SAMPLER_BACK.case(f"{name}/type", lambda it, name=name: {name: descriptor(it[name].sizes, BFLOAT16)})
      for name in ("xDesc", "dxDesc", "dyDesc")],
    SAMPLER_BACK.case("stDesc/dimensions", five_dimensions("xDesc", "dxDesc", "dyDesc")),
    SAMPLER_BACK.case("stDesc/unsupported-type", integers("xDesc", "dxDesc", "dyDesc")),
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
