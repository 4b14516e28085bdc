"""aclnnSoftMarginLossBackward against float64 NumPy: types, shapes, strides, empty tensors, threads, lifetimes."""

import concurrent.futures
import itertools

import hypothesis
import numpy
import pytest
from hypothesis import strategies

from understudy.ascend import ffi, lib

from tests.conformance.ascend.aclnn_support import (
    BF16, F16, F32, FLOATS, INVALID, RUNTIME, Tensor, assert_rounded, blank, execute, ok, plan, promoted, run, start,
)  # fmt: skip
from tests.conformance.harness import run_python

NAME = "aclnnSoftMarginLossBackward"


def oracle(g, x, y, reduction):
    g, x, y = numpy.broadcast_arrays(g, x, y)
    factor = 1.0 / max(g.size, 1) if reduction == 1 else 1.0
    return factor * g * -y / (1.0 + numpy.exp(x * y))


def check(g, x, y, reduction, out):
    """Runs on tensors and compares every element of the view; what lies between its elements must keep its pattern."""
    run(NAME, g, x, y, reduction, out)
    values = [tensor.values() for tensor in (g, x, y)]
    # fp32: a few roundings, and one of the exponent that grows with |x*y|; then the promoted type, then out's.
    margin = (8 + 2 * numpy.abs(numpy.broadcast_arrays(*values)[1] * numpy.broadcast_arrays(*values)[2])) * 2.0**-24
    kinds = [promoted(g.kind, x.kind, y.kind), out.kind]
    assert_rounded(out.values(), oracle(*values, reduction), margin, kinds, floor=1e-37)
    touched = numpy.zeros(out.count, numpy.uint8)
    out.view_of(touched)[...] = 1
    between = out.stored()[touched == 0]
    assert (between.view(numpy.uint8) == 0xA5).all()


def normal(seed, shape, scale=3.0):
    """Not so large that the exponential overflows: that is another test's."""
    return numpy.clip(numpy.random.default_rng(seed).normal(0.0, scale, shape), -9, 9)


# ---- types and shapes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", list(itertools.product(FLOATS, repeat=4)),
                         ids=lambda kinds: "-".join(kind.name for kind in kinds))
def test_every_mix_of_types(kinds):
    shape = (7, 13)
    inputs = [Tensor(kind, normal(seed, shape)) for seed, kind in enumerate(kinds[:3])]
    check(*inputs, 0, blank(kinds[3], shape))


@pytest.mark.parametrize("rank", range(9))
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_every_rank(rank, reduction):
    shape = (2, 3, 1, 2, 1, 3, 2, 1)[:rank]
    inputs = [Tensor(F32, normal(seed, shape)) for seed in range(3)]
    check(*inputs, reduction, blank(F32, shape))


@pytest.mark.parametrize("count", [1, 2, 1021, 1023, 1024, 1025, 2047, 65537, 300007])
@pytest.mark.parametrize("kind", FLOATS, ids=lambda kind: kind.name)
def test_sizes_around_tiles_and_pieces(count, kind):
    check(*(Tensor(kind, normal(seed, count)) for seed in range(3)), 1, blank(kind, (count,)))


@pytest.mark.parametrize("shapes", [
    [(), (), ()], [(), (3, 4), ()], [(5, 1), (1, 6), (5, 6)], [(2, 1, 3), (4, 1), (1,)], [(1, 1, 1), (), (1,)],
    [(1025,), (3, 1), (1, 1)], [(1,) * 8, (3,), (2, 1)],
])  # fmt: skip
@pytest.mark.parametrize("reduction", [0, 1])
def test_broadcasting(shapes, reduction):
    inputs = [Tensor(kind, normal(seed, shape)) for seed, (shape, kind) in enumerate(zip(shapes, FLOATS))]
    check(*inputs, reduction, blank(F32, numpy.broadcast_shapes(*shapes)))


def test_mean_divides_by_the_broadcast_count():
    """1.2: N counts the broadcast shape, whichever input is the small one."""
    full, one = Tensor(F32, normal(1, (4, 5))), Tensor(F32, [1.0])
    for inputs in itertools.permutations([full, one, one]):
        check(*inputs, 1, blank(F32, (4, 5)))


@pytest.mark.parametrize("count", [3, 7, 1000, 16777217])
def test_the_factor_of_mean_is_rounded_once(count):
    """fl32(1/N), applied by multiplication: with g = N, x = 0, y = -1 the result is fl32(fl32(N/2) * fl32(1/N))."""
    g = Tensor(F32, [1.0], shape=(count,), strides=(0,))
    zero, minus = Tensor(F32, [0.0]), Tensor(F32, [-1.0])
    out = blank(F32, (count,))
    run(NAME, g, zero, minus, 1, out)
    expected = numpy.float32(0.5) * numpy.float32(1.0 / count)
    assert set(out.values()) == {float(expected)}


# ---- views ------------------------------------------------------------------------------------------------------------


@strategies.composite
def view(draw, shape):
    """Strides over a shape: axes in any order, with gaps, some expanded; and an offset."""
    strides, step = [0] * len(shape), 1
    for axis in draw(strategies.permutations(range(len(shape)))):
        step *= draw(strategies.integers(1, 2))
        strides[axis] = step
        step *= max(shape[axis], 1)
    return strides, draw(strategies.integers(0, 3))


def tensor_with(kind, seed, shape, strides, offset):
    reach = offset + sum(s * (n - 1) for s, n in zip(strides, shape) if n > 0) + 1
    return Tensor(kind, normal(seed, reach), shape=shape, strides=strides, offset=offset)


@strategies.composite
def calls(draw):
    shape = tuple(draw(strategies.lists(strategies.integers(0, 5), max_size=5)))
    inputs = []
    for seed in range(3):
        own = [draw(strategies.sampled_from([n, n, 1])) for n in shape]
        own = own[draw(strategies.integers(0, len(own))) :] if draw(strategies.booleans()) else own
        strides, offset = draw(view(own))
        expanded = draw(strategies.booleans())
        strides = [0 if expanded and draw(strategies.booleans()) else stride for stride in strides]
        inputs.append((draw(strategies.sampled_from(FLOATS)), seed, own, strides, offset))
    joint = numpy.broadcast_shapes(*(tuple(each[2]) for each in inputs))
    return inputs, draw(strategies.integers(0, 2)), draw(strategies.sampled_from(FLOATS)), joint, draw(view(joint))


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(calls())
def test_any_views(call):
    inputs, reduction, kind, shape, (strides, offset) = call
    check(*(tensor_with(*each) for each in inputs), reduction, blank(kind, shape, strides=strides, offset=offset))


def test_negative_strides():
    """Documented as not allowed by aclCreateTensor's callers, computed with by the vendor's bounds rule."""
    x = Tensor(F32, numpy.arange(6.0), shape=(3, 2), strides=(-2, 1), offset=4)
    assert x.values().tolist() == [[4, 5], [2, 3], [0, 1]]
    check(x, x, x, 0, blank(F32, (3, 2), strides=(2, 1), offset=0))


@pytest.mark.parametrize("strides, offset, status", [
    ((2, 1), -1, 0), ((3, 1), 0, 0), ((3, 1), 1, 0), ((3, 1), 2, 561103), ((-3, 1), 3, 0), ((-3, 1), 2, 561103),
    ((2**62, 1), 0, 561103), ((1, 2**63 - 1), 1, 561103),
])  # fmt: skip
def test_bounds_of_views(strides, offset, status):
    """0.4: a view over 6 elements; contiguous views are not checked here (the device does)."""
    x = Tensor(F32, numpy.ones(6), shape=(2, 2), strides=strides, offset=offset)
    result, _, executor = plan(NAME, x, x, x, 0, blank(F32, (2, 2)))
    assert result == status
    if result == 0:
        ok(lib.aclDestroyAclOpExecutor(executor))


def test_in_place():
    x = Tensor(F32, normal(3, 5000))
    y, one = Tensor(F32, normal(4, 5000)), Tensor(F32, [1.0])
    before = x.values()
    run(NAME, one, x, y, 0, x)
    assert_rounded(x.values(), oracle(1.0, before, y.values(), 0), 100 * 2.0**-24, [F32], floor=1e-37)


# ---- empty tensors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shapes", [
    [(0,)] * 3, [(2, 0), (2, 1), (1, 0)], [(0,), (1,), (1,)], [(1,), (1,), (0,)], [(), (), (3, 0)], [(1,), (0, 4), (4,)],
])  # fmt: skip
@pytest.mark.parametrize("with_memory", [True, False])
def test_empty_tensors(shapes, with_memory):
    inputs = [Tensor(F32, numpy.ones(shape), without_memory=not with_memory) for shape in shapes]
    out = blank(F32, numpy.broadcast_shapes(*shapes))
    status, size, executor = plan(NAME, *inputs, 1, out)
    assert (status, size) == (0, 0)
    execute(NAME, size, executor)


def test_empty_tensors_are_checked():
    empty = Tensor(F32, numpy.ones((0, 2)))
    assert plan(NAME, empty, empty, empty, 0, blank(F32, (0, 3)))[0] == INVALID
    assert plan(NAME, empty, empty, Tensor(F32, numpy.ones(3)), 0, blank(F32, (0, 3)))[0] == INVALID


def test_the_shortcut_comes_before_reduction():
    empty = Tensor(F32, numpy.ones(0))
    status, size, executor = plan(NAME, empty, empty, empty, 99, blank(F32, (0,)))
    ok(status)
    execute(NAME, size, executor)


# ---- wrong memory shows at the next synchronise -----------------------------------------------------------------------


def run_in_child(body):
    return run_python(f"""
from tests.ascend.test_aclnn_soft_margin_loss_backward import *
x = Tensor(F32, numpy.ones(1000))
{body}
status, size, executor = plan(NAME, x, x, x, 0, out)
print(status, lib.aclnnSoftMarginLossBackward(ffi.NULL, size, executor, ffi.NULL), lib.aclrtSynchronizeStream(ffi.NULL) != 0)
print(ffi.string(lib.aclGetRecentErrMsg()).decode())
""", {})  # fmt: skip


@pytest.mark.parametrize("body, parameter", [
    ("out = blank(F32, (1000,)); lib.aclrtFree(out.memory.address)", "out"),
    ("out = Tensor(F32, numpy.ones(1000), without_memory=True)", "out"),
    ("out = blank(F32, (1000,)); lib.aclSetRawTensorAddr(out.handle, ffi.cast('char *', out.memory.address) + 2)", "out"),
    ("out = blank(F32, (2000,)); x = Tensor(F32, numpy.ones(10), shape=(2000,))", "gradOutput"),
])  # fmt: skip
def test_memory_faults_name_the_parameter(body, parameter):
    statuses, message = run_in_child(body).split("\n", 1)
    assert statuses == "0 0 True"
    assert parameter in message


# ---- threads ----------------------------------------------------------------------------------------------------------


def one_call(seed):
    start()
    stream = ffi.new("aclrtStream *")
    ok(lib.aclrtCreateStream(stream))
    tensors = [Tensor(F32, normal(seed + i, 3001)) for i in range(3)]
    for _ in range(5):
        out = blank(F32, (3001,))
        status, size, executor = plan(NAME, *tensors, 1, out)
        ok(status)
        execute(NAME, size, executor, stream[0])
        expected = oracle(*(t.values() for t in tensors), 1)
        assert_rounded(out.values(), expected, 200 * 2.0**-24, [F32], floor=1e-37)
    ok(lib.aclrtDestroyStream(stream[0]))
    return True


def test_threads_call_in_parallel():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one_call, range(8)))


def test_phases_on_different_threads():
    x, out = Tensor(F32, normal(0, 100)), blank(F32, (100,))
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        status, size, executor = pool.submit(plan, NAME, x, x, x, 0, out).result()
    ok(status)
    execute(NAME, size, executor)
    assert_rounded(out.values(), oracle(*[x.values()] * 3, 0), 200 * 2.0**-24, [F32], floor=1e-37)


def test_one_executor_on_many_threads_runs_once():
    x, out = Tensor(F32, [1.0]), blank(F32, (1,))
    start()
    device = ffi.new("aclrtContext *")
    ok(lib.aclrtGetCurrentContext(device))

    def second(executor, size):
        ok(lib.aclrtSetCurrentContext(device[0]))
        return lib.aclnnSoftMarginLossBackward(ffi.NULL, size, executor, ffi.NULL)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(50):
            status, size, executor = plan(NAME, x, x, x, 0, out)
            ok(status)
            statuses = list(pool.map(lambda _: second(executor, size), range(4)))  # noqa: B023
            assert sorted(statuses) == [0, 561000, 561000, 561000]
    ok(lib.aclrtSynchronizeStream(ffi.NULL))


def test_no_device_on_the_thread():
    x, out = Tensor(F32, [1.0]), blank(F32, (1,))
    status, size, executor = plan(NAME, x, x, x, 0, out)
    ok(status)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        call = pool.submit(lib.aclnnSoftMarginLossBackward, ffi.NULL, size, executor, ffi.NULL)
        assert call.result() == RUNTIME


def test_results_do_not_depend_on_the_number_of_threads():
    source = """
import hashlib
from tests.ascend.test_aclnn_soft_margin_loss_backward import *
digest = hashlib.sha256()
for kinds in ((F32,) * 4, (F16,) * 4, (BF16,) * 4, (F16, F32, BF16, F16)):
    inputs = [Tensor(kind, normal(seed, (701, 997))) for seed, kind in enumerate(kinds[:3])]
    out = blank(kinds[3], (701, 997))
    run(NAME, *inputs, 1, out)
    digest.update(out.bytes())
print(digest.hexdigest())
"""
    assert len({run_python(source, {"UNDERSTUDY_THREADS": str(count)}) for count in (1, 2, 3)}) == 1


# ---- against PyTorch --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction, name", [(0, "none"), (1, "mean"), (2, "sum")])
def test_equal_to_autograd(reduction, name):
    torch = pytest.importorskip("torch")
    x, y = normal(1, (33, 65)).astype(numpy.float32), numpy.sign(normal(2, (33, 65))).astype(numpy.float32)
    g = normal(3, (33, 65) if name == "none" else ()).astype(numpy.float32)
    leaf = torch.tensor(x, requires_grad=True)
    loss = torch.nn.functional.soft_margin_loss(leaf, torch.tensor(y), reduction=name)
    loss.backward(torch.tensor(g))
    out = blank(F32, (33, 65))
    run(NAME, Tensor(F32, g), Tensor(F32, x), Tensor(F32, y), reduction, out)
    numpy.testing.assert_allclose(out.values(), leaf.grad.numpy(), rtol=2e-6, atol=1e-12)
