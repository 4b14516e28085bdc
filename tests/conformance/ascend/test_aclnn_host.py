"""Functions of operator headers that run on the host at once: sizes of prepared weights, numbers of quantization."""

import ctypes
import dataclasses
import math

import numpy as np
import pytest

from understudy.ascend import ffi, lib

from tests.conformance.ascend.aclnn_support import F16, F64, I8, INNER_NULL, INVALID, NULL_POINTER, blank, expanded, ok
from tests.conformance.harness import Result, RuleCase, check_rule

libc = ctypes.CDLL(None)


@dataclasses.dataclass(frozen=True)
class Found(Result):
    value: object = None


class Shape:
    def __init__(self, sizes):
        self.handle = lib.aclCreateIntArray(ffi.new("int64_t[]", sizes), len(sizes))

    def __del__(self):
        lib.aclDestroyIntArray(self.handle)


def weight_size(sizes=(3, 5), dtype=None, shape=None, result=True):
    """Of the version without a type where that is None."""
    own = Shape(list(sizes))
    cell = ffi.new("uint64_t *", 77)
    arguments = [own.handle if shape is None else shape, *([] if dtype is None else [dtype]), cell if result else ffi.NULL]
    status = getattr(lib, "aclnnCalculateMatmulWeightSize" + ("" if dtype is None else "V2"))(*arguments)
    return Found(status, cell[0] == 77, cell[0])


def dead_shape():
    handle = lib.aclCreateIntArray(ffi.new("int64_t[]", [1, 2]), 2)
    ok(lib.aclDestroyIntArray(handle))
    return handle


def weight_cases(dtype):
    name = "aclnnCalculateMatmulWeightSize" + ("" if dtype is None else "V2")
    accept = lambda: weight_size(dtype=dtype)
    broken = {"tensorShape/null": {"shape": ffi.NULL}, "tensorShape/handle": {"shape": dead_shape()},
              "tensorShape/rank": {"sizes": [3]}, "tensorShape/size": {"sizes": [3, -5]},
              "weightTensorSize/null": {"result": False}}  # fmt: skip
    return [RuleCase(f"{name}/{tail}", lambda change=change: weight_size(**{"dtype": dtype, **change}), accept)
            for tail, change in broken.items()]  # fmt: skip


def parameters(scale=(0.5, 2), scale_size=None, offset=(3, -1), offset_size=None, numbers=True, size=True):
    scales = ffi.NULL if scale is None else ffi.new("float[]", list(scale))
    offsets = ffi.NULL if offset is None else ffi.new("float[]", list(offset))
    scale_size = len(scale or ()) if scale_size is None else scale_size
    offset_size = len(offset or ()) if offset_size is None else offset_size
    pointer, count = ffi.new("uint64_t **"), ffi.new("uint64_t *", 77)
    status = lib.aclnnTransQuantParam(scales, scale_size, offsets, offset_size, pointer if numbers else ffi.NULL,
                                      count if size else ffi.NULL)  # fmt: skip
    untouched = pointer[0] == ffi.NULL and count[0] == 77
    found = [] if status else list(pointer[0][0 : count[0]])
    if status == 0:
        libc.free(ctypes.c_void_p(int(ffi.cast("uintptr_t", pointer[0]))))
    return Found(status, untouched, found)


def blocks(shape=(20, 17), dtype=F16, format=lib.ACL_FORMAT_ND, source=None, to=29, additional=-1, missing=None):
    """The storage shape for a cast to format `to`; `missing` is the result whose address is NULL."""
    tensor = blank(dtype, shape, format=format) if math.prod(shape) < 2**31 else expanded(dtype, shape)
    results = {"dstShape": ffi.new("int64_t **"), "dstShapeSize": ffi.new("uint64_t *", 77), "actualFormat": ffi.new("int *", 77)}
    status = lib.aclnnNpuFormatCastCalculateSizeAndFormat(
        tensor.handle if source is None else source, to, additional,
        *(ffi.NULL if name == missing else result for name, result in results.items()))  # fmt: skip
    pointer, size, actual = results.values()
    if status == 0:
        libc.free(ctypes.c_void_p(int(ffi.cast("uintptr_t", pointer[0]))))
    return Found(status, pointer[0] == ffi.NULL and size[0] == actual[0] == 77)


def dead_tensor():
    handle = blank(F16, (2, 3)).handle  # whose tensor ends with this line
    return handle


CASTS = {"srcTensor/null": {"source": ffi.NULL}, "srcTensor/handle": {"source": dead_tensor()},
         "srcTensor/format": {"format": lib.ACL_FORMAT_NC}, "srcTensor/dtype": {"dtype": F64},
         "dstShape/null": {"missing": "dstShape"}, "dstShapeSize/null": {"missing": "dstShapeSize"},
         "actualFormat/null": {"missing": "actualFormat"}, "dstFormat/value": {"to": lib.ACL_FORMAT_NC},
         "additionalDtype/dtype": {"additional": lib.ACL_DOUBLE}, "srcTensor/rank": {"shape": (2,) * 7},
         "srcTensor/axes": {"format": lib.ACL_FORMAT_NCHW}, "srcTensor/empty": {"shape": (0, 5)},
         "srcTensor/sizes": {"shape": (2**62 - 1, 2), "dtype": I8}, "dstFormat/cast": {"to": 2}}  # fmt: skip
LEGAL = {"srcTensor/rank": {"shape": (2,) * 6}, "srcTensor/axes": {"format": lib.ACL_FORMAT_NCHW, "shape": (2, 3, 4, 5)},
         "dstFormat/cast": {"to": 2, "format": 29}, "additionalDtype/dtype": {"additional": lib.ACL_INT8},
         "srcTensor/format": {"format": lib.ACL_FORMAT_NCL, "shape": (2, 3, 4)}, "srcTensor/dtype": {"dtype": I8}}  # fmt: skip


BROKEN = {"quantParam/null": {"numbers": False}, "scaleArray/null": {"scale": None}, "quantParamSize/null": {"size": False},
          "scaleSize/range": {"scale_size": 0}, "offsetSize/range": {"offset_size": 0},
          "offsetSize/match": {"offset": (1, 2, 3)},
          "quantParam/exhausted": {"scale_size": 2**60, "offset_size": 1}}  # fmt: skip
SPARSE = np.array([[0, 0, 3, -4, 5, 0, 0, 6, 7, 8], [0, 9, 0, 10, 0, 1, 2, 0, 0, 3], [4, 0, 5, 0, 0, 0, 0, 6, 0, 0],
                   [0, 0, 7, 0, 0, 8, 0, 0, 9, 0]], np.int8)  # fmt: skip


def sparse(weight=SPARSE, sizes=None, shape=None, without=None):
    own = Shape(list(weight.shape if sizes is None else sizes))
    results = {name: ffi.new(f"{kind} *") for name, kind in
               {"sparseWeight": "int8_t *", "sparseWeightDims": "int64_t *", "sparseWeightDimsNum": "uint64_t", "index": "uint8_t *",
                "indexDims": "int64_t *", "indexDimsNum": "uint64_t"}.items()}  # fmt: skip
    given = ffi.NULL if without == "weight" else ffi.from_buffer("int8_t[]", np.ascontiguousarray(weight))
    status = lib.aclnnTransSparse4to2Para(given, own.handle if shape is None else shape,
                                          *(ffi.NULL if name == without else cell for name, cell in results.items()))  # fmt: skip
    pointers = [cell[0] for name, cell in results.items() if not name.endswith("Num")]
    untouched = all(pointer == ffi.NULL for pointer in pointers)
    found = None
    if status == 0:
        shapes = [list(results[name][0][0:4]) for name in ("sparseWeightDims", "indexDims")]
        assert results["sparseWeightDimsNum"][0] == results["indexDimsNum"][0] == 4
        found = [np.array(list(results[name][0][0 : int(np.prod(sizes))])).reshape(sizes)
                 for name, sizes in zip(("sparseWeight", "index"), shapes)]  # fmt: skip
        for pointer in pointers:
            libc.free(ctypes.c_void_p(int(ffi.cast("uintptr_t", pointer))))
    return Found(status, untouched, found)


BROKEN_SPARSE = {"weight/null": {"without": "weight"}, "shape/null": {"shape": ffi.NULL}, "sparseWeight/null": {"without": "index"},
                 "shape/handle": {"shape": dead_shape()}, "shape/size": {"sizes": [4, 0]},
                 "weight/zeros": {"weight": np.array([[0, 0, 1, 0, 1, 1, 0, 1]], np.int8)},
                 "sparseWeight/exhausted": {"sizes": [2**20, 2**36]}}  # fmt: skip
RULES = [*(RuleCase(f"aclnnTransSparse4to2Para/{tail}", lambda change=change: sparse(**change), sparse)
           for tail, change in BROKEN_SPARSE.items()),
         *weight_cases(None), *weight_cases(lib.ACL_BF16),
         RuleCase("aclnnCalculateMatmulWeightSizeV2/dataType/dtype", lambda: weight_size(dtype=lib.ACL_INT32),
                  lambda: weight_size(dtype=lib.ACL_INT8)),
         *(RuleCase(f"aclnnTransQuantParam/{tail}", lambda change=change: parameters(**change),
                    parameters) for tail, change in BROKEN.items()),
         *(RuleCase(f"aclnnNpuFormatCastCalculateSizeAndFormat/{tail}", lambda change=change: blocks(**change),
                    lambda legal=LEGAL.get(tail, {}): blocks(**legal)) for tail, change in CASTS.items())]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.rule)
def test_rules(case):
    check_rule(case)


def test_statuses():
    assert weight_size(shape=ffi.NULL).status == parameters(numbers=False).status == NULL_POINTER
    assert weight_size(sizes=[3, 2**62]).status == parameters(offset=None, offset_size=1).status == INVALID
    assert parameters(scale_size=2**60, offset_size=1).status == INNER_NULL


@pytest.mark.parametrize("sizes, dtype, expected",
                         [([3, 5], None, 256), ([16, 17], lib.ACL_BF16, 512), ([16, 17], lib.ACL_INT8, 512),
                          ([17, 33], lib.ACL_INT8, 2048), ([2, 3, 17, 9], lib.ACL_FLOAT, 6 * 32 * 16),
                          ([0, 5], lib.ACL_FLOAT16, 0)])  # fmt: skip
def test_weight_sizes(sizes, dtype, expected):
    found = weight_size(sizes, dtype)
    assert (found.status, found.value) == (0, expected)


def test_parameters():
    for scale, offset in [((0.1, -2.0), (3.4, -300.0)), ((0.1,), (1.0, 2.5, -3.0)), ((1e-9, 7.0, 3.0), (5.0,)),
                          ((0.3, 0.7), None)]:  # fmt: skip
        count = max(len(scale), len(offset or ()))
        bits = np.resize(np.float32(scale),
                         count).view(np.uint32).astype(np.uint64) & np.uint64(0xFFFFE000) | np.uint64(1 << 46)  # fmt: skip
        for i, value in enumerate(np.resize(offset, count) if offset else []):
            whole = int(min(max(np.floor(abs(value) + 0.5) * np.sign(value), -256), 255))
            bits[i] |= np.uint64((whole & 0x1FF) << 37)
        assert parameters(scale, offset=offset).value == list(bits)


def test_two_of_four():
    """The vendor's table of its instruction, row by row: two numbers, one, none; an uneven end."""
    found = sparse()
    assert found.status == 0
    kept, places = found.value
    assert kept.shape == (1, 1, 16, 32) and places.shape == (1, 1, 16, 8)
    first = np.zeros((16, 32), int)
    first[:4, :6] = [[3, -4, 5, 6, 7, 8], [9, 10, 1, 2, 0, 3], [4, 5, 0, 6, 0, 0], [7, 0, 8, 0, 9, 0]]
    first[1, 4:6] = [3, 0]
    np.testing.assert_array_equal(kept[0, 0], first)
    of_four = [[(2, 2), (0, 2), (0, 0)], [(1, 2), (1, 1), (1, 0)], [(0, 1), (0, 2), (0, 0)], [(2, 0), (1, 0), (0, 0)]]
    bytes_of = np.zeros((16, 8), int)
    for row, pairs in enumerate(of_four):
        flat = [place for pair in pairs for place in pair]
        for at, place in enumerate(flat):
            bytes_of[row, at // 4] |= place << at % 4 * 2
    np.testing.assert_array_equal(places[0, 0], bytes_of)
