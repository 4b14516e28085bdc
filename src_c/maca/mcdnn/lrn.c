/* LRN descriptors, local response normalization, divisive normalization (mcdnn 6.8, 6.10, 7.2, 7.3). */
#include "kernels/norm/lrn.h"

#include "check.h"

typedef struct LrnDescriptor {
    unsigned n;
    double alpha, beta, k;
} LrnDescriptor;

static LrnDescriptor *descriptor(Call *call, mcdnnLRNDescriptor_t normDesc)
{
    return descriptor_of(call, "normDesc", normDesc, HANDLE_LRN, "an LRN descriptor");
}

mcdnnStatus_t mcdnnCreateLRNDescriptor(mcdnnLRNDescriptor_t *normDesc)
{
    return descriptor_make("mcdnnCreateLRNDescriptor", HANDLE_LRN, "normDesc", normDesc,
                           &(const LrnDescriptor){.n = 5, .alpha = 1e-4, .beta = 0.75, .k = 2.0}, sizeof(LrnDescriptor));
}

mcdnnStatus_t mcdnnDestroyLRNDescriptor(mcdnnLRNDescriptor_t lrnDesc)
{
    return descriptor_end("mcdnnDestroyLRNDescriptor", HANDLE_LRN, "lrnDesc", lrnDesc);
}

/* Values out of range are refused here, so the functions never meet them (mcdnn 6.8 #5, 6.10 #3). */
mcdnnStatus_t mcdnnSetLRNDescriptor(
    mcdnnLRNDescriptor_t normDesc, unsigned lrnN, double lrnAlpha, double lrnBeta, double lrnK)
{
    Call call = us_call_begin("mcdnnSetLRNDescriptor");
    LrnDescriptor *target = descriptor(&call, normDesc);
    check_range(&call, "lrnN", lrnN, MCDNN_LRN_MIN_N, MCDNN_LRN_MAX_N);
    us_require(&call, lrnBeta >= MCDNN_LRN_MIN_BETA, "lrnBeta", "minimum", MCDNN_STATUS_BAD_PARAM,
               "lrnBeta is %g, at least %g is needed", lrnBeta, MCDNN_LRN_MIN_BETA);
    us_require(&call, lrnK >= MCDNN_LRN_MIN_K, "lrnK", "minimum", MCDNN_STATUS_BAD_PARAM,
               "lrnK is %g, at least %g is needed", lrnK, MCDNN_LRN_MIN_K);
    if (call.status == 0)
        *target = (LrnDescriptor){lrnN, lrnAlpha, lrnBeta, lrnK};
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetLRNDescriptor(
    mcdnnLRNDescriptor_t normDesc, unsigned *lrnN, double *lrnAlpha, double *lrnBeta,
    double *lrnK)
{
    Call call = us_call_begin("mcdnnGetLRNDescriptor");
    const LrnDescriptor *source = descriptor(&call, normDesc);
    if (call.status == 0) {
        GIVE(lrnN, source->n);
        GIVE(lrnAlpha, source->alpha);
        GIVE(lrnBeta, source->beta);
        GIVE(lrnK, source->k);
    }
    return us_call_end(&call);
}

/* The end of all four functions: what the descriptor and the factors say becomes the kernel's attributes. */
static mcdnnStatus_t submit_norm(Call *call, const Dnn *dnn, Launch *launch, Kernel *kernel, const LrnDescriptor *lrn,
                                 const void *alpha, const void *beta, const Tensor *output)
{
    LocalNorm norm = {.window = (int32_t)lrn->n, .norm_alpha = lrn->alpha, .norm_beta = lrn->beta, .norm_k = lrn->k,
                      .alpha = scaling_factor(alpha, output), .beta = scaling_factor(beta, output)};
    return run_kernel(call, dnn, launch, kernel, &norm, sizeof norm);
}

static void check_lrn_rank(Call *call, const Tensor *x)
{
    us_require(call, x->rank > 2, "xDesc", "rank", MCDNN_STATUS_BAD_PARAM,
               "xDesc has %d dimensions, 4 or 5 are needed", x->rank);
    us_require(call, x->rank == 4 || x->rank == 5, "xDesc", "dimensions", MCDNN_STATUS_NOT_SUPPORTED,
               "xDesc has %d dimensions, supported are 4 and 5", x->rank);
}

static void check_lrn_mode(Call *call, mcdnnLRNMode_t mode)
{
    check_range(call, "lrnMode", mode, MCDNN_LRN_CROSS_CHANNEL_DIM1, MCDNN_LRN_CROSS_CHANNEL_DIM1);
}

mcdnnStatus_t mcdnnLRNCrossChannelForward(
    mcdnnHandle_t handle, mcdnnLRNDescriptor_t normDesc, mcdnnLRNMode_t lrnMode,
    const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *beta,
    const mcdnnTensorDescriptor_t yDesc, void *y)
{
    enum { X, Y };
    static const TensorRule rules[] = {{PACKED_PLANES, X, 0}, {PACKED_PLANES, Y, 0}, {SAME_TYPE, Y, X},
                                       {SAME_SIZES, Y, X}, {STEPS, X, 0}, {STEPS, Y, 0}, {FLOAT_TYPE, X, 0}};
    Operand operands[] = {operand("xDesc", xDesc, "x", x), operand("yDesc", yDesc, "y", y)};
    Call call = us_call_begin("mcdnnLRNCrossChannelForward");
    const Dnn *dnn = check_handle(&call, handle);
    const LrnDescriptor *lrn = descriptor(&call, normDesc);
    check_operands(&call, alpha, beta, operands, COUNT_OF(operands));
    check_lrn_mode(&call, lrnMode);
    check_lrn_rank(&call, operands[X].tensor);
    check_rules(&call, MCDNN_STATUS_NOT_SUPPORTED, operands, rules, COUNT_OF(rules));
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_operand(&launch, &operands[X], 3);
    launch_result(&launch, &operands[Y], 3, beta);
    return submit_norm(&call, dnn, &launch, us_lrn_forward, lrn, alpha, beta, operands[Y].tensor);
}

/* y must be given, but what it holds may have been scaled by a factor: the kernel forms it again from x (6.10). */
mcdnnStatus_t mcdnnLRNCrossChannelBackward(
    mcdnnHandle_t handle, mcdnnLRNDescriptor_t normDesc, mcdnnLRNMode_t lrnMode,
    const void *alpha, const mcdnnTensorDescriptor_t yDesc, const void *y,
    const mcdnnTensorDescriptor_t dyDesc, const void *dy, const mcdnnTensorDescriptor_t xDesc,
    const void *x, const void *beta, const mcdnnTensorDescriptor_t dxDesc, void *dx)
{
    enum { Y, DY, X, DX };
    static const TensorRule rules[] = {
        {PACKED_PLANES, Y, 0}, {PACKED_PLANES, DY, 0}, {PACKED_PLANES, X, 0}, {PACKED_PLANES, DX, 0},
        {SAME_TYPE, Y, X}, {SAME_TYPE, DY, X}, {SAME_TYPE, DX, X},
        {SAME_SIZES, Y, X}, {SAME_SIZES, DY, X}, {SAME_SIZES, DX, X},
        {STEPS, Y, 0}, {STEPS, DY, 0}, {STEPS, X, 0}, {STEPS, DX, 0}, {FLOAT_TYPE, X, 0}};
    Operand operands[] = {operand("yDesc", yDesc, "y", y), operand("dyDesc", dyDesc, "dy", dy),
                          operand("xDesc", xDesc, "x", x), operand("dxDesc", dxDesc, "dx", dx)};
    Call call = us_call_begin("mcdnnLRNCrossChannelBackward");
    const Dnn *dnn = check_handle(&call, handle);
    const LrnDescriptor *lrn = descriptor(&call, normDesc);
    check_operands(&call, alpha, beta, operands, COUNT_OF(operands));
    check_lrn_mode(&call, lrnMode);
    check_lrn_rank(&call, operands[X].tensor);
    check_rules(&call, MCDNN_STATUS_NOT_SUPPORTED, operands, rules, COUNT_OF(rules));
    if (call.status != 0)
        return us_call_end(&call);

    Launch launch;
    us_launch_begin(&launch, call.function);
    launch_operand(&launch, &operands[X], 3);
    launch_operand(&launch, &operands[DY], 3);
    launch_result(&launch, &operands[DX], 3, beta);
    return submit_norm(&call, dnn, &launch, us_lrn_backward, lrn, alpha, beta, operands[DX].tensor);
}

/* ---- divisive normalization (mcdnn 6.8) ---- */

/* One call: x, and y or dx. The kernels have scratch space of their own: temp and temp2 must be given but are not
 * touched. */
typedef struct Divisive {
    Call call;
    const Dnn *dnn;
    const LrnDescriptor *lrn;
    Operand operands[2];
} Divisive;

enum { SOURCE, RESULT };

static void open_divisive(Divisive *it, const char *function, mcdnnHandle_t handle, mcdnnLRNDescriptor_t normDesc,
                          const void *alpha, const void *beta, const void *temp, const void *temp2)
{
    Call *call = &it->call;
    *call = us_call_begin(function);
    it->dnn = check_handle(call, handle);
    it->lrn = descriptor(call, normDesc);
    check_operands(call, alpha, beta, it->operands, COUNT_OF(it->operands));
    check_given(call, "temp", temp);
    check_given(call, "temp2", temp2);
}

/* Rules 2, 4, 6 and 7 */
static void check_divisive(Divisive *it, mcdnnDivNormMode_t mode)
{
    static const TensorRule alike[] = {{SAME_SIZES, RESULT, SOURCE}, {SAME_TYPE, RESULT, SOURCE}, {STEPS, SOURCE, 0},
                                       {STEPS, RESULT, 0}},
                            supported[] = {{SAME_STRIDES, RESULT, SOURCE}, {FLOAT_TYPE, SOURCE, 0}};
    Call *call = &it->call;
    check_range(call, "mode", mode, MCDNN_DIVNORM_PRECOMPUTED_MEANS, MCDNN_DIVNORM_PRECOMPUTED_MEANS);
    for (const Operand *operand = it->operands; operand < it->operands + COUNT_OF(it->operands); operand++)
        us_require(call, operand->tensor->rank == 4 || operand->tensor->rank == 5, operand->shape_name, "rank",
                   MCDNN_STATUS_BAD_PARAM, "%s has %d dimensions, 4 or 5 are needed", operand->shape_name,
                   operand->tensor->rank);
    check_rules(call, MCDNN_STATUS_BAD_PARAM, it->operands, alike, COUNT_OF(alike));
    check_rules(call, MCDNN_STATUS_NOT_SUPPORTED, it->operands, supported, COUNT_OF(supported));
}

mcdnnStatus_t mcdnnDivisiveNormalizationForward(
    mcdnnHandle_t handle, mcdnnLRNDescriptor_t normDesc, mcdnnDivNormMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *means,
    void *temp, void *temp2, const void *beta, const mcdnnTensorDescriptor_t yDesc, void *y)
{
    Divisive it = {.operands = {operand("xDesc", xDesc, "x", x), operand("yDesc", yDesc, "y", y)}};
    open_divisive(&it, "mcdnnDivisiveNormalizationForward", handle, normDesc, alpha, beta, temp, temp2);
    check_divisive(&it, mode);
    if (it.call.status != 0)
        return us_call_end(&it.call);

    Launch launch;
    us_launch_begin(&launch, it.call.function);
    launch_operand(&launch, &it.operands[SOURCE], 4);
    launch_optional(&launch, "means", it.operands[SOURCE].tensor, means, 4);
    launch_result(&launch, &it.operands[RESULT], 4, beta);
    return submit_norm(&it.call, it.dnn, &launch, us_divisive_forward, it.lrn, alpha, beta, it.operands[RESULT].tensor);
}

mcdnnStatus_t mcdnnDivisiveNormalizationBackward(
    mcdnnHandle_t handle, mcdnnLRNDescriptor_t normDesc, mcdnnDivNormMode_t mode,
    const void *alpha, const mcdnnTensorDescriptor_t xDesc, const void *x, const void *means,
    const void *dy, void *temp, void *temp2, const void *beta,
    const mcdnnTensorDescriptor_t dxDesc, void *dx, void *dMeans)
{
    Divisive it = {.operands = {operand("xDesc", xDesc, "x", x), operand("dxDesc", dxDesc, "dx", dx)}};
    open_divisive(&it, "mcdnnDivisiveNormalizationBackward", handle, normDesc, alpha, beta, temp, temp2);
    check_given(&it.call, "dy", dy);
    check_divisive(&it, mode);
    if (it.call.status != 0)
        return us_call_end(&it.call);

    const Tensor *tx = it.operands[SOURCE].tensor, *tdx = it.operands[RESULT].tensor;
    Launch launch;
    us_launch_begin(&launch, it.call.function);
    launch_operand(&launch, &it.operands[SOURCE], 4);
    launch_optional(&launch, "means", tx, means, 4);
    launch_tensor(&launch, "dy", tx, dy, 4);
    launch_result(&launch, &it.operands[RESULT], 4, beta);
    launch_optional(&launch, "dMeans", tdx, dMeans, 4);
    us_launch_output(&launch, scaling_factor(beta, tdx) != 0.0);
    return submit_norm(&it.call, it.dnn, &launch, us_divisive_backward, it.lrn, alpha, beta, tdx);
}
