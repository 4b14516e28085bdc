/* Linear algebra: BLAS levels 1 to 3 and extensions, on matrices stored by columns. Link with -lmcblas -lmcruntime.
 *
 * Every function returns a status; on anything but MCBLAS_STATUS_SUCCESS no output has been changed. Vectors and
 * matrices are device addresses; element (i, j) of a matrix, from 0, is at j * ld + i, element i of a vector at i *
 * inc, or at (i + 1 - n) * inc when inc < 0. Work is queued on the handle's stream. Where beta is 0 the old values
 * are not read. */
#ifndef MCBLAS_MCBLAS_H_
#define MCBLAS_MCBLAS_H_

#include "../common/library_types.h"
#include "../common/maca_bfloat16.h"
#include "../common/maca_fp16.h"
#include "../mcr/mc_runtime_api.h"

#include <stddef.h>
#include <stdint.h>

#ifndef MCBLASAPIENTRY
#define MCBLASAPIENTRY
#endif

#define MCBLAS_VER_MAJOR 1
#define MCBLAS_VER_MINOR 0

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ---- */

typedef struct mcblasContext *mcblasHandle_t;
typedef int32_t mcblas_int;
typedef int64_t mcblas_stride; /* elements between the matrices of a batch */
typedef __half mcblas_half;
typedef maca_bfloat16 mcblas_bfloat16;

typedef struct mcComplex {
    float x, y; /* real and imaginary part */
} mcComplex;

typedef struct mcDoubleComplex {
    double x, y;
} mcDoubleComplex;

typedef enum mcblasStatus_t {
    MCBLAS_STATUS_SUCCESS = 0,
    MCBLAS_STATUS_NOT_INITIALIZED = 1, /* the handle is NULL, was destroyed, or is another thing */
    MCBLAS_STATUS_ALLOC_FAILED = 3,
    MCBLAS_STATUS_INVALID_VALUE = 7,
    MCBLAS_STATUS_ARCH_MISMATCH = 8,
    MCBLAS_STATUS_MAPPING_ERROR = 11,    /* a copy left its memory */
    MCBLAS_STATUS_EXECUTION_FAILED = 13, /* the stream is gone, or an earlier call left a device fault */
    MCBLAS_STATUS_INTERNAL_ERROR = 14,
    MCBLAS_STATUS_NOT_SUPPORTED = 15, /* known values in a combination that is not supported */
    MCBLAS_STATUS_LICENSE_ERROR = 16
} mcblasStatus_t;

typedef enum mcblasOperation_t {
    MCBLAS_OP_N = 0, /* the matrix as it is */
    MCBLAS_OP_T = 1, /* transposed */
    MCBLAS_OP_C = 2, /* transposed and conjugated */
    MCBLAS_OP_HERMITAN = 2,
    MCBLAS_OP_CONJG = 3 /* known, but no function takes it */
} mcblasOperation_t;

typedef enum mcblasFillMode_t {
    MCBLAS_FILL_MODE_LOWER = 0,
    MCBLAS_FILL_MODE_UPPER = 1,
    MCBLAS_FILL_MODE_FULL = 2 /* known, but no function takes it */
} mcblasFillMode_t;

typedef enum mcblasDiagType_t {
    MCBLAS_DIAG_NON_UNIT = 0,
    MCBLAS_DIAG_UNIT = 1 /* the diagonal counts as ones and is not read */
} mcblasDiagType_t;

typedef enum mcblasSideMode_t {
    MCBLAS_SIDE_LEFT = 0,
    MCBLAS_SIDE_RIGHT = 1
} mcblasSideMode_t;

typedef enum mcblasPointerMode_t {
    MCBLAS_POINTER_MODE_HOST = 0,
    MCBLAS_POINTER_MODE_DEVICE = 1
} mcblasPointerMode_t;

typedef enum mcblasAtomicsMode_t {
    MCBLAS_ATOMICS_NOT_ALLOWED = 0,
    MCBLAS_ATOMICS_ALLOWED = 1
} mcblasAtomicsMode_t;

/* MCBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION may be added to the others, except to MCBLAS_PEDANTIC_MATH. */
typedef enum mcblasMath_t {
    MCBLAS_DEFAULT_MATH = 0,
    MCBLAS_TENSOR_OP_MATH = 1,
    MCBLAS_PEDANTIC_MATH = 2,
    MCBLAS_TF32_TENSOR_OP_MATH = 3,
    MCBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} mcblasMath_t;

typedef enum mcblasGemmAlgo_t {
    MCBLAS_GEMM_DFALT = -1,
    MCBLAS_GEMM_DEFAULT = -1,
    MCBLAS_GEMM_ALGO0 = 0, MCBLAS_GEMM_ALGO1 = 1, MCBLAS_GEMM_ALGO2 = 2, MCBLAS_GEMM_ALGO3 = 3, MCBLAS_GEMM_ALGO4 =
    4, MCBLAS_GEMM_ALGO5 = 5, MCBLAS_GEMM_ALGO6 = 6, MCBLAS_GEMM_ALGO7 = 7, MCBLAS_GEMM_ALGO8 = 8, MCBLAS_GEMM_ALGO9
    = 9, MCBLAS_GEMM_ALGO10 = 10, MCBLAS_GEMM_ALGO11 = 11, MCBLAS_GEMM_ALGO12 = 12, MCBLAS_GEMM_ALGO13 = 13,
    MCBLAS_GEMM_ALGO14 = 14, MCBLAS_GEMM_ALGO15 = 15, MCBLAS_GEMM_ALGO16 = 16, MCBLAS_GEMM_ALGO17 = 17,
    MCBLAS_GEMM_ALGO18 = 18, MCBLAS_GEMM_ALGO19 = 19, MCBLAS_GEMM_ALGO20 = 20, MCBLAS_GEMM_ALGO21 = 21,
    MCBLAS_GEMM_ALGO22 = 22, MCBLAS_GEMM_ALGO23 = 23,
    MCBLAS_GEMM_DFALT_TENSOR_OP = 99,
    MCBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
    MCBLAS_GEMM_ALGO0_TENSOR_OP = 100, MCBLAS_GEMM_ALGO1_TENSOR_OP = 101, MCBLAS_GEMM_ALGO2_TENSOR_OP = 102,
    MCBLAS_GEMM_ALGO3_TENSOR_OP = 103, MCBLAS_GEMM_ALGO4_TENSOR_OP = 104, MCBLAS_GEMM_ALGO5_TENSOR_OP = 105,
    MCBLAS_GEMM_ALGO6_TENSOR_OP = 106, MCBLAS_GEMM_ALGO7_TENSOR_OP = 107, MCBLAS_GEMM_ALGO8_TENSOR_OP = 108,
    MCBLAS_GEMM_ALGO9_TENSOR_OP = 109, MCBLAS_GEMM_ALGO10_TENSOR_OP = 110, MCBLAS_GEMM_ALGO11_TENSOR_OP = 111,
    MCBLAS_GEMM_ALGO12_TENSOR_OP = 112, MCBLAS_GEMM_ALGO13_TENSOR_OP = 113, MCBLAS_GEMM_ALGO14_TENSOR_OP = 114,
    MCBLAS_GEMM_ALGO15_TENSOR_OP = 115
} mcblasGemmAlgo_t;

typedef enum mcblasComputeType_t {
    MCBLAS_COMPUTE_16F = 64,
    MCBLAS_COMPUTE_16F_PEDANTIC = 65,
    MCBLAS_COMPUTE_32F = 68,
    MCBLAS_COMPUTE_32F_PEDANTIC = 69,
    MCBLAS_COMPUTE_64F = 70,
    MCBLAS_COMPUTE_64F_PEDANTIC = 71,
    MCBLAS_COMPUTE_32I = 72,
    MCBLAS_COMPUTE_32I_PEDANTIC = 73,
    MCBLAS_COMPUTE_32F_FAST_16F = 74,
    MCBLAS_COMPUTE_32F_FAST_16BF = 75,
    MCBLAS_COMPUTE_32F_FAST_TF32 = 77
} mcblasComputeType_t;

typedef macaDataType_t mcblasDataType_t;
typedef macaDataType_t mcblasDataType;
#define MCBLAS_R_16F MACA_R_16F
#define MCBLAS_C_16F MACA_C_16F
#define MCBLAS_R_16BF MACA_R_16BF
#define MCBLAS_C_16BF MACA_C_16BF
#define MCBLAS_R_32F MACA_R_32F
#define MCBLAS_C_32F MACA_C_32F
#define MCBLAS_R_64F MACA_R_64F
#define MCBLAS_C_64F MACA_C_64F
#define MCBLAS_R_8I MACA_R_8I
#define MCBLAS_C_8I MACA_C_8I
#define MCBLAS_R_8U MACA_R_8U
#define MCBLAS_C_8U MACA_C_8U
#define MCBLAS_R_32I MACA_R_32I
#define MCBLAS_C_32I MACA_C_32I

/* ---- helpers ---- */

/* Makes a handle on the current device; its work goes to the default stream until mcblasSetStream. */
MCBLASAPIENTRY mcblasStatus_t mcblasCreate(mcblasHandle_t *handle);

/* Waits for the device, then ends the handle. */
MCBLASAPIENTRY mcblasStatus_t mcblasDestroy(mcblasHandle_t handle);

/* 10000 for 1.0. */
MCBLASAPIENTRY mcblasStatus_t mcblasGetVersion(mcblasHandle_t handle, int *version);

/* One part of the version. */
MCBLASAPIENTRY mcblasStatus_t mcblasGetProperty(libraryPropertyType type, int *value);

/* The enumerator's name, and a short description; never NULL. */
MCBLASAPIENTRY const char *mcblasGetStatusName(mcblasStatus_t status);
MCBLASAPIENTRY const char *mcblasGetStatusString(mcblasStatus_t status);

/* The stream of all further calls. The workspace becomes the internal one again. */
MCBLASAPIENTRY mcblasStatus_t mcblasSetStream(mcblasHandle_t handle, mcStream_t streamId);
MCBLASAPIENTRY mcblasStatus_t mcblasGetStream(mcblasHandle_t handle, mcStream_t *streamId);

/* Memory for the library, aligned to 256 bytes; taken and not needed. */
MCBLASAPIENTRY mcblasStatus_t mcblasSetWorkspace(mcblasHandle_t handle, void *workspace, size_t workspaceSizeInBytes);

/* Where scalars are: with MCBLAS_POINTER_MODE_HOST they are read at the call, and functions that return one wait for
 * it; with MCBLAS_POINTER_MODE_DEVICE they are in device memory and read or written when the work runs. */
MCBLASAPIENTRY mcblasStatus_t mcblasGetPointerMode(mcblasHandle_t handle, mcblasPointerMode_t *mode);
MCBLASAPIENTRY mcblasStatus_t mcblasSetPointerMode(mcblasHandle_t handle, mcblasPointerMode_t mode);

/* Results are reproducible in both modes. */
MCBLASAPIENTRY mcblasStatus_t mcblasSetAtomicsMode(mcblasHandle_t handle, mcblasAtomicsMode_t mode);
MCBLASAPIENTRY mcblasStatus_t mcblasGetAtomicsMode(mcblasHandle_t handle, mcblasAtomicsMode_t *mode);

/* No mode lowers the precision of float products here. */
MCBLASAPIENTRY mcblasStatus_t mcblasSetMathMode(mcblasHandle_t handle, mcblasMath_t mode);
MCBLASAPIENTRY mcblasStatus_t mcblasGetMathMode(mcblasHandle_t handle, mcblasMath_t *mode);

/* Copies n elements of elemSize bytes between vectors in host and device memory; synchronous. */
MCBLASAPIENTRY mcblasStatus_t mcblasSetVector(int n, int elemSize, const void *x, int incx, void *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasGetVector(int n, int elemSize, const void *x, int incx, void *y, int incy);

/* The same for column-major matrices. */
MCBLASAPIENTRY mcblasStatus_t mcblasSetMatrix(int rows, int cols, int elemSize, const void *A, int lda, void *B,
    int ldb);
MCBLASAPIENTRY mcblasStatus_t mcblasGetMatrix(int rows, int cols, int elemSize, const void *A, int lda, void *B,
    int ldb);

/* The same on a stream. */
MCBLASAPIENTRY mcblasStatus_t mcblasSetVectorAsync(int n, int elemSize, const void *hostPtr, int incx, void *devicePtr,
    int incy, mcStream_t stream);
MCBLASAPIENTRY mcblasStatus_t mcblasGetVectorAsync(int n, int elemSize, const void *devicePtr, int incx, void *hostPtr,
    int incy, mcStream_t stream);
MCBLASAPIENTRY mcblasStatus_t mcblasSetMatrixAsync(int rows, int cols, int elemSize, const void *A, int lda, void *B,
    int ldb, mcStream_t stream);
MCBLASAPIENTRY mcblasStatus_t mcblasGetMatrixAsync(int rows, int cols, int elemSize, const void *A, int lda, void *B,
    int ldb, mcStream_t stream);

/* Known by name; kept and without effect. */
MCBLASAPIENTRY mcblasStatus_t mcblasGetSmCountTarget(mcblasHandle_t handle, int *smCountTarget);
MCBLASAPIENTRY mcblasStatus_t mcblasSetSmCountTarget(mcblasHandle_t handle, int smCountTarget);
typedef void (*mcblasLogCallback)(const char *message);
MCBLASAPIENTRY mcblasStatus_t mcblasLoggerConfigure(int logIsOn, int logToStdOut, int logToStdErr,
    const char *logFileName);
MCBLASAPIENTRY mcblasStatus_t mcblasSetLoggerCallback(mcblasLogCallback userCallback);
MCBLASAPIENTRY mcblasStatus_t mcblasGetLoggerCallback(mcblasLogCallback *userCallback);

/* ---- level 1: vectors ---- */

/* result = 1-based index of the first element whose |re| + |im| is largest, or smallest; 0 when n or incx <= 0. */
MCBLASAPIENTRY mcblasStatus_t mcblasIsamax(mcblasHandle_t handle, int n, const float *x, int incx, int *result);
MCBLASAPIENTRY mcblasStatus_t mcblasIdamax(mcblasHandle_t handle, int n, const double *x, int incx, int *result);
MCBLASAPIENTRY mcblasStatus_t mcblasIcamax(mcblasHandle_t handle, int n, const mcComplex *x, int incx, int *result);
MCBLASAPIENTRY mcblasStatus_t mcblasIzamax(mcblasHandle_t handle, int n, const mcDoubleComplex *x, int incx,
    int *result);
MCBLASAPIENTRY mcblasStatus_t mcblasIsamin(mcblasHandle_t handle, int n, const float *x, int incx, int *result);
MCBLASAPIENTRY mcblasStatus_t mcblasIdamin(mcblasHandle_t handle, int n, const double *x, int incx, int *result);
MCBLASAPIENTRY mcblasStatus_t mcblasIcamin(mcblasHandle_t handle, int n, const mcComplex *x, int incx, int *result);
MCBLASAPIENTRY mcblasStatus_t mcblasIzamin(mcblasHandle_t handle, int n, const mcDoubleComplex *x, int incx,
    int *result);

/* result = sum of |re| + |im|; 0 when n or incx <= 0. */
MCBLASAPIENTRY mcblasStatus_t mcblasSasum(mcblasHandle_t handle, int n, const float *x, int incx, float *result);
MCBLASAPIENTRY mcblasStatus_t mcblasDasum(mcblasHandle_t handle, int n, const double *x, int incx, double *result);
MCBLASAPIENTRY mcblasStatus_t mcblasScasum(mcblasHandle_t handle, int n, const mcComplex *x, int incx, float *result);
MCBLASAPIENTRY mcblasStatus_t mcblasDzasum(mcblasHandle_t handle, int n, const mcDoubleComplex *x, int incx,
    double *result);

/* result = Euclidean norm, without overflow on the way; 0 when n or incx <= 0. */
MCBLASAPIENTRY mcblasStatus_t mcblasSnrm2(mcblasHandle_t handle, int n, const float *x, int incx, float *result);
MCBLASAPIENTRY mcblasStatus_t mcblasDnrm2(mcblasHandle_t handle, int n, const double *x, int incx, double *result);
MCBLASAPIENTRY mcblasStatus_t mcblasScnrm2(mcblasHandle_t handle, int n, const mcComplex *x, int incx, float *result);
MCBLASAPIENTRY mcblasStatus_t mcblasDznrm2(mcblasHandle_t handle, int n, const mcDoubleComplex *x, int incx,
    double *result);

/* y = alpha * x + y. */
MCBLASAPIENTRY mcblasStatus_t mcblasSaxpy(mcblasHandle_t handle, int n, const float *alpha, const float *x, int incx,
    float *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasDaxpy(mcblasHandle_t handle, int n, const double *alpha, const double *x, int incx,
    double *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasCaxpy(mcblasHandle_t handle, int n, const mcComplex *alpha, const mcComplex *x,
    int incx, mcComplex *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasZaxpy(mcblasHandle_t handle, int n, const mcDoubleComplex *alpha,
    const mcDoubleComplex *x, int incx, mcDoubleComplex *y, int incy);

/* y = x. */
MCBLASAPIENTRY mcblasStatus_t mcblasScopy(mcblasHandle_t handle, int n, const float *x, int incx, float *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasDcopy(mcblasHandle_t handle, int n, const double *x, int incx, double *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasCcopy(mcblasHandle_t handle, int n, const mcComplex *x, int incx, mcComplex *y,
    int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasZcopy(mcblasHandle_t handle, int n, const mcDoubleComplex *x, int incx,
    mcDoubleComplex *y, int incy);

/* Exchanges x and y. */
MCBLASAPIENTRY mcblasStatus_t mcblasSswap(mcblasHandle_t handle, int n, float *x, int incx, float *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasDswap(mcblasHandle_t handle, int n, double *x, int incx, double *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasCswap(mcblasHandle_t handle, int n, mcComplex *x, int incx, mcComplex *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasZswap(mcblasHandle_t handle, int n, mcDoubleComplex *x, int incx,
    mcDoubleComplex *y, int incy);

/* result = sum of x * y, the first factor conjugated in ...dotc; 0 when n <= 0. */
MCBLASAPIENTRY mcblasStatus_t mcblasSdot(mcblasHandle_t handle, int n, const float *x, int incx, const float *y,
    int incy, float *result);
MCBLASAPIENTRY mcblasStatus_t mcblasDdot(mcblasHandle_t handle, int n, const double *x, int incx, const double *y,
    int incy, double *result);
MCBLASAPIENTRY mcblasStatus_t mcblasCdotu(mcblasHandle_t handle, int n, const mcComplex *x, int incx,
    const mcComplex *y, int incy, mcComplex *result);
MCBLASAPIENTRY mcblasStatus_t mcblasCdotc(mcblasHandle_t handle, int n, const mcComplex *x, int incx,
    const mcComplex *y, int incy, mcComplex *result);
MCBLASAPIENTRY mcblasStatus_t mcblasZdotu(mcblasHandle_t handle, int n, const mcDoubleComplex *x, int incx,
    const mcDoubleComplex *y, int incy, mcDoubleComplex *result);
MCBLASAPIENTRY mcblasStatus_t mcblasZdotc(mcblasHandle_t handle, int n, const mcDoubleComplex *x, int incx,
    const mcDoubleComplex *y, int incy, mcDoubleComplex *result);

/* x = alpha * x. Nothing happens when incx <= 0. */
MCBLASAPIENTRY mcblasStatus_t mcblasSscal(mcblasHandle_t handle, int n, const float *alpha, float *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasDscal(mcblasHandle_t handle, int n, const double *alpha, double *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasCscal(mcblasHandle_t handle, int n, const mcComplex *alpha, mcComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasZscal(mcblasHandle_t handle, int n, const mcDoubleComplex *alpha,
    mcDoubleComplex *x, int incx);

/* x = alpha * x with a real alpha. */
MCBLASAPIENTRY mcblasStatus_t mcblasCsscal(mcblasHandle_t handle, int n, const float *alpha, mcComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasZdscal(mcblasHandle_t handle, int n, const double *alpha, mcDoubleComplex *x,
    int incx);

/* Plane rotation: x = c * x + s * y, y = -s * x + c * y. */
MCBLASAPIENTRY mcblasStatus_t mcblasSrot(mcblasHandle_t handle, int n, float *x, int incx, float *y, int incy,
    const float *c, const float *s);
MCBLASAPIENTRY mcblasStatus_t mcblasDrot(mcblasHandle_t handle, int n, double *x, int incx, double *y, int incy,
    const double *c, const double *s);

/* The same with a complex s: y = -conj(s) * x + c * y. */
MCBLASAPIENTRY mcblasStatus_t mcblasCrot(mcblasHandle_t handle, int n, mcComplex *x, int incx, mcComplex *y, int incy,
    const float *c, const mcComplex *s);
MCBLASAPIENTRY mcblasStatus_t mcblasZrot(mcblasHandle_t handle, int n, mcDoubleComplex *x, int incx, mcDoubleComplex *y,
    int incy, const double *c, const mcDoubleComplex *s);

/* The same of complex vectors with real c and s. */
MCBLASAPIENTRY mcblasStatus_t mcblasCsrot(mcblasHandle_t handle, int n, mcComplex *x, int incx, mcComplex *y, int incy,
    const float *c, const float *s);
MCBLASAPIENTRY mcblasStatus_t mcblasZdrot(mcblasHandle_t handle, int n, mcDoubleComplex *x, int incx,
    mcDoubleComplex *y, int incy, const double *c, const double *s);

/* Makes the rotation that turns (a, b) into (r, 0): a becomes r, b becomes z, from which c and s can be had again. */
MCBLASAPIENTRY mcblasStatus_t mcblasSrotg(mcblasHandle_t handle, float *a, float *b, float *c, float *s);
MCBLASAPIENTRY mcblasStatus_t mcblasDrotg(mcblasHandle_t handle, double *a, double *b, double *c, double *s);

/* The same for complex a and b; a becomes r. */
MCBLASAPIENTRY mcblasStatus_t mcblasCrotg(mcblasHandle_t handle, mcComplex *a, mcComplex *b, float *c, mcComplex *s);
MCBLASAPIENTRY mcblasStatus_t mcblasZrotg(mcblasHandle_t handle, mcDoubleComplex *a, mcDoubleComplex *b, double *c,
    mcDoubleComplex *s);

/* Modified rotation; param is a flag (-1, 0, 1, -2) and h11, h21, h12, h22. */
MCBLASAPIENTRY mcblasStatus_t mcblasSrotm(mcblasHandle_t handle, int n, float *x, int incx, float *y, int incy,
    const float *param);
MCBLASAPIENTRY mcblasStatus_t mcblasDrotm(mcblasHandle_t handle, int n, double *x, int incx, double *y, int incy,
    const double *param);

/* Makes the modified rotation that turns (x1 * sqrt(d1), y1 * sqrt(d2)) into (r, 0). */
MCBLASAPIENTRY mcblasStatus_t mcblasSrotmg(mcblasHandle_t handle, float *d1, float *d2, float *x1, const float *y1,
    float *param);
MCBLASAPIENTRY mcblasStatus_t mcblasDrotmg(mcblasHandle_t handle, double *d1, double *d2, double *x1, const double *y1,
    double *param);

/* Level 1 in mixed types: sums are formed in the execution type at least, and rounded once. */
MCBLASAPIENTRY mcblasStatus_t mcblasAxpyEx(mcblasHandle_t handle, int n, const void *alpha, macaDataType_t alphaType,
    const void *x, macaDataType_t xType, int incx, void *y, macaDataType_t yType, int incy,
    macaDataType_t executiontype);
MCBLASAPIENTRY mcblasStatus_t mcblasDotEx(mcblasHandle_t handle, int n, const void *x, macaDataType_t xType, int incx,
    const void *y, macaDataType_t yType, int incy, void *result, macaDataType_t resultType,
    macaDataType_t executionType);
MCBLASAPIENTRY mcblasStatus_t mcblasDotcEx(mcblasHandle_t handle, int n, const void *x, macaDataType_t xType, int incx,
    const void *y, macaDataType_t yType, int incy, void *result, macaDataType_t resultType,
    macaDataType_t executionType);
MCBLASAPIENTRY mcblasStatus_t mcblasRotEx(mcblasHandle_t handle, int n, void *x, macaDataType_t xType, int incx,
    void *y, macaDataType_t yType, int incy, const void *c, const void *s, macaDataType_t csType,
    macaDataType_t executiontype);
MCBLASAPIENTRY mcblasStatus_t mcblasScalEx(mcblasHandle_t handle, int n, const void *alpha, macaDataType_t alphaType,
    void *x, macaDataType_t xType, int incx, macaDataType_t executionType);
MCBLASAPIENTRY mcblasStatus_t mcblasNrm2Ex(mcblasHandle_t handle, int n, const void *x, macaDataType_t xType, int incx,
    void *result, macaDataType_t resultType, macaDataType_t executionType);

/* ---- level 2: a matrix and vectors ---- */

/* y = alpha * op(A) x + beta * y; A is m x n. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgemv(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const float *A, int lda, const float *x, int incx, const float *beta, float *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasDgemv(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const double *alpha, const double *A, int lda, const double *x, int incx, const double *beta, double *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemv(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *x, int incx, const mcComplex *beta,
    mcComplex *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasZgemv(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *x, int incx,
    const mcDoubleComplex *beta, mcDoubleComplex *y, int incy);

/* The same for a band matrix with kl lower and ku upper diagonals: A(i, j) is in row ku + i - j of column j. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgbmv(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n, int kl, int ku,
    const float *alpha, const float *A, int lda, const float *x, int incx, const float *beta, float *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasDgbmv(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n, int kl, int ku,
    const double *alpha, const double *A, int lda, const double *x, int incx, const double *beta, double *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasCgbmv(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n, int kl, int ku,
    const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *x, int incx, const mcComplex *beta,
    mcComplex *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasZgbmv(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n, int kl, int ku,
    const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *x, int incx,
    const mcDoubleComplex *beta, mcDoubleComplex *y, int incy);

/* y = alpha * A x + beta * y for a symmetric or Hermitian matrix, of which one triangle is read. */
MCBLASAPIENTRY mcblasStatus_t mcblasSsymv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *alpha,
    const float *A, int lda, const float *x, int incx, const float *beta, float *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasDsymv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *alpha,
    const double *A, int lda, const double *x, int incx, const double *beta, double *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasCsymv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const mcComplex *alpha,
    const mcComplex *A, int lda, const mcComplex *x, int incx, const mcComplex *beta, mcComplex *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasZsymv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *x, int incx,
    const mcDoubleComplex *beta, mcDoubleComplex *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasChemv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const mcComplex *alpha,
    const mcComplex *A, int lda, const mcComplex *x, int incx, const mcComplex *beta, mcComplex *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasZhemv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *x, int incx,
    const mcDoubleComplex *beta, mcDoubleComplex *y, int incy);

/* The same for a band of k diagonals beside the main one. */
MCBLASAPIENTRY mcblasStatus_t mcblasSsbmv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, int k,
    const float *alpha, const float *A, int lda, const float *x, int incx, const float *beta, float *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasDsbmv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, int k,
    const double *alpha, const double *A, int lda, const double *x, int incx, const double *beta, double *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasChbmv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, int k,
    const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *x, int incx, const mcComplex *beta,
    mcComplex *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasZhbmv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, int k,
    const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *x, int incx,
    const mcDoubleComplex *beta, mcDoubleComplex *y, int incy);

/* The same for a triangle packed by columns. */
MCBLASAPIENTRY mcblasStatus_t mcblasSspmv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *alpha,
    const float *AP, const float *x, int incx, const float *beta, float *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasDspmv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *alpha,
    const double *AP, const double *x, int incx, const double *beta, double *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasChpmv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const mcComplex *alpha,
    const mcComplex *AP, const mcComplex *x, int incx, const mcComplex *beta, mcComplex *y, int incy);
MCBLASAPIENTRY mcblasStatus_t mcblasZhpmv(mcblasHandle_t handle, mcblasFillMode_t uplo, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *AP, const mcDoubleComplex *x, int incx,
    const mcDoubleComplex *beta, mcDoubleComplex *y, int incy);

/* A = alpha * x y^T + A; y is conjugated in ...gerc. */
MCBLASAPIENTRY mcblasStatus_t mcblasSger(mcblasHandle_t handle, int m, int n, const float *alpha, const float *x,
    int incx, const float *y, int incy, float *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasDger(mcblasHandle_t handle, int m, int n, const double *alpha, const double *x,
    int incx, const double *y, int incy, double *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasCgeru(mcblasHandle_t handle, int m, int n, const mcComplex *alpha,
    const mcComplex *x, int incx, const mcComplex *y, int incy, mcComplex *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasCgerc(mcblasHandle_t handle, int m, int n, const mcComplex *alpha,
    const mcComplex *x, int incx, const mcComplex *y, int incy, mcComplex *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasZgeru(mcblasHandle_t handle, int m, int n, const mcDoubleComplex *alpha,
    const mcDoubleComplex *x, int incx, const mcDoubleComplex *y, int incy, mcDoubleComplex *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasZgerc(mcblasHandle_t handle, int m, int n, const mcDoubleComplex *alpha,
    const mcDoubleComplex *x, int incx, const mcDoubleComplex *y, int incy, mcDoubleComplex *A, int lda);

/* A = alpha * x x^T + A, one triangle. */
MCBLASAPIENTRY mcblasStatus_t mcblasSsyr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *alpha,
    const float *x, int incx, float *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasDsyr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *alpha,
    const double *x, int incx, double *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasCsyr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const mcComplex *alpha,
    const mcComplex *x, int incx, mcComplex *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasZsyr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *x, int incx, mcDoubleComplex *A, int lda);

/* A = alpha * x x^H + A, one triangle, alpha real. */
MCBLASAPIENTRY mcblasStatus_t mcblasCher(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *alpha,
    const mcComplex *x, int incx, mcComplex *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasZher(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *alpha,
    const mcDoubleComplex *x, int incx, mcDoubleComplex *A, int lda);

/* A = alpha * x y^T + alpha * y x^T + A, with conjugates for ...her2; one triangle. */
MCBLASAPIENTRY mcblasStatus_t mcblasSsyr2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *alpha,
    const float *x, int incx, const float *y, int incy, float *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasDsyr2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *alpha,
    const double *x, int incx, const double *y, int incy, double *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasCsyr2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const mcComplex *alpha,
    const mcComplex *x, int incx, const mcComplex *y, int incy, mcComplex *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasZsyr2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *x, int incx, const mcDoubleComplex *y, int incy,
    mcDoubleComplex *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasCher2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const mcComplex *alpha,
    const mcComplex *x, int incx, const mcComplex *y, int incy, mcComplex *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasZher2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *x, int incx, const mcDoubleComplex *y, int incy,
    mcDoubleComplex *A, int lda);

/* The rank-1 update of a packed triangle. */
MCBLASAPIENTRY mcblasStatus_t mcblasSspr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *alpha,
    const float *x, int incx, float *AP);
MCBLASAPIENTRY mcblasStatus_t mcblasDspr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *alpha,
    const double *x, int incx, double *AP);

/* The same, Hermitian, alpha real. */
MCBLASAPIENTRY mcblasStatus_t mcblasChpr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *alpha,
    const mcComplex *x, int incx, mcComplex *AP);
MCBLASAPIENTRY mcblasStatus_t mcblasZhpr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *alpha,
    const mcDoubleComplex *x, int incx, mcDoubleComplex *AP);

/* The rank-2 update of a packed triangle. */
MCBLASAPIENTRY mcblasStatus_t mcblasSspr2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *alpha,
    const float *x, int incx, const float *y, int incy, float *AP);
MCBLASAPIENTRY mcblasStatus_t mcblasDspr2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *alpha,
    const double *x, int incx, const double *y, int incy, double *AP);
MCBLASAPIENTRY mcblasStatus_t mcblasChpr2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const mcComplex *alpha,
    const mcComplex *x, int incx, const mcComplex *y, int incy, mcComplex *AP);
MCBLASAPIENTRY mcblasStatus_t mcblasZhpr2(mcblasHandle_t handle, mcblasFillMode_t uplo, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *x, int incx, const mcDoubleComplex *y, int incy,
    mcDoubleComplex *AP);

/* x = op(A) x (...mv), or the solution of op(A) x = b in place (...sv), for a triangular matrix. */
MCBLASAPIENTRY mcblasStatus_t mcblasStrmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const float *A, int lda, float *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasDtrmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const double *A, int lda, double *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasCtrmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const mcComplex *A, int lda, mcComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasZtrmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const mcDoubleComplex *A, int lda, mcDoubleComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasStrsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const float *A, int lda, float *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasDtrsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const double *A, int lda, double *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasCtrsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const mcComplex *A, int lda, mcComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasZtrsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const mcDoubleComplex *A, int lda, mcDoubleComplex *x, int incx);

/* The same for a triangular band of k diagonals beside the main one. */
MCBLASAPIENTRY mcblasStatus_t mcblasStbmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, int k, const float *A, int lda, float *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasDtbmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, int k, const double *A, int lda, double *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasCtbmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, int k, const mcComplex *A, int lda, mcComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasZtbmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, int k, const mcDoubleComplex *A, int lda, mcDoubleComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasStbsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, int k, const float *A, int lda, float *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasDtbsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, int k, const double *A, int lda, double *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasCtbsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, int k, const mcComplex *A, int lda, mcComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasZtbsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, int k, const mcDoubleComplex *A, int lda, mcDoubleComplex *x, int incx);

/* The same for a packed triangle. */
MCBLASAPIENTRY mcblasStatus_t mcblasStpmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const float *AP, float *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasDtpmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const double *AP, double *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasCtpmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const mcComplex *AP, mcComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasZtpmv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const mcDoubleComplex *AP, mcDoubleComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasStpsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const float *AP, float *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasDtpsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const double *AP, double *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasCtpsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const mcComplex *AP, mcComplex *x, int incx);
MCBLASAPIENTRY mcblasStatus_t mcblasZtpsv(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans,
    mcblasDiagType_t diag, int n, const mcDoubleComplex *AP, mcDoubleComplex *x, int incx);

/* gemv for each i: the arrays of pointers are in device memory. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgemvBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const float *const Aarray[], int lda, const float *const xarray[], int incx, const float *beta,
    float *const yarray[], int incy, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasDgemvBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const double *alpha, const double *const Aarray[], int lda, const double *const xarray[], int incx,
    const double *beta, double *const yarray[], int incy, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemvBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const mcComplex *alpha, const mcComplex *const Aarray[], int lda, const mcComplex *const xarray[], int incx,
    const mcComplex *beta, mcComplex *const yarray[], int incy, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasZgemvBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *const Aarray[], int lda, const mcDoubleComplex *const xarray[],
    int incx, const mcDoubleComplex *beta, mcDoubleComplex *const yarray[], int incy, int batchCount);

/* gemv for each i, matrices and vectors lying `stride` elements apart. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgemvStridedBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const float *A, int lda, mcblas_stride strideA, const float *x, int incx, mcblas_stride stridex,
    const float *beta, float *y, int incy, mcblas_stride stridey, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasDgemvStridedBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const double *alpha, const double *A, int lda, mcblas_stride strideA, const double *x, int incx,
    mcblas_stride stridex, const double *beta, double *y, int incy, mcblas_stride stridey, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemvStridedBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const mcComplex *alpha, const mcComplex *A, int lda, mcblas_stride strideA, const mcComplex *x, int incx,
    mcblas_stride stridex, const mcComplex *beta, mcComplex *y, int incy, mcblas_stride stridey, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasZgemvStridedBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, mcblas_stride strideA, const mcDoubleComplex *x,
    int incx, mcblas_stride stridex, const mcDoubleComplex *beta, mcDoubleComplex *y, int incy, mcblas_stride stridey,
    int batchCount);

/* Both forms of gemv in mixed types: A and x are half (HS) or bfloat16 (TS), y is of that type or float (the third
 * letter); alpha and beta are float. */
MCBLASAPIENTRY mcblasStatus_t mcblasHSHgemvBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const mcblas_half *const Aarray[], int lda, const mcblas_half *const xarray[], int incx,
    const float *beta, mcblas_half *const yarray[], int incy, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasHSHgemvStridedBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const mcblas_half *A, int lda, mcblas_stride strideA, const mcblas_half *x, int incx,
    mcblas_stride stridex, const float *beta, mcblas_half *y, int incy, mcblas_stride stridey, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasHSSgemvBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const mcblas_half *const Aarray[], int lda, const mcblas_half *const xarray[], int incx,
    const float *beta, float *const yarray[], int incy, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasHSSgemvStridedBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const mcblas_half *A, int lda, mcblas_stride strideA, const mcblas_half *x, int incx,
    mcblas_stride stridex, const float *beta, float *y, int incy, mcblas_stride stridey, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasTSTgemvBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const mcblas_bfloat16 *const Aarray[], int lda, const mcblas_bfloat16 *const xarray[], int incx,
    const float *beta, mcblas_bfloat16 *const yarray[], int incy, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasTSTgemvStridedBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const mcblas_bfloat16 *A, int lda, mcblas_stride strideA, const mcblas_bfloat16 *x, int incx,
    mcblas_stride stridex, const float *beta, mcblas_bfloat16 *y, int incy, mcblas_stride stridey, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasTSSgemvBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const mcblas_bfloat16 *const Aarray[], int lda, const mcblas_bfloat16 *const xarray[], int incx,
    const float *beta, float *const yarray[], int incy, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasTSSgemvStridedBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n,
    const float *alpha, const mcblas_bfloat16 *A, int lda, mcblas_stride strideA, const mcblas_bfloat16 *x, int incx,
    mcblas_stride stridex, const float *beta, float *y, int incy, mcblas_stride stridey, int batchCount);

/* ---- level 3: matrices ---- */

/* C = alpha * op(A) op(B) + beta * C; op(A) is m x k, op(B) k x n. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgemm(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const float *alpha, const float *A, int lda, const float *B, int ldb, const float *beta,
    float *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasDgemm(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const double *alpha, const double *A, int lda, const double *B, int ldb, const double *beta,
    double *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemm(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *B, int ldb,
    const mcComplex *beta, mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZgemm(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *B,
    int ldb, const mcDoubleComplex *beta, mcDoubleComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasHgemm(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const mcblas_half *alpha, const mcblas_half *A, int lda, const mcblas_half *B, int ldb,
    const mcblas_half *beta, mcblas_half *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemm3m(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *B, int ldb,
    const mcComplex *beta, mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZgemm3m(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *B,
    int ldb, const mcDoubleComplex *beta, mcDoubleComplex *C, int ldc);

/* gemm for each i, matrices lying `stride` elements apart; 0 shares an input. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgemmStridedBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const float *alpha, const float *A, int lda, mcblas_stride strideA,
    const float *B, int ldb, mcblas_stride strideB, const float *beta, float *C, int ldc, mcblas_stride strideC,
    int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasDgemmStridedBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const double *alpha, const double *A, int lda, mcblas_stride strideA,
    const double *B, int ldb, mcblas_stride strideB, const double *beta, double *C, int ldc, mcblas_stride strideC,
    int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemmStridedBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const mcComplex *alpha, const mcComplex *A, int lda,
    mcblas_stride strideA, const mcComplex *B, int ldb, mcblas_stride strideB, const mcComplex *beta, mcComplex *C,
    int ldc, mcblas_stride strideC, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasZgemmStridedBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda,
    mcblas_stride strideA, const mcDoubleComplex *B, int ldb, mcblas_stride strideB, const mcDoubleComplex *beta,
    mcDoubleComplex *C, int ldc, mcblas_stride strideC, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasHgemmStridedBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const mcblas_half *alpha, const mcblas_half *A, int lda,
    mcblas_stride strideA, const mcblas_half *B, int ldb, mcblas_stride strideB, const mcblas_half *beta,
    mcblas_half *C, int ldc, mcblas_stride strideC, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemm3mStridedBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const mcComplex *alpha, const mcComplex *A, int lda,
    mcblas_stride strideA, const mcComplex *B, int ldb, mcblas_stride strideB, const mcComplex *beta, mcComplex *C,
    int ldc, mcblas_stride strideC, int batchCount);

/* gemm for each i: the arrays of pointers are in device memory. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgemmBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const float *alpha, const float *const Aarray[], int lda,
    const float *const Barray[], int ldb, const float *beta, float *const Carray[], int ldc, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasDgemmBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const double *alpha, const double *const Aarray[], int lda,
    const double *const Barray[], int ldb, const double *beta, double *const Carray[], int ldc, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemmBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const mcComplex *alpha, const mcComplex *const Aarray[], int lda,
    const mcComplex *const Barray[], int ldb, const mcComplex *beta, mcComplex *const Carray[], int ldc,
    int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasZgemmBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const mcDoubleComplex *alpha, const mcDoubleComplex *const Aarray[],
    int lda, const mcDoubleComplex *const Barray[], int ldb, const mcDoubleComplex *beta,
    mcDoubleComplex *const Carray[], int ldc, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasHgemmBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const mcblas_half *alpha, const mcblas_half *const Aarray[], int lda,
    const mcblas_half *const Barray[], int ldb, const mcblas_half *beta, mcblas_half *const Carray[], int ldc,
    int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemm3mBatched(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const mcComplex *alpha, const mcComplex *const Aarray[], int lda,
    const mcComplex *const Barray[], int ldb, const mcComplex *beta, mcComplex *const Carray[], int ldc,
    int batchCount);

/* C = alpha * A B + beta * C, or B A, for a symmetric or Hermitian A of which one triangle is read. */
MCBLASAPIENTRY mcblasStatus_t mcblasSsymm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo, int m,
    int n, const float *alpha, const float *A, int lda, const float *B, int ldb, const float *beta, float *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasDsymm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo, int m,
    int n, const double *alpha, const double *A, int lda, const double *B, int ldb, const double *beta, double *C,
    int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCsymm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo, int m,
    int n, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *B, int ldb, const mcComplex *beta,
    mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZsymm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo, int m,
    int n, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *B, int ldb,
    const mcDoubleComplex *beta, mcDoubleComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasChemm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo, int m,
    int n, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *B, int ldb, const mcComplex *beta,
    mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZhemm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo, int m,
    int n, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *B, int ldb,
    const mcDoubleComplex *beta, mcDoubleComplex *C, int ldc);

/* C = alpha * op(A) op(A)^T + beta * C, one triangle of C. */
MCBLASAPIENTRY mcblasStatus_t mcblasSsyrk(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const float *alpha, const float *A, int lda, const float *beta, float *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasDsyrk(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const double *alpha, const double *A, int lda, const double *beta, double *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCsyrk(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *beta, mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZsyrk(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *beta,
    mcDoubleComplex *C, int ldc);

/* C = alpha * op(A) op(A)^H + beta * C, one triangle of C; alpha and beta are real. */
MCBLASAPIENTRY mcblasStatus_t mcblasCherk(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const float *alpha, const mcComplex *A, int lda, const float *beta, mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZherk(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const double *alpha, const mcDoubleComplex *A, int lda, const double *beta, mcDoubleComplex *C, int ldc);

/* C = alpha * (op(A) op(B)^T + op(B) op(A)^T) + beta * C; syrkx has the first product only. One triangle of C. */
MCBLASAPIENTRY mcblasStatus_t mcblasSsyr2k(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const float *alpha, const float *A, int lda, const float *B, int ldb, const float *beta, float *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasDsyr2k(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const double *alpha, const double *A, int lda, const double *B, int ldb, const double *beta, double *C,
    int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCsyr2k(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *B, int ldb, const mcComplex *beta,
    mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZsyr2k(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *B, int ldb,
    const mcDoubleComplex *beta, mcDoubleComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasSsyrkx(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const float *alpha, const float *A, int lda, const float *B, int ldb, const float *beta, float *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasDsyrkx(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const double *alpha, const double *A, int lda, const double *B, int ldb, const double *beta, double *C,
    int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCsyrkx(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *B, int ldb, const mcComplex *beta,
    mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZsyrkx(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *B, int ldb,
    const mcDoubleComplex *beta, mcDoubleComplex *C, int ldc);

/* The Hermitian forms; beta is real. */
MCBLASAPIENTRY mcblasStatus_t mcblasCher2k(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *B, int ldb, const float *beta,
    mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZher2k(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *B, int ldb,
    const double *beta, mcDoubleComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCherkx(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *B, int ldb, const float *beta,
    mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZherkx(mcblasHandle_t handle, mcblasFillMode_t uplo, mcblasOperation_t trans, int n,
    int k, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *B, int ldb,
    const double *beta, mcDoubleComplex *C, int ldc);

/* C = alpha * op(A) B, or B op(A), for a triangular A; B may be C. */
MCBLASAPIENTRY mcblasStatus_t mcblasStrmm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const float *alpha, const float *A, int lda,
    const float *B, int ldb, float *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasDtrmm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const double *alpha, const double *A, int lda,
    const double *B, int ldb, double *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCtrmm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const mcComplex *alpha, const mcComplex *A, int lda,
    const mcComplex *B, int ldb, mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZtrmm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const mcDoubleComplex *alpha,
    const mcDoubleComplex *A, int lda, const mcDoubleComplex *B, int ldb, mcDoubleComplex *C, int ldc);

/* Solves op(A) X = alpha * B, or X op(A) = alpha * B, for a triangular A; B becomes X. */
MCBLASAPIENTRY mcblasStatus_t mcblasStrsm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const float *alpha, const float *A, int lda, float *B,
    int ldb);
MCBLASAPIENTRY mcblasStatus_t mcblasDtrsm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const double *alpha, const double *A, int lda,
    double *B, int ldb);
MCBLASAPIENTRY mcblasStatus_t mcblasCtrsm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const mcComplex *alpha, const mcComplex *A, int lda,
    mcComplex *B, int ldb);
MCBLASAPIENTRY mcblasStatus_t mcblasZtrsm(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const mcDoubleComplex *alpha,
    const mcDoubleComplex *A, int lda, mcDoubleComplex *B, int ldb);

/* trsm for each i: the arrays of pointers are in device memory. */
MCBLASAPIENTRY mcblasStatus_t mcblasStrsmBatched(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const float *alpha, const float *const A[], int lda,
    float *const B[], int ldb, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasDtrsmBatched(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const double *alpha, const double *const A[], int lda,
    double *const B[], int ldb, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasCtrsmBatched(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const mcComplex *alpha, const mcComplex *const A[],
    int lda, mcComplex *const B[], int ldb, int batchCount);
MCBLASAPIENTRY mcblasStatus_t mcblasZtrsmBatched(mcblasHandle_t handle, mcblasSideMode_t side, mcblasFillMode_t uplo,
    mcblasOperation_t trans, mcblasDiagType_t diag, int m, int n, const mcDoubleComplex *alpha,
    const mcDoubleComplex *const A[], int lda, mcDoubleComplex *const B[], int ldb, int batchCount);

/* gemm with float (complex float) arithmetic on matrices of other types. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgemmEx(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const float *alpha, const void *A, macaDataType_t Atype, int lda, const void *B,
    macaDataType_t Btype, int ldb, const float *beta, void *C, macaDataType_t Ctype, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCgemmEx(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const mcComplex *alpha, const void *A, macaDataType_t Atype, int lda, const void *B,
    macaDataType_t Btype, int ldb, const mcComplex *beta, void *C, macaDataType_t Ctype, int ldc);

/* gemm in the arithmetic of computeType: the combinations of types are those of the vendor's table, others are
 * MCBLAS_STATUS_NOT_SUPPORTED. alpha and beta have the scale type that belongs to it. algo has no effect. */
MCBLASAPIENTRY mcblasStatus_t mcblasGemmEx(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const void *alpha, const void *A, macaDataType_t Atype, int lda, const void *B,
    macaDataType_t Btype, int ldb, const void *beta, void *C, macaDataType_t Ctype, int ldc,
    mcblasComputeType_t computeType, mcblasGemmAlgo_t algo);

/* The same for each i of a batch. */
MCBLASAPIENTRY mcblasStatus_t mcblasGemmStridedBatchedEx(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const void *alpha, const void *A, macaDataType_t Atype, int lda,
    mcblas_stride strideA, const void *B, macaDataType_t Btype, int ldb, mcblas_stride strideB, const void *beta,
    void *C, macaDataType_t Ctype, int ldc, mcblas_stride strideC, int batchCount, mcblasComputeType_t computeType,
    mcblasGemmAlgo_t algo);

/* The same for arrays of pointers in device memory. */
MCBLASAPIENTRY mcblasStatus_t mcblasGemmBatchedEx(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const void *alpha, const void *const Aarray[], macaDataType_t Atype,
    int lda, const void *const Barray[], macaDataType_t Btype, int ldb, const void *beta, void *const Carray[],
    macaDataType_t Ctype, int ldc, int batchCount, mcblasComputeType_t computeType, mcblasGemmAlgo_t algo);

/* Groups of products of one size: array i of each pair belongs to group i; arrays of pointers are in device memory, all
 * other arrays in host memory. */
MCBLASAPIENTRY mcblasStatus_t mcblasGemmGroupedBatchedEx(mcblasHandle_t handle, const mcblasOperation_t transa_array[],
    const mcblasOperation_t transb_array[], const int m_array[], const int n_array[], const int k_array[],
    const void *alpha_array, const void *const Aarray[], macaDataType_t Atype, const int lda_array[],
    const void *const Barray[], macaDataType_t Btype, const int ldb_array[], const void *beta_array,
    void *const Carray[], macaDataType_t Ctype, const int ldc_array[], int group_count, const int group_size[],
    mcblasComputeType_t computeType);

/* ---- extensions ---- */

/* C = alpha * op(A) + beta * op(B). C may be A or B when that operand is not transposed. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgeam(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, const float *alpha, const float *A, int lda, const float *beta, const float *B, int ldb, float *C,
    int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasDgeam(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, const double *alpha, const double *A, int lda, const double *beta, const double *B, int ldb,
    double *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCgeam(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *beta, const mcComplex *B,
    int ldb, mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZgeam(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda, const mcDoubleComplex *beta,
    const mcDoubleComplex *B, int ldb, mcDoubleComplex *C, int ldc);

/* C = A * diag(x) (MCBLAS_SIDE_RIGHT) or diag(x) * A (MCBLAS_SIDE_LEFT). */
MCBLASAPIENTRY mcblasStatus_t mcblasSdgmm(mcblasHandle_t handle, mcblasSideMode_t mode, int m, int n, const float *A,
    int lda, const float *x, int incx, float *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasDdgmm(mcblasHandle_t handle, mcblasSideMode_t mode, int m, int n, const double *A,
    int lda, const double *x, int incx, double *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasCdgmm(mcblasHandle_t handle, mcblasSideMode_t mode, int m, int n,
    const mcComplex *A, int lda, const mcComplex *x, int incx, mcComplex *C, int ldc);
MCBLASAPIENTRY mcblasStatus_t mcblasZdgmm(mcblasHandle_t handle, mcblasSideMode_t mode, int m, int n,
    const mcDoubleComplex *A, int lda, const mcDoubleComplex *x, int incx, mcDoubleComplex *C, int ldc);

/* Unpacks a triangle: AP to A. */
MCBLASAPIENTRY mcblasStatus_t mcblasStpttr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *AP,
    float *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasDtpttr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *AP,
    double *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasCtpttr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const mcComplex *AP,
    mcComplex *A, int lda);
MCBLASAPIENTRY mcblasStatus_t mcblasZtpttr(mcblasHandle_t handle, mcblasFillMode_t uplo, int n,
    const mcDoubleComplex *AP, mcDoubleComplex *A, int lda);

/* Packs a triangle: A to AP. */
MCBLASAPIENTRY mcblasStatus_t mcblasStrttp(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const float *A, int lda,
    float *AP);
MCBLASAPIENTRY mcblasStatus_t mcblasDtrttp(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const double *A,
    int lda, double *AP);
MCBLASAPIENTRY mcblasStatus_t mcblasCtrttp(mcblasHandle_t handle, mcblasFillMode_t uplo, int n, const mcComplex *A,
    int lda, mcComplex *AP);
MCBLASAPIENTRY mcblasStatus_t mcblasZtrttp(mcblasHandle_t handle, mcblasFillMode_t uplo, int n,
    const mcDoubleComplex *A, int lda, mcDoubleComplex *AP);

/* ---- factorisations of batches, by a LAPACK ----
 * The arrays of pointers, P, devIpiv, info of getrf, getri and matinv, and devInfoArray are in device memory and are read and
 * written when the work runs; info of getrs, geqrf and gels is one int on the host: 0, or -i when parameter i behind the handle
 * is refused. Sizes of 0 do nothing. INVALID_VALUE: a negative size, a leading dimension smaller than the matrix, NULL. */

/* LU factors of n x n matrices with row exchanges, in place: L, whose diagonal of 1 is not stored, below U. P [batchSize, n]:
 * row i was exchanged with row P[i], from 1 on; NULL: no exchanges. info [batchSize]: 0, or k: U(k,k) is 0, the first one;
 * without exchanges there are no factors then. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgetrfBatched(mcblasHandle_t handle, int n, float *const A[], int lda, int *P,
    int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasDgetrfBatched(mcblasHandle_t handle, int n, double *const A[], int lda, int *P,
    int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasCgetrfBatched(mcblasHandle_t handle, int n, mcComplex *const A[], int lda, int *P,
    int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasZgetrfBatched(mcblasHandle_t handle, int n, mcDoubleComplex *const A[], int lda,
    int *P, int *info, int batchSize);

/* Inverses C from the LU factors A and P of getrf; P NULL: without exchanges. info [batchSize]: 0, or k: U(k,k) is 0, and C
 * is not written. Pivots that are no numbers of rows are a device fault. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgetriBatched(mcblasHandle_t handle, int n, const float *const A[], int lda,
    const int *P, float *const C[], int ldc, int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasDgetriBatched(mcblasHandle_t handle, int n, const double *const A[], int lda,
    const int *P, double *const C[], int ldc, int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasCgetriBatched(mcblasHandle_t handle, int n, const mcComplex *const A[], int lda,
    const int *P, mcComplex *const C[], int ldc, int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasZgetriBatched(mcblasHandle_t handle, int n, const mcDoubleComplex *const A[],
    int lda, const int *P, mcDoubleComplex *const C[], int ldc, int *info, int batchSize);

/* B, n x nrhs, becomes X of op(A) X = B, from the LU factors A and devIpiv of getrf; devIpiv NULL: without exchanges. Singular
 * matrices are not found. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgetrsBatched(mcblasHandle_t handle, mcblasOperation_t trans, int n, int nrhs,
    const float *const Aarray[], int lda, const int *devIpiv, float *const Barray[], int ldb, int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasDgetrsBatched(mcblasHandle_t handle, mcblasOperation_t trans, int n, int nrhs,
    const double *const Aarray[], int lda, const int *devIpiv, double *const Barray[], int ldb, int *info,
    int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasCgetrsBatched(mcblasHandle_t handle, mcblasOperation_t trans, int n, int nrhs,
    const mcComplex *const Aarray[], int lda, const int *devIpiv, mcComplex *const Barray[], int ldb, int *info,
    int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasZgetrsBatched(mcblasHandle_t handle, mcblasOperation_t trans, int n, int nrhs,
    const mcDoubleComplex *const Aarray[], int lda, const int *devIpiv, mcDoubleComplex *const Barray[], int ldb,
    int *info, int batchSize);

/* Inverses of matrices of at most 32 x 32 (larger: INVALID_VALUE): getrf and getri in one; A stays as it is. info as of
 * getri. */
MCBLASAPIENTRY mcblasStatus_t mcblasSmatinvBatched(mcblasHandle_t handle, int n, const float *const A[], int lda,
    float *const Ainv[], int lda_inv, int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasDmatinvBatched(mcblasHandle_t handle, int n, const double *const A[], int lda,
    double *const Ainv[], int lda_inv, int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasCmatinvBatched(mcblasHandle_t handle, int n, const mcComplex *const A[], int lda,
    mcComplex *const Ainv[], int lda_inv, int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasZmatinvBatched(mcblasHandle_t handle, int n, const mcDoubleComplex *const A[],
    int lda, mcDoubleComplex *const Ainv[], int lda_inv, int *info, int batchSize);

/* QR factors of m x n matrices, in place: R, and below it the vectors v of the reflectors 1 - tau v v^H, whose product is Q;
 * the first element of v, 1, is not stored. TauArray: arrays of min(m, n) elements. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgeqrfBatched(mcblasHandle_t handle, int m, int n, float *const Aarray[], int lda,
    float *const TauArray[], int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasDgeqrfBatched(mcblasHandle_t handle, int m, int n, double *const Aarray[], int lda,
    double *const TauArray[], int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasCgeqrfBatched(mcblasHandle_t handle, int m, int n, mcComplex *const Aarray[],
    int lda, mcComplex *const TauArray[], int *info, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasZgeqrfBatched(mcblasHandle_t handle, int m, int n, mcDoubleComplex *const Aarray[],
    int lda, mcDoubleComplex *const TauArray[], int *info, int batchSize);

/* Least squares by QR: A, m x n with m >= n, becomes its QR factors, the first n rows of C, m x nrhs, the X with the smallest
 * |C - A X|, the others what is left over, Q^H C. devInfoArray [batchSize] or NULL: 0, or k: R(k,k) is 0, and there is no X.
 * NOT_SUPPORTED: trans is not N, or m < n. */
MCBLASAPIENTRY mcblasStatus_t mcblasSgelsBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n, int nrhs,
    float *const Aarray[], int lda, float *const Carray[], int ldc, int *info, int *devInfoArray, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasDgelsBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n, int nrhs,
    double *const Aarray[], int lda, double *const Carray[], int ldc, int *info, int *devInfoArray, int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasCgelsBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n, int nrhs,
    mcComplex *const Aarray[], int lda, mcComplex *const Carray[], int ldc, int *info, int *devInfoArray,
    int batchSize);
MCBLASAPIENTRY mcblasStatus_t mcblasZgelsBatched(mcblasHandle_t handle, mcblasOperation_t trans, int m, int n, int nrhs,
    mcDoubleComplex *const Aarray[], int lda, mcDoubleComplex *const Carray[], int ldc, int *info, int *devInfoArray,
    int batchSize);

#ifdef __cplusplus
}

/* The same functions with a data type for the arithmetic, as before compute types. Types in which nothing is computed give
 * MCBLAS_STATUS_NOT_SUPPORTED: they become a compute type that does not go with A. */
static inline mcblasComputeType_t mcblasComputeTypeOf(macaDataType_t computeType, macaDataType_t Atype)
{
    return computeType == MACA_R_16F ? MCBLAS_COMPUTE_16F
           : computeType == MACA_R_32F || computeType == MACA_C_32F ? MCBLAS_COMPUTE_32F
           : computeType == MACA_R_64F || computeType == MACA_C_64F ? MCBLAS_COMPUTE_64F
           : computeType == MACA_R_32I ? MCBLAS_COMPUTE_32I
           : static_cast<unsigned>(computeType) > MACA_R_8F_E5M2 ? static_cast<mcblasComputeType_t>(0)
           : Atype == MACA_R_16F ? MCBLAS_COMPUTE_64F : MCBLAS_COMPUTE_16F;
}

static inline mcblasStatus_t mcblasGemmEx(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
    int m, int n, int k, const void *alpha, const void *A, macaDataType_t Atype, int lda, const void *B,
    macaDataType_t Btype, int ldb, const void *beta, void *C, macaDataType_t Ctype, int ldc, macaDataType_t computeType,
    mcblasGemmAlgo_t algo)
{
    return mcblasGemmEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc,
        mcblasComputeTypeOf(computeType, Atype), algo);
}

static inline mcblasStatus_t mcblasGemmStridedBatchedEx(mcblasHandle_t handle, mcblasOperation_t transa,
    mcblasOperation_t transb, int m, int n, int k, const void *alpha, const void *A, macaDataType_t Atype, int lda,
    mcblas_stride strideA, const void *B, macaDataType_t Btype, int ldb, mcblas_stride strideB, const void *beta,
    void *C, macaDataType_t Ctype, int ldc, mcblas_stride strideC, int batchCount, macaDataType_t computeType,
    mcblasGemmAlgo_t algo)
{
    return mcblasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, strideA, B, Btype, ldb,
        strideB, beta, C, Ctype, ldc, strideC, batchCount, mcblasComputeTypeOf(computeType, Atype), algo);
}
#endif

#endif
