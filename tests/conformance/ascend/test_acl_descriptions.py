"""Descriptions of tensors, attributes of operators, options of the compiler of operators (cann-runtime 10)."""

import contextlib

import pytest
from understudy.ascend import ffi, lib

from tests.conformance.ascend.acl_support import Out, case, with_out
from tests.conformance.harness import Result, check_rule


@contextlib.contextmanager
def description(*sizes: int):
    made = lib.aclCreateTensorDesc(0, len(sizes), ffi.new("int64_t[]", sizes), 2)
    assert made != ffi.NULL
    try:
        yield made
    finally:
        lib.aclDestroyTensorDesc(made)


@contextlib.contextmanager
def attributes():
    made = lib.aclopCreateAttr()
    try:
        yield made
    finally:
        lib.aclopDestroyAttr(made)


def destroyed(maker, *arguments):
    with maker(*arguments) as made:
        pass
    return made


def sizes(*values: int):
    return ffi.new("int64_t[]", values or [0])


def on_description(call):
    """A call with a description of [2,3]; what it gives back is the status."""
    def run():
        with description(2, 3) as desc:
            return call(desc)

    return run


def create(count: int, values) -> Result:
    """The status of a creation: 0 when there is a description."""
    made = lib.aclCreateTensorDesc(0, count, values, 2)
    lib.aclDestroyTensorDesc(made)
    return Result(0 if made != ffi.NULL else 100000)


def dimension(desc, index: int = 1, null: bool = False):
    return with_out("int64_t", lambda cell: lib.aclGetTensorDescDimV2(desc, index, ffi.NULL if null else cell))()


def dimension_range(desc, index: int = 1, room: int = 2, null: bool = False):
    out = Out("aclrtUuid")  # 16 bytes, like two sizes
    cell = ffi.cast("int64_t *", out.cell)
    return out.result(lib.aclGetTensorDescDimRange(desc, index, room, ffi.NULL if null else cell))


RANGES = ffi.new("int64_t[2][2]", [[1, 2], [3, 4]])
CALLS = {  # function -> a legal call with a description of two dimensions
    "aclGetTensorDescDimV2": dimension,
    "aclGetTensorDescDimRange": dimension_range,
    "aclSetTensorShapeRange": lambda desc: lib.aclSetTensorShapeRange(desc, 2, RANGES),
    "aclSetTensorShape": lambda desc: lib.aclSetTensorShape(desc, 2, sizes(4, 5)),
    "aclSetTensorStorageShape": lambda desc: lib.aclSetTensorStorageShape(desc, 2, sizes(4, 5)),
    "aclSetTensorOriginShape": lambda desc: lib.aclSetTensorOriginShape(desc, 2, sizes(4, 5)),
    "aclSetTensorFormat": lambda desc: lib.aclSetTensorFormat(desc, 0),
    "aclSetTensorStorageFormat": lambda desc: lib.aclSetTensorStorageFormat(desc, 0),
    "aclSetTensorOriginFormat": lambda desc: lib.aclSetTensorOriginFormat(desc, 0),
    "aclSetTensorPlaceMent": lambda desc: lib.aclSetTensorPlaceMent(desc, 2),
    "aclSetTensorValueRange": lambda desc: lib.aclSetTensorValueRange(desc, 2, RANGES),
    "aclSetTensorDynamicInput": lambda desc: lib.aclSetTensorDynamicInput(desc, b"x"),
    "aclSetTensorConst": lambda desc: lib.aclSetTensorConst(desc, sizes(7), 8),
}
SHAPE_SETTERS = ["aclSetTensorShape", "aclSetTensorStorageShape", "aclSetTensorOriginShape"]


def description_cases():
    for name, call in CALLS.items():
        legal = on_description(call)
        yield case(f"{name}/desc/null", lambda call=call: call(ffi.NULL), legal)
        yield case(f"{name}/desc/dead", lambda call=call: call(destroyed(description, 2, 3)), legal)
    for name in SHAPE_SETTERS:
        def set_shape(count, values, name=name):
            return on_description(lambda desc: getattr(lib, name)(desc, count, values))

        yield case(f"{name}/numDims/range", set_shape(65, sizes(*[1] * 65)), set_shape(64, sizes(*[1] * 64)))
        yield case(f"{name}/dims/range", set_shape(2, sizes(-2, 1)), set_shape(1, sizes(-2)))
        yield case(f"{name}/dims/null", set_shape(1, ffi.NULL), set_shape(0, ffi.NULL))
    for name, call in (("aclGetTensorDescDimV2", dimension), ("aclGetTensorDescDimRange", dimension_range)):
        yield case(f"{name}/index/range", on_description(lambda desc, call=call: call(desc, 2)),
                   on_description(lambda desc, call=call: call(desc, 1)))
    for name, refused in {
        "aclGetTensorDescDimV2/dimSize/null": lambda desc: dimension(desc, null=True),
        "aclGetTensorDescDimRange/dimRange/null": lambda desc: dimension_range(desc, null=True),
        "aclGetTensorDescDimRange/dimRangeNum/range": lambda desc: dimension_range(desc, room=1),
        "aclSetTensorShapeRange/dimsRange/null": lambda desc: lib.aclSetTensorShapeRange(desc, 2, ffi.NULL),
        "aclSetTensorShapeRange/dimsCount/count": lambda desc: lib.aclSetTensorShapeRange(desc, 1, RANGES),
        "aclSetTensorValueRange/valueRange/null": lambda desc: lib.aclSetTensorValueRange(desc, 2, ffi.NULL),
        "aclSetTensorDynamicInput/dynamicInputName/null": lambda desc: lib.aclSetTensorDynamicInput(desc, ffi.NULL),
        "aclSetTensorConst/dataBuffer/null": lambda desc: lib.aclSetTensorConst(desc, ffi.NULL, 8),
        "aclSetTensorConst/length/range": lambda desc: lib.aclSetTensorConst(desc, sizes(7), 0),
        "aclSetTensorPlaceMent/memType/range": lambda desc: lib.aclSetTensorPlaceMent(desc, 3),
    }.items():
        yield case(name, on_description(refused), on_description(CALLS[name.partition("/")[0]]))


VALUES = {  # function -> what follows the name in a legal call
    "aclopSetAttrBool": (1,), "aclopSetAttrInt": (-5,), "aclopSetAttrFloat": (0.5,), "aclopSetAttrString": (b"x",),
    "aclopSetAttrDataType": (1,),
    "aclopSetAttrListDataType": (1, ffi.new("aclDataType[]", [0])),
    "aclopSetAttrListBool": (2, ffi.new("uint8_t[]", [0, 1])),
    "aclopSetAttrListInt": (2, sizes(3, 4)),
    "aclopSetAttrListFloat": (1, ffi.new("float[]", [1.5])),
    "aclopSetAttrListString": (1, ffi.new("const char *[]", [ffi.NULL])),
}  # fmt: skip
LISTS = [sizes(1, 2), sizes(3)]
VALUES["aclopSetAttrListListInt"] = (2, ffi.new("int[]", [2, 1]), ffi.new("const int64_t *[]", LISTS))


def with_attributes(name: str, values, label=b"axis"):
    def run():
        with attributes() as attr:
            return getattr(lib, name)(attr, label, *values)

    return run


def attribute_cases():
    for name, values in VALUES.items():
        legal = with_attributes(name, values)
        yield case(f"{name}/attr/null", lambda n=name, v=values: getattr(lib, n)(ffi.NULL, b"axis", *v), legal)
        yield case(f"{name}/attr/dead",
                   lambda n=name, v=values: getattr(lib, n)(destroyed(attributes), b"axis", *v), legal)
        yield case(f"{name}/attrName/null", with_attributes(name, values, ffi.NULL), legal)
        if "List" in name:
            nothing = [ffi.NULL] * (len(values) - 1)
            yield case(f"{name}/numValues/range", with_attributes(name, (-1, *values[1:])), legal)
            yield case(f"{name}/values/null", with_attributes(name, (1, *nothing)), with_attributes(name, (0, *nothing)))


def option(opt: int = 3, room: int = 64, null: bool = False):
    out = Out("aclrtIpcEventHandle")  # 64 bytes
    return out.result(lib.aclGetCompileopt(opt, ffi.NULL if null else ffi.cast("char *", out.cell), room))


def size_of_option(opt: int) -> Result:
    """A size is no status: 0 bytes are a refusal."""
    return Result(0 if lib.aclGetCompileoptSize(opt) else 100000)


RULES = [
    *description_cases(),
    case("aclCreateTensorDesc/numDims/range", lambda: create(65, sizes(*[1] * 65)),
         lambda: create(64, sizes(*[1] * 64))),
    case("aclCreateTensorDesc/dims/range", lambda: create(2, sizes(-2, -2)), lambda: create(2, sizes(-1, 0))),
    case("aclCreateTensorDesc/dims/null", lambda: create(1, ffi.NULL), lambda: create(0, ffi.NULL)),
    *attribute_cases(),
    case("aclSetCompileopt/opt/range", lambda: lib.aclSetCompileopt(17, b""), lambda: lib.aclSetCompileopt(16, b"")),
    case("aclSetCompileopt/value/null", lambda: lib.aclSetCompileopt(3, ffi.NULL), lambda: lib.aclSetCompileopt(3, b"")),
    case("aclGetCompileopt/opt/range", lambda: option(17), lambda: option(16).status),
    case("aclGetCompileopt/value/null", lambda: option(null=True), lambda: option().status),
    case("aclGetCompileopt/length/range", lambda: option(10, room=7), lambda: option(10, room=8).status),
    case("aclGetCompileoptSize/opt/range", lambda: size_of_option(17), lambda: size_of_option(16)),
]


@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.rule)
def test_rule(entry):
    check_rule(entry)
