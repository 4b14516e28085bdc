/* Fused operations: packs hold what they are given; no plan can be made (mcdnn-cnn 13). */
#include "check.h"

#include <string.h>

enum { CONSTANT_LABELS = MCDNN_PARAM_BN_DBIAS_PLACEHOLDER + 1, POINTER_LABELS = MCDNN_PTR_BN_DBIAS + 1 };
enum { FIRST_SCALAR = MCDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, SCALAR_LABELS = 4 };

/* A descriptor handle, a mode or a placeholder, as it was given. */
typedef struct Constants {
    mcdnnFusedOps_t ops;
    bool given[CONSTANT_LABELS];
    uint64_t values[CONSTANT_LABELS];
} Constants;

/* Device pointers, and size_t, int64_t or double. */
typedef struct Variants {
    mcdnnFusedOps_t ops;
    void *pointers[POINTER_LABELS];
    uint64_t scalars[SCALAR_LABELS];
} Variants;

static void check_ops(Call *call, mcdnnFusedOps_t ops)
{
    check_range(call, "ops", ops, MCDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS,
                MCDNN_FUSED_DACTIVATION_FORK_DBATCHNORM);
}

/* Bytes of a constant: descriptors are handles, the rest are enumerations. */
static size_t constant_size(mcdnnFusedOpsConstParamLabel_t label)
{
    switch (label) {
    case MCDNN_PARAM_XDESC:
    case MCDNN_PARAM_BN_EQSCALEBIAS_DESC:
    case MCDNN_PARAM_ACTIVATION_DESC:
    case MCDNN_PARAM_CONV_DESC:
    case MCDNN_PARAM_WDESC:
    case MCDNN_PARAM_DWDESC:
    case MCDNN_PARAM_YDESC:
    case MCDNN_PARAM_DYDESC:
    case MCDNN_PARAM_YSTATS_DESC:
    case MCDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC:
    case MCDNN_PARAM_ZDESC:
    case MCDNN_PARAM_BN_Z_EQSCALEBIAS_DESC:
    case MCDNN_PARAM_ACTIVATION_BITMASK_DESC:
    case MCDNN_PARAM_DXDESC:
    case MCDNN_PARAM_DZDESC: return sizeof(void *);
    default: return sizeof(int);
    }
}

static void check_label(Call *call, int64_t label)
{
    const bool pointer = label >= 0 && label < POINTER_LABELS;
    const bool scalar = label >= FIRST_SCALAR && label < FIRST_SCALAR + SCALAR_LABELS;
    us_require(call, pointer || scalar, "paramLabel", "range", MCDNN_STATUS_BAD_PARAM, "paramLabel is %lld, unknown",
               (long long)label);
}

/* ---- constants ---- */

static Constants *constants_of(Call *call, mcdnnFusedOpsConstParamPack_t constPack)
{
    return descriptor_of(call, "constPack", constPack, HANDLE_FUSED_CONSTANTS, "a pack of constants");
}

mcdnnStatus_t mcdnnCreateFusedOpsConstParamPack(
    mcdnnFusedOpsConstParamPack_t *constPack, mcdnnFusedOps_t ops)
{
    Call call = us_call_begin("mcdnnCreateFusedOpsConstParamPack");
    check_ops(&call, ops);
    const Constants initial = {.ops = ops};
    void *made = descriptor_create(&call, "constPack", constPack, HANDLE_FUSED_CONSTANTS, &initial, sizeof initial);
    if (made != NULL)
        *constPack = made;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnDestroyFusedOpsConstParamPack(mcdnnFusedOpsConstParamPack_t constPack)
{
    return descriptor_end("mcdnnDestroyFusedOpsConstParamPack", HANDLE_FUSED_CONSTANTS, "constPack", constPack);
}

mcdnnStatus_t mcdnnSetFusedOpsConstParamPackAttribute(
    mcdnnFusedOpsConstParamPack_t constPack, mcdnnFusedOpsConstParamLabel_t paramLabel, const void *param)
{
    Call call = us_call_begin("mcdnnSetFusedOpsConstParamPackAttribute");
    Constants *constants = constants_of(&call, constPack);
    check_range(&call, "paramLabel", paramLabel, 0, CONSTANT_LABELS - 1);
    if (call.status == 0) {
        constants->given[paramLabel] = param != NULL;
        constants->values[paramLabel] = 0;
        if (param != NULL)
            memcpy(&constants->values[paramLabel], param, constant_size(paramLabel));
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetFusedOpsConstParamPackAttribute(
    const mcdnnFusedOpsConstParamPack_t constPack, mcdnnFusedOpsConstParamLabel_t paramLabel, void *param,
    int *isNULL)
{
    Call call = us_call_begin("mcdnnGetFusedOpsConstParamPackAttribute");
    const Constants *constants = constants_of(&call, constPack);
    check_given(&call, "param", param);
    check_given(&call, "isNULL", isNULL);
    check_range(&call, "paramLabel", paramLabel, 0, CONSTANT_LABELS - 1);
    if (call.status == 0) {
        *isNULL = !constants->given[paramLabel];
        if (constants->given[paramLabel])
            memcpy(param, &constants->values[paramLabel], constant_size(paramLabel));
    }
    return us_call_end(&call);
}

/* ---- variants ---- */

static Variants *variants_of(Call *call, mcdnnFusedOpsVariantParamPack_t varPack)
{
    return descriptor_of(call, "varPack", varPack, HANDLE_FUSED_VARIANTS, "a pack of variants");
}

mcdnnStatus_t mcdnnCreateFusedOpsVariantParamPack(
    mcdnnFusedOpsVariantParamPack_t *varPack, mcdnnFusedOps_t ops)
{
    Call call = us_call_begin("mcdnnCreateFusedOpsVariantParamPack");
    check_ops(&call, ops);
    const Variants initial = {.ops = ops};
    void *made = descriptor_create(&call, "varPack", varPack, HANDLE_FUSED_VARIANTS, &initial, sizeof initial);
    if (made != NULL)
        *varPack = made;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnDestroyFusedOpsVariantParamPack(mcdnnFusedOpsVariantParamPack_t varPack)
{
    return descriptor_end("mcdnnDestroyFusedOpsVariantParamPack", HANDLE_FUSED_VARIANTS, "varPack", varPack);
}

/* A pointer is the value itself; a number is behind it. */
mcdnnStatus_t mcdnnSetFusedOpsVariantParamPackAttribute(
    mcdnnFusedOpsVariantParamPack_t varPack, mcdnnFusedOpsVariantParamLabel_t paramLabel, void *ptr)
{
    Call call = us_call_begin("mcdnnSetFusedOpsVariantParamPackAttribute");
    Variants *variants = variants_of(&call, varPack);
    check_label(&call, paramLabel);
    if (call.status != 0)
        return us_call_end(&call);
    if ((int)paramLabel < FIRST_SCALAR) {
        variants->pointers[paramLabel] = ptr;
    } else {
        uint64_t *value = &variants->scalars[paramLabel - FIRST_SCALAR];
        *value = 0;
        if (ptr != NULL)
            memcpy(value, ptr, sizeof *value);
    }
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnGetFusedOpsVariantParamPackAttribute(
    const mcdnnFusedOpsVariantParamPack_t varPack, mcdnnFusedOpsVariantParamLabel_t paramLabel, void *ptr)
{
    Call call = us_call_begin("mcdnnGetFusedOpsVariantParamPackAttribute");
    const Variants *variants = variants_of(&call, varPack);
    check_given(&call, "ptr", ptr);
    check_label(&call, paramLabel);
    if (call.status == 0 && (int)paramLabel < FIRST_SCALAR)
        memcpy(ptr, &variants->pointers[paramLabel], sizeof(void *));
    else if (call.status == 0)
        memcpy(ptr, &variants->scalars[paramLabel - FIRST_SCALAR], sizeof(uint64_t));
    return us_call_end(&call);
}

/* ---- plans ---- */

mcdnnStatus_t mcdnnCreateFusedOpsPlan(mcdnnFusedOpsPlan_t *plan, mcdnnFusedOps_t ops)
{
    Call call = us_call_begin("mcdnnCreateFusedOpsPlan");
    check_ops(&call, ops);
    void *made = descriptor_create(&call, "plan", plan, HANDLE_FUSED_PLAN, &ops, sizeof ops);
    if (made != NULL)
        *plan = made;
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnDestroyFusedOpsPlan(mcdnnFusedOpsPlan_t plan)
{
    return descriptor_end("mcdnnDestroyFusedOpsPlan", HANDLE_FUSED_PLAN, "plan", plan);
}

mcdnnStatus_t mcdnnMakeFusedOpsPlan(
    mcdnnHandle_t handle, mcdnnFusedOpsPlan_t plan, const mcdnnFusedOpsConstParamPack_t constPack,
    size_t *workspaceSizeInBytes)
{
    (void)handle, (void)plan, (void)constPack, (void)workspaceSizeInBytes;
    Call call = us_call_begin("mcdnnMakeFusedOpsPlan");
    us_refuse(&call, "function", "emulated", MCDNN_STATUS_NOT_SUPPORTED, "fused operations are not emulated");
    return us_call_end(&call);
}

mcdnnStatus_t mcdnnFusedOpsExecute(
    mcdnnHandle_t handle, const mcdnnFusedOpsPlan_t plan, mcdnnFusedOpsVariantParamPack_t varPack)
{
    (void)handle, (void)plan, (void)varPack;
    Call call = us_call_begin("mcdnnFusedOpsExecute");
    us_refuse(&call, "function", "emulated", MCDNN_STATUS_NOT_SUPPORTED, "fused operations are not emulated");
    return us_call_end(&call);
}
