"""Half precision, sizes of elements, data buffers, product, log (cann-runtime 8 and 9)."""

import math
import os
import subprocess
import sys

import numpy
import pytest
from understudy.ascend import ffi, lib

from tests.conformance.harness import run_python


def half_value(bits: int) -> float:
    """cann-runtime 8, aclFloat16ToFloat: exponent 31 is an ordinary exponent."""
    sign = -1.0 if bits >> 15 else 1.0
    exponent, mantissa = (bits >> 10) & 31, bits & 1023
    if exponent == 0:
        return sign * math.ldexp(mantissa, -24)
    return sign * math.ldexp(1024 + mantissa, exponent - 25)


def nearest_half(value: float) -> int:
    """cann-runtime 8, aclFloatToFloat16: to nearest even, subnormals kept, everything too large saturates."""
    sign = 0x8000 if math.copysign(1.0, value) < 0 else 0
    if not math.isfinite(value) or abs(value) >= 65520:
        return sign | 0x7BFF
    return sign | int(numpy.float16(abs(value)).view(numpy.uint16))


def bits_of_float(value: float) -> int:
    return int(numpy.float32(value).view(numpy.uint32))


def test_every_half_value():
    for bits in range(1 << 16):
        assert bits_of_float(lib.aclFloat16ToFloat(bits)) == bits_of_float(half_value(bits)), hex(bits)


@pytest.mark.parametrize("bits, value", [(0x7C00, 65536.0), (0x7E00, 98304.0), (0xFC00, -65536.0), (0x8000, -0.0)])
def test_halves_the_sheet_names(bits, value):
    assert bits_of_float(lib.aclFloat16ToFloat(bits)) == bits_of_float(value)


def test_every_half_comes_back():
    for bits in range(1 << 16):
        if (bits >> 10) & 31 != 31:
            assert lib.aclFloatToFloat16(half_value(bits)) == bits


def test_rounding_around_every_half():
    """The ties between neighbouring halves, and the floats on both sides of each tie."""
    for bits in range(0x7BFF):
        tie = numpy.float32((half_value(bits) + half_value(bits + 1)) / 2)
        for value in (numpy.nextafter(tie, numpy.float32(0)), tie, numpy.nextafter(tie, numpy.float32(1e9))):
            assert lib.aclFloatToFloat16(float(value)) == nearest_half(float(value)), (hex(bits), value)
            assert lib.aclFloatToFloat16(-float(value)) == nearest_half(-float(value)), (hex(bits), -value)


@pytest.mark.parametrize("value, bits", [
    (65504.0, 0x7BFF), (65519.99, 0x7BFF), (65520.0, 0x7BFF), (1e30, 0x7BFF), (math.inf, 0x7BFF), (-math.inf, 0xFBFF),
    (math.nan, 0x7BFF), (-math.nan, 0xFBFF), (0.0, 0), (-0.0, 0x8000), (2.0**-24, 1), (2.0**-25, 0), (1e-45, 0),
])  # fmt: skip
def test_edges_of_the_half_range(value, bits):
    assert lib.aclFloatToFloat16(value) == bits


def test_random_floats_round_as_the_oracle():
    random = numpy.random.default_rng(7)
    for bits in random.integers(0, 1 << 32, 20000, dtype=numpy.uint32):
        value = float(bits.view(numpy.float32))
        if not math.isnan(value):
            assert lib.aclFloatToFloat16(value) == nearest_half(value), value


SIZES = {
    0: "ACL_STRING ACL_DT_UNDEFINED",
    1: "ACL_INT8 ACL_UINT8 ACL_BOOL ACL_INT4 ACL_UINT1 ACL_HIFLOAT8 ACL_FLOAT8_E5M2 ACL_FLOAT8_E4M3FN ACL_FLOAT8_E8M0",
    2: "ACL_FLOAT16 ACL_BF16 ACL_INT16 ACL_UINT16",
    4: "ACL_FLOAT ACL_INT32 ACL_UINT32 ACL_COMPLEX32",
    8: "ACL_INT64 ACL_UINT64 ACL_DOUBLE ACL_COMPLEX64 ACL_FLOAT6_E3M2 ACL_FLOAT6_E2M3 ACL_FLOAT4_E2M1 ACL_FLOAT4_E1M2",
    16: "ACL_COMPLEX128",
}


def test_size_of_every_element_type():
    expected = {getattr(lib, name): size for size, names in SIZES.items() for name in names.split()}
    assert len(expected) == len(ffi.typeof("aclDataType").elements)
    for number in range(-1, 200):
        assert lib.aclDataTypeSize(ffi.cast("aclDataType", number)) == expected.get(number, 8), number


def test_data_buffers_remember_what_they_are_given():
    buffer = lib.aclCreateDataBuffer(ffi.cast("void *", 0x1234), (1 << 32) + 5)
    assert ffi.cast("uintptr_t", lib.aclGetDataBufferAddr(buffer)) == 0x1234
    assert lib.aclGetDataBufferSizeV2(buffer) == (1 << 32) + 5
    assert lib.aclGetDataBufferSize(buffer) == 5
    assert lib.aclUpdateDataBuffer(buffer, ffi.NULL, 7) == 0
    assert lib.aclGetDataBufferAddr(buffer) == ffi.NULL and lib.aclGetDataBufferSizeV2(buffer) == 7
    assert lib.aclDestroyDataBuffer(buffer) == 0
    for gone in (buffer, ffi.NULL):
        assert lib.aclGetDataBufferAddr(gone) == ffi.NULL
        assert lib.aclGetDataBufferSizeV2(gone) == 0 and lib.aclGetDataBufferSize(gone) == 0


@pytest.mark.parametrize("soc, name, bf16", [
    ("Ascend910B", "Ascend910B1", 1), ("Ascend910", "Ascend910A", 0), ("Ascend910_93", "Ascend910_9391", 1),
])  # fmt: skip
def test_product(soc, name, bf16):
    source = """
from understudy.ascend import ffi, lib
value = ffi.new("int32_t *")
print(ffi.string(lib.aclrtGetSocName()).decode())
for attribute in (lib.ACL_CANN_ATTR_INF_NAN, lib.ACL_CANN_ATTR_BF16, lib.ACL_CANN_ATTR_JIT_COMPILE):
    assert lib.aclGetCannAttribute(attribute, value) == 0
    print(value[0])
"""
    assert run_python(source, {"UNDERSTUDY_SOC": soc}).split() == [name, str(bf16), str(bf16), "0"]


def test_device_capabilities_are_plausible():
    value = ffi.new("int64_t *")
    for number in (lib.ACL_DEVICE_INFO_AI_CORE_NUM, lib.ACL_DEVICE_INFO_VECTOR_CORE_NUM, lib.ACL_DEVICE_INFO_L2_SIZE):
        assert lib.aclGetDeviceCapability(0, number, value) == 0
        assert value[0] > 0
    assert value[0] >= 1 << 20


LOG = """
from understudy.ascend import ffi, lib
for level in (lib.ACL_DEBUG, lib.ACL_INFO, lib.ACL_WARNING, lib.ACL_ERROR):
    lib.aclAppLog(level, b"work", b"file.c", 12, b"%s is %d", ffi.new("char[]", b"x"), ffi.cast("int", level))
lib.aclAppLog(lib.ACL_ERROR, ffi.NULL, ffi.NULL, 0, ffi.NULL)
"""


@pytest.mark.parametrize("threshold, lines", [("debug", 4), ("warn", 2), ("error", 1), ("off", 0)])
def test_application_log(threshold, lines):
    done = subprocess.run([sys.executable, "-c", LOG], env={**os.environ, "UNDERSTUDY_LOG": threshold}, text=True,
                          capture_output=True, check=True)
    found = [line for line in done.stderr.splitlines() if "work file.c:12 x is" in line]
    assert len(found) == lines
    assert lines == 0 or found[-1].endswith("x is 3")
