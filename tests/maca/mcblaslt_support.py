"""Objects of mcblasLt, made with attributes by name."""

from __future__ import annotations

from tests.maca.runtime_support import made, ok
from understudy.maca import ffi, lib

KINDS = {"TYPE": "uint32_t", "ORDER": "int32_t", "ROWS": "uint64_t", "COLS": "uint64_t", "LD": "int64_t",
         "BATCH_COUNT": "int32_t", "STRIDED_BATCH_OFFSET": "int64_t", "PLANE_OFFSET": "int64_t", "COMPUTE_TYPE": "int32_t",
         "SCALE_TYPE": "int32_t", "POINTER_MODE": "int32_t", "TRANSA": "int32_t", "TRANSB": "int32_t", "TRANSC": "int32_t",
         "FILL_MODE": "int32_t", "EPILOGUE": "uint32_t", "BIAS_POINTER": "void *", "BIAS_BATCH_STRIDE": "int64_t",
         "A_SCALE_POINTER": "void *", "B_SCALE_POINTER": "void *", "C_SCALE_POINTER": "void *", "D_SCALE_POINTER": "void *",
         "AMAX_D_POINTER": "void *", "FAST_ACCUM": "int8_t", "EPILOGUE_AUX_POINTER": "void *", "EPILOGUE_AUX_LD": "int64_t",
         "EPILOGUE_AUX_DATA_TYPE": "int32_t", "EPILOGUE_AUX_BATCH_STRIDE": "int64_t", "EPILOGUE_AUX_AMAX_POINTER": "void *",
         "BIAS_DATA_TYPE": "int32_t"}


def assign(prefix: str, setter, thing, attributes: dict):
    for name, value in attributes.items():
        place = ffi.new(f"{KINDS[name]} *", value)
        ok(setter(thing, getattr(lib, f"MCBLASLT_{prefix}_{name}"), place, ffi.sizeof(KINDS[name])))
    return thing


def layout(kind: int, rows: int, columns: int, ld: int | None = None, **attributes):
    thing = made("mcblasLtMatrixLayout_t", lib.mcblasLtMatrixLayoutCreate, kind, rows, columns, rows if ld is None else ld)
    return assign("MATRIX_LAYOUT", lib.mcblasLtMatrixLayoutSetAttribute, thing, attributes)


def description(compute: int = 68, scale: int = 0, **attributes):
    thing = made("mcblasLtMatmulDesc_t", lib.mcblasLtMatmulDescCreate, compute, scale)
    return assign("MATMUL_DESC", lib.mcblasLtMatmulDescSetAttribute, thing, attributes)


def transform(scale: int = 0, **attributes):
    thing = made("mcblasLtMatrixTransformDesc_t", lib.mcblasLtMatrixTransformDescCreate, scale)
    return assign("MATRIX_TRANSFORM_DESC", lib.mcblasLtMatrixTransformDescSetAttribute, thing, attributes)


def preference():
    return made("mcblasLtMatmulPreference_t", lib.mcblasLtMatmulPreferenceCreate)


def handle():
    return made("mcblasLtHandle_t", lib.mcblasLtCreate)
