"""aclnnEmbedding: its rules (aclnn-ops 4.2) and results, which are copies and therefore exact."""

import hypothesis
import numpy
import pytest
from hypothesis import strategies

from understudy.ascend import lib

from tests.conformance.ascend.aclnn_support import (
    BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, INVALID, U8, U16, Kind, Subject, Tensor, blank, plan, run,
)  # fmt: skip
from tests.conformance.harness import check_rule, last_rule, run_python

NAME = "aclnnEmbedding"
U32, U64 = Kind("uint32", lib.ACL_UINT32, numpy.uint32), Kind("uint64", lib.ACL_UINT64, numpy.uint64)
C64 = Kind("complex64", lib.ACL_COMPLEX64, numpy.complex64)
C128 = Kind("complex128", lib.ACL_COMPLEX128, numpy.complex128)
TABLE_KINDS = (F32, F16, BF16, F64, I8, I16, I32, I64, U8, BOOL, C64, C128)


def arguments():
    return {"weight": Tensor(F32, numpy.arange(10.0).reshape(5, 2)), "indices": Tensor(I64, [[0, 4, 2], [1, 1, 3]]),
            "out": blank(F32, (2, 3, 2))}  # fmt: skip


def coded(code, shape):
    """A tensor of a type without values: one byte each."""
    return Tensor(U8, numpy.zeros(shape), code=code)


def private(name, kind, shape, format="FRACTAL_NZ"):
    code = getattr(lib, f"ACL_FORMAT_{format}")
    return lambda: {name: Tensor(kind, numpy.zeros(shape), format=code)}


SUBJECT = Subject(NAME, arguments, ["out"])
RULES = [
    *SUBJECT.phase_cases(),
    *SUBJECT.tensor_cases("weight", "indices", "out"),
    SUBJECT.case("weight/dtype", lambda: {"weight": coded(lib.ACL_INT4, (5, 2))}),
    SUBJECT.case("indices/dtype", lambda: {"indices": Tensor(I16, numpy.zeros((2, 3)))},
                 lambda: {"indices": Tensor(I32, numpy.zeros((2, 3)))}),
    SUBJECT.case("out/same-dtype", lambda: {"out": blank(I32, (2, 3, 2))}),
    SUBJECT.case("weight/format", private("weight", F32, (5, 2)), private("weight", F32, (5, 2), "NCHW")),
    SUBJECT.case("indices/format", private("indices", I64, (2, 3)), private("indices", I64, (2, 3), "NCL")),
    SUBJECT.case("out/format", private("out", F32, (2, 3, 2), "NC1HWC0"), private("out", F32, (2, 3, 2), "NHWC")),
    SUBJECT.case("weight/rank", lambda: {"weight": Tensor(F32, numpy.ones((5, 2, 1)))}),
    SUBJECT.case("indices/rank", lambda: {"indices": Tensor(I64, numpy.zeros((1,) * 9))}),
    SUBJECT.case("out/rank", lambda: {"indices": Tensor(I64, numpy.zeros((1,) * 8)), "out": blank(F32, (1,) * 8 + (2,))},
                 lambda: {"indices": Tensor(I64, numpy.zeros((1,) * 7)), "out": blank(F32, (1,) * 7 + (2,))}),
    SUBJECT.case("out/shape", lambda: {"out": blank(F32, (3, 2, 2))}),
    SUBJECT.case("weight/view", lambda: {"weight": Tensor(F32, numpy.ones(10), shape=(5, 2), strides=(1, 5), offset=1)},
                 lambda: {"weight": Tensor(F32, numpy.ones(10), shape=(5, 2), strides=(1, 5))}),
    SUBJECT.case("indices/view", lambda: {"indices": Tensor(I64, numpy.zeros(6), shape=(2, 3), strides=(1, 2), offset=1)},
                 lambda: {"indices": Tensor(I64, numpy.zeros(6), shape=(2, 3), strides=(1, 2))}),
    SUBJECT.case("out/view", lambda: {"out": blank(F32, (2, 3, 2), strides=(1, 2, 6), offset=1, storage=(12,))},
                 lambda: {"out": blank(F32, (2, 3, 2), strides=(1, 2, 6), storage=(12,))}),
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


@pytest.mark.parametrize("kind", [U16, U32, U64], ids=lambda kind: kind.name)
def test_wide_unsigned_tables_are_refused(kind):
    given = arguments() | {"weight": Tensor(kind, numpy.ones((5, 2))), "out": blank(kind, (2, 3, 2))}
    assert plan(NAME, *given.values())[0] == INVALID
    assert last_rule() == f"{NAME}/weight/dtype"


def table_of(kind, shape, **how):
    """Any bits: a gather copies them."""
    count = int(numpy.prod(shape))
    bits = numpy.random.default_rng(1).integers(0, 2 if kind == BOOL else 256, count * kind.storage().nbytes, numpy.uint8)
    made = Tensor(kind, numpy.zeros(shape), **how)
    made.memory.write(bits.tobytes())
    return made


@pytest.mark.parametrize("kind", TABLE_KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("index_kind", [I32, I64], ids=lambda kind: kind.name)
def test_every_type(kind, index_kind):
    table, indices = table_of(kind, (11, 7)), numpy.array([[10, 0, 3], [3, 9, 0]])
    out = blank(kind, (2, 3, 7))
    run(NAME, table, Tensor(index_kind, indices), out)
    assert out.bits().tobytes() == table.bits()[indices].tobytes()


def test_results_that_no_cache_holds():
    """More than 16 MiB, in rows that begin anywhere in a line of memory."""
    table, indices = table_of(U8, (5, 1037)), numpy.random.default_rng(2).integers(0, 5, 17_000)
    out = blank(U8, (17_000, 1037))
    run(NAME, table, Tensor(I32, indices), out)
    assert (out.bits() == table.bits()[indices]).all()


@pytest.mark.parametrize("rows, columns, shape", [
    (1, 1, ()), (5, 3, ()), (7, 1, (3, 1, 2)), (1000, 257, (1025,)), (3, 70000, (5,)), (50021, 2, (3, 4099)),
])  # fmt: skip
def test_sizes(rows, columns, shape):
    table = Tensor(F32, numpy.random.default_rng(0).normal(size=(rows, columns)))
    indices = numpy.random.default_rng(1).integers(0, rows, shape)
    out = blank(F32, (*shape, columns))
    run(NAME, table, Tensor(I64, indices), out)
    numpy.testing.assert_array_equal(out.values(), table.values()[indices])


@strategies.composite
def layouts(draw, shape):
    strides, step = [0] * len(shape), 1
    for axis in draw(strategies.permutations(range(len(shape)))):
        step *= draw(strategies.integers(1, 2))
        strides[axis] = step
        step *= max(shape[axis], 1)
    return strides, draw(strategies.integers(0, 3)), step


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(strategies.data())
def test_any_views(data):
    rows, columns = data.draw(strategies.integers(1, 6)), data.draw(strategies.integers(1, 6))
    shape = tuple(data.draw(strategies.lists(strategies.integers(1, 4), max_size=4)))
    strides, offset, size = data.draw(layouts((rows, columns)))
    table = Tensor(F32, numpy.arange(size + offset), shape=(rows, columns), strides=strides, offset=offset)
    strides, offset, size = data.draw(layouts(shape))
    stored = data.draw(strategies.lists(strategies.integers(0, rows - 1), min_size=size + offset, max_size=size + offset))
    indices = Tensor(I32, stored, shape=shape, strides=strides, offset=offset)
    strides, offset, _ = data.draw(layouts((*shape, columns)))
    out = blank(F32, (*shape, columns), strides=strides, offset=offset)
    run(NAME, table, indices, out)
    numpy.testing.assert_array_equal(out.values(), table.values()[indices.values().astype(int)])
    touched = numpy.zeros(out.count, numpy.uint8)
    out.view_of(touched)[...] = 1
    assert (out.stored()[touched == 0].view(numpy.uint8) == 0xA5).all()


@pytest.mark.parametrize("table, shape", [((0, 3), (2,)), ((4, 0), (2,)), ((4, 3), (0, 5))])
def test_empty_tensors_write_nothing(table, shape):
    given = Tensor(F32, numpy.ones(table)), Tensor(I64, numpy.zeros(shape)), blank(F32, (*shape, table[1]))
    before = given[2].bytes()
    run(NAME, *given)
    assert given[2].bytes() == before


@pytest.mark.parametrize("shape", [(6, 2), (2, 3), (2, 3, 2, 1), (2, 3, 3), (3, 2, 2), ()])
def test_out_has_exactly_one_shape(shape):
    assert plan(NAME, *{**arguments(), "out": blank(F32, shape)}.values())[0] == INVALID


@pytest.mark.parametrize("soc, status", [("Ascend910", INVALID), ("Ascend910B", 0), ("Ascend910_93", 0)])
def test_product_profiles(soc, status):
    source = f"""
from tests.conformance.ascend.test_aclnn_embedding import *
print(plan(NAME, Tensor(BF16, numpy.ones((2, 2))), Tensor(I64, [1]), blank(BF16, (1, 2)))[0])
"""
    assert int(run_python(source, {"UNDERSTUDY_SOC": soc})) == status


@pytest.mark.parametrize("code", ["INT4", "UINT1", "STRING", "COMPLEX32", "DT_UNDEFINED"])
def test_types_without_a_table(code):
    wrong = coded(getattr(lib, f"ACL_{code}"), (5, 2))
    assert plan(NAME, wrong, Tensor(I64, [1]), wrong)[0] == INVALID


def test_first_failure_wins():
    cases = [("weight/null", {"weight": None, "out": None}),
             ("indices/dtype", {"indices": Tensor(U8, [1]), "out": blank(F16, (1,))}),
             ("out/same-dtype", {"out": blank(F16, (1,)), "weight": Tensor(F32, [1.0])}),
             ("weight/rank", {"weight": Tensor(F32, [1.0]), "out": blank(F32, (1,))})]  # fmt: skip
    for rule, changes in cases:
        assert plan(NAME, *{**arguments(), **changes}.values())[0] != 0
        assert last_rule() == f"{NAME}/{rule}"
