"""LSTM and GRU against their formulas in NumPy; gradients against differences of a scalar along random directions."""

import itertools

import numpy as np
import pytest

from tests import in_step
from tests.ascend.calling import LAYOUTS, call, empty, rounded, tensor
from tests.conformance import harness

STEPS, BATCH, INPUT, HIDDEN = 4, 3, 5, 6


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(x, h, c, parts):
    sums = x @ parts[0].T + h @ parts[1].T + sum(parts[2:])
    i, f, g, o = np.split(sums, 4, axis=-1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    c = f * c + i * g
    return o * np.tanh(c), c, [i, g, f, o, o * np.tanh(c), c, np.tanh(c)]


def gru_step(x, h, c, parts):
    of_x, of_h = x @ parts[0].T, h @ parts[1].T
    if len(parts) > 2:
        of_x, of_h = of_x + parts[2], of_h + parts[3]
    (r, z, n), (hr, hz, hn) = np.split(of_x, 3, axis=-1), np.split(of_h, 3, axis=-1)
    r, z = sigmoid(r + hr), sigmoid(z + hz)
    n = np.tanh(n + r * hn)
    h = (1 - z) * n + z * h
    return h, c, [r, z, n, hn, h]


def network(step, x, h0, c0, params, layers, directions):
    """output, last h, last c, and the lists: of x (steps, batch, input)."""
    each = len(params) // layers // directions
    last_h, last_c, lists = [], [], []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            index = layer * directions + direction
            h, c, kept = h0[index], c0[index], [None] * len(x)
            for t in range(len(x))[:: -1 if direction else 1]:
                h, c, kept[t] = step(x[t], h, c, params[each * index : each * (index + 1)])
            last_h.append(h)
            last_c.append(c)
            lists.append([np.stack(values) for values in zip(*kept)])
            outputs.append(lists[-1][-1] if step is gru_step else lists[-1][4])
        x = np.concatenate(outputs, axis=-1)
    return x, np.stack(last_h), np.stack(last_c), [list(values) for values in zip(*lists)]


class Case:
    def __init__(self, name, layers, directions, has_bias, batch_first, kind="F32", layout="row-major"):
        self.name, self.layers, self.directions, self.has_bias = name, layers, directions, has_bias
        self.batch_first, self.kind, self.layout = batch_first, kind, layout
        self.step, self.gates = (lstm_step, 4) if name == "LSTM" else (gru_step, 3)
        rng = self.rng = np.random.default_rng(layers * 10 + directions)
        self.x = self.drawn((STEPS, BATCH, INPUT))
        self.states = [self.drawn((layers * directions, BATCH, HIDDEN)) for _ in range(2)]
        self.params = []
        for index in range(layers * directions):
            width = INPUT if index < directions else HIDDEN * directions
            rows = self.gates * HIDDEN
            shapes = [(rows, width), (rows, HIDDEN)] + [(rows,)] * (2 * has_bias)
            self.params += [rounded(rng.uniform(-0.5, 0.5, shape), kind) for shape in shapes]
        self.list_names = (["iOut", "jOut", "fOut", "oOut", "hOut", "cOut", "tanhCOut"] if name == "LSTM" else
                           ["rOut", "zOut", "nOut", "hnOut", "hOut"])  # fmt: skip

    def drawn(self, shape):
        return rounded(self.rng.uniform(-1, 1, shape), self.kind)

    def order(self, values):
        return values.swapaxes(0, 1) if self.batch_first else values

    def expected(self, x=None, states=None, params=None):
        return network(self.step, self.x if x is None else x, *(states or self.states), params or self.params, self.layers,
                       self.directions)  # fmt: skip

    def tensor(self, values):
        return tensor(values, self.kind, self.layout)

    def blank(self, shape):
        return empty(shape, self.kind, self.layout)

    def common(self):
        flag = "bidirectional" if self.name == "LSTM" else "bidirection"
        return {"hasBias": self.has_bias, "numLayers": self.layers, flag: self.directions == 2,
                "batchFirst": self.batch_first,
                "input": self.tensor(self.order(self.x)), "params": [self.tensor(value) for value in self.params]}  # fmt: skip

    def state_arguments(self, given=True):
        states = [self.tensor(value) for value in self.states]
        return {"hx": None if not given else states if self.name == "LSTM" else states[0]}

    def forward(self, train=True, given=True):
        count, state = self.layers * self.directions, (self.layers * self.directions, BATCH, HIDDEN)
        outputs = {"output": self.blank(self.order(np.empty((STEPS, BATCH, HIDDEN * self.directions))).shape),
                   "hy": self.blank(state)}  # fmt: skip
        if self.name == "LSTM":
            outputs["cy"] = self.blank(state)
        for name in self.list_names:
            outputs[name] = [self.blank((STEPS, BATCH, HIDDEN)) for _ in range(count)] if train else None
        return call(self.name, **self.common(), **self.state_arguments(given), batchSizes=None, dropout=0.0,
                    train=train, **outputs)  # fmt: skip

    def backward(self, slopes, lists):
        """A slope that is None is passed as NULL."""
        given = lambda values: None if values is None else self.tensor(values)
        names = ["i", "g", "f", "o", "h", "c", "tanhc"] if self.name == "LSTM" else ["r", "z", "n", "hn", "h"]
        lstm = self.name == "LSTM"
        more = {"dc": given(slopes[2]), "batchSizesOptional": None, "dropout": 0.0, "train": True,
                "outputMask": [True] * 4,
                "dcPrevOut": self.blank(self.states[1].shape)} if lstm else {"batchSizes": None}  # fmt: skip
        return call("LstmBackward" if lstm else "GRUBackward", **self.common(), **self.state_arguments(),
                    **{name: [self.tensor(value) for value in values] for name, values in zip(names, lists)},
                    dy=given(None if slopes[0] is None else self.order(slopes[0])), dh=given(slopes[1]), **more,
                    dxOut=self.blank(self.order(self.x).shape), dhPrevOut=self.blank(self.states[0].shape),
                    dparamsOut=[self.blank(value.shape) for value in self.params])  # fmt: skip


CASES = [("LSTM", 1, 1, True, False), ("LSTM", 2, 2, True, True), ("LSTM", 3, 1, False, False),
         ("GRU", 1, 1, True, False), ("GRU", 2, 2, True, True), ("GRU", 3, 2, False, False)]  # fmt: skip


def flattened(results):
    for item in results:
        yield from item if isinstance(item, list) else [item]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_forward(case):
    for kind, layout, (train, given) in itertools.product(["F32", "F16"], ["row-major", "reversed"],
                                                          [(True, True), (False, False)]):  # fmt: skip
        one = Case(*case, kind=kind, layout=layout)
        states = one.states if given else [0 * value for value in one.states]
        output, h, c, lists = one.expected(states=states)
        expected = [one.order(output), h] + ([c] if one.name == "LSTM" else []) + (lists if train else [])
        actual = one.forward(train, given)
        for found, wanted in in_step(flattened(actual), flattened(expected)):
            np.testing.assert_allclose(found, wanted, atol=2e-3 if kind == "F16" else 2e-6)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("layout", ["row-major", "gaps"])
def test_backward(case, layout):
    """The sum of all results, weighted by what comes in, changes along a direction as the gradients say."""
    one = Case(*case, layout=layout)
    output, h, c, lists = one.expected()
    slopes = [one.drawn(output.shape), one.drawn(h.shape), one.drawn(c.shape)]
    if one.name == "GRU":
        slopes[2] = 0 * slopes[2]
    results = one.backward(slopes, lists)
    by_name = dict(zip(["x", "h", "c", "params"] if one.name == "LSTM" else ["x", "h", "params"], results))

    def total(x, h, c, params):
        return sum((value * slope).sum() for value, slope in zip(one.expected(x, [h, c], params)[:3], slopes))

    given = {"x": [one.x], "h": [one.states[0]], "c": [one.states[1]], "params": one.params}
    found = {"x": [one.order(by_name["x"])], "h": [by_name["h"]], "c": [by_name.get("c")], "params": by_name["params"]}
    step = 1e-5
    for key in by_name:
        for index, value in enumerate(given[key]):
            for direction in one.rng.normal(size=(2, *value.shape)):
                sides = []
                for side in (step, -step):
                    moved = {name: list(values) for name, values in given.items()}
                    moved[key][index] = value + side * direction
                    sides.append(total(moved["x"][0], moved["h"][0], moved["c"][0], moved["params"]))
                slope = (sides[0] - sides[1]) / (2 * step)
                scale = np.abs(found[key][index] * direction).sum()
                assert abs((found[key][index] * direction).sum() - slope) < 3e-6 * scale + 1e-5, (key, index)


def test_a_slope_that_is_not_given_is_zero():
    one = Case("LSTM", 2, 2, True, True)
    *results, lists = one.expected()
    slopes = [one.drawn(value.shape) for value in results]
    for kept in range(3):
        zeros, nothing = ([slope if i == kept else other(slope) for i, slope in enumerate(slopes)] for other in (np.zeros_like, lambda _: None))
        for found, wanted in in_step(flattened(one.backward(nothing, lists)), flattened(one.backward(zeros, lists))):
            np.testing.assert_array_equal(found, wanted)


def test_backward_in_half():
    one, wide = Case(*CASES[0], kind="F16"), Case(*CASES[0])
    output, h, c, lists = wide.expected()
    slopes = [wide.drawn(value.shape) for value in (output, h, c)]
    for found, wanted in in_step(flattened(one.backward(slopes, lists)), flattened(wide.backward(slopes, lists))):
        np.testing.assert_allclose(found, wanted, atol=1e-2)


def test_like_pytorch():
    torch = pytest.importorskip("torch")
    for case, module in [(Case("LSTM", 2, 2, True, False), torch.nn.LSTM), (Case("GRU", 2, 2, True, False), torch.nn.GRU)]:
        reference = module(INPUT, HIDDEN, num_layers=2, bidirectional=True)
        for parameter, value in in_step(reference.parameters(), case.params):
            parameter.data = torch.tensor(value, dtype=torch.float32)
        states = [torch.tensor(value, dtype=torch.float32) for value in case.states]
        output, _ = reference(torch.tensor(case.x, dtype=torch.float32), tuple(states) if case.name == "LSTM" else states[0])
        np.testing.assert_allclose(case.forward()[0], output.detach().numpy(), atol=2e-6)


def test_sequences_of_nothing():
    one = Case("LSTM", 1, 1, True, False)
    one.x = one.x[:0]
    arguments = one.common()
    output, h, c = call("LSTM", **arguments, **one.state_arguments(), batchSizes=None, dropout=0.0, train=False,
                        output=one.blank((0, BATCH, HIDDEN)), hy=one.blank((1, BATCH, HIDDEN)),
                        cy=one.blank((1, BATCH, HIDDEN)), **{name: None for name in one.list_names})  # fmt: skip
    assert output.size == 0
    np.testing.assert_array_equal([h, c], one.states)
    one = Case("GRU", 1, 1, True, False)
    one.x = one.x[:0]
    output, h = call("GRU", **one.common(), **one.state_arguments(), batchSizes=None, dropout=0.0, train=False,
                     output=one.blank((0, BATCH, HIDDEN)), hy=one.blank((1, BATCH, HIDDEN)),
                     **{name: None for name in one.list_names})  # fmt: skip
    assert output.size == 0
    np.testing.assert_array_equal(h, one.states[0])


@pytest.mark.parametrize("layers, directions, has_bias, layout",
                         [(1, 1, True, "row-major"), (2, 2, True, "gaps"), (3, 1, False, "reversed")])  # fmt: skip
def test_sequences_of_several_lengths(layers, directions, has_bias, layout):
    """Packed sequences of PyTorch in float64, and their gradients; what lies behind the ends is not read."""
    torch = pytest.importorskip("torch")
    lengths, sizes = [4, 3, 1], [3, 2, 2, 1]
    case = Case("LSTM", layers, directions, has_bias, True, layout=layout)  # batchFirst has no effect
    reference = torch.nn.LSTM(INPUT, HIDDEN, num_layers=layers, bidirectional=directions == 2, bias=has_bias,
                              dtype=torch.float64)  # fmt: skip
    for parameter, value in in_step(reference.parameters(), case.params):
        parameter.data = torch.tensor(value)
    x = torch.tensor(case.x, requires_grad=True)
    states = [torch.tensor(value, requires_grad=True) for value in case.states]
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
    output, (h, c) = reference(packed, tuple(states))
    output, _ = torch.nn.utils.rnn.pad_packed_sequence(output)
    behind = np.arange(STEPS)[:, None] >= lengths
    slopes = [case.drawn(value.shape) for value in (output, h, c)]
    sum((value * torch.tensor(slope)).sum() for value, slope in zip((output, h, c), slopes)).backward()
    wanted = [x.grad.numpy(), *(state.grad.numpy() for state in states),
              *(parameter.grad.numpy() for parameter in reference.parameters())]  # fmt: skip

    flat = lambda values: np.where(behind[..., None], np.nan, values).reshape(STEPS * BATCH, -1)
    common = case.common() | {"input": case.tensor(flat(case.x))} | case.state_arguments()
    lists = {name: [case.blank((STEPS, BATCH, HIDDEN)) for _ in range(layers * directions)] for name in case.list_names}
    found = call("LSTM", **common, batchSizes=tensor(sizes, "I64", layout), dropout=0.0, train=True,
                 output=case.blank(output.shape), hy=case.blank(h.shape), cy=case.blank(c.shape), **lists)  # fmt: skip
    for own, expected in zip(found[:3], (output, h, c)):
        np.testing.assert_allclose(own, expected.detach().numpy(), atol=2e-6)
    for gates in (found[3], found[9]):
        assert all((values[behind] == 0).all() for values in gates)
    common["params"] = [case.tensor(value) for value in case.params]
    common |= {"input": case.tensor(flat(case.x))} | case.state_arguments()
    names = ["i", "g", "f", "o", "h", "c", "tanhc"]
    dy = flat(slopes[0])  # or of the output's shape
    gradients = call("LstmBackward", **common,
                     **{name: [case.tensor(v) for v in values] for name, values in zip(names, found[3:])},
                     dy=case.tensor(dy if layers == 1 else dy.reshape(slopes[0].shape)), dh=case.tensor(slopes[1]),
                     dc=case.tensor(slopes[2]), train=True,
                     dropout=0.0, batchSizesOptional=tensor(sizes, "I64"), outputMask=None,
                     dxOut=case.blank((STEPS * BATCH, INPUT)), dhPrevOut=case.blank(h.shape),
                     dcPrevOut=case.blank(c.shape), dparamsOut=[case.blank(v.shape) for v in case.params])  # fmt: skip
    own = [gradients[0].reshape(case.x.shape), *flattened(gradients[1:])]
    for index, (one, expected) in enumerate(in_step(own, wanted)):
        np.testing.assert_allclose(one, expected, atol=1e-5, err_msg=str(index))


TOO_MANY = """
from tests.ascend.test_aclnn_recurrent import Case, call, tensor
case = Case("LSTM", 1, 1, True, False)
arguments = case.common() | {"input": case.tensor(case.x.reshape(12, 5))} | case.state_arguments()
outputs = {"output": case.blank((4, 3, 6)), "hy": case.blank((1, 3, 6)), "cy": case.blank((1, 3, 6))}
try:
    call("LSTM", **arguments, **outputs, batchSizes=tensor([3, 4, 1, 1], "I64"), dropout=0.0, train=False, **dict.fromkeys(case.list_names))
except AssertionError as refused:
    print(refused)
"""


def test_more_sequences_than_there_are():
    out = harness.run_python(TOO_MANY, {})
    assert "507015" in out and "step 1 has 4 sequences, the batch has 3" in out, out


def cell(sums, c):
    i, f, g, o = np.split(sums, 4, axis=1)
    new_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(new_c), new_c, np.concatenate([sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)], 1)


@pytest.mark.parametrize("rows, width", [(3, 5), (1, 1), (0, 4), (7, 300)])
def test_lstm_cell(rows, width):
    """Gradients against differences: all elements of a gate at once, as each has a share in its own results only."""
    random = np.random.default_rng([rows, width])
    for number, (kind, layout) in enumerate(itertools.product(["F32", "F16"], LAYOUTS)):
        biased, unit = number % 2 == 0, {"F32": 2.0**-22, "F16": 2.0**-10}[kind]
        draw = lambda *shape: rounded(random.normal(0, 1, shape), kind)
        of_input, of_state, c, b1, b2 = draw(rows, 4 * width), draw(rows, 4 * width), draw(rows, width), draw(4 * width), draw(4 * width)
        sums = of_input + of_state + (b1 + b2 if biased else 0)
        expected = cell(sums, c)
        put, blank = (lambda value: tensor(value, kind, layout)), (lambda *shape: empty(shape, kind, layout))
        results = call("ThnnFusedLstmCell", inputGates=put(of_input), hiddenGates=put(of_state), cx=put(c),
                       inputBiasOptional=put(b1) if biased else None, hiddenBiasOptional=put(b2) if biased else None,
                       hyOut=blank(rows, width), cyOut=blank(rows, width), storageOut=blank(rows, 4 * width))  # fmt: skip
        for own, of in zip(results, expected):
            np.testing.assert_allclose(own, of, rtol=unit, atol=unit)
        dh, dc = draw(rows, width) * (number % 3 != 2), draw(rows, width) * (number % 3 != 1)
        step = 1e-5

        def slope(to_sums, to_c):
            both = [cell(sums + sign * to_sums, c + sign * to_c) for sign in (step, -step)]
            return (dh * (both[0][0] - both[1][0]) + dc * (both[0][1] - both[1][1])) / (2 * step)

        gates = [slope(np.repeat(np.arange(4) == gate, width), 0) for gate in range(4)]
        of_sums, of_c = np.concatenate(gates, 1), slope(0, 1)
        own = call("ThnnFusedLstmCellBackward", gradHyOptional=None if number % 3 == 2 else put(dh),
                   gradCOptional=None if number % 3 == 1 else put(dc), cx=put(c), cy=put(rounded(expected[1], kind)),
                   storage=put(rounded(expected[2], kind)), hasBias=biased, gradGatesOut=blank(rows, 4 * width),
                   gradCxOut=blank(rows, width), gradBiasOut=blank(4 * width) if biased else None)  # fmt: skip
        np.testing.assert_allclose(own[0], of_sums, rtol=4 * unit, atol=8 * unit)
        np.testing.assert_allclose(own[1], of_c, rtol=4 * unit, atol=8 * unit)
        if biased:
            np.testing.assert_allclose(own[2], own[0].sum(0), rtol=unit, atol=unit)
