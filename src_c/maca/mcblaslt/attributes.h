/* Objects that are set and read attribute by attribute: a table says where each attribute lies. */
#ifndef MCBLASLT_ATTRIBUTES_H
#define MCBLASLT_ATTRIBUTES_H

#include "device/handles.h"
#include "maca/common/handle_kinds.h"
#include "report/report.h"

#include <mcblas/mcblasLt.h>
#include <stddef.h>

typedef struct MatmulDesc {
    int32_t compute, scale, pointer_mode, transa, transb, transc, fill;
    uint32_t epilogue;
    void *bias, *aux;
    int64_t bias_stride, aux_leading, aux_stride, alpha_stride;
    void *a_scale, *b_scale, *c_scale, *d_scale, *d_amax, *aux_scale, *aux_amax;
    int32_t bias_type, aux_type, sm_count;
    int8_t fast_accumulation;
} MatmulDesc;

typedef struct TransformDesc {
    int32_t scale, pointer_mode, transa, transb;
} TransformDesc;

typedef struct Layout {
    uint32_t type;
    int32_t order;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch;
    int64_t stride, plane;
} Layout;

typedef struct Preference {
    uint32_t search_mode, math_modes, reduction_schemes, gaussian_modes, pointer_modes, epilogues, sm_count;
    uint32_t alignment_a, alignment_b, alignment_c, alignment_d;
    uint64_t workspace, implementations;
    float waves;
} Preference;

/* The object behind a handle; NULL after a refusal: parameter/alive. */
void *lt_object(Call *call, const char *parameter, const void *handle, HandleKind kind);

#endif
