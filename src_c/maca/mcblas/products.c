/* The functions that multiply general matrices and vectors (mcblas 6, 7, 8). */
#include "gemm.h"

#include "kernels/matmul/lines.h"

static void check_sizes(BlasCall *call, const Gemm *gemm)
{
    check_size(&call->call, "m", gemm->m);
    check_size(&call->call, "n", gemm->n);
    check_size(&call->call, "k", gemm->k);
    check_size(&call->call, "batchCount", gemm->batch);
    check_operation(&call->call, "transa", gemm->transa);
    check_operation(&call->call, "transb", gemm->transb);
}

static mcblasStatus_t multiply(const char *function, mcblasHandle_t handle, const Gemm *gemm)
{
    BlasCall call = blas_begin(function, handle);
    check_sizes(&call, gemm);
    blas_gemm(&call, gemm);
    return blas_end(&call);
}

/* A is stored as m x n. */
static mcblasStatus_t multiply_vector(const char *function, mcblasHandle_t handle, int m, int n, const Gemm *vectors)
{
    Gemm gemm = *vectors;
    BlasCall call = blas_begin(function, handle);
    check_size(&call.call, "m", m);
    check_size(&call.call, "n", n);
    check_size(&call.call, "batchCount", gemm.batch);
    check_operation(&call.call, "trans", gemm.transa);
    gemm.m = gemm.transa == MCBLAS_OP_N ? m : n;
    gemm.k = gemm.transa == MCBLAS_OP_N ? n : m;
    gemm.n = 1;
    gemm.vectors = true;
    blas_gemm(&call, &gemm);
    return blas_end(&call);
}

static DType computed_in(DType dtype)
{
    return dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16 ? DTYPE_FLOAT32 : dtype;
}

/* The parameters of a function by the names that all of them use. */
#define GEMM_OF(type, factor) \
    .transa = transa, .transb = transb, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .scale = factor, \
    .compute = computed_in(type), .a = {"A", A, type, lda, "lda"}, .b = {"B", B, type, ldb, "ldb"}, \
    .c = {"C", C, type, ldc, "ldc"}
#define GEMM_OF_TABLES(type) \
    .transa = transa, .transb = transb, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .scale = type, \
    .compute = computed_in(type), .a = {"Aarray", Aarray, type, lda, "lda"}, \
    .b = {"Barray", Barray, type, ldb, "ldb"}, .c = {"Carray", (const void *)Carray, type, ldc, "ldc"}, .table = true
#define STRIDES(a, b, c) .strides = {a, b, c}
#define GEMV_OF(type, result, factor) \
    .transa = trans, .alpha = alpha, .beta = beta, .scale = factor, .compute = computed_in(type), \
    .a = {"A", A, type, lda, "lda"}, .b = {"x", x, type, incx, "incx"}, .c = {"y", y, result, incy, "incy"}
#define GEMV_OF_TABLES(type, result, factor) \
    .transa = trans, .alpha = alpha, .beta = beta, .scale = factor, .compute = computed_in(type), \
    .a = {"Aarray", Aarray, type, lda, "lda"}, .b = {"xarray", xarray, type, incx, "incx"}, \
    .c = {"yarray", (const void *)yarray, result, incy, "incy"}, .table = true

#define FUNCTIONS "products.inc"
#include "types.h"

/* ---- half, and three multiplications instead of four, which is not done here ---- */

mcblasStatus_t mcblasHgemm(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb, int m, int n,
                           int k, const mcblas_half *alpha, const mcblas_half *A, int lda, const mcblas_half *B,
                           int ldb, const mcblas_half *beta, mcblas_half *C, int ldc)
{
    return multiply("mcblasHgemm", handle, &(Gemm){GEMM_OF(DTYPE_FLOAT16, DTYPE_FLOAT16), .batch = 1});
}

mcblasStatus_t mcblasHgemmStridedBatched(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
                                         int m, int n, int k, const mcblas_half *alpha, const mcblas_half *A, int lda,
                                         mcblas_stride strideA, const mcblas_half *B, int ldb, mcblas_stride strideB,
                                         const mcblas_half *beta, mcblas_half *C, int ldc, mcblas_stride strideC,
                                         int batchCount)
{
    return multiply("mcblasHgemmStridedBatched", handle,
                    &(Gemm){GEMM_OF(DTYPE_FLOAT16, DTYPE_FLOAT16), .batch = batchCount, STRIDES(strideA, strideB,
                                                                                                strideC)});
}

mcblasStatus_t mcblasHgemmBatched(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb, int m,
                                  int n, int k, const mcblas_half *alpha, const mcblas_half *const Aarray[], int lda,
                                  const mcblas_half *const Barray[], int ldb, const mcblas_half *beta,
                                  mcblas_half *const Carray[], int ldc, int batchCount)
{
    return multiply("mcblasHgemmBatched", handle, &(Gemm){GEMM_OF_TABLES(DTYPE_FLOAT16), .batch = batchCount});
}

mcblasStatus_t mcblasCgemm3m(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb, int m, int n,
                             int k, const mcComplex *alpha, const mcComplex *A, int lda, const mcComplex *B, int ldb,
                             const mcComplex *beta, mcComplex *C, int ldc)
{
    return multiply("mcblasCgemm3m", handle, &(Gemm){GEMM_OF(DTYPE_COMPLEX64, DTYPE_COMPLEX64), .batch = 1});
}

mcblasStatus_t mcblasZgemm3m(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb, int m, int n,
                             int k, const mcDoubleComplex *alpha, const mcDoubleComplex *A, int lda,
                             const mcDoubleComplex *B, int ldb, const mcDoubleComplex *beta, mcDoubleComplex *C,
                             int ldc)
{
    return multiply("mcblasZgemm3m", handle, &(Gemm){GEMM_OF(DTYPE_COMPLEX128, DTYPE_COMPLEX128), .batch = 1});
}

mcblasStatus_t mcblasCgemm3mStridedBatched(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
                                           int m, int n, int k, const mcComplex *alpha, const mcComplex *A, int lda,
                                           mcblas_stride strideA, const mcComplex *B, int ldb, mcblas_stride strideB,
                                           const mcComplex *beta, mcComplex *C, int ldc, mcblas_stride strideC,
                                           int batchCount)
{
    return multiply("mcblasCgemm3mStridedBatched", handle,
                    &(Gemm){GEMM_OF(DTYPE_COMPLEX64, DTYPE_COMPLEX64), .batch = batchCount,
                            STRIDES(strideA, strideB, strideC)});
}

mcblasStatus_t mcblasCgemm3mBatched(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb, int m,
                                    int n, int k, const mcComplex *alpha, const mcComplex *const Aarray[], int lda,
                                    const mcComplex *const Barray[], int ldb, const mcComplex *beta,
                                    mcComplex *const Carray[], int ldc, int batchCount)
{
    return multiply("mcblasCgemm3mBatched", handle, &(Gemm){GEMM_OF_TABLES(DTYPE_COMPLEX64), .batch = batchCount});
}

/* ---- gemv of 16-bit types: float scalars, results of 16 bits or float ---- */

#define NAME(name) JOIN(mcblasHSH, name)
#define INPUT mcblas_half
#define INPUT_DTYPE DTYPE_FLOAT16
#define OUTPUT mcblas_half
#define OUTPUT_DTYPE DTYPE_FLOAT16
#include "mixed_gemv.inc"

#define NAME(name) JOIN(mcblasHSS, name)
#define INPUT mcblas_half
#define INPUT_DTYPE DTYPE_FLOAT16
#define OUTPUT float
#define OUTPUT_DTYPE DTYPE_FLOAT32
#include "mixed_gemv.inc"

#define NAME(name) JOIN(mcblasTST, name)
#define INPUT mcblas_bfloat16
#define INPUT_DTYPE DTYPE_BFLOAT16
#define OUTPUT mcblas_bfloat16
#define OUTPUT_DTYPE DTYPE_BFLOAT16
#include "mixed_gemv.inc"

#define NAME(name) JOIN(mcblasTSS, name)
#define INPUT mcblas_bfloat16
#define INPUT_DTYPE DTYPE_BFLOAT16
#define OUTPUT float
#define OUTPUT_DTYPE DTYPE_FLOAT32
#include "mixed_gemv.inc"

/* ---- products whose types are parameters (mcblas 8.1) ---- */

static void check_types(BlasCall *call, macaDataType_t a, macaDataType_t b, macaDataType_t c)
{
    const char *const names[] = {"Atype", "Btype", "Ctype"};
    const macaDataType_t types[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        us_require(&call->call, blas_is_known_type(types[i]), names[i], "range", MCBLAS_STATUS_INVALID_VALUE,
                   "%s is %d, which is no data type", names[i], (int)types[i]);
    }
}

static bool is_aligned_to_4(const void *pointer, int leading)
{
    return (uintptr_t)pointer % 4 == 0 && leading % 4 == 0;
}

/* Fills in the types of a product, and does it. */
static void multiply_types(BlasCall *call, Gemm *gemm, mcblasComputeType_t compute, macaDataType_t a, macaDataType_t b,
                           macaDataType_t c)
{
    const GemmTypes *types = blas_gemm_types(compute, a, b, c);
    us_require(&call->call, types != NULL, "Atype", "combination", MCBLAS_STATUS_NOT_SUPPORTED,
               "types %s, %s, %s of A, B, C do not go together in compute type %s", blas_type_name(a),
               blas_type_name(b), blas_type_name(c), blas_compute_name(compute));
    if (!blas_ok(call)) {
        return;
    }
    us_require(&call->call, types->computed_in != DTYPE_INT64 || gemm->table ||
               (is_aligned_to_4(gemm->a.data, gemm->a.leading) && is_aligned_to_4(gemm->b.data, gemm->b.leading)),
               "lda", "alignment", MCBLAS_STATUS_NOT_SUPPORTED,
               "8-bit integers need A and B aligned to 4 bytes, and lda %d and ldb %d multiples of 4", gemm->a.leading,
               gemm->b.leading);
    gemm->a.dtype = gemm->b.dtype = blas_dtype(types->ab);
    gemm->c.dtype = blas_dtype(types->c);
    gemm->scale = blas_dtype(types->scale);
    gemm->compute = types->computed_in;
    blas_gemm(call, gemm);
}

static bool is_known_algorithm(mcblasGemmAlgo_t algo)
{
    return (int)algo >= MCBLAS_GEMM_DEFAULT &&
           ((int)algo <= MCBLAS_GEMM_ALGO23 || ((int)algo >= MCBLAS_GEMM_DEFAULT_TENSOR_OP &&
                                                (int)algo <= MCBLAS_GEMM_ALGO15_TENSOR_OP));
}

static void check_compute(BlasCall *call, mcblasComputeType_t compute)
{
    us_require(&call->call, blas_is_known_compute(compute), "computeType", "range", MCBLAS_STATUS_INVALID_VALUE,
               "computeType is %d, which is no compute type", (int)compute);
}

static mcblasStatus_t multiply_ex(const char *function, mcblasHandle_t handle, Gemm *gemm, macaDataType_t a,
                                  macaDataType_t b, macaDataType_t c, mcblasComputeType_t compute,
                                  mcblasGemmAlgo_t algo)
{
    BlasCall call = blas_begin(function, handle);
    check_sizes(&call, gemm);
    check_types(&call, a, b, c);
    check_compute(&call, compute);
    us_require(&call.call, is_known_algorithm(algo), "algo", "range", MCBLAS_STATUS_INVALID_VALUE,
               "algo is %d; known are -1 to 23 and 99 to 115", (int)algo);
    multiply_types(&call, gemm, compute, a, b, c);
    return blas_end(&call);
}

mcblasStatus_t mcblasGemmEx(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *A, macaDataType_t Atype, int lda, const void *B,
                            macaDataType_t Btype, int ldb, const void *beta, void *C, macaDataType_t Ctype, int ldc,
                            mcblasComputeType_t computeType, mcblasGemmAlgo_t algo)
{
    return multiply_ex("mcblasGemmEx", handle, &(Gemm){GEMM_OF(DTYPE_NONE, DTYPE_NONE), .batch = 1}, Atype, Btype,
                       Ctype, computeType, algo);
}

mcblasStatus_t mcblasGemmStridedBatchedEx(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb,
                                          int m, int n, int k, const void *alpha, const void *A, macaDataType_t Atype,
                                          int lda, mcblas_stride strideA, const void *B, macaDataType_t Btype, int ldb,
                                          mcblas_stride strideB, const void *beta, void *C, macaDataType_t Ctype,
                                          int ldc, mcblas_stride strideC, int batchCount,
                                          mcblasComputeType_t computeType, mcblasGemmAlgo_t algo)
{
    return multiply_ex("mcblasGemmStridedBatchedEx", handle,
                       &(Gemm){GEMM_OF(DTYPE_NONE, DTYPE_NONE), .batch = batchCount, STRIDES(strideA, strideB,
                                                                                             strideC)},
                       Atype, Btype, Ctype, computeType, algo);
}

mcblasStatus_t mcblasGemmBatchedEx(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb, int m,
                                   int n, int k, const void *alpha, const void *const Aarray[], macaDataType_t Atype,
                                   int lda, const void *const Barray[], macaDataType_t Btype, int ldb, const void *beta,
                                   void *const Carray[], macaDataType_t Ctype, int ldc, int batchCount,
                                   mcblasComputeType_t computeType, mcblasGemmAlgo_t algo)
{
    return multiply_ex("mcblasGemmBatchedEx", handle, &(Gemm){GEMM_OF_TABLES(DTYPE_NONE), .batch = batchCount}, Atype,
                       Btype, Ctype, computeType, algo);
}

/* The arithmetic is that of float, of 32 bits. */
static mcblasStatus_t mixed_gemm(const char *function, mcblasHandle_t handle, Gemm *gemm, macaDataType_t a,
                                 macaDataType_t b, macaDataType_t c, macaDataType_t scale)
{
    BlasCall call = blas_begin(function, handle);
    check_sizes(&call, gemm);
    check_types(&call, a, b, c);
    const GemmTypes *types = blas_gemm_types(MCBLAS_COMPUTE_32F, a, b, c);
    us_require(&call.call, types != NULL && types->scale == scale, "Atype", "combination", MCBLAS_STATUS_NOT_SUPPORTED,
               "types %s, %s, %s of A, B, C do not go together", blas_type_name(a), blas_type_name(b), blas_type_name(c));
    multiply_types(&call, gemm, MCBLAS_COMPUTE_32F, a, b, c);
    return blas_end(&call);
}

mcblasStatus_t mcblasSgemmEx(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb, int m, int n,
                             int k, const float *alpha, const void *A, macaDataType_t Atype, int lda, const void *B,
                             macaDataType_t Btype, int ldb, const float *beta, void *C, macaDataType_t Ctype, int ldc)
{
    return mixed_gemm("mcblasSgemmEx", handle, &(Gemm){GEMM_OF(DTYPE_NONE, DTYPE_NONE), .batch = 1}, Atype, Btype,
                      Ctype, MACA_R_32F);
}

mcblasStatus_t mcblasCgemmEx(mcblasHandle_t handle, mcblasOperation_t transa, mcblasOperation_t transb, int m, int n,
                             int k, const mcComplex *alpha, const void *A, macaDataType_t Atype, int lda, const void *B,
                             macaDataType_t Btype, int ldb, const mcComplex *beta, void *C, macaDataType_t Ctype,
                             int ldc)
{
    return mixed_gemm("mcblasCgemmEx", handle, &(Gemm){GEMM_OF(DTYPE_NONE, DTYPE_NONE), .batch = 1}, Atype, Btype,
                      Ctype, MACA_C_32F);
}

/* ---- groups ---- */

/* The first matrix of a group in an array of pointers. */
static const void *from(const void *table, int64_t first)
{
    return table != NULL ? (const char *)table + first * (int64_t)sizeof(void *) : NULL;
}

static void check_group(BlasCall *call, const Gemm *group)
{
    check_size(&call->call, "m_array", group->m);
    check_size(&call->call, "n_array", group->n);
    check_size(&call->call, "k_array", group->k);
    check_size(&call->call, "group_size", group->batch);
    check_operation(&call->call, "transa_array", group->transa);
    check_operation(&call->call, "transb_array", group->transb);
}

mcblasStatus_t mcblasGemmGroupedBatchedEx(mcblasHandle_t handle, const mcblasOperation_t transa_array[],
                                          const mcblasOperation_t transb_array[], const int m_array[],
                                          const int n_array[], const int k_array[], const void *alpha_array,
                                          const void *const Aarray[], macaDataType_t Atype, const int lda_array[],
                                          const void *const Barray[], macaDataType_t Btype, const int ldb_array[],
                                          const void *beta_array, void *const Carray[], macaDataType_t Ctype,
                                          const int ldc_array[], int group_count, const int group_size[],
                                          mcblasComputeType_t computeType)
{
    BlasCall call = blas_begin("mcblasGemmGroupedBatchedEx", handle);
    check_size(&call.call, "group_count", group_count);
    check_types(&call, Atype, Btype, Ctype);
    check_compute(&call, computeType);
    const struct {
        const char *name;
        const void *data;
    } arrays[] = {{"transa_array", transa_array}, {"transb_array", transb_array}, {"m_array", m_array},
                  {"n_array", n_array}, {"k_array", k_array}, {"alpha_array", alpha_array}, {"lda_array", lda_array},
                  {"ldb_array", ldb_array}, {"beta_array", beta_array}, {"ldc_array", ldc_array},
                  {"group_size", group_size}};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0] && group_count > 0; i++) {
        check_pointer(&call.call, arrays[i].name, arrays[i].data);
    }
    const GemmTypes *types = blas_gemm_types(computeType, Atype, Btype, Ctype);
    const int64_t scale_size = types != NULL ? (int64_t)us_dtype_size(blas_dtype(types->scale)) : 0;
    /* All groups are checked before the first one is queued. */
    for (int queue = 0; queue < 2; queue++) {
        int64_t first = 0;
        for (int group = 0; group < group_count && blas_ok(&call); group++) {
            Gemm gemm = {
                .transa = transa_array[group], .transb = transb_array[group],
                .m = m_array[group], .n = n_array[group], .k = k_array[group],
                .alpha = (const char *)alpha_array + group * scale_size,
                .beta = (const char *)beta_array + group * scale_size,
                .alpha_name = "alpha_array", .beta_name = "beta_array",
                .a = {"Aarray", from(Aarray, first), DTYPE_NONE, lda_array[group], "lda_array"},
                .b = {"Barray", from(Barray, first), DTYPE_NONE, ldb_array[group], "ldb_array"},
                .c = {"Carray", from(Carray, first), DTYPE_NONE, ldc_array[group], "ldc_array"},
                .batch = group_size[group], .table = true, .entry = first, .only_checks = queue == 0,
            };
            check_group(&call, &gemm);
            multiply_types(&call, &gemm, computeType, Atype, Btype, Ctype);
            first += group_size[group];
        }
    }
    return blas_end(&call);
}
