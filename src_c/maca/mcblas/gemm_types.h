/* The types of matrices, scalars and arithmetic that go together in a product. */
#ifndef MCBLAS_GEMM_TYPES_H
#define MCBLAS_GEMM_TYPES_H

#include "tensor/view.h"

#include <mcblas/mcblas.h>

/* The element type of the kernels; DTYPE_NONE for types that no function here takes. C_8I is int8, in pairs. */
DType blas_dtype(macaDataType_t type);
bool blas_is_known_type(macaDataType_t type);
/* The enumerators' names, for messages; "?" of others. */
const char *blas_type_name(macaDataType_t type);
const char *blas_compute_name(mcblasComputeType_t compute);

/* The types that go together (mcblas 8.1). NULL: there is no such combination. */
typedef struct GemmTypes {
    mcblasComputeType_t compute;
    macaDataType_t scale, ab, c;
    DType computed_in;
} GemmTypes;
const GemmTypes *blas_gemm_types(mcblasComputeType_t compute, macaDataType_t a, macaDataType_t b, macaDataType_t c);
/* The same and, for products that objects describe, 8-bit floating-point numbers (mcblas 11.4 #8). */
const GemmTypes *blas_lt_types(mcblasComputeType_t compute, macaDataType_t a, macaDataType_t b, macaDataType_t c);
bool blas_is_known_compute(mcblasComputeType_t compute);

#endif
