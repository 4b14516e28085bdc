"""What mcblas.h has for C++ only: products with a data type for the arithmetic (mcblas 8)."""

import pytest

from tests import native

PROGRAM = r"""
#include <mc_runtime.h>
#include <mcblas.h>

static mcblasStatus_t multiply(mcblasHandle_t handle, const void *a, void *c, macaDataType_t type, macaDataType_t compute,
                               bool strided)
{
    const double two = 2, zero = 0;
    const float single = 2, none = 0;
    const mcblas_half half(2.0f), nothing(0.0f);
    const void *alpha = type == MACA_R_64F ? static_cast<const void *>(&two)
                        : type == MACA_R_16F && compute == MACA_R_16F ? static_cast<const void *>(&half) : &single;
    const void *beta = type == MACA_R_64F ? static_cast<const void *>(&zero)
                       : type == MACA_R_16F && compute == MACA_R_16F ? static_cast<const void *>(&nothing) : &none;
    return strided ? mcblasGemmStridedBatchedEx(handle, MCBLAS_OP_N, MCBLAS_OP_N, 1, 1, 1, alpha, a, type, 1, 0, a, type, 1, 0,
                                                beta, c, type, 1, 0, 1, compute, MCBLAS_GEMM_DEFAULT)
                   : mcblasGemmEx(handle, MCBLAS_OP_N, MCBLAS_OP_N, 1, 1, 1, alpha, a, type, 1, a, type, 1, beta, c, type, 1,
                                  compute, MCBLAS_GEMM_DEFAULT);
}

template <class T> static void show(mcblasHandle_t handle, macaDataType_t type, macaDataType_t compute, T value)
{
    T *a = nullptr, *c = nullptr, result = T();
    mcMalloc(&a, sizeof(T));
    mcMalloc(&c, sizeof(T));
    mcMemcpy(a, &value, sizeof(T), mcMemcpyHostToDevice);
    for (int strided = 0; strided < 2; strided++) {
        mcMemcpy(c, &result, sizeof(T), mcMemcpyHostToDevice);
        const int status = multiply(handle, a, c, type, compute, strided != 0);
        mcMemcpy(&result, c, sizeof(T), mcMemcpyDeviceToHost);
        printf("%d %d: %d %g\n", type, compute, status, static_cast<double>(result));
        result = T();
    }
}

int main()
{
    mcblasHandle_t handle;
    mcblasCreate(&handle);
    show(handle, MACA_R_32F, MACA_R_32F, 3.0f);
    show(handle, MACA_R_64F, MACA_R_64F, 3.0);
    show(handle, MACA_R_16F, MACA_R_16F, mcblas_half(3.0f));
    show(handle, MACA_R_16F, MACA_R_32F, mcblas_half(3.0f));
    show(handle, MACA_R_16BF, MACA_R_32F, mcblas_bfloat16(3.0f));
    show(handle, MACA_R_32F, MACA_R_8I, 3.0f);
    show(handle, MACA_R_16F, MACA_R_16BF, mcblas_half(3.0f));
    show(handle, MACA_R_32F, static_cast<macaDataType_t>(99), 3.0f);
    return mcblasDestroy(handle);
}
"""


def test_products_with_a_data_type_for_the_arithmetic():
    source = native.work_folder() / "mcblas_cpp.cpp"
    source.write_text(PROGRAM)
    printed = native.check([native.build_vendor(source, "maca", compiler="g++", flags=tuple(native.STRICT))]).split("\n")
    done, not_supported, invalid = "0 18", "15 0", "7 0"
    expected = {"0 0": done, "1 1": done, "2 2": done, "2 0": done, "14 0": done, "0 3": not_supported,
                "2 14": not_supported,
                "0 99": invalid}  # fmt: skip
    assert printed[:-1] == [f"{types}: {outcome}" for types, outcome in expected.items() for _ in range(2)]


CONVERSIONS = r"""
#include <common/maca_bfloat16.h>
#include <common/maca_fp16.h>
#include <cstdio>

int main()
{
    const float values[] = {0.1f, 65519.0f, 65520.0f, -3e-8f, 1.00390625f};
    for (float value : values) {
        printf("%.9g %.9g %.9g %.9g\n", __half2float(__float2half(value)), __half2float(__float2half_rn(value)),
               __bfloat162float(__float2bfloat16(value)), __bfloat162float(__float2bfloat16_rn(value)));
    }
    return 0;
}
"""


def test_conversions_of_16_bit_numbers():
    """Programs fill and read their arrays with them."""
    source = native.work_folder() / "conversions.cpp"
    source.write_text(CONVERSIONS)
    printed = native.check([native.build_vendor(source, "maca", compiler="g++", flags=tuple(native.STRICT))]).split("\n")
    halves = [0.0999755859375, 65504, float("inf"), -(2**-24), 1.00390625]
    brains = [0.10009765625, 65536, 65536, -3.0035153031349182e-08, 1.0]  # of 1.00390625, a tie, the even one
    assert [[float(number) for number in line.split()] for line in printed[:-1]] == [
        [pytest.approx(half, rel=1e-8)] * 2 + [pytest.approx(brain, rel=1e-8)] * 2 for half, brain in zip(halves, brains)]
