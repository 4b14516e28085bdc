/* Which types products go with (mcblas 8.1): compiled into both libraries. */
#include "gemm_types.h"

DType blas_dtype(macaDataType_t type)
{
    switch (type) {
    case MACA_R_16F: return DTYPE_FLOAT16;
    case MACA_R_16BF: return DTYPE_BFLOAT16;
    case MACA_R_32F: return DTYPE_FLOAT32;
    case MACA_R_64F: return DTYPE_FLOAT64;
    case MACA_C_32F: return DTYPE_COMPLEX64;
    case MACA_C_64F: return DTYPE_COMPLEX128;
    case MACA_R_8I: return DTYPE_INT8;
    case MACA_C_8I: return DTYPE_INT8;
    case MACA_R_32I: return DTYPE_INT32;
    default: return DTYPE_NONE;
    }
}

bool blas_is_known_type(macaDataType_t type)
{
    return (unsigned)type <= MACA_R_8F_E5M2;
}

const char *blas_type_name(macaDataType_t type)
{
#define NAMED(name) [name] = #name
    static const char *const names[] = {
        NAMED(MACA_R_32F),  NAMED(MACA_R_64F),  NAMED(MACA_R_16F), NAMED(MACA_R_8I),      NAMED(MACA_C_32F),
        NAMED(MACA_C_64F),  NAMED(MACA_C_16F),  NAMED(MACA_C_8I),  NAMED(MACA_R_8U),      NAMED(MACA_C_8U),
        NAMED(MACA_R_32I),  NAMED(MACA_C_32I),  NAMED(MACA_R_32U), NAMED(MACA_C_32U),     NAMED(MACA_R_16BF),
        NAMED(MACA_C_16BF), NAMED(MACA_R_4I),   NAMED(MACA_C_4I),  NAMED(MACA_R_4U),      NAMED(MACA_C_4U),
        NAMED(MACA_R_16I),  NAMED(MACA_C_16I),  NAMED(MACA_R_16U), NAMED(MACA_C_16U),     NAMED(MACA_R_64I),
        NAMED(MACA_C_64I),  NAMED(MACA_R_64U),  NAMED(MACA_C_64U), NAMED(MACA_R_8F_E4M3), NAMED(MACA_R_8F_E5M2),
    };
    return blas_is_known_type(type) ? names[type] : "?";
}

const char *blas_compute_name(mcblasComputeType_t compute)
{
    static const char *const names[] = {
        NAMED(MCBLAS_COMPUTE_16F),           NAMED(MCBLAS_COMPUTE_16F_PEDANTIC),  NAMED(MCBLAS_COMPUTE_32F),
        NAMED(MCBLAS_COMPUTE_32F_PEDANTIC),  NAMED(MCBLAS_COMPUTE_64F),           NAMED(MCBLAS_COMPUTE_64F_PEDANTIC),
        NAMED(MCBLAS_COMPUTE_32I),           NAMED(MCBLAS_COMPUTE_32I_PEDANTIC),  NAMED(MCBLAS_COMPUTE_32F_FAST_16F),
        NAMED(MCBLAS_COMPUTE_32F_FAST_16BF), NAMED(MCBLAS_COMPUTE_32F_FAST_TF32),
    };
#undef NAMED
    return blas_is_known_compute(compute) ? names[compute] : "?";
}

static const GemmTypes combinations[] = {
    {MCBLAS_COMPUTE_16F, MACA_R_16F, MACA_R_16F, MACA_R_16F, DTYPE_FLOAT32},
    {MCBLAS_COMPUTE_32I, MACA_R_32I, MACA_R_8I, MACA_R_32I, DTYPE_INT64},
    {MCBLAS_COMPUTE_32F, MACA_R_32F, MACA_R_16BF, MACA_R_16BF, DTYPE_FLOAT32},
    {MCBLAS_COMPUTE_32F, MACA_R_32F, MACA_R_16BF, MACA_R_32F, DTYPE_FLOAT32},
    {MCBLAS_COMPUTE_32F, MACA_R_32F, MACA_R_16F, MACA_R_16F, DTYPE_FLOAT32},
    {MCBLAS_COMPUTE_32F, MACA_R_32F, MACA_R_16F, MACA_R_32F, DTYPE_FLOAT32},
    {MCBLAS_COMPUTE_32F, MACA_R_32F, MACA_R_8I, MACA_R_32F, DTYPE_FLOAT32},
    {MCBLAS_COMPUTE_32F, MACA_R_32F, MACA_R_32F, MACA_R_32F, DTYPE_FLOAT32},
    {MCBLAS_COMPUTE_32F, MACA_C_32F, MACA_C_8I, MACA_C_32F, DTYPE_COMPLEX64},
    {MCBLAS_COMPUTE_32F, MACA_C_32F, MACA_C_32F, MACA_C_32F, DTYPE_COMPLEX64},
    {MCBLAS_COMPUTE_64F, MACA_R_64F, MACA_R_64F, MACA_R_64F, DTYPE_FLOAT64},
    {MCBLAS_COMPUTE_64F, MACA_C_64F, MACA_C_64F, MACA_C_64F, DTYPE_COMPLEX128},
};

/* Pedantic and fast modes allow the library something: the arithmetic is the plain one's. */
static mcblasComputeType_t plain_compute(mcblasComputeType_t compute)
{
    switch (compute) {
    case MCBLAS_COMPUTE_16F_PEDANTIC: return MCBLAS_COMPUTE_16F;
    case MCBLAS_COMPUTE_32I_PEDANTIC: return MCBLAS_COMPUTE_32I;
    case MCBLAS_COMPUTE_64F_PEDANTIC: return MCBLAS_COMPUTE_64F;
    case MCBLAS_COMPUTE_32F_PEDANTIC:
    case MCBLAS_COMPUTE_32F_FAST_16F:
    case MCBLAS_COMPUTE_32F_FAST_16BF:
    case MCBLAS_COMPUTE_32F_FAST_TF32: return MCBLAS_COMPUTE_32F;
    default: return compute;
    }
}

bool blas_is_known_compute(mcblasComputeType_t compute)
{
    const mcblasComputeType_t plain = plain_compute(compute);
    return plain == MCBLAS_COMPUTE_16F || plain == MCBLAS_COMPUTE_32I || plain == MCBLAS_COMPUTE_32F ||
           plain == MCBLAS_COMPUTE_64F;
}

static const GemmTypes *among(const GemmTypes *table, size_t count, mcblasComputeType_t compute, macaDataType_t a,
                              macaDataType_t b, macaDataType_t c)
{
    for (size_t i = 0; i < count && a == b; i++) {
        if (table[i].compute == plain_compute(compute) && table[i].ab == a && table[i].c == c) {
            return &table[i];
        }
    }
    return NULL;
}

const GemmTypes *blas_gemm_types(mcblasComputeType_t compute, macaDataType_t a, macaDataType_t b, macaDataType_t c)
{
    return among(combinations, sizeof combinations / sizeof combinations[0], compute, a, b, c);
}

const GemmTypes *blas_lt_types(mcblasComputeType_t compute, macaDataType_t a, macaDataType_t b, macaDataType_t c)
{
    static const GemmTypes more[] = {
        {MCBLAS_COMPUTE_32F, MACA_R_32F, MACA_R_8F_E4M3, MACA_R_16F, DTYPE_FLOAT32},
        {MCBLAS_COMPUTE_32F, MACA_R_32F, MACA_R_8F_E4M3, MACA_R_16BF, DTYPE_FLOAT32},
        {MCBLAS_COMPUTE_32F, MACA_R_32F, MACA_R_8F_E4M3, MACA_R_32F, DTYPE_FLOAT32},
    };
    const GemmTypes *found = blas_gemm_types(compute, a, b, c);
    return found != NULL ? found : among(more, sizeof more / sizeof more[0], compute, a, b, c);
}
