"""CTC loss against the sum over all paths, and its gradient against differences of that (mcdnn-cnn 16)."""

import itertools

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.maca.mcdnn_support import Buffer, Tensor, call, differences, handle, ok, run, synchronize

STEPS, CLASSES = 5, 3
SEQUENCES = [((1, 2), 5), ((1, 1), 4), ((), 3), ((2,), 1), ((2, 1, 2), 5), ((1, 1, 1), 4)]  # the last one has no path


def described(softmax=True, propagates=False, longest=None):
    made = ffi.new("mcdnnCTCLossDescriptor_t *")
    ok(lib.mcdnnCreateCTCLossDescriptor(made))
    setter = (made[0], 0, int(softmax), int(propagates))
    ok(lib.mcdnnSetCTCLossDescriptorEx(*setter) if longest is None else
       lib.mcdnnSetCTCLossDescriptor_v8(*setter, longest))
    return ffi.gc(made[0], lib.mcdnnDestroyCTCLossDescriptor)


def softmax(x):
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def cost(activations, labels):
    """Of one sequence (steps, classes): all paths whose repetitions and then blanks are taken out are the labels."""
    probabilities = softmax(activations)
    total = 0.0
    for path in itertools.product(range(CLASSES), repeat=len(activations)):
        kept = [label for i, label in enumerate(path) if label != 0 and (i == 0 or path[i - 1] != label)]
        if kept == list(labels):
            total += np.prod([probabilities[t, label] for t, label in enumerate(path)])
    return -np.log(total) if total > 0 else np.inf


class Call:
    def __init__(self, version=8, normalizes=True, propagates=False, differentiates=True, longest=None, algorithm=0,
                 sequences=SEQUENCES):
        self.version, self.sequences = version, sequences
        self.activations = np.random.default_rng(3).uniform(-2, 2, (STEPS, len(sequences), CLASSES)).astype(np.float32)
        given = self.activations if normalizes else softmax(self.activations.astype(float))
        self.probs = Tensor(given)
        self.costs = Buffer(np.full(len(sequences), 7, np.float32))
        self.gradients = Tensor(np.full(given.shape, 7.0))
        self.descriptor = described(normalizes, propagates, longest)
        self.differentiates, self.algorithm = differentiates, algorithm
        arrays = [[label for labels, _ in sequences for label in labels], [len(labels) for labels, _ in sequences],
                  [steps for _, steps in sequences]]
        self.arrays = [Buffer(np.array(array, np.int32)) if version == 8 else ffi.new("int[]", array) for array in arrays]
        size = ffi.new("size_t *")
        run("mcdnnGetCTCLossWorkspaceSize_v8", handle=handle(), algo=algorithm, ctcLossDesc=self.descriptor,
            probsDesc=self.probs, gradientsDesc=self.gradients, sizeInBytes=size)
        self.workspace = Buffer(np.full(size[0], 0xA5, np.uint8))

    def arguments(self):
        prefix = "" if self.version == 8 else "host"
        names = [prefix + name if not prefix else prefix + name[0].upper() + name[1:]
                 for name in ("labels", "labelLengths", "inputLengths")]
        gradients = self.gradients if self.differentiates else None
        return dict(handle=handle(), algo=self.algorithm, ctcLossDesc=self.descriptor, probsDesc=self.probs,
                    probs=self.probs, costs=self.costs, gradientsDesc=self.gradients, gradients=gradients,
                    workSpaceSizeInBytes=self.workspace.content.nbytes, workspace=self.workspace,
                    **dict(zip(names, self.arrays)))

    @property
    def function(self):
        return "mcdnnCTCLoss_v8" if self.version == 8 else "mcdnnCTCLoss"

    def run(self):
        run(self.function, **self.arguments())


@pytest.mark.parametrize("version", [7, 8])
def test_costs_and_gradients(version):
    for normalizes, algorithm in itertools.product((False, True), (0, 1)):
        case = Call(version, normalizes, algorithm=algorithm)
        case.run()
        costs, gradients = case.costs.read(), case.gradients.values()
        for i, (labels, steps) in enumerate(SEQUENCES):
            activations = case.activations[:steps, i].astype(float)
            wanted = cost(activations, labels)
            np.testing.assert_allclose(costs[i], wanted, rtol=1e-6)
            slope = np.zeros((STEPS, CLASSES))
            if np.isfinite(wanted):
                slope[:steps] = differences(lambda x: np.array(cost(x, labels)), activations, 1.0)
            np.testing.assert_allclose(gradients[:, i], slope, atol=2e-6)


def test_gradients_of_sequences_without_a_path():
    for propagates in (False, True):
        case = Call(propagates=propagates)
        case.run()
        gradients = case.gradients.values()[:4, -1]
        assert (np.isnan(gradients).all() if propagates else (gradients == 0).all())
        assert np.isfinite(case.gradients.values()[:, :-1]).all()


@pytest.mark.parametrize("normalizes", [False, True])
def test_a_class_that_cannot_be_has_no_share(normalizes):
    """As a class of hardly any probability, which a softmax of float32 makes 0."""
    gradients = []
    for least in (0, 1e-30):
        case = Call(normalizes=normalizes, sequences=[((1, 2), 5)])
        probabilities = softmax(case.activations.astype(float)).astype(np.float32)
        probabilities[2, 0, [1, 2]] = probabilities[4, 0, 0] = least
        with np.errstate(divide="ignore"):
            case.probs.buffer.write(np.log(probabilities) if normalizes else probabilities)
        case.run()
        assert np.isfinite(case.costs.read()).all()
        gradients.append(case.gradients.values())
    np.testing.assert_allclose(*gradients, atol=1e-6)


def test_costs_only():
    case, both = Call(differentiates=False), Call()
    case.run()
    both.run()
    np.testing.assert_array_equal(case.costs.read(), both.costs.read())
    assert (case.gradients.values() == 7).all()
    arguments = case.arguments()
    arguments["gradientsDesc"] = None
    run(case.function, **arguments)


def test_host_arrays_may_change_after_the_call():
    case, twin = Call(7), Call(7)
    ok(call(case.function, **case.arguments()))
    for array in case.arrays:
        ffi.buffer(array)[:] = b"\xff" * len(ffi.buffer(array))
    synchronize()
    twin.run()
    np.testing.assert_array_equal(case.costs.read(), twin.costs.read())


def test_lengths_in_device_memory_that_do_not_fit_are_a_fault():
    from tests.conformance.harness import run_python

    source = """
import numpy as np
from understudy.maca import lib
from tests.maca.mcdnn_support import call, ok
from tests.maca.test_mcdnn_ctc_loss import Call
case = Call(longest={longest})
case.arrays[{array}].write(np.array({values}, np.int32))
ok(call(case.function, **case.arguments()))
assert lib.mcDeviceSynchronize() != 0
"""
    run_python(source.format(longest=3, array=2, values=[5, 4, 3, 1, 6, 4]), {})
    run_python(source.format(longest=2, array=1, values=[2, 2, 0, 1, 3, 3]), {})


def test_descriptors_report_what_they_were_given():
    kinds = ("mcdnnDataType_t *", "mcdnnLossNormalizationMode_t *", "mcdnnNanPropagation_t *", "int *")
    for longest, told in ((None, 255), (9, 9)):
        made, places = described(True, True, longest), [ffi.new(kind) for kind in kinds]
        ok(lib.mcdnnGetCTCLossDescriptor_v8(made, *places))
        assert [place[0] for place in places] == [0, 1, 1, told]
        ok(lib.mcdnnGetCTCLossDescriptorEx(made, *places[:3]))
        ok(lib.mcdnnGetCTCLossDescriptor(made, places[0]))
    ok(lib.mcdnnSetCTCLossDescriptor(made, 0))
    ok(lib.mcdnnGetCTCLossDescriptor_v8(made, *places))
    assert [place[0] for place in places] == [0, 0, 0, 255]
