"""libnnopbase: tensors, scalars, arrays, lists and executors (aclnn-base 4 to 6)."""

import ctypes
import itertools

import numpy
import pytest

from understudy.ascend import ffi, lib

from tests.conformance.ascend.aclnn_support import (
    F16, F32, I32, INNER, INNER_NULL, INVALID, NULL_POINTER, OK, Tensor, address, blank, dead_tensor, execute, ok, plan, run,
)  # fmt: skip
from tests.conformance.harness import Result, RuleCase, check_rule, last_rule

OPERATOR = "aclnnSoftMarginLossBackward"
NO_OBJECT = -1  # "status" of a function that creates and gave NULL
FOREIGN = ffi.new("char[4096]")  # memory that is no object of the library


# ---- objects of every kind --------------------------------------------------------------------------------------------


def numbers(*values):
    return ffi.new("int64_t[]", list(values))


def create_tensor(dims=(2, 3), *, rank=None, strides=None, offset=0, storage=(6,), storage_rank=None, data=0x1000,
                  no_dims=False, no_storage=False):  # fmt: skip
    return lib.aclCreateTensor(
        ffi.NULL if no_dims else numbers(*dims), len(dims) if rank is None else rank, lib.ACL_FLOAT16,
        ffi.NULL if strides is None else numbers(*strides), offset, lib.ACL_FORMAT_NCHW,
        ffi.NULL if no_storage else numbers(*storage), len(storage) if storage_rank is None else storage_rank,
        address(data))  # fmt: skip


def create_scalar(dtype=lib.ACL_FLOAT, *, null=False):
    return lib.aclCreateScalar(ffi.NULL if null else ffi.cast("void *", ffi.addressof(FOREIGN)), dtype)


def create_tensor_list(*elements):
    return lib.aclCreateTensorList(ffi.new("aclTensor *[]", elements), len(elements))


def create_scalar_list(*elements):
    return lib.aclCreateScalarList(ffi.new("aclScalar *[]", elements), len(elements))


ARRAYS = {
    "IntArray": (lib.aclCreateIntArray, "int64_t[]"),
    "FloatArray": (lib.aclCreateFloatArray, "float[]"),
    "BoolArray": (lib.aclCreateBoolArray, "_Bool[]"),
    "TensorList": (lib.aclCreateTensorList, "aclTensor *[]"),
    "ScalarList": (lib.aclCreateScalarList, "aclScalar *[]"),
}
MAKERS = {
    "Tensor": create_tensor,
    "Scalar": create_scalar,
    "IntArray": lambda: lib.aclCreateIntArray(numbers(1, 2, 3), 3),
    "FloatArray": lambda: lib.aclCreateFloatArray(ffi.new("float[]", [1, 2]), 2),
    "BoolArray": lambda: lib.aclCreateBoolArray(ffi.new("_Bool[]", [True]), 1),
    "TensorList": lambda: create_tensor_list(create_tensor()),
    "ScalarList": lambda: create_scalar_list(create_scalar()),
}
# The name of the parameter by which a kind's functions take it.
PARAMETER = {"Tensor": "tensor", "Scalar": "scalar"}
GETTERS = {"IntArray": "array", "FloatArray": "array", "BoolArray": "array", "TensorList": "tensorList",
           "ScalarList": "scalarList"}  # fmt: skip


def destroy(kind, handle):
    return getattr(lib, f"aclDestroy{kind}")(handle)


def dead(kind):
    handle = MAKERS[kind]()
    ok(destroy(kind, handle))
    return handle


def created(kind, handle) -> Result:
    """What a creating function did, as a status."""
    if handle == ffi.NULL:
        return Result(NO_OBJECT)
    ok(destroy(kind, handle))
    return Result(OK)


def using(kind, call, *, alive=True, null=False):
    """Calls with a living, dead or missing object."""
    handle = ffi.NULL if null else MAKERS[kind]() if alive else dead(kind)
    status = call(handle)
    if alive and not null:
        ok(destroy(kind, handle))
    return status if isinstance(status, Result) else Result(status)


# ---- rules: creating and destroying -----------------------------------------------------------------------------------


def creation(rule, kind, refused, accepted):
    return RuleCase(rule, lambda: created(kind, refused()), lambda: created(kind, accepted()), status=NO_OBJECT)


CREATION = [
    creation("aclCreateTensor/viewDims/null", "Tensor", lambda: create_tensor(rank=1, no_dims=True),
             lambda: create_tensor((), no_dims=True)),
    creation("aclCreateTensor/storageDims/null", "Tensor", lambda: create_tensor(storage_rank=1, no_storage=True),
             lambda: create_tensor(storage=(), no_storage=True)),
    creation("aclCreateTensor/viewDimsNum/rank", "Tensor", lambda: create_tensor((1,) * 26),
             lambda: create_tensor((1,) * 25)),
    creation("aclCreateTensor/storageDimsNum/rank", "Tensor", lambda: create_tensor(storage=(1,) * 26),
             lambda: create_tensor(storage=(1,) * 25)),
    creation("aclCreateScalar/value/null", "Scalar", lambda: create_scalar(null=True), create_scalar),
    creation("aclCreateScalar/dataType/dtype", "Scalar", lambda: create_scalar(lib.ACL_COMPLEX32),
             lambda: create_scalar(lib.ACL_COMPLEX64)),
    *(creation(f"aclCreate{kind}/memory/exhausted", kind,
               lambda make=make, kind=kind: make(ffi.cast(ffi.typeof(ARRAYS[kind][1]).item.cname + "*",
                                                          ffi.addressof(FOREIGN)), 2**64 - 1),
               MAKERS[kind]) for kind, (make, _) in ARRAYS.items()),
]  # fmt: skip


def destroyed_twice(kind):
    return Result(destroy(kind, dead(kind)))


def destroyed_once(kind):
    return Result(destroy(kind, MAKERS[kind]()))


def list_of(kind, make_list, *, with_dead):
    """Destroying a list; with a dead element, nothing may be destroyed."""
    living, other = MAKERS[kind](), MAKERS[kind]()
    if with_dead:
        ok(destroy(kind, other))
    status = destroy(f"{kind}List", make_list(living, other))
    return Result(status, destroy(kind, living) == OK if status else None)


DESTRUCTION = [
    *(RuleCase(f"aclDestroy{kind}/{PARAMETER.get(kind, 'array')}/handle", lambda kind=kind: destroyed_twice(kind),
               lambda kind=kind: destroyed_once(kind)) for kind in MAKERS),
    *(RuleCase(f"aclDestroy{kind}List/array/element", lambda kind=kind, make=make: list_of(kind, make, with_dead=True),
               lambda kind=kind, make=make: list_of(kind, make, with_dead=False))
      for kind, make in (("Tensor", create_tensor_list), ("Scalar", create_scalar_list))),
]  # fmt: skip


# ---- rules: getters and setters ---------------------------------------------------------------------------------------


C = ctypes.CDLL(None)
C.free.argtypes = [ctypes.c_void_p]


def taken(array, count):
    """The numbers of an array that the library made for its caller, which is released. Without a C++ program around it
    delete[] is free."""
    values = [array[i] for i in range(count)]
    C.free(int(ffi.cast("uintptr_t", array)))
    return values


def marks(*types):
    """Places for results, each with a mark that a refused call must leave."""
    return [ffi.new(f"{kind} *", ffi.cast(kind, 77)) for kind in types]


def getter(name, handle, types, missing=None):
    """Calls a getter; result number `missing` is NULL."""
    places = marks(*types)
    status = getattr(lib, name)(handle, *(ffi.NULL if i == missing else place for i, place in enumerate(places)))
    untouched = all(int(ffi.cast("intptr_t", place[0])) == 77 for place in places)
    if status == OK and types[0] == "int64_t *":
        taken(places[0][0], 0)
    return Result(status, untouched if status else None)


TENSOR_GETTERS = {
    "aclGetViewShape": {"viewDims": "int64_t *", "viewDimsNum": "uint64_t"},
    "aclGetStorageShape": {"storageDims": "int64_t *", "storageDimsNum": "uint64_t"},
    "aclGetViewStrides": {"stridesValue": "int64_t *", "stridesNum": "uint64_t"},
    "aclGetViewOffset": {"offset": "int64_t"},
    "aclGetFormat": {"format": "aclFormat"},
    "aclGetDataType": {"dataType": "aclDataType"},
    "aclGetRawTensorAddr": {"addr": "void *"},
}
ALL_GETTERS = [(name, "Tensor", "tensor", results) for name, results in TENSOR_GETTERS.items()]
ALL_GETTERS += [(f"aclGet{kind}Size", kind, parameter, {"size": "uint64_t"}) for kind, parameter in GETTERS.items()]


def getter_cases(name, kind, parameter, results):
    types = list(results.values())

    def call(missing=None, **how):
        return lambda: using(kind, lambda handle: getter(name, handle, types, missing), **how)

    yield RuleCase(f"{name}/{parameter}/null", call(null=True), call())
    yield RuleCase(f"{name}/{parameter}/handle", call(alive=False), call())
    for position, result in enumerate(results):
        yield RuleCase(f"{name}/{result}/null", call(missing=position), call())


def facts(tensor):
    """Everything the getters tell."""
    found = []
    for name, results in TENSOR_GETTERS.items():
        places = marks(*results.values())
        ok(getattr(lib, name)(tensor, *places))
        found.append(taken(places[0][0], places[1][0]) if len(places) == 2 else places[0][0])
    return found


def initialise(handle, dims=(4,), storage=(4,), *, strides=None, offset=1, data=0x2000):
    return lib.aclInitTensor(
        handle, ffi.NULL if dims is None else numbers(*dims), len(dims or ()), lib.ACL_INT32,
        ffi.NULL if strides is None else numbers(*strides), offset, lib.ACL_FORMAT_ND,
        ffi.NULL if storage is None else numbers(*storage), len(storage or ()), address(data))  # fmt: skip


def set_address(handle, data=0x3000):
    return lib.aclSetRawTensorAddr(handle, address(data))


def modified(call, *, refused, **how):
    """Calls a function that changes a tensor; a refusal must leave the tensor as it was."""

    def body(handle):
        before = facts(handle) if refused and how == {} else None
        status = call(handle)
        return Result(status, facts(handle) == before if before else None)

    return lambda: using("Tensor", body, **how)


def modifier(rule, refused, accepted, **how):
    return RuleCase(rule, modified(refused, refused=True, **how), modified(accepted, refused=False))


MODIFICATION = [
    modifier("aclInitTensor/tensor/null", initialise, initialise, null=True),
    modifier("aclInitTensor/tensor/handle", initialise, initialise, alive=False),
    modifier("aclInitTensor/viewDimsNum/rank", lambda t: initialise(t, (1,) * 26), lambda t: initialise(t, (1,) * 25)),
    modifier("aclInitTensor/storageDimsNum/rank", lambda t: initialise(t, storage=(1,) * 26),
             lambda t: initialise(t, storage=(1,) * 25)),
    modifier("aclSetRawTensorAddr/tensor/null", set_address, set_address, null=True),
    modifier("aclSetRawTensorAddr/tensor/handle", set_address, set_address, alive=False),
    modifier("aclSetRawTensorAddr/addr/null", lambda t: set_address(t, 0), set_address),
]  # fmt: skip


# ---- rules: executors -------------------------------------------------------------------------------------------------


class Planned:
    """A planned operator with its tensors: gradOutput, self, target, out, all [2]."""

    def __init__(self, *, repeatable=False):
        self.inputs = [Tensor(F32, values) for values in ([1.0, 2.0], [0.5, -1.0], [1.0, -1.0])]
        self.out = blank(F32, (2,))
        status, self.size, self.executor = plan(OPERATOR, *self.inputs, 0, self.out)
        ok(status)
        if repeatable:
            ok(lib.aclSetAclOpExecutorRepeatable(self.executor))

    def run(self):
        execute(OPERATOR, self.size, self.executor)
        return self.out.values()

    def end(self):
        ok(lib.aclDestroyAclOpExecutor(self.executor))


def with_executor(call, *, alive=True, null=False, ends=True):
    planned = Planned()
    if not alive:
        planned.end()
    status = call(ffi.NULL if null else planned.executor)
    if alive and ends:
        planned.end()
    return Result(status)


def executor_cases(name, call, *, ends=True):
    yield RuleCase(f"{name}/executor/null", lambda: with_executor(call, null=True),
                   lambda: with_executor(call, ends=ends))  # fmt: skip
    yield RuleCase(f"{name}/executor/handle", lambda: with_executor(call, alive=False),
                   lambda: with_executor(call, ends=ends))  # fmt: skip


SETTERS = {"aclSetInputTensorAddr": 3, "aclSetOutputTensorAddr": 1, "aclSetTensorAddr": 4}
# How many lists the operator of these cases has for each.
LIST_SETTERS = {"aclSetDynamicInputTensorAddr": 1, "aclSetDynamicOutputTensorAddr": 1, "aclSetDynamicTensorAddr": 2}


def set_in(name, index=0, tensor=None):
    def call(executor):
        living = Tensor(F32, [1.0])
        return getattr(lib, name)(executor, index, living.handle if tensor is None else tensor(), living.memory.address)

    return call


def setter_cases(name, count):
    """`count`: how many tensors the operator has for this setter."""
    yield from executor_cases(name, set_in(name))
    for rule, refused in [
        ("tensor/null", set_in(name, tensor=lambda: ffi.NULL)),
        ("tensor/handle", set_in(name, tensor=dead_tensor)),
        ("index/range", set_in(name, count)),
    ]:
        yield RuleCase(f"{name}/{rule}", lambda refused=refused: with_executor(refused),
                       lambda: with_executor(set_in(name, count - 1)))  # fmt: skip


class ListsPlanned:
    """A planned operator with lists: x and out, each of a tensor [1] and a tensor [2]."""

    OPERATOR = "aclnnForeachAbs"

    def __init__(self):
        self.inputs = [Tensor(F32, values) for values in ([-1.0], [-2.0, 3.0])]
        self.outputs = [blank(F32, (1,)), blank(F32, (2,))]
        self.x, self.out = (self.list_of(tensors) for tensors in (self.inputs, self.outputs))
        status, self.size, self.executor = plan(self.OPERATOR, self.x, self.out)
        ok(status)

    @staticmethod
    def list_of(tensors):
        """The list owns the descriptors."""
        handles = [tensor.handle for tensor in tensors]
        for tensor in tensors:
            tensor.handle = ffi.NULL
        return create_tensor_list(*handles)

    def end(self):
        ok(lib.aclDestroyAclOpExecutor(self.executor))
        self.forget()

    def forget(self):
        for handle in (self.x, self.out):
            ok(lib.aclDestroyTensorList(handle))


def with_lists(name, *, index=0, item=1, tensors=None, alive=True, null=False):
    planned = ListsPlanned()
    if not alive:
        ok(lib.aclDestroyAclOpExecutor(planned.executor))
    given = planned.x if tensors is None else tensors()
    executor = ffi.NULL if null else planned.executor
    status = getattr(lib, name)(executor, index, item, given, planned.inputs[1].memory.address)
    planned.end() if alive else planned.forget()
    return Result(status)


def list_setter_cases(name, lists):
    """`lists`: how many the operator has for this setter."""
    for rule, refused in [
        ("executor/null", {"null": True}),
        ("executor/handle", {"alive": False}),
        ("tensors/null", {"tensors": lambda: ffi.NULL}),
        ("tensors/handle", {"tensors": lambda: dead("TensorList")}),
        ("relativeIndex/range", {"item": 2}),
        ("irIndex/range", {"index": lists}),
    ]:
        yield RuleCase(f"{name}/{rule}", lambda refused=refused: with_lists(name, **refused),
                       lambda: with_lists(name, index=lists - 1))  # fmt: skip


EXECUTORS = [
    *executor_cases("aclSetAclOpExecutorRepeatable", lib.aclSetAclOpExecutorRepeatable),
    *executor_cases("aclDestroyAclOpExecutor", lib.aclDestroyAclOpExecutor, ends=False),
    *itertools.chain.from_iterable(setter_cases(*setter) for setter in SETTERS.items()),
    *itertools.chain.from_iterable(list_setter_cases(*setter) for setter in LIST_SETTERS.items()),
]

RULES = [*CREATION, *DESTRUCTION, *itertools.chain.from_iterable(getter_cases(*each) for each in ALL_GETTERS),
         *MODIFICATION, *EXECUTORS]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rule(case):
    check_rule(case)


# ---- lists as parameters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LIST_SETTERS)
def test_list_setters_refuse_in_order(name):
    call = getattr(lib, name)
    planned, tensors = Planned(), create_tensor_list(create_tensor())
    for status, rule, arguments in [
        (INNER_NULL, "tensors/null", (ffi.NULL, 0, 1, ffi.NULL)),
        (INVALID, "tensors/handle", (ffi.NULL, 0, 1, dead("TensorList"))),
        (INVALID, "relativeIndex/range", (ffi.NULL, 0, 1, tensors)),
        (INNER_NULL, "executor/null", (ffi.NULL, 0, 0, tensors)),
        (INVALID, "irIndex/range", (planned.executor, 0, 0, tensors)),
    ]:
        assert call(*arguments, address(0x1000)) == status
        assert last_rule() == f"{name}/{rule}"
    planned.end()
    assert call(planned.executor, 0, 0, tensors, address(0x1000)) == INNER
    assert last_rule() == f"{name}/executor/handle"
    ok(lib.aclDestroyTensorList(tensors))


def test_tensors_of_lists_move():
    planned = ListsPlanned()
    ok(lib.aclSetAclOpExecutorRepeatable(planned.executor))
    x, first, second = Tensor(F32, [-7.0, 8.0]), blank(F32, (1,)), blank(F32, (2,))
    ok(lib.aclSetDynamicInputTensorAddr(planned.executor, 0, 1, planned.x, x.memory.address))
    ok(lib.aclSetDynamicOutputTensorAddr(planned.executor, 0, 0, planned.out, first.memory.address))
    ok(lib.aclSetDynamicTensorAddr(planned.executor, 1, 1, planned.out, second.memory.address))
    before = [out.bytes() for out in planned.outputs]
    execute(planned.OPERATOR, planned.size, planned.executor)
    assert [first.values().tolist(), second.values().tolist()] == [[1.0], [7.0, 8.0]]
    assert [out.bytes() for out in planned.outputs] == before
    planned.end()


# ---- what the sheet says beyond refusals ------------------------------------------------------------------------------


def test_getters_tell_what_was_given():
    tensor = create_tensor((2, 3), strides=(1, 2), offset=4, storage=(5, 7), data=0x1230)
    assert facts(tensor) == [[2, 3], [5, 7], [1, 2], 4, lib.ACL_FORMAT_NCHW, lib.ACL_FLOAT16, address(0x1230)]
    ok(lib.aclDestroyTensor(tensor))


def test_strides_default_to_row_major():
    tensor = create_tensor((2, 1, 0, 3))
    assert facts(tensor)[2] == [3, 3, 3, 1]
    ok(lib.aclDestroyTensor(tensor))


def test_a_scalar_tensor_has_empty_arrays():
    tensor = create_tensor((), storage=())
    assert facts(tensor)[:3] == [[], [], []]
    ok(lib.aclDestroyTensor(tensor))


@pytest.mark.parametrize("dims, strides", [((-1, 2), (5, 5)), ((2**62, 2**62), (0, -(2**62))), ((3,) * 25, None)])
def test_creation_checks_neither_sizes_nor_strides(dims, strides):
    tensor = create_tensor(dims, strides=strides, offset=-(2**63), data=0)
    assert tensor != ffi.NULL and facts(tensor)[0] == list(dims)
    ok(lib.aclDestroyTensor(tensor))


def test_arguments_are_copied():
    dims = numbers(2, 3)
    tensor = lib.aclCreateTensor(dims, 2, lib.ACL_FLOAT, ffi.NULL, 0, lib.ACL_FORMAT_ND, dims, 2, ffi.NULL)
    dims[0] = dims[1] = -9
    assert facts(tensor)[:3] == [[2, 3], [2, 3], [3, 1]]
    ok(lib.aclDestroyTensor(tensor))


def test_init_keeps_what_is_not_given():
    tensor = create_tensor((2, 3), strides=(1, 2), storage=(6,), data=0x1000)
    ok(initialise(tensor, None, None, offset=3, data=0))
    assert facts(tensor) == [[2, 3], [6], [3, 1], 3, lib.ACL_FORMAT_ND, lib.ACL_INT32, address(0x1000)]
    ok(initialise(tensor, (4,), (9,), strides=(2,)))
    assert facts(tensor) == [[4], [9], [2], 1, lib.ACL_FORMAT_ND, lib.ACL_INT32, address(0x2000)]
    ok(lib.aclDestroyTensor(tensor))


SCALARS = {"FLOAT", "FLOAT16", "BF16", "DOUBLE", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64",
           "BOOL", "COMPLEX64", "COMPLEX128"}  # fmt: skip


@pytest.mark.parametrize("code", range(-2, 45))
def test_scalar_types(code):
    scalar = create_scalar(ffi.cast("aclDataType", code))
    assert (scalar != ffi.NULL) == (code in {getattr(lib, f"ACL_{name}") for name in SCALARS})
    ok(lib.aclDestroyScalar(scalar))


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("null, size, expected", [(True, 5, 0), (True, 0, 0), (False, 0, 0), (True, 2**64 - 1, 0)])
def test_arrays_without_values_are_empty(kind, null, size, expected):
    make, type_name = ARRAYS[kind]
    handle = make(ffi.NULL if null else ffi.new(type_name, 1), size)
    found = ffi.new("uint64_t *", 77)
    ok(getattr(lib, f"aclGet{kind}Size")(handle, found))
    assert found[0] == expected
    ok(destroy(kind, handle))


@pytest.mark.parametrize("kind", MAKERS)
def test_destroying_nothing(kind):
    assert destroy(kind, ffi.NULL) == OK


@pytest.mark.parametrize("kind, other", list(itertools.permutations(MAKERS, 2)))
def test_objects_of_another_kind_are_refused(kind, other):
    handle = MAKERS[other]()
    assert destroy(kind, ffi.cast(f"acl{kind} *", handle)) == INVALID
    ok(destroy(other, handle))


@pytest.mark.parametrize("kind", MAKERS)
def test_memory_that_is_no_object_is_refused(kind):
    for pointer in (ffi.addressof(FOREIGN), 1, 2**64 - 1, 0x0501_0000_0000_0000, 0x0501_FFFF_FFFF_FFF0):
        assert destroy(kind, ffi.cast(f"acl{kind} *", pointer)) == INVALID


def test_a_list_takes_missing_and_repeated_elements():
    tensor = create_tensor()
    ok(lib.aclDestroyTensorList(create_tensor_list(tensor, ffi.NULL, tensor)))
    assert lib.aclDestroyTensor(tensor) == INVALID


def test_init_and_finalize():
    ok(lib.aclnnInit(ffi.NULL))
    ok(lib.aclnnInit(b"/nonexistent/config.json"))
    ok(lib.aclnnFinalize())


# ---- executors --------------------------------------------------------------------------------------------------------


def test_an_executor_ends_with_its_run():
    planned = Planned()
    planned.run()
    assert getattr(lib, OPERATOR)(ffi.NULL, 0, planned.executor, ffi.NULL) == INNER
    assert lib.aclDestroyAclOpExecutor(planned.executor) == INNER
    assert lib.aclSetAclOpExecutorRepeatable(planned.executor) == INNER


def test_an_executor_ends_with_a_refused_run():
    planned = Planned()
    assert getattr(lib, OPERATOR)(ffi.NULL, 1, planned.executor, ffi.NULL) == NULL_POINTER
    assert lib.aclDestroyAclOpExecutor(planned.executor) == INNER


def test_running_nothing():
    assert getattr(lib, OPERATOR)(ffi.NULL, 0, ffi.NULL, ffi.NULL) == NULL_POINTER
    assert last_rule() == f"{OPERATOR}/executor/null"


def test_a_repeatable_executor_runs_until_it_is_destroyed():
    planned = Planned(repeatable=True)
    first = planned.run()
    for factor in (2.0, -1.0):
        planned.inputs[0].memory.write(F32.encode([factor, 2 * factor]).tobytes())
        numpy.testing.assert_array_equal(planned.run(), factor * first)
    assert getattr(lib, OPERATOR)(ffi.NULL, 1, planned.executor, ffi.NULL) == NULL_POINTER
    numpy.testing.assert_array_equal(planned.run(), -first)
    planned.end()
    assert getattr(lib, OPERATOR)(ffi.NULL, 0, planned.executor, ffi.NULL) == INNER


@pytest.mark.parametrize("prefix", ["acl", "Acl"])
def test_addresses_of_a_repeatable_executor(prefix):
    planned = Planned(repeatable=True)
    planned.run()
    other = Tensor(F32, [4.0, -4.0])
    ok(getattr(lib, f"{prefix}SetInputTensorAddr")(planned.executor, 0, planned.inputs[0].handle, other.memory.address))
    assert facts(planned.inputs[0].handle)[-1] == other.memory.address
    out = blank(F32, (2,))
    ok(getattr(lib, f"{prefix}SetTensorAddr")(planned.executor, 3, out.handle, out.memory.address))
    before = planned.out.bytes()
    planned.run()
    assert planned.out.bytes() == before
    expected = blank(F32, (2,))
    run(OPERATOR, other, *planned.inputs[1:], 0, expected)
    assert out.bytes() == expected.bytes()
    last = blank(F32, (2,))
    ok(getattr(lib, f"{prefix}SetOutputTensorAddr")(planned.executor, 0, last.handle, last.memory.address))
    planned.run()
    assert last.bytes() == expected.bytes()
    planned.end()


def test_a_new_address_keeps_the_offset_of_the_view():
    x = Tensor(F32, [9.0, 1.0, 2.0], shape=(2,), offset=1)
    one, out = Tensor(F32, [1.0]), blank(F32, (2,))
    status, size, executor = plan(OPERATOR, one, x, one, 0, out)
    ok(status)
    ok(lib.aclSetAclOpExecutorRepeatable(executor))
    other = Tensor(F32, [8.0, -1.0, 3.0])
    ok(lib.aclSetInputTensorAddr(executor, 1, x.handle, other.memory.address))
    execute(OPERATOR, size, executor)
    numpy.testing.assert_allclose(out.values(), -1 / (1 + numpy.exp([-1.0, 3.0])), rtol=1e-6)
    ok(lib.aclDestroyAclOpExecutor(executor))


@pytest.mark.parametrize("setter, number", [
    ("aclSetInputTensorAddr", 0), ("aclSetOutputTensorAddr", 0), ("aclSetTensorAddr", 0), ("aclSetTensorAddr", 2),
])  # fmt: skip
def test_a_tensor_in_place_is_input_and_output(setter, number):
    x, other = Tensor(F32, [1.0, 2.0]), Tensor(F32, [4.0, -4.0])
    status, size, executor = plan("aclnnInplaceMul", x, other)
    ok(status)
    ok(lib.aclSetAclOpExecutorRepeatable(executor))
    moved = Tensor(F32, [10.0, 20.0])
    ok(getattr(lib, setter)(executor, number, x.handle, moved.memory.address))
    execute("aclnnInplaceMul", size, executor)
    ok(lib.aclDestroyAclOpExecutor(executor))
    assert moved.values().tolist() == [40.0, -80.0]
    ok(lib.aclSetRawTensorAddr(x.handle, x.memory.address))
    assert x.values().tolist() == [1.0, 2.0]


def test_outputs_count_in_the_order_of_the_header():
    """aclnnBatchNorm: runningMean and runningVar, which are in place, stand before output, saveMean and saveInvstd."""
    x, line = Tensor(F32, numpy.arange(24.0), shape=(2, 3, 4)), [Tensor(F32, [value] * 3) for value in (1.0, 0.0, 0.0, 1.0)]
    outputs = [blank(F32, shape) for shape in ((2, 3, 4), (3,), (3,))]
    status, size, executor = plan("aclnnBatchNorm", x, *line, True, 0.5, 1e-5, *outputs)
    ok(status)
    ok(lib.aclSetAclOpExecutorRepeatable(executor))
    mean, out = Tensor(F32, [100.0] * 3), blank(F32, (2, 3, 4))
    ok(lib.aclSetInputTensorAddr(executor, 3, line[2].handle, mean.memory.address))
    ok(lib.aclSetOutputTensorAddr(executor, 2, outputs[0].handle, out.memory.address))
    assert lib.aclSetOutputTensorAddr(executor, 5, x.handle, x.memory.address) == INVALID
    execute("aclnnBatchNorm", size, executor)
    ok(lib.aclDestroyAclOpExecutor(executor))
    of_channels = numpy.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2).reshape(3, 8)
    numpy.testing.assert_allclose(mean.values(), 0.5 * 100 + 0.5 * of_channels.mean(1))
    expected = (of_channels - of_channels.mean(1)[:, None]) / numpy.sqrt(of_channels.var(1) + 1e-5)[:, None]
    actual = out.values().reshape(2, 3, 4).transpose(1, 0, 2).reshape(3, 8)
    numpy.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_a_list_that_was_null_counts():
    """aclnnGroupedMatmul: y is list number 7, and biasOptional, number 2, is NULL here."""
    tensors = [Tensor(F16, numpy.ones((2, 3))), Tensor(F16, numpy.ones((3, 4))), blank(F16, (2, 4))]
    x, weight, y = (ListsPlanned.list_of([tensor]) for tensor in tensors)
    status, size, executor = plan("aclnnGroupedMatmul", x, weight, *[ffi.NULL] * 6, 0, y)
    ok(status)
    ok(lib.aclSetAclOpExecutorRepeatable(executor))
    out = blank(F16, (2, 4))
    assert lib.aclSetDynamicTensorAddr(executor, 2, 0, y, out.memory.address) == INVALID
    assert last_rule() == "aclSetDynamicTensorAddr/irIndex/range"
    ok(lib.aclSetDynamicTensorAddr(executor, 7, 0, y, out.memory.address))
    execute("aclnnGroupedMatmul", size, executor)
    ok(lib.aclDestroyAclOpExecutor(executor))
    assert out.values().tolist() == [[3.0] * 4] * 2
    for handle in (x, weight, y):
        ok(lib.aclDestroyTensorList(handle))


def test_the_tensor_changes_before_the_executor_is_looked_at():
    tensor = Tensor(I32, [1])
    assert lib.aclSetInputTensorAddr(ffi.NULL, 0, tensor.handle, address(0x4440)) == INNER_NULL
    assert facts(tensor.handle)[-1] == address(0x4440)


def test_phase_one_keeps_what_phase_two_needs():
    """Tensors may be destroyed or changed between the phases: addresses and shapes are those of phase 1."""
    planned = Planned()
    ok(lib.aclSetRawTensorAddr(planned.inputs[0].handle, address(0x1000)))
    for tensor in planned.inputs[1:]:
        tensor.destroy()
    expected = -numpy.array([1, 2]) * numpy.array([1, -1]) / (1 + numpy.exp([0.5, 1.0]))
    numpy.testing.assert_allclose(planned.run(), expected, rtol=1e-6)


def test_a_plan_that_never_runs_is_destroyed():
    planned = Planned()
    planned.end()
    assert lib.aclDestroyAclOpExecutor(planned.executor) == INNER
