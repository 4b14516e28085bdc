/* Products that objects describe (mcblas 11.4). */
#include "kernels/matmul/epilogue.h"
#include "kernels/matmul/lines.h"
#include "layout.h"
#include "maca/mcblas/gemm_types.h"

/* What an epilogue does, and what the auxiliary matrix has: nothing, an element or a bit for each element of D. */
typedef enum Auxiliary { AUX_NONE, AUX_ELEMENTS, AUX_BITS } Auxiliary;

typedef struct LtEpilogue {
    uint32_t number;
    bool has_bias;
    ProductActivation activation;
    Auxiliary aux;
    BiasGradient gradient;
} LtEpilogue;

static const LtEpilogue epilogues[] = {
    {MCBLASLT_EPILOGUE_DEFAULT, false, ACTIVATION_NONE, AUX_NONE, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_RELU, false, ACTIVATION_RELU, AUX_NONE, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_BIAS, true, ACTIVATION_NONE, AUX_NONE, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_RELU_BIAS, true, ACTIVATION_RELU, AUX_NONE, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_GELU, false, ACTIVATION_GELU_TANH, AUX_NONE, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_GELU_BIAS, true, ACTIVATION_GELU_TANH, AUX_NONE, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_RELU_AUX, false, ACTIVATION_RELU, AUX_BITS, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_RELU_AUX_BIAS, true, ACTIVATION_RELU, AUX_BITS, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_DRELU, false, ACTIVATION_RELU_SLOPE, AUX_BITS, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_DRELU_BGRAD, true, ACTIVATION_RELU_SLOPE, AUX_BITS, BIAS_GRADIENT_OF_RESULT},
    {MCBLASLT_EPILOGUE_GELU_AUX, false, ACTIVATION_GELU_TANH, AUX_ELEMENTS, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_GELU_AUX_BIAS, true, ACTIVATION_GELU_TANH, AUX_ELEMENTS, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_DGELU, false, ACTIVATION_GELU_TANH_SLOPE, AUX_ELEMENTS, BIAS_GRADIENT_NONE},
    {MCBLASLT_EPILOGUE_DGELU_BGRAD, true, ACTIVATION_GELU_TANH_SLOPE, AUX_ELEMENTS, BIAS_GRADIENT_OF_RESULT},
    {MCBLASLT_EPILOGUE_BGRADA, true, ACTIVATION_NONE, AUX_NONE, BIAS_GRADIENT_OF_A},
    {MCBLASLT_EPILOGUE_BGRADB, true, ACTIVATION_NONE, AUX_NONE, BIAS_GRADIENT_OF_B},
};

/* A product after its checks: the objects are read once. */
typedef struct LtProduct {
    const MatmulDesc *desc;
    const Layout *a, *b, *c, *d;
    const GemmTypes *types;
    const LtEpilogue *epilogue;
    int64_t m, n, k;
    DType bias_dtype;
} LtProduct;

/* NULL: there is no such one. */
static const LtEpilogue *epilogue_of(uint32_t number)
{
    for (size_t i = 0; i < sizeof epilogues / sizeof *epilogues; i++) {
        if (epilogues[i].number == number) {
            return &epilogues[i];
        }
    }
    return NULL;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static void check_shape(Call *call, const char *parameter, const Layout *layout, int64_t rows, int64_t columns)
{
    us_require(call, (int64_t)layout->rows == rows && (int64_t)layout->cols == columns, parameter, "shape",
               MCBLAS_STATUS_INVALID_VALUE, "%s is %llu x %llu; the product needs %lld x %lld", parameter,
               (unsigned long long)layout->rows, (unsigned long long)layout->cols, (long long)rows, (long long)columns);
}

static void check_description(Call *call, LtProduct *product)
{
    const MatmulDesc *desc = product->desc;
    lt_check_operation(call, "TRANSA", desc->transa);
    lt_check_operation(call, "TRANSB", desc->transb);
    us_require(call, desc->transc == MCBLAS_OP_N && desc->fill == MCBLAS_FILL_MODE_FULL, "computeDesc", "form",
               MCBLAS_STATUS_NOT_SUPPORTED, "TRANSC is %d and FILL_MODE %d; supported are 0 (N) and 2 (FULL)",
               desc->transc, desc->fill);
    lt_check_pointer_mode(call, "computeDesc", desc->pointer_mode);
    const LtEpilogue *epilogue = product->epilogue = epilogue_of(desc->epilogue);
    us_require(call, epilogue != NULL, "computeDesc", "epilogue", MCBLAS_STATUS_NOT_SUPPORTED,
               "EPILOGUE is %u, which is none of mcblasLtEpilogue_t", desc->epilogue);
    us_require(call, desc->d_scale == NULL && desc->d_amax == NULL, "computeDesc", "output-scale",
               MCBLAS_STATUS_NOT_SUPPORTED, "D_SCALE_POINTER and AMAX_D_POINTER must be NULL: D is not scaled");
    if (call->status != 0) {
        return;
    }
    us_require(call, !epilogue->has_bias || desc->bias != NULL, "computeDesc", "bias", MCBLAS_STATUS_INVALID_VALUE,
               "EPILOGUE is %u, and BIAS_POINTER is NULL", desc->epilogue);
    us_require(call, epilogue->aux == AUX_NONE || desc->aux != NULL, "computeDesc", "aux", MCBLAS_STATUS_INVALID_VALUE,
               "EPILOGUE is %u, and EPILOGUE_AUX_POINTER is NULL", desc->epilogue);
    us_require(call, epilogue->aux == AUX_NONE || (desc->aux_scale == NULL && desc->aux_amax == NULL), "computeDesc",
               "output-scale", MCBLAS_STATUS_NOT_SUPPORTED,
               "EPILOGUE_AUX_SCALE_POINTER and EPILOGUE_AUX_AMAX_POINTER must be NULL: the matrix is not scaled");
}

/* The matrix that goes with an activation has D's rows and columns, and its type or bits. */
static void check_aux(Call *call, const LtProduct *product)
{
    const MatmulDesc *desc = product->desc;
    if (call->status != 0 || product->epilogue->aux == AUX_NONE) {
        return;
    }
    const int unit = product->epilogue->aux == AUX_BITS ? 128 : 8;
    us_require(call, desc->aux_type < 0 || (uint32_t)desc->aux_type == product->d->type, "computeDesc", "aux-type",
               MCBLAS_STATUS_NOT_SUPPORTED, "EPILOGUE_AUX_DATA_TYPE is %d, D has %u: it has to be the same", desc->aux_type,
               product->d->type);
    us_require(call, product->d->order == MCBLASLT_ORDER_COL, "computeDesc", "aux-order", MCBLAS_STATUS_NOT_SUPPORTED,
               "the auxiliary matrix goes with a D in order COL");
    us_require(call, desc->aux_leading >= product->m && desc->aux_leading % unit == 0, "computeDesc", "aux-leading",
               MCBLAS_STATUS_INVALID_VALUE, "EPILOGUE_AUX_LD is %lld: it has to be a multiple of %d and at least %lld",
               (long long)desc->aux_leading, unit, (long long)product->m);
    us_require(call, desc->aux_stride % unit == 0, "computeDesc", "aux-stride", MCBLAS_STATUS_INVALID_VALUE,
               "EPILOGUE_AUX_BATCH_STRIDE is %lld: it has to be a multiple of %d", (long long)desc->aux_stride, unit);
}

static const char *name_of(const Layout *layout)
{
    return blas_type_name((macaDataType_t)layout->type);
}

static void check_types(Call *call, LtProduct *product)
{
    const MatmulDesc *desc = product->desc;
    product->types = blas_lt_types((mcblasComputeType_t)desc->compute, (macaDataType_t)product->a->type,
                                   (macaDataType_t)product->b->type, (macaDataType_t)product->d->type);
    us_require(call, product->types != NULL && (int32_t)product->types->scale == desc->scale &&
               product->c->type == product->d->type, "Adesc", "combination", MCBLAS_STATUS_NOT_SUPPORTED,
               "types %s, %s, %s, %s of A, B, C, D with compute type %s and scale type %s do not go together",
               name_of(product->a), name_of(product->b), name_of(product->c), name_of(product->d),
               blas_compute_name((mcblasComputeType_t)desc->compute), blas_type_name((macaDataType_t)desc->scale));
    if (call->status != 0) {
        return;
    }
    const DType compute = product->types->computed_in;
    us_require(call, !is_complex(compute) || is_complex(blas_dtype((macaDataType_t)product->a->type)), "Adesc",
               "combination", MCBLAS_STATUS_NOT_SUPPORTED, "complex 8-bit integers are not supported");
    us_require(call, us_dtype_is_float(compute) || product->epilogue->number == MCBLASLT_EPILOGUE_DEFAULT,
               "computeDesc", "epilogue", MCBLAS_STATUS_NOT_SUPPORTED,
               "an epilogue needs real floating-point arithmetic, compute type is %d", desc->compute);
    product->bias_dtype = blas_dtype(desc->bias_type < 0 ? (macaDataType_t)product->d->type
                                                         : (macaDataType_t)desc->bias_type);
    us_require(call, !product->epilogue->has_bias || us_dtype_is_float(product->bias_dtype), "computeDesc", "bias-type",
               MCBLAS_STATUS_NOT_SUPPORTED, "BIAS_DATA_TYPE is %d", desc->bias_type);
}

static LtProduct check_product(Call *call, mcblasLtHandle_t handle, const char *desc_name, mcblasLtMatmulDesc_t desc,
                               mcblasLtMatrixLayout_t Adesc, mcblasLtMatrixLayout_t Bdesc, mcblasLtMatrixLayout_t Cdesc,
                               mcblasLtMatrixLayout_t Ddesc)
{
    LtProduct product = {0};
    lt_check_handle(call, handle);
    product.desc = lt_object(call, desc_name, desc, HANDLE_LT_MATMUL);
    product.a = lt_layout(call, "Adesc", Adesc);
    product.b = lt_layout(call, "Bdesc", Bdesc);
    product.c = lt_layout(call, "Cdesc", Cdesc);
    product.d = lt_layout(call, "Ddesc", Ddesc);
    if (call->status != 0) {
        return product;
    }
    check_description(call, &product);
    if (call->status == 0) {
        check_types(call, &product);
    }
    if (call->status != 0) {
        return product;
    }
    product.m = lt_rows(product.a, product.desc->transa);
    product.k = lt_columns(product.a, product.desc->transa);
    product.n = lt_columns(product.b, product.desc->transb);
    us_require(call, lt_rows(product.b, product.desc->transb) == product.k, "Bdesc", "shape",
               MCBLAS_STATUS_INVALID_VALUE, "op(A) has %lld columns, op(B) %lld rows", (long long)product.k,
               (long long)lt_rows(product.b, product.desc->transb));
    check_shape(call, "Cdesc", product.c, product.m, product.n);
    check_shape(call, "Ddesc", product.d, product.m, product.n);
    us_require(call, product.a->batch == product.d->batch && product.b->batch == product.d->batch &&
               product.c->batch == product.d->batch, "Ddesc", "batch", MCBLAS_STATUS_INVALID_VALUE,
               "batch counts of A, B, C, D are %d, %d, %d, %d: they must be equal", product.a->batch, product.b->batch,
               product.c->batch, product.d->batch);
    check_aux(call, &product);
    return product;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static View factor_view(const void *data)
{
    return (View){.data = (void *)(uintptr_t)data, .dtype = data != NULL ? DTYPE_FLOAT32 : DTYPE_NONE};
}

/* One element for each row of D; sums of op(B)'s columns are one for each column. */
static View bias_view(const LtProduct *product, const View *d)
{
    const MatmulDesc *desc = product->desc;
    const BiasGradient gradient = product->epilogue->gradient;
    if (!product->epilogue->has_bias) {
        return us_view_absent();
    }
    View bias = *d;
    bias.data = desc->bias;
    bias.dtype = product->bias_dtype;
    bias.strides[0] = desc->bias_stride;
    bias.strides[1] = 1;
    bias.strides[2] = 0;
    if (gradient != BIAS_GRADIENT_NONE) {
        bias.rank = 2;
        bias.shape[1] = gradient == BIAS_GRADIENT_OF_B ? product->n : product->m;
    }
    return bias;
}

/* Of bits: 8 rows in a byte. */
static View aux_view(const LtProduct *product, const View *d)
{
    enum { BITS = 8 };
    const MatmulDesc *desc = product->desc;
    if (product->epilogue->aux == AUX_NONE) {
        return us_view_absent();
    }
    const int64_t unit = product->epilogue->aux == AUX_BITS ? BITS : 1;
    View aux = *d;
    aux.data = desc->aux;
    aux.strides[0] = desc->aux_stride / unit;
    aux.strides[2] = desc->aux_leading / unit;
    if (unit == BITS) {
        aux.dtype = DTYPE_UINT8;
        aux.shape[1] = (product->m + BITS - 1) / BITS;
    }
    return aux;
}

mcblasStatus_t mcblasLtMatmul(mcblasLtHandle_t lightHandle, mcblasLtMatmulDesc_t computeDesc, const void *alpha,
                              const void *A, mcblasLtMatrixLayout_t Adesc, const void *B, mcblasLtMatrixLayout_t Bdesc,
                              const void *beta, const void *C, mcblasLtMatrixLayout_t Cdesc, void *D,
                              mcblasLtMatrixLayout_t Ddesc, const mcblasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspaceSizeInBytes, mcStream_t stream)
{
    (void)algo, (void)workspace, (void)workspaceSizeInBytes;
    Call call = us_call_begin("mcblasLtMatmul");
    const LtProduct product = check_product(&call, lightHandle, "computeDesc", computeDesc, Adesc, Bdesc, Cdesc, Ddesc);
    lt_check_pointer(&call, "alpha", alpha, true);
    lt_check_pointer(&call, "beta", beta, true);
    if (call.status == 0) {
        lt_check_factor(&call, "alpha", alpha, product.desc->pointer_mode);
        lt_check_factor(&call, "beta", beta, product.desc->pointer_mode);
    }
    if (call.status != 0 || product.m == 0 || product.n == 0 || product.d->batch == 0) {
        return us_call_end(&call);
    }
    const DType compute = product.types->computed_in;
    ProductWithEpilogue attributes = {
        .product = {.compute = compute, .conjugated_a = product.desc->transa == MCBLAS_OP_C,
                    .conjugated_b = product.desc->transb == MCBLAS_OP_C},
        .activation = product.epilogue->activation, .gradient = product.epilogue->gradient,
        .e4m3 = product.types->ab == MACA_R_8F_E4M3,
    };
    const MatmulDesc *desc = product.desc;
    const View factors[] = {lt_factor(desc->pointer_mode, desc->scale, alpha, attributes.product.alpha),
                            lt_factor(desc->pointer_mode, desc->scale, beta, attributes.product.beta)};
    const bool reads_c = !us_view_is_absent(&factors[1]) || !is_zero(attributes.product.beta);
    lt_check_pointer(&call, "A", A, product.k > 0);
    lt_check_pointer(&call, "B", B, product.k > 0);
    lt_check_pointer(&call, "C", C, reads_c);
    lt_check_pointer(&call, "D", D, true);
    us_require(&call, !reads_c || C != D || lt_same_place(product.c, product.d), "D", "in-place",
               MCBLAS_STATUS_INVALID_VALUE, "D is C, and Ddesc is another layout than Cdesc");
    const View a = lt_view(product.a, A, product.desc->transa), b = lt_view(product.b, B, product.desc->transb);
    const View c = reads_c ? lt_view(product.c, C, MCBLAS_OP_N) : us_view_absent();
    const View d = lt_view(product.d, D, MCBLAS_OP_N);
    const View bias = bias_view(&product, &d), aux = aux_view(&product, &d);
    const View a_factor = factor_view(desc->a_scale), b_factor = factor_view(desc->b_scale);
    const View c_factor = factor_view(desc->c_scale);
    Launch launch;
    us_launch_begin(&launch, "mcblasLtMatmul");
    us_launch_view(&launch, "A", &a);
    us_launch_view(&launch, "B", &b);
    us_launch_view(&launch, "C", &c);
    us_launch_access(&launch, "D", &d, VIEW_WRITE);
    us_launch_view(&launch, "alpha", &factors[0]);
    us_launch_view(&launch, "beta", &factors[1]);
    enum { C_VIEW = 2, BETA_VIEW = 5 };
    us_launch_factor(&launch, C_VIEW, BETA_VIEW);
    us_launch_access(&launch, "BIAS_POINTER", &bias, attributes.gradient == BIAS_GRADIENT_NONE ? VIEW_READ : VIEW_WRITE);
    us_launch_view(&launch, "A_SCALE_POINTER", &a_factor);
    us_launch_view(&launch, "B_SCALE_POINTER", &b_factor);
    us_launch_view(&launch, "C_SCALE_POINTER", &c_factor);
    us_launch_access(&launch, "EPILOGUE_AUX_POINTER", &aux,
                     attributes.activation >= ACTIVATION_RELU_SLOPE ? VIEW_READ : VIEW_WRITE);
    us_launch_kernel(&launch, us_product_with_epilogue, &attributes, sizeof attributes);
    lt_submit(&call, &launch, stream);
    return us_call_end(&call);
}

mcblasStatus_t mcblasLtMatmulAlgoGetHeuristic(mcblasLtHandle_t lightHandle, mcblasLtMatmulDesc_t operationDesc,
                                              mcblasLtMatrixLayout_t Adesc, mcblasLtMatrixLayout_t Bdesc,
                                              mcblasLtMatrixLayout_t Cdesc, mcblasLtMatrixLayout_t Ddesc,
                                              mcblasLtMatmulPreference_t preference, int requestedAlgoCount,
                                              mcblasLtMatmulHeuristicResult_t heuristicResultsArray[],
                                              int *returnAlgoCount)
{
    Call call = us_call_begin("mcblasLtMatmulAlgoGetHeuristic");
    us_require(&call, requestedAlgoCount > 0, "requestedAlgoCount", "positive", MCBLAS_STATUS_INVALID_VALUE,
               "requestedAlgoCount is %d: it has to be positive", requestedAlgoCount);
    lt_check_pointer(&call, "heuristicResultsArray", heuristicResultsArray, true);
    lt_check_pointer(&call, "returnAlgoCount", returnAlgoCount, true);
    lt_object(&call, "preference", preference, HANDLE_LT_PREFERENCE);
    if (call.status == 0) {
        *returnAlgoCount = 0;
    }
    check_product(&call, lightHandle, "operationDesc", operationDesc, Adesc, Bdesc, Cdesc, Ddesc);
    if (call.status == 0) {
        *returnAlgoCount = 1;
        heuristicResultsArray[0] = (mcblasLtMatmulHeuristicResult_t){
            .algo = {{1}}, .state = MCBLAS_STATUS_SUCCESS, .wavesCount = 1,
        };
    }
    return us_call_end(&call);
}
