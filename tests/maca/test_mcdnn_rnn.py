"""Recurrent networks against their formulas, one sequence after the other, in NumPy; gradients against differences of a
scalar along random directions (mcdnn-cnn 15)."""

import itertools

import numpy as np
import pytest

from understudy.maca import ffi, lib

from tests.conformance.harness import run_python
from tests.maca.mcdnn_support import (DOUBLE, FLOAT, HALF, ROUNDING, Buffer, Tensor, descriptor, from_storage, handle,
                                      ok, random, run, to_storage)
from tests.maca.test_mcdnn_dropout import Dropout

RELU, TANH, LSTM, GRU = lib.MCDNN_RNN_RELU, lib.MCDNN_RNN_TANH, lib.MCDNN_LSTM, lib.MCDNN_GRU
NO_BIAS, INPUT_BIAS, BOTH, RECURRENT_BIAS = range(4)
SEQ_MAJOR, PACKED, BATCH_MAJOR = range(3)
GATES = {RELU: 1, TANH: 1, LSTM: 4, GRU: 3}


def made(kind, name):
    place = ffi.new(f"{kind} *")
    ok(getattr(lib, f"mcdnnCreate{name}Descriptor")(place))
    return ffi.gc(place[0], getattr(lib, f"mcdnnDestroy{name}Descriptor"))


class Network:
    """A descriptor with its weight space."""

    def __init__(self, cell=LSTM, bias=BOTH, directions=1, layers=1, inputs=3, hidden=4, projection=None, skip=False,
                 data_type=DOUBLE, dropout=None, clip=None, padded=True, algorithm=0):
        self.cell, self.bias, self.directions, self.layers = cell, bias, directions, layers
        self.inputs, self.hidden, self.projection = inputs, hidden, projection or hidden
        self.skip, self.data_type, self.dropout, self.clip = skip, data_type, dropout, clip
        self.descriptor = made("mcdnnRNNDescriptor_t", "RNN")
        ok(lib.mcdnnSetRNNDescriptor_v8(self.descriptor, algorithm, cell, bias, directions - 1, int(skip), data_type,
                                        data_type, 0, inputs, hidden, self.projection, layers,
                                        dropout.descriptor if dropout else ffi.NULL, int(padded)))
        if clip:
            ok(lib.mcdnnRNNSetClip_v8(self.descriptor, 1, 1, *clip))
        size = ffi.new("size_t *")
        ok(lib.mcdnnGetRNNWeightSpaceSize(handle(), self.descriptor, size))
        self.weight_bytes = size[0]
        element = from_storage(to_storage(np.zeros(1), data_type), data_type)
        count = self.weight_bytes // to_storage(element, data_type).itemsize
        self.weights = Tensor(random((count,), data_type, 11, 0.7), data_type)

    @property
    def width(self):
        return self.directions * self.projection

    def part(self, layer, kind):
        """Where a matrix and a bias of a pseudo layer are: (first element, shape), or None."""
        matrix, bias = (made("mcdnnTensorDescriptor_t", "Tensor") for _ in range(2))
        addresses = [ffi.new("void **") for _ in range(2)]
        ok(lib.mcdnnGetRNNWeightParams(handle(), self.descriptor, layer, self.weight_bytes, self.weights.address, kind,
                                       matrix, addresses[0], bias, addresses[1]))
        found = []
        for described, address in zip((matrix, bias), addresses):
            if address[0] == ffi.NULL:
                found.append(None)
                continue
            data_type, rank = ffi.new("mcdnnDataType_t *"), ffi.new("int *")
            sizes, strides = ffi.new("int[3]"), ffi.new("int[3]")
            ok(lib.mcdnnGetTensorNdDescriptor(described, 3, data_type, rank, sizes, strides))
            assert rank[0] == 3 and sizes[0] == 1 and list(strides)[1:] == [sizes[2], 1] and data_type[0] == self.data_type
            offset = int(ffi.cast("char *", address[0]) - ffi.cast("char *", self.weights.address))
            itemsize = self.weight_bytes // self.weights.sizes[0]
            assert offset % itemsize == 0
            found.append((offset // itemsize, tuple(sizes)[1:]))
        return found

    def parameters(self, values):
        """By pseudo layer: matrices and biases of input and recurrence by gate, and the projection."""
        def take(place, otherwise):
            return otherwise if place is None else values[place[0]:][: np.prod(place[1])].reshape(place[1])

        found, gates = [], GATES[self.cell]
        for layer in range(self.layers * self.directions):
            parts = [self.part(layer, kind) for kind in range(2 * gates)]
            projection = self.part(layer, 8)[0] if self.cell == LSTM else None
            found.append(([take(matrix, None) for matrix, _ in parts],
                          [take(bias, np.zeros((self.hidden, 1)))[:, 0] for _, bias in parts],
                          take(projection, None)))
        return found


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(net, x, h, c, parameters):
    matrices, biases, projection = parameters
    gates = GATES[net.cell]
    of_x = [(x if m is None else m @ x) + b for m, b in zip(matrices[:gates], biases[:gates])]
    of_h = [m @ h + b for m, b in zip(matrices[gates:], biases[gates:])]
    if net.cell == GRU:
        r, z = sigmoid(of_x[0] + of_h[0]), sigmoid(of_x[1] + of_h[1])
        return (1 - z) * np.tanh(of_x[2] + r * of_h[2]) + z * h, c
    sums = [a + b for a, b in zip(of_x, of_h)]
    if net.cell != LSTM:
        return np.tanh(sums[0]) if net.cell == TANH else np.maximum(sums[0], 0), c
    c = sigmoid(sums[1]) * c + sigmoid(sums[0]) * np.tanh(sums[2])
    c = np.clip(c, *net.clip) if net.clip else c
    h = sigmoid(sums[3]) * np.tanh(c)
    return h if projection is None else projection @ h, c


def expected(net, x, lengths, hx, cx, weights, masks=()):
    """y (steps, batch, width), with NaN behind the ends, hy and cy; x is (steps, batch, inputs)."""
    parameters = net.parameters(weights)
    y = np.full((*x.shape[:2], net.width), np.nan)
    hy, cy = hx.copy(), cx.copy()
    for row, length in enumerate(lengths):
        values = x[:length, row]
        for layer in range(net.layers):
            if layer > 0 and len(masks) > 0:
                values = values * masks[layer - 1][:length, row]
            outputs = np.zeros((length, net.directions, net.projection))
            for direction in range(net.directions):
                index = layer * net.directions + direction
                h, c = hx[index, row], cx[index, row]
                for t in range(length)[:: -1 if direction else 1]:
                    h, c = step(net, values[t], h, c, parameters[index])
                    outputs[t, direction] = h
                hy[index, row], cy[index, row] = h, c
            values = outputs.reshape(length, net.width)
        y[:length, row] = values
    return y, hy, cy


class Sequences:
    """Sequences on the device; values are given and told as (steps, batch, vector)."""

    def __init__(self, values, lengths, layout, data_type, fill=None):
        self.values_given, self.lengths, self.layout, self.data_type = values, list(lengths), layout, data_type
        steps, batch, vector = values.shape
        self.inside = np.arange(steps)[:, None] < np.array(lengths)
        self.descriptor = made("mcdnnRNNDataDescriptor_t", "RNNData")
        padding = ffi.NULL if fill is None else ffi.from_buffer(to_storage(np.array([fill]), data_type))
        ok(lib.mcdnnSetRNNDataDescriptor(self.descriptor, data_type, layout, steps, batch, vector, self.lengths, padding))
        order = {SEQ_MAJOR: values, BATCH_MAJOR: values.swapaxes(0, 1), PACKED: values[self.inside]}
        self.data = Tensor(order[layout], data_type)

    @property
    def address(self):
        return self.data.address

    def values(self):
        """What a padded layout holds; a packed one with NaN behind the ends."""
        stored = self.data.values()
        if self.layout != PACKED:
            return stored if self.layout == SEQ_MAJOR else stored.swapaxes(0, 1)
        values = np.full(self.values_given.shape, np.nan)
        values[self.inside] = stored
        return values


class Run:
    """A network with sequences, states and room for every result."""

    def __init__(self, net, layout=SEQ_MAJOR, steps=4, lengths=(4, 3, 1), states=True, fill=0.5, mode=1):
        self.net, self.lengths, self.mode, self.fill = net, lengths, mode, fill
        kind, batch = net.data_type, len(lengths)
        passes = net.layers * net.directions
        self.x_values = random((steps, batch, net.inputs), kind, 1, 1)
        inside = np.arange(steps)[:, None] < np.array(lengths)
        self.x_values[~inside] = np.nan  # nothing there may be read
        self.x = Sequences(self.x_values, lengths, layout, kind)
        self.y = Sequences(np.full((steps, batch, net.width), 7.0), lengths, layout, kind, fill)
        h_shape, c_shape = (passes, batch, net.projection), (passes, batch, net.hidden)
        self.hx_values = random(h_shape, kind, 2, 1) if states else np.zeros(h_shape)
        self.cx_values = random(c_shape, kind, 3, 1) if states else np.zeros(c_shape)
        self.hx = Tensor(self.hx_values, kind) if states else None
        self.cx = Tensor(self.cx_values, kind) if states else None
        self.hy, self.cy = Tensor(np.zeros(h_shape), kind), Tensor(np.zeros(c_shape), kind)
        self.h, self.c = descriptor(h_shape, kind), descriptor(c_shape, kind)
        sizes = [ffi.new("size_t *") for _ in range(2)]
        ok(lib.mcdnnGetRNNTempSpaceSizes(handle(), net.descriptor, mode, self.x.descriptor, *sizes))
        self.work, self.reserve = (Buffer(np.full(size[0], 0xA5, np.uint8)) for size in sizes)

    def spaces(self, weights="weightSpace", tensor=None):
        return {"weightSpaceSize": self.net.weight_bytes, weights: tensor or self.net.weights,
                "workSpaceSize": self.work.content.nbytes, "workSpace": self.work,
                "reserveSpaceSize": self.reserve.content.nbytes, "reserveSpace": self.reserve}

    def states(self):
        return dict(hDesc=self.h, hx=self.hx, cDesc=self.c, cx=self.cx)

    def forward_arguments(self):
        return dict(handle=handle(), rnnDesc=self.net.descriptor, fwdMode=self.mode, devSeqLengths=None,
                    xDesc=self.x.descriptor, x=self.x.data, yDesc=self.y.descriptor, y=self.y.data,
                    **self.states(), hy=self.hy, cy=self.cy, **self.spaces())

    def forward(self):
        run("mcdnnRNNForward", **self.forward_arguments())

    def begin_backward(self):
        kind = self.net.data_type
        self.dy_values = random(self.y.values_given.shape, kind, 4, 1)
        self.dy_values[~self.x.inside] = np.nan
        self.dy = Sequences(self.dy_values, self.lengths, self.x.layout, kind)
        self.dhy, self.dcy = (Tensor(random(state.sizes, kind, 5 + i, 1), kind) for i, state in
                              enumerate((self.hy, self.cy)))
        self.dx = Sequences(np.full(self.x_values.shape, 7.0), self.lengths, self.x.layout, kind)
        self.dhx, self.dcx = (Tensor(np.zeros(state.sizes), kind) for state in (self.hy, self.cy))
        self.prior = random(self.net.weights.sizes, kind, 8, 1)
        self.dweights = Tensor(self.prior, kind)

    def data_arguments(self):
        return dict(handle=handle(), rnnDesc=self.net.descriptor, devSeqLengths=None, yDesc=self.y.descriptor,
                    y=self.y.data, dy=self.dy.data, xDesc=self.x.descriptor, dx=self.dx.data,
                    **self.states(), dhy=self.dhy, dhx=self.dhx, dcy=self.dcy, dcx=self.dcx, **self.spaces())

    def weight_arguments(self):
        return dict(handle=handle(), rnnDesc=self.net.descriptor, addGrad=0, devSeqLengths=None,
                    xDesc=self.x.descriptor, x=self.x.data, hDesc=self.h, hx=self.hx, yDesc=self.y.descriptor,
                    y=self.y.data, **self.spaces("dweightSpace", self.dweights))

    def backward(self):
        self.begin_backward()
        run("mcdnnRNNBackwardData_v8", **self.data_arguments())
        run("mcdnnRNNBackwardWeights_v8", **self.weight_arguments())

    def expected(self, x=None, hx=None, cx=None, weights=None, masks=()):
        return expected(self.net, *(given if given is not None else own for given, own in
                                    ((x, self.x_values), (None, self.lengths), (hx, self.hx_values),
                                     (cx, self.cx_values), (weights, self.net.weights.values()))), masks)

    def padded(self, y):
        """y as the layout shows it: padding where it is filled, the old values where it is not."""
        filling = np.nan if self.x.layout == PACKED else 7.0 if self.fill is None else self.fill
        return np.where(np.isnan(y), filling, y)


def close(actual, wanted, data_type):
    tolerance = {DOUBLE: 1e-13, FLOAT: 2e-6, HALF: 2 * ROUNDING[HALF]}[data_type]
    np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


def check_forward(run_, masks=()):
    run_.forward()
    y, hy, cy = run_.expected(masks=masks)
    close(run_.y.values(), run_.padded(y), run_.net.data_type)
    close(run_.hy.values(), hy, run_.net.data_type)
    if run_.net.cell == LSTM:
        close(run_.cy.values(), cy, run_.net.data_type)


def check_gradients(run_, masks=(), step=1e-5):
    """The derivative of sum(y dy) + sum(hy dhy) + sum(cy dcy) along random directions of each input by itself."""
    run_.backward()
    lstm = run_.net.cell == LSTM

    def scalar(**moved):
        y, hy, cy = run_.expected(masks=masks, **moved)
        inside = ~np.isnan(y)
        total = (y[inside] * run_.dy_values[inside]).sum() + (hy * run_.dhy.values()).sum()
        return total + (cy * run_.dcy.values()).sum() * lstm

    points = {"x": (np.nan_to_num(run_.x_values), run_.dx.values()), "hx": (run_.hx_values, run_.dhx.values()),
              "weights": (run_.net.weights.values(), run_.dweights.values() - run_.prior)}
    if lstm:
        points["cx"] = run_.cx_values, run_.dcx.values()
    for name, (point, gradient) in points.items():
        if name == "x":
            outside = ~run_.x.inside
            assert run_.x.layout == PACKED or (gradient[outside] == 0).all()
            gradient = np.where(outside[:, :, None], 0, gradient)
        direction = np.random.default_rng(9).uniform(-1, 1, point.shape)
        slope = (scalar(**{name: point + step * direction}) - scalar(**{name: point - step * direction})) / (2 * step)
        found = (gradient * direction).sum()
        assert abs(found - slope) < 1e-7 * max(1, abs(slope)), (name, found, slope)


CELLS = [RELU, TANH, LSTM, GRU]
LAYOUTS = [SEQ_MAJOR, PACKED, BATCH_MAJOR]


@pytest.mark.parametrize("cell", CELLS)
def test_cells_in_every_layout_and_direction(cell):
    """Two layers; sequences that end early, in an unsorted order where the layout allows it, and one that is empty."""
    for layout, directions in itertools.product(LAYOUTS, (1, 2)):
        lengths = (5, 3, 3, 0) if layout == PACKED else (3, 0, 5, 3)
        case = Run(Network(cell, directions=directions, layers=2), layout, 5, lengths)
        check_forward(case)
        check_gradients(case)


@pytest.mark.parametrize("cell", CELLS)
def test_biases_and_skipped_input(cell):
    for bias, skip in itertools.product(range(4), (False, True)):
        case = Run(Network(cell, bias, 2, 2, inputs=4 if skip else 3, skip=skip))
        check_forward(case)
        check_gradients(case)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_projection_and_clipping(layout):
    """Cells outside the range are held at its ends, and what would move them there has no slope."""
    for directions, clip in itertools.product((1, 2), (None, (-0.3, 0.2))):
        case = Run(Network(LSTM, directions=directions, layers=2, hidden=5, projection=2, clip=clip), layout)
        check_forward(case)
        check_gradients(case)
        assert clip is None or (case.cy.values() == 0.2).any()


@pytest.mark.parametrize("cell", CELLS)
def test_types(cell):
    for data_type in (FLOAT, HALF):
        case = Run(Network(cell, layers=2, directions=2, inputs=17, hidden=33, data_type=data_type), BATCH_MAJOR, 6,
                   (6, 2, 5, 4, 6))
        case.net.weights.buffer.write(to_storage(random(case.net.weights.sizes, data_type, 12, 0.2), data_type))
        check_forward(case)
        twin = Run(Network(cell, layers=2, directions=2, inputs=17, hidden=33), BATCH_MAJOR, 6, (6, 2, 5, 4, 6))
        for name in ("x", "y"):
            getattr(twin, name).data.buffer.write(getattr(case, name).data.values())
        for ours, theirs in ((twin.net.weights, case.net.weights), (twin.hx, case.hx), (twin.cx, case.cx)):
            ours.buffer.write(theirs.values())
        twin.forward()
        for one in (case, twin):
            one.begin_backward()
        for ours, theirs in ((twin.dhy, case.dhy), (twin.dcy, case.dcy), (twin.dweights, case.dweights)):
            ours.buffer.write(theirs.values())
        twin.dy.data.buffer.write(case.dy.data.values())
        for one in (case, twin):
            run("mcdnnRNNBackwardData_v8", **one.data_arguments())
            run("mcdnnRNNBackwardWeights_v8", **one.weight_arguments())
        for name in ("dx", "dhx", "dweights", *(["dcx"] if cell == LSTM else [])):
            wanted, unit = getattr(twin, name).values(), 2 * ROUNDING[data_type]
            np.testing.assert_allclose(getattr(case, name).values(), wanted, rtol=unit,
                                       atol=32 * unit * np.abs(wanted).max() if data_type == FLOAT else unit)


def test_every_sequence_with_every_step():
    for layout, cell in itertools.product(LAYOUTS, CELLS):
        case = Run(Network(cell, directions=2), layout, 3, (3, 3))
        check_forward(case)
        check_gradients(case)


def test_missing_states_are_zeros_and_missing_results_are_not_written():
    for cell in CELLS:
        case = Run(Network(cell), states=False)
        check_forward(case)
        check_gradients(case)
        arguments = case.forward_arguments()
        arguments.update(hDesc=None, hy=None, cDesc=None, cy=None)
        run("mcdnnRNNForward", **arguments)


def test_inference_gives_what_training_gives_without_a_reserve():
    for cell, layout in itertools.product(CELLS, LAYOUTS):
        net = Network(cell, layers=2, directions=2)
        infers, trains = Run(net, layout, mode=0), Run(net, layout)
        assert infers.reserve.content.nbytes == 0
        check_forward(infers)
        trains.forward()
        assert infers.y.data.bytes() == trains.y.data.bytes()
        arguments = infers.forward_arguments()
        arguments.update(reserveSpace=None, reserveSpaceSize=0)
        run("mcdnnRNNForward", **arguments)


def test_padding_without_a_fill_stays():
    check_forward(Run(Network(), BATCH_MAJOR, fill=None))


def test_nan_in_cells_is_clipped_or_passed_on():
    for option, propagates in ((lib.MCDNN_NOT_PROPAGATE_NAN, False), (lib.MCDNN_PROPAGATE_NAN, True)):
        net = Network()
        ok(lib.mcdnnRNNSetClip_v8(net.descriptor, 1, option, -0.25, 0.25))
        case = Run(net, steps=1, lengths=(1,))
        case.cx.buffer.write(np.full(case.cx.sizes, np.nan))
        case.forward()
        cy = case.cy.values()
        assert np.isnan(cy).all() if propagates else (cy == -0.25).all()


def test_dropout_between_layers():
    """Each layer but the last drops elements of its output by the next mask of the descriptor's generator."""
    for directions, p in itertools.product((1, 2), (0.3, 0.75)):
        net = Network(LSTM, layers=3, directions=directions, dropout=Dropout(p, 5))
        case = Run(net, steps=3, lengths=(3, 2, 1))
        twin, masks = Dropout(p, 5), []
        for _ in range(2):
            ones, out = (Tensor(np.ones(case.y.values_given.shape), DOUBLE) for _ in range(2))
            size = ffi.new("size_t *")
            ok(lib.mcdnnDropoutGetReserveSpaceSize(ones.descriptor, size))
            run("mcdnnDropoutForward", handle=handle(), dropoutDesc=twin.descriptor, xdesc=ones, x=ones, ydesc=out,
                y=out, reserveSpace=Buffer(np.zeros(size[0], np.uint8)), reserveSpaceSizeInBytes=size[0])
            masks.append(out.values())
        assert all((mask == 0).any() for mask in masks)
        check_forward(case, masks)
        check_gradients(case, masks)
        infers = Run(net, steps=3, lengths=(3, 2, 1), mode=0)
        check_forward(infers)


def test_the_data_gradients_may_be_repeated():
    case = Run(Network(GRU, layers=2, directions=2))
    case.forward()
    case.backward()
    first = [case.dx.data.bytes(), case.dhx.bytes()]
    case.backward()
    assert [case.dx.data.bytes(), case.dhx.bytes()] == first


def test_results_do_not_depend_on_threads():
    source = "from tests.maca.test_mcdnn_rnn import digest; print(digest())"
    assert len({run_python(source, {"UNDERSTUDY_THREADS": threads}) for threads in ("1", "5")}) == 1


def digest():
    from tests.maca.mcdnn_support import digest_of

    results = []
    for cell in CELLS:
        case = Run(Network(cell, layers=2, directions=2, inputs=60, hidden=70, data_type=FLOAT), steps=9,
                   lengths=tuple(range(1, 10)) * 4)
        case.forward()
        case.backward()
        results += [case.y.data, case.hy, case.dx.data, case.dhx, case.dweights]
    return digest_of(results)


def test_descriptors_report_what_they_were_given():
    dropout = Dropout(0.5)
    net = Network(GRU, INPUT_BIAS, 2, 3, 4, 4, skip=True, data_type=FLOAT, dropout=dropout, algorithm=1)
    kinds = [*["mcdnnRNNAlgo_t *", "mcdnnRNNMode_t *", "mcdnnRNNBiasMode_t *", "mcdnnDirectionMode_t *",
               "mcdnnRNNInputMode_t *", "mcdnnDataType_t *", "mcdnnDataType_t *", "mcdnnMathType_t *"],
             *["int32_t *"] * 4, "mcdnnDropoutDescriptor_t *", "uint32_t *"]
    places = [ffi.new(kind) for kind in kinds]
    ok(lib.mcdnnGetRNNDescriptor_v8(net.descriptor, *places))
    assert [place[0] for place in places] == [1, GRU, INPUT_BIAS, 1, 1, FLOAT, FLOAT, 0, 4, 4, 4, 3, dropout.descriptor, 1]
    ok(lib.mcdnnGetRNNDescriptor_v8(net.descriptor, *[ffi.NULL] * 14))
    ok(lib.mcdnnRNNSetClip_v8(net.descriptor, 1, 1, -2.0, 3.0))
    clip = [ffi.new(kind) for kind in ("mcdnnRNNClipMode_t *", "mcdnnNanPropagation_t *", "double *", "double *")]
    ok(lib.mcdnnRNNGetClip_v8(net.descriptor, *clip))
    assert [place[0] for place in clip] == [1, 1, -2.0, 3.0]

    data = Sequences(np.zeros((4, 3, 2)), (4, 0, 2), BATCH_MAJOR, DOUBLE, 2.5)
    kinds = ["mcdnnDataType_t *", "mcdnnRNNDataLayout_t *", "int *", "int *", "int *"]
    places, lengths, fill = [ffi.new(kind) for kind in kinds], ffi.new("int[3]", [9, 9, 9]), ffi.new("double *")
    ok(lib.mcdnnGetRNNDataDescriptor(data.descriptor, *places, 2, lengths, fill))
    assert [place[0] for place in places] == [DOUBLE, BATCH_MAJOR, 4, 3, 2]
    assert list(lengths) == [4, 0, 9] and fill[0] == 2.5
    ok(lib.mcdnnGetRNNDataDescriptor(data.descriptor, *[ffi.NULL] * 5, 3, lengths, ffi.NULL))
    assert list(lengths) == [4, 0, 2]


def test_gates_fill_the_weight_space():
    """Matrices and biases of all gates lie beside each other without gaps, whatever the network."""
    for cell, bias, skip, projection in itertools.product(CELLS, range(4), (False, True), (None, 2)):
        if projection and cell != LSTM:
            continue
        net = Network(cell, bias, 2, 2, inputs=4, skip=skip, projection=projection)
        taken = np.zeros(net.weights.sizes, int)
        for layer in range(4):
            for kind in range(2 * GATES[cell] + (cell == LSTM)):
                for place in net.part(layer, kind):
                    if place is not None:
                        taken[place[0] : place[0] + np.prod(place[1])] += 1
        assert (taken == 1).all()


# Two threads give one descriptor different sizes, a third one asks for them, and the descriptor ends under all of them.
THREADS = """
import threading
from understudy.maca import ffi, lib
SIZES = (2, 900)
def rounds():
    place = ffi.new("mcdnnRNNDataDescriptor_t *")
    for _ in range(150):
        assert lib.mcdnnCreateRNNDataDescriptor(place) == 0
        yield place[0]
def set_sizes(size):
    lengths = [size] * size
    for _ in range(200):
        if lib.mcdnnSetRNNDataDescriptor(shared, 0, 0, size, size, 3, lengths, ffi.NULL) != 0:
            break
def ask():
    steps, batch, lengths = ffi.new("int *"), ffi.new("int *"), ffi.new("int[]", max(SIZES))
    for _ in range(200):
        if lib.mcdnnGetRNNDataDescriptor(shared, ffi.NULL, ffi.NULL, steps, batch, ffi.NULL, max(SIZES), lengths, ffi.NULL) == 0:
            told.add((steps[0], batch[0], *lengths[0 : batch[0]]))
told = set()
for shared in rounds():
    threads = [threading.Thread(target=set_sizes, args=(size,)) for size in SIZES] + [threading.Thread(target=ask)]
    for thread in threads:
        thread.start()
    threads[0].join()
    assert lib.mcdnnDestroyRNNDataDescriptor(shared) == 0
    for thread in threads:
        thread.join()
assert told and told <= {(size, size, *[size] * size) for size in SIZES}
print("whole")
"""


def test_threads_that_share_a_descriptor_of_sequences_see_what_one_call_has_set():
    assert run_python(THREADS, {"UNDERSTUDY_LOG": "off"}).split() == ["whole"]
