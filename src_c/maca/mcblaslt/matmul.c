/* Products that objects describe (mcblas 11.4). */
#include "attributes.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/matmul/lines.h"
#include "launch/launch.h"
#include "maca/common/platform.h"
#include "maca/mcblas/gemm_types.h"

/* A product after its checks: the objects are read once. */
typedef struct LtProduct {
    const MatmulDesc *desc;
    const Layout *a, *b, *c, *d;
    const GemmTypes *types;
    int64_t m, n, k;
    DType bias_dtype;
    bool has_bias;
    ProductActivation activation;
} LtProduct;

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static bool is_supported_epilogue(uint32_t epilogue)
{
    const uint32_t without_bias = epilogue & ~(uint32_t)MCBLASLT_EPILOGUE_BIAS;
    return epilogue == MCBLASLT_EPILOGUE_DEFAULT || epilogue == MCBLASLT_EPILOGUE_BIAS ||
           without_bias == MCBLASLT_EPILOGUE_RELU || without_bias == MCBLASLT_EPILOGUE_GELU;
}

static const Layout *layout_of(Call *call, const char *parameter, mcblasLtMatrixLayout_t handle)
{
    const Layout *layout = lt_object(call, parameter, handle, HANDLE_LT_LAYOUT);
    if (call->status != 0) {
        return NULL;
    }
    us_require(call, layout->rows <= INT32_MAX && layout->cols <= INT32_MAX && layout->batch >= 0, parameter, "size",
               MCBLAS_STATUS_INVALID_VALUE, "%s is %llu x %llu, %d of them: too large, or less than none", parameter,
               (unsigned long long)layout->rows, (unsigned long long)layout->cols, layout->batch);
    us_require(call, layout->order == MCBLASLT_ORDER_COL || layout->order == MCBLASLT_ORDER_ROW, parameter, "order",
               MCBLAS_STATUS_NOT_SUPPORTED, "%s has order %d; supported are 0 (COL), 1 (ROW)", parameter,
               layout->order);
    const int64_t shortest = (int64_t)(layout->order == MCBLASLT_ORDER_COL ? layout->rows : layout->cols);
    us_require(call, layout->ld >= (shortest > 1 ? shortest : 1), parameter, "leading", MCBLAS_STATUS_INVALID_VALUE,
               "%s has leading dimension %lld; at least %lld is needed", parameter, (long long)layout->ld,
               (long long)shortest);
    return layout;
}

static int64_t rows_of(const Layout *layout, int32_t operation)
{
    return (int64_t)(operation == MCBLAS_OP_N ? layout->rows : layout->cols);
}

static int64_t columns_of(const Layout *layout, int32_t operation)
{
    return rows_of(layout, operation == MCBLAS_OP_N ? MCBLAS_OP_T : MCBLAS_OP_N);
}

static void check_shape(Call *call, const char *parameter, const Layout *layout, int64_t rows, int64_t columns)
{
    us_require(call, (int64_t)layout->rows == rows && (int64_t)layout->cols == columns, parameter, "shape",
               MCBLAS_STATUS_INVALID_VALUE, "%s is %llu x %llu; the product needs %lld x %lld", parameter,
               (unsigned long long)layout->rows, (unsigned long long)layout->cols, (long long)rows, (long long)columns);
}

static void check_operation(Call *call, const char *parameter, int32_t operation)
{
    us_require(call, operation >= MCBLAS_OP_N && operation <= MCBLAS_OP_C, parameter, "range",
               MCBLAS_STATUS_INVALID_VALUE, "%s is %d; allowed are 0 (N), 1 (T), 2 (C)", parameter, operation);
}

static void check_description(Call *call, LtProduct *product)
{
    const MatmulDesc *desc = product->desc;
    check_operation(call, "TRANSA", desc->transa);
    check_operation(call, "TRANSB", desc->transb);
    us_require(call, desc->transc == MCBLAS_OP_N && desc->fill == MCBLAS_FILL_MODE_FULL, "computeDesc", "form",
               MCBLAS_STATUS_NOT_SUPPORTED, "TRANSC is %d and FILL_MODE %d; supported are 0 (N) and 2 (FULL)",
               desc->transc, desc->fill);
    us_require(call, desc->pointer_mode == MCBLASLT_POINTER_MODE_HOST ||
               desc->pointer_mode == MCBLASLT_POINTER_MODE_DEVICE, "computeDesc", "pointer-mode",
               MCBLAS_STATUS_NOT_SUPPORTED, "POINTER_MODE is %d; supported are 0 (HOST), 1 (DEVICE)",
               desc->pointer_mode);
    us_require(call, is_supported_epilogue(desc->epilogue), "computeDesc", "epilogue", MCBLAS_STATUS_NOT_SUPPORTED,
               "EPILOGUE is %u; supported are DEFAULT, RELU, GELU and BIAS", desc->epilogue);
    if (call->status != 0) {
        return;
    }
    product->has_bias = desc->epilogue != MCBLASLT_EPILOGUE_DEFAULT && (desc->epilogue & MCBLASLT_EPILOGUE_BIAS) != 0;
    product->activation = desc->epilogue & MCBLASLT_EPILOGUE_GELU   ? ACTIVATION_GELU_TANH
                          : desc->epilogue & MCBLASLT_EPILOGUE_RELU ? ACTIVATION_RELU : ACTIVATION_NONE;
    us_require(call, !product->has_bias || desc->bias != NULL, "computeDesc", "bias", MCBLAS_STATUS_INVALID_VALUE,
               "EPILOGUE is %u, and BIAS_POINTER is NULL", desc->epilogue);
}

static void check_types(Call *call, LtProduct *product)
{
    const MatmulDesc *desc = product->desc;
    product->types = blas_gemm_types((mcblasComputeType_t)desc->compute, (macaDataType_t)product->a->type,
                                     (macaDataType_t)product->b->type, (macaDataType_t)product->d->type);
    us_require(call, product->types != NULL && (int32_t)product->types->scale == desc->scale &&
               product->c->type == product->d->type, "Adesc", "combination", MCBLAS_STATUS_NOT_SUPPORTED,
               "types %u, %u, %u, %u of A, B, C, D with compute type %d and scale type %d do not go together",
               product->a->type, product->b->type, product->c->type, product->d->type, desc->compute, desc->scale);
    if (call->status != 0) {
        return;
    }
    const DType compute = product->types->computed_in;
    us_require(call, !is_complex(compute) || is_complex(blas_dtype((macaDataType_t)product->a->type)), "Adesc",
               "combination", MCBLAS_STATUS_NOT_SUPPORTED, "complex 8-bit integers are not supported");
    us_require(call, us_dtype_is_float(compute) || (!product->has_bias && product->activation == ACTIVATION_NONE),
               "computeDesc", "epilogue", MCBLAS_STATUS_NOT_SUPPORTED,
               "an epilogue needs real floating-point arithmetic, compute type is %d", desc->compute);
    product->bias_dtype = blas_dtype(desc->bias_type < 0 ? (macaDataType_t)product->d->type
                                                         : (macaDataType_t)desc->bias_type);
    us_require(call, !product->has_bias || us_dtype_is_float(product->bias_dtype), "computeDesc", "bias-type",
               MCBLAS_STATUS_NOT_SUPPORTED, "BIAS_DATA_TYPE is %d", desc->bias_type);
}

static LtProduct check_product(Call *call, mcblasLtHandle_t handle, const char *desc_name, mcblasLtMatmulDesc_t desc,
                               mcblasLtMatrixLayout_t Adesc, mcblasLtMatrixLayout_t Bdesc, mcblasLtMatrixLayout_t Cdesc,
                               mcblasLtMatrixLayout_t Ddesc)
{
    LtProduct product = {0};
    us_require(call, us_handle_object(handle, HANDLE_BLAS_LT) != NULL || us_handle_object(handle, HANDLE_BLAS) != NULL,
               "lightHandle", "alive", MCBLAS_STATUS_NOT_INITIALIZED,
               "lightHandle is %p, which is no live handle (destroyed before, or another thing)", (void *)handle);
    product.desc = lt_object(call, desc_name, desc, HANDLE_LT_MATMUL);
    product.a = layout_of(call, "Adesc", Adesc);
    product.b = layout_of(call, "Bdesc", Bdesc);
    product.c = layout_of(call, "Cdesc", Cdesc);
    product.d = layout_of(call, "Ddesc", Ddesc);
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
    product.m = rows_of(product.a, product.desc->transa);
    product.k = columns_of(product.a, product.desc->transa);
    product.n = columns_of(product.b, product.desc->transb);
    us_require(call, rows_of(product.b, product.desc->transb) == product.k, "Bdesc", "shape",
               MCBLAS_STATUS_INVALID_VALUE, "op(A) has %lld columns, op(B) %lld rows", (long long)product.k,
               (long long)rows_of(product.b, product.desc->transb));
    check_shape(call, "Cdesc", product.c, product.m, product.n);
    check_shape(call, "Ddesc", product.d, product.m, product.n);
    us_require(call, product.a->batch == product.d->batch && product.b->batch == product.d->batch &&
               product.c->batch == product.d->batch, "Ddesc", "batch", MCBLAS_STATUS_INVALID_VALUE,
               "batch counts of A, B, C, D are %d, %d, %d, %d: they must be equal", product.a->batch, product.b->batch,
               product.c->batch, product.d->batch);
    return product;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static View view_of(const Layout *layout, const void *data, int32_t operation)
{
    const bool by_columns = (layout->order == MCBLASLT_ORDER_COL) == (operation == MCBLAS_OP_N);
    View view = {.data = (void *)(uintptr_t)data, .dtype = blas_dtype((macaDataType_t)layout->type), .rank = 3};
    const int64_t shape[] = {layout->batch, rows_of(layout, operation), columns_of(layout, operation)};
    const int64_t strides[] = {layout->stride, by_columns ? 1 : layout->ld, by_columns ? layout->ld : 1};
    memcpy(view.shape, shape, sizeof shape);
    memcpy(view.strides, strides, sizeof strides);
    return view;
}

static View vector_view(const void *data, DType dtype)
{
    View view = {.data = (void *)(uintptr_t)data, .dtype = data != NULL ? dtype : DTYPE_NONE};
    return view;
}

/* A factor is read now, or is a view of device memory. */
static View read_factor(const MatmulDesc *desc, DType compute, const void *pointer, double *value)
{
    const DType dtype = blas_dtype((macaDataType_t)desc->scale);
    if (desc->pointer_mode == MCBLASLT_POINTER_MODE_DEVICE) {
        return vector_view(pointer, dtype);
    }
    us_line_load(is_complex(compute) ? DTYPE_COMPLEX128 : DTYPE_FLOAT64, value, pointer, dtype, 1, 1, false);
    return us_view_absent();
}

static void check_pointer(Call *call, const char *parameter, const void *pointer, bool needed)
{
    us_require(call, !needed || pointer != NULL, parameter, "null", MCBLAS_STATUS_INVALID_VALUE,
               "%s is NULL: a pointer is required", parameter);
}

static void submit(Call *call, const Launch *launch, mcStream_t handle)
{
    Stream *stream = call->status == 0 ? maca_stream(handle) : NULL;
    us_require(call, stream != NULL, "stream", "alive", MCBLAS_STATUS_INVALID_VALUE,
               "stream is %p, which is not a stream (destroyed before, or another thing)", (void *)handle);
    us_require(call, us_stream_fault(stream, NULL) == DEVICE_FAULT_NONE, "stream", "launch",
               MCBLAS_STATUS_EXECUTION_FAILED, "an earlier call left a device fault; see what synchronizing returns");
    us_require(call, maca_launch(launch, stream), "stream", "launch", MCBLAS_STATUS_EXECUTION_FAILED,
               "no host memory to queue the call");
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
    check_pointer(&call, "alpha", alpha, true);
    check_pointer(&call, "beta", beta, true);
    if (call.status != 0 || product.m == 0 || product.n == 0 || product.d->batch == 0) {
        return us_call_end(&call);
    }
    const DType compute = product.types->computed_in;
    ProductWithEpilogue attributes = {
        .product = {.compute = compute, .conjugated_a = product.desc->transa == MCBLAS_OP_C,
                    .conjugated_b = product.desc->transb == MCBLAS_OP_C},
        .activation = product.activation,
    };
    const View factors[] = {read_factor(product.desc, compute, alpha, attributes.product.alpha),
                            read_factor(product.desc, compute, beta, attributes.product.beta)};
    const bool reads_c = !us_view_is_absent(&factors[1]) || !is_zero(attributes.product.beta);
    check_pointer(&call, "A", A, product.k > 0);
    check_pointer(&call, "B", B, product.k > 0);
    check_pointer(&call, "C", C, reads_c);
    check_pointer(&call, "D", D, true);
    const View a = view_of(product.a, A, product.desc->transa), b = view_of(product.b, B, product.desc->transb);
    const View c = reads_c ? view_of(product.c, C, MCBLAS_OP_N) : us_view_absent();
    const View d = view_of(product.d, D, MCBLAS_OP_N);
    View bias = us_view_absent();
    if (product.has_bias) {
        bias = d;
        bias.data = product.desc->bias;
        bias.dtype = product.bias_dtype;
        bias.strides[0] = product.desc->bias_stride;
        bias.strides[1] = 1;
        bias.strides[2] = 0;
    }
    const View a_factor = vector_view(product.desc->a_scale, DTYPE_FLOAT32);
    const View b_factor = vector_view(product.desc->b_scale, DTYPE_FLOAT32);
    Launch launch;
    us_launch_begin(&launch, "mcblasLtMatmul");
    us_launch_view(&launch, "A", &a);
    us_launch_view(&launch, "B", &b);
    us_launch_view(&launch, "C", &c);
    us_launch_access(&launch, "D", &d, VIEW_WRITE);
    us_launch_view(&launch, "alpha", &factors[0]);
    us_launch_view(&launch, "beta", &factors[1]);
    us_launch_view(&launch, "BIAS_POINTER", &bias);
    us_launch_view(&launch, "A_SCALE_POINTER", &a_factor);
    us_launch_view(&launch, "B_SCALE_POINTER", &b_factor);
    us_launch_kernel(&launch, us_product_with_epilogue, &attributes, sizeof attributes);
    submit(&call, &launch, stream);
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
    check_pointer(&call, "heuristicResultsArray", heuristicResultsArray, true);
    check_pointer(&call, "returnAlgoCount", returnAlgoCount, true);
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
