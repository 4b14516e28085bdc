"""Scaling factors are read on the host: in device memory none is accepted (a choice, mcdnn 6.0 #1)."""

import pytest

from tests.conformance.harness import check_rule
from tests.conformance.maca import (test_mcdnn_activation, test_mcdnn_batch_norm, test_mcdnn_convolution, test_mcdnn_lrn,
                                    test_mcdnn_normalization, test_mcdnn_pooling, test_mcdnn_softmax,
                                    test_mcdnn_spatial_transformer, test_mcdnn_tensor_ops,
                                    test_mcdnn_tensor_transform)
from tests.conformance.maca.mcdnn_cases import Subject
from tests.maca.mcdnn_support import parameters
from tests.maca.runtime_support import device_memory
from understudy.kit.prototypes import SCALING_FACTORS

MODULES = [test_mcdnn_activation, test_mcdnn_batch_norm, test_mcdnn_convolution, test_mcdnn_lrn, test_mcdnn_normalization,
           test_mcdnn_pooling, test_mcdnn_softmax, test_mcdnn_spatial_transformer, test_mcdnn_tensor_ops,
           test_mcdnn_tensor_transform]
SUBJECTS = [value for module in MODULES for value in vars(module).values() if isinstance(value, Subject)]
SUBJECTS += [role.subject for role in (*test_mcdnn_convolution.CALLS, test_mcdnn_convolution.FUSED)]
RULES = [subject.case(f"{name}/device", lambda _, name=name: {name: device_memory()})
         for subject in SUBJECTS for name in parameters(subject.function) if name in SCALING_FACTORS]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)
