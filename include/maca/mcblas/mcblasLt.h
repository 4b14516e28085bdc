/* Matrix products that are described by objects: layouts, epilogues, heuristics. Link with -lmcblasLt -lmcruntime.
 *
 * D = epilogue(alpha * scaleA * scaleB * op(A) op(B) + beta * C + bias), for each matrix of a batch. Work goes to
 * the stream that a call is given. Descriptors are host objects; a handle of mcblas.h serves as well. */
#ifndef MCBLASLT_H_
#define MCBLASLT_H_

#include "mcblas.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mcblasLtContext *mcblasLtHandle_t;
typedef struct mcblasLtMatmulDescOpaque *mcblasLtMatmulDesc_t;
typedef struct mcblasLtMatrixLayoutOpaque *mcblasLtMatrixLayout_t;
typedef struct mcblasLtMatmulPreferenceOpaque *mcblasLtMatmulPreference_t;
typedef struct mcblasLtMatrixTransformDescOpaque *mcblasLtMatrixTransformDesc_t;

typedef struct mcblasLtMatmulAlgo_t {
    uint64_t data[8];
} mcblasLtMatmulAlgo_t;

typedef struct mcblasLtMatmulHeuristicResult_t {
    mcblasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    mcblasStatus_t state;
    float wavesCount;
    int reserved[4];
} mcblasLtMatmulHeuristicResult_t;

/* Attributes of a product, with the size of their values. */
typedef enum mcblasLtMatmulDescAttributes_t {
    MCBLASLT_MATMUL_DESC_COMPUTE_TYPE = 0,        /* int32: mcblasComputeType_t */
    MCBLASLT_MATMUL_DESC_SCALE_TYPE = 1,          /* int32: macaDataType_t of alpha and beta */
    MCBLASLT_MATMUL_DESC_POINTER_MODE = 2,        /* int32: mcblasLtPointerMode_t */
    MCBLASLT_MATMUL_DESC_TRANSA = 3,              /* int32: mcblasOperation_t */
    MCBLASLT_MATMUL_DESC_TRANSB = 4,              /* int32 */
    MCBLASLT_MATMUL_DESC_TRANSC = 5,              /* int32: only MCBLAS_OP_N */
    MCBLASLT_MATMUL_DESC_FILL_MODE = 6,           /* int32: only MCBLAS_FILL_MODE_FULL */
    MCBLASLT_MATMUL_DESC_EPILOGUE = 7,            /* uint32: mcblasLtEpilogue_t */
    MCBLASLT_MATMUL_DESC_BIAS_POINTER = 8,        /* pointer: device memory, one element for each row of D */
    MCBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10,  /* int64: elements between the biases of a batch */
    MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,       /* pointer: device memory, a matrix in order COL */
    MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12,            /* int64: at least D's rows; a multiple of 8, of bits of 128 */
    MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE = 13,  /* int64: between the matrices of a batch; the same multiples */
    MCBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE = 14,  /* int64: kept */
    MCBLASLT_MATMUL_DESC_SM_COUNT_TARGET = 15,            /* int32: kept */
    MCBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17,    /* pointer: device memory, one float */
    MCBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18,    /* pointer */
    MCBLASLT_MATMUL_DESC_C_SCALE_POINTER = 19,    /* pointer */
    MCBLASLT_MATMUL_DESC_D_SCALE_POINTER = 20,    /* pointer: only NULL */
    MCBLASLT_MATMUL_DESC_AMAX_D_POINTER = 21,     /* pointer: only NULL */
    MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE = 22,     /* int32: only D's type, or -1, which is the same */
    MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER = 23, /* pointer: only NULL */
    MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER = 24,  /* pointer: only NULL */
    MCBLASLT_MATMUL_DESC_FAST_ACCUM = 25,         /* int8: kept; sums are those of float */
    MCBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26      /* int32: macaDataType_t, -1 for that of D */
} mcblasLtMatmulDescAttributes_t;

typedef enum mcblasLtMatrixLayoutAttribute_t {
    MCBLASLT_MATRIX_LAYOUT_TYPE = 0,                 /* uint32: macaDataType_t */
    MCBLASLT_MATRIX_LAYOUT_ORDER = 1,                /* int32: mcblasLtOrder_t */
    MCBLASLT_MATRIX_LAYOUT_ROWS = 2,                 /* uint64 */
    MCBLASLT_MATRIX_LAYOUT_COLS = 3,                 /* uint64 */
    MCBLASLT_MATRIX_LAYOUT_LD = 4,                   /* int64 */
    MCBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          /* int32 */
    MCBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, /* int64: between the matrices of a batch; the same multiples */
    MCBLASLT_MATRIX_LAYOUT_PLANE_OFFSET = 7          /* int64: kept */
} mcblasLtMatrixLayoutAttribute_t;

typedef enum mcblasLtMatrixTransformDescAttributes_t {
    MCBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE = 0,   /* int32: macaDataType_t of alpha and beta */
    MCBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE = 1, /* int32: mcblasLtPointerMode_t */
    MCBLASLT_MATRIX_TRANSFORM_DESC_TRANSA = 2,       /* int32: mcblasOperation_t */
    MCBLASLT_MATRIX_TRANSFORM_DESC_TRANSB = 3        /* int32 */
} mcblasLtMatrixTransformDescAttributes_t;

typedef enum mcblasLtOrder_t {
    MCBLASLT_ORDER_COL = 0,
    MCBLASLT_ORDER_ROW = 1,
    MCBLASLT_ORDER_COL32 = 2, /* this one and those below: MCBLAS_STATUS_NOT_SUPPORTED in products and transforms */
    MCBLASLT_ORDER_COL4_4R2_8C = 3,
    MCBLASLT_ORDER_COL32_2R_4R4 = 4
} mcblasLtOrder_t;

typedef enum mcblasLtPointerMode_t {
    MCBLASLT_POINTER_MODE_HOST = 0,
    MCBLASLT_POINTER_MODE_DEVICE = 1,
    MCBLASLT_POINTER_MODE_DEVICE_VECTOR = 2, /* this one and those below: MCBLAS_STATUS_NOT_SUPPORTED in products */
    MCBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO = 3,
    MCBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST = 4
} mcblasLtPointerMode_t;

/* GELU is its form with tanh. GELU_AUX: what GELU takes goes to the auxiliary matrix, too, which has D's shape and type; DGELU:
 * D is the product times the slope of GELU at the auxiliary matrix. RELU_AUX: the auxiliary matrix gets a bit for each element
 * of D, 1 where ReLU lets it through (positive or NaN), row i of a column in bit i % 8 of byte i / 8; DRELU: D is the product
 * where the bit is 1, else 0. ..._BGRAD: the sums of D's rows, as they are stored, are written to BIAS_POINTER. BGRADA, BGRADB:
 * D is the product, and the sums over k of op(A)'s rows (m of them), of op(B)'s columns (n), are written to BIAS_POINTER. */
typedef enum mcblasLtEpilogue_t {
    MCBLASLT_EPILOGUE_DEFAULT = 1,
    MCBLASLT_EPILOGUE_RELU = 2,
    MCBLASLT_EPILOGUE_BIAS = 4,
    MCBLASLT_EPILOGUE_RELU_BIAS = 6,
    MCBLASLT_EPILOGUE_GELU = 32,
    MCBLASLT_EPILOGUE_GELU_BIAS = 36,
    MCBLASLT_EPILOGUE_RELU_AUX = 130,
    MCBLASLT_EPILOGUE_RELU_AUX_BIAS = 134,
    MCBLASLT_EPILOGUE_DRELU = 136,
    MCBLASLT_EPILOGUE_DRELU_BGRAD = 152,
    MCBLASLT_EPILOGUE_GELU_AUX = 160,
    MCBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
    MCBLASLT_EPILOGUE_DGELU = 192,
    MCBLASLT_EPILOGUE_DGELU_BGRAD = 208,
    MCBLASLT_EPILOGUE_BGRADA = 256,
    MCBLASLT_EPILOGUE_BGRADB = 512
} mcblasLtEpilogue_t;

/* Kept: the one algorithm here needs no workspace and any alignment. */
typedef enum mcblasLtMatmulPreferenceAttributes_t {
    MCBLASLT_MATMUL_PREF_SEARCH_MODE = 0,           /* uint32: mcblasLtMatmulSearch_t */
    MCBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,   /* uint64 */
    MCBLASLT_MATMUL_PREF_MATH_MODE_MASK = 2,        /* uint32 */
    MCBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3, /* uint32: mcblasLtReductionScheme_t */
    MCBLASLT_MATMUL_PREF_GAUSSIAN_MODE_MASK = 4,    /* uint32 */
    MCBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, /* uint32 */
    MCBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6, /* uint32 */
    MCBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7, /* uint32 */
    MCBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8, /* uint32 */
    MCBLASLT_MATMUL_PREF_MAX_WAVES_COUNT = 9,       /* float */
    MCBLASLT_MATMUL_PREF_POINTER_MODE_MASK = 10,    /* uint32 */
    MCBLASLT_MATMUL_PREF_EPILOGUE_MASK = 11,        /* uint32 */
    MCBLASLT_MATMUL_PREF_IMPL_MASK = 12,            /* uint64 */
    MCBLASLT_MATMUL_PREF_SM_COUNT_TARGET = 13       /* uint32 */
} mcblasLtMatmulPreferenceAttributes_t;

typedef enum mcblasLtMatmulSearch_t {
    MCBLASLT_SEARCH_BEST_FIT = 0,
    MCBLASLT_SEARCH_LIMITED_BY_ALGO_ID = 1
} mcblasLtMatmulSearch_t;

typedef enum mcblasLtReductionScheme_t {
    MCBLASLT_REDUCTION_SCHEME_NONE = 0,
    MCBLASLT_REDUCTION_SCHEME_INPLACE = 1,
    MCBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2,
    MCBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE = 4,
    MCBLASLT_REDUCTION_SCHEME_MASK = 7
} mcblasLtReductionScheme_t;

MCBLASAPIENTRY mcblasStatus_t mcblasLtCreate(mcblasLtHandle_t *lightHandle);
MCBLASAPIENTRY mcblasStatus_t mcblasLtDestroy(mcblasLtHandle_t lightHandle);
MCBLASAPIENTRY size_t mcblasLtGetVersion(void);
MCBLASAPIENTRY mcblasStatus_t mcblasLtGetProperty(libraryPropertyType type, int *value);
MCBLASAPIENTRY const char *mcblasLtGetStatusName(mcblasStatus_t status);   /* never NULL */
MCBLASAPIENTRY const char *mcblasLtGetStatusString(mcblasStatus_t status);

/* A matrix of rows x cols; by columns, one matrix, until attributes say otherwise. */
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatrixLayoutCreate(mcblasLtMatrixLayout_t *matLayout, macaDataType_t type,
    uint64_t rows, uint64_t cols, int64_t ld);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatrixLayoutDestroy(mcblasLtMatrixLayout_t matLayout);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatrixLayoutSetAttribute(mcblasLtMatrixLayout_t matLayout,
    mcblasLtMatrixLayoutAttribute_t attr, const void *buf, size_t sizeInBytes);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatrixLayoutGetAttribute(mcblasLtMatrixLayout_t matLayout,
    mcblasLtMatrixLayoutAttribute_t attr, void *buf, size_t sizeInBytes, size_t *sizeWritten);

/* A product without transposition and epilogue, scalars in host memory, until attributes say otherwise. */
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmulDescCreate(mcblasLtMatmulDesc_t *matmulDesc,
                                                       mcblasComputeType_t computeType,
    macaDataType_t scaleType);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmulDescDestroy(mcblasLtMatmulDesc_t matmulDesc);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmulDescSetAttribute(mcblasLtMatmulDesc_t matmulDesc,
    mcblasLtMatmulDescAttributes_t attr, const void *buf, size_t sizeInBytes);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmulDescGetAttribute(mcblasLtMatmulDesc_t matmulDesc,
    mcblasLtMatmulDescAttributes_t attr, void *buf, size_t sizeInBytes, size_t *sizeWritten);

MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmulPreferenceCreate(mcblasLtMatmulPreference_t *pref);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmulPreferenceDestroy(mcblasLtMatmulPreference_t pref);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmulPreferenceSetAttribute(mcblasLtMatmulPreference_t pref,
    mcblasLtMatmulPreferenceAttributes_t attr, const void *buf, size_t sizeInBytes);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmulPreferenceGetAttribute(mcblasLtMatmulPreference_t pref,
    mcblasLtMatmulPreferenceAttributes_t attr, void *buf, size_t sizeInBytes, size_t *sizeWritten);

/* One algorithm, which needs no workspace, for every product that mcblasLtMatmul takes. */
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmulAlgoGetHeuristic(mcblasLtHandle_t lightHandle,
    mcblasLtMatmulDesc_t operationDesc, mcblasLtMatrixLayout_t Adesc, mcblasLtMatrixLayout_t Bdesc,
    mcblasLtMatrixLayout_t Cdesc, mcblasLtMatrixLayout_t Ddesc, mcblasLtMatmulPreference_t preference,
    int requestedAlgoCount, mcblasLtMatmulHeuristicResult_t heuristicResultsArray[], int *returnAlgoCount);

/* algo may be NULL, workspace too. C may be D, in one layout; with beta 0 it is not read and may be NULL. A and B of
 * MACA_R_8F_E4M3 go with D of MACA_R_16F, MACA_R_16BF and MACA_R_32F, computed in float. */
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatmul(mcblasLtHandle_t lightHandle, mcblasLtMatmulDesc_t computeDesc,
    const void *alpha, const void *A, mcblasLtMatrixLayout_t Adesc, const void *B, mcblasLtMatrixLayout_t Bdesc,
    const void *beta, const void *C, mcblasLtMatrixLayout_t Cdesc, void *D, mcblasLtMatrixLayout_t Ddesc,
    const mcblasLtMatmulAlgo_t *algo, void *workspace, size_t workspaceSizeInBytes, mcStream_t stream);

/* C = alpha * op(A) + beta * op(B), for each matrix of a batch, in other orders and leading dimensions. A, B and C have
 * one type, which goes with that of alpha and beta: R_8I, R_32I, R_16F, R_16BF, R_32F with R_32F; R_64F, C_32F, C_64F with
 * themselves. Results are rounded once; integers saturate. */
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatrixTransformDescCreate(mcblasLtMatrixTransformDesc_t *transformDesc,
    macaDataType_t scaleType);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatrixTransformDescDestroy(mcblasLtMatrixTransformDesc_t transformDesc);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatrixTransformDescSetAttribute(mcblasLtMatrixTransformDesc_t transformDesc,
    mcblasLtMatrixTransformDescAttributes_t attr, const void *buf, size_t sizeInBytes);
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatrixTransformDescGetAttribute(mcblasLtMatrixTransformDesc_t transformDesc,
    mcblasLtMatrixTransformDescAttributes_t attr, void *buf, size_t sizeInBytes, size_t *sizeWritten);

/* With alpha 0 A is not read, with beta 0 B is not: B and Bdesc may be NULL then. C may be A or B, in one layout and not
 * transposed. */
MCBLASAPIENTRY mcblasStatus_t mcblasLtMatrixTransform(mcblasLtHandle_t lightHandle,
    mcblasLtMatrixTransformDesc_t transformDesc, const void *alpha, const void *A, mcblasLtMatrixLayout_t Adesc,
    const void *beta, const void *B, mcblasLtMatrixLayout_t Bdesc, void *C, mcblasLtMatrixLayout_t Cdesc,
    mcStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
