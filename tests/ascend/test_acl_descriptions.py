"""Descriptions of tensors, attributes, options of the compiler: what is set is read back; operators by name are named."""

import ctypes

import pytest
from understudy import paths
from understudy.ascend import ffi, lib

from tests.conformance.harness import run_python


@pytest.fixture
def description():
    made = []

    def make(dtype, *sizes, format=2):
        made.append(lib.aclCreateTensorDesc(dtype, len(sizes), ffi.new("int64_t[]", sizes or [0]), format))
        return made[-1]

    yield make
    for desc in made:
        lib.aclDestroyTensorDesc(desc)


def dimensions(desc):
    count, size = lib.aclGetTensorDescNumDims(desc), ffi.new("int64_t *")
    assert lib.aclGetTensorDescDimV2(desc, count, size) == 100000
    return [(lib.aclGetTensorDescDimV2(desc, axis, size), size[0])[1] for axis in range(count)]


@pytest.mark.parametrize("dtype, sizes, elements, width", [
    ("ACL_FLOAT", (), 1, 4), ("ACL_FLOAT16", (2, 3), 6, 2), ("ACL_INT64", (4, 0, 5), 0, 8), ("ACL_BOOL", (7,), 7, 1),
    ("ACL_FLOAT", (2, -1), 0, 4), ("ACL_DOUBLE", (1 << 40, 1 << 40), 0, 8),
])  # fmt: skip
def test_what_a_description_tells(description, dtype, sizes, elements, width):
    desc = description(getattr(lib, dtype), *sizes, format=lib.ACL_FORMAT_NCHW)
    assert lib.aclGetTensorDescType(desc) == getattr(lib, dtype)
    assert lib.aclGetTensorDescFormat(desc) == lib.ACL_FORMAT_NCHW
    assert dimensions(desc) == list(sizes)
    assert lib.aclGetTensorDescElementCount(desc) == elements
    assert lib.aclGetTensorDescSize(desc) == elements * width


def test_unknown_number_of_dimensions(description):
    desc = description(lib.ACL_FLOAT, -2)
    assert lib.aclGetTensorDescNumDims(desc) == lib.ACL_UNKNOWN_RANK
    assert lib.aclGetTensorDescElementCount(desc) == 0


def test_getters_of_no_description_are_harmless(description):
    """A status in place of a count makes the PyTorch adapter loop for ever."""
    gone = lib.aclCreateTensorDesc(lib.ACL_FLOAT, 0, ffi.NULL, 2)
    lib.aclDestroyTensorDesc(gone)
    lib.aclDestroyTensorDesc(gone)
    lib.aclDestroyTensorDesc(ffi.NULL)
    for desc in (gone, ffi.NULL):
        assert lib.aclGetTensorDescNumDims(desc) == 0 and lib.aclGetTensorDescElementCount(desc) == 0
        assert lib.aclGetTensorDescSize(desc) == 0 and lib.aclGetTensorDescDim(desc, 0) == -1
        assert lib.aclGetTensorDescType(desc) == lib.ACL_DT_UNDEFINED
        assert lib.aclGetTensorDescFormat(desc) == lib.ACL_FORMAT_UNDEFINED
        assert lib.aclGetTensorDescAddress(desc) == ffi.NULL and ffi.string(lib.aclGetTensorDescName(desc)) == b""
        lib.aclSetTensorDescName(desc, b"x")


def test_names_ranges_constants_and_shapes_before_the_device(description):
    desc = description(lib.ACL_INT64, 3, -1)
    lib.aclSetTensorDescName(desc, b"weight")
    assert ffi.string(lib.aclGetTensorDescName(desc)) == b"weight"
    lib.aclSetTensorDescName(desc, ffi.NULL)
    assert ffi.string(lib.aclGetTensorDescName(desc)) == b""
    found = ffi.new("int64_t[2]")
    assert [(lib.aclGetTensorDescDimRange(desc, axis, 2, found), *found) for axis in (0, 1)] == [(0, 3, 3), (0, 0, -1)]
    assert lib.aclSetTensorShapeRange(desc, 2, ffi.new("int64_t[2][2]", [[3, 3], [1, 16]])) == 0
    assert (lib.aclGetTensorDescDimRange(desc, 1, 2, found), *found) == (0, 1, 16)
    values = ffi.new("int64_t[]", [5, 6])
    assert lib.aclSetTensorConst(desc, values, 16) == 0
    values[0] = 0
    kept = ffi.cast("int64_t *", lib.aclGetTensorDescAddress(desc))
    assert (kept[0], kept[1]) == (5, 6)
    assert lib.aclSetTensorShape(desc, 1, ffi.new("int64_t[]", [24])) == 0
    assert lib.aclSetTensorFormat(desc, lib.ACL_FORMAT_FRACTAL_NZ) == 0
    assert (dimensions(desc), lib.aclGetTensorDescFormat(desc)) == ([3, -1], 2)
    assert lib.aclSetTensorOriginShape(desc, 1, ffi.new("int64_t[]", [24])) == 0
    assert lib.aclSetTensorOriginFormat(desc, lib.ACL_FORMAT_NCHW) == 0
    assert (dimensions(desc), lib.aclGetTensorDescFormat(desc)) == ([24], lib.ACL_FORMAT_NCHW)


def test_an_operator_by_name_is_refused_by_name(description):
    inputs = ffi.new("aclTensorDesc *[]", [description(lib.ACL_FLOAT, 2, 3), description(lib.ACL_INT64)])
    outputs = ffi.new("aclTensorDesc *[]", [description(lib.ACL_BOOL, -2)])
    attr = lib.aclopCreateAttr()
    assert lib.aclopSetAttrInt(attr, b"axis", -1) == 0 and lib.aclopSetAttrBool(attr, b"keep_dims", 1) == 0
    assert lib.aclopSetAttrListFloat(attr, b"scales", 2, ffi.new("float[]", [0.5, 2])) == 0
    lists = [ffi.new("int64_t[]", [1, 2]), ffi.new("int64_t[]", [3])]
    assert lib.aclopSetAttrListListInt(attr, b"pads", 2, ffi.new("int[]", [2, 1]),
                                       ffi.new("const int64_t *[]", lists)) == 0
    assert lib.aclopSetAttrString(attr, b"mode", b"floor") == 0
    assert lib.aclopSetAttrDataType(attr, b"dtype", lib.ACL_FLOAT16) == 0
    status = lib.aclopCompile(b"FloorMod", 2, inputs, 1, outputs, attr, 0, 0, ffi.NULL)
    text = last_text()
    assert status == lib.ACL_ERROR_RT_FEATURE_NOT_SUPPORT
    assert text == ("operator FloorMod by name is not emulated (inputs ACL_FLOAT [2,3], ACL_INT64 []; outputs ACL_BOOL [?]; "
                    "attributes axis=-1, keep_dims=true, scales=[0.5,2], "
                    'pads=[[1,2],[3]], mode="floor", dtype=ACL_FLOAT16)')
    lib.aclopDestroyAttr(attr)
    lib.aclopDestroyAttr(attr)


def last_text() -> str:
    return ffi.string(lib.understudy_last_error()).decode()


def last_rule() -> str:
    return ffi.string(lib.understudy_last_rule()).decode()


def test_an_operator_looked_up_in_vain_is_named_by_the_next_description(description):
    libc = ctypes.CDLL(None)
    libc.dlopen.restype = libc.dlsym.restype = ctypes.c_void_p
    libc.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library = libc.dlopen(str(paths.STACKS["ascend"].library_path / "libopapi.so").encode(), 2)
    assert libc.dlsym(library, b"aclnnNoSuchOperator") is None
    assert description(lib.ACL_FLOAT, 2) != ffi.NULL
    assert last_rule() == "aclCreateTensorDesc/operator/missing"
    assert last_text() == "the program looked for aclnnNoSuchOperator, which is not emulated"
    lib.understudy_clear_last_error()
    assert description(lib.ACL_FLOAT, 2) != ffi.NULL and last_rule() == ""
    assert libc.dlsym(library, b"no_such_function") is None
    assert description(lib.ACL_FLOAT, 2) != ffi.NULL and last_rule() == ""


def test_options_of_the_compiler_are_kept():
    def read(opt):
        text = ffi.new("char[]", lib.aclGetCompileoptSize(opt))
        assert lib.aclGetCompileopt(opt, text, len(text)) == 0
        return ffi.string(text)

    assert read(lib.ACL_OP_JIT_COMPILE) == b"disable"
    assert read(lib.ACL_OP_PERFORMANCE_MODE) == b""
    for value in (b"normal", b"", b"high"):
        assert lib.aclSetCompileopt(lib.ACL_OP_PERFORMANCE_MODE, value) == 0
        assert read(lib.ACL_OP_PERFORMANCE_MODE) == value


def test_initialisation_lets_operators_by_name_be_asked_for_late_unless_told_otherwise():
    source = """
import ctypes
from understudy.ascend import ffi, lib
assert lib.aclInit(ffi.NULL) == 0
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print(libc.getenv(b"ACL_OP_INIT_MODE").decode())
"""
    assert run_python(source, {}).strip() == "1"
    assert run_python(source, {"ACL_OP_INIT_MODE": "2"}).strip() == "2"


@pytest.mark.parametrize("devices, visible, numbers", [
    (4, "0,1,2,3", [0, 1, 2, 3]), (4, "2,3", [2, 3]), (4, "1,9,2", [1]), (4, "2,1", [2]), (4, "x", []), (4, "", range(4)),
    (2, "0,1,2", [0, 1]), (4, "1,,2", [1]), (4, "1 ,2", []),
])  # fmt: skip
def test_visible_devices(devices, visible, numbers):
    source = """
from understudy.ascend import ffi, lib
count, chip = ffi.new("uint32_t *"), ffi.new("int64_t *")
assert lib.aclrtGetDeviceCount(count) == 0
for device in range(count[0]):
    assert lib.aclrtGetDeviceInfo(device, lib.ACL_DEV_ATTR_PHY_CHIP_ID, chip) == 0
    uuid = ffi.new("aclrtUuid *")
    assert lib.aclrtDeviceGetUuid(device, uuid) == 0
    assert int(ffi.string(uuid.bytes, 16)[8:], 16) == chip[0]
    print(chip[0])
"""
    env = {"UNDERSTUDY_DEVICES": str(devices), "ASCEND_RT_VISIBLE_DEVICES": visible}
    assert run_python(source, env).split() == [str(number) for number in numbers]


def test_time_limits_of_operators_come_in_steps():
    step, actual, kept = ffi.new("uint64_t *"), ffi.new("uint64_t *"), ffi.new("uint32_t *")
    assert lib.aclrtGetOpTimeOutInterval(step) == 0
    for wanted, steps in ((1, 1), (step[0], 1), (step[0] + 1, 2), (0, 254), (2**64 - 1, 254), (547_000_000, 128)):
        assert lib.aclrtSetOpExecuteTimeOutV2(wanted, actual) == 0
        assert actual[0] == steps * step[0]
        assert lib.aclrtGetOpExecuteTimeout(kept) == 0 and kept[0] == actual[0] // 1000
