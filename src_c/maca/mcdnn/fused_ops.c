/* Fused operations: packs hold what they are given; no plan can be made (mcdnn-cnn 13). */
#include "check.h"
#include "convolution.h"
#include "filter.h"

#include <string.h>

enum { CONSTANT_LABELS = MCDNN_PARAM_BN_DBIAS_PLACEHOLDER + 1, POINTER_LABELS = MCDNN_PTR_BN_DBIAS + 1 };
enum { FIRST_SCALAR = MCDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, SCALAR_LABELS = 4 };

/* Sets of operations, a bit each. Those behind INFERENCE are reserved: there is no table of their labels, each label
 * goes with them. */
enum {
    CONV = 1 << MCDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS,
    WGRAD = 1 << MCDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD,
    TRAINING = 1 << MCDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING,
    INFERENCE = 1 << MCDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE,
    FINALIZE = TRAINING | INFERENCE,
    RESERVED = 1 << MCDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION |
               1 << MCDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK | 1 << MCDNN_FUSED_DACTIVATION_FORK_DBATCHNORM,
};

/* What a constant is: the contents of a descriptor, which is passed itself, or an enumerator, which is passed by
 * address. */
typedef union Constant {
    Tensor tensor;
    FilterDescriptor filter;
    ActivationDescriptor activation;
    ConvDescriptor convolution;
    int enumerator;
} Constant;

typedef struct ConstantForm {
    HandleKind kind; /* 0: an enumerator, 0 … highest */
    size_t size;
    int highest;
    const char *what;
} ConstantForm;

static const ConstantForm a_tensor = {.kind = HANDLE_TENSOR, .size = sizeof(Tensor), .what = "a tensor descriptor"};
static const ConstantForm a_filter = {
    .kind = HANDLE_FILTER, .size = sizeof(FilterDescriptor), .what = "a filter descriptor"};
static const ConstantForm an_activation = {
    .kind = HANDLE_ACTIVATION, .size = sizeof(ActivationDescriptor), .what = "an activation descriptor"};
static const ConstantForm a_convolution = {
    .kind = HANDLE_CONVOLUTION, .size = sizeof(ConvDescriptor), .what = "a convolution descriptor"};
static const ConstantForm a_mode = {.size = sizeof(int), .highest = MCDNN_BATCHNORM_SPATIAL_PERSISTENT};
static const ConstantForm a_place = {.size = sizeof(int), .highest = MCDNN_PTR_16B_ALIGNED};

typedef struct ConstantLabel {
    const ConstantForm *form;
    unsigned ops;
} ConstantLabel;

/* With which operations public programs of the mirrored library give a label; the sheet has no table. */
static const ConstantLabel constant_labels[CONSTANT_LABELS] = {
    [MCDNN_PARAM_XDESC] = {&a_tensor, CONV | WGRAD | RESERVED},
    [MCDNN_PARAM_XDATA_PLACEHOLDER] = {&a_place, CONV | WGRAD | RESERVED},
    [MCDNN_PARAM_BN_MODE] = {&a_mode, CONV | WGRAD | FINALIZE | RESERVED},
    [MCDNN_PARAM_BN_EQSCALEBIAS_DESC] = {&a_tensor, CONV | WGRAD | FINALIZE | RESERVED},
    [MCDNN_PARAM_BN_EQSCALE_PLACEHOLDER] = {&a_place, CONV | WGRAD | FINALIZE | RESERVED},
    [MCDNN_PARAM_BN_EQBIAS_PLACEHOLDER] = {&a_place, CONV | WGRAD | FINALIZE | RESERVED},
    [MCDNN_PARAM_ACTIVATION_DESC] = {&an_activation, CONV | WGRAD | RESERVED},
    [MCDNN_PARAM_CONV_DESC] = {&a_convolution, CONV | WGRAD | RESERVED},
    [MCDNN_PARAM_WDESC] = {&a_filter, CONV | RESERVED},
    [MCDNN_PARAM_WDATA_PLACEHOLDER] = {&a_place, CONV | RESERVED},
    [MCDNN_PARAM_DWDESC] = {&a_filter, WGRAD | RESERVED},
    [MCDNN_PARAM_DWDATA_PLACEHOLDER] = {&a_place, WGRAD | RESERVED},
    [MCDNN_PARAM_YDESC] = {&a_tensor, CONV | RESERVED},
    [MCDNN_PARAM_YDATA_PLACEHOLDER] = {&a_place, CONV | RESERVED},
    [MCDNN_PARAM_DYDESC] = {&a_tensor, WGRAD | RESERVED},
    [MCDNN_PARAM_DYDATA_PLACEHOLDER] = {&a_place, WGRAD | RESERVED},
    [MCDNN_PARAM_YSTATS_DESC] = {&a_tensor, CONV | TRAINING | RESERVED},
    [MCDNN_PARAM_YSUM_PLACEHOLDER] = {&a_place, CONV | TRAINING | RESERVED},
    [MCDNN_PARAM_YSQSUM_PLACEHOLDER] = {&a_place, CONV | TRAINING | RESERVED},
    [MCDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC] = {&a_tensor, FINALIZE | RESERVED},
    [MCDNN_PARAM_BN_SCALE_PLACEHOLDER] = {&a_place, FINALIZE | RESERVED},
    [MCDNN_PARAM_BN_BIAS_PLACEHOLDER] = {&a_place, FINALIZE | RESERVED},
    [MCDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER] = {&a_place, TRAINING | RESERVED},
    [MCDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER] = {&a_place, TRAINING | RESERVED},
    [MCDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER] = {&a_place, FINALIZE | RESERVED},
    [MCDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER] = {&a_place, FINALIZE | RESERVED},
    [MCDNN_PARAM_ZDESC] = {&a_tensor, RESERVED},
    [MCDNN_PARAM_ZDATA_PLACEHOLDER] = {&a_place, RESERVED},
    [MCDNN_PARAM_BN_Z_EQSCALEBIAS_DESC] = {&a_tensor, RESERVED},
    [MCDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER] = {&a_place, RESERVED},
    [MCDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER] = {&a_place, RESERVED},
    [MCDNN_PARAM_ACTIVATION_BITMASK_DESC] = {&a_tensor, RESERVED},
    [MCDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER] = {&a_place, RESERVED},
    [MCDNN_PARAM_DXDESC] = {&a_tensor, RESERVED},
    [MCDNN_PARAM_DXDATA_PLACEHOLDER] = {&a_place, RESERVED},
    [MCDNN_PARAM_DZDESC] = {&a_tensor, RESERVED},
    [MCDNN_PARAM_DZDATA_PLACEHOLDER] = {&a_place, RESERVED},
    [MCDNN_PARAM_BN_DSCALE_PLACEHOLDER] = {&a_place, RESERVED},
    [MCDNN_PARAM_BN_DBIAS_PLACEHOLDER] = {&a_place, RESERVED},
};

/* The same of the variants; the size of a workspace goes with the workspace. */
static const unsigned pointer_ops[POINTER_LABELS] = {
    [MCDNN_PTR_XDATA] = CONV | WGRAD | RESERVED,
    [MCDNN_PTR_BN_EQSCALE] = CONV | WGRAD | FINALIZE | RESERVED,
    [MCDNN_PTR_BN_EQBIAS] = CONV | WGRAD | FINALIZE | RESERVED,
    [MCDNN_PTR_WDATA] = CONV | RESERVED,
    [MCDNN_PTR_DWDATA] = WGRAD | RESERVED,
    [MCDNN_PTR_YDATA] = CONV | RESERVED,
    [MCDNN_PTR_DYDATA] = WGRAD | RESERVED,
    [MCDNN_PTR_YSUM] = CONV | TRAINING | RESERVED,
    [MCDNN_PTR_YSQSUM] = CONV | TRAINING | RESERVED,
    [MCDNN_PTR_WORKSPACE] = CONV | WGRAD | FINALIZE | RESERVED,
    [MCDNN_PTR_BN_SCALE] = FINALIZE | RESERVED,
    [MCDNN_PTR_BN_BIAS] = FINALIZE | RESERVED,
    [MCDNN_PTR_BN_SAVED_MEAN] = TRAINING | RESERVED,
    [MCDNN_PTR_BN_SAVED_INVSTD] = TRAINING | RESERVED,
    [MCDNN_PTR_BN_RUNNING_MEAN] = FINALIZE | RESERVED,
    [MCDNN_PTR_BN_RUNNING_VAR] = FINALIZE | RESERVED,
    [MCDNN_PTR_ZDATA] = RESERVED,
    [MCDNN_PTR_BN_Z_EQSCALE] = RESERVED,
    [MCDNN_PTR_BN_Z_EQBIAS] = RESERVED,
    [MCDNN_PTR_ACTIVATION_BITMASK] = RESERVED,
    [MCDNN_PTR_DXDATA] = RESERVED,
    [MCDNN_PTR_DZDATA] = RESERVED,
    [MCDNN_PTR_BN_DSCALE] = RESERVED,
    [MCDNN_PTR_BN_DBIAS] = RESERVED,
};

static const unsigned scalar_ops[SCALAR_LABELS] = {
    [MCDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES - FIRST_SCALAR] = CONV | WGRAD | FINALIZE | RESERVED,
    [MCDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT - FIRST_SCALAR] = TRAINING | RESERVED,
    [MCDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR - FIRST_SCALAR] = TRAINING | RESERVED,
    [MCDNN_SCALAR_DOUBLE_BN_EPSILON - FIRST_SCALAR] = FINALIZE | RESERVED,
};

/* The contents that descriptors had when they were given, modes and placeholders. */
typedef struct Constants {
    mcdnnFusedOps_t ops;
    bool given[CONSTANT_LABELS];
    Constant values[CONSTANT_LABELS];
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

/* paramLabel/of-operation */
static void check_belongs(Call *call, int64_t label, unsigned of, mcdnnFusedOps_t ops)
{
    us_require(call, of >> ops & 1, "paramLabel", "of-operation", MCDNN_STATUS_BAD_PARAM,
               "paramLabel is %lld, which the operation of the pack, %d, does not have", (long long)label, (int)ops);
}

/* ---- constants ---- */

static Constants *constants_of(Call *call, mcdnnFusedOpsConstParamPack_t constPack)
{
    return descriptor_of(call, "constPack", constPack, HANDLE_FUSED_CONSTANTS, "a pack of constants");
}

/* How the constant of a label is passed; NULL after a refusal: paramLabel/range, paramLabel/of-operation. */
static const ConstantForm *form_of(Call *call, const Constants *constants, mcdnnFusedOpsConstParamLabel_t paramLabel)
{
    check_range(call, "paramLabel", paramLabel, 0, CONSTANT_LABELS - 1);
    if (call->status != 0)
        return NULL;
    check_belongs(call, paramLabel, constant_labels[paramLabel].ops, constants->ops);
    return call->status == 0 ? constant_labels[paramLabel].form : NULL;
}

/* Where `param` holds a constant: what the descriptor refers to, or the address itself. NULL after a refusal:
 * param/alive. */
static void *place_of(Call *call, const ConstantForm *form, const void *param)
{
    return form->kind == 0 ? (void *)(uintptr_t)param : descriptor_of(call, "param", param, form->kind, form->what);
}

static void set_constant(Call *call, Constants *constants, mcdnnFusedOpsConstParamLabel_t label,
                         const ConstantForm *form, const void *param)
{
    const void *place = place_of(call, form, param);
    Constant value = {0};
    if (call->status == 0)
        memcpy(&value, place, form->size);
    if (form->kind == 0)
        check_range(call, "param", value.enumerator, 0, form->highest);
    if (call->status != 0)
        return;
    constants->given[label] = true;
    constants->values[label] = value;
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
    const ConstantForm *form = form_of(&call, constants, paramLabel);
    if (call.status == 0 && param == NULL)
        constants->given[paramLabel] = false;
    else if (call.status == 0)
        set_constant(&call, constants, paramLabel, form, param);
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
    const ConstantForm *form = form_of(&call, constants, paramLabel);
    void *place = call.status == 0 ? place_of(&call, form, param) : NULL;
    if (call.status == 0) {
        *isNULL = !constants->given[paramLabel];
        if (constants->given[paramLabel])
            memcpy(place, &constants->values[paramLabel], form->size);
    }
    return us_call_end(&call);
}

/* ---- variants ---- */

static Variants *variants_of(Call *call, mcdnnFusedOpsVariantParamPack_t varPack)
{
    return descriptor_of(call, "varPack", varPack, HANDLE_FUSED_VARIANTS, "a pack of variants");
}

/* paramLabel/range, paramLabel/of-operation */
static void check_label(Call *call, const Variants *variants, int64_t label)
{
    const bool pointer = label >= 0 && label < POINTER_LABELS;
    const bool scalar = label >= FIRST_SCALAR && label < FIRST_SCALAR + SCALAR_LABELS;
    us_require(call, pointer || scalar, "paramLabel", "range", MCDNN_STATUS_BAD_PARAM, "paramLabel is %lld, unknown",
               (long long)label);
    if (call->status == 0)
        check_belongs(call, label, pointer ? pointer_ops[label] : scalar_ops[label - FIRST_SCALAR], variants->ops);
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
    check_label(&call, variants, paramLabel);
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
    check_label(&call, variants, paramLabel);
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
