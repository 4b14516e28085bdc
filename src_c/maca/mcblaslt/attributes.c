#include "attributes.h"

#include <string.h>

void *lt_object(Call *call, const char *parameter, const void *handle, HandleKind kind)
{
    void *object = us_handle_object(handle, kind);
    us_require(call, object != NULL, parameter, "alive", MCBLAS_STATUS_INVALID_VALUE,
               "%s is %p, which is no live object of this kind (destroyed before, or another thing)", parameter,
               handle);
    return object;
}

typedef struct Attribute {
    int number;
    size_t offset, size;
} Attribute;

#define ATTRIBUTE(number, type, member) {number, offsetof(type, member), sizeof(((type *)0)->member)}

static const Attribute matmul_attributes[] = {
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_COMPUTE_TYPE, MatmulDesc, compute),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_SCALE_TYPE, MatmulDesc, scale),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_POINTER_MODE, MatmulDesc, pointer_mode),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_TRANSA, MatmulDesc, transa),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_TRANSB, MatmulDesc, transb),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_TRANSC, MatmulDesc, transc),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_FILL_MODE, MatmulDesc, fill),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_EPILOGUE, MatmulDesc, epilogue),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_BIAS_POINTER, MatmulDesc, bias),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, MatmulDesc, bias_stride),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, MatmulDesc, aux),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, MatmulDesc, aux_leading),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, MatmulDesc, aux_stride),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, MatmulDesc, alpha_stride),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_SM_COUNT_TARGET, MatmulDesc, sm_count),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_A_SCALE_POINTER, MatmulDesc, a_scale),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_B_SCALE_POINTER, MatmulDesc, b_scale),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_C_SCALE_POINTER, MatmulDesc, c_scale),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_D_SCALE_POINTER, MatmulDesc, d_scale),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_AMAX_D_POINTER, MatmulDesc, d_amax),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, MatmulDesc, aux_type),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, MatmulDesc, aux_scale),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, MatmulDesc, aux_amax),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_FAST_ACCUM, MatmulDesc, fast_accumulation),
    ATTRIBUTE(MCBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, MatmulDesc, bias_type),
};

static const Attribute layout_attributes[] = {
    ATTRIBUTE(MCBLASLT_MATRIX_LAYOUT_TYPE, Layout, type),
    ATTRIBUTE(MCBLASLT_MATRIX_LAYOUT_ORDER, Layout, order),
    ATTRIBUTE(MCBLASLT_MATRIX_LAYOUT_ROWS, Layout, rows),
    ATTRIBUTE(MCBLASLT_MATRIX_LAYOUT_COLS, Layout, cols),
    ATTRIBUTE(MCBLASLT_MATRIX_LAYOUT_LD, Layout, ld),
    ATTRIBUTE(MCBLASLT_MATRIX_LAYOUT_BATCH_COUNT, Layout, batch),
    ATTRIBUTE(MCBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, Layout, stride),
    ATTRIBUTE(MCBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, Layout, plane),
};

static const Attribute transform_attributes[] = {
    ATTRIBUTE(MCBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, TransformDesc, scale),
    ATTRIBUTE(MCBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, TransformDesc, pointer_mode),
    ATTRIBUTE(MCBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, TransformDesc, transa),
    ATTRIBUTE(MCBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, TransformDesc, transb),
};

static const Attribute preference_attributes[] = {
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_SEARCH_MODE, Preference, search_mode),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Preference, workspace),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_MATH_MODE_MASK, Preference, math_modes),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, Preference, reduction_schemes),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_GAUSSIAN_MODE_MASK, Preference, gaussian_modes),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, Preference, alignment_a),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, Preference, alignment_b),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, Preference, alignment_c),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, Preference, alignment_d),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, Preference, waves),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_POINTER_MODE_MASK, Preference, pointer_modes),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_EPILOGUE_MASK, Preference, epilogues),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_IMPL_MASK, Preference, implementations),
    ATTRIBUTE(MCBLASLT_MATMUL_PREF_SM_COUNT_TARGET, Preference, sm_count),
};

/* One kind of object. */
typedef struct Kind {
    HandleKind kind;
    const char *parameter;
    const Attribute *attributes;
    size_t count;
} Kind;

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
static const Kind matmul_kind = {HANDLE_LT_MATMUL, "matmulDesc", matmul_attributes, COUNT(matmul_attributes)};
static const Kind layout_kind = {HANDLE_LT_LAYOUT, "matLayout", layout_attributes, COUNT(layout_attributes)};
static const Kind transform_kind = {HANDLE_LT_TRANSFORM, "transformDesc", transform_attributes,
                                    COUNT(transform_attributes)};
static const Kind preference_kind = {HANDLE_LT_PREFERENCE, "pref", preference_attributes, COUNT(preference_attributes)};

static const Attribute *attribute_of(Call *call, const Kind *kind, int number)
{
    for (size_t i = 0; i < kind->count; i++) {
        if (kind->attributes[i].number == number) {
            return &kind->attributes[i];
        }
    }
    us_require(call, false, "attr", "range", MCBLAS_STATUS_INVALID_VALUE, "attr is %d, which is no attribute of %s",
               number, kind->parameter);
    return NULL;
}

static void *create(Call *call, const Kind *kind, const void *place, const void *initial, size_t size)
{
    us_require(call, place != NULL, kind->parameter, "null", MCBLAS_STATUS_INVALID_VALUE,
               "%s is NULL: a place is required", kind->parameter);
    void *handle = call->status == 0 ? us_handle_new(kind->kind, initial, size) : NULL;
    us_require(call, handle != NULL, kind->parameter, "memory", MCBLAS_STATUS_ALLOC_FAILED,
               "no host memory for an object");
    return handle;
}

static mcblasStatus_t destroy(const char *function, const Kind *kind, const void *handle)
{
    Call call = us_call_begin(function);
    lt_object(&call, kind->parameter, handle, kind->kind);
    if (call.status == 0) {
        us_handle_release(handle, kind->kind);
    }
    return us_call_end(&call);
}

static mcblasStatus_t set(const char *function, const Kind *kind, const void *handle, int number, const void *buf,
                          size_t size)
{
    Call call = us_call_begin(function);
    char *object = lt_object(&call, kind->parameter, handle, kind->kind);
    const Attribute *attribute = call.status == 0 ? attribute_of(&call, kind, number) : NULL;
    us_require(&call, buf != NULL, "buf", "null", MCBLAS_STATUS_INVALID_VALUE, "buf is NULL: a pointer is required");
    us_require(&call, size == attribute->size, "sizeInBytes", "size", MCBLAS_STATUS_INVALID_VALUE,
               "sizeInBytes is %zu; attribute %d has %zu bytes", size, number, attribute->size);
    if (call.status == 0) {
        memcpy(object + attribute->offset, buf, size);
    }
    return us_call_end(&call);
}

/* With size 0 only the size is asked. */
static mcblasStatus_t get(const char *function, const Kind *kind, const void *handle, int number, void *buf,
                          size_t size, size_t *written)
{
    Call call = us_call_begin(function);
    const char *object = lt_object(&call, kind->parameter, handle, kind->kind);
    const Attribute *attribute = call.status == 0 ? attribute_of(&call, kind, number) : NULL;
    us_require(&call, size != 0 || written != NULL, "sizeWritten", "null", MCBLAS_STATUS_INVALID_VALUE,
               "sizeInBytes is 0 and sizeWritten NULL: nothing is asked");
    us_require(&call, size == 0 || buf != NULL, "buf", "null", MCBLAS_STATUS_INVALID_VALUE,
               "buf is NULL: a pointer is required");
    us_require(&call, size == 0 || size >= attribute->size, "sizeInBytes", "size", MCBLAS_STATUS_INVALID_VALUE,
               "sizeInBytes is %zu; attribute %d has %zu bytes", size, number, attribute->size);
    if (call.status == 0 && size != 0) {
        memcpy(buf, object + attribute->offset, attribute->size);
    }
    if (call.status == 0 && written != NULL) {
        *written = attribute->size;
    }
    return us_call_end(&call);
}

/* ---- the functions ----------------------------------------------------------------------------------------------- */

mcblasStatus_t mcblasLtMatrixLayoutCreate(mcblasLtMatrixLayout_t *matLayout, macaDataType_t type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    Call call = us_call_begin("mcblasLtMatrixLayoutCreate");
    const Layout layout = {.type = (uint32_t)type, .rows = rows, .cols = cols, .ld = ld, .batch = 1};
    void *made = create(&call, &layout_kind, matLayout, &layout, sizeof layout);
    if (made != NULL) {
        *matLayout = made;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasLtMatrixLayoutDestroy(mcblasLtMatrixLayout_t matLayout)
{
    return destroy("mcblasLtMatrixLayoutDestroy", &layout_kind, matLayout);
}

mcblasStatus_t mcblasLtMatrixLayoutSetAttribute(mcblasLtMatrixLayout_t matLayout, mcblasLtMatrixLayoutAttribute_t attr,
                                                const void *buf, size_t sizeInBytes)
{
    return set("mcblasLtMatrixLayoutSetAttribute", &layout_kind, matLayout, (int)attr, buf, sizeInBytes);
}

mcblasStatus_t mcblasLtMatrixLayoutGetAttribute(mcblasLtMatrixLayout_t matLayout, mcblasLtMatrixLayoutAttribute_t attr,
                                                void *buf, size_t sizeInBytes, size_t *sizeWritten)
{
    return get("mcblasLtMatrixLayoutGetAttribute", &layout_kind, matLayout, (int)attr, buf, sizeInBytes, sizeWritten);
}

mcblasStatus_t mcblasLtMatmulDescCreate(mcblasLtMatmulDesc_t *matmulDesc, mcblasComputeType_t computeType,
                                        macaDataType_t scaleType)
{
    Call call = us_call_begin("mcblasLtMatmulDescCreate");
    const MatmulDesc desc = {.compute = (int32_t)computeType, .scale = (int32_t)scaleType,
                             .fill = MCBLAS_FILL_MODE_FULL, .epilogue = MCBLASLT_EPILOGUE_DEFAULT, .bias_type = -1,
                             .aux_type = -1};
    void *made = create(&call, &matmul_kind, matmulDesc, &desc, sizeof desc);
    if (made != NULL) {
        *matmulDesc = made;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasLtMatmulDescDestroy(mcblasLtMatmulDesc_t matmulDesc)
{
    return destroy("mcblasLtMatmulDescDestroy", &matmul_kind, matmulDesc);
}

mcblasStatus_t mcblasLtMatmulDescSetAttribute(mcblasLtMatmulDesc_t matmulDesc, mcblasLtMatmulDescAttributes_t attr,
                                              const void *buf, size_t sizeInBytes)
{
    return set("mcblasLtMatmulDescSetAttribute", &matmul_kind, matmulDesc, (int)attr, buf, sizeInBytes);
}

mcblasStatus_t mcblasLtMatmulDescGetAttribute(mcblasLtMatmulDesc_t matmulDesc, mcblasLtMatmulDescAttributes_t attr,
                                              void *buf, size_t sizeInBytes, size_t *sizeWritten)
{
    return get("mcblasLtMatmulDescGetAttribute", &matmul_kind, matmulDesc, (int)attr, buf, sizeInBytes, sizeWritten);
}

mcblasStatus_t mcblasLtMatrixTransformDescCreate(mcblasLtMatrixTransformDesc_t *transformDesc, macaDataType_t scaleType)
{
    Call call = us_call_begin("mcblasLtMatrixTransformDescCreate");
    const TransformDesc desc = {.scale = (int32_t)scaleType};
    void *made = create(&call, &transform_kind, transformDesc, &desc, sizeof desc);
    if (made != NULL) {
        *transformDesc = made;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasLtMatrixTransformDescDestroy(mcblasLtMatrixTransformDesc_t transformDesc)
{
    return destroy("mcblasLtMatrixTransformDescDestroy", &transform_kind, transformDesc);
}

mcblasStatus_t mcblasLtMatrixTransformDescSetAttribute(mcblasLtMatrixTransformDesc_t transformDesc,
                                                       mcblasLtMatrixTransformDescAttributes_t attr, const void *buf,
                                                       size_t sizeInBytes)
{
    return set("mcblasLtMatrixTransformDescSetAttribute", &transform_kind, transformDesc, (int)attr, buf, sizeInBytes);
}

mcblasStatus_t mcblasLtMatrixTransformDescGetAttribute(mcblasLtMatrixTransformDesc_t transformDesc,
                                                       mcblasLtMatrixTransformDescAttributes_t attr, void *buf,
                                                       size_t sizeInBytes, size_t *sizeWritten)
{
    return get("mcblasLtMatrixTransformDescGetAttribute", &transform_kind, transformDesc, (int)attr, buf, sizeInBytes,
               sizeWritten);
}

mcblasStatus_t mcblasLtMatmulPreferenceCreate(mcblasLtMatmulPreference_t *pref)
{
    Call call = us_call_begin("mcblasLtMatmulPreferenceCreate");
    const Preference preference = {.reduction_schemes = 7, .alignment_a = 256, .alignment_b = 256, .alignment_c = 256,
                                   .alignment_d = 256};
    void *made = create(&call, &preference_kind, pref, &preference, sizeof preference);
    if (made != NULL) {
        *pref = made;
    }
    return us_call_end(&call);
}

mcblasStatus_t mcblasLtMatmulPreferenceDestroy(mcblasLtMatmulPreference_t pref)
{
    return destroy("mcblasLtMatmulPreferenceDestroy", &preference_kind, pref);
}

mcblasStatus_t mcblasLtMatmulPreferenceSetAttribute(mcblasLtMatmulPreference_t pref,
                                                    mcblasLtMatmulPreferenceAttributes_t attr, const void *buf,
                                                    size_t sizeInBytes)
{
    return set("mcblasLtMatmulPreferenceSetAttribute", &preference_kind, pref, (int)attr, buf, sizeInBytes);
}

mcblasStatus_t mcblasLtMatmulPreferenceGetAttribute(mcblasLtMatmulPreference_t pref,
                                                    mcblasLtMatmulPreferenceAttributes_t attr, void *buf,
                                                    size_t sizeInBytes, size_t *sizeWritten)
{
    return get("mcblasLtMatmulPreferenceGetAttribute", &preference_kind, pref, (int)attr, buf, sizeInBytes,
               sizeWritten);
}
