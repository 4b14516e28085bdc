"""No function writes a tensor whose elements lie over each other (mcdnn 6.10, and a choice elsewhere)."""

import pytest

from tests.conformance.harness import check_rule
from tests.conformance.maca import (test_mcdnn_activation, test_mcdnn_batch_norm, test_mcdnn_dropout, test_mcdnn_lrn,
                                    test_mcdnn_normalization, test_mcdnn_pooling, test_mcdnn_softmax,
                                    test_mcdnn_spatial_transformer, test_mcdnn_tensor_ops,
                                    test_mcdnn_tensor_transform)
from tests.maca.mcdnn_support import Tensor, descriptor

# Module, subject: each checked descriptor with those that must keep the same strides.
TENSORS = {
    (test_mcdnn_activation, "FORWARD"): ["yDesc"],
    (test_mcdnn_activation, "BACKWARD"): ["dxDesc xDesc"],
    (test_mcdnn_softmax, "FORWARD"): ["yDesc"],
    (test_mcdnn_softmax, "BACKWARD"): ["dxDesc"],
    (test_mcdnn_pooling, "FORWARD"): ["yDesc"],
    (test_mcdnn_pooling, "BACKWARD"): ["dxDesc xDesc"],
    (test_mcdnn_lrn, "FORWARD"): ["xDesc", "yDesc"],
    (test_mcdnn_lrn, "BACKWARD"): ["yDesc", "dyDesc", "xDesc", "dxDesc"],
    (test_mcdnn_lrn, "DIVISIVE"): ["xDesc", "yDesc"],
    (test_mcdnn_lrn, "DIVISIVE_BACK"): ["xDesc", "dxDesc"],
    (test_mcdnn_batch_norm, "TRAINING"): ["yDesc", "bnScaleBiasMeanVarDesc"],
    (test_mcdnn_batch_norm, "INFERENCE"): ["yDesc"],
    (test_mcdnn_batch_norm, "BACKWARD"): ["dxDesc", "bnScaleBiasDiffDesc"],
    (test_mcdnn_batch_norm, "TRAINING_EX"): ["yDesc", "bnScaleBiasMeanVarDesc"],
    (test_mcdnn_batch_norm, "BACKWARD_EX"): ["dxDesc", "dBnScaleBiasDesc"],
    (test_mcdnn_batch_norm, "TRAINING_SIZE"): ["yDesc", "bnScaleBiasMeanVarDesc"],
    (test_mcdnn_batch_norm, "BACKWARD_SIZE"): ["dxDesc", "dBnScaleBiasDesc"],
    (test_mcdnn_normalization, "TRAINING"): ["yDesc", "normMeanVarDesc"],
    (test_mcdnn_normalization, "INFERENCE"): ["yDesc"],
    (test_mcdnn_normalization, "BACKWARD"): ["dxDesc", "dNormScaleBiasDesc"],
    (test_mcdnn_normalization, "TRAINING_SIZE"): ["yDesc", "normMeanVarDesc"],
    (test_mcdnn_normalization, "BACKWARD_SIZE"): ["dxDesc", "dNormScaleBiasDesc"],
    (test_mcdnn_dropout, "FORWARD"): ["ydesc"],
    (test_mcdnn_dropout, "BACKWARD"): ["dxdesc"],
    (test_mcdnn_spatial_transformer, "SAMPLER"): ["yDesc"],
    (test_mcdnn_spatial_transformer, "SAMPLER_BACK"): ["dxDesc"],
    (test_mcdnn_tensor_ops, "SET"): ["yDesc"],
    (test_mcdnn_tensor_ops, "SCALE"): ["yDesc"],
    (test_mcdnn_tensor_ops, "TRANSFORM"): ["yDesc"],
    (test_mcdnn_tensor_ops, "ADD"): ["cDesc"],
    (test_mcdnn_tensor_ops, "OP"): ["cDesc"],
    (test_mcdnn_tensor_ops, "REDUCE"): ["cDesc"],
    (test_mcdnn_tensor_transform, "TENSOR"): ["destDesc"],
}
PLAIN = {"bnOps": 0, "normOps": 0}  # fused forms take packed tensors only


def strided(names, step_back):
    """The named descriptors with an outermost stride that is so much shorter."""
    def changes(arguments):
        plain = {name: value for name, value in PLAIN.items() if name in arguments}
        made = {}
        for name in names:
            old = arguments[name] if isinstance(arguments[name], Tensor) else arguments["destData"]
            axis = next(axis for axis, size in enumerate(old.sizes) if size > 1)
            strides = list(old.strides)
            strides[axis] -= step_back
            made[name] = descriptor(old.sizes, old.data_type, strides)
        return {**plain, **made}
    return changes


RULES = [
    getattr(module, subject).case(f"{names.split()[0]}/overlap", strided(names.split(), 1), strided(names.split(), 0))
    for (module, subject), all_names in TENSORS.items() for names in all_names
]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
