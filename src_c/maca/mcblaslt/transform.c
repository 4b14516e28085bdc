/* Sums of matrices in other layouts (mcblas 11.1, 11.3). */
#include "kernels/linear_algebra/matrices.h"
#include "kernels/matmul/lines.h"
#include "layout.h"
#include "maca/mcblas/gemm_types.h"

typedef struct Addend {
    const char *name, *desc_name;
    const void *data;
    const Layout *layout; /* NULL: it is not there */
    int32_t operation;
    double factor[2];
    View factor_view;
} Addend;

static bool go_together(int32_t scale, uint32_t type)
{
    const bool narrow = type == MACA_R_8I || type == MACA_R_32I || type == MACA_R_16F || type == MACA_R_16BF;
    return scale == MACA_R_32F ? narrow || type == MACA_R_32F
                               : (uint32_t)scale == type && (type == MACA_R_64F || type == MACA_C_32F || type == MACA_C_64F);
}

static bool is_read(const Addend *addend)
{
    return !us_view_is_absent(&addend->factor_view) || !is_zero(addend->factor);
}

static void check_layout(Call *call, const Addend *addend, const Layout *c)
{
    const int64_t rows = lt_rows(addend->layout, addend->operation), columns = lt_columns(addend->layout, addend->operation);
    us_require(call, addend->layout->type == c->type, addend->desc_name, "type", MCBLAS_STATUS_NOT_SUPPORTED,
               "types of %s and C are %u and %u: they must be equal", addend->name, addend->layout->type, c->type);
    us_require(call, rows == (int64_t)c->rows && columns == (int64_t)c->cols, addend->desc_name, "shape",
               MCBLAS_STATUS_INVALID_VALUE, "op(%s) is %lld x %lld, C %llu x %llu", addend->name, (long long)rows,
               (long long)columns, (unsigned long long)c->rows, (unsigned long long)c->cols);
    us_require(call, addend->layout->batch == c->batch, addend->desc_name, "batch", MCBLAS_STATUS_INVALID_VALUE,
               "batch counts of %s and C are %d and %d: they must be equal", addend->name, addend->layout->batch, c->batch);
}

static void check_data(Call *call, const Addend *addend, const void *data, const Layout *c)
{
    const bool reads = call->status == 0 && is_read(addend);
    lt_check_pointer(call, addend->name, addend->data, reads);
    us_require(call, !reads || addend->data != data ||
               (addend->operation == MCBLAS_OP_N && lt_same_place(addend->layout, c)), "C", "in-place",
               MCBLAS_STATUS_INVALID_VALUE, "C is %s, which is transposed or has another layout", addend->name);
}

/* Absent where nothing is read. */
static View addend_view(const Addend *addend)
{
    return is_read(addend) ? lt_view(addend->layout, addend->data, addend->operation) : us_view_absent();
}

static void submit(Call *call, const Addend *a, const Addend *b, const View *c, mcStream_t stream)
{
    const MatrixSum sum = {
        .conjugated_a = a->operation == MCBLAS_OP_C, .conjugated_b = b->operation == MCBLAS_OP_C,
        .alpha = {a->factor[0], a->factor[1]}, .beta = {b->factor[0], b->factor[1]},
    };
    const View first = addend_view(a), second = addend_view(b);
    Launch launch;
    us_launch_begin(&launch, call->function);
    us_launch_view(&launch, "A", &first);
    us_launch_view(&launch, "B", &second);
    us_launch_access(&launch, "C", c, VIEW_WRITE);
    us_launch_view(&launch, "alpha", &a->factor_view);
    us_launch_view(&launch, "beta", &b->factor_view);
    enum { A_VIEW, B_VIEW, C_VIEW, ALPHA_VIEW, BETA_VIEW };
    us_launch_factor(&launch, A_VIEW, ALPHA_VIEW);
    us_launch_factor(&launch, B_VIEW, BETA_VIEW);
    us_launch_kernel(&launch, us_matrix_sums, &sum, sizeof sum);
    lt_submit(call, &launch, stream);
}

mcblasStatus_t mcblasLtMatrixTransform(mcblasLtHandle_t lightHandle, mcblasLtMatrixTransformDesc_t transformDesc,
                                       const void *alpha, const void *A, mcblasLtMatrixLayout_t Adesc, const void *beta,
                                       const void *B, mcblasLtMatrixLayout_t Bdesc, void *C,
                                       mcblasLtMatrixLayout_t Cdesc, mcStream_t stream)
{
    Call call = us_call_begin("mcblasLtMatrixTransform");
    Addend a = {.name = "A", .desc_name = "Adesc", .data = A}, b = {.name = "B", .desc_name = "Bdesc", .data = B};
    lt_check_handle(&call, lightHandle);
    const TransformDesc *desc = lt_object(&call, "transformDesc", transformDesc, HANDLE_LT_TRANSFORM);
    a.layout = lt_layout(&call, "Adesc", Adesc);
    const Layout *c = lt_layout(&call, "Cdesc", Cdesc);
    lt_check_pointer(&call, "alpha", alpha, true);
    lt_check_pointer(&call, "beta", beta, true);
    if (call.status != 0) {
        return us_call_end(&call);
    }
    a.operation = desc->transa;
    b.operation = desc->transb;
    lt_check_operation(&call, "TRANSA", desc->transa);
    lt_check_operation(&call, "TRANSB", desc->transb);
    lt_check_pointer_mode(&call, "transformDesc", desc->pointer_mode);
    lt_check_factor(&call, "alpha", alpha, desc->pointer_mode);
    lt_check_factor(&call, "beta", beta, desc->pointer_mode);
    us_require(&call, go_together(desc->scale, c->type), "Cdesc", "combination", MCBLAS_STATUS_NOT_SUPPORTED,
               "matrices of type %s do not go with factors of type %s", blas_type_name((macaDataType_t)c->type),
               blas_type_name((macaDataType_t)desc->scale));
    if (call.status != 0) {
        return us_call_end(&call);
    }
    a.factor_view = lt_factor(desc->pointer_mode, desc->scale, alpha, a.factor);
    b.factor_view = lt_factor(desc->pointer_mode, desc->scale, beta, b.factor);
    check_layout(&call, &a, c);
    if (B != NULL || Bdesc != NULL || is_read(&b)) {
        b.layout = lt_layout(&call, "Bdesc", Bdesc);
        if (call.status == 0) {
            check_layout(&call, &b, c);
        }
    }
    if (call.status == 0 && c->rows > 0 && c->cols > 0 && c->batch > 0) {
        check_data(&call, &a, C, c);
        check_data(&call, &b, C, c);
        lt_check_pointer(&call, "C", C, true);
        const View result = lt_view(c, C, MCBLAS_OP_N);
        submit(&call, &a, &b, &result, stream);
    }
    return us_call_end(&call);
}
