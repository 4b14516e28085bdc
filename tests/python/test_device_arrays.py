"""Device arrays: what they are, views, exchange with NumPy and torch, operators that use them where they are."""

import copy
import gc
import pickle

import numpy
import pytest

from understudy import ascend, ftdsp, maca
from understudy.ascend.runtime import Operation
from understudy.errors import StatusError

STACKS = pytest.mark.parametrize("stack", [ascend, maca], ids=["ascend", "maca"])
VALUES = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)


def used(stack) -> int:
    free, total = stack.ffi.new("size_t *"), stack.ffi.new("size_t *")
    if stack is ascend:
        stack.call("aclrtGetMemInfo", stack.lib.ACL_HBM_MEM, free, total)
    else:
        stack.call("mcMemGetInfo", free, total)
    return total[0] - free[0]


@STACKS
def test_an_array_is_its_values_and_frees_its_memory(stack):
    made = stack.array(VALUES)
    assert (made.shape, made.strides, made.dtype, made.ndim) == (VALUES.shape, VALUES.strides, VALUES.dtype, 3)
    assert (made.size, made.nbytes, len(made), made.device) == (24, 96, 2, 0)
    numpy.testing.assert_array_equal(made.numpy(), VALUES)
    numpy.testing.assert_array_equal(numpy.asarray(made), VALUES)
    assert repr(stack.array([1, 2])) == f"{stack.__name__.split('.')[-1]}.array([1, 2], dtype=int64, shape=(2,), device 0)"
    before = used(stack)
    large = stack.array(numpy.zeros(1 << 20, numpy.uint8))
    view = large[5:]
    del large
    assert used(stack) >= before + (1 << 20)
    del view
    gc.collect()
    assert used(stack) <= before
    assert stack.array(numpy.float64(3)).numpy() == 3 and stack.array(numpy.empty((0, 3))).numpy().shape == (0, 3)
    with pytest.raises(TypeError, match="no length"):
        len(stack.array(1.0))


@STACKS
def test_objects_stay_in_python(stack):
    """Their addresses, brought back later, would be taken for objects that are alive."""
    for values in ([None], [{}], numpy.zeros(2, [("a", "O")])):
        with pytest.raises(TypeError, match="addresses of Python's objects"):
            stack.array(values)


@STACKS
@pytest.mark.parametrize("memory", ["device", "pinned"])
def test_copies_have_memory_of_their_own(stack, memory):
    made = stack.array(VALUES[:, ::2], memory=memory)
    for again in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again.memory.kind == memory and again.pointer != made.pointer
        numpy.testing.assert_array_equal(again.numpy(), made.numpy(), strict=True)


@pytest.mark.parametrize("call", [ascend.ops.gelu, maca.softmax_forward,
                                  lambda x: maca.run("mcdnnSoftmaxForward", x=x, y=x)])  # fmt: skip
def test_arrays_of_another_stack_are_refused(call):
    """Without a fault, after which a MACA device does nothing until it is reset."""
    own, other = (ascend, maca) if call is ascend.ops.gelu else (maca, ascend)
    values = VALUES.copy()
    with pytest.raises(TypeError, match=f"an array of {other.__name__.split('.')[1]}"):
        call(other.array(values))
    call(own.array(other.array(values)))


KEYS = [0, -1, slice(1, 2), (slice(None), slice(0, 3, 2)), (Ellipsis, 1), (0, 1, 2), (None, slice(None), 0),
        (slice(None), slice(1, 1))]  # fmt: skip


@STACKS
def test_views_show_the_same_memory(stack):
    made = stack.array(VALUES)
    for key in KEYS:
        view, expected = made[key], VALUES[key]
        numpy.testing.assert_array_equal(view.numpy(), expected)
        assert view.shape == expected.shape and view.memory is made.memory
    assert made[1].pointer == made.pointer + 48 and made.T.strides == VALUES.T.strides
    numpy.testing.assert_array_equal(made.T[1:, ::2].numpy(), VALUES.T[1:, ::2])
    strided = stack.array(VALUES[:, ::2, 1:])
    numpy.testing.assert_array_equal(strided.numpy(), VALUES[:, ::2, 1:])
    numpy.testing.assert_array_equal(stack.array(VALUES[::-1]).numpy(), VALUES[::-1])
    with pytest.raises(ValueError, match="steps below 0"):
        made[::-1]
    with pytest.raises(TypeError, match="not by list"):
        made[[0, 1]]
    with pytest.raises(IndexError):
        made[2]


@STACKS
def test_memory_that_the_host_sees_is_shared(stack):
    for kind in ("pinned", *(["managed"] if stack is maca else [])):
        made = stack.array(VALUES, memory=kind)
        shared, exchanged = numpy.asarray(made._on_host()), numpy.from_dlpack(made)
        assert shared.ctypes.data == exchanged.ctypes.data == made.pointer == made.__array_interface__["data"][0]
        shared[1, 2, 3] = -1
        assert made.numpy()[1, 2, 3] == exchanged[1, 2, 3] == -1 and made.__dlpack_device__() == (1, 0)
    hidden = stack.array(VALUES)
    assert not hasattr(hidden, "__array_interface__") and hidden.__dlpack_device__() == (12, 0)
    with pytest.raises(BufferError, match="cannot be seen"):
        numpy.from_dlpack(hidden)
    with pytest.raises(ValueError, match="not one of"):
        stack.array(VALUES, memory="host")


def test_ascend_operators_use_device_arrays_where_they_are(monkeypatch):
    x, y = ascend.array(VALUES), ascend.array(VALUES.T.copy().T)
    copies = []
    monkeypatch.setattr(ascend.runtime.SPACE, "copy", lambda *arguments: copies.append(arguments))
    results = [ascend.ops.add(x, y, 1), ascend.ops.gelu(x[:, 1:]), ascend.ops.soft_margin_loss(x, y),
               ascend.ops.embedding(x[0], ascend.array(numpy.array([0])))]  # fmt: skip
    monkeypatch.undo()
    assert len(copies) == 1  # the indices' own way to the device
    assert all(type(result) is type(x) for result in results)
    numpy.testing.assert_array_equal(results[0].numpy(), 2 * VALUES)
    numpy.testing.assert_array_equal(results[1].numpy(), ascend.ops.gelu(VALUES[:, 1:]))
    mixed = ascend.ops.add(x, VALUES, 1)
    numpy.testing.assert_array_equal(mixed.numpy(), 2 * VALUES)
    assert ascend.ops.inplace_add(x, VALUES, 1).pointer == x.pointer
    numpy.testing.assert_array_equal(x.numpy(), 2 * VALUES)
    host = VALUES.copy()
    numpy.testing.assert_array_equal(ascend.ops.inplace_add(host, VALUES, 1), 2 * VALUES)
    numpy.testing.assert_array_equal(host, VALUES)


def test_maca_functions_use_device_arrays_where_they_are():
    x = maca.array(VALUES - 10)
    y = maca.activation_forward(x, "relu")
    assert type(y) is type(x)
    numpy.testing.assert_array_equal(y.numpy(), numpy.maximum(VALUES - 10, 0))
    blended = maca.activation_forward(x, "relu", beta=2.0, y=y)
    numpy.testing.assert_array_equal(blended.numpy(), 3 * y.numpy())
    with maca.ActivationDescriptor("relu") as relu:
        maca.run("mcdnnActivationForward", activationDesc=relu, x=x, y=x)
    numpy.testing.assert_array_equal(x.numpy(), y.numpy())


def test_device_arrays_live_as_long_as_the_operation_that_uses_them():
    with Operation() as operation:
        listed, changed = operation.inputs([ascend.array(VALUES)]), operation.changed(ascend.array(-VALUES))
        out, copies = operation.output(VALUES.shape, VALUES.dtype), operation.outputs([VALUES.shape], [VALUES.dtype])
        operation.run("aclnnNeg", operation.input(ascend.array(-VALUES)), out.tensor)
        operation.run("aclnnForeachAbs", listed, copies.tensor)
        operation.run("aclnnInplaceNeg", changed.tensor)
        for result in (copies.fetch()[0], changed.fetch(), out.fetch()):
            numpy.testing.assert_array_equal(result.numpy(), VALUES)


def test_a_stream_that_is_closed_leaves_its_thread_as_it_was():
    stream = maca.Stream()
    with stream:
        pass
    with pytest.raises(StatusError, match="which is not a stream"), stream:
        pass
    numpy.testing.assert_array_equal(maca.activation_forward(VALUES, "relu"), VALUES)
    with maca.Stream():
        maca.call("mcDeviceReset")
    numpy.testing.assert_array_equal(maca.activation_forward(VALUES, "relu"), VALUES)


@STACKS
def test_streams_and_events(stack):
    with stack.Stream() as first, stack.Stream() as second:
        assert repr(first) == f"{stack.__name__}.Stream(open)"
        x = stack.array(VALUES)
        done = first.record()
        second.wait(done)
        with second.record() as event:
            event.synchronize()
            assert done.done() and event.done()
        if stack is ascend:
            numpy.testing.assert_array_equal(stack.ops.add(x, x, 1).numpy(), 2 * VALUES)
        else:
            numpy.testing.assert_array_equal(stack.activation_forward(x, "relu").numpy(), VALUES)
        later = stack.Event().record()
        later.synchronize()
        assert later.milliseconds_since(done) >= 0
    assert repr(first) == f"{stack.__name__}.Stream(closed)"
    numpy.testing.assert_array_equal(stack.array(VALUES).numpy(), VALUES)


def test_torch_tensors_of_every_dtype():
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    kinds = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
             torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.complex64, torch.complex128,
             torch.float8_e4m3fn, torch.float8_e5m2]  # fmt: skip
    for kind in kinds:
        tensor = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(kind)
        for stack in (ascend, maca):
            made = stack.array(tensor)
            assert str(made.dtype) == str(kind).removeprefix("torch.")
            numpy.testing.assert_array_equal(made.numpy().astype(complex), [[0, 1, 1], [1, 0, 1]])
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.linspace(-2, 2, 6, dtype=kind, requires_grad=True)
        expected = (x + x).detach().to(torch.float64).numpy()
        numpy.testing.assert_array_equal(ascend.ops.add(x, x, 1).astype(float), expected)
        numpy.testing.assert_array_equal(maca.activation_forward(x, "relu").astype(float), expected.clip(0) / 2)
    turned = torch.tensor([1 + 2j, 3 - 1j]).conj()
    numpy.testing.assert_array_equal(ascend.array(turned).numpy(), [1 - 2j, 3 + 1j])
    x, y = torch.arange(6.0), torch.empty(6)
    ftdsp.run("add", x, x, y, 6)
    assert y.tolist() == (x + x).tolist()
    y = torch.empty(6, dtype=torch.bfloat16)
    with maca.ActivationDescriptor("relu") as relu:
        maca.run("mcdnnActivationForward", activationDesc=relu, x=(x - 3).bfloat16(), y=y)
    assert y.tolist() == [0, 0, 0, 0, 1, 2]
